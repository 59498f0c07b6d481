//! What a person can do.

use fastpath_knowledge::{DriverBuild, Effect, Knowledge, Release, Remedy};
use serde::{Deserialize, Serialize};

/// One thing to do, with commands ready to paste.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// Stable name: a remedy's id or one of [`hints`].
    pub id: String,
    /// What to do, in a sentence or more.
    pub text: String,
    /// More about it: a paragraph.
    pub detail: Option<String>,
    /// Commands, in order.
    pub commands: Vec<String>,
    /// The kernel it leads to, judged in its turn.
    pub kernel: Option<HintKernel>,
}

/// The kernel a hint leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintKernel {
    /// The package to install; `None` if the kernel is installed already.
    pub package: Option<String>,
    /// Its release, or that of the build that was read.
    pub release: Release,
    /// Advisories that mark it.
    pub advisories: Vec<HintAdvisory>,
    /// Whether AMD's driver is known to build for it.
    pub driver: DriverBuild,
    /// How that is known.
    pub driver_source: Option<String>,
}

/// An advisory that marks the kernel of a hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintAdvisory {
    /// Its id.
    pub id: String,
    /// What it does to that kernel.
    pub effect: Effect,
    /// Its one line.
    pub summary: String,
}

/// Ids of hints that are no remedies from the data.
pub mod hints {
    /// Reboot into a kernel that is installed.
    pub const REBOOT: &str = "reboot-into-installed";
    /// Keep booting the running kernel.
    pub const KEEP: &str = "keep-running-kernel";
    /// Run again with more privilege.
    pub const AS_ROOT: &str = "run-as-root";
    /// Give a witness.
    pub const GIVE_WITNESS: &str = "give-a-witness";
    /// Name the kernel.
    pub const GIVE_RELEASE: &str = "name-the-kernel";
    /// Make the host's files visible in the container.
    pub const MOUNT: &str = "mount-host-files";
    /// Boot the build that the files on disk describe.
    pub const OTHER_BUILD: &str = "boot-the-described-build";
    /// No kernel of this system with the option is known.
    pub const NO_REMEDY: &str = "no-remedy-known";
    /// Install AMD's driver.
    pub const INSTALL_DRIVER: &str = "install-amdgpu-dkms";
    /// Update AMD's driver.
    pub const UPDATE_DRIVER: &str = "update-amdgpu-dkms";
    /// Build AMD's driver for the running kernel.
    pub const BUILD_DRIVER: &str = "build-amdgpu-dkms";
    /// Reboot into AMD's driver.
    pub const REBOOT_DRIVER: &str = "reboot-into-amdgpu-dkms";
    /// Load the driver.
    pub const LOAD_DRIVER: &str = "load-amdgpu";
    /// Make all of a GPU's memory reachable.
    pub const LARGE_BAR: &str = "enable-large-bar";

    /// Put the drive and the GPU below one switch.
    pub const PATH_SAME_SWITCH: &str = "path-same-switch";
    /// Switch ACS redirection off for some ports.
    pub const PATH_DISABLE_ACS: &str = "path-disable-acs-redirect";
    /// Put the IOMMU into pass-through.
    pub const PATH_PASSTHROUGH: &str = "path-iommu-passthrough";
    /// Boot without address space randomisation of the kernel.
    pub const PATH_NOKASLR: &str = "path-nokaslr";

    /// Switch off the kernel's own NVMe multipath.
    pub const DISABLE_MULTIPATH: &str = "disable-nvme-multipath";
    /// Tell hipFile to use the fastpath on any file system.
    pub const ANY_FILE_SYSTEM: &str = "allow-any-file-system";
    /// Give an ext4 the journal mode `ordered`.
    pub const ORDERED: &str = "use-journal-mode-ordered";
    /// Put the files on a local NVMe drive.
    pub const USE_NVME: &str = "use-local-nvme";
    /// See which driver is loaded, and take a newer one.
    pub const NEWER_DRIVER: &str = "use-newer-driver-for-lvm";
    /// Run where the devices can be seen.
    pub const SEE_DEVICES: &str = "run-where-devices-are-seen";
    /// Install a newer ROCm.
    pub const INSTALL_ROCM: &str = "install-rocm";
    /// Let programs take another runtime.
    pub const OTHER_RUNTIME: &str = "take-other-runtime";
}

impl HintKernel {
    /// Judges the kernel of a hint by its release.
    pub(crate) fn new(release: &Release, package: Option<&str>, knowledge: &Knowledge) -> Self {
        let (driver, known) = knowledge.driver_build(release);
        let advisories = knowledge.advisories_for(release).map(|advisory| HintAdvisory {
            id: advisory.id.clone(),
            effect: advisory.effect_on_release(),
            summary: advisory.summary.clone(),
        });
        Self {
            package: package.map(str::to_owned),
            release: release.clone(),
            advisories: advisories.collect(),
            driver,
            driver_source: known.map(|driver| driver.source.clone()),
        }
    }
}

impl Hint {
    pub(crate) fn new(id: &str, text: impl Into<String>, commands: Vec<String>) -> Self {
        Self { id: id.to_owned(), text: text.into(), detail: None, commands, kernel: None }
    }

    /// Run again with more privilege.
    pub(crate) fn as_root(text: impl Into<String>) -> Self {
        Self::new(hints::AS_ROOT, text, vec!["sudo fastpath check".to_owned()])
    }

    /// A remedy from the data, its own kernel judged.
    pub fn from_remedy(remedy: &Remedy, knowledge: &Knowledge) -> Self {
        let kernel = remedy
            .kernel
            .as_ref()
            .map(|kernel| HintKernel::new(&kernel.release, Some(&kernel.package), knowledge));
        let detail = Some(remedy.text.trim().replace('\n', " "));
        Self {
            detail,
            kernel,
            ..Self::new(&remedy.id, remedy.summary.clone(), remedy.commands.clone())
        }
    }
}

/// Every id of [`hints`].
pub const HINTS: &[&str] = &[
    hints::REBOOT,
    hints::KEEP,
    hints::AS_ROOT,
    hints::GIVE_WITNESS,
    hints::GIVE_RELEASE,
    hints::MOUNT,
    hints::OTHER_BUILD,
    hints::NO_REMEDY,
    hints::INSTALL_DRIVER,
    hints::UPDATE_DRIVER,
    hints::BUILD_DRIVER,
    hints::REBOOT_DRIVER,
    hints::LOAD_DRIVER,
    hints::LARGE_BAR,
    hints::PATH_SAME_SWITCH,
    hints::PATH_DISABLE_ACS,
    hints::PATH_PASSTHROUGH,
    hints::PATH_NOKASLR,
    hints::DISABLE_MULTIPATH,
    hints::ANY_FILE_SYSTEM,
    hints::ORDERED,
    hints::USE_NVME,
    hints::NEWER_DRIVER,
    hints::SEE_DEVICES,
    hints::INSTALL_ROCM,
    hints::OTHER_RUNTIME,
];
