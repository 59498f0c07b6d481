//! Memory: where device memory lives, and which address belongs to what.
//!
//! The video memory of a device is one memory file, mapped twice: at the addresses that clients get, without any access,
//! and at addresses only the simulator knows. Or, for the lab, PCI peer-to-peer memory: then each allocation is a mapping
//! of its own from the kernel's `p2pmem/allocate` file, and clients get addresses without access all the same.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::error::{Error, Result};
use crate::{lock, say};

pub(crate) const PAGE: usize = 4096;

/// An anonymous or shared mapping, unmapped when dropped.
#[derive(Debug)]
struct Mapping {
    address: usize,
    length: usize,
}

impl Mapping {
    /// Maps `length` bytes at an address of the kernel's choice.
    fn new(length: usize, protection: i32, flags: i32, fd: RawFd) -> std::io::Result<Self> {
        // SAFETY: a new mapping where the kernel finds room replaces nothing.
        let found = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, fd, 0) };
        if found == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self { address: found.expose_provenance(), length })
    }

    fn accessible(length: usize) -> std::io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Self::new(length, libc::PROT_READ | libc::PROT_WRITE, flags, -1)
    }

    /// Addresses that nobody can read or write.
    fn reserved(length: usize) -> std::io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Self::new(length, libc::PROT_NONE, flags, -1)
    }

    fn shared(length: usize, fd: RawFd) -> std::io::Result<Self> {
        let mapping = Self::new(length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd)?;
        // SAFETY: the whole range was mapped above. A child has no business with the parent's device memory, as with a
        // real driver; a kernel that refuses the advice changes nothing else.
        unsafe { libc::madvise(at(mapping.address), length, libc::MADV_DONTFORK) };
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and whoever uses it holds this value.
        unsafe { libc::munmap(at(self.address), self.length) };
    }
}

/// A pointer to an address that the simulator mapped or a client passed.
fn at(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}

/// Where the pages of a device come from.
#[derive(Debug)]
enum Source {
    /// One file, mapped as a whole.
    Memory { file: OwnedFd, alias: Mapping },
    /// A `p2pmem/allocate` file: every mapping takes memory of its own.
    PeerToPeer(File),
}

/// The memory of one device.
#[derive(Debug)]
pub(crate) struct Arena {
    /// Twice the limit, so that a gap without memory stands behind every allocation.
    client: Mapping,
    source: Source,
    limit: usize,
    space: Mutex<Space>,
}

/// Free stretches, by offset, and bytes in use.
#[derive(Debug)]
struct Space {
    free: BTreeMap<usize, usize>,
    used: usize,
}

impl Arena {
    /// An arena of `limit` bytes, from PCI peer-to-peer memory if a file for it is given.
    pub(crate) fn new(limit: usize, p2pmem: Option<&Path>) -> std::result::Result<Self, String> {
        let limit = p2pmem.and_then(p2pmem_size).unwrap_or(limit);
        let span = (limit * 2).max(PAGE);
        let failed = |what: &str, error| format!("{what} of {span} bytes: {error}");
        let client = Mapping::reserved(span)
            .map_err(|error| failed("addresses for device memory", error))?;
        let source = if let Some(path) = p2pmem {
            let file = File::options().read(true).write(true).open(path);
            Source::PeerToPeer(file.map_err(|error| format!("{}: {error}", path.display()))?)
        } else {
            let file = memory_file(span).map_err(|error| failed("memory file", error))?;
            let alias = Mapping::shared(span, file.as_raw_fd())
                .map_err(|error| failed("mapping", error))?;
            Source::Memory { file, alias }
        };
        let space = Mutex::new(Space { free: BTreeMap::from([(0, span)]), used: 0 });
        Ok(Self { client, source, limit, space })
    }

    /// Whether an address is one of this device's, allocated or not.
    fn holds(&self, address: usize) -> bool {
        (self.client.address..self.client.address + self.client.length).contains(&address)
    }

    /// Free and total bytes.
    pub(crate) fn room(&self) -> (usize, usize) {
        (self.limit - lock(&self.space).used, self.limit)
    }

    fn reserve(&self, rounded: usize) -> Option<usize> {
        let mut space = lock(&self.space);
        let wanted = rounded.checked_add(PAGE)?;
        if rounded > self.limit - space.used {
            return None;
        }
        let (&offset, &length) = space.free.iter().find(|(_, length)| **length >= wanted)?;
        space.free.remove(&offset);
        if length > wanted {
            space.free.insert(offset + wanted, length - wanted);
        }
        space.used += rounded;
        Some(offset)
    }

    fn release(&self, offset: usize, rounded: usize) {
        let mut space = lock(&self.space);
        space.used -= rounded;
        let (mut offset, mut length) = (offset, rounded + PAGE);
        if let Some((&before, &size)) = space.free.range(..offset).next_back()
            && before + size == offset
        {
            space.free.remove(&before);
            (offset, length) = (before, length + size);
        }
        if let Some(size) = space.free.remove(&(offset + length)) {
            length += size;
        }
        space.free.insert(offset, length);
    }
}

