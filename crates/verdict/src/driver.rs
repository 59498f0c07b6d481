//! The verdict on AMD's driver and on each GPU.

use fastpath_host::Evidence;
use fastpath_host::Unread;
use fastpath_host::driver::{DkmsBuild, DriverFacts, Gpu, Loaded, Node};
use fastpath_host::pci::{Address, Function, Got, PciFacts, Role};
use fastpath_knowledge::{DriverBuild, Feature, Knowledge, Release};
use serde::{Deserialize, Serialize};

use crate::hint::{Hint, hints};
use crate::words::{Finding, Layer, Reason, Status, Verdict, finding};

/// The driver layer, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverVerdict {
    /// That of the best GPU.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// The number of the loaded driver's build, if DKMS tells.
    pub build: Option<u64>,
    /// Each GPU, by address.
    pub gpus: Vec<GpuVerdict>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// One GPU, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuVerdict {
    /// The GPU.
    pub gpu: Address,
    /// Whether the driver does AIS with it.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

/// Judges the driver layer. AIS, ROCm's name for hipFile's path below the runtime, is a function of AMD's out-of-tree driver:
/// at start it registers a GPU's memory for peer-to-peer DMA, if the GPU's memory can be. Each GPU is judged for itself.
pub fn judge(facts: &DriverFacts, pci: &PciFacts, knowledge: &Knowledge) -> DriverVerdict {
    let case = Case::new(facts, pci, knowledge);
    let gpus: Vec<GpuVerdict> = pci
        .with_role(Role::Gpu)
        .map(|gpu| {
            let (verdict, reason) = case.gpu(gpu);
            GpuVerdict { gpu: gpu.address.clone(), verdict, reason }
        })
        .collect();
    // Of GPUs that are equally bad, one that another driver would help says more.
    let best = gpus.iter().min_by_key(|one| (one.verdict.badness(), is_of_gpu(one.reason)));
    let (verdict, reason) = match best {
        Some(best) => (best.verdict, best.reason),
        None if pci.listed.value().is_some() && pci.unclassified.is_empty() => {
            (Verdict::Unsupported, Reason::NoGpu)
        }
        None => (Verdict::Unknown, Reason::DriverUnreadable),
    };
    let findings = case.findings(&gpus, reason);
    DriverVerdict { verdict, reason, build: case.build, gpus, findings }
}

/// Whether a reason is a property of the GPU, so that no other driver changes it.
const fn is_of_gpu(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::GpuVirtualFunction
            | Reason::GpuApu
            | Reason::GpuXgmiToCpu
            | Reason::GpuSmallBar
            | Reason::GpuNotBound
            | Reason::GpuWithoutAis
    )
}

struct Case<'a> {
    facts: &'a DriverFacts,
    pci: &'a PciFacts,
    knowledge: &'a Knowledge,
    /// The kernel that is judged.
    release: Option<&'a Release>,
    /// Whether the loaded module comes from outside the kernel's tree; `None` if that cannot be told.
    out_of_tree: Option<bool>,
    /// The number of the build that is loaded.
    build: Option<u64>,
    /// Whether it can do AIS by the kernel's symbols; `None` if these tell nothing.
    ais: Option<bool>,
}

impl<'a> Case<'a> {
    fn new(facts: &'a DriverFacts, pci: &'a PciFacts, knowledge: &'a Knowledge) -> Self {
        if let Some(other) = &facts.other {
            let out_of_tree = other.is_out_of_tree();
            let of_it = facts.builds.iter().filter(|build| build.release == other.release);
            let build = if out_of_tree == Some(true) { only_number(of_it) } else { None };
            let release = Some(&other.release);
            return Self { facts, pci, knowledge, release, out_of_tree, build, ais: None };
        }
        let ais = facts.symbols.as_ref().map(|symbols| symbols.ais.is_some());
        let for_running = facts.builds.iter().any(|build| build.running);
        let out_of_tree = facts.module.is_out_of_tree().or_else(|| for_running.then_some(true));
        let build = (out_of_tree == Some(true)).then(|| loaded_build(facts)).flatten();
        let release = facts.running.as_ref();
        Self { facts, pci, knowledge, release, out_of_tree, build, ais }
    }

