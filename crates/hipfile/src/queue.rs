//! Threads that do I/O for others: started when there is work, ended by whoever owns them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, wait, wait_at_most};
use crate::thread::{Thread, spawn};

/// Threads at most. They mostly wait for drives.
pub(crate) const MOST: usize = 32;

/// How long work that runs is waited for when everything ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// A piece of work. It is dropped without being called if everything ends before.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    running: usize,
    threads: Vec<Thread>,
    stopping: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workers")
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if state.stopping {
                return;
            }
            let Some(job) = state.jobs.pop_front() else {
                state.idle += 1;
                state = wait(&self.changed, state);
                state.idle -= 1;
                continue;
            };
            state.running += 1;
            drop(state);
            // Whoever waits for the job is told by what it drops.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(job)) {
                // Dropping it may panic again.
                std::mem::forget(payload);
            }
            state = self.lock();
            state.running -= 1;
            if state.stopping {
                self.changed.notify_all();
            }
        }
    }
}

impl Workers {
    /// Has a thread do the job, after those that came before. False, and the job is dropped, if no thread ever will.
    pub(crate) fn submit(&self, job: Job) -> bool {
        let mut state = self.shared.lock();
        if state.stopping {
            drop(state);
            return false;
        }
        state.jobs.push_back(job);
        if state.jobs.len() > state.idle && state.threads.len() < MOST {
            let shared = Arc::clone(&self.shared);
            if let Ok(thread) = spawn(c"hipfile I/O", move || shared.work()) {
                state.threads.push(thread);
            } else if state.threads.is_empty() {
                let job = state.jobs.pop_back();
                drop(state);
                drop(job);
                return false;
            }
        }
        drop(state);
        self.shared.changed.notify_one();
        true
    }

    /// Ends the threads. Jobs that wait are dropped.
    pub(crate) fn stop(&self) {
        let (jobs, threads) = {
            let mut state = self.shared.lock();
            state.stopping = true;
            (std::mem::take(&mut state.jobs), std::mem::take(&mut state.threads))
        };
        self.shared.changed.notify_all();
        drop(jobs);
        let end = Instant::now() + PATIENCE;
        let mut state = self.shared.lock();
        while state.running > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = wait_at_most(&self.shared.changed, state, left);
        }
        drop(state);
        threads.into_iter().for_each(Thread::join);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}
