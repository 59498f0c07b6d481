//! ISO 9660 with Rock Ridge or Joliet.
//!
//! [ECMA-119](https://ecma-international.org/publications-and-standards/standards/ecma-119/), numbers are there in both byte
//! orders. Volume descriptors of 2048 bytes begin at 32 KiB: type, `CD001`; type 1 is the primary one, type 2 with `%/@`,
//! `%/C` or `%/E` at 88 that of Joliet (names in UTF-16), 255 the last. Size of a block at 128, record of the root at 156.
//!
//! A directory is an extent of records that do not cross sectors of 2048 bytes: length at 0, blocks of attributes at 1,
//! first block at 2, size at 10, flags at 25 (2 directory, 80 continued by the next record), gap at 26, length of name at 32,
//! name. What follows the name is for System Use (SUSP, IEEE P1281): entries of two letters, length and version. Rock Ridge
//! (IEEE P1282) puts there `NM` names, `PX` modes, `SL` links, `CL` and `RE` directories moved because of their depth;
//! `CE` continues elsewhere, `ZF` says that the file is compressed, which is not read.

use super::paths::{MAX_TARGET, Nodes, Visit, read_runs};
use super::{EntryKind, FsError};
use crate::disk::source::{Bytes, Run, Source, damaged, small};

const SECTOR: u64 = 2048;

/// Volume descriptors looked at.
const MAX_DESCRIPTORS: u64 = 32;

/// Parts of one file.
const MAX_PARTS: usize = 64;

/// Continuations of one record.
const MAX_CONTINUED: usize = 8;

/// Bytes of one directory: a quarter of a million of the shortest records.
const MAX_DIRECTORY: u64 = 8 << 20;

const DIRECTORY: u8 = 0x02;
const MULTI_EXTENT: u8 = 0x80;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Plain,
    Joliet,
    /// With the bytes to skip in each System Use area.
    RockRidge(usize),
}

/// An ISO 9660 file system.
pub(crate) struct Iso<'a> {
    source: Source<'a>,
    block: u64,
    names: Names,
    root: u64,
}

/// A record of a directory.
#[derive(Clone)]
pub(crate) struct Record {
    at: u64,
    /// Start and length of each part, in bytes.
    extents: Vec<(u64, u64)>,
    flags: u8,
    name: Vec<u8>,
    mode: Option<u32>,
    /// The target of a link, or where it is damaged: known only when it is followed, so that its directory can be listed.
    link: Option<Result<Vec<u8>, u64>>,
    compressed: bool,
    moved: bool,
    /// The block of a directory that is elsewhere.
    child: Option<u32>,
    /// Where the next record begins, as far as it is in this sector.
    next: u64,
}

impl<'a> Iso<'a> {
    pub(crate) fn open(mut source: Source<'a>) -> Result<Self, FsError> {
        let (mut primary, mut joliet) = (None, None);
        for number in 0..MAX_DESCRIPTORS {
            let at = (16 + number) * SECTOR;
            let data = source.vec(at, small(SECTOR))?;
            let descriptor = Bytes::new(&data, at);
            if descriptor.slice(1, 5)? != b"CD001" {
                break;
            }
            let place = (u64::from(descriptor.le16(128)?), at + 156);
            match descriptor.u8(0)? {
                1 => primary = primary.or(Some(place)),
                2 if matches!(descriptor.slice(88, 3)?, b"%/@" | b"%/C" | b"%/E") => {
                    joliet = joliet.or(Some(place));
                }
                255 => break,
                _ => {}
            }
        }
        let (block, root) = primary.ok_or_else(|| damaged(16 * SECTOR, "no primary descriptor"))?;
        if !matches!(block, 512 | 1024 | 2048) {
            return Err(damaged(root - 28, format!("blocks of {block} bytes")));
        }
        let mut this = Self { source, block, names: Names::Plain, root };
        if let Some(skip) = this.rock_ridge()? {
            this.names = Names::RockRidge(skip);
        } else if let Some((block, root)) = joliet {
            (this.block, this.root, this.names) = (block, root, Names::Joliet);
            if !matches!(block, 512 | 1024 | 2048) {
                return Err(damaged(root - 28, format!("blocks of {block} bytes")));
            }
        }
        Ok(this)
    }

    /// The bytes to skip before System Use entries, if the first record of the root directory says that there are any
    /// (`SP`), and Rock Ridge is among them.
    fn rock_ridge(&mut self) -> Result<Option<usize>, FsError> {
        let root = self.record(self.root, false)?;
        let (at, len) = root.extents[0];
        if len < 34 {
            return Ok(None);
        }
        let length = self.source.vec(at, 1)?[0];
        let data = self.source.vec(at, usize::from(length))?;
        let data = Bytes::new(&data, at);
        if data.len() < 34 + 7 || data.slice(34, 2)? != b"SP" || data.slice(38, 2)? != [0xbe, 0xef]
        {
            return Ok(None);
        }
        let skip = usize::from(data.u8(40)?);
        self.names = Names::RockRidge(skip);
        let own = self.record(at, false);
        self.names = Names::Plain;
        Ok(own?.mode.map(|_| skip))
    }

