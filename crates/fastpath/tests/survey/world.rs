//! Repositories with one key, and machines that survey them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use fastpath_knowledge::Knowledge;
use serde_json::Value;

use crate::common::pacman::{database, desc, tar};
use crate::common::repository::{Deb, Repository};
use crate::common::rpm::{Spec, createrepo, rpmbuild};
use crate::common::{have_all, noise};
use crate::server::Server;

/// A configuration with or without the option.
pub(crate) fn config(version: &str, yes: bool) -> String {
    let option = if yes { "CONFIG_PCI_P2PDMA=y" } else { "# CONFIG_PCI_P2PDMA is not set" };
    let header = format!("# Linux/x86 {version} Kernel Configuration");
    format!("{header}\nCONFIG_PCI=y\n{option}\nCONFIG_MAGIC_SYSRQ=y\n")
}

/// Targets beside the catalogue's, for what is not about any one distribution.
const TARGETS: &str = r#"
[[target]]
name = "test-deb"
id = "test-deb"
os_id = "test"
os_version = "1"
distribution = "Test"
version = "1"
flavour = "default"
[target.source]
family = "deb"
arch = "amd64"
repositories = []
suites = ["test"]
components = ["main"]
package = "linux-image-amd64"
follow = "deb-image-headers"
signed = "index"
keys = "rocky"

[[target]]
name = "test-rpm"
id = "test-rpm"
os_id = "test"
os_version = "1"
distribution = "Test"
version = "1"
flavour = "rt"
[target.source]
family = "rpm"
arch = "x86_64"
repositories = []
package = "kernel-core"
follow = "rpm-highest"
signed = "index"
keys = "rocky"

[[target]]
name = "test-signed"
id = "test-signed"
os_id = "test"
os_version = "1"
distribution = "Test"
version = "1"
flavour = "default"
[target.source]
family = "rpm"
arch = "x86_64"
repositories = []
package = "kernel-core"
follow = "rpm-highest"
signed = "package"
keys = "rocky"

[[target]]
name = "test-pacman"
id = "test-pacman"
os_id = "test"
os_version = "1"
distribution = "Test"
version = "1"
flavour = "default"
[target.source]
family = "pacman"
arch = "x86_64"
repositories = []
package = "linux"
follow = "pacman"
signed = "package"
keys = "rocky"
"#;

/// Everything that is made once: repositories, the key that signs them and may sign for every distribution.
pub(crate) struct World {
    pub(crate) repository: Repository,
    pub(crate) server: Server,
}

impl World {
    /// An empty one with targets of its own, unless a tool is missing.
    pub(crate) fn new(tools: &[&str]) -> Option<Self> {
        Self::with(tools, TARGETS)
    }

    /// An empty one with more knowledge than the key.
    pub(crate) fn with(tools: &[&str], knowledge: &str) -> Option<Self> {
        if !have_all(tools) {
            return None;
        }
        let repository = Repository::empty();
        repository.key_file();
        let embedded = Knowledge::embedded().expect("the knowledge");
        let sets: BTreeSet<String> =
            embedded.targets().map(|target| target.source.keys.clone()).collect();
        let mut knowledge = knowledge.to_owned();
        for set in sets {
            write!(
                knowledge,
                "[[key]]\ndistribution = \"{set}\"\nversion = \"*\"\nfingerprint = \"{}\"\nname = \"t\"\n\
                 signs = \"package\"\nsource = \"the test\"\n",
                repository.key
            )
            .expect("a string takes all");
        }
        fs::write(repository.root().join("knowledge.toml"), knowledge).expect("written");
        let server = Server::start(repository.root());
        Some(Self { repository, server })
    }

