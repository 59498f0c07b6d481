//! Why a repository gave no kernel.

use std::io;

use fastpath_artifact::http::{FetchError, shown};

use crate::trust::TrustError;

/// An error names the address, without credentials, and where there is one the offset.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// It could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The bytes contradict their own format.
    #[error("{url}: damaged {format} at offset {offset}: {detail}")]
    Damaged {
        /// The address.
        url: String,
        /// The format: `repomd.xml`, `primary.xml`, `rpm header`.
        format: &'static str,
        /// Where, in bytes from the start of what it decompresses to.
        offset: u64,
        /// Expected and found.
        detail: String,
    },
    /// Not signed by a pinned key, or another file than the one announced.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// More than is taken.
    #[error("{url}: more than {limit} {what}")]
    TooLarge {
        /// The address.
        url: String,
        /// Of what: `bytes`, `bytes decompressed`, `packages`.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// A known kind that is not read here.
    #[error("{url}: {detail}")]
    Unsupported {
        /// The address.
        url: String,
        /// What, and what would be read.
        detail: String,
    },
    /// A location that is not followed.
    #[error("{url}: location `{location}` is refused: {detail}")]
    Location {
        /// The index that names it.
        url: String,
        /// As it stands there.
        location: String,
        /// Why.
        detail: &'static str,
    },
    /// The package is not there.
    #[error("{url}: no package `{package}` for {arch}")]
    NoPackage {
        /// The repository, or repositories.
        url: String,
        /// The name.
        package: String,
        /// The architecture.
        arch: String,
    },
    /// A signature that is missing.
    #[error("{url}: {detail}")]
    Signature {
        /// The address of what is signed.
        url: String,
        /// What was expected, and found.
        detail: String,
    },
    /// The package is another one than the index says.
    #[error("{url}: {what}: the index says {expected}, the package {found}")]
    Mismatch {
        /// The address.
        url: String,
        /// `name`, `version`.
        what: &'static str,
        /// In the index.
        expected: String,
        /// In the package.
        found: String,
    },
}

impl IndexError {
    pub(crate) fn damaged(
        url: &str,
        format: &'static str,
        offset: u64,
        detail: impl Into<String>,
    ) -> Self {
        Self::Damaged { url: shown(url), format, offset, detail: one_line(&detail.into()) }
    }

    pub(crate) fn unsupported(url: &str, detail: impl Into<String>) -> Self {
        Self::Unsupported { url: shown(url), detail: one_line(&detail.into()) }
    }

    /// The error of a reader over what is at `url`: of the connection, of a check, or else of what decodes.
    pub(crate) fn of_read(url: &str, format: &'static str, offset: u64, error: io::Error) -> Self {
        let error = match error.downcast::<FetchError>() {
            Ok(error) => return error.into(),
            Err(error) => error,
        };
        match error.downcast::<TrustError>() {
            Ok(error) => error.into(),
            Err(error) => Self::damaged(url, format, offset, error.to_string()),
        }
    }

    pub(crate) fn signature(url: &str, detail: impl Into<String>) -> Self {
        Self::Signature { url: shown(url), detail: one_line(&detail.into()) }
    }
}

/// What is found wrong may quote what was read, as parsers of other crates do: no more than one line of it.
fn one_line(detail: &str) -> String {
    const MOST: usize = 300;
    detail
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_line_end_does_not_make_two_lines_of_an_error() {
        let detail =
            format!("expected `</checksum>`, found `</check\n\u{1b}[2J{}`", "x".repeat(1000));
        let error = IndexError::damaged("https://a.test/", "repomd.xml", 7, detail).to_string();
        let start = "https://a.test/: damaged repomd.xml at offset 7: expected `</checksum>`, found `</check\u{fffd}\u{fffd}[2Jxxx";
        assert!(error.starts_with(start), "{error}");
        assert!(error.len() < 400 && !error.contains(char::is_control));
    }
}
