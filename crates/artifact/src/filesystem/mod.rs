//! File systems in images, read-only.
//!
//! [`probe`] tells by magic numbers which one an image holds, [`candidates`] lists what in it may tell about a kernel.
//! Each reader is a subset of its format: what it takes to find a path and read a file. None of them writes, repairs or
//! guesses: data that cannot be placed is an error with the offset, never zeros.
//!
//! The readers are written here because what libraries there are take only readers that live as long as the program
//! (an input here borrows another one: a file in an image in an image), or reads wrong data: `ext4-view` 1.0 gives
//! stale bytes for preallocated extents and `xfs-core` 0.1 zeros beyond the first allocation group.

mod btrfs;
mod candidates;
pub(crate) mod decode;
mod ext4;
mod fat;
mod iso9660;
mod paths;
mod squashfs;
mod xfs;

use std::io;

pub use candidates::{Candidate, CandidateKind, Candidates, candidates};

use crate::ReadSeek;
use crate::disk::source::Source;

/// Names of one directory that are kept at most.
const MAX_NAMES: usize = 200_000;

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, UTF-8; others are left out by readers.
    pub name: String,
    /// What it is, links not followed.
    pub kind: EntryKind,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Anything else.
    Other,
}

impl EntryKind {
    /// By the upper four bits of a file's mode, as `S_IFMT` has them.
    fn of_mode(mode: impl Into<u32>) -> Self {
        match mode.into() >> 12 & 0xf {
            0x8 => Self::File,
            0x4 => Self::Directory,
            0xa => Self::Link,
            _ => Self::Other,
        }
    }
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The path with all links resolved.
    pub path: String,
    /// What is there; never a link.
    pub kind: EntryKind,
    /// Its size in bytes, if it is a file.
    pub size: u64,
}

/// A file system that can be asked for paths. Paths are absolute, separated by `/`; symbolic links on the way are
/// followed inside the file system, at most 40 of them.
pub trait FileSystem {
    /// Its name, `ext4`.
    fn name(&self) -> &'static str;

    /// The entries of a directory.
    ///
    /// # Errors
    ///
    /// A [`FsError`].
    fn read_dir(&mut self, path: &str) -> Result<Vec<DirEntry>, FsError>;

    /// The whole of a regular file of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// A [`FsError`]; [`FsError::TooLarge`] before anything is read.
    fn read(&mut self, path: &str, limit: usize) -> Result<Vec<u8>, FsError>;

    /// A regular file to be read in parts; its errors are [`FsError`]s inside of [`io::Error`]s.
    ///
    /// # Errors
    ///
    /// A [`FsError`].
    fn open(&mut self, path: &str) -> Result<Box<dyn ReadSeek + '_>, FsError>;

    /// The directories each of which may be the root of a system, the likeliest first: `/`, but in btrfs the subvolumes
    /// before it. Inside of each, absolute links lead into it again.
    fn roots(&self) -> &[String];

    /// What is at a path, links followed.
    ///
    /// # Errors
    ///
    /// A [`FsError`].
    fn stat(&mut self, path: &str) -> Result<Stat, FsError>;
}

/// Why a path in a file system gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// There is nothing at the path, or it is of another kind.
    #[error("not there")]
    Missing,
    /// The file is larger than asked for.
    #[error("{0} bytes, more than is read")]
    TooLarge(u64),
    /// The file system contradicts itself.
    #[error("damaged at offset {offset}: {detail}")]
    Damaged {
        /// Where, in bytes from the start of the file system.
        offset: u64,
        /// Expected and found.
        detail: String,
    },
    /// A feature that is not read here.
    #[error("uses {0}, which is not read here")]
    Unsupported(String),
    /// A bound was reached.
    #[error("more than {limit} {what}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// The image could not be read.
    #[error(transparent)]
    Io(io::Error),
}

/// An error of a file system on its way through [`io::Read`] comes out as it went in.
impl From<io::Error> for FsError {
    fn from(error: io::Error) -> Self {
        error.downcast().unwrap_or_else(Self::Io)
    }
}

