//! The safe way in: values that own what is registered.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use fastpath_gpu::{Direction, Gpu, RawStream};

use crate::batch::{Entry, MOST};
use crate::choose::Reason;
use crate::error::Error;
use crate::raw::{self, OPAQUE_FD};
use crate::runtime::Runtime;
use crate::stream::{FIXED_BUFFER_OFFSET, FIXED_FILE_OFFSET, FIXED_SIZE, Late};

/// An open driver. It closes when the last clone of it and everything made with it are gone.
#[derive(Clone, Debug)]
pub struct Driver(Arc<Open>);

#[derive(Debug)]
struct Open(Arc<Runtime>);

impl Drop for Open {
    fn drop(&mut self) {
        // It was opened once for this value.
        let _ = self.0.driver_close();
    }
}

impl Driver {
    /// Opens the driver of this process and, the first time, judges the kernel.
    ///
    /// # Errors
    ///
    /// [`Error::NoWayAllowed`] if the environment forbids fastpath and fallback.
    pub fn open() -> Result<Self, Error> {
        Self::on(Arc::clone(raw::runtime()))
    }

    /// Opens the driver of a runtime of one's own.
    ///
    /// # Errors
    ///
    /// As [`Driver::open`].
    pub fn on(runtime: Arc<Runtime>) -> Result<Self, Error> {
        runtime.driver_open()?;
        Ok(Self(Arc::new(Open(runtime))))
    }

    /// A handle means something to its own runtime only.
    fn shares(&self, other: &Self) -> Result<(), Error> {
        if Arc::ptr_eq(self.runtime(), other.runtime()) {
            return Ok(());
        }
        Err(Error::Argument { what: "the file and the buffer belong to different runtimes" })
    }

    /// What is below.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.0.0
    }

    /// Whether the HIP runtime is a simulation, so that times and bytes say nothing about a GPU.
    ///
    /// # Errors
    ///
    /// That there is no HIP.
    pub fn is_simulation(&self) -> Result<bool, Error> {
        Ok(self.runtime().gpu()?.is_simulation())
    }

    /// Registers a file, or anything else that has a descriptor: a regular file or a block device can take the fastpath.
    ///
    /// # Errors
    ///
    /// A failed system call.
    pub fn register(&self, file: impl Into<OwnedFd>) -> Result<File, Error> {
        let fd = file.into();
        let handle = self.runtime().handle_register(OPAQUE_FD, fd.as_raw_fd())?;
        Ok(File { driver: self.clone(), handle, fd })
    }
}

/// A registered file, with its descriptor.
#[derive(Debug)]
pub struct File {
    driver: Driver,
    handle: u64,
    fd: OwnedFd,
}

impl Drop for File {
    fn drop(&mut self) {
        self.driver.runtime().handle_deregister(self.handle);
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// GPU memory, or host memory that HIP knows, owned by whoever allocated it.
#[derive(Debug)]
pub struct DeviceMemory {
    address: NonNull<u8>,
    length: usize,
    owner: Owner,
}

/// Who frees memory.
#[derive(Debug)]
enum Owner {
    Nobody,
    Function(fn(NonNull<u8>)),
    Hip(Arc<dyn Gpu>),
}

// SAFETY: the memory is only used through HIP and the kernel, which take addresses from any thread.
unsafe impl Send for DeviceMemory {}

impl DeviceMemory {
    /// Memory of the calling thread's current GPU.
    ///
    /// # Errors
    ///
    /// HIP's, or that there is no HIP.
    pub fn allocate(driver: &Driver, length: usize) -> Result<Self, Error> {
        let gpu = Arc::clone(driver.runtime().gpu()?);
        let address =
            gpu.allocate_device(length).map_err(|error| Error::Hip { call: "hipMalloc", error })?;
        Ok(Self { address, length, owner: Owner::Hip(gpu) })
    }

    /// Takes over memory, and frees it with `free` when it is dropped.
    ///
    /// # Safety
    ///
    /// `address` is the start of `length` bytes that HIP allocated, that stay allocated until `free` is called, and that are used by
    /// nothing else while they are in a [`Buffer`].
    pub unsafe fn from_raw(
        address: NonNull<u8>,
        length: usize,
        free: Option<fn(NonNull<u8>)>,
    ) -> Self {
        Self { address, length, owner: free.map_or(Owner::Nobody, Owner::Function) }
    }

    /// Its first byte.
    pub fn address(&self) -> usize {
        self.address.as_ptr().expose_provenance()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Nobody => {}
            Owner::Function(free) => free(self.address),
            // SAFETY: allocated by this runtime, and no buffer borrows it any more. What HIP does not take back is lost.
            Owner::Hip(gpu) => drop(unsafe { gpu.free_device(self.address) }),
        }
    }
}

/// Registered memory. It borrows the memory, so that it cannot be freed before, and I/O borrows it.
///
/// ```compile_fail,E0505
/// # use hipfile::{Buffer, DeviceMemory, Driver};
/// # fn f(driver: &Driver, mut memory: DeviceMemory) -> Result<(), hipfile::Error> {
/// let buffer = Buffer::new(driver, &mut memory)?;
/// drop(memory); // it is in use
/// drop(buffer);
/// # Ok(()) }
/// ```
///
/// Nor can two operations of a batch or a stream have the same bytes; different [`Part`]s they can.
///
/// ```compile_fail,E0499
/// # use hipfile::{Buffer, Driver, File, Operation};
/// # fn f(driver: &Driver, file: &File, mut buffer: Buffer<'_>) -> Result<(), hipfile::Error> {
/// let first = Operation::read(file, buffer.whole(), 0)?;
/// let second = Operation::read(file, buffer.whole(), 0)?;
/// driver.run(&[first, second])?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Buffer<'memory> {
    driver: Driver,
    address: usize,
    length: usize,
    memory: PhantomData<&'memory mut DeviceMemory>,
}

