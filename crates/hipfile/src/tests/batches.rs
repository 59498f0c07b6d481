//! Batches.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpath_gpu::Transfer;

use super::fixture::{Fixture, MIB, pattern};
use crate::error::Error;
use crate::raw::{Entry, Event, Status};

const NOW: Option<Duration> = Some(Duration::ZERO);

fn submit(fixture: &Fixture, batch: u64, entries: &[Entry]) -> Result<(), Error> {
    // SAFETY: the memory is the mock's.
    unsafe { fixture.runtime.batch_submit(batch, entries) }
}

fn entry(file: u64, buffer: usize, number: usize) -> Entry {
    Entry {
        mode: 1,
        opcode: 0,
        file,
        buffer,
        buffer_offset: (number * 8192) as i64,
        file_offset: (number * 8192) as i64,
        size: 8192,
        cookie: number,
    }
}

#[test]
fn every_operation_is_told_once_and_frees_its_place() {
    for environment in [&[][..], &[("HIPFILE_FORCE_COMPAT_MODE", "on")][..]] {
        let fixture = Fixture::with(environment, |_, _| {});
        let bytes = pattern(128 * 8192, 1);
        let (_file, handle) = fixture.file("a", 0, &bytes);
        let buffer = fixture.buffer(128 * 8192);
        let batch = fixture.runtime.batch_set_up(128).unwrap();
        let entries: Vec<Entry> = (0..128).map(|number| entry(handle, buffer, number)).collect();
        submit(&fixture, batch, &entries).unwrap();
        let more = submit(&fixture, batch, &entries[..1]);
        assert_eq!(more, Err(Error::BatchFull { asked: 1, free: 0 }));
        let mut seen = BTreeSet::new();
        while seen.len() < 128 {
            for event in fixture.runtime.batch_status(batch, 1, 50, None).unwrap() {
                assert_eq!((event.status, event.result), (Status::Complete, 8192));
                assert!(seen.insert(event.cookie));
            }
        }
        assert!(fixture.mock.peek(buffer, bytes.len()) == bytes);
        submit(&fixture, batch, &entries).unwrap();
        fixture.runtime.batch_destroy(batch);
        let gone = fixture.runtime.batch_status(batch, 0, 1, NOW);
        assert_eq!(gone.unwrap_err().code(), 5022);
    }
}

#[test]
fn one_wrong_entry_rejects_all() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &vec![1; 65536]);
    let buffer = fixture.buffer(65536);
    let batch = fixture.runtime.batch_set_up(4).unwrap();
    let good = entry(handle, buffer, 0);
    let wrong = [
        (Entry { mode: 0, ..good }, 5022),
        (Entry { opcode: 2, ..good }, 5022),
        (Entry { file: 7, ..good }, 5027),
        (Entry { buffer: 0, ..good }, 5022),
        (Entry { buffer: 16, ..good }, 5013),
        (Entry { file_offset: -1, ..good }, 5022),
        (Entry { size: 65537, ..good }, 5022),
    ];
    for (wrong, code) in wrong {
        assert_eq!(submit(&fixture, batch, &[good, wrong]).unwrap_err().code(), code, "{wrong:?}");
    }
    assert_eq!(submit(&fixture, batch, &[]).unwrap_err().code(), 5022);
    assert_eq!(submit(&fixture, 0, &[good]).unwrap_err().code(), 5022);
    assert_eq!(submit(&fixture, batch, &[good; 5]), Err(Error::BatchFull { asked: 5, free: 4 }));
    assert_eq!(
        fixture.runtime.batch_status(batch, 1, 4, None),
        Ok(vec![]),
        "nothing is outstanding"
    );
    assert_eq!(fixture.transfers(), 0);
    for capacity in [0, 129] {
        assert_eq!(fixture.runtime.batch_set_up(capacity).unwrap_err().code(), 5022);
    }
    assert_eq!(fixture.runtime.batch_status(batch, 2, 1, None).unwrap_err().code(), 5022);
    fixture.runtime.driver_close().unwrap();
}

