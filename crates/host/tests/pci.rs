//! The PCI layer of a host: what is read, what cannot be, and what a snapshot tells of it.

#[path = "common/sysfs.rs"]
mod sysfs;

use fastpath_host::pci::{
    Acs, Address, Architecture, Got, Link, P2pMem, Place, PortType, Role, read,
};
use sysfs::{DOWNSTREAM, Device, REDIRECT, ROOT_PORT, Sysfs, UPSTREAM};

fn address(text: &str) -> Address {
    Address::new(text).unwrap()
}

/// A GPU and a drive below one switch on an AMD host, with everything that is read.
fn switch() -> Sysfs {
    let host = Sysfs::new();
    let port = |kind| Device::port(0x1000, 0xc010, kind);
    let gpu = Device::gpu()
        .group(7)
        .file("numa_node", "1\n")
        .file("current_link_speed", "16.0 GT/s PCIe\n")
        .file("current_link_width", "8\n")
        .file("max_link_speed", "32.0 GT/s PCIe\n")
        .file("max_link_width", "16\n")
        .file("resource", "0x0000028000000000 0x00000280ffffffff 0x000000000014220c\n0x0 0x0 0x0\n")
        .file("p2pmem/size", "4294967296\n")
        .file("p2pmem/available", "4290772992\n")
        .file("p2pmem/published", "1\n");
    host.zen()
        .command_line("BOOT_IMAGE=/vmlinuz root=UUID=secret-id ro iommu=pt host=secret-host")
        .device("pci0000:00/0000:00:00.0", &Device::host_bridge(0x1022, 0x14a4))
        .device("pci0000:00/0000:00:01.1", &port(ROOT_PORT))
        .device("pci0000:00/0000:00:01.1/0000:01:00.0", &port(UPSTREAM))
        .device(
            "pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0",
            &port(DOWNSTREAM).acs(REDIRECT),
        )
        .device("pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:01.0", &port(DOWNSTREAM))
        .device("pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0", &gpu)
        .device(
            "pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:01.0/0000:04:00.0",
            &Device::nvme().group(9),
        )
        .device("pci0000:00/0000:00:1f.0", &Device::new(0x8086, 0x1, 0x06_0100))
        .link(
            "sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0/driver",
            "../../../../../../bus/pci/drivers/amdgpu",
        )
        .group(7, "DMA-FQ")
        .group(9, "identity");
    host
}

#[test]
fn what_the_decision_rests_on_is_read() {
    let facts = read(&switch().tree());
    assert_eq!(facts.listed, Got::Value(8));
    assert_eq!(facts.functions.len(), 7, "the bridge without a device below it is left out");
    let gpu = facts.function(&address("0000:03:00.0")).unwrap();
    let bridges = ["0000:00:01.1", "0000:01:00.0", "0000:02:00.0"].map(address).to_vec();
    assert_eq!(gpu.role, Role::Gpu);
    assert_eq!(gpu.place, Got::Value(Place { root: "pci0000:00".to_owned(), bridges }));
    assert_eq!((gpu.id().as_str(), gpu.class.value()), ("1002:74a1", Some(&0x12_0000)));
    assert_eq!(gpu.numa_node, Some(1));
    assert_eq!(gpu.link, Link { speed: Some(160), width: Some(8) });
    assert_eq!(gpu.max_link, Link { speed: Some(320), width: Some(16) });
    assert_eq!(gpu.driver, Got::Value("amdgpu".to_owned()));
    assert_eq!(gpu.iommu_group, Got::Value(7));
    assert_eq!(facts.group(gpu).unwrap().kind, Got::Value("DMA-FQ".to_owned()));
    assert_eq!(
        (gpu.bars.len(), gpu.bars[0].start, gpu.bars[0].size),
        (1, 0x280_0000_0000, 1 << 32)
    );
    let memory = P2pMem { size: 1 << 32, available: Some(4_290_772_992), published: Some(true) };
    assert_eq!(gpu.p2pmem, Got::Value(memory));
    let port = facts.function(&address("0000:02:00.0")).unwrap();
    assert_eq!((port.role, port.port()), (Role::Bridge, Some(PortType::DownstreamPort)));
    assert_eq!((port.acs(), port.acs().redirects()), (Acs::Control(0x1d), Some(true)));
    let nvme = facts.function(&address("0000:04:00.0")).unwrap();
    assert_eq!((nvme.role, nvme.acs(), &nvme.p2pmem), (Role::Nvme, Acs::Absent, &Got::Missing));
    assert_eq!(facts.root("pci0000:00").unwrap().first, Some(address("0000:00:00.0")));
    assert_eq!(facts.iommu, Got::Value(true));
    assert_eq!(facts.machine.architecture, Some(Architecture::X86));
    assert_eq!(facts.machine.cpu_vendor, Got::Value("AuthenticAMD".to_owned()));
    assert_eq!(facts.machine.cpu_family, Some(25));
    let lines: Vec<_> = facts.machine.cpu_source.iter().map(|one| one.line).collect();
    assert_eq!(lines, [Some(2), Some(3)]);
    let parameters: Vec<&str> =
        facts.machine.parameters.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(parameters, ["iommu=pt"]);
}
