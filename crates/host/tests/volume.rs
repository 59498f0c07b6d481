//! The mount table, journals, block devices, and on which mount a file is.

#[path = "common/blocks.rs"]
mod blocks;

use std::fmt::Write as _;

use blocks::Host;
use fastpath_host::pci::Address;
use fastpath_host::volume::{
    DeviceKind, DmRole, JournalMode, JournalSource, MAX_DEVICES, Mount, SourceKind, Transport,
    VolumeFacts, file_system, locate, read,
};
use fastpath_host::{Content, Entry, FileKind, ReadError, Stat, Tree, Want};

fn facts(table: &str) -> VolumeFacts {
    read(&Host::with(table).tree())
}

fn mount(line: &str) -> Mount {
    let facts = facts(&format!("{line}\n"));
    assert_eq!((facts.mounts.len(), facts.flaws.malformed), (1, 0), "{line}");
    facts.mounts[0].clone()
}

fn points(facts: &VolumeFacts) -> Vec<(&str, bool)> {
    facts.mounts.iter().map(|mount| (mount.mount_point.as_str(), mount.hidden)).collect()
}

#[test]
fn a_line_with_any_number_of_optional_fields() {
    for optional in ["", "shared:1 ", "shared:1 master:2 propagate_from:3 unbindable "] {
        let mount = mount(&format!(
            "36 35 98:0 /mnt1 /mnt2 rw,noatime {optional}- ext3 /dev/root rw,errors=continue"
        ));
        assert_eq!((mount.id, mount.parent, mount.device), (36, 35, (98, 0)));
        assert_eq!((mount.root.as_str(), mount.mount_point.as_str()), ("/mnt1", "/mnt2"));
        assert_eq!((mount.fstype.as_str(), mount.source.as_deref()), ("ext3", Some("/dev/root")));
        assert_eq!((mount.source_kind, mount.line), (SourceKind::Device, 1));
    }
}

#[test]
fn octal_escapes_are_undone() {
    let mount = mount(
        r"36 35 259:1 / /with\040blank\011tab\012line\134slash\1x rw - xfs /dev/nvme0n1p1 rw",
    );
    assert_eq!(mount.mount_point, "/with blank\ttab\nline\\slash\\1x");
    assert!(!mount.lossy);
}

#[test]
fn an_empty_source_is_a_field_of_its_own() {
    let mount = mount(
        "36 35 0:40 / /run/user rw,nosuid -  tmpfs  rw,size=10k"
            .replace("-  tmpfs", "- tmpfs")
            .as_str(),
    );
    assert_eq!((mount.fstype.as_str(), mount.source), ("tmpfs", None));
    assert_eq!(mount.source_kind, SourceKind::Empty);
}

#[test]
fn a_mount_point_that_is_not_utf_8_is_shown_and_marked() {
    let host = Host::new();
    host.file("proc/self/mountinfo", b"36 35 259:1 / /caf\xe9 rw - xfs /dev/nvme0n1p1 rw\n");
    let facts = read(&host.tree());
    assert_eq!(
        (facts.mounts[0].mount_point.as_str(), facts.mounts[0].lossy),
        ("/caf\u{fffd}", true)
    );
}

#[test]
fn lines_that_are_no_mounts_are_counted() {
    let facts = facts(
        "22 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw\n\nx y z\n23 22 259 / /a rw - xfs a rw\n24 22 1:2 / /b rw\n",
    );
    assert_eq!(facts.mounts.len(), 1);
    assert_eq!((facts.flaws.malformed, facts.flaws.first), (3, Some(3)));
}

#[test]
fn without_a_table_or_with_an_empty_one_nothing_is_said() {
    let unread = read(&Host::new().tree()).unread.unwrap();
    assert_eq!((unread.reason.as_str(), unread.not_recorded), ("not there", false));
    // A process that runs has a root.
    let unread = facts("disk\n\n\n").unread.unwrap();
    assert_eq!(unread.reason, "no line of it is a mount");
}

