//! Bytes through the fastpath and the fallback.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastpath_gpu::{Gpu, MemoryKind, Transfer};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;

use super::fixture::{Fixture, MIB, pattern};
use crate::bounce::{LARGE, SMALL, SMALL_PIECES, Taken};
use crate::choose::Reason;
use crate::error::Error;

fn compat() -> Fixture {
    Fixture::with(&[("HIPFILE_FORCE_COMPAT_MODE", "true")], |_, _| {})
}

#[test]
fn the_fastpath_moves_aligned_requests_both_ways() {
    let fixture = Fixture::new();
    let bytes = pattern(3 * MIB, 1);
    let (_file, handle) = fixture.file("a", 0, &bytes);
    let buffer = fixture.buffer(4 * MIB);
    assert_eq!(fixture.read(handle, buffer, 2 * MIB, 4096, 8192), Ok(2 * MIB));
    assert_eq!(fixture.mock.peek(buffer + 8192, 2 * MIB), bytes[4096..4096 + 2 * MIB]);
    // Short at the end of the file.
    assert_eq!(fixture.read(handle, buffer, 4 * MIB, 2 * MIB as i64, 0), Ok(MIB));
    let new = pattern(8192, 2);
    fixture.mock.poke(buffer, &new);
    assert_eq!(fixture.write(handle, buffer, 8192, 4096, 0), Ok(8192));
    assert_eq!(fixture.content("a")[4096..12288], new);
    assert_eq!(fixture.transfers(), 3);
    assert_eq!(fixture.mock.copies.load(Ordering::Relaxed), 0);
    assert_eq!(fixture.runtime.reasons(handle), Some(vec![]));
}

#[test]
fn spec_10_03_no_fallback_is_silent() {
    let fixture = Fixture::with(&[("HIPFILE_LOG", "info")], |_, _| {});
    let (_file, handle) = fixture.file("a", 0, &[1; 8192]);
    let buffer = fixture.buffer(8192);
    for _ in 0..3 {
        assert_eq!(fixture.read(handle, buffer, 100, 0, 0), Ok(100));
    }
    assert_eq!(fixture.read(handle, buffer, 4096, 1, 0), Ok(4096));
    let expected = vec![(Reason::OffsetAlignment, 1), (Reason::SizeAlignment, 3)];
    assert_eq!(fixture.runtime.reasons(handle), Some(expected));
    assert_eq!(fixture.logged("the size is not a multiple"), 1);
    assert_eq!(fixture.logged("the file offset is not a multiple"), 1);
    // Nobody is told to set what is set.
    assert_eq!(fixture.logged("HIPFILE_LOG=info"), 0);
    let name = format!("({})", fixture.dir.path().join("a").display());
    assert_eq!(fixture.logged(&name), 2);
}

#[test]
fn the_first_refusal_says_how_to_hear_of_the_others() {
    let fixture = Fixture::new();
    for name in ["a", "b\u{1b}[7m"] {
        let (_file, handle) = fixture.file(name, 0, &[1; 8192]);
        assert_eq!(fixture.read(handle, fixture.buffer(8192), 100, 0, 0), Ok(100));
    }
    assert_eq!(fixture.logged("; said once, HIPFILE_LOG=info says it of every file"), 1);
    assert_eq!(fixture.logged("is not direct"), 1);
    let fixture = Fixture::with(&[("HIPFILE_LOG", "info")], |_, _| {});
    let (_file, handle) = fixture.file("b\u{1b}[7m", 0, &[1; 8192]);
    assert_eq!(fixture.read(handle, fixture.buffer(8192), 100, 0, 0), Ok(100));
    assert_eq!(fixture.logged("/b?[7m) is not direct"), 1);
}

#[test]
fn where_the_fallback_is_not_allowed_a_refusal_is_a_failure() {
    let fixture = Fixture::with(&[("HIPFILE_ALLOW_COMPAT_MODE", "false")], |_, _| {});
    let (_file, handle) = fixture.file("a", 0, &[1; 8192]);
    let result = fixture.read(handle, fixture.buffer(8192), 100, 0, 0);
    assert!(matches!(result, Err(Error::AllRefused(Reason::SizeAlignment))), "{result:?}");
    let said = "fails: the size is not a multiple of the direct I/O alignment; the fallback is not allowed";
    assert_eq!(fixture.logged(said), 1);
    assert_eq!(fixture.logged("is not direct"), 0);
}

