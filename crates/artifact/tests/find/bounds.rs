//! Inputs that want too much.

use std::process::Command;

use fastpath_artifact::{Error, Limits};

use crate::make::{Tar, YES, ar, bzimage, config, gzip, noise};
use crate::tools::{errors, filter, find, find_with, have, show};

/// The most memory of this process so far, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// Runs one of the ignored tests below in a process of its own, where its peak is its own.
fn alone(test: &str) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", &format!("bounds::{test}")])
        .status()
        .unwrap();
    assert!(status.success(), "{test}");
}

/// Zeros, compressed, without ever being in memory.
fn zeros(tool: &str, options: &str, mebibytes: u32) -> Vec<u8> {
    let command = format!("head -c {mebibytes}M /dev/zero | {tool} {options} -c");
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn memory_stays_below_the_bound() {
    if have("zstd") && have("xz") && have("rpmbuild") {
        for test in ["bombs", "windows", "lies"] {
            alone(test);
        }
    }
}

#[test]
#[ignore = "run in a process of its own"]
fn bombs() {
    let bombs = [
        zeros("gzip", "-9", 200),
        zeros("xz", "-9", 200),
        zeros("zstd", "-q --ultra -22", 200),
        zeros("bzip2", "-9", 200),
        zeros("lz4", "-q -l", 200),
        zeros("lz4", "-q -B7", 200),
        zeros("xz", "--format=lzma -9", 200),
    ];
    for bomb in &bombs {
        // As it is, as a configuration, as a kernel's payload, and as a member.
        for input in [
            bomb.clone(),
            bzimage("6.1.0", bomb),
            Tar::default()
                .add("boot/config-6.1.0-1.gz", bomb)
                .add("boot/vmlinuz-6.1.0-1", bomb)
                .end(),
            gzip(&ar(&[("debian-binary", b"2.0\n"), ("data.tar.xz", bomb)])),
        ] {
            let (found, result) = find("bomb", &input);
            assert!(found.is_empty(), "{:?}", show(&found));
            drop(result);
        }
    }
    let limits = Limits { output: 50 << 20, ..Limits::default() };
    for bomb in &bombs {
        let (_, result) = find_with(limits, false, "bomb", bomb);
        assert_eq!(errors(result), ["bomb: more than 52428800 bytes decompressed"]);
    }
    assert!(peak() < 256, "{} MiB", peak());
}

#[test]
#[ignore = "run in a process of its own"]
fn windows() {
    // The largest windows there are, inside each other and full.
    let text = config("6.1.0", YES);
    let far = [noise(44 << 20, 3).repeat(3), crate::make::vmlinux("6.1.0", Some(&text))].concat();
    let kernel = filter("zstd", &["-q", "-3", "--ultra", "--long=27", "-c"], &far);
    drop(far);
    let (found, result) = find("x", &bzimage("6.1.0", &kernel));
    assert_eq!(show(&found), ["- 6.1.0 y"], "{:?}", errors(result));
    let tar = Tar::default()
        .add("noise", &noise(130 << 20, 9))
        .add("boot/vmlinuz-6.1.0", &bzimage("6.1.0", &kernel))
        .end();
    drop(kernel);
    let package = filter("zstd", &["-q", "-3", "--ultra", "--long=27", "-c"], &tar);
    drop(tar);
    assert!(package.len() > 170 << 20);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), package).unwrap();
    let measure = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "bounds::one_file", "--nocapture"])
        .env("FASTPATH_TEST_FILE", file.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&measure.stdout);
    assert!(measure.status.success(), "{output}");
    // Both cannot be held; that is said, and nothing is found that is not there.
    assert!(output.contains("bytes of memory to decompress"), "{output}");
}

#[test]
#[ignore = "run in a process of its own"]
fn one_file() {
    let Some(path) = std::env::var_os("FASTPATH_TEST_FILE") else { return };
    let mut finder = fastpath_artifact::Finder::new(Limits::default(), false);
    let result = finder.find_in_file(path.as_ref(), &mut |found| println!("{:?}", found.member));
    println!("{:?}", errors(result));
    assert!(peak() < 256, "{} MiB", peak());
}

