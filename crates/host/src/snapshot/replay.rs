//! Reading a snapshot, which anyone may have made, and answering from it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;

use fastpath_kconfig::gzip;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::manifest::{Manifest, Meta, Question, State, Version};
use super::names::is_known;
use super::{
    MANIFEST, MAX_ANSWERS, MAX_BYTES, MAX_MANIFEST, MAX_MEMBERS, MAX_NAME, MAX_PACKED, MAX_WINDOW,
    Op, SCHEMA, components, errno, filtered, normal,
};
use crate::mask::mask_ids;
use crate::redact::MAX_DAMAGED;
use crate::tree::{Content, Entry, FileId, FileKind, LineFilter, ReadError, Tree, Want};

/// Why a file is no snapshot that can be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The system refused.
    #[error("the snapshot cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("not a snapshot: {0}")]
    NotASnapshot(&'static str),
    /// It ends before its end.
    #[error("the snapshot is cut at byte {0}")]
    Cut(usize),
    /// It contradicts itself.
    #[error("the snapshot is damaged: {0}")]
    Damaged(String),
    /// It was written by a program that speaks another version.
    #[error("the snapshot says its schema is {0:?}; this program reads {SCHEMA:?}")]
    Schema(String),
    /// A member that no snapshot has.
    #[error("the snapshot holds {member:?}: {what}")]
    Hostile {
        /// Its name, shortened.
        member: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// There is no manifest, or not at the start.
    #[error("the first member of the snapshot is not {MANIFEST}")]
    NoManifest,
    /// The manifest says there is a file, and there is none.
    #[error("the snapshot does not hold {0:?}, which its manifest names")]
    NoBytes(String),
    /// The manifest does not know a file.
    #[error("the snapshot holds {0:?}, which its manifest does not name")]
    NotNamed(String),
    /// More members than a snapshot has.
    #[error("the snapshot has more than {MAX_MEMBERS} members")]
    TooManyMembers,
    /// More bytes than a snapshot has.
    #[error("the snapshot is larger than {MAX_BYTES} bytes, or {MAX_PACKED} when compressed")]
    TooLarge,
    /// It asks for more memory than a snapshot needs.
    #[error("the snapshot needs a zstd window of {0} bytes; at most {MAX_WINDOW} are taken")]
    Window(u64),
    /// A manifest larger than any.
    #[error("the snapshot's manifest is larger than {MAX_MANIFEST} bytes")]
    ManifestTooLarge,
    /// The manifest cannot be understood.
    #[error("the snapshot's manifest is damaged: {0}")]
    Manifest(#[from] serde_json::Error),
}

/// A host as a snapshot remembers it. It answers the questions that were asked when it was taken, and those that
/// follow from them; any other is [`ReadError::NotRecorded`].
#[derive(Debug)]
pub struct Replay {
    meta: Meta,
    tar: Vec<u8>,
    answers: BTreeMap<(String, Op), Vec<Answer>>,
}

#[derive(Debug)]
enum Answer {
    File(Stored),
    Directory(Listing),
    Kind(FileKind),
    Link(String),
    Missing,
    WrongKind(FileKind),
    TooLarge(usize),
    Errno(Errno),
}

/// The names in a directory.
#[derive(Debug)]
struct Listing {
    entries: Vec<Entry>,
    /// There are names among them that stand for others.
    masked: bool,
}

/// A file, its bytes in the archive.
#[derive(Clone, Debug)]
struct Stored {
    id: u64,
    bytes: Range<usize>,
    /// What the reader's limit speaks of.
    length: usize,
    filtered: bool,
}

impl Replay {
    /// Reads a snapshot from a file.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`].
    pub fn open(path: &Path) -> Result<Self, SnapshotError> {
        // Opening a pipe must not wait for a writer, nor reading one for its end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file =
            File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?);
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(SnapshotError::NotASnapshot("it is a directory"));
        }
        if !metadata.is_file() {
            return Err(SnapshotError::NotASnapshot("it is not a regular file"));
        }
        Self::from_reader(file)
    }

    /// Reads a snapshot from a stream.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`].
    pub fn from_reader(input: impl Read) -> Result<Self, SnapshotError> {
        let mut packed = Vec::new();
        input.take(MAX_BYTES as u64 + 1).read_to_end(&mut packed)?;
        if packed.len() > MAX_BYTES {
            return Err(SnapshotError::TooLarge);
        }
        Self::from_bytes(packed)
    }

    /// Reads a snapshot from memory.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`].
    pub fn from_bytes(packed: Vec<u8>) -> Result<Self, SnapshotError> {
        let tar = match Form::of(&packed)? {
            _ if packed.len() > MAX_BYTES => return Err(SnapshotError::TooLarge),
            Form::Zstd if packed.len() > MAX_PACKED => return Err(SnapshotError::TooLarge),
            Form::Zstd => {
                let mut tar = Vec::new();
                decompress(&packed, &mut tar)?;
                drop(packed);
                tar
            }
            Form::Tar => packed,
        };
        let mut members = members(&tar)?;
        let (name, manifest) = members.remove(0);
        if name != MANIFEST {
            return Err(SnapshotError::NoManifest);
        }
        if manifest.len() > MAX_MANIFEST {
            return Err(SnapshotError::ManifestTooLarge);
        }
        let manifest = &tar[manifest];
        let version: Version = serde_json::from_slice(manifest)?;
        if version.schema != SCHEMA {
            return Err(SnapshotError::Schema(shorten(&version.schema)));
        }
        let Manifest { tool, time, euid, uname, paths, .. } = serde_json::from_slice(manifest)?;
        let meta = Meta { tool, time, euid, uname };
        if !meta.is_sound() {
            return Err(damaged("its time or a name in it is not one"));
        }
        let answers = Opening::new(&tar, members).answers(paths)?;
        Ok(Self { meta, tar, answers })
    }

    /// What the snapshot says about itself.
    pub const fn meta(&self) -> &Meta {
        &self.meta
    }

    fn answers(&self, path: &str, op: Op) -> &[Answer] {
        // A reader that knows a name from elsewhere than a listing has the unmasked one.
        let find = |path: &str| self.answers.get(&(path.to_owned(), op)).map(Vec::as_slice);
        find(path).or_else(|| find(&mask_ids(path))).unwrap_or_default()
    }

    /// What follows from the answers to other questions about this path or the directories it is in.
    fn inferred(&self, path: &str) -> Inferred {
        let ops = [Op::Kind, Op::Read, Op::List];
        for answer in ops.into_iter().flat_map(|op| self.answers(path, op)) {
            return match answer {
                Answer::File(_) | Answer::TooLarge(_) => Inferred::Kind(FileKind::File),
                Answer::Directory(_) => Inferred::Kind(FileKind::Directory),
                Answer::Kind(kind) | Answer::WrongKind(kind) => Inferred::Kind(*kind),
                Answer::Missing => Inferred::Missing,
                Answer::Errno(_) | Answer::Link(_) => continue,
            };
        }
        if components(path).any(|component| component == "..") {
            return Inferred::Nothing;
        }
        let mut directory = String::new();
        let mut names = components(path).peekable();
        while let Some(name) = names.next() {
            let at = if directory.is_empty() { "/" } else { &directory };
            for answer in ops.into_iter().flat_map(|op| self.answers(at, op)) {
                let Listing { entries, masked } = match answer {
                    Answer::Directory(listing) => listing,
                    Answer::Kind(FileKind::Directory) | Answer::WrongKind(FileKind::Directory) => {
                        continue;
                    }
                    Answer::Errno(_) | Answer::Link(_) => continue,
                    // Nothing is below what is no directory.
                    _ => return Inferred::Missing,
                };
                let listed = |name: &str| {
                    entries.binary_search_by(|entry| entry.name.as_str().cmp(name)).ok()
                };
                match listed(name).or_else(|| listed(&mask_ids(name))) {
                    // It may be there under another name.
                    None if *masked && !is_known(&directory, name) => return Inferred::Nothing,
                    None => return Inferred::Missing,
                    Some(at) => match entries[at].kind {
                        // What a link leads to is not in a listing.
                        FileKind::Link | FileKind::Unknown => {}
                        FileKind::Directory if names.peek().is_some() => {}
                        FileKind::Directory => return Inferred::Kind(FileKind::Directory),
                        kind if names.peek().is_none() && !path.ends_with('/') => {
                            return Inferred::Kind(kind);
                        }
                        _ => return Inferred::Missing,
                    },
                }
            }
            directory.push('/');
            directory.push_str(name);
        }
        Inferred::Nothing
    }

    /// Why a question about a path, asked for something of kind `wanted`, has no answer of its own.
    fn refusal(&self, path: &str, wanted: FileKind) -> ReadError {
        match self.inferred(path) {
            Inferred::Missing => ReadError::Missing,
            Inferred::Kind(kind) if kind != wanted => ReadError::WrongKind(kind),
            Inferred::Kind(_) | Inferred::Nothing => ReadError::NotRecorded,
        }
    }

    fn content(&self, file: &Stored, want: &Want) -> Result<Content, ReadError> {
        if file.length > want.limit {
            return Err(ReadError::TooLarge(want.limit));
        }
        let bytes = &self.tar[file.bytes.clone()];
        let bytes = want.lines.map_or_else(|| bytes.to_owned(), |filter| filtered(bytes, filter));
        Ok(Content { bytes, id: FileId { device: 0, inode: file.id } })
    }

    /// Which of several recordings of a file was made with this filter: the one the filter leaves as it is, and if
    /// there are several, that with the most left.
    fn choose<'a>(&self, files: &[&'a Stored], filter: LineFilter) -> Option<&'a Stored> {
        if let Some(whole) = files.iter().find(|file| !file.filtered) {
            return Some(whole);
        }
        let unchanged = |file: &&&Stored| {
            let bytes = &self.tar[file.bytes.clone()];
            filtered(bytes, filter) == bytes
        };
        let used = |file: &&&Stored| {
            self.tar[file.bytes.clone()].iter().filter(|&&byte| byte != b'\n').count()
        };
        files.iter().filter(unchanged).max_by_key(used).or(files.first()).copied()
    }
}

