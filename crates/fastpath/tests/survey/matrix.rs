//! The whole matrix, rebuilt: every target of the catalogue from a repository of its own kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fastpath_knowledge::{Knowledge, RepositoryFamily, Signed, Target};
use fastpath_survey::trust::{Digest, DigestKind};
use serde_json::Value;

use crate::common::repository::{Deb, Making, TOOLS};
use crate::common::rpm::{Spec, rpmbuild};
use crate::world::{Answer, Machine, World, at_once, config};

/// Kernels of Debian's kind: repository, suite, the metapackages that name the kernel, its release and version, whether it has
/// the option. A target's default kernel is the highest over its suites, and the last of its rows here.
#[rustfmt::skip]
const DEBS: &[(&str, &str, &str, &str, &str, bool)] = &[
    ("debian", "bullseye", "linux-image-amd64", "5.10.0-30-amd64", "5.10.218-1", false),
    ("debian", "bullseye-updates", "", "", "", false),
    ("debian", "bullseye-security", "linux-image-amd64", "5.10.0-41-amd64", "5.10.251-1", false),
    ("debian", "bookworm", "linux-image-amd64", "6.1.0-50-amd64", "6.1.174-1", true),
    ("debian", "bookworm", "linux-image-cloud-amd64", "6.1.0-50-cloud-amd64", "6.1.174-1", true),
    ("debian", "bookworm-updates", "", "", "", false),
    ("debian", "bookworm-security", "linux-image-amd64", "6.1.0-53-amd64", "6.1.180-1", false),
    ("debian", "bookworm-security", "linux-image-cloud-amd64", "6.1.0-53-cloud-amd64", "6.1.180-1", false),
    ("debian", "bookworm-backports", "linux-image-amd64", "6.12.94+deb12-amd64", "6.12.94-1~bpo12+1", false),
    ("debian", "trixie", "linux-image-amd64", "6.12.90+deb13-amd64", "6.12.90-1", true),
    ("debian", "trixie", "linux-image-cloud-amd64", "6.12.107+deb13-cloud-amd64", "6.12.107-1", false),
    ("debian", "trixie", "linux-image-rt-amd64", "6.12.107+deb13-rt-amd64", "6.12.107-1", false),
    ("debian", "trixie-updates", "linux-image-amd64", "6.12.107+deb13-amd64", "6.12.107-1", false),
    ("debian", "trixie-security", "", "", "", false),
    ("debian", "trixie-backports", "linux-image-amd64", "7.3.4+deb13-amd64", "7.3.4-1~bpo13+1", true),
    ("debian", "sid", "linux-image-amd64", "7.3.4+deb14-amd64", "7.3.4-1", true),
    ("debian", "sid", "linux-image-cloud-amd64", "7.3.4+deb14-cloud-amd64", "7.3.4-1", false),
    ("debian", "sid", "linux-image-rt-amd64", "7.3.4+deb14-rt-amd64", "7.3.4-1", true),
    ("ubuntu", "jammy", "linux-generic", "5.15.0-25-generic", "5.15.0-25.25", true),
    ("ubuntu", "jammy-updates", "linux-generic", "5.15.0-190-generic", "5.15.0-190.200", true),
    ("ubuntu", "jammy-updates", "linux-generic-hwe-22.04", "6.8.0-138-generic", "6.8.0-138.138~22.04.1", true),
    ("ubuntu", "jammy-security", "linux-generic", "5.15.0-194-generic", "5.15.0-194.204", false),
    ("ubuntu", "noble", "linux-generic", "6.8.0-31-generic", "6.8.0-31.31", false),
    ("ubuntu", "noble", "linux-lowlatency", "6.8.0-31-lowlatency", "6.8.0-31.31.1", false),
    ("ubuntu", "noble-security", "linux-generic", "6.8.0-141-generic", "6.8.0-141.141", false),
    ("ubuntu", "noble-updates", "linux-generic", "6.8.0-142-generic", "6.8.0-142.142", true),
    ("ubuntu", "noble-updates", "linux-lowlatency", "6.8.0-142-lowlatency", "6.8.0-142.142.1", true),
    ("ubuntu", "noble-updates", "linux-generic-hwe-24.04", "7.0.0-34-generic", "7.0.0-34.34~24.04.1", true),
    ("ubuntu", "resolute", "linux-generic", "7.0.0-14-generic", "7.0.0-14.14", false),
    ("ubuntu", "resolute-updates", "linux-generic", "7.0.0-34-generic", "7.0.0-34.34", true),
    ("ubuntu", "resolute-updates", "linux-generic-hwe-26.04", "7.0.0-34-generic", "7.0.0-34.34", true),
    ("ubuntu", "resolute-security", "", "", "", false),
    ("proxmox", "trixie", "proxmox-default-kernel", "7.0.14-14-pve", "7.0.14-14", true),
];

