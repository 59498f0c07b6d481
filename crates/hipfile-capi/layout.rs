//! A folder in which loaders, linkers and build tools find the library as they would find AMD's. For tests and `xtask`; no part
//! of the library, which cannot be linked into one program with the simulation: both have HIP's name.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use hipfile::config::VERSION;

/// The name that programs are linked with.
pub(crate) const SONAME: &str = "libhipfile.so.0";

/// The name that linkers, and programs that load it themselves, ask for.
pub(crate) const LINK: &str = "libhipfile.so";

/// What cargo calls it.
const BUILT: &str = "libhipfile_capi.so";

const HEADER: &str = include_str!("include/hipfile.h");
const PKG_CONFIG: &str = include_str!("hipfile.pc");
const CMAKE: &str = include_str!("cmake/hipfile-config.cmake");
const CMAKE_VERSION: &str = include_str!("cmake/hipfile-config-version.cmake");

/// The library that cargo built beside the running test or program.
///
/// # Errors
///
/// The program, if there is none beside it.
pub(crate) fn built() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folders = program.ancestors().skip(1).take(2);
    let mut places =
        folders.flat_map(|folder| [folder.join(BUILT), folder.join("deps").join(BUILT)]);
    places.find(|place| place.is_file()).ok_or_else(|| {
        let text = format!("{}: no {BUILT} beside it", program.display());
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// Lays out `lib`, `include` and what `pkg-config` and `CMake` look for, with a copy of `library`. What is there is replaced.
///
/// # Errors
///
/// The path at which it failed.
pub(crate) fn install(root: &Path, library: &Path) -> io::Result<()> {
    let [major, minor, patch] = VERSION;
    let version = format!("{major}.{minor}.{patch}");
    let versioned = |text: &str| text.replace("@VERSION@", &version);
    let real = format!("{LINK}.{version}");
    let folder = root.join("lib");
    let texts = [
        (root.join("include/hipfile.h"), HEADER.to_owned()),
        (folder.join("pkgconfig/hipfile.pc"), versioned(PKG_CONFIG)),
        (folder.join("cmake/hipfile/hipfile-config.cmake"), versioned(CMAKE)),
        (folder.join("cmake/hipfile/hipfile-config-version.cmake"), versioned(CMAKE_VERSION)),
    ];
    for (path, text) in texts {
        put(&path, |path| fs::write(path, text))?;
    }
    put(&folder.join(&real), |path| fs::copy(library, path).map(drop))?;
    put(&folder.join(SONAME), |path| symlink(&real, path))?;
    put(&folder.join(LINK), |path| symlink(SONAME, path))
}

/// Makes a file anew: a program may run with the one that is there.
fn put(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let make = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        write(path)
    };
    make().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
