//! What the environment says, read once. `HIPFILE_ASYNC_BUFFER_SIZE` of other versions is not read: streams have no buffers of their
//! own here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

pub use fastpath_verdict::setting::{
    ALLOW_COMPAT_MODE, FORCE_COMPAT_MODE, UNSUPPORTED_FILE_SYSTEMS,
};
use fastpath_verdict::setting::{Reader, boolean as parse_bool};

use crate::error::Error;
use crate::log::Level;

/// 0 keeps no statistics, 1 to 3 keeps them. Default 1.
pub const STATS_LEVEL: &str = "HIPFILE_STATS_LEVEL";
/// `off`, `warn`, `info` or `debug`, to standard error. Default `warn`.
pub const LOG: &str = "HIPFILE_LOG";
/// Ids of blocking advisories that are accepted, with commas between them. All that mark the kernel must be named.
pub const ACCEPT_ADVISORY: &str = "HIPFILE_ACCEPT_ADVISORY";
/// One more knowledge file.
pub const KNOWLEDGE: &str = "HIPFILE_KNOWLEDGE";

/// The version that is reported, for programs that take only some: `0.4.0`. Default [`VERSION`].
pub const REPORT_VERSION: &str = "HIPFILE_REPORT_VERSION";

/// The version of hipFile whose behaviour this is.
pub const VERSION: [u32; 3] = [0, 5, 0];

/// The environment's wishes.
#[derive(Debug)]
pub struct Config {
    allow_fallback: AtomicBool,
    force_fallback: AtomicBool,
    /// Whether every file system is let on the fastpath.
    pub any_file_system: bool,
    /// How much is counted, 0 to 3.
    pub stats_level: u8,
    /// What is logged.
    pub log: Level,
    /// The advisories that the user takes the risk of.
    pub accepted: Vec<String>,
    /// The knowledge file that was named.
    pub knowledge: Option<PathBuf>,
    /// Major, minor and patch.
    pub reported_version: [u32; 3],
    /// One line for each value that could not be understood.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads this process's environment.
    pub fn from_environment() -> Self {
        Self::read(fastpath_gpu::variable)
    }

    /// Reads an environment.
    pub fn read(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut warnings = Vec::new();
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let mut boolean = |name: &str, default: bool| match get(name) {
            None => default,
            Some(value) => value
                .to_str()
                .and_then(|text| parse_bool(text, Reader::Ours))
                .unwrap_or_else(|| {
                    let shown = value.to_string_lossy();
                    warnings.push(format!(
                        "{name}: `{shown}` is neither true nor false; it stays {default}"
                    ));
                    default
                }),
        };
        let allow = boolean(ALLOW_COMPAT_MODE, true);
        let force = boolean(FORCE_COMPAT_MODE, false);
        let any_file_system = boolean(UNSUPPORTED_FILE_SYSTEMS, false);
        let stats_level = get(STATS_LEVEL).map_or(1, |value| {
            let digits = value.to_str().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            let Some(digits) = digits else {
                let shown = value.to_string_lossy();
                warnings.push(format!(
                    "{STATS_LEVEL}: `{shown}` is no level, which are 0 to 3; it stays 1"
                ));
                return 1;
            };
            // What is too large for a number is more than 3 all the same.
            digits.parse::<u64>().map_or(3, |level| level.min(3) as u8)
        });
        let log = get(LOG).map_or(Level::Warn, |value| {
            value.to_str().and_then(Level::parse).unwrap_or_else(|| {
                let shown = value.to_string_lossy();
                warnings.push(format!(
                    "{LOG}: `{shown}` is none of off, warn, info, debug; it stays warn"
                ));
                Level::Warn
            })
        });
        let reported_version = get(REPORT_VERSION).map_or(VERSION, |value| {
            value.to_str().and_then(parse_version).unwrap_or_else(|| {
                let shown = value.to_string_lossy();
                warnings.push(format!(
                    "{REPORT_VERSION}: `{shown}` is no version like 0.4.0; it stays 0.5.0"
                ));
                VERSION
            })
        });
        let accepted = get(ACCEPT_ADVISORY).map(|value| {
            let value = value.to_string_lossy().into_owned();
            value.split([',', ' ']).filter(|id| !id.is_empty()).map(str::to_owned).collect()
        });
        Self {
            allow_fallback: AtomicBool::new(allow),
            force_fallback: AtomicBool::new(force),
            any_file_system,
            stats_level,
            log,
            accepted: accepted.unwrap_or_default(),
            knowledge: get(KNOWLEDGE).map(PathBuf::from),
            reported_version,
            warnings,
        }
    }

    /// Whether I/O may take the fallback.
    pub fn allows_fallback(&self) -> bool {
        self.allow_fallback.load(Ordering::Relaxed)
    }

    /// Whether everything must.
    pub fn forces_fallback(&self) -> bool {
        self.force_fallback.load(Ordering::Relaxed)
    }

    /// Changes the first; holds for I/O that starts later.
    pub fn allow_fallback(&self, allow: bool) {
        self.allow_fallback.store(allow, Ordering::Relaxed);
    }

    /// Changes the second.
    pub fn force_fallback(&self, force: bool) {
        self.force_fallback.store(force, Ordering::Relaxed);
    }

    /// Whether any I/O is possible at all.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.forces_fallback() && !self.allows_fallback() {
            return Err(Error::NoWayAllowed);
        }
        Ok(())
    }
}

fn parse_version(text: &str) -> Option<[u32; 3]> {
    let mut numbers = text.trim().split('.').map(|number| number.parse().ok());
    let version = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(version)
}
