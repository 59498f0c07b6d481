//! Facts of the driver layer: read once, bounded, the same from a snapshot, and without what names a machine.

#![allow(missing_docs, reason = "a test has no users")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use fastpath_host::driver::{self, DriverFacts, Loaded};
use fastpath_host::pci::{self, Address};
use fastpath_host::{
    Asked, Content, DirTree, Entry, FileKind, Kind, ReadError, Stat, State, Tree, Want, gather,
};
use fastpath_knowledge::Release;

const RELEASE: &str = "6.8.0-142-generic";
const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";
const GIB: u64 = 1 << 30;

struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.0.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.0.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    fn tree(&self) -> DirTree {
        DirTree::open(Path::new(self.0.path())).unwrap()
    }
}

/// A host with AMD's driver and this many GPUs of 8 partitions each.
fn fleet(gpus: u32) -> (Host, Vec<Address>) {
    let host = Host::new();
    host.file("/proc/sys/kernel/osrelease", format!("{RELEASE}\n"))
        .file("/sys/module/amdgpu/version", "6.18.2\n")
        .file("/sys/module/amdgpu/taint", "OE\n")
        .file("/sys/module/amdgpu/initstate", "live\n")
        .file(&format!("/var/lib/dkms/amdgpu/6.18.2-2400000.24.04/{RELEASE}/x86_64/log"), "")
        .file("/var/lib/dkms/amdgpu/6.18.2-2400000.24.04/6.8.0-138-generic/x86_64/log", "")
        .file(&format!("{NODES}/0/properties"), "cpu_cores_count 64\nsimd_count 0\n");
    let mut symbols = "ffffffff81000000 T pci_p2pdma_add_resource\n".to_owned();
    symbols += "ffffffffc0a0b0c0 t kfd_ais_rw_file\t[amdgpu]\n";
    host.file("/proc/kallsyms", symbols);
    let mut addresses = Vec::new();
    for gpu in 0..gpus {
        let bus = gpu + 1;
        let address = format!("0000:{bus:02x}:00.0");
        let directory = format!("/sys/bus/pci/devices/{address}");
        let bar = format!("{:#018x} {:#018x} {:#018x}\n", 64 * GIB, 256 * GIB - 1, 0x14_220c);
        host.file(&format!("{directory}/vendor"), "0x1002\n")
            .file(&format!("{directory}/device"), "0x74a1\n")
            .file(&format!("{directory}/class"), "0x120000\n")
            .file(&format!("{directory}/resource"), bar.repeat(6))
            .file(&format!("{directory}/unique_id"), "SERIAL-1\n")
            .file(&format!("{directory}/serial_number"), "SERIAL-2\n")
            .file(&format!("{directory}/mem_info_vram_total"), format!("{}\n", 192 * GIB))
            .file(&format!("{directory}/mem_info_vis_vram_total"), format!("{}\n", 192 * GIB))
            .file(&format!("{directory}/current_compute_partition"), "CPX\n")
            .file(&format!("{directory}/current_memory_partition"), "NPS4\n")
            .file(&format!("{directory}/p2pmem/size"), format!("{}\n", 192 * GIB))
            .file(&format!("{directory}/p2pmem/available"), "0\n")
            .file(&format!("{directory}/p2pmem/published"), "1\n")
            .link(&format!("{directory}/subsystem"), "../../../../bus/pci")
            .link(&format!("{directory}/driver"), "../../../../bus/pci/drivers/amdgpu");
        for part in 0..8_u64 {
            let number = u64::from(gpu) * 8 + part + 1;
            let location = part << 28 | u64::from(bus) << 8;
            let text = format!(
                "cpu_cores_count 0\nsimd_count 38\nunique_id 77788899900\ncapability 64\nlocation_id {location}\ndomain 0\n"
            );
            host.file(&format!("{NODES}/{number}/properties"), text)
                .file(&format!("{NODES}/{number}/gpu_id"), "4711\n")
                .file(&format!("{NODES}/{number}/io_links/0/properties"), "type 2\nnode_to 0\n");
        }
        addresses.push(Address::new(&address).unwrap());
    }
    (host, addresses)
}

fn read(tree: &dyn Tree) -> DriverFacts {
    driver::read(tree, &pci::read(tree), Release::new(RELEASE).as_ref(), &[])
}

/// A tree that counts how often each file is read.
struct Counting<'a>(&'a dyn Tree, RefCell<BTreeMap<String, u32>>);

