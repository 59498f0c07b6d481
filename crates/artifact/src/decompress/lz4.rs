//! lz4: the frame format and the older one the kernel uses.
//!
//! The blocks are `lz4_flex`'s; the frames are read here, because its own reader takes a cut frame for a whole one, and
//! cannot know of the size that kernel builds put after a legacy stream.
//!
//! <https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>

use std::io;

use lz4_flex::block::{decompress_into, decompress_into_with_dict};
use twox_hash::XxHash32;

use super::{Decode, Link, MAX_STREAMS, Tail, cut, exact, invalid, next_frame, word};
use crate::source::len_u64;

pub(crate) const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
pub(crate) const LEGACY_MAGIC: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];

/// Linked blocks look back so far.
const WINDOW: usize = 64 << 10;

/// Blocks of the legacy format.
const LEGACY_BLOCK: usize = 8 << 20;

/// The largest block of the legacy format when nothing in it could be compressed.
const LEGACY_COMPRESSED: usize = LEGACY_BLOCK + LEGACY_BLOCK / 255 + 16;

/// One decompressed block, handed out piece by piece.
#[derive(Default)]
struct Block {
    compressed: Vec<u8>,
    output: Vec<u8>,
    given: usize,
}

impl Block {
    fn give(&mut self, out: &mut [u8]) -> usize {
        let ready = &self.output[self.given..];
        let count = ready.len().min(out.len());
        out[..count].copy_from_slice(&ready[..count]);
        self.given += count;
        count
    }

    fn memory(&self) -> u64 {
        len_u64(self.compressed.capacity() + self.output.capacity())
    }
}

/// What a frame's header says.
struct Header {
    block: usize,
    linked: bool,
    block_checksums: bool,
    content_checksum: bool,
    size: Option<u64>,
}

/// The frame format.
pub(crate) struct Frame<'a> {
    link: Link<'a>,
    tail: Tail,
    header: Option<Header>,
    block: Block,
    dictionary: Vec<u8>,
    hash: XxHash32,
    produced: u64,
    streams: u32,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(link: Link<'a>, tail: Tail) -> Self {
        Self {
            link,
            tail,
            header: None,
            block: Block::default(),
            dictionary: Vec::new(),
            hash: XxHash32::with_seed(0),
            produced: 0,
            streams: 0,
        }
    }

    /// Reads the next frame's header; `false` if there is none.
    fn next_frame(&mut self) -> io::Result<bool> {
        let next = next_frame(&mut self.link, self.tail, &mut self.streams, MAGIC)?;
        if next {
            self.header = Some(self.read_header()?);
            self.hash = XxHash32::with_seed(0);
            self.dictionary.clear();
            self.produced = 0;
        }
        Ok(next)
    }

    fn read_header(&mut self) -> io::Result<Header> {
        let mut header = [0; 14];
        exact(&mut self.link, &mut header[..2])?;
        let (flags, descriptor) = (header[0], header[1]);
        if flags >> 6 != 1 {
            return Err(invalid(format!("version {} of the frame format", flags >> 6)));
        }
        if flags & 1 != 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "needs a dictionary"));
        }
        let block = match descriptor >> 4 & 7 {
            size @ 4..=7 => 1 << (8 + 2 * u32::from(size)),
            size => return Err(invalid(format!("block size {size}"))),
        };
        let sized = flags & 8 != 0;
        let len = if sized { 10 } else { 2 };
        exact(&mut self.link, &mut header[2..=len])?;
        let expected = XxHash32::oneshot(0, &header[..len]).to_le_bytes()[1];
        if header[len] != expected {
            return Err(invalid("the header's checksum does not match"));
        }
        Ok(Header {
            block,
            linked: flags & 0x20 == 0,
            block_checksums: flags & 0x10 != 0,
            content_checksum: flags & 4 != 0,
            size: sized.then(|| u64::from_le_bytes(header[2..10].try_into().unwrap_or_default())),
        })
    }

    /// Decompresses the next block; `false` at the end of the frame.
    fn next_block(&mut self) -> io::Result<bool> {
        let Some(header) = &self.header else { return Ok(false) };
        let size = word(&mut self.link)?;
        if size == 0 {
            if header.size.is_some_and(|size| size != self.produced) {
                return Err(invalid(format!("{} bytes, not as the header says", self.produced)));
            }
            if header.content_checksum && word(&mut self.link)? != self.hash.finish_32() {
                return Err(invalid("the frame's checksum does not match its content"));
            }
            self.header = None;
            return Ok(false);
        }
        let len = usize::try_from(size & 0x7fff_ffff).unwrap_or(usize::MAX);
        if len > header.block {
            return Err(invalid(format!("a block of {len} bytes, more than {}", header.block)));
        }
        self.block.compressed.resize(len, 0);
        exact(&mut self.link, &mut self.block.compressed)?;
        if header.block_checksums
            && word(&mut self.link)? != XxHash32::oneshot(0, &self.block.compressed)
        {
            return Err(invalid("a block's checksum does not match"));
        }
        let output = &mut self.block.output;
        if size & 0x8000_0000 != 0 {
            output.clone_from(&self.block.compressed);
        } else {
            output.resize(header.block, 0);
            let input = &self.block.compressed;
            let result = if self.dictionary.is_empty() {
                decompress_into(input, output)
            } else {
                decompress_into_with_dict(input, output, &self.dictionary)
            };
            output.truncate(result.map_err(|error| invalid(error.to_string()))?);
        }
        if header.linked {
            let dictionary = &mut self.dictionary;
            dictionary.extend_from_slice(&output[output.len().saturating_sub(WINDOW)..]);
            let old = dictionary.len().saturating_sub(WINDOW);
            dictionary.drain(..old);
        }
        if header.content_checksum {
            std::hash::Hasher::write(&mut self.hash, output);
        }
        self.produced += len_u64(output.len());
        self.block.given = 0;
        Ok(true)
    }
}

