//! Debian, Ubuntu and Proxmox from repositories made here, served well and badly.

mod common;
#[path = "../../artifact/tests/server/mod.rs"]
mod server;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::repository::{Deb, Making, Repository};
use common::skipped;
use fastpath_artifact::http::{Cache, Client, Options, RemoteFile};
use fastpath_survey::debian::{
    DebianError, Follow, Pocket, Query, Repositories, Resolved, Standing, all_kernels, resolve,
};
use fastpath_survey::trust::{Checked, Keyring};
use server::{Fault, Server};

fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

fn client() -> Client {
    let (read_timeout, backoff) = (Duration::from_secs(2), Duration::from_millis(1));
    Client::new(Options { read_timeout, backoff, ..Options::default() }).unwrap()
}

/// One repository and what is needed to ask it.
struct World {
    repository: Repository,
    keyring: Keyring,
    server: Server,
    client: Client,
    cache: Cache,
}

impl World {
    fn new() -> Result<Self, String> {
        let repository = Repository::new()?;
        let keyring = repository.keyring();
        let server = Server::start(repository.root());
        Ok(Self {
            repository,
            keyring,
            server,
            client: client(),
            cache: Cache::temporary(false).unwrap(),
        })
    }

    fn base(&self) -> String {
        self.server.url("debian")
    }

    fn query(&self, suites: &[&str], package: &str, follow: Follow) -> Query {
        let pocket = |suite: &&str| Pocket {
            bases: vec![self.base()],
            suite: (*suite).to_owned(),
            components: vec!["main".to_owned()],
            arch: "amd64".to_owned(),
            check_valid_until: true,
        };
        Query {
            pockets: suites.iter().map(pocket).collect(),
            package: package.to_owned(),
            follow,
            pins: vec![self.repository.key.clone()],
        }
    }

    fn repositories(&self) -> Repositories<'_> {
        Repositories::new(&self.client, &self.cache, &self.keyring, false, now())
    }

    fn resolve(&self, query: &Query) -> Result<Resolved, DebianError> {
        resolve(&self.repositories(), query)
    }

    /// As a machine that was never here before.
    fn fresh(&self, query: &Query) -> Result<Resolved, String> {
        let cache = Cache::temporary(false).unwrap();
        let repositories = Repositories::new(&self.client, &cache, &self.keyring, false, now());
        resolve(&repositories, query).map_err(|error| {
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            text.replace(&self.base(), "BASE")
        })
    }
}

/// A kernel as Debian 11 to 13 packs it.
fn debian(release: &str, version: &str) -> Vec<Deb> {
    vec![
        Deb::new("linux-image-amd64", version)
            .depends(&format!("linux-image-{release} (= {version})")),
        Deb::new(&format!("linux-image-{release}"), version)
            .depends("kmod, linux-base (>= 4.3~)")
            .file(&format!("boot/config-{release}"), 9000),
        Deb::new(&format!("linux-image-{release}-dbg"), version),
        Deb::new(&format!("linux-headers-{release}"), version)
            .file(&format!("usr/src/linux-headers-{release}/.config"), 3000),
        Deb::new("bash", "5").depends("libc6"),
    ]
}

fn ready(result: Result<World, String>) -> Option<World> {
    result.map_err(|reason| skipped(&reason)).ok()
}

