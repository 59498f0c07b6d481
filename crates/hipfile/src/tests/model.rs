//! Random sequences of operations, with faults, against a plain vector as the file.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use fastpath_gpu::{Direction, Transfer};
use proptest::prelude::*;

use super::fixture::{Fixture, MIB, pattern};
use crate::raw::{Entry, Late, Status};

const ROOM: usize = 3 * MIB;

/// How an operation is made.
#[derive(Clone, Copy, Debug)]
enum Call {
    Sync,
    Stream,
    Batch,
}

#[derive(Clone, Debug)]
struct Step {
    call: Call,
    direction: Direction,
    size: usize,
    file_offset: usize,
    buffer_offset: usize,
    fault: Option<Fault>,
}

/// What goes wrong, once.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The driver answers with an errno, after how many bytes.
    Errno(i32, usize),
    /// It moves no more than so many bytes, and says so.
    Short(usize),
    /// A copy between host and GPU fails, the how many-th.
    Copy(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let near = |unit: usize, most: usize| (0..most / unit).prop_map(move |count| count * unit);
    let offset = prop_oneof![3 => near(4096, MIB), 1 => near(512, MIB), 1 => 0..MIB];
    let size = prop_oneof![2 => near(4096, 2 * MIB), 1 => near(512, MIB), 1 => 0..70_000_usize, 1 => 0..2 * MIB];
    let buffer = prop_oneof![3 => near(4096, MIB), 1 => 0..MIB];
    let errno = prop_oneof![Just(19), Just(121), Just(22), Just(95), Just(25), Just(5), Just(12)];
    let after = || prop_oneof![Just(0), near(4096, MIB)];
    let fault = prop_oneof![
        3 => (errno, after()).prop_map(|(errno, after)| Fault::Errno(errno, after)),
        1 => after().prop_map(Fault::Short),
        1 => (1..4_usize).prop_map(Fault::Copy),
    ];
    let fault = proptest::option::weighted(0.4, fault);
    let call = prop_oneof![Just(Call::Sync), Just(Call::Stream), Just(Call::Batch)];
    let direction = prop_oneof![Just(Direction::Read), Just(Direction::Write)];
    (call, direction, size, offset, buffer, fault).prop_map(
        |(call, direction, size, file_offset, buffer_offset, fault)| Step {
            call,
            direction,
            size,
            file_offset,
            buffer_offset,
            fault,
        },
    )
}

/// Bytes, -1 for an error of the system, else the negative code.
fn run(fixture: &Fixture, step: &Step, handle: u64, buffer: usize) -> isize {
    let told = |result: Result<usize, crate::Error>| {
        result.map_or_else(|error| error.result(), |bytes| bytes as isize)
    };
    let (file_offset, buffer_offset) = (step.file_offset as i64, step.buffer_offset as i64);
    match (step.call, step.direction) {
        (Call::Sync, Direction::Read) => {
            told(fixture.read(handle, buffer, step.size, file_offset, buffer_offset))
        }
        (Call::Sync, Direction::Write) => {
            told(fixture.write(handle, buffer, step.size, file_offset, buffer_offset))
        }
        (Call::Stream, direction) => {
            let stream = fixture.mock.client_stream(0);
            let mut result = 77;
            let late = Late {
                size: &raw const step.size,
                file_offset: &raw const file_offset,
                buffer_offset: &raw const buffer_offset,
                result: &raw mut result,
            };
            // SAFETY: the stream is finished before the places go.
            unsafe { fixture.runtime.submit(direction, handle, buffer, late, stream) }.unwrap();
            fixture.mock.finish(stream);
            // SAFETY: a place of this test's.
            unsafe { (&raw const result).read_volatile() }
        }
        (Call::Batch, direction) => {
            let batch = fixture.runtime.batch_set_up(1).unwrap();
            let entry = Entry {
                mode: 1,
                opcode: direction as i32,
                file: handle,
                buffer,
                buffer_offset,
                file_offset,
                size: step.size,
                cookie: 7,
            };
            // SAFETY: the memory is the mock's.
            unsafe { fixture.runtime.batch_submit(batch, &[entry]) }.unwrap();
            let event = fixture.runtime.batch_status(batch, 1, 1, None).unwrap()[0];
            fixture.runtime.batch_destroy(batch);
            let status = if event.result < 0 { Status::Failed } else { Status::Complete };
            assert_eq!((event.status, event.cookie), (status, 7));
            if (-4095..0).contains(&event.result) { -1 } else { event.result }
        }
    }
}