/// Kernels of rpm repositories: target, repository, package, `epoch:version-release`, whether it has the option. A target's default
/// kernel stands first; the order of versions must find it.
#[rustfmt::skip]
const RPMS: &[(&str, &str, &str, &str, bool)] = &[
    ("oracle-10-uek8", "ol10-uek8", "kernel-uek-core", "0:6.12.0-109.67.6.el10uek", false),
    ("oracle-10-uek8", "ol10-uek8", "kernel-uek-core", "0:6.12.0-109.9.9.el10uek", true),
    ("oracle-9-uek8", "ol9-uek8", "kernel-uek-core", "0:6.12.0-1.23.3.2.el9uek", false),
    ("oracle-8-uek7", "ol8-uek7", "kernel-uek-core", "0:5.15.0-321.188.6.el8uek", false),
    ("oracle-10-rhck", "ol10", "kernel-core", "0:6.12.0-211.58.1.el10_2", true),
    ("oracle-9-rhck", "ol9", "kernel-core", "0:5.14.0-687.49.1.0.1.el9_8", true),
    ("oracle-9-rhck", "ol9", "kernel-core", "0:5.14.0-687.49.1.el9_8", false),
    ("oracle-8-rhck", "ol8", "kernel-core", "0:4.18.0-553.166.1.el8_10", false),
    ("rocky-10.0", "rocky10.0", "kernel-core", "0:6.12.0-55.41.1.el10_0", true),
    ("rocky-10", "rocky10", "kernel-core", "0:6.12.0-211.58.1.el10_2", true),
    ("rocky-10", "rocky10", "kernel-core", "0:6.12.0-211.7.1.el10_2", false),
    ("rocky-8", "rocky8", "kernel-core", "0:4.18.0-553.166.1.el8_10", false),
    ("rocky-9.4", "rocky9.4", "kernel-core", "0:5.14.0-427.42.1.el9_4", true),
    ("rocky-9.6", "rocky9.6", "kernel-core", "0:5.14.0-570.58.1.el9_6", true),
    ("rocky-9", "rocky9", "kernel-core", "0:5.14.0-687.49.1.el9_8", true),
    ("almalinux-8", "alma8", "kernel-core", "0:4.18.0-553.166.1.el8_10", false),
    ("almalinux-9", "alma9", "kernel-core", "0:5.14.0-687.49.1.el9_8", true),
    ("almalinux-9", "alma9", "kernel-core", "0:5.14.0-687.49.1.el9_8~rc1", false),
    ("almalinux-10", "alma10", "kernel-core", "0:6.12.0-211.58.1.el10_2^1", true),
    ("almalinux-10", "alma10", "kernel-core", "0:6.12.0-211.58.1.el10_2", false),
    ("centos-stream-9", "c9s", "kernel-core", "1:5.14.0-700.el9", true),
    ("centos-stream-9", "c9s", "kernel-core", "0:5.14.0-900.el9", false),
    ("centos-stream-10", "c10s", "kernel-core", "0:6.12.0-250.el10", true),
    ("sles-15.7", "leap15.6-update", "kernel-default", "0:6.4.0-150600.23.100.1", true),
    ("sles-15.7", "leap15.6", "kernel-default", "0:6.4.0-150600.21.2", false),
    ("opensuse-leap-16.0", "leap16.0", "kernel-default", "0:6.12.0-160000.37.1", true),
    ("opensuse-tumbleweed", "tumbleweed", "kernel-default", "0:7.1.3-1.1", true),
    ("fedora-43", "f43-updates", "kernel-core", "0:7.0.9-200.fc43", true),
    ("fedora-43", "f43", "kernel-core", "0:6.17.1-300.fc43", false),
    ("fedora-rawhide", "rawhide", "kernel-core", "0:7.2.0-0.rc3.27.fc45", true),
    ("amazon-linux-2023", "al2023", "kernel", "0:6.1.158-180.294.amzn2023", false),
    ("azure-linux-3", "azl3", "kernel", "0:6.6.117.1-1.azl3", true),
];

const ARCH: (&str, &str) = ("7.1.3.arch1-2", "7.1.3-arch1-2");

/// The catalogue's targets whose repositories are those of another one.
const SHARED: [(&str, &str); 1] = [("opensuse-leap-15.6", "sles-15.7")];