/// Every size around the borders of pieces and lanes, both ways, on descriptors with and without `O_DIRECT`.
#[test]
fn the_fallback_moves_any_range_both_ways() {
    move_any_range_both_ways(&compat());
}

fn move_any_range_both_ways(fixture: &Fixture) {
    let length = 5 * MIB + 777;
    let buffer = fixture.buffer(6 * MIB);
    let bytes = pattern(12 * MIB, 4);
    let guard = vec![0xAA; 6 * MIB];
    let sizes = [1, 511, 4096, 4097, SMALL - 1, SMALL, SMALL + 1];
    let sizes =
        sizes.into_iter().chain([LARGE - 1, LARGE, LARGE + 1, 2 * LARGE + 4096, 6 * MIB - 3]);
    let offsets = [(0, 0), (4096, 0), (100, 3), (4095, 1)];
    for flags in [0, libc::O_DIRECT] {
        let name = format!("a{flags}");
        let (_file, handle) = fixture.file(&name, flags, &bytes[..length]);
        let mut expected = bytes[..length].to_vec();
        for (size, (file_offset, offset)) in
            sizes.clone().flat_map(|size| offsets.map(|offset| (size, offset)))
        {
            let what = format!("{size} bytes at {file_offset}, flags {flags:o}");
            let here = size.min(expected.len() - file_offset);
            fixture.mock.poke(buffer, &guard);
            let got = fixture.read(handle, buffer, size, file_offset as i64, offset);
            assert_eq!(got, Ok(here), "{what}");
            let start = offset as usize;
            let found = fixture.mock.peek(buffer, 6 * MIB);
            assert!(found[start..start + here] == expected[file_offset..file_offset + here]);
            assert!(found[..start] == guard[..start], "{what}");
            assert!(found[start + here..] == guard[start + here..], "{what}");
            let new = &bytes[size / 2 + file_offset..][..size];
            fixture.mock.poke(buffer + start, new);
            let put = fixture.write(handle, buffer, size, file_offset as i64, offset);
            assert_eq!(put, Ok(size), "{what}");
            let end = file_offset + size;
            expected.resize(expected.len().max(end), 0);
            expected[file_offset..end].copy_from_slice(new);
            assert!(fixture.content(&name) == expected, "{what}");
        }
    }
    assert_eq!(fixture.transfers(), 0);
}

#[test]
fn spec_10_09_host_memory_is_pooled() {
    let fixture = compat();
    let (_file, handle) = fixture.file("a", 0, &pattern(9 * MIB, 1));
    let buffer = fixture.buffer(9 * MIB);
    for size in [4096, SMALL, MIB, LARGE + 1, 9 * MIB, 1, 9 * MIB] {
        assert_eq!(fixture.read(handle, buffer, size, 0, 0), Ok(size));
    }
    // Two pieces of a large lane and one of a small one.
    assert_eq!(fixture.mock.pinned.lock().unwrap().len(), 3);
}

/// Several times as many threads as there are lanes, each slow enough to hold one while the others come.
#[test]
fn many_threads_pin_little_memory() {
    let fixture = compat();
    *fixture.mock.before_copy.lock().unwrap() =
        Some(Arc::new(|()| std::thread::sleep(Duration::from_millis(2))));
    let bytes = pattern(4 * SMALL + 5000, 1);
    let (_file, handle) = fixture.file("a", 0, &bytes);
    let buffers: Vec<usize> = (0..256).map(|_| fixture.buffer(bytes.len())).collect();
    std::thread::scope(|scope| {
        for buffer in buffers {
            let (fixture, bytes) = (&fixture, &bytes);
            scope.spawn(move || {
                assert_eq!(fixture.read(handle, buffer, bytes.len(), 0, 0), Ok(bytes.len()));
                assert!(fixture.mock.peek(buffer, bytes.len()) == *bytes);
            });
        }
    });
    let most = fixture.mock.most_pinned.load(Ordering::Relaxed);
    assert!(most < 22 * MIB, "{most}");
    assert_eq!(fixture.mock.pinned.lock().unwrap().values().sum::<usize>(), most);
    fixture.runtime.driver_close().unwrap();
    assert_eq!(fixture.mock.pinned.lock().unwrap().len(), 0);
}

