//! FAT against dosfstools and mtools.

use std::fs;

use crate::tools::{compare, exercise, have, mutate, scratch, sh, text, tree, with};

#[test]
fn every_file_of_every_width_is_read() {
    if !have(&["mkfs.vfat", "mcopy"]) {
        return;
    }
    let dir = scratch();
    let root = dir.path().join("root");
    tree(&root, 300);
    fs::create_dir_all(root.join("EFI/Linux")).unwrap();
    fs::write(root.join("EFI/Linux/abc-6.1.0.efi"), text(70_000)).unwrap();
    for name in ["SHORT.TXT", "short.low", "Mixed.Txt", "noext", ".hidden", "a.b.c.d"] {
        fs::write(root.join("EFI").join(name), name).unwrap();
    }
    for (options, size) in [
        ("-F 12 -s 8", "14M"),
        ("-F 16", "60M"),
        ("-F 16 -S 2048", "60M"),
        ("-F 32", "60M"),
        ("-F 32 -s 1", "60M"),
        ("-F 32 -S 4096", "300M"),
        ("-F 32 -f 1 -R 100", "60M"),
    ] {
        // Files are removed in between, so that later ones come in pieces.
        sh(
            dir.path(),
            &format!(
                "rm -f image; truncate -s {size} image; mkfs.vfat {options} image >log; \
                 for i in 1 2 3 4 5 6 7 8 9; do mcopy -i image root/size-131072 ::fill$i; done; \
                 mdel -i image ::fill2 ::fill4 ::fill6 ::fill8; \
                 mcopy -s -i image root/* ::; mdel -i image ::fill1 ::fill3 ::fill5 ::fill7 ::fill9"
            ),
        );
        with(&dir.path().join("image"), "fat", |fs| {
            compare(fs, &root, &["lost+found"]);
            assert_eq!(fs.read("/efi/LINUX/ABC-6.1.0.EFI", 1 << 20).unwrap().len(), 70_000);
        });
    }
}

#[test]
fn damaged_images_are_errors() {
    if !have(&["mkfs.vfat", "mcopy"]) {
        return;
    }
    let dir = scratch();
    fs::create_dir_all(dir.path().join("root/loader/entries")).unwrap();
    fs::write(dir.path().join("root/loader/a long name of an entry.conf"), text(3000)).unwrap();
    fs::write(dir.path().join("root/vmlinuz-6.1.0"), text(30_000)).unwrap();
    for (options, size) in [("-F 12", "300K"), ("-F 16 -s 1", "3M"), ("-F 32 -s 1", "34M")] {
        sh(
            dir.path(),
            &format!(
                "rm -f image; truncate -s {size} image; mkfs.vfat {options} image >log 2>&1; \
                 mcopy -s -i image root/* ::"
            ),
        );
        let mut image = fs::read(dir.path().join("image")).unwrap();
        image.truncate(1 << 20);
        mutate(&image, 700, std::slice::from_ref(&(0..90)));
        for at in 11..48 {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut image = image.clone();
                image[at] = value;
                exercise(&image);
            }
        }
    }
}

#[test]
fn a_chain_that_comes_back_is_an_error() {
    if !have(&["mkfs.vfat", "mcopy"]) {
        return;
    }
    let dir = scratch();
    fs::write(dir.path().join("file"), text(30_000)).unwrap();
    sh(
        dir.path(),
        "truncate -s 3M image; mkfs.vfat -F 16 -s 1 -f 1 -R 1 image >log 2>&1; mcopy -i image file ::",
    );
    let mut image = fs::read(dir.path().join("image")).unwrap();
    // The third cluster of the only file names the second one.
    image[512 + 8..512 + 10].copy_from_slice(&3_u16.to_le_bytes());
    let mut input = std::io::Cursor::new(image);
    let mut fs = fastpath_artifact::filesystem::probe(&mut input).unwrap().unwrap();
    let error = fs.read("/file", 1 << 20).unwrap_err().to_string();
    assert!(error.contains("come back"), "{error}");
}
