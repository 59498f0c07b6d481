//! Reading apt's own configuration.

mod common;

use std::fs;
use std::path::Path;

use fastpath_artifact::http::Proxies;
use fastpath_survey::apt::{Apt, SignedBy};
use fastpath_survey::trust::Keyring;

fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join("etc/apt").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

const DEB822: &str = "# comment\nTypes: deb deb-src\n# inside\nURIs: http://mirror.test/debian/\nSuites: bookworm bookworm-updates\nComponents: main\n contrib\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\nTypes: deb\nURIs: http://mirror.test/debian-security\nSuites: bookworm-security\nComponents: main\nCheck-Valid-Until: no\n\nTypes: deb\nEnabled: no\nURIs: http://off.test/debian\nSuites: bookworm\nComponents: main\n\nTypes: deb-src\nURIs: http://source.test/debian\nSuites: bookworm\nComponents: main\n";

#[test]
fn both_forms_of_sources() {
    let root = root(&[
        ("sources.list.d/debian.sources", DEB822),
        (
            "sources.list",
            "deb [arch=amd64,arm64 check-valid-until=no signed-by=/k.gpg,B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8!] https://one.test/debian trixie main contrib # note\n#deb http://no.test x y\n\ndeb-src http://no.test x y\ndeb cdrom:[x]/ y z\ndeb file:/srv/debian sid main\ndeb http://flat.test ./\n",
        ),
        ("sources.list.d/off.list.save", "nonsense"),
        ("sources.list.d/bad name.list", "nonsense"),
        (
            "sources.list.d/embedded.sources",
            "Types: deb\nURIs: http://e.test/x\nSuites: s\nComponents: c\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n -----END PGP PUBLIC KEY BLOCK-----\n",
        ),
    ]);
    let apt = Apt::read(root.path()).unwrap();
    let found: Vec<(&str, &str, Option<bool>)> = apt
        .sources
        .iter()
        .map(|s| (s.base.as_str(), s.suite.as_str(), s.check_valid_until))
        .collect();
    assert_eq!(
        found,
        [
            ("https://one.test/debian", "trixie", Some(false)),
            ("file:///srv/debian", "sid", None),
            ("http://mirror.test/debian/", "bookworm", None),
            ("http://mirror.test/debian/", "bookworm-updates", None),
            ("http://mirror.test/debian-security", "bookworm-security", Some(false)),
            ("http://e.test/x", "s", None),
        ]
    );
    assert_eq!(apt.sources[0].architectures, ["amd64", "arm64"]);
    assert_eq!(apt.sources[0].components, ["main", "contrib"]);
    assert_eq!(apt.sources[2].components, ["main", "contrib"]);
    assert_eq!((apt.sources[2].line, apt.sources[4].line), (2, 10));
    assert_eq!(apt.sources[0].signed_by[0], SignedBy::File("/k.gpg".into()));
    assert!(
        matches!(&apt.sources[0].signed_by[1], SignedBy::Key(key) if key.as_str().ends_with("350947F8"))
    );
    let SignedBy::Embedded(text) = &apt.sources[5].signed_by[0] else { panic!() };
    assert!(text.contains("BLOCK-----\n\nabc\n"), "{text}");
}

#[test]
fn settings_and_proxies() {
    let root = root(&[
        ("apt.conf.d/10first", "Acquire::Check-Valid-Until \"true\";\n"),
        (
            "apt.conf.d/20second",
            "acquire { check-valid-until \"false\"; http::Proxy \"http://p.test:1\"; };\n",
        ),
        ("apt.conf.d/30third.bak", "nonsense }"),
    ]);
    let apt = Apt::read(root.path()).unwrap();
    assert!(!apt.checks_valid_until());
    let environment =
        Proxies { http: Some("e".into()), all: Some("a".into()), ..Proxies::default() };
    let proxies = apt.proxies(environment.clone());
    assert_eq!(proxies.http.as_deref(), Some("http://p.test:1"));
    assert_eq!(proxies.https.as_deref(), Some("http://p.test:1"));
    assert_eq!(proxies.all.as_deref(), Some("a"));
    let none = tempfile::tempdir().unwrap();
    let none = Apt::read(none.path()).unwrap();
    assert!(none.checks_valid_until() && none.sources.is_empty());
    assert_eq!(none.proxies(environment.clone()), environment);
}

