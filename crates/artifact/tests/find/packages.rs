//! Packages of the distributions' own tools.

use std::fs;
use std::path::Path;

use crate::make::{NO, Tar, YES, ar, bzimage, config, deb, gzip, noise, vmlinux};
use crate::plain::cuts;
use crate::tools::{errors, filter, find, find_all, have, run, show};

const RELEASE: &str = "6.1.0-57-amd64";

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A tree as a kernel package installs it: some modules' worth of noise after the configuration.
fn tree(root: &Path, package: &str) {
    write(root, "DEBIAN/control", format!(
        "Package: {package}\nVersion: 1\nArchitecture: amd64\nMaintainer: A <a@b.c>\nDescription: x\n"
    ).as_bytes());
    write(root, "DEBIAN/postinst", b"#!/bin/sh\n");
    write(root, &format!("boot/config-{RELEASE}"), &config("6.1.192", NO));
    write(root, &format!("boot/vmlinuz-{RELEASE}"), &noise(200_000, 3));
    write(root, &format!("lib/modules/{RELEASE}/kernel/big.ko"), &noise(3_000_000, 5));
    run("chmod", &["0755", "DEBIAN/postinst"], root);
}

fn build_deb(package: &str, compression: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    tree(&root, package);
    let options =
        [format!("-Z{compression}"), "-b".to_owned(), "root".to_owned(), "x.deb".to_owned()];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    run("dpkg-deb", &options, directory.path());
    fs::read(directory.path().join("x.deb")).unwrap()
}

#[test]
fn a_debian_package_is_read_up_to_its_configuration() {
    if !have("dpkg-deb") {
        return;
    }
    for compression in ["gzip", "xz", "zstd", "none"] {
        let bytes = build_deb(&format!("linux-image-{RELEASE}"), compression);
        let (found, result) = find("whatever", &bytes);
        let ending = match compression {
            "gzip" => ".gz",
            "xz" => ".xz",
            "zstd" => ".zst",
            _ => "",
        };
        let line = format!("data.tar{ending}!boot/config-{RELEASE} {RELEASE} not set");
        assert_eq!(show(&found), [line]);
        let summary = result.unwrap();
        assert!(summary.bytes_read < 600_000, "{compression}: {} bytes", summary.bytes_read);
        assert_eq!(summary.bytes_read, found[0].bytes_read);
    }
}

#[test]
fn a_package_that_names_no_kernel_is_read_to_its_end() {
    let data = Tar::default()
        .add("./usr/src/linux-config-6.1/config.amd64_none_amd64.xz", &gzip(&config("6.1.1", NO)))
        .add("./usr/src/linux-config-6.1/config.amd64_rt_amd64.xz", &gzip(&config("6.1.1", YES)))
        .add("./usr/share/doc/linux-config-6.1/copyright", b"text")
        .end();
    assert_eq!(
        show(&find_all("x.deb", &deb("linux-config-6.1", &data))),
        [
            "data.tar.gz!usr/src/linux-config-6.1/config.amd64_none_amd64.xz - not set",
            "data.tar.gz!usr/src/linux-config-6.1/config.amd64_rt_amd64.xz - y",
        ]
    );
}

#[test]
fn another_kernels_configuration_does_not_end_the_search_in_a_package() {
    let data = Tar::default()
        .add("./boot/config-5.10.0-1-amd64", &config("5.10.1", YES))
        .add("./boot/config-6.1.0-57-amd64", &config("6.1.192", NO))
        .add("./boot/config-6.2.0-1-amd64", b"damaged, and not reached")
        .end();
    assert_eq!(
        show(&find_all("x.deb", &deb("linux-image-6.1.0-57-amd64", &data))),
        [
            "data.tar.gz!boot/config-5.10.0-1-amd64 5.10.0-1-amd64 y",
            "data.tar.gz!boot/config-6.1.0-57-amd64 6.1.0-57-amd64 not set",
        ]
    );
}

