//! pacman's databases and the order of its versions.
//!
//! An input that starts with `@` says what archive to build (`fastpath_fuzz::artifact::build`), which is the database; of any
//! other the first three lines are versions, and all of it is the database.

#![no_main]

use std::collections::BTreeMap;

use fastpath_artifact::http::shown;
use fastpath_fuzz::artifact::{build, within_memory};
use fastpath_fuzz::repository::{BASE, Files, compared, one_line};
use fastpath_knowledge::Signed;
use fastpath_survey::pacman::{Wanted, compare, packages};
use fastpath_survey::rpm::Keys;
use fastpath_survey::trust::Keyring;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    // No order: `1.0` is the same as `1.0-1` and as `1.0-2`, to pacman too.
    compared([&next(), &next(), &next()], |a, b| compare(a, b));

    let database = if input.starts_with(b"@") { build(input) } else { None };
    let database = database.map_or_else(|| input.to_owned(), |(_, bytes)| bytes);
    let files = Files(BTreeMap::from([("core.db".to_owned(), database)]));
    let keyring = Keyring::default();
    let keys = Keys { keyring: &keyring, pins: &[], now: 0, allow_stale: false };
    let bases = [BASE.to_owned()];
    let wanted = Wanted {
        repositories: &bases,
        package: "linux",
        arch: "x86_64",
        signed: Signed::Package,
        keys,
    };
    let found = files.with(|access| within_memory(64 << 20, || packages(access, &wanted)));
    match found {
        Ok(found) => {
            assert!(found.iter().any(|package| package.name == "linux"));
            assert!(found.is_sorted_by_key(|package| package.size));
            for package in &found {
                assert!(["linux", "linux-headers"].contains(&package.name.as_str()));
                assert_eq!(package.version, found[0].version);
                assert!(package.url.starts_with(BASE), "{} leaves {}", package.url, shown(BASE));
                let file = &package.url[BASE.len()..];
                assert!(!file.contains('/') && !file.contains(char::is_control), "{file:?}");
            }
        }
        Err(error) => one_line(&error),
    }
});
