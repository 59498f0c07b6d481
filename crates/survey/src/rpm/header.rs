//! The head of a package file: who signed it, and what it says it is.
//!
//! ```text
//!  0     lead, 96 bytes: ed ab ee db, nothing else of use
//! 96     signature header: 8e ad e8 01 00000000, count, length (big endian), count entries of 16 bytes, data;
//!        padded to 8 bytes
//!  ..    header, the same form: what header-only signatures cover, from its magic to its end
//!  ..    payload
//! ```
//!
//! Each entry is tag, type, offset into the data, count. Format:
//! <https://rpm-software-management.github.io/rpm/manual/format_v4.html>, tags:
//! <https://rpm-software-management.github.io/rpm/manual/tags.html>.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::trust::{Digest, DigestKind};

const LEAD: usize = 96;
const LEAD_MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];
const HEADER_MAGIC: [u8; 8] = [0x8e, 0xad, 0xe8, 0x01, 0, 0, 0, 0];
const INTRO: usize = 16;

/// The most bytes of lead, signature and header: file lists of a kernel with all its modules are below 2 MiB. rpm itself
/// takes 256 MiB.
pub(crate) const MAX_HEAD: u64 = 32 << 20;

/// More entries than any header has; rpm's own bound.
const MAX_ENTRIES: u32 = 0xffff;

mod tag {
    // Signature header.
    pub(super) const DSA: u32 = 267;
    pub(super) const RSA: u32 = 268;
    pub(super) const OPENPGP: u32 = 278;
    // Header.
    pub(super) const NAME: u32 = 1000;
    pub(super) const VERSION: u32 = 1001;
    pub(super) const RELEASE: u32 = 1002;
    pub(super) const EPOCH: u32 = 1003;
    pub(super) const ARCH: u32 = 1022;
    pub(super) const PAYLOAD_DIGEST: u32 = 5092;
    pub(super) const PAYLOAD_DIGEST_ALGORITHM: u32 = 5093;
}

mod kind {
    pub(super) const INT32: u32 = 4;
    pub(super) const STRING: u32 = 6;
    pub(super) const BINARY: u32 = 7;
    pub(super) const STRING_ARRAY: u32 = 8;
}

/// The head does not keep to the format: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damaged {
    pub(crate) offset: u64,
    pub(crate) detail: String,
}

fn damaged(offset: usize, detail: impl Into<String>) -> Damaged {
    Damaged { offset: offset as u64, detail: detail.into() }
}

/// The head of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    /// Packets of `OpenPGP`, each a signature over `signed`.
    pub(crate) signatures: Vec<Vec<u8>>,
    /// The header's bytes.
    pub(crate) signed: &'a [u8],
    pub(crate) name: String,
    pub(crate) epoch: u32,
    pub(crate) version: String,
    pub(crate) release: String,
    pub(crate) arch: String,
    /// Of the payload as it is in the file, if the header has one.
    pub(crate) payload: Option<Digest>,
    /// Where the payload begins.
    pub(crate) end: usize,
}

/// What [`head_length`] can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// At least so many bytes are needed to tell more.
    AtLeast(usize),
    /// Lead, signature and header end here.
    Known(usize),
}

/// How many bytes of a package its head has, told from its beginning.
pub(crate) fn head_length(bytes: &[u8]) -> Result<Length, Damaged> {
    if let Some(lead) = bytes.get(..4)
        && lead != LEAD_MAGIC
    {
        return Err(damaged(0, "expected the magic of an rpm package"));
    }
    let mut at = LEAD;
    for signature in [true, false] {
        let Some(intro) = bytes.get(at..at + INTRO) else {
            return Ok(Length::AtLeast(at + INTRO));
        };
        let table = Table::sizes(intro, at)?;
        at += INTRO + table.0 + table.1;
        if signature {
            at = at.next_multiple_of(8);
        }
        if at as u64 > MAX_HEAD {
            return Err(damaged(at, format!("a head of more than {MAX_HEAD} bytes")));
        }
    }
    Ok(Length::Known(at))
}

