//! Kernel images: bzImage, EFI zboot, unified kernel images, ELF and raw ones; the configuration a kernel built with
//! `CONFIG_IKCONFIG` carries, and its version.
//!
//! The configuration stands in the decompressed image between two marks, `IKCFG_ST` and `IKCFG_ED`
//! (`kernel/configs.c`), as a gzip stream. The image proper is searched as it is decompressed, so it needs no room.
//!
//! The boot protocol: <https://www.kernel.org/doc/html/latest/arch/x86/boot.html>; zboot:
//! `drivers/firmware/efi/libstub/zboot-header.S`; unified images:
//! <https://uapi-group.org/specifications/specs/unified_kernel_image/>.

use std::io::Read;

use memchr::memmem;

use crate::decompress::{Compression, Tail, is_lzop, open};
use crate::error::Error;
use crate::fail::{Failure, Place};
use crate::source::{Charge, Peeked, Shared, Source, len_u64, len_usize, read_up_to};
use crate::{names, symbols, text};

/// The mark, and the first bytes of the gzip stream after it: the bare mark is also in code that looks for it.
const CONFIG_MARK: &[u8] = b"IKCFG_ST\x1f\x8b\x08";

/// Every kernel's first message.
const BANNER: &[u8] = b"Linux version ";

/// The largest image that is held as it is, compressed. Real ones have at most 60 MB.
const MAX_RAW: usize = 64 << 20;

/// How many streams are tried in an image whose header does not say where the kernel is.
const MAX_TRIES: usize = 32;

/// A kind of image, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// x86, with a setup header.
    BzImage,
    /// A PE program that decompresses the kernel in it.
    Zboot,
    /// Any other PE program; a unified kernel image, perhaps.
    Pe,
    /// `vmlinux`, a module, or another architecture's image.
    Elf,
    /// arm64's and riscv's uncompressed image.
    Flat,
}

impl Kind {
    pub(crate) fn sniff(head: &[u8]) -> Option<Self> {
        let is =
            |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
        if is(0x1fe, &[0x55, 0xaa]) && is(0x202, b"HdrS") {
            Some(Self::BzImage)
        } else if is(0, b"MZ") && is(4, b"zimg") {
            Some(Self::Zboot)
        } else if is(0x38, b"ARM\x64") || is(0x38, b"RSC\x05") {
            Some(Self::Flat)
        } else if is(0, b"MZ") {
            Some(Self::Pe)
        } else {
            is(0, b"\x7fELF").then_some(Self::Elf)
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::BzImage => "bzImage",
            Self::Zboot => "EFI zboot image",
            Self::Pe => "PE image",
            Self::Elf => "ELF image",
            Self::Flat => "kernel image",
        }
    }
}

/// What an image says.
#[derive(Debug, Default)]
pub(crate) struct Image {
    pub(crate) config: Option<Vec<u8>>,
    /// Its version, the same as `uname -r`.
    pub(crate) version: Option<String>,
    /// Whether it exports functions that only a kernel with the option has. That it does not proves nothing, since
    /// unused exports can be left out of a build.
    pub(crate) own_symbols: bool,
}

impl Image {
    pub(crate) const fn is_kernel(&self) -> bool {
        self.config.is_some() || self.version.is_some()
    }
}

/// Searches an image. `None` if it is no kernel. `version_wanted` says that no name tells its release.
pub(crate) fn search(
    kind: Option<Kind>,
    source: &mut dyn Source,
    place: &Place<'_>,
    shared: &Shared,
    version_wanted: bool,
) -> Result<Option<Image>, Failure> {
    let search = Search { place, shared, version_wanted };
    match kind {
        Some(Kind::BzImage | Kind::Zboot) => {
            let mut charge = Charge::new(shared);
            let raw = search.read_raw(source, &mut charge)?;
            search.memory(&raw)
        }
        Some(Kind::Pe) => search.unified(source),
        Some(Kind::Elf | Kind::Flat) | None => {
            let mut raw = Raw::new(shared);
            let mut image = Image::default();
            search.scan(source, &mut image, Some(&mut raw), shared.limits.search)?;
            search.look_inside(image, raw.bytes.as_deref())
        }
    }
}

/// A copy of an image as it is, kept unless it gets too large.
struct Raw<'s> {
    bytes: Option<Vec<u8>>,
    charge: Charge<'s>,
}

