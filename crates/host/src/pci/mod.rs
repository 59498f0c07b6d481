//! The PCI devices of a host: which they are, which bridges stand above them, and what the kernel's P2P decision rests on.

mod config;
mod machine;
mod read;

use serde::{Deserialize, Serialize};

pub use config::{Acs, Config, ConfigProblem, PortType};
pub use machine::{Architecture, Machine, Parameter};
pub use read::{MOST_GPUS, MOST_NICS, MOST_NVMES, read};

use crate::tree::ReadError;
use crate::witness::Evidence;

/// Where the kernel lists every PCI function.
pub const DEVICES: &str = "/sys/bus/pci/devices";

/// The address of a PCI function, `0000:02:00.0`, as sysfs spells it. Domains have four digits or more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(String);

impl Address {
    /// The address in a text, if it is one: `DDDD:BB:DD.F` in lower-case hexadecimal.
    pub fn new(text: &str) -> Option<Self> {
        let (domain, rest) = text.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        let hex = |text: &str, least: usize, most: usize| {
            (least..=most).contains(&text.len())
                && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let sound = hex(domain, 4, 8)
            && hex(bus, 2, 2)
            && hex(device, 2, 2)
            && matches!(function.as_bytes(), [b'0'..=b'7']);
        sound.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Domain and bus, `0000:02`.
    pub fn bus(&self) -> &str {
        self.0.rsplit_once(':').map_or("", |(bus, _)| bus)
    }

    /// Whether it is function 0 of device 0 of its bus.
    pub fn is_first_of_bus(&self) -> bool {
        self.0.ends_with(":00.0")
    }

    /// Where the kernel shows one of its files, `/sys/bus/pci/devices/0000:02:00.0/config`.
    pub fn file(&self, name: &str) -> String {
        format!("{DEVICES}/{}/{name}", self.0)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// What reading something gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Got<T> {
    /// This.
    Value(T),
    /// There is no such thing.
    Missing,
    /// It could not be read, or is not of its form: one clause.
    Unreadable(String),
    /// The snapshot says nothing about it.
    NotRecorded,
}

impl<T> Got<T> {
    /// The value, if there is one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is certain that there is no such thing.
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Why there is no value, as one clause; empty if there is one.
    pub fn why(&self) -> &str {
        match self {
            Self::Value(_) => "",
            Self::Missing => "not there",
            Self::Unreadable(why) => why,
            Self::NotRecorded => "not recorded in this snapshot",
        }
    }

    fn failed(error: ReadError) -> Self {
        match error {
            ReadError::Missing => Self::Missing,
            ReadError::NotRecorded => Self::NotRecorded,
            other => Self::Unreadable(other.to_string()),
        }
    }

    fn and_then<U>(self, make: impl FnOnce(T) -> Got<U>) -> Got<U> {
        match self {
            Self::Value(value) => make(value),
            Self::Missing => Got::Missing,
            Self::Unreadable(why) => Got::Unreadable(why),
            Self::NotRecorded => Got::NotRecorded,
        }
    }
}

/// What a function is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An AMD GPU or accelerator.
    Gpu,
    /// An NVMe controller.
    Nvme,
    /// A network adapter.
    Nic,
    /// A bridge above one of those.
    Bridge,
    /// Something else, kept because it is the first device of a root bus.
    Other,
}

/// A speed and a width, each `None` if sysfs does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Tenths of gigatransfers per second: 160 is PCIe 4.0.
    pub speed: Option<u32>,
    /// Lanes.
    pub width: Option<u32>,
}

/// One base address register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    /// Which one, 0 to 5.
    pub index: u8,
    /// Its first address.
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The kernel's resource flags.
    pub flags: u64,
}

/// Memory that a driver has registered for peer-to-peer use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct P2pMem {
    /// Bytes in all.
    pub size: u64,
    /// Bytes not given out.
    pub available: Option<u64>,
    /// Whether other drivers may take it.
    pub published: Option<bool>,
}

/// One PCI function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its address.
    pub address: Address,
    /// What it is for.
    pub role: Role,
    /// The root bus it hangs below, `pci0000:00`, and the bridges above it, topmost first.
    pub place: Got<Place>,
    /// Vendor id.
    pub vendor: Got<u16>,
    /// Device id.
    pub device: Got<u16>,
    /// Class, subclass and interface.
    pub class: Got<u32>,
    /// Configuration space.
    pub config: Result<Config, ConfigProblem>,
    /// Base address registers in use; only of GPUs and NVMe controllers.
    pub bars: Vec<Bar>,
    /// NUMA node.
    pub numa_node: Option<u32>,
    /// How its link runs.
    pub link: Link,
    /// How it could run.
    pub max_link: Link,
    /// The IOMMU group; missing if no IOMMU handles the function.
    pub iommu_group: Got<u32>,
    /// The bound driver's name.
    pub driver: Got<String>,
    /// Memory registered for peer-to-peer use; only of GPUs and NVMe controllers.
    pub p2pmem: Got<P2pMem>,
    /// The physical function that this virtual one belongs to.
    pub physical: Got<Address>,
    /// Whether virtual functions of this one exist.
    pub has_virtual: bool,
}

