//! Servers that misbehave, and repositories that are not what they should be.

use std::fs;

use fastpath_survey::trust::{Digest, DigestKind};
use serde_json::Value;

use crate::common::repository::Making;
use crate::server::{Fault, Server};
use crate::world::{Answer, Machine, World, at_once, config};

const TOOLS: [&str; 8] =
    ["gpg", "dpkg-deb", "apt-ftparchive", "xz", "rpmbuild", "createrepo_c", "tar", "zstd"];
const TARGETS: [&str; 3] = ["test-deb", "test-rpm", "test-pacman"];

const INRELEASE: &str = "debian/dists/test/InRelease";
const DETACHED: &str = "debian/dists/test/Release.gpg";
const REPOMD: &str = "rpm/repodata/repomd.xml";
const SIGNATURE: &str = "rpm/repodata/repomd.xml.asc";
const DEB: &str = "debian/pool/test/linux-image-6.1.0-9-amd64_6.1.9-1_amd64.deb";
const RPM: &str = "rpm/kernel-core-5.14.0-570.58.1.el9_6.x86_64.rpm";

const DATABASE: &str = "arch/core/os/x86_64/core.db";
const ARCH: &str = "arch/core/os/x86_64/linux-headers-7.1.3.arch1-2-x86_64.pkg.tar.zst";

/// One thing that is wrong.
struct Case {
    name: &'static str,
    /// What is wrong with which paths.
    faults: Vec<(String, Fault)>,
    /// More arguments.
    more: &'static [&'static str],
    /// The target's error after its name, with BASE in place of the server's address; `None` if the row is right all the same.
    error: Option<String>,
    /// Whether `inspect` of the package is to say the same.
    inspected: bool,
}

impl Case {
    /// Something that is wrong and does no harm.
    fn new(name: &'static str, path: &str, fault: Fault) -> Self {
        let faults = vec![(path.to_owned(), fault)];
        Self { name, faults, more: &[], error: None, inspected: false }
    }

    /// It does harm: an error that names this path.
    fn fails(self, path: &str, detail: &str) -> Self {
        Self { error: Some(format!("BASE/{path}: {detail}")), ..self }
    }

    /// The error names the path it is about.
    fn fails_there(self, detail: &str) -> Self {
        let path = self.faults[0].0.clone();
        self.fails(&path, detail)
    }

    fn and(mut self, path: &str, fault: Fault) -> Self {
        self.faults.push((path.to_owned(), fault));
        self
    }

    fn with(self, more: &'static [&'static str]) -> Self {
        Self { more, ..self }
    }

    /// The target the case is about.
    fn target(&self) -> &'static str {
        match self.faults[0].0.split('/').next() {
            Some("debian") => "test-deb",
            Some("rpm") => "test-rpm",
            _ => "test-pacman",
        }
    }
}

/// The words for a file that never comes further than that.
fn cut(world: &World, path: &str, offset: u64) -> String {
    let length = fs::metadata(world.folder(path)).expect("the file").len();
    let left = length - offset;
    format!("offset {offset}: expected {left} more bytes, found: Peer disconnected (tried 4 times)")
}

/// Errors without what is another one at each run: the server's address, the tag of a file before it changed, the time.
fn constant(answer: &Answer, server: &Server) -> Vec<String> {
    let constant = |error: &&str| {
        let error = error.replace(&server.url(""), "BASE/");
        if let Some((before, tag)) = error.split_once("ETag: expected \"") {
            let after = tag.split_once('"').map_or("", |(_, after)| after);
            return format!("{before}ETag: expected \"ONE\"{after}");
        }
        match error.split_once(" UTC, found 20") {
            Some((before, _)) => format!("{before} UTC, found NOW"),
            None => error,
        }
    };
    answer.errors().iter().map(constant).collect()
}

