//! Files, buffers, and what moves between them at once.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::abi::{Descr, Status};
use crate::door::{bytes, quietly, status};
use crate::place::place;

/// A handle as C has it.
pub(crate) fn pointer(handle: u64) -> *mut c_void {
    ptr::without_provenance_mut(handle as usize)
}

/// A handle from C. It may be anything.
pub(crate) fn number(handle: *mut c_void) -> u64 {
    handle.addr() as u64
}

/// `hipFileHandleRegister`
///
/// # Safety
///
/// `fh` is NULL or a place for a handle, `descr` NULL or a description. Of one that is not a file descriptor's nothing but the
/// type is read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileHandleRegister(
    fh: *mut *mut c_void,
    descr: *const Descr,
) -> Status {
    status("hipFileHandleRegister", |runtime| {
        let fh = place(fh, "the place for the handle is NULL")?;
        let descr = place(descr, "the description is NULL")?.as_ptr();
        // SAFETY: the caller's promise. The rest of the description may never have been written.
        let kind = unsafe { (&raw const (*descr).kind).read() }.cast_signed();
        let is_descriptor = kind == hipfile::raw::OPAQUE_FD;
        // SAFETY: as above.
        let fd = if is_descriptor { unsafe { (&raw const (*descr).handle.fd).read() } } else { -1 };
        let handle = runtime.handle_register(kind, fd)?;
        // SAFETY: the caller's promise.
        unsafe { fh.write(pointer(handle)) };
        Ok(())
    })
}

/// `hipFileHandleDeregister`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileHandleDeregister(fh: *mut c_void) {
    quietly((), || hipfile::raw::runtime().handle_deregister(number(fh)));
}

/// `hipFileBufRegister`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileBufRegister(base: *const c_void, length: usize, flags: c_int) -> Status {
    status("hipFileBufRegister", |runtime| runtime.buffer_register(base.addr(), length, flags))
}

/// `hipFileBufDeregister`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileBufDeregister(base: *const c_void) -> Status {
    status("hipFileBufDeregister", |runtime| runtime.buffer_deregister(base.addr()))
}

/// `hipFileRead`
///
/// # Safety
///
/// The memory is not freed meanwhile, and nobody else uses what is read into.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileRead(
    fh: *mut c_void,
    base: *mut c_void,
    size: usize,
    file_offset: i64,
    buffer_offset: i64,
) -> isize {
    bytes("hipFileRead", |runtime| {
        // SAFETY: the caller's promise.
        unsafe { runtime.read(number(fh), base.addr(), size, file_offset, buffer_offset) }
    })
}

/// `hipFileWrite`
///
/// # Safety
///
/// The memory is neither freed nor written meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileWrite(
    fh: *mut c_void,
    base: *const c_void,
    size: usize,
    file_offset: i64,
    buffer_offset: i64,
) -> isize {
    bytes("hipFileWrite", |runtime| {
        // SAFETY: the caller's promise.
        unsafe { runtime.write(number(fh), base.addr(), size, file_offset, buffer_offset) }
    })
}
