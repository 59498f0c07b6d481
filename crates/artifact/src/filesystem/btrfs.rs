//! btrfs on one device.
//!
//! The [format](https://btrfs.readthedocs.io/en/latest/dev/On-disk-format.html) is little-endian. The superblock is at 64 KiB.
//! All addresses are logical; the tree of chunks, whose first part is in the superblock, says where they are on which
//! devices. Everything else is in B-trees of nodes: 101 bytes of header (checksum at 0, own address at 48, number of items
//! at 96, level at 100), then in inner nodes key, address and generation of each child, in leaves key, offset and size of
//! each item. A key is an object, a type and an offset.
//!
//! The tree of roots names the root of each subvolume's tree. In those: inodes (type 1), names by hash (84) and in order
//! (96), which lead to inodes or to other subvolumes, and parts of files (108): inline, or a part of an extent that may be
//! compressed by zlib, LZO or zstd, or preallocated.
//!
//! The root directory here is that of the top-level subvolume, in which all others are directories; a
//! system's own root is mostly one of those, see [`Nodes::roots`]. The default subvolume comes first.
//!
//! Checked: checksums of superblock, nodes and data if they are CRC-32C; the second copy of a node is tried. Not done:
//! the log of what was synced last is not replayed. Not read: striped profiles, several devices, zones.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::paths::{MAX_TARGET, Nodes, Visit};
use super::{EntryKind, FsError, decode};
use crate::disk::source::{Bytes, Source, crc32c, damaged, small};

const SUPERBLOCK: u64 = 0x1_0000;

/// Up to `RAID1C34`, and `SIMPLE_QUOTA`; not zones, the second extent tree and stripe trees.
const INCOMPAT_READ: u64 = 0xfff | 0x1_0000;

const TOP_LEVEL: u64 = 5;
const CSUM_TREE: u64 = 7;
/// The root directory of every subvolume.
const ROOT_DIRECTORY: u64 = 256;
const EXTENT_CSUM_OBJECT: u64 = 10_u64.wrapping_neg();

const INODE_ITEM: u8 = 1;
const INODE_REF: u8 = 12;
const DIR_ITEM: u8 = 84;
const DIR_INDEX: u8 = 96;
const EXTENT_DATA: u8 = 108;
const EXTENT_CSUM: u8 = 128;
const ROOT_ITEM: u8 = 132;
const ROOT_BACKREF: u8 = 144;
const ROOT_REF: u8 = 156;
const CHUNK_ITEM: u8 = 228;

/// Profiles that keep a whole copy in one stripe: DUP and the RAID1 kinds. None of the bits is a single copy.
const MIRRORED: u64 = 0x10 | 0x20 | 0x200 | 0x400;
const PROFILES: u64 = MIRRORED | 0x8 | 0x40 | 0x80 | 0x100;

const HEADER: usize = 101;
const MAX_LEVEL: u8 = 7;

/// Nodes kept, of at most 64 KiB: 4 MiB.
const MAX_KEPT: usize = 64;

/// Nodes visited by one search.
const MAX_NODES: u32 = 1 << 16;

const MAX_CHUNKS: usize = 1 << 17;

/// The most that comes out of a compressed extent.
const MAX_COMPRESSED: u64 = 128 << 10;

/// Subvolumes that are named as roots.
const MAX_ROOTS: usize = 256;

/// Directories above one another on the way to a subvolume.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    object: u64,
    kind: u8,
    offset: u64,
}

const fn key(object: u64, kind: u8, offset: u64) -> Key {
    Key { object, kind, offset }
}

impl Key {
    fn parse(bytes: &Bytes<'_>, at: usize) -> Result<Self, FsError> {
        Ok(key(bytes.le64(at)?, bytes.u8(at + 8)?, bytes.le64(at + 9)?))
    }
}

struct Chunk {
    len: u64,
    /// Where its copies are on this device.
    copies: Vec<u64>,
    striped: bool,
}

/// The root of a tree.
#[derive(Clone, Copy)]
struct Tree {
    address: u64,
    level: u8,
}

