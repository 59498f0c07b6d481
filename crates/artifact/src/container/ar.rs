//! `ar`, the outer layer of a `.deb`: <https://manpages.debian.org/deb.5>.

use crate::fail::{Failure, Place};
use crate::source::{Source, len_u64, read_full};

pub(crate) const MAGIC: &[u8] = b"!<arch>\n";

const FORMAT: &str = "ar";

/// One member's header.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) size: u64,
    /// Where the data begin.
    pub(crate) offset: u64,
}

/// Reads headers; the caller reads or leaves out the data in between.
pub(crate) struct Reader {
    /// Where the next header is.
    next: u64,
    /// Whether a byte of padding stands before it.
    odd: bool,
}

impl Reader {
    /// Starts behind the magic, which is taken from the source.
    pub(crate) fn new(source: &mut dyn Source, place: &Place<'_>) -> Result<Self, Failure> {
        let mut magic = [0; MAGIC.len()];
        read_full(source, &mut magic).map_err(|error| place.failure(error))?;
        Ok(Self { next: len_u64(MAGIC.len()), odd: false })
    }

    /// The next member; `None` at the end.
    pub(crate) fn next(
        &mut self,
        source: &mut dyn Source,
        place: &Place<'_>,
    ) -> Result<Option<Entry>, Failure> {
        if self.odd {
            source.skip(1).map_err(|error| place.failure(error))?;
        }
        let mut header = [0; 60];
        let count = read_full(source, &mut header).map_err(|error| place.failure(error))?;
        if count == 0 {
            return Ok(None);
        }
        if count < header.len() {
            return Err(place.truncated(FORMAT, self.next + len_u64(count)));
        }
        if header[58..] != *b"`\n" {
            return Err(place.damaged(FORMAT, self.next + 58, "no end of a member's header"));
        }
        let size = std::str::from_utf8(&header[48..58])
            .ok()
            .and_then(|size| size.trim_end().parse::<u64>().ok());
        let Some(size) = size else {
            return Err(place.damaged(FORMAT, self.next + 48, "a size that is no number"));
        };
        let name = super::name_text(&header[..16]);
        let name = name.trim_end().trim_end_matches('/').to_owned();
        let offset = self.next + len_u64(header.len());
        self.next = offset + size + size % 2;
        self.odd = size % 2 == 1;
        Ok(Some(Entry { name, size, offset }))
    }
}
