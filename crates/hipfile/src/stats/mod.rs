//! What was moved, how long it took, and why not directly: counted in memory that other programs may look at.
//!
//! Two pieces of shared memory. This library counts in the second one, which [`blocks`] describes. The first has the layout of
//! `ais-stats`, version 1, to the byte, for AMD's reader; all of it 64-bit counters:
//!
//! | word | counter |
//! | --- | --- |
//! | 0 | version, 1 |
//! | 1 | level |
//! | 2, 3, 4 | registered files, registered buffers, requests that the fastpath refused |
//! | 5 + 131 * (2 * GPU + way) | 16 GPUs, two ways each: fastpath, fallback |
//!
//! A way's 131 words: whether it was used; bytes, requests, microseconds, errors, each 16 sizes of reads and then of writes; unaligned
//! reads and writes. Size 0 is below 4 KiB, size i from `2^(i+11)` bytes, size 15 from 64 MiB. It is brought up to date when somebody
//! asks for it, from then on every [`REFRESH`], and at the end.
//!
//! Looking at the clock costs as much as all counting of a small request, so that of many small ones only some are timed.

mod blocks;
mod report;
mod server;
mod shared;
mod timing;
mod watch;

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fastpath_gpu::Direction;
use rustix::io::Errno;

use crate::choose::Reason;
use crate::error::Error;
use crate::log::{Level, Log};
use blocks::{Block, Blocks};
use server::Server;
use shared::Shared;

pub(crate) use timing::Begun;
pub use watch::Watch;

/// GPUs that are counted.
pub const GPUS: usize = 16;

/// Sizes that are told apart.
pub const SIZES: usize = 16;

const HEAD: usize = 5;
const WAY: usize = 1 + 8 * SIZES + 2;
const WORDS: usize = HEAD + GPUS * 2 * WAY;

/// Bytes of the first piece, by which readers know its layout.
pub const REGION_BYTES: usize = WORDS * 8;

/// Bytes of the layout of AMD's first release, which calls itself version 1 too: level, version, and 64 counters, of which the first
/// four are bytes of fastpath reads and writes, and of fallback reads and writes.
pub(crate) const OLD_REGION_BYTES: usize = 66 * 8;

/// How often the first piece is brought up to date once somebody has it.
const REFRESH: Duration = Duration::from_millis(250);

/// Words before the reasons in the sum of the second piece.
const MORE_HEAD: usize = 2;

/// What else is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Batches set up.
    BatchSetUps,
    /// Calls that submitted operations.
    BatchSubmits,
    /// Calls that were refused.
    BatchSubmitErrors,
    /// Operations submitted.
    BatchOperations,
    /// Operations that ran to their end, well or not; not those that were cancelled.
    BatchProcessed,
    /// Calls that cancelled.
    BatchCancels,
    /// Batches destroyed.
    BatchDestroys,
    /// Bytes that batches read.
    BatchReadBytes,
    /// Bytes that batches wrote.
    BatchWriteBytes,
    /// Asynchronous operations submitted.
    StreamOperations,
}

/// How many counters there are.
const COUNTERS: usize = Counter::StreamOperations as usize + 1;

/// Which way a request went, as the first piece has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Fastpath,
    /// Through host memory, or host memory itself.
    Fallback,
}

/// The size of a request among [`SIZES`].
pub const fn size_index(bytes: usize) -> usize {
    let pages = bytes >> 12;
    if pages == 0 {
        return 0;
    }
    let index = pages.ilog2() as usize + 1;
    if index < SIZES { index } else { SIZES - 1 }
}

/// The counters of a runtime. Set up when the driver is first opened, if there shall be any.
#[derive(Debug)]
pub(crate) struct Stats {
    level: u8,
    regions: OnceLock<Option<Arc<Regions>>>,
    server: OnceLock<Option<Server>>,
}

#[derive(Debug)]
struct Regions {
    first: Shared,
    blocks: Blocks,
}

