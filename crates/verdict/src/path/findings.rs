//! What a person should know about the paths of a host.

use std::collections::{BTreeMap, BTreeSet};

use fastpath_host::Evidence;
use fastpath_host::pci::{Acs, Address, Architecture, DEVICES, Function, Got, PciFacts};
use fastpath_knowledge::{Advisory, Effect, Feature, Release, compare};

use super::walk::Walker;
use super::{Judged, PathVerdict};
use crate::hint::{Hint, hints};
use crate::words::{Finding, Layer, Reason, Status, Verdict, finding};

/// Longer lists are cut in a summary.
const SHOWN: usize = 3;

/// The most places a finding shows.
const PLACES: usize = 8;

/// Everything a finding is made from.
pub(super) struct Case<'a> {
    pub(super) facts: &'a PciFacts,
    pub(super) release: Option<&'a Release>,
    pub(super) walker: &'a Walker<'a>,
    pub(super) judged: &'a [Judged],
    pub(super) gpus: &'a [&'a Function],
    pub(super) nvmes: &'a [&'a Function],
    pub(super) advisories: &'a [&'a Advisory],
}

impl Case<'_> {
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        findings.extend(self.nothing());
        findings.extend(self.blocked());
        findings.extend(self.reachable());
        findings.extend(self.not_listed());
        findings.extend(self.redirected());
        findings.extend(self.undecided());
        findings.extend(self.unproven());
        findings.extend(self.detours());
        findings.extend(self.unclassified());
        findings.extend(self.omitted());
        findings.extend(self.kaslr());
        findings
    }

    /// No list, no GPU, no drive.
    fn nothing(&self) -> Vec<Finding> {
        let devices = || vec![place(DEVICES, None)];
        let Got::Value(count) = self.facts.listed else {
            let why = self.facts.listed.why();
            let summary = format!("the PCI devices cannot be listed: {why}");
            let explanation = "Without the list it cannot be told which GPUs and drives there are, nor how they are \
                               connected. That is not a no.";
            let hint = (why == "permission denied").then(|| as_root("the list could not be read"));
            let found = new(finding::PATH_NO_SYSFS, Status::Unknown, summary, explanation, hint);
            return vec![Finding { evidence: devices(), ..found }];
        };
        let mut findings = Vec::new();
        // What could not be classified may be one.
        if !self.facts.unclassified.is_empty() {
            return findings;
        }
        if self.gpus.is_empty() {
            let summary = format!("there is no AMD GPU among {count} PCI devices");
            let explanation = "hipFile moves data into the memory of an AMD GPU.";
            let found = new(finding::PATH_NO_GPU, Status::Fail, summary, explanation, None);
            findings.push(Finding { evidence: devices(), ..found });
        }
        if self.nvmes.is_empty() {
            let summary = format!("there is no NVMe drive among {count} PCI devices");
            let explanation = "The fastpath reads from and writes to NVMe drives; data on other storage takes the fallback.";
            let found = new(finding::PATH_NO_NVME, Status::Fail, summary, explanation, None);
            findings.push(Finding { evidence: devices(), ..found });
        }
        findings
    }

    fn reachable(&self) -> Option<Finding> {
        let good = self.that(|path| path.verdict == Verdict::Supported);
        let first = good.first()?;
        let reasons: BTreeSet<&str> = good.iter().map(|one| one.path.reason.as_str()).collect();
        let reasons: Vec<&str> = reasons.into_iter().collect();
        let summary =
            format!("{} can carry peer-to-peer DMA: {}", self.of(&good), reasons.join(", "));
        let explanation = "The kernel lets the drive reach the GPU's memory over PCIe.";
        let evidence = first.path.decided_by.clone();
        let found = new(finding::PATH_REACHABLE, Status::Pass, summary, explanation, None);
        Some(Finding { evidence, ..found })
    }

    /// Paths through host bridges that do not forward, by those bridges.
    fn not_listed(&self) -> Vec<Finding> {
        let failed = self.that(|path| path.reason == Reason::HostBridgeNotListed);
        by_bridges(&failed)
            .into_iter()
            .map(|(bridges, paths)| {
                let summary =
                    format!("{} is refused: {}", self.of(&paths), self.why_not(&bridges, &paths));
                let explanation = "The drive and the GPU hang below different root ports, so traffic must pass the host \
                                   bridge. The kernel allows that only for host bridges that are known to forward it; \
                                   elsewhere it can be lost or corrupt data. Every transfer takes the fallback.";
                let hint = Some(same_switch());
                let status = self.status(Status::Fail);
                let found = new(finding::PATH_HOST_BRIDGE, status, summary, explanation, hint);
                Finding { evidence: merged(&paths), ..found }
            })
            .collect()
    }

    /// Why a group of host bridges does not forward: the first devices with their ids.
    fn why_not(&self, bridges: &[Address], paths: &[&Judged]) -> String {
        let only_same = |one: &&Address| {
            let Some(function) = self.facts.function(one) else { return false };
            let (Some(&vendor), Some(&device)) = (function.vendor.value(), function.device.value())
            else {
                return false;
            };
            let mut entries = self.walker.knowledge.host_bridges_for(vendor, device);
            bridges.len() > 1 && entries.any(|entry| entry.same_host_bridge)
        };
        let named = named_list(bridges, |one| {
            let id = self.facts.function(one).map_or_else(|| "????:????".to_owned(), Function::id);
            format!("{id} at {one}")
        });
        if bridges.is_empty() {
            format!("the host bridge of {} cannot be told", paths[0].path.gpu)
        } else if bridges.iter().any(|one| only_same(&one)) {
            format!("{named} forward only between root ports of their own")
        } else if bridges.iter().all(|one| !one.is_first_of_bus()) {
            format!("{named} does not stand for its host bridge, or is not in the kernel's list")
        } else if bridges.len() == 1 {
            format!("host bridge {named} is not in the kernel's list")
        } else {
            format!("host bridges {named} are not both in the kernel's list")
        }
    }

    fn redirected(&self) -> Option<Finding> {
        let failed = self.that(|path| path.reason == Reason::AcsRedirectHostBridgeNotListed);
        if failed.is_empty() {
            return None;
        }
        let ports = ports(&failed);
        let summary = format!(
            "{} is refused: ACS at {} sends traffic up to the host bridge, which is not known to forward it",
            self.of(&failed),
            named_list(&ports, Address::to_string)
        );
        let explanation = "The drive and the GPU share a switch, but its ports redirect peer traffic to the root (ACS P2P \
                           request or completion redirect, or egress control). The kernel switches that on when an IOMMU \
                           is in use, also in pass-through.";
        let hint = self.disable_acs(&ports);
        let status = self.status(Status::Fail);
        let found = new(finding::PATH_ACS, status, summary, explanation, Some(hint));
        Some(Finding { evidence: self.walker.acs_evidence(&first_few(&ports)), ..found })
    }

    /// Supported paths that take the way through the host bridge although there is a shorter one.
    fn detours(&self) -> Option<Finding> {
        let detours: Vec<&Judged> = self
            .judged
            .iter()
            .filter(|one| {
                one.path.verdict == Verdict::Supported && !one.walk.redirecting.is_empty()
            })
            .collect();
        if detours.is_empty() {
            return None;
        }
        let ports = ports(&detours);
        let summary = format!(
            "{} goes up to the host bridge and back, because of ACS at {}",
            self.of(&detours),
            named_list(&ports, Address::to_string)
        );
        let explanation = "It works. The shorter way through the switch alone would leave the root complex out; it would \
                           also leave the IOMMU out, which some kernels do not get right.";
        let found = new(finding::PATH_ACS_DETOUR, Status::Info, summary, explanation, None);
        Some(Finding { evidence: self.walker.acs_evidence(&first_few(&ports)), ..found })
    }

    /// Paths that cannot be decided, by what is missing.
    fn undecided(&self) -> Vec<Finding> {
        let mut groups: BTreeMap<&str, (Reason, Vec<&Judged>)> = BTreeMap::new();
        for one in self.judged.iter().filter(|one| one.path.verdict == Verdict::Unknown) {
            let reason = one.path.reason;
            groups.entry(reason.as_str()).or_insert((reason, Vec::new())).1.push(one);
        }
        groups
            .into_values()
            .map(|(reason, paths)| {
                let why = self.missing(reason, &paths);
                let summary = format!("{} cannot be judged: {why}", self.of(&paths));
                let explanation =
                    "That is not a no. The kernel decides by what could not be seen here.";
                let hint = self.undecided_hint(reason, &paths);
                let status = self.status(Status::Unknown);
                let found = new(finding::PATH_UNDECIDED, status, summary, explanation, hint);
                Finding { evidence: merged(&paths), ..found }
            })
            .collect()
    }

    /// What is missing for an answer.
    fn missing(&self, reason: Reason, paths: &[&Judged]) -> String {
        let unread = all(paths, |one| &one.walk.unread);
        let named = named_list(&unread, Address::to_string);
        let bridges = all(paths, |one| &one.walk.bridges);
        match reason {
            Reason::ConfigSpaceUnreadable => {
                let problems: BTreeSet<&str> = unread
                    .iter()
                    .filter_map(|one| match self.facts.function(one)?.acs() {
                        Acs::Unreadable(problem) => Some(problem.describe()),
                        _ => None,
                    })
                    .collect();
                let problems: Vec<&str> = problems.into_iter().collect();
                format!("it depends on configuration space of {named}: {}", problems.join("; "))
            }
            Reason::TopologyUnreadable => {
                let lost = if unread.is_empty() {
                    named_list(&bridges, Address::to_string)
                } else {
                    named
                };
                format!("it cannot be read where {lost} stands or what it is")
            }
            Reason::KernelUnconfirmed => {
                let ids = named_list(&bridges, |one| {
                    let id = self.facts.function(one).map_or_else(String::new, Function::id);
                    format!("{id} at {one}")
                });
                let release = self.release.map_or("this kernel", Release::as_str);
                format!("whether {release} lets traffic through host bridge {ids} is not confirmed")
            }
            Reason::ReleaseUnknown => "which kernel runs is not known".to_owned(),
            Reason::CpuUnknown => "/proc/cpuinfo does not tell the processor".to_owned(),
            Reason::IommuUnknown => "whether an IOMMU is in use cannot be read".to_owned(),
            other => other.as_str().to_owned(),
        }
    }

    fn undecided_hint(&self, reason: Reason, paths: &[&Judged]) -> Option<Hint> {
        match reason {
            Reason::ConfigSpaceUnreadable => {
                let unread = all(paths, |one| &one.walk.unread);
                let refused = unread.iter().filter_map(|one| self.facts.function(one)).any(|one| {
                    let acs = one.acs();
                    matches!(acs, Acs::Unreadable(problem) if problem.is_permission())
                });
                refused.then(|| as_root("configuration space beyond its header needs that"))
            }
            Reason::ReleaseUnknown => {
                let text = "name the kernel";
                let commands = vec!["fastpath check --kernel RELEASE".to_owned()];
                Some(Hint::new(hints::GIVE_RELEASE, text, commands))
            }
            _ => None,
        }
    }

    /// Paths that an advisory is proven for.
    fn blocked(&self) -> Vec<Finding> {
        self.by_advisory(|path| &path.advisories, |advisory, paths| {
            let status = match advisory.effect {
                Effect::Block => Status::Block,
                Effect::Warn => Status::Warn,
            };
            let summary = format!("{}: {}", self.of(paths), advisory.summary);
            let explanation = format!(
                "This kernel is one of those, traffic turns round at a switch, and the drive's IOMMU group translates. Lifted \
                 by: {}",
                advisory.lifted_by
            );
            (status, summary, explanation)
        })
    }

    /// Paths that an advisory may hold for.
    fn unproven(&self) -> Vec<Finding> {
        self.by_advisory(|path| &path.unproven, |advisory, paths| {
            let summary = format!("{} may be affected: {}", self.of(paths), advisory.summary);
            let explanation = format!(
                "This kernel is one of those; whether the path is cannot be told, because the map type or the drive's IOMMU \
                 group type could not be read. Lifted by: {}",
                advisory.lifted_by
            );
            (Status::Warn, summary, explanation)
        })
    }

    fn by_advisory(
        &self,
        ids: impl Fn(&PathVerdict) -> &Vec<String>,
        tell: impl Fn(&Advisory, &[&Judged]) -> (Status, String, String),
    ) -> Vec<Finding> {
        let marked = |advisory: &&&Advisory| {
            let paths = self.that(|path| ids(path).contains(&advisory.id));
            (!paths.is_empty()).then_some(paths)
        };
        self.advisories
            .iter()
            .filter_map(|advisory| {
                let paths = marked(&advisory)?;
                let (status, summary, explanation) = tell(advisory, &paths);
                let hint = Some(passthrough());
                let found = new(&advisory.id, status, summary, explanation, hint);
                Some(Finding { evidence: merged(&paths), ..found })
            })
            .collect()
    }

    fn unclassified(&self) -> Option<Finding> {
        let (_, why) = self.facts.unclassified.first()?;
        let addresses: Vec<Address> =
            self.facts.unclassified.iter().map(|(address, _)| address.clone()).collect();
        let named = named_list(&addresses, Address::to_string);
        let summary = format!("what {named} is cannot be read: {why}");
        let explanation = "A GPU or a drive may be among them.";
        let status = if self.judged.is_empty() { Status::Unknown } else { Status::Warn };
        let found = new(finding::PATH_UNDECIDED, status, summary, explanation, None);
        Some(Finding { evidence: files(&addresses, "class"), ..found })
    }

    fn omitted(&self) -> Option<Finding> {
        let omitted = self.facts.omitted;
        let summary = format!("{omitted} PCI devices are not looked at: there are too many");
        let explanation = "Paths are judged for 64 GPUs and 256 NVMe controllers at most.";
        (omitted > 0).then(|| new(finding::PATH_OMITTED, Status::Warn, summary, explanation, None))
    }

    /// In older kernels address space randomisation on x86 shrinks the kernel's map of memory to what there is plus some room;
    /// a BAR above its end cannot be registered. Whether a distribution has taken the change over is not known.
    fn kaslr(&self) -> Option<Finding> {
        let fixed = Feature::KernelMapsAllWithKaslr.since();
        let machine = &self.facts.machine;
        let release = self.release.filter(|one| compare(one.base(), fixed).is_lt())?;
        let applies = machine.architecture == Some(Architecture::X86)
            && machine.command_line == Got::Value(true)
            && self.facts.parameter("nokaslr").is_none();
        let end = mapped_end(machine.memory_end.filter(|_| applies)?);
        let beyond = |one: &&&Function| {
            one.p2pmem.is_missing()
                && one.bars.first().is_some_and(|bar| bar.index == 0 && bar.start >= end)
        };
        let gpus: Vec<Address> =
            self.gpus.iter().filter(beyond).map(|one| one.address.clone()).collect();
        if gpus.is_empty() {
            return None;
        }
        let summary = format!(
            "the memory of {} lies at addresses that {release} may not be able to map",
            named_list(&gpus, Address::to_string)
        );
        let explanation = format!(
            "Before Linux {fixed}, address space randomisation on x86 leaves room for memory that exists and 10 TiB more, as \
             distributions set it. The GPU's first BAR lies above that, and no driver has registered it for peer-to-peer use: \
             registering may have failed."
        );
        let text = format!(
            "boot with nokaslr, or with Linux {fixed} or later; nokaslr makes the kernel easier to attack"
        );
        let hint = Hint::new(hints::PATH_NOKASLR, text, boot_parameter("nokaslr"));
        let found = new(finding::PATH_KASLR, Status::Warn, summary, explanation, Some(hint));
        Some(Finding { evidence: files(&gpus, "resource"), ..found })
    }

    /// Paths for which something holds.
    fn that(&self, holds: impl Fn(&PathVerdict) -> bool) -> Vec<&Judged> {
        self.judged.iter().filter(|one| holds(&one.path)).collect()
    }

    /// A requirement that fails on some paths does not fail the layer while others are fine.
    fn status(&self, status: Status) -> Status {
        let fine = self.judged.iter().any(|one| one.path.verdict == Verdict::Supported);
        if fine { Status::Warn } else { status }
    }

    /// "the path between A and B", "all 4 paths", "2 of 4 paths".
    fn of(&self, paths: &[&Judged]) -> String {
        match paths {
            [one] => format!("the path from {} to {}", one.path.nvme, one.path.gpu),
            all if all.len() == self.judged.len() => format!("each of {} paths", all.len()),
            some => format!("each of {} paths (of {})", some.len(), self.judged.len()),
        }
    }

    fn disable_acs(&self, ports: &[Address]) -> Hint {
        let list: Vec<&str> = ports.iter().map(Address::as_str).collect();
        let parameter = format!("pci=disable_acs_redir={}", list.join(";"));
        let text =
            format!("boot with {parameter}, if devices below these ports need not be kept apart");
        let mut given = self
            .facts
            .machine
            .parameters
            .iter()
            .filter(|one| one.name() == "pci" && one.text.contains("acs"));
        let mut detail = "The parameter acts at boot, and what was read here is its result. Switching redirection off lets \
                          devices below these ports reach each other without the IOMMU: do not do it where they belong to \
                          different virtual machines. Changing the bits later with setpci has no effect on a pair of devices \
                          that has been used already."
            .to_owned();
        if let Some(given) = given.next_back() {
            let already = format!(
                " The command line has {} already; it did not clear these ports. Of several pci= parameters with \
                 disable_acs_redir the last one counts.",
                given.text
            );
            detail.push_str(&already);
        }
        let ids: Vec<&str> = self.advisories.iter().map(|one| one.id.as_str()).collect();
        if !ids.is_empty() {
            let danger = format!(
                " Traffic then turns round at the switch, which is not to be used on this kernel while an IOMMU translates \
                 ({}): boot with iommu=pt as well.",
                ids.join(", ")
            );
            detail.push_str(&danger);
        }
        if self.facts.parameter("pcie_acs_override").is_some() {
            detail.push_str(
                " pcie_acs_override, which is given, changes IOMMU groups, not redirection.",
            );
        }
        let commands = boot_parameter(&parameter);
        Hint { detail: Some(detail), ..Hint::new(hints::PATH_DISABLE_ACS, text, commands) }
    }
}

