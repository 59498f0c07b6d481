//! ext2, ext3 and ext4.
//!
//! The format is described in the kernel's [documentation](https://docs.kernel.org/filesystems/ext4/index.html); all
//! numbers are little-endian, those of the journal big-endian.
//!
//! The superblock is at byte 1024. Blocks (1 to 64 KiB) make groups; the table of group descriptors follows the
//! superblock, with `META_BG` each run of descriptors is in the first of its groups; a descriptor says where the
//! group's part of the inode table is. An inode maps its file by a tree of extents (`EXTENTS`: header `0xf30a`, entries
//! and depth, then 12 bytes for each extent or index), by 12 direct blocks and three trees of pointers (ext2, ext3), or
//! holds it itself (`INLINE_DATA`). A directory is a file of entries: inode, length of entry, length of name, type,
//! name; the index of a large one looks like unused entries.
//!
//! Checked with `METADATA_CSUM` (CRC-32C): superblock, descriptors, inodes, extent blocks, directory blocks.
//!
//! A file system that was not unmounted is read through its journal: what was committed there counts. Not replayed are
//! fast commits. Not read: encrypted files, compression, `DIRDATA`.

use std::collections::HashMap;

use super::paths::{MAX_DIRECTORY, MAX_TARGET, Nodes, Visit, read_runs};
use super::{EntryKind, FsError};
use crate::disk::source::{Bytes, Run, Source, crc32c, damaged, small};

mod journal;

const ROOT: u32 = 2;

const COMPAT_SPARSE_SUPER2: u32 = 0x200;

const INCOMPAT_RECOVER: u32 = 0x4;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_64BIT: u32 = 0x80;
const INCOMPAT_CSUM_SEED: u32 = 0x2000;
/// Features that make no difference here, and those above: `FILETYPE`, `EXTENTS`, `MMP`, `FLEX_BG`, `EA_INODE`, `LARGEDIR`,
/// `INLINE_DATA`, `ENCRYPT`, `CASEFOLD`.
const INCOMPAT_READ: u32 = INCOMPAT_RECOVER
    | INCOMPAT_META_BG
    | INCOMPAT_64BIT
    | INCOMPAT_CSUM_SEED
    | 0x2
    | 0x40
    | 0x100
    | 0x200
    | 0x400
    | 0x4000
    | 0x8000
    | 0x1_0000
    | 0x2_0000;
const INCOMPAT_FILETYPE: u32 = 0x2;

const RO_SPARSE_SUPER: u32 = 0x1;
const RO_METADATA_CSUM: u32 = 0x400;

const FLAG_ENCRYPT: u32 = 0x800;
const FLAG_EXTENTS: u32 = 0x8_0000;
const FLAG_INLINE: u32 = 0x1000_0000;

const EXTENT_MAGIC: u16 = 0xf30a;
/// An extent longer than this is preallocated: its blocks were never written.
const EXTENT_WRITTEN: u16 = 32768;

/// An ext2, ext3 or ext4 file system.
pub(crate) struct Ext4<'a> {
    source: Source<'a>,
    block_size: u64,
    blocks: u64,
    first_data_block: u64,
    blocks_per_group: u64,
    inodes: u32,
    inodes_per_group: u32,
    inode_size: usize,
    descriptor_size: u64,
    first_meta_bg: u64,
    compat: u32,
    incompat: u32,
    ro_compat: u32,
    backup_groups: [u32; 2],
    /// Seed of the checksums; `None` without `METADATA_CSUM`.
    seed: Option<u32>,
    /// Blocks whose newest content is in the journal.
    journal: HashMap<u64, journal::Copy>,
}

/// An inode.
#[derive(Clone)]
pub(crate) struct Inode {
    number: u32,
    at: u64,
    mode: u16,
    size: u64,
    flags: u32,
    block: [u8; 60],
    seed: Option<u32>,
    /// What `INLINE_DATA` holds besides `block`.
    inline: Vec<u8>,
}

