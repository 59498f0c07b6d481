//! The loader's cache and shared libraries: the facts are those of a snapshot, memory is bounded by the input whatever it says
//! of itself, and only a library with this project's note is taken for this project's.
//!
//! An input that starts with `@` is a list of files and links. Any other is the loader's cache and two libraries.

#![no_main]

use std::collections::BTreeMap;

use fastpath_fuzz::MemoryTree;
use fastpath_fuzz::artifact::within_memory;
use fastpath_host::runtime::{self, MARK, Place};
use libfuzzer_sys::fuzz_target;

/// A directory of `LD_LIBRARY_PATH`, and hipFile's library in it.
const DIRECTORY: &str = "/a";
const HIPFILE: &str = "/a/libhipfile.so.0";

fn host(input: &[u8]) -> MemoryTree {
    if input.starts_with(b"@") {
        return MemoryTree::new(input);
    }
    let paths = ["/etc/ld.so.cache", HIPFILE, "/a/libamdhip64.so.7"];
    MemoryTree::of(paths.map(|path| (path.to_owned(), input.to_owned())).to_vec())
}

fuzz_target!(|input: &[u8]| {
    let variables = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), DIRECTORY.to_owned())]);
    let whole = host(input);
    let kept = host(input).kept();
    // A cache may have 256 entries that share one long path.
    let is_library = input.starts_with(b"\x7fELF");
    let most = if is_library { 256 << 10 } else { 16 << 20 } + 32 * input.len();
    let facts = within_memory(most, || runtime::read(&whole, &variables));
    assert_eq!(facts, within_memory(most, || runtime::read(&kept, &variables)), "a snapshot of it");
    assert!(format!("{facts:?}").len() <= (4 << 20) + 64 * input.len());
    for unread in &facts.unread {
        assert!(!unread.reason.contains(char::is_control), "{:?}", unread.reason);
    }
    let libraries = facts.libraries.iter().chain(&facts.hipfile);
    for library in libraries.filter(|library| library.place == Place::LoaderCache) {
        let home = library.path.strip_prefix("/home/");
        assert!(home.is_none_or(str::is_empty), "{} names a person", library.path);
    }

    let ours = within_memory(most, || runtime::is_ours(&kept, HIPFILE));
    assert_eq!(runtime::is_ours(&whole, HIPFILE), ours, "a snapshot of it");
    let is_note = |bytes: &[u8]| bytes[4..20] == MARK[4..20];
    if ours == Some(true) && !input.starts_with(b"@") {
        assert!(is_library && input.windows(20).any(is_note), "no note");
    }
});