/// The end of what the kernel maps of memory: whole tebibytes, and the room that distributions leave for memory that is added
/// later (`CONFIG_RANDOMIZE_MEMORY_PHYSICAL_PADDING`, 10 with memory hotplug).
/// Source: <https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/arch/x86/mm/kaslr.c>.
fn mapped_end(memory_end: u64) -> u64 {
    const TEBIBYTE: u64 = 1 << 40;
    const ROOM: u64 = 10;
    memory_end.div_ceil(TEBIBYTE).saturating_add(ROOM).saturating_mul(TEBIBYTE)
}

/// Commands that add a boot parameter. GRUB takes an unquoted `;` for the end of a command.
fn boot_parameter(parameter: &str) -> Vec<String> {
    let quoted =
        if parameter.contains(';') { format!("\\\"{parameter}\\\"") } else { parameter.to_owned() };
    let line = format!("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {quoted}\"");
    let mut commands = vec![format!(
        "echo '{line}' | sudo tee -a /etc/default/grub.d/fastpath.cfg && sudo update-grub  # Debian, Ubuntu"
    )];
    if !parameter.contains(';') {
        commands.push(format!(
            "sudo grubby --update-kernel=ALL --args={parameter}  # Red Hat Enterprise Linux, Fedora and relatives"
        ));
    }
    commands
}

