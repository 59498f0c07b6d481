//! Entries of the boot loader specification, used by GRUB's `blscfg` and by systemd-boot.
//!
//! Format: <https://uapi-group.org/specifications/specs/boot_loader_specification/>.

use std::cmp::Ordering;

use fastpath_knowledge::compare;

use crate::mask::{disguise, mask_ids};
use crate::tree::{FileKind, ReadError, Tree};

use super::{Unknown, numbered, read_text, script};
use crate::witness::Evidence;

/// One entry file.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// The file's name with ids masked, without `.conf`: what entries are ordered by.
    pub(super) stem: String,
    /// The same in disguise: what an entry is chosen by.
    pub(super) id: String,
    /// The file with ids masked.
    pub(super) path: String,
    pub(super) title: String,
    pub(super) version: String,
    pub(super) machine_id: String,
    pub(super) sort_key: Option<String>,
    /// The image's path and where it stands.
    pub(super) linux: Option<(String, Evidence)>,
    /// An EFI program or unified kernel image and where it stands; GRUB leaves such entries out.
    pub(super) efi: Option<(String, Evidence)>,
}

/// More entries than any menu has; bounds the work on a hostile root.
const MAX_ENTRIES: usize = 512;

const SMALL: usize = 64 << 10;

/// Line filter for an entry: never its `options`, and names in disguise.
fn keep_entry(line: &[u8], out: &mut Vec<u8>) {
    let line = String::from_utf8_lossy(line);
    let Some((key, value)) = line.trim().split_once([' ', '\t']) else { return };
    let value = match key {
        "title" | "version" | "sort-key" => disguise(value.trim()),
        "machine-id" => mask_ids(value.trim()),
        "linux" | "efi" | "uki" => {
            let path = value.split_whitespace().next().and_then(script::image_path);
            path.unwrap_or_default()
        }
        _ => return,
    };
    out.extend_from_slice(format!("{key} {value}").as_bytes());
}

/// The names with this suffix in a directory, which may be missing.
pub(super) fn names(
    tree: &dyn Tree,
    directory: &str,
    suffix: &str,
) -> Result<Vec<String>, Unknown> {
    let entries = match tree.list(directory) {
        Ok(entries) => entries,
        Err(ReadError::Missing | ReadError::NotRecorded) => return Ok(Vec::new()),
        Err(error) => return Err(Unknown::refused(directory, error)),
    };
    let names: Vec<String> = entries
        .into_iter()
        .filter(|entry| matches!(entry.kind, FileKind::File | FileKind::Link | FileKind::Unknown))
        .map(|entry| entry.name)
        .filter(|name| name.len() > suffix.len() && !name.starts_with('.'))
        .filter(|name| name.to_ascii_lowercase().ends_with(suffix))
        .take(MAX_ENTRIES + 1)
        .collect();
    if names.len() > MAX_ENTRIES {
        return Err(Unknown::new(format!("{directory} has more than {MAX_ENTRIES} entries")));
    }
    Ok(names)
}

/// Reads the entries in a directory. One that may not be read could be the one that boots, so it ends the reading.
pub(super) fn read(tree: &dyn Tree, directory: &str) -> Result<Vec<Entry>, Unknown> {
    let mut entries = Vec::new();
    for name in names(tree, directory, ".conf")? {
        let path = format!("{directory}/{name}");
        let text = match read_text(tree, &path, SMALL, keep_entry) {
            Ok(text) => text,
            // A dangling link, or removed in between: no loader shows it.
            Err(ReadError::Missing) => continue,
            Err(error) => return Err(Unknown::refused(&path, error)),
        };
        let name = mask_ids(&name);
        let stem = name.get(..name.len() - ".conf".len()).unwrap_or_default().to_owned();
        entries.push(parse(stem, mask_ids(&path), &text));
    }
    Ok(entries)
}

fn parse(stem: String, path: String, text: &str) -> Entry {
    let mut entry = Entry { id: disguise(&stem), stem, path, ..Entry::default() };
    for (line, number) in numbered(text) {
        let Some((key, value)) = line.split_once(' ') else { continue };
        match key {
            "title" => value.clone_into(&mut entry.title),
            "version" => value.clone_into(&mut entry.version),
            "machine-id" => entry.machine_id = value.to_ascii_lowercase(),
            "sort-key" => entry.sort_key = Some(value.to_owned()),
            "linux" | "efi" | "uki" => {
                let evidence = Evidence {
                    path: entry.path.clone(),
                    line: Some(number),
                    text: Some(line.to_owned()),
                };
                let image = if key == "linux" { &mut entry.linux } else { &mut entry.efi };
                *image = Some((value.to_owned(), evidence));
            }
            _ => {}
        }
    }
    entry
}

/// The order of GRUB's menu: highest name, then version, then release first. The name is a machine id, and with ids
/// masked all are one: entries of several installations are ordered by version alone.
pub(super) fn grub_order(a: &Entry, b: &Entry) -> Ordering {
    let (a_parts, b_parts) = (nvr(&a.stem), nvr(&b.stem));
    a_parts
        .iter()
        .zip(&b_parts)
        .map(|(a, b)| compare(b, a))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| b.stem.cmp(&a.stem))
}

/// Name, version and release of a file name, split as `blscfg` does: from the end, at the last two hyphens.
fn nvr(stem: &str) -> [&str; 3] {
    match stem.rsplit_once('-') {
        None => [stem, "", ""],
        Some((rest, release)) => match rest.rsplit_once('-') {
            None => [rest, release, ""],
            Some((name, version)) => [name, version, release],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grub_lists_the_highest_version_first() {
        let id = "00000000000000000000000000000000";
        let mut entries: Vec<Entry> = [
            format!("{id}-0-rescue"),
            format!("{id}-5.14.0-70.13.1.el9_0.x86_64"),
            format!("{id}-5.14.0-687.49.1.el9_8.x86_64"),
            format!("{id}-5.14.0-570.58.1.el9_6.x86_64"),
        ]
        .into_iter()
        .map(|stem| Entry { stem, ..Entry::default() })
        .collect();
        entries.sort_by(grub_order);
        let order: Vec<&str> = entries.iter().map(|entry| &entry.stem[id.len() + 1..]).collect();
        let expected = [
            "5.14.0-687.49.1.el9_8.x86_64",
            "5.14.0-570.58.1.el9_6.x86_64",
            "5.14.0-70.13.1.el9_0.x86_64",
            "0-rescue",
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn the_filter_never_keeps_options() {
        let mut out = Vec::new();
        keep_entry(b"options root=/dev/sda1 secret", &mut out);
        keep_entry(b"  linux\t/vmlinuz-6.1.0 extra", &mut out);
        assert_eq!(out, b"linux /vmlinuz-6.1.0");
    }
}
