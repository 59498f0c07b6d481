//! Which kernel systemd-boot boots: EFI variables, `loader.conf`, the order of its entries.
//!
//! Manual: <https://www.freedesktop.org/software/systemd/man/latest/systemd-boot.html>; variables:
//! <https://systemd.io/BOOT_LOADER_INTERFACE/>.

use std::cmp::Ordering;

use fastpath_knowledge::{Release, compare};

use crate::mask::{disguise, has_stand_in, mask_ids};
use crate::tree::{ReadError, Tree, Want};
use crate::witness::Evidence;

use super::{
    Found, Host, NO_FILES, Sign, Unknown, bls, installed_as, looks_like_release, mentioned,
    not_here, numbered, package_of, read_text, release_of_image, shown,
};

/// Where the EFI system partition or the extended boot loader partition is mounted.
const PARTITIONS: [&str; 3] = ["/boot", "/efi", "/boot/efi"];
const LOADER_CONF: [&str; 3] =
    ["/boot/loader/loader.conf", "/efi/loader/loader.conf", "/boot/efi/loader/loader.conf"];

const SMALL: usize = 64 << 10;
const VARIABLE_LIMIT: usize = 4096;

/// An EFI variable of the boot loader interface.
pub(super) struct Variable {
    path: String,
    /// Its text, in disguise.
    pub(super) text: String,
}

impl Variable {
    pub(super) fn evidence(&self) -> Evidence {
        Evidence { path: self.path.clone(), line: None, text: Some(self.text.clone()) }
    }
}

/// Reads a variable; `None` if it is not set or there is no EFI.
pub(super) fn variable(tree: &dyn Tree, name: &str) -> Result<Option<Variable>, Unknown> {
    let path = format!("/sys/firmware/efi/efivars/{name}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f");
    let want =
        Want { limit: VARIABLE_LIMIT, lines: None, redact: Some(redact_variable), extract: None };
    let content = match tree.read(&path, &want) {
        Ok(content) => content,
        Err(ReadError::Missing | ReadError::NotRecorded) => return Ok(None),
        Err(error) => return Err(Unknown::refused(&path, error)),
    };
    // The reader sees what a snapshot keeps.
    let text = variable_text(&redact_variable(&content.bytes));
    Ok(Some(Variable { path, text }).filter(|variable| !variable.text.is_empty()))
}

/// The attributes in front of a variable's value.
const ATTRIBUTES: usize = 4;

/// The text in a variable: UTF-16 up to a zero.
fn variable_text(bytes: &[u8]) -> String {
    let value = bytes.get(ATTRIBUTES..).unwrap_or_default();
    let units = value.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units.take_while(|&unit| unit != 0))
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// A variable whose text is in disguise.
fn redact_variable(bytes: &[u8]) -> Vec<u8> {
    let Some(attributes) = bytes.get(..ATTRIBUTES) else { return bytes.to_vec() };
    let text = disguise(&variable_text(bytes));
    let units = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
    attributes.iter().copied().chain(units).collect()
}

/// Whether systemd-boot is in use here.
pub(super) fn sign(tree: &dyn Tree) -> Sign {
    let mut sign = Sign::None;
    for path in LOADER_CONF {
        match tree.kind(path) {
            Ok(_) => return Sign::Strong,
            Err(error) if error.is_permission() && sign == Sign::None => {
                sign = Sign::Hidden(path, error);
            }
            Err(_) => {}
        }
    }
    sign
}

/// One entry of the menu.
struct Entry {
    /// The name it is chosen by: the file's, without the count of tries, in disguise.
    id: String,
    /// The same with ids masked: what entries are ordered by.
    name: String,
    tries_left: Option<u32>,
    tries_done: u32,
    kind: Kind,
}

enum Kind {
    /// An entry file.
    File(Box<bls::Entry>),
    /// A unified kernel image at this path.
    Unified(String),
}

impl Entry {
    fn new(stem: &str, suffix: &str, kind: Kind) -> Self {
        let (stem, tries) = split_tries(stem);
        let name = format!("{stem}{suffix}");
        Self {
            id: disguise(&name),
            name,
            tries_left: tries.map(|(left, _)| left),
            tries_done: tries.map_or(0, |(_, done)| done),
            kind,
        }
    }

    /// The entry file, if it has a sort key.
    fn keyed(&self) -> Option<&bls::Entry> {
        match &self.kind {
            Kind::File(file) => Some(file.as_ref()).filter(|file| file.sort_key.is_some()),
            Kind::Unified(_) => None,
        }
    }

