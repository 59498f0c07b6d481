//! KFD's topology: the compute driver's own list of CPUs and GPUs.
//!
//! Source: <https://docs.kernel.org/gpu/amdgpu/index.html> and the `kfd_topology.c` of the kernel.

use serde::{Deserialize, Serialize};

use super::Small;
use super::small::number;
use crate::pci::Address;
use crate::tree::FileKind;

const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// 8 GPUs in 8 partitions and as many NUMA nodes as there are have half of that.
const MAX_NODES: usize = 256;

/// A node's link to the CPU is among its first ones; the others lead to GPUs.
const MAX_LINKS: usize = 16;

/// `type` of a link that is XGMI.
const XGMI: u64 = 11;

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// `gpu_id`; zero for a CPU.
    pub gpu_id: Option<u64>,
    /// `cpu_cores_count`.
    pub cpu_cores: u64,
    /// `simd_count`; zero for a CPU.
    pub simds: u64,
    /// `capability`, a set of bits whose meaning depends on the driver.
    pub capability: Option<u64>,
    /// The line of `properties` it is in.
    pub capability_line: Option<u32>,
    /// The PCI function, from `domain` and `location_id`; `None` for a CPU.
    pub address: Option<Address>,
    /// It is linked to a CPU by XGMI, so there is no PCIe between them; `None` if no link to a CPU was found.
    pub xgmi_to_cpu: Option<bool>,
}

impl Node {
    /// Whether it computes as a GPU.
    pub const fn is_gpu(&self) -> bool {
        self.simds > 0
    }

    /// Whether CPU and GPU are one node, as on an APU.
    pub const fn is_apu(&self) -> bool {
        self.simds > 0 && self.cpu_cores > 0
    }

    /// Its file of properties.
    pub fn path(&self) -> String {
        format!("{NODES}/{}/properties", self.number)
    }
}

/// Keys that are used. `unique_id` is a serial number.
const KEYS: [&[u8]; 7] = [
    b"cpu_cores_count",
    b"simd_count",
    b"capability",
    b"location_id",
    b"domain",
    b"type",
    b"node_to",
];

fn keep(line: &[u8], out: &mut Vec<u8>) {
    let key = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    if KEYS.contains(&key) {
        out.extend_from_slice(line);
    }
}

/// The lines of a file of properties: line number, key, value.
fn properties(text: &str) -> impl Iterator<Item = (u32, &str, u64)> {
    (1..).zip(text.lines()).filter_map(|(line, text)| {
        let (key, value) = text.split_once(' ')?;
        Some((line, key, number(value.trim())?))
    })
}

pub(super) fn nodes(small: &mut Small<'_>) -> Vec<Node> {
    let entries = small.list(NODES);
    let is_node = |kind| matches!(kind, FileKind::Directory | FileKind::Link | FileKind::Unknown);
    let mut numbers: Vec<u32> = entries
        .iter()
        .filter(|entry| is_node(entry.kind))
        .filter_map(|entry| entry.name.parse().ok().filter(|it: &u32| it.to_string() == entry.name))
        .take(MAX_NODES)
        .collect();
    numbers.sort_unstable();
    let mut nodes: Vec<Node> = numbers.iter().filter_map(|&number| node(small, number)).collect();
    let cpus: Vec<u32> =
        nodes.iter().filter(|node| node.cpu_cores > 0).map(|node| node.number).collect();
    for node in nodes.iter_mut().filter(|node| node.is_gpu()) {
        node.xgmi_to_cpu = xgmi_to_cpu(small, node.number, &cpus);
    }
    nodes
}

fn node(small: &mut Small<'_>, number: u32) -> Option<Node> {
    let text = small.text(&format!("{NODES}/{number}/properties"), Some(keep))?;
    let mut node = Node { number, ..Node::default() };
    let (mut location, mut domain) = (None, 0);
    for (line, key, value) in properties(&text) {
        match key {
            "cpu_cores_count" => node.cpu_cores = value,
            "simd_count" => node.simds = value,
            "capability" => (node.capability, node.capability_line) = (Some(value), Some(line)),
            "location_id" => location = Some(value),
            "domain" => domain = value,
            _ => {}
        }
    }
    if node.is_gpu() {
        node.address = location.and_then(|location| address(domain, location));
    }
    node.gpu_id = small.number(&format!("{NODES}/{number}/gpu_id"));
    Some(node)
}

/// The PCI function: bus, device and function stand in the low 16 bits, the partition of the GPU above them.
fn address(domain: u64, location: u64) -> Option<Address> {
    let (bus, device, function) = (location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
    Address::new(&format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"))
}

fn xgmi_to_cpu(small: &mut Small<'_>, number: u32, cpus: &[u32]) -> Option<bool> {
    (0..MAX_LINKS).find_map(|link| {
        let path = format!("{NODES}/{number}/io_links/{link}/properties");
        let text = small.text(&path, Some(keep))?;
        let value =
            |key| properties(&text).find(|(_, it, _)| *it == key).map(|(_, _, value)| value);
        let to = u32::try_from(value("node_to")?).ok()?;
        cpus.contains(&to).then(|| value("type") == Some(XGMI))
    })
}
