//! Inputs that want too much.

use std::process::Command;

use fastpath_artifact::{Error, Finder, Limits};

use crate::make::{Tar, YES, ar, bzimage, config, gzip, le32, noise};
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
    for test in ["literals_beyond_the_block", "a_last_match_beyond_the_block", "declared_sizes"] {
        alone(test);
    }
}

/// The start of a zstd frame with a window of 128 MiB, full of zeros, then a block of sequences and literals.
fn full_window(block: &[u8]) -> Vec<u8> {
    let mut frame = b"\x28\xb5\x2f\xfd\x00\x88".to_vec();
    for _ in 0..1024 {
        frame.extend_from_slice(&[0x02, 0, 0x10, 0]);
    }
    frame.extend_from_slice(&le32(block.len() << 3 | 2 << 1 | 1)[..3]);
    [&frame, block].concat()
}

/// A frame as it is, and as a kernel in a package whose own frame has filled such a window before.
fn alone_and_nested(frame: &[u8]) -> [Vec<u8>; 2] {
    let raw = |bytes: &[u8]| [&le32(bytes.len() << 3)[..3], bytes].concat();
    let zeros = full_window(b"");
    let (header, blocks) = zeros[..zeros.len() - 3].split_at(6);
    let kernel = Tar::default().add("boot/vmlinuz-6.1.0-1", &bzimage("6.1.0-1", frame)).end();
    let noise = Tar::header("noise", 128 << 20, b'0');
    [frame.to_vec(), [header, &raw(&noise), blocks, &raw(&kernel), &[1, 0, 0]].concat()]
}

#[test]
#[ignore = "run in a process of its own"]
fn literals_beyond_the_block() {
    // One byte, 1048575 times, and no sequences.
    let frame = full_window(&[0xfd, 0xff, 0xff, b'x', 0]);
    let (_, result) = find("x", &frame);
    let expected = "x: damaged zstd at offset 4110: a block of more than 131072 bytes";
    assert_eq!(errors(result), [expected]);
    let [_, nested] = alone_and_nested(&frame);
    // Both windows cannot be held; that is said before the second one is full.
    let message = "x!boot/vmlinuz-6.1.0-1: more than 247463936 bytes of memory to decompress";
    assert_eq!(errors(find("x", &nested).1), [message]);
    assert!(peak() < 220, "{} MiB", peak());
}

#[test]
#[ignore = "run in a process of its own"]
fn a_last_match_beyond_the_block() {
    // Two matches of 131072 and 131074 bytes, each one byte back: no literals, tables of one symbol each.
    let bits = format!("1{:02b}{:016b}{:02b}{:016b}", 0, 65533, 0, 65535);
    let bits = u64::from_str_radix(&bits, 2).unwrap().to_le_bytes();
    let block = [&[0, 2, 0x54, 0, 2, 52][..], &bits[..5]].concat();
    let frame = full_window(&block);
    let (_, result) = find("x", &frame);
    let expected = "x: damaged zstd at offset 4116: a block of more than 131072 bytes";
    assert_eq!(errors(result), [expected]);
    assert!(peak() < 160, "{} MiB", peak());
}

/// What a stream says of its dictionary, block or size costs nothing until there is output.
#[test]
#[ignore = "run in a process of its own"]
fn declared_sizes() {
    let text = config("6.1.0", YES);
    let mut inputs = Vec::new();
    if have("xz") {
        let lzma = filter("xz", &["--format=lzma", "-c"], &text);
        for dictionary in [28, 29, 30] {
            let mut lie = lzma.clone();
            lie[1..5].copy_from_slice(&(1_u32 << dictionary).to_le_bytes());
            inputs.push(lie);
        }
        // The checksum of a block's header is right here, since the encoder wrote it.
        for dictionary in ["192MiB", "256MiB", "1GiB", "1536MiB"] {
            inputs.push(filter("xz", &["-c", &format!("--lzma2=dict={dictionary},mf=hc3")], &text));
        }
    }
    let mut window = b"\x28\xb5\x2f\xfd\x00\x88".to_vec();
    window.extend_from_slice(&le32(text.len() << 3 | 1)[..3]);
    window.extend_from_slice(&text);
    for exponent in [17_u8, 18, 31] {
        window[5] = exponent << 3;
        inputs.push(window.clone());
    }
    // The content's size alone, as large as can be said.
    inputs.push([b"\x28\xb5\x2f\xfd\xe0", &[0xff; 8][..], &window[6..]].concat());
    // A long name and an extended header just within the bounds, sixty of them.
    let mut tar = Tar::default();
    for _ in 0..60 {
        tar = tar.add_kind("x", &noise(1 << 20, 5), b'x').add_kind("L", &noise(4000, 5), b'L');
    }
    inputs.push(tar.add("boot/config-6.1.0", &text).end());
    for input in &inputs {
        let (found, result) = find("x", input);
        assert!(!found.is_empty() || !errors(result).is_empty());
    }
    // The inputs are most of it.
    assert!(peak() < 100, "{} MiB", peak());
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
fn what_is_nothing_known_is_searched_up_to_a_bound() {
    let limits = Limits { search: 1 << 20, output: 4 << 20, ..Limits::default() };
    // Zeros are what the holes of a sparse file read as.
    let zeros = vec![0; 2 << 20];
    let expected = "zeros: more than 1048576 bytes to search for a kernel";
    assert_eq!(errors(find_with(limits, false, "zeros", &zeros).1), [expected]);
    let mut endless = std::io::repeat(0);
    let result = Finder::new(limits, false).find_in_stream(&mut endless, "zeros", &mut |_| {});
    assert_eq!(errors(result), [expected]);
    // A member without an end is bounded with the stream it is in.
    let header = Tar::header("padding", 1 << 32, b'0');
    let mut endless = std::io::Read::chain(&header[..], std::io::repeat(0));
    let result = Finder::new(limits, false).find_in_stream(&mut endless, "x.tar", &mut |_| {});
    assert_eq!(errors(result), ["x.tar: more than 4194304 bytes in a stream"]);
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
