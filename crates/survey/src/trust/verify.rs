//! Whether a pinned key signed something.

use std::path::PathBuf;

use pgp::composed::{Deserializable, DetachedSignature, SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{Signature, SignatureType};
use pgp::ser::Serialize;
use pgp::types::{KeyDetails, PublicParams, Tag};

use super::TrustError;
use super::keyring::{Copy, Fingerprint, Keyring};
use super::{cleartext, digest};

/// A clock may be wrong by so many seconds.
const SKEW: i64 = 24 * 60 * 60;
/// The most signatures looked at.
const MOST_SIGNATURES: usize = 64;

/// What a pinned key has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The text, with `\n` line ends. Empty for a detached signature.
    pub text: String,
    /// Who signed it; at least one.
    pub signers: Vec<Signer>,
}

impl Signed {
    /// Whether every key that signed has expired since.
    pub fn only_expired(&self) -> bool {
        self.signers.iter().all(|signer| signer.expired)
    }
}

/// One good signature by a pinned key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// The primary key.
    pub key: Fingerprint,
    /// The key that made the signature: the primary or a subkey of it.
    pub signed_by: Fingerprint,
    /// Its first user id.
    pub user: Option<String>,
    /// When it signed, in seconds since 1970.
    pub created: i64,
    /// The keyring it was found in.
    pub keyring: PathBuf,
    /// Whether the key has expired since.
    pub expired: bool,
}

/// Verifies a clear-signed file (`InRelease`); `what` names it in errors, `now` is in seconds since 1970.
///
/// # Errors
///
/// A [`TrustError`] if no key of `pins` signed it.
pub fn verify_cleartext(
    what: &str,
    content: &[u8],
    keyring: &Keyring,
    pins: &[Fingerprint],
    now: i64,
) -> Result<Signed, TrustError> {
    let refused = |detail| TrustError::NotSigned { what: what.to_owned(), detail };
    let content = std::str::from_utf8(content).map_err(|error| {
        refused(format!("expected text, found a stray byte at {}", error.valid_up_to()))
    })?;
    let parts = cleartext::split(content).map_err(refused)?;
    let signatures: Vec<Signature> = signatures(parts.signature.as_bytes())
        .map_err(refused)?
        .into_iter()
        .filter(|signature| signature.typ() == Some(SignatureType::Text))
        .collect();
    let signers = Check { what, keyring, pins, now }.all(&signatures, &parts.signed())?;
    Ok(Signed { text: parts.text, signers })
}

/// Verifies content with its signature in a file of its own, armored or not (`Release.gpg`, `repomd.xml.asc`).
///
/// # Errors
///
/// A [`TrustError`] if no key of `pins` signed it.
pub fn verify_detached(
    what: &str,
    content: &[u8],
    signature: &[u8],
    keyring: &Keyring,
    pins: &[Fingerprint],
    now: i64,
) -> Result<Signed, TrustError> {
    let refused = |detail| TrustError::NotSigned { what: what.to_owned(), detail };
    let kinds = [Some(SignatureType::Binary), Some(SignatureType::Text)];
    let signatures: Vec<Signature> = signatures(signature)
        .map_err(refused)?
        .into_iter()
        .filter(|signature| kinds.contains(&signature.typ()))
        .collect();
    let signers = Check { what, keyring, pins, now }.all(&signatures, content)?;
    Ok(Signed { text: String::new(), signers })
}

const BEGIN: &[u8] = b"-----BEGIN PGP SIGNATURE-----";

