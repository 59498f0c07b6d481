//! The words of the product: verdicts, layers, statuses, reasons, and the ids of findings.

use std::fmt;

use fastpath_host::Evidence;
use serde::{Deserialize, Serialize};

use crate::hint::Hint;

/// The answer to "can the fastpath be used?".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Yes, as far as the judged layers go.
    Supported,
    /// It cannot be told. Never to be read as no.
    Unknown,
    /// No.
    Unsupported,
    /// It would run, and must not: data may be corrupted.
    Blocked,
}

impl Verdict {
    /// The word used in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Unknown => "unknown",
            Self::Unsupported => "unsupported",
            Self::Blocked => "blocked",
        }
    }

    /// The order of badness: supported, unknown, unsupported, blocked.
    pub const fn badness(self) -> u8 {
        match self {
            Self::Supported => 0,
            Self::Unknown => 1,
            Self::Unsupported => 2,
            Self::Blocked => 3,
        }
    }

    /// The exit code of a command that judges: 0 supported, 1 unsupported or blocked, 2 unknown.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Supported => 0,
            Self::Unsupported | Self::Blocked => 1,
            Self::Unknown => 2,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What must be fine for the fastpath to run, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The kernel's configuration, and what is known about the kernel.
    Kernel,
    /// AMD's GPU driver and what it says of each GPU.
    Driver,
    /// The HIP runtime and hipFile's library.
    Runtime,
    /// The way over PCIe between each GPU and each NVMe drive.
    Path,
    /// Mounted file systems and the block devices below them.
    Volume,
}

impl Layer {
    /// The word used in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Driver => "driver",
            Self::Runtime => "runtime",
            Self::Path => "path",
            Self::Volume => "volume",
        }
    }
}

/// How a checked requirement came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It holds.
    Pass,
    /// Something a person should know; the verdict stays.
    Info,
    /// Something a person should look at; the verdict stays.
    Warn,
    /// It cannot be told.
    Unknown,
    /// It does not hold.
    Fail,
    /// The fastpath must not be used.
    Block,
}

impl Status {
    /// The word used in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Unknown => "unknown",
            Self::Fail => "fail",
            Self::Block => "block",
        }
    }
}

/// One checked requirement, or one thing worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name, accepted by `fastpath explain`: one of [`FINDINGS`] or an advisory's id.
    pub id: String,
    /// The layer it belongs to.
    pub layer: Layer,
    /// How it came out.
    pub status: Status,
    /// One line.
    pub summary: String,
    /// Where it was seen.
    pub evidence: Vec<Evidence>,
    /// Why it matters: a sentence or two.
    pub explanation: String,
    /// What to do.
    pub hint: Option<Hint>,
}

