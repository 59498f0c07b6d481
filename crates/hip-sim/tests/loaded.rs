//! The library as a client that loads it at run time sees it: its symbols, and many threads at once.

use std::collections::BTreeSet;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;
use std::ptr;

/// A loaded library.
struct Library(*mut c_void);

// SAFETY: the handle is only passed to dlsym, which any thread may call.
unsafe impl Sync for Library {}

impl Library {
    fn load() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = hip_sim::layout::lay_out(folder.path()).expect("a layout");
        let path = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the path is a C string; the library's initialisers are those of a C library.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{path:?}");
        Self(handle)
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).expect("no NUL");
        // SAFETY: the handle is open and the name a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }
}

/// Calls a function by name, with the argument types of its declaration in C.
macro_rules! call {
    ($library:expr, $name:ident($($value:expr => $type:ty),* $(,)?)) => {{
        let symbol = $library.symbol(stringify!($name));
        assert!(!symbol.is_null(), stringify!($name));
        // SAFETY: the types are those of the header, and the test keeps to what the function asks.
        unsafe {
            let function: unsafe extern "C" fn($($type),*) -> c_int = std::mem::transmute(symbol);
            function($($value),*)
        }
    }};
}

/// Functions that the headers declare.
fn declared() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/include/");
    let text = ["hip/hip_runtime_api.h", "hipsim.h"]
        .map(|name| std::fs::read_to_string(format!("{folder}{name}")).expect("a header"));
    let text = text.join("\n");
    let starts = ["hipError_t hip", "const char *hip", "uint64_t hip", "int hip", "void hip"];
    let names = text.lines().filter_map(|line| {
        let start = starts.iter().find(|start| line.starts_with(**start))?;
        let (name, _) = line[start.len() - 3..].split_once('(')?;
        Some(name.to_owned())
    });
    names.collect()
}

#[test]
fn what_is_declared_is_exported_and_nothing_else() {
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(hip_sim::layout::built().expect("the library"))
        .output();
    let output = output.expect("nm, which comes with every linker");
    let text = String::from_utf8(output.stdout).expect("symbols are ASCII");
    let exported: BTreeSet<_> =
        text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert_eq!(exported, declared());
    assert!(exported.len() > 60);
}

#[test]
fn every_function_of_hip_is_found_by_name() {
    let library = Library::load();
    for name in declared().iter().filter(|name| !name.starts_with("hipsim_")) {
        let text = CString::new(name.as_str()).expect("no NUL");
        let mut found: *mut c_void = ptr::null_mut();
        let mut result: c_uint = 99;
        let code = call!(library, hipGetProcAddress(
            text.as_ptr() => *const libc::c_char, &raw mut found => *mut *mut c_void, 70_200_000 => c_int, 0 => u64,
            &raw mut result => *mut c_uint,
        ));
        assert_eq!((code, result, found), (0, 0, library.symbol(name)), "{name}");
    }
}

#[test]
fn the_name_in_the_library_is_that_of_hip_7() {
    let output = Command::new("readelf")
        .arg("-d")
        .arg(hip_sim::layout::built().expect("the library"))
        .output();
    let text = String::from_utf8(output.expect("readelf, which comes with every linker").stdout)
        .expect("ASCII");
    assert!(text.contains("Library soname: [libamdhip64.so.7]"), "{text}");
    assert!(text.contains("NODELETE"), "{text}");
}

