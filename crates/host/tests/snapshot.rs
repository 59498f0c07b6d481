//! Snapshots: what is recorded gives the same facts elsewhere, tells nobody who, and can do no harm.
#![cfg(feature = "snapshot")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;

use fastpath_host::mask::mask_ids;
use fastpath_host::snapshot;
use fastpath_host::snapshot::{
    Existing, MAX_BYTES, MAX_MANIFEST, MAX_MEMBERS, MAX_PACKED, MAX_QUESTIONS, Meta, Recorder,
    Replay, SnapshotError, Uname, WriteError, write, write_file,
};
use fastpath_host::{
    Asked, Content, DirTree, Entry, Facts, FileId, FileKind, ReadError, State, Tree, Want, gather,
};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

const RELEASE: &str = "6.8.0-142-generic";

fn meta() -> Meta {
    let uname = Uname {
        sysname: "Linux".to_owned(),
        release: RELEASE.to_owned(),
        machine: "x86_64".to_owned(),
    };
    Meta { uname: Some(uname), ..Meta::new("0.1.0", "2026-11-30T12:00:00Z") }
}

fn packed(recorder: &Recorder) -> Vec<u8> {
    let mut packed = Vec::new();
    write(recorder, &meta(), &mut packed).unwrap();
    packed
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(packed).unwrap().read_to_end(&mut plain).unwrap();
    plain
}

/// The members of a snapshot, with their bytes.
fn members(packed: &[u8]) -> Vec<(String, Vec<u8>)> {
    let plain = unpacked(packed);
    let mut archive = tar::Archive::new(plain.as_slice());
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| {
            let mut entry = entry.unwrap();
            assert_eq!(entry.header().entry_type(), tar::EntryType::Regular);
            assert_eq!(entry.header().mtime().unwrap(), 1_796_040_000);
            assert_eq!((entry.header().uid().unwrap(), entry.header().gid().unwrap()), (0, 0));
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (name, bytes)
        })
        .collect()
}

fn holds(packed: &[u8], text: &str) -> bool {
    memchr::memmem::find(&unpacked(packed), text.as_bytes()).is_some()
}

/// Takes a snapshot of a tree; gives the facts of the tree and of the snapshot, and the snapshot.
fn round_trip(tree: &dyn Tree) -> (Facts, Facts, Vec<u8>) {
    let recorder = Recorder::new(tree);
    let live = gather(&recorder, &Asked::Running);
    assert_eq!(live, gather(tree, &Asked::Running), "recording changes nothing");
    let packed = packed(&recorder);
    let replay = Replay::from_bytes(packed.clone()).unwrap();
    assert_eq!(replay.meta(), &meta());
    (live, gather(&replay, &Asked::Running), packed)
}

fn same_facts(tree: &dyn Tree) -> (Facts, Vec<u8>) {
    let (live, replayed, packed) = round_trip(tree);
    assert_eq!(live, replayed);
    (live, packed)
}

/// A directory to build a host in.
struct Host(TempDir);

impl Host {
    fn new() -> Self {
        let host = Self(TempDir::new().unwrap());
        host.file("proc/sys/kernel/osrelease", format!("{RELEASE}\n"));
        host.file("etc/os-release", "NAME=\"x\"\nID=ubuntu\nBUG_REPORT_URL=\"secret-url\"\n");
        host
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.at(path), bytes).unwrap();
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        symlink(target, self.at(path)).unwrap();
        self
    }

    fn tree(&self) -> DirTree {
        DirTree::open(self.0.path()).unwrap()
    }
}

fn config(option: &str) -> String {
    format!(
        "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.8.12 Kernel Configuration\n#\n\
         CONFIG_CC_VERSION_TEXT=\"gcc of secret-host\"\nCONFIG_DEFAULT_HOSTNAME=\"secret-host\"\n\
         CONFIG_PCI=y\n{option}\nCONFIG_CMDLINE=\"root=UUID=secret-host \\\"x\\\"\"\n\
         CONFIG_DEBUG_KERNEL=y\nCONFIG_MAGIC_SYSRQ=y\n"
    )
}

/// A gzip stream of stored blocks, so that its text can be seen in it.
fn gzip(text: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut chunks = text.chunks(0xffff).peekable();
    while let Some(chunk) = chunks.next() {
        let length = u16::try_from(chunk.len()).unwrap();
        out.push(u8::from(chunks.peek().is_none()));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(chunk);
    }
    let mut crc = !0_u32;
    for &byte in text {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    out.extend_from_slice(&(!crc).to_le_bytes());
    out.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
    out
}

// The same facts.

#[test]
fn recorded_hosts_give_the_same_facts() {
    let hosts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hosts");
    let mut looked_at = 0;
    for host in fs::read_dir(hosts).unwrap() {
        let root = host.unwrap().path().join("root");
        if root.is_dir() {
            same_facts(&DirTree::open(&root).unwrap());
            looked_at += 1;
        }
    }
    assert!(looked_at > 100);
}

#[test]
fn this_machine_gives_the_same_facts() {
    same_facts(&DirTree::open(Path::new("/")).unwrap());
}

#[test]
fn a_full_host_gives_the_same_facts_and_tells_nothing_else() {
    const UUID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    const MACHINE: &str = "4f1c7be0a2d94e5fb3c86d7e8f90a1b2";
    let host = Host::new();
    host.file("proc/version", format!("Linux version {RELEASE} (root@secret-host) (gcc) #1 SMP\n"))
        .file("proc/cmdline", format!("BOOT_IMAGE=/vmlinuz-{RELEASE} root=UUID={UUID} ro\n"))
        .file("proc/1/cgroup", "0::/docker/secret-container\n")
        .file(
            "proc/kallsyms",
            "ffffffff81000000 T secret_symbol\nffffffff81abcdef T pci_enable_device\n\
             ffffffff81abcdf0 t pci_p2pdma_add_resource\nffffffffc0000000 t pci_x\t[secret_module]\n",
        )
        .file("usr/lib/modules/6.8.0-142-generic/vmlinuz", "image")
        .file("usr/lib/modules/6.8.0-142-generic/config", config("CONFIG_PCI_P2PDMA=y"))
        .file("usr/lib/modules/6.5.0-9-generic/config", config("# CONFIG_PCI_P2PDMA is not set"))
        .file("boot/vmlinuz-6.5.0-9-generic", "image")
        .file("boot/vmlinuz-6.8.0-142-generic", "image")
        .file("boot/config-6.5.0-9-generic", config("CONFIG_PCI_P2PDMA=\"y\""))
        .file("boot/grub/grub.cfg", format!("search --fs-uuid {UUID}\nlinux /vmlinuz root=UUID={UUID}\n"))
        .file(format!("boot/loader/entries/{MACHINE}-6.8.0.conf").as_str(), format!("title x\nlinux /{MACHINE}/linux\noptions root=UUID={UUID}\n"))
        .file("etc/machine-id", MACHINE)
        .file("etc/hostname", "secret-host")
        .link("lib", "usr/lib");
    fs::hard_link(
        host.at("usr/lib/modules/6.8.0-142-generic/config"),
        host.at("boot/config-6.8.0-142-generic"),
    )
    .unwrap();
    let (facts, packed) = same_facts(&host.tree());
    assert!(facts.environment.container);
    assert_eq!(facts.kernel.installed.len(), 2);
    let boot = facts.kernel.witnesses.iter().find(|witness| witness.path.starts_with("/boot"));
    assert_eq!(boot.unwrap().state, State::Y);
    assert_eq!(boot.unwrap().also.len(), 2, "{boot:?}");
    for secret in ["secret", "ffff", UUID, MACHINE, "UUID=1", "[", "image"] {
        let members = members(&packed);
        for (name, bytes) in members.iter().filter(|(name, _)| name != "manifest.json") {
            let found = memchr::memmem::find(bytes, secret.as_bytes()).is_some();
            assert!(!found && !name.contains(secret), "{secret} in {name}");
        }
        let manifest = String::from_utf8_lossy(&members[0].1);
        assert!(secret == "[" || secret == "image" || !manifest.contains(secret), "{secret}");
    }
    assert!(holds(&packed, "0000000000000000 T pci_p2pdma_add_resource"));
    assert!(!holds(&packed, "uname\": null"));
}

#[test]
fn two_names_of_one_file_are_kept_once() {
    let host = Host::new();
    host.file("usr/lib/modules/6.8.0-142-generic/config", config("CONFIG_PCI_P2PDMA=y"))
        .link("lib", "usr/lib");
    let (facts, packed) = same_facts(&host.tree());
    assert!(facts.kernel.witnesses.iter().any(|witness| !witness.also.is_empty()));
    let configs = members(&packed).into_iter().filter(|(name, _)| name.ends_with("/config"));
    assert_eq!(configs.count(), 1);
    assert!(holds(&packed, "\"same_as\""));
}

#[test]
fn a_config_gz_is_kept_as_text() {
    let text = config("CONFIG_PCI_P2PDMA=y");
    for text in [text.clone(), text.replace('\n', "\r\n"), text.trim_end().to_owned()] {
        let host = Host::new();
        host.file("proc/config.gz", gzip(text.as_bytes()));
        let (facts, packed) = same_facts(&host.tree());
        let witness = &facts.kernel.witnesses[0];
        assert_eq!((witness.state, witness.line), (State::Y, Some(8)), "{witness:?}");
        assert!(!holds(&packed, "secret"));
    }
}

#[test]
fn a_text_without_its_last_menu_keeps_the_offset_it_ends_at() {
    let host = Host::new();
    host.file("boot/config-6.8.0-142-generic", "CONFIG_PCI=y\nCONFIG_CMDLINE=\"secret");
    let (facts, packed) = same_facts(&host.tree());
    let witness = facts.kernel.witnesses.iter().find(|witness| witness.detail.is_some());
    assert!(witness.unwrap().detail.as_deref().unwrap().contains("offset 35"), "{witness:?}");
    assert!(!holds(&packed, "secret"));
}

#[test]
fn a_cut_config_gz_stays_cut_and_keeps_no_strings() {
    let long = config("CONFIG_PCI_P2PDMA=y") + &"CONFIG_LONG=y\n".repeat(20_000);
    for text in [config("CONFIG_PCI_P2PDMA=y"), long] {
        let whole = gzip(text.as_bytes());
        for cut in [0, 1, 9, 10, 14, 60, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
            let host = Host::new();
            host.file("proc/config.gz", &whole[..cut]);
            let (facts, packed) = same_facts(&host.tree());
            let expected = match cut {
                0 => State::Empty,
                1 => State::Malformed,
                _ => State::Truncated,
            };
            assert_eq!(facts.kernel.witnesses[0].state, expected, "cut at {cut}");
            assert!(!holds(&packed, "secret"), "cut at {cut}");
        }
    }
}

#[test]
fn a_damaged_config_gz_stays_damaged_and_keeps_no_strings() {
    let long = config("CONFIG_PCI_P2PDMA=y") + &"CONFIG_LONG=y\n".repeat(20_000);
    for text in [config("CONFIG_PCI_P2PDMA=y"), long] {
        let whole = gzip(text.as_bytes());
        // The checksum, the length, a block's header, and something behind the end.
        let block = if whole.len() > 0xffff { 10 + 5 + 0xffff } else { whole.len() - 8 };
        for at in [whole.len() - 8, whole.len() - 1, block] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            for more in [&b""[..], b"something else"] {
                let host = Host::new();
                host.file("proc/config.gz", [&damaged, more].concat());
                let (facts, packed) = same_facts(&host.tree());
                let state = facts.kernel.witnesses[0].state;
                assert_eq!(state, State::Malformed, "{at} of {}", whole.len());
                assert!(!holds(&packed, "secret"));
            }
        }
    }
}

