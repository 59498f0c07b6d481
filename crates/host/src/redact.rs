//! What of a file a snapshot may hold.

use fastpath_kconfig::gzip;

/// Takes the strings out of a configuration: they may hold a host name, a command line or a person's path, and no
/// answer depends on one. Each is replaced by `x`s of its length, so that every line and offset that a witness names
/// stays what it is. A damaged stream with strings in it becomes another one that is damaged in the same manner: nobody
/// reads its text, and everybody could inflate what is there.
pub(crate) fn config(bytes: &[u8]) -> Vec<u8> {
    if !gzip::is_gzip(bytes) {
        return without_strings(bytes);
    }
    let inflated = gzip::inflate(bytes, gzip::OUTPUT_LIMIT);
    let redacted = without_strings(&inflated.text);
    match inflated.end {
        Ok(()) => redacted,
        // A line cut inside a string has no closing quote, and is taken for one all the same.
        Err(_) if redacted == inflated.text => bytes.to_owned(),
        Err(error) => damaged_like(bytes.len(), &error),
    }
}

/// A gzip stream of zeros of about this length that ends with the same error.
fn damaged_like(length: usize, error: &gzip::Error) -> Vec<u8> {
    const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    const BLOCK: usize = 0xffff + 5;
    // Stored blocks that fill so many bytes; the last one may say that it is the last.
    let stored = |mut room: usize, last: u8| {
        let mut out = HEADER.to_vec();
        room = room.checked_sub(HEADER.len())?;
        while room > 0 {
            // What is left must hold a block's own five bytes.
            let size = if (1..5).contains(&room.saturating_sub(BLOCK)) { BLOCK - 5 } else { BLOCK };
            let size = size.min(room);
            room -= size;
            let [low, high] = u16::try_from(size.checked_sub(5)?).ok()?.to_le_bytes();
            out.extend_from_slice(&[if room == 0 { last } else { 0 }, low, high, !low, !high]);
            out.resize(out.len() + size - 5, 0);
        }
        Some(out)
    };
    let is_like = |bytes: &Vec<u8>| {
        gzip::inflate(bytes, gzip::OUTPUT_LIMIT).end.as_ref().is_err_and(|other| other == error)
    };
    let followed = |mut bytes: Vec<u8>, by: &[u8]| {
        bytes.extend_from_slice(by);
        bytes.resize(bytes.len().max(length), 0);
        bytes
    };
    let unknown_block = |at: usize| Some(followed(stored(at, 0)?, &[0b111]));
    let made = match *error {
        gzip::Error::Truncated { offset } => {
            // Long enough to be cut, however the blocks fall.
            let whole = stored(offset + BLOCK, 0).unwrap_or_default();
            whole.get(..offset).map(<[u8]>::to_vec).filter(is_like)
        }
        gzip::Error::Malformed { offset, .. } => {
            let checksum = || stored(offset.checked_sub(8)?, 1).map(|it| followed(it, &[0xff; 8]));
            let near = offset.saturating_sub(8)..=offset;
            checksum().filter(is_like).or_else(|| near.filter_map(unknown_block).find(is_like))
        }
        gzip::Error::TooLarge { .. } => None,
    };
    // The state stays, if not the words for it.
    made.or_else(|| unknown_block(HEADER.len())).unwrap_or_default()
}

/// Overwrites what stands between the quotes of each line, or after the only one. A line of the option itself stays,
/// for it is shown; a NUL byte stays, for it makes the text malformed.
fn without_strings(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let start = out.len();
        out.extend_from_slice(line);
        let Some(open) = memchr::memchr(b'"', line) else { continue };
        if line.starts_with(b"CONFIG_PCI_P2PDMA=") {
            continue;
        }
        let end = line.len() - line.iter().rev().take_while(|c| c.is_ascii_whitespace()).count();
        let close = memchr::memrchr(b'"', line).filter(|&close| close > open).unwrap_or(end);
        for byte in &mut out[start + open + 1..start + close] {
            if *byte != 0 {
                *byte = b'x';
            }
        }
    }
    out
}
