//! Kernels in disk images and file systems: which volumes there are, which files in them tell about kernels, and what
//! those say.
//!
//! A file in a file system is looked at as any other input, by its content, with the limits on streams; only which files
//! are looked at depends on their names.

use std::collections::HashSet;
use std::io::Cursor;

use fastpath_knowledge::Release;

use crate::error::Error;
use crate::filesystem::{self, Candidate, CandidateKind, FileSystem, FsError};
use crate::finder::{Finder, Summary};
use crate::found::{Evidence, Found};
use crate::limits::Limits;
use crate::{ReadSeek, disk};

/// File systems in files in file systems.
const MAX_NESTING: u32 = 3;

/// Looks for kernels in a disk image or a file system. `None` if the input is neither.
pub(crate) fn find(
    input: &mut dyn ReadSeek,
    name: &str,
    limits: Limits,
    first: bool,
    sink: &mut dyn FnMut(Found),
) -> Option<Result<Summary, Error>> {
    let mut images = Images {
        limits,
        first,
        sink,
        summary: Summary::default(),
        told: HashSet::new(),
        weak: Vec::new(),
    };
    let result = images.image(input, name, "", 0)?;
    images.give_weak();
    Some(result.map(|()| images.summary))
}

struct Images<'a> {
    limits: Limits,
    first: bool,
    sink: &'a mut dyn FnMut(Found),
    summary: Summary,
    /// Kernels whose configuration was given.
    told: HashSet<(Option<Release>, Vec<u8>)>,
    /// Weaker evidence, for kernels whose configuration does not turn up.
    weak: Vec<Found>,
}

impl Images<'_> {
    /// One image: every volume in it. `None` if it is none.
    fn image(
        &mut self,
        input: &mut dyn ReadSeek,
        name: &str,
        prefix: &str,
        nesting: u32,
    ) -> Option<Result<(), Error>> {
        let failed = |error| Self::error(name, prefix, error);
        let mut guest = match disk::open(input) {
            Ok(guest) => guest,
            Err(error) => return Some(Err(failed(error))),
        };
        let volumes = match disk::volumes(guest.as_mut()) {
            Ok(volumes) => volumes,
            Err(error) => return Some(Err(failed(error))),
        };
        if volumes.is_empty() {
            return None;
        }
        let mut seen_any = false;
        for volume in volumes {
            let prefix = if volume.name.is_empty() {
                prefix.to_owned()
            } else {
                format!("{prefix}{}!", volume.name)
            };
            let mut window = volume.open(guest.as_mut());
            match filesystem::probe(&mut window) {
                Ok(Some(mut fs)) => {
                    seen_any = true;
                    self.file_system(fs.as_mut(), name, &prefix, nesting);
                }
                Ok(None) => {}
                // A volume of a kind that is not read says nothing about the others.
                Err(error) => {
                    seen_any = true;
                    self.note(Self::error(name, &prefix, error));
                }
            }
            if self.first && !self.told.is_empty() {
                break;
            }
        }
        seen_any.then_some(Ok(()))
    }

    fn file_system(&mut self, fs: &mut dyn FileSystem, name: &str, prefix: &str, nesting: u32) {
        for candidate in filesystem::candidates(fs) {
            if self.first && !self.told.is_empty() {
                return;
            }
            self.summary.members += 1;
            let member = format!("{prefix}{}", candidate.path.trim_start_matches('/'));
            if candidate.kind == CandidateKind::Nested {
                if nesting >= MAX_NESTING {
                    continue;
                }
                match fs.open(&candidate.path) {
                    Ok(mut inner) => {
                        let prefix = format!("{member}!");
                        if let Some(Err(error)) =
                            self.image(inner.as_mut(), name, &prefix, nesting + 1)
                        {
                            self.note(error);
                        }
                    }
                    Err(error) => self.note(Self::error(name, &member, error)),
                }
                continue;
            }
            self.file(fs, &candidate, name, &member);
        }
    }

    /// One file, read whole: configurations and kernel images are small enough.
    fn file(&mut self, fs: &mut dyn FileSystem, candidate: &Candidate, name: &str, member: &str) {
        let limit = match candidate.kind {
            CandidateKind::Config => self.limits.config,
            _ => self.limits.image,
        };
        let bytes = match fs.read(&candidate.path, limit) {
            Ok(bytes) => bytes,
            Err(error) => return self.note(Self::error(name, member, error)),
        };
        self.summary.bytes_read += bytes.len() as u64;
        let bytes_read = self.summary.bytes_read;
        let file = candidate.path.rsplit('/').next().unwrap_or(&candidate.path);
        let mut found = Vec::new();
        let result = Finder::new(self.limits, true).find_in_stream(
            &mut Cursor::new(bytes),
            file,
            &mut |one| {
                found.push(one);
            },
        );
        if let Err(error) = result {
            self.note(error);
        }
        for one in found {
            let inner = one.member.as_ref().map(|inner| format!("!{inner}")).unwrap_or_default();
            let release = candidate.release.clone().or(one.release);
            let found = Found {
                member: Some(format!("{member}{inner}")),
                release,
                evidence: one.evidence,
                bytes_read,
            };
            match &found.evidence {
                Evidence::Config(text) => {
                    // One kernel under two names is one answer.
                    if self.told.insert((found.release.clone(), text.clone())) {
                        self.summary.found += 1;
                        (self.sink)(found);
                    }
                }
                Evidence::Symbols(_) | Evidence::NoConfig { .. } => self.weak.push(found),
            }
        }
    }

    /// Gives the strongest weak evidence for each kernel without a configuration.
    fn give_weak(&mut self) {
        let known: HashSet<Option<Release>> =
            self.told.iter().map(|(release, _)| release.clone()).collect();
        let mut given = HashSet::new();
        let symbols_first = |one: &Found| !matches!(one.evidence, Evidence::Symbols(Some(_)));
        self.weak.sort_by_key(symbols_first);
        for one in std::mem::take(&mut self.weak) {
            if (self.first && self.summary.found > 0) || known.contains(&one.release) {
                continue;
            }
            if given.insert(one.release.clone()) {
                self.summary.found += 1;
                (self.sink)(one);
            }
        }
    }

    fn note(&mut self, error: Error) {
        const MOST: usize = 64;
        if self.summary.errors.len() < MOST {
            self.summary.errors.push(error);
        } else {
            self.summary.more_errors += 1;
        }
    }

    fn error(name: &str, prefix: &str, error: FsError) -> Error {
        let part = prefix.trim_end_matches('!');
        let member = if part.is_empty() { name.to_owned() } else { format!("{name}!{part}") };
        match error {
            FsError::Damaged { offset, detail } => {
                Error::Damaged { member, format: "image", offset, detail }
            }
            FsError::Io(source) => Error::Io { member, source },
            other => Error::Unsupported { member, what: "the image", detail: other.to_string() },
        }
    }
}