impl<'a> Ext4<'a> {
    pub(crate) fn open(mut source: Source<'a>) -> Result<Self, FsError> {
        const AT: u64 = 1024;
        let bytes = source.vec(AT, 1024)?;
        let sb = Bytes::new(&bytes, AT);
        let revision = sb.le32(0x4c)?;
        let dynamic = revision > 0;
        let feature = |at| if dynamic { sb.le32(at) } else { Ok(0) };
        let (compat, incompat, ro_compat) = (feature(0x5c)?, feature(0x60)?, feature(0x64)?);
        if incompat & !INCOMPAT_READ != 0 {
            let unknown = incompat & !INCOMPAT_READ;
            return Err(FsError::Unsupported(format!("ext4 with the features {unknown:#x}")));
        }
        let mut seed = None;
        if ro_compat & RO_METADATA_CSUM != 0 {
            if crc32c(!0, sb.slice(0, 0x3fc)?) != sb.le32(0x3fc)? {
                return Err(sb.damaged(0x3fc, "the checksum of the superblock does not match"));
            }
            seed = Some(match incompat & INCOMPAT_CSUM_SEED {
                0 => crc32c(!0, sb.slice(0x68, 16)?),
                _ => sb.le32(0x270)?,
            });
        }
        let log_block_size = sb.le32(0x18)?;
        if log_block_size > 6 {
            return Err(sb.damaged(0x18, format!("blocks of 2^{log_block_size} KiB")));
        }
        let wide = incompat & INCOMPAT_64BIT != 0;
        let high = if wide { u64::from(sb.le32(0x150)?) << 32 } else { 0 };
        let descriptor_size = if wide { u64::from(sb.le16(0xfe)?) } else { 32 };
        let inode_size = if dynamic { usize::from(sb.le16(0x58)?) } else { 128 };
        let block_size = 1024 << log_block_size;
        let this = Self {
            block_size,
            blocks: u64::from(sb.le32(4)?) | high,
            first_data_block: u64::from(sb.le32(0x14)?),
            blocks_per_group: u64::from(sb.le32(0x20)?),
            inodes: sb.le32(0)?,
            inodes_per_group: sb.le32(0x28)?,
            inode_size,
            descriptor_size,
            first_meta_bg: u64::from(sb.le32(0x104)?),
            compat,
            incompat,
            ro_compat,
            backup_groups: [sb.le32(0x24c)?, sb.le32(0x250)?],
            seed,
            journal: HashMap::new(),
            source,
        };
        let power = descriptor_size.is_power_of_two() && inode_size.is_power_of_two();
        if !power
            || !(32..=block_size.min(1024)).contains(&descriptor_size)
            || !(128..=block_size).contains(&(inode_size as u64))
        {
            let detail = format!("inodes of {inode_size}, descriptors of {descriptor_size} bytes");
            return Err(sb.damaged(0x58, detail));
        }
        if this.inodes_per_group == 0 || this.blocks_per_group == 0 {
            return Err(sb.damaged(0x20, "groups of nothing"));
        }
        let mut this = this;
        let journal = sb.le32(0xe0)?;
        if incompat & INCOMPAT_RECOVER != 0 && journal != 0 {
            this.journal = journal::load(&mut this, journal)?;
        }
        Ok(this)
    }

    /// Reads inside of the file system, by way of the journal.
    fn read(&mut self, at: u64, buf: &mut [u8]) -> Result<(), FsError> {
        let end = at.checked_add(buf.len() as u64);
        let size = self.blocks.saturating_mul(self.block_size);
        if end.is_none_or(|end| end > size) {
            return Err(damaged(at, format!("beyond the file system of {size} bytes")));
        }
        if self.journal.is_empty() {
            return self.source.read_at(at, buf);
        }
        let mut done = 0;
        while done < buf.len() {
            let here = at + done as u64;
            let (block, within) = (here / self.block_size, here % self.block_size);
            let len = small((self.block_size - within).min((buf.len() - done) as u64));
            let part = &mut buf[done..done + len];
            match self.journal.get(&block) {
                Some(copy) => {
                    self.source.read_at(copy.at + within, part)?;
                    copy.restore(small(within), part);
                }
                None => self.source.read_at(here, part)?,
            }
            done += len;
        }
        Ok(())
    }

