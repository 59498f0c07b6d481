//! The path layer: which GPU and which drive can reach each other over PCIe.

mod answer;
mod findings;
mod walk;

use fastpath_host::Evidence;
use fastpath_host::pci::{Address, Function, Got, PciFacts, Role};
use fastpath_knowledge::{Advisory, Effect, Knowledge, MapType, Release};

use self::answer::Answer;
use self::walk::{Walk, Walker};
use crate::words::{Finding, Reason, Verdict};

/// One GPU, one NVMe drive, and the PCIe way between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathVerdict {
    /// The GPU.
    pub gpu: Address,
    /// The drive's controller.
    pub nvme: Address,
    /// Whether the kernel lets peer traffic through, and whether it must not be used.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Steps over bridges from the one to the other; `None` if it is not known where they stand.
    pub distance: Option<u32>,
    /// How the kernel maps memory on the path; `None` if that depends on what could not be read.
    pub map_type: Option<MapType>,
    /// Where that was seen.
    pub decided_by: Vec<Evidence>,
    /// What is in the way: ports whose ACS redirects, first devices of host bridges that are not listed, functions that could
    /// not be read.
    pub blockers: Vec<Address>,
    /// Ids of advisories that are proven for this path.
    pub advisories: Vec<String>,
    /// Ids of advisories that mark the kernel and may hold for this path: something could not be read.
    pub unproven: Vec<String>,
}

/// The path layer, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathsVerdict {
    /// The best path's verdict; what is wrong if there is none.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Every GPU with every drive, by address.
    pub paths: Vec<PathVerdict>,
    /// Findings, the main ones first.
    pub findings: Vec<Finding>,
}

/// Judges every path of a host whose kernel is `release`; `None` if that is not known.
pub fn judge(facts: &PciFacts, release: Option<&Release>, knowledge: &Knowledge) -> PathsVerdict {
    let walker = Walker::new(facts, release, knowledge);
    let advisories: Vec<&Advisory> = release
        .map(|release| {
            knowledge.advisories_for(release).filter(|one| !one.needs.is_empty()).collect()
        })
        .unwrap_or_default();
    let gpus: Vec<&Function> = facts.with_role(Role::Gpu).collect();
    let nvmes: Vec<&Function> = facts.with_role(Role::Nvme).collect();
    let mut judged = Vec::with_capacity(gpus.len() * nvmes.len());
    for gpu in &gpus {
        for nvme in &nvmes {
            let walk = walker.walk(gpu, nvme);
            let mut path = judge_path(facts, gpu, nvme, &walk, &advisories);
            // Which advisories mark a kernel is not known without its release: any whose other conditions hold here may.
            let may_hold = |one: &Advisory| {
                one.effect == Effect::Block
                    && !one.needs.is_empty()
                    && !matches!(holds(facts, nvme, &walk, one), Answer::No)
            };
            if release.is_none()
                && path.verdict == Verdict::Supported
                && knowledge.advisories.iter().any(may_hold)
            {
                path.verdict = Verdict::Unknown;
                path.reason = Reason::ReleaseUnknown;
            }
            judged.push(Judged { path, walk });
        }
    }
    let best = judged.iter().map(|one| (one.path.verdict, one.path.reason));
    let (verdict, reason) =
        best.min_by_key(|(verdict, _)| verdict.badness()).unwrap_or_else(|| {
            let reason = nothing_to_judge(facts, gpus.is_empty());
            let sure = matches!(reason, Reason::NoGpu | Reason::NoNvme);
            (if sure { Verdict::Unsupported } else { Verdict::Unknown }, reason)
        });
    let case = findings::Case {
        facts,
        release,
        walker: &walker,
        judged: &judged,
        gpus: &gpus,
        nvmes: &nvmes,
        advisories: &advisories,
    };
    let findings = case.findings();
    let paths = judged.into_iter().map(|one| one.path).collect();
    PathsVerdict { verdict, reason, paths, findings }
}

/// A path with the walk it was judged by.
struct Judged {
    path: PathVerdict,
    walk: Walk,
}