    fn gpu(&self, gpu: &Function) -> (Verdict, Reason) {
        let no = |reason| (Verdict::Unsupported, reason);
        if self.facts.other.is_some() {
            let found = self.property(gpu).or_else(|| self.driver());
            return found.map_or((Verdict::Unknown, Reason::DriverNotRunning), no);
        }
        if let Got::Value(driver) = &gpu.driver
            && driver != "amdgpu"
        {
            return no(Reason::GpuNotBound);
        }
        match self.facts.module.loaded {
            Loaded::No => return no(Reason::AmdgpuNotLoaded),
            Loaded::Unknown => return (Verdict::Unknown, Reason::DriverUnreadable),
            Loaded::Module | Loaded::BuiltIn => {}
        }
        let has_node = self.facts.nodes_of(&gpu.address).next().is_some();
        match &gpu.driver {
            Got::Value(_) => {}
            _ if has_node => {}
            Got::Missing => return no(Reason::GpuNotBound),
            _ => return (Verdict::Unknown, Reason::DriverUnreadable),
        }
        // Nothing but a driver that does AIS registers a GPU's memory, so this outweighs what speaks against it.
        let registered = gpu.p2pmem.value().is_some_and(|memory| memory.size > 0);
        if registered && self.ais != Some(false) {
            return (Verdict::Supported, Reason::P2pMemoryRegistered);
        }
        if let Some(reason) = self.property(gpu) {
            return no(reason);
        }
        if let Some(reason) = self.driver() {
            return no(reason);
        }
        self.registered(gpu)
    }

    /// What the GPU is that rules it out.
    fn property(&self, gpu: &Function) -> Option<Reason> {
        let virtual_id =
            gpu.device.value().is_some_and(|id| self.knowledge.virtual_gpu(*id).is_some());
        let nodes = || self.facts.nodes_of(&gpu.address);
        let says = self.says(gpu);
        // Without word from the driver the first BAR tells, which is what the memory is behind.
        let bar = gpu.bars.iter().find(|bar| bar.index == 0).map(|bar| bar.size);
        let visible = says.and_then(|says| says.visible_vram).or(bar);
        let vram = says.and_then(|says| says.vram);
        if virtual_id || !gpu.physical.is_missing() && gpu.physical != Got::NotRecorded {
            Some(Reason::GpuVirtualFunction)
        } else if nodes().any(Node::is_apu) {
            Some(Reason::GpuApu)
        } else if nodes().any(|node| node.xgmi_to_cpu == Some(true)) {
            Some(Reason::GpuXgmiToCpu)
        } else if vram.zip(visible).is_some_and(|(vram, visible)| visible < vram) {
            Some(Reason::GpuSmallBar)
        } else {
            None
        }
    }

    /// What the driver says of a GPU.
    fn says(&self, gpu: &Function) -> Option<&'a Gpu> {
        self.facts.gpus.iter().find(|one| one.gpu == gpu.address)
    }

    /// What the driver is that rules every GPU out.
    fn driver(&self) -> Option<Reason> {
        let old = self.build.is_some_and(|build| self.knowledge.is_driver_too_old(build));
        match (self.ais, self.out_of_tree) {
            (Some(true), _) => None,
            (_, Some(false)) => Some(Reason::DriverInTree),
            (_, Some(true)) if old => Some(Reason::DriverTooOld),
            (Some(false), _) => Some(Reason::DriverWithoutAis),
            (None, _) => None,
        }
    }

    /// Whether a driver that may do AIS has registered the GPU's memory.
    fn registered(&self, gpu: &Function) -> (Verdict, Reason) {
        let unknown = (Verdict::Unknown, Reason::GpuAisUnknown);
        let without = (Verdict::Unsupported, Reason::GpuWithoutAis);
        let mut says = self.facts.nodes_of(&gpu.address).map(|node| {
            let (build, capability) = (self.build?, node.capability?);
            self.knowledge.capability_says(build, capability)
        });
        match says.next().flatten() {
            // A GPU in partitions has several nodes, and one memory.
            Some(first) if says.any(|other| other != Some(first)) => unknown,
            Some(true) => (Verdict::Supported, Reason::AisReady),
            Some(false) => without,
            // The directory of a GPU whose memory is registered has `p2pmem`.
            None if gpu.p2pmem.is_missing() && self.says(gpu).is_some_and(|says| says.whole) => {
                without
            }
            None => unknown,
        }
    }
}

