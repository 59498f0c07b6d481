//! What `ais-check` prints, to the letter, and where its answer is not ours.

#![allow(missing_docs, reason = "a test has no users")]

use std::collections::BTreeMap;
use std::path::Path;

use fastpath_host::{Asked, DirTree, Facts, Scope, gather_layers};
use fastpath_knowledge::Knowledge;
use fastpath_report::{AisCheck, AisSystem, AisVerdicts, AisVolume};
use fastpath_verdict::{Layer, Reason, Verdict, driver, runtime, volume};

fn system() -> AisSystem {
    AisSystem {
        sysname: "Linux".to_owned(),
        nodename: "node1".to_owned(),
        release: "6.8.0-142-generic".to_owned(),
        version: "#142-Ubuntu SMP".to_owned(),
        machine: "x86_64".to_owned(),
    }
}

fn volume(
    mount: &str,
    fstype: &str,
    device: &str,
    backing: Option<&str>,
    direct_io: Option<bool>,
    capable: Option<bool>,
) -> AisVolume {
    AisVolume {
        mount: mount.to_owned(),
        fstype: fstype.to_owned(),
        device: device.to_owned(),
        backing: backing.map(str::to_owned),
        direct_io,
        capable,
    }
}

#[test]
fn the_output_is_that_of_ais_check() {
    let mut answer = AisCheck {
        system: system(),
        libraries: vec![
            ("/opt/rocm-7.2.0/lib/libamdhip64.so.7.2.70200".to_owned(), true),
            ("/opt/rocm-6.4.3/lib/libamdhip64.so.6.4.60403".to_owned(), false),
        ],
        volumes: vec![
            volume("/", "ext4 (ordered)", "/dev/sda2", Some("scsi"), Some(true), Some(false)),
            volume("/data", "xfs", "/dev/nvme0n1p1", Some("nvme"), Some(true), Some(true)),
            volume("/x", "btrfs", "/dev/mapper/x", None, None, Some(false)),
            volume("/y", "xfs", "/dev/nvme1n1", Some("nvme"), None, None),
        ],
        capable: vec![Some(false), Some(true), Some(false), None],
        components: [true; 4],
        answers: [true, true, false, true],
        virtual_gpus: Vec::new(),
    };
    let volumes = "
Mounted volumes:
MOUNTPOINT  FSTYPE          DEVICE          BACKING  O_DIRECT    HIPFILE   
/           ext4 (ordered)  /dev/sda2       scsi     yes         no        
/data       xfs             /dev/nvme0n1p1  nvme     yes         yes       
/x          btrfs           /dev/mapper/x   ?        unverified  no        
/y          xfs             /dev/nvme1n1    nvme     unverified  unverified

AIS support in:
\tKernel P2PDMA support   : True
\tHIP runtime             : True
\tamdgpu                  : False
\thipFile-capable volume  : True
";
    let head = "\nLinux node1 6.8.0-142-generic #142-Ubuntu SMP x86_64\n";
    assert_eq!(answer.text(false), format!("{head}{volumes}"));
    let libraries = "
Found these HIP libraries (some may refer to the same library):
\t/opt/rocm-7.2.0/lib/libamdhip64.so.7.2.70200 (AIS supported)
\t/opt/rocm-6.4.3/lib/libamdhip64.so.6.4.60403 (AIS NOT supported)
";
    assert_eq!(answer.text(true), format!("{head}{libraries}{volumes}"));
    answer.volumes.clear();
    assert!(answer.text(false).contains("\nMounted volumes:\nNo block-backed volumes found.\n\n"));
    assert_eq!(answer.warning(), None);
    answer.virtual_gpus = vec![
        ("0000:03:00.0".to_owned(), "Instinct MI300X VF".to_owned()),
        ("0000:43:00.0".to_owned(), "unknown".to_owned()),
    ];
    let warning = "WARNING: SR-IOV virtual function GPU(s) detected: 0000:03:00.0 (Instinct MI300X VF), 0000:43:00.0 (unknown)";
    assert_eq!(answer.warning().as_deref(), Some(warning));
}

