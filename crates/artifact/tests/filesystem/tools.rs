//! Trees, images made of them by the ordinary tools, and comparison byte by byte.
#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fastpath_artifact::filesystem::{self, EntryKind, FileSystem, FsError};

/// Whether all these programs are there; says so if not.
pub(crate) fn have(tools: &[&str]) -> bool {
    for tool in tools {
        let found = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin"]
            .iter()
            .any(|dir| Path::new(dir).join(tool).exists());
        if !found {
            skipped(&format!("there is no {tool}"));
            return false;
        }
    }
    true
}

#[expect(clippy::print_stderr, reason = "the only voice of a test that was not run")]
pub(crate) fn skipped(why: &str) {
    eprintln!("skipped, because {why}");
}

/// A directory for images: in memory if there is enough, as what is written to a mounted one is synced often.
pub(crate) fn scratch() -> tempfile::TempDir {
    let enough = "test $(df --output=avail /dev/shm | tail -1) -gt 3000000 -a -w /dev/shm";
    if try_sh(Path::new("/"), enough) {
        return tempfile::tempdir_in("/dev/shm").unwrap();
    }
    tempfile::tempdir().unwrap()
}

/// Runs a shell command in a directory; its output is shown if it fails.
pub(crate) fn sh(dir: &Path, script: &str) {
    let output = shell(dir, script).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{text}");
}

