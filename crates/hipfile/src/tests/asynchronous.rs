//! Operations in streams.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpath_gpu::{Direction, RawStream, Transfer};

use super::fixture::{Fixture, MIB, pattern};
use super::mock::PER_THREAD;
use crate::choose::Reason;
use crate::error::Error;
use crate::raw::{FIXED_BUFFER_OFFSET, FIXED_FILE_OFFSET, FIXED_SIZE, Late};

/// The places a client keeps.
#[derive(Debug, Default)]
struct Places {
    size: usize,
    file_offset: i64,
    buffer_offset: i64,
    result: isize,
}

impl Places {
    fn new(size: usize, file_offset: i64, buffer_offset: i64) -> Self {
        Self { size, file_offset, buffer_offset, result: 77 }
    }

    fn late(&mut self) -> Late {
        Late {
            size: &raw const self.size,
            file_offset: &raw const self.file_offset,
            buffer_offset: &raw const self.buffer_offset,
            result: &raw mut self.result,
        }
    }

    fn result(&self) -> isize {
        // SAFETY: a place of this test's; another thread wrote it before the stream went on.
        unsafe { (&raw const self.result).read_volatile() }
    }
}

fn submit(
    fixture: &Fixture,
    direction: Direction,
    handle: u64,
    buffer: usize,
    places: &mut Places,
    stream: RawStream,
) -> Result<(), Error> {
    // SAFETY: every test finishes the stream before it drops its places.
    unsafe { fixture.runtime.submit(direction, handle, buffer, places.late(), stream) }
}

fn register(fixture: &Fixture, stream: RawStream, flags: u32) -> Result<(), Error> {
    // SAFETY: the mock takes any.
    unsafe { fixture.runtime.stream_register(stream, flags) }
}

/// Both ways to wait, on both backends.
fn each() -> Vec<Fixture> {
    let mut all = Vec::new();
    for environment in [&[][..], &[("HIPFILE_FORCE_COMPAT_MODE", "on")][..]] {
        for can_wait in [true, false] {
            let fixture = Fixture::with(environment, |_, _| {});
            fixture.mock.can_wait.store(can_wait, Ordering::Relaxed);
            all.push(fixture);
        }
    }
    all
}

#[test]
fn spec_10_15_operations_run_in_order_and_no_host_function_calls_hip() {
    for fixture in each() {
        let bytes = pattern(4 * MIB, 1);
        let (_file, handle) = fixture.file("a", 0, &bytes);
        let buffer = fixture.buffer(4 * MIB);
        let stream = fixture.mock.client_stream(0);
        let mut places: Vec<Places> = Vec::new();
        // Each reads what the one before it wrote.
        for step in 0..8_i64 {
            places.push(Places::new(MIB, step * 8192, 0));
            places.push(Places::new(MIB, (step + 1) * 8192, 0));
        }
        for (index, place) in places.iter_mut().enumerate() {
            let direction = if index % 2 == 0 { Direction::Read } else { Direction::Write };
            submit(&fixture, direction, handle, buffer, place, stream).unwrap();
        }
        fixture.mock.finish(stream);
        assert!(places.iter().all(|place| place.result() == MIB as isize));
        let content = fixture.content("a");
        assert!(content[8 * 8192..8 * 8192 + MIB] == bytes[..MIB]);
        assert_eq!(fixture.runtime.buffer_deregister(buffer), Ok(()));
    }
}