impl<'s> Raw<'s> {
    const fn new(shared: &'s Shared) -> Self {
        Self { bytes: Some(Vec::new()), charge: Charge::new(shared) }
    }

    fn add(&mut self, part: &[u8]) {
        let Some(bytes) = &mut self.bytes else { return };
        let len = bytes.len() + part.len();
        if len > MAX_RAW || self.charge.set(len_u64(len)).is_err() {
            self.bytes = None;
            self.charge = Charge::new(self.charge.shared());
        } else {
            bytes.extend_from_slice(part);
        }
    }
}

struct Search<'a> {
    place: &'a Place<'a>,
    shared: &'a Shared,
    version_wanted: bool,
}

impl Search<'_> {
    fn read_raw(
        &self,
        source: &mut dyn Source,
        charge: &mut Charge<'_>,
    ) -> Result<Vec<u8>, Failure> {
        let mut raw = Vec::new();
        loop {
            let part = source.fill_buf().map_err(|error| self.place.failure(error))?;
            let count = part.len();
            if count == 0 {
                return Ok(raw);
            }
            if raw.len() + count > MAX_RAW {
                return Err(self.place.too_much("bytes in a compressed image", len_u64(MAX_RAW)));
            }
            raw.extend_from_slice(part);
            source.consume(count);
            charge
                .set(len_u64(raw.len()))
                .map_err(|limit| self.place.too_much("bytes of memory", limit))?;
        }
    }

    /// Searches an image held in memory.
    fn memory(&self, raw: &[u8]) -> Result<Option<Image>, Failure> {
        let payload = match Kind::sniff(raw) {
            Some(Kind::BzImage) => bzimage_payload(raw),
            Some(Kind::Zboot) => zboot_payload(raw),
            _ => {
                let mut image = Image::default();
                let mut rest = raw;
                self.scan(&mut rest, &mut image, None, u64::MAX)?;
                return self.look_inside(image, Some(raw));
            }
        };
        let version = bzimage_version(raw);
        let mut failure = None;
        match payload.map(|payload| self.payload(payload)) {
            Some(Ok(Some(mut image))) => {
                image.version = version.or(image.version);
                return Ok(Some(image));
            }
            Some(Err(error)) if error.level < self.place.level => return Err(error),
            Some(Err(error)) => failure = Some(error),
            Some(Ok(None)) | None => {}
        }
        if let Some(mut image) = self.tries(raw)? {
            image.version = version.or(image.version);
            return Ok(Some(image));
        }
        Err(failure.unwrap_or_else(|| {
            let format = Kind::sniff(raw).map_or("kernel image", Kind::name);
            self.place.damaged(format, len_u64(raw.len()), "no compressed kernel in it")
        }))
    }

    /// Searches the kernel that a header says is here: compressed, or as it is.
    fn payload(&self, bytes: &[u8]) -> Result<Option<Image>, Failure> {
        if let Some(compression) = Compression::sniff(bytes) {
            return self.stream(compression, bytes).map(Some);
        }
        if is_lzop(bytes) {
            return Err(self.place.unsupported("the compression", "lzop"));
        }
        let mut image = Image::default();
        let mut rest = bytes;
        self.scan(&mut rest, &mut image, None, u64::MAX)?;
        Ok(image.is_kernel().then_some(image))
    }

    /// Looks for a compressed kernel in an image that was searched as it is without finding a configuration.
    fn look_inside(&self, image: Image, raw: Option<&[u8]>) -> Result<Option<Image>, Failure> {
        if image.config.is_some() {
            return Ok(Some(image));
        }
        // A banner can be seen through weak compression too, so it does not end the search.
        let inside = match raw {
            Some(raw) => self.tries(raw)?,
            None => None,
        };
        Ok(inside.or_else(|| image.is_kernel().then_some(image)))
    }

    /// Searches what a stream decompresses to.
    fn stream(&self, compression: Compression, bytes: &[u8]) -> Result<Image, Failure> {
        let mut bytes = bytes;
        let mut image = Image::default();
        let mut source = open(compression, Tail::Anything, &mut bytes, *self.place, self.shared)?;
        self.scan(&mut source, &mut image, None, len_u64(self.shared.limits.image))?;
        Ok(image)
    }

    /// Tries every place where a stream may begin, as the kernel's `scripts/extract-vmlinux` does.
    fn tries(&self, raw: &[u8]) -> Result<Option<Image>, Failure> {
        const FIRST: [u8; 7] = [0x1f, 0xfd, 0x28, b'B', 0x02, 0x04, 0x5d];
        let mut tries = 0;
        for (at, _) in raw.iter().enumerate().skip(1).filter(|(_, byte)| FIRST.contains(byte)) {
            let rest = &raw[at..];
            let Some(compression) = Compression::sniff(&rest[..rest.len().min(64)]) else {
                continue;
            };
            tries += 1;
            if tries > MAX_TRIES {
                break;
            }
            // Most of them are no streams at all.
            match self.stream(compression, rest) {
                Ok(image) if image.is_kernel() => return Ok(Some(image)),
                Err(error) if error.level < self.place.level => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Reads a decompressed image to its end or until everything wanted is found. `raw` gets a copy of it.
    fn scan(
        &self,
        source: &mut dyn Source,
        image: &mut Image,
        mut raw: Option<&mut Raw<'_>>,
        limit: u64,
    ) -> Result<(), Failure> {
        const STEP: usize = 256 << 10;
        /// What may stand across two steps: a mark, or a banner with its release.
        const OVERLAP: usize = 128;
        let mut buf: Vec<u8> = Vec::with_capacity(STEP + OVERLAP);
        let mut total = 0;
        loop {
            let kept = buf.len().min(OVERLAP);
            buf.drain(..buf.len() - kept);
            let mut step = Read::take(&mut *source, len_u64(STEP));
            let count = step.read_to_end(&mut buf).map_err(|error| self.place.failure(error))?;
            if count == 0 {
                return Ok(());
            }
            total += len_u64(count);
            if total > limit {
                return Err(self.place.too_much("bytes to search for a kernel", limit));
            }
            if let Some(raw) = raw.as_deref_mut() {
                raw.add(&buf[buf.len() - count..]);
            }
            image.own_symbols |= symbols::OWN.iter().any(|name| is_string(&buf, name));
            if image.version.is_none() {
                image.version = banner(&buf);
            }
            if image.config.is_none() {
                image.config = self.config(&buf, source)?;
            }
            if image.config.is_some() && (image.version.is_some() || !self.version_wanted) {
                return Ok(());
            }
        }
    }

    /// The configuration after a mark in `buf`; the rest of its stream comes from `source`.
    fn config(&self, buf: &[u8], source: &mut dyn Source) -> Result<Option<Vec<u8>>, Failure> {
        let Some(mark) = memmem::find(buf, CONFIG_MARK) else { return Ok(None) };
        let stream = &buf[mark + CONFIG_MARK.len() - 3..];
        let mut stream = stream.chain(source);
        let limit = self.shared.limits.config;
        let read = open(Compression::Gzip, Tail::Anything, &mut stream, *self.place, self.shared)
            .and_then(|mut text| {
                read_up_to(&mut text, limit + 1).map_err(|error| self.place.failure(error))
            });
        match read {
            Ok(text) if text.len() > limit => {
                Err(self.place.too_much("bytes in a configuration", len_u64(limit)))
            }
            Ok(text) => Ok(text::is_config(&text, true).then_some(text)),
            // A mark by chance, or a damaged image: the search goes on behind it.
            Err(failure) if failure.level > self.place.level => match failure.error {
                Error::Limit { .. } => Err(failure),
                _ => Ok(None),
            },
            Err(failure) => Err(failure),
        }
    }

    /// A PE program: the kernel in its section `.linux`, the release in `.uname`.
    fn unified(&self, source: &mut dyn Source) -> Result<Option<Image>, Failure> {
        let mut source =
            Peeked::new(source, 16 << 10).map_err(|error| self.place.failure(error))?;
        let mut sections = pe_sections(source.head()).unwrap_or_default();
        if !sections.iter().any(|section| section.name == *b".linux\0\0") {
            return Ok(None);
        }
        sections.retain(|section| matches!(&section.name, b".linux\0\0" | b".uname\0\0"));
        sections.sort_by_key(|section| section.offset);
        let (mut at, mut version, mut kernel) = (0, None, None);
        let mut charge = Charge::new(self.shared);
        for section in &sections {
            let gap = section.offset.saturating_sub(at);
            let skipped = source.skip(gap).map_err(|error| self.place.failure(error))?;
            if skipped < gap || section.offset < at {
                return Err(self.place.truncated("PE image", at + skipped));
            }
            at = section.offset;
            let limit = if section.name == *b".uname\0\0" { 256 } else { MAX_RAW };
            let size = len_usize(section.size, limit + 1);
            if size > limit {
                return Err(self.place.too_much("bytes in a section", len_u64(limit)));
            }
            charge
                .set(len_u64(size))
                .map_err(|limit| self.place.too_much("bytes of memory", limit))?;
            let bytes = read_up_to(&mut source, size).map_err(|error| self.place.failure(error))?;
            at += len_u64(bytes.len());
            if bytes.len() < size {
                return Err(self.place.truncated("PE image", at));
            }
            if section.name == *b".uname\0\0" {
                version = version_word(&bytes);
            } else {
                kernel = Some(bytes);
            }
        }
        let Some(kernel) = kernel else { return Ok(None) };
        let image = self.memory(&kernel)?;
        Ok(image.map(|image| Image { version: version.or(image.version), ..image }))
    }
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(word(bytes, at).map(u32::from_le_bytes)?).ok()
}

/// The compressed kernel, from where the setup header says.
fn bzimage_payload(raw: &[u8]) -> Option<&[u8]> {
    let protocol = word(raw, 0x206).map(u16::from_le_bytes)?;
    if protocol < 0x208 {
        return None;
    }
    let sectors = match *raw.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let offset = ((sectors + 1) * 512).checked_add(u32_at(raw, 0x248)?)?;
    let end = offset.checked_add(u32_at(raw, 0x24c)?)?;
    raw.get(offset..end)
}

/// The compressed kernel in a zboot image.
fn zboot_payload(raw: &[u8]) -> Option<&[u8]> {
    let offset = u32_at(raw, 8)?;
    let end = offset.checked_add(u32_at(raw, 12)?)?;
    raw.get(offset..end)
}

/// The version string of a bzImage, up to its first blank.
fn bzimage_version(raw: &[u8]) -> Option<String> {
    if Kind::sniff(raw) != Some(Kind::BzImage) {
        return None;
    }
    let offset = usize::from(word(raw, 0x20e).map(u16::from_le_bytes)?);
    if offset == 0 {
        return None;
    }
    version_word(raw.get(offset + 0x200..)?)
}

/// A release at the start of `bytes`, ended by a blank or NUL.
fn version_word(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().take(80).position(|byte| !byte.is_ascii_graphic());
    let word = std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len().min(80))]).ok()?;
    names::release(word).map(|release| release.as_str().to_owned())
}

