//! Compressed streams: what was packed comes out again, a cut or damaged stream gives nothing else, and what a stream
//! says of its size, window or dictionary costs nothing before there is output.
//!
//! The first byte of an input chooses a format. An even second byte leaves the rest as it is, behind the magic of that
//! format; otherwise the third and fourth say where the packed stream is cut or changed.

#![no_main]

use std::io::Read;

use fastpath_fuzz::artifact::{LIMITS, Packer, check};
use libfuzzer_sys::fuzz_target;

/// What is packed is a configuration whatever the fuzzer adds to it.
const CONFIG: &str = include_str!("../seeds/config/yes");

fn damaged(packer: Packer, rest: &[u8], at: [u8; 2], cut: bool) {
    let mut text = CONFIG.as_bytes().to_vec();
    text.extend(rest.iter().map(|byte| if byte.is_ascii_graphic() { *byte } else { b'\n' }));
    let Some(plain) = check("config", &text).configs().next().map(<[u8]>::to_vec) else { return };
    let mut packed = packer.pack(&text);
    let answer = check("config", &packed);
    assert_eq!(answer.configs().collect::<Vec<_>>(), [plain.as_slice()], "{:?}", answer.errors);

    let at = usize::from(u16::from_le_bytes(at)) % packed.len();
    if cut {
        packed.truncate(at);
    } else {
        packed[at] ^= 1 << (at % 8);
    }
    let answer = check("config", &packed);
    // What is left of a stream may be a text by itself only where nothing says that it was longer.
    if packer.has_checksum() {
        assert!(answer.configs().all(|config| config == plain), "a changed configuration");
        assert!(!cut || answer.configs().next().is_none(), "a cut stream is whole");
    }
}

/// What another decoder makes of one zstd frame with nothing behind it.
fn other_zstd(stream: &[u8]) -> Option<Vec<u8>> {
    let mut rest = stream;
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&mut rest).ok()?;
    let mut text = Vec::new();
    decoder.by_ref().take(LIMITS.config as u64).read_to_end(&mut text).ok()?;
    let decoder = decoder.into_frame_decoder();
    let stated = decoder.get_checksum_from_data();
    let sound = stated.is_none() || stated == decoder.get_calculated_checksum();
    (decoder.is_finished() && sound && rest.is_empty()).then_some(text)
}

fuzz_target!(|input: &[u8]| {
    let [format, how, first, second, rest @ ..] = input else { return };
    let packer = Packer::ALL[usize::from(*format) % Packer::ALL.len()];
    if how % 2 == 1 {
        return damaged(packer, rest, [*first, *second], how & 2 != 0);
    }
    // As much of a real stream's start as the input says, then anything.
    let packed = packer.pack(CONFIG.as_bytes());
    let stream = [&packed[..usize::from(*first).min(packed.len())], rest].concat();
    let answer = check("config", &stream);
    if let Some(text) = other_zstd(&stream) {
        let plain = check("config", &text);
        assert!(plain.configs().eq(answer.configs()), "{:?}", answer.errors);
    }
});
