//! What a survey of 20 targets costs, beside the time it must take: that of its slowest target, or the processor time of
//! all of them divided by the processors, whichever is more.
//!
//! The mirror is on the loopback interface and answers 20 ms after each request. Its indexes have the size of real ones:
//! the machine's own Debian index, primary indexes of 20 MB in three compressions, databases of pacman. Every package is a
//! real kernel's. Each target is surveyed alone and all together, in turns, with an empty cache each time. Run with `cargo
//! bench -p fastpath --bench survey`; the figures of one run are in `docs/performance.md`.

#![allow(clippy::print_stdout, reason = "a benchmark reports to a terminal")]

mod common;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::kernel::Kernel;
use common::load::{Load, Since, cores};
use common::server::Server;
use common::{PROGRAM, folder, make, missing, sh, word};
use serde_json::Value;

const LATENCY: Duration = Duration::from_millis(20);
const ROUNDS: usize = 3;

/// What is asked for.
const MOST_TIMES: f64 = 1.2;
const MOST_BYTES: u64 = 1 << 20;

/// The mirror itself needs a tenth of a processor. What other programs take is missing, and no survey could have it.
const MOST_OTHERS: f64 = 0.2;

/// As in the catalogue, targets of one distribution follow one another, and two of them read the same suite.
const SUITES: [&str; 8] = ["one", "one", "two", "two", "three", "three", "four", "four"];
const PRIMARIES: [&str; 9] = ["gz", "zst", "xz", "gz", "zst", "xz", "gz", "zst", "gz"];
const DATABASES: usize = 3;

/// The packages of a primary index of 20 MB.
const PACKAGES: u64 = 9000;

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Numbers without order, the same in each run: so that an index does not compress better than a real one.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A digest, as good as any.
    fn digest(&mut self) -> String {
        let [a, b, c, d] = [(); 4].map(|()| self.next());
        format!("{a:016x}{b:016x}{c:016x}{d:016x}")
    }
}

/// A primary index without its kernel, which the script that has the package puts in.
fn primary() -> String {
    let mut noise = Noise(0x5eed);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metadata xmlns=\"http://linux.duke.edu/metadata/common\" \
         xmlns:rpm=\"http://linux.duke.edu/metadata/rpm\" packages=\"{}\">\n",
        PACKAGES + 1
    );
    for at in 0..PACKAGES {
        let name = format!("package-{:x}-{at}", noise.next() & 0xffff);
        let digest = noise.digest();
        let size = noise.next() & 0xff_ffff;
        let _ = write!(
            xml,
            "<package type=\"rpm\">\n  <name>{name}</name>\n  <arch>x86_64</arch>\n  <version epoch=\"0\" ver=\"{}.{}\" \
             rel=\"{}.el10\"/>\n  <checksum type=\"sha256\" pkgid=\"YES\">{digest}</checksum>\n  <summary>Package number \
             {at} of this repository</summary>\n  <description>What {name} does is told in these lines, which are as long as \
             such lines are.</description>\n  <packager>Benchmark</packager>\n  <url>https://example.invalid/{name}</url>\n  \
             <time file=\"1764460800\" build=\"1764460800\"/>\n  <size package=\"{size}\" installed=\"{}\" archive=\"{}\"/>\n  \
             <location href=\"Packages/{name}.rpm\"/>\n  <format>\n    <rpm:license>MIT</rpm:license>\n    \
             <rpm:header-range start=\"4504\" end=\"{}\"/>\n    <rpm:provides>\n",
            noise.next() % 30,
            noise.next() % 30,
            noise.next() % 300,
            size * 3,
            size * 3 + 900,
            noise.next() & 0xffff,
        );
        for of in 0..noise.next() % 22 {
            let _ = writeln!(
                xml,
                "      <rpm:entry name=\"lib{:x}.so.{of}()(64bit)\"/>",
                noise.next() & 0xff_ffff
            );
        }
        xml.push_str("    </rpm:provides>\n    <rpm:requires>\n");
        for _ in 0..noise.next() % 22 {
            let _ = writeln!(
                xml,
                "      <rpm:entry name=\"package-{:x}\" flags=\"GE\" epoch=\"0\" ver=\"{}\"/>",
                noise.next() & 0xffff,
                noise.next() % 100
            );
        }
        xml.push_str("    </rpm:requires>\n  </format>\n</package>\n");
    }
    xml
}

