//! Kernel images and lists of symbols: a configuration is found in an image as it is found by itself, and nothing panics.
//!
//! The first byte chooses an image and a compression, the rest is the configuration in it up to a NUL, and what stands
//! before it. If the first byte is 255, the rest is an image or a list as it is.

#![no_main]

use fastpath_fuzz::artifact::{LIMITS, Packer, check, kernel};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [first, rest @ ..] = input else { return };
    if *first == 255 {
        check("System.map-6.1.0", rest);
        return;
    }
    let (config, before) = match memchr::memchr(0, rest) {
        Some(end) => (&rest[..end], &rest[end + 1..]),
        None => (rest, &[][..]),
    };
    let packer = Packer::ALL[usize::from(*first) % Packer::ALL.len()];
    let image = kernel(first / 7, packer, config, before);
    let answer = check("vmlinuz", &image);
    let alone = check("config", config);
    let has_own_mark = memchr::memmem::find(before, b"IKCFG_ST").is_some();
    if let Some(config) = alone.configs().next()
        && config.len() <= LIMITS.config
        && !has_own_mark
    {
        assert_eq!(answer.configs().collect::<Vec<_>>(), [config], "{:?}", answer.errors);
    }
});
