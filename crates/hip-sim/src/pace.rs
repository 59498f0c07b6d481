//! How long a simulated transfer takes.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock;

/// Speed of a link; zeros mean as fast as the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// 10^9 bytes per second.
    pub(crate) gigabytes_per_second: f64,
    pub(crate) latency: Duration,
}

/// One direction of a link: transfers share its bandwidth, one after the other.
#[derive(Debug)]
pub(crate) struct Link(Mutex<Instant>);

impl Link {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// Does `work` and returns when a transfer of that many bytes would have ended.
    pub(crate) fn transfer<R>(&self, pace: Pace, bytes: u64, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        #[expect(clippy::cast_precision_loss, reason = "a duration")]
        let seconds = if pace.gigabytes_per_second > 0.0 {
            bytes as f64 / (pace.gigabytes_per_second * 1e9)
        } else {
            0.0
        };
        let busy = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let end = if busy.is_zero() {
            begin.checked_add(pace.latency)
        } else {
            let mut free = lock(&self.0);
            let last = (*free).max(begin).checked_add(busy);
            *free = last.unwrap_or(*free);
            last.and_then(|last| last.checked_add(pace.latency))
        };
        let result = work();
        if let Some(end) = end {
            sleep_until(end);
        }
        result
    }
}

/// Sleeps, and spins for the last stretch that a sleep would miss.
fn sleep_until(end: Instant) {
    const SPIN: Duration = Duration::from_micros(120);
    if let Some(rest) =
        end.checked_duration_since(Instant::now()).and_then(|rest| rest.checked_sub(SPIN))
    {
        std::thread::sleep(rest);
    }
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}
