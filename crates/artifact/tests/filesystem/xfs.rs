//! XFS against xfsprogs and the kernel.

use std::fmt::Write;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::tools::{
    Mount, compare, exercise, fragments, have, links, mutate, noise, scratch, sh, skipped, text,
    tree, try_sh, with,
};

/// Variants of the format; groups are no power of two large, so that a packed block number is no plain one.
const VARIANTS: [(&str, &str); 6] = [
    ("", "320M"),
    ("-b size=1024 -d agcount=9", "800M"),
    ("-n size=16384 -d agcount=5", "500M"),
    ("-b size=2048 -n size=32768 -i size=1024", "320M"),
    ("-m bigtime=0,inobtcount=0,reflink=0 -i sparse=0 -s size=4096", "320M"),
    ("-i nrext64=1 -d agcount=3", "400M"),
];

/// Makes and mounts; `None`, said aloud, where this mkfs or this kernel does not know the variant.
fn made(dir: &Path, options: &str, size: &str) -> Option<Mount> {
    let quiet = if options.contains("crc=0") { "" } else { "-q" };
    let script =
        format!("rm -f image; truncate -s {size} image; mkfs.xfs {quiet} -f {options} image >log");
    if !try_sh(dir, &script) {
        skipped(&format!("mkfs.xfs does not take {options}"));
        return None;
    }
    Mount::new(dir, "image", "")
}

#[test]
fn every_file_of_every_variant_is_read() {
    if !have(&["mkfs.xfs", "mount"]) {
        return;
    }
    for (options, size) in VARIANTS {
        let dir = scratch();
        let Some(mount) = made(dir.path(), options, size) else { continue };
        tree(mount.path(), 5000);
        links(mount.path());
        fragments(mount.path());
        fs::write(mount.path().join("stale"), noise(9, 20 << 20)).unwrap();
        sh(
            dir.path(),
            "sync; rm mnt/stale; sync; fallocate -l 4M mnt/preallocated; printf hello \
             | dd of=mnt/preallocated bs=1 seek=1048576 conv=notrunc status=none; \
             fallocate -n -l 2M mnt/size-4097",
        );
        // Directories in every group: each new one goes to the next.
        for number in 0..20_u64 {
            let sub = mount.path().join(format!("group-{number}"));
            fs::create_dir(&sub).unwrap();
            fs::write(sub.join("data"), noise(number, 300_000)).unwrap();
        }
        // One whose blocks in the middle became empty, and one of each form on the way.
        for count in [1, 3, 12, 40, 150, 600] {
            let sub = mount.path().join(format!("count-{count}"));
            fs::create_dir(&sub).unwrap();
            for number in 0..count {
                fs::write(sub.join(format!("a-rather-long-name-{number:05}")), "x").unwrap();
            }
        }
        sh(
            dir.path(),
            "mkdir mnt/gaps; cd mnt/gaps; seq -f 'name-that-is-long-%05.0f' 4000 | xargs touch; \
                        seq -f 'name-that-is-long-%05.0f' 500 3500 | xargs rm",
        );
        // A link too long for an inode, and for one block of 1 KiB with its header.
        std::os::unix::fs::symlink("./".repeat(490) + "size-4097", mount.path().join("l1000"))
            .unwrap();
        sh(dir.path(), "cp -a --sparse=always mnt copy");
        drop(mount);
        let copy = dir.path().join("copy");
        with(&dir.path().join("image"), "xfs", |fs| compare(fs, &copy, &[]));
    }
}

#[test]
fn a_file_in_many_pieces_is_read_through_its_tree() {
    if !have(&["mkfs.xfs", "mount"]) {
        return;
    }
    let dir = scratch();
    let Some(mount) = made(dir.path(), "-b size=1024", "400M") else { return };
    // Every second block: nothing can be put together. 6000 extents need a tree of two levels of 1 KiB nodes.
    let file = File::create(mount.path().join("holes")).unwrap();
    for step in 0..6000_u64 {
        file.write_all_at(&noise(step, 1024), step * 2048).unwrap();
    }
    drop(file);
    for name in ["a", "b", "c", "d", "e"] {
        fs::write(mount.path().join(name), text(100_000)).unwrap();
    }
    sh(dir.path(), "sync; cp -a --sparse=always mnt copy");
    drop(mount);
    let copy = dir.path().join("copy");
    with(&dir.path().join("image"), "xfs", |fs| compare(fs, &copy, &[]));
}

