//! A registered file: what was learned of it once, and what its fastpath taught since.

use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use fastpath_host::Tree;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::choose::{REASONS, Reason};
use crate::descriptor::{beyond_standard, duplicate};
use crate::driver::Numbered;
use crate::error::Error;
use crate::filesystem::FileSystems;
use crate::sync::{GROUPS, group};

/// What direct I/O is aligned to where the file system does not tell.
const USUAL_ALIGN: u32 = 4096;

/// What drivers that know no file's own alignment ask for.
const PAGE: u32 = 4096;

/// GPUs whose refusals are remembered.
const GPUS: usize = 16;

/// After so many refusals in a row a GPU is not asked again for this file.
const PATIENCE: u8 = 4;

/// A registered file. Clones are one file; each keeps others from what a processor has of it.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct File(Arc<Opened>);

impl Deref for File {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

/// What there is once of a file. It has descriptors of its own: a number that its program closes and uses again leads to no other
/// file. As everywhere, closing any descriptor of a file drops the process's POSIX record locks on it, which deregistration does.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The client's descriptor, which may mean another file by now.
    number: RawFd,
    identity: (u64, u64),
    /// The client's file, with its flags.
    own: OwnedFd,
    /// The same file with `O_DIRECT` the other way round.
    other: Option<OwnedFd>,
    client_is_direct: bool,
    must_sync: bool,
    memory_align: u32,
    offset_align: u32,
    refused: Option<Reason>,
    /// Whether the driver wants pages, whatever the file says.
    wants_pages: AtomicBool,
    refusals: [Refusals; GPUS],
    /// Those that were met, a bit each.
    met: AtomicU64,
    reasons: [Reasons; GROUPS],
}

/// How often a group of threads met each reason.
#[derive(Debug)]
#[repr(align(64))]
struct Reasons([AtomicU64; REASONS]);

// Each has a bit.
const _: () = assert!(REASONS <= 64);

/// How often in a row a GPU was refused to a file, and for which reason last.
#[derive(Debug, Default)]
struct Refusals {
    count: AtomicU8,
    reason: AtomicU8,
    /// Whether a request went well, and none was refused since.
    worked: AtomicBool,
}

/// The flags that the same file is opened with again; others act at opening only, or would forbid it.
const KEPT: OFlags = OFlags::ACCMODE.union(OFlags::APPEND).union(OFlags::SYNC).union(OFlags::DSYNC);

fn system(call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { call, errno }
}

impl File {
    /// Looks at a descriptor and takes a copy of it.
    pub(crate) fn open(
        number: RawFd,
        tree: &dyn Tree,
        file_systems: &FileSystems,
        any_file_system: bool,
    ) -> Result<Self, Error> {
        let own = duplicate(number).map_err(system("dup"))?;
        let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::INO | StatxFlags::DIOALIGN;
        let stat =
            rustix::fs::statx(&own, c"", AtFlags::EMPTY_PATH, wanted).map_err(system("statx"))?;
        let flags = rustix::fs::fcntl_getfl(&own).map_err(system("fcntl"))?;
        if flags.contains(OFlags::PATH) {
            return Err(Error::System { call: "fcntl", errno: Errno::BADF });
        }
        let kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
        let can_be_direct = matches!(kind, FileType::RegularFile | FileType::BlockDevice);
        let client_is_direct = flags.contains(OFlags::DIRECT);
        let other = if can_be_direct { reopen(&own, flags)? } else { None };
        let tells = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN);
        let (memory_align, offset_align) = if tells {
            (stat.stx_dio_mem_align, stat.stx_dio_offset_align)
        } else {
            (USUAL_ALIGN, USUAL_ALIGN)
        };
        let device = (stat.stx_dev_major, stat.stx_dev_minor);
        let aligns = memory_align.is_power_of_two() && offset_align.is_power_of_two();
        let has_direct = client_is_direct || other.is_some();
        let refused = if !can_be_direct {
            Some(Reason::FileType)
        } else if !has_direct || !aligns {
            Some(Reason::NoDirectIo)
        } else if flags.contains(OFlags::APPEND) {
            Some(Reason::Append)
        } else if kind == FileType::BlockDevice || any_file_system {
            None
        } else {
            file_systems.refusal(tree, device)
        };
        Ok(Self(Arc::new(Opened {
            number,
            identity: (rustix::fs::makedev(device.0, device.1), stat.stx_ino),
            own,
            other,
            client_is_direct,
            must_sync: flags.intersects(OFlags::DIRECT | OFlags::SYNC | OFlags::DSYNC),
            memory_align: if aligns { memory_align } else { USUAL_ALIGN },
            offset_align: if aligns { offset_align } else { USUAL_ALIGN },
            refused,
            wants_pages: AtomicBool::new(false),
            refusals: Default::default(),
            met: AtomicU64::new(0),
            reasons: std::array::from_fn(|_| Reasons([const { AtomicU64::new(0) }; REASONS])),
        })))
    }
}