#[test]
fn parameters_that_are_not_fixed_are_read_when_the_stream_gets_there() {
    for fixture in each() {
        let bytes = pattern(64 << 10, 1);
        let (_file, handle) = fixture.file("a", 0, &bytes);
        let buffer = fixture.buffer(64 << 10);
        for (flags, expected) in [(0, (4096, 8192, 4096)), (7, (8192, 0, 0))] {
            let stream = fixture.mock.client_stream(0);
            register(&fixture, stream, flags).unwrap();
            fixture.mock.poke(buffer, &vec![0; 64 << 10]);
            let held = fixture.mock.hold(stream);
            let mut places = Places::new(8192, 0, 0);
            submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
            assert_eq!(places.result(), 0);
            // SAFETY: the stream is held, so nobody looks.
            unsafe {
                (&raw mut places.size).write_volatile(4096);
                (&raw mut places.file_offset).write_volatile(8192);
                (&raw mut places.buffer_offset).write_volatile(4096);
            }
            held.wait();
            fixture.mock.finish(stream);
            let (size, from, to) = expected;
            assert_eq!(places.result(), size as isize);
            let found = fixture.mock.peek(buffer, 64 << 10);
            assert!(found[to..to + size] == bytes[from..from + size]);
            assert!(found[to + size..].iter().all(|byte| *byte == 0));
        }
    }
}

#[test]
fn late_parameters_that_do_not_fit_are_5022() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &[1; 8192]);
    let buffer = fixture.buffer(8192);
    let stream = fixture.mock.client_stream(0);
    for (size, file_offset, buffer_offset) in
        [(8193, 0, 0), (4096, 0, 4097), (4096, -1, 0), (4096, 0, -1)]
    {
        let held = fixture.mock.hold(stream);
        let mut places = Places::new(8192, 0, 0);
        submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
        (places.size, places.file_offset, places.buffer_offset) =
            (size, file_offset, buffer_offset);
        held.wait();
        fixture.mock.finish(stream);
        assert_eq!(places.result(), -5022);
    }
}

#[test]
fn spec_9_02_a_refused_fastpath_fails_over_in_order() {
    for can_wait in [true, false] {
        let fixture = Fixture::new();
        fixture.mock.can_wait.store(can_wait, Ordering::Relaxed);
        *fixture.mock.script.lock().unwrap() =
            Some(Box::new(|_| Some(Transfer { error: 999, status: -19, copied: 4096, errno: 0 })));
        let bytes = pattern(MIB, 1);
        let (_file, handle) = fixture.file("a", 0, &bytes);
        let buffer = fixture.buffer(MIB);
        let stream = fixture.mock.client_stream(0);
        let mut read = Places::new(MIB, 0, 0);
        let mut write = Places::new(MIB, MIB as i64, 0);
        submit(&fixture, Direction::Read, handle, buffer, &mut read, stream).unwrap();
        submit(&fixture, Direction::Write, handle, buffer, &mut write, stream).unwrap();
        fixture.mock.finish(stream);
        assert_eq!((read.result(), write.result()), (MIB as isize, MIB as isize));
        assert!(fixture.content("a")[MIB..] == bytes);
        assert_eq!(fixture.runtime.reasons(handle), Some(vec![(Reason::Unreachable, 2)]));
    }
}

#[test]
fn submission_is_checked_as_the_specification_says() {
    let fixture = Fixture::new();
    let stream = fixture.mock.client_stream(0);
    let mut places = Places::new(4096, 0, 0);
    let closed = submit(&fixture, Direction::Read, 0, 0, &mut places, stream).unwrap_err();
    assert_eq!((closed.code(), fixture.runtime.use_count()), (5022, 1));
    let code = |result: Result<(), Error>| result.map_or_else(|error| error.code(), |()| 0);
    assert_eq!(code(submit(&fixture, Direction::Read, 1, 0, &mut places, stream)), 5022);
    assert_eq!(code(submit(&fixture, Direction::Read, 1, 16, &mut places, stream)), 5027);
    let (_file, handle) = fixture.file("a", 0, &[1; 4096]);
    let buffer = fixture.buffer(4096);
    assert_eq!(code(submit(&fixture, Direction::Read, handle, 16, &mut places, stream)), 5013);
    for (size, file_offset, buffer_offset) in [(4097, 0, 0), (1, -1, 0), (1, 0, -1), (1, 0, 4096)] {
        let mut wrong = Places::new(size, file_offset, buffer_offset);
        assert_eq!(
            code(submit(&fixture, Direction::Read, handle, buffer, &mut wrong, stream)),
            5022
        );
    }
    let other = fixture.mock.client_stream(1);
    assert_eq!(code(submit(&fixture, Direction::Read, handle, buffer, &mut places, other)), 5022);
    let mut nothing = Places::new(0, 0, 0);
    assert_eq!(code(submit(&fixture, Direction::Read, handle, buffer, &mut nothing, stream)), 0);
    assert_eq!(nothing.result(), 0);
    fixture.mock.launches_left.store(0, Ordering::Relaxed);
    let failed =
        submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap_err();
    assert_eq!((failed.code(), failed.hip()), (5011, 999));
    assert_eq!(fixture.runtime.buffer_deregister(buffer), Ok(()), "nothing is under way");
}

