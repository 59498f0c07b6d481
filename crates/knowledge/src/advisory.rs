//! Advisories: kernels on which the fastpath must not be used, or only with care.

use serde::{Deserialize, Serialize};

use crate::release::Release;
use crate::version::Constraint;

/// What an advisory does to the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Shown; the verdict stays.
    Warn,
    /// The fastpath must not be used.
    Block,
}

/// Where a statement comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// What it is, in words.
    pub title: String,
    /// Its address.
    pub url: Option<String>,
}

/// A rule that marks kernels by their release string.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advisory {
    /// Stable name, accepted by `fastpath explain`.
    pub id: String,
    /// What a match does.
    pub effect: Effect,
    /// One line.
    pub summary: String,
    /// The long text.
    pub detail: String,
    /// When the source was read, `YYYY-MM-DD`.
    pub date: String,
    /// What would lift it.
    pub lifted_by: String,
    /// Where it is said.
    pub source: Origin,
    /// The kernels it marks: any condition may match.
    #[serde(rename = "match")]
    pub conditions: Vec<Condition>,
    /// What must hold besides the release for the danger to be real. Empty: nothing.
    #[serde(default)]
    pub needs: Needs,
}

/// A condition on a kernel release; every part that is given must hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The base version, compared as rpm does.
    pub version: Option<Constraint>,
    /// The build number after the base version, compared as rpm does; a release without one does not match.
    pub build: Option<Constraint>,
    /// Major number of the Enterprise Linux dist tag.
    pub el: Option<u32>,
    /// Minor number of that same tag; `none` asks for a tag without one.
    pub el_minor: Option<Minor>,
    /// Texts that must not occur anywhere in the release.
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// A condition on the minor number of a dist tag.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Minor {
    /// The tag has no minor number.
    None,
    /// It has one that satisfies this.
    Number(Constraint),
}

impl TryFrom<String> for Minor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == "none" { Ok(Self::None) } else { Constraint::try_from(text).map(Self::Number) }
    }
}

/// Conditions on a path that must hold too. When all are proven for a path, the path is blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// The IOMMU group type of the devices is one of these.
    #[serde(default)]
    pub iommu_group_type: Vec<IommuGroupType>,
    /// The mapping type of the path is one of these.
    #[serde(default)]
    pub map_type: Vec<MapType>,
}

/// `/sys/kernel/iommu_groups/<n>/type`.
/// Source: <https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-kernel-iommu_groups>.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IommuGroupType {
    /// Translating, invalidated strictly.
    #[serde(rename = "DMA")]
    Dma,
    /// Translating, invalidated lazily.
    #[serde(rename = "DMA-FQ")]
    DmaFq,
    /// Pass-through.
    #[serde(rename = "identity")]
    Identity,
}

impl IommuGroupType {
    /// As sysfs spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dma => "DMA",
            Self::DmaFq => "DMA-FQ",
            Self::Identity => "identity",
        }
    }
}

/// How the kernel maps peer memory on a path, `enum pci_p2pdma_map_type`.
/// Source: <https://www.kernel.org/doc/html/latest/driver-api/pci/p2pdma.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MapType {
    /// Traffic turns round below the root, at a switch.
    BusAddress,
    /// Traffic passes the host bridge.
    ThroughHostBridge,
    /// The kernel refuses.
    NotSupported,
}

impl MapType {
    /// The words used in data and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BusAddress => "bus-address",
            Self::ThroughHostBridge => "through-host-bridge",
            Self::NotSupported => "not-supported",
        }
    }
}

impl Needs {
    /// Whether the release alone decides.
    pub fn is_empty(&self) -> bool {
        self.iommu_group_type.is_empty() && self.map_type.is_empty()
    }
}

impl Advisory {
    /// Whether the release is one this advisory marks.
    pub fn matches(&self, release: &Release) -> bool {
        self.conditions.iter().any(|condition| condition.matches(release))
    }

    /// What a match on the release alone does: an advisory with needs only warns until they are proven.
    pub fn effect_on_release(&self) -> Effect {
        if self.needs.is_empty() { self.effect } else { Effect::Warn }
    }
}

impl Condition {
    /// Whether every given part holds for the release.
    pub fn matches(&self, release: &Release) -> bool {
        let excluded = self.exclude.iter().any(|text| release.as_str().contains(text.as_str()));
        let version = self.version.as_ref().is_none_or(|want| {
            let base = release.base();
            !base.is_empty() && want.matches(base)
        });
        let build = self
            .build
            .as_ref()
            .is_none_or(|want| release.build().is_some_and(|build| want.matches(build)));
        let tag = self.el.is_none_or(|major| {
            release.el_tags().any(|tag| {
                tag.major == major
                    && match (&self.el_minor, tag.minor) {
                        (None, _) | (Some(Minor::None), None) => true,
                        (Some(Minor::Number(want)), Some(minor)) => {
                            want.matches(&minor.to_string())
                        }
                        _ => false,
                    }
            })
        });
        !excluded && version && build && tag
    }
}
