//! The driver layer on small trees: the right verdict for each GPU, for the right reason.

#![allow(missing_docs, reason = "a test has no users")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use fastpath_host::DirTree;
use fastpath_host::driver::{self, DriverFacts};
use fastpath_host::pci::{self, Address, PciFacts};
use fastpath_knowledge::{Knowledge, Release};
use fastpath_verdict::driver::{DriverVerdict, judge};
use fastpath_verdict::{Reason, Status, Verdict, finding, hints};

const RELEASE: &str = "6.8.0-142-generic";
const A: &str = "0000:02:00.0";
const B: &str = "0000:43:00.0";
const TRUSTED: &str = "6.18.2-2400000.24.04";
const OLD_BIT: &str = "6.16.13-2278356.24.04";
const WITHOUT: &str = "6.14.14-2212064.24.04";
const GIB: u64 = 1 << 30;

/// A host in a temporary directory.
struct Host {
    root: tempfile::TempDir,
    gpus: Vec<Address>,
}

impl Host {
    /// A host with sysfs and no GPU.
    fn new() -> Self {
        let host = Self { root: tempfile::tempdir().unwrap(), gpus: Vec::new() };
        for directory in ["/sys/bus/pci/devices", "/sys/module/nvme"] {
            fs::create_dir_all(host.at(directory)).unwrap();
        }
        host
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn link(self, path: &str, target: &str) -> Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    fn without(self, path: &str) -> Self {
        let path = self.at(path);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        self
    }

    /// AMD's driver: the module it leaves in sysfs, its build by DKMS, its symbols.
    fn dkms(self, version: &str) -> Self {
        let base = version.split('-').next().unwrap().to_owned();
        let build = format!("/var/lib/dkms/amdgpu/{version}/{RELEASE}/x86_64/module/amdgpu.ko.zst");
        self.file("/sys/module/amdgpu/version", &format!("{base}\n"))
            .file("/sys/module/amdgpu/taint", "OE\n")
            .file("/sys/module/amdgpu/initstate", "live\n")
            .file(&build, "")
    }

    /// The kernel's own driver.
    fn in_tree(self) -> Self {
        self.file("/sys/module/amdgpu/taint", "\n").file("/sys/module/amdgpu/initstate", "live\n")
    }

    fn symbols(self, names: &[&str]) -> Self {
        let line = |name: &&str| format!("ffffffffc0a0b0c0 t {name}\t[amdgpu]\n");
        let lines = names.iter().map(line).collect::<Vec<_>>().concat();
        self.file("/proc/kallsyms", &format!("ffffffff81000000 T pci_enable_device\n{lines}"))
    }

    fn ais_symbols(self) -> Self {
        self.symbols(&["kgd2kfd_probe", "kfd_ais_rw_file"])
    }

    /// A large-BAR GPU bound to amdgpu, with a node of KFD's that has this capability.
    fn gpu(mut self, address: &str, capability: u64) -> Self {
        let number = self.gpus.len() + 1;
        self.gpus.push(Address::new(address).unwrap());
        let directory = format!("/sys/bus/pci/devices/{address}");
        let bar = format!("0x{:016x} 0x{:016x} 0x{:016x}\n", 64 * GIB, 80 * GIB - 1, 0x14_220c);
        let bus = u64::from_str_radix(&address[5..7], 16).unwrap();
        let properties = format!(
            "cpu_cores_count 0\nsimd_count 304\ncapability {capability}\nlocation_id {}\ndomain 0\nunique_id 123456789\n",
            bus << 8
        );
        let nodes = "/sys/class/kfd/kfd/topology/nodes";
        self.file(&format!("{directory}/vendor"), "0x1002\n")
            .file(&format!("{directory}/device"), "0x74a1\n")
            .file(&format!("{directory}/class"), "0x120000\n")
            .file(&format!("{directory}/resource"), &bar)
            .file(&format!("{directory}/mem_info_vram_total"), &format!("{}\n", 16 * GIB))
            .file(&format!("{directory}/mem_info_vis_vram_total"), &format!("{}\n", 16 * GIB))
            .link(&format!("{directory}/subsystem"), "../../../../bus/pci")
            .link(&format!("{directory}/driver"), "../../../../bus/pci/drivers/amdgpu")
            .file(
                &format!("{nodes}/0/properties"),
                "cpu_cores_count 64\nsimd_count 0\ncapability 0\n",
            )
            .file(&format!("{nodes}/{number}/properties"), &properties)
            .file(&format!("{nodes}/{number}/gpu_id"), "4711\n")
    }

    fn of(self, address: &str, name: &str, text: &str) -> Self {
        self.file(&format!("/sys/bus/pci/devices/{address}/{name}"), text)
    }

    fn p2pmem(self, address: &str) -> Self {
        self.of(address, "p2pmem/size", &format!("{}\n", 16 * GIB))
            .of(address, "p2pmem/available", "0\n")
            .of(address, "p2pmem/published", "0\n")
    }

    fn facts(&self) -> (DriverFacts, PciFacts) {
        let tree = DirTree::open(Path::new(self.root.path())).unwrap();
        let pci = pci::read(&tree);
        (driver::read(&tree, &pci, Release::new(RELEASE).as_ref(), &[]), pci)
    }

    fn judge(&self) -> DriverVerdict {
        let (facts, pci) = self.facts();
        judge(&facts, &pci, &Knowledge::embedded().unwrap())
    }
}

fn of_gpus(verdict: &DriverVerdict) -> Vec<(&str, Verdict, Reason)> {
    verdict.gpus.iter().map(|one| (one.gpu.as_str(), one.verdict, one.reason)).collect()
}

fn nothing_else() -> [&'static str; 0] {
    []
}

/// Every case that one GPU can be.
#[test]
fn one_gpu() {
    use Reason::*;
    use Verdict::*;
    let nodes = "/sys/class/kfd/kfd/topology/nodes";
    let pci = "/sys/bus/pci/devices/0000:02:00.0";
    let fine = || Host::new().dkms(TRUSTED).ais_symbols().gpu(A, 64);
    let cases: Vec<(&str, Host, Verdict, Reason)> = vec![
        ("DKMS with AIS", fine(), Supported, AisReady),
        ("and registered", fine().p2pmem(A), Supported, P2pMemoryRegistered),
        (
            "bit not set",
            Host::new().dkms(TRUSTED).ais_symbols().gpu(A, 63),
            Unsupported,
            GpuWithoutAis,
        ),
        (
            "old build, registered",
            Host::new().dkms(OLD_BIT).ais_symbols().gpu(A, 0).p2pmem(A),
            Supported,
            P2pMemoryRegistered,
        ),
        (
            "old build, the bit means nothing",
            Host::new().dkms(OLD_BIT).ais_symbols().gpu(A, 64),
            Unsupported,
            GpuWithoutAis,
        ),
        (
            "old build, nothing to see",
            Host::new().dkms(OLD_BIT).ais_symbols().gpu(A, 64).without(&format!("{pci}/subsystem")),
            Unknown,
            GpuAisUnknown,
        ),
        (
            "no symbols to see, trusted bit",
            Host::new().dkms(TRUSTED).gpu(A, 64),
            Supported,
            AisReady,
        ),
        (
            "too old",
            Host::new().dkms(WITHOUT).symbols(&["kgd2kfd_probe"]).gpu(A, 64),
            Unsupported,
            DriverTooOld,
        ),
        (
            "too old, no symbols to see",
            Host::new().dkms(WITHOUT).gpu(A, 64),
            Unsupported,
            DriverTooOld,
        ),
        (
            "new, without the symbol",
            Host::new().dkms(TRUSTED).symbols(&["kgd2kfd_probe"]).gpu(A, 64),
            Unsupported,
            DriverWithoutAis,
        ),
        (
            "without the symbol, registered all the same",
            Host::new().dkms(TRUSTED).symbols(&["kgd2kfd_probe"]).gpu(A, 64).p2pmem(A),
            Unsupported,
            DriverWithoutAis,
        ),
        (
            "look-alike symbol",
            Host::new().dkms(TRUSTED).symbols(&["kgd2kfd_probe", "kfd_ais_rw_file_x"]).gpu(A, 64),
            Unsupported,
            DriverWithoutAis,
        ),
        (
            "split symbol",
            Host::new().dkms(OLD_BIT).symbols(&["kfd_ais_rw_file.isra.0"]).gpu(A, 0).p2pmem(A),
            Supported,
            P2pMemoryRegistered,
        ),
        (
            "in-tree driver, where bit 6 is another flag",
            Host::new().in_tree().symbols(&["kgd2kfd_probe"]).gpu(A, 64),
            Unsupported,
            DriverInTree,
        ),
        (
            "in-tree driver loaded, DKMS built",
            fine()
                .without("/sys/module/amdgpu/version")
                .without("/sys/module/amdgpu/taint")
                .file("/sys/module/amdgpu/taint", "\n")
                .symbols(&["kgd2kfd_probe"]),
            Unsupported,
            DriverInTree,
        ),
        (
            "built in",
            Host::new().file("/sys/module/amdgpu/parameters/noretry", "0").gpu(A, 64),
            Unsupported,
            DriverInTree,
        ),
        ("not loaded", Host::new().gpu(A, 64).without(nodes), Unsupported, AmdgpuNotLoaded),
        (
            "virtual, from the host",
            fine().link(&format!("{pci}/physfn"), "../0000:01:00.0"),
            Unsupported,
            GpuVirtualFunction,
        ),
        (
            "virtual, in the guest",
            fine().of(A, "device", "0x74b5\n"),
            Unsupported,
            GpuVirtualFunction,
        ),
        (
            "APU",
            fine().file(
                &format!("{nodes}/1/properties"),
                "cpu_cores_count 16\nsimd_count 24\ncapability 64\nlocation_id 512\n",
            ),
            Unsupported,
            GpuApu,
        ),
        (
            "XGMI to the processor",
            fine().file(
                &format!("{nodes}/1/io_links/0/properties"),
                "type 11\nnode_from 1\nnode_to 0\n",
            ),
            Unsupported,
            GpuXgmiToCpu,
        ),
        (
            "XGMI to another GPU",
            fine().file(
                &format!("{nodes}/1/io_links/0/properties"),
                "type 11\nnode_from 1\nnode_to 2\n",
            ),
            Supported,
            AisReady,
        ),
        (
            "PCIe to the processor",
            fine().file(
                &format!("{nodes}/1/io_links/0/properties"),
                "type 2\nnode_from 1\nnode_to 0\n",
            ),
            Supported,
            AisReady,
        ),
        (
            "small BAR",
            fine().of(A, "mem_info_vis_vram_total", "268435456\n"),
            Unsupported,
            GpuSmallBar,
        ),
        (
            "small BAR by its size",
            fine().without(&format!("{pci}/mem_info_vis_vram_total")).of(
                A,
                "resource",
                "0xe0000000 0xefffffff 0x14220c\n",
            ),
            Unsupported,
            GpuSmallBar,
        ),
        (
            "vfio",
            fine()
                .without(&format!("{pci}/driver"))
                .link(&format!("{pci}/driver"), "../../../../bus/pci/drivers/vfio-pci"),
            Unsupported,
            GpuNotBound,
        ),
        (
            "no driver",
            fine().without(&format!("{pci}/driver")).without(nodes),
            Unsupported,
            GpuNotBound,
        ),
        (
            "DKMS directory hidden, nothing registered",
            fine().without("/var/lib/dkms"),
            Unsupported,
            GpuWithoutAis,
        ),
        (
            "no node in a topology that has others",
            fine().without(&format!("{nodes}/1")),
            Unsupported,
            GpuWithoutAis,
        ),
        (
            "two builds of the loaded version",
            fine()
                .file(
                    &format!("/var/lib/dkms/amdgpu/6.18.2-2500000.24.04/{RELEASE}/x86_64/module/x"),
                    "",
                )
                .without(&format!("{pci}/subsystem")),
            Unknown,
            GpuAisUnknown,
        ),
        (
            "a build of another version beside it",
            fine().file(
                &format!("/var/lib/dkms/amdgpu/6.16.13-2278356.24.04/{RELEASE}/x86_64/module/x"),
                "",
            ),
            Supported,
            AisReady,
        ),
        (
            "sysfs says nothing of modules",
            fine().without("/sys/module").without(nodes),
            Unknown,
            DriverUnreadable,
        ),
    ];
    for (name, host, verdict, reason) in cases {
        let judged = host.judge();
        assert_eq!(of_gpus(&judged), [(A, verdict, reason)], "{name}: {:?}", host.facts());
        assert_eq!((judged.verdict, judged.reason), (verdict, reason), "{name}");
        let passes = judged.findings.iter().any(|finding| finding.status == Status::Pass);
        assert_eq!(passes, verdict == Supported, "{name}");
    }
}

#[test]
fn without_gpus_it_matters_whether_sysfs_can_be_read() {
    let judged = Host::new().dkms(TRUSTED).judge();
    assert_eq!((judged.verdict, judged.reason), (Verdict::Unsupported, Reason::NoGpu));
    assert_eq!(judged.findings.len(), 1, "{:?}", judged.findings);
    let judged = Host::new().without("/sys").judge();
    assert_eq!((judged.verdict, judged.reason), (Verdict::Unknown, Reason::DriverUnreadable));
    assert_eq!(judged.findings.len(), 1, "{:?}", judged.findings);
}

#[test]
fn each_gpu_is_judged_for_itself_and_the_best_one_counts() {
    let host = Host::new().dkms(TRUSTED).ais_symbols().gpu(A, 64).gpu(B, 64);
    let host = host.of(A, "device", "0x74b9\n");
    let judged = host.judge();
    let expected = [
        (A, Verdict::Unsupported, Reason::GpuVirtualFunction),
        (B, Verdict::Supported, Reason::AisReady),
    ];
    assert_eq!(of_gpus(&judged), expected);
    assert_eq!((judged.verdict, judged.reason), (Verdict::Supported, Reason::AisReady));
    assert_eq!(judged.build, Some(2_400_000));
    let ids: Vec<_> = judged.findings.iter().map(|one| (one.id.as_str(), one.status)).collect();
    assert_eq!(ids, [(finding::DRIVER_GPU, Status::Pass), (finding::DRIVER_GPU, Status::Fail)]);
    assert!(judged.findings[0].summary.contains(B) && !judged.findings[0].summary.contains(A));
    assert!(judged.findings[1].summary.contains(A));
}

#[test]
fn gpus_with_one_answer_share_one_finding() {
    let mut host = Host::new().dkms(TRUSTED).ais_symbols();
    for bus in 0..16 {
        host = host.gpu(&format!("0000:{bus:02x}:00.0"), 0);
    }
    let judged = host.judge();
    assert_eq!(judged.gpus.len(), 16);
    assert_eq!(judged.findings.len(), 1, "{:?}", judged.findings);
    assert!(judged.findings[0].summary.contains("and 8 more"), "{}", judged.findings[0].summary);
}

#[test]
fn a_driver_that_would_help_is_named_before_a_gpu_that_it_would_not() {
    let host = Host::new().in_tree().gpu(A, 0).gpu(B, 0).of(A, "device", "0x74b5\n");
    assert_eq!(host.judge().reason, Reason::DriverInTree);
}

#[test]
fn a_build_for_another_kernel_never_counts() {
    let other =
        "/var/lib/dkms/amdgpu/6.18.2-2400000.24.04/6.8.0-138-generic/x86_64/module/amdgpu.ko";
    let host = Host::new().in_tree().gpu(A, 64).file(other, "");
    let judged = host.judge();
    assert_eq!((judged.reason, judged.build), (Reason::DriverInTree, None));
    let ids: Vec<&str> = judged.findings.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, [finding::DRIVER_MODULE, finding::DRIVER_OTHER_KERNEL]);
    let hint = judged.findings[0].hint.as_ref().unwrap();
    assert_eq!(hint.id, hints::BUILD_DRIVER);
    assert!(hint.commands[0].contains("dkms autoinstall"), "{hint:?}");
    // Nor when the loaded driver is AMD's, so that only its number is not known.
    let host = Host::new().dkms(TRUSTED).ais_symbols().gpu(A, 64).file(other, "");
    let host = host.without("/var/lib/dkms/amdgpu/6.18.2-2400000.24.04/6.8.0-142-generic");
    assert_eq!((host.judge().build, host.judge().reason), (None, Reason::GpuWithoutAis));
}

