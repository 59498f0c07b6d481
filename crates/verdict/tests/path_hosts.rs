//! Recorded hosts whose PCIe topology is what matters: `tests/hosts/path-*`.
//!
//! Their trees hold binary files, so they are written by code: change it here and run
//! `cargo test -p fastpath-verdict --test path_hosts -- --ignored`. What must come out stands in each `expect.json`, by hand.

#[path = "../../host/tests/common/sysfs.rs"]
mod sysfs;

use std::fs;
use std::path::{Path, PathBuf};

use fastpath_host::{DirTree, pci};
use fastpath_knowledge::{Knowledge, Release};
use fastpath_verdict::path::judge;
use serde::Deserialize;
use serde_json::{Value, json};
use sysfs::{DOWNSTREAM, Device, REDIRECT, ROOT_PORT, Sysfs, UPSTREAM};

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hosts");

/// The part of `expect.json` that is compared here.
#[derive(Deserialize)]
struct Expect {
    paths: Vec<serde_json::Map<String, Value>>,
}

#[test]
fn every_recorded_path_gets_its_verdict() {
    let knowledge = Knowledge::embedded().unwrap();
    let mut hosts: Vec<PathBuf> =
        fs::read_dir(HOSTS).unwrap().map(|one| one.unwrap().path()).collect();
    hosts.retain(|one| one.file_name().unwrap().to_str().unwrap().starts_with("path-"));
    assert_eq!(hosts.len(), TREES.len());
    for host in hosts {
        let text = fs::read_to_string(host.join("expect.json")).unwrap();
        let expect: Expect = serde_json::from_str(&text).unwrap();
        let release = fs::read_to_string(host.join("root/proc/sys/kernel/osrelease")).unwrap();
        let facts = pci::read(&DirTree::open(&host.join("root")).unwrap());
        let verdict = judge(&facts, Release::new(&release).as_ref(), &knowledge);
        assert_eq!(verdict.paths.len(), expect.paths.len(), "{}", host.display());
        for (path, expected) in verdict.paths.iter().zip(&expect.paths) {
            let found = json!({
                "gpu": path.gpu,
                "nvme": path.nvme,
                "verdict": path.verdict,
                "reason": path.reason,
                "distance": path.distance,
                "map_type": path.map_type.map(fastpath_knowledge::MapType::as_str),
            });
            for (field, value) in expected {
                assert_eq!(&found[field], value, "{}: {field} of {found}", host.display());
            }
        }
    }
}

#[test]
#[ignore = "writes the trees of recorded hosts anew"]
fn write_the_trees() {
    for (name, release, build) in TREES {
        let root = Path::new(HOSTS).join(name).join("root");
        if root.exists() {
            fs::remove_dir_all(&root).unwrap();
        }
        fs::create_dir_all(&root).unwrap();
        let host = Sysfs::at(&root);
        kernel(&host, release);
        build(&host);
    }
}

/// Name, kernel release, and what is built below `/sys`.
type Tree = (&'static str, &'static str, fn(&Sysfs));

const UBUNTU: &str = "6.8.0-142-generic";
const ARCH: &str = "6.18.7-arch1-1";
const EL8: &str = "4.18.0-553.166.1.el8_10.x86_64";