enum Inferred {
    Missing,
    Kind(FileKind),
    Nothing,
}

impl Tree for Replay {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let path = normal(path);
        let answers = self.answers(&path, Op::Read);
        let files: Vec<&Stored> = answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::File(file) => Some(file),
                _ => None,
            })
            .collect();
        let too_large =
            |answer: &Answer| matches!(answer, Answer::TooLarge(limit) if want.limit <= *limit);
        if answers.iter().any(too_large) {
            return Err(ReadError::TooLarge(want.limit));
        }
        let file = match want.lines {
            Some(filter) if files.len() > 1 => self.choose(&files, filter),
            Some(_) => files.first().copied(),
            // Parts of a file are no answer to a question for all of it.
            None => files.iter().find(|file| !file.filtered).copied(),
        };
        if let Some(file) = file {
            return self.content(file, want);
        }
        match answers.first() {
            Some(Answer::Missing) => Err(ReadError::Missing),
            Some(Answer::WrongKind(kind)) => Err(ReadError::WrongKind(*kind)),
            Some(Answer::Errno(errno)) => Err(ReadError::Os(*errno)),
            _ => Err(self.refusal(&path, FileKind::File)),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        let path = normal(path);
        match self.answers(&path, Op::List).first() {
            Some(Answer::Directory(listing)) => Ok(listing.entries.clone()),
            Some(Answer::Missing) => Err(ReadError::Missing),
            Some(Answer::WrongKind(kind)) => Err(ReadError::WrongKind(*kind)),
            Some(Answer::Errno(errno)) => Err(ReadError::Os(*errno)),
            _ => Err(self.refusal(&path, FileKind::Directory)),
        }
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        let path = normal(path);
        match self.answers(&path, Op::Kind).first() {
            Some(Answer::Kind(kind)) => Ok(*kind),
            Some(Answer::Errno(errno)) => Err(ReadError::Os(*errno)),
            _ => match self.inferred(&path) {
                Inferred::Kind(kind) => Ok(kind),
                Inferred::Missing => Err(ReadError::Missing),
                Inferred::Nothing => Err(ReadError::NotRecorded),
            },
        }
    }

    fn link(&self, path: &str) -> Result<String, ReadError> {
        let path = normal(path);
        match self.answers(&path, Op::Link).first() {
            Some(Answer::Link(target)) => Ok(target.clone()),
            Some(Answer::Missing) => Err(ReadError::Missing),
            Some(Answer::WrongKind(kind)) => Err(ReadError::WrongKind(*kind)),
            Some(Answer::Errno(errno)) => Err(ReadError::Os(*errno)),
            _ => match self.inferred(&path) {
                Inferred::Missing => Err(ReadError::Missing),
                Inferred::Kind(_) | Inferred::Nothing => Err(ReadError::NotRecorded),
            },
        }
    }
}

