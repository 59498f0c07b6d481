//! Random sequences of operations, with faults, against a plain vector as the file.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// What the driver refuses with, after how many bytes.
    fault: Option<(i32, usize)>,
}

fn step() -> impl Strategy<Value = Step> {
    let near = |unit: usize, most: usize| (0..most / unit).prop_map(move |count| count * unit);
    let offset = prop_oneof![3 => near(4096, MIB), 1 => near(512, MIB), 1 => 0..MIB];
    let size = prop_oneof![2 => near(4096, 2 * MIB), 1 => near(512, MIB), 1 => 0..70_000_usize, 1 => 0..2 * MIB];
    let buffer = prop_oneof![3 => near(4096, MIB), 1 => 0..MIB];
    let errno = prop_oneof![Just(19), Just(121), Just(22), Just(95), Just(25)];
    let fault = proptest::option::weighted(0.3, (errno, prop_oneof![Just(0), near(4096, MIB)]));
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

fn run(fixture: &Fixture, step: &Step, handle: u64, buffer: usize) -> isize {
    let (file_offset, buffer_offset) = (step.file_offset as i64, step.buffer_offset as i64);
    match (step.call, step.direction) {
        (Call::Sync, Direction::Read) => {
            fixture.read(handle, buffer, step.size, file_offset, buffer_offset).unwrap() as isize
        }
        (Call::Sync, Direction::Write) => {
            fixture.write(handle, buffer, step.size, file_offset, buffer_offset).unwrap() as isize
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
            assert_eq!((event.status, event.cookie), (Status::Complete, 7));
            event.result
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
        let (errno, after): (i32, usize) = next.lock().unwrap().take()?;
        let copied = if errno == 25 { 1 << 40 } else { (after as u64).min(length) };
        let errno_left = if errno == 25 { 25 } else { 0 };
        Some(Transfer { error: 999, status: -errno, copied, errno: errno_left })
    }));
    let seen = AtomicUsize::new(0);
    for step in steps {
        *fault.lock().unwrap() = step.fault;
        let (from, to, size) = (step.file_offset, step.buffer_offset, step.size);
        let expected = match step.direction {
            Direction::Read => {
                let count = size.min(file.len().saturating_sub(from));
                memory[to..to + count].copy_from_slice(&file[from.min(file.len())..][..count]);
                count
            }
            Direction::Write => {
                if size > 0 {
                    file.resize(file.len().max(from + size), 0);
                    file[from..from + size].copy_from_slice(&memory[to..to + size]);
                }
                size
            }
        };
        let what =
            format!("step {} of {environment:?} {flags:o}: {step:?}", seen.load(Ordering::Relaxed));
        assert_eq!(run(&fixture, step, handle, buffer), expected as isize, "{what}");
        assert!(fixture.mock.peek(buffer, ROOM) == memory, "memory after {what}");
        seen.fetch_add(1, Ordering::Relaxed);
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
