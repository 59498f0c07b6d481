//! Memory that I/O goes to or comes from.

use fastpath_gpu::{Gpu, HipError, MemoryKind};

use crate::error::Error;

/// A range of memory, as HIP knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Buffer {
    /// Its first byte.
    pub(crate) address: usize,
    /// Bytes.
    pub(crate) length: usize,
    /// Whose memory it is.
    pub(crate) kind: MemoryKind,
    /// The GPU it belongs to.
    pub(crate) device: i32,
}

/// Longer than any memory, and no sum with an offset overflows.
const UNBOUNDED: usize = isize::MAX.unsigned_abs();

impl Buffer {
    /// A buffer to be registered: HIP's "invalid value" means the argument.
    pub(crate) fn register(gpu: &dyn Gpu, address: usize, length: usize) -> Result<Self, Error> {
        Self::look_up(gpu, address, Some(length)).map_err(|error| match error {
            Error::Hip {
                error: error @ (HipError::INVALID_VALUE | HipError::NOT_FOUND), ..
            } => Error::UnknownPointer { address, error },
            error => error,
        })
    }

    /// A buffer that is not registered: from the address to the end of its allocation.
    pub(crate) fn temporary(gpu: &dyn Gpu, address: usize) -> Result<Self, Error> {
        Self::look_up(gpu, address, None)
    }

    fn look_up(gpu: &dyn Gpu, address: usize, length: Option<usize>) -> Result<Self, Error> {
        let hip = |call| move |error| Error::Hip { call, error };
        let found = gpu.attributes(address).map_err(hip("hipPointerGetAttributes"))?;
        let buffer = |length| Self { address, length, kind: found.kind, device: found.device };
        let is_host = match found.kind {
            MemoryKind::Device => false,
            MemoryKind::Host | MemoryKind::Managed | MemoryKind::Unified => true,
            kind => return Err(Error::MemoryKind { address, kind }),
        };
        let (base, allocated) = match gpu.allocation(address) {
            Ok(found) => found,
            // HIP need not know the bounds of host memory; the kernel does.
            Err(_) if is_host => return Ok(buffer(length.unwrap_or(UNBOUNDED))),
            Err(error) => return Err(hip("hipMemGetAddressRange")(error)),
        };
        let inside = address.checked_sub(base).and_then(|skipped| allocated.checked_sub(skipped));
        match (inside, length) {
            (Some(rest), None) => Ok(buffer(rest)),
            (Some(rest), Some(length)) if length <= rest => Ok(buffer(length)),
            _ => {
                let length = length.unwrap_or_default();
                Err(Error::BeyondAllocation { address, length, base, allocated })
            }
        }
    }
}