fn passthrough() -> Hint {
    let text = "boot with iommu=pt: the IOMMU then does not translate for the drive, and the defect does not bite";
    Hint::new(hints::PATH_PASSTHROUGH, text, boot_parameter("iommu=pt"))
}

fn same_switch() -> Hint {
    let text = "put the drive and the GPU below one PCIe switch, or into a host with an AMD Zen processor or a listed host bridge";
    let commands = vec!["lspci -tv".to_owned()];
    Hint::new(hints::PATH_SAME_SWITCH, text, commands)
}

fn as_root(why: &str) -> Hint {
    let text = format!("run as root: {why}");
    Hint::as_root(text)
}

/// Groups of paths with the same host bridges.
fn by_bridges<'a>(paths: &[&'a Judged]) -> Vec<(Vec<Address>, Vec<&'a Judged>)> {
    let mut groups: BTreeMap<Vec<Address>, Vec<&Judged>> = BTreeMap::new();
    for one in paths {
        let mut bridges = one.walk.bridges.clone();
        bridges.sort();
        groups.entry(bridges).or_default().push(one);
    }
    // Many host bridges make many pairs: they get one finding together.
    if groups.len() > SHOWN {
        let bridges = all(paths, |one| &one.walk.bridges);
        return vec![(bridges, paths.to_vec())];
    }
    groups.into_iter().collect()
}

