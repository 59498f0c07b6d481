//! `repodata/repomd.xml`: which index files there are.
//!
//! Format: <https://github.com/rpm-software-management/createrepo_c/blob/master/doc/>, and what `createrepo_c` writes:
//!
//! ```xml
//! <repomd xmlns="http://linux.duke.edu/metadata/repo">
//!   <revision>1764460800</revision>
//!   <data type="primary">
//!     <checksum type="sha256">...</checksum>           of the file
//!     <open-checksum type="sha256">...</open-checksum> of what it decompresses to
//!     <location href="repodata/...-primary.xml.gz"/>
//!     <size>...</size> <open-size>...</open-size>
//!   </data>
//! </repomd>
//! ```

use std::io::Read;

use quick_xml::events::Event;

use super::IndexError;
use super::location::Location;
use super::xml::{Events, Text, XmlError, attribute, digest};
use crate::trust::Digest;

const FORMAT: &str = "repomd.xml";

/// More than any repository has.
const MAX_FILES: usize = 1000;

/// One index file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexFile {
    pub(crate) kind: String,
    pub(crate) location: Option<Location>,
    pub(crate) digest: Option<Digest>,
    pub(crate) open_digest: Option<Digest>,
    pub(crate) size: Option<u64>,
    pub(crate) open_size: Option<u64>,
}

/// The index files that a `repomd.xml` at `url` names.
pub(crate) fn read(url: &str, source: impl Read) -> Result<Vec<IndexFile>, IndexError> {
    parse(&mut Events::new(source)).map_err(|error| match error {
        XmlError::Io(error) => IndexError::damaged(url, FORMAT, 0, error.to_string()),
        XmlError::Damaged { offset, detail } => IndexError::damaged(url, FORMAT, offset, detail),
    })
}

/// The primary index, of which only one kind is read.
pub(crate) fn primary<'a>(url: &str, files: &'a [IndexFile]) -> Result<&'a IndexFile, IndexError> {
    let mut named = files.iter().filter(|file| file.kind == "primary");
    match (named.next(), named.next()) {
        (Some(file), None) => Ok(file),
        (Some(_), Some(_)) => {
            Err(IndexError::damaged(url, FORMAT, 0, "expected one primary index, found several"))
        }
        (None, _) => {
            let other: Vec<&str> = files
                .iter()
                .map(|file| file.kind.as_str())
                .filter(|kind| kind.starts_with("primary"))
                .collect();
            let found = if other.is_empty() {
                "no primary index".to_owned()
            } else {
                format!("the primary index only as {}", other.join(", "))
            };
            Err(IndexError::unsupported(url, format!("{found}; primary.xml is what can be read")))
        }
    }
}

fn parse<R: Read>(events: &mut Events<R>) -> Result<Vec<IndexFile>, XmlError> {
    let mut files = Vec::new();
    let mut file = IndexFile::default();
    // Type of the checksum that is open.
    let mut algorithm = String::new();
    let mut text = Text::default();
    loop {
        let offset = events.offset();
        let damaged = |detail: String| XmlError::Damaged { offset, detail };
        let Some((depth, event)) = events.next()? else { return Ok(files) };
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let name = tag.local_name();
                match (depth, name.as_ref()) {
                    (1, "repomd") => {}
                    (1, other) => {
                        return Err(damaged(format!("expected `repomd`, found `{other}`")));
                    }
                    (2, "data") => {
                        let kind = attribute(tag, "type").map_err(damaged)?.unwrap_or_default();
                        file = IndexFile { kind, ..IndexFile::default() };
                    }
                    (3, "location") => {
                        let href = attribute(tag, "href").map_err(damaged)?.unwrap_or_default();
                        let base = attribute(tag, "xml:base").map_err(damaged)?;
                        file.location = Some(Location { base, href });
                    }
                    (3, "checksum" | "open-checksum") => {
                        algorithm = attribute(tag, "type").map_err(damaged)?.unwrap_or_default();
                    }
                    _ => {}
                }
                text.take();
            }
            Event::End(tag) => {
                let value = text.take();
                let number = || {
                    value
                        .parse()
                        .map_err(|_| damaged(format!("expected a number, found `{value}`")))
                };
                match (depth, tag.local_name().as_ref()) {
                    (3, "checksum") => {
                        file.digest = Some(digest(&algorithm, &value).map_err(damaged)?);
                    }
                    (3, "open-checksum") => {
                        file.open_digest = Some(digest(&algorithm, &value).map_err(damaged)?);
                    }
                    (3, "size") => file.size = Some(number()?),
                    (3, "open-size") => file.open_size = Some(number()?),
                    (2, "data") => {
                        if files.len() == MAX_FILES {
                            return Err(damaged(format!("more than {MAX_FILES} index files")));
                        }
                        files.push(std::mem::take(&mut file));
                    }
                    _ => {}
                }
            }
            // Only values are collected: what stands between elements is white space.
            event if depth == 3 => text.add(event).map_err(damaged)?,
            _ => {}
        }
    }
}