impl From<FsError> for io::Error {
    fn from(error: FsError) -> Self {
        match error {
            FsError::Io(error) => error,
            other => Self::other(other),
        }
    }
}

/// The kinds that are told apart, by magic numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ext4,
    Xfs,
    Iso9660,
    Squashfs,
    Fat,
    Btrfs,
    /// Known, not read.
    Other(&'static str),
}

/// Magic numbers: offset, bytes, kind.
const MAGICS: [(u64, &[u8], Kind); 14] = [
    (0x1_0040, b"_BHRfS_M", Kind::Btrfs),
    (0, b"XFSB", Kind::Xfs),
    (0, b"hsqs", Kind::Squashfs),
    (3, b"NTFS    ", Kind::Other("NTFS")),
    (3, b"EXFAT   ", Kind::Other("exFAT")),
    (0, b"sqsh", Kind::Other("big-endian squashfs")),
    (1080, &[0x53, 0xef], Kind::Ext4),
    (0x8001, b"CD001", Kind::Iso9660),
    (0, b"LUKS\xba\xbe", Kind::Other("LUKS encryption")),
    (1024, &[0xe2, 0xe1, 0xf5, 0xe0], Kind::Other("EROFS")),
    (1024, &[0x10, 0x20, 0xf5, 0xf2], Kind::Other("F2FS")),
    (0x10034, b"ReIsEr", Kind::Other("ReiserFS")),
    (536, b"LVM2 001", Kind::Other("LVM")),
    (4096 + 24, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca], Kind::Other("bcachefs")),
];

fn kind(source: &mut Source<'_>) -> Result<Option<Kind>, FsError> {
    for (offset, magic, kind) in MAGICS {
        if has(source, offset, magic)? {
            return Ok(Some(kind));
        }
    }
    let mut boot = [0; 512];
    if source.len() < 512 {
        return Ok(None);
    }
    source.read_at(0, &mut boot)?;
    Ok(fat::is_fat(&boot).then_some(Kind::Fat))
}

fn has(source: &mut Source<'_>, offset: u64, magic: &[u8]) -> Result<bool, FsError> {
    if offset + magic.len() as u64 > source.len() {
        return Ok(false);
    }
    let mut found = [0; 32];
    let found = &mut found[..magic.len()];
    source.read_at(offset, found)?;
    Ok(found == magic)
}

/// Whether it is an image of an optical disc; those may have partition tables on top.
pub(crate) fn is_iso9660(source: &mut Source<'_>) -> Result<bool, FsError> {
    has(source, 0x8001, b"CD001")
}

/// Whether a file system that can be told begins here.
pub(crate) fn is_known(source: &mut Source<'_>) -> Result<bool, FsError> {
    Ok(kind(source)?.is_some())
}

/// The file system in an image, told by magic numbers; `None` if there is none that is known.
///
/// # Errors
///
/// A [`FsError`]: it is damaged, or of a kind or with a feature that is known and not read.
pub fn probe<'a>(input: &'a mut dyn ReadSeek) -> Result<Option<Box<dyn FileSystem + 'a>>, FsError> {
    let mut source = Source::new(input)?;
    let Some(kind) = kind(&mut source)? else { return Ok(None) };
    Ok(Some(match kind {
        Kind::Ext4 => Box::new(paths::Paths::new(ext4::Ext4::open(source)?)?),
        Kind::Xfs => Box::new(paths::Paths::new(xfs::Xfs::open(source)?)?),
        Kind::Iso9660 => Box::new(paths::Paths::new(iso9660::Iso::open(source)?)?),
        Kind::Squashfs => Box::new(paths::Paths::new(squashfs::Squashfs::open(source)?)?),
        Kind::Btrfs => Box::new(paths::Paths::new(btrfs::Btrfs::open(source)?)?),
        Kind::Fat => Box::new(paths::Paths::new(fat::Fat::open(source)?)?),
        Kind::Other(what) => return Err(FsError::Unsupported(what.to_owned())),
    }))
}
