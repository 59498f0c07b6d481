//! The PCI layer of a host: what is read, what cannot be, and what a snapshot tells of it.

#[path = "common/sysfs.rs"]
mod sysfs;

use fastpath_host::pci::{
    Acs, Address, Architecture, ConfigProblem, DEVICES, Got, Link, P2pMem, PciFacts, Place,
    PortType, Role, read,
};
use fastpath_host::{Content, DirTree, Entry, FileId, FileKind, ReadError, Tree, Want};
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

#[test]
fn a_domain_below_a_function_has_a_root_bus_of_its_own() {
    let host = Sysfs::new();
    host.intel()
        .device("pci0000:00/0000:00:0e.0", &Device::new(0x8086, 0xa77f, 0x01_0400))
        .device(
            "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0",
            &Device::port(0x8086, 1, ROOT_PORT),
        )
        .device("pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0", &Device::nvme());
    let facts = read(&host.tree());
    let nvme = facts.function(&address("10000:01:00.0")).unwrap();
    let place = Place { root: "pci10000:00".to_owned(), bridges: vec![address("10000:00:02.0")] };
    assert_eq!(nvme.place, Got::Value(place));
    let roots: Vec<_> = facts.roots.iter().map(|root| (root.name.as_str(), &root.first)).collect();
    assert_eq!(roots, [("pci10000:00", &Some(address("10000:00:02.0")))]);
    assert_eq!(facts.iommu, Got::Value(false), "there are no groups");
    assert_eq!(nvme.iommu_group, Got::Missing);
}

