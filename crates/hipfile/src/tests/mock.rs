//! A GPU whose memory no CPU can reach, and whose streams do nothing before someone waits for them: a pointer that is used on the
//! wrong side faults, and memory that is used before its copy is done holds the wrong bytes.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard};
use std::thread::ThreadId;

use fastpath_gpu::{
    Attributes, Direction, Gpu, HipError, HostFunction, MemoryKind, RawEvent, RawStream, Transfer,
};

const RESERVED: usize = 256 << 20;

thread_local! {
    static CURRENT: Cell<i32> = const { Cell::new(0) };
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug)]
struct Memory {
    base: usize,
    bytes: Vec<u8>,
    next: usize,
    allocations: BTreeMap<usize, (usize, MemoryKind, i32)>,
}

#[derive(Debug)]
struct Copy {
    direction: Direction,
    device: usize,
    host: usize,
    length: usize,
}

#[derive(Debug, Default)]
struct Streams {
    next: usize,
    waiting: HashMap<usize, VecDeque<Copy>>,
    device: HashMap<usize, i32>,
    /// Of each event, its stream and how many copies must be left in it at most.
    events: HashMap<usize, (usize, u64)>,
    done: HashMap<usize, u64>,
    queued: HashMap<usize, u64>,
}

/// Work in a stream of a client's.
enum Task {
    Host(HostFunction, usize),
    Wait(usize, u64),
    Mark(Sender<()>),
}

/// What a call of the direct interface shall do instead of its work.
pub(crate) type Script = Box<dyn Fn(u64) -> Option<Transfer> + Send + Sync>;

/// What shall happen besides.
pub(crate) type Hook<T> = Arc<dyn Fn(T) + Send + Sync>;

/// `hipStreamPerThread`.
pub(crate) const PER_THREAD: RawStream = RawStream(std::ptr::without_provenance_mut(2));

pub(crate) struct Mock {
    memory: Mutex<Memory>,
    streams: Mutex<Streams>,
    /// Pieces of pinned memory that are allocated now.
    pub(crate) pinned: Mutex<HashMap<usize, usize>>,
    /// Bytes of them, at most until now.
    pub(crate) most_pinned: AtomicUsize,
    /// Runs before each copy.
    pub(crate) before_copy: Mutex<Option<Hook<()>>>,
    pub(crate) direct: AtomicBool,
    pub(crate) transfers: AtomicUsize,
    pub(crate) copies: AtomicUsize,
    /// The copy with this number fails, counted from 1.
    pub(crate) fail_copy: AtomicUsize,
    pub(crate) script: Mutex<Option<Script>>,
    /// Runs in the middle of a transfer, with its bytes.
    pub(crate) meanwhile: Mutex<Option<Hook<u64>>>,
    pub(crate) attribute_error: AtomicU64,
    pub(crate) can_wait: AtomicBool,
    pub(crate) fail_wait: AtomicBool,
    /// Launches of host functions that succeed before all fail.
    pub(crate) launches_left: AtomicUsize,
    /// Runs when someone waits for the default stream of a GPU.
    pub(crate) default_stream: Mutex<Option<Hook<i32>>>,
    /// Runs before a stream is told to wait for a number.
    pub(crate) before_wait: Mutex<Option<Hook<()>>>,
    /// Numbers to wait for that are allocated now, and how often one was.
    pub(crate) signals: Mutex<HashSet<usize>>,
    pub(crate) signal_allocations: AtomicUsize,
    clients: Mutex<HashMap<usize, Sender<Task>>>,
    per_thread: Mutex<HashMap<ThreadId, RawStream>>,
}

impl std::fmt::Debug for Mock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mock")
    }
}

/// Does a client stream's work in order.
fn work(tasks: &Receiver<Task>) {
    for task in tasks {
        match task {
            Task::Host(function, data) => {
                IN_HOST_FUNCTION.set(true);
                // SAFETY: the library wants it called once with this.
                unsafe { function(std::ptr::with_exposed_provenance_mut(data)) };
                IN_HOST_FUNCTION.set(false);
            }
            Task::Wait(signal, value) => {
                let signal: *mut u64 = std::ptr::with_exposed_provenance_mut(signal);
                // SAFETY: leaked below.
                while unsafe { AtomicU64::from_ptr(signal) }.load(Ordering::Acquire) < value {
                    std::thread::yield_now();
                }
            }
            Task::Mark(done) => drop(done.send(())),
        }
    }
}

