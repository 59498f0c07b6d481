//! What must hold for every text: no panic, and the same answers as a reader that goes line by line.

use fastpath_kconfig::{SYMBOLS, Setting, Text, Value, gzip};
use proptest::prelude::*;

/// What kconfig's reader does, written down as plainly as possible: every line, one after the other. The settings of
/// `name`: offset and value, in order.
fn naive(bytes: &[u8], name: &str) -> Vec<(usize, Value)> {
    let on = format!("CONFIG_{name}=");
    let off = format!("# CONFIG_{name} is not set");
    let mut found = Vec::new();
    let mut offset = 0;
    for line in bytes.split(|&byte| byte == b'\n') {
        let content = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(value) = content.strip_prefix(on.as_bytes()) {
            let value = match value {
                b"y" => Value::Y,
                b"m" => Value::M,
                b"n" => Value::N,
                _ => Value::Other,
            };
            found.push((offset, value));
        } else if content == off.as_bytes() {
            found.push((offset, Value::NotSet));
        }
        offset += line.len() + 1;
    }
    found
}

/// What `naive` found, in the form of a setting.
fn naive_setting(bytes: &[u8], name: &str) -> Setting {
    let found = naive(bytes, name);
    let (offset, value) = found.last().copied().unwrap_or((0, Value::Absent));
    Setting {
        value,
        offset,
        lines: u32::try_from(found.len()).expect("few lines"),
        differs: found.iter().any(|(_, other)| *other != value),
    }
}

/// Everything there is to call, and the answers that must agree.
fn agrees(bytes: &[u8]) {
    let text = Text::new(bytes);
    let scan = text.scan();
    for symbol in SYMBOLS {
        let expected = naive_setting(bytes, symbol.name());
        assert_eq!(text.find(symbol), expected, "find {}", symbol.name());
        assert_eq!(scan.get(symbol), expected, "scan {}", symbol.name());
        assert_eq!(text.value(symbol.name()), expected.value, "value {}", symbol.name());
        let line = bytes[..expected.offset].split(|&byte| byte == b'\n').count();
        assert_eq!(text.line_number(expected.offset) as usize, line);
        let line = text.line_at(expected.offset);
        assert!(!line.contains(&b'\n'));
        if expected.lines > 0 {
            assert!(bytes[expected.offset..].starts_with(line));
        }
    }
    let has = |name: &str| !naive(bytes, name).is_empty();
    assert_eq!(text.is_whole(), has("PCI") && (has("DEBUG_KERNEL") || has("MAGIC_SYSRQ")));
    let _ = text.check();
    if let Some(header) = text.header() {
        assert!(header.arch.bytes().chain(header.version.bytes()).all(|b| b.is_ascii_graphic()));
    }
}

#[derive(Clone, Debug)]
enum Written {
    Tristate(Value),
    Text(String),
    Number(i64),
    Hex(u32),
}