/// What is said of a kernel that does not run, on a host whose running kernel does AIS.
fn of_other(host: Host) -> DriverVerdict {
    let host = host.dkms(TRUSTED).ais_symbols().gpu(A, 64).p2pmem(A);
    let tree = DirTree::open(Path::new(host.root.path())).unwrap();
    let pci = pci::read(&tree);
    let other = Release::new(OTHER).unwrap();
    let facts = driver::read_for(&tree, &pci, Release::new(RELEASE).as_ref(), &other);
    assert_eq!(facts.symbols, None);
    judge(&facts, &pci, &Knowledge::embedded().unwrap())
}

const OTHER: &str = "6.8.0-138-generic";

#[test]
fn the_running_driver_says_nothing_of_a_kernel_that_does_not_run() {
    use Verdict::{Unknown, Unsupported};
    let dep = |path: &str| {
        let list = format!("kernel/fs/ext4.ko.zst: kernel/x.ko.zst\n{path}: kernel/drm.ko.zst\n");
        Host::new().file(&format!("/lib/modules/{OTHER}/modules.dep"), &list)
    };
    let dkms = "updates/dkms/amdgpu.ko.zst";
    let build = |host: Host, version: &str| {
        host.file(
            &format!("/var/lib/dkms/amdgpu/{version}/{OTHER}/x86_64/module/amdgpu.ko.zst"),
            "",
        )
    };
    for (host, expected, number, summary) in [
        (
            dep("kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst"),
            (Unsupported, Reason::DriverInTree),
            None,
            "the amdgpu of 6.8.0-138-generic is the kernel's own, which cannot do AIS",
        ),
        (
            build(dep(dkms), WITHOUT),
            (Unsupported, Reason::DriverTooOld),
            Some(2_212_064),
            "the amdgpu (build 2212064) of 6.8.0-138-generic is too old for AIS",
        ),
        (
            build(dep(dkms), TRUSTED),
            (Unknown, Reason::DriverNotRunning),
            Some(2_400_000),
            "the amdgpu (build 2400000) of 6.8.0-138-generic is AMD's; what it makes of the GPUs is seen only while it runs",
        ),
        // Built, and not what would be loaded.
        (
            build(dep("kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko"), TRUSTED),
            (Unsupported, Reason::DriverInTree),
            None,
            "the amdgpu of 6.8.0-138-generic is the kernel's own, which cannot do AIS",
        ),
        (
            dep("kernel/other.ko"),
            (Unknown, Reason::DriverNotRunning),
            None,
            "6.8.0-138-generic has no module amdgpu; it may be a part of the kernel",
        ),
        (
            Host::new(),
            (Unknown, Reason::DriverNotRunning),
            None,
            "which amdgpu 6.8.0-138-generic loads cannot be told: /lib/modules/6.8.0-138-generic/modules.dep: not there",
        ),
    ] {
        let judged = of_other(host);
        assert_eq!((judged.verdict, judged.reason), expected, "{summary}");
        assert_eq!((judged.build, judged.findings[0].summary.as_str()), (number, summary));
        let commands: Vec<&String> = judged
            .findings
            .iter()
            .filter_map(|it| it.hint.as_ref())
            .flat_map(|it| &it.commands)
            .collect();
        assert!(commands.iter().all(|it| !it.contains("uname")), "{commands:?}");
    }
    // What the GPU is holds for every kernel.
    let host = dep(dkms).of(A, "physfn/x", "");
    assert_eq!(of_other(host).reason, Reason::GpuVirtualFunction);
}