fn rpm_target(id: &str) -> &str {
    SHARED.iter().find(|(shared, _)| *shared == id).map_or(id, |(_, with)| with)
}

/// The release of a kernel in an rpm package, and the configuration's path in it.
fn rpm_kernel(id: &str, evr: &str) -> (String, String) {
    let version = evr.split_once(':').expect("an epoch").1;
    match id {
        // SUSE leaves the rebuild counter out and adds the flavour.
        "sles-15.7" | "opensuse-leap-16.0" | "opensuse-tumbleweed" => {
            let release = format!("{}-default", version.rsplit_once('.').expect("a counter").0);
            (release.clone(), format!("/usr/lib/modules/{release}/config"))
        }
        // No architecture in the name.
        "azure-linux-3" => (version.to_owned(), format!("/boot/config-{version}")),
        _ => (format!("{version}.x86_64"), format!("/lib/modules/{version}.x86_64/config")),
    }
}

fn deb_packages(repository: &str, meta: &str, release: &str, version: &str, yes: bool) -> Vec<Deb> {
    let config = config(release.split(['-', '+']).next().unwrap_or_default(), yes);
    let headers = |name: String| {
        Deb::new(&name, version)
            .content(&format!("usr/src/linux-headers-{release}/.config"), config.clone())
            .file("usr/src/Makefile", 3000)
    };
    let image = |name: &str| Deb::new(name, version).file("boot/vmlinuz", 500);
    let config_file = format!("boot/config-{release}");
    match repository {
        "debian" if version.starts_with("7.") => vec![
            Deb::new(meta, version)
                .depends(&format!("linux-image-{release} (= {version}), linux-base-amd64")),
            Deb::new(&format!("linux-image-{release}"), version)
                .depends(&format!("linux-base-{release} (= {version}), linux-binary-{release}")),
            Deb::new(&format!("linux-base-{release}"), version)
                .content(&format!("usr/lib/modules/{release}/config"), config.clone()),
            headers(format!("linux-headers-{release}")),
        ],
        "debian" => vec![
            Deb::new(meta, version).depends(&format!("linux-image-{release} (= {version})")),
            image(&format!("linux-image-{release}"))
                .depends("kmod, linux-base (>= 4.3~)")
                .content(&config_file, config.clone()),
            headers(format!("linux-headers-{release}")),
        ],
        "ubuntu" => {
            let image_meta = meta.replace("linux-", "linux-image-");
            vec![
                Deb::new(meta, version)
                    .depends(&format!("{image_meta} (= {version}), linux-headers-x (= {version})")),
                Deb::new(&image_meta, version).depends(&format!(
                    "linux-image-{release}, linux-modules-extra-{release}, linux-firmware"
                )),
                image(&format!("linux-image-{release}"))
                    .depends(&format!("kmod, linux-modules-{release}")),
                Deb::new(&format!("linux-modules-{release}"), version)
                    .content(&config_file, config.clone()),
                headers(format!("linux-headers-{release}")),
            ]
        }
        _ => vec![
            Deb::new(meta, "2.0.1").depends("proxmox-kernel-7.0, pve-firmware"),
            Deb::new("proxmox-kernel-7.0", version)
                .depends(&format!("proxmox-kernel-{release}-signed | proxmox-kernel-{release}")),
            image(&format!("proxmox-kernel-{release}-signed"))
                .content(&config_file, config.clone()),
            headers(format!("proxmox-headers-{release}")),
        ],
    }
}

/// The package the configuration of a kernel of Debian's kind is read from: the smallest that has it.
fn deb_holder(repository: &str, release: &str) -> String {
    match repository {
        "debian" if release.starts_with("7.") => format!("linux-base-{release}"),
        "debian" => format!("linux-image-{release}"),
        "ubuntu" => format!("linux-modules-{release}"),
        _ => format!("proxmox-kernel-{release}-signed"),
    }
}

