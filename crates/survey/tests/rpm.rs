//! rpm repositories made with the distributions' own tools, and what can be wrong with them.

use std::fs;
use std::io::{Cursor, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use fastpath_artifact::http::{Cache, Client, Meter, Options};
use fastpath_host::DirTree;
use fastpath_knowledge::Signed;
use fastpath_survey::rpm::{
    Access, Basis, IndexError, Keys, Package, Wanted, authenticate, dnf, packages, reachable,
    verify_whole,
};
use fastpath_survey::trust::{Digest, DigestKind, Fingerprint, Keyring};
use tempfile::TempDir;

mod common;
#[path = "../../artifact/tests/server/mod.rs"]
mod server;

use common::rpm::{Spec, createrepo, rpmbuild};
use common::{Gpg, have_all};
use server::{Fault, Server};

// ------------------------------------------------------------------------------------------- tools

/// What a program makes of its input.
fn filter(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let mut output = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success(), "{command:?}");
    output
}

/// A key, and the home of gpg it lives in.
struct Signer {
    gpg: Gpg,
    key: Fingerprint,
}

impl Signer {
    fn new(user: &str, kind: &str) -> Self {
        Self::lasting(user, kind, "never")
    }

    fn lasting(user: &str, kind: &str, lasts: &str) -> Self {
        let gpg = Gpg::new();
        let key = gpg.key(&format!("{user}@test.invalid"), kind, "sign", lasts);
        Self { gpg, key }
    }

    fn sign(&self, file: &Path) -> PathBuf {
        self.gpg.sign(file, &self.key)
    }

    fn sign_package(&self, file: &Path) {
        self.gpg.sign_package(file, &self.key);
    }
}

/// What is pinned, and what is on the machine.
#[derive(Default)]
struct Trusted {
    keyring: Keyring,
    pins: Vec<Fingerprint>,
    allow_stale: bool,
    later: i64,
}

impl Trusted {
    /// No key is at hand.
    fn nobody() -> Self {
        Self::default()
    }

    fn only(signer: &Signer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("public.gpg");
        signer.gpg.export(&file, &[signer.key.as_str()]);
        let mut keyring = Keyring::default();
        keyring.add(&file).unwrap();
        Self { keyring, pins: vec![signer.key.clone()], ..Self::default() }
    }

    fn keys(&self) -> Keys<'_> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        Keys {
            keyring: &self.keyring,
            pins: &self.pins,
            now: i64::try_from(now).unwrap() + self.later,
            allow_stale: self.allow_stale,
        }
    }
}

// ------------------------------------------------------------------------------------ repositories

const KERNEL: Spec<'_> = Spec {
    name: "kernel-core",
    epoch: 0,
    version: "5.14.0",
    release: "570.58.1.el9_6",
    arch: "x86_64",
    payload: "w3.zstdio",
    member: "/lib/modules/5.14.0-570.58.1.el9_6.x86_64/config",
    config: "CONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\n",
    noise: 200_000,
};

fn sha256(bytes: &[u8]) -> String {
    Digest::of(DigestKind::Sha256, bytes).hex()
}

/// Puts another primary index in place of the one `createrepo_c` wrote: for what it cannot or would not write.
#[derive(Clone)]
struct Index {
    /// The file as it is served.
    file: Vec<u8>,
    name: String,
    checksum: Option<(String, String)>,
    open_checksum: Option<(String, String)>,
    size: Option<u64>,
    open_size: Option<u64>,
    kind: &'static str,
    /// Text in front of the root element.
    prolog: &'static str,
}

impl Index {
    fn new(open: &[u8], file: Vec<u8>, suffix: &str) -> Self {
        Self {
            name: format!("repodata/primary.xml{suffix}"),
            checksum: Some(("sha256".into(), sha256(&file))),
            open_checksum: Some(("sha256".into(), sha256(open))),
            size: Some(file.len() as u64),
            open_size: Some(open.len() as u64),
            file,
            kind: "primary",
            prolog: "",
        }
    }

    fn plain(open: &str) -> Self {
        Self::new(open.as_bytes(), open.as_bytes().to_vec(), "")
    }

    fn write(&self, folder: &Path) {
        fs::create_dir_all(folder.join("repodata")).unwrap();
        fs::write(folder.join("repodata/primary.xml.other"), &self.file).unwrap();
        if !self.name.contains("..") && !self.name.contains(':') {
            fs::write(folder.join(&self.name), &self.file).unwrap();
        }
        let sum = |tag: &str, sum: &Option<(String, String)>| match sum {
            Some((kind, hex)) => format!("<{tag} type=\"{kind}\">{hex}</{tag}>"),
            None => String::new(),
        };
        let number = |tag: &str, number: Option<u64>| match number {
            Some(number) => format!("<{tag}>{number}</{tag}>"),
            None => String::new(),
        };
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}<repomd xmlns=\"http://linux.duke.edu/metadata/repo\">\n\
             <revision>1</revision>\n<data type=\"{}\">{}{}<location href=\"{}\"/>{}{}</data>\n\
             <data type=\"other\"><location href=\"repodata/other.xml\"/></data></repomd>\n",
            self.prolog,
            self.kind,
            sum("checksum", &self.checksum),
            sum("open-checksum", &self.open_checksum),
            self.name,
            number("size", self.size),
            number("open-size", self.open_size),
        );
        fs::write(folder.join("repodata/repomd.xml"), text).unwrap();
    }
}

