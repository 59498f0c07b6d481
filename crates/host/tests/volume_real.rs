//! Volumes as the kernel of this machine shows them: loop devices with real file systems, in a mount namespace of their own.
//!
//! All mounts vanish with the namespace, and the loop devices with their mounts.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use fastpath_host::volume::{
    DeviceKind, JournalMode, JournalSource, Located, Mount, VolumeFacts, locate, read,
};
use fastpath_host::{DirTree, FileKind};
use tempfile::TempDir;

/// Names the directory to work in, for the run inside the namespace.
const INSIDE: &str = "FASTPATH_TEST_NAMESPACE";

/// What the tests need besides the kernel.
const TOOLS: [&str; 9] = [
    "unshare",
    "mount",
    "findmnt",
    "losetup",
    "btrfs",
    "mkfs.ext4",
    "tune2fs",
    "mkfs.xfs",
    "mkfs.btrfs",
];

#[test]
fn real_file_systems_are_what_they_are() {
    if fs::metadata("/proc/self").map_or(true, |own| own.uid() != 0) {
        eprintln!("skipped, because only root can mount");
        return;
    }
    if let Some(tool) = TOOLS.iter().find(|tool| !is_installed(tool)) {
        eprintln!("skipped, because {tool} is not installed");
        return;
    }
    let directory = TempDir::new().unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "--"])
        .arg(std::env::current_exe().unwrap());
    command.args(["--exact", "inside_a_namespace", "--ignored", "--nocapture"]);
    let output = command.env(INSIDE, directory.path()).output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if let Some(line) = errors.lines().find(|line| line.starts_with("skipped, because")) {
        eprintln!("{line}");
    }
    assert!(output.status.success(), "{text}\n{errors}");
    let left = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!left.contains(directory.path().to_str().unwrap()), "{left}");
}

fn is_installed(tool: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').any(|directory| Path::new(directory).join(tool).exists())
}

/// Runs a command of a shell; what it says if it fails.
fn shell(line: &str) -> Result<String, String> {
    let script = format!("PATH=$PATH:/usr/sbin:/sbin; set -e; {line}");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        Ok(said)
    } else {
        Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// A place in the namespace, as the mount table spells it.
struct Place(String);

impl Place {
    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }

    /// Makes a file system on a loop device with this sector size, and mounts it.
    fn make(&self, name: &str, sector: u32, make: &str, options: &str) -> Result<(), String> {
        let (image, at) = (self.at(&format!("{name}.img")), self.at(name));
        shell(&format!(
            "truncate -s 320M '{image}'; mkdir '{at}'; {} >/dev/null; l=$(losetup -b {sector} -f --show '{image}'); \
             if mount {options} $l '{at}'; then losetup -d $l; else losetup -d $l; exit 1; fi; echo x > '{at}/file'",
            make.replace("IMAGE", &format!("'{image}'"))
        ))
        .map(drop)
    }
}

fn seen<'a>(facts: &'a VolumeFacts, point: &str) -> (usize, &'a Mount) {
    let mut found = facts.mounts.iter().enumerate();
    found.rfind(|(_, mount)| mount.mount_point == point && !mount.hidden).expect(point)
}

#[test]
#[ignore = "runs in a namespace that another test makes"]
fn inside_a_namespace() {
    let Some(directory) = std::env::var(INSIDE).ok() else { return };
    let place = Place(fs::canonicalize(directory).unwrap().to_str().unwrap().to_owned());
    if let Err(error) = place.make("ordered", 512, "mkfs.ext4 -q IMAGE", "") {
        eprintln!("skipped, because {}", error.replace('\n', " "));
        return;
    }
    place.make("writeback", 512, "mkfs.ext4 -q IMAGE", "-o data=writeback").unwrap();
    place.make("journal", 512, "mkfs.ext4 -q IMAGE; tune2fs -o journal_data IMAGE", "").unwrap();
    place.make("without", 512, "mkfs.ext4 -q -O ^has_journal IMAGE", "").unwrap();
    place.make("with blank", 4096, "mkfs.xfs -q -s size=4096 IMAGE", "").unwrap();
    place.make("btrfs", 512, "mkfs.btrfs -q IMAGE", "").unwrap();
    let (root, sub) = (place.at("btrfs"), place.at("subvolume"));
    shell(&format!(
        "btrfs subvolume create {root}/sub >/dev/null; echo x > {root}/sub/file; mkdir {sub}; \
         mount -o subvol=sub $(findmnt -no SOURCE {root} | sed 's/\\[.*//') {sub}"
    ))
    .unwrap();
    let (ext4, bind, over) = (place.at("ordered"), place.at("bind"), place.at("overlay"));
    shell(&format!(
        "mkdir {ext4}/sub {ext4}/lower {ext4}/upper {ext4}/work {bind} {over}; echo x > {ext4}/sub/file; \
         echo x > {ext4}/lower/file; mount --bind {ext4}/sub {bind}; \
         mount -t overlay overlay -o lowerdir={ext4}/lower,upperdir={ext4}/upper,workdir={ext4}/work {over}"
    ))
    .unwrap();
    let (stack, memory) = (place.at("stack"), place.at("memory"));
    shell(&format!(
        "mkdir {stack} {memory}; mount -t tmpfs '' {stack}; mount --bind {ext4}/sub {stack}; mount -t tmpfs '' {memory}; \
         echo x > {memory}/file"
    ))
    .unwrap();

    let tree = DirTree::open(Path::new("/")).unwrap();
    let facts = read(&tree);
    assert_eq!((facts.flaws.malformed, facts.flaws.cut), (0, false));
    journals(&facts, &place);
    stacks(&facts, &place);
    files(&tree, &facts, &place);
}