/// The signature packets of a file, armored or not.
fn signatures(bytes: &[u8]) -> Result<Vec<Signature>, String> {
    let mut found = Vec::new();
    let mut take = |packets: pgp::errors::Result<_>| -> Result<(), String> {
        let packets: Box<dyn Iterator<Item = pgp::errors::Result<DetachedSignature>>> =
            packets.map_err(|error: pgp::errors::Error| one_line(&error))?;
        for packet in packets.take(MOST_SIGNATURES) {
            match packet {
                Ok(packet) => found.push(packet.signature),
                // One of a kind not known here does not make the others worthless.
                Err(_) if !found.is_empty() => break,
                Err(error) => return Err(one_line(&error)),
            }
        }
        Ok(())
    };
    let starts: Vec<usize> =
        memchr::memmem::find_iter(bytes, BEGIN).take(MOST_SIGNATURES).collect();
    if starts.is_empty() {
        take(DetachedSignature::from_bytes_many(bytes))?;
    }
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(bytes.len());
        take(DetachedSignature::from_armor_many(&bytes[start..end]).map(|(packets, _)| packets))?;
    }
    if found.is_empty() { Err("expected a signature, found none".to_owned()) } else { Ok(found) }
}

fn one_line(error: &pgp::errors::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

struct Check<'a> {
    what: &'a str,
    keyring: &'a Keyring,
    pins: &'a [Fingerprint],
    now: i64,
}

/// What is to be said of one signature and one key.
enum Outcome {
    /// The key is not the one named in the signature.
    Other,
    Good(Signer),
    Bad,
    Worthless(String),
    /// More certain than a good one from a copy of the key that does not know of it.
    Revoked,
}

impl Check<'_> {
    fn all(&self, signatures: &[Signature], content: &[u8]) -> Result<Vec<Signer>, TrustError> {
        let mut signers: Vec<Signer> = Vec::new();
        let mut worthless = None;
        for signature in signatures {
            for pin in self.pins {
                match self.one(signature, pin, content) {
                    Outcome::Other => {}
                    Outcome::Good(signer) => signers.push(signer),
                    Outcome::Bad => {
                        return Err(TrustError::Bad {
                            what: self.what.to_owned(),
                            key: pin.clone(),
                        });
                    }
                    Outcome::Worthless(reason) => worthless = Some((pin, reason)),
                    Outcome::Revoked => worthless = Some((pin, "the key is revoked".to_owned())),
                }
            }
        }
        if !signers.is_empty() {
            return Ok(signers);
        }
        let what = self.what.to_owned();
        if let Some((key, reason)) = worthless {
            return Err(TrustError::Worthless { what, key: key.clone(), reason });
        }
        let at_hand = |pin: &Fingerprint| {
            if self.keyring.contains(pin) {
                pin.to_string()
            } else {
                format!("{pin} (in no keyring)")
            }
        };
        // A signature by a pinned key that is not at hand is no stranger's.
        let missing = self.pins.iter().find(|pin| {
            !self.keyring.contains(pin)
                && signatures.iter().flat_map(issuers).any(|found| pin.as_str().ends_with(&found))
        });
        if let Some(pin) = missing {
            return Err(TrustError::NotAtHand { what, key: pin.clone() });
        }
        let expected: Vec<String> = self.pins.iter().map(at_hand).collect();
        let mut found: Vec<String> = signatures.iter().flat_map(issuers).collect();
        found.sort();
        found.dedup();
        let list = |names: Vec<String>| match names.len() {
            0 => "nobody".to_owned(),
            _ => names.join(" or "),
        };
        Err(TrustError::Stranger { what, expected: list(expected), found: list(found) })
    }

    /// One signature and one pinned key, in all its copies.
    fn one(&self, signature: &Signature, pin: &Fingerprint, content: &[u8]) -> Outcome {
        let mut best = Outcome::Other;
        for copy in self.keyring.copies(pin) {
            best = match (best, self.copy(signature, pin, copy, content)) {
                (Outcome::Revoked, _) | (_, Outcome::Revoked) => return Outcome::Revoked,
                (Outcome::Good(a), Outcome::Good(b)) => {
                    Outcome::Good(if a.expired { b } else { a })
                }
                (good @ Outcome::Good(_), _) | (_, good @ Outcome::Good(_)) => good,
                (Outcome::Other, other) | (other, Outcome::Other) => other,
                (first, _) => first,
            };
        }
        best
    }

    fn copy(
        &self,
        signature: &Signature,
        pin: &Fingerprint,
        copy: &Copy,
        content: &[u8],
    ) -> Outcome {
        let key = &copy.key;
        let subkey = key.public_subkeys.iter().find(|subkey| is_issuer(signature, *subkey));
        let is_primary = is_issuer(signature, &key.primary_key);
        let Some(created) = signature.created().filter(|_| is_primary || subkey.is_some()) else {
            return Outcome::Other;
        };
        let created = i64::from(created.as_secs());
        if let Some(weak) = weak_hash(signature) {
            return Outcome::Worthless(format!("it uses {weak}"));
        }
        let verified = match subkey {
            Some(subkey) if !is_primary => signature.verify(&subkey.key, content),
            _ => signature.verify(&key.primary_key, content),
        };
        if verified.is_err() {
            return Outcome::Bad;
        }
        if is_revoked(key) {
            return Outcome::Revoked;
        }
        let usable = match subkey {
            Some(subkey) if !is_primary => usable_subkey(key, subkey, created, self.now),
            _ => Ok(i64::MAX),
        };
        let (subkey_end, signed_by) = match (usable, subkey) {
            (Ok(end), Some(subkey)) if !is_primary => (end, Fingerprint::of(&subkey.key)),
            (Ok(end), _) => (end, pin.clone()),
            (Err(Some(reason)), _) => return Outcome::Worthless(reason),
            (Err(None), _) => return Outcome::Revoked,
        };
        if let Some(reason) = weak_key(&key.primary_key) {
            return Outcome::Worthless(reason);
        }
        let primary = primary(key, self.now);
        if is_primary && primary.signs == Some(false) {
            return Outcome::Worthless("the key is not for signing".to_owned());
        }
        if created > self.now + SKEW {
            return Outcome::Worthless("it is from the future".to_owned());
        }
        if created < i64::from(key.primary_key.created_at().as_secs()) {
            return Outcome::Worthless("it is older than the key".to_owned());
        }
        let lasts =
            signature.signature_expiration_time().map_or(0, |time| i64::from(time.as_secs()));
        if lasts > 0 && created + lasts < self.now {
            return Outcome::Worthless("the signature has expired".to_owned());
        }
        let end = primary.end.min(subkey_end);
        if end <= created {
            return Outcome::Worthless("the key had expired when it signed".to_owned());
        }
        Outcome::Good(Signer {
            key: pin.clone(),
            signed_by,
            user: key
                .details
                .users
                .first()
                .map(|user| String::from_utf8_lossy(user.id.id()).into_owned()),
            created,
            keyring: copy.file.clone(),
            expired: end <= self.now,
        })
    }
}

