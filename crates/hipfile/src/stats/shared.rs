//! Counters in memory that others can look at and nobody else can change.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::process::{Resource, getrlimit};

use crate::descriptor::beyond_standard;

/// Words of shared memory. Never unmapped: a thread may count until the process ends.
#[derive(Debug)]
pub(crate) struct Shared {
    memory: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is only used as atomics.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// So many words, all zero, and what others look at them through. Needs Linux 5.1, which can keep others from writing.
    pub(crate) fn new(name: &CStr, words: usize) -> Result<(Self, OwnedFd), Errno> {
        let length = words * size_of::<AtomicU64>();
        // Else the program would get SIGXFSZ for it.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| most < length as u64) {
            return Err(Errno::FBIG);
        }
        let fd = memfd_create(name, MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC)?;
        let fd = beyond_standard(fd)?;
        ftruncate(&fd, length as u64)?;
        // SAFETY: a new mapping, of a file that has this length and cannot shrink from here on.
        let memory = unsafe {
            let rights = ProtFlags::READ | ProtFlags::WRITE;
            mmap(ptr::null_mut(), length, rights, MapFlags::SHARED, &fd, 0)?
        };
        let seals = [SealFlags::SHRINK, SealFlags::GROW, SealFlags::FUTURE_WRITE, SealFlags::SEAL];
        fcntl_add_seals(&fd, seals.into_iter().collect())?;
        let memory = NonNull::new(memory.cast()).ok_or(Errno::NOMEM)?;
        Ok((Self { memory, words }, fd))
    }

    /// All words.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped for so many words, page-aligned, for as long as the process lives.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.words) }
    }

    /// One word.
    pub(crate) fn word(&self, index: usize) -> Option<&AtomicU64> {
        self.words().get(index)
    }

    pub(crate) fn get(&self, index: usize) -> u64 {
        self.word(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, index: usize, value: u64) {
        if let Some(word) = self.word(index) {
            word.store(value, Ordering::Relaxed);
        }
    }
}
