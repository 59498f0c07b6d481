//! From the bases of repositories to the kernels in them.

use std::io::Read;

use fastpath_artifact::http::shown;
use fastpath_knowledge::Signed;

use super::IndexError;
use super::evr::Evr;
use super::header::{self, Length, MAX_HEAD};
use super::keys::{Keys, Signature};
use super::location::folder;
use super::packed::{Access, Open, decompress};
use super::primary::{self, Entry};
use super::repomd::{self, IndexFile};
use super::xml::XmlError;
use crate::trust::{Checked, Digest};

/// Where a repository's index begins, below its base.
pub(super) const REPOMD: &str = "repodata/repomd.xml";
pub(super) const MAX_REPOMD: u64 = 4 << 20;
const MAX_SIGNATURE: u64 = 256 << 10;
/// The largest primary index as it is fetched; the largest known ones are below 40 MiB.
const MAX_PRIMARY: u64 = 256 << 20;
/// And decompressed; the largest known ones are below 1 GiB.
const MAX_OPEN: u64 = 4 << 30;

/// What is looked for, here and in repositories of pacman.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Bases of the repositories: `http`, `https` or `file`; with pacman each the folder that holds a database named after the
    /// repository, `.../core/os/x86_64/` for `core.db`. The highest version over all of them counts.
    pub repositories: &'a [String],
    /// Name of the package that holds the configuration; with pacman that of the kernel, `linux`.
    pub package: &'a str,
    /// Its architecture.
    pub arch: &'a str,
    /// What the distribution signs.
    pub signed: Signed,
    /// The distribution's keys.
    pub keys: Keys<'a>,
}

/// What a package's bytes can be trusted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A signed index holds the package's digest.
    Index,
    /// The package's own signature, by a pinned key: see [`authenticate`].
    Package,
    /// Nothing that is signed, or no key is at hand.
    Nothing,
}

/// A package that holds a kernel's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Epoch, version and release.
    pub evr: Evr,
    /// Its architecture.
    pub arch: String,
    /// The repository's base, without credentials.
    pub repository: String,
    /// Where it is.
    pub url: String,
    /// Its size in bytes, as the index says.
    pub size: u64,
    /// Its digest, as the index says.
    pub digest: Digest,
    /// Where its header ends, as the index says: the payload begins there.
    pub header_end: Option<u64>,
    /// What it can be trusted by so far.
    pub basis: Basis,
    /// Whether that rests on a key that has expired since.
    pub stale: bool,
}

impl Package {
    /// Where the configuration may be in the package, without `./` in front, likeliest first, for the release that the
    /// package's version suggests.
    ///
    /// The suggestion is right for EL, Fedora, Oracle, Amazon and Azure kernels without a suffix, and wrong for others: SUSE
    /// leaves the rebuild counter out and adds the flavour (package `6.12.0-160000.37.1`, release
    /// `6.12.0-160000.37-default`), and 64k, rt and debug kernels have a suffix (`+64k`). The release is therefore taken
    /// from the member's path, which [`Package::release_of`] reads.
    pub fn candidates(&self) -> [String; 3] {
        let release = self.likely_release();
        [
            format!("lib/modules/{release}/config"),
            format!("usr/lib/modules/{release}/config"),
            format!("boot/config-{release}"),
        ]
    }

    /// `VERSION-RELEASE.ARCH`: see [`Package::candidates`] for when it is not the kernel's release.
    pub fn likely_release(&self) -> String {
        format!("{}.{}", self.evr.version_release(), self.arch)
    }

    /// The kernel's release that a member's path names, if the member is a configuration of a kernel of this package's
    /// version.
    pub fn release_of<'m>(&self, member: &'m str) -> Option<&'m str> {
        release_of(member).filter(|release| same_series(release, &self.evr.version))
    }
}

