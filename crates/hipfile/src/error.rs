//! What can go wrong, with the facts, and the numbers hipFile has for it.

use fastpath_gpu::{HipError, LoadError, MemoryKind};
use rustix::io::Errno;

use crate::choose::Reason;

/// Why a call failed. [`Error::code`] is hipFile's number for it; [`Error::errno`] is there if hipFile reports it as a system error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The driver was not opened, or was closed as often as opened.
    #[error("the driver is not open")]
    NotOpen,
    /// The same in `hipFileRead` and `hipFileWrite`, which report it as `EINVAL`.
    #[error("the driver is not open: no file or buffer is registered")]
    TransferNotOpen,
    /// The same in `hipFileBufDeregister`, which reports it as closing.
    #[error("the driver is not open: no buffer is registered")]
    Closing,
    /// The environment forbids both ways.
    #[error(
        "HIPFILE_FORCE_COMPAT_MODE=true forbids the fastpath and HIPFILE_ALLOW_COMPAT_MODE=false the fallback: no I/O is possible"
    )]
    NoWayAllowed,
    /// There is no HIP runtime.
    #[error("no HIP runtime: {0}")]
    NoHip(LoadError),
    /// HIP failed.
    #[error("{call}: {error}")]
    Hip {
        /// What was asked of it.
        call: &'static str,
        /// What it said.
        error: HipError,
    },
    /// A system call failed.
    #[error("{call}: {errno}")]
    System {
        /// Which.
        call: &'static str,
        /// What it said.
        errno: Errno,
    },
    /// A handle type other than a file descriptor.
    #[error("file handles of type {0} are not supported; expected 1, a file descriptor")]
    HandleType(i32),
    /// An argument is null, out of range or makes no sense.
    #[error("{what}")]
    Argument {
        /// Which, and what is expected.
        what: &'static str,
    },
    /// A parameter's value that the library cannot keep to.
    #[error("{what} is {value}; expected {lowest} to {highest}")]
    Limit {
        /// Which.
        what: &'static str,
        /// What it should become.
        value: u64,
        /// The least that can be.
        lowest: u64,
        /// The most.
        highest: u64,
    },
    /// An offset below zero.
    #[error("the {what} offset is {offset}; expected zero or more")]
    NegativeOffset {
        /// `file` or `buffer`.
        what: &'static str,
        /// It.
        offset: i64,
    },
    /// The request reaches beyond the buffer.
    #[error("{size} bytes at offset {offset} reach beyond the buffer, which has {length} bytes")]
    BeyondBuffer {
        /// Bytes asked for.
        size: usize,
        /// Where in the buffer.
        offset: i64,
        /// Its length.
        length: usize,
    },
    /// A buffer reaches beyond the allocation that it is in.
    #[error(
        "{length} bytes at {address:#x} reach beyond their allocation: {allocated} bytes at {base:#x}"
    )]
    BeyondAllocation {
        /// The buffer.
        address: usize,
        /// Its length.
        length: usize,
        /// The allocation.
        base: usize,
        /// Its length.
        allocated: usize,
    },
    /// Memory that HIP does not know, or of a kind that no path serves.
    #[error(
        "memory at {address:#x} is of kind {kind:?}; expected memory that HIP allocated or registered"
    )]
    MemoryKind {
        /// Where.
        address: usize,
        /// Its kind.
        kind: MemoryKind,
    },
    /// HIP does not know the pointer at all.
    #[error("HIP knows no memory at {address:#x} ({error})")]
    UnknownPointer {
        /// Where.
        address: usize,
        /// What it said.
        error: HipError,
    },
    /// A buffer with this base is registered.
    #[error("a buffer at {0:#x} is registered already")]
    BufferRegistered(usize),
    /// None is.
    #[error("no buffer at {0:#x} is registered")]
    BufferNotRegistered(usize),
    /// It is, and I/O uses it.
    #[error("I/O uses the buffer at {0:#x}")]
    BufferInUse(usize),
    /// The file behind this descriptor is registered by it.
    #[error("descriptor {0} is registered already")]
    FileRegistered(i32),
    /// The handle stands for no registered file.
    #[error("{0:#x} is not the handle of a registered file")]
    FileNotRegistered(usize),
    /// Fastpath and fallback both refuse.
    #[error("the fastpath cannot be used: {}; the fallback is not allowed", .0.text())]
    AllRefused(Reason),
    /// The stream is registered, or is not, or belongs to another GPU.
    #[error("{what}")]
    Stream {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The handle stands for no batch.
    #[error("{0:#x} is not the handle of a batch")]
    NoBatch(usize),
    /// More operations than the batch has room for.
    #[error("{asked} operations do not fit: the batch has room for {free}")]
    BatchFull {
        /// How many were submitted.
        asked: usize,
        /// How many fit.
        free: usize,
    },
    /// The statistics are switched off or could not be set up.
    #[error("there are no statistics: {what}")]
    NoStatistics {
        /// Why.
        what: &'static str,
    },
    /// What an operation left that ran elsewhere: a negative code of hipFile, a negative errno, or -1 if only that is known.
    #[error("the operation ended with {}: {}", .0, reported(*.0))]
    Reported(isize),
    /// The library is being unloaded.
    #[error("the library was shut down")]
    ShutDown,
}

