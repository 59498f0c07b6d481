//! Which file system a file is on, and how ext4 journals it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use fastpath_host::{Tree, Want};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

use crate::choose::Reason;

/// What matters of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// XFS.
    Xfs,
    /// ext4.
    Ext4(Journal),
    /// Any other.
    Other,
    /// The mount table does not have it.
    Unknown,
}

/// What ext4 does with the data of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Written before the metadata that points to it. A file system without a journal counts as this too: it shows no mode, and
    /// direct I/O is the same there.
    Ordered,
    /// Written to the journal first: direct I/O is not done.
    Data,
    /// Written at any time.
    Writeback,
    /// A word that is not known.
    Unknown,
}

impl FileSystem {
    /// Why regular files on it cannot take the fastpath.
    pub(crate) fn refusal(self) -> Option<Reason> {
        match self {
            Self::Xfs | Self::Ext4(Journal::Ordered) => None,
            Self::Ext4(_) => Some(Reason::JournalMode),
            Self::Other | Self::Unknown => Some(Reason::FileSystem),
        }
    }
}

/// The file systems seen, by device. Forgotten when the kernel says that a mount came or went.
#[derive(Debug, Default)]
pub(crate) struct FileSystems {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    by_device: HashMap<(u32, u32), FileSystem>,
    watch: Option<OwnedFd>,
}

impl Seen {
    /// Empties itself if mounts changed. Source: <https://man7.org/linux/man-pages/man5/proc_pid_mounts.5.html>.
    fn refresh(&mut self) {
        const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Some(watch) = &self.watch else {
            // Watching starts before the first look; without it nothing is remembered.
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            self.watch = rustix::fs::open("/proc/self/mountinfo", flags, Mode::empty()).ok();
            self.by_device.clear();
            return;
        };
        let mut asked = [PollFd::new(watch, PollFlags::PRI)];
        let changed = !matches!(poll(&mut asked, Some(&NOW)), Ok(0));
        if changed {
            self.by_device.clear();
        }
    }
}

impl FileSystems {
    /// Remembers nothing, and watches nothing until it is asked again.
    pub(crate) fn forget(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
    }

    /// The file system with this device number.
    pub(crate) fn get(&self, tree: &dyn Tree, device: (u32, u32)) -> FileSystem {
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.refresh();
            if let Some(known) = seen.by_device.get(&device) {
                return *known;
            }
        }
        let found = look_up(tree, device);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if found != FileSystem::Unknown && seen.watch.is_some() {
            seen.by_device.insert(device, found);
        }
        found
    }
}

fn look_up(tree: &dyn Tree, device: (u32, u32)) -> FileSystem {
    const TABLE: &str = "/proc/self/mountinfo";
    const LIMIT: usize = 16 << 20;
    let Ok(table) = tree.read(TABLE, &Want::whole(LIMIT)) else { return FileSystem::Unknown };
    let table = String::from_utf8_lossy(&table.bytes);
    let number = format!("{}:{}", device.0, device.1);
    let Some(mount) = table.lines().find_map(|line| parse(line, &number)) else {
        return FileSystem::Unknown;
    };
    match mount.kind {
        "xfs" => FileSystem::Xfs,
        "ext4" => FileSystem::Ext4(
            effective_journal(tree, &number).unwrap_or_else(|| journal(mount.options.split(','))),
        ),
        _ => FileSystem::Other,
    }
}

struct Mount<'a> {
    kind: &'a str,
    options: &'a str,
}

/// One line of `mountinfo`, if it is of this device.
fn parse<'a>(line: &'a str, device: &str) -> Option<Mount<'a>> {
    let (mount, file_system) = line.split_once(" - ")?;
    if mount.split(' ').nth(2)? != device {
        return None;
    }
    let mut fields = file_system.split(' ');
    let kind = fields.next()?;
    let options = fields.nth(1).unwrap_or_default();
    Some(Mount { kind, options })
}

/// What the file system itself says: a default that `tune2fs` set shows in no mount table.
fn effective_journal(tree: &dyn Tree, device: &str) -> Option<Journal> {
    let link = tree.link(&format!("/sys/dev/block/{device}")).ok()?;
    let name = link.rsplit('/').next()?;
    let options =
        tree.read(&format!("/proc/fs/ext4/{name}/options"), &Want::whole(1 << 16)).ok()?;
    Some(journal(String::from_utf8_lossy(&options.bytes).lines()))
}

fn journal<'a>(mut options: impl Iterator<Item = &'a str>) -> Journal {
    match options.find_map(|option| option.trim().strip_prefix("data=")) {
        None | Some("ordered") => Journal::Ordered,
        Some("journal") => Journal::Data,
        Some("writeback") => Journal::Writeback,
        Some(_) => Journal::Unknown,
    }
}
