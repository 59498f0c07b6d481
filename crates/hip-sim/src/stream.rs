//! Streams and events: work in order, asynchronous to whoever asks for it.
//!
//! Every piece of work has a number in its stream, its ticket. A worker thread, started with the first asynchronous work,
//! takes the pieces in order; a synchronous call takes a ticket too and does its work itself when its turn comes. What a
//! piece waits for in other streams are tickets given before its own, so no circle can form.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::memory::Place;
use crate::runtime::Device;
use crate::{lock, say};

/// Set when the process ends: nothing waits any longer.
static ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The stream and ticket this worker is at.
    static CURRENT: Cell<Option<(usize, u64)>> = const { Cell::new(None) };
}

/// A function of the client's.
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// What a stream does.
pub(crate) enum Task {
    /// Anything of the simulator's own, skipped on a lost device.
    Run(Box<dyn FnOnce() + Send>),
    /// A client's function with its argument.
    Host(HostFunction, usize),
    /// Until the condition holds.
    Until(Box<dyn Fn() -> bool + Send>),
    /// Nothing, and that fails.
    Fail(Error),
    /// Nothing: a point that is reached when what it waits for is.
    Nothing,
    /// A moment.
    Mark(Arc<Mark>),
}

struct Work {
    ticket: u64,
    after: Vec<Point>,
    task: Task,
}

/// A place in a stream: reached when that much of it is done.
#[derive(Clone)]
pub(crate) struct Point {
    stream: Arc<Stream>,
    ticket: u64,
}

#[derive(Default)]
struct State {
    submitted: u64,
    completed: u64,
    queue: VecDeque<Work>,
    worker: bool,
    closing: bool,
    failed: Option<Error>,
}

/// How a stream stands to the others of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The NULL stream: it and every blocking stream wait for each other.
    Null,
    Blocking,
    NonBlocking,
}

/// A stream.
pub(crate) struct Stream {
    pub(crate) id: usize,
    pub(crate) device: Arc<Device>,
    pub(crate) order: Order,
    state: Mutex<State>,
    /// For the worker: there is work whose turn it is, or an end. Its own, so that no call wakes an idle worker.
    due: Condvar,
    /// For everyone else: work was completed, or the worker has ended.
    changed: Condvar,
}

impl Stream {
    pub(crate) fn new(id: usize, device: Arc<Device>, order: Order) -> Self {
        Self {
            id,
            device,
            order,
            state: Mutex::default(),
            due: Condvar::new(),
            changed: Condvar::new(),
        }
    }

    /// All that was asked of it so far.
    pub(crate) fn tail(self: &Arc<Self>) -> Point {
        Point { stream: Arc::clone(self), ticket: lock(&self.state).submitted }
    }

    /// Adds work that starts when `after` is reached.
    pub(crate) fn submit(self: &Arc<Self>, after: Vec<Point>, task: Task) -> Result<Point> {
        let mut state = lock(&self.state);
        if !state.worker {
            let stream = Arc::clone(self);
            let thread = std::thread::Builder::new().name("hip-sim stream".to_owned());
            thread.spawn(move || stream.work()).map_err(|_| Error::OUT_OF_MEMORY)?;
            state.worker = true;
        }
        state.submitted += 1;
        let ticket = state.submitted;
        state.queue.push_back(Work { ticket, after, task });
        self.due.notify_one();
        Ok(Point { stream: Arc::clone(self), ticket })
    }

    /// Does work in the calling thread, in its turn.
    pub(crate) fn inline(self: &Arc<Self>, after: &[Point], work: impl FnOnce()) -> Result {
        check_own(after.iter().map(|point| point.stream.id).chain([self.id]))?;
        let ticket = {
            let mut state = lock(&self.state);
            state.submitted += 1;
            state.submitted
        };
        wait_all(after)?;
        self.wait(ticket - 1)?;
        if self.device.alive().is_ok() {
            work();
        }
        self.complete(ticket, None);
        self.device.alive()
    }

    fn complete(&self, ticket: u64, failed: Option<Error>) {
        let mut state = lock(&self.state);
        state.completed = ticket;
        state.failed = state.failed.or(failed);
        if !state.queue.is_empty() {
            self.due.notify_one();
        }
        self.changed.notify_all();
    }

