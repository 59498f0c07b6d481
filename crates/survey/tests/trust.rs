//! Signatures made by `gpg`, judged here.

mod common;

use std::fs;
use std::path::Path;

use common::{Gpg, have, skipped};
use fastpath_survey::trust::{
    Fingerprint, Keyring, Signed, TrustError, verify_cleartext, verify_detached,
};

const TEXT: &str = "Origin: Test\nSHA256:\n 00 1 main/x \t\n- dash\n-- two\nFrom here\n";

fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

fn keyring(gpg: &Gpg, folder: &Path, keys: &[&str]) -> Keyring {
    let file = folder.join("test.gpg");
    gpg.export(&file, keys);
    let mut keyring = Keyring::default();
    keyring.add(&file).unwrap();
    keyring
}

fn clear(gpg: &Gpg, options: &[&str]) -> Vec<u8> {
    gpg.run_with(&[options, &["--clearsign", "-o", "-"]].concat(), TEXT.as_bytes())
}

fn verify(content: &[u8], keyring: &Keyring, pins: &[&Fingerprint]) -> Result<Signed, TrustError> {
    let pins: Vec<Fingerprint> = pins.iter().map(|pin| (*pin).clone()).collect();
    verify_cleartext("InRelease", content, keyring, &pins, now())
}

fn refused(result: Result<Signed, TrustError>, expected: &str) {
    let text = result.unwrap_err().to_string();
    assert!(text.starts_with("InRelease: ") && text.contains(expected), "{text}");
    assert!(!text.contains('\n'), "{text}");
}

