//! Small files of sysfs and what goes wrong with them.

use crate::tree::{Entry, LineFilter, ReadError, Tree, Unread, Want};

/// Attributes of sysfs have at most a page; KFD's `properties` stay below it too.
const LIMIT: usize = 16 << 10;

/// As many failures as are worth remembering: a host where everything fails fails in one way.
const MAX_UNREAD: usize = 64;

/// A reader of small files that remembers what it could not read. What is missing is no failure.
pub(crate) struct Small<'a> {
    pub(crate) tree: &'a dyn Tree,
    pub(crate) unread: Vec<Unread>,
}

impl<'a> Small<'a> {
    pub(crate) const fn new(tree: &'a dyn Tree) -> Self {
        Self { tree, unread: Vec::new() }
    }

    /// The answer, if there is one; a failure is remembered.
    pub(crate) fn ask<T>(&mut self, path: &str, answer: Result<T, ReadError>) -> Option<T> {
        match answer {
            Ok(found) => return Some(found),
            Err(ReadError::Missing) => {}
            Err(error) if self.unread.len() < MAX_UNREAD => {
                self.unread.push(Unread::new(path, error));
            }
            Err(_) => {}
        }
        None
    }

    /// The first line of a file, without blanks around it.
    pub(crate) fn line(&mut self, path: &str) -> Option<String> {
        let text = self.text(path, None)?;
        Some(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// The number that a file holds, decimal, or hexadecimal after `0x`.
    pub(crate) fn number(&mut self, path: &str) -> Option<u64> {
        number(&self.line(path)?)
    }

    /// The text of a file, through a filter if there is one; invalid UTF-8 is replaced.
    pub(crate) fn text(&mut self, path: &str, lines: Option<LineFilter>) -> Option<String> {
        let want = Want { limit: LIMIT, lines, redact: None, extract: None };
        let content = self.tree.read(path, &want);
        let content = self.ask(path, content)?;
        Some(String::from_utf8_lossy(&content.bytes).into_owned())
    }

    /// The names in a directory, none if it is not there.
    pub(crate) fn list(&mut self, path: &str) -> Vec<Entry> {
        let entries = self.tree.list(path);
        self.ask(path, entries).unwrap_or_default()
    }
}

/// A number as sysfs writes it.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
