//! One request, from its checks to its result.

use std::sync::Arc;

use fastpath_gpu::{CurrentDevice, Direction, Gpu, MemoryKind, RawStream};
use rustix::io::Errno;

use crate::bounce::Part;
use crate::buffer::Buffer;
use crate::choose::{Candidate, Reason, Way};
use crate::driver::Numbered as _;
use crate::error::Error;
use crate::fallback;
use crate::fastpath::{self, Outcome};
use crate::file::File;
use crate::filling::{Moved, drain, fill};
use crate::log::Level;
use crate::runtime::Runtime;
use crate::stats::{Begun, Path};

/// What Linux moves in one call, so that 32-bit counts hold it: `MAX_RW_COUNT`.
pub const MAX_SIZE: usize = 0x7fff_f000;

/// A request whose range was found to lie in its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) direction: Direction,
    pub(crate) file: &'a File,
    pub(crate) buffer: &'a Buffer,
    /// Bytes; at most [`MAX_SIZE`].
    pub(crate) size: usize,
    pub(crate) file_offset: u64,
    pub(crate) buffer_offset: usize,
    /// Whether a fallback waits for what is in the default stream, as `hipMemcpy` does: programs that fill a buffer there and write
    /// it to a file at once are used to that. Never in a worker: the default stream may wait for one.
    pub(crate) after_default_stream: bool,
}

impl<'a> Request<'a> {
    /// Checks offsets, then the whole range, and only then limits the size, so that both ways refuse the same requests.
    pub(crate) fn checked(
        direction: Direction,
        file: &'a File,
        buffer: &'a Buffer,
        size: usize,
        file_offset: i64,
        buffer_offset: i64,
    ) -> Result<Self, Error> {
        let from = |what, offset: i64| {
            u64::try_from(offset).map_err(|_| Error::NegativeOffset { what, offset })
        };
        let file_offset = from("file", file_offset)?;
        let offset = from("buffer", buffer_offset)? as usize;
        if offset >= buffer.length || buffer.length - offset < size {
            return Err(Error::BeyondBuffer { size, offset: buffer_offset, length: buffer.length });
        }
        Ok(Self {
            direction,
            file,
            buffer,
            size: size.min(MAX_SIZE),
            file_offset,
            buffer_offset: offset,
            after_default_stream: false,
        })
    }

    /// What is left of it after `done` bytes.
    fn rest(&self, done: usize) -> Self {
        Self {
            size: self.size - done,
            file_offset: self.file_offset + done as u64,
            buffer_offset: self.buffer_offset + done,
            ..*self
        }
    }

    fn address(&self) -> u64 {
        (self.buffer.address + self.buffer_offset) as u64
    }

    fn way(&self, runtime: &Runtime, gpu: &dyn Gpu) -> Result<Way, Error> {
        let (offset_align, memory_align, learned) = self.file.alignment();
        let candidate = Candidate {
            refused: runtime.closed(gpu).or_else(|| self.file.refused(self.buffer.device)),
            offset_align,
            memory_align,
            learned,
            kind: self.buffer.kind,
            address: self.address(),
            size: self.size as u64,
            file_offset: self.file_offset,
        };
        candidate.choose(runtime.config.allows_fallback())
    }

    /// Whether it may be that the bytes go through host memory.
    pub(crate) fn may_fall_back(&self, runtime: &Runtime, gpu: &dyn Gpu) -> bool {
        match self.way(runtime, gpu) {
            Ok(Way::Fallback(_)) => true,
            Ok(Way::Fastpath) => {
                runtime.config.allows_fallback() && !self.file.has_worked(self.buffer.device)
            }
            Ok(Way::Host(_)) | Err(_) => false,
        }
    }

    /// Moves the bytes.
    pub(crate) fn run(&self, runtime: &Runtime, gpu: &Arc<dyn Gpu>) -> Result<usize, Error> {
        if self.size == 0 {
            return Ok(0);
        }
        let way = self.way(runtime, gpu.as_ref()).inspect_err(|error| {
            if let Error::AllRefused(reason) = error {
                runtime.note(self, *reason, None);
                self.begin(runtime, Path::Fastpath).end(0, true);
            }
        })?;
        match way {
            Way::Fastpath => self.fast_in_pieces(runtime, gpu),
            Way::Host(reason) => {
                runtime.note(self, reason, None);
                let begun = self.begin(runtime, Path::Fallback);
                recorded(begun, self.host())
            }
            Way::Fallback(reason) => {
                runtime.note(self, reason, None);
                self.fall_back(runtime, gpu)
            }
        }
    }

