//! The runtime layer on small trees: which library a program gets, and the right verdict on it.
//!
//! The libraries below `tests/libraries` were made by `cc -shared -nostdlib -fPIC -Os -s` from functions that return 0, with the soname that their
//! tests say; `decoy.so` wants `hipAmdFileRead`, hides `hipAmdFileWrite` and holds both names as text.

#![allow(missing_docs, reason = "a test has no users")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fastpath_host::DirTree;
use fastpath_host::runtime::{self, Image, Place, RuntimeFacts, libraries_to_ask};
use fastpath_knowledge::Knowledge;
use fastpath_verdict::runtime::{RuntimeVerdict, judge};
use fastpath_verdict::{Reason, Status, Verdict, finding, hints};

const WITH: &[u8] = include_bytes!("../../../tests/libraries/with-ais.so");
const WITHOUT: &[u8] = include_bytes!("../../../tests/libraries/without-ais.so");
const READ_ONLY: &[u8] = include_bytes!("../../../tests/libraries/read-only.so");
const DECOY: &[u8] = include_bytes!("../../../tests/libraries/decoy.so");
const HIPFILE: &[u8] = include_bytes!("../../../tests/libraries/hipfile.so");

struct Host {
    root: tempfile::TempDir,
    environment: BTreeMap<String, String>,
    cached: Vec<(String, String)>,
}

impl Host {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("etc")).unwrap();
        Self { root, environment: BTreeMap::new(), cached: Vec::new() }.cache()
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.root.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        fs::write(self.at(path), bytes).unwrap();
        self
    }

    fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.at(path)).unwrap();
        self
    }

    /// An installation of ROCm as packages leave it: a directory with the version in its name, and the links of a library.
    fn rocm(self, version: &str, major: u32, bytes: &[u8]) -> Self {
        let root = format!("/opt/rocm-{version}");
        let file = format!("libamdhip64.so.{major}.0.70000");
        self.file(&format!("{root}/lib/{file}"), bytes)
            .link(&format!("{root}/lib/libamdhip64.so.{major}"), &file)
            .link(&format!("{root}/lib/libamdhip64.so"), &format!("libamdhip64.so.{major}"))
            .file(&format!("{root}/.info/version"), format!("{version}-43\n"))
    }

    fn current(self, version: &str) -> Self {
        self.link("/etc/alternatives/rocm", &format!("/opt/rocm-{version}"))
            .link("/opt/rocm", "/etc/alternatives/rocm")
    }

    fn cached(mut self, name: &str, path: &str) -> Self {
        self.cached.push((name.to_owned(), path.to_owned()));
        self.cache()
    }

    /// The loader's cache in the form glibc writes.
    fn cache(self) -> Self {
        let mut bytes = b"glibc-ld.so.cache1.1".to_vec();
        let mut strings = Vec::new();
        let word = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
        bytes.extend(word(self.cached.len()));
        bytes.resize(48, 0);
        let start = 48 + 24 * self.cached.len();
        for (name, path) in &self.cached {
            bytes.extend(word(0x0303));
            for text in [name, path] {
                bytes.extend(word(start + strings.len()));
                strings.extend_from_slice(text.as_bytes());
                strings.push(0);
            }
            bytes.extend([0; 12]);
        }
        bytes.extend(strings);
        self.file("/etc/ld.so.cache", bytes)
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    fn facts(&self) -> RuntimeFacts {
        runtime::read(&DirTree::open(Path::new(self.root.path())).unwrap(), &self.environment)
    }

    fn judge(&self) -> RuntimeVerdict {
        judge(&self.facts(), &Knowledge::embedded().unwrap())
    }

    /// The verdict, and the path and place of the first library.
    fn first(&self) -> (Verdict, Reason, Option<(String, Place)>) {
        let judged = self.judge();
        let first = judged.libraries.iter().find(|one| one.first);
        (judged.verdict, judged.reason, first.map(|one| (one.path.clone(), one.place)))
    }
}