    /// The order of the menu, as the boot loader specification and systemd-boot have it.
    fn order(a: &Self, b: &Self) -> Ordering {
        let exhausted = |entry: &Self| entry.tries_left == Some(0);
        exhausted(a)
            .cmp(&exhausted(b))
            .then_with(|| match (a.keyed(), b.keyed()) {
                (Some(a), Some(b)) => a
                    .sort_key
                    .cmp(&b.sort_key)
                    .then_with(|| a.machine_id.cmp(&b.machine_id))
                    .then_with(|| compare(&b.version, &a.version)),
                (a, b) => b.is_some().cmp(&a.is_some()),
            })
            .then_with(|| compare(&b.name, &a.name))
            .then_with(|| b.tries_left.cmp(&a.tries_left))
            .then_with(|| a.tries_done.cmp(&b.tries_done))
            .then_with(|| b.name.cmp(&a.name))
    }
}

/// Takes the count of tries off a name: `name+LEFT` or `name+LEFT-DONE`.
fn split_tries(stem: &str) -> (&str, Option<(u32, u32)>) {
    let counted = stem.rsplit_once('+').and_then(|(name, count)| {
        let (left, done) = count.split_once('-').unwrap_or((count, "0"));
        let number = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
        };
        Some((name, (number(left)?, number(done)?)))
    });
    match counted {
        Some((name, tries)) if !name.is_empty() => (name, Some(tries)),
        _ => (stem, None),
    }
}

/// Line filter for `loader.conf`.
fn keep_default(line: &[u8], out: &mut Vec<u8>) {
    let line = String::from_utf8_lossy(line);
    if let Some(value) = default_value(&line) {
        out.extend_from_slice(format!("default {}", disguise(value)).as_bytes());
    }
}

fn default_value(line: &str) -> Option<&str> {
    let (key, value) = line.trim().split_once([' ', '\t'])?;
    (key == "default").then(|| value.trim())
}

/// The kernel systemd-boot boots next.
pub(super) fn next(host: Host<'_>) -> Result<Found, Unknown> {
    let LoaderConf { partition, default } = loader_conf(host.tree)?;
    let entries = entries(host.tree, partition)?;
    let one_shot = variable(host.tree, "LoaderEntryOneShot")?;
    let set = variable(host.tree, "LoaderEntryDefault")?;
    let variable = |variable: Variable, why| (variable.text.clone(), variable.evidence(), why);
    let configured = [
        one_shot.map(|one_shot| variable(one_shot, "one-shot entry of systemd-boot")),
        set.map(|set| variable(set, "the default entry set in systemd-boot")),
        default.map(|(name, evidence)| (name, evidence, "the default entry of loader.conf")),
    ];
    for choice in configured.into_iter().flatten() {
        let choice = if choice.0 == "@saved" { last_booted(host.tree)? } else { Some(choice) };
        // A choice that fits no entry is passed over.
        let Some((pattern, evidence, why)) = choice else { continue };
        if let Some(entry) = find(&entries, &pattern)? {
            return found(host, entry, Some(evidence), why);
        }
    }
    let unified = |entry: &Entry| matches!(entry.kind, Kind::Unified(_));
    if entries.iter().any(unified) && !entries.iter().all(unified) {
        // The sort keys of unified images are inside them.
        let why = "boot entries and unified kernel images are both there, and no default is set";
        return Err(Unknown::new(why));
    }
    match entries.first() {
        Some(_) if order_is_hidden(&entries) => Err(Unknown::new(NO_ORDER)),
        Some(entry) => found(host, entry, None, "first entry of systemd-boot's menu"),
        None => Err(Unknown::new("systemd-boot has no boot entries")),
    }
}

const NO_ORDER: &str = "the order of boot entries depends on names that are not kept";

/// Whether entries are ordered by texts whose disguise does not tell their order.
fn order_is_hidden(entries: &[Entry]) -> bool {
    let differ = |text: fn(&bls::Entry) -> &str| {
        let mut texts: Vec<&str> = entries.iter().filter_map(Entry::keyed).map(text).collect();
        texts.sort_unstable();
        texts.dedup();
        texts.len() > 1 && texts.into_iter().any(has_stand_in)
    };
    differ(|entry| entry.sort_key.as_deref().unwrap_or_default()) || differ(|entry| &entry.version)
}

