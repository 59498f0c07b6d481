//! What is counted, and who may see it.

use fastpath_gpu::Transfer;

use super::fixture::{Fixture, MIB, pattern};
use crate::choose::Reason;
use crate::stats::{Counter, REGION_BYTES, Side, size_index};

#[test]
fn sizes_are_told_apart_as_ais_stats_does() {
    let cases = [
        (0, 0),
        (4095, 0),
        (4096, 1),
        (8191, 1),
        (8192, 2),
        (MIB, 9),
        (64 * MIB - 1, 14),
        (64 * MIB, 15),
        (usize::MAX, 15),
    ];
    for (bytes, index) in cases {
        assert_eq!(size_index(bytes), index, "{bytes}");
    }
    assert_eq!(REGION_BYTES, 33_576);
}

#[test]
fn spec_10_17_requests_count_for_the_gpu_of_their_buffer() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    fixture.buffer(4096);
    let other = fixture.mock.allocate(MIB, 1);
    fixture.read(handle, other, MIB, 0, 0).unwrap();
    fixture.read(handle, other, 100, 0, 0).unwrap();
    fixture.write(handle, other, 4096, 0, 0).unwrap();
    let first = std::sync::atomic::AtomicBool::new(true);
    *fixture.mock.script.lock().unwrap() = Some(Box::new(move |_| {
        let answer = Transfer { error: 999, status: -19, copied: 0, errno: 0 };
        first.swap(false, std::sync::atomic::Ordering::Relaxed).then_some(answer)
    }));
    fixture.read(handle, other, MIB, 0, 0).unwrap();
    let found = fixture.runtime.statistics().unwrap();
    assert_eq!((found.level, found.files, found.buffers, found.refused), (1, 1, 1, 2));
    assert_eq!(found.reasons, [(Reason::SizeAlignment, 1), (Reason::Unreachable, 1)]);
    assert_eq!(found.gpus.len(), 1);
    let gpu = found.gpus[0];
    assert_eq!(gpu.index, 1);
    let counted = |side: &Side| {
        let (bytes, count, _, errors) = side.totals();
        (bytes, count, errors, side.unaligned)
    };
    assert_eq!(counted(&gpu.fastpath[0]), (MIB as u64, 1, 1, 0));
    assert_eq!(counted(&gpu.fastpath[1]), (4096, 1, 0, 0));
    assert_eq!(counted(&gpu.fallback[0]), (MIB as u64 + 100, 2, 0, 1));
    assert_eq!(counted(&gpu.fallback[1]), (0, 0, 0, 0));
    assert_eq!((gpu.fallback[0].count[0], gpu.fallback[0].count[9]), (1, 1));
    assert_eq!(found.counter(Counter::StreamOperations), 0);
}

fn totals(side: &Side) -> (u64, u64, u64) {
    let (bytes, count, _, errors) = side.totals();
    (bytes, count, errors)
}

#[test]
fn bytes_that_moved_before_a_refusal_are_counted() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    *fixture.mock.script.lock().unwrap() =
        Some(Box::new(|_| Some(Transfer { error: 999, status: -121, copied: 8192, errno: 0 })));
    fixture.write(handle, buffer, MIB, 0, 0).unwrap();
    let gpu = fixture.runtime.statistics().unwrap().gpus[0];
    assert_eq!(totals(&gpu.fastpath[1]), (8192, 0, 1));
    assert_eq!(totals(&gpu.fallback[1]), (MIB as u64 - 8192, 1, 0));
}

#[test]
fn a_request_that_no_way_takes_is_an_error() {
    let fixture = Fixture::with(&[("HIPFILE_ALLOW_COMPAT_MODE", "false")], |_, _| {});
    let (_file, handle) = fixture.file("a", 0, &pattern(MIB, 1));
    let buffer = fixture.buffer(MIB);
    fixture.read(handle, buffer, 1, 0, 0).unwrap_err();
    let gpu = fixture.runtime.statistics().unwrap().gpus[0];
    assert_eq!(totals(&gpu.fastpath[0]), (0, 0, 1));
}

#[test]
fn level_zero_counts_nothing_and_says_so() {
    let fixture = Fixture::with(&[("HIPFILE_STATS_LEVEL", "0")], |_, _| {});
    fixture.buffer(4096);
    let error = fixture.runtime.statistics().unwrap_err();
    assert_eq!(
        (error.code(), error.to_string()),
        (5030, "there are no statistics: HIPFILE_STATS_LEVEL is 0".to_owned())
    );
}
