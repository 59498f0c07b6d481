//! Packages, archives and images in each other: nothing panics, memory and output are bounded, and what is found does not
//! depend on how the input is read.
//!
//! An input that starts with `@` says what to build (`fastpath_fuzz::artifact::build`), so that a fuzzer need not find
//! checksums and compressed streams. Anything else is the file itself.

#![no_main]

use fastpath_fuzz::artifact::{build, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if input.starts_with(b"@") {
        let Some((name, bytes)) = build(input) else { return };
        check(&name, &bytes);
    } else {
        check("input", input);
    }
});