#[test]
fn names_that_name_somebody_are_not_kept() {
    for (line, kind) in [
        ("36 35 253:0 / / rw - ext4 /dev/mapper/alicepc--vg-root rw", SourceKind::Device),
        ("36 35 253:0 / / rw - ext4 /dev/alicepc/root rw", SourceKind::Device),
        ("36 35 259:1 / / rw - ext4 /dev/disk/by-id/nvme-Samsung_S4EWNX0N rw", SourceKind::Device),
        ("36 35 9:1 / / rw - ext4 /dev/md/alice rw", SourceKind::Device),
        ("36 35 9:1 / / rw - ext4 /dev/mdalice rw", SourceKind::Device),
        ("36 35 259:1 / / rw - ext4 /dev/sdalice rw", SourceKind::Device),
        (
            "36 35 0:40 / /n rw - nfs4 secret.example.com:/export rw,addr=10.0.0.1",
            SourceKind::Network,
        ),
        ("36 35 0:41 / /n rw - cifs //secret/alice rw,username=alice", SourceKind::Network),
        ("36 35 0:42 / /n rw - ceph 10.0.0.1:6789:/ rw,name=alice", SourceKind::Network),
        ("36 35 0:43 / /n rw - fuse.sshfs alice@secret:/ rw", SourceKind::Network),
        ("36 35 0:44 / /n rw - zfs tank/alice rw", SourceKind::Other),
    ] {
        let mount = mount(line);
        assert_eq!((mount.source_kind, mount.source), (kind, None), "{line}");
    }
    for name in [
        "/dev/nvme0n1",
        "/dev/nvme10n12p3",
        "/dev/sda",
        "/dev/sdaa12",
        "/dev/dm-3",
        "/dev/md127",
        "/dev/md127p1",
        "/dev/mmcblk0p2",
        "/dev/xvda1",
        "/dev/loop7",
        "/dev/vdb",
        "/dev/root",
        "/dev/zram0",
        "/dev/rbd0p1",
    ] {
        let mount = mount(&format!("36 35 259:1 / / rw - ext4 {name} rw"));
        assert_eq!(mount.source.as_deref(), Some(name));
    }
}

#[test]
fn options_that_are_used_and_no_others() {
    let mount = mount(
        "36 35 259:1 / / rw,noatime - ext4 /dev/nvme0n1p1 rw,data=writeback,errors=remount-ro",
    );
    assert_eq!(mount.data.as_deref(), Some("writeback"));
    let nfs = |options: &str| self::mount(&format!("36 35 0:40 / /n rw - nfs4 s:/ {options}")).rdma;
    assert!(nfs("rw,vers=4.2,proto=rdma,port=20049"));
    assert!(nfs("rw,proto=rdma6"));
    assert!(!nfs("rw,proto=tcp,mountproto=rdma"));
}

#[test]
fn of_mounts_stacked_on_one_point_the_last_is_seen() {
    let stacked = facts(
        "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n\
         30 22 259:3 / /data rw - xfs /dev/nvme1n1p1 rw\n\
         31 30 8:1 / /data rw - ext4 /dev/sda1 rw\n",
    );
    assert_eq!(points(&stacked), [("/", false), ("/data", true), ("/data", false)]);
    // The table's order is not always that of mounting: who is mounted on whom counts more.
    let tucked = facts(
        "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n\
         31 30 8:1 / /data rw - ext4 /dev/sda1 rw\n\
         30 22 259:3 / /data rw - xfs /dev/nvme1n1p1 rw\n",
    );
    assert_eq!(points(&tucked), [("/", false), ("/data", false), ("/data", true)]);
    // Whatever is mounted below is hidden with it.
    let deep = facts(
        "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n\
         30 22 259:3 / /data rw - xfs /dev/nvme1n1p1 rw\n\
         31 30 259:5 / /data/deep rw - xfs /dev/nvme2n1p1 rw\n\
         32 30 8:1 / /data rw - ext4 /dev/sda1 rw\n\
         33 32 8:2 / /data/deep/er rw - ext4 /dev/sda2 rw\n",
    );
    assert_eq!(
        points(&deep),
        [
            ("/", false),
            ("/data", true),
            ("/data/deep", true),
            ("/data", false),
            ("/data/deep/er", false)
        ]
    );
    // A later mount on a directory above hides what is mounted on the file system it covers.
    let covered = facts(
        "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n\
         30 22 259:3 / /a/b rw - xfs /dev/nvme1n1p1 rw\n\
         31 22 8:1 / /a rw - ext4 /dev/sda1 rw\n",
    );
    assert_eq!(points(&covered), [("/", false), ("/a/b", true), ("/a", false)]);
    // As in a container: the mount that everything stands on is not in the table.
    let rootless = facts(
        "900 899 0:50 / / rw - overlay overlay rw\n901 900 259:3 /x /data rw - xfs /dev/nvme1n1p1 rw\n",
    );
    assert_eq!(points(&rootless), [("/", false), ("/data", false)]);
}

