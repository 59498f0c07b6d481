//! The walk through random PCIe trees against a plain restatement of the kernel's rule.

use std::collections::BTreeSet;

use fastpath_host::pci::{
    Acs, Address, Architecture, Config, ConfigProblem, Function, Got, IommuGroup, Link, Machine,
    PciFacts, Place, PortType, Role, Root,
};
use fastpath_knowledge::{Knowledge, MapType, Release};
use fastpath_verdict::Verdict;
use fastpath_verdict::path::judge;
use proptest::prelude::*;

/// A bridge or an end: what it hangs below, and its ACS control word.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    root: usize,
    acs: Option<u16>,
}

/// A root bus with its first device.
#[derive(Clone, Copy, Debug)]
struct Bus {
    vendor: u16,
    device: u16,
    at_zero: bool,
    root_port: bool,
}

#[derive(Clone, Debug)]
struct Model {
    buses: Vec<Bus>,
    nodes: Vec<Node>,
    gpu: Node,
    nvme: Node,
    amd_family: Option<u32>,
    iommu: bool,
    release: &'static str,
}

/// Releases whose rules are known in full.
const RELEASES: [&str; 7] = ["4.20.1", "5.2.3", "5.4.5", "5.10.9", "6.1.7", "6.12.9", "7.3.4"];

/// The list, restated: id, first release, whether only for itself.
const LIST: [((u16, u16), usize, bool); 6] = [
    ((0x8086, 0x3c00), 2, true),
    ((0x8086, 0x2f01), 2, true),
    ((0x8086, 0x2032), 3, false),
    ((0x8086, 0x09a2), 4, false),
    ((0x8086, 0x0cfe), 6, false),
    ((0x10de, 0x2f97), 6, false),
];

impl Model {
    /// From a node up to its root bus.
    fn line(&self, node: &Node) -> Vec<usize> {
        let mut line = Vec::new();
        let mut at = node.parent;
        while let Some(index) = at {
            line.push(index);
            at = self.nodes[index].parent;
        }
        line
    }

    /// The kernel's rule in other words: what lies on the way is what is above one of both, but not what is above the lowest
    /// bridge above both.
    fn rule(&self) -> (MapType, usize) {
        let redirects = |acs: Option<u16>| acs.is_some_and(|word| word & 0b10_1100 != 0);
        let version = RELEASES.iter().position(|one| *one == self.release).unwrap();
        let (gpu, nvme) = (self.line(&self.gpu), self.line(&self.nvme));
        let above_gpu: BTreeSet<_> = gpu.iter().copied().collect();
        let above_nvme: BTreeSet<_> = nvme.iter().copied().collect();
        let common: BTreeSet<_> = above_gpu.intersection(&above_nvme).copied().collect();
        // Depth grows downwards, so the lowest common bridge is the one with the longest line of its own.
        let meet = common.iter().copied().max_by_key(|&index| self.line(&self.nodes[index]).len());
        let mut redirected = false;
        let distance = match meet {
            None => gpu.len() + nvme.len() + 2,
            Some(meet) => {
                let way = above_gpu
                    .union(&above_nvme)
                    .filter(|one| !common.contains(one) || **one == meet);
                redirected = redirects(self.gpu.acs)
                    || redirects(self.nvme.acs)
                    || way.clone().any(|&one| redirects(self.nodes[one].acs));
                // Each bridge below the common one is one step, and so is the step into it from either side.
                way.count() - 1 + 2
            }
        };
        if meet.is_some() && !redirected {
            return (MapType::BusAddress, distance);
        }
        let zen = version >= 3 && self.amd_family.is_some_and(|family| family >= 23);
        let same = self.gpu.root == self.nvme.root;
        let listed = [self.gpu.root, self.nvme.root].into_iter().all(|root| {
            let bus = self.buses[root];
            let stands = bus.at_zero || (bus.root_port && version >= 4);
            let id = (bus.vendor, bus.device);
            let old_zen = id == (0x1022, 0x1450) && (1..3).contains(&version);
            let entry = LIST.iter().find(|(one, ..)| *one == id);
            stands
                && (old_zen
                    || entry.is_some_and(|(_, since, only_same)| {
                        version >= *since && (same || !only_same)
                    }))
        });
        let first_code = version == 1 && !redirected && !self.iommu;
        if zen || (listed && (version >= 2 || first_code)) {
            (MapType::ThroughHostBridge, distance)
        } else {
            (MapType::NotSupported, distance)
        }
    }