fn world() -> Option<World> {
    let world = World::new(&TOOLS)?;
    world.debian_kernel("6.1.0-9-amd64", "6.1.9-1", true);
    world.rpm_kernel("5.14.0", "570.58.1.el9_6", true);
    world.arch_kernel("7.1.3.arch1-2", "7.1.3-arch1-2", true);
    Some(world)
}

fn survey(machine: &Machine<'_>, server: &Server, more: &[&str]) -> Answer {
    let bases = ["debian", "rpm", "arch/core/os/x86_64"].map(|path| server.url(path));
    let mirrors: Vec<(&str, &str)> =
        TARGETS.into_iter().zip(bases.iter().map(String::as_str)).collect();
    machine.survey(&mirrors, &[more, &TARGETS].concat())
}

fn judge(world: &World, case: &Case) -> Vec<String> {
    let machine = world.machine();
    let server = Server::start(world.repository.root());
    let mut wrong = Vec::new();
    let mut expect = |holds: bool, what: &dyn std::fmt::Display| {
        if !holds {
            wrong.push(format!("{}: {what}", case.name));
        }
    };
    let before = "{\"schema\":\"fastpath.survey/1\",\"run\":\"2026-11-01T00:00:00Z\",  \"target\":\"test-deb\",\"id\":\"test-deb\",\
         \"distribution\":\"Test\",\"distribution_version\":\"1\",\"flavour\":\"default\",\"verdict\":\"unknown\",\"companions\":{},\
         \"advisories\":[],\"method\":\"m\",\"time\":\"t\",\"tool\":\"0\",\"bytes_read\":0,\"index_bytes\":0}\n";
    fs::create_dir_all(machine.data().parent().expect("a parent")).expect("a folder");
    fs::write(machine.data(), before).expect("written");
    for (path, fault) in &case.faults {
        server.fault(path, fault.clone());
    }
    let answer = survey(&machine, &server, case.more);
    let rows = answer.rows();
    let bad = case.target();
    let (bad_rows, others): (Vec<&Value>, Vec<&Value>) =
        rows.iter().partition(|row| row["target"] == bad);
    let bad_row = bad_rows.first().copied().cloned().unwrap_or_default();

    let errors = constant(&answer, &server);
    let expected: Vec<String> = case.error.iter().map(|error| format!("{bad}: {error}")).collect();
    expect(errors == expected, &format!("expected {expected:?}, found {errors:?}"));
    expect(answer.stderr.lines().count() == errors.len() + 1, &answer.stderr);
    expect(answer.code == if case.error.is_some() { 2 } else { 0 }, &answer.code);
    expect(others.len() == TARGETS.len() - 1, &answer.stdout);
    for row in others {
        expect(row["value"] == "y" && row["error"].is_null(), row);
    }
    if case.error.is_some() {
        let error = answer.errors().first().map(|error| Value::from(*error));
        expect(bad_row["value"].is_null() && bad_row["verdict"] == "unknown", &bad_row);
        expect(Some(&bad_row["error"]) == error.as_ref(), &bad_row);
    } else {
        expect(bad_row["value"] == "y" && bad_row["error"].is_null(), &bad_row);
    }
    // What was there is there, and what is new follows.
    let data = fs::read_to_string(machine.data()).unwrap_or_default();
    let added = data.strip_prefix(before).map(str::lines).map(Iterator::count);
    expect(added == Some(TARGETS.len()), &data);

    if case.inspected {
        server.heal();
        for (path, fault) in &case.faults {
            server.fault(path, fault.clone());
        }
        let url = server.url(&case.faults[0].0);
        let answer = Answer::of(machine.start(&["inspect", &url]));
        let errors = constant(&answer, &server);
        let expected: Vec<&String> = case.error.iter().collect();
        expect(
            errors.iter().eq(expected.iter().copied()),
            &format!("inspect: expected {expected:?}, found {errors:?}"),
        );
        let (code, lines) = if case.error.is_some() { (2, 1) } else { (0, 0) };
        expect((answer.code, answer.stderr.lines().count()) == (code, lines), &answer.stderr);
        expect(answer.stdout.is_empty() == case.error.is_some(), &answer.stdout);
    }
    wrong
}

