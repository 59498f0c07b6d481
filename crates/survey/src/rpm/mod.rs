//! rpm-md repositories: from `repodata/repomd.xml` to the packages of one name, highest version first.
//!
//! `repomd.xml` names the index files with their digests and is signed by some distributions (`repomd.xml.asc`); `primary`
//! lists the packages with theirs. Where the index is not signed, each package is, over its header.
//!
//! It does not read a package's payload: see `artifact`.

mod error;
mod evr;
mod header;
mod keys;
mod location;
mod mirrors;
mod packed;
mod primary;
mod repomd;
mod repository;
mod xml;

pub mod dnf;

pub use error::IndexError;
pub use evr::Evr;
pub use keys::{Keys, Signature};
pub use mirrors::reachable;
pub use packed::Access;
pub use repository::{Authenticated, Basis, Package, Wanted, authenticate, packages, verify_whole};

pub(crate) use header::base64;
pub(crate) use location::resolve;
pub(crate) use packed::{Open, decompress};
