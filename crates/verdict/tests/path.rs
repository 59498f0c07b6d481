//! The path layer: which GPU and which drive can reach each other.

#[path = "../../host/tests/common/sysfs.rs"]
mod sysfs;

use fastpath_host::pci;
use fastpath_knowledge::{Knowledge, MapType, Release};
use fastpath_verdict::path::{PathsVerdict, judge};
use fastpath_verdict::{Finding, Reason, Status, Verdict};
use sysfs::{DOWNSTREAM, Device, INTEGRATED, REDIRECT, ROOT_PORT, Sysfs, UPSTREAM};

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

/// A host to be judged.
struct Case {
    host: Sysfs,
}

/// A host bridge as first device, and everything readable.
fn below(vendor: u16, device: u16) -> Case {
    let host = Sysfs::new();
    host.device("pci0000:00/0000:00:00.0", &Device::host_bridge(vendor, device));
    Case { host }
}

impl Case {
    fn zen(self) -> Self {
        self.host.zen();
        self
    }

    fn intel(self) -> Self {
        self.host.intel();
        self
    }

    /// A GPU and a drive below root ports of their own.
    fn two_root_ports(self) -> Self {
        self.host
            .device("pci0000:00/0000:00:01.0", &Device::port(0x8086, 1, ROOT_PORT))
            .device("pci0000:00/0000:00:01.0/0000:01:00.0", &Device::gpu())
            .device("pci0000:00/0000:00:02.0", &Device::port(0x8086, 1, ROOT_PORT))
            .device("pci0000:00/0000:00:02.0/0000:02:00.0", &Device::nvme());
        self
    }

    /// Both below one switch, whose port above the GPU has this ACS control word, the drive in this IOMMU group.
    fn switch(self, port: &Device, group: Option<(u32, &str)>) -> Self {
        const SWITCH: &str = "pci0000:00/0000:00:01.0/0000:01:00.0";
        let mut nvme = Device::nvme();
        if let Some((number, kind)) = group {
            nvme = nvme.group(number);
            self.host.group(number, kind);
        }
        self.host
            .device("pci0000:00/0000:00:01.0", &Device::port(0x8086, 1, ROOT_PORT).acs(REDIRECT))
            .device(SWITCH, &Device::port(0x1000, 0xc010, UPSTREAM))
            .device(&format!("{SWITCH}/0000:02:00.0"), port)
            .device(&format!("{SWITCH}/0000:02:01.0"), &Device::port(0x1000, 0xc010, DOWNSTREAM))
            .device(&format!("{SWITCH}/0000:02:00.0/0000:03:00.0"), &Device::gpu())
            .device(&format!("{SWITCH}/0000:02:01.0/0000:04:00.0"), &nvme);
        self
    }

    fn judged(&self, release: &str) -> (Verdict, Reason, Option<MapType>) {
        let verdict = judged(&self.host, release);
        let [path] = verdict.paths.as_slice() else { panic!("{verdict:?}") };
        (path.verdict, path.reason, path.map_type)
    }
}

fn port() -> Device {
    Device::port(0x1000, 0xc010, DOWNSTREAM)
}

const NEW: &str = "6.8.0-142-generic";
const EL8: &str = "4.18.0-553.166.1.el8_10.x86_64";

const YES: Verdict = Verdict::Supported;
const NO: Verdict = Verdict::Unsupported;
const OPEN: Verdict = Verdict::Unknown;
const BUS: Option<MapType> = Some(MapType::BusAddress);
const HOST: Option<MapType> = Some(MapType::ThroughHostBridge);
const NOT: Option<MapType> = Some(MapType::NotSupported);

