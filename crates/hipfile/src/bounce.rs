//! Pinned host memory that bytes pass through on their way between a file and a GPU, with streams of its own.
//!
//! A lane is what one transfer needs: two pieces of pinned memory, one if it is small, and streams that wait for nobody else's.
//! Lanes are made when they are first needed and kept: freeing pinned memory waits for the whole GPU, and with it for I/O that
//! waits for us. There are only so many, however many threads there are: who finds none waits for one.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fastpath_gpu::{CurrentDevice, Direction, Gpu, HipError, RawStream};

use crate::buffer::Buffer;
use crate::error::Error;
use crate::sync::{group, lock};

/// Bytes in one piece of a small lane: what one small request needs.
pub(crate) const SMALL: usize = 64 << 10;

/// Bytes in one piece of a large lane: few enough to stay in a core's cache between the copy of the kernel and that of the GPU.
/// Measured for 16 MiB reads at 8 GB/s, beside one call and one copy: 0.59 of their time, with 2 MiB 0.72, with 4 MiB 1.0.
pub(crate) const LARGE: usize = 1 << 20;

/// Large lanes at most, so that many threads do not pin the machine's memory; who comes later takes a small one.
const LARGE_LANES: usize = 8;

/// Bytes in all large lanes.
pub(crate) const MOST: usize = LARGE_LANES * 2 * LARGE;

/// Pieces of small lanes at most.
pub(crate) const SMALL_PIECES: usize = 64;

/// How long a request waits for a lane before it gets one more than there should be: those that have them may never be done, on a
/// file server that is gone.
const PATIENCE: Duration = Duration::from_secs(1);

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
    /// Pieces that it may have.
    depth: usize,
    pieces: [Option<Piece>; 2],
    /// Memory of pieces that it had for another GPU.
    spare: Vec<NonNull<u8>>,
}

// SAFETY: pinned memory and streams may be used from any thread, and a lane has one owner at a time.
unsafe impl Send for Lane {}

impl Lane {
    fn new(gpu: &Arc<dyn Gpu>, device: i32, size: usize, depth: usize) -> Self {
        let (pieces, spare) = ([None, None], Vec::new());
        Self { gpu: Arc::clone(gpu), device, size, depth, pieces, spare }
    }

