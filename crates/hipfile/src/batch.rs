//! Many operations with one call, done by worker threads in any order.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fastpath_gpu::Direction;

use crate::buffer::Buffer;
use crate::error::Error;
use crate::file::File;
use crate::runtime::Runtime;
use crate::stats::Counter;
use crate::sync::{Arc, lock};
use crate::transfer::{Request, wait_for_default_stream};

/// Operations that one batch holds at most.
pub const MOST: u32 = 128;

/// `hipFileBatch`.
const MODE: i32 = 1;

/// How an operation of a batch ended: values of `hipFileStatus_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// It was taken back before it began.
    Canceled = 0x08,
    /// Its bytes moved.
    Complete = 0x10,
    /// It failed.
    Failed = 0x40,
}

/// One operation to submit, as `hipFileIOParams_t` has it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// 1.
    pub mode: i32,
    /// 0 reads, 1 writes.
    pub opcode: i32,
    /// The file's handle.
    pub file: u64,
    /// The buffer's address.
    pub buffer: usize,
    /// Where in the buffer.
    pub buffer_offset: i64,
    /// Where in the file.
    pub file_offset: i64,
    /// Bytes.
    pub size: usize,
    /// Comes back with the result.
    pub cookie: usize,
}

/// How one operation ended, as `hipFileIOEvents_t` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The entry's.
    pub cookie: usize,
    /// How it ended.
    pub status: Status,
    /// Bytes, or a negative errno or code.
    pub result: isize,
}

#[derive(Debug)]
struct Operation {
    entry: Entry,
    direction: Direction,
    /// What it uses, until it begins or is taken back: whoever takes it tells how the operation ended.
    uses: Mutex<Option<Uses>>,
}

/// Given back before the end is told, so that whoever hears of the end can take them out.
#[derive(Debug)]
struct Uses {
    file: Arc<File>,
    buffer: Arc<Buffer>,
}

impl Operation {
    fn take(&self) -> Option<Uses> {
        lock(&self.uses).take()
    }

    fn request<'a>(&self, uses: &'a Uses) -> Result<Request<'a>, Error> {
        let Entry { size, file_offset, buffer_offset, .. } = self.entry;
        let Uses { file, buffer } = uses;
        Request::checked(self.direction, file, buffer, size, file_offset, buffer_offset)
    }
}

#[derive(Debug, Default)]
struct State {
    /// Submitted and not over.
    active: Vec<Arc<Operation>>,
    /// Over and not told.
    events: VecDeque<Event>,
    /// Nothing more is submitted.
    ended: bool,
}

impl State {
    fn outstanding(&self) -> usize {
        self.active.len() + self.events.len()
    }
}

/// A batch.
#[derive(Debug)]
pub(crate) struct Batch {
    capacity: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Batch {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn finish(&self, operation: &Arc<Operation>, status: Status, result: isize) {
        let mut state = self.lock();
        state.active.retain(|other| !Arc::ptr_eq(other, operation));
        state.events.push_back(Event { cookie: operation.entry.cookie, status, result });
        drop(state);
        self.changed.notify_all();
    }

    /// Takes back what has not begun.
    fn cancel(&self) {
        let pending = self.lock().active.clone();
        for operation in pending {
            if let Some(uses) = operation.take() {
                drop(uses);
                self.finish(&operation, Status::Canceled, 0);
            }
        }
    }

    /// Takes back what has not begun, waits for the rest, and takes no more. Holds no lock during I/O.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.cancel();
        self.settle();
    }

    /// Waits for what has begun.
    fn settle(&self) {
        let mut state = self.lock();
        while !state.active.is_empty() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for events and takes them: at least `least` unless time runs out or fewer are outstanding.
    fn take(&self, least: usize, most: usize, timeout: Option<Duration>) -> Vec<Event> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.lock();
        while state.events.len() < least.min(state.outstanding()) {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        let count = most.min(state.events.len());
        let events = state.events.drain(..count).collect();
        drop(state);
        // Who waits for more than there is left now has to look again.
        self.changed.notify_all();
        events
    }
}

/// An operation in the queue. It ends whatever happens to it.
struct Job {
    batch: Arc<Batch>,
    operation: Arc<Operation>,
}

/// An operation that was begun. Dropping it tells how it ended.
struct Begun<'a> {
    job: &'a Job,
    result: Result<usize, Error>,
}

impl Job {
    fn run(self, runtime: &Runtime) {
        let Some(uses) = self.operation.take() else { return };
        // What is said if it panics, when the uses are dropped first too.
        let mut begun = Begun { job: &self, result: Err(Error::Reported(-5030)) };
        begun.result = self.moved(runtime, uses);
    }

    fn moved(&self, runtime: &Runtime, uses: Uses) -> Result<usize, Error> {
        let result =
            self.operation.request(&uses).and_then(|request| request.run(runtime, runtime.gpu()?));
        drop(uses);
        runtime.stats.count(Counter::BatchProcessed, 1);
        if let Ok(bytes) = &result {
            let counter = match self.operation.direction {
                Direction::Read => Counter::BatchReadBytes,
                Direction::Write => Counter::BatchWriteBytes,
            };
            runtime.stats.count(counter, *bytes as u64);
        }
        result
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let Job { batch, operation } = self.job;
        match &self.result {
            Ok(bytes) => batch.finish(operation, Status::Complete, bytes.cast_signed()),
            Err(error) => batch.finish(operation, Status::Failed, error.event()),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(uses) = self.operation.take() {
            drop(uses);
            drop(Begun { job: self, result: Err(Error::ShutDown) });
        }
    }
}

impl Runtime {
    fn batch(&self, handle: u64) -> Result<Arc<Batch>, Error> {
        self.batches.get(handle).ok_or(Error::NoBatch(handle as usize))
    }

