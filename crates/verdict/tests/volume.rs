//! The volume layer: recorded hosts, what each build of AMD's driver does, and single files.

#[path = "../../host/tests/common/blocks.rs"]
mod blocks;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use blocks::Host;
use fastpath_host::pci::Address;
use fastpath_host::volume::{Located, locate, read};
use fastpath_host::{DirTree, FileKind, volume::VolumeFacts};
use fastpath_knowledge::Knowledge;
use fastpath_verdict::volume::{FileVerdict, VolumeVerdict, VolumesVerdict, judge, judge_file};
use fastpath_verdict::{Reason, Status, Verdict, finding, hints};
use serde_json::Value;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hosts");

fn knowledge() -> Knowledge {
    Knowledge::embedded().unwrap()
}

fn judged(facts: &VolumeFacts, build: Option<u64>) -> VolumesVerdict {
    judge(facts, build, &knowledge())
}

fn volumes(host: &Host, build: Option<u64>) -> VolumesVerdict {
    judged(&read(&host.tree()), build)
}

#[test]
fn every_recorded_host_gets_its_answer() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(HOSTS).unwrap() {
        let directory = entry.unwrap().path();
        let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("volume-") {
            continue;
        }
        count += 1;
        let expect: Value =
            serde_json::from_str(&fs::read_to_string(directory.join("expect.json")).unwrap())
                .unwrap();
        let facts = read(&DirTree::open(&directory.join("root")).unwrap());
        let found: Vec<Value> = judged(&facts, None).volumes.iter().map(short).collect();
        if expect["volumes"] != Value::Array(found.clone()) {
            wrong.push(format!("{name}: {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 20, "{count} hosts");
}

/// The fields that recorded hosts give.
fn short(volume: &VolumeVerdict) -> Value {
    serde_json::json!({
        "mount": volume.mount,
        "verdict": volume.verdict.as_str(),
        "reason": volume.reason.as_str(),
        "backing": volume.backing,
    })
}

fn recorded(name: &str) -> VolumeFacts {
    read(&DirTree::open(&Path::new(HOSTS).join(name).join("root")).unwrap())
}

/// The last build of each known range, and one between.
const OLD: Option<u64> = Some(2_278_356);
const BETWEEN: Option<u64> = Some(2_300_000);
const NEW: Option<u64> = Some(2_400_000);

#[test]
fn what_a_build_of_the_driver_does_with_stacks() {
    use Verdict::{Supported, Unknown, Unsupported};
    let cases = [
        ("volume-lvm-linear", "/", OLD, Unsupported, Reason::Lvm, false),
        ("volume-lvm-linear", "/", BETWEEN, Unknown, Reason::Lvm, false),
        ("volume-lvm-linear", "/", NEW, Supported, Reason::Ok, true),
        ("volume-lvm-linear", "/", None, Supported, Reason::Ok, true),
        ("volume-lvm-linear", "/boot", OLD, Supported, Reason::Ok, false),
        ("volume-lvm-linear", "/boot", None, Supported, Reason::Ok, false),
        ("volume-lvm-striped-sata", "/data", OLD, Unsupported, Reason::Lvm, false),
        // Whatever the driver does with logical volumes, this one has a member that cannot do.
        ("volume-lvm-striped-sata", "/data", BETWEEN, Unsupported, Reason::LvmMemberNotNvme, false),
        ("volume-lvm-on-luks", "/", BETWEEN, Unsupported, Reason::DmCrypt, false),
        ("volume-md-raid0", "/scratch", OLD, Unsupported, Reason::Md, false),
        ("volume-nvme-rdma", "/remote", OLD, Unsupported, Reason::NvmeRdma, false),
        ("volume-nvme-rdma", "/remote", BETWEEN, Unknown, Reason::NvmeRdma, false),
        ("volume-nfs", "/models", OLD, Unsupported, Reason::NfsRdma, false),
        ("volume-nfs", "/home", NEW, Unsupported, Reason::Network, false),
        ("volume-ext4-writeback", "/", NEW, Supported, Reason::Ok, false),
    ];
    for (name, mount, build, verdict, reason, assumed) in cases {
        let found = judged(&recorded(name), build);
        let volume = found.volumes.iter().find(|volume| volume.mount == mount).unwrap();
        assert_eq!(
            (volume.verdict, volume.reason, volume.assumed),
            (verdict, reason, assumed),
            "{name} {mount} {build:?}"
        );
    }
}

#[test]
fn a_sites_own_rule_is_taken_for_its_builds() {
    let mut knowledge = knowledge();
    let text = include_str!("../../knowledge/data/storage.toml");
    let newest = text.rfind("[[storage]]").unwrap();
    let own = text[newest..]
        .replace("2327937", "2390000")
        .replace("confirmed = false", "confirmed = true");
    knowledge.extend("own.toml", &own).unwrap();
    let facts = recorded("volume-lvm-linear");
    let root = |build| judge(&facts, build, &knowledge).volumes[0].clone();
    assert_eq!((root(NEW).verdict, root(NEW).assumed), (Verdict::Supported, false));
    assert!(root(Some(2_390_000 - 1)).assumed);
}

fn xfs_on_dm() -> Host {
    Host::with("22 1 253:0 / /data rw - xfs /dev/mapper/x rw\n")
}

#[test]
fn a_logical_volume_may_have_sixteen_members_and_few_layers() {
    for (members, reason) in [(16, Reason::Ok), (17, Reason::Lvm)] {
        let host = xfs_on_dm();
        let parts: Vec<String> = (0..members)
            .map(|n| host.nvme(n, &format!("0000:{:02x}:00.0", n + 1), n * 2))
            .collect();
        host.dm(0, "LVM-x", &parts.iter().map(String::as_str).collect::<Vec<_>>());
        let volume = volumes(&host, NEW).volumes[0].clone();
        assert_eq!((volume.reason, volume.leaves.len()), (reason, members as usize));
    }
    for (levels, reason) in [(5, Reason::Ok), (6, Reason::Lvm)] {
        let host = xfs_on_dm();
        let mut below = host.nvme(0, "0000:01:00.0", 0);
        for number in (0..levels).rev() {
            below = host.dm(number, "LVM-x", &[&below]);
        }
        assert_eq!(volumes(&host, NEW).volumes[0].reason, reason, "{levels}");
    }
}

#[test]
fn of_a_logical_volume_every_member_counts() {
    type Member = fn(&Host) -> String;
    let cases: [(&str, Member, Verdict, Reason); 9] = [
        ("nvme", |host| host.nvme(1, "0000:02:00.0", 4), Verdict::Supported, Reason::Ok),
        ("sata", |host| host.sata('a', 0), Verdict::Unsupported, Reason::LvmMemberNotNvme),
        (
            "loop",
            |host| host.virtual_block("loop0", "7:0", &[]),
            Verdict::Unsupported,
            Reason::LvmMemberNotNvme,
        ),
        ("md", |host| host.virtual_block("md0", "9:0", &[]), Verdict::Unsupported, Reason::Md),
        ("crypt", |host| host.dm(7, "CRYPT-x", &[]), Verdict::Unsupported, Reason::DmCrypt),
        ("cache", |host| host.dm(7, "other-x", &[]), Verdict::Unsupported, Reason::Dm),
        ("empty", |host| host.dm(7, "LVM-x", &[]), Verdict::Unknown, Reason::VolumeUnreadable),
        (
            "head",
            |host| {
                let place = "virtual/nvme-subsystem/nvme-subsys3/nvme3n1";
                host.block(place, "259:20");
                place.to_owned()
            },
            Verdict::Unsupported,
            Reason::NvmeMultipath,
        ),
        (
            "rdma",
            |host| {
                let place = "virtual/nvme-fabrics/ctl/nvme3/nvme3n1";
                host.block(place, "259:20");
                host.file("sys/devices/virtual/nvme-fabrics/ctl/nvme3/transport", "rdma\n");
                place.to_owned()
            },
            Verdict::Unsupported,
            Reason::LvmMemberNotNvme,
        ),
    ];
    for (name, member, verdict, reason) in cases {
        let host = xfs_on_dm();
        let first = host.nvme(0, "0000:01:00.0", 0);
        let second = member(&host);
        host.dm(0, "LVM-x", &[&first, &second]);
        let volume = volumes(&host, None).volumes[0].clone();
        assert_eq!((volume.verdict, volume.reason), (verdict, reason), "{name}");
    }
}

#[test]
fn a_member_that_is_a_no_goes_before_one_that_is_unknown() {
    let host = xfs_on_dm();
    let unknown = host.dm(1, "LVM-x", &[]);
    let sata = host.sata('a', 0);
    host.dm(0, "LVM-x", &[&unknown, &sata]);
    assert_eq!(volumes(&host, None).volumes[0].reason, Reason::LvmMemberNotNvme);
}

#[test]
fn a_mapper_whose_uuid_cannot_be_read_is_unknown() {
    let host = xfs_on_dm();
    let part = host.nvme(0, "0000:01:00.0", 0);
    host.virtual_block("dm-0", "253:0", &[&part]);
    let volume = volumes(&host, None).volumes[0].clone();
    assert_eq!((volume.verdict, volume.reason), (Verdict::Unknown, Reason::VolumeUnreadable));
    assert_eq!(volume.backing, "dm");
}

#[test]
fn a_volume_names_its_type_device_and_drives() {
    let found = judged(&recorded("volume-lvm-raid1"), None);
    let [root, data] = found.volumes.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (root.fstype.as_str(), root.device.as_deref()),
        ("ext4 (ordered)", Some("/dev/nvme0n1p2"))
    );
    // The name of a volume group may name somebody: the kernel's own is shown.
    assert_eq!((data.fstype.as_str(), data.device.as_deref()), ("xfs", Some("/dev/dm-4")));
    let leaves: Vec<&str> = data.leaves.iter().map(Address::as_str).collect();
    assert_eq!(leaves, ["0000:02:00.0", "0000:03:00.0"]);
    let places: Vec<_> = root.evidence.iter().map(|one| (one.path.as_str(), one.line)).collect();
    assert_eq!(places[0], ("/proc/self/mountinfo", Some(5)));
    assert_eq!(places[1], ("/proc/fs/ext4/nvme0n1p2/options", Some(16)));
    assert!(places[2].0.ends_with("/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2"));
    let multipath = judged(&recorded("volume-nvme-multipath"), None);
    assert_eq!(multipath.volumes[1].leaves, [Address::new("0000:02:00.0").unwrap()]);
}

#[test]
fn the_mode_of_an_ext4_is_shown_with_its_type() {
    for (name, shown) in [
        ("volume-ext4-journal-tune2fs", "ext4 (journal)"),
        ("volume-ext4-no-journal", "ext4 (no journal)"),
        ("volume-ext4-writeback", "ext4 (writeback)"),
    ] {
        assert_eq!(judged(&recorded(name), None).volumes[1].fstype, shown);
    }
}

#[test]
fn an_assumed_journal_mode_is_said() {
    let host = Host::with("22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n");
    host.nvme(0, "0000:01:00.0", 0);
    let found = volumes(&host, NEW);
    let volume = &found.volumes[0];
    assert_eq!(
        (volume.verdict, volume.fstype.as_str(), volume.assumed),
        (Verdict::Supported, "ext4 (ordered)", true)
    );
    let said = found.findings.iter().find(|one| one.id == finding::VOLUME_ASSUMED).unwrap();
    assert_eq!(said.summary, "/ (ext4 (ordered)): assumed the default journal mode of ext4");
    host.ext4("nvme0n1p1", Some("ordered"));
    assert!(!volumes(&host, NEW).volumes[0].assumed);
}

#[test]
fn the_layer_has_the_best_verdict_of_its_volumes() {
    for (name, verdict, reason) in [
        ("volume-nvme-partition", Verdict::Supported, Reason::Ok),
        ("volume-virtio", Verdict::Unsupported, Reason::Virtio),
        ("volume-no-sysfs", Verdict::Unknown, Reason::VolumeUnreadable),
        ("volume-none", Verdict::Unsupported, Reason::NoVolume),
    ] {
        let found = judged(&recorded(name), None);
        assert_eq!((found.verdict, found.reason), (verdict, reason), "{name}");
    }
    let unread = judged(&read(&Host::new().tree()), None);
    assert_eq!((unread.verdict, unread.reason), (Verdict::Unknown, Reason::VolumeUnreadable));
    assert_eq!(unread.findings[0].status, Status::Unknown);
}

#[test]
fn equal_answers_make_one_finding() {
    let mut table = String::from("22 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw\n");
    for number in 0..300 {
        let _ = writeln!(table, "{} 22 8:1 /x /data/{number} rw - xfs /dev/sda1 rw", number + 30);
    }
    let host = Host::with(&table);
    host.nvme(0, "0000:01:00.0", 0);
    host.sata('a', 0);
    let found = volumes(&host, None);
    assert_eq!(found.volumes.len(), 301);
    let [ready, other] = found.findings.as_slice() else { panic!("{:#?}", found.findings) };
    assert_eq!((ready.id.as_str(), ready.status), (finding::VOLUME_READY, Status::Pass));
    assert_eq!(ready.summary, "/ (xfs): a file system and a device that the fastpath can use");
    assert_eq!((other.id.as_str(), other.status), (finding::VOLUME_DEVICE, Status::Info));
    assert_eq!(
        other.summary,
        "/data/0 (xfs), /data/1 (xfs), /data/2 (xfs), /data/3 (xfs) and 296 more: a SCSI, SATA, SAS or USB disk"
    );
    assert!(other.evidence.len() <= 8);
    // With no volume that will do, the same is a failure.
    let alone = judged(&recorded("volume-sata"), None);
    assert_eq!(alone.findings[0].status, Status::Fail);
}

#[test]
fn hints_say_what_can_be_done() {
    for (name, id, word) in [
        ("volume-nvme-multipath", hints::DISABLE_MULTIPATH, "multipath=N"),
        ("volume-btrfs", hints::ANY_FILE_SYSTEM, "HIPFILE_UNSUPPORTED_FILE_SYSTEMS=true"),
        (
            "volume-ext4-journal-tune2fs",
            hints::ORDERED,
            "tune2fs -o journal_data_ordered /dev/nvme1n1p1",
        ),
        ("volume-ext4-writeback", hints::ORDERED, "mount -o data=ordered /dev/nvme1n1p1 /data"),
        ("volume-md-raid0", hints::USE_NVME, "lsblk"),
        ("volume-overlay-container", hints::USE_NVME, "--volume"),
        ("volume-no-sysfs", hints::SEE_DEVICES, "/sys/dev/block"),
    ] {
        let found = judged(&recorded(name), None);
        let hint =
            found.findings.iter().filter_map(|one| one.hint.as_ref()).find(|hint| hint.id == id);
        let hint = hint.unwrap_or_else(|| panic!("{name}: {:#?}", found.findings));
        assert!(hint.commands.iter().any(|command| command.contains(word)), "{name}: {hint:?}");
    }
    let old = judged(&recorded("volume-lvm-linear"), OLD);
    let lvm = old.findings.iter().find(|one| one.summary.contains("logical volume")).unwrap();
    assert_eq!(lvm.hint.as_ref().unwrap().id, hints::NEWER_DRIVER);
    // Nothing is gained by trying any file system where the drive will not do.
    let host = Host::with("22 1 8:1 / / rw - vfat /dev/sda1 rw\n");
    host.sata('a', 0);
    assert!(volumes(&host, None).findings[0].hint.is_none());
}

#[test]
fn a_line_that_is_no_mount_is_reported() {
    let host = Host::with("22 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw\nnonsense\n");
    host.nvme(0, "0000:01:00.0", 0);
    let found = volumes(&host, None);
    let flaw = found.findings.last().unwrap();
    assert_eq!((flaw.id.as_str(), flaw.status), (finding::VOLUME_UNREADABLE, Status::Warn));
    assert_eq!(
        (flaw.summary.as_str(), flaw.evidence[0].line),
        ("one line of the mount table is no mount", Some(2))
    );
}

fn located(facts: &VolumeFacts, mount: usize) -> Located {
    Located {
        path: "/data/model".to_owned(),
        resolved: "/data/model".to_owned(),
        kind: Some(FileKind::File),
        direct_io: Some((512, 512)),
        mount: Some(mount),
        doubt: None,
        devices: facts.devices.clone(),
        unread: None,
    }
}

fn file(host: &str, mount: &str, build: Option<u64>, change: impl Fn(&mut Located)) -> FileVerdict {
    let facts = recorded(host);
    let mount = facts.mounts.iter().rposition(|one| one.mount_point == mount).unwrap();
    let mut located = located(&facts, mount);
    change(&mut located);
    judge_file(&located, &facts, build, &knowledge())
}

#[test]
fn a_file_is_stopped_by_the_first_rule_that_does_not_hold() {
    use Verdict::{Supported, Unknown, Unsupported};
    const PLAIN: &str = "volume-nvme-partition";
    type Change = fn(&mut Located);
    let cases: [(&str, &str, Change, Verdict, Reason); 14] = [
        (PLAIN, "/data", |_| {}, Supported, Reason::Ok),
        (PLAIN, "/data", |one| one.kind = Some(FileKind::Directory), Supported, Reason::Ok),
        (
            PLAIN,
            "/data",
            |one| one.kind = Some(FileKind::CharacterDevice),
            Unsupported,
            Reason::FileType,
        ),
        (PLAIN, "/data", |one| one.kind = None, Unknown, Reason::VolumeUnreadable),
        (PLAIN, "/data", |one| one.mount = None, Unknown, Reason::VolumeUnreadable),
        (PLAIN, "/data", |one| one.doubt = Some("x".to_owned()), Unknown, Reason::VolumeUnreadable),
        (PLAIN, "/data", |one| one.direct_io = Some((0, 0)), Unsupported, Reason::NoDirectIo),
        (PLAIN, "/run", |_| {}, Unsupported, Reason::Filesystem),
        // The file system is asked before direct I/O and the device.
        (
            "volume-ext4-journal-tune2fs",
            "/data",
            |one| one.direct_io = Some((0, 0)),
            Unsupported,
            Reason::JournalMode,
        ),
        ("volume-ext4-no-journal", "/data", |_| {}, Supported, Reason::Ok),
        ("volume-overlay-container", "/", |_| {}, Unsupported, Reason::Overlay),
        (
            "volume-md-raid0",
            "/scratch",
            |one| one.direct_io = Some((0, 0)),
            Unsupported,
            Reason::NoDirectIo,
        ),
        ("volume-md-raid0", "/scratch", |_| {}, Unsupported, Reason::Md),
        ("volume-nvme-rdma", "/remote", |_| {}, Unknown, Reason::NvmeRdma),
    ];
    for (host, mount, change, verdict, reason) in cases {
        let found = file(host, mount, NEW, change);
        assert_eq!(
            (found.verdict, found.reason),
            (verdict, reason),
            "{host} {mount} {}",
            found.detail
        );
    }
}

#[test]
fn a_block_device_needs_no_file_system() {
    // The first device of the facts is the first partition, of an NVMe drive.
    let node: fn(&mut Located) = |one| one.kind = Some(FileKind::BlockDevice);
    let found = file("volume-btrfs", "/", NEW, node);
    assert_eq!(
        (found.verdict, found.detail.as_str()),
        (Verdict::Supported, "a block device: nvme")
    );
    let found = file("volume-virtio", "/", NEW, node);
    assert_eq!((found.verdict, found.reason), (Verdict::Unsupported, Reason::Virtio));
    let found = file("volume-btrfs", "/", NEW, |one| {
        node(one);
        one.devices.clear();
    });
    assert_eq!((found.verdict, found.reason), (Verdict::Unknown, Reason::VolumeUnreadable));
}

#[test]
fn the_alignment_an_application_must_keep() {
    let aligned = |build, direct_io| {
        let found = file("volume-xfs", "/data", build, |one| one.direct_io = direct_io);
        (found.memory_alignment, found.offset_alignment, found.assumed)
    };
    assert_eq!(aligned(NEW, Some((512, 512))), (Some(512), Some(512), false));
    assert_eq!(aligned(NEW, Some((512, 4096))), (Some(512), Some(4096), false));
    // Older drivers want whole pages whatever the file says; so must whoever does not know the driver.
    assert_eq!(aligned(OLD, Some((512, 512))), (Some(512), Some(4096), false));
    assert_eq!(aligned(None, Some((512, 512))), (Some(512), Some(4096), false));
    assert_eq!(aligned(OLD, Some((4, 65536))), (Some(4), Some(65536), false));
    // Before Linux 6.1 nobody says.
    assert_eq!(aligned(NEW, None), (Some(4096), Some(4096), true));
    assert_eq!(aligned(NEW, Some((0, 0))), (None, None, false));
}

#[test]
fn a_file_of_another_root_is_in_doubt() {
    let host = Host::with("22 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw\n");
    host.nvme(0, "0000:01:00.0", 0);
    host.file("data/model", "x");
    let tree = host.tree();
    let facts = read(&tree);
    let found = judge_file(&locate(&tree, &facts, "/data/model"), &facts, NEW, &knowledge());
    assert_eq!((found.verdict, found.reason), (Verdict::Unknown, Reason::VolumeUnreadable));
    assert!(found.detail.starts_with("the file is on device "), "{}", found.detail);
}
