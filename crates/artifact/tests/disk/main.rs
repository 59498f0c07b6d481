//! Disk images made by QEMU and partitioned by sfdisk and sgdisk.

#[path = "../filesystem/tools.rs"]
mod tools;

use std::fs::{self, File};
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use fastpath_artifact::disk::{self, Qcow2, Volume, volumes};
use fastpath_artifact::filesystem::{self, FsError};
use tools::{compare, have, links, noise, scratch, sh, skipped, text, tree, try_sh};

/// A guest's disk: text, noise, holes, zeros, an odd end.
fn guest() -> Vec<u8> {
    let mut guest = text(700_000);
    guest.extend(noise(1, 500_000));
    guest.resize(5 << 20, 0);
    guest.extend(text(300_000));
    guest.resize((9 << 20) + 512, 0);
    let end = guest.len() - 100;
    guest[end..].fill(7);
    guest
}

fn read_all(path: &Path) -> Vec<u8> {
    let mut file = File::open(path).unwrap();
    let mut disk = disk::open(&mut file).unwrap();
    let mut all = Vec::new();
    disk.read_to_end(&mut all).unwrap();
    for at in [9 << 20, 65_530, 0, 699_999, 5 << 20] {
        let mut part = vec![0; 513.min(all.len() - at)];
        disk.seek(SeekFrom::Start(at as u64)).unwrap();
        disk.read_exact(&mut part).unwrap();
        assert!(part == all[at..at + part.len()]);
    }
    all
}

#[test]
fn every_variant_of_qcow2_gives_the_guests_bytes() {
    if !have(&["qemu-img"]) {
        return;
    }
    let dir = scratch();
    let guest = guest();
    fs::write(dir.path().join("raw"), &guest).unwrap();
    for options in [
        "-O qcow2",
        "-O qcow2 -o compat=0.10",
        "-O qcow2 -o cluster_size=512",
        "-O qcow2 -o cluster_size=2M",
        "-O qcow2 -o preallocation=metadata",
        "-O qcow2 -o preallocation=falloc,lazy_refcounts=on,refcount_bits=1",
        "-c -O qcow2",
        "-c -O qcow2 -o compat=0.10",
        "-c -O qcow2 -o cluster_size=512",
        "-c -O qcow2 -o cluster_size=4096,compression_type=zstd",
        "-c -O qcow2 -o compression_type=zstd",
        "-c -O qcow2 -o cluster_size=2M,compression_type=zstd",
        "-c -O qcow2 -o cluster_size=2M",
        "-O raw",
    ] {
        sh(dir.path(), &format!("qemu-img convert -f raw {options} raw image"));
        let found = read_all(&dir.path().join("image"));
        assert!(found == guest, "{options}: {} bytes for {}", found.len(), guest.len());
    }
}

