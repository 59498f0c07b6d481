//! Which lines set a symbol, what they say, and what only looks like such a line.

use fastpath_kconfig::{Defect, SYMBOLS, Setting, Symbol, Text, Value};

/// The setting of the option, found both ways; they must agree.
fn option(bytes: &[u8]) -> Setting {
    let text = Text::new(bytes);
    let setting = text.find(Symbol::PciP2pdma);
    assert_eq!(text.scan().get(Symbol::PciP2pdma), setting, "scan and find differ");
    assert_eq!(text.value("PCI_P2PDMA"), setting.value, "value and find differ");
    setting
}

fn value(bytes: impl AsRef<[u8]>) -> Value {
    option(bytes.as_ref()).value
}

#[test]
fn every_form_of_a_value() {
    for (line, expected) in [
        ("CONFIG_PCI_P2PDMA=y", Value::Y),
        ("CONFIG_PCI_P2PDMA=m", Value::M),
        ("CONFIG_PCI_P2PDMA=n", Value::N),
        ("# CONFIG_PCI_P2PDMA is not set", Value::NotSet),
        ("", Value::Absent),
        ("CONFIG_PCI_P2PDMA=", Value::Other),
        ("CONFIG_PCI_P2PDMA=\"y\"", Value::Other),
        ("CONFIG_PCI_P2PDMA=\"a \\\" \\\\ string\"", Value::Other),
        ("CONFIG_PCI_P2PDMA=1", Value::Other),
        ("CONFIG_PCI_P2PDMA=-1", Value::Other),
        ("CONFIG_PCI_P2PDMA=0x10", Value::Other),
        ("CONFIG_PCI_P2PDMA=yes", Value::Other),
        ("CONFIG_PCI_P2PDMA=Y", Value::Other),
        ("CONFIG_PCI_P2PDMA=y ", Value::Other),
        ("CONFIG_PCI_P2PDMA==y", Value::Other),
        ("CONFIG_PCI_P2PDMA= y", Value::Other),
    ] {
        for (before, after) in
            [("", ""), ("", "\n"), ("", "\r\n"), ("CONFIG_A=y\n", "\nCONFIG_Z=y\n")]
        {
            let text = format!("{before}{line}{after}");
            assert_eq!(value(&text), expected, "{text:?}");
        }
    }
}

#[test]
fn words_for_output() {
    let words = [Value::Y, Value::M, Value::N, Value::NotSet, Value::Absent, Value::Other];
    assert_eq!(words.map(Value::as_str), ["y", "m", "n", "not set", "absent", "other"]);
    assert_eq!(Value::NotSet.to_string(), "not set");
}

#[test]
fn the_last_line_wins_whichever_it_is() {
    let y = "CONFIG_PCI_P2PDMA=y\n";
    let off = "# CONFIG_PCI_P2PDMA is not set\n";
    let setting = option(format!("{y}{off}").as_bytes());
    assert_eq!((setting.value, setting.lines, setting.differs), (Value::NotSet, 2, true));
    assert_eq!(setting.offset, y.len());
    let setting = option(format!("{off}{y}").as_bytes());
    assert_eq!((setting.value, setting.lines, setting.differs), (Value::Y, 2, true));
    assert_eq!(setting.offset, off.len());
    let setting = option(format!("{y}{y}").as_bytes());
    assert_eq!((setting.value, setting.lines, setting.differs), (Value::Y, 2, false));
}

#[test]
fn differing_lines_stay_differing_when_the_last_two_agree() {
    let setting = option(b"CONFIG_PCI_P2PDMA=m\nCONFIG_PCI_P2PDMA=y\nCONFIG_PCI_P2PDMA=y\n");
    assert_eq!((setting.value, setting.lines, setting.differs), (Value::Y, 3, true));
}

#[test]
fn carriage_returns_before_line_ends_do_not_count() {
    assert_eq!(value("CONFIG_A=y\r\nCONFIG_PCI_P2PDMA=y\r\nCONFIG_B=y\r\n"), Value::Y);
    assert_eq!(value("# CONFIG_PCI_P2PDMA is not set\r\n"), Value::NotSet);
    assert_eq!(value("# CONFIG_PCI_P2PDMA is not set\r"), Value::NotSet);
    // kconfig's reader takes off one, no more; a carriage return alone ends no line.
    assert_eq!(value("CONFIG_PCI_P2PDMA=y\r\r\n"), Value::Other);
    assert_eq!(value("CONFIG_A=y\rCONFIG_PCI_P2PDMA=y\n"), Value::Absent);
}

#[test]
fn a_last_line_needs_no_line_end() {
    assert_eq!(value("CONFIG_A=y\nCONFIG_PCI_P2PDMA=y"), Value::Y);
    assert_eq!(value("CONFIG_A=y\n# CONFIG_PCI_P2PDMA is not set"), Value::NotSet);
}

