//! Opening, closing, and what is registered.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fastpath_gpu::{LoadError, MemoryKind};
use rustix::io::Errno;

use super::fixture::{Fixture, mount, pattern, write};
use crate::Error;
use crate::choose::Reason;

#[test]
fn the_count_follows_explicit_and_implicit_opens() {
    let fixture = Fixture::new();
    let runtime = &fixture.runtime;
    assert_eq!(runtime.use_count(), 0);
    assert_eq!(runtime.driver_close(), Err(Error::NotOpen));
    let (_file, _) = fixture.file("a", 0, b"");
    assert_eq!(runtime.use_count(), 1);
    runtime.driver_open().unwrap();
    assert_eq!(runtime.use_count(), 2);
    runtime.driver_close().unwrap();
    assert_eq!(runtime.use_count(), 1);
    runtime.driver_close().unwrap();
    assert_eq!(runtime.use_count(), 0);
    assert_eq!(runtime.driver.registered(), (0, 0));
}

#[test]
fn sixty_four_threads_that_register_from_zero_open_once() {
    let fixture = Fixture::new();
    let addresses: Vec<usize> = (0..64).map(|_| fixture.mock.allocate(4096, 0)).collect();
    std::thread::scope(|scope| {
        for address in addresses {
            let runtime = &fixture.runtime;
            scope.spawn(move || runtime.buffer_register(address, 4096, 0).unwrap());
        }
    });
    assert_eq!(fixture.runtime.use_count(), 1);
    assert_eq!(fixture.runtime.driver.registered(), (0, 64));
}

#[test]
fn spec_10_13_a_refused_buffer_still_opens_the_driver() {
    let fixture = Fixture::new();
    assert_eq!(fixture.runtime.buffer_register(0, 1, 0).unwrap_err().code(), 5022);
    assert_eq!(fixture.runtime.use_count(), 1);
}

#[test]
fn a_refused_file_does_not_open_the_driver() {
    let fixture = Fixture::new();
    let runtime = &fixture.runtime;
    for kind in [0, 2, 3, -1, 1000] {
        assert_eq!(runtime.handle_register(kind, 0).unwrap_err().code(), 5008);
    }
    assert_eq!(runtime.handle_register(1, -1).unwrap_err().code(), 5022);
    assert_eq!(runtime.handle_register(1, 1 << 20).unwrap_err().code(), 5022);
    assert_eq!(runtime.use_count(), 0);
}

#[test]
fn forbidding_both_ways_is_an_error_at_open() {
    let fixture = Fixture::with(
        &[("HIPFILE_FORCE_COMPAT_MODE", "1"), ("HIPFILE_ALLOW_COMPAT_MODE", "0")],
        |_, _| {},
    );
    assert_eq!(fixture.runtime.driver_open(), Err(Error::NoWayAllowed));
    let file = fixture.open("a", 0);
    assert_eq!(fixture.runtime.handle_register(1, file.as_raw_fd()), Err(Error::NoWayAllowed));
    assert_eq!(fixture.runtime.buffer_register(4096, 1, 0), Err(Error::NoWayAllowed));
    assert_eq!(fixture.runtime.use_count(), 0);
}

#[test]
fn a_descriptor_is_registered_once() {
    let fixture = Fixture::new();
    let (file, first) = fixture.file("a", 0, b"");
    let again = fixture.runtime.handle_register(1, file.as_raw_fd());
    assert_eq!(again, Err(Error::FileRegistered(file.as_raw_fd())));
    // Another descriptor of the same file is another registration.
    let other = file.try_clone().unwrap();
    let second = fixture.runtime.handle_register(1, other.as_raw_fd()).unwrap();
    assert!(first != 0 && first != second);
    fixture.runtime.handle_deregister(first);
    let third = fixture.runtime.handle_register(1, file.as_raw_fd()).unwrap();
    assert!(third != first && third != second);
}

