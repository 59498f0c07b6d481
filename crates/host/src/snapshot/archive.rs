//! Writing a snapshot.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use ruzstd::encoding::{CompressionLevel, compress};

use super::manifest::{Manifest, Meta, Question, State};
use super::names::Names;
use super::record::{Answer, Answers, Kept, Overflow, Recorder};
use super::replay::decompress;
use super::{
    MANIFEST, MAX_BYTES, MAX_MANIFEST, MAX_MEMBERS, MAX_PACKED, MAX_QUESTIONS, Op, SCHEMA,
    components, errno, time,
};
use crate::tree::Entry;

/// Why a snapshot was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What the caller says about the snapshot cannot stand in one.
    #[error("the time must be RFC 3339 in UTC, and no text may hold control characters")]
    Meta,
    /// Nobody could read it.
    #[error(
        "a snapshot may hold {MAX_BYTES} bytes; this one has more, {length} of them from {path}"
    )]
    TooManyBytes {
        /// The largest file.
        path: String,
        /// Its length.
        length: usize,
    },
    /// Nobody could read it.
    #[error(
        "a snapshot may hold {MAX_QUESTIONS} answers, {MAX_MEMBERS} files and {MAX_MANIFEST} bytes of names; \
         this one has more"
    )]
    TooManyNames,
    /// The compressor gave something else than what went in.
    #[error("the compressed snapshot does not give back what was put in")]
    Compressor,
    /// Replacing anything but a file would take away a device or a pipe.
    #[error("{}: exists and is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// There is something, and it was not to be replaced.
    #[error("{}: exists already", .0.display())]
    Exists(PathBuf),
    /// A file in place of the link is not what a link asks for.
    #[error("{}: a link to what is not there", .0.display())]
    Dangling(PathBuf),
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Path {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The output refused.
    #[error("writing the snapshot: {0}")]
    Io(#[from] io::Error),
}

impl From<Overflow> for WriteError {
    fn from(overflow: Overflow) -> Self {
        match overflow {
            Overflow::Bytes(path, length) => Self::TooManyBytes { path, length },
            Overflow::Questions => Self::TooManyNames,
        }
    }
}

/// Writes what a recorder remembers. The same answers and the same `meta` give the same bytes.
///
/// # Errors
///
/// A [`WriteError`]. Nothing is written before the whole snapshot is made.
pub fn write(recorder: &Recorder, meta: &Meta, mut out: impl Write) -> Result<(), WriteError> {
    let packed = recorder.with_answers(|answers| Parts::new(answers, meta)?.packed())??;
    out.write_all(&packed)?;
    out.flush()?;
    Ok(())
}

/// What to do with a file of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it, and fail.
    Keep,
    /// Put the new one in its place. A link stays a link: what it leads to is replaced.
    Replace,
}

/// Writes a snapshot to a file that only its owner may read, and which takes its name when all is on disk. A failure
/// leaves nothing behind and an older file of that name as it was.
///
/// # Errors
///
/// A [`WriteError`].
pub fn write_file(packed: &[u8], path: &Path, existing: Existing) -> Result<(), WriteError> {
    let failed = |source| WriteError::Path { path: path.to_owned(), source };
    let target = match fs::metadata(path) {
        _ if existing == Existing::Keep => path.to_owned(),
        Ok(found) if found.is_file() => fs::canonicalize(path).map_err(failed)?,
        Ok(_) => return Err(WriteError::NotAFile(path.to_owned())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Err(_) if path.symlink_metadata().is_ok() => {
            return Err(WriteError::Dangling(path.to_owned()));
        }
        Err(_) => path.to_owned(),
    };
    let Some(name) = target.file_name() else {
        return Err(WriteError::NotAFile(path.to_owned()));
    };
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = directory.join(beside);
    let written = match write_unnamed(packed, directory, &target, &beside, existing) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            write_named(packed, &target, &beside, existing)
        }
        other => other,
    };
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists if existing == Existing::Keep => {
            WriteError::Exists(path.to_owned())
        }
        _ => failed(error),
    })?;
    // The new name is there; only a crash right now could lose it, and some file systems cannot sync a directory.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// Writes a file that has no name until it is whole, so that nothing is left of it whenever this process ends.