/// The mirror, with every index signed by a key made for it. `Err` says why it cannot be made.
fn mirror(folder: &Path) -> Result<PathBuf, String> {
    let tools = ["apt-get", "apt-ftparchive", "gpg", "gzip", "rpmbuild", "tar", "xz", "zstd"];
    if let Some(tool) = missing(&tools) {
        return Err(format!("{tool} is not installed"));
    }
    let kernels = common::folder("kernel")?;
    let kernel = Kernel::fetch(&kernels)?;
    let (deb, tree) = (kernel.deb.display().to_string(), kernel.tree(&kernels)?);
    let rpm = kernel.rpm(&kernels, "w19.zstdio")?;
    let (rpm, tree) = (rpm.display(), tree.display());
    let Kernel { release, version, .. } = &kernel;
    let base = release.split(['+', '-']).next().unwrap_or(release);
    write(&folder.join("primary"), &primary())?;
    // One folder under several names is several repositories to whoever asks.
    let rpms =
        PRIMARIES.iter().enumerate().map(|(at, kind)| format!("ln -s rpm-{kind} rpm-{at}\n"));
    let archs = (0..DATABASES).map(|at| format!("ln -s arch arch-{at}\n"));
    let links: String = rpms.chain(archs).collect();
    let script = format!(
        r#"size() {{ stat -Lc %s "$1"; }}
sum() {{ sha256sum "$1" | cut -d' ' -f1; }}
rm -rf gnupg && mkdir -m 700 gnupg
trap 'gpgconf --kill all' EXIT
gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-generate-key 'Bench <b@example.invalid>' rsa2048 sign never
gpg --export > keyring.gpg
index=$(apt-get indextargets --format '$(FILENAME)' 'Identifier: Packages' | xargs ls -S | head -n 1)
mkdir -p "$new/deb/pool" "$new/deb/dists/one/main/binary-amd64"
cd "$new/deb"
ln -s '{deb}' pool/image.deb
{{
  /usr/lib/apt/apt-helper cat-file "$index"
  printf 'Package: linux-image-bench\nVersion: 1\nDepends: linux-image-{release}\nFilename: pool/none.deb\nSize: 1\nSHA256: %064d\n\n' 0
  printf 'Package: linux-image-{release}\nVersion: {version}\nFilename: pool/image.deb\nSize: %s\nSHA256: %s\n' \
    "$(size pool/image.deb)" "$(sum pool/image.deb)"
}} | xz -6 > dists/one/main/binary-amd64/Packages.xz
for suite in two three four; do cp -r dists/one "dists/$suite"; done
for suite in one two three four; do
  apt-ftparchive -o APT::FTPArchive::Release::Suite="$suite" release "dists/$suite" > Release
  gpg --batch --quiet --clearsign -o "dists/$suite/InRelease" Release
done
cd ..
for kind in gz zst xz; do
  mkdir -p "rpm-$kind/repodata" "rpm-$kind/Packages"
  cd "rpm-$kind"
  ln -s '{rpm}' Packages/kernel-core.rpm
  {{
    cat ../../primary
    printf '<package type="rpm"><name>kernel-core</name><arch>x86_64</arch><version epoch="0" ver="{base}" rel="1"/>'
    printf '<checksum type="sha256" pkgid="YES">%s</checksum><size package="%s"/>' \
      "$(sum Packages/kernel-core.rpm)" "$(size Packages/kernel-core.rpm)"
    printf '<location href="Packages/kernel-core.rpm"/></package></metadata>'
  }} > primary
  case $kind in gz) gzip -9 < primary ;; zst) zstd -q -19 < primary ;; xz) xz -6 < primary ;; esac > "repodata/primary.xml.$kind"
  printf '<repomd xmlns="http://linux.duke.edu/metadata/repo"><data type="primary"><checksum type="sha256">%s</checksum>' \
    "$(sum "repodata/primary.xml.$kind")" > repodata/repomd.xml
  printf '<open-checksum type="sha256">%s</open-checksum><location href="repodata/primary.xml.%s"/><size>%s</size></data></repomd>' \
    "$(sum primary)" "$kind" "$(size "repodata/primary.xml.$kind")" >> repodata/repomd.xml
  rm primary
  gpg --batch --quiet --armor --detach-sign repodata/repomd.xml
  cd ..
