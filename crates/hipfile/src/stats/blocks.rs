//! The counters themselves: a block for each thread, so that counting is an addition that waits for no other processor.
//!
//! A page with the version, 2, how many reasons, counters and blocks there are, and the words of a block; then the blocks. Each
//! has its owner's thread id, which ways of which GPUs it used (a bit each), registered files, registered buffers and refused requests,
//! the requests for each [`Reason`], each [`Counter`], and the ways as the layout of `ais-stats` has them. What was counted is the sum of
//! all blocks: a thread that ends leaves its block to the next one. The first block is everybody's, for threads that find no other.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::shared::Shared;
use super::{COUNTERS, Counter, GPUS, HEAD, MORE_HEAD, WAY, WORDS};
use crate::choose::{REASONS, Reason};
use crate::sync::{Mutex, lock};

/// Threads with a block of their own.
const OWNERS: usize = 128;

const VERSION: u64 = 2;

/// Words of a page: blocks start at one, so that no two of them share what a processor keeps.
const PAGE: usize = 512;

const OWNER: usize = 0;
const FILES: usize = 2;
const BUFFERS: usize = 3;
const REFUSED: usize = 4;
const REASON: usize = 5;
const COUNTER: usize = REASON + REASONS;
const WAYS: usize = COUNTER + COUNTERS;
const BLOCK: usize = (WAYS + GPUS * 2 * WAY).next_multiple_of(PAGE);

thread_local! {
    /// Where the blocks are that this thread used last, and its own among them.
    static MINE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

#[derive(Debug)]
pub(super) struct Blocks {
    shared: Shared,
    /// Held by who looks for a block.
    claims: Mutex<()>,
}

/// A thread's own block, or everybody's.
pub(super) struct Block<'a> {
    words: &'a [AtomicU64; BLOCK],
    is_own: bool,
}

impl Blocks {
    /// All zero, and what others look at them through.
    pub(super) fn new() -> Result<(Self, OwnedFd), Errno> {
        let (shared, reader) = Shared::new(c"HIPFILESTATS", PAGE + (1 + OWNERS) * BLOCK)?;
        let head = [VERSION, REASONS as u64, COUNTERS as u64, 1 + OWNERS as u64, BLOCK as u64];
        for (word, value) in head.into_iter().enumerate() {
            shared.set(word, value);
        }
        Ok((Self { shared, claims: Mutex::new(()) }, reader))
    }

    /// The calling thread's.
    pub(super) fn mine(&self) -> Option<Block<'_>> {
        let all = self.shared.words();
        let here = all.as_ptr().addr();
        let index = match MINE.get() {
            (place, index) if place == here => index,
            _ => {
                let index = self.claim();
                MINE.set((here, index));
                index
            }
        };
        let words = all.get(PAGE + index * BLOCK..)?.first_chunk()?;
        Some(Block { words, is_own: index > 0 })
    }

    /// A block for the calling thread: the one it had, one that nobody had, or one whose owner is gone.
    #[cold]
    fn claim(&self) -> usize {
        let _claims = lock(&self.claims);
        let me = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let owner = |index: usize| self.shared.get(PAGE + index * BLOCK + OWNER);
        // They are given away one after the other. What is behind the first that nobody had is not looked at, which takes memory.
        let given = (1..=OWNERS).find(|index| owner(*index) == 0).unwrap_or(OWNERS);
        let is_mine = |index: &usize| owner(*index) == u64::from(me);
        let is_free = |index: &usize| owner(*index) == 0 || is_gone(owner(*index));
        let found = (1..=given).find(is_mine).or_else(|| (1..=given).find(is_free));
        if let Some(index) = found {
            self.shared.set(PAGE + index * BLOCK + OWNER, u64::from(me));
        }
        found.unwrap_or(0)
    }
}

/// Whether no thread of this process has the id.
#[allow(unsafe_code)]
fn is_gone(id: u64) -> bool {
    let id = libc::c_long::try_from(id).unwrap_or(0);
    let process = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: signal 0 is none, it is only looked whether the thread is there.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, process, id, 0) };
    answer != 0 && Errno::from_io_error(&std::io::Error::last_os_error()) == Some(Errno::SRCH)
}

