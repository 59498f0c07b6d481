//! Who signed an index, and whether a file is the one the index means.
//!
//! A signature counts if it was made by a key whose primary key's fingerprint is pinned for the distribution, however the
//! key came to be on the machine: keyrings only supply the key's material. Of the key itself it is asked
//!
//! - that it was valid when it signed: not expired then, allowed to sign, a subkey bound to the primary and the primary to
//!   it, and RSA of at least 2048 bits, `ECDSA` or `EdDSA`;
//! - that no copy of it that is at hand is revoked, whatever the reason given;
//! - that neither the signature nor the binding of its subkey uses MD5, SHA-1 or RIPEMD-160.
//!
//! A key that was valid when it signed and has expired since is [`Signer::expired`]: apt with `gpgv` (to Debian 12 and Ubuntu
//! 24.04) refuses it, apt with `sqv` (from Debian 13) accepts it. Callers here refuse it, as the former does, unless stale
//! data is allowed, and say `stale` then: the signature is as good as an index past its end date.
//!
//! Of several signatures one good one is enough, but none by a pinned key may be bad.
//!
//! It does not fetch keys, and keeps no record of what it saw before.

mod cleartext;
mod digest;
mod keyring;
mod verify;

use std::io;
use std::path::PathBuf;

pub use digest::{Checked, Digest, DigestKind};
pub use keyring::{Fingerprint, Keyring};
pub use verify::{Signed, Signer, verify_cleartext, verify_detached};

/// Why something is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A keyring that was named and could not be read.
    #[error("{}: {source}", path.display())]
    Keyring {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A pin or digest that is not one.
    #[error("expected {expected}, found `{found}`")]
    Hex {
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// What should be a signed text or a signature is none.
    #[error("{what}: not signed: {detail}")]
    NotSigned {
        /// What was read.
        what: String,
        /// Expected and found.
        detail: String,
    },
    /// The key that signed is pinned, and in no keyring of this machine.
    #[error(
        "{what}: signed by {key}, which is pinned and in no keyring here; a package such as debian-archive-keyring, ubuntu-keyring \
         or distribution-gpg-keys holds it, or --keyring names its file"
    )]
    NotAtHand {
        /// What was signed.
        what: String,
        /// The key.
        key: Fingerprint,
    },
    /// No pinned key signed it.
    #[error("{what}: expected a signature by {expected}, found one by {found}")]
    Stranger {
        /// What was read.
        what: String,
        /// The pinned keys.
        expected: String,
        /// The keys that signed.
        found: String,
    },
    /// A pinned key is said to have signed it, and has not: it was changed.
    #[error("{what}: bad signature: {key} did not sign this content")]
    Bad {
        /// What was read.
        what: String,
        /// The key.
        key: Fingerprint,
    },
    /// A pinned key signed it in a way that does not count.
    #[error("{what}: signature by {key} does not count: {reason}")]
    Worthless {
        /// What was read.
        what: String,
        /// The key.
        key: Fingerprint,
        /// Why.
        reason: String,
    },
    /// A file that is not the one meant.
    #[error("{what}: expected {expected}, found {found}")]
    Mismatch {
        /// The file.
        what: String,
        /// Its size or digest, as the index has it.
        expected: String,
        /// As it is.
        found: String,
    },
}

impl TrustError {
    /// The error that a [`Checked`] reader wrapped, if it did.
    pub fn inside(error: &io::Error) -> Option<&Self> {
        error.get_ref().and_then(|inner| inner.downcast_ref())
    }
}