/// A pattern, where it stands, and what it is.
type Choice = (String, Evidence, &'static str);

/// What `@saved` stands for.
fn last_booted(tree: &dyn Tree) -> Result<Option<Choice>, Unknown> {
    let saved = variable(tree, "LoaderEntryLastBooted")?;
    Ok(saved.map(|saved| {
        (saved.text.clone(), saved.evidence(), "the entry that systemd-boot booted last")
    }))
}

/// `loader.conf`.
struct LoaderConf {
    /// Where the partition it is on is mounted.
    partition: &'static str,
    /// The default entry it names, and where.
    default: Option<(String, Evidence)>,
}

/// Reads the first `loader.conf` there is.
fn loader_conf(tree: &dyn Tree) -> Result<LoaderConf, Unknown> {
    let mut refused = None;
    for (path, partition) in LOADER_CONF.into_iter().zip(PARTITIONS) {
        match read_text(tree, path, SMALL, keep_default) {
            Ok(text) => {
                let default = numbered(&text).filter_map(|(line, number)| {
                    let evidence = Evidence {
                        path: path.to_owned(),
                        line: Some(number),
                        text: Some(line.to_owned()),
                    };
                    Some((default_value(line)?.to_owned(), evidence))
                });
                return Ok(LoaderConf { partition, default: default.last() });
            }
            Err(ReadError::Missing | ReadError::NotRecorded) => {}
            Err(error) => {
                refused.get_or_insert_with(|| Unknown::refused(path, error));
            }
        }
    }
    Err(refused.unwrap_or_else(|| Unknown::new(NO_FILES)))
}

/// The menu in its order. Entries may also be on the extended boot loader partition, at `/boot`.
fn entries(tree: &dyn Tree, partition: &'static str) -> Result<Vec<Entry>, Unknown> {
    let mut entries: Vec<Entry> = Vec::new();
    let extended = (partition != "/boot").then_some("/boot");
    for partition in [partition].into_iter().chain(extended) {
        let directory = format!("{partition}/loader/entries");
        for file in bls::read(tree, &directory)? {
            if file.linux.is_some() || file.efi.is_some() {
                let stem = file.stem.clone();
                entries.push(Entry::new(&stem, ".conf", Kind::File(Box::new(file))));
            }
        }
        let directory = format!("{partition}/EFI/Linux");
        for name in bls::names(tree, &directory, ".efi")? {
            let name = mask_ids(&name);
            let stem = name.get(..name.len() - ".efi".len()).unwrap_or_default();
            let path = format!("{directory}/{name}");
            entries.push(Entry::new(stem, ".efi", Kind::Unified(path)));
        }
    }
    entries.sort_by(Entry::order);
    Ok(entries)
}

/// Longer than any name a file can have.
const MAX_PATTERN: usize = 512;

/// The first entry that fits a pattern.
fn find<'a>(entries: &'a [Entry], pattern: &str) -> Result<Option<&'a Entry>, Unknown> {
    if pattern.len() > MAX_PATTERN {
        return Ok(None);
    }
    let pattern = pattern.to_lowercase();
    let fits = |id: &str| fits(&pattern, &id.to_lowercase());
    // Older releases leave the suffix out of names.
    let stem = |entry: &Entry| entry.id.rsplit_once('.').is_some_and(|(stem, _)| fits(stem));
    let by_id = || entries.iter().filter(|entry| fits(&entry.id));
    let found = by_id().next().or_else(|| entries.iter().find(|entry| stem(entry)));
    if found.is_none() && pattern.starts_with("auto-") {
        let why = format!("systemd-boot starts `{}` next, which is no kernel", shown(&pattern));
        return Err(Unknown::new(why));
    }
    if cuts_a_word(&pattern)
        && (has_stand_in(&pattern) || entries.iter().any(|entry| has_stand_in(&entry.id)))
    {
        return Err(Unknown::new(
            "the default of systemd-boot names part of a name that is not kept",
        ));
    }
    if by_id().nth(1).is_some() && order_is_hidden(entries) {
        return Err(Unknown::new(NO_ORDER));
    }
    Ok(found)
}

/// Whether a pattern leaves part of a word open, so that what stands for the word cannot be compared.
fn cuts_a_word(pattern: &str) -> bool {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']');
    let (mut before, mut inside) = (' ', false);
    for c in pattern.chars() {
        inside |= special(c) && before.is_alphanumeric() || special(before) && c.is_alphanumeric();
        before = c;
    }
    inside
}

