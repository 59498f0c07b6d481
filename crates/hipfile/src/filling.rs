//! Between a file and memory of the host: whole, or up to the end of the file or an error, past the page cache where the client
//! wants that and alignment allows it.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;

use fastpath_gpu::Direction;
use rustix::io::Errno;

use crate::descriptor::{read_at, write_at};
use crate::error::Error;
use crate::file::File;

/// How far a transfer came, and what stopped it. Both may be: bytes that moved are reported, the error comes again with the next.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    pub(crate) bytes: usize,
    pub(crate) error: Option<Error>,
}

impl Moved {
    /// As the caller of one request sees it.
    pub(crate) fn result(self) -> Result<usize, Error> {
        match self.error {
            Some(error) if self.bytes == 0 => Err(error),
            _ => Ok(self.bytes),
        }
    }
}

/// Reads into `address..`, which is memory of a lane or of the client: in both cases nobody in this process looks at it meanwhile.
pub(crate) fn fill(file: &File, address: usize, length: usize, offset: u64) -> Moved {
    // SAFETY: see above; memory that is not there is an error.
    run(file, address, length, offset, Direction::Read, |fd, address, length, offset| unsafe {
        read_at(fd, address, length, offset)
    })
}

/// Writes from `address..`.
pub(crate) fn drain(file: &File, address: usize, length: usize, offset: u64) -> Moved {
    // SAFETY: as above.
    run(file, address, length, offset, Direction::Write, |fd, address, length, offset| unsafe {
        write_at(fd, address, length, offset)
    })
}

fn run(
    file: &File,
    address: usize,
    length: usize,
    offset: u64,
    direction: Direction,
    call: impl Fn(BorrowedFd<'_>, usize, usize, u64) -> Result<usize, Errno>,
) -> Moved {
    let mut direct = file.client_direct();
    let mut done = 0;
    while done < length {
        let (at, from, left) = (offset + done as u64, address + done, length - done);
        let aligned = direct.map(|(fd, align)| (fd, split(at, left, align)));
        let (fd, now, is_direct) = match aligned {
            Some((fd, Split::Direct(now))) if from.is_multiple_of(crate::bounce::PAGE) => {
                (fd, now, true)
            }
            Some((_, Split::Buffered(now))) => (file.buffered(), now, false),
            _ => (file.buffered(), left, false),
        };
        match call(fd, from, now, at) {
            // The end of the file; or, of a write, a file that takes no more.
            Ok(0) => break,
            Ok(count) => done += count,
            // Not every file that opens with O_DIRECT takes it.
            Err(Errno::INVAL) if is_direct => direct = None,
            Err(errno) => {
                let call = if direction == Direction::Read { "pread" } else { "pwrite" };
                return Moved { bytes: done, error: Some(Error::System { call, errno }) };
            }
        }
    }
    Moved { bytes: done, error: None }
}

/// What comes next of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// So many bytes of whole blocks.
    Direct(usize),
    /// So many bytes before the first whole block, or after the last.
    Buffered(usize),
}

/// Cuts the next part off a range of a file with blocks of `align` bytes.
pub(crate) fn split(offset: u64, length: usize, align: u64) -> Split {
    let end = offset + length as u64;
    let first = offset.next_multiple_of(align);
    let last = end - end % align;
    if first >= last {
        Split::Buffered(length)
    } else if offset < first {
        Split::Buffered((first - offset) as usize)
    } else {
        Split::Direct((last - first) as usize)
    }
}
