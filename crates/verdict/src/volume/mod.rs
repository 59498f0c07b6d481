//! The verdict on every mounted file system: can hipFile's fastpath be taken on its files.
//!
//! Two must agree: hipFile's library, which looks at the type of the file system and its journal mode, and AMD's kernel driver,
//! which looks at the device below. What the driver does with stacked devices differs between its builds and is data
//! ([`StorageRule`](fastpath_knowledge::StorageRule)).

mod file;
mod findings;
mod stack;

use fastpath_host::Evidence;
use fastpath_host::pci::Address;
use fastpath_host::volume::{
    DeviceKind, JournalMode, JournalSource, Located, Mount, SourceKind, VolumeFacts,
};
use fastpath_knowledge::{Knowledge, StorageRule, Treatment};
use serde::{Deserialize, Serialize};

pub use file::{FileVerdict, judge_file};

use crate::words::{Finding, Reason, Verdict};
use stack::Stack;

/// Every volume, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumesVerdict {
    /// The best of the volumes; `unsupported` if there is none, `unknown` if that could not be read.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// The mounted file systems that matter, in the order of the mount table; those hidden by others and single files that are
    /// mounted are left out.
    pub volumes: Vec<VolumeVerdict>,
    /// Findings, the main one first.
    pub findings: Vec<Finding>,
}

/// One mounted file system, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeVerdict {
    /// The mount, by index into the facts.
    pub index: usize,
    /// Where it is mounted.
    pub mount: String,
    /// The type, that of an ext4 with its journal mode: `ext4 (ordered)`.
    pub fstype: String,
    /// The device, if its name names nobody: `/dev/nvme0n1p1`.
    pub device: Option<String>,
    /// What it stands on, in the words of AMD's `ais-check`: `nvme`, `lvm`, `crypt`, `mpath`, `dm`, `md`, `virtio`, `scsi`,
    /// `loop`, else the device's name; `?` if that could not be read.
    pub backing: String,
    /// The NVMe functions below, in order.
    pub leaves: Vec<Address>,
    /// The answer.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// It rests on something that was not read: the driver's build, or the journal mode.
    pub assumed: bool,
    /// Where it was seen.
    pub evidence: Vec<Evidence>,
}

/// An answer with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    pub(crate) reason: Reason,
    /// It rests on an assumption.
    pub(crate) assumed: bool,
}

impl Answer {
    const OK: Self = Self { verdict: Verdict::Supported, reason: Reason::Ok, assumed: false };

    const fn no(reason: Reason) -> Self {
        Self { verdict: Verdict::Unsupported, reason, assumed: false }
    }

    const fn unknown(reason: Reason) -> Self {
        Self { verdict: Verdict::Unknown, reason, assumed: false }
    }

    fn is_ok(self) -> bool {
        self.verdict == Verdict::Supported
    }
}

/// What one build of AMD's driver does.
pub(crate) struct Driver<'a> {
    /// `None` only if no rule is known for its build.
    rule: Option<&'a StorageRule>,
    /// The build is known, and the rule is published to hold for it.
    certain: bool,
}

impl Driver<'_> {
    /// What the driver makes of a kind of storage.
    fn treats(&self, of: impl Fn(&StorageRule) -> Treatment, reason: Reason) -> Answer {
        match self.rule.map(of) {
            Some(Treatment::Yes) => Answer { assumed: !self.certain, ..Answer::OK },
            Some(Treatment::No) => Answer::no(reason),
            Some(Treatment::Unconfirmed) | None => Answer::unknown(reason),
        }
    }
}

/// Why hipFile's library does not take the fastpath for regular files of a file system of this type, and for an ext4 with this
/// journal mode. An ext4 without a journal is taken for an ordered one: its data is read and written directly too.
pub fn refusal(fstype: &str, journal: Option<JournalMode>) -> Option<Reason> {
    match (fstype, journal) {
        ("xfs", _) | ("ext4", Some(JournalMode::Ordered | JournalMode::None)) => None,
        ("ext4", _) => Some(Reason::JournalMode),
        _ => Some(Reason::Filesystem),
    }
}

