//! Three-valued logic: what is not known only matters if the answer depends on it.

use fastpath_knowledge::Known;

use crate::words::Reason;

/// Whether something holds, or why that cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    Unknown(Reason),
}

impl Answer {
    /// Both hold. A no decides, whatever the other is.
    pub(super) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, other) => other,
            (unknown, _) => unknown,
        }
    }

    /// At least one holds. A yes decides, whatever the other is.
    pub(super) const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, other) => other,
            (unknown, _) => unknown,
        }
    }

    pub(super) const fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            unknown @ Self::Unknown(_) => unknown,
        }
    }

    pub(super) const fn of(value: Option<bool>, otherwise: Reason) -> Self {
        match value {
            Some(true) => Self::Yes,
            Some(false) => Self::No,
            None => Self::Unknown(otherwise),
        }
    }
}

impl From<Known> for Answer {
    fn from(known: Known) -> Self {
        match known {
            Known::Yes => Self::Yes,
            Known::No => Self::No,
            Known::Unconfirmed => Self::Unknown(Reason::KernelUnconfirmed),
        }
    }
}
