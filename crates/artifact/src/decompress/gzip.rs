//! gzip, RFC 1952: <https://www.rfc-editor.org/rfc/rfc1952>.

use std::io::{self, Read};

use flate2::bufread::GzDecoder;

use super::{Decode, Link, MAX_STREAMS, Tail, invalid};

pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Bytes after the last member are ignored, as gzip itself does.
pub(crate) struct Gzip<'a> {
    decoder: Option<GzDecoder<Link<'a>>>,
    tail: Tail,
    streams: u32,
}

impl<'a> Gzip<'a> {
    pub(crate) fn new(link: Link<'a>, tail: Tail) -> Self {
        Self { decoder: Some(GzDecoder::new(link)), tail, streams: 1 }
    }
}

impl<'a> Decode<'a> for Gzip<'a> {
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let count = decoder.read(out)?;
            if count > 0 || self.tail == Tail::Anything || !decoder.get_mut().next_is(&MAGIC)? {
                return Ok(count);
            }
            self.streams += 1;
            if self.streams > MAX_STREAMS {
                return Err(invalid(format!("more than {MAX_STREAMS} members")));
            }
            self.decoder = self.decoder.take().map(|done| GzDecoder::new(done.into_inner()));
        }
    }

    fn link(&mut self) -> Option<&mut Link<'a>> {
        self.decoder.as_mut().map(GzDecoder::get_mut)
    }

    fn memory(&self) -> u64 {
        128 << 10
    }
}