/// Holds small lanes so that no large one and `left` pieces are to be had.
fn hold_lanes(fixture: &Fixture, left: usize) -> Vec<Taken<'_>> {
    let lanes = &fixture.runtime.lanes;
    lanes.limit(0);
    let gpu: Arc<dyn Gpu> = Arc::clone(&fixture.mock) as Arc<dyn Gpu>;
    (left..SMALL_PIECES).map(|_| lanes.take(&gpu, 0, 1)).collect()
}

#[test]
fn one_small_piece_moves_any_range_both_ways() {
    let fixture = compat();
    let _held = hold_lanes(&fixture, 1);
    move_any_range_both_ways(&fixture);
    assert_eq!(fixture.mock.pinned.lock().unwrap().len(), 1);
}

#[test]
fn a_lane_that_is_given_back_serves_who_waits_for_one() {
    let fixture = compat();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let buffer = fixture.buffer(8192);
    let mut held = hold_lanes(&fixture, 0);
    std::thread::scope(|scope| {
        let read = scope.spawn(|| fixture.read(handle, buffer, 8192, 0, 0));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!read.is_finished(), "there is no lane");
        held.pop();
        assert_eq!(read.join().unwrap(), Ok(8192));
    });
    assert_eq!(fixture.mock.pinned.lock().unwrap().len(), 1);
}

#[test]
fn lanes_that_never_come_back_hold_up_nobody_for_ever() {
    let fixture = compat();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let buffer = fixture.buffer(8192);
    let _held = hold_lanes(&fixture, 0);
    for _ in 0..3 {
        assert_eq!(fixture.read(handle, buffer, 8192, 0, 0), Ok(8192));
    }
    assert_eq!(fixture.mock.pinned.lock().unwrap().len(), 1, "the new one is kept");
}

#[test]
fn the_lanes_of_one_gpu_serve_another_if_there_may_be_no_more() {
    let fixture = compat();
    let bytes = pattern(SMALL + 1, 1);
    let (_file, handle) = fixture.file("a", 0, &bytes);
    let near = fixture.buffer(SMALL + 1);
    let far = fixture.mock.allocate(SMALL + 1, 1);
    let held = hold_lanes(&fixture, 2);
    assert_eq!(fixture.read(handle, near, SMALL + 1, 0, 0), Ok(SMALL + 1));
    assert_eq!(fixture.read(handle, far, SMALL + 1, 0, 0), Ok(SMALL + 1));
    assert!(fixture.mock.peek(far, SMALL + 1) == bytes);
    assert_eq!(fixture.read(handle, near, SMALL + 1, 0, 0), Ok(SMALL + 1));
    assert_eq!(fixture.mock.pinned.lock().unwrap().len(), 2);
    drop(held);
}

#[test]
fn a_panic_during_a_copy_loses_no_lane() {
    let fixture = compat();
    let (_file, handle) = fixture.file("a", 0, &pattern(LARGE, 1));
    let buffer = fixture.buffer(LARGE);
    *fixture.mock.before_copy.lock().unwrap() = Some(Arc::new(|()| panic!("a panic on purpose")));
    let read = AssertUnwindSafe(|| fixture.read(handle, buffer, LARGE, 0, 0));
    assert!(catch_unwind(read).is_err());
    *fixture.mock.before_copy.lock().unwrap() = None;
    assert_eq!(fixture.read(handle, buffer, LARGE, 0, 0), Ok(LARGE));
    assert_eq!(fixture.mock.pinned.lock().unwrap().len(), 1);
}

#[test]
fn spec_10_06_the_range_is_checked_before_the_size_is_limited() {
    let fixture = compat();
    let (_file, handle) = fixture.file("a", 0, b"");
    let buffer = fixture.buffer(4096);
    let beyond = fixture.read(handle, buffer, 1 << 33, 0, 0).unwrap_err();
    assert_eq!(beyond.code(), 5022);
}

