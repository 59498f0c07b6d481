//! What stands in the PCI directory of a GPU.

use serde::{Deserialize, Serialize};

use super::Small;
use super::small::number;
use crate::pci::Address;
use crate::tree::{FileKind, ReadError};

/// Where sysfs has a directory for each PCI function.
pub const DEVICES: &str = "/sys/bus/pci/devices";

/// More GPUs than a machine has, virtual functions counted.
pub(super) const MAX_GPUS: usize = 256;

/// One AMD GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its PCI function.
    pub gpu: Address,
    /// `vendor` and `device`.
    pub id: Option<(u16, u16)>,
    /// `class`: base class, subclass, programming interface.
    pub class: Option<u32>,
    /// The driver that is bound; `None` if there is none.
    pub driver: Option<String>,
    /// It has a `physfn` link: a virtual function, seen from the host.
    pub virtual_function: bool,
    /// `mem_info_vram_total`, in bytes.
    pub vram: Option<u64>,
    /// `mem_info_vis_vram_total`: how much of it the CPU reaches through the BAR, in bytes.
    pub visible_vram: Option<u64>,
    /// Size of each of the six BARs, in bytes; empty if `resource` could not be read. The memory is behind the first.
    pub bars: Vec<u64>,
    /// Memory registered for peer-to-peer DMA.
    pub p2pmem: Option<P2pMem>,
    /// Its directory was listed and is one that the kernel made: what is not in it is not there.
    pub listed: bool,
    /// `current_compute_partition`, `SPX` for an undivided GPU.
    pub compute_partition: Option<String>,
    /// `current_memory_partition`, `NPS1` for undivided memory.
    pub memory_partition: Option<String>,
}

/// The directory `p2pmem`: exists once a driver has registered memory of the device.
/// Source: <https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci>.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct P2pMem {
    /// `size`, in bytes.
    pub size: Option<u64>,
    /// `available`, in bytes.
    pub available: Option<u64>,
    /// `published`: others may use it without asking.
    pub published: Option<bool>,
}

impl Gpu {
    /// A file in its directory.
    pub fn path(&self, name: &str) -> String {
        format!("{DEVICES}/{}/{name}", self.gpu)
    }
}

/// Whether the PCI devices can be read: an empty bus counts, a root without sysfs does not.
pub(super) fn sysfs(small: &mut Small<'_>) -> bool {
    match small.tree.kind(DEVICES) {
        Ok(kind) => kind == FileKind::Directory,
        // A kernel that runs has buses, if not this one.
        Err(ReadError::Missing) => !small.list("/sys/bus").is_empty(),
        Err(error) => small.ask::<()>(DEVICES, Err(error)).is_some(),
    }
}

pub(super) fn read(small: &mut Small<'_>, address: &Address) -> Gpu {
    let directory = format!("{DEVICES}/{address}");
    let entries = small.list(&directory);
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let path = |name: &str| format!("{directory}/{name}");
    let mut number = |name: &str| has(name).then(|| small.number(&path(name))).flatten();
    let id = number("vendor").zip(number("device")).and_then(|(vendor, device)| {
        Some((u16::try_from(vendor).ok()?, u16::try_from(device).ok()?))
    });
    let class = number("class").and_then(|class| u32::try_from(class).ok());
    let (vram, visible_vram) = (number("mem_info_vram_total"), number("mem_info_vis_vram_total"));
    let mut word = |name: &str| has(name).then(|| small.line(&path(name))).flatten();
    let compute_partition = word("current_compute_partition");
    let memory_partition = word("current_memory_partition");
    // A snapshot keeps only the names that were asked about, so that each link is.
    let mut link = |name: &str| {
        let link = has(name).then(|| small.tree.link(&path(name)))?;
        small.ask(&path(name), link)
    };
    let driver = link("driver").and_then(|link| {
        link.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
    });
    let (virtual_function, subsystem) = (link("physfn").is_some(), link("subsystem").is_some());
    let bars = has("resource").then(|| small.text(&path("resource"), None)).flatten();
    let p2pmem = has("p2pmem").then(|| P2pMem {
        size: small.number(&path("p2pmem/size")),
        available: small.number(&path("p2pmem/available")),
        published: small.number(&path("p2pmem/published")).map(|published| published != 0),
    });
    Gpu {
        gpu: address.clone(),
        id,
        class,
        driver,
        virtual_function,
        vram,
        visible_vram,
        bars: bars.as_deref().map(sizes).unwrap_or_default(),
        p2pmem,
        // Trees that were put together by hand have neither.
        listed: subsystem && has("resource"),
        compute_partition,
        memory_partition,
    }
}

/// The sizes in the first six lines of `resource`: start, end and flags, in hexadecimal.
fn sizes(text: &str) -> Vec<u64> {
    let size = |line: &str| {
        let mut fields = line.split_whitespace().map(number);
        let (start, end) = (fields.next()??, fields.next()??);
        if end == 0 { Some(0) } else { end.checked_sub(start)?.checked_add(1) }
    };
    text.lines().take(6).map_while(size).collect()
}
