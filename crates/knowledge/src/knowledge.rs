//! All of the data together, and how a user's file adds to it.

use serde::Deserialize;

use crate::advisory::{Advisory, Effect};
use crate::amdgpu::{AisDriver, Amdgpu, Capability, DriverInstall, VirtualGpu};
use crate::host_bridge::{HostBridge, HostBridges, P2pdmaBackport};
use crate::keys::PinnedKey;
use crate::matrix::{Published, Row, Target, catalogue};
use crate::release::Release;
use crate::remedy::{Driver, DriverBuild, Family, Reboot, Refresh, Remedy};
use crate::storage::{StorageRule, storage};

/// Why a knowledge file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is not TOML of the expected form.
    #[error("{origin}: line {line}: {message}")]
    Malformed {
        /// The file.
        origin: String,
        /// 1-based line of the first defect.
        line: usize,
        /// What is wrong there.
        message: String,
    },
}

/// Everything that is known besides the host's own facts.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// Advisories; embedded ones first, none ever removed.
    pub advisories: Vec<Advisory>,
    /// Kernel families, in matching order.
    pub families: Vec<Family>,
    /// Remedies, best first.
    pub remedies: Vec<Remedy>,
    /// Ways to boot an installed kernel.
    pub reboots: Vec<Reboot>,
    /// What is known about AMD's driver.
    pub drivers: Vec<Driver>,
    /// Targets that user's files add to the embedded catalogue: see [`Knowledge::targets`].
    pub more_targets: Vec<Target>,
    /// Published tables.
    pub published: Vec<Published>,
    /// Pinned keys that user's files add to the embedded [`keys`](crate::keys).
    pub keys: Vec<PinnedKey>,
    /// What user's files add to what is known of AMD's driver and its virtual GPUs.
    pub more_amdgpu: Amdgpu,
    /// Host bridges and backports that user's files add to the embedded [`host_bridges`](crate::host_bridges).
    pub more_host_bridges: HostBridges,
    /// Rules about storage that user's files add to the embedded ones: see [`Knowledge::storage_rule`].
    pub more_storage: Vec<StorageRule>,
}

/// A knowledge file: any of the tables, in any number.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    advisory: Vec<Advisory>,
    family: Vec<Family>,
    remedy: Vec<Remedy>,
    reboot: Vec<Reboot>,
    driver: Vec<Driver>,
    target: Vec<Target>,
    published: Vec<Published>,
    key: Vec<PinnedKey>,
    refresh: Vec<Refresh>,
    ais_driver: Vec<AisDriver>,
    capability: Vec<Capability>,
    virtual_gpu: Vec<VirtualGpu>,
    driver_install: Vec<DriverInstall>,
    host_bridge: Vec<HostBridge>,
    p2pdma_backport: Vec<P2pdmaBackport>,
    storage: Vec<StorageRule>,
}

/// The family of a kernel that fits no other.
const CUSTOM: &str = "custom";

const EMBEDDED: [(&str, &str); 5] = [
    ("advisories.toml", include_str!("../data/advisories.toml")),
    ("families.toml", include_str!("../data/families.toml")),
    ("remedies.toml", include_str!("../data/remedies.toml")),
    ("drivers.toml", include_str!("../data/drivers.toml")),
    ("matrix.toml", include_str!("../data/matrix.toml")),
];

impl Knowledge {
    /// The data this version was built with.
    ///
    /// # Errors
    ///
    /// Only if the embedded data is malformed, which a test excludes.
    pub fn embedded() -> Result<Self, Error> {
        let mut knowledge = Self::default();
        for (origin, text) in EMBEDDED {
            knowledge.extend(origin, text)?;
        }
        Ok(knowledge)
    }