/// The number of the build that is loaded: DKMS's only one for this kernel, or the only one of the loaded version.
fn loaded_build(facts: &DriverFacts) -> Option<u64> {
    let version = facts.module.version.as_ref().and_then(|version| version.text.as_deref());
    let fits =
        |build: &&DkmsBuild| build.running && version.is_none_or(|version| build.is_of(version));
    only_number(facts.builds.iter().filter(fits))
}

/// The number that all of these builds have.
fn only_number<'a>(builds: impl Iterator<Item = &'a DkmsBuild>) -> Option<u64> {
    let mut numbers = builds.map(|build| build.number);
    let first = numbers.next()??;
    numbers.all(|other| other == Some(first)).then_some(first)
}

impl Case<'_> {
    fn findings(&self, gpus: &[GpuVerdict], reason: Reason) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut reasons: Vec<(Verdict, Reason)> = Vec::new();
        for one in gpus {
            if !reasons.contains(&(one.verdict, one.reason)) {
                reasons.push((one.verdict, one.reason));
            }
        }
        reasons.sort_by_key(|(verdict, _)| verdict.badness());
        if reasons.is_empty() {
            findings.push(self.finding(reason, &[]));
        }
        for (_, reason) in reasons {
            let of: Vec<&Address> =
                gpus.iter().filter(|one| one.reason == reason).map(|one| &one.gpu).collect();
            findings.push(self.finding(reason, &of));
        }
        findings.extend(self.other_kernel(reason));
        findings.extend(self.no_device());
        findings.extend(self.unread(reason));
        findings
    }

    /// The finding for one reason and the GPUs it is true of.
    fn finding(&self, reason: Reason, gpus: &[&Address]) -> Finding {
        let names = listed(gpus);
        let are = if gpus.len() == 1 { "is" } else { "are" };
        let (id, status) = match reason {
            Reason::AisReady | Reason::P2pMemoryRegistered => (finding::DRIVER_GPU, Status::Pass),
            Reason::GpuAisUnknown => (finding::DRIVER_GPU, Status::Unknown),
            Reason::DriverUnreadable | Reason::DriverNotRunning => {
                (finding::DRIVER_MODULE, Status::Unknown)
            }
            reason if is_of_gpu(reason) => (finding::DRIVER_GPU, Status::Fail),
            _ => (finding::DRIVER_MODULE, Status::Fail),
        };
        let build = self.build.map(|build| format!(" (build {build})")).unwrap_or_default();
        // Which driver it is, by the kernel that has it.
        let driver = match &self.facts.other {
            Some(other) => format!("the amdgpu{build} of {}", other.release),
            None => format!("the loaded amdgpu{build}"),
        };
        let (summary, explanation): (String, &str) = match reason {
            Reason::P2pMemoryRegistered => (
                format!("the driver has registered the memory of {names} for peer-to-peer DMA"),
                "The GPU's directory in sysfs has `p2pmem`, which exists only once a driver has registered memory.",
            ),
            Reason::AisReady => (
                format!("the driver{build} says that AIS is ready on {names}"),
                "KFD sets that bit of the GPU's capability once the GPU's memory is registered for peer-to-peer DMA.",
            ),
            Reason::NoGpu => (
                "there is no AMD GPU".to_owned(),
                "None of the PCI devices is one. Without an AMD GPU there is nothing for hipFile to do.",
            ),
            Reason::AmdgpuNotLoaded => (
                "the driver amdgpu is not loaded".to_owned(),
                "Without its driver a GPU does nothing.",
            ),
            Reason::DriverInTree => (
                format!("{driver} is the kernel's own, which cannot do AIS"),
                "Only AMD's out-of-tree driver registers a GPU's memory for peer-to-peer DMA and has the call that moves data \
                 between a file and a GPU. The driver that comes with the kernel has neither.",
            ),
            Reason::DriverWithoutAis => (
                format!("the loaded amdgpu{build} cannot do AIS"),
                "The running kernel's symbols do not have kfd_ais_rw_file, which moves data between a file and a GPU.",
            ),
            Reason::DriverTooOld => (
                format!("{driver} is too old for AIS"),
                &format!("AIS came with amdgpu-dkms {}.", Feature::DriverWithAis.since()),
            ),
            Reason::DriverNotRunning => (
                self.not_running(&driver),
                "Whether a driver registers a GPU's memory is seen only while it runs: boot that kernel, and check again.",
            ),
            Reason::DriverUnreadable => (
                "what driver is loaded cannot be told".to_owned(),
                "Nothing in this root says which driver the GPUs have. In a container sysfs may be hidden; an image has none.",
            ),
            Reason::GpuVirtualFunction => (
                format!("{names} {are} virtual (SR-IOV)"),
                "The driver does not register the memory of a virtual function. The physical function must be given to the \
                 virtual machine, or the program must run on the host.",
            ),
            Reason::GpuApu => (
                format!("{names} {are} part of the processor (APU)"),
                "An APU's memory is the machine's memory; there is no PCIe between a drive and the GPU to shorten.",
            ),
            Reason::GpuXgmiToCpu => (
                format!("{names} {are} linked to the processor by XGMI"),
                "The driver does not register the memory of a GPU that the processor reaches by XGMI.",
            ),
            Reason::GpuSmallBar => (
                format!("the BAR of {names} does not reach all of the GPU's memory"),
                "The driver registers a GPU's memory only if all of it is behind the BAR (large BAR, resizable BAR).",
            ),
            Reason::GpuNotBound => (
                format!("{names} {are} not bound to amdgpu"),
                "Another driver has the GPU, or none: one that is passed through to a virtual machine has vfio-pci.",
            ),
            Reason::GpuWithoutAis => (
                format!(
                    "the driver{build} has not registered the memory of {names} for peer-to-peer DMA"
                ),
                &format!(
                    "The driver can do AIS, but did not set it up for this GPU. It is silent about why: the kernel may lack \
                     CONFIG_PCI_P2PDMA, or the memory's address may be out of the kernel's reach (before Linux {}: KASLR).",
                    Feature::KernelMapsAllWithKaslr.since()
                ),
            ),
            _ => (
                format!(
                    "whether the driver{build} has registered the memory of {names} cannot be told"
                ),
                "This build's capability bits say nothing about AIS, and the GPU's directory in sysfs could not be looked at.",
            ),
        };
        Finding {
            evidence: self.evidence(reason, gpus),
            ..Finding::new(id, Layer::Driver, status, summary, explanation, self.hint(reason))
        }
    }

    fn evidence(&self, reason: Reason, gpus: &[&Address]) -> Vec<Evidence> {
        let facts = self.facts;
        let place = |path: String| Evidence { path, line: None, text: None };
        let value = |path: String, value: Option<u64>| Evidence {
            path,
            line: Some(1),
            text: value.map(|value| value.to_string()),
        };
        let of_gpus = self.pci.with_role(Role::Gpu).filter(|gpu| gpus.contains(&&gpu.address));
        match reason {
            Reason::P2pMemoryRegistered => of_gpus
                .map(|gpu| {
                    let size = gpu.p2pmem.value().map(|memory| memory.size);
                    value(gpu.address.file("p2pmem/size"), size)
                })
                .collect(),
            Reason::AisReady | Reason::GpuApu | Reason::GpuXgmiToCpu => {
                let nodes = of_gpus.flat_map(|gpu| facts.nodes_of(&gpu.address));
                let ready = reason == Reason::AisReady;
                nodes
                    .map(|node| Evidence {
                        path: node.path(),
                        line: node.capability_line.filter(|_| ready),
                        text: node
                            .capability
                            .filter(|_| ready)
                            .map(|it| format!("capability {it}")),
                    })
                    .collect()
            }
            Reason::DriverInTree | Reason::DriverTooOld | Reason::DriverNotRunning
                if let Some(other) = &facts.other =>
            {
                let of_it = |build: &&DkmsBuild| build.release == other.release;
                let builds = facts.builds.iter().filter(of_it).map(|it| place(it.path.clone()));
                let unread = other.unread.as_ref().map(|unread| place(unread.path.clone()));
                other.module.clone().into_iter().chain(builds).chain(unread).collect()
            }
            Reason::DriverInTree | Reason::DriverTooOld | Reason::DriverWithoutAis => {
                let module = [&facts.module.version, &facts.module.taint];
                let builds =
                    facts.builds.iter().filter(|build| build.running && self.build.is_some());
                let builds = builds.map(|build| place(build.path.clone()));
                module.into_iter().flatten().cloned().chain(builds).collect()
            }
            Reason::GpuVirtualFunction => of_gpus
                .map(|gpu| match (&gpu.physical, gpu.device.value()) {
                    (Got::Missing, Some(device)) => Evidence {
                        path: gpu.address.file("device"),
                        line: Some(1),
                        text: Some(format!("{device:#06x}")),
                    },
                    _ => place(gpu.address.file("physfn")),
                })
                .collect(),
            Reason::GpuSmallBar => of_gpus
                .flat_map(|gpu| {
                    let says = self.says(gpu);
                    let visible = match says.and_then(|says| says.visible_vram) {
                        Some(size) => {
                            value(gpu.address.file("mem_info_vis_vram_total"), Some(size))
                        }
                        None => place(gpu.address.file("resource")),
                    };
                    let vram = says.and_then(|says| says.vram);
                    [value(gpu.address.file("mem_info_vram_total"), vram), visible]
                })
                .collect(),
            Reason::GpuNotBound => of_gpus.map(|gpu| place(gpu.address.file("driver"))).collect(),
            Reason::AmdgpuNotLoaded => vec![place("/sys/module".to_owned())],
            _ => Vec::new(),
        }
    }

    fn hint(&self, reason: Reason) -> Option<Hint> {
        match reason {
            Reason::DriverInTree
                if self.facts.other.is_none()
                    && self.facts.builds.iter().any(|build| build.running) =>
            {
                let text =
                    "reboot: AMD's driver is built for this kernel, but another one is loaded";
                Some(Hint::new(hints::REBOOT_DRIVER, text, vec!["sudo reboot".to_owned()]))
            }
            Reason::DriverInTree if !self.facts.builds.is_empty() => Some(self.build_for_this()),
            Reason::DriverInTree => Some(self.install(
                hints::INSTALL_DRIVER,
                "install AMD's driver, amdgpu-dkms, from AMD's repository",
            )),
            Reason::DriverTooOld | Reason::DriverWithoutAis => Some(self.install(
                hints::UPDATE_DRIVER,
                &format!(
                    "update AMD's driver, amdgpu-dkms, to {} or newer",
                    Feature::DriverWithAis.since()
                ),
            )),
            Reason::AmdgpuNotLoaded => {
                let commands = ["sudo modprobe amdgpu", "sudo dmesg | grep -i amdgpu"];
                let text = "load the driver, and see what it says if it does not start";
                Some(Hint::new(hints::LOAD_DRIVER, text, commands.map(str::to_owned).to_vec()))
            }
            Reason::GpuSmallBar => {
                let text = "switch on `Above 4G decoding` and `Resizable BAR` in the machine's firmware setup";
                Some(Hint::new(hints::LARGE_BAR, text, Vec::new()))
            }
            Reason::DriverUnreadable | Reason::GpuAisUnknown
                if self.facts.unread.iter().any(|unread| unread.permission) =>
            {
                let text = "run as root: a file that may tell could not be read";
                Some(Hint::as_root(text))
            }
            _ => None,
        }
    }

    /// What is not known of a kernel that does not run.
    fn not_running(&self, driver: &str) -> String {
        match &self.facts.other {
            Some(other) if let Some(unread) = &other.unread => {
                let release = &other.release;
                format!(
                    "which amdgpu {release} loads cannot be told: {}: {}",
                    unread.path, unread.reason
                )
            }
            Some(other) if other.module.is_none() => {
                format!("{} has no module amdgpu; it may be a part of the kernel", other.release)
            }
            _ => format!("{driver} is AMD's; what it makes of the GPUs is seen only while it runs"),
        }
    }

    /// How AMD's driver gets onto this host, with what is known about whether it builds for the kernel.
    fn install(&self, id: &str, text: &str) -> Hint {
        let release = self.release;
        let way = release.and_then(|release| self.knowledge.driver_install(release));
        let detail = release.and_then(|release| {
            let (builds, known) = self.knowledge.driver_build(release);
            let source = known.map(|known| known.source.as_str()).unwrap_or_default();
            match builds {
                DriverBuild::Yes => Some(format!("It is known to build for {release}: {source}.")),
                DriverBuild::No => {
                    Some(format!("It is known not to build for {release}: {source}."))
                }
                DriverBuild::NotKnown => None,
            }
        });
        let text = match way {
            Some(way) => format!("{text}; how that is set up: {}", way.url),
            None => text.to_owned(),
        };
        let commands = way.iter().flat_map(|way| &way.commands);
        let commands = commands.map(|command| self.for_kernel(command)).collect();
        Hint { detail, ..Hint::new(id, text, commands) }
    }

    /// A command for the kernel that is judged.
    fn for_kernel(&self, command: &str) -> String {
        match &self.facts.other {
            Some(other) => command.replace("$(uname -r)", other.release.as_str()),
            None => command.to_owned(),
        }
    }

    fn build_for_this(&self) -> Hint {
        let text = "build AMD's driver, which is there for another kernel, for this one";
        let commands = ["sudo dkms autoinstall -k \"$(uname -r)\"", "sudo reboot"];
        let commands = commands.map(|command| self.for_kernel(command)).to_vec();
        let hint = self.install(hints::BUILD_DRIVER, text);
        Hint { text: text.to_owned(), commands, ..hint }
    }

    /// A driver that was built for other kernels only, as after a kernel update.
    fn other_kernel(&self, reason: Reason) -> Option<Finding> {
        let builds = &self.facts.builds;
        let running = self.facts.running.as_ref().filter(|_| self.facts.other.is_none())?;
        if builds.is_empty() || builds.iter().any(|build| build.running) || reason == Reason::NoGpu
        {
            return None;
        }
        let mut releases: Vec<&str> = builds.iter().map(|build| build.release.as_str()).collect();
        releases.sort_unstable();
        releases.dedup();
        let summary = format!(
            "DKMS has AMD's driver for other kernels ({}), not for {running}, which runs",
            shortened(&releases)
        );
        let explanation = "A driver is built for each kernel. Another kernel's build says nothing about the one that is loaded.";
        let evidence = builds.iter().take(MOST_SHOWN).map(|build| Evidence {
            path: build.path.clone(),
            line: None,
            text: None,
        });
        Some(Finding {
            evidence: evidence.collect(),
            ..Finding::new(
                finding::DRIVER_OTHER_KERNEL,
                Layer::Driver,
                Status::Warn,
                summary,
                explanation,
                None,
            )
        })
    }

    /// KFD has GPUs and the device to reach them is not here, as in a container that was not given it.
    fn no_device(&self) -> Option<Finding> {
        let gpus = self.facts.nodes.iter().any(Node::is_gpu);
        (gpus && self.facts.kfd == Some(false) && self.facts.other.is_none()).then(|| {
            let summary = "/dev/kfd is not there, so no program here can use a GPU";
            let explanation = "The driver has GPUs, but their device is hidden: a container must be given /dev/kfd and /dev/dri.";
            Finding::new(finding::DRIVER_KFD, Layer::Driver, Status::Warn, summary, explanation, None)
        })
    }

    /// What could not be read, if it might have made a difference.
    fn unread(&self, reason: Reason) -> Option<Finding> {
        let unread: Vec<&Unread> =
            self.facts.unread.iter().filter(|unread| !unread.not_recorded).collect();
        let first = unread.first()?;
        if matches!(reason, Reason::NoGpu) {
            return None;
        }
        let more = if unread.len() > 1 {
            format!(", and {} more", unread.len() - 1)
        } else {
            String::new()
        };
        let summary = format!("{}: {}{more}", first.path, first.reason);
        let explanation =
            "A file that may say something about the driver or a GPU could not be read.";
        let evidence = unread.iter().take(MOST_SHOWN).map(|unread| Evidence {
            path: unread.path.clone(),
            line: None,
            text: None,
        });
        Some(Finding {
            evidence: evidence.collect(),
            ..Finding::new(
                finding::DRIVER_UNREADABLE,
                Layer::Driver,
                Status::Info,
                summary,
                explanation,
                None,
            )
        })
    }
}

/// More of a kind than a reader of one line takes in.
const MOST_SHOWN: usize = 8;

fn listed(gpus: &[&Address]) -> String {
    let names: Vec<&str> = gpus.iter().map(|gpu| gpu.as_str()).collect();
    shortened(&names)
}

/// Names in a line, the first ones of many.
fn shortened(names: &[&str]) -> String {
    match names.split_at_checked(MOST_SHOWN) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more", first.join(", "), rest.len())
        }
        _ => names.join(", "),
    }
}
