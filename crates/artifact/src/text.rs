//! Whether a text is a kernel's configuration.

use fastpath_kconfig::Text;

/// With fewer lines it is taken for something else, unless it has the header.
const FEW: usize = 20;

/// Whether these first bytes can belong to a text at all.
pub(crate) fn is_text(head: &[u8]) -> bool {
    !head.is_empty() && memchr::memchr(0, head).is_none()
}

/// Whether a sound text looks like a configuration: it has the header kconfig writes, or next to nothing but lines for
/// symbols. `few` says whether a handful of those is enough, as in a file that someone asks about by name; a script
/// that sets `CONFIG_X` is none.
pub(crate) fn is_config(bytes: &[u8], few: bool) -> bool {
    let text = Text::new(bytes);
    if text.check().is_err() {
        return false;
    }
    if text.header().is_some() {
        return true;
    }
    let (mut symbols, mut others) = (0, 0);
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = line.trim_ascii();
        let off = line.starts_with(b"# CONFIG_") && line.ends_with(b" is not set");
        if off || (line.starts_with(b"CONFIG_") && line.contains(&b'=')) {
            symbols += 1;
        } else if !line.is_empty() && !line.starts_with(b"#") {
            others += 1;
        }
    }
    let enough = if few { 1 } else { FEW };
    symbols >= enough && others * 10 <= symbols
}

#[cfg(test)]
mod tests {
    use super::is_config;

    #[test]
    fn a_header_or_many_symbols_make_a_configuration() {
        let header = b"#\n# Linux/x86 6.1.0 Kernel Configuration\n#\nCONFIG_X=y\n";
        assert!(is_config(header, false));
        let many = "CONFIG_A=y\n# CONFIG_B is not set\n".repeat(10);
        assert!(is_config(many.as_bytes(), false));
        assert!(!is_config(b"CONFIG_A=y\n", false));
        assert!(is_config(b"CONFIG_A=y\n", true));
    }

    #[test]
    fn a_script_is_none() {
        let script = b"#!/bin/sh\nCONFIG_FILE=/etc/x\nCONFIG_DIR=/etc\n. $CONFIG_FILE\necho done\n";
        assert!(!is_config(script, true));
        assert!(!is_config(script, false));
        assert!(!is_config(b"", true));
        assert!(!is_config(b"CONFIG_A=y\n\0", true));
    }
}
