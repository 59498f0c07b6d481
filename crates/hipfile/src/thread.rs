//! Threads of this library's own, in somebody else's program.
//!
//! Not the standard library's: what that keeps for each of its threads is destroyed when the thread ends, and until then the C
//! library does not unload whoever owns it, so that `dlclose` would never come to ending the threads. These also leave signals
//! to the program's threads.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

type Body = Box<dyn FnOnce() + Send>;

/// A thread that runs, or has run and was not waited for.
#[derive(Debug)]
pub(crate) struct Thread(libc::pthread_t);

extern "C" fn start(body: *mut c_void) -> *mut c_void {
    // SAFETY: made by `spawn`, for this call.
    let body = unsafe { Box::from_raw(body.cast::<Body>()) };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        // Dropping it may panic again.
        std::mem::forget(payload);
    }
    ptr::null_mut()
}

/// Starts one. The name has 15 bytes at most.
pub(crate) fn spawn(name: &CStr, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let body: Box<Body> = Box::new(Box::new(body));
    let body = Box::into_raw(body);
    let mut thread = MaybeUninit::uninit();
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: every place is valid for a write; the new thread inherits the mask that is set around its start, and the caller's
    // is put back. The body is the thread's once it has started.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let failed = libc::pthread_create(thread.as_mut_ptr(), ptr::null(), start, body.cast());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        if failed != 0 {
            drop(Box::from_raw(body));
            return Err(io::Error::from_raw_os_error(failed));
        }
        let thread = thread.assume_init();
        libc::pthread_setname_np(thread, name.as_ptr());
        Ok(Thread(thread))
    }
}

impl Thread {
    /// Waits for its end; one that waits for itself goes on.
    pub(crate) fn join(self) {
        // SAFETY: it was started here and is waited for once.
        unsafe {
            if libc::pthread_equal(self.0, libc::pthread_self()) == 0 {
                libc::pthread_join(self.0, ptr::null_mut());
            } else {
                libc::pthread_detach(self.0);
            }
        }
    }
}