/// The text of one package of an index.
fn entry(name: &str, arch: &str, release: &str, location: &str) -> String {
    format!(
        "<package type=\"rpm\"><name>{name}</name><arch>{arch}</arch>\
         <version epoch=\"0\" ver=\"5.14.0\" rel=\"{release}\"/>\
         <checksum type=\"sha256\" pkgid=\"YES\">{}</checksum>\
         <size package=\"1000\" installed=\"1\" archive=\"1\"/>{location}\
         <format><rpm:header-range start=\"4504\" end=\"9000\"/></format></package>\n",
        "ab".repeat(32)
    )
}

fn index(packages: &str, count: usize) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metadata xmlns=\"http://linux.duke.edu/metadata/common\" \
         xmlns:rpm=\"http://linux.duke.edu/metadata/rpm\" packages=\"{count}\">\n{packages}</metadata>\n"
    )
}

/// A client, a cache and a counter.
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

    fn find(
        &self,
        bases: &[&str],
        signed: Signed,
        keys: &Trusted,
    ) -> Result<Vec<Package>, IndexError> {
        let bases: Vec<String> = bases.iter().map(|base| (*base).to_owned()).collect();
        let access = Access { fetch: &self.client, cache: &self.cache, meter: &self.meter };
        let wanted = Wanted {
            repositories: &bases,
            package: "kernel-core",
            arch: "x86_64",
            signed,
            keys: keys.keys(),
        };
        packages(&access, &wanted)
    }

    fn error(&self, base: &str, signed: Signed, keys: &Trusted) -> String {
        match self.find(&[base], signed, keys) {
            Ok(found) => panic!("found {found:?}"),
            Err(error) => error.to_string(),
        }
    }
}