#[test]
fn spec_10_11_a_number_that_means_another_file_now_is_no_conflict() {
    let fixture = Fixture::new();
    let (old, old_handle) = fixture.file("old", 0, &[1; 4096]);
    let number = old.into_raw_fd();
    let new = fixture.open("new", 0);
    new.write_all_at(&[2; 4096], 0).unwrap();
    // The client closes the old file without a word, and the number comes to mean the new one. No other thread may get it
    // in between, so it is exchanged in one step.
    // SAFETY: the number is this test's own.
    #[allow(unsafe_code)]
    let renumbered = unsafe {
        assert_eq!(libc::dup2(new.as_raw_fd(), number), number);
        File::from_raw_fd(number)
    };
    let new_handle = fixture.runtime.handle_register(1, renumbered.as_raw_fd()).unwrap();
    let buffer = fixture.buffer(4096);
    assert_eq!(fixture.read(new_handle, buffer, 4096, 0, 0), Ok(4096));
    assert_eq!(fixture.mock.peek(buffer, 1), [2]);
    // The old handle still is the old file.
    assert_eq!(fixture.read(old_handle, buffer, 4096, 0, 0), Ok(4096));
    assert_eq!(fixture.mock.peek(buffer, 1), [1]);
    // Taking the old one out leaves the number to the new one.
    fixture.runtime.handle_deregister(old_handle);
    let again = fixture.runtime.handle_register(1, renumbered.as_raw_fd());
    assert_eq!(again, Err(Error::FileRegistered(number)));
}

#[test]
fn spec_10_12_a_file_that_is_taken_out_during_io_goes_after_it() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &[5; 8192]);
    let buffer = fixture.buffer(8192);
    let runtime = Arc::clone(&fixture.runtime);
    *fixture.mock.meanwhile.lock().unwrap() =
        Some(Arc::new(move |_| runtime.handle_deregister(handle)));
    assert_eq!(fixture.read(handle, buffer, 8192, 0, 0), Ok(8192));
    assert_eq!(fixture.transfers(), 1);
    assert_eq!(
        fixture.read(handle, buffer, 8192, 0, 0),
        Err(Error::FileNotRegistered(handle as usize))
    );
    assert_eq!(fixture.runtime.driver.registered(), (0, 1));
}

#[test]
fn a_buffer_in_use_is_not_taken_out_and_the_driver_closes_all_the_same() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &[5; 8192]);
    let buffer = fixture.buffer(8192);
    let runtime = Arc::clone(&fixture.runtime);
    *fixture.mock.meanwhile.lock().unwrap() = Some(Arc::new(move |_| {
        assert_eq!(runtime.buffer_deregister(buffer), Err(Error::BufferInUse(buffer)));
        runtime.driver_close().unwrap();
        assert_eq!(runtime.buffer_deregister(buffer), Err(Error::Closing));
    }));
    assert_eq!(fixture.read(handle, buffer, 8192, 0, 0), Ok(8192));
    assert_eq!(fixture.read(handle, buffer, 8192, 0, 0), Err(Error::TransferNotOpen));
}

#[test]
fn closed_and_unknown_are_told_in_the_order_of_the_specification() {
    let fixture = Fixture::new();
    let code = |result: Result<usize, Error>| result.unwrap_err();
    let closed = code(fixture.read(0, 0, 1, -1, -1));
    assert_eq!((closed.result(), closed.errno()), (-1, Some(22)));
    fixture.runtime.driver_open().unwrap();
    assert_eq!(code(fixture.read(0, 0, 1, -1, -1)).code(), 5027);
    let (_file, handle) = fixture.file("a", 0, &[0; 4096]);
    assert_eq!(code(fixture.read(handle, 0, 1, -1, -1)).code(), 5022);
    assert_eq!(code(fixture.read(handle, 16, 1, -1, -1)).code(), 5013);
    let buffer = fixture.buffer(4096);
    for (file, offset) in [(-1, 0), (0, -1)] {
        let negative = code(fixture.read(handle, buffer, 1, file, offset));
        assert_eq!((negative.result(), negative.errno()), (-1, Some(22)));
    }
    assert_eq!(code(fixture.read(handle, buffer, 1, 0, 4096)).code(), 5022);
    assert_eq!(code(fixture.read(handle, buffer, 4097, 0, 0)).code(), 5022);
    assert_eq!(code(fixture.read(handle, buffer, usize::MAX, 0, 1)).code(), 5022);
    assert_eq!(fixture.read(handle, buffer, 0, 0, 4095), Ok(0));
    // An interior pointer is not the registered buffer, but lies in the same allocation.
    assert_eq!(fixture.read(handle, buffer + 4000, 96, 0, 0), Ok(96));
    assert_eq!(code(fixture.read(handle, buffer + 4000, 97, 0, 0)).code(), 5022);
}

