//! One row of one run: the data set's unit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How far a row can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Index signed by a pinned key, hashes fit, the package read whole and its hash fits.
    Verified,
    /// Index signed by a pinned key, hashes fit; only a part of the package was read, so its own hash is not known.
    Partial,
    /// As one of the above, from an index whose end date has passed.
    Stale,
    /// The family signs no index.
    Unsigned,
}

impl Trust {
    /// The word used in data and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Partial => "partial",
            Self::Stale => "stale",
            Self::Unsigned => "unsigned",
        }
    }

    /// The trust a word stands for.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Verified, Self::Partial, Self::Stale, Self::Unsigned];
        all.into_iter().find(|trust| trust.as_str() == word)
    }
}

/// One row of one run, `fastpath.survey/1`. Unknown values are null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// `fastpath.survey/1`.
    pub schema: String,
    /// Names the run: the time it started, RFC 3339 UTC.
    pub run: String,
    /// The target as published, else the catalogue id.
    pub target: String,
    /// The catalogue id.
    pub id: String,
    /// Name of the distribution that was read.
    pub distribution: String,
    /// Its version.
    pub distribution_version: String,
    /// Kernel flavour.
    pub flavour: String,
    /// The package the configuration was read from.
    pub package: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Address of the repository.
    pub repository: Option<String>,
    /// Address of the package.
    pub url: Option<String>,
    /// Digest of the package as the index gives it, `sha256:...`.
    pub hash: Option<String>,
    /// The package file as it was named.
    pub input: Option<String>,
    /// The file inside.
    pub member: Option<String>,
    /// The kernel's release.
    pub release: Option<String>,
    /// The version in the configuration's header.
    pub header_version: Option<String>,
    /// The option's value.
    pub value: Option<String>,
    /// 1-based line of the option.
    pub line: Option<u32>,
    /// The verdict.
    pub verdict: String,
    /// Companion options by name.
    pub companions: BTreeMap<String, Option<String>>,
    /// Ids of advisories that mark the kernel.
    pub advisories: Vec<String>,
    /// How far the row can be trusted; null if it failed before that was known.
    pub trust: Option<Trust>,
    /// How the row was made.
    pub method: String,
    /// When this row was made, RFC 3339 UTC.
    pub time: String,
    /// Version of the program.
    pub tool: String,
    /// How many bytes of packages were read.
    pub bytes_read: u64,
    /// How many bytes of indexes were read.
    pub index_bytes: u64,
    /// Why the row failed: one line; null if it did not.
    pub error: Option<String>,
    /// A remark, for example that a stand-in was read.
    pub note: Option<String>,
}