#[test]
fn a_config_gz_of_two_members_is_one_text() {
    let text = config("CONFIG_PCI_P2PDMA=y");
    let (one, other) = text.as_bytes().split_at(100);
    let host = Host::new();
    host.file("proc/config.gz", [gzip(one), gzip(other)].concat());
    let (facts, packed) = same_facts(&host.tree());
    assert_eq!(facts.kernel.witnesses[0].state, State::Y);
    assert!(!holds(&packed, "secret"));
}

#[test]
fn names_that_are_masked_are_no_difference() {
    let host = Host::new();
    let id = "0123456789abcdef".repeat(2);
    let checksum = "0123456789abcdef".repeat(4);
    host.file(&format!("boot/config-{id}"), config("CONFIG_PCI_P2PDMA=y"));
    host.file(
        &format!("usr/lib/ostree-boot/config-{RELEASE}-{checksum}"),
        config("CONFIG_PCI_P2PDMA=y"),
    );
    let (live, replayed, packed) = round_trip(&host.tree());
    assert!(live.kernel.other_configs.iter().any(|path| path.contains(&id)));
    assert_ne!(live, replayed);
    assert!(snapshot::same_facts(&live, &replayed));
    assert!(!holds(&packed, "-0123456789abcdef0123456789abcdef\""), "a machine id");
    assert!(holds(&packed, &checksum), "a checksum tells nobody who the machine is");
    let other = Host::new();
    other.file("proc/sys/kernel/osrelease", "6.1.0\n");
    assert!(!snapshot::same_facts(&live, &gather(&other.tree(), &Asked::Running)));
}

#[test]
fn what_is_no_file_stays_what_it_is() {
    let host = Host::new();
    let mode = Mode::from_raw_mode(0o600);
    let make = |path: &str, kind, device| mknodat(CWD, host.at(path), kind, mode, device);
    make("boot/config-6.8.0-142-generic", FileType::Fifo, 0).unwrap();
    if make("proc/kallsyms", FileType::CharacterDevice, rustix::fs::makedev(1, 3)).is_err() {
        eprintln!("device node skipped, because this needs root");
    }
    host.link("usr/lib/modules/6.8.0-142-generic/config", "config")
        .link("a", "b")
        .link("b", "a")
        .link("proc/version", "/a/x");
    fs::create_dir_all(host.at("usr/src/linux/.config")).unwrap();
    let (facts, _) = same_facts(&host.tree());
    let state = |path: &str| {
        let witnesses = &facts.kernel.witnesses;
        witnesses.iter().find(|witness| witness.path == path).map(|witness| witness.state)
    };
    assert_eq!(state("/boot/config-6.8.0-142-generic"), Some(State::Malformed));
    assert_eq!(state("/usr/lib/modules/6.8.0-142-generic/config"), Some(State::Unreadable));
    assert_eq!(state("/usr/src/linux/.config"), Some(State::Malformed));
}

/// A tree whose files give one error each, by path; the rest is another tree.
struct Failing<'a>(&'a dyn Tree, BTreeMap<&'a str, ReadError>);

impl Tree for Failing<'_> {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        self.1.get(path).map_or_else(|| self.0.read(path, want), |error| Err(*error))
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        self.1.get(path).map_or_else(|| self.0.list(path), |error| Err(*error))
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        self.1.get(path).map_or_else(|| self.0.kind(path), |error| Err(*error))
    }
}

#[test]
fn errors_come_back_as_they_were() {
    let host = Host::new();
    host.file("boot/vmlinuz-6.8.0-142-generic", "image");
    let tree = host.tree();
    let tree = Failing(
        &tree,
        BTreeMap::from([
            ("/boot/config-6.8.0-142-generic", ReadError::Os(Errno::ACCESS)),
            ("/proc/kallsyms", ReadError::Os(Errno::PERM)),
            ("/proc/config.gz", ReadError::TooLarge(64 << 20)),
            ("/lib/modules", ReadError::Os(Errno::IO)),
            ("/usr/lib/modules", ReadError::Os(Errno::from_raw_os_error(4000))),
            ("/.dockerenv", ReadError::Os(Errno::LOOP)),
        ]),
    );
    let (facts, _) = same_facts(&tree);
    assert!(facts.kernel.witnesses.iter().any(|witness| witness.permission));
}

/// Filters every file once more than its reader asked for.
struct Twice<'a>(&'a dyn Tree);

