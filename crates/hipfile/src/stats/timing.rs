//! How long requests take. Of those that a thread does many of and that are small, one in [`EACH`] stands for all.

use std::cell::Cell;
use std::time::Instant;

use fastpath_gpu::Direction;

use super::{Path, SIZES};

/// Requests of these sizes take less than a hundred times what looking at the clock costs.
const SMALL: usize = 6;

/// So many are all timed, so that the times of a program that does few are exact.
const FIRST: u8 = 64;

/// After that, one of so many is.
const EACH: u8 = 32;

thread_local! {
    /// How many requests of a way, direction and size this thread did; then how many since the last that was timed, above [`FIRST`].
    static DONE: [Cell<u8>; 2 * 2 * SMALL] = const { [const { Cell::new(0) }; 2 * 2 * SMALL] };
}

/// When a request began, and how many it stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin(Option<(Instant, u8)>);

impl Begin {
    pub(crate) const NOT_TIMED: Self = Self(None);

    /// `size` is one of [`SIZES`].
    pub(crate) fn timed(path: Path, direction: Direction, size: usize) -> Self {
        debug_assert!(size < SIZES);
        let index = (path as usize * 2 + direction as usize) * SMALL + size;
        let stands_for = match DONE.with(|done| done.get(index).filter(|_| size < SMALL).map(next))
        {
            None => 1,
            Some(0) => return Self::NOT_TIMED,
            Some(stands_for) => stands_for,
        };
        Self(Some((Instant::now(), stands_for)))
    }

    /// How long all that it stands for took by now; `None` if another one stands for it.
    #[allow(clippy::cast_possible_truncation, reason = "584 years")]
    pub(crate) fn micros(self) -> Option<u64> {
        let (begin, stands_for) = self.0?;
        Some((begin.elapsed().as_nanos() as u64 * u64::from(stands_for) + 500) / 1000)
    }
}

/// How many the next request stands for.
fn next(done: &Cell<u8>) -> u8 {
    let count = done.get() + 1;
    if count <= FIRST {
        done.set(count);
        1
    } else if count == FIRST + EACH {
        done.set(FIRST);
        EACH
    } else {
        done.set(count);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_stood_for_once() {
        let done = Cell::new(0);
        let stand: Vec<u8> = (0..usize::from(FIRST + 3 * EACH)).map(|_| next(&done)).collect();
        let (first, rest) = stand.split_at(FIRST.into());
        assert!(first.iter().all(|it| *it == 1));
        let each = [[0; EACH as usize - 1].as_slice(), &[EACH]].concat();
        assert_eq!(rest, [each.clone(), each.clone(), each].concat());
    }

    #[test]
    fn large_requests_are_all_timed() {
        for _ in 0..1000 {
            let begin = Begin::timed(Path::Fallback, Direction::Read, SMALL);
            assert!(matches!(begin.0, Some((_, 1))));
        }
    }
}
