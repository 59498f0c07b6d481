//! pacman repositories as `repo-add` writes them, made by hand with tar, and what can be wrong with them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use fastpath_artifact::http::{Cache, Client, Meter, Options};
use fastpath_knowledge::Signed;
use fastpath_survey::pacman::{Package, Wanted, authenticate, packages, verify_whole};
use fastpath_survey::rpm::{Access, Basis, IndexError, Keys};
use fastpath_survey::trust::{Digest, DigestKind, Fingerprint, Keyring};
use tempfile::TempDir;

mod common;
#[path = "../../artifact/tests/server/mod.rs"]
mod server;

use common::pacman::{database, desc};
use common::{Gpg, have_all, run};
use server::{Fault, Server};

fn sha256(bytes: &[u8]) -> String {
    Digest::of(DigestKind::Sha256, bytes).hex()
}

/// A repository: a folder `core/os/x86_64` with a database of these descs.
fn repository(descs: &[String], compression: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    database(&root.path().join("core/os/x86_64/core.db"), descs, compression);
    root
}

fn base(root: &TempDir) -> String {
    format!("file://{}/core/os/x86_64/", root.path().display())
}

#[derive(Default)]
struct Trusted {
    keyring: Keyring,
    pins: Vec<Fingerprint>,
}

impl Trusted {
    fn keys(&self) -> Keys<'_> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let now = i64::try_from(now).unwrap();
        Keys { keyring: &self.keyring, pins: &self.pins, now, allow_stale: false }
    }
}

struct Net {
    client: Client,
    cache: Cache,
    meter: Meter,
}

impl Net {
    fn new() -> Self {
        let client = Client::new(Options { tries: 1, ..Options::default() }).unwrap();
        Self { client, cache: Cache::temporary(false).unwrap(), meter: Meter::default() }
    }

    fn access(&self) -> Access<'_> {
        Access { fetch: &self.client, cache: &self.cache, meter: &self.meter }
    }

    fn find(
        &self,
        bases: &[String],
        signed: Signed,
        trusted: &Trusted,
    ) -> Result<Vec<Package>, IndexError> {
        let keys = trusted.keys();
        let wanted = Wanted { repositories: bases, package: "linux", arch: "x86_64", signed, keys };
        packages(&self.access(), &wanted)
    }
}

fn find(root: &TempDir) -> Result<Vec<Package>, IndexError> {
    Net::new().find(&[base(root)], Signed::Package, &Trusted::default())
}

#[test]
fn the_smallest_package_of_the_newest_kernel() {
    if !have_all(&["tar", "gzip", "zstd", "xz"]) {
        return;
    }
    let (kernel, headers) = (vec![b'k'; 3000], vec![b'h'; 2000]);
    let descs = [
        desc("linux", "6.17.9.arch1-1", &kernel, ""),
        desc("linux-headers", "6.17.9.arch1-1", &headers, ""),
        desc("linux-lts", "6.18.1-1", b"lts", ""),
        desc("linux-docs", "6.17.9.arch1-1", b"docs", ""),
        desc("linux-headers", "6.17.10.arch1-1", b"of another kernel", ""),
    ];
    for compression in ["gzip", "zstd", "xz"] {
        let root = repository(&descs, compression);
        let found = find(&root).unwrap();
        let names: Vec<&str> = found.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["linux-headers", "linux"], "{compression}");
        assert!(found.iter().all(|package| package.version == "6.17.9.arch1-1"));
        let first = &found[0];
        assert_eq!(
            first.url,
            format!("{}linux-headers-6.17.9.arch1-1-x86_64.pkg.tar.zst", base(&root))
        );
        assert_eq!((first.size, first.basis), (2000, Basis::Nothing));
        assert_eq!(first.digest.hex(), sha256(&headers));
        verify_whole(first, &mut &headers[..]).unwrap();
        for (member, expected) in [
            ("usr/lib/modules/6.17.9-arch1-1/build/.config", Some("6.17.9-arch1-1")),
            ("usr/lib/modules/6.17.9-arch1-1/vmlinuz", Some("6.17.9-arch1-1")),
            ("usr/lib/modules/6.17.9-arch1-1/build/Makefile", None),
            ("usr/lib/modules/vmlinuz", None),
        ] {
            assert_eq!(first.release_of(member), expected, "{member}");
        }
    }
    // Over several repositories, the kernel's package decides.
    let newer = repository(&[desc("linux", "1:6.0.arch1-1", b"epoch", "")], "gzip");
    let older = repository(&descs, "gzip");
    let found = Net::new()
        .find(&[base(&older), base(&newer)], Signed::Package, &Trusted::default())
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].version, "1:6.0.arch1-1");
    // The colon of an epoch is part of the name.
    assert!(found[0].url.ends_with("/linux-1:6.0.arch1-1-x86_64.pkg.tar.zst"));
}

