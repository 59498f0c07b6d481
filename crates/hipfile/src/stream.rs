//! Operations in the order of a stream.
//!
//! When the stream comes to an operation, a host function reads the parameters that were left open and hands the operation to a
//! worker; host functions must not call HIP. Then the stream waits: for a number in memory that the worker counts up, if the GPU
//! can, else the host function itself waits. The worker does what a synchronous call does, fallback included, so the stream goes on
//! only when the bytes are where they belong and their count is written.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use fastpath_gpu::{CurrentDevice, Direction, Gpu, HipError, MemoryKind, RawStream};

use crate::buffer::Buffer;
use crate::error::Error;
use crate::file::File;
use crate::log::Level;
use crate::runtime::Runtime;
use crate::stats::Counter;
use crate::sync::Arc;
use crate::transfer::Request;

/// `HIPFILE_STREAM_FIXED_BUF_OFFSET`: the buffer offset is what it is when the operation is submitted.
pub const FIXED_BUFFER_OFFSET: u32 = 1;
/// `HIPFILE_STREAM_FIXED_FILE_OFFSET`: the same of the file offset.
pub const FIXED_FILE_OFFSET: u32 = 2;
/// `HIPFILE_STREAM_FIXED_FILE_SIZE`: the same of the size.
pub const FIXED_SIZE: u32 = 4;
/// `HIPFILE_STREAM_FLAGS_MASK`: every flag there is.
pub const FLAGS: u32 = 0xf;

/// What this library keeps for a stream, registered or not.
#[derive(Debug)]
pub(crate) struct Stream {
    raw: RawStream,
    device: i32,
    /// Held while an operation is put into the stream in several steps; never during I/O.
    signal: Mutex<Signal>,
}

/// What the stream waits for.
#[derive(Debug, Default)]
struct Signal {
    /// The number in memory; `None` if the GPU cannot wait for one, or was not asked yet.
    number: Option<NonNull<u64>>,
    asked: bool,
    /// The last value that is waited for.
    last: u64,
}

// SAFETY: the number is memory for any thread and only used as an atomic.
unsafe impl Send for Signal {}

impl Signal {
    /// Where to count, made if the GPU can wait for it.
    fn number(&mut self, gpu: &dyn Gpu, device: i32) -> Option<NonNull<u64>> {
        if !self.asked {
            self.asked = true;
            if gpu.can_wait_value(device)
                && let Ok(_current) = CurrentDevice::enter(gpu, device)
            {
                self.number = gpu.allocate_signal().ok();
            }
        }
        self.number
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
    done: Arc<Done>,
}

/// Tells the stream that an operation is over.
struct Done {
    number: Option<(NonNull<u64>, u64)>,
    over: Mutex<bool>,
    changed: Condvar,
}

// SAFETY: the number is memory for any thread and only used as an atomic.
unsafe impl Send for Done {}
// SAFETY: as above.
unsafe impl Sync for Done {}

impl Done {
    fn set(&self) {
        if let Some((number, value)) = self.number {
            // SAFETY: signal memory that is not freed while the stream may wait for it, 8 bytes and aligned.
            unsafe { AtomicU64::from_ptr(number.as_ptr()) }.fetch_max(value, Ordering::Release);
        }
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn publish(&self, result: Result<usize, Error>) {
        let result = match result {
            Ok(bytes) => bytes.cast_signed(),
            Err(error) => {
                self.runtime
                    .log
                    .say(Level::Info, || format!("an asynchronous operation failed: {error}"));
                // Parameters are the client's doing, whatever a synchronous call says.
                if matches!(error, Error::NegativeOffset { .. }) { -5022 } else { error.result() }
            }
        };
        // SAFETY: as in `bind`.
        unsafe { self.late.result.write(result) };
    }
}

/// An operation that tells the stream when it is dropped, whatever happened to it.
struct Running(Option<Box<Operation>>);

impl Running {
    fn finish(mut self, result: impl FnOnce(&Operation) -> Result<usize, Error>) {
        if let Some(operation) = self.0.take() {
            operation.publish(result(&operation));
            end(*operation);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(operation) = self.0.take() {
            operation.publish(Err(Error::ShutDown));
            end(*operation);
        }
    }
}

/// Gives back what the operation used, so that it can be taken out, and only then lets the stream go on.
fn end(operation: Operation) {
    let Operation { runtime, file, buffer, done, .. } = operation;
    drop((file, buffer));
    runtime.asynchronous.fetch_sub(1, Ordering::AcqRel);
    done.set();
    drop(runtime);
}

/// The host function that starts an operation. It calls no HIP, and waits only if the stream itself cannot.
unsafe extern "C" fn arrive(data: *mut c_void) {
    // SAFETY: made by `submit` for this call, which HIP makes once.
    let operation = unsafe { Box::from_raw(data.cast::<Operation>()) };
    let done = Arc::clone(&operation.done);
    let runtime = Arc::clone(&operation.runtime);
    let bound = operation.bind();
    let running = Running(Some(operation));
    match bound {
        Err(error) => running.finish(|_| Err(error)),
        // If there is no thread for it, dropping it tells everyone.
        Ok(values) => drop(
            runtime
                .workers
                .submit(Box::new(move || running.finish(|operation| operation.run(values)))),
        ),
    }
    if done.number.is_none() {
        done.wait();
    }
}

/// The host function that waits where the GPU refused to.
unsafe extern "C" fn await_done(data: *mut c_void) {
    // SAFETY: made by `submit` for this call, which HIP makes once.
    let done = unsafe { Arc::from_raw(data.cast::<Done>().cast_const()) };
    done.wait();
}

impl Stream {
    fn new(gpu: &dyn Gpu, raw: RawStream) -> Result<Self, Error> {
        // SAFETY: the caller of the interface says that it is a stream.
        let device = unsafe { gpu.stream_device(raw) }
            .map_err(|error| Error::Hip { call: "hipStreamGetDevice", error })?;
        Ok(Self { raw, device, signal: Mutex::default() })
    }

