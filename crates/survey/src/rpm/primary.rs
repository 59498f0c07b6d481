//! `primary.xml`: the packages. Hundreds of megabytes in large distributions, so it is read as a stream and only packages
//! of one name and architecture are kept.
//!
//! ```xml
//! <metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="..." packages="N">
//!   <package type="rpm">
//!     <name>kernel-core</name> <arch>x86_64</arch>
//!     <version epoch="0" ver="5.14.0" rel="687.49.1.el9_8"/>
//!     <checksum type="sha256" pkgid="YES">...</checksum>
//!     <size package="..." installed="..." archive="..."/>
//!     <location xml:base="..." href="Packages/k/..."/>
//!     <format> <rpm:header-range start="..." end="..."/> ... </format>
//!   </package>
//! </metadata>
//! ```

use std::io::Read;

use quick_xml::events::{BytesStart, Event};

use super::evr::Evr;
use super::location::Location;
use super::xml::{Events, Text, XmlError, attribute, digest};
use crate::trust::Digest;

/// The most packages of one name. Rolling distributions keep dozens of kernels.
pub(crate) const MAX_KEPT: usize = 10_000;

/// One package of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) evr: Evr,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) location: Location,
    /// Where the package's header ends, if the index says it.
    pub(crate) header_end: Option<u64>,
}

/// The packages called `name` for `arch`, in the order of the file.
pub(crate) fn read(source: impl Read, name: &str, arch: &str) -> Result<Vec<Entry>, XmlError> {
    let mut events = Events::new(source);
    let mut kept = Vec::new();
    let mut announced = None;
    let mut count = 0_u64;
    let mut package = Package::default();
    let mut text = Text::default();
    loop {
        let offset = events.offset();
        let damaged = |detail: String| XmlError::Damaged { offset, detail };
        let Some((depth, event)) = events.next()? else { break };
        match &event {
            Event::Start(tag) | Event::Empty(tag) if depth <= 4 => {
                match (depth, tag.local_name().as_ref()) {
                    (1, "metadata") => {
                        announced = number(tag, "packages").map_err(damaged)?;
                    }
                    (1, other) => {
                        return Err(damaged(format!("expected `metadata`, found `{other}`")));
                    }
                    (2, "package") => package = Package::default(),
                    (2, other) => {
                        return Err(damaged(format!("expected `package`, found `{other}`")));
                    }
                    (3, _) => {
                        package.open(tag).map_err(damaged)?;
                        text.take();
                    }
                    (4, "header-range") => {
                        package.header_end = number(tag, "end").map_err(damaged)?;
                    }
                    _ => {}
                }
                if depth == 2 && matches!(event, Event::Empty(_)) {
                    return Err(damaged("a package without a name".into()));
                }
            }
            Event::End(tag) => match (depth, tag.local_name().as_ref()) {
                (3, "name") => package.name = Some(text.take()),
                (3, "arch") => package.arch = Some(text.take()),
                (3, "checksum") => package.digest = text.take(),
                (2, "package") => {
                    count += 1;
                    let package = std::mem::take(&mut package);
                    let named = package
                        .name
                        .as_deref()
                        .ok_or_else(|| damaged("a package without a name".into()))?;
                    if named == name && package.arch.as_deref() == Some(arch) {
                        if kept.len() == MAX_KEPT {
                            return Err(damaged(format!("more than {MAX_KEPT} packages `{name}`")));
                        }
                        kept.push(
                            package
                                .finish()
                                .map_err(|detail| damaged(format!("package `{name}`: {detail}")))?,
                        );
                    }
                }
                _ => {}
            },
            event if depth == 3 && package.reading => text.add(event).map_err(damaged)?,
            _ => {}
        }
    }
    // A list that was cut and closed again looks whole otherwise.
    if announced.is_some_and(|announced| announced != count) {
        let announced = announced.unwrap_or_default();
        return Err(events.damaged(format!("expected {announced} packages, found {count}")));
    }
    Ok(kept)
}

