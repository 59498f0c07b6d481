//! Who built a kernel, and what a person can do about it: families, remedies, ways to boot an installed kernel, and
//! whether AMD's driver is known to build.

use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;
use crate::release::Release;

/// Who builds a kind of kernel, told by the release string.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Stable name, `ubuntu` or `uek`.
    pub id: String,
    /// Who that is, in words.
    pub name: String,
    /// Releases of the family. The first family in the file that has a fitting pattern is the one.
    pub releases: Vec<Pattern>,
}

/// What to do when a kernel will not do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// Stable name, accepted by `fastpath explain`.
    pub id: String,
    /// What sort of advice it is.
    pub kind: RemedyKind,
    /// One line.
    pub summary: String,
    /// The long text.
    pub text: String,
    /// Commands ready to paste, in order.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Whom it is for.
    pub when: When,
    /// The kernel it leads to.
    pub kernel: Option<RemedyKernel>,
    /// Targets whose kernels are said to lack the option; a survey that reads it in one of them withdraws the remedy.
    #[serde(default)]
    pub lacking: Vec<String>,
    /// Whether a survey has read that it no longer holds.
    #[serde(skip)]
    pub withdrawn: bool,
}

/// The sorts of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RemedyKind {
    /// Install and boot another kernel of the same distribution.
    Kernel,
    /// The distribution has no kernel that will do.
    None,
    /// Stay on hipFile's fallback.
    Fallback,
    /// Build the kernel with other options.
    Build,
}

/// Whom a remedy is for; every part that is given must hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Families of the kernel asked about; `custom` is a kernel of no known family.
    pub family: Vec<String>,
    /// `ID` of `os-release`. Empty: any.
    #[serde(default)]
    pub os: Vec<String>,
    /// `VERSION_ID` of `os-release`. Empty: any.
    #[serde(default)]
    pub os_version: Vec<Pattern>,
    /// Releases of the kernel asked about. Empty: any.
    #[serde(default)]
    pub release: Vec<Pattern>,
    /// Verdicts of the kernel asked about.
    pub verdict: Vec<BadVerdict>,
}

/// The verdicts that call for a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BadVerdict {
    /// The kernel does not have the option.
    Unsupported,
    /// An advisory says not to use it.
    Blocked,
}

impl BadVerdict {
    /// The word used for verdicts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::Blocked => "blocked",
        }
    }
}

/// The kernel a remedy leads to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemedyKernel {
    /// The package to install.
    pub package: String,
    /// Catalogue id of the target whose default kernel it is: a survey of it brings this entry up to date.
    pub target: Option<String>,
    /// The release that was read for this entry; a newer one may be current.
    pub release: Release,
    /// How it is known that this kernel has the option.
    pub seen: String,
    /// When that was read, `YYYY-MM-DD`.
    pub date: String,
}

/// What a survey read of a target's default kernel: the newest word on the kernel that a remedy leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// The target's catalogue id.
    pub target: String,
    /// The package it was read from.
    pub package: String,
    /// The kernel's release.
    pub release: Release,
    /// Whether its configuration has the option.
    pub has_option: bool,
    /// How that is known.
    pub seen: String,
    /// When it was read, `YYYY-MM-DD`.
    pub date: String,
}

impl Refresh {
    /// Brings remedies up to date, unless they are newer already: the kernel they lead to, or that they no longer hold.
    /// Where there was said to be no kernel and now is one, a remedy that leads to it takes the place.
    pub(crate) fn apply(&self, remedies: &mut Vec<Remedy>) {
        let mut more = Vec::new();
        for remedy in remedies.iter_mut() {
            if let Some(kernel) = &mut remedy.kernel
                && kernel.target.as_ref() == Some(&self.target)
                && kernel.date <= self.date
            {
                kernel.release = self.release.clone();
                kernel.seen.clone_from(&self.seen);
                kernel.date.clone_from(&self.date);
                remedy.withdrawn = !self.has_option;
            }
            if remedy.lacking.contains(&self.target) && self.has_option {
                remedy.withdrawn = true;
                more.push(self.remedy(remedy.when.clone()));
            }
        }
        remedies.splice(0..0, more);
    }

    fn remedy(&self, when: When) -> Remedy {
        Remedy {
            id: format!("surveyed-{}", self.target),
            kind: RemedyKind::Kernel,
            summary: format!("install the kernel {} of {} and reboot", self.release, self.target),
            text: format!(
                "A survey of this machine read on {} that this kernel is built with the option: {}.",
                self.date, self.seen
            ),
            commands: Vec::new(),
            when,
            kernel: Some(RemedyKernel {
                package: self.package.clone(),
                target: Some(self.target.clone()),
                release: self.release.clone(),
                seen: self.seen.clone(),
                date: self.date.clone(),
            }),
            lacking: Vec::new(),
            withdrawn: false,
        }
    }
}

/// How to boot one of the installed kernels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reboot {
    /// `ID` of `os-release`.
    pub os: Vec<String>,
    /// The boot loader, `grub` or `systemd-boot`.
    pub loader: String,
    /// Commands; `{release}` stands for the kernel.
    pub commands: Vec<String>,
}

/// Whether AMD's out-of-tree driver (`amdgpu-dkms`) is known to build for a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriverBuild {
    /// It is.
    #[serde(rename = "yes")]
    Yes,
    /// It is known not to.
    #[serde(rename = "no")]
    No,
    /// Nothing is known either way.
    #[serde(rename = "not known")]
    NotKnown,
}

impl DriverBuild {
    /// The words used in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::NotKnown => "not known",
        }
    }
}

/// One statement about AMD's driver on a kind of kernel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// The kernels it is about.
    pub releases: Vec<Pattern>,
    /// What is known.
    pub builds: DriverBuild,
    /// How it is known.
    pub source: String,
    /// When that was read, `YYYY-MM-DD`.
    pub date: String,
}

impl When {
    /// Whether a remedy with these conditions is for a kernel `release` of `family` with `verdict`, on the system
    /// `os` `os_version` (`ID` and `VERSION_ID` of its `os-release`).
    pub fn holds(
        &self,
        release: &Release,
        family: &str,
        verdict: &str,
        os: &str,
        os_version: &str,
    ) -> bool {
        let listed = |list: &[String], item: &str| list.iter().any(|entry| entry == item);
        let fits = |list: &[Pattern], text: &str| {
            list.is_empty() || list.iter().any(|pattern| pattern.matches(text))
        };
        listed(&self.family, family)
            && self.verdict.iter().any(|one| one.as_str() == verdict)
            && (self.os.is_empty() || listed(&self.os, os))
            && fits(&self.os_version, os_version)
            && fits(&self.release, release.as_str())
    }
}