/// What kind of file it is.
enum Form {
    Zstd,
    Tar,
}

impl Form {
    fn of(bytes: &[u8]) -> Result<Self, SnapshotError> {
        const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
        const USTAR: Range<usize> = 257..262;
        if bytes.starts_with(&ZSTD) {
            Ok(Self::Zstd)
        } else if bytes.get(USTAR) == Some(b"ustar") {
            Ok(Self::Tar)
        } else if bytes.is_empty() {
            Err(SnapshotError::NotASnapshot("it is empty"))
        } else {
            Err(SnapshotError::NotASnapshot("it is neither zstd nor tar"))
        }
    }
}

/// A slice as a stream that remembers having been asked for more than it has.
struct Source<'a> {
    rest: &'a [u8],
    dry: bool,
}

impl Read for Source<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.dry |= out.len() > self.rest.len();
        self.rest.read(out)
    }
}

/// Decompresses all frames of a zstd file, to at most [`MAX_BYTES`].
pub(super) fn decompress(packed: &[u8], out: &mut impl Write) -> Result<(), SnapshotError> {
    // A block: the decoder's buffer then never grows beyond the window and two of them.
    const CHUNK: usize = 128 << 10;
    // A frame may be empty; each takes some work all the same.
    const MAX_FRAMES: usize = 4096;
    let mut source = Source { rest: packed, dry: false };
    let mut room = MAX_BYTES;
    let mut frames = 0;
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(MAX_WINDOW);
    while !source.rest.is_empty() {
        frames += 1;
        if frames > MAX_FRAMES {
            return Err(damaged("it has too many zstd frames"));
        }
        match decoder.init(&mut source) {
            Ok(()) => {}
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                source.rest = source.rest.get(length..).ok_or(SnapshotError::Cut(packed.len()))?;
                continue;
            }
            Err(error) => return Err(zstd_error(&source, packed, &error)),
        }
        while !decoder.is_finished() {
            let step = BlockDecodingStrategy::UptoBytes(CHUNK);
            if let Err(error) = decoder.decode_blocks(&mut source, step) {
                return Err(zstd_error(&source, packed, &error));
            }
            collect(&mut decoder, &mut room, out)?;
        }
        collect(&mut decoder, &mut room, out)?;
        let said = decoder.get_checksum_from_data();
        if said.is_some() && said != decoder.get_calculated_checksum() {
            return Err(damaged("its checksum does not fit"));
        }
    }
    Ok(())
}

