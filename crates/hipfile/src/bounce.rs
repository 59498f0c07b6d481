//! Pinned host memory that bytes pass through on their way between a file and a GPU, with streams of its own.
//!
//! A lane is what one transfer needs: two pieces of pinned memory and a stream that waits for nobody else's. Lanes are made when
//! they are first needed and kept: freeing pinned memory waits for the whole GPU, and with it for I/O that waits for us.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fastpath_gpu::{CurrentDevice, Direction, Gpu, HipError, RawStream};

use crate::buffer::Buffer;
use crate::error::Error;

/// Bytes in one piece of a small lane: what one small request needs.
pub(crate) const SMALL: usize = 64 << 10;

/// Bytes in one piece of a large lane: few enough to stay in a core's cache between the copy of the kernel and that of the GPU.
/// Measured for 16 MiB reads at 8 GB/s, beside one call and one copy: 0.59 of their time, with 2 MiB 0.72, with 4 MiB 1.0.
pub(crate) const LARGE: usize = 1 << 20;

/// Large lanes at most, so that many threads do not pin the machine's memory; who comes later takes a small one.
const LARGE_LANES: usize = 8;

/// Bytes in all large lanes.
pub(crate) const MOST: usize = LARGE_LANES * 2 * LARGE;

/// Direct I/O wants memory and file at the same place within a page.
pub(crate) const PAGE: usize = 4096;

const SHARDS: usize = 16;

fn hip(call: &'static str) -> impl Fn(HipError) -> Error {
    move |error| Error::Hip { call, error }
}

/// A piece of pinned memory and the stream its copies are in. Only waiting for a stream tells whether its copies went well, so
/// each piece has its own.
#[derive(Debug)]
struct Piece {
    memory: NonNull<u8>,
    stream: RawStream,
    busy: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Lane {
    gpu: Arc<dyn Gpu>,
    device: i32,
    size: usize,
    pieces: [Option<Piece>; 2],
}

// SAFETY: pinned memory and streams may be used from any thread, and a lane has one owner at a time.
unsafe impl Send for Lane {}

impl Lane {
    fn new(gpu: &Arc<dyn Gpu>, device: i32, size: usize) -> Self {
        Self { gpu: Arc::clone(gpu), device, size, pieces: [None, None] }
    }

    /// Bytes that one piece takes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The piece with this number, made if need be.
    fn piece(&mut self, index: usize) -> Result<&mut Piece, Error> {
        let [first, second] = &mut self.pieces;
        let place = if index.is_multiple_of(2) { first } else { second };
        if let Some(piece) = place {
            return Ok(piece);
        }
        let gpu = self.gpu.as_ref();
        let _current = CurrentDevice::enter(gpu, self.device).map_err(hip("hipSetDevice"))?;
        let stream = gpu.create_stream().map_err(hip("hipStreamCreateWithFlags"))?;
        // Room to shift by less than a page, and to start at one if HIP's memory does not.
        let memory = gpu.allocate_host(self.size + 2 * PAGE).map_err(|error| {
            // SAFETY: made above, and nobody has it.
            let _ = unsafe { gpu.destroy_stream(stream) };
            hip("hipHostMalloc")(error)
        })?;
        Ok(place.insert(Piece { memory, stream, busy: false }))
    }

    /// Where the bytes for a file offset lie in a piece: at the same place within a page.
    pub(crate) fn address(&mut self, index: usize, file_offset: u64) -> Result<usize, Error> {
        Ok(self.piece(index)?.address(file_offset))
    }

    /// Copies now.
    pub(crate) fn copy(
        &mut self,
        index: usize,
        file_offset: u64,
        direction: Direction,
        part: Part<'_>,
    ) -> Result<(), Error> {
        let gpu = Arc::clone(&self.gpu);
        let piece = self.piece(index)?;
        let host = std::ptr::with_exposed_provenance_mut(piece.address(file_offset));
        // A copy that failed may still be under way.
        piece.busy = true;
        // SAFETY: the part lies in its buffer, whose owner keeps it allocated; the piece is longer than any part, and pinned.
        let copied =
            unsafe { gpu.copy_now(direction, part.address(), host, part.length, piece.stream) };
        copied.map_err(hip("hipMemcpyWithStream"))?;
        piece.busy = false;
        Ok(())
    }