#[test]
fn signatures() {
    if !have_all(&["tar", "gzip", "gpg"]) {
        return;
    }
    let gpg = Gpg::new();
    let key = gpg.key("p@test.invalid", "ed25519", "sign", "never");
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    gpg.export(&at("public.gpg"), &[key.as_str()]);
    let mut trusted = Trusted { pins: vec![key], ..Trusted::default() };
    trusted.keyring.add(&at("public.gpg")).unwrap();
    let sign = |file: &Path| {
        let signature = format!("{}.sig", file.display());
        gpg.run(&["--detach-sign", "--output", &signature, file.to_str().unwrap()]);
        fs::read(signature).unwrap()
    };

    let bytes = b"a package".to_vec();
    fs::write(at("package"), &bytes).unwrap();
    let text = {
        use base64::Engine;
        base64::prelude::BASE64_STANDARD.encode(sign(&at("package")))
    };
    let signed = desc("linux", "6.1-1", &bytes, &format!("%PGPSIG%\n{text}\n\n"));
    let root = repository(&[signed], "gzip");
    let net = Net::new();
    let found = net.find(&[base(&root)], Signed::Package, &trusted).unwrap();
    let check = |package: &Package, bytes: &[u8], trusted: &Trusted| {
        authenticate(&net.access(), package, &trusted.keys(), &mut &bytes[..])
            .map_err(|error| error.to_string())
    };
    let found_by = check(&found[0], &bytes, &trusted).unwrap().unwrap();
    assert_eq!((&found_by.key, found_by.stale), (&trusted.pins[0], false));
    assert_eq!(check(&found[0], &bytes, &Trusted::default()), Ok(None));
    assert!(check(&found[0], b"a packagE", &trusted).unwrap_err().contains("expected sha256:"));
    assert!(check(&found[0], b"a packagE", &Trusted::default()).unwrap_err().contains("sha256"));
    assert!(
        check(&found[0], b"short", &trusted).unwrap_err().contains("expected 9 bytes, found 5")
    );

    // Whoever writes the database can make the digest fit, not the signature.
    let forged = desc("linux", "6.1-1", b"a packagE", &format!("%PGPSIG%\n{text}\n\n"));
    let forged = repository(&[forged], "gzip");
    let found = net.find(&[base(&forged)], Signed::Package, &trusted).unwrap();
    assert!(check(&found[0], b"a packagE", &trusted).unwrap_err().contains("bad signature"));

    // Without one in the database, the one beside the package.
    let plain = repository(&[desc("linux", "6.1-1", &bytes, "")], "gzip");
    let found = net.find(&[base(&plain)], Signed::Package, &trusted).unwrap();
    let error = check(&found[0], &bytes, &trusted).unwrap_err();
    assert!(error.contains("found no .sig beside it"), "{error}");
    let file = plain.path().join("core/os/x86_64/linux-6.1-1-x86_64.pkg.tar.zst");
    fs::write(&file, &bytes).unwrap();
    sign(&file);
    assert!(check(&found[0], &bytes, &trusted).unwrap().is_some());

    // A database that is to be signed.
    let error = net.find(&[base(&plain)], Signed::Index, &trusted).unwrap_err().to_string();
    assert!(error.contains("expected a signed database, found no .sig"), "{error}");
    let database = plain.path().join("core/os/x86_64/core.db");
    sign(&database);
    let found = net.find(&[base(&plain)], Signed::Index, &trusted).unwrap();
    assert_eq!(found[0].basis, Basis::Index);
    let other = repository(&[desc("linux", "6.2-1", &bytes, "")], "gzip");
    fs::copy(other.path().join("core/os/x86_64/core.db"), &database).unwrap();
    let error = net.find(&[base(&plain)], Signed::Index, &trusted).unwrap_err().to_string();
    assert!(error.contains("bad signature"), "{error}");
}