fn file_url(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

// ------------------------------------------------------------------------------- what should work

#[test]
fn repositories_of_every_compression() {
    if !have_all(&["rpmbuild", "createrepo_c", "gpg", "zstd", "xz"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let packages_folder = folder.path().join("Packages/k");
    let older = Spec { release: "570.9.1.el9_6", ..KERNEL };
    let newer = Spec { release: "687.49.1.el9_8", payload: "w6.xzdio", ..KERNEL };
    rpmbuild(&packages_folder, &newer);
    rpmbuild(&packages_folder, &older);
    let other = Spec { name: "kernel-debug-core", release: "999.el9_9", ..KERNEL };
    rpmbuild(&packages_folder, &other);
    rpmbuild(&packages_folder, &Spec { arch: "noarch", release: "1000.el9_9", ..KERNEL });
    rpmbuild(&packages_folder, &Spec { payload: "w9.gzdio", ..KERNEL });

    let key = Signer::new("signer", "rsa2048");
    let trusted = Trusted::only(&key);
    let server = Server::start(folder.path());
    for compression in ["gz", "xz", "zst", "plain", "sha512", "sqlite"] {
        let _ = fs::remove_dir_all(folder.path().join("repodata"));
        match compression {
            "sqlite" => createrepo(folder.path(), &["--database"]),
            "sha512" => createrepo(folder.path(), &["--no-database", "--checksum", "sha512"]),
            "xz" => createrepo(folder.path(), &["--no-database", "--general-compress-type", "xz"]),
            _ => createrepo(folder.path(), &["--no-database"]),
        }
        if matches!(compression, "zst" | "plain") {
            let primary = glob(&folder.path().join("repodata"), "primary.xml.gz");
            let open = filter(Command::new("gzip").arg("-dc"), &fs::read(primary).unwrap());
            if compression == "zst" {
                let packed = filter(Command::new("zstd").args(["-19", "-c"]), &open);
                Index::new(&open, packed, ".zst").write(folder.path());
            } else {
                Index::new(&open, open.clone(), "").write(folder.path());
            }
        }
        key.sign(&folder.path().join("repodata/repomd.xml"));
        for base in [server.url(""), file_url(folder.path()), folder.path().display().to_string()] {
            let net = Net::new();
            let found = net.find(&[&base], Signed::Index, &trusted).unwrap();
            let versions: Vec<String> =
                found.iter().map(|package| package.evr.to_string()).collect();
            assert_eq!(
                versions,
                ["5.14.0-687.49.1.el9_8", "5.14.0-570.58.1.el9_6", "5.14.0-570.9.1.el9_6"],
                "{compression} {base}"
            );
            let first = &found[0];
            assert_eq!(first.basis, Basis::Index);
            assert_eq!(first.likely_release(), "5.14.0-687.49.1.el9_8.x86_64");
            let file = packages_folder.join("kernel-core-5.14.0-687.49.1.el9_8.x86_64.rpm");
            let bytes = fs::read(&file).unwrap();
            assert_eq!(first.size, bytes.len() as u64);
            assert!(
                first.url.ends_with("/Packages/k/kernel-core-5.14.0-687.49.1.el9_8.x86_64.rpm")
            );
            let digest = match compression {
                "sha512" => Digest::of(DigestKind::Sha512, &bytes).to_string(),
                _ => format!("sha256:{}", sha256(&bytes)),
            };
            assert_eq!(first.digest.to_string(), digest);
            // Every payload: the head fits what the index says of it, and the whole fits its digests.
            for package in &found {
                let name = package.url.rsplit('/').next().unwrap();
                let bytes = fs::read(packages_folder.join(name)).unwrap();
                let read =
                    authenticate(package, &Trusted::nobody().keys(), &mut &bytes[..]).unwrap();
                assert_eq!(read.signature, None);
                assert_eq!(Some(read.head.len() as u64), package.header_end);
                assert!(read.payload.is_some());
                verify_whole(package, Some(&read), &mut &bytes[..]).unwrap();
            }
        }
    }
}

fn glob(folder: &Path, end: &str) -> PathBuf {
    let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.to_str().unwrap().ends_with(end)).expect("the file")
}

#[test]
fn indexes_are_fetched_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = index(&entry("kernel-core", "x86_64", "1", "<location href=\"a.rpm\"/>"), 1);
    Index::plain(&text).write(folder.path());
    let server = Server::start(folder.path());
    let net = Net::new();
    for _ in 0..3 {
        net.find(&[&server.url("")], Signed::No, &Trusted::nobody()).unwrap();
    }
    // Its digest says that the kept one is the one meant.
    assert_eq!(server.hits("repodata/primary.xml"), 1);
    assert_eq!(server.hits("repodata/repomd.xml"), 3);
}

#[test]
fn the_highest_over_all_repositories() {
    let make = |entries: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        let text: String = entries
            .iter()
            .map(|(release, location)| entry("kernel-core", "x86_64", release, location))
            .collect();
        Index::plain(&index(&text, entries.len())).write(folder.path());
        folder
    };
    let release =
        make(&[("5.el9", "<location href=\"a.rpm\"/>"), ("9.el9", "<location href=\"b.rpm\"/>")]);
    let updates = make(&[
        ("10.el9", "<location href=\"../sibling/c.rpm\"/>"),
        ("9.el9", "<location xml:base=\"/elsewhere\" href=\"d.rpm\"/>"),
        ("10~rc1.el9", "<location href=\"e&amp;f^1.rpm\"/>"),
    ]);
    let bases = [file_url(release.path()), file_url(updates.path())];
    let net = Net::new();
    let found = net.find(&[&bases[0], &bases[1]], Signed::No, &Trusted::nobody()).unwrap();
    let list: Vec<(&str, &str)> =
        found.iter().map(|package| (package.evr.release.as_str(), package.url.as_str())).collect();
    let parent = file_url(updates.path().parent().unwrap());
    assert_eq!(
        list,
        [
            ("10.el9", format!("{parent}/sibling/c.rpm").as_str()),
            ("10~rc1.el9", format!("{}/e&f%5E1.rpm", bases[1]).as_str()),
            // In both: as the first has it.
            ("9.el9", format!("{}/b.rpm", bases[0]).as_str()),
            ("5.el9", format!("{}/a.rpm", bases[0]).as_str()),
        ]
    );
    assert!(found.iter().all(|package| package.basis == Basis::Nothing));

    // One that cannot be read is no reason to be content with the others.
    let missing = server_with_nothing();
    let error =
        net.find(&[&bases[0], &missing.url("")], Signed::No, &Trusted::nobody()).unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
}

fn server_with_nothing() -> Server {
    Server::start("/nonexistent")
}

