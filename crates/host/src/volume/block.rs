//! The stack of block devices below a mount, as sysfs shows it.
//!
//! Source: <https://docs.kernel.org/admin-guide/sysfs-rules.html> and
//! <https://github.com/torvalds/linux/blob/master/Documentation/ABI/testing/sysfs-block>.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::pci::Address;
use crate::tree::{FileKind, ReadError, Tree, Unread, Want, join_link};

/// More devices than stand below the mounts of any real host; a snapshot must hold what is asked about each of them.
pub const MAX_DEVICES: usize = 1024;

/// More members than any real stack has; AMD's driver takes 16.
const MAX_MEMBERS: usize = 64;

/// More layers than any real stack has; AMD's driver takes a handful.
const MAX_DEPTH: usize = 16;

/// More controllers than the kernel's own limit of paths that anybody uses.
const MAX_CONTROLLERS: usize = 64;

/// Attributes of sysfs are at most a page.
const ATTRIBUTE: usize = 4096;

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The kernel's name, `nvme0n1p1`; empty if it could not be found out.
    pub name: String,
    /// Its directory below `/sys/devices`, or the link that could not be followed.
    pub path: String,
    /// What it is.
    pub kind: DeviceKind,
    /// The devices it is made of, by index: a partition's disk, a mapper's or RAID's members.
    pub below: Vec<usize>,
    /// What about it could not be read.
    pub unread: Option<Unread>,
    /// It has more members, stands in a deeper stack than is followed, or in one that comes back to itself.
    pub cut: bool,
}

/// Kinds of block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum DeviceKind {
    /// Part of the disk below it.
    Partition,
    /// A namespace of an NVMe function on PCI.
    Nvme {
        /// The function.
        address: Address,
    },
    /// A namespace of an NVMe controller that is on no PCI function.
    NvmeFabric {
        /// How the controller is reached, if that could be read.
        transport: Option<Transport>,
    },
    /// The head of a multipath namespace: several controllers may stand below it.
    NvmeMultipath {
        /// They.
        controllers: Vec<Controller>,
    },
    /// A device-mapper device.
    Dm {
        /// Who made it.
        role: DmRole,
    },
    /// Linux software RAID.
    Md {
        /// Its level, `raid0`.
        level: Option<String>,
    },
    /// A file as a disk.
    Loop,
    /// Compressed memory.
    Zram,
    /// A disk with a cache in front.
    Bcache,
    /// A network block device of one of the kernel's kinds: NBD, RBD, DRBD, RNBD.
    Network,
    /// A virtual machine's disk: virtio or Xen.
    Virtio,
    /// SCSI, SATA, SAS or USB.
    Scsi,
    /// A memory card.
    Mmc,
    /// Another driver's.
    Other,
    /// It could not be found out.
    Unknown,
}

/// Who made a device-mapper device, by the first part of its `dm/uuid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DmRole {
    /// LVM.
    Lvm,
    /// cryptsetup: LUKS or plain dm-crypt.
    Crypt,
    /// multipath-tools.
    Mpath,
    /// kpartx: a partition of another device-mapper device.
    Part,
    /// Somebody else, or it does not say.
    Other,
    /// It could not be read.
    Unknown,
}

/// How an NVMe controller is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// PCI Express.
    Pcie,
    /// RDMA: InfiniBand, RoCE, iWARP.
    Rdma,
    /// TCP.
    Tcp,
    /// Fibre Channel.
    Fc,
    /// A target on the same host.
    Loop,
    /// A word that is none of these.
    Other,
}

impl Transport {
    fn named(word: &str) -> Self {
        match word {
            "pcie" => Self::Pcie,
            "rdma" => Self::Rdma,
            "tcp" => Self::Tcp,
            "fc" => Self::Fc,
            "loop" => Self::Loop,
            _ => Self::Other,
        }
    }
}

/// One controller below a multipath namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    /// The kernel's name, `nvme0`.
    pub name: String,
    /// How it is reached, if that could be read.
    pub transport: Option<Transport>,
    /// The PCI function, if it is one.
    pub address: Option<Address>,
}

/// The devices seen so far.
pub(super) struct Stacks<'a> {
    tree: &'a dyn Tree,
    devices: Vec<Device>,
    /// By path, so that each is read once.
    known: HashMap<String, usize>,
    cut: bool,
}

/// The link of sysfs that leads to the device of a number.
fn by_number((major, minor): (u32, u32)) -> String {
    format!("/sys/dev/block/{major}:{minor}")
}

/// The kernel's name of the block device of this number, and nothing else about it.
pub(super) fn name(tree: &dyn Tree, device: (u32, u32)) -> Option<String> {
    let target = tree.link(&by_number(device)).ok()?;
    target.rsplit('/').next().map(str::to_owned)
}

