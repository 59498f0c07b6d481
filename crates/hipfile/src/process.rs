//! The one runtime of a process, and a new one in the child of a fork.
//!
//! The pointer to it lives in a page that the kernel empties in a child: what the child finds is that nothing was ever used, so it
//! starts afresh and waits for no lock that a thread of its parent held. What the parent had stays where it is, unused: GPUs, their
//! memory and its handles are the parent's.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::registry::RUNTIMES;
use crate::runtime::{Options, Runtime};

const PAGE: usize = 4096;

/// The page, once it is there.
static PLACE: AtomicPtr<AtomicPtr<Arc<Runtime>>> = AtomicPtr::new(ptr::null_mut());

/// Where it is if there is no page to be had: then a child is not told from its parent.
static NO_PAGE: AtomicPtr<Arc<Runtime>> = AtomicPtr::new(ptr::null_mut());

/// The runtime that was shut down last: threads may be inside it, and it is no lost memory.
static LAST: AtomicPtr<Arc<Runtime>> = AtomicPtr::new(ptr::null_mut());

fn place() -> &'static AtomicPtr<Arc<Runtime>> {
    let known = NonNull::new(PLACE.load(Ordering::Acquire)).or_else(make_place);
    // SAFETY: it is a page that is never unmapped, zero at first, which is a null pointer.
    known.map_or(&NO_PAGE, |place| unsafe { place.as_ref() })
}

#[cold]
fn make_place() -> Option<NonNull<AtomicPtr<Arc<Runtime>>>> {
    // SAFETY: a new private mapping of one page, which is given up again only if nobody has seen it.
    let page = unsafe {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let page = mmap_anonymous(ptr::null_mut(), PAGE, rights, MapFlags::PRIVATE).ok()?;
        if madvise(page, PAGE, Advice::LinuxWipeOnFork).is_err() {
            let _ = munmap(page, PAGE);
            return None;
        }
        page
    };
    let won =
        PLACE.compare_exchange(ptr::null_mut(), page.cast(), Ordering::AcqRel, Ordering::Acquire);
    match won {
        Ok(_) => NonNull::new(page.cast()),
        Err(first) => {
            // SAFETY: as above.
            let _ = unsafe { munmap(page, PAGE) };
            NonNull::new(first)
        }
    }
}

/// The runtime of this process. It is never dropped: threads may be inside it when the process ends.
pub fn runtime() -> &'static Arc<Runtime> {
    let place = place();
    let known = place.load(Ordering::Acquire);
    // SAFETY: what is in the place was leaked.
    if let Some(known) = unsafe { known.as_ref() } {
        return known;
    }
    put(place, Options::of_process()).0
}

/// Has the runtime of this process stand on something else than the process and its host: for tests, before the first use. False if
/// there is a runtime already. A child of a fork stands on its host again.
pub fn install(options: Options) -> bool {
    put(place(), options).1
}

/// The runtime in the place, and whether it was put there now.
fn put(place: &AtomicPtr<Arc<Runtime>>, options: Options) -> (&'static Arc<Runtime>, bool) {
    RUNTIMES.fetch_add(1, Ordering::Relaxed);
    let new = Box::into_raw(Box::new(Arc::new(Runtime::new(options))));
    match place.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            watch_exit();
            // SAFETY: made above, and leaked from now on.
            unsafe { (&*new, true) }
        }
        Err(first) => {
            // SAFETY: made above and seen by nobody; the first one was leaked.
            unsafe {
                drop(Box::from_raw(new));
                (&*first, false)
            }
        }
    }
}

/// Becomes another number when the process begins to exit, before libraries are ended; null before there was a runtime.
static EXITING: AtomicPtr<libc::time_t> = AtomicPtr::new(ptr::null_mut());

const NOT_YET: libc::time_t = libc::time_t::MIN;

unsafe extern "C" {
    /// A handler that belongs to no library is called at exit, and not when one is unloaded.
    fn __cxa_atexit(
        function: unsafe extern "C" fn(*mut libc::time_t) -> libc::time_t,
        argument: *mut libc::time_t,
        library: *mut libc::c_void,
    ) -> libc::c_int;
}

/// Finds out about exit. The handler must be there after this library is gone: `time` of the C library notes the time.
fn watch_exit() {
    let note = Box::into_raw(Box::new(NOT_YET));
    if EXITING.compare_exchange(ptr::null_mut(), note, Ordering::AcqRel, Ordering::Acquire).is_err()
    {
        // SAFETY: made above and seen by nobody.
        drop(unsafe { Box::from_raw(note) });
        return;
    }
    // SAFETY: the note is never freed. If there is no handler, nothing is noted, which must not look like an unloaded library.
    if unsafe { __cxa_atexit(libc::time, note, ptr::null_mut()) } != 0 {
        EXITING.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Whether the process goes on although this library ends.
fn is_unloaded() -> bool {
    // SAFETY: a note is never freed; at exit it is written by a handler that is called before this.
    NonNull::new(EXITING.load(Ordering::Acquire))
        .is_some_and(|note| unsafe { note.read_volatile() } == NOT_YET)
}

/// Ends the threads of this process's runtime and forgets it, for a library that is unloaded: the next use starts afresh.
/// Operations that wait in queues fail; those that run are waited for, but not for ever. HIP gets back what nobody uses unless the
/// process exits: then HIP may have ended before.
pub fn shutdown() {
    let Some(place) = NonNull::new(PLACE.load(Ordering::Acquire)) else { return };
    // SAFETY: as in `place`.
    let last = unsafe { place.as_ref() }.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: as in `runtime`.
    if let Some(runtime) = unsafe { last.as_ref() } {
        LAST.store(last, Ordering::Release);
        if is_unloaded() {
            runtime.unload();
        } else {
            runtime.stop();
        }
    }
}
