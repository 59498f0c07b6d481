//! The driver, versions and words.

use std::ffi::{c_char, c_int, c_uint};

use crate::abi::Status;
use crate::door::{quietly, status};

/// `hipFileGetOpErrorString`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileGetOpErrorString(code: c_int) -> *const c_char {
    hipfile::error::text(code).as_ptr()
}

/// `hipFileDriverOpen`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileDriverOpen() -> Status {
    status("hipFileDriverOpen", |runtime| runtime.driver_open())
}

/// `hipFileDriverClose`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileDriverClose() -> Status {
    status("hipFileDriverClose", |runtime| runtime.driver_close())
}

/// `hipFileUseCount`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileUseCount() -> i64 {
    quietly(-1, || hipfile::raw::runtime().use_count())
}

/// `hipFileGetVersion`
///
/// # Safety
///
/// Each pointer is NULL or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileGetVersion(
    major: *mut c_uint,
    minor: *mut c_uint,
    patch: *mut c_uint,
) -> Status {
    status("hipFileGetVersion", |runtime| {
        let version = runtime.reported_version();
        for (place, number) in [major, minor, patch].into_iter().zip(version) {
            if !place.is_null() {
                // SAFETY: the caller's promise; no alignment is asked of it.
                unsafe { place.write_unaligned(number) };
            }
        }
        Ok(())
    })
}

/// HIP's own function of this name, for programs that use it and link only this library. With the error of the thread's
/// last failed transfer where HIP has forgotten it.
#[unsafe(no_mangle)]
pub extern "C" fn hipPeekAtLastError() -> c_int {
    quietly(0, || hipfile::raw::runtime().peek_hip_error())
}
