//! What the targets of the crate `artifact` share: things to look into, written as text, and what holds of any search.

use std::cell::Cell;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use fastpath_artifact::{Evidence, Finder, Found, Limits};
use lzma_rust2::{LzmaOptions, LzmaWriter, XzOptions, XzWriter};
use peak_alloc::PeakAlloc;

use crate::make::{Tar, ar, bzimage, cpio, gzip, pe, zboot};
use crate::sections;

/// Every allocation is counted, so that what an input costs is known exactly.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Small bounds: an input that uses all of its output must not take seconds in an instrumented program.
pub const LIMITS: Limits = Limits {
    output: 8 << 20,
    config: 1 << 20,
    image: 4 << 20,
    search: 8 << 20,
    members: 2000,
    depth: 8,
};

/// What a search within [`LIMITS`] may hold at once. Dictionaries, windows and buffers follow the output, whatever an
/// input says of them.
const MOST_MEMORY: usize = 64 << 20;

/// Does something; the memory it takes, beyond what was held before, is bounded.
pub fn within_memory<T>(most: usize, work: impl FnOnce() -> T) -> T {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = work();
    let taken = MEMORY.peak_usage().saturating_sub(before);
    assert!(taken <= most, "{taken} bytes of memory");
    result
}

/// An input that counts what it gives, and may give little at a time.
pub struct Input<'a> {
    bytes: Cursor<&'a [u8]>,
    /// The most bytes one read gives; turns from 1 to this.
    most: usize,
    turn: usize,
    given: &'a Cell<u64>,
}

impl<'a> Input<'a> {
    /// An input of these bytes that gives at most `most` of them at a time.
    pub fn new(bytes: &'a [u8], most: usize, given: &'a Cell<u64>) -> Self {
        Self { bytes: Cursor::new(bytes), most, turn: 0, given }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.turn = self.turn * 5 % 7 + 1;
        let most = buf.len().min((self.most / self.turn).max(1));
        let count = self.bytes.read(&mut buf[..most])?;
        self.given.set(self.given.get() + count as u64);
        Ok(count)
    }
}

impl Seek for Input<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

/// A found kernel without the count of bytes, which depends on how the input is read.
type Kernel = (Option<String>, Option<String>, Evidence);

/// What a search gave: the kernels, the errors of parts, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The kernels, in the order they were given.
    pub kernels: Vec<Kernel>,
    /// The errors of parts, then the one that ended the search.
    pub errors: Vec<String>,
}

impl Answer {
    /// The configurations among the kernels.
    pub fn configs(&self) -> impl Iterator<Item = &[u8]> {
        self.kernels.iter().filter_map(|(.., evidence)| match evidence {
            Evidence::Config(text) => Some(text.as_slice()),
            _ => None,
        })
    }
}

enum As {
    File,
    Stream,
}

fn search(name: &str, bytes: &[u8], most: usize, how: &As, first: bool) -> Answer {
    let given = Cell::new(0);
    let mut input = Input::new(bytes, most, &given);
    let mut kernels: Vec<Found> = Vec::new();
    let mut last = 0;
    let mut sink = |found: Found| {
        assert!(found.bytes_read >= last, "the count goes back");
        last = found.bytes_read;
        kernels.push(found);
    };
    let mut finder = Finder::new(LIMITS, first);
    let result = within_memory(MOST_MEMORY + 4 * bytes.len(), || match how {
        As::File => finder.find(&mut input, name, &mut sink),
        As::Stream => finder.find_in_stream(&mut input, name, &mut sink),
    });
    let mut errors = Vec::new();
    match result {
        Ok(summary) => {
            assert_eq!(summary.bytes_read, given.get(), "what is counted is what was read");
            assert_eq!(summary.found, kernels.len() as u64);
            assert!(summary.members <= LIMITS.members && summary.errors.len() <= 64);
            assert!(summary.more_errors == 0 || summary.errors.len() == 64);
            errors.extend(summary.errors.iter().map(ToString::to_string));
        }
        Err(error) => errors.push(error.to_string()),
    }
    assert!(last <= given.get());
    for error in &errors {
        assert!(!error.contains(char::is_control), "an error is one line that a terminal shows");
    }
    let kernels = kernels.into_iter().map(|found| {
        if let Evidence::Config(text) = &found.evidence {
            assert!(text.len() <= LIMITS.config);
        }
        assert!(found.member.as_ref().is_none_or(|member| !member.contains(char::is_control)));
        (found.member, found.release.map(|release| release.as_str().to_owned()), found.evidence)
    });
    Answer { kernels: kernels.collect(), errors }
}

