//! XFS, versions 4 and 5.
//!
//! The format is described in [XFS Algorithms & Data
//! Structures](https://mirrors.edge.kernel.org/pub/linux/utils/fs/xfs/docs/xfs_filesystem_structure.pdf); numbers are
//! big-endian, checksums (CRC-32C, version 5 only) little-endian.
//!
//! The superblock `XFSB` is at 0. Space is cut into allocation groups of equal size. A block number is packed: the low
//! `agblklog` bits count blocks in the group, the rest is the group; it must be unpacked before it is multiplied, as
//! groups need not be as large as the next power of two. An inode number is a packed block number and an index below.
//!
//! An inode (`IN`) has its data in itself (`local`), as extents, or as a B+tree of extents (`BMAP`, `BMA3`) whose root is
//! in the inode. An extent is 128 bits: 1 "unwritten", 54 offset in the file, 52 packed block number, 21 length.
//!
//! A small directory is in its inode. A larger one is a file of blocks of entries (`XD2B`, `XD2D`; version 5 `XDB3`,
//! `XDD3`): inode, length of name, name, type, padding, own offset. What lies beyond 32 GiB in that file is the index,
//! which is not needed to list it.
//!
//! Checked in version 5: checksums of superblock, inodes, extent trees, directory blocks and links, and whose they say
//! they are. Not done: the log is not replayed, so a file system that was not unmounted is read as it was some
//! seconds before. Not read: realtime files, attributes, quotas.

use std::collections::HashSet;

use super::paths::{MAX_DIRECTORY, MAX_TARGET, Nodes, Visit, read_runs};
use super::{EntryKind, FsError};
use crate::disk::source::{Bytes, Run, Source, crc32c, damaged, small};

const INCOMPAT_FTYPE: u32 = 0x1;
const INCOMPAT_NEEDSREPAIR: u32 = 0x10;
/// `SPINODES`, `META_UUID`, `BIGTIME`, `NREXT64`, `EXCHRANGE`, `PARENT` and `METADIR` make no difference here.
const INCOMPAT_READ: u32 = INCOMPAT_FTYPE | 0x2 | 0x4 | 0x8 | 0x20 | 0x40 | 0x80 | 0x100;

const VERSION2_FTYPE: u32 = 0x200;
const VERSION_DIRV2: u16 = 0x2000;

const FLAG_REALTIME: u16 = 0x1;
const FLAG2_NREXT64: u64 = 1 << 4;

/// Deeper than any tree of extents can be.
const MAX_LEVEL: u16 = 9;

/// Blocks remembered as checked, so that walking down a tree again costs no checksum.
const MAX_CHECKED: usize = 4096;

/// An XFS file system.
pub(crate) struct Xfs<'a> {
    source: Source<'a>,
    v5: bool,
    file_types: bool,
    block_log: u32,
    blocks: u64,
    group_blocks: u64,
    groups: u64,
    group_log: u32,
    inode_size: usize,
    inodes_log: u32,
    directory_log: u32,
    root: u64,
    checked: HashSet<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Local,
    Extents,
    Tree,
    /// A device, or a tree of something else.
    Other,
}

/// An inode.
#[derive(Clone)]
pub(crate) struct Inode {
    number: u64,
    at: u64,
    mode: u16,
    size: u64,
    format: Format,
    realtime: bool,
    extents: u64,
    fork: Vec<u8>,
    fork_at: u64,
}

/// An extent of a file, in blocks.
#[derive(Clone, Copy)]
struct Extent {
    offset: u64,
    start: u64,
    count: u64,
    unwritten: bool,
}

impl Extent {
    fn parse(record: &Bytes<'_>, at: usize) -> Result<Self, FsError> {
        let (high, low) = (record.be64(at)?, record.be64(at + 8)?);
        let extent = Self {
            offset: (high & !(1 << 63)) >> 9,
            start: (high & 0x1ff) << 43 | low >> 21,
            count: low & 0x1f_ffff,
            unwritten: high >> 63 == 1,
        };
        if extent.count == 0 {
            return Err(record.damaged(at, "an extent of no blocks"));
        }
        Ok(extent)
    }
}

/// Whether the CRC-32C at `at`, taken over the structure with itself as zero, matches.
fn sound(data: &[u8], at: usize) -> bool {
    let (Some(before), Some(after)) = (data.get(..at), data.get(at + 4..)) else { return false };
    let sum = !crc32c(crc32c(crc32c(!0, before), &[0; 4]), after);
    data[at..at + 4] == sum.to_le_bytes()
}

