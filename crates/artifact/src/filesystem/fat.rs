//! FAT12, FAT16 and FAT32 with long names, as on EFI system partitions.
//!
//! Microsoft's [specification](https://download.microsoft.com/download/1/6/1/161ba512-40e2-4cc9-843a-923143f3456c/fatgen103.doc),
//! little-endian. The boot sector: bytes per sector at 11, sectors per cluster at 13, reserved sectors at 14, number of
//! tables at 16, entries of the root directory at 17 (none in FAT32), sectors at 19 or 32, sectors of a table at 22 or 36,
//! flags at 40 and first cluster of the root directory at 44 (FAT32). After the reserved sectors come the tables, the root
//! directory (not in FAT32) and clusters from number 2 on. A table names for each cluster the next one.
//!
//! A directory entry has 32 bytes: name 11, attributes at 11, case of the name at 12, first cluster at 20 (high half) and 26,
//! size at 28. A long name precedes its entry in pieces of 13 UTF-16 units, the last one first, with a checksum of the
//! short name. Short names that are not ASCII are left out: which code page they are in is not known.

use std::collections::BTreeMap;

use super::paths::{Nodes, Visit, read_runs};
use super::{EntryKind, FsError};
use crate::disk::source::{Bytes, Run, Source, damaged, small};

/// The specification's limit.
const MAX_DIRECTORY: u64 = 65536 * 32;

/// Runs of clusters of one file.
const MAX_RUNS: usize = 1 << 18;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Fat12,
    Fat16,
    Fat32,
}

/// A FAT file system.
pub(crate) struct Fat<'a> {
    source: Source<'a>,
    width: Width,
    table: u64,
    /// Where cluster 2 is.
    data: u64,
    cluster: u64,
    clusters: u32,
    root: Node,
    /// The chain followed last: first cluster, how many were wanted, what there is.
    chain: Option<(u32, u64, Vec<Chunk>)>,
}

/// Clusters on end, from the `index`th of a file on.
#[derive(Clone, Copy)]
struct Chunk {
    index: u64,
    cluster: u32,
    count: u32,
}

/// A file or directory.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    /// First cluster; 0 for an empty file.
    cluster: u32,
    /// Size of a file. Of the root directory that is not in clusters: its length.
    size: u64,
    directory: bool,
    /// Where a root directory is that is not in clusters.
    fixed: Option<u64>,
    /// Where its entry is.
    at: u64,
}

/// Whether a boot sector is one of FAT.
pub(super) fn is_fat(boot: &[u8; 512]) -> bool {
    let size = u16::from_le_bytes([boot[11], boot[12]]);
    matches!(boot[0], 0xeb | 0xe9)
        && boot[510..] == [0x55, 0xaa]
        && matches!(size, 512 | 1024 | 2048 | 4096)
        && boot[13].is_power_of_two()
        && boot[14..16] != [0, 0]
        && matches!(boot[16], 1 | 2)
        && (boot[21] == 0xf0 || boot[21] >= 0xf8)
}

