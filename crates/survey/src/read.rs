//! From a resolved package to the kernel's configuration in it, read no further than needed.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use fastpath_artifact::http::{Fetch, RemoteFile};
use fastpath_artifact::{Evidence, Finder, Found, Limits};

use crate::record::Trust;
use crate::resolved::{Kind, Resolved};
use crate::rpm::{self, IndexError};
use crate::trust::Checked;

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

/// Reads the kernel's configuration out of a package. With `whole` the package is read to its end and held against its
/// digest first; else its size, and for an rpm its signed header, are all that can be checked.
///
/// # Errors
///
/// A [`ReadError`]: also when anything that can be checked is wrong. Never a lesser trust instead.
pub fn read(
    fetch: &Arc<dyn Fetch>,
    resolved: &Resolved,
    keys: &rpm::Keys<'_>,
    whole: bool,
) -> Result<PackageReading, ReadError> {
    let url = resolved.url.as_str();
    let mut remote = RemoteFile::open(Arc::clone(fetch), url)?;
    if let Some(found) = remote.length().filter(|length| *length != resolved.size) {
        let expected = resolved.size;
        return Err(ReadError::Size { url: remote.url(), expected, found });
    }
    let io = |source| ReadError::Io { url: url.to_owned(), source };
    let trust = check(&mut remote, resolved, keys, whole)?;
    remote.seek(SeekFrom::Start(0)).map_err(io)?;
    let name = url.rsplit('/').next().unwrap_or(url);
    let mut best: Option<Found> = None;
    let summary = Finder::new(Limits::default(), true)
        .find(&mut remote, name, &mut |found| {
            let is_config = |one: &Found| matches!(one.evidence, Evidence::Config(_));
            if best.as_ref().is_none_or(|best| !is_config(best) && is_config(&found)) {
                best = Some(found);
            }
        })
        .map_err(|source| ReadError::Artifact { url: remote.url(), source })?;
    let bytes_read = remote.transferred().max(summary.bytes_read);
    let found = best.ok_or_else(|| ReadError::Nothing { url: remote.url(), bytes: bytes_read })?;
    Ok(PackageReading { found, trust, bytes_read })
}

/// Checks what can be checked before anything of the package is used.
fn check(
    remote: &mut RemoteFile,
    resolved: &Resolved,
    keys: &rpm::Keys<'_>,
    whole: bool,
) -> Result<Trust, ReadError> {
    let mut trust = resolved.trust;
    match &resolved.kind {
        Kind::Deb(digest) if whole => {
            let what = resolved.url.as_str();
            let checked = Checked::new(remote, what, Some(resolved.size), digest.clone());
            checked
                .finish()
                .map_err(|source| ReadError::Io { url: resolved.url.clone(), source })?;
        }
        Kind::Rpm(package) => {
            // A signed index vouches for the package by its digest; else the package must do so itself.
            let pins = if package.basis == rpm::Basis::Index { &[][..] } else { keys.pins };
            let head = rpm::authenticate(package, &rpm::Keys { pins, ..*keys }, remote)?;
            if trust == Trust::Unsigned
                && let Some(signature) = &head.signature
            {
                trust = if signature.stale { Trust::Stale } else { Trust::Partial };
            }
            if whole {
                remote
                    .seek(SeekFrom::Start(0))
                    .map_err(|source| ReadError::Io { url: resolved.url.clone(), source })?;
                rpm::verify_whole(package, Some(&head), remote as &mut dyn Read)?;
            }
        }
        // Its signature covers the whole file: see `pacman::authenticate`.
        Kind::Pacman(package) if whole => crate::pacman::verify_whole(package, remote)?,
        Kind::Deb(_) | Kind::Pacman(_) => {}
    }
    let verified = whole && trust == Trust::Partial;
    Ok(if verified { Trust::Verified } else { trust })
}
