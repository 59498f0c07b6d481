//! RPM packages: lead, signature, header, payload.
//!
//! Only what is wanted of the header is kept: what package it is and, for the stripped payload of large packages, the
//! names and sizes of its files. <https://rpm.org/docs/latest/manual/format.html>

use std::collections::HashMap;

use super::cpio::File;
use crate::fail::{Failure, Place};
use crate::source::{Charge, Shared, Source, len_u64};

pub(crate) const MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];

const FORMAT: &str = "rpm";

const LEAD: usize = 96;
const HEADER_MAGIC: [u8; 4] = [0x8e, 0xad, 0xe8, 1];

/// The largest header that is read; that of a `kernel-modules` package has about 5 MB.
const MAX_HEADER: u64 = 24 << 20;
const MAX_ENTRIES: u32 = 0xffff;

/// The most files a stripped payload may name.
const MAX_FILES: usize = 100_000;

mod tag {
    pub(super) const NAME: u32 = 1000;
    pub(super) const VERSION: u32 = 1001;
    pub(super) const RELEASE: u32 = 1002;
    pub(super) const ARCH: u32 = 1022;
    pub(super) const FILE_SIZES: u32 = 1028;
    pub(super) const FILE_MODES: u32 = 1030;
    pub(super) const SOURCE_RPM: u32 = 1044;
    pub(super) const FILE_INODES: u32 = 1096;
    pub(super) const DIR_INDEXES: u32 = 1116;
    pub(super) const BASE_NAMES: u32 = 1117;
    pub(super) const DIR_NAMES: u32 = 1118;
    pub(super) const PAYLOAD_FORMAT: u32 = 1124;
    pub(super) const LONG_FILE_SIZES: u32 = 5008;
}

/// What the header says.
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) release: String,
    pub(crate) arch: String,
    /// A package of sources holds no kernel.
    pub(crate) is_source: bool,
    /// Where the payload begins.
    pub(crate) payload: u64,
    store: Store,
}

/// The index and data of a header.
struct Store {
    index: Vec<u8>,
    data: Vec<u8>,
}

impl Store {
    /// Type, offset and count of a tag. Only the first entry counts.
    fn entry(&self, tag: u32) -> Option<(u32, usize, usize)> {
        let word = |entry: &[u8], at: usize| {
            entry.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
        };
        let entry = self.index.chunks_exact(16).find(|entry| word(entry, 0) == Some(tag))?;
        let offset = usize::try_from(word(entry, 8)?).ok()?;
        let count = usize::try_from(word(entry, 12)?).ok()?;
        Some((word(entry, 4)?, offset, count))
    }

    /// Strings, one after the other.
    fn strings(&self, tag: u32) -> Option<impl Iterator<Item = &[u8]>> {
        let (kind, offset, count) = self.entry(tag)?;
        let mut rest = self.data.get(offset..)?;
        matches!(kind, 6 | 8 | 9).then(|| {
            std::iter::from_fn(move || {
                let end = memchr::memchr(0, rest)?;
                let (string, after) = rest.split_at(end);
                rest = &after[1..];
                Some(string)
            })
            .take(count)
        })
    }

    fn string(&self, tag: u32) -> Option<String> {
        let string = self.strings(tag)?.next()?;
        Some(String::from_utf8_lossy(string).into_owned())
    }

    /// Numbers of 16, 32 or 64 bits.
    fn numbers(&self, tag: u32) -> Option<impl Iterator<Item = u64>> {
        let (kind, offset, count) = self.entry(tag)?;
        let width = match kind {
            3 => 2,
            4 => 4,
            5 => 8,
            _ => return None,
        };
        let end = count.checked_mul(width)?.checked_add(offset)?;
        let numbers = self.data.get(offset..end)?.chunks_exact(width);
        Some(numbers.map(|bytes| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))))
    }
}