fn collect(
    decoder: &mut FrameDecoder,
    room: &mut usize,
    out: &mut impl Write,
) -> Result<(), SnapshotError> {
    *room = room.checked_sub(decoder.can_collect()).ok_or(SnapshotError::TooLarge)?;
    decoder.collect_to_writer(out)?;
    Ok(())
}

fn zstd_error(source: &Source, packed: &[u8], error: &FrameDecoderError) -> SnapshotError {
    match error {
        _ if source.dry => SnapshotError::Cut(packed.len()),
        FrameDecoderError::WindowSizeTooBig { requested, .. } => SnapshotError::Window(*requested),
        _ => {
            // What a decoder says may have several lines; one is enough.
            let text = error.to_string();
            let at = packed.len() - source.rest.len();
            damaged(&format!("byte {at}: {}", shorten(text.lines().next().unwrap_or_default())))
        }
    }
}

/// The members of an archive, each a regular file with a harmless name, in their order; at least one.
fn members(tar: &[u8]) -> Result<Vec<(String, Range<usize>)>, SnapshotError> {
    let mut archive = tar::Archive::new(tar);
    let mut members: Vec<(String, Range<usize>)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut end = 0;
    let broken = |error: io::Error, any: bool| {
        let text = error.to_string();
        if !any {
            SnapshotError::NotASnapshot("there is no tar archive in it")
        } else if !tar.len().is_multiple_of(512) || text.contains("unexpected EOF") {
            SnapshotError::Cut(tar.len())
        } else {
            damaged(&shorten(&text))
        }
    };
    let mut said = Said::default();
    // Raw, for otherwise what stands in front of a member to say its name is read whatever its size.
    for entry in archive.entries().map_err(|error| broken(error, false))?.raw(true) {
        let entry = entry.map_err(|error| broken(error, !members.is_empty()))?;
        if members.len() == MAX_MEMBERS {
            return Err(SnapshotError::TooManyMembers);
        }
        let (start, size) = (entry.raw_file_position(), entry.size());
        let range = start
            .checked_add(size)
            .and_then(|end| Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?));
        let range = range.filter(|range| range.end <= tar.len());
        let range = range.ok_or(SnapshotError::Cut(tar.len()))?;
        end = range.end.next_multiple_of(512);
        let raw = entry.path_bytes();
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
            said.add(kind, &tar[range])?;
            continue;
        }
        let raw = said.take().map_or(raw, Cow::Owned);
        let name = String::from_utf8_lossy(&raw).into_owned();
        let hostile = |what| SnapshotError::Hostile { member: shorten(&name), what };
        if kind != tar::EntryType::Regular {
            return Err(hostile("only regular files may be in a snapshot"));
        }
        if raw.len() > MAX_NAME {
            return Err(hostile("its name is too long"));
        }
        if std::str::from_utf8(&raw).is_err() || name.contains('\0') {
            return Err(hostile("its name is not text"));
        }
        if name.split('/').any(|component| matches!(component, "" | "." | "..")) {
            return Err(hostile("its name leads elsewhere"));
        }
        if !seen.insert(name.clone()) {
            return Err(hostile("the name is there twice"));
        }
        members.push((name, range));
    }
    if said.take().is_some() {
        return Err(SnapshotError::Cut(tar.len()));
    }
    if members.is_empty() {
        return Err(SnapshotError::NoManifest);
    }
    // Two blocks of zeros end an archive; without them more may have followed.
    let tail = tar.get(end..).unwrap_or_default();
    if tail.len() < 1024 {
        return Err(SnapshotError::Cut(tar.len()));
    }
    if tail.iter().any(|&byte| byte != 0) {
        return Err(damaged("something follows its end"));
    }
    Ok(members)
}

