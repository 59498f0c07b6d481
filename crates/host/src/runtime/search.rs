//! Where libraries are looked for, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::elf::{self, Image};
use super::{Installation, cache};
use crate::driver::Small;
use crate::tree::Unread;
use crate::tree::{Content, Entry, FileId, FileKind, ReadError, Want, join_link};
use crate::witness::Evidence;

/// The loader's cache has 20 to 500 kB.
const CACHE: Want =
    Want { limit: 8 << 20, lines: None, redact: Some(cache::extract), extract: None };

/// A real `libamdhip64` has 25 to 40 MB; a snapshot never holds more than 64 MB of originals.
const LIBRARY: Want =
    Want { limit: 256 << 20, lines: None, redact: None, extract: Some(elf::extract) };

/// More directories than anyone names in `LD_LIBRARY_PATH`.
const MAX_DIRECTORIES: usize = 128;

/// More versions of one library than are installed at once: reading one takes 10 ms.
const MAX_LIBRARIES: usize = 16;

/// As many links as the kernel follows in one path.
const MAX_LINKS: usize = 40;

/// A library that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    /// Where it was found, as a program would name it.
    pub path: String,
    /// The same with links resolved.
    pub file: String,
    /// Other names of the same file, in the order they were found.
    pub also: Vec<String>,
    /// By what it was found.
    pub place: Place,
    /// What follows `.so.` in the name of the file, `7.2.70200`.
    pub version: Option<String>,
    /// What it is.
    pub image: Image,
    /// What it said itself, if it was loaded and asked.
    #[serde(default)]
    pub asked: Option<Asked>,
}

/// What a library said when it was loaded and asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asked {
    /// It answered.
    Answer {
        /// `hipRuntimeGetVersion`: major · 10⁷ + minor · 10⁵ + patch.
        version: i32,
        /// Whether it gives out both functions of direct storage.
        direct_storage: bool,
    },
    /// It could not be loaded, or did not answer: one clause.
    Failed(String),
}

/// By what a library is found, in the order a program that names no path finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// `LD_LIBRARY_PATH`.
    LdLibraryPath,
    /// `/etc/ld.so.cache`.
    LoaderCache,
    /// The loader's own directories; read only where there is no cache.
    LoaderDefault,
    /// `ROCM_HOME`, `ROCM_PATH` or `HIP_PATH`: only by programs that look there.
    RocmVariable,
    /// `/opt/rocm` and its kin: by programs that were linked with that path, and those that look there.
    OptRocm,
}

impl Place {
    /// The place in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::LdLibraryPath => "LD_LIBRARY_PATH",
            Self::LoaderCache => "/etc/ld.so.cache",
            Self::LoaderDefault => "the loader's own directories",
            Self::RocmVariable => "ROCM_HOME, ROCM_PATH or HIP_PATH",
            Self::OptRocm => "/opt/rocm",
        }
    }

    /// Whether a program finds it that names no path and was linked with none.
    pub const fn is_of_loader(self) -> bool {
        matches!(self, Self::LdLibraryPath | Self::LoaderCache | Self::LoaderDefault)
    }
}

/// The libraries that are looked for.
pub(super) const STEMS: [&str; 2] = ["libamdhip64.so", "libhipfile.so"];

/// The loader's own directories, in its order, on distributions with and without directories for each machine.
const DEFAULTS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

pub(super) struct Search<'a> {
    small: Small<'a>,
    /// Where to look, links in the paths of directories resolved, each once.
    directories: Vec<(Place, Directory)>,
    /// Names and paths in the loader's cache.
    cached: Vec<(String, String)>,
    /// Directories of ROCm, links resolved.
    installed: Vec<String>,
    links: BTreeMap<String, Option<String>>,
    has_cache: bool,
    cut: bool,
}

struct Directory {
    /// As it was named.
    path: String,
    /// Names in it that are among those looked for.
    names: Vec<String>,
}

impl<'a> Search<'a> {
    pub(super) fn new(small: Small<'a>, environment: &BTreeMap<String, String>) -> Self {
        let mut search = Self {
            small,
            directories: Vec::new(),
            cached: Vec::new(),
            installed: Vec::new(),
            links: BTreeMap::new(),
            has_cache: false,
            cut: false,
        };
        let cached = search.cache();
        let has_cache = cached.is_some();
        search.cached = cached.unwrap_or_default();
        search.has_cache = has_cache;
        let mut places: Vec<(Place, String)> = Vec::new();
        let variable = |name: &str| environment.get(name).map(String::as_str).unwrap_or_default();
        for path in variable("LD_LIBRARY_PATH").split([':', ';']) {
            places.push((Place::LdLibraryPath, path.to_owned()));
        }
        if !has_cache {
            places.extend(DEFAULTS.map(|path| (Place::LoaderDefault, path.to_owned())));
        }
        for name in ["ROCM_HOME", "ROCM_PATH", "HIP_PATH"] {
            let root = variable(name).trim_end_matches('/');
            let below = |library: &str| (Place::RocmVariable, format!("{root}/{library}"));
            if root.starts_with('/') {
                places.extend(["lib", "lib64"].map(below));
            }
        }
        places.extend(search.opt_rocm().into_iter().map(|path| (Place::OptRocm, path)));
        search.take(places);
        search
    }

