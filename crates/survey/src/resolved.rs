//! A package that holds a kernel's configuration, whatever kind of repository it is in.

use crate::record::Trust;
use crate::{pacman, rpm};

/// A package as the index describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Base of the repository, without credentials.
    pub repository: String,
    /// Where it is.
    pub url: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its digest as the index gives it, `sha256:...`.
    pub hash: String,
    /// How far the index can be trusted: [`Trust::Partial`] if signed, [`Trust::Stale`] or [`Trust::Unsigned`].
    pub trust: Trust,
    /// What is needed to check and read it.
    pub kind: Kind,
}

/// What is needed to check a package of each family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `.deb`: the signed index holds its digest.
    Deb(crate::trust::Digest),
    /// `.rpm`: perhaps signed itself.
    Rpm(rpm::Package),
    /// `.pkg.tar.zst`: perhaps signed itself.
    Pacman(pacman::Package),
}

fn trust(basis: rpm::Basis, stale: bool) -> Trust {
    match basis {
        rpm::Basis::Index | rpm::Basis::Package if stale => Trust::Stale,
        rpm::Basis::Index => Trust::Partial,
        // Until the package's own signature has been checked.
        rpm::Basis::Package | rpm::Basis::Nothing => Trust::Unsigned,
    }
}

impl From<rpm::Package> for Resolved {
    fn from(package: rpm::Package) -> Self {
        Self {
            package: package.name.clone(),
            version: package.evr.to_string(),
            repository: package.repository.clone(),
            url: package.url.clone(),
            size: package.size,
            hash: package.digest.to_string(),
            trust: trust(package.basis, package.stale),
            kind: Kind::Rpm(package),
        }
    }
}

impl From<pacman::Package> for Resolved {
    fn from(package: pacman::Package) -> Self {
        Self {
            package: package.name.clone(),
            version: package.version.clone(),
            repository: package.repository.clone(),
            url: package.url.clone(),
            size: package.size,
            hash: package.digest.to_string(),
            trust: trust(package.basis, package.stale),
            kind: Kind::Pacman(package),
        }
    }
}

impl From<crate::debian::Resolved> for Resolved {
    fn from(package: crate::debian::Resolved) -> Self {
        Self {
            package: package.package,
            version: package.version,
            repository: format!("{} {}", package.repository, package.suite),
            url: package.url,
            size: package.size,
            hash: package.digest.to_string(),
            trust: match package.standing {
                crate::debian::Standing::Signed => Trust::Partial,
                crate::debian::Standing::Stale(_) => Trust::Stale,
            },
            kind: Kind::Deb(package.digest),
        }
    }
}
