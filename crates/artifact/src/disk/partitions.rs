//! Partition tables.
//!
//! [GPT](https://uefi.org/specs/UEFI/2.11/05_GUID_Partition_Table_Format.html), little-endian, at the second and the last
//! sector of 512 or 4096 bytes:
//!
//! | offset | size | header field |
//! | --- | --- | --- |
//! | 0 | 8 | `EFI PART` |
//! | 12 | 4 | header size |
//! | 16 | 4 | CRC-32 of the header, this field taken as zero |
//! | 24 | 8 | the header's own sector |
//! | 72 | 8 | first sector of the entries |
//! | 80 | 8 | number and size of the entries |
//! | 88 | 4 | CRC-32 of the entries |
//!
//! An entry: type at 0 (zeros: unused), first sector at 32, last sector at 40.
//!
//! MBR: `55 aa` at 510 and four entries of 16 bytes from 446 on: status (0 or 80), type at 4, first sector at 8, number of
//! sectors at 12. An extended partition (types 5, f, 85) starts with a table of the same form: its first entry is a
//! partition counted from that table, its second one names the next table, counted from the extended partition.

use super::source::{Bytes, Source, crc32, damaged};
use super::window::Window;
use crate::ReadSeek;
use crate::filesystem::{self, FsError};

/// A part of a disk that may hold a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// `p1`, numbered as Linux does; empty if it is the whole disk, which has no partitions.
    pub name: String,
    /// The first byte.
    pub offset: u64,
    /// How many bytes it is said to have; an image that was cut may have fewer.
    pub length: u64,
}

impl Volume {
    /// The bytes of the volume.
    pub fn open<'a>(&self, input: &'a mut dyn ReadSeek) -> Window<'a> {
        Window::new(input, self.offset, self.length)
    }
}

const GPT_MAGIC: &[u8] = b"EFI PART";

/// Entries of a GPT that are read, in bytes: 128 entries of 128 bytes are usual, and this is 64 times that.
const MAX_ENTRIES: u64 = 1 << 20;

/// Partitions in an extended partition; Linux stops at 256 of a disk.
const MAX_LOGICAL: usize = 256;

const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
const PROTECTIVE: u8 = 0xee;

/// The volumes of a disk: its partitions by GPT or MBR in the order of the table; or all of it, under an empty name, if a
/// file system fills it: always so for ISO 9660, whose images often have partition tables that name parts of it.
/// Empty if there is neither.
///
/// # Errors
///
/// A [`FsError`]: no sound header of a GPT, entries outside of the disk, a chain of extended partitions without end.
pub fn volumes(input: &mut dyn ReadSeek) -> Result<Vec<Volume>, FsError> {
    let mut source = Source::new(&mut *input)?;
    let whole = Volume { name: String::new(), offset: 0, length: source.len() };
    if filesystem::is_iso9660(&mut source)? {
        return Ok(vec![whole]);
    }
    let mut damage = None;
    for sector in [512, 4096] {
        match gpt(&mut source, sector) {
            Ok(Some(volumes)) => return Ok(volumes),
            Ok(None) => {}
            Err(FsError::Io(error)) => return Err(FsError::Io(error)),
            Err(error) => damage = damage.or(Some(error)),
        }
    }
    // Whatever a boot sector says about partitions, a file system that begins there is one; its own boot sector
    // ends in 55 aa as well.
    if filesystem::is_known(&mut source)? {
        return Ok(vec![whole]);
    }
    match damage {
        Some(damage) => Err(damage),
        None => Ok(mbr(&mut source)?.unwrap_or_default()),
    }
}

/// The partitions of a GPT with this size of sectors; `None` if the disk has none.
fn gpt(source: &mut Source<'_>, sector: u64) -> Result<Option<Vec<Volume>>, FsError> {
    let sectors = source.len() / sector;
    if sectors < 3 {
        return Ok(None);
    }
    let primary = gpt_at(source, sector, 1);
    if let Ok(Some(volumes)) = primary {
        return Ok(Some(volumes));
    }
    let backup = gpt_at(source, sector, sectors - 1);
    match (primary, backup) {
        (Err(FsError::Io(error)), _) | (_, Err(FsError::Io(error))) => Err(FsError::Io(error)),
        (_, Ok(Some(volumes))) => Ok(Some(volumes)),
        (Err(error), _) | (_, Err(error)) => Err(error),
        _ => Ok(None),
    }
}