done
mkdir -p arch/core/os/x86_64
cd arch/core/os/x86_64
mkdir -p "usr/lib/modules/{release}/build"
cp '{tree}/boot/config-{release}' "usr/lib/modules/{release}/build/.config"
cp '{tree}/boot/System.map-{release}' "usr/lib/modules/{release}/build/System.map"
cp '{tree}/boot/vmlinuz-{release}' "usr/lib/modules/{release}/build/vmlinux"
printf 'pkgname = linux-headers\npkgver = {base}-1\narch = x86_64\n' > .PKGINFO
tar --sort=name -c .PKGINFO usr | zstd -q -19 > linux-headers.pkg.tar.zst
rm -r usr .PKGINFO
for at in $(seq 300); do
  mkdir -p "db/package$at-1-1"
  printf '%%NAME%%\npackage%s\n\n%%VERSION%%\n1-1\n\n%%SHA256SUM%%\n%s\n' "$at" "$(echo "$at" | sha256sum)" > "db/package$at-1-1/desc"
done
for name in linux linux-headers; do
  mkdir -p "db/$name-{base}-1"
  printf '%%FILENAME%%\nlinux-headers.pkg.tar.zst\n\n%%NAME%%\n%s\n\n%%VERSION%%\n{base}-1\n\n%%ARCH%%\nx86_64\n\n%%CSIZE%%\n%s\n\n%%SHA256SUM%%\n%s\n' \
    "$name" "$(size linux-headers.pkg.tar.zst)" "$(sum linux-headers.pkg.tar.zst)" > "db/$name-{base}-1/desc"
done
tar -C db -c . | gzip > core.db
rm -r db
gpg --batch --quiet --detach-sign core.db
cd ../../../..
{links}cd ..
"#
    );
    make(folder, "mirror", &script)
}

/// A knowledge file with the mirror's targets; gives their names.
fn targets(folder: &Path, server: &Server) -> Result<Vec<String>, String> {
    let listed = sh(folder, "gpg --with-colons --list-keys; gpgconf --kill all")?;
    let fingerprint = listed.lines().find(|line| line.starts_with("fpr"));
    let fingerprint =
        fingerprint.and_then(|line| line.split(':').nth(9)).ok_or("gpg lists no key")?;
    let mut text = format!(
        "[[key]]\ndistribution = \"bench\"\nversion = \"*\"\nfingerprint = \"{fingerprint}\"\nname = \"bench\"\n\
         signs = \"index\"\nsource = \"the benchmark\"\n"
    );
    let mut names = Vec::new();
    let mut add = |name: String, path: &str, source: &str| {
        let url = server.url(path);
        let _ = write!(
            text,
            "[[target]]\nname = \"{name}\"\nid = \"{name}\"\nos_id = \"bench\"\nos_version = \"1\"\ndistribution = \"Bench\"\n\
             version = \"1\"\nflavour = \"default\"\n[target.source]\nrepositories = [\"{url}\"]\nkeys = \"bench\"\n\
             signed = \"index\"\n{source}\n"
        );
        names.push(name);
    };
    for (at, suite) in SUITES.iter().enumerate() {
        let source = format!(
            "family = \"deb\"\narch = \"amd64\"\nsuites = [\"{suite}\"]\ncomponents = [\"main\"]\n\
             package = \"linux-image-bench\"\nfollow = \"deb-image-headers\""
        );
        add(format!("deb-{at}-{suite}"), "deb", &source);
    }
    for (at, kind) in PRIMARIES.iter().enumerate() {
        let source = "family = \"rpm\"\narch = \"x86_64\"\npackage = \"kernel-core\"\nfollow = \"rpm-highest\"";
        add(format!("rpm-{at}-{kind}"), &format!("rpm-{at}"), source);
    }
    for at in 0..DATABASES {
        let source =
            "family = \"pacman\"\narch = \"x86_64\"\npackage = \"linux\"\nfollow = \"pacman\"";
        add(format!("arch-{at}"), &format!("arch-{at}/core/os/x86_64"), source);
    }
    write(&folder.join("knowledge.toml"), &text)?;
    Ok(names)
}