impl<'a> Xfs<'a> {
    pub(crate) fn open(mut source: Source<'a>) -> Result<Self, FsError> {
        let data = source.vec(0, 512)?;
        let sb = Bytes::new(&data, 0);
        let (block_size, sector_size) = (sb.be32(4)?, sb.be16(102)?);
        let version = sb.be16(100)?;
        let v5 = version & 0xf == 5;
        if !v5 && (version & 0xf != 4 || version & VERSION_DIRV2 == 0) {
            return Err(FsError::Unsupported(format!("XFS version {version:#x}")));
        }
        if !sector_size.is_power_of_two() || !(512..=32768).contains(&sector_size) {
            return Err(sb.damaged(102, format!("sectors of {sector_size} bytes")));
        }
        let mut file_types = sb.be32(200)? & VERSION2_FTYPE != 0;
        if v5 {
            let sector = source.vec(0, usize::from(sector_size))?;
            if !sound(&sector, 224) {
                return Err(sb.damaged(224, "the checksum of the superblock does not match"));
            }
            let features = sb.be32(216)?;
            if features & INCOMPAT_NEEDSREPAIR != 0 {
                return Err(sb.damaged(216, "the file system is marked as in need of repair"));
            }
            if features & !INCOMPAT_READ != 0 {
                let unknown = features & !INCOMPAT_READ;
                return Err(FsError::Unsupported(format!("XFS with the features {unknown:#x}")));
            }
            file_types = features & INCOMPAT_FTYPE != 0;
        }
        if sb.u8(126)? != 0 {
            return Err(sb.damaged(126, "mkfs had not finished"));
        }
        let this = Self {
            v5,
            file_types,
            block_log: sb.u8(120)?.into(),
            blocks: sb.be64(8)?,
            group_blocks: sb.be32(84)?.into(),
            groups: sb.be32(88)?.into(),
            group_log: sb.u8(124)?.into(),
            inode_size: sb.be16(104)?.into(),
            inodes_log: sb.u8(123)?.into(),
            directory_log: sb.u8(192)?.into(),
            root: sb.be64(56)?,
            checked: HashSet::new(),
            source,
        };
        let inodes = u32::from(sb.be16(106)?);
        if !(9..=16).contains(&this.block_log)
            || block_size != 1 << this.block_log
            || this.group_blocks == 0
            || this.group_log > 31
            || this.group_blocks > 1 << this.group_log
            || this.directory_log + this.block_log > 16
            || !(256..=2048).contains(&this.inode_size)
            || !this.inode_size.is_power_of_two()
            || this.inodes_log > 8
            || inodes != 1 << this.inodes_log
            || u64::from(inodes) * this.inode_size as u64 != u64::from(block_size)
            || this.blocks > this.groups * this.group_blocks
        {
            return Err(sb.damaged(4, "sizes in the superblock do not fit together"));
        }
        Ok(this)
    }

    fn block_size(&self) -> u64 {
        1 << self.block_log
    }

    fn directory_block(&self) -> u64 {
        1 << (self.block_log + self.directory_log)
    }

    /// Where a packed block number is, if `count` blocks from there on exist; `from` is where the number was found.
    fn place(&self, packed: u64, count: u64, from: u64) -> Result<u64, FsError> {
        let (group, block) = (packed >> self.group_log, packed & ((1 << self.group_log) - 1));
        let linear = group.saturating_mul(self.group_blocks).saturating_add(block);
        let end = linear.saturating_add(count);
        if block.saturating_add(count) > self.group_blocks || end > self.blocks {
            let detail = format!("{count} blocks at {block} of allocation group {group}");
            return Err(damaged(from, detail));
        }
        Ok(linear << self.block_log)
    }

    /// Checks a structure once.
    fn check(&mut self, data: &Bytes<'_>, checksum: usize, what: &str) -> Result<(), FsError> {
        let at = data.offset(0);
        if self.v5 && !self.checked.contains(&at) {
            if !sound(data.all(), checksum) {
                let detail = format!("the checksum of {what} does not match");
                return Err(data.damaged(checksum, detail));
            }
            if self.checked.len() < MAX_CHECKED {
                self.checked.insert(at);
            }
        }
        Ok(())
    }