#[test]
fn a_mounted_file_is_no_place_for_others() {
    let host = Host::with(
        "22 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw\n\
         23 22 259:3 /c/hostname /etc/hostname rw - ext4 /dev/nvme1n1p1 rw\n\
         24 22 259:3 /models /models rw - ext4 /dev/nvme1n1p1 rw\n\
         25 22 259:3 /gone /gone rw - ext4 /dev/nvme1n1p1 rw\n",
    );
    host.file("etc/hostname", "x").directory("models");
    let found: Vec<bool> =
        read(&host.tree()).mounts.iter().map(|mount| mount.single_file).collect();
    assert_eq!(found, [false, true, false, false]);
}

#[test]
fn an_overlay_is_on_the_mounts_of_its_layers() {
    let facts = facts(
        r"22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw
23 22 259:3 / /var/lib/docker rw - xfs /dev/nvme1n1p1 rw
24 22 8:1 / /images\040old rw - xfs /dev/sda1 rw
25 22 0:50 / /merged rw - overlay overlay rw,lowerdir=/var/lib/docker/l/A:/images\040old/x\134:y::/data-only,upperdir=/var/lib/docker/u,workdir=/var/lib/docker/w
26 22 0:51 / /other rw - overlay overlay rw,lowerdir+=/a,lowerdir+=/images\040old/b
27 22 0:52 / /relative rw - overlay overlay rw,lowerdir=l/A,upperdir=u
",
    );
    assert_eq!(facts.mounts[3].layers, [1, 2, 0]);
    assert_eq!(facts.mounts[4].layers, [0, 2]);
    assert_eq!(facts.mounts[5].layers, [] as [usize; 0]);
}

#[test]
fn the_journal_mode_in_effect_goes_before_the_option_and_the_default() {
    use JournalMode::{Journal, None as Without, Ordered, Other, Writeback};
    use JournalSource::{Assumed, Effective, MountOption};
    let line = |options: &str| format!("22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw{options}\n");
    let journal = |options: &str, effective: Option<&str>| {
        let host = Host::with(&line(options));
        host.nvme(0, "0000:01:00.0", 0);
        if let Some(text) = effective {
            host.file("proc/fs/ext4/nvme0n1p1/options", text);
        }
        let journal = read(&host.tree()).mounts[0].journal.clone().unwrap();
        // Who asks about one device only hears the same.
        let one = file_system(&host.tree(), (259, 1)).unwrap();
        assert_eq!((one.fstype.as_str(), one.journal), ("ext4", Some(journal.mode)));
        (journal.mode, journal.source, journal.evidence.line)
    };
    for (options, effective, expected) in [
        ("", Some("rw\nbsddf\ndata=ordered\n"), (Ordered, Effective, Some(3))),
        ("", Some("ro\ndata=journal\n"), (Journal, Effective, Some(2))),
        ("", Some("rw\nbsddf\nerrors=continue\n"), (Without, Effective, None)),
        ("", Some(""), (Ordered, Assumed, Some(1))),
        ("", None, (Ordered, Assumed, Some(1))),
        (",data=writeback", None, (Writeback, MountOption, Some(1))),
        (",data=ordered", None, (Ordered, MountOption, Some(1))),
        (",data=shuffled", None, (Other, MountOption, Some(1))),
        (",data=ordered", Some("rw\ndata=journal\n"), (Journal, Effective, Some(2))),
    ] {
        assert_eq!(journal(options, effective), expected, "{options} {effective:?}");
    }
}

