//! What is known of AMD's out-of-tree GPU driver and of AMD's virtual GPUs.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::knowledge::Knowledge;
use crate::release::Release;

/// Everything about AMD's driver; a knowledge file adds to each table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Amdgpu {
    /// Which builds can do AIS.
    pub ais_driver: Vec<AisDriver>,
    /// From which builds on a bit of KFD's `capability` counts.
    pub capability: Vec<Capability>,
    /// Device ids of virtual functions.
    pub virtual_gpu: Vec<VirtualGpu>,
    /// How the driver is installed.
    pub driver_install: Vec<DriverInstall>,
}

/// The first build of `amdgpu-dkms` that can do AIS.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AisDriver {
    /// Its number.
    pub first_build: u64,
    /// How that is known.
    pub source: String,
    /// Where.
    pub url: String,
    /// When that was read, `YYYY-MM-DD`.
    pub date: String,
}

/// The bit that tells that a GPU's memory is registered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// Only builds above this one give it that meaning.
    pub above_build: u64,
    /// Its position in `capability`.
    pub bit: u32,
    /// How that is known.
    pub source: String,
    /// Where.
    pub url: String,
    /// When that was read, `YYYY-MM-DD`.
    pub date: String,
}

/// PCI device ids of AMD's virtual functions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualGpu {
    /// The ids.
    pub devices: Vec<VirtualDevice>,
    /// How they are known.
    pub source: String,
    /// Where.
    pub url: String,
    /// When that was read, `YYYY-MM-DD`.
    pub date: String,
}

/// One device id.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualDevice {
    /// The device id; the vendor is AMD.
    pub id: u16,
    /// What it is called.
    pub name: String,
}

/// How AMD's driver is installed, once AMD's repository is set up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverInstall {
    /// Families of kernels.
    pub families: Vec<String>,
    /// Commands, in order.
    pub commands: Vec<String>,
    /// How that is known.
    pub source: String,
    /// Where.
    pub url: String,
    /// When that was read, `YYYY-MM-DD`.
    pub date: String,
}

/// The embedded tables, parsed when they are first asked for.
fn embedded() -> &'static Amdgpu {
    static AMDGPU: OnceLock<Amdgpu> = OnceLock::new();
    // A test parses the embedded file, so the default is never taken.
    AMDGPU.get_or_init(|| toml::from_str(include_str!("../data/amdgpu.toml")).unwrap_or_default())
}

impl Knowledge {
    /// Both parts of a table: the embedded one, then those of user's files.
    fn amdgpu(&self) -> [&Amdgpu; 2] {
        [embedded(), &self.more_amdgpu]
    }

    /// Whether a build of `amdgpu-dkms` is too old for AIS.
    pub fn is_driver_too_old(&self, build: u64) -> bool {
        let first =
            self.amdgpu().into_iter().flat_map(|it| &it.ais_driver).map(|it| it.first_build);
        first.min().is_some_and(|first| build < first)
    }

    /// Whether `capability` of a KFD node tells that the GPU's memory is registered; `None` if this build says nothing by it.
    pub fn capability_says(&self, build: u64, capability: u64) -> Option<bool> {
        let rules = self.amdgpu().into_iter().flat_map(|it| &it.capability);
        let rule = rules.filter(|it| build > it.above_build).max_by_key(|it| it.above_build)?;
        Some(capability.checked_shr(rule.bit).is_some_and(|rest| rest & 1 == 1))
    }

    /// The name of a virtual function of AMD's, by its device id; `None` if it is not known to be one.
    pub fn virtual_gpu(&self, device: u16) -> Option<&str> {
        let devices =
            self.amdgpu().into_iter().flat_map(|it| &it.virtual_gpu).flat_map(|it| &it.devices);
        devices.into_iter().find(|it| it.id == device).map(|it| it.name.as_str())
    }

    /// How AMD's driver is installed for a kernel, if that is known.
    pub fn driver_install(&self, release: &Release) -> Option<&DriverInstall> {
        let family = &self.family(release)?.id;
        let ways = self.amdgpu().into_iter().flat_map(|it| &it.driver_install);
        ways.into_iter().find(|it| it.families.contains(family))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_file_parses() {
        let parsed: Amdgpu = toml::from_str(include_str!("../data/amdgpu.toml")).unwrap();
        assert_eq!(&parsed, embedded());
        assert_eq!(parsed.virtual_gpu[0].devices.len(), 10);
    }

    #[test]
    fn the_bit_counts_only_above_the_build() {
        let knowledge = Knowledge::embedded().unwrap();
        for (build, capability, expected) in [
            (2_327_936, 0x40, None),
            (2_327_937, 0x40, Some(true)),
            (2_327_937, 0x3f, Some(false)),
            (2_278_356, 0, None),
            (u64::MAX, u64::MAX, Some(true)),
        ] {
            assert_eq!(knowledge.capability_says(build, capability), expected, "{build}");
        }
        assert!(knowledge.is_driver_too_old(2_255_208));
        assert!(!knowledge.is_driver_too_old(2_255_209));
    }

    #[test]
    fn a_file_adds_a_virtual_function_and_takes_none_away() {
        let mut knowledge = Knowledge::embedded().unwrap();
        assert_eq!(knowledge.virtual_gpu(0x75ff), None);
        let text = "[[virtual_gpu]]\ndevices = [{ id = 0x75ff, name = \"X VF\" }]\nsource = \"s\"\nurl = \"u\"\n\
                    date = \"2026-11-30\"\n";
        knowledge.extend("file", text).unwrap();
        assert_eq!(knowledge.virtual_gpu(0x75ff), Some("X VF"));
        assert_eq!(knowledge.virtual_gpu(0x74b5), Some("Instinct MI300X VF"));
        assert_eq!(knowledge.virtual_gpu(0x74a1), None);
    }
}
