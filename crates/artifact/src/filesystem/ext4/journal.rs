//! The journal of ext3 and ext4, [JBD2](https://docs.kernel.org/filesystems/ext4/journal.html), read instead of replayed.
//!
//! All numbers are big-endian. Every block of the journal's own begins with `c03b3998`, its type and its transaction:
//! 1 a descriptor (tags follow, one for each of the blocks after it, which says where that block belongs), 2 a commit,
//! 4 the superblock (length at 16, first block at 20, first transaction at 24, its block at 28, features at 40),
//! 5 a revocation (bytes used at 12, then block numbers whose older copies do not count). Only transactions with
//! their commit count. The journal is a ring.

use std::collections::{HashMap, HashSet};

use super::{Ext4, FsError, Inode, Run};
use crate::disk::source::{Bytes, crc32c, small};

const MAGIC: u32 = 0xc03b_3998;

const INCOMPAT_REVOKE: u32 = 0x1;
const INCOMPAT_64BIT: u32 = 0x2;
const INCOMPAT_CSUM_V2: u32 = 0x8;
const INCOMPAT_CSUM_V3: u32 = 0x10;
/// With fast commits (0x20) the ordinary ones are read.
const INCOMPAT_READ: u32 =
    INCOMPAT_REVOKE | INCOMPAT_64BIT | INCOMPAT_CSUM_V2 | INCOMPAT_CSUM_V3 | 0x20;

const TAG_ESCAPE: u32 = 1;
const TAG_SAME_UUID: u32 = 2;
const TAG_LAST: u32 = 8;

/// Blocks that are kept: 128 GiB of them in a transaction log of at most a few GiB.
const MAX_BLOCKS: usize = 1 << 20;

/// Descriptors, commits and revocations that are read: all the blocks of a made up journal may be the same.
const MAX_READ: u32 = 1 << 17;

/// A block in the journal.
#[derive(Clone, Copy)]
pub(super) struct Copy {
    pub(super) at: u64,
    /// Its first four bytes were the journal's magic number and are zeros in the journal.
    escaped: bool,
}

impl Copy {
    /// Puts the magic number back into a part of the block.
    pub(super) fn restore(self, within: usize, part: &mut [u8]) {
        if self.escaped && within < 4 {
            let magic = &MAGIC.to_be_bytes()[within..];
            let len = magic.len().min(part.len());
            part[..len].copy_from_slice(&magic[..len]);
        }
    }
}

struct Journal<'f, 'a> {
    fs: &'f mut Ext4<'a>,
    inode: Inode,
    first: u32,
    end: u32,
    features: u32,
    seed: Option<u32>,
}

/// Finds the newest committed copy of every block in the journal.
pub(super) fn load(fs: &mut Ext4<'_>, number: u32) -> Result<HashMap<u64, Copy>, FsError> {
    let inode = fs.inode(number)?;
    let mut journal = Journal { fs, inode, first: 1, end: 1, features: 0, seed: None };
    let (data, at) = journal.block(0)?;
    let sb = Bytes::new(&data, at);
    let kind = sb.be32(4)?;
    if sb.be32(0)? != MAGIC || !matches!(kind, 3 | 4) {
        return Err(sb.damaged(0, "no journal, and the file system needs it"));
    }
    if u64::from(sb.be32(12)?) != journal.fs.block_size {
        return Err(sb.damaged(12, format!("a journal of {}-byte blocks", sb.be32(12)?)));
    }
    if kind == 4 {
        journal.features = sb.be32(40)?;
        if journal.features & !INCOMPAT_READ != 0 {
            let what = format!("a journal with the features {:#x}", journal.features);
            return Err(FsError::Unsupported(what));
        }
        if journal.features & (INCOMPAT_CSUM_V2 | INCOMPAT_CSUM_V3) != 0 {
            let mut covered = sb.slice(0, 1024)?.to_vec();
            covered[0xfc..0x100].fill(0);
            if crc32c(!0, &covered) != sb.be32(0xfc)? {
                return Err(sb.damaged(0xfc, "the checksum of the journal does not match"));
            }
            journal.seed = Some(crc32c(!0, sb.slice(48, 16)?));
        }
    }
    let mut end = sb.be32(16)?;
    if journal.features & 0x20 != 0 {
        // The last blocks are for fast commits.
        end = end.saturating_sub(match sb.be32(84)? {
            0 => 256,
            blocks => blocks,
        });
    }
    (journal.first, journal.end) = (sb.be32(20)?, end);
    let (sequence, start) = (sb.be32(24)?, sb.be32(28)?);
    if start == 0 {
        return Ok(HashMap::new());
    }
    if journal.first == 0 || !(journal.first..journal.end).contains(&start) {
        return Err(sb.damaged(28, format!("a journal that starts at block {start} of {end}")));
    }
    journal.transactions(start, sequence)
}