fn is_issuer(signature: &Signature, key: &impl KeyDetails) -> bool {
    let prints = signature.issuer_fingerprint();
    // The fingerprint is the stronger word: an id is the end of it, and can be made to fit.
    if prints.is_empty() {
        signature.issuer_key_id().contains(&&key.legacy_key_id())
    } else {
        prints.contains(&&key.fingerprint())
    }
}

fn issuers(signature: &Signature) -> Vec<String> {
    let prints = signature.issuer_fingerprint();
    if prints.is_empty() {
        signature.issuer_key_id().iter().map(|id| digest::hex(id.as_ref()).to_uppercase()).collect()
    } else {
        prints.iter().map(|print| format!("{print:X}")).collect()
    }
}

/// The name of the hash, if it is one that can be forged.
fn weak_hash(signature: &Signature) -> Option<String> {
    match signature.hash_alg() {
        Some(
            HashAlgorithm::Sha224
            | HashAlgorithm::Sha256
            | HashAlgorithm::Sha384
            | HashAlgorithm::Sha512
            | HashAlgorithm::Sha3_256
            | HashAlgorithm::Sha3_512,
        ) => None,
        Some(other) => Some(other.to_string()),
        None => Some("an unknown form".to_owned()),
    }
}

/// Why the algorithm of a key is not good enough.
fn weak_key(key: &impl KeyDetails) -> Option<String> {
    match key.public_params() {
        PublicParams::RSA(rsa) => {
            // The public form starts with the modulus, and that with its length in bits.
            let bytes = rsa.to_bytes().unwrap_or_default();
            let bits = bytes.first_chunk().map_or(0, |bits| u16::from_be_bytes(*bits));
            (bits < 2048).then(|| format!("the key is RSA of {bits} bits"))
        }
        PublicParams::ECDSA(_)
        | PublicParams::EdDSALegacy(_)
        | PublicParams::Ed25519(_)
        | PublicParams::Ed448(_) => None,
        _ => Some("the key is of a kind that is not accepted".to_owned()),
    }
}