#[test]
fn one_device_is_found_by_its_number() {
    let host = Host::with(
        "22 1 8:1 / / rw - btrfs /dev/sda1 rw\nx y z\n23 22 259:12 / /a rw shared:1 - xfs /dev/nvme0n1 rw\n\
         24 22 8:2 / /b rw,data=x - ext4 /dev/sda2 rw,data=journal\n25 24 8:2 /c /c rw - ext4 /dev/sda2 rw\n",
    );
    // Without a link in sysfs the source names the device.
    host.file("proc/fs/ext4/sda2/options", "rw\ndata=writeback\n");
    let of = |device| {
        file_system(&host.tree(), device).map(|found| (found.fstype.clone(), found.journal))
    };
    assert_eq!(of((8, 1)), Some(("btrfs".to_owned(), None)));
    assert_eq!(of((259, 12)), Some(("xfs".to_owned(), None)));
    assert_eq!(of((8, 2)), Some(("ext4".to_owned(), Some(JournalMode::Writeback))));
    assert_eq!(of((259, 1)), None);
    assert_eq!(file_system(&Host::new().tree(), (8, 1)), None);
}

/// The kinds from the top device of the first mount down, each first member.
fn stack(host: &Host) -> Vec<DeviceKind> {
    let facts = read(&host.tree());
    let mut kinds = Vec::new();
    let mut next = facts.mounts[0].block;
    while let Some(device) = next.and_then(|index| facts.devices.get(index)) {
        kinds.push(device.kind.clone());
        next = device.below.first().copied();
    }
    kinds
}

fn on(number: &str) -> Host {
    Host::with(&format!("22 1 {number} / /data rw - xfs /dev/x rw\n"))
}

fn nvme(address: &str) -> DeviceKind {
    DeviceKind::Nvme { address: Address::new(address).unwrap() }
}

#[test]
fn a_partition_of_an_nvme_drive_is_on_its_pci_function() {
    let host = on("259:1");
    host.nvme(0, "0000:01:00.0", 0);
    assert_eq!(stack(&host), [DeviceKind::Partition, nvme("0000:01:00.0")]);
    // Behind a volume management device the drive has a domain of its own.
    let host = on("259:0");
    host.block(
        "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0/nvme/nvme0/nvme0n1",
        "259:0",
    );
    assert_eq!(stack(&host), [nvme("10000:e1:00.0")]);
}

#[test]
fn an_nvme_name_alone_is_no_pci_function() {
    let host = on("259:1");
    host.block("virtual/nvme-fabrics/ctl/nvme1/nvme1n1", "259:0");
    host.block("virtual/nvme-fabrics/ctl/nvme1/nvme1n1/nvme1n1p1", "259:1");
    host.file("sys/devices/virtual/nvme-fabrics/ctl/nvme1/transport", "tcp\n");
    let fabric = DeviceKind::NvmeFabric { transport: Some(Transport::Tcp) };
    assert_eq!(stack(&host), [DeviceKind::Partition, fabric]);
    let host = on("259:0");
    host.block("virtual/nvme-fabrics/ctl/nvme1/nvme1n1", "259:0");
    assert_eq!(stack(&host), [DeviceKind::NvmeFabric { transport: None }]);
}

#[test]
fn a_multipath_head_shows_its_controllers() {
    let host = on("259:3");
    let subsystem = "virtual/nvme-subsystem/nvme-subsys0";
    host.block(&format!("{subsystem}/nvme0n1"), "259:3");
    for (name, address) in [("nvme0", "0000:02:00.0"), ("nvme3", "0000:82:00.0")] {
        let controller = format!("pci0000:00/{address}/nvme/{name}");
        host.file(&format!("sys/devices/{controller}/transport"), "pcie\n");
        host.link(&format!("sys/devices/{subsystem}/{name}"), &format!("../../../{controller}"));
    }
    host.file(&format!("sys/devices/{subsystem}/serial"), "SECRET\n");
    let kinds = stack(&host);
    let [DeviceKind::NvmeMultipath { controllers }] = kinds.as_slice() else { panic!("{kinds:?}") };
    let found: Vec<_> = controllers
        .iter()
        .map(|one| (one.name.as_str(), one.transport, one.address.as_ref().map(Address::as_str)))
        .collect();
    let pcie = Some(Transport::Pcie);
    assert_eq!(
        found,
        [("nvme0", pcie, Some("0000:02:00.0")), ("nvme3", pcie, Some("0000:82:00.0"))]
    );
}

