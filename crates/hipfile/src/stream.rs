//! Operations in the order of a stream.
//!
//! When the stream comes to an operation, a host function reads the parameters that were left open and hands the operation to a
//! worker; host functions must not call HIP. Then the stream waits: for a number in memory that the worker sets, if the GPU can,
//! else the host function itself waits. The worker does what a synchronous call does, fallback included, so the stream goes on
//! only when the bytes are where they belong and their count is written.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};

use fastpath_gpu::{Direction, Gpu, HipError, MemoryKind, RawStream};

use crate::buffer::Buffer;
use crate::error::Error;
use crate::file::File;
use crate::log::Level;
use crate::runtime::Runtime;
use crate::signal::Signal;
use crate::stats::Counter;
use crate::sync::{Arc, lock};
use crate::transfer::Request;

/// `HIPFILE_STREAM_FIXED_BUF_OFFSET`: the buffer offset is what it is when the operation is submitted.
pub const FIXED_BUFFER_OFFSET: u32 = 1;
/// `HIPFILE_STREAM_FIXED_FILE_OFFSET`: the same of the file offset.
pub const FIXED_FILE_OFFSET: u32 = 2;
/// `HIPFILE_STREAM_FIXED_FILE_SIZE`: the same of the size.
pub const FIXED_SIZE: u32 = 4;
/// `HIPFILE_STREAM_FLAGS_MASK`: every flag there is.
pub const FLAGS: u32 = 0xf;

/// `hipStreamLegacy`, another name of the null stream.
const LEGACY: usize = 1;
/// `hipStreamPerThread`, another stream in each thread.
const PER_THREAD: usize = 2;

/// Who puts an operation into a stream in several steps, and who waits for that; never held during I/O.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<usize, Arc<Mutex<()>>>>);

impl Turns {
    /// Calls `steps` while nobody else puts anything into the stream.
    fn take<T>(&self, stream: RawStream, steps: impl FnOnce() -> T) -> T {
        let key = match stream.0.addr() {
            PER_THREAD => return steps(),
            LEGACY => 0,
            handle => handle,
        };
        let turn = Arc::clone(lock(&self.0).entry(key).or_default());
        let result = {
            let _turn = lock(&turn);
            steps()
        };
        let mut turns = lock(&self.0);
        // Nobody can find it meanwhile: the other count is this one.
        if Arc::strong_count(&turn) == 2 {
            turns.remove(&key);
        }
        result
    }
}

/// The parameters of an asynchronous call: places that the client keeps until the stream has passed the operation.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Bytes to move.
    pub size: *const usize,
    /// Where in the file.
    pub file_offset: *const i64,
    /// Where in the buffer.
    pub buffer_offset: *const i64,
    /// Takes the count of bytes, or a negative code.
    pub result: *mut isize,
}

// SAFETY: the places are the client's, for the one thread that has the operation.
unsafe impl Send for Late {}

impl Late {
    /// Whether every place can be one.
    fn is_sound(&self) -> bool {
        fn can_be<T>(place: *const T) -> bool {
            !place.is_null() && place.is_aligned()
        }
        can_be(self.size)
            && can_be(self.file_offset)
            && can_be(self.buffer_offset)
            && can_be(self.result)
    }
}

#[derive(Clone, Copy, Debug)]
struct Values {
    size: usize,
    file_offset: i64,
    buffer_offset: i64,
}

/// An operation on its way.
struct Operation {
    runtime: Arc<Runtime>,
    direction: Direction,
    file: Arc<File>,
    buffer: Arc<Buffer>,
    late: Late,
    flags: u32,
    submitted: Values,
    /// What the stream waits for; without it a host function waits.
    signal: Option<Signal>,
    ticket: Arc<Ticket>,
}

/// What a stream has of an operation.
#[derive(Default)]
struct Ticket {
    /// Until the stream gets there, or the operation is taken back: whoever takes it has it.
    operation: Mutex<Option<Box<Operation>>>,
    over: Mutex<bool>,
    changed: Condvar,
}