    /// A machine that was never here before.
    pub(crate) fn machine(&self) -> Machine<'_> {
        Machine { world: self, home: tempfile::tempdir().expect("a folder") }
    }

    /// The folder of a repository.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.repository.root().join(name)
    }

    /// What `test-deb` reads: a kernel whose image is larger than one request brings.
    pub(crate) fn debian_kernel(&self, release: &str, version: &str, yes: bool) {
        self.repository.suite(
            "test",
            &[
                Deb::new("linux-image-amd64", version).depends(&format!("linux-image-{release}")),
                Deb::new(&format!("linux-image-{release}"), version)
                    .file("boot/a-noise", 300_000)
                    .content(&format!("boot/config-{release}"), config("6.1.9", yes)),
            ],
        );
    }

    /// What `test-pacman` reads: the headers hold the configuration and are smaller than the kernel. Gives their package.
    pub(crate) fn arch_kernel(&self, version: &str, release: &str, yes: bool) -> PathBuf {
        let folder = self.folder("arch/core/os/x86_64");
        fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str| folder.join(format!("{name}-{version}-x86_64.pkg.tar.zst"));
        let mut descs = Vec::new();
        for (name, path, content) in [
            ("linux", "vmlinuz", noise(90_000)),
            ("linux-headers", "build/.config", config("7.1.3-arch1", yes).into_bytes()),
        ] {
            let work = tempfile::tempdir().expect("a folder");
            let modules = work.path().join(format!("usr/lib/modules/{release}"));
            fs::create_dir_all(modules.join("build")).expect("a folder");
            fs::write(modules.join("build/noise"), noise(100_000)).expect("written");
            fs::write(modules.join(path), content).expect("written");
            tar(work.path(), &file(name), "zstd");
            let signature = format!("{}.sig", file(name).display());
            let signed = file(name).display().to_string();
            let key = self.repository.key.as_str();
            self.repository.gpg.run(&["-u", key, "--detach-sign", "--output", &signature, &signed]);
            descs.push(desc(name, version, &fs::read(file(name)).expect("the package"), ""));
        }
        database(&folder.join("core.db"), &descs, "gzip");
        file("linux-headers")
    }

    /// What `test-rpm` reads.
    pub(crate) fn rpm_kernel(&self, version: &str, release: &str, yes: bool) {
        self.rpm_package("rpm", version, release, yes);
        self.rpm_index("rpm");
    }

    /// Builds the package of a kernel into an rpm repository; gives its path.
    pub(crate) fn rpm_package(
        &self,
        name: &str,
        version: &str,
        release: &str,
        yes: bool,
    ) -> PathBuf {
        let member = format!("/lib/modules/{version}-{release}.x86_64/config");
        let config = config(version, yes);
        let spec = Spec {
            name: "kernel-core",
            epoch: 0,
            version,
            release,
            arch: "x86_64",
            payload: "w3.zstdio",
            member: &member,
            config: &config,
            noise: 300_000,
        };
        rpmbuild(&self.folder(name), &spec)
    }

    /// Indexes an rpm repository anew, and signs that.
    pub(crate) fn rpm_index(&self, name: &str) {
        createrepo(&self.folder(name), &["--no-database", "--general-compress-type", "gz"]);
        let repomd = self.folder(name).join("repodata/repomd.xml");
        self.repository.gpg.sign(&repomd, &self.repository.key);
    }
}

/// One machine: a cache and a data set.
pub(crate) struct Machine<'w> {
    world: &'w World,
    home: tempfile::TempDir,
}

/// What the program said.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn of(child: Child) -> Self {
        let output = child.wait_with_output().expect("the program ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        Self {
            code: output.status.code().expect("it ends by itself"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Each line of the output, as JSON.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let row = |line| serde_json::from_str(line).expect("a record");
        self.stdout.lines().map(row).collect()
    }

    /// The one row.
    pub(crate) fn row(&self) -> Value {
        let mut rows = self.rows();
        assert_eq!(rows.len(), 1, "{}{}", self.stdout, self.stderr);
        rows.remove(0)
    }

    /// What went wrong, without the word in front.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter_map(|line| line.strip_prefix("error: ")).collect()
    }
}

impl Machine<'_> {
    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data/survey.jsonl")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.home.path().join("cache")
    }

    /// Starts the program.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_fastpath"))
            .args(arguments)
            .arg("--knowledge")
            .arg(self.world.folder("knowledge.toml"))
            .env("XDG_CACHE_HOME", self.cache())
            .env("NO_PROXY", "127.0.0.1")
            .env_remove("no_proxy")
            .env_remove("HIPFILE_KNOWLEDGE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    /// Runs the program on the machine's data set.
    pub(crate) fn fastpath(&self, arguments: &[&str]) -> Answer {
        let data = self.data().display().to_string();
        Answer::of(self.start(&[arguments, &["--data", &data]].concat()))
    }

    /// Surveys targets of these mirrors, as JSON if nothing else is said; other arguments as they are.
    pub(crate) fn survey(&self, mirrors: &[(&str, &str)], more: &[&str]) -> Answer {
        let keyring = self.world.repository.key_file().display().to_string();
        let mirrors: Vec<String> =
            mirrors.iter().map(|(id, base)| format!("--mirror={id}={base}")).collect();
        let mut arguments = vec!["survey", "--keyring", &keyring];
        if !more.contains(&"--format") {
            arguments.extend(["--format", "json"]);
        }
        arguments.extend(mirrors.iter().map(String::as_str));
        arguments.extend(more);
        self.fastpath(&arguments)
    }
}

/// Does all of these, several at once.
pub(crate) fn at_once<T: Send>(jobs: Vec<T>, work: impl Fn(T) + Sync) {
    let jobs = Mutex::new(jobs.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().expect("no job panics in the lock").next();
                    let Some(job) = job else { break };
                    work(job);
                }
            });
        }
    });
}