#[test]
fn cancelling_takes_back_what_has_not_begun_and_waits_for_the_rest() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &vec![1; 64 * 8192]);
    let buffer = fixture.buffer(64 * 8192);
    let batch = fixture.runtime.batch_set_up(128).unwrap();
    let open = Arc::new(Mutex::new(()));
    let closed = open.lock().unwrap();
    let door = Arc::clone(&open);
    let through = move |_| drop(door.lock().unwrap());
    *fixture.mock.meanwhile.lock().unwrap() = Some(Arc::new(through));
    let entries: Vec<Entry> = (0..64).map(|number| entry(handle, buffer, number)).collect();
    submit(&fixture, batch, &entries).unwrap();
    assert_eq!(
        fixture.runtime.batch_status(batch, 1, 1, Some(Duration::from_millis(1))),
        Ok(vec![])
    );
    std::thread::scope(|scope| {
        let cancelling = scope.spawn(|| fixture.runtime.batch_cancel(batch));
        // What was taken back is told at once, whatever still runs.
        let first = fixture.runtime.batch_status(batch, 1, 1, None).unwrap();
        assert_eq!((first[0].status, first[0].result), (Status::Canceled, 0));
        assert!(!cancelling.is_finished());
        drop(closed);
        cancelling.join().unwrap().unwrap();
    });
    let rest = fixture.runtime.batch_status(batch, 63, 128, NOW).unwrap();
    let complete = rest.iter().filter(|event| event.status == Status::Complete).count();
    assert_eq!((rest.len(), complete), (63, fixture.transfers()));
    assert!((1..=32).contains(&complete), "{complete}");
}

#[test]
fn a_failed_operation_holds_its_errno() {
    let fixture = Fixture::new();
    *fixture.mock.script.lock().unwrap() =
        Some(Box::new(|_| Some(Transfer { error: 999, status: -5, copied: 0, errno: 0 })));
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    let batch = fixture.runtime.batch_set_up(1).unwrap();
    submit(&fixture, batch, &[entry(handle, buffer, 0)]).unwrap();
    let events = fixture.runtime.batch_status(batch, 1, 1, None).unwrap();
    assert_eq!(events, [Event { cookie: 0, status: Status::Failed, result: -5 }]);
}

/// What a kernel in the default stream of a GPU has left in these buffers once someone has waited for it.
fn fill_in_default_streams(
    fixture: &Fixture,
    buffers: &[(i32, usize)],
    bytes: &[u8],
) -> Arc<Mutex<Vec<i32>>> {
    let waited = Arc::new(Mutex::new(Vec::new()));
    let (noted, mock) = (Arc::clone(&waited), Arc::downgrade(&fixture.mock));
    let (buffers, bytes) = (buffers.to_vec(), bytes.to_vec());
    *fixture.mock.default_stream.lock().unwrap() = Some(Arc::new(move |device| {
        noted.lock().unwrap().push(device);
        for (_, buffer) in buffers.iter().filter(|(gpu, _)| *gpu == device) {
            mock.upgrade().unwrap().poke(*buffer, &bytes);
        }
    }));
    waited
}

#[test]
fn a_batch_that_may_take_the_fallback_waits_once_for_each_gpus_default_stream() {
    for environment in [&[][..], &[("HIPFILE_FORCE_COMPAT_MODE", "on")][..]] {
        let fixture = Fixture::with(environment, |_, _| {});
        // A driver that cannot reach the GPU: the operations are fit for the fastpath, and refused.
        *fixture.mock.script.lock().unwrap() =
            Some(Box::new(|_| Some(Transfer { error: 999, status: -19, copied: 0, errno: 0 })));
        let (_file, handle) = fixture.file("a", 0, &vec![0; 4 * 8192]);
        let buffers: Vec<(i32, usize)> =
            [0, 1, 0, 1].map(|gpu| (gpu, fixture.mock.allocate(65536, gpu))).to_vec();
        let new = pattern(65536, 2);
        let waited = fill_in_default_streams(&fixture, &buffers, &new);
        let batch = fixture.runtime.batch_set_up(4).unwrap();
        let entries: Vec<Entry> = buffers
            .iter()
            .enumerate()
            .map(|(number, (_, buffer))| Entry { opcode: 1, ..entry(handle, *buffer, number) })
            .collect();
        submit(&fixture, batch, &entries).unwrap();
        assert_eq!(*waited.lock().unwrap(), [0, 1], "before the call returns");
        let events = fixture.runtime.batch_status(batch, 4, 4, None).unwrap();
        assert!(events.iter().all(|event| event.result == 8192), "{events:?}");
        assert!(fixture.content("a") == new[..4 * 8192]);
        assert_eq!(waited.lock().unwrap().len(), 2);
    }
}

