//! `cpio` in its "newc" forms, and the stripped form inside large RPMs, whose names and sizes are in the RPM's header.
//!
//! <https://www.kernel.org/doc/html/latest/driver-api/early-userspace/buffer-format.html>

use super::{MAX_NAME, name_text};
use crate::fail::{Failure, Place};
use crate::source::{Source, len_u64, read_full};

const FORMAT: &str = "cpio";

/// The last member of every archive.
const TRAILER: &str = "TRAILER!!!";

/// Whether these bytes begin with a header.
pub(crate) fn is_header(head: &[u8]) -> bool {
    [b"070701", b"070702"].iter().any(|magic| head.starts_with(*magic))
        && head.get(6..110).is_some_and(|rest| rest.iter().all(u8::is_ascii_hexdigit))
}

/// One file of an RPM's header.
pub(crate) struct File {
    pub(crate) name: String,
    /// How much of it is in the payload.
    pub(crate) size: u64,
    pub(crate) regular: bool,
}

/// One member's header.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) is_file: bool,
    /// Where the data begin.
    pub(crate) offset: u64,
}

/// Reads headers; the caller reads or leaves out the data in between.
#[derive(Default)]
pub(crate) struct Reader {
    at: u64,
    padding: u64,
}

impl Reader {
    /// The next member; `None` after the last. `files` are those of the RPM the archive is in.
    pub(crate) fn next(
        &mut self,
        source: &mut dyn Source,
        place: &Place<'_>,
        files: &[File],
    ) -> Result<Option<Entry>, Failure> {
        self.skip(source, place, self.padding)?;
        let start = self.at;
        let mut magic = [0; 6];
        self.read(source, place, &mut magic)?;
        let (name, size, mode) = match &magic {
            b"070701" | b"070702" => self.header(source, place, start)?,
            b"07070X" => {
                let mut index = [0; 8];
                self.read(source, place, &mut index)?;
                let Some(index) = hex(&index) else {
                    return Err(place.damaged(FORMAT, start, "an index that is no number"));
                };
                self.skip(source, place, 2)?;
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                let Some(file) = files.get(index) else {
                    let detail = format!("file {index} of {}", files.len());
                    return Err(place.damaged(FORMAT, start, detail));
                };
                (file.name.clone(), file.size, if file.regular { 0o100_000 } else { 0 })
            }
            _ => return Err(place.damaged(FORMAT, start, "no member's header")),
        };
        if name == TRAILER {
            return Ok(None);
        }
        self.padding = (4 - size % 4) % 4;
        let offset = self.at;
        self.at = offset.saturating_add(size);
        Ok(Some(Entry { name, size, is_file: mode & 0o170_000 == 0o100_000, offset }))
    }

    fn header(
        &mut self,
        source: &mut dyn Source,
        place: &Place<'_>,
        start: u64,
    ) -> Result<(String, u64, u64), Failure> {
        let mut fields = [0; 104];
        self.read(source, place, &mut fields)?;
        let field = |index: usize| hex(&fields[8 * index..8 * index + 8]);
        let (Some(mode), Some(size), Some(name_len)) = (field(1), field(6), field(11)) else {
            return Err(place.damaged(FORMAT, start, "a header that is not of numbers"));
        };
        let padding = (4 - (110 + name_len) % 4) % 4;
        let mut name = String::new();
        if name_len <= MAX_NAME {
            let mut bytes = vec![0; usize::try_from(name_len).unwrap_or_default()];
            self.read(source, place, &mut bytes)?;
            name = name_text(&bytes);
            self.skip(source, place, padding)?;
        } else {
            self.skip(source, place, name_len + padding)?;
        }
        Ok((name, size, mode))
    }

    fn read(
        &mut self,
        source: &mut dyn Source,
        place: &Place<'_>,
        buf: &mut [u8],
    ) -> Result<(), Failure> {
        let count = read_full(source, buf).map_err(|error| place.failure(error))?;
        self.at += len_u64(count);
        if count < buf.len() { Err(place.truncated(FORMAT, self.at)) } else { Ok(()) }
    }

    fn skip(
        &mut self,
        source: &mut dyn Source,
        place: &Place<'_>,
        size: u64,
    ) -> Result<(), Failure> {
        let count = source.skip(size).map_err(|error| place.failure(error))?;
        self.at += count;
        if count < size { Err(place.truncated(FORMAT, self.at)) } else { Ok(()) }
    }
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
