//! The kernel configuration inside a package, kernel image, disk image, file or URL.
//!
//! Given bytes of any kind, [`Finder`] tells by their content what they are, looks inside, and gives every kernel it
//! finds as [`Found`]: its configuration, or the weaker word of its symbols, with the path of the member it was found
//! in. Names only say *which* kernel something belongs to, never *what* it is.
//!
//! Everything comes from outside: lengths, counts and offsets are checked, nesting, members and output are bounded by
//! [`Limits`], and nothing is written to disk.
//!
//! It does not judge: what a configuration says about the option is `kconfig`'s and `verdict`'s business.

mod container;
mod decompress;
mod error;
mod fail;
mod finder;
mod found;
mod image;
mod limits;
mod names;
mod source;
mod symbols;
mod text;

pub mod disk;
pub mod filesystem;
pub mod http;

pub use error::Error;
pub use finder::{Finder, Summary};
pub use found::{Evidence, Found};
pub use limits::Limits;

/// What can be read from any place: a file, a part of one, a remote file.
pub trait ReadSeek: std::io::Read + std::io::Seek {}

impl<T: std::io::Read + std::io::Seek + ?Sized> ReadSeek for T {}
