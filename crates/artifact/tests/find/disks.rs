//! Disks and file systems, made by the ordinary tools.

use std::fs;
use std::path::Path;

use crate::make::{NO, Tar, YES, bzimage, config, gzip, noise, vmlinux};
use crate::tools::{errors, filter, find, find_all, have, run, show};

/// A root file system with two kernels.
fn tree(root: &Path) {
    let write = |path: &str, bytes: &[u8]| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let text = config("6.1.0", YES);
    write("boot/config-6.1.0-1", &text);
    write("usr/lib/modules/6.1.0-1/config", &text);
    write("boot/vmlinuz-6.1.0-1", &noise(100_000, 1));
    let release = "6.1.0-2";
    let kernel = vmlinux(release, Some(&config("6.1.0", NO)));
    write("boot/vmlinuz-6.1.0-2", &bzimage(release, &gzip(&kernel)));
    write("usr/share/noise", &noise(5_000_000, 3));
}

const LINES: [&str; 2] = ["boot/config-6.1.0-1 6.1.0-1 y", "boot/vmlinuz-6.1.0-2 6.1.0-2 not set"];

#[test]
fn a_file_system_by_itself_and_in_a_partition() {
    if !have("mkfs.ext4") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    tree(&root.join("root"));
    run("mkfs.ext4", &["-q", "-d", "root", "x.ext4", "24M"], root);
    let image = fs::read(root.join("x.ext4")).unwrap();
    let (found, result) = find("x", &image);
    assert_eq!(show(&found), LINES);
    assert!(result.unwrap().bytes_read < 3_000_000);
    // One partition that Linux would call the first.
    let mut disk = vec![0; 1 << 20];
    disk[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0xc0, 0, 0]);
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk.extend_from_slice(&image);
    let in_partition = LINES.map(|line| format!("p1!{line}"));
    assert_eq!(show(&find_all("x", &disk)), in_partition);
    if have("qemu-img") {
        fs::write(root.join("x.raw"), &disk).unwrap();
        run("qemu-img", &["convert", "-c", "-f", "raw", "-O", "qcow2", "x.raw", "x.qcow2"], root);
        let qcow2 = fs::read(root.join("x.qcow2")).unwrap();
        assert_eq!(show(&find_all("x", &qcow2)), in_partition);
    }
    let message = errors(find("x.img.gz", &gzip(&disk)).1).remove(0);
    assert!(message.contains("it has to be a file of its own"), "{message}");
    // A broken file system in one partition does not end the search in others.
    let mut broken = disk.clone();
    broken[(1 << 20) + 1024..(1 << 20) + 1024 + 56].fill(0xff);
    let (found, result) = find("x", &broken);
    assert!(found.is_empty(), "{result:?}");
}

#[test]
fn a_live_image_holds_a_file_system_in_a_file() {
    if !(have("mksquashfs") && have("xorriso")) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    tree(&root.join("root"));
    fs::create_dir_all(root.join("iso/live")).unwrap();
    run("mksquashfs", &["root", "iso/live/filesystem.squashfs", "-quiet", "-no-progress"], root);
    let release = "6.1.0-9";
    let kernel = bzimage(release, &gzip(&vmlinux(release, None)));
    fs::write(root.join("iso/live/vmlinuz"), kernel).unwrap();
    run("xorriso", &["-as", "mkisofs", "-quiet", "-J", "-R", "-o", "x.iso", "iso"], root);
    let image = fs::read(root.join("x.iso")).unwrap();
    let mut lines: Vec<String> =
        LINES.iter().map(|line| format!("live/filesystem.squashfs!{line}")).collect();
    lines.push(format!("live/vmlinuz {release} no configuration, {release}"));
    assert_eq!(show(&find_all("x.iso", &image)), lines);
}

#[test]
fn a_file_with_marks_in_it_is_searched_when_it_is_no_disk() {
    let mut bytes = vec![0xe9, 1, 2, 3, 0, 0, 0, 0];
    bytes.extend_from_slice(&vmlinux("6.1.0-3", Some(&config("6.1.0", YES))));
    assert_eq!(show(&find_all("firmware", &bytes)), ["- 6.1.0-3 y"]);
}

#[test]
fn an_archive_on_a_disk_is_not_taken_for_one() {
    let tar = Tar::default().add("boot/config-6.1.0-1", &config("6.1.0", YES)).end();
    assert_eq!(show(&find_all("x.img", &tar)), ["boot/config-6.1.0-1 6.1.0-1 y"]);
    if have("zstd") {
        let bytes = filter("zstd", &["-q", "-c"], &tar);
        assert_eq!(show(&find_all("x.img", &bytes)), ["boot/config-6.1.0-1 6.1.0-1 y"]);
    }
}

/// A squashfs of files that are written before.
fn squashfs(root: &Path, files: &[(&str, &[u8])]) -> Vec<u8> {
    for (path, bytes) in files {
        let path = root.join("root").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    run("mksquashfs", &["root", "x.sq", "-quiet", "-no-progress"], root);
    fs::read(root.join("x.sq")).unwrap()
}

#[test]
fn files_beyond_the_bound_of_a_file_system_are_not_left_out_in_silence() {
    if !have("mksquashfs") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..1025).map(|at| format!("boot/config-6.1.{at:04}")).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), b"CONFIG_PCI_P2PDMA=y\n".as_slice())).collect();
    let (found, result) = find("x", &squashfs(directory.path(), &files));
    assert_eq!(found.len(), 1024);
    let error = result.unwrap_err().to_string();
    let what = "more than 1024 files that may tell about kernels in a file system";
    assert_eq!(error, format!("x: {what}"));
}

#[test]
fn a_file_with_a_name_and_without_one_keeps_its_name_in_a_file_system() {
    if !have("mksquashfs") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let text = config("6.1.0", YES);
    // `/boot` is looked at first, so the name without a release is seen before.
    fs::create_dir_all(root.join("root/lib/modules/6.1.0-a")).unwrap();
    fs::create_dir_all(root.join("root/lib/modules/6.1.0-b")).unwrap();
    for release in ["6.1.0-a", "6.1.0-b"] {
        let link = root.join("root/lib/modules").join(release).join("config");
        std::os::unix::fs::symlink("../../../boot/config", link).unwrap();
    }
    let image = squashfs(root, &[("boot/config", &text), ("usr/src/linux-x/.config", &text)]);
    let expected = ["boot/config 6.1.0-a y", "boot/config 6.1.0-b y"];
    assert_eq!(show(&find_all("x", &image)), expected);
}

#[test]
fn a_disk_image_that_begins_with_text_is_not_taken_for_one() {
    let mut vhdx = b"vhdxfileQ\0E\0M\0U\0".to_vec();
    vhdx.resize(1 << 20, 0);
    let mut vdi = b"<<< QEMU VM Virtual Disk Image >>>\n".to_vec();
    vdi.resize(64, 0);
    vdi.extend_from_slice(&[0x7f, 0x10, 0xda, 0xbe, 1, 0, 1, 0]);
    let vmdk = b"# Disk DescriptorFile\nversion=1\nRW 4192256 SPARSE \"x-s001.vmdk\"\n".to_vec();
    let mut vhd = b"conectix\0\0\0\x02".to_vec();
    vhd.resize(1 << 20, 0);
    for (name, image) in [("VHDX", vhdx), ("VDI", vdi), ("VMDK", vmdk), ("VHD", vhd)] {
        let expected = format!("x: a {name} image cannot be read: convert it to qcow2 or raw");
        assert_eq!(errors(find("x", &image).1), [expected]);
    }
}
