//! Remembering what was asked and answered.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::ptr::fn_addr_eq;
use std::rc::Rc;

use rustix::io::Errno;

use super::{MAX_BYTES, MAX_QUESTIONS, Op, filtered, normal};
use crate::tree::{Content, Entry, FileId, FileKind, LineFilter, ReadError, Stat, Tree, Want};

/// A [`Tree`] that passes questions on to another one, remembers the answers, and gives what it remembers.
///
/// What is remembered of a file has gone through [`Want::lines`] and [`Want::redact`], and the reader gets the same
/// bytes. A question that is asked again gets the first answer again, whatever became of the host meanwhile. So the facts
/// that were gathered are always those that were recorded.
///
/// Once the host turns out to have more than a snapshot may hold, nothing is remembered, every answer is
/// [`ReadError::NotRecorded`], and [`write`](super::write) says what was too much.
pub struct Recorder<'a> {
    tree: &'a dyn Tree,
    memory: RefCell<Memory>,
}

/// Most questions have one answer; a file read through different filters has one for each.
pub(super) type Answers = BTreeMap<(String, Op), Vec<Answer>>;

#[derive(Default)]
struct Memory {
    answers: Answers,
    /// What was read of each file, in each way.
    files: BTreeMap<(FileId, Way), Vec<Read>>,
    next: u64,
    /// Bytes that are kept.
    total: usize,
    overflow: Option<Overflow>,
}

/// What did not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Overflow {
    /// Files: the largest one, and its length.
    Bytes(String, usize),
    /// More questions than a snapshot has.
    Questions,
}

pub(super) enum Answer {
    File(Kept),
    Directory(Vec<Entry>),
    Kind(FileKind),
    Link(String),
    Missing,
    WrongKind(FileKind),
    TooLarge(usize),
    Errno(Errno),
    /// It was another thing when it was asked for in another way. A snapshot holds one of both.
    Contradiction,
}

/// What is kept of a file.
#[derive(Clone)]
pub(super) struct Kept {
    /// The same for two names of one file that gave the same bytes.
    pub(super) id: u64,
    pub(super) bytes: Rc<Vec<u8>>,
    /// Length of what the tree gave.
    pub(super) original: usize,
    way: Way,
    filter: Option<LineFilter>,
}

/// What was done to the bytes of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Whole,
    Redacted,
    Filtered,
}

/// A file that was read before.
struct Read {
    kept: Kept,
    /// Of the bytes before they were redacted.
    hash: u64,
}

impl Kept {
    pub(super) fn is_filtered(&self) -> bool {
        self.way == Way::Filtered
    }

    fn content(&self, want: &Want) -> Result<Content, ReadError> {
        if self.original > want.limit {
            return Err(ReadError::TooLarge(want.limit));
        }
        let bytes = match want.lines {
            Some(filter) if self.way == Way::Whole => filtered(&self.bytes, filter),
            _ => self.bytes.to_vec(),
        };
        Ok(Content { bytes, id: FileId { device: 0, inode: self.id } })
    }

    /// Whether the parts of this file that were read before are still in it.
    fn agrees(&self, known: &[Answer]) -> bool {
        known.iter().all(|old| match old {
            Answer::File(Self { bytes, filter: Some(filter), .. }) => {
                filtered(&self.bytes, *filter) == **bytes
            }
            _ => true,
        })
    }

    /// Whether this is what a reader gets who asks so.
    fn serves(&self, want: &Want) -> bool {
        match (self.way, want.lines) {
            // The same address is the same code; the same code at another address is only read once more.
            (Way::Filtered, Some(filter)) => {
                self.filter.is_some_and(|other| fn_addr_eq(other, filter))
            }
            (Way::Filtered, None) => false,
            (Way::Redacted, _) => {
                want.lines.is_none() && (want.redact.is_some() || want.extract.is_some())
            }
            (Way::Whole, _) => true,
        }
    }
}

impl<'a> Recorder<'a> {
    /// Records what is asked of `tree` from now on.
    pub fn new(tree: &'a dyn Tree) -> Self {
        Self { tree, memory: RefCell::default() }
    }

    pub(super) fn with_answers<T>(&self, look: impl FnOnce(&Answers) -> T) -> Result<T, Overflow> {
        let memory = self.memory.borrow();
        memory.overflow.clone().map_or_else(|| Ok(look(&memory.answers)), Err)
    }

    /// Asks the tree, unless the answer is known.
    fn ask<T>(
        &self,
        path: &str,
        op: Op,
        known: impl Fn(&Answer) -> Option<Result<T, ReadError>>,
        ask: impl FnOnce() -> Result<T, ReadError>,
        answer: impl FnOnce(&T) -> Answer,
    ) -> Result<T, ReadError> {
        let path = normal(path);
        if let Some(again) = self.memory.borrow().known(&path, op, known) {
            return again;
        }
        // Calls of one tree never nest, so a borrow cannot fail; but nothing is borrowed while the tree works.
        let result = ask();
        let answer = match &result {
            Ok(found) => answer(found),
            Err(error) => match Answer::failed(*error) {
                Some(answer) => answer,
                None => return result,
            },
        };
        self.memory.borrow_mut().remember(path, op, answer)?;
        result
    }
}