/// What the volumes of one host are judged by.
pub(crate) struct Rules<'a> {
    facts: &'a VolumeFacts,
    driver: Driver<'a>,
    /// What the driver makes of each block device.
    below: Vec<Answer>,
}

impl<'a> Rules<'a> {
    fn new(facts: &'a VolumeFacts, build: Option<u64>, knowledge: &'a Knowledge) -> Self {
        let rule = knowledge.storage_rule(build);
        let certain = build.is_some() && rule.is_some_and(|rule| rule.confirmed);
        let driver = Driver { rule, certain };
        let below = Stack::new(&facts.devices, &driver).answers();
        Self { facts, driver, below }
    }

    /// What the driver makes of the device of a mount and of all below it.
    fn below(&self, mount: &Mount) -> Answer {
        let found = mount.block.and_then(|index| self.below.get(index));
        found.copied().unwrap_or(Answer::unknown(Reason::VolumeUnreadable))
    }

    fn stack(&self) -> Stack<'_> {
        Stack::new(&self.facts.devices, &self.driver)
    }

    /// What hipFile's library makes of the file system.
    fn file_system(&self, mount: &Mount) -> Answer {
        let journal = mount.journal.as_ref();
        match refusal(&mount.fstype, journal.map(|journal| journal.mode)) {
            None => {
                let assumed = journal.is_some_and(|it| it.source == JournalSource::Assumed);
                Answer { assumed, ..Answer::OK }
            }
            Some(Reason::Filesystem) if mount.fstype == "overlay" => Answer::no(Reason::Overlay),
            // hipFile takes it for an unsupported file system unless told otherwise; the driver then asks the network card.
            Some(Reason::Filesystem) if mount.rdma => {
                match self.driver.treats(|rule| rule.nfs_rdma, Reason::NfsRdma) {
                    answer if answer.is_ok() => Answer::unknown(Reason::NfsRdma),
                    answer => answer,
                }
            }
            Some(Reason::Filesystem) if mount.is_network() => Answer::no(Reason::Network),
            Some(reason) => Answer::no(reason),
        }
    }

    /// What becomes of files on a mount: the first rule that stops them.
    fn mount(&self, mount: &Mount) -> Answer {
        let file_system = self.file_system(mount);
        if !file_system.is_ok() {
            return file_system;
        }
        let below = self.below(mount);
        if below.is_ok() && mount.direct_io == Some(false) {
            return Answer::no(Reason::NoDirectIo);
        }
        Answer { assumed: file_system.assumed | below.assumed, ..below }
    }

    fn volume(&self, index: usize, mount: &Mount) -> VolumeVerdict {
        let stack = self.stack();
        let mut leaves = stack.leaves(mount.block);
        // The files of an overlay are those of its layers.
        for layer in mount.layers.iter().filter_map(|&layer| self.facts.mounts.get(layer)) {
            leaves.extend(stack.leaves(layer.block));
        }
        leaves.sort();
        leaves.dedup();
        let Answer { verdict, reason, assumed } = self.mount(mount);
        VolumeVerdict {
            index,
            mount: mount.mount_point.clone(),
            fstype: fstype(mount),
            device: self.device(mount),
            backing: self.backing(mount),
            leaves,
            verdict,
            reason,
            assumed,
            evidence: self.evidence(mount),
        }
    }

    /// The kernel's name of the device, where the table's may name somebody.
    fn device(&self, mount: &Mount) -> Option<String> {
        let block = self.facts.device(mount).filter(|device| !device.name.is_empty());
        match &mount.source {
            Some(source) => Some(source.clone()),
            None => block.map(|device| format!("/dev/{}", device.name)),
        }
    }

    fn backing(&self, mount: &Mount) -> String {
        match self.facts.device(mount) {
            Some(_) => self.stack().backing(mount.block),
            None if mount.is_network() => "network".to_owned(),
            None if mount.fstype == "overlay" => "overlay".to_owned(),
            None => "?".to_owned(),
        }
    }

    fn evidence(&self, mount: &Mount) -> Vec<Evidence> {
        let source = match (&mount.source, mount.source_kind) {
            (Some(source), _) => source.as_str(),
            (None, SourceKind::Device) => "(device)",
            (None, SourceKind::Network) => "(server)",
            (None, _) => "(source)",
        };
        let (major, minor) = mount.device;
        let line = Evidence {
            path: self.facts.table.clone(),
            line: Some(mount.line),
            text: Some(format!("{major}:{minor} {} {} {source}", mount.mount_point, mount.fstype)),
        };
        let journal = mount.journal.iter().map(|journal| journal.evidence.clone());
        let block = self.facts.device(mount).map(|device| Evidence {
            path: device.path.clone(),
            line: None,
            text: None,
        });
        std::iter::once(line)
            .chain(journal.filter(|one| one.path != self.facts.table))
            .chain(block)
            .collect()
    }
}

