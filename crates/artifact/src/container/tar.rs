//! `tar` in its POSIX, GNU and old forms.
//!
//! Read here because long names and extended headers are bounded, and offsets are wanted for errors.
//! <https://www.gnu.org/software/tar/manual/html_node/Standard.html>

use super::{MAX_NAME, name_text};
use crate::fail::{Failure, Place};
use crate::source::{Source, len_u64, len_usize, read_full};

const FORMAT: &str = "tar";

const BLOCK: usize = 512;

/// The longest extended header; they hold extended attributes too.
const MAX_EXTENDED: u64 = 1 << 20;

/// Whether these bytes begin with a header.
pub(crate) fn is_header(head: &[u8]) -> bool {
    head.first_chunk::<BLOCK>().is_some_and(|block| block[0] != 0 && checksum_fits(block))
}

/// One member's header.
pub(crate) struct Entry {
    /// The name as it stands there; empty if it is too long to be one that is looked for.
    pub(crate) name: String,
    pub(crate) size: u64,
    /// Whether the data are a regular file's.
    pub(crate) is_file: bool,
    /// Where the data begin.
    pub(crate) offset: u64,
}

/// Reads headers; the caller reads or leaves out the data in between.
#[derive(Default)]
pub(crate) struct Reader {
    /// Where the next byte is.
    at: u64,
    padding: u64,
}

#[derive(Default)]
struct Extended {
    name: Option<String>,
    size: Option<u64>,
    sparse: bool,
}

impl Reader {
    /// The next member; `None` at the end.
    pub(crate) fn next(
        &mut self,
        source: &mut dyn Source,
        place: &Place<'_>,
    ) -> Result<Option<Entry>, Failure> {
        let mut extended = Extended::default();
        // A member has a handful of headers of its own; each is counted, so that none of them goes on for ever.
        for _ in 0..64 {
            self.skip(source, place, self.padding)?;
            self.padding = 0;
            let Some(block) = self.block(source, place)? else { return Ok(None) };
            let start = self.at - len_u64(BLOCK);
            if !checksum_fits(&block) {
                return Err(place.damaged(FORMAT, start, "a header's checksum does not match"));
            }
            let Some(size) = number(&block[124..136]) else {
                return Err(place.damaged(FORMAT, start + 124, "a size that is no number"));
            };
            let kind = block[156];
            // Extended attributes never change the size of an extended header.
            let size = match kind {
                b'x' | b'g' | b'L' | b'K' => size,
                _ => extended.size.unwrap_or(size),
            };
            self.padding = (len_u64(BLOCK) - size % len_u64(BLOCK)) % len_u64(BLOCK);
            match kind {
                b'L' if size <= MAX_NAME => {
                    let data = self.data(source, place, size)?;
                    extended.name = Some(name_text(&data));
                }
                b'L' => {
                    self.skip(source, place, size)?;
                    extended.name = Some(String::new());
                }
                b'x' if size <= MAX_EXTENDED => {
                    let data = self.data(source, place, size)?;
                    extended.read(&data);
                }
                b'x' => return Err(place.too_much("bytes in an extended header", MAX_EXTENDED)),
                b'g' | b'K' => self.skip(source, place, size)?,
                _ => {
                    let mut is_file = matches!(kind, 0 | b'0' | b'7') && !extended.sparse;
                    if kind == b'S' {
                        self.sparse_blocks(source, place, &block)?;
                        is_file = false;
                    }
                    let name = extended.name.unwrap_or_else(|| short_name(&block));
                    // An old archive marks a directory by its name alone.
                    is_file &= !name.ends_with('/');
                    // Links and devices may state a size and have no data.
                    let has_data = !matches!(kind, b'1'..=b'6');
                    let size = if has_data { size } else { 0 };
                    self.padding = if has_data { self.padding } else { 0 };
                    let offset = self.at;
                    self.at = offset.saturating_add(size);
                    return Ok(Some(Entry { name, size, is_file, offset }));
                }
            }
        }
        Err(place.damaged(FORMAT, self.at, "more than 64 extended headers before a member"))
    }