impl Tree for Counting<'_> {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        *self.1.borrow_mut().entry(path.to_owned()).or_default() += 1;
        self.0.read(path, want)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        self.0.list(path)
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        self.0.kind(path)
    }

    fn link(&self, path: &str) -> Result<String, ReadError> {
        self.0.link(path)
    }

    fn stat(&self, path: &str) -> Result<Stat, ReadError> {
        self.0.stat(path)
    }
}

#[test]
fn everything_a_gpu_has_is_read() {
    let (host, gpus) = fleet(2);
    let facts = read(&host.tree());
    assert!(facts.unread.is_empty(), "{:?}", facts.unread);
    assert_eq!(facts.module.loaded, Loaded::Module);
    assert_eq!(facts.module.is_out_of_tree(), Some(true));
    assert_eq!(facts.kfd, None, "this root holds no devices");
    let builds: Vec<_> = facts.builds.iter().map(|one| (one.number, one.running)).collect();
    assert_eq!(builds, [(Some(2_400_000), false), (Some(2_400_000), true)]);
    let ais = facts.symbols.as_ref().and_then(|symbols| symbols.ais.as_ref()).unwrap();
    assert_eq!(
        (ais.line, ais.text.as_deref()),
        (Some(2), Some("0000000000000000 T kfd_ais_rw_file [amdgpu]"))
    );
    assert_eq!(facts.nodes.len(), 17);
    let gpu = &facts.gpus[1];
    assert_eq!(gpu.gpu, gpus[1]);
    assert_eq!((gpu.vram, gpu.visible_vram), (Some(192 * GIB), Some(192 * GIB)));
    assert_eq!(gpu.compute_partition.as_deref(), Some("CPX"));
    let nodes: Vec<_> =
        facts.nodes_of(&gpus[1]).map(|node| (node.number, node.xgmi_to_cpu)).collect();
    assert_eq!(nodes, (9..17).map(|number| (number, Some(false))).collect::<Vec<_>>());
    assert_eq!(
        facts.nodes[1].capability_line,
        Some(4),
        "lines are counted as they stand in the file"
    );
}

#[test]
fn the_symbols_are_read_once_for_both_layers() {
    let (host, _) = fleet(1);
    let inner = host.tree();
    let tree = Counting(&inner, RefCell::default());
    let facts = gather(&tree, &Asked::Running);
    let witness = facts.kernel.witnesses.iter().find(|one| one.kind == Kind::Kallsyms).unwrap();
    assert_eq!(witness.state, State::Y);
    let kernel = &facts.kernel;
    let pci = pci::read(&tree);
    let driver = driver::read(&tree, &pci, kernel.running.as_ref(), &kernel.witnesses);
    assert!(driver.symbols.unwrap().ais.is_some());
    let counts = tree.1.borrow();
    assert_eq!(counts["/proc/kallsyms"], 1);
    assert!(
        counts.iter().filter(|(path, _)| path.starts_with("/sys/")).all(|(_, count)| *count == 1)
    );
}

#[test]
fn names_that_only_look_like_the_symbol_are_none() {
    let host = Host::new();
    host.file("/sys/module/amdgpu/initstate", "live\n").file(
        "/proc/kallsyms",
        "0 T pci_enable_device\n0 t kgd2kfd_probe\t[amdgpu]\n0 t my_kfd_ais_rw_file\t[amdgpu]\n0 t kfd_ais_rw_file\t[other]\n",
    );
    let facts = read(&host.tree());
    assert_eq!(facts.symbols.map(|symbols| symbols.ais), Some(None));
    // Without one of the driver's own symbols nothing is said: a list without modules is no list of the driver's.
    let host = Host::new();
    host.file("/sys/module/amdgpu/initstate", "live\n")
        .file("/proc/kallsyms", "0 T pci_enable_device\n");
    assert_eq!(read(&host.tree()).symbols, None);
}

#[test]
fn eight_gpus_in_eight_partitions_take_no_time() {
    let (host, _) = fleet(8);
    let tree = host.tree();
    let started = Instant::now();
    let facts = read(&tree);
    let took = started.elapsed();
    assert_eq!(facts.nodes.len(), 65);
    assert!(took < Duration::from_millis(500), "{took:?}");
}

