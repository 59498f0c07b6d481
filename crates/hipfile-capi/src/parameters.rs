//! Properties and parameters.

use std::ffi::{CStr, c_char, c_int, c_uint};

use hipfile::Error;

use crate::abi::{DriverProps, Status};
use crate::door::status;
use crate::place::place;

/// `hipFileDriverGetProperties`
///
/// # Safety
///
/// `props` is NULL or a place for the record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileDriverGetProperties(props: *mut DriverProps) -> Status {
    status("hipFileDriverGetProperties", |runtime| {
        let props = place(props, "the place for the properties is NULL")?;
        let found = runtime.properties();
        let [major_version, minor_version, _] = runtime.reported_version();
        let record = DriverProps {
            major_version,
            minor_version,
            poll_thresh_size: found.poll_threshold,
            max_direct_io_size: found.max_direct_io,
            driver_status_flags: found.status_flags,
            driver_control_flags: found.control_flags,
            feature_flags: found.features,
            max_device_cache_size: found.max_device_cache,
            per_buffer_cache_size: found.per_buffer_cache,
            max_device_pinned_mem_size: found.max_pinned,
            max_batch_io_count: found.max_batch,
            max_batch_io_timeout_msecs: found.batch_timeout,
        };
        // SAFETY: the caller's promise.
        unsafe { props.write(record) };
        Ok(())
    })
}

/// `hipFileDriverSetPollMode`. The switch is a byte here: any value but 0 and 1 would not be a Rust `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn hipFileDriverSetPollMode(poll: u8, threshold: usize) -> Status {
    status("hipFileDriverSetPollMode", |runtime| runtime.set_poll_mode(poll != 0, threshold))
}

/// `hipFileDriverSetMaxDirectIOSize`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileDriverSetMaxDirectIOSize(size: usize) -> Status {
    status("hipFileDriverSetMaxDirectIOSize", |runtime| runtime.set_max_direct_io(size))
}

/// `hipFileDriverSetMaxCacheSize`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileDriverSetMaxCacheSize(size: usize) -> Status {
    status("hipFileDriverSetMaxCacheSize", |runtime| runtime.set_max_cache(size))
}

/// `hipFileDriverSetMaxPinnedMemSize`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileDriverSetMaxPinnedMemSize(size: usize) -> Status {
    status("hipFileDriverSetMaxPinnedMemSize", |runtime| runtime.set_max_pinned(size))
}

const NO_PLACE: &str = "the place for the value is NULL";

/// `hipFileGetParameterSizeT`
///
/// # Safety
///
/// `value` is NULL or a place for the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileGetParameterSizeT(param: c_uint, value: *mut usize) -> Status {
    status("hipFileGetParameterSizeT", |runtime| {
        let value = place(value, NO_PLACE)?;
        let found = runtime.size_parameter(param)?;
        // SAFETY: the caller's promise.
        unsafe { value.write(found) };
        Ok(())
    })
}

/// `hipFileGetParameterBool`
///
/// # Safety
///
/// `value` is NULL or a place for the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileGetParameterBool(param: c_uint, value: *mut bool) -> Status {
    status("hipFileGetParameterBool", |runtime| {
        let value = place(value, NO_PLACE)?;
        let found = runtime.boolean_parameter(param)?;
        // SAFETY: the caller's promise.
        unsafe { value.write(found) };
        Ok(())
    })
}

/// `hipFileGetParameterString`
///
/// # Safety
///
/// `text` is NULL or `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileGetParameterString(
    param: c_uint,
    text: *mut c_char,
    length: c_int,
) -> Status {
    status("hipFileGetParameterString", |runtime| {
        let text = place(text, NO_PLACE)?;
        let found = runtime.string_parameter(param)?;
        let room = usize::try_from(length).unwrap_or(0);
        if found.len() >= room {
            return Err(Error::Argument { what: "the text and its final zero do not fit" });
        }
        let text = text.as_ptr().cast::<u8>();
        // SAFETY: the caller's promise: there is room for the bytes and one more.
        unsafe {
            text.copy_from_nonoverlapping(found.as_ptr(), found.len());
            text.add(found.len()).write(0);
        }
        Ok(())
    })
}

/// `hipFileSetParameterSizeT`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileSetParameterSizeT(param: c_uint, value: usize) -> Status {
    status("hipFileSetParameterSizeT", |runtime| runtime.set_size_parameter(param, value))
}

/// `hipFileSetParameterBool`. The value is a byte, as in [`hipFileDriverSetPollMode`].
#[unsafe(no_mangle)]
pub extern "C" fn hipFileSetParameterBool(param: c_uint, value: u8) -> Status {
    status("hipFileSetParameterBool", |runtime| runtime.set_boolean_parameter(param, value != 0))
}

/// `hipFileSetParameterString`
///
/// # Safety
///
/// `text` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileSetParameterString(param: c_uint, text: *const c_char) -> Status {
    status("hipFileSetParameterString", |runtime| {
        let text = place(text, "the text is NULL")?;
        // SAFETY: the caller's promise.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        let text = text.to_str().map_err(|_| Error::Argument { what: "the text is not UTF-8" })?;
        runtime.set_string_parameter(param, text)
    })
}
