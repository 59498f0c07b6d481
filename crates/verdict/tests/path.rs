//! The path layer: which GPU and which drive can reach each other.

#[path = "../../host/tests/common/sysfs.rs"]
mod sysfs;

use fastpath_host::pci;
use fastpath_knowledge::{Knowledge, MapType, Release};
use fastpath_verdict::path::{PathsVerdict, judge};
use fastpath_verdict::{Reason, Verdict};
use sysfs::{Device, ROOT_PORT, Sysfs};

fn judged(host: &Sysfs, release: &str) -> PathsVerdict {
    let knowledge = Knowledge::embedded().unwrap();
    judge(&pci::read(&host.tree()), Release::new(release).as_ref(), &knowledge)
}

/// The host of AMD's own tool's false yes: an Intel client, all files without privilege.
#[test]
fn different_root_ports_of_an_unlisted_host_bridge_are_a_no() {
    let host = Sysfs::new();
    host.intel()
        .device("pci0000:00/0000:00:00.0", &Device::host_bridge(0x8086, 0x7d1b).config(64))
        .device(
            "pci0000:00/0000:00:01.0",
            &Device::port(0x8086, 0x7ec4, ROOT_PORT).without_config(),
        )
        .device("pci0000:00/0000:00:01.0/0000:01:00.0", &Device::nvme().without_config())
        .device(
            "pci0000:00/0000:00:06.0",
            &Device::port(0x8086, 0x7ec5, ROOT_PORT).without_config(),
        )
        .device("pci0000:00/0000:00:06.0/0000:02:00.0", &Device::gpu().without_config());
    let verdict = judged(&host, "6.8.0-142-generic");
    let [path] = verdict.paths.as_slice() else { panic!("{verdict:?}") };
    assert_eq!((path.gpu.as_str(), path.nvme.as_str()), ("0000:02:00.0", "0000:01:00.0"));
    assert_eq!(path.verdict, Verdict::Unsupported);
    assert_eq!(path.reason, Reason::HostBridgeNotListed);
    assert_eq!((path.distance, path.map_type), (Some(4), Some(MapType::NotSupported)));
    assert_eq!((verdict.verdict, verdict.reason), (path.verdict, path.reason));
}