impl<'a> Fat<'a> {
    pub(crate) fn open(mut source: Source<'a>) -> Result<Self, FsError> {
        let boot = source.vec(0, 512)?;
        let boot = Bytes::new(&boot, 0);
        let sector = u64::from(boot.le16(11)?);
        let cluster = sector * u64::from(boot.u8(13)?);
        let sectors = match boot.le16(19)? {
            0 => boot.le32(32)?,
            few => few.into(),
        };
        let fat32 = boot.le16(22)? == 0;
        let table_sectors = if fat32 { boot.le32(36)? } else { boot.le16(22)?.into() };
        let table = u64::from(boot.le16(14)?) * sector;
        let table_size = u64::from(table_sectors) * sector;
        let root = table + u64::from(boot.u8(16)?) * table_size;
        let root_size = u64::from(boot.le16(17)?) * 32;
        let data = root + root_size.next_multiple_of(sector);
        let clusters = (u64::from(sectors) * sector).checked_sub(data).map(|bytes| bytes / cluster);
        let clusters = clusters.and_then(|clusters| u32::try_from(clusters).ok());
        let Some(clusters) = clusters.filter(|clusters| *clusters > 0) else {
            return Err(boot.damaged(19, format!("no room for clusters in {sectors} sectors")));
        };
        let (width, bits) = match clusters {
            _ if fat32 => (Width::Fat32, 32),
            0..4085 => (Width::Fat12, 12),
            4085..65525 => (Width::Fat16, 16),
            _ => return Err(boot.damaged(22, format!("{clusters} clusters"))),
        };
        if (u64::from(clusters) + 2) * bits > table_size * 8 {
            let detail = format!("a table of {table_size} bytes for {clusters} clusters");
            return Err(boot.damaged(22, detail));
        }
        // Tables may differ; then the flags say which one counts.
        let active = if fat32 && boot.le16(40)? & 0x80 != 0 { boot.le16(40)? & 0xf } else { 0 };
        if active >= u16::from(boot.u8(16)?) {
            return Err(boot.damaged(40, format!("there is no table {active}")));
        }
        let root = Node {
            cluster: if fat32 { boot.le32(44)? } else { 0 },
            size: root_size,
            directory: true,
            fixed: (!fat32).then_some(root),
            at: 0,
        };
        let table = table + u64::from(active) * table_size;
        Ok(Self { source, width, table, data, cluster, clusters, root, chain: None })
    }

    /// The cluster after another one; `None` at the end of a chain.
    fn next(&mut self, cluster: u32) -> Result<Option<u32>, FsError> {
        let number = u64::from(cluster);
        let mut bytes = [0; 4];
        let (at, len) = match self.width {
            Width::Fat12 => (self.table + number * 3 / 2, 2),
            Width::Fat16 => (self.table + number * 2, 2),
            Width::Fat32 => (self.table + number * 4, 4),
        };
        self.source.read_at(at, &mut bytes[..len])?;
        let value = u32::from_le_bytes(bytes);
        let (value, most) = match self.width {
            Width::Fat12 => (value >> (cluster % 2 * 4) & 0xfff, 0xfff),
            Width::Fat16 => (value, 0xffff),
            Width::Fat32 => (value & 0x0fff_ffff, 0x0fff_ffff),
        };
        if value >= most - 7 {
            return Ok(None);
        }
        self.sound(value, at)?;
        Ok(Some(value))
    }

    fn sound(&self, cluster: u32, at: u64) -> Result<(), FsError> {
        if (2..self.clusters.saturating_add(2)).contains(&cluster) {
            return Ok(());
        }
        let clusters = self.clusters;
        Err(damaged(at, format!("cluster {cluster} for one of {clusters} in a chain")))
    }

    /// Follows the chain of a file or directory; `most` is how many clusters are wanted of it.
    fn chain(&mut self, node: &Node, most: u64) -> Result<&[Chunk], FsError> {
        let known = |(first, wanted, _): &(u32, u64, _)| *first == node.cluster && *wanted == most;
        if !self.chain.as_ref().is_some_and(known) {
            self.sound(node.cluster, node.at)?;
            let mut chunks = vec![Chunk { index: 0, cluster: node.cluster, count: 1 }];
            // Runs by their first cluster, so that a chain that comes back is noticed.
            let mut seen = BTreeMap::from([(node.cluster, 1)]);
            let mut cluster = node.cluster;
            let mut total = 1;
            while total < most
                && let Some(next) = self.next(cluster)?
            {
                let before = seen.range(..=next).next_back();
                if before.is_some_and(|(first, count)| next - first < *count) {
                    return Err(damaged(node.at, format!("its clusters come back to {next}")));
                }
                let last = chunks.last_mut().expect("there is a first one");
                if next == cluster + 1 {
                    last.count += 1;
                    seen.insert(last.cluster, last.count);
                } else {
                    if chunks.len() == MAX_RUNS {
                        let limit = MAX_RUNS as u64;
                        return Err(FsError::Limit { what: "pieces of a file", limit });
                    }
                    chunks.push(Chunk { index: total, cluster: next, count: 1 });
                    seen.insert(next, 1);
                }
                cluster = next;
                total += 1;
            }
            self.chain = Some((node.cluster, most, chunks));
        }
        Ok(&self.chain.as_ref().expect("was just put there").2)
    }

