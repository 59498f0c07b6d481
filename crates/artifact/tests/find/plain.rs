//! A configuration by itself, plain and compressed.

use fastpath_knowledge::Release;

use crate::make::{NO, YES, config};
use crate::tools::{errors, filter, find, find_all, have, only_config, show};

/// The compressors, their options and the ending of their files.
const COMPRESSORS: [(&str, &[&str], &str); 12] = [
    ("gzip", &["-c"], "gz"),
    ("xz", &["-c"], "xz"),
    ("xz", &["-c", "--x86", "--lzma2=dict=32MiB", "--check=crc32"], "xz"),
    ("xz", &["-c", "--block-size=4096", "--check=sha256"], "xz"),
    ("xz", &["-c", "--format=lzma"], "lzma"),
    ("zstd", &["-c", "-q"], "zst"),
    ("zstd", &["-c", "-q", "--ultra", "-22"], "zst"),
    ("zstd", &["-c", "-q", "-1", "--no-check"], "zst"),
    ("bzip2", &["-c"], "bz2"),
    ("lz4", &["-c", "-q"], "lz4"),
    ("lz4", &["-c", "-q", "-9", "-B4", "-BD", "-BX"], "lz4"),
    ("lz4", &["-c", "-q", "-l"], "lz4"),
];

#[test]
fn a_text_is_found_by_its_content_whatever_its_name() {
    let text = config("6.1.0", YES);
    let found = find_all("notes", &text);
    assert_eq!(only_config(&found), text);
    assert_eq!(show(&found), ["- - y"]);
    assert_eq!(found[0].bytes_read, text.len() as u64);
}

#[test]
fn a_name_says_which_kernel_it_is() {
    let text = config("6.8.12", NO);
    assert_eq!(show(&find_all("config-6.8.0-138-generic", &text)), ["- 6.8.0-138-generic not set"]);
    assert_eq!(
        show(&find_all("kernel-config-x86_64-6.1.0-gentoo", &text)),
        ["- 6.1.0-gentoo not set"]
    );
}

#[test]
fn every_compression_is_known_by_its_magic() {
    let text = config("6.1.0", YES);
    for (tool, options, ending) in COMPRESSORS {
        if !have(tool) {
            continue;
        }
        let bytes = filter(tool, options, &text);
        assert!(bytes.len() < text.len());
        for name in ["notes", &format!("config-6.1.0-57-amd64.{ending}")] {
            let found = find_all(name, &bytes);
            assert_eq!(only_config(&found), text, "{tool} {options:?}");
            let release = found[0].release.as_ref().map(Release::as_str);
            assert_eq!(release, (name != "notes").then_some("6.1.0-57-amd64"));
        }
    }
}

#[test]
fn compressed_twice_is_still_a_configuration() {
    let text = config("6.1.0", YES);
    if have("xz") && have("zstd") {
        let bytes = filter("zstd", &["-c", "-q"], &filter("xz", &["-c"], &text));
        assert_eq!(only_config(&find_all("x", &bytes)), text);
    }
}

#[test]
fn streams_that_follow_each_other_are_one() {
    let text = config("6.1.0", YES);
    let (first, second) = text.split_at(text.len() / 2);
    for (tool, options, _) in COMPRESSORS {
        // The old format of lzma has no second stream.
        if !have(tool) || options.contains(&"--format=lzma") {
            continue;
        }
        // A legacy stream is cut only where a block ends.
        if options.contains(&"-l") {
            continue;
        }
        let bytes = [filter(tool, options, first), filter(tool, options, second)].concat();
        assert_eq!(only_config(&find_all("x", &bytes)), text, "{tool} {options:?}");
    }
}

#[test]
fn a_cut_stream_gives_an_error_and_never_a_configuration() {
    let text = config("6.1.0", YES);
    for (tool, options, _) in COMPRESSORS {
        if !have(tool) {
            continue;
        }
        let bytes = filter(tool, options, &text);
        for len in cuts(bytes.len()) {
            let (found, result) = find("config-6.1.0.z", &bytes[..len]);
            assert!(found.is_empty(), "{tool} {options:?} cut at {len}: {:?}", show(&found));
            assert!(result.is_err(), "{tool} {options:?} cut at {len}");
        }
        let cut = &bytes[..bytes.len() - 7];
        let message = errors(find("config.z", cut).1).remove(0);
        assert!(message.starts_with("config.z: "), "{message}");
        assert!(message.contains("ends at offset"), "{tool} {options:?}: {message}");
    }
}

/// Lengths to cut at: all near both ends and many between, but not the whole.
pub(crate) fn cuts(len: usize) -> impl Iterator<Item = usize> {
    let step = (len / 61).max(1);
    (0..len).filter(move |at| *at < 100 || *at + 100 > len || at % step == 0)
}

#[test]
fn a_changed_byte_never_changes_the_answer_in_silence() {
    let text = config("6.1.0", YES);
    for (tool, options, _) in COMPRESSORS {
        // Neither has a checksum.
        if !have(tool) || options.contains(&"--format=lzma") || options.contains(&"-l") {
            continue;
        }
        if options.contains(&"--no-check") {
            continue;
        }
        let bytes = filter(tool, options, &text);
        for at in cuts(bytes.len()) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            let (found, result) = find("config-6.1.0", &changed);
            if let [kernel] = &found[..] {
                assert_eq!(only_config(&found), text, "{tool} {options:?} at {at}: {kernel:?}");
                assert!(result.is_ok());
            }
        }
    }
}

#[test]
fn what_is_nothing_known_is_an_error_that_says_so() {
    let message = |bytes: &[u8]| errors(find("x", bytes).1).remove(0);
    assert_eq!(
        message(b""),
        "x: an empty file cannot be read: expected a kernel or something that holds one"
    );
    let unknown = "x: the content cannot be read: neither a kernel nor a known container";
    assert_eq!(message(b"#!/bin/sh\nCONFIG_X=1\necho done\necho\n"), unknown);
    assert_eq!(message(b"\x89PNG\r\n\x1a\n\0\0\0"), unknown);
    assert_eq!(message(&vec![0; 70_000]), unknown);
}

#[test]
fn the_first_of_several_is_enough_if_asked() {
    let limits = fastpath_artifact::Limits::default();
    let tar = crate::make::Tar::default()
        .add("boot/config-6.1.0-1", &config("6.1.0", YES))
        .add("boot/config-6.1.0-2", &config("6.1.0", NO))
        .end();
    let (found, result) = crate::tools::find_with(limits, true, "x.tar", &tar);
    assert_eq!(show(&found), ["boot/config-6.1.0-1 6.1.0-1 y"]);
    assert_eq!(result.unwrap().members, 1);
}