    fn address(&self, index: usize) -> Address {
        let root = self.nodes.get(index).map_or(0, |node| node.root);
        Address::new(&format!("{root:04x}:{:02x}:01.0", 0x10 + index)).unwrap()
    }

    fn place(&self, node: &Node) -> Place {
        let bridges = self.line(node).into_iter().rev().map(|index| self.address(index)).collect();
        Place { root: format!("pci{:04x}:00", node.root), bridges }
    }

    /// The same as facts.
    fn facts(&self) -> PciFacts {
        let mut functions = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            functions.push(function(
                self.address(index),
                Role::Bridge,
                self.place(node),
                acs(node.acs),
            ));
        }
        let end = |address: &str, role, node: &Node| {
            function(Address::new(address).unwrap(), role, self.place(node), acs(node.acs))
        };
        functions.push(end("0000:f0:00.0", Role::Gpu, &self.gpu));
        functions.push(end("0000:f1:00.0", Role::Nvme, &self.nvme));
        let mut roots = Vec::new();
        for (index, bus) in self.buses.iter().enumerate() {
            let slot = if bus.at_zero { "00.0" } else { "00.1" };
            let address = Address::new(&format!("{index:04x}:00:{slot}")).unwrap();
            let place = Place { root: format!("pci{index:04x}:00"), bridges: Vec::new() };
            let mut first = function(address.clone(), Role::Other, place, Acs::Absent);
            first.vendor = Got::Value(bus.vendor);
            first.device = Got::Value(bus.device);
            let port = if bus.root_port { PortType::RootPort } else { PortType::RootComplexPart };
            first.config = first.config.map(|config| Config { port: Some(port), ..config });
            roots.push(Root { name: format!("pci{index:04x}:00"), first: Some(address) });
            functions.push(first);
        }
        functions.sort_by(|a, b| a.address.cmp(&b.address));
        let vendor = if self.amd_family.is_some() { "AuthenticAMD" } else { "GenuineIntel" };
        PciFacts {
            listed: Got::Value(0),
            functions,
            roots,
            groups: Vec::<IommuGroup>::new(),
            iommu: Got::Value(self.iommu),
            machine: Machine {
                architecture: Some(Architecture::X86),
                cpu_vendor: Got::Value(vendor.to_owned()),
                cpu_family: Some(self.amd_family.unwrap_or(6)),
                ..Machine::default()
            },
            ..PciFacts::default()
        }
    }
}

fn acs(word: Option<u16>) -> Acs {
    word.map_or(Acs::Absent, Acs::Control)
}

fn function(address: Address, role: Role, place: Place, acs: Acs) -> Function {
    Function {
        address,
        role,
        place: Got::Value(place),
        vendor: Got::Value(1),
        device: Got::Value(2),
        class: Got::Value(0),
        config: Ok(Config { length: 4096, revision: 0, port: Some(PortType::Endpoint), acs }),
        bars: Vec::new(),
        numa_node: None,
        link: Link::default(),
        max_link: Link::default(),
        iommu_group: Got::Missing,
        driver: Got::Missing,
        p2pmem: Got::Missing,
        physical: Got::Missing,
        has_virtual: false,
    }
}

/// Few control words redirect, so that some paths turn round at a switch.
fn control() -> impl Strategy<Value = Option<u16>> {
    prop_oneof![3 => Just(None), 3 => Just(Some(0x11)), 1 => Just(Some(0x1d)), 1 => (0_u16..0x80).prop_map(Some)]
}

fn bus() -> impl Strategy<Value = Bus> {
    let ids = [
        (0x8086, 0x3c00),
        (0x8086, 0x2f01),
        (0x8086, 0x2032),
        (0x8086, 0x09a2),
        (0x8086, 0x0cfe),
        (0x10de, 0x2f97),
        (0x1022, 0x1450),
        (0x8086, 0x7d1b),
        (0x1022, 0x14a4),
    ];
    (prop::sample::select(ids.to_vec()), prop::bool::weighted(0.7), any::<bool>()).prop_map(
        |((vendor, device), at_zero, root_port)| Bus { vendor, device, at_zero, root_port },
    )
}

