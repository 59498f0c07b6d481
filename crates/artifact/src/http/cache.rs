//! Whole files kept for the next time: indexes and their signatures.
//!
//! Nothing that comes out of the cache is trusted more than what comes from the network: callers check hash and signature
//! each time. Each entry is one file, so that a single rename replaces it whole:
//!
//! ```text
//! fastpath.cache/1
//! url: https://...
//! etag: "..."                 if there is one
//! last-modified: ...          if there is one
//! length: 1234
//!                             an empty line, then the content
//! ```

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::error::FetchError;
use super::{Fetch, Meter, Part, Request, Validators, address};
use crate::regular;

const MAGIC: &str = "fastpath.cache/1";
/// The most bytes kept; the entries used longest ago go first.
const LIMIT: u64 = 512 << 20;
/// The longest header of an entry.
const HEADER: u64 = 64 << 10;

/// A folder of kept files.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    offline: bool,
    limit: u64,
    /// A folder that goes with this value, where there is no lasting one.
    _scratch: Option<tempfile::TempDir>,
    /// One request at a time for each address: the second finds what the first brought.
    busy: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

/// Where content came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was transferred.
    Fetched,
    /// It was kept, and the server says it is still so.
    Confirmed,
    /// It was kept; nobody was asked.
    Kept,
    /// It is a local file.
    Local,
}

/// Content that can be read any number of times.
#[derive(Debug)]
pub struct Cached {
    /// Where it came from.
    pub origin: Origin,
    /// Its length in bytes.
    pub length: u64,
    url: String,
    file: File,
    start: u64,
}

impl Cached {
    /// Reads it from its start. Only one reader at a time.
    ///
    /// # Errors
    ///
    /// [`FetchError::File`].
    pub fn reader(&mut self) -> Result<io::Take<&mut File>, FetchError> {
        self.file.seek(SeekFrom::Start(self.start)).map_err(|source| FetchError::File {
            path: PathBuf::from(address::shown(&self.url)),
            source,
        })?;
        Ok((&mut self.file).take(self.length))
    }

    /// All of it.
    ///
    /// # Errors
    ///
    /// [`FetchError::File`].
    pub fn bytes(&mut self) -> Result<Vec<u8>, FetchError> {
        let url = address::shown(&self.url);
        let mut bytes = Vec::new();
        self.reader()?
            .read_to_end(&mut bytes)
            .map_err(|source| FetchError::File { path: PathBuf::from(url), source })?;
        Ok(bytes)
    }
}

struct Entry {
    validators: Validators,
    content: Cached,
}

impl Cache {
    /// The cache in `folder`, which is made if it is not there. `offline`: nothing is fetched.
    ///
    /// # Errors
    ///
    /// [`FetchError::File`] if the folder cannot be made.
    pub fn new(folder: PathBuf, offline: bool) -> Result<Self, FetchError> {
        fs::create_dir_all(&folder)
            .map_err(|source| FetchError::File { path: folder.clone(), source })?;
        Ok(Self { folder, offline, limit: LIMIT, _scratch: None, busy: Mutex::default() })
    }

    /// A cache that is gone when this value is.
    ///
    /// # Errors
    ///
    /// [`FetchError::File`] if there is no place for temporary files.
    pub fn temporary(offline: bool) -> Result<Self, FetchError> {
        let scratch = tempfile::tempdir()
            .map_err(|source| FetchError::File { path: std::env::temp_dir(), source })?;
        let folder = scratch.path().to_owned();
        Ok(Self { _scratch: Some(scratch), ..Self::new(folder, offline)? })
    }

