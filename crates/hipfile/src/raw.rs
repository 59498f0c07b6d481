//! hipFile's functions with numbers and addresses as the C interface has them: the layer below `hipfile-capi`.
//!
//! Nothing here trusts a number it was given. Addresses of GPU memory are not looked at; addresses of host memory go to the kernel,
//! which checks them.
#![allow(unsafe_code)]

use std::cell::Cell;

use fastpath_gpu::{Direction, Gpu};

use crate::buffer::Buffer;
use crate::choose::Reason;
use crate::error::Error;
use crate::log::Level;
use crate::runtime::Runtime;
use crate::stats::Snapshot;
use crate::transfer::Request;

/// `hipFileHandleTypeOpaqueFD`.
pub const OPAQUE_FD: i32 = 1;

thread_local! {
    static LAST_HIP_ERROR: Cell<i32> = const { Cell::new(0) };
}

/// The `hipError_t` behind the -5011 that this thread's last transfer returned; zero if it returned something else.
pub fn last_hip_error() -> i32 {
    LAST_HIP_ERROR.get()
}

pub use crate::batch::{Entry, Event, MOST as MOST_IN_BATCH, Status};
pub use crate::process::{install, runtime, shutdown};
pub use crate::stream::{FIXED_BUFFER_OFFSET, FIXED_FILE_OFFSET, FIXED_SIZE, FLAGS, Late};

impl Runtime {
    /// `hipFileDriverOpen`: counts. The first time it judges the kernel.
    ///
    /// # Errors
    ///
    /// [`Error::NoWayAllowed`] if the environment forbids fastpath and fallback.
    pub fn driver_open(&self) -> Result<(), Error> {
        self.ready()?;
        self.driver.open();
        Ok(())
    }

    /// `hipFileDriverClose`: the last one drops every registration, ends batches, which waits for operations that have begun, and
    /// gives pinned memory back to HIP, which may wait for the GPU. Other I/O that is under way ends as if nothing were closed.
    pub fn driver_close(&self) -> Result<(), Error> {
        if let Some(closed) = self.driver.close()? {
            drop(closed);
            self.rest();
        }
        Ok(())
    }

    /// `hipFileUseCount`.
    pub fn use_count(&self) -> i64 {
        self.driver.count()
    }

    /// `hipFileHandleRegister`. Opens the driver if it is not open, once nothing can fail any more.
    ///
    /// The file gets a descriptor of its own: the client's number may be closed and used again (upstream does I/O on whatever it
    /// means then).
    pub fn handle_register(&self, kind: i32, fd: i32) -> Result<u64, Error> {
        if kind != OPAQUE_FD {
            return Err(Error::HandleType(kind));
        }
        self.config.check()?;
        let file = self.open_file(fd)?;
        self.ready()?;
        let handle = self.driver.add_file(file)?;
        self.stats.file_registered();
        self.log.say(Level::Debug, || format!("descriptor {fd} is registered as {handle:#x}"));
        Ok(handle)
    }

    /// `hipFileHandleDeregister`. A file in use goes away after the last operation (upstream keeps it for ever).
    pub fn handle_deregister(&self, handle: u64) {
        drop(self.driver.remove_file(handle));
    }

    /// `hipFileBufRegister`. Opens the driver before it looks at its arguments, also if they are wrong: upstream's tests want
    /// that, although its documentation says otherwise.
    pub fn buffer_register(&self, address: usize, length: usize, flags: i32) -> Result<(), Error> {
        let _ = flags;
        self.ready()?;
        self.driver.open_implicitly();
        if address == 0 {
            return Err(Error::Argument { what: "the buffer is NULL" });
        }
        if self.driver.buffer(address as u64).is_some() {
            return Err(Error::BufferRegistered(address));
        }
        let buffer = Buffer::register(self.gpu()?.as_ref(), address, length)?;
        self.allows(&buffer)?;
        self.driver.add_buffer(address as u64, buffer)?;
        self.stats.buffer_registered();
        self.log.say(Level::Debug, || format!("{length} bytes at {address:#x} are registered"));
        Ok(())
    }

    /// A buffer that is not registered, for one request.
    pub(crate) fn temporary(&self, gpu: &dyn Gpu, address: usize) -> Result<Buffer, Error> {
        let buffer = Buffer::temporary(gpu, address)?;
        self.allows(&buffer)?;
        Ok(buffer)
    }

