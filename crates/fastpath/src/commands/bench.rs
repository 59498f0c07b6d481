//! `fastpath bench`.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fastpath_gpu::Direction;
use fastpath_report::{BenchCell, BenchReport, Measured, bench_json, bench_svg, bench_text};
use hipfile::yardstick::Yardstick;
use hipfile::{Buffer, DeviceMemory, Driver};

use super::moving;
use crate::args::{BenchArgs, BenchFormat};
use crate::{ending, output};

/// 4 KiB to 64 MiB.
const BLOCKS: [usize; 8] =
    [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
const QUICK_BLOCKS: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];

/// The file is at least this long.
const SHORTEST: usize = 16 << 20;

/// Bytes a thread moves between two looks at the clock, and the most requests it does.
const BATCH: usize = 4 << 20;
const MOST_REQUESTS: usize = 256;

/// Bytes that all rounds of one way move, and the fewest and most rounds.
const ALL: usize = 1 << 30;
const ROUNDS: std::ops::RangeInclusive<usize> = 9..=201;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Floor,
    Fallback,
    Fastpath,
    Bare,
}

/// What is measured on.
struct Bench<'a> {
    driver: &'a Driver,
    file: &'a hipfile::File,
    /// For the floor: opened as the registered one was.
    plain: &'a File,
    /// For the bare call; none if the file system has no direct I/O.
    direct: Option<File>,
    length: usize,
    quick: bool,
}

/// What one thread did of one way in one round.
#[derive(Clone, Debug)]
struct Turn {
    begin: Instant,
    end: Instant,
    requests: Vec<Duration>,
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<u8> {
    ending::prepare("nothing was measured to its end".to_owned())?;
    let driver = moving::driver(&args.runtime, &[])?;
    let simulation = moving::warn_of_simulation(&driver)?;
    let blocks: &[usize] = match (args.block.is_empty(), args.quick) {
        (false, _) => &args.block,
        (true, true) => &QUICK_BLOCKS,
        (true, false) => &BLOCKS,
    };
    let length = blocks.iter().copied().max().unwrap_or(SHORTEST).max(SHORTEST);
    let made = moving::unnamed(&args.directory)?;
    let wanted = || format!("{}: a file of {} MiB", args.directory.display(), length >> 20);
    fill(&made, length).with_context(wanted)?;
    let plain = moving::reopen(&made, args.direct)?;
    let file = driver.register(plain.try_clone()?)?;
    let direct = moving::reopen(&made, true).ok();
    let config = driver.runtime().config();
    config.allow_fallback(true);
    let bench =
        Bench { driver: &driver, file: &file, plain: &plain, direct, length, quick: args.quick };
    let no_fastpath = bench.why_not()?;

    let directions = [Direction::Read, Direction::Write];
    let phases = directions.len() * args.threads.len() * blocks.len() * 2;
    let bar = moving::Bar::new(phases as u64, false, "{bar:30} {pos}/{len} {elapsed} {msg}");
    let mut cells = Vec::new();
    for direction in directions {
        for &threads in &args.threads {
            for &block in blocks {
                let word = if direction == Direction::Read { "read" } else { "write" };
                bar.set_message(format!("{word} {} KiB, {threads} threads", block >> 10));
                // Direct requests throw pages out of the cache that others need there: not in one phase.
                config.force_fallback(true);
                let ways = [Way::Floor, Way::Fallback];
                let slow = bench.measure(direction, block, threads.into(), ways)?;
                bar.inc(1);
                let mut fast = None;
                if no_fastpath.is_none() {
                    config.force_fallback(false);
                    let ways = [Way::Bare, Way::Fastpath];
                    fast = Some(bench.measure(direction, block, threads.into(), ways)?);
                    if let Some(reason) = moving::reason(&file, true) {
                        bail!("a request left the fastpath: {}", reason.text());
                    }
                }
                bar.inc(1);
                cells.push(cell(word, block, threads.into(), slow, fast));
            }
        }
    }
    drop(bar);
    let report = BenchReport {
        schema: "fastpath.bench/1".to_owned(),
        simulation,
        directory: args.directory.display().to_string(),
        page_cache: !args.direct,
        file_bytes: length as u64,
        no_fastpath: no_fastpath.map(|reason| reason.text().to_owned()),
        cells,
    };
    output::data(&match args.format {
        BenchFormat::Text => bench_text(&report),
        BenchFormat::Json => bench_json(&report),
        BenchFormat::Svg => bench_svg(&report),
    })?;
    Ok(0)
}

/// Bytes that no file system leaves out, on the drive.
fn fill(file: &File, length: usize) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    let piece: Vec<u8> =
        (0..1_u32 << 20).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    let mut at = 0;
    while at < length {
        let part = &piece[..piece.len().min(length - at)];
        file.write_all_at(part, at as u64)?;
        at += part.len();
    }
    file.sync_all()
}