/// Surveys targets with an empty cache; also gives the most bytes that were read of a package.
fn survey(folder: &Path, targets: &[String]) -> Result<(Since, u64), String> {
    let cache = folder.join("cache");
    // Nothing there is as good as an empty one.
    let _ = fs::remove_dir_all(&cache);
    let load = Load::now().ok_or("the kernel does not tell processor times")?;
    let output = Command::new(PROGRAM)
        .args(["survey", "--format", "json", "--knowledge", "knowledge.toml"])
        .args(["--keyring", "keyring.gpg", "--data", "survey.jsonl"])
        .args(targets)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", &cache)
        .env_remove("HIPFILE_KNOWLEDGE")
        .output()
        .map_err(|error| format!("{PROGRAM}: {error}"))?;
    let since = load.since().ok_or("the kernel does not tell processor times")?;
    let mut most = 0;
    let mut count = 0;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let record: Value =
            serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        if record["value"].is_null() {
            return Err(format!("no value: {line}"));
        }
        most = most.max(record["bytes_read"].as_u64().unwrap_or_default());
        count += 1;
    }
    if count == targets.len() {
        return Ok((since, most));
    }
    Err(format!("{count} rows: {}", String::from_utf8_lossy(&output.stderr)))
}

fn median(runs: &[Since], value: fn(&Since) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(value).collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), String> {
    let folder = folder("survey")?;
    let mirror = match mirror(&folder) {
        Ok(mirror) => mirror,
        Err(why) => {
            println!("survey: skipped, because {why}");
            return Ok(());
        }
    };
    let server = Server::start(mirror, LATENCY).map_err(|error| error.to_string())?;
    let targets = targets(&folder, &server)?;
    let mut alone = vec![Vec::new(); targets.len()];
    let mut together = Vec::new();
    let mut most = 0;
    let mut counts = [0; 3];
    for _ in 0..ROUNDS {
        for (target, runs) in targets.iter().zip(&mut alone) {
            runs.push(survey(&folder, std::slice::from_ref(target))?.0);
        }
        server.take_counts();
        let (since, bytes) = survey(&folder, &targets)?;
        counts = server.take_counts();
        together.push(since);
        most = most.max(bytes);
    }
    let mut slowest: f64 = 0.0;
    for (target, runs) in targets.iter().zip(&alone) {
        let (wall, cpu) = (median(runs, |run| run.wall), median(runs, |run| run.cpu));
        println!("{target}: alone {wall:.2} s, processor time {cpu:.2} s");
        slowest = slowest.max(wall);
    }
    let [wall, cpu, others] =
        [|run: &Since| run.wall, |run: &Since| run.cpu, |run: &Since| run.others]
            .map(|value| median(&together, value));
    let [connections, requests, _] = counts;
    println!(
        "all together: {wall:.2} s, processor time {cpu:.2} s, {requests} requests, {connections} connections"
    );
    println!(
        "packages: at most {most} bytes read of one, {} {MOST_BYTES}",
        word(most <= MOST_BYTES)
    );
    let ratio = wall / slowest.max(cpu / cores());
    println!(
        "time: {ratio:.2} times what it must take, {} {MOST_TIMES}",
        word(ratio <= MOST_TIMES)
    );
    if ratio > MOST_TIMES && others > MOST_OTHERS {
        println!(
            "      which says little: the mirror and other programs used {others:.2} of {} processors",
            cores()
        );
    }
    Ok(())
}
