//! qcow2 images, read only, over any reader.
//!
//! The [specification](https://www.qemu.org/docs/master/interop/qcow2.html), all numbers big-endian:
//!
//! | offset | size | header field |
//! | --- | --- | --- |
//! | 0 | 4 | `QFI\xfb` |
//! | 4 | 4 | version: 2 or 3 |
//! | 8 | 12 | offset and length of the backing file's name |
//! | 20 | 4 | cluster bits, 9 to 21 |
//! | 24 | 8 | size of the guest's disk |
//! | 32 | 4 | encryption |
//! | 36 | 4 | entries of the L1 table |
//! | 40 | 8 | offset of the L1 table |
//! | 72 | 8 | version 3: incompatible features |
//! | 104 | 1 | version 3, header length above 104: compression, 0 zlib, 1 zstd |
//!
//! A guest offset splits into an index in the L1 table, an index in the L2 table that names, and an offset in the
//! cluster that names. L2 tables are one cluster long. Bits of an L2 entry: 63 "refcount is one", 62 compressed; then for
//! plain clusters 9-55 the host offset and 0 "reads as zeros", for compressed ones the host offset below bit
//! `70 - cluster bits` and above it the number of further 512-byte sectors.
//!
//! Refused: backing files, encryption, external data files, extended L2 entries, unknown incompatible features, images
//! marked corrupt. Not looked at: reference counts, snapshots, bitmaps.

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};

use super::source::{Bytes, Source, small};
use super::window::target;
use crate::ReadSeek;
use crate::filesystem::FsError;
use crate::filesystem::decode;

const MAGIC: &[u8; 4] = b"QFI\xfb";

/// The L1 table QEMU accepts at most, in bytes.
const MAX_L1: u64 = 32 << 20;

/// Memory for decompressed clusters.
const CACHE: usize = 4 << 20;

const INCOMPATIBLE_DIRTY: u64 = 1;
const INCOMPATIBLE_CORRUPT: u64 = 1 << 1;
const INCOMPATIBLE_DATA_FILE: u64 = 1 << 2;
const INCOMPATIBLE_COMPRESSION: u64 = 1 << 3;
const INCOMPATIBLE_EXTENDED_L2: u64 = 1 << 4;

const L2_COMPRESSED: u64 = 1 << 62;
const L2_ZERO: u64 = 1;
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
const COPIED: u64 = 1 << 63;

/// Whether a file that starts with these bytes is a qcow2 image.
pub fn is_qcow2(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

#[derive(Clone, Copy)]
enum Compression {
    Zlib,
    Zstd,
}

/// The guest's disk in a qcow2 image.
pub struct Qcow2<'a> {
    source: Source<'a>,
    cluster_bits: u32,
    size: u64,
    l1_offset: u64,
    compression: Compression,
    position: u64,
    /// Decompressed clusters by guest cluster, the newest last.
    cache: VecDeque<(u64, Vec<u8>)>,
}

/// What a guest cluster is.
enum Cluster {
    Zeros,
    Plain(u64),
    Compressed { offset: u64, len: usize },
}