#[test]
fn a_line_cut_short_is_no_answer() {
    let whole = "# CONFIG_PCI_P2PDMA is not set";
    for end in 0..whole.len() {
        assert_eq!(value(&whole[..end]), Value::Absent, "{:?}", &whole[..end]);
    }
    let whole = "CONFIG_PCI_P2PDMA=";
    for end in 0..whole.len() {
        assert_eq!(value(&whole[..end]), Value::Absent, "{:?}", &whole[..end]);
    }
    assert_eq!(value(whole), Value::Other);
}

#[test]
fn look_alikes_set_nothing() {
    for line in [
        "CONFIG_PCI_P2PDMA_X=y",
        "CONFIG_PCI_P2PDMAX=y",
        "XCONFIG_PCI_P2PDMA=y",
        "CONFIG_XPCI_P2PDMA=y",
        "CONFIG_X_PCI_P2PDMA=y",
        "CONFIG_CONFIG_PCI_P2PDMA=y",
        " CONFIG_PCI_P2PDMA=y",
        "\tCONFIG_PCI_P2PDMA=y",
        "CONFIG_PCI_P2PDMA =y",
        "CONFIG_PCI_P2PDMA",
        "PCI_P2PDMA=y",
        "config_pci_p2pdma=y",
        "CONFIG_pci_p2pdma=y",
        "#CONFIG_PCI_P2PDMA is not set",
        "#  CONFIG_PCI_P2PDMA is not set",
        "#\tCONFIG_PCI_P2PDMA is not set",
        " # CONFIG_PCI_P2PDMA is not set",
        "## CONFIG_PCI_P2PDMA is not set",
        "# CONFIG_PCI_P2PDMA=y",
        "#CONFIG_PCI_P2PDMA=y",
        "# CONFIG_PCI_P2PDMA is not set ",
        "# CONFIG_PCI_P2PDMA is not set.",
        "# CONFIG_PCI_P2PDMA is not  set",
        "# CONFIG_PCI_P2PDMA  is not set",
        "# CONFIG_PCI_P2PDMA is set",
        "# CONFIG_PCI_P2PDMA is not setting anything",
        "# CONFIG_PCI_P2PDMA_X is not set",
        "# CONFIG_X_PCI_P2PDMA is not set",
        "CONFIG_PCI_P2PDMA is not set",
        "CONFIG_CMDLINE=\"CONFIG_PCI_P2PDMA=y\"",
        "CONFIG_CMDLINE=\"# CONFIG_PCI_P2PDMA is not set\"",
        "# The option CONFIG_PCI_P2PDMA=y is needed",
        "# end of CONFIG_PCI_P2PDMA=y",
        "// CONFIG_PCI_P2PDMA=y",
        "CONFIG_PCI\u{301}_P2PDMA=y",
    ] {
        assert_eq!(value(line), Value::Absent, "{line:?}");
        let sandwich = format!("CONFIG_PCI_P2PDMA=y\n{line}\n");
        let setting = option(sandwich.as_bytes());
        assert_eq!((setting.value, setting.lines), (Value::Y, 1), "{line:?}");
        let sandwich = format!("{line}\n# CONFIG_PCI_P2PDMA is not set\n");
        let setting = option(sandwich.as_bytes());
        assert_eq!((setting.value, setting.lines), (Value::NotSet, 1), "{line:?}");
    }
}

#[test]
fn bytes_above_127_pass() {
    let text = b"CONFIG_NAME=\"caf\xe9 \xff\xfe\"\nCONFIG_PCI_P2PDMA=y\nCONFIG_X=\"\xf0\x9f\"";
    assert_eq!(value(text), Value::Y);
    assert_eq!(Text::new(text).check(), Ok(()));
    assert_eq!(value(b"\xef\xbb\xbfCONFIG_PCI_P2PDMA=y\n"), Value::Absent, "a byte order mark");
    assert_eq!(value(b"CONFIG_PCI_P2PDMA=\xff\n"), Value::Other);
}

#[test]
fn texts_that_decide_nothing() {
    let check = |bytes: &[u8]| Text::new(bytes).check();
    for blank in [&b""[..], b" ", b"\n\n", b" \t\r\n"] {
        assert_eq!(check(blank), Err(Defect::Empty));
        assert_eq!(value(blank), Value::Absent);
        assert!(!Text::new(blank).is_whole());
    }
    assert_eq!(check(b"CONFIG_PCI_P2PDMA=y\n\0"), Err(Defect::Nul { offset: 20 }));
    assert_eq!(check(&[0; 4096]), Err(Defect::Nul { offset: 0 }));
    let page = b"<html>404, see CONFIG_PCI_P2PDMA=y</html>\n";
    assert_eq!(check(page), Err(Defect::NoSymbols { len: page.len() }));
    assert_eq!(check(b"CONFIG\n"), Err(Defect::NoSymbols { len: 7 }));
    assert_eq!(check(b"CONFIG_A=y"), Ok(()));
    assert_eq!(check(b"# CONFIG_A is not set"), Ok(()));
    assert_eq!(check(b"words\n# CONFIG_A is not set"), Ok(()));
    assert_eq!(
        Defect::NoSymbols { len: 7 }.to_string(),
        "not a kernel configuration: no CONFIG_ line in 7 bytes"
    );
}

