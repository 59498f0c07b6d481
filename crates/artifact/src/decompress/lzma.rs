//! The old `.lzma` format: 13 bytes of header and no checksum.

use std::io::{self, Read};

use lzma_rust2::LzmaReader;

use super::{Decode, Link, invalid};
use crate::source::len_u64;

/// Whether this can be a header. There is no magic: the usual properties byte, a dictionary size that encoders use, and
/// a size that is unknown or believable.
pub(crate) fn is_stream(head: &[u8]) -> bool {
    let Some(header) = head.first_chunk::<13>() else { return false };
    let dictionary = u32::from_le_bytes([header[1], header[2], header[3], header[4]]);
    let size = u64::from_le_bytes(header[5..].try_into().unwrap_or_default());
    let two_bits = dictionary.is_power_of_two()
        || (dictionary.count_ones() == 2 && (dictionary >> dictionary.trailing_zeros()) == 3);
    header[0] == 0x5d
        && two_bits
        && (4096..=1 << 30).contains(&dictionary)
        && (size == u64::MAX || size < 1 << 40)
}

pub(crate) struct Lzma<'a> {
    state: State<'a>,
    /// The most memory it may use.
    limit: u64,
    dictionary: u64,
    produced: u64,
}

enum State<'a> {
    Start(Option<Link<'a>>),
    Running(Box<LzmaReader<Link<'a>>>),
}

impl<'a> Lzma<'a> {
    pub(crate) const fn new(link: Link<'a>, limit: u64) -> Self {
        Self { state: State::Start(Some(link)), limit, dictionary: 0, produced: 0 }
    }

    fn start(&mut self) -> io::Result<()> {
        let State::Start(start) = &mut self.state else { return Ok(()) };
        let mut header = [0; 13];
        if let Some(link) = start
            && link.read_full(&mut header)? < header.len()
        {
            return Err(super::cut());
        }
        let Some(link) = start.take() else { return Err(invalid("no stream")) };
        let dictionary = u32::from_le_bytes([header[1], header[2], header[3], header[4]]);
        let size = u64::from_le_bytes(header[5..].try_into().unwrap_or_default());
        self.dictionary = u64::from(dictionary).min(size);
        if self.dictionary > self.limit {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let mut reader = LzmaReader::new_with_props(link, size, header[0], dictionary, None)?;
        reader.set_relaxed_end_condition(false);
        self.state = State::Running(Box::new(reader));
        Ok(())
    }
}

impl<'a> Decode<'a> for Lzma<'a> {
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.start()?;
        let State::Running(reader) = &mut self.state else { return Ok(0) };
        let count = reader.read(out)?;
        self.produced += len_u64(count);
        Ok(count)
    }

    fn link(&mut self) -> Option<&mut Link<'a>> {
        match &mut self.state {
            State::Start(link) => link.as_mut(),
            State::Running(reader) => Some(reader.inner_mut()),
        }
    }

    fn memory(&self) -> u64 {
        // The dictionary grows with the output, by doubling.
        self.dictionary.min(2 * self.produced) + (1 << 20)
    }
}