    fn inode(&mut self, number: u64) -> Result<Inode, FsError> {
        let index = number & ((1 << self.inodes_log) - 1);
        let block = self.place(number >> self.inodes_log, 1, 0);
        let block = block.map_err(|_| damaged(0, format!("there is no inode {number}")))?;
        let at = block + index * self.inode_size as u64;
        let data = self.source.vec(at, self.inode_size)?;
        let inode = Bytes::new(&data, at);
        let version = inode.u8(4)?;
        if inode.slice(0, 2)? != b"IN" || (version >= 3) != self.v5 {
            return Err(inode.damaged(0, format!("no inode {number}")));
        }
        if self.v5 && (!sound(&data, 100) || inode.be64(152)? != number) {
            return Err(
                inode.damaged(100, format!("the checksum of inode {number} does not match"))
            );
        }
        let start = if self.v5 { 176 } else { 100 };
        let attributes = usize::from(inode.u8(82)?) * 8;
        let end = if attributes == 0 { data.len() } else { start + attributes };
        let fork = inode.part(start, end.saturating_sub(start))?;
        let wide = self.v5 && inode.be64(120)? & FLAG2_NREXT64 != 0;
        let size = inode.be64(56)?;
        if size >> 63 != 0 {
            return Err(inode.damaged(56, format!("inode {number} of {size} bytes")));
        }
        Ok(Inode {
            number,
            at,
            mode: inode.be16(2)?,
            size,
            format: match inode.u8(5)? {
                1 => Format::Local,
                2 => Format::Extents,
                3 => Format::Tree,
                _ => Format::Other,
            },
            realtime: inode.be16(90)? & FLAG_REALTIME != 0,
            extents: if wide { inode.be64(24)? } else { inode.be32(76)?.into() },
            fork: fork.all().to_vec(),
            fork_at: fork.offset(0),
        })
    }

    /// The extent that holds a block of a file, or else how many blocks of a hole follow.
    fn extent(&mut self, inode: &Inode, block: u64) -> Result<Result<Extent, u64>, FsError> {
        let fork = Bytes::new(&inode.fork, inode.fork_at);
        let mut end = u64::MAX;
        match inode.format {
            Format::Extents => {
                let count = usize::try_from(inode.extents).unwrap_or(usize::MAX);
                let len = count.saturating_mul(16);
                last_extent(&fork.part(0, len)?, block, end)
            }
            Format::Tree => {
                let (mut level, count) = (fork.be16(0)?, usize::from(fork.be16(2)?));
                let most = (fork.len() - 4) / 16;
                if level == 0 || level > MAX_LEVEL || count > most {
                    let detail = format!("a tree of extents of level {level}, {count} records");
                    return Err(fork.damaged(0, detail));
                }
                let (keys, pointers) =
                    (fork.part(4, count * 8)?, fork.part(4 + most * 8, count * 8)?);
                let mut next = descend(&keys, &pointers, block, &mut end)?;
                while let Some((child, from)) = next {
                    level -= 1;
                    let at = self.place(child, 1, from)?;
                    let data = self.source.vec(at, small(self.block_size()))?;
                    let node = Bytes::new(&data, at);
                    let (magic, header): (&[u8], _) =
                        if self.v5 { (b"BMA3", 72) } else { (b"BMAP", 24) };
                    if node.slice(0, 4)? != magic || node.be16(4)? != level {
                        return Err(node.damaged(0, format!("no extents at level {level}")));
                    }
                    if self.v5 && node.be64(56)? != inode.number {
                        return Err(
                            node.damaged(56, format!("extents of inode {}", node.be64(56)?))
                        );
                    }
                    self.check(&node, 64, "extents")?;
                    let (count, most) = (usize::from(node.be16(6)?), (node.len() - header) / 16);
                    if count > most {
                        return Err(node.damaged(6, format!("{count} records in a block")));
                    }
                    if level == 0 {
                        return last_extent(&node.part(header, count * 16)?, block, end);
                    }
                    let keys = node.part(header, count * 8)?;
                    let pointers = node.part(header + most * 8, count * 8)?;
                    next = descend(&keys, &pointers, block, &mut end)?;
                }
                Ok(Err(end - block))
            }
            Format::Local | Format::Other => {
                Err(damaged(inode.at + 5, format!("inode {} has no extents", inode.number)))
            }
        }
    }

