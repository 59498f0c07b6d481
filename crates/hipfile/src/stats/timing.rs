//! A request from its begin to its end, and how long it takes. Of many small ones, one in [`EACH`] is timed for all.

use std::time::Instant;

use fastpath_gpu::Direction;

use super::blocks::Block;
use super::{Path, SIZES, size_index};

/// Requests of these sizes take less than a hundred times what looking at the clock costs.
const SMALL: usize = 6;

/// So many of a thread's are all timed, so that the times of a program that does few are exact.
const FIRST: u64 = 64;

/// After that, one of so many is.
const EACH: u64 = 64;

/// Words of a table of a way: reads of each size, then writes.
const TABLE: usize = 2 * SIZES;

/// A request that has begun, if it is counted.
pub(crate) struct Begun<'a>(Option<Counted<'a>>);

struct Counted<'a> {
    mine: Block<'a>,
    way: usize,
    /// The word in the first table.
    place: usize,
    /// Since when, and how many requests it stands for; none if another one stands for it.
    timed: Option<(Instant, u64)>,
}

impl<'a> Begun<'a> {
    pub(crate) const NOT_COUNTED: Self = Self(None);

    pub(super) fn new(
        mine: Block<'a>,
        device: i32,
        path: Path,
        direction: Direction,
        asked: usize,
    ) -> Self {
        let Some(way) = super::way(device, path) else { return Self(None) };
        let size = size_index(asked);
        let place = 1 + direction as usize * SIZES + size;
        let timed = match stands_for(mine.of_way(way, place + TABLE), size) {
            0 => None,
            all => Some((Instant::now(), all)),
        };
        Self(Some(Counted { mine, way, place, timed }))
    }

    /// Counts the request and the bytes that it moved, also if it failed after them.
    #[allow(clippy::cast_possible_truncation, reason = "584 years")]
    pub(crate) fn end(self, bytes: usize, failed: bool) {
        let Some(Counted { mine, way, place, timed }) = self.0 else { return };
        let add = |table: usize, value: u64| mine.way(way, place + table * TABLE, value);
        mine.used(way);
        if bytes > 0 {
            add(0, bytes as u64);
        }
        if failed {
            add(3, 1);
            return;
        }
        add(1, 1);
        if let Some((begin, all)) = timed {
            add(2, (begin.elapsed().as_nanos() as u64 * all + 500) / 1000);
        }
    }
}

/// How many the next request stands for after so many; of none, if another one will stand for it.
fn stands_for(done: u64, size: usize) -> u64 {
    if size >= SMALL || done < FIRST {
        1
    } else if done % EACH == EACH - 1 {
        EACH
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_stood_for_once() {
        let stand: Vec<u64> = (0..FIRST + 3 * EACH).map(|done| stands_for(done, 0)).collect();
        let (first, rest) = stand.split_at(FIRST as usize);
        assert!(first.iter().all(|it| *it == 1));
        let each = [[0; EACH as usize - 1].as_slice(), &[EACH]].concat();
        assert_eq!(rest, [each.clone(), each.clone(), each].concat());
    }

    #[test]
    fn large_requests_are_all_timed() {
        assert!((0..1000).all(|done| stands_for(done, SMALL) == 1));
    }
}
