//! Disk images: what the guest sees in them, and the volumes on it.
//!
//! [`open`] turns an image file into the guest's bytes (raw and [`qcow2`]), [`volumes`] finds the partitions in those, and
//! [`Volume::open`] makes a partition readable like an image of its own. Nothing is read but headers, tables and what
//! is asked for: the input may be a remote file.

mod partitions;
pub mod qcow2;
pub(crate) mod source;
pub(crate) mod window;

pub use partitions::{Volume, volumes};
pub use qcow2::Qcow2;
pub use window::Window;

use crate::ReadSeek;
use crate::filesystem::FsError;
use source::Source;

/// Image formats that are known and not read: offset, magic number, name.
const OTHERS: [(usize, &[u8], &str); 5] = [
    (0, b"KDMV", "a VMDK image"),
    (0, b"# Disk DescriptorFile", "a VMDK image"),
    (0, b"vhdxfile", "a VHDX image"),
    (0, b"conectix", "a VHD image"),
    (64, &[0x7f, 0x10, 0xda, 0xbe], "a VDI image"),
];

/// The image format that these first bytes are of, if it is one that is known and not read.
pub(crate) fn unread(head: &[u8]) -> Option<&'static str> {
    let is = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    OTHERS.iter().find(|(at, magic, _)| is(*at, magic)).map(|(.., name)| *name)
}

/// The guest's bytes of an image file: decoded if it is qcow2, as they are otherwise.
///
/// # Errors
///
/// A [`FsError`]: a damaged or unusual qcow2 header, a format that is known and not read.
pub fn open<'a>(input: &'a mut dyn ReadSeek) -> Result<Box<dyn ReadSeek + 'a>, FsError> {
    let mut head = [0; 68];
    let mut source = Source::new(&mut *input)?;
    let len = usize::try_from(source.len()).unwrap_or(usize::MAX).min(head.len());
    source.read_at(0, &mut head[..len])?;
    if qcow2::is_qcow2(&head) {
        return Ok(Box::new(Qcow2::open(input)?));
    }
    if let Some(name) = unread(&head) {
        return Err(FsError::Unsupported(name.to_owned()));
    }
    let len = source.len();
    Ok(Box::new(Window::new(input, 0, len)))
}