    /// Where byte `offset` of a file is.
    fn run(&mut self, inode: &Inode, offset: u64) -> Result<Run, FsError> {
        if inode.realtime {
            return Err(FsError::Unsupported("a realtime device".to_owned()));
        }
        let (block, within) = (offset >> self.block_log, offset & (self.block_size() - 1));
        let block_size = self.block_size();
        let size = |blocks: u64| blocks.saturating_mul(block_size) - within;
        Ok(match self.extent(inode, block)? {
            Err(count) => Run::Hole { len: size(count) },
            Ok(extent) => {
                let skipped = block - extent.offset;
                let len = size(extent.count - skipped);
                let at = self.place(extent.start, extent.count, inode.at)?;
                if extent.unwritten {
                    Run::Hole { len }
                } else {
                    Run::Data { at: at + (skipped << self.block_log) + within, len }
                }
            }
        })
    }

    fn read(&mut self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        read_runs(
            self,
            offset,
            buf,
            |fs, at| fs.run(inode, at),
            |fs, at, part| fs.source.read_at(at, part),
        )
    }

    fn file_type(&self, byte: u8) -> Option<EntryKind> {
        match byte {
            _ if !self.file_types => None,
            1 => Some(EntryKind::File),
            2 => Some(EntryKind::Directory),
            7 => Some(EntryKind::Link),
            3..=6 => Some(EntryKind::Other),
            _ => None,
        }
    }

    /// A directory in its inode: number of entries, whether inodes have 8 bytes, parent; then length of name, 2 bytes,
    /// name, type, inode.
    fn scan_short(&self, inode: &Inode, visit: &mut Visit<'_, u64>) -> Result<(), FsError> {
        let fork = Bytes::new(&inode.fork, inode.fork_at);
        let wide = fork.u8(1)? != 0;
        let width = if wide { 8 } else { 4 };
        let mut at = 2 + width;
        for _ in 0..fork.u8(0)?.max(fork.u8(1)?) {
            let len = usize::from(fork.u8(at)?);
            let name = fork.slice(at + 3, len)?;
            at += 3 + len;
            let kind = self.file_type(fork.u8(at)?);
            at += usize::from(self.file_types);
            let number = if wide { fork.be64(at)? } else { fork.be32(at)?.into() };
            at += width;
            if !visit(name, number, kind) {
                break;
            }
        }
        Ok(())
    }

    /// A block of a directory. `false` if the visitor has enough.
    fn scan_block(
        &mut self,
        inode: &Inode,
        block: &Bytes<'_>,
        visit: &mut Visit<'_, u64>,
    ) -> Result<bool, FsError> {
        let (start, whole) = match (block.slice(0, 4)?, self.v5) {
            (b"XD2B", false) => (16, true),
            (b"XD2D", false) => (16, false),
            (b"XDB3", true) => (64, true),
            (b"XDD3", true) => (64, false),
            (magic, _) => {
                let magic = magic.escape_ascii();
                return Err(block.damaged(0, format!("`{magic}` for a block of a directory")));
            }
        };
        if self.v5 && block.be64(40)? != inode.number {
            return Err(block.damaged(40, format!("a directory of inode {}", block.be64(40)?)));
        }
        self.check(block, 4, "a directory")?;
        let mut end = block.len();
        if whole {
            // The index is in the same block: 8 bytes for each entry, and 8 of its own.
            let index = block.be32(end - 8)? as usize;
            end = index.checked_mul(8).and_then(|len| end.checked_sub(8 + len)).unwrap_or(0);
        }
        let mut at = start;
        while at < end {
            if block.be16(at)? == 0xffff {
                let len = usize::from(block.be16(at + 2)?);
                if len == 0 || len % 8 != 0 {
                    return Err(block.damaged(at + 2, format!("{len} unused bytes")));
                }
                at += len;
                continue;
            }
            let len = usize::from(block.u8(at + 8)?);
            let name = block.slice(at + 9, len)?;
            let kind = self.file_type(block.u8(at + 9 + len)?);
            let size = (11 + len + usize::from(self.file_types)).next_multiple_of(8);
            let tag = usize::from(block.be16(at + size - 2)?);
            if len == 0 || at + size > end || tag != at {
                let detail =
                    format!("a directory entry at {at} that says {tag}, its name of {len}");
                return Err(block.damaged(at, detail));
            }
            if !visit(name, block.be64(at)?, kind) {
                return Ok(false);
            }
            at += size;
        }
        Ok(true)
    }
}

