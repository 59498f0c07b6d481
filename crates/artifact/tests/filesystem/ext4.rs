//! ext2, ext3 and ext4 against e2fsprogs and the kernel.

use std::fs;

use fastpath_artifact::filesystem::{CandidateKind, FsError, candidates};

use crate::tools::{
    Mount, compare, fragments, have, links, mutate, noise, scratch, sh, tree, try_sh, with,
};

#[test]
fn every_file_of_every_variant_is_read() {
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    tree(&root, 3000);
    links(&root);
    for (options, size) in [
        ("-t ext4", "200M"),
        ("-t ext4 -b 1024 -O metadata_csum,64bit", "60M"),
        ("-t ext4 -b 2048 -O ^metadata_csum,^64bit", "60M"),
        ("-t ext4 -b 1024 -I 256 -O inline_data", "60M"),
        ("-t ext4 -O meta_bg,^resize_inode -b 1024 -g 1024", "80M"),
        ("-t ext4 -O sparse_super2,meta_bg,^resize_inode -b 1024 -g 2048", "80M"),
        ("-t ext4 -O bigalloc -C 16384", "300M"),
        ("-t ext4 -O ^filetype", "60M"),
        ("-t ext4 -O metadata_csum_seed,casefold,large_dir,ea_inode", "60M"),
        ("-t ext2 -b 1024", "60M"),
        ("-t ext2 -b 4096 -I 128", "60M"),
        ("-t ext3 -b 1024 -I 128", "60M"),
        ("-t ext2 -r 0 -I 128", "60M"),
    ] {
        let made = try_sh(
            dir.path(),
            &format!("rm -f image; truncate -s {size} image; mkfs.ext4 -q {options} -d root image"),
        );
        assert!(made, "mkfs.ext4 {options}");
        with(&dir.path().join("image"), "ext4", |fs| compare(fs, &root, &["lost+found"]));
    }
}

#[test]
fn what_the_kernel_wrote_is_read() {
    if !have(&["mkfs.ext4", "mount"]) {
        return;
    }
    for options in ["-t ext4", "-t ext4 -b 1024 -O inline_data", "-t ext3 -b 1024", "-t ext2"] {
        let dir = scratch();
        sh(dir.path(), &format!("truncate -s 300M image; mkfs.ext4 -q {options} image"));
        let Some(mount) = Mount::new(dir.path(), "image", "") else { return };
        tree(mount.path(), 4000);
        links(mount.path());
        fragments(mount.path());
        // Preallocated, partly written: stale bytes of a deleted file lie below.
        fs::write(mount.path().join("stale"), noise(9, 20 << 20)).unwrap();
        sh(dir.path(), "sync; rm mnt/stale; sync");
        if options.starts_with("-t ext4") {
            sh(
                dir.path(),
                "fallocate -l 4M mnt/preallocated; printf hello \
                 | dd of=mnt/preallocated bs=1 seek=1048576 conv=notrunc status=none; \
                 fallocate -n -l 2M mnt/size-4097",
            );
        }
        let copy = dir.path().join("copy");
        sh(dir.path(), "cp -a --sparse=always mnt copy; rm -r copy/lost+found");
        drop(mount);
        with(&dir.path().join("image"), "ext4", |fs| compare(fs, &copy, &["lost+found"]));
    }
}

#[test]
fn a_file_system_that_was_not_unmounted_is_read_through_its_journal() {
    if !have(&["mkfs.ext4", "mount"]) {
        return;
    }
    for options in ["", "-O ^metadata_csum,^64bit", "-O ^64bit", "-O ^metadata_csum", "-b 1024"] {
        let dir = scratch();
        sh(dir.path(), &format!("truncate -s 200M image; mkfs.ext4 -q -t ext4 {options} image"));
        for mode in ["ordered", "journal"] {
            let Some(mount) = Mount::new(dir.path(), "image", &format!("data={mode}")) else {
                return;
            };
            let part = mount.path().join(mode);
            fs::create_dir(&part).unwrap();
            tree(&part, 500);
            links(&part);
            fs::write(part.join("magic"), [0xc0, 0x3b, 0x39, 0x98].repeat(3000)).unwrap();
            sh(
                dir.path(),
                "sync -f mnt; rm -r mnt/*/many; mkdir mnt/more; rm -rf mnt/boot; sync -f mnt",
            );
            fs::remove_dir(mount.path().join("more")).unwrap();
            fs::write(part.join("last"), noise(5, 100_000)).unwrap();
            sh(
                dir.path(),
                "sync -f mnt; rm -rf copy; cp -a mnt copy; cp --sparse=always image dirty",
            );
            let copy = dir.path().join("copy");
            with(&dir.path().join("dirty"), "ext4", |fs| compare(fs, &copy, &["lost+found"]));
            drop(mount);
        }
    }
}

