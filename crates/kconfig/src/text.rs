//! One configuration text: its lines, its header, and whether it is whole.

use std::fmt;

use memchr::{memchr, memmem, memrchr};
use serde::{Deserialize, Serialize};

/// What a configuration says about one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Value {
    /// `CONFIG_X=y`: built in.
    #[serde(rename = "y")]
    Y,
    /// `CONFIG_X=m`: a module; for a bool symbol kconfig never writes it.
    #[serde(rename = "m")]
    M,
    /// `CONFIG_X=n`: accepted by kconfig's reader, never written by it.
    #[serde(rename = "n")]
    N,
    /// `# CONFIG_X is not set`: could be built, was not.
    #[serde(rename = "not set")]
    NotSet,
    /// No line for the symbol: it does not exist in that kernel, or its dependencies are not met.
    #[serde(rename = "absent")]
    Absent,
    /// A value that is no tristate: a number, a string, or a damaged line.
    #[serde(rename = "other")]
    Other,
}

impl Value {
    /// The value in the words used everywhere in output: `y`, `m`, `n`, `not set`, `absent`, `other`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Y => "y",
            Self::M => "m",
            Self::N => "n",
            Self::NotSet => "not set",
            Self::Absent => "absent",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The header line `# Linux/<arch> <version> Kernel Configuration`.
///
/// `version` is the build's `KERNELVERSION`, which is *not* `uname -r` on most distributions: only its major and minor
/// number may be compared with a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The architecture as kconfig spells it, for example `x86` or `x86_64`.
    pub arch: &'a str,
    /// The version as it stands there, for example `6.8.12` or `6.12.0-124.29.1.el10_1.x86_64`.
    pub version: &'a str,
}

/// Why a text decides nothing although it could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// Not a single byte, or only white space.
    #[error("empty")]
    Empty,
    /// A NUL byte: kconfig never writes one, so the file is damaged or is no configuration.
    #[error("not a kernel configuration: NUL byte at offset {offset}")]
    Nul {
        /// Where the byte is, counted from the start of the text.
        offset: usize,
    },
    /// No line that kconfig could have written.
    #[error("not a kernel configuration: no CONFIG_ line in {len} bytes")]
    NoSymbols {
        /// Length of the text in bytes.
        len: usize,
    },
}

/// A configuration text, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    bytes: &'a [u8],
}

/// The header stands in the first lines; a Markdown wrapper may come before it.
const HEADER_WITHIN: usize = 4096;

const PREFIX: &[u8] = b"CONFIG_";

impl<'a> Text<'a> {
    /// Wraps a text. Nothing is read yet.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The bytes of the text.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header, if there is one before the first symbol.
    pub fn header(&self) -> Option<Header<'a>> {
        let start = &self.bytes[..self.bytes.len().min(HEADER_WITHIN)];
        for line in start.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let off = line.starts_with(b"# CONFIG_") && line.ends_with(b" is not set");
            if line.starts_with(b"CONFIG_") || off {
                return None;
            }
            let Some(rest) = line.strip_prefix(b"# Linux/") else { continue };
            let Some(rest) = rest.strip_suffix(b" Kernel Configuration") else { continue };
            let Some((arch, version)) =
                std::str::from_utf8(rest).ok().and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            // Both end up on terminals: nothing but visible characters.
            let is_word =
                |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
            if is_word(arch) && is_word(version) {
                return Some(Header { arch, version });
            }
        }
        None
    }

    /// Whether the text can be a configuration at all.
    ///
    /// # Errors
    ///
    /// A [`Defect`] when it is empty, holds a NUL byte, or has no symbol line.
    pub fn check(&self) -> Result<(), Defect> {
        if self.bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(Defect::Empty);
        }
        if let Some(offset) = memchr(0, self.bytes) {
            return Err(Defect::Nul { offset });
        }
        let has_symbol = memmem::find_iter(self.bytes, b"CONFIG_").any(|at| {
            let before = &self.bytes[..at];
            // No search for the start of the line: a text of one long line would be searched again and again.
            self.is_line_start(at)
                || before.strip_suffix(b"# ").is_some_and(|before| self.is_line_start(before.len()))
        });
        if has_symbol { Ok(()) } else { Err(Defect::NoSymbols { len: self.bytes.len() }) }
    }

    /// Whether the text is complete: it names `CONFIG_PCI` and a symbol of the last menu (`CONFIG_DEBUG_KERNEL` or
    /// `CONFIG_MAGIC_SYSRQ`). Only in a whole text does a missing line mean that the symbol is absent.
    pub fn is_whole(&self) -> bool {
        self.names("PCI") && (self.names("DEBUG_KERNEL") || self.names("MAGIC_SYSRQ"))
    }

    fn names(&self, symbol: &str) -> bool {
        self.value(symbol) != Value::Absent
    }

    /// The value of any symbol, by its name without `CONFIG_`. The last line wins.
    pub fn value(&self, symbol: &str) -> Value {
        let mut value = Value::Absent;
        // Matches do not overlap, and `G_G` occurs twice in `CONFIG_G_G`, the first one hiding the second. With the
        // prefix a name can hide none: no name holds the line end or the blank before it.
        let needle = [PREFIX, symbol.as_bytes()].concat();
        for at in memmem::find_iter(self.bytes, &needle) {
            if let Some(found) = self.setting_at(at + PREFIX.len(), symbol.len()) {
                value = found.1;
            }
        }
        value
    }

    /// The 1-based line number of the byte at `offset`.
    pub fn line_number(&self, offset: usize) -> u32 {
        let before = &self.bytes[..offset.min(self.bytes.len())];
        u32::try_from(memchr::memchr_iter(b'\n', before).count()).unwrap_or(u32::MAX - 1) + 1
    }

    /// The line that holds the byte at `offset`, without its line end.
    pub fn line_at(&self, offset: usize) -> &'a [u8] {
        let offset = offset.min(self.bytes.len());
        let start = self.line_start(offset);
        self.line_from(start)
    }

    fn is_line_start(&self, offset: usize) -> bool {
        offset == 0 || self.bytes[offset - 1] == b'\n'
    }

    fn line_start(&self, offset: usize) -> usize {
        memrchr(b'\n', &self.bytes[..offset]).map_or(0, |newline| newline + 1)
    }

    fn line_from(&self, start: usize) -> &'a [u8] {
        let rest = &self.bytes[start..];
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Judges the line around a symbol name found at `at`: its start and value if the line sets exactly that symbol.
    ///
    /// The name must be the whole name: at the start of the line after `CONFIG_` and followed by `=`, or between
    /// `# CONFIG_` and ` is not set`. Look-alikes, strings and other comments give nothing.
    pub(crate) fn setting_at(&self, at: usize, name_len: usize) -> Option<(usize, Value)> {
        const OFF: &[u8] = b"# CONFIG_";
        let before = &self.bytes[..at];
        let after = &self.bytes[at + name_len..];
        if after.first() == Some(&b'=') {
            let start = at.checked_sub(PREFIX.len())?;
            if !before.ends_with(PREFIX) || !self.is_line_start(start) {
                return None;
            }
            let value = match self.line_from(at + name_len + 1) {
                b"y" => Value::Y,
                b"m" => Value::M,
                b"n" => Value::N,
                _ => Value::Other,
            };
            return Some((start, value));
        }
        let start = at.checked_sub(OFF.len())?;
        let off = before.ends_with(OFF)
            && self.is_line_start(start)
            && self.line_from(at + name_len) == b" is not set";
        off.then_some((start, Value::NotSet))
    }
}