#[test]
fn what_a_library_has_decides() {
    use Reason::{RuntimeOtherMachine, RuntimeReady, RuntimeUnreadable, RuntimeWithoutAis};
    let other = [&WITH[..18], &[183, 0], &WITH[20..]].concat();
    let cases: [(&str, &[u8], Verdict, Reason); 9] = [
        ("both", WITH, Verdict::Supported, RuntimeReady),
        ("none", WITHOUT, Verdict::Unsupported, RuntimeWithoutAis),
        ("one", READ_ONLY, Verdict::Unsupported, RuntimeWithoutAis),
        ("wanted, hidden, as text", DECOY, Verdict::Unsupported, RuntimeWithoutAis),
        ("empty", b"", Verdict::Unknown, RuntimeUnreadable),
        ("text", b"hipAmdFileRead hipAmdFileWrite", Verdict::Unknown, RuntimeUnreadable),
        ("cut", &WITH[..WITH.len() / 2], Verdict::Unknown, RuntimeUnreadable),
        ("magic", b"\x7fELF", Verdict::Unknown, RuntimeUnreadable),
        ("another processor", &other, Verdict::Unsupported, RuntimeOtherMachine),
    ];
    for (name, bytes, verdict, reason) in cases {
        let judged = Host::new().rocm("7.2.0", 7, bytes).current("7.2.0").judge();
        assert_eq!(judged.libraries.len(), 1, "{name}");
        let one = &judged.libraries[0];
        assert_eq!((one.verdict, one.reason), (verdict, reason), "{name}");
        // What the loader passes over is as good as not there.
        let missing = reason == RuntimeOtherMachine;
        let expected = if missing { Reason::RuntimeMissing } else { reason };
        assert_eq!(
            (judged.verdict, judged.reason, one.first),
            (verdict, expected, !missing),
            "{name}"
        );
    }
}

#[test]
fn one_file_with_many_names_is_one_library() {
    let facts = Host::new()
        .rocm("7.2.0", 7, WITH)
        .current("7.2.0")
        .cached("libamdhip64.so.7", "/opt/rocm-7.2.0/lib/libamdhip64.so.7")
        .variable("ROCM_PATH", "/opt/rocm/")
        .variable("LD_LIBRARY_PATH", ":relative:/nowhere:/opt/rocm/lib/")
        .facts();
    assert_eq!(facts.libraries.len(), 1, "{facts:#?}");
    let one = &facts.libraries[0];
    assert_eq!(
        (one.path.as_str(), one.place),
        ("/opt/rocm/lib/libamdhip64.so.7", Place::LdLibraryPath)
    );
    assert_eq!(one.file, "/opt/rocm-7.2.0/lib/libamdhip64.so.7.0.70000");
    assert_eq!(one.version.as_deref(), Some("7.0.70000"));
    assert!(
        one.also.contains(&"/opt/rocm-7.2.0/lib/libamdhip64.so.7".to_owned()),
        "{:?}",
        one.also
    );
    let Image::Library { soname, .. } = &one.image else { panic!("{:?}", one.image) };
    assert_eq!(soname.as_deref(), Some("libamdhip64.so.7"));
    assert_eq!(libraries_to_ask(&facts), [one.file.as_str()]);
    assert_eq!(facts.installations.len(), 1);
    let version = facts.installations[0].version.as_ref().unwrap();
    assert_eq!(version.text.as_deref(), Some("7.2.0-43"));
    assert!(facts.unread.is_empty() && !facts.cut, "{facts:#?}");
}

