//! The HIP runtime, loaded at run time, behind a trait.
//!
//! Nothing links `libamdhip64`: a program without it can still ask for versions and properties, and is told what is missing when
//! it does I/O. [`Hip::load`] takes the library that the program has loaded already, else the one its loader finds. Everything
//! that talks to a GPU goes through [`Gpu`], so that it can be tested against another one.
//!
//! It moves bytes and answers questions; it decides nothing: see `hipfile`.

mod hip;
mod load;

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

pub use hip::Hip;
pub use load::{LoadError, variable};

/// A failed HIP call: its `hipError_t`.
/// Source: <https://rocm.docs.amd.com/projects/HIP/en/latest/reference/error_codes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("HIP error {}{}", .0, name(*.0))]
pub struct HipError(pub i32);

impl HipError {
    /// `hipErrorInvalidValue`.
    pub const INVALID_VALUE: Self = Self(1);
    /// `hipErrorOutOfMemory`.
    pub const OUT_OF_MEMORY: Self = Self(2);
    /// `hipErrorNotInitialized`.
    pub const NOT_INITIALIZED: Self = Self(3);
    /// `hipErrorNoDevice`.
    pub const NO_DEVICE: Self = Self(100);
    /// `hipErrorNotFound`.
    pub const NOT_FOUND: Self = Self(500);
    /// `hipErrorNotSupported`.
    pub const NOT_SUPPORTED: Self = Self(801);
    /// `hipErrorUnknown`.
    pub const UNKNOWN: Self = Self(999);
}

const fn name(code: i32) -> &'static str {
    match code {
        1 => " (invalid value)",
        2 => " (out of memory)",
        3 => " (not initialized)",
        100 => " (no device)",
        101 => " (invalid device)",
        500 => " (not found)",
        700 => " (illegal address)",
        801 => " (not supported)",
        _ => "",
    }
}

/// What a pointer points to, `hipMemoryType` of HIP 6 and later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Memory that HIP does not know: the program's own.
    Unregistered,
    /// Host memory that HIP allocated or registered.
    Host,
    /// Memory of a GPU.
    Device,
    /// Memory that moves between host and GPU.
    Managed,
    /// Memory that both reach where it is.
    Unified,
    /// Anything else: the number HIP gave.
    Other(u32),
}

impl MemoryKind {
    /// The kind with this number.
    pub const fn from_raw(raw: u32) -> Self {
        match raw {
            0 => Self::Unregistered,
            1 => Self::Host,
            2 => Self::Device,
            3 => Self::Managed,
            11 => Self::Unified,
            other => Self::Other(other),
        }
    }

    /// Whether the CPU reads and writes it directly.
    pub const fn is_host_accessible(self) -> bool {
        matches!(self, Self::Unregistered | Self::Host | Self::Managed | Self::Unified)
    }
}

/// What HIP says about a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// What it points to.
    pub kind: MemoryKind,
    /// The GPU it belongs to, by HIP's number.
    pub device: i32,
}

/// A stream of a GPU; null is the default one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawStream(pub *mut c_void);

// SAFETY: a handle, which HIP takes from any thread.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}

/// A mark in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawEvent(pub *mut c_void);

// SAFETY: a handle, which HIP takes from any thread.
unsafe impl Send for RawEvent {}
// SAFETY: as above.
unsafe impl Sync for RawEvent {}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the file to the GPU.
    Read,
    /// From the GPU to the file.
    Write,
}

/// How a call of AMD's direct storage interface ended. The three are what the call left; which of them counts is the
/// caller's to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The `hipError_t`, 0 for success.
    pub error: i32,
    /// The driver's status: 0 or a negative errno. Garbage if the driver does not know the request, `errno` is `ENOTTY` then.
    pub status: i32,
    /// Bytes moved. Garbage in the same case.
    pub copied: u64,
    /// The thread's `errno` after the call, which was zero before.
    pub errno: i32,
}

/// A function that a stream calls when it gets there.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

/// What is needed of a GPU's runtime. Addresses are device addresses; lengths are bytes.
pub trait Gpu: Send + Sync + fmt::Debug {
    /// What a pointer points to.
    fn attributes(&self, address: usize) -> Result<Attributes, HipError>;

    /// First byte and length of the allocation that an address lies in.
    fn allocation(&self, address: usize) -> Result<(usize, usize), HipError>;

    /// How many GPUs there are.
    fn device_count(&self) -> Result<i32, HipError>;

    /// The calling thread's current GPU.
    fn device(&self) -> Result<i32, HipError>;

    /// Makes a GPU the calling thread's current one.
    fn set_device(&self, device: i32) -> Result<(), HipError>;

    /// A stream of the current GPU that does not wait for the default stream.
    fn create_stream(&self) -> Result<RawStream, HipError>;

    /// Ends a stream of [`Gpu::create_stream`], once what is in it is done.
    ///
    /// # Safety
    ///
    /// The stream came from [`Gpu::create_stream`] and is not used again.
    unsafe fn destroy_stream(&self, stream: RawStream) -> Result<(), HipError>;

    /// Waits until everything in the stream is done.
    ///
    /// # Safety
    ///
    /// The stream is one, or null.
    unsafe fn synchronize(&self, stream: RawStream) -> Result<(), HipError>;

    /// The GPU a stream belongs to.
    ///
    /// # Safety
    ///
    /// The stream is one, or null.
    unsafe fn stream_device(&self, stream: RawStream) -> Result<i32, HipError>;

    /// An event, without timing.
    fn create_event(&self) -> Result<RawEvent, HipError>;