impl Regions {
    /// Brings the first piece up to date.
    fn refresh(&self) {
        let sums = blocks::sum(&self.blocks).map(|(first, _)| first).unwrap_or_default();
        // Version and level stay.
        for (word, value) in sums.into_iter().enumerate().skip(2) {
            // What was never counted needs no memory.
            if value != 0 {
                self.first.set(word, value);
            }
        }
    }
}

impl Stats {
    pub(crate) const fn new(level: u8) -> Self {
        Self { level, regions: OnceLock::new(), server: OnceLock::new() }
    }

    /// Sets up memory and, for other programs, its server.
    pub(crate) fn start(&self, log: &Log) {
        if self.level == 0 || self.regions.get().is_some() {
            return;
        }
        self.regions.get_or_init(|| match self.set_up() {
            Ok((regions, readers)) => {
                let regions = Arc::new(regions);
                let refreshed = Arc::clone(&regions);
                let refresh = move || refreshed.refresh();
                let server = Server::start(readers, refresh).inspect_err(|error| {
                    log.say(Level::Info, || format!("nobody can look at the statistics: {error}"));
                });
                // Nobody else comes here.
                let _ = self.server.set(server.ok());
                Some(regions)
            }
            Err(errno) => {
                log.say(Level::Info, || format!("there are no statistics: {errno}"));
                None
            }
        });
    }

    fn set_up(&self) -> Result<(Regions, [OwnedFd; 2]), Errno> {
        let (first, first_reader) = Shared::new(c"AISSTATS", WORDS)?;
        let (blocks, second_reader) = Blocks::new()?;
        first.set(0, 1);
        first.set(1, u64::from(self.level));
        Ok((Regions { first, blocks }, [first_reader, second_reader]))
    }

    /// Ends the server.
    pub(crate) fn stop(&self) {
        if let Some(Some(server)) = self.server.get() {
            server.stop();
        }
    }

    /// The calling thread's counters, if anything is counted.
    fn mine(&self) -> Option<Block<'_>> {
        self.regions.get()?.as_ref()?.blocks.mine()
    }

    /// Begins a request of `asked` bytes that goes a way of a GPU.
    pub(crate) fn begin(
        &self,
        device: i32,
        path: Path,
        direction: Direction,
        asked: usize,
    ) -> Begun<'_> {
        let begun = |mine| Begun::new(mine, device, path, direction, asked);
        self.mine().map_or(Begun::NOT_COUNTED, begun)
    }

    /// Counts a request that could not take the fastpath, or failed on it.
    pub(crate) fn refused(&self, device: i32, direction: Direction, reason: Reason) {
        let Some(mine) = self.mine() else { return };
        mine.refused(reason);
        if reason.is_alignment()
            && let Some(way) = way(device, Path::Fallback)
        {
            mine.used(way);
            mine.way(way, 1 + 8 * SIZES + direction as usize, 1);
        }
    }

    /// Counts a registration of a file.
    pub(crate) fn file_registered(&self) {
        if let Some(mine) = self.mine() {
            mine.file();
        }
    }

    /// Counts a registration of a buffer.
    pub(crate) fn buffer_registered(&self) {
        if let Some(mine) = self.mine() {
            mine.buffer();
        }
    }

    /// Counts anything else.
    pub(crate) fn count(&self, counter: Counter, value: u64) {
        if let Some(mine) = self.mine() {
            mine.count(counter, value);
        }
    }

    /// Everything counted so far.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Error> {
        let none = |what| Error::NoStatistics { what };
        if self.level == 0 {
            return Err(none("HIPFILE_STATS_LEVEL is 0"));
        }
        let regions = match self.regions.get() {
            Some(Some(regions)) => regions,
            Some(None) => return Err(none("their memory could not be set up")),
            None => return Ok(Snapshot { level: u64::from(self.level), ..Snapshot::default() }),
        };
        Ok(Snapshot::sum(self.level.into(), &regions.blocks).unwrap_or_default())
    }
}

/// The number of a way of a GPU among all.
fn way(device: i32, path: Path) -> Option<usize> {
    let device = usize::try_from(device).ok().filter(|device| *device < GPUS)?;
    Some(device * 2 + path as usize)
}