#[test]
fn the_first_library_decides_and_the_order_is_the_loaders() {
    type Case = (&'static str, Host, (Verdict, Reason), &'static str, Place);
    let two = || Host::new().rocm("7.2.0", 7, WITH).rocm("6.4.3", 6, WITHOUT);
    let cached =
        |host: Host| host.cached("libamdhip64.so.6", "/opt/rocm-6.4.3/lib/libamdhip64.so.6");
    let yes = (Verdict::Supported, Reason::RuntimeReady);
    let no = (Verdict::Unsupported, Reason::RuntimeWithoutAis);
    let cases: [Case; 7] = [
        (
            "the one /opt/rocm names",
            two().current("6.4.3"),
            no,
            "/opt/rocm-6.4.3/lib/libamdhip64.so.6",
            Place::OptRocm,
        ),
        ("else the newest", two(), yes, "/opt/rocm-7.2.0/lib/libamdhip64.so.7", Place::OptRocm),
        (
            "the cache goes before",
            cached(two().current("7.2.0")),
            no,
            "/opt/rocm-6.4.3/lib/libamdhip64.so.6",
            Place::LoaderCache,
        ),
        (
            "of the cache the newest",
            cached(two()).cached("libamdhip64.so.7", "/opt/rocm-7.2.0/lib/libamdhip64.so.7"),
            yes,
            "/opt/rocm-7.2.0/lib/libamdhip64.so.7",
            Place::LoaderCache,
        ),
        (
            "LD_LIBRARY_PATH goes before the cache",
            cached(two()).variable("LD_LIBRARY_PATH", "/x:/opt/rocm-7.2.0/lib"),
            yes,
            "/opt/rocm-7.2.0/lib/libamdhip64.so.7",
            Place::LdLibraryPath,
        ),
        (
            "a variable of ROCm goes before /opt/rocm",
            two().current("6.4.3").variable("ROCM_HOME", "/opt/rocm-7.2.0"),
            yes,
            "/opt/rocm-7.2.0/lib/libamdhip64.so.7",
            Place::RocmVariable,
        ),
        (
            "the newer layout",
            Host::new().file("/opt/rocm/core-7.10/lib/libamdhip64.so.7", WITH),
            yes,
            "/opt/rocm/core-7.10/lib/libamdhip64.so.7",
            Place::OptRocm,
        ),
    ];
    for (name, host, (verdict, reason), path, place) in cases {
        assert_eq!(
            host.first(),
            (verdict, reason, Some((path.to_owned(), place))),
            "{name}: {:#?}",
            host.facts()
        );
    }
}

#[test]
fn another_runtime_that_would_do_is_named() {
    let host = Host::new().rocm("7.2.0", 7, WITH).rocm("6.4.3", 6, WITHOUT).current("6.4.3");
    let judged = host.judge();
    let ids: Vec<(&str, Status)> =
        judged.findings.iter().map(|one| (one.id.as_str(), one.status)).collect();
    let expected = [
        (finding::RUNTIME_LIBRARY, Status::Fail),
        (finding::RUNTIME_SEVERAL, Status::Warn),
        (finding::RUNTIME_LOADER, Status::Info),
        (finding::RUNTIME_HIPFILE, Status::Info),
    ];
    assert_eq!(ids, expected);
    let hint = judged.findings[0].hint.as_ref().unwrap();
    assert_eq!(hint.id, hints::OTHER_RUNTIME);
    assert!(hint.commands[0].contains("\"/opt/rocm-7.2.0/lib$"), "{hint:?}");
    let versions: Vec<_> =
        judged.findings[0].evidence.iter().filter_map(|one| one.text.clone()).collect();
    assert_eq!(versions, ["6.4.3-43"]);
}

#[test]
fn without_a_runtime_it_matters_whether_everything_could_be_read() {
    let missing = Host::new();
    assert_eq!(missing.first(), (Verdict::Unsupported, Reason::RuntimeMissing, None));
    let hint = missing.judge().findings[0].hint.clone().unwrap();
    assert_eq!(hint.id, hints::INSTALL_ROCM);
    let damaged = Host::new().file("/etc/ld.so.cache", "?");
    assert_eq!(damaged.first(), (Verdict::Unknown, Reason::RuntimeUnreadable, None));
    // Without a cache, as in images, the loader's own directories are looked at.
    let host = Host::new().file("/usr/lib/x86_64-linux-gnu/libamdhip64.so.5", WITHOUT);
    fs::remove_file(host.at("/etc/ld.so.cache")).unwrap();
    let path = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5".to_owned();
    let expected =
        (Verdict::Unsupported, Reason::RuntimeWithoutAis, Some((path, Place::LoaderDefault)));
    assert_eq!(host.first(), expected);
}

