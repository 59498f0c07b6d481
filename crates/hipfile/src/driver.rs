//! Whether the driver is open, and what is registered with it.

use std::collections::HashMap;

use crate::error::Error;
use crate::registry::{Handles, Kept, Replicated};
use crate::sync::{Arc, AtomicI64, Mutex, Ordering, lock};

/// A registered thing that has a number of its owner's, which may come to mean another one.
pub(crate) trait Numbered {
    /// The number.
    fn number(&self) -> i32;
    /// Whether both are the same thing.
    fn is_same(&self, other: &Self) -> bool;
}

/// The count of opens and the registrations that live while it is above zero. Explicit opens are counted; a registration opens the
/// driver once if it is not open. The two are not told apart, as programs expect: after a registration, an open and a close the
/// driver is still open.
#[derive(Debug)]
pub(crate) struct Driver<F, B> {
    count: AtomicI64,
    /// Handles of files by their owner's number. Whoever changes the count or registers holds it, never during I/O.
    numbers: Mutex<HashMap<i32, u64>>,
    handles: Handles,
    files: Replicated<F>,
    buffers: Replicated<B>,
}

/// What a last close gave up. Files close when it is dropped, or when the last I/O on them ends.
pub(crate) struct Closed<F, B>(
    #[expect(dead_code, reason = "held to be dropped without a lock")] Vec<Arc<F>>,
    #[expect(dead_code, reason = "held to be dropped without a lock")] Vec<Arc<B>>,
);

impl<F: Numbered + Clone, B: Clone> Driver<F, B> {
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicI64::new(0),
            numbers: Mutex::new(HashMap::new()),
            handles: Handles::new(1),
            files: Replicated::new(),
            buffers: Replicated::new(),
        }
    }

    pub(crate) fn count(&self) -> i64 {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.count() > 0
    }

    pub(crate) fn open(&self) {
        let _numbers = lock(&self.numbers);
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Opens it once if it is not open.
    pub(crate) fn open_implicitly(&self) {
        let _numbers = lock(&self.numbers);
        self.ensure_open();
    }

    /// Only with the numbers locked.
    fn ensure_open(&self) {
        if self.count.load(Ordering::Acquire) == 0 {
            self.count.store(1, Ordering::Release);
        }
    }

    /// One open less; `Some` if it was the last.
    pub(crate) fn close(&self) -> Result<Option<Closed<F, B>>, Error> {
        let mut numbers = lock(&self.numbers);
        match self.count.load(Ordering::Acquire) {
            0 => Err(Error::NotOpen),
            1 => Ok(Some(self.end_with(&mut numbers))),
            count => {
                self.count.store(count - 1, Ordering::Release);
                Ok(None)
            }
        }
    }

    /// Closes it however often it was opened.
    pub(crate) fn end(&self) -> Closed<F, B> {
        self.end_with(&mut lock(&self.numbers))
    }

    fn end_with(&self, numbers: &mut HashMap<i32, u64>) -> Closed<F, B> {
        self.count.store(0, Ordering::Release);
        numbers.clear();
        Closed(self.files.drain(), self.buffers.drain())
    }

    /// Registers a file and opens the driver if it is not open. A number that is registered for the same file is an error; one
    /// that means another file by now is not: the old file keeps its handle.
    pub(crate) fn add_file(&self, file: F) -> Result<u64, Error> {
        let number = file.number();
        let mut numbers = lock(&self.numbers);
        let before = numbers.get(&number).and_then(|handle| self.files.get(*handle));
        if before.is_some_and(|before| before.is_same(&file)) {
            return Err(Error::FileRegistered(number));
        }
        self.ensure_open();
        let handle = self.handles.next();
        self.files.insert(handle, file);
        numbers.insert(number, handle);
        Ok(handle)
    }

    pub(crate) fn file(&self, handle: u64) -> Option<Arc<F>> {
        self.files.get(handle)
    }

    /// Takes a file out. I/O that uses it goes on, and its descriptors close after the last.
    pub(crate) fn remove_file(&self, handle: u64) -> Option<Arc<F>> {
        let mut numbers = lock(&self.numbers);
        let file = self.files.remove(handle)?;
        if numbers.get(&file.number()) == Some(&handle) {
            numbers.remove(&file.number());
        }
        Some(file)
    }

    /// Registers a buffer, if the driver is still open and nothing is registered at its address.
    pub(crate) fn add_buffer(&self, address: u64, buffer: B) -> Result<(), Error> {
        let _numbers = lock(&self.numbers);
        self.ensure_open();
        if self.buffers.insert(address, buffer) {
            Ok(())
        } else {
            Err(Error::BufferRegistered(address as usize))
        }
    }

    pub(crate) fn buffer(&self, address: u64) -> Option<Arc<B>> {
        self.buffers.get(address)
    }

    pub(crate) fn remove_buffer(&self, address: u64) -> Result<(), Error> {
        match self.buffers.remove_unused(address) {
            Ok(()) => Ok(()),
            Err(Kept::Missing) => Err(Error::BufferNotRegistered(address as usize)),
            Err(Kept::InUse) => Err(Error::BufferInUse(address as usize)),
        }
    }

    /// How many files and buffers are registered.
    pub(crate) fn registered(&self) -> (usize, usize) {
        (self.files.len(), self.buffers.len())
    }
}