    /// The cache's entries; `None` if there is no cache that can be used.
    fn cache(&mut self) -> Option<Vec<(String, String)>> {
        const PATH: &str = "/etc/ld.so.cache";
        let content = self.small.tree.read(PATH, &CACHE);
        let content = self.small.ask(PATH, content)?;
        match cache::entries(&content.bytes) {
            Ok(entries) => Some(entries),
            Err(defect) => {
                self.small.unread.push(Unread {
                    path: PATH.to_owned(),
                    reason: defect.to_string(),
                    permission: false,
                    not_recorded: false,
                });
                None
            }
        }
    }

    /// `lib*` of `/opt/rocm`, of every other `/opt/rocm*`, and of their `core-*`.
    fn opt_rocm(&mut self) -> Vec<String> {
        const OPT: &str = "/opt";
        let mut roots: Vec<String> = Vec::new();
        let mut found = names(&self.small.list(OPT), |name| name.starts_with("rocm"));
        // The one that is meant first; of the others the newest.
        found.sort_by_key(|name| (name != "rocm", std::cmp::Reverse(name.clone())));
        for name in found {
            let path = format!("{OPT}/{name}");
            if let Some(root) = self.resolve(&path)
                && !roots.contains(&root)
                && roots.len() < MAX_LIBRARIES
            {
                roots.push(root);
            }
        }
        self.installed.clone_from(&roots);
        let mut found = Vec::new();
        for root in roots {
            let entries = self.small.list(&root);
            let libraries = |entries: &[Entry]| {
                names(entries, |name| name.starts_with("lib") && name != "libexec")
            };
            found.extend(libraries(&entries).into_iter().map(|name| format!("{root}/{name}")));
            for core in names(&entries, |name| name.starts_with("core-")) {
                let core = format!("{root}/{core}");
                let entries = self.small.list(&core);
                found.extend(libraries(&entries).into_iter().map(|name| format!("{core}/{name}")));
            }
        }
        found
    }

    /// Lists each directory once, under its first name.
    fn take(&mut self, places: Vec<(Place, String)>) {
        let mut seen = BTreeSet::new();
        for (place, path) in places {
            // A relative path depends on where a program is started.
            if !path.starts_with('/') {
                continue;
            }
            if seen.len() >= MAX_DIRECTORIES {
                self.cut = true;
                break;
            }
            let Some(directory) = self.resolve(&path).filter(|it| seen.insert(it.clone())) else {
                continue;
            };
            let listed = self.small.tree.list(&directory);
            let listed = match listed {
                // A file where a directory is named is passed over by the loader too.
                Err(ReadError::WrongKind(_)) => continue,
                listed => self.small.ask(&directory, listed).unwrap_or_default(),
            };
            let wanted = |name: &str| STEMS.iter().any(|stem| is_named(name, stem));
            let path = path.trim_end_matches('/').to_owned();
            self.directories.push((place, Directory { path, names: names(&listed, wanted) }));
        }
    }

