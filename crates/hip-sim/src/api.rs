//! The C interface. Every function counts its calls, may be made to fail, and lets no panic out.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::ais::{self, Direction, Request};
use crate::config::{self, AIS_VERSION, Ais};
use crate::error::{self, Error, Result};
use crate::fault::{self, Action};
use crate::memory::{Kind, Region};
use crate::runtime::{self, Device, Runtime};
use crate::say;
use crate::stream::{self, HostFunction, Mark, Order, Point, Stream, Task};

/// A place where the caller wants an answer. Only C callers make one: it is valid for a write or null.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    fn check(&self) -> Result {
        if self.0.is_null() { Err(Error::INVALID_VALUE) } else { Ok(()) }
    }

    /// Writes the answer; `INVALID_VALUE` if there is no place for it.
    fn set(&self, value: T) -> Result {
        self.check()?;
        // SAFETY: not null, so valid for a write as the caller of the C function promised.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the answer if it is wanted.
    fn set_if_wanted(&self, value: T) {
        let _ = self.set(value);
    }
}

/// A C string of the caller's, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    fn get(&self) -> Result<&str> {
        if self.0.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: not null, so a C string as the caller of the C function promised.
        unsafe { CStr::from_ptr(self.0) }.to_str().map_err(|_| Error::INVALID_VALUE)
    }
}

/// An address that the caller passes: looked up, never followed blindly.
type Address = *const c_void;

/// `hipStream_t` and `hipEvent_t`.
type Handle = *mut c_void;

/// `hipAmdFileHandle_t`: Linux uses the descriptor.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union FileHandle {
    /// Of other systems.
    pub(crate) handle: *mut c_void,
    /// The file descriptor.
    pub(crate) fd: c_int,
    /// Its size.
    pub(crate) pad: [u8; 8],
}

/// `hipPointerAttribute_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointerAttribute {
    /// `hipMemoryType`.
    pub(crate) kind: c_uint,
    /// The GPU it belongs to.
    pub(crate) device: c_int,
    /// For use by the GPU.
    pub(crate) device_pointer: *mut c_void,
    /// For use by the host; null if it has no access.
    pub(crate) host_pointer: *mut c_void,
    /// Whether it is managed memory.
    pub(crate) is_managed: c_int,
    /// As given when it was allocated.
    pub(crate) flags: c_uint,
}

/// `hipUUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uuid {
    /// Any bytes.
    pub(crate) bytes: [u8; 16],
}

/// `hipDeviceProp_tR0600`, with the members that the simulation knows where compilers put them since HIP 6.
/// Source of size and name: <https://github.com/llvm/llvm-project/pull/167695>.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    pub(crate) name: [u8; 256],
    pub(crate) uuid: Uuid,
    _1: [u8; 16],
    pub(crate) total_global_memory: usize,
    _2: [u8; 24],
    pub(crate) max_threads_per_block: c_int,
    _3: [u8; 72],
    pub(crate) integrated: c_int,
    pub(crate) can_map_host_memory: c_int,
    _4: [u8; 172],
    pub(crate) concurrent_kernels: c_int,
    _5: c_int,
    pub(crate) pci_bus: c_int,
    pub(crate) pci_device: c_int,
    pub(crate) pci_domain: c_int,
    _6: c_int,
    pub(crate) async_engines: c_int,
    _7: [u8; 48],
    pub(crate) managed_memory: c_int,
    _8: [u8; 504],
    pub(crate) architecture: [u8; 256],
    _9: [u8; 56],
}

const _: () = {
    assert!(size_of::<Properties>() == 1472);
    assert!(std::mem::offset_of!(Properties, total_global_memory) == 288);
    assert!(std::mem::offset_of!(Properties, max_threads_per_block) == 320);
    assert!(std::mem::offset_of!(Properties, integrated) == 396);
    assert!(std::mem::offset_of!(Properties, concurrent_kernels) == 576);
    assert!(std::mem::offset_of!(Properties, pci_bus) == 584);
    assert!(std::mem::offset_of!(Properties, async_engines) == 600);
    assert!(std::mem::offset_of!(Properties, managed_memory) == 652);
    assert!(std::mem::offset_of!(Properties, architecture) == 1160);
    assert!(size_of::<FileHandle>() == 8);
    assert!(size_of::<PointerAttribute>() == 32);
    assert!(std::mem::offset_of!(PointerAttribute, device_pointer) == 8);
    assert!(std::mem::offset_of!(PointerAttribute, is_managed) == 24);
    assert!(size_of::<Uuid>() == 16);
};

thread_local! {
    static LAST_ERROR: Cell<c_int> = const { Cell::new(0) };
}

