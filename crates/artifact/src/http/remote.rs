//! A remote file as something to read and seek in.

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use super::error::FetchError;
use super::{Fetch, Meter, Part, Range, Request, Response, Validators, address};

/// The first read at any place: a configuration that lies early costs little.
const SMALLEST: u64 = 64 << 10;
/// What reads grow to while they follow one another.
const LARGEST: u64 = 1 << 20;
/// The most bytes of blocks that are kept.
const KEPT: usize = 8 << 20;
/// The most bytes read of a file whose server ignores ranges.
const SEQUENTIAL: u64 = 2 << 30;

/// A file behind an address, read in ranges. Reads start small and grow while they follow one another.
///
/// A server that ignores ranges is read from the start, at most [`RemoteFile::set_sequential_limit`] bytes of it; then only the
/// beginning and what was read last can be gone back to. A file that changes between two requests is an error.
pub struct RemoteFile {
    fetch: Arc<dyn Fetch>,
    /// As given, and as the first answer's redirects ended.
    url: String,
    pinned: String,
    length: Option<u64>,
    validators: Validators,
    meter: Meter,
    position: u64,
    /// Newest last.
    blocks: VecDeque<Block>,
    kept: usize,
    next_size: u64,
    /// The rest of the content of a server that ignores ranges.
    stream: Option<Stream>,
    sequential_limit: u64,
}

struct Block {
    start: u64,
    bytes: Vec<u8>,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

struct Stream {
    body: Box<dyn Read + Send>,
    at: u64,
    /// The beginning, kept for as long as the file is open: what recognises formats goes back to it.
    head: Vec<u8>,
}

impl std::fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteFile")
            .field("url", &self.url())
            .field("length", &self.length)
            .field("position", &self.position)
            .field("ranges", &self.stream.is_none())
            .finish_non_exhaustive()
    }
}

impl RemoteFile {
    /// Opens the file: asks for its first bytes, which tells its length and whether the server does ranges.
    ///
    /// # Errors
    ///
    /// A [`FetchError`].
    pub fn open(fetch: Arc<dyn Fetch>, url: &str) -> Result<Self, FetchError> {
        Self::open_with(fetch, url, Meter::default())
    }

    /// As [`open`](Self::open), with a meter that can be looked at before the first bytes are there.
    ///
    /// # Errors
    ///
    /// A [`FetchError`].
    pub fn open_with(fetch: Arc<dyn Fetch>, url: &str, meter: Meter) -> Result<Self, FetchError> {
        let mut file = Self {
            fetch,
            url: url.to_owned(),
            pinned: url.to_owned(),
            length: None,
            validators: Validators::default(),
            meter,
            position: 0,
            blocks: VecDeque::new(),
            kept: 0,
            next_size: SMALLEST,
            stream: None,
            sequential_limit: SEQUENTIAL,
        };
        let range = Range { start: 0, end: Some(SMALLEST) };
        let meter = file.meter.clone();
        let request = Request { url, range: Some(range), unless: None, same: None, meter: &meter };
        let response = match file.fetch.get(&request) {
            // Of an empty file there is no first byte.
            Err(FetchError::Behind { offset: 0, length: None | Some(0), .. }) => {
                file.length = Some(0);
                return Ok(file);
            }
            other => other?,
        };
        file.pinned.clone_from(&response.url);
        file.length = response.length;
        file.validators.clone_from(&response.validators);
        if response.part == Part::Range {
            let bytes = response.bytes(SMALLEST)?;
            file.keep(Block { start: 0, bytes });
            file.next_size = SMALLEST * 2;
        } else {
            file.stream = Some(Stream { body: response.body, at: 0, head: Vec::new() });
        }
        Ok(file)
    }

    /// Allows so many bytes to be read of a file whose server ignores ranges. 2 GiB if not set.
    pub fn set_sequential_limit(&mut self, bytes: u64) {
        self.sequential_limit = bytes;
    }

    /// The address, without credentials.
    pub fn url(&self) -> String {
        address::shown(&self.url)
    }

    /// The length, if the server says it.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Whether the server does ranges.
    pub fn has_ranges(&self) -> bool {
        self.stream.is_none()
    }

    /// How many bytes were really received so far.
    pub fn transferred(&self) -> u64 {
        self.meter.total()
    }

