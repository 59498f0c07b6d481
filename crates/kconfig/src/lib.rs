//! Text and values of a Linux kernel configuration, plain or gzip.
//!
//! A kernel configuration is what kconfig writes as `.config`: one line per symbol, `CONFIG_X=value` or
//! `# CONFIG_X is not set`. This crate finds symbols in such a text exactly as kconfig's own reader would, tells the
//! five answers `y`, `m`, `n`, *not set* and *absent* apart, and says whether a text is whole enough for an absence to
//! mean anything.
//!
//! Everything here is a pure function of bytes: a configuration is not promised to be UTF-8, may be cut anywhere, and
//! may come from a hostile file. Nothing panics on any input.
//!
//! It does not read files, does not know which kernel a text belongs to, and does not judge.
//!
//! The format is kconfig's: <https://www.kernel.org/doc/html/latest/kbuild/kconfig-language.html>.

pub mod gzip;
mod scan;
mod text;

pub use scan::{SYMBOLS, Scan, Setting, Symbol};
pub use text::{Defect, Header, Text, Value};
