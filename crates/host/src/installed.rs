//! The kernels installed on a host, and configurations of kernels that are not.

use std::collections::BTreeMap;

use fastpath_knowledge::{Release, compare};
use serde::{Deserialize, Serialize};

use crate::tree::{FileKind, ReadError, Tree};
use crate::witness::{Budget, Witness, witnesses};

/// A kernel with an image on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Its release.
    pub release: Release,
    /// Its image, as on the host.
    pub image: String,
    /// What its witnesses say.
    pub witnesses: Vec<Witness>,
}

/// Prefixes of kernel images in `/boot`: the ordinary ones, genkernel's, and those of architectures with their own.
const IMAGES: [&str; 5] = ["vmlinuz-", "vmlinux-", "kernel-", "Image-", "bzImage-"];

/// What genkernel puts between the prefix and the release.
const ARCHITECTURES: [&str; 3] = ["x86_64-", "aarch64-", "ppc64le-"];

/// Ends of names that no kernel release has: backups, and files that belong to an image.
const BACKUPS: [&str; 20] = [
    ".old",
    ".bak",
    ".bkp",
    ".orig",
    ".save",
    ".prev",
    "~",
    ".rpmsave",
    ".rpmnew",
    ".rpmorig",
    ".dpkg-new",
    ".dpkg-tmp",
    ".dpkg-old",
    ".dpkg-bak",
    ".dpkg-dist",
    ".sig",
    ".signed",
    ".unsigned",
    ".hmac",
    ".img",
];

/// More kernels than any host has; bounds the work on a hostile root.
const MAX_KERNELS: usize = 128;

/// Directories that hold kernels.
const BOOT: &str = "/boot";
const MODULES: [&str; 2] = ["/lib/modules", "/usr/lib/modules"];

/// The directories that may hold kernels and could not be listed, with the reason: what is installed is not known
/// fully then.
pub(crate) fn unlisted(tree: &dyn Tree) -> Vec<(String, String)> {
    std::iter::once(BOOT)
        .chain(MODULES)
        .filter_map(|path| match tree.list(path) {
            Err(error) if error != ReadError::Missing => Some((path.to_owned(), error.to_string())),
            _ => None,
        })
        .collect()
}

/// Releases that have a kernel image, newest first, each with the image's path.
fn images(tree: &dyn Tree) -> Vec<(Release, String)> {
    let mut images = BTreeMap::new();
    for entry in tree.list(BOOT).unwrap_or_default() {
        let Some(release) = image_release(&entry.name) else { continue };
        let path = format!("{BOOT}/{}", entry.name);
        // A link may lead to an image that is gone.
        let there = match entry.kind {
            FileKind::File => true,
            FileKind::Link => tree.kind(&path).is_ok_and(|kind| kind == FileKind::File),
            _ => false,
        };
        if there {
            images.entry(release).or_insert(path);
        }
    }
    for modules in MODULES {
        for entry in tree.list(modules).unwrap_or_default() {
            let Some(release) = Release::new(&entry.name) else { continue };
            let path = format!("{modules}/{release}/vmlinuz");
            if !images.contains_key(&release)
                && tree.kind(&path).is_ok_and(|kind| kind == FileKind::File)
            {
                images.insert(release, path);
            }
        }
    }
    let mut images: Vec<_> = images.into_iter().collect();
    images.sort_by(|(a, _), (b, _)| compare(b.as_str(), a.as_str()).then_with(|| b.cmp(a)));
    images.truncate(MAX_KERNELS);
    images
}

/// The release in the name of an image, unless it is a rescue image, a backup or a link such as `vmlinuz-linux`.
fn image_release(name: &str) -> Option<Release> {
    let rest = IMAGES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let rest = rest.strip_prefix("genkernel-").unwrap_or(rest);
    let rest = ARCHITECTURES.iter().find_map(|one| rest.strip_prefix(one)).unwrap_or(rest);
    let backup = BACKUPS.iter().any(|suffix| rest.ends_with(suffix));
    if rest.starts_with("0-rescue") || backup {
        return None;
    }
    Release::new(rest).filter(|release| release.major_minor().is_some())
}

/// Reads the configurations of every installed kernel. `known` is a kernel that was read already; the one that runs has
/// witnesses of its own, whichever kernel was asked about.
pub(crate) fn installed(
    tree: &dyn Tree,
    running: Option<&Release>,
    known: Option<(&Release, &[Witness])>,
    budget: &mut Budget,
) -> Vec<Installed> {
    let mut read = |release: &Release| match known {
        Some((one, witnesses)) if one == release => witnesses.to_vec(),
        _ => witnesses(tree, release, running == Some(release), budget),
    };
    images(tree)
        .into_iter()
        .map(|(release, image)| Installed { witnesses: read(&release), release, image })
        .collect()
}

/// Configuration files that name a release other than `asked`: shown, never deciding.
pub(crate) fn other_configs(tree: &dyn Tree, asked: &Release) -> Vec<String> {
    let mut found = Vec::new();
    for entry in tree.list(BOOT).unwrap_or_default() {
        if entry.name.strip_prefix("config-").is_some_and(|release| release != asked.as_str()) {
            found.push(format!("/boot/{}", entry.name));
        }
    }
    for modules in MODULES {
        for entry in tree.list(modules).unwrap_or_default() {
            let path = format!("{modules}/{}/config", entry.name);
            if entry.name != asked.as_str()
                && tree.kind(&path).is_ok_and(|kind| kind == FileKind::File)
            {
                found.push(path);
            }
        }
    }
    found.truncate(MAX_KERNELS);
    found
}
