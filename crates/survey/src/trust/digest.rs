//! Digests of files.

use std::fmt;
use std::io::{self, Read};

use sha2::digest::DynDigest;
use sha2::{Sha256, Sha512};

use super::TrustError;

/// A way to digest. Weaker ones, which indexes list as well, are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DigestKind {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl DigestKind {
    /// Its name as in hashes of rows, `sha256`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn length(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    fn hasher(self) -> Box<dyn DynDigest + Send> {
        match self {
            Self::Sha256 => Box::<Sha256>::default(),
            Self::Sha512 => Box::<Sha512>::default(),
        }
    }
}

/// A digest. It displays as `sha256:0123...`.
#[derive(Clone, PartialEq, Eq)]
pub struct Digest {
    kind: DigestKind,
    bytes: Vec<u8>,
}

impl Digest {
    /// From hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`TrustError::Hex`] if it is not that, or of another length.
    pub fn parse(kind: DigestKind, hex: &str) -> Result<Self, TrustError> {
        match unhex(hex) {
            Some(bytes) if bytes.len() == kind.length() => Ok(Self { kind, bytes }),
            _ => Err(TrustError::Hex {
                expected: kind.name(),
                found: hex.chars().take(130).collect(),
            }),
        }
    }

    /// Of bytes.
    pub fn of(kind: DigestKind, bytes: &[u8]) -> Self {
        let mut hasher = kind.hasher();
        hasher.update(bytes);
        Self { kind, bytes: hasher.finalize().into_vec() }
    }

    /// Which it is.
    pub fn kind(&self) -> DigestKind {
        self.kind
    }

    /// Its digits, lower case.
    pub fn hex(&self) -> String {
        hex(&self.bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// Passes bytes on and checks at their end that they were the ones meant: the end is an error wrapping
/// [`TrustError::Mismatch`] if they were not. More bytes than meant are an error at once.
///
/// What was read before the end is not to be trusted before the end was seen.
pub struct Checked<R> {
    inner: R,
    what: String,
    size: Option<u64>,
    digest: Digest,
    hasher: Option<Box<dyn DynDigest + Send>>,
    read: u64,
}

impl<R> fmt::Debug for Checked<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked")
            .field("what", &self.what)
            .field("digest", &self.digest)
            .field("read", &self.read)
            .finish_non_exhaustive()
    }
}

impl<R: Read> Checked<R> {
    /// Checks what is read from `inner`; `what` names it in errors.
    pub fn new(inner: R, what: impl Into<String>, size: Option<u64>, digest: Digest) -> Self {
        let hasher = Some(digest.kind.hasher());
        Self { inner, what: what.into(), size, digest, hasher, read: 0 }
    }

    /// How many bytes were read.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Reads what is left and checks.
    ///
    /// # Errors
    ///
    /// As reading.
    pub fn finish(mut self) -> io::Result<()> {
        io::copy(&mut self, &mut io::sink()).map(drop)
    }

    fn mismatch(&self, expected: String, found: String) -> io::Error {
        io::Error::other(TrustError::Mismatch { what: self.what.clone(), expected, found })
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.inner.read(buffer)?;
        self.read += read as u64;
        if let Some(size) = self.size
            && (self.read > size || (read == 0 && self.read < size))
        {
            let found = if read == 0 { self.read.to_string() } else { "more".to_owned() };
            return Err(self.mismatch(format!("{size} bytes"), found));
        }
        if read > 0 {
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&buffer[..read]);
            }
            return Ok(read);
        }
        // The end may be asked for more than once; it is checked the first time.
        if let Some(hasher) = self.hasher.take() {
            let found = Digest { kind: self.digest.kind, bytes: hasher.finalize().into_vec() };
            if found != self.digest {
                return Err(self.mismatch(self.digest.to_string(), found.to_string()));
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_checked_at_the_end() {
        let digest = Digest::of(DigestKind::Sha256, b"hello");
        assert_eq!(
            digest.to_string(),
            "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
        );
        assert_eq!(
            Digest::parse(DigestKind::Sha256, &digest.hex().to_uppercase()).unwrap(),
            digest
        );
        for size in [None, Some(5)] {
            let mut text = String::new();
            Checked::new(&b"hello"[..], "f", size, digest.clone())
                .read_to_string(&mut text)
                .unwrap();
            assert_eq!(text, "hello");
        }
        for (content, size, expected) in [
            ("hellO", Some(5), "f: expected sha256:2cf24"),
            ("hell", Some(5), "f: expected 5 bytes, found 4"),
            ("hello!", Some(5), "f: expected 5 bytes, found more"),
            ("hello!", None, "f: expected sha256:2cf24"),
        ] {
            let error =
                Checked::new(content.as_bytes(), "f", size, digest.clone()).finish().unwrap_err();
            let error = TrustError::inside(&error).unwrap().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn digests_that_are_none() {
        for text in
            ["", "0", "zz", &"0".repeat(63), &"0".repeat(65), &"0".repeat(128), &"é".repeat(32)]
        {
            assert!(Digest::parse(DigestKind::Sha256, text).is_err(), "{text}");
        }
        assert!(Digest::parse(DigestKind::Sha512, &"0".repeat(128)).is_ok());
    }
}