/// Ports whose ACS redirects, of several paths.
fn ports(paths: &[&Judged]) -> Vec<Address> {
    all(paths, |one| &one.walk.redirecting)
}

/// Addresses of several paths, each once, in order.
fn all(paths: &[&Judged], of: impl Fn(&Judged) -> &Vec<Address>) -> Vec<Address> {
    let distinct: BTreeSet<&Address> = paths.iter().flat_map(|one| of(one)).collect();
    distinct.into_iter().cloned().collect()
}

/// Evidence of several paths, each once, and not without end.
fn merged(paths: &[&Judged]) -> Vec<Evidence> {
    let mut evidence: Vec<Evidence> = Vec::new();
    for one in paths.iter().flat_map(|one| &one.path.decided_by) {
        if evidence.len() == PLACES {
            break;
        }
        if !evidence.contains(one) {
            evidence.push(one.clone());
        }
    }
    evidence
}

fn first_few(addresses: &[Address]) -> Vec<Address> {
    addresses.iter().take(PLACES).cloned().collect()
}

/// A list for a sentence: "A, B and 3 more".
fn named_list(addresses: &[Address], name: impl Fn(&Address) -> String) -> String {
    let shown: Vec<String> = addresses.iter().take(SHOWN).map(name).collect();
    let more = addresses.len().saturating_sub(SHOWN);
    match (shown.as_slice(), more) {
        ([], _) => "nothing".to_owned(),
        ([one], 0) => one.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A file of several functions.
fn files(addresses: &[Address], name: &str) -> Vec<Evidence> {
    addresses.iter().take(PLACES).map(|one| place(&one.file(name), None)).collect()
}

fn place(path: &str, text: Option<String>) -> Evidence {
    Evidence { path: path.to_owned(), line: None, text }
}

fn new(
    id: &str,
    status: Status,
    summary: impl Into<String>,
    explanation: impl Into<String>,
    hint: Option<Hint>,
) -> Finding {
    Finding::new(id, Layer::Path, status, summary, explanation, hint)
}