    /// Starts a copy; [`Lane::wait`] ends it.
    pub(crate) fn start(
        &mut self,
        index: usize,
        file_offset: u64,
        direction: Direction,
        part: Part<'_>,
    ) -> Result<(), Error> {
        let gpu = Arc::clone(&self.gpu);
        let piece = self.piece(index)?;
        let host = std::ptr::with_exposed_provenance_mut(piece.address(file_offset));
        piece.busy = true;
        // SAFETY: as above, and until the piece is not busy: a lane is not used by others before.
        unsafe { gpu.copy(direction, part.address(), host, part.length, piece.stream) }
            .map_err(hip("hipMemcpyAsync"))
    }

    /// Waits until the piece may be used again.
    pub(crate) fn wait(&mut self, index: usize) -> Result<(), Error> {
        let gpu = Arc::clone(&self.gpu);
        let piece = self.piece(index)?;
        if piece.busy {
            // SAFETY: the stream is the piece's own.
            unsafe { gpu.synchronize(piece.stream) }.map_err(hip("hipStreamSynchronize"))?;
            piece.busy = false;
        }
        Ok(())
    }

    /// Whether nothing is under way any more, after an error too.
    fn rest(&mut self) -> bool {
        for piece in self.pieces.iter_mut().flatten().filter(|piece| piece.busy) {
            // SAFETY: as above. The first wait may tell of the error that was reported already.
            let done = (0..2).any(|_| unsafe { self.gpu.synchronize(piece.stream) }.is_ok());
            if !done {
                return false;
            }
            piece.busy = false;
        }
        true
    }

    /// Gives everything back to HIP. What HIP does not take back is lost.
    fn free(self) {
        let Ok(_current) = CurrentDevice::enter(self.gpu.as_ref(), self.device) else { return };
        for piece in self.pieces.into_iter().flatten() {
            // SAFETY: made by this runtime; the lane is at rest and nobody else has it.
            unsafe {
                let _ = self.gpu.destroy_stream(piece.stream);
                let _ = self.gpu.free_host(piece.memory);
            }
        }
    }
}

impl Piece {
    fn address(&self, file_offset: u64) -> usize {
        let start = self.memory.as_ptr().expose_provenance().next_multiple_of(PAGE);
        start + (file_offset as usize % PAGE)
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
#[derive(Debug)]
pub(crate) struct Lanes {
    shards: [Mutex<Vec<Lane>>; SHARDS],
    large: AtomicUsize,
    /// Large lanes at most.
    most: AtomicUsize,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            shards: Default::default(),
            large: AtomicUsize::new(0),
            most: AtomicUsize::new(LARGE_LANES),
        }
    }
}

impl Lanes {
    /// Has large lanes take so many bytes at most. Those that are there stay; requests that find none take small ones.
    pub(crate) fn limit(&self, bytes: u64) {
        let lanes = usize::try_from(bytes / (2 * LARGE as u64)).unwrap_or(usize::MAX);
        self.most.store(lanes, Ordering::Relaxed);
    }

    fn shard(&self, device: i32) -> &Mutex<Vec<Lane>> {
        let index = device.rem_euclid(SHARDS as i32) as usize;
        self.shards.get(index).unwrap_or(&self.shards[0])
    }

    /// A lane for `size` bytes to or from a GPU.
    pub(crate) fn take(&self, gpu: &Arc<dyn Gpu>, device: i32, size: usize) -> Lane {
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
        found.unwrap_or_else(|| Lane::new(gpu, device, if large { LARGE } else { SMALL }))
    }

    fn reserve(&self) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        let more = |count: usize| (count < most).then_some(count + 1);
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