/// The name that stands in front of a member, as GNU or POSIX do it for long ones.
#[derive(Default)]
struct Said(Option<Vec<u8>>);

impl Said {
    fn add(&mut self, kind: tar::EntryType, bytes: &[u8]) -> Result<(), SnapshotError> {
        if bytes.len() > MAX_NAME {
            let what = "what stands in front of it is too long";
            return Err(SnapshotError::Hostile { member: "a name".to_owned(), what });
        }
        let name = if kind.is_gnu_longname() {
            Some(bytes.strip_suffix(b"\0").unwrap_or(bytes).to_vec())
        } else {
            let mut name = None;
            for extension in tar::PaxExtensions::new(bytes) {
                let extension = extension.map_err(|error| damaged(&shorten(&error.to_string())))?;
                match extension.key_bytes() {
                    b"path" => name = Some(extension.value_bytes().to_vec()),
                    // Programs would not agree on what the archive holds.
                    key if key == b"size" || key.starts_with(b"GNU.sparse") => {
                        return Err(damaged("a member has two sizes"));
                    }
                    _ => {}
                }
            }
            name
        };
        if let Some(name) = name
            && self.0.replace(name).is_some()
        {
            return Err(damaged("a member has two names"));
        }
        Ok(())
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        self.0.take()
    }
}

/// Brings the manifest and the members together.
struct Opening<'a> {
    tar: &'a [u8],
    members: BTreeMap<String, Range<usize>>,
    named: BTreeSet<String>,
    /// For each file that was read as a whole, where its bytes are, and where they are again.
    files: BTreeMap<u64, (Range<usize>, BTreeSet<usize>)>,
}

impl<'a> Opening<'a> {
    fn new(tar: &'a [u8], members: Vec<(String, Range<usize>)>) -> Self {
        let members = members.into_iter().collect();
        Self { tar, members, named: BTreeSet::new(), files: BTreeMap::new() }
    }

    fn answers(
        mut self,
        questions: Vec<Question>,
    ) -> Result<BTreeMap<(String, Op), Vec<Answer>>, SnapshotError> {
        // The bytes each path keeps itself, so that `same_as` is one step and cannot go in circles.
        let mut own: BTreeMap<String, Range<usize>> = BTreeMap::new();
        for question in &questions {
            if question.state == State::File && question.same_as.is_none() {
                let bytes = self.bytes(question)?;
                own.entry(question.path.clone()).or_insert(bytes);
            }
        }
        let mut answers: BTreeMap<(String, Op), Vec<Answer>> = BTreeMap::new();
        for mut question in questions {
            if normal(&question.path) != question.path {
                let path = shorten(&question.path);
                return Err(damaged(&format!("{path:?} is not a path as it should be written")));
            }
            let answer = self.answer(&mut question, &own)?;
            let known = answers.entry((question.path, question.op)).or_default();
            if known.len() >= if question.op == Op::Read { MAX_ANSWERS } else { 1 } {
                return Err(damaged("its manifest answers a question too often"));
            }
            known.push(answer);
        }
        match self.members.keys().find(|name| !self.named.contains(*name)) {
            Some(name) => Err(SnapshotError::NotNamed(shorten(name))),
            None => Ok(answers),
        }
    }