    fn begin<'r>(&self, runtime: &'r Runtime, path: Path) -> Begun<'r> {
        runtime.stats.begin(self.buffer.device, path, self.direction, self.size)
    }

    fn fall_back(&self, runtime: &Runtime, gpu: &Arc<dyn Gpu>) -> Result<usize, Error> {
        let begun = self.begin(runtime, Path::Fallback);
        let waited = if self.after_default_stream {
            wait_for_default_stream(gpu.as_ref(), self.buffer.device)
        } else {
            Ok(())
        };
        let moved = match waited {
            Ok(()) => fallback::run(&runtime.lanes, gpu, self),
            Err(error) => Moved { bytes: 0, error: Some(error) },
        };
        recorded(begun, moved)
    }

    /// The CPU reaches the buffer, so that a system call is all there is to do.
    fn host(&self) -> Moved {
        debug_assert_ne!(self.buffer.kind, MemoryKind::Device);
        let Some(part) = Part::of(self.buffer, self.buffer_offset, self.size) else {
            return Moved::default();
        };
        match self.direction {
            Direction::Read => fill(self.file, part.address(), self.size, self.file_offset),
            Direction::Write => {
                let mut moved = drain(self.file, part.address(), self.size, self.file_offset);
                moved.sync(self.file);
                moved
            }
        }
    }

    /// An error after the first piece comes with the next call.
    fn fast_in_pieces(&self, runtime: &Runtime, gpu: &Arc<dyn Gpu>) -> Result<usize, Error> {
        let most = runtime.parameters.max_direct_io();
        if self.size <= most {
            return self.fast(runtime, gpu);
        }
        let mut done = 0;
        while done < self.size {
            let rest = self.rest(done);
            let piece = Self { size: rest.size.min(most), ..rest };
            match piece.fast(runtime, gpu) {
                Ok(bytes) => {
                    done += bytes;
                    if bytes < piece.size {
                        break;
                    }
                }
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn fast(&self, runtime: &Runtime, gpu: &Arc<dyn Gpu>) -> Result<usize, Error> {
        let device = self.buffer.device;
        let begun = self.begin(runtime, Path::Fastpath);
        match fastpath::run(gpu.as_ref(), self) {
            Outcome::Moved(bytes) => {
                self.file.remember_success(device);
                recorded(begun, Moved { bytes, error: None })
            }
            Outcome::Failed { reason, error, known } => {
                runtime.note(self, reason, Some(&error));
                recorded(begun, Moved { bytes: known, error: Some(error) })
            }
            Outcome::Refused { reason, errno, known } => {
                let reason = match reason {
                    Reason::Unreachable => runtime.unreachable(gpu.as_ref(), device),
                    reason => reason,
                };
                let (offset, size) = (self.file_offset, self.size as u64);
                // Another alignment may do.
                if errno != Errno::INVAL || self.file.remember_invalid(offset, size, self.address())
                {
                    self.file.remember_refusal(device, reason);
                }
                if errno == Errno::NOTTY {
                    runtime.driver_is_without();
                }
                let error = Error::System { call: "hipAmdFileRead/Write", errno };
                runtime.note(self, reason, Some(&error));
                if !runtime.config.allows_fallback() {
                    return recorded(begun, Moved { bytes: known, error: Some(error) });
                }
                begun.end(known, true);
                match self.rest(known).fall_back(runtime, gpu) {
                    Ok(bytes) => Ok(known + bytes),
                    Err(_) if known > 0 => Ok(known),
                    Err(error) => Err(error),
                }
            }
        }
    }
}

/// Waits for what is in a GPU's default stream. Only where its program called: the stream may wait for a worker.
#[allow(unsafe_code)]
pub(crate) fn wait_for_default_stream(gpu: &dyn Gpu, device: i32) -> Result<(), Error> {
    let failed = |error| Error::Hip { call: "hipStreamSynchronize", error };
    let _current = CurrentDevice::enter(gpu, device).map_err(failed)?;
    // SAFETY: null is the current GPU's default stream.
    unsafe { gpu.synchronize(RawStream(std::ptr::null_mut())) }.map_err(failed)
}

/// Counts a request that is over.
fn recorded(begun: Begun<'_>, moved: Moved) -> Result<usize, Error> {
    let result = moved.result();
    begun.end(result.as_ref().map_or(0, |bytes| *bytes), result.is_err());
    result
}

impl Runtime {
    /// Counts why a request did not take the fastpath, or failed on it, and says so the first time.
    pub(crate) fn note(&self, request: &Request<'_>, reason: Reason, error: Option<&Error>) {
        self.stats.refused(request.buffer.device, request.direction, reason);
        if request.file.count(reason) {
            self.explain(request.file, reason, error);
        }
    }

    #[cold]
    fn explain(&self, file: &File, reason: Reason, error: Option<&Error>) {
        let number = file.number();
        let detail = error.map(|error| format!(": {error}")).unwrap_or_default();
        // Of these nobody expects another way.
        let expected = matches!(reason, Reason::Forced | Reason::Parameter | Reason::MemoryType);
        let level = if !expected && self.is_first_warning() { Level::Warn } else { Level::Info };
        self.log.say(level, || {
            let name = file.name().map(|name| format!(" ({name})")).unwrap_or_default();
            let why = reason.text();
            let is_over = matches!(reason, Reason::Failed | Reason::Hip);
            // Memory of the host needs no way at all.
            let is_refused =
                !is_over && reason != Reason::MemoryType && !self.config.allows_fallback();
            let what = if is_over || is_refused { "fails" } else { "is not direct" };
            let forbidden = if is_refused { "; the fallback is not allowed" } else { "" };
            let more = if level == Level::Warn && !self.log.is_on(Level::Info) {
                "; said once, HIPFILE_LOG=info says it of every file"
            } else {
                ""
            };
            let id = reason.id();
            format!(
                "I/O on descriptor {number}{name} {what}: {why}{detail}{forbidden} (fastpath explain {id}){more}"
            )
        });
    }
}
