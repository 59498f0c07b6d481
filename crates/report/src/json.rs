//! The JSON contracts. Fields may be added, never changed; the schemas are generated from these types and checked in.

use fastpath_host::pci::Address;
use fastpath_host::process::OpenFile;
use fastpath_host::volume::Mount;
use fastpath_host::{Evidence, Witness};
use fastpath_knowledge::Effect;
use fastpath_verdict::driver::{DriverVerdict, GpuVerdict};
use fastpath_verdict::path::PathVerdict;
use fastpath_verdict::process::ProcessVerdict;
use fastpath_verdict::runtime::{LibraryVerdict, RuntimeVerdict};
use fastpath_verdict::volume::{FileVerdict, VolumeVerdict};
use fastpath_verdict::{Check, Finding, Hint, Layer, MatrixRow, Route};
use schemars::JsonSchema;
use serde::Serialize;

/// `fastpath check --format json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckReport {
    /// `fastpath.check/1`.
    pub schema: String,
    /// `supported`, `unsupported`, `blocked` or `unknown`: the worst of the judged layers.
    pub verdict: String,
    /// The kernel layer; left out if it was not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelLayer>,
    /// The driver layer; left out if it was not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverLayer>,
    /// The runtime layer; left out if it was not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeLayer>,
    /// Every GPU with every NVMe drive; left out if paths were not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathReport>>,
    /// Mounted file systems; left out if volumes were not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<VolumeReport>>,
    /// The process that was asked about; left out if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessReport>,
    /// The best route from a GPU to a volume; left out if no part of it was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteReport>,
    /// What was checked, and what a person should know.
    pub findings: Vec<FindingReport>,
}

/// The driver layer of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DriverLayer {
    /// The best GPU's verdict.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
    /// The build number of AMD's driver that is loaded; null if that cannot be told.
    pub build: Option<u64>,
    /// Each GPU.
    pub gpus: Vec<GpuReport>,
}

/// One GPU.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GpuReport {
    /// Its PCI address.
    pub gpu: String,
    /// Whether the driver does direct storage with it.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
}

/// The runtime layer of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuntimeLayer {
    /// That of the library a program gets.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
    /// Every HIP runtime that was found, in the order a program finds them.
    pub libraries: Vec<LibraryReport>,
}

/// One HIP runtime.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LibraryReport {
    /// Where it is.
    pub path: String,
    /// The version in its name.
    pub version: Option<String>,
    /// Whether it is the one that a program gets that names no path of its own.
    pub first: bool,
    /// Whether it has what the fastpath is called by.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
}

/// One GPU, one NVMe drive, and the way between them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PathReport {
    /// The GPU's PCI address.
    pub gpu: String,
    /// The drive's PCI address.
    pub nvme: String,
    /// Whether the kernel lets peer traffic through.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
    /// Steps over bridges; null if that cannot be told.
    pub distance: Option<u32>,
    /// `bus-address`, `through-host-bridge` or `not-supported`; null if that cannot be told.
    pub map_type: Option<String>,
    /// Ports and bridges that are in the way.
    pub blockers: Vec<String>,
    /// Advisories whose conditions are all proven for this path.
    pub advisories: Vec<String>,
}

/// One mounted file system.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VolumeReport {
    /// Its mount point.
    pub mount: String,
    /// Its type.
    pub fstype: String,
    /// What is mounted; null for what names a server.
    pub device: Option<String>,
    /// What is below it: `nvme`, `lvm`, `md` and so on.
    pub backing: String,
    /// NVMe drives below it, by PCI address.
    pub drives: Vec<String>,
    /// Whether hipFile takes the fastpath there.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
    /// Whether that rests on something that was not read, such as the driver's build.
    pub assumed: bool,
    /// Whether a file on it could be opened for direct I/O; null if that was not tried (`--probe`).
    pub direct_io: Option<bool>,
}

