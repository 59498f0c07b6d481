//! Facts of a Linux host, read through a root.
//!
//! A *root* is where a host is read from: `/`, another directory tree, or a snapshot archive. Every reader here takes a
//! [`Tree`], asks it for absolute paths, and gives facts: records that serialise, say where each statement was read, and
//! can be replayed. The same readers over the same tree give the same facts.
//!
//! It does not judge, changes nothing, starts no program and opens no connection.

pub mod boot;
mod dir;
pub mod driver;
mod installed;
mod kernel;
mod lines;
pub mod mask;
mod os;
pub mod pci;
pub mod process;
mod redact;
pub mod runtime;
#[cfg(feature = "snapshot")]
pub mod snapshot;
mod tree;
pub mod volume;
mod witness;

pub use dir::{DirTree, OpenError};
pub use installed::Installed;
pub use kernel::{Asked, Facts, KernelFacts, Scope, gather, gather_layers};
pub use os::{Environment, OsRelease};
pub use tree::{
    Content, Entry, Extraction, FileId, FileKind, LineFilter, ReadError, ReadSeek, Redaction, Stat,
    Tree, Unread, Want, join_link,
};
pub use witness::{Evidence, Kind, State, Symbols, Witness, config_witness};
