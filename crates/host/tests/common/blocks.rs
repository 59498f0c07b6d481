//! Builds trees of mount tables and block devices for tests.
#![allow(dead_code, reason = "each test uses a part")]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use fastpath_host::DirTree;
use tempfile::TempDir;

/// A directory to build a host in.
pub(crate) struct Host {
    root: TempDir,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self { root: TempDir::new().unwrap() }
    }

    /// With this mount table.
    pub(crate) fn with(mounts: &str) -> Self {
        let host = Self::new();
        host.file("proc/self/mountinfo", mounts);
        host
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let path = self.root.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub(crate) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(path), bytes).unwrap();
        self
    }

    pub(crate) fn link(&self, path: &str, target: &str) -> &Self {
        symlink(target, self.path(path)).unwrap();
        self
    }

    pub(crate) fn directory(&self, path: &str) -> &Self {
        fs::create_dir_all(self.path(path)).unwrap();
        self
    }

    pub(crate) fn tree(&self) -> DirTree {
        DirTree::open(self.root.path()).unwrap()
    }

    /// A block device at its place below `/sys/devices`, with the links that lead to it.
    pub(crate) fn block(&self, place: &str, number: &str) -> &Self {
        let name = place.rsplit('/').next().unwrap();
        self.file(&format!("sys/devices/{place}/dev"), format!("{number}\n"));
        self.link(&format!("sys/dev/block/{number}"), &format!("../../devices/{place}"));
        self.link(&format!("sys/class/block/{name}"), &format!("../../devices/{place}"))
    }

    /// An NVMe drive `nvmeN` with its first namespace, number 259:M, and one partition, 259:M+1.
    pub(crate) fn nvme(&self, number: u32, address: &str, minor: u32) -> String {
        let controller = format!("pci0000:00/0000:00:01.1/{address}/nvme/nvme{number}");
        self.file(&format!("sys/devices/{controller}/transport"), "pcie\n");
        let disk = format!("{controller}/nvme{number}n1");
        self.block(&disk, &format!("259:{minor}"));
        let part = format!("{disk}/nvme{number}n1p1");
        self.block(&part, &format!("259:{}", minor + 1));
        self.file(&format!("sys/devices/{part}/partition"), "1\n");
        part
    }

    /// A SATA disk, number 8:M, and one partition, 8:M+1.
    pub(crate) fn sata(&self, letter: char, minor: u32) -> String {
        let disk =
            format!("pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sd{letter}");
        self.block(&disk, &format!("8:{minor}"));
        let part = format!("{disk}/sd{letter}1");
        self.block(&part, &format!("8:{}", minor + 1));
        part
    }

    /// A device below `/sys/devices/virtual/block` that is made of others.
    pub(crate) fn virtual_block(&self, name: &str, number: &str, members: &[&str]) -> String {
        let place = format!("virtual/block/{name}");
        self.block(&place, number).directory(&format!("sys/devices/{place}/slaves"));
        for member in members {
            let member_name = member.rsplit('/').next().unwrap();
            let link = format!("sys/devices/{place}/slaves/{member_name}");
            self.link(&link, &format!("../../../../{member}"));
        }
        place
    }

    /// A device-mapper device, number 253:N.
    pub(crate) fn dm(&self, number: u32, uuid: &str, members: &[&str]) -> String {
        let place = self.virtual_block(&format!("dm-{number}"), &format!("253:{number}"), members);
        self.file(&format!("sys/devices/{place}/dm/uuid"), format!("{uuid}\n"));
        place
    }

    /// The mode in effect of the ext4 on a device.
    pub(crate) fn ext4(&self, name: &str, mode: Option<&str>) -> &Self {
        let mode = mode.map(|mode| format!("data={mode}\n")).unwrap_or_default();
        let text = format!("rw\nbsddf\nerrors=continue\n{mode}inode_readahead_blks=32\n");
        self.file(&format!("proc/fs/ext4/{name}/options"), text)
    }
}

/// A host with this many mounts in the mixture of a busy one: containers' overlays and shared memory, volumes by the thousand on
/// eight NVMe drives, the rest pseudo file systems.
pub(crate) fn big(mounts: usize) -> Host {
    let mut table = String::from(
        "22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw,errors=remount-ro\n",
    );
    for number in 1..mounts {
        let id = number + 22;
        let drive = number / 4 % 8;
        let minor = drive * 2 + 1;
        let _ = match number % 4 {
            0 => writeln!(
                table,
                "{id} 22 0:{id} / /var/lib/docker/overlay2/{number:064x}/merged rw,relatime - overlay overlay rw,\
                 lowerdir=/var/lib/docker/overlay2/l/A{number}:/var/lib/docker/overlay2/l/B{number},\
                 upperdir=/var/lib/docker/overlay2/{number:064x}/diff,workdir=/var/lib/docker/overlay2/{number:064x}/work"
            ),
            1 => writeln!(
                table,
                "{id} 22 0:{id} / /var/lib/kubelet/pods/{number:08x}-0000-4000-8000-000000000000/shm rw - tmpfs shm rw,size=65536k"
            ),
            2 => writeln!(
                table,
                "{id} 22 259:{minor} /data/{number} /srv/volumes/{number} rw,relatime shared:{number} - xfs /dev/nvme{drive}n1p1 rw"
            ),
            _ => writeln!(table, "{id} 22 0:5 / /run/netns/{number} rw - nsfs nsfs rw"),
        };
    }
    let host = Host::with(&table);
    for drive in 0..8 {
        host.nvme(drive, &format!("0000:{:02x}:00.0", drive + 1), drive * 2);
    }
    host.ext4("nvme0n1p1", Some("ordered"));
    host
}