/// A running process.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProcessReport {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel keeps it.
    pub name: Option<String>,
    /// Whether its own settings allow the fastpath.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
    /// Copies of the HIP runtime it has loaded.
    pub hip: Vec<String>,
    /// Copies of hipFile's library it has loaded.
    pub hipfile: Vec<String>,
    /// Those of its environment variables that matter, as they were when it started.
    pub variables: std::collections::BTreeMap<String, String>,
    /// Whether it has mounts of its own; null if that cannot be told.
    pub other_mounts: Option<bool>,
    /// Its open files.
    pub files: Vec<OpenFileReport>,
}

/// A file that a process has open.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OpenFileReport {
    /// The descriptor's number.
    pub fd: u32,
    /// Its path, as the process sees it.
    pub path: String,
    /// Whether it is open with `O_DIRECT`; null if that cannot be told.
    pub direct: Option<bool>,
    /// Whether hipFile takes the fastpath for it.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
}

/// A route from a GPU to a volume.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RouteReport {
    /// The GPU's PCI address.
    pub gpu: Option<String>,
    /// The volume's mount point.
    pub mount: Option<String>,
    /// The drives below the volume.
    pub drives: Vec<String>,
    /// Its verdict.
    pub verdict: String,
    /// The layer that decides: `driver`, `path` or `volume`.
    pub layer: String,
    /// Why, in one word.
    pub reason: String,
}

/// The kernel layer of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KernelLayer {
    /// The kernel asked about, as `uname -r` prints it.
    pub release: Option<String>,
    /// Its verdict.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
    /// The option's value: `y`, `m`, `n`, `not set` or `absent`; null if nothing sound was read.
    pub value: Option<String>,
    /// The deciding witness.
    pub source: Option<SourceReport>,
    /// Every witness that exists, highest rank first.
    pub witnesses: Vec<WitnessReport>,
    /// Paths of sound witnesses that disagree with the deciding one.
    pub conflicts: Vec<String>,
    /// Advisories that mark the release.
    pub advisories: Vec<AdvisoryReport>,
    /// Whether a row of the matrix was made with exactly this release.
    pub tested: bool,
    /// Kernels with an image on the host, newest first.
    pub installed: Vec<InstalledReport>,
    /// The release that runs; null if the root does not tell.
    pub running: Option<String>,
    /// Why the option is absent, if that can be told.
    pub absent_because: Option<String>,
    /// Paths that were looked for and are not there.
    pub looked_for: Vec<String>,
}

/// A place in a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SourceReport {
    /// The file, as on the host, from `/`.
    pub path: String,
    /// 1-based line.
    pub line: Option<u32>,
}

/// One source that says something about the option.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WitnessReport {
    /// The file, as on the host, from `/`.
    pub path: String,
    /// What kind of place it is.
    pub kind: String,
    /// An option value, or `unreadable`, `empty`, `truncated`, `malformed`, `other-kernel`.
    pub value: String,
    /// 1-based line of the option.
    pub line: Option<u32>,
    /// Whether this one decides.
    pub decides: bool,
    /// That line as it stands there.
    pub text: Option<String>,
    /// What is wrong with it, or how an absence was seen.
    pub detail: Option<String>,
    /// Other names of the same file.
    pub also: Vec<String>,
}

/// An advisory that marks a kernel.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AdvisoryReport {
    /// Its id.
    pub id: String,
    /// `block` or `warn`: what it does to this kernel by its release alone.
    pub effect: String,
    /// One line.
    pub summary: String,
    /// Its source.
    pub url: Option<String>,
    /// What must hold too for the danger to be real; null if the release alone decides.
    pub needs: Option<NeedsReport>,
}

/// Conditions of an advisory on the path.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NeedsReport {
    /// `/sys/kernel/iommu_groups/<n>/type` is one of these.
    pub iommu_group_type: Vec<String>,
    /// The map type of the path is one of these.
    pub map_type: Vec<String>,
}

/// An installed kernel.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InstalledReport {
    /// Its release.
    pub release: String,
    /// Its verdict.
    pub verdict: String,
    /// Whether it runs.
    pub running: bool,
    /// Whether it boots next; null if that cannot be told.
    pub next_boot: Option<bool>,
}

