//! Decompression of a gzip file with a limit, telling a cut stream from a damaged one.
//!
//! The format is RFC 1952: <https://www.rfc-editor.org/rfc/rfc1952>.

use std::io::{self, Read};

use flate2::bufread::GzDecoder;

/// The most bytes a configuration may decompress to: far above any real one (300 kB), far below exhaustion.
pub const OUTPUT_LIMIT: usize = 64 << 20;

/// The most members of one file. Each costs some work even if it is empty, and a file of nothing but empty ones would
/// take minutes; a program that writes blocks of 64 kB as members needs 1,024 for [`OUTPUT_LIMIT`].
const MAX_MEMBERS: usize = 4096;

/// The two bytes a gzip stream starts with.
pub const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Why a gzip stream did not end well. Offsets are in compressed bytes from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file ends inside the stream.
    #[error("gzip stream cut at offset {offset}")]
    Truncated {
        /// The length of the file.
        offset: usize,
    },
    /// The stream contradicts itself or its checksum.
    #[error("gzip stream damaged at offset {offset}: {detail}")]
    Malformed {
        /// How far it could be read.
        offset: usize,
        /// What the decoder found.
        detail: String,
    },
    /// The output passed the limit.
    #[error(
        "gzip stream is larger than {limit} bytes when decompressed, stopped at offset {offset}"
    )]
    TooLarge {
        /// How far it was read.
        offset: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

/// A decompressed file: what came out, and how it ended.
#[derive(Clone, Debug)]
pub struct Inflated {
    /// The output, up to the defect if there is one.
    pub text: Vec<u8>,
    /// How the stream ended.
    pub end: Result<(), Error>,
}

/// Whether the file starts like a gzip stream.
pub fn is_gzip(input: &[u8]) -> bool {
    input.starts_with(&MAGIC)
}

/// Decompresses `input`, all its members, to at most `limit` bytes. Bytes after the last member are ignored, as gzip
/// itself does.
pub fn inflate(input: &[u8], limit: usize) -> Inflated {
    let mut text = Vec::new();
    let mut rest = input;
    for _ in 0..MAX_MEMBERS {
        let mut decoder = GzDecoder::new(rest);
        let room = limit.saturating_sub(text.len());
        let result =
            (&mut decoder).take(u64::try_from(room).unwrap_or(u64::MAX)).read_to_end(&mut text);
        let mut overflow = [0; 1];
        let result = match result {
            Ok(_) if text.len() >= limit => decoder.read(&mut overflow),
            Ok(_) => Ok(0),
            Err(error) => Err(error),
        };
        rest = decoder.into_inner();
        let offset = input.len() - rest.len();
        let end = match result {
            Ok(0) if rest.starts_with(&MAGIC) => continue,
            Ok(0) => Ok(()),
            Ok(_) => Err(Error::TooLarge { offset, limit }),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(Error::Truncated { offset: input.len() })
            }
            Err(error) => Err(Error::Malformed { offset, detail: error.to_string() }),
        };
        return Inflated { text, end };
    }
    let offset = input.len() - rest.len();
    let detail = format!("more than {MAX_MEMBERS} members");
    Inflated { text, end: Err(Error::Malformed { offset, detail }) }
}