#[test]
fn the_highest_version_over_all_pockets_and_its_smallest_package() {
    let Some(world) = ready(World::new()) else { return };
    world.repository.suite("plain", &debian("6.1.0-9-amd64", "6.1.90-1"));
    world.repository.suite("plain-security", &debian("6.1.0-57-amd64", "6.1.192-3"));
    world.repository.suite("plain-updates", &[]);
    let suites = ["plain", "plain-updates", "plain-security"];
    let query = world.query(&suites, "linux-image-amd64", Follow::ImageHeaders);
    let repositories = world.repositories();
    let found = resolve(&repositories, &query).unwrap();
    assert_eq!(found.release, "6.1.0-57-amd64");
    assert_eq!(found.package, "linux-headers-6.1.0-57-amd64");
    assert_eq!((found.version.as_str(), found.suite.as_str()), ("6.1.192-3", "plain-security"));
    assert_eq!(found.repository, format!("{}/", world.base()));
    assert_eq!(found.standing, Standing::Signed);
    assert_eq!(found.signers[0].key, world.repository.key);
    assert_eq!(found.config_paths, ["usr/src/linux-headers-6.1.0-57-amd64/.config"]);
    assert!(found.index_bytes > 1000);

    // The package is the one meant.
    let mut file = RemoteFile::open(Arc::new(world.client.clone()), &found.url).unwrap();
    assert_eq!(file.length(), Some(found.size));
    Checked::new(&mut file, "package", Some(found.size), found.digest.clone()).finish().unwrap();

    // A second target of the same suites costs nothing; a second run costs what has changed.
    let again = resolve(&repositories, &query).unwrap();
    assert_eq!((again.index_bytes, again.url), (0, found.url.clone()));
    let hits = world.server.seen().len();
    assert_eq!(world.resolve(&query).unwrap().index_bytes, 0);
    let asked = &world.server.seen()[hits..];
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|seen| seen.status == 304 && seen.target.ends_with("/InRelease")));

    // The image itself, and a folder in place of a server.
    let image = Query { follow: Follow::Image, ..query.clone() };
    assert_eq!(world.resolve(&image).unwrap().config_paths[0], "boot/config-6.1.0-57-amd64");
    let base = format!("file:{}", world.repository.base().display());
    let mut local = query.clone();
    for pocket in &mut local.pockets {
        pocket.bases = vec![base.replace("file:", "file://")];
    }
    let found = world.resolve(&local).unwrap();
    assert!(found.url.starts_with("file:///"), "{}", found.url);
    assert_eq!(found.release, "6.1.0-57-amd64");
}

#[test]
fn the_network_is_not_used_offline() {
    let Some(world) = ready(World::new()) else { return };
    world.repository.suite("plain", &debian("6.1.0-9-amd64", "6.1.90-1"));
    let query = world.query(&["plain"], "linux-image-amd64", Follow::ImageHeaders);
    let folder = tempfile::tempdir().unwrap();
    let ask = |offline| {
        let cache = Cache::new(folder.path().to_owned(), offline).unwrap();
        let repositories = Repositories::new(&world.client, &cache, &world.keyring, false, now());
        resolve(&repositories, &query)
    };
    assert!(ask(true).unwrap_err().to_string().ends_with("the network is not used"));
    ask(false).unwrap();
    let hits = world.server.seen().len();
    assert_eq!(ask(true).unwrap().release, "6.1.0-9-amd64");
    assert_eq!(world.server.seen().len(), hits);
    // What is kept is verified like anything else.
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 10;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    assert!(matches!(ask(true).unwrap_err(), DebianError::Trust(_)));
}

#[test]
fn split_packages() {
    let Some(world) = ready(World::new()) else { return };
    let (release, version) = ("7.3.4+deb13-amd64", "7.3.4-1~bpo13+1");
    world.repository.suite(
        "back",
        &[
            Deb::new("linux-image-amd64", version).depends(&format!(
                "linux-base-amd64 (= {version}), linux-image-{release} (= {version}), linux-modules-amd64"
            )),
            Deb::new("linux-base-amd64", version).depends(&format!("linux-base-{release} (= {version})")),
            Deb::new(&format!("linux-image-{release}"), version)
                .depends(&format!("linux-base-{release} (= {version}), linux-binary-{release}")),
            Deb::new(&format!("linux-base-{release}"), version)
                .file(&format!("usr/lib/modules/{release}/config"), 5000),
            Deb::new(&format!("linux-headers-{release}"), version)
                .file(&format!("usr/src/linux-headers-{release}/.config"), 20_000),
            Deb::new(&format!("linux-modules-{release}"), version).file("x", 100),
        ],
    );
    for follow in [Follow::Split, Follow::ImageHeaders] {
        let found = world.resolve(&world.query(&["back"], "linux-image-amd64", follow)).unwrap();
        assert_eq!(found.release, release);
        assert_eq!(found.package, format!("linux-base-{release}"));
        assert_eq!(found.config_paths[0], format!("usr/lib/modules/{release}/config"));
        assert!(
            found.url.ends_with(&format!("/linux-base-{release}_{version}_amd64.deb")),
            "{}",
            found.url
        );
    }
}

