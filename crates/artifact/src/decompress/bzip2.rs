//! bzip2: blocks of at most 900 kB.

use std::io::{self, Read};

use bzip2::bufread::BzDecoder;

use super::{Decode, Link, MAX_STREAMS, Tail, invalid};

const MAGIC: &[u8] = b"BZh";

/// A block starts with the digits of pi, an empty stream with those of its square root.
const BLOCK: [&[u8]; 2] =
    [&[0x31, 0x41, 0x59, 0x26, 0x53, 0x59], &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90]];

pub(crate) fn is_stream(head: &[u8]) -> bool {
    let level = head.get(3).is_some_and(|level| (b'1'..=b'9').contains(level));
    head.starts_with(MAGIC)
        && level
        && BLOCK.iter().any(|block| head.get(4..).is_some_and(|rest| rest.starts_with(block)))
}

pub(crate) struct Bzip2<'a> {
    decoder: Option<BzDecoder<Link<'a>>>,
    tail: Tail,
    streams: u32,
}

impl<'a> Bzip2<'a> {
    pub(crate) fn new(link: Link<'a>, tail: Tail) -> Self {
        Self { decoder: Some(BzDecoder::new(link)), tail, streams: 1 }
    }
}

impl<'a> Decode<'a> for Bzip2<'a> {
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let count = decoder.read(out)?;
            if count > 0 || self.tail == Tail::Anything || !decoder.get_mut().next_is(MAGIC)? {
                return Ok(count);
            }
            self.streams += 1;
            if self.streams > MAX_STREAMS {
                return Err(invalid(format!("more than {MAX_STREAMS} streams")));
            }
            self.decoder = self.decoder.take().map(|done| BzDecoder::new(done.into_inner()));
        }
    }

    fn link(&mut self) -> Option<&mut Link<'a>> {
        self.decoder.as_mut().map(BzDecoder::get_mut)
    }

    fn memory(&self) -> u64 {
        4 << 20
    }
}
