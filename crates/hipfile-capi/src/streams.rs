//! Operations in the order of streams.

use std::ffi::{c_uint, c_void};
use std::mem::MaybeUninit;
use std::sync::Once;

use fastpath_gpu::{Direction, RawStream};
use hipfile::raw::Late;

use crate::abi::Status;
use crate::door::status;
use crate::files::number;

/// Keeps this library where it is, also after `dlclose`: from now on streams hold addresses of its functions, and HIP calls them when it
/// gets there. At exit the library is ended as ever.
fn stay() {
    static STAY: Once = Once::new();
    STAY.call_once(|| {
        let mut found = MaybeUninit::<libc::Dl_info>::uninit();
        let here: fn() = stay;
        // SAFETY: the address is one of this library; what `dladdr` tells is valid while it is loaded, and nothing is loaded anew.
        unsafe {
            if libc::dladdr(here as *const c_void, found.as_mut_ptr()) != 0 {
                let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
                let _ = libc::dlopen(found.assume_init().dli_fname, flags);
            }
        }
    });
}

/// `hipFileStreamRegister`
///
/// # Safety
///
/// The stream is one of HIP's, or NULL, until it is deregistered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileStreamRegister(stream: *mut c_void, flags: c_uint) -> Status {
    status("hipFileStreamRegister", |runtime| {
        // SAFETY: the caller's promise.
        unsafe { runtime.stream_register(RawStream(stream), flags) }
    })
}

/// `hipFileStreamDeregister`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileStreamDeregister(stream: *mut c_void) -> Status {
    status("hipFileStreamDeregister", |runtime| runtime.stream_deregister(RawStream(stream)))
}

/// `hipFileReadAsync`
///
/// # Safety
///
/// Each place is NULL, or valid until the stream has passed the operation; so is the memory. The stream is one of HIP's, or
/// NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileReadAsync(
    fh: *mut c_void,
    base: *mut c_void,
    size: *mut usize,
    file_offset: *mut i64,
    buffer_offset: *mut i64,
    result: *mut isize,
    stream: *mut c_void,
) -> Status {
    let late = Late { size, file_offset, buffer_offset, result };
    status("hipFileReadAsync", |runtime| {
        stay();
        // SAFETY: the caller's promise.
        unsafe { runtime.submit(Direction::Read, number(fh), base.addr(), late, RawStream(stream)) }
    })
}

/// `hipFileWriteAsync`
///
/// # Safety
///
/// As for [`hipFileReadAsync`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileWriteAsync(
    fh: *mut c_void,
    base: *mut c_void,
    size: *mut usize,
    file_offset: *mut i64,
    buffer_offset: *mut i64,
    result: *mut isize,
    stream: *mut c_void,
) -> Status {
    let late = Late { size, file_offset, buffer_offset, result };
    status("hipFileWriteAsync", |runtime| {
        stay();
        // SAFETY: the caller's promise.
        unsafe {
            runtime.submit(Direction::Write, number(fh), base.addr(), late, RawStream(stream))
        }
    })
}