#[test]
fn ubuntu_and_its_hardware_enablement_kernels() {
    let Some(world) = ready(World::new()) else { return };
    let kernel = |release: &str, version: &str| {
        vec![
            Deb::new(&format!("linux-image-{release}"), version)
                .depends(&format!("kmod, linux-modules-{release}"))
                .file("boot/vmlinuz", 50),
            Deb::new(&format!("linux-image-unsigned-{release}"), version),
            Deb::new(&format!("linux-modules-{release}"), version)
                .file(&format!("boot/config-{release}"), 4000),
        ]
    };
    let metas = |suffix: &str, release: &str, version: &str| {
        vec![
            Deb::new(&format!("linux-generic{suffix}"), version)
                .depends(&format!("linux-image-generic{suffix} (= {version}), linux-headers-generic{suffix} (= {version})")),
            Deb::new(&format!("linux-image-generic{suffix}"), version).depends(&format!(
                "linux-image-{release}, linux-modules-extra-{release}, linux-firmware, intel-microcode"
            )),
        ]
    };
    let (old, new, hwe) = ("5.15.0-25-generic", "5.15.0-194-generic", "6.8.0-138-generic");
    world
        .repository
        .suite("jammy", &[metas("", old, "5.15.0.25.27"), kernel(old, "5.15.0-25.25")].concat());
    let fields = Making { fields: [("Codename", "jammy".to_owned())].into(), ..Making::default() };
    world.repository.suite_made(
        "jammy-updates",
        &[
            metas("", new, "5.15.0.194.190"),
            kernel(new, "5.15.0-194.204"),
            vec![
                Deb::new(&format!("linux-headers-{new}"), "5.15.0-194.204")
                    .file(&format!("usr/src/linux-headers-{new}/.config"), 9000),
            ],
            metas("-hwe-22.04", hwe, "6.8.0-138.138~22.04.1"),
            kernel(hwe, "6.8.0-138.138~22.04.1"),
        ]
        .concat(),
        &fields,
    );
    let suites = ["jammy", "jammy-updates"];
    for (meta, release, package) in [
        ("linux-generic", new, "linux-modules-5.15.0-194-generic"),
        ("linux-generic-hwe-22.04", hwe, "linux-modules-6.8.0-138-generic"),
    ] {
        let found = world.resolve(&world.query(&suites, meta, Follow::UbuntuModules)).unwrap();
        assert_eq!((found.release.as_str(), found.package.as_str()), (release, package));
        assert_eq!(found.config_paths[0], format!("boot/config-{release}"));
    }
    let plain = world.query(&["jammy"], "linux-generic", Follow::UbuntuModules);
    assert_eq!(world.resolve(&plain).unwrap().release, old);
    let all = world.query(&suites, "linux-generic", Follow::UbuntuModules);
    let all = all_kernels(&world.repositories(), &all).unwrap();
    let releases: Vec<String> = all.into_iter().map(|kernel| kernel.unwrap().release).collect();
    assert_eq!(releases, [new, old, hwe]);
}

#[test]
fn proxmox() {
    let Some(world) = ready(World::new()) else { return };
    let release = "7.0.14-14-pve";
    let dependency = format!("proxmox-kernel-{release}-signed | proxmox-kernel-{release}");
    world.repository.suite(
        "trixie",
        &[
            Deb::new("proxmox-default-kernel", "2.0.1").depends("proxmox-kernel-7.0, pve-firmware"),
            Deb::new("proxmox-kernel-7.0", "7.0.14-14")
                .depends(&format!("pve-firmware, {dependency}")),
            Deb::new("proxmox-kernel-6.14", "6.14.1-1")
                .depends("proxmox-kernel-6.14.1-1-pve-signed"),
            Deb::new(&format!("proxmox-kernel-{release}-signed"), "7.0.14-14")
                .file(&format!("boot/config-{release}"), 9000),
            Deb::new(&format!("proxmox-headers-{release}"), "7.0.14-14")
                .file(&format!("usr/src/linux-headers-{release}/.config"), 3000),
        ],
    );
    let query = world.query(&["trixie"], "proxmox-default-kernel", Follow::Proxmox);
    let found = world.resolve(&query).unwrap();
    assert_eq!(found.release, release);
    assert_eq!(found.package, format!("proxmox-headers-{release}"));
    assert_eq!(found.config_paths, [format!("usr/src/linux-headers-{release}/.config")]);
}

