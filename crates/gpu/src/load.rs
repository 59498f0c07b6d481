//! Finding `libamdhip64`.

use std::ffi::{OsString, c_ulong};
use std::path::PathBuf;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// Why there is no HIP runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No library by any of its names, or it does not load, and what the loader says.
    #[error("libamdhip64.so cannot be loaded: {0}")]
    NotFound(String),
    /// It lacks a function that every version of HIP 6 and later has.
    #[error("{library} does not offer {symbol}")]
    NoSymbol {
        /// The library.
        library: String,
        /// The function.
        symbol: &'static str,
    },
}

/// The names programs link it by, newest first.
const NAMES: [&str; 3] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"];

/// Where ROCm keeps its libraries if the loader does not know.
const FOLDERS: [&str; 2] = ["lib", "lib64"];

/// `RTLD_NOLOAD` of Linux: only a library that is loaded already.
const NOLOAD: i32 = 4;

/// The library that the program has loaded, else the one the loader finds, else the one in `ROCM_PATH`, `HIP_PATH` or `/opt/rocm`.
pub(crate) fn library() -> Result<(Library, String), LoadError> {
    for name in NAMES {
        if let Ok(library) = open(name, RTLD_NOW | RTLD_LOCAL | NOLOAD) {
            return Ok((library, name.to_owned()));
        }
    }
    let mut first = None;
    for name in NAMES {
        match open(name, RTLD_NOW | RTLD_LOCAL) {
            Ok(library) => return Ok((library, name.to_owned())),
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    let mut broken = None;
    for path in paths().into_iter().filter(|path| path.is_file()) {
        let Some(text) = path.to_str() else { continue };
        match open(text, RTLD_NOW | RTLD_LOCAL) {
            Ok(library) => return Ok((library, text.to_owned())),
            Err(error) => {
                broken.get_or_insert(error);
            }
        }
    }
    // What is wrong with one that is there tells more than where there is none.
    let said = broken.or(first).map(|error| described(&error)).unwrap_or_default();
    Err(LoadError::NotFound(format!("{said} (LD_LIBRARY_PATH or ROCM_PATH says where to look)")))
}

/// The library at a path.
pub(crate) fn at(path: &str) -> Result<Library, LoadError> {
    open(path, RTLD_NOW | RTLD_LOCAL).map_err(|error| LoadError::NotFound(described(&error)))
}

/// What the loader says: the error itself only says that it failed.
fn described(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn open(name: &str, flags: i32) -> Result<Library, libloading::Error> {
    // SAFETY: loading the HIP runtime runs its initialisers, which is what every HIP program does at its start.
    unsafe { Library::open(Some(name), flags) }
}

unsafe extern "C" {
    fn getauxval(kind: c_ulong) -> c_ulong;
}

/// `AT_SECURE`.
const SECURE: c_ulong = 23;

/// A variable of the environment. None are read where the process has rights that whoever started it has not, as in a program with
/// the set-user-ID bit: the loader itself ignores its own variables then.
/// Source: <https://man7.org/linux/man-pages/man3/secure_getenv.3.html>.
pub fn variable(name: &str) -> Option<OsString> {
    // SAFETY: takes a number only.
    let is_secure = unsafe { getauxval(SECURE) } != 0;
    if is_secure { None } else { std::env::var_os(name) }
}

fn paths() -> Vec<PathBuf> {
    let variables = ["ROCM_PATH", "ROCM_HOME", "HIP_PATH"];
    let bases = variables.into_iter().filter_map(variable).map(PathBuf::from);
    let bases = bases.filter(|base| base.is_absolute()).chain([PathBuf::from("/opt/rocm")]);
    bases.flat_map(|base| FOLDERS.map(|folder| base.join(folder).join("libamdhip64.so"))).collect()
}
