//! The module `amdgpu`: whether it is loaded, and where it comes from.

use fastpath_knowledge::Release;
use serde::{Deserialize, Serialize};

use super::{Small, evidence};
use crate::tree::{FileKind, ReadError};
use crate::witness::Evidence;

const MODULE: &str = "/sys/module/amdgpu";

/// Whether a driver runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loaded {
    /// As a module.
    Module,
    /// As a part of the kernel image.
    BuiltIn,
    /// It does not.
    No,
    /// The root does not tell.
    #[default]
    Unknown,
}

/// The module `amdgpu` of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmdgpuModule {
    /// Whether it is loaded.
    pub loaded: Loaded,
    /// `version`: AMD's out-of-tree driver has one, `6.16.13`; the kernel's own driver has none.
    pub version: Option<Evidence>,
    /// `srcversion`, a digest of its source.
    pub srcversion: Option<String>,
    /// `taint`: `O` stands for a module from outside the kernel's tree. Empty for the kernel's own.
    /// Source: <https://docs.kernel.org/admin-guide/tainted-kernels.html>.
    pub taint: Option<Evidence>,
    /// Module files below the places for out-of-tree modules of the running kernel.
    pub files: Vec<String>,
}

impl AmdgpuModule {
    /// Whether what is loaded comes from outside the kernel's tree; `None` if that cannot be told.
    pub fn is_out_of_tree(&self) -> Option<bool> {
        let taint = self.taint.as_ref().and_then(|taint| taint.text.as_deref());
        match (taint, &self.version) {
            _ if self.loaded == Loaded::BuiltIn => Some(false),
            (Some(taint), _) if taint.contains('O') => Some(true),
            (_, Some(_)) => Some(true),
            (Some(_), None) => Some(false),
            (None, None) => None,
        }
    }
}

pub(super) fn read(
    small: &mut Small<'_>,
    running: Option<&Release>,
    gpu_nodes: bool,
) -> AmdgpuModule {
    let loaded = match loaded(small) {
        // Its topology of GPUs is made by nothing else.
        Loaded::Unknown if gpu_nodes => Loaded::Module,
        loaded => loaded,
    };
    if !matches!(loaded, Loaded::Module | Loaded::BuiltIn) {
        return AmdgpuModule { loaded, files: files(small, running), ..AmdgpuModule::default() };
    }
    let mut attribute = |name: &str| {
        let path = format!("{MODULE}/{name}");
        let text = small.line(&path)?;
        Some(evidence(path, 1, &text))
    };
    AmdgpuModule {
        loaded,
        version: attribute("version"),
        srcversion: attribute("srcversion").and_then(|evidence| evidence.text),
        taint: attribute("taint"),
        files: files(small, running),
    }
}

fn loaded(small: &mut Small<'_>) -> Loaded {
    match small.tree.kind(MODULE) {
        Ok(_) => {}
        Err(ReadError::Missing) => {
            let modules = small.tree.kind("/sys/module");
            return match small.ask("/sys/module", modules) {
                Some(FileKind::Directory) => Loaded::No,
                _ => Loaded::Unknown,
            };
        }
        Err(error) => {
            small.ask::<()>(MODULE, Err(error));
            return Loaded::Unknown;
        }
    }
    // What is in the image has parameters, but is not loaded and not counted.
    let marks = ["initstate", "refcnt", "taint"];
    let is_module = marks.iter().any(|mark| small.tree.kind(&format!("{MODULE}/{mark}")).is_ok());
    if is_module { Loaded::Module } else { Loaded::BuiltIn }
}

/// Where distributions put modules from outside the tree. DKMS: `updates/dkms` on Debian and Ubuntu, `extra` on Red Hat's
/// family, `updates` on SUSE's.
const DIRECTORIES: [&str; 4] = ["updates/dkms", "updates", "extra", "extra/amdgpu"];

const SUFFIXES: [&str; 4] = ["", ".zst", ".xz", ".gz"];

fn files(small: &mut Small<'_>, running: Option<&Release>) -> Vec<String> {
    let Some(release) = running else { return Vec::new() };
    let mut found = Vec::new();
    for directory in DIRECTORIES {
        for suffix in SUFFIXES {
            let path = format!("/lib/modules/{release}/{directory}/amdgpu.ko{suffix}");
            let kind = small.tree.kind(&path);
            if small.ask(&path, kind).is_some() {
                found.push(path);
            }
        }
    }
    found
}
