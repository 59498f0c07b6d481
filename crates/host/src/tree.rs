//! The one door through which a host is read.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A tree of files that stands for one host. Paths are absolute and resolve inside the tree, links included.
pub trait Tree {
    /// Reads a regular file.
    ///
    /// # Errors
    ///
    /// A [`ReadError`]; a file that is no regular file or is too large is never opened for reading, so nothing hangs.
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError>;

    /// The names in a directory, sorted bytewise, without `.` and `..`. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    ///
    /// A [`ReadError`].
    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError>;

    /// What stands at a path, after following links.
    ///
    /// # Errors
    ///
    /// A [`ReadError`].
    fn kind(&self, path: &str) -> Result<FileKind, ReadError>;

    /// Where the link at a path leads, as its text says; links on the way to it are followed, it itself is not.
    ///
    /// # Errors
    ///
    /// A [`ReadError`]; a text that is not UTF-8 is [`ReadError::WrongKind`].
    fn link(&self, path: &str) -> Result<String, ReadError> {
        let _ = path;
        Err(ReadError::NotRecorded)
    }

    /// What the file system says about what stands at a path, after following links. A snapshot does not hold that.
    ///
    /// # Errors
    ///
    /// A [`ReadError`].
    fn stat(&self, path: &str) -> Result<Stat, ReadError> {
        let _ = path;
        Err(ReadError::NotRecorded)
    }
}

/// What the file system says about one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// What it is.
    pub kind: FileKind,
    /// Major and minor number of the device that holds it.
    pub device: (u32, u32),
    /// Major and minor number of the device that it is, for a device node.
    pub rdev: (u32, u32),
    /// The mount it is on, as the first field of `mountinfo`; `None` before Linux 5.8.
    pub mount: Option<u64>,
    /// What direct I/O asks of memory addresses and of file offsets, in bytes, each zero if direct I/O is not done; `None` if the
    /// kernel does not tell. Source: <https://man7.org/linux/man-pages/man2/statx.2.html>, `STATX_DIOALIGN`, since Linux 6.1.
    pub direct_io: Option<(u32, u32)>,
}

/// The path that a link at `path` with this text leads to, one step: `..` is taken textually, as in `sysfs`, where
/// directories on the way are no links.
pub fn join_link(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    if !target.starts_with('/') {
        parts.extend(path.split('/').filter(|part| !part.is_empty()));
        parts.pop();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// What a reader wants of a file.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// The most bytes to read; a larger file is [`ReadError::TooLarge`].
    pub limit: usize,
    /// What of each line is used. What a filter drops is seen by nobody, and a snapshot does not hold it.
    pub lines: Option<LineFilter>,
    /// What to do to the bytes before a snapshot keeps them. It must not change what the reader finds in them.
    pub redact: Option<Redaction>,
    /// What is taken out of a file that is too large to be read whole; that is the content then. Taken out of what was taken
    /// out it is the same. A tree that holds its files in memory may give the whole file instead.
    pub extract: Option<Extraction>,
}

/// A file that is read in places.
pub trait ReadSeek: std::io::Read + std::io::Seek {}

impl<T: std::io::Read + std::io::Seek> ReadSeek for T {}

/// Takes out of a file what is used of it.
pub type Extraction = fn(&mut dyn ReadSeek) -> std::io::Result<Vec<u8>>;

/// Appends to the output what is used of one line (given without its line end). Line numbers stay as they are. What it
/// keeps of a line it keeps again of what it kept: a snapshot holds filtered lines, and its reader filters them anew.
pub type LineFilter = fn(line: &[u8], out: &mut Vec<u8>);

/// What of a file's bytes may be kept for others.
pub type Redaction = fn(&[u8]) -> Vec<u8>;

impl Want {
    /// The whole of a file of at most `limit` bytes.
    pub const fn whole(limit: usize) -> Self {
        Self { limit, lines: None, redact: None, extract: None }
    }

    /// A file of at most `limit` bytes, through a line filter.
    pub const fn lines(limit: usize, filter: LineFilter) -> Self {
        Self { limit, lines: Some(filter), redact: None, extract: None }
    }
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The bytes, after the line filter if there was one.
    pub bytes: Vec<u8>,
    /// Which file it is, whatever the name.
    pub id: FileId,
}

/// Identity of a file within one tree: two names of one file have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// What it is, links not followed.
    pub kind: FileKind,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// Anything else.
    Unknown,
}

impl FileKind {
    /// The kind in words, with its article.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::File => "a regular file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Fifo => "a named pipe",
            Self::Socket => "a socket",
            Self::CharacterDevice => "a character device",
            Self::BlockDevice => "a block device",
            Self::Unknown => "of an unknown kind",
        }
    }
}

/// Why a path gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is nothing at the path.
    #[error("not there")]
    Missing,
    /// It is not what was asked for.
    #[error("it is {}", .0.describe())]
    WrongKind(FileKind),
    /// It is larger than the reader takes.
    #[error("larger than {0} bytes")]
    TooLarge(usize),
    /// The system refused.
    #[error("{}", describe(*.0))]
    Os(Errno),
    /// The snapshot says nothing about the path: an older version made it, or it was made for another question.
    #[error("not recorded in this snapshot")]
    NotRecorded,
}

impl ReadError {
    /// Whether more privilege might help.
    pub fn is_permission(self) -> bool {
        matches!(self, Self::Os(Errno::ACCESS | Errno::PERM))
    }
}

/// A path that may have told something and could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The path, as on the host, from `/`.
    pub path: String,
    /// Why: one clause.
    pub reason: String,
    /// More privilege might help.
    pub permission: bool,
    /// The host is read from a snapshot that says nothing about it.
    pub not_recorded: bool,
}

impl Unread {
    pub(crate) fn new(path: &str, error: ReadError) -> Self {
        Self {
            path: path.to_owned(),
            reason: error.to_string(),
            permission: error.is_permission(),
            not_recorded: error == ReadError::NotRecorded,
        }
    }
}

impl From<Errno> for ReadError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::Missing,
            other => Self::Os(other),
        }
    }
}

fn describe(errno: Errno) -> String {
    match errno {
        Errno::ACCESS | Errno::PERM => "permission denied".to_owned(),
        Errno::LOOP => "the links form a loop".to_owned(),
        Errno::IO => "input/output error".to_owned(),
        other => std::io::Error::from(other).to_string(),
    }
}