const TREES: [Tree; 22] = [
    ("path-amd-switch", UBUNTU, |host| {
        amd(host, 25);
        switch(host, AMD_PORT, &switch_port(), Some("DMA-FQ"), 4096);
    }),
    ("path-amd-switch-acs", UBUNTU, |host| {
        amd(host, 25);
        switch(host, AMD_PORT, &switch_port().acs(REDIRECT), Some("DMA-FQ"), 4096);
    }),
    ("path-amd-iommu-off", ARCH, |host| {
        amd(host, 26);
        switch(host, AMD_PORT, &switch_port(), None, 4096);
    }),
    ("path-amd-iommu-translating", ARCH, |host| {
        amd(host, 26);
        switch(host, AMD_PORT, &switch_port(), Some("DMA-FQ"), 4096);
    }),
    ("path-amd-iommu-identity", ARCH, |host| {
        amd(host, 26);
        host.command_line("root=/dev/nvme0n1p2 rw iommu=pt");
        switch(host, AMD_PORT, &switch_port(), Some("identity"), 4096);
    }),
    ("path-amd-iommu-acs", ARCH, |host| {
        amd(host, 26);
        switch(host, AMD_PORT, &switch_port().acs(REDIRECT), Some("DMA-FQ"), 4096);
    }),
    ("path-intel-switch", UBUNTU, |host| {
        intel(host, 0x3e30);
        switch(host, INTEL_PORT, &switch_port(), None, 4096);
    }),
    ("path-intel-switch-acs", UBUNTU, |host| {
        intel(host, 0x3e30);
        switch(host, INTEL_PORT, &switch_port().acs(REDIRECT), Some("DMA"), 4096);
    }),
    ("path-intel-switch-as-user", UBUNTU, |host| {
        intel(host, 0x3e30);
        switch(host, INTEL_PORT, &switch_port(), None, 64);
    }),
    ("path-intel-xeon", UBUNTU, |host| {
        intel(host, 0x09a2);
        root_ports(host, INTEL_PORT);
    }),
    ("path-intel-client", UBUNTU, |host| {
        intel(host, 0x7d1b);
        root_ports(host, INTEL_PORT);
    }),
    ("path-intel-haswell-two-sockets", UBUNTU, |host| {
        intel(host, 0x2f00);
        host.device("pci0000:80/0000:80:00.0", &Device::host_bridge(0x8086, 0x2f01))
            .device("pci0000:00/0000:00:02.0", &port(INTEL_PORT))
            .device("pci0000:00/0000:00:02.0/0000:03:00.0", &Device::gpu().config(64))
            .device("pci0000:00/0000:00:03.0", &port(INTEL_PORT))
            .device("pci0000:00/0000:00:03.0/0000:04:00.0", &Device::nvme().config(64))
            .device("pci0000:80/0000:80:02.0", &port(INTEL_PORT))
            .device("pci0000:80/0000:80:02.0/0000:81:00.0", &Device::nvme().config(64));
    }),
    ("path-intel-vmd", UBUNTU, |host| {
        intel(host, 0x09a2);
        let vmd = Device::new(0x8086, 0x28c0, 0x01_0400).config(64);
        host.device("pci0000:00/0000:00:05.5", &vmd)
            .device("pci0000:00/0000:00:02.0", &port(INTEL_PORT))
            .device("pci0000:00/0000:00:02.0/0000:03:00.0", &Device::gpu().config(64))
            .device("pci0000:00/0000:00:05.5/pci10000:00/10000:00:02.0", &port(INTEL_PORT))
            .device(
                "pci0000:00/0000:00:05.5/pci10000:00/10000:00:02.0/10000:01:00.0",
                &Device::nvme().config(64),
            );
    }),
    ("path-zen-root-ports", UBUNTU, |host| {
        amd(host, 23);
        root_ports(host, AMD_PORT);
    }),
    ("path-zen-as-user", UBUNTU, |host| {
        amd(host, 25);
        switch(host, AMD_PORT, &switch_port(), Some("DMA-FQ"), 64);
    }),
    ("path-zen-domains", UBUNTU, |host| {
        amd(host, 25);
        host.device("pci0001:00/0001:00:00.0", &Device::host_bridge(0x1022, 0x14a4))
            .device("pci0001:00/0001:00:01.1", &port(AMD_PORT))
            .device("pci0001:00/0001:00:01.1/0001:01:00.0", &Device::gpu().config(64))
            .device("pci0002:00/0002:00:00.0", &Device::host_bridge(0x1022, 0x14a4))
            .device("pci0002:00/0002:00:01.1", &port(AMD_PORT))
            .device("pci0002:00/0002:00:01.1/0002:01:00.0", &Device::nvme().config(64));
    }),
    ("path-hygon", UBUNTU, |host| {
        host.cpu("HygonGenuine", 24)
            .device("pci0000:00/0000:00:00.0", &Device::host_bridge(0x1d94, 0x1450));
        root_ports(host, (0x1d94, 0x1453));
    }),
    ("path-two-switches", UBUNTU, |host| {
        const UP: &str = "pci0000:00/0000:00:01.0/0000:01:00.0";
        const LOWER: &str = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0";
        intel(host, 0x3e30);
        host.device("pci0000:00/0000:00:01.0", &port(INTEL_PORT).acs(REDIRECT))
            .device(UP, &Device::port(0x1000, 0xc010, UPSTREAM))
            .device(&format!("{UP}/0000:02:00.0"), &switch_port())
            .device(LOWER, &Device::port(0x1000, 0xc010, UPSTREAM))
            .device(&format!("{LOWER}/0000:04:00.0"), &switch_port())
            .device(&format!("{LOWER}/0000:04:00.0/0000:05:00.0"), &Device::gpu())
            .device(&format!("{UP}/0000:02:01.0"), &switch_port())
            .device(&format!("{UP}/0000:02:01.0/0000:06:00.0"), &Device::nvme());
    }),
    ("path-root-port-first", UBUNTU, root_port_first),
    ("path-root-port-first-old", "5.10.209", root_port_first),
    ("path-el8-zen-2", EL8, |host| {
        host.cpu("AuthenticAMD", 23)
            .device("pci0000:40/0000:40:00.0", &Device::host_bridge(0x1022, 0x1480))
            .device("pci0000:40/0000:40:01.1", &port(AMD_PORT))
            .device("pci0000:40/0000:40:01.1/0000:41:00.0", &Device::gpu().config(64))
            .device("pci0000:40/0000:40:03.1", &port(AMD_PORT))
            .device("pci0000:40/0000:40:03.1/0000:43:00.0", &Device::nvme().config(64));
    }),
    ("path-nvidia-host", "7.3.4+deb13-amd64", |host| {
        host.file("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n")
            .device("pci0008:00/0008:00:00.0", &Device::host_bridge(0x10de, 0x2f95));
        host.device("pci0008:00/0008:00:01.0", &port((0x10de, 0x2f96)))
            .device("pci0008:00/0008:00:01.0/0008:01:00.0", &Device::gpu().config(64))
            .device("pci0008:00/0008:00:02.0", &port((0x10de, 0x2f96)))
            .device("pci0008:00/0008:00:02.0/0008:02:00.0", &Device::nvme().config(64));
    }),
];

