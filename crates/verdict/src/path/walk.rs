//! The kernel's `pci_p2pdma_distance`, computed anew from facts.
//!
//! Source: `drivers/pci/p2pdma.c`,
//! <https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/pci/p2pdma.c>. Memory of the GPU is what is
//! offered, the drive is who asks for it. What follows from facts that could not be read, or from a kernel release nobody has
//! confirmed, is computed for both cases; only if they differ is the answer unknown.

use fastpath_host::Evidence;
use fastpath_host::pci::{
    Acs, Address, Architecture, DEVICES, Function, Got, PciFacts, Place, PortType,
};
use fastpath_knowledge::{Knowledge, MapType, P2pdmaLevel, Release, Rule};

use super::answer::Answer;
use crate::words::{Reason, Verdict};

/// The first family of AMD processors whose host bridges forward peer traffic: Zen.
const ZEN: u32 = 0x17;

/// What the walk along one path came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    pub(super) verdict: Verdict,
    pub(super) reason: Reason,
    /// Steps from the one to the other; `None` if it is not known where they stand.
    pub(super) distance: Option<u32>,
    /// `None` if it depends on what could not be read.
    pub(super) map_type: Option<MapType>,
    /// Functions whose ACS sends traffic up, on a path that has a common bridge.
    pub(super) redirecting: Vec<Address>,
    /// Functions whose configuration space or place would have to be read.
    pub(super) unread: Vec<Address>,
    /// First devices of the host bridges that the path goes through, or would go through.
    pub(super) bridges: Vec<Address>,
    pub(super) evidence: Vec<Evidence>,
}

/// Everything that is the same for all paths of a host.
pub(super) struct Walker<'a> {
    pub(super) facts: &'a PciFacts,
    pub(super) knowledge: &'a Knowledge,
    level: Option<P2pdmaLevel>,
    host_bridge: Answer,
    behind_acs: Answer,
    root_port_first: Answer,
    /// The rule for Zen is in this kernel, and this is one.
    zen: Answer,
    /// An IOMMU in use is no obstacle, or there is none.
    iommu: Answer,
}

/// What a host bridge does with peer traffic.
struct Passage {
    answer: Answer,
    reason: Reason,
}

impl<'a> Walker<'a> {
    pub(super) fn new(
        facts: &'a PciFacts,
        release: Option<&Release>,
        knowledge: &'a Knowledge,
    ) -> Self {
        let level = release.map(|release| knowledge.p2pdma_level(release));
        let follows = |rule| match &level {
            Some(level) => Answer::from(knowledge.p2pdma_follows(level, rule)),
            None => Answer::Unknown(Reason::ReleaseUnknown),
        };
        let behind_acs = follows(Rule::BehindAcs);
        let in_use = Answer::of(facts.iommu.value().copied(), Reason::IommuUnknown);
        Self {
            host_bridge: follows(Rule::HostBridge),
            root_port_first: follows(Rule::RootPortFirst),
            zen: is_zen(facts).and(follows(Rule::AmdZen)),
            iommu: in_use.not().or(behind_acs),
            behind_acs,
            facts,
            knowledge,
            level,
        }
    }

