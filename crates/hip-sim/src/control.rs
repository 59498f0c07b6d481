//! The simulation from a Rust test: loaded as its clients load it, with its faults and counts.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use crate::layout;

/// The simulation, loaded into this process.
///
/// Whoever then loads HIP by its name gets this one: the loader knows it by its SONAME, `libamdhip64.so.7`. It has nothing
/// to do with what is linked into the test from this crate. It is never unloaded.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    calls: unsafe extern "C" fn(*const c_char) -> u64,
    fault: unsafe extern "C" fn(*const c_char) -> c_int,
    reset: extern "C" fn(),
    set_ais: unsafe extern "C" fn(*const c_char) -> c_int,
    lose_device: extern "C" fn(c_int) -> c_int,
}

impl Simulation {
    /// Loads the library that cargo built.
    ///
    /// # Errors
    ///
    /// When it is not there, or is not this crate's.
    pub fn load() -> io::Result<Self> {
        let path = CString::new(layout::built()?.as_os_str().as_bytes())?;
        // SAFETY: the path is a C string; the library has no initialisers of its own.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(io::Error::other(format!("{path:?}: it cannot be loaded")));
        }
        let find = |name: &std::ffi::CStr| {
            // SAFETY: the handle is open and never closed.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if found.is_null() {
                Err(io::Error::other(format!("{path:?}: no {name:?}")))
            } else {
                Ok(found)
            }
        };
        let (calls, fault, set_ais) =
            (find(c"hipsim_calls")?, find(c"hipsim_fault")?, find(c"hipsim_set_ais")?);
        let (reset, lose_device) = (find(c"hipsim_reset")?, find(c"hipsim_lose_device")?);
        // SAFETY: the types are those with which this crate exports the functions.
        unsafe {
            Ok(Self {
                calls: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> u64>(
                    calls,
                ),
                fault: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const c_char) -> c_int,
                >(fault),
                reset: std::mem::transmute::<*mut c_void, extern "C" fn()>(reset),
                set_ais: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const c_char) -> c_int,
                >(set_ais),
                lose_device: std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(
                    lose_device,
                ),
            })
        }
    }

    /// How often a function was called; `None` if there is no such function.
    pub fn calls(&self, function: &str) -> Option<u64> {
        let function = CString::new(function).ok()?;
        // SAFETY: a C string.
        Some(unsafe { (self.calls)(function.as_ptr()) }).filter(|calls| *calls < u64::MAX)
    }

    /// Requests faults, in the words of `hipsim.h`.
    ///
    /// # Errors
    ///
    /// When it cannot be understood; stderr says why.
    pub fn fault(&self, requests: &str) -> io::Result<()> {
        let text = CString::new(requests)?;
        // SAFETY: a C string.
        understood(requests, unsafe { (self.fault)(text.as_ptr()) })
    }

    /// Takes all requests back and counts calls from 0.
    pub fn reset(&self) {
        (self.reset)();
    }

    /// Changes what `HIPSIM_AIS` said.
    ///
    /// # Errors
    ///
    /// When there is no such kind; stderr says which there are.
    pub fn set_ais(&self, kind: &str) -> io::Result<()> {
        let text = CString::new(kind)?;
        // SAFETY: a C string.
        understood(kind, unsafe { (self.set_ais)(text.as_ptr()) })
    }

    /// Loses a device for good.
    ///
    /// # Errors
    ///
    /// When there is no such device.
    pub fn lose_device(&self, device: i32) -> io::Result<()> {
        understood("device", (self.lose_device)(device))
    }
}

fn understood(what: &str, code: c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::other(format!("{what}: not understood"))) }
}
