//! Many operations with one call.

use std::ffi::{c_uint, c_void};
use std::time::Duration;

use hipfile::Error;
use hipfile::raw::{Entry, Event, MOST_IN_BATCH};

use crate::abi::{IoEvents, IoParams, Status};
use crate::door::{quietly, status};
use crate::files::{number, pointer};
use crate::place::place;

/// `hipFileBatchIOSetUp`
///
/// # Safety
///
/// `batch` is NULL or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileBatchIOSetUp(batch: *mut *mut c_void, most: c_uint) -> Status {
    status("hipFileBatchIOSetUp", |runtime| {
        let batch = place(batch, "the place for the batch is NULL")?;
        let handle = runtime.batch_set_up(most)?;
        // SAFETY: the caller's promise.
        unsafe { batch.write(pointer(handle)) };
        Ok(())
    })
}

/// `hipFileBatchIOSubmit`
///
/// # Safety
///
/// `entries` is NULL or so many records. The memory they name stays until they are over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileBatchIOSubmit(
    batch: *mut c_void,
    count: c_uint,
    entries: *const IoParams,
    flags: c_uint,
) -> Status {
    let _ = flags;
    status("hipFileBatchIOSubmit", |runtime| {
        let entries = place(entries, "the operations are NULL")?;
        // One more than fits is refused like any number more.
        let count = count.min(MOST_IN_BATCH + 1) as usize;
        // SAFETY: the caller's promise.
        let entries = unsafe { std::slice::from_raw_parts(entries.as_ptr(), count) };
        let entries: Vec<Entry> = entries.iter().map(entry).collect();
        // SAFETY: the caller's promise.
        unsafe { runtime.batch_submit(number(batch), &entries) }
    })
}

fn entry(params: &IoParams) -> Entry {
    Entry {
        mode: params.mode.cast_signed(),
        opcode: params.opcode.cast_signed(),
        file: number(params.fh),
        buffer: params.device_base.addr(),
        buffer_offset: params.device_offset,
        file_offset: params.file_offset,
        size: params.size,
        cookie: params.cookie.expose_provenance(),
    }
}

/// `hipFileBatchIOGetStatus`
///
/// # Safety
///
/// `count` is NULL or a number, `events` NULL or places for so many records, `timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipFileBatchIOGetStatus(
    batch: *mut c_void,
    least: c_uint,
    count: *mut c_uint,
    events: *mut IoEvents,
    timeout: *const libc::timespec,
) -> Status {
    status("hipFileBatchIOGetStatus", |runtime| {
        let events = place(events, "the place for events is NULL")?;
        let count = place(count, "the number of events is NULL")?;
        let timeout = if timeout.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            Some(duration(unsafe { place(timeout, "the timeout is no time")?.read() })?)
        };
        // SAFETY: the caller's promise.
        let most = unsafe { count.read() };
        let found = runtime.batch_status(number(batch), least, most, timeout)?;
        for (index, event) in found.iter().enumerate() {
            // SAFETY: the caller's promise: no more were asked for than there are places.
            unsafe { events.add(index).write(told(event)) };
        }
        // SAFETY: the caller's promise.
        unsafe { count.write(c_uint::try_from(found.len()).unwrap_or(most)) };
        Ok(())
    })
}

fn duration(time: libc::timespec) -> Result<Duration, Error> {
    let nanos = u32::try_from(time.tv_nsec).ok().filter(|nanos| *nanos < 1_000_000_000);
    match (u64::try_from(time.tv_sec), nanos) {
        (Ok(seconds), Some(nanos)) => Ok(Duration::new(seconds, nanos)),
        _ => Err(Error::Argument {
            what: "the timeout is no time; expected seconds from 0 and nanoseconds below 1000000000",
        }),
    }
}

fn told(event: &Event) -> IoEvents {
    IoEvents {
        cookie: std::ptr::with_exposed_provenance_mut(event.cookie),
        status: event.status as c_uint,
        ret: event.result.cast_unsigned(),
    }
}

/// `hipFileBatchIOCancel`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileBatchIOCancel(batch: *mut c_void) -> Status {
    status("hipFileBatchIOCancel", |runtime| runtime.batch_cancel(number(batch)))
}

/// `hipFileBatchIODestroy`
#[unsafe(no_mangle)]
pub extern "C" fn hipFileBatchIODestroy(batch: *mut c_void) {
    quietly((), || hipfile::raw::runtime().batch_destroy(number(batch)));
}