impl Tree for Twice<'_> {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let mut content = self.0.read(path, want)?;
        if let Some(filter) = want.lines {
            let mut out = Vec::new();
            for line in content.bytes.split_inclusive(|&byte| byte == b'\n') {
                let end = line.strip_suffix(b"\n");
                filter(end.unwrap_or(line), &mut out);
                out.extend_from_slice(if end.is_some() { b"\n" } else { b"" });
            }
            content.bytes = out;
        }
        Ok(content)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        self.0.list(path)
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        self.0.kind(path)
    }
}

/// A tree in memory.
#[derive(Clone, Debug, Default)]
struct Memory(BTreeMap<String, Vec<u8>>);

impl Memory {
    fn has_below(&self, path: &str) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        self.0.keys().any(|key| key.starts_with(&below))
    }
}

impl Tree for Memory {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let Some(bytes) = self.0.get(path) else {
            return Err(match self.kind(path)? {
                FileKind::File => ReadError::Missing,
                kind => ReadError::WrongKind(kind),
            });
        };
        if bytes.len() > want.limit {
            return Err(ReadError::TooLarge(want.limit));
        }
        // Equal bytes are one file, so that there are files with several names.
        let inode = self.0.values().position(|other| other == bytes).unwrap() as u64;
        let id = FileId { device: 7, inode };
        let content = Content { bytes: bytes.clone(), id };
        let once = Once(content);
        // The filter that `Twice` has is the one a tree needs.
        Twice(&once).read(path, want)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        if self.0.contains_key(path) {
            return Err(ReadError::WrongKind(FileKind::File));
        }
        let below = format!("{}/", path.trim_end_matches('/'));
        let mut names = BTreeMap::new();
        for key in self.0.keys() {
            let Some(rest) = key.strip_prefix(&below) else { continue };
            let (name, more) = rest.split_once('/').map_or((rest, false), |(name, _)| (name, true));
            names.insert(name, if more { FileKind::Directory } else { FileKind::File });
        }
        if names.is_empty() {
            return Err(ReadError::Missing);
        }
        let entry = |(name, kind): (&str, FileKind)| Entry { name: name.to_owned(), kind };
        Ok(names.into_iter().map(entry).collect())
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        if self.0.contains_key(path) {
            Ok(FileKind::File)
        } else if self.has_below(path) {
            Ok(FileKind::Directory)
        } else {
            Err(ReadError::Missing)
        }
    }
}

/// One file, whatever the path.
struct Once(Content);

impl Tree for Once {
    fn read(&self, _: &str, _: &Want) -> Result<Content, ReadError> {
        Ok(self.0.clone())
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadError> {
        Err(ReadError::WrongKind(FileKind::File))
    }

    fn kind(&self, _: &str) -> Result<FileKind, ReadError> {
        Ok(FileKind::File)
    }
}

// What the recorder and the replay answer.

fn keep_a(line: &[u8], out: &mut Vec<u8>) {
    out.extend(line.iter().filter(|&&byte| byte == b'a'));
}

fn keep_ab(line: &[u8], out: &mut Vec<u8>) {
    out.extend(line.iter().filter(|&&byte| matches!(byte, b'a' | b'b')));
}

fn replay_of(tree: &dyn Tree, ask: impl FnOnce(&Recorder)) -> Replay {
    let recorder = Recorder::new(tree);
    ask(&recorder);
    Replay::from_bytes(packed(&recorder)).unwrap()
}

fn text(tree: &dyn Tree, path: &str, want: Want) -> Result<String, ReadError> {
    tree.read(path, &want).map(|content| String::from_utf8(content.bytes).unwrap())
}

#[test]
fn what_was_not_asked_is_not_known_unless_it_follows() {
    let host = Host::new();
    host.file("d/vmlinuz-file", "x")
        .file("d/loader/x", "x")
        .file("e/x", "x")
        .link("d/config-link", "vmlinuz-file");
    let tree = host.tree();
    let replay = replay_of(&tree, |recorder| {
        recorder.list("/d").unwrap();
        recorder.read("/etc/os-release", &Want::whole(4096)).unwrap();
        recorder.read("/missing", &Want::whole(1)).unwrap_err();
        recorder.read("/e", &Want::whole(1)).unwrap_err();
    });
    let whole = Want::whole(4096);
    assert_eq!(replay.kind("/d"), Ok(FileKind::Directory));
    assert_eq!(replay.kind("/d/vmlinuz-file"), Ok(FileKind::File));
    assert_eq!(replay.kind("/d/loader"), Ok(FileKind::Directory));
    assert_eq!(replay.kind("/d/config-link"), Err(ReadError::NotRecorded));
    assert_eq!(replay.kind("/d/config-other"), Err(ReadError::Missing));
    assert_eq!(replay.kind("/d/vmlinuz-file/below"), Err(ReadError::Missing));
    assert_eq!(replay.kind("/d/loader/x"), Err(ReadError::NotRecorded));
    assert_eq!(replay.kind("/etc/os-release"), Ok(FileKind::File));
    assert_eq!(replay.kind("/etc/os-release/x"), Err(ReadError::Missing));
    assert_eq!(replay.kind("/e"), Ok(FileKind::Directory));
    assert_eq!(replay.kind("/never"), Err(ReadError::NotRecorded));
    assert_eq!(replay.kind("/d/../never"), Err(ReadError::NotRecorded));
    assert_eq!(replay.list("/missing"), Err(ReadError::Missing));
    assert_eq!(replay.list("/missing/too"), Err(ReadError::Missing));
    assert_eq!(replay.list("/d/vmlinuz-file"), Err(ReadError::WrongKind(FileKind::File)));
    assert_eq!(replay.list("/d/loader"), Err(ReadError::NotRecorded));
    assert_eq!(text(&replay, "/d", whole), Err(ReadError::WrongKind(FileKind::Directory)));
    assert_eq!(text(&replay, "/d/vmlinuz-file", whole), Err(ReadError::NotRecorded));
    assert_eq!(text(&replay, "/d/none", whole), Err(ReadError::Missing));
    assert_eq!(text(&replay, "//etc/./os-release", whole).map(|text| text.len()), Ok(47));
}

#[test]
fn limits_are_the_readers() {
    let host = Host::new();
    host.file("ten", "0123456789");
    let tree = host.tree();
    let replay = replay_of(&tree, |recorder| {
        recorder.read("/ten", &Want::whole(10)).unwrap();
    });
    assert_eq!(text(&replay, "/ten", Want::whole(9)), Err(ReadError::TooLarge(9)));
    assert!(text(&replay, "/ten", Want::whole(10)).is_ok());
    let replay = replay_of(&tree, |recorder| {
        recorder.read("/ten", &Want::whole(3)).unwrap_err();
        recorder.read("/ten", &Want::whole(5)).unwrap_err();
        recorder.read("/ten", &Want::whole(4)).unwrap_err();
    });
    assert_eq!(text(&replay, "/ten", Want::whole(5)), Err(ReadError::TooLarge(5)));
    assert_eq!(text(&replay, "/ten", Want::whole(6)), Err(ReadError::NotRecorded));
    let replay = replay_of(&tree, |recorder| {
        recorder.read("/ten", &Want::whole(3)).unwrap_err();
        recorder.read("/ten", &Want::whole(10)).unwrap();
    });
    assert_eq!(text(&replay, "/ten", Want::whole(3)), Err(ReadError::TooLarge(3)));
    assert!(text(&replay, "/ten", Want::whole(10)).is_ok());
}

#[test]
fn one_file_through_several_filters() {
    let host = Host::new();
    host.file("f", "abc\ncab\nc");
    let tree = host.tree();
    let (a, ab, whole) = (Want::lines(99, keep_a), Want::lines(99, keep_ab), Want::whole(99));
    for order in [[a, ab], [ab, a]] {
        let replay = replay_of(&tree, |recorder| {
            for want in order.iter().chain(&order) {
                recorder.read("/f", want).unwrap();
            }
        });
        assert_eq!(text(&replay, "/f", a).unwrap(), "a\na\n");
        assert_eq!(text(&replay, "/f", ab).unwrap(), "ab\nab\n");
        assert_eq!(text(&replay, "/f", whole), Err(ReadError::NotRecorded), "parts are not all");
    }
    let replay = replay_of(&tree, |recorder| {
        recorder.read("/f", &a).unwrap();
        recorder.read("/f", &whole).unwrap();
    });
    assert_eq!(text(&replay, "/f", whole).unwrap(), "abc\ncab\nc");
    assert_eq!(text(&replay, "/f", ab).unwrap(), "ab\nab\n");
}

#[test]
fn ids_in_names_are_masked_and_stay_apart() {
    const A: &str = "0123456789abcdef0123456789abcdef";
    const B: &str = "fedcba9876543210fedcba9876543210";
    let host = Host::new();
    host.file(&format!("e/{A}-6.8.conf"), "first").file(&format!("e/{B}-6.8.conf"), "second");
    let tree = host.tree();
    let recorder = Recorder::new(&tree);
    for entry in recorder.list("/e").unwrap() {
        recorder.read(&format!("/e/{}", entry.name), &Want::whole(99)).unwrap();
    }
    let packed = packed(&recorder);
    assert!(!holds(&packed, A) && !holds(&packed, B));
    let replay = Replay::from_bytes(packed).unwrap();
    let texts: Vec<String> = replay
        .list("/e")
        .unwrap()
        .iter()
        .map(|entry| text(&replay, &format!("/e/{}", entry.name), Want::whole(99)).unwrap())
        .collect();
    assert_eq!(texts, ["first", "second"]);
    assert_eq!(text(&replay, &format!("/e/{A}-6.8.conf"), Want::whole(99)).unwrap(), "first");
}

#[test]
fn paths_with_dots_and_long_names_are_kept() {
    let host = Host::new();
    let long = format!("{}/{}", "d".repeat(200), "\u{e9}".repeat(120));
    host.file("a/f", "1").file("b/x", "").file(".../f", "2").file(&long, "3");
    let tree = host.tree();
    let replay = replay_of(&tree, |recorder| {
        for path in ["/b/../a/f", "/b/.../a/f", "/.../f", "/../f", &format!("/{long}")] {
            let _ = recorder.read(path, &Want::whole(9));
        }
    });
    assert_eq!(text(&replay, "/b/../a/f", Want::whole(9)).unwrap(), "1");
    assert_eq!(text(&replay, "/.../f", Want::whole(9)).unwrap(), "2");
    assert_eq!(text(&replay, "/../f", Want::whole(9)), Err(ReadError::Missing));
    assert_eq!(text(&replay, &format!("/{long}"), Want::whole(9)).unwrap(), "3");
}

#[test]
fn a_snapshot_of_a_snapshot_is_the_same() {
    let host = Host::new();
    host.file("boot/config-6.8.0-142-generic", config("CONFIG_PCI_P2PDMA=y"));
    let (facts, first) = same_facts(&host.tree());
    let replay = Replay::from_bytes(first).unwrap();
    assert_eq!(same_facts(&replay).0, facts);
}

#[test]
fn the_same_answers_give_the_same_bytes() {
    let host = Host::new();
    host.file("a", "1").file("b", "2");
    let tree = host.tree();
    let ask = |order: [&str; 2]| {
        let recorder = Recorder::new(&tree);
        for path in order {
            recorder.read(path, &Want::whole(9)).unwrap();
            let _ = recorder.kind(path);
        }
        packed(&recorder)
    };
    assert_eq!(ask(["/a", "/b"]), ask(["/b", "/a"]));
}

/// A tree in which every file has other bytes each time it is read, and is there every second time only.
struct Changing(std::cell::Cell<u8>);

impl Changing {
    fn turn(&self) -> u8 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
}

impl Tree for Changing {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        let turn = self.turn();
        if turn.is_multiple_of(2) && path.contains("some") {
            return Err(ReadError::Missing);
        }
        // The inode of a file that is gone is used again.
        let content = Content { bytes: vec![b'a', turn, b'b'], id: FileId { device: 1, inode: 1 } };
        Twice(&Once(content)).read(path, want)
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadError> {
        let name = format!("config-{}", self.turn());
        Ok(vec![Entry { name, kind: FileKind::File }])
    }

