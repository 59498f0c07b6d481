//! Package indexes: tens of megabytes of text, of which the kernel packages are kept.

use std::io::{self, BufRead, BufReader, Read};

use fastpath_artifact::http::{Cached, FetchError, Meter, join, shown};
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::release::Release;
use super::{DebianError, Repositories};
use crate::trust::{Checked, Digest, DigestKind, TrustError};

/// The largest index, compressed and not. Debian's has 9 and 50 MB.
const LARGEST: u64 = 128 << 20;
const LARGEST_TEXT: u64 = 1 << 30;
/// The longest line; dependencies and tags have some kilobytes.
const LONGEST_LINE: u64 = 1 << 20;
/// The most kernel packages; Ubuntu's updates have some ten thousand.
const MOST_PACKAGES: usize = 200_000;
/// The most memory xz may use, in KiB. `xz -9` needs 64 MiB.
const XZ_MEMORY: u32 = 80 << 10;

/// The kernel packages of a pocket, in the index's order.
#[derive(Clone, Debug, Default)]
pub struct Index {
    pub(super) packages: Vec<Package>,
}

impl Index {
    /// How many packages were kept.
    pub fn len(&self) -> usize {
        self.packages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packages.is_empty()
    }
}

/// One package of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: debversion::Version,
    /// `Pre-Depends` and `Depends`, as written.
    pub(super) depends: String,
    pub(super) filename: String,
    pub(super) size: u64,
    pub(super) digest: Digest,
}

pub(super) fn load(
    repositories: &Repositories<'_>,
    folder: &str,
    release: &Release,
    component: &str,
    arch: &str,
    index: &mut Index,
    meter: &Meter,
) -> Result<(), DebianError> {
    let stem = format!("{component}/binary-{arch}/Packages");
    let mut missing = None;
    for ending in [".xz", ".gz", ""] {
        let name = format!("{stem}{ending}");
        let Some((digest, size)) = release.files.get(&name) else { continue };
        // The list may name forms that a mirror does not keep.
        match one(repositories, folder, release, &name, digest, *size, index, meter) {
            Err(DebianError::Fetch(error)) if error.is_missing() => missing = Some(error),
            other => return other,
        }
    }
    Err(match missing {
        Some(error) => error.into(),
        None => DebianError::Release {
            url: release.url.clone(),
            field: "SHA256",
            expected: format!("`{stem}` in some form"),
            found: "none".to_owned(),
        },
    })
}

