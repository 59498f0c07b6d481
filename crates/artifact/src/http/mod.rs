//! Files from elsewhere, read in parts: `http`, `https`, `file` and plain paths behind one trait.
//!
//! A request that fails in a way that may pass is repeated a bounded number of times; one that is cut goes on where it
//! stopped, and only if the file is still the same. Nothing here decompresses or trusts what it reads: hashes and
//! signatures are the caller's business.

mod address;
mod body;
mod cache;
mod client;
mod error;
mod local;
mod pace;
mod proxy;
mod remote;
mod retry;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use address::{file_name, is_address, join, shown};
pub use cache::{Cache, Cached, Origin};
pub use client::{Client, Options};
pub use error::FetchError;
pub use proxy::Proxies;
pub use remote::RemoteFile;

/// Something that can be asked for the content behind an address.
pub trait Fetch: Send + Sync {
    /// Asks for content.
    ///
    /// # Errors
    ///
    /// A [`FetchError`]: also for a status that gives no content.
    fn get(&self, request: &Request<'_>) -> Result<Response, FetchError>;
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The address.
    pub url: &'a str,
    /// Only these bytes. The server may ignore it: see [`Response::part`].
    pub range: Option<Range>,
    /// Nothing, if it is still this ([`Part::NotModified`]).
    pub unless: Option<&'a Validators>,
    /// The range only if it is still this, else the whole.
    pub same: Option<&'a Validators>,
    /// Counts what is received.
    pub meter: &'a Meter,
}

impl<'a> Request<'a> {
    /// The whole of `url`.
    pub fn whole(url: &'a str, meter: &'a Meter) -> Self {
        Self { url, range: None, unless: None, same: None, meter }
    }
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub start: u64,
    /// The byte behind the last; `None` for all that follow.
    pub end: Option<u64>,
}

/// What tells one state of a file from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// `ETag`, with its quotes and `W/`.
    pub etag: Option<String>,
    /// `Last-Modified`, as sent.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// The one fit for `If-Range`: a strong tag, else the time.
    pub(crate) fn strong(&self) -> Option<&str> {
        self.strong_etag().or(self.last_modified.as_deref())
    }

    fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }

    /// What differs, with both values. Weak tags are left out: two servers behind one name may give different ones for the
    /// same bytes.
    pub(crate) fn difference<'a>(
        &'a self,
        other: &'a Self,
    ) -> Option<(&'static str, &'a str, &'a str)> {
        let etags = ("ETag", self.strong_etag(), other.strong_etag());
        let times =
            ("Last-Modified", self.last_modified.as_deref(), other.last_modified.as_deref());
        [etags, times].into_iter().find_map(|(what, a, b)| match (a, b) {
            (Some(a), Some(b)) if a != b => Some((what, a, b)),
            _ => None,
        })
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it, from its first byte: also where a range was asked for and the server does not do that.
    Whole,
    /// The range asked for.
    Range,
    /// It is still what the request's `unless` says; no content.
    NotModified,
}

/// An answer with content.
pub struct Response {
    /// What it is.
    pub part: Part,
    /// Where it came from, redirects followed.
    pub url: String,
    /// Length of the whole, not of the range, if the server says it.
    pub length: Option<u64>,
    /// What to recognise it by.
    pub validators: Validators,
    /// The content. Its errors wrap a [`FetchError`].
    pub body: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response")
            .field("part", &self.part)
            .field("url", &shown(&self.url))
            .field("length", &self.length)
            .field("validators", &self.validators)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// All of the content, at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`FetchError::TooLarge`], before anything is read if the length is announced.
    pub fn bytes(mut self, limit: u64) -> Result<Vec<u8>, FetchError> {
        let too_large =
            |found| FetchError::TooLarge { url: address::shown(&self.url), limit, found };
        if self.part == Part::Whole && self.length.is_some_and(|length| length > limit) {
            return Err(too_large(self.length));
        }
        let mut bytes = Vec::new();
        (&mut self.body)
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| FetchError::from_read(&self.url, bytes.len() as u64, error))?;
        if bytes.len() as u64 > limit { Err(too_large(None)) } else { Ok(bytes) }
    }
}

/// Counts bytes of content really received, over any number of requests: also those received twice or thrown away.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Bytes so far.
    pub fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