    fn kind(&self, _: &str) -> Result<FileKind, ReadError> {
        Ok(if self.turn().is_multiple_of(2) { FileKind::Fifo } else { FileKind::File })
    }
}

#[test]
fn a_file_that_changes_is_what_it_was_when_it_was_asked_for_first() {
    let tree = Changing(std::cell::Cell::new(0));
    let recorder = Recorder::new(&tree);
    let ask = |tree: &dyn Tree| {
        let (parts, whole) = (Want::lines(99, keep_ab), Want::whole(99));
        let paths =
            [("/x", parts), ("/y", whole), ("/some", whole), ("/some/other", whole), ("/z", whole)];
        let ids: Vec<Option<FileId>> =
            paths.iter().map(|(path, want)| Some(tree.read(path, want).ok()?.id)).collect();
        let mut answers = vec![format!("{}", ids[1] == ids[4])];
        for (path, want) in paths {
            answers.push(format!("{:?}", tree.read(path, &want).map(|content| content.bytes)));
            answers.push(format!("{:?} {:?}", tree.list(path), tree.kind(path)));
        }
        answers
    };
    let first = ask(&recorder);
    assert_eq!(ask(&recorder), first);
    let replay = Replay::from_bytes(packed(&recorder)).unwrap();
    assert_eq!(ask(&replay), first);
}

#[test]
fn a_file_that_contradicts_what_was_read_of_it_is_not_known() {
    let host = Host::new();
    host.file("f", "abc");
    let tree = host.tree();
    let recorder = Recorder::new(&tree);
    let (part, whole) = (Want::lines(9, keep_a), Want::whole(9));
    assert_eq!(text(&recorder, "/f", part).unwrap(), "a");
    host.file("f", "bc");
    let ask = |tree: &dyn Tree| (text(tree, "/f", part).unwrap(), text(tree, "/f", whole));
    assert_eq!(ask(&recorder), ("a".to_owned(), Err(ReadError::NotRecorded)));
    host.file("f", "abc");
    assert_eq!(ask(&recorder), ("a".to_owned(), Err(ReadError::NotRecorded)), "again");
    assert_eq!(ask(&Replay::from_bytes(packed(&recorder)).unwrap()), ask(&recorder));
}

#[test]
fn a_boot_directory_that_changes_gives_the_same_facts() {
    struct Swapping<'a>(&'a Host, DirTree, std::cell::Cell<usize>);
    impl Swapping<'_> {
        fn swap(&self) {
            self.2.set(self.2.get() + 1);
            let option =
                ["CONFIG_PCI_P2PDMA=y", "# CONFIG_PCI_P2PDMA is not set", ""][self.2.get() % 3];
            for release in [RELEASE, "6.5.0-9-generic"] {
                let path = format!("boot/config-{release}");
                fs::remove_file(self.0.at(&path)).unwrap_or_default();
                if !option.is_empty() {
                    self.0.file(&path, config(option));
                    self.0.file(&format!("boot/vmlinuz-{release}"), option);
                }
            }
        }
    }
    impl Tree for Swapping<'_> {
        fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
            self.swap();
            self.1.read(path, want)
        }
        fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
            self.swap();
            self.1.list(path)
        }
        fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
            self.swap();
            self.1.kind(path)
        }
    }
    let host = Host::new();
    for start in 0..6 {
        let tree = Swapping(&host, host.tree(), std::cell::Cell::new(start));
        let recorder = Recorder::new(&tree);
        let live = gather(&recorder, &Asked::Running);
        let replay = Replay::from_bytes(packed(&recorder)).unwrap();
        assert_eq!(gather(&replay, &Asked::Running), live, "from {start}");
    }
}

