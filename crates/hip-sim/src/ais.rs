//! Direct storage: `hipAmdFileRead` and `hipAmdFileWrite`, with the checks of the driver below them.
//!
//! The file's own pread and pwrite move the bytes between the file and the simulator's mapping of the device memory: with
//! `O_DIRECT` and PCI peer-to-peer memory that is a real peer-to-peer transfer.

use std::ffi::{c_int, c_void};

use crate::config::Ais;
use crate::error::{Error, Result};
use crate::fault::{self, Action, Corruption};
use crate::memory::{Kind, PAGE, Place};
use crate::runtime::{Device, Runtime};

/// The most that one call moves: what one read or write of Linux does.
const MOST: u64 = 0x7fff_f000;

/// Read from the file, or write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) direction: Direction,
    pub(crate) fd: c_int,
    pub(crate) address: usize,
    pub(crate) size: u64,
    pub(crate) offset: i64,
}

/// What the caller gets: bytes, the driver's status, and the result of the call. `None`: both are left as they were.
pub(crate) type Answer = (Option<(u64, i32)>, Result);

/// Performs a request as the driver of this kind would.
pub(crate) fn transfer(runtime: &Runtime, request: Request) -> Answer {
    let action = fault::take();
    let ais = runtime.ais();
    if ais == Ais::Absent {
        return (None, Err(Error::NOT_SUPPORTED));
    }
    if runtime.current().is_err() {
        return (None, Err(Error::INVALID_DEVICE));
    }
    let size = request.size.min(MOST);
    // Refused by the layers between HIP and the driver, which then has not been asked.
    let place = usize::try_from(size)
        .ok()
        .and_then(|size| runtime.memory.place(request.address, size).ok());
    let Some((place, region)) =
        place.and_then(|place| place.region.clone().map(|region| (place, region)))
    else {
        return (None, Err(Error::UNKNOWN));
    };
    if region.kind != Kind::Device {
        return (None, Err(Error::UNKNOWN));
    }
    if ais == Ais::NoDriver {
        // The ioctl's argument is a union, read back whatever the ioctl said: still what was asked, not an answer.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "the low half is what a caller finds"
        )]
        let status = place.offset() as i32;
        let handle =
            (0x5109_u64 + region.device as u64) << 32 | (region.base / PAGE) as u64 & 0xffff_ffff;
        set_errno(libc::ENOTTY);
        return (Some((handle, status)), Err(Error::UNKNOWN));
    }
    let (copied, result) = match runtime.devices.get(region.device) {
        Some(device) if !device.is_lost() => serve(device, ais, request, size, &place, action),
        _ => (0, Err(libc::ENODEV)),
    };
    match result {
        Ok(()) => (Some((copied, 0)), Ok(())),
        Err(errno) => {
            set_errno(errno);
            (Some((copied, -errno)), Err(Error::UNKNOWN))
        }
    }
}

/// The driver's part: bytes moved, and its errno.
fn serve(
    device: &Device,
    ais: Ais,
    request: Request,
    size: u64,
    place: &Place,
    action: Option<Action>,
) -> (u64, std::result::Result<(), c_int>) {
    if let Err(errno) = check(ais, request, size, place) {
        return (0, Err(errno));
    }
    let limit = match action {
        Some(Action::Errno(_, bytes) | Action::Short(bytes)) => size.min(bytes),
        _ => size,
    };
    let (copied, result) = if limit == 0 && size > 0 {
        (0, Ok(()))
    } else {
        device.direct(request.direction, limit, || match action {
            Some(Action::Flip(byte)) if byte < limit => flipped(request, limit, place, byte),
            Some(Action::Corrupt(kind)) => corrupted(request, limit, place, kind),
            _ => go_on(request, limit, place),
        })
    };
    let result = result.and_then(|()| match action {
        Some(Action::Errno(errno, _)) => Err(errno),
        Some(Action::Short(_)) => Ok(()),
        _ if ais == Ais::Oldest && copied < size => Err(libc::EIO),
        _ => Ok(()),
    });
    (copied, result)
}

/// Moves the bytes with one of them wrong where they arrive.
fn flipped(
    request: Request,
    limit: u64,
    place: &Place,
    byte: u64,
) -> (u64, std::result::Result<(), c_int>) {
    let Ok(byte) = usize::try_from(byte) else { return go_on(request, limit, place) };
    let flip = || {
        let memory = place.pointer().cast::<u8>().wrapping_add(byte);
        // SAFETY: `place` holds `limit` bytes of memory, and the byte is one of them.
        unsafe { *memory ^= 1 };
    };
    if request.direction == Direction::Write {
        flip();
    }
    let moved = go_on(request, limit, place);
    flip();
    moved
}

