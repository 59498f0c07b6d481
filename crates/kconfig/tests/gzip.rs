//! Compressed configurations: sound ones give their text, cut and damaged ones never pass for sound.

use std::io::Write;

use fastpath_kconfig::gzip::{Error, OUTPUT_LIMIT, inflate, is_gzip};
use flate2::{Compression, GzBuilder, write::GzEncoder};

const TEXT: &[u8] = b"CONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\nCONFIG_ZONE_DEVICE=y\n\
    # CONFIG_HSA_AMD_P2P is not set\nCONFIG_DEBUG_KERNEL=y\n";

fn pack_at(level: u32, text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(text).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

fn pack(text: &[u8]) -> Vec<u8> {
    pack_at(9, text)
}

/// A stream with every optional part of the header.
fn pack_with_header(text: &[u8]) -> Vec<u8> {
    let builder = GzBuilder::new().filename("config").comment("a comment").extra(vec![1, 2, 3]);
    let mut encoder = builder.mtime(1_800_000_000).write(Vec::new(), Compression::best());
    encoder.write_all(text).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

#[test]
fn sound_streams_give_their_text() {
    for packed in [pack_at(0, TEXT), pack_at(1, TEXT), pack(TEXT), pack_with_header(TEXT)] {
        assert!(is_gzip(&packed));
        let inflated = inflate(&packed, OUTPUT_LIMIT);
        assert_eq!((inflated.text.as_slice(), inflated.end), (TEXT, Ok(())));
    }
    let inflated = inflate(&pack(b""), OUTPUT_LIMIT);
    assert_eq!((inflated.text.as_slice(), inflated.end), (&b""[..], Ok(())));
}

#[test]
fn what_is_no_stream() {
    assert!(!is_gzip(b""));
    assert!(!is_gzip(b"\x1f"));
    assert!(!is_gzip(TEXT));
    assert_eq!(inflate(b"", OUTPUT_LIMIT).end, Err(Error::Truncated { offset: 0 }));
    assert_eq!(inflate(b"\x1f", OUTPUT_LIMIT).end, Err(Error::Truncated { offset: 1 }));
    assert!(matches!(inflate(TEXT, OUTPUT_LIMIT).end, Err(Error::Malformed { .. })));
    assert!(matches!(inflate(&[0; 64], OUTPUT_LIMIT).end, Err(Error::Malformed { .. })));
}

#[test]
fn members_are_joined() {
    for count in 1..=5 {
        let packed: Vec<u8> = TEXT.chunks(TEXT.len().div_ceil(count)).flat_map(pack).collect();
        let inflated = inflate(&packed, OUTPUT_LIMIT);
        assert_eq!((inflated.text.as_slice(), inflated.end), (TEXT, Ok(())), "{count} members");
    }
    let with_empty = [pack(b""), pack(TEXT), pack(b"")].concat();
    let inflated = inflate(&with_empty, OUTPUT_LIMIT);
    assert_eq!((inflated.text.as_slice(), inflated.end), (TEXT, Ok(())));
}

/// 64 MiB of them would take most of a minute otherwise, and all of it for nothing.
#[test]
fn a_file_of_empty_members_stops() {
    let empty = pack(b"");
    assert_eq!(inflate(&empty.repeat(4096), OUTPUT_LIMIT).end, Ok(()));
    let inflated = inflate(&empty.repeat(1 << 20), OUTPUT_LIMIT);
    assert_eq!(inflated.text, b"");
    let error = inflated.end.expect_err("too many");
    let offset = 4096 * empty.len();
    assert_eq!(
        error.to_string(),
        format!("gzip stream damaged at offset {offset}: more than 4096 members")
    );
}

#[test]
fn bytes_after_the_last_member_are_ignored() {
    for tail in [&b"\0"[..], &[0; 4096], b"garbage", b"\x1f", b"\x1f\x8a", b"\x8b\x1f", TEXT] {
        let inflated = inflate(&[&pack(TEXT), tail].concat(), OUTPUT_LIMIT);
        assert_eq!((inflated.text.as_slice(), inflated.end), (TEXT, Ok(())), "{tail:?}");
    }
}

#[test]
fn what_starts_like_another_member_must_be_one() {
    let first = pack(TEXT);
    let cut = [first.as_slice(), b"\x1f\x8b"].concat();
    let inflated = inflate(&cut, OUTPUT_LIMIT);
    assert_eq!(inflated.end, Err(Error::Truncated { offset: cut.len() }));
    let damaged = [first.as_slice(), b"\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff"].concat();
    assert!(matches!(inflate(&damaged, OUTPUT_LIMIT).end, Err(Error::Malformed { .. })));
}

#[test]
fn a_stream_cut_anywhere_is_never_sound() {
    for packed in [pack_at(0, TEXT), pack(TEXT), pack_with_header(TEXT)] {
        for cut in 0..packed.len() {
            let inflated = inflate(&packed[..cut], OUTPUT_LIMIT);
            assert_eq!(inflated.end, Err(Error::Truncated { offset: cut }), "cut at {cut}");
            assert!(TEXT.starts_with(&inflated.text), "cut at {cut}");
        }
    }
}

#[test]
fn several_members_cut_anywhere_never_give_another_text() {
    let first = pack(TEXT);
    let packed = [first.clone(), pack(b"CONFIG_Z=y\n")].concat();
    for cut in 0..packed.len() {
        let inflated = inflate(&packed[..cut], OUTPUT_LIMIT);
        // Between two members a cut leaves no trace, and one byte cannot be told from garbage.
        let between = cut == first.len() || cut == first.len() + 1;
        assert_eq!(inflated.end.is_ok(), between, "cut at {cut}");
        if between {
            assert_eq!(inflated.text, TEXT);
        }
    }
}

#[test]
fn a_damaged_byte_never_gives_another_sound_text() {
    for packed in [pack_at(0, TEXT), pack(TEXT), pack_with_header(TEXT)] {
        for at in 0..packed.len() {
            for flip in [1, 2, 4, 8, 16, 32, 64, 128, u8::MAX] {
                let mut damaged = packed.clone();
                damaged[at] ^= flip;
                let inflated = inflate(&damaged, OUTPUT_LIMIT);
                assert!(
                    inflated.end.is_err() || inflated.text == TEXT,
                    "byte {at} changed by {flip:#04x} gives another text"
                );
                let trailer = at >= packed.len() - 8;
                assert!(!trailer || inflated.end.is_err(), "byte {at} of the checksums");
            }
        }
    }
}

#[test]
fn the_limit_is_the_last_size_that_passes() {
    let packed = pack(TEXT);
    for limit in [TEXT.len(), TEXT.len() + 1] {
        let inflated = inflate(&packed, limit);
        assert_eq!((inflated.text.as_slice(), inflated.end), (TEXT, Ok(())), "limit {limit}");
    }
    for limit in 0..TEXT.len() {
        let inflated = inflate(&packed, limit);
        assert_eq!(inflated.text, &TEXT[..limit]);
        let stopped =
            matches!(inflated.end, Err(Error::TooLarge { limit: found, .. }) if found == limit);
        assert!(stopped, "limit {limit}: {:?}", inflated.end);
    }
}

#[test]
fn the_limit_holds_for_all_members_together() {
    let packed = [pack(TEXT), pack(TEXT)].concat();
    assert_eq!(inflate(&packed, 2 * TEXT.len()).end, Ok(()));
    let inflated = inflate(&packed, 2 * TEXT.len() - 1);
    assert_eq!(inflated.text.len(), 2 * TEXT.len() - 1);
    assert!(matches!(inflated.end, Err(Error::TooLarge { .. })));
    let inflated = inflate(&packed, TEXT.len());
    assert_eq!(inflated.text, TEXT);
    assert!(matches!(inflated.end, Err(Error::TooLarge { .. })));
    assert_eq!(inflate(&[pack(TEXT), pack(b"")].concat(), TEXT.len()).end, Ok(()));
}

/// At the limit the checksum has not been read yet: it must be, before the stream counts as sound.
#[test]
fn a_damaged_checksum_at_the_limit_is_seen() {
    let mut packed = pack(TEXT);
    let crc = packed.len() - 8;
    packed[crc] ^= 1;
    assert!(matches!(inflate(&packed, TEXT.len()).end, Err(Error::Malformed { .. })));
    let packed = pack(TEXT);
    let inflated = inflate(&packed[..packed.len() - 1], TEXT.len());
    assert_eq!(inflated.end, Err(Error::Truncated { offset: packed.len() - 1 }));
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let bomb = pack(&vec![b'y'; OUTPUT_LIMIT + 1]);
    assert!(bomb.len() < 100_000);
    let inflated = inflate(&bomb, OUTPUT_LIMIT);
    assert_eq!(inflated.text.len(), OUTPUT_LIMIT);
    let Err(Error::TooLarge { offset, limit }) = inflated.end else {
        panic!("not stopped: {:?}", inflated.end)
    };
    assert_eq!(limit, OUTPUT_LIMIT);
    assert!(offset <= bomb.len());
}

#[test]
fn errors_say_where() {
    let packed = pack(TEXT);
    let error = inflate(&packed[..20], OUTPUT_LIMIT).end.expect_err("cut");
    assert_eq!(error.to_string(), "gzip stream cut at offset 20");
    let error = inflate(&packed, 3).end.expect_err("over the limit");
    assert!(error.to_string().starts_with("gzip stream is larger than 3 bytes when decompressed"));
    let mut damaged = packed;
    damaged[2] = 7;
    let error = inflate(&damaged, OUTPUT_LIMIT).end.expect_err("damaged");
    assert!(error.to_string().starts_with("gzip stream damaged at offset "), "{error}");
}
