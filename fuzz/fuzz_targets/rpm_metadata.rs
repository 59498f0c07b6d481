//! Indexes of rpm repositories, heads of packages, and the order of versions.
//!
//! `@repomd` and `@primary FORMAT` are the two indexes; in the first, `DIGEST`, `SIZE`, `OPEN-DIGEST` and `OPEN-SIZE` are put
//! in for the second. `@versions` are three lines, each epoch, version and release with blanks between. Any other input is
//! the head of a package.

#![no_main]

use std::collections::BTreeMap;

use fastpath_fuzz::artifact::{Packer, within_memory};
use fastpath_fuzz::repository::{BASE, Files, one_line, ordered};
use fastpath_fuzz::sections;
use fastpath_knowledge::Signed;
use fastpath_survey::rpm::{Basis, Evr, Keys, Package, Wanted, authenticate, packages};
use fastpath_survey::trust::{Digest, DigestKind, Keyring};
use libfuzzer_sys::fuzz_target;

const MEMORY: usize = 64 << 20;

fn versions(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines();
    let mut next = || {
        let mut words = lines.next().unwrap_or_default().split(' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        Evr { epoch: word().parse().unwrap_or(0), version: word(), release: word() }
    };
    let [a, b, c] = [next(), next(), next()];
    ordered([&a, &b, &c], Ord::cmp);
}

fn keys(keyring: &Keyring) -> Keys<'_> {
    Keys { keyring, pins: &[], now: 0, allow_stale: false }
}

fn head(bytes: &[u8]) {
    let package = Package {
        name: "kernel-core".into(),
        evr: Evr { epoch: 0, version: "6.1.0".into(), release: "1.el9".into() },
        arch: "x86_64".into(),
        repository: BASE.into(),
        url: format!("{BASE}kernel-core.rpm"),
        size: bytes.len() as u64,
        digest: Digest::of(DigestKind::Sha256, bytes),
        header_end: None,
        basis: Basis::Nothing,
        stale: false,
    };
    let keyring = Keyring::default();
    let mut rest = bytes;
    let found = within_memory(MEMORY, || authenticate(&package, &keys(&keyring), &mut rest));
    match found {
        Ok(found) => {
            assert_eq!([&found.head, rest].concat(), bytes, "what was read and what was not");
            assert!(found.signature.is_none());
        }
        Err(error) => one_line(&error),
    }
}

fuzz_target!(|input: &[u8]| {
    let parts: BTreeMap<String, Vec<u8>> = sections(input).into_iter().collect();
    let Some(repomd) = parts.get("repomd") else {
        return match parts.get("versions") {
            Some(text) => versions(text),
            None => head(input),
        };
    };
    let empty = Vec::new();
    let primary = parts.iter().find(|(name, _)| name.starts_with("primary"));
    let (name, open) = primary.map_or(("", &empty), |(name, bytes)| (name.as_str(), bytes));
    let packer = name.split_once(' ').and_then(|(_, format)| Packer::named(format));
    let packed = packer.map_or_else(|| open.clone(), |packer| packer.pack(open));
    let hex = |bytes: &[u8]| Digest::of(DigestKind::Sha256, bytes).hex();
    let repomd = String::from_utf8_lossy(repomd)
        .replace("OPEN-DIGEST", &hex(open))
        .replace("OPEN-SIZE", &open.len().to_string())
        .replace("DIGEST", &hex(&packed))
        .replace("SIZE", &packed.len().to_string());
    let files = Files(BTreeMap::from([
        ("repodata/repomd.xml".to_owned(), repomd.into_bytes()),
        ("repodata/primary.xml".to_owned(), packed.clone()),
        ("repodata/primary.xml.gz".to_owned(), packed.clone()),
        ("repodata/primary.xml.zst".to_owned(), packed),
    ]));
    let keyring = Keyring::default();
    let bases = [BASE.to_owned()];
    let wanted = Wanted {
        repositories: &bases,
        package: "kernel-core",
        arch: "x86_64",
        signed: Signed::Package,
        keys: keys(&keyring),
    };
    let found = files.with(|access| within_memory(MEMORY, || packages(access, &wanted)));
    match found {
        Ok(found) => {
            assert!(!found.is_empty() && found.windows(2).all(|pair| pair[0].evr > pair[1].evr));
            for package in &found {
                assert_eq!(
                    (package.name.as_str(), package.arch.as_str()),
                    ("kernel-core", "x86_64")
                );
                assert_eq!(package.basis, Basis::Nothing);
                assert!(!package.url.contains(char::is_control), "{:?}", package.url);
            }
        }
        Err(error) => one_line(&error),
    }
});