/// What every call goes through.
fn door(function: Function, call: impl FnOnce() -> Result) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(|| {
        // First of all: in a child the locks below may be held by threads that it does not have.
        if runtime::is_forked() {
            return Err(Error::NOT_INITIALIZED);
        }
        config::get()?;
        let action = fault::called(function as usize);
        match action {
            Some(Action::Error(code)) => return Err(Error(code)),
            Some(Action::Lost) => runtime::get()?.current()?.lose(),
            _ => {}
        }
        fault::leave(action);
        let result = call();
        fault::leave(None);
        result
    }));
    match result.unwrap_or(Err(Error::UNKNOWN)) {
        Ok(()) => 0,
        Err(error) => {
            // Not ready is an answer, not a failure.
            if error != Error::NOT_READY {
                LAST_ERROR.set(error.0);
            }
            error.0
        }
    }
}

macro_rules! exports {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types, reason = "named as in C")]
        enum Function { $($name),* }

        /// Every function that is counted and can be made to fail.
        pub(crate) const NAMES: [&str; [$(stringify!($name)),*].len()] = [$(stringify!($name)),*];

        /// The address of an exported function.
        fn find(name: &str) -> Option<*mut c_void> {
            let function: *const () = match name {
                $(stringify!($name) => $name as *const (),)*
                "hipGetLastError" => hipGetLastError as *const (),
                "hipPeekAtLastError" => hipPeekAtLastError as *const (),
                "hipGetErrorName" => hipGetErrorName as *const (),
                "hipGetErrorString" => hipGetErrorString as *const (),
                _ => return None,
            };
            Some(function.cast_mut().cast())
        }

        $(
            $(#[$meta])*
            ///
            /// # Safety
            ///
            /// As HIP's documentation asks of a caller.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "named as in C")]
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                door(Function::$name, || $body)
            }
        )*
    };
}