/// `R` of `[./][usr/]lib/modules/R/config` and `[./]boot/config-R`.
fn release_of(member: &str) -> Option<&str> {
    let member = member.trim_start_matches("./").trim_start_matches('/');
    let below = member.strip_prefix("usr/").unwrap_or(member);
    let release = match below.strip_prefix("lib/modules/") {
        Some(rest) => rest.strip_suffix("/config")?,
        None => member.strip_prefix("boot/config-")?,
    };
    (!release.is_empty() && !release.contains('/')).then_some(release)
}

/// Whether both begin with the same two numbers.
fn same_series(release: &str, version: &str) -> bool {
    let numbers = |text: &str| {
        let mut parts = text.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?))
    };
    numbers(release).is_some_and(|found| Some(found) == numbers(version))
}

/// Every package of the wanted name and architecture in all repositories, the highest version first: the first one is the
/// default kernel. One that is in several repositories is given once, as the first of them has it.
///
/// Any repository that cannot be read fails the whole: the highest version of the rest could be an older one.
///
/// # Errors
///
/// An [`IndexError`].
pub fn packages(access: &Access<'_>, wanted: &Wanted<'_>) -> Result<Vec<Package>, IndexError> {
    let mut found: Vec<Package> = Vec::new();
    for base in wanted.repositories {
        found.extend(in_repository(access, wanted, &folder(base))?);
        if found.len() > primary::MAX_KEPT {
            return Err(IndexError::TooLarge {
                url: shown(base),
                what: "packages",
                limit: primary::MAX_KEPT as u64,
            });
        }
    }
    if found.is_empty() {
        let bases: Vec<String> = wanted.repositories.iter().map(|base| shown(base)).collect();
        return Err(IndexError::NoPackage {
            url: if bases.is_empty() { "no repository".into() } else { bases.join(", ") },
            package: wanted.package.to_owned(),
            arch: wanted.arch.to_owned(),
        });
    }
    // Stable, so that among equals the first repository stays first.
    found.sort_by(|a, b| b.evr.cmp(&a.evr));
    found.dedup_by(|later, first| later.evr == first.evr);
    Ok(found)
}

fn in_repository(
    access: &Access<'_>,
    wanted: &Wanted<'_>,
    base: &str,
) -> Result<Vec<Package>, IndexError> {
    let url = format!("{base}{REPOMD}");
    let text = access.bytes(&url, MAX_REPOMD)?;
    let (basis, stale) = match wanted.signed {
        // Before a byte of it is parsed.
        Signed::Index => {
            let signature = verify_index(access, &wanted.keys, &url, &text)?;
            (Basis::Index, signature.stale)
        }
        Signed::Package | Signed::No => (Basis::Nothing, false),
    };
    let files = repomd::read(&url, &text[..])?;
    let index = repomd::primary(&url, &files)?;
    let (at, entries) = read_primary(access, base, &url, index, wanted)?;
    let package = |entry: Entry| -> Result<Package, IndexError> {
        Ok(Package {
            name: wanted.package.to_owned(),
            arch: wanted.arch.to_owned(),
            repository: shown(base),
            url: entry.location.resolve(base, &at)?,
            evr: entry.evr,
            size: entry.size,
            digest: entry.digest,
            header_end: entry.header_end,
            basis,
            stale,
        })
    };
    entries.into_iter().map(package).collect()
}

fn verify_index(
    access: &Access<'_>,
    keys: &Keys<'_>,
    url: &str,
    text: &[u8],
) -> Result<Signature, IndexError> {
    let signature = match access.bytes(&format!("{url}.asc"), MAX_SIGNATURE) {
        Ok(signature) => signature,
        Err(error) if error.is_missing() => {
            return Err(IndexError::signature(
                url,
                "expected a signed index, found no repomd.xml.asc beside it",
            ));
        }
        Err(error) => return Err(error.into()),
    };
    keys.verify(url, text, &signature)
}

