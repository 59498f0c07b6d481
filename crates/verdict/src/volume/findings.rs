//! What a person should know about the volumes of a host: equal answers together.

use std::borrow::Cow;

use fastpath_host::Evidence;
use fastpath_host::volume::{JournalSource, MAX_DEVICES, MAX_MOUNTS};
use fastpath_knowledge::Feature;

use super::{FileVerdict, Rules, VolumeVerdict};
use crate::hint::{Hint, hints};
use crate::words::{Finding, Layer, Reason, Status, Verdict, finding};

/// As many volumes as one line can name; the list of volumes names them all.
const MOST_NAMED: usize = 4;

/// As many places as a person looks at.
const MOST_EVIDENCE: usize = 8;

/// All findings, the main one first.
pub(super) fn findings(rules: &Rules, volumes: &[VolumeVerdict]) -> Vec<Finding> {
    if let Some(unread) = &rules.facts.unread {
        let summary = format!("the mounted file systems are not known: {}", unread.reason);
        let explanation = "Without the mount table nothing can be said about any file system.";
        let hint = if unread.not_recorded {
            let text = "take the snapshot again with this version, so that it holds the volumes";
            Some(Hint::new(hints::SEE_DEVICES, text, vec!["sudo fastpath snapshot".to_owned()]))
        } else if unread.permission {
            Some(as_root())
        } else {
            Some(see_devices())
        };
        let evidence = vec![Evidence { path: unread.path.clone(), line: None, text: None }];
        return vec![Finding {
            evidence,
            ..new(finding::VOLUME_UNREADABLE, Status::Unknown, summary, explanation, hint)
        }];
    }
    let mut findings = Vec::new();
    if volumes.is_empty() {
        let explanation = "hipFile's fastpath reads and writes files on a local NVMe drive. No file system on any block device is \
                           mounted here, as in a container that was given no volume.";
        findings.push(Finding {
            evidence: vec![Evidence { path: rules.facts.table.clone(), line: None, text: None }],
            ..new(
                finding::VOLUME_NONE,
                Status::Fail,
                "no file system on a block device is mounted",
                explanation,
                Some(use_nvme()),
            )
        });
    }
    findings.extend(group(rules, volumes, Reason::Ok));
    let mut reasons: Vec<Reason> = Vec::new();
    for volume in volumes {
        if volume.reason != Reason::Ok && !reasons.contains(&volume.reason) {
            reasons.push(volume.reason);
        }
    }
    findings.extend(reasons.into_iter().filter_map(|reason| group(rules, volumes, reason)));
    findings.extend(assumed(rules, volumes));
    findings.extend(flaws(rules));
    findings
}

/// The finding for all volumes with one reason.
fn group(rules: &Rules, volumes: &[VolumeVerdict], reason: Reason) -> Option<Finding> {
    let group: Vec<&VolumeVerdict> =
        volumes.iter().filter(|volume| volume.reason == reason).collect();
    let worst =
        group.iter().map(|volume| volume.verdict).max_by_key(|verdict| verdict.badness())?;
    let one_will_do = volumes.iter().any(|volume| volume.verdict == Verdict::Supported);
    let status = match worst {
        Verdict::Supported => Status::Pass,
        // Nobody needs every volume to do: /boot is never the place for models.
        _ if one_will_do => Status::Info,
        Verdict::Unknown => Status::Unknown,
        Verdict::Unsupported | Verdict::Blocked => Status::Fail,
    };
    let (id, clause, explanation) = words(reason);
    let summary = format!("{}: {clause}", named(&group));
    let evidence = group.iter().flat_map(|volume| volume.evidence.iter().cloned());
    let evidence = evidence.take(MOST_EVIDENCE).collect();
    let hint = if status == Status::Pass { None } else { hint(rules, &group, reason) };
    Some(Finding { evidence, ..new(id, status, summary, explanation, hint) })
}