    /// Refuses memory of the host where a parameter does.
    fn allows(&self, buffer: &Buffer) -> Result<(), Error> {
        let Buffer { address, kind, .. } = *buffer;
        if kind.is_host_accessible() && !self.parameters.allows_system_memory() {
            return Err(Error::MemoryKind { address, kind });
        }
        Ok(())
    }

    /// `hipFileBufDeregister`.
    pub fn buffer_deregister(&self, address: usize) -> Result<(), Error> {
        if !self.driver.is_open() {
            return Err(Error::Closing);
        }
        self.driver.remove_buffer(address as u64)
    }

    /// `hipFileRead`.
    ///
    /// # Safety
    ///
    /// If the buffer is host memory, nothing else uses the bytes that are read into.
    pub unsafe fn read(
        &self,
        handle: u64,
        buffer: usize,
        size: usize,
        file_offset: i64,
        buffer_offset: i64,
    ) -> Result<usize, Error> {
        self.transfer(Direction::Read, handle, buffer, size, file_offset, buffer_offset)
    }

    /// `hipFileWrite`.
    ///
    /// # Safety
    ///
    /// If the buffer is host memory, nothing writes to it meanwhile.
    pub unsafe fn write(
        &self,
        handle: u64,
        buffer: usize,
        size: usize,
        file_offset: i64,
        buffer_offset: i64,
    ) -> Result<usize, Error> {
        self.transfer(Direction::Write, handle, buffer, size, file_offset, buffer_offset)
    }

    fn transfer(
        &self,
        direction: Direction,
        handle: u64,
        address: usize,
        size: usize,
        file_offset: i64,
        buffer_offset: i64,
    ) -> Result<usize, Error> {
        LAST_HIP_ERROR.set(0);
        let result =
            self.checked_transfer(direction, handle, address, size, file_offset, buffer_offset);
        if let Err(Error::Hip { error, .. }) = &result {
            LAST_HIP_ERROR.set(error.0);
        }
        result
    }

    fn checked_transfer(
        &self,
        direction: Direction,
        handle: u64,
        address: usize,
        size: usize,
        file_offset: i64,
        buffer_offset: i64,
    ) -> Result<usize, Error> {
        if !self.driver.is_open() {
            return Err(Error::TransferNotOpen);
        }
        let file = self.driver.file(handle).ok_or(Error::FileNotRegistered(handle as usize))?;
        if address == 0 {
            return Err(Error::Argument { what: "the buffer is NULL" });
        }
        let gpu = self.gpu()?;
        let registered = self.driver.buffer(address as u64);
        let temporary;
        let buffer = if let Some(buffer) = &registered {
            buffer.as_ref()
        } else {
            temporary = self.temporary(gpu.as_ref(), address)?;
            &temporary
        };
        let request = Request::checked(direction, &file, buffer, size, file_offset, buffer_offset)?;
        Request { after_default_stream: true, ..request }.run(self, gpu)
    }

    /// What HIP's `hipPeekAtLastError` says in this thread, and nothing else: programs that are linked with this library first come here
    /// after their own calls too.
    pub fn peek_hip_error(&self) -> i32 {
        self.gpu().map_or(0, |gpu| gpu.last_error())
    }

    /// The version that `hipFileGetVersion` reports: major, minor, patch.
    pub fn reported_version(&self) -> [u32; 3] {
        self.config.reported_version
    }

    /// Says why a call failed, for who looks: its caller gets a number only.
    pub fn failed(&self, call: &str, error: &Error) {
        self.log.say(Level::Debug, || format!("{call}: {error}"));
    }

    /// What `hipFileGetStatsL1`, `L2` and `L3` are made of. Needs no open driver.
    pub fn statistics(&self) -> Result<Snapshot, Error> {
        self.stats.snapshot()
    }

    /// The 16 bytes that name a GPU for good, if HIP tells.
    pub fn gpu_uuid(&self, device: i32) -> Option<[u8; 16]> {
        self.gpu().ok()?.uuid(device)
    }

    /// How many files and buffers are registered.
    pub fn registered(&self) -> (usize, usize) {
        self.driver.registered()
    }

    /// Why operations on a file did not take the fastpath, each with how often; `None` if the handle is none.
    pub fn reasons(&self, handle: u64) -> Option<Vec<(Reason, u64)>> {
        Some(self.driver.file(handle)?.reasons())
    }
}