/// A host function must not come here.
fn called() {
    assert!(!IN_HOST_FUNCTION.get(), "HIP was called in a host function");
}

impl Mock {
    /// A stream that works on its own.
    pub(crate) fn client_stream(&self, device: i32) -> RawStream {
        let stream = {
            let mut streams = self.streams.lock().unwrap();
            streams.next += 1;
            let stream = streams.next;
            streams.device.insert(stream, device);
            RawStream(std::ptr::without_provenance_mut(stream))
        };
        self.give_again(stream);
        stream
    }

    /// Makes the handle another stream's; one that had it does its work all the same.
    pub(crate) fn give_again(&self, stream: RawStream) {
        let (to, tasks) = channel();
        std::thread::spawn(move || work(&tasks));
        self.clients.lock().unwrap().insert(stream.0.addr(), to);
    }

    fn send(&self, stream: RawStream, task: Task) -> Result<(), HipError> {
        let stream = if stream == PER_THREAD {
            let mut streams = self.per_thread.lock().unwrap();
            *streams.entry(std::thread::current().id()).or_insert_with(|| self.client_stream(0))
        } else {
            stream
        };
        let clients = self.clients.lock().unwrap();
        clients.get(&stream.0.addr()).ok_or(HipError::INVALID_VALUE)?.send(task).unwrap();
        Ok(())
    }

    /// Waits until a client's stream has done everything.
    pub(crate) fn finish(&self, stream: RawStream) {
        self.mark(stream).recv().unwrap();
    }

    /// Hears when a client's stream has done what it has to do now.
    pub(crate) fn mark(&self, stream: RawStream) -> Receiver<()> {
        let (done, wait) = channel();
        self.send(stream, Task::Mark(done)).unwrap();
        wait
    }

    /// Keeps a client's stream busy until the other side is dropped.
    pub(crate) fn hold(&self, stream: RawStream) -> Arc<Barrier> {
        unsafe extern "C" fn meet(data: *mut c_void) {
            // SAFETY: made below for this call.
            unsafe { Arc::from_raw(data.cast::<Barrier>().cast_const()) }.wait();
        }
        let barrier = Arc::new(Barrier::new(2));
        let data = Arc::into_raw(Arc::clone(&barrier)).expose_provenance();
        self.send(stream, Task::Host(meet, data)).unwrap();
        barrier
    }