/// A tree in the language of `mkfs.xfs -p`: the way to images of version 4, which kernels no longer mount.
fn prototype(root: &Path) -> String {
    fn directory(dir: &Path, text: &mut String) {
        let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(Result::unwrap).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (name, path) = (entry.file_name().into_string().unwrap(), entry.path());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                writeln!(text, "{name} d--755 0 0").unwrap();
                directory(&path, text);
                text.push_str("$\n");
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                writeln!(text, "{name} l--777 0 0 {}", target.display()).unwrap();
            } else {
                writeln!(text, "{name} ---644 0 0 {}", path.display()).unwrap();
            }
        }
    }
    let mut text = "/dev/null\n0 0\nd--755 0 0\n".to_owned();
    directory(root, &mut text);
    text + "$\n"
}

#[test]
fn what_mkfs_itself_wrote_is_read() {
    if !have(&["mkfs.xfs"]) {
        return;
    }
    for options in [
        "-m crc=0 -n ftype=0 -d agcount=5",
        "-m crc=0 -n ftype=1 -d agcount=5",
        "-m crc=0 -b size=1024 -i size=512 -d agcount=5",
        "-m crc=0 -n size=8192 -d agcount=5",
        "-d agcount=5",
    ] {
        let dir = scratch();
        let root = dir.path().join("root");
        tree(&root, 3000);
        // No spaces in this language.
        fs::remove_file(root.join("name with späce ünd 漢字")).unwrap();
        links(&root);
        if options.contains("crc=0") {
            // mkfs forgets the header that long links have in version 5.
            let target = "./".repeat(490) + "size-4097";
            std::os::unix::fs::symlink(target, root.join("l1000")).unwrap();
        } else {
            fs::remove_file(root.join("long-link")).unwrap();
        }
        fs::write(dir.path().join("proto"), prototype(&root)).unwrap();
        let script =
            format!("truncate -s 450M image; mkfs.xfs -f {options} -p proto image >log 2>&1");
        if !try_sh(dir.path(), &script) {
            skipped(&format!("mkfs.xfs does not take {options}"));
            continue;
        }
        with(&dir.path().join("image"), "xfs", |fs| compare(fs, &root, &[]));
    }
}

/// What there is of a small tree, cut after the last byte in use.
fn small(dir: &Path, options: &str) -> Option<Vec<u8>> {
    let root = dir.join("root");
    fs::create_dir_all(root.join("boot")).unwrap();
    fs::write(root.join("boot/config-6.1.0"), text(9_000)).unwrap();
    for number in 0..40 {
        fs::write(root.join(format!("boot/some-longer-name-{number}")), "x").unwrap();
    }
    std::os::unix::fs::symlink("boot", root.join("link")).unwrap();
    let link = |dir: &Path| {
        std::os::unix::fs::symlink("./".repeat(300) + "boot", dir.join("long")).unwrap();
    };
    if options.contains("crc=0") {
        link(&root);
    }
    fs::write(dir.join("proto"), prototype(&root)).unwrap();
    let script =
        format!("truncate -s 320M image; mkfs.xfs -q -f {options} -p proto image >log 2>&1");
    if !try_sh(dir, &script) {
        skipped(&format!("mkfs.xfs does not take {options}"));
        return None;
    }
    if !options.contains("crc=0")
        && let Some(mount) = Mount::new(dir, "image", "")
    {
        link(mount.path());
        let file = File::create(mount.path().join("holes")).unwrap();
        for step in 0..60_u64 {
            file.write_all_at(&noise(step, 1024), step * 16384).unwrap();
        }
    }
    // What is in use is at the start of the first group; the log and the other groups are left out.
    let mut image = fs::read(dir.join("image")).unwrap();
    image.truncate(2 << 20);
    let used = image.iter().rposition(|byte| *byte != 0).unwrap();
    image.truncate(used + 1);
    Some(image)
}

#[test]
fn damaged_images_are_errors() {
    if !have(&["mkfs.xfs"]) {
        return;
    }
    for options in ["", "-m crc=0"] {
        let dir = scratch();
        let Some(image) = small(dir.path(), options) else { continue };
        let inodes: Vec<_> = (0..image.len() - 512)
            .step_by(256)
            .filter(|at| image[*at..].starts_with(b"IN"))
            .collect();
        let hot: Vec<_> = inodes.iter().map(|at| *at..at + 256).take(60).collect();
        mutate(&image, 800, &hot);
        mutate(&image, 200, std::slice::from_ref(&(0..256)));
    }
}

#[test]
fn a_superblock_that_lies_costs_nothing() {
    if !have(&["mkfs.xfs"]) {
        return;
    }
    let dir = scratch();
    let Some(image) = small(dir.path(), "-m crc=0") else { return };
    for at in (4..256).step_by(4) {
        for value in [0, 1, 0x7fff_ffff, u32::MAX] {
            let mut image = image.clone();
            image[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
            exercise(&image);
        }
    }
}
