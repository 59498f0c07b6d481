//! Taking identities out of the names in a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use fastpath_knowledge::Release;

use super::components;
use crate::mask::mask_ids;

/// For each directory, by its own path, the names in it and what each becomes.
///
/// A listing holds whatever somebody put into a directory. A name stays if it has one of the forms that readers look
/// for, or if one of them went on to ask about it; any other becomes a numbered one.
#[derive(Default)]
pub(super) struct Names {
    /// Names with ids in them.
    seen: BTreeMap<String, BTreeSet<String>>,
    listed: BTreeMap<String, BTreeSet<String>>,
    /// Names in questions, and whether anything was found there or below.
    asked: BTreeMap<String, BTreeMap<String, bool>>,
    masked: BTreeMap<String, BTreeMap<String, String>>,
    /// Directories with names that became numbered ones.
    hiding: BTreeSet<String>,
}

impl Names {
    /// Takes note of every name in the path of a question, and whether something was found there.
    pub(super) fn note_path(&mut self, path: &str, found: bool) {
        let mut directory = String::new();
        for name in components(path) {
            self.note_id(&directory, name);
            let names = self.asked.entry(directory.clone()).or_default();
            *names.entry(name.to_owned()).or_default() |= found;
            directory.push('/');
            directory.push_str(name);
        }
    }

    /// Takes note of one name that a directory was found to have.
    pub(super) fn note_name(&mut self, directory: &str, name: &str) {
        let directory = directory.trim_end_matches('/');
        self.note_id(directory, name);
        self.listed.entry(directory.to_owned()).or_default().insert(name.to_owned());
    }

    fn note_id(&mut self, directory: &str, name: &str) {
        if mask_ids(name) != name || is_masked(name) {
            self.seen.entry(directory.to_owned()).or_default().insert(name.to_owned());
        }
    }

    /// Decides the new names. Names of one directory that would become one are told apart by a number in their last
    /// digits, in the order of the old ones; the all-zero one is first in that order, so it stays what it is.
    pub(super) fn decide(&mut self) {
        for (directory, names) in std::mem::take(&mut self.listed) {
            let asked = self.asked.get(&directory);
            let stays = |name: &String| {
                is_known(&directory, name)
                    || asked.and_then(|asked| asked.get(name)).is_some_and(|found| {
                        // Every name there is asked about; what has no release's form and no kernel is shown by nobody.
                        *found || !is_of_modules(&directory)
                    })
            };
            let (kept, hidden): (BTreeSet<&String>, BTreeSet<&String>) =
                names.iter().partition(|name| stays(name));
            if hidden.is_empty() {
                continue;
            }
            let numbered = (1_usize..).map(numbered_name).filter(|name| !kept.contains(name));
            let new = hidden.into_iter().cloned().zip(numbered);
            self.masked.entry(directory.clone()).or_default().extend(new);
            self.hiding.insert(directory);
        }
        for (directory, names) in std::mem::take(&mut self.seen) {
            let mut taken: BTreeMap<String, usize> = BTreeMap::new();
            let new = self.masked.entry(directory).or_default();
            for name in names {
                if new.contains_key(&name) {
                    continue;
                }
                let masked = mask_ids(&name);
                let count = taken.entry(masked.clone()).or_default();
                let numbered = number(&masked, *count);
                *count += 1;
                new.insert(name, numbered);
            }
        }
    }

    /// Whether a directory has names that became numbered ones.
    pub(super) fn hides(&self, directory: &str) -> bool {
        self.hiding.contains(directory.trim_end_matches('/'))
    }

    /// What a name in a directory becomes.
    pub(super) fn name(&self, directory: &str, name: &str) -> String {
        let directory = directory.trim_end_matches('/');
        let new = self.masked.get(directory).and_then(|names| names.get(name));
        new.cloned().unwrap_or_else(|| mask_ids(name))
    }

    /// What a path becomes.
    pub(super) fn path(&self, path: &str) -> String {
        let (mut directory, mut out) = (String::new(), String::new());
        for name in components(path) {
            out.push('/');
            out.push_str(&self.name(&directory, name));
            directory.push('/');
            directory.push_str(name);
        }
        if path.ends_with('/') {
            out.push('/');
        }
        out
    }
}

/// What a name that nobody asks about becomes. No release has a blank in it.
fn numbered_name(number: usize) -> String {
    format!("masked name {number}")
}

fn is_of_modules(directory: &str) -> bool {
    directory.ends_with("/lib/modules")
}

/// Whether a name has one of the forms that readers look for, and may stand in a snapshot for that.
pub(super) fn is_known(directory: &str, name: &str) -> bool {
    const STARTS: [&str; 12] = [
        "vmlinuz",
        "vmlinux",
        "kernel-",
        "Image",
        "bzImage",
        "config-",
        "initrd",
        "initramfs",
        "System.map-",
        "symvers-",
        "grub",
        "loader",
    ];
    const ENDS: [&str; 3] = [".conf", ".efi", ".cfg"];
    // Directories of boot loaders and of the vendors that have one on an EFI system partition.
    const NAMES: [&str; 34] = [
        "almalinux",
        "amzn",
        "arch",
        "azurelinux",
        "boot",
        "centos",
        "debian",
        "dell",
        "efi",
        "endeavouros",
        "entries",
        "fedora",
        "gentoo",
        "hp",
        "kali",
        "lenovo",
        "limine",
        "linux",
        "lost+found",
        "manjaro",
        "microsoft",
        "neon",
        "nixos",
        "opensuse",
        "oracle",
        "ostree",
        "pop",
        "proxmox",
        "redhat",
        "refind",
        "rocky",
        "sles",
        "systemd",
        "ubuntu",
    ];
    let lower = name.to_ascii_lowercase();
    STARTS.iter().any(|start| name.starts_with(start))
        || ENDS.iter().any(|end| lower.ends_with(end))
        || NAMES.contains(&lower.as_str())
        || (is_of_modules(directory) && Release::new(name).is_some_and(|it| it.as_str() == name))
        || is_id(name)
}