fn gpt_at(source: &mut Source<'_>, sector: u64, lba: u64) -> Result<Option<Vec<Volume>>, FsError> {
    let at = lba * sector;
    let header = source.vec(at, 512)?;
    let header = Bytes::new(&header, at);
    if header.slice(0, 8)? != GPT_MAGIC {
        return Ok(None);
    }
    let size = header.le32(12)? as usize;
    if !(92..=512).contains(&size) {
        return Err(header.damaged(12, format!("a GPT header of {size} bytes")));
    }
    let mut covered = header.slice(0, size)?.to_vec();
    covered[16..20].fill(0);
    if crc32(&covered) != header.le32(16)? {
        return Err(header.damaged(16, "the checksum of the GPT header does not match"));
    }
    if header.le64(24)? != lba {
        // Of another disk, or of a disk with other sectors.
        return Err(header.damaged(24, format!("a GPT header for sector {}", header.le64(24)?)));
    }
    let (count, entry) = (u64::from(header.le32(80)?), u64::from(header.le32(84)?));
    if entry < 128 || !entry.is_power_of_two() || count * entry > MAX_ENTRIES {
        return Err(header.damaged(80, format!("{count} entries of {entry} bytes")));
    }
    let start = header.le64(72)?.checked_mul(sector);
    let start = start.ok_or_else(|| header.damaged(72, "entries beyond all disks"))?;
    let len = usize::try_from(count * entry).expect("below a MiB");
    let entries = source.vec(start, len)?;
    if crc32(&entries) != header.le32(88)? {
        return Err(damaged(start, "the checksum of the GPT entries does not match"));
    }
    let mut volumes = Vec::new();
    for (number, entry) in
        entries.chunks_exact(usize::try_from(entry).expect("below a MiB")).enumerate()
    {
        let entry = Bytes::new(entry, start + (number * entry.len()) as u64);
        if entry.slice(0, 16)?.iter().all(|byte| *byte == 0) {
            continue;
        }
        let (first, last) = (entry.le64(32)?, entry.le64(40)?);
        let length = last.checked_sub(first).and_then(|length| length.checked_add(1));
        volumes.push(volume(source, &entry, number + 1, first, length, sector)?);
    }
    Ok(Some(volumes))
}

fn volume(
    source: &Source<'_>,
    entry: &Bytes<'_>,
    number: usize,
    first: u64,
    sectors: Option<u64>,
    sector: u64,
) -> Result<Volume, FsError> {
    let offset = first.checked_mul(sector).filter(|offset| *offset < source.len() && first > 0);
    let length = sectors.and_then(|sectors| sectors.checked_mul(sector));
    let (Some(offset), Some(length)) = (offset, length) else {
        let len = source.len();
        let detail =
            format!("partition {number} starts at sector {first} of a disk of {len} bytes");
        return Err(entry.damaged(0, detail));
    };
    Ok(Volume { name: format!("p{number}"), offset, length })
}

/// One entry of an MBR that is in use.
struct Entry {
    number: usize,
    at: usize,
    kind: u8,
    first: u64,
    sectors: u64,
}

/// The four entries of a boot sector, the unused ones left out; `None` if it is none.
fn entries(sector: &Bytes<'_>) -> Result<Option<Vec<Entry>>, FsError> {
    if sector.slice(510, 2)? != [0x55, 0xaa] {
        return Ok(None);
    }
    let mut entries = Vec::new();
    for number in 0..4 {
        let at = 446 + number * 16;
        if sector.u8(at)? & 0x7f != 0 {
            // No status: boot code of something else.
            return Ok(None);
        }
        let (first, sectors) = (sector.le32(at + 8)?, sector.le32(at + 12)?);
        let kind = sector.u8(at + 4)?;
        if kind != 0 && sectors != 0 {
            let (first, sectors) = (u64::from(first), u64::from(sectors));
            entries.push(Entry { number, at, kind, first, sectors });
        }
    }
    Ok(Some(entries))
}

fn mbr(source: &mut Source<'_>) -> Result<Option<Vec<Volume>>, FsError> {
    const SECTOR: u64 = 512;
    if source.len() < SECTOR {
        return Ok(None);
    }
    let first = source.vec(0, 512)?;
    let first = Bytes::new(&first, 0);
    let Some(entries) = entries(&first)? else { return Ok(None) };
    let mut volumes = Vec::new();
    let mut logical = Vec::new();
    for entry in entries {
        if entry.kind == PROTECTIVE {
            return Err(first.damaged(entry.at, "it speaks of a GPT, and there is none"));
        }
        if EXTENDED.contains(&entry.kind) {
            extended(source, entry.first, &mut logical)?;
            continue;
        }
        let place = first.part(entry.at, 16)?;
        let sectors = Some(entry.sectors);
        volumes.push(volume(source, &place, entry.number + 1, entry.first, sectors, SECTOR)?);
    }
    volumes.append(&mut logical);
    Ok(Some(volumes))
}

/// Follows the chain of tables in an extended partition.
fn extended(source: &mut Source<'_>, base: u64, volumes: &mut Vec<Volume>) -> Result<(), FsError> {
    const SECTOR: u64 = 512;
    let mut table = base;
    let mut seen = Vec::new();
    loop {
        let at = table * SECTOR;
        if seen.contains(&table) || seen.len() == MAX_LOGICAL {
            return Err(damaged(at, "the chain of extended partitions has no end"));
        }
        seen.push(table);
        let sector = source.vec(at, 512)?;
        let sector = Bytes::new(&sector, at);
        let Some(entries) = entries(&sector)? else {
            return Err(sector.damaged(510, "no table of an extended partition"));
        };
        let mut next = None;
        for entry in entries.iter().filter(|entry| entry.number < 2) {
            if EXTENDED.contains(&entry.kind) {
                next = next.or(Some(base + entry.first));
            } else {
                let (place, first) = (sector.part(entry.at, 16)?, table + entry.first);
                let number = 5 + volumes.len();
                let sectors = Some(entry.sectors);
                volumes.push(volume(source, &place, number, first, sectors, SECTOR)?);
            }
        }
        match next {
            Some(next) => table = next,
            None => return Ok(()),
        }
    }
}