#[test]
#[ignore = "run in a process of its own"]
fn lies() {
    let mut inputs = Vec::new();
    // A tar member, a long name and an extended header of exabytes.
    for kind in [b'0', b'L', b'x', b'K', b'g', b'S'] {
        let mut header = Tar::header("boot/config-6.1.0-1", 0, kind);
        header[124..136]
            .copy_from_slice(&[0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]);
        Tar::sum(&mut header);
        inputs.push(Tar::default().raw(&header, &noise(5000, 1)).end());
    }
    inputs.push(b"!<arch>\ndata.tar        0           0     0     100644  9999999999`\n".to_vec());
    // cpio members and names of four gigabytes.
    let mut cpio = crate::make::cpio(&[("boot/config-6.1.0-1", b"x")]);
    cpio[54..62].copy_from_slice(b"ffffffff");
    inputs.push(cpio.clone());
    cpio[54..62].copy_from_slice(b"00000001");
    cpio[94..102].copy_from_slice(b"fffffff0");
    inputs.push(cpio);
    // RPM headers of gigabytes.
    let mut rpm = vec![0; 96];
    rpm[..4].copy_from_slice(&[0xed, 0xab, 0xee, 0xdb]);
    rpm.extend_from_slice(&[0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    rpm.extend_from_slice(&[0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff]);
    inputs.push(rpm.clone());
    let end = rpm.len();
    rpm[end - 8..].copy_from_slice(&[0x7f; 8]);
    inputs.push(rpm);
    for input in &inputs {
        let (found, result) = find("lie", input);
        assert!(found.is_empty());
        assert!(result.is_err(), "{:?}", &input[..20]);
    }
    assert!(peak() < 64, "{} MiB", peak());
}

#[test]
fn nesting_ends() {
    let mut bytes = config("6.1.0", YES);
    for _ in 0..12 {
        bytes = Tar::default().add("x.tar", &bytes).end();
    }
    let (found, result) = find("deep", &bytes);
    assert!(found.is_empty());
    let name = "!x.tar".repeat(9);
    assert_eq!(errors(result), [format!("deep{name}: more than 8 levels")]);
}

#[test]
fn members_are_counted() {
    let mut tar = Tar::default();
    for index in 0..200 {
        tar = tar.add(&format!("file-{index}"), b"");
    }
    let limits = Limits { members: 100, ..Limits::default() };
    let result = find_with(limits, false, "many.tar", &tar.end()).1;
    assert!(matches!(result, Err(Error::Limit { what: "members", limit: 100, .. })));
}

#[test]
fn kernels_are_counted() {
    let mut tar = Tar::default();
    for index in 0..5000 {
        tar = tar.add(&format!("boot/System.map-6.1.{index}"), b"ffffffff81000000 T _text\n");
    }
    let result = find("many.tar", &tar.end()).1;
    assert!(matches!(result, Err(Error::Limit { what: "kernels", .. })));
}

#[test]
fn errors_are_kept_within_bounds() {
    let mut tar = Tar::default();
    for index in 0..200 {
        tar = tar.add(&format!("boot/config-6.1.{index}"), b"");
    }
    let summary = find("bad.tar", &tar.end()).1.unwrap();
    assert_eq!((summary.errors.len(), summary.more_errors), (64, 136));
}

#[test]
fn a_configuration_has_a_size() {
    let limits = Limits { config: 10_000, ..Limits::default() };
    let text = config("6.1.0", YES);
    for bytes in [
        text.clone(),
        gzip(&text),
        bzimage("6.1.0", &gzip(&crate::make::vmlinux("6.1.0", Some(&text)))),
    ] {
        let (found, result) = find_with(limits, false, "x", &bytes);
        assert!(found.is_empty());
        assert_eq!(errors(result), ["x: more than 10000 bytes in a configuration"]);
    }
}

#[test]
fn thousands_of_empty_streams_end() {
    for stream in [gzip(b""), b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00".to_vec()] {
        let bytes = stream.repeat(70_000);
        let message = errors(find("x", &bytes).1).remove(0);
        assert!(message.contains("more than 65536"), "{message}");
    }
}
