//! What was read out of packages, kept for when nothing can be fetched: the configuration, where it was, and what it could be
//! trusted by then. Kept by address and digest, so another build of the package is another entry.

use std::fmt::Write as _;
use std::io::Read as _;

use fastpath_artifact::http::Cache;
use fastpath_artifact::{Evidence, Found};
use fastpath_knowledge::Release;

use crate::read::PackageReading;
use crate::record::Trust;
use crate::resolved::Resolved;

const MAGIC: &str = "fastpath reading 1";
/// More than any configuration.
const LIMIT: u64 = 16 << 20;

fn name(resolved: &Resolved) -> String {
    format!("reading:{}:{}", resolved.hash, resolved.url)
}

/// Keeps a reading; one without a configuration is not worth it. That it could not be kept is no matter: it is read again.
pub(crate) fn keep(cache: &Cache, resolved: &Resolved, reading: &PackageReading) {
    let Evidence::Config(text) = &reading.found.evidence else { return };
    let mut content = format!("{MAGIC}\ntrust: {}\n", reading.trust.as_str());
    let member = reading.found.member.as_deref().filter(|member| !member.contains('\n'));
    let release = reading.found.release.as_ref().map(Release::as_str);
    for (field, value) in [("member", member), ("release", release)] {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = writeln!(content, "{field}: {value}");
        }
    }
    content.push('\n');
    let mut content = content.into_bytes();
    content.extend_from_slice(text);
    let _ = cache.put(&name(resolved), content);
}

/// What is kept of a package. Nothing of it was read now.
pub(crate) fn find(cache: &Cache, resolved: &Resolved) -> Option<PackageReading> {
    let mut content = Vec::new();
    let mut kept = cache.kept(&name(resolved)).filter(|kept| kept.length <= LIMIT)?;
    kept.reader().ok()?.read_to_end(&mut content).ok()?;
    let end = memchr::memmem::find(&content, b"\n\n")?;
    let head = std::str::from_utf8(&content[..end]).ok()?;
    let mut lines = head.lines();
    if lines.next() != Some(MAGIC) {
        return None;
    }
    let (mut trust, mut member, mut release) = (None, None, None);
    for line in lines {
        match line.split_once(": ")? {
            ("trust", value) => trust = Trust::from_word(value),
            ("member", value) => member = Some(value.to_owned()),
            ("release", value) => release = Release::new(value),
            _ => {}
        }
    }
    let evidence = Evidence::Config(content.split_off(end + 2));
    let found = Found { member, release, evidence, bytes_read: 0 };
    Some(PackageReading { found, trust: joined(resolved.trust, trust?), bytes_read: 0 })
}

/// What a reading can be trusted by: the index as it is now, and what was checked of the package when it was read.
fn joined(index: Trust, reading: Trust) -> Trust {
    match (index, reading) {
        (Trust::Stale, _) | (_, Trust::Stale) => Trust::Stale,
        (_, Trust::Verified) => Trust::Verified,
        (Trust::Unsigned, reading) => reading,
        (index, _) => index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolved::Kind;
    use crate::trust::{Digest, DigestKind};

    fn resolved(hash: char, trust: Trust) -> Resolved {
        let digest = Digest::parse(DigestKind::Sha256, &hash.to_string().repeat(64)).unwrap();
        Resolved {
            package: "linux-image".into(),
            version: "1".into(),
            repository: "http://h.invalid/".into(),
            url: "http://h.invalid/a.deb".into(),
            size: 9,
            hash: digest.to_string(),
            trust,
            kind: Kind::Deb(digest),
        }
    }

    fn reading(trust: Trust) -> PackageReading {
        let found = Found {
            member: Some("data.tar.xz!boot/config-6.1".into()),
            release: Release::new("6.1"),
            evidence: Evidence::Config(b"CONFIG_PCI=y\n\nCONFIG_PCI_P2PDMA=y\n".to_vec()),
            bytes_read: 7,
        };
        PackageReading { found, trust, bytes_read: 7 }
    }

    #[test]
    fn a_reading_is_found_again_under_its_digest_only() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), true).unwrap();
        let asked = resolved('a', Trust::Partial);
        assert!(find(&cache, &asked).is_none());
        keep(&cache, &asked, &reading(Trust::Partial));
        let again = find(&cache, &asked).unwrap();
        let kept = reading(Trust::Partial).found;
        assert_eq!(again.found, Found { bytes_read: 0, ..kept });
        assert_eq!((again.trust, again.bytes_read), (Trust::Partial, 0));
        assert!(find(&cache, &resolved('b', Trust::Partial)).is_none());
    }

    #[test]
    fn trust_is_that_of_the_index_now_and_of_the_reading_then() {
        for (index, then, expected) in [
            (Trust::Partial, Trust::Partial, Trust::Partial),
            (Trust::Partial, Trust::Verified, Trust::Verified),
            (Trust::Stale, Trust::Verified, Trust::Stale),
            (Trust::Unsigned, Trust::Unsigned, Trust::Unsigned),
            (Trust::Unsigned, Trust::Partial, Trust::Partial),
            (Trust::Partial, Trust::Unsigned, Trust::Partial),
        ] {
            assert_eq!(joined(index, then), expected, "{index:?} {then:?}");
        }
    }
}
