//! The kernel configuration inside a package, kernel image, disk image, file or URL.
//!
//! Given bytes of any kind, [`Finder`] tells by their content what they are, looks inside, and gives every kernel it
//! finds as [`Found`]: its configuration, or the weaker word of its symbols, with the path of the member it was found
//! in. Names only say *which* kernel something belongs to, never *what* it is.
//!
//! Everything comes from outside: lengths, counts and offsets are checked, nesting, members and output are bounded by
//! [`Limits`], and nothing is written to disk.
//!
//! | what | how it is read |
//! | --- | --- |
//! | text of a configuration, `System.map`, `Module.symvers` | whole |
//! | gzip, xz, lzma, zstd, bzip2, lz4 (both formats) | forwards, by magic, in any nesting |
//! | `.deb`, `.rpm`, Arch packages | forwards, up to the configuration of the kernel the package names |
//! | tar, cpio, container images as `docker save` and OCI layouts have them | forwards, to the end |
//! | bzImage, EFI zboot, unified kernel images, ELF, flat images, `configs.ko` | forwards |
//! | disks with partitions, file systems | at offsets; the input has to be a file, not a stream |
//!
//! It does not judge: what a configuration says about the option is `kconfig`'s and `verdict`'s business. It does not
//! join the layers of a container image into one file system: a configuration that an upper layer deletes answers
//! still, since layers are read as they come and the order they are applied in may be said after them. It does not
//! check signatures, and of an input it reads in part no checksum of the whole can be known.

mod container;
mod decompress;
mod error;
mod fail;
mod finder;
mod found;
mod image;
mod limits;
mod names;
mod regular;
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