/// One checked requirement, or one thing worth knowing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindingReport {
    /// Stable name, accepted by `fastpath explain`.
    pub id: String,
    /// `kernel`, `driver`, `runtime`, `path` or `volume`.
    pub layer: String,
    /// `pass`, `info`, `warn`, `unknown`, `fail` or `block`.
    pub status: String,
    /// One line.
    pub summary: String,
    /// Where it was seen.
    pub evidence: Vec<EvidenceReport>,
    /// Why it matters.
    pub explanation: String,
    /// What to do.
    pub hint: Option<HintReport>,
}

/// A line in a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EvidenceReport {
    /// The file, as on the host, from `/`.
    pub path: String,
    /// 1-based line.
    pub line: Option<u32>,
    /// The line as it stands there.
    pub text: Option<String>,
}

/// One thing to do.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HintReport {
    /// Stable name.
    pub id: String,
    /// What to do.
    pub text: String,
    /// More about it: a paragraph.
    pub detail: Option<String>,
    /// Commands ready to paste, in order.
    pub commands: Vec<String>,
    /// The kernel it leads to.
    pub kernel: Option<HintKernelReport>,
}

/// The kernel a hint leads to, judged in its turn.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HintKernelReport {
    /// The package to install; null if the kernel is installed already.
    pub package: Option<String>,
    /// Its release, or that of the build that was read.
    pub release: String,
    /// Advisories that mark it.
    pub advisories: Vec<HintAdvisoryReport>,
    /// Whether AMD's driver is known to build for it: `yes`, `no` or `not known`.
    pub amd_driver: String,
    /// How that is known.
    pub amd_driver_source: Option<String>,
}

/// An advisory that marks the kernel of a hint.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HintAdvisoryReport {
    /// Its id.
    pub id: String,
    /// `block` or `warn`.
    pub effect: String,
    /// One line.
    pub summary: String,
}

/// `fastpath kernels --format json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KernelsReport {
    /// `fastpath.kernels/1`.
    pub schema: String,
    /// The release that runs; null if the root does not tell.
    pub running: Option<String>,
    /// What boots next.
    pub next_boot: NextBootReport,
    /// Directories that may hold kernels and could not be listed.
    pub unlisted: Vec<String>,
    /// Kernels with an image on the host, newest first.
    pub kernels: Vec<KernelReport>,
}

/// What boots next.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NextBootReport {
    /// The release; null if it cannot be told.
    pub release: Option<String>,
    /// `grub` or `systemd-boot`; null if it cannot be told.
    pub loader: Option<String>,
    /// How it was found, or why it cannot be told.
    pub why: String,
    /// Where that stands.
    pub evidence: Option<EvidenceReport>,
}

/// One installed kernel in full.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KernelReport {
    /// Its release.
    pub release: String,
    /// Its verdict.
    pub verdict: String,
    /// Why, in one word.
    pub reason: String,
    /// The option's value; null if nothing sound was read.
    pub value: Option<String>,
    /// The deciding witness.
    pub source: Option<SourceReport>,
    /// Its image; null for the running kernel if that has none here.
    pub image: Option<String>,
    /// Whether it runs.
    pub running: bool,
    /// Whether it boots next; null if that cannot be told.
    pub next_boot: Option<bool>,
    /// Ids of advisories that mark it.
    pub advisories: Vec<String>,
}

/// One line of `fastpath inspect --format json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InspectReport {
    /// `fastpath.inspect/1`.
    pub schema: String,
    /// The input as it was named.
    pub input: String,
    /// The file inside the input; null if the input is the configuration itself.
    pub member: Option<String>,
    /// The kernel's release: from the file's name, else the header's version if it has a local part.
    pub release: Option<String>,
    /// The version in the header.
    pub header_version: Option<String>,
    /// The option's value, or what is wrong with the file.
    pub value: String,
    /// 1-based line of the option.
    pub line: Option<u32>,
    /// The verdict.
    pub verdict: String,
    /// How many bytes of the input were read.
    pub bytes_read: u64,
    /// Values of companion options by name; null where no configuration could be read.
    pub companions: std::collections::BTreeMap<String, Option<String>>,
    /// What is wrong with the file.
    pub detail: Option<String>,
    /// Ids of advisories that mark the release or the header's version.
    pub advisories: Vec<String>,
}