impl<'memory> Buffer<'memory> {
    /// Registers memory.
    ///
    /// # Errors
    ///
    /// HIP's, or that the memory is registered already.
    pub fn new(driver: &Driver, memory: &'memory mut DeviceMemory) -> Result<Self, Error> {
        let (address, length) = (memory.address(), memory.length);
        driver.runtime().buffer_register(address, length, 0)?;
        Ok(Self { driver: driver.clone(), address, length, memory: PhantomData })
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Copies bytes of the host to `start` of the buffer, and returns when they are there.
    ///
    /// # Errors
    ///
    /// [`Error::BeyondBuffer`], or HIP's.
    pub fn put(&mut self, start: usize, bytes: &[u8]) -> Result<(), Error> {
        self.copy(Direction::Read, start, bytes.as_ptr().cast_mut(), bytes.len())
    }

    /// Copies bytes from `start` of the buffer to the host, and returns when they are there.
    ///
    /// # Errors
    ///
    /// As [`Buffer::put`].
    pub fn get(&self, start: usize, bytes: &mut [u8]) -> Result<(), Error> {
        self.copy(Direction::Write, start, bytes.as_mut_ptr(), bytes.len())
    }

    fn copy(
        &self,
        direction: Direction,
        start: usize,
        host: *mut u8,
        size: usize,
    ) -> Result<(), Error> {
        let address = self.address_of(start, size)?;
        let gpu = self.driver.runtime().gpu()?;
        // SAFETY: both ranges are borrowed until the copy is done, the written one exclusively; null is the default stream.
        unsafe { gpu.copy_now(direction, address, host, size, RawStream(std::ptr::null_mut())) }
            .map_err(|error| Error::Hip { call: "hipMemcpyWithStream", error })
    }

    /// The address of a range of it.
    pub(crate) fn address_of(&self, start: usize, size: usize) -> Result<usize, Error> {
        let inside = start.checked_add(size).is_some_and(|end| end <= self.length);
        let beyond = Error::BeyondBuffer { size, offset: start as i64, length: self.length };
        inside.then_some(self.address + start).ok_or(beyond)
    }

    /// All of it, for operations of a batch or a stream.
    pub fn whole(&mut self) -> Part<'_> {
        Part {
            driver: &self.driver,
            base: self.address,
            start: 0,
            length: self.length,
            buffer: PhantomData,
        }
    }
}

/// Bytes of a buffer that nothing else has.
#[derive(Debug)]
pub struct Part<'buffer> {
    driver: &'buffer Driver,
    base: usize,
    start: usize,
    length: usize,
    buffer: PhantomData<&'buffer mut DeviceMemory>,
}

impl Part<'_> {
    /// The first `middle` bytes and the rest; all and nothing if there are not so many.
    pub fn split_at(self, middle: usize) -> (Self, Self) {
        let middle = middle.min(self.length);
        let rest = Self { start: self.start + middle, length: self.length - middle, ..self };
        (Self { length: middle, ..self }, rest)
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // Whatever used it borrowed it, and is over.
        let _ = self.driver.runtime().buffer_deregister(self.address);
    }
}