impl Bench<'_> {
    /// Why the fastpath is not taken, by one request that is let.
    fn why_not(&self) -> anyhow::Result<Option<hipfile::choose::Reason>> {
        let mut memory = DeviceMemory::allocate(self.driver, 4096)?;
        let mut buffer = Buffer::new(self.driver, &mut memory)?;
        self.file.read_at(&mut buffer, 0..4096, 0)?;
        Ok(moving::reason(self.file, false))
    }

    /// Has all threads go the two ways in turns, and gives what each way took.
    fn measure(
        &self,
        direction: Direction,
        block: usize,
        threads: usize,
        ways: [Way; 2],
    ) -> anyhow::Result<Pair> {
        let requests = (BATCH / block).clamp(1, MOST_REQUESTS);
        let rounds = ALL / (block * requests * threads);
        let rounds = if self.quick { 3 } else { rounds.clamp(*ROUNDS.start(), *ROUNDS.end()) };
        let barrier = Barrier::new(threads);
        let failed = AtomicBool::new(false);
        let errors = Mutex::new(Vec::new());
        let worker = |number: usize| {
            let fail = |error: anyhow::Error| {
                failed.store(true, Ordering::Relaxed);
                errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
            };
            let made = DeviceMemory::allocate(self.driver, block)
                .and_then(|memory| Ok((memory, Yardstick::new(self.driver, block)?)));
            let mut made = made.map_err(|error| fail(error.into())).ok();
            let mut parts = made.as_mut().and_then(|(memory, yardstick)| {
                let buffer = Buffer::new(self.driver, memory);
                Some((buffer.map_err(|error| fail(error.into())).ok()?, yardstick))
            });
            let offset =
                |request: usize| ((number * requests + request) * block % self.length) as u64;
            let mut turns = [Vec::new(), Vec::new()];
            // The first round brings pages and buffers into being, and does not count.
            for round in 0..=rounds {
                for turn in 0..2 {
                    let at = (round + turn) % 2;
                    // Every thread comes here, whatever has failed: others wait for it.
                    barrier.wait();
                    let Some((buffer, yardstick)) = parts.as_mut() else { continue };
                    if failed.load(Ordering::Relaxed) {
                        continue;
                    }
                    let mut took = Vec::with_capacity(requests);
                    let begin = Instant::now();
                    let mut last = begin;
                    for request in 0..requests {
                        let moved = self.one(
                            ways[at],
                            direction,
                            buffer,
                            yardstick,
                            block,
                            offset(request),
                        );
                        let now = Instant::now();
                        took.push(now - last);
                        last = now;
                        if let Err(error) = moved {
                            fail(error);
                            break;
                        }
                    }
                    if round > 0 {
                        turns[at].push(Turn { begin, end: last, requests: took });
                    }
                }
            }
            turns
        };
        let turns: Vec<[Vec<Turn>; 2]> = std::thread::scope(|scope| {
            let worker = &worker;
            let threads: Vec<_> =
                (0..threads).map(|number| scope.spawn(move || worker(number))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        if let Some(error) = errors.into_inner().unwrap_or_else(PoisonError::into_inner).pop() {
            return Err(error);
        }
        if turns.len() < threads {
            bail!("a thread ended early");
        }
        let bytes = block * requests * threads;
        let [first, second] = [0, 1].map(|at| Samples::new(&turns, at, bytes).measured());
        Ok(Pair { first, second, ratio: ratio(&turns) })
    }

    fn one(
        &self,
        way: Way,
        direction: Direction,
        buffer: &mut Buffer<'_>,
        yardstick: &mut Yardstick,
        size: usize,
        offset: u64,
    ) -> anyhow::Result<()> {
        let moved = match (way, direction) {
            (Way::Floor, _) => {
                yardstick.through_host(direction, self.plain.as_fd(), buffer, size, offset)?
            }
            (Way::Bare, _) => yardstick.bare(direction, self.direct_fd()?, buffer, size, offset)?,
            (_, Direction::Read) => self.file.read_at(buffer, 0..size, offset)?,
            (_, Direction::Write) => self.file.write_at(buffer, 0..size, offset)?,
        };
        if moved != size {
            bail!("at offset {offset}: expected {size} bytes, {moved} were moved");
        }
        Ok(())
    }

    fn direct_fd(&self) -> anyhow::Result<BorrowedFd<'_>> {
        Ok(self.direct.as_ref().context("the file cannot be opened with O_DIRECT")?.as_fd())
    }
}

/// Two ways that took turns.
struct Pair {
    first: Measured,
    second: Measured,
    /// Of the second to the first.
    ratio: f64,
}

/// What one way took.
struct Samples {
    /// Each request, sorted.
    requests: Vec<Duration>,
    /// From the first thread's begin to the last one's end, of each round.
    rounds: Vec<Duration>,
    bytes: usize,
}

impl Samples {
    fn new(turns: &[[Vec<Turn>; 2]], at: usize, bytes: usize) -> Self {
        let of = |thread: &'_ [Vec<Turn>; 2]| thread[at].len();
        let rounds = (0..turns.iter().map(of).min().unwrap_or(0)).filter_map(|round| {
            let threads = || turns.iter().map(|thread| &thread[at][round]);
            let begin = threads().map(|turn| turn.begin).min()?;
            let end = threads().map(|turn| turn.end).max()?;
            Some(end - begin)
        });
        let rounds = rounds.collect();
        let all = turns.iter().flat_map(|thread| &thread[at]).flat_map(|turn| &turn.requests);
        let mut requests: Vec<Duration> = all.copied().collect();
        requests.sort_unstable();
        Self { requests, rounds, bytes }
    }

    fn microseconds(&self, hundredth: usize) -> f64 {
        let at = (self.requests.len() * hundredth / 100).min(self.requests.len().saturating_sub(1));
        self.requests.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e6)
    }

    #[allow(clippy::cast_precision_loss, reason = "gibibytes per second")]
    fn measured(&self) -> Measured {
        let seconds = median(self.rounds.iter().map(Duration::as_secs_f64));
        let gibibytes = self.bytes as f64 / f64::from(1 << 30);
        Measured {
            median_us: self.microseconds(50),
            p99_us: self.microseconds(99),
            gib_per_second: if seconds > 0.0 { gibibytes / seconds } else { 0.0 },
        }
    }
}

/// The median of the second way's requests, each over the first way's of the same round, thread and place.
fn ratio(turns: &[[Vec<Turn>; 2]]) -> f64 {
    let pairs = turns.iter().flat_map(|[first, second]| first.iter().zip(second));
    let pairs = pairs.flat_map(|(first, second)| first.requests.iter().zip(&second.requests));
    median(pairs.map(|(first, second)| second.as_secs_f64() / first.as_secs_f64().max(1e-9)))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn cell(direction: &str, block: usize, threads: u32, slow: Pair, fast: Option<Pair>) -> BenchCell {
    let (bare, fastpath) = fast.map(|fast| (fast.first, fast.second)).unzip();
    let over = bare.as_ref().zip(fastpath.as_ref());
    BenchCell {
        direction: direction.to_owned(),
        block: block as u64,
        threads,
        floor: slow.first,
        fallback: slow.second,
        fallback_to_floor: slow.ratio,
        fastpath_over_bare_us: over.map(|(bare, fast)| fast.median_us - bare.median_us),
        fastpath,
        bare,
    }
}