#[test]
fn hostile_trees_give_facts() {
    let host = Host::new();
    let gpu = "/sys/bus/pci/devices/0000:02:00.0";
    host.file(&format!("{gpu}/resource"), [0xff; 4000])
        .file(&format!("{gpu}/vendor"), "0x1002\n")
        .file(&format!("{gpu}/class"), "0x120000\n")
        .file(&format!("{gpu}/device"), "")
        .file(&format!("{gpu}/mem_info_vram_total"), "-1\n")
        .file(&format!("{gpu}/mem_info_vis_vram_total"), vec![b'9'; 100_000])
        .file(&format!("{gpu}/p2pmem"), "no directory")
        .link(&format!("{gpu}/driver"), "driver")
        .file(&format!("{NODES}/1/properties"), b"simd_count 4\nlocation_id 18446744073709551615\ndomain 18446744073709551615\n\xff \xfe\n")
        .file(&format!("{NODES}/2/properties"), "simd_count 4\n".repeat(50_000))
        .file(&format!("{NODES}/007/properties"), "simd_count 4\n")
        .file("/sys/module/amdgpu", "a file")
        .link("/var/lib/dkms/amdgpu", "/var/lib/dkms/amdgpu");
    for version in 0..100 {
        host.file(&format!("/var/lib/dkms/x/{version}-1/{RELEASE}/x86_64/log"), "");
    }
    let facts = read(&host.tree());
    let one = &facts.gpus[0];
    assert_eq!((one.vram, one.visible_vram, one.whole), (None, None, false));
    assert_eq!(facts.nodes.len(), 1, "{:?}", facts.nodes);
    assert_eq!(facts.nodes[0].address, None, "no domain has more than eight digits");
    let unread: Vec<&str> = facts.unread.iter().map(|one| one.path.as_str()).collect();
    assert!(unread.contains(&"/var/lib/dkms/amdgpu"), "{unread:?}");
    assert!(unread.contains(&format!("{NODES}/2/properties").as_str()), "{unread:?}");
}

#[test]
fn a_great_many_of_everything_is_cut() {
    let host = Host::new();
    for number in 0..400 {
        host.file(&format!("{NODES}/{number}/properties"), "simd_count 4\nlocation_id 512\n");
    }
    for version in 0..40 {
        host.file(&format!("/var/lib/dkms/amdgpu/6.{version}-1/{RELEASE}/x86_64/log"), "");
    }
    let facts = read(&host.tree());
    assert_eq!((facts.nodes.len(), facts.builds.len()), (256, 32));
}

#[cfg(feature = "snapshot")]
mod snapshots {
    use std::io::Read as _;

    use fastpath_host::snapshot::{Meta, Recorder, Replay, write};

    use super::*;

    #[test]
    fn a_snapshot_gives_the_same_facts_and_no_serial_number() {
        let (host, _) = fleet(8);
        host.file("/var/lib/dkms/amdgpu/acme-build/x", "")
            .file("/sys/bus/pci/devices/0000:01:00.0/acme", "");
        let tree = host.tree();
        let recorder = Recorder::new(&tree);
        let facts = read(&recorder);
        assert!(facts == read(&tree));
        let mut packed = Vec::new();
        write(&recorder, &Meta::new("0.1.0", "2026-11-30T12:00:00Z"), &mut packed).unwrap();
        let replayed = read(&Replay::from_bytes(packed.clone()).unwrap());
        assert_eq!(replayed.gpus, facts.gpus);
        assert_eq!(replayed.builds, facts.builds);
        assert!(replayed == facts);
        let mut plain = Vec::new();
        let mut stream = ruzstd::decoding::StreamingDecoder::new(packed.as_slice()).unwrap();
        stream.read_to_end(&mut plain).unwrap();
        for secret in ["SERIAL", "77788899900", "unique_id", "ffffffffc0a0b0c0"] {
            let found = plain.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret}");
        }
    }

    /// A snapshot that was taken before there was a driver layer.
    #[test]
    fn what_an_old_snapshot_does_not_hold_is_not_read_as_no() {
        let (host, _) = fleet(1);
        let tree = host.tree();
        let recorder = Recorder::new(&tree);
        gather(&recorder, &Asked::Running);
        let mut packed = Vec::new();
        write(&recorder, &Meta::new("0.1.0", "2026-11-30T12:00:00Z"), &mut packed).unwrap();
        let facts = read(&Replay::from_bytes(packed).unwrap());
        assert_eq!((facts.module.loaded, facts.gpus.len()), (Loaded::Unknown, 0));
        assert!(facts.unread.iter().any(|one| one.not_recorded));
    }
}