/// Where a range of a buffer begins, and its bytes.
fn place(range: &Range<usize>) -> Result<(i64, usize), Error> {
    let size = range.end.checked_sub(range.start);
    let offset = i64::try_from(range.start).ok();
    let (Some(offset), Some(size)) = (offset, size) else {
        return Err(Error::Argument { what: "the range ends before it begins" });
    };
    Ok((offset, size))
}

fn file_offset(offset: u64) -> Result<i64, Error> {
    i64::try_from(offset).map_err(|_| Error::Argument { what: "the file offset is 2^63 or more" })
}

impl File {
    /// Reads from `offset` of the file into a range of the buffer. Returns the bytes read: fewer than asked for at the end of the
    /// file, and at most [`crate::MAX_SIZE`].
    ///
    /// # Errors
    ///
    /// [`Error::BeyondBuffer`], or the system's or HIP's if no byte was moved before.
    pub fn read_at(
        &self,
        buffer: &mut Buffer<'_>,
        range: Range<usize>,
        offset: u64,
    ) -> Result<usize, Error> {
        let (start, size) = place(&range)?;
        buffer.address_of(range.start, size)?;
        self.driver.shares(&buffer.driver)?;
        // SAFETY: the range lies in the buffer, which is borrowed exclusively and borrows its memory.
        unsafe {
            self.driver.runtime().read(
                self.handle,
                buffer.address,
                size,
                file_offset(offset)?,
                start,
            )
        }
    }

    /// Writes a range of the buffer at `offset` of the file. Returns the bytes written.
    ///
    /// # Errors
    ///
    /// As [`File::read_at`].
    pub fn write_at(
        &self,
        buffer: &Buffer<'_>,
        range: Range<usize>,
        offset: u64,
    ) -> Result<usize, Error> {
        let (start, size) = place(&range)?;
        buffer.address_of(range.start, size)?;
        self.driver.shares(&buffer.driver)?;
        // SAFETY: the range lies in the buffer, which is borrowed and borrows its memory exclusively.
        unsafe {
            self.driver.runtime().write(
                self.handle,
                buffer.address,
                size,
                file_offset(offset)?,
                start,
            )
        }
    }

    /// Why requests did not take the fastpath, each with how often.
    pub fn reasons(&self) -> Vec<(Reason, u64)> {
        self.driver.runtime().reasons(self.handle).unwrap_or_default()
    }
}

/// One operation of a batch or a stream.
#[derive(Debug)]
pub struct Operation<'io> {
    direction: Direction,
    file: &'io File,
    part: Part<'io>,
    offset: i64,
}

impl<'io> Operation<'io> {
    /// Reads from `offset` of the file as much as the part takes.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for an offset of 2^63 or more.
    pub fn read(file: &'io File, part: Part<'io>, offset: u64) -> Result<Self, Error> {
        Ok(Self { direction: Direction::Read, file, part, offset: file_offset(offset)? })
    }

    /// Writes the part at `offset` of the file.
    ///
    /// # Errors
    ///
    /// As [`Operation::read`].
    pub fn write(file: &'io File, part: Part<'io>, offset: u64) -> Result<Self, Error> {
        Ok(Self { direction: Direction::Write, file, part, offset: file_offset(offset)? })
    }
}