#[test]
fn candidates_come_in_order_and_once() {
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    tree(&root, 1);
    links(&root);
    let modules = root.join("usr/lib/modules");
    fs::write(modules.join("6.1.0-57-amd64/config"), b"CONFIG_A=y\n").unwrap();
    fs::create_dir_all(modules.join("6.12.9-arch1-1/build")).unwrap();
    fs::write(modules.join("6.12.9-arch1-1/vmlinuz"), b"MZ").unwrap();
    fs::write(modules.join("6.12.9-arch1-1/build/.config"), b"CONFIG_A=y\n").unwrap();
    fs::create_dir_all(root.join("live")).unwrap();
    fs::write(root.join("live/filesystem.squashfs"), b"hsqs").unwrap();
    fs::write(root.join("boot/config-6.1.0-57-amd64.old"), b"").unwrap();
    sh(dir.path(), "truncate -s 60M image; mkfs.ext4 -q -d root image");
    with(&dir.path().join("image"), "ext4", |fs| {
        let found: Vec<_> = candidates(fs)
            .files
            .into_iter()
            .map(|one| {
                (one.kind, one.path, one.release.map(|it| it.to_string()).unwrap_or_default())
            })
            .collect();
        let debian = "6.1.0-57-amd64";
        let arch = "6.12.9-arch1-1";
        let expected = [
            (CandidateKind::Config, "/boot/config-6.1.0-57-amd64", debian),
            (CandidateKind::Config, "/usr/lib/modules/6.1.0-57-amd64/config", debian),
            (CandidateKind::Config, "/usr/lib/modules/6.12.9-arch1-1/build/.config", arch),
            (CandidateKind::Image, "/boot/vmlinuz-6.1.0-57-amd64", debian),
            (CandidateKind::Image, "/usr/lib/modules/6.12.9-arch1-1/vmlinuz", arch),
            (CandidateKind::Symbols, "/boot/System.map-6.1.0-57-amd64", debian),
            (CandidateKind::Nested, "/live/filesystem.squashfs", ""),
        ];
        let mut found = found;
        found.sort();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(kind, path, release)| (kind, path.to_owned(), release.to_owned()))
            .collect();
        assert_eq!(found, expected);
    });
}

/// A small image with all sorts of things in it.
fn small(dir: &std::path::Path, options: &str) -> Vec<u8> {
    let root = dir.join("root");
    fs::create_dir_all(root.join("boot")).unwrap();
    fs::create_dir_all(root.join("usr/lib")).unwrap();
    fs::write(root.join("boot/config-6.1.0-1-amd64"), b"CONFIG_PCI=y\n".repeat(700)).unwrap();
    fs::write(root.join("boot/small"), b"small").unwrap();
    if !root.join("lib").exists() {
        std::os::unix::fs::symlink("usr/lib", root.join("lib")).unwrap();
        std::os::unix::fs::symlink("boot/small/".repeat(8), root.join("long")).unwrap();
    }
    sh(dir, &format!("rm -f s; truncate -s 300K s; mkfs.ext4 -q {options} -N 32 -d root s"));
    fs::read(dir.join("s")).unwrap()
}

#[test]
fn damaged_images_are_errors() {
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let dir = scratch();
    for options in [
        "-t ext4 -O ^has_journal,inline_data -I 256",
        "-t ext4 -O ^has_journal,^metadata_csum",
        "-t ext2",
    ] {
        let image = small(dir.path(), options);
        mutate(&image, 600, &[1024..1400, 2048..2200]);
    }
}

