//! What can be asked and set of the driver and its parameters.
//!
//! Upstream answers every one of these calls with an internal error. Here they return what is so, and a value that the library cannot
//! keep to is refused. A hint that it has no use for is kept, and that is all.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::batch;
use crate::bounce;
use crate::error::Error;
use crate::log::Level;
use crate::queue;
use crate::runtime::Runtime;
use crate::sync::lock;
use crate::transfer::MAX_SIZE;

/// `hipFileDriverProps_t`; sizes are in KiB, flags are bit positions of the specification's enums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Below it, reads are polled for; kept only.
    pub poll_threshold: u64,
    /// The largest request to the driver; larger ones go in pieces.
    pub max_direct_io: u64,
    /// `hipFileDriverStatusFlags_t`: NVMe, and peer-to-peer with it, if the fastpath is open.
    pub status_flags: u32,
    /// `hipFileDriverControlFlags_t`.
    pub control_flags: u32,
    /// `hipFileFeatureFlags_t`: batches, streams, parallel I/O.
    pub features: u32,
    /// Host memory for the fallback's large pieces at most.
    pub max_device_cache: u64,
    /// Of that, one piece.
    pub per_buffer_cache: u64,
    /// Pinned memory at most, which is what the fallback's is.
    pub max_pinned: u64,
    /// Operations in a batch.
    pub max_batch: u32,
    /// Milliseconds until a batch gives up; zero, since it does not.
    pub batch_timeout: u32,
}

const POLL_MODE: u32 = 1;
const ALLOW_COMPAT: u32 = 1 << 1;
const NVME: u32 = 1 << 4;
const NVME_P2P: u32 = 1 << 11;
const FEATURES: u32 = 1 << 1 | 1 << 2 | 1 << 3;

/// A size of `hipFileSizeTConfigParameter_t`.
struct Size {
    what: &'static str,
    at_first: u64,
    lowest: u64,
    highest: u64,
}

const fn size(what: &'static str, at_first: u64, lowest: u64, highest: u64) -> Size {
    Size { what, at_first, lowest, highest }
}

const ANY: u64 = u64::MAX;
const PIECE: u64 = bounce::LARGE as u64 / 1024;
const THREADS: u64 = queue::MOST as u64;

/// By number; the first one is the level of the statistics, which is not set here.
const SIZES: [Size; 12] = [
    size("the statistics' level", 0, 0, 3),
    size("the queue's depth", 128, 1, ANY),
    size("the number of I/O threads", THREADS, 1, THREADS),
    size("the size from which I/O goes in pieces, in KiB,", bounce::SMALL as u64 / 1024, 0, ANY),
    size("the parallelism of a request", 1, 1, ANY),
    size("the largest direct I/O in KiB", MAX_SIZE as u64 / 1024, 1, ANY),
    size("the cache in KiB", bounce::MOST as u64 / 1024, 1, ANY),
    size("one buffer's cache in KiB", PIECE, PIECE, PIECE),
    size("the pinned memory in KiB", ANY / 1024, 1, ANY),
    size("the size of a batch", batch::MOST as u64, 1, batch::MOST as u64),
    size("the threshold for polling in KiB", 4, 0, ANY),
    size("the timeout of a batch in ms", 0, 0, 0),
];

const PAGE: usize = 4096;

/// Of [`SIZES`].
const PROFILE_STATS: usize = 0;
const MAX_DIRECT_IO: usize = 5;
const MAX_CACHE: usize = 6;
const PER_BUFFER_CACHE: usize = 7;
const MAX_PINNED: usize = 8;
const BATCH_SIZE: usize = 9;
const POLL_THRESHOLD: usize = 10;

