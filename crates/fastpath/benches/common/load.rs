//! What processors did, as the kernel counts it.

use std::fs;
use std::time::{Duration, Instant};

/// One tick of the counters; Linux has a hundred a second on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// A moment, to measure from.
pub(crate) struct Load {
    start: Instant,
    children: u64,
    all: u64,
}

/// What happened since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    /// Seconds that passed.
    pub(crate) wall: f64,
    /// Seconds of processor time of programs that were started here and are gone.
    pub(crate) cpu: f64,
    /// Processors that everything else used, on average.
    pub(crate) others: f64,
}

/// Numbers of a line, the first of which is number `first`.
fn numbers<const N: usize>(line: &str, first: usize) -> Option<[u64; N]> {
    let words: Vec<&str> = line.split_whitespace().skip(first).take(N).collect();
    let numbers: Option<Vec<u64>> = words.into_iter().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

impl Load {
    /// Now; `None` if the kernel does not tell.
    pub(crate) fn now() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The program's name ends with the last bracket; time of children is fields 16 and 17.
        let [user, system] = numbers(stat.rsplit_once(')')?.1, 13)?;
        let all = fs::read_to_string("/proc/stat").ok()?;
        let [normal, nice, kernel, _idle, _waiting, irq, softirq, steal] = numbers(&all, 1)?;
        Some(Self {
            start: Instant::now(),
            children: user + system,
            all: normal + nice + kernel + irq + softirq + steal,
        })
    }

    /// What happened since.
    pub(crate) fn since(&self) -> Option<Since> {
        let now = Self::now()?;
        let seconds = |ticks: u64| Some((TICK * u32::try_from(ticks).ok()?).as_secs_f64());
        let wall = (now.start - self.start).as_secs_f64();
        let cpu = seconds(now.children.saturating_sub(self.children))?;
        let others = seconds(now.all.saturating_sub(self.all))? - cpu;
        Some(Since { wall, cpu, others: others.max(0.0) / wall })
    }
}

/// The processors of this machine.
pub(crate) fn cores() -> f64 {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