#[test]
fn a_stream_whose_wait_is_refused_waits_all_the_same() {
    let fixture = Fixture::new();
    fixture.mock.fail_wait.store(true, Ordering::Relaxed);
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    let stream = fixture.mock.client_stream(0);
    let mut places = Places::new(MIB, 0, 0);
    submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
    fixture.mock.finish(stream);
    assert_eq!(places.result(), MIB as isize);
}

#[test]
fn spec_10_14_stream_registrations_end_with_the_last_close() {
    let fixture = Fixture::new();
    let stream = fixture.mock.client_stream(0);
    assert_eq!(register(&fixture, stream, 0x10).unwrap_err().code(), 5022);
    register(&fixture, stream, FIXED_BUFFER_OFFSET | FIXED_FILE_OFFSET | FIXED_SIZE | 8).unwrap();
    assert_eq!(register(&fixture, stream, 0).unwrap_err().code(), 5022);
    assert_eq!(fixture.runtime.use_count(), 0);
    fixture.runtime.driver_open().unwrap();
    fixture.runtime.driver_close().unwrap();
    assert_eq!(fixture.runtime.stream_deregister(stream).unwrap_err().code(), 5022);
    register(&fixture, stream, 0).unwrap();
    assert_eq!(fixture.runtime.stream_deregister(stream), Ok(()));
}

#[test]
fn spec_10_16_streams_pin_no_memory_of_their_own() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    for _ in 0..16 {
        let stream = fixture.mock.client_stream(0);
        register(&fixture, stream, 0).unwrap();
        let mut places = Places::new(MIB, 0, 0);
        submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
        fixture.mock.finish(stream);
    }
    assert_eq!(fixture.mock.pinned.lock().unwrap().len(), 0);
}

#[test]
fn a_buffer_and_a_file_in_a_stream_are_in_use() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let buffer = fixture.buffer(8192);
    let stream = fixture.mock.client_stream(0);
    let held = fixture.mock.hold(stream);
    let mut places = Places::new(8192, 0, 0);
    submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
    assert_eq!(fixture.runtime.buffer_deregister(buffer), Err(Error::BufferInUse(buffer)));
    fixture.runtime.handle_deregister(handle);
    fixture.runtime.driver_close().unwrap();
    held.wait();
    fixture.mock.finish(stream);
    assert_eq!(places.result(), 8192);
}

#[test]
fn operations_that_wait_when_everything_ends_fail_and_let_their_stream_go() {
    for can_wait in [true, false] {
        let fixture = Fixture::new();
        fixture.mock.can_wait.store(can_wait, Ordering::Relaxed);
        let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
        let buffer = fixture.buffer(8192);
        let stream = fixture.mock.client_stream(0);
        let held = fixture.mock.hold(stream);
        let mut places = Places::new(8192, 0, 0);
        submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
        fixture.runtime.stop();
        held.wait();
        fixture.mock.finish(stream);
        assert_eq!(places.result(), -5006);
    }
}