/// Booleans of `hipFileBoolConfigParameter_t`: how many, and those with a meaning of their own.
const BOOLEANS: u32 = 12;
const USE_POLL_MODE: u32 = 0;
const ALLOW_COMPAT_MODE: u32 = 1;
const FORCE_COMPAT_MODE: u32 = 2;
const ALLOW_SYSTEM_MEMORY: u32 = 6;
const USE_P2PDMA: u32 = 7;
/// Parallel I/O is on, and P2PDMA is what the fastpath uses.
const BOOLEANS_AT_FIRST: u64 = 1 << 4 | 1 << 6 | 1 << 7;

/// Strings of `hipFileStringConfigParameter_t`.
const STRINGS: usize = 3;
const LOGGING_LEVEL: u32 = 0;

#[derive(Debug)]
pub(crate) struct Parameters {
    sizes: [AtomicU64; SIZES.len()],
    booleans: AtomicU64,
    strings: Mutex<[String; STRINGS]>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            sizes: SIZES.map(|size| AtomicU64::new(size.at_first)),
            booleans: AtomicU64::new(BOOLEANS_AT_FIRST),
            strings: Mutex::default(),
        }
    }
}

fn unknown<T>() -> Result<T, Error> {
    Err(Error::Argument { what: "there is no such parameter" })
}

impl Parameters {
    fn size(&self, number: usize) -> u64 {
        self.sizes.get(number).map_or(0, |size| size.load(Ordering::Relaxed))
    }

    /// Bytes that go directly at once: whole pages, at least one.
    pub(crate) fn max_direct_io(&self) -> usize {
        let bytes = self.size(MAX_DIRECT_IO).saturating_mul(1024).min(MAX_SIZE as u64);
        (bytes as usize & !(PAGE - 1)).max(PAGE)
    }

    fn boolean(&self, number: u32) -> bool {
        self.booleans.load(Ordering::Relaxed) >> number & 1 == 1
    }

    /// Whether the fastpath may be taken.
    pub(crate) fn uses_p2pdma(&self) -> bool {
        self.boolean(USE_P2PDMA)
    }

    /// Whether buffers may be memory of the host.
    pub(crate) fn allows_system_memory(&self) -> bool {
        self.boolean(ALLOW_SYSTEM_MEMORY)
    }

    /// Operations in a new batch at most.
    pub(crate) fn batch_size(&self) -> u32 {
        self.size(BATCH_SIZE) as u32
    }

    fn set_boolean(&self, number: u32, value: bool) {
        if value {
            self.booleans.fetch_or(1 << number, Ordering::Relaxed);
        } else {
            self.booleans.fetch_and(!(1 << number), Ordering::Relaxed);
        }
    }
}

impl Runtime {
    /// `hipFileDriverGetProperties`.
    pub fn properties(&self) -> Properties {
        let size = |number| self.parameters.size(number);
        let is_open = self.gpu().is_ok_and(|gpu| self.closed(gpu.as_ref()).is_none());
        let control = if self.config.allows_fallback() { ALLOW_COMPAT } else { 0 };
        let polls = if self.parameters.boolean(USE_POLL_MODE) { POLL_MODE } else { 0 };
        Properties {
            poll_threshold: size(POLL_THRESHOLD),
            max_direct_io: size(MAX_DIRECT_IO),
            status_flags: if is_open { NVME | NVME_P2P } else { 0 },
            control_flags: control | polls,
            features: FEATURES,
            max_device_cache: size(MAX_CACHE),
            per_buffer_cache: size(PER_BUFFER_CACHE),
            max_pinned: size(MAX_PINNED),
            max_batch: self.parameters.batch_size(),
            batch_timeout: 0,
        }
    }

    /// `hipFileDriverSetPollMode`; the threshold in KiB.
    pub fn set_poll_mode(&self, polls: bool, threshold: usize) -> Result<(), Error> {
        self.set_size_parameter(POLL_THRESHOLD as u32, threshold)?;
        self.parameters.set_boolean(USE_POLL_MODE, polls);
        Ok(())
    }