#[test]
fn a_package_lends_its_release_to_a_nameless_configuration() {
    let data = Tar::default().add("./usr/src/linux/.config", &config("6.1.192", NO)).end();
    let found = find_all("x.deb", &deb("linux-headers-6.1.0-57-amd64", &data));
    assert_eq!(show(&found), ["data.tar.gz!usr/src/linux/.config 6.1.0-57-amd64 not set"]);
}

#[test]
fn without_a_configuration_the_package_answers_with_what_it_has() {
    let package =
        |data: Vec<u8>| show(&find_all("x.deb", &deb(&format!("linux-image-{RELEASE}"), &data)));
    let text = config("6.1.192", YES);
    let image = bzimage(RELEASE, &gzip(&vmlinux(RELEASE, Some(&text))));
    let name = format!("./boot/vmlinuz-{RELEASE}");
    assert_eq!(
        package(Tar::default().add(&name, &image).add("./boot/config-6.9.0", b"not reached").end()),
        [format!("data.tar.gz!boot/vmlinuz-{RELEASE} {RELEASE} y")]
    );
    let silent = bzimage(RELEASE, &gzip(&vmlinux(RELEASE, None)));
    assert_eq!(
        package(Tar::default().add(&name, &silent).end()),
        [format!("data.tar.gz!boot/vmlinuz-{RELEASE} {RELEASE} no configuration, {RELEASE}")]
    );
    let map = b"ffffffff81000000 T pci_enable_device\nffffffff81000010 T _end\n";
    assert_eq!(
        package(
            Tar::default()
                .add(&name, &silent)
                .add(&format!("./boot/System.map-{RELEASE}"), map)
                .end()
        ),
        [format!("data.tar.gz!boot/System.map-{RELEASE} {RELEASE} symbols false")]
    );
    assert!(package(Tar::default().add("./usr/share/doc/x", b"x").end()).is_empty());
}

#[test]
fn packages_in_an_archive_are_each_read_to_their_kernel() {
    let inner = |package: &str, release: &str, option: &str| {
        let name = format!("./boot/config-{release}");
        let data = Tar::default()
            .add(&name, &config("6.1.0", option))
            .add("./boot/vmlinuz", &noise(9000, 1));
        deb(package, &data.end())
    };
    let tar = Tar::default()
        .add("pool/linux-image-6.1.0-1.deb", &inner("linux-image-6.1.0-1", "6.1.0-1", YES))
        .add("pool/linux-headers-6.1.0-1.deb", &inner("linux-headers-6.1.0-1", "6.1.0-1", YES))
        .add("pool/linux-image-6.1.0-2.deb", &inner("linux-image-6.1.0-2", "6.1.0-2", NO))
        .end();
    assert_eq!(
        show(&find_all("x.tar", &tar)),
        [
            "pool/linux-image-6.1.0-1.deb!data.tar.gz!boot/config-6.1.0-1 6.1.0-1 y",
            "pool/linux-image-6.1.0-2.deb!data.tar.gz!boot/config-6.1.0-2 6.1.0-2 not set",
        ]
    );
}

#[test]
fn a_cut_debian_package_is_an_error_unless_its_kernel_came_before() {
    if !have("dpkg-deb") {
        return;
    }
    for compression in ["xz", "zstd", "gzip", "none"] {
        let bytes = build_deb(&format!("linux-image-{RELEASE}"), compression);
        let whole = show(&find("x", &bytes).0);
        // Noise does not compress: what comes after the configuration is most of the package.
        for len in cuts(bytes.len()).filter(|len| len % 7 == 0) {
            let (found, result) = find("x", &bytes[..len]);
            if found.is_empty() {
                assert!(result.is_err(), "{compression} cut at {len}");
            } else {
                assert_eq!(show(&found), whole, "{compression} cut at {len}");
            }
        }
    }
}