    /// Every file that has the name of a library, in order.
    pub(super) fn libraries(&mut self, stem: &str) -> Vec<Library> {
        let mut candidates: Vec<(Place, String)> = Vec::new();
        for (place, directory) in &self.directories {
            let mut names: Vec<&String> =
                directory.names.iter().filter(|name| is_named(name, stem)).collect();
            names.sort_by_key(|name| std::cmp::Reverse(rank(name, stem)));
            candidates.extend(
                names.into_iter().map(|name| (*place, format!("{}/{name}", directory.path))),
            );
        }
        let mut cached: Vec<&(String, String)> =
            self.cached.iter().filter(|(name, _)| is_named(name, stem)).collect();
        cached.sort_by_key(|(name, _)| std::cmp::Reverse(rank(name, stem)));
        candidates.extend(cached.into_iter().map(|(_, path)| (Place::LoaderCache, path.clone())));
        candidates.sort_by_key(|(place, _)| *place);
        let mut found: Vec<(Option<FileId>, Library)> = Vec::new();
        let mut looked_at = 0;
        for (place, path) in candidates {
            if path == cache::HOME {
                let image = Image::Unread("in a home directory, which is not looked at".to_owned());
                let (file, also) = (path.clone(), Vec::new());
                found.push((
                    None,
                    Library { path, file, also, place, version: None, image, asked: None },
                ));
                continue;
            }
            let Some(file) = self.resolve(&path) else { continue };
            if let Some((_, same)) = found.iter_mut().find(|(_, library)| library.file == file) {
                same.add(path);
                continue;
            }
            if looked_at >= MAX_LIBRARIES {
                self.cut = true;
                break;
            }
            looked_at += 1;
            let (id, image) = match self.read(&file) {
                Ok(content) => (Some(content.id), elf::image(content.bytes.as_slice())),
                Err(ReadError::Missing) => continue,
                Err(error) => (None, Image::Unread(error.to_string())),
            };
            let is_same = |(known, _): &&mut (Option<FileId>, _)| id.is_some() && *known == id;
            if let Some((_, same)) = found.iter_mut().find(is_same) {
                same.add(path);
                continue;
            }
            let name = file.rsplit('/').next().and_then(|name| name.strip_prefix(stem));
            let version = name.and_then(|name| name.strip_prefix('.')).map(str::to_owned);
            found.push((
                id,
                Library { path, file, also: Vec::new(), place, version, image, asked: None },
            ));
        }
        found.into_iter().map(|(_, library)| library).collect()
    }

    fn read(&mut self, file: &str) -> Result<Content, ReadError> {
        let content = self.small.tree.read(file, &LIBRARY);
        if let Err(error) = &content {
            self.small.ask::<()>(file, Err(*error));
        }
        content
    }

    pub(super) fn installations(&mut self) -> Vec<Installation> {
        let roots = std::mem::take(&mut self.installed);
        let read = |path: String| {
            let file = format!("{path}/.info/version");
            let text = self.small.line(&file);
            let version = text.map(|text| Evidence { path: file, line: Some(1), text: Some(text) });
            Installation { path, version }
        };
        roots.into_iter().map(read).collect()
    }

    pub(super) fn has_loader(&self) -> bool {
        let there = |path: &str| self.small.tree.kind(path).is_ok();
        self.has_cache || DEFAULTS.iter().any(|path| there(path))
    }

    pub(super) fn finish(self) -> (Vec<Unread>, bool) {
        (self.small.unread, self.cut)
    }

    /// A path without links, `.` and `..`; `None` if nothing can be there.
    fn resolve(&mut self, path: &str) -> Option<String> {
        let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut done = String::new();
        let mut followed = 0;
        while let Some(name) = todo.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    done.truncate(done.rfind('/').unwrap_or(0));
                    continue;
                }
                _ => {}
            }
            let here = format!("{done}/{name}");
            if !self.links.contains_key(&here) {
                let link = match self.small.tree.link(&here) {
                    Ok(target) => Some(target),
                    Err(ReadError::Missing) => return None,
                    // Not a link, or not to be told from a snapshot: it stands for itself.
                    Err(_) => None,
                };
                self.links.insert(here.clone(), link);
            }
            let link = self.links.get(&here).cloned().flatten();
            let Some(target) = link else {
                done = here;
                continue;
            };
            followed += 1;
            if followed > MAX_LINKS {
                return None;
            }
            done.clear();
            let joined = join_link(&here, &target);
            todo.extend(joined.split('/').rev().map(str::to_owned));
        }
        Some(done)
    }
}

impl Library {
    fn add(&mut self, path: String) {
        if self.path != path && !self.also.contains(&path) {
            self.also.push(path);
        }
    }
}

/// Names in a listing that are wanted, of what can lead to a file or a directory.
fn names(entries: &[Entry], wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let may_lead = |kind| {
        matches!(kind, FileKind::File | FileKind::Directory | FileKind::Link | FileKind::Unknown)
    };
    let entries = entries.iter().filter(|entry| may_lead(entry.kind) && wanted(&entry.name));
    entries.map(|entry| entry.name.clone()).collect()
}

/// Whether a name is that of a library: the stem, alone or followed by numbers. `libamdhip64.so.7.debug` is none.
fn is_named(name: &str, stem: &str) -> bool {
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    match name.strip_prefix(stem) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('.').is_some_and(|rest| rest.split('.').all(is_number)),
        None => false,
    }
}

/// What a program takes first of the names in one place: what programs are linked to, the newest first, then the name without
/// a number, then the others.
fn rank(name: &str, stem: &str) -> (u8, Vec<u64>) {
    let rest = name.strip_prefix(stem).unwrap_or_default();
    let numbers: Vec<u64> =
        rest.split('.').skip(1).map(|part| part.parse().unwrap_or_default()).collect();
    let kind = match numbers.len() {
        1 => 2,
        0 => 1,
        _ => 0,
    };
    (kind, numbers)
}