    /// Walks from the GPU up until a bridge is met that stands above the drive as well.
    pub(super) fn walk(&self, gpu: &Function, nvme: &Function) -> Walk {
        let (Got::Value(gpu_place), Got::Value(nvme_place)) = (&gpu.place, &nvme.place) else {
            return Walk::nowhere(gpu, nvme);
        };
        let above_gpu = upwards(gpu, gpu_place);
        let above_nvme = upwards(nvme, nvme_place);
        let meet = above_gpu.iter().enumerate().find_map(|(steps, one)| {
            above_nvme.iter().position(|other| one == other).map(|others| (steps, others))
        });
        let roots = [gpu_place.root.as_str(), nvme_place.root.as_str()];
        let bridges = self.first_devices(roots);
        let count = |steps: usize| u32::try_from(steps).unwrap_or(u32::MAX);
        let Some((gpu_steps, nvme_steps)) = meet else {
            let passage = self.passage(roots, false);
            return Walk {
                distance: Some(count(above_gpu.len() + above_nvme.len())),
                map_type: passage.map_type(),
                redirecting: Vec::new(),
                unread: self.unread_firsts(&bridges, &passage),
                evidence: self.host_bridge_evidence(&bridges, &passage),
                bridges,
                verdict: passage.verdict(),
                reason: passage.reason,
            };
        };
        let distance = Some(count(gpu_steps + nvme_steps));
        // The common bridge itself counts once, on the GPU's side.
        let on_the_way = above_gpu[..=gpu_steps].iter().chain(&above_nvme[..nvme_steps]);
        let mut redirecting = Vec::new();
        let mut unread = Vec::new();
        for address in on_the_way {
            match self.facts.function(address).map(|one| one.acs().redirects()) {
                Some(Some(true)) => redirecting.push((*address).clone()),
                Some(Some(false)) => {}
                Some(None) | None => unread.push((*address).clone()),
            }
        }
        if redirecting.is_empty() && unread.is_empty() {
            return Walk {
                verdict: Verdict::Supported,
                reason: Reason::CommonSwitch,
                distance,
                map_type: Some(MapType::BusAddress),
                redirecting,
                unread,
                bridges: Vec::new(),
                evidence: vec![place_evidence(gpu), place_evidence(nvme)],
            };
        }
        let passage = self.passage(roots, true);
        let mut evidence =
            self.acs_evidence(if redirecting.is_empty() { &unread } else { &redirecting });
        evidence.extend(self.host_bridge_evidence(&bridges, &passage));
        if redirecting.is_empty() && passage.answer != Answer::Yes {
            // Without redirection yes, with it not yes.
            return Walk {
                verdict: Verdict::Unknown,
                reason: Reason::ConfigSpaceUnreadable,
                distance,
                map_type: None,
                redirecting,
                unread,
                bridges,
                evidence,
            };
        }
        let map_type = if redirecting.is_empty() { None } else { passage.map_type() };
        if !redirecting.is_empty() {
            unread = self.unread_firsts(&bridges, &passage);
        }
        let verdict = passage.verdict();
        let reason = passage.reason;
        Walk { verdict, reason, distance, map_type, redirecting, unread, bridges, evidence }
    }

    /// Whether traffic may pass from the one host bridge to the other, or through the one back down.
    fn passage(&self, [gpu, nvme]: [&str; 2], behind_acs: bool) -> Passage {
        if self.zen == Answer::Yes {
            return Passage { answer: Answer::Yes, reason: Reason::AmdZen };
        }
        let listed = if gpu == nvme {
            self.is_listed(gpu, true)
        } else {
            self.is_listed(gpu, false).and(self.is_listed(nvme, false))
        };
        let acs = if behind_acs { self.behind_acs } else { Answer::Yes };
        let listed = self.host_bridge.and(listed).and(acs).and(self.iommu);
        let answer = self.zen.or(listed);
        let reason = match answer {
            Answer::Yes => Reason::HostBridgeListed,
            Answer::No if behind_acs => Reason::AcsRedirectHostBridgeNotListed,
            Answer::No => Reason::HostBridgeNotListed,
            Answer::Unknown(reason) => reason,
        };
        Passage { answer, reason }
    }

    /// Whether the kernel's list has the first device of a root bus. `same` is for traffic that comes back down.
    fn is_listed(&self, root: &str, same: bool) -> Answer {
        let lost = Answer::Unknown(Reason::TopologyUnreadable);
        let first = self.facts.root(root).and_then(|root| root.first.as_ref());
        let Some(first) = first.and_then(|first| self.facts.function(first)) else { return lost };
        let stands_for_it = if first.address.is_first_of_bus() {
            Answer::Yes
        } else {
            let port = first.port().map(|port| port == PortType::RootPort);
            self.root_port_first.and(Answer::of(port, Reason::ConfigSpaceUnreadable))
        };
        let (Got::Value(vendor), Got::Value(device)) = (&first.vendor, &first.device) else {
            return stands_for_it.and(lost);
        };
        let entries = self.knowledge.host_bridges_for(*vendor, *device);
        let named = entries.filter(|entry| same || !entry.same_host_bridge);
        let in_list = named
            .map(|entry| match &self.level {
                Some(level) => Answer::from(entry.is_in(level)),
                None => Answer::Unknown(Reason::ReleaseUnknown),
            })
            .fold(Answer::No, Answer::or);
        // An id that no list has is a no, whatever could not be read.
        in_list.and(stands_for_it)
    }