fn memory_file(length: usize) -> std::io::Result<OwnedFd> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"hip-sim".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let length = libc::off_t::try_from(length).map_err(std::io::Error::other)?;
    // SAFETY: takes numbers only.
    if unsafe { libc::ftruncate(fd, length) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(file)
}

/// The size that the kernel gives beside `p2pmem/allocate`.
fn p2pmem_size(path: &Path) -> Option<usize> {
    std::fs::read_to_string(path.with_file_name("size")).ok()?.trim().parse().ok()
}

/// What a region is made of.
#[derive(Debug)]
enum Backing {
    /// A piece of an arena.
    Arena { arena: Arc<Arena>, offset: usize, rounded: usize, _alias: Option<Mapping> },
    /// A mapping that clients can read and write.
    Host { _mapping: Mapping },
    /// A client's own memory.
    Client,
}

/// How a region came to be, which decides how it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Pinned,
    Registered,
    Managed,
    Signal,
}

/// Memory that the runtime knows.
#[derive(Debug)]
pub(crate) struct Region {
    /// As clients see it.
    pub(crate) base: usize,
    pub(crate) size: usize,
    pub(crate) kind: Kind,
    pub(crate) device: usize,
    pub(crate) flags: u32,
    /// Where the simulator reads and writes it.
    alias: usize,
    backing: Backing,
}

impl Region {
    /// Device memory.
    pub(crate) fn device(arena: &Arc<Arena>, device: usize, size: usize) -> Result<Self> {
        let rounded = size.checked_next_multiple_of(PAGE).ok_or(Error::OUT_OF_MEMORY)?;
        let offset = arena.reserve(rounded).ok_or(Error::OUT_OF_MEMORY)?;
        let (alias, mapping) = match &arena.source {
            Source::Memory { alias, .. } => (alias.address + offset, None),
            Source::PeerToPeer(file) => match Mapping::shared(rounded, file.as_raw_fd()) {
                Ok(mapping) => (mapping.address, Some(mapping)),
                Err(error) => {
                    say(format_args!("{rounded} bytes of PCI peer-to-peer memory: {error}"));
                    arena.release(offset, rounded);
                    return Err(Error::OUT_OF_MEMORY);
                }
            },
        };
        let base = arena.client.address + offset;
        let backing = Backing::Arena { arena: Arc::clone(arena), offset, rounded, _alias: mapping };
        Ok(Self { base, size, kind: Kind::Device, device, flags: 0, alias, backing })
    }

    /// Memory that both sides can read and write.
    pub(crate) fn host(kind: Kind, device: usize, size: usize, flags: u32) -> Result<Self> {
        let rounded = size.checked_next_multiple_of(PAGE).ok_or(Error::OUT_OF_MEMORY)?;
        let mapping = Mapping::accessible(rounded).map_err(|_| Error::OUT_OF_MEMORY)?;
        let base = mapping.address;
        Ok(Self {
            base,
            size,
            kind,
            device,
            flags,
            alias: base,
            backing: Backing::Host { _mapping: mapping },
        })
    }

    /// A client's own memory.
    pub(crate) fn registered(base: usize, size: usize, device: usize, flags: u32) -> Self {
        Self {
            base,
            size,
            kind: Kind::Registered,
            device,
            flags,
            alias: base,
            backing: Backing::Client,
        }
    }

    fn contains(&self, address: usize) -> bool {
        address >= self.base && address - self.base < self.size
    }

    /// Whether clients can read and write it.
    pub(crate) fn on_host(&self) -> bool {
        self.kind != Kind::Device
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let Backing::Arena { arena, offset, rounded, .. } = &self.backing else { return };
        if let Source::Memory { file, .. } = &arena.source {
            let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            let range = (libc::off_t::try_from(*offset), libc::off_t::try_from(*rounded));
            if let (Ok(offset), Ok(length)) = range {
                // SAFETY: takes numbers only; the range is this region's alone. If it fails the pages stay.
                unsafe { libc::fallocate(file.as_raw_fd(), flags, offset, length) };
            }
        }
        arena.release(*offset, *rounded);
    }
}

/// Bytes that the simulator can reach, held until it has.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    alias: usize,
    length: usize,
    /// `None`: memory of a client that is not registered.
    pub(crate) region: Option<Arc<Region>>,
}

impl Place {
    pub(crate) fn pointer(&self) -> *mut c_void {
        at(self.alias)
    }

    /// Where the region goes on behind this place, if for so many bytes.
    pub(crate) fn behind(&self, bytes: usize) -> Option<*mut c_void> {
        let end = self.offset() + self.length;
        let region = self.region.as_ref().filter(|region| region.size - end >= bytes)?;
        Some(at(region.alias + end))
    }

    /// The GPU that the bytes are on.
    pub(crate) fn device(&self) -> Option<usize> {
        self.region
            .as_ref()
            .filter(|region| region.kind == Kind::Device)
            .map(|region| region.device)
    }

    /// Whether a copy can run after the call that asked for it has returned.
    pub(crate) fn is_pinned(&self) -> bool {
        self.region.is_some()
    }