/// Eight threads, each with streams and memory of its own and the NULL stream for all: every byte arrives, nothing hangs.
#[test]
fn many_threads_at_once() {
    const SIZE: usize = 3000;
    let library = &Library::load();
    let thread = |number: u64| {
        let mut seed = number + 1;
        let mut random = move || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        let mut stream: *mut c_void = ptr::null_mut();
        for round in 0..200 {
            if stream.is_null() {
                let flags = c_uint::from(random() % 2 == 0);
                let code = call!(library, hipStreamCreateWithFlags(&raw mut stream => *mut *mut c_void, flags => c_uint));
                assert_eq!(code, 0);
            }
            let (mut device, mut pinned): (*mut c_void, *mut u8) =
                (ptr::null_mut(), ptr::null_mut());
            assert_eq!(
                call!(library, hipMalloc(&raw mut device => *mut *mut c_void, SIZE => usize)),
                0
            );
            let code = call!(library, hipHostMalloc(&raw mut pinned => *mut *mut u8, SIZE => usize, 0 => c_uint));
            assert_eq!(code, 0);
            let byte = u8::try_from(random() % 256).expect("a byte");
            // SAFETY: pinned memory of this size is the host's to use, and no copy is under way.
            let bytes = unsafe { std::slice::from_raw_parts_mut(pinned, SIZE) };
            bytes.fill(byte);
            let code = call!(library, hipMemcpyAsync(
                device => *mut c_void, pinned => *const u8, SIZE => usize, 1 => c_int, stream => *mut c_void,
            ));
            assert_eq!(code, 0);
            let mut back = vec![!byte; SIZE];
            let code = if random() % 2 == 0 {
                call!(library, hipMemcpyAsync(
                    back.as_mut_ptr() => *mut u8, device => *const c_void, SIZE => usize, 2 => c_int, stream => *mut c_void,
                ))
            } else {
                // The NULL stream waits for it only if it is blocking.
                assert_eq!(call!(library, hipStreamSynchronize(stream => *mut c_void)), 0);
                call!(library, hipMemcpy(back.as_mut_ptr() => *mut u8, device => *const c_void, SIZE => usize, 2 => c_int))
            };
            assert_eq!(code, 0);
            assert!(back.iter().all(|found| *found == byte), "thread {number} round {round}");
            assert_eq!(call!(library, hipFree(device => *mut c_void)), 0);
            assert_eq!(call!(library, hipHostFree(pinned => *mut u8)), 0);
            if random() % 10 == 0 {
                assert_eq!(call!(library, hipStreamDestroy(stream => *mut c_void)), 0);
                stream = ptr::null_mut();
            }
        }
    };
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || thread(number));
        }
    });
    let (mut free, mut total) = (0_usize, 0_usize);
    assert_eq!(
        call!(library, hipMemGetInfo(&raw mut free => *mut usize, &raw mut total => *mut usize)),
        0
    );
    assert_eq!(free, total);
}

/// A client may give the library back while a stream of its is at work.
#[test]
fn it_stays_when_it_is_closed() {
    let library = Library::load();
    let mut stream: *mut c_void = ptr::null_mut();
    assert_eq!(call!(library, hipStreamCreate(&raw mut stream => *mut *mut c_void)), 0);
    let symbol = library.symbol("hipStreamSynchronize");
    // SAFETY: the handle is open, and not used after this.
    assert_eq!(unsafe { libc::dlclose(library.0) }, 0);
    let again = Library::load();
    assert_eq!(again.symbol("hipStreamSynchronize"), symbol);
    assert_eq!(call!(again, hipStreamSynchronize(stream => *mut c_void)), 0);
}

/// A program that asks for HIP by name gets the simulation that a test has loaded.
#[test]
fn a_test_controls_what_its_clients_get() {
    let simulation = hip_sim::control::Simulation::load().expect("it loads");
    // SAFETY: the name is a C string.
    let handle =
        unsafe { libc::dlopen(c"libamdhip64.so.7".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    assert!(!handle.is_null());
    let client = Library(handle);
    let mut total = 0_usize;
    let mut ask = || call!(client, hipDeviceTotalMem(&raw mut total => *mut usize, 0 => c_int));
    let before = simulation.calls("hipDeviceTotalMem").expect("a function");
    simulation.fault("hipDeviceTotalMem:2=error:999").expect("a request");
    assert_eq!((ask(), ask(), ask()), (0, 999, 0));
    assert_eq!(simulation.calls("hipDeviceTotalMem"), Some(before + 3));
    assert_eq!(simulation.calls("hipDeviceTotalMemory"), None);
    assert!(simulation.fault("hipDeviceTotalMem").is_err());
    assert!(simulation.set_ais("none").is_err());
    assert!(simulation.lose_device(7).is_err());
}