#[test]
fn partitions_of_one_gpu_are_one_gpu() {
    let nodes = "/sys/class/kfd/kfd/topology/nodes";
    let part = |capability: u64, number: u64| {
        let location = number << 28 | 0x200;
        format!(
            "cpu_cores_count 0\nsimd_count 38\ncapability {capability}\nlocation_id {location}\ndomain 0\n"
        )
    };
    let host = || Host::new().dkms(TRUSTED).ais_symbols().gpu(A, 64);
    let all = host().file(&format!("{nodes}/2/properties"), &part(64, 1));
    assert_eq!(all.facts().0.nodes_of(&all.gpus[0]).count(), 2);
    assert_eq!(all.judge().reason, Reason::AisReady);
    let some = host().file(&format!("{nodes}/2/properties"), &part(0, 1));
    assert_eq!(some.judge().reason, Reason::GpuAisUnknown);
}

#[test]
fn hints_name_commands_of_the_system_the_kernel_is_from() {
    let judged = Host::new().in_tree().gpu(A, 0).judge();
    let hint = judged.findings[0].hint.clone().unwrap();
    assert_eq!(hint.id, hints::INSTALL_DRIVER);
    assert!(hint.commands[0].starts_with("sudo apt install"), "{hint:?}");
    assert!(hint.detail.unwrap().contains("known to build for 6.8.0-142-generic"));
    let host = Host::new().in_tree().gpu(A, 0);
    let (mut facts, pci) = host.facts();
    facts.running = Release::new("5.14.0-570.58.1.el9_6.x86_64");
    let judged = judge(&facts, &pci, &Knowledge::embedded().unwrap());
    assert!(judged.findings[0].hint.as_ref().unwrap().commands[0].starts_with("sudo dnf install"));
    facts.running = Release::new("6.99.0-mine");
    let judged = judge(&facts, &pci, &Knowledge::embedded().unwrap());
    assert_eq!(judged.findings[0].hint.as_ref().unwrap().commands, nothing_else());
}

