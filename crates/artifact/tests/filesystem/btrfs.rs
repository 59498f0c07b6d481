//! btrfs against btrfs-progs and the kernel.

use std::fs::{self, File};
use std::path::Path;

use fastpath_artifact::ReadSeek;
use fastpath_artifact::filesystem::{DirEntry, FileSystem, FsError, Stat, candidates, probe};

use crate::tools::{
    Mount, compare, fragments, have, links, mutate, noise, scratch, sh, skipped, text, tree,
    try_sh, with,
};

/// A file system as seen from one of its directories.
struct Below<'f>(&'f mut dyn FileSystem, &'f str);

impl FileSystem for Below<'_> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn read_dir(&mut self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        self.0.read_dir(&format!("{}{path}", self.1))
    }
    fn read(&mut self, path: &str, limit: usize) -> Result<Vec<u8>, FsError> {
        self.0.read(&format!("{}{path}", self.1), limit)
    }
    fn open(&mut self, path: &str) -> Result<Box<dyn ReadSeek + '_>, FsError> {
        self.0.open(&format!("{}{path}", self.1))
    }
    fn roots(&self) -> &[String] {
        self.0.roots()
    }
    fn stat(&mut self, path: &str) -> Result<Stat, FsError> {
        self.0.stat(&format!("{}{path}", self.1))
    }
}