impl Error {
    /// The number of `hipFileOpError_t`, always positive.
    pub fn code(&self) -> i32 {
        match self {
            Self::NotOpen | Self::TransferNotOpen => 5001,
            Self::Limit { .. } => 5003,
            Self::Closing | Self::ShutDown => 5006,
            Self::NoHip(_) => 5007,
            Self::Hip { .. } => 5011,
            Self::MemoryKind { .. } => 5013,
            Self::BeyondAllocation { .. } => 5014,
            Self::AllRefused(reason) if *reason == Reason::NoDirectIo => 5020,
            Self::AllRefused(_) | Self::HandleType(_) => 5008,
            Self::Argument { .. }
            | Self::NegativeOffset { .. }
            | Self::BeyondBuffer { .. }
            | Self::UnknownPointer { .. }
            | Self::Stream { .. }
            | Self::NoBatch(_) => 5022,
            Self::BufferRegistered(_) => 5023,
            Self::BufferNotRegistered(_) => 5024,
            Self::FileNotRegistered(_) => 5027,
            Self::FileRegistered(_) => 5028,
            Self::Reported(result) if *result <= -5000 => -(*result as i32),
            Self::BufferInUse(_) | Self::NoStatistics { .. } | Self::Reported(_) => 5030,
            Self::NoWayAllowed => 5034,
            Self::BatchFull { .. } => 5037,
            Self::System { errno, .. } => match *errno {
                Errno::BADF | Errno::INVAL => 5022,
                Errno::ACCESS | Errno::PERM => 5025,
                Errno::MFILE | Errno::NFILE => 5031,
                _ => 5030,
            },
        }
    }

    /// The errno, for what `hipFileRead` and `hipFileWrite` report as -1.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::System { errno, .. } => Some(errno.raw_os_error()),
            Self::TransferNotOpen | Self::NegativeOffset { .. } => {
                Some(Errno::INVAL.raw_os_error())
            }
            _ => None,
        }
    }

    /// The `hipError_t` behind [`Error::code`] 5011; zero otherwise.
    pub fn hip(&self) -> i32 {
        match self {
            Self::Hip { error, .. } => error.0,
            _ => 0,
        }
    }

    /// What an asynchronous operation leaves in its byte count, and what `hipFileRead` returns: -1 for a system error, else the
    /// negative code.
    pub fn result(&self) -> isize {
        match self.errno() {
            Some(_) => -1,
            None => -(self.code() as isize),
        }
    }

    /// What a batch event holds: the negative errno, else the negative code.
    pub fn event(&self) -> isize {
        match self.errno() {
            Some(errno) => -(errno as isize),
            None => -(self.code() as isize),
        }
    }
}

fn reported(result: isize) -> String {
    match i32::try_from(-result) {
        Ok(code) if code >= 5000 => text(code).to_string_lossy().into_owned(),
        Ok(errno) if errno > 1 => std::io::Error::from_raw_os_error(errno).to_string(),
        _ => "a system error".to_owned(),
    }
}

/// The fixed text for a number of `hipFileOpError_t`, as `hipFileGetOpErrorString` gives it.
pub const fn text(code: i32) -> &'static std::ffi::CStr {
    match code {
        0 => c"success",
        5001 => c"the driver is not open",
        5002 => c"a driver property is invalid",
        5003 => c"a driver property has a value that is not supported",
        5004 => c"library and driver versions do not fit",
        5005 => c"the driver's version cannot be read",
        5006 => c"the driver is closing or closed",
        5007 => c"this platform is not supported: there is no usable HIP runtime",
        5008 => c"I/O on this file is not supported",
        5009 => c"this GPU is not supported",
        5010 => c"the driver failed",
        5011 => c"HIP failed",
        5012 => c"the GPU pointer is invalid",
        5013 => c"memory of this type cannot be used",
        5014 => c"the range reaches beyond the allocation",
        5015 => c"the HIP context does not fit",
        5016 => c"the range reaches beyond the pinned buffer",
        5017 => c"the range reaches beyond the mapped region",
        5018 => c"files of this type are not supported",
        5019 => c"the file's open flags are not supported",
        5020 => c"the file cannot be used with O_DIRECT",
        5022 => c"an argument is invalid",
        5023 => c"the memory is registered already",
        5024 => c"the memory is not registered",
        5025 => c"permission denied",
        5026 => c"the driver is open already",
        5027 => c"the file handle is not registered",
        5028 => c"the file handle is registered already",
        5029 => c"the GPU was not found",
        5030 => c"internal error",
        5031 => c"no new file descriptor could be had",
        5033 => c"the driver could not be set up",
        5034 => c"I/O is disabled",
        5035 => c"the batch could not be submitted",
        5036 => c"GPU memory could not be pinned",
        5037 => c"the batch is full",
        5038 => c"asynchronous I/O is not supported",
        _ => c"unknown hipFile error",
    }
}