/// A node that was checked, and where it is.
#[derive(Clone)]
struct Block {
    data: Rc<Vec<u8>>,
    at: u64,
}

/// A btrfs file system.
pub(crate) struct Btrfs<'a> {
    source: Source<'a>,
    node_size: usize,
    sector: u64,
    /// Whether checksums are CRC-32C.
    crc: bool,
    roots: Tree,
    directory_of_roots: u64,
    chunks: BTreeMap<u64, Chunk>,
    kept: HashMap<u64, Block>,
    /// The extent decompressed last, by address.
    extent: Option<(u64, Rc<Vec<u8>>)>,
    checksums: Option<Tree>,
}

/// What a directory names.
#[derive(Clone, Copy)]
pub(crate) enum Id {
    Inode { subvolume: u64, inode: u64 },
    Subvolume { parent: u64, id: u64 },
}

/// An inode.
#[derive(Clone, Copy)]
pub(crate) struct Inode {
    subvolume: u64,
    tree: Tree,
    number: u64,
    mode: u32,
    size: u64,
    /// Where in a snapshot another subvolume was, which is not in the snapshot.
    empty: bool,
    at: u64,
}

/// An item: its key, its data, and where that is.
struct Item {
    key: Key,
    data: Vec<u8>,
    at: u64,
}

impl Item {
    fn bytes(&self) -> Bytes<'_> {
        Bytes::new(&self.data, self.at)
    }
}

/// What a search calls for each item; it answers whether it wants more.
type Found<'v> = dyn FnMut(Key, &Bytes<'_>) -> Result<bool, FsError> + 'v;

impl<'a> Btrfs<'a> {
    pub(crate) fn open(mut source: Source<'a>) -> Result<Self, FsError> {
        let data = source.vec(SUPERBLOCK, 4096)?;
        let sb = Bytes::new(&data, SUPERBLOCK);
        let crc = sb.le16(0xc4)? == 0;
        if crc && !crc32c(!0, sb.slice(32, 4096 - 32)?) != sb.le32(0)? {
            return Err(sb.damaged(0, "the checksum of the superblock does not match"));
        }
        let features = sb.le64(0xbc)?;
        if features & !INCOMPAT_READ != 0 {
            return Err(FsError::Unsupported(format!("btrfs with the features {features:#x}")));
        }
        let (sector, node_size) = (sb.le32(0x90)?, sb.le32(0x94)? as usize);
        if !(4096..=65536).contains(&node_size)
            || !node_size.is_power_of_two()
            || !(512..=65536).contains(&sector)
            || !sector.is_power_of_two()
        {
            return Err(
                sb.damaged(0x90, format!("nodes of {node_size}, sectors of {sector} bytes"))
            );
        }
        let device = sb.le64(0xc9)?;
        let mut this = Self {
            source,
            node_size,
            sector: sector.into(),
            crc,
            roots: Tree { address: sb.le64(0x50)?, level: sb.u8(0xc6)? },
            directory_of_roots: sb.le64(0x80)?,
            chunks: BTreeMap::new(),
            kept: HashMap::new(),
            extent: None,
            checksums: None,
        };
        let len = sb.le32(0xa0)? as usize;
        if len > 2048 {
            return Err(sb.damaged(0xa0, format!("{len} bytes of chunks in the superblock")));
        }
        let array = sb.part(0x32b, len)?;
        let mut at = 0;
        while at < len {
            let key = Key::parse(&array, at)?;
            let item = array.part(at + 17, len - at - 17)?;
            let size = 48 + 32 * usize::from(item.le16(44)?);
            this.chunks.insert(key.offset, chunk(&item, device)?);
            at += 17 + size;
        }
        let tree = Tree { address: sb.le64(0x58)?, level: sb.u8(0xc7)? };
        let mut chunks = Vec::new();
        this.search(tree, key(0, 0, 0), &mut |key, item| {
            if key.kind == CHUNK_ITEM {
                chunks.push((key.offset, chunk(item, device)?));
            }
            if chunks.len() > MAX_CHUNKS {
                return Err(FsError::Limit { what: "chunks", limit: MAX_CHUNKS as u64 });
            }
            Ok(true)
        })?;
        this.chunks.extend(chunks);
        // Without data there may be no checksums.
        this.checksums = if crc { this.subvolume(CSUM_TREE)? } else { None };
        Ok(this)
    }

