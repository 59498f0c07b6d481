//! Configuration texts: nothing panics, and every answer is that of a reader that goes line by line.

#![no_main]

use fastpath_host::{Kind, State, config_witness};
use fastpath_kconfig::{SYMBOLS, Symbol, Text, Value};
use fastpath_knowledge::Release;
use libfuzzer_sys::fuzz_target;

/// The settings of a symbol, one line after the other.
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

fuzz_target!(|bytes: &[u8]| {
    let text = Text::new(bytes);
    let scan = text.scan();
    for symbol in SYMBOLS {
        let lines = naive(bytes, symbol.name());
        let (offset, value) = lines.last().copied().unwrap_or((0, Value::Absent));
        let setting = text.find(symbol);
        assert_eq!((setting.offset, setting.value), (offset, value));
        assert_eq!(setting.lines as usize, lines.len());
        assert_eq!(setting, scan.get(symbol));
        assert_eq!(text.value(symbol.name()), value);
        assert!(text.line_number(offset) >= 1);
        assert!(bytes[offset..].starts_with(text.line_at(offset)) || setting.lines == 0);
    }
    let has = |name: &str| !naive(bytes, name).is_empty();
    let is_whole = has("PCI") && (has("DEBUG_KERNEL") || has("MAGIC_SYSRQ"));
    assert_eq!(text.is_whole(), is_whole);
    let is_sound = text.check().is_ok();
    let header = text.header();

    // The first bytes also name a symbol to ask for.
    let name = String::from_utf8_lossy(&bytes[..bytes.len().min(8)]);
    let _ = text.value(&name);

    let release = Release::new("6.8.0-142-generic");
    for release in [None, release.as_ref()] {
        let witness = config_witness("/boot/config", Kind::BootConfig, bytes, release);
        if bytes.starts_with(&[0x1f, 0x8b]) {
            continue;
        }
        let option = scan.get(Symbol::PciP2pdma);
        match witness.state {
            State::Y => assert_eq!(option.value, Value::Y),
            State::M => assert_eq!(option.value, Value::M),
            State::N => assert_eq!(option.value, Value::N),
            State::NotSet => assert_eq!(option.value, Value::NotSet),
            State::Absent => assert!(option.value == Value::Absent && is_whole),
            // An option's line that the text ends in has no value yet.
            State::Truncated => match option.value {
                Value::Absent => assert!(!is_whole),
                value => assert_eq!(value, Value::Other),
            },
            State::OtherKernel => assert!(header.is_some() && release.is_some()),
            State::Empty => assert!(bytes.iter().all(u8::is_ascii_whitespace)),
            State::Malformed => assert!(!is_sound || option.value == Value::Other),
            State::Missing | State::Unreadable => unreachable!("the bytes are there"),
        }
    }
});