exports! {
    /// Starts the runtime.
    fn hipInit(flags: c_uint) {
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        runtime::get()?.current().map(drop)
    }

    /// The version as major * 10^7 + minor * 10^5 + patch.
    fn hipRuntimeGetVersion(version: Out<c_int>) {
        version.set(config::get()?.version)
    }

    /// As [`hipRuntimeGetVersion`].
    fn hipDriverGetVersion(version: Out<c_int>) {
        version.set(config::get()?.version)
    }

    /// Finds any function of this library. Those of direct storage are there from HIP 7.2 on, unless they shall not be.
    fn hipGetProcAddress(symbol: Text, function: Out<*mut c_void>, version: c_int, _flags: u64, result: Out<c_uint>) {
        const FOUND: c_uint = 0;
        const NOT_FOUND: c_uint = 1;
        const VERSION_TOO_LOW: c_uint = 2;
        function.check()?;
        let name = symbol.get()?;
        let ais = name.starts_with("hipAmdFile");
        let answer = match find(name) {
            Some(_) if ais && runtime::get()?.ais() == Ais::Absent => Err(NOT_FOUND),
            Some(_) if ais && version < AIS_VERSION => Err(VERSION_TOO_LOW),
            found => found.ok_or(NOT_FOUND),
        };
        result.set_if_wanted(answer.err().unwrap_or(FOUND));
        function.set(answer.unwrap_or(std::ptr::null_mut()))?;
        answer.map(drop).map_err(|_| Error::NOT_FOUND)
    }

    /// How many devices there are.
    fn hipGetDeviceCount(count: Out<c_int>) {
        let devices = runtime::get()?.devices.len();
        count.set(c_int::try_from(devices).unwrap_or(c_int::MAX))?;
        if devices == 0 { Err(Error::NO_DEVICE) } else { Ok(()) }
    }

    /// The calling thread's device.
    fn hipGetDevice(device: Out<c_int>) {
        device.set(number(runtime::get()?.current()?.index))
    }

    /// Makes a device the calling thread's.
    fn hipSetDevice(device: c_int) {
        runtime::get()?.set_current(device)
    }

    /// The handle of a device: its number.
    fn hipDeviceGet(device: Out<c_int>, ordinal: c_int) {
        device.set(number(runtime::get()?.device(ordinal)?.index))
    }

    /// What a device can do. `hipErrorInvalidValue` for what the simulation does not know.
    fn hipDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        let runtime = runtime::get()?;
        value.set(self::attribute(runtime, runtime.device(device)?, attribute)?)
    }

    /// What a device is and can do, in the layout of HIP 6 and later; zeros for what the simulation does not know.
    fn hipGetDevicePropertiesR0600(properties: Out<Properties>, device: c_int) {
        properties.check()?;
        let runtime = runtime::get()?;
        let device = runtime.device(device)?;
        let of = |number| attribute(runtime, device, number).unwrap_or_default();
        properties.set(Properties {
            name: array(&name(device.index)),
            uuid: uuid(device.index),
            _1: [0; 16],
            total_global_memory: device.arena.room().1,
            _2: [0; 24],
            max_threads_per_block: of(56),
            _3: [0; 72],
            integrated: of(16),
            can_map_host_memory: of(3),
            _4: [0; 172],
            concurrent_kernels: of(8),
            _5: 0,
            pci_bus: of(67),
            pci_device: of(68),
            pci_domain: of(69),
            _6: 0,
            async_engines: of(2),
            _7: [0; 48],
            managed_memory: of(24),
            _8: [0; 504],
            // No architecture that exists.
            architecture: array("gfx000"),
            _9: [0; 56],
        })
    }

    /// Sixteen bytes of its own for every device.
    fn hipDeviceGetUuid(uuid: Out<Uuid>, device: c_int) {
        uuid.set(self::uuid(runtime::get()?.device(device)?.index))
    }

    /// A name that says what it is.
    fn hipDeviceGetName(name: Out<c_char>, length: c_int, device: c_int) {
        let text = self::name(runtime::get()?.device(device)?.index);
        write_text(&name, length, &text, false)
    }

    /// The PCI address, as `0000:03:00.0`.
    fn hipDeviceGetPCIBusId(text: Out<c_char>, length: c_int, device: c_int) {
        let pci = runtime::get()?.device(device)?.pci;
        let address = format!("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.slot, pci.function);
        write_text(&text, length, &address, true)
    }

    /// The memory of a device in bytes.
    fn hipDeviceTotalMem(bytes: Out<usize>, device: c_int) {
        bytes.set(runtime::get()?.device(device)?.arena.room().1)
    }

    /// Waits for everything asked of the current device.
    fn hipDeviceSynchronize() {
        let runtime = runtime::get()?;
        stream::synchronize(&runtime.all_work(runtime.current()?))
    }

    /// Allocates device memory, which the host cannot touch.
    fn hipMalloc(pointer: Out<*mut c_void>, size: usize) {
        allocate(&pointer, size, |runtime| {
            let device = runtime.current()?;
            Region::device(&device.arena, device.index, size)
        })
    }

    /// Device memory for flags 0, or a signal of eight bytes for `hipMallocSignalMemory`.
    fn hipExtMallocWithFlags(pointer: Out<*mut c_void>, size: usize, flags: c_uint) {
        const SIGNAL: c_uint = 2;
        match flags {
            0 | 1 => allocate(&pointer, size, |runtime| {
                let device = runtime.current()?;
                Region::device(&device.arena, device.index, size)
            }),
            SIGNAL if size == 8 => allocate(&pointer, size, |runtime| {
                Region::host(Kind::Signal, runtime.current()?.index, size, flags)
            }),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// Memory of both sides.
    fn hipMallocManaged(pointer: Out<*mut c_void>, size: usize, flags: c_uint) {
        // hipMemAttachGlobal, hipMemAttachHost
        if !matches!(flags, 1 | 2) {
            return Err(Error::INVALID_VALUE);
        }
        allocate(&pointer, size, |runtime| Region::host(Kind::Managed, runtime.current()?.index, size, flags))
    }

    /// Waits for the device, then frees what the functions above allocated. Null is freed at once.
    fn hipFree(pointer: Address) {
        free(pointer, &[Kind::Device, Kind::Managed, Kind::Signal], Error::INVALID_DEVICE_POINTER)
    }

    /// Allocates pinned host memory.
    fn hipHostMalloc(pointer: Out<*mut c_void>, size: usize, flags: c_uint) {
        allocate(&pointer, size, |runtime| Region::host(Kind::Pinned, runtime.current()?.index, size, flags))
    }

    /// Waits for the device, then frees pinned host memory.
    fn hipHostFree(pointer: Address) {
        free(pointer, &[Kind::Pinned], Error::INVALID_VALUE)
    }

    /// Pins memory of the caller's.
    fn hipHostRegister(pointer: Address, size: usize, flags: c_uint) {
        let runtime = runtime::get()?;
        let device = runtime.current()?;
        device.alive()?;
        let base = pointer.expose_provenance();
        if base == 0 || size == 0 || runtime.memory.is_device(base) {
            return Err(Error::INVALID_VALUE);
        }
        runtime.memory.add(Region::registered(base, size, device.index, flags)).map(drop)
    }

    /// Ends what `hipHostRegister` began.
    fn hipHostUnregister(pointer: Address) {
        let runtime = runtime::get()?;
        if pointer.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        runtime.memory.remove(pointer.addr(), &[Kind::Registered]).map(drop).ok_or(Error::NOT_REGISTERED)
    }

    /// The GPU's pointer to pinned memory: the same.
    fn hipHostGetDevicePointer(device_pointer: Out<*mut c_void>, pointer: Address, flags: c_uint) {
        let region = runtime::get()?.memory.find(pointer.addr());
        match region {
            Some(region) if region.on_host() && flags == 0 => device_pointer.set(pointer.cast_mut()),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// Free and total bytes of the current device.
    fn hipMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let (left, all) = runtime::get()?.current()?.arena.room();
        free.set(left)?;
        total.set(all)
    }

    /// What memory a pointer is in. Memory that HIP does not know is of type "unregistered", not an error.
    fn hipPointerGetAttributes(attributes: Out<PointerAttribute>, pointer: Address) {
        if pointer.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let pointer = pointer.cast_mut();
        let null = std::ptr::null_mut();
        let Some(region) = runtime::get()?.memory.find(pointer.addr()) else {
            return attributes.set(PointerAttribute {
                kind: 0, device: -2, device_pointer: null, host_pointer: null, is_managed: 0, flags: 0,
            });
        };
        let kind = match region.kind {
            Kind::Pinned | Kind::Registered | Kind::Signal => 1,
            Kind::Device => 2,
            Kind::Managed => 3,
        };
        attributes.set(PointerAttribute {
            kind,
            device: number(region.device),
            device_pointer: pointer,
            host_pointer: if region.on_host() { pointer } else { null },
            is_managed: c_int::from(region.kind == Kind::Managed),
            flags: region.flags,
        })
    }

    /// The allocation that a pointer is in.
    fn hipMemGetAddressRange(base: Out<*mut c_void>, size: Out<usize>, pointer: Address) {
        let region = runtime::get()?.memory.find(pointer.addr()).ok_or(Error::NOT_FOUND)?;
        base.set_if_wanted(std::ptr::with_exposed_provenance_mut(region.base));
        size.set_if_wanted(region.size);
        Ok(())
    }

    /// Copies, and returns when it is done.
    fn hipMemcpy(to: Address, from: Address, size: usize, kind: c_int) {
        copy(to, from, size, kind, NULL, Wait::Always)
    }

    /// Copies in a stream, and returns when it is done.
    fn hipMemcpyWithStream(to: Address, from: Address, size: usize, kind: c_int, stream: Handle) {
        copy(to, from, size, kind, stream, Wait::Always)
    }

    /// Copies in a stream. With host memory that is not pinned it returns when it is done.
    fn hipMemcpyAsync(to: Address, from: Address, size: usize, kind: c_int, stream: Handle) {
        copy(to, from, size, kind, stream, Wait::IfPageable)
    }

    /// To the device.
    fn hipMemcpyHtoD(to: Address, from: Address, size: usize) {
        copy(to, from, size, TO_DEVICE, NULL, Wait::Always)
    }

    /// To the host.
    fn hipMemcpyDtoH(to: Address, from: Address, size: usize) {
        copy(to, from, size, TO_HOST, NULL, Wait::Always)
    }

    /// Between devices, or on one.
    fn hipMemcpyDtoD(to: Address, from: Address, size: usize) {
        copy(to, from, size, ON_DEVICE, NULL, Wait::Always)
    }

    /// To the device, in a stream.
    fn hipMemcpyHtoDAsync(to: Address, from: Address, size: usize, stream: Handle) {
        copy(to, from, size, TO_DEVICE, stream, Wait::IfPageable)
    }

    /// To the host, in a stream.
    fn hipMemcpyDtoHAsync(to: Address, from: Address, size: usize, stream: Handle) {
        copy(to, from, size, TO_HOST, stream, Wait::IfPageable)
    }

    /// Between devices, or on one, in a stream.
    fn hipMemcpyDtoDAsync(to: Address, from: Address, size: usize, stream: Handle) {
        copy(to, from, size, ON_DEVICE, stream, Wait::IfPageable)
    }

    /// Fills memory in the NULL stream; returns before device memory is filled.
    fn hipMemset(to: Address, value: c_int, size: usize) {
        fill(to, value, size, NULL)
    }

    /// Fills memory in a stream.
    fn hipMemsetAsync(to: Address, value: c_int, size: usize, stream: Handle) {
        fill(to, value, size, stream)
    }

    /// A stream that waits for the NULL stream, and it for this one.
    fn hipStreamCreate(stream: Out<Handle>) {
        create_stream(&stream, 0)
    }

    /// As `hipStreamCreate`, or with `hipStreamNonBlocking` one that the NULL stream is nothing to.
    fn hipStreamCreateWithFlags(stream: Out<Handle>, flags: c_uint) {
        create_stream(&stream, flags)
    }

    /// Waits for the work of a stream and ends it.
    fn hipStreamDestroy(stream: Handle) {
        runtime::get()?.remove_stream(stream.addr())?.close();
        Ok(())
    }

    /// Waits for the work of a stream; for the NULL stream also for that of the blocking ones.
    fn hipStreamSynchronize(stream: Handle) {
        stream::synchronize(&tails(stream)?)
    }

    /// Whether `hipStreamSynchronize` would return at once.
    fn hipStreamQuery(stream: Handle) {
        let points = tails(stream)?;
        if points.iter().all(Point::is_reached) { stream::synchronize(&points) } else { Err(Error::NOT_READY) }
    }

    /// The device of a stream.
    fn hipStreamGetDevice(stream: Handle, device: Out<c_int>) {
        device.set(number(runtime::get()?.stream(stream.addr())?.device.index))
    }

    /// Lets a stream wait for an event as it was last recorded.
    fn hipStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) {
        let runtime = runtime::get()?;
        let event = runtime.event(event.addr())?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let recorded = crate::lock(&event.recorded).as_ref().map(|(point, _)| point.clone());
        match recorded {
            Some(point) => submit(runtime, stream, Task::Nothing, Some(point)).map(drop),
            None => Ok(()),
        }
    }

    /// Lets a stream wait until a signal has a value: (signal & mask) at least, equal to, with bits of, or none but `value`.
    fn hipStreamWaitValue64(stream: Handle, pointer: Address, value: u64, flags: c_uint, mask: u64) {
        let runtime = runtime::get()?;
        if !runtime.config.wait_value {
            return Err(Error::NOT_SUPPORTED);
        }
        let place = runtime.memory.place(pointer.addr(), 8)?;
        if flags > 3 || !place.region.as_ref().is_some_and(|region| region.kind == Kind::Signal) {
            return Err(Error::INVALID_VALUE);
        }
        let holds = move || {
            let Some(word) = place.word() else { return true };
            let now = word.load(std::sync::atomic::Ordering::Acquire) & mask;
            match flags {
                0 => now >= value,
                1 => now == value,
                2 => now & value != 0,
                _ => !(now | value) & mask != 0,
            }
        };
        submit(runtime, stream, Task::Until(Box::new(holds)), None).map(drop)
    }

    /// Writes a value to memory that the GPU can reach.
    fn hipStreamWriteValue64(stream: Handle, pointer: Address, value: u64, flags: c_uint) {
        let runtime = runtime::get()?;
        let place = runtime.memory.place(pointer.addr(), 8)?;
        if flags != 0 || place.region.is_none() || place.word().is_none() {
            return Err(Error::INVALID_VALUE);
        }
        let write = move || {
            if let Some(word) = place.word() {
                word.store(value, std::sync::atomic::Ordering::Release);
            }
        };
        submit(runtime, stream, Task::Run(Box::new(write)), None).map(drop)
    }

    /// Calls a function when a stream gets there, from the stream's worker thread.
    fn hipLaunchHostFunc(stream: Handle, function: Option<HostFunction>, data: *mut c_void) {
        let function = function.ok_or(Error::INVALID_VALUE)?;
        submit(runtime::get()?, stream, Task::Host(function, data.expose_provenance()), None).map(drop)
    }

    /// There is no GPU to run a kernel: `hipErrorNotSupported`.
    fn hipLaunchKernel(
        _function: Address, _grid: Dimensions, _block: Dimensions,
        _arguments: *mut *mut c_void, _shared: usize, _stream: Handle,
    ) {
        runtime::get()?;
        Err(Error::NOT_SUPPORTED)
    }

    /// An event that takes the time.
    fn hipEventCreate(event: Out<Handle>) {
        create_event(&event, 0)
    }

    /// An event; `hipEventDisableTiming` takes no time.
    fn hipEventCreateWithFlags(event: Out<Handle>, flags: c_uint) {
        create_event(&event, flags)
    }

    /// Records all that was asked of a stream so far.
    fn hipEventRecord(event: Handle, stream: Handle) {
        let runtime = runtime::get()?;
        let event = runtime.event(event.addr())?;
        let mark = Arc::new(Mark::new());
        let point = submit(runtime, stream, Task::Mark(Arc::clone(&mark)), None)?;
        *crate::lock(&event.recorded) = Some((point, mark));
        Ok(())
    }

    /// Whether the recorded work is done, or nothing was recorded.
    fn hipEventQuery(event: Handle) {
        let event = runtime::get()?.event(event.addr())?;
        let reached = crate::lock(&event.recorded).as_ref().is_none_or(|(point, _)| point.is_reached());
        if reached { Ok(()) } else { Err(Error::NOT_READY) }
    }

    /// Waits until the recorded work is done.
    fn hipEventSynchronize(event: Handle) {
        let event = runtime::get()?.event(event.addr())?;
        let recorded = crate::lock(&event.recorded).as_ref().map(|(point, _)| point.clone());
        recorded.map_or(Ok(()), |point| stream::synchronize(&[point]))
    }

    /// Forgets an event; a stream that waits for it goes on waiting.
    fn hipEventDestroy(event: Handle) {
        runtime::get()?.remove_event(event.addr())
    }

    /// Milliseconds between two events.
    fn hipEventElapsedTime(milliseconds: Out<f32>, start: Handle, stop: Handle) {
        let runtime = runtime::get()?;
        let moment = |handle: Handle| {
            let event = runtime.event(handle.addr())?;
            let recorded = crate::lock(&event.recorded);
            let (_, mark) = recorded.as_ref().filter(|_| event.timing).ok_or(Error::INVALID_HANDLE)?;
            mark.moment().ok_or(Error::NOT_READY)
        };
        let (start, stop) = (moment(start)?, moment(stop)?);
        let (sign, time) = match stop.checked_duration_since(start) {
            Some(time) => (1.0, time),
            None => (-1.0, start.duration_since(stop)),
        };
        milliseconds.set(sign * time.as_secs_f32() * 1e3)
    }

    /// Reads from a file into device memory, past the host's.
    fn hipAmdFileRead(
        handle: FileHandle, pointer: Address, size: u64, offset: i64, copied: Out<u64>, status: Out<i32>,
    ) {
        direct(Direction::Read, handle, pointer, size, offset, &copied, &status)
    }

    /// Writes device memory to a file, past the host's.
    fn hipAmdFileWrite(
        handle: FileHandle, pointer: Address, size: u64, offset: i64, copied: Out<u64>, status: Out<i32>,
    ) {
        direct(Direction::Write, handle, pointer, size, offset, &copied, &status)
    }
}

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dimensions {
    /// First dimension.
    pub(crate) x: c_uint,
    /// Second dimension.
    pub(crate) y: c_uint,
    /// Third dimension.
    pub(crate) z: c_uint,
}

/// `hipMemcpyHostToDevice`
const TO_DEVICE: c_int = 1;
/// `hipMemcpyDeviceToHost`
const TO_HOST: c_int = 2;
/// `hipMemcpyDeviceToDevice`
const ON_DEVICE: c_int = 3;

const NULL: Handle = std::ptr::null_mut();

fn number(index: usize) -> c_int {
    c_int::try_from(index).unwrap_or(c_int::MAX)
}

/// An attribute by its number; `INVALID_VALUE` for one that the simulation does not know.
fn attribute(runtime: &Runtime, device: &Device, attribute: c_int) -> Result<c_int> {
    Ok(match attribute {
        // hipDeviceAttributeAsyncEngineCount
        2 => 2,
        // hipDeviceAttributeCanMapHostMemory, ConcurrentKernels, ManagedMemory
        3 | 8 | 24 => 1,
        // hipDeviceAttributeIntegrated
        16 => 0,
        // hipDeviceAttributeMaxThreadsPerBlock
        56 => 1024,
        // hipDeviceAttributePciBusId, PciDeviceId, PciDomainID
        67 => c_int::from(device.pci.bus),
        68 => c_int::from(device.pci.slot),
        69 => c_int::try_from(device.pci.domain).unwrap_or(c_int::MAX),
        // hipDeviceAttributeCanUseStreamWaitValue
        10013 => c_int::from(runtime.config.wait_value),
        _ => return Err(Error::INVALID_VALUE),
    })
}

fn name(device: usize) -> String {
    format!("hip-sim simulated GPU {device}")
}

fn uuid(device: usize) -> Uuid {
    let mut bytes = *b"hip-sim-gpu-0000";
    for (place, digit) in bytes.iter_mut().rev().zip(format!("{device:04}").bytes().rev()) {
        *place = digit;
    }
    Uuid { bytes }
}

/// A text with zeros to the end of its place, of which one is kept.
fn array<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
        *place = byte;
    }
    bytes
}