/// The same sequence on one backend and one kind of descriptor.
fn check(steps: &[Step], environment: &[(&str, &str)], flags: i32) {
    let fixture = Fixture::with(environment, |_, _| {});
    let mut file = pattern(MIB + 777, 1);
    let mut memory = pattern(ROOM, 2);
    let (_file, handle) = fixture.file("a", flags, &file);
    let buffer = fixture.buffer(ROOM);
    fixture.mock.poke(buffer, &memory);
    let fault = Arc::new(Mutex::new(None));
    let next = Arc::clone(&fault);
    *fixture.mock.script.lock().unwrap() = Some(Box::new(move |length| {
        let mut next = next.lock().unwrap();
        let answer = match (*next)? {
            Fault::Errno(25, _) => Transfer { error: 999, status: -25, copied: 1 << 40, errno: 25 },
            Fault::Errno(errno, after) => {
                let copied = (after as u64).min(length);
                Transfer { error: 999, status: -errno, copied, errno: 0 }
            }
            Fault::Short(after) => {
                Transfer { error: 0, status: 0, copied: (after as u64).min(length), errno: 0 }
            }
            Fault::Copy(_) => return None,
        };
        *next = None;
        Some(answer)
    }));
    let copies = || fixture.mock.copies.load(Ordering::Relaxed);
    for (number, step) in steps.iter().enumerate() {
        let what = format!("step {number} of {environment:?} {flags:o}: {step:?}");
        *fault.lock().unwrap() = step.fault;
        let fails = if let Some(Fault::Copy(count)) = step.fault { copies() + count } else { 0 };
        fixture.mock.fail_copy.store(fails, Ordering::Relaxed);
        let found = run(&fixture, step, handle, buffer);
        // A request may not have come to what would have gone wrong.
        let met = match step.fault {
            Some(Fault::Copy(_)) => copies() >= fails,
            Some(_) => fault.lock().unwrap().is_none(),
            None => false,
        };
        let (from, to, size) = (step.file_offset, step.buffer_offset, step.size);
        let all = match step.direction {
            Direction::Read => size.min(file.len().saturating_sub(from)),
            Direction::Write => size,
        };
        let mut expected = all as isize;
        match step.fault.filter(|_| met) {
            // The fallback finishes what the driver refuses, unless it may have begun without enough memory.
            Some(Fault::Errno(5, after)) if after.min(all) == 0 => expected = -1,
            Some(Fault::Errno(5 | 12, after)) if after.min(all) > 0 => {
                expected = after.min(all) as isize;
            }
            Some(Fault::Short(after)) => expected = after.min(all) as isize,
            Some(Fault::Copy(_)) => {
                assert!(found == -5011 || (1..all as isize).contains(&found), "{found} of {what}");
                expected = found;
            }
            Some(Fault::Errno(..)) | None => {}
        }
        assert_eq!(found, expected, "{what}");
        let moved = usize::try_from(found).unwrap_or(0);
        match step.direction {
            Direction::Read => {
                let bytes = &file[from.min(file.len())..][..all];
                if let Some(Fault::Copy(_)) = step.fault {
                    // What was under way when another copy failed may have arrived.
                    let now = fixture.mock.peek(buffer + to + moved, all - moved);
                    for (at, now) in now.into_iter().enumerate().map(|(at, now)| (moved + at, now))
                    {
                        assert!(now == bytes[at] || now == memory[to + at], "byte {at} of {what}");
                        memory[to + at] = now;
                    }
                }
                memory[to..to + moved].copy_from_slice(&bytes[..moved]);
            }
            Direction::Write if moved > 0 => {
                file.resize(file.len().max(from + moved), 0);
                file[from..from + moved].copy_from_slice(&memory[to..to + moved]);
            }
            Direction::Write => {}
        }
        assert!(fixture.mock.peek(buffer, ROOM) == memory, "memory after {what}");
    }
    assert!(fixture.content("a") == file, "the file after {steps:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_on_any_way_is_as_on_a_plain_file(steps in proptest::collection::vec(step(), 1..12)) {
        check(&steps, &[], 0);
        check(&steps, &[], libc::O_DIRECT);
        check(&steps, &[("HIPFILE_FORCE_COMPAT_MODE", "on")], 0);
        check(&steps, &[("HIPFILE_FORCE_COMPAT_MODE", "on")], libc::O_DIRECT);
    }
}
