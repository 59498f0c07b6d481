//! pacman repositories: `NAME.db`, a compressed tar of `desc` files.
//!
//! Arch signs packages, not the database: what it says of a package is only as good as the connection, until the package was
//! read whole and its detached signature was checked.
//!
//! It does not read packages: see `artifact`.

mod database;
mod version;

use std::io::Read;

use fastpath_artifact::http::shown;
use fastpath_knowledge::Signed;

pub use crate::rpm::Wanted;
pub use version::compare;

use crate::rpm::{Access, Basis, IndexError, Keys, Open, Signature, base64, decompress, resolve};
use crate::trust::{Checked, Digest, DigestKind};
use database::Desc;

/// The largest database as it is fetched; core's is 0.2 MB, extra's 9 MB.
const MAX_DATABASE: u64 = 128 << 20;
const MAX_OPEN: u64 = 1 << 30;
const MAX_SIGNATURE: u64 = 256 << 10;
/// The largest package that is held against its signature, which covers all of it at once.
const MAX_SIGNED: u64 = 160 << 20;

/// A package that holds a kernel's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name: the kernel's package, or its headers.
    pub name: String,
    /// `[epoch:]version-pkgrel`.
    pub version: String,
    /// The repository's base, without credentials.
    pub repository: String,
    /// Where it is.
    pub url: String,
    /// Its size in bytes, as the database says.
    pub size: u64,
    /// Its digest, as the database says.
    pub digest: Digest,
    /// The detached signature over the whole file, if the database holds it.
    pub signature: Option<Vec<u8>>,
    /// What it can be trusted by so far.
    pub basis: Basis,
    /// Whether that rests on a key that has expired since.
    pub stale: bool,
}

impl Package {
    /// The kernel's release that a member's path names, if the configuration is in that member: as a plain file (headers) or
    /// inside the image (IKCONFIG). pacman's version `6.17.9.arch1-1` is not the release `6.17.9-arch1-1`, so the path tells.
    pub fn release_of<'m>(&self, member: &'m str) -> Option<&'m str> {
        let member = member.trim_start_matches("./").trim_start_matches('/');
        let below = member.strip_prefix("usr/").unwrap_or(member).strip_prefix("lib/modules/")?;
        let (release, rest) = below.split_once('/')?;
        let known = matches!(rest, "build/.config" | "config" | "vmlinuz");
        (known && !release.is_empty()).then_some(release)
    }
}

/// The packages that hold the configuration of the default kernel, the smallest first: each of the kernel's package and its
/// headers of the same version. Where one of them turns out not to have it, the next does.
///
/// # Errors
///
/// An [`IndexError`].
pub fn packages(access: &Access<'_>, wanted: &Wanted<'_>) -> Result<Vec<Package>, IndexError> {
    let mut found: Vec<Package> = Vec::new();
    for base in wanted.repositories {
        found.extend(in_repository(access, wanted, base)?);
    }
    // The kernel's package decides which version is the default one; headers of another version are of another kernel.
    let newest = found
        .iter()
        .filter(|package| package.name == wanted.package)
        .map(|package| package.version.clone())
        .reduce(|a, b| if compare(&b, &a).is_gt() { b } else { a });
    let Some(newest) = newest else {
        let bases: Vec<String> = wanted.repositories.iter().map(|base| shown(base)).collect();
        return Err(IndexError::NoPackage {
            url: if bases.is_empty() { "no repository".into() } else { bases.join(", ") },
            package: wanted.package.to_owned(),
            arch: wanted.arch.to_owned(),
        });
    };
    found.retain(|package| package.version == newest);
    found.sort_by_key(|package| package.size);
    Ok(found)
}

fn in_repository(
    access: &Access<'_>,
    wanted: &Wanted<'_>,
    base: &str,
) -> Result<Vec<Package>, IndexError> {
    let base = format!("{}/", base.trim_end_matches('/'));
    let url = format!("{base}{}.db", repository_name(&base)?);
    let mut content = access.cache.get(access.fetch, &url, MAX_DATABASE, access.meter)?;
    let (basis, stale) = if wanted.signed == Signed::Index {
        let signature =
            detached(access, &url, "expected a signed database, found no .sig beside it")?;
        let signature = wanted.keys.verify(&url, &content.bytes()?, &signature)?;
        (Basis::Index, signature.stale)
    } else {
        (Basis::Nothing, false)
    };
    let stream = decompress(&url, content.reader()?)?;
    let (open, progress) = Open::new(stream, MAX_OPEN);
    let headers = format!("{}-headers", wanted.package);
    let descs = database::read(open, &[wanted.package, &headers]);
    if progress.over.get() {
        let url = shown(&url);
        return Err(IndexError::TooLarge { url, what: "bytes decompressed", limit: MAX_OPEN });
    }
    let descs =
        descs.map_err(|error| IndexError::damaged(&url, FORMAT, error.offset, error.detail))?;
    let of_arch =
        |desc: &&Desc| desc.get("ARCH").is_none_or(|arch| arch == wanted.arch || arch == "any");
    descs.iter().filter(of_arch).map(|desc| package(desc, &base, &url, (basis, stale))).collect()
}