    /// A whole block, and where it is.
    fn block(&mut self, block: u64) -> Result<(Vec<u8>, u64), FsError> {
        let at = block.saturating_mul(self.block_size);
        let mut data = vec![0; small(self.block_size)];
        self.read(at, &mut data)?;
        Ok((data, at))
    }

    /// Whether a group starts with a copy of the superblock.
    fn has_super(&self, group: u64) -> bool {
        let power = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        if group == 0 {
            true
        } else if self.compat & COMPAT_SPARSE_SUPER2 != 0 {
            self.backup_groups.iter().any(|backup| u64::from(*backup) == group)
        } else {
            self.ro_compat & RO_SPARSE_SUPER == 0 || group == 1 || power(3) || power(5) || power(7)
        }
    }

    /// The first block of a group's part of the inode table.
    fn inode_table(&mut self, group: u32) -> Result<u64, FsError> {
        let per_block = self.block_size / self.descriptor_size;
        let (table, index) = (u64::from(group) / per_block, u64::from(group) % per_block);
        let block = if self.incompat & INCOMPAT_META_BG != 0 && table >= self.first_meta_bg {
            let first = table * per_block;
            let start = self.first_data_block.saturating_add(first * self.blocks_per_group);
            // With blocks of 1 KiB block 0 lies before the superblock, and group 0 has both if it starts there.
            let before = first == 0 && self.block_size == 1024 && self.first_data_block == 0;
            start.saturating_add(u64::from(self.has_super(first)) + u64::from(before))
        } else {
            1024 / self.block_size + 1 + table
        };
        let at = block.saturating_mul(self.block_size).saturating_add(index * self.descriptor_size);
        let mut data = vec![0; small(self.descriptor_size)];
        self.read(at, &mut data)?;
        if let Some(seed) = self.seed {
            let stored = Bytes::new(&data, at).le16(0x1e)?;
            let mut covered = data.clone();
            covered[0x1e..0x20].fill(0);
            let sum = crc32c(crc32c(seed, &group.to_le_bytes()), &covered);
            if sum & 0xffff != u32::from(stored) {
                let detail = format!("the checksum of group {group} does not match");
                return Err(damaged(at + 0x1e, detail));
            }
        }
        let descriptor = Bytes::new(&data, at);
        let high = if data.len() >= 64 { u64::from(descriptor.le32(0x28)?) << 32 } else { 0 };
        Ok(u64::from(descriptor.le32(8)?) | high)
    }

    fn inode(&mut self, number: u32) -> Result<Inode, FsError> {
        let index = number.checked_sub(1).filter(|_| number <= self.inodes);
        let index = index.ok_or_else(|| damaged(1024, format!("there is no inode {number}")))?;
        let (group, index) = (index / self.inodes_per_group, index % self.inodes_per_group);
        let table = self.inode_table(group)?;
        let at = table
            .saturating_mul(self.block_size)
            .saturating_add(u64::from(index) * self.inode_size as u64);
        let mut data = vec![0; self.inode_size];
        self.read(at, &mut data)?;
        let inode = Bytes::new(&data, at);
        let mode = inode.le16(0)?;
        let flags = inode.le32(0x20)?;
        let extra = if data.len() > 128 { usize::from(inode.le16(0x80)?) } else { 0 };
        if extra % 4 != 0 || 128 + extra > data.len() {
            return Err(inode.damaged(0x80, format!("inode {number} with {extra} further bytes")));
        }
        let mut seed = None;
        if let Some(all) = self.seed {
            let own = crc32c(crc32c(all, &number.to_le_bytes()), inode.slice(0x64, 4)?);
            let mut covered = data.clone();
            covered[0x7c..0x7e].fill(0);
            let (mut stored, mut mask) = (u32::from(inode.le16(0x7c)?), 0xffff);
            if extra >= 4 {
                covered[0x82..0x84].fill(0);
                stored |= u32::from(inode.le16(0x82)?) << 16;
                mask = !0;
            }
            if crc32c(own, &covered) & mask != stored {
                let detail = format!("the checksum of inode {number} does not match");
                return Err(inode.damaged(0x7c, detail));
            }
            seed = Some(own);
        }
        let low = u64::from(inode.le32(4)?);
        // Of other files these bits meant something else once.
        let high = if matches!(mode >> 12, 8 | 4) { u64::from(inode.le32(0x6c)?) << 32 } else { 0 };
        let mut inline = Vec::new();
        if flags & FLAG_INLINE != 0 {
            inline = inline_rest(&inode, 128 + extra)?;
        }
        let block = inode.array(0x28)?;
        Ok(Inode { number, at, mode, size: low | high, flags, block, seed, inline })
    }

