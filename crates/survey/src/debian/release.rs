//! The signed file of a suite.

use std::collections::HashMap;

use fastpath_artifact::http::{Meter, join, shown};

use super::{DebianError, Pocket, Repositories, Standing};
use crate::trust::{
    Digest, DigestKind, Fingerprint, Signed, Signer, verify_cleartext, verify_detached,
};

/// The largest signed file; Debian's have up to 0.2 MB.
const LARGEST: u64 = 8 << 20;
const LARGEST_SIGNATURE: u64 = 256 << 10;
/// A clock may be wrong by so many seconds.
const SKEW: i64 = 24 * 60 * 60;

pub(super) struct Release {
    pub(super) url: String,
    pub(super) standing: Standing,
    pub(super) signers: Vec<Signer>,
    pub(super) date: i64,
    /// Whether files can be had under names that are their hashes.
    pub(super) by_hash: bool,
    /// Digest and size of files, by name below the suite's folder.
    pub(super) files: HashMap<String, (Digest, u64)>,
}

pub(super) fn load(
    repositories: &Repositories<'_>,
    folder: &str,
    pocket: &Pocket,
    pins: &[Fingerprint],
    meter: &Meter,
) -> Result<Release, DebianError> {
    let now = repositories.now;
    let keyring = repositories.keyring;
    let get = |name: &str, limit| {
        let url = join(folder, name);
        repositories.cache.get(repositories.fetch, &url, limit, meter)?.bytes()
    };
    let inline = join(folder, "InRelease");
    let (url, signed) = match get("InRelease", LARGEST) {
        Ok(content) => {
            let signed = verify_cleartext(&shown(&inline), &content, keyring, pins, now)?;
            (inline, signed)
        }
        // Only if it is not there: one that is there and wrong is not passed over.
        Err(error) if error.is_missing() => {
            let url = join(folder, "Release");
            let content = get("Release", LARGEST)?;
            let signature = get("Release.gpg", LARGEST_SIGNATURE)?;
            let mut signed =
                verify_detached(&shown(&url), &content, &signature, keyring, pins, now)?;
            signed.text = String::from_utf8_lossy(&content).into_owned();
            (url, signed)
        }
        Err(error) => return Err(error.into()),
    };
    judge(shown(&url), signed, pocket, repositories.allow_stale, now)
}

fn judge(
    url: String,
    signed: Signed,
    pocket: &Pocket,
    allow_stale: bool,
    now: i64,
) -> Result<Release, DebianError> {
    let only_expired = signed.only_expired();
    let Signed { text, signers } = signed;
    let fields = Fields::parse(&text);
    let wrong = |field, expected: &str, found: &str| DebianError::Release {
        url: url.clone(),
        field,
        expected: expected.to_owned(),
        found: format!("`{found}`"),
    };
    // A mirror must not answer for one suite with what was signed for another. `buster/updates` is suite `buster`.
    let wanted = pocket.suite.split('/').next().unwrap_or_default();
    let names = [fields.get("Suite"), fields.get("Codename")];
    if !names.contains(&wanted) && !names.contains(&pocket.suite.as_str()) {
        return Err(wrong("Suite", &format!("`{}`", pocket.suite), &names.join("` and `")));
    }
    let date =
        time(fields.get("Date")).ok_or_else(|| wrong("Date", "a date", fields.get("Date")))?;
    if date > now + SKEW {
        return Err(wrong("Date", "a date that is not in the future", fields.get("Date")));
    }
    let mut standing = Standing::Signed;
    let allowed = allow_stale || !pocket.check_valid_until;
    let until = fields.get("Valid-Until");
    if !until.is_empty() {
        let end = time(until).ok_or_else(|| wrong("Valid-Until", "a date", until))?;
        if end < now {
            if !allowed {
                let (until, now) = (until.to_owned(), date_text(now));
                return Err(DebianError::Expired { url, until, now });
            }
            standing = Standing::Stale(format!("the index was good until {until}"));
        }
    }
    if only_expired && let Some(signer) = signers.first() {
        let key = signer.key.clone();
        if !allow_stale {
            return Err(DebianError::ExpiredKey { url, key });
        }
        standing = Standing::Stale(format!("the key {key} has expired since it signed"));
    }
    let files = table(fields.get("SHA256"), DigestKind::Sha256)
        .map_err(|line| wrong("SHA256", "digest, size and name", &line))?;
    if files.is_empty() {
        return Err(wrong("SHA256", "a table of files", ""));
    }
    let by_hash = fields.get("Acquire-By-Hash") == "yes";
    Ok(Release { url, standing, signers, date, by_hash, files })
}

/// Fields of the one paragraph a signed file is. Later lines of a field keep their line ends.
struct Fields<'a>(HashMap<&'a str, &'a str>);

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Self {
        let mut fields = HashMap::new();
        let mut rest = text.trim_start_matches('\n');
        while let Some((name, after)) =
            rest.split_once(':').filter(|(name, _)| !name.contains('\n'))
        {
            // To the first line that does not go on with a blank.
            let mut end = 0;
            for line in after.split_inclusive('\n') {
                if end > 0 && !line.starts_with([' ', '\t']) {
                    break;
                }
                end += line.len();
            }
            // The first of two fields of one name counts, as for apt.
            fields.entry(name).or_insert_with(|| after[..end].trim());
            rest = &after[end..];
        }
        Self(fields)
    }

    fn get(&self, name: &str) -> &'a str {
        self.0.get(name).copied().unwrap_or_default()
    }
}

fn table(text: &str, kind: DigestKind) -> Result<HashMap<String, (Digest, u64)>, String> {
    let mut files = HashMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_ascii_whitespace();
        let entry = (|| {
            let digest = Digest::parse(kind, words.next()?).ok()?;
            let size = words.next()?.parse().ok()?;
            Some((words.next()?.to_owned(), (digest, size)))
        })();
        let (name, entry) = entry.ok_or_else(|| line.trim().to_owned())?;
        files.insert(name, entry);
    }
    Ok(files)
}

/// Seconds since 1970 of a date as in mails.
fn time(text: &str) -> Option<i64> {
    jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp().as_second())
}

fn date_text(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_their_tables() {
        let text = "Origin: Test\nSuite: s\nSHA256:\n a 1 b\n c 2 d\nDate: x\nDate: y\n";
        let fields = Fields::parse(text);
        assert_eq!(fields.get("SHA256"), "a 1 b\n c 2 d");
        assert_eq!(
            (fields.get("Date"), fields.get("Origin"), fields.get("none")),
            ("x", "Test", "")
        );
        assert!(Fields::parse("").0.is_empty());
        assert!(Fields::parse("no colon\n").0.is_empty());
        let digest = "0".repeat(64);
        let files =
            table(&format!("{digest} 12 main/a\n\n {digest} 3 b\n"), DigestKind::Sha256).unwrap();
        assert_eq!(files["main/a"].1, 12);
        for line in ["x 1 a".to_owned(), format!("{digest} y a"), format!("{digest} 1")] {
            assert_eq!(table(&line, DigestKind::Sha256).unwrap_err(), line);
        }
    }

    #[test]
    fn dates() {
        assert_eq!(time("Thu, 01 Jan 1970 00:01:00 UTC"), Some(60));
        assert_eq!(time("Thu, 01 Jan 1970 01:00:00 +0100"), Some(0));
        assert_eq!(time("yesterday"), None);
        assert_eq!(date_text(0), "1970-01-01T00:00:00Z");
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text: String) {
            let fields = Fields::parse(&text);
            let _ = table(fields.get("SHA256"), DigestKind::Sha256);
            let _ = time(&text);
        }
    }
}
