//! Squashfs 4.0, with blocks in gzip, xz, zstd, lz4, lzma and lzo.
//!
//! The format is described in [The Squashfs Binary Format](https://dr-emann.github.io/squashfs/squashfs.html), numbers are
//! little-endian. The superblock: `hsqs` at 0, block size at 12, number of fragments at 16, compressor at 20, root inode at
//! 32, bytes in use at 40, inode table at 64, directory table at 72, fragment table at 80.
//!
//! The tables are runs of metadata blocks: two bytes of length (bit 15: stored as it is), then up to 8 KiB, compressed. A
//! place in a table is the offset of a metadata block and an offset in what comes out of it; structures cross from one
//! block into the next. A file is a run of blocks, their sizes in its inode (bit 24: stored as it is; 0: all zeros); its
//! end may be a part of a fragment, a block that holds ends of several files. A directory is runs of entries whose
//! inodes are in the same metadata block.

use std::collections::HashMap;
use std::rc::Rc;

use super::paths::{MAX_DIRECTORY, MAX_TARGET, Nodes, Visit};
use super::{EntryKind, FsError, decode};
use crate::disk::source::{Bytes, Source, damaged, small};

const METADATA: usize = 8192;

/// Metadata blocks kept decompressed: 1 MiB.
const MAX_METADATA: usize = 128;

/// Blocks of one file: 128 GiB of the usual size.
const MAX_BLOCKS: u64 = 1 << 20;

const STORED: u32 = 1 << 24;
const NO_FRAGMENT: u32 = u32::MAX;

#[derive(Clone, Copy)]
enum Compressor {
    Gzip,
    Lzma,
    Lzo,
    Xz,
    Lz4,
    Zstd,
}

impl Compressor {
    fn decode(self, packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
        match self {
            Self::Gzip => decode::zlib(packed, limit),
            Self::Lzma => decode::lzma(packed, limit),
            Self::Lzo => decode::lzo(packed, limit),
            Self::Xz => decode::xz(packed, limit),
            Self::Lz4 => decode::lz4(packed, limit),
            Self::Zstd => decode::zstd(packed, limit),
        }
    }
}

/// A squashfs file system.
pub(crate) struct Squashfs<'a> {
    source: Source<'a>,
    compressor: Compressor,
    block_size: u64,
    root: u64,
    inodes: u64,
    directories: u64,
    fragment_table: u64,
    fragments: u32,
    /// Metadata blocks by their offset: what came out, and where the next one is.
    metadata: HashMap<u64, (Rc<Vec<u8>>, u64)>,
    /// The blocks of files decompressed last: offset, data.
    blocks: Vec<(u64, Rc<Vec<u8>>)>,
}

/// A place in a table of metadata.
struct Cursor {
    block: u64,
    within: usize,
}

#[derive(Clone)]
enum Content {
    File {
        /// Offset and size of each block.
        blocks: Rc<Vec<(u64, u32)>>,
        /// Fragment and offset in it.
        fragment: Option<(u32, u32)>,
    },
    Directory {
        block: u64,
        within: u16,
    },
    Link(Rc<Vec<u8>>),
    Other,
}

/// An inode.
#[derive(Clone)]
pub(crate) struct Inode {
    /// Where its metadata block is.
    at: u64,
    size: u64,
    content: Content,
}

impl<'a> Squashfs<'a> {
    pub(crate) fn open(mut source: Source<'a>) -> Result<Self, FsError> {
        let data = source.vec(0, 96)?;
        let sb = Bytes::new(&data, 0);
        let version = (sb.le16(28)?, sb.le16(30)?);
        if version != (4, 0) {
            let (major, minor) = version;
            return Err(FsError::Unsupported(format!("squashfs {major}.{minor}")));
        }
        let (block_size, log) = (sb.le32(12)?, sb.le16(22)?);
        if !(12..=20).contains(&log) || block_size != 1 << log {
            return Err(sb.damaged(12, format!("blocks of {block_size} bytes, 2^{log}")));
        }
        let compressor = match sb.le16(20)? {
            1 => Compressor::Gzip,
            2 => Compressor::Lzma,
            3 => Compressor::Lzo,
            4 => Compressor::Xz,
            5 => Compressor::Lz4,
            6 => Compressor::Zstd,
            other => return Err(FsError::Unsupported(format!("squashfs compressor {other}"))),
        };
        Ok(Self {
            compressor,
            block_size: block_size.into(),
            root: sb.le64(32)?,
            inodes: sb.le64(64)?,
            directories: sb.le64(72)?,
            fragment_table: sb.le64(80)?,
            fragments: sb.le32(16)?,
            metadata: HashMap::new(),
            blocks: Vec::new(),
            source,
        })
    }