fn all(world: &World, cases: Vec<Case>) {
    let wrong = std::sync::Mutex::new(Vec::new());
    at_once(cases, |case| {
        let found = judge(world, &case);
        wrong.lock().expect("the list").extend(found);
    });
    let wrong = wrong.into_inner().expect("the list");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn servers_in_trouble() {
    let Some(world) = world() else { return };
    let wait = Fault::Status(429, "Retry-After: 1\r\n", 1);
    let wait_long = Fault::Status(429, "Retry-After: 3600\r\n", 99);
    let too_long = "status 429: the server asks to wait 3600 s, more than the 30 s waited here";
    let status = |status| Fault::Status(status, "", 99);
    let mut cases = vec![
        Case::new("403, index", INRELEASE, status(403))
            .fails_there("offset 0: expected content, found status 403"),
        Case::new("404, rpm index", REPOMD, status(404))
            .fails_there("offset 0: expected content, found status 404"),
        Case::new("429, rpm index", REPOMD, wait.clone()),
        Case::new("429 for long, index", INRELEASE, wait_long.clone()).fails_there(too_long),
        Case::new("500 twice, index", INRELEASE, Fault::Status(500, "", 2)),
        Case::new("500 for ever, rpm index", REPOMD, status(500))
            .fails_there("offset 0: expected content, found status 500 (tried 4 times)"),
        Case::new("redirects, index", INRELEASE, Fault::Redirect("InRelease".to_owned()))
            .fails_there("more than 10 redirects"),
        Case::new("404, database", DATABASE, status(404))
            .fails_there("offset 0: expected content, found status 404"),
        Case::new("cut once, database", DATABASE, Fault::CutTimes(100, 1)),
        Case::new("cut once, index", INRELEASE, Fault::CutTimes(100, 1)),
        Case::new("cut once, rpm index", REPOMD, Fault::CutTimes(100, 1)),
        Case::new("ranges ignored and cut, index", INRELEASE, Fault::IgnoreRange)
            .and(INRELEASE, Fault::CutTimes(100, 1)),
        Case::new("cut for ever, index", INRELEASE, Fault::CutAt(100))
            .fails_there(&cut(&world, INRELEASE, 100)),
        Case::new("cut for ever, rpm index", REPOMD, Fault::CutAt(100))
            .fails_there(&cut(&world, REPOMD, 100)),
    ];
    for path in [DEB, RPM, ARCH] {
        let package = |name, fault| Case { inspected: true, ..Case::new(name, path, fault) };
        cases.extend([
            package("ranges ignored", Fault::IgnoreRange),
            package("cut once", Fault::CutTimes(1000, 1)),
            package("ranges ignored and cut", Fault::IgnoreRange)
                .and(path, Fault::CutTimes(1000, 1)),
            // The first answer is for 64 KiB.
            package("cut for ever", Fault::CutAt(50_000)).fails_there(
                "offset 50000: expected 15536 more bytes, found: Peer disconnected (tried 4 times)",
            ),
            package("403", status(403)).fails_there("offset 0: expected content, found status 403"),
            package("404", status(404)).fails_there("offset 0: expected content, found status 404"),
            package("429", wait.clone()),
            package("429 for long", wait_long.clone()).fails_there(too_long),
            package("500 once", Fault::Status(500, "", 1)),
            package("500 for ever", status(500))
                .fails_there("offset 0: expected content, found status 500 (tried 4 times)"),
            package("redirects", Fault::Redirect(format!("/{path}")))
                .fails_there("more than 10 redirects"),
            package("changed while it is read", Fault::Changes).fails_there(
                "offset 65536: changed while it was read: ETag: expected \"ONE\", found \"two\"",
            ),
        ]);
    }
    all(&world, cases);
}

#[test]
fn repositories_that_are_not_what_they_should_be() {
    let Some(world) = world() else { return };
    let read = |path: &str| fs::read(world.folder(path)).expect("the file");
    let archive = world.repository.archive("debian");
    let index = &archive.index_paths("test", ".xz")[0];
    let primary = fs::read_dir(world.folder("rpm/repodata")).expect("the index").find_map(|file| {
        let name = file.ok()?.file_name().into_string().ok()?;
        name.ends_with("primary.xml.gz").then(|| format!("rpm/repodata/{name}"))
    });
    let primary = primary.expect("the primary index");

    // The index in the hands of others.
    let inrelease = String::from_utf8(read(INRELEASE)).expect("text");
    let release = read("debian/dists/test/Release");
    let gpg = &world.repository.gpg;
    let stranger = gpg.key("Stranger <s@t.invalid>", "ed25519", "sign", "never");
    let by_stranger = gpg.run_with(&["-u", stranger.as_str(), "--clearsign", "-o", "-"], &release);
    let repomd = read(REPOMD);
    let rpm_by_stranger =
        gpg.run_with(&["-u", stranger.as_str(), "--armor", "--detach-sign", "-o", "-"], &repomd);
    // Its end is past, or it names another index.
    let expired = Making {
        fields: [("Valid-Until", "Sun, 01 Nov 2026 00:00:00 UTC".to_owned())].into(),
        ..Making::default()
    };
    archive.sign("test", &expired);
    let expired = read(INRELEASE);
    fs::write(world.folder(INRELEASE), &inrelease).expect("written");
    let other_index = {
        let text = String::from_utf8(release.clone()).expect("text");
        let digest = index.rsplit('/').next().expect("a digest");
        let text = text.replace(digest, &"0".repeat(64));
        gpg.run_with(
            &["-u", world.repository.key.as_str(), "--clearsign", "-o", "-"],
            text.as_bytes(),
        )
    };

    let key = &world.repository.key;
    let digest = |bytes: &[u8]| Digest::of(DigestKind::Sha256, bytes).to_string();
    let not = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<u8>>();
    let other_than = |path: &str, found: &[u8]| {
        format!("expected {}, found {}", digest(&read(path)), digest(found))
    };
    let bad_signature = format!("bad signature: {key} did not sign this content");
    let by_another = format!("expected a signature by {key}, found one by {stranger}");
    let changed_release = inrelease.replace("Suite: test", "Suite: tent").into_bytes();
    let zeros = format!("sha256:{}", "0".repeat(64));
    let plain_index = "debian/dists/test/main/binary-amd64/Packages.xz";
    let mut cases = vec![
        Case::new("garbage index", index, Fault::Garbage)
            .fails_there(&other_than(index, &not(&read(index)))),
        Case::new("garbage rpm index", &primary, Fault::Garbage)
            .fails_there(&other_than(&primary, &not(&read(&primary)))),
        Case::new("garbage signed file", INRELEASE, Fault::Garbage)
            .fails_there("not signed: expected text, found a stray byte at 0"),
        Case::new("garbage repomd", REPOMD, Fault::Garbage).fails_there(&bad_signature),
        Case::new("wrong signature", INRELEASE, Fault::Content(changed_release))
            .fails_there(&bad_signature),
        Case::new("wrong rpm signature", REPOMD, Fault::Content([&repomd[..], b"\n"].concat()))
            .fails_there(&bad_signature),
        Case::new("a stranger's signature", INRELEASE, Fault::Content(by_stranger))
            .fails_there(&by_another),
        Case::new("a stranger's rpm signature", SIGNATURE, Fault::Content(rpm_by_stranger))
            .fails(REPOMD, &by_another),
        Case::new("no signature in the file", INRELEASE, Fault::Content(release)).fails_there(
            "not signed: expected `-----BEGIN PGP SIGNED MESSAGE-----`, found `Acquire-By-Hash: yes`",
        ),
        Case::new("no signed file", INRELEASE, Fault::Status(404, "", 99))
            .and(DETACHED, Fault::Status(404, "", 99))
            .fails(DETACHED, "offset 0: expected content, found status 404"),
        Case::new("no rpm signature", SIGNATURE, Fault::Status(404, "", 99))
            .fails(REPOMD, "expected a signed index, found no repomd.xml.asc beside it"),
        Case::new("another index than signed", INRELEASE, Fault::Content(other_index)).fails(
            plain_index,
            &format!("expected {zeros}, found {}", digest(&read(plain_index))),
        ),
        Case::new("an index past its end", INRELEASE, Fault::Content(expired.clone())).fails_there(
            "the index is past its end: expected a date before Sun, 01 Nov 2026 00:00:00 UTC, found NOW",
        ),
        Case::new("garbage database", DATABASE, Fault::Garbage).fails_there(
            "damaged package database at offset 0: expected a tar archive, found none: failed to read entire block",
        ),
        Case::new("garbage Arch package", ARCH, Fault::Garbage).fails_there(
            "linux-headers-7.1.3.arch1-2-x86_64.pkg.tar.zst: the content cannot be read: neither a kernel nor a known container",
        ),
        Case::new("garbage deb", DEB, Fault::Garbage).fails_there(
            "linux-image-6.1.0-9-amd64_6.1.9-1_amd64.deb: the content cannot be read: neither a kernel nor a known container",
        ),
        Case::new("garbage rpm", RPM, Fault::Garbage)
            .fails_there("damaged rpm header at offset 0: expected the magic of an rpm package"),
        Case::new("garbage rpm, verified", RPM, Fault::Garbage)
            .with(&["--verify"])
            .fails_there("damaged rpm header at offset 0: expected the magic of an rpm package"),
        Case::new("garbage deb, verified", DEB, Fault::Garbage)
            .with(&["--verify"])
            .fails_there(&other_than(DEB, &not(&read(DEB)))),
    ];
    for path in [DEB, RPM, ARCH] {
        let bytes = read(path);
        let size = bytes.len();
        let says = |found: usize| format!("{found} bytes, the index says {size}");
        let mut changed = bytes.clone();
        changed[size - 1] ^= 1;
        let digests = other_than(path, &changed);
        let longer = [&bytes[..], b"x"].concat();
        let shorter = bytes[..size - 1].to_vec();
        cases.extend([
            Case::new("longer", path, Fault::Content(longer)).fails_there(&says(size + 1)),
            Case::new("shorter", path, Fault::Content(shorter)).fails_there(&says(size - 1)),
            Case::new("changed, verified", path, Fault::Content(changed))
                .with(&["--verify"])
                .fails_there(&digests),
        ]);
    }
    all(&world, cases);

    // What is past its end is used where that is allowed, and is marked.
    let machine = world.machine();
    let server = Server::start(world.repository.root());
    server.fault(INRELEASE, Fault::Content(expired));
    let rows = survey(&machine, &server, &["--allow-stale"]).rows();
    let found: Vec<_> = rows.iter().map(|row| (&row["value"], &row["trust"])).collect();
    let words = ["y", "stale", "partial", "unsigned"].map(Value::from);
    let [y, stale, partial, unsigned] = &words;
    assert_eq!(found, [(y, stale), (y, partial), (y, unsigned)]);
}

/// `inspect` named its input as it was typed, user name and password included.
#[test]
fn credentials_in_an_address_are_not_repeated() {
    let Some(world) = World::new(&["gpg"]) else { return };
    let machine = world.machine();
    fs::write(world.folder("config-6.1.0"), config("6.1.0", true)).expect("written");
    for (path, code) in [("config-6.1.0", 0), ("no-such-file", 2)] {
        let url = world.server.url(path).replace("http://", "http://user:secret@");
        for format in ["text", "json"] {
            let answer = Answer::of(machine.start(&["inspect", "--format", format, &url]));
            let said = format!("{}{}", answer.stdout, answer.stderr);
            assert_eq!(answer.code, code, "{said}");
            assert!(said.contains(&world.server.url(path)), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
