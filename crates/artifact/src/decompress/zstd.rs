//! Zstandard, RFC 8878: <https://www.rfc-editor.org/rfc/rfc8878>.
//!
//! Kernels are compressed with `zstd -22 --ultra`, whose window is 128 MiB; Arch packages with `-20` and the same one.
//!
//! The decoder of `ruzstd` gives nothing before it holds a whole window, so 8 or 128 MiB would be decoded for a file at
//! the start of a package. It is therefore told of a small window, and its output is looked at where it lies, without
//! taking it; taken is only what the real window no longer needs. Once that has begun, output that wraps around in its
//! buffer cannot be looked at any more, and from then on it comes one window late.
//!
//! One thing is out of reach here: a block crafted to give more than its 128 KiB is refused only after the decoder has
//! made room for it, and with a full window of 128 MiB that room is a second buffer, for a moment. The peak was 260 MiB.

use std::io::{self, Read, Write};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{Decode, Link, MAX_STREAMS, Tail, cut, invalid};
use crate::source::{len_u64, len_usize};

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The largest window, as `zstd` itself has it by default.
const MAX_WINDOW: u64 = 128 << 20;

pub(crate) fn is_frame(head: &[u8]) -> bool {
    head.starts_with(&MAGIC) || head.first_chunk().copied().is_some_and(is_skippable)
}

fn is_skippable(magic: [u8; 4]) -> bool {
    magic[0] & 0xf0 == 0x50 && magic[1..] == [0x2a, 0x4d, 0x18]
}

/// No block is larger.
const BLOCK: u64 = 128 << 10;

pub(crate) struct Zstd<'a> {
    link: Link<'a>,
    tail: Tail,
    decoder: FrameDecoder,
    running: bool,
    streams: u32,
    /// The frame's window, and the one the decoder knows of.
    window: u64,
    told: u64,
    /// How much of the frame's output was given on, and how much the decoder holds no more.
    given: u64,
    taken: u64,
    /// The content's size, if the frame says it.
    size: Option<u64>,
    memory: u64,
}

/// Copies from where `skip` ends, and takes nothing.
struct Look<'o> {
    skip: usize,
    out: &'o mut [u8],
    copied: usize,
}

impl Write for Look<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let new = bytes.get(self.skip..).unwrap_or_default();
        self.copied = new.len().min(self.out.len());
        self.out[..self.copied].copy_from_slice(&new[..self.copied]);
        Ok(0)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes at most `quota` bytes, and copies those after the first `skip`.
struct Take<'o> {
    skip: usize,
    quota: usize,
    out: &'o mut [u8],
    copied: usize,
}