fn journals(facts: &VolumeFacts, place: &Place) {
    for (name, mode, option) in [
        ("ordered", JournalMode::Ordered, None),
        ("writeback", JournalMode::Writeback, Some("writeback")),
        // The table does not show what tune2fs set.
        ("journal", JournalMode::Journal, None),
        ("without", JournalMode::None, None),
    ] {
        let (_, mount) = seen(facts, &place.at(name));
        let journal = mount.journal.as_ref().unwrap();
        assert_eq!((journal.mode, journal.source), (mode, JournalSource::Effective), "{name}");
        assert_eq!(mount.data.as_deref(), option, "{name}");
    }
}

fn stacks(facts: &VolumeFacts, place: &Place) {
    for name in ["ordered", "with blank", "btrfs", "subvolume", "bind"] {
        let (_, mount) = seen(facts, &place.at(name));
        let device = facts.device(mount).expect(name);
        assert_eq!(device.kind, DeviceKind::Loop, "{name}");
        assert_eq!(mount.source.as_deref(), Some(format!("/dev/{}", device.name).as_str()));
    }
    assert_eq!(seen(facts, &place.at("btrfs")).1.device.0, 0);
    assert_eq!(seen(facts, &place.at("subvolume")).1.root, "/sub");
    assert_eq!(seen(facts, &place.at("bind")).1.root, "/sub");
    let overlay = seen(facts, &place.at("overlay")).1;
    let below = facts.mounts[overlay.layers[0]].device;
    assert_eq!((overlay.layers.len(), below), (1, seen(facts, &place.at("ordered")).1.device));
    let stack = place.at("stack");
    let stacked: Vec<_> = facts.mounts.iter().filter(|mount| mount.mount_point == stack).collect();
    let found: Vec<_> = stacked.iter().map(|mount| (mount.fstype.as_str(), mount.hidden)).collect();
    assert_eq!(found, [("tmpfs", true), ("ext4", false)]);
    assert_eq!(stacked[0].source, None);
}

fn files(tree: &DirTree, facts: &VolumeFacts, place: &Place) {
    let at = |name: &str| -> Located {
        let point = place.at(name);
        let located = locate(tree, facts, &format!("{point}/file"));
        assert_eq!(
            (located.mount, located.doubt.as_deref()),
            (Some(seen(facts, &point).0), None),
            "{name}"
        );
        assert_eq!(located.kind, Some(FileKind::File), "{name}");
        located
    };
    let names = [
        "ordered",
        "writeback",
        "without",
        "with blank",
        "btrfs",
        "subvolume",
        "bind",
        "overlay",
        "stack",
        "memory",
    ];
    let told: Vec<_> = names.into_iter().map(|name| (name, at(name).direct_io)).collect();
    let of = |name: &str| told.iter().find(|(other, _)| *other == name).and_then(|(_, told)| *told);
    match of("ordered") {
        Some((memory, offset)) => {
            assert!(memory.is_power_of_two() && offset.is_power_of_two(), "{told:?}");
            // The sectors of the device below decide.
            assert_eq!(of("with blank").map(|told| told.1), Some(4096), "{told:?}");
            assert_eq!(of("bind"), of("ordered"));
            // All data goes through the journal, and so through the page cache.
            assert_eq!(at("journal").direct_io, Some((0, 0)));
        }
        None => eprintln!("skipped, because this kernel does not tell direct I/O alignments"),
    }
    assert_eq!(of("memory"), None, "{told:?}");

    // A link from one file system into another.
    let link = place.at("link");
    std::os::unix::fs::symlink(format!("{}/file", place.at("with blank")), &link).unwrap();
    let located = locate(tree, facts, &link);
    assert_eq!(located.mount, Some(seen(facts, &place.at("with blank")).0));
    // A device node.
    let source = seen(facts, &place.at("ordered")).1.source.clone().unwrap();
    let located = locate(tree, facts, &source);
    assert_eq!(located.kind, Some(FileKind::BlockDevice));
    assert_eq!(located.devices[0].kind, DeviceKind::Loop);
}