#[test]
fn a_file_that_only_root_may_read_is_not_carried_away() {
    const KEY: &str =
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANsecret\n-----END PRIVATE KEY-----\n";
    const SHADOW: &str = "root:$6$secret:19000:0:99999:7:::\n";
    const ENVIRONMENT: &str = "HOME=/root\0TOKEN=secret\0";
    const VARIABLES: &str =
        "CONFIG_TOKEN=secret\nCONFIG_URL=\"https://secret\"\nTOKEN=secret\n# secret\n";
    for text in [KEY, SHADOW, ENVIRONMENT, VARIABLES] {
        let named = [&[0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0][..], text.as_bytes()].concat();
        for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes()), named] {
            let host = Host::new();
            host.file("etc/shadow", bytes)
                .link("usr/src/linux/.config", "/etc/shadow")
                .link("boot/config-6.8.0-142-generic", "/etc/shadow")
                .link("usr/lib/modules/6.8.0-142-generic/build/.config", "/etc/shadow")
                .link("proc/config.gz", "/etc/shadow");
            let (_, packed) = same_facts(&host.tree());
            for secret in ["secret", "MIIE", "$6$", "/root", "BEGIN", "TOKEN=s"] {
                assert!(!holds(&packed, secret), "{secret} of {text:?}");
            }
        }
    }
}

#[test]
fn a_listed_name_that_no_reader_looks_for_is_not_carried_away() {
    let host = Host::new();
    host.file("boot/secret.key", "x")
        .file("boot/secret of fred.txt", "x")
        .file("boot/vmlinuz-6.8.0-142-generic", "image")
        .file("boot/config-6.8.0-142-generic", config("CONFIG_PCI_P2PDMA=y"))
        .file("boot/efi/EFI/ubuntu/grub.cfg", "configfile /x\n")
        .file("boot/efi/EFI/secret vendor/x", "x")
        .file("usr/lib/modules/secret build/x", "x")
        .file("etc/default/grub.d/secret.txt", "x")
        .file("etc/default/grub", "GRUB_DEFAULT=0\n")
        .file("boot/grub/grub.cfg", "menuentry 'x' {\nlinux /vmlinuz-6.8.0-142-generic\n}\n")
        .link("lib", "usr/lib");
    let (_, packed) = same_facts(&host.tree());
    assert!(!holds(&packed, "secret"));
    assert!(holds(&packed, "masked name 2") && holds(&packed, "vmlinuz-6.8.0-142-generic"));
    let replay = Replay::from_bytes(packed).unwrap();
    assert_eq!(replay.kind("/boot/secret.key"), Err(ReadError::NotRecorded), "it may be there");
    assert_eq!(replay.kind("/boot/config-1"), Err(ReadError::Missing));
}

/// A tree with more names than any.
struct Endless;
impl Tree for Endless {
    fn read(&self, _: &str, _: &Want) -> Result<Content, ReadError> {
        Err(ReadError::Missing)
    }
    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadError> {
        let entry = |n: usize| Entry {
            name: format!("config-{n}{}", "-long".repeat(40)),
            kind: FileKind::File,
        };
        Ok((0..30_000).map(entry).collect())
    }
    fn kind(&self, _: &str) -> Result<FileKind, ReadError> {
        Err(ReadError::Missing)
    }
}

#[test]
fn a_host_with_more_than_a_snapshot_holds_is_told_so() {
    // Files of holes, which are told apart by their length.
    let host = Host::new();
    let large = |path: &str, length: u64| {
        fs::File::create(host.at(path)).unwrap().set_len(length).unwrap();
    };
    large("boot/config-6.8.0-142-generic", 40 << 20);
    large("usr/src/linux/.config", (20 << 20) + 1);
    let tree = host.tree();
    let result = |tree: &dyn Tree| {
        let recorder = Recorder::new(tree);
        gather(&recorder, &Asked::Running);
        write(&recorder, &meta(), io::sink())
    };
    result(&tree).unwrap();
    large("usr/src/linux/.config", 30 << 20);
    let error = result(&tree).unwrap_err();
    assert!(
        matches!(&error, WriteError::TooManyBytes { path, .. } if path.contains("boot/config")),
        "{error}"
    );
    let recorder = Recorder::new(&Endless);
    recorder.list("/boot").unwrap();
    assert!(matches!(write(&recorder, &meta(), io::sink()), Err(WriteError::TooManyNames)));
    let recorder = Recorder::new(&Endless);
    for number in 0..=MAX_QUESTIONS {
        let _ = recorder.kind(&format!("/{number}"));
    }
    assert!(matches!(write(&recorder, &meta(), io::sink()), Err(WriteError::TooManyNames)));
}

#[test]
fn one_large_file_with_many_names_is_kept_once() {
    let host = Host::new();
    let text = config("CONFIG_PCI_P2PDMA=y") + &"CONFIG_LONG_NAME=y\n".repeat(1_500_000);
    host.file("boot/config-6.8.0-142-generic", &text);
    for name in
        ["usr/src/linux-6.8.0-142-generic/.config", "usr/lib/modules/6.8.0-142-generic/config"]
    {
        host.link(name, "/boot/config-6.8.0-142-generic");
    }
    fs::hard_link(host.at("boot/config-6.8.0-142-generic"), host.at("usr/src/linux/.config"))
        .unwrap();
    same_facts(&host.tree());
}

// Writing.

/// The names in a directory, and what is in the files.
fn listed(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_there_whole_or_not_at_all() {
    let out = TempDir::new().unwrap();
    let path = out.path().join("host.tar.zst");
    write_file(b"first", &path, Existing::Keep).unwrap();
    assert_eq!(listed(out.path()), ["host.tar.zst"]);
    let kept = write_file(b"second", &path, Existing::Keep);
    assert!(matches!(kept, Err(WriteError::Exists(_))), "{kept:?}");
    assert_eq!(fs::read(&path).unwrap(), b"first", "the old one stays");
    write_file(b"second", &path, Existing::Replace).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    symlink("host.tar.zst", out.path().join("link")).unwrap();
    let kept = write_file(b"third", &out.path().join("link"), Existing::Keep);
    assert!(matches!(kept, Err(WriteError::Exists(_))), "{kept:?}");
    write_file(b"third", &out.path().join("link"), Existing::Replace).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"third", "a link is followed");
    assert!(out.path().join("link").is_symlink());
    assert_eq!(listed(out.path()), ["host.tar.zst", "link"]);
    for path in ["/dev/null", "/"] {
        let result = write_file(b"x", Path::new(path), Existing::Replace);
        assert!(matches!(result, Err(WriteError::NotAFile(_))), "{path}: {result:?}");
    }
    let nowhere = out.path().join("no/such/place");
    for existing in [Existing::Keep, Existing::Replace] {
        let result = write_file(b"x", &nowhere, existing);
        assert!(matches!(result, Err(WriteError::Path { .. })), "{result:?}");
    }
}

#[test]
fn a_link_to_nowhere_is_not_replaced_by_a_file() {
    let out = TempDir::new().unwrap();
    let link = out.path().join("link");
    symlink("nowhere", &link).unwrap();
    let result = write_file(b"x", &link, Existing::Replace);
    assert!(matches!(result, Err(WriteError::Dangling(_))), "{result:?}");
    assert!(link.is_symlink());
    assert_eq!(listed(out.path()), ["link"]);
}

#[test]
fn only_the_owner_may_read_an_archive() {
    use std::os::unix::fs::PermissionsExt;
    let out = TempDir::new().unwrap();
    let path = out.path().join("host.tar.zst");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
    write_file(b"x", &path, Existing::Keep).unwrap();
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    write_file(b"x", &path, Existing::Replace).unwrap();
    assert_eq!(mode(), 0o600);
}

#[test]
fn what_cannot_be_said_is_not_written() {
    let host = Host::new();
    let tree = host.tree();
    let wrong = Meta { time: "yesterday".to_owned(), ..meta() };
    let mut out = Vec::new();
    let result = write(&Recorder::new(&tree), &wrong, &mut out);
    assert!(matches!(result, Err(WriteError::Meta)) && out.is_empty());
}

#[test]
fn a_full_disk_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let host = Host::new();
    let tree = host.tree();
    assert!(matches!(write(&Recorder::new(&tree), &meta(), Full), Err(WriteError::Io(_))));
}

// Hostile snapshots.

