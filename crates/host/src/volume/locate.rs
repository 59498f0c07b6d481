//! On which mount a file is.

use serde::{Deserialize, Serialize};

use super::VolumeFacts;
use super::block::{Device, Stacks};
use super::table::{Mount, Places};
use crate::tree::{FileKind, ReadError, Stat, Tree, Unread};

/// As many links as the kernel follows in one path before it says `ELOOP`.
const MAX_LINKS: usize = 40;

/// The kernel takes no longer path.
const MAX_PATH: usize = 4096;

/// A file, and the mount it is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Located {
    /// The path that was asked about.
    pub path: String,
    /// The same, links followed as far as they could be.
    pub resolved: String,
    /// What it is, links followed, if that could be found out.
    pub kind: Option<FileKind>,
    /// What direct I/O asks of memory addresses and of file offsets, in bytes; `None` if nobody says. Both are zero if it is not
    /// done on this file.
    pub direct_io: Option<(u32, u32)>,
    /// The mount that holds it, by index into [`VolumeFacts::mounts`].
    pub mount: Option<usize>,
    /// Why there is no mount, or why it is not certain that it is this one: then nothing may be built on it.
    pub doubt: Option<String>,
    /// Block devices from a device node's own down, the first one on top; they name each other by index. Empty for other files.
    pub devices: Vec<Device>,
    /// Why the file itself could not be looked at.
    pub unread: Option<Unread>,
}

/// On which mount the file at an absolute path is. The file's own word, the number of its mount, goes first; else the longest
/// mount point on the way to it. Where the two, or the device numbers, contradict each other, there is a
/// [`doubt`](Located::doubt).
pub fn locate(tree: &dyn Tree, facts: &VolumeFacts, path: &str) -> Located {
    let (stat, unread) = match tree.stat(path) {
        Ok(stat) => (Some(stat), None),
        Err(error) => (None, Some(Unread::new(path, error))),
    };
    let (resolved, link_doubt) = follow(tree, path);
    let kind = stat.map(|stat| stat.kind).or_else(|| tree.kind(path).ok());
    let mut devices = Vec::new();
    if let Some(stat) = stat.filter(|stat| stat.kind == FileKind::BlockDevice) {
        let mut stacks = Stacks::new(tree);
        stacks.numbered(stat.rdev);
        devices = stacks.finish().0;
    }
    let mut located = Located {
        path: path.to_owned(),
        resolved,
        kind,
        direct_io: stat.and_then(|stat| stat.direct_io),
        mount: None,
        doubt: None,
        devices,
        unread,
    };
    if let Some(unread) = &facts.unread {
        located.doubt = Some(format!("{}: {}", unread.path, unread.reason));
        return located;
    }
    if !path.starts_with('/') {
        located.doubt = Some("the path does not begin at the root".to_owned());
        return located;
    }
    if let Some(stat) = &stat
        && let Some(index) = by_number(&facts.mounts, stat)
    {
        located.mount = Some(index);
        return located;
    }
    located.mount = Places::new(&facts.mounts).of(&located.resolved);
    located.doubt = match (located.mount, &stat) {
        (None, _) => Some("no mount in the table holds it".to_owned()),
        (Some(_), None) if link_doubt.is_some() => link_doubt,
        (Some(_), None) => missing(tree, &located.resolved),
        (Some(index), Some(stat)) => contradiction(&facts.mounts[index], stat),
    };
    if located.doubt.is_none() && facts.flaws.cut {
        located.doubt = Some("the mount table has more mounts than were looked at".to_owned());
    }
    located
}

/// The mount that the file itself names, if the table has it and does not contradict.
fn by_number(mounts: &[Mount], stat: &Stat) -> Option<usize> {
    let index = mounts.iter().position(|mount| Some(mount.id) == stat.mount)?;
    contradiction(&mounts[index], stat).is_none().then_some(index)
}

/// Whether a file cannot be on a mount: they are on different devices. Of file systems without a device of their own the files
/// may show another number than the table, so those two say nothing.
fn contradiction(mount: &Mount, stat: &Stat) -> Option<String> {
    let anonymous = mount.device.0 == 0 && stat.device.0 == 0;
    let ((major, minor), (other_major, other_minor)) = (stat.device, mount.device);
    (stat.device != mount.device && !anonymous).then(|| {
        format!(
            "the file is on device {major}:{minor}, and the mount table has {other_major}:{other_minor} at {}",
            mount.mount_point
        )
    })
}

/// Why nothing is known about the file at a path that could not be looked at.
fn missing(tree: &dyn Tree, path: &str) -> Option<String> {
    match tree.kind(path) {
        Err(ReadError::Missing) => Some("there is no such file".to_owned()),
        _ => None,
    }
}

/// Follows the links on a path, the last one too. What could not be asked is taken for no link, and said.
fn follow(tree: &dyn Tree, path: &str) -> (String, Option<String>) {
    let mut doubt = None;
    let mut done = String::new();
    let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut links = 0;
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
        if here.len() > MAX_PATH {
            doubt = Some("the path is longer than the kernel takes".to_owned());
            break;
        }
        match tree.link(&here) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                let target =
                    if target.starts_with('/') { target } else { format!("{done}/{target}") };
                // Not taken textually at once: `..` after a link means what the link led to.
                todo.extend(target.split('/').rev().map(str::to_owned));
                done.clear();
            }
            Ok(_) => {
                doubt = Some("the links on the path form a loop".to_owned());
                done = here;
                break;
            }
            Err(error) => {
                if !matches!(error, ReadError::WrongKind(_) | ReadError::Missing) {
                    doubt.get_or_insert_with(|| format!("{here}: {error}"));
                }
                done = here;
            }
        }
    }
    (if done.is_empty() { "/".to_owned() } else { done }, doubt)
}