    /// The record at an offset; with `whole` also what continues it.
    fn record(&mut self, at: u64, whole: bool) -> Result<Record, FsError> {
        let mut record = self.one(at)?;
        let mut flags = record.flags;
        while whole && flags & MULTI_EXTENT != 0 {
            if record.extents.len() == MAX_PARTS {
                return Err(damaged(at, format!("a file of more than {MAX_PARTS} parts")));
            }
            let part = self.one(record.next)?;
            flags = part.flags;
            record.next = part.next;
            record.extents.extend(part.extents);
        }
        if let (true, Some(block)) = (whole, record.child) {
            // The first record of the directory itself knows its size.
            let own = self.one(u64::from(block) * self.block)?;
            record.extents = own.extents;
            record.flags |= DIRECTORY;
        }
        Ok(record)
    }

    fn one(&mut self, at: u64) -> Result<Record, FsError> {
        // Records do not cross sectors; a zero says that the rest of one is unused.
        let mut length = [0];
        self.source.read_at(at, &mut length)?;
        let mut at = at;
        if length[0] == 0 {
            at = (at / SECTOR + 1) * SECTOR;
            self.source.read_at(at, &mut length)?;
        }
        let data = self.source.vec(at, usize::from(length[0]))?;
        let data = Bytes::new(&data, at);
        let name = usize::from(data.u8(32)?);
        if at % SECTOR + data.len() as u64 > SECTOR {
            return Err(data.damaged(0, format!("a record of {} bytes", data.len())));
        }
        let flags = data.u8(25)?;
        if data.slice(26, 2)? != [0, 0] {
            return Err(FsError::Unsupported("interleaved files".to_owned()));
        }
        let start = (u64::from(data.le32(2)?) + u64::from(data.u8(1)?)) * self.block;
        let mut record = Record {
            at,
            extents: vec![(start, data.le32(10)?.into())],
            flags,
            name: data.slice(33, name)?.to_vec(),
            mode: None,
            link: None,
            compressed: false,
            moved: false,
            child: None,
            next: at + data.len() as u64,
        };
        match self.names {
            Names::RockRidge(skip) => {
                // After the name, to an even offset.
                let start = (33 + name).next_multiple_of(2) + skip;
                let rest = data.len().saturating_sub(start);
                let mut name = None;
                self.system_use(data.part(start.min(data.len()), rest)?, &mut record, &mut name)?;
                if let Some(name) = name {
                    record.name = name;
                } else if !matches!(record.name.as_slice(), [0 | 1]) {
                    record.name = plain(&record.name);
                }
            }
            Names::Joliet if name > 1 => {
                let units =
                    record.name.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]]));
                let name = char::decode_utf16(units).collect::<Result<String, _>>();
                // What is no UTF-16 is left out, as all that is no UTF-8.
                record.name = name.map_or(vec![0xff], |name| {
                    name.strip_suffix(";1").unwrap_or(&name).as_bytes().to_vec()
                });
            }
            Names::Plain if !matches!(record.name.as_slice(), [0 | 1]) => {
                record.name = plain(&record.name);
            }
            _ => {}
        }
        Ok(record)
    }

    /// The System Use entries of a record.
    fn system_use(
        &mut self,
        area: Bytes<'_>,
        record: &mut Record,
        name: &mut Option<Vec<u8>>,
    ) -> Result<(), FsError> {
        let mut held;
        let mut area = area;
        let mut link = Link::default();
        for _ in 0..MAX_CONTINUED {
            let mut next = None;
            let mut at = 0;
            while at + 4 <= area.len() {
                let len = usize::from(area.u8(at + 2)?);
                if len < 4 {
                    break;
                }
                let entry = area.part(at, len)?;
                at += len;
                match entry.slice(0, 2)? {
                    b"NM" if entry.u8(4)? & 6 == 0 => {
                        let part = entry.slice(5, len.saturating_sub(5))?;
                        name.get_or_insert_default().extend_from_slice(part);
                    }
                    b"PX" => record.mode = Some(entry.le32(4)?),
                    b"SL" => link.add(&entry),
                    b"CL" => record.child = Some(entry.le32(4)?),
                    b"RE" => record.moved = true,
                    b"ZF" => record.compressed = true,
                    b"CE" => next = Some((entry.le32(4)?, entry.le32(12)?, entry.le32(20)?)),
                    b"ST" => break,
                    _ => {}
                }
            }
            let Some((block, offset, len)) = next else {
                record.link = link.target.map(|target| link.damage.map_or(Ok(target), Err));
                return Ok(());
            };
            if u64::from(len) > SECTOR {
                return Err(area.damaged(0, format!("a continuation of {len} bytes")));
            }
            let start = u64::from(block) * self.block + u64::from(offset);
            held = self.source.vec(start, len as usize)?;
            area = Bytes::new(&held, start);
        }
        Err(damaged(record.at, "a record is continued without end"))
    }
}