#[test]
fn spec_10_07_partial_progress_is_returned() {
    // A file that cannot grow: writing past its end fails.
    let fixture = compat();
    let memfd = rustix::fs::memfd_create("full", MemfdFlags::ALLOW_SEALING).unwrap();
    let memfd = File::from(memfd);
    memfd.set_len(5 * MIB as u64).unwrap();
    rustix::fs::fcntl_add_seals(&memfd, SealFlags::GROW).unwrap();
    let handle = fixture.runtime.handle_register(1, memfd.as_raw_fd()).unwrap();
    let buffer = fixture.buffer(8 * MIB);
    fixture.mock.poke(buffer, &pattern(8 * MIB, 1));
    for (size, offset) in [(8 * MIB, 0), (3 * MIB, 4 * MIB), (8192, 5 * MIB - 4096)] {
        let fits = 5 * MIB - offset;
        assert_eq!(
            fixture.write(handle, buffer, size, offset as i64, 0),
            Ok(fits),
            "{size} at {offset}"
        );
    }
    // And the next call says why.
    let error = fixture.write(handle, buffer, 8192, 5 * MIB as i64, 0);
    assert_eq!(error, Err(Error::System { call: "pwrite", errno: Errno::PERM }));
    let mut found = vec![0; 4096];
    memfd.read_exact_at(&mut found, 5 * MIB as u64 - 4096).unwrap();
    assert_eq!(found, pattern(8 * MIB, 1)[..4096]);
}

#[test]
fn spec_10_07_copies_that_fail_part_way_tell_what_landed() {
    let fixture = compat();
    let bytes = pattern(4 * LARGE, 1);
    let (_file, handle) = fixture.file("a", 0, &bytes);
    let buffer = fixture.buffer(4 * LARGE);
    fixture.mock.fail_copy.store(3, Ordering::Relaxed);
    let landed = fixture.read(handle, buffer, 4 * LARGE, 0, 0).unwrap();
    assert!(landed == LARGE, "{landed}");
    assert!(fixture.mock.peek(buffer, landed) == bytes[..landed]);
    // The first copy of the next call.
    fixture
        .mock
        .fail_copy
        .store(fixture.mock.copies.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    assert_eq!(fixture.read(handle, buffer, 4 * LARGE, 0, 0).unwrap_err().code(), 5011);
    // The lane is whole again.
    assert_eq!(fixture.read(handle, buffer, 4 * LARGE, 0, 0), Ok(4 * LARGE));
    assert!(fixture.mock.peek(buffer, 4 * LARGE) == bytes);
}

#[test]
fn spec_10_08_writes_reach_the_drive_once_per_call_if_the_descriptor_asks() {
    let fixture = compat();
    let buffer = fixture.buffer(3 * LARGE);
    for (flags, expected) in [(0, 0), (libc::O_DIRECT, 1), (libc::O_DSYNC, 1), (libc::O_SYNC, 1)] {
        let (_file, handle) = fixture.file(&format!("a{flags}"), flags, &[0; 4096]);
        let before = crate::fallback::SYNCS.get();
        assert_eq!(fixture.write(handle, buffer, 3 * LARGE, 0, 0), Ok(3 * LARGE));
        assert_eq!(crate::fallback::SYNCS.get() - before, expected, "{flags:o}");
    }
}

/// Answers the first calls with these errnos after so many bytes, the others as they come.
fn scripted(fixture: &Fixture, answers: &'static [(i32, u64, i32)]) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    *fixture.mock.script.lock().unwrap() = Some(Box::new(move |_| {
        let (status, copied, errno) = *answers.get(next.fetch_add(1, Ordering::Relaxed))?;
        Some(Transfer { error: 999, status, copied, errno })
    }));
}

#[test]
fn a_refused_fastpath_is_finished_by_the_fallback_from_the_first_byte_not_known() {
    for answers in [
        &[(-19, 0, 0)],
        &[(-121, 8192, 0)],
        &[(-22, 1 << 40, 0)],
        &[(-95, 4096, 0)],
        &[(-12, 0, 0)],
        &[(4096, 77, 25)],
    ] {
        let fixture = Fixture::new();
        let bytes = pattern(MIB, 9);
        let (_file, handle) = fixture.file("a", 0, &bytes);
        let buffer = fixture.buffer(MIB);
        scripted(&fixture, answers);
        assert_eq!(fixture.read(handle, buffer, MIB, 0, 0), Ok(MIB), "{answers:?}");
        assert!(fixture.mock.peek(buffer, MIB) == bytes, "{answers:?}");
        assert_eq!(fixture.runtime.reasons(handle).unwrap().len(), 1);
        let new = pattern(MIB, 10);
        fixture.mock.poke(buffer, &new);
        scripted(&fixture, answers);
        assert_eq!(fixture.write(handle, buffer, MIB, 0, 0), Ok(MIB), "{answers:?}");
        assert!(fixture.content("a") == new, "{answers:?}");
    }
}