impl Block<'_> {
    fn add(&self, word: usize, value: u64) {
        let Some(word) = self.words.get(word) else { return };
        if self.is_own {
            // Nobody else writes here.
            word.store(word.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
        } else {
            word.fetch_add(value, Ordering::Relaxed);
        }
    }

    pub(super) fn file(&self) {
        self.add(FILES, 1);
    }

    pub(super) fn buffer(&self) {
        self.add(BUFFERS, 1);
    }

    pub(super) fn refused(&self, reason: Reason) {
        self.add(REFUSED, 1);
        self.add(REASON + reason as usize, 1);
    }

    pub(super) fn count(&self, counter: Counter, value: u64) {
        self.add(COUNTER + counter as usize, value);
    }

    /// A word of a way, as far as this block counted it.
    pub(super) fn of_way(&self, way: usize, word: usize) -> u64 {
        let word = self.words.get(WAYS + way * WAY + word);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Adds to a word of a way, which is one of `2 * GPUS`.
    pub(super) fn way(&self, way: usize, word: usize, value: u64) {
        self.add(WAYS + way * WAY + word, value);
    }

    pub(super) fn used(&self, way: usize) {
        let [_, used, ..] = self.words;
        if used.load(Ordering::Relaxed) & (1 << way) == 0 {
            used.fetch_or(1 << way, Ordering::Relaxed);
        }
    }
}

/// Where blocks can be read: this process's memory, or another's through its descriptor.
pub(super) trait Source {
    /// Words from here on; what is not there is zero.
    fn read(&self, word: usize, into: &mut [u64]);
}

impl Source for Blocks {
    fn read(&self, word: usize, into: &mut [u64]) {
        for (place, index) in into.iter_mut().zip(word..) {
            *place = self.shared.get(index);
        }
    }
}

impl Source for OwnedFd {
    fn read(&self, word: usize, into: &mut [u64]) {
        let mut bytes = vec![0; into.len() * 8];
        let got = rustix::io::pread(self, &mut bytes, word as u64 * 8).unwrap_or(0);
        let (whole, _) = bytes.get(..got).unwrap_or_default().as_chunks::<8>();
        for (place, bytes) in into.iter_mut().zip(whole) {
            *place = u64::from_ne_bytes(*bytes);
        }
    }
}

/// The words of all blocks together: those of `ais-stats` without version and level; and the version, the number of reasons, the reasons and
/// the counters. `None` if the blocks are of another layout. Reads only what was used.
pub(super) fn sum(source: &impl Source) -> Option<(Vec<u64>, Vec<u64>)> {
    let mut head = [0; 5];
    source.read(0, &mut head);
    let [version, reasons, counters, blocks, words] = head;
    let expected = [VERSION, REASONS as u64, COUNTERS as u64, BLOCK as u64];
    if [version, reasons, counters, words] != expected {
        return None;
    }
    let mut first = vec![0; WORDS];
    let mut second = vec![0; MORE_HEAD + REASONS + COUNTERS];
    for (word, value) in second.iter_mut().zip([version, reasons]) {
        *word = value;
    }
    let add = |all: &mut [u64], at: usize, values: &[u64]| {
        for (sum, value) in all.iter_mut().skip(at).zip(values) {
            *sum = sum.wrapping_add(*value);
        }
    };
    for index in 0..blocks.min(1 + OWNERS as u64) as usize {
        let base = PAGE + index * BLOCK;
        let mut front = [0; WAYS];
        source.read(base, &mut front);
        let [owner, used, files, buffers, refused, rest @ ..] = front;
        // They are given away one after the other.
        if index > 0 && owner == 0 {
            break;
        }
        add(&mut first, 2, &[files, buffers, refused]);
        add(&mut second, MORE_HEAD, &rest);
        for way in (0..GPUS * 2).filter(|way| used & (1 << way) != 0) {
            let mut words = [0; WAY];
            source.read(base + WAYS + way * WAY, &mut words);
            let at = HEAD + way * WAY;
            add(&mut first, at, &words);
            if let Some(in_use) = first.get_mut(at) {
                *in_use = 1;
            }
        }
    }
    Some((first, second))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::sync::Barrier;

    use proptest::prelude::*;

    use super::super::Snapshot;
    use super::*;

    /// More threads than blocks, all at once and then all again: nothing that they counted is lost.
    #[test]
    fn threads_that_find_no_block_of_their_own_count_all_the_same() {
        let (blocks, reader) = Blocks::new().unwrap();
        for _ in 0..2 {
            let barrier = Barrier::new(OWNERS + 22);
            std::thread::scope(|scope| {
                for _ in 0..OWNERS + 22 {
                    scope.spawn(|| {
                        blocks.mine().unwrap().count(Counter::BatchSubmits, 1);
                        barrier.wait();
                        for _ in 0..1000 {
                            let mine = blocks.mine().unwrap();
                            mine.way(3, 1, 2);
                            mine.used(3);
                            mine.refused(Reason::Forced);
                        }
                    });
                }
            });
        }
        let (first, second) = sum(&blocks).unwrap();
        let all = 2 * (OWNERS as u64 + 22);
        assert_eq!(first[HEAD + 3 * WAY..][..2], [1, 2000 * all]);
        assert_eq!(first[4], 1000 * all);
        assert_eq!(second[MORE_HEAD + Reason::Forced as usize], 1000 * all);
        assert_eq!(second[MORE_HEAD + REASONS + Counter::BatchSubmits as usize], all);
        assert_eq!(sum(&reader).unwrap(), (first, second));
    }

    #[test]
    fn a_thread_that_ended_leaves_its_block_to_the_next() {
        let (blocks, _reader) = Blocks::new().unwrap();
        for _ in 0..3 * OWNERS {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mine = blocks.mine().unwrap();
                    assert!(mine.is_own);
                    mine.file();
                });
            });
        }
        assert_eq!(sum(&blocks).unwrap().0[2], 3 * OWNERS as u64);
    }

    /// Shared memory comes into being where it is looked at.
    #[test]
    fn a_thread_takes_memory_for_its_own_block_only() {
        let (blocks, reader) = Blocks::new().unwrap();
        blocks.mine().unwrap().file();
        let pages = rustix::fs::fstat(&reader).unwrap().st_blocks / 8;
        assert!(pages <= 4, "{pages} pages");
    }

    #[test]
    fn blocks_of_another_version_are_not_summed() {
        let (blocks, _reader) = Blocks::new().unwrap();
        blocks.shared.set(0, 3);
        assert_eq!(sum(&blocks), None);
    }

    /// Words that count how often they are read, with nothing behind them.
    struct Words {
        words: Vec<u64>,
        reads: Cell<usize>,
    }

    impl Source for Words {
        fn read(&self, word: usize, into: &mut [u64]) {
            self.reads.set(self.reads.get() + 1);
            for (place, value) in into.iter_mut().zip(self.words.iter().skip(word)) {
                *place = *value;
            }
        }
    }

    /// A descriptor that holds bytes.
    fn piece(bytes: &[u8]) -> OwnedFd {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let fd = rustix::fs::memfd_create(c"piece", flags).unwrap();
        rustix::io::pwrite(&fd, bytes, 0).unwrap();
        fd
    }

    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            Just(1),
            Just(VERSION),
            Just(u64::MAX),
            Just(1 << 63),
            (0_u32..64).prop_map(|bit| 1 << bit),
            any::<u64>(),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Another process writes what it likes: how many blocks it says it has, and how much there is, cost nothing.
        #[test]
        fn whatever_another_process_wrote_is_summed_in_bounds(
            head in prop_oneof![
                3 => Just([VERSION, REASONS as u64, COUNTERS as u64, u64::MAX, BLOCK as u64]),
                1 => prop::array::uniform5(word()),
            ],
            values in prop::collection::vec(word(), 1..40),
            length in prop_oneof![0_usize..6, PAGE..PAGE + 4 * BLOCK, Just(PAGE + (OWNERS + 9) * BLOCK)],
            cut in 0_usize..8,
            level in word(),
        ) {
            let filled = head.into_iter().chain(values.iter().copied().cycle());
            let words: Vec<u64> = filled.take(length).collect();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let short = &bytes[..bytes.len().saturating_sub(cut)];
            let whole = short.len() / 8;
            let source = Words { words: words[..whole].to_vec(), reads: Cell::new(0) };
            let sums = sum(&source);
            prop_assert!(source.reads.get() <= 1 + (1 + OWNERS) * (1 + 2 * GPUS));
            prop_assert_eq!(&sum(&piece(short)), &sums, "through a descriptor");
            let is_known = whole >= head.len()
                && [0, 1, 2, 4].map(|index| head[index])
                    == [VERSION, REASONS as u64, COUNTERS as u64, BLOCK as u64];
            prop_assert_eq!(sums.is_some(), is_known);
            if let Some((first, second)) = sums {
                prop_assert_eq!((first.len(), second.len()), (WORDS, MORE_HEAD + REASONS + COUNTERS));
            }
            // What is shown of it; of a piece of another layout too.
            let snapshots = [
                Snapshot::sum(level, &source),
                Some(Snapshot::parse(&source.words, &source.words)),
                Some(Snapshot::parse_old(&source.words)),
            ];
            for snapshot in snapshots.into_iter().flatten() {
                prop_assert!(snapshot.gpus.len() <= GPUS && snapshot.reasons.len() <= REASONS);
                let text = snapshot.report() + &snapshot.reasons_report();
                prop_assert!(text.len() <= 256 << 10, "{} bytes", text.len());
                prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{}", text);
            }
        }
    }
}