    /// What comes out of the metadata block at an offset, and where the next one is.
    fn metadata(&mut self, at: u64) -> Result<(Rc<Vec<u8>>, u64), FsError> {
        if let Some(known) = self.metadata.get(&at) {
            return Ok(known.clone());
        }
        let mut header = [0; 2];
        self.source.read_at(at, &mut header)?;
        let header = u16::from_le_bytes(header);
        let len = usize::from(header & 0x7fff);
        if len == 0 || len > METADATA {
            return Err(damaged(at, format!("a metadata block of {len} bytes")));
        }
        let packed = self.source.vec(at + 2, len)?;
        let data = match header & 0x8000 {
            0 => self.compressor.decode(&packed, METADATA),
            _ => Ok(packed),
        };
        let data = data.map_err(|detail| damaged(at, format!("a metadata block: {detail}")))?;
        if self.metadata.len() == MAX_METADATA {
            self.metadata.clear();
        }
        let known = (Rc::new(data), at + 2 + len as u64);
        self.metadata.insert(at, known.clone());
        Ok(known)
    }

    /// The next `len` bytes of a table.
    fn take(&mut self, cursor: &mut Cursor, len: usize) -> Result<Vec<u8>, FsError> {
        let mut taken = Vec::with_capacity(len);
        loop {
            let (block, next) = self.metadata(cursor.block)?;
            let Some(rest) = block.get(cursor.within..) else {
                let detail = format!("byte {} of a block of {}", cursor.within, block.len());
                return Err(damaged(cursor.block, detail));
            };
            let part = &rest[..rest.len().min(len - taken.len())];
            taken.extend_from_slice(part);
            cursor.within += part.len();
            if taken.len() == len {
                return Ok(taken);
            }
            if block.len() != METADATA {
                return Err(damaged(cursor.block, "a table ends within a structure"));
            }
            (cursor.block, cursor.within) = (next, 0);
        }
    }

    fn inode(&mut self, reference: u64) -> Result<Inode, FsError> {
        let at = self.inodes.saturating_add(reference >> 16);
        let mut cursor = Cursor { block: at, within: small(reference & 0xffff) };
        let header = self.take(&mut cursor, 16)?;
        let kind = Bytes::new(&header, at).le16(0)?;
        let len = match kind {
            1 | 2 => 16,
            3 | 10 => 8,
            8 => 24,
            9 => 40,
            4..=7 | 11..=14 => return Ok(Inode { at, size: 0, content: Content::Other }),
            _ => return Err(damaged(at, format!("an inode of type {kind}"))),
        };
        let body = self.take(&mut cursor, len)?;
        let body = Bytes::new(&body, at);
        // Directories count two entries and a byte that are not there.
        let directory = |size: u32| u64::from(size.saturating_sub(3));
        let (size, content) = match kind {
            1 => {
                let (block, within) = (body.le32(0)?.into(), body.le16(10)?);
                (directory(body.le16(8)?.into()), Content::Directory { block, within })
            }
            8 => {
                let (block, within) = (body.le32(8)?.into(), body.le16(18)?);
                (directory(body.le32(4)?), Content::Directory { block, within })
            }
            3 | 10 => {
                let size = u64::from(body.le32(4)?);
                if size > MAX_TARGET {
                    return Err(damaged(at, format!("a link of {size} bytes")));
                }
                (size, Content::Link(Rc::new(self.take(&mut cursor, small(size))?)))
            }
            _ => {
                let (start, fragment, offset, size) = if kind == 2 {
                    (body.le32(0)?.into(), body.le32(4)?, body.le32(8)?, body.le32(12)?.into())
                } else {
                    (body.le64(0)?, body.le32(28)?, body.le32(32)?, body.le64(8)?)
                };
                let fragment = (fragment != NO_FRAGMENT).then_some((fragment, offset));
                let blocks = self.blocks(&mut cursor, start, size, fragment.is_some())?;
                (size, Content::File { blocks: Rc::new(blocks), fragment })
            }
        };
        Ok(Inode { at, size, content })
    }

    /// The blocks of a file.
    fn blocks(
        &mut self,
        cursor: &mut Cursor,
        start: u64,
        size: u64,
        fragment: bool,
    ) -> Result<Vec<(u64, u32)>, FsError> {
        let whole = size / self.block_size;
        let count = whole + u64::from(!fragment && !size.is_multiple_of(self.block_size));
        if count > MAX_BLOCKS {
            return Err(FsError::Limit { what: "blocks of a file", limit: MAX_BLOCKS });
        }
        let mut blocks = Vec::new();
        let mut at = start;
        let mut left = small(count);
        while left > 0 {
            let some = left.min(METADATA / 4);
            for size in self.take(cursor, some * 4)?.chunks_exact(4) {
                let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
                blocks.push((at, size));
                at = at.saturating_add((size & (STORED - 1)).into());
            }
            left -= some;
        }
        Ok(blocks)
    }

    /// A block of data of at most `most` bytes.
    fn block(&mut self, at: u64, size: u32) -> Result<Rc<Vec<u8>>, FsError> {
        if let Some((_, data)) = self.blocks.iter().find(|(known, _)| *known == at) {
            return Ok(data.clone());
        }
        let len = size & (STORED - 1);
        if u64::from(len) > self.block_size || size >= STORED << 1 {
            return Err(damaged(at, format!("a block of size {size:#x}")));
        }
        let packed = self.source.vec(at, len as usize)?;
        let data = match size & STORED {
            0 => self.compressor.decode(&packed, small(self.block_size)),
            _ => Ok(packed),
        };
        let data = Rc::new(data.map_err(|detail| damaged(at, format!("a block: {detail}")))?);
        if self.blocks.len() == 4 {
            self.blocks.remove(0);
        }
        self.blocks.push((at, data.clone()));
        Ok(data)
    }

