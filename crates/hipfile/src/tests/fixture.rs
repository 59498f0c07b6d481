//! A runtime on a mocked GPU and a host made of a few files.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fastpath_gpu::Gpu;
use fastpath_host::DirTree;
use tempfile::TempDir;

use super::mock::Mock;
use crate::{Options, Runtime};

pub(crate) const MIB: usize = 1 << 20;

pub(crate) struct Fixture {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) mock: Arc<Mock>,
    pub(crate) dir: TempDir,
    pub(crate) lines: Arc<Mutex<Vec<String>>>,
    /// The host's root.
    pub(crate) root: TempDir,
}

/// Where files take `O_DIRECT`, or not at all.
fn directory() -> TempDir {
    let places = [
        std::env::temp_dir(),
        PathBuf::from("/var/tmp"),
        PathBuf::from(env!("CARGO_MANIFEST_DIR")),
    ];
    for place in places {
        let Ok(dir) = tempfile::Builder::new().prefix(".hipfile-test-").tempdir_in(place) else {
            continue;
        };
        let opened = File::options()
            .create(true)
            .write(true)
            .truncate(true)
            .custom_flags(libc::O_DIRECT)
            .open(dir.path().join("probe"));
        if opened.is_ok() {
            return dir;
        }
    }
    panic!("no directory here takes O_DIRECT: these tests need one");
}

pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Names the file system of the test's directory.
pub(crate) fn mount(root: &Path, dir: &Path, kind: &str, options: &str) {
    let device = std::fs::metadata(dir).unwrap().dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let line =
        format!("30 1 {major}:{minor} / / rw,relatime shared:1 - {kind} /dev/sda1 {options}\n");
    write(&root.join("proc/self/mountinfo"), &line);
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(&[], |_, _| {})
    }

    pub(crate) fn with(
        environment: &[(&str, &str)],
        prepare: impl FnOnce(&Path, &mut Options),
    ) -> Self {
        let (dir, root) = (directory(), tempfile::tempdir().unwrap());
        mount(root.path(), dir.path(), "xfs", "rw");
        let environment: HashMap<String, OsString> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect();
        let mut options = Options::with_environment(|name| environment.get(name).cloned());
        let mock = Arc::new(Mock::new());
        let gpu = Arc::clone(&mock);
        options.gpu = Box::new(move || Ok(Arc::clone(&gpu) as Arc<dyn Gpu>));
        options.tree = Box::new(DirTree::open(root.path()).unwrap());
        options.uname = Some("6.12.0-test".to_owned());
        options.knowledge_directory = Some(root.path().join("etc/fastpath/knowledge.d"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        options.log = Some(Box::new(move |line| kept.lock().unwrap().push(line.to_owned())));
        prepare(root.path(), &mut options);
        Self { runtime: Arc::new(Runtime::new(options)), mock, dir, lines, root }
    }

    pub(crate) fn open(&self, name: &str, flags: i32) -> File {
        File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flags)
            .open(self.dir.path().join(name))
            .unwrap()
    }

    /// A file with bytes, registered.
    pub(crate) fn file(&self, name: &str, flags: i32, bytes: &[u8]) -> (File, u64) {
        let file = self.open(name, 0);
        file.write_all_at(bytes, 0).unwrap();
        let file = if flags == 0 { file } else { self.open(name, flags) };
        let handle = self.runtime.handle_register(1, file.as_raw_fd()).unwrap();
        (file, handle)
    }

    /// GPU memory, registered.
    pub(crate) fn buffer(&self, length: usize) -> usize {
        let address = self.mock.allocate(length, 0);
        self.runtime.buffer_register(address, length, 0).unwrap();
        address
    }

    pub(crate) fn read(
        &self,
        handle: u64,
        buffer: usize,
        size: usize,
        file: i64,
        offset: i64,
    ) -> Result<usize, crate::Error> {
        super::call::read(&self.runtime, handle, buffer, size, file, offset)
    }

    pub(crate) fn write(
        &self,
        handle: u64,
        buffer: usize,
        size: usize,
        file: i64,
        offset: i64,
    ) -> Result<usize, crate::Error> {
        super::call::write(&self.runtime, handle, buffer, size, file, offset)
    }

    /// The whole file as it is now.
    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.dir.path().join(name)).unwrap()
    }

    pub(crate) fn logged(&self, text: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|line| line.contains(text)).count()
    }

    pub(crate) fn transfers(&self) -> usize {
        self.mock.transfers.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Bytes of which no two places look alike.
pub(crate) fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
