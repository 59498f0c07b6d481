//! System calls on numbers and addresses that a program gave.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

/// A copy of a descriptor that its owner may close at any time, or that is none.
pub(crate) fn duplicate(number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: takes numbers only; one that is no descriptor is refused.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(last());
    }
    // SAFETY: it is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The same file under a number that is not one of standard input, output and error: a program may have closed these, and what it
/// or this library says there would go into the file.
pub(crate) fn beyond_standard(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    if fd.as_raw_fd() > libc::STDERR_FILENO { Ok(fd) } else { duplicate(fd.as_raw_fd()) }
}

/// Who is at the other end of a socket: who connected, or of a connected one who listens. The process is 0 if it is not to be seen
/// from here.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> Result<libc::ucred, Errno> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = socket.as_raw_fd();
    // SAFETY: valid for a write of that length.
    let answer = unsafe {
        let place = (&raw mut peer).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length)
    };
    if answer == 0 { Ok(peer) } else { Err(last()) }
}

fn last() -> Errno {
    let errno = std::io::Error::last_os_error();
    Errno::from_io_error(&errno).unwrap_or(Errno::IO)
}

/// Reads into memory that is only known by its address. An interrupted call is made again.
///
/// # Safety
///
/// Nothing but the kernel relies on what is in `address..address + length`. Memory that is not there is an error (`EFAULT`).
pub(crate) unsafe fn read_at(
    fd: BorrowedFd<'_>,
    address: usize,
    length: usize,
    offset: u64,
) -> Result<usize, Errno> {
    let to = std::ptr::with_exposed_provenance_mut::<libc::c_void>(address);
    retry(|| {
        // SAFETY: the caller's promise; the kernel checks the range.
        unsafe { libc::pread64(fd.as_raw_fd(), to, length, offset.cast_signed()) }
    })
}

/// Writes from memory that is only known by its address.
///
/// # Safety
///
/// As [`read_at`], which this only reads.
pub(crate) unsafe fn write_at(
    fd: BorrowedFd<'_>,
    address: usize,
    length: usize,
    offset: u64,
) -> Result<usize, Errno> {
    let from = std::ptr::with_exposed_provenance::<libc::c_void>(address);
    retry(|| {
        // SAFETY: the caller's promise; the kernel checks the range.
        unsafe { libc::pwrite64(fd.as_raw_fd(), from, length, offset.cast_signed()) }
    })
}

/// Makes a call again for as long as signals interrupt it.
pub(crate) fn retry(mut call: impl FnMut() -> isize) -> Result<usize, Errno> {
    loop {
        match usize::try_from(call()) {
            Ok(count) => return Ok(count),
            Err(_) => match last() {
                Errno::INTR => {}
                errno => return Err(errno),
            },
        }
    }
}