#[test]
fn other_display_controllers_and_virtual_adapters_are_left_out() {
    let host = Sysfs::new();
    let root = "pci0000:00";
    host.zen()
        .device(&format!("{root}/0000:00:02.0"), &Device::new(0x8086, 0x7d55, 0x03_0000))
        .device(&format!("{root}/0000:00:03.0"), &Device::new(0x1002, 0x1ab8, 0x04_0300))
        .device(&format!("{root}/0000:00:04.0"), &Device::new(0x1002, 0x7551, 0x03_0000))
        .device(&format!("{root}/0000:00:05.0"), &Device::new(0x1002, 0x7551, 0x03_8000))
        .device(&format!("{root}/0000:00:06.0"), &Device::new(0x144d, 0xa80a, 0x01_0801))
        .device(&format!("{root}/0000:00:07.0"), &Device::new(0x15b3, 0x1021, 0x02_0000))
        .device(&format!("{root}/0000:00:08.0"), &Device::new(0x15b3, 0x1021, 0x02_0700))
        .device(&format!("{root}/0000:00:08.1"), &Device::new(0x15b3, 0x101e, 0x02_0700))
        .link(&format!("sys/devices/{root}/0000:00:08.1/physfn"), "../0000:00:08.0");
    let facts = read(&host.tree());
    let found: Vec<_> =
        facts.functions.iter().map(|one| (one.address.as_str(), one.role)).collect();
    let expected = [
        ("0000:00:02.0", Role::Other),
        ("0000:00:04.0", Role::Gpu),
        ("0000:00:05.0", Role::Gpu),
        ("0000:00:07.0", Role::Nic),
        ("0000:00:08.0", Role::Nic),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_cannot_be_read_is_said() {
    let host = Sysfs::new();
    let root = "pci0000:00";
    host.device(&format!("{root}/0000:00:01.0"), &Device::gpu())
        .device(&format!("{root}/0000:00:02.0"), &Device::nvme().without_config())
        .device(&format!("{root}/0000:00:03.0"), &Device::nvme().config(64))
        .file("sys/devices/pci0000:00/0000:00:01.0/class", b"0x\xff\xff\n")
        .file("sys/devices/pci0000:00/0000:00:01.0/resource", "0x1 0x0 x\nnonsense\n")
        .file("sys/devices/pci0000:00/0000:00:03.0/config", [0xff; 64])
        .file("sys/devices/pci0000:00/0000:00:03.0/device", "0x12345\n")
        .link("sys/bus/pci/devices/0000:00:09.0", "../../../devices/pci0000:00/0000:00:09.0");
    let facts = read(&host.tree());
    let unclassified: Vec<_> =
        facts.unclassified.iter().map(|(one, why)| (one.as_str(), why.as_str())).collect();
    let why = "`0x\u{fffd}\u{fffd}` is no hexadecimal number";
    // A link that leads nowhere is no function that is gone: its own link would be, too.
    assert_eq!(unclassified, [("0000:00:01.0", why), ("0000:00:09.0", "not there")]);
    let nvme = |at: &str| facts.function(&address(at)).unwrap();
    assert_eq!(nvme("0000:00:02.0").config, Err(ConfigProblem::Missing));
    assert_eq!(nvme("0000:00:03.0").config, Err(ConfigProblem::AllOnes));
    assert_eq!(nvme("0000:00:03.0").device.why(), "0x12345 is no id");
    assert_eq!(facts.machine.cpu_vendor, Got::Missing);
    assert_eq!(facts.machine.command_line, Got::Missing);
    assert_eq!(read(&Sysfs::new().tree()).listed, Got::Missing);
}

#[test]
fn links_that_are_not_of_the_kernels_form_are_no_place() {
    let host = Sysfs::new();
    let cases = [
        ("0000:01:00.0", "../../../devices/pci0000:00/0000:02:00.0", "another function"),
        ("0000:02:00.0", "../../../devices/0000:02:00.0", "where no root bus is"),
        ("0000:03:00.0", "../../../devices/pci0000:00/x/0000:03:00.0", "no chain of bridges"),
        ("0000:04:00.0", "../../../devices/pci0000:00/0000:04:00.0/0000:04:00.0", "a loop"),
        ("0000:05:00.0", "0000:05:00.0", "where no root bus is"),
        ("0000:06:00.0", "/", "where no root bus is"),
    ];
    for (at, target, _) in cases {
        host.link(&format!("sys/bus/pci/devices/{at}"), target);
    }
    let deep: Vec<String> = (0..70).map(|bus| format!("/0001:{bus:02x}:00.0")).collect();
    let deep = deep.concat();
    host.device(&format!("pci0001:00{deep}/0001:ff:00.0"), &Device::nvme());
    // A tree that was copied without its links.
    host.file("sys/bus/pci/devices/0000:07:00.0/class", "0x010802\n")
        .file("sys/bus/pci/devices/0000:07:00.0/vendor", "0x144d\n");
    // What the links lead to is put there so that a class is found.
    for at in [
        "pci0000:00/0000:02:00.0",
        "0000:02:00.0",
        "pci0000:00/x/0000:03:00.0",
        "pci0000:00/0000:04:00.0/0000:04:00.0",
    ] {
        host.file(&format!("sys/devices/{at}/class"), "0x010802\n");
    }
    let facts = read(&host.tree());
    let place = |at: &str| &facts.function(&address(at)).unwrap().place;
    for (at, _, why) in &cases[..4] {
        assert!(place(at).why().contains(why), "{at}: {:?}", place(at));
    }
    assert_eq!(place("0000:07:00.0").why(), "it is a directory, not a link");
    assert!(place("0001:ff:00.0").why().ends_with("deeper than any bus is"));
    assert_eq!(facts.unclassified.len(), 2, "{:?}", facts.unclassified);
}

/// A host of drives and nothing else, without files to make for it.
struct Drives(u32);

impl Tree for Drives {
    fn read(&self, path: &str, _: &Want) -> Result<Content, ReadError> {
        let bytes = if path.ends_with("/class") {
            &b"0x010802\n"[..]
        } else {
            return Err(ReadError::Missing);
        };
        Ok(Content { bytes: bytes.to_vec(), id: FileId { device: 0, inode: 0 } })
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        let name = |n: u32| {
            format!("{:04x}:{:02x}:{:02x}.{}", n >> 16, (n >> 8) & 0xff, (n >> 3) & 0x1f, n & 7)
        };
        let entry = |n| Entry { name: name(n), kind: FileKind::Link };
        if path == DEVICES { Ok((0..self.0).map(entry).collect()) } else { Err(ReadError::Missing) }
    }

    fn kind(&self, _: &str) -> Result<FileKind, ReadError> {
        Err(ReadError::Missing)
    }
}

#[test]
fn a_host_with_very_many_functions_is_read_in_bounds() {
    let facts = read(&Drives(60_000));
    assert_eq!(facts.listed, Got::Value(60_000));
    assert_eq!(facts.with_role(Role::Nvme).count(), 256);
    assert_eq!(facts.omitted, 60_000 - 256);
}

#[test]
fn a_long_cpuinfo_and_command_line_are_read() {
    let host = switch();
    let processor = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nflags\t\t: fpu secret-flag\n\n";
    host.file("proc/cpuinfo", processor.repeat(10_000));
    let facts = read(&host.tree());
    assert_eq!(facts.machine.cpu_family, Some(26));
    host.file("proc/cpuinfo", b"processor\t: 0\nCPU implementer\t: 0x41\n\xff\xfe\n");
    let facts = read(&host.tree());
    assert_eq!(facts.machine.architecture, Some(Architecture::Arm));
    assert_eq!(facts.machine.cpu_vendor, Got::Missing);
}

/// A tree in which every file is gone once the devices have been listed.
struct Vanishing<'a>(&'a DirTree);

impl Tree for Vanishing<'_> {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        if path.starts_with(DEVICES) { Err(ReadError::Missing) } else { self.0.read(path, want) }
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        self.0.list(path)
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        self.0.kind(path)
    }

    fn link(&self, path: &str) -> Result<String, ReadError> {
        if path.starts_with(DEVICES) { Err(ReadError::Missing) } else { self.0.link(path) }
    }
}