#[test]
fn a_batch_on_a_fastpath_that_works_waits_for_no_stream() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(65536, 1));
    let buffer = fixture.buffer(65536);
    assert_eq!(fixture.read(handle, buffer, 8192, 0, 0), Ok(8192));
    let waited = fill_in_default_streams(&fixture, &[], &[]);
    let batch = fixture.runtime.batch_set_up(2).unwrap();
    let good = entry(handle, buffer, 0);
    submit(&fixture, batch, &[good, Entry { opcode: 1, ..good }]).unwrap();
    fixture.runtime.batch_destroy(batch);
    assert!(waited.lock().unwrap().is_empty());
    // What is not aligned takes the fallback.
    let batch = fixture.runtime.batch_set_up(1).unwrap();
    submit(&fixture, batch, &[Entry { size: 100, ..good }]).unwrap();
    fixture.runtime.batch_destroy(batch);
    assert_eq!(*waited.lock().unwrap(), [0]);
}

/// Fills every worker, and leaves the operations of a second batch in the queue.
fn busy(fixture: &Fixture, gate: &Arc<Mutex<()>>, handle: u64) -> u64 {
    let gate = Arc::clone(gate);
    *fixture.mock.meanwhile.lock().unwrap() = Some(Arc::new(move |_| drop(gate.lock().unwrap())));
    let batch = fixture.runtime.batch_set_up(64).unwrap();
    let buffer = fixture.buffer(8192);
    submit(fixture, batch, &[entry(handle, buffer, 0); 64]).unwrap();
    while fixture.transfers() < 32 {
        std::thread::yield_now();
    }
    batch
}

#[test]
fn a_buffer_whose_operation_was_cancelled_can_be_taken_out() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let full = busy(&fixture, &gate, handle);
    let buffer = fixture.buffer(8192);
    let batch = fixture.runtime.batch_set_up(1).unwrap();
    submit(&fixture, batch, &[entry(handle, buffer, 0)]).unwrap();
    fixture.runtime.batch_cancel(batch).unwrap();
    assert_eq!(fixture.runtime.buffer_deregister(buffer), Ok(()));
    drop(closed);
    fixture.runtime.batch_destroy(full);
}

#[test]
fn a_buffer_can_be_taken_out_once_the_event_of_its_operation_is_told() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let batch = fixture.runtime.batch_set_up(1).unwrap();
    let address = fixture.mock.allocate(8192, 0);
    for _ in 0..2000 {
        fixture.runtime.buffer_register(address, 8192, 0).unwrap();
        submit(&fixture, batch, &[entry(handle, address, 0)]).unwrap();
        assert_eq!(fixture.runtime.batch_status(batch, 1, 1, None).unwrap().len(), 1);
        assert_eq!(fixture.runtime.buffer_deregister(address), Ok(()));
    }
}

#[test]
fn the_last_close_waits_for_batches_that_nobody_can_find_any_more() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let batch = busy(&fixture, &gate, handle);
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| while fixture.runtime.driver_close().is_ok() {});
        std::thread::sleep(Duration::from_millis(50));
        assert!(!closing.is_finished(), "operations are under way");
        drop(closed);
        closing.join().unwrap();
    });
    assert_eq!(fixture.transfers(), 32, "what had not begun never does");
    assert_eq!(fixture.runtime.batch_cancel(batch).unwrap_err().code(), 5022);
}

#[test]
fn a_panic_in_an_operation_is_its_own() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(8192, 1));
    let buffer = fixture.buffer(8192);
    *fixture.mock.meanwhile.lock().unwrap() = Some(Arc::new(|_| panic!("a panic on purpose")));
    let batch = fixture.runtime.batch_set_up(1).unwrap();
    submit(&fixture, batch, &[entry(handle, buffer, 0)]).unwrap();
    let events = fixture.runtime.batch_status(batch, 1, 1, None).unwrap();
    assert_eq!(events, [Event { cookie: 0, status: Status::Failed, result: -5030 }]);
    assert_eq!(fixture.runtime.buffer_deregister(buffer), Ok(()));
}
