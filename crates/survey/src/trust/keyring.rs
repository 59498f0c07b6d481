//! Keys on this machine, of which the pinned ones count.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pgp::composed::{Deserializable, SignedPublicKey};
use pgp::types::KeyDetails;
use serde::Deserialize;

use super::TrustError;
use super::digest::unhex;

/// Where distributions keep keys.
const FOLDERS: [&str; 7] = [
    "usr/share/keyrings",
    "etc/apt/keyrings",
    "etc/apt/trusted.gpg.d",
    "usr/share/distribution-gpg-keys",
    "etc/pki/rpm-gpg",
    "usr/lib/rpm/gnupg/keys",
    "usr/share/pacman/keyrings",
];
/// The largest file looked at; Debian's developers' keyring is larger and holds no archive keys.
const LARGEST: u64 = 4 << 20;
const MOST_FILES: usize = 5000;
const DEEPEST: u32 = 3;
const MOST_KEYS: usize = 2000;

/// The fingerprint of a primary key: 40 hexadecimal digits, or 64 for keys of version 6.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Fingerprint(String);

impl Fingerprint {
    pub(super) fn of(key: &impl KeyDetails) -> Self {
        Self(format!("{:X}", key.fingerprint()))
    }

    /// The digits, upper case, without blanks.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Fingerprint {
    type Err = TrustError;

    fn from_str(text: &str) -> Result<Self, TrustError> {
        let digits: String = text.chars().filter(|c| *c != ' ').collect();
        match unhex(&digits).map(|bytes| bytes.len()) {
            Some(20 | 32) => Ok(Self(digits.to_ascii_uppercase())),
            _ => Err(TrustError::Hex {
                expected: "a fingerprint of 40 or 64 hexadecimal digits",
                found: text.to_owned(),
            }),
        }
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = TrustError;

    fn try_from(text: String) -> Result<Self, TrustError> {
        text.parse()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One key as one file has it.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) file: PathBuf,
    pub(super) key: SignedPublicKey,
}

/// Keys by the fingerprint of their primary key. A key that is in several files may be revoked or have a later end in one of
/// them only, so all copies that differ are kept.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    keys: BTreeMap<Fingerprint, Vec<Copy>>,
}

impl Keyring {
    /// The keys in the folders where distributions keep them, below `root`.
    pub fn usual(root: &Path) -> Self {
        let mut keyring = Self::default();
        for folder in FOLDERS {
            // A folder that is not there holds no keys.
            let _ = keyring.add(&root.join(folder));
        }
        keyring
    }

    /// Adds the keys of a file, binary or armored, or of the files in a folder. Files in a folder that hold no keys are
    /// passed over.
    ///
    /// # Errors
    ///
    /// [`TrustError::Keyring`] if the path cannot be read, or is a file without keys.
    pub fn add(&mut self, path: &Path) -> Result<(), TrustError> {
        let failed = |source| TrustError::Keyring { path: path.to_owned(), source };
        if !fs::metadata(path).map_err(failed)?.is_dir() {
            let keys = read(path).map_err(failed)?;
            if keys.is_empty() {
                return Err(failed(io::Error::other("expected OpenPGP keys, found none")));
            }
            self.insert(path, keys);
            return Ok(());
        }
        let mut files = Vec::new();
        list(path, 0, &mut files).map_err(failed)?;
        files.sort();
        for file in files {
            if let Ok(keys) = read(&file) {
                self.insert(&file, keys);
            }
        }
        Ok(())
    }

    /// Adds the keys in the bytes, which stand in `file`.
    pub fn add_bytes(&mut self, file: &Path, bytes: &[u8]) {
        self.insert(file, parse(bytes));
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the key is there.
    pub fn contains(&self, key: &Fingerprint) -> bool {
        self.keys.contains_key(key)
    }

    pub(super) fn copies(&self, key: &Fingerprint) -> &[Copy] {
        self.keys.get(key).map_or(&[], Vec::as_slice)
    }

    fn insert(&mut self, file: &Path, keys: Vec<SignedPublicKey>) {
        for key in keys {
            let copies = self.keys.entry(Fingerprint::of(&key.primary_key)).or_default();
            if copies.iter().all(|copy| copy.key != key) {
                copies.push(Copy { file: file.to_owned(), key });
            }
        }
    }
}

fn list(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_dir() {
            if depth < DEEPEST {
                // A folder that cannot be read holds no keys that could be used.
                let _ = list(&path, depth + 1, files);
            }
        } else if metadata.is_file() && metadata.len() <= LARGEST && looks_like_keys(&path) {
            files.push(path);
        }
        if files.len() >= MOST_FILES {
            break;
        }
    }
    Ok(())
}

fn looks_like_keys(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    matches!(ending, "gpg" | "pgp" | "asc" | "key") || name.contains("KEY")
}

fn read(path: &Path) -> io::Result<Vec<SignedPublicKey>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(parse(&bytes))
}

const BEGIN: &[u8] = b"-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// The keys in a file that can be read; others, of kinds not known here, are left out.
fn parse(bytes: &[u8]) -> Vec<SignedPublicKey> {
    let mut keys = Vec::new();
    let starts: Vec<usize> = memchr::memmem::find_iter(bytes, BEGIN).collect();
    if starts.is_empty() {
        keys.extend(SignedPublicKey::from_bytes_many(bytes).into_iter().flat_map(sound));
    }
    // A file may hold several armored blocks, one behind the other.
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(bytes.len());
        let block = SignedPublicKey::from_armor_many(&bytes[start..end]);
        keys.extend(block.into_iter().flat_map(|(keys, _)| sound(keys)));
    }
    keys
}

fn sound<T>(keys: impl Iterator<Item = Result<T, pgp::errors::Error>>) -> impl Iterator<Item = T> {
    keys.take(MOST_KEYS).filter_map(Result::ok)
}
