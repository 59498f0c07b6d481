//! What can be asked and set of the driver and its parameters.
//!
//! Upstream answers every one of these calls with an internal error. Here they return what is so, and setters check and keep the value;
//! where the library has no use for it, that is all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::batch;
use crate::bounce;
use crate::error::Error;
use crate::log::Level;
use crate::runtime::Runtime;
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

/// Sizes of `hipFileSizeTConfigParameter_t`, by number, with what they are at first.
const SIZES: [u64; 12] = [
    0,                           // profile stats
    128,                         // I/O queue depth
    32,                          // I/O threads
    bounce::SMALL as u64 / 1024, // threshold of I/O in pieces
    1,                           // parallelism of one request
    MAX_SIZE as u64 / 1024,      // direct I/O
    bounce::MOST as u64 / 1024,  // device cache
    bounce::LARGE as u64 / 1024, // cache of one buffer
    u64::MAX / 1024,             // pinned memory
    batch::MOST as u64,          // batch size
    4,                           // poll threshold
    0,                           // batch timeout
];

const PAGE: usize = 4096;

/// Of [`SIZES`].
const MAX_DIRECT_IO: usize = 5;
const MAX_CACHE: usize = 6;
const PER_BUFFER_CACHE: usize = 7;
const MAX_PINNED: usize = 8;
const POLL_THRESHOLD: usize = 10;

/// Booleans of `hipFileBoolConfigParameter_t`: how many, and those with a meaning of their own.
const BOOLEANS: u32 = 12;
const USE_POLL_MODE: u32 = 0;
const ALLOW_COMPAT_MODE: u32 = 1;
const FORCE_COMPAT_MODE: u32 = 2;
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
            sizes: SIZES.map(AtomicU64::new),
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
            max_batch: batch::MOST,
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
            number if number < SIZES.len() => Ok(self.parameters.size(number) as usize),
            _ => unknown(),
        }
    }

    /// `hipFileSetParameterSizeT`.
    pub fn set_size_parameter(&self, number: u32, value: usize) -> Result<(), Error> {
        let must_be_set = [MAX_DIRECT_IO, MAX_CACHE, MAX_PINNED].contains(&(number as usize));
        if must_be_set && value == 0 {
            return Err(Error::Argument { what: "the size is zero; expected KiB" });
        }
        let Some(place) = self.parameters.sizes.get(number as usize) else { return unknown() };
        place.store(value as u64, Ordering::Relaxed);
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

    /// `hipFileSetParameterBool`. The two compatibility modes act on I/O that starts later, as their variables do.
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
        let strings = self.parameters.strings.lock().unwrap_or_else(PoisonError::into_inner);
        strings.get(number as usize).map_or_else(unknown, |text| Ok(text.clone()))
    }

    /// `hipFileSetParameterString`. The logging level is one of `HIPFILE_LOG`'s; where a log is written is kept only.
    pub fn set_string_parameter(&self, number: u32, value: &str) -> Result<(), Error> {
        if number == LOGGING_LEVEL {
            let wrong = Error::Argument { what: "a logging level is off, warn, info or debug" };
            self.log.set_level(Level::parse(value).ok_or(wrong)?);
            return Ok(());
        }
        let mut strings = self.parameters.strings.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = strings.get_mut(number as usize) else { return unknown() };
        value.clone_into(place);
        Ok(())
    }
}