/// Writes text and its NUL into a buffer of the caller's, cut if it need not be whole.
fn write_text(buffer: &Out<c_char>, length: c_int, text: &str, whole: bool) -> Result {
    buffer.check()?;
    let room = usize::try_from(length).ok().filter(|room| *room > 0).ok_or(Error::INVALID_VALUE)?;
    if whole && text.len() >= room {
        return Err(Error::INVALID_VALUE);
    }
    let count = text.len().min(room - 1);
    // SAFETY: not null, and the caller of the C function promised `length` bytes; at most that many are written.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.0.cast(), count);
        buffer.0.add(count).write(0);
    }
    Ok(())
}

/// Allocates something and hands out its address; nothing for a size of 0.
fn allocate(
    pointer: &Out<*mut c_void>,
    size: usize,
    make: impl FnOnce(&Runtime) -> Result<Region>,
) -> Result {
    pointer.check()?;
    let runtime = runtime::get()?;
    runtime.current()?.alive()?;
    if size == 0 {
        return pointer.set(std::ptr::null_mut());
    }
    let base = runtime.memory.add(make(runtime)?)?;
    pointer.set(std::ptr::with_exposed_provenance_mut(base))
}

fn free(pointer: Address, kinds: &[Kind], otherwise: Error) -> Result {
    let runtime = runtime::get()?;
    if pointer.is_null() {
        return Ok(());
    }
    let region = runtime.memory.find(pointer.addr()).ok_or(otherwise)?;
    if region.base != pointer.addr() || !kinds.contains(&region.kind) {
        return Err(otherwise);
    }
    let device = runtime.devices.get(region.device).ok_or(Error::INVALID_DEVICE)?;
    stream::wait_for(&runtime.all_work(device))?;
    runtime.memory.remove(pointer.addr(), kinds).map(drop).ok_or(otherwise)?;
    device.alive()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Always,
    IfPageable,
}