/// [`io::ErrorKind::Unsupported`] where the file system or the system cannot do that.
fn write_unnamed(
    packed: &[u8],
    directory: &Path,
    target: &Path,
    beside: &Path,
    existing: Existing,
) -> io::Result<()> {
    let unsupported = |_| io::Error::from(io::ErrorKind::Unsupported);
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    // Whatever the reason, the other way gives the better error.
    let file = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR).map_err(unsupported)?;
    let mut file = File::from(file);
    file.write_all(packed)?;
    file.sync_all()?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |to: &Path| {
        rustix::fs::linkat(CWD, &unnamed, CWD, to, AtFlags::SYMLINK_FOLLOW).map_err(|errno| {
            match errno {
                rustix::io::Errno::EXIST => io::Error::from(errno),
                _ => unsupported(errno),
            }
        })
    };
    match link(target) {
        Err(error)
            if error.kind() == io::ErrorKind::AlreadyExists && existing == Existing::Replace =>
        {
            // A link cannot take a name that is taken; a file that is renamed can.
            link(beside)?;
            rename(Temporary(beside.to_owned()), target)
        }
        other => other,
    }
}

/// Writes a file beside the target, and renames it.
fn write_named(packed: &[u8], target: &Path, beside: &Path, existing: Existing) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?;
    let temporary = Temporary(beside.to_owned());
    file.write_all(packed)?;
    file.sync_all()?;
    match existing {
        Existing::Replace => rename(temporary, target),
        Existing::Keep => match fs::hard_link(beside, target) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // No links there: the moment between looking and renaming cannot be avoided.
                if target.symlink_metadata().is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                rename(temporary, target)
            }
            other => other,
        },
    }
}

fn rename(temporary: Temporary, target: &Path) -> io::Result<()> {
    fs::rename(&temporary.0, target)?;
    temporary.keep();
    Ok(())
}

/// A file that goes away unless it is kept.
struct Temporary(PathBuf);

impl Temporary {
    fn keep(mut self) {
        self.0 = PathBuf::new();
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// The archive before compression, in parts: it is never in memory as a whole.
struct Parts<'a>(Vec<Cow<'a, [u8]>>);

impl<'a> Parts<'a> {
    fn new(answers: &'a Answers, meta: &Meta) -> Result<Self, WriteError> {
        let mtime = time::unix_seconds(&meta.time).filter(|_| meta.is_sound());
        let mtime = mtime.ok_or(WriteError::Meta)?;
        let (paths, members) = questions(answers);
        let manifest = Manifest {
            schema: SCHEMA.to_owned(),
            tool: meta.tool.clone(),
            time: meta.time.clone(),
            euid: meta.euid,
            uname: meta.uname.clone(),
            paths,
        };
        let mut text = serde_json::to_vec(&manifest).map_err(io::Error::from)?;
        // For people, unless there is too much for them anyway.
        if text.len() < MAX_MANIFEST / 4 {
            text = serde_json::to_vec_pretty(&manifest).map_err(io::Error::from)?;
        }
        text.push(b'\n');
        if members.len() >= MAX_MEMBERS
            || manifest.paths.len() > MAX_QUESTIONS
            || text.len() > MAX_MANIFEST
        {
            return Err(WriteError::TooManyNames);
        }
        let mut builder = tar::Builder::new(Vec::new());
        let mut parts = Vec::with_capacity(3 * members.len() + 4);
        let mut append = |name: &str, bytes: Cow<'a, [u8]>| -> io::Result<()> {
            const PADDING: [u8; 512] = [0; 512];
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Regular);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(mtime);
            header.set_size(number(bytes.len()));
            builder.append_data(&mut header, name, io::empty())?;
            let padding = bytes.len().next_multiple_of(PADDING.len()) - bytes.len();
            parts.push(Cow::Owned(std::mem::take(builder.get_mut())));
            parts.push(bytes);
            parts.push(Cow::Owned(PADDING[..padding].to_vec()));
            Ok(())
        };
        append(MANIFEST, Cow::Owned(text))?;
        for (name, bytes) in &members {
            append(name, Cow::Borrowed(bytes))?;
        }
        parts.push(Cow::Owned(builder.into_inner()?));
        if parts.iter().map(|part| part.len()).sum::<usize>() > MAX_BYTES {
            return Err(too_many_bytes(answers));
        }
        Ok(Self(parts))
    }

    fn reader(&self) -> PartsReader<'_> {
        PartsReader { parts: &self.0, current: &[] }
    }

    fn packed(&self) -> Result<Vec<u8>, WriteError> {
        let pack = |level| {
            let mut packed = Vec::new();
            compress(self.reader(), &mut packed, level);
            packed
        };
        // The encoder is young; a snapshot is often the only chance to see a host. Looking costs little.
        let gives_back = |packed: &[u8]| {
            let mut same = Same(self.reader());
            decompress(packed, &mut same).is_ok() && matches!(same.0.read(&mut [0]), Ok(0))
        };
        let mut packed = pack(CompressionLevel::Fastest);
        if !gives_back(&packed) {
            packed = pack(CompressionLevel::Uncompressed);
            if !gives_back(&packed) {
                return Err(WriteError::Compressor);
            }
        }
        if packed.len() > MAX_PACKED {
            return Err(WriteError::Compressor);
        }
        Ok(packed)
    }
}

