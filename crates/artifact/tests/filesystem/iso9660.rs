//! ISO 9660 against xorriso.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use fastpath_artifact::filesystem::{CandidateKind, FsError, candidates, probe};

use crate::tools::{compare, exercise, have, links, mutate, scratch, sh, text, tree, with};

fn make(dir: &Path, options: &str) {
    sh(dir, &format!("rm -f image; xorriso -as mkisofs -quiet {options} -o image root >log 2>&1"));
}

#[test]
fn rock_ridge_tells_everything() {
    if !have(&["xorriso"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    tree(&root, 1500);
    links(&root);
    fs::create_dir_all(root.join("very/deep/one/two/three/four/five/six/seven/eight/nine"))
        .unwrap();
    fs::write(root.join("very/deep/one/two/three/four/five/six/seven/eight/nine/ten"), "10")
        .unwrap();
    for options in ["-R", "-r -J -joliet-long", "-R -iso-level 3", "-R -isohybrid-gpt-basdat"] {
        make(dir.path(), options);
        with(&dir.path().join("image"), "iso9660", |fs| compare(fs, &root, &[]));
    }
}

#[test]
fn directories_that_were_moved_are_found_in_their_place() {
    if !have(&["genisoimage"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    tree(&root, 200);
    links(&root);
    // It cuts long links.
    fs::remove_file(root.join("long-link")).unwrap();
    let deep = root.join("1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("file"), text(5000)).unwrap();
    sh(dir.path(), "genisoimage -quiet -R -J -joliet-long -o image root >log 2>&1");
    with(&dir.path().join("image"), "iso9660", |fs| compare(fs, &root, &["rr_moved"]));
}

#[test]
fn joliet_and_plain_names_are_read() {
    if !have(&["genisoimage", "xorriso"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("casper/Ünïcode 漢字")).unwrap();
    fs::write(root.join("casper/Ünïcode 漢字/a rather long name.squashfs"), text(5000)).unwrap();
    for number in 0..400 {
        fs::write(root.join(format!("casper/file number {number}")), number.to_string()).unwrap();
    }
    for script in [
        "genisoimage -quiet -J -joliet-long -input-charset utf-8 -o image root >log 2>&1",
        "rm image; xorriso -rockridge off -joliet on -outdev image -map root / >log 2>&1",
    ] {
        sh(dir.path(), script);
        with(&dir.path().join("image"), "iso9660", |fs| {
            compare(fs, &root, &[]);
            assert_eq!(fs.read("/CASPER/file NUMBER 7", 10).unwrap(), b"7");
        });
    }
    fs::remove_dir_all(&root).unwrap();
    fs::create_dir_all(root.join("live")).unwrap();
    for name in ["vmlinuz", "initrd.img", "a", "b", "c", "d", "e", "noext"] {
        fs::write(root.join("live").join(name), text(4000 + name.len())).unwrap();
    }
    fs::create_dir_all(root.join("isolinux")).unwrap();
    for script in [
        "genisoimage -quiet -o image root >log 2>&1",
        "rm image; xorriso -rockridge off -outdev image -map root / >log 2>&1",
    ] {
        sh(dir.path(), script);
        with(&dir.path().join("image"), "iso9660", |fs| compare(fs, &root, &[]));
    }
}

#[test]
fn a_squashfs_on_an_iso_is_a_candidate_and_can_be_opened() {
    if !have(&["xorriso", "mksquashfs"]) {
        return;
    }
    let dir = scratch();
    let inner = dir.path().join("inner");
    tree(&inner, 20);
    links(&inner);
    fs::create_dir_all(dir.path().join("root/live")).unwrap();
    sh(
        dir.path(),
        "mksquashfs inner root/live/filesystem.squashfs -noappend -no-progress -comp xz >log",
    );
    make(dir.path(), "-R -J");
    with(&dir.path().join("image"), "iso9660", |fs| {
        let found = candidates(fs).files;
        assert_eq!(found[0].kind, CandidateKind::Nested);
        let mut nested = fs.open(&found[0].path).unwrap();
        let mut squashfs = probe(&mut *nested).unwrap().unwrap();
        compare(&mut *squashfs, &inner, &[]);
        assert_eq!(candidates(&mut *squashfs).files.len(), 3);
    });
}

#[test]
fn files_that_are_compressed_are_refused() {
    if !have(&["xorriso"]) {
        return;
    }
    let dir = scratch();
    fs::create_dir_all(dir.path().join("root")).unwrap();
    fs::write(dir.path().join("root/file"), text(100_000)).unwrap();
    sh(dir.path(), "xorriso -outdev image -map root / -set_filter_r --zisofs / -- >log 2>&1");
    with(&dir.path().join("image"), "iso9660", |fs| {
        assert!(matches!(fs.read("/file", 1 << 20), Err(FsError::Unsupported(_))));
    });
}

#[test]
fn damaged_images_are_errors() {
    if !have(&["xorriso"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("live/sub")).unwrap();
    fs::write(root.join("live/vmlinuz-6.1.0"), text(9_000)).unwrap();
    fs::write(root.join("live").join("n".repeat(240)), text(100)).unwrap();
    std::os::unix::fs::symlink("/live/../live/vmlinuz-6.1.0/".repeat(9), root.join("link"))
        .unwrap();
    for options in ["-rockridge on", "-rockridge off -joliet on", "-rockridge off"] {
        sh(
            dir.path(),
            &format!("rm -f image; xorriso {options} -outdev image -map root / >log 2>&1"),
        );
        let image = fs::read(dir.path().join("image")).unwrap();
        let image = &image[..image.len().min(400 << 10)];
        let records =
            image.windows(4).position(|four| four == b"SP\x07\x01").unwrap_or(36 << 10) & !2047;
        mutate(image, 600, &[0x8000..0x8000 + 200, records..records + 6000]);
        for length in (0x8000..image.len()).step_by(1999) {
            exercise(&image[..length]);
        }
    }
}

#[test]
fn a_record_that_is_continued_by_itself_is_an_error() {
    if !have(&["xorriso"]) {
        return;
    }
    let dir = scratch();
    fs::create_dir_all(dir.path().join("root")).unwrap();
    fs::write(dir.path().join("root").join("n".repeat(250)), "x").unwrap();
    make(dir.path(), "-R");
    let mut image = fs::read(dir.path().join("image")).unwrap();
    let at = image.windows(4).rposition(|four| four == b"CE\x1c\x01").unwrap();
    let (entry, block) = (image[at..at + 28].to_vec(), at / 2048);
    // What it names is made to name itself.
    let place = u32::from_le_bytes(entry[4..8].try_into().unwrap()) as usize * 2048
        + u32::from_le_bytes(entry[12..16].try_into().unwrap()) as usize;
    assert_ne!(block, place / 2048);
    image[place..place + 28].copy_from_slice(&entry);
    let mut input = Cursor::new(image);
    let mut fs = probe(&mut input).unwrap().unwrap();
    let error = fs.read_dir("/").unwrap_err().to_string();
    assert!(error.contains("without end"), "{error}");
}
