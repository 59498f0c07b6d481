//! A part of an input that reads like an input.

use std::io::{self, Read, Seek, SeekFrom};

use crate::ReadSeek;

/// `length` bytes of an input from `offset` on. Reading beyond the end of the input itself ends early, as the input does.
pub struct Window<'a> {
    input: &'a mut dyn ReadSeek,
    offset: u64,
    length: u64,
    position: u64,
}

impl<'a> Window<'a> {
    /// The window, at its start.
    pub fn new(input: &'a mut dyn ReadSeek, offset: u64, length: u64) -> Self {
        // What cannot be addressed is not there.
        Self { input, offset, length: length.min(u64::MAX - offset), position: 0 }
    }
}

impl Read for Window<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(self.position);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        if len == 0 {
            return Ok(0);
        }
        self.input.seek(SeekFrom::Start(self.offset + self.position))?;
        let read = self.input.read(&mut buf[..len])?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for Window<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = target(to, self.position, self.length)?;
        Ok(self.position)
    }
}

/// Where a seek leads in something of this length; beyond its end is allowed, as in a file.
pub(crate) fn target(to: SeekFrom, position: u64, length: u64) -> io::Result<u64> {
    let target = match to {
        SeekFrom::Start(at) => Some(at),
        SeekFrom::Current(by) => position.checked_add_signed(by),
        SeekFrom::End(by) => length.checked_add_signed(by),
    };
    target.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek before the start"))
}
