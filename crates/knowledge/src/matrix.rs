//! The support matrix: targets, and what was published about their default kernels.

use std::sync::OnceLock;

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
    /// Whether all of that version stays the same while a system is updated, not only the part before the dot.
    #[serde(default)]
    whole_version: bool,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    target: Vec<Target>,
}

/// The embedded targets, parsed when they are first asked for: a host is judged without them.
pub fn catalogue() -> &'static [Target] {
    static CATALOGUE: OnceLock<Vec<Target>> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        // A test parses the embedded file, so the default is never taken.
        toml::from_str::<Catalogue>(include_str!("../data/catalogue.toml"))
            .map(|file| file.target)
            .unwrap_or_default()
    })
}

impl Target {
    /// What of the system's version stays the same while it is updated: `9` of 9.8, but the whole of Ubuntu's 24.04.
    pub fn series(&self) -> &str {
        self.series_of(&self.os_version)
    }

    /// The same of another version of the system, in the way of this target: its whole or the part before the dot.
    pub fn series_of<'a>(&self, version: &'a str) -> &'a str {
        if self.whole_version { version } else { version.split('.').next().unwrap_or_default() }
    }

    /// Whether a system of the other target can be updated to this one and back without being set up anew.
    pub fn is_same_system(&self, other: &Self) -> bool {
        self.os_id == other.os_id && self.series() == other.series()
    }
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
    /// Ids of the repositories in the system's own dnf configuration that hold the kernel.
    #[serde(default)]
    pub dnf: Vec<String>,
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
