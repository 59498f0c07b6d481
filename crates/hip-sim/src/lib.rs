//! A simulated HIP runtime: memory, copies, streams, events and AMD's direct storage calls on a machine without a GPU.
//!
//! Built as a C library that stands where `libamdhip64.so` would, it runs clients of HIP in development, in continuous
//! integration and in the lab, and fails on request in every way that matters to direct storage. It says on stderr that
//! it is a simulation, exports the symbol `hipsim_is_a_simulation`, and has the real library's file names only in a
//! folder that [`layout::lay_out`] made for a test.
//!
//! Device memory cannot be read or written by mistake: a device pointer is an address without access, and the simulator
//! has the same pages at an address of its own.
//!
//! It runs no device code: `hipLaunchKernel` says "not supported".
//!
//! `unsafe` is kept to what a C interface and memory mappings need; no panic leaves it.

mod ais;
mod api;
mod config;
pub mod control;
mod error;
mod fault;
pub mod layout;
mod memory;
mod pace;
mod runtime;
mod stream;

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Says one line on stderr; a closed stderr is no failure.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "hip-sim: {line}");
}

/// Locks, also after a panic elsewhere: what the mutexes here guard is valid after every single write.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