/// A search backwards for the start of each candidate's line would take minutes here.
#[test]
fn one_long_line_of_candidates_takes_linear_time() {
    let mut long = b"X".to_vec();
    long.extend(b"CONFIG_".repeat(1 << 19));
    assert_eq!(Text::new(&long).check(), Err(Defect::NoSymbols { len: long.len() }));
    long.clear();
    long.extend(b"# CONFIG_PCI_P2PDMA is not set".repeat(1 << 17));
    let setting = option(&long);
    assert_eq!((setting.value, setting.lines), (Value::Absent, 0));
    long.clear();
    long.extend(b"CONFIG_PCI_P2PDMA=".repeat(1 << 17));
    let setting = option(&long);
    assert_eq!((setting.value, setting.lines), (Value::Other, 1));
}

#[test]
fn no_needle_hides_another() {
    let text = b"CONFIG_HSA_AMD_P2PDMA=m\nCONFIG_HSA_AMD_P2P=y\nCONFIG_PCI_P2PDMA=y\n\
        CONFIG_ZONE_DEVICE=y\nCONFIG_DMABUF_MOVE_NOTIFY=y\nCONFIG_IKCONFIG=m\n\
        CONFIG_IKCONFIG_PROC=y\n# CONFIG_ZONE_DEVICE_X is not set\n";
    let scan = Text::new(text).scan();
    let values = SYMBOLS.map(|symbol| scan.get(symbol).value);
    assert_eq!(values, [Value::Y, Value::Y, Value::Y, Value::Y, Value::M]);
    assert_eq!(SYMBOLS.map(|symbol| scan.get(symbol).lines), [1; 5]);
    for symbol in SYMBOLS {
        assert_eq!(Text::new(text).find(symbol), scan.get(symbol), "{}", symbol.name());
    }
}

/// `G_G` stands in `CONFIG_G_G` twice, and a search for matches that do not overlap sees the first one only.
#[test]
fn a_name_that_overlaps_its_own_prefix_is_found() {
    for name in ["G_G", "CONFIG_C", "_", "__", "FIG_FIG", "G", "CONFIG_CONFIG_CONFIG_"] {
        let text = format!("# CONFIG_A is not set\nCONFIG_{name}=y\nCONFIG_Z=m\n");
        assert_eq!(Text::new(text.as_bytes()).value(name), Value::Y, "{name}");
        let text = format!("CONFIG_A=y\n# CONFIG_{name} is not set\n");
        assert_eq!(Text::new(text.as_bytes()).value(name), Value::NotSet, "{name}");
    }
}

#[test]
fn every_symbol_is_found_in_every_order() {
    let line = |symbol: Symbol, off: bool| {
        let name = symbol.name();
        if off { format!("# CONFIG_{name} is not set\n") } else { format!("CONFIG_{name}=y\n") }
    };
    for rotation in 0..SYMBOLS.len() {
        for off in [false, true] {
            let mut order = SYMBOLS;
            order.rotate_left(rotation);
            let text: String = order.iter().map(|&symbol| line(symbol, off)).collect();
            let scan = Text::new(text.as_bytes()).scan();
            for symbol in SYMBOLS {
                let expected = if off { Value::NotSet } else { Value::Y };
                let setting = scan.get(symbol);
                assert_eq!((setting.value, setting.lines), (expected, 1));
                assert_eq!(Text::new(text.as_bytes()).find(symbol), setting);
            }
        }
    }
}

fn header(bytes: impl AsRef<[u8]>) -> Option<(String, String)> {
    let header = Text::new(bytes.as_ref()).header()?;
    Some((header.arch.to_owned(), header.version.to_owned()))
}

fn pair(arch: &str, version: &str) -> (String, String) {
    (arch.to_owned(), version.to_owned())
}