/// Searches an input in every way it can come, and gives what the plain way gave.
pub fn check(name: &str, bytes: &[u8]) -> Answer {
    let answer = search(name, bytes, usize::MAX, &As::File, false);
    assert_eq!(search(name, bytes, 600, &As::File, false), answer, "read bit by bit");

    // A disk has to be a file; everything else is the same in a stream.
    let stream = search(name, bytes, 5000, &As::Stream, false);
    let is_disk = |error: &String| error.contains("it has to be a file of its own");
    let differs =
        stream.errors.iter().any(is_disk) || answer.errors.iter().any(|e| e.contains("the disk"));
    if !differs && !bytes.is_empty() {
        let of_volume =
            |member: &Option<String>| member.as_ref().is_some_and(|m| m.starts_with('p'));
        if !answer.kernels.iter().any(|(member, ..)| of_volume(member)) {
            assert_eq!(stream, answer, "read as a stream");
        }
    }

    let first = search(name, bytes, usize::MAX, &As::File, true);
    match answer.configs().next() {
        Some(config) => assert_eq!(first.configs().collect::<Vec<_>>(), [config]),
        None => assert_eq!(first, answer),
    }
    answer
}

/// A format of compression that can be written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packer {
    /// gzip.
    Gzip,
    /// xz with a CRC-64.
    Xz,
    /// The old `.lzma`, which has no checksum.
    Lzma,
    /// zstd with a checksum.
    Zstd,
    /// bzip2.
    Bzip2,
    /// lz4 frames with all checksums.
    Lz4,
    /// lz4 as kernel builds have it, without any checksum.
    Lz4Legacy,
}

impl Packer {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Gzip, Self::Xz, Self::Lzma, Self::Zstd, Self::Bzip2, Self::Lz4, Self::Lz4Legacy];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|packer| format!("{packer:?}").eq_ignore_ascii_case(name))
    }

    /// Whether damage to the content is always seen.
    pub fn has_checksum(self) -> bool {
        !matches!(self, Self::Lzma | Self::Lz4Legacy)
    }

    /// Compresses.
    pub fn pack(self, bytes: &[u8]) -> Vec<u8> {
        self.try_pack(bytes).expect("a vector takes everything")
    }

    fn try_pack(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => Ok(gzip(bytes)),
            Self::Xz => {
                let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(0))?;
                writer.write_all(bytes)?;
                writer.finish()
            }
            Self::Lzma => {
                let options = LzmaOptions::with_preset(0);
                let mut writer = LzmaWriter::new_use_header(Vec::new(), &options, None)?;
                writer.write_all(bytes)?;
                writer.finish()
            }
            Self::Zstd => {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                Ok(ruzstd::encoding::compress_to_vec(bytes, level))
            }
            Self::Bzip2 => {
                let level = bzip2::Compression::fast();
                let mut writer = bzip2::write::BzEncoder::new(Vec::new(), level);
                writer.write_all(bytes)?;
                writer.finish()
            }
            Self::Lz4 => {
                let info = lz4_flex::frame::FrameInfo::new()
                    .block_checksums(true)
                    .content_checksum(true)
                    .block_mode(lz4_flex::frame::BlockMode::Linked);
                let mut writer = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
                writer.write_all(bytes)?;
                writer.finish().map_err(io::Error::other)
            }
            Self::Lz4Legacy => {
                let mut out = vec![0x02, 0x21, 0x4c, 0x18];
                for block in bytes.chunks(8 << 20) {
                    let packed = lz4_flex::block::compress(block);
                    out.extend_from_slice(&u32::try_from(packed.len()).unwrap_or(0).to_le_bytes());
                    out.extend_from_slice(&packed);
                }
                Ok(out)
            }
        }
    }
}

