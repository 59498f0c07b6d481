//! Compressed streams, known by their first bytes.
//!
//! Each decoder is a [`Decode`]; [`open`] puts the bounds around it and turns what it says into errors that name the
//! member and the offset. All decoders are pure Rust.

mod bzip2;
mod gzip;
mod lz4;
mod lzma;
mod xz;
pub(crate) mod zstd;

use std::io::{self, BufRead, Read};

use crate::fail::{Failure, Place};
use crate::source::{Charge, Shared, Source, len_u64, read_buffered};

/// A format of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Xz,
    Lzma,
    Zstd,
    Bzip2,
    Lz4,
    Lz4Legacy,
}

impl Compression {
    /// What the first bytes of a stream say.
    pub(crate) fn sniff(head: &[u8]) -> Option<Self> {
        if head.starts_with(&gzip::MAGIC) {
            return Some(Self::Gzip);
        }
        if head.starts_with(&xz::MAGIC) {
            return Some(Self::Xz);
        }
        if zstd::is_frame(head) {
            return Some(Self::Zstd);
        }
        if bzip2::is_stream(head) {
            return Some(Self::Bzip2);
        }
        if head.starts_with(&lz4::MAGIC) {
            return Some(Self::Lz4);
        }
        if head.starts_with(&lz4::LEGACY_MAGIC) {
            return Some(Self::Lz4Legacy);
        }
        lzma::is_stream(head).then_some(Self::Lzma)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Lzma => "lzma",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Lz4 | Self::Lz4Legacy => "lz4",
        }
    }
}

/// Whether this is an lzop file, or the stream a kernel built with `CONFIG_KERNEL_LZO` has: known, and not read, since
/// hardly any kernel is built so and the one decoder that may be used here is neither kept nor fuzzed.
pub(crate) fn is_lzop(head: &[u8]) -> bool {
    head.starts_with(&[0x89, b'L', b'Z', b'O', 0, b'\r', b'\n', 0x1a, b'\n'])
}

/// What may come after the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// More streams of the same kind, whose output follows on: a file.
    Streams,
    /// Anything: a stream inside something larger, such as a kernel image.
    Anything,
}

/// The compressed side of a decoder: counts, and keeps the failure of the layers below, which decoders would wrap in
/// errors of their own.
pub(crate) struct Link<'a> {
    source: &'a mut dyn Source,
    offset: u64,
    failed: Option<io::Error>,
    ended: bool,
}

impl Link<'_> {
    fn kept(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.failed = Some(error);
        kind.into()
    }

    /// Reads until `buf` is full or the source ends.
    fn read_full(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            let count = self.read(&mut buf[filled..])?;
            if count == 0 {
                break;
            }
            filled += count;
        }
        Ok(filled)
    }

    /// Whether the next bytes are these; none are taken.
    fn next_is(&mut self, magic: &[u8]) -> io::Result<bool> {
        // The buffer may end inside the magic, but its first byte decides nearly always.
        let available = self.fill_buf()?;
        let count = available.len().min(magic.len());
        Ok(count > 0 && available[..count] == magic[..count])
    }
}

impl Read for Link<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buf)
    }
}

impl BufRead for Link<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.source.fill_buf() {
            Ok([]) => self.ended = true,
            Ok(_) => {}
            Err(error) => return Err(self.kept(error)),
        }
        self.source.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.offset += len_u64(count);
        self.source.consume(count);
    }
}

/// One format's decoder.
trait Decode<'a> {
    /// Decompresses into `out`; zero at the end.
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize>;

    /// The compressed side. `None` only while a decoder is being replaced.
    fn link(&mut self) -> Option<&mut Link<'a>>;

    /// How much memory it holds.
    fn memory(&self) -> u64;
}

/// How much is decompressed at once. What comes behind the last byte wanted is wasted time: in a package that is often a
/// kernel, which hardly compresses and so is slow.
const STEP: usize = 8 << 10;

/// How many streams may follow each other; each costs more than its bytes.
const MAX_STREAMS: u32 = 65_536;

/// A decompressed stream.
struct Decoded<'a> {
    decoder: Box<dyn Decode<'a> + 'a>,
    format: &'static str,
    /// The member the stream is.
    place: Place<'a>,
    shared: &'a Shared,
    charge: Charge<'a>,
    buf: Box<[u8]>,
    start: usize,
    end: usize,
    done: bool,
}

