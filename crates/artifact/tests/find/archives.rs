//! Archives that name no kernel: tar in its dialects, cpio, container images.

use std::fs;

use crate::make::{NO, Tar, YES, config, cpio, gzip, noise};
use crate::plain::cuts;
use crate::tools::{errors, find, find_all, have, run, show};

#[test]
fn every_kernel_of_an_archive_answers_once() {
    let (yes, no) = (config("6.1.0", YES), config("6.2.0", NO));
    let tar = Tar::default()
        .add("boot/config-6.1.0-1", &yes)
        .add("lib/modules/6.1.0-1/config", &yes)
        .add("boot/config-6.2.0-1", &no)
        .add("usr/src/linux-headers-6.2.0-1/.config", &no)
        .add("proc/config.gz", &gzip(&no))
        .end();
    let lines = ["boot/config-6.1.0-1 6.1.0-1 y", "boot/config-6.2.0-1 6.2.0-1 not set"];
    assert_eq!(show(&find_all("x.tar", &tar)), lines);
    assert_eq!(show(&find_all("x.tar.gz", &gzip(&tar))), lines);
}

#[test]
fn two_texts_of_one_release_are_two_answers() {
    let tar = Tar::default()
        .add("boot/config-6.1.0-1", &config("6.1.0", YES))
        .add("usr/src/linux-headers-6.1.0-1/.config", &config("6.1.0", NO))
        .end();
    assert_eq!(
        show(&find_all("x.tar", &tar)),
        ["boot/config-6.1.0-1 6.1.0-1 y", "usr/src/linux-headers-6.1.0-1/.config 6.1.0-1 not set"]
    );
}

#[test]
fn tar_in_all_its_dialects() {
    if !have("tar") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let deep = format!("{}/boot", "a-rather-long-name-of-a-directory/".repeat(8));
    let root = directory.path();
    fs::create_dir_all(root.join(&deep)).unwrap();
    fs::create_dir_all(root.join("boot")).unwrap();
    let text = config("6.1.0", YES);
    fs::write(root.join("boot/config-6.1.0-1"), &text).unwrap();
    fs::write(root.join(&deep).join("config-6.1.0-2"), config("6.1.0", NO)).unwrap();
    std::os::unix::fs::symlink("config-6.1.0-1", root.join("boot/config-6.1.0-3")).unwrap();
    fs::hard_link(root.join("boot/config-6.1.0-1"), root.join("boot/config-6.1.0-4")).unwrap();
    let long = format!("{}/config-6.1.0-2 6.1.0-2 not set", deep.replace("//", "/"));
    for format in ["gnu", "oldgnu", "pax", "posix", "ustar", "v7"] {
        let option = format!("--format={format}");
        let mut args = vec!["--sort=name", "-cf", "x.tar", option.as_str(), "boot"];
        // The oldest forms have no room for such a name.
        let has_long = !matches!(format, "ustar" | "v7");
        if has_long {
            args.push("a-rather-long-name-of-a-directory");
        }
        run("tar", &args, root);
        let bytes = fs::read(root.join("x.tar")).unwrap();
        let found = show(&find_all("x.tar", &bytes));
        let first = "boot/config-6.1.0-1 6.1.0-1 y".to_owned();
        let expected = if has_long { vec![first, long.clone()] } else { vec![first] };
        assert_eq!(found, expected, "{format}");
    }
}

#[test]
fn a_header_for_the_size_of_the_next_member_is_heeded() {
    let text = config("6.1.0", YES);
    let record = |key: &str, value: &str| {
        let rest = format!(" {key}={value}\n");
        let mut len = rest.len() + 1;
        while format!("{len}{rest}").len() != len {
            len += 1;
        }
        format!("{len}{rest}")
    };
    let pax = record("path", "./boot/config-6.1.0-9") + &record("size", &text.len().to_string());
    let tar = Tar::default()
        .add_kind("pax", pax.as_bytes(), b'x')
        .raw(&Tar::header("short", 0, b'0'), &text)
        .add("boot/config-6.1.0-2", &config("6.1.0", NO))
        .end();
    assert_eq!(
        show(&find_all("x.tar", &tar)),
        ["boot/config-6.1.0-9 6.1.0-9 y", "boot/config-6.1.0-2 6.1.0-2 not set"]
    );
}