fn copy(
    to: Address,
    from: Address,
    size: usize,
    kind: c_int,
    stream: Handle,
    wait: Wait,
) -> Result {
    // hipMemcpyHostToHost to hipMemcpyDefault
    if !(0..=4).contains(&kind) {
        return Err(Error::INVALID_MEMCPY_DIRECTION);
    }
    let runtime = runtime::get()?;
    let handle = stream;
    let stream = runtime.stream(handle.addr())?;
    if size == 0 {
        return Ok(());
    }
    // A GPU takes any pointer that it can reach, so only a side that must not be the host's is checked.
    let to = runtime.memory.place(to.expose_provenance(), size)?;
    let from = runtime.memory.place(from.expose_provenance(), size)?;
    let for_device = matches!(kind, TO_DEVICE | ON_DEVICE);
    let from_device = matches!(kind, TO_HOST | ON_DEVICE);
    let wrong = (for_device && !to.is_pinned())
        || (from_device && !from.is_pinned())
        || (!for_device && kind != 4 && to.device().is_some())
        || (!from_device && kind != 4 && from.device().is_some());
    if wrong {
        return Err(Error::INVALID_VALUE);
    }
    let at_once = wait == Wait::Always || !to.is_pinned() || !from.is_pinned();
    let device = to.device().or(from.device()).and_then(|index| runtime.devices.get(index));
    let work = stream::copy(device.unwrap_or(&stream.device), to, from, size);
    if at_once && !fault::is_later() {
        return stream.inline(&runtime.before(&stream), work);
    }
    submit(runtime, handle, Task::Run(work), None).map(drop)
}