impl Ticket {
    fn set(&self) {
        *lock(&self.over) = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut over = lock(&self.over);
        while !*over {
            over = self.changed.wait(over).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Operation {
    /// Reads the parameters that were left open until now.
    fn bind(&self) -> Result<Values, Error> {
        let mut values = self.submitted;
        // SAFETY: the client keeps the places until the stream has passed.
        unsafe {
            if self.flags & FIXED_SIZE == 0 {
                values.size = self.late.size.read();
            }
            if self.flags & FIXED_FILE_OFFSET == 0 {
                values.file_offset = self.late.file_offset.read();
            }
            if self.flags & FIXED_BUFFER_OFFSET == 0 {
                values.buffer_offset = self.late.buffer_offset.read();
            }
        }
        if values.size > self.submitted.size {
            return Err(Error::Argument {
                what: "the size is larger than when the operation was submitted",
            });
        }
        Ok(values)
    }

    fn run(&self, values: Values) -> Result<usize, Error> {
        let Values { size, file_offset, buffer_offset } = values;
        let gpu = self.runtime.gpu()?;
        Request::checked(
            self.direction,
            &self.file,
            &self.buffer,
            size,
            file_offset,
            buffer_offset,
        )?
        .run(&self.runtime, gpu)
    }

    /// What the client's place for the count gets.
    fn told(&self, result: Result<usize, Error>) -> isize {
        match result {
            Ok(bytes) => bytes.cast_signed(),
            Err(error) => {
                self.runtime
                    .log
                    .say(Level::Info, || format!("an asynchronous operation failed: {error}"));
                // Parameters are the client's doing, whatever a synchronous call says.
                if matches!(error, Error::NegativeOffset { .. }) { -5022 } else { error.result() }
            }
        }
    }

    /// Gives back what the operation used, so that it can be taken out.
    fn drop_uses(self) -> (Arc<Runtime>, Late, Option<Signal>, Arc<Ticket>) {
        let Self { runtime, file, buffer, late, signal, ticket, .. } = self;
        drop((file, buffer));
        runtime.asynchronous.fetch_sub(1, Ordering::AcqRel);
        (runtime, late, signal, ticket)
    }

    /// Tells the client, and only then lets the stream go on.
    fn end(self, result: Result<usize, Error>) {
        let told = self.told(result);
        let (runtime, late, signal, ticket) = self.drop_uses();
        // SAFETY: as in `bind`.
        unsafe { late.result.write(told) };
        if let Some(signal) = signal {
            runtime.signals.set(signal);
        }
        ticket.set();
    }

    /// Ends an operation that no stream waits for.
    fn take_back(self) {
        let (runtime, _, signal, _) = self.drop_uses();
        if let Some(signal) = signal {
            runtime.signals.set(signal);
        }
    }
}

/// An operation that ends when this is dropped, whatever happened to it.
struct Running {
    operation: Option<Box<Operation>>,
    result: Result<usize, Error>,
}

impl Running {
    fn run(mut self, values: Values) {
        // What is said if it panics.
        self.result = Err(Error::Reported(-5030));
        if let Some(operation) = &self.operation {
            self.result = operation.run(values);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(operation) = self.operation.take() {
            operation.end(std::mem::replace(&mut self.result, Err(Error::ShutDown)));
        }
    }
}

/// The host function that starts an operation. It calls no HIP, and waits only if the stream itself cannot.
unsafe extern "C" fn arrive(data: *mut c_void) {
    // SAFETY: made by `put` for this call, which HIP makes once.
    let ticket = unsafe { Arc::from_raw(data.cast::<Ticket>().cast_const()) };
    let Some(operation) = lock(&ticket.operation).take() else { return };
    let runtime = Arc::clone(&operation.runtime);
    let waits = operation.signal.is_none();
    let bound = operation.bind();
    let operation = Some(operation);
    match bound {
        Err(error) => drop(Running { operation, result: Err(error) }),
        Ok(values) => {
            // If there is no thread for it, dropping it tells everyone.
            let running = Running { operation, result: Err(Error::ShutDown) };
            runtime.workers.submit(Box::new(move || running.run(values)));
        }
    }
    if waits {
        ticket.wait();
    }
}

/// The host function that waits where the GPU refused to.
unsafe extern "C" fn await_end(data: *mut c_void) {
    // SAFETY: made by `put` for this call, which HIP makes once.
    let ticket = unsafe { Arc::from_raw(data.cast::<Ticket>().cast_const()) };
    ticket.wait();
}

/// Has the stream call one of the functions above.
fn launch(
    gpu: &dyn Gpu,
    stream: RawStream,
    function: fastpath_gpu::HostFunction,
    ticket: &Arc<Ticket>,
) -> Result<(), Error> {
    let data = Arc::into_raw(Arc::clone(ticket)).cast_mut();
    // SAFETY: the function takes the count back, once.
    unsafe { gpu.launch(stream, function, data.cast()) }.map_err(|error: HipError| {
        // SAFETY: made above, and HIP did not take it.
        drop(unsafe { Arc::from_raw(data.cast_const()) });
        Error::Hip { call: "hipLaunchHostFunc", error }
    })
}

/// Puts an operation into a stream: all of it, or nothing.
fn put(gpu: &dyn Gpu, stream: RawStream, operation: Operation) -> Result<(), Error> {
    let ticket = Arc::clone(&operation.ticket);
    // False if it runs.
    let take_back = || {
        let operation = lock(&ticket.operation).take();
        operation.map(|operation| operation.take_back()).is_some()
    };
    // The stream may be there before it has been told to wait.
    let end = operation.signal.as_ref().map(Signal::end);
    *lock(&ticket.operation) = Some(Box::new(operation));
    launch(gpu, stream, arrive, &ticket).inspect_err(|_| {
        take_back();
    })?;
    let Some(end) = end else { return Ok(()) };
    // SAFETY: the caller counts as an operation until this returns, so that the numbers stay.
    if unsafe { end.await_in(gpu, stream) }.is_ok() {
        return Ok(());
    }
    let Err(error) = launch(gpu, stream, await_end, &ticket) else { return Ok(()) };
    if take_back() {
        return Err(error);
    }
    // It runs. What is submitted after this call comes after it if it is over now.
    ticket.wait();
    Ok(())
}

impl Runtime {
    /// `hipFileStreamRegister`. Needs no open driver.
    ///
    /// # Safety
    ///
    /// The stream is one, or null, until it is deregistered.
    pub unsafe fn stream_register(&self, stream: RawStream, flags: u32) -> Result<(), Error> {
        if flags & !FLAGS != 0 {
            return Err(Error::Argument {
                what: "there are stream flags that do not exist; expected bits of 0xf",
            });
        }
        device_of(self.gpu()?.as_ref(), stream)?;
        if !self.stream_flags.insert(stream.0.addr() as u64, Arc::new(flags)) {
            return Err(Error::Stream { what: "the stream is registered already" });
        }
        Ok(())
    }

    /// `hipFileStreamDeregister`. Operations in the stream go on.
    pub fn stream_deregister(&self, stream: RawStream) -> Result<(), Error> {
        let removed = self.stream_flags.remove(stream.0.addr() as u64);
        removed.map(drop).ok_or(Error::Stream { what: "the stream is not registered" })
    }

    /// `hipFileReadAsync` and `hipFileWriteAsync`.
    ///
    /// With the driver closed it is opened, and the call fails: clients of cuFile know it so.
    ///
    /// # Safety
    ///
    /// The stream is one, or null. The places of `late` are valid until the stream has passed the operation, and so is host memory
    /// that is the buffer.
    pub unsafe fn submit(
        self: &Arc<Self>,
        direction: Direction,
        handle: u64,
        address: usize,
        late: Late,
        stream: RawStream,
    ) -> Result<(), Error> {
        if !self.driver.is_open() {
            self.ready()?;
            self.driver.open_implicitly();
            return Err(Error::Argument { what: "the driver was not open: nothing is registered" });
        }
        if address == 0 || !late.is_sound() {
            return Err(Error::Argument {
                what: "the buffer or a parameter's place is NULL, or the place is not aligned",
            });
        }
        let file = self.driver.file(handle).ok_or(Error::FileNotRegistered(handle as usize))?;
        let gpu = self.gpu()?;
        let buffer = match self.driver.buffer(address as u64) {
            Some(buffer) => buffer,
            None => Arc::new(self.temporary(gpu.as_ref(), address)?),
        };
        // SAFETY: the caller's promise.
        let submitted = unsafe {
            Values {
                size: late.size.read(),
                file_offset: late.file_offset.read(),
                buffer_offset: late.buffer_offset.read(),
            }
        };
        let Values { size, file_offset, buffer_offset } = submitted;
        Request::checked(direction, &file, &buffer, size, file_offset, buffer_offset)?;
        let flags = self.stream_flags.get(stream.0.addr() as u64).map_or(0, |flags| *flags);
        let device = device_of(gpu.as_ref(), stream)?;
        if buffer.kind == MemoryKind::Device && buffer.device != device {
            return Err(Error::Stream {
                what: "the buffer is memory of another GPU than the stream's",
            });
        }
        // SAFETY: the caller's promise.
        unsafe { late.result.write(0) };
        if size == 0 {
            return Ok(());
        }
        self.stats.count(Counter::StreamOperations, 1);
        // The operation, and this call, which still needs its number when the operation is over.
        self.asynchronous.fetch_add(2, Ordering::AcqRel);
        let result = self.turns.take(stream, || {
            let operation = Operation {
                runtime: Arc::clone(self),
                direction,
                file,
                buffer,
                late,
                flags,
                submitted,
                signal: self.signals.take(gpu.as_ref(), device),
                ticket: Arc::default(),
            };
            put(gpu.as_ref(), stream, operation)
        });
        self.asynchronous.fetch_sub(1, Ordering::AcqRel);
        result
    }
}

/// The GPU of a stream, which the caller of the interface says is one.
fn device_of(gpu: &dyn Gpu, stream: RawStream) -> Result<i32, Error> {
    // SAFETY: as above.
    unsafe { gpu.stream_device(stream) }
        .map_err(|error| Error::Hip { call: "hipStreamGetDevice", error })
}
