//! Index files: fetched whole, held against what was announced, then decompressed as a stream.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use fastpath_artifact::http::{Cache, Cached, Fetch, FetchError, Meter, shown};
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::IndexError;
use crate::trust::{Checked, Digest};

/// The largest window of a compressed index: what `zstd --ultra -22` and `xz -9` use is below. Decoders hold twice that.
const WINDOW: u64 = 64 << 20;

/// What all requests of one survey go through.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// Gets content.
    pub fetch: &'a dyn Fetch,
    /// Keeps indexes.
    pub cache: &'a Cache,
    /// Counts what was transferred of indexes.
    pub meter: &'a Meter,
}

impl std::fmt::Debug for Access<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Access<'_> {
    /// A small file, whole.
    pub(crate) fn bytes(&self, url: &str, limit: u64) -> Result<Vec<u8>, FetchError> {
        self.cache.get(self.fetch, url, limit, self.meter)?.bytes()
    }

    /// A file whose digest, and perhaps size, was announced. Nothing of it is given out before both were found right.
    pub(crate) fn checked(
        &self,
        url: &str,
        digest: &Digest,
        size: Option<u64>,
        limit: u64,
    ) -> Result<Cached, IndexError> {
        if size.is_some_and(|size| size > limit) {
            return Err(IndexError::TooLarge { url: shown(url), what: "bytes", limit });
        }
        // Content that has the announced digest is the content meant, whatever its age: nobody needs to be asked.
        if let Some(mut kept) = self.cache.kept(url)
            && kept.length <= limit
            && check(url, &mut kept, digest, size).is_ok()
        {
            return Ok(kept);
        }
        let mut content = self.cache.get(self.fetch, url, limit, self.meter)?;
        check(url, &mut content, digest, size)?;
        Ok(content)
    }
}

fn check(
    url: &str,
    content: &mut Cached,
    digest: &Digest,
    size: Option<u64>,
) -> Result<(), IndexError> {
    Checked::new(content.reader()?, shown(url), size, digest.clone())
        .finish()
        .map_err(|error| IndexError::of_read(url, "file", 0, error))
}

/// What a stream decompresses to, counted and bounded.
pub(crate) struct Open<R> {
    inner: R,
    state: Rc<State>,
    limit: u64,
}

/// What is known of a stream from outside while something reads it.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Decompressed bytes so far.
    pub(crate) count: Cell<u64>,
    /// Whether there was more than the bound.
    pub(crate) over: Cell<bool>,
}

impl<R: Read> Open<R> {
    /// At most `limit` bytes of `inner`; more is an error of the reader and told in the state.
    pub(crate) fn new(inner: R, limit: u64) -> (Self, Rc<State>) {
        let state = Rc::new(State::default());
        (Self { inner, state: Rc::clone(&state), limit }, state)
    }
}

impl<R: Read> Read for Open<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let count = self.state.count.get() + read as u64;
        self.state.count.set(count);
        if count > self.limit {
            self.state.over.set(true);
            return Err(io::Error::other(format!("more than {} bytes decompressed", self.limit)));
        }
        Ok(read)
    }
}

/// The decompressed content, its kind told by its first bytes, never by its name.
pub(crate) fn decompress<'a, R: Read + 'a>(
    url: &str,
    source: R,
) -> Result<Box<dyn Read + 'a>, IndexError> {
    let mut source = BufReader::with_capacity(64 << 10, source);
    let start =
        source.fill_buf().map_err(|source| FetchError::File { path: shown(url).into(), source })?;
    let unsupported = |kind| {
        IndexError::unsupported(
            url,
            format!("compressed with {kind}; gzip, xz and zstd can be read"),
        )
    };
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(source)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            let limit = u32::try_from((2 * WINDOW) >> 10).unwrap_or(u32::MAX);
            Box::new(XzReader::new_mem_limit(source, true, limit))
        }
        // Also what may stand in front of a frame: skippable ones.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Box::new(Zstd { source: Some(source), frame: None })
        }
        [b'B', b'Z', b'h', ..] => return Err(unsupported("bzip2")),
        [0, b'Z', b'C', b'K', b'1', ..] => return Err(unsupported("zchunk")),
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => {
            return Err(IndexError::unsupported(
                url,
                "an SQLite database; primary.xml is what can be read",
            ));
        }
        _ => Box::new(source),
    })
}

/// All frames of a zstd stream, one behind the other.
struct Zstd<R: BufRead> {
    source: Option<R>,
    frame: Option<StreamingDecoder<R, FrameDecoder>>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(buffer)?;
                if read > 0 {
                    return Ok(read);
                }
                self.source = self.frame.take().map(StreamingDecoder::into_inner);
            }
            let Some(source) = &mut self.source else { return Ok(0) };
            let start = source.fill_buf()?;
            if start.is_empty() {
                return Ok(0);
            }
            if matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
                skip_frame(source)?;
                continue;
            }
            if let Some(source) = self.source.take() {
                let frame = StreamingDecoder::new_with_max_window_size(source, WINDOW).map_err(
                    |error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
                )?;
                self.frame = Some(frame);
            }
        }
    }
}

/// RFC 8878, 3.1.2: magic, length, that many bytes of no concern.
fn skip_frame(source: &mut impl BufRead) -> io::Result<()> {
    let mut head = [0; 8];
    source.read_exact(&mut head)?;
    let length = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    let skipped = io::copy(&mut source.take(length), &mut io::sink())?;
    if skipped < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_content() {
        for (bytes, why) in
            [(&b"BZh9"[..], "bzip2"), (b"\0ZCK1", "zchunk"), (b"SQLite format 3\0", "SQLite")]
        {
            let error = decompress("http://h/x", bytes).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with("http://h/x: ") && error.contains(why), "{error}");
        }
        let mut text = String::new();
        decompress("u", &b"<a/>"[..]).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "<a/>");
    }

    #[test]
    fn zstd_frames_follow_each_other() {
        let frame = |text: &[u8]| {
            ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
        };
        let mut stream = b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec();
        stream.extend(frame(b"one "));
        stream.extend(b"\x5f\x2a\x4d\x18\0\0\0\0");
        stream.extend(frame(b"two"));
        let mut text = String::new();
        decompress("u", &stream[..]).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two");
        let cut = &stream[..stream.len() - 2];
        assert!(decompress("u", cut).unwrap().read_to_string(&mut text).is_err());
    }

    #[test]
    fn output_is_bounded() {
        let (mut open, state) = Open::new(io::repeat(0), 1 << 20);
        assert!(io::copy(&mut open, &mut io::sink()).is_err());
        assert!(state.over.get());
    }
}
