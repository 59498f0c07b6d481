//! The calls that take addresses.
#![allow(unsafe_code)]

use crate::{Error, Runtime};

pub(crate) fn read(
    runtime: &Runtime,
    handle: u64,
    buffer: usize,
    size: usize,
    file: i64,
    offset: i64,
) -> Result<usize, Error> {
    // SAFETY: tests use host memory from one thread at a time.
    unsafe { runtime.read(handle, buffer, size, file, offset) }
}

pub(crate) fn write(
    runtime: &Runtime,
    handle: u64,
    buffer: usize,
    size: usize,
    file: i64,
    offset: i64,
) -> Result<usize, Error> {
    // SAFETY: as above.
    unsafe { runtime.write(handle, buffer, size, file, offset) }
}