    /// Reads one copy of logical bytes. `None` if there are not so many copies.
    fn read_copy(
        &mut self,
        address: u64,
        copy: usize,
        buf: &mut [u8],
    ) -> Result<Option<u64>, FsError> {
        let (mut done, mut first) = (0, None);
        while done < buf.len() {
            let here = address.saturating_add(done as u64);
            let chunk = self.chunks.range(..=here).next_back();
            let chunk = chunk.filter(|(start, chunk)| here - **start < chunk.len);
            let Some((start, chunk)) = chunk else {
                return Err(damaged(SUPERBLOCK, format!("no chunk holds the address {here}")));
            };
            if chunk.striped {
                return Err(FsError::Unsupported("a striped profile of btrfs".to_owned()));
            }
            let within = here - start;
            let Some(place) = chunk.copies.get(copy) else {
                if copy > 0 {
                    return Ok(None);
                }
                return Err(FsError::Unsupported("btrfs on several devices".to_owned()));
            };
            let at = place.saturating_add(within);
            let len =
                usize::try_from(chunk.len - within).unwrap_or(usize::MAX).min(buf.len() - done);
            self.source.read_at(at, &mut buf[done..done + len])?;
            first = first.or(Some(at));
            done += len;
        }
        Ok(Some(first.unwrap_or(0)))
    }

    /// A node of a tree, from the first copy that is sound.
    fn node(&mut self, address: u64, level: u8) -> Result<Block, FsError> {
        if let Some(block) = self.kept.get(&address) {
            let found = block.data[100];
            if found != level {
                return Err(damaged(block.at + 100, format!("level {found} for {level}")));
            }
            return Ok(block.clone());
        }
        let mut data = vec![0; self.node_size];
        let mut error = None;
        for copy in 0.. {
            let at = match self.read_copy(address, copy, &mut data) {
                Ok(Some(at)) => at,
                Ok(None) => break,
                Err(other) => {
                    error = error.or(Some(other));
                    break;
                }
            };
            match self.sound(&Bytes::new(&data, at), address, level) {
                Ok(()) => {
                    if self.kept.len() == MAX_KEPT {
                        self.kept.clear();
                    }
                    let block = Block { data: Rc::new(data), at };
                    self.kept.insert(address, block.clone());
                    return Ok(block);
                }
                Err(other) => error = error.or(Some(other)),
            }
        }
        Err(error.unwrap_or_else(|| damaged(SUPERBLOCK, format!("no copy of node {address}"))))
    }

    fn sound(&self, node: &Bytes<'_>, address: u64, level: u8) -> Result<(), FsError> {
        if self.crc && !crc32c(!0, node.slice(32, node.len() - 32)?) != node.le32(0)? {
            return Err(node.damaged(0, format!("the checksum of node {address} does not match")));
        }
        let (own, found, count) = (node.le64(48)?, node.u8(100)?, node.le32(96)? as usize);
        let width = if level == 0 { 25 } else { 33 };
        if own != address || found != level || level > MAX_LEVEL {
            let detail = format!("node {own} of level {found} for node {address} of level {level}");
            return Err(node.damaged(48, detail));
        }
        if count > (node.len() - HEADER) / width {
            return Err(node.damaged(96, format!("{count} items in a node")));
        }
        Ok(())
    }

    /// All items from a key on, until the visitor has enough.
    fn search(&mut self, tree: Tree, from: Key, visit: &mut Found<'_>) -> Result<(), FsError> {
        let mut budget = MAX_NODES;
        self.walk(tree, from, None, None, &mut budget, visit)?;
        Ok(())
    }