#[test]
fn headers_in_their_forms() {
    let block = "#\n# Automatically generated file; DO NOT EDIT.\n";
    let line = "# Linux/x86 6.8.12 Kernel Configuration\n";
    assert_eq!(header(format!("{block}{line}#\nCONFIG_A=y\n")), Some(pair("x86", "6.8.12")));
    assert_eq!(
        header("# Linux/x86_64 5.14.0-687.49.1.el9_8.x86_64 Kernel Configuration"),
        Some(pair("x86_64", "5.14.0-687.49.1.el9_8.x86_64"))
    );
    assert_eq!(
        header("# Linux/arm64 6.12.58 Kernel Configuration\r\n"),
        Some(pair("arm64", "6.12.58"))
    );
    let wrapper = "# Boot Config\n\nCommand used: `cat /boot/config-6.8.12-4-pve`\n```\n";
    assert_eq!(
        header(format!("{wrapper}{block}{line}#\nCONFIG_A=y\n")),
        Some(pair("x86", "6.8.12"))
    );
}

#[test]
fn what_is_no_header() {
    let line = "# Linux/x86 6.8.12 Kernel Configuration\n";
    assert_eq!(header(""), None);
    assert_eq!(header("CONFIG_A=y\n"), None);
    assert_eq!(header(format!("CONFIG_A=y\n{line}")), None, "after the first symbol");
    assert_eq!(header(format!("# CONFIG_A is not set\n{line}")), None, "after the first symbol");
    assert_eq!(header(format!("{}{line}", "#\n".repeat(4096))), None, "too far down");
    for line in [
        "# Linux kernel version: 2.6.32",
        "# Linux/x86 Kernel Configuration",
        "# Linux/ 6.8.12 Kernel Configuration",
        "# Linux/x86  6.8.12 Kernel Configuration",
        "# Linux/x86 6.8 12 Kernel Configuration",
        "# Linux/x86 6.8.12 Kernel Configuration ",
        " # Linux/x86 6.8.12 Kernel Configuration",
        "#Linux/x86 6.8.12 Kernel Configuration",
        "# Linux/x86 6.8.12 Kernel Config",
        "# Linux/x86 \u{1b}[31m6.8 Kernel Configuration",
        "# Linux/x86 6.8.é Kernel Configuration",
    ] {
        assert_eq!(header(line), None, "{line:?}");
    }
}

#[test]
fn a_damaged_header_does_not_hide_the_one_after_it() {
    let text =
        b"# Linux/x86 \xff\xfe Kernel Configuration\n# Linux/x86 6.8.12 Kernel Configuration\n";
    assert_eq!(header(text), Some(pair("x86", "6.8.12")));
}

#[test]
fn a_text_is_whole_with_its_first_and_last_menus() {
    let is_whole = |text: &str| Text::new(text.as_bytes()).is_whole();
    assert!(is_whole("CONFIG_PCI=y\nCONFIG_DEBUG_KERNEL=y\n"));
    assert!(is_whole("CONFIG_PCI=y\nCONFIG_MAGIC_SYSRQ=y\n"));
    assert!(is_whole("# CONFIG_PCI is not set\n# CONFIG_DEBUG_KERNEL is not set\n"));
    assert!(is_whole("CONFIG_PCI=y\r\n# CONFIG_MAGIC_SYSRQ is not set\r\n"));
    assert!(!is_whole("CONFIG_PCI=y\n"));
    assert!(!is_whole("CONFIG_DEBUG_KERNEL=y\nCONFIG_MAGIC_SYSRQ=y\n"));
    assert!(!is_whole("CONFIG_PCI=y\n# CONFIG_DEBUG_KERNEL is not se"));
    assert!(!is_whole("CONFIG_PCIE=y\nCONFIG_DEBUG_KERNEL_DC=y\nCONFIG_MAGIC_SYSRQ_SERIAL=y\n"));
    assert!(!is_whole("# CONFIG_PCI=y\n# CONFIG_DEBUG_KERNEL=y\n"));
}

#[test]
fn offsets_lines_and_line_numbers() {
    let bytes = b"first\r\n\nCONFIG_PCI_P2PDMA=y\r\nlast";
    let text = Text::new(bytes);
    let setting = option(bytes);
    assert_eq!(setting.offset, 8);
    assert_eq!(text.line_number(setting.offset), 3);
    assert_eq!(text.line_at(setting.offset), b"CONFIG_PCI_P2PDMA=y");
    assert_eq!(text.line_at(setting.offset + 10), b"CONFIG_PCI_P2PDMA=y");
    assert_eq!(text.line_number(0), 1);
    assert_eq!(text.line_at(0), b"first");
    assert_eq!(text.line_at(7), b"");
    assert_eq!(text.line_number(usize::MAX), 4);
    assert_eq!(text.line_at(usize::MAX), b"last");
    assert_eq!(Text::new(b"").line_number(0), 1);
    assert_eq!(Text::new(b"").line_at(0), b"");
    assert_eq!(Text::new(b"one\n").line_at(4), b"");
    assert_eq!(Text::new(b"one\n").line_number(4), 2);
    let off = b"CONFIG_A=y\n# CONFIG_PCI_P2PDMA is not set\n";
    assert_eq!(option(off).offset, 11, "the line starts at its `#`");
}