#[test]
fn functions_that_go_away_after_the_listing_are_named() {
    let host = switch();
    let tree = host.tree();
    let facts = read(&Vanishing(&tree));
    assert_eq!(facts.listed, Got::Value(8));
    assert!(facts.functions.is_empty());
    assert_eq!(facts.unclassified.len(), 8);
    let gone = "it went away while it was read";
    assert!(facts.unclassified.iter().all(|(_, why)| why == gone), "{:?}", facts.unclassified);
}

#[cfg(feature = "snapshot")]
#[test]
fn a_snapshot_gives_the_same_facts_and_tells_no_serial_number() {
    use fastpath_host::snapshot::{Meta, Recorder, Replay, write};
    use std::io::Read as _;

    let host = switch();
    host.device("pci0000:00/0000:00:02.0", &Device::nvme().config(64))
        .device("pci0000:00/0000:00:03.0", &Device::nvme().config(256).group(11))
        .file("proc/iomem", "00001000-0009ffff : System RAM\n  00002000-00002fff : secret\n100000000-203fffffff : System RAM\n")
        .command_line("root=UUID=secret-id iommu=pt nfsroot=10.1.2.3:/secret pci=noats");
    let tree = host.tree();
    let recorder = Recorder::new(&tree);
    let live: PciFacts = read(&recorder);
    assert_eq!(live, read(&tree), "recording changes nothing");
    assert_eq!(live.machine.memory_end, Some(0x20_4000_0000));
    let mut packed = Vec::new();
    write(&recorder, &Meta::new("0.1.0", "2026-11-30T12:00:00Z"), &mut packed).unwrap();
    let mut plain = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(packed.as_slice())
        .unwrap()
        .read_to_end(&mut plain)
        .unwrap();
    let replay = Replay::from_bytes(packed).unwrap();
    assert_eq!(read(&replay), live);
    for secret in ["SECRET12", "secret", "10.1.2.3"] {
        assert!(memchr::memmem::find(&plain, secret.as_bytes()).is_none(), "{secret}");
    }
}

