//! Errors for people: what is so, and what to do.

use std::fmt;

/// An error that also knows what to do.
#[derive(Debug)]
pub(crate) struct Hinted {
    /// What is so.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: String,
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

/// Prints an error and its causes on one line, and its hint on the next.
pub(crate) fn print(error: &anyhow::Error) {
    crate::output::note(&format!("error: {}", line(error)));
    if let Some(hinted) = error.downcast_ref::<Hinted>() {
        crate::output::note(&format!("hint: {}", hinted.hint));
    }
}

/// An error and its causes on one line. A cause that the line already ends with is not said twice, and neither is an input that
/// the cause names itself.
pub(crate) fn line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if cause.strip_prefix(&line).is_some_and(|rest| rest.starts_with(": ")) {
            line = cause;
        } else if !line.ends_with(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    line
}