    /// The part of a search below one node. The node must begin with the key `low` and end before `high`: then no node can
    /// be met twice, whatever it says.
    fn walk(
        &mut self,
        tree: Tree,
        from: Key,
        low: Option<Key>,
        high: Option<Key>,
        budget: &mut u32,
        visit: &mut Found<'_>,
    ) -> Result<bool, FsError> {
        let left = budget.checked_sub(1);
        *budget = left.ok_or(FsError::Limit { what: "nodes", limit: MAX_NODES.into() })?;
        let block = self.node(tree.address, tree.level)?;
        let node = Bytes::new(&block.data, block.at);
        let count = node.le32(96)? as usize;
        let width = if tree.level == 0 { 25 } else { 33 };
        if count == 0 && low.is_some() {
            return Err(node.damaged(96, "a node without items"));
        }
        let start = position(&node, count, width, from)?;
        let mut next =
            if count > 0 { Some(Key::parse(&node, HEADER + start * width)?) } else { None };
        if low.is_some_and(|low| Key::parse(&node, HEADER).is_ok_and(|first| first != low)) {
            return Err(node.damaged(HEADER, "a node that begins with another key"));
        }
        for index in start..count {
            let at = HEADER + index * width;
            let own = next.expect("there is one for each index");
            next = if index + 1 < count { Some(Key::parse(&node, at + width)?) } else { None };
            if next.or(high).is_some_and(|next| next <= own) {
                return Err(node.damaged(at, "keys are not in order"));
            }
            let more = if tree.level > 0 {
                let child = Tree { address: node.le64(at + 17)?, level: tree.level - 1 };
                self.walk(child, from, Some(own), next.or(high), budget, visit)?
            } else if own < from {
                true
            } else {
                let (offset, size) = (node.le32(at + 17)? as usize, node.le32(at + 21)? as usize);
                visit(own, &node.part(HEADER.saturating_add(offset), size)?)?
            };
            if !more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The last item at or before a key.
    fn floor(&mut self, tree: Tree, wanted: Key) -> Result<Option<Item>, FsError> {
        let mut tree = tree;
        loop {
            let block = self.node(tree.address, tree.level)?;
            let node = Bytes::new(&block.data, block.at);
            let count = node.le32(96)? as usize;
            let width = if tree.level == 0 { 25 } else { 33 };
            let at = HEADER + position(&node, count, width, wanted)? * width;
            if count == 0 {
                return Ok(None);
            }
            let key = Key::parse(&node, at)?;
            if key > wanted {
                return Ok(None);
            }
            if tree.level == 0 {
                let (offset, size) = (node.le32(at + 17)? as usize, node.le32(at + 21)? as usize);
                let item = node.part(HEADER.saturating_add(offset), size)?;
                return Ok(Some(Item { key, data: item.all().to_vec(), at: item.offset(0) }));
            }
            tree = Tree { address: node.le64(at + 17)?, level: tree.level - 1 };
        }
    }

    fn exact(&mut self, tree: Tree, wanted: Key) -> Result<Option<Item>, FsError> {
        Ok(self.floor(tree, wanted)?.filter(|item| item.key == wanted))
    }

    /// The tree of a subvolume; the newest root item counts.
    fn subvolume(&mut self, id: u64) -> Result<Option<Tree>, FsError> {
        let item = self.floor(self.roots, key(id, ROOT_ITEM, u64::MAX))?;
        let Some(item) = item.filter(|item| item.key.object == id && item.key.kind == ROOT_ITEM)
        else {
            return Ok(None);
        };
        let item = item.bytes();
        Ok(Some(Tree { address: item.le64(176)?, level: item.u8(238)? }))
    }

    fn inode(&mut self, subvolume: u64, number: u64) -> Result<Inode, FsError> {
        let tree = self.subvolume(subvolume)?.ok_or_else(|| {
            damaged(SUPERBLOCK, format!("there is no tree of subvolume {subvolume}"))
        })?;
        let item = self.exact(tree, key(number, INODE_ITEM, 0))?.ok_or_else(|| {
            damaged(SUPERBLOCK, format!("there is no inode {number} in subvolume {subvolume}"))
        })?;
        let (mode, size) = (item.bytes().le32(52)?, item.bytes().le64(16)?);
        Ok(Inode { subvolume, tree, number, mode, size, empty: false, at: item.at })
    }

    /// The names in an item of a directory: where they lead, 8 bytes, length of data, length of name, type, name.
    /// `false` if the visitor has enough.
    fn names(subvolume: u64, item: &Bytes<'_>, visit: &mut Visit<'_, Id>) -> Result<bool, FsError> {
        let mut at = 0;
        while at < item.len() {
            let key = Key::parse(item, at)?;
            let (data, len) = (usize::from(item.le16(at + 25)?), usize::from(item.le16(at + 27)?));
            let kind = match item.u8(at + 29)? {
                1 => EntryKind::File,
                2 => EntryKind::Directory,
                7 => EntryKind::Link,
                _ => EntryKind::Other,
            };
            let id = match key.kind {
                INODE_ITEM => Id::Inode { subvolume, inode: key.object },
                ROOT_ITEM => Id::Subvolume { parent: subvolume, id: key.object },
                other => return Err(item.damaged(at + 8, format!("a name of an item {other}"))),
            };
            if !visit(item.slice(at + 30, len)?, id, Some(kind)) {
                return Ok(false);
            }
            at += 30 + len + data;
        }
        Ok(true)
    }

    /// Bytes of data by their address, checked sector by sector.
    fn data(&mut self, address: u64, buf: &mut [u8]) -> Result<(), FsError> {
        if address > u64::MAX >> 1 {
            return Err(damaged(SUPERBLOCK, format!("no chunk holds the address {address}")));
        }
        // Whole sectors, as checksums are of those.
        let start = address / self.sector * self.sector;
        let end = (address + buf.len() as u64).next_multiple_of(self.sector);
        let mut at = start;
        while at < end {
            let len = (end - at).min(1 << 18);
            let mut part = vec![0; small(len)];
            self.verified(at, &mut part)?;
            let from = address.max(at);
            let to = (address + buf.len() as u64).min(at + len);
            buf[small(from - address)..small(to - address)]
                .copy_from_slice(&part[small(from - at)..small(to - at)]);
            at += len;
        }
        Ok(())
    }

    fn verified(&mut self, address: u64, part: &mut [u8]) -> Result<(), FsError> {
        let sums = self.sums(address, part.len() as u64)?;
        let sector = small(self.sector);
        let mut error = None;
        for copy in 0.. {
            let at = match self.read_copy(address, copy, part) {
                Ok(Some(at)) => at,
                Ok(None) => break,
                Err(other) => return Err(error.unwrap_or(other)),
            };
            let wrong = part
                .chunks(sector)
                .zip(&sums)
                .position(|(data, sum)| sum.is_some_and(|sum| !crc32c(!0, data) != sum));
            let Some(wrong) = wrong else { return Ok(()) };
            let at = at + (wrong * sector) as u64;
            error = error.or(Some(damaged(at, "the checksum of data does not match")));
        }
        Err(error.unwrap_or_else(|| damaged(SUPERBLOCK, format!("no copy of data at {address}"))))
    }

    /// The checksums of the sectors from an address on; `None` for those that have none.
    fn sums(&mut self, address: u64, len: u64) -> Result<Vec<Option<u32>>, FsError> {
        let (sector, end) = (self.sector, address + len);
        let mut sums = vec![None; small(len / sector)];
        let Some(tree) = self.checksums else { return Ok(sums) };
        let mut take = |start: u64, item: &Bytes<'_>| -> Result<(), FsError> {
            for (index, at) in (0..item.len() / 4 * 4).step_by(4).enumerate() {
                let own = start.saturating_add(index as u64 * sector);
                if (address..end).contains(&own) {
                    sums[small((own - address) / sector)] = Some(item.le32(at)?);
                }
            }
            Ok(())
        };
        let wanted = key(EXTENT_CSUM_OBJECT, EXTENT_CSUM, address);
        let before = self.floor(tree, wanted)?;
        if let Some(item) = before.filter(|item| item.key.kind == EXTENT_CSUM) {
            take(item.key.offset, &item.bytes())?;
        }
        self.search(tree, wanted, &mut |key, item| {
            if key.kind != EXTENT_CSUM || key.offset >= end {
                return Ok(false);
            }
            take(key.offset, item)?;
            Ok(true)
        })?;
        Ok(sums)
    }

    /// Fills `buf` from a part of a file: what `item` describes, from `skip` on.
    fn part(&mut self, item: &Item, skip: u64, buf: &mut [u8]) -> Result<(), FsError> {
        let extent = item.bytes();
        let (unpacked, compression) = (extent.le64(8)?, extent.u8(16)?);
        if extent.slice(17, 3)? != [0, 0, 0] {
            return Err(FsError::Unsupported("encrypted extents".to_owned()));
        }
        let (inline, address, stored, offset);
        match extent.u8(20)? {
            0 => {
                let data = extent.slice(21, extent.len().saturating_sub(21))?;
                (inline, address, stored, offset) = (Some(data), 0, 0, 0);
            }
            1 => {
                address = extent.le64(21)?;
                (inline, stored, offset) = (None, extent.le64(29)?, extent.le64(37)?);
            }
            // Preallocated.
            2 => {
                buf.fill(0);
                return Ok(());
            }
            other => return Err(extent.damaged(20, format!("an extent of type {other}"))),
        }
        if inline.is_none() && address == 0 {
            buf.fill(0);
            return Ok(());
        }
        let start = offset.saturating_add(skip);
        if start.saturating_add(buf.len() as u64) > unpacked {
            let detail = format!("{} bytes at {start} of an extent of {unpacked}", buf.len());
            return Err(extent.damaged(8, detail));
        }
        if compression == 0 {
            return match inline {
                Some(data) => {
                    let data = Bytes::new(data, item.at + 21).slice(small(start), buf.len())?;
                    buf.copy_from_slice(data);
                    Ok(())
                }
                None if start.saturating_add(buf.len() as u64) > stored => {
                    Err(extent.damaged(29, format!("an extent of {stored} bytes is too short")))
                }
                None => self.data(address.saturating_add(start), buf),
            };
        }
        // The same extent is wanted again for its next part. Inline ones are read whole.
        let known = self.extent.as_ref().filter(|(known, _)| inline.is_none() && *known == address);
        let data = if let Some((_, data)) = known {
            data.clone()
        } else {
            if unpacked > MAX_COMPRESSED || stored > MAX_COMPRESSED {
                let detail = format!("a compressed extent of {stored} bytes for {unpacked}");
                return Err(extent.damaged(8, detail));
            }
            let packed = if let Some(data) = inline {
                data.to_vec()
            } else {
                let mut packed = vec![0; small(stored)];
                self.data(address, &mut packed)?;
                packed
            };
            // Sectors are whole in what comes out.
            let limit = small(unpacked.next_multiple_of(self.sector));
            let data = match compression {
                1 => decode::zlib(&packed, limit),
                2 => lzo(&packed, small(self.sector), limit),
                3 => decode::zstd(&packed, limit),
                other => return Err(FsError::Unsupported(format!("btrfs compression {other}"))),
            };
            let data = data.map_err(|detail| extent.damaged(16, format!("an extent: {detail}")))?;
            let data = Rc::new(data);
            if inline.is_none() {
                self.extent = Some((address, data.clone()));
            }
            data
        };
        buf.copy_from_slice(Bytes::new(&data, item.at).slice(small(start), buf.len())?);
        Ok(())
    }

    /// The path of a subvolume from the top level.
    fn path(&mut self, id: u64) -> Result<Option<String>, FsError> {
        let mut names = Vec::new();
        let mut id = id;
        while id != TOP_LEVEL {
            let item = self.floor(self.roots, key(id, ROOT_BACKREF, u64::MAX))?;
            let Some(item) = item.filter(|it| it.key.object == id && it.key.kind == ROOT_BACKREF)
            else {
                return Ok(None);
            };
            let parent = item.key.offset;
            let (mut directory, len) = (item.bytes().le64(0)?, item.bytes().le16(16)?);
            names.push(item.bytes().slice(18, len.into())?.to_vec());
            let Some(tree) = self.subvolume(parent)? else { return Ok(None) };
            while directory != ROOT_DIRECTORY && names.len() < MAX_DEPTH {
                let item = self.floor(tree, key(directory, INODE_REF, u64::MAX))?;
                let item = item.filter(|it| it.key.object == directory && it.key.kind == INODE_REF);
                let Some(item) = item else { return Ok(None) };
                let len = item.bytes().le16(8)?;
                names.push(item.bytes().slice(10, len.into())?.to_vec());
                directory = item.key.offset;
            }
            if names.len() >= MAX_DEPTH {
                return Ok(None);
            }
            id = parent;
        }
        names.reverse();
        Ok(String::from_utf8(names.join(&b'/')).ok().map(|path| format!("/{path}")))
    }
}

/// The index of the last key at or before a key; 0 if there is none.
fn position(node: &Bytes<'_>, count: usize, width: usize, wanted: Key) -> Result<usize, FsError> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = usize::midpoint(low, high);
        if Key::parse(node, HEADER + middle * width)? <= wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low.saturating_sub(1))
}

