//! What a person should know about the kernel layer.

use fastpath_host::{Environment, Facts, Kind, OsRelease, State, Witness, boot::NextBoot};
use fastpath_kconfig::{Symbol, Value};
use fastpath_knowledge::{Effect, Knowledge, Release, RemedyKind};

use super::{InstalledVerdict, Judgement};
use crate::hint::{Hint, HintKernel, hints};
use crate::words::{Finding, Layer, Reason, Status, Verdict, finding};

/// Everything a finding is made from.
pub(crate) struct Case<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) knowledge: &'a Knowledge,
    pub(crate) judgement: &'a Judgement,
    pub(crate) installed: &'a [InstalledVerdict<'a>],
    /// There is no GPU driver on this kind of host, and that is part of the question.
    pub(crate) no_driver: bool,
    /// No other layer is part of the question.
    pub(crate) alone: bool,
}

impl<'a> Case<'a> {
    /// Findings of the kernel layer, the requirement itself first.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut more = self.remedies();
        // Without a better kernel on the machine, the best remedy belongs to the requirement itself.
        let first = (self.better().is_none() && !more.is_empty()).then(|| more.remove(0));
        let mut findings = vec![self.option(first)];
        findings.extend(self.advisories());
        findings.extend(self.better_installed());
        findings.extend(more.into_iter().map(|hint| {
            let explanation = "Another way, if the first one does not suit.";
            new(finding::ALTERNATIVE, Status::Info, hint.text.clone(), explanation, Some(hint))
        }));
        findings.extend(self.next_boot());
        findings.extend(self.unlisted());
        findings.extend(self.conflicts());
        findings.extend(self.duplicate());
        findings.extend(self.unsound());
        findings.extend(self.hsa_amd_p2p());
        findings.extend(self.environment());
        findings
    }

    fn os(&self) -> &OsRelease {
        &self.facts.os
    }

    fn release(&self) -> Option<&'a Release> {
        self.facts.kernel.release.as_ref()
    }

    fn is_asked_running(&self) -> bool {
        self.release().is_some() && self.release() == self.facts.kernel.running.as_ref()
    }

    fn deciding(&self) -> Option<&'a Witness> {
        self.judgement.decides.map(|index| &self.facts.kernel.witnesses[index])
    }

    /// The requirement itself.
    fn option(&self, remedy: Option<Hint>) -> Finding {
        let status = match self.judgement.verdict {
            Verdict::Supported => Status::Pass,
            Verdict::Unsupported => Status::Fail,
            Verdict::Blocked => Status::Block,
            Verdict::Unknown => Status::Unknown,
        };
        let release = self.release().map_or("this kernel", Release::as_str);
        let because = self.judgement.absent_because.as_deref();
        let summary = match self.judgement.reason {
            Reason::OptionY => format!("{release} is built with CONFIG_PCI_P2PDMA=y"),
            Reason::SymbolsPresent => format!("{release} has the symbols of CONFIG_PCI_P2PDMA=y"),
            Reason::SymbolsAbsent => {
                format!("{release} is built without CONFIG_PCI_P2PDMA: its symbols are not there")
            }
            Reason::OptionNotSet | Reason::OptionN => {
                format!("{release} is built without CONFIG_PCI_P2PDMA")
            }
            Reason::OptionAbsent => match because {
                Some(because) => format!("{release} has no CONFIG_PCI_P2PDMA: {because}"),
                None => format!("{release} has no CONFIG_PCI_P2PDMA"),
            },
            Reason::OptionMInvalid => {
                format!(
                    "the configuration of {release} says CONFIG_PCI_P2PDMA=m, which no kernel can be built with"
                )
            }
            Reason::Advisory => match self.judgement.value {
                Some(_) => {
                    format!("{release} has the option, and must not be used for the fastpath")
                }
                None => {
                    format!("{release} must not be used for the fastpath, whatever its option says")
                }
            },
            Reason::NoWitness | Reason::NoWitnessForThisKernel if self.is_not_recorded() => {
                format!("the snapshot says nothing about {release}")
            }
            Reason::NoWitness => format!("nothing tells how {release} was built"),
            Reason::NoWitnessForThisKernel => {
                format!(
                    "nothing tells how {release} was built; configurations of other kernels are there"
                )
            }
            Reason::WitnessEmpty => format!("the configuration of {release} is empty"),
            Reason::WitnessTruncated => format!("the configuration of {release} is cut"),
            Reason::WitnessMalformed => format!("the configuration of {release} is damaged"),
            Reason::WitnessUnreadable => {
                format!("the configuration of {release} could not be read")
            }
            // `release-unknown`; the reasons after it are those of other layers.
            _ => "the root does not tell which kernel runs".to_owned(),
        };
        let explanation = match self.judgement.verdict {
            Verdict::Supported if self.alone => {
                "The kernel can do PCI peer-to-peer DMA, which hipFile's fastpath needs. Only the kernel was judged: \
                 the GPU driver, the PCIe path and the file system must be fine as well."
            }
            Verdict::Supported => {
                "The kernel can do PCI peer-to-peer DMA, which hipFile's fastpath needs."
            }
            Verdict::Unsupported => {
                "Without the option the kernel cannot do PCI peer-to-peer DMA, so every transfer takes hipFile's fallback. \
                 The option cannot be switched on at run time or by a boot parameter: another kernel must be booted."
            }
            Verdict::Blocked => &self.blocked_because(),
            Verdict::Unknown if self.judgement.reason == Reason::ReleaseUnknown => {
                "No kernel runs in this root, as in an image or on a mounted disk. The kernel of the machine that reads it is \
                 not taken in its place."
            }
            Verdict::Unknown => {
                "Nothing sound could be read for this kernel. That is not a no: it may have the option."
            }
        };
        let hint = match self.judgement.verdict {
            Verdict::Supported => None,
            Verdict::Unknown => Some(self.witness_hint()),
            Verdict::Unsupported | Verdict::Blocked if self.better().is_some() => None,
            Verdict::Unsupported | Verdict::Blocked => remedy.or_else(|| Some(self.no_remedy())),
        };
        let evidence = match (self.deciding(), &self.facts.kernel.running_source) {
            (Some(witness), _) => vec![witness.evidence()],
            (None, Some(source)) if self.is_asked_running() => vec![source.clone()],
            _ => Vec::new(),
        };
        Finding { evidence, ..new(finding::OPTION, status, summary, explanation, hint) }
    }

    /// What the blocking advisories say, and what that means.
    fn blocked_because(&self) -> String {
        let advisories =
            self.judgement.advisories.iter().map(|&index| &self.knowledge.advisories[index]);
        let blocking = advisories.filter(|advisory| advisory.effect_on_release() == Effect::Block);
        let summaries: Vec<&str> = blocking.map(|advisory| advisory.summary.as_str()).collect();
        format!(
            "Advisory: {}. The fastpath would run on this kernel, and is not to be used there. No setting at run time \
             changes that: another kernel must be booted.",
            summaries.join("; ")
        )
    }

    /// Whether the host was read from a snapshot that was made for other kernels.
    fn is_not_recorded(&self) -> bool {
        self.facts.kernel.witnesses.iter().any(|witness| witness.not_recorded)
    }

    /// Remedies of the data for this kernel on this system. When a kernel that will do is installed already, nothing
    /// needs to be installed, and only advice of other kinds remains.
    fn remedies(&self) -> Vec<Hint> {
        let Some(release) = self.release() else { return Vec::new() };
        let verdict = self.judgement.verdict;
        let installable = self.better().is_none();
        let mut remedies: Vec<_> = self
            .knowledge
            .remedies_for(release, verdict.as_str(), &self.os().id, &self.os().version)
            .filter(|remedy| installable || remedy.kind == RemedyKind::Fallback)
            // In a container the system is the image's: it says nothing about the host whose kernel this is.
            .filter(|remedy| !self.facts.environment.container || remedy.when.os.is_empty())
            .collect();
        // Staying slow is the last resort, after a site's own remedies too.
        remedies.sort_by_key(|remedy| remedy.kind == RemedyKind::Fallback);
        remedies.into_iter().map(|remedy| Hint::from_remedy(remedy, self.knowledge)).collect()
    }

    fn no_remedy(&self) -> Hint {
        let other_build = self
            .judgement
            .conflicts
            .iter()
            .map(|&index| &self.facts.kernel.witnesses[index])
            .find(|witness| matches!(witness.kind, Kind::BootConfig | Kind::ModulesConfig));
        if let Some(described) = other_build.filter(|witness| witness.state == State::Y) {
            let text = format!(
                "boot the kernel that {} belongs to: it has the option; the one that runs was built otherwise under the \
                 same release",
                described.path
            );
            return Hint::new(hints::OTHER_BUILD, text, Vec::new());
        }
        let family = self.release().and_then(|release| self.knowledge.family(release));
        let built_by = family.map_or("someone for themselves", |family| family.name.as_str());
        let system = if self.os().name.is_empty() { "unknown" } else { &self.os().name };
        if self.facts.environment.container {
            let text = "ask on the host: this is a container, and its files do not tell which system the host is";
            return Hint::new(hints::NO_REMEDY, text, vec!["fastpath check".to_owned()]);
        }
        let text = "no remedy is known for this kernel on this system";
        let detail = format!("Kernel built by {built_by}. System: {system}.");
        Hint { detail: Some(detail), ..Hint::new(hints::NO_REMEDY, text, Vec::new()) }
    }

    /// How to give a witness when there is none.
    fn witness_hint(&self) -> Hint {
        if self.judgement.reason == Reason::ReleaseUnknown {
            let text = "name the kernel, one of those installed or another one";
            let release =
                self.installed.first().map_or("RELEASE", |one| one.kernel.release.as_str());
            return Hint::new(
                hints::GIVE_RELEASE,
                text,
                vec![format!("fastpath check --kernel {release}")],
            );
        }
        if self.facts.kernel.witnesses.iter().any(|witness| witness.permission) {
            let text = "run as root: a file that may tell could not be read";
            return Hint::as_root(text);
        }
        if self.facts.environment.container {
            let text = "run on the host, or mount the host's /boot or /lib/modules read-only into the container";
            let command =
                "docker run --volume /boot:/boot:ro --volume /lib/modules:/lib/modules:ro ...";
            return Hint::new(hints::MOUNT, text, vec![command.to_owned()]);
        }
        let text = "give a configuration of this kernel as a file, or read another root";
        let commands = [
            "sudo modprobe configs && fastpath check",
            "fastpath inspect FILE",
            "fastpath check --root DIR",
        ];
        Hint::new(hints::GIVE_WITNESS, text, commands.map(str::to_owned).to_vec())
    }

    fn advisories(&self) -> Vec<Finding> {
        let advisories =
            self.judgement.advisories.iter().map(|&index| &self.knowledge.advisories[index]);
        let relevant = advisories.filter(|_| self.judgement.verdict != Verdict::Unsupported);
        relevant
            .map(|advisory| {
                let status = match advisory.effect_on_release() {
                    Effect::Block => Status::Block,
                    Effect::Warn => Status::Warn,
                };
                let explanation = if advisory.needs.is_empty() {
                    format!("Lifted by: {}", advisory.lifted_by)
                } else {
                    let groups: Vec<_> =
                        advisory.needs.iommu_group_type.iter().map(|kind| kind.as_str()).collect();
                    let maps: Vec<_> = advisory.needs.map_type.iter().map(|kind| kind.as_str()).collect();
                    format!(
                        "It bites only on a path whose IOMMU group type is {} and whose map type is {}. The type stands \
                         in /sys/kernel/iommu_groups/*/type; pass-through (iommu=pt) avoids it. Lifted by: {}",
                        groups.join(" or "),
                        maps.join(" or "),
                        advisory.lifted_by
                    )
                };
                let evidence = self.facts.kernel.running_source.iter().filter(|_| self.is_asked_running());
                Finding {
                    evidence: evidence.cloned().collect(),
                    ..new(&advisory.id, status, advisory.summary.clone(), explanation, None)
                }
            })
            .collect()
    }

    /// An installed kernel that would do, when the one asked about does not: the one that boots next if it is one,
    /// else the newest without a warning, else the newest.
    fn better(&self) -> Option<&InstalledVerdict<'a>> {
        if matches!(self.judgement.verdict, Verdict::Supported) || self.release().is_none() {
            return None;
        }
        let good =
            || self.installed.iter().filter(|one| one.judgement.verdict == Verdict::Supported);
        let quiet = |one: &&InstalledVerdict<'_>| one.judgement.advisories.is_empty();
        let next = good().find(|one| one.next_boot == Some(true));
        next.or_else(|| good().find(quiet)).or_else(|| good().next())
    }

    fn better_installed(&self) -> Option<Finding> {
        let better = self.better()?;
        let release = &better.kernel.release;
        if better.running {
            let summary = format!("{release}, which runs, has the option");
            let explanation =
                "The kernel asked about is not the one that runs; the one that runs will do.";
            return Some(Finding {
                evidence: better.source.iter().cloned().collect(),
                ..new(finding::BETTER_INSTALLED, Status::Info, summary, explanation, None)
            });
        }
        let loader =
            self.facts.kernel.next_boot.loader.map_or("", fastpath_host::boot::Loader::as_str);
        let (text, commands) = if better.next_boot == Some(true) {
            (
                format!("reboot: {release} boots next ({})", self.facts.kernel.next_boot.why),
                vec!["sudo reboot".to_owned()],
            )
        } else {
            match self.knowledge.reboot_commands(&self.os().id, loader, release) {
                Some(commands) => (format!("reboot into {release}"), commands),
                None => (
                    format!("reboot, and choose {release} in the boot menu"),
                    vec!["sudo reboot".to_owned()],
                ),
            }
        };
        let hint = Hint {
            kernel: Some(HintKernel::new(release, None, self.knowledge)),
            ..Hint::new(hints::REBOOT, text, commands)
        };
        let summary = format!("{release} is installed, has the option, and does not run");
        let explanation = "A kernel that will do is on the machine: nothing needs to be installed.";
        let status = Status::Warn;
        Some(Finding {
            evidence: better.source.iter().cloned().collect(),
            ..new(finding::BETTER_INSTALLED, status, summary, explanation, Some(hint))
        })
    }

    /// What the next boot brings, if that matters.
    fn next_boot(&self) -> Option<Finding> {
        if !self.is_asked_running() {
            return None;
        }
        let next_boot: &NextBoot = &self.facts.kernel.next_boot;
        let Some(next) = self.installed.iter().find(|one| one.next_boot == Some(true)) else {
            let verdict = self.judgement.verdict;
            let differs = self.installed.iter().any(|one| one.judgement.verdict != verdict);
            if !differs || next_boot.release.is_some() {
                return None;
            }
            let summary = format!("which kernel boots next cannot be told: {}", next_boot.why);
            let explanation = "The installed kernels do not all have the same verdict.";
            let hint = next_boot.permission.then(|| {
                let text = "run as root: the boot loader's files could not be read";
                Hint::as_root(text)
            });
            return Some(new(finding::NEXT_BOOT_UNKNOWN, Status::Info, summary, explanation, hint));
        };
        let release = &next.kernel.release;
        let blocked = next.judgement.verdict == Verdict::Blocked;
        let worse = self.judgement.verdict == Verdict::Supported
            && next.judgement.verdict != Verdict::Supported;
        if next.running || !(blocked || worse) {
            return None;
        }
        let (id, summary) = if blocked {
            (
                finding::NEXT_BOOT_BLOCKED,
                format!("the kernel that boots next, {release}, is blocked"),
            )
        } else {
            let verdict = next.judgement.verdict;
            (
                finding::NEXT_BOOT_WORSE,
                format!("the kernel that boots next, {release}, is {verdict}"),
            )
        };
        let hint = self.release().filter(|_| worse).map(|running| {
            let loader = next_boot.loader.map_or("", fastpath_host::boot::Loader::as_str);
            let commands = self.knowledge.reboot_commands(&self.os().id, loader, running);
            let text =
                format!("before the next reboot, choose the running kernel, {running}, again");
            let mut commands = commands.unwrap_or_default();
            commands.retain(|command| command != "sudo reboot");
            let once = commands.iter().any(|command| command.contains("grub-reboot"));
            let detail = once.then(|| {
                "grub-reboot holds for one boot; for good, set GRUB_DEFAULT in /etc/default/grub and run update-grub."
                    .to_owned()
            });
            Hint { detail, ..Hint::new(hints::KEEP, text, commands) }
        });
        let explanation =
            format!("The verdict above holds until the next reboot. Source: {}.", next_boot.why);
        Some(Finding {
            evidence: next_boot.evidence.iter().cloned().collect(),
            ..new(id, Status::Warn, summary, explanation, hint)
        })
    }

    fn unlisted(&self) -> Option<Finding> {
        let unlisted = &self.facts.kernel.unlisted;
        let places: Vec<String> =
            unlisted.iter().map(|(path, why)| format!("{path}, {why}")).collect();
        if places.is_empty() {
            return None;
        }
        let summary = format!("not every installed kernel may be listed: {}", places.join("; "));
        let explanation = "A better kernel may be installed without being seen.";
        let text = "run as root to see every installed kernel";
        let hint = Hint::as_root(text);
        Some(new(finding::UNLISTED, Status::Info, summary, explanation, Some(hint)))
    }

    fn conflicts(&self) -> Option<Finding> {
        let deciding = self.deciding()?;
        let witnesses = &self.facts.kernel.witnesses;
        let others: Vec<_> =
            self.judgement.conflicts.iter().map(|&index| &witnesses[index]).collect();
        let first = others.first()?;
        let summary = format!(
            "{} says {}, {} says {}: the first one decides",
            deciding.path,
            deciding.state.as_str(),
            first.path,
            first.state.as_str()
        );
        let explanation = "A lower-ranked source disagrees. It may be left over from another build, or belong to a kernel \
                           with the same release string.";
        Some(Finding {
            evidence: others.iter().map(|witness| witness.evidence()).collect(),
            ..new(finding::CONFLICT, Status::Warn, summary, explanation, None)
        })
    }

    fn duplicate(&self) -> Option<Finding> {
        let witness = self.deciding().filter(|witness| witness.lines > 1)?;
        let differs = if witness.differs { ", with different values" } else { "" };
        let status = if witness.differs { Status::Warn } else { Status::Info };
        let summary = format!(
            "{} sets the option in {} lines{differs}: the last one counts",
            witness.path, witness.lines
        );
        let explanation = "kconfig takes the last line. It never writes an option twice, so the file was edited or joined.";
        Some(Finding {
            evidence: vec![witness.evidence()],
            ..new(finding::DUPLICATE, status, summary, explanation, None)
        })
    }

    /// Witnesses that exist and are not sound.
    fn unsound(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for witness in &self.facts.kernel.witnesses {
            let (id, status, explanation) = match witness.state {
                State::Unreadable => (
                    finding::UNREADABLE,
                    Status::Warn,
                    "A file that may say something about this kernel could not be read.",
                ),
                // Symbols that tell nothing are the rule in containers.
                State::Empty if witness.kind == Kind::Kallsyms => continue,
                State::Empty | State::Truncated | State::Malformed => (
                    finding::DAMAGED,
                    Status::Warn,
                    "A damaged source decides nothing, not even a no.",
                ),
                State::OtherKernel => (
                    finding::OTHER_KERNEL,
                    Status::Info,
                    "Its header names another version, so it says nothing about this kernel.",
                ),
                _ => continue,
            };
            let detail =
                witness.detail.as_ref().map(|detail| format!(", {detail}")).unwrap_or_default();
            let summary = format!("{}: {}{detail}", witness.path, witness.state.as_str());
            let hint =
                (witness.permission && self.judgement.verdict != Verdict::Unknown).then(|| {
                    let text = "run as root to read it";
                    Hint::as_root(text)
                });
            findings.push(Finding {
                evidence: vec![witness.evidence()],
                ..new(id, status, summary, explanation, hint)
            });
        }
        findings
    }

    fn hsa_amd_p2p(&self) -> Option<Finding> {
        let witness = self.deciding().filter(|witness| witness.state == State::Y)?;
        let value = witness.companion(Symbol::HsaAmdP2p)?;
        if !matches!(value, Value::NotSet | Value::Absent | Value::N) {
            return None;
        }
        let summary = format!("CONFIG_HSA_AMD_P2P is {value}, which does not matter for hipFile");
        let explanation = "That option is for traffic between GPUs. hipFile's path between a drive and a GPU only needs \
                           CONFIG_PCI_P2PDMA.";
        Some(new(finding::HSA_AMD_P2P, Status::Info, summary, explanation, None))
    }

    fn environment(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let environment: Environment = self.facts.environment;
        if environment.container {
            let summary =
                "this is a container: the kernel is the host's, the files are the image's";
            let explanation = "What must change, changes on the host. Kernel packages installed in the container do nothing.";
            findings.push(new(finding::CONTAINER, Status::Info, summary, explanation, None));
        }
        if environment.wsl2 {
            let summary = "this is WSL2: it has no KFD, so the fastpath is out of reach whatever the kernel says";
            let explanation = "Under WSL2 the GPU is reached through Windows. The amdgpu kernel driver, which hipFile's \
                               fastpath needs, does not run there.";
            let status = if self.no_driver { Status::Fail } else { Status::Warn };
            findings.push(new(finding::WSL2, status, summary, explanation, None));
        }
        findings
    }
}

fn new(
    id: &str,
    status: Status,
    summary: impl Into<String>,
    explanation: impl Into<String>,
    hint: Option<Hint>,
) -> Finding {
    Finding::new(id, Layer::Kernel, status, summary, explanation, hint)
}
