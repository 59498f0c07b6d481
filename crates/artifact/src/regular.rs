//! The one way to open a file that has to be regular.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a regular file and says what it is. A pipe nobody writes to, or a device, is refused and never waited for.
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let without_waiting = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(without_waiting.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(io::Error::other("expected a regular file"))
    }
}