/// What is known so far of the package that is read.
#[derive(Debug, Default)]
struct Package {
    name: Option<String>,
    arch: Option<String>,
    evr: Option<(String, String, String)>,
    algorithm: Option<String>,
    digest: String,
    size: Option<u64>,
    location: Option<Location>,
    header_end: Option<u64>,
    /// Whether the open element's text is wanted.
    reading: bool,
}

impl Package {
    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let name = tag.local_name();
        self.reading = matches!(name.as_ref(), "name" | "arch" | "checksum");
        let value = |key| attribute(tag, key);
        match name.as_ref() {
            "version" => {
                self.evr = Some((
                    value("epoch")?.unwrap_or_default(),
                    value("ver")?.unwrap_or_default(),
                    value("rel")?.unwrap_or_default(),
                ));
            }
            "checksum" => self.algorithm = value("type")?,
            "size" => self.size = number(tag, "package")?,
            "location" => {
                let href = value("href")?.unwrap_or_default();
                self.location = Some(Location { base: value("xml:base")?, href });
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Entry, String> {
        let (epoch, version, release) = self.evr.ok_or("no version")?;
        let epoch = match epoch.as_str() {
            "" => 0,
            epoch => {
                epoch.parse().map_err(|_| format!("expected a number as epoch, found `{epoch}`"))?
            }
        };
        // Both become part of paths and file names.
        for part in [&version, &release] {
            let sound = !part.is_empty()
                && part.len() <= 200
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "._+~^".contains(c));
            if !sound {
                return Err(format!("expected a version, found `{}`", part.escape_debug()));
            }
        }
        Ok(Entry {
            evr: Evr { epoch, version, release },
            digest: digest(&self.algorithm.ok_or("no checksum")?, &self.digest)?,
            size: self.size.filter(|size| *size > 0).ok_or("no size")?,
            location: self.location.ok_or("no location")?,
            header_end: self.header_end,
        })
    }
}

fn number(tag: &BytesStart<'_>, name: &str) -> Result<Option<u64>, String> {
    let Some(value) = attribute(tag, name)? else { return Ok(None) };
    let number = value
        .parse()
        .map_err(|_| format!("{name}: expected a number, found `{}`", value.escape_debug()))?;
    Ok(Some(number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOUND: &str = r#"<?xml version="1.0"?>
<metadata xmlns="c" xmlns:rpm="r" packages="1"><package type="rpm"><name>kernel-core</name>
<arch>x86_64</arch><version epoch="0" ver="5.14.0" rel="1.el9"/>
<checksum type="sha256" pkgid="YES">abababababababababababababababababababababababababababababababab</checksum>
<summary>a &amp; b &#38; <![CDATA[c]]></summary><size package="9" installed="1"/>
<location xml:base=".." href="a.rpm"/><format><rpm:header-range start="4" end="8"/></format>
</package></metadata>"#;

    #[test]
    fn sound() {
        let found = read(SOUND.as_bytes(), "kernel-core", "x86_64").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].size, found[0].header_end), (9, Some(8)));
        assert!(read(SOUND.as_bytes(), "kernel", "x86_64").unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn damaged_documents_are_survived(
            cut in 0..SOUND.len(),
            changes in prop::collection::vec((0..SOUND.len(), any::<u8>()), 0..4),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut bytes = SOUND.as_bytes().to_vec();
            for (at, value) in changes {
                bytes[at] = value;
            }
            let _ = read(&bytes[..], "kernel-core", "x86_64");
            bytes.truncate(cut);
            prop_assert!(read(&bytes[..], "kernel-core", "x86_64").is_err());
            bytes.extend(noise);
            let _ = read(&bytes[..], "kernel-core", "x86_64");
            let _ = super::super::repomd::read("u", &bytes[..]);
        }
    }
}
