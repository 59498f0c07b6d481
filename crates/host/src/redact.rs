//! What of a configuration a snapshot may hold.
//!
//! The name of a configuration file promises nothing: any link may stand there, and a snapshot that root takes would
//! carry away what it leads to. So only what a configuration can have is kept, each byte in its place, and the facts found
//! in the rest are those found in the original.

use fastpath_kconfig::{Text, gzip};
use memchr::memchr;

/// The longest name of a symbol that is kept; the kernel's longest has about 60 characters.
const MAX_NAME: usize = 100;

/// How much of the value of the option's own line is kept: a report shows it.
const MAX_VALUE: usize = 40;

/// The longest header line that is kept, far above any kernel's.
const MAX_HEADER: usize = 160;

/// A damaged stream is replaced by one with the same error up to this length; no configuration comes near it, and
/// whoever opens a snapshot need not inflate more.
pub(crate) const MAX_DAMAGED: usize = 2 << 20;

/// Keeps of a configuration, plain or gzip, what has the form of one: the lines of symbols that are `y`, `m`, `n` or not
/// set, the names of all others, the header, and the value of the option itself. Any other byte becomes `x`, but for line
/// ends, white space alone in a file, and NUL bytes, for they make a text malformed. A damaged stream becomes another one
/// with the same error: its header may name a file, and everybody could inflate what is there.
pub(crate) fn config(bytes: &[u8]) -> Vec<u8> {
    if !gzip::is_gzip(bytes) {
        return masked(bytes.to_owned());
    }
    let inflated = gzip::inflate(bytes, gzip::OUTPUT_LIMIT);
    match inflated.end {
        Ok(()) => masked(inflated.text),
        Err(error) => {
            drop(inflated.text);
            damaged_like(&error)
        }
    }
}

fn masked(mut text: Vec<u8>) -> Vec<u8> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return text;
    }
    let header = header(&text);
    let mut start = 0;
    while start < text.len() {
        let end = memchr(b'\n', &text[start..]).map_or(text.len(), |length| start + length);
        let length = end - start - usize::from(text[start..end].ends_with(b"\r"));
        let line = &mut text[start..start + length];
        match header {
            Some((at, length)) if at == start => {
                // The header is looked for in the first bytes only, which may end before its line does.
                let rest = &mut line[length..];
                let skip = usize::from(rest.first() == Some(&b'\r'));
                mask(&mut rest[skip..]);
            }
            _ => mask_line(line),
        }
        start = end + 1;
    }
    text
}

/// Where the header of a text starts, and its length.
fn header(text: &[u8]) -> Option<(usize, usize)> {
    let header = Text::new(text).header()?;
    let length = "# Linux/ ".len()
        + header.arch.len()
        + header.version.len()
        + " Kernel Configuration".len();
    let arch = header.arch.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let start = arch.checked_sub("# Linux/".len())?;
    (length <= MAX_HEADER).then_some((start, length))
}

fn mask(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != 0) {
        *byte = b'x';
    }
}

/// Masks a line, given without its line end, as far as it must be.
fn mask_line(line: &mut [u8]) {
    const SET: &[u8] = b"CONFIG_";
    const OFF: &[u8] = b"# CONFIG_";
    const NOT_SET: &[u8] = b" is not set";
    let name_length = |rest: &[u8]| {
        let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        rest.iter().take(MAX_NAME).take_while(is_of_name).count()
    };
    if line.starts_with(SET) {
        let rest = &mut line[SET.len()..];
        let length = name_length(rest);
        let (name, rest) = rest.split_at_mut(length);
        match rest.split_first_mut() {
            Some((b'=', value)) if length > 0 => mask_value(name == b"PCI_P2PDMA", value),
            _ => {
                mask(name);
                mask(rest);
            }
        }
    } else if line.starts_with(OFF) {
        let end = line.strip_suffix(NOT_SET).unwrap_or(line).len().max(OFF.len());
        let rest = &mut line[OFF.len()..end];
        let length = name_length(rest);
        mask(&mut rest[length..]);
    } else {
        mask(line);
    }
}

fn mask_value(is_option: bool, value: &mut [u8]) {
    if matches!(&*value, b"y" | b"m" | b"n") {
        return;
    }
    let value = match value {
        _ if is_option => {
            let plain = |byte: &&u8| matches!(**byte, b' '..=b'~');
            let length = value.iter().take(MAX_VALUE).take_while(plain).count();
            &mut value[length..]
        }
        [b'"', inside @ .., b'"'] | [b'"', inside @ ..] => inside,
        _ => value,
    };
    mask(value);
}

