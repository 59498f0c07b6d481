//! Repositories of Debian's kind: Debian, Ubuntu, Proxmox.
//!
//! A repository has *suites*, here called pockets as Ubuntu does: the plain one, which stays as it was released, and those
//! with updates, security fixes and backports. Each has a signed `InRelease` (or `Release` with `Release.gpg`), which
//! holds the hashes of its `Packages` indexes, and those hold the hashes of packages. That chain is followed here; a link
//! that does not fit is an error, and nothing weaker is tried in its place.
//!
//! Format: <https://wiki.debian.org/DebianRepository/Format>.

mod packages;
mod release;
mod resolve;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fastpath_artifact::http::{Cache, Fetch, FetchError, Meter, join};

use crate::trust::{Fingerprint, Keyring, Signer, TrustError};
pub use packages::Index;
pub use resolve::{Follow, Query, Resolved, all_kernels, resolve};

/// One suite of a repository, as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pocket {
    /// Bases of the repository, the first one that answers is used: `http://deb.example.org/debian`.
    pub bases: Vec<String>,
    /// The suite: `bookworm-security`.
    pub suite: String,
    /// Its components: `main`.
    pub components: Vec<String>,
    /// The architecture in Debian's spelling: `amd64`.
    pub arch: String,
    /// Whether an index past its end date is an error; if not, it is marked stale.
    pub check_valid_until: bool,
}

/// Why a repository gave no kernel.
#[derive(Debug, thiserror::Error)]
pub enum DebianError {
    /// Something could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Something is not signed as it must be, or not what was signed.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The index is past its end date.
    #[error("{url}: the index is past its end: expected a date before {until}, found {now}")]
    Expired {
        /// The signed file.
        url: String,
        /// Its `Valid-Until`.
        until: String,
        /// The date it is now.
        now: String,
    },
    /// The key that signed has expired since.
    #[error("{url}: the key {key} that signed it has expired since")]
    ExpiredKey {
        /// The signed file.
        url: String,
        /// The key.
        key: Fingerprint,
    },
    /// The signed file is not what it should be.
    #[error("{url}: {field}: expected {expected}, found {found}")]
    Release {
        /// The signed file.
        url: String,
        /// The field.
        field: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A package index that contradicts its format.
    #[error("{url}: line {line}: {detail}")]
    Packages {
        /// The index.
        url: String,
        /// 1-based, in the decompressed index.
        line: u64,
        /// Expected and found.
        detail: String,
    },
    /// A package is not in the indexes.
    #[error("{repository}: expected the package {package}, found none in {suites}")]
    NoPackage {
        /// The repository.
        repository: String,
        /// The package, with the version wanted if there is one.
        package: String,
        /// The suites looked at.
        suites: String,
    },
    /// The dependencies of a package lead to no kernel.
    #[error(
        "{repository}: {package} {version}: expected a kernel among its dependencies, found `{depends}`"
    )]
    NoKernel {
        /// The repository.
        repository: String,
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// Its dependencies.
        depends: String,
    },
    /// There is no mirror to ask.
    #[error("{suite}: no mirror is known for it; name one")]
    NoMirror {
        /// The suite.
        suite: String,
    },
}

/// How far an index can be trusted. One that is not signed is never used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Signed by a pinned key and not past its end.
    Signed,
    /// Signed by a pinned key, but the index or the key is past its end: why.
    Stale(String),
}

/// What is needed to read repositories. Indexes that were read are kept: a second target of the same suites costs nothing.
pub struct Repositories<'a> {
    /// Fetches.
    pub fetch: &'a dyn Fetch,
    /// Keeps indexes for the next run.
    pub cache: &'a Cache,
    /// Keys at hand.
    pub keyring: &'a Keyring,
    /// Whether everything past its end may be used, and is marked stale.
    pub allow_stale: bool,
    /// Seconds since 1970.
    pub now: i64,
    loaded: Mutex<HashMap<Key, Slot>>,
}

type Key = (Pocket, Vec<Fingerprint>);
type Slot = Arc<Mutex<Option<Arc<Loaded>>>>;

impl std::fmt::Debug for Repositories<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repositories")
            .field("allow_stale", &self.allow_stale)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// A pocket that was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The base that answered.
    pub base: String,
    /// The suite.
    pub suite: String,
    /// Its kernel packages.
    pub index: Index,
    /// How far it can be trusted.
    pub standing: Standing,
    /// Who signed it.
    pub signers: Vec<Signer>,
    /// `Date` of the signed file, seconds since 1970.
    pub date: i64,
}

impl<'a> Repositories<'a> {
    /// A reader of repositories.
    pub fn new(
        fetch: &'a dyn Fetch,
        cache: &'a Cache,
        keyring: &'a Keyring,
        allow_stale: bool,
        now: i64,
    ) -> Self {
        Self { fetch, cache, keyring, allow_stale, now, loaded: Mutex::default() }
    }

    /// Reads a pocket, or gives what was read of it before. What is transferred is added to `meter`.
    ///
    /// # Errors
    ///
    /// A [`DebianError`].
    pub fn load(
        &self,
        pocket: &Pocket,
        pins: &[Fingerprint],
        meter: &Meter,
    ) -> Result<Arc<Loaded>, DebianError> {
        let slot = {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(loaded.entry((pocket.clone(), pins.to_vec())).or_default())
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = &*slot {
            return Ok(Arc::clone(loaded));
        }
        let mut result = Err(DebianError::NoMirror { suite: pocket.suite.clone() });
        for base in &pocket.bases {
            result = self.load_from(base, pocket, pins, meter);
            // Only a mirror that could not be reached is passed over: what one says wrongly is never put right by another.
            if !matches!(result, Err(DebianError::Fetch(_))) {
                break;
            }
        }
        let loaded = Arc::new(result?);
        *slot = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    fn load_from(
        &self,
        base: &str,
        pocket: &Pocket,
        pins: &[Fingerprint],
        meter: &Meter,
    ) -> Result<Loaded, DebianError> {
        let base = format!("{}/", base.trim_end_matches('/'));
        let folder = join(&base, &format!("dists/{}/", pocket.suite));
        let release = release::load(self, &folder, pocket, pins, meter)?;
        let mut index = Index::default();
        for component in &pocket.components {
            packages::load(self, &folder, &release, component, &pocket.arch, &mut index, meter)?;
        }
        Ok(Loaded {
            base,
            suite: pocket.suite.clone(),
            index,
            standing: release.standing,
            signers: release.signers,
            date: release.date,
        })
    }
}