/// Glob matching with `*`, `?` and `[...]`, in time bounded by the product of the lengths.
fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where the last `*` is, and how much of the text it takes.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, t));
            p += 1;
        } else if let Some(next) = one(&pattern, p, text[t]) {
            p = next;
            t += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            t = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Matches one character at `pattern[p]`; gives where the pattern goes on.
fn one(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match pattern.get(p)? {
        '?' => Some(p + 1),
        '[' => {
            let set = &pattern[p + 1..];
            let negated = matches!(set.first(), Some('!' | '^'));
            let start = usize::from(negated);
            // A bracket that comes first is a member.
            let end = (start + 1..set.len()).find(|&at| set[at] == ']')?;
            let members = &set[start..end];
            let mut inside = false;
            let mut at = 0;
            while at < members.len() {
                if members.get(at + 1) == Some(&'-') && at + 2 < members.len() {
                    inside |= (members[at]..=members[at + 2]).contains(&c);
                    at += 3;
                } else {
                    inside |= members[at] == c;
                    at += 1;
                }
            }
            (inside != negated).then_some(p + 1 + end + 1)
        }
        '\\' => (pattern.get(p + 1) == Some(&c)).then_some(p + 2),
        literal => (*literal == c).then_some(p + 1),
    }
}

/// The answer that an entry gives.
fn found(
    host: Host<'_>,
    entry: &Entry,
    evidence: Option<Evidence>,
    why: &str,
) -> Result<Found, Unknown> {
    let (release, place) = match &entry.kind {
        Kind::File(file) => {
            let place = file.linux.as_ref().or(file.efi.as_ref()).map(|(_, place)| place.clone());
            (release_of_file(host, file), place)
        }
        Kind::Unified(path) => {
            let place = Evidence { path: path.clone(), line: None, text: None };
            (release_of_unified(host, path), Some(place))
        }
    };
    let evidence = evidence.or(place);
    match release {
        Ok(release) => Ok(Found { release, evidence, why: why.to_owned() }),
        Err(unknown) => Err(Unknown { evidence, ..unknown }),
    }
}

fn release_of_file(host: Host<'_>, file: &bls::Entry) -> Result<Release, Unknown> {
    if let Some(release) = installed_as(host, &file.version) {
        return Ok(release.clone());
    }
    match (&file.linux, &file.efi) {
        (Some((path, _)), _) => match release_of_image(host, path) {
            // The version is the better name for a kernel that is not here.
            Err(_) if looks_like_release(&file.version) && file.version.contains('-') => {
                Err(not_here(&file.version))
            }
            answer => answer,
        },
        (None, Some((path, _))) => release_of_unified(host, path),
        (None, None) => Err(Unknown::new("the boot entry names no image")),
    }
}

/// The installed kernel that the name of a unified image tells: by its release, or by its package (`arch-linux.efi`).
fn release_of_unified(host: Host<'_>, path: &str) -> Result<Release, Unknown> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (stem, _) = split_tries(stem);
    let stem = &disguise(stem);
    if let Some(release) = mentioned(host, stem) {
        return Ok(release.clone());
    }
    let package = stem.strip_prefix("arch-");
    let mut fits = host.installed.iter().filter(|release| {
        package.is_some() && package_of(host.tree, release).as_deref() == package
    });
    match (fits.next(), fits.next()) {
        (Some(release), None) => Ok(release.clone()),
        _ => Err(Unknown::new(format!(
            "the name of the unified kernel image `{}` tells no installed release",
            shown(&disguise(name))
        ))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn globs() {
        let cases = [
            ("arch-*", "arch-lts.conf", true),
            ("arch-*", "xarch-lts.conf", false),
            ("*", "", true),
            ("*.conf", "a.conf.conf", true),
            ("a?c", "abc", true),
            ("a[b-d]c", "acc", true),
            ("a[!b-d]c", "acc", false),
            ("a[]]c", "a]c", true),
            ("a[b", "a[b", false),
            ("*a*b*c", "xxaxxbxxc", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn tries_are_taken_off_names() {
        assert_eq!(split_tries("a-6.1.0+3-1"), ("a-6.1.0", Some((3, 1))));
        assert_eq!(split_tries("a-6.1.0+3"), ("a-6.1.0", Some((3, 0))));
        assert_eq!(split_tries("a-6.1.0+deb13-amd64"), ("a-6.1.0+deb13-amd64", None));
        assert_eq!(split_tries("a-6.1.0+deb13-amd64+2-0"), ("a-6.1.0+deb13-amd64", Some((2, 0))));
        assert_eq!(split_tries("+3"), ("+3", None));
    }

    #[test]
    fn variables_are_kept_in_disguise() {
        let wide = |text: &str| {
            let units = text.encode_utf16().flat_map(u16::to_le_bytes);
            [7, 0, 0, 0].into_iter().chain(units).collect::<Vec<u8>>()
        };
        let before = wide("0123456789abcdef0123456789abcdef-6.1.0.conf\0rest");
        let after = wide("00000000000000000000000000000000-6.1.0.conf\0");
        assert_eq!(redact_variable(&before), after);
        let kept = variable_text(&redact_variable(&wide("müller-6.1.0.conf\0")));
        assert_eq!(kept, disguise("müller-6.1.0.conf"));
        assert!(kept.ends_with("-6.1.0.conf") && !kept.contains("ller"), "{kept}");
    }

    proptest! {
        #[test]
        fn redaction_changes_nothing_when_repeated(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let once = redact_variable(&bytes);
            prop_assert_eq!(redact_variable(&once), once);
        }

        #[test]
        fn matching_never_panics(pattern in "[a*?\\[\\]!^\\\\-]{0,12}", text in "[a\\-]{0,12}") {
            let _ = fits(&pattern, &text);
        }
    }
}