    /// Where byte `offset` of a file is, and what follows it on end.
    fn run(&mut self, inode: &Inode, offset: u64) -> Result<Run, FsError> {
        if inode.flags & FLAG_ENCRYPT != 0 {
            return Err(FsError::Unsupported("encryption of files".to_owned()));
        }
        let (block, within) = (offset / self.block_size, offset % self.block_size);
        let block = u32::try_from(block)
            .map_err(|_| damaged(inode.at, format!("a file with a block {block}")))?;
        let (start, count) = match inode.flags & FLAG_EXTENTS {
            0 => self.mapped(inode, block)?,
            _ => self.extent(inode, block)?,
        };
        let len = u64::from(count) * self.block_size - within;
        Ok(match start {
            Some(start) => Run::Data { at: start.saturating_mul(self.block_size) + within, len },
            None => Run::Hole { len },
        })
    }

    /// The first block and the number of blocks that continue a file at `block`, by its extents.
    fn extent(&mut self, inode: &Inode, block: u32) -> Result<(Option<u64>, u32), FsError> {
        let mut node = inode.block.to_vec();
        let mut at = inode.at + 0x28;
        // The first block beyond the part of the file that the node describes.
        let mut end = u32::MAX;
        let mut expected = None;
        loop {
            let bytes = Bytes::new(&node, at);
            let (magic, count, depth) =
                (bytes.le16(0)?, usize::from(bytes.le16(2)?), bytes.le16(6)?);
            if magic != EXTENT_MAGIC || depth > 5 || expected.is_some_and(|level| level != depth) {
                let detail =
                    format!("no extents of inode {}: {magic:#x}, depth {depth}", inode.number);
                return Err(bytes.damaged(0, detail));
            }
            let entries = bytes.part(12, count * 12)?;
            // The last entry that starts at or before the block.
            let mut found = None;
            for entry in (0..count * 12).step_by(12) {
                let first = entries.le32(entry)?;
                if first > block {
                    end = end.min(first);
                    break;
                }
                found = Some(entries.part(entry, 12)?);
            }
            let Some(entry) = found else { return Ok((None, end - block)) };
            let within = block - entry.le32(0)?;
            if depth == 0 {
                let len = entry.le16(4)?;
                let written = len <= EXTENT_WRITTEN;
                let len = u32::from(if written { len } else { len - EXTENT_WRITTEN });
                if within >= len {
                    return Ok((None, end - block));
                }
                let start = u64::from(entry.le16(6)?) << 32 | u64::from(entry.le32(8)?);
                if start == 0 {
                    return Err(entry.damaged(6, "an extent at block 0"));
                }
                let start = written.then_some(start + u64::from(within));
                return Ok((start, (len - within).min(end - block)));
            }
            let child = u64::from(entry.le16(8)?) << 32 | u64::from(entry.le32(4)?);
            expected = Some(depth - 1);
            (node, at) = self.block(child)?;
            if let Some(seed) = inode.seed {
                let bytes = Bytes::new(&node, at);
                let tail = 12 + usize::from(bytes.le16(4)?) * 12;
                if crc32c(seed, bytes.slice(0, tail)?) != bytes.le32(tail)? {
                    return Err(bytes.damaged(tail, "the checksum of extents does not match"));
                }
            }
        }
    }

