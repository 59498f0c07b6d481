//! The parts of a kernel release, `uname -r`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kernel release as `uname -r` prints it, for example `5.14.0-687.49.1.el9_8.x86_64`.
///
/// Only strings that can be a release are accepted: letters, digits and `._+~^@:-`, starting with a letter or digit, at most 64
/// bytes (`__NEW_UTS_LEN`). So a release can be put into a path, onto a terminal and into a shell command as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Release(String);

/// An Enterprise Linux dist tag: `el9_8` is major 9, minor 8; `el10` has no minor (CentOS Stream).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElTag {
    /// The number after `el`.
    pub major: u32,
    /// The number after the underscore.
    pub minor: Option<u32>,
}

/// The longest release the kernel can report, in bytes.
const MAX_LEN: usize = 64;

impl Release {
    /// Accepts a release, white space around it removed; `None` if it cannot be one.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+~^@:-".contains(&byte);
        let sound = text.len() <= MAX_LEN
            && text.bytes().all(plain)
            && text.starts_with(|first: char| first.is_ascii_alphanumeric());
        sound.then(|| Self(text.to_owned()))
    }

    /// The release as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The base version: the leading numbers and dots, `5.14.0`. Empty if the release does not start with a digit.
    pub fn base(&self) -> &str {
        let end = self.0.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.0.len());
        self.0[..end].trim_end_matches('.')
    }

    /// Major and minor number of the base version.
    pub fn major_minor(&self) -> Option<(u32, u32)> {
        major_minor(self.base())
    }

    /// Whether it is an upstream version and nothing else, `6.12.9` or `6.13.0-rc2`: no sign of somebody's own build.
    pub fn is_upstream(&self) -> bool {
        let rest = &self.0[self.base().len()..];
        let candidate = rest.strip_prefix("-rc").is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        !self.base().is_empty() && (rest.is_empty() || candidate)
    }

    /// What follows the base version and its hyphen; `None` without a hyphen there.
    pub fn local(&self) -> Option<&str> {
        self.0[self.base().len()..].strip_prefix('-')
    }

    /// The build number: the digits right after `<base>-`, `687` in `5.14.0-687.49.1.el9_8.x86_64`.
    pub fn build(&self) -> Option<&str> {
        let local = self.local()?;
        let end = local.find(|c: char| !c.is_ascii_digit()).unwrap_or(local.len());
        (end > 0).then(|| &local[..end])
    }

    /// Every Enterprise Linux dist tag in the release. A tag starts after a character that is no letter or digit and
    /// its numbers are read whole, so `el10_20` is not `el10_2`.
    pub fn el_tags(&self) -> impl Iterator<Item = ElTag> + '_ {
        let local = self.local().unwrap_or_default();
        local.match_indices("el").filter_map(|(at, _)| {
            if local[..at].ends_with(|c: char| c.is_ascii_alphanumeric()) {
                return None;
            }
            let (major, rest) = leading_number(&local[at + 2..])?;
            let minor = rest.strip_prefix('_').and_then(leading_number).map(|(minor, _)| minor);
            Some(ElTag { major, minor })
        })
    }
}

/// Major and minor number of a version such as `6.12` or `6.12.0-rc1`.
pub(crate) fn major_minor(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = leading_number(version)?;
    let (minor, _) = leading_number(rest.strip_prefix('.')?)?;
    Some((major, minor))
}

fn leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    // A number too large for any kernel still is one.
    let number = if end == 0 { return None } else { text[..end].parse().unwrap_or(u32::MAX) };
    Some((number, &text[end..]))
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Release {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text).ok_or_else(|| format!("`{}` is no kernel release", text.escape_debug()))
    }
}

impl From<Release> for String {
    fn from(release: Release) -> Self {
        release.0
    }
}