#[test]
fn a_common_switch_without_redirection_is_a_yes_everywhere() {
    for release in [NEW, EL8, "4.20.1", "5.3.18-150300.59-default", "7.3.4"] {
        let case = below(0x8086, 0x7d1b).intel().switch(&port(), None);
        assert_eq!(case.judged(release), (YES, Reason::CommonSwitch, BUS), "{release}");
    }
    // The root port above the switch redirects, which does not matter: traffic does not come so far.
    let verdict = judged(&below(0x8086, 0x7d1b).intel().switch(&port(), None).host, NEW);
    assert_eq!(verdict.paths[0].distance, Some(4));
}

#[test]
fn redirection_sends_traffic_to_the_host_bridge() {
    let case = |vendor, device| below(vendor, device).switch(&port().acs(REDIRECT), None);
    let refused = (NO, Reason::AcsRedirectHostBridgeNotListed, NOT);
    assert_eq!(case(0x8086, 0x7d1b).intel().judged(NEW), refused);
    assert_eq!(case(0x8086, 0x09a2).intel().judged(NEW), (YES, Reason::HostBridgeListed, HOST));
    assert_eq!(case(0x8086, 0x2f00).intel().judged(NEW), (YES, Reason::HostBridgeListed, HOST));
    assert_eq!(case(0x1022, 0x14a4).zen().judged(NEW), (YES, Reason::AmdZen, HOST));
    // EL8 refuses it whatever the host bridge is.
    assert_eq!(case(0x1022, 0x1450).zen().judged(EL8), refused);
    assert_eq!(case(0x1022, 0x1450).zen().judged("5.2.21"), refused);
    assert_eq!(case(0x1022, 0x1450).zen().judged("5.4.300"), (YES, Reason::HostBridgeListed, HOST));
    let open = (OPEN, Reason::KernelUnconfirmed, None);
    assert_eq!(case(0x1022, 0x1450).zen().judged("5.3.18"), open, "between 5.2 and 5.4");
    let verdict = judged(&case(0x8086, 0x7d1b).intel().host, NEW);
    assert_eq!(verdict.paths[0].blockers[0].as_str(), "0000:02:00.0");
    let [finding] = verdict.findings.as_slice() else { panic!("{:?}", verdict.findings) };
    assert_eq!((finding.id.as_str(), finding.status), ("path-acs-redirect", Status::Fail));
    let hint = finding.hint.as_ref().unwrap();
    assert!(hint.text.contains("pci=disable_acs_redir=0000:02:00.0"), "{}", hint.text);
    assert!(
        hint.commands.iter().any(|one| one.contains("--args=pci=disable_acs_redir=0000:02:00.0"))
    );
}

#[test]
fn a_boot_parameter_that_did_not_help_is_named() {
    let case = below(0x8086, 0x7d1b).intel().switch(&port().acs(REDIRECT), None);
    case.host.command_line(
        "ro pci=disable_acs_redir=0000:09:00.0 pci=noats pcie_acs_override=downstream",
    );
    let verdict = judged(&case.host, NEW);
    let detail = verdict.findings[0].hint.as_ref().unwrap().detail.as_deref().unwrap();
    assert!(detail.contains("has pci=disable_acs_redir=0000:09:00.0 already"), "{detail}");
    assert!(
        detail
            .ends_with("pcie_acs_override, which is given, changes IOMMU groups, not redirection."),
        "{detail}"
    );
}

/// Without redirection the path would turn round at the switch, where this kernel must not be used with a translating IOMMU.
#[test]
fn the_advice_to_switch_redirection_off_names_the_danger_of_the_kernel() {
    let detail = |release| {
        let case = below(0x8086, 0x7d1b).intel().switch(&port().acs(REDIRECT), Some((5, "DMA")));
        judged(&case.host, release).findings[0].hint.clone().unwrap().detail.unwrap()
    };
    let danger = "(CVE-2026-74277, blk-mq-dma-stale-state): boot with iommu=pt as well.";
    assert!(detail(BROKEN).ends_with(danger), "{}", detail(BROKEN));
    assert!(!detail(NEW).contains("iommu=pt"));
}