/// Reads a head, all of which must be there.
pub(crate) fn read(bytes: &[u8]) -> Result<Head<'_>, Damaged> {
    let Length::Known(end) = head_length(bytes)? else {
        return Err(damaged(bytes.len(), "it ends inside the head"));
    };
    let bytes = bytes.get(..end).ok_or_else(|| damaged(bytes.len(), "it ends inside the head"))?;
    let signature = Table::read(bytes, LEAD)?;
    let start = signature.end.next_multiple_of(8);
    let header = Table::read(bytes, start)?;

    let mut signatures = Vec::new();
    for tag in [tag::RSA, tag::DSA] {
        if let Some(packet) = signature.binary(tag)? {
            signatures.push(packet.to_vec());
        }
    }
    // rpm 6: any number of packets, in base64.
    for text in signature.strings(tag::OPENPGP)?.unwrap_or_default() {
        let at = signature.start;
        signatures.push(base64(&text).ok_or_else(|| damaged(at, "expected base64 as signature"))?);
    }

    let need = |tag, what: &str| {
        header.string(tag)?.ok_or_else(|| damaged(start, format!("the header has no {what}")))
    };
    let payload = match header.strings(tag::PAYLOAD_DIGEST)?.as_deref() {
        Some([hex, ..]) => {
            // OpenPGP's number of the algorithm.
            let algorithm = match header.number(tag::PAYLOAD_DIGEST_ALGORITHM)? {
                None | Some(8) => DigestKind::Sha256,
                Some(10) => DigestKind::Sha512,
                Some(other) => {
                    return Err(damaged(
                        start,
                        format!("payload digest of kind {other}: expected 8 or 10"),
                    ));
                }
            };
            Some(Digest::parse(algorithm, hex).map_err(|error| damaged(start, error.to_string()))?)
        }
        _ => None,
    };
    Ok(Head {
        signatures,
        signed: &bytes[start..end],
        name: need(tag::NAME, "name")?,
        epoch: header.number(tag::EPOCH)?.unwrap_or(0),
        version: need(tag::VERSION, "version")?,
        release: need(tag::RELEASE, "release")?,
        arch: need(tag::ARCH, "architecture")?,
        payload,
        end,
    })
}

/// One header: its entries and its data.
struct Table<'a> {
    entries: &'a [[u8; 16]],
    data: &'a [u8],
    /// Where it starts and ends in the package.
    start: usize,
    end: usize,
}

/// One entry.
struct Value<'a> {
    kind: u32,
    count: usize,
    /// All data from where the value begins.
    data: &'a [u8],
    /// Where the entry stands in the package.
    offset: usize,
}

impl<'a> Table<'a> {
    /// Bytes of the entries and of the data.
    fn sizes(intro: &[u8], at: usize) -> Result<(usize, usize), Damaged> {
        if intro.get(..8) != Some(&HEADER_MAGIC) {
            return Err(damaged(at, "expected the magic of a header"));
        }
        let (count, length) = (word(intro, 8), word(intro, 12));
        let (Some(count), Some(length)) = (count, length) else {
            return Err(damaged(at, "it ends inside a header"));
        };
        if count == 0 || count > MAX_ENTRIES {
            return Err(damaged(
                at + 8,
                format!("expected 1 to {MAX_ENTRIES} entries, found {count}"),
            ));
        }
        if u64::from(length) > MAX_HEAD {
            return Err(damaged(
                at + 12,
                format!("expected at most {MAX_HEAD} bytes of data, found {length}"),
            ));
        }
        Ok((count as usize * 16, length as usize))
    }

    fn read(bytes: &'a [u8], start: usize) -> Result<Self, Damaged> {
        let short = || damaged(bytes.len(), "it ends inside a header");
        let intro = bytes.get(start..start + INTRO).ok_or_else(short)?;
        let (entries, data) = Self::sizes(intro, start)?;
        let at = start + INTRO;
        let end = at + entries + data;
        let (entries, rest) = bytes.get(at..end).ok_or_else(short)?.split_at(entries);
        Ok(Self { entries: entries.as_chunks().0, data: rest, start, end })
    }