/// A chunk: length at 0, profile at 24, number of stripes at 44, then of each its device, offset there, 16 bytes.
fn chunk(item: &Bytes<'_>, device: u64) -> Result<Chunk, FsError> {
    let (len, profile, stripes) = (item.le64(0)?, item.le64(24)? & PROFILES, item.le16(44)?);
    if len == 0 || stripes == 0 {
        return Err(item.damaged(0, format!("a chunk of {len} bytes in {stripes} stripes")));
    }
    let mut copies = Vec::new();
    for stripe in 0..usize::from(stripes) {
        let at = 48 + stripe * 32;
        if item.le64(at)? == device {
            copies.push(item.le64(at + 8)?);
        }
    }
    Ok(Chunk { len, copies, striped: stripes > 1 && profile & !MIRRORED != 0 })
}

/// LZO as btrfs has it: the length of all, then for each sector the length of its stream and the stream; a length
/// does not cross the end of a sector.
fn lzo(packed: &[u8], sector: usize, limit: usize) -> Result<Vec<u8>, String> {
    let word = |at: usize| -> Result<usize, String> {
        let bytes = packed.get(at..at + 4).ok_or("a length is cut")?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    };
    let total = word(0)?.min(packed.len());
    let mut data = Vec::new();
    let mut at = 4;
    while at < total {
        if sector - at % sector < 4 {
            at = at.next_multiple_of(sector);
        }
        if at + 4 > total {
            break;
        }
        let len = word(at)?;
        at += 4;
        let stream = at.checked_add(len).and_then(|end| packed.get(at..end));
        let part = decode::lzo(stream.ok_or("a stream is cut")?, sector.min(limit - data.len()))?;
        data.extend_from_slice(&part);
        at += len;
    }
    Ok(data)
}

