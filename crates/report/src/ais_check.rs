//! What AMD's `ais-check` prints about a host, so that scripts which call it keep working, and where its answer and ours differ.
//!
//! Its answers are made by its own rules, which look at less than a check does: any GPU, any library, any volume will do.

use std::fmt::Write as _;

use fastpath_host::runtime::{Image, Library, RuntimeFacts, exports};
use fastpath_host::volume::{DeviceKind, DmRole, Mount, SourceKind, VolumeFacts};
use fastpath_host::{Facts, State, Witness};
use fastpath_knowledge::Knowledge;
use fastpath_verdict::driver::DriverVerdict;
use fastpath_verdict::runtime::RuntimeVerdict;
use fastpath_verdict::volume::VolumesVerdict;
use fastpath_verdict::{Layer, Reason, Verdict};

use crate::style::clean;

/// The machine in the first line, as `uname` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AisSystem {
    /// `Linux`.
    pub sysname: String,
    /// The host's name.
    pub nodename: String,
    /// The kernel's release.
    pub release: String,
    /// Its version.
    pub version: String,
    /// The machine, `x86_64`.
    pub machine: String,
}

/// Our own verdicts, which the answer is compared with.
#[derive(Clone, Copy, Debug)]
pub struct AisVerdicts<'a> {
    /// The overall one, and the layer that decides it.
    pub overall: (Verdict, Layer),
    /// The kernel's, and why.
    pub kernel: (Verdict, Reason),
    /// The driver layer.
    pub driver: Option<&'a DriverVerdict>,
    /// The runtime layer.
    pub runtime: Option<&'a RuntimeVerdict>,
    /// The volume layer.
    pub volumes: Option<&'a VolumesVerdict>,
}

/// The answer of `ais-check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AisCheck {
    /// The first line.
    pub system: AisSystem,
    /// Libraries that could be looked into, and whether they have AIS.
    pub libraries: Vec<(String, bool)>,
    /// The table of volumes, by its rules.
    pub volumes: Vec<AisVolume>,
    /// Whether each of them is printed as capable: ours where there is an answer, else its.
    pub capable: Vec<Option<bool>>,
    /// The four answers by its rules, in the order they are printed in.
    pub components: [bool; 4],
    /// The four answers that are printed: ours where there is one, else its.
    pub answers: [bool; 4],
    /// Virtual functions, with their names.
    pub virtual_gpus: Vec<(String, String)>,
}

/// One row of the table of volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AisVolume {
    /// Where it is mounted.
    pub mount: String,
    /// The type, of an ext4 with the journal mode that its mount options say.
    pub fstype: String,
    /// The device.
    pub device: String,
    /// What it stands on; `None` if that could not be read.
    pub backing: Option<String>,
    /// Whether a file there can be opened for direct I/O; `None` if that was not tried.
    pub direct_io: Option<bool>,
    /// Whether hipFile can use it.
    pub capable: Option<bool>,
}

/// The names of the four answers.
const COMPONENTS: [&str; 4] =
    ["Kernel P2PDMA support", "HIP runtime", "amdgpu", "hipFile-capable volume"];

