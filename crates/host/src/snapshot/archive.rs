//! Writing a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::manifest::{Manifest, Meta, Question, State};
use super::names::Names;
use super::record::{Answer, Answers, Kept, Recorder};
use super::replay::decompress;
use super::{MANIFEST, MAX_BYTES, MAX_MANIFEST, MAX_MEMBERS, Op, SCHEMA, components, errno, time};
use crate::tree::{Entry, FileId};

/// Why a snapshot was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What the caller says about the snapshot cannot stand in one.
    #[error("the time must be RFC 3339 in UTC, and no text may hold control characters")]
    Meta,
    /// Nobody could read it.
    #[error("a snapshot may hold {MAX_MEMBERS} files and {MAX_BYTES} bytes; this one has more")]
    TooMuch,
    /// The compressor gave something else than what went in.
    #[error("the compressed snapshot does not give back what was put in")]
    Compressor,
    /// Replacing anything but a file would take away a device or a pipe.
    #[error("{}: exists and is not a regular file", .0.display())]
    NotAFile(PathBuf),
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

/// Writes what a recorder remembers. The same answers and the same `meta` give the same bytes.
///
/// # Errors
///
/// A [`WriteError`]. Nothing is written before the whole snapshot is made.
pub fn write(recorder: &Recorder, meta: &Meta, mut out: impl Write) -> Result<(), WriteError> {
    let tar = recorder.with_answers(|answers| tar(answers, meta))?;
    let mut packed = compress_to_vec(tar.as_slice(), CompressionLevel::Fastest);
    // The encoder is young; a snapshot is often the only chance to see a host. Looking costs little.
    if !gives_back(&packed, &tar) {
        packed = compress_to_vec(tar.as_slice(), CompressionLevel::Uncompressed);
        if !gives_back(&packed, &tar) {
            return Err(WriteError::Compressor);
        }
    }
    out.write_all(&packed)?;
    out.flush()?;
    Ok(())
}

/// Writes what a recorder remembers to a file: to a temporary one beside it first, which takes its name only when all
/// is on disk. A failure leaves nothing behind and an older file of that name as it was.
///
/// # Errors
///
/// A [`WriteError`].
pub fn write_file(recorder: &Recorder, meta: &Meta, path: &Path) -> Result<(), WriteError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| WriteError::Path { path, source }
    };
    // A link stays a link: what it leads to is replaced.
    let target = match fs::metadata(path) {
        Ok(found) if found.is_file() => fs::canonicalize(path).map_err(failed(path))?,
        Ok(_) => return Err(WriteError::NotAFile(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(failed(path)(error)),
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
    let temporary = Temporary(directory.join(beside));
    let file = OpenOptions::new().write(true).create_new(true).open(&temporary.0);
    let file = match file {
        Ok(file) => file,
        Err(error) => {
            temporary.keep();
            return Err(failed(path)(error));
        }
    };
    write(recorder, meta, &file)?;
    file.sync_all().map_err(failed(path))?;
    fs::rename(&temporary.0, &target).map_err(failed(path))?;
    temporary.keep();
    // The new name is there; only a crash right now could lose it, and some file systems cannot sync a directory.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// A file that goes away unless it is kept.
struct Temporary(PathBuf);

impl Temporary {
    fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.0);
        }
    }
}

fn gives_back(packed: &[u8], plain: &[u8]) -> bool {
    decompress(packed).is_ok_and(|unpacked| unpacked == plain)
}

/// The archive before compression.
fn tar(answers: &Answers, meta: &Meta) -> Result<Vec<u8>, WriteError> {
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
    let mut manifest = serde_json::to_vec_pretty(&manifest).map_err(io::Error::from)?;
    manifest.push(b'\n');
    let total: usize = members.values().map(|bytes| bytes.len() + 2048).sum();
    if members.len() >= MAX_MEMBERS
        || manifest.len() > MAX_MANIFEST
        || total.saturating_add(manifest.len() + 4096) > MAX_BYTES
    {
        return Err(WriteError::TooMuch);
    }
    let mut builder = tar::Builder::new(Vec::with_capacity(total + manifest.len() + 4096));
    let mut append = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(mtime);
        header.set_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        builder.append_data(&mut header, name, bytes)
    };
    append(MANIFEST, &manifest)?;
    for (name, bytes) in &members {
        append(name, bytes)?;
    }
    Ok(builder.into_inner()?)
}

/// The manifest's questions, and the bytes of each member.
fn questions(answers: &Answers) -> (Vec<Question>, BTreeMap<String, &[u8]>) {
    let mut names = Names::default();
    for ((path, _), answers) in answers {
        names.note_path(path);
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
            answers.iter().map(move |answer| (masked.clone(), *op, path, answer))
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
                Question { entries: Some(entries), ..Question::new(path, op, State::Directory) }
            }
            Answer::Kind(kind) => {
                Question { kind: Some(*kind), ..Question::new(path, op, State::Kind) }
            }
            Answer::Missing => Question::new(path, op, State::Missing),
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

/// The files written so far.
#[derive(Default)]
struct Files<'a> {
    ids: BTreeMap<FileId, u64>,
    /// For each file, the paths that keep bytes of it.
    keepers: BTreeMap<FileId, Vec<(String, &'a Kept)>>,
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
            filtered: kept.filtered,
            lines: kept.filtered.then(|| number(lines(&kept.bytes))),
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
