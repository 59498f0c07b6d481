//! One running process: the libraries it has mapped, the part of its environment that matters, its mounts and open files.
//!
//! A process may live in another mount namespace: its files and mounts are read as it sees them.

use std::collections::BTreeMap;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::tree::{Content, Entry, FileKind, ReadError, Stat, Tree, Want};

/// More than any process maps or has open; the rest is not looked at.
const MAX_BYTES: usize = 16 << 20;
const MAX_FILES: usize = 4096;

/// Variables that decide which libraries a program gets, and what hipFile does.
const VARIABLES: [&str; 4] = ["LD_LIBRARY_PATH", "ROCM_HOME", "ROCM_PATH", "HIP_PATH"];
const PREFIX: &str = "HIPFILE_";

/// What is known of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessFacts {
    /// Its number.
    pub pid: u32,
    /// Its name, at most 15 bytes, as the kernel keeps it.
    pub name: Option<String>,
    /// Paths of the HIP runtime it has mapped, as it sees them.
    pub hip: Vec<String>,
    /// Paths of hipFile's library it has mapped.
    pub hipfile: Vec<String>,
    /// Whether that library is this project's (`true`) or another; `None` if that is not known, as after [`read`].
    #[serde(default)]
    pub ours: Option<bool>,
    /// Those of its environment variables that matter, as they were when it started.
    pub variables: BTreeMap<String, String>,
    /// Whether its mounts are others than those of the process that asks; `None` if that cannot be told.
    pub other_mounts: Option<bool>,
    /// Regular files and block devices it has open.
    pub files: Vec<OpenFile>,
    /// What could not be read: path and reason.
    pub unread: Vec<(String, String)>,
}

/// A file that a process has open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFile {
    /// The descriptor's number.
    pub fd: u32,
    /// Its path, as the process sees it.
    pub path: String,
    /// Whether it is open with `O_DIRECT`; `None` if that cannot be told.
    pub direct: Option<bool>,
}

/// Reads what there is to know of a process. `None` if there is no such process.
pub fn read(tree: &dyn Tree, pid: u32) -> Option<ProcessFacts> {
    let folder = format!("/proc/{pid}");
    tree.list(&folder).ok()?;
    let mut facts = ProcessFacts { pid, ..ProcessFacts::default() };
    let mut text = |file: &str| -> Option<Vec<u8>> {
        let path = format!("{folder}/{file}");
        match tree.read(&path, &Want::whole(MAX_BYTES)) {
            Ok(content) => Some(content.bytes),
            Err(error) => {
                facts.unread.push((path, error.to_string()));
                None
            }
        }
    };
    let name = text("comm").map(|name| String::from_utf8_lossy(&name).trim_end().to_owned());
    let maps = text("maps").unwrap_or_default();
    let environment = text("environ").unwrap_or_default();
    facts.name = name;
    for path in mapped(&maps) {
        let file = path.rsplit('/').next().unwrap_or_default();
        let list = if file.starts_with("libamdhip64.so") {
            &mut facts.hip
        } else if file.starts_with("libhipfile.so") {
            &mut facts.hipfile
        } else {
            continue;
        };
        if !list.contains(&path) {
            list.push(path);
        }
    }
    facts.variables = variables(&environment);
    let namespace = |of: &str| tree.link(&format!("/proc/{of}/ns/mnt")).ok();
    facts.other_mounts =
        namespace(&pid.to_string()).zip(namespace("self")).map(|(its, own)| its != own);
    match tree.list(&format!("{folder}/fd")) {
        Ok(entries) => {
            let numbers = entries.into_iter().filter_map(|entry| entry.name.parse().ok());
            facts.files =
                numbers.take(MAX_FILES).filter_map(|fd| open_file(tree, pid, fd)).collect();
            facts.files.sort_by_key(|file| file.fd);
        }
        Err(error) => facts.unread.push((format!("{folder}/fd"), error.to_string())),
    }
    Some(facts)
}

/// Files mapped into a process, in the order of their addresses.
fn mapped(maps: &[u8]) -> impl Iterator<Item = String> {
    let lines = maps.split(|&byte| byte == b'\n');
    lines.filter_map(|line| {
        // The path is the sixth field, and may hold blanks.
        let at = line.iter().position(|&byte| byte == b'/')?;
        Some(String::from_utf8_lossy(line.get(at..)?).into_owned())
    })
}

