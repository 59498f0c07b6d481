//! Squashfs against squashfs-tools.

use std::fs;

use crate::tools::{
    compare, exercise, fragments, have, links, mutate, scratch, skipped, text, tree, try_sh, with,
};

#[test]
fn every_file_of_every_compressor_is_read() {
    if !have(&["mksquashfs"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    tree(&root, 2000);
    links(&root);
    fragments(&root);
    fs::write(root.join("large"), [text(3_000_000), vec![0; 3_000_000], text(100_000)].concat())
        .unwrap();
    for options in [
        "-comp gzip",
        "-comp gzip -b 4096",
        "-comp xz",
        "-comp xz -Xbcj x86 -b 1M",
        "-comp xz -Xbcj x86,arm -Xdict-size 100%",
        "-comp zstd",
        "-comp zstd -Xcompression-level 22 -b 1M",
        "-comp lz4",
        "-comp lz4 -Xhc",
        "-comp lzma",
        "-comp lzo",
        "-comp gzip -noI -noD -noF -noX",
        "-comp gzip -no-fragments",
        "-comp zstd -always-use-fragments -no-exports -no-xattrs",
    ] {
        let script = format!("mksquashfs root image -noappend -no-progress {options} >log 2>&1");
        if !try_sh(dir.path(), &script) {
            skipped(&format!("mksquashfs does not take {options}"));
            continue;
        }
        with(&dir.path().join("image"), "squashfs", |fs| compare(fs, &root, &[]));
    }
}

#[test]
fn damaged_images_are_errors() {
    if !have(&["mksquashfs"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("boot/empty")).unwrap();
    fs::write(root.join("boot/config-6.1.0"), text(9_000)).unwrap();
    fs::write(root.join("boot/vmlinuz-6.1.0"), text(20_000)).unwrap();
    std::os::unix::fs::symlink("boot", root.join("link")).unwrap();
    for options in [
        "-comp gzip -b 4096",
        "-comp gzip -b 4096 -noI -noD -noF",
        "-comp xz -b 4096",
        "-comp zstd -b 4096",
        "-comp lz4 -b 4096",
        "-comp lzo -b 4096",
    ] {
        let script = format!("mksquashfs root image -noappend -no-progress {options} >log 2>&1");
        if !try_sh(dir.path(), &script) {
            continue;
        }
        let image = fs::read(dir.path().join("image")).unwrap();
        mutate(&image, 1500, std::slice::from_ref(&(0..96)));
        for at in (4..96).step_by(4) {
            for value in [0_u32, 1, 0x7fff_ffff, u32::MAX] {
                let mut image = image.clone();
                image[at..at + 4].copy_from_slice(&value.to_le_bytes());
                exercise(&image);
            }
        }
    }
}
