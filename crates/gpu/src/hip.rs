//! The real runtime.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr::{self, NonNull};

use libloading::os::unix::Library;

use crate::load::{self, LoadError};
use crate::{
    Attributes, Direction, Gpu, HipError, HostFunction, MemoryKind, RawEvent, RawStream, Transfer,
};

/// `hipPointerAttribute_t`.
#[repr(C)]
struct PointerAttribute {
    kind: u32,
    device: c_int,
    device_pointer: *mut c_void,
    host_pointer: *mut c_void,
    is_managed: c_int,
    flags: c_uint,
}

/// `hipAmdFileHandle_t`, passed by value: a union of eight bytes of which Linux uses the descriptor.
#[repr(C)]
#[derive(Clone, Copy)]
struct FileHandle {
    fd: c_int,
    rest: [u8; 4],
}

type AisFunction =
    unsafe extern "C" fn(FileHandle, *mut c_void, u64, i64, *mut u64, *mut i32) -> c_int;

macro_rules! functions {
    (
        always { $($field:ident = $symbol:literal: fn($($argument:ty),*);)* }
        perhaps { $($extra:ident = $extra_symbol:literal: fn($($extra_argument:ty),*);)* }
    ) => {
        /// The functions used, each found once.
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
            $($extra: Option<unsafe extern "C" fn($($extra_argument),*) -> c_int>,)*
        }

        impl Functions {
            fn find(library: &Library, name: &str) -> Result<Self, LoadError> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the type is that of HIP's public header.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> c_int>($symbol.to_bytes_with_nul())
                        };
                        match found {
                            Ok(symbol) => *symbol,
                            Err(_) => {
                                let symbol = $symbol.to_str().unwrap_or_default();
                                return Err(LoadError::NoSymbol { library: name.to_owned(), symbol });
                            }
                        }
                    },)*
                    $($extra: {
                        // SAFETY: the type is that of HIP's public header.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($extra_argument),*) -> c_int>($extra_symbol.to_bytes_with_nul())
                        };
                        found.ok().map(|symbol| *symbol)
                    },)*
                })
            }
        }
    };
}

functions! {
    always {
        pointer_attributes = c"hipPointerGetAttributes": fn(*mut PointerAttribute, *const c_void);
        address_range = c"hipMemGetAddressRange": fn(*mut *mut c_void, *mut usize, *mut c_void);
        device_count = c"hipGetDeviceCount": fn(*mut c_int);
        get_device = c"hipGetDevice": fn(*mut c_int);
        set_device = c"hipSetDevice": fn(c_int);
        stream_create = c"hipStreamCreateWithFlags": fn(*mut *mut c_void, c_uint);
        stream_destroy = c"hipStreamDestroy": fn(*mut c_void);
        stream_synchronize = c"hipStreamSynchronize": fn(*mut c_void);
        stream_device = c"hipStreamGetDevice": fn(*mut c_void, *mut c_int);
        event_create = c"hipEventCreateWithFlags": fn(*mut *mut c_void, c_uint);
        event_destroy = c"hipEventDestroy": fn(*mut c_void);
        event_record = c"hipEventRecord": fn(*mut c_void, *mut c_void);
        event_synchronize = c"hipEventSynchronize": fn(*mut c_void);
        memcpy_async = c"hipMemcpyAsync": fn(*mut c_void, *const c_void, usize, c_uint, *mut c_void);
        host_malloc = c"hipHostMalloc": fn(*mut *mut c_void, usize, c_uint);
        host_free = c"hipHostFree": fn(*mut c_void);
        launch_host_func = c"hipLaunchHostFunc": fn(*mut c_void, HostFunction, *mut c_void);
        runtime_version = c"hipRuntimeGetVersion": fn(*mut c_int);
        get_proc_address = c"hipGetProcAddress": fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_uint);
        init = c"hipInit": fn(c_uint);
    }
    perhaps {
        memcpy_with_stream = c"hipMemcpyWithStream": fn(*mut c_void, *const c_void, usize, c_uint, *mut c_void);
        device_attribute = c"hipDeviceGetAttribute": fn(*mut c_int, c_int, c_int);
        ext_malloc = c"hipExtMallocWithFlags": fn(*mut *mut c_void, usize, c_uint);
        malloc = c"hipMalloc": fn(*mut *mut c_void, usize);
        free = c"hipFree": fn(*mut c_void);
        wait_value = c"hipStreamWaitValue64": fn(*mut c_void, *mut c_void, u64, c_uint, u64);
        device_uuid = c"hipDeviceGetUuid": fn(*mut [u8; 16], c_int);
        pci_bus_id = c"hipDeviceGetPCIBusId": fn(*mut c_char, c_int, c_int);
        peek_at_last_error = c"hipPeekAtLastError": fn();
    }
}

