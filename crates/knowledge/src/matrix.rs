//! The support matrix: targets, and what was published about their default kernels.

use serde::Deserialize;

use crate::release::Release;

/// A distribution whose default kernel is looked at: an operating system of ROCm's compatibility matrix, or another one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The name as published, `rhel-9.8`; the catalogue id where none was published.
    pub name: String,
    /// The name in the catalogue, accepted as well.
    pub id: String,
    /// `ID` of the system's `os-release`.
    pub os_id: String,
    /// `VERSION_ID` of the system's `os-release`; empty for a rolling release.
    pub os_version: String,
    /// The distribution that is read.
    pub distribution: String,
    /// Its version.
    pub version: String,
    /// Kernel flavour: `default`, `hwe`, `backports`, `cloud`, `rt`, `lowlatency`, `uek`, `rhck`.
    pub flavour: String,
    /// What is read in the stead of a system that cannot be.
    pub stand_in: Option<String>,
    /// A remark for its row.
    pub note: Option<String>,
    /// Where its kernel is found.
    pub source: Source,
}

/// Where a target's kernel is found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The kind of repository.
    pub family: RepositoryFamily,
    /// The architecture as the repository spells it.
    pub arch: String,
    /// Bases of the repositories; the highest version over all of them counts.
    pub repositories: Vec<String>,
    /// `ID` of the distribution whose apt configuration gives the mirrors.
    pub apt: Option<String>,
    /// Suites below `dists/`.
    #[serde(default)]
    pub suites: Vec<String>,
    /// Components of a suite.
    #[serde(default)]
    pub components: Vec<String>,
    /// The metapackage or package to start from.
    pub package: String,
    /// How to get from it to the package that holds the configuration.
    pub follow: Follow,
    /// What the distribution signs.
    pub signed: Signed,
    /// The set of pinned keys.
    pub keys: String,
}

/// Kinds of repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RepositoryFamily {
    /// `dists/`, Release and Packages.
    Deb,
    /// `repodata/repomd.xml`.
    Rpm,
    /// A database of `desc` files.
    Pacman,
}

/// How to get from a target's package to the one that holds the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Follow {
    /// Metapackage, first dependency `linux-image-R`; `linux-headers-R` of the same version, else the image itself.
    DebImageHeaders,
    /// Debian 7.x: metapackage, `linux-base-R`.
    DebSplit,
    /// `linux-generic`, `linux-image-generic`, `linux-image-R`; the smallest of `linux-headers-R` and `linux-modules-R`.
    UbuntuModules,
    /// `proxmox-default-kernel`, `proxmox-kernel-X.Y`, `proxmox-kernel-R-signed`.
    Proxmox,
    /// Every package of the name; the highest epoch, version and release.
    RpmHighest,
    /// The package of the name in the database.
    Pacman,
}

/// What a distribution signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signed {
    /// The repository's index, which holds hashes of the packages.
    Index,
    /// Each package, not the index.
    Package,
    /// Nothing that could be relied on.
    No,
}

/// A published table of rows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Who published it.
    pub origin: String,
    /// Where.
    pub url: String,
    /// When it was read, `YYYY-MM-DD`.
    pub date: String,
    /// How the values were found, in words.
    pub method: String,
    /// The rows, in published order.
    pub row: Vec<Row>,
}

/// One row: a target and its default kernel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The target's name.
    pub target: String,
    /// The operating system that was inspected.
    pub os: String,
    /// Its default kernel.
    pub kernel: Release,
    /// Whether that kernel's configuration has the option.
    pub p2pdma: bool,
}