const FORMAT: &str = "package database";

/// `core` of `https://host/core/os/x86_64/`; where the layout is another one, the last folder's name.
fn repository_name(base: &str) -> Result<&str, IndexError> {
    let path = base.split_once("://").map_or(base, |(_, rest)| rest);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let name = match parts.as_slice() {
        [.., name, "os", _] | [_, .., name] => Some(*name),
        _ => None,
    };
    name.ok_or_else(|| {
        IndexError::unsupported(base, "expected an address that ends with REPOSITORY/os/ARCH")
    })
}

fn package(
    desc: &Desc,
    base: &str,
    url: &str,
    (basis, stale): (Basis, bool),
) -> Result<Package, IndexError> {
    let damaged = |detail: String| IndexError::damaged(url, FORMAT, desc.offset, detail);
    let need = |field: &str| {
        desc.get(field).ok_or_else(|| damaged(format!("a package without %{field}%")))
    };
    let file = need("FILENAME")?;
    // A file name, nothing else.
    if file.contains('/') {
        return Err(IndexError::Location {
            url: shown(url),
            location: file.chars().take(200).collect(),
            detail: "expected a file name",
        });
    }
    let version = need("VERSION")?;
    let sound = version.len() <= 200
        && version.chars().all(|c| c.is_ascii_alphanumeric() || "._+:-~@".contains(c));
    if !sound {
        return Err(damaged(format!("expected a version, found `{}`", version.escape_debug())));
    }
    let size = need("CSIZE")?;
    let size = size.parse().ok().filter(|size| *size > 0).ok_or_else(|| {
        damaged(format!("%CSIZE%: expected a number, found `{}`", size.escape_debug()))
    })?;
    let signature = match desc.get("PGPSIG") {
        Some(text) => {
            Some(base64(text).ok_or_else(|| damaged("%PGPSIG%: expected base64".to_owned()))?)
        }
        None => None,
    };
    Ok(Package {
        name: need("NAME")?.to_owned(),
        version: version.to_owned(),
        repository: shown(base),
        url: resolve(base, file, url)?,
        size,
        digest: Digest::parse(DigestKind::Sha256, need("SHA256SUM")?)
            .map_err(|error| damaged(format!("%SHA256SUM%: {error}")))?,
        signature,
        basis,
        stale,
    })
}

/// The detached signature beside a file.
fn detached(access: &Access<'_>, url: &str, missing: &str) -> Result<Vec<u8>, IndexError> {
    access.bytes(&format!("{url}.sig"), MAX_SIGNATURE).map_err(|error| {
        if error.is_missing() { IndexError::signature(url, missing) } else { error.into() }
    })
}

/// Checks the detached signature of a package: it covers the whole file, so only a package that is read whole can be held
/// against it, and its digest is checked on the way. A signature that the database does not hold is fetched from beside the
/// package. `None` if no key is at hand.
///
/// The file is held in memory: at most 160 MiB.
///
/// # Errors
///
/// An [`IndexError`]: also if a key is at hand and the package is not signed by it.
pub fn authenticate(
    access: &Access<'_>,
    package: &Package,
    keys: &Keys<'_>,
    source: &mut dyn Read,
) -> Result<Option<Signature>, IndexError> {
    if !keys.at_hand() {
        verify_whole(package, source)?;
        return Ok(None);
    }
    let url = package.url.as_str();
    if package.size > MAX_SIGNED {
        return Err(IndexError::TooLarge { url: shown(url), what: "bytes", limit: MAX_SIGNED });
    }
    let signature = package.signature.clone().map_or_else(
        || detached(access, url, "expected a signed package, found no .sig beside it"),
        Ok,
    )?;
    let mut bytes = Vec::new();
    checked(package, source)
        .read_to_end(&mut bytes)
        .map_err(|error| IndexError::of_read(url, "package", bytes.len() as u64, error))?;
    keys.verify(url, &bytes, &signature).map(Some)
}

/// Reads a whole package from its first byte and holds it against its size and digest.
///
/// # Errors
///
/// An [`IndexError`].
pub fn verify_whole(package: &Package, source: &mut dyn Read) -> Result<(), IndexError> {
    checked(package, source)
        .finish()
        .map_err(|error| IndexError::of_read(&package.url, "package", 0, error))
}

fn checked<'a>(package: &Package, source: &'a mut dyn Read) -> Checked<&'a mut dyn Read> {
    Checked::new(source, shown(&package.url), Some(package.size), package.digest.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_repositories() {
        for (base, expected) in [
            ("https://h/archlinux/core/os/x86_64/", "core"),
            ("file:///srv/extra/os/x86_64/", "extra"),
            ("https://h/cachyos/", "cachyos"),
            ("/srv/custom/", "custom"),
        ] {
            assert_eq!(repository_name(base).unwrap(), expected);
        }
        assert!(repository_name("https://h/").is_err());
    }
}