/// Has transfers of this many bytes wait at a gate.
fn keep(fixture: &Fixture, gate: &Arc<Mutex<()>>, bytes: u64) {
    let gate = Arc::clone(gate);
    *fixture.mock.meanwhile.lock().unwrap() = Some(Arc::new(move |length| {
        if length == bytes {
            drop(gate.lock().unwrap());
        }
    }));
}

const SOON: Duration = Duration::from_millis(50);

#[test]
fn the_per_thread_streams_of_two_threads_do_not_let_each_other_go_on() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(16384, 1));
    let buffers = [fixture.buffer(8192), fixture.buffer(8192)];
    let gate = Arc::new(Mutex::new(()));
    keep(&fixture, &gate, 8192);
    let closed = gate.lock().unwrap();
    let read = |buffer, size| {
        let mut places = Places::new(size, 0, 0);
        submit(&fixture, Direction::Read, handle, buffer, &mut places, PER_THREAD).unwrap();
        fixture.mock.finish(PER_THREAD);
        places.result()
    };
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| read(buffers[0], 8192));
        while fixture.transfers() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(read(buffers[1], 4096), 4096);
        std::thread::sleep(SOON);
        assert!(!slow.is_finished(), "the stream went on before its bytes were there");
        drop(closed);
        assert_eq!(slow.join().unwrap(), 8192);
    });
}

#[test]
fn a_stream_whose_handle_was_given_again_waits_for_its_own_operation() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(16384, 1));
    let (old_buffer, new_buffer) = (fixture.buffer(8192), fixture.buffer(8192));
    let stream = fixture.mock.client_stream(0);
    let gate = Arc::new(Mutex::new(()));
    keep(&fixture, &gate, 8192);
    let closed = gate.lock().unwrap();
    let mut old = Places::new(8192, 0, 0);
    submit(&fixture, Direction::Read, handle, old_buffer, &mut old, stream).unwrap();
    let passed = fixture.mock.mark(stream);
    fixture.mock.give_again(stream);
    let mut new = Places::new(4096, 0, 0);
    submit(&fixture, Direction::Read, handle, new_buffer, &mut new, stream).unwrap();
    fixture.mock.finish(stream);
    assert_eq!(new.result(), 4096);
    assert!(passed.recv_timeout(SOON).is_err(), "the old stream went on");
    drop(closed);
    passed.recv().unwrap();
    assert_eq!(old.result(), 8192);
}

#[test]
fn an_operation_that_cannot_be_waited_for_is_taken_back_before_it_runs() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let buffer = fixture.buffer(8192);
    let stream = fixture.mock.client_stream(0);
    let held = fixture.mock.hold(stream);
    fixture.mock.fail_wait.store(true, Ordering::Relaxed);
    fixture.mock.launches_left.store(1, Ordering::Relaxed);
    let mut places = Places::new(8192, 0, 0);
    let failed =
        submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap_err();
    assert_eq!((failed.code(), failed.hip()), (5011, 999));
    assert_eq!(fixture.runtime.buffer_deregister(buffer), Ok(()), "it is under way");
    held.wait();
    fixture.mock.finish(stream);
    assert_eq!((fixture.transfers(), places.result()), (0, 0));
    // Its number serves the next one, which must not find itself done.
    fixture.mock.fail_wait.store(false, Ordering::Relaxed);
    fixture.mock.launches_left.store(usize::MAX, Ordering::Relaxed);
    let buffer = fixture.buffer(8192);
    submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
    fixture.mock.finish(stream);
    assert_eq!(places.result(), 8192);
    assert_eq!(fixture.mock.signal_allocations.load(Ordering::Relaxed), 1);
}

