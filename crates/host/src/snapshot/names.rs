//! Taking identities out of the names in a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use super::components;
use crate::mask::mask_ids;

/// For each directory, by its own path, the names in it and what each becomes.
#[derive(Default)]
pub(super) struct Names {
    seen: BTreeMap<String, BTreeSet<String>>,
    masked: BTreeMap<String, BTreeMap<String, String>>,
}

impl Names {
    /// Takes note of every name in a path.
    pub(super) fn note_path(&mut self, path: &str) {
        let mut directory = String::new();
        for name in components(path) {
            self.note_name(&directory, name);
            directory.push('/');
            directory.push_str(name);
        }
    }

    /// Takes note of one name in a directory.
    pub(super) fn note_name(&mut self, directory: &str, name: &str) {
        let directory = directory.trim_end_matches('/');
        if mask_ids(name) != name || is_masked(name) {
            self.seen.entry(directory.to_owned()).or_default().insert(name.to_owned());
        }
    }

    /// Decides the new names. Names of one directory that would become one are told apart by a number in their last
    /// digits, in the order of the old ones; the all-zero one is first in that order, so it stays what it is.
    pub(super) fn decide(&mut self) {
        for (directory, names) in std::mem::take(&mut self.seen) {
            let mut taken: BTreeMap<String, usize> = BTreeMap::new();
            let new = self.masked.entry(directory).or_default();
            for name in names {
                let masked = mask_ids(&name);
                let count = taken.entry(masked.clone()).or_default();
                let numbered = number(&masked, *count);
                *count += 1;
                new.insert(name, numbered);
            }
        }
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
            names.note_path(path);
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
}