/// Where a function stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The root bus, `pci0000:00`: one for each host bridge.
    pub root: String,
    /// The bridges above it, topmost first.
    pub bridges: Vec<Address>,
}

impl Function {
    /// Access Control Services, whatever became of configuration space.
    pub fn acs(&self) -> Acs {
        self.config.map_or_else(Acs::Unreadable, |config| config.acs)
    }

    /// What kind of port it is; `None` if that could not be told.
    pub fn port(&self) -> Option<PortType> {
        self.config.ok().and_then(|config| config.port)
    }

    /// Vendor and device as they are usually written, `8086:09a2`.
    pub fn id(&self) -> String {
        let text = |got: &Got<u16>| {
            got.value().map_or_else(|| "????".to_owned(), |value| format!("{value:04x}"))
        };
        format!("{}:{}", text(&self.vendor), text(&self.device))
    }
}

/// A root bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// `pci0000:00`.
    pub name: String,
    /// The device on it with the lowest number, by which the kernel knows the host bridge.
    pub first: Option<Address>,
}

/// An IOMMU group of a function that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IommuGroup {
    /// Its number.
    pub number: u32,
    /// Its type as sysfs spells it.
    pub kind: Got<String>,
}

impl IommuGroup {
    /// Where its type stands.
    pub fn file(&self) -> String {
        format!("{}/{}/type", read::GROUPS, self.number)
    }
}

/// The PCI layer of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciFacts {
    /// How many functions the kernel lists.
    pub listed: Got<u32>,
    /// GPUs, NVMe controllers, network adapters, the bridges above them and the first device of each of their root buses, by
    /// address.
    pub functions: Vec<Function>,
    /// The root buses they hang below, by name.
    pub roots: Vec<Root>,
    /// The IOMMU groups of GPUs and NVMe controllers, by number.
    pub groups: Vec<IommuGroup>,
    /// Whether an IOMMU is in use at all: whether there are groups.
    pub iommu: Got<bool>,
    /// Functions that are listed, but of which it could not be read what they are, with the reason.
    pub unclassified: Vec<(Address, String)>,
    /// GPUs, NVMe controllers and network adapters left out because there were too many.
    pub omitted: u32,
    /// Processor, boot parameters and memory.
    pub machine: Machine,
}

impl Default for PciFacts {
    fn default() -> Self {
        Self {
            listed: Got::NotRecorded,
            functions: Vec::new(),
            roots: Vec::new(),
            groups: Vec::new(),
            iommu: Got::NotRecorded,
            unclassified: Vec::new(),
            omitted: 0,
            machine: Machine::default(),
        }
    }
}

impl PciFacts {
    /// The function at an address, if it is one that was kept.
    pub fn function(&self, address: &Address) -> Option<&Function> {
        let found = self.functions.binary_search_by(|one| one.address.cmp(address));
        found.ok().map(|index| &self.functions[index])
    }

    /// The same without the other GPUs: they are devices like any other.
    #[must_use]
    pub fn with_only(&self, gpu: &Address) -> Self {
        let mut facts = self.clone();
        for function in &mut facts.functions {
            if function.role == Role::Gpu && function.address != *gpu {
                function.role = Role::Other;
            }
        }
        facts
    }

    /// Functions with a role, by address.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(move |function| function.role == role)
    }

    /// The root bus of a name.
    pub fn root(&self, name: &str) -> Option<&Root> {
        self.roots.iter().find(|root| root.name == name)
    }

    /// The IOMMU group of a function, with its type.
    pub fn group(&self, function: &Function) -> Option<&IommuGroup> {
        let number = function.iommu_group.value()?;
        self.groups.iter().find(|group| group.number == *number)
    }

    /// The boot parameter of a name, the last one if there are several: `pci` for `pci=noats`.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.machine.parameters.iter().rev().find(|one| one.name() == name)
    }
}

/// Evidence for what stands in one file of a function.
pub fn evidence(path: String, text: impl Into<Option<String>>) -> Evidence {
    Evidence { path, line: None, text: text.into() }
}