/// The extent among sorted records that holds `block`, or how much of a hole there is up to `end`.
fn last_extent(records: &Bytes<'_>, block: u64, end: u64) -> Result<Result<Extent, u64>, FsError> {
    let mut end = end;
    let mut found = None;
    for at in (0..records.len()).step_by(16) {
        let extent = Extent::parse(records, at)?;
        if extent.offset > block {
            end = end.min(extent.offset);
            break;
        }
        found = Some(extent);
    }
    Ok(match found {
        Some(extent) if block - extent.offset < extent.count => Ok(extent),
        _ => Err(end - block),
    })
}

/// The child that holds `block` and where its number is; `end` becomes the first block beyond that child.
fn descend(
    keys: &Bytes<'_>,
    pointers: &Bytes<'_>,
    block: u64,
    end: &mut u64,
) -> Result<Option<(u64, u64)>, FsError> {
    let mut found = None;
    for at in (0..keys.len()).step_by(8) {
        let key = keys.be64(at)?;
        if key > block {
            *end = (*end).min(key);
            break;
        }
        found = Some((pointers.be64(at)?, pointers.offset(at)));
    }
    Ok(found)
}

impl Nodes for Xfs<'_> {
    type Id = u64;
    type Node = Inode;

    fn name(&self) -> &'static str {
        "xfs"
    }

    fn root(&mut self) -> Result<Inode, FsError> {
        self.inode(self.root)
    }

    fn node(&mut self, id: u64) -> Result<Inode, FsError> {
        self.inode(id)
    }

    fn kind(&self, node: &Inode) -> EntryKind {
        EntryKind::of_mode(node.mode)
    }

    fn size(&self, node: &Inode) -> u64 {
        node.size
    }

    fn scan(&mut self, directory: &Inode, visit: &mut Visit<'_, u64>) -> Result<(), FsError> {
        if directory.format == Format::Local {
            return self.scan_short(directory, visit);
        }
        if directory.size > MAX_DIRECTORY {
            return Err(FsError::Limit { what: "bytes in a directory", limit: MAX_DIRECTORY });
        }
        let size = self.directory_block();
        let mut offset = 0;
        while offset < directory.size {
            // Blocks that became empty leave holes.
            let at = match self.run(directory, offset)? {
                Run::Hole { len } => {
                    offset += len.min(MAX_DIRECTORY).next_multiple_of(size);
                    continue;
                }
                Run::Data { at, .. } => at,
            };
            let mut data = vec![0; small(size)];
            self.read(directory, offset, &mut data)?;
            if !self.scan_block(directory, &Bytes::new(&data, at), visit)? {
                break;
            }
            offset += size;
        }
        Ok(())
    }

    fn target(&mut self, link: &Inode) -> Result<Vec<u8>, FsError> {
        if link.size > MAX_TARGET {
            return Err(damaged(link.at + 56, format!("a link of {} bytes", link.size)));
        }
        let len = small(link.size);
        if link.format == Format::Local {
            return Ok(Bytes::new(&link.fork, link.fork_at).slice(0, len)?.to_vec());
        }
        let mut target = Vec::with_capacity(len);
        if !self.v5 {
            target.resize(len, 0);
            self.read(link, 0, &mut target)?;
            return Ok(target);
        }
        // Every extent has a header: `XSLM`, offset in the target, length, checksum, and whose it is at 32.
        let mut block = 0;
        while target.len() < len {
            let Ok(extent) = self.extent(link, block)? else {
                return Err(damaged(link.at, "a link with a hole"));
            };
            let at = self.place(extent.start, extent.count, link.at)?;
            // No link takes more: 4096 bytes and the headers.
            let data = self.source.vec(at, small((extent.count << self.block_log).min(1 << 17)))?;
            let part = Bytes::new(&data, at);
            let (offset, bytes) = (part.be32(4)? as usize, part.be32(8)? as usize);
            if part.slice(0, 4)? != b"XSLM"
                || offset != target.len()
                || bytes == 0
                || bytes > len - offset
                || part.be64(32)? != link.number
                || !sound(&data, 12)
            {
                return Err(part.damaged(0, format!("no part of a link of {len} bytes")));
            }
            target.extend_from_slice(part.slice(56, bytes)?);
            block = extent.offset + extent.count;
        }
        Ok(target)
    }

    fn read_at(&mut self, file: &Inode, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        self.read(file, offset, buf)
    }
}