    /// Bytes that one piece takes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// How many pieces there are to take turns.
    pub(crate) fn depth(&self) -> usize {
        self.depth
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
        let allocate = || gpu.allocate_host(self.size + 2 * PAGE);
        let memory = self.spare.pop().map_or_else(allocate, Ok).map_err(|error| {
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

    /// Makes a lane at rest another GPU's: its memory is pinned for all of them, its streams are not.
    fn move_to(&mut self, device: i32) {
        for piece in self.pieces.iter_mut().filter_map(Option::take) {
            // SAFETY: made by this runtime; the lane is at rest and nobody else has it. What HIP does not take back is lost.
            let _ = unsafe { self.gpu.destroy_stream(piece.stream) };
            self.spare.push(piece.memory);
        }
        self.device = device;
    }

    /// Gives everything back to HIP. What HIP does not take back is lost.
    fn free(mut self) {
        let gpu = Arc::clone(&self.gpu);
        let Ok(_current) = CurrentDevice::enter(gpu.as_ref(), self.device) else { return };
        self.move_to(self.device);
        for memory in self.spare {
            // SAFETY: as above.
            let _ = unsafe { self.gpu.free_host(memory) };
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

/// A lane that goes back among those at rest when this is dropped.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    lanes: &'a Lanes,
    /// Until it is dropped.
    lane: ManuallyDrop<Lane>,
}

/// Lanes at rest. Two of these share nothing that a processor keeps.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(Mutex<Vec<Lane>>);

/// The lanes at rest, and how many there are of all.
#[derive(Debug)]
pub(crate) struct Lanes {
    shards: [Shard; SHARDS],
    large: AtomicUsize,
    /// Large lanes at most.
    most: AtomicUsize,
    small_pieces: AtomicUsize,
    /// Who waits for a lane.
    waiting: AtomicUsize,
    turn: Mutex<()>,
    given: Condvar,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            shards: Default::default(),
            large: AtomicUsize::new(0),
            most: AtomicUsize::new(LARGE_LANES),
            small_pieces: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            turn: Mutex::default(),
            given: Condvar::new(),
        }
    }
}

/// Takes some of what there are `most` of.
fn reserve(count: &AtomicUsize, most: usize) -> bool {
    let more = |count: usize| (count < most).then_some(count + 1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

impl Lanes {
    /// Has large lanes take so many bytes at most. Those that are there stay; requests that find none take small ones.
    pub(crate) fn limit(&self, bytes: u64) {
        let lanes = usize::try_from(bytes / (2 * LARGE as u64)).unwrap_or(usize::MAX);
        self.most.store(lanes, Ordering::Relaxed);
    }

    /// Large lanes are kept for a GPU. Small ones are for the threads that used them: a small request takes hardly longer than
    /// meeting another thread at a lock.
    fn shard(&self, device: i32, size: usize) -> MutexGuard<'_, Vec<Lane>> {
        let index = if size == SMALL { group() } else { device.rem_euclid(SHARDS as i32) as usize };
        lock(&self.shards.get(index).unwrap_or(&self.shards[0]).0)
    }

    /// A lane for `size` bytes to or from a GPU; in pieces if there is no larger one.
    pub(crate) fn take(&self, gpu: &Arc<dyn Gpu>, device: i32, size: usize) -> Taken<'_> {
        let found = self.find(gpu, device, size).or_else(|| self.wait_for(gpu, device, size));
        let mut lane = found.unwrap_or_else(|| {
            self.small_pieces.fetch_add(1, Ordering::Relaxed);
            Lane::new(gpu, device, SMALL, 1)
        });
        if size > lane.size && lane.depth == 1 && reserve(&self.small_pieces, SMALL_PIECES) {
            lane.depth = 2;
        }
        Taken { lanes: self, lane: ManuallyDrop::new(lane) }
    }

    fn find(&self, gpu: &Arc<dyn Gpu>, device: i32, size: usize) -> Option<Lane> {
        let want = if size > SMALL { LARGE } else { SMALL };
        let at_rest = |size| {
            let mut lanes = self.shard(device, size);
            let place =
                lanes.iter().rposition(|lane| lane.device == device && lane.size == size)?;
            Some(lanes.swap_remove(place))
        };
        if let Some(lane) = at_rest(want) {
            return Some(lane);
        }
        if want == LARGE {
            if reserve(&self.large, self.most.load(Ordering::Relaxed)) {
                return Some(Lane::new(gpu, device, LARGE, 2));
            }
            if let Some(lane) = at_rest(SMALL) {
                return Some(lane);
            }
        }
        if reserve(&self.small_pieces, SMALL_PIECES) {
            return Some(Lane::new(gpu, device, SMALL, 1));
        }
        // Any other does, rather one of this GPU.
        let own = self.shards.iter().find_map(|shard| {
            let mut lanes = lock(&shard.0);
            let place = lanes.iter().rposition(|lane| lane.device == device)?;
            Some(lanes.swap_remove(place))
        });
        let other = || self.shards.iter().find_map(|shard| lock(&shard.0).pop());
        let mut lane = own.or_else(other)?;
        if lane.device != device {
            lane.move_to(device);
        }
        Some(lane)
    }

    #[cold]
    fn wait_for(&self, gpu: &Arc<dyn Gpu>, device: i32, size: usize) -> Option<Lane> {
        let end = Instant::now() + PATIENCE;
        // Before looking again: who gives a lane back after that sees it.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut turn = lock(&self.turn);
        let found = loop {
            let found = self.find(gpu, device, size);
            let left = end.saturating_duration_since(Instant::now());
            if found.is_some() || left.is_zero() {
                break found;
            }
            turn = self.given.wait_timeout(turn, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(turn);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        found
    }

    /// One less of a lane's kind.
    fn release(&self, lane: &Lane) {
        if lane.size == LARGE {
            self.large.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.small_pieces.fetch_sub(lane.depth, Ordering::Relaxed);
        }
    }

    /// Takes a lane back. One that the GPU does not let go of is lost rather than used again.
    fn give(&self, mut lane: Lane) {
        if lane.rest() {
            self.shard(lane.device, lane.size).push(lane);
        } else {
            self.release(&lane);
        }
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.turn));
            self.given.notify_one();
        }
    }

    /// Frees the lanes at rest. Waits for the GPU: not while something in its streams waits for this library.
    pub(crate) fn free(&self) {
        for shard in &self.shards {
            let lanes = std::mem::take(&mut *lock(&shard.0));
            for lane in lanes {
                self.release(&lane);
                lane.free();
            }
        }
    }
}

impl Deref for Taken<'_> {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        &self.lane
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut Lane {
        &mut self.lane
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody uses it after this.
        self.lanes.give(unsafe { ManuallyDrop::take(&mut self.lane) });
    }
}