/// Runs a shell command that may fail, in silence.
pub(crate) fn try_sh(dir: &Path, script: &str) -> bool {
    let mut command = shell(dir, script);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

fn shell(dir: &Path, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(dir);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin").env("LC_ALL", "C.UTF-8");
    command
}

/// A loop mount that ends with it.
pub(crate) struct Mount(PathBuf, String);

impl Mount {
    /// Mounts `image` at `dir/mnt`; `None`, said aloud, where that is not allowed.
    pub(crate) fn new(dir: &Path, image: &str, options: &str) -> Option<Self> {
        let mut all = "loop".to_owned();
        if !options.is_empty() {
            all = all + "," + options;
        }
        fs::create_dir_all(dir.join("mnt")).unwrap();
        if !try_sh(dir, &format!("mount -o {all} {image} mnt")) {
            skipped("nothing can be mounted here");
            return None;
        }
        Some(Self(dir.join("mnt"), image.to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A process that took a copy of the mounts meanwhile holds the file system until it ends; only then is the image whole.
        let free = format!(
            "sync; umount mnt; for turn in $(seq 600); do [ -z \"$(losetup -j {})\" ] && break; sleep 0.1; done",
            self.1
        );
        sh(&self.0.join(".."), &free);
    }
}

/// Bytes that do not compress, the same for the same seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Text that compresses, every line of its own.
pub(crate) fn text(len: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for line in 0.. {
        if text.len() >= len {
            break;
        }
        text.extend_from_slice(format!("CONFIG_OPTION_{line}=y\n").as_bytes());
    }
    text.truncate(len);
    text
}

/// A tree like that of a system, with files of every awkward size. `many` is how many files one directory has.
pub(crate) fn tree(root: &Path, many: usize) {
    let release = "6.1.0-57-amd64";
    for dir in
        ["boot", "usr/lib/modules/6.1.0-57-amd64/kernel", "deep/a/b/c/d/e/f", "empty", "many"]
    {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    let config = format!("#\n# Linux/x86 6.1.99 Kernel Configuration\n#\n{}", "CONFIG_PCI=y\n");
    let mut config = config.into_bytes();
    config.extend(text(260_000));
    config.extend(b"CONFIG_PCI_P2PDMA=y\n");
    fs::write(root.join(format!("boot/config-{release}")), config).unwrap();
    fs::write(root.join(format!("boot/vmlinuz-{release}")), noise(1, 3_000_001)).unwrap();
    fs::write(root.join(format!("boot/System.map-{release}")), text(1_500_000)).unwrap();
    for size in [0, 1, 59, 60, 61, 511, 512, 513, 2048, 4095, 4096, 4097, 65_535, 65_536, 131_072] {
        fs::write(root.join(format!("size-{size}")), noise(size as u64, size)).unwrap();
    }
    fs::write(root.join("deep/a/b/c/d/e/f/leaf"), b"leaf\n").unwrap();
    fs::write(root.join("x".repeat(255)), b"long name").unwrap();
    fs::write(root.join("name with späce ünd 漢字"), b"unicode").unwrap();
    for number in 0..many {
        let name = format!("many/entry-{number}-{}", "n".repeat(number % 60));
        fs::write(root.join(name), number.to_string()).unwrap();
    }
}

/// Links of all kinds, for file systems that have them.
pub(crate) fn links(root: &Path) {
    symlink("usr/lib", root.join("lib")).unwrap();
    symlink("/boot/vmlinuz-6.1.0-57-amd64", root.join("vmlinuz")).unwrap();
    symlink("vmlinuz", root.join("chain")).unwrap();
    symlink("../../..//boot/./config-6.1.0-57-amd64", root.join("deep/a/b/up")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("loop-b", root.join("loop-a")).unwrap();
    symlink("loop-a", root.join("loop-b")).unwrap();
    let long = format!("{}size-4097", "deep/../".repeat(60));
    symlink(long, root.join("long-link")).unwrap();
    fs::hard_link(root.join("size-4097"), root.join("deep/hard")).unwrap();
}

/// Files with holes, preallocated parts and many fragments, on the file system they are written to.
pub(crate) fn fragments(root: &Path) {
    let file = File::create(root.join("sparse")).unwrap();
    for at in [0_u64, 5_000, 1 << 20, (3 << 20) + 17, 9 << 20] {
        file.write_all_at(&noise(at + 3, 6000), at).unwrap();
    }
    file.set_len((11 << 20) + 5).unwrap();
    drop(file);
    // Two files that grow in turns, and one of the blocks freed between others.
    let (one, two) =
        (File::create(root.join("turns-1")).unwrap(), File::create(root.join("turns-2")).unwrap());
    for step in 0..200_u64 {
        one.write_all_at(&noise(step, 4096), step * 4096).unwrap();
        one.sync_data().unwrap();
        two.write_all_at(&noise(step + 1000, 4096), step * 8192).unwrap();
        two.sync_data().unwrap();
    }
}

/// Compares a file system with a tree, byte by byte and in both directions. Names in `ignored` are not looked at.
pub(crate) fn compare(fs: &mut dyn FileSystem, root: &Path, ignored: &[&str]) {
    let mut files = 0;
    compare_dir(fs, root, "", ignored, &mut files);
    assert!(files > 5, "only {files} files");
}

fn compare_dir(
    fs: &mut dyn FileSystem,
    root: &Path,
    dir: &str,
    ignored: &[&str],
    files: &mut usize,
) {
    let path = if dir.is_empty() { "/" } else { dir };
    let found = fs.read_dir(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let found: BTreeMap<_, _> = found.into_iter().map(|entry| (entry.name, entry.kind)).collect();
    let mut expected = BTreeMap::new();
    for entry in fs::read_dir(root.join(dir.trim_start_matches('/'))).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let kind = match () {
            () if kind.is_dir() => EntryKind::Directory,
            () if kind.is_symlink() => EntryKind::Link,
            () if kind.is_file() => EntryKind::File,
            () => EntryKind::Other,
        };
        expected.insert(entry.file_name().into_string().unwrap(), kind);
    }
    let strip = |mut names: BTreeMap<String, EntryKind>| {
        names.retain(|name, _| !ignored.contains(&name.as_str()));
        names
    };
    let (found, expected) = (strip(found), strip(expected));
    assert_eq!(found, expected, "entries of {path}");
    // Of a large directory every name is compared and some of the files: each is looked up from the start.
    let step = if found.len() > 500 { 97 } else { 1 };
    for (name, kind) in found.into_iter().step_by(step) {
        let path = format!("{dir}/{name}");
        match kind {
            EntryKind::Directory => compare_dir(fs, root, &path, ignored, files),
            EntryKind::File | EntryKind::Link => {
                let Some(target) = resolve(root, &path) else {
                    assert!(matches!(fs.read(&path, 1 << 30), Err(FsError::Missing)), "{path}");
                    continue;
                };
                if target.is_file() {
                    *files += 1;
                    compare_file(fs, &path, &fs::read(&target).unwrap());
                }
            }
            EntryKind::Other => {}
        }
    }
}

/// Where a path leads inside of `root`; `None` if nowhere.
fn resolve(root: &Path, path: &str) -> Option<PathBuf> {
    let mut way: Vec<String> = Vec::new();
    let mut left: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    for _ in 0..4000 {
        let Some(name) = left.pop() else { return Some(root.join(way.join("/"))) };
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                way.pop();
                continue;
            }
            _ => way.push(name),
        }
        let here = root.join(way.join("/"));
        let meta = here.symlink_metadata().ok()?;
        if meta.is_symlink() {
            let target = fs::read_link(&here).unwrap().into_os_string().into_string().unwrap();
            way.pop();
            if target.starts_with('/') {
                way.clear();
            }
            left.extend(target.split('/').rev().map(str::to_owned));
        }
    }
    None
}

fn compare_file(fs: &mut dyn FileSystem, path: &str, expected: &[u8]) {
    let found = fs.read(path, 1 << 30).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(found == expected, "{path}: {}", difference(&found, expected));
    let stat = fs.stat(path).unwrap();
    assert_eq!((stat.kind, stat.size), (EntryKind::File, expected.len() as u64), "{path}");
    if !expected.is_empty() {
        let limit = expected.len() - 1;
        assert!(matches!(fs.read(path, limit), Err(FsError::TooLarge(_))), "{path}");
    }
    if expected.len() > 10_000 {
        let mut open = fs.open(path).unwrap();
        for at in [expected.len() - 1, expected.len() / 3, 4095, 0, expected.len() / 2] {
            let len = 5000.min(expected.len() - at);
            let mut part = vec![0; len];
            open.seek(SeekFrom::Start(at as u64)).unwrap();
            open.read_exact(&mut part).unwrap_or_else(|error| panic!("{path} at {at}: {error}"));
            assert!(part == expected[at..at + len], "{path}: another {len} bytes at {at}");
        }
        open.seek(SeekFrom::End(0)).unwrap();
        assert_eq!(open.read(&mut [0; 10]).unwrap(), 0);
    }
}

fn difference(found: &[u8], expected: &[u8]) -> String {
    let first = found.iter().zip(expected).position(|(one, other)| one != other);
    let differ = found.iter().zip(expected).filter(|(one, other)| one != other).count();
    format!("{} bytes for {}, {differ} differ from {first:?} on", found.len(), expected.len())
}

/// Opens an image and hands its file system to `test`.
pub(crate) fn with(image: &Path, name: &str, test: impl FnOnce(&mut dyn FileSystem)) {
    let mut file = File::open(image).unwrap();
    let mut fs = filesystem::probe(&mut file).unwrap().expect("a file system that is known");
    assert_eq!(fs.name(), name);
    test(&mut *fs);
}

/// Reads all there is, as far as it can be read; what a damaged image must survive.
pub(crate) fn exercise(image: &[u8]) {
    let start = Instant::now();
    let mut input = Cursor::new(image);
    if let Ok(Some(mut fs)) = filesystem::probe(&mut input) {
        let mut left = vec!["/".to_owned()];
        let mut work = 0;
        while let Some(dir) = left.pop() {
            for entry in fs.read_dir(&dir).unwrap_or_default() {
                work += 1;
                if work > 300 {
                    break;
                }
                let path = format!("{}/{}", dir.trim_end_matches('/'), entry.name);
                if entry.kind == EntryKind::Directory && path.len() < 200 {
                    left.push(path);
                } else if let Ok(data) = fs.read(&path, 4 << 20) {
                    assert!(data.len() <= 4 << 20);
                }
            }
        }
        let _ = filesystem::candidates(&mut *fs);
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// Every truncation to a few lengths and `count` changed single bytes, those of `hot` ranges first.
pub(crate) fn mutate(image: &[u8], count: u64, hot: &[std::ops::Range<usize>]) {
    for length in [0, 1, 511, 512, 1024, 1500, 2048, 4096, 40_000, image.len() / 2, image.len() - 1]
    {
        exercise(&image[..length.min(image.len())]);
    }
    let mut damaged = image.to_vec();
    // Places that hold something; changed zeros are mostly never looked at.
    let places: Vec<usize> = hot.iter().cloned().flatten().collect();
    let used: Vec<usize> = (0..image.len()).filter(|at| image[*at] != 0).collect();
    for round in 0..count {
        let random = noise(round + 77, 16);
        let number = u64::from_le_bytes(random[..8].try_into().unwrap());
        let pool = if round % 2 == 0 && !places.is_empty() { &places } else { &used };
        let at = pool[usize::try_from(number % pool.len() as u64).unwrap()];
        let kept = damaged[at];
        damaged[at] = match round % 4 {
            0 => 0xff,
            1 => kept ^ 1 << (random[8] % 8),
            2 => random[9],
            _ => kept.wrapping_add(1),
        };
        exercise(&damaged);
        damaged[at] = kept;
    }
}
