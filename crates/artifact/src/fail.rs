//! Failures on their way up, and the place they happened in.

use std::io;

use crate::error::Error;
use crate::filesystem::FsError;

/// Level of what ends the whole search: the input itself cannot be read, or a bound on all work is reached.
pub(crate) const FATAL: u32 = 0;

/// An error, and the level of the layer that can give nothing more because of it. Layers are counted from the input
/// inwards: a container goes on after the failure of anything inside it, and gives up on one of its own level or of a
/// layer around it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) level: u32,
    pub(crate) error: Error,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Failure {}

/// Readers can only give `io::Error`, so a failure travels through them inside one.
impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        Self::other(failure)
    }
}

/// A place inside the input: its name and the containers around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'p> {
    parent: Option<&'p Self>,
    /// Empty for a layer of compression, which has no name.
    name: &'p str,
    pub(crate) level: u32,
}

impl<'p> Place<'p> {
    pub(crate) const fn root(name: &'p str) -> Self {
        Self { parent: None, name, level: 0 }
    }

    pub(crate) const fn inside(&'p self, name: &'p str) -> Self {
        Self { parent: Some(self), name, level: self.level + 1 }
    }

    fn join(&self, with_root: bool) -> String {
        let mut parts = Vec::new();
        let mut place = Some(self);
        while let Some(here) = place {
            if !here.name.is_empty() && (with_root || here.parent.is_some()) {
                parts.push(here.name);
            }
            place = here.parent;
        }
        parts.reverse();
        parts.join("!")
    }

    /// The member from the input's own name inwards.
    pub(crate) fn full(&self) -> String {
        printable(&self.join(true))
    }

    /// The member without the input's name; `None` for the input itself.
    pub(crate) fn member(&self) -> Option<String> {
        let member = self.join(false);
        (!member.is_empty()).then(|| printable(&member))
    }

    /// The same place, one layer of compression further in.
    pub(crate) const fn unpacked(self) -> Self {
        Self { level: self.level + 1, ..self }
    }

    pub(crate) fn damaged(
        &self,
        format: &'static str,
        offset: u64,
        detail: impl Into<String>,
    ) -> Failure {
        let detail = printable(&detail.into());
        let error = Error::Damaged { member: self.full(), format, offset, detail };
        Failure { level: self.level, error }
    }

    pub(crate) fn truncated(&self, format: &'static str, offset: u64) -> Failure {
        let error = Error::Truncated { member: self.full(), format, offset };
        Failure { level: self.level, error }
    }

    pub(crate) fn unsupported(&self, what: &'static str, detail: impl Into<String>) -> Failure {
        let detail = printable(&detail.into());
        let error = Error::Unsupported { member: self.full(), what, detail };
        Failure { level: self.level, error }
    }

    /// A bound that ends only this part.
    pub(crate) fn too_much(&self, what: &'static str, limit: u64) -> Failure {
        Failure { level: self.level, error: Error::Limit { member: self.full(), what, limit } }
    }

    /// A bound on all work: it ends everything.
    pub(crate) fn exhausted(&self, what: &'static str, limit: u64) -> Failure {
        Failure { level: FATAL, error: Error::Limit { member: self.full(), what, limit } }
    }

    /// What a file system said.
    pub(crate) fn in_file_system(&self, format: &'static str, error: FsError) -> Failure {
        match error {
            FsError::Missing => self.unsupported(format, FsError::Missing.to_string()),
            FsError::TooLarge(size) => self.too_much("bytes", size),
            FsError::Damaged { offset, detail } => self.damaged(format, offset, detail),
            FsError::Unsupported(what) => self.unsupported(format, format!("it uses {what}")),
            FsError::Limit { what, limit } => self.too_much(what, limit),
            FsError::Io(error) => self.failure(error),
        }
    }

    /// What a reader gave, as the failure inside it if there is one.
    pub(crate) fn failure(&self, error: io::Error) -> Failure {
        match error.downcast::<Failure>() {
            Ok(failure) => failure,
            Err(source) => {
                Failure { level: self.level, error: Error::of_input(self.full(), source) }
            }
        }
    }
}

/// Names come from the input and end up on terminals: control characters are replaced.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