#[test]
fn a_damaged_part_does_not_hide_the_others() {
    let mut control = gzip(b"x");
    control.truncate(12);
    let data = Tar::default().add("./boot/config-6.1.0", &config("6.1.0", YES)).end();
    let bytes = crate::make::ar(&[
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", &control),
        ("data.tar.gz", &gzip(&data)),
    ]);
    let (found, result) = find("x.deb", &bytes);
    assert_eq!(show(&found), ["data.tar.gz!boot/config-6.1.0 6.1.0 y"]);
    assert_eq!(errors(result), ["x.deb!control.tar.gz: gzip ends at offset 12, before its end"]);
}

/// Builds a package as `kernel-core` is, with `rpmbuild`.
fn build_rpm(name: &str, payload: &str, extra: &str) -> Option<Vec<u8>> {
    if !have("rpmbuild") {
        return None;
    }
    let release = "6.12.0-211.el10.x86_64";
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "config", &config(release, YES));
    write(root, "noise", &noise(2_000_000, 5));
    let spec = format!(
        "Name: {name}\nVersion: 6.12.0\nRelease: 211.el10\nSummary: x\nLicense: GPL-2.0\n{extra}\n\
         %define _binary_payload {payload}\n%define __os_install_post %{{nil}}\n%define debug_package %{{nil}}\n\
         %define _build_id_links none\n\
         %description\nx\n%install\nmkdir -p %{{buildroot}}/lib/modules/{release}/kernel\n\
         cp %{{_topdir}}/config %{{buildroot}}/lib/modules/{release}/config\n\
         cp %{{_topdir}}/noise %{{buildroot}}/lib/modules/{release}/kernel/z.ko\n\
         cp %{{_topdir}}/noise %{{buildroot}}/lib/modules/{release}/vmlinuz\n\
         %files\n/lib/modules/{release}\n"
    );
    write(root, "x.spec", spec.as_bytes());
    let top = format!("_topdir {}", root.display());
    run(
        "rpmbuild",
        &[
            "-bb",
            "--target",
            "x86_64",
            "--define",
            &top,
            "--define",
            "_rpmdir %{_topdir}/out",
            "x.spec",
        ],
        root,
    );
    let file = format!("out/x86_64/{name}-6.12.0-211.el10.x86_64.rpm");
    Some(fs::read(root.join(file)).unwrap())
}

#[test]
fn an_rpm_is_read_up_to_its_configuration() {
    for payload in ["w9.gzdio", "w6.xzdio", "w9.bzdio", "w6.lzdio", "w19.zstdio", "w.ufdio"] {
        let Some(bytes) = build_rpm("kernel-core", payload, "") else { return };
        let (found, result) = find("x", &bytes);
        assert_eq!(
            show(&found),
            ["lib/modules/6.12.0-211.el10.x86_64/config 6.12.0-211.el10.x86_64 y"],
            "{payload}"
        );
        let summary = result.unwrap();
        // A block of bzip2 holds 900 kB.
        let most = if payload.ends_with("bzdio") { 1_200_000 } else { 700_000 };
        assert!(summary.bytes_read < most, "{payload}: {} bytes", summary.bytes_read);
        for len in cuts(bytes.len()).filter(|len| len % 17 == 0) {
            let (found, result) = find("x", &bytes[..len]);
            assert!(!found.is_empty() || result.is_err(), "{payload} cut at {len}");
        }
    }
}

#[test]
fn an_rpm_that_is_no_kernel_is_read_to_its_end() {
    let Some(bytes) = build_rpm("other", "w1.gzdio", "") else { return };
    let (found, result) = find("x.rpm", &bytes);
    assert_eq!(
        show(&found),
        ["lib/modules/6.12.0-211.el10.x86_64/config 6.12.0-211.el10.x86_64 y"]
    );
    assert!(result.unwrap().bytes_read > 2_000_000);
}

