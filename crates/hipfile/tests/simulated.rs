//! The library on the simulated HIP runtime, loaded as a program would load the real one.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use fastpath_gpu::{Direction, Gpu, Hip, RawStream};
use fastpath_host::DirTree;
use hipfile::choose::Reason;
use hipfile::raw::{Entry, Late, Status};
use hipfile::{Options, Runtime};
use libloading::os::unix::{Library, Symbol};
use tempfile::TempDir;

const MIB: usize = 1 << 20;

/// What a client calls of HIP itself.
struct Client {
    library: Library,
    hip: Arc<dyn Gpu>,
    _folder: TempDir,
}

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = hip_sim::layout::lay_out(folder.path()).unwrap();
        // A program that links HIP has it loaded under its own name.
        // SAFETY: a C library's initialisers.
        let library =
            unsafe { Library::open(Some(path.with_file_name("libamdhip64.so.7")), 2) }.unwrap();
        let hip: Arc<dyn Gpu> = if let Ok(hip) = Hip::load() {
            Arc::new(hip)
        } else {
            // A loader that knows no path looks where ROCm is.
            let lib = folder.path().join("lib");
            std::fs::create_dir_all(&lib).unwrap();
            hip_sim::layout::lay_out(&lib).unwrap();
            // SAFETY: only this thread reads the environment now: the others wait for it.
            unsafe { std::env::set_var("ROCM_PATH", folder.path()) };
            Arc::new(Hip::load().unwrap())
        };
        Client { library, hip, _folder: folder }
    })
}

impl Client {
    fn malloc(&self, length: usize) -> usize {
        let mut memory: *mut c_void = std::ptr::null_mut();
        // SAFETY: HIP's declaration.
        let code = unsafe {
            let malloc: Symbol<unsafe extern "C" fn(*mut *mut c_void, usize) -> i32> =
                self.library.get(b"hipMalloc").unwrap();
            malloc(&raw mut memory, length)
        };
        assert_eq!(code, 0);
        memory.addr()
    }

    fn memcpy(&self, to: usize, from: usize, length: usize, kind: u32) {
        let pointer = std::ptr::with_exposed_provenance_mut::<c_void>;
        // SAFETY: HIP's declaration; the ranges are this test's.
        let code = unsafe {
            let memcpy: Symbol<
                unsafe extern "C" fn(*mut c_void, *const c_void, usize, u32) -> i32,
            > = self.library.get(b"hipMemcpy").unwrap();
            memcpy(pointer(to), pointer(from), length, kind)
        };
        assert_eq!(code, 0);
    }

    /// Has calls fail from now on.
    fn fault(&self, requests: &CStr) {
        // SAFETY: the simulation's declaration.
        let code = unsafe {
            let fault: Symbol<unsafe extern "C" fn(*const c_char) -> i32> =
                self.library.get(b"hipsim_fault").unwrap();
            fault(requests.as_ptr())
        };
        assert_eq!(code, 0);
    }

    fn put(&self, address: usize, bytes: &[u8]) {
        self.memcpy(address, bytes.as_ptr().expose_provenance(), bytes.len(), 1);
    }

    fn get(&self, address: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memcpy(bytes.as_mut_ptr().expose_provenance(), address, length, 2);
        bytes
    }
}

/// Faults are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Host {
    runtime: Arc<Runtime>,
    dir: TempDir,
}