/// Moves the bytes, and what arrives is wrong: in the memory that is read into, or in the file, from memory that is put right again.
fn corrupted(
    request: Request,
    limit: u64,
    place: &Place,
    kind: Corruption,
) -> (u64, std::result::Result<(), c_int>) {
    let Ok(length) = usize::try_from(limit) else { return go_on(request, limit, place) };
    // SAFETY: `place` holds `limit` bytes of memory, and nothing else uses them while the slice lives.
    let memory = || unsafe { std::slice::from_raw_parts_mut(place.pointer().cast::<u8>(), length) };
    let before = memory().to_vec();
    if request.direction == Direction::Read {
        let moved = go_on(request, limit, place);
        let arrived = usize::try_from(moved.0).unwrap_or(length).min(length);
        spoil(&mut memory()[..arrived], &before, kind);
        if let (Corruption::Spill, Some(behind)) = (kind, place.behind(PAGE)) {
            let page = PAGE.min(arrived);
            // SAFETY: the region holds a page behind the place, and the place as much as arrived.
            unsafe { std::ptr::copy(place.pointer(), behind, page) };
        }
        return moved;
    }
    spoil(memory(), &before, kind);
    let arrives = match kind {
        Corruption::Stale => 0,
        Corruption::Tail => limit.saturating_sub(PAGE as u64),
        _ => limit,
    };
    let moved = if arrives == 0 { (0, Ok(())) } else { go_on(request, arrives, place) };
    memory().copy_from_slice(&before);
    if let (Corruption::Spill, Ok(())) = (kind, moved.1)
        && let Some(offset) = request.offset.checked_add_unsigned(limit)
    {
        let behind = Request { offset, ..request };
        let _ = go_on(behind, limit.min(PAGE as u64), place);
    }
    if moved == (arrives, Ok(())) { (limit, Ok(())) } else { moved }
}

/// Makes bytes wrong; of what was there before, as much as stays.
fn spoil(bytes: &mut [u8], before: &[u8], kind: Corruption) {
    let length = bytes.len();
    let unit = PAGE.min(length / 2);
    let tail = length.saturating_sub(PAGE);
    match kind {
        Corruption::Swap => {
            let (first, rest) = bytes.split_at_mut(unit);
            first.swap_with_slice(&mut rest[..unit]);
        }
        Corruption::Shift => bytes.rotate_left(unit),
        Corruption::Zero => bytes.fill(0),
        Corruption::Stale => bytes.copy_from_slice(&before[..length]),
        Corruption::Tail => bytes[tail..].copy_from_slice(&before[tail..length]),
        Corruption::Spill => {}
    }
}

fn check(ais: Ais, request: Request, size: u64, place: &Place) -> std::result::Result<(), c_int> {
    if request.fd < 0 {
        return Err(libc::EINVAL);
    }
    // SAFETY: takes numbers only.
    let flags = unsafe { libc::fcntl(request.fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(libc::EBADF);
    }
    let page = PAGE as u64;
    let (of_file, of_memory) = match ais {
        Ais::New if flags & libc::O_DIRECT == 0 => return Ok(()),
        Ais::New => alignment(request.fd),
        _ => (page, 1),
    };
    let offset = u64::try_from(request.offset).map_err(|_| libc::EINVAL)?;
    let aligned = offset.is_multiple_of(of_file)
        && size.is_multiple_of(of_file)
        && (place.offset() as u64).is_multiple_of(of_memory);
    if aligned { Ok(()) } else { Err(libc::EINVAL) }
}

/// What the file system asks of file offsets and of memory; pages if it does not say.
fn alignment(fd: c_int) -> (u64, u64) {
    // SAFETY: all zeros are a valid record.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    let flags = libc::AT_EMPTY_PATH;
    // SAFETY: the path is an empty C string and the record is valid for a write.
    let result =
        unsafe { libc::statx(fd, c"".as_ptr(), flags, libc::STATX_DIOALIGN, &raw mut found) };
    let known = result == 0 && found.stx_mask & libc::STATX_DIOALIGN != 0;
    let or_page = |value: u32| if known && value > 0 { u64::from(value) } else { PAGE as u64 };
    (or_page(found.stx_dio_offset_align), or_page(found.stx_dio_mem_align))
}

/// Reads or writes until `limit`, the end of the file or an error. Without progress it tries three times.
fn go_on(request: Request, limit: u64, place: &Place) -> (u64, std::result::Result<(), c_int>) {
    let mut done = 0_u64;
    let mut idle = 0;
    loop {
        let (Ok(at), Ok(rest)) = (usize::try_from(done), usize::try_from(limit - done)) else {
            return (done, Err(libc::EINVAL));
        };
        let Some(offset) =
            i64::try_from(done).ok().and_then(|done| request.offset.checked_add(done))
        else {
            return (done, Err(libc::EINVAL));
        };
        let memory = place.pointer().cast::<u8>().wrapping_add(at).cast::<c_void>();
        let moved = match request.direction {
            // SAFETY: `place` holds `limit` bytes of memory, of which `done` are passed.
            Direction::Read => unsafe { libc::pread(request.fd, memory, rest, offset) },
            // SAFETY: as above.
            Direction::Write => unsafe { libc::pwrite(request.fd, memory, rest, offset) },
        };
        match u64::try_from(moved) {
            Err(_) => match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                errno => return (done, Err(errno.unwrap_or(libc::EIO))),
            },
            Ok(0) if limit == done || request.direction == Direction::Read => {
                return (done, Ok(()));
            }
            Ok(0) if idle == 2 => return (done, Err(libc::EIO)),
            Ok(0) => idle += 1,
            Ok(moved) => {
                done += moved;
                idle = 0;
                if done == limit {
                    return (done, Ok(()));
                }
            }
        }
    }
}

fn set_errno(errno: c_int) {
    // SAFETY: the C library's own place for this thread, always valid.
    unsafe { *libc::__errno_location() = errno };
}