/// An RPM of the form `rpmbuild` makes, with the tags that are read.
fn rpm(name: &str, payload: &[u8]) -> Vec<u8> {
    const INTRO: [u8; 8] = [0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
    let mut words = name.split('|');
    let mut data = Vec::new();
    let mut index = Vec::new();
    for tag in [1000_u32, 1001, 1002, 1022, 1044, 1124] {
        let Some(word) = words.next().filter(|word| !word.is_empty()) else { continue };
        let offset = u32::try_from(data.len()).unwrap_or(u32::MAX);
        for number in [tag, 6, offset, 1] {
            index.extend_from_slice(&number.to_be_bytes());
        }
        data.extend_from_slice(word.as_bytes());
        data.push(0);
    }
    let mut out = vec![0; 96];
    out[..4].copy_from_slice(&[0xed, 0xab, 0xee, 0xdb]);
    out.extend_from_slice(&INTRO);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&INTRO);
    out.extend_from_slice(&u32::try_from(index.len() / 16).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(&index);
    out.extend_from_slice(&data);
    out.extend_from_slice(payload);
    out
}

fn tar(members: &[(String, u8, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Tar::default();
    for (name, kind, bytes) in members {
        // A byte string of at most a hundred bytes: what is longer has to come in a header of its own.
        let end = (0..=name.len().min(100)).rev().find(|&at| name.is_char_boundary(at));
        archive = archive.add_kind(&name[..end.unwrap_or(0)], bytes, *kind);
    }
    archive.end()
}

/// Builds what the text says, and gives its name. A line `@file NAME` starts a member, `@x:NAME` one of the tar type
/// `x`, the lines after it are its bytes. `@tar NAME`, `@cpio NAME`, `@ar NAME` and `@pe NAME` put all members since the
/// last `@begin` into one, `@gzip NAME` and the other formats of compression, `@bzimage`, `@zboot` and `@rpm` change the
/// last one.
pub fn build(text: &[u8]) -> Option<(String, Vec<u8>)> {
    const MOST: usize = 4 << 20;
    let mut members: Vec<(String, u8, Vec<u8>)> = Vec::new();
    let mut begun = Vec::new();
    for (line, bytes) in sections(text).into_iter().take(64) {
        let (step, name) = line.split_once(' ').unwrap_or((&line, ""));
        if step == "begin" {
            begun.push(members.len());
            continue;
        }
        if step == "file" {
            members.push((name.to_owned(), b'0', bytes));
            continue;
        }
        if let [kind, b':', name @ ..] = line.as_bytes() {
            members.push((String::from_utf8_lossy(name).into_owned(), *kind, bytes));
            continue;
        }
        let start = begun.last().copied().unwrap_or(0).min(members.len());
        let inside = &members[start..];
        let pairs: Vec<(&str, &[u8])> =
            inside.iter().map(|(name, _, bytes)| (name.as_str(), bytes.as_slice())).collect();
        let container = match step {
            "tar" => Some(tar(inside)),
            "cpio" => Some(cpio(&pairs)),
            "ar" => Some(ar(&pairs)),
            "pe" => {
                let fits = |(name, _): &&(&str, &[u8])| name.is_ascii() && name.len() <= 8;
                let sections: Vec<_> = pairs.iter().filter(fits).take(12).copied().collect();
                Some(pe(&sections))
            }
            _ => None,
        };
        let (rest, built) = if let Some(built) = container {
            begun.pop();
            (start, built)
        } else {
            let (.., last) = members.last()?;
            let built = match step {
                "bzimage" => bzimage(&name[..name.floor_char_boundary(100)], last),
                "zboot" => zboot(last, "gzip"),
                "rpm" => rpm(name, last),
                _ => Packer::named(step)?.pack(last),
            };
            (members.len() - 1, built)
        };
        members.truncate(rest);
        if built.len() > MOST {
            return None;
        }
        members.push((name.to_owned(), b'0', built));
    }
    members.pop().map(|(name, _, bytes)| (name, bytes))
}

/// A kernel image: one of six kinds around what the kernel is when it runs, compressed where the kind is. That has its
/// banner, `before`, and the configuration between its marks.
pub fn kernel(kind: u8, packer: Packer, config: &[u8], before: &[u8]) -> Vec<u8> {
    let running = [
        &b"\0Linux version 6.1.0-1 (builder@host) #1\0"[..],
        before,
        b"IKCFG_ST",
        &gzip(config),
        b"IKCFG_ED",
    ]
    .concat();
    match kind % 6 {
        0 => bzimage("6.1.0-1", &packer.pack(&running)),
        1 => zboot(&packer.pack(&running), "gzip"),
        2 => pe(&[(".uname", b"6.1.0-1"), (".linux", &bzimage("6.1.0-1", &packer.pack(&running)))]),
        3 => [b"\x7fELF", running.as_slice()].concat(),
        // An image that unpacks itself, with no word where the kernel is.
        4 => [b"\x7fELF\x02\x01", &[0; 200][..], &packer.pack(&running), &[0; 9]].concat(),
        _ => {
            let mut flat = vec![0; 64];
            flat[0x38..0x3c].copy_from_slice(b"ARM\x64");
            flat.extend_from_slice(&running);
            flat
        }
    }
}