impl Journal<'_, '_> {
    fn place(&mut self, block: u32) -> Result<u64, FsError> {
        let offset = u64::from(block) * self.fs.block_size;
        match self.fs.run(&self.inode, offset)? {
            Run::Data { at, .. } => Ok(at),
            Run::Hole { .. } => {
                Err(FsError::Damaged { offset, detail: "a hole in the journal".to_owned() })
            }
        }
    }

    fn block(&mut self, block: u32) -> Result<(Vec<u8>, u64), FsError> {
        let at = self.place(block)?;
        let mut data = vec![0; small(self.fs.block_size)];
        self.fs.read(at, &mut data)?;
        Ok((data, at))
    }

    fn next(&self, block: u32) -> u32 {
        if block + 1 < self.end { block + 1 } else { self.first }
    }

    /// Whether a block's checksum, at `at`, matches, if there are checksums.
    fn sound(&self, block: &[u8], at: usize) -> bool {
        let Some(seed) = self.seed else { return true };
        let mut covered = block.to_vec();
        covered[at..at + 4].fill(0);
        Bytes::new(block, 0).be32(at).is_ok_and(|sum| sum == crc32c(seed, &covered))
    }

    /// Reads transactions from `block` on until one is not whole.
    fn transactions(
        &mut self,
        mut block: u32,
        mut sequence: u32,
    ) -> Result<HashMap<u64, Copy>, FsError> {
        let mut blocks = HashMap::new();
        let (mut written, mut revoked) = (HashMap::new(), HashSet::new());
        // Each block of the ring at most once.
        let mut left = self.end - self.first;
        let mut read = 0;
        while left > 0 {
            left -= 1;
            read += 1;
            if read > MAX_READ || revoked.len() > MAX_BLOCKS {
                let limit = MAX_READ.into();
                return Err(FsError::Limit { what: "transactions in the journal", limit });
            }
            let (data, at) = self.block(block)?;
            let bytes = Bytes::new(&data, at);
            if bytes.be32(0)? != MAGIC || bytes.be32(8)? != sequence {
                break;
            }
            block = self.next(block);
            match bytes.be32(4)? {
                1 if self.sound(&data, data.len() - 4) => {
                    for (home, escaped) in self.tags(&bytes)? {
                        written.insert(home, Copy { at: self.place(block)?, escaped });
                        block = self.next(block);
                        left = left.saturating_sub(1);
                    }
                    if blocks.len() + written.len() > MAX_BLOCKS {
                        let limit = MAX_BLOCKS as u64;
                        return Err(FsError::Limit { what: "blocks in the journal", limit });
                    }
                }
                2 if self.sound(&data, 16) => {
                    // A block that is used again after its revocation in the same transaction has none any more.
                    for home in revoked.drain() {
                        blocks.remove(&home);
                        written.remove(&home);
                    }
                    blocks.extend(written.drain());
                    sequence = sequence.wrapping_add(1);
                }
                5 if self.sound(&data, data.len() - 4) => {
                    let width = if self.features & INCOMPAT_64BIT != 0 { 8 } else { 4 };
                    let used = (bytes.be32(12)? as usize).min(data.len());
                    for at in (16..used.saturating_sub(width - 1)).step_by(width) {
                        revoked.insert(match width {
                            8 => bytes.be64(at)?,
                            _ => u64::from(bytes.be32(at)?),
                        });
                    }
                }
                _ => break,
            }
        }
        Ok(blocks)
    }

    /// Where the blocks after a descriptor belong, and whether they are escaped.
    fn tags(&self, block: &Bytes<'_>) -> Result<Vec<(u64, bool)>, FsError> {
        let wide = self.features & INCOMPAT_64BIT != 0;
        let v3 = self.features & INCOMPAT_CSUM_V3 != 0;
        let v2 = self.features & INCOMPAT_CSUM_V2 != 0;
        let size = match (v3, v2, wide) {
            (true, ..) => 16,
            // The kernel counts the two bytes of a checksum that are there anyway.
            (_, true, true) => 14,
            (_, true, false) => 10,
            (_, false, true) => 12,
            (_, false, false) => 8,
        };
        let end = block.len() - if v2 || v3 { 4 } else { 0 };
        let mut tags = Vec::new();
        let mut at = 12;
        while at + size <= end {
            let flags = if v3 { block.be32(at + 4)? } else { u32::from(block.be16(at + 6)?) };
            let high = if wide { u64::from(block.be32(at + 8)?) << 32 } else { 0 };
            tags.push((u64::from(block.be32(at)?) | high, flags & TAG_ESCAPE != 0));
            at += size + if flags & TAG_SAME_UUID == 0 { 16 } else { 0 };
            if flags & TAG_LAST != 0 {
                break;
            }
        }
        Ok(tags)
    }
}