    /// Waits for a ticket; `DEINITIALIZED` if the process ends before.
    fn wait(&self, ticket: u64) -> Result {
        let mut state = lock(&self.state);
        while state.completed < ticket {
            going_on()?;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// What a worker thread does, until the stream is destroyed or the process ends.
    fn work(self: Arc<Self>) {
        block_signals();
        while let Some(work) = self.next() {
            CURRENT.set(Some((self.id, work.ticket)));
            let failed = wait_all(&work.after).and_then(|()| self.run(work.task)).err();
            CURRENT.set(None);
            // What the process ended before is never done: nobody may believe that it was.
            if failed != Some(Error::DEINITIALIZED) {
                self.complete(work.ticket, failed);
            }
        }
    }

    /// The next work when its turn has come; `None` ends the worker, and work that comes later starts another.
    fn next(&self) -> Option<Work> {
        let mut state = lock(&self.state);
        loop {
            if going_on().is_err() || (state.closing && state.queue.is_empty()) {
                state.worker = false;
                self.changed.notify_all();
                return None;
            }
            let turn = state.completed + 1;
            if state.queue.front().is_some_and(|work| work.ticket == turn) {
                return state.queue.pop_front();
            }
            state = self.due.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self, task: Task) -> Result {
        if let Task::Mark(mark) = task {
            mark.reached();
            return Ok(());
        }
        going_on()?;
        self.device.alive()?;
        match task {
            Task::Run(work) => work(),
            // SAFETY: whoever called hipLaunchHostFunc promised that the function takes this argument.
            Task::Host(function, data) => unsafe {
                function(std::ptr::with_exposed_provenance_mut(data));
            },
            Task::Until(holds) => self.until(&*holds)?,
            Task::Fail(error) => return Err(error),
            Task::Mark(_) | Task::Nothing => {}
        }
        self.device.alive()
    }

    /// Polls: at first as often as it can, then every 20 microseconds.
    fn until(&self, holds: &dyn Fn() -> bool) -> Result {
        let mut tries = 0_u32;
        while !holds() {
            going_on()?;
            self.device.alive()?;
            tries = tries.saturating_add(1);
            if tries < 1000 {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(Duration::from_micros(20));
            }
        }
        Ok(())
    }

    /// Waits for all that was asked of it, then lets its worker go.
    pub(crate) fn close(self: &Arc<Self>) {
        let own = CURRENT.get().is_some_and(|(id, _)| id == self.id);
        let mut state = lock(&self.state);
        state.closing = true;
        self.due.notify_one();
        // In a function of its own the stream cannot wait for itself; the worker ends when that has returned.
        while !own && (state.worker || state.completed < state.submitted) && going_on().is_ok() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the error of work that failed since the last time.
    pub(crate) fn take_failure(&self) -> Result {
        self.device.alive()?;
        lock(&self.state).failed.take().map_or(Ok(()), Err)
    }

    /// At the end of the process: whether the worker has stopped, waiting for it no longer than to `deadline`.
    fn stop(&self, deadline: Instant) {
        let mut state = lock(&self.state);
        self.due.notify_one();
        self.changed.notify_all();
        while state.worker {
            let Some(rest) = deadline.checked_duration_since(Instant::now()) else { return };
            let waited = self.changed.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Point {
    fn wait(&self) -> Result {
        self.stream.wait(self.ticket)
    }

    pub(crate) fn is_reached(&self) -> bool {
        lock(&self.stream.state).completed >= self.ticket
    }
}

/// Waits until every point is reached.
pub(crate) fn wait_for(points: &[Point]) -> Result {
    check_own(points.iter().map(|point| point.stream.id))?;
    wait_all(points)
}

fn wait_all(points: &[Point]) -> Result {
    points.iter().try_for_each(Point::wait)
}

/// Whether the process is not ending.
fn going_on() -> Result {
    if ENDING.load(Ordering::Acquire) { Err(Error::DEINITIALIZED) } else { Ok(()) }
}

/// Waits until every point is reached, and says what failed.
pub(crate) fn synchronize(points: &[Point]) -> Result {
    wait_for(points)?;
    points.iter().map(|point| point.stream.take_failure()).fold(Ok(()), Result::and)
}

/// In a function that a stream runs, waiting for that stream would wait for ever: an error and a line instead.
fn check_own(mut waits_for: impl Iterator<Item = usize>) -> Result {
    match CURRENT.get() {
        Some((own, _)) if waits_for.any(|id| id == own) => {
            say(format_args!(
                "a host function waits for the stream that runs it; a GPU would hang here"
            ));
            Err(Error::NOT_SUPPORTED)
        }
        _ => Ok(()),
    }
}

/// A client's signal handlers are not for a thread it does not know.
fn block_signals() {
    // SAFETY: an all-zero set is a valid one to fill, and only this thread's mask changes.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// Ends all waiting, and waits a second at most for work that is under way.
pub(crate) fn end(streams: &[Arc<Stream>]) {
    ENDING.store(true, Ordering::Release);
    let deadline = Instant::now() + Duration::from_secs(1);
    for stream in streams {
        stream.stop(deadline);
    }
}

/// The moment when a stream reached a recorded event.
pub(crate) struct Mark(Mutex<Option<Instant>>);

impl Mark {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn reached(&self) {
        *lock(&self.0) = Some(Instant::now());
    }

    pub(crate) fn moment(&self) -> Option<Instant> {
        *lock(&self.0)
    }
}

/// An event, with what it was last recorded as.
pub(crate) struct Event {
    pub(crate) timing: bool,
    pub(crate) recorded: Mutex<Option<(Point, Arc<Mark>)>>,
}

/// A copy as a stream's task.
pub(crate) fn copy(
    device: &Arc<Device>,
    to: Place,
    from: Place,
    length: usize,
) -> Box<dyn FnOnce() + Send> {
    let device = Arc::clone(device);
    Box::new(move || device.copy(&to, &from, length))
}