impl Driver {
    /// Does operations at the same time, in any order, and returns when all are over: of each the bytes it moved, or its error as
    /// [`Error::Reported`].
    ///
    /// # Errors
    ///
    /// If any operation is refused, none is done.
    pub fn run(&self, operations: &[Operation<'_>]) -> Result<Vec<Result<usize, Error>>, Error> {
        let mut results = Vec::new();
        for operations in operations.chunks(MOST as usize) {
            results.extend(self.run_some(operations)?);
        }
        Ok(results)
    }

    fn all_share(&self, operations: &[Operation<'_>]) -> Result<(), Error> {
        operations.iter().try_for_each(|operation| {
            self.shares(&operation.file.driver)?;
            self.shares(operation.part.driver)
        })
    }

    fn run_some(&self, operations: &[Operation<'_>]) -> Result<Vec<Result<usize, Error>>, Error> {
        let runtime = self.runtime();
        self.all_share(operations)?;
        let batch = Batch { runtime, handle: runtime.batch_set_up(operations.len() as u32)? };
        let entry = |(cookie, operation): (usize, &Operation<'_>)| Entry {
            mode: 1,
            opcode: i32::from(operation.direction == Direction::Write),
            file: operation.file.handle,
            buffer: operation.part.base,
            buffer_offset: operation.part.start as i64,
            file_offset: operation.offset,
            size: operation.part.length,
            cookie,
        };
        let entries: Vec<Entry> = operations.iter().enumerate().map(entry).collect();
        // SAFETY: each operation has its bytes to itself, and they are borrowed until `batch` is gone, which waits for all.
        unsafe { runtime.batch_submit(batch.handle, &entries)? };
        let mut results: Vec<_> = operations.iter().map(|_| Err(Error::ShutDown)).collect();
        let mut over = 0;
        while over < operations.len() {
            for event in runtime.batch_status(batch.handle, 1, MOST, None)? {
                over += 1;
                if let Some(result) = results.get_mut(event.cookie) {
                    *result = reported(event.result);
                }
            }
        }
        Ok(results)
    }
}

fn reported(result: isize) -> Result<usize, Error> {
    usize::try_from(result).map_err(|_| Error::Reported(result))
}

/// Goes away only when nothing of it is under way.
struct Batch<'a> {
    runtime: &'a Runtime,
    handle: u64,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.runtime.batch_destroy(self.handle);
    }
}

/// A stream that operations are put into.
#[derive(Debug)]
pub struct Stream {
    driver: Driver,
    raw: RawStream,
}

/// What the library keeps of an operation until the stream has passed it.
#[derive(Debug)]
struct Slots {
    size: usize,
    file_offset: i64,
    buffer_offset: i64,
    result: isize,
}

impl Stream {
    /// Registers a stream.
    ///
    /// # Errors
    ///
    /// HIP's, or that the stream is registered already.
    ///
    /// # Safety
    ///
    /// `stream` is a `hipStream_t`, or null for the default stream, for as long as this value lives.
    pub unsafe fn from_raw(driver: &Driver, stream: RawStream) -> Result<Self, Error> {
        let flags = FIXED_BUFFER_OFFSET | FIXED_FILE_OFFSET | FIXED_SIZE;
        // SAFETY: the caller's promise.
        unsafe { driver.runtime().stream_register(stream, flags)? };
        Ok(Self { driver: driver.clone(), raw: stream })
    }

    /// Puts operations into the stream, calls `meanwhile`, and returns when the stream has passed them: of each the bytes it
    /// moved, or its error as [`Error::Reported`].
    ///
    /// # Errors
    ///
    /// If one cannot be submitted; those before it are done all the same.
    pub fn run(
        &self,
        operations: &[Operation<'_>],
        meanwhile: impl FnOnce(),
    ) -> Result<Vec<Result<usize, Error>>, Error> {
        self.driver.all_share(operations)?;
        let slots = |operation: &Operation<'_>| Slots {
            size: operation.part.length,
            file_offset: operation.offset,
            buffer_offset: operation.part.start as i64,
            result: 0,
        };
        let slots: Vec<UnsafeCell<Slots>> =
            operations.iter().map(slots).map(UnsafeCell::new).collect();
        let passed = Passed { stream: self, slots };
        for (operation, slots) in operations.iter().zip(&passed.slots) {
            let slots = slots.get();
            // SAFETY: the places and the bytes stay until `passed` is gone, which waits for the stream; nobody else has them.
            unsafe {
                let late = Late {
                    size: &raw const (*slots).size,
                    file_offset: &raw const (*slots).file_offset,
                    buffer_offset: &raw const (*slots).buffer_offset,
                    result: &raw mut (*slots).result,
                };
                let (file, base) = (operation.file.handle, operation.part.base);
                self.driver.runtime().submit(operation.direction, file, base, late, self.raw)?;
            }
        }
        meanwhile();
        passed.wait()?;
        // SAFETY: the stream has passed, so nobody writes any more.
        let result = |slots: &UnsafeCell<Slots>| reported(unsafe { (*slots.get()).result });
        Ok(passed.slots.iter().map(result).collect())
    }
}

/// Goes away only when the stream has passed what it holds.
struct Passed<'a> {
    stream: &'a Stream,
    slots: Vec<UnsafeCell<Slots>>,
}

impl Passed<'_> {
    fn wait(&self) -> Result<(), Error> {
        let gpu = self.stream.driver.runtime().gpu()?;
        // SAFETY: the stream is one for as long as `Stream` lives.
        unsafe { gpu.synchronize(self.stream.raw) }
            .map_err(|error| Error::Hip { call: "hipStreamSynchronize", error })
    }
}

impl Drop for Passed<'_> {
    fn drop(&mut self) {
        if self.wait().is_err() {
            // The stream may still come to it.
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.driver.runtime().stream_deregister(self.raw);
    }
}
