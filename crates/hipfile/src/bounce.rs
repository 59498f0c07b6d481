//! Pinned host memory that bytes pass through on their way between a file and a GPU, with streams of its own.
//!
//! A lane is what one transfer needs: two pieces of pinned memory and a stream that waits for nobody else's. Lanes are made when
//! they are first needed and kept: freeing pinned memory waits for the whole GPU, and with it for I/O that waits for us.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fastpath_gpu::{CurrentDevice, Direction, Gpu, HipError, RawEvent, RawStream};

use crate::buffer::Buffer;
use crate::error::Error;

/// Bytes in one piece of a small lane: what one small request needs.
pub(crate) const SMALL: usize = 64 << 10;

/// Bytes in one piece of a large lane: enough that the pauses between pieces do not count, few enough that they overlap soon.
pub(crate) const LARGE: usize = 2 << 20;

/// Large lanes at most, so that many threads do not pin the machine's memory; who comes later takes a small one.
const LARGE_LANES: usize = 4;

/// Direct I/O wants memory and file at the same place within a page.
pub(crate) const PAGE: usize = 4096;

const SHARDS: usize = 16;

fn hip(call: &'static str) -> impl Fn(HipError) -> Error {
    move |error| Error::Hip { call, error }
}

/// A piece of pinned memory, and when the GPU is done with it.
#[derive(Debug)]
struct Piece {
    memory: NonNull<u8>,
    event: Option<RawEvent>,
    busy: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Lane {
    gpu: Arc<dyn Gpu>,
    device: i32,
    size: usize,
    stream: RawStream,
    pieces: [Option<Piece>; 2],
}

// SAFETY: pinned memory, streams and events may be used from any thread, and a lane has one owner at a time.
unsafe impl Send for Lane {}

impl Lane {
    fn new(gpu: &Arc<dyn Gpu>, device: i32, size: usize) -> Result<Self, Error> {
        let _current = CurrentDevice::enter(gpu.as_ref(), device).map_err(hip("hipSetDevice"))?;
        let stream = gpu.create_stream().map_err(hip("hipStreamCreateWithFlags"))?;
        Ok(Self { gpu: Arc::clone(gpu), device, size, stream, pieces: [None, None] })
    }

    /// Bytes that one piece takes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The piece with this number, made if need be; an event as well if it will be copied in the background.
    fn piece(&mut self, index: usize, background: bool) -> Result<&mut Piece, Error> {
        let gpu = &self.gpu;
        let Some(place) = self.pieces.get_mut(index % 2) else { return Err(Error::ShutDown) };
        let piece = if let Some(piece) = place {
            piece
        } else {
            let _current =
                CurrentDevice::enter(gpu.as_ref(), self.device).map_err(hip("hipSetDevice"))?;
            // Room to shift by less than a page, and to start at one if HIP's memory does not.
            let memory = gpu.allocate_host(self.size + 2 * PAGE).map_err(hip("hipHostMalloc"))?;
            place.insert(Piece { memory, event: None, busy: false })
        };
        if background && piece.event.is_none() {
            let _current =
                CurrentDevice::enter(gpu.as_ref(), self.device).map_err(hip("hipSetDevice"))?;
            piece.event = Some(gpu.create_event().map_err(hip("hipEventCreateWithFlags"))?);
        }
        Ok(piece)
    }

    /// Where the bytes for a file offset lie in a piece: at the same place within a page.
    pub(crate) fn address(&mut self, index: usize, file_offset: u64) -> Result<usize, Error> {
        let memory = self.piece(index, false)?.memory;
        let start = memory.as_ptr().expose_provenance().next_multiple_of(PAGE);
        Ok(start + (file_offset as usize % PAGE))
    }

    /// Copies now.
    pub(crate) fn copy(
        &mut self,
        index: usize,
        file_offset: u64,
        direction: Direction,
        to: Part<'_>,
    ) -> Result<(), Error> {
        let host = std::ptr::with_exposed_provenance_mut(self.address(index, file_offset)?);
        let (gpu, stream) = (&self.gpu, self.stream);
        // SAFETY: the part lies in its buffer, whose owner keeps it allocated; the piece is longer than any part, and pinned.
        unsafe { gpu.copy_now(direction, to.address(), host, to.length, stream) }
            .map_err(hip("hipMemcpyWithStream"))
    }

    /// Starts a copy; [`Lane::wait`] ends it.
    pub(crate) fn start(
        &mut self,
        index: usize,
        file_offset: u64,
        direction: Direction,
        to: Part<'_>,
    ) -> Result<(), Error> {
        self.piece(index, true)?;
        let host = std::ptr::with_exposed_provenance_mut(self.address(index, file_offset)?);
        let (gpu, stream) = (Arc::clone(&self.gpu), self.stream);
        let piece = self.piece(index, true)?;
        piece.busy = true;
        // SAFETY: as above, and until the lane is at rest: a lane is not given back before.
        unsafe { gpu.copy(direction, to.address(), host, to.length, stream) }
            .map_err(hip("hipMemcpyAsync"))?;
        let Some(event) = piece.event else { return Err(Error::ShutDown) };
        // SAFETY: both were made by this GPU's runtime and are not destroyed.
        unsafe { gpu.record_event(event, stream) }.map_err(hip("hipEventRecord"))
    }