#[test]
fn several_ports_are_quoted_for_grub() {
    let case = below(0x8086, 0x7d1b).intel().switch(&port().acs(REDIRECT), None);
    let upper = Device::port(0x1000, 0xc010, UPSTREAM).acs(REDIRECT);
    case.host.file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/config", upper.bytes());
    let verdict = judged(&case.host, NEW);
    let hint = verdict.findings[0].hint.as_ref().unwrap();
    let line = r#"GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX \"pci=disable_acs_redir=0000:01:00.0;0000:02:00.0\"""#;
    assert_eq!(hint.commands.len(), 1, "{:?}", hint.commands);
    assert!(hint.commands[0].contains(line), "{}", hint.commands[0]);
}

#[test]
fn only_the_three_bits_redirect() {
    for (control, expected) in [
        (0x00, Reason::CommonSwitch),
        (0x53, Reason::CommonSwitch),
        (0x04, Reason::AcsRedirectHostBridgeNotListed),
        (0x08, Reason::AcsRedirectHostBridgeNotListed),
        (0x20, Reason::AcsRedirectHostBridgeNotListed),
    ] {
        let case = below(0x8086, 0x7d1b).intel().switch(&port().acs(control), None);
        assert_eq!(case.judged(NEW).1, expected, "{control:#x}");
    }
}

#[test]
fn host_bridges_by_processor_list_and_release() {
    let case = |vendor, device| below(vendor, device).two_root_ports();
    let listed = (YES, Reason::HostBridgeListed, HOST);
    let not = (NO, Reason::HostBridgeNotListed, NOT);
    let open = (OPEN, Reason::KernelUnconfirmed, None);
    let intel = [
        (0x7d1b, NEW, not),
        (0x7d1b, EL8, not),
        (0x2020, "5.10.262", listed),
        (0x2020, "5.4.300", not),
        (0x2020, "5.8.1", open),
        (0x09a2, NEW, listed),
        (0x09a2, "5.14.0-570.58.1.el9_6.x86_64", open),
        (0x09a2, EL8, not),
        (0x2f00, NEW, listed),
        (0x2f00, "4.20.1", not),
        (0x0b25, NEW, open),
        (0x0b25, "7.1.3", listed),
    ];
    for (device, release, expected) in intel {
        assert_eq!(
            case(0x8086, device).intel().judged(release),
            expected,
            "{device:04x} {release}"
        );
    }
    assert_eq!(case(0x10de, 0x2f95).intel().judged("7.3.4"), listed);
    let zen = (YES, Reason::AmdZen, HOST);
    for (device, release, expected) in [
        (0x14a4, NEW, zen),
        (0x14a4, "5.9", zen),
        (0x14a4, "5.8.1", open),
        (0x14a4, "5.4.1", not),
        (0x1450, EL8, listed),
        (0x1450, "5.4.1", listed),
        (0x1480, EL8, not),
        (0x14a4, "5.3.18-150300.59-default", open),
    ] {
        assert_eq!(case(0x1022, device).zen().judged(release), expected, "{device:04x} {release}");
    }
}

#[test]
fn an_iommu_stops_the_oldest_code_at_the_host_bridge() {
    let case = || below(0x1022, 0x1450).zen().two_root_ports();
    assert_eq!(case().judged(EL8), (YES, Reason::HostBridgeListed, HOST));
    let with = case();
    with.host.group(3, "identity");
    assert_eq!(with.judged(EL8), (NO, Reason::HostBridgeNotListed, NOT));
    assert_eq!(with.judged("5.4.300"), (YES, Reason::HostBridgeListed, HOST));
}

