//! The `amdgpu` of a kernel that does not run.

use fastpath_knowledge::Release;
use serde::{Deserialize, Serialize};

use super::evidence;
use crate::tree::{Tree, Unread, Want};
use crate::witness::Evidence;

/// What a kernel that is asked about and does not run would load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherKernel {
    /// The kernel.
    pub release: Release,
    /// The module that `depmod` has chosen for it, below `/lib/modules/RELEASE`: the line of `modules.dep` up to its colon.
    /// Source: <https://man7.org/linux/man-pages/man5/modules.dep.5.html>.
    pub module: Option<Evidence>,
    /// Why that is not known.
    pub unread: Option<Unread>,
}

impl OtherKernel {
    /// Whether that module comes from outside the kernel's tree, whose own are below `kernel`; `None` if there is none.
    pub fn is_out_of_tree(&self) -> Option<bool> {
        let module = self.module.as_ref()?.text.as_deref()?;
        Some(!module.starts_with("kernel/"))
    }
}

/// A list of all modules of a distribution has 0.5 to 1.5 MB.
const DEPENDENCIES: Want = Want::lines(16 << 20, keep_amdgpu);

pub(super) fn read(tree: &dyn Tree, release: &Release) -> OtherKernel {
    let path = format!("/lib/modules/{release}/modules.dep");
    let mut found = OtherKernel { release: release.clone(), module: None, unread: None };
    match tree.read(&path, &DEPENDENCIES) {
        Ok(content) => {
            let text = String::from_utf8_lossy(&content.bytes);
            let line = text.lines().zip(1_u32..).find(|(line, _)| !line.is_empty());
            found.module = line.map(|(line, number)| evidence(path, number, line));
        }
        Err(error) => found.unread = Some(Unread::new(&path, error)),
    }
    found
}

/// Keeps the path of amdgpu, and not what it depends on.
fn keep_amdgpu(line: &[u8], out: &mut Vec<u8>) {
    let path = line.split(|&byte| byte == b':').next().unwrap_or_default();
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if name == b"amdgpu.ko" || name.starts_with(b"amdgpu.ko.") {
        out.extend_from_slice(path);
    }
}