/// The ten bytes every gzip header has.
const fn gzip_header(method: u8, flags: u8) -> [u8; 10] {
    let [first, second] = gzip::MAGIC;
    [first, second, method, flags, 0, 0, 0, 0, 0, 0xff]
}

/// The method of all gzip files.
const DEFLATE: u8 = 8;
/// The flag that a checksum of the header follows.
const HEADER_CHECKSUM: u8 = 2;
/// The flag that a file's name follows.
const NAME: u8 = 8;

/// A gzip stream without content of its own that ends with the same error.
fn damaged_like(error: &gzip::Error) -> Vec<u8> {
    let is_like = |bytes: &Vec<u8>| {
        gzip::inflate(bytes, gzip::OUTPUT_LIMIT).end.as_ref().is_err_and(|other| other == error)
    };
    let made = match *error {
        gzip::Error::Truncated { offset } if offset <= MAX_DAMAGED => cut_at(offset),
        gzip::Error::Malformed { offset, .. } if offset <= MAX_DAMAGED => {
            malformed_at(offset, is_like)
        }
        gzip::Error::TooLarge { offset, .. } if offset <= MAX_DAMAGED => endless_to(offset),
        _ => None,
    };
    // The state stays, if not the words for it.
    made.unwrap_or_else(|| {
        let mut bytes = gzip_header(DEFLATE, 0).to_vec();
        if !matches!(error, gzip::Error::Truncated { .. }) {
            bytes.resize(64, UNKNOWN_BLOCK);
        }
        bytes
    })
}

/// A block of the type that does not exist.
const UNKNOWN_BLOCK: u8 = 0b111;

/// A stream cut at `offset`.
fn cut_at(offset: usize) -> Option<Vec<u8>> {
    let header = gzip_header(DEFLATE, 0);
    header.get(..offset).map_or_else(|| headed(offset), |start| Some(start.to_vec()))
}

/// A stream that is malformed at `offset`, in the way that `is_like` accepts.
fn malformed_at(offset: usize, is_like: impl Fn(&Vec<u8>) -> bool) -> Option<Vec<u8>> {
    let unknown_block = |at: usize| Some([headed(at)?, vec![UNKNOWN_BLOCK; 16]].concat());
    let checksum = || Some([headed(offset.checked_sub(10)?)?, vec![3, 0], vec![0xff; 8]].concat());
    // A header that is none, after as many whole members as it takes.
    let header = |header: Vec<u8>| {
        let end = gzip::inflate(&header, gzip::OUTPUT_LIMIT).end;
        let Err(gzip::Error::Malformed { offset: at, .. }) = end else { return None };
        Some([empty_members(offset.checked_sub(at)?)?, header].concat())
    };
    let sum = |byte: u8| [&gzip_header(DEFLATE, HEADER_CHECKSUM)[..], &[byte; 2]].concat();
    let endless_name = || {
        let mut header = gzip_header(DEFLATE, NAME).to_vec();
        header.resize(0x1_1000, b'x');
        header
    };
    let many = || Some([many_members(offset)?, gzip::MAGIC.to_vec()].concat());
    // How far a decoder looks ahead is its own affair.
    (offset.saturating_sub(8)..=offset)
        .rev()
        .filter_map(unknown_block)
        .chain(checksum())
        .chain(header(gzip_header(0, 0).to_vec()))
        .find(&is_like)
        .or_else(|| [0, 1].into_iter().filter_map(|byte| header(sum(byte))).find(&is_like))
        .or_else(|| many().filter(&is_like))
        .or_else(|| header(endless_name()).filter(&is_like))
}

/// Whole members without content and the header of one more, so many bytes together.
fn headed(length: usize) -> Option<Vec<u8>> {
    let plain = gzip_header(DEFLATE, 0).to_vec();
    match length.checked_sub(plain.len())? {
        0 => Some(plain),
        name @ 1..=LONGEST => {
            let mut named = gzip_header(DEFLATE, NAME).to_vec();
            named.resize(named.len() + name - 1, b'x');
            named.push(0);
            Some(named)
        }
        members => Some([empty_members(members)?, plain].concat()),
    }
}