    /// The first devices of root buses, each once.
    fn first_devices(&self, roots: [&str; 2]) -> Vec<Address> {
        let mut firsts: Vec<Address> =
            roots.into_iter().filter_map(|root| self.facts.root(root)?.first.clone()).collect();
        firsts.dedup();
        firsts
    }

    /// First devices that would have to be read for an answer.
    fn unread_firsts(&self, bridges: &[Address], passage: &Passage) -> Vec<Address> {
        let unread = |one: &&Address| {
            self.facts.function(one).is_none_or(|one| {
                let known = one.vendor.value().is_some() && one.device.value().is_some();
                !known || (!one.address.is_first_of_bus() && one.port().is_none())
            })
        };
        if !matches!(passage.answer, Answer::Unknown(_)) {
            return Vec::new();
        }
        bridges.iter().filter(unread).cloned().collect()
    }

    fn host_bridge_evidence(&self, bridges: &[Address], passage: &Passage) -> Vec<Evidence> {
        if matches!(passage.reason, Reason::AmdZen) {
            return self.facts.machine.cpu_source.clone();
        }
        let functions = bridges.iter().filter_map(|one| self.facts.function(one));
        functions
            .map(|one| Evidence {
                path: one.address.file("device"),
                line: None,
                text: Some(one.id()),
            })
            .collect()
    }

    /// What the ACS control words of functions are.
    pub(super) fn acs_evidence(&self, addresses: &[Address]) -> Vec<Evidence> {
        let functions = addresses.iter().filter_map(|one| self.facts.function(one));
        functions
            .map(|one| {
                let text = match one.acs() {
                    Acs::Absent => "no ACS".to_owned(),
                    Acs::Control(word) => format!("ACS control {word:#06x}"),
                    Acs::Unreadable(problem) => problem.describe().to_owned(),
                };
                Evidence { path: one.address.file("config"), line: None, text: Some(text) }
            })
            .collect()
    }
}

impl Walk {
    /// It is not known where one of the two stands.
    fn nowhere(gpu: &Function, nvme: &Function) -> Self {
        let lost: Vec<&Function> =
            [gpu, nvme].into_iter().filter(|one| one.place.value().is_none()).collect();
        Self {
            verdict: Verdict::Unknown,
            reason: Reason::TopologyUnreadable,
            distance: None,
            map_type: None,
            redirecting: Vec::new(),
            unread: lost.iter().map(|one| one.address.clone()).collect(),
            bridges: Vec::new(),
            evidence: lost.into_iter().map(place_evidence).collect(),
        }
    }
}

/// A function and the bridges above it, from it upwards.
fn upwards<'a>(function: &'a Function, place: &'a Place) -> Vec<&'a Address> {
    std::iter::once(&function.address).chain(place.bridges.iter().rev()).collect()
}

impl Passage {
    const fn verdict(&self) -> Verdict {
        match self.answer {
            Answer::Yes => Verdict::Supported,
            Answer::No => Verdict::Unsupported,
            Answer::Unknown(_) => Verdict::Unknown,
        }
    }

    const fn map_type(&self) -> Option<MapType> {
        match self.answer {
            Answer::Yes => Some(MapType::ThroughHostBridge),
            Answer::No => Some(MapType::NotSupported),
            Answer::Unknown(_) => None,
        }
    }
}

/// Whether the first processor is an AMD one of family 0x17 or later. Hygon's, of family 0x18, have another vendor.
fn is_zen(facts: &PciFacts) -> Answer {
    let machine = &facts.machine;
    let other = machine.architecture.is_some_and(|one| one != Architecture::X86);
    match (&machine.cpu_vendor, machine.cpu_family) {
        _ if other => Answer::No,
        (Got::Value(vendor), _) if vendor != "AuthenticAMD" => Answer::No,
        (Got::Value(_), Some(family)) if family >= ZEN => Answer::Yes,
        (Got::Value(_), Some(_)) => Answer::No,
        _ => Answer::Unknown(Reason::CpuUnknown),
    }
}

/// Where a function stands, as its link says.
fn place_evidence(function: &Function) -> Evidence {
    let text = match &function.place {
        Got::Value(place) => {
            let below = place.bridges.iter().chain([&function.address]).map(Address::as_str);
            std::iter::once(place.root.as_str()).chain(below).collect::<Vec<_>>().join("/")
        }
        other => other.why().to_owned(),
    };
    Evidence { path: format!("{DEVICES}/{}", function.address), line: None, text: Some(text) }
}