/// Reads or writes of one way of one GPU, by size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Bytes moved.
    pub bytes: [u64; SIZES],
    /// Requests that moved them.
    pub count: [u64; SIZES],
    /// How long these took.
    pub micros: [u64; SIZES],
    /// Requests that failed.
    pub errors: [u64; SIZES],
    /// Requests that did not take the fastpath for their alignment.
    pub unaligned: u64,
}

impl Side {
    /// The sums over all sizes: bytes, requests, time, errors.
    pub fn totals(&self) -> (u64, u64, Duration, u64) {
        let sum = |table: &[u64]| table.iter().fold(0_u64, |sum, value| sum.wrapping_add(*value));
        (
            sum(&self.bytes),
            sum(&self.count),
            Duration::from_micros(sum(&self.micros)),
            sum(&self.errors),
        )
    }
}

/// The ways of one GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuStats {
    /// Its number.
    pub index: usize,
    /// Fastpath reads and writes.
    pub fastpath: [Side; 2],
    /// Fallback reads and writes.
    pub fallback: [Side; 2],
}

/// What was counted until some moment. The counters were read one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// How much is counted.
    pub level: u64,
    /// Files registered.
    pub files: u64,
    /// Buffers registered.
    pub buffers: u64,
    /// Requests that did not take the fastpath, or failed on it.
    pub refused: u64,
    /// GPUs with I/O.
    pub gpus: Vec<GpuStats>,
    /// Requests for each reason that was met.
    pub reasons: Vec<(Reason, u64)>,
    /// Bytes of fastpath reads and writes, fallback reads and writes, if a library counts nothing else: AMD's first release.
    pub only_bytes: Option<[u64; 4]>,
    counters: Vec<u64>,
}

impl Snapshot {
    /// Reads the words of AMD's first release.
    pub(crate) fn parse_old(words: &[u64]) -> Self {
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        let only_bytes = Some(std::array::from_fn(|index| word(2 + index)));
        Self { level: word(0), only_bytes, ..Self::default() }
    }

    /// What was counted in blocks; `None` if they have another layout.
    fn sum(level: u64, source: &impl blocks::Source) -> Option<Self> {
        let (mut first, second) = blocks::sum(source)?;
        if let Some(place) = first.get_mut(1) {
            *place = level;
        }
        Some(Self::parse(&first, &second))
    }

    /// Reads the words of the first piece, and those of the second summed up; what is missing is zero.
    fn parse(first: &[u64], second: &[u64]) -> Self {
        let word = |index: usize| first.get(index).copied().unwrap_or_default();
        let more = |index: usize| second.get(index).copied().unwrap_or_default();
        let side = |base: usize, direction: usize| {
            let table = |number: usize| {
                std::array::from_fn(|size| word(base + 1 + (number * 2 + direction) * SIZES + size))
            };
            Side {
                bytes: table(0),
                count: table(1),
                micros: table(2),
                errors: table(3),
                unaligned: word(base + 1 + 8 * SIZES + direction),
            }
        };
        let gpu = |index: usize| {
            let bases = [HEAD + index * 2 * WAY, HEAD + (index * 2 + 1) * WAY];
            let is_used = bases.iter().any(|base| word(*base) != 0);
            let [fast, slow] = bases;
            is_used.then(|| GpuStats {
                index,
                fastpath: [side(fast, 0), side(fast, 1)],
                fallback: [side(slow, 0), side(slow, 1)],
            })
        };
        // A later version of this library may know more reasons.
        let known = (more(1) as usize).min(second.len());
        let reasons = Reason::ALL.iter().take(known).enumerate();
        let reasons = reasons.map(|(index, reason)| (*reason, more(MORE_HEAD + index)));
        Self {
            level: word(1),
            files: word(2),
            buffers: word(3),
            refused: word(4),
            gpus: (0..GPUS).filter_map(gpu).collect(),
            reasons: reasons.filter(|(_, count)| *count > 0).collect(),
            only_bytes: None,
            counters: (0..COUNTERS).map(|index| more(MORE_HEAD + known + index)).collect(),
        }
    }

    /// One of the other counters.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or_default()
    }
}