#[test]
fn signatures_of_packages() {
    if !have_all(&["rpmbuild", "createrepo_c", "rpmsign", "gpg"]) {
        return;
    }
    for kind in ["rsa2048", "ed25519"] {
        let key = Signer::new("packager", kind);
        let trusted = Trusted::only(&key);
        let stranger = Trusted::only(&Signer::new("stranger", "ed25519"));
        let folder = tempfile::tempdir().unwrap();
        let old = Spec { release: "1.el9", ..KERNEL };
        let old = rpmbuild(folder.path(), &old);
        let new = rpmbuild(folder.path(), &KERNEL);
        let unsigned = fs::read(&new).unwrap();
        key.sign_package(&old);
        key.sign_package(&new);
        createrepo(folder.path(), &["--no-database"]);

        let net = Net::new();
        let server = Server::start(folder.path());
        let found = net.find(&[&server.url("")], Signed::Package, &trusted).unwrap();
        let package = &found[0];
        assert_eq!(package.basis, Basis::Nothing, "not before its own signature was checked");
        let bytes = fs::read(&new).unwrap();
        let mut source = Cursor::new(&bytes);
        let read = authenticate(package, &trusted.keys(), &mut source).unwrap();
        let signature = read.signature.clone().unwrap();
        assert_eq!((signature.key, signature.stale), (key.key.clone(), false));
        assert_eq!(source.position(), read.head.len() as u64, "no byte of the payload was read");
        verify_whole(package, Some(&read), &mut &bytes[..]).unwrap();

        let error = |bytes: &[u8], keys: &Trusted| {
            let error =
                authenticate(package, &keys.keys(), &mut &bytes[..]).unwrap_err().to_string();
            assert!(error.starts_with(&package.url), "{error}");
            error
        };
        assert!(error(&bytes, &stranger).contains("expected a signature by"));
        // The index may lie about anything, the package's own header may not.
        let old = fs::read(&old).unwrap();
        let text = error(&old, &trusted);
        assert!(
            text.contains(
                "version: the index says 5.14.0-570.58.1.el9_6, the package 5.14.0-1.el9"
            ),
            "{text}"
        );
        let lying = Package { header_end: None, ..package.clone() };
        let text =
            authenticate(&lying, &trusted.keys(), &mut &unsigned[..]).unwrap_err().to_string();
        assert!(text.contains("no signature over its header"), "{text}");
        // One bit of the header, in its text: the summary.
        let at = bytes.windows(5).position(|bytes| bytes == b"A & B").unwrap();
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(error(&changed, &trusted).contains("bad signature"));
        assert!(error(&bytes[..read.head.len() - 1], &trusted).contains("ends inside the head"));
        assert!(
            error(b"<html>not found</html>", &trusted).contains("offset 0: expected the magic")
        );
        assert!(error(b"", &trusted).contains("ends inside the head"));

        // One bit of the payload, and the index made to fit by whoever changed it.
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        let text = verify_whole(package, Some(&read), &mut &changed[..]).unwrap_err().to_string();
        assert!(text.contains("expected sha256:"), "{text}");
        let short = verify_whole(package, Some(&read), &mut &bytes[..bytes.len() - 1]).unwrap_err();
        assert!(short.to_string().contains(&format!("found {}", bytes.len() - 1)), "{short}");
        let long = [&bytes[..], b"x"].concat();
        let long = verify_whole(package, Some(&read), &mut &long[..]).unwrap_err();
        assert!(long.to_string().contains("found more"), "{long}");

        let changed_path = folder.path().join("changed.rpm");
        fs::write(&changed_path, &changed).unwrap();
        fs::remove_file(&new).unwrap();
        createrepo(folder.path(), &["--no-database"]);
        let lied = Net::new().find(&[&server.url("")], Signed::Package, &trusted).unwrap();
        let read = authenticate(&lied[0], &trusted.keys(), &mut &changed[..]).unwrap();
        let text = verify_whole(&lied[0], Some(&read), &mut &changed[..]).unwrap_err().to_string();
        assert!(text.contains("payload: expected sha256:"), "{text}");
    }
}

#[test]
fn suse_names_its_kernel_in_the_member_only() {
    let folder = tempfile::tempdir().unwrap();
    let text = entry("kernel-core", "x86_64", "160000.37.1", "<location href=\"a.rpm\"/>");
    let text = text.replace("5.14.0", "6.12.0");
    Index::plain(&index(&text, 1)).write(folder.path());
    let found =
        Net::new().find(&[&file_url(folder.path())], Signed::No, &Trusted::nobody()).unwrap();
    let member = "./usr/lib/modules/6.12.0-160000.37-default/config";
    assert_eq!(found[0].release_of(member), Some("6.12.0-160000.37-default"));
}

// ---------------------------------------------------------------------------- what should not