#[test]
fn a_size_in_base_256_is_read() {
    let text = config("6.1.0", YES);
    let mut header = Tar::header("boot/config-6.1.0-1", 0, b'0');
    header[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    header[128..136].copy_from_slice(&(text.len() as u64).to_be_bytes());
    Tar::sum(&mut header);
    let tar = Tar::default().raw(&header, &text).end();
    assert_eq!(show(&find_all("x.tar", &tar)), ["boot/config-6.1.0-1 6.1.0-1 y"]);
}

#[test]
fn a_cut_archive_says_so_and_gives_what_came_before() {
    let tar = Tar::default()
        .add("boot/config-6.1.0-1", &config("6.1.0", YES))
        .add("noise", &noise(50_000, 1))
        .add("boot/config-6.1.0-2", &config("6.1.0", NO))
        .end();
    let whole = show(&find_all("x.tar", &tar));
    for len in cuts(tar.len()).filter(|len| *len < tar.len() - 1024 + 512) {
        let (found, result) = find("x.tar", &tar[..len]);
        assert!(result.is_err(), "cut at {len}");
        assert!(whole.starts_with(&show(&found)), "cut at {len}");
    }
    let (_, result) = find("x.tar", &tar[..tar.len() - 5000]);
    let offset = tar.len() - 5000;
    assert_eq!(errors(result), [format!("x.tar: tar ends at offset {offset}, before its end")]);
}

#[test]
fn names_that_climb_are_refused_and_absolute_ones_are_brought_in() {
    let text = config("6.1.0", YES);
    let tar = Tar::default()
        .add("../../boot/config-6.1.0-1", &config("6.1.0", NO))
        .add("/boot/config-6.1.0-2", &text)
        .add("boot/config-6.1.0\u{1b}[31m", &config("6.3.0", YES))
        .end();
    let (found, result) = find("x.tar", &tar);
    assert_eq!(
        show(&found),
        ["boot/config-6.1.0-2 6.1.0-2 y", "boot/config-6.1.0\u{fffd}[31m - y"]
    );
    assert_eq!(
        errors(result),
        ["x.tar!../../boot/config-6.1.0-1: a name with `..` cannot be read: refused"]
    );
}

#[test]
fn only_names_that_can_be_a_kernels_are_looked_at() {
    let text = config("6.1.0", YES);
    let tar = Tar::default()
        .add("etc/settings", &text)
        .add("boot/config-6.1.0.d/", b"")
        .add("usr/share/config-file", b"#!/bin/sh\nCONFIG_X=1\nexit\n")
        .add("home/.config", b"[section]\nCONFIG_X=1\n")
        .end();
    assert!(find_all("x.tar", &tar).is_empty());
}

#[test]
fn a_kernel_file_with_nothing_sound_in_it_is_reported() {
    let tar = Tar::default()
        .add("boot/config-6.1.0-1", b"")
        .add("boot/config-6.1.0-2", b"CONFIG_PCI=y\n\0\0\0")
        .end();
    let (found, result) = find("x.tar", &tar);
    assert!(found.is_empty());
    assert_eq!(
        errors(result),
        [
            "x.tar!boot/config-6.1.0-1: damaged configuration at offset 0: empty",
            "x.tar!boot/config-6.1.0-2: damaged configuration at offset 13: not a kernel configuration: NUL byte at offset 13",
        ]
    );
}

#[test]
fn cpio_archives_are_read_to_their_end() {
    let (yes, no) = (config("6.1.0", YES), config("6.1.0", NO));
    let bytes = cpio(&[
        ("./boot/config-6.1.0-1", &yes),
        ("x", b"abc"),
        ("lib/modules/6.1.0-2/config", &no),
    ]);
    let lines = ["boot/config-6.1.0-1 6.1.0-1 y", "lib/modules/6.1.0-2/config 6.1.0-2 not set"];
    assert_eq!(show(&find_all("x", &bytes)), lines);
    assert_eq!(show(&find_all("x", &gzip(&bytes))), lines);
    for len in cuts(bytes.len()) {
        assert!(find("x", &bytes[..len]).1.is_err(), "cut at {len}");
    }
    if have("cpio") {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("boot")).unwrap();
        fs::write(directory.path().join("boot/config-6.1.0-1"), &yes).unwrap();
        for format in ["newc", "crc"] {
            let command = format!("find boot | cpio -o -H {format} --quiet > x.cpio");
            run("sh", &["-c", &command], directory.path());
            let bytes = fs::read(directory.path().join("x.cpio")).unwrap();
            assert_eq!(show(&find_all("x", &bytes)), ["boot/config-6.1.0-1 6.1.0-1 y"]);
        }
    }
}