#[test]
fn other_processors_of_the_family_are_not_zen() {
    let case = |vendor: &str, family| {
        let case = below(0x1022, 0x1450).two_root_ports();
        case.host.cpu(vendor, family);
        case.judged(NEW)
    };
    let not = (NO, Reason::HostBridgeNotListed, NOT);
    assert_eq!(case("AuthenticAMD", 23), (YES, Reason::AmdZen, HOST));
    assert_eq!(case("AuthenticAMD", 26), (YES, Reason::AmdZen, HOST));
    assert_eq!(case("AuthenticAMD", 22), not);
    assert_eq!(case("HygonGenuine", 24), not);
    let nothing = below(0x1022, 0x1450).two_root_ports();
    assert_eq!(nothing.judged(NEW), (OPEN, Reason::CpuUnknown, None));
    let listed = below(0x8086, 0x09a2).two_root_ports();
    assert_eq!(listed.judged(NEW), (YES, Reason::HostBridgeListed, HOST), "either way");
    let arm = below(0x10de, 0x2f95).two_root_ports();
    arm.host.file("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
    assert_eq!(arm.judged("7.3.4"), (YES, Reason::HostBridgeListed, HOST));
    assert_eq!(arm.judged("6.12.118"), not);
}

#[test]
fn a_first_device_that_is_no_00_0_must_be_a_root_port_of_a_later_kernel() {
    let case = |kind, config| {
        let host = Sysfs::new();
        host.intel()
            .device("pci0000:00/0000:00:01.0", &Device::port(0x8086, 0x2030, kind).config(config))
            .device("pci0000:00/0000:00:01.0/0000:01:00.0", &Device::gpu())
            .device("pci0000:00/0000:00:02.0", &Device::port(0x8086, 0x2031, ROOT_PORT))
            .device("pci0000:00/0000:00:02.0/0000:02:00.0", &Device::nvme());
        Case { host }
    };
    let listed = (YES, Reason::HostBridgeListed, HOST);
    let not = (NO, Reason::HostBridgeNotListed, NOT);
    assert_eq!(case(ROOT_PORT, 4096).judged("6.1.192"), listed);
    assert_eq!(case(ROOT_PORT, 256).judged("6.1.192"), listed);
    assert_eq!(case(ROOT_PORT, 4096).judged("5.10.262"), not);
    assert_eq!(case(ROOT_PORT, 4096).judged("5.15.1"), (OPEN, Reason::KernelUnconfirmed, None));
    assert_eq!(case(INTEGRATED, 4096).judged("6.1.192"), not);
    assert_eq!(case(ROOT_PORT, 64).judged("6.1.192"), (OPEN, Reason::ConfigSpaceUnreadable, None));
    assert_eq!(case(ROOT_PORT, 64).judged("5.10.262"), not, "whatever it is");
}

#[test]
fn two_host_bridges_must_both_be_listed_and_not_only_for_themselves() {
    let case = |a: u16, b: u16| {
        let host = Sysfs::new();
        host.intel()
            .device("pci0000:00/0000:00:00.0", &Device::host_bridge(0x8086, a))
            .device("pci0000:00/0000:00:01.0", &Device::port(0x8086, 1, ROOT_PORT))
            .device("pci0000:00/0000:00:01.0/0000:01:00.0", &Device::gpu())
            .device("pci0000:80/0000:80:00.0", &Device::host_bridge(0x8086, b))
            .device("pci0000:80/0000:80:01.0", &Device::port(0x8086, 1, ROOT_PORT))
            .device("pci0000:80/0000:80:01.0/0000:81:00.0", &Device::nvme());
        Case { host }
    };
    let not = (NO, Reason::HostBridgeNotListed, NOT);
    assert_eq!(case(0x09a2, 0x09a2).judged(NEW), (YES, Reason::HostBridgeListed, HOST));
    assert_eq!(case(0x2f00, 0x2f00).judged(NEW), not);
    assert_eq!(case(0x09a2, 0x2f00).judged(NEW), not);
    assert_eq!(case(0x7d1b, 0x09a2).judged(NEW), not);
    let verdict = judged(&case(0x2f00, 0x2f00).host, NEW);
    let summary = &verdict.findings[0].summary;
    assert!(summary.contains("8086:2f00 at 0000:00:00.0"), "{summary}");
    assert!(summary.ends_with("forward only between root ports of their own"), "{summary}");
}

#[test]
fn unreadable_configuration_space_matters_only_if_the_answer_depends_on_it() {
    for device in [port().config(64), port().without_config(), port().config(128)] {
        let zen = below(0x1022, 0x14a4).zen().switch(&device, None);
        assert_eq!(zen.judged(NEW), (YES, Reason::AmdZen, None));
        let intel = below(0x8086, 0x7d1b).intel().switch(&device, None);
        assert_eq!(intel.judged(NEW), (OPEN, Reason::ConfigSpaceUnreadable, None));
        let verdict = judged(&intel.host, NEW);
        assert_eq!(verdict.findings[0].id, "path-undecided");
        let as_root = verdict.findings[0].hint.as_ref().map(|hint| hint.id.as_str());
        let expected = (device.config == Some(64)).then_some("run-as-root");
        assert_eq!(as_root, expected, "more privilege does not help with other defects");
    }
    // A port that redirects for certain decides, whatever the others do.
    let case = below(0x8086, 0x7d1b).intel().switch(&port().acs(REDIRECT), None);
    case.host.file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/config", [0xff; 4096]);
    assert_eq!(case.judged(NEW), (NO, Reason::AcsRedirectHostBridgeNotListed, NOT));
}

#[test]
fn the_release_matters_only_if_the_answer_depends_on_it() {
    let knowledge = Knowledge::embedded().unwrap();
    let without = |case: &Case| {
        let verdict = judge(&pci::read(&case.host.tree()), None, &knowledge);
        (verdict.paths[0].verdict, verdict.paths[0].reason)
    };
    let switch = below(0x8086, 0x7d1b).intel().switch(&port(), None);
    assert_eq!(without(&switch), (YES, Reason::CommonSwitch));
    let translated = below(0x8086, 0x7d1b).intel().switch(&port(), Some((5, "DMA")));
    assert_eq!(without(&translated), (OPEN, Reason::ReleaseUnknown), "it may have a defect");
    let unlisted = below(0x8086, 0x7d1b).intel().two_root_ports();
    assert_eq!(without(&unlisted), (NO, Reason::HostBridgeNotListed), "in no release");
    let zen = below(0x1022, 0x14a4).zen().two_root_ports();
    assert_eq!(without(&zen), (OPEN, Reason::ReleaseUnknown));
}

const BROKEN: &str = "6.18.7-arch1-1";

#[test]
fn a_danger_that_is_proven_for_a_path_blocks_it() {
    let case = |kind| below(0x1022, 0x14a4).zen().switch(&port(), Some((5, kind)));
    for kind in ["DMA", "DMA-FQ"] {
        assert_eq!(case(kind).judged(BROKEN), (Verdict::Blocked, Reason::Advisory, BUS), "{kind}");
    }
    let yes = (YES, Reason::CommonSwitch, BUS);
    assert_eq!(case("identity").judged(BROKEN), yes);
    for kind in ["blocked", "unmanaged", "", "junk"] {
        assert_eq!(case(kind).judged(BROKEN), (OPEN, Reason::IommuUnknown, BUS), "{kind}");
    }
    assert_eq!(case("DMA").judged("6.12.118"), yes, "before the defects");
    let without = below(0x1022, 0x14a4).zen().switch(&port(), None);
    assert_eq!(without.judged(BROKEN), yes, "no IOMMU handles the drive");
    let up = below(0x1022, 0x14a4).zen().switch(&port().acs(REDIRECT), Some((5, "DMA")));
    assert_eq!(up.judged(BROKEN), (YES, Reason::AmdZen, HOST), "through the host bridge");
    let refused = below(0x8086, 0x7d1b).intel().switch(&port().acs(REDIRECT), Some((5, "DMA")));
    assert_eq!(refused.judged(BROKEN).0, NO, "what is refused is in no danger");

    let verdict = judged(&case("DMA-FQ").host, BROKEN);
    assert_eq!(verdict.paths[0].advisories, ["CVE-2026-74277", "blk-mq-dma-stale-state"]);
    let found: Vec<_> = verdict.findings.iter().map(|one| (one.id.as_str(), one.status)).collect();
    let expected = [("CVE-2026-74277", Status::Block), ("blk-mq-dma-stale-state", Status::Block)];
    assert_eq!(found, expected);
    let group = "/sys/kernel/iommu_groups/5/type";
    assert!(verdict.findings[0].evidence.iter().any(|one| one.path == group));
    assert_eq!(verdict.findings[0].hint.as_ref().unwrap().id, "path-iommu-passthrough");
}

#[test]
fn a_danger_that_may_be_warns_and_is_no_yes() {
    // ACS could not be read, so traffic may turn round at the switch.
    let case = below(0x1022, 0x14a4).zen().switch(&port().config(64), Some((5, "DMA")));
    assert_eq!(case.judged(BROKEN), (OPEN, Reason::ConfigSpaceUnreadable, None));
    let verdict = judged(&case.host, BROKEN);
    assert_eq!(verdict.paths[0].unproven, ["CVE-2026-74277", "blk-mq-dma-stale-state"]);
    let warns = |verdict: &PathsVerdict| {
        let warned = |one: &&Finding| one.status == Status::Warn;
        verdict.findings.iter().filter(warned).map(|one| one.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(warns(&verdict), ["CVE-2026-74277", "blk-mq-dma-stale-state"]);
    // The group's type could not be read.
    let case = below(0x1022, 0x14a4).zen().switch(&port(), Some((5, "DMA")));
    std::fs::remove_file(case.host.path("sys/kernel/iommu_groups/5/type")).unwrap();
    assert_eq!(case.judged(BROKEN), (OPEN, Reason::IommuUnknown, BUS));
    assert_eq!(warns(&judged(&case.host, BROKEN)).len(), 2);
}

#[test]
fn nothing_to_judge_has_its_reason() {
    let empty = Sysfs::new();
    let verdict = judged(&empty, NEW);
    assert_eq!((verdict.verdict, verdict.reason), (OPEN, Reason::NoSysfs));
    assert_eq!(verdict.findings[0].id, "path-no-sysfs");
    let drive = Sysfs::new();
    drive.device("pci0000:00/0000:00:01.0", &Device::nvme());
    let verdict = judged(&drive, NEW);
    assert_eq!((verdict.verdict, verdict.reason), (NO, Reason::NoGpu));
    let gpu = Sysfs::new();
    gpu.device("pci0000:00/0000:00:01.0", &Device::gpu());
    let verdict = judged(&gpu, NEW);
    assert_eq!((verdict.verdict, verdict.reason), (NO, Reason::NoNvme));
    // What a function is could not be read: it may be the drive.
    gpu.device("pci0000:00/0000:00:02.0", &Device::nvme())
        .file("sys/devices/pci0000:00/0000:00:02.0/class", "?");
    let verdict = judged(&gpu, NEW);
    assert_eq!((verdict.verdict, verdict.reason), (OPEN, Reason::TopologyUnreadable));
    let ids: Vec<_> = verdict.findings.iter().map(|one| (one.id.as_str(), one.status)).collect();
    assert_eq!(ids, [("path-undecided", Status::Unknown)]);
}

#[test]
fn a_device_that_stands_nowhere_is_not_judged() {
    let case = below(0x1022, 0x14a4).zen().two_root_ports();
    let link = case.host.path("sys/bus/pci/devices/0000:02:00.0");
    std::fs::remove_file(&link).unwrap();
    case.host.file("sys/bus/pci/devices/0000:02:00.0/class", "0x010802\n");
    assert_eq!(case.judged(NEW), (OPEN, Reason::TopologyUnreadable, None));
}

/// Eight GPUs and eight drives, all below root ports of one unlisted host bridge.
#[test]
fn many_equal_paths_make_few_findings() {
    let case = below(0x8086, 0x7d1b).intel();
    for n in 0..16 {
        let device = if n < 8 { Device::gpu() } else { Device::nvme() };
        case.host
            .device(
                &format!("pci0000:00/0000:00:{:02x}.0", n + 1),
                &Device::port(0x8086, 1, ROOT_PORT),
            )
            .device(
                &format!("pci0000:00/0000:00:{:02x}.0/0000:{:02x}:00.0", n + 1, n + 1),
                &device,
            );
    }
    let facts = pci::read(&case.host.tree());
    let knowledge = Knowledge::embedded().unwrap();
    let verdict = judge(&facts, Release::new(NEW).as_ref(), &knowledge);
    assert_eq!(verdict.paths.len(), 64);
    let [finding] = verdict.findings.as_slice() else { panic!("{:?}", verdict.findings) };
    assert_eq!(
        finding.summary,
        "each of 64 paths is refused: host bridge 8086:7d1b at 0000:00:00.0 is not in the kernel's list"
    );
}

#[test]
fn one_good_path_makes_the_layer_good() {
    let case = below(0x8086, 0x7d1b).intel().switch(&port(), None).two_more();
    let verdict = judged(&case.host, NEW);
    assert_eq!((verdict.verdict, verdict.reason), (YES, Reason::CommonSwitch));
    let found: Vec<_> = verdict.findings.iter().map(|one| (one.id.as_str(), one.status)).collect();
    assert_eq!(found, [("path-reachable", Status::Pass), ("path-host-bridge", Status::Warn)]);
    assert_eq!(
        verdict.findings[0].summary,
        "the path from 0000:04:00.0 to 0000:03:00.0 can carry peer-to-peer DMA: common-switch"
    );
}

impl Case {
    /// A drive below a root port of its own.
    fn two_more(self) -> Self {
        self.host
            .device("pci0000:00/0000:00:07.0", &Device::port(0x8086, 1, ROOT_PORT))
            .device("pci0000:00/0000:00:07.0/0000:07:00.0", &Device::nvme());
        self
    }
}

#[test]
fn a_gpu_above_what_the_kernel_maps_is_warned_of() {
    let bar =
        |start: u64| format!("{start:#018x} {:#018x} 0x000000000014220c\n", start + 0xffff_ffff);
    let case = |start: u64, extra: Option<&'static str>| {
        let mut gpu = Device::gpu().file("resource", bar(start));
        if let Some(size) = extra {
            gpu = gpu.file("p2pmem/size", size);
        }
        let case = below(0x1022, 0x14a4).zen();
        case.host
            .device("pci0000:00/0000:00:01.0", &Device::port(0x1022, 1, ROOT_PORT))
            .device("pci0000:00/0000:00:01.0/0000:01:00.0", &gpu)
            .device("pci0000:00/0000:00:02.0", &Device::nvme())
            .file("proc/iomem", "00100000-3fffffffff : System RAM\n")
            .command_line("ro quiet");
        case
    };
    let warned = |case: &Case, release: &str| {
        judged(&case.host, release).findings.iter().any(|one| one.id == "path-kaslr")
    };
    let high = 11 << 40;
    assert!(warned(&case(high, None), "6.8.0-142-generic"));
    assert!(!warned(&case(high, None), "6.15.0"), "fixed");
    assert!(!warned(&case(high - 1, None), "6.8.0-142-generic"), "within the room");
    assert!(!warned(&case(high, Some("4096\n")), "6.8.0-142-generic"), "it was registered");
    let off = case(high, None);
    off.host.command_line("ro nokaslr");
    assert!(!warned(&off, "6.8.0-142-generic"));
    let hidden = case(high, None);
    hidden.host.file("proc/iomem", "00000000-00000000 : System RAM\n");
    assert!(!warned(&hidden, "6.8.0-142-generic"), "only root is told where memory ends");
}