    /// An entry. A tag that is there twice is no sound header: two readers could take different ones.
    fn find(&self, tag: u32) -> Result<Option<Value<'a>>, Damaged> {
        let mut found = None;
        for (at, entry) in self.entries.iter().enumerate() {
            if word(entry, 0) != Some(tag) {
                continue;
            }
            let offset = self.start + INTRO + at * 16;
            if found.is_some() {
                return Err(damaged(offset, format!("tag {tag} is there twice")));
            }
            let [kind, place, count] = [4, 8, 12].map(|at| word(entry, at).unwrap_or(0));
            let data = self.data.get(place as usize..).ok_or_else(|| {
                damaged(offset, format!("the value of tag {tag} is behind the end"))
            })?;
            found = Some(Value { kind, count: count as usize, data, offset });
        }
        Ok(found)
    }

    fn binary(&self, tag: u32) -> Result<Option<&'a [u8]>, Damaged> {
        let Some(Value { kind, count, data, offset }) = self.find(tag)? else { return Ok(None) };
        if kind != kind::BINARY {
            return Err(damaged(offset, format!("tag {tag}: expected bytes, found type {kind}")));
        }
        data.get(..count)
            .map(Some)
            .ok_or_else(|| damaged(offset, format!("the value of tag {tag} passes the end")))
    }

    fn number(&self, tag: u32) -> Result<Option<u32>, Damaged> {
        let Some(Value { kind, count, data, offset }) = self.find(tag)? else { return Ok(None) };
        match word(data, 0) {
            Some(value) if kind == kind::INT32 && count > 0 => Ok(Some(value)),
            _ => Err(damaged(offset, format!("tag {tag}: expected a number, found type {kind}"))),
        }
    }

    fn string(&self, tag: u32) -> Result<Option<String>, Damaged> {
        Ok(self.strings(tag)?.and_then(|strings| strings.into_iter().next()))
    }

    fn strings(&self, tag: u32) -> Result<Option<Vec<String>>, Damaged> {
        let Some(Value { kind, count, data, offset }) = self.find(tag)? else { return Ok(None) };
        if !matches!(kind, kind::STRING | kind::STRING_ARRAY) {
            return Err(damaged(offset, format!("tag {tag}: expected text, found type {kind}")));
        }
        let mut rest = data;
        let mut strings = Vec::new();
        // Only short lists are asked for.
        for _ in 0..count.min(64) {
            let end = rest
                .iter()
                .position(|byte| *byte == 0)
                .ok_or_else(|| damaged(offset, format!("the text of tag {tag} has no end")))?;
            let text = std::str::from_utf8(&rest[..end])
                .map_err(|_| damaged(offset, format!("the text of tag {tag} is not UTF-8")))?;
            strings.push(text.to_owned());
            rest = &rest[end + 1..];
        }
        Ok(Some(strings))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// Standard base64; white space is left out.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    BASE64_STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
        let mut data = Vec::new();
        let mut index = Vec::new();
        for (tag, kind, count, value) in entries {
            for word in [*tag, *kind, u32::try_from(data.len()).unwrap(), *count] {
                index.extend(word.to_be_bytes());
            }
            data.extend_from_slice(value);
        }
        let mut out = HEADER_MAGIC.to_vec();
        out.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        out.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        out.extend(index);
        out.extend(data);
        out
    }

    fn package(signature: &[u8], header: &[u8]) -> Vec<u8> {
        let mut out = vec![0; LEAD];
        out[..4].copy_from_slice(&LEAD_MAGIC);
        out.extend(signature);
        out.resize(out.len().next_multiple_of(8), 0);
        out.extend(header);
        out
    }

    fn sample() -> Vec<u8> {
        let signature = table(&[(268, 7, 3, b"abc"), (278, 8, 2, b"YQ==\0Yg==\0")]);
        let header = table(&[
            (1003, 4, 1, &[0, 0, 0, 2]),
            (1000, 6, 1, b"kernel-core\0"),
            (1001, 6, 1, b"6.12.0\0"),
            (1002, 6, 1, b"1.el10\0"),
            (1022, 6, 1, b"x86_64\0"),
        ]);
        package(&signature, &header)
    }

    #[test]
    fn heads() {
        let bytes = sample();
        let head = read(&bytes).unwrap();
        assert_eq!(head.signatures, [b"abc".to_vec(), b"a".to_vec(), b"b".to_vec()]);
        assert_eq!((head.name.as_str(), head.epoch, head.end), ("kernel-core", 2, bytes.len()));
        assert_eq!(head.signed.first_chunk(), Some(&HEADER_MAGIC));
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn every_changed_byte_is_survived() {
        let bytes = sample();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = read(&changed);
            }
        }
    }

    #[test]
    fn a_tag_counts_once() {
        let header = table(&[(1000, 6, 1, b"a\0"), (1000, 6, 1, b"b\0")]);
        let bytes = package(&table(&[(1000, 4, 1, &[0; 4])]), &header);
        assert!(read(&bytes).unwrap_err().detail.contains("twice"));
    }

    #[test]
    fn base64_texts() {
        assert_eq!(base64("aGVsbG8=").as_deref(), Some(&b"hello"[..]));
        assert_eq!(base64("aGVs\nbG8=").as_deref(), Some(&b"hello"[..]));
        assert_eq!(base64("a*"), None);
    }
}
