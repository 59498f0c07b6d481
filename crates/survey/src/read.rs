//! From a resolved package to the kernel's configuration in it, read no further than needed.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use fastpath_artifact::http::{Cache, Fetch, RemoteFile};
use fastpath_artifact::{Evidence, Finder, Found, Limits};

use crate::record::Trust;
use crate::resolved::{Kind, Resolved};
use crate::rpm::{self, IndexError};
use crate::trust::Checked;
use crate::{kept, pacman};

/// What was read out of a package.
#[derive(Clone, Debug)]
pub struct PackageReading {
    /// The kernel's configuration, or the strongest word on it that the package has.
    pub found: Found,
    /// How far it can be trusted now.
    pub trust: Trust,
    /// How many bytes of the package were transferred.
    pub bytes_read: u64,
}

/// Why a package gave nothing. Each names the address.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It could not be fetched.
    #[error(transparent)]
    Fetch(#[from] fastpath_artifact::http::FetchError),
    /// It is not what the index means.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// It is damaged.
    #[error("{url}: {source}")]
    Artifact {
        /// The package's address.
        url: String,
        /// Why.
        source: fastpath_artifact::Error,
    },
    /// It could not be read.
    #[error("{url}: {source}")]
    Io {
        /// The package's address.
        url: String,
        /// Why.
        source: std::io::Error,
    },
    /// It has another size than the index says.
    #[error("{url}: {found} bytes, the index says {expected}")]
    Size {
        /// The package's address.
        url: String,
        /// As the index says.
        expected: u64,
        /// As the server says.
        found: u64,
    },
    /// There is no kernel in it.
    #[error("{url}: no kernel configuration in it, {bytes} bytes were read")]
    Nothing {
        /// The package's address.
        url: String,
        /// How many bytes were read.
        bytes: u64,
    },
}

/// Reads packages.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// Fetches them.
    pub fetch: &'a Arc<dyn Fetch>,
    /// Keeps what was read of them, and answers from that when nothing may be fetched.
    pub cache: &'a Cache,
    /// The distribution's keys.
    pub keys: rpm::Keys<'a>,
    /// Whether packages are read to their end and held against their digests first; else their size, and for an rpm its signed
    /// header, are all that can be checked.
    pub whole: bool,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("whole", &self.whole).finish_non_exhaustive()
    }
}

impl Reader<'_> {
    /// Reads the kernel's configuration out of a package.
    ///
    /// # Errors
    ///
    /// A [`ReadError`]: also when anything that can be checked is wrong. Never a lesser trust instead.
    pub fn read(&self, resolved: &Resolved) -> Result<PackageReading, ReadError> {
        if self.cache.is_offline() {
            let enough = |kept: &PackageReading| !self.whole || kept.trust == Trust::Verified;
            if let Some(kept) = kept::find(self.cache, resolved).filter(enough) {
                return Ok(kept);
            }
        }
        let reading = self.fetch_and_read(resolved)?;
        kept::keep(self.cache, resolved, &reading);
        Ok(reading)
    }

    fn fetch_and_read(&self, resolved: &Resolved) -> Result<PackageReading, ReadError> {
        let url = resolved.url.as_str();
        let mut remote = RemoteFile::open(Arc::clone(self.fetch), url)?;
        if let Some(found) = remote.length().filter(|length| *length != resolved.size) {
            let expected = resolved.size;
            return Err(ReadError::Size { url: remote.url(), expected, found });
        }
        let trust = self.check(&mut remote, resolved)?;
        rewind(&mut remote, resolved)?;
        let name = url.rsplit('/').next().unwrap_or(url);
        let mut best: Option<Found> = None;
        let summary = Finder::new(Limits::default(), true)
            .find(&mut remote, name, &mut |found| {
                let is_config = |one: &Found| matches!(one.evidence, Evidence::Config(_));
                if best.as_ref().is_none_or(|best| !is_config(best) && is_config(&found)) {
                    best = Some(found);
                }
            })
            .map_err(|source| match source {
                fastpath_artifact::Error::Fetch(error) => error.into(),
                source => ReadError::Artifact { url: remote.url(), source },
            })?;
        let bytes_read = remote.transferred().max(summary.bytes_read);
        let found =
            best.ok_or_else(|| ReadError::Nothing { url: remote.url(), bytes: bytes_read })?;
        Ok(PackageReading { found, trust, bytes_read })
    }

    /// Checks what can be checked before anything of the package is used.
    fn check(&self, remote: &mut RemoteFile, resolved: &Resolved) -> Result<Trust, ReadError> {
        let keys = &self.keys;
        // Signed itself, by a key that has expired since or not.
        let mut signed: Option<bool> = None;
        match &resolved.kind {
            Kind::Deb(digest) if self.whole => {
                let what = resolved.url.as_str();
                let checked = Checked::new(remote, what, Some(resolved.size), digest.clone());
                checked.finish().map_err(|error| IndexError::of_read(what, "package", 0, error))?;
            }
            Kind::Rpm(package) => {
                // A signed index vouches for the package by its digest; else the package must do so itself.
                let pins = if package.basis == rpm::Basis::Index { &[][..] } else { keys.pins };
                let head = rpm::authenticate(package, &rpm::Keys { pins, ..*keys }, remote)?;
                signed = head.signature.as_ref().map(|signature| signature.stale);
                if self.whole {
                    rewind(remote, resolved)?;
                    rpm::verify_whole(package, Some(&head), remote as &mut dyn Read)?;
                }
            }
            // Its signature covers the whole file.
            Kind::Pacman(package) if self.whole => {
                let meter = remote.meter().clone();
                let access =
                    rpm::Access { fetch: self.fetch.as_ref(), cache: self.cache, meter: &meter };
                let signature = pacman::authenticate(&access, package, keys, remote)?;
                signed = signature.map(|signature| signature.stale);
            }
            Kind::Deb(_) | Kind::Pacman(_) => {}
        }
        let trust = match (resolved.trust, signed) {
            (Trust::Unsigned, Some(true)) => Trust::Stale,
            (Trust::Unsigned, Some(false)) => Trust::Partial,
            (trust, _) => trust,
        };
        Ok(if self.whole && trust == Trust::Partial { Trust::Verified } else { trust })
    }
}

fn rewind(remote: &mut RemoteFile, resolved: &Resolved) -> Result<(), ReadError> {
    remote
        .seek(SeekFrom::Start(0))
        .map_err(|source| ReadError::Io { url: resolved.url.clone(), source })?;
    Ok(())
}