    /// `hipFileDriverSetMaxDirectIOSize`, in KiB.
    pub fn set_max_direct_io(&self, size: usize) -> Result<(), Error> {
        self.set_size_parameter(MAX_DIRECT_IO as u32, size)
    }

    /// `hipFileDriverSetMaxCacheSize`, in KiB.
    pub fn set_max_cache(&self, size: usize) -> Result<(), Error> {
        self.set_size_parameter(MAX_CACHE as u32, size)
    }

    /// `hipFileDriverSetMaxPinnedMemSize`, in KiB.
    pub fn set_max_pinned(&self, size: usize) -> Result<(), Error> {
        self.set_size_parameter(MAX_PINNED as u32, size)
    }

    /// `hipFileGetParameterSizeT`.
    pub fn size_parameter(&self, number: u32) -> Result<usize, Error> {
        match number as usize {
            PROFILE_STATS => Ok(self.config.stats_level.into()),
            number if number < SIZES.len() => Ok(self.parameters.size(number) as usize),
            _ => unknown(),
        }
    }

    /// `hipFileSetParameterSizeT`.
    pub fn set_size_parameter(&self, number: u32, value: usize) -> Result<(), Error> {
        let places = SIZES.into_iter().zip(&self.parameters.sizes);
        let Some((size, place)) = places.into_iter().nth(number as usize) else {
            return unknown();
        };
        let Size { what, mut lowest, mut highest, .. } = size;
        if number as usize == PROFILE_STATS {
            // It is read when the driver first opens.
            (lowest, highest) = (self.config.stats_level.into(), self.config.stats_level.into());
        }
        let value = value as u64;
        if !(lowest..=highest).contains(&value) {
            return Err(Error::Limit { what, value, lowest, highest });
        }
        place.store(value, Ordering::Relaxed);
        if [MAX_CACHE, MAX_PINNED].contains(&(number as usize)) {
            let size = |number| self.parameters.size(number);
            self.lanes.limit(size(MAX_CACHE).min(size(MAX_PINNED)).saturating_mul(1024));
        }
        Ok(())
    }

    /// `hipFileGetParameterBool`.
    pub fn boolean_parameter(&self, number: u32) -> Result<bool, Error> {
        match number {
            ALLOW_COMPAT_MODE => Ok(self.config.allows_fallback()),
            FORCE_COMPAT_MODE => Ok(self.config.forces_fallback()),
            number if number < BOOLEANS => Ok(self.parameters.boolean(number)),
            _ => unknown(),
        }
    }

    /// `hipFileSetParameterBool`. The two compatibility modes, P2PDMA and system memory act on calls that start later.
    pub fn set_boolean_parameter(&self, number: u32, value: bool) -> Result<(), Error> {
        match number {
            ALLOW_COMPAT_MODE => self.config.allow_fallback(value),
            FORCE_COMPAT_MODE => self.config.force_fallback(value),
            number if number < BOOLEANS => self.parameters.set_boolean(number, value),
            _ => return unknown(),
        }
        Ok(())
    }

    /// `hipFileGetParameterString`.
    pub fn string_parameter(&self, number: u32) -> Result<String, Error> {
        if number == LOGGING_LEVEL {
            return Ok(self.log.level().as_str().to_owned());
        }
        let strings = lock(&self.parameters.strings);
        strings.get(number as usize).map_or_else(unknown, |text| Ok(text.clone()))
    }

    /// `hipFileSetParameterString`. The logging level is one of `HIPFILE_LOG`'s; where a log is written is kept only.
    pub fn set_string_parameter(&self, number: u32, value: &str) -> Result<(), Error> {
        if number == LOGGING_LEVEL {
            let wrong = Error::Argument { what: "a logging level is off, warn, info or debug" };
            self.log.set_level(Level::parse(value).ok_or(wrong)?);
            return Ok(());
        }
        let mut strings = lock(&self.parameters.strings);
        let Some(place) = strings.get_mut(number as usize) else { return unknown() };
        value.clone_into(place);
        Ok(())
    }
}