impl AisCheck {
    /// What `ais-check` would say of a host. `direct_io` tells whether a file at a mount point can be opened for direct I/O, if
    /// that is known: `ais-check` tries by making one, this program makes none.
    pub fn new(
        system: AisSystem,
        facts: &Facts,
        verdicts: &AisVerdicts<'_>,
        knowledge: &Knowledge,
        direct_io: impl Fn(&str) -> Option<bool>,
    ) -> Self {
        let libraries = facts.runtime.as_ref().map(libraries).unwrap_or_default();
        let volumes = facts
            .volume
            .as_ref()
            .zip(verdicts.volumes)
            .map(|(facts, verdicts)| volumes(facts, verdicts, direct_io))
            .unwrap_or_default();
        let symbols = facts.driver.as_ref().and_then(|driver| driver.symbols.as_ref());
        let components = [
            p2pdma(facts, knowledge),
            libraries.iter().any(|(_, ais)| *ais),
            symbols.is_some_and(|symbols| symbols.ais.is_some()),
            volumes.iter().any(|volume| volume.capable == Some(true)),
        ];
        let virtual_gpus = virtual_gpus(facts, verdicts, knowledge);
        let capable: Vec<Option<bool>> = volumes
            .iter()
            .map(|row| {
                let ours = verdicts.volumes?.volumes.iter().find(|one| one.mount == row.mount)?;
                decided(ours.verdict)
            })
            .zip(&volumes)
            .map(|(ours, row)| ours.or(row.capable))
            .collect();
        let ours = [
            decided(verdicts.kernel.0),
            verdicts.runtime.and_then(|runtime| decided(runtime.verdict)),
            verdicts.driver.and_then(|driver| decided(driver.verdict)),
            (!capable.is_empty()).then(|| capable.contains(&Some(true))),
        ];
        let answers = std::array::from_fn(|index| ours[index].unwrap_or(components[index]));
        Self { system, libraries, volumes, capable, components, answers, virtual_gpus }
    }

    /// Standard output, `verbose` with the libraries. With `--quiet` it is not printed.
    pub fn text(&self, verbose: bool) -> String {
        let mut out = String::new();
        let AisSystem { sysname, nodename, release, version, machine } = &self.system;
        let _ = writeln!(out, "\n{sysname} {nodename} {release} {version} {machine}");
        if verbose {
            out.push_str("\nFound these HIP libraries (some may refer to the same library):\n");
            for (path, ais) in &self.libraries {
                let word = if *ais { "AIS supported" } else { "AIS NOT supported" };
                let _ = writeln!(out, "\t{} ({word})", clean(path));
            }
        }
        out.push_str("\nMounted volumes:\n");
        if self.volumes.is_empty() {
            out.push_str("No block-backed volumes found.\n");
        } else {
            out.push_str(&self.table());
        }
        out.push_str("\nAIS support in:\n");
        for (name, answer) in COMPONENTS.iter().zip(self.answers) {
            let answer = if answer { "True" } else { "False" };
            let _ = writeln!(out, "\t{name:<24}: {answer}");
        }
        out
    }