impl<'a> Decode<'a> for Frame<'a> {
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.block.give(out);
            if count > 0 {
                return Ok(count);
            }
            if self.header.is_none() {
                if !self.next_frame()? {
                    return Ok(0);
                }
            } else {
                self.next_block()?;
            }
        }
    }

    fn link(&mut self) -> Option<&mut Link<'a>> {
        Some(&mut self.link)
    }

    fn memory(&self) -> u64 {
        self.block.memory() + len_u64(2 * WINDOW)
    }
}

/// The format of `lz4 -l`: blocks until the input ends, no checksums. Kernel builds append the decompressed size.
pub(crate) struct Legacy<'a> {
    link: Link<'a>,
    tail: Tail,
    block: Block,
    produced: u64,
    streams: u32,
    /// A block that was not full is the last one of its stream.
    done: bool,
}

impl<'a> Legacy<'a> {
    pub(crate) fn new(link: Link<'a>, tail: Tail) -> Self {
        Self { link, tail, block: Block::default(), produced: 0, streams: 0, done: false }
    }

    /// Decompresses the next block; `false` at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        let mut size = [0; 4];
        loop {
            match self.link.read_full(&mut size)? {
                // What follows the last stream of something larger is not ours.
                0 => return Ok(false),
                4 => {}
                _ if self.done && self.tail == Tail::Anything => return Ok(false),
                _ => return Err(cut()),
            }
            if size != LEGACY_MAGIC {
                break;
            }
            self.streams += 1;
            self.done = false;
            if self.streams > MAX_STREAMS {
                return Err(invalid(format!("more than {MAX_STREAMS} streams")));
            }
        }
        let stated = u32::from_le_bytes(size);
        let whole = stated == u32::try_from(self.produced & 0xffff_ffff).unwrap_or_default();
        if self.produced > 0 && whole && (self.tail == Tail::Anything || self.at_end()?) {
            return Ok(false);
        }
        if self.done {
            return match self.tail {
                Tail::Anything => Ok(false),
                Tail::Streams => Err(invalid("a block follows the last block")),
            };
        }
        let len = usize::try_from(stated).unwrap_or(usize::MAX);
        if len > LEGACY_COMPRESSED {
            return match self.tail {
                Tail::Anything if self.produced > 0 => Ok(false),
                _ => Err(invalid(format!("a block of {len} bytes, more than {LEGACY_COMPRESSED}"))),
            };
        }
        self.block.compressed.resize(len, 0);
        exact(&mut self.link, &mut self.block.compressed)?;
        let output = &mut self.block.output;
        output.resize(LEGACY_BLOCK, 0);
        let count = decompress_into(&self.block.compressed, output)
            .map_err(|error| invalid(error.to_string()))?;
        output.truncate(count);
        self.produced += len_u64(count);
        self.done = count < LEGACY_BLOCK;
        self.block.given = 0;
        Ok(true)
    }

    fn at_end(&mut self) -> io::Result<bool> {
        Ok(io::BufRead::fill_buf(&mut self.link)?.is_empty())
    }
}

impl<'a> Decode<'a> for Legacy<'a> {
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.block.give(out);
            if count > 0 {
                return Ok(count);
            }
            if !self.next_block()? {
                return Ok(0);
            }
        }
    }

    fn link(&mut self) -> Option<&mut Link<'a>> {
        Some(&mut self.link)
    }

    fn memory(&self) -> u64 {
        self.block.memory()
    }
}