/// A name without its version, in lower case as Linux shows it.
fn plain(name: &[u8]) -> Vec<u8> {
    let end = name.iter().position(|byte| *byte == b';').unwrap_or(name.len());
    let name = &name[..end];
    name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase()
}

/// The target of a link as its components come: flags, length, text.
#[derive(Default)]
struct Link {
    target: Option<Vec<u8>>,
    /// The last component goes on in the next one.
    open: bool,
    damage: Option<u64>,
}

impl Link {
    fn add(&mut self, entry: &Bytes<'_>) {
        if self.components(entry).is_err() {
            self.damage = self.damage.or(Some(entry.offset(0)));
        }
    }

    fn components(&mut self, entry: &Bytes<'_>) -> Result<(), FsError> {
        let target = self.target.get_or_insert_default();
        let mut at = 5;
        while at + 2 <= entry.len() {
            let (flags, len) = (entry.u8(at)?, usize::from(entry.u8(at + 1)?));
            let text: &[u8] = match flags & 0x0e {
                0 => entry.slice(at + 2, len)?,
                2 => b".",
                4 => b"..",
                8 => b"/",
                _ => return Err(FsError::Missing),
            };
            if !self.open && !target.is_empty() && target.as_slice() != b"/" {
                target.push(b'/');
            }
            target.extend_from_slice(text);
            self.open = flags & 1 != 0;
            at += 2 + len;
        }
        if target.len() as u64 > MAX_TARGET { Err(FsError::Missing) } else { Ok(()) }
    }
}

impl Nodes for Iso<'_> {
    type Id = u64;
    type Node = Record;

    fn name(&self) -> &'static str {
        "iso9660"
    }

    fn root(&mut self) -> Result<Record, FsError> {
        self.record(self.root, false)
    }

    fn node(&mut self, id: u64) -> Result<Record, FsError> {
        self.record(id, true)
    }

    fn kind(&self, node: &Record) -> EntryKind {
        match node.mode.map(|mode| mode >> 12 & 0xf) {
            _ if node.link.is_some() => EntryKind::Link,
            _ if node.flags & DIRECTORY != 0 || node.child.is_some() => EntryKind::Directory,
            None | Some(0x8) => EntryKind::File,
            Some(_) => EntryKind::Other,
        }
    }

    fn size(&self, node: &Record) -> u64 {
        node.extents.iter().map(|(_, len)| *len).sum()
    }

    /// Every record may be continued elsewhere.
    fn cost(&self, directory: &Record) -> u64 {
        self.size(directory).saturating_mul(2 * MAX_CONTINUED as u64)
    }

    fn scan(&mut self, directory: &Record, visit: &mut Visit<'_, u64>) -> Result<(), FsError> {
        let &[(start, len)] = directory.extents.as_slice() else {
            return Err(damaged(directory.at, "a directory in several parts"));
        };
        if len > MAX_DIRECTORY {
            return Err(FsError::Limit { what: "bytes in a directory", limit: MAX_DIRECTORY });
        }
        let mut at = start;
        while at < start + len {
            let mut length = [0];
            self.source.read_at(at, &mut length)?;
            if length[0] == 0 {
                at = (at / SECTOR + 1) * SECTOR;
                continue;
            }
            let record = self.record(at, false)?;
            let mut next = record.next;
            let mut flags = record.flags;
            // The other parts of the same file.
            while flags & MULTI_EXTENT != 0 && next < start + len {
                let part = self.one(next)?;
                (flags, next) = (part.flags, part.next);
            }
            let special = matches!(record.name.as_slice(), [0 | 1]);
            // Associated files are second forks of files of the same name.
            if !special && !record.moved && record.flags & 4 == 0 {
                let kind = self.kind(&record);
                if !visit(&record.name, at, Some(kind)) {
                    return Ok(());
                }
            }
            at = next;
        }
        Ok(())
    }

    fn target(&mut self, link: &Record) -> Result<Vec<u8>, FsError> {
        let target = link.link.clone().ok_or(FsError::Missing)?;
        target.map_err(|at| damaged(at, "the parts of a link do not fit together"))
    }

    fn read_at(&mut self, file: &Record, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        if file.compressed {
            return Err(FsError::Unsupported("zisofs compression".to_owned()));
        }
        read_runs(
            self,
            offset,
            buf,
            |_, offset| {
                let mut before = 0;
                for (at, len) in &file.extents {
                    if offset < before + len {
                        let within = offset - before;
                        return Ok(Run::Data { at: at + within, len: len - within });
                    }
                    before += len;
                }
                Err(damaged(file.at, format!("byte {offset} of a file of {before}")))
            },
            |fs, at, part| fs.source.read_at(at, part),
        )
    }

    fn lookup(&mut self, directory: &Record, name: &str) -> Result<Option<u64>, FsError> {
        let any_case = !matches!(self.names, Names::RockRidge(_));
        let mut found = None;
        self.scan(directory, &mut |entry, id, _| {
            let same = if any_case {
                entry.eq_ignore_ascii_case(name.as_bytes())
            } else {
                entry == name.as_bytes()
            };
            if same {
                found = Some(id);
            }
            found.is_none()
        })?;
        Ok(found)
    }
}