    fn table(&self) -> String {
        let mut rows = vec![
            ["MOUNTPOINT", "FSTYPE", "DEVICE", "BACKING", "O_DIRECT", "HIPFILE"].map(str::to_owned),
        ];
        let word = |answer: Option<bool>| match answer {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => "unverified".to_owned(),
        };
        rows.extend(self.volumes.iter().zip(&self.capable).map(|(volume, capable)| {
            [
                clean(&volume.mount),
                clean(&volume.fstype),
                clean(&volume.device),
                clean(volume.backing.as_deref().unwrap_or("?")),
                word(volume.direct_io),
                word(*capable),
            ]
        }));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or_default());
        let mut out = String::new();
        for row in &rows {
            let cells: Vec<String> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            out.push_str(&cells.join("  "));
            out.push('\n');
        }
        out
    }

    /// What goes to standard error, also with `--quiet`: a warning of virtual functions.
    pub fn warning(&self) -> Option<String> {
        let gpus: Vec<String> =
            self.virtual_gpus.iter().map(|(gpu, name)| format!("{gpu} ({name})")).collect();
        (!gpus.is_empty()).then(|| {
            format!("WARNING: SR-IOV virtual function GPU(s) detected: {}", gpus.join(", "))
        })
    }

    /// The exit code. `ais-check` says 0 if its four answers are true; here the overall verdict must be `supported` as well, for
    /// a script that goes on after 0 relies on the fastpath.
    pub fn exit_code(&self, overall: Verdict) -> u8 {
        let all = self.answers.iter().all(|answer| *answer);
        u8::from(!all || overall != Verdict::Supported)
    }

    /// Where our answer is another one, a line for each.
    pub fn differences(&self, facts: &Facts, verdicts: &AisVerdicts<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        let [p2pdma, _, amdgpu, _] = self.components;
        let answer = |answer: bool| if answer { "True" } else { "False" };
        let mut differ = |index: usize, ours: Verdict, reason: Reason| {
            let theirs = self.components[index];
            if theirs != (ours == Verdict::Supported) {
                let (name, reason) = (COMPONENTS[index], reason.as_str());
                lines.push(format!(
                    "{name}: AMD's tool says {}, fastpath {ours} ({reason})",
                    answer(theirs)
                ));
            }
        };
        differ(0, verdicts.kernel.0, verdicts.kernel.1);
        if let Some(judged) = verdicts.runtime {
            differ(1, judged.verdict, judged.reason);
        }
        if let Some(judged) = verdicts.driver {
            differ(2, judged.verdict, judged.reason);
            // It does not look at each GPU.
            let bad = judged.gpus.iter().filter(|one| one.verdict != Verdict::Supported);
            for one in bad.filter(|_| amdgpu && judged.verdict == Verdict::Supported) {
                let (gpu, verdict, reason) = (&one.gpu, one.verdict, one.reason.as_str());
                lines.push(format!(
                    "amdgpu: AMD's tool says True, fastpath {verdict} for {gpu} ({reason})"
                ));
            }
        }
        if let Some(build) = other_kernel(facts).filter(|_| p2pdma) {
            lines.push(format!(
                "Kernel P2PDMA support: AMD's tool may have taken build {build} of amdgpu-dkms, which is for another kernel"
            ));
        }
        if let Some(judged) = verdicts.volumes {
            for row in &self.volumes {
                let ours = judged.volumes.iter().find(|one| one.mount == row.mount);
                let Some(ours) = ours else { continue };
                let same = match row.capable {
                    Some(capable) => capable == (ours.verdict == Verdict::Supported),
                    None => ours.verdict == Verdict::Unknown,
                };
                if !same {
                    let theirs = match row.capable {
                        Some(true) => "yes",
                        Some(false) => "no",
                        None => "unverified",
                    };
                    let (mount, verdict) = (clean(&row.mount), ours.verdict);
                    let reason = ours.reason.as_str();
                    lines.push(format!(
                        "volume {mount}: AMD's tool says {theirs}, fastpath {verdict} ({reason})"
                    ));
                }
            }
        }
        let (overall, layer) = verdicts.overall;
        let all = self.components.iter().all(|answer| *answer);
        if all && overall != Verdict::Supported {
            let layer = layer.as_str();
            lines.push(format!(
                "AMD's tool says True four times, fastpath {overall}: the {layer} layer decides"
            ));
        }
        lines
    }
}

/// Whether a verdict is a yes or a no.
const fn decided(verdict: Verdict) -> Option<bool> {
    match verdict {
        Verdict::Supported => Some(true),
        Verdict::Unsupported | Verdict::Blocked => Some(false),
        Verdict::Unknown => None,
    }
}

/// The build that `ais-check` takes: that for the running kernel, else the highest of any.
fn build(facts: &Facts) -> Option<u64> {
    let builds = &facts.driver.as_ref()?.builds;
    let running = builds.iter().find(|build| build.running);
    match running {
        Some(build) => build.number,
        None => other_kernel(facts),
    }
}

/// The highest build for another kernel, if there is none for the running one.
fn other_kernel(facts: &Facts) -> Option<u64> {
    let builds = &facts.driver.as_ref()?.builds;
    if builds.iter().any(|build| build.running) {
        return None;
    }
    builds.iter().filter_map(|build| build.number).max()
}

/// Whether any GPU has the bit, if the build of the driver gives it that meaning; else whether a configuration says `=y`.
fn p2pdma(facts: &Facts, knowledge: &Knowledge) -> bool {
    let build = build(facts).filter(|build| knowledge.capability_says(*build, 0).is_some());
    if let Some((build, driver)) = build.zip(facts.driver.as_ref()) {
        let gpus = driver.nodes.iter().filter(|node| node.is_gpu());
        let mut says = gpus.filter_map(|node| knowledge.capability_says(build, node.capability?));
        return says.any(|ready| ready);
    }
    let Some(release) = &facts.kernel.running else { return false };
    let places = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/build/.config"),
        "/proc/config.gz".to_owned(),
    ];
    let is_place = |witness: &Witness| {
        places.contains(&witness.path) || witness.also.iter().any(|path| places.contains(path))
    };
    let mut witnesses = facts.kernel.witnesses.iter();
    witnesses.any(|witness| witness.state == State::Y && is_place(witness))
}