fn fill(to: Address, value: c_int, size: usize, stream: Handle) -> Result {
    let runtime = runtime::get()?;
    runtime.stream(stream.addr())?;
    if size == 0 {
        return Ok(());
    }
    let place = runtime.memory.place(to.expose_provenance(), size)?;
    if !place.is_pinned() {
        return Err(Error::INVALID_VALUE);
    }
    let value = value.to_le_bytes()[0];
    submit(runtime, stream, Task::Run(Box::new(move || place.fill(value))), None).map(drop)
}

fn create_stream(stream: &Out<Handle>, flags: c_uint) -> Result {
    stream.check()?;
    let order = match flags {
        0 => Order::Blocking,
        1 => Order::NonBlocking,
        _ => return Err(Error::INVALID_VALUE),
    };
    stream.set(std::ptr::without_provenance_mut(runtime::get()?.add_stream(order)?))
}

fn create_event(event: &Out<Handle>, flags: c_uint) -> Result {
    const DISABLE_TIMING: c_uint = 2;
    event.check()?;
    let runtime = runtime::get()?;
    runtime.current()?.alive()?;
    event.set(std::ptr::without_provenance_mut(runtime.add_event(flags & DISABLE_TIMING == 0)))
}

/// What a wait for a stream waits for.
fn tails(stream: Handle) -> Result<Vec<Point>> {
    let runtime = runtime::get()?;
    let stream = runtime.stream(stream.addr())?;
    let mut points = vec![stream.tail()];
    if stream.order == Order::Null {
        points.extend(runtime.before(&stream));
    }
    Ok(points)
}

