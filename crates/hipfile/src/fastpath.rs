//! Drive to GPU: one request to the driver, and what its answer means.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;

use fastpath_gpu::{Gpu, HipError, Transfer};
use rustix::io::Errno;

use crate::choose::Reason;
use crate::error::Error;
use crate::transfer::Request;

/// How a request to the driver ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// So many bytes moved; fewer than asked for at the end of the file.
    Moved(usize),
    /// The driver cannot do it; the fallback can, from the first byte that is not known to have moved.
    Refused { reason: Reason, errno: Errno, known: usize },
    /// It failed, and would fail again.
    Failed { reason: Reason, error: Error, known: usize },
}

const CALL: &str = "hipAmdFileRead/Write";

/// Asks the driver.
pub(crate) fn run(gpu: &dyn Gpu, request: &Request<'_>) -> Outcome {
    let Some(fd) = request.file.direct() else { return absent() };
    let address = request.buffer.address + request.buffer_offset;
    // SAFETY: the range was found to lie in the buffer, whose owner keeps it allocated.
    let transfer = unsafe {
        gpu.transfer(
            request.direction,
            fd.as_raw_fd(),
            address,
            request.size as u64,
            request.file_offset.cast_signed(),
        )
    };
    transfer.map_or_else(absent, |transfer| judge(transfer, request.size))
}

fn absent() -> Outcome {
    Outcome::Refused { reason: Reason::NoInterface, errno: Errno::NOTTY, known: 0 }
}

/// What an answer means. If the driver does not know the request (`ENOTTY`), status and count are what the request held there, so
/// they count for nothing. An errno of the driver comes before HIP's own word, which is only "unknown".
pub(crate) fn judge(transfer: Transfer, size: usize) -> Outcome {
    let not_known = transfer.error != 0 && transfer.errno == Errno::NOTTY.raw_os_error();
    if not_known {
        return refused(Errno::NOTTY, Reason::NoDriver, 0);
    }
    // A handle that was left where the count should be is larger than any request.
    let known = usize::try_from(transfer.copied).ok().filter(|copied| *copied <= size).unwrap_or(0);
    if transfer.status != 0 {
        let errno = transfer.status.unsigned_abs();
        // Beyond what the kernel has for errors it is no errno.
        let errno = if errno < 4096 { Errno::from_raw_os_error(errno as i32) } else { Errno::IO };
        return match errno {
            Errno::NODEV => refused(errno, Reason::Unreachable, known),
            Errno::REMOTEIO => refused(errno, Reason::RemoteIo, known),
            Errno::INVAL => refused(errno, Reason::Refused, known),
            Errno::NOTTY => refused(errno, Reason::NoDriver, 0),
            Errno::OPNOTSUPP => refused(errno, Reason::NotSupported, known),
            Errno::NOMEM if known == 0 => refused(errno, Reason::OutOfMemory, 0),
            errno => {
                let error = Error::System { call: CALL, errno };
                Outcome::Failed { reason: Reason::Failed, error, known }
            }
        };
    }
    if transfer.error != 0 {
        let error = Error::Hip { call: CALL, error: HipError(transfer.error) };
        return Outcome::Failed { reason: Reason::Hip, error, known: 0 };
    }
    if transfer.copied > size as u64 {
        let error = Error::Hip { call: CALL, error: HipError::UNKNOWN };
        return Outcome::Failed { reason: Reason::Hip, error, known: 0 };
    }
    Outcome::Moved(known)
}

fn refused(errno: Errno, reason: Reason, known: usize) -> Outcome {
    Outcome::Refused { reason, errno, known }
}
