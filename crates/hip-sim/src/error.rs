//! HIP's error codes, as numbered by the public headers of HIP 6 and 7.

use std::ffi::{CStr, c_int};

/// A `hipError_t` other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Error(pub(crate) c_int);

pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

macro_rules! errors {
    ($($constant:ident = $number:literal, $name:literal, $text:literal;)*) => {
        #[allow(dead_code, reason = "some are given only on request")]
        impl Error {
            $(pub(crate) const $constant: Self = Self($number);)*
        }

        /// Name and text of a code; `None` if HIP has no such code or this runtime never gives it.
        pub(crate) fn words(code: c_int) -> Option<(&'static CStr, &'static CStr)> {
            match code {
                0 => Some((c"hipSuccess", c"no error")),
                $($number => Some(($name, $text)),)*
                _ => None,
            }
        }
    };
}

errors! {
    INVALID_VALUE = 1, c"hipErrorInvalidValue", c"invalid argument";
    OUT_OF_MEMORY = 2, c"hipErrorOutOfMemory", c"out of memory";
    NOT_INITIALIZED = 3, c"hipErrorNotInitialized", c"initialization error";
    DEINITIALIZED = 4, c"hipErrorDeinitialized", c"driver shutting down";
    INVALID_DEVICE_POINTER = 17, c"hipErrorInvalidDevicePointer", c"invalid device pointer";
    INVALID_MEMCPY_DIRECTION = 21, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy";
    NO_DEVICE = 100, c"hipErrorNoDevice", c"no ROCm-capable device is detected";
    INVALID_DEVICE = 101, c"hipErrorInvalidDevice", c"invalid device ordinal";
    INVALID_HANDLE = 400, c"hipErrorInvalidHandle", c"invalid resource handle";
    NOT_FOUND = 500, c"hipErrorNotFound", c"named symbol not found";
    NOT_READY = 600, c"hipErrorNotReady", c"device not ready";
    ILLEGAL_ADDRESS = 700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered";
    ALREADY_REGISTERED = 712, c"hipErrorHostMemoryAlreadyRegistered",
        c"part or all of the requested memory range is already mapped";
    NOT_REGISTERED = 713, c"hipErrorHostMemoryNotRegistered",
        c"pointer does not correspond to a registered memory region";
    LAUNCH_FAILURE = 719, c"hipErrorLaunchFailure", c"unspecified launch failure";
    NOT_SUPPORTED = 801, c"hipErrorNotSupported", c"operation not supported";
    UNKNOWN = 999, c"hipErrorUnknown", c"unknown error";
}