fn is_revoked(key: &SignedPublicKey) -> bool {
    key.details.revocation_signatures.iter().any(|signature| {
        signature.typ() == Some(SignatureType::KeyRevocation)
            && signature.verify_key(&key.primary_key).is_ok()
    })
}

/// What a primary key says of itself, in its newest self-signature.
struct Primary {
    signs: Option<bool>,
    end: i64,
}

fn primary(key: &SignedPublicKey, now: i64) -> Primary {
    let users = key.details.users.iter().flat_map(|user| {
        user.signatures.iter().filter(|signature| {
            signature.typ() != Some(SignatureType::CertRevocation)
                && is_issuer(signature, &key.primary_key)
                && signature.verify_certification(&key.primary_key, Tag::UserId, &user.id).is_ok()
        })
    });
    let direct = key
        .details
        .direct_signatures
        .iter()
        .filter(|signature| signature.verify_key(&key.primary_key).is_ok());
    let newest = newest(users.chain(direct), now);
    Primary {
        signs: newest.and_then(signs),
        end: newest.map_or(i64::MAX, |signature| end(&key.primary_key, signature)),
    }
}

fn newest<'a>(signatures: impl Iterator<Item = &'a Signature>, now: i64) -> Option<&'a Signature> {
    signatures
        .filter_map(|signature| Some((i64::from(signature.created()?.as_secs()), signature)))
        .filter(|(created, _)| *created <= now + SKEW)
        .max_by_key(|(created, _)| *created)
        .map(|(_, signature)| signature)
}

/// Whether the key may sign; `None` if the signature says nothing about its use.
fn signs(signature: &Signature) -> Option<bool> {
    let flags = signature.key_flags();
    let any = flags.certify()
        || flags.sign()
        || flags.encrypt_comms()
        || flags.encrypt_storage()
        || flags.authentication();
    any.then(|| flags.sign())
}

/// When the key's life ends.
fn end(key: &impl KeyDetails, signature: &Signature) -> i64 {
    match signature.key_expiration_time().map(pgp::types::Duration::as_secs) {
        None | Some(0) => i64::MAX,
        Some(life) => i64::from(key.created_at().as_secs()) + i64::from(life),
    }
}

/// When the life of a subkey ends, if it could sign at `created`; else why it could not, `None` for a revoked one.
fn usable_subkey(
    key: &SignedPublicKey,
    subkey: &SignedPublicSubKey,
    created: i64,
    now: i64,
) -> Result<i64, Option<String>> {
    if let Some(reason) = weak_key(&subkey.key) {
        return Err(Some(reason));
    }
    let mut bindings = Vec::new();
    for signature in &subkey.signatures {
        if signature.verify_subkey_binding(&key.primary_key, &subkey.key).is_err() {
            continue;
        }
        match signature.typ() {
            Some(SignatureType::SubkeyRevocation) => return Err(None),
            Some(SignatureType::SubkeyBinding) if weak_hash(signature).is_none() => {
                bindings.push(signature);
            }
            _ => {}
        }
    }
    let binding = newest(bindings.into_iter(), now)
        .ok_or_else(|| Some("its subkey is not soundly bound to the key".to_owned()))?;
    let back = binding.embedded_signature().filter(|back| {
        weak_hash(back).is_none()
            && back.verify_primary_key_binding(&subkey.key, &key.primary_key).is_ok()
    });
    if !binding.key_flags().sign() || back.is_none() {
        return Err(Some("its subkey is not for signing".to_owned()));
    }
    if created < i64::from(subkey.key.created_at().as_secs()) {
        return Err(Some("it is older than its subkey".to_owned()));
    }
    Ok(end(&subkey.key, binding))
}