fn variables(environment: &[u8]) -> BTreeMap<String, String> {
    let entries = environment.split(|&byte| byte == 0).filter_map(|entry| {
        let text = String::from_utf8_lossy(entry).into_owned();
        let (name, value) = text.split_once('=')?;
        let matters = VARIABLES.contains(&name) || name.starts_with(PREFIX);
        matters.then(|| (name.to_owned(), value.to_owned()))
    });
    entries.collect()
}

fn open_file(tree: &dyn Tree, pid: u32, fd: u32) -> Option<OpenFile> {
    let path = tree.link(&format!("/proc/{pid}/fd/{fd}")).ok()?;
    // Pipes, sockets and what has no name are no files; devices of other kinds are not read by hipFile.
    let is_file = path.starts_with('/')
        && !["/dev/null", "/dev/zero", "/dev/pts/", "/dev/tty", "/memfd:", "/proc/", "/sys/"]
            .iter()
            .any(|other| path.starts_with(other));
    is_file.then_some(())?;
    let info = tree.read(&format!("/proc/{pid}/fdinfo/{fd}"), &Want::whole(64 << 10)).ok();
    let direct = info.and_then(|info| {
        let text = String::from_utf8_lossy(&info.bytes).into_owned();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
        Some(OFlags::from_bits_retain(flags).contains(OFlags::DIRECT))
    });
    Some(OpenFile { fd, path, direct })
}

/// A host as one of its processes sees it: the kernel's interfaces are the host's, but for what is about the process itself,
/// and files are those below the process's root.
pub struct AsSeenBy<'a> {
    host: &'a dyn Tree,
    files: &'a dyn Tree,
    pid: u32,
}

impl std::fmt::Debug for AsSeenBy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsSeenBy").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl<'a> AsSeenBy<'a> {
    /// `host` as the process `pid` sees it; `files` is its root, `/proc/PID/root`.
    pub fn new(host: &'a dyn Tree, files: &'a dyn Tree, pid: u32) -> Self {
        Self { host, files, pid }
    }

    /// Who answers for a path, and by which name.
    fn at(&self, path: &str) -> (&'a dyn Tree, String) {
        if let Some(rest) = path.strip_prefix("/proc/self/") {
            return (self.host, format!("/proc/{}/{rest}", self.pid));
        }
        let is_kernel = ["/proc/", "/sys/"].iter().any(|place| path.starts_with(place));
        (if is_kernel { self.host } else { self.files }, path.to_owned())
    }
}

impl Tree for AsSeenBy<'_> {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let (tree, path) = self.at(path);
        tree.read(&path, want)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        let (tree, path) = self.at(path);
        tree.list(&path)
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        let (tree, path) = self.at(path);
        tree.kind(&path)
    }

    fn link(&self, path: &str) -> Result<String, ReadError> {
        let (tree, path) = self.at(path);
        tree.link(&path)
    }

    fn stat(&self, path: &str) -> Result<Stat, ReadError> {
        let (tree, path) = self.at(path);
        tree.stat(&path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_variables() {
        let maps = b"7f00-7f10 r-xp 00000000 08:01 42   /opt/rocm 7/lib/libamdhip64.so.7.2\n\
            7f20-7f30 rw-p 00000000 00:00 0 \n7f30-7f40 r--p 00000000 08:01 43 /x/libhipfile.so.0 (deleted)\n";
        let found: Vec<String> = mapped(maps).collect();
        assert_eq!(found, ["/opt/rocm 7/lib/libamdhip64.so.7.2", "/x/libhipfile.so.0 (deleted)"]);
        let found = variables(
            b"HOME=/root\0HIPFILE_FORCE_COMPAT_MODE=true\0LD_LIBRARY_PATH=/a:/b\0=\0\xff=x\0",
        );
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["HIPFILE_FORCE_COMPAT_MODE", "LD_LIBRARY_PATH"]);
    }

    #[test]
    fn this_process() {
        let tree = crate::DirTree::open(std::path::Path::new("/")).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let facts = read(&tree, std::process::id()).unwrap();
        assert_eq!(facts.other_mounts, Some(false));
        let path = file.path().to_str().unwrap();
        let open = facts.files.iter().find(|one| one.path == path).unwrap();
        assert_eq!(open.direct, Some(false));
        assert_eq!(read(&tree, u32::MAX), None);
    }
}