/// `hipStreamNonBlocking`.
const NON_BLOCKING: c_uint = 1;
/// `hipEventDisableTiming`.
const DISABLE_TIMING: c_uint = 2;
/// `hipHostMallocPortable`: pinned for every GPU.
const PORTABLE: c_uint = 1;
/// `hipMallocSignalMemory`.
const SIGNAL_MEMORY: c_uint = 2;
/// `hipDeviceAttributeCanUseStreamWaitValue`.
const CAN_WAIT_VALUE: c_int = 10013;
/// `hipStreamWaitValueGte`.
const AT_LEAST: c_uint = 0;
const HOST_TO_DEVICE: c_uint = 1;
const DEVICE_TO_HOST: c_uint = 2;

/// The HIP runtime of this process.
pub struct Hip {
    functions: Functions,
    version: i32,
    direct: Option<[AisFunction; 2]>,
    is_simulation: bool,
    name: String,
    /// Holds the functions; never unloaded before them.
    _library: Library,
}

impl fmt::Debug for Hip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hip")
            .field("library", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

fn checked(code: c_int) -> Result<(), HipError> {
    if code == 0 { Ok(()) } else { Err(HipError(code)) }
}

/// Where a copy goes to, where it comes from, and HIP's word for that.
fn ends(direction: Direction, device: usize, host: *mut u8) -> (*mut c_void, *mut c_void, c_uint) {
    let device = ptr::without_provenance_mut::<c_void>(device);
    let host = host.cast::<c_void>();
    match direction {
        Direction::Read => (device, host, HOST_TO_DEVICE),
        Direction::Write => (host, device, DEVICE_TO_HOST),
    }
}

impl Hip {
    /// Loads the runtime.
    ///
    /// # Errors
    ///
    /// A [`LoadError`].
    pub fn load() -> Result<Self, LoadError> {
        let (library, name) = load::library()?;
        Self::with(library, name)
    }

    /// Loads the runtime at a path.
    ///
    /// # Errors
    ///
    /// A [`LoadError`].
    pub fn open(path: &str) -> Result<Self, LoadError> {
        let library = load::at(path)?;
        Self::with(library, path.to_owned())
    }

    fn with(library: Library, name: String) -> Result<Self, LoadError> {
        let functions = Functions::find(&library, &name)?;
        let mut version = 0;
        // SAFETY: the pointer is valid for a write.
        let known = checked(unsafe { (functions.runtime_version)(&raw mut version) });
        let version = known.map_or(0, |()| version);
        let direct = known.ok().and_then(|()| {
            let find = |name: &CStr| find_direct(&functions, name, version);
            Some([find(c"hipAmdFileRead")?, find(c"hipAmdFileWrite")?])
        });
        // SAFETY: only asked for, never used.
        let is_simulation =
            unsafe { library.get::<*const c_void>(b"hipsim_is_a_simulation\0") }.is_ok();
        Ok(Self { functions, version, direct, is_simulation, name, _library: library })
    }

    /// The name it was loaded by.
    pub fn library_name(&self) -> &str {
        &self.name
    }
}

/// A function of the direct storage interface, which is in no public header. All three signs of it must be there.
fn find_direct(functions: &Functions, name: &CStr, version: c_int) -> Option<AisFunction> {
    let mut found: *mut c_void = ptr::null_mut();
    let mut result: c_uint = 0;
    // SAFETY: every pointer is valid for the call.
    let code = unsafe {
        (functions.get_proc_address)(name.as_ptr(), &raw mut found, version, 0, &raw mut result)
    };
    if code != 0 || result != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the runtime gave it for this name, whose type is fixed.
    Some(unsafe { std::mem::transmute::<*mut c_void, AisFunction>(found) })
}

impl Gpu for Hip {
    fn attributes(&self, address: usize) -> Result<Attributes, HipError> {
        let mut found = PointerAttribute {
            kind: 0,
            device: 0,
            device_pointer: ptr::null_mut(),
            host_pointer: ptr::null_mut(),
            is_managed: 0,
            flags: 0,
        };
        let address = ptr::without_provenance::<c_void>(address);
        // SAFETY: the record is valid for a write; HIP only looks the address up.
        checked(unsafe { (self.functions.pointer_attributes)(&raw mut found, address) })?;
        Ok(Attributes { kind: MemoryKind::from_raw(found.kind), device: found.device })
    }

    fn allocation(&self, address: usize) -> Result<(usize, usize), HipError> {
        let (mut base, mut length) = (ptr::null_mut(), 0);
        let address = ptr::without_provenance_mut::<c_void>(address);
        // SAFETY: both are valid for a write; HIP only looks the address up.
        checked(unsafe {
            (self.functions.address_range)(&raw mut base, &raw mut length, address)
        })?;
        Ok((base.addr(), length))
    }

    fn device_count(&self) -> Result<i32, HipError> {
        let mut count = 0;
        // SAFETY: valid for a write.
        checked(unsafe { (self.functions.device_count)(&raw mut count) })?;
        Ok(count)
    }

    fn device(&self) -> Result<i32, HipError> {
        let mut device = 0;
        // SAFETY: valid for a write.
        checked(unsafe { (self.functions.get_device)(&raw mut device) })?;
        Ok(device)
    }

    fn set_device(&self, device: i32) -> Result<(), HipError> {
        // SAFETY: takes a number only.
        checked(unsafe { (self.functions.set_device)(device) })
    }

    fn create_stream(&self) -> Result<RawStream, HipError> {
        let mut stream = ptr::null_mut();
        // SAFETY: valid for a write.
        checked(unsafe { (self.functions.stream_create)(&raw mut stream, NON_BLOCKING) })?;
        Ok(RawStream(stream))
    }

    unsafe fn destroy_stream(&self, stream: RawStream) -> Result<(), HipError> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.functions.stream_destroy)(stream.0) })
    }

    unsafe fn synchronize(&self, stream: RawStream) -> Result<(), HipError> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.functions.stream_synchronize)(stream.0) })
    }

    unsafe fn stream_device(&self, stream: RawStream) -> Result<i32, HipError> {
        let mut device = 0;
        // SAFETY: the caller's promise, and a valid place.
        checked(unsafe { (self.functions.stream_device)(stream.0, &raw mut device) })?;
        Ok(device)
    }

    fn create_event(&self) -> Result<RawEvent, HipError> {
        let mut event = ptr::null_mut();
        // SAFETY: valid for a write.
        checked(unsafe { (self.functions.event_create)(&raw mut event, DISABLE_TIMING) })?;
        Ok(RawEvent(event))
    }

    unsafe fn destroy_event(&self, event: RawEvent) -> Result<(), HipError> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.functions.event_destroy)(event.0) })
    }

    unsafe fn record_event(&self, event: RawEvent, stream: RawStream) -> Result<(), HipError> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.functions.event_record)(event.0, stream.0) })
    }

    unsafe fn wait_event(&self, event: RawEvent) -> Result<(), HipError> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.functions.event_synchronize)(event.0) })
    }

    unsafe fn copy(
        &self,
        direction: Direction,
        device: usize,
        host: *mut u8,
        length: usize,
        stream: RawStream,
    ) -> Result<(), HipError> {
        let (to, from, kind) = ends(direction, device, host);
        // SAFETY: the caller's promise.
        checked(unsafe { (self.functions.memcpy_async)(to, from, length, kind, stream.0) })
    }

    unsafe fn copy_now(
        &self,
        direction: Direction,
        device: usize,
        host: *mut u8,
        length: usize,
        stream: RawStream,
    ) -> Result<(), HipError> {
        let Some(copy) = self.functions.memcpy_with_stream else {
            // SAFETY: the caller's promise, and the copy is done when this returns.
            return unsafe {
                self.copy(direction, device, host, length, stream)?;
                self.synchronize(stream)
            };
        };
        let (to, from, kind) = ends(direction, device, host);
        // SAFETY: the caller's promise.
        checked(unsafe { copy(to, from, length, kind, stream.0) })
    }

    fn allocate_host(&self, length: usize) -> Result<NonNull<u8>, HipError> {
        let mut memory = ptr::null_mut();
        // SAFETY: valid for a write.
        checked(unsafe { (self.functions.host_malloc)(&raw mut memory, length, PORTABLE) })?;
        NonNull::new(memory.cast()).ok_or(HipError::OUT_OF_MEMORY)
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<(), HipError> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.functions.host_free)(memory.as_ptr().cast()) })
    }

    fn allocate_device(&self, length: usize) -> Result<NonNull<u8>, HipError> {
        let allocate = self.functions.malloc.ok_or(HipError::NOT_SUPPORTED)?;
        let mut memory = ptr::null_mut();
        // SAFETY: valid for a write.
        checked(unsafe { allocate(&raw mut memory, length) })?;
        NonNull::new(memory.cast()).ok_or(HipError::OUT_OF_MEMORY)
    }

    unsafe fn free_device(&self, memory: NonNull<u8>) -> Result<(), HipError> {
        let free = self.functions.free.ok_or(HipError::NOT_SUPPORTED)?;
        // SAFETY: the caller's promise.
        checked(unsafe { free(memory.as_ptr().cast()) })
    }

    fn is_simulation(&self) -> bool {
        self.is_simulation
    }

    unsafe fn launch(
        &self,
        stream: RawStream,
        function: HostFunction,
        data: *mut c_void,
    ) -> Result<(), HipError> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.functions.launch_host_func)(stream.0, function, data) })
    }

    fn can_wait_value(&self, device: i32) -> bool {
        let functions = &self.functions;
        let (Some(ask), true, true, true) = (
            functions.device_attribute,
            functions.wait_value.is_some(),
            functions.ext_malloc.is_some(),
            functions.free.is_some(),
        ) else {
            return false;
        };
        let mut value = 0;
        // SAFETY: valid for a write.
        let known = checked(unsafe { ask(&raw mut value, CAN_WAIT_VALUE, device) });
        known.is_ok() && value != 0
    }

    fn allocate_signal(&self) -> Result<NonNull<u64>, HipError> {
        let allocate = self.functions.ext_malloc.ok_or(HipError::NOT_SUPPORTED)?;
        let mut memory = ptr::null_mut();
        // SAFETY: valid for a write.
        checked(unsafe { allocate(&raw mut memory, size_of::<u64>(), SIGNAL_MEMORY) })?;
        let signal = NonNull::new(memory.cast::<u64>()).ok_or(HipError::OUT_OF_MEMORY)?;
        // SAFETY: new memory of this size that the CPU writes too, which is what signal memory is.
        unsafe { signal.write_volatile(0) };
        Ok(signal)
    }

    unsafe fn free_signal(&self, signal: NonNull<u64>) -> Result<(), HipError> {
        let free = self.functions.free.ok_or(HipError::NOT_SUPPORTED)?;
        // SAFETY: the caller's promise.
        checked(unsafe { free(signal.as_ptr().cast()) })
    }

    unsafe fn wait_value(
        &self,
        stream: RawStream,
        signal: NonNull<u64>,
        value: u64,
    ) -> Result<(), HipError> {
        let wait = self.functions.wait_value.ok_or(HipError::NOT_SUPPORTED)?;
        // SAFETY: the caller's promise.
        checked(unsafe { wait(stream.0, signal.as_ptr().cast(), value, AT_LEAST, u64::MAX) })
    }

    fn uuid(&self, device: i32) -> Option<[u8; 16]> {
        let mut uuid = [0; 16];
        // SAFETY: valid for a write.
        checked(unsafe { (self.functions.device_uuid?)(&raw mut uuid, device) }).ok()?;
        Some(uuid)
    }

    fn last_error(&self) -> i32 {
        // SAFETY: takes nothing.
        self.functions.peek_at_last_error.map_or(0, |peek| unsafe { peek() })
    }

    fn pci_address(&self, device: i32) -> Option<String> {
        const LENGTH: c_int = 64;
        let mut text: [c_char; LENGTH as usize] = [0; LENGTH as usize];
        // SAFETY: valid for a write of that many characters, of which HIP leaves the last zero.
        checked(unsafe { (self.functions.pci_bus_id?)(text.as_mut_ptr(), LENGTH - 1, device) })
            .ok()?;
        // SAFETY: the last character is zero still.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().ok()?;
        Some(text.to_ascii_lowercase())
    }

    fn has_direct_storage(&self) -> bool {
        self.direct.is_some()
    }

    unsafe fn transfer(
        &self,
        direction: Direction,
        fd: i32,
        address: usize,
        length: u64,
        offset: i64,
    ) -> Option<Transfer> {
        thread_local! {
            /// HIP must have been called once by a thread before this interface is.
            static READY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        let [read, write] = self.direct?;
        if !READY.replace(true) {
            // SAFETY: takes a number only. A failure shows in the transfer.
            let _ = unsafe { (self.functions.init)(0) };
        }
        let function = match direction {
            Direction::Read => read,
            Direction::Write => write,
        };
        let handle = FileHandle { fd, rest: [0; 4] };
        let address = ptr::without_provenance_mut::<c_void>(address);
        let (mut copied, mut status) = (0, 0);
        set_errno(0);
        // SAFETY: the caller's promise about the memory; both places are valid for writes.
        let error =
            unsafe { function(handle, address, length, offset, &raw mut copied, &raw mut status) };
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Some(Transfer { error, status, copied, errno })
    }

    fn version(&self) -> i32 {
        self.version
    }
}

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

fn set_errno(value: c_int) {
    // SAFETY: the C library's own place for this thread, always valid.
    unsafe { *__errno_location() = value };
}