    /// The next block; `None` for the end mark.
    fn block(
        &mut self,
        source: &mut dyn Source,
        place: &Place<'_>,
    ) -> Result<Option<[u8; BLOCK]>, Failure> {
        let mut block = [0; BLOCK];
        let count = read_full(source, &mut block).map_err(|error| place.failure(error))?;
        self.at += len_u64(count);
        if count < BLOCK {
            return Err(place.truncated(FORMAT, self.at));
        }
        Ok((block != [0; BLOCK]).then_some(block))
    }

    fn sparse_blocks(
        &mut self,
        source: &mut dyn Source,
        place: &Place<'_>,
        header: &[u8; BLOCK],
    ) -> Result<(), Failure> {
        let mut more = header[482] != 0;
        while more {
            let Some(block) = self.block(source, place)? else { return Ok(()) };
            more = block[504] != 0;
        }
        Ok(())
    }

    fn data(
        &mut self,
        source: &mut dyn Source,
        place: &Place<'_>,
        size: u64,
    ) -> Result<Vec<u8>, Failure> {
        let mut data = vec![0; len_usize(size, usize::MAX)];
        let count = read_full(source, &mut data).map_err(|error| place.failure(error))?;
        self.at += len_u64(count);
        if count < data.len() { Err(place.truncated(FORMAT, self.at)) } else { Ok(data) }
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

impl Extended {
    /// Reads records `<length> <key>=<value>\n`. What is no record ends them.
    fn read(&mut self, mut data: &[u8]) {
        while let Some(space) = memchr::memchr(b' ', &data[..data.len().min(20)]) {
            let length = std::str::from_utf8(&data[..space]).ok().and_then(|len| len.parse().ok());
            let record = length.and_then(|length: usize| data.get(space + 1..length));
            let Some(record) = record else { return };
            data = &data[space + 1 + record.len()..];
            let record = record.strip_suffix(b"\n").unwrap_or(record);
            let Some(equals) = memchr::memchr(b'=', record) else { return };
            let value = &record[equals + 1..];
            match &record[..equals] {
                b"path" if len_u64(value.len()) > MAX_NAME => self.name = Some(String::new()),
                b"path" => self.name = Some(name_text(value)),
                b"size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|size| size.parse().ok());
                    self.size = size.or(self.size);
                }
                key if key.starts_with(b"GNU.sparse.") => self.sparse = true,
                _ => {}
            }
        }
    }
}

fn short_name(block: &[u8; BLOCK]) -> String {
    let name = name_text(&block[..100]);
    if block[257..263] != *b"ustar\0" || block[345] == 0 {
        return name;
    }
    format!("{}/{name}", name_text(&block[345..500]))
}

/// A number in octal, or in GNU's base 256.
fn number(field: &[u8]) -> Option<u64> {
    if let Some((first @ 0x80.., rest)) = field.split_first() {
        // The first bit is the mark; negative numbers, and those beyond 64 bits, are none.
        return rest.iter().try_fold(u64::from(first & 0x7f), |sum, &byte| {
            sum.checked_mul(256).map(|sum| sum | u64::from(byte))
        });
    }
    let text = std::str::from_utf8(field).ok()?;
    let digits = text.trim_matches(|c| c == ' ' || c == '\0');
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

/// The sum of all bytes with the field itself as blanks; old programs took the bytes as signed.
fn checksum_fits(block: &[u8; BLOCK]) -> bool {
    let Some(stated) = number(&block[148..156]) else { return false };
    let bytes = || block[..148].iter().chain([b' '; 8].iter()).chain(&block[156..]).copied();
    let unsigned: u64 = bytes().map(u64::from).sum();
    let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
    unsigned == stated || i64::try_from(stated) == Ok(signed)
}
