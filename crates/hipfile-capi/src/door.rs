//! What every exported function's body runs behind.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use hipfile::{Error, Runtime};

use crate::abi::Status;

/// `hipFileInternalError`.
const INTERNAL_ERROR: i32 = 5030;

/// Keeps `pthread_cancel` outside, until this is dropped: the C library unwinds a thread that it ends, which Rust does not let pass.
struct Uncancelled(c_int);

/// `PTHREAD_CANCEL_DISABLE`.
const DISABLED: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

impl Uncancelled {
    fn new() -> Self {
        let mut before = DISABLED;
        // SAFETY: valid for a write.
        unsafe { pthread_setcancelstate(DISABLED, &raw mut before) };
        Self(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        if self.0 != DISABLED {
            // SAFETY: only the state is set, to one that the thread had.
            unsafe { pthread_setcancelstate(self.0, ptr::null_mut()) };
        }
    }
}

/// Runs a body and keeps a panic inside. The calling thread's `errno` is what it was before: only [`bytes`] says something
/// with it.
pub(crate) fn quietly<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    let _uncancelled = Uncancelled::new();
    let before = errno();
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // Dropping it may panic again.
        std::mem::forget(payload);
        otherwise
    });
    set_errno(before);
    result
}

fn run<T>(
    call: &'static str,
    body: impl FnOnce(&'static Arc<Runtime>) -> Result<T, Error>,
) -> Option<Result<T, Error>> {
    quietly(None, || {
        let runtime = hipfile::raw::runtime();
        Some(body(runtime).inspect_err(|error| runtime.failed(call, error)))
    })
}

/// The body of a function that returns `hipFileError_t`.
pub(crate) fn status(
    call: &'static str,
    body: impl FnOnce(&'static Arc<Runtime>) -> Result<(), Error>,
) -> Status {
    match run(call, body) {
        Some(Ok(())) => Status { err: 0, hip_drv_err: 0 },
        Some(Err(error)) => Status { err: error.code(), hip_drv_err: error.hip() },
        None => Status { err: INTERNAL_ERROR, hip_drv_err: 0 },
    }
}

/// The body of `hipFileRead` and `hipFileWrite`: bytes, -1 with `errno`, or a negative code.
pub(crate) fn bytes(
    call: &'static str,
    body: impl FnOnce(&'static Arc<Runtime>) -> Result<usize, Error>,
) -> isize {
    match run(call, body) {
        Some(Ok(bytes)) => bytes.cast_signed(),
        Some(Err(error)) => {
            if let Some(errno) = error.errno() {
                set_errno(errno);
            }
            error.result()
        }
        None => -(INTERNAL_ERROR as isize),
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn set_errno(value: i32) {
    // SAFETY: the C library's own place for this thread, always valid.
    unsafe { *libc::__errno_location() = value };
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_stays_inside() {
        let internal = Status { err: 5030, hip_drv_err: 0 };
        assert_eq!(status("test", |_| panic!("a panic on purpose")), internal);
        assert_eq!(bytes("test", |_| panic!("a panic on purpose")), -5030);
        assert_eq!(quietly(7, || panic!("a panic on purpose")), 7);
    }

    /// A panic's payload runs code of its own when it is dropped.
    #[test]
    fn a_payload_that_panics_stays_inside() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("a second panic on purpose");
            }
        }
        assert_eq!(quietly(7, || std::panic::panic_any(Bomb)), 7);
    }

    #[test]
    fn errno_changes_only_with_minus_one() {
        set_errno(libc::EXDEV);
        let closed = || bytes("test", |_| Err(Error::TransferNotOpen));
        let argument = || Err(Error::Argument { what: "wrong" });
        assert_eq!(bytes("test", |_| argument()), -5022);
        assert_eq!(errno(), libc::EXDEV);
        assert_eq!(
            status("test", |_| {
                set_errno(libc::EIO);
                Ok(())
            }),
            Status { err: 0, hip_drv_err: 0 }
        );
        assert_eq!(errno(), libc::EXDEV);
        assert_eq!(closed(), -1);
        assert_eq!(errno(), libc::EINVAL);
    }

    #[test]
    fn hips_own_code_is_beside_5011() {
        let error = Error::Hip { call: "hipMemcpyAsync", error: fastpath_gpu::HipError(700) };
        let failed = status("test", |_| Err(error.clone()));
        assert_eq!(failed, Status { err: 5011, hip_drv_err: 700 });
        assert_eq!(bytes("test", |_| Err(error)), -5011);
    }
}