    /// A fragment: the table is a list of places of metadata blocks with 512 entries of 16 bytes, start and size.
    fn fragment(&mut self, number: u32) -> Result<Rc<Vec<u8>>, FsError> {
        if number >= self.fragments {
            let detail = format!("fragment {number} of {}", self.fragments);
            return Err(damaged(self.fragment_table, detail));
        }
        let mut place = [0; 8];
        let at = self.fragment_table.saturating_add(u64::from(number / 512) * 8);
        self.source.read_at(at, &mut place)?;
        let (block, within) = (u64::from_le_bytes(place), (number % 512 * 16) as usize);
        let entry = self.take(&mut Cursor { block, within }, 16)?;
        let entry = Bytes::new(&entry, block);
        self.block(entry.le64(0)?, entry.le32(8)?)
    }
}

impl Nodes for Squashfs<'_> {
    type Id = u64;
    type Node = Inode;

    fn name(&self) -> &'static str {
        "squashfs"
    }

    fn root(&mut self) -> Result<Inode, FsError> {
        self.inode(self.root)
    }

    fn node(&mut self, id: u64) -> Result<Inode, FsError> {
        self.inode(id)
    }

    fn kind(&self, node: &Inode) -> EntryKind {
        match node.content {
            Content::File { .. } => EntryKind::File,
            Content::Directory { .. } => EntryKind::Directory,
            Content::Link(_) => EntryKind::Link,
            Content::Other => EntryKind::Other,
        }
    }

    fn size(&self, node: &Inode) -> u64 {
        node.size
    }

    fn scan(&mut self, directory: &Inode, visit: &mut Visit<'_, u64>) -> Result<(), FsError> {
        let Content::Directory { block, within } = directory.content else {
            return Err(FsError::Missing);
        };
        if directory.size > MAX_DIRECTORY {
            return Err(FsError::Limit { what: "bytes in a directory", limit: MAX_DIRECTORY });
        }
        let block = self.directories.saturating_add(block);
        let mut cursor = Cursor { block, within: within.into() };
        let mut left = directory.size;
        while left > 0 {
            let at = cursor.block;
            let header = self.take(&mut cursor, 12)?;
            let header = Bytes::new(&header, at);
            let (count, inodes) = (header.le32(0)?, u64::from(header.le32(4)?));
            if count > 255 {
                return Err(damaged(at, format!("{count} entries of a directory in a run")));
            }
            left = left.saturating_sub(12);
            for _ in 0..=count {
                let entry = self.take(&mut cursor, 8)?;
                let entry = Bytes::new(&entry, at);
                let (offset, kind, len) = (entry.le16(0)?, entry.le16(4)?, entry.le16(6)?);
                if len > 255 {
                    return Err(damaged(at, format!("a name of {len} bytes")));
                }
                let name = self.take(&mut cursor, usize::from(len) + 1)?;
                let kind = match kind {
                    1 => EntryKind::Directory,
                    2 => EntryKind::File,
                    3 => EntryKind::Link,
                    _ => EntryKind::Other,
                };
                left = left.saturating_sub(9 + u64::from(len));
                if !visit(&name, inodes << 16 | u64::from(offset), Some(kind)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn target(&mut self, link: &Inode) -> Result<Vec<u8>, FsError> {
        match &link.content {
            Content::Link(target) => Ok(target.to_vec()),
            _ => Err(FsError::Missing),
        }
    }

    fn read_at(&mut self, file: &Inode, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        let Content::File { blocks, fragment } = &file.content else {
            return Err(FsError::Missing);
        };
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let (index, within) = (at / self.block_size, small(at % self.block_size));
            // How much of the file is in this block.
            let len = small((file.size - index * self.block_size).min(self.block_size));
            let part = (len - within).min(buf.len() - done);
            let target = &mut buf[done..done + part];
            done += part;
            let (data, start, place) = match (blocks.get(small(index)), fragment) {
                (Some((_, 0)), _) => {
                    target.fill(0);
                    continue;
                }
                (Some((at, size)), _) => {
                    let data = self.block(*at, *size)?;
                    if data.len() != len {
                        let detail = format!("a block of {} bytes for {len}", data.len());
                        return Err(damaged(*at, detail));
                    }
                    (data, 0, *at)
                }
                (None, Some((number, start))) => {
                    (self.fragment(*number)?, *start as usize, self.fragment_table)
                }
                (None, None) => return Err(damaged(file.at, "a file without its blocks")),
            };
            let found = data.get(start.saturating_add(within)..).and_then(|data| data.get(..part));
            let found = found.ok_or_else(|| {
                damaged(place, format!("{len} bytes at {start} of a fragment of {}", data.len()))
            })?;
            target.copy_from_slice(found);
        }
        Ok(())
    }
}