#[test]
fn buffers_are_checked_against_their_allocation() {
    let fixture = Fixture::new();
    let (runtime, mock) = (&fixture.runtime, &fixture.mock);
    let address = mock.allocate(8192, 1);
    let code = |result: Result<(), Error>| result.map_or_else(|error| error.code(), |()| 0);
    assert_eq!(code(runtime.buffer_register(address, 8193, 0)), 5014);
    assert_eq!(code(runtime.buffer_register(address, usize::MAX, 0)), 5014);
    assert_eq!(code(runtime.buffer_register(address, 8192, 0)), 0);
    assert_eq!(code(runtime.buffer_register(address, 1, 0)), 5023);
    assert_eq!(code(runtime.buffer_register(address + 1, 8191, 0)), 0);
    assert_eq!(code(runtime.buffer_register(address + 2, 0, 0)), 0);
    assert_eq!(code(runtime.buffer_register(16, 1, 0)), 5013);
    mock.attribute_error.store(1, Ordering::Relaxed);
    assert_eq!(code(runtime.buffer_register(16, 1, 0)), 5022);
    mock.attribute_error.store(700, Ordering::Relaxed);
    assert_eq!(code(runtime.buffer_register(16, 1, 0)), 5011);
    assert_eq!(code(runtime.buffer_deregister(address)), 0);
    assert_eq!(code(runtime.buffer_deregister(address)), 5024);
    assert_eq!(code(runtime.buffer_deregister(0)), 5024);
}

#[test]
fn spec_10_01_hip_errors_of_transfers_stay_with_the_thread() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &[0; 4096]);
    fixture.mock.attribute_error.store(700, Ordering::Relaxed);
    let error = fixture.read(handle, 16, 1, 0, 0).unwrap_err();
    assert_eq!((error.result(), crate::raw::last_hip_error()), (-5011, 700));
}

#[test]
fn spec_10_19_without_hip_files_register_and_io_says_what_is_missing() {
    let fixture = Fixture::with(&[], |_, options| {
        options.gpu = Box::new(|| Err(LoadError::NotFound("nothing here".to_owned())));
    });
    let (_file, handle) = fixture.file("a", 0, b"x");
    let error = fixture.read(handle, 4096, 1, 0, 0).unwrap_err();
    assert_eq!(error.to_string(), "no HIP runtime: libamdhip64.so cannot be loaded: nothing here");
    assert_eq!(error.code(), 5007);
}

fn reason(fixture: &Fixture, name: &str) -> Vec<Reason> {
    let (_file, handle) = fixture.file(name, 0, &[0; 4096]);
    let buffer = fixture.mock.allocate(4096, 0);
    assert_eq!(fixture.read(handle, buffer, 4096, 0, 0), Ok(4096));
    fixture.runtime.reasons(handle).unwrap().into_iter().map(|(reason, _)| reason).collect()
}

#[test]
fn spec_10_18_the_effective_journal_mode_counts_and_is_read_once() {
    let ext4 = |options: &str| {
        let fixture = Fixture::new();
        mount(fixture.root.path(), fixture.dir.path(), "ext4", options);
        fixture
    };
    assert_eq!(reason(&ext4("rw"), "a"), []);
    assert_eq!(reason(&ext4("rw,data=ordered"), "a"), []);
    assert_eq!(reason(&ext4("rw,data=writeback"), "a"), [Reason::JournalMode]);
    assert_eq!(reason(&ext4("rw,data=journal"), "a"), [Reason::JournalMode]);
    // What tune2fs set is in no mount table.
    let fixture = ext4("rw");
    let device =
        std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(fixture.dir.path()).unwrap());
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let link = fixture.root.path().join(format!("sys/dev/block/{major}:{minor}"));
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../../devices/pci0000:00/block/sda/sda1", link).unwrap();
    write(&fixture.root.path().join("proc/fs/ext4/sda1/options"), "rw\nbarrier\ndata=writeback\n");
    assert_eq!(reason(&fixture, "a"), [Reason::JournalMode]);
    // The table is not parsed again for the next file.
    mount(fixture.root.path(), fixture.dir.path(), "xfs", "rw");
    assert_eq!(reason(&fixture, "b"), [Reason::JournalMode]);
}