#[test]
fn what_mkfs_itself_wrote_is_read() {
    if !have(&["mkfs.btrfs"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    tree(&root, 3000);
    links(&root);
    for options in [
        "",
        "-n 4096 -m dup",
        "-n 65536 -m single",
        "--mixed -n 4096",
        "--checksum xxhash",
        "--checksum sha256",
        "-O ^no-holes,^skinny-metadata",
        "-U 01234567-89ab-cdef-0123-456789abcdef",
    ] {
        let script = format!(
            "rm -f image; truncate -s 300M image; mkfs.btrfs -q {options} --rootdir root image"
        );
        if !try_sh(dir.path(), &script) {
            skipped(&format!("mkfs.btrfs does not take {options}"));
            continue;
        }
        with(&dir.path().join("image"), "btrfs", |fs| {
            assert_eq!(fs.roots(), ["/"]);
            compare(fs, &root, &[]);
        });
    }
}

#[test]
fn what_the_kernel_wrote_is_read() {
    if !have(&["mkfs.btrfs", "mount"]) {
        return;
    }
    for (mkfs, mount) in [
        ("", "compress-force=zstd"),
        ("-n 4096", "compress-force=zlib"),
        ("-m dup -d dup", "compress=lzo"),
        ("", "compress-force=lzo,max_inline=2048"),
        ("-n 4096 -O ^no-holes", "nodatasum"),
        ("-m single", "autodefrag"),
    ] {
        let dir = scratch();
        sh(dir.path(), &format!("truncate -s 500M image; mkfs.btrfs -q {mkfs} image"));
        let Some(mounted) = Mount::new(dir.path(), "image", mount) else { return };
        tree(mounted.path(), 6000);
        links(mounted.path());
        fragments(mounted.path());
        fs::write(mounted.path().join("text"), text(5_000_000)).unwrap();
        fs::write(
            mounted.path().join("mixed"),
            [text(200_000), noise(3, 300_000), vec![0; 500_000], text(77)].concat(),
        )
        .unwrap();
        sh(
            dir.path(),
            "sync; fallocate -l 4M mnt/preallocated; printf hello \
             | dd of=mnt/preallocated bs=1 seek=1048576 conv=notrunc status=none; \
             cp --reflink=always mnt/text mnt/shared; \
             dd if=mnt/mixed of=mnt/shared bs=4096 seek=100 count=3 conv=notrunc status=none; \
             truncate -s 123456 mnt/shared",
        );
        sh(dir.path(), "sync; cp -a --sparse=always mnt copy");
        drop(mounted);
        let copy = dir.path().join("copy");
        with(&dir.path().join("image"), "btrfs", |fs| compare(fs, &copy, &[]));
    }
}

#[test]
fn a_system_in_a_snapshot_is_found() {
    if !have(&["mkfs.btrfs", "btrfs", "mount"]) {
        return;
    }
    let dir = scratch();
    sh(dir.path(), "truncate -s 300M image; mkfs.btrfs -q image");
    let Some(mounted) = Mount::new(dir.path(), "image", "compress=zstd") else { return };
    // As openSUSE lays it out: the system is the first snapshot, and the default subvolume.
    sh(
        dir.path(),
        "cd mnt; btrfs -q subvolume create @; btrfs -q subvolume create @/home; \
         btrfs -q subvolume create @/.snapshots; mkdir -p @/.snapshots/1 @/.snapshots/2 @/boot/grub2; \
         btrfs -q subvolume create @/boot/grub2/x86_64-efi; btrfs -q subvolume create @/.snapshots/1/snapshot",
    );
    let system = mounted.path().join("@/.snapshots/1/snapshot");
    tree(&system, 100);
    links(&system);
    fs::write(mounted.path().join("@/home/file"), "home").unwrap();
    sh(
        dir.path(),
        "cd mnt/@; btrfs -q subvolume create .snapshots/1/snapshot/nested; \
         btrfs -q subvolume snapshot -r .snapshots/1/snapshot .snapshots/2/snapshot; \
         btrfs -q subvolume set-default .snapshots/1/snapshot; sync; cp -a .snapshots/1/snapshot ../../copy; \
         cp -a .snapshots/2/snapshot ../../second",
    );
    drop(mounted);
    let copy = dir.path().join("copy");
    with(&dir.path().join("image"), "btrfs", |fs| {
        assert_eq!(
            fs.roots(),
            [
                "/@/.snapshots/1/snapshot",
                "/@",
                "/@/home",
                "/@/.snapshots",
                "/@/boot/grub2/x86_64-efi",
                "/@/.snapshots/1/snapshot/nested",
                "/@/.snapshots/2/snapshot",
                "/",
            ]
        );
        assert_eq!(fs.read("/@/home/file", 10).unwrap(), b"home");
        let found = candidates(fs).files;
        let release = "6.1.0-57-amd64";
        assert_eq!(found[0].path, format!("/@/.snapshots/1/snapshot/boot/config-{release}"));
        assert_eq!(found.iter().filter(|one| one.path.ends_with("amd64")).count(), 6);
        // The subvolume inside of the first is not in its snapshot.
        assert_eq!(fs.read_dir("/@/.snapshots/2/snapshot/nested").unwrap(), []);
        compare(&mut Below(fs, "/@/.snapshots/1/snapshot"), &copy, &[]);
        compare(&mut Below(fs, "/@/.snapshots/2/snapshot"), &dir.path().join("second"), &[]);
    });
}

#[test]
fn damage_is_noticed_and_a_second_copy_is_used() {
    if !have(&["mkfs.btrfs"]) {
        return;
    }
    let dir = scratch();
    fs::create_dir(dir.path().join("root")).unwrap();
    let data = noise(1, 100_000);
    fs::write(dir.path().join("root/file"), &data).unwrap();
    sh(dir.path(), "truncate -s 200M image; mkfs.btrfs -q -m dup --rootdir root image");
    let image = fs::read(dir.path().join("image")).unwrap();
    // A byte of the file.
    let mut one = image.clone();
    one[places(&image, &data[4096..4160])[0]] ^= 1;
    let mut input = std::io::Cursor::new(one);
    let mut fs = probe(&mut input).unwrap().unwrap();
    let error = fs.read("/file", 1 << 20).unwrap_err().to_string();
    assert!(error.contains("checksum of data"), "{error}");
    drop(fs);
    // The name of the file, in one copy of its node, then in both.
    let names = places(&image, b"file");
    assert!(names.len() >= 4, "{names:?}");
    let half = names.len() / 2;
    let mut one = image.clone();
    for at in &names[..half] {
        one[*at] ^= 1;
    }
    let mut input = std::io::Cursor::new(&one);
    assert!(probe(&mut input).unwrap().unwrap().read("/file", 1 << 20).unwrap() == data);
    for at in &names[half..] {
        one[*at] ^= 1;
    }
    let mut input = std::io::Cursor::new(&one);
    let error = probe(&mut input).map(|fs| fs.unwrap().read("/file", 1 << 20));
    let error = error.map_or_else(|error| error, |read| read.unwrap_err()).to_string();
    assert!(error.contains("checksum of node"), "{error}");
}

/// Every place of `what`.
fn places(image: &[u8], what: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = image[at..].iter().position(|byte| *byte == what[0]) {
        at += next;
        if image[at..].starts_with(what) {
            found.push(at);
        }
        at += 1;
    }
    found
}

/// The first MiB and the metadata of a small file system, the rest left out.
fn small(dir: &Path, options: &str) -> Option<Vec<u8>> {
    let root = dir.join("root");
    fs::create_dir_all(root.join("boot")).unwrap();
    fs::write(root.join("boot/config-6.1.0"), text(9_000)).unwrap();
    fs::write(root.join("boot/inline"), text(900)).unwrap();
    for number in 0..60 {
        fs::write(root.join(format!("boot/some-longer-name-{number}")), "x").unwrap();
    }
    if !root.join("link").exists() {
        std::os::unix::fs::symlink("boot", root.join("link")).unwrap();
    }
    let script = format!(
        "rm -f s; truncate -s 40M s; mkfs.btrfs -q --mixed -n 4096 -m single -d single {options} --rootdir root s"
    );
    if !try_sh(dir, &script) {
        skipped("this mkfs.btrfs makes nothing small");
        return None;
    }
    let mut image = fs::read(dir.join("s")).unwrap();
    let used = image.iter().rposition(|byte| *byte != 0).unwrap();
    image.truncate(used + 1);
    Some(image)
}

/// Puts right the checksums of all nodes, so that damage is seen by what comes after.
fn seal(image: &mut [u8], at: usize, size: usize) {
    let sum = crc32c(&image[at + 32..at + size]);
    image[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0_u32, |mut crc, byte| {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
        crc
    })
}

#[test]
fn damaged_images_are_errors() {
    if !have(&["mkfs.btrfs"]) {
        return;
    }
    let dir = scratch();
    let Some(image) = small(dir.path(), "") else { return };
    let uuid = image[0x1_0020..0x1_0030].to_vec();
    let nodes: Vec<usize> = (0..image.len() - 4096)
        .step_by(4096)
        .filter(|at| *at != 0x1_0000 && image[at + 32..at + 48] == uuid)
        .collect();
    assert!(nodes.len() > 5);
    let superblock = 0x1_0000..0x1_0000 + 0x500;
    mutate(&image, 100, std::slice::from_ref(&superblock));
    let mut damaged = image.clone();
    for round in 0..1500_u64 {
        let random = noise(round, 24);
        let number = |at: usize| usize::from(u16::from_le_bytes([random[at], random[at + 1]]));
        let (at, within) = if round % 4 == 0 {
            (0x1_0000, 0x30 + number(2) % 0x400)
        } else {
            let width = if round % 4 == 1 { 101 } else { 4096 };
            (nodes[number(0) % nodes.len()], 32 + number(2) % (width - 32))
        };
        let kept = damaged[at..at + 4096].to_vec();
        damaged[at + within] = if round % 3 == 0 { 0xff } else { random[8] };
        seal(&mut damaged, at, 4096);
        crate::tools::exercise(&damaged);
        damaged[at..at + 4096].copy_from_slice(&kept);
    }
}

#[test]
fn several_devices_are_refused() {
    if !have(&["mkfs.btrfs", "losetup", "mount"]) {
        return;
    }
    let dir = scratch();
    if !try_sh(dir.path(), "truncate -s 200M one two; mkfs.btrfs -q -f -m raid0 -d raid0 one two") {
        skipped("mkfs.btrfs does not take files as several devices");
        return;
    }
    let mut file = File::open(dir.path().join("one")).unwrap();
    let error = match probe(&mut file) {
        Err(error) => error,
        Ok(fs) => fs.unwrap().read_dir("/").unwrap_err(),
    };
    assert!(matches!(error, FsError::Unsupported(_)), "{error}");
    sh(dir.path(), "mkfs.btrfs -q -f -m raid1 -d raid1 one two");
    let mut file = File::open(dir.path().join("two")).unwrap();
    assert_eq!(probe(&mut file).unwrap().unwrap().read_dir("/").unwrap(), []);
}
