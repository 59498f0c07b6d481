//! What is remembered of file systems: whether their regular files can take the fastpath.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use fastpath_host::{Tree, volume};
use fastpath_verdict::volume::refusal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

use crate::choose::Reason;
use crate::descriptor::beyond_standard;
use crate::sync::lock;

/// The file systems seen, by device. Forgotten when the kernel says that a mount came or went.
#[derive(Debug, Default)]
pub(crate) struct FileSystems {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Why not, for each.
    by_device: HashMap<(u32, u32), Option<Reason>>,
    watch: Option<OwnedFd>,
}

impl Seen {
    /// Empties itself if mounts changed. Source: <https://man7.org/linux/man-pages/man5/proc_pid_mounts.5.html>.
    fn refresh(&mut self) {
        const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Some(watch) = &self.watch else {
            // Watching starts before the first look; without it nothing is remembered.
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let opened = rustix::fs::open("/proc/self/mountinfo", flags, Mode::empty());
            self.watch = opened.and_then(beyond_standard).ok();
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
        *lock(&self.seen) = Seen::default();
    }

    /// Why regular files of the file system with this device number cannot take the fastpath.
    pub(crate) fn refusal(&self, tree: &dyn Tree, device: (u32, u32)) -> Option<Reason> {
        {
            let mut seen = lock(&self.seen);
            seen.refresh();
            if let Some(known) = seen.by_device.get(&device) {
                return *known;
            }
        }
        let Some(found) = volume::file_system(tree, device) else {
            return Some(Reason::FileSystem);
        };
        let refusal = refusal(&found.fstype, found.journal).map(|reason| match reason {
            fastpath_verdict::Reason::JournalMode => Reason::JournalMode,
            _ => Reason::FileSystem,
        });
        let mut seen = lock(&self.seen);
        if seen.watch.is_some() {
            seen.by_device.insert(device, refusal);
        }
        refusal
    }
}
