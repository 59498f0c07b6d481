//! A folder in which a loader finds the simulation as it would find HIP.

use std::io;
use std::path::{Path, PathBuf};

/// The names by which clients and linkers ask for HIP.
pub const NAMES: [&str; 3] = ["libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7"];

/// The library that cargo built beside the running test, example or program.
///
/// # Errors
///
/// The last place looked at, when there is none.
pub fn built() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let mut places = program.ancestors().skip(1).take(2).flat_map(|folder| {
        [folder.join("libhip_sim.so"), folder.join("deps").join("libhip_sim.so")]
    });
    places.find(|place| place.is_file()).ok_or_else(|| {
        let text = format!("{}: no libhip_sim.so beside it", program.display());
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// Puts links to the library into `folder` under each of [`NAMES`], for `LD_LIBRARY_PATH` or `-L`. For `ROCM_PATH`
/// it is the `lib` folder of one.
///
/// # Errors
///
/// When the library is not there or a link cannot be made.
pub fn lay_out(folder: &Path) -> io::Result<PathBuf> {
    lay_out_of(folder, &built()?)
}

/// The same of a library that was built in another way.
///
/// # Errors
///
/// When a link cannot be made.
pub fn lay_out_of(folder: &Path, library: &Path) -> io::Result<PathBuf> {
    for name in NAMES {
        let link = folder.join(name);
        match std::os::unix::fs::symlink(library, &link) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result.map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", link.display()))
            })?,
        }
    }
    Ok(folder.join(NAMES[0]))
}
