//! Zstandard, RFC 8878: <https://www.rfc-editor.org/rfc/rfc8878>.
//!
//! Kernels are compressed with `zstd -22 --ultra`, whose window is 128 MiB; Arch packages with `-20` and the same one.
//!
//! Written here because the decoders there are give nothing before they hold a whole window, so that 128 MiB would be
//! decoded for a file at the start of a package, and hold a block to its size only after it was decompressed: a crafted
//! one doubles a buffer that may have 128 MiB. Here output is given block by block, and memory is the window's size at
//! most, and no more than there was output.

mod block;
mod entropy;

use std::hash::Hasher;
use std::io;

use block::{Blocks, MAX_BLOCK};
use twox_hash::XxHash64;

use super::{Decode, Link, Tail, exact, invalid, is_skippable, next_frame};
use crate::source::{len_u64, len_usize};

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The largest window, as `zstd` itself has it by default.
const MAX_WINDOW: u64 = 128 << 20;

pub(crate) fn is_frame(head: &[u8]) -> bool {
    head.starts_with(&MAGIC) || head.first_chunk().copied().is_some_and(is_skippable)
}

/// Kinds of blocks: as it is, one byte so many times, literals and sequences.
const RAW: u8 = 0;
const RLE: u8 = 1;
const COMPRESSED: u8 = 2;

pub(crate) struct Zstd<'a> {
    link: Link<'a>,
    tail: Tail,
    blocks: Blocks,
    /// How much of the last block was given on.
    given: usize,
    running: bool,
    /// Whether the last block was the frame's last.
    last: bool,
    streams: u32,
    /// The content's size, if the frame says it, and how much there was.
    size: Option<u64>,
    produced: u64,
    checksum: Option<XxHash64>,
    /// A block as it is in the stream.
    packed: Vec<u8>,
}

impl<'a> Zstd<'a> {
    pub(crate) fn new(link: Link<'a>, tail: Tail) -> Self {
        Self {
            link,
            tail,
            blocks: Blocks::new(),
            given: 0,
            running: false,
            last: false,
            streams: 0,
            size: None,
            produced: 0,
            checksum: None,
            packed: Vec::new(),
        }
    }

    /// Starts the next frame; `false` if there is none.
    fn next_frame(&mut self) -> io::Result<bool> {
        let next = next_frame(&mut self.link, self.tail, &mut self.streams, MAGIC)?;
        if next {
            self.start()?;
        }
        Ok(next)
    }

    /// Reads the frame's header; its window is wanted here too.
    fn start(&mut self) -> io::Result<()> {
        let mut header = [0; 18];
        header[..4].copy_from_slice(&MAGIC);
        exact(&mut self.link, &mut header[4..5])?;
        let descriptor = header[4];
        let single = descriptor & 0x20 != 0;
        let dictionary_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let size_len = match descriptor >> 6 {
            0 => usize::from(single),
            flag => 1 << flag,
        };
        let window_len = usize::from(!single);
        let len = 5 + window_len + dictionary_len + size_len;
        exact(&mut self.link, &mut header[5..len])?;
        if header[5 + window_len..len - size_len].iter().any(|&byte| byte != 0) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "needs a dictionary"));
        }
        let mut size = [0; 8];
        size[..size_len].copy_from_slice(&header[len - size_len..len]);
        let size = u64::from_le_bytes(size) + if size_len == 2 { 256 } else { 0 };
        let window = if single {
            size
        } else {
            let (exponent, mantissa) = (u32::from(header[5] >> 3), u64::from(header[5] & 7));
            (1 << (10 + exponent)) + ((1 << (10 + exponent)) / 8) * mantissa
        };
        if window > MAX_WINDOW {
            let detail = format!("a window of {window} bytes, more than {MAX_WINDOW}");
            return Err(io::Error::new(io::ErrorKind::Unsupported, detail));
        }
        self.blocks.reset(len_usize(window, usize::MAX));
        self.size = (size_len > 0).then_some(size);
        self.checksum = (descriptor & 4 != 0).then(|| XxHash64::with_seed(0));
        (self.given, self.produced) = (0, 0);
        (self.running, self.last) = (true, false);
        Ok(())
    }

    /// Decompresses the next block.
    fn block(&mut self) -> io::Result<()> {
        self.blocks.next();
        self.given = 0;
        let mut header = [0; 4];
        exact(&mut self.link, &mut header[..3])?;
        let word = u32::from_le_bytes(header);
        let (kind, size) = (header[0] >> 1 & 3, len_usize(u64::from(word >> 3), usize::MAX));
        self.last = word & 1 != 0;
        if size > MAX_BLOCK {
            return Err(invalid(format!("a block of {size} bytes, more than {MAX_BLOCK}")));
        }
        let mut packed = std::mem::take(&mut self.packed);
        packed.resize(if kind == RLE { 1 } else { size }, 0);
        exact(&mut self.link, &mut packed)?;
        match kind {
            RAW => self.blocks.output.extend_from_slice(&packed),
            RLE => self.blocks.output.resize(size, packed[0]),
            COMPRESSED => self.blocks.compressed(&packed)?,
            _ => return Err(invalid("a block of the kind that is reserved")),
        }
        self.packed = packed;
        self.produced += len_u64(self.blocks.output.len());
        if let Some(checksum) = &mut self.checksum {
            checksum.write(&self.blocks.output);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(checksum) = self.checksum.take() {
            let mut stated = [0; 4];
            exact(&mut self.link, &mut stated)?;
            if checksum.finish().to_le_bytes()[..4] != stated {
                return Err(invalid("the frame's checksum does not match its content"));
            }
        }
        if self.size.is_some_and(|size| size != self.produced) {
            return Err(invalid(format!("{} bytes, not as the frame says", self.produced)));
        }
        self.running = false;
        Ok(())
    }
}

impl<'a> Decode<'a> for Zstd<'a> {
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let ready = &self.blocks.output[self.given..];
            let count = ready.len().min(out.len());
            if count > 0 {
                out[..count].copy_from_slice(&ready[..count]);
                self.given += count;
                return Ok(count);
            }
            if !self.running {
                if !self.next_frame()? {
                    return Ok(0);
                }
            } else if self.last {
                self.finish()?;
            } else {
                self.block()?;
            }
        }
    }

    fn link(&mut self) -> Option<&mut Link<'a>> {
        Some(&mut self.link)
    }

    fn memory(&self) -> u64 {
        // The block that was given goes into the history before the next one is read.
        len_u64(self.blocks.history.memory_with(self.blocks.output.len())) + (1 << 20)
    }
}

/// The first frame; what follows it is ignored.
pub(crate) fn first_frame(packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let mut source = packed;
    let link = Link { source: &mut source, offset: 0, failed: None, ended: false };
    let mut decoder = Zstd::new(link, Tail::Anything);
    let (mut data, mut buf) = (Vec::new(), vec![0; MAX_BLOCK]);
    loop {
        match decoder.decode(&mut buf).map_err(|error| error.to_string())? {
            0 => return Ok(data),
            count if count > limit - data.len() => {
                return Err(format!("more than {limit} bytes come out"));
            }
            count => data.extend_from_slice(&buf[..count]),
        }
    }
}