#[test]
fn device_mapper_says_who_made_it() {
    for (uuid, role) in [
        ("LVM-abcdefSECRET", DmRole::Lvm),
        ("CRYPT-LUKS2-0123SECRET", DmRole::Crypt),
        ("mpath-3600SECRET", DmRole::Mpath),
        ("part1-mpath-3600SECRET", DmRole::Part),
        ("DMRAID-SECRET", DmRole::Other),
        ("", DmRole::Other),
    ] {
        let host = on("253:0");
        let part = host.nvme(0, "0000:01:00.0", 0);
        host.dm(0, uuid, &[&part]);
        let expected = [DeviceKind::Dm { role }, DeviceKind::Partition, nvme("0000:01:00.0")];
        assert_eq!(stack(&host), expected, "{uuid}");
    }
}

#[test]
fn kinds_by_the_kernels_names() {
    for (place, kind) in [
        ("pci0000:00/0000:00:02.0/virtio1/block/vda", DeviceKind::Virtio),
        ("vbd-51712/block/xvda", DeviceKind::Virtio),
        ("pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda", DeviceKind::Scsi),
        ("platform/mmc/mmc0/mmc0:0001/block/mmcblk0", DeviceKind::Mmc),
        ("virtual/block/loop3", DeviceKind::Loop),
        ("virtual/block/zram0", DeviceKind::Zram),
        ("virtual/block/nbd0", DeviceKind::Network),
        ("rbd/0/block/rbd0", DeviceKind::Network),
        ("virtual/block/drbd1", DeviceKind::Network),
        ("virtual/block/ram0", DeviceKind::Other),
        ("LNXSYSTM:00/ACPI0012:00/ndbus0/region0/pfn0.1/block/pmem0", DeviceKind::Other),
    ] {
        let host = on("240:0");
        host.block(place, "240:0");
        assert_eq!(stack(&host), [kind], "{place}");
    }
    let host = on("9:0");
    let part = host.nvme(0, "0000:01:00.0", 0);
    host.virtual_block("md0", "9:0", &[&part]);
    host.file("sys/devices/virtual/block/md0/md/level", "raid0\n");
    let level = Some("raid0".to_owned());
    assert_eq!(
        stack(&host),
        [DeviceKind::Md { level }, DeviceKind::Partition, nvme("0000:01:00.0")]
    );
    let host = on("252:0");
    host.virtual_block("bcache0", "252:0", &[]);
    assert_eq!(stack(&host), [DeviceKind::Bcache]);
}

#[test]
fn a_device_that_sysfs_does_not_show_is_unknown() {
    let facts = read(&on("259:1").tree());
    let device = &facts.devices[facts.mounts[0].block.unwrap()];
    assert_eq!(device.kind, DeviceKind::Unknown);
    let unread = device.unread.as_ref().unwrap();
    assert_eq!(
        (unread.path.as_str(), unread.reason.as_str()),
        ("/sys/dev/block/259:1", "not there")
    );
}

#[test]
fn btrfs_is_found_by_the_name_of_its_source() {
    let host = Host::with(
        "22 1 0:30 /@ / rw - btrfs /dev/nvme0n1p1 rw,subvol=/@\n23 22 0:30 /@home /home rw - btrfs /dev/mapper/x rw\n",
    );
    host.nvme(0, "0000:01:00.0", 0);
    assert_eq!(stack(&host), [DeviceKind::Partition, nvme("0000:01:00.0")]);
    let facts = read(&host.tree());
    assert_eq!((facts.mounts[0].root.as_str(), facts.mounts[1].block), ("/@", None));
}

#[test]
fn a_member_that_is_gone_is_not_left_out() {
    let host = on("253:0");
    host.dm(0, "LVM-x", &[]);
    host.directory("sys/devices/virtual/block/dm-0/slaves/nvme0n1p1");
    let facts = read(&host.tree());
    let [dm, member] = facts.devices.as_slice() else { panic!("{facts:?}") };
    assert_eq!((dm.below.as_slice(), &member.kind), (&[1][..], &DeviceKind::Unknown));
}

