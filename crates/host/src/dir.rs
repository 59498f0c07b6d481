//! A directory of this machine as a root.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;

use crate::lines::Filtered;
use crate::tree::{self, Content, Entry, FileId, FileKind, ReadError, Tree, Want};

/// A host read from a directory of this machine: `/` or another tree.
#[derive(Debug)]
pub struct DirTree {
    root: OwnedFd,
    resolver: Resolver,
}

/// How paths are kept inside the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolver {
    /// The kernel's `openat2` with `RESOLVE_IN_ROOT`, since Linux 5.6.
    Kernel,
    /// Component by component, with the same result.
    Walk,
}

/// Why a directory cannot be a root.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}; a root is a directory")]
pub struct OpenError {
    /// The directory.
    pub path: String,
    /// What is wrong with it.
    pub reason: ReadError,
}

/// As many links as the kernel follows in one path before it says `ELOOP`.
const MAX_LINKS: u32 = 40;

/// How often the kernel is asked before the walk takes over.
const MAX_TRIES: u32 = 8;

/// The kernel takes no longer path, its NUL counted.
const MAX_PATH: usize = 4096;

/// More names than any directory read here has; the rest is not looked at.
const MAX_NAMES: usize = 65_536;

impl DirTree {
    /// Takes a directory as a root.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if there is no directory at `path`, or it may not be searched.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::open(path, flags, Mode::empty()).map_err(|errno| OpenError {
            path: path.display().to_string(),
            reason: match errno {
                Errno::NOTDIR => fs::stat(path)
                    .map_or(ReadError::Missing, |stat| ReadError::WrongKind(kind_of(&stat))),
                other => other.into(),
            },
        })?;
        let probe = fs::openat2(&root, ".", flags, Mode::empty(), ResolveFlags::IN_ROOT);
        let resolver = if probe.is_ok() { Resolver::Kernel } else { Resolver::Walk };
        Ok(Self { root, resolver })
    }

    /// Resolves a path to a handle that names it without opening what is there.
    fn locate(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.open_in_root(path, OFlags::PATH)
    }

    fn open_in_root(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        match self.resolver {
            Resolver::Kernel => {
                let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
                // A rename anywhere on the machine can make the kernel unsure about a `..`; it says so with EAGAIN.
                for _ in 0..MAX_TRIES {
                    match fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
                        Err(Errno::AGAIN | Errno::INTR) => {}
                        result => return result,
                    }
                }
                self.walk_to(path, flags)
            }
            Resolver::Walk => self.walk_to(path, flags),
        }
    }

    fn walk_to(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let found = walk(&self.root, path)?;
        if flags.contains(OFlags::PATH) {
            return Ok(found.handle);
        }
        // The name of the last component in its own directory; no link is left to follow.
        let flags = flags | OFlags::NOFOLLOW;
        fs::openat(&found.directory, found.name.as_slice(), flags, Mode::empty())
    }

    /// Opens what is at `path` for reading if it is of the kind asked for. Looking first, without opening, keeps
    /// devices and pipes untouched.
    fn open_kind(&self, path: &str, kind: FileKind) -> Result<(OwnedFd, Stat), ReadError> {
        let found = kind_of(&fs::fstat(self.locate(path)?)?);
        if found != kind {
            return Err(ReadError::WrongKind(found));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.open_in_root(path, flags)?;
        let stat = fs::fstat(&file)?;
        if kind_of(&stat) == kind {
            Ok((file, stat))
        } else {
            Err(ReadError::WrongKind(kind_of(&stat)))
        }
    }
}