impl Memory {
    /// What is known already about a question, if it is.
    fn known<T>(
        &self,
        path: &str,
        op: Op,
        known: impl Fn(&Answer) -> Option<Result<T, ReadError>>,
    ) -> Option<Result<T, ReadError>> {
        if self.overflow.is_some() {
            return Some(Err(ReadError::NotRecorded));
        }
        let answers = self.answers.get(&(path.to_owned(), op))?;
        answers.iter().find_map(|answer| match answer {
            Answer::Missing => Some(Err(ReadError::Missing)),
            Answer::WrongKind(kind) => Some(Err(ReadError::WrongKind(*kind))),
            Answer::Errno(errno) => Some(Err(ReadError::Os(*errno))),
            Answer::Contradiction => Some(Err(ReadError::NotRecorded)),
            other => known(other),
        })
    }

    fn remember(&mut self, path: String, op: Op, answer: Answer) -> Result<(), ReadError> {
        if self.answers.len() >= MAX_QUESTIONS {
            return self.overflow(Overflow::Questions);
        }
        let known = self.answers.entry((path, op)).or_default();
        match &answer {
            // The whole answers for its parts too.
            Answer::File(whole) if whole.way == Way::Whole && !whole.agrees(known) => {
                known.push(Answer::Contradiction);
                return Err(ReadError::NotRecorded);
            }
            Answer::File(_) => {}
            Answer::TooLarge(_) => known.retain(|old| !matches!(old, Answer::TooLarge(_))),
            _ if !known.is_empty() => {
                known.push(Answer::Contradiction);
                return Err(ReadError::NotRecorded);
            }
            _ => {}
        }
        known.push(answer);
        Ok(())
    }

    fn overflow<T>(&mut self, what: Overflow) -> Result<T, ReadError> {
        *self = Self { overflow: Some(what), ..Self::default() };
        Err(ReadError::NotRecorded)
    }

    /// What is kept of a file that was read. Bytes that were kept under another name are kept once.
    fn keep(&mut self, path: &str, content: Content, want: &Want) -> Result<Kept, ReadError> {
        let way = match (want.lines, want.redact) {
            (Some(_), _) => Way::Filtered,
            (None, Some(_)) => Way::Redacted,
            (None, None) if want.extract.is_some() => Way::Redacted,
            (None, None) => Way::Whole,
        };
        let mut hasher = DefaultHasher::new();
        hasher.write(&content.bytes);
        let hash = hasher.finish();
        let original = content.bytes.len();
        let file = (content.id, way);
        let reads = self.files.get(&file).map(Vec::as_slice).unwrap_or_default();
        let same = |read: &&Read| read.hash == hash && read.kept.original == original;
        if let Some(read) = reads.iter().find(same) {
            return Ok(Kept { filter: want.lines, ..read.kept.clone() });
        }
        // Another filter shows another part of the same file; anything else is not what it was before.
        let id = match reads.first() {
            Some(read) if way == Way::Filtered => read.kept.id,
            _ => {
                self.next += 1;
                self.next - 1
            }
        };
        let bytes = match want.redact {
            Some(redact) if way == Way::Redacted => {
                let bytes = redact(&content.bytes);
                drop(content);
                bytes
            }
            _ => content.bytes,
        };
        if self.total.saturating_add(bytes.len()) > MAX_BYTES {
            return self.too_many_bytes(path, bytes.len());
        }
        self.total += bytes.len();
        let kept = Kept { id, bytes: Rc::new(bytes), original, way, filter: want.lines };
        self.files.entry(file).or_default().push(Read { kept: kept.clone(), hash });
        Ok(kept)
    }

    fn too_many_bytes<T>(&mut self, path: &str, length: usize) -> Result<T, ReadError> {
        let kept = self.answers.iter().flat_map(|((path, _), answers)| {
            answers.iter().filter_map(move |answer| match answer {
                Answer::File(kept) => Some((path.as_str(), kept.bytes.len())),
                _ => None,
            })
        });
        let largest = kept.chain([(path, length)]).max_by_key(|(_, length)| *length);
        let (path, length) = largest.unwrap_or((path, length));
        let what = Overflow::Bytes(path.to_owned(), length);
        self.overflow(what)
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
        let known = |answer: &Answer| match answer {
            Answer::File(kept) if kept.serves(want) => Some(Ok(kept.clone())),
            Answer::TooLarge(limit) if want.limit <= *limit => {
                Some(Err(ReadError::TooLarge(want.limit)))
            }
            _ => None,
        };
        let read = || {
            let content = self.tree.read(path, want)?;
            self.memory.borrow_mut().keep(path, content, want)
        };
        self.ask(path, Op::Read, known, read, |kept| Answer::File(kept.clone()))?.content(want)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        let known = |answer: &Answer| match answer {
            Answer::Directory(entries) => Some(Ok(entries.clone())),
            _ => None,
        };
        let list = || self.tree.list(path);
        self.ask(path, Op::List, known, list, |entries| Answer::Directory(entries.clone()))
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        let known = |answer: &Answer| match answer {
            Answer::Kind(kind) => Some(Ok(*kind)),
            _ => None,
        };
        self.ask(path, Op::Kind, known, || self.tree.kind(path), |kind| Answer::Kind(*kind))
    }

    fn link(&self, path: &str) -> Result<String, ReadError> {
        let known = |answer: &Answer| match answer {
            Answer::Link(target) => Some(Ok(target.clone())),
            _ => None,
        };
        let link = || self.tree.link(path);
        self.ask(path, Op::Link, known, link, |target| Answer::Link(target.clone()))
    }

    fn stat(&self, path: &str) -> Result<Stat, ReadError> {
        self.tree.stat(path)
    }
}
