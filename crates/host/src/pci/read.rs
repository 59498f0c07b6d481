//! Reading the PCI layer out of `/sys`.
//!
//! Source of the files: <https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci>.

use std::collections::BTreeSet;

use super::config::{self, Config, ConfigProblem};
use super::{
    Address, Bar, DEVICES, Function, Got, IommuGroup, Link, P2pMem, PciFacts, Place, Role, Root,
    machine,
};
use crate::tree::{ReadError, Tree, Want, join_link};

/// Where the kernel lists IOMMU groups.
pub(super) const GROUPS: &str = "/sys/kernel/iommu_groups";

/// Machines have some hundreds of functions, thousands with virtual ones; the rest is not looked at.
const MOST_FUNCTIONS: usize = 4096;

/// The most GPUs whose details are read: 16 in the largest machines, more with virtual functions.
pub const MOST_GPUS: usize = 64;

/// The most NVMe controllers whose details are read: the largest shelves have half of that.
pub const MOST_NVMES: usize = 256;

/// The most network adapters whose details are read; virtual functions of them are of no use here.
pub const MOST_NICS: usize = 64;

/// No bus is deeper: a bridge has a bus of its own, and there are 256.
const DEEPEST: usize = 64;

/// Attributes of sysfs are at most a page.
const SMALL: usize = 4096;

const CONFIG: Want =
    Want { limit: config::LIMIT, lines: None, redact: Some(config::redact), extract: None };

const AMD: u16 = 0x1002;

/// Reads the PCI layer.
pub fn read(tree: &dyn Tree) -> PciFacts {
    let mut facts = PciFacts { machine: machine::read(tree), ..PciFacts::default() };
    let entries = match tree.list(DEVICES) {
        Ok(entries) => entries,
        Err(error) => {
            facts.listed = Got::failed(error);
            return facts;
        }
    };
    let all: Vec<Address> = entries.iter().filter_map(|one| Address::new(&one.name)).collect();
    facts.listed = Got::Value(u32::try_from(entries.len()).unwrap_or(u32::MAX));
    let skipped = entries.len().saturating_sub(MOST_FUNCTIONS);
    facts.omitted = u32::try_from(skipped).unwrap_or(u32::MAX);
    let ends = choose(tree, &all, &mut facts);
    let places: Vec<Got<Place>> = ends.iter().map(|(one, ..)| place(tree, one)).collect();
    let known = || places.iter().filter_map(Got::value);
    facts.roots = roots(&all, known());
    let mut taken: BTreeSet<&Address> = ends.iter().map(|(address, ..)| address).collect();
    let mut more: Vec<(&Address, Role)> = Vec::new();
    for bridge in known().flat_map(|place| &place.bridges) {
        if taken.insert(bridge) {
            more.push((bridge, Role::Bridge));
        }
    }
    let firsts: Vec<Address> = facts.roots.iter().filter_map(|root| root.first.clone()).collect();
    for first in &firsts {
        if taken.insert(first) {
            more.push((first, Role::Other));
        }
    }
    let mut functions: Vec<Function> = Vec::with_capacity(ends.len() + more.len());
    for ((address, role, class, vendor), place) in ends.iter().zip(&places) {
        functions.push(function(tree, address, *role, place.clone(), class, vendor));
    }
    for (address, role) in more {
        let class = number(tree, &address.file("class"));
        let vendor = id(tree, &address.file("vendor"));
        functions.push(function(tree, address, role, place(tree, address), &class, &vendor));
    }
    functions.sort_by(|a, b| a.address.cmp(&b.address));
    facts.groups = groups(tree, &functions);
    facts.iommu = match tree.list(GROUPS) {
        Ok(groups) => Got::Value(!groups.is_empty()),
        Err(ReadError::Missing) => Got::Value(false),
        Err(error) => Got::failed(error),
    };
    facts.functions = functions;
    facts
}

/// A function that ends a path, with what was read to know it.
type End = (Address, Role, Got<u32>, Got<u16>);

/// The functions that count, of all.
fn choose(tree: &dyn Tree, all: &[Address], facts: &mut PciFacts) -> Vec<End> {
    let mut ends: Vec<End> = Vec::new();
    let mut counts = [0_usize; 3];
    for address in all.iter().take(MOST_FUNCTIONS) {
        let class: Got<u32> = number(tree, &address.file("class"));
        let Some(&value) = class.value() else {
            let gone = is_gone(tree, address, &class);
            let why = if gone { "it went away while it was read" } else { class.why() };
            facts.unclassified.push((address.clone(), why.to_owned()));
            continue;
        };
        let (role, index, most) = match (value >> 8, value & 0xff) {
            // VGA and other display controllers, and processing accelerators.
            (0x0300 | 0x0380 | 0x1200, _) => (Role::Gpu, 0, MOST_GPUS),
            (0x0108, 0x02) => (Role::Nvme, 1, MOST_NVMES),
            (0x0200 | 0x0207, _) => (Role::Nic, 2, MOST_NICS),
            _ => continue,
        };
        let vendor = id(tree, &address.file("vendor"));
        match (role, &vendor) {
            (Role::Gpu, Got::Value(vendor)) if *vendor != AMD => continue,
            (Role::Gpu, Got::Unreadable(_) | Got::NotRecorded | Got::Missing) => {
                facts.unclassified.push((address.clone(), vendor.why().to_owned()));
                continue;
            }
            (Role::Nic, _) if tree.link(&address.file("physfn")).is_ok() => continue,
            _ => {}
        }
        counts[index] += 1;
        if counts[index] > most {
            facts.omitted = facts.omitted.saturating_add(1);
            continue;
        }
        ends.push((address.clone(), role, class, vendor));
    }
    ends
}