#[test]
fn other_file_systems_are_refused_unless_the_user_wants_them() {
    let fixture = Fixture::new();
    mount(fixture.root.path(), fixture.dir.path(), "btrfs", "rw");
    assert_eq!(reason(&fixture, "a"), [Reason::FileSystem]);
    let fixture = Fixture::with(&[("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "yes")], |_, _| {});
    mount(fixture.root.path(), fixture.dir.path(), "btrfs", "rw");
    assert_eq!(reason(&fixture, "a"), []);
}

#[test]
fn a_descriptor_that_only_names_a_file_is_refused() {
    let fixture = Fixture::new();
    drop(fixture.open("a", 0));
    let path = fixture.open("a", libc::O_PATH);
    let error = fixture.runtime.handle_register(1, path.as_raw_fd()).unwrap_err();
    assert_eq!(error, Error::System { call: "fcntl", errno: Errno::BADF });
}

#[test]
fn spec_9_21_the_clients_own_flags_are_never_changed() {
    let fixture = Fixture::new();
    for flags in [0, libc::O_DIRECT] {
        let (file, handle) = fixture.file("a", flags, &[1; 8192]);
        let before = rustix::fs::fcntl_getfl(&file).unwrap();
        let buffer = fixture.mock.allocate(8192, 0);
        fixture.read(handle, buffer, 8192, 0, 0).unwrap();
        fixture.read(handle, buffer, 100, 7, 0).unwrap();
        assert_eq!(rustix::fs::fcntl_getfl(&file).unwrap(), before);
        fixture.runtime.handle_deregister(handle);
    }
}

#[test]
fn host_memory_needs_no_registered_allocation() {
    let fixture = Fixture::new();
    let bytes = pattern(10_000, 3);
    let (_file, handle) = fixture.file("a", 0, &bytes);
    let mut host = vec![0; 10_000];
    let address = fixture.mock.adopt(&mut host, MemoryKind::Host);
    fixture.runtime.buffer_register(address, 10_000, 0).unwrap();
    assert_eq!(fixture.read(handle, address, 9000, 1000, 5), Ok(9000));
    assert_eq!(host[5..9005], bytes[1000..]);
}

#[test]
fn a_thousand_files_and_sixty_four_threads() {
    const THREADS: usize = 64;
    const FILES: usize = 16;
    // Each file has three descriptors: the client's and two of the library's.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let all = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, all).unwrap();
    if limit.maximum.is_some_and(|most| most < 4096) {
        eprintln!("skipped, because this user may open few files");
        return;
    }
    let fixture = Fixture::new();
    let ready = std::sync::Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (fixture, ready) = (&fixture, &ready);
            scope.spawn(move || {
                let buffer = fixture.buffer(8192);
                let file = |number: usize| {
                    let bytes = pattern(8192, (thread * FILES + number) as u64);
                    let (file, handle) = fixture.file(&format!("{thread}-{number}"), 0, &bytes);
                    (file, handle, bytes)
                };
                let files: Vec<_> = (0..FILES).map(file).collect();
                ready.wait();
                for (_file, handle, bytes) in &files {
                    for size in [8192, 8191] {
                        assert_eq!(fixture.read(*handle, buffer, size, 0, 0), Ok(size));
                        assert!(fixture.mock.peek(buffer, size) == bytes[..size]);
                    }
                }
                ready.wait();
                for (_, handle, _) in &files {
                    fixture.runtime.handle_deregister(*handle);
                }
                assert_eq!(fixture.runtime.buffer_deregister(buffer), Ok(()));
            });
        }
    });
    assert_eq!(fixture.runtime.registered(), (0, 0));
}