#[test]
fn stacks_that_go_in_circles_end() {
    let host = on("253:0");
    host.dm(0, "LVM-x", &["virtual/block/dm-1"]);
    host.dm(1, "LVM-x", &["virtual/block/dm-2", "virtual/block/dm-0"]);
    host.dm(2, "LVM-x", &["virtual/block/dm-1"]);
    let facts = read(&host.tree());
    assert_eq!(facts.devices.len(), 3);
    // Where the circle closed, what is below is left out.
    assert!(facts.devices[1].cut && facts.devices[1].below.is_empty());
    let host = on("253:0");
    host.dm(0, "LVM-x", &["virtual/block/dm-0"]);
    assert!(read(&host.tree()).devices[0].cut);
    // Deeper than anybody builds.
    let host = on("253:0");
    for number in 0..40 {
        host.dm(number, "LVM-x", &[&format!("virtual/block/dm-{}", number + 1)]);
    }
    let facts = read(&host.tree());
    assert!(facts.devices.len() < 40);
    assert!(facts.devices.last().unwrap().cut);
    // Wider.
    let host = on("253:0");
    let members: Vec<String> =
        (1..200).map(|number| format!("virtual/block/loop{number}")).collect();
    host.dm(0, "LVM-x", &members.iter().map(String::as_str).collect::<Vec<_>>());
    let facts = read(&host.tree());
    assert!(facts.devices[0].cut);
    assert_eq!(facts.devices[0].below.len(), 64);
}

#[test]
fn a_table_of_many_devices_is_cut_and_says_so() {
    let mut table = String::new();
    for n in 0..1100 {
        let _ = writeln!(table, "{} 1 7:{n} / /m{n} rw - ext4 /dev/loop{n} rw", n + 22);
    }
    let facts = facts(&table);
    assert_eq!(
        (facts.mounts.len(), facts.devices.len(), facts.flaws.cut),
        (1100, MAX_DEVICES, true)
    );
    let last = facts.mounts.last().unwrap();
    assert!(last.block.and_then(|index| facts.devices.get(index)).is_none());
}

#[test]
fn a_table_of_fifty_thousand_mounts_is_read() {
    let facts = read(&blocks::big(50_000).tree());
    assert_eq!((facts.mounts.len(), facts.flaws.cut, facts.flaws.malformed), (50_000, false, 0));
    assert_eq!(facts.mounts.iter().filter(|mount| mount.hidden).count(), 0);
    assert_eq!(facts.devices.len(), 16);
    let overlay = facts.mounts.iter().find(|mount| mount.fstype == "overlay").unwrap();
    assert_eq!(overlay.layers, [0]);
}

/// A tree that says what the file system would of one file.
struct Says<'a>(&'a dyn Tree, &'a str, Stat);

impl Tree for Says<'_> {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        self.0.read(path, want)
    }
    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        self.0.list(path)
    }
    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        self.0.kind(path)
    }
    fn link(&self, path: &str) -> Result<String, ReadError> {
        self.0.link(path)
    }
    fn stat(&self, path: &str) -> Result<Stat, ReadError> {
        if path == self.1 { Ok(self.2) } else { Err(ReadError::NotRecorded) }
    }
}

const TWO: &str =
    "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n30 22 259:3 / /data rw - xfs /dev/nvme1n1p1 rw\n";

fn stat(device: (u32, u32), mount: Option<u64>) -> Stat {
    Stat { kind: FileKind::File, device, rdev: (0, 0), mount, direct_io: Some((512, 4096)) }
}

#[test]
fn a_file_is_on_the_mount_that_it_names() {
    let host = Host::with(TWO);
    host.file("data/model", "x");
    let tree = host.tree();
    let facts = read(&tree);
    // A bind mount, say: the path alone would say otherwise.
    let said = Says(&tree, "/data/model", stat((259, 1), Some(22)));
    let located = locate(&said, &facts, "/data/model");
    assert_eq!((located.mount, located.doubt), (Some(0), None));
    assert_eq!((located.kind, located.direct_io), (Some(FileKind::File), Some((512, 4096))));
    // Its number is unknown: the longest mount point on the way.
    for mount in [None, Some(99)] {
        let said = Says(&tree, "/data/model", stat((259, 3), mount));
        let located = locate(&said, &facts, "/data/model");
        assert_eq!((located.mount, located.doubt), (Some(1), None), "{mount:?}");
    }
}