impl<'a> Qcow2<'a> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// A [`FsError`]: the header is damaged, or asks for what is not read here.
    pub fn open(input: &'a mut dyn ReadSeek) -> Result<Self, FsError> {
        let mut source = Source::new(input)?;
        let unsupported = |what: &str| Err(FsError::Unsupported(format!("qcow2 with {what}")));
        let head = source.vec(0, 72)?;
        let head = Bytes::new(&head, 0);
        let version = head.be32(4)?;
        if head.slice(0, 4)? != MAGIC {
            return Err(head.damaged(0, "no qcow2 magic"));
        }
        if version != 2 && version != 3 {
            return unsupported(&format!("version {version}"));
        }
        let cluster_bits = head.be32(20)?;
        if !(9..=21).contains(&cluster_bits) {
            return Err(head.damaged(20, format!("{cluster_bits} cluster bits")));
        }
        let (backing, size, encryption) = (head.be64(8)?, head.be64(24)?, head.be32(32)?);
        let (l1_entries, l1_offset) = (head.be32(36)?, head.be64(40)?);
        let mut compression = Compression::Zlib;
        if version == 3 {
            let more = source.vec(72, 32)?;
            let more = Bytes::new(&more, 72);
            let (features, header) = (more.be64(0)?, more.be32(28)?);
            if header < 104 || u64::from(header) > 1 << cluster_bits {
                return Err(more.damaged(28, format!("a header of {header} bytes")));
            }
            if features & INCOMPATIBLE_CORRUPT != 0 {
                return Err(more.damaged(0, "the image is marked corrupt"));
            }
            if features & INCOMPATIBLE_DATA_FILE != 0 {
                return unsupported("an external data file");
            }
            if features & INCOMPATIBLE_EXTENDED_L2 != 0 {
                return unsupported("extended L2 entries");
            }
            if features & !(INCOMPATIBLE_DIRTY | INCOMPATIBLE_COMPRESSION) != 0 {
                return unsupported(&format!("incompatible features {features:#x}"));
            }
            if features & INCOMPATIBLE_COMPRESSION != 0 {
                let mut kind = [0];
                source.read_at(104, &mut kind)?;
                compression = match (header, kind[0]) {
                    (105.., 0) => Compression::Zlib,
                    (105.., 1) => Compression::Zstd,
                    (_, kind) => return unsupported(&format!("compression {kind}")),
                };
            }
        }
        if backing != 0 {
            return unsupported("a backing file");
        }
        if encryption != 0 {
            return unsupported("encryption");
        }
        let per_table = 1_u64 << (cluster_bits - 3 + cluster_bits);
        let l1_bytes = u64::from(l1_entries) * 8;
        if size.div_ceil(per_table) > u64::from(l1_entries) || l1_bytes > MAX_L1 {
            return Err(head.damaged(36, format!("{l1_entries} L1 entries for {size} bytes")));
        }
        let cluster = 1_u64 << cluster_bits;
        if !l1_offset.is_multiple_of(cluster)
            || l1_offset.checked_add(l1_bytes).is_none_or(|end| end > source.len())
            || (l1_offset == 0 && size > 0)
        {
            return Err(head.damaged(40, format!("the L1 table is said to be at {l1_offset}")));
        }
        let cache = VecDeque::new();
        Ok(Self { source, cluster_bits, size, l1_offset, compression, position: 0, cache })
    }

    /// The guest's disk in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn entry(&mut self, table: u64, index: u64) -> Result<u64, FsError> {
        let mut entry = [0; 8];
        self.source.read_at(table + index * 8, &mut entry)?;
        Ok(u64::from_be_bytes(entry))
    }

    /// Checks a host offset found at `at`.
    fn host(&self, at: u64, offset: u64) -> Result<u64, FsError> {
        if offset & ((1 << self.cluster_bits) - 1) != 0 || offset >= self.source.len() {
            let len = self.source.len();
            let detail = format!("qcow2: cluster at {offset}, the file has {len} bytes");
            return Err(FsError::Damaged { offset: at, detail });
        }
        // Tables that lie in the header or in one another hold anything but what they should.
        if offset == 0 || offset == self.l1_offset {
            let detail = format!("qcow2: cluster at {offset}, where tables are");
            return Err(FsError::Damaged { offset: at, detail });
        }
        Ok(offset)
    }

    fn locate(&mut self, cluster: u64) -> Result<Cluster, FsError> {
        let l2_bits = self.cluster_bits - 3;
        let (l1_index, l2_index) = (cluster >> l2_bits, cluster & ((1 << l2_bits) - 1));
        let l1_at = self.l1_offset + l1_index * 8;
        let l1 = self.entry(self.l1_offset, l1_index)?;
        reserved(l1_at, l1, !(OFFSET | COPIED))?;
        if l1 & OFFSET == 0 {
            return Ok(Cluster::Zeros);
        }
        let table = self.host(l1_at, l1 & OFFSET)?;
        let at = table + l2_index * 8;
        let l2 = self.entry(table, l2_index)?;
        if l2 & L2_COMPRESSED != 0 {
            let offset_bits = 70 - self.cluster_bits;
            let offset = l2 & ((1 << offset_bits) - 1);
            let sectors = (l2 & (L2_COMPRESSED - 1)) >> offset_bits;
            // The last sector may be cut by the end of the file.
            let end = ((offset & !511) + (sectors + 1) * 512).min(self.source.len());
            let len = end.saturating_sub(offset);
            if len == 0 || l2 & COPIED != 0 {
                let detail = format!("qcow2: compressed cluster at {offset}");
                return Err(FsError::Damaged { offset: at, detail });
            }
            return Ok(Cluster::Compressed { offset, len: small(len) });
        }
        reserved(at, l2, !(OFFSET | COPIED | L2_ZERO))?;
        if l2 & L2_ZERO != 0 || l2 & OFFSET == 0 {
            return Ok(Cluster::Zeros);
        }
        let host = self.host(at, l2 & OFFSET)?;
        if host == table {
            let detail = "qcow2: an L2 table names itself as data".to_owned();
            return Err(FsError::Damaged { offset: at, detail });
        }
        Ok(Cluster::Plain(host))
    }

    fn read_some(&mut self, buf: &mut [u8]) -> Result<usize, FsError> {
        let left = self.size.saturating_sub(self.position);
        let size = 1_u64 << self.cluster_bits;
        let within = self.position & (size - 1);
        let len = buf.len().min(small((size - within).min(left)));
        if len == 0 {
            return Ok(0);
        }
        let buf = &mut buf[..len];
        let cluster = self.position >> self.cluster_bits;
        if let Some((_, data)) = self.cache.iter().find(|(cached, _)| *cached == cluster) {
            buf.copy_from_slice(&data[small(within)..][..len]);
        } else {
            match self.locate(cluster)? {
                Cluster::Zeros => buf.fill(0),
                Cluster::Plain(host) => self.source.read_at(host + within, buf)?,
                Cluster::Compressed { offset, len: packed } => {
                    let packed = self.source.vec(offset, packed)?;
                    let data = match self.compression {
                        Compression::Zlib => decode::deflate(&packed, small(size)),
                        Compression::Zstd => decode::zstd(&packed, small(size)),
                    };
                    let data = data.and_then(|data| decode::exactly(data, small(size)));
                    let data = data.map_err(|detail| FsError::Damaged {
                        offset,
                        detail: format!("qcow2: compressed cluster: {detail}"),
                    })?;
                    buf.copy_from_slice(&data[small(within)..][..len]);
                    if (self.cache.len() + 1) << self.cluster_bits > CACHE.max(1 << 21) {
                        self.cache.pop_front();
                    }
                    self.cache.push_back((cluster, data));
                }
            }
        }
        self.position += len as u64;
        Ok(len)
    }
}

/// Bits that must be zero: a table that has them is none.
fn reserved(at: u64, entry: u64, reserved: u64) -> Result<(), FsError> {
    if entry & reserved == 0 {
        return Ok(());
    }
    Err(FsError::Damaged { offset: at, detail: format!("qcow2: table entry {entry:#x}") })
}

impl Read for Qcow2<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.read_some(buf)?)
    }
}

impl Seek for Qcow2<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = target(to, self.position, self.size)?;
        Ok(self.position)
    }
}