#[test]
fn an_arch_package_ends_at_its_kernel() {
    let info = b"# Generated by makepkg\npkgname = linux-headers\npkgver = 6.18.7.arch1-1\narch = x86_64\n";
    let tar = Tar::default()
        .add(".BUILDINFO", b"format = 2\n")
        .add(".PKGINFO", info)
        .add("usr/lib/modules/6.18.7-arch1-1/build/.config", &config("6.18.7-arch1", YES))
        .add("usr/lib/modules/6.18.7-arch1-1/build/Module.symvers", b"not reached")
        .add("usr/lib/modules/6.18.7-arch1-1/build/noise", &noise(3_000_000, 1))
        .end();
    let plain = find("linux-headers.pkg.tar", &tar);
    assert!(plain.1.unwrap().bytes_read < 500_000);
    let line = "usr/lib/modules/6.18.7-arch1-1/build/.config 6.18.7-arch1-1 y";
    assert_eq!(show(&plain.0), [line]);
    if have("zstd") {
        let bytes = filter("zstd", &["-c", "-q", "--ultra", "-20"], &tar);
        let (found, result) = find("linux-headers-6.18.7.arch1-1-x86_64.pkg.tar.zst", &bytes);
        assert_eq!(show(&found), [line]);
        assert!(result.unwrap().bytes_read < 500_000);
    }
}

#[test]
fn an_arch_kernel_answers_with_its_image() {
    let info = b"pkgname = linux\npkgver = 6.18.7.arch1-1\n";
    let release = "6.18.7-arch1-1";
    let image = bzimage(release, &gzip(&vmlinux(release, Some(&config("6.18.7-arch1", YES)))));
    let tar = Tar::default()
        .add(".PKGINFO", info)
        .add("usr/lib/modules/6.18.7-arch1-1/kernel/a.ko", &noise(9000, 1))
        .add("usr/lib/modules/6.18.7-arch1-1/vmlinuz", &image)
        .end();
    assert_eq!(
        show(&find_all("linux.pkg.tar", &tar)),
        ["usr/lib/modules/6.18.7-arch1-1/vmlinuz 6.18.7-arch1-1 y"]
    );
}

/// An RPM made by hand, with the stripped payload that `rpmbuild` uses only above 4 GB.
fn stripped_rpm(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut index = Vec::new();
    let mut entry = |tag: u32, kind: u32, count: usize, bytes: &[u8]| {
        if kind == 4 {
            data.resize(data.len().next_multiple_of(4), 0);
        }
        let offset = u32::try_from(data.len()).unwrap();
        for word in [tag, kind, offset, u32::try_from(count).unwrap()] {
            index.extend_from_slice(&word.to_be_bytes());
        }
        data.extend_from_slice(bytes);
    };
    let words = |words: Vec<usize>| -> Vec<u8> {
        words.into_iter().flat_map(|word| u32::try_from(word).unwrap().to_be_bytes()).collect()
    };
    entry(1000, 6, 1, b"kernel-core\0");
    entry(1001, 6, 1, b"6.12.0\0");
    entry(1002, 6, 1, b"211.el10\0");
    entry(1022, 6, 1, b"x86_64\0");
    entry(1044, 6, 1, b"kernel-6.12.0-211.el10.src.rpm\0");
    entry(1124, 6, 1, b"cpio\0");
    entry(1028, 4, files.len(), &words(files.iter().map(|(_, bytes)| bytes.len()).collect()));
    entry(1116, 4, files.len(), &words(vec![0; files.len()]));
    // Without content it is a directory or another name of the last file.
    let kind =
        |(name, _): &(&str, &[u8])| if name.contains(".d") { 0o40_755_u16 } else { 0o100_644 };
    let modes: Vec<u8> = files.iter().map(kind).flat_map(u16::to_be_bytes).collect();
    entry(1030, 3, files.len(), &modes);
    let inode = |(number, (name, _)): (usize, &(&str, &[u8]))| {
        if *name == "link" { files.len() } else { number + 1 }
    };
    entry(1096, 4, files.len(), &words(files.iter().enumerate().map(inode).collect()));
    let names: Vec<String> = files.iter().map(|(name, _)| format!("{name}\0")).collect();
    let names = names.concat();
    entry(1117, 8, files.len(), names.as_bytes());
    entry(1118, 8, 1, b"/lib/modules/6.12.0-211.el10.x86_64/\0");
    let intro = |entries: usize, size: usize| {
        let mut intro = vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
        intro.extend_from_slice(&words(vec![entries, size]));
        intro
    };
    let mut out = vec![0; 96];
    out[..4].copy_from_slice(&[0xed, 0xab, 0xee, 0xdb]);
    // A signature header of one entry and three bytes, filled up to eight.
    out.extend_from_slice(&intro(1, 3));
    out.extend_from_slice(&[0; 16 + 3 + 5]);
    out.extend_from_slice(&intro(index.len() / 16, data.len()));
    out.extend_from_slice(&index);
    out.extend_from_slice(&data);
    let mut payload = Vec::new();
    for (number, (name, bytes)) in files.iter().enumerate() {
        payload.extend_from_slice(format!("07070X{number:08x}\0\0").as_bytes());
        if *name == "link" || name.contains(".d") {
            continue;
        }
        payload.extend_from_slice(bytes);
        payload.resize(payload.len().next_multiple_of(4), 0);
    }
    let trailer = crate::make::cpio(&[]);
    payload.extend_from_slice(&trailer);
    out.extend_from_slice(&gzip(&payload));
    out
}