/// `fastpath matrix --format json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MatrixReport {
    /// `fastpath.matrix/1`.
    pub schema: String,
    /// The rows, in published order.
    pub rows: Vec<MatrixRowReport>,
}

/// One row of the matrix.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MatrixRowReport {
    /// The target, as published.
    pub target: String,
    /// The target's id in the catalogue.
    pub id: Option<String>,
    /// The operating system that was inspected.
    pub os: String,
    /// Its default kernel.
    pub kernel: String,
    /// Kernel flavour.
    pub flavour: String,
    /// Whether that kernel has the option; null if that could not be read.
    pub p2pdma: Option<bool>,
    /// The kernel's verdict.
    pub verdict: String,
    /// Advisories that mark it.
    pub advisories: Vec<AdvisoryReport>,
    /// What a person on this row can do, best first.
    pub hints: Vec<HintReport>,
    /// Who said so: a publisher, or `survey`.
    pub origin: String,
    /// Where.
    pub url: String,
    /// When that was read, `YYYY-MM-DD`.
    pub date: String,
    /// How the value was found.
    pub method: String,
    /// What the survey read; null for a published row.
    pub reading: Option<ReadingReport>,
}

/// What the survey read for a row.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadingReport {
    /// The package and its version.
    pub package: String,
    /// Address of the package.
    pub url: String,
    /// Its digest as the index gives it.
    pub hash: Option<String>,
    /// The file inside.
    pub member: Option<String>,
    /// 1-based line of the option.
    pub line: Option<u32>,
    /// The option's value.
    pub value: String,
    /// `verified`, `partial`, `stale` or `unsigned`.
    pub trust: String,
    /// Companion options by name.
    pub companions: std::collections::BTreeMap<String, Option<String>>,
    /// How many bytes of the package were read.
    pub bytes_read: u64,
    /// A remark.
    pub note: Option<String>,
}

pub(crate) const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Warn => "warn",
        Effect::Block => "block",
    }
}

pub(crate) fn evidence(evidence: &Evidence) -> EvidenceReport {
    EvidenceReport { path: evidence.path.clone(), line: evidence.line, text: evidence.text.clone() }
}

pub(crate) fn source(evidence: &Evidence) -> SourceReport {
    SourceReport { path: evidence.path.clone(), line: evidence.line }
}

pub(crate) fn advisory(advisory: &fastpath_knowledge::Advisory) -> AdvisoryReport {
    let needs = &advisory.needs;
    AdvisoryReport {
        id: advisory.id.clone(),
        effect: effect(advisory.effect_on_release()).to_owned(),
        summary: advisory.summary.clone(),
        url: advisory.source.url.clone(),
        needs: (!needs.is_empty()).then(|| NeedsReport {
            iommu_group_type: needs
                .iommu_group_type
                .iter()
                .map(|kind| kind.as_str().to_owned())
                .collect(),
            map_type: needs.map_type.iter().map(|kind| kind.as_str().to_owned()).collect(),
        }),
    }
}

fn witness(witness: &Witness, decides: bool) -> WitnessReport {
    WitnessReport {
        path: witness.path.clone(),
        kind: witness.kind.as_str().to_owned(),
        value: witness.state.as_str().to_owned(),
        line: witness.line,
        decides,
        text: witness.text.clone(),
        detail: witness.detail.clone(),
        also: witness.also.clone(),
    }
}

pub(crate) fn hint(hint: &Hint) -> HintReport {
    HintReport {
        id: hint.id.clone(),
        text: hint.text.clone(),
        detail: hint.detail.clone(),
        commands: hint.commands.clone(),
        kernel: hint.kernel.as_ref().map(|kernel| HintKernelReport {
            package: kernel.package.clone(),
            release: kernel.release.to_string(),
            advisories: kernel
                .advisories
                .iter()
                .map(|advisory| HintAdvisoryReport {
                    id: advisory.id.clone(),
                    effect: effect(advisory.effect).to_owned(),
                    summary: advisory.summary.clone(),
                })
                .collect(),
            amd_driver: kernel.driver.as_str().to_owned(),
            amd_driver_source: kernel.driver_source.clone(),
        }),
    }
}

