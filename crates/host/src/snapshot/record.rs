//! Remembering what was asked and answered.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rustix::io::Errno;

use super::{Op, normal};
use crate::tree::{Content, Entry, FileId, FileKind, ReadError, Tree, Want};

/// A [`Tree`] that passes every question on to another one and remembers the answers.
///
/// The reader gets the bytes as they are; what is remembered of a file has gone through [`Want::lines`] and
/// [`Want::redact`]. The same question asked twice is remembered once.
pub struct Recorder<'a> {
    tree: &'a dyn Tree,
    answers: RefCell<Answers>,
}

/// Most questions have one answer; a file read through different filters has one for each.
pub(super) type Answers = BTreeMap<(String, Op), Vec<Answer>>;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    File(Kept),
    Directory(Vec<Entry>),
    Kind(FileKind),
    Missing,
    WrongKind(FileKind),
    TooLarge(usize),
    Errno(Errno),
}

/// What is kept of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) id: FileId,
    pub(super) bytes: Vec<u8>,
    /// Length of what the reader got.
    pub(super) original: usize,
    /// It went through a line filter.
    pub(super) filtered: bool,
    redacted: bool,
}

impl<'a> Recorder<'a> {
    /// Records what is asked of `tree` from now on.
    pub fn new(tree: &'a dyn Tree) -> Self {
        Self { tree, answers: RefCell::default() }
    }

    pub(super) fn with_answers<T>(&self, look: impl FnOnce(&Answers) -> T) -> T {
        look(&self.answers.borrow())
    }

    /// Calls of one tree never nest, so the borrow cannot fail.
    fn remember(&self, path: &str, op: Op, answer: Answer) {
        let mut answers = self.answers.borrow_mut();
        let known = answers.entry((normal(path), op)).or_default();
        if is_news(known, &answer) {
            if let Answer::TooLarge(_) = answer {
                known.retain(|old| !matches!(old, Answer::TooLarge(_)));
            }
            known.push(answer);
        }
    }
}

/// Whether an answer adds to those already known for its question.
fn is_news(known: &[Answer], answer: &Answer) -> bool {
    match answer {
        _ if known.is_empty() => true,
        Answer::File(new) => !known.iter().any(|old| match old {
            Answer::File(old) if !old.filtered && !old.redacted => true,
            Answer::File(old) if !old.filtered && !new.filtered => old.redacted == new.redacted,
            Answer::File(old) => old.filtered == new.filtered && old.bytes == new.bytes,
            _ => false,
        }),
        Answer::TooLarge(new) => known.iter().all(|old| match old {
            Answer::File(old) => old.filtered,
            Answer::TooLarge(old) => old < new,
            _ => false,
        }),
        _ => false,
    }
}

impl Answer {
    /// `None` for an answer that is none: another snapshot did not know.
    fn failed(error: ReadError) -> Option<Self> {
        Some(match error {
            ReadError::Missing => Self::Missing,
            ReadError::WrongKind(kind) => Self::WrongKind(kind),
            ReadError::TooLarge(limit) => Self::TooLarge(limit),
            ReadError::Os(errno) => Self::Errno(errno),
            ReadError::NotRecorded => return None,
        })
    }
}

impl Tree for Recorder<'_> {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let result = self.tree.read(path, want);
        let answer = match &result {
            Ok(content) => Some(Answer::File(Kept {
                id: content.id,
                bytes: want
                    .redact
                    .map_or_else(|| content.bytes.clone(), |redact| redact(&content.bytes)),
                original: content.bytes.len(),
                filtered: want.lines.is_some(),
                redacted: want.redact.is_some(),
            })),
            Err(error) => Answer::failed(*error),
        };
        if let Some(answer) = answer {
            self.remember(path, Op::Read, answer);
        }
        result
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        let result = self.tree.list(path);
        let answer = match &result {
            Ok(entries) => Some(Answer::Directory(entries.clone())),
            Err(error) => Answer::failed(*error),
        };
        if let Some(answer) = answer {
            self.remember(path, Op::List, answer);
        }
        result
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        let result = self.tree.kind(path);
        let answer = match result {
            Ok(kind) => Some(Answer::Kind(kind)),
            Err(error) => Answer::failed(error),
        };
        if let Some(answer) = answer {
            self.remember(path, Op::Kind, answer);
        }
        result
    }
}