/// A whole member without content, of exactly this length.
fn empty_member(length: usize) -> Option<Vec<u8>> {
    // An empty block of fixed codes, and the checksum and length of nothing.
    const END: [u8; 10] = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    Some([headed(length.checked_sub(END.len())?)?, END.to_vec()].concat())
}

/// The shortest member.
const SHORTEST: usize = 20;
/// A name longer than this is none.
const LONGEST: usize = 60_000;

/// Whole members without content that end at `length`.
fn empty_members(length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while out.len() < length {
        let room = length - out.len();
        let size = room.min(LONGEST);
        let size = if (1..SHORTEST).contains(&(room - size)) { size - SHORTEST } else { size };
        out.extend_from_slice(&empty_member(size)?);
    }
    Some(out)
}

/// As many members as no file may have, which end at `length`.
fn many_members(length: usize) -> Option<Vec<u8>> {
    const MEMBERS: usize = 4096;
    let mut more = length.checked_sub(MEMBERS * SHORTEST)?;
    let mut out = Vec::with_capacity(length);
    for _ in 0..MEMBERS {
        let size = more.min(LONGEST);
        more -= size;
        out.extend_from_slice(&empty_member(SHORTEST + size)?);
    }
    Some(out)
}

/// A stream of zeros that is found to be too large after reading `offset` bytes of it.
fn endless_to(offset: usize) -> Option<Vec<u8>> {
    // A block with three codes for bytes, of which the shortest, a zero bit, means "258 times the last one", and one for
    // distances, a zero bit again. After its first byte come as many zeros as there is room for: 1032 for each byte.
    const HEADER: usize = 10;
    const BLOCK: [u8; 14] = [0xec, 0xc0, 0x81, 0, 0, 0, 0, 0x80, 0xa0, 0xfd, 0xa9, 0x17, 0xa9, 0];
    let zeros = |header: Vec<u8>| {
        let mut out = [header, BLOCK.to_vec()].concat();
        out.resize(out.len() + gzip::OUTPUT_LIMIT / 1032 + 1024, 0);
        out
    };
    let end = |bytes: &[u8]| match gzip::inflate(bytes, gzip::OUTPUT_LIMIT).end {
        Err(gzip::Error::TooLarge { offset, .. }) => Some(offset),
        _ => None,
    };
    let more = offset.checked_sub(end(&zeros(headed(HEADER)?))?)?;
    let made = zeros(headed(HEADER + more)?);
    (end(&made) == Some(offset)).then_some(made)
}

#[cfg(test)]
mod tests {
    use fastpath_knowledge::Release;
    use proptest::prelude::*;

    use super::*;
    use crate::witness::{Kind, State, Witness, config_witness};

    fn facts(bytes: &[u8]) -> Witness {
        config_witness("/c", Kind::BootConfig, bytes, Release::new("6.8.0-1-generic").as_ref())
    }

    fn text(original: &str) -> String {
        String::from_utf8(config(original.as_bytes())).unwrap()
    }