fn build(world: &World, targets: &[Target]) {
    let mut suites: BTreeMap<(&str, &str), Vec<Deb>> = BTreeMap::new();
    for (repository, suite, meta, release, version, yes) in DEBS {
        let packages = suites.entry((repository, suite)).or_default();
        if !meta.is_empty() {
            packages.extend(deb_packages(repository, meta, release, version, *yes));
        }
    }
    let mut jobs: Vec<Box<dyn FnOnce() + Send + '_>> = Vec::new();
    for ((repository, suite), packages) in suites {
        let component = if repository == "proxmox" { "pve-no-subscription" } else { "main" };
        let making = Making { component, detached: false, ..Making::default() };
        jobs.push(Box::new(move || {
            world.repository.archive(repository).suite_made(suite, &packages, &making);
        }));
    }
    let mut repositories: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for rpm in RPMS {
        repositories.entry(rpm.1).or_default().push(rpm);
    }
    for (name, kernels) in repositories {
        jobs.push(Box::new(move || {
            let mut signed = Signed::Index;
            for (id, _, package, evr, yes) in kernels {
                let (epoch, rest) = evr.split_once(':').expect("an epoch");
                let (version, release) = rest.split_once('-').expect("a release");
                let (kernel, member) = rpm_kernel(id, evr);
                let spec = Spec {
                    name: package,
                    epoch: epoch.parse().expect("a number"),
                    version,
                    release,
                    arch: "x86_64",
                    payload: if *yes { "w3.zstdio" } else { "w6.xzdio" },
                    member: &member,
                    config: &config(&kernel, *yes),
                    noise: 500,
                };
                let file = rpmbuild(&world.folder(name), &spec);
                let target = targets.iter().find(|target| target.id == *id).expect("a target");
                signed = target.source.signed;
                if signed != Signed::Index {
                    world.repository.gpg.sign_package(&file, &world.repository.key);
                }
            }
            world.rpm_index(name);
            if signed != Signed::Index {
                // Where the packages are signed the index is not.
                let signature = world.folder(name).join("repodata/repomd.xml.asc");
                fs::remove_file(signature).expect("the signature");
            }
        }));
    }
    jobs.push(Box::new(|| {
        world.arch_kernel(ARCH.0, ARCH.1, true);
    }));
    at_once(jobs, |job| job());
}

/// What must be found: package, kernel, whether it has the option, trust.
fn expected(target: &Target) -> (String, String, bool, &'static str) {
    match target.source.family {
        RepositoryFamily::Deb => {
            let repository = target.source.keys.as_str();
            let of_target = |deb: &&(&str, &str, &str, &str, &str, bool)| {
                deb.0 == repository
                    && target.source.suites.iter().any(|suite| suite == deb.1)
                    && deb.2 == target.source.package
            };
            let (_, _, _, release, _, yes) =
                DEBS.iter().rfind(of_target).expect("a kernel of the target");
            (deb_holder(repository, release), (*release).to_owned(), *yes, "partial")
        }
        RepositoryFamily::Rpm => {
            let id = rpm_target(&target.id);
            let (_, _, package, evr, yes) =
                RPMS.iter().find(|rpm| rpm.0 == id).expect("a kernel of the target");
            ((*package).to_owned(), rpm_kernel(id, evr).0, *yes, "partial")
        }
        RepositoryFamily::Pacman => {
            ("linux-headers".to_owned(), ARCH.1.to_owned(), true, "unsigned")
        }
    }
}

fn mirrors(world: &World, target: &Target) -> Vec<String> {
    let id = &target.id;
    match target.source.family {
        RepositoryFamily::Deb => vec![world.server.url(&target.source.keys)],
        RepositoryFamily::Pacman => vec![world.server.url("arch/core/os/x86_64/")],
        RepositoryFamily::Rpm => {
            let of_target = RPMS.iter().filter(|rpm| rpm.0 == rpm_target(id));
            let mut bases: Vec<&str> = of_target.map(|rpm| rpm.1).collect();
            bases.dedup();
            bases.into_iter().map(|base| world.server.url(base)).collect()
        }
    }
}