const EMPTY: &str = r#"{"schema":"fastpath.snapshot/1","tool":"0","time":"2026-11-30T12:00:00Z","euid":0,"uname":null,"paths":[]}"#;

fn manifest(paths: &str) -> String {
    EMPTY.replace("[]", &format!("[{paths}]"))
}

fn add(tar: &mut Vec<u8>, name: &str, kind: tar::EntryType, bytes: &[u8]) {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    tar.extend_from_slice(header.as_bytes());
    tar.extend_from_slice(bytes);
    tar.resize(tar.len().next_multiple_of(512), 0);
}

fn archive(members: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, bytes) in members {
        add(&mut tar, name, tar::EntryType::Regular, bytes.as_bytes());
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

fn refused(bytes: Vec<u8>) -> String {
    let message = Replay::from_bytes(bytes).unwrap_err().to_string();
    assert!(message.chars().count() < 300 && !message.chars().any(char::is_control), "{message:?}");
    message
}

#[test]
fn a_plain_tar_is_a_snapshot() {
    let question = r#"{"path":"/f","op":"read","state":"file","id":0,"length":1,"new":[1]}"#;
    let tar = archive(&[("manifest.json", &manifest(question)), ("root/f", "x")]);
    let replay = Replay::from_bytes(tar.clone()).unwrap();
    assert_eq!(text(&replay, "/f", Want::whole(1)).unwrap(), "x");
    let zstd = compress_to_vec(tar.as_slice(), CompressionLevel::Uncompressed);
    assert!(Replay::from_bytes(zstd.clone()).is_ok());
    // Frames may be skippable, and may follow each other.
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &zstd].concat();
    assert!(
        refused(skippable.clone()).starts_with("not a snapshot"),
        "no magic that is looked for"
    );
    let followed = [&zstd[..], &skippable[..10]].concat();
    assert!(Replay::from_bytes(followed).is_ok());
    let halves = [
        compress_to_vec(&tar[..700], CompressionLevel::Fastest),
        compress_to_vec(&tar[700..], CompressionLevel::Fastest),
    ];
    assert!(Replay::from_bytes(halves.concat()).is_ok());
}

#[test]
fn what_is_no_snapshot_is_called_so() {
    let out = TempDir::new().unwrap();
    let file = out.path().join("file");
    for bytes in [&b""[..], b"hello\n", &[0; 4096], b"PK\x03\x04"] {
        fs::write(&file, bytes).unwrap();
        let message = Replay::open(&file).unwrap_err().to_string();
        assert!(message.starts_with("not a snapshot: "), "{message}");
    }
    let zstd = compress_to_vec(&b"just some text"[..], CompressionLevel::Fastest);
    assert!(refused(zstd).starts_with("not a snapshot: "));
    let fifo = out.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for path in [out.path(), &fifo, Path::new("/dev/zero")] {
        let message = Replay::open(path).unwrap_err().to_string();
        assert!(message.starts_with("not a snapshot: "), "{message}");
    }
    assert!(matches!(Replay::open(&out.path().join("none")), Err(SnapshotError::Io(_))));
}

#[test]
fn hostile_members_are_refused() {
    use tar::EntryType::{
        Block, Char, Continuous, Directory, Fifo, GNUSparse, Link, Regular, Symlink, XGlobalHeader,
    };
    let good = ("manifest.json", EMPTY);
    for (name, kind, expected) in [
        ("../x", Regular, "elsewhere"),
        ("root/../../x", Regular, "elsewhere"),
        ("root/./x", Regular, "elsewhere"),
        ("/etc/passwd", Regular, "elsewhere"),
        ("root//x", Regular, "elsewhere"),
        ("root/x/", Regular, "elsewhere"),
        ("root/x", Link, "only regular files"),
        ("root/x", Symlink, "only regular files"),
        ("root/x", Char, "only regular files"),
        ("root/x", Block, "only regular files"),
        ("root/x", Fifo, "only regular files"),
        ("root/x", Directory, "only regular files"),
        ("root/x", Continuous, "only regular files"),
        ("root/x", XGlobalHeader, "only regular files"),
        ("root/x", GNUSparse, ""),
        ("manifest.json", Regular, "twice"),
        ("root/x", Regular, "does not name"),
        ("root/\u{1b}[31m", Regular, "does not name"),
    ] {
        let mut tar = Vec::new();
        add(&mut tar, good.0, Regular, good.1.as_bytes());
        add(&mut tar, name, kind, b"");
        tar.resize(tar.len() + 1024, 0);
        let message = refused(tar);
        assert!(message.contains(expected), "{name} {kind:?}: {message}");
    }
}

