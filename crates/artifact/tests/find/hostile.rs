//! Anything at all: no input makes it panic, and none makes it find what is not there.

use fastpath_artifact::Limits;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::make::{Tar, YES, ar, bzimage, config, cpio, deb, gzip, pe, vmlinux, zboot};
use crate::tools::{filter, find_with, have};

/// Small bounds, so that a lucky mutation does not take minutes.
fn limits() -> Limits {
    Limits { output: 64 << 20, members: 10_000, ..Limits::default() }
}

/// One artefact of every kind.
fn artefacts() -> Vec<Vec<u8>> {
    let text = config("6.1.0", YES);
    let short = &text[..2000];
    let kernel = vmlinux("6.1.0", Some(short));
    let tar = Tar::default().add("./boot/config-6.1.0", short).add("./boot/vmlinuz", b"MZ").end();
    let mut all = vec![
        text.clone(),
        gzip(&text),
        tar.clone(),
        gzip(&tar),
        deb("linux-image-6.1.0", &tar),
        ar(&[("data.tar", &tar)]),
        cpio(&[("boot/config-6.1.0", short), ("boot/System.map", b"ffffffff81000000 T pci_x\n")]),
        bzimage("6.1.0", &gzip(&kernel)),
        zboot(&gzip(&kernel), "gzip"),
        pe(&[(".uname", b"6.1.0"), (".linux", &bzimage("6.1.0", &gzip(&kernel)))]),
    ];
    for (tool, options) in [
        ("xz", &["-c"][..]),
        ("xz", &["-c", "--format=lzma"]),
        ("zstd", &["-c", "-q", "-19"]),
        ("bzip2", &["-c"]),
        ("lz4", &["-c", "-q", "-BD"]),
        ("lz4", &["-c", "-q", "-l"]),
    ] {
        if have(tool) {
            all.push(filter(tool, options, &tar));
            all.push(bzimage("6.1.0", &filter(tool, options, &kernel)));
        }
    }
    all
}

fn magics() -> Vec<Vec<u8>> {
    artefacts().iter().map(|artefact| artefact[..artefact.len().min(600)].to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..3000)) {
        let (found, _) = find_with(limits(), false, "x", &bytes);
        prop_assert!(found.is_empty());
    }

    #[test]
    fn random_bytes_behind_a_magic(
        start in prop::sample::select(magics()),
        keep in 0_usize..600,
        bytes in vec(any::<u8>(), 0..3000),
    ) {
        let input = [&start[..keep.min(start.len())], &bytes].concat();
        let _ = find_with(limits(), false, "x", &input);
    }

    #[test]
    fn changed_artefacts(
        artefact in prop::sample::select(artefacts()),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = artefact;
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = find_with(limits(), false, "config-6.1.0", &bytes);
    }
}