    /// `hipFileBatchIOSetUp`.
    pub fn batch_set_up(&self, capacity: u32) -> Result<u64, Error> {
        if capacity == 0 || capacity > self.parameters.batch_size() {
            let what = "a batch holds 1 to 128 operations, or what the parameter says";
            return Err(Error::Argument { what });
        }
        let handle = self.batch_handles.next();
        let batch =
            Batch { capacity: capacity as usize, state: Mutex::default(), changed: Condvar::new() };
        self.batches.insert(handle, Arc::new(batch));
        self.stats.count(Counter::BatchSetUps, 1);
        Ok(handle)
    }

    fn operation(&self, entry: &Entry) -> Result<Arc<Operation>, Error> {
        if !self.driver.is_open() {
            return Err(Error::NotOpen);
        }
        let file =
            self.driver.file(entry.file).ok_or(Error::FileNotRegistered(entry.file as usize))?;
        let direction = match (entry.mode, entry.opcode) {
            (MODE, 0) => Direction::Read,
            (MODE, 1) => Direction::Write,
            _ => {
                return Err(Error::Argument {
                    what: "the mode is not 1, or the opcode neither 0 nor 1",
                });
            }
        };
        if entry.buffer == 0 {
            return Err(Error::Argument { what: "the buffer is NULL" });
        }
        let buffer = match self.driver.buffer(entry.buffer as u64) {
            Some(buffer) => buffer,
            None => Arc::new(self.temporary(self.gpu()?.as_ref(), entry.buffer)?),
        };
        let uses = Uses { file, buffer };
        let operation = Operation { entry: *entry, direction, uses: Mutex::new(None) };
        operation.request(&uses)?;
        *lock(&operation.uses) = Some(uses);
        Ok(Arc::new(operation))
    }

    /// What [`Request::after_default_stream`] is for, before workers have the operations.
    fn wait_for_default_streams(&self, operations: &[Arc<Operation>]) -> Result<(), Error> {
        let mut waited = BTreeSet::new();
        for operation in operations {
            let uses = lock(&operation.uses);
            let Some(uses) = uses.as_ref() else { continue };
            let request = operation.request(uses)?;
            let device = uses.buffer.device;
            if !waited.contains(&device) && request.may_fall_back(self, self.gpu()?.as_ref()) {
                wait_for_default_stream(self.gpu()?.as_ref(), device)?;
                waited.insert(device);
            }
        }
        Ok(())
    }

    /// `hipFileBatchIOSubmit`: all entries, or none if one is wrong.
    ///
    /// As a synchronous call does, this one waits for the default stream of each GPU with an operation that takes the fallback,
    /// or may: no fastpath between its file and the GPU has worked yet. A fastpath waits for no stream, here and there: whoever
    /// wants it orders GPU work and I/O, as with AMD's library.
    ///
    /// # Safety
    ///
    /// Buffers that are host memory stay until their operations are over.
    #[allow(unsafe_code)]
    pub unsafe fn batch_submit(
        self: &Arc<Self>,
        handle: u64,
        entries: &[Entry],
    ) -> Result<(), Error> {
        let result = self.submit_all(handle, entries);
        match &result {
            Ok(()) => {
                self.stats.count(Counter::BatchSubmits, 1);
                self.stats.count(Counter::BatchOperations, entries.len() as u64);
            }
            Err(_) => self.stats.count(Counter::BatchSubmitErrors, 1),
        }
        result
    }

    fn submit_all(self: &Arc<Self>, handle: u64, entries: &[Entry]) -> Result<(), Error> {
        if entries.is_empty() {
            return Err(Error::Argument { what: "there is no operation to submit" });
        }
        let batch = self.batch(handle)?;
        let free = batch.capacity.saturating_sub(batch.lock().outstanding());
        if entries.len() > free {
            return Err(Error::BatchFull { asked: entries.len(), free });
        }
        let operations =
            entries.iter().map(|entry| self.operation(entry)).collect::<Result<Vec<_>, _>>()?;
        self.wait_for_default_streams(&operations)?;
        {
            let mut state = batch.lock();
            if state.ended {
                return Err(Error::NoBatch(handle as usize));
            }
            // Another thread may have taken the room meanwhile.
            let free = batch.capacity.saturating_sub(state.outstanding());
            if entries.len() > free {
                return Err(Error::BatchFull { asked: entries.len(), free });
            }
            state.active.extend(operations.iter().cloned());
        }
        for operation in operations {
            let job = Job { batch: Arc::clone(&batch), operation };
            let runtime = Arc::clone(self);
            self.workers.submit(Box::new(move || job.run(&runtime)));
        }
        Ok(())
    }

    /// `hipFileBatchIOGetStatus`: operations that are over, each once. Waits until `least` are, at most `timeout`; for ever without
    /// one.
    pub fn batch_status(
        &self,
        handle: u64,
        least: u32,
        most: u32,
        timeout: Option<Duration>,
    ) -> Result<Vec<Event>, Error> {
        if most == 0 || least > most {
            return Err(Error::Argument {
                what: "there is no room for the events that are waited for",
            });
        }
        Ok(self.batch(handle)?.take(least as usize, most as usize, timeout))
    }

    /// `hipFileBatchIOCancel`: takes back what has not begun and waits for the rest.
    pub fn batch_cancel(&self, handle: u64) -> Result<(), Error> {
        let batch = self.batch(handle)?;
        self.stats.count(Counter::BatchCancels, 1);
        batch.cancel();
        batch.settle();
        Ok(())
    }

    /// `hipFileBatchIODestroy`.
    pub fn batch_destroy(&self, handle: u64) {
        if let Some(batch) = self.batches.remove(handle) {
            self.stats.count(Counter::BatchDestroys, 1);
            batch.end();
        }
    }
}
