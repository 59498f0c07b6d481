//! The PCIe topology of a host, as text and as a picture: root buses, bridges, GPUs, drives and network adapters.

mod svg;
mod text;

use std::collections::BTreeMap;

use fastpath_host::pci::{Acs, Address, Function, Got, Link, PciFacts, PortType, Role};
use fastpath_verdict::Verdict;
use fastpath_verdict::path::PathVerdict;

pub use svg::topology_svg;
pub use text::topology_text;

/// A host's functions as a tree.
struct Tree<'a> {
    /// Root buses by name, each with the indices of what hangs directly below it.
    roots: Vec<(&'a str, Vec<usize>)>,
    nodes: Vec<Node<'a>>,
    /// Functions whose place could not be read.
    lost: Vec<&'a Function>,
}

struct Node<'a> {
    function: &'a Function,
    children: Vec<usize>,
}

impl<'a> Tree<'a> {
    fn new(facts: &'a PciFacts) -> Self {
        let mut nodes: Vec<Node<'a>> = Vec::new();
        let mut lost = Vec::new();
        let mut index = BTreeMap::new();
        for function in &facts.functions {
            if function.place.value().is_some() {
                index.insert(&function.address, nodes.len());
                nodes.push(Node { function, children: Vec::new() });
            } else {
                lost.push(function);
            }
        }
        let mut roots: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for at in 0..nodes.len() {
            let Got::Value(place) = &nodes[at].function.place else { continue };
            // A bridge that could not be placed itself would lose what is below it.
            let above = place.bridges.iter().rev().find_map(|bridge| index.get(bridge));
            match above {
                Some(&above) => nodes[above].children.push(at),
                None => roots.entry(&place.root).or_default().push(at),
            }
        }
        Self { roots: roots.into_iter().collect(), nodes, lost }
    }
}

/// What a function is, in a word or two.
fn kind(function: &Function) -> &'static str {
    match function.role {
        Role::Gpu if function.physical.value().is_some() => "virtual GPU",
        Role::Gpu => "GPU",
        Role::Nvme => "NVMe",
        Role::Nic => "network",
        Role::Bridge => match function.port() {
            Some(PortType::RootPort) => "root port",
            Some(PortType::UpstreamPort) => "switch upstream port",
            Some(PortType::DownstreamPort) => "switch port",
            _ => "bridge",
        },
        Role::Other => "first device",
    }
}

/// How the link runs, `16 GT/s x8`, and how it could, if that is more.
struct Lanes {
    now: String,
    /// What it could be; the link is narrower or slower than both ends of it allow only if this is there.
    most: Option<String>,
}

fn lanes(function: &Function) -> Option<Lanes> {
    let now = spell(function.link)?;
    let less = |now: Option<u32>, most: Option<u32>| matches!((now, most), (Some(now), Some(most)) if now < most);
    let narrowed = less(function.link.speed, function.max_link.speed)
        || less(function.link.width, function.max_link.width);
    Some(Lanes { now, most: spell(function.max_link).filter(|_| narrowed) })
}

fn spell(link: Link) -> Option<String> {
    let speed = link.speed.map(|tenths| match tenths % 10 {
        0 => format!("{} GT/s", tenths / 10),
        tenth => format!("{}.{tenth} GT/s", tenths / 10),
    });
    let width = link.width.map(|lanes| format!("x{lanes}"));
    match (speed, width) {
        (Some(speed), Some(width)) => Some(format!("{speed} {width}")),
        (one, other) => one.or(other),
    }
}

/// Whether a bridge redirects peer traffic, for those that can.
fn acs(function: &Function) -> Option<&'static str> {
    if function.role != Role::Bridge {
        return (function.acs().redirects() == Some(true)).then_some("ACS redirect on");
    }
    match function.acs() {
        Acs::Absent => None,
        acs => Some(match acs.redirects() {
            Some(true) => "ACS redirect on",
            Some(false) => "ACS redirect off",
            None => "ACS unknown",
        }),
    }
}

/// NUMA node and IOMMU group with its type.
fn belongs(facts: &PciFacts, function: &Function) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(function.numa_node.map(|node| format!("NUMA {node}")));
    if let Some(number) = function.iommu_group.value() {
        let kind = facts.group(function).and_then(|group| group.kind.value());
        parts.push(kind.map_or_else(
            || format!("IOMMU group {number}"),
            |kind| format!("IOMMU group {number}, {kind}"),
        ));
    }
    parts
}

/// The first device of a root bus with its ids: by them the kernel knows the host bridge.
fn host_bridge(facts: &PciFacts, root: &str) -> Option<String> {
    let first = facts.root(root)?.first.as_ref()?;
    let function = facts.function(first)?;
    Some(format!("{} at {}", function.id(), first))
}

/// Why there is nothing to show.
fn nothing(facts: &PciFacts) -> String {
    match facts.listed.value() {
        Some(count) => format!("no GPU, NVMe drive or network adapter among {count} PCI devices"),
        None => format!("the PCI devices cannot be listed: {}", facts.listed.why()),
    }
}

/// What a GPU and a drive can do together, by the drive: the best of all GPUs.
fn best(paths: &[PathVerdict], end: &Address) -> Option<Verdict> {
    let order = |verdict: &Verdict| match verdict {
        Verdict::Supported => 0,
        Verdict::Unknown => 1,
        Verdict::Unsupported => 2,
        Verdict::Blocked => 3,
    };
    let of = paths.iter().filter(|path| path.gpu == *end || path.nvme == *end);
    of.map(|path| path.verdict).min_by_key(order)
}