/// The entries of the primary index, and where it is.
fn read_primary(
    access: &Access<'_>,
    base: &str,
    repomd: &str,
    index: &IndexFile,
    wanted: &Wanted<'_>,
) -> Result<(String, Vec<Entry>), IndexError> {
    let damaged = |detail: &str| IndexError::damaged(repomd, "repomd.xml", 0, detail);
    let location = index.location.as_ref().ok_or_else(|| damaged("primary: no location"))?;
    let digest = index.digest.as_ref().ok_or_else(|| damaged("primary: no checksum"))?;
    let url = location.resolve(base, repomd)?;
    let mut content = access.checked(&url, digest, index.size, MAX_PRIMARY)?;

    let too_large =
        || IndexError::TooLarge { url: shown(&url), what: "bytes decompressed", limit: MAX_OPEN };
    if index.open_size.is_some_and(|size| size > MAX_OPEN) {
        return Err(too_large());
    }
    let (open, state) = Open::new(decompress(&url, content.reader()?)?, MAX_OPEN);
    // The file was found right; what it decompresses to must be, too, where that was announced.
    let what = format!("{}, decompressed", shown(&url));
    let entries = match &index.open_digest {
        Some(digest) => {
            let open = Checked::new(open, what, index.open_size, digest.clone());
            primary::read(open, wanted.package, wanted.arch)
        }
        None => primary::read(open, wanted.package, wanted.arch),
    };
    if state.over.get() {
        return Err(too_large());
    }
    let entries = entries.map_err(|error| match error {
        XmlError::Io(error) => {
            IndexError::of_read(&url, "compressed primary.xml", state.count.get(), error)
        }
        XmlError::Damaged { offset, detail } => {
            IndexError::damaged(&url, "primary.xml", offset, detail)
        }
    })?;
    Ok((url, entries))
}

/// The head of a package that was held against its own signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// The bytes read: the package from its first byte to where its payload begins. What follows in the reader follows here.
    pub head: Vec<u8>,
    /// The digest of the payload as it is in the file, which the signed header gives; old packages have none.
    pub payload: Option<Digest>,
    /// Who signed it; `None` if no key is at hand.
    pub signature: Option<Signature>,
}

/// Reads the head of `package` from `source`, which is at the package's first byte, and holds it against the index and, if a
/// key is at hand, the package's own signature over its header.
///
/// # Errors
///
/// An [`IndexError`]: also if a key is at hand and the package is not signed by it. That is no weaker trust but a wrong
/// package.
pub fn authenticate(
    package: &Package,
    keys: &Keys<'_>,
    source: &mut dyn Read,
) -> Result<Authenticated, IndexError> {
    let url = package.url.as_str();
    let damaged =
        |error: header::Damaged| IndexError::damaged(url, "rpm header", error.offset, error.detail);
    let mut bytes = Vec::new();
    loop {
        let (Length::AtLeast(wanted) | Length::Known(wanted)) =
            header::head_length(&bytes).map_err(damaged)?;
        let missing = wanted.saturating_sub(bytes.len());
        if missing == 0 {
            break;
        }
        let limit = package.size.min(MAX_HEAD);
        if wanted as u64 > limit {
            let detail = format!("a head of {wanted} bytes, expected at most {limit}");
            return Err(IndexError::damaged(url, "rpm header", bytes.len() as u64, detail));
        }
        let at = bytes.len() as u64;
        let read = source
            .take(missing as u64)
            .read_to_end(&mut bytes)
            .map_err(|error| IndexError::of_read(url, "rpm package", at, error))?;
        if read < missing {
            // A page that says that there is no package is better named as what it is.
            header::head_length(&bytes).map_err(damaged)?;
            let detail = "it ends inside the head";
            return Err(IndexError::damaged(url, "rpm header", bytes.len() as u64, detail));
        }
    }
    let head = header::read(&bytes).map_err(damaged)?;
    let same = |what, expected: String, found: String| {
        if expected == found {
            Ok(())
        } else {
            Err(IndexError::Mismatch { url: shown(url), what, expected, found })
        }
    };
    // An old package, soundly signed, under a new one's name is what a bad mirror would offer.
    let evr =
        Evr { epoch: head.epoch, version: head.version.clone(), release: head.release.clone() };
    same("name", package.name.clone(), head.name.clone())?;
    same("version", package.evr.to_string(), evr.to_string())?;
    same("architecture", package.arch.clone(), head.arch.clone())?;
    if let Some(end) = package.header_end {
        same("end of the header", end.to_string(), head.end.to_string())?;
    }
    let signature = keys.at_hand().then(|| verify_header(url, keys, &head)).transpose()?;
    let payload = head.payload.clone();
    Ok(Authenticated { payload, signature, head: bytes })
}