/// A host whose kernel says nothing, so that the driver decides.
fn host(environment: &'static [(&'static str, &'static str)]) -> Host {
    let hip = Arc::clone(&client().hip);
    let dir = tempfile::tempdir().unwrap();
    let all = [("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "on"), ("HIPFILE_LOG", "off")];
    let find = |name: &str| {
        all.iter().chain(environment).find(|(key, _)| *key == name).map(|(_, value)| value.into())
    };
    let mut options = Options::with_environment(find);
    options.tree = Box::new(DirTree::open(dir.path()).unwrap());
    options.uname = None;
    options.gpu = Box::new(move || Ok(Arc::clone(&hip)));
    Host { runtime: Arc::new(Runtime::new(options)), dir }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

fn file(path: &Path, bytes: &[u8]) -> File {
    let file =
        File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

const FORCED: &[(&str, &str)] = &[("HIPFILE_FORCE_COMPAT_MODE", "on")];

#[test]
fn sync_stream_and_batch_move_bytes_both_ways() {
    let _alone = alone();
    for environment in [&[], FORCED] {
        let Host { runtime, dir } = host(environment);
        let bytes = pattern(5 * MIB + 77);
        let file = file(&dir.path().join("a"), &bytes);
        let handle = runtime.handle_register(1, file.as_raw_fd()).unwrap();
        let buffer = client().malloc(6 * MIB);
        runtime.buffer_register(buffer, 6 * MIB, 0).unwrap();
        // SAFETY: GPU memory.
        let read = unsafe { runtime.read(handle, buffer, 5 * MIB, 0, 4096) };
        assert_eq!(read, Ok(5 * MIB));
        assert!(client().get(buffer + 4096, 5 * MIB) == bytes[..5 * MIB]);
        let new: Vec<u8> = bytes.iter().rev().copied().collect();
        client().put(buffer, &new);
        // SAFETY: as above.
        assert_eq!(unsafe { runtime.write(handle, buffer, 5 * MIB, 0, 0) }, Ok(5 * MIB));
        assert!(std::fs::read(dir.path().join("a")).unwrap()[..5 * MIB] == new[..5 * MIB]);
        let streams = [RawStream(std::ptr::null_mut()), client().hip.create_stream().unwrap()];
        for stream in streams {
            let (size, offsets) = (2 * MIB, [0_i64, 8192]);
            let mut results = [77_isize; 2];
            for (result, direction) in results.iter_mut().zip([Direction::Read, Direction::Write]) {
                let late = Late {
                    size: &raw const size,
                    file_offset: &raw const offsets[usize::from(direction == Direction::Write)],
                    buffer_offset: &raw const offsets[0],
                    result: &raw mut *result,
                };
                // SAFETY: the places stay until the stream is done.
                unsafe { runtime.submit(direction, handle, buffer, late, stream) }.unwrap();
            }
            // SAFETY: a stream.
            unsafe { client().hip.synchronize(stream) }.unwrap();
            // SAFETY: places of this test's.
            assert_eq!(unsafe { (&raw const results).read_volatile() }, [2 * MIB as isize; 2]);
            let found = std::fs::read(dir.path().join("a")).unwrap();
            assert!(found[8192..8192 + 2 * MIB] == client().get(buffer, 2 * MIB));
        }
        let batch = runtime.batch_set_up(8).unwrap();
        let entry = |cookie: usize| Entry {
            mode: 1,
            opcode: 0,
            file: handle,
            buffer,
            buffer_offset: (cookie * 65536) as i64,
            file_offset: (cookie * 65536) as i64,
            size: 65536,
            cookie,
        };
        // SAFETY: GPU memory.
        unsafe { runtime.batch_submit(batch, &[0, 1, 2, 3].map(entry)) }.unwrap();
        let events = runtime.batch_status(batch, 4, 8, Some(Duration::from_mins(1))).unwrap();
        assert!(events.len() == 4 && events.iter().all(|event| event.status == Status::Complete));
        let found = std::fs::read(dir.path().join("a")).unwrap();
        assert!(found[..4 * 65536] == client().get(buffer, 4 * 65536));
        let reasons: Vec<Reason> =
            runtime.reasons(handle).unwrap().iter().map(|(reason, _)| *reason).collect();
        assert!(
            reasons == if environment.is_empty() { vec![] } else { vec![Reason::Forced] },
            "{reasons:?}"
        );
        runtime.driver_close().unwrap();
    }
}

#[test]
fn many_threads_and_files_at_once() {
    let _alone = alone();
    let Host { runtime, dir } = host(&[]);
    let bytes = pattern(256 << 10);
    std::thread::scope(|scope| {
        for thread in 0..16_usize {
            let (runtime, bytes, dir) = (&runtime, &bytes, dir.path());
            scope.spawn(move || {
                let buffer = client().malloc(bytes.len());
                for round in 0..20 {
                    let file = file(&dir.join(format!("{thread}-{round}")), bytes);
                    let handle = runtime.handle_register(1, file.as_raw_fd()).unwrap();
                    let size = if round % 2 == 0 { bytes.len() } else { bytes.len() - 1 };
                    // SAFETY: GPU memory of this thread.
                    assert_eq!(unsafe { runtime.read(handle, buffer, size, 0, 0) }, Ok(size));
                    assert!(client().get(buffer, size) == bytes[..size]);
                    drop(file);
                    runtime.handle_deregister(handle);
                }
            });
        }
    });
    assert_eq!(runtime.registered(), (0, 0));
}

#[test]
fn a_copy_that_fails_unseen_is_neither_reported_as_read_nor_written_to_the_file() {
    let _alone = alone();
    let Host { runtime, dir } = host(FORCED);
    let bytes = pattern(8 * MIB);
    let file = file(&dir.path().join("a"), &bytes);
    let handle = runtime.handle_register(1, file.as_raw_fd()).unwrap();
    let buffer = client().malloc(8 * MIB);
    client().put(buffer, &vec![0x55; 8 * MIB]);
    client().fault(c"hipMemcpyAsync:3=later:700");
    // SAFETY: GPU memory.
    let read = unsafe { runtime.read(handle, buffer, 8 * MIB, 0, 0) };
    assert_eq!(read, Ok(2 * MIB));
    assert!(client().get(buffer, 2 * MIB) == bytes[..2 * MIB]);
    client().fault(c"hipMemcpyAsync:4=later:700");
    client().put(buffer, &vec![0x77; 8 * MIB]);
    // SAFETY: as above.
    let written = unsafe { runtime.write(handle, buffer, 8 * MIB, 0, 0) };
    assert_eq!(written, Ok(3 * MIB));
    let found = std::fs::read(dir.path().join("a")).unwrap();
    assert!(
        found[..3 * MIB].iter().all(|byte| *byte == 0x77) && found[3 * MIB..] == bytes[3 * MIB..]
    );
    client().fault(c"hipMemcpyWithStream:1=error:700");
    // SAFETY: as above.
    let failed = unsafe { runtime.read(handle, buffer, 4096, 0, 0) }.unwrap_err();
    assert_eq!((failed.code(), failed.hip()), (5011, 700));
    // SAFETY: as above.
    assert_eq!(unsafe { runtime.read(handle, buffer, 8 * MIB, 0, 0) }, Ok(8 * MIB));
    assert!(client().get(buffer, 8 * MIB) == found);
}

/// Set in a child of the next test: which way its I/O goes.
const CHILD: &str = "HIPFILE_TEST_EXIT";

#[test]
fn exit_during_io_and_a_lost_gpu_end_the_process_as_it_wants() {
    if let Ok(way) = std::env::var(CHILD) {
        leave_during_io(&way);
    }
    for way in ["fast", "fallback", "lost"] {
        for _ in 0..2 {
            let program = std::env::current_exe().unwrap();
            let mut child = Command::new(program)
                .args([
                    "--exact",
                    "exit_during_io_and_a_lost_gpu_end_the_process_as_it_wants",
                    "--nocapture",
                ])
                .env(CHILD, way)
                .env("HIPSIM_COPY_GBPS", "1")
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let mut status = None;
            for _ in 0..2000 {
                status = child.try_wait().unwrap();
                if status.is_some() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            if status.is_none() {
                child.kill().unwrap();
            }
            assert_eq!(status.and_then(|status| status.code()), Some(3), "{way}");
        }
    }
}

#[allow(clippy::exit)]
fn leave_during_io(way: &str) {
    let Host { runtime, dir } = host(if way == "fast" { &[] } else { FORCED });
    let file = file(&dir.path().join("a"), &pattern(8 * MIB));
    let handle = runtime.handle_register(1, file.as_raw_fd()).unwrap();
    let batch = runtime.batch_set_up(128).unwrap();
    for _ in 0..4 {
        let (runtime, buffer) = (Arc::clone(&runtime), client().malloc(8 * MIB));
        let entry = Entry {
            mode: 1,
            opcode: 0,
            file: handle,
            buffer,
            buffer_offset: 0,
            file_offset: 0,
            size: 8 * MIB,
            cookie: 0,
        };
        // SAFETY: GPU memory.
        unsafe { runtime.batch_submit(batch, &[entry; 4]) }.unwrap();
        std::thread::spawn(move || {
            loop {
                // SAFETY: GPU memory.
                let _ = unsafe { runtime.read(handle, buffer, 8 * MIB, 0, 0) };
            }
        });
    }
    if way == "lost" {
        // What waits for the GPU must not wait for ever.
        client().fault(c"hipMemcpyAsync:9=lost");
        assert_eq!(runtime.batch_cancel(batch), Ok(()));
    }
    std::thread::sleep(Duration::from_millis(30));
    std::process::exit(3);
}