    /// A gzip file of one stored block.
    fn gzip_of(text: &[u8]) -> Vec<u8> {
        let mut crc = !0_u32;
        for &byte in text {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            }
        }
        let length = u16::try_from(text.len()).unwrap();
        let mut out = gzip_header(DEFLATE, 0).to_vec();
        out.push(1);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(text);
        out.extend_from_slice(&(!crc).to_le_bytes());
        out.extend_from_slice(&u32::from(length).to_le_bytes());
        out
    }

    #[test]
    fn what_is_no_configuration_is_masked_whole() {
        for (original, expected) in [
            ("root:$6$salt:19000::\n\nx y\r\n", "xxxxxxxxxxxxxxxxxxxx\n\nxxx\r\n"),
            ("PATH=/bin\0TOKEN=abc\0", "xxxxxxxxx\0xxxxxxxxx\0"),
            ("-----BEGIN KEY-----\nMIIE+/=\n", "xxxxxxxxxxxxxxxxxxx\nxxxxxxx\n"),
            ("a CONFIG_PCI=y\r\r\n", "xxxxxxxxxxxxxxx\r\n"),
            (" \n\t\n", " \n\t\n"),
            ("", ""),
        ] {
            assert_eq!(text(original), expected, "{original:?}");
        }
        assert_eq!(config(b"\xff\xfe\n"), b"xx\n");
    }

    #[test]
    fn what_a_configuration_can_have_stays() {
        let whole = "#\n# Linux/x86 6.8.12 Kernel Configuration\n#\nCONFIG_PCI=y\nCONFIG_A1_b=m\r\n\
                     CONFIG_C=n\n# CONFIG_D is not set\n";
        assert_eq!(text(whole), whole.replace("#\n", "x\n"));
        for (original, expected) in [
            ("CONFIG_HZ=1000", "CONFIG_HZ=xxxx"),
            ("CONFIG_A=\"a \\\"b\\\"\"", "CONFIG_A=\"xxxxxxx\""),
            ("CONFIG_A=\"cut", "CONFIG_A=\"xxx"),
            ("CONFIG_A=\"", "CONFIG_A=\""),
            ("CONFIG_A=", "CONFIG_A="),
            ("CONFIG_A=y ", "CONFIG_A=xx"),
            ("CONFIG_=secret", "CONFIG_xxxxxxx"),
            ("CONFIG_secret", "CONFIG_xxxxxx"),
            ("CONFIG_A-B=y", "CONFIG_xxxxx"),
            ("# CONFIG_A is not set, secret", "# CONFIG_Axxxxxxxxxxxxxxxxxxx"),
            ("# CONFIG_A secret is not set", "# CONFIG_Axxxxxxx is not set"),
            ("# CONFIG_ is not set", "# CONFIG_ is not set"),
            ("# CONFIG_A=secret", "# CONFIG_Axxxxxxx"),
            (
                "# Linux/x86 6.8 Kernel Configuration of me",
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ),
            ("CONFIG_PCI_P2PDMA=\"y\"", "CONFIG_PCI_P2PDMA=\"y\""),
            ("CONFIG_PCI_P2PDMA=y\tz", "CONFIG_PCI_P2PDMA=yxx"),
        ] {
            assert_eq!(text(original), expected, "{original:?}");
        }
        let long = format!("CONFIG_PCI_P2PDMA={}", "y".repeat(100));
        assert_eq!(text(&long), format!("CONFIG_PCI_P2PDMA={}{}", "y".repeat(40), "x".repeat(60)));
        let long = format!("CONFIG_{}=y", "A".repeat(200));
        assert_eq!(text(&long), format!("CONFIG_{}", "x".repeat(202)));
    }

    #[test]
    fn a_header_that_the_window_cuts_is_kept_as_far_as_it_was_seen() {
        let header = "# Linux/x86 6.8.12 Kernel Configuration";
        for more in ["", " of me", "\r of me"] {
            for filler in 4090..4100 {
                let start = "#".repeat(filler - header.len());
                let original = format!("{start}\n{header}{more}\nCONFIG_PCI_P2PDMA=y\n");
                let redacted = config(original.as_bytes());
                assert_eq!(facts(&redacted), facts(original.as_bytes()), "{filler} {more:?}");
                assert!(memchr::memmem::find(&redacted, b"of me").is_none());
            }
        }
    }

    /// Streams with every kind of defect a decoder finds, at places that are hard to hit.
    fn damaged_streams() -> Vec<Vec<u8>> {
        let lines = b"CONFIG_SECRET=\"secret\"\nsecret\n".repeat(100);
        let whole = gzip_of(&lines);
        let mut named = gzip_header(DEFLATE, NAME).to_vec();
        named.extend_from_slice(b"secret name");
        let mut streams = vec![
            named.clone(),
            [&named[..], &[b's'; 100_000]].concat(),
            [&whole[..], &named].concat(),
            [&gzip_header(9, 0)[..], b"secret"].concat(),
            [&gzip_header(DEFLATE, 0xff)[..], b"secret"].concat(),
            [&gzip_header(DEFLATE, HEADER_CHECKSUM)[..], b"secret"].concat(),
            [&whole[..], &gzip_header(9, 0), b"secret"].concat(),
            [&whole.repeat(40)[..], &gzip_header(9, 0), b"secret"].concat(),
            [empty_members(30).unwrap().repeat(4096), gzip::MAGIC.to_vec(), b"secret".to_vec()]
                .concat(),
            [empty_members(20).unwrap().repeat(4096), whole.clone()].concat(),
        ];
        for at in [10, 12, whole.len() - 8, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            streams.push([&damaged[..], b"secret"].concat());
        }
        for cut in [2, 3, 9, 10, 11, 200, whole.len() - 1] {
            streams.push(whole[..cut].to_vec());
        }
        streams
    }

    #[test]
    fn a_damaged_stream_is_replaced_by_one_with_the_same_error() {
        for (number, original) in damaged_streams().into_iter().enumerate() {
            let redacted = config(&original);
            assert_eq!(facts(&redacted), facts(&original), "stream {number}");
            let inflated = gzip::inflate(&redacted, gzip::OUTPUT_LIMIT);
            for bytes in [&redacted, &inflated.text] {
                assert!(memchr::memmem::find(bytes, b"secret").is_none(), "stream {number}");
            }
        }
    }

    #[test]
    fn a_stream_that_is_too_large_is_replaced_by_one_that_is() {
        // Compressed as far as it goes.
        let first = 65_200;
        for more in [0, 1, 60_001] {
            let original = endless_to(first + more).unwrap();
            let redacted = config(&original);
            let witness = facts(&redacted);
            assert_eq!(witness, facts(&original), "{more}");
            assert!(witness.detail.unwrap().contains("larger than"));
        }
    }

    #[test]
    fn a_damaged_stream_of_any_length_is_replaced_by_a_short_one() {
        let zeros = headed(20 << 20).unwrap();
        let cut = config(&zeros);
        assert!(cut.len() <= MAX_DAMAGED);
        assert_eq!(facts(&cut).state, State::Truncated);
        let damaged = config(&[zeros, vec![UNKNOWN_BLOCK; 64]].concat());
        assert!(damaged.len() <= MAX_DAMAGED);
        assert_eq!(facts(&damaged).state, State::Malformed);
    }

    fn fragments() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "(# )?CONFIG_(PCI|PCI_P2PDMA|ZONE_DEVICE|HSA_AMD_P2P|IKCONFIG|DEBUG_KERNEL|MAGIC_SYSRQ|SECRET)\
                  (=y|=m|=n|=|=q|=\"y\"|=yy| is not set| is not set |=y |=\u{20}y)",
            2 => "# Linux/x86(_64)? (6\\.8\\.12|6\\.8|6\\.12\\.0-124\\.el10|5\\.4) Kernel Configuration( |x)?",
            1 => "(# )?(CONFIG|CONFIG_|_PCI_P2PDMA=y|P2PDMA| is not set|=y|#|\"|\u{e9}|\u{0}|\u{1f})",
            1 => "[ \t]{0,3}",
            1 => "[ -~]{0,30}",
        ]
    }

    fn soups() -> impl Strategy<Value = Vec<u8>> {
        let end = prop_oneof![6 => Just("\n"), 2 => Just("\r\n"), 1 => Just(""), 1 => Just("\r")];
        let lines = prop::collection::vec((fragments(), end), 0..14);
        let filler = prop_oneof![6 => Just(0_usize), 1 => 3900..4100_usize];
        (filler, lines).prop_map(|(filler, lines)| {
            let mut text = "#".repeat(filler);
            if filler > 0 {
                text.push('\n');
            }
            for (line, end) in lines {
                text.push_str(&line);
                text.push_str(end);
            }
            text.into_bytes()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4000, ..ProptestConfig::default() })]

        #[test]
        fn the_facts_are_the_same(soup in soups(), packed in any::<bool>()) {
            let original = if packed { gzip_of(&soup) } else { soup };
            let redacted = config(&original);
            let (before, after) = (facts(&original), facts(&redacted));
            // Of the option's own line only so much is shown.
            let plain = before.text.as_deref().is_none_or(|text| {
                text.len() <= "CONFIG_PCI_P2PDMA=".len() + MAX_VALUE && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            });
            let text = if plain { before.text.clone() } else { after.text.clone() };
            prop_assert_eq!(&after, &Witness { text, ..before });
            prop_assert_eq!(config(&redacted), redacted);
        }

    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_facts_of_a_damaged_stream_are_the_same(
            soup in soups(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<bool>(),
        ) {
            let mut stream = gzip_of(&soup);
            let at = at.index(stream.len());
            if cut { stream.truncate(at) } else { stream[at] = byte }
            let redacted = config(&stream);
            let (before, after) = (facts(&stream), facts(&redacted));
            prop_assert_eq!(after.state, before.state);
            if gzip::is_gzip(&stream) {
                prop_assert_eq!(after.detail, before.detail);
            }
        }

        #[test]
        fn any_bytes_are_redacted_once(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let redacted = config(&bytes);
            prop_assert_eq!(facts(&redacted).state, facts(&bytes).state);
            prop_assert_eq!(config(&redacted), redacted);
        }
    }
}