    /// The same by the pointers of ext2 and ext3.
    fn mapped(&mut self, inode: &Inode, block: u32) -> Result<(Option<u64>, u32), FsError> {
        let per_block = self.block_size / 4;
        let mut index = u64::from(block);
        let (mut pointers, mut at) = (inode.block[..48].to_vec(), inode.at + 0x28);
        let mut levels = 0;
        if index >= 12 {
            index -= 12;
            levels = 1;
            let mut span = per_block;
            while index >= span {
                index -= span;
                span = span.saturating_mul(per_block);
                levels += 1;
                if levels > 3 {
                    return Err(damaged(inode.at, format!("a file with a block {block}")));
                }
            }
            pointers = inode.block[44 + 4 * levels..][..4].to_vec();
            at += 44 + 4 * levels as u64;
        }
        let mut span = per_block.saturating_pow(u32::try_from(levels).expect("at most 3"));
        loop {
            let bytes = Bytes::new(&pointers, at);
            let slot = small(index / span);
            let start = bytes.le32(slot * 4)?;
            index %= span;
            if start == 0 {
                return Ok((None, u32::try_from(span - index).unwrap_or(u32::MAX)));
            }
            if span == 1 {
                let rest = (slot + 1) * 4..bytes.len();
                let run = (1..).zip(rest.step_by(4)).take_while(|(ahead, next)| {
                    bytes.le32(*next).is_ok_and(|next| Some(next) == start.checked_add(*ahead))
                });
                let count = 1 + u32::try_from(run.count()).expect("fewer than pointers in a block");
                return Ok((Some(u64::from(start)), count));
            }
            (pointers, at) = self.block(u64::from(start))?;
            span /= per_block;
        }
    }

    /// Entries of a directory, in a block or in an inode. `false` if the visitor has enough.
    fn entries(&self, block: &Bytes<'_>, visit: &mut Visit<'_, u32>) -> Result<bool, FsError> {
        let mut at = 0;
        while at + 8 <= block.len() {
            let inode = block.le32(at)?;
            let mut len = usize::from(block.le16(at + 4)?);
            if block.len() > 0xfffc {
                // Lengths of 64 KiB do not fit: the two low bits are the high ones.
                len = match len {
                    0 | 0xffff => block.len(),
                    len => (len & 0xfffc) | (len & 3) << 16,
                };
            }
            let typed = self.incompat & INCOMPAT_FILETYPE != 0;
            let name =
                usize::from(if typed { block.u8(at + 6)?.into() } else { block.le16(at + 6)? });
            if len < 8 || len % 4 != 0 || len > block.len() - at || (inode != 0 && name + 8 > len) {
                let detail = format!("a directory entry of {len} bytes, its name of {name}");
                return Err(block.damaged(at + 4, detail));
            }
            if inode != 0 {
                let kind = match block.u8(at + 7)? {
                    _ if !typed => None,
                    0 => None,
                    1 => Some(EntryKind::File),
                    2 => Some(EntryKind::Directory),
                    7 => Some(EntryKind::Link),
                    _ => Some(EntryKind::Other),
                };
                if !visit(block.slice(at + 8, name)?, inode, kind) {
                    return Ok(false);
                }
            }
            at += len;
        }
        Ok(true)
    }
}