    pub(crate) fn new() -> Self {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        // SAFETY: a new mapping wherever there is room; it is never unmapped.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                RESERVED,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let base = base.expect("an address range").addr();
        let memory =
            Memory { base, bytes: vec![0; RESERVED], next: base, allocations: BTreeMap::new() };
        Self {
            memory: Mutex::new(memory),
            // Lower numbers are names of HIP's own.
            streams: Mutex::new(Streams { next: 15, ..Streams::default() }),
            pinned: Mutex::default(),
            most_pinned: AtomicUsize::new(0),
            before_copy: Mutex::default(),
            direct: AtomicBool::new(true),
            transfers: AtomicUsize::new(0),
            copies: AtomicUsize::new(0),
            fail_copy: AtomicUsize::new(0),
            script: Mutex::new(None),
            meanwhile: Mutex::new(None),
            attribute_error: AtomicU64::new(0),
            can_wait: AtomicBool::new(true),
            fail_wait: AtomicBool::new(false),
            launches_left: AtomicUsize::new(usize::MAX),
            default_stream: Mutex::default(),
            before_wait: Mutex::default(),
            signals: Mutex::default(),
            signal_allocations: AtomicUsize::new(0),
            clients: Mutex::default(),
            per_thread: Mutex::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap()
    }

    /// GPU memory, with a gap behind it.
    pub(crate) fn allocate(&self, length: usize, device: i32) -> usize {
        let mut memory = self.memory();
        let address = memory.next;
        memory.next += length.next_multiple_of(4096) + 4096;
        assert!(memory.next <= memory.base + RESERVED);
        memory.allocations.insert(address, (length, MemoryKind::Device, device));
        address
    }

    /// Host memory of the test's that HIP shall know.
    pub(crate) fn adopt(&self, host: &mut [u8], kind: MemoryKind) -> usize {
        let address = host.as_mut_ptr().expose_provenance();
        self.memory().allocations.insert(address, (host.len(), kind, 0));
        address
    }

    pub(crate) fn poke(&self, address: usize, bytes: &[u8]) {
        let mut memory = self.memory();
        let start = address - memory.base;
        memory.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn peek(&self, address: usize, length: usize) -> Vec<u8> {
        let memory = self.memory();
        let start = address - memory.base;
        memory.bytes[start..start + length].to_vec()
    }

    fn copy(&self, copy: &Copy) {
        let mut memory = self.memory();
        let start = copy.device - memory.base;
        let device = &mut memory.bytes[start..start + copy.length];
        let host: *mut u8 = std::ptr::with_exposed_provenance_mut(copy.host);
        // SAFETY: the library says that this is pinned memory of this length, and that it leaves it alone.
        let host = unsafe { std::slice::from_raw_parts_mut(host, copy.length) };
        match copy.direction {
            Direction::Read => device.copy_from_slice(host),
            Direction::Write => host.copy_from_slice(device),
        }
    }

    /// Does what is in a stream until so many copies have been done.
    fn advance(&self, stream: usize, until: u64) {
        loop {
            let copy = {
                let mut streams = self.streams.lock().unwrap();
                let done = streams.done.entry(stream).or_default();
                if *done >= until {
                    return;
                }
                *done += 1;
                streams
                    .waiting
                    .get_mut(&stream)
                    .and_then(VecDeque::pop_front)
                    .expect("a queued copy")
            };
            self.copy(&copy);
        }
    }

    fn find(&self, address: usize) -> Option<(usize, usize, MemoryKind, i32)> {
        let memory = self.memory();
        let (base, (length, kind, device)) = memory.allocations.range(..=address).next_back()?;
        (address < base + length).then_some((*base, *length, *kind, *device))
    }
}

impl Gpu for Mock {
    fn attributes(&self, address: usize) -> Result<Attributes, HipError> {
        called();
        let error = self.attribute_error.load(Ordering::Relaxed);
        if error != 0 {
            return Err(HipError(error as i32));
        }
        match self.find(address) {
            Some((_, _, kind, device)) => Ok(Attributes { kind, device }),
            None => Ok(Attributes { kind: MemoryKind::Unregistered, device: 0 }),
        }
    }

    fn allocation(&self, address: usize) -> Result<(usize, usize), HipError> {
        called();
        self.find(address).map(|(base, length, ..)| (base, length)).ok_or(HipError::NOT_FOUND)
    }

    fn device_count(&self) -> Result<i32, HipError> {
        Ok(2)
    }

    fn device(&self) -> Result<i32, HipError> {
        Ok(CURRENT.get())
    }

    fn set_device(&self, device: i32) -> Result<(), HipError> {
        CURRENT.set(device);
        Ok(())
    }

    fn create_stream(&self) -> Result<RawStream, HipError> {
        let mut streams = self.streams.lock().unwrap();
        streams.next += 1;
        let stream = streams.next;
        streams.waiting.insert(stream, VecDeque::new());
        streams.device.insert(stream, CURRENT.get());
        Ok(RawStream(std::ptr::without_provenance_mut(stream)))
    }

    unsafe fn destroy_stream(&self, stream: RawStream) -> Result<(), HipError> {
        let left = self.streams.lock().unwrap().waiting.remove(&stream.0.addr());
        assert!(left.expect("a stream").is_empty());
        Ok(())
    }

    unsafe fn synchronize(&self, stream: RawStream) -> Result<(), HipError> {
        called();
        let hook = self.default_stream.lock().unwrap().clone();
        if let (true, Some(hook)) = (stream.0.is_null(), hook) {
            hook(CURRENT.get());
        }
        if self.clients.lock().unwrap().contains_key(&stream.0.addr()) {
            self.finish(stream);
            return Ok(());
        }
        let stream = stream.0.addr();
        let all = self.streams.lock().unwrap().queued.get(&stream).copied().unwrap_or(0);
        self.advance(stream, all);
        Ok(())
    }

    unsafe fn stream_device(&self, stream: RawStream) -> Result<i32, HipError> {
        Ok(self.streams.lock().unwrap().device.get(&stream.0.addr()).copied().unwrap_or(0))
    }

    fn create_event(&self) -> Result<RawEvent, HipError> {
        let mut streams = self.streams.lock().unwrap();
        streams.next += 1;
        let event = streams.next;
        streams.events.insert(event, (0, 0));
        Ok(RawEvent(std::ptr::without_provenance_mut(event)))
    }

    unsafe fn destroy_event(&self, event: RawEvent) -> Result<(), HipError> {
        self.streams.lock().unwrap().events.remove(&event.0.addr()).expect("an event");
        Ok(())
    }

    unsafe fn record_event(&self, event: RawEvent, stream: RawStream) -> Result<(), HipError> {
        let mut streams = self.streams.lock().unwrap();
        let queued = streams.queued.get(&stream.0.addr()).copied().unwrap_or(0);
        streams.events.insert(event.0.addr(), (stream.0.addr(), queued));
        Ok(())
    }

    unsafe fn wait_event(&self, event: RawEvent) -> Result<(), HipError> {
        let (stream, until) = self.streams.lock().unwrap().events[&event.0.addr()];
        self.advance(stream, until);
        Ok(())
    }

    unsafe fn copy(
        &self,
        direction: Direction,
        device: usize,
        host: *mut u8,
        length: usize,
        stream: RawStream,
    ) -> Result<(), HipError> {
        let hook = self.before_copy.lock().unwrap().clone();
        if let Some(hook) = hook {
            hook(());
        }
        if self.copies.fetch_add(1, Ordering::Relaxed) + 1 == self.fail_copy.load(Ordering::Relaxed)
        {
            return Err(HipError::UNKNOWN);
        }
        let (base, allocated, kind, owner) = self.find(device).expect("device memory");
        assert!(kind == MemoryKind::Device && device + length <= base + allocated);
        let copy = Copy { direction, device, host: host.expose_provenance(), length };
        if stream.0.is_null() {
            Self::copy(self, &copy);
            return Ok(());
        }
        let stream = stream.0.addr();
        let mut streams = self.streams.lock().unwrap();
        assert_eq!(streams.device[&stream], owner, "a copy in another GPU's stream");
        streams.waiting.get_mut(&stream).expect("a stream").push_back(copy);
        *streams.queued.entry(stream).or_default() += 1;
        Ok(())
    }

    fn can_wait_value(&self, _: i32) -> bool {
        self.can_wait.load(Ordering::Relaxed)
    }

    fn allocate_signal(&self) -> Result<NonNull<u64>, HipError> {
        called();
        let signal: &'static mut u64 = Box::leak(Box::new(0));
        let signal = NonNull::from(signal);
        self.signal_allocations.fetch_add(1, Ordering::Relaxed);
        self.signals.lock().unwrap().insert(signal.as_ptr().expose_provenance());
        Ok(signal)
    }

    unsafe fn free_signal(&self, signal: NonNull<u64>) -> Result<(), HipError> {
        called();
        let signal = signal.as_ptr().expose_provenance();
        self.signals.lock().unwrap().remove(&signal).then_some(()).ok_or(HipError::INVALID_VALUE)
    }

    unsafe fn wait_value(
        &self,
        stream: RawStream,
        signal: NonNull<u64>,
        value: u64,
    ) -> Result<(), HipError> {
        called();
        let hook = self.before_wait.lock().unwrap().clone();
        if let Some(hook) = hook {
            hook(());
        }
        let signal_address = signal.as_ptr().expose_provenance();
        assert!(self.signals.lock().unwrap().contains(&signal_address), "a freed signal");
        if self.fail_wait.load(Ordering::Relaxed) {
            return Err(HipError::NOT_SUPPORTED);
        }
        self.send(stream, Task::Wait(signal_address, value))
    }

    fn pci_address(&self, device: i32) -> Option<String> {
        Some(format!("0000:0{}:02.0", device + 3))
    }

    fn uuid(&self, device: i32) -> Option<[u8; 16]> {
        Some([device as u8 + 1; 16])
    }

    fn allocate_device(&self, length: usize) -> Result<NonNull<u8>, HipError> {
        called();
        let address = self.allocate(length, 0);
        NonNull::new(std::ptr::with_exposed_provenance_mut(address)).ok_or(HipError::OUT_OF_MEMORY)
    }

    unsafe fn free_device(&self, memory: NonNull<u8>) -> Result<(), HipError> {
        called();
        let address = memory.as_ptr().expose_provenance();
        self.memory().allocations.remove(&address).map(drop).ok_or(HipError::INVALID_VALUE)
    }

    fn allocate_host(&self, length: usize) -> Result<NonNull<u8>, HipError> {
        called();
        // Not at the start of a page, which HIP does not promise.
        let memory = &mut vec![0xEE_u8; length + 64].leak()[64..];
        let mut pinned = self.pinned.lock().unwrap();
        pinned.insert(memory.as_mut_ptr().expose_provenance(), length);
        self.most_pinned.fetch_max(pinned.values().sum(), Ordering::Relaxed);
        NonNull::new(memory.as_mut_ptr()).ok_or(HipError::OUT_OF_MEMORY)
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<(), HipError> {
        let address = memory.as_ptr().expose_provenance();
        self.pinned.lock().unwrap().remove(&address).map(drop).ok_or(HipError::INVALID_VALUE)
    }

    unsafe fn launch(
        &self,
        stream: RawStream,
        function: HostFunction,
        data: *mut c_void,
    ) -> Result<(), HipError> {
        called();
        let left = self
            .launches_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map_err(|_| HipError::UNKNOWN)?;
        self.send(stream, Task::Host(function, data.expose_provenance()))
    }

    fn has_direct_storage(&self) -> bool {
        self.direct.load(Ordering::Relaxed)
    }

    unsafe fn transfer(
        &self,
        direction: Direction,
        fd: i32,
        address: usize,
        length: u64,
        offset: i64,
    ) -> Option<Transfer> {
        if !self.direct.load(Ordering::Relaxed) {
            return None;
        }
        called();
        self.transfers.fetch_add(1, Ordering::Relaxed);
        let meanwhile = self.meanwhile.lock().unwrap().clone();
        if let Some(meanwhile) = meanwhile {
            meanwhile(length);
        }
        let scripted = self.script.lock().unwrap().as_ref().and_then(|script| script(length));
        let (base, allocated, kind, _) = self.find(address).expect("device memory");
        assert!(kind == MemoryKind::Device && address + length as usize <= base + allocated);
        // A scripted failure has moved what it says it has.
        let is_true = |answer: &Transfer| answer.copied <= length && answer.errno == 0;
        let real =
            scripted.map_or(length, |answer| if is_true(&answer) { answer.copied } else { 0 });
        let length = real as usize;
        let mut memory = vec![0_u8; length + 4096];
        let start = memory.as_ptr().addr().next_multiple_of(4096) - memory.as_ptr().addr();
        let buffer = &mut memory[start..start + length];
        let moved = match direction {
            // SAFETY: a slice of this test's.
            Direction::Read => unsafe {
                libc::pread64(fd, buffer.as_mut_ptr().cast(), length, offset)
            },
            Direction::Write => {
                buffer.copy_from_slice(&self.peek(address, length));
                // SAFETY: as above.
                unsafe { libc::pwrite64(fd, buffer.as_ptr().cast(), length, offset) }
            }
        };
        assert!(moved >= 0, "{}", std::io::Error::last_os_error());
        if direction == Direction::Read {
            self.poke(address, &buffer[..moved as usize]);
        }
        let moved = moved as u64;
        Some(match scripted {
            // No driver has moved what the file does not have.
            Some(answer) if is_true(&answer) => Transfer { copied: moved, ..answer },
            Some(answer) => answer,
            None => Transfer { error: 0, status: 0, copied: moved, errno: 0 },
        })
    }

    fn version(&self) -> i32 {
        70_200_000
    }
}
