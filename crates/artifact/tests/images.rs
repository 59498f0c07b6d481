//! The finder looks into disk images and file systems, made by the real tools.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use fastpath_artifact::{Evidence, Finder, Found, Limits};

const CONFIG: &str = "# Linux/x86 6.8.12 Kernel Configuration\nCONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\nCONFIG_MAGIC_SYSRQ=y\n";

fn tree(directory: &Path) {
    for release in ["6.8.0-142-generic", "5.15.0-194-generic"] {
        let modules = directory.join(format!("root/usr/lib/modules/{release}"));
        fs::create_dir_all(&modules).expect("a directory");
        fs::create_dir_all(directory.join("root/boot")).expect("a directory");
        let config =
            CONFIG.replace("6.8.12", if release.starts_with('6') { "6.8.12" } else { "5.15.9" });
        fs::write(directory.join(format!("root/boot/config-{release}")), &config).expect("a file");
        // The same kernel under a second name.
        fs::write(modules.join("config"), &config).expect("a file");
    }
}

fn find(path: &Path, first: bool) -> Vec<Found> {
    let mut found = Vec::new();
    let mut file = File::open(path).expect("the image");
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let summary = Finder::new(Limits::default(), first)
        .find(&mut file, &name, &mut |one| found.push(one))
        .expect("a sound image");
    assert!(summary.errors.is_empty(), "{:?}", summary.errors);
    found
}

#[test]
fn every_kernel_in_an_image_answers_once() {
    let directory = tempfile::tempdir().expect("a directory");
    tree(directory.path());
    let cases = [
        ("ext4", "truncate -s 64M i && mkfs.ext4 -q -d root i"),
        (
            "qcow2",
            "truncate -s 64M r && mkfs.ext4 -q -d root r && qemu-img convert -c -O qcow2 r i",
        ),
        (
            "gpt",
            "truncate -s 64M r && mkfs.ext4 -q -d root r && truncate -s 80M i && \
             printf 'label: gpt\\nstart=2048,size=131072\\n' | sfdisk -q i && dd if=r of=i bs=512 seek=2048 conv=notrunc status=none",
        ),
        ("squashfs", "mksquashfs root i -comp xz -quiet -no-progress >/dev/null"),
        ("iso9660", "xorriso -as mkisofs -quiet -R -o i root 2>/dev/null"),
        ("btrfs", "truncate -s 128M i && mkfs.btrfs -q --rootdir root i"),
    ];
    let mut looked_at = 0;
    for (what, script) in cases {
        let made = Command::new("sh")
            .args(["-c", &format!("rm -f i r && {script}")])
            .current_dir(directory.path())
            .status()
            .is_ok_and(|status| status.success());
        if !made {
            println!("{what}: skipped, because it cannot be made here");
            continue;
        }
        looked_at += 1;
        let image = directory.path().join("i");
        let found = find(&image, false);
        let mut releases: Vec<String> =
            found.iter().filter_map(|one| Some(one.release.as_ref()?.to_string())).collect();
        releases.sort();
        assert_eq!(releases, ["5.15.0-194-generic", "6.8.0-142-generic"], "{what}");
        for one in &found {
            assert!(
                matches!(&one.evidence, Evidence::Config(text) if text.ends_with(b"SYSRQ=y\n")),
                "{what}"
            );
        }
        assert_eq!(find(&image, true).len(), 1, "{what}: only the first");
    }
    if looked_at == 0 {
        println!("skipped, because no image could be made");
    }
}

#[test]
fn a_cut_image_never_answers_wrongly() {
    let directory = tempfile::tempdir().expect("a directory");
    tree(directory.path());
    let made = Command::new("sh")
        .args(["-c", "truncate -s 8M i && mkfs.ext4 -q -d root i"])
        .current_dir(directory.path())
        .status()
        .is_ok_and(|status| status.success());
    if !made {
        println!("skipped, because mkfs.ext4 is not installed");
        return;
    }
    let whole = fs::read(directory.path().join("i")).expect("the image");
    for length in (0..whole.len()).step_by(whole.len() / 61) {
        let mut input = std::io::Cursor::new(whole[..length].to_vec());
        let mut found = Vec::new();
        let _ =
            Finder::new(Limits::default(), false).find(&mut input, "i", &mut |one| found.push(one));
        for one in found {
            assert!(
                !matches!(&one.evidence, Evidence::Config(text) if !text.ends_with(b"SYSRQ=y\n")),
                "{length}"
            );
        }
    }
}
