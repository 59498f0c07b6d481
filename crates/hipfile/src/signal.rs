//! Numbers in memory that streams wait for.
//!
//! An operation has one to itself while it is under way, so that its end lets no other stream go on: `hipStreamPerThread` is
//! another stream in each thread, and the handle of a destroyed stream is given again while the old one still works. The numbers
//! only grow, so that one serves the next operation as soon as its own is over, whether the stream has looked or not.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use fastpath_gpu::{CurrentDevice, Gpu, HipError, RawStream};

use crate::sync::lock;

/// A number, and what it will be when its operation is over.
#[derive(Debug)]
pub(crate) struct Signal {
    end: End,
    device: i32,
}

/// What a stream waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    number: NonNull<u64>,
    value: u64,
}

// SAFETY: the number is memory for any thread and only used as an atomic.
unsafe impl Send for Signal {}

impl Signal {
    /// The end of the operation.
    pub(crate) fn end(&self) -> End {
        self.end
    }
}

impl End {
    /// Has a stream wait for it.
    ///
    /// # Safety
    ///
    /// The stream is one, or null; the numbers are not freed meanwhile.
    pub(crate) unsafe fn await_in(self, gpu: &dyn Gpu, stream: RawStream) -> Result<(), HipError> {
        // SAFETY: the caller's promise; freeing waits for what is in the GPU's streams by then.
        unsafe { gpu.wait_value(stream, self.number, self.value) }
    }
}

/// The numbers that no operation has: as many as there were operations at the same time.
#[derive(Debug, Default)]
pub(crate) struct Signals(Mutex<Vec<Signal>>);

impl Signals {
    /// One for the next operation; `None` if the GPU cannot wait for it.
    pub(crate) fn take(&self, gpu: &dyn Gpu, device: i32) -> Option<Signal> {
        let found = {
            let mut rest = lock(&self.0);
            let place = rest.iter().rposition(|signal| signal.device == device);
            place.map(|place| rest.swap_remove(place))
        };
        let End { number, value } = match found {
            Some(signal) => signal.end,
            None if gpu.can_wait_value(device) => {
                let _current = CurrentDevice::enter(gpu, device).ok()?;
                End { number: gpu.allocate_signal().ok()?, value: 0 }
            }
            None => return None,
        };
        Some(Signal { end: End { number, value: value + 1 }, device })
    }

    /// Lets the stream that waits go on, and takes the number back.
    pub(crate) fn set(&self, signal: Signal) {
        // Whoever sees the number sees it back in its place too.
        let mut rest = lock(&self.0);
        // SAFETY: 8 bytes, aligned, and not freed while an operation has them.
        let number = unsafe { AtomicU64::from_ptr(signal.end.number.as_ptr()) };
        number.store(signal.end.value, Ordering::Release);
        rest.push(signal);
    }

    /// Gives the numbers back to HIP. Waits for the GPU: not while something in its streams waits for this library.
    pub(crate) fn free(&self, gpu: &dyn Gpu) {
        let rest = std::mem::take(&mut *lock(&self.0));
        for signal in rest {
            // SAFETY: nobody has it, its last operation is over, and HIP waits for a stream that has not looked yet. What HIP
            // does not take back is lost.
            let _ = unsafe { gpu.free_signal(signal.end.number) };
        }
    }
}