impl Finding {
    /// A finding without evidence.
    pub fn new(
        id: &str,
        layer: Layer,
        status: Status,
        summary: impl Into<String>,
        explanation: impl Into<String>,
        hint: Option<Hint>,
    ) -> Self {
        Self {
            id: id.to_owned(),
            layer,
            status,
            summary: summary.into(),
            evidence: Vec::new(),
            explanation: explanation.into(),
            hint,
        }
    }
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $all:ident, $all_doc:literal: $($(#[doc = $doc:literal])* $variant:ident = $word:literal,)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[doc = $doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The word used in output, accepted by `fastpath explain`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        #[doc = $all_doc]
        pub const $all: &[$name] = &[$($name::$variant,)*];
    };
}

words! {
    /// Why a layer's verdict is what it is.
    Reason, REASONS, "Every reason.":
    /// The deciding configuration has `CONFIG_PCI_P2PDMA=y`.
    OptionY = "option-y",
    /// It says `is not set`.
    OptionNotSet = "option-not-set",
    /// It is whole and has no line for the option.
    OptionAbsent = "option-absent",
    /// It says `=n`.
    OptionN = "option-n",
    /// It says `=m`, which cannot be for a bool.
    OptionMInvalid = "option-m-invalid",
    /// A blocking advisory marks the kernel.
    Advisory = "advisory",
    /// The running kernel has the option's symbols.
    SymbolsPresent = "symbols-present",
    /// The running kernel has PCI symbols, but not the option's.
    SymbolsAbsent = "symbols-absent",
    /// There is nothing to read about any kernel.
    NoWitness = "no-witness",
    /// What there is to read is about other kernels.
    NoWitnessForThisKernel = "no-witness-for-this-kernel",
    /// The best witness has no content.
    WitnessEmpty = "witness-empty",
    /// The best witness ends before its end.
    WitnessTruncated = "witness-truncated",
    /// The best witness is not what its name says.
    WitnessMalformed = "witness-malformed",
    /// The best witness could not be read.
    WitnessUnreadable = "witness-unreadable",
    /// The root does not tell which kernel runs.
    ReleaseUnknown = "release-unknown",

    // The driver layer.
    /// KFD says that AIS is ready on the GPU.
    AisReady = "ais-ready",
    /// The driver has registered the GPU's memory for peer-to-peer DMA.
    P2pMemoryRegistered = "p2p-memory-registered",
    /// There is no AMD GPU.
    NoGpu = "no-gpu",
    /// The driver amdgpu does not run.
    AmdgpuNotLoaded = "amdgpu-not-loaded",
    /// The loaded driver is the kernel's own.
    DriverInTree = "driver-in-tree",
    /// The loaded driver comes from AMD and lacks AIS.
    DriverWithoutAis = "driver-without-ais",
    /// The loaded driver comes from AMD and is older than AIS.
    DriverTooOld = "driver-too-old",
    /// The root does not tell which driver is loaded.
    DriverUnreadable = "driver-unreadable",
    /// The kernel that is asked about does not run, so what its driver makes of the GPU is not seen.
    DriverNotRunning = "driver-not-running",
    /// The GPU is a virtual function (SR-IOV).
    GpuVirtualFunction = "gpu-virtual-function",
    /// The GPU is part of the processor.
    GpuApu = "gpu-apu",
    /// The GPU is linked to the processor by XGMI.
    GpuXgmiToCpu = "gpu-xgmi-to-cpu",
    /// The GPU's BAR does not reach all of its memory.
    GpuSmallBar = "gpu-small-bar",
    /// Another driver has the GPU, or none.
    GpuNotBound = "gpu-not-bound",
    /// The driver has not registered the GPU's memory.
    GpuWithoutAis = "gpu-without-ais",
    /// Whether the driver has registered the GPU's memory cannot be told.
    GpuAisUnknown = "gpu-ais-unknown",

    // The runtime layer.
    /// The HIP runtime has what the fastpath is called by.
    RuntimeReady = "runtime-ready",
    /// There is no HIP runtime.
    RuntimeMissing = "runtime-missing",
    /// The HIP runtime lacks what the fastpath is called by.
    RuntimeWithoutAis = "runtime-without-ais",
    /// The library is for another kind of machine.
    RuntimeOtherMachine = "runtime-other-machine",
    /// The HIP runtime could not be read.
    RuntimeUnreadable = "runtime-unreadable",

    // One process.
    /// The process has loaded hipFile's library, and its settings allow the fastpath.
    HipfileLoaded = "hipfile-loaded",
    /// The process has not loaded hipFile's library.
    HipfileNotLoaded = "hipfile-not-loaded",
    /// The process was started with the setting that forces the fallback.
    ForcedFallback = "forced-fallback",
    /// The process may not be looked at.
    ProcessUnreadable = "process-unreadable",

    // The path layer.
    /// Traffic turns round at a switch below the root.
    CommonSwitch = "common-switch",
    /// The host bridge is in the kernel's list.
    HostBridgeListed = "host-bridge-listed",
    /// The processor is a Zen, whose host bridges all forward peer traffic.
    AmdZen = "amd-zen",
    /// Different root ports, and the host bridge is not in the kernel's list.
    HostBridgeNotListed = "host-bridge-not-listed",
    /// A common switch, but ACS sends traffic up to a host bridge that is not in the list.
    AcsRedirectHostBridgeNotListed = "acs-redirect-host-bridge-not-listed",
    /// It depends on configuration space that could not be read.
    ConfigSpaceUnreadable = "config-space-unreadable",
    /// It depends on where a device stands or what it is, which could not be read.
    TopologyUnreadable = "topology-unreadable",
    /// It depends on what nobody has confirmed of this kernel release.
    KernelUnconfirmed = "kernel-unconfirmed",
    /// It depends on the processor, which could not be read.
    CpuUnknown = "cpu-unknown",
    /// It depends on whether an IOMMU is in use, which could not be read.
    IommuUnknown = "iommu-unknown",
    /// There is no NVMe drive.
    NoNvme = "no-nvme",
    /// The root has no list of PCI devices.
    NoSysfs = "no-sysfs",

    // The volume layer.
    /// A file system and a device that the fastpath can use.
    Ok = "ok",
    /// hipFile takes the fastpath on files of other file systems only.
    Filesystem = "filesystem",
    /// The journal mode of the ext4 is not `ordered`.
    JournalMode = "journal-mode",
    /// Direct I/O is not done on the file.
    NoDirectIo = "no-direct-io",
    /// The device is no NVMe drive.
    NotNvme = "not-nvme",
    /// The device is the head of a multipath NVMe namespace.
    NvmeMultipath = "nvme-multipath",
    /// The drive is reached over TCP.
    NvmeTcp = "nvme-tcp",
    /// The drive is reached over RDMA.
    NvmeRdma = "nvme-rdma",
    /// The drive is reached over another fabric.
    NvmeFabrics = "nvme-fabrics",
    /// Linux software RAID.
    Md = "md",
    /// A logical volume.
    Lvm = "lvm",
    /// A logical volume, part of which is on something else than a local NVMe drive.
    LvmMemberNotNvme = "lvm-member-not-nvme",
    /// An encrypted device.
    DmCrypt = "dm-crypt",
    /// A multipath device of device-mapper.
    DmMultipath = "dm-multipath",
    /// Another device-mapper device.
    Dm = "dm",
    /// A file as a disk.
    Loop = "loop",
    /// Compressed memory as a disk.
    Zram = "zram",
    /// A disk with a cache in front.
    Bcache = "bcache",
    /// A virtual machine's disk.
    Virtio = "virtio",
    /// A SCSI, SATA, SAS or USB disk.
    Scsi = "scsi",
    /// Files on another machine.
    Network = "network",
    /// NFS over RDMA.
    NfsRdma = "nfs-rdma",
    /// Layers over other file systems.
    Overlay = "overlay",
    /// Neither a regular file nor a block device.
    FileType = "file-type",
    /// Something that decides could not be read.
    VolumeUnreadable = "volume-unreadable",
    /// No mounted file system could be the one.
    NoVolume = "no-volume",
}

/// The ids of findings, apart from advisories' own.
pub mod finding {
    /// The kernel has the option.
    pub const OPTION: &str = "kernel-option";
    /// Two sound witnesses disagree.
    pub const CONFLICT: &str = "kernel-witness-conflict";
    /// The deciding configuration sets the option more than once.
    pub const DUPLICATE: &str = "kernel-option-duplicate";
    /// A witness could not be read.
    pub const UNREADABLE: &str = "kernel-witness-unreadable";
    /// A witness is empty, cut or malformed.
    pub const DAMAGED: &str = "kernel-witness-damaged";
    /// A configuration is about another kernel.
    pub const OTHER_KERNEL: &str = "kernel-witness-other-kernel";
    /// A directory that may hold kernels could not be listed.
    pub const UNLISTED: &str = "kernel-list-unreadable";
    /// A better kernel is installed but not running.
    pub const BETTER_INSTALLED: &str = "kernel-better-installed";
    /// The kernel that boots next is worse than the running one.
    pub const NEXT_BOOT_WORSE: &str = "kernel-next-boot-worse";
    /// The kernel that boots next is blocked.
    pub const NEXT_BOOT_BLOCKED: &str = "kernel-next-boot-blocked";
    /// It cannot be told which of several differing kernels boots next.
    pub const NEXT_BOOT_UNKNOWN: &str = "kernel-next-boot-unknown";
    /// A further remedy.
    pub const ALTERNATIVE: &str = "kernel-alternative";
    /// `CONFIG_HSA_AMD_P2P` is off, which does not matter.
    pub const HSA_AMD_P2P: &str = "kernel-hsa-amd-p2p";
    /// The root is a container's.
    pub const CONTAINER: &str = "kernel-container";
    /// The host is WSL2, which has no KFD.
    pub const WSL2: &str = "kernel-wsl2";
    /// The loaded driver, and whether it can do AIS.
    pub const DRIVER_MODULE: &str = "driver-module";
    /// GPUs, and whether the driver does AIS with them.
    pub const DRIVER_GPU: &str = "driver-gpu";
    /// DKMS has the driver for other kernels only.
    pub const DRIVER_OTHER_KERNEL: &str = "driver-other-kernel";
    /// The device of KFD is not there.
    pub const DRIVER_KFD: &str = "driver-kfd-device";
    /// Something about the driver could not be read.
    pub const DRIVER_UNREADABLE: &str = "driver-files-unreadable";