/// The volumes by name, the first few of them.
fn named(group: &[&VolumeVerdict]) -> String {
    let names: Vec<String> = group
        .iter()
        .take(MOST_NAMED)
        .map(|volume| format!("{} ({})", volume.mount, volume.fstype))
        .collect();
    match group.len().saturating_sub(MOST_NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// The id of the finding, a clause and a text for a reason.
fn words(reason: Reason) -> (&'static str, &'static str, Cow<'static, str>) {
    const DIRECT: &str = "AMD's driver must find the PCI function of an NVMe drive right below the file system, or below logical \
                          volumes of LVM. Any other layer in between keeps the GPU and the drive from talking to each other, and \
                          hipFile takes its fallback, without a word.";
    let device = |clause| (finding::VOLUME_DEVICE, clause, DIRECT);
    let (id, clause, explanation) = match reason {
        Reason::Ok => (
            finding::VOLUME_READY,
            "a file system and a device that the fastpath can use",
            "The file system is one that hipFile takes its fastpath on, and below it are NVMe drives and nothing in between that \
             the driver cannot see through. Which GPUs reach these drives is the path layer's question.",
        ),
        Reason::Filesystem => (
            finding::VOLUME_FILESYSTEM,
            "hipFile takes no fastpath on this type of file system",
            "hipFile takes its fastpath on xfs and on ext4 with data=ordered only. On any other it takes its fallback, whatever \
             the drive below.",
        ),
        Reason::Overlay => (
            finding::VOLUME_FILESYSTEM,
            "layers over other file systems",
            "Files of a container's image are on an overlay, which is on no block device of its own. hipFile takes no fastpath on \
             it, and the driver cannot find its drive.",
        ),
        Reason::JournalMode => (
            finding::VOLUME_JOURNAL_MODE,
            "the journal mode is not data=ordered",
            "AMD supports ext4 with data=ordered only. With data=journal the kernel does no direct I/O at all; a mode set with \
             tune2fs is not seen in the mount options, so hipFile itself may not notice.",
        ),
        Reason::Network | Reason::NfsRdma => {
            let clause = match reason {
                Reason::NfsRdma => {
                    "NFS over RDMA, which AMD's newest drivers can use if the network card reaches the GPU"
                }
                _ => "the files are on another machine",
            };
            let explanation = format!(
                "The fastpath goes from a local NVMe drive to the GPU. NFS over RDMA is the exception: it needs amdgpu-dkms {}, \
                 HIPFILE_UNSUPPORTED_FILE_SYSTEMS=true, and a network card that can reach the GPU, which is not judged here.",
                Feature::DriverWithNfsRdma.since()
            );
            return (finding::VOLUME_NETWORK, clause, explanation.into());
        }
        Reason::VolumeUnreadable => (
            finding::VOLUME_UNREADABLE,
            "what is below it could not be read",
            "The block devices below a file system are read from /sys. Without them nothing is said: a device named nvme need not \
             be a local drive.",
        ),
        Reason::NvmeMultipath => (
            finding::VOLUME_DEVICE,
            "an NVMe multipath device",
            "The namespace is handled by the kernel's own NVMe multipath. Its device is named like any NVMe drive, but is not on a \
             PCI function: the driver cannot find the drive, and AMD does not support it.",
        ),
        Reason::NvmeTcp => device("an NVMe drive reached over TCP"),
        Reason::NvmeRdma => device("an NVMe drive reached over RDMA"),
        Reason::NvmeFabrics => device("an NVMe drive reached over a fabric"),
        Reason::Md => device("Linux software RAID"),
        Reason::Lvm => {
            device("a logical volume, which this driver does not or may not see through")
        }
        Reason::LvmMemberNotNvme => {
            device("a logical volume with a member that is no local NVMe drive")
        }
        Reason::DmCrypt => device("an encrypted device"),
        Reason::DmMultipath => device("a multipath device of device-mapper"),
        Reason::Dm => device("a device-mapper device"),
        Reason::Loop => device("a loop device"),
        Reason::Zram => device("compressed memory"),
        Reason::Bcache => device("a disk with a cache in front"),
        Reason::Virtio => device("a virtual disk"),
        Reason::Scsi => device("a SCSI, SATA, SAS or USB disk"),
        _ => device("no NVMe drive"),
    };
    (id, clause, explanation.into())
}

/// What can be done.
fn hint(rules: &Rules, group: &[&VolumeVerdict], reason: Reason) -> Option<Hint> {
    let commands = |commands: &[&str]| commands.iter().map(|&one| one.to_owned()).collect();
    match reason {
        Reason::NvmeMultipath => {
            let text = "switch the kernel's NVMe multipath off and reboot, if no drive here needs a second path";
            Some(Hint::new(
                hints::DISABLE_MULTIPATH,
                text,
                commands(&[
                    "echo 'options nvme_core multipath=N' | sudo tee /etc/modprobe.d/nvme_core.conf",
                    "if command -v update-initramfs; then sudo update-initramfs -u -k all; else sudo dracut --force \
                     --regenerate-all; fi",
                    "sudo systemctl reboot",
                ]),
            ))
        }
        Reason::Filesystem | Reason::NfsRdma => {
            // Worth saying only where the drive below would do.
            let is_system =
                |mount: &str| ["/boot", "/efi"].iter().any(|place| mount.starts_with(place));
            let would_do = reason == Reason::NfsRdma
                || group.iter().filter(|volume| !is_system(&volume.mount)).any(|volume| {
                    let mount = rules.facts.mounts.get(volume.index);
                    mount.is_some_and(|mount| rules.below(mount).is_ok())
                });
            let text = "put the files on xfs or on ext4 with data=ordered; or, at your own risk, let hipFile try any file system: \
                        AMD warns of corrupted or lost data";
            let variable = ["export HIPFILE_UNSUPPORTED_FILE_SYSTEMS=true"];
            would_do.then(|| Hint::new(hints::ANY_FILE_SYSTEM, text, commands(&variable)))
        }
        Reason::JournalMode => {
            let volume = group.first()?;
            let mount = rules.facts.mounts.get(volume.index)?;
            if !rules.below(mount).is_ok() {
                return None;
            }
            let device = volume.device.as_deref().unwrap_or("DEVICE");
            let text = "mount it with the journal mode ordered: take data= out of /etc/fstab, take the mode set with tune2fs away, \
                        and mount it again";
            // A root file system cannot be unmounted by the system that runs on it.
            if volume.mount == "/" {
                let text = "give the root file system the journal mode ordered: from a rescue system, as it is in use here; or put \
                            the files on another file system";
                return Some(Hint::new(hints::ORDERED, text, Vec::new()));
            }
            let tune = match mount.journal.as_ref().map(|journal| (journal.mode, journal.source)) {
                Some((_, JournalSource::Effective)) if mount.data.is_none() => format!(
                    "sudo tune2fs -o journal_data_ordered {device} && sudo umount {0} && sudo mount {0}",
                    quoted(&volume.mount)
                ),
                _ => format!(
                    "sudo umount {0} && sudo mount -o data=ordered {device} {0}",
                    quoted(&volume.mount)
                ),
            };
            Some(Hint::new(hints::ORDERED, text, vec![tune]))
        }
        Reason::VolumeUnreadable => {
            let unread = group.iter().filter_map(|volume| {
                let mount = rules.facts.mounts.get(volume.index)?;
                rules.facts.device(mount)?.unread.as_ref()
            });
            let permission = unread.into_iter().any(|unread| unread.permission);
            Some(if permission { as_root() } else { see_devices() })
        }
        Reason::Lvm => {
            let text = format!(
                "with AMD's driver {} or newer logical volumes on local NVMe drives are used directly; or put the files on a \
                 partition",
                Feature::DriverThroughLvm.since()
            );
            Some(Hint::new(hints::NEWER_DRIVER, text, commands(&["dkms status amdgpu"])))
        }
        Reason::Overlay => {
            let text = "give the container a directory of a local NVMe drive for its data";
            let run = ["docker run --volume /data:/data ..."];
            Some(Hint::new(hints::USE_NVME, text, commands(&run)))
        }
        _ => Some(use_nvme()),
    }
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '@' | ':');
    if path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

fn use_nvme() -> Hint {
    let text = "put the files on xfs or ext4 on a partition of a local NVMe drive; see which drives there are and what is on them";
    let list = "lsblk -o NAME,TYPE,TRAN,FSTYPE,MOUNTPOINTS";
    Hint::new(hints::USE_NVME, text, vec![list.to_owned()])
}

fn as_root() -> Hint {
    let text = "run as root: a file that may tell could not be read";
    Hint::as_root(text)
}

fn see_devices() -> Hint {
    let text = "run where /proc and /sys of the host are seen: on the host itself, or in a container that was given them";
    Hint::new(hints::SEE_DEVICES, text, vec!["ls -l /sys/dev/block/".to_owned()])
}

/// What was not read and decides all the same.
fn assumed(rules: &Rules, volumes: &[VolumeVerdict]) -> Option<Finding> {
    let group: Vec<&VolumeVerdict> = volumes.iter().filter(|volume| volume.assumed).collect();
    let (first, _) = group.split_first()?;
    let is_journal = |volume: &VolumeVerdict| {
        let journal = rules.facts.mounts.get(volume.index).and_then(|mount| mount.journal.as_ref());
        journal.is_some_and(|journal| journal.source == JournalSource::Assumed)
    };
    let what = match (
        group.iter().any(|volume| is_journal(volume)),
        group.iter().all(|volume| is_journal(volume)),
    ) {
        (true, true) => "the default journal mode of ext4",
        (true, false) => "the default journal mode of ext4 and the rules of AMD's newest driver",
        (false, _) => "the rules of AMD's newest driver",
    };
    let summary = format!("{}: assumed {what}", named(&group));
    let explanation = "The journal mode in effect is read from /proc/fs/ext4; the mount table does not show one that was set with \
                       tune2fs. What the driver does with logical volumes depends on its build, and AMD has not said which build \
                       was the first to use them.";
    let evidence = first.evidence.clone();
    Some(Finding {
        evidence,
        ..new(finding::VOLUME_ASSUMED, Status::Info, summary, explanation, None)
    })
}

/// What is wrong with the mount table itself.
fn flaws(rules: &Rules) -> Option<Finding> {
    let flaws = rules.facts.flaws;
    let summary = match (flaws.cut, flaws.malformed) {
        (true, _) => format!(
            "there are more than {MAX_MOUNTS} mounts or {MAX_DEVICES} block devices: the rest was not looked at"
        ),
        (false, 0) => return None,
        (false, 1) => "one line of the mount table is no mount".to_owned(),
        (false, count) => format!("{count} lines of the mount table are no mounts"),
    };
    let explanation = "What was not understood is not judged: a file system on it may be better or worse than those listed.";
    let evidence =
        vec![Evidence { path: rules.facts.table.clone(), line: flaws.first, text: None }];
    let finding = new(finding::VOLUME_UNREADABLE, Status::Warn, summary, explanation, None);
    Some(Finding { evidence, ..finding })
}

fn new(
    id: &str,
    status: Status,
    summary: impl Into<String>,
    explanation: impl Into<String>,
    hint: Option<Hint>,
) -> Finding {
    Finding::new(id, Layer::Volume, status, summary, explanation, hint)
}

/// What is said about one file that was asked about.
pub(super) fn of_file(file: &FileVerdict) -> Finding {
    let (path, reason) = (&file.path, file.reason.as_str());
    let stopped = format!("The first rule that stops it is `{reason}`.");
    let (status, summary, explanation) = match file.verdict {
        Verdict::Supported => {
            let aligned = match (file.offset_alignment, file.memory_alignment) {
                (Some(offset), Some(memory)) => format!(
                    "Offsets and lengths must be multiples of {offset} bytes, memory addresses of {memory} bytes; other requests \
                     take the fallback."
                ),
                _ => "Requests that are not aligned take the fallback.".to_owned(),
            };
            (Status::Pass, format!("{path} is fit for the fastpath: {}", file.detail), aligned)
        }
        Verdict::Unsupported => (
            Status::Fail,
            format!("hipFile takes its fallback for {path}: {}", file.detail),
            stopped,
        ),
        Verdict::Blocked => (
            Status::Block,
            format!("the fastpath must not be used for {path}: {}", file.detail),
            stopped,
        ),
        Verdict::Unknown => {
            (Status::Unknown, format!("it cannot be told for {path}: {}", file.detail), stopped)
        }
    };
    Finding {
        evidence: file.evidence.clone(),
        ..new(finding::VOLUME_FILE, status, summary, explanation, None)
    }
}