#[test]
fn every_target_of_the_catalogue() {
    let tools = [&TOOLS[..], &["rpmbuild", "rpmsign", "createrepo_c", "tar", "zstd"]].concat();
    let Some(world) = World::with(&tools, "") else { return };
    let knowledge = Knowledge::embedded().expect("the knowledge");
    let targets: Vec<Target> = knowledge.targets().cloned().collect();
    build(&world, &targets);
    let machine = world.machine();
    let mirrors: Vec<(&str, String)> = targets
        .iter()
        .flat_map(|target| {
            mirrors(&world, target).into_iter().map(|base| (target.id.as_str(), base))
        })
        .collect();
    let mirrors: Vec<(&str, &str)> =
        mirrors.iter().map(|(id, base)| (*id, base.as_str())).collect();
    let answer = machine.survey(&mirrors, &[]);
    assert_eq!((answer.errors(), answer.code), (vec![], 0), "{}", answer.stderr);

    let rows = answer.rows();
    assert_eq!(rows.len(), targets.len());
    for (target, row) in targets.iter().zip(&rows) {
        let (package, release, yes, trust) = expected(target);
        let value = if yes { "y" } else { "not set" };
        let found = ["id", "package", "release", "value", "trust"].map(|field| row[field].clone());
        assert_eq!(found, [target.id.as_str(), &package, &release, value, trust], "{row:#}");
        assert_eq!(row["note"].as_str(), target.note.as_deref());
        // The index is right about the package.
        let url = row["url"].as_str().expect("an address").replace(&world.server.url(""), "");
        let file = world.folder(&url.replace("%5E", "^"));
        let bytes = fs::read(file).expect("the package");
        assert_eq!(row["hash"], Digest::of(DigestKind::Sha256, &bytes).to_string());
    }

    verified(&world, &mirrors);

    // The published rows come out as they were published; SLES is read in a stand-in of another service pack.
    let rows_of = |more: &[&str]| {
        let answer = machine.fastpath(&[&["matrix", "--format", "json"][..], more].concat());
        let mut rows: Value = serde_json::from_str(&answer.stdout).expect("the matrix");
        serde_json::from_value::<Vec<Value>>(rows["rows"].take()).expect("rows")
    };
    let (surveyed, published) = (rows_of(&[]), published(&machine));
    for (row, published) in surveyed.iter().zip(&published) {
        assert_eq!(row["target"], published["target"]);
        assert_eq!(row["p2pdma"], published["p2pdma"], "{}", row["target"]);
        assert_eq!(row["verdict"], published["verdict"], "{}", row["target"]);
        if row["target"] != "sles-15.7-native" {
            assert_eq!(row["kernel"], published["kernel"]);
        }
    }
    assert_eq!((published.len(), surveyed.len()), (18, targets.len()));

    // The outputs, whole.
    for (format, name) in [("json", "matrix.json"), ("rst", "matrix.rst")] {
        let answer = machine.fastpath(&["matrix", "--format", format]);
        let text = constant(&answer.stdout.replace(&world.server.url(""), "http://mirror/"));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/survey").join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
            fs::write(&file, &text).expect("the golden file can be written");
        }
        let expected = fs::read_to_string(&file).expect("the golden file");
        let lines = expected.lines().zip(text.lines()).enumerate();
        for (number, (expected, found)) in lines {
            assert_eq!(found, expected, "{name}: line {}", number + 1);
        }
        assert_eq!(text.lines().count(), expected.lines().count(), "{name}");
    }
}

/// Whole packages fit their digests and signatures, and without network all of it is known again.
fn verified(world: &World, mirrors: &[(&str, &str)]) {
    let machine = world.machine();
    let releases = |answer: &Answer| -> Vec<Value> {
        assert_eq!((answer.errors(), answer.code), (vec![], 0), "{}", answer.stderr);
        let rows = answer.rows();
        assert!(rows.iter().all(|row| row["trust"] == "verified"), "{}", answer.stdout);
        rows.iter().map(|row| row["release"].clone()).collect()
    };
    let online = releases(&machine.survey(mirrors, &["--verify"]));
    let asked = world.server.seen().len();
    let offline = releases(&machine.survey(mirrors, &["--verify", "--offline"]));
    assert_eq!((offline, world.server.seen().len()), (online, asked));
}

/// The output without what no two builds have in common: times, digests, sizes of packages.
fn constant(text: &str) -> String {
    let constant = |line: &str| {
        let start = line.len() - line.trim_start().len();
        let (indent, rest) = line.split_at(start);
        let comma = if rest.ends_with(',') { "," } else { "" };
        let fixed = match rest.split_once(": ") {
            Some((name @ "\"hash\"", _)) => format!("{name}: \"sha256:...\""),
            Some((name @ "\"bytes_read\"", value)) if value != "0," => format!("{name}: 1"),
            Some((name @ "\"date\"", value)) if value.contains('T') => {
                format!("{name}: \"2026-11-30T00:00:00Z\"")
            }
            Some((name @ "Source", value)) if value.starts_with("survey, read ") => {
                format!("{name}: survey, read 2026-11-30.")
            }
            _ => return format!("{line}\n"),
        };
        format!("{indent}{fixed}{comma}\n")
    };
    text.lines().map(constant).collect()
}

fn published(machine: &Machine<'_>) -> Vec<Value> {
    let child = machine.start(&["matrix", "--format", "json", "--published"]);
    let answer = Answer::of(child);
    let mut rows: Value = serde_json::from_str(&answer.stdout).expect("the matrix");
    serde_json::from_value(rows["rows"].take()).expect("rows")
}
