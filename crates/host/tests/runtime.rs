//! Facts of the runtime layer from a snapshot: the same, small, and without what else is installed.
#![cfg(all(feature = "runtime", feature = "snapshot"))]
#![allow(missing_docs, reason = "a test has no users")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use fastpath_host::DirTree;
use fastpath_host::runtime::{self, Image};
use fastpath_host::snapshot::{Meta, Recorder, Replay, write};

const WITH: &[u8] = include_bytes!("../../../tests/libraries/with-ais.so");
const HIPFILE: &[u8] = include_bytes!("../../../tests/libraries/hipfile.so");

#[test]
fn a_snapshot_keeps_what_a_library_is_and_not_the_library() {
    let root = tempfile::tempdir().unwrap();
    let file = |path: &str, bytes: &[u8]| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    // As large as a real one, with bytes that must not be kept.
    let large = [WITH, &b"proprietary".repeat(3_000_000)].concat();
    file("opt/rocm-7.2.0/lib/libamdhip64.so.7.2.70200", &large);
    file("opt/rocm-7.2.0/lib/libacme-internal.so", b"secret");
    file("opt/rocm-7.2.0/lib/libhipfile.so.0", HIPFILE);
    file("opt/rocm-7.2.0/.info/version", b"7.2.0-43\n");
    file("opt/acme-internal/secret", b"");
    file("opt/rocm-6.4.3/lib/libamdhip64.so.6", b"\x7fELF and then nothing of note");
    file("etc/ld.so.cache", b"glibc-ld.so.cache1.1 and then something about acme-internal");
    symlink("libamdhip64.so.7.2.70200", root.path().join("opt/rocm-7.2.0/lib/libamdhip64.so.7"))
        .unwrap();
    symlink("/opt/rocm-7.2.0", root.path().join("opt/rocm")).unwrap();
    let tree = DirTree::open(Path::new(root.path())).unwrap();
    let nothing = BTreeMap::new();
    let facts = runtime::read(&tree, &nothing);
    let images: Vec<&Image> = facts.libraries.iter().map(|library| &library.image).collect();
    assert!(matches!(images.as_slice(), [Image::Library { .. }, Image::Damaged]), "{images:?}");
    assert_eq!((facts.hipfile.len(), facts.unread.len()), (1, 1), "{facts:#?}");

    let recorder = Recorder::new(&tree);
    assert_eq!(runtime::read(&recorder, &nothing), facts);
    let mut packed = Vec::new();
    write(&recorder, &Meta::new("0.1.0", "2026-11-30T12:00:00Z"), &mut packed).unwrap();
    assert_eq!(runtime::read(&Replay::from_bytes(packed.clone()).unwrap(), &nothing), facts);
    let mut plain = Vec::new();
    let mut stream = ruzstd::decoding::StreamingDecoder::new(packed.as_slice()).unwrap();
    stream.read_to_end(&mut plain).unwrap();
    assert!(plain.len() < 64 << 10, "{}", plain.len());
    for secret in ["proprietary", "acme", "nothing of note"] {
        let found = plain.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{secret}");
    }
}
