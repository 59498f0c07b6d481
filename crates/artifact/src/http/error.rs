//! Why something could not be fetched.

use std::io;
use std::path::PathBuf;

/// An error names the address, without credentials, and where there is one the offset.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address is none that can be read here.
    #[error("{url}: {detail}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The server answered with a status that gives no content.
    #[error("{url}: offset {offset}: expected content, found status {status}{}", tried(*.tries))]
    Status {
        /// The address.
        url: String,
        /// The first byte asked for.
        offset: u64,
        /// The status.
        status: u16,
        /// How often it was asked.
        tries: u32,
    },
    /// The server asked to be left alone for longer than is waited here.
    #[error(
        "{url}: status {status}: the server asks to wait {seconds} s, more than the {limit} s waited here"
    )]
    Busy {
        /// The address.
        url: String,
        /// The status, 429 or 503.
        status: u16,
        /// What it asks for.
        seconds: u64,
        /// The longest wait.
        limit: u64,
    },
    /// No connection, or it broke before the content's end.
    #[error("{url}: offset {offset}: {detail}{}", tried(*.tries))]
    Connection {
        /// The address.
        url: String,
        /// The first byte that did not come.
        offset: u64,
        /// Expected and found.
        detail: String,
        /// How often it was tried.
        tries: u32,
    },
    /// Too many redirects.
    #[error("{url}: more than {limit} redirects")]
    Redirects {
        /// The address asked for.
        url: String,
        /// The bound.
        limit: u32,
    },
    /// A redirect that is not followed.
    #[error("{url}: refused a redirect to {to}: {detail}")]
    Redirect {
        /// The address that redirected.
        url: String,
        /// Where to.
        to: String,
        /// Why it is not followed.
        detail: &'static str,
    },
    /// More content than is taken.
    #[error("{url}: expected at most {limit} bytes, found {}", number(*.found))]
    TooLarge {
        /// The address.
        url: String,
        /// The bound.
        limit: u64,
        /// Its length; `None` if it was not announced.
        found: Option<u64>,
    },
    /// What is behind the address is no longer what it was.
    #[error(
        "{url}: offset {offset}: changed while it was read: {what}: expected {expected}, found {found}"
    )]
    Changed {
        /// The address.
        url: String,
        /// The first byte asked for.
        offset: u64,
        /// `length`, `ETag` or `Last-Modified`.
        what: &'static str,
        /// As it was.
        expected: String,
        /// As it is.
        found: String,
    },
    /// The server answered with another range than asked for.
    #[error("{url}: offset {offset}: expected that range, found `{found}`")]
    Range {
        /// The address.
        url: String,
        /// The first byte asked for.
        offset: u64,
        /// The `Content-Range` it sent.
        found: String,
    },
    /// The offset lies behind the end.
    #[error("{url}: offset {offset}: behind the end")]
    Behind {
        /// The address.
        url: String,
        /// The first byte asked for.
        offset: u64,
        /// The length, if the server says it.
        length: Option<u64>,
    },
    /// The server ignores `Range`, and the content is not kept.
    #[error(
        "{url}: offset {offset}: the server ignores ranges, and bytes before offset {at} are gone"
    )]
    Rewind {
        /// The address.
        url: String,
        /// The first byte wanted.
        offset: u64,
        /// The first byte that can still be read.
        at: u64,
    },
    /// Not in the cache, and nothing may be fetched.
    #[error("{url}: not in the cache, and the network is not used")]
    Offline {
        /// The address.
        url: String,
    },
    /// A local file that could not be read, or a cache that could not be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A setting that makes no sense: a proxy's address, a certificate file.
    #[error("{what}: {detail}")]
    Setting {
        /// The setting and its value.
        what: String,
        /// What is wrong.
        detail: String,
    },
}

impl FetchError {
    /// The error that a reader of this module wrapped, if it did.
    pub fn inside(error: &io::Error) -> Option<&Self> {
        error.get_ref().and_then(|inner| inner.downcast_ref())
    }

    /// The status the server answered with, if that is the error.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } | Self::Busy { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether there is nothing at the address, as opposed to trouble on the way.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 404 | 410),
            Self::File { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// The error of a reader, made one of the address.
    pub(crate) fn from_read(url: &str, offset: u64, error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(inner) => inner,
            Err(other) => Self::Connection {
                url: super::address::shown(url),
                offset,
                detail: other.to_string(),
                tries: 1,
            },
        }
    }
}

impl From<FetchError> for io::Error {
    fn from(error: FetchError) -> Self {
        Self::other(error)
    }
}

fn tried(tries: u32) -> String {
    if tries > 1 { format!(" (tried {tries} times)") } else { String::new() }
}

fn number(length: Option<u64>) -> String {
    length.map_or_else(|| "more".to_owned(), |length| length.to_string())
}