#[test]
fn a_file_on_another_device_than_the_table_says_is_in_doubt() {
    let host = Host::with(TWO);
    host.file("data/model", "x");
    let tree = host.tree();
    let facts = read(&tree);
    // As when another root is read: the number of the mount is one of this machine's.
    let said = Says(&tree, "/data/model", stat((254, 0), Some(30)));
    let located = locate(&said, &facts, "/data/model");
    assert_eq!(located.mount, Some(1));
    assert_eq!(
        located.doubt.as_deref(),
        Some("the file is on device 254:0, and the mount table has 259:3 at /data")
    );
}

#[test]
fn links_on_the_path_are_followed() {
    let host = Host::with(TWO);
    host.file("data/models/a", "x");
    host.link("models", "/data/models")
        .link("data/models/b", "../../models/a")
        .link("out", "data/../data/models");
    host.link("loop1", "loop2").link("loop2", "loop1");
    let tree = host.tree();
    let facts = read(&tree);
    for (path, resolved, mount) in [
        ("/data/models/a", "/data/models/a", 1),
        ("/models/a", "/data/models/a", 1),
        ("/models/b", "/data/models/a", 1),
        ("/out/b", "/data/models/a", 1),
        ("/data/../etc", "/etc", 0),
        ("/database", "/database", 0),
        ("/", "/", 0),
        ("/data/", "/data", 1),
    ] {
        let located = locate(&Says(&tree, "", stat((0, 0), None)), &facts, path);
        assert_eq!((located.resolved.as_str(), located.mount), (resolved, Some(mount)), "{path}");
    }
    let located = locate(&Says(&tree, "", stat((0, 0), None)), &facts, "/loop1/x");
    assert_eq!(located.doubt.as_deref(), Some("the links on the path form a loop"));
    let located = locate(&Says(&tree, "", stat((0, 0), None)), &facts, "/data/none");
    assert_eq!(located.doubt.as_deref(), Some("there is no such file"));
    let located = locate(&Says(&tree, "", stat((0, 0), None)), &facts, "data");
    assert_eq!((located.mount, located.doubt.is_some()), (None, true));
}

#[test]
fn a_block_device_is_looked_at_itself() {
    let host = Host::with(TWO);
    host.nvme(0, "0000:01:00.0", 0);
    let tree = host.tree();
    let facts = read(&tree);
    let node = Stat { kind: FileKind::BlockDevice, rdev: (259, 1), ..stat((0, 6), None) };
    let located = locate(&Says(&tree, "/dev/nvme0n1p1", node), &facts, "/dev/nvme0n1p1");
    let kinds: Vec<_> = located.devices.iter().map(|device| device.kind.clone()).collect();
    assert_eq!(kinds, [DeviceKind::Partition, nvme("0000:01:00.0")]);
}

