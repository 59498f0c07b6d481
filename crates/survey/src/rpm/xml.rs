//! A pull parser over XML of any length, in bounded memory.
//!
//! `quick-xml` expands no entities of a document's own; document types are refused all the same, for an index has no use for
//! them. One event, the nesting and therefore memory are bounded here.

use std::io::{self, BufRead, BufReader, Read};

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::trust::{Digest, DigestKind};

/// The most bytes of one tag, text or comment. Descriptions and lists of changes are far below.
const MAX_EVENT: usize = 1 << 20;

/// The deepest nesting; indexes have 5.
const MAX_DEPTH: usize = 32;

/// The most bytes of a text that is kept.
const MAX_TEXT: usize = 8 << 10;

/// Why a document could not be read on.
#[derive(Debug)]
pub(crate) enum XmlError {
    /// The source failed.
    Io(io::Error),
    /// It is no sound document, or none that is taken.
    Damaged {
        /// In bytes from its start.
        offset: u64,
        /// Expected and found.
        detail: String,
    },
}

/// The events of a document.
pub(crate) struct Events<R: Read> {
    reader: Reader<Budget<BufReader<R>>>,
    buffer: Vec<u8>,
    depth: usize,
    rooted: bool,
}

impl<R: Read> Events<R> {
    pub(crate) fn new(source: R) -> Self {
        let source = Budget { inner: BufReader::with_capacity(64 << 10, source), left: 0 };
        Self { reader: Reader::from_reader(source), buffer: Vec::new(), depth: 0, rooted: false }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.reader.buffer_position()
    }

    pub(crate) fn damaged(&self, detail: impl Into<String>) -> XmlError {
        XmlError::Damaged { offset: self.offset(), detail: detail.into() }
    }

    /// The next event, with the depth it is at; `None` at a sound end.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, Event<'_>)>, XmlError> {
        self.buffer.clear();
        self.reader.get_mut().left = MAX_EVENT;
        let event = match self.reader.read_event_into(&mut self.buffer) {
            Ok(event) => event,
            Err(error) => {
                let offset = self.reader.error_position().max(self.reader.buffer_position());
                return Err(match error {
                    quick_xml::Error::Io(error) => match std::sync::Arc::try_unwrap(error) {
                        Ok(error) if is_budget(&error) => XmlError::Damaged {
                            offset,
                            detail: format!("a tag or text of more than {MAX_EVENT} bytes"),
                        },
                        Ok(error) => XmlError::Io(error),
                        Err(shared) => {
                            XmlError::Io(io::Error::new(shared.kind(), shared.to_string()))
                        }
                    },
                    error => XmlError::Damaged { offset, detail: error.to_string() },
                });
            }
        };
        let offset = self.reader.buffer_position();
        let damaged = |detail: String| XmlError::Damaged { offset, detail };
        let at = match &event {
            Event::Start(_) | Event::Empty(_) => {
                if self.depth == 0 && std::mem::replace(&mut self.rooted, true) {
                    return Err(damaged("expected one root element, found another".into()));
                }
                if self.depth == MAX_DEPTH {
                    return Err(damaged(format!("elements nested more than {MAX_DEPTH} deep")));
                }
                let at = self.depth + 1;
                if matches!(event, Event::Start(_)) {
                    self.depth = at;
                }
                at
            }
            Event::End(_) => {
                let at = self.depth;
                self.depth = at.saturating_sub(1);
                at
            }
            Event::DocType(_) => {
                return Err(damaged("a document type declaration, which no index has".into()));
            }
            Event::Eof if self.depth > 0 => {
                return Err(damaged(format!("it ends inside {} open elements", self.depth)));
            }
            Event::Eof if !self.rooted => return Err(damaged("it has no element".into())),
            Event::Eof => return Ok(None),
            _ => self.depth,
        };
        Ok(Some((at, event)))
    }
}

/// The value of an attribute by its whole name; predefined entities and character references are resolved, others refused.
pub(crate) fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        if attribute.key.as_ref() == name {
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| error.to_string())?;
            return Ok(Some(value.into_owned()));
        }
    }
    Ok(None)
}

