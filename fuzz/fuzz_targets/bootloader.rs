//! A whole host with the files of its boot loader: nothing panics, and a kernel that is said to boot next is installed.
//!
//! The input is a list of files: `@/path`, then the bytes.

#![no_main]

use fastpath_fuzz::MemoryTree;
use fastpath_host::{Asked, gather};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let tree = MemoryTree::new(input);
    let facts = gather(&tree, &Asked::Running);
    let kernel = &facts.kernel;
    if let Some(release) = &kernel.next_boot.release {
        assert!(kernel.installed.iter().any(|installed| installed.release == *release));
    }
});