/// A host with something to hide everywhere.
#[cfg(feature = "snapshot")]
fn full() -> Host {
    let id = "0123456789abcdef".repeat(4);
    let uuid = "a1b2c3d4-1111-4222-8333-a1b2c3d4e5f6";
    let host = Host::with(&format!(
        "22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/secret--vg-root rw,resuid=secret\n\
         23 22 259:1 / /fast rw - xfs /dev/disk/by-id/nvme-secret rw,logdev=/dev/secret\n\
         24 22 259:9 / /paths rw - xfs /dev/nvme9n1 rw\n\
         25 22 0:40 / /shared rw - nfs4 secret.example.com:/export rw,proto=rdma,addr=10.0.0.1\n\
         26 22 0:41 / /old rw - cifs //secret/share rw,username=secret,password=secret\n\
         27 22 0:42 / /var/lib/docker/overlay2/{id}/merged rw - overlay overlay rw,\
         lowerdir=/var/lib/docker/overlay2/l/A,upperdir=/var/lib/docker/overlay2/{id}/diff\n\
         28 22 253:2 / /pods/{uuid}/data rw - ext4 /dev/secret/data rw\n\
         29 22 0:43 / /pool rw - zfs secret/data rw\n"
    ));
    let part = host.nvme(0, "0000:01:00.0", 0);
    host.file("sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/nvme/nvme0/serial", "secret\n");
    host.dm(0, "LVM-secret", &["virtual/block/dm-1"]);
    host.dm(1, "CRYPT-LUKS2-secret", &[&part]);
    host.dm(2, "mpath-secret", &[]);
    host.file("sys/devices/virtual/block/dm-0/dm/name", "secret--vg-root\n");
    host.ext4("dm-0", Some("ordered"));
    let subsystem = "virtual/nvme-subsystem/nvme-subsys9";
    host.block(&format!("{subsystem}/nvme9n1"), "259:9");
    host.file(&format!("sys/devices/{subsystem}/subsysnqn"), "secret\n");
    host.directory(&format!("sys/devices/{subsystem}/secret-name"));
    host.file("sys/devices/virtual/nvme-fabrics/ctl/nvme9/transport", "rdma\n");
    host.file("sys/devices/virtual/nvme-fabrics/ctl/nvme9/address", "traddr=10.0.0.1\n");
    host.link(&format!("sys/devices/{subsystem}/nvme9"), "../../nvme-fabrics/ctl/nvme9");
    host
}

#[cfg(feature = "snapshot")]
#[test]
fn a_snapshot_gives_the_same_facts_and_names_nobody() {
    use fastpath_host::mask::mask_ids;
    use fastpath_host::snapshot::{Meta, Recorder, Replay, write};
    use std::io::Read as _;

    let host = full();
    let tree = host.tree();
    let recorder = Recorder::new(&tree);
    let kept = read(&recorder);
    let mut packed = Vec::new();
    write(&recorder, &Meta::new("0.1.0", "2026-11-30T12:00:00Z"), &mut packed).unwrap();
    let replay = Replay::from_bytes(packed.clone()).unwrap();
    assert_eq!(read(&replay), kept);
    // What the host itself gives differs in ids only; here those of one container and one pod.
    let zero = "0".repeat(64);
    let live = serde_json::to_string(&read(&tree)).unwrap();
    let live = mask_ids(&live).replace(&"0123456789abcdef".repeat(4), &zero);
    assert_eq!(live, serde_json::to_string(&kept).unwrap());
    let mut plain = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(packed.as_slice())
        .unwrap()
        .read_to_end(&mut plain)
        .unwrap();
    let text = String::from_utf8_lossy(&plain);
    for secret in ["secret", "10.0.0.1", "a1b2c3d4", "0123456789abcdef"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    // The reader of the environment finds its word in what this one has left of the same file.
    assert!(text.contains("docker"));
}

#[cfg(feature = "snapshot")]
#[test]
fn an_older_snapshot_says_nothing_of_volumes() {
    use fastpath_host::snapshot::{Meta, Recorder, Replay, write};
    use fastpath_host::{Asked, gather};

    let host = full();
    let tree = host.tree();
    let recorder = Recorder::new(&tree);
    let environment = gather(&recorder, &Asked::Running).environment;
    let mut packed = Vec::new();
    write(&recorder, &Meta::new("0.1.0", "2026-11-30T12:00:00Z"), &mut packed).unwrap();
    let replay = Replay::from_bytes(packed).unwrap();
    let unread = read(&replay).unread.unwrap();
    assert!(unread.not_recorded, "{unread:?}");
    // And one that holds both answers both.
    let both = Recorder::new(&tree);
    assert_eq!(gather(&both, &Asked::Running).environment, environment);
    let facts = read(&both);
    let mut packed = Vec::new();
    write(&both, &Meta::new("0.1.0", "2026-11-30T12:00:00Z"), &mut packed).unwrap();
    let replay = Replay::from_bytes(packed).unwrap();
    assert_eq!(read(&replay), facts);
    assert_eq!(gather(&replay, &Asked::Running).environment, environment);
}