/// The name of a blob in an OCI layout.
fn blob(index: u8) -> String {
    format!("blobs/sha256/{}", format!("{index:02x}").repeat(32))
}

#[test]
fn layers_of_container_images_are_archives_in_an_archive() {
    let layer = |path: &str, option: &str| Tar::default().add(path, &config("6.1.0", option)).end();
    let (first, second) = (layer("boot/config-6.1.0-1", YES), layer("boot/config-6.1.0-2", NO));
    let oci = Tar::default()
        .add("oci-layout", b"{\"imageLayoutVersion\":\"1.0.0\"}")
        .add("index.json", b"{\"schemaVersion\":2}")
        .add(&blob(1), b"{\"schemaVersion\":2,\"layers\":[]}")
        .add(&blob(2), &gzip(&first))
        .add(&blob(3), &second)
        .end();
    assert_eq!(
        show(&find_all("image.tar", &oci)),
        [
            format!("{}!boot/config-6.1.0-1 6.1.0-1 y", blob(2)),
            format!("{}!boot/config-6.1.0-2 6.1.0-2 not set", blob(3)),
        ]
    );
    let saved = Tar::default()
        .add("manifest.json", b"[]")
        .add("0123/layer.tar", &first)
        .add("4567/layer.tar", &second)
        .end();
    assert_eq!(
        show(&find_all("saved.tar", &saved)),
        [
            "0123/layer.tar!boot/config-6.1.0-1 6.1.0-1 y",
            "4567/layer.tar!boot/config-6.1.0-2 6.1.0-2 not set",
        ]
    );
}

#[test]
fn a_copy_with_a_release_wins_over_one_without_in_any_order() {
    let text = config("6.1.0", YES);
    let other = config("6.1.0", NO);
    let nameless = ("boot/config", text.as_slice());
    let (a, b) =
        (("boot/config-6.1.0-a", text.as_slice()), ("lib/modules/6.1.0-b/config", text.as_slice()));
    let different = ("etc/config", other.as_slice());
    for order in
        [[nameless, different, a, b], [a, nameless, different, b], [a, b, different, nameless]]
    {
        let add = |tar: Tar, (name, bytes): (&str, &[u8])| tar.add(name, bytes);
        let tar = order.into_iter().fold(Tar::default(), add).end();
        let named = ["boot/config-6.1.0-a 6.1.0-a y", "lib/modules/6.1.0-b/config 6.1.0-b y"];
        let expected = [named[0], named[1], "etc/config - not set"];
        assert_eq!(show(&find_all("x", &tar)), expected);
        assert_eq!(show(&find_all("x", &cpio(&order))), expected);
        // The same in an archive around it.
        let outer = Tar::default().add("layer.tar", &tar).end();
        let inside = expected.map(|line| format!("layer.tar!{line}"));
        assert_eq!(show(&find_all("x", &outer)), inside);
    }
}

#[test]
fn configurations_without_a_release_beyond_what_is_kept_are_given() {
    let texts: Vec<Vec<u8>> = (0..4)
        .map(|at| [config(&format!("6.{at}.0"), YES), vec![b'\n'; 3 << 20]].concat())
        .collect();
    let names = ["a/config", "b/config", "c/config", "d/config"];
    let tar =
        names.iter().zip(&texts).fold(Tar::default(), |tar, (name, text)| tar.add(name, text));
    let found = find_all("x", &tar.end());
    assert_eq!(show(&found), names.map(|name| format!("{name} - y")));
}