#[test]
fn the_stripped_payload_of_large_rpms_takes_names_from_the_header() {
    let text = config("6.12.0-211.el10.x86_64", YES);
    let last = noise(99_999, 3);
    let rpm = stripped_rpm(&[
        ("System.map", b"not a map"),
        ("kernel.d", &[0; 4096]),
        ("link", &last),
        ("config", &text),
        ("vmlinuz", &last),
    ]);
    assert_eq!(
        show(&find_all("x", &rpm)),
        ["lib/modules/6.12.0-211.el10.x86_64/config 6.12.0-211.el10.x86_64 y"]
    );
    // An index beyond the list.
    let mut payload = b"07070X000000ff\0\0".to_vec();
    payload.resize(64, 0);
    let mut lying = stripped_rpm(&[]);
    let stream = gzip(&crate::make::cpio(&[]));
    lying.truncate(lying.len() - stream.len());
    lying.extend_from_slice(&gzip(&payload));
    let message = errors(find("x", &lying).1).remove(0);
    assert!(message.contains("damaged cpio at offset 0: file 255 of 0"), "{message}");
}

#[test]
fn a_source_package_is_not_taken_for_a_kernel() {
    if !have("rpmbuild") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "SOURCES/config-6.1.0", &config("6.1.0", YES));
    write(root, "SOURCES/config-6.2.0", &config("6.2.0", NO));
    let spec = "Name: kernel\nVersion: 6.1.0\nRelease: 1\nSummary: x\nLicense: GPL-2.0\n\
                Source0: config-6.1.0\nSource1: config-6.2.0\n%description\nx\n";
    write(root, "x.spec", spec.as_bytes());
    let top = format!("_topdir {}", root.display());
    run("rpmbuild", &["-bs", "--define", &top, "x.spec"], root);
    let bytes = fs::read(root.join("SRPMS/kernel-6.1.0-1.src.rpm")).unwrap();
    assert_eq!(
        show(&find_all("x", &bytes)),
        ["config-6.1.0 6.1.0 y", "config-6.2.0 6.2.0 not set"]
    );
}

#[test]
fn a_package_without_a_kernel_names_those_it_depends_on() {
    let control = "Package: linux-image-amd64\nVersion: 1\nDepends: linux-image-6.1.0-57-amd64 (= 6.1.192-1), \
                   linux-headers-6.1.0-57-amd64, linux-image-6.1.0-56-amd64 | linux-base\n";
    let control = gzip(&Tar::default().add("./control", control.as_bytes()).end());
    let data = gzip(&Tar::default().add("usr/share/doc/x", b"x").end());
    let members: [(&str, &[u8]); 3] =
        [("debian-binary", b"2.0\n"), ("control.tar.gz", &control), ("data.tar.gz", &data)];
    let (found, result) = find("x", &ar(&members));
    assert!(found.is_empty());
    let expected = ["linux-image-6.1.0-57-amd64", "linux-image-6.1.0-56-amd64"];
    assert_eq!(result.unwrap().depends, expected);
}