#[test]
fn eio_and_enomem_after_progress_are_not_tried_again() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    scripted(&fixture, &[(-5, 0, 0), (-5, 4096, 0), (-12, 8192, 0)]);
    let error = fixture.read(handle, buffer, MIB, 0, 0).unwrap_err();
    assert_eq!((error.result(), error.errno()), (-1, Some(5)));
    assert_eq!(fixture.read(handle, buffer, MIB, 0, 0), Ok(4096));
    assert_eq!(fixture.read(handle, buffer, MIB, 0, 0), Ok(8192));
    assert_eq!(fixture.mock.copies.load(Ordering::Relaxed), 0);
}

#[test]
fn without_a_fallback_the_drivers_errno_is_reported() {
    let fixture = Fixture::with(&[("HIPFILE_ALLOW_COMPAT_MODE", "false")], |_, _| {});
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    scripted(&fixture, &[(-19, 0, 0)]);
    assert_eq!(fixture.read(handle, buffer, MIB, 0, 0).unwrap_err().errno(), Some(19));
    assert_eq!(
        fixture.read(handle, buffer, 1, 0, 0),
        Err(Error::AllRefused(Reason::SizeAlignment))
    );
    assert_eq!(fixture.read(handle, buffer, MIB, 0, 0), Ok(MIB));
}

#[test]
fn spec_10_10_refused_alignment_is_tried_again_and_remembered() {
    let fixture = Fixture::new();
    let (file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let stat = rustix::fs::statx(
        &file,
        c"",
        rustix::fs::AtFlags::EMPTY_PATH,
        rustix::fs::StatxFlags::DIOALIGN,
    );
    if stat.unwrap().stx_dio_offset_align > 2048 {
        eprintln!("skipped, because files here must be aligned to pages anyway");
        return;
    }
    let buffer = fixture.buffer(MIB);
    scripted(&fixture, &[(-22, 0, 0)]);
    assert_eq!(fixture.read(handle, buffer, 2048, 2048, 0), Ok(2048));
    assert_eq!(fixture.transfers(), 1);
    assert_eq!(fixture.read(handle, buffer, 2048, 2048, 0), Ok(2048));
    assert_eq!(fixture.transfers(), 1, "not asked again");
    assert_eq!(fixture.read(handle, buffer, 4096, 4096, 0), Ok(4096));
    assert_eq!(fixture.transfers(), 2, "whole pages still are");
    let expected = vec![(Reason::PageAlignment, 1), (Reason::Refused, 1)];
    assert_eq!(fixture.runtime.reasons(handle), Some(expected));
}

#[test]
fn a_driver_without_direct_storage_is_asked_once() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    scripted(&fixture, &[(4096, 77, 25)]);
    for _ in 0..3 {
        assert_eq!(fixture.read(handle, buffer, MIB, 0, 0), Ok(MIB));
    }
    assert_eq!(fixture.transfers(), 1);
    assert_eq!(fixture.runtime.reasons(handle), Some(vec![(Reason::NoDriver, 3)]));
}

#[test]
fn a_refusal_that_lasts_is_not_asked_for_for_ever() {
    let lasting = [
        (-19, Reason::Unreachable),
        (-121, Reason::RemoteIo),
        (-22, Reason::Refused),
        (-95, Reason::NotSupported),
    ];
    for (status, reason) in lasting {
        let fixture = Fixture::new();
        let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
        let buffer = fixture.buffer(MIB);
        *fixture.mock.script.lock().unwrap() =
            Some(Box::new(move |_| Some(Transfer { error: 999, status, copied: 0, errno: 0 })));
        for _ in 0..10 {
            assert_eq!(fixture.read(handle, buffer, MIB, 0, 0), Ok(MIB));
        }
        assert_eq!(fixture.transfers(), 4, "{reason:?}");
        assert_eq!(fixture.runtime.reasons(handle), Some(vec![(reason, 10)]));
    }
}

#[test]
fn a_driver_without_memory_is_asked_again() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    scripted(&fixture, &[(-12, 0, 0); 9]);
    for _ in 0..10 {
        assert_eq!(fixture.read(handle, buffer, MIB, 0, 0), Ok(MIB));
    }
    assert_eq!(fixture.transfers(), 10);
    assert_eq!(fixture.runtime.reasons(handle), Some(vec![(Reason::OutOfMemory, 9)]));
}

