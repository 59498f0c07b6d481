//! Taking identities out of text: machine ids, file system UUIDs and the like.

/// Replaces every hexadecimal digit of a machine id (32 digits in a row) or UUID (8-4-4-4-12) by `0`, so that texts
/// that named one thing still do, and nobody learns which.
pub fn mask_ids(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = text.to_owned().into_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let boundary = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        match id_length(&bytes[at..]).filter(|_| boundary) {
            Some(length) => {
                for byte in &mut out[at..at + length] {
                    if byte.is_ascii_hexdigit() {
                        *byte = b'0';
                    }
                }
                at += length;
            }
            None => at += 1,
        }
    }
    // Only ASCII digits were exchanged for `0`, so the text is still UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

/// The length of the id that `bytes` starts with: 32 hexadecimal digits, or a UUID. Longer runs are checksums.
fn id_length(bytes: &[u8]) -> Option<usize> {
    const UUID: [usize; 5] = [8, 4, 4, 4, 12];
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let ends = |length: usize| bytes.get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    if digits == 32 && ends(digits) {
        return Some(digits);
    }
    let mut at = 0;
    for (group, length) in UUID.into_iter().enumerate() {
        if group > 0 {
            if bytes.get(at) != Some(&b'-') {
                return None;
            }
            at += 1;
        }
        let digits = bytes.get(at..at + length)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        at += length;
    }
    ends(at).then_some(at)
}