/// Whether a function went away after it was listed: neither its class nor its link is there.
fn is_gone(tree: &dyn Tree, address: &Address, class: &Got<u32>) -> bool {
    class.is_missing()
        && matches!(tree.link(&format!("{DEVICES}/{address}")), Err(ReadError::Missing))
}

/// The root buses of places, each with its first device.
fn roots<'a>(all: &[Address], places: impl Iterator<Item = &'a Place>) -> Vec<Root> {
    let names: BTreeSet<&str> = places.map(|place| place.root.as_str()).collect();
    let first = |name: &str| {
        let bus = name.strip_prefix("pci").unwrap_or(name);
        // Sorted, and all numbers on one bus are written with as many digits.
        let from = all.partition_point(|one| one.as_str() < bus);
        all.get(from).filter(|one| one.bus() == bus).cloned()
    };
    names.into_iter().map(|name| Root { name: name.to_owned(), first: first(name) }).collect()
}

/// Where a function stands, from the link to it: each component of its real path below the root bus is a bridge.
fn place(tree: &dyn Tree, address: &Address) -> Got<Place> {
    let link = format!("{DEVICES}/{address}");
    let target = match tree.link(&link) {
        Ok(target) => target,
        Err(ReadError::WrongKind(kind)) => {
            return Got::Unreadable(format!("it is {}, not a link", kind.describe()));
        }
        Err(error) => return Got::failed(error),
    };
    let path = join_link(&link, &target);
    let parts: Vec<&str> = path.split('/').collect();
    let odd = |what: &str| Got::Unreadable(format!("its link leads to `{}`, {what}", clip(&path)));
    // Behind a volume management device a root bus stands below another one's function.
    let Some(at) = parts.iter().rposition(|part| is_root(part)) else {
        return odd("where no root bus is");
    };
    let below: Option<Vec<Address>> =
        parts[at + 1..].iter().map(|part| Address::new(part)).collect();
    let Some(mut bridges) = below else { return odd("which is no chain of bridges") };
    if bridges.pop().as_ref() != Some(address) {
        return odd("another function");
    }
    let distinct: BTreeSet<&Address> = bridges.iter().chain([address]).collect();
    if distinct.len() != bridges.len() + 1 {
        return odd("which is a loop");
    }
    if bridges.len() > DEEPEST {
        return odd("deeper than any bus is");
    }
    Got::Value(Place { root: parts[at].to_owned(), bridges })
}

/// Whether a name is that of a root bus, `pci0000:00`.
fn is_root(name: &str) -> bool {
    let bus = name.strip_prefix("pci").map(|bus| format!("{bus}:00.0"));
    bus.is_some_and(|function| Address::new(&function).is_some())
}

fn clip(text: &str) -> String {
    const LONGEST: usize = 200;
    text.chars().take(LONGEST).flat_map(char::escape_debug).collect()
}

fn function(
    tree: &dyn Tree,
    address: &Address,
    role: Role,
    place: Got<Place>,
    class: &Got<u32>,
    vendor: &Got<u16>,
) -> Function {
    let file = |name: &str| address.file(name);
    let is_end = matches!(role, Role::Gpu | Role::Nvme);
    let driver = match tree.link(&file("driver")) {
        Ok(target) => Got::Value(last_name(&target).to_owned()),
        Err(error) => Got::failed(error),
    };
    let physical = match if is_end { tree.link(&file("physfn")) } else { Err(ReadError::Missing) } {
        Ok(target) => Address::new(last_name(&target)).map_or_else(
            || Got::Unreadable(format!("`{}` is no address", clip(&target))),
            Got::Value,
        ),
        Err(error) => Got::failed(error),
    };
    Function {
        address: address.clone(),
        role,
        place,
        vendor: vendor.clone(),
        device: id(tree, &file("device")),
        class: class.clone(),
        config: config_space(tree, &file("config")),
        bars: if is_end { bars(tree, &file("resource")) } else { Vec::new() },
        numa_node: decimal(tree, &file("numa_node")),
        link: link(tree, address, "current"),
        max_link: link(tree, address, "max"),
        iommu_group: iommu_group(tree, &file("iommu_group")),
        driver,
        p2pmem: if is_end { p2pmem(tree, address) } else { Got::Missing },
        physical,
        has_virtual: is_end && tree.link(&file("virtfn0")).is_ok(),
    }
}

