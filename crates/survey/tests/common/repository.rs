//! Repositories made with the tools that distributions make theirs with.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastpath_survey::trust::{Digest, DigestKind, Fingerprint};

use super::{Gpg, have, noise};

/// A package that is to be in a suite.
#[derive(Clone, Debug)]
pub(crate) struct Deb {
    name: String,
    version: String,
    depends: String,
    files: Vec<(String, Vec<u8>)>,
}

impl Deb {
    pub(crate) fn new(name: &str, version: &str) -> Self {
        let (name, version) = (name.to_owned(), version.to_owned());
        Self { name, version, depends: String::new(), files: Vec::new() }
    }

    pub(crate) fn depends(mut self, depends: &str) -> Self {
        depends.clone_into(&mut self.depends);
        self
    }

    /// A file of so many bytes that do not compress.
    pub(crate) fn file(self, path: &str, size: usize) -> Self {
        self.content(path, noise(size))
    }

    /// A file with this content.
    pub(crate) fn content(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.to_owned(), content.into()));
        self
    }

    fn build(&self, pool: &Path) {
        let work = tempfile::tempdir().unwrap();
        let control = work.path().join("DEBIAN");
        fs::create_dir(&control).unwrap();
        let mut text = format!(
            "Package: {}\nVersion: {}\nArchitecture: amd64\nMaintainer: T <t@t.invalid>\nDescription: test\n a second line: with a colon\n",
            self.name, self.version
        );
        if !self.depends.is_empty() {
            writeln!(text, "Depends: {}", self.depends).unwrap();
        }
        fs::write(control.join("control"), text).unwrap();
        for (path, bytes) in &self.files {
            let path = work.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let name = format!("{}_{}_amd64.deb", self.name, self.version.replace(':', "%3a"));
        let work = work.path().to_str().unwrap().to_owned();
        run(
            "dpkg-deb",
            &[
                "-Zxz",
                "-z1",
                "--root-owner-group",
                "--build",
                &work,
                pool.join(name).to_str().unwrap(),
            ],
            pool,
        );
    }
}

fn run(tool: &str, arguments: &[&str], folder: &Path) -> Vec<u8> {
    super::run(Command::new(tool).args(arguments).current_dir(folder))
}

/// How a suite is made.
#[derive(Clone, Debug)]
pub(crate) struct Making {
    /// Fields of the signed file.
    pub(crate) fields: BTreeMap<&'static str, String>,
    /// Files under names that are their hashes.
    pub(crate) by_hash: bool,
    /// `InRelease`, and `Release` with `Release.gpg`.
    pub(crate) inline: bool,
    pub(crate) detached: bool,
    /// Endings of the index.
    pub(crate) endings: Vec<&'static str>,
    /// The one component.
    pub(crate) component: &'static str,
}

impl Default for Making {
    fn default() -> Self {
        let (inline, by_hash) = (true, true);
        let endings = vec!["", ".gz", ".xz"];
        let (detached, component) = (true, "main");
        Self { fields: BTreeMap::new(), by_hash, inline, detached, endings, component }
    }
}

/// What suites are made with.
pub(crate) const TOOLS: [&str; 4] = ["gpg", "apt-ftparchive", "dpkg-deb", "xz"];

/// A repository with a key of its own.
pub(crate) struct Repository {
    folder: tempfile::TempDir,
    pub(crate) gpg: Gpg,
    pub(crate) key: Fingerprint,
}

impl Repository {
    /// An empty one; `Err` says which tool is missing.
    pub(crate) fn new() -> Result<Self, String> {
        let missing = TOOLS.iter().find(|tool| !have(tool));
        missing.map_or_else(|| Ok(Self::empty()), |tool| Err(format!("{tool} is not installed")))
    }

    /// An empty one, for who has what is needed of the tools.
    pub(crate) fn empty() -> Self {
        let gpg = Gpg::new();
        let key = gpg.key("Repository <r@t.invalid>", "ed25519", "sign", "never");
        Self { folder: tempfile::tempdir().unwrap(), gpg, key }
    }

    /// What a server serves.
    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the repository below that.
    pub(crate) fn base(&self) -> PathBuf {
        self.archive("debian").base
    }

