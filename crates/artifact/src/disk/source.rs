//! Reading at offsets, with a small cache, and the bytes that were read.

use std::collections::HashMap;
use std::io::SeekFrom;

use crate::ReadSeek;
use crate::filesystem::FsError;

/// Bytes that are read and kept together: metadata lies scattered in small pieces.
const PAGE: u64 = 16 << 10;

/// Pages kept: 2 MiB.
const PAGES: usize = 128;

/// An input read at offsets. Every read is whole or an error.
pub(crate) struct Source<'a> {
    input: &'a mut dyn ReadSeek,
    len: u64,
    pages: HashMap<u64, (Box<[u8]>, u64)>,
    /// Counts reads, so that the page not used for the longest time is known.
    clock: u64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(input: &'a mut dyn ReadSeek) -> Result<Self, FsError> {
        let len = input.seek(SeekFrom::End(0))?;
        Ok(Self { input, len, pages: HashMap::new(), clock: 0 })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buf` from `offset` on.
    pub(crate) fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            let len = self.len;
            return Err(damaged(
                offset,
                format!("{} bytes are wanted, the image ends at {len}", buf.len()),
            ));
        }
        if buf.len() as u64 >= PAGE {
            return self.read_through(offset, buf);
        }
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let (start, within) = (at / PAGE * PAGE, small(at % PAGE));
            let page = self.page(start)?;
            let part = &page[within..];
            let len = part.len().min(buf.len() - done);
            buf[done..done + len].copy_from_slice(&part[..len]);
            done += len;
        }
        Ok(())
    }

    /// `len` bytes from `offset` on; only for lengths that a parser has bounded.
    pub(crate) fn vec(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, FsError> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.len) {
            // Without this a lying length would cost the memory before the error.
            self.read_at(offset, &mut [])?;
            let end = self.len;
            return Err(damaged(
                offset,
                format!("{len} bytes are wanted, the image ends at {end}"),
            ));
        }
        let mut bytes = vec![0; len];
        self.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    fn page(&mut self, start: u64) -> Result<&[u8], FsError> {
        self.clock += 1;
        if !self.pages.contains_key(&start) {
            if self.pages.len() >= PAGES
                && let Some(oldest) =
                    self.pages.iter().min_by_key(|(_, (_, used))| *used).map(|(at, _)| *at)
            {
                self.pages.remove(&oldest);
            }
            let mut page = vec![0; small(PAGE.min(self.len - start))].into_boxed_slice();
            self.read_through(start, &mut page)?;
            self.pages.insert(start, (page, 0));
        }
        let page = self.pages.get_mut(&start).expect("was just put there");
        page.1 = self.clock;
        Ok(&page.0)
    }

    fn read_through(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        self.input.seek(SeekFrom::Start(offset))?;
        match self.input.read_exact(buf) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(damaged(offset, format!("the image ends within these {} bytes", buf.len())))
            }
            other => Ok(other?),
        }
    }
}

/// A number known to be small: below a page, a block, a limit.
pub(crate) fn small(number: u64) -> usize {
    usize::try_from(number).expect("bounded by the caller")
}

pub(crate) fn damaged(offset: u64, detail: impl Into<String>) -> FsError {
    FsError::Damaged { offset, detail: detail.into() }
}

/// Bytes with the offset they were read at, so that whatever is not in them is an error that says where.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    data: &'a [u8],
    at: u64,
}

macro_rules! numbers {
    ($($name:ident: $number:ty = $from:ident;)*) => {
        $(pub(crate) fn $name(&self, at: usize) -> Result<$number, FsError> {
            Ok(<$number>::$from(self.array(at)?))
        })*
    };
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(data: &'a [u8], at: u64) -> Self {
        Self { data, at }
    }

    /// Where byte `at` of these is in the image.
    pub(crate) fn offset(&self, at: usize) -> u64 {
        self.at.saturating_add(at as u64)
    }

    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }

    pub(crate) fn all(&self) -> &'a [u8] {
        self.data
    }

    pub(crate) fn slice(&self, at: usize, len: usize) -> Result<&'a [u8], FsError> {
        at.checked_add(len).and_then(|end| self.data.get(at..end)).ok_or_else(|| {
            damaged(
                self.offset(at),
                format!(
                    "{len} bytes are wanted, the structure ends at {}",
                    self.offset(self.len())
                ),
            )
        })
    }

    /// These bytes from `at` on, `len` of them.
    pub(crate) fn part(&self, at: usize, len: usize) -> Result<Self, FsError> {
        Ok(Self { data: self.slice(at, len)?, at: self.offset(at) })
    }

    pub(crate) fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], FsError> {
        let mut array = [0; N];
        array.copy_from_slice(self.slice(at, N)?);
        Ok(array)
    }

    pub(crate) fn damaged(&self, at: usize, detail: impl Into<String>) -> FsError {
        damaged(self.offset(at), detail)
    }

    numbers! {
        u8: u8 = from_le_bytes;
        le16: u16 = from_le_bytes;
        le32: u32 = from_le_bytes;
        le64: u64 = from_le_bytes;
        be16: u16 = from_be_bytes;
        be32: u32 = from_be_bytes;
        be64: u64 = from_be_bytes;
    }
}

/// Where a part of a file is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// In the image at byte `at`, `len` bytes on end.
    Data { at: u64, len: u64 },
    /// Nowhere: `len` zeros that were never written.
    Hole { len: u64 },
}

/// The table of a reflected CRC-32.
const fn crc_table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut value = byte;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ polynomial } else { value >> 1 };
            bit += 1;
        }
        table[byte as usize] = value;
        byte += 1;
    }
    table
}

static CRC32: [u32; 256] = crc_table(0xedb8_8320);
static CRC32C: [u32; 256] = crc_table(0x82f6_3b78);

fn crc(table: &[u32; 256], seed: u32, data: &[u8]) -> u32 {
    data.iter().fold(seed, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        table[usize::from(low ^ byte)] ^ crc >> 8
    })
}

/// The CRC-32 of GPT and gzip.
pub(crate) fn crc32(data: &[u8]) -> u32 {
    !crc(&CRC32, !0, data)
}

/// Continues a CRC-32C (Castagnoli) without inverting it at either end; each file system does that in its own way.
pub(crate) fn crc32c(seed: u32, data: &[u8]) -> u32 {
    crc(&CRC32C, seed, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_the_known_ones() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
    }

    #[test]
    fn reads_across_pages_and_not_beyond_the_end() {
        let data: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let mut input = std::io::Cursor::new(data.clone());
        let mut source = Source::new(&mut input).unwrap();
        for (at, len) in [(0, 1), (16_383, 2), (16_000, 16_383), (5, 50_000), (99_999, 1)] {
            assert_eq!(source.vec(at as u64, len).unwrap(), data[at..at + len]);
        }
        assert!(matches!(source.vec(99_999, 2), Err(FsError::Damaged { offset: 99_999, .. })));
        assert!(source.vec(u64::MAX, 2).is_err());
    }
}