/// The release in `Linux version R (`; formats such as `Linux version %s` are none.
fn banner(buf: &[u8]) -> Option<String> {
    memmem::find_iter(buf, BANNER).find_map(|at| {
        let rest = &buf[at + BANNER.len()..];
        let end = rest.iter().take(80).position(|byte| !byte.is_ascii_graphic())?;
        rest[end..].starts_with(b" (").then(|| version_word(rest))?
    })
}

/// Whether `name` stands in `buf` as a string of its own.
fn is_string(buf: &[u8], name: &[u8]) -> bool {
    memmem::find_iter(buf, name).any(|at| {
        at.checked_sub(1).is_some_and(|before| buf[before] == 0)
            && buf.get(at + name.len()) == Some(&0)
    })
}

struct Section {
    name: [u8; 8],
    offset: u64,
    size: u64,
}

/// The sections of a PE program.
fn pe_sections(head: &[u8]) -> Option<Vec<Section>> {
    let start = u32_at(head, 0x3c)?;
    if head.get(start..)?.first_chunk() != Some(b"PE\0\0") {
        return None;
    }
    let count = usize::from(word(head, start + 6).map(u16::from_le_bytes)?);
    let optional = usize::from(word(head, start + 20).map(u16::from_le_bytes)?);
    let table = head.get(start + 24 + optional..)?;
    let mut sections = Vec::new();
    for entry in table.chunks_exact(40).take(count.min(96)) {
        // In the file a section is filled up to a block; what it really has is the smaller of both.
        let (real, stored) = (u32_at(entry, 8)?, u32_at(entry, 16)?);
        let size = if real == 0 { stored } else { real.min(stored) };
        sections.push(Section {
            name: word(entry, 0)?,
            offset: len_u64(u32_at(entry, 20)?),
            size: len_u64(size),
        });
    }
    Some(sections)
}