#[test]
fn signatures_of_indexes() {
    if !have_all(&["gpg"]) {
        return;
    }
    let key = Signer::new("signer", "rsa2048");
    let trusted = Trusted::only(&key);
    let stranger = Trusted::only(&Signer::new("stranger", "ed25519"));
    let folder = tempfile::tempdir().unwrap();
    let text = index(&entry("kernel-core", "x86_64", "1", "<location href=\"a.rpm\"/>"), 1);
    Index::plain(&text).write(folder.path());
    let repomd = folder.path().join("repodata/repomd.xml");
    key.sign(&repomd);
    let server = Server::start(folder.path());
    let base = server.url("");
    let url = server.url("repodata/repomd.xml");
    let error = |keys: &Trusted| {
        let error = Net::new().error(&base, Signed::Index, keys);
        assert!(error.starts_with(&url), "{error}");
        error
    };
    assert_eq!(Net::new().find(&[&base], Signed::Index, &trusted).unwrap().len(), 1);
    assert!(error(&stranger).contains("expected a signature by"));
    assert!(error(&Trusted::nobody()).contains("expected a signature by nobody, found one by"));

    // Changed by one byte that changes no meaning.
    let sound = fs::read_to_string(&repomd).unwrap();
    fs::write(&repomd, sound.replace("<revision>1", "<revision>2")).unwrap();
    assert!(error(&trusted).contains("bad signature"));
    fs::write(&repomd, &sound).unwrap();

    // A key that has come to its end since: no, unless stale data is allowed, and then it is said.
    let mortal = Signer::lasting("mortal", "ed25519", "1d");
    let signature = mortal.sign(&repomd);
    let mut later = Trusted { later: 3 * 86_400, ..Trusted::only(&mortal) };
    assert!(error(&later).contains("the key has expired since"));
    later.allow_stale = true;
    assert!(Net::new().find(&[&base], Signed::Index, &later).unwrap()[0].stale);

    fs::remove_file(&signature).unwrap();
    assert!(error(&trusted).contains("found no repomd.xml.asc"));
    fs::write(&signature, "garbage").unwrap();
    assert!(error(&trusted).contains("not signed: "));
    fs::write(&signature, "").unwrap();
    assert!(error(&trusted).contains("not signed: "));
    // A server in trouble is no server without a signature, and neither is a reason to do without.
    server.fault("repodata/repomd.xml.asc", Fault::Status(503, "", 99));
    let error = Net::new().error(&base, Signed::Index, &trusted);
    assert!(error.contains("503") && error.contains("repomd.xml.asc"), "{error}");
}