#[test]
fn every_kernel_of_the_pockets() {
    let Some(world) = ready(World::new()) else { return };
    let mut packages = debian("6.1.0-9-amd64", "6.1.90-1");
    packages.push(
        Deb::new("linux-image-6.1.0-9-cloud-amd64", "6.1.90-1")
            .file("boot/config-6.1.0-9-cloud-amd64", 50),
    );
    packages.push(Deb::new("linux-image-6.1.0-9-rt-amd64-unsigned", "6.1.90-1"));
    packages.push(
        Deb::new("linux-image-6.1-amd64", "6.1.90-1")
            .depends("linux-image-6.1.0-9-amd64 (= 6.1.90-1)"),
    );
    world.repository.suite("plain", &packages);
    world.repository.suite("plain-security", &debian("6.1.0-57-amd64", "6.1.192-3"));
    let query =
        world.query(&["plain", "plain-security"], "linux-image-amd64", Follow::ImageHeaders);
    let all: Vec<(String, String)> = all_kernels(&world.repositories(), &query)
        .unwrap()
        .into_iter()
        .map(|kernel| kernel.map(|kernel| (kernel.release, kernel.package)).unwrap())
        .collect();
    let expected = [
        ("6.1.0-57-amd64", "linux-headers-6.1.0-57-amd64"),
        ("6.1.0-9-amd64", "linux-headers-6.1.0-9-amd64"),
        ("6.1.0-9-cloud-amd64", "linux-image-6.1.0-9-cloud-amd64"),
    ];
    assert_eq!(all, expected.map(|(release, package)| (release.to_owned(), package.to_owned())));
    // A package that names a line of kernels, as Debian has them for a second one.
    let line = Query { package: "linux-image-6.1-amd64".to_owned(), ..query };
    assert_eq!(world.resolve(&line).unwrap().release, "6.1.0-9-amd64");
}

#[test]
fn past_its_end() {
    let Some(world) = ready(World::new()) else { return };
    let making = Making {
        fields: [
            ("Date", "Fri, 30 Oct 2026 08:08:01 UTC".to_owned()),
            ("Valid-Until", "Fri, 06 Nov 2026 08:08:01 UTC".to_owned()),
        ]
        .into(),
        ..Making::default()
    };
    world.repository.suite_made("old", &debian("6.1.0-9-amd64", "6.1.90-1"), &making);
    let query = world.query(&["old"], "linux-image-amd64", Follow::ImageHeaders);
    // A day after the end, which the clock of this machine need not know of.
    let later = 1_794_040_000;
    let ask = |allow_stale, query: &Query| {
        let cache = Cache::temporary(false).unwrap();
        let repositories =
            Repositories::new(&world.client, &cache, &world.keyring, allow_stale, later.max(now()));
        resolve(&repositories, query)
    };
    let error = ask(false, &query).unwrap_err().to_string();
    assert!(
        error.contains("the index is past its end: expected a date before Fri, 06 Nov 2026"),
        "{error}"
    );
    let stale =
        Standing::Stale("the index was good until Fri, 06 Nov 2026 08:08:01 UTC".to_owned());
    assert_eq!(ask(true, &query).unwrap().standing, stale);
    let mut unchecked = query.clone();
    unchecked.pockets[0].check_valid_until = false;
    assert_eq!(ask(false, &unchecked).unwrap().standing, stale);
    // One stale pocket makes the answer stale.
    world.repository.suite("plain", &debian("6.1.0-57-amd64", "6.1.192-3"));
    unchecked.pockets.push(world.query(&["plain"], "", Follow::Image).pockets.remove(0));
    let both = ask(false, &unchecked).unwrap();
    assert_eq!((both.release.as_str(), both.standing), ("6.1.0-57-amd64", stale));
}