/// One setting as kconfig prints it.
fn print(name: &str, value: &Written) -> String {
    match value {
        Written::Tristate(Value::NotSet) => format!("# CONFIG_{name} is not set"),
        Written::Tristate(value) => format!("CONFIG_{name}={value}"),
        Written::Text(text) => {
            format!("CONFIG_{name}=\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        Written::Number(number) => format!("CONFIG_{name}={number}"),
        Written::Hex(number) => format!("CONFIG_{name}={number:#x}"),
    }
}

fn written() -> impl Strategy<Value = Written> {
    prop_oneof![
        prop::sample::select(vec![Value::Y, Value::M, Value::N, Value::NotSet])
            .prop_map(Written::Tristate),
        // Strings hold no line end; the rest may be anything, decoys as well.
        prop_oneof![
            "[^\r\n]{0,20}",
            Just("CONFIG_PCI_P2PDMA=y".to_owned()),
            Just("# CONFIG_ZONE_DEVICE is not set".to_owned()),
        ]
        .prop_map(Written::Text),
        any::<i64>().prop_map(Written::Number),
        any::<u32>().prop_map(Written::Hex),
    ]
}

/// Names from a small set, so that duplicates occur, and of few letters, so that names overlap one another.
fn name() -> impl Strategy<Value = String> {
    let known: Vec<String> = SYMBOLS.iter().map(|symbol| symbol.name().to_owned()).collect();
    prop_oneof![
        4 => prop::sample::select(known),
        3 => "[A-Z0-9_]{1,12}",
        2 => "[CONFIG_]{1,9}",
        2 => "[PCI_2DMA]{1,12}",
        1 => Just("PCI".to_owned()),
        1 => Just("DEBUG_KERNEL".to_owned()),
    ]
}

/// Pieces that real lines are made of, whole and cut, to be put together at random.
fn fragment() -> impl Strategy<Value = &'static [u8]> {
    const FRAGMENTS: [&[u8]; 36] = [
        b"CONFIG_",
        b"# CONFIG_",
        b"#CONFIG_",
        b"# ",
        b"#",
        b"\n",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b"=",
        b"=y",
        b"=m",
        b"=n",
        b"y",
        b" is not set",
        b" is not set ",
        b" is not",
        b"PCI_",
        b"P2PDMA",
        b"PCI_P2PDMA",
        b"HSA_AMD_",
        b"HSA_AMD_P2P",
        b"P2P",
        b"DMA",
        b"ZONE_",
        b"ZONE_DEVICE",
        b"DMABUF_",
        b"MOVE_NOTIFY",
        b"DMABUF_MOVE_NOTIFY",
        b"IK",
        b"IKCONFIG",
        b"_",
        b"\"",
        b"\xff",
        b"\0",
    ];
    prop::sample::select(FRAGMENTS.to_vec())
}

/// Whole lines and pieces, mixed: whole ones alone would seldom be near one another, pieces alone seldom right.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let line =
        (name(), written()).prop_map(|(name, value)| print(&name, &value).into_bytes()).boxed();
    let piece = prop_oneof![
        6 => fragment().prop_map(<[u8]>::to_vec),
        1 => line.clone(),
        2 => line.prop_map(|mut line| {
            line.insert(0, b'\n');
            line.push(b'\n');
            line
        }),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    // A failure becomes a test named after its cause instead of a file of seeds. `PROPTEST_CASES` asks for more cases.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_as_line_by_line(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        agrees(&bytes);
    }

    #[test]
    fn soups_of_fragments_are_read_as_line_by_line(bytes in soup()) {
        agrees(&bytes);
    }

    #[test]
    fn any_offset_is_in_some_line(bytes in soup(), offset in any::<usize>(), near in 0_usize..400) {
        let text = Text::new(&bytes);
        for offset in [offset, near] {
            prop_assert!(text.line_number(offset) >= 1);
            prop_assert!(!text.line_at(offset).contains(&b'\n'));
        }
    }

    #[test]
    fn any_name_may_be_asked_for(bytes in soup(), name in ".{0,20}") {
        let _ = Text::new(&bytes).value(&name);
    }

    #[test]
    fn what_kconfig_prints_is_read_back(
        settings in prop::collection::vec((name(), written()), 0..40),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
        last_line_end in any::<bool>(),
    ) {
        let lines: Vec<String> =
            settings.iter().map(|(name, value)| print(name, value)).collect();
        let mut text = lines.join(line_end);
        if last_line_end {
            text.push_str(line_end);
        }
        for (name, _) in &settings {
            // The last one of the name is what was printed last.
            let last = settings.iter().rev().find(|(other, _)| other == name);
            let expected = match last {
                Some((_, Written::Tristate(value))) => *value,
                _ => Value::Other,
            };
            prop_assert_eq!(Text::new(text.as_bytes()).value(name), expected, "{}", name);
        }
        agrees(text.as_bytes());
        let is_sound = Text::new(text.as_bytes()).check().is_ok();
        prop_assert_eq!(is_sound, !settings.is_empty() && !text.contains('\0'));
    }

    #[test]
    fn any_bytes_inflate_to_something(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        limit in 0_usize..1000,
    ) {
        let with_magic = [&gzip::MAGIC[..], &[8, 0], &bytes].concat();
        for input in [&bytes, &with_magic] {
            let inflated = gzip::inflate(input, limit);
            prop_assert!(inflated.text.len() <= limit);
        }
    }
}
