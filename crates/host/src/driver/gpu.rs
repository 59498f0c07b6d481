//! What the driver shows in the PCI directory of a GPU, besides what the PCI layer reads there.

use serde::{Deserialize, Serialize};

use super::Small;
use crate::pci::Address;

/// What amdgpu says of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its PCI function.
    pub gpu: Address,
    /// `mem_info_vram_total`, in bytes.
    pub vram: Option<u64>,
    /// `mem_info_vis_vram_total`: how much of it the CPU reaches through the BAR, in bytes.
    pub visible_vram: Option<u64>,
    /// Its directory has what the kernel puts into every one, so that what is not in it is not there.
    pub whole: bool,
    /// `current_compute_partition`, `SPX` for an undivided GPU.
    pub compute_partition: Option<String>,
    /// `current_memory_partition`, `NPS1` for undivided memory.
    pub memory_partition: Option<String>,
}

pub(super) fn read(small: &mut Small<'_>, gpu: &Address) -> Gpu {
    let subsystem = gpu.file("subsystem");
    let link = small.tree.link(&subsystem);
    Gpu {
        gpu: gpu.clone(),
        vram: small.number(&gpu.file("mem_info_vram_total")),
        visible_vram: small.number(&gpu.file("mem_info_vis_vram_total")),
        whole: small.ask(&subsystem, link).is_some(),
        compute_partition: small.line(&gpu.file("current_compute_partition")),
        memory_partition: small.line(&gpu.file("current_memory_partition")),
    }
}
