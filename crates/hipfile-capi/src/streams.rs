//! Operations in the order of streams.

use std::ffi::{c_uint, c_void};

use fastpath_gpu::{Direction, RawStream};
use hipfile::raw::Late;

use crate::abi::Status;
use crate::door::status;
use crate::files::number;

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
        // SAFETY: the caller's promise.
        unsafe {
            runtime.submit(Direction::Write, number(fh), base.addr(), late, RawStream(stream))
        }
    })
}