const AMD_PORT: (u16, u16) = (0x1022, 0x14ab);
const INTEL_PORT: (u16, u16) = (0x8086, 0x7ec4);

/// A port of the root complex, as a user without privilege sees it.
fn port((vendor, device): (u16, u16)) -> Device {
    Device::port(vendor, device, ROOT_PORT).config(64)
}

fn switch_port() -> Device {
    Device::port(0x1000, 0xc010, DOWNSTREAM)
}

fn amd(host: &Sysfs, family: u32) {
    host.cpu("AuthenticAMD", family)
        .device("pci0000:00/0000:00:00.0", &Device::host_bridge(0x1022, 0x14a4));
}

fn intel(host: &Sysfs, bridge: u16) {
    host.intel().device("pci0000:00/0000:00:00.0", &Device::host_bridge(0x8086, bridge));
}

/// A GPU and a drive below root ports of their own.
fn root_ports(host: &Sysfs, kind: (u16, u16)) {
    host.device("pci0000:00/0000:00:01.0", &port(kind))
        .device("pci0000:00/0000:00:01.0/0000:01:00.0", &Device::nvme().config(64))
        .device("pci0000:00/0000:00:06.0", &port(kind))
        .device("pci0000:00/0000:00:06.0/0000:02:00.0", &Device::gpu().config(64));
}

/// A GPU and a drive below one switch. `above` is the port above the GPU, `kind` the type of the drive's IOMMU group, `length` how
/// much of configuration space is shown.
fn switch(host: &Sysfs, root: (u16, u16), above: &Device, kind: Option<&str>, length: usize) {
    const UP: &str = "pci0000:00/0000:00:01.0/0000:01:00.0";
    let shown = |device: Device| device.config(length);
    let grouped = |device: Device, group: u32| match kind {
        Some(kind) => {
            host.group(group, kind);
            device.group(group)
        }
        None => device,
    };
    host.device("pci0000:00/0000:00:01.0", &port(root).config(length).acs(REDIRECT))
        .device(UP, &shown(Device::port(0x1000, 0xc010, UPSTREAM)))
        .device(&format!("{UP}/0000:02:00.0"), &shown(above.clone()))
        .device(&format!("{UP}/0000:02:01.0"), &shown(switch_port()))
        .device(&format!("{UP}/0000:02:00.0/0000:03:00.0"), &grouped(shown(Device::gpu()), 30))
        .device(&format!("{UP}/0000:02:01.0/0000:04:00.0"), &grouped(shown(Device::nvme()), 31));
}

/// A Skylake-E root bus without a device 00.0.
fn root_port_first(host: &Sysfs) {
    host.intel()
        .device("pci0000:17/0000:17:02.0", &Device::port(0x8086, 0x2032, ROOT_PORT))
        .device("pci0000:17/0000:17:02.0/0000:18:00.0", &Device::gpu().config(64))
        .device("pci0000:17/0000:17:03.0", &Device::port(0x8086, 0x2033, ROOT_PORT))
        .device("pci0000:17/0000:17:03.0/0000:19:00.0", &Device::nvme().config(64));
}

/// What says which kernel runs and how it was built.
fn kernel(host: &Sysfs, release: &str) {
    let (name, id, version) = match release {
        UBUNTU => ("Ubuntu 24.04.4 LTS", "ubuntu", "VERSION_ID=\"24.04\"\n"),
        ARCH => ("Arch Linux", "arch", ""),
        EL8 => ("Red Hat Enterprise Linux 8.10 (Ootpa)", "rhel", "VERSION_ID=\"8.10\"\n"),
        _ => ("Debian GNU/Linux 13 (trixie)", "debian", "VERSION_ID=\"13\"\n"),
    };
    let option =
        if release == EL8 { "# CONFIG_PCI_P2PDMA is not set" } else { "CONFIG_PCI_P2PDMA=y" };
    let base = release.split(['-', '+']).next().unwrap();
    let arch = if release.starts_with("7.3") { "arm64" } else { "x86" };
    let config = format!(
        "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/{arch} {base} Kernel Configuration\n#\n\
         CONFIG_64BIT=y\nCONFIG_ZONE_DEVICE=y\nCONFIG_PCI=y\n{option}\nCONFIG_DEBUG_KERNEL=y\nCONFIG_MAGIC_SYSRQ=y\n"
    );
    host.file("etc/os-release", format!("PRETTY_NAME=\"{name}\"\nID={id}\n{version}"))
        .file(&format!("boot/config-{release}"), config)
        .file("proc/sys/kernel/osrelease", format!("{release}\n"))
        .command_line("root=UUID=00000000-0000-0000-0000-000000000000 ro quiet");
}