/// The stream that `source` decompresses to. Its failures are of one level inside `place`.
pub(crate) fn open<'a>(
    compression: Compression,
    tail: Tail,
    source: &'a mut dyn Source,
    place: Place<'a>,
    shared: &'a Shared,
) -> Result<Box<dyn Source + 'a>, Failure> {
    let mut link = Link { source, offset: 0, failed: None, ended: false };
    // Told apart now, since decoders that read their header when they are made lose the link on an error.
    if let Err(error) = link.fill_buf() {
        return Err(place.failure(link.failed.take().unwrap_or(error)));
    }
    let limit = shared.memory_left();
    let format = compression.name();
    let decoder: Box<dyn Decode<'a> + 'a> = match compression {
        Compression::Gzip => Box::new(gzip::Gzip::new(link, tail)),
        Compression::Xz => Box::new(xz::Xz::new(link, tail, limit)),
        Compression::Lzma => Box::new(lzma::Lzma::new(link, limit)),
        Compression::Zstd => Box::new(zstd::Zstd::new(link, tail)),
        Compression::Bzip2 => Box::new(bzip2::Bzip2::new(link, tail)),
        Compression::Lz4 => Box::new(lz4::Frame::new(link, tail)),
        Compression::Lz4Legacy => Box::new(lz4::Legacy::new(link, tail)),
    };
    let place = place.unpacked();
    let (charge, buf) = (Charge::new(shared), vec![0; STEP].into_boxed_slice());
    let (start, end, done) = (0, 0, false);
    Ok(Box::new(Decoded { decoder, format, place, shared, charge, buf, start, end, done }))
}

impl Decoded<'_> {
    fn failure(&mut self, error: &io::Error) -> io::Error {
        let (mut ended, mut offset) = (false, 0);
        if let Some(link) = self.decoder.link() {
            if let Some(below) = link.failed.take() {
                return below;
            }
            (ended, offset) = (link.ended, link.offset);
        }
        match error.kind() {
            io::ErrorKind::OutOfMemory => {
                self.place.too_much("bytes of memory to decompress", self.shared.memory_left())
            }
            io::ErrorKind::UnexpectedEof => self.place.truncated(self.format, offset),
            io::ErrorKind::Unsupported => self.place.unsupported(self.format, error.to_string()),
            _ if ended => self.place.truncated(self.format, offset),
            _ => self.place.damaged(self.format, offset, error.to_string()),
        }
        .into()
    }

    fn step(&mut self) -> io::Result<()> {
        (self.start, self.end) = (0, 0);
        if self.done {
            return Ok(());
        }
        let result = self.decoder.decode(&mut self.buf);
        let count = match result {
            Ok(count) => count,
            Err(error) => {
                self.done = true;
                return Err(self.failure(&error));
            }
        };
        self.done = count == 0;
        self.end = count;
        if let Err(limit) = self.charge.set(self.decoder.memory()) {
            return Err(self.place.too_much("bytes of memory to decompress", limit).into());
        }
        if let Err(limit) = self.shared.output(count) {
            return Err(self.place.exhausted("bytes decompressed", limit).into());
        }
        Ok(())
    }
}

impl Read for Decoded<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buf)
    }
}

impl BufRead for Decoded<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            self.step()?;
        }
        Ok(&self.buf[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }
}

impl Source for Decoded<'_> {}

/// An error for what a decoder of ours finds.
fn invalid(detail: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, detail.into())
}

/// A stream that ends before its end.
fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn exact(link: &mut Link<'_>, buf: &mut [u8]) -> io::Result<()> {
    if link.read_full(buf)? < buf.len() { Err(cut()) } else { Ok(()) }
}

fn word(link: &mut Link<'_>) -> io::Result<u32> {
    let mut word = [0; 4];
    exact(link, &mut word)?;
    Ok(u32::from_le_bytes(word))
}

/// Whether a frame of Zstandard or LZ4, which have these in common, is to be left out.
fn is_skippable(magic: [u8; 4]) -> bool {
    magic[0] & 0xf0 == 0x50 && magic[1..] == [0x2a, 0x4d, 0x18]
}

/// Reads the magic of the next frame of Zstandard or LZ4 and leaves out the frames before it that are to be; `false` if there is
/// none. `streams` counts the frames.
fn next_frame(
    link: &mut Link<'_>,
    tail: Tail,
    streams: &mut u32,
    wanted: [u8; 4],
) -> io::Result<bool> {
    loop {
        if *streams > 0 && tail == Tail::Anything {
            return Ok(false);
        }
        let mut magic = [0; 4];
        match link.read_full(&mut magic)? {
            0 => return Ok(false),
            4 => {}
            _ => return Err(cut()),
        }
        *streams += 1;
        if *streams > MAX_STREAMS {
            return Err(invalid(format!("more than {MAX_STREAMS} frames")));
        }
        if is_skippable(magic) {
            let length = u64::from(word(link)?);
            if io::copy(&mut link.by_ref().take(length), &mut io::sink())? < length {
                return Err(cut());
            }
            // A frame to leave out is not the one that is wanted.
            *streams -= u32::from(tail == Tail::Anything);
            continue;
        }
        return if magic == wanted { Ok(true) } else { Err(invalid("no frame follows the frame")) };
    }
}
