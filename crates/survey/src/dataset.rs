//! The data set: one JSON object per line, one line per row and run, append-only.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::record::Record;

/// The schema every line names.
pub const SCHEMA: &str = "fastpath.survey/1";

/// More than any history: 45 targets a day for ten years is 160,000 lines.
const MAX_BYTES: u64 = 1 << 30;

/// Why the data set could not be read or added to.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A line that is no record.
    #[error("{path}: line {line}: {detail}")]
    Malformed {
        /// The file.
        path: String,
        /// 1-based line.
        line: usize,
        /// What is wrong.
        detail: String,
    },
    /// A directory, a device, a pipe.
    #[error("{path}: expected a regular file for the data set")]
    NotAFile {
        /// The path.
        path: String,
    },
    /// Far too large.
    #[error("{path}: larger than {MAX_BYTES} bytes")]
    TooLarge {
        /// The file.
        path: String,
    },
}

/// A history of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dataset {
    /// Every record, oldest first.
    pub records: Vec<Record>,
}

impl Dataset {
    /// Where the data set is when nobody says: `$XDG_DATA_HOME/fastpath/survey.jsonl`, else below `~/.local/share`.
    pub fn default_path() -> Option<PathBuf> {
        let absolute = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let data = absolute("XDG_DATA_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
        Some(data.join("fastpath/survey.jsonl"))
    }

    /// Reads a data set; a file that is not there is an empty one.
    ///
    /// # Errors
    ///
    /// [`DatasetError`]; a line that is no record names its number.
    pub fn load(path: &Path) -> Result<Self, DatasetError> {
        match read(path)? {
            Some(text) => Self::parse(&text, path),
            None => Ok(Self::default()),
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Self, DatasetError> {
        let mut records = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let malformed = |detail: String| DatasetError::Malformed {
                path: path.display().to_string(),
                line: index + 1,
                detail,
            };
            let record: Record =
                serde_json::from_str(line).map_err(|error| malformed(error.to_string()))?;
            if record.schema != SCHEMA {
                return Err(malformed(format!("schema `{}`, expected `{SCHEMA}`", record.schema)));
            }
            records.push(record);
        }
        Ok(Self { records })
    }

    /// Whether records can be added to the file at `path`, as far as that can be told before there are any.
    ///
    /// # Errors
    ///
    /// [`DatasetError`].
    pub fn check(path: &Path) -> Result<(), DatasetError> {
        Self::load(path)?;
        let folder = folder(path);
        let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
        rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
            DatasetError::Io { path: folder.display().to_string(), source: errno.into() }
        })
    }

    /// Adds records at the end of the file at `path`: all of them or none. The lines that are there stay byte for byte.
    ///
    /// # Errors
    ///
    /// [`DatasetError`]; the file is as it was then.
    pub fn append(path: &Path, records: &[Record]) -> Result<(), DatasetError> {
        let failed =
            |source: io::Error| DatasetError::Io { path: path.display().to_string(), source };
        let path = &target(path);
        Self::check(path)?;
        fs::create_dir_all(folder(path)).map_err(failed)?;
        // Two runs at once take turns, so that neither loses the other's lines.
        let lock_path = sibling(path, ".lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(failed)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)
            .map_err(|errno| failed(errno.into()))?;
        let mut text = read(path)?.unwrap_or_default();
        Self::parse(&text, path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        for record in records {
            // Plain records with string keys always serialise.
            text.push_str(&serde_json::to_string(record).unwrap_or_default());
            text.push('\n');
        }
        replace(path, text.as_bytes())
    }

    /// The names of the runs, oldest first.
    pub fn runs(&self) -> Vec<&str> {
        let mut runs: Vec<&str> = self.records.iter().map(|record| record.run.as_str()).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    /// The records of one run.
    pub fn run<'a>(&'a self, run: &'a str) -> impl Iterator<Item = &'a Record> + 'a {
        self.records.iter().filter(move |record| record.run == run)
    }

    /// For each target the newest record that did not fail, by the target's name. With several kernels of one run, as
    /// from `--all-kernels`, the first one is the default kernel. Runs named later than `until`, RFC 3339, do not count: those
    /// of a clock that was ahead would stay the newest for good.
    pub fn newest(&self, until: &str) -> BTreeMap<&str, &Record> {
        let mut newest: BTreeMap<&str, &Record> = BTreeMap::new();
        let sound = |record: &&Record| record.error.is_none() && record.run.as_str() <= until;
        for record in self.records.iter().filter(sound) {
            let known = newest.get(record.target.as_str());
            if known.is_none_or(|known| known.run < record.run) {
                newest.insert(&record.target, record);
            }
        }
        newest
    }

    /// Runs that are named later than `until`.
    pub fn runs_after<'a>(&'a self, until: &str) -> Vec<&'a str> {
        self.runs().into_iter().filter(|run| *run > until).collect()
    }
}

/// Puts a file in the place of the one at `path`: whole, or not at all.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), DatasetError> {
    let path = &target(path);
    let temporary = sibling(path, &format!(".{}.tmp", std::process::id()));
    let written = File::create(&temporary).and_then(|mut file| {
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(folder(path))?.sync_all()
    });
    written.map_err(|source| {
        let _ = fs::remove_file(&temporary);
        DatasetError::Io { path: path.display().to_string(), source }
    })
}

/// What a path leads to: a link is followed, so that it stays one.
fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// The text of a regular file; `None` if there is nothing at the path. A pipe is not waited for, a device not read.
fn read(path: &Path) -> Result<Option<String>, DatasetError> {
    let name = || path.display().to_string();
    let failed = |source: io::Error| DatasetError::Io { path: name(), source };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(errno.into())),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(DatasetError::NotAFile { path: name() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(DatasetError::TooLarge { path: name() });
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let sound = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..sound].iter().filter(|&&byte| byte == b'\n').count() + 1;
        DatasetError::Malformed { path: name(), line, detail: "expected UTF-8".to_owned() }
    })
}