impl Tree for DirTree {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let (file, stat) = self.open_kind(path, FileKind::File)?;
        let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        if size > want.limit {
            return Err(ReadError::TooLarge(want.limit));
        }
        let bytes = match want.extract {
            Some(extract) => extract(&mut std::fs::File::from(file)).map_err(|error| {
                ReadError::Os(Errno::from_io_error(&error).unwrap_or(Errno::IO))
            })?,
            None => read_limited(&file, size, want)?,
        };
        #[allow(clippy::useless_conversion, reason = "the width differs between architectures")]
        let id = FileId { device: u64::from(stat.st_dev), inode: u64::from(stat.st_ino) };
        Ok(Content { bytes, id })
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        let (directory, _) = self.open_kind(path, FileKind::Directory)?;
        let names = directory.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        let mut entries = Vec::new();
        for entry in Dir::new(names)?.take(MAX_NAMES) {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let kind = match kind(entry.file_type()) {
                // Some file systems do not tell in the directory.
                FileKind::Unknown => {
                    fs::statat(&directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                        .map_or(FileKind::Unknown, |stat| kind_of(&stat))
                }
                kind => kind,
            };
            entries.push(Entry { name: name.to_owned(), kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        Ok(kind_of(&fs::fstat(self.locate(path)?)?))
    }

    fn link(&self, path: &str) -> Result<String, ReadError> {
        let path = path.trim_end_matches('/');
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        if matches!(name, "" | "." | "..") {
            return Err(ReadError::WrongKind(FileKind::Directory));
        }
        let directory = self.locate(if directory.is_empty() { "/" } else { directory })?;
        let found = kind_of(&fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?);
        if found != FileKind::Link {
            return Err(ReadError::WrongKind(found));
        }
        let target = fs::readlinkat(&directory, name, Vec::new())?;
        target.into_string().map_err(|_| ReadError::WrongKind(FileKind::Link))
    }

    fn stat(&self, path: &str) -> Result<tree::Stat, ReadError> {
        let handle = self.locate(path)?;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID | StatxFlags::DIOALIGN;
        let stat = fs::statx(&handle, c"", AtFlags::EMPTY_PATH, wanted)?;
        let told = StatxFlags::from_bits_retain(stat.stx_mask);
        let of = |flag, value| told.contains(flag).then_some(value);
        Ok(tree::Stat {
            kind: kind(FileType::from_raw_mode(u32::from(stat.stx_mode))),
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            rdev: (stat.stx_rdev_major, stat.stx_rdev_minor),
            mount: of(StatxFlags::MNT_ID, stat.stx_mnt_id),
            direct_io: told
                .contains(StatxFlags::DIOALIGN)
                .then_some((stat.stx_dio_mem_align, stat.stx_dio_offset_align)),
        })
    }
}

/// Reads to the end, or to one byte past the limit. Files of `/proc` say size zero, so the size is only a hint.
fn read_limited(file: &OwnedFd, size: usize, want: &Want) -> Result<Vec<u8>, ReadError> {
    const CHUNK: usize = 64 << 10;
    let mut filtered = want.lines.map(Filtered::new);
    let mut whole = Vec::with_capacity(if want.lines.is_some() { 0 } else { size });
    let mut chunk = vec![0; CHUNK.min(want.limit.saturating_add(1))];
    let mut total = 0_usize;
    loop {
        let count = match rustix::io::read(file, &mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        total += count;
        if total > want.limit {
            return Err(ReadError::TooLarge(want.limit));
        }
        match &mut filtered {
            Some(filtered) => {
                filtered.push(&chunk[..count]);
                if filtered.is_too_much() {
                    return Err(ReadError::TooLarge(want.limit));
                }
            }
            None => whole.extend_from_slice(&chunk[..count]),
        }
    }
    Ok(filtered.map_or(whole, Filtered::finish))
}

/// What a walk came to.
struct Found {
    /// A handle that names it.
    handle: OwnedFd,
    /// The directory it is in, or it itself if it was reached by `..` or is the root.
    directory: OwnedFd,
    /// Its name there.
    name: Vec<u8>,
}

/// Resolves `path` inside `root` one component at a time: absolute links start again at the root, `..` stops there.
fn walk(root: &OwnedFd, path: &str) -> Result<Found, Errno> {
    const NAMED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let again = |fd: &OwnedFd| fd.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE);
    if path.contains('\0') {
        return Err(Errno::INVAL);
    }
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    if path.len() >= MAX_PATH {
        return Err(Errno::NAMETOOLONG);
    }
    // Directories from the root down to where the walk stands; `..` pops, never below the root.
    let mut stack = vec![again(root)?];
    let mut todo: Vec<Vec<u8>> = path.split('/').rev().map(Into::into).collect();
    let mut links = 0;
    // Where the directory on top of the stack is, and its name there.
    let mut last = (again(root)?, b".".to_vec());
    while let Some(component) = todo.pop() {
        let needs_directory = !todo.is_empty();
        let here = stack.last().ok_or(Errno::NOENT)?;
        match component.as_slice() {
            b"" => continue,
            b"." | b".." => {
                // As the kernel does: whoever may not search a directory may not look up these in it either.
                fs::openat(here, c".", NAMED, Mode::empty())?;
                if component == b".." {
                    if stack.len() > 1 {
                        stack.pop();
                    }
                    last = (again(stack.last().ok_or(Errno::NOENT)?)?, b".".to_vec());
                }
                continue;
            }
            _ => {}
        }
        let handle = fs::openat(here, component.as_slice(), NAMED, Mode::empty())?;
        match kind_of(&fs::fstat(&handle)?) {
            FileKind::Link => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = fs::readlinkat(&handle, c"", Vec::new())?.into_bytes();
                if is_magic(&handle, &target) {
                    return Err(Errno::LOOP);
                }
                if target.starts_with(b"/") {
                    stack.truncate(1);
                    last = (again(root)?, b".".to_vec());
                }
                todo.extend(target.split(|&byte| byte == b'/').rev().map(<[u8]>::to_owned));
            }
            FileKind::Directory => {
                last = (again(here)?, component);
                stack.push(handle);
            }
            _ if needs_directory => return Err(Errno::NOTDIR),
            _ => return Ok(Found { handle, directory: again(here)?, name: component }),
        }
    }
    let handle = stack.pop().ok_or(Errno::NOENT)?;
    Ok(Found { handle, directory: last.0, name: last.1 })
}

/// Whether a link is one of `/proc` that jumps to an open file whatever its text says, and so out of the root. Those
/// have the absolute path of a file or a name such as `pipe:[1]`; the ordinary links of `/proc` are relative.
fn is_magic(handle: &OwnedFd, target: &[u8]) -> bool {
    (target.starts_with(b"/") || target.contains(&b':'))
        && fs::fstatfs(handle).is_ok_and(|system| system.f_type == fs::PROC_SUPER_MAGIC)
}

fn kind_of(stat: &Stat) -> FileKind {
    kind(FileType::from_raw_mode(stat.st_mode))
}

const fn kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice => FileKind::CharacterDevice,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::Unknown => FileKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;
    use rustix::fs::{CWD, makedev, mkdirat, mknodat};
    use tempfile::TempDir;

    use super::*;

    /// What both resolvers must agree on: which file, or which error, for looking and for opening.
    type Outcome = [Result<(u64, u64), Errno>; 2];

    fn outcome(tree: &DirTree, path: &str) -> Outcome {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        [OFlags::PATH, flags].map(|flags| {
            let stat = fs::fstat(tree.open_in_root(path, flags)?)?;
            #[allow(clippy::useless_conversion, reason = "the width differs between architectures")]
            Ok((u64::from(stat.st_dev), u64::from(stat.st_ino)))
        })
    }

    /// A directory through both resolvers; `None` and a word about it on a system without `openat2`.
    fn both(root: &Path) -> Option<[DirTree; 2]> {
        let kernel = DirTree::open(root).unwrap();
        let walk = DirTree { resolver: Resolver::Walk, ..DirTree::open(root).unwrap() };
        if kernel.resolver == Resolver::Walk {
            #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
            {
                eprintln!("skipped, because there is no openat2 here");
            }
            return None;
        }
        Some([kernel, walk])
    }

    fn agree(root: &Path, paths: &[&str]) {
        let Some([kernel, walk]) = both(root) else { return };
        for path in paths {
            assert_eq!(outcome(&kernel, path), outcome(&walk, path), "{path:?}");
        }
    }

    /// Something to make in a tree, and where.
    #[derive(Clone, Debug)]
    enum Make {
        File,
        Directory,
        Link(String),
        Fifo,
    }

    fn component() -> impl Strategy<Value = &'static str> {
        prop_oneof![
            6 => prop::sample::select(vec!["a", "b", "c"]),
            1 => Just(".."),
            1 => Just("."),
            1 => Just(""),
        ]
    }