/// One clear line that names the address; each case is one thing wrong with a repository that is sound else.
#[test]
fn hostile_indexes() {
    if !have_all(&["gzip", "xz", "zstd"]) {
        return;
    }
    let good = entry("kernel-core", "x86_64", "1.el9", "<location href=\"a.rpm\"/>");
    let text = index(&good, 1);
    let gz = |text: &[u8]| filter(Command::new("gzip").args(["-9", "-c"]), text);
    let xz = |text: &[u8]| filter(Command::new("xz").args(["-6", "-c"]), text);
    let zst = |text: &[u8]| filter(Command::new("zstd").args(["-3", "-c"]), text);
    let sound = Index::plain(&text);
    let with = |change: &dyn Fn(&mut Index)| {
        let mut index = sound.clone();
        change(&mut index);
        index
    };
    let package = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        Index::plain(&text.replace(from, to))
    };
    let packed = |file: Vec<u8>, suffix: &str| Index::new(text.as_bytes(), file, suffix);
    let cut = |mut file: Vec<u8>, suffix: &str| {
        file.truncate(file.len() - 9);
        packed(file, suffix)
    };
    let zeros = vec![b' '; 64 << 20];
    let bomb = |suffix: &str, file: Vec<u8>| {
        let mut index = packed(file, suffix);
        index.open_size = Some(1000);
        index
    };
    let bomb_unannounced = {
        let mut index = packed(gz(&zeros), ".gz");
        index.open_size = None;
        index
    };
    let cases: Vec<(&str, Index, &str)> = vec![
        (
            "checksum",
            with(&|index| index.checksum = Some(("sha256".into(), "0".repeat(64)))),
            "primary.xml: expected sha256:0000",
        ),
        (
            "open checksum",
            with(&|index| index.open_checksum = Some(("sha256".into(), "0".repeat(64)))),
            "primary.xml, decompressed: expected sha256:0000",
        ),
        ("size", with(&|index| index.size = Some(7)), "primary.xml: expected 7 bytes, found "),
        (
            "open size, less",
            with(&|index| index.open_size = Some(7)),
            "decompressed: expected 7 bytes, found more",
        ),
        (
            "open size, more",
            with(&|index| index.open_size = Some(70_000)),
            "decompressed: expected 70000 bytes, found",
        ),
        ("size of a disk", with(&|index| index.size = Some(1 << 50)), "more than 268435456 bytes"),
        (
            "open size of a disk",
            with(&|index| index.open_size = Some(1 << 50)),
            "more than 4294967296 bytes decompressed",
        ),
        ("no checksum", with(&|index| index.checksum = None), "no checksum"),
        (
            "weak checksum",
            with(&|index| index.checksum = Some(("sha".into(), "0".repeat(40)))),
            "checksum of kind `sha`: expected sha256 or sha512",
        ),
        (
            "short checksum",
            with(&|index| index.checksum = Some(("sha256".into(), "0".repeat(63)))),
            "expected sha256, found `",
        ),
        (
            "no checksum's digits",
            with(&|index| index.checksum = Some(("sha256".into(), "x".repeat(64)))),
            "expected sha256, found `",
        ),
        (
            "only sqlite",
            with(&|index| index.kind = "primary_db"),
            "the primary index only as primary_db; primary.xml is what can be read",
        ),
        ("only zchunk", with(&|index| index.kind = "primary_zck"), "only as primary_zck"),
        ("none", with(&|index| index.kind = "filelists"), "no primary index"),
        ("sqlite inside", packed(b"SQLite format 3\0...".to_vec(), ""), "an SQLite database"),
        ("zchunk inside", packed(b"\0ZCK1...".to_vec(), ".gz"), "compressed with zchunk"),
        (
            "above the root",
            with(&|index| index.name = "../".repeat(40) + "etc/passwd"),
            "leads above the root of the host",
        ),
        (
            "another host",
            with(&|index| index.name = "http://198.51.100.1/primary.xml".into()),
            "on another host",
        ),
        (
            "a local file",
            with(&|index| index.name = "file://localhost/etc/passwd".into()),
            "another scheme",
        ),
        (
            "document type",
            with(&|index| index.prolog = "<!DOCTYPE repomd [<!ENTITY a \"b\">]>"),
            "repomd.xml: damaged repomd.xml at offset",
        ),
        (
            "document type of the primary",
            Index::plain(
                &text.replace("<metadata", "<!DOCTYPE m [<!ENTITY a \"&b;&b;\">]><metadata"),
            ),
            "a document type declaration",
        ),
        ("entity", package("<name>kernel-core", "<name>&lol;"), "an entity `&lol;`"),
        ("entity in an attribute", package("rel=\"1.el9\"", "rel=\"&lol;\""), "lol"),
        ("count, more", Index::plain(&index(&good, 2)), "expected 2 packages, found 1"),
        (
            "count, less",
            Index::plain(&index(&format!("{good}{good}"), 1)),
            "expected 1 packages, found 2",
        ),
        (
            "count, none",
            package("packages=\"1\"", "packages=\"many\""),
            "packages: expected a number, found `many`",
        ),
        ("cut", Index::plain(&text[..text.len() - 20]), "damaged primary.xml at offset"),
        ("not closed", package("</format>", ""), "damaged primary.xml at offset"),
        (
            "html",
            Index::plain("<html><body>moved</body></html>"),
            "expected `metadata`, found `html`",
        ),
        ("empty", Index::plain(""), "it has no element"),
        ("text", Index::plain("moved"), "it has no element"),
        ("two roots", Index::plain(&format!("{text}<metadata/>")), "expected one root element"),
        ("no location", package("<location href=\"a.rpm\"/>", ""), "no location"),
        (
            "a location above the root",
            package("a.rpm", &("../".repeat(40) + "a.rpm")),
            "leads above the root of the host",
        ),
        (
            "a location elsewhere",
            package("a.rpm", "https://198.51.100.1/a.rpm"),
            "on another host or of another scheme",
        ),
        (
            "a base elsewhere",
            package("<location ", "<location xml:base=\"ftp://h/\" "),
            "on another host or of another scheme",
        ),
        (
            "no size",
            package("<size package=\"1000\" installed=\"1\" archive=\"1\"/>", ""),
            "no size",
        ),
        (
            "a negative size",
            package("package=\"1000\"", "package=\"-1\""),
            "expected a number, found `-1`",
        ),
        (
            "a weak checksum of the package",
            package("type=\"sha256\"", "type=\"md5\""),
            "checksum of kind `md5`",
        ),
        (
            "a version that is a path",
            package("rel=\"1.el9\"", "rel=\"1/../../x\""),
            "expected a version, found `1/../../x`",
        ),
        ("no version", package("rel=\"1.el9\"", ""), "expected a version"),
        (
            "an epoch that is none",
            package("epoch=\"0\"", "epoch=\"x\""),
            "expected a number as epoch",
        ),
        (
            "another name",
            package("<name>kernel-core", "<name>kernel-core2"),
            "no package `kernel-core` for x86_64",
        ),
        (
            "another architecture",
            package("<arch>x86_64", "<arch>aarch64"),
            "no package `kernel-core` for x86_64",
        ),
        ("gzip cut", cut(gz(text.as_bytes()), ".gz"), "damaged compressed primary.xml"),
        ("xz cut", cut(xz(text.as_bytes()), ".xz"), "damaged compressed primary.xml"),
        ("zstd cut", cut(zst(text.as_bytes()), ".zst"), "damaged compressed primary.xml"),
        ("gzip bomb", bomb(".gz", gz(&zeros)), "decompressed: expected 1000 bytes, found more"),
        ("xz bomb", bomb(".xz", xz(&zeros)), "decompressed: expected 1000 bytes, found more"),
        ("zstd bomb", bomb(".zst", zst(&zeros)), "decompressed: expected 1000 bytes, found more"),
        ("one text of 64 MiB", bomb_unannounced, "a tag or text of more than 1048576 bytes"),
        ("nested", Index::plain(&"<metadata>".repeat(100_000)), "damaged primary.xml"),
        (
            "long value",
            package("<name>kernel-core", &format!("<name>{}", "k".repeat(100_000))),
            "a value of more than",
        ),
    ];
    for (what, index, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        index.write(folder.path());
        let server = Server::start(folder.path());
        for base in [server.url(""), file_url(folder.path())] {
            let error = Net::new().error(&base, Signed::No, &Trusted::nobody());
            assert!(error.contains(expected), "{what}: {error}");
            let start = base.trim_end_matches('/');
            assert!(error.starts_with(start) || error.contains("http://198"), "{what}: {error}");
            assert!(!error.contains('\n') && error.len() < 1000, "{what}: {error}");
        }
    }
}

