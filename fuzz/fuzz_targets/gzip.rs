//! Compressed configurations: bounded output, no panic, and only a stream that ends well is sound.

#![no_main]

use std::io::Write;

use fastpath_host::{Kind, config_witness};
use fastpath_kconfig::gzip::{self, Error, inflate};
use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fn inflates(input: &[u8]) {
    let inflated = inflate(input, LIMIT);
    assert!(inflated.text.len() <= LIMIT);
    match &inflated.end {
        Ok(()) => {
            // Padding after the last member changes nothing.
            let padded = inflate(&[input, &[0; 16]].concat(), LIMIT);
            assert_eq!((padded.end, padded.text), (Ok(()), inflated.text.clone()));
            // One byte less room than needed is too little.
            if let Some(less) = inflated.text.len().checked_sub(1) {
                let stopped = inflate(input, less);
                assert!(matches!(stopped.end, Err(Error::TooLarge { .. })));
                assert_eq!(stopped.text, &inflated.text[..less]);
            }
        }
        Err(Error::Truncated { offset }) => assert_eq!(*offset, input.len()),
        Err(Error::Malformed { offset, .. } | Error::TooLarge { offset, .. }) => {
            assert!(*offset <= input.len());
        }
    }
    let _ = config_witness("/proc/config.gz", Kind::ProcConfigGz, input, None);
}

fuzz_target!(|bytes: &[u8]| {
    inflates(bytes);
    inflates(&[&gzip::MAGIC[..], &[8], bytes].concat());

    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("a vector takes everything");
    let packed = encoder.finish().expect("a vector takes everything");
    let inflated = inflate(&packed, LIMIT.max(bytes.len()));
    assert_eq!((inflated.text.as_slice(), inflated.end), (bytes, Ok(())));
    let cut = bytes.first().map_or(0, |&byte| usize::from(byte)).min(packed.len() - 1);
    assert_eq!(inflate(&packed[..cut], LIMIT).end, Err(Error::Truncated { offset: cut }));
});
