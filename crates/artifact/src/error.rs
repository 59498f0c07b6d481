//! Why an input, or a part of it, could not be read.

/// An error names the member it happened in and, where there is one, the offset.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes contradict their own format.
    #[error("{member}: damaged {format} at offset {offset}: {detail}")]
    Damaged {
        /// The member, from the input's own name inwards, parts separated by `!`.
        member: String,
        /// The format, `tar` or `ext4`.
        format: &'static str,
        /// Where, in bytes from the start of the member.
        offset: u64,
        /// Expected and found.
        detail: String,
    },
    /// The bytes end before their end.
    #[error("{member}: {format} ends at offset {offset}, before its end")]
    Truncated {
        /// The member.
        member: String,
        /// The format.
        format: &'static str,
        /// Where it ends.
        offset: u64,
    },
    /// A known format of a kind that is not read here.
    #[error("{member}: {what} cannot be read: {detail}")]
    Unsupported {
        /// The member.
        member: String,
        /// The format and its variant.
        what: &'static str,
        /// What exactly.
        detail: String,
    },
    /// A bound was reached.
    #[error("{member}: more than {limit} {what}")]
    Limit {
        /// The member.
        member: String,
        /// What there is too much of: `bytes`, `members`, `levels`.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// The input is behind an address and could not be fetched: the error names that.
    #[error(transparent)]
    Fetch(crate::http::FetchError),
    /// The input itself could not be read.
    #[error("{member}: {source}")]
    Io {
        /// The member.
        member: String,
        /// Why.
        source: std::io::Error,
    },
}

impl Error {
    /// The content of an input that is nothing known.
    pub(crate) const UNKNOWN: &str = "the content";
    /// An input without content.
    pub(crate) const EMPTY: &str = "an empty file";

    /// Whether the input is nothing known, as opposed to a known format that is damaged or not read here.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unsupported { what, .. } if [Self::UNKNOWN, Self::EMPTY].contains(what))
    }

    /// The error of a reader of the input.
    pub(crate) fn of_input(member: String, error: std::io::Error) -> Self {
        match error.downcast() {
            Ok(error) => Self::Fetch(error),
            Err(source) => Self::Io { member, source },
        }
    }
}