    fn path() -> impl Strategy<Value = String> {
        (any::<bool>(), prop::collection::vec(component(), 0..5)).prop_map(|(absolute, names)| {
            let path = names.join("/");
            if absolute { format!("/{path}") } else { path }
        })
    }

    fn make() -> impl Strategy<Value = Make> {
        prop_oneof![
            2 => Just(Make::File),
            4 => Just(Make::Directory),
            4 => path().prop_map(Make::Link),
            1 => Just(Make::Fifo),
        ]
    }

    fn build(root: &Path, things: &[(Vec<&'static str>, Make)]) {
        for (names, thing) in things {
            // Below real directories only, so that nothing is made outside the root.
            let mut at = root.to_owned();
            for name in &names[..names.len() - 1] {
                let next = at.join(name);
                if next.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                    at = next;
                }
            }
            let at = at.join(names[names.len() - 1]);
            // Something may be there already; then that is the tree.
            let _ = match thing {
                Make::File => File::create_new(&at).map(drop).is_ok(),
                Make::Directory => mkdirat(CWD, &at, Mode::RWXU).is_ok(),
                Make::Link(target) => symlink(target, &at).is_ok(),
                Make::Fifo => mknodat(CWD, &at, FileType::Fifo, Mode::RUSR, 0).is_ok(),
            };
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 300,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn both_resolvers_come_to_the_same(
            things in prop::collection::vec(
                (prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4), make()),
                1..16,
            ),
            paths in prop::collection::vec(path(), 1..24),
        ) {
            let root = TempDir::new().unwrap();
            build(root.path(), &things);
            if let Some([kernel, walk]) = both(root.path()) {
                for path in &paths {
                    prop_assert_eq!(outcome(&kernel, path), outcome(&walk, path), "{:?}", path);
                }
            }
        }
    }

    #[test]
    fn links_that_lead_to_the_root_or_round_in_circles() {
        let root = TempDir::new().unwrap();
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("d/e")).unwrap();
        std::fs::write(at("d/file"), "x").unwrap();
        for (link, target) in [
            ("d/root", "/"),
            ("d/up", "../../../../.."),
            ("d/slash", "file/"),
            ("d/dot", "."),
            ("d/loop", "loop"),
            ("d/one", "/d/two"),
            ("d/two", "../d/one"),
            ("d/dangling", "/etc/passwd"),
            ("d/e/abs", "/d/file"),
            ("l0", "d"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        for link in 1..=45 {
            symlink(format!("l{}", link - 1), at(&format!("l{link}"))).unwrap();
        }
        let long = "a/".repeat(2048);
        let name = "n".repeat(300);
        let mut paths = vec!["", "/", "//", ".", "..", "/../..", "a\0b", &long, &long[1..], &name];
        paths.extend([
            "d/root",
            "d/root/",
            "d/root/d",
            "d/up",
            "d/up/d",
            "d/slash",
            "d/file/",
            "d/file/..",
            "d/file/.",
            "d/dot",
            "d/dot/dot/file",
            "d/loop",
            "d/one",
            "d/one/x",
            "d/dangling",
            "d/e/abs",
            "d/e/abs/",
            "l38",
            "l39",
            "l40",
            "l41",
            "l38/",
            "l39/root",
            "l38/root/l0",
            "d/",
            "d/.",
            "d/./",
            "d/none/..",
            "d//e",
        ]);
        agree(root.path(), &paths);
    }

    /// Root may search anything, so this tells more when it runs as somebody else.
    #[test]
    fn closed_directories_are_closed_to_both() {
        use std::fs::{Permissions, set_permissions};
        use std::os::unix::fs::PermissionsExt;
        let root = TempDir::new().unwrap();
        let at = |path: &str| root.path().join(path);
        let modes = [("none", 0), ("list", 0o444), ("search", 0o111)];
        let mut paths = Vec::new();
        for (name, _) in modes {
            std::fs::create_dir_all(at(name).join("d")).unwrap();
            std::fs::write(at(name).join("f"), "x").unwrap();
            for rest in
                ["", "/", "/.", "/..", "/f", "/f/", "/x", "/d", "/d/..", "/./f", "/../search/f"]
            {
                paths.push(format!("{name}{rest}"));
            }
        }
        for (name, mode) in modes {
            set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        }
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        agree(root.path(), &paths);
        for (name, _) in modes {
            set_permissions(at(name), Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn a_link_whose_text_is_not_utf8_is_followed() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let root = TempDir::new().unwrap();
        let name = OsStr::from_bytes(b"\xff\xfe");
        std::fs::write(root.path().join(name), "x").unwrap();
        symlink(name, root.path().join("link")).unwrap();
        agree(root.path(), &["link"]);
        let tree = DirTree::open(root.path()).unwrap();
        assert_eq!(tree.read("/link", &Want::whole(9)).unwrap().bytes, b"x");
        assert_eq!(tree.list("/").unwrap().len(), 1, "what has no name in text is left out");
    }

    #[test]
    fn links_of_proc_that_jump_are_not_followed() {
        let paths = [
            "/proc/self/exe",
            "/proc/self/cwd",
            "/proc/self/root",
            "/proc/self/root/etc",
            "/proc/self/fd/0",
            "/proc/self/ns/net",
            "/proc/self/status",
            "/proc/mounts",
            "/proc/net",
            "/proc/thread-self/exe",
            "/proc/none",
        ];
        agree(Path::new("/"), &paths);
        let tree = DirTree::open(Path::new("/")).unwrap();
        if tree.kind("/proc/self/status").is_ok() {
            assert_eq!(tree.kind("/proc/self/exe"), Err(ReadError::Os(Errno::LOOP)));
        }
    }

    #[test]
    fn what_is_no_small_file_is_refused_at_once() {
        let root = TempDir::new().unwrap();
        let at = |path: &str| root.path().join(path);
        let make = |path, kind, device| mknodat(CWD, at(path), kind, Mode::RUSR, device);
        make("fifo", FileType::Fifo, 0).unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        File::create(at("huge")).unwrap().set_len(1 << 40).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let mut expected = vec![
            ("/fifo", ReadError::WrongKind(FileKind::Fifo)),
            ("/directory", ReadError::WrongKind(FileKind::Directory)),
            ("/socket", ReadError::WrongKind(FileKind::Socket)),
            ("/huge", ReadError::TooLarge(1000)),
            ("/none", ReadError::Missing),
            ("/fifo/none", ReadError::Missing),
        ];
        if make("zero", FileType::CharacterDevice, makedev(1, 5)).is_ok() {
            expected.push(("/zero", ReadError::WrongKind(FileKind::CharacterDevice)));
        } else {
            #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
            {
                eprintln!("device node skipped, because this needs root");
            }
        }
        let start = Instant::now();
        for tree in both(root.path()).into_iter().flatten() {
            for (path, error) in &expected {
                assert_eq!(tree.read(path, &Want::whole(1000)), Err(*error), "{path}");
            }
            assert_eq!(tree.list("/huge"), Err(ReadError::WrongKind(FileKind::File)));
            let kinds: Vec<_> =
                tree.list("/").unwrap().into_iter().map(|entry| entry.kind).collect();
            assert!(kinds.contains(&FileKind::Fifo) && !kinds.contains(&FileKind::Unknown));
        }
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn renames_going_on_change_no_answer() {
        let root = TempDir::new().unwrap();
        std::fs::create_dir_all(root.path().join("a/b")).unwrap();
        std::fs::write(root.path().join("file"), "x").unwrap();
        let (one, other) = (root.path().join("one"), root.path().join("other"));
        std::fs::create_dir(&one).unwrap();
        let tree = DirTree::open(root.path()).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::fs::rename(&one, &other).unwrap();
                    std::fs::rename(&other, &one).unwrap();
                }
            });
            let answers: Vec<_> = (0..20_000).map(|_| tree.kind("/a/b/../../a/../file")).collect();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(answers.iter().all(|answer| *answer == Ok(FileKind::File)));
        });
    }
}