/// Adds work to a stream, or a failure in its place.
fn submit(runtime: &Runtime, stream: Handle, task: Task, event: Option<Point>) -> Result<Point> {
    let stream = runtime.stream(stream.addr())?;
    stream.device.alive()?;
    let mut after = runtime.before(&stream);
    after.extend(event);
    Stream::submit(&stream, after, fault::take_later().map_or(task, Task::Fail))
}

fn direct(
    direction: Direction,
    handle: FileHandle,
    pointer: Address,
    size: u64,
    offset: i64,
    copied: &Out<u64>,
    status: &Out<i32>,
) -> Result {
    copied.check()?;
    status.check()?;
    // SAFETY: every bit pattern is a number; Linux uses this member.
    let fd = unsafe { handle.fd };
    let request = Request { direction, fd, address: pointer.addr(), size, offset };
    let (answer, result) = ais::transfer(runtime::get()?, request);
    if let Some((bytes, code)) = answer {
        copied.set(bytes)?;
        status.set(code)?;
    }
    result
}

/// The last error of the calling thread, which is forgotten.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "named as in C")]
pub(crate) extern "C" fn hipGetLastError() -> c_int {
    LAST_ERROR.replace(0)
}

/// The last error of the calling thread.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "named as in C")]
pub(crate) extern "C" fn hipPeekAtLastError() -> c_int {
    LAST_ERROR.get()
}