/// Whether a name is an id and nothing else.
fn is_id(name: &str) -> bool {
    name.len() >= 32 && mask_ids(name).bytes().all(|byte| matches!(byte, b'0' | b'-'))
}

/// Whether the name holds an id that is masked already.
fn is_masked(name: &str) -> bool {
    last_digit(name).is_some()
}

/// Where the last digit of the last id in a masked name is.
fn last_digit(masked: &str) -> Option<usize> {
    // Too short for any id: most names.
    if masked.len() < 32 {
        return None;
    }
    // Nor is every long one looked at digit by digit.
    let ones = masked.replace('0', "1");
    if mask_ids(&ones) == ones {
        return None;
    }
    masked.match_indices('0').map(|(at, _)| at).rev().find(|&at| {
        let mut other = masked.to_owned();
        other.replace_range(at..=at, "1");
        mask_ids(&other) == masked
    })
}

/// Writes a number over the last digits of the last id.
fn number(masked: &str, number: usize) -> String {
    let mut out = masked.to_owned();
    if let (Some(last), true) = (last_digit(masked), number > 0) {
        let digits = format!("{number:x}");
        if let Some(first) = (last + 1).checked_sub(digits.len()) {
            out.replace_range(first..=last, &digits);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0123456789abcdef0123456789abcdef";
    const B: &str = "fedcba9876543210fedcba9876543210";
    const ZERO: &str = "00000000000000000000000000000000";

    fn names(paths: &[&str]) -> Names {
        let mut names = Names::default();
        for path in paths {
            names.note_path(path, true);
        }
        names.decide();
        names
    }

    #[test]
    fn ids_are_masked_in_every_component() {
        let path = format!("/boot/{A}/6.8.0/linux");
        assert_eq!(names(&[&path]).path(&path), format!("/boot/{ZERO}/6.8.0/linux"));
        assert_eq!(names(&[]).path("/boot/config-6.8.0"), "/boot/config-6.8.0");
        assert_eq!(names(&[]).path("/"), "/");
    }

    #[test]
    fn names_that_become_one_are_numbered() {
        let a = format!("/e/{A}-6.8.conf");
        let b = format!("/e/{B}-6.8.conf");
        let names = names(&[&b, &a]);
        assert_eq!(names.path(&a), format!("/e/{ZERO}-6.8.conf"));
        assert_eq!(names.path(&b), format!("/e/{}1-6.8.conf", &ZERO[1..]));
    }

    #[test]
    fn a_name_of_zeros_keeps_its_name() {
        let (a, zero) = (format!("/boot/{A}"), format!("/boot/{ZERO}"));
        let names = names(&[&a, &zero]);
        assert_eq!(names.path(&zero), zero);
        assert_eq!(names.path(&a), format!("/boot/{}1", &ZERO[1..]));
    }

    #[test]
    fn many_names_stay_apart() {
        let paths: Vec<String> = (0..40).map(|n| format!("/e/{n:032x}.conf")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let names = names(&paths);
        let new: BTreeSet<String> = paths.iter().map(|path| names.path(path)).collect();
        assert_eq!(new.len(), paths.len());
    }

    #[test]
    fn a_name_that_nobody_asks_about_is_a_number() {
        let mut names = Names::default();
        for name in
            ["acme.key", "vmlinuz-6.8", "config-6.8", "fred", "ubuntu", "b.conf", "masked name 1"]
        {
            names.note_name("/boot/", name);
        }
        names.note_path("/boot/masked name 1", true);
        names.note_path("/boot/fred/x", false);
        for name in ["6.8.0-1-generic", "of fred", "with kernel"] {
            names.note_name("/lib/modules", name);
            names.note_path(&format!("/lib/modules/{name}/config"), name == "with kernel");
        }
        names.decide();
        assert_eq!(names.name("/boot", "acme.key"), "masked name 2", "the first is taken");
        for kept in ["vmlinuz-6.8", "config-6.8", "fred", "ubuntu", "b.conf", "masked name 1"] {
            assert_eq!(names.name("/boot", kept), kept);
        }
        assert!(names.hides("/boot") && names.hides("/lib/modules") && !names.hides("/lib"));
        assert_eq!(names.path("/lib/modules/of fred/config"), "/lib/modules/masked name 1/config");
        assert_eq!(
            names.path("/lib/modules/with kernel/config"),
            "/lib/modules/with kernel/config"
        );
    }

    #[test]
    fn a_numbered_name_has_no_known_form() {
        for directory in ["/boot", "/lib/modules", "/boot/efi/EFI"] {
            assert!(!is_known(directory, &numbered_name(1)));
        }
    }
}