#[test]
fn manifests_that_lie_are_refused() {
    let file = |more: &str| format!(r#"{{"path":"/f","op":"read","state":"file"{more}}}"#);
    for (paths, expected) in [
        (file(""), "length"),
        (file(r#","id":0"#), "length"),
        (file(r#","length":1"#), "the file"),
        (file(r#","id":0,"length":2"#), "right length"),
        (file(r#","id":-1,"length":1"#), "damaged"),
        (file(r#","id":0,"length":1,"member":"root/g""#), "does not hold"),
        (file(r#","id":0,"length":1,"member":"../../etc/passwd""#), "does not hold"),
        (file(r#","id":0,"length":1,"same_as":"/f""#), "does not hold"),
        (r#"{"path":"f","op":"kind","state":"missing"}"#.to_owned(), "path as it should"),
        (r#"{"path":"/a//b","op":"kind","state":"missing"}"#.to_owned(), "path as it should"),
        (r#"{"path":"/f","op":"kind","state":"file","id":0,"length":1}"#.to_owned(), "state"),
        (r#"{"path":"/f","op":"read","state":"directory","entries":[]}"#.to_owned(), "state"),
        (r#"{"path":"/f","op":"list","state":"directory"}"#.to_owned(), "names"),
        (
            r#"{"path":"/f","op":"list","state":"directory","entries":[{"name":"../x","kind":"file"}]}"#
                .to_owned(),
            "names",
        ),
        (r#"{"path":"/f","op":"kind","state":"kind"}"#.to_owned(), "kind"),
        (r#"{"path":"/f","op":"kind","state":"kind","kind":"door"}"#.to_owned(), "damaged"),
        (r#"{"path":"/f","op":"read","state":"errno","errno":"EWHAT"}"#.to_owned(), "error"),
        (r#"{"path":"/f","op":"read","state":"too-large"}"#.to_owned(), "limit"),
        (r#"{"path":"/f","op":"write","state":"missing"}"#.to_owned(), "damaged"),
        (
            [r#"{"path":"/f","op":"kind","state":"missing"}"#; 2].join(","),
            "answers a question too often",
        ),
        (String::new(), "does not name"),
    ] {
        let tar = archive(&[("manifest.json", &manifest(&paths)), ("root/f", "x")]);
        let message = refused(tar);
        assert!(message.contains(expected), "{paths}: {message}");
    }
    let missing = manifest(&file(r#","id":0,"length":1"#));
    assert!(refused(archive(&[("manifest.json", &missing)])).contains("does not hold"));
}

#[test]
fn manifests_that_are_none_are_refused() {
    let refused = |text: &str| refused(archive(&[("manifest.json", text)]));
    for text in ["", "null", "{}", "[1]", "{\"schema\":1}", "\u{0}"] {
        assert!(refused(text).contains("manifest is damaged"), "{text}");
    }
    assert!(refused(&EMPTY.replace("snapshot/1", "snapshot/2")).contains("snapshot/2"));
    assert!(refused(&EMPTY.replace("snapshot/1", &"\\u001b".repeat(500))).contains("schema"));
    assert!(refused(&EMPTY.replace("2026-11", "2026-13")).contains("time"));
    assert!(refused(&EMPTY.replace("\"tool\":\"0\"", "\"tool\":\"\\u001b[2J\"")).contains("time"));
    let deep = format!("{{\"schema\":\"fastpath.snapshot/1\",\"x\":{}", "[".repeat(1 << 20));
    assert!(refused(&deep).contains("manifest is damaged"));
    let deep = EMPTY.replace("[]", &format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20)));
    assert!(refused(&deep).contains("manifest is damaged"));
    let large = EMPTY.to_owned() + &" ".repeat(MAX_MANIFEST);
    assert!(refused(&large).contains("larger than"));
    for members in [&[("root/x", "x"), ("manifest.json", EMPTY)][..], &[("x", "x")], &[]] {
        let message = Replay::from_bytes(archive(members)).unwrap_err();
        let expected =
            matches!(message, SnapshotError::NoManifest | SnapshotError::NotASnapshot(_));
        assert!(expected, "{message}");
    }
}

/// Headers that say how large what follows is, with nothing behind them but zeros.
fn said(name: &str, kind: tar::EntryType, length: usize) -> Vec<u8> {
    let mut tar = Vec::new();
    add(&mut tar, name, kind, &vec![0; length]);
    add(&mut tar, "manifest.json", tar::EntryType::Regular, EMPTY.as_bytes());
    tar.resize(tar.len() + 1024, 0);
    tar
}

#[test]
fn what_stands_in_front_of_a_member_is_short() {
    use tar::EntryType::{GNULongLink, GNULongName, XGlobalHeader, XHeader};
    for kind in [GNULongName, XHeader, GNULongLink, XGlobalHeader] {
        let message = refused(said("x", kind, 40 << 20));
        assert!(message.contains("too long") || message.contains("only regular"), "{message}");
    }
    let two = |kind, bytes: &[u8]| {
        let mut tar = Vec::new();
        add(&mut tar, "x", kind, bytes);
        add(&mut tar, "x", GNULongName, b"manifest.json\0");
        tar.extend_from_slice(&archive(&[("manifest.json", EMPTY)]));
        tar
    };
    assert!(refused(two(GNULongName, b"manifest.json\0")).contains("two names"));
    assert!(refused(two(XHeader, b"22 path=manifest.json\n")).contains("two names"));
    assert!(refused(two(XHeader, b"12 size=999\n")).contains("two sizes"));
    assert!(refused(two(XHeader, b"99 path=m\n")).contains("damaged"));
    let mut tar = Vec::new();
    add(&mut tar, "manifest.json", tar::EntryType::Regular, EMPTY.as_bytes());
    add(&mut tar, "x", GNULongName, b"root/x\0");
    tar.resize(tar.len() + 1024, 0);
    assert!(refused(tar).contains("cut"), "a name of nothing");
}

#[test]
fn an_archive_that_another_program_made_has_long_names_too() {
    let name = format!("root/{}", "long/".repeat(50));
    let path = &name[4..name.len() - 1];
    let question = format!(r#"{{"path":"{path}","op":"read","state":"file","id":0,"length":1}}"#);
    let record = |length: usize| format!("{length} path=root{path}\n");
    let record = record(record(100).len());
    let gnu = format!("root{path}\0");
    for (kind, said) in [(tar::EntryType::XHeader, &record), (tar::EntryType::GNULongName, &gnu)] {
        let mut tar = Vec::new();
        add(&mut tar, "x", tar::EntryType::XHeader, b"20 mtime=1.23456789\n");
        add(&mut tar, "manifest.json", tar::EntryType::Regular, manifest(&question).as_bytes());
        add(&mut tar, "x", kind, said.as_bytes());
        add(&mut tar, "root/short", tar::EntryType::Regular, b"y");
        tar.resize(tar.len() + 1024, 0);
        let replay = Replay::from_bytes(tar).unwrap();
        assert_eq!(text(&replay, path, Want::whole(1)).unwrap(), "y");
    }
}

#[test]
fn a_manifest_with_more_questions_than_any_is_refused() {
    let question =
        |number: usize| format!(r#"{{"path":"/{number}","op":"kind","state":"missing"}}"#);
    let questions: Vec<String> = (0..=MAX_QUESTIONS).map(question).collect();
    let message = refused(archive(&[("manifest.json", &manifest(&questions.join(",")))]));
    assert!(message.contains("more than 16384 questions"), "{message}");
    Replay::from_bytes(archive(&[("manifest.json", &manifest(&questions[1..].join(",")))]))
        .unwrap();
}

#[test]
fn one_question_with_more_answers_than_filters_is_refused() {
    let file = r#"{"path":"/f","op":"read","state":"file","id":0,"length":1,"filtered":true}"#;
    let archive = |count| {
        archive(&[("manifest.json", &manifest(&vec![file; count].join(","))), ("root/f", "x")])
    };
    Replay::from_bytes(archive(16)).unwrap();
    assert!(refused(archive(17)).contains("too often"));
}

#[test]
fn two_files_with_one_id_are_refused() {
    let file = |name: &str, more: &str| {
        format!(r#"{{"path":"/{name}","op":"read","state":"file","id":7,"length":1{more}}}"#)
    };
    let open = |other: &str, more: &str| {
        let questions = [file("f", ""), file("g", more)].join(",");
        Replay::from_bytes(archive(&[
            ("manifest.json", &manifest(&questions)),
            ("root/f", "x"),
            ("root/g", other),
        ]))
    };
    open("x", "").unwrap();
    open("y", r#","filtered":true"#).unwrap();
    let message = open("y", "").unwrap_err().to_string();
    assert!(message.contains("same file") && message.contains("/g"), "{message}");
}

#[test]
fn a_compressed_file_in_a_snapshot_is_small() {
    let open = |length: usize| {
        let question =
            format!(r#"{{"path":"/f","op":"read","state":"file","id":0,"length":{length}}}"#);
        let mut bytes = vec![0; length];
        bytes[..2].copy_from_slice(&[0x1f, 0x8b]);
        let mut tar = Vec::new();
        add(&mut tar, "manifest.json", tar::EntryType::Regular, manifest(&question).as_bytes());
        add(&mut tar, "root/f", tar::EntryType::Regular, &bytes);
        tar.resize(tar.len() + 1024, 0);
        Replay::from_bytes(tar).map(|_| ())
    };
    open(2 << 20).unwrap();
    assert!(open((2 << 20) + 1).unwrap_err().to_string().contains("the text"));
}

#[test]
fn empty_frames_without_end_are_refused() {
    let empty = compress_to_vec(&b""[..], CompressionLevel::Uncompressed);
    let frames = empty.repeat(MAX_PACKED / empty.len());
    assert!(refused(frames).contains("too many"));
    assert!(matches!(
        Replay::from_bytes(empty.repeat(MAX_PACKED / empty.len() + 1)),
        Err(SnapshotError::TooLarge)
    ));
}

#[test]
fn too_many_members_are_refused() {
    let mut tar = Vec::new();
    add(&mut tar, "manifest.json", tar::EntryType::Regular, EMPTY.as_bytes());
    for number in 0..MAX_MEMBERS {
        add(&mut tar, &format!("root/{number}"), tar::EntryType::Regular, b"");
    }
    tar.resize(tar.len() + 1024, 0);
    assert!(matches!(Replay::from_bytes(tar), Err(SnapshotError::TooManyMembers)));
}

/// A zstd frame of blocks that each repeat one byte 128 KiB times: four bytes each in the file.
fn bomb(window: u8, blocks: usize) -> Vec<u8> {
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window];
    for block in 0..blocks {
        let header = (128_u32 << 10) << 3 | 1 << 1 | u32::from(block + 1 == blocks);
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.push(0);
    }
    out
}

#[test]
fn decompression_stops_at_the_limit() {
    let blocks = MAX_BYTES / (128 << 10) + 1;
    // 8 MiB is taken, the next size is not.
    assert!(matches!(Replay::from_bytes(bomb(13 << 3, blocks)), Err(SnapshotError::TooLarge)));
    assert!(matches!(Replay::from_bytes(bomb(13 << 3 | 1, 1)), Err(SnapshotError::Window(_))));
    assert!(matches!(Replay::from_bytes(bomb(31 << 3, 1)), Err(SnapshotError::Window(_))));
    assert!(matches!(Replay::from_reader(io::repeat(0)), Err(SnapshotError::TooLarge)));
}

fn sound() -> Vec<u8> {
    let host = Host::new();
    host.file("boot/config-6.8.0-142-generic", config("CONFIG_PCI_P2PDMA=y"))
        .file("boot/vmlinuz-6.8.0-142-generic", "image")
        .file("proc/config.gz", gzip(config("CONFIG_PCI_P2PDMA=y").as_bytes()))
        .link("lib", "usr/lib");
    round_trip(&host.tree()).2
}

#[test]
fn a_cut_snapshot_is_refused_wherever_it_is_cut() {
    let sound = sound();
    for cut in 0..sound.len() {
        let error = Replay::from_bytes(sound[..cut].to_vec()).unwrap_err();
        let expected = match error {
            SnapshotError::Cut(at) => at == cut,
            SnapshotError::NotASnapshot(_) => cut < 4,
            _ => false,
        };
        assert!(expected, "cut at {cut}: {error}");
    }
    let plain = unpacked(&sound);
    for cut in (0..plain.len()).step_by(97).chain((0..plain.len()).step_by(512)) {
        let error = Replay::from_bytes(plain[..cut].to_vec()).unwrap_err();
        let expected = match error {
            SnapshotError::Cut(at) => at == cut,
            SnapshotError::NotASnapshot(_) => cut < 512,
            _ => false,
        };
        assert!(expected, "tar cut at {cut}: {error}");
    }
}

#[test]
fn every_byte_matters_or_changes_nothing() {
    let sound = sound();
    let expected = Replay::from_bytes(sound.clone()).unwrap();
    let expected = gather(&expected, &Asked::Running);
    for at in 0..sound.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = sound.clone();
            bytes[at] ^= flip;
            if let Ok(replay) = Replay::from_bytes(bytes) {
                assert_eq!(replay.meta(), &meta(), "byte {at}");
                assert_eq!(gather(&replay, &Asked::Running), expected, "byte {at}");
            }
        }
    }
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{1,2}",
        1 => "[ -.0-~\u{e9}\u{1f600}]{1,20}".prop_filter("a name", |name| name != "." && name != ".."),
        1 => "[0-9a-f]{32}(-x)?",
        1 => "[a-z]{90,120}",
    ]
}

fn trees() -> impl Strategy<Value = Memory> {
    let path =
        prop::collection::vec(names(), 1..4).prop_map(|names| format!("/{}", names.join("/")));
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[ab\n]{0,9}".prop_map(String::into_bytes),
    ];
    prop::collection::btree_map(path, bytes, 0..12).prop_map(|mut files| {
        // A file has nothing below it.
        let paths: Vec<String> = files.keys().cloned().collect();
        files.retain(|path, _| !paths.iter().any(|other| other.starts_with(&format!("{path}/"))));
        Memory(files)
    })
}

/// Asks for everything in a tree and some that is not there. Ids in names are told apart by their order only, and their
/// names are left out: a snapshot masks them.
fn everything(tree: &dyn Tree) -> Vec<String> {
    let mut answers = Vec::new();
    let mut todo = vec!["/".to_owned()];
    while let Some(path) = todo.pop() {
        let wants = [Want::whole(30), Want::lines(50, keep_ab), Want::lines(50, keep_a)];
        for want in wants {
            let read = tree.read(&path, &want).map(|content| content.bytes);
            answers.push(format!("{read:?}"));
        }
        answers.push(format!("{:?}", tree.kind(&path)));
        answers.push(format!("{:?}", tree.kind(&format!("{path}/none"))));
        let entries = tree.list(&path);
        answers.push(format!("{:?}", entries.as_ref().map(Vec::len)));
        for entry in entries.unwrap_or_default() {
            todo.push(format!("{}/{}", path.trim_end_matches('/'), entry.name));
        }
    }
    answers.sort();
    answers
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_comes_back(tree in trees()) {
        let recorder = Recorder::new(&tree);
        let live = everything(&recorder);
        let packed = packed(&recorder);
        let replay = Replay::from_bytes(packed.clone()).unwrap();
        prop_assert_eq!(everything(&replay), live);
        for pair in members(&packed)[1..].windows(2) {
            prop_assert!(pair[0].0 < pair[1].0);
        }
    }

    #[test]
    fn files_keep_their_identity(mut tree in trees()) {
        // Who asks for a masked name by its old one gets the first of those that became one.
        tree.0.retain(|path, _| mask_ids(path) == *path);
        let recorder = Recorder::new(&tree);
        let paths: Vec<&String> = tree.0.keys().collect();
        let ids = |tree: &dyn Tree| -> Vec<FileId> {
            paths.iter().map(|path| tree.read(path, &Want::whole(99)).unwrap().id).collect()
        };
        let live = ids(&recorder);
        let replayed = ids(&Replay::from_bytes(packed(&recorder)).unwrap());
        for one in 0..live.len() {
            for other in 0..live.len() {
                prop_assert_eq!(live[one] == live[other], replayed[one] == replayed[other]);
            }
        }
    }

    #[test]
    fn any_bytes_are_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = Replay::from_bytes(bytes.clone());
        let _ = Replay::from_bytes([&[0x28, 0xb5, 0x2f, 0xfd][..], &bytes].concat());
        let _ = Replay::from_bytes(compress_to_vec(bytes.as_slice(), CompressionLevel::Uncompressed));
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let _ = Replay::from_bytes([&tar[..], &bytes].concat());
        let text = String::from_utf8_lossy(&bytes);
        let _ = Replay::from_bytes(archive(&[("manifest.json", &text)]));
    }

    #[test]
    fn any_change_of_a_tar_is_an_answer(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        fix in any::<bool>(),
    ) {
        let question = r#"{"path":"/f","op":"read","state":"file","id":0,"length":1}"#;
        let mut tar = archive(&[("manifest.json", &manifest(question)), ("root/f", "x")]);
        for (at, byte) in changes {
            let at = at.index(tar.len());
            tar[at] = byte;
        }
        if fix {
            // A header whose checksum fits is looked at further.
            for start in [0, 1024] {
                let mut header = tar::Header::from_byte_slice(&tar[start..start + 512]).clone();
                header.set_cksum();
                tar[start..start + 512].copy_from_slice(header.as_bytes());
            }
        }
        let _ = Replay::from_bytes(tar);
    }

    #[test]
    fn filters_change_nothing_the_second_time(
        lines in prop::collection::vec(prop_oneof![
            "[ -~]{0,30}",
            "(docker|lxc|crio|containerd|libpod|kubepods|/){1,4}",
            "Linux version [ -~]{0,20}",
            "(ffff0000|0) [tT] (x|pci_|pci_p2pdma_)[a-z_]{0,9}( |\t)?(\\[m\\])?",
            "(ID|ID_LIKE|VERSION_ID|PRETTY_NAME|NAME)=[ -~]{0,9}",
            "(title|linux|initrd|options|version|machine-id)[ \t]+[ -~]{0,20}",
            "[ \t]*(menuentry|submenu|linux|linux16|linuxefi|set default=|if|fi|\\}|\\{)[ -~]{0,20}",
            "GRUB_[A-Z]{1,9}=[ -~]{0,20}",
            "(saved_entry|next_entry)=[ -~]{0,20}",
        ], 0..8),
    ) {
        let text = lines.join("\n");
        let mut tree = Memory::default();
        for path in ["/etc/os-release", "/proc/1/cgroup", "/proc/version", "/proc/kallsyms", "/proc/cmdline",
            "/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", "/boot/grub2/grubenv", "/boot/grub/grubenv",
            "/etc/default/grub", "/boot/loader/loader.conf", "/boot/loader/entries/a.conf", "/etc/kernel/cmdline"] {
            tree.0.insert(path.to_owned(), format!("{text}\n").into_bytes());
        }
        tree.0.insert("/proc/sys/kernel/osrelease".to_owned(), RELEASE.into());
        let asked = Asked::Running;
        prop_assert_eq!(gather(&tree, &asked), gather(&Twice(&tree), &asked));
        let recorder = Recorder::new(&tree);
        let live = gather(&recorder, &asked);
        let replay = Replay::from_bytes(packed(&recorder)).unwrap();
        prop_assert_eq!(gather(&replay, &asked), live);
    }
}