/// The bound for all layers together is 100 ms; unoptimised code gets more.
#[test]
fn a_large_host_is_read_quickly() {
    let host = Sysfs::new();
    host.zen();
    for n in 0..8_u32 {
        let bus = 0x10 * n;
        let root = format!("pci0000:{bus:02x}");
        host.device(&format!("{root}/0000:{bus:02x}:00.0"), &Device::host_bridge(0x1022, 0x14a4))
            .device(
                &format!("{root}/0000:{bus:02x}:01.1"),
                &Device::port(0x1022, 0x14ab, ROOT_PORT),
            )
            .device(
                &format!("{root}/0000:{bus:02x}:01.1/0000:{:02x}:00.0", bus + 1),
                &Device::gpu().group(n),
            )
            .device(
                &format!("{root}/0000:{bus:02x}:01.2"),
                &Device::port(0x1022, 0x14ab, ROOT_PORT),
            )
            .device(
                &format!("{root}/0000:{bus:02x}:01.2/0000:{:02x}:00.0", bus + 2),
                &Device::nvme().group(n + 8),
            );
        for slot in 2..32 {
            host.device(
                &format!("{root}/0000:{bus:02x}:{slot:02x}.0"),
                &Device::new(0x1022, 1, 0x08_0600),
            );
        }
    }
    let tree = host.tree();
    let start = std::time::Instant::now();
    let facts = read(&tree);
    let took = start.elapsed();
    assert_eq!(facts.functions.len(), 8 * 5);
    assert!(took.as_millis() < 1000, "{took:?}");
}

/// Answers every question with something, as the seed has it: files of any bytes, links to anywhere.
struct Anything(u64);

impl Anything {
    /// FNV-1a over the seed and the path.
    fn number(&self, path: &str) -> u64 {
        path.bytes().fold(self.0 ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    fn name(number: u64) -> String {
        format!("0000:{:02x}:{:02x}.{}", number % 4, number % 3, number % 2)
    }
}

impl Tree for Anything {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let number = self.number(path);
        let text: Vec<u8> = match number % 7 {
            0 => return Err(ReadError::Missing),
            1 => return Err(ReadError::NotRecorded),
            2 => number.to_le_bytes().repeat(usize::try_from(number % 520).unwrap()),
            3 => b"0x010802".to_vec(),
            4 => b"0x120000\n".to_vec(),
            5 => b"0x1002\n".to_vec(),
            _ => format!(
                "{}\nvendor_id : x\ncpu family : {number}\n0-ffffffffffffffff : System RAM\n",
                number % 99
            )
            .into_bytes(),
        };
        let bytes = match want.lines {
            Some(filter) => text.split(|&byte| byte == b'\n').fold(Vec::new(), |mut out, line| {
                filter(line, &mut out);
                out.push(b'\n');
                out
            }),
            None => text,
        };
        let bytes = want.redact.map_or_else(|| bytes.clone(), |redact| redact(&bytes));
        Ok(Content { bytes, id: FileId { device: 0, inode: number } })
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadError> {
        let mut names: Vec<String> = (0..12).map(Self::name).collect();
        names.sort();
        names.dedup();
        Ok(names.into_iter().map(|name| Entry { name, kind: FileKind::Link }).collect())
    }

    fn kind(&self, _: &str) -> Result<FileKind, ReadError> {
        Err(ReadError::Missing)
    }

    fn link(&self, path: &str) -> Result<String, ReadError> {
        let number = self.number(path);
        let own = path.rsplit('/').next().unwrap_or_default();
        Ok(match number % 6 {
            0 => return Err(ReadError::Missing),
            1 => format!("../../../devices/pci0000:00/{own}"),
            2 => format!("../../../devices/pci0000:00/{}/{own}", Self::name(number >> 8)),
            3 => format!(
                "../../../devices/pci0000:00/{}/{}/{own}",
                Self::name(number >> 8),
                Self::name(number >> 16)
            ),
            4 => "../".repeat(90),
            _ => format!("/{number}"),
        })
    }
}

#[test]
fn whatever_the_files_say_facts_are_made_and_kept() {
    for seed in 0..400 {
        let tree = Anything(seed);
        let facts: PciFacts = read(&tree);
        assert_eq!(read(&tree), facts, "{seed}");
        assert!(facts.functions.is_sorted_by(|a, b| a.address < b.address), "{seed}");
        #[cfg(feature = "snapshot")]
        {
            let text = serde_json::to_string(&facts).unwrap();
            let again: PciFacts = serde_json::from_str(&text).unwrap();
            assert_eq!(again, facts, "{seed}");
        }
    }
}