#[test]
fn servers_in_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let text = index(&entry("kernel-core", "x86_64", "1", "<location href=\"a.rpm\"/>"), 1);
    Index::plain(&text).write(folder.path());
    let server = Server::start(folder.path());
    let primary = "repodata/primary.xml";
    for (path, fault, expected) in [
        ("repodata/repomd.xml", Fault::Status(404, "", 99), "404"),
        ("repodata/repomd.xml", Fault::Status(403, "", 99), "403"),
        ("repodata/repomd.xml", Fault::Garbage, "damaged repomd.xml"),
        (primary, Fault::Status(404, "", 99), "404"),
        (primary, Fault::Garbage, "expected sha256:"),
        (primary, Fault::Cut(100), "offset 100"),
        (primary, Fault::LongerLength(10), "primary.xml: offset"),
    ] {
        server.heal();
        server.fault(path, fault.clone());
        let error = Net::new().error(&server.url(""), Signed::No, &Trusted::nobody());
        assert!(error.contains(expected) && error.contains(path), "{fault:?}: {error}");
    }
    // Credentials are for the server, not for messages.
    server.heal();
    server.fault(primary, Fault::Garbage);
    let base = server.url("").replace("http://", "http://user:secret@");
    let error = Net::new().error(&base, Signed::No, &Trusted::nobody());
    assert!(!error.contains("secret"), "{error}");
    server.heal();
    let found = Net::new().find(&[&base], Signed::No, &Trusted::nobody()).unwrap();
    assert!(!found[0].repository.contains("secret") && found[0].url.contains("user:secret@"));
}

#[test]
fn no_repository_is_no_package() {
    let error = Net::new().find(&[], Signed::No, &Trusted::nobody()).unwrap_err().to_string();
    assert_eq!(error, "no repository: no package `kernel-core` for x86_64");
}

// ------------------------------------------------------------------------------- the machine's own

