//! A file for tests that counts what is read of it.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

pub(super) struct Counted<'a> {
    file: Cursor<&'a [u8]>,
    given: usize,
}

impl<'a> Counted<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { file: Cursor::new(bytes), given: 0 }
    }

    /// How many bytes were read, each time anew.
    pub(super) fn given(&self) -> usize {
        self.given
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.given += read;
        Ok(read)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
