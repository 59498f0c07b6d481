//! A directory of this machine as a root.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::lines::Filtered;
use crate::tree::{Content, Entry, FileId, FileKind, ReadError, Tree, Want};

/// A host read from a directory of this machine: `/` or another tree.
#[derive(Debug)]
pub struct DirTree {
    root: OwnedFd,
    resolver: Resolver,
}

/// How paths are kept inside the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolver {
    /// The kernel's `openat2` with `RESOLVE_IN_ROOT`, since Linux 5.6.
    Kernel,
    /// Component by component, with the same result.
    Walk,
}

/// Why a directory cannot be a root.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct OpenError {
    /// The directory.
    pub path: String,
    /// What is wrong with it.
    pub reason: ReadError,
}

/// As many links as the kernel follows in one path before it says `ELOOP`.
const MAX_LINKS: u32 = 40;

/// More names than any directory read here has; the rest is not looked at.
const MAX_NAMES: usize = 65_536;

impl DirTree {
    /// Takes a directory as a root.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if there is no directory at `path`, or it may not be searched.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::open(path, flags, Mode::empty()).map_err(|errno| OpenError {
            path: path.display().to_string(),
            reason: match errno {
                Errno::NOTDIR => fs::stat(path)
                    .map_or(ReadError::Missing, |stat| ReadError::WrongKind(kind_of(&stat))),
                other => other.into(),
            },
        })?;
        let probe = fs::openat2(&root, ".", flags, Mode::empty(), ResolveFlags::IN_ROOT);
        let resolver = if probe.is_ok() { Resolver::Kernel } else { Resolver::Walk };
        Ok(Self { root, resolver })
    }

    /// Resolves a path to a handle that names it without opening what is there.
    fn locate(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.open_in_root(path, OFlags::PATH)
    }

    fn open_in_root(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        match self.resolver {
            Resolver::Kernel => {
                let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
                fs::openat2(&self.root, path, flags, Mode::empty(), resolve)
            }
            Resolver::Walk => {
                let handle = walk(&self.root, path)?;
                if flags.contains(OFlags::PATH) {
                    return Ok(handle.0);
                }
                // The name of the last component in its own directory; no link is left to follow.
                fs::openat(&handle.1, handle.2.as_str(), flags | OFlags::NOFOLLOW, Mode::empty())
            }
        }
    }

    /// Opens what is at `path` for reading if it is of the kind asked for. Looking first, without opening, keeps
    /// devices and pipes untouched.
    fn open_kind(&self, path: &str, kind: FileKind) -> Result<(OwnedFd, Stat), ReadError> {
        let found = kind_of(&fs::fstat(self.locate(path)?)?);
        if found != kind {
            return Err(ReadError::WrongKind(found));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.open_in_root(path, flags)?;
        let stat = fs::fstat(&file)?;
        if kind_of(&stat) == kind {
            Ok((file, stat))
        } else {
            Err(ReadError::WrongKind(kind_of(&stat)))
        }
    }
}

impl Tree for DirTree {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let (file, stat) = self.open_kind(path, FileKind::File)?;
        let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        if size > want.limit {
            return Err(ReadError::TooLarge(want.limit));
        }
        let bytes = read_limited(&file, size, want)?;
        #[allow(clippy::useless_conversion, reason = "the width differs between architectures")]
        let id = FileId { device: u64::from(stat.st_dev), inode: u64::from(stat.st_ino) };
        Ok(Content { bytes, id })
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        let (directory, _) = self.open_kind(path, FileKind::Directory)?;
        let mut entries = Vec::new();
        for entry in Dir::new(directory)?.take(MAX_NAMES) {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            entries.push(Entry { name: name.to_owned(), kind: kind(entry.file_type()) });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        Ok(kind_of(&fs::fstat(self.locate(path)?)?))
    }
}

/// Reads to the end, or to one byte past the limit. Files of `/proc` say size zero, so the size is only a hint.
fn read_limited(file: &OwnedFd, size: usize, want: &Want) -> Result<Vec<u8>, ReadError> {
    const CHUNK: usize = 64 << 10;
    let mut filtered = want.lines.map(Filtered::new);
    let mut whole = Vec::with_capacity(if want.lines.is_some() { 0 } else { size });
    let mut chunk = vec![0; CHUNK.min(want.limit.saturating_add(1))];
    let mut total = 0_usize;
    loop {
        let count = match rustix::io::read(file, &mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        total += count;
        if total > want.limit {
            return Err(ReadError::TooLarge(want.limit));
        }
        match &mut filtered {
            Some(filtered) => filtered.push(&chunk[..count]),
            None => whole.extend_from_slice(&chunk[..count]),
        }
    }
    Ok(filtered.map_or(whole, Filtered::finish))
}

/// Resolves `path` inside `root` one component at a time: absolute links start again at the root, `..` stops there.
/// Gives the handle, its directory, and its name in it.
fn walk(root: &OwnedFd, path: &str) -> Result<(OwnedFd, OwnedFd, String), Errno> {
    let again = |fd: &OwnedFd| fd.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE);
    // Directories from the root down to where the walk stands; `..` pops, never below the root.
    let mut stack = vec![again(root)?];
    let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut links = 0;
    let mut last = (again(root)?, ".".to_owned());
    while let Some(component) = todo.pop() {
        let needs_directory = !todo.is_empty();
        let here = stack.last().ok_or(Errno::NOENT)?;
        match component.as_str() {
            "" | "." => continue,
            ".." => {
                if stack.len() > 1 {
                    stack.pop();
                }
                let here = stack.last().ok_or(Errno::NOENT)?;
                last = (again(here)?, ".".to_owned());
                continue;
            }
            _ => {}
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = fs::openat(here, component.as_str(), flags, Mode::empty())?;
        match kind_of(&fs::fstat(&handle)?) {
            FileKind::Link => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = fs::readlinkat(&handle, c"", Vec::new())?;
                let target = target.to_str().map_err(|_| Errno::ILSEQ)?;
                if target.starts_with('/') {
                    stack.truncate(1);
                }
                todo.extend(target.split('/').rev().map(str::to_owned));
            }
            FileKind::Directory => {
                last = (again(here)?, component);
                stack.push(handle);
            }
            _ if needs_directory => return Err(Errno::NOTDIR),
            _ => return Ok((handle, again(here)?, component)),
        }
    }
    let handle = stack.pop().ok_or(Errno::NOENT)?;
    Ok((handle, last.0, last.1))
}

fn kind_of(stat: &Stat) -> FileKind {
    kind(FileType::from_raw_mode(stat.st_mode))
}

const fn kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice => FileKind::CharacterDevice,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::Unknown => FileKind::Unknown,
    }
}
