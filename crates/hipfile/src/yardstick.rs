//! What the ways of this library are measured against: the least that each could do.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use fastpath_gpu::{Direction, Gpu, HipError, RawStream};

use crate::api::{Buffer, Driver};
use crate::descriptor::{read_at, write_at};
use crate::error::Error;
use crate::fastpath::{Outcome, judge};

/// One reused piece of pinned memory, aligned to pages, with a stream of its own.
#[derive(Debug)]
pub struct Yardstick {
    gpu: Arc<dyn Gpu>,
    memory: NonNull<u8>,
    length: usize,
    stream: RawStream,
}

// SAFETY: pinned memory and streams may be used from any thread, and a yardstick has one owner.
unsafe impl Send for Yardstick {}

const PAGE: usize = 4096;

fn hip(call: &'static str) -> impl Fn(HipError) -> Error {
    move |error| Error::Hip { call, error }
}

impl Yardstick {
    /// One for transfers of at most `length` bytes, on the calling thread's current GPU.
    ///
    /// # Errors
    ///
    /// HIP's, or that there is no HIP.
    pub fn new(driver: &Driver, length: usize) -> Result<Self, Error> {
        let gpu = Arc::clone(driver.runtime().gpu()?);
        let stream = gpu.create_stream().map_err(hip("hipStreamCreateWithFlags"))?;
        let memory = gpu.allocate_host(length + PAGE).map_err(|error| {
            // SAFETY: made above, and nobody has it.
            let _ = unsafe { gpu.destroy_stream(stream) };
            hip("hipHostMalloc")(error)
        })?;
        Ok(Self { gpu, memory, length, stream })
    }

    /// The floor of the fallback: one `pread` and one copy, or one copy and one `pwrite`, of `size` bytes from the buffer's start.
    /// Returns the bytes moved.
    ///
    /// # Errors
    ///
    /// The system call's, HIP's, or that the buffer or the yardstick is shorter.
    pub fn through_host(
        &mut self,
        direction: Direction,
        file: BorrowedFd<'_>,
        buffer: &mut Buffer<'_>,
        size: usize,
        offset: u64,
    ) -> Result<usize, Error> {
        let device = buffer.address_of(0, size)?;
        if size > self.length {
            return Err(Error::BeyondBuffer { size, offset: 0, length: self.length });
        }
        let host = self.memory.as_ptr().expose_provenance().next_multiple_of(PAGE);
        let copy = |bytes| {
            let host = std::ptr::with_exposed_provenance_mut(host);
            // SAFETY: both ranges were found to be long enough, are this call's alone, and the copy is done when it returns.
            unsafe { self.gpu.copy_now(direction, device, host, bytes, self.stream) }
                .map_err(hip("hipMemcpyWithStream"))
        };
        let system = |call| move |errno| Error::System { call, errno };
        match direction {
            Direction::Read => {
                // SAFETY: as above.
                let read = unsafe { read_at(file, host, size, offset) }.map_err(system("pread"))?;
                copy(read)?;
                Ok(read)
            }
            Direction::Write => {
                copy(size)?;
                // SAFETY: as above.
                unsafe { write_at(file, host, size, offset) }.map_err(system("pwrite"))
            }
        }
    }

    /// The floor of the fastpath: nothing but the call of `hipAmdFileRead` or `hipAmdFileWrite`. No verdict is asked. Returns the
    /// bytes moved.
    ///
    /// # Errors
    ///
    /// The driver's or HIP's, or that the buffer is shorter.
    pub fn bare(
        &self,
        direction: Direction,
        file: BorrowedFd<'_>,
        buffer: &mut Buffer<'_>,
        size: usize,
        offset: u64,
    ) -> Result<usize, Error> {
        let device = buffer.address_of(0, size)?;
        let offset = offset.cast_signed();
        // SAFETY: the buffer is borrowed, and it borrows its memory.
        let transfer =
            unsafe { self.gpu.transfer(direction, file.as_raw_fd(), device, size as u64, offset) };
        let call = "hipAmdFileRead/Write";
        let absent = Error::Hip { call, error: HipError::NOT_SUPPORTED };
        match judge(transfer.ok_or(absent)?, size) {
            Outcome::Moved(bytes) => Ok(bytes),
            Outcome::Refused { errno, .. } => Err(Error::System { call, errno }),
            Outcome::Failed { error, .. } => Err(error),
        }
    }
}

impl Drop for Yardstick {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and every copy was waited for.
        unsafe {
            let _ = self.gpu.destroy_stream(self.stream);
            let _ = self.gpu.free_host(self.memory);
        }
    }
}