    /// Offset in the allocation.
    pub(crate) fn offset(&self) -> usize {
        self.region.as_ref().map_or(0, |region| self.alias - region.alias)
    }

    /// Copies as many bytes as both places have.
    pub(crate) fn copy_from(&self, from: &Self) {
        // SAFETY: both places hold their regions; memory that no region holds is promised by the client until the copy
        // has ended, as HIP asks of it. They may overlap.
        unsafe {
            ptr::copy(
                from.pointer().cast::<u8>(),
                self.pointer().cast(),
                self.length.min(from.length),
            );
        };
    }

    pub(crate) fn fill(&self, value: u8) {
        // SAFETY: as in `copy_from`.
        unsafe { ptr::write_bytes(self.pointer().cast::<u8>(), value, self.length) };
    }

    /// The place as an atomic number, if it is one.
    pub(crate) fn word(&self) -> Option<&std::sync::atomic::AtomicU64> {
        (self.length == 8 && self.alias.is_multiple_of(8)).then(|| {
            // SAFETY: eight aligned bytes that the place holds; clients use them as an atomic too.
            unsafe { std::sync::atomic::AtomicU64::from_ptr(self.pointer().cast()) }
        })
    }
}

/// Every region, by its address.
#[derive(Debug, Default)]
pub(crate) struct Table {
    regions: RwLock<BTreeMap<usize, Arc<Region>>>,
    arenas: Vec<Arc<Arena>>,
}

impl Table {
    pub(crate) fn new(arenas: Vec<Arc<Arena>>) -> Self {
        Self { regions: RwLock::default(), arenas }
    }

    /// Adds a region; `ALREADY_REGISTERED` if one is there.
    pub(crate) fn add(&self, region: Region) -> Result<usize> {
        let base = region.base;
        let end = base.checked_add(region.size).ok_or(Error::INVALID_VALUE)?;
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        if regions.range(..end).next_back().is_some_and(|(_, last)| last.base + last.size > base) {
            return Err(Error::ALREADY_REGISTERED);
        }
        regions.insert(base, Arc::new(region));
        Ok(base)
    }

    /// Takes out the region that begins here, if it is of a kind that the caller frees.
    pub(crate) fn remove(&self, base: usize, kinds: &[Kind]) -> Option<Arc<Region>> {
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        if !regions.get(&base).is_some_and(|region| kinds.contains(&region.kind)) {
            return None;
        }
        regions.remove(&base)
    }

    /// The region an address is in.
    pub(crate) fn find(&self, address: usize) -> Option<Arc<Region>> {
        let regions = self.regions.read().unwrap_or_else(PoisonError::into_inner);
        let (_, region) = regions.range(..=address).next_back()?;
        region.contains(address).then(|| Arc::clone(region))
    }

    /// Whether an address is a device's, allocated or not.
    pub(crate) fn is_device(&self, address: usize) -> bool {
        self.arenas.iter().any(|arena| arena.holds(address))
    }

    /// Bytes at an address. They must lie in one allocation, or in none.
    pub(crate) fn place(&self, address: usize, length: usize) -> Result<Place> {
        let last = address.checked_add(length.saturating_sub(1)).ok_or(Error::INVALID_VALUE)?;
        if let Some(region) = self.find(address) {
            if !region.contains(last) {
                return Err(Error::INVALID_VALUE);
            }
            return Ok(Place {
                alias: region.alias + (address - region.base),
                length,
                region: Some(region),
            });
        }
        if address == 0 || self.is_device(address) || self.is_device(last) {
            return Err(Error::INVALID_VALUE);
        }
        Ok(Place { alias: address, length, region: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_merged_when_it_is_freed() {
        let arena = Arc::new(Arena::new(8 * PAGE, None).unwrap());
        let allocate = || Region::device(&arena, 0, 2 * PAGE);
        let (a, b, c) = (allocate().unwrap(), allocate().unwrap(), allocate().unwrap());
        assert_eq!(arena.room(), (2 * PAGE, 8 * PAGE));
        drop(a);
        drop(c);
        drop(b);
        assert_eq!(arena.room(), (8 * PAGE, 8 * PAGE));
        assert_eq!(lock(&arena.space).free, BTreeMap::from([(0, 16 * PAGE)]));
        assert!(Region::device(&arena, 0, 8 * PAGE).is_ok());
        assert_eq!(Region::device(&arena, 0, 8 * PAGE + 1).unwrap_err(), Error::OUT_OF_MEMORY);
    }

    #[test]
    fn an_address_behind_an_allocation_is_no_place() {
        let arena = Arc::new(Arena::new(8 * PAGE, None).unwrap());
        let table = Table::new(vec![Arc::clone(&arena)]);
        let base = table.add(Region::device(&arena, 0, 100).unwrap()).unwrap();
        assert_eq!(table.place(base + 99, 1).unwrap().offset(), 99);
        for (address, length) in
            [(base + 99, 2), (base + 100, 1), (base + PAGE, 1), (0, 1), (usize::MAX, 2)]
        {
            assert_eq!(
                table.place(address, length).unwrap_err(),
                Error::INVALID_VALUE,
                "{address:#x} {length}"
            );
        }
    }
}