#[test]
fn a_superblock_that_lies_costs_nothing() {
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let dir = scratch();
    let image = small(dir.path(), "-t ext4 -O ^has_journal,^metadata_csum,64bit");
    for (at, value) in [
        (0x04, u32::MAX), // blocks
        (0x00, u32::MAX), // inodes
        (0x18, 22),       // block size
        (0x20, 0),        // blocks per group
        (0x28, 0),        // inodes per group
        (0x28, 1),
        (0x58, 0xffff), // inode size
        (0xfe, 0),      // descriptor size
        (0x14, u32::MAX),
        (0x150, u32::MAX),
        (0x60, u32::MAX),
        (0x60, 0x14), // META_BG and RECOVER
        (0x104, 0),
        (0xe0, u32::MAX),
    ] {
        let mut image = image.clone();
        image[1024 + at..1024 + at + 4].copy_from_slice(&u32::to_le_bytes(value));
        crate::tools::exercise(&image);
    }
    let mut image = image;
    image[1024 + 0x61] |= 0x10;
    let mut input = std::io::Cursor::new(image);
    let error = fastpath_artifact::filesystem::probe(&mut input).err().unwrap();
    assert!(matches!(error, FsError::Unsupported(_)), "{error}");
}

/// A directory of 5 MiB whose blocks are all the same one, in an image of a MiB.
#[test]
fn a_directory_made_of_one_block_ends() {
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let dir = scratch();
    sh(
        dir.path(),
        "mkdir -p root/boot; truncate -s 1M s; \
         mkfs.ext4 -q -O ^has_journal,^metadata_csum,^resize_inode -b 4096 -N 32 -d root s",
    );
    let mut image = fs::read(dir.path().join("s")).unwrap();
    let block = |number: usize| number * 4096;
    // Names without end in the last block; the blocks before it are leaves of a tree of extents that name only it.
    let (names, leaves) = (255, 240);
    for at in (block(names)..block(names + 1)).step_by(16) {
        image[at..at + 16].copy_from_slice(b"\x0b\0\0\0\x10\0\x08\x01config-x");
    }
    for leaf in 0..4 {
        let at = block(leaves + leaf);
        image[at..at + 12].copy_from_slice(b"\x0a\xf3\x54\x01\x54\x01\0\0\0\0\0\0");
        for entry in 0..340_u32 {
            let mut extent = [0; 12];
            let first = u32::try_from(leaf).unwrap() * 340 + entry;
            extent[..4].copy_from_slice(&first.to_le_bytes());
            extent[4] = 1;
            extent[8..].copy_from_slice(&u32::try_from(names).unwrap().to_le_bytes());
            image[at + 12 + entry as usize * 12..][..12].copy_from_slice(&extent);
        }
    }
    // The inode of the root directory is the second one.
    let table = u32::from_le_bytes(image[4096 + 8..4096 + 12].try_into().unwrap());
    let root = block(table as usize) + 256;
    assert_eq!(image[root..root + 2], [0xed, 0x41]);
    image[root + 4..root + 8].copy_from_slice(&(4 * 340 * 4096_u32).to_le_bytes());
    let map = root + 0x28;
    for (index, leaf) in (0..4_u32).enumerate() {
        let at = map + 12 + index * 12;
        image[at..at + 4].copy_from_slice(&(leaf * 340).to_le_bytes());
        image[at + 4..at + 8]
            .copy_from_slice(&(u32::try_from(leaves).unwrap() + leaf).to_le_bytes());
        image[at + 8..at + 12].fill(0);
    }
    image[map..map + 12].copy_from_slice(b"\x0a\xf3\x04\0\x04\0\x01\0\0\0\0\0");
    let mut input = std::io::Cursor::new(&image);
    let mut fs = fastpath_artifact::filesystem::probe(&mut input).unwrap().unwrap();
    assert!(matches!(fs.read_dir("/"), Err(FsError::Limit { .. })));
    assert!(matches!(fs.read("/b", 10), Err(FsError::Missing)));
    drop(fs);
    crate::tools::exercise(&image);
}