fn too_many_bytes(answers: &Answers) -> WriteError {
    let files = answers.iter().flat_map(|((path, _), answers)| {
        answers.iter().filter_map(move |answer| match answer {
            Answer::File(kept) => Some((path, kept.bytes.len())),
            _ => None,
        })
    });
    let largest = files.max_by_key(|(_, length)| *length);
    largest.map_or(WriteError::TooManyNames, |(path, length)| WriteError::TooManyBytes {
        path: path.clone(),
        length,
    })
}

struct PartsReader<'a> {
    parts: &'a [Cow<'a, [u8]>],
    current: &'a [u8],
}

impl Read for PartsReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            let Some((first, rest)) = self.parts.split_first() else { return Ok(0) };
            (self.current, self.parts) = (first, rest);
        }
        self.current.read(out)
    }
}

/// A writer that takes only what its reader gives.
struct Same<R>(R);

impl<R: Read> Write for Same<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = [0; 4096];
        let length = bytes.len().min(buffer.len());
        self.0.read_exact(&mut buffer[..length])?;
        let same = buffer[..length] == bytes[..length];
        if same { Ok(length) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The manifest's questions, and the bytes of each member.
fn questions(answers: &Answers) -> (Vec<Question>, BTreeMap<String, &[u8]>) {
    let mut names = Names::default();
    for ((path, _), answers) in answers {
        names.note_path(path, answers.iter().any(|answer| !matches!(answer, Answer::Missing)));
        for answer in answers {
            if let Answer::Directory(entries) = answer {
                for entry in entries {
                    names.note_name(path, &entry.name);
                }
            }
        }
    }
    names.decide();
    let mut sorted: Vec<(String, Op, &String, &Answer)> = answers
        .iter()
        .flat_map(|((path, op), answers)| {
            let masked = names.path(path);
            let news = (0..answers.len()).filter(|&at| is_news(answers, at));
            news.map(move |at| (masked.clone(), *op, path, &answers[at]))
        })
        .collect();
    // Stable, so several answers to one question stay in the order they came.
    sorted.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let mut files = Files::default();
    let questions = sorted
        .into_iter()
        .map(|(path, op, original, answer)| match answer {
            Answer::File(kept) => files.question(path, kept),
            Answer::Directory(entries) => {
                let masked = |entry: &Entry| Entry {
                    name: names.name(original, &entry.name),
                    kind: entry.kind,
                };
                let mut entries: Vec<Entry> = entries.iter().map(masked).collect();
                entries.sort_by(|a, b| a.name.cmp(&b.name));
                Question {
                    entries: Some(entries),
                    masked: names.hides(original),
                    ..Question::new(path, op, State::Directory)
                }
            }
            Answer::Kind(kind) => {
                Question { kind: Some(*kind), ..Question::new(path, op, State::Kind) }
            }
            Answer::Link(target) => {
                let target = Some(super::mask_ids(target));
                Question { target, ..Question::new(path, op, State::Link) }
            }
            Answer::Missing | Answer::Contradiction => Question::new(path, op, State::Missing),
            Answer::WrongKind(kind) => {
                Question { kind: Some(*kind), ..Question::new(path, op, State::WrongKind) }
            }
            Answer::TooLarge(limit) => {
                Question { limit: Some(number(*limit)), ..Question::new(path, op, State::TooLarge) }
            }
            Answer::Errno(errno) => {
                let errno = Some(errno::name(*errno));
                Question { errno, ..Question::new(path, op, State::Errno) }
            }
        })
        .collect();
    (questions, files.members)
}

/// Whether an answer says what no earlier one to the same question does: two filters may leave the same of a file.
fn is_news(answers: &[Answer], at: usize) -> bool {
    let kept = match &answers[at] {
        Answer::File(kept) => kept,
        Answer::Contradiction => return false,
        _ => return true,
    };
    !answers[..at].iter().any(|answer| match answer {
        Answer::File(old) => old.is_filtered() == kept.is_filtered() && old.bytes == kept.bytes,
        _ => false,
    })
}

/// The files written so far.
#[derive(Default)]
struct Files<'a> {
    ids: BTreeMap<u64, u64>,
    /// For each file, the paths that keep bytes of it.
    keepers: BTreeMap<u64, Vec<(String, &'a Kept)>>,
    read: BTreeSet<String>,
    members: BTreeMap<String, &'a [u8]>,
}

impl<'a> Files<'a> {
    fn question(&mut self, path: String, kept: &'a Kept) -> Question {
        let next = number(self.ids.len());
        let id = *self.ids.entry(kept.id).or_insert(next);
        let question = Question {
            id: Some(id),
            length: Some(number(kept.bytes.len())),
            original: (kept.original != kept.bytes.len()).then(|| number(kept.original)),
            filtered: kept.is_filtered(),
            lines: kept.is_filtered().then(|| number(lines(&kept.bytes))),
            ..Question::new(path.clone(), Op::Read, State::File)
        };
        let keepers = self.keepers.entry(kept.id).or_default();
        let keeper = keepers.iter().find(|(_, other)| other.bytes == kept.bytes);
        if let Some((keeper, _)) = keeper {
            self.read.insert(path);
            return Question { same_as: Some(keeper.clone()), ..question };
        }
        let default = format!("root{path}");
        let member = free_member(&path, &self.members);
        self.members.insert(member.clone(), &kept.bytes);
        // `same_as` names a path, so that path must have one answer only, its first.
        if self.read.insert(path.clone()) {
            keepers.push((path, kept));
        }
        Question { member: (member != default).then_some(member), ..question }
    }
}

/// A member's name that is not taken. `..` may not stand in one.
fn free_member(path: &str, taken: &BTreeMap<String, &[u8]>) -> String {
    let mut member = String::from("root");
    for component in components(path) {
        member.push('/');
        member.push_str(if component == ".." { "..." } else { component });
    }
    let mut copy = 0_usize;
    while taken.contains_key(&member) {
        let rest = member.split_once('/').map_or("", |(_, rest)| rest);
        copy += 1;
        member = format!("root.{copy}/{rest}");
    }
    member
}

fn lines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
        + usize::from(bytes.last().is_some_and(|&byte| byte != b'\n'))
}

fn number(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn both_ways_to_write_a_file_come_to_the_same() {
        let way = |named: bool, target: &Path, existing| {
            let (directory, beside) = (target.parent().unwrap(), target.with_extension("tmp"));
            if named {
                write_named(b"new", target, &beside, existing)
            } else {
                write_unnamed(b"new", directory, target, &beside, existing)
            }
        };
        for named in [true, false] {
            let out = tempfile::TempDir::new().unwrap();
            let target = out.path().join("s");
            match way(named, &target, Existing::Keep) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported && !named => continue,
                other => other.unwrap(),
            }
            let mode = fs::metadata(&target).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600);
            fs::write(&target, "old").unwrap();
            let error = way(named, &target, Existing::Keep).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&target).unwrap(), b"old");
            way(named, &target, Existing::Replace).unwrap();
            assert_eq!(fs::read(&target).unwrap(), b"new");
            assert_eq!(names(out.path()), ["s"], "nothing else is left");
        }
    }
}