    /// Ends an event.
    ///
    /// # Safety
    ///
    /// The event came from [`Gpu::create_event`] and is not used again.
    unsafe fn destroy_event(&self, event: RawEvent) -> Result<(), HipError>;

    /// Marks the end of what is in the stream now.
    ///
    /// # Safety
    ///
    /// Event and stream are ones.
    unsafe fn record_event(&self, event: RawEvent, stream: RawStream) -> Result<(), HipError>;

    /// Waits until the stream has reached the mark.
    ///
    /// # Safety
    ///
    /// The event is one.
    unsafe fn wait_event(&self, event: RawEvent) -> Result<(), HipError>;

    /// Copies between host and GPU memory, in the order of the stream. Returns before it is done.
    ///
    /// # Safety
    ///
    /// Both ranges are valid until the stream has passed the copy; host memory is pinned, or the copy is done on return.
    unsafe fn copy(
        &self,
        direction: Direction,
        device: usize,
        host: *mut u8,
        length: usize,
        stream: RawStream,
    ) -> Result<(), HipError>;

    /// Copies between host and GPU memory, after what is in the stream, and returns when it is done.
    ///
    /// # Safety
    ///
    /// Both ranges are valid, and the stream is one.
    unsafe fn copy_now(
        &self,
        direction: Direction,
        device: usize,
        host: *mut u8,
        length: usize,
        stream: RawStream,
    ) -> Result<(), HipError> {
        // SAFETY: the caller's promise, and the copy is done when this returns.
        unsafe {
            self.copy(direction, device, host, length, stream)?;
            self.synchronize(stream)
        }
    }

    /// Pinned host memory.
    fn allocate_host(&self, length: usize) -> Result<NonNull<u8>, HipError>;

    /// Gives it back.
    ///
    /// # Safety
    ///
    /// It came from [`Gpu::allocate_host`], no copy uses it, and it is not used again.
    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<(), HipError>;

    /// Memory of the current GPU.
    fn allocate_device(&self, length: usize) -> Result<NonNull<u8>, HipError>;

    /// Gives it back, once nothing on the GPU uses it.
    ///
    /// # Safety
    ///
    /// It came from [`Gpu::allocate_device`] and is not used again.
    unsafe fn free_device(&self, memory: NonNull<u8>) -> Result<(), HipError>;

    /// Whether there is no GPU behind it.
    fn is_simulation(&self) -> bool {
        false
    }

    /// Has the stream call a function when it gets there.
    ///
    /// # Safety
    ///
    /// The function may be called with `data` from another thread, once.
    unsafe fn launch(
        &self,
        stream: RawStream,
        function: HostFunction,
        data: *mut c_void,
    ) -> Result<(), HipError>;

    /// Whether streams of a GPU can wait for a number in memory.
    fn can_wait_value(&self, device: i32) -> bool;

    /// Memory for such a number, 8 bytes that the CPU writes too, zero at first. It belongs to the current GPU.
    fn allocate_signal(&self) -> Result<NonNull<u64>, HipError>;

    /// Gives it back.
    ///
    /// # Safety
    ///
    /// It came from [`Gpu::allocate_signal`], no stream waits for it, and it is not used again.
    unsafe fn free_signal(&self, signal: NonNull<u64>) -> Result<(), HipError>;

    /// Has the stream wait until the number is at least `value`.
    ///
    /// # Safety
    ///
    /// The signal came from [`Gpu::allocate_signal`] and stays until the stream has passed.
    unsafe fn wait_value(
        &self,
        stream: RawStream,
        signal: NonNull<u64>,
        value: u64,
    ) -> Result<(), HipError>;

    /// The 16 bytes that name a GPU for good; `None` if the runtime does not tell.
    fn uuid(&self, device: i32) -> Option<[u8; 16]>;

    /// The calling thread's last `hipError_t`, which stays; zero if there was none or the runtime does not tell.
    fn last_error(&self) -> i32 {
        0
    }

    /// A GPU's PCI address as `sysfs` writes it, `0000:03:00.0`; `None` if the runtime does not tell.
    fn pci_address(&self, device: i32) -> Option<String>;

    /// Whether both functions of AMD's direct storage interface are there.
    fn has_direct_storage(&self) -> bool;

    /// Moves bytes between a file and GPU memory without the CPU; `None` if the interface is not there.
    ///
    /// # Safety
    ///
    /// `address..address + length` is GPU memory that stays allocated for the call.
    unsafe fn transfer(
        &self,
        direction: Direction,
        fd: i32,
        address: usize,
        length: u64,
        offset: i64,
    ) -> Option<Transfer>;

    /// `hipRuntimeGetVersion`: major · 10⁷ + minor · 10⁵ + patch.
    fn version(&self) -> i32;
}

/// Makes a GPU current for as long as it lives, and the one that was current before current again.
#[derive(Debug)]
pub struct CurrentDevice<'a> {
    gpu: &'a dyn Gpu,
    before: Option<i32>,
}

impl<'a> CurrentDevice<'a> {
    /// Makes `device` the calling thread's current GPU.
    pub fn enter(gpu: &'a dyn Gpu, device: i32) -> Result<Self, HipError> {
        let before = gpu.device()?;
        if before == device {
            return Ok(Self { gpu, before: None });
        }
        gpu.set_device(device)?;
        Ok(Self { gpu, before: Some(before) })
    }
}

impl Drop for CurrentDevice<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // It was current a moment ago: nothing better can be done.
            let _ = self.gpu.set_device(before);
        }
    }
}