    /// Where byte `offset` of something in clusters is; `None` beyond the end of the chain.
    fn run(&mut self, node: &Node, offset: u64, most: u64) -> Result<Option<Run>, FsError> {
        let (data, cluster) = (self.data, self.cluster);
        let (index, within) = (offset / cluster, offset % cluster);
        let chunks = self.chain(node, most)?;
        let after = chunks.partition_point(|chunk| chunk.index <= index);
        let chunk = chunks[after - 1];
        let skipped = index - chunk.index;
        if skipped >= u64::from(chunk.count) {
            return Ok(None);
        }
        let start = data + (u64::from(chunk.cluster) - 2 + skipped) * cluster;
        let len = (u64::from(chunk.count) - skipped) * cluster - within;
        Ok(Some(Run::Data { at: start + within, len }))
    }

    /// The entries of a directory in one piece of it. `false` if its end was reached, or the visitor has enough.
    fn entries(
        &self,
        data: &Bytes<'_>,
        long: &mut Long,
        visit: &mut Visit<'_, Node>,
    ) -> Result<bool, FsError> {
        for at in (0..data.len()).step_by(32) {
            let entry = data.part(at, 32)?;
            let (first, attributes) = (entry.u8(0)?, entry.u8(11)?);
            if first == 0 {
                return Ok(false);
            }
            if first == 0xe5 {
                long.clear();
                continue;
            }
            if attributes & 0x3f == 0x0f {
                long.add(&entry)?;
                continue;
            }
            let name = long.take(entry.slice(0, 11)?).or(short_name(&entry)?);
            // The label of the volume is no file.
            if attributes & 0x08 != 0 {
                continue;
            }
            let Some(name) = name else { continue };
            let high = if self.width == Width::Fat32 { entry.le16(20)? } else { 0 };
            let directory = attributes & 0x10 != 0;
            let mut node = Node {
                cluster: u32::from(high) << 16 | u32::from(entry.le16(26)?),
                size: if directory { 0 } else { entry.le32(28)?.into() },
                directory,
                fixed: None,
                at: entry.offset(0),
            };
            if directory && node.cluster == 0 {
                // `..` of a directory in the root.
                node = self.root;
            }
            let kind = if directory { EntryKind::Directory } else { EntryKind::File };
            if !visit(name.as_bytes(), node, Some(kind)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A long name as its pieces come.
#[derive(Default)]
struct Long {
    /// Number of the piece that has to come next; 0 when the name is whole.
    expected: u8,
    checksum: u8,
    units: Vec<u16>,
}

impl Long {
    fn clear(&mut self) {
        self.units.clear();
        self.expected = 0;
    }

    fn add(&mut self, entry: &Bytes<'_>) -> Result<(), FsError> {
        let (order, checksum) = (entry.u8(0)?, entry.u8(13)?);
        let number = order & 0x3f;
        if order & 0x40 != 0 && (1..=20).contains(&number) {
            self.units.clear();
            (self.expected, self.checksum) = (number, checksum);
        } else if number != self.expected || number == 0 || checksum != self.checksum {
            // Pieces of a name whose other pieces were overwritten.
            self.clear();
            return Ok(());
        }
        let mut units = Vec::with_capacity(13 + self.units.len());
        for at in (1..11).chain(14..26).chain(28..32).step_by(2) {
            units.push(entry.le16(at)?);
        }
        units.append(&mut self.units);
        self.units = units;
        self.expected -= 1;
        Ok(())
    }

    /// The name, if it is whole and belongs to this short one.
    fn take(&mut self, short: &[u8]) -> Option<String> {
        let units = std::mem::take(&mut self.units);
        let sum = short.iter().fold(0_u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte));
        let whole = std::mem::take(&mut self.expected) == 0 && !units.is_empty();
        if !whole || sum != self.checksum {
            return None;
        }
        String::from_utf16(units.split(|unit| *unit == 0).next()?).ok()
    }
}

/// The 8.3 name of an entry.
fn short_name(entry: &Bytes<'_>) -> Result<Option<String>, FsError> {
    let case = entry.u8(12)?;
    let part = |at, len, lower| -> Result<Option<String>, FsError> {
        let bytes = entry.slice(at, len)?;
        let text = if bytes.is_ascii() { str::from_utf8(bytes).ok() } else { None };
        let text = text.map(|text| text.trim_end_matches(' '));
        Ok(text.map(|text| if lower { text.to_ascii_lowercase() } else { text.to_owned() }))
    };
    let (base, extension) = (part(0, 8, case & 8 != 0)?, part(8, 3, case & 16 != 0)?);
    Ok(match (base, extension) {
        (Some(base), Some(extension)) if extension.is_empty() => Some(base),
        (Some(base), Some(extension)) => Some(format!("{base}.{extension}")),
        _ => None,
    })
}

impl Nodes for Fat<'_> {
    type Id = Node;
    type Node = Node;

    fn name(&self) -> &'static str {
        "fat"
    }

    fn root(&mut self) -> Result<Node, FsError> {
        Ok(self.root)
    }

    fn node(&mut self, id: Node) -> Result<Node, FsError> {
        Ok(id)
    }

    fn kind(&self, node: &Node) -> EntryKind {
        if node.directory { EntryKind::Directory } else { EntryKind::File }
    }

    fn size(&self, node: &Node) -> u64 {
        node.size
    }

    fn scan(&mut self, directory: &Node, visit: &mut Visit<'_, Node>) -> Result<(), FsError> {
        let mut long = Long::default();
        if let Some(at) = directory.fixed {
            let data = self.source.vec(at, small(directory.size))?;
            self.entries(&Bytes::new(&data, at), &mut long, visit)?;
            return Ok(());
        }
        let most = MAX_DIRECTORY.div_ceil(self.cluster);
        let mut offset = 0;
        while let Some(Run::Data { at, .. }) = self.run(directory, offset, most)? {
            if offset >= MAX_DIRECTORY {
                return Err(FsError::Limit { what: "bytes in a directory", limit: MAX_DIRECTORY });
            }
            let data = self.source.vec(at, small(self.cluster))?;
            if !self.entries(&Bytes::new(&data, at), &mut long, visit)? {
                break;
            }
            offset += self.cluster;
        }
        Ok(())
    }

    fn target(&mut self, link: &Node) -> Result<Vec<u8>, FsError> {
        Err(damaged(link.at, "FAT has no links"))
    }

    fn read_at(&mut self, file: &Node, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        let most = file.size.div_ceil(self.cluster);
        read_runs(
            self,
            offset,
            buf,
            |fs, offset| {
                fs.run(file, offset, most)?.ok_or_else(|| {
                    damaged(file.at, format!("a file of {} bytes ends at {offset}", file.size))
                })
            },
            |fs, at, part| fs.source.read_at(at, part),
        )
    }

    /// Names are equal whatever their case.
    fn lookup(&mut self, directory: &Node, name: &str) -> Result<Option<Node>, FsError> {
        let wanted = name.to_lowercase();
        let mut found = None;
        self.scan(directory, &mut |entry, node, _| {
            if str::from_utf8(entry).is_ok_and(|entry| entry.to_lowercase() == wanted) {
                found = Some(node);
            }
            found.is_none()
        })?;
        Ok(found)
    }
}