/// A digest of a kind as indexes name it. Weak kinds (`md5`, `sha`) are none: nothing rests on them.
pub(crate) fn digest(kind: &str, hex: &str) -> Result<Digest, String> {
    let kind = match kind {
        "sha256" => DigestKind::Sha256,
        "sha512" => DigestKind::Sha512,
        other => {
            let other: String = other.escape_debug().take(40).collect();
            return Err(format!("checksum of kind `{other}`: expected sha256 or sha512"));
        }
    };
    Digest::parse(kind, hex).map_err(|error| error.to_string())
}

/// Collects the text of one element over its events.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

impl Text {
    /// Adds what belongs to a text, ignores the rest.
    pub(crate) fn add(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Text(text) => self.0.push_str(&text.xml10_content()),
            Event::CData(text) => self.0.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) => self.0.push(resolve(reference)?),
            _ => {}
        }
        if self.0.len() > MAX_TEXT {
            return Err(format!("a value of more than {MAX_TEXT} bytes"));
        }
        Ok(())
    }

    /// What was collected, without white space around it; begins anew.
    pub(crate) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.0);
        text.trim().to_owned()
    }
}

fn resolve(reference: &BytesRef<'_>) -> Result<char, String> {
    if let Some(found) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
        return Ok(found);
    }
    let name = reference.xml10_content();
    Ok(match name.as_ref() {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => return Err(format!("an entity `&{name};` that nothing defines")),
    })
}

/// A source that gives only so many bytes until it is told to go on.
struct Budget<R> {
    inner: R,
    left: usize,
}

const EXHAUSTED: &str = "budget of one event";

fn is_budget(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.to_string() == EXHAUSTED)
}

impl<R: BufRead> Read for Budget<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Budget<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let left = self.left;
        let bytes = self.inner.fill_buf()?;
        if left == 0 && !bytes.is_empty() {
            return Err(io::Error::other(EXHAUSTED));
        }
        Ok(&bytes[..bytes.len().min(left)])
    }

    fn consume(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count);
        self.inner.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Result<usize, String> {
        let mut events = Events::new(text);
        let mut count = 0;
        loop {
            match events.next() {
                Ok(Some(_)) => count += 1,
                Ok(None) => return Ok(count),
                Err(XmlError::Damaged { offset, detail }) => {
                    return Err(format!("{offset}: {detail}"));
                }
                Err(XmlError::Io(error)) => return Err(format!("io: {error}")),
            }
        }
    }

    #[test]
    fn sound_documents() {
        assert_eq!(all(b"<?xml version=\"1.0\"?>\n<a><b/>x&amp;y</a>\n"), Ok(9));
    }

    #[test]
    fn unsound_documents() {
        for (text, why) in [
            (&b""[..], "no element"),
            (b"hello", "no element"),
            (b"<a><b></a>", "expected"),
            (b"<a><b>", "inside 2 open elements"),
            (b"<a/><b/>", "another"),
            (b"<a", "tag not closed"),
            (b"<!DOCTYPE a [<!ENTITY x \"y\">]><a/>", "document type"),
            (b"<a>\xff</a>", ""),
        ] {
            let error = all(text).unwrap_err();
            assert!(error.contains(why), "{}: {error}", String::from_utf8_lossy(text));
        }
        let deep = "<a>".repeat(1_000_000);
        assert!(all(deep.as_bytes()).unwrap_err().contains("nested more than 32"));
        for long in ["<!--", "<a x='", "<a>", "<![CDATA[", "<?x ", "<!DOCTYPE "] {
            let text = format!("{long}{}", "y".repeat(4 << 20));
            let error = all(text.as_bytes()).unwrap_err();
            assert!(error.contains("more than 1048576"), "{long}: {error}");
        }
    }

    #[test]
    fn unknown_entities_are_refused() {
        let mut events = Events::new(&b"<a y='&z;'>&x;</a>"[..]);
        let (_, event) = events.next().unwrap().unwrap();
        let Event::Start(tag) = event else { panic!("{event:?}") };
        assert!(attribute(&tag, "y").is_err());
        let (_, event) = events.next().unwrap().unwrap();
        assert!(Text::default().add(&event).unwrap_err().contains("&x;"));
    }
}