impl Nodes for Btrfs<'_> {
    type Id = Id;
    type Node = Inode;

    fn name(&self) -> &'static str {
        "btrfs"
    }

    fn root(&mut self) -> Result<Inode, FsError> {
        self.inode(TOP_LEVEL, ROOT_DIRECTORY)
    }

    fn node(&mut self, id: Id) -> Result<Inode, FsError> {
        match id {
            Id::Inode { subvolume, inode } => self.inode(subvolume, inode),
            Id::Subvolume { parent, id } => {
                // In a snapshot the names of subvolumes are kept, not the subvolumes.
                let here = self.exact(self.roots, key(parent, ROOT_REF, id))?.is_some();
                if here && self.subvolume(id)?.is_some() {
                    return self.inode(id, ROOT_DIRECTORY);
                }
                let mut empty = self.inode(parent, ROOT_DIRECTORY)?;
                (empty.empty, empty.size) = (true, 0);
                Ok(empty)
            }
        }
    }

    fn kind(&self, node: &Inode) -> EntryKind {
        EntryKind::of_mode(node.mode)
    }

    fn size(&self, node: &Inode) -> u64 {
        node.size
    }

    fn scan(&mut self, directory: &Inode, visit: &mut Visit<'_, Id>) -> Result<(), FsError> {
        if directory.empty {
            return Ok(());
        }
        let (number, subvolume) = (directory.number, directory.subvolume);
        self.search(directory.tree, key(number, DIR_INDEX, 0), &mut |key, item| {
            if (key.object, key.kind) != (number, DIR_INDEX) {
                return Ok(false);
            }
            Self::names(subvolume, item, visit)
        })
    }

    fn lookup(&mut self, directory: &Inode, name: &str) -> Result<Option<Id>, FsError> {
        if directory.empty {
            return Ok(None);
        }
        let hash = crc32c(!1, name.as_bytes());
        let item = self.exact(directory.tree, key(directory.number, DIR_ITEM, hash.into()))?;
        let Some(item) = item else { return Ok(None) };
        let mut found = None;
        Self::names(directory.subvolume, &item.bytes(), &mut |entry, id, _| {
            if entry == name.as_bytes() {
                found = Some(id);
            }
            found.is_none()
        })?;
        Ok(found)
    }

    fn target(&mut self, link: &Inode) -> Result<Vec<u8>, FsError> {
        if link.size > MAX_TARGET {
            return Err(damaged(link.at + 16, format!("a link of {} bytes", link.size)));
        }
        let mut target = vec![0; small(link.size)];
        self.read_at(link, 0, &mut target)?;
        Ok(target)
    }

    fn read_at(&mut self, file: &Inode, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let left = (buf.len() - done) as u64;
            let own = |key: Key| (key.object, key.kind) == (file.number, EXTENT_DATA);
            let item = self.floor(file.tree, key(file.number, EXTENT_DATA, at))?;
            let mut end = at;
            if let Some(item) = item.filter(|item| own(item.key)) {
                let extent = item.bytes();
                let len = if extent.u8(20)? == 0 { extent.le64(8)? } else { extent.le64(45)? };
                end = item.key.offset.saturating_add(len).max(at);
                if end > at {
                    let len = small((end - at).min(left));
                    self.part(&item, at - item.key.offset, &mut buf[done..done + len])?;
                }
            }
            if end == at {
                // A hole, up to the next part.
                end = u64::MAX;
                self.search(file.tree, key(file.number, EXTENT_DATA, at), &mut |key, _| {
                    if own(key) {
                        end = key.offset;
                    }
                    Ok(false)
                })?;
                if end == at {
                    return Err(damaged(file.at, format!("an empty extent at {at} of a file")));
                }
                let len = small((end - at).min(left));
                buf[done..done + len].fill(0);
            }
            done += small((end - at).min(left));
        }
        Ok(())
    }

    /// The default subvolume, the other ones by age, and the top level.
    fn roots(&mut self) -> Result<Vec<String>, FsError> {
        let mut default = TOP_LEVEL;
        let wanted = key(self.directory_of_roots, DIR_ITEM, crc32c(!1, b"default").into());
        if let Some(item) = self.exact(self.roots, wanted)? {
            default = Key::parse(&item.bytes(), 0)?.object;
        }
        let mut ids = vec![default];
        self.search(self.roots, key(ROOT_DIRECTORY, 0, 0), &mut |key, _| {
            if key.kind == ROOT_ITEM && key.object != default && key.object < u64::MAX - 255 {
                ids.push(key.object);
            }
            Ok(ids.len() < MAX_ROOTS)
        })?;
        ids.push(TOP_LEVEL);
        let mut roots = Vec::new();
        for id in ids {
            // One that cannot be found is not a reason to leave out the others.
            if let Ok(Some(path)) = self.path(id)
                && !roots.contains(&path)
            {
                roots.push(path);
            }
        }
        Ok(roots)
    }
}
