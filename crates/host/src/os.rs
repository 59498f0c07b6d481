//! The operating system in a root, and what kind of place it is.

use fastpath_knowledge::Release;
use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::tree::{Tree, Want};

/// What `os-release` says.
/// Source: <https://www.freedesktop.org/software/systemd/man/latest/os-release.html>.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsRelease {
    /// `ID`, for example `ubuntu`; `linux` if there is none, as the specification says. Empty without a file.
    pub id: String,
    /// `ID_LIKE`, split at blanks.
    pub like: Vec<String>,
    /// `VERSION_ID`, for example `22.04`.
    pub version: String,
    /// `PRETTY_NAME`.
    pub name: String,
}

/// What kind of place the root is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// A container: the kernel is the host's, the files are the image's.
    pub container: bool,
    /// Windows Subsystem for Linux 2.
    pub wsl2: bool,
}

const SMALL: usize = 64 << 10;

/// Mount tables of container hosts have tens of thousands of lines.
const TABLE: usize = 16 << 20;

impl OsRelease {
    /// Whether the distribution is one of these, or says that it is like one of them.
    pub fn is_of(&self, ids: &[&str]) -> bool {
        ids.contains(&self.id.as_str()) || self.like.iter().any(|id| ids.contains(&id.as_str()))
    }

    /// Reads `/etc/os-release`, else `/usr/lib/os-release`. Nothing there gives empty fields.
    pub fn read(tree: &dyn Tree) -> Self {
        let want = Want::lines(SMALL, keep_os_release);
        ["/etc/os-release", "/usr/lib/os-release"]
            .into_iter()
            .find_map(|path| tree.read(path, &want).ok())
            .map(|content| Self::parse(&String::from_utf8_lossy(&content.bytes)))
            .unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let mut os = Self { id: "linux".to_owned(), ..Self::default() };
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = unquote(value);
            match key {
                "ID" => os.id = value,
                "ID_LIKE" => os.like = value.split_whitespace().map(str::to_owned).collect(),
                "VERSION_ID" => os.version = value,
                "PRETTY_NAME" => os.name = value,
                _ => {}
            }
        }
        os
    }
}

/// Undoes the shell quoting that `os-release` allows.
fn unquote(value: &str) -> String {
    let value = value.trim();
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)));
    let mut out = String::with_capacity(value.len());
    let mut escaped = false;
    for c in inner.unwrap_or(value).chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            escaped = false;
            out.push(c);
        }
    }
    out
}

fn keep_os_release(line: &[u8], out: &mut Vec<u8>) {
    const KEYS: [&[u8]; 4] = [b"ID=", b"ID_LIKE=", b"VERSION_ID=", b"PRETTY_NAME="];
    if KEYS.iter().any(|key| line.starts_with(key)) {
        out.extend_from_slice(line);
    }
}

impl Environment {
    /// Looks for the marks that containers and WSL2 leave.
    pub fn read(tree: &dyn Tree, running: Option<&Release>) -> Self {
        let there = |path: &str| tree.kind(path).is_ok();
        let says = |path: &str, filter| {
            let content = tree.read(path, &Want::lines(TABLE, filter)).ok()?;
            Some(content.bytes.into_iter().filter(|&byte| byte != b'\n').collect::<Vec<u8>>())
        };
        let named = says("/proc/1/cgroup", keep_runtime).is_some_and(|name| !name.is_empty());
        let root = says("/proc/self/mountinfo", keep_root_mount).unwrap_or_default();
        // Docker's mark stays in an image's files when they become a virtual machine's disk.
        let marked = there("/.dockerenv") && root != DISK;
        let container = named
            || marked
            || there("/run/.containerenv")
            || there("/run/systemd/container")
            || (!root.is_empty() && root != DISK);
        let wsl2 = running.is_some_and(|release| release.as_str().contains("microsoft"))
            || there("/proc/sys/fs/binfmt_misc/WSLInterop")
            || there("/proc/sys/fs/binfmt_misc/WSLInterop-late");
        Self { container, wsl2 }
    }
}

const RUNTIMES: [&[u8]; 6] = [b"docker", b"kubepods", b"libpod", b"containerd", b"lxc", b"crio"];

/// Keeps only the name of the container runtime: the rest of the line identifies the container.
pub(crate) fn keep_runtime(line: &[u8], out: &mut Vec<u8>) {
    if let Some(runtime) = RUNTIMES.iter().find(|runtime| memmem::find(line, runtime).is_some()) {
        out.extend_from_slice(runtime);
    }
}

/// What [`keep_root_mount`] leaves of a root that is on a disk.
const DISK: &[u8] = b"disk";

/// Of the line that mounts `/`, keeps whether its source is a block device, else the container runtime whose layers it
/// is made of. Format: <https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html>.
fn keep_root_mount(line: &[u8], out: &mut Vec<u8>) {
    if line == DISK || RUNTIMES.contains(&line) {
        out.extend_from_slice(line);
        return;
    }
    let mut fields = line.split(|&byte| byte == b' ');
    if fields.nth(4) != Some(b"/") {
        return;
    }
    let source = fields.skip_while(|field| *field != b"-").nth(2).unwrap_or_default();
    if source.starts_with(b"/dev/") {
        out.extend_from_slice(DISK);
    } else {
        keep_runtime(line, out);
    }
}
