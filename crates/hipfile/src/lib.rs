//! Files to GPU memory and back: from the drive directly where the host can, through host memory elsewhere.
//!
//! A request goes one of three ways ([`choose`]): *fastpath*, where the drive writes into the GPU over PCIe; *fallback*, through
//! pinned host memory; or, if the buffer is host memory, a plain system call. Why a request did not take the fastpath is kept with
//! its file.
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
pub use runtime::{Options, Runtime};
pub use transfer::MAX_SIZE;
