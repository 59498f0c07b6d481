//! Where in a file system a word about kernels may be.

use std::collections::HashMap;

use fastpath_knowledge::Release;

use super::{DirEntry, EntryKind, FileSystem, FsError};
use crate::source::len_u64;

/// A file that may tell about a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its path, links resolved.
    pub path: String,
    /// The kernel's release, if a name on the way says it.
    pub release: Option<Release>,
    /// What it should be by its name.
    pub kind: CandidateKind,
}

/// What a candidate should be; the order is the one to look at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CandidateKind {
    /// A kernel configuration.
    Config,
    /// A kernel image, which may have its configuration inside.
    Image,
    /// A list of symbols.
    Symbols,
    /// A file system in a file.
    Nested,
}

/// What [`candidates`] found.
#[derive(Debug, Default)]
pub struct Candidates {
    /// The files, in the order to look at them.
    pub files: Vec<Candidate>,
    /// The bound that was reached, if there are more: what there is too much of, and how many are taken.
    pub cut: Option<(&'static str, u64)>,
}

/// Candidates of one file system at most.
const MAX_CANDIDATES: usize = 1024;

/// Directories that are looked into at most.
const MAX_DIRECTORIES: usize = 4096;

/// Directories with files named after kernels. `*` stands for any one name, `prefix-*` for any that begin so.
const PLACES: [&str; 26] = [
    "/boot",
    "/boot/*",
    "/",
    "/lib/modules/*",
    "/lib/modules/*/build",
    "/usr/lib/modules/*",
    "/usr/lib/kernel",
    "/lib/kernel",
    "/etc/kernels",
    "/usr/lib/ostree-boot",
    "/usr/lib/ostree-boot/*",
    "/boot/ostree/*",
    "/ostree/*",
    "/ostree/deploy/*/deploy/*/usr/lib/modules/*",
    "/usr/src/linux-headers-*",
    "/usr/src/linux-*",
    "/EFI/Linux",
    "/boot/EFI/Linux",
    "/loader",
    "/casper",
    "/live",
    "/isolinux",
    "/images/pxeboot",
    "/boot/x86_64/loader",
    "/arch/boot/x86_64",
    "/LiveOS",
];

/// Prefixes of names and what follows them.
const NAMES: [(&str, CandidateKind); 12] = [
    ("config-", CandidateKind::Config),
    ("kernel-config-", CandidateKind::Config),
    ("vmlinuz-", CandidateKind::Image),
    ("vmlinux-", CandidateKind::Image),
    ("kernel-", CandidateKind::Image),
    ("Image-", CandidateKind::Image),
    ("Image.gz-", CandidateKind::Image),
    ("bzImage-", CandidateKind::Image),
    ("System.map-", CandidateKind::Symbols),
    ("symvers-", CandidateKind::Symbols),
    ("symtypes-", CandidateKind::Symbols),
    ("Module.symvers-", CandidateKind::Symbols),
];

/// Whole names, whose release is the directory's.
const WHOLE: [(&str, CandidateKind); 12] = [
    ("config", CandidateKind::Config),
    (".config", CandidateKind::Config),
    ("vmlinuz", CandidateKind::Image),
    ("vmlinux", CandidateKind::Image),
    ("linux", CandidateKind::Image),
    ("kernel", CandidateKind::Image),
    ("Image", CandidateKind::Image),
    ("bzImage", CandidateKind::Image),
    ("System.map", CandidateKind::Symbols),
    ("symvers.gz", CandidateKind::Symbols),
    ("symvers.xz", CandidateKind::Symbols),
    ("Module.symvers", CandidateKind::Symbols),
];

/// Ends of names of file systems in files.
const NESTED: [&str; 5] = [".squashfs", ".sfs", "squashfs.img", "rootfs.img", "efiboot.img"];

/// Ends that are cut from a name before a release is read from it.
const COMPRESSED: [&str; 5] = [".gz", ".xz", ".zst", ".bz2", ".efi"];

/// The files of a file system that may tell about a kernel: configurations, then images, symbols and file systems in
/// files. Only names are looked at. What cannot be listed is left out.
pub fn candidates(fs: &mut dyn FileSystem) -> Candidates {
    let mut look = Look { fs, seen: HashMap::new(), listed: 0, found: Candidates::default() };
    for root in look.fs.roots().to_vec() {
        for place in PLACES {
            for directory in look.expand(root.trim_end_matches('/'), place) {
                look.directory(&directory);
            }
        }
    }
    let mut found = look.found;
    found.files.sort_by_key(|candidate| candidate.kind);
    found
}

struct Look<'f> {
    fs: &'f mut dyn FileSystem,
    /// Where the candidates of each path stand.
    seen: HashMap<String, Vec<usize>>,
    listed: usize,
    found: Candidates,
}