fn model() -> impl Strategy<Value = Model> {
    let nodes =
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), control()), 1..14);
    let ends = (any::<prop::sample::Index>(), control(), any::<prop::sample::Index>(), control());
    let buses = prop::collection::vec(bus(), 1..4);
    let family = prop::option::of(prop::sample::select(vec![22_u32, 23, 25, 26]));
    let release = prop::sample::select(RELEASES.to_vec());
    (buses, nodes, ends, family, any::<bool>(), release).prop_map(
        |(buses, seeds, (gpu, gpu_acs, nvme, nvme_acs), amd_family, iommu, release)| {
            let mut nodes: Vec<Node> = Vec::new();
            for (index, kind, acs) in seeds {
                // Some hang below the root bus, most below an earlier one.
                let parent = (!nodes.is_empty() && kind % 4 != 0).then(|| index.index(nodes.len()));
                let root = parent.map_or_else(|| index.index(buses.len()), |one| nodes[one].root);
                nodes.push(Node { parent, root, acs });
            }
            let end = |index: prop::sample::Index, acs| {
                let parent = index.index(nodes.len());
                Node { parent: Some(parent), root: nodes[parent].root, acs }
            };
            let (gpu, nvme) = (end(gpu, gpu_acs), end(nvme, nvme_acs));
            Model { buses, nodes, gpu, nvme, amd_family, iommu, release }
        },
    )
}

thread_local! {
    static KNOWLEDGE: Knowledge = Knowledge::embedded().unwrap();
}

fn walked(facts: &PciFacts, release: &str) -> (Verdict, Option<MapType>, Option<u32>) {
    KNOWLEDGE.with(|knowledge| {
        let verdict = judge(facts, Release::new(release).as_ref(), knowledge);
        assert_eq!(verdict.paths.len(), 1);
        (verdict.paths[0].verdict, verdict.paths[0].map_type, verdict.paths[0].distance)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn the_walk_gives_what_the_rule_gives(model in model()) {
        let (map_type, distance) = model.rule();
        let expected = if map_type == MapType::NotSupported { Verdict::Unsupported } else { Verdict::Supported };
        let (verdict, found, steps) = walked(&model.facts(), model.release);
        prop_assert_eq!(verdict, expected);
        prop_assert_eq!(found, Some(map_type));
        prop_assert_eq!(steps, Some(u32::try_from(distance).unwrap()));
    }

    /// An answer that is given although something could not be read is the answer for everything it may be.
    #[test]
    fn what_could_not_be_read_does_not_change_a_given_answer(
        model in model(),
        hidden in any::<u16>(),
        shown in any::<u16>(),
        no_cpu in any::<bool>(),
        no_iommu in any::<bool>(),
    ) {
        let mut facts = model.facts();
        let mut possible = model.clone();
        for (index, function) in facts.functions.iter_mut().enumerate() {
            if hidden & (1 << (index % 16)) != 0 && function.role == Role::Bridge {
                function.config = Err(ConfigProblem::Refused);
            }
        }
        for index in 0..possible.nodes.len() {
            let address = model.address(index);
            if facts.function(&address).unwrap().config.is_err() {
                possible.nodes[index].acs = (shown & (1 << (index % 16)) != 0).then_some(0x1d);
            }
        }
        if no_cpu {
            facts.machine = Machine::default();
            possible.amd_family = (shown & 0x4000 != 0).then_some(25);
        }
        if no_iommu {
            facts.iommu = Got::Unreadable("permission denied".to_owned());
            possible.iommu = shown & 0x8000 != 0;
        }
        let (verdict, map_type, _) = walked(&facts, model.release);
        let (rule, _) = possible.rule();
        if verdict != Verdict::Unknown {
            prop_assert_eq!(verdict == Verdict::Unsupported, rule == MapType::NotSupported);
        }
        if let Some(map_type) = map_type {
            prop_assert_eq!(map_type, rule);
        }
    }

    /// Facts come from snapshots, too, which anyone may have made.
    #[test]
    fn facts_with_holes_are_judged(model in model(), kept in any::<u32>(), rootless in any::<bool>(), nowhere in any::<u32>()) {
        let mut facts = model.facts();
        let mut index = 0;
        facts.functions.retain(|_| {
            index += 1;
            kept & (1 << (index % 32)) != 0
        });
        for (index, function) in facts.functions.iter_mut().enumerate() {
            if nowhere & (1 << (index % 32)) != 0 && nowhere % 3 == 0 {
                function.place = Got::Missing;
                function.vendor = Got::NotRecorded;
            }
        }
        if rootless {
            facts.roots.clear();
        }
        let verdict = KNOWLEDGE.with(|knowledge| judge(&facts, Release::new(model.release).as_ref(), knowledge));
        prop_assert!(verdict.paths.len() <= 1);
        prop_assert!(!verdict.findings.is_empty());
    }
}