/// The type as `ais-check` shows it.
fn fstype(mount: &Mount) -> String {
    match &mount.journal {
        Some(journal) => format!("{} ({})", mount.fstype, journal.mode.as_str()),
        None => mount.fstype.clone(),
    }
}

/// Judges the volumes of a host. `build` is the build number of AMD's driver; without it the rules of the newest one are taken.
pub fn judge(facts: &VolumeFacts, build: Option<u64>, knowledge: &Knowledge) -> VolumesVerdict {
    let rules = Rules::new(facts, build, knowledge);
    let volumes: Vec<VolumeVerdict> = facts
        .mounts
        .iter()
        .enumerate()
        .filter(|(_, mount)| !mount.hidden && !mount.single_file && mount.matters())
        .map(|(index, mount)| rules.volume(index, mount))
        .collect();
    let best = volumes.iter().min_by_key(|volume| volume.verdict.badness());
    let (verdict, reason) = match best {
        _ if facts.unread.is_some() => (Verdict::Unknown, Reason::VolumeUnreadable),
        Some(best) => (best.verdict, best.reason),
        None => (Verdict::Unsupported, Reason::NoVolume),
    };
    let findings = findings::findings(&rules, &volumes);
    VolumesVerdict { verdict, reason, volumes, findings }
}

/// The volumes narrowed to the one that holds a file, with the file's own verdict.
pub(crate) fn about_file(
    volumes: VolumesVerdict,
    located: &Located,
    facts: &VolumeFacts,
    build: Option<u64>,
    knowledge: &Knowledge,
) -> VolumesVerdict {
    let file = judge_file(located, facts, build, knowledge);
    let holds = volumes.volumes.into_iter().find(|volume| Some(volume.index) == file.index);
    let of_node = located.devices.iter().filter_map(|device| match &device.kind {
        DeviceKind::Nvme { address } => Some(address.clone()),
        _ => None,
    });
    let leaves = match &holds {
        Some(volume) if located.devices.is_empty() => volume.leaves.clone(),
        _ => of_node.collect(),
    };
    let (device, backing) =
        holds.map_or((None, "?".to_owned()), |volume| (volume.device, volume.backing));
    let volume = VolumeVerdict {
        index: file.index.unwrap_or(usize::MAX),
        mount: file.path.clone(),
        fstype: file.fstype.clone().unwrap_or_default(),
        device,
        backing,
        leaves,
        verdict: file.verdict,
        reason: file.reason,
        assumed: file.assumed,
        evidence: file.evidence.clone(),
    };
    VolumesVerdict {
        verdict: file.verdict,
        reason: file.reason,
        findings: vec![findings::of_file(&file)],
        volumes: vec![volume],
    }
}