    /// Counts what is received; a clone goes on counting with it.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    fn keep(&mut self, block: Block) {
        self.kept += block.bytes.len();
        self.blocks.push_back(block);
        while self.kept > KEPT && self.blocks.len() > 1 {
            let oldest = self.blocks.pop_front();
            self.kept -= oldest.map_or(0, |block| block.bytes.len());
        }
    }

    /// The kept bytes at the position.
    fn held(&self) -> Option<&[u8]> {
        let at = self.position;
        let head = self.stream.as_ref().map(|stream| (0, stream.head.as_slice()));
        let blocks = self.blocks.iter().rev().map(|block| (block.start, block.bytes.as_slice()));
        blocks.chain(head).find_map(|(start, bytes)| {
            let inside = usize::try_from(at.checked_sub(start)?).ok()?;
            bytes.get(inside..).filter(|rest| !rest.is_empty())
        })
    }

    /// Makes the bytes at the position be held; `false` at the end.
    fn fill(&mut self) -> Result<bool, FetchError> {
        if self.stream.is_some() {
            return self.fill_from_stream();
        }
        if self.length.is_some_and(|length| self.position >= length) {
            return Ok(false);
        }
        let follows = self.blocks.back().is_some_and(|block| block.end() == self.position);
        let size = if follows { self.next_size } else { SMALLEST };
        let end = self.position.saturating_add(size);
        // Up to what is held already.
        let end = self
            .blocks
            .iter()
            .map(|block| block.start)
            .filter(|&s| s > self.position)
            .fold(end, u64::min);
        let end = self.length.map_or(end, |length| length.min(end));
        let range = Range { start: self.position, end: Some(end) };
        let response = match self.ask(range) {
            Err(FetchError::Behind { .. }) if self.length.is_none() => return Ok(false),
            other => other?,
        };
        let bytes = response.bytes(end - range.start)?;
        if bytes.is_empty() {
            return Ok(false);
        }
        self.next_size = (size * 2).min(LARGEST);
        self.keep(Block { start: range.start, bytes });
        Ok(true)
    }

    /// Asks for a range of the same file as before.
    fn ask(&mut self, range: Range) -> Result<Response, FetchError> {
        let get = |url: &str| {
            self.fetch.get(&Request {
                url,
                range: Some(range),
                unless: None,
                same: Some(&self.validators),
                meter: &self.meter,
            })
        };
        let response = match get(&self.pinned) {
            // Where a redirect led may be good for a while only.
            Err(error)
                if self.pinned != self.url
                    && matches!(error.status(), Some(401 | 403 | 404 | 410)) =>
            {
                get(&self.url)?
            }
            other => other?,
        };
        let changed = |what, expected: String, found: String| FetchError::Changed {
            url: self.url(),
            offset: range.start,
            what,
            expected,
            found,
        };
        if let (Some(expected), Some(found)) = (self.length, response.length)
            && expected != found
        {
            return Err(changed("length", expected.to_string(), found.to_string()));
        }
        if let Some((what, expected, found)) = self.validators.difference(&response.validators) {
            return Err(changed(what, expected.to_owned(), found.to_owned()));
        }
        if response.part != Part::Range {
            return Err(FetchError::Range {
                url: self.url(),
                offset: range.start,
                found: "the whole, where a range was sent before".to_owned(),
            });
        }
        self.pinned.clone_from(&response.url);
        Ok(response)
    }

    fn fill_from_stream(&mut self) -> Result<bool, FetchError> {
        let url = self.url();
        let Some(stream) = &mut self.stream else { return Ok(false) };
        if self.length.is_some_and(|length| self.position >= length) {
            return Ok(false);
        }
        if self.position < stream.at {
            let at = self.blocks.front().map_or(stream.at, |block| block.start);
            return Err(FetchError::Rewind { url, offset: self.position, at });
        }
        let limit = self.sequential_limit;
        while stream.at <= self.position {
            if stream.at >= limit {
                return Err(FetchError::TooLarge { url, limit, found: self.length });
            }
            let size = SMALLEST.min(limit - stream.at);
            let mut bytes = Vec::new();
            (&mut stream.body)
                .take(size)
                .read_to_end(&mut bytes)
                .map_err(|error| FetchError::from_read(&url, stream.at, error))?;
            if bytes.is_empty() {
                return Ok(false);
            }
            let start = stream.at;
            stream.at += bytes.len() as u64;
            if start < LARGEST {
                stream.head.extend_from_slice(&bytes);
            } else {
                self.kept += bytes.len();
                self.blocks.push_back(Block { start, bytes });
                while self.kept > KEPT {
                    let oldest = self.blocks.pop_front();
                    self.kept -= oldest.map_or(0, |block| block.bytes.len());
                }
            }
        }
        Ok(true)
    }
}

impl Read for RemoteFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.held().is_none() && !self.fill()? {
            return Ok(0);
        }
        let Some(held) = self.held() else { return Ok(0) };
        let size = held.len().min(buffer.len());
        buffer[..size].copy_from_slice(&held[..size]);
        self.position += size as u64;
        Ok(size)
    }
}

impl Seek for RemoteFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => {
                let length = self.length.ok_or_else(|| {
                    io::Error::from(FetchError::Address {
                        url: self.url(),
                        detail: "the server does not say how long it is".to_owned(),
                    })
                })?;
                length.checked_add_signed(offset)
            }
        };
        self.position = target.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "an offset before the start")
        })?;
        Ok(self.position)
    }
}