impl Look<'_> {
    /// The directories a pattern stands for below a root.
    fn expand(&mut self, root: &str, pattern: &str) -> Vec<String> {
        let mut found = vec![root.to_owned()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let mut next = Vec::new();
            for directory in found {
                let Some(prefix) = part.strip_suffix('*') else {
                    next.push(format!("{directory}/{part}"));
                    continue;
                };
                if self.listed == MAX_DIRECTORIES {
                    self.cut("directories that may hold kernels in a file system", MAX_DIRECTORIES);
                    break;
                }
                self.listed += 1;
                for entry in self.list(&directory) {
                    let fits = entry.name.starts_with(prefix);
                    if fits && matches!(entry.kind, EntryKind::Directory | EntryKind::Link) {
                        next.push(format!("{directory}/{}", entry.name));
                    }
                }
            }
            if next.len() > MAX_DIRECTORIES {
                self.cut("directories that may hold kernels in a file system", MAX_DIRECTORIES);
                next.truncate(MAX_DIRECTORIES);
            }
            found = next;
        }
        found
    }

    fn cut(&mut self, what: &'static str, limit: usize) {
        self.found.cut.get_or_insert((what, len_u64(limit)));
    }

    fn list(&mut self, path: &str) -> Vec<DirEntry> {
        let listed = self.fs.read_dir(if path.is_empty() { "/" } else { path });
        if let Err(FsError::Limit { what, limit }) = &listed {
            self.found.cut.get_or_insert((what, *limit));
        }
        listed.unwrap_or_default()
    }

    /// Adds the candidates of one directory.
    fn directory(&mut self, directory: &str) {
        let stat = self.fs.stat(if directory.is_empty() { "/" } else { directory });
        let Ok(real) = stat else { return };
        let real = real.path.trim_end_matches('/');
        for entry in self.list(directory) {
            if !matches!(entry.kind, EntryKind::File | EntryKind::Link) {
                continue;
            }
            let Some((kind, release)) = classify(directory, &entry.name) else { continue };
            let mut path = format!("{real}/{}", entry.name);
            if entry.kind == EntryKind::Link {
                match self.fs.stat(&path) {
                    Ok(stat) if stat.kind == EntryKind::File => path = stat.path,
                    _ => continue,
                }
            }
            let by_target = || {
                let (directory, name) = path.rsplit_once('/')?;
                classify(directory, name).and_then(|(_, release)| release)
            };
            let release = release.or_else(by_target);
            self.add(Candidate { path, release, kind });
        }
    }

    /// Two names of one file are one candidate, under the place its links lead to, unless they name two kernels.
    fn add(&mut self, candidate: Candidate) {
        let copies = self.seen.entry(candidate.path.clone()).or_default();
        for &at in copies.iter() {
            let Some(copy) = self.found.files.get_mut(at) else { continue };
            if candidate.release.is_none() || copy.release == candidate.release {
                return;
            }
            if copy.release.is_none() {
                copy.release = candidate.release;
                return;
            }
        }
        if self.found.files.len() == MAX_CANDIDATES {
            self.cut("files that may tell about kernels in a file system", MAX_CANDIDATES);
            return;
        }
        copies.push(self.found.files.len());
        self.found.files.push(candidate);
    }
}

/// What a file should be by its name, and the release in it or in the directory's name.
fn classify(directory: &str, name: &str) -> Option<(CandidateKind, Option<Release>)> {
    if NESTED.iter().any(|end| name.ends_with(end)) {
        return Some((CandidateKind::Nested, None));
    }
    if [".old", ".bak", ".sig", ".hmac", ".rpmsave"].iter().any(|end| name.ends_with(end)) {
        return None;
    }
    let parent = directory.rsplit('/').next().unwrap_or_default();
    let parent = match parent {
        "build" => directory.rsplit('/').nth(1).unwrap_or_default(),
        other => other,
    };
    let parent = parent.strip_prefix("linux-headers-").unwrap_or(parent);
    let parent = parent.strip_prefix("linux-").unwrap_or(parent);
    let versioned = |text: &str| Release::new(text).filter(|it| it.major_minor().is_some());
    let stem = COMPRESSED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    if let Some((_, kind)) = WHOLE.iter().find(|(whole, _)| [name, stem].contains(whole)) {
        return Some((*kind, versioned(parent)));
    }
    if directory.ends_with("/EFI/Linux") && stem != name {
        // A unified kernel image: an id, a hyphen, the release and perhaps a counter.
        let at = stem.find('-').map_or(0, |at| at + 1);
        return Some((CandidateKind::Image, versioned(&stem[at..])));
    }
    let (rest, kind) =
        NAMES.iter().find_map(|(prefix, kind)| Some((stem.strip_prefix(prefix)?, *kind)))?;
    if rest.starts_with("0-rescue") {
        return None;
    }
    // genkernel puts an architecture before the release.
    let release = versioned(rest).or_else(|| {
        let at = rest.find(|c: char| c.is_ascii_digit())?;
        let start = rest[..at].ends_with('-').then_some(at)?;
        versioned(&rest[start..])
    });
    Some((kind, release.or_else(|| versioned(parent))))
}