/// The name of an error.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "named as in C")]
pub(crate) extern "C" fn hipGetErrorName(error: c_int) -> *const c_char {
    error::words(error).map_or(c"hipErrorUnknown", |(name, _)| name).as_ptr()
}

/// The text of an error.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "named as in C")]
pub(crate) extern "C" fn hipGetErrorString(error: c_int) -> *const c_char {
    error::words(error).map_or(c"unknown error", |(_, text)| text).as_ptr()
}

/// That this is a simulation, and which; the real library has no such symbol.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hipsim_is_a_simulation() -> *const c_char {
    const WORDS: &str =
        concat!("hip-sim ", env!("CARGO_PKG_VERSION"), ": simulated HIP runtime, no GPU\0");
    WORDS.as_ptr().cast()
}

/// A control function's result as an error code. It does not touch the last error.
fn control(call: impl FnOnce() -> std::result::Result<(), String>) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => 0,
        Ok(Err(why)) => {
            say(format_args!("{why}"));
            Error::INVALID_VALUE.0
        }
        Err(_) => Error::UNKNOWN.0,
    }
}

fn text<'a>(text: &'a Text, of: &str) -> std::result::Result<&'a str, String> {
    text.get().map_err(|_| format!("{of}: expected UTF-8 text"))
}

/// How often a function was called since the start or `hipsim_reset`; the largest number if there is no such function.
///
/// # Safety
///
/// `function` is a C string or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hipsim_calls(function: Text) -> u64 {
    function.get().ok().and_then(fault::calls).unwrap_or(u64::MAX)
}

/// Requests faults, as `HIPSIM_FAULT` does; calls are counted from now.
///
/// # Safety
///
/// `requests` is a C string or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hipsim_fault(requests: Text) -> c_int {
    control(|| {
        let parsed = fault::parse(text(&requests, "hipsim_fault")?);
        fault::arm(parsed.map_err(|why| format!("hipsim_fault: {why}"))?);
        Ok(())
    })
}

/// Takes all requested faults back and counts calls from 0. A lost device stays lost.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hipsim_reset() {
    fault::reset();
}

/// Changes what `HIPSIM_AIS` said.
///
/// # Safety
///
/// `kind` is a C string or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hipsim_set_ais(kind: Text) -> c_int {
    control(|| {
        let ais = Ais::parse(text(&kind, "hipsim_set_ais")?)
            .map_err(|why| format!("hipsim_set_ais: {why}"))?;
        runtime::get()
            .map_err(|_| "hipsim_set_ais: the runtime did not start".to_owned())?
            .set_ais(ais);
        Ok(())
    })
}

/// Loses a device for good.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hipsim_lose_device(device: c_int) -> c_int {
    control(|| {
        let found = runtime::get().and_then(|runtime| runtime.device(device));
        found.map_err(|_| format!("hipsim_lose_device: there is no device {device}"))?.lose();
        Ok(())
    })
}