#[test]
fn hipfile_is_told_and_changes_no_verdict() {
    let without = Host::new().rocm("7.2.0", 7, WITH);
    let with =
        Host::new().rocm("7.2.0", 7, WITH).file("/opt/rocm-7.2.0/lib/libhipfile.so.0", HIPFILE);
    for (host, words) in [(&without, "not installed"), (&with, "with statistics")] {
        let judged = host.judge();
        assert_eq!(judged.reason, Reason::RuntimeReady);
        let told = judged.findings.iter().find(|one| one.id == finding::RUNTIME_HIPFILE).unwrap();
        assert!(told.summary.contains(words) && told.status == Status::Info, "{told:?}");
    }
}

#[test]
fn a_library_at_home_is_not_looked_at_and_leaves_the_answer_open() {
    let host = Host::new()
        .file("/home/alice/rocm/lib/libamdhip64.so.7", WITH)
        .cached("libamdhip64.so.7", "/home/alice/rocm/lib/libamdhip64.so.7");
    let judged = host.judge();
    assert_eq!((judged.verdict, judged.reason), (Verdict::Unknown, Reason::RuntimeUnreadable));
    assert!(!format!("{judged:?}").contains("alice"));
}

#[test]
fn hostile_trees_end() {
    let host = Host::new()
        .link("/opt/rocm", "/opt/rocm-a")
        .link("/opt/rocm-a", "/opt/rocm")
        .link("/opt/rocm-b/lib", ".")
        .link("/opt/rocm-b/libamdhip64.so", "../rocm-b/lib/lib/lib/libamdhip64.so")
        .file("/opt/rocm-c/lib", "a file")
        .file("/opt/rocm-d/lib/libamdhip64.so.7.debug", WITH)
        .file("/opt/rocm-e/lib/libamdhip64.so.7/x", "a directory");
    let judged = host.judge();
    assert_eq!(judged.verdict, Verdict::Unknown, "{:#?}", host.facts());
    let long = (0..5000).map(|n| format!("/opt/rocm-{n}/lib")).collect::<Vec<_>>().join(":");
    let mut host = Host::new().variable("LD_LIBRARY_PATH", &long);
    for n in 0..200 {
        host = host.file(&format!("/opt/rocm-{n}/lib/libamdhip64.so.7"), WITH);
    }
    let facts = host.facts();
    assert!(facts.cut && facts.libraries.len() == 16, "{}", facts.libraries.len());
}

#[test]
fn a_file_that_may_not_be_read_is_not_read_as_no() {
    let host = Host::new().rocm("7.2.0", 7, WITHOUT);
    let file = host.at("/opt/rocm-7.2.0/lib/libamdhip64.so.7.0.70000");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&file).is_ok() {
        #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("skipped, because permissions do not hold for this user");
        }
        return;
    }
    assert_eq!(host.first().1, Reason::RuntimeUnreadable);
}

/// The recorded hosts `tests/hosts/runtime-*`: what must come out stands in each `expect.json`, by hand.
#[test]
fn every_recorded_runtime_gets_its_verdict() {
    let hosts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hosts");
    let mut seen = 0;
    for host in fs::read_dir(hosts).unwrap().map(|one| one.unwrap().path()) {
        let name = host.file_name().unwrap().to_str().unwrap();
        if !name.starts_with("runtime-") {
            continue;
        }
        let text = fs::read_to_string(host.join("expect.json")).unwrap();
        let expect: serde_json::Value = serde_json::from_str(&text).unwrap();
        let facts = runtime::read(&DirTree::open(&host.join("root")).unwrap(), &BTreeMap::new());
        let judged = judge(&facts, &Knowledge::embedded().unwrap());
        let libraries: Vec<_> = judged
            .libraries
            .iter()
            .map(|one| {
                serde_json::json!({
                    "path": one.path, "first": one.first, "verdict": one.verdict, "reason": one.reason,
                })
            })
            .collect();
        let found = serde_json::json!({
            "verdict": judged.verdict, "reason": judged.reason, "libraries": libraries,
        });
        assert_eq!(found, expect["runtime"], "{name}");
        seen += 1;
    }
    assert_eq!(seen, 4);
}