/// The rest of inline data: the value of the attribute `system.data` in the inode. Attributes start with
/// `0xea020000` and entries follow: length of name, index of prefix (7 is `system.`), offset of the value from the
/// first entry, 4 bytes, size of the value, 4 bytes, name.
fn inline_rest(inode: &Bytes<'_>, at: usize) -> Result<Vec<u8>, FsError> {
    if inode.len() < at + 8 || inode.le32(at)? != 0xea02_0000 {
        return Ok(Vec::new());
    }
    let first = at + 4;
    let mut entry = first;
    while entry + 4 <= inode.len() && inode.le32(entry)? != 0 {
        let (name, index) = (usize::from(inode.u8(entry)?), inode.u8(entry + 1)?);
        if index == 7 && inode.slice(entry + 16, name)? == b"data" {
            let (offset, size) = (inode.le16(entry + 2)?, inode.le32(entry + 8)?);
            return Ok(inode.slice(first + usize::from(offset), size as usize)?.to_vec());
        }
        entry += 16 + name.next_multiple_of(4);
    }
    Ok(Vec::new())
}

impl Nodes for Ext4<'_> {
    type Id = u32;
    type Node = Inode;

    fn name(&self) -> &'static str {
        "ext4"
    }

    fn root(&mut self) -> Result<Inode, FsError> {
        self.inode(ROOT)
    }

    fn node(&mut self, id: u32) -> Result<Inode, FsError> {
        self.inode(id)
    }

    fn kind(&self, node: &Inode) -> EntryKind {
        EntryKind::of_mode(node.mode)
    }

    fn size(&self, node: &Inode) -> u64 {
        node.size
    }

    fn scan(&mut self, directory: &Inode, visit: &mut Visit<'_, u32>) -> Result<(), FsError> {
        if directory.flags & FLAG_INLINE != 0 {
            // The parent's inode comes first, then entries.
            let at = directory.at + 0x28;
            let entries = directory.block[4..].to_vec();
            if self.entries(&Bytes::new(&entries, at + 4), visit)? {
                self.entries(&Bytes::new(&directory.inline, at), visit)?;
            }
            return Ok(());
        }
        if directory.size > MAX_DIRECTORY {
            return Err(FsError::Limit { what: "bytes in a directory", limit: MAX_DIRECTORY });
        }
        for block in 0..directory.size.div_ceil(self.block_size) {
            let Run::Data { at, .. } = self.run(directory, block * self.block_size)? else {
                return Err(damaged(directory.at, "a directory with a hole"));
            };
            let mut data = vec![0; small(self.block_size)];
            self.read(at, &mut data)?;
            let bytes = Bytes::new(&data, at);
            // Blocks of the index have their checksum elsewhere; leaves have it in a last unused entry.
            let tail = data.len() - 12;
            if let Some(seed) = directory.seed
                && bytes.slice(tail, 8)? == [0, 0, 0, 0, 12, 0, 0, 0xde]
                && crc32c(seed, bytes.slice(0, tail)?) != bytes.le32(tail + 8)?
            {
                return Err(bytes.damaged(tail + 8, "the checksum of a directory does not match"));
            }
            if !self.entries(&bytes, visit)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn target(&mut self, link: &Inode) -> Result<Vec<u8>, FsError> {
        if link.size > MAX_TARGET {
            return Err(damaged(link.at + 4, format!("a link of {} bytes", link.size)));
        }
        let len = small(link.size);
        if link.size < 60 && link.flags & (FLAG_EXTENTS | FLAG_INLINE | FLAG_ENCRYPT) == 0 {
            return Ok(link.block[..len].to_vec());
        }
        let mut target = vec![0; len];
        self.read_at(link, 0, &mut target)?;
        Ok(target)
    }

    fn read_at(&mut self, file: &Inode, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        if file.flags & FLAG_INLINE != 0 {
            let all: Vec<u8> = file.block.iter().chain(&file.inline).copied().collect();
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            buf.copy_from_slice(Bytes::new(&all, file.at).slice(start, buf.len())?);
            return Ok(());
        }
        read_runs(self, offset, buf, |fs, at| fs.run(file, at), Self::read)
    }
}
