//! The clear-signed form: a text with its signature behind it in one file.
//!
//! Taken apart here, not by the library: what is parsed later must be exactly what was signed, and a file with
//! anything before, between or behind the two parts is refused, as apt does. Form: RFC 9580, section 7.

/// The parts of a clear-signed file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    /// The text with `\n` line ends, dash escapes undone and blanks at line ends removed: as signed, but for the line ends.
    pub(super) text: String,
    /// The armored signature.
    pub(super) signature: &'a str,
}

const BEGIN: &str = "-----BEGIN PGP SIGNED MESSAGE-----";
const SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----";
const END: &str = "-----END PGP SIGNATURE-----";

pub(super) fn split(content: &str) -> Result<Parts<'_>, String> {
    let mut lines = content.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != BEGIN {
        let start: String = first.trim_end().chars().take(60).collect();
        return Err(format!("expected `{BEGIN}`, found `{start}`"));
    }
    for line in lines.by_ref() {
        match line.trim_end() {
            "" => break,
            header if header.starts_with("Hash:") => {}
            other => return Err(format!("expected `Hash:`, found `{other}`")),
        }
    }
    let mut text = String::with_capacity(content.len());
    let start = loop {
        let line = lines.next().ok_or_else(|| format!("expected `{SIGNATURE}`, found the end"))?;
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let bare = bare.strip_suffix('\r').unwrap_or(bare);
        if bare.trim_end() == SIGNATURE {
            let rest: usize = lines.clone().map(str::len).sum();
            break content.len() - rest - line.len();
        }
        let bare = match bare.strip_prefix("- ") {
            Some(escaped) => escaped,
            None if bare.starts_with('-') => {
                return Err(format!("expected an escaped dash, found `{bare}`"));
            }
            None => bare,
        };
        text.push_str(bare.trim_end_matches([' ', '\t']));
        text.push('\n');
    };
    let signature = &content[start..];
    let end = signature.find(END).ok_or_else(|| format!("expected `{END}`, found the end"))?;
    let behind = &signature[end + END.len()..];
    if !behind.trim().is_empty() {
        return Err("expected nothing behind the signature, found more".to_owned());
    }
    Ok(Parts { text, signature })
}

impl Parts<'_> {
    /// The bytes that were signed: `\r\n` between lines, none behind the last.
    pub(super) fn signed(&self) -> Vec<u8> {
        let text = self.text.strip_suffix('\n').unwrap_or(&self.text);
        text.replace('\n', "\r\n").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nA: b \t\n- -c\n\n-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n";

    #[test]
    fn a_text_and_its_signature() {
        let parts = split(SOUND).unwrap();
        assert_eq!(parts.text, "A: b\n-c\n\n");
        assert_eq!(parts.signed(), b"A: b\r\n-c\r\n");
        assert!(parts.signature.starts_with("-----BEGIN PGP SIGNATURE-----\n\nx\n"));
        let windows = SOUND.replace('\n', "\r\n");
        assert_eq!(split(&windows).unwrap().text, parts.text);
    }

    #[test]
    fn anything_else_is_refused() {
        for (from, to, expected) in [
            ("-----BEGIN PGP SIGNED", "x\n-----BEGIN PGP SIGNED", "found `x`"),
            ("Hash: SHA512", "Evil: yes", "found `Evil: yes`"),
            ("- -c", "-c", "found `-c`"),
            ("-----BEGIN PGP SIGNATURE-----", "", "found `-----END PGP SIGNATURE-----`"),
            ("-----END PGP SIGNATURE-----", "", "found the end"),
            ("-----END PGP SIGNATURE-----", "-----END PGP SIGNATURE-----\nmore", "found more"),
        ] {
            let error = split(&SOUND.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(expected), "{from}: {error}");
        }
        assert!(split("").is_err());
    }

    proptest::proptest! {
        #[test]
        fn never_panics(content: String) {
            let _ = split(&content);
            let _ = split(&format!("{BEGIN}\n\n{content}\n{SIGNATURE}\n{END}"));
        }
    }
}
