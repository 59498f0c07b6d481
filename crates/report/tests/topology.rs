//! The topology of a host as text and as a picture.

#[path = "../../host/tests/common/sysfs.rs"]
mod sysfs;

use fastpath_host::pci::{self, PciFacts};
use fastpath_knowledge::{Knowledge, Release};
use fastpath_report::{topology_svg, topology_text};
use fastpath_verdict::path::{PathVerdict, judge};
use sysfs::{DOWNSTREAM, Device, REDIRECT, ROOT_PORT, Sysfs, UPSTREAM};

/// A server of two sockets: a switch with a GPU, two drives and an adapter, and a drive of the other socket.
fn server() -> (PciFacts, Vec<PathVerdict>) {
    const UP: &str = "pci0000:00/0000:00:01.1/0000:01:00.0";
    let host = Sysfs::new();
    let link = |device: Device, now: &str, lanes: &str| {
        device
            .file("current_link_speed", format!("{now} GT/s PCIe\n"))
            .file("current_link_width", format!("{lanes}\n"))
            .file("max_link_speed", "32.0 GT/s PCIe\n")
            .file("max_link_width", "16\n")
    };
    let port = |kind| Device::port(0x1000, 0xc030, kind);
    let node = |device: Device, node: &str| device.file("numa_node", format!("{node}\n"));
    host.intel()
        .device("pci0000:00/0000:00:00.0", &Device::host_bridge(0x8086, 0x3e30))
        .device(
            "pci0000:00/0000:00:01.1",
            &link(Device::port(0x8086, 0x352a, ROOT_PORT).acs(REDIRECT), "32.0", "16"),
        )
        .device(UP, &port(UPSTREAM))
        .device(&format!("{UP}/0000:02:00.0"), &link(port(DOWNSTREAM), "32.0", "16"))
        .device(&format!("{UP}/0000:02:01.0"), &port(DOWNSTREAM))
        .device(&format!("{UP}/0000:02:02.0"), &port(DOWNSTREAM).acs(REDIRECT))
        .device(&format!("{UP}/0000:02:03.0"), &port(DOWNSTREAM).config(64))
        .device(
            &format!("{UP}/0000:02:00.0/0000:03:00.0"),
            &node(link(Device::gpu().group(30), "32.0", "16"), "0"),
        )
        .device(
            &format!("{UP}/0000:02:01.0/0000:04:00.0"),
            &node(Device::nvme().group(31), "0")
                .file("current_link_speed", "16.0 GT/s PCIe\n")
                .file("current_link_width", "2\n")
                .file("max_link_speed", "16.0 GT/s PCIe\n")
                .file("max_link_width", "4\n"),
        )
        .device(&format!("{UP}/0000:02:02.0/0000:05:00.0"), &node(Device::nvme().group(32), "0"))
        .device(
            &format!("{UP}/0000:02:03.0/0000:06:00.0"),
            &node(Device::new(0x15b3, 0x1021, 0x02_0700), "0"),
        )
        .device("pci0000:80/0000:80:00.0", &Device::host_bridge(0x8086, 0x3e30))
        .device("pci0000:80/0000:80:01.1", &Device::port(0x8086, 0x352a, ROOT_PORT))
        .device("pci0000:80/0000:80:01.1/0000:81:00.0", &node(Device::nvme().group(90), "1"))
        .group(30, "DMA-FQ")
        .group(31, "DMA-FQ")
        .group(32, "identity")
        .group(90, "DMA-FQ");
    let facts = pci::read(&host.tree());
    let knowledge = Knowledge::embedded().unwrap();
    let paths = judge(&facts, Release::new("6.8.0-142-generic").as_ref(), &knowledge).paths;
    (facts, paths)
}

fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[test]
fn text_shows_the_tree_with_links_and_verdicts() {
    let (facts, paths) = server();
    let text = plain(&topology_text(&facts, &paths, 160));
    let expected = "\
root bus 0000:00  host bridge 8086:3e30 at 0000:00:00.0
└─ 0000:00:01.1 root port  8086:352a  32 GT/s x16  ACS redirect on
   └─ 0000:01:00.0 switch upstream port  1000:c030
      ├─ 0000:02:00.0 switch port  1000:c030  32 GT/s x16  ACS redirect off
      │  └─ 0000:03:00.0 GPU  1002:74a1  32 GT/s x16  NUMA 0  IOMMU group 30, DMA-FQ  supported
      ├─ 0000:02:01.0 switch port  1000:c030  ACS redirect off
      │  └─ 0000:04:00.0 NVMe  144d:a80a  16 GT/s x2  of 16 GT/s x4  NUMA 0  IOMMU group 31, DMA-FQ  supported
      ├─ 0000:02:02.0 switch port  1000:c030  ACS redirect on
      │  └─ 0000:05:00.0 NVMe  144d:a80a  NUMA 0  IOMMU group 32, identity  unsupported
      └─ 0000:02:03.0 bridge  1000:c030  ACS unknown
         └─ 0000:06:00.0 network  15b3:1021  NUMA 0

root bus 0000:80  host bridge 8086:3e30 at 0000:80:00.0
└─ 0000:80:01.1 root port  8086:352a  ACS redirect off
   └─ 0000:81:00.0 NVMe  144d:a80a  NUMA 1  IOMMU group 90, DMA-FQ  unsupported
";
    assert_eq!(text, expected);
}

#[test]
fn text_keeps_to_its_width() {
    let (facts, paths) = server();
    for width in [50, 60, 80] {
        let text = plain(&topology_text(&facts, &paths, width));
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width, "{widest} > {width}:\n{text}");
    }
    let narrow = plain(&topology_text(&facts, &paths, 60));
    let gpu: Vec<&str> = narrow.lines().skip_while(|line| !line.contains("GPU")).take(2).collect();
    assert_eq!(gpu[1].trim_start_matches(['│', ' ']), "IOMMU group 30, DMA-FQ  supported");
}

#[test]
fn a_host_without_devices_says_so() {
    let text = topology_text(&PciFacts::default(), &[], 80);
    assert_eq!(text, "the PCI devices cannot be listed: not recorded in this snapshot\n");
    let svg = topology_svg(&PciFacts::default(), &[]);
    assert!(svg.contains("the PCI devices cannot be listed"));
}

#[test]
fn the_picture_is_whole_and_self_contained() {
    let (facts, paths) = server();
    let svg = topology_svg(&facts, &paths);
    if let Some(file) = std::env::var_os("TOPOLOGY_SVG") {
        std::fs::write(file, &svg).unwrap();
    }
    assert!(
        svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n")
    );
    for needed in [
        "0000:03:00.0 GPU",
        "prefers-color-scheme",
        "class=\"arc supported\"",
        "class=\"arc unsupported\"",
    ] {
        assert!(svg.contains(needed), "{needed}");
    }
    for foreign in ["href", "<script", "url(", "@import"] {
        assert!(!svg.contains(foreign), "{foreign}");
    }
    assert_eq!(svg.matches("<path class=\"arc").count(), 3 + 4, "paths and legend");
}

#[test]
fn foreign_text_cannot_break_out() {
    let (mut facts, paths) = server();
    for function in &mut facts.functions {
        function.driver = pci::Got::Value("\u{1b}[31m</text><script>x&\"\u{202e}".to_owned());
    }
    let svg = topology_svg(&facts, &paths);
    assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;x&amp;&quot;"));
    assert!(!svg.contains('\u{1b}') && !svg.contains('\u{202e}'));
    assert!(!topology_text(&facts, &paths, 80).contains("\u{1b}[31m<"));
}

#[test]
fn whatever_is_missing_markup_is_balanced() {
    let (whole, paths) = server();
    for count in 0..whole.functions.len() {
        let mut facts = whole.clone();
        facts.functions.truncate(count);
        let svg = topology_svg(&facts, &paths);
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(!topology_text(&facts, &paths, 0).is_empty());
    }
}