#[test]
fn host_memory_is_a_reason_too() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(4096, 1));
    let mut host = vec![0; 4096];
    let memory = fixture.mock.adopt(&mut host, MemoryKind::Host);
    assert_eq!(fixture.read(handle, memory, 4096, 0, 0), Ok(4096));
    assert_eq!(fixture.runtime.reasons(handle), Some(vec![(Reason::MemoryType, 1)]));
    assert_eq!(fixture.runtime.statistics().unwrap().refused, 1);
}

#[test]
fn a_virtual_function_is_named() {
    let fixture = Fixture::new();
    let device = fixture.root.path().join("sys/bus/pci/devices/0000:03:02.0");
    std::fs::create_dir_all(&device).unwrap();
    std::os::unix::fs::symlink("../0000:03:00.0", device.join("physfn")).unwrap();
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    *fixture.mock.script.lock().unwrap() =
        Some(Box::new(|_| Some(Transfer { error: 999, status: -19, copied: 0, errno: 0 })));
    for _ in 0..10 {
        assert_eq!(fixture.read(handle, buffer, MIB, 0, 0), Ok(MIB));
    }
    assert_eq!(fixture.transfers(), 4);
    assert_eq!(fixture.runtime.reasons(handle), Some(vec![(Reason::VirtualFunction, 10)]));
}

#[test]
fn appending_never_takes_the_fastpath() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", libc::O_APPEND, &[1; 4096]);
    let buffer = fixture.buffer(4096);
    assert_eq!(fixture.write(handle, buffer, 4096, 0, 0), Ok(4096));
    assert_eq!(fixture.transfers(), 0);
    assert_eq!(fixture.content("a").len(), 8192);
}

#[test]
fn spec_9_27_host_managed_and_unified_memory_need_one_system_call_and_no_copy() {
    let fixture = Fixture::new();
    let bytes = pattern(MIB, 1);
    for (flags, kind) in
        [(0, MemoryKind::Host), (libc::O_DIRECT, MemoryKind::Managed), (0, MemoryKind::Unified)]
    {
        let (_file, handle) = fixture.file(&format!("{kind:?}"), flags, &bytes);
        let mut host = vec![0; MIB];
        let address = fixture.mock.adopt(&mut host, kind);
        assert_eq!(fixture.read(handle, address, MIB - 10, 10, 3), Ok(MIB - 10));
        assert!(host[3..MIB - 7] == bytes[10..]);
        assert_eq!(fixture.write(handle, address, 5000, 0, 3), Ok(5000));
        assert!(fixture.content(&format!("{kind:?}"))[..5000] == bytes[10..5010]);
    }
    assert_eq!(fixture.transfers() + fixture.mock.copies.load(Ordering::Relaxed), 0);
}

#[test]
fn offsets_beyond_four_gib_and_two_to_the_forty_are_kept() {
    for environment in [&[][..], &[("HIPFILE_FORCE_COMPAT_MODE", "on")][..]] {
        let fixture = Fixture::with(environment, |_, _| {});
        let (_file, handle) = fixture.file("a", 0, b"");
        let buffer = fixture.buffer(8192);
        for offset in [(1_i64 << 32) + 4096, (1 << 40) + 4096] {
            let bytes = pattern(8192, offset as u64);
            fixture.mock.poke(buffer, &bytes);
            match fixture.write(handle, buffer, 8192, offset, 0) {
                Ok(written) => assert_eq!(written, 8192),
                Err(Error::System { errno: Errno::FBIG, .. }) => {
                    eprintln!("skipped, because files here cannot be so large");
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            fixture.mock.poke(buffer, &[0; 8192]);
            assert_eq!(fixture.read(handle, buffer, 8192, offset, 0), Ok(8192));
            assert!(fixture.mock.peek(buffer, 8192) == bytes);
        }
    }
}

#[test]
fn the_current_device_of_the_thread_stays() {
    use fastpath_gpu::Gpu as _;
    let fixture = compat();
    let (_file, handle) = fixture.file("a", 0, &pattern(3 * LARGE, 1));
    let other = fixture.mock.allocate(3 * LARGE, 1);
    assert_eq!(fixture.mock.device(), Ok(0));
    assert_eq!(fixture.read(handle, other, 3 * LARGE, 0, 0), Ok(3 * LARGE));
    assert_eq!(fixture.mock.device(), Ok(0));
}