impl<'a> Stacks<'a> {
    pub(super) fn new(tree: &'a dyn Tree) -> Self {
        Self { tree, devices: Vec::new(), known: HashMap::new(), cut: false }
    }

    /// The devices, and whether there were more than [`MAX_DEVICES`].
    pub(super) fn finish(self) -> (Vec<Device>, bool) {
        (self.devices, self.cut)
    }

    pub(super) fn name(&self, index: usize) -> &str {
        self.devices.get(index).map_or("", |device| &device.name)
    }

    /// The block device of this number.
    pub(super) fn numbered(&mut self, device: (u32, u32)) -> usize {
        self.linked(&by_number(device), 0)
    }

    /// The block device of this name, if it is one that could stand in sysfs.
    pub(super) fn named(&mut self, name: &str) -> Option<usize> {
        let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        plain.then(|| self.linked(&format!("/sys/class/block/{name}"), 0))
    }

    /// The device that a link of sysfs leads to.
    fn linked(&mut self, link: &str, depth: usize) -> usize {
        if let Some(&index) = self.known.get(link) {
            return index;
        }
        let index = match self.tree.link(link) {
            Ok(target) => {
                let path = join_link(link, &target);
                match self.tree.kind(&path) {
                    Err(error) if error != ReadError::NotRecorded => self.push(Device {
                        unread: Some(Unread::new(&path, error)),
                        ..Device::new(String::new(), link, DeviceKind::Unknown)
                    }),
                    _ => self.device(&path, depth),
                }
            }
            Err(error) => self.push(Device {
                unread: Some(Unread::new(link, error)),
                ..Device::new(String::new(), link, DeviceKind::Unknown)
            }),
        };
        self.known.insert(link.to_owned(), index);
        index
    }

    fn push(&mut self, device: Device) -> usize {
        if self.devices.len() < MAX_DEVICES {
            self.known.insert(device.path.clone(), self.devices.len());
            self.devices.push(device);
        } else {
            self.cut = true;
        }
        // One that has no room left is none: whoever looks it up finds nothing.
        if self.cut { MAX_DEVICES } else { self.devices.len() - 1 }
    }

    fn device(&mut self, path: &str, depth: usize) -> usize {
        if let Some(&index) = self.known.get(path) {
            return index;
        }
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (_, parent) = directory.rsplit_once('/').unwrap_or(("", directory));
        let kind = if is_part_of(parent, name) {
            DeviceKind::Partition
        } else {
            self.kind(path, directory, name)
        };
        let index = self.push(Device::new(name.to_owned(), path, kind.clone()));
        if index == MAX_DEVICES {
            return index;
        }
        if depth >= MAX_DEPTH {
            self.devices[index].cut = true;
            return index;
        }
        let below = match kind {
            DeviceKind::Partition => vec![self.device(directory, depth + 1)],
            DeviceKind::Dm { .. } | DeviceKind::Md { .. } | DeviceKind::Bcache => {
                self.members(index, path, depth)
            }
            _ => Vec::new(),
        };
        // A member that was met before on the way down leads back to this one.
        let circle = below.iter().any(|&member| self.reaches(member, index));
        let device = &mut self.devices[index];
        device.cut |= circle;
        device.below = if circle { Vec::new() } else { below };
        index
    }

