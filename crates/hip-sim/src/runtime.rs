//! The state of the process: devices, memory, handles, and what a thread has current.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ThreadId;

use crate::ais::Direction;
use crate::config::{self, Ais, Config};
use crate::error::{Error, Result};
use crate::memory::{Arena, Place, Table};
use crate::pace::Link;
use crate::stream::{self, Event, Order, Point, Stream};
use crate::{lock, say};

/// One simulated GPU.
pub(crate) struct Device {
    pub(crate) index: usize,
    pub(crate) arena: Arc<Arena>,
    pub(crate) pci: config::Address,
    lost: AtomicBool,
    /// Copies to the device, from it, and on it.
    links: [Link; 3],
    /// Direct reads and writes.
    direct: [Link; 2],
    config: &'static Config,
}

impl Device {
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    pub(crate) fn alive(&self) -> Result {
        if self.is_lost() { Err(Error::LAUNCH_FAILURE) } else { Ok(()) }
    }

    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Copies, in the time that the link takes. Between two places of a host there is no link.
    pub(crate) fn copy(&self, to: &Place, from: &Place, length: usize) {
        let link = match (to.device(), from.device()) {
            (Some(_), None) => &self.links[0],
            (None, Some(_)) => &self.links[1],
            (Some(_), Some(_)) => &self.links[2],
            (None, None) => return to.copy_from(from),
        };
        link.transfer(self.config.copies, length as u64, || to.copy_from(from));
    }

    /// Does a direct transfer, in the time that it takes.
    pub(crate) fn direct<R>(
        &self,
        direction: Direction,
        bytes: u64,
        work: impl FnOnce() -> R,
    ) -> R {
        let [read, write] = &self.direct;
        let link = if direction == Direction::Read { read } else { write };
        link.transfer(self.config.direct, bytes, work)
    }
}

/// Everything that HIP calls share.
pub(crate) struct Runtime {
    pub(crate) config: &'static Config,
    pub(crate) devices: Vec<Arc<Device>>,
    pub(crate) memory: Table,
    nulls: Vec<Arc<Stream>>,
    streams: Mutex<HashMap<usize, Arc<Stream>>>,
    /// Handles of the threads' own streams, made when one is first used.
    per_thread: Mutex<HashMap<ThreadId, usize>>,
    events: Mutex<HashMap<usize, Arc<Event>>>,
    ais: Mutex<Ais>,
}

thread_local! {
    static DEVICE: Cell<usize> = const { Cell::new(0) };
}

static RUNTIME: OnceLock<Result<Runtime>> = OnceLock::new();
static FORKED: AtomicBool = AtomicBool::new(false);

/// The first handle. Not a canonical address: whoever follows it is stopped.
const FIRST_HANDLE: usize = 0x5349_4d00_0000_0010;
static HANDLES: AtomicUsize = AtomicUsize::new(FIRST_HANDLE);

/// Whether this is a child of a process that had started the runtime.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Acquire)
}

/// The runtime, started by the first call that needs it. `NOT_INITIALIZED` in a child of a process that had started it:
/// the worker threads and a real GPU's memory are not there.
pub(crate) fn get() -> Result<&'static Runtime> {
    if is_forked() {
        return Err(Error::NOT_INITIALIZED);
    }
    RUNTIME.get_or_init(start).as_ref().map_err(|error| *error)
}

fn start() -> Result<Runtime> {
    let config = config::get()?;
    let mut devices = Vec::with_capacity(config.devices);
    for index in 0..config.devices {
        let arena =
            Arena::new(config.vram, config.p2pmem.get(index).map(std::path::PathBuf::as_path));
        let arena = Arc::new(arena.map_err(|why| {
            say(format_args!("device {index}: {why}"));
            Error::OUT_OF_MEMORY
        })?);
        let bus = u8::try_from(index + 1).unwrap_or(u8::MAX);
        let unset = config::Address { domain: 0xf000, bus, slot: 0, function: 0 };
        let pci = config.pci.get(index).copied().unwrap_or(unset);
        let links = [Link::new(), Link::new(), Link::new()];
        devices.push(Arc::new(Device {
            index,
            arena,
            pci,
            lost: AtomicBool::new(false),
            links,
            direct: [Link::new(), Link::new()],
            config,
        }));
    }
    let null = |device: &Arc<Device>| {
        Arc::new(Stream::new(next_handle(), Arc::clone(device), Order::Null))
    };
    let nulls = devices.iter().map(null).collect();
    let memory = Table::new(devices.iter().map(|device| Arc::clone(&device.arena)).collect());
    // SAFETY: both handlers are functions of this library, which is never unloaded.
    unsafe {
        libc::atexit(at_exit);
        libc::pthread_atfork(None, None, Some(in_child));
    }
    let ais = Mutex::new(config.ais);
    Ok(Runtime {
        config,
        devices,
        memory,
        nulls,
        streams: Mutex::default(),
        per_thread: Mutex::default(),
        events: Mutex::default(),
        ais,
    })
}