impl Header {
    /// The files, in the order a stripped payload counts them.
    pub(crate) fn files(&self) -> Option<Vec<File>> {
        let store = &self.store;
        let mut directories: Vec<&[u8]> = Vec::new();
        for directory in store.strings(tag::DIR_NAMES)?.take(MAX_FILES) {
            directories.push(directory);
        }
        let names = store.strings(tag::BASE_NAMES)?;
        let indexes = store.numbers(tag::DIR_INDEXES)?;
        let sizes: Vec<u64> = match store.numbers(tag::LONG_FILE_SIZES) {
            Some(sizes) => sizes.take(MAX_FILES).collect(),
            None => store.numbers(tag::FILE_SIZES)?.take(MAX_FILES).collect(),
        };
        let modes = store.numbers(tag::FILE_MODES)?;
        let inodes: Vec<u64> = store.numbers(tag::FILE_INODES)?.take(MAX_FILES).collect();
        // Of several names of one file only the last has the content. A package's inodes are numbered by its builder.
        let last: HashMap<u64, usize> =
            inodes.iter().enumerate().map(|(number, inode)| (*inode, number)).collect();
        let mut files = Vec::new();
        for (((name, index), size), mode) in names.zip(indexes).zip(sizes).zip(modes) {
            let directory = directories.get(usize::try_from(index).ok()?)?;
            // Only short names are looked for; together the others could be gigabytes, since they share directories.
            let path = if directory.len() + name.len() <= 512 {
                String::from_utf8_lossy(&[directory, name].concat()).into_owned()
            } else {
                String::new()
            };
            let has_content = match mode & 0o170_000 {
                0o100_000 => {
                    inodes.get(files.len()).and_then(|inode| last.get(inode)) == Some(&files.len())
                }
                // The target of a link.
                kind => kind == 0o120_000,
            };
            let regular = mode & 0o170_000 == 0o100_000;
            files.push(File { name: path, size: if has_content { size } else { 0 }, regular });
        }
        Some(files)
    }

    /// The format of the payload, when it is not `cpio`.
    pub(crate) fn other_payload(&self) -> Option<String> {
        self.store.string(tag::PAYLOAD_FORMAT).filter(|format| format != "cpio")
    }
}

/// Reads up to the payload.
pub(crate) fn read_header(
    source: &mut dyn Source,
    place: &Place<'_>,
    shared: &Shared,
) -> Result<Header, Failure> {
    let mut at = skip(source, place, 0, len_u64(LEAD))?;
    let (entries, size) = intro(source, place, &mut at)?;
    let rest = 16 * u64::from(entries) + size;
    // The signature is filled up to eight bytes.
    at = skip(source, place, at, rest + (8 - rest % 8) % 8)?;
    let (entries, size) = intro(source, place, &mut at)?;
    let mut charge = Charge::new(shared);
    let total = 16 * u64::from(entries) + size;
    if charge.set(total).is_err() {
        return Err(place.too_much("bytes of memory", shared.memory_left()));
    }
    let index = exact(source, place, &mut at, 16 * u64::from(entries))?;
    let data = exact(source, place, &mut at, size)?;
    let store = Store { index, data };
    let text = |tag| store.string(tag).unwrap_or_default();
    Ok(Header {
        name: text(tag::NAME),
        version: text(tag::VERSION),
        release: text(tag::RELEASE),
        arch: text(tag::ARCH),
        is_source: store.entry(tag::SOURCE_RPM).is_none(),
        payload: at,
        store,
    })
}

/// A header's first 16 bytes: how many entries it has and how many bytes of data.
fn intro(source: &mut dyn Source, place: &Place<'_>, at: &mut u64) -> Result<(u32, u64), Failure> {
    let start = *at;
    let intro = exact(source, place, at, 16)?;
    if !intro.starts_with(&HEADER_MAGIC) {
        return Err(place.damaged(FORMAT, start, "no header"));
    }
    let word = |from: usize| {
        intro
            .get(from..from + 4)
            .and_then(|word| word.try_into().ok())
            .map_or(0, u32::from_be_bytes)
    };
    let (entries, size) = (word(8), u64::from(word(12)));
    if entries > MAX_ENTRIES || size > MAX_HEADER {
        return Err(place.too_much("bytes in a header", MAX_HEADER));
    }
    Ok((entries, size))
}

fn exact(
    source: &mut dyn Source,
    place: &Place<'_>,
    at: &mut u64,
    size: u64,
) -> Result<Vec<u8>, Failure> {
    // Grows as bytes come: the size may lie.
    let mut bytes = Vec::new();
    let read = std::io::Read::read_to_end(&mut std::io::Read::take(source, size), &mut bytes);
    read.map_err(|error| place.failure(error))?;
    *at += len_u64(bytes.len());
    if len_u64(bytes.len()) < size { Err(place.truncated(FORMAT, *at)) } else { Ok(bytes) }
}

fn skip(source: &mut dyn Source, place: &Place<'_>, at: u64, size: u64) -> Result<u64, Failure> {
    let skipped = source.skip(size).map_err(|error| place.failure(error))?;
    if skipped < size { Err(place.truncated(FORMAT, at + skipped)) } else { Ok(at + skipped) }
}