#[test]
fn hostile_databases() {
    if !have_all(&["tar", "gzip", "zstd"]) {
        return;
    }
    let good = desc("linux", "6.1-1", b"kernel", "");
    let change = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replace(from, to)
    };
    let digest = sha256(b"kernel");
    for (text, expected) in [
        (change("%NAME%\nlinux\n", ""), "without %NAME%"),
        (change("%VERSION%\n6.1-1\n", ""), "without %VERSION%"),
        (change("%FILENAME%", "%OTHER%"), "without %FILENAME%"),
        (change(&digest, ""), "without %SHA256SUM%"),
        (change(&digest, "00"), "%SHA256SUM%: expected sha256, found `00`"),
        (change("%CSIZE%\n6", "%CSIZE%\n-6"), "%CSIZE%: expected a number, found `-6`"),
        (change("%CSIZE%\n6", "%CSIZE%\n0"), "%CSIZE%: expected a number"),
        (change("%VERSION%\n6.1-1", "%VERSION%\n../6"), "expected a version, found `../6`"),
        (change("%FILENAME%\n", "%FILENAME%\n../../"), "expected a file name"),
        (change("%FILENAME%\nlinux-6.1-1-x86_64.pkg.tar.zst", "%FILENAME%\n.."), "expected a file"),
        (format!("{good}%PGPSIG%\n***\n\n"), "%PGPSIG%: expected base64"),
        (format!("{good}%NAME%\nlinux2\n\n"), "a field twice"),
        (change("%NAME%\nlinux\n", "%NAME%\nother\n"), "no package `linux` for x86_64"),
        (change("%ARCH%\nx86_64", "%ARCH%\naarch64"), "no package `linux` for x86_64"),
        (format!("{good}{}", " ".repeat(2 << 20)), "expected at most 1048576"),
    ] {
        let root = repository(&[text], "gzip");
        let error = find(&root).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(error.starts_with("file://") && !error.contains('\n'), "{error}");
    }

    let root = repository(std::slice::from_ref(&good), "gzip");
    let database = root.path().join("core/os/x86_64/core.db");
    let whole = fs::read(&database).unwrap();
    let plain = {
        let root = repository(&[good], "no-auto-compress");
        fs::read(root.path().join("core/os/x86_64/core.db")).unwrap()
    };
    let mut header = plain.clone();
    header[512 + 148] ^= 1;
    let zeros = root.path().join("zeros");
    let bomb = {
        let file = fs::File::create(&zeros).unwrap();
        file.set_len(1200 << 20).unwrap();
        run(Command::new("zstd").arg("-qc").arg(&zeros))
    };
    // A member that is larger than all that may come out: its end is looked for behind 1 GiB.
    let mut large = tar::Header::new_ustar();
    large.set_path("x").unwrap();
    large.set_size(4 << 30);
    large.set_cksum();
    fs::write(root.path().join("large"), large.as_bytes()).unwrap();
    let large =
        run(Command::new("sh").args(["-c", "cat large zeros | zstd -qc"]).current_dir(root.path()));
    for (bytes, expected) in [
        (whole[..whole.len() - 9].to_vec(), "damaged package database"),
        (whole[..10].to_vec(), "damaged package database"),
        (plain[..700].to_vec(), "damaged package database"),
        (header, "damaged package database"),
        (b"<html></html>".to_vec(), "damaged package database"),
        (Vec::new(), "it has no members"),
        (bomb, "more than 1048576 bytes behind its last member"),
        (large, "more than 1073741824 bytes decompressed"),
    ] {
        fs::write(&database, &bytes).unwrap();
        let error = find(&root).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn servers_in_trouble() {
    if !have_all(&["tar", "gzip"]) {
        return;
    }
    let root = repository(&[desc("linux", "6.1-1", b"kernel", "")], "gzip");
    let server = Server::start(root.path());
    let bases = [server.url("core/os/x86_64/")];
    let trusted = Trusted::default();
    assert_eq!(Net::new().find(&bases, Signed::Package, &trusted).unwrap().len(), 1);
    for (fault, expected) in [
        (Fault::Status(404, "", 99), "404"),
        (Fault::Cut(50), "offset 50"),
        (Fault::Garbage, "damaged package database"),
    ] {
        server.heal();
        server.fault("core/os/x86_64/core.db", fault.clone());
        let error = Net::new().find(&bases, Signed::Package, &trusted).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("core.db"), "{fault:?}: {error}");
    }
    assert_eq!(
        Net::new().find(&[], Signed::Package, &trusted).unwrap_err().to_string(),
        "no repository: no package `linux` for x86_64"
    );
}