fn root(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn configuration(files: &[(&str, &str)]) -> dnf::Configuration {
    let root = root(files);
    dnf::read(&DirTree::open(root.path()).unwrap(), "x86_64")
}

#[test]
fn dnf_of_an_enterprise_rebuild() {
    let read = configuration(&[
        ("etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.8\"\n"),
        ("etc/dnf/vars/contentdir", "pub/rocky\n"),
        (
            "etc/dnf/dnf.conf",
            "[main]\ngpgcheck=1\nproxy=http://proxy.invalid:3128\nproxy_username=me\nproxy_password=a b\n",
        ),
        (
            "etc/yum.repos.d/rocky.repo",
            "# comment\n[baseos]\nname=Rocky $releasever\nmirrorlist=https://m.invalid/?r=$releasever\n\
             baseurl=http://mirror.invalid/$contentdir/$releasever/BaseOS/$basearch/os/\nenabled=1\n\
             gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9\n\n\
             [extras]\nmirrorlist=https://m.invalid/?r=$releasever\n\n\
             [off]\nbaseurl=http://mirror.invalid/off\nenabled = 0\n\n\
             [two]\nbaseurl = http://a.invalid/${releasever}/x,\n  https://b.invalid/x\n    ftp://c.invalid/x\n\
             repo_gpgcheck=yes\ngpgcheck=0\nproxy=_none_\nusername=u\npassword=p@\n",
        ),
        ("etc/yum.repos.d/broken.repo", "nonsense\n[x]\nbaseurl=http://h.invalid/$stream/x\n"),
        ("etc/yum.repos.d/other.txt", "[y]\nbaseurl=http://h.invalid/y\n"),
    ]);
    let list: Vec<(&str, Vec<&str>)> = read
        .repositories
        .iter()
        .map(|repository| {
            (repository.id.as_str(), repository.bases.iter().map(String::as_str).collect())
        })
        .collect();
    assert_eq!(
        list,
        [
            ("baseos", vec!["http://mirror.invalid/pub/rocky/9/BaseOS/x86_64/os/"]),
            ("extras", vec![]),
            ("two", vec!["http://u:p%40@a.invalid/9/x", "https://u:p%40@b.invalid/x"]),
        ]
    );
    let [baseos, extras, two] = &read.repositories[..] else { panic!() };
    assert!(baseos.packages_signed && !baseos.index_signed);
    assert_eq!(baseos.keys, ["file:///etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9"]);
    assert_eq!((baseos.path.as_str(), baseos.line), ("/etc/yum.repos.d/rocky.repo", 2));
    assert_eq!(extras.mirror_list.as_deref(), Some("https://m.invalid/?r=9"));
    assert_eq!((&baseos.mirror_list, &two.mirror_list), (&extras.mirror_list, &None));
    assert!(!two.packages_signed && two.index_signed);
    assert_eq!((&baseos.proxy, &two.proxy), (&None, &Some(None)));
    let proxy = read.proxies.unwrap().all.unwrap();
    assert_eq!(proxy, "http://me:a%20b@proxy.invalid:3128");
    let notes = read.notes.join("\n");
    for expected in [
        "/etc/yum.repos.d/broken.repo: line 1: neither section nor option",
        "line 2: repository `x`: variable `stream` has no value here",
        "repository `two`: `ftp://c.invalid/x` is neither http, https nor file",
    ] {
        assert!(notes.contains(expected), "{expected}: {notes}");
    }
    assert_eq!(read.notes.len(), 3, "{notes}");
}

#[test]
fn dnf_takes_variables_from_where_it_is_told() {
    let read = configuration(&[
        ("etc/os-release", "ID=fedora\nVERSION_ID=43\n"),
        (
            "etc/dnf/dnf.conf",
            "[main]\nreposdir=/opt/repos, /opt/more\nvarsdir=/opt/vars\n[inside]\nbaseurl=file:///srv/$releasever/$arch/${none:-x}\n",
        ),
        ("opt/repos/a.repo", "[a]\nbaseurl=http://a.invalid/$releasever/$v\n"),
        ("opt/vars/v", "w\nz\n"),
        ("etc/yum.repos.d/ignored.repo", "[ignored]\nbaseurl=http://i.invalid/\n"),
    ]);
    let bases: Vec<&str> =
        read.repositories.iter().flat_map(|found| &found.bases).map(String::as_str).collect();
    assert_eq!(bases, ["http://a.invalid/43/w", "file:///srv/43/x86_64/x"]);
    assert_eq!((read.proxies, read.notes.len()), (None, 0));
}

#[test]
fn a_machine_without_dnf_has_no_repositories() {
    assert_eq!(configuration(&[("etc/os-release", "ID=debian\n")]), dnf::Configuration::default());
    // A link that leads out of the root stays inside; what is no file is told, not read.
    let root = root(&[("etc/yum.repos.d/x", "")]);
    let folder = root.path().join("etc/yum.repos.d");
    std::os::unix::fs::symlink("/etc/passwd", folder.join("a.repo")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.join("b.repo")).unwrap();
    std::os::unix::fs::symlink("b.repo", folder.join("c.repo")).unwrap();
    let read = dnf::read(&DirTree::open(root.path()).unwrap(), "x86_64");
    assert_eq!(read.repositories, []);
}

#[test]
fn a_mirror_that_answers_is_taken_from_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let repodata = folder.path().join("good/repodata");
    fs::create_dir_all(&repodata).unwrap();
    fs::write(repodata.join("repomd.xml"), "<repomd/>").unwrap();
    let good = format!("{}/good", file_url(folder.path()));
    let net = Net::new();
    let access = Access { fetch: &net.client, cache: &net.cache, meter: &net.meter };
    let read = configuration(&[(
        "etc/yum.repos.d/a.repo",
        &format!(
            "[a]\nbaseurl=file:///none/a {good}\n[b]\nbaseurl=file:///none/b\n[c]\nmirrorlist=file:///none/c\n"
        ),
    )]);
    let [a, b, c] = &read.repositories[..] else { panic!() };
    assert_eq!(reachable(&access, a).unwrap(), good);
    assert!(reachable(&access, b).unwrap_err().to_string().contains("/none/b/repodata/repomd.xml"));
    assert!(reachable(&access, c).unwrap_err().to_string().contains("/none/c"));
}