#[test]
fn other_releases_come_from_where_the_own_one_does() {
    let files = [
        ("sources.list.d/debian.sources", DEB822),
        (
            "sources.list.d/a.list",
            "deb http://other.test/tools bookworm main\ndeb http://other.test/x/ubuntu jammy main\n",
        ),
        ("apt.conf.d/x", "Acquire::Check-Valid-Until \"false\";"),
    ];
    let files = root(&files);
    let apt = Apt::read(files.path()).unwrap();
    let suites = words("trixie trixie-security bookworm bookworm-backports buster/updates");
    let pockets = apt.pockets("debian", &suites, &words("main"), "amd64");
    let bases: Vec<(&str, &[String])> =
        pockets.iter().map(|pocket| (pocket.suite.as_str(), pocket.bases.as_slice())).collect();
    let archive = words("http://mirror.test/debian/");
    let security = words("http://mirror.test/debian-security");
    assert_eq!(
        bases,
        [
            ("trixie", archive.as_slice()),
            ("trixie-security", security.as_slice()),
            ("bookworm", archive.as_slice()),
            ("bookworm-backports", archive.as_slice()),
            ("buster/updates", security.as_slice()),
        ]
    );
    assert!(pockets.iter().all(|pocket| !pocket.check_valid_until));
    // No mirror with such a component, architecture or distribution.
    assert!(apt.pockets("debian", &suites[..1], &words("main none"), "amd64")[0].bases.is_empty());
    assert!(apt.pockets("proxmox", &suites[..1], &words("main"), "amd64")[0].bases.is_empty());
    let ubuntu = apt.pockets("ubuntu", &words("noble-updates"), &words("main"), "amd64");
    assert_eq!(ubuntu[0].bases, ["http://other.test/x/ubuntu"]);
}

#[test]
fn what_is_wrong_is_named_with_file_and_line() {
    for (path, text, expected) in [
        (
            "sources.list",
            "\ndebian http://x y z",
            "sources.list: line 2: expected `deb` or `deb-src`, found `debian`",
        ),
        (
            "sources.list",
            "deb [arch=amd64 http://x y z",
            "sources.list: line 1: expected `]`, found the end of the line",
        ),
        ("sources.list", "deb http://x", "sources.list: line 1: expected an address and a suite"),
        (
            "sources.list.d/a.sources",
            "Types: deb\nnothing",
            "a.sources: line 2: expected `Field: value`, found `nothing`",
        ),
        ("apt.conf", "a \"b", "apt.conf: line 1: expected `\"`, found the end"),
    ] {
        let root = root(&[(path, text)]);
        let error = Apt::read(root.path()).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    let root = root(&[]);
    fs::create_dir_all(root.path().join("etc/apt/sources.list")).unwrap();
    let error = Apt::read(root.path()).unwrap_err().to_string();
    assert!(error.contains("sources.list: "), "{error}");
    assert!(Apt::read(Path::new("/nowhere")).unwrap().sources.is_empty());
}

#[test]
fn a_key_in_a_source_is_one_of_the_keyring() {
    if !common::have("gpg") {
        return common::skipped("gpg is not installed");
    }
    let gpg = common::Gpg::new();
    let key = gpg.key("Test <t@t.invalid>", "ed25519", "sign", "never");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.gpg");
    gpg.export(&file, &[key.as_str()]);
    let armored = String::from_utf8(gpg.run(&["--armor", "--export", key.as_str()])).unwrap();
    let lines: Vec<&str> =
        armored.lines().map(|line| if line.is_empty() { "." } else { line }).collect();
    let field = format!(" {}\n", lines.join("\n "));
    let source =
        "Types: deb\nURIs: http://m.invalid/debian\nSuites: s\nComponents: main\nSigned-By:";
    for text in [format!("{source}\n{field}"), format!("{source} {}\n", file.display())] {
        let root = root(&[("sources.list.d/a.sources", &text)]);
        let mut keyring = Keyring::default();
        Apt::read(root.path()).unwrap().add_keys(&mut keyring);
        assert!(keyring.contains(&key), "{text}");
    }
}