    /// Where the cache is by custom: `$XDG_CACHE_HOME/fastpath`, else `~/.cache/fastpath`. `None` if neither is set.
    pub fn usual_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        // A path that is not absolute is to be ignored, says the XDG specification.
        let base = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let home = || variable("HOME").filter(|path| path.is_absolute());
        Some(base.or_else(|| Some(home()?.join(".cache")))?.join("fastpath"))
    }

    /// Keeps at most so many bytes. 512 MiB if not set.
    pub fn set_limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    /// What is kept of an address, without asking anyone: for addresses whose content never changes, such as those that
    /// contain its hash.
    pub fn kept(&self, url: &str) -> Option<Cached> {
        let entry = self.load(url)?;
        Some(Cached { origin: Origin::Kept, ..entry.content })
    }

    /// Keeps content under a name of the caller's own, to be found again with [`Cache::kept`].
    ///
    /// # Errors
    ///
    /// [`FetchError::File`] if it cannot be written.
    pub fn put(&self, name: &str, content: Vec<u8>) -> Result<(), FetchError> {
        let limit = content.len() as u64;
        self.store(name, &Validators::default(), Box::new(io::Cursor::new(content)), limit)?;
        Ok(())
    }

    /// Whether nothing may be fetched.
    pub fn is_offline(&self) -> bool {
        self.offline
    }

    /// Drops what is kept of an address: it turned out not to be what it should.
    pub fn forget(&self, url: &str) {
        // If it stays, it is found wanting once more.
        let _ = fs::remove_file(self.path(url));
    }

    /// The content behind an address, at most `limit` bytes: what is kept, if the server says it is still so. A local file is
    /// read where it lies.
    ///
    /// # Errors
    ///
    /// A [`FetchError`]; [`FetchError::Offline`] if it is not kept and nothing may be fetched.
    pub fn get(
        &self,
        fetch: &dyn Fetch,
        url: &str,
        limit: u64,
        meter: &Meter,
    ) -> Result<Cached, FetchError> {
        if let Some(path) = address::local(url) {
            return local(&path, url, limit);
        }
        let lock = {
            let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(busy.entry(url.to_owned()).or_default())
        };
        let _turn = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = self.load(url).filter(|entry| entry.content.length <= limit);
        if self.offline {
            let entry = entry.ok_or_else(|| FetchError::Offline { url: address::shown(url) })?;
            return Ok(Cached { origin: Origin::Kept, ..entry.content });
        }
        let known = entry.as_ref().map(|entry| &entry.validators).filter(|known| !known.is_empty());
        let response = fetch.get(&Request { unless: known, ..Request::whole(url, meter) })?;
        if response.part == Part::NotModified {
            if let Some(entry) = entry {
                return Ok(Cached { origin: Origin::Confirmed, ..entry.content });
            }
            // Nobody asked for that.
            return Err(FetchError::Status {
                url: address::shown(url),
                offset: 0,
                status: 304,
                tries: 1,
            });
        }
        if let Some(length) = response.length
            && length > limit
        {
            let url = address::shown(url);
            return Err(FetchError::TooLarge { url, limit, found: Some(length) });
        }
        let validators = response.validators.clone();
        self.store(url, &validators, response.body, limit)
    }

    fn path(&self, url: &str) -> PathBuf {
        let mut name = String::with_capacity(64);
        for byte in Sha256::digest(url.as_bytes()) {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        self.folder.join(name)
    }

    /// A sound entry; anything else is as good as none.
    fn load(&self, url: &str) -> Option<Entry> {
        let (file, metadata) = regular::open(&self.path(url)).ok()?;
        let size = metadata.len();
        let mut reader = BufReader::new(file).take(HEADER);
        let mut line = String::new();
        let mut next = |line: &mut String| -> Option<u64> {
            line.clear();
            let read = reader.read_line(line).ok()?;
            line.pop().filter(|&end| end == '\n')?;
            Some(read as u64)
        };
        let mut start = next(&mut line)?;
        if line != MAGIC {
            return None;
        }
        let (mut same, mut length, mut validators) = (false, None, Validators::default());
        loop {
            start += next(&mut line)?;
            match line.split_once(": ") {
                Some(("url", value)) => same = value == url,
                Some(("etag", value)) => validators.etag = Some(value.to_owned()),
                Some(("last-modified", value)) => validators.last_modified = Some(value.to_owned()),
                Some(("length", value)) => length = value.parse::<u64>().ok(),
                _ if line.is_empty() => break,
                _ => return None,
            }
        }
        let length = length?;
        if !same || start.checked_add(length)? != size {
            return None;
        }
        let file = reader.into_inner().into_inner();
        // So that what is in use is not thrown away first.
        let _ = file.set_modified(SystemTime::now());
        let content = Cached { origin: Origin::Kept, length, url: url.to_owned(), file, start };
        Some(Entry { validators, content })
    }

    fn store(
        &self,
        url: &str,
        validators: &Validators,
        mut body: Box<dyn Read + Send>,
        limit: u64,
    ) -> Result<Cached, FetchError> {
        let failed = |source| FetchError::File { path: self.folder.clone(), source };
        let mut file =
            tempfile::Builder::new().prefix(".new-").tempfile_in(&self.folder).map_err(failed)?;
        // The length is not known before the end: it is written over a blank of its width.
        let mut header = format!("{MAGIC}\nurl: {url}\n");
        let validator_lines =
            [("etag", &validators.etag), ("last-modified", &validators.last_modified)];
        for (name, value) in validator_lines {
            if let Some(value) = value {
                let _ = writeln!(header, "{name}: {value}");
            }
        }
        let place = header.len() as u64;
        header.push_str(&length_line(0));
        file.write_all(header.as_bytes()).map_err(failed)?;
        let mut buffer = vec![0; 64 << 10];
        let mut length = 0;
        loop {
            let read = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) => return Err(FetchError::from_read(url, length, error)),
            };
            length += read as u64;
            if length > limit {
                let url = address::shown(url);
                return Err(FetchError::TooLarge { url, limit, found: None });
            }
            file.write_all(&buffer[..read]).map_err(failed)?;
        }
        file.seek(SeekFrom::Start(place)).map_err(failed)?;
        file.write_all(length_line(length).as_bytes()).map_err(failed)?;
        // Not synchronised, which takes most of a second on a busy disk: an entry that a power failure cut is none.
        let path = self.path(url);
        let file = match file.persist(&path) {
            Ok(file) => file,
            // A directory stands there, which is not ours to remove: the content is used and not kept.
            Err(error) if path.is_dir() => error.file.into_file(),
            Err(error) => return Err(FetchError::File { path, source: error.error }),
        };
        self.prune();
        let start = header.len() as u64;
        Ok(Cached { origin: Origin::Fetched, length, url: url.to_owned(), file, start })
    }

    /// Removes what was used longest ago until the rest fits. Errors are no matter: it is tried again next time.
    fn prune(&self) {
        let Ok(folder) = fs::read_dir(&self.folder) else { return };
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = folder
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in &entries {
            if total <= self.limit {
                break;
            }
            total -= size;
            let _ = fs::remove_file(path);
        }
    }
}

fn length_line(length: u64) -> String {
    format!("length: {length:020}\n\n")
}

fn local(path: &Path, url: &str, limit: u64) -> Result<Cached, FetchError> {
    let failed = |source| FetchError::File { path: path.to_owned(), source };
    let (file, metadata) = regular::open(path).map_err(failed)?;
    let length = metadata.len();
    if length > limit {
        return Err(FetchError::TooLarge { url: url.to_owned(), limit, found: Some(length) });
    }
    Ok(Cached { origin: Origin::Local, length, url: url.to_owned(), file, start: 0 })
}
