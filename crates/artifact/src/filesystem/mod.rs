//! File systems in images, read-only.

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
    /// The image could not be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