fn finding(finding: &Finding) -> FindingReport {
    FindingReport {
        id: finding.id.clone(),
        layer: finding.layer.as_str().to_owned(),
        status: finding.status.as_str().to_owned(),
        summary: finding.summary.clone(),
        evidence: finding.evidence.iter().map(evidence).collect(),
        explanation: finding.explanation.clone(),
        hint: finding.hint.as_ref().map(hint),
    }
}

impl From<&Check<'_>> for CheckReport {
    fn from(check: &Check<'_>) -> Self {
        Self {
            schema: "fastpath.check/1".to_owned(),
            verdict: check.verdict.as_str().to_owned(),
            kernel: check.is_judged(Layer::Kernel).then(|| kernel(check)),
            driver: check.driver.as_ref().map(driver),
            runtime: check.runtime.as_ref().map(runtime),
            paths: check.paths.as_ref().map(|paths| paths.paths.iter().map(path).collect()),
            volumes: check.volumes.as_ref().map(|all| {
                let mounts = check.facts.volume.as_ref().map_or(&[][..], |facts| &facts.mounts);
                let tried = |index| mounts.get(index).and_then(|mount: &Mount| mount.direct_io);
                all.volumes.iter().map(|one| volume(one, tried(one.index))).collect()
            }),
            process: check.process.as_ref().map(process),
            route: check.route.as_ref().map(route),
            findings: check.findings.iter().map(finding).collect(),
        }
    }
}