#[expect(clippy::too_many_arguments, reason = "one caller")]
fn one(
    repositories: &Repositories<'_>,
    folder: &str,
    release: &Release,
    name: &str,
    digest: &Digest,
    size: u64,
    index: &mut Index,
    meter: &Meter,
) -> Result<(), DebianError> {
    let plain = join(folder, name);
    if size > LARGEST {
        let error = FetchError::TooLarge { url: shown(&plain), limit: LARGEST, found: Some(size) };
        return Err(error.into());
    }
    let cache = repositories.cache;
    let get = |url: &str| cache.get(repositories.fetch, url, LARGEST, meter);
    if release.by_hash {
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        let url = join(folder, &format!("{parent}/by-hash/SHA256/{}", digest.hex()));
        // What is behind such an address never changes: if the hash fits there is nothing to ask.
        if let Some(kept) = cache.kept(&url) {
            let mut before = Index::default();
            if parse(kept, &url, name, digest, size, &mut before).is_ok() {
                index.packages.append(&mut before.packages);
                return Ok(());
            }
            cache.forget(&url);
        }
        match get(&url) {
            Ok(content) => return parse(content, &url, name, digest, size, index),
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    parse(get(&plain)?, &plain, name, digest, size, index)
}

/// Reads an index and checks that it is the one meant; only then are its packages taken.
fn parse(
    mut content: Cached,
    url: &str,
    name: &str,
    digest: &Digest,
    size: u64,
    index: &mut Index,
) -> Result<(), DebianError> {
    let url = shown(url);
    let mut checked = Checked::new(content.reader()?, &url, Some(size), digest.clone());
    let mut found = Vec::new();
    let result = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("xz") => {
            stanzas(XzReader::new_mem_limit(&mut checked, true, XZ_MEMORY), &url, &mut found)
        }
        Some("gz") => stanzas(MultiGzDecoder::new(&mut checked), &url, &mut found),
        _ => stanzas(&mut checked, &url, &mut found),
    };
    // That it is not the file meant is the better word than that it is damaged.
    if let Err(error) = checked.finish() {
        return Err(failed(&url, 0, error));
    }
    result?;
    index.packages.append(&mut found);
    Ok(())
}

fn failed(url: &str, line: u64, error: io::Error) -> DebianError {
    match error.downcast::<TrustError>() {
        Ok(error) => error.into(),
        Err(error) => {
            DebianError::Packages { url: url.to_owned(), line, detail: error.to_string() }
        }
    }
}

/// Whether packages of this name have to do with kernels.
fn wanted(name: &str) -> bool {
    ["linux-", "proxmox-", "pve-kernel-", "pve-headers-"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Fields of the paragraph that is being read.
#[derive(Default)]
struct Draft {
    line: u64,
    name: String,
    version: String,
    depends: String,
    filename: String,
    size: String,
    sha256: String,
    sha512: String,
}

fn stanzas(reader: impl Read, url: &str, found: &mut Vec<Package>) -> Result<(), DebianError> {
    let mut reader = BufReader::with_capacity(128 << 10, reader.take(LARGEST_TEXT));
    let mut buffer = Vec::new();
    let mut draft = Draft::default();
    let mut in_depends = false;
    let mut number = 0;
    loop {
        buffer.clear();
        let read = (&mut reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut buffer)
            .map_err(|error| failed(url, number, error))?;
        number += 1;
        let wrong =
            |line, detail: String| Err(DebianError::Packages { url: url.to_owned(), line, detail });
        if read as u64 == LONGEST_LINE {
            return wrong(number, format!("expected a line of at most {LONGEST_LINE} bytes"));
        }
        let line = buffer.trim_ascii_end();
        if line.is_empty() {
            if wanted(&draft.name) {
                let line = draft.line;
                match draft.finish() {
                    Ok(package) => found.push(package),
                    Err(detail) => return wrong(line, detail),
                }
            }
            draft = Draft::default();
            if found.len() > MOST_PACKAGES {
                return wrong(number, format!("expected at most {MOST_PACKAGES} kernel packages"));
            }
            if read == 0 {
                break;
            }
            continue;
        }
        if draft.line == 0 {
            draft.line = number;
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            // Of the fields that may go on with another line only dependencies are kept.
            if in_depends {
                draft.depends.push_str(&String::from_utf8_lossy(line));
            }
            continue;
        }
        in_depends = false;
        let Some(colon) = memchr::memchr(b':', line) else {
            return wrong(number, "expected `Field: value`".to_owned());
        };
        let field = match &line[..colon] {
            b"Package" => &mut draft.name,
            _ if !draft.name.is_empty() && !wanted(&draft.name) => continue,
            b"Version" => &mut draft.version,
            b"Depends" | b"Pre-Depends" => {
                in_depends = true;
                &mut draft.depends
            }
            b"Filename" => &mut draft.filename,
            b"Size" => &mut draft.size,
            b"SHA256" => &mut draft.sha256,
            b"SHA512" => &mut draft.sha512,
            _ => continue,
        };
        if !field.is_empty() {
            field.push_str(", ");
        }
        field.push_str(String::from_utf8_lossy(&line[colon + 1..]).trim());
    }
    if reader.into_inner().limit() == 0 {
        let detail = format!("expected at most {LARGEST_TEXT} bytes of text, found more");
        return Err(DebianError::Packages { url: url.to_owned(), line: number, detail });
    }
    Ok(())
}

impl Draft {
    fn finish(self) -> Result<Package, String> {
        let Self { name, version, depends, filename, size, sha256, sha512, .. } = self;
        let wrong = |field: &str, found: &str| format!("{name}: expected {field}, found `{found}`");
        let version = version.parse().map_err(|_| wrong("a version", &version))?;
        let size = size.parse().map_err(|_| wrong("a size", &size))?;
        let digest = if sha256.is_empty() {
            Digest::parse(DigestKind::Sha512, &sha512).map_err(|_| wrong("SHA256", ""))?
        } else {
            Digest::parse(DigestKind::Sha256, &sha256).map_err(|_| wrong("SHA256", &sha256))?
        };
        // A path below the repository's base and nothing else.
        if filename.is_empty()
            || filename.contains("://")
            || filename.split('/').any(|part| matches!(part, "" | ".."))
        {
            return Err(wrong("a file name below the repository", &filename));
        }
        Ok(Package { name, version, depends, filename, size, digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Package>, String> {
        let mut found = Vec::new();
        stanzas(text.as_bytes(), "u", &mut found).map(|()| found).map_err(|error| error.to_string())
    }

    fn stanza(name: &str) -> String {
        let digest = "a".repeat(64);
        format!(
            "Package: {name}\nVersion: 1:2~3-4\nDepends: a,\n b: c\nPre-Depends: d\nDescription: x\n y\nFilename: pool/x.deb\nSize: 7\nSHA256: {digest}\n"
        )
    }

    #[test]
    fn only_kernel_packages_are_kept() {
        let text = format!(
            "\n\n{}\n{}\n\n\n{}",
            stanza("bash"),
            stanza("linux-image-1"),
            stanza("proxmox-x")
        );
        let found = read(&text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name.as_str(), found[0].size), ("linux-image-1", 7));
        assert_eq!(found[0].depends, "a, b: c, d");
        assert_eq!(found[0].version.to_string(), "1:2~3-4");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, expected) in [
            ("1:2~3-4", "", "u: line 3: linux-x: expected a version, found ``"),
            ("Size: 7", "Size: -7", "u: line 3: linux-x: expected a size, found `-7`"),
            ("SHA256: a", "SHA256: ", "u: line 3: linux-x: expected SHA256"),
            ("pool/x", "../x", "u: line 3: linux-x: expected a file name below the repository"),
            ("pool/x", "/x", "u: line 3: linux-x: expected a file name below"),
            ("pool/x", "http://x/y", "u: line 3: linux-x: expected a file name below"),
            ("Size: 7", "Size", "u: line 11: expected `Field: value`"),
        ] {
            let text = format!("\n\n{}", stanza("linux-x").replace(from, to));
            let error = read(&text).unwrap_err();
            assert!(error.starts_with(expected), "{from}: {error}");
        }
        let error = read(&"x".repeat(2 << 20)).unwrap_err();
        assert!(error.contains("expected a line of at most"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text: String) {
            let _ = read(&text);
            let _ = read(&format!("Package: linux-x\n{text}\n{}", stanza("linux-x")));
        }
    }
}