    /// Where the bytes of a file that keeps its own are.
    fn bytes(&mut self, question: &Question) -> Result<Range<usize>, SnapshotError> {
        let member = question.member.clone();
        let member = member.unwrap_or_else(|| format!("root{}", question.path));
        let Some(bytes) = self.members.get(&member) else {
            return Err(SnapshotError::NoBytes(shorten(&member)));
        };
        self.named.insert(member);
        Ok(bytes.clone())
    }

    /// Whether the bytes are those of the file with this id, as far as it is known.
    fn is_one_file(&mut self, id: u64, bytes: &Range<usize>) -> bool {
        let (first, known) =
            self.files.entry(id).or_insert_with(|| (bytes.clone(), BTreeSet::new()));
        // Each pair is compared once, however often a manifest names it.
        let news = known.insert(bytes.start);
        !news || self.tar[first.clone()] == self.tar[bytes.clone()]
    }

    fn answer(
        &mut self,
        question: &mut Question,
        own: &BTreeMap<String, Range<usize>>,
    ) -> Result<Answer, SnapshotError> {
        let entries = question.entries.take();
        let question = &*question;
        let lacks = |what: &str| {
            let path = shorten(&question.path);
            damaged(&format!("its manifest does not tell {what} of {path:?}"))
        };
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let fits = match question.state {
            State::File => question.op == Op::Read,
            State::Directory => question.op == Op::List,
            State::Kind => question.op == Op::Kind,
            State::Link => question.op == Op::Link,
            _ => true,
        };
        if !fits {
            return Err(lacks("a fitting state"));
        }
        Ok(match question.state {
            State::File => {
                let bytes = match &question.same_as {
                    Some(path) => {
                        let bytes = own.get(path);
                        bytes.ok_or_else(|| SnapshotError::NoBytes(shorten(path)))?.clone()
                    }
                    None => self.bytes(question)?,
                };
                let length = size(question.length.ok_or_else(|| lacks("the length"))?);
                if length != bytes.len() {
                    return Err(lacks("the right length"));
                }
                let id = question.id.ok_or_else(|| lacks("the file"))?;
                if !question.filtered {
                    if length > MAX_DAMAGED && gzip::is_gzip(&self.tar[bytes.clone()]) {
                        return Err(lacks("the text"));
                    }
                    if !self.is_one_file(id, &bytes) {
                        return Err(lacks("whether it is the same file"));
                    }
                }
                Answer::File(Stored {
                    id,
                    bytes,
                    length: question.original.map_or(length, size),
                    filtered: question.filtered,
                })
            }
            State::Directory => {
                const LONGEST: usize = 1024;
                let mut entries = entries.ok_or_else(|| lacks("the names"))?;
                let wrong = |name: &str| {
                    matches!(name, "" | "." | "..")
                        || name.contains(['/', '\0'])
                        || name.len() > LONGEST
                };
                if entries.iter().any(|entry| wrong(&entry.name)) {
                    return Err(lacks("names that are names"));
                }
                entries.sort_by(|a, b| a.name.cmp(&b.name));
                entries.dedup_by(|a, b| a.name == b.name);
                Answer::Directory(Listing { entries, masked: question.masked })
            }
            State::Kind => Answer::Kind(question.kind.ok_or_else(|| lacks("the kind"))?),
            State::Link => {
                const LONGEST: usize = 4096;
                let target = question.target.clone().filter(|target| {
                    target.len() <= LONGEST && !target.chars().any(char::is_control)
                });
                Answer::Link(target.ok_or_else(|| lacks("where the link leads"))?)
            }
            State::Missing => Answer::Missing,
            State::WrongKind => Answer::WrongKind(question.kind.ok_or_else(|| lacks("the kind"))?),
            State::TooLarge => {
                Answer::TooLarge(size(question.limit.ok_or_else(|| lacks("the limit"))?))
            }
            State::Errno => {
                let errno = question.errno.as_deref().and_then(errno::parse);
                Answer::Errno(errno.ok_or_else(|| lacks("the error"))?)
            }
        })
    }
}

fn damaged(what: &str) -> SnapshotError {
    SnapshotError::Damaged(what.to_owned())
}

/// A foreign text, short enough for a line of output and without what a terminal would obey.
fn shorten(text: &str) -> String {
    const MAX: usize = 120;
    let mut out: String =
        text.chars().take(MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(MAX).is_some() {
        out.push_str("...");
    }
    out
}