#[test]
fn the_exit_code_needs_four_answers_and_the_verdict() {
    let mut answer = AisCheck {
        system: system(),
        libraries: Vec::new(),
        volumes: Vec::new(),
        capable: Vec::new(),
        components: [true; 4],
        answers: [true; 4],
        virtual_gpus: Vec::new(),
    };
    assert_eq!(answer.exit_code(Verdict::Supported), 0);
    for verdict in [Verdict::Unknown, Verdict::Unsupported, Verdict::Blocked] {
        assert_eq!(answer.exit_code(verdict), 1);
    }
    for index in 0..4 {
        answer.answers = [true; 4];
        answer.answers[index] = false;
        assert_eq!(answer.exit_code(Verdict::Supported), 1);
    }
}

fn facts(host: &str) -> Facts {
    let hosts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hosts");
    let tree = DirTree::open(&Path::new(hosts).join(host).join("root")).unwrap();
    gather_layers(&tree, &Asked::Running, Scope::ALL, &BTreeMap::new())
}

/// The four answers for a recorded host, and the lines on which ours are others.
fn answer(host: &str, kernel: (Verdict, Reason)) -> ([bool; 4], Vec<String>) {
    let (facts, knowledge) = (facts(host), Knowledge::embedded().unwrap());
    let pci = facts.pci.as_ref().unwrap();
    let driver = driver::judge(facts.driver.as_ref().unwrap(), pci, &knowledge);
    let runtime = runtime::judge(facts.runtime.as_ref().unwrap(), &knowledge);
    let volumes = volume::judge(facts.volume.as_ref().unwrap(), driver.build, &knowledge);
    let verdicts = AisVerdicts {
        overall: (Verdict::Unsupported, Layer::Path),
        kernel,
        driver: Some(&driver),
        runtime: Some(&runtime),
        volumes: Some(&volumes),
    };
    let answer = AisCheck::new(system(), &facts, &verdicts, &knowledge, |_| Some(true));
    (answer.components, answer.differences(&facts, &verdicts))
}

#[test]
fn its_answers_are_made_by_its_own_rules() {
    let good = (Verdict::Supported, Reason::SymbolsPresent);
    // A build for another kernel, whose number makes it believe the bit of the kernel's own driver.
    let (components, lines) = answer("driver-dkms-other-kernel", good);
    assert_eq!(components, [true, false, false, false]);
    assert_eq!(
        lines,
        [
            "Kernel P2PDMA support: AMD's tool may have taken build 2400000 of amdgpu-dkms, which is for another kernel"
        ]
    );
    // Any GPU will do.
    let (components, lines) = answer("driver-mixed", good);
    assert_eq!(components, [true, false, true, false]);
    let expected = "amdgpu: AMD's tool says True, fastpath unsupported for 0000:03:00.0 (gpu-virtual-function)";
    assert_eq!(lines, [expected]);
    // So will any library.
    let (components, lines) = answer("runtime-two-versions", good);
    assert_eq!(components, [true, true, true, false]);
    assert_eq!(
        lines,
        ["HIP runtime: AMD's tool says True, fastpath unsupported (runtime-without-ais)"]
    );
    // It does not know that a kernel is blocked.
    let (_, lines) = answer("runtime-ready", (Verdict::Blocked, Reason::Advisory));
    assert_eq!(lines, ["Kernel P2PDMA support: AMD's tool says True, fastpath blocked (advisory)"]);
    // An old build: the configuration decides, and the driver's symbol says nothing of the GPU.
    let (components, lines) = answer("driver-dkms-not-registered", good);
    assert_eq!(components, [true, false, true, false]);
    assert_eq!(lines, ["amdgpu: AMD's tool says True, fastpath unsupported (gpu-without-ais)"]);
}

#[test]
fn a_volume_that_only_has_the_name_of_a_drive_is_told() {
    let (components, lines) =
        answer("volume-nvme-multipath", (Verdict::Supported, Reason::OptionY));
    assert!(components[3], "{lines:?}");
    let told = lines
        .iter()
        .any(|line| line.ends_with("AMD's tool says yes, fastpath unsupported (nvme-multipath)"));
    assert!(told, "{lines:?}");
}
