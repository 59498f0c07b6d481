//! Through host memory: a system call and a copy, both at once where there is more than one piece.

use std::sync::Arc;

use fastpath_gpu::{Direction, Gpu};
use rustix::io::Errno;

use crate::bounce::{Lane, Lanes, Part};
use crate::error::Error;
use crate::file::File;
use crate::filling::{Moved, drain, fill};
use crate::transfer::Request;

/// Moves a request through a lane, and back into the pool with it.
pub(crate) fn run(lanes: &Lanes, gpu: &Arc<dyn Gpu>, request: &Request<'_>) -> Moved {
    let mut lane = lanes.take(gpu, request.buffer.device, request.size);
    let mut moved = match request.direction {
        Direction::Read => read(&mut lane, request),
        Direction::Write => write(&mut lane, request),
    };
    drop(lane);
    if request.direction == Direction::Write {
        moved.sync(request.file);
    }
    moved
}

/// A piece of a request: the file offset it starts at, and its bytes in the buffer.
fn piece<'a>(request: &Request<'a>, done: usize, length: usize) -> Result<(u64, Part<'a>), Error> {
    let part = Part::of(request.buffer, request.buffer_offset + done, length);
    let beyond = || Error::BeyondBuffer {
        size: length,
        offset: (request.buffer_offset + done) as i64,
        length: request.buffer.length,
    };
    Ok((request.file_offset + done as u64, part.ok_or_else(beyond)?))
}

fn read(lane: &mut Lane, request: &Request<'_>) -> Moved {
    let mut moved = Moved::default();
    moved.error = read_into(lane, request, &mut moved.bytes).err();
    moved
}

/// Counts in `landed` what is in the GPU's memory for certain.
fn read_into(lane: &mut Lane, request: &Request<'_>, landed: &mut usize) -> Result<(), Error> {
    if request.size <= lane.size() {
        let offset = request.file_offset;
        let got = fill(request.file, lane.address(0, offset)?, request.size, offset);
        if got.bytes > 0 {
            lane.copy(0, offset, Direction::Read, piece(request, 0, got.bytes)?.1)?;
            *landed = got.bytes;
        }
        return got.error.map_or(Ok(()), Err);
    }
    // Bytes under way in each piece; what is waited for in turn lands in order.
    let mut under_way = [0; 2];
    let (mut done, mut turn, mut stopped) = (0, 0, None);
    let depth = lane.depth();
    while done < request.size {
        let slot = turn % depth;
        lane.wait(slot)?;
        *landed += under_way.get_mut(slot).map(std::mem::take).unwrap_or_default();
        let length = lane.size().min(request.size - done);
        let offset = request.file_offset + done as u64;
        let got = fill(request.file, lane.address(slot, offset)?, length, offset);
        if got.bytes > 0 {
            lane.start(slot, offset, Direction::Read, piece(request, done, got.bytes)?.1)?;
            if let Some(bytes) = under_way.get_mut(slot) {
                *bytes = got.bytes;
            }
            done += got.bytes;
            turn += 1;
        }
        if got.error.is_some() || got.bytes < length {
            stopped = got.error;
            break;
        }
    }
    for slot in [turn % depth, (turn + 1) % depth] {
        lane.wait(slot)?;
        *landed += under_way.get_mut(slot).map(std::mem::take).unwrap_or_default();
    }
    stopped.map_or(Ok(()), Err)
}

fn write(lane: &mut Lane, request: &Request<'_>) -> Moved {
    let mut moved = Moved::default();
    moved.error = write_from(lane, request, &mut moved.bytes).err();
    moved
}

/// Counts in `written` what the file has taken.
fn write_from(lane: &mut Lane, request: &Request<'_>, written: &mut usize) -> Result<(), Error> {
    if request.size <= lane.size() {
        let offset = request.file_offset;
        lane.copy(0, offset, Direction::Write, piece(request, 0, request.size)?.1)?;
        let put = drain(request.file, lane.address(0, offset)?, request.size, offset);
        *written = put.bytes;
        return put.error.map_or(Ok(()), Err);
    }
    let (size, depth) = (lane.size(), lane.depth());
    let length_at = |done: usize| size.min(request.size - done);
    let start = |lane: &mut Lane, slot: usize, done: usize| {
        let (offset, part) = piece(request, done, length_at(done))?;
        lane.start(slot, offset, Direction::Write, part)
    };
    start(lane, 0, 0)?;
    let mut turn = 0;
    while *written < request.size {
        let (slot, length) = (turn % depth, length_at(*written));
        let next = *written + length;
        if depth > 1 && next < request.size {
            start(lane, (turn + 1) % depth, next)?;
        }
        lane.wait(slot)?;
        let offset = request.file_offset + *written as u64;
        let put = drain(request.file, lane.address(slot, offset)?, length, offset);
        *written += put.bytes;
        if put.error.is_some() || put.bytes < length {
            return put.error.map_or(Ok(()), Err);
        }
        if depth == 1 && next < request.size {
            start(lane, slot, next)?;
        }
        turn += 1;
    }
    Ok(())
}

#[cfg(test)]
thread_local! {
    /// How often this thread had a file reach its drive.
    pub(crate) static SYNCS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

impl Moved {
    /// Has what was written reach the drive if the client's descriptor promises that, once for the whole request. A failure is
    /// reported although bytes were written: the kernel tells it only once.
    pub(crate) fn sync(&mut self, file: &File) {
        if self.bytes == 0 || !file.must_sync() {
            return;
        }
        #[cfg(test)]
        SYNCS.set(SYNCS.get() + 1);
        loop {
            match rustix::fs::fdatasync(file.buffered()) {
                Err(Errno::INTR) => {}
                // Pipes and the like have nothing to be synced.
                Ok(()) | Err(Errno::INVAL) => return,
                Err(errno) => {
                    self.bytes = 0;
                    self.error = Some(Error::System { call: "fdatasync", errno });
                    return;
                }
            }
        }
    }
}