#[test]
fn an_operation_that_cannot_be_waited_for_is_over_when_the_call_returns_if_it_runs() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let buffer = fixture.buffer(8192);
    let stream = fixture.mock.client_stream(0);
    fixture.mock.fail_wait.store(true, Ordering::Relaxed);
    fixture.mock.launches_left.store(1, Ordering::Relaxed);
    let (begun, begins) = std::sync::mpsc::channel();
    let (begins, begun) = (Mutex::new(begins), Mutex::new(begun));
    *fixture.mock.meanwhile.lock().unwrap() = Some(Arc::new(move |_| {
        begun.lock().unwrap().send(()).unwrap();
        std::thread::sleep(SOON);
    }));
    *fixture.mock.before_wait.lock().unwrap() =
        Some(Arc::new(move |()| begins.lock().unwrap().recv().unwrap()));
    let mut places = Places::new(8192, 0, 0);
    submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
    assert_eq!(places.result(), 8192);
    fixture.mock.finish(stream);
}

#[test]
fn numbers_that_streams_wait_for_are_used_again_and_freed_by_the_last_close() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let buffers = [fixture.buffer(8192), fixture.mock.allocate(8192, 1)];
    for turn in 0..100 {
        let stream = fixture.mock.client_stream(turn % 2);
        register(&fixture, stream, 0).unwrap();
        let mut places = Places::new(8192, 0, 0);
        let buffer = buffers[turn as usize % 2];
        submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
        fixture.mock.finish(stream);
        assert_eq!(places.result(), 8192);
        fixture.runtime.stream_deregister(stream).unwrap();
    }
    // One for each GPU.
    assert_eq!(fixture.mock.signal_allocations.load(Ordering::Relaxed), 2);
    assert_eq!(fixture.mock.signals.lock().unwrap().len(), 2);
    fixture.runtime.driver_close().unwrap();
    assert!(fixture.mock.signals.lock().unwrap().is_empty());
}

#[test]
fn numbers_stay_while_a_stream_has_to_wait_for_one() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let buffer = fixture.buffer(8192);
    let stream = fixture.mock.client_stream(0);
    let held = fixture.mock.hold(stream);
    let mut places = Places::new(8192, 0, 0);
    submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
    fixture.runtime.driver_close().unwrap();
    held.wait();
    fixture.mock.finish(stream);
    assert_eq!(places.result(), 8192);
    assert_eq!(fixture.mock.signals.lock().unwrap().len(), 1);
    fixture.runtime.driver_open().unwrap();
    fixture.runtime.driver_close().unwrap();
    assert!(fixture.mock.signals.lock().unwrap().is_empty());
}

#[test]
fn a_panic_in_an_operation_lets_its_stream_go_on() {
    for can_wait in [true, false] {
        let fixture = Fixture::new();
        fixture.mock.can_wait.store(can_wait, Ordering::Relaxed);
        let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
        let buffer = fixture.buffer(8192);
        let stream = fixture.mock.client_stream(0);
        *fixture.mock.meanwhile.lock().unwrap() = Some(Arc::new(|_| panic!("a panic on purpose")));
        let mut places = Places::new(8192, 0, 0);
        submit(&fixture, Direction::Read, handle, buffer, &mut places, stream).unwrap();
        let passed = fixture.mock.mark(stream).recv_timeout(Duration::from_secs(10));
        assert_eq!((passed, places.result()), (Ok(()), -5030));
        assert_eq!(fixture.runtime.buffer_deregister(buffer), Ok(()));
    }
}

#[test]
fn crooked_places_are_refused() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let buffer = fixture.buffer(8192);
    let stream = fixture.mock.client_stream(0);
    let mut places = Places::new(8192, 0, 0);
    let good = places.late();
    let crooked = |address: usize| address + 1;
    for late in [
        Late { size: good.size.map_addr(crooked), ..good },
        Late { file_offset: good.file_offset.map_addr(crooked), ..good },
        Late { buffer_offset: good.buffer_offset.map_addr(crooked), ..good },
        Late { result: good.result.map_addr(crooked), ..good },
    ] {
        // SAFETY: refused before it is used.
        let refused =
            unsafe { fixture.runtime.submit(Direction::Read, handle, buffer, late, stream) };
        assert_eq!(refused.unwrap_err().code(), 5022, "{late:?}");
    }
    assert_eq!(fixture.transfers(), 0);
}