#[test]
fn signatures_that_are_wrong_or_not_there() {
    let Some(world) = ready(World::new()) else { return };
    let packages = debian("6.1.0-9-amd64", "6.1.90-1");
    let query = world.query(&["s"], "linux-image-amd64", Follow::ImageHeaders);
    let suite = world.repository.base().join("dists/s");
    world.repository.suite("s", &packages);
    let inline = fs::read_to_string(suite.join("InRelease")).unwrap();

    // Only the older form: as good.
    world.repository.sign("s", &Making { inline: false, ..Making::default() });
    assert_eq!(world.fresh(&query).unwrap().release, "6.1.0-9-amd64");
    let release = fs::read_to_string(suite.join("Release")).unwrap();
    fs::write(suite.join("Release"), release.replace("Suite: s", "Suite: t")).unwrap();
    let error = world.fresh(&query).unwrap_err();
    assert_eq!(
        error,
        format!(
            "BASE/dists/s/Release: bad signature: {} did not sign this content",
            world.repository.key
        )
    );

    // A wrong InRelease is not passed over for a good Release.
    fs::write(suite.join("Release"), &release).unwrap();
    fs::write(suite.join("InRelease"), inline.replace("Suite: s", "Suite: t")).unwrap();
    let error = world.fresh(&query).unwrap_err();
    assert!(error.starts_with("BASE/dists/s/InRelease: bad signature"), "{error}");
    fs::write(suite.join("InRelease"), &release).unwrap();
    let error = world.fresh(&query).unwrap_err();
    assert!(
        error.starts_with("BASE/dists/s/InRelease: not signed: expected `-----BEGIN"),
        "{error}"
    );

    // Nothing signed at all.
    fs::remove_file(suite.join("InRelease")).unwrap();
    fs::remove_file(suite.join("Release.gpg")).unwrap();
    let error = world.fresh(&query).unwrap_err();
    assert!(
        error.ends_with("dists/s/Release.gpg: offset 0: expected content, found status 404"),
        "{error}"
    );

    // Signed by someone else.
    world.repository.sign("s", &Making::default());
    let other = world.repository.gpg.key("Other <o@t.invalid>", "ed25519", "sign", "never");
    let stranger = Query { pins: vec![other.clone()], ..query.clone() };
    let error = world.fresh(&stranger).unwrap_err();
    let expected = format!(
        "BASE/dists/s/InRelease: expected a signature by {other} (in no keyring), found one by {}",
        world.repository.key
    );
    assert_eq!(error, expected);

    // Signed, but for another suite, or from the future.
    let fields = |field, value: &str| Making {
        fields: [(field, value.to_owned())].into(),
        ..Making::default()
    };
    let mut wrong = fields("Suite", "t");
    wrong.fields.insert("Codename", "u".to_owned());
    world.repository.sign("s", &wrong);
    let error = world.fresh(&query).unwrap_err();
    assert_eq!(error, "BASE/dists/s/InRelease: Suite: expected `s`, found `t` and `u`");
    world.repository.sign("s", &fields("Date", "Tue, 31 Dec 2999 00:00:00 UTC"));
    let error = world.fresh(&query).unwrap_err();
    assert!(error.contains("Date: expected a date that is not in the future"), "{error}");
    world.repository.sign("s", &fields("Codename", "t"));
    assert!(world.fresh(&query).is_ok());
}

