//! Signed indexes of Debian repositories, and the configuration of apt.
//!
//! `@Release` is signed here; in it, `DIGEST` and `SIZE` are those of `@Packages FORMAT`. `@InRelease` and `@key` are taken
//! as they are. `@sources.list`, `@x.sources` and `@apt.conf` are files of `/etc/apt`.

#![no_main]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use fastpath_artifact::http::Meter;
use fastpath_fuzz::artifact::{Packer, within_memory};
use fastpath_fuzz::repository::{BASE, Files, one_line};
use fastpath_fuzz::sections;
use fastpath_survey::apt::Apt;
use fastpath_survey::debian::{Follow, Pocket, Query, Repositories, all_kernels, resolve};
use fastpath_survey::trust::{Digest, DigestKind, Fingerprint, Keyring, verify_cleartext};
use libfuzzer_sys::fuzz_target;
use pgp::composed::{
    DetachedSignature, KeyType, SecretKeyParamsBuilder, SignedPublicKey, SignedSecretKey,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::ser::Serialize;
use pgp::types::{KeyDetails, Password};
use rand::SeedableRng;
use rand::rngs::StdRng;

const MEMORY: usize = 64 << 20;

/// A key of this run, and the keyring and the pins that make it count.
static KEY: LazyLock<(SignedSecretKey, Keyring, Vec<Fingerprint>)> = LazyLock::new(|| {
    let key = SecretKeyParamsBuilder::default()
        .key_type(KeyType::Ed25519Legacy)
        .can_certify(true)
        .can_sign(true)
        .primary_user_id("fuzz <fuzz@repository.invalid>".into())
        .build()
        .expect("parameters")
        .generate(StdRng::seed_from_u64(1))
        .expect("a key");
    let public = SignedPublicKey::from(key.clone()).to_bytes().expect("a public key");
    let pin = format!("{:X}", key.fingerprint()).parse().expect("a fingerprint");
    let mut keyring = Keyring::default();
    keyring.add_bytes(Path::new("key"), &public);
    (key, keyring, vec![pin])
});

fn sign(content: &[u8]) -> Vec<u8> {
    let (rng, hash) = (StdRng::seed_from_u64(2), HashAlgorithm::Sha256);
    let key = &KEY.0.primary_key;
    let signature =
        DetachedSignature::sign_binary_data(rng, key, &Password::empty(), hash, content);
    signature.expect("a signature").to_bytes().expect("bytes")
}

fn apt(parts: &BTreeMap<String, Vec<u8>>) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path().join("etc/apt");
    std::fs::create_dir_all(folder.join("sources.list.d")).expect("a folder");
    for name in ["sources.list", "apt.conf", "x.sources"] {
        let Some(bytes) = parts.get(name) else { continue };
        let below = if name == "x.sources" { "sources.list.d" } else { "" };
        std::fs::write(folder.join(below).join(name), bytes).expect("a file");
    }
    match within_memory(MEMORY, || Apt::read(root.path())) {
        Ok(apt) => {
            let suites = ["bookworm".to_owned(), "bookworm-security".to_owned()];
            let pockets = apt.pockets("debian", &suites, &["main".to_owned()], "amd64");
            assert_eq!(pockets.len(), 2);
            for base in pockets.iter().flat_map(|pocket| &pocket.bases) {
                assert!(apt.sources.iter().any(|source| source.base == *base));
            }
            let mut keyring = Keyring::default();
            apt.add_keys(&mut keyring);
            let _ = apt.setting("Acquire::http::Proxy");
        }
        Err(error) => one_line(&error),
    }
}

fn repository(release: &[u8], name: &str, packages: &[u8]) {
    let packer = name.split_once(' ').and_then(|(_, format)| Packer::named(format));
    let packed = packer.map_or_else(|| packages.to_owned(), |packer| packer.pack(packages));
    let release = String::from_utf8_lossy(release)
        .replace("DIGEST", &Digest::of(DigestKind::Sha256, &packed).hex())
        .replace("SIZE", &packed.len().to_string())
        .into_bytes();
    let mut files = BTreeMap::from([
        ("dists/bookworm/Release.gpg".to_owned(), sign(&release)),
        ("dists/bookworm/Release".to_owned(), release),
    ]);
    for ending in ["", ".gz", ".xz"] {
        files.insert(format!("dists/bookworm/main/binary-amd64/Packages{ending}"), packed.clone());
    }
    let (_, keyring, pins) = &*KEY;
    let pocket = Pocket {
        bases: vec![BASE.trim_end_matches('/').to_owned()],
        suite: "bookworm".into(),
        components: vec!["main".into()],
        arch: "amd64".into(),
        check_valid_until: true,
    };
    let query = Query {
        pockets: vec![pocket],
        package: "linux-image-amd64".into(),
        follow: Follow::ImageHeaders,
        pins: pins.clone(),
    };
    Files(files).with(|access| {
        let now = 1_790_000_000;
        let reader = Repositories::new(access.fetch, access.cache, keyring, false, now);
        within_memory(MEMORY, || {
            let _ = reader.load(&query.pockets[0], pins, &Meter::default());
            match resolve(&reader, &query) {
                Ok(found) => {
                    assert!(!found.release.contains(['/', '\n']) && !found.signers.is_empty());
                    assert!(!found.url.contains(char::is_control), "{:?}", found.url);
                }
                Err(error) => one_line(&error),
            }
            for kernel in all_kernels(&reader, &query).into_iter().flatten() {
                if let Err(error) = kernel {
                    one_line(&error);
                }
            }
        });
    });
}

fuzz_target!(|input: &[u8]| {
    let parts: BTreeMap<String, Vec<u8>> = sections(input).into_iter().collect();
    if let Some(release) = parts.get("Release") {
        let packages = parts.iter().find(|(name, _)| name.starts_with("Packages"));
        let (name, packages) = packages.map_or(("", &[][..]), |(name, bytes)| (name, bytes));
        repository(release, name, packages);
    }
    if let Some(text) = parts.get("InRelease") {
        let mut keyring = Keyring::default();
        keyring.add_bytes(Path::new("key"), parts.get("key").map_or(&[], Vec::as_slice));
        match within_memory(MEMORY, || verify_cleartext("InRelease", text, &keyring, &KEY.2, 0)) {
            Ok(_) => unreachable!("the key of this run signed nothing of that"),
            Err(error) => one_line(&error),
        }
    }
    if ["sources.list", "x.sources", "apt.conf"].iter().any(|name| parts.contains_key(*name)) {
        apt(&parts);
    }
});
