//! Functions of `ais-stats`: the statistics of another process. Exported, and in no public header.

use std::fs::File;
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd as _;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hipfile::stats::Watch;

use crate::door::quietly;

/// `hipFileStatsContext_t`, opaque.
#[derive(Debug)]
pub struct Context(Mutex<Watch>);

/// `hipFileStatsError_t`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went well.
    Success = 0,
    /// An argument is NULL, or no process has this id.
    InvalidArgument = 1,
    /// The process does not exist.
    NotFound = 2,
    /// It has no statistics for this user; of a poll: it still runs.
    NotAccessible = 3,
    /// The report could not be written.
    ReportFailed = 4,
}

fn run(body: impl FnOnce() -> Result<(), Outcome>) -> Outcome {
    quietly(Outcome::ReportFailed, || body().err().unwrap_or(Outcome::Success))
}

fn with<T>(
    context: *const Context,
    body: impl FnOnce(&mut Watch) -> Result<T, Outcome>,
) -> Result<T, Outcome> {
    // SAFETY: the caller's promise: it came from `hipFileStatsCreateContext` and is not closed yet.
    let context = unsafe { context.as_ref() }.ok_or(Outcome::InvalidArgument)?;
    body(&mut context.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// `hipFileStatsCreateContext`
///
/// # Safety
///
/// `context` is NULL or a place for the address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileStatsCreateContext(
    context: *mut *mut Context,
    pid: i32,
) -> Outcome {
    run(|| {
        let context = NonNull::new(context).ok_or(Outcome::InvalidArgument)?;
        if pid <= 0 {
            return Err(Outcome::InvalidArgument);
        }
        let watch = Watch::new(pid).map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH) => Outcome::NotFound,
            _ => Outcome::NotAccessible,
        })?;
        let made = Box::into_raw(Box::new(Context(Mutex::new(watch))));
        // SAFETY: the caller's promise.
        unsafe { context.write(made) };
        Ok(())
    })
}

/// `hipFileStatsCloseContext`
///
/// # Safety
///
/// `context` is NULL or came from [`hipFileStatsCreateContext`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileStatsCloseContext(context: *mut Context) {
    quietly((), || {
        if !context.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(context) });
        }
    });
}

/// `hipFileStatsConnectToTargetProcess`: waits until the process has used hipFile.
///
/// # Safety
///
/// `context` is NULL or came from [`hipFileStatsCreateContext`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileStatsConnectToTargetProcess(context: *mut Context) -> Outcome {
    run(|| with(context, |watch| watch.connect(None).map_err(|_| Outcome::NotAccessible)))
}

/// `hipFileStatsPollTargetProcess`: success if the process has ended.
///
/// # Safety
///
/// As for [`hipFileStatsConnectToTargetProcess`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileStatsPollTargetProcess(
    context: *const Context,
    block: u8,
) -> Outcome {
    run(|| {
        with(context, |watch| {
            let most = (block == 0).then_some(Duration::ZERO);
            match watch.wait_for_end(most) {
                Ok(true) => Ok(()),
                Ok(false) | Err(_) => Err(Outcome::NotAccessible),
            }
        })
    })
}

/// `hipFileStatsGenerateReport`: text to a descriptor.
///
/// # Safety
///
/// As for [`hipFileStatsConnectToTargetProcess`]; `fd` is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileStatsGenerateReport(context: *const Context, fd: i32) -> Outcome {
    run(|| {
        if fd < 0 {
            return Err(Outcome::InvalidArgument);
        }
        let snapshot = with(context, |watch| match watch.snapshot() {
            Ok(Some(snapshot)) => Ok(snapshot),
            Ok(None) | Err(_) => Err(Outcome::ReportFailed),
        })?;
        // SAFETY: borrowed from the caller for this call, and not closed.
        let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        file.write_all(snapshot.report().as_bytes()).map_err(|_| Outcome::ReportFailed)
    })
}