    /// Puts an operation into the stream.
    fn submit(
        &self,
        gpu: &dyn Gpu,
        make: impl FnOnce(Arc<Done>) -> Operation,
    ) -> Result<(), Error> {
        let hip = |call| move |error: HipError| Error::Hip { call, error };
        let mut signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        let number = signal.number(gpu, self.device).map(|number| (number, signal.last + 1));
        let done = Arc::new(Done { number, over: Mutex::new(false), changed: Condvar::new() });
        let operation = Box::into_raw(Box::new(make(Arc::clone(&done))));
        // SAFETY: the function takes the operation back, once.
        let launched = unsafe { gpu.launch(self.raw, arrive, operation.cast()) };
        if let Err(error) = launched {
            // SAFETY: made above, and HIP did not take it.
            let operation = unsafe { Box::from_raw(operation) };
            operation.runtime.asynchronous.fetch_sub(1, Ordering::AcqRel);
            return Err(hip("hipLaunchHostFunc")(error));
        }
        let Some((number, value)) = number else { return Ok(()) };
        signal.last = value;
        // SAFETY: the signal is freed only when no operation is under way.
        if unsafe { gpu.wait_value(self.raw, number, value) }.is_ok() {
            return Ok(());
        }
        // The operation runs already, or will: what comes after it has to wait all the same.
        let waiting = Arc::into_raw(done).cast_mut();
        // SAFETY: the function takes the count back, once.
        unsafe { gpu.launch(self.raw, await_done, waiting.cast()) }
            .map_err(hip("hipStreamWaitValue64"))
    }
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
        let stream = Stream::new(self.gpu()?.as_ref(), stream)?;
        let key = stream.raw.0.addr() as u64;
        if !self.stream_flags.insert(key, Arc::new(flags)) {
            return Err(Error::Stream { what: "the stream is registered already" });
        }
        Ok(())
    }

    /// `hipFileStreamDeregister`. Operations in the stream go on.
    pub fn stream_deregister(&self, stream: RawStream) -> Result<(), Error> {
        let removed = self.stream_flags.remove(stream.0.addr() as u64);
        removed.map(drop).ok_or(Error::Stream { what: "the stream is not registered" })
    }

    /// What is kept for a stream: made anew if its handle means a stream of another GPU by now.
    fn stream(&self, gpu: &dyn Gpu, raw: RawStream) -> Result<Arc<Stream>, Error> {
        let key = raw.0.addr() as u64;
        let now = Stream::new(gpu, raw)?;
        if let Some(known) = self.streams.get(key) {
            if known.device == now.device {
                return Ok(known);
            }
            self.streams.remove(key);
        }
        let now = Arc::new(now);
        self.streams.insert(key, Arc::clone(&now));
        // Another thread may have been first.
        Ok(self.streams.get(key).unwrap_or(now))
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
        let any_null =
            late.size.is_null() || late.file_offset.is_null() || late.buffer_offset.is_null();
        if address == 0 || any_null || late.result.is_null() {
            return Err(Error::Argument { what: "the buffer or a parameter's place is NULL" });
        }
        let file = self.driver.file(handle).ok_or(Error::FileNotRegistered(handle as usize))?;
        let gpu = self.gpu()?;
        let buffer = match self.driver.buffer(address as u64) {
            Some(buffer) => buffer,
            None => Arc::new(Buffer::temporary(gpu.as_ref(), address)?),
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
        let stream = self.stream(gpu.as_ref(), stream)?;
        if buffer.kind == MemoryKind::Device && buffer.device != stream.device {
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
        self.asynchronous.fetch_add(1, Ordering::AcqRel);
        let runtime = Arc::clone(self);
        stream.submit(gpu.as_ref(), |done| Operation {
            runtime,
            direction,
            file,
            buffer,
            late,
            flags,
            submitted,
            done,
        })
    }
}