    /// A GPU and a drive can reach each other.
    pub const PATH_REACHABLE: &str = "path-reachable";
    /// A host bridge does not forward peer traffic.
    pub const PATH_HOST_BRIDGE: &str = "path-host-bridge";
    /// ACS sends peer traffic up to a host bridge that does not forward it.
    pub const PATH_ACS: &str = "path-acs-redirect";
    /// ACS sends peer traffic up to the host bridge, which forwards it.
    pub const PATH_ACS_DETOUR: &str = "path-acs-detour";
    /// Whether devices can reach each other cannot be told.
    pub const PATH_UNDECIDED: &str = "path-undecided";
    /// There is no AMD GPU.
    pub const PATH_NO_GPU: &str = "path-no-gpu";
    /// There is no NVMe drive.
    pub const PATH_NO_NVME: &str = "path-no-nvme";
    /// The root has no list of PCI devices.
    pub const PATH_NO_SYSFS: &str = "path-no-sysfs";
    /// More devices than are judged.
    pub const PATH_OMITTED: &str = "path-devices-omitted";
    /// The GPU's memory may lie above what the kernel can map.
    pub const PATH_KASLR: &str = "path-kaslr";

    /// A volume will do.
    pub const VOLUME_READY: &str = "volume-ready";
    /// Volumes have a file system that hipFile takes no fastpath on.
    pub const VOLUME_FILESYSTEM: &str = "volume-filesystem";
    /// Volumes have an ext4 whose journal mode is not `ordered`.
    pub const VOLUME_JOURNAL_MODE: &str = "volume-journal-mode";
    /// Volumes are on a device that the fastpath cannot use.
    pub const VOLUME_DEVICE: &str = "volume-device";
    /// Volumes are on another machine.
    pub const VOLUME_NETWORK: &str = "volume-network";
    /// Something about volumes could not be read.
    pub const VOLUME_UNREADABLE: &str = "volume-unreadable-evidence";
    /// There is no volume.
    pub const VOLUME_NONE: &str = "volume-none";
    /// Something was assumed.
    pub const VOLUME_ASSUMED: &str = "volume-assumed";
    /// One file that was asked about.
    pub const VOLUME_FILE: &str = "volume-file";
    /// Which libraries a process has loaded.
    pub const PROCESS_LIBRARIES: &str = "process-libraries";
    /// A variable that decides what hipFile does in a process.
    pub const PROCESS_ENVIRONMENT: &str = "process-environment";
    /// A process has mounts of its own.
    pub const PROCESS_MOUNTS: &str = "process-mounts";
    /// The HIP runtime a program gets.
    pub const RUNTIME_LIBRARY: &str = "runtime-library";
    /// Several runtimes with different answers.
    pub const RUNTIME_SEVERAL: &str = "runtime-several";
    /// A runtime that the loader does not find by itself.
    pub const RUNTIME_LOADER: &str = "runtime-not-of-loader";
    /// hipFile's own library.
    pub const RUNTIME_HIPFILE: &str = "runtime-hipfile";
}

/// Every id of [`finding`].
pub const FINDINGS: &[&str] = &[
    finding::OPTION,
    finding::CONFLICT,
    finding::DUPLICATE,
    finding::UNREADABLE,
    finding::DAMAGED,
    finding::OTHER_KERNEL,
    finding::UNLISTED,
    finding::BETTER_INSTALLED,
    finding::NEXT_BOOT_WORSE,
    finding::NEXT_BOOT_BLOCKED,
    finding::NEXT_BOOT_UNKNOWN,
    finding::ALTERNATIVE,
    finding::HSA_AMD_P2P,
    finding::CONTAINER,
    finding::WSL2,
    finding::DRIVER_MODULE,
    finding::DRIVER_GPU,
    finding::DRIVER_OTHER_KERNEL,
    finding::DRIVER_KFD,
    finding::DRIVER_UNREADABLE,
    finding::PATH_REACHABLE,
    finding::PATH_HOST_BRIDGE,
    finding::PATH_ACS,
    finding::PATH_ACS_DETOUR,
    finding::PATH_UNDECIDED,
    finding::PATH_NO_GPU,
    finding::PATH_NO_NVME,
    finding::PATH_NO_SYSFS,
    finding::PATH_OMITTED,
    finding::PATH_KASLR,
    finding::VOLUME_READY,
    finding::VOLUME_FILESYSTEM,
    finding::VOLUME_JOURNAL_MODE,
    finding::VOLUME_DEVICE,
    finding::VOLUME_NETWORK,
    finding::VOLUME_UNREADABLE,
    finding::VOLUME_NONE,
    finding::VOLUME_ASSUMED,
    finding::VOLUME_FILE,
    finding::PROCESS_LIBRARIES,
    finding::PROCESS_ENVIRONMENT,
    finding::PROCESS_MOUNTS,
    finding::RUNTIME_LIBRARY,
    finding::RUNTIME_SEVERAL,
    finding::RUNTIME_LOADER,
    finding::RUNTIME_HIPFILE,
];
