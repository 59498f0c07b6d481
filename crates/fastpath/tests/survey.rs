//! The survey from end to end, on repositories made with the distributions' own tools and signed with a key of the test.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const YES: &str = "# Linux/x86 6.12.9 Kernel Configuration\nCONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\nCONFIG_MAGIC_SYSRQ=y\n";
const NO: &str = "# Linux/x86 6.1.9 Kernel Configuration\nCONFIG_PCI=y\n# CONFIG_PCI_P2PDMA is not set\nCONFIG_MAGIC_SYSRQ=y\n";

/// A place for everything, and the key that signs.
struct World {
    directory: tempfile::TempDir,
    fingerprint: String,
}

fn sh(directory: &Path, script: &str) -> String {
    let Output { status, stdout, stderr } = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(directory)
        .env("GNUPGHOME", directory.join("gnupg"))
        .output()
        .expect("bash runs");
    assert!(status.success(), "{script}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).into_owned()
}

/// Makes a world, unless a tool is missing.
fn world(tools: &[&str]) -> Option<World> {
    let missing = tools.iter().find(|tool| {
        !Command::new("sh")
            .args(["-c", &format!("command -v {tool}")])
            .output()
            .is_ok_and(|out| out.status.success())
    });
    if let Some(tool) = missing {
        println!("skipped, because {tool} is not installed");
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    sh(
        here,
        "mkdir -m 700 gnupg && gpg --batch --quiet --pinentry-mode loopback --passphrase '' \
         --quick-generate-key 'Test <t@example.invalid>' rsa2048 sign never && gpg --export > keyring.gpg",
    );
    let listed = sh(here, "gpg --with-colons --list-keys");
    let fingerprint = listed.lines().find(|line| line.starts_with("fpr")).expect("a fingerprint");
    let fingerprint = fingerprint.split(':').nth(9).expect("a fingerprint").to_owned();
    Some(World { directory, fingerprint })
}

impl World {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn sh(&self, script: &str) -> String {
        sh(self.directory.path(), script)
    }

    /// A knowledge file with the test's key and one target.
    fn target(&self, id: &str, source: &str) {
        let url = format!("file://{}", self.path("repo").display());
        let fingerprint = &self.fingerprint;
        self.write(
            "knowledge.toml",
            &format!(
                "[[key]]\ndistribution = \"test\"\nversion = \"*\"\nfingerprint = \"{fingerprint}\"\nname = \"t\"\n\
                 signs = \"index\"\nsource = \"the test\"\n\n[[target]]\nname = \"{id}\"\nid = \"{id}\"\nos_id = \"test\"\n\
                 os_version = \"1\"\ndistribution = \"Test\"\nversion = \"1\"\nflavour = \"default\"\n[target.source]\n\
                 repositories = [\"{url}\"]\nkeys = \"test\"\n{source}\n"
            ),
        );
    }

    fn fastpath(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_fastpath"))
            .args(arguments)
            .arg("--knowledge")
            .arg(self.path("knowledge.toml"))
            .arg("--data")
            .arg(self.path("data/survey.jsonl"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("HIPFILE_KNOWLEDGE")
            .output()
            .expect("the program runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        (output.status.code().expect("it ends"), text(output.stdout), text(output.stderr))
    }

    fn survey(&self, more: &[&str]) -> (i32, Value, String) {
        let keyring = self.path("keyring.gpg").display().to_string();
        let arguments = [&["survey", "--format", "json", "--keyring", &keyring][..], more].concat();
        let (code, stdout, stderr) = self.fastpath(&arguments);
        let record = stdout.lines().next().and_then(|line| serde_json::from_str(line).ok());
        (code, record.unwrap_or(Value::Null), stderr)
    }

    fn deb(&self, name: &str, version: &str, depends: &str, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.write(&format!("build/{name}/{path}"), text);
        }
        self.write(
            &format!("build/{name}/DEBIAN/control"),
            &format!(
                "Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: t <t@example.invalid>\n\
                 {depends}Description: test\n"
            ),
        );
        self.sh(&format!(
            "mkdir -p repo/pool && dpkg-deb --root-owner-group -Zxz -b build/{name} repo/pool/{name}_{version}.deb >/dev/null"
        ));
    }

    fn deb_index(&self) {
        self.sh(
            "cd repo && mkdir -p dists/test/main/binary-amd64 && apt-ftparchive packages pool > dists/test/main/binary-amd64/Packages \
             && xz -kf dists/test/main/binary-amd64/Packages && rm -f dists/test/InRelease dists/test/Release && \
             apt-ftparchive -o APT::FTPArchive::Release::Suite=test -o APT::FTPArchive::Release::Codename=test \
             release dists/test > ../Release && mv ../Release dists/test/ && \
             gpg --batch --quiet --clearsign -o dists/test/InRelease dists/test/Release",
        );
    }
}

const DEB: &str = "family = \"deb\"\narch = \"amd64\"\nsuites = [\"test\"]\ncomponents = [\"main\"]\n\
                   package = \"linux-image-amd64\"\nfollow = \"deb-image-headers\"\nsigned = \"index\"";

#[test]
fn a_debian_target_from_index_to_row_to_difference() {
    let Some(world) = world(&["gpg", "dpkg-deb", "apt-ftparchive", "xz"]) else { return };
    world.target("test-1", DEB);
    let kernel = |release: &str, version: &str, config: &str| {
        world.deb("linux-image-amd64", version, &format!("Depends: linux-image-{release}\n"), &[]);
        world.deb(
            &format!("linux-image-{release}"),
            version,
            "",
            &[(&format!("boot/config-{release}"), config)],
        );
        let path = format!("usr/src/linux-headers-{release}/.config");
        world.deb(&format!("linux-headers-{release}"), version, "", &[(&path, config)]);
        world.deb_index();
    };
    kernel("6.1.0-9-amd64", "6.1.9-1", NO);
    let (code, row, stderr) = world.survey(&["test-1"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        (&row["release"], &row["value"], &row["line"]),
        (&"6.1.0-9-amd64".into(), &"not set".into(), &3.into())
    );
    assert_eq!((&row["verdict"], &row["trust"]), (&"unsupported".into(), &"partial".into()));
    assert_eq!(row["schema"], "fastpath.survey/1");
    assert!(row["hash"].as_str().is_some_and(|hash| hash.starts_with("sha256:")), "{row}");

    // A newer kernel that has the option: the history shows that the value flipped.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    kernel("6.12.0-1-amd64", "6.12.9-1", YES);
    let (code, row, stderr) = world.survey(&["test-1", "--verify"]);
    assert_eq!(
        (code, &row["value"], &row["trust"]),
        (0, &"y".into(), &"verified".into()),
        "{stderr}"
    );
    let (code, text, _) = world.fastpath(&["survey", "--diff"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("test-1: new kernel: 6.1.0-9-amd64 -> 6.12.0-1-amd64"), "{text}");
    assert!(text.contains("test-1: P2PDMA flipped: No -> Yes"), "{text}");
    let (code, text, _) = world.fastpath(&["matrix", "--target", "test-1"]);
    assert_eq!(code, 0);
    assert!(text.contains("trust      verified"), "{text}");

    // Every kernel of the repository, the default one first.
    let (_, text, _) = world.fastpath(&[
        "survey",
        "--all-kernels",
        "--format",
        "json",
        "--keyring",
        &world.path("keyring.gpg").display().to_string(),
        "test-1",
    ]);
    let releases: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a record")["release"].clone())
        .collect();
    assert_eq!(releases, ["6.12.0-1-amd64", "6.1.0-9-amd64"]);
}

#[test]
fn what_is_wrong_fails_its_row_and_is_never_trusted_less_instead() {
    let Some(world) = world(&["gpg", "dpkg-deb", "apt-ftparchive", "xz"]) else { return };
    world.target("test-1", DEB);
    let release = "6.1.0-9-amd64";
    world.deb("linux-image-amd64", "6.1.9-1", &format!("Depends: linux-image-{release}\n"), &[]);
    world.deb(
        &format!("linux-image-{release}"),
        "6.1.9-1",
        "",
        &[("boot/config-6.1.0-9-amd64", NO)],
    );
    world.deb_index();
    let fails = |what: &str, more: &[&str]| {
        let (code, row, stderr) = world.survey(&[&["test-1"], more].concat());
        assert_eq!(code, 2, "{what}: {row}");
        let error = row["error"].as_str().unwrap_or_default();
        assert!(error.starts_with("test-1: "), "{what}: {row}");
        assert_eq!((error.lines().count(), &row["value"]), (1, &Value::Null), "{what}");
        assert!(stderr.contains(error), "{what}: {stderr}");
    };
    assert_eq!(world.survey(&["test-1"]).0, 0);

    let package = world.path(&format!("repo/pool/linux-image-{release}_6.1.9-1.deb"));
    let sound = fs::read(&package).expect("the package");
    let mut damaged = sound.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    fs::write(&package, &damaged).expect("written");
    fails("a wrong digest", &["--verify"]);
    fs::write(&package, &sound[..last]).expect("written");
    fails("a wrong size", &[]);
    fs::write(&package, &sound).expect("written");

    let index = world.path("repo/dists/test/main/binary-amd64/Packages.xz");
    let packed = fs::read(&index).expect("the index");
    fs::remove_dir_all(world.path("cache")).expect("the cache");
    fs::write(&index, &packed[..packed.len() - 4]).expect("written");
    fails("a cut index", &[]);
    fs::write(&index, &packed).expect("written");

    let inrelease = world.path("repo/dists/test/InRelease");
    let signed = fs::read_to_string(&inrelease).expect("the index");
    fs::write(&inrelease, signed.replace("Suite: test", "Suite: tent")).expect("written");
    fails("a changed index", &[]);
    world.sh("gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-generate-key 'Other <o@example.invalid>' rsa2048 sign never; \
              gpg --batch --quiet --yes -u o@example.invalid --clearsign -o repo/dists/test/InRelease repo/dists/test/Release; gpg --export > keyring.gpg");
    fails("another key's signature, though the key is at hand", &[]);
    fs::write(&inrelease, signed).expect("written");
    assert_eq!(world.survey(&["test-1"]).0, 0, "and all is well again");
}

#[test]
fn an_rpm_target_from_index_to_row() {
    let Some(world) = world(&["gpg", "rpmbuild", "createrepo_c"]) else { return };
    world.target(
        "test-rpm",
        "family = \"rpm\"\narch = \"x86_64\"\npackage = \"kernel-core\"\nfollow = \"rpm-highest\"\nsigned = \"index\"",
    );
    for (version, build, config) in [("6.12.0", "211.1.el10_2", YES), ("6.12.0", "55.1.el10_0", NO)]
    {
        world.write("config", config);
        world.write(
            "kernel.spec",
            &format!(
                "Name: kernel-core\nVersion: {version}\nRelease: {build}\nSummary: t\nLicense: MIT\nBuildArch: x86_64\n\
                 %define _binary_payload w19.zstdio\n%description\nt\n%install\n\
                 mkdir -p %{{buildroot}}/lib/modules/{version}-{build}.x86_64\n\
                 cp {config} %{{buildroot}}/lib/modules/{version}-{build}.x86_64/config\n%files\n/lib/modules\n",
                config = world.path("config").display()
            ),
        );
        world.sh("mkdir -p repo && rpmbuild --quiet -bb --target x86_64 --define \"_topdir $PWD/rpmbuild\" --define \"_rpmdir $PWD/repo\" kernel.spec >/dev/null 2>&1");
    }
    world.sh("createrepo_c --quiet repo && gpg --batch --quiet --armor --detach-sign repo/repodata/repomd.xml");
    let (code, row, stderr) = world.survey(&["test-rpm"]);
    assert_eq!(code, 0, "{stderr} {row}");
    assert_eq!(row["release"], "6.12.0-211.1.el10_2.x86_64", "the highest build");
    assert_eq!(
        (&row["value"], &row["verdict"]),
        (&"y".into(), &"blocked".into()),
        "an advisory marks it"
    );
    assert_eq!(
        (&row["trust"], &row["advisories"][0]),
        (&"partial".into(), &"el10_2-memory-corruption".into())
    );
    fs::remove_file(world.path("repo/repodata/repomd.xml.asc")).expect("the signature");
    let (code, row, _) = world.survey(&["test-rpm"]);
    assert_eq!(
        (code, &row["value"]),
        (2, &Value::Null),
        "an unsigned index where a signed one is due: {row}"
    );
}

#[test]
fn one_target_that_fails_does_not_stop_the_others() {
    let Some(world) = world(&["gpg", "dpkg-deb", "apt-ftparchive", "xz"]) else { return };
    world.target("test-1", DEB);
    let mut knowledge = fs::read_to_string(world.path("knowledge.toml")).expect("the file");
    let second =
        knowledge.split("[[target]]").nth(1).expect("a target").replace("test-1", "test-2");
    knowledge = format!(
        "{knowledge}\n[[target]]{}",
        second.replace("linux-image-amd64", "no-such-package")
    );
    fs::write(world.path("knowledge.toml"), knowledge).expect("written");
    world.deb("linux-image-amd64", "6.1.9-1", "Depends: linux-image-6.1.0-9-amd64\n", &[]);
    world.deb("linux-image-6.1.0-9-amd64", "6.1.9-1", "", &[("boot/config-6.1.0-9-amd64", NO)]);
    world.deb_index();
    let keyring = world.path("keyring.gpg").display().to_string();
    let (code, stdout, stderr) =
        world.fastpath(&["survey", "--keyring", &keyring, "test-2", "test-1"]);
    assert_eq!(code, 2);
    assert!(stdout.contains("6.1.0-9-amd64") && stdout.contains("unsupported"), "{stdout}");
    assert!(stderr.contains("error: test-2: ") && stderr.contains("no-such-package"), "{stderr}");
    let data = fs::read_to_string(world.path("data/survey.jsonl")).expect("the data set");
    assert_eq!(data.lines().count(), 2, "the failed row is kept too");
}