fn addresses(addresses: &[Address]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

fn driver(driver: &DriverVerdict) -> DriverLayer {
    let gpu = |gpu: &GpuVerdict| GpuReport {
        gpu: gpu.gpu.to_string(),
        verdict: gpu.verdict.as_str().to_owned(),
        reason: gpu.reason.as_str().to_owned(),
    };
    DriverLayer {
        verdict: driver.verdict.as_str().to_owned(),
        reason: driver.reason.as_str().to_owned(),
        build: driver.build,
        gpus: driver.gpus.iter().map(gpu).collect(),
    }
}

fn runtime(runtime: &RuntimeVerdict) -> RuntimeLayer {
    let library = |library: &LibraryVerdict| LibraryReport {
        path: library.path.clone(),
        version: library.version.clone(),
        first: library.first,
        verdict: library.verdict.as_str().to_owned(),
        reason: library.reason.as_str().to_owned(),
    };
    RuntimeLayer {
        verdict: runtime.verdict.as_str().to_owned(),
        reason: runtime.reason.as_str().to_owned(),
        libraries: runtime.libraries.iter().map(library).collect(),
    }
}

fn path(path: &PathVerdict) -> PathReport {
    PathReport {
        gpu: path.gpu.to_string(),
        nvme: path.nvme.to_string(),
        verdict: path.verdict.as_str().to_owned(),
        reason: path.reason.as_str().to_owned(),
        distance: path.distance,
        map_type: path.map_type.map(|kind| kind.as_str().to_owned()),
        blockers: addresses(&path.blockers),
        advisories: path.advisories.clone(),
    }
}

fn volume(volume: &VolumeVerdict, direct_io: Option<bool>) -> VolumeReport {
    VolumeReport {
        mount: volume.mount.clone(),
        fstype: volume.fstype.clone(),
        device: volume.device.clone(),
        backing: volume.backing.clone(),
        drives: addresses(&volume.leaves),
        verdict: volume.verdict.as_str().to_owned(),
        reason: volume.reason.as_str().to_owned(),
        assumed: volume.assumed,
        direct_io,
    }
}

fn process(process: &ProcessVerdict) -> ProcessReport {
    let facts = &process.facts;
    let file = |(file, verdict): &(OpenFile, FileVerdict)| OpenFileReport {
        fd: file.fd,
        path: file.path.clone(),
        direct: file.direct,
        verdict: verdict.verdict.as_str().to_owned(),
        reason: verdict.reason.as_str().to_owned(),
    };
    ProcessReport {
        pid: facts.pid,
        name: facts.name.clone(),
        verdict: process.verdict.as_str().to_owned(),
        reason: process.reason.as_str().to_owned(),
        hip: facts.hip.clone(),
        hipfile: facts.hipfile.clone(),
        variables: facts.variables.clone(),
        other_mounts: facts.other_mounts,
        files: process.files.iter().map(file).collect(),
    }
}

fn route(route: &Route) -> RouteReport {
    RouteReport {
        gpu: route.gpu.as_ref().map(ToString::to_string),
        mount: route.mount.clone(),
        drives: addresses(&route.drives),
        verdict: route.verdict.as_str().to_owned(),
        layer: route.layer.as_str().to_owned(),
        reason: route.reason.as_str().to_owned(),
    }
}

fn kernel(check: &Check<'_>) -> KernelLayer {
    use fastpath_host::State;
    let facts = &check.facts.kernel;
    let exists = |witness: &&Witness| witness.state != State::Missing;
    let decides = check.kernel.decides.map(|index| &facts.witnesses[index]);
    let is_deciding = |one: &Witness| decides.is_some_and(|deciding| std::ptr::eq(deciding, one));
    KernelLayer {
        release: facts.release.as_ref().map(ToString::to_string),
        verdict: check.kernel.verdict.as_str().to_owned(),
        reason: check.kernel.reason.as_str().to_owned(),
        value: check.kernel.value.map(|value| value.as_str().to_owned()),
        source: decides.map(|witness| source(&witness.evidence())),
        witnesses: facts
            .witnesses
            .iter()
            .filter(exists)
            .map(|one| witness(one, is_deciding(one)))
            .collect(),
        conflicts: check
            .kernel
            .conflicts
            .iter()
            .map(|&index| facts.witnesses[index].path.clone())
            .collect(),
        advisories: check.advisories.iter().map(|one| advisory(one)).collect(),
        tested: check.tested.is_some(),
        installed: check
            .installed
            .iter()
            .map(|one| InstalledReport {
                release: one.kernel.release.to_string(),
                verdict: one.judgement.verdict.as_str().to_owned(),
                running: one.running,
                next_boot: one.next_boot,
            })
            .collect(),
        running: facts.running.as_ref().map(ToString::to_string),
        absent_because: check.kernel.absent_because.clone(),
        looked_for: facts
            .witnesses
            .iter()
            .filter(|one| !exists(one))
            .map(|one| one.path.clone())
            .collect(),
    }
}

impl From<&MatrixRow<'_>> for MatrixRowReport {
    fn from(row: &MatrixRow<'_>) -> Self {
        let from = &row.provenance;
        Self {
            target: row.target.clone(),
            id: row.id.clone(),
            os: row.os.clone(),
            kernel: row.kernel.to_string(),
            flavour: row.flavour.clone(),
            p2pdma: row.p2pdma,
            verdict: row.verdict.as_str().to_owned(),
            advisories: row.advisories.iter().map(|(one, _)| advisory(one)).collect(),
            hints: row.hints.iter().map(hint).collect(),
            origin: from.origin.clone(),
            url: from.url.clone(),
            date: from.date.clone(),
            method: from.method.clone(),
            reading: from.reading.as_ref().map(|reading| ReadingReport {
                package: reading.package.clone(),
                url: reading.url.clone(),
                hash: reading.hash.clone(),
                member: reading.member.clone(),
                line: reading.line,
                value: reading.value.clone(),
                trust: reading.trust.clone(),
                companions: reading.companions.clone(),
                bytes_read: reading.bytes_read,
                note: reading.note.clone(),
            }),
        }
    }
}

/// Pretty JSON with a final newline.
pub(crate) fn to_string(value: &impl Serialize) -> String {
    // Serialising plain records with string keys cannot fail.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// The JSON schemas of every contract, by file name.
pub fn schemas() -> Vec<(&'static str, String)> {
    vec![
        ("bench.schema.json", to_string(&schemars::schema_for!(crate::BenchReport))),
        ("check.schema.json", to_string(&schemars::schema_for!(CheckReport))),
        ("inspect.schema.json", to_string(&schemars::schema_for!(InspectReport))),
        ("kernels.schema.json", to_string(&schemars::schema_for!(KernelsReport))),
        ("matrix.schema.json", to_string(&schemars::schema_for!(MatrixReport))),
        ("stats.schema.json", to_string(&schemars::schema_for!(crate::StatsReport))),
    ]
}
