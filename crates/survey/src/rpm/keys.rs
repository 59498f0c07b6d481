//! Who may sign.

use fastpath_artifact::http::shown;

use super::IndexError;
use crate::trust::{Fingerprint, Keyring, TrustError, verify_detached};

/// The pinned keys of one distribution, and what is asked of them.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// The keys on the machine.
    pub keyring: &'a Keyring,
    /// Fingerprints of those that may sign.
    pub pins: &'a [Fingerprint],
    /// The time, in seconds since 1970.
    pub now: i64,
    /// Whether signatures count whose keys have all expired since; what rests on one is stale.
    pub allow_stale: bool,
}

/// A signature by a pinned key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The primary key that signed.
    pub key: Fingerprint,
    /// Whether it has expired since.
    pub stale: bool,
}

impl Keys<'_> {
    /// Whether one of the pinned keys is on the machine.
    pub fn at_hand(&self) -> bool {
        self.pins.iter().any(|pin| self.keyring.contains(pin))
    }

    /// Checks a detached signature, armored or not, over what is at `url`.
    pub(crate) fn verify(
        &self,
        url: &str,
        content: &[u8],
        signature: &[u8],
    ) -> Result<Signature, IndexError> {
        let what = shown(url);
        let verified =
            verify_detached(&what, content, signature, self.keyring, self.pins, self.now)?;
        let stale = verified.only_expired();
        // There is at least one.
        let Some(signer) = verified.signers.into_iter().min_by_key(|signer| signer.expired) else {
            return Err(IndexError::signature(url, "nobody signed it"));
        };
        if stale && !self.allow_stale {
            let reason = "the key has expired since".to_owned();
            return Err(TrustError::Worthless { what, key: signer.key, reason }.into());
        }
        Ok(Signature { key: signer.key, stale })
    }
}