impl Opened {
    /// The descriptor through the page cache; without `/proc` the only one there is.
    pub(crate) fn buffered(&self) -> BorrowedFd<'_> {
        match &self.other {
            Some(other) if self.client_is_direct => other.as_fd(),
            _ => self.own.as_fd(),
        }
    }

    /// The descriptor with `O_DIRECT`.
    pub(crate) fn direct(&self) -> Option<BorrowedFd<'_>> {
        if self.client_is_direct {
            Some(self.own.as_fd())
        } else {
            self.other.as_ref().map(AsFd::as_fd)
        }
    }

    /// The same if the client asked for it, so that the fallback keeps past the page cache too, and what offset and size must be
    /// multiples of. Whole pages at least: part of a page must not be in the cache while its rest is written past it.
    pub(crate) fn client_direct(&self) -> Option<(BorrowedFd<'_>, u64)> {
        let usable = self.client_is_direct && self.memory_align <= PAGE;
        usable.then(|| (self.own.as_fd(), u64::from(self.offset_align.max(PAGE))))
    }

    /// Whether the client expects what was written to be on the drive when the call returns.
    pub(crate) fn must_sync(&self) -> bool {
        self.must_sync
    }

    /// What offset and size, and what the address must be multiples of, and whether the driver taught it.
    pub(crate) fn alignment(&self) -> (u64, u64, bool) {
        let learned = self.wants_pages.load(Ordering::Relaxed);
        let at_least = if learned { PAGE } else { 1 };
        let (offset, memory) = (self.offset_align.max(at_least), self.memory_align.max(at_least));
        (u64::from(offset), u64::from(memory), learned)
    }

    /// What the kernel calls it now, for people; none without `/proc`.
    pub(crate) fn name(&self) -> Option<String> {
        let link = format!("/proc/self/fd/{}", self.own.as_raw_fd());
        let name = rustix::fs::readlink(link, Vec::new()).ok()?;
        // A name may hold what a terminal would obey.
        Some(name.to_string_lossy().replace(char::is_control, "?"))
    }

    /// Why no request to this GPU can take the fastpath.
    pub(crate) fn refused(&self, device: i32) -> Option<Reason> {
        if self.refused.is_some() {
            return self.refused;
        }
        let refusals = self.refusals(device)?;
        if refusals.count.load(Ordering::Relaxed) < PATIENCE {
            return None;
        }
        Reason::ALL.get(usize::from(refusals.reason.load(Ordering::Relaxed))).copied()
    }

    fn refusals(&self, device: i32) -> Option<&Refusals> {
        usize::try_from(device).ok().and_then(|index| self.refusals.get(index))
    }

    /// The fastpath worked.
    pub(crate) fn remember_success(&self, device: i32) {
        if let Some(refusals) = self.refusals(device)
            && !refusals.worked.load(Ordering::Relaxed)
        {
            refusals.worked.store(true, Ordering::Relaxed);
            refusals.count.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the fastpath to this GPU works, as far as is known.
    pub(crate) fn has_worked(&self, device: i32) -> bool {
        self.refusals(device).is_some_and(|refusals| refusals.worked.load(Ordering::Relaxed))
    }

    /// The driver refused a request. What it says about this file and GPU holds for the next request too.
    pub(crate) fn remember_refusal(&self, device: i32, reason: Reason) {
        // That the driver has no memory passes.
        let lasts = [
            Reason::Unreachable,
            Reason::VirtualFunction,
            Reason::NotSupported,
            Reason::RemoteIo,
            Reason::Refused,
        ];
        if let Some(refusals) = self.refusals(device)
            && lasts.contains(&reason)
        {
            refusals.reason.store(reason as u8, Ordering::Relaxed);
            // Several threads may count one too few: it is patience, not a limit.
            let seen = refusals.count.load(Ordering::Relaxed);
            refusals.count.store(seen.saturating_add(1), Ordering::Relaxed);
            refusals.worked.store(false, Ordering::Relaxed);
        }
    }

    /// The driver found a request invalid. If it was not made of whole pages, that is what this driver wants; returns whether it was.
    pub(crate) fn remember_invalid(&self, offset: u64, size: u64, address: u64) -> bool {
        let is_whole = (offset | size | address).is_multiple_of(u64::from(PAGE));
        if !is_whole {
            self.wants_pages.store(true, Ordering::Relaxed);
        }
        is_whole
    }

    /// Counts a reason; true the first time.
    pub(crate) fn count(&self, reason: Reason) -> bool {
        if let Some(count) = self.reasons.get(group()).and_then(|all| all.0.get(reason as usize)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let bit = 1 << reason as usize;
        self.met.load(Ordering::Relaxed) & bit == 0
            && self.met.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// How often each reason was met.
    pub(crate) fn reasons(&self) -> Vec<(Reason, u64)> {
        let of = |reason: Reason| {
            let counts = self.reasons.iter().filter_map(|all| all.0.get(reason as usize));
            counts.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        let counted = Reason::ALL.iter().map(|reason| (*reason, of(*reason)));
        counted.filter(|(_, count)| *count > 0).collect()
    }
}

impl Numbered for File {
    /// The client's number for it when it was registered.
    fn number(&self) -> RawFd {
        self.number
    }

    /// By device and inode.
    fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

/// The file again, with `O_DIRECT` the other way round; the client's own flags are never touched. `None` if that cannot be: the file
/// system does no direct I/O, there is no `/proc` to open it through, the program may use the file but not open it, as one that was
/// given it or has given up rights since, or somebody, perhaps the program, has a lease on it.
fn reopen(own: &OwnedFd, flags: OFlags) -> Result<Option<OwnedFd>, Error> {
    let flags = (flags & KEPT) | ((flags ^ OFlags::DIRECT) & OFlags::DIRECT) | OFlags::CLOEXEC;
    let path = format!("/proc/self/fd/{}", own.as_raw_fd());
    // Not waiting for the end of a lease, which may be this program's.
    let at_once = flags | OFlags::NONBLOCK;
    let opened = retry_on_intr(|| rustix::fs::open(path.as_str(), at_once, Mode::empty()));
    let waits_again = |fd| rustix::fs::fcntl_setfl(&fd, flags).map(|()| fd);
    match opened.and_then(waits_again).and_then(beyond_standard) {
        Ok(fd) => Ok(Some(fd)),
        // It could be another time.
        Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
            Err(Error::System { call: "open", errno })
        }
        Err(_) => Ok(None),
    }
}