impl Write for Take<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let known = self.skip.min(bytes.len()).min(self.quota);
        let room = (self.out.len() - self.copied).min(self.quota - known);
        let new = &bytes[known..];
        let new = &new[..new.len().min(if known < self.skip { 0 } else { room })];
        self.out[self.copied..self.copied + new.len()].copy_from_slice(new);
        self.copied += new.len();
        self.skip -= known;
        self.quota -= known + new.len();
        Ok(known + new.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> Zstd<'a> {
    pub(crate) fn new(link: Link<'a>, tail: Tail) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self {
            link,
            tail,
            decoder,
            running: false,
            streams: 0,
            window: 0,
            told: 0,
            given: 0,
            taken: 0,
            size: None,
            memory: 0,
        }
    }

    /// Starts the next frame; `false` if there is none.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.streams > 0 && self.tail == Tail::Anything {
                return Ok(false);
            }
            let mut magic = [0; 4];
            match self.link.read_full(&mut magic)? {
                0 => return Ok(false),
                4 => {}
                _ => return Err(cut()),
            }
            self.streams += 1;
            if self.streams > MAX_STREAMS {
                return Err(invalid(format!("more than {MAX_STREAMS} frames")));
            }
            if is_skippable(magic) {
                let mut length = [0; 4];
                if self.link.read_full(&mut length)? < 4 {
                    return Err(cut());
                }
                let length = u64::from(u32::from_le_bytes(length));
                if io::copy(&mut self.link.by_ref().take(length), &mut io::sink())? < length {
                    return Err(cut());
                }
                // A frame to leave out is not the one that is wanted.
                self.streams -= u32::from(self.tail == Tail::Anything);
                continue;
            }
            if magic != MAGIC {
                return Err(invalid("no frame follows the frame"));
            }
            self.start()?;
            return Ok(true);
        }
    }

    /// Reads the frame's header; its window is wanted here too.
    fn start(&mut self) -> io::Result<()> {
        let mut header = [0; 18];
        header[..4].copy_from_slice(&MAGIC);
        self.exact(&mut header[4..5])?;
        let descriptor = header[4];
        let single = descriptor & 0x20 != 0;
        let dictionary_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let size_len = match descriptor >> 6 {
            0 => usize::from(single),
            flag => 1 << flag,
        };
        let window_len = usize::from(!single);
        let len = 5 + window_len + dictionary_len + size_len;
        self.exact(&mut header[5..len])?;
        if header[5 + window_len..len - size_len].iter().any(|&byte| byte != 0) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "needs a dictionary"));
        }
        let mut size = [0; 8];
        size[..size_len].copy_from_slice(&header[len - size_len..len]);
        let size = u64::from_le_bytes(size) + if size_len == 2 { 256 } else { 0 };
        self.window = if single {
            size
        } else {
            let (exponent, mantissa) = (u32::from(header[5] >> 3), u64::from(header[5] & 7));
            (1 << (10 + exponent)) + ((1 << (10 + exponent)) / 8) * mantissa
        };
        if self.window > MAX_WINDOW {
            let detail = format!("a window of {} bytes, more than {MAX_WINDOW}", self.window);
            return Err(io::Error::new(io::ErrorKind::Unsupported, detail));
        }
        // A frame in one segment may be smaller than the smallest window that can be said.
        let told = self.window.clamp(1 << 10, BLOCK);
        let exponent = told.ilog2() + u32::from(!told.is_power_of_two());
        self.told = 1 << exponent;
        self.window = self.window.max(self.told);
        self.size = (size_len > 0).then_some(size);
        (self.given, self.taken) = (0, 0);
        self.running = true;
        let window = u8::try_from((exponent - 10) << 3).unwrap_or(u8::MAX);
        let told = [&MAGIC[..], &[descriptor & 4, window]].concat();
        self.decoder.reset(&told[..]).map_err(|error| invalid(error.to_string()))
    }

    fn exact(&mut self, buf: &mut [u8]) -> io::Result<()> {
        if self.link.read_full(buf)? < buf.len() { Err(cut()) } else { Ok(()) }
    }

    /// How much the decoder holds.
    fn held(&self) -> u64 {
        let finished = self.decoder.is_finished();
        let visible = len_u64(self.decoder.can_collect());
        // With nothing to collect it may hold less than its window, which makes no difference here.
        if finished { visible } else { visible + self.told }
    }

    fn block(&mut self) -> io::Result<()> {
        let strategy = BlockDecodingStrategy::UptoBlocks(1);
        self.decoder
            .decode_blocks(&mut self.link, strategy)
            .map_err(|error| invalid(error.to_string()))?;
        // The buffer grows by doubling.
        self.memory = self.memory.max(self.held().next_power_of_two().min(self.window));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let stated = self.decoder.get_checksum_from_data();
        if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
            return Err(invalid("the frame's checksum does not match its content"));
        }
        if self.size.is_some_and(|size| size != self.given) {
            return Err(invalid(format!("{} bytes, not as the frame says", self.given)));
        }
        self.running = false;
        Ok(())
    }
}

impl<'a> Decode<'a> for Zstd<'a> {
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.running && !self.next_frame()? {
                return Ok(0);
            }
            if self.taken == 0 {
                let skip = len_usize(self.given, usize::MAX);
                let mut look = Look { skip, out: &mut *out, copied: 0 };
                self.decoder.collect_to_writer(&mut look)?;
                if look.copied > 0 {
                    self.given += len_u64(look.copied);
                    return Ok(look.copied);
                }
            }
            let finished = self.decoder.is_finished();
            let needed = if finished { 0 } else { self.window };
            let quota = len_usize(self.held().saturating_sub(needed), usize::MAX);
            let skip = len_usize(self.given - self.taken, usize::MAX);
            let mut take = Take { skip, quota, out: &mut *out, copied: 0 };
            let taken = len_u64(self.decoder.collect_to_writer(&mut take)?);
            let copied = take.copied;
            self.taken += taken;
            self.given += len_u64(copied);
            if copied > 0 {
                return Ok(copied);
            }
            if !finished {
                self.block()?;
            } else if self.decoder.can_collect() == 0 {
                self.finish()?;
            }
        }
    }

    fn link(&mut self) -> Option<&mut Link<'a>> {
        Some(&mut self.link)
    }

    fn memory(&self) -> u64 {
        self.memory + (1 << 20)
    }
}
