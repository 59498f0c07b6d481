//! Mounted file systems and the block devices below them.
//!
//! [`read`] gives the mount table, the effective journal mode of every ext4, and for every mount that matters the stack of
//! block devices below it, down to the NVMe functions. [`locate`] says on which of these mounts a file is.
//!
//! What names a server, a person's volume group or a serial number is never kept: see [`Mount::source`].

mod block;
mod journal;
mod locate;
mod table;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use block::{Controller, Device, DeviceKind, DmRole, MAX_DEVICES, Transport};
pub use journal::{Journal, JournalMode, JournalSource};
pub use locate::{Located, locate};
pub use table::{MAX_MOUNTS, MOUNTINFO, Mount, SourceKind};

use crate::tree::{FileKind, Tree, Unread};
use block::Stacks;

/// The volume layer of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeFacts {
    /// The table that was read.
    pub table: String,
    /// Every mount, in the order of the table, pseudo file systems included.
    pub mounts: Vec<Mount>,
    /// Why there is no table, if there is none.
    pub unread: Option<Unread>,
    /// Lines of the table that are no mounts, and whether there are more mounts than are looked at.
    pub flaws: Flaws,
    /// Block devices below the mounts; they name each other, and mounts name them, by index.
    pub devices: Vec<Device>,
}

/// What is wrong with a table that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaws {
    /// How many lines are no mounts.
    pub malformed: u32,
    /// 1-based number of the first of them.
    pub first: Option<u32>,
    /// There are more mounts than [`MAX_MOUNTS`], or more devices than [`MAX_DEVICES`].
    pub cut: bool,
}

/// As many bind mounts as a container that somebody set up by hand has; of more it is not asked what they are.
const MAX_PARTS: usize = 256;

/// Reads the volume layer.
pub fn read(tree: &dyn Tree) -> VolumeFacts {
    read_of(tree, MOUNTINFO)
}

/// Reads the volume layer as the process sees it whose mount table this is, `/proc/PID/mountinfo`.
pub fn read_of(tree: &dyn Tree, table: &str) -> VolumeFacts {
    let mut facts = VolumeFacts { table: table.to_owned(), ..VolumeFacts::default() };
    match table::read(tree, table) {
        Ok((mounts, flaws)) => (facts.mounts, facts.flaws) = (mounts, flaws),
        Err(unread) => {
            facts.unread = Some(unread);
            return facts;
        }
    }
    let mounts = &mut facts.mounts;
    let bound = mounts.iter_mut().filter(|mount| mount.matters() && mount.is_part());
    for mount in bound.take(MAX_PARTS) {
        mount.single_file = tree.kind(&mount.mount_point) == Ok(FileKind::File);
    }
    let mut stacks = Stacks::new(tree);
    for mount in mounts.iter_mut().filter(|mount| mount.matters()) {
        mount.block = if mount.device.0 == 0 {
            // Of such a file system only the name says which device it is on.
            mount
                .source
                .as_deref()
                .filter(|_| mount.source_kind == SourceKind::Device)
                .and_then(|source| stacks.named(source.strip_prefix("/dev/").unwrap_or_default()))
        } else {
            Some(stacks.numbered(mount.device))
        };
    }
    let mut modes = HashMap::new();
    for mount in mounts.iter_mut().filter(|mount| mount.matters() && mount.fstype == "ext4") {
        let name = journal::device(mount.block.map(|index| stacks.name(index)), mount).to_owned();
        let read = modes.entry(name).or_insert_with_key(|name| journal::effective(tree, name));
        mount.journal = Some(journal::of(read.as_ref(), mount, table));
    }
    let (devices, cut) = stacks.finish();
    facts.devices = devices;
    facts.flaws.cut |= cut;
    facts
}

/// A file system that is mounted somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// The type, `ext4`.
    pub fstype: String,
    /// The journal mode, for an ext4.
    pub journal: Option<JournalMode>,
}

/// The file system with this device number, for who has a descriptor and no use for the whole layer. `None` if the mount table
/// of this process could not be read, or does not have it.
pub fn file_system(tree: &dyn Tree, device: (u32, u32)) -> Option<FileSystem> {
    let mount = table::first_on(tree, MOUNTINFO, device)?;
    let journal = (mount.fstype == "ext4").then(|| {
        let block = block::name(tree, device);
        let effective = journal::effective(tree, journal::device(block.as_deref(), &mount));
        journal::of(effective.as_ref(), &mount, MOUNTINFO).mode
    });
    Some(FileSystem { fstype: mount.fstype, journal })
}

impl VolumeFacts {
    /// The block device a mount is on.
    pub fn device(&self, mount: &Mount) -> Option<&Device> {
        mount.block.and_then(|index| self.devices.get(index))
    }
}