/// The recorded hosts `tests/hosts/driver-*` and `runtime-*`: what must come out stands in each `expect.json`, by hand.
#[test]
fn every_recorded_driver_gets_its_verdict() {
    #[derive(serde::Deserialize)]
    struct Expect {
        driver: serde_json::Value,
    }
    let hosts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hosts");
    let knowledge = Knowledge::embedded().unwrap();
    let mut seen = 0;
    for host in fs::read_dir(hosts).unwrap().map(|one| one.unwrap().path()) {
        let name = host.file_name().unwrap().to_str().unwrap();
        if !name.starts_with("driver-") && !name.starts_with("runtime-") {
            continue;
        }
        let text = fs::read_to_string(host.join("expect.json")).unwrap();
        let expect: Expect = serde_json::from_str(&text).unwrap();
        let tree = DirTree::open(&host.join("root")).unwrap();
        let pci = pci::read(&tree);
        let facts = driver::read(&tree, &pci, Release::new(RELEASE).as_ref(), &[]);
        let judged = judge(&facts, &pci, &knowledge);
        let found = serde_json::json!({
            "verdict": judged.verdict, "reason": judged.reason, "gpus": judged.gpus,
        });
        assert_eq!(found, expect.driver, "{name}");
        seen += 1;
    }
    assert!(seen >= 20, "{seen}");
}