fn verify_header(
    url: &str,
    keys: &Keys<'_>,
    head: &header::Head<'_>,
) -> Result<Signature, IndexError> {
    if head.signatures.is_empty() {
        return Err(IndexError::signature(
            url,
            "expected a signed package, found no signature over its header",
        ));
    }
    // Packets stand one behind the other in any file of signatures.
    keys.verify(url, head.signed, &head.signatures.concat())
}

/// Reads a whole package from its first byte and holds it against its size, its digest, and the digest that its signed
/// header gives of its payload.
///
/// # Errors
///
/// An [`IndexError`].
pub fn verify_whole(
    package: &Package,
    authenticated: Option<&Authenticated>,
    source: &mut dyn Read,
) -> Result<(), IndexError> {
    let url = package.url.as_str();
    let what = shown(url);
    let of_read = |error| IndexError::of_read(url, "rpm package", 0, error);
    let mut whole = Checked::new(source, what.clone(), Some(package.size), package.digest.clone());
    if let Some(Authenticated { head, payload: Some(digest), .. }) = authenticated {
        let length = head.len() as u64;
        std::io::copy(&mut (&mut whole).take(length), &mut std::io::sink()).map_err(of_read)?;
        let payload = Checked::new(&mut whole, format!("{what}, payload"), None, digest.clone());
        payload.finish().map_err(of_read)?;
    }
    whole.finish().map_err(of_read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, release: &str) -> Package {
        Package {
            name: name.into(),
            evr: Evr { epoch: 0, version: version.into(), release: release.into() },
            arch: "x86_64".into(),
            repository: "http://h/".into(),
            url: "http://h/p.rpm".into(),
            size: 1,
            digest: Digest::of(crate::trust::DigestKind::Sha256, b""),
            header_end: None,
            basis: Basis::Nothing,
            stale: false,
        }
    }

    #[test]
    fn releases_come_from_members() {
        let el = package("kernel-core", "5.14.0", "687.49.1.el9_8");
        let release = "5.14.0-687.49.1.el9_8.x86_64";
        assert_eq!(el.candidates()[0], format!("lib/modules/{release}/config"));
        let suse = package("kernel-default", "6.12.0", "160000.37.1");
        for (package, member, expected) in [
            (&el, "./lib/modules/5.14.0-687.49.1.el9_8.x86_64/config", Some(release)),
            (&el, "boot/config-5.14.0-687.49.1.el9_8.x86_64", Some(release)),
            (&el, "lib/modules/5.14.0-1.el9.x86_64+64k/config", Some("5.14.0-1.el9.x86_64+64k")),
            (
                &suse,
                "./usr/lib/modules/6.12.0-160000.37-default/config",
                Some("6.12.0-160000.37-default"),
            ),
            (&suse, "usr/lib/modules/6.4.0-1-default/config", None),
            (&suse, "usr/lib/modules/6.12.0-1-default/build/config", None),
            (&suse, "usr/lib/modules//config", None),
            (&suse, "etc/config", None),
        ] {
            assert_eq!(package.release_of(member), expected, "{member}");
        }
    }
}