    /// One of several repositories with the same key.
    pub(crate) fn archive(&self, name: &'static str) -> Archive<'_> {
        let base = self.folder.path().join(name);
        Archive { base, name, gpg: &self.gpg, key: &self.key }
    }

    /// The file of the public key.
    pub(crate) fn key_file(&self) -> PathBuf {
        let file = self.folder.path().join("key.gpg");
        if !file.exists() {
            self.gpg.export(&file, &[self.key.as_str()]);
        }
        file
    }

    pub(crate) fn keyring(&self) -> fastpath_survey::trust::Keyring {
        let mut keyring = fastpath_survey::trust::Keyring::default();
        keyring.add(&self.key_file()).unwrap();
        keyring
    }

    pub(crate) fn suite(&self, name: &str, packages: &[Deb]) {
        self.archive("debian").suite(name, packages);
    }

    pub(crate) fn suite_made(&self, name: &str, packages: &[Deb], making: &Making) {
        self.archive("debian").suite_made(name, packages, making);
    }

    pub(crate) fn index(&self, name: &str, index: &[u8], making: &Making) {
        self.archive("debian").index(name, index, making);
    }

    pub(crate) fn sign(&self, name: &str, making: &Making) {
        self.archive("debian").sign(name, making);
    }

    pub(crate) fn index_paths(&self, name: &str, ending: &str) -> Vec<String> {
        self.archive("debian").index_paths(name, ending)
    }
}

/// A folder with `dists` and `pool`.
pub(crate) struct Archive<'a> {
    pub(crate) base: PathBuf,
    name: &'static str,
    gpg: &'a Gpg,
    key: &'a Fingerprint,
}

impl Archive<'_> {
    pub(crate) fn suite(&self, name: &str, packages: &[Deb]) {
        self.suite_made(name, packages, &Making::default());
    }

    pub(crate) fn suite_made(&self, name: &str, packages: &[Deb], making: &Making) {
        let base = &self.base;
        let pool = format!("pool/{name}");
        fs::create_dir_all(base.join(&pool)).unwrap();
        for package in packages {
            package.build(&base.join(&pool));
        }
        let index = run("apt-ftparchive", &["packages", &pool], base);
        self.index(name, &index, making);
    }

    /// A suite of an index that is given.
    pub(crate) fn index(&self, name: &str, index: &[u8], making: &Making) {
        let dists = self.base.join("dists").join(name);
        let folder = dists.join(making.component).join("binary-amd64");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("Packages"), index).unwrap();
        run("xz", &["-k", "-f", "-1", "Packages"], &folder);
        run("gzip", &["-k", "-f", "-n", "Packages"], &folder);
        for ending in ["", ".gz", ".xz"] {
            let file = folder.join(format!("Packages{ending}"));
            if !making.endings.contains(&ending) {
                fs::remove_file(file).unwrap();
                continue;
            }
            if making.by_hash {
                let bytes = fs::read(file).unwrap();
                let hashed = folder.join("by-hash/SHA256");
                fs::create_dir_all(&hashed).unwrap();
                fs::write(hashed.join(Digest::of(DigestKind::Sha256, &bytes).hex()), bytes)
                    .unwrap();
            }
        }
        self.sign(name, making);
    }

    /// Writes and signs the file of the suite anew.
    pub(crate) fn sign(&self, name: &str, making: &Making) {
        let dists = self.base.join("dists").join(name);
        for file in ["InRelease", "Release", "Release.gpg"] {
            let _ = fs::remove_file(dists.join(file));
        }
        let mut fields = making.fields.clone();
        fields.entry("Suite").or_insert_with(|| name.to_owned());
        fields.entry("Codename").or_insert_with(|| name.to_owned());
        if making.by_hash {
            fields.entry("Acquire-By-Hash").or_insert_with(|| "yes".to_owned());
        }
        // `apt-ftparchive` only takes a duration for this one.
        let until = fields.remove("Valid-Until");
        let options: Vec<String> = fields
            .iter()
            .flat_map(|(field, value)| {
                ["-o".to_owned(), format!("APT::FTPArchive::Release::{field}={value}")]
            })
            .collect();
        let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
        arguments.extend(["release", "."]);
        let mut release = run("apt-ftparchive", &arguments, &dists);
        if let Some(until) = until {
            release.splice(..0, format!("Valid-Until: {until}\n").into_bytes());
        }
        if making.inline {
            let signed =
                self.gpg.run_with(&["-u", self.key.as_str(), "--clearsign", "-o", "-"], &release);
            fs::write(dists.join("InRelease"), signed).unwrap();
        }
        if making.detached {
            let signature = self.gpg.run_with(
                &["-u", self.key.as_str(), "--armor", "--detach-sign", "-o", "-"],
                &release,
            );
            fs::write(dists.join("Release"), release).unwrap();
            fs::write(dists.join("Release.gpg"), signature).unwrap();
        }
    }

    /// Paths of a suite's index files below the served folder, the names that are hashes first.
    pub(crate) fn index_paths(&self, name: &str, ending: &str) -> Vec<String> {
        let below = format!("dists/{name}/main/binary-amd64");
        let bytes = fs::read(self.base.join(format!("{below}/Packages{ending}"))).unwrap();
        let below = format!("{}/{below}", self.name);
        let hash = Digest::of(DigestKind::Sha256, &bytes).hex();
        vec![format!("{below}/by-hash/SHA256/{hash}"), format!("{below}/Packages{ending}")]
    }
}