#[test]
fn indexes_that_are_not_the_ones_meant() {
    let Some(world) = ready(World::new()) else { return };
    world.repository.suite("s", &debian("6.1.0-9-amd64", "6.1.90-1"));
    let query = world.query(&["s"], "linux-image-amd64", Follow::ImageHeaders);
    let xz = world.repository.index_paths("s", ".xz");
    let server = &world.server;
    let cases: [(Fault, &str); 6] = [
        (Fault::Garbage, "expected sha256:"),
        (Fault::LongerLength(3), "changed while it was read: length"),
        (Fault::Status(403, "", 99), "found status 403"),
        (Fault::Status(500, "", 99), "found status 500 (tried 4 times)"),
        (Fault::Cut(0), "(tried 4 times)"),
        (Fault::Redirect("x".into()), "found status 404"),
    ];
    for (fault, expected) in cases {
        server.heal();
        for path in &xz {
            server.fault(path, fault.clone());
        }
        if matches!(fault, Fault::Redirect(_)) {
            // Neither is there: the next form is.
            assert_eq!(world.fresh(&query).unwrap().release, "6.1.0-9-amd64");
            continue;
        }
        let hits = server.hits("debian/dists/s/main/binary-amd64/Packages.gz");
        let error = world.fresh(&query).unwrap_err();
        assert!(
            error.starts_with("BASE/dists/s/main/binary-amd64/") && error.contains(expected),
            "{fault:?}: {error}"
        );
        assert_eq!(server.hits("debian/dists/s/main/binary-amd64/Packages.gz"), hits, "{fault:?}");
    }
    server.heal();
    server.fault(&xz[0], Fault::CutTimes(10, 2));
    assert!(world.fresh(&query).is_ok());

    // Shorter and longer than the signed list says.
    server.heal();
    let file = world.repository.root().join(&xz[0]);
    let bytes = fs::read(&file).unwrap();
    for (content, expected) in [
        (
            bytes[..bytes.len() - 4].to_vec(),
            format!("expected {} bytes, found {}", bytes.len(), bytes.len() - 4),
        ),
        (
            [bytes.as_slice(), b"more"].concat(),
            format!("expected {} bytes, found more", bytes.len()),
        ),
    ] {
        fs::write(&file, content).unwrap();
        let error = world.fresh(&query).unwrap_err();
        assert!(error.ends_with(&expected), "{error}");
    }
    // A mirror without names that are hashes; a repository that does not offer them; only an old form.
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
    assert!(world.fresh(&query).is_ok());
    let making = Making { by_hash: false, endings: vec![".gz"], ..Making::default() };
    world.repository.suite_made("s", &[], &making);
    assert!(world.fresh(&query).is_ok());
    assert!(!server.seen().last().unwrap().target.contains("by-hash"));
    world.repository.suite_made("s", &[], &Making { endings: vec![""], ..making.clone() });
    assert!(world.fresh(&query).is_ok());
    world.repository.suite_made("s", &[], &Making { endings: vec![""], ..making });
    let mut other = query.clone();
    other.pockets[0].arch = "arm64".to_owned();
    let error = world.fresh(&other).unwrap_err();
    assert_eq!(
        error,
        "BASE/dists/s/InRelease: SHA256: expected `main/binary-arm64/Packages` in some form, found none"
    );
}

#[test]
fn a_damaged_cache_is_filled_again() {
    let Some(world) = ready(World::new()) else { return };
    world.repository.suite("s", &debian("6.1.0-9-amd64", "6.1.90-1"));
    let query = world.query(&["s"], "linux-image-amd64", Follow::ImageHeaders);
    let folder = tempfile::tempdir().unwrap();
    let ask = || {
        let cache = Cache::new(folder.path().to_owned(), false).unwrap();
        let repositories = Repositories::new(&world.client, &cache, &world.keyring, false, now());
        resolve(&repositories, &query)
    };
    ask().unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        if text.lines().nth(1).unwrap().contains("by-hash") {
            let mut bytes = fs::read(&path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(&path, bytes).unwrap();
        }
    }
    assert!(ask().unwrap().index_bytes > 0);
    assert_eq!(ask().unwrap().index_bytes, 0);
}