    /// Adds the entries of a knowledge file. Nothing that is there already is removed or weakened: an advisory under a
    /// known id is one more rule beside it.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] with the line, if `text` is not of the form; nothing is added then.
    pub fn extend(&mut self, origin: &str, text: &str) -> Result<(), Error> {
        let file: File = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start).min(text.len());
            Error::Malformed {
                origin: origin.to_owned(),
                line: text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count() + 1,
                message: error.message().to_owned(),
            }
        })?;
        let known = |id: &String| {
            id == CUSTOM || self.families.iter().chain(&file.family).any(|family| family.id == *id)
        };
        let named = file.remedy.iter().flat_map(|remedy| remedy.when.family.iter());
        if let Some(id) = named.into_iter().find(|id| !known(id)) {
            let line = text.lines().position(|line| line.contains(&format!("\"{id}\"")));
            return Err(Error::Malformed {
                origin: origin.to_owned(),
                line: line.unwrap_or(0) + 1,
                message: format!("there is no kernel family `{id}`"),
            });
        }
        self.advisories.extend(file.advisory);
        self.families.extend(file.family);
        self.remedies.extend(file.remedy);
        self.reboots.extend(file.reboot);
        self.drivers.extend(file.driver);
        self.more_targets.extend(file.target);
        self.published.extend(file.published);
        self.keys.extend(file.key);
        self.more_amdgpu.ais_driver.extend(file.ais_driver);
        self.more_amdgpu.capability.extend(file.capability);
        self.more_amdgpu.virtual_gpu.extend(file.virtual_gpu);
        self.more_amdgpu.driver_install.extend(file.driver_install);
        self.more_host_bridges.host_bridge.extend(file.host_bridge);
        self.more_host_bridges.p2pdma_backport.extend(file.p2pdma_backport);
        self.more_storage.extend(file.storage);
        for refresh in &file.refresh {
            refresh.apply(&mut self.remedies);
        }
        Ok(())
    }

    /// Advisories that mark the release, in data order.
    pub fn advisories_for<'a>(
        &'a self,
        release: &'a Release,
    ) -> impl Iterator<Item = &'a Advisory> + 'a {
        self.advisories.iter().filter(|advisory| advisory.matches(release))
    }

    /// Who built the kernel; `None` if no family fits, as for a kernel someone built for themselves.
    pub fn family(&self, release: &Release) -> Option<&Family> {
        self.families
            .iter()
            .find(|family| family.releases.iter().any(|pattern| pattern.matches(release.as_str())))
    }

    /// Whether an advisory says not to use the kernel a remedy leads to.
    fn leads_to_blocked(&self, remedy: &Remedy) -> bool {
        let kernel = remedy.kernel.as_ref();
        kernel.is_some_and(|kernel| {
            self.advisories_for(&kernel.release)
                .any(|advisory| advisory.effect_on_release() == Effect::Block)
        })
    }

    /// Remedies for a kernel with `verdict` on the system `os` `os_version`, best first. One that leads to a kernel that is
    /// blocked itself is none.
    pub fn remedies_for<'a>(
        &'a self,
        release: &'a Release,
        verdict: &'a str,
        os: &'a str,
        os_version: &'a str,
    ) -> impl Iterator<Item = &'a Remedy> + 'a {
        let family = self.family(release).map_or(CUSTOM, |family| family.id.as_str());
        self.remedies
            .iter()
            .filter(move |remedy| !remedy.withdrawn)
            .filter(move |remedy| remedy.when.holds(release, family, verdict, os, os_version))
            .filter(|remedy| !self.leads_to_blocked(remedy))
    }

    /// Commands that boot the installed kernel `release`, if the way is known for this system and boot loader.
    pub fn reboot_commands(
        &self,
        os: &str,
        loader: &str,
        release: &Release,
    ) -> Option<Vec<String>> {
        let reboot = self
            .reboots
            .iter()
            .find(|reboot| reboot.loader == loader && reboot.os.iter().any(|id| id == os))?;
        let fill = |command: &String| command.replace("{release}", release.as_str());
        Some(reboot.commands.iter().map(fill).collect())
    }

    /// Whether AMD's driver is known to build for the kernel, and how that is known.
    pub fn driver_build(&self, release: &Release) -> (DriverBuild, Option<&Driver>) {
        let known = self
            .drivers
            .iter()
            .find(|driver| driver.releases.iter().any(|pattern| pattern.matches(release.as_str())));
        known.map_or((DriverBuild::NotKnown, None), |driver| (driver.builds, Some(driver)))
    }

    /// The rules about storage of a build of AMD's driver; of the newest one if the build is not known.
    pub fn storage_rule(&self, build: Option<u64>) -> Option<&StorageRule> {
        let rules = storage().iter().chain(&self.more_storage);
        rules
            .filter(|rule| build.is_none_or(|build| rule.from <= build))
            .max_by_key(|rule| rule.from)
    }

    /// Every target: those of the embedded [`catalogue`], then those of user's files.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        catalogue().iter().chain(&self.more_targets)
    }

    /// The target with this published name or catalogue id.
    pub fn target(&self, name: &str) -> Option<&Target> {
        self.targets()
            .find(|target| target.name == name)
            .or_else(|| self.targets().find(|target| target.id == name))
    }

    /// Every published row, with the table it stands in.
    pub fn rows(&self) -> impl Iterator<Item = (&Published, &Row)> {
        self.published.iter().flat_map(|table| table.row.iter().map(move |row| (table, row)))
    }

    /// The row of the matrix that was made with exactly this kernel.
    pub fn tested(&self, release: &Release) -> Option<&Row> {
        self.rows().map(|(_, row)| row).find(|row| row.kernel == *release)
    }
}