fn config_space(tree: &dyn Tree, path: &str) -> Result<Config, ConfigProblem> {
    match tree.read(path, &CONFIG) {
        Ok(content) => config::parse(&content.bytes),
        Err(ReadError::Missing) => Err(ConfigProblem::Missing),
        Err(ReadError::NotRecorded) => Err(ConfigProblem::NotRecorded),
        Err(error) if error.is_permission() => Err(ConfigProblem::Refused),
        Err(_) => Err(ConfigProblem::Failed),
    }
}

/// The text of a small file, without blanks around it.
fn text(tree: &dyn Tree, path: &str) -> Got<String> {
    match tree.read(path, &Want::whole(SMALL)) {
        Ok(content) => Got::Value(String::from_utf8_lossy(&content.bytes).trim().to_owned()),
        Err(error) => Got::failed(error),
    }
}

/// A hexadecimal number, `0x010802`.
fn number(tree: &dyn Tree, path: &str) -> Got<u32> {
    text(tree, path).and_then(|text| {
        let digits = text.strip_prefix("0x");
        digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).map_or_else(
            || Got::Unreadable(format!("`{}` is no hexadecimal number", clip(&text))),
            Got::Value,
        )
    })
}

fn id(tree: &dyn Tree, path: &str) -> Got<u16> {
    number(tree, path).and_then(|number| {
        u16::try_from(number)
            .map_or_else(|_| Got::Unreadable(format!("{number:#x} is no id")), Got::Value)
    })
}

fn decimal<T: std::str::FromStr>(tree: &dyn Tree, path: &str) -> Option<T> {
    text(tree, path).value()?.parse().ok()
}

fn link(tree: &dyn Tree, address: &Address, which: &str) -> Link {
    let speed = text(tree, &address.file(&format!("{which}_link_speed")));
    let width = decimal(tree, &address.file(&format!("{which}_link_width")));
    // The kernel writes zero lanes where there is no link.
    Link {
        speed: speed.value().and_then(|text| tenths(text)),
        width: width.filter(|lanes| *lanes > 0),
    }
}

/// `2.5 GT/s PCIe` is 25.
fn tenths(speed: &str) -> Option<u32> {
    let (number, _) = speed.split_once(" GT/s")?;
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(tenth.get(..1)?.parse().ok()?)
}

fn iommu_group(tree: &dyn Tree, path: &str) -> Got<u32> {
    match tree.link(path) {
        Ok(target) => last_name(&target).parse().map_or_else(
            |_| Got::Unreadable(format!("`{}` is no group", clip(&target))),
            Got::Value,
        ),
        Err(error) => Got::failed(error),
    }
}

/// The types of the groups of GPUs and NVMe controllers.
fn groups(tree: &dyn Tree, functions: &[Function]) -> Vec<IommuGroup> {
    let ends = functions.iter().filter(|one| matches!(one.role, Role::Gpu | Role::Nvme));
    let numbers: BTreeSet<u32> = ends.filter_map(|one| one.iommu_group.value().copied()).collect();
    let numbers = numbers.into_iter();
    numbers
        .map(|number| {
            let group = IommuGroup { number, kind: Got::Missing };
            IommuGroup { kind: text(tree, &group.file()), ..group }
        })
        .collect()
}

/// The first six lines of `resource`: start, end, flags.
fn bars(tree: &dyn Tree, path: &str) -> Vec<Bar> {
    let Got::Value(text) = text(tree, path) else { return Vec::new() };
    let number = |text: Option<&str>| {
        text.and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok())
    };
    let bar = |(index, line): (u8, &str)| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = (number(words.next())?, number(words.next())?);
        let flags = number(words.next())?;
        let size = end.checked_sub(start)?.checked_add(1)?;
        (end > 0).then_some(Bar { index, start, size, flags })
    };
    (0..6).zip(text.lines()).filter_map(bar).collect()
}

fn p2pmem(tree: &dyn Tree, address: &Address) -> Got<P2pMem> {
    let file = |name: &str| address.file(&format!("p2pmem/{name}"));
    text(tree, &file("size")).and_then(|text| {
        let Ok(size) = text.parse() else {
            return Got::Unreadable(format!("`{}` is no size", clip(&text)));
        };
        let available = decimal(tree, &file("available"));
        let published = decimal::<u8>(tree, &file("published")).map(|flag| flag != 0);
        Got::Value(P2pMem { size, available, published })
    })
}

/// The last component of a link's text.
fn last_name(target: &str) -> &str {
    target.trim_end_matches('/').rsplit('/').next().unwrap_or(target)
}