extern "C" fn in_child() {
    FORKED.store(true, Ordering::Release);
}

extern "C" fn at_exit() {
    if is_forked() {
        return;
    }
    if let Some(Ok(runtime)) = RUNTIME.get() {
        stream::end(&runtime.all_streams());
    }
}

fn next_handle() -> usize {
    HANDLES.fetch_add(0x10, Ordering::Relaxed)
}

impl Runtime {
    /// The device with this number.
    pub(crate) fn device(&self, index: i32) -> Result<&Arc<Device>> {
        let index = usize::try_from(index).map_err(|_| Error::INVALID_DEVICE)?;
        self.devices.get(index).ok_or(Error::INVALID_DEVICE)
    }

    /// The calling thread's device.
    pub(crate) fn current(&self) -> Result<&Arc<Device>> {
        self.devices.get(DEVICE.get()).ok_or(Error::NO_DEVICE)
    }

    pub(crate) fn set_current(&self, index: i32) -> Result {
        if self.devices.is_empty() {
            return Err(Error::NO_DEVICE);
        }
        DEVICE.set(self.device(index)?.index);
        Ok(())
    }

    pub(crate) fn ais(&self) -> Ais {
        *lock(&self.ais)
    }

    pub(crate) fn set_ais(&self, ais: Ais) {
        *lock(&self.ais) = ais;
    }

    pub(crate) fn add_stream(&self, order: Order) -> Result<usize> {
        let device = self.current()?;
        device.alive()?;
        let id = next_handle();
        lock(&self.streams).insert(id, Arc::new(Stream::new(id, Arc::clone(device), order)));
        Ok(id)
    }

    pub(crate) fn remove_stream(&self, handle: usize) -> Result<Arc<Stream>> {
        lock(&self.streams).remove(&handle).ok_or(Error::INVALID_HANDLE)
    }

    /// The stream of a handle; 0 is the NULL stream of the current device, 2 (`hipStreamPerThread`) the calling thread's own.
    pub(crate) fn stream(&self, handle: usize) -> Result<Arc<Stream>> {
        let handle = match handle {
            0 => {
                let index = self.current()?.index;
                return self.nulls.get(index).cloned().ok_or(Error::NO_DEVICE);
            }
            2 => match lock(&self.per_thread).entry(std::thread::current().id()) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(place) => *place.insert(self.add_stream(Order::Blocking)?),
            },
            handle => handle,
        };
        lock(&self.streams).get(&handle).cloned().ok_or(Error::INVALID_HANDLE)
    }

    fn all_streams(&self) -> Vec<Arc<Stream>> {
        let streams = lock(&self.streams);
        self.nulls.iter().chain(streams.values()).cloned().collect()
    }

    /// What new work in a stream waits for in others: the NULL stream and the blocking streams of its device wait for
    /// each other.
    pub(crate) fn before(&self, stream: &Arc<Stream>) -> Vec<Point> {
        let same = |other: &&Arc<Stream>| other.device.index == stream.device.index;
        match stream.order {
            Order::NonBlocking => Vec::new(),
            Order::Blocking => self.nulls.iter().filter(same).map(Stream::tail).collect(),
            Order::Null => {
                let streams = lock(&self.streams);
                let blocking = streams.values().filter(|other| other.order == Order::Blocking);
                blocking.filter(same).map(Stream::tail).collect()
            }
        }
    }

    /// Everything asked of a device so far.
    pub(crate) fn all_work(&self, device: &Device) -> Vec<Point> {
        let streams = self.all_streams();
        streams
            .iter()
            .filter(|stream| stream.device.index == device.index)
            .map(Stream::tail)
            .collect()
    }

    pub(crate) fn add_event(&self, timing: bool) -> usize {
        let id = next_handle();
        lock(&self.events).insert(id, Arc::new(Event { timing, recorded: Mutex::new(None) }));
        id
    }

    pub(crate) fn event(&self, handle: usize) -> Result<Arc<Event>> {
        lock(&self.events).get(&handle).cloned().ok_or(Error::INVALID_HANDLE)
    }

    pub(crate) fn remove_event(&self, handle: usize) -> Result {
        lock(&self.events).remove(&handle).map(drop).ok_or(Error::INVALID_HANDLE)
    }
}