#[test]
fn what_a_qcow2_image_needs_and_is_not_read_is_refused() {
    if !have(&["qemu-img"]) {
        return;
    }
    let dir = scratch();
    fs::write(dir.path().join("raw"), guest()).unwrap();
    for (command, what) in [
        ("qemu-img create -q -f qcow2 -b raw -F raw image", "backing file"),
        ("qemu-img create -q -f qcow2 -o data_file=data,data_file_raw=on image 1M", "data file"),
        ("qemu-img create -q -f qcow2 -o extended_l2=on image 1M", "extended L2"),
        (
            "qemu-img create -q --object secret,id=s,data=abc -f qcow2 \
             -o encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10 image 1M",
            "encryption",
        ),
        ("qemu-img convert -O vmdk raw image", "VMDK"),
        ("qemu-img convert -O vdi raw image", "VDI"),
        ("qemu-img convert -O vhdx raw image", "VHDX"),
        (
            "qemu-img create -q -f qcow2 image 1M; printf '\\200' | dd of=image bs=1 seek=79 conv=notrunc status=none",
            "0x80",
        ),
        (
            "qemu-img create -q -f qcow2 image 1M; printf '\\002' | dd of=image bs=1 seek=79 conv=notrunc status=none",
            "corrupt",
        ),
    ] {
        sh(dir.path(), &format!("rm -f image data; {command}"));
        let mut file = File::open(dir.path().join("image")).unwrap();
        let error = disk::open(&mut file).err().unwrap_or_else(|| panic!("{command}")).to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_sparse_giant_costs_nothing() {
    if !have(&["qemu-img"]) {
        return;
    }
    let dir = scratch();
    sh(dir.path(), "qemu-img create -q -f qcow2 -o cluster_size=2M image 8191T");
    let mut file = File::open(dir.path().join("image")).unwrap();
    let mut disk = disk::open(&mut file).unwrap();
    let start = Instant::now();
    assert_eq!(volumes(&mut *disk).unwrap(), []);
    assert!(filesystem::probe(&mut *disk).unwrap().is_none());
    let mut end = [1; 100];
    disk.seek(SeekFrom::End(-100)).unwrap();
    disk.read_exact(&mut end).unwrap();
    assert_eq!(end, [0; 100]);
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn damaged_qcow2_images_are_errors() {
    if !have(&["qemu-img"]) {
        return;
    }
    let dir = scratch();
    let mut guest = text(40_000);
    guest.resize(60_000, 3);
    fs::write(dir.path().join("raw"), guest).unwrap();
    for options in [
        "-o cluster_size=512",
        "-c -o cluster_size=4096",
        "-c -o cluster_size=4096,compression_type=zstd",
    ] {
        sh(dir.path(), &format!("qemu-img convert -f raw -O qcow2 {options} raw image"));
        let image = fs::read(dir.path().join("image")).unwrap();
        for round in 0..3000_u64 {
            let random = noise(round, 16);
            let number =
                usize::try_from(u64::from_le_bytes(random[..8].try_into().unwrap())).unwrap();
            let mut image = image.clone();
            match round % 3 {
                0 => image[number % 112] = random[8],
                1 => {
                    let at = number % image.len();
                    image[at] ^= 1 << (random[8] % 8);
                }
                _ => image.truncate(number % image.len()),
            }
            let mut input = Cursor::new(image);
            let Ok(mut disk) = Qcow2::open(&mut input) else { continue };
            let mut all = Vec::new();
            let _ = (&mut disk).take(1 << 20).read_to_end(&mut all);
        }
    }
}

#[test]
fn tables_that_name_themselves_are_refused() {
    if !have(&["qemu-img"]) {
        return;
    }
    let dir = scratch();
    fs::write(dir.path().join("raw"), noise(1, 100_000)).unwrap();
    sh(dir.path(), "qemu-img convert -f raw -O qcow2 raw image");
    let image = fs::read(dir.path().join("image")).unwrap();
    let be64 = |at: usize| u64::from_be_bytes(image[at..at + 8].try_into().unwrap());
    let l1 = usize::try_from(be64(40)).unwrap();
    let l2 = usize::try_from(be64(l1) & 0x00ff_ffff_ffff_fe00).unwrap();
    for (at, value) in [
        (l2, l2 as u64),
        (l2, l1 as u64),
        (l1, l1 as u64),
        (l2, 1 << 55),
        (l1, 1 << 55),
        (l2, 512),
        (l2, 2),
    ] {
        let mut image = image.clone();
        image[at..at + 8].copy_from_slice(&value.to_be_bytes());
        let mut input = Cursor::new(image);
        let mut disk = Qcow2::open(&mut input).unwrap();
        let error = disk.read(&mut [0; 10]).unwrap_err();
        let error = FsError::from(error);
        assert!(matches!(error, FsError::Damaged { offset, .. } if offset == at as u64), "{error}");
    }
}

fn volume(name: &str, sector: u64, sectors: u64) -> Volume {
    Volume { name: name.to_owned(), offset: sector * 512, length: sectors * 512 }
}

fn list(path: &Path) -> Result<Vec<Volume>, FsError> {
    volumes(&mut File::open(path).unwrap())
}

const PARTED: &str = "printf 'size=2M, type=U\\nsize=5M\\nsize=+\\n' | sfdisk -q";

#[test]
fn gpt_by_either_header() {
    if !have(&["sfdisk", "sgdisk"]) {
        return;
    }
    let dir = scratch();
    let image = dir.path().join("image");
    sh(dir.path(), &format!("truncate -s 40M image; {PARTED} --label gpt image"));
    let expected = [
        volume("p1", 2048, 4096),
        volume("p2", 6144, 10240),
        volume("p3", 16384, (40 << 11) - 16384 - 2048),
    ];
    assert_eq!(list(&image).unwrap(), expected);
    // Numbers have gaps, and entries need not be in the order of the disk.
    sh(dir.path(), "sgdisk -d 2 -n 7:8000:+100K -n 4:12000:+1M image >log");
    let gaps: Vec<_> = list(&image).unwrap().into_iter().map(|volume| volume.name).collect();
    assert_eq!(gaps, ["p1", "p3", "p4", "p7"]);
    sh(
        dir.path(),
        &format!("truncate -s 0 image; truncate -s 40M image; {PARTED} --label gpt image"),
    );
    let sound = fs::read(&image).unwrap();
    for damage in [512, 512 + 16, 512 + 72, 1024 + 33] {
        let mut one = sound.clone();
        one[damage] ^= 0x55;
        assert_eq!(volumes(&mut Cursor::new(&one)).unwrap(), expected, "{damage}");
        let last = one.len() - 512;
        one[last + 40] ^= 1;
        let error = volumes(&mut Cursor::new(&one)).unwrap_err();
        assert!(matches!(error, FsError::Damaged { .. }), "{error}");
    }
    // Cut: the first header is sound, and a partition that starts beyond the end is not there.
    let error = volumes(&mut Cursor::new(&sound[..4 << 20])).unwrap_err().to_string();
    assert!(error.contains("partition 3"), "{error}");
    let cut = volumes(&mut Cursor::new(&sound[..20 << 20])).unwrap();
    let mut part = Vec::new();
    let mut input = Cursor::new(&sound[..20 << 20]);
    cut[2].open(&mut input).read_to_end(&mut part).unwrap();
    assert_eq!(part.len(), (20 << 20) - 16384 * 512);
}

#[test]
fn gpt_with_large_sectors() {
    if !have(&["sfdisk"]) {
        return;
    }
    let dir = scratch();
    // Only a device says how large its sectors are.
    let script = format!(
        "truncate -s 64M image; dev=$(losetup -f --show -b 4096 image); trap 'losetup -d $dev' 0; \
         {PARTED} --label gpt $dev"
    );
    if !try_sh(dir.path(), &script) {
        skipped("there are no loop devices with sectors of 4096 bytes");
        return;
    }
    let found = list(&dir.path().join("image")).unwrap();
    assert_eq!(found[..2], [volume("p1", 2048, 4096), volume("p2", 6144, 10240)]);
    assert_eq!(found.len(), 3);
}

#[test]
fn mbr_with_logical_partitions() {
    if !have(&["sfdisk"]) {
        return;
    }
    let dir = scratch();
    let image = dir.path().join("image");
    sh(
        dir.path(),
        "truncate -s 40M image; printf 'start=2048,size=4096,bootable\\nstart=8192,size=60000,type=f\\n\
         start=70000,size=1000,type=83\\n\\nstart=9000,size=5000\\nstart=20000,size=5000\\n\
         start=30000,size=1024\\n' | sfdisk -q --label dos image",
    );
    let expected = [
        volume("p1", 2048, 4096),
        volume("p3", 70000, 1000),
        volume("p5", 9000, 5000),
        volume("p6", 20000, 5000),
        volume("p7", 30000, 1024),
    ];
    let found = list(&image).unwrap();
    let names: Vec<_> = found.iter().filter(|volume| volume.name != "p4").cloned().collect();
    assert_eq!(names, expected);
    // A chain that comes back.
    let mut looped = fs::read(&image).unwrap();
    let table = 8192 * 512;
    let second = table
        + usize::try_from(u32::from_le_bytes(looped[table + 470..table + 474].try_into().unwrap()))
            .unwrap()
            * 512;
    looped[second + 470..second + 474].copy_from_slice(&0_u32.to_le_bytes());
    let error = volumes(&mut Cursor::new(looped)).unwrap_err().to_string();
    assert!(error.contains("no end"), "{error}");
}

#[test]
fn damaged_tables_are_errors() {
    if !have(&["sfdisk"]) {
        return;
    }
    let dir = scratch();
    for label in ["gpt", "dos"] {
        sh(
            dir.path(),
            &format!("rm -f image; truncate -s 12M image; {PARTED} --label {label} image"),
        );
        let mut image = fs::read(dir.path().join("image")).unwrap();
        for round in 0..4000_u64 {
            let random = noise(round, 10);
            let number = usize::from(u16::from_le_bytes([random[0], random[1]]));
            let at = if label == "gpt" { 446 + number % 1500 } else { 440 + number % 72 };
            let kept = image[at];
            image[at] = random[2];
            let _ = volumes(&mut Cursor::new(&image[..]));
            image[at] = kept;
        }
        for length in [0, 1, 511, 512, 513, 1024, 4096, 1 << 20] {
            let _ = volumes(&mut Cursor::new(&image[..length]));
        }
    }
}

#[test]
fn a_file_system_inside_of_partitions_inside_of_qcow2() {
    if !have(&["sgdisk", "qemu-img", "mkfs.ext4"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    tree(&root, 50);
    links(&root);
    sh(
        dir.path(),
        "truncate -s 90M part; mkfs.ext4 -q -d root part; truncate -s 100M raw; \
         sgdisk -n 1:2048:+1M -n 2:8192:+90M raw >log; dd if=part of=raw bs=1M seek=4 conv=notrunc,sparse status=none; \
         qemu-img convert -c -f raw -O qcow2 -o compression_type=zstd raw image; \
         qemu-img convert -f raw -O qcow2 part whole",
    );
    let mut file = File::open(dir.path().join("image")).unwrap();
    let mut disk = disk::open(&mut file).unwrap();
    let found = volumes(&mut *disk).unwrap();
    assert_eq!(found[1], Volume { name: "p2".to_owned(), offset: 4 << 20, length: 90 << 20 });
    let mut part = found[0].open(&mut *disk);
    assert!(filesystem::probe(&mut part).unwrap().is_none());
    let mut part = found[1].open(&mut *disk);
    let mut fs = filesystem::probe(&mut part).unwrap().unwrap();
    compare(&mut *fs, &root, &["lost+found"]);
    drop(fs);
    let mut file = File::open(dir.path().join("whole")).unwrap();
    let mut disk = disk::open(&mut file).unwrap();
    let found = volumes(&mut *disk).unwrap();
    assert_eq!(found, [Volume { name: String::new(), offset: 0, length: 90 << 20 }]);
    let mut part = found[0].open(&mut *disk);
    let mut fs = filesystem::probe(&mut part).unwrap().unwrap();
    compare(&mut *fs, &root, &["lost+found"]);
}

#[test]
fn an_iso_with_partitions_on_top_is_one_volume() {
    if !have(&["xorriso"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    tree(&root, 20);
    sh(
        dir.path(),
        "truncate -s 1M efi; xorriso -as mkisofs -quiet -R -append_partition 2 0xef efi \
         -appended_part_as_gpt -partition_offset 16 -o image root >log 2>&1; \
         xorriso -as mkisofs -quiet -R -append_partition 2 0xef efi -o mbr root >log 2>&1",
    );
    for name in ["image", "mbr"] {
        let image = fs::read(dir.path().join(name)).unwrap();
        assert_eq!(image[510..512], [0x55, 0xaa], "{name} has a table");
        let mut input = Cursor::new(&image);
        let found = volumes(&mut input).unwrap();
        let whole = Volume { name: String::new(), offset: 0, length: image.len() as u64 };
        assert_eq!(found, [whole], "{name}");
        let mut part = found[0].open(&mut input);
        compare(&mut *filesystem::probe(&mut part).unwrap().unwrap(), &root, &[]);
    }
}

#[test]
fn what_is_known_and_not_read_is_named() {
    // Label of a physical volume, header of LUKS, superblock of EROFS.
    for (at, magic, what) in [
        (512, &b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001"[..], "LVM"),
        (0, b"LUKS\xba\xbe\0\x02", "LUKS"),
        (1024, b"\xe2\xe1\xf5\xe0", "EROFS"),
        (3, b"NTFS    ", "NTFS"),
    ] {
        let mut image = vec![0; 100_000];
        image[at..at + magic.len()].copy_from_slice(magic);
        let mut input = Cursor::new(image);
        assert_eq!(volumes(&mut input).unwrap().len(), 1, "{what}");
        let error = filesystem::probe(&mut input).err().unwrap().to_string();
        assert!(error.contains(what) && error.contains("not read here"), "{error}");
    }
}