/// Why there is no path at all.
fn nothing_to_judge(facts: &PciFacts, no_gpu: bool) -> Reason {
    match facts.listed {
        Got::Value(_) if !facts.unclassified.is_empty() => Reason::TopologyUnreadable,
        Got::Value(_) if no_gpu => Reason::NoGpu,
        Got::Value(_) => Reason::NoNvme,
        _ => Reason::NoSysfs,
    }
}

fn judge_path(
    facts: &PciFacts,
    gpu: &Function,
    nvme: &Function,
    walk: &Walk,
    advisories: &[&Advisory],
) -> PathVerdict {
    let mut path = PathVerdict {
        gpu: gpu.address.clone(),
        nvme: nvme.address.clone(),
        verdict: walk.verdict,
        reason: walk.reason,
        distance: walk.distance,
        map_type: walk.map_type,
        decided_by: walk.evidence.clone(),
        blockers: blockers(walk),
        advisories: Vec::new(),
        unproven: Vec::new(),
    };
    if walk.verdict == Verdict::Unsupported {
        return path;
    }
    for advisory in advisories {
        match holds(facts, nvme, walk, advisory) {
            Answer::Yes => path.advisories.push(advisory.id.clone()),
            Answer::No => continue,
            Answer::Unknown(reason) => {
                path.unproven.push(advisory.id.clone());
                // What may corrupt memory, for all that could be read, is no yes.
                if advisory.effect == Effect::Block && path.verdict == Verdict::Supported {
                    path.verdict = Verdict::Unknown;
                    path.reason = reason;
                }
            }
        }
        let group = facts.group(nvme).map(|group| Evidence {
            path: group.file(),
            line: None,
            text: group.kind.value().cloned(),
        });
        path.decided_by.extend(group.filter(|group| !path.decided_by.contains(group)));
        if advisory.effect == Effect::Block && path.advisories.last() == Some(&advisory.id) {
            path.verdict = Verdict::Blocked;
            path.reason = Reason::Advisory;
        }
    }
    path
}

/// What is in the way, or would have to be read.
fn blockers(walk: &Walk) -> Vec<Address> {
    match walk.verdict {
        Verdict::Supported => Vec::new(),
        Verdict::Unsupported if walk.redirecting.is_empty() => walk.bridges.clone(),
        Verdict::Unsupported => walk.redirecting.clone(),
        Verdict::Unknown if walk.unread.is_empty() => walk.bridges.clone(),
        Verdict::Unknown | Verdict::Blocked => walk.unread.clone(),
    }
}

/// Whether all that an advisory needs besides the release holds on a path. The group that counts is the drive's: it is the
/// drive whose requests are mapped.
fn holds(facts: &PciFacts, nvme: &Function, walk: &Walk, advisory: &Advisory) -> Answer {
    let needs = &advisory.needs;
    let map_type = match walk.map_type {
        _ if needs.map_type.is_empty() => Answer::Yes,
        Some(map_type) if needs.map_type.contains(&map_type) => Answer::Yes,
        Some(_) => Answer::No,
        // The walk itself may have an answer that holds in both cases.
        None if walk.verdict == Verdict::Unknown => Answer::Unknown(walk.reason),
        None => Answer::Unknown(Reason::ConfigSpaceUnreadable),
    };
    let group = match (&nvme.iommu_group, facts.group(nvme).map(|group| &group.kind)) {
        _ if needs.iommu_group_type.is_empty() => Answer::Yes,
        // No IOMMU handles the drive: its addresses are not translated.
        (Got::Missing, _) => Answer::No,
        (_, Some(Got::Value(kind))) => {
            let named = needs.iommu_group_type.iter().any(|one| one.as_str() == kind);
            match kind.as_str() {
                _ if named => Answer::Yes,
                "identity" => Answer::No,
                // Nothing is known of a word that no kernel here writes.
                _ => Answer::Unknown(Reason::IommuUnknown),
            }
        }
        _ => Answer::Unknown(Reason::IommuUnknown),
    };
    map_type.and(group)
}