    /// Waits until the piece may be used again.
    pub(crate) fn wait(&mut self, index: usize) -> Result<(), Error> {
        let Some(Some(piece)) = self.pieces.get_mut(index % 2) else { return Ok(()) };
        if let (true, Some(event)) = (piece.busy, piece.event) {
            // SAFETY: the event was made by this runtime and is not destroyed.
            unsafe { self.gpu.wait_event(event) }.map_err(hip("hipEventSynchronize"))?;
            piece.busy = false;
        }
        Ok(())
    }

    /// Whether nothing is under way any more, after an error too.
    fn rest(&mut self) -> bool {
        if !self.pieces.iter().flatten().any(|piece| piece.busy) {
            return true;
        }
        // SAFETY: the stream is this lane's own.
        let done = unsafe { self.gpu.synchronize(self.stream) }.is_ok();
        if done {
            self.pieces.iter_mut().flatten().for_each(|piece| piece.busy = false);
        }
        done
    }

    /// Gives everything back to HIP. What HIP does not take back is lost.
    fn free(self) {
        let Ok(_current) = CurrentDevice::enter(self.gpu.as_ref(), self.device) else { return };
        for piece in self.pieces.into_iter().flatten() {
            // SAFETY: made by this runtime; the lane is at rest and nobody else has it.
            unsafe {
                if let Some(event) = piece.event {
                    let _ = self.gpu.destroy_event(event);
                }
                let _ = self.gpu.free_host(piece.memory);
            }
        }
        // SAFETY: as above.
        let _ = unsafe { self.gpu.destroy_stream(self.stream) };
    }
}

/// Bytes of a buffer that were found to lie in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    buffer: &'a Buffer,
    offset: usize,
    length: usize,
}

impl<'a> Part<'a> {
    /// `None` if they do not.
    pub(crate) fn of(buffer: &'a Buffer, offset: usize, length: usize) -> Option<Self> {
        let inside = offset.checked_add(length).is_some_and(|end| end <= buffer.length);
        inside.then_some(Self { buffer, offset, length })
    }

    pub(crate) fn address(&self) -> usize {
        self.buffer.address + self.offset
    }
}

/// The lanes at rest.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    shards: [Mutex<Vec<Lane>>; SHARDS],
    large: AtomicUsize,
}

impl Lanes {
    fn shard(&self, device: i32) -> &Mutex<Vec<Lane>> {
        let index = device.rem_euclid(SHARDS as i32) as usize;
        self.shards.get(index).unwrap_or(&self.shards[0])
    }

    /// A lane for `size` bytes to or from a GPU.
    pub(crate) fn take(&self, gpu: &Arc<dyn Gpu>, device: i32, size: usize) -> Result<Lane, Error> {
        let want = if size > SMALL { LARGE } else { SMALL };
        let (found, large) = {
            let mut lanes = self.shard(device).lock().unwrap_or_else(PoisonError::into_inner);
            let mut find = |size| {
                let place =
                    lanes.iter().rposition(|lane| lane.device == device && lane.size == size)?;
                Some(lanes.swap_remove(place))
            };
            match find(want) {
                Some(lane) => (Some(lane), false),
                None if want == LARGE && self.reserve() => (None, true),
                None => (find(SMALL), false),
            }
        };
        match found {
            Some(lane) => Ok(lane),
            None if large => Lane::new(gpu, device, LARGE).inspect_err(|_| self.release()),
            None => Lane::new(gpu, device, SMALL),
        }
    }

    fn reserve(&self) -> bool {
        let more = |count: usize| (count < LARGE_LANES).then_some(count + 1);
        self.large.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn release(&self) {
        self.large.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes a lane back. One that the GPU does not let go of is lost rather than used again.
    pub(crate) fn give(&self, mut lane: Lane) {
        if lane.rest() {
            self.shard(lane.device).lock().unwrap_or_else(PoisonError::into_inner).push(lane);
        } else if lane.size == LARGE {
            self.release();
        }
    }

    /// Frees the lanes at rest. Waits for the GPU: not while something in its streams waits for this library.
    pub(crate) fn free(&self) {
        for shard in &self.shards {
            let lanes = std::mem::take(&mut *shard.lock().unwrap_or_else(PoisonError::into_inner));
            for lane in lanes {
                if lane.size == LARGE {
                    self.release();
                }
                lane.free();
            }
        }
    }
}