#[test]
fn signed_indexes_that_make_no_sense() {
    let Some(world) = ready(World::new()) else { return };
    let sound = "Package: linux-image-amd64\nVersion: 1\nDepends: linux-image-6.1.0-9-amd64 (= 1)\nFilename: pool/x\nSize: 1\nSHA256: aa\n";
    let sound = sound.replace("aa", &"a".repeat(64));
    let query = world.query(&["s"], "linux-image-amd64", Follow::ImageHeaders);
    for (index, expected) in [
        (String::new(), "BASE/: expected the package linux-image-amd64, found none in s"),
        (sound.clone(), "BASE/: expected the package linux-image-6.1.0-9-amd64 1, found none in s"),
        (
            sound.replace("linux-image-6.1.0-9-amd64 (= 1)", "kmod"),
            "BASE/: linux-image-amd64 1: expected a kernel among its dependencies, found `kmod`",
        ),
        (
            sound.replace("linux-image-6.1.0-9-amd64", "linux-image-amd64"),
            "BASE/: linux-image-amd64 : expected a kernel among its dependencies, found `more than 8 packages that name one another`",
        ),
        (
            sound.replace("pool/x", "../../x"),
            "line 1: linux-image-amd64: expected a file name below the repository, found `../../x`",
        ),
        (
            sound.replace("Size: 1", "Size: many"),
            "line 1: linux-image-amd64: expected a size, found `many`",
        ),
        ("garbage\n".to_owned(), "line 1: expected `Field: value`"),
    ] {
        world.repository.index("s", index.as_bytes(), &Making::default());
        let error = world.fresh(&query).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
    let error = world.fresh(&world.query(&["none"], "x", Follow::Image)).unwrap_err();
    assert!(
        error.ends_with("dists/none/Release: offset 0: expected content, found status 404"),
        "{error}"
    );
    let mut nowhere = query.clone();
    nowhere.pockets[0].bases.clear();
    assert_eq!(world.fresh(&nowhere).unwrap_err(), "s: no mirror is known for it; name one");
}

#[test]
fn an_index_that_expands_without_end() {
    let Some(world) = ready(World::new()) else { return };
    // 200 MB of one letter: a line that is too long is found long before its end.
    let index = vec![b'a'; 200 << 20];
    world.repository.index("s", &index, &Making { endings: vec![".xz"], ..Making::default() });
    drop(index);
    let error = world.fresh(&world.query(&["s"], "x", Follow::Image)).unwrap_err();
    assert!(error.ends_with("expected a line of at most 1048576 bytes"), "{error}");
}

#[test]
fn the_next_mirror_is_asked_only_if_the_first_is_not_there() {
    let Some(world) = ready(World::new()) else { return };
    world.repository.suite("s", &debian("6.1.0-9-amd64", "6.1.90-1"));
    let mut query = world.query(&["s"], "linux-image-amd64", Follow::ImageHeaders);
    query.pockets[0].bases = vec![world.server.url("none"), world.base()];
    assert_eq!(world.fresh(&query).unwrap().repository, format!("{}/", world.base()));
    let copy = world.repository.root().join("bad/dists/s");
    fs::create_dir_all(&copy).unwrap();
    let inline = fs::read_to_string(world.repository.base().join("dists/s/InRelease")).unwrap();
    fs::write(copy.join("InRelease"), inline.replace("Suite: s", "Suite: t")).unwrap();
    query.pockets[0].bases[0] = world.server.url("bad");
    assert!(world.fresh(&query).unwrap_err().contains("bad signature"));
}

/// The machine's own Debian mirror, if it has one that answers. Nothing of it is in any message.
#[test]
fn the_machines_own_mirror() {
    use fastpath_survey::apt::Apt;
    let os = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| {
        os.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|value| value.trim_matches('"').to_owned())
    };
    let (Some(id), Some(codename)) = (field("ID="), field("VERSION_CODENAME=")) else {
        return skipped("this system has no code name");
    };
    if id != "debian" {
        return skipped("this system is not Debian");
    }
    let apt = Apt::read(Path::new("/")).unwrap();
    // The plain suite is fifty megabytes to decompress, which takes its time in a build for tests.
    let suites = [format!("{codename}-updates"), format!("{codename}-security")];
    let pockets = apt.pockets("debian", &suites, &["main".to_owned()], "amd64");
    if pockets.iter().any(|pocket| pocket.bases.is_empty()) {
        return skipped("apt has no mirror of Debian");
    }
    let keyring = Keyring::usual(Path::new("/"));
    let pins = include_str!("../../knowledge/data/keys.toml")
        .split("[[key]]")
        .filter(|entry| entry.contains("distribution = \"debian\""))
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("fingerprint = ")?.trim_matches('"').parse().ok())
        .collect();
    let query = Query {
        pockets,
        package: "linux-image-amd64".to_owned(),
        follow: Follow::ImageHeaders,
        pins,
    };
    let proxies = apt.proxies(fastpath_artifact::http::Proxies::from_environment());
    let client = Client::new(Options { proxies, tries: 2, ..Options::default() }).unwrap();
    let cache = Cache::temporary(false).unwrap();
    let repositories = Repositories::new(&client, &cache, &keyring, true, now());
    match resolve(&repositories, &query) {
        Err(DebianError::Fetch(_)) => skipped("the mirror of this system does not answer"),
        Err(DebianError::NoPackage { .. }) => skipped("there are no updates of the kernel yet"),
        Err(error) => {
            // The message may name the mirror.
            let text = error.to_string();
            panic!(
                "{}",
                text.split_once("/dists/").map_or("the mirror's answer", |(_, rest)| rest)
            );
        }
        Ok(found) => {
            assert!(found.release.ends_with("-amd64"), "{}", found.release);
            assert!(found.config_paths.iter().any(|path| path.contains(&found.release)));
            assert!(found.index_bytes < 30 << 20, "{}", found.index_bytes);
        }
    }
}
