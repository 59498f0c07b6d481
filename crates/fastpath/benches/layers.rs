//! What a check of all layers costs on a large host, as a whole process.
//!
//! The host is made for it: 8 GPUs and 8 NVMe drives, each pair below a switch of its own with redirection by ACS, amdgpu-dkms with
//! registered memory, 150,000 symbols, 2,000 mounts. Asked for: below 100 ms and 32 MiB. And this machine itself: below 60 ms. Run with
//! `cargo bench -p fastpath --bench layers`.

#![allow(clippy::print_stdout, reason = "a benchmark reports to a terminal")]
#![allow(clippy::unwrap_used, reason = "a host that cannot be made ends the benchmark")]

#[path = "../../host/tests/common/blocks.rs"]
mod blocks;
mod common;
#[path = "../../host/tests/common/sysfs.rs"]
mod sysfs;

use std::fmt::Write as _;
use std::path::Path;

use common::{PROGRAM, peak, turns, word};
use sysfs::{DOWNSTREAM, Device, REDIRECT, ROOT_PORT, Sysfs, UPSTREAM};

const RUNS: usize = 60;
const WARM_UP: usize = 5;
const MEMORY_RUNS: u32 = 10;

const MOST_MS: f64 = 100.0;
const MOST_KIB: u64 = 32 << 10;
const MOST_MS_HERE: f64 = 60.0;

const RELEASE: &str = "6.8.0-142-generic";

/// The large host; mounts and drives come from the builder that tests use.
fn host() -> blocks::Host {
    let host = blocks::big(2000);
    let root = host.path("/x");
    let sysfs = Sysfs::at(root.parent().unwrap());
    sysfs.zen();
    sysfs.command_line("ro quiet amd_iommu=on iommu=pt");
    sysfs.device("pci0000:00/0000:00:00.0", &Device::host_bridge(0x1022, 0x14a4));
    for pair in 0..8_u32 {
        let group = |offset: u32| pair * 4 + offset;
        let port = format!("pci0000:00/0000:00:{:02x}.1", pair + 2);
        let bus = |offset: u32| 0x20 + pair * 8 + offset;
        let up = format!("{port}/0000:{:02x}:00.0", bus(0));
        let down = |slot: u32| format!("{up}/0000:{:02x}:{slot:02x}.0", bus(1));
        sysfs.device(&port, &Device::port(0x1022, 0x14a5, ROOT_PORT).acs(REDIRECT).group(group(0)));
        sysfs.device(&up, &Device::port(0x1000, 0xc010, UPSTREAM).group(group(1)));
        for slot in 0..2 {
            let device = Device::port(0x1000, 0xc010, DOWNSTREAM).acs(REDIRECT).group(group(2));
            sysfs.device(&down(slot), &device);
        }
        let gpu = Device::gpu()
            .group(group(3))
            .file("mem_info_vram_total", "206141652992\n")
            .file("mem_info_vis_vram_total", "206141652992\n")
            .file("p2pmem/size", "206158430208\n")
            .file("p2pmem/available", "206158430208\n");
        sysfs.device(&format!("{}/0000:{:02x}:00.0", down(0), bus(2)), &gpu);
        sysfs.device(
            &format!("{}/0000:{:02x}:00.0", down(1), bus(3)),
            &Device::nvme().group(group(3)),
        );
        for offset in 0..4 {
            sysfs.group(group(offset), "identity");
        }
        let node = format!("sys/class/kfd/kfd/topology/nodes/{}", pair + 1);
        host.file(&format!("{node}/gpu_id"), format!("{}\n", 4000 + pair));
        let location = bus(2) << 8;
        let text = format!(
            "cpu_cores_count 0\nsimd_count 1216\ncapability 64\nlocation_id {location}\ndomain 0\n"
        );
        host.file(&format!("{node}/properties"), text);
    }
    for (path, text) in [
        ("proc/sys/kernel/osrelease", format!("{RELEASE}\n")),
        (
            "etc/os-release",
            "ID=ubuntu\nVERSION_ID=24.04\nPRETTY_NAME=\"Ubuntu 24.04\"\n".to_owned(),
        ),
        ("sys/module/amdgpu/version", "6.16.13\n".to_owned()),
        ("sys/module/amdgpu/initstate", "live\n".to_owned()),
        ("sys/module/amdgpu/taint", "OE\n".to_owned()),
    ] {
        host.file(path, text);
    }
    host.file(&format!("boot/config-{RELEASE}"), config());
    host.file(
        &format!("var/lib/dkms/amdgpu/6.16.13-2400000.24.04/{RELEASE}/x86_64/module/amdgpu.ko"),
        "",
    );
    host.file("proc/kallsyms", symbols());
    host
}

/// As long as a distribution's.
fn config() -> String {
    let mut text =
        String::from("# Linux/x86 6.8.0 Kernel Configuration\nCONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\n");
    for number in 0..10_000 {
        let _ = writeln!(text, "CONFIG_OPTION_{number}=m");
    }
    text.push_str("CONFIG_ZONE_DEVICE=y\nCONFIG_MAGIC_SYSRQ=y\n");
    text
}

fn symbols() -> String {
    let mut text = String::new();
    for number in 0..150_000 {
        let _ = writeln!(text, "0000000000000000 T some_symbol_of_the_kernel_{number}");
    }
    text.push_str("0000000000000000 T pci_p2pdma_add_resource\n");
    text.push_str("0000000000000000 t kfd_ais_rw_file\t[amdgpu]\n");
    text
}

fn main() {
    let host = host();
    let marker = host.path("/x");
    let root = marker.parent().unwrap_or(Path::new("/")).display().to_string();
    let large = [PROGRAM, "check", "--root", root.as_str()];
    let here = [PROGRAM, "check"];
    match turns(&[("large host", &large), ("this machine", &here)], WARM_UP, RUNS) {
        Ok([large, here]) => {
            println!("large host: {large:.1} ms, {} {MOST_MS} ms", word(large < MOST_MS));
            println!("this machine: {here:.1} ms, {} {MOST_MS_HERE} ms", word(here < MOST_MS_HERE));
        }
        Err(error) => println!("failed: {error}"),
    }
    match (0..MEMORY_RUNS).map(|_| peak(&large)).collect::<Option<Vec<u64>>>() {
        Some(peaks) => {
            let most = peaks.into_iter().max().unwrap_or_default();
            println!("peak memory: {most} KiB, {} {MOST_KIB} KiB", word(most < MOST_KIB));
        }
        None => println!("peak memory: skipped, because /usr/bin/time is not installed"),
    }
}