fn libraries(facts: &RuntimeFacts) -> Vec<(String, bool)> {
    let has = |library: &Library, name| library.image.has(name) == Some(true);
    let loadable = |library: &&Library| matches!(library.image, Image::Library { .. });
    let answer = |library: &Library| {
        let ais = has(library, exports::AIS_READ) && has(library, exports::AIS_WRITE);
        (library.file.clone(), ais)
    };
    facts.libraries.iter().filter(loadable).map(answer).collect()
}

fn virtual_gpus(
    facts: &Facts,
    verdicts: &AisVerdicts<'_>,
    knowledge: &Knowledge,
) -> Vec<(String, String)> {
    let gpus = verdicts.driver.map(|driver| driver.gpus.as_slice()).unwrap_or_default();
    let virtual_ones = gpus.iter().filter(|one| one.reason == Reason::GpuVirtualFunction);
    let name = |gpu| {
        let function = facts.pci.as_ref()?.function(gpu)?;
        knowledge.virtual_gpu(*function.device.value()?)
    };
    virtual_ones
        .map(|one| (one.gpu.to_string(), name(&one.gpu).unwrap_or("unknown").to_owned()))
        .collect()
}

/// The rows: mounts of devices, in the order of the mount table.
fn volumes(
    facts: &VolumeFacts,
    verdicts: &VolumesVerdict,
    direct_io: impl Fn(&str) -> Option<bool>,
) -> Vec<AisVolume> {
    let mut rows = Vec::new();
    for judged in &verdicts.volumes {
        let Some(mount) = facts.mounts.get(judged.index) else { continue };
        if mount.source_kind != SourceKind::Device || mount.fstype == "overlay" {
            continue;
        }
        let mode = (mount.fstype == "ext4").then(|| mount.data.as_deref().unwrap_or("ordered"));
        let fstype = match mode {
            Some(mode) => format!("ext4 ({mode})"),
            None => mount.fstype.clone(),
        };
        let file_system = mount.fstype == "xfs" || mode == Some("ordered");
        let backing = Some(judged.backing.clone()).filter(|backing| backing != "?");
        let backing_will_do = match backing.as_deref() {
            Some("lvm") => lvm_over_nvme(facts, mount),
            Some(backing) => Some(backing == "nvme"),
            None => None,
        };
        let direct_io = file_system.then(|| direct_io(&mount.mount_point)).flatten();
        let capable = match (file_system, backing_will_do) {
            (false, _) | (_, Some(false)) => Some(false),
            (true, None) => None,
            (true, Some(true)) => direct_io,
        };
        rows.push(AisVolume {
            mount: mount.mount_point.clone(),
            fstype,
            device: judged.device.clone().unwrap_or_else(|| "?".to_owned()),
            backing,
            direct_io,
            capable,
        });
    }
    rows
}

/// Whether every device below a logical volume is one or has the name of an NVMe drive; `None` if that could not be followed.
fn lvm_over_nvme(facts: &VolumeFacts, mount: &Mount) -> Option<bool> {
    let mut todo = vec![mount.block?];
    let mut seen = vec![false; facts.devices.len()];
    while let Some(index) = todo.pop() {
        let device = facts.devices.get(index)?;
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        match &device.kind {
            DeviceKind::Partition | DeviceKind::Dm { role: DmRole::Lvm | DmRole::Part } => {
                if device.below.is_empty() {
                    return None;
                }
                todo.extend(&device.below);
            }
            DeviceKind::Unknown => return None,
            _ if device.name.starts_with("nvme") => {}
            _ => return Some(false),
        }
    }
    Some(true)
}
