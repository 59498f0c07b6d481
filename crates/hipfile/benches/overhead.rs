//! What a small request costs beyond the work itself, on the simulated GPU: counting, and sharing a file with other threads.
//!
//! Two ways take turns, a batch of requests each; what counts is the median of the ratios of neighbouring batches.
#![allow(
    unsafe_code,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs
)]

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use fastpath_gpu::{Direction, Gpu, Hip};
use fastpath_host::DirTree;
use hipfile::{Options, Runtime};

const BLOCK: usize = 4096;
const REQUESTS: usize = 256;
const ROUNDS: usize = 2001;
const THREADS: usize = 8;
const ENVIRONMENT: [(&str, &str); 2] =
    [("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "on"), ("HIPFILE_LOG", "off")];

/// Something a request can be made of: a runtime, a registered file and a registered buffer of its own.
#[derive(Clone)]
struct Way {
    runtime: Arc<Runtime>,
    handle: u64,
    buffer: usize,
}

impl Way {
    fn batch(&self, direction: Direction, size: usize) -> Duration {
        let begin = Instant::now();
        for request in 0..REQUESTS {
            let at = (request * size % (1 << 20)) as i64;
            // SAFETY: GPU memory that only this thread uses.
            let moved = unsafe {
                match direction {
                    Direction::Read => self.runtime.read(self.handle, self.buffer, size, at, 0),
                    Direction::Write => self.runtime.write(self.handle, self.buffer, size, at, 0),
                }
            };
            assert_eq!(moved, Ok(size));
        }
        begin.elapsed()
    }
}

struct Bench {
    gpu: Arc<dyn Gpu>,
    empty: tempfile::TempDir,
    /// Buffered and direct.
    files: [File; 2],
}

impl Bench {
    fn runtime(&self, extra: &[(&'static str, &'static str)]) -> Arc<Runtime> {
        let find = |name: &str| {
            let all = ENVIRONMENT.iter().chain(extra);
            all.clone().find(|(key, _)| *key == name).map(|(_, value)| value.into())
        };
        let mut options = Options::with_environment(find);
        // A host that says nothing, so that the driver decides.
        options.tree = Box::new(DirTree::open(self.empty.path()).unwrap());
        options.uname = None;
        let gpu = Arc::clone(&self.gpu);
        options.gpu = Box::new(move || Ok(Arc::clone(&gpu)));
        Arc::new(Runtime::new(options))
    }

    /// Each way uses the client's own open file, which the kernel counts for all threads: it does not differ between what is compared.
    fn handle(&self, runtime: &Runtime) -> u64 {
        let file =
            self.files[usize::from(!runtime.config().forces_fallback())].try_clone().unwrap();
        // The runtime keeps a descriptor of its own.
        runtime.handle_register(1, file.as_raw_fd()).unwrap()
    }

    fn buffer(&self, runtime: &Runtime, size: usize) -> usize {
        let memory = self.gpu.allocate_device(size).unwrap().as_ptr().expose_provenance();
        runtime.buffer_register(memory, size, 0).unwrap();
        memory
    }

    fn way(&self, runtime: &Arc<Runtime>, size: usize) -> Way {
        let (handle, buffer) = (self.handle(runtime), self.buffer(runtime, size));
        Way { runtime: Arc::clone(runtime), handle, buffer }
    }

    /// Counting, beside not counting.
    fn statistics(&self, direction: Direction, size: usize, fallback: bool) -> f64 {
        let force: &[_] = if fallback { &[("HIPFILE_FORCE_COMPAT_MODE", "on")] } else { &[] };
        let level = |level| {
            let extra: Vec<_> =
                force.iter().copied().chain([("HIPFILE_STATS_LEVEL", level)]).collect();
            self.way(&self.runtime(&extra), size)
        };
        let ways = [level("0"), level("1")];
        let rounds = if size > BLOCK { ROUNDS / 10 } else { ROUNDS };
        let mut ratios: Vec<f64> = (0..rounds)
            .map(|round| {
                let first = round % 2;
                let mut took = [0.0; 2];
                for at in [first, 1 - first] {
                    took[at] = ways[at].batch(direction, size).as_secs_f64();
                }
                took[1] / took[0]
            })
            .collect();
        median(&mut ratios)
    }

    /// One file for all threads, beside a file for each.
    fn sharing(&self, direction: Direction, fallback: bool) -> f64 {
        let force: &[_] = if fallback { &[("HIPFILE_FORCE_COMPAT_MODE", "on")] } else { &[] };
        let shared = self.runtime(force);
        let handle = self.handle(&shared);
        let barrier = Barrier::new(THREADS);
        let worker = |_: usize| {
            let own_runtime = self.runtime(force);
            let ways = [self.way(&own_runtime, BLOCK), {
                let buffer = self.buffer(&shared, BLOCK);
                Way { runtime: Arc::clone(&shared), handle, buffer }
            }];
            let mut took: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
            for round in 0..ROUNDS / 10 {
                for turn in 0..2 {
                    let at = (round + turn) % 2;
                    barrier.wait();
                    took[at].push(ways[at].batch(direction, BLOCK).as_secs_f64());
                }
            }
            took
        };
        let all: Vec<[Vec<f64>; 2]> = std::thread::scope(|scope| {
            let worker = &worker;
            let threads: Vec<_> =
                (0..THREADS).map(|number| scope.spawn(move || worker(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut ratios: Vec<f64> = (0..ROUNDS / 10)
            .map(|round| {
                let sum = |at: usize| all.iter().map(|took| took[at][round]).sum::<f64>();
                sum(1) / sum(0)
            })
            .collect();
        median(&mut ratios)
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let library = hip_sim::layout::lay_out(folder.path()).unwrap();
    let gpu: Arc<dyn Gpu> = Arc::new(Hip::open(&library.display().to_string()).unwrap());
    let place = Path::new("/dev/shm");
    let made = if place.is_dir() { tempfile::tempfile_in(place) } else { tempfile::tempfile() };
    let made = made.unwrap();
    made.write_all_at(&vec![7; 2 << 20], 0).unwrap();
    let files = [0, libc::O_DIRECT].map(|flags| {
        let path = format!("/proc/self/fd/{}", made.as_raw_fd());
        File::options().read(true).write(true).custom_flags(flags).open(path).unwrap()
    });
    let bench = Bench { gpu, empty: tempfile::tempdir().unwrap(), files };
    let directions = [(Direction::Read, "read"), (Direction::Write, "write")];
    for (fallback, name) in [(true, "fallback"), (false, "fastpath")] {
        for (direction, word) in directions {
            for size in [BLOCK, 64 << 10] {
                let ratio = bench.statistics(direction, size, fallback);
                let kib = size >> 10;
                println!(
                    "statistics, {name} {word} {kib} KiB: {:+.2} % (at most 1)",
                    (ratio - 1.0) * 100.0
                );
            }
            let ratio = bench.sharing(direction, fallback);
            println!(
                "{THREADS} threads on one file, {name} {word} 4 KiB: {ratio:.3} times a file each"
            );
        }
    }
}