    /// Whether a device is below another one or it itself. Devices that are being read have nothing below them yet.
    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.devices.len()];
        let mut todo = vec![from];
        while let Some(index) = todo.pop() {
            if index == to {
                return true;
            }
            if let Some(device) = self.devices.get(index)
                && !std::mem::replace(&mut seen[index], true)
            {
                todo.extend(&device.below);
            }
        }
        false
    }

    fn members(&mut self, index: usize, path: &str, depth: usize) -> Vec<usize> {
        let directory = format!("{path}/slaves");
        let mut names = match self.tree.list(&directory) {
            Ok(names) => names,
            Err(error) => {
                self.devices[index].unread = Some(Unread::new(&directory, error));
                return Vec::new();
            }
        };
        names.retain(|entry| {
            matches!(entry.kind, FileKind::Link | FileKind::Directory | FileKind::Unknown)
        });
        if names.len() > MAX_MEMBERS {
            self.devices[index].cut = true;
            names.truncate(MAX_MEMBERS);
        }
        names
            .iter()
            .map(|entry| self.linked(&format!("{directory}/{}", entry.name), depth + 1))
            .collect()
    }

    fn kind(&self, path: &str, directory: &str, name: &str) -> DeviceKind {
        let numbered = |driver: &str| {
            name.strip_prefix(driver)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let lettered = |driver: &str| {
            name.strip_prefix(driver)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        };
        if numbered("nvme") {
            self.nvme(directory)
        } else if numbered("dm-") {
            DeviceKind::Dm { role: self.role(path) }
        } else if numbered("md") || name.starts_with("md_") {
            DeviceKind::Md {
                level: self.word(&format!("{path}/md/level")).ok().filter(|word| !word.is_empty()),
            }
        } else if numbered("loop") {
            DeviceKind::Loop
        } else if numbered("zram") {
            DeviceKind::Zram
        } else if numbered("bcache") {
            DeviceKind::Bcache
        } else if ["nbd", "rbd", "drbd", "rnbd"].into_iter().any(numbered) {
            DeviceKind::Network
        } else if lettered("vd") || lettered("xvd") {
            DeviceKind::Virtio
        } else if lettered("sd") || lettered("hd") || numbered("sr") {
            DeviceKind::Scsi
        } else if numbered("mmcblk") {
            DeviceKind::Mmc
        } else {
            DeviceKind::Other
        }
    }

    /// What an NVMe namespace below this directory is. That its name begins with `nvme` says nothing about PCI.
    fn nvme(&self, directory: &str) -> DeviceKind {
        let (above, last) = directory.rsplit_once('/').unwrap_or(("", directory));
        if last.starts_with("nvme-subsys") {
            return DeviceKind::NvmeMultipath { controllers: self.controllers(directory) };
        }
        if let Some(address) = function(above) {
            return DeviceKind::Nvme { address };
        }
        DeviceKind::NvmeFabric { transport: self.transport(directory) }
    }

    fn controllers(&self, subsystem: &str) -> Vec<Controller> {
        let names = self.tree.list(subsystem).unwrap_or_default();
        let is_controller = |name: &str| {
            let number = name.strip_prefix("nvme");
            number.is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        let names = names.into_iter().map(|entry| entry.name).filter(|name| is_controller(name));
        names
            .take(MAX_CONTROLLERS)
            .map(|name| {
                let link = format!("{subsystem}/{name}");
                let path = self.tree.link(&link).ok().map(|target| join_link(&link, &target));
                let address = path.as_ref().and_then(|path| function(path.rsplit_once('/')?.0));
                let transport = path.and_then(|path| self.transport(&path));
                Controller { name, transport, address }
            })
            .collect()
    }

    fn transport(&self, controller: &str) -> Option<Transport> {
        let word = self.word(&format!("{controller}/transport")).ok()?;
        (!word.is_empty()).then(|| Transport::named(&word))
    }

    /// Who made a device-mapper device. What follows the first part of the `uuid` is the id of a volume, and not read.
    fn role(&self, path: &str) -> DmRole {
        let want = Want::lines(ATTRIBUTE, keep_role);
        let Ok(content) = self.tree.read(&format!("{path}/dm/uuid"), &want) else {
            return DmRole::Unknown;
        };
        match content.bytes.trim_ascii() {
            b"LVM-" => DmRole::Lvm,
            b"CRYPT-" => DmRole::Crypt,
            b"mpath-" => DmRole::Mpath,
            b"part-" => DmRole::Part,
            _ => DmRole::Other,
        }
    }

    /// The one word of an attribute; others are left out, for no attribute read here has more.
    fn word(&self, path: &str) -> Result<String, ReadError> {
        let content = self.tree.read(path, &Want::lines(ATTRIBUTE, keep_word))?;
        Ok(String::from_utf8_lossy(content.bytes.trim_ascii()).into_owned())
    }
}

impl Device {
    fn new(name: String, path: &str, kind: DeviceKind) -> Self {
        Self { name, path: path.to_owned(), kind, below: Vec::new(), unread: None, cut: false }
    }
}

/// Keeps who made a device-mapper device.
fn keep_role(line: &[u8], out: &mut Vec<u8>) {
    let role: &[u8] = match line {
        _ if line.starts_with(b"LVM-") => b"LVM-",
        _ if line.starts_with(b"CRYPT-") => b"CRYPT-",
        _ if line.starts_with(b"mpath-") => b"mpath-",
        // `part1-mpath-...`
        _ if line.starts_with(b"part") => b"part-",
        _ => b"",
    };
    out.extend_from_slice(role);
}

/// Keeps a line of one short word in small letters and digits.
fn keep_word(line: &[u8], out: &mut Vec<u8>) {
    const LONGEST: usize = 16;
    let line = line.trim_ascii();
    if line.len() <= LONGEST
        && line.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    {
        out.extend_from_slice(line);
    }
}

/// Whether a device is named as a partition of a disk is: the disk's name, `p` if that ends in a digit, and a number.
fn is_part_of(disk: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk).filter(|_| !disk.is_empty()) else { return false };
    let number = if disk.ends_with(|c: char| c.is_ascii_digit()) {
        rest.strip_prefix('p')
    } else {
        Some(rest)
    };
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The PCI function whose `nvme` directory this is.
fn function(directory: &str) -> Option<Address> {
    let (above, last) = directory.rsplit_once('/')?;
    let (_, function) = above.rsplit_once('/')?;
    (last == "nvme").then(|| Address::new(function)).flatten()
}
