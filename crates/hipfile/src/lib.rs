//! Files to GPU memory and back: from the drive directly where the host can, through host memory elsewhere.
//!
//! A request goes one of three ways ([`choose`]): *fastpath*, where the drive writes into the GPU over PCIe; *fallback*, through
//! pinned host memory; or, if the buffer is host memory, a plain system call. Why a request did not take the fastpath is kept with
//! its file.
//!
//! ```no_run
//! use hipfile::{Buffer, DeviceMemory, Driver};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let driver = Driver::open()?;
//! let file = driver.register(std::fs::File::open("/data/model.safetensors")?)?;
//! let mut memory = DeviceMemory::allocate(&driver, 1 << 20)?;
//! let mut buffer = Buffer::new(&driver, &mut memory)?;
//! let bytes = file.read_at(&mut buffer, 0..1 << 20, 0)?; // fewer at the end of the file
//! for (reason, requests) in file.reasons() {
//!     eprintln!("{requests} of them not direct: {}", reason.text());
//! }
//! # drop(bytes); Ok(()) }
//! ```
//!
//! [`Driver::run`] takes many operations at once, a [`Stream`] those of a HIP stream. Nothing is linked with HIP: it is loaded when
//! it is first needed, and [`Error::NoHip`] says what is missing.
//!
//! It lives in other people's programs: it starts no thread and loads nothing before it is needed, holds no lock during I/O, and
//! does not panic. It draws nothing and knows no C: see `hipfile-capi`. It does not judge kernels: see `verdict`.

// Addresses, sizes and file offsets are taken for each other.
const _: () = assert!(size_of::<usize>() == size_of::<u64>());

mod api;
mod batch;
mod bounce;
mod buffer;
pub mod choose;
pub mod config;
mod descriptor;
mod driver;
pub mod error;
mod fallback;
mod fastpath;
mod file;
mod filesystem;
mod filling;
pub mod gate;
pub mod log;
pub mod parameters;
mod process;
mod queue;
pub mod raw;
mod registry;
mod runtime;
mod signal;
pub mod stats;
mod stream;
mod sync;
#[cfg(test)]
mod tests;
mod thread;
mod transfer;
pub mod yardstick;

pub use api::{Buffer, DeviceMemory, Driver, File, Operation, Part, Stream};
pub use error::Error;
pub use fastpath_gpu::RawStream;
pub use runtime::{Options, Runtime};
pub use transfer::MAX_SIZE;