#[test]
fn texts_signed_by_primary_keys_and_subkeys() {
    if !have("gpg") {
        return skipped("gpg is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let gpg = Gpg::new();
    for kind in ["rsa2048", "ed25519"] {
        let key = gpg.key(&format!("Primary {kind} <a@t.invalid>"), kind, "sign", "never");
        let sub = gpg.key(&format!("Sub {kind} <b@t.invalid>"), kind, "cert", "never");
        gpg.run(&["--quick-add-key", sub.as_str(), kind, "sign", "never"]);
        let keyring = keyring(&gpg, folder.path(), &[key.as_str(), sub.as_str()]);
        for (pin, user, same) in [(&key, "Primary", true), (&sub, "Sub", false)] {
            let content = clear(&gpg, &["-u", pin.as_str()]);
            let signed = verify(&content, &keyring, &[pin]).unwrap();
            assert_eq!(signed.text, TEXT.replace(" \t", ""));
            let by = &signed.signers[0];
            assert!(by.user.as_ref().unwrap().starts_with(user));
            assert_eq!((&by.key, by.signed_by == *pin, by.expired), (pin, same, false));
            assert!((now() - by.created).abs() < 600);
        }
        // Both, of which one is pinned.
        let both = clear(&gpg, &["-u", key.as_str(), "-u", sub.as_str()]);
        assert_eq!(verify(&both, &keyring, &[&sub]).unwrap().signers.len(), 1);
        assert_eq!(verify(&both, &keyring, &[&key, &sub]).unwrap().signers.len(), 2);
    }
}

#[test]
fn a_changed_byte_a_stranger_and_no_signature() {
    if !have("gpg") {
        return skipped("gpg is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let gpg = Gpg::new();
    let key = gpg.key("Key <a@t.invalid>", "rsa2048", "sign", "never");
    let other = gpg.key("Other <b@t.invalid>", "rsa2048", "sign", "never");
    let keys = keyring(&gpg, folder.path(), &[key.as_str(), other.as_str()]);
    let content = clear(&gpg, &["-u", key.as_str()]);
    let changed = String::from_utf8(content.clone()).unwrap().replace("00 1", "00 2");
    refused(verify(changed.as_bytes(), &keys, &[&key]), "bad signature: ");
    refused(
        verify(&content, &keys, &[&other]),
        &format!("expected a signature by {other}, found one by {key}"),
    );
    refused(
        verify(&content, &Keyring::default(), &[&key]),
        &format!("signed by {key}, which is pinned and in no"),
    );
    refused(verify(&content, &keys, &[]), "expected a signature by nobody");
    refused(verify(TEXT.as_bytes(), &keys, &[&key]), "not signed: expected `-----BEGIN PGP SIGNED");
    refused(verify(&[0xff], &keys, &[&key]), "not signed: expected text");
    let cut = &content[..content.len() - 200];
    refused(verify(cut, &keys, &[&key]), "not signed: ");
    // One good and one bad signature by pinned keys: something is wrong.
    let both = String::from_utf8(clear(&gpg, &["-u", key.as_str(), "-u", other.as_str()])).unwrap();
    let signature_of =
        |text: &str| text[text.find("-----BEGIN PGP SIGNATURE").unwrap()..].to_owned();
    let own = String::from_utf8(clear(&gpg, &["-u", key.as_str()])).unwrap();
    let foreign = String::from_utf8(
        gpg.run_with(&["-u", other.as_str(), "--clearsign", "-o", "-"], b"something else\n"),
    )
    .unwrap();
    let pasted = format!("{own}{}", signature_of(&foreign));
    assert!(verify(both.as_bytes(), &keys, &[&key, &other]).is_ok());
    refused(verify(pasted.as_bytes(), &keys, &[&key]), "found more");
}

#[test]
fn detached_signatures() {
    if !have("gpg") {
        return skipped("gpg is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let gpg = Gpg::new();
    let key = gpg.key("Key <a@t.invalid>", "rsa3072", "sign", "never");
    let other = gpg.key("Other <b@t.invalid>", "rsa2048", "sign", "never");
    let keys = keyring(&gpg, folder.path(), &[key.as_str()]);
    let content = b"<repomd>\r\n\x00\xff</repomd>";
    let sign = |options: &[&str]| {
        gpg.run_with(&[options, &["--detach-sign", "-o", "-"]].concat(), content)
    };
    let verify = |content: &[u8], signature: &[u8]| {
        verify_detached("InRelease", content, signature, &keys, std::slice::from_ref(&key), now())
    };
    let armored = sign(&["-u", key.as_str(), "--armor"]);
    for signature in [
        sign(&["-u", key.as_str()]),
        armored.clone(),
        sign(&["-u", other.as_str(), "-u", key.as_str()]),
        [sign(&["-u", other.as_str(), "--armor"]), armored.clone()].concat(),
    ] {
        assert_eq!(verify(content, &signature).unwrap().signers.len(), 1);
        refused(verify(b"<repomd>", &signature), "bad signature");
    }
    refused(verify(content, &sign(&["-u", other.as_str()])), "expected a signature by");
    refused(verify(content, b""), "not signed: expected a signature, found none");
    assert!(verify(content, b"<html>not found</html>").is_err());
    assert!(verify(content, &armored[..200]).is_err());
}

#[test]
fn keys_that_do_not_count() {
    if !have("gpg") {
        return skipped("gpg is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let gpg = Gpg::new();
    let at = |time: &'static str| ["--faked-system-time", time];
    // Weak hashes and weak keys.
    let key = gpg.key("Key <a@t.invalid>", "rsa2048", "sign", "never");
    let keys = keyring(&gpg, folder.path(), &[key.as_str()]);
    for (hash, name) in [("SHA1", "SHA1"), ("RIPEMD160", "RIPEMD160")] {
        let content =
            clear(&gpg, &["-u", key.as_str(), "--digest-algo", hash, "--allow-weak-digest-algos"]);
        refused(verify(&content, &keys, &[&key]), &format!("does not count: it uses {name}"));
    }
    let weak = gpg.key("Weak <w@t.invalid>", "rsa1024", "sign", "never");
    let keys = keyring(&gpg, folder.path(), &[weak.as_str()]);
    refused(verify(&clear(&gpg, &["-u", weak.as_str()]), &keys, &[&weak]), "RSA of 1024 bits");

    // Expired before it signed, and since.
    let old = gpg.key_with(&at("20200101T000000!"), "Old <o@t.invalid>", "rsa2048", "sign", "1y");
    let early = clear(&gpg, &[&at("20200601T000000!")[..], &["-u", old.as_str()]].concat());
    let keys = keyring(&gpg, folder.path(), &[old.as_str()]);
    let signed = verify(&early, &keys, &[&old]).unwrap();
    assert!(signed.only_expired() && signed.signers[0].expired);
    let now_then = 1_593_561_600;
    let signed =
        verify_cleartext("InRelease", &early, &keys, std::slice::from_ref(&old), now_then).unwrap();
    assert!(!signed.only_expired());
    // From the future.
    let before =
        verify_cleartext("InRelease", &early, &keys, std::slice::from_ref(&old), 1_577_900_000);
    refused(before, "from the future");
    // The key was given a longer life afterwards, in another keyring file.
    gpg.run(&["--quick-set-expire", old.as_str(), "never"]);
    let later = clear(&gpg, &["-u", old.as_str()]);
    refused(verify(&later, &keys, &[&old]), "the key had expired when it signed");
    let mut longer = keys.clone();
    let file = folder.path().join("longer.gpg");
    gpg.export(&file, &[old.as_str()]);
    longer.add(&file).unwrap();
    assert!(!verify(&later, &longer, &[&old]).unwrap().only_expired());
    assert!(!verify(&early, &longer, &[&old]).unwrap().only_expired());

    // A signature with an end of its own.
    let brief =
        gpg.key_with(&at("20200101T000000!"), "Brief <d@t.invalid>", "rsa2048", "sign", "never");
    let content = clear(
        &gpg,
        &[&at("20200601T000000!")[..], &["-u", brief.as_str(), "--default-sig-expire", "1d"]]
            .concat(),
    );
    let keys = keyring(&gpg, folder.path(), &[brief.as_str()]);
    refused(verify(&content, &keys, &[&brief]), "the signature has expired");

    // Revoked: also if another copy does not know of it.
    let revoked = gpg.key("Revoked <r@t.invalid>", "rsa2048", "sign", "never");
    let content = clear(&gpg, &["-u", revoked.as_str()]);
    let mut keys = keyring(&gpg, folder.path(), &[revoked.as_str()]);
    assert!(verify(&content, &keys, &[&revoked]).is_ok());
    gpg.revoke(&revoked);
    let file = folder.path().join("revoked.gpg");
    gpg.export(&file, &[revoked.as_str()]);
    keys.add(&file).unwrap();
    refused(verify(&content, &keys, &[&revoked]), "the key is revoked");
}

#[test]
fn keyrings_are_files_and_folders() {
    if !have("gpg") {
        return skipped("gpg is not installed");
    }
    let root = tempfile::tempdir().unwrap();
    let gpg = Gpg::new();
    let one = gpg.key("One <a@t.invalid>", "rsa2048", "sign", "never");
    let two = gpg.key("Two <b@t.invalid>", "ed25519", "sign", "never");
    let folder = root.path().join("usr/share/keyrings");
    let deep = root.path().join("usr/share/distribution-gpg-keys/test");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(&deep).unwrap();
    gpg.export(&folder.join("one.gpg"), &[one.as_str()]);
    fs::write(folder.join("notes.gpg"), "no keys").unwrap();
    // Two armored blocks in one file, as rpm keys often are.
    let armor = |key: &Fingerprint| gpg.run(&["--export", "--armor", key.as_str()]);
    fs::write(deep.join("RPM-GPG-KEY-test"), [armor(&one), armor(&two)].concat()).unwrap();
    let keyring = Keyring::usual(root.path());
    assert_eq!(keyring.len(), 2);
    assert!(keyring.contains(&one) && keyring.contains(&two));
    let mut named = Keyring::default();
    named.add(&deep.join("RPM-GPG-KEY-test")).unwrap();
    assert_eq!(named.len(), 2);
    for (path, expected) in [
        (folder.join("notes.gpg"), "notes.gpg: expected OpenPGP keys, found none"),
        (folder.join("none.gpg"), "none.gpg: No such file"),
    ] {
        let error = named.add(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(Keyring::usual(&root.path().join("none")).is_empty());
}

#[test]
fn fingerprints() {
    let print: Fingerprint = "b8b8 0b5b 623e ab6a d877 5c45 b7c5 d7d6 3509 47f8".parse().unwrap();
    assert_eq!(print.as_str(), "B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8");
    for text in ["", "B7C5D7D6350947F8", "B8B80B5B623EAB6AD8775C45B7C5D7D6350947FG"] {
        assert!(text.parse::<Fingerprint>().is_err(), "{text}");
    }
}
