//! Keys that sign repositories and packages, pinned by fingerprint.

use serde::Deserialize;

use crate::matrix::Target;

/// A key that may sign for a distribution.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedKey {
    /// The set of keys it belongs to, as a target's source names it.
    pub distribution: String,
    /// The version of the distribution, `9`; `*` for all.
    pub version: String,
    /// Fingerprint of the primary key, upper-case hexadecimal.
    pub fingerprint: String,
    /// The user id, for people.
    pub name: String,
    /// What it signs: `index`, or `package` (and the index, where that is signed).
    pub signs: String,
    /// The package and file it was read from.
    pub source: String,
    /// The end of its life, `YYYY-MM-DD`, if it has one.
    pub expires: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    key: Vec<PinnedKey>,
}

/// Every pinned key.
pub fn keys() -> Vec<PinnedKey> {
    // A test parses the embedded file, so the default is never taken.
    toml::from_str::<File>(include_str!("../data/keys.toml"))
        .map(|file| file.key)
        .unwrap_or_default()
}

impl PinnedKey {
    /// Whether it may sign what is read for the target.
    pub fn is_for(&self, target: &Target) -> bool {
        // A stand-in is signed by its own distribution, in its own version.
        let read = target.stand_in.as_deref().and_then(|name| name.rsplit(' ').next());
        let version = read.unwrap_or(&target.version);
        let rest = version.strip_prefix(self.version.as_str());
        let fits = self.version == "*"
            || rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
        self.distribution == target.source.keys && fits
    }
}
