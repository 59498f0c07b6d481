//! The bytes of an input that may be a damaged configuration.

use std::io::{self, Read};

use fastpath_kconfig::gzip;

/// How much tells whether an input may be a configuration.
const HEAD: usize = 512;

/// What is longer is no configuration. Real ones have 300 kB.
const MOST: usize = 16 << 20;

/// A reader that keeps what passes, for as long as it may be a configuration, so that a pipe need not be read twice.
pub(super) struct Kept<R> {
    inner: R,
    bytes: Option<Vec<u8>>,
}

impl<R: Read> Kept<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self { inner, bytes: Some(Vec::new()) }
    }

    /// All that passed, if it may be a configuration.
    pub(super) fn bytes(self) -> Option<Vec<u8>> {
        self.bytes.filter(|bytes| may_be_config(bytes))
    }
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if let Some(bytes) = &mut self.bytes {
            bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if bytes.len() > MOST || bytes.len() >= HEAD && !may_be_config(bytes) {
                self.bytes = None;
            }
        }
        Ok(count)
    }
}

/// The bytes of an input that is read again from its start, if it may be a configuration. It is read no further than it takes
/// to tell that it is none.
pub(super) fn again(input: &mut dyn Read) -> Option<Vec<u8>> {
    let mut kept = Kept::new(input);
    let mut buffer = [0; 8 << 10];
    while kept.bytes.is_some() && kept.read(&mut buffer).ok()? > 0 {}
    kept.bytes()
}

fn may_be_config(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD)];
    gzip::is_gzip(bytes) || std::str::from_utf8(head).is_ok_and(|head| !head.starts_with('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_configuration_is_not_read_to_its_end() {
        // Neither has an end.
        assert_eq!(again(&mut io::repeat(0)), None);
        assert_eq!(again(&mut io::repeat(b'a')), None);
        assert_eq!(again(&mut &b"CONFIG_A=y\n"[..]), Some(b"CONFIG_A=y\n".to_vec()));
    }
}
