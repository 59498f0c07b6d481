//! What the fuzz targets share: hosts, archives and images, written as text so that a fuzzer can change them piece by
//! piece.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod artifact;
pub mod image;
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../crates/artifact/tests/find/make.rs"]
mod make;
pub mod repository;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use fastpath_host::{Content, Entry, FileId, FileKind, ReadError, Tree, Want};

/// Splits an input into named sections. A line `@name` starts one; what stands before the first is dropped. The line
/// end before the next section's line belongs to the section.
pub fn sections(input: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut sections: Vec<(String, Vec<u8>)> = Vec::new();
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        if let Some(name) = line.strip_prefix(b"@") {
            let name = String::from_utf8_lossy(name).trim_end_matches('\n').to_owned();
            sections.push((name, Vec::new()));
        } else if let Some((_, bytes)) = sections.last_mut() {
            bytes.extend_from_slice(line);
        }
    }
    sections
}

/// A host in memory: files by their path, directories where the paths say so. Links are told, and not followed.
pub struct MemoryTree {
    files: BTreeMap<String, Vec<u8>>,
    links: BTreeMap<String, String>,
    keeps_parts: bool,
}

impl MemoryTree {
    /// The host that an input describes: each section is a file, its name the path; `PATH -> TARGET` is a link.
    /// Paths that are not absolute and plain are dropped.
    pub fn new(input: &[u8]) -> Self {
        Self::of(sections(input))
    }

    /// The same of sections that are made already.
    pub fn of(sections: Vec<(String, Vec<u8>)>) -> Self {
        let plain = |path: &str| {
            path.strip_prefix('/').is_some_and(|path| {
                path.split('/').all(|name| !matches!(name, "" | "." | "..") && !name.contains('\0'))
            })
        };
        let (mut files, mut links) = (BTreeMap::new(), BTreeMap::new());
        for (name, bytes) in sections {
            match name.split_once(" -> ") {
                Some((path, target)) if plain(path) => {
                    links.insert(path.to_owned(), target.to_owned());
                }
                None if plain(&name) => {
                    files.insert(name, bytes);
                }
                _ => {}
            }
        }
        Self { files, links, keeps_parts: false }
    }

    /// The same host as a snapshot keeps it: of files only what readers say may be kept.
    pub fn kept(self) -> Self {
        Self { keeps_parts: true, ..self }
    }

    /// What is kept of a file; kept of that is the same.
    fn part(bytes: &[u8], want: &Want) -> Vec<u8> {
        let part = |bytes: &[u8]| match (want.extract, want.redact) {
            (Some(extract), _) => extract(&mut Cursor::new(bytes)).expect("memory can be read"),
            (None, Some(redact)) => redact(bytes),
            (None, None) => bytes.to_owned(),
        };
        let kept = part(bytes);
        assert_eq!(part(&kept), kept, "kept twice");
        kept
    }

    fn is_directory(&self, path: &str) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        let is_below = |path: Option<&String>| path.is_some_and(|path| path.starts_with(&below));
        is_below(self.files.range(below.clone()..).next().map(|(path, _)| path))
            || is_below(self.links.range(below.clone()..).next().map(|(path, _)| path))
    }
}

impl Tree for MemoryTree {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let Some((at, (_, bytes))) = self.files.iter().enumerate().find(|(_, (p, _))| *p == path)
        else {
            return Err(if self.is_directory(path) {
                ReadError::WrongKind(FileKind::Directory)
            } else {
                ReadError::Missing
            });
        };
        if bytes.len() > want.limit {
            return Err(ReadError::TooLarge(want.limit));
        }
        let bytes = &if self.keeps_parts { Self::part(bytes, want) } else { bytes.clone() };
        let id = FileId { device: 1, inode: at as u64 };
        let Some(filter) = want.lines else { return Ok(Content { bytes: bytes.clone(), id }) };
        let mut out = Vec::new();
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => {
                    filter(line, &mut out);
                    out.push(b'\n');
                }
                None => filter(line, &mut out),
            }
        }
        Ok(Content { bytes: out, id })
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        if self.files.contains_key(path) {
            return Err(ReadError::WrongKind(FileKind::File));
        }
        if !self.is_directory(path) {
            return Err(ReadError::Missing);
        }
        let below = format!("{}/", path.trim_end_matches('/'));
        let mut names = BTreeSet::new();
        let paths = self.files.keys().chain(self.links.keys());
        for rest in paths.filter_map(|path| path.strip_prefix(&below)) {
            names.insert(rest.split('/').next().unwrap_or_default());
        }
        let kind = |name: &str| {
            let path = format!("{below}{name}");
            match (self.links.contains_key(&path), self.files.contains_key(&path)) {
                (true, _) => FileKind::Link,
                (false, true) => FileKind::File,
                (false, false) => FileKind::Directory,
            }
        };
        Ok(names.iter().map(|&name| Entry { name: name.to_owned(), kind: kind(name) }).collect())
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        if self.files.contains_key(path) {
            Ok(FileKind::File)
        } else if self.is_directory(path) {
            Ok(FileKind::Directory)
        } else {
            Err(ReadError::Missing)
        }
    }

    fn link(&self, path: &str) -> Result<String, ReadError> {
        match self.links.get(path) {
            Some(target) => Ok(target.clone()),
            None => Err(ReadError::WrongKind(self.kind(path)?)),
        }
    }
}
