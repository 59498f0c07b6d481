//! `fastpath verify`: the only proof that a fastpath does not corrupt is to compare the bytes.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use anyhow::{Context as _, bail};
use fastpath_verdict::Verdict;
use hipfile::choose::Reason;
use hipfile::{Buffer, DeviceMemory, Driver};
use rustix::fs::{Advice, fadvise, fdatasync};

use super::moving;
use crate::args::VerifyArgs;
use crate::output;

const BLOCK: usize = 4096;

/// Bytes of the file, and of the GPU's memory, which has room to start at odd places.
const LENGTH: usize = 24 << 20;
const MEMORY: usize = LENGTH + (1 << 20);

/// What the GPU's memory is filled with before each read: bytes that were not read must not look right.
const STALE: u8 = 0xA5;

/// Offset, size and place in the GPU's memory of each write. The fastpath takes those that are whole blocks.
const WRITES: [(usize, usize, usize); 16] = [
    (0, LENGTH, 0),
    (0, BLOCK, 0),
    (BLOCK, BLOCK, BLOCK),
    (3 * BLOCK, 5 * BLOCK, 7 * BLOCK),
    (1, 1, 3),
    (4095, 2, 1),
    (12_345, 65_537, 4_097),
    (512, 3 * 512, 512),
    (64 << 10, 64 << 10, 0),
    ((1 << 20) - BLOCK, (1 << 20) + BLOCK, 2 * BLOCK),
    ((1 << 20) - 1, (1 << 20) + 2, 17),
    (2 << 20, 4 << 20, BLOCK),
    ((5 << 20) + 77, (2 << 20) + 1234, 511),
    (4 << 20, 16 << 20, 0),
    (LENGTH - BLOCK, BLOCK, 0),
    (LENGTH - 1, 1, 0),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Fastpath,
    Fallback,
    Plain,
}

impl Way {
    const fn word(self) -> &'static str {
        match self {
            Self::Fastpath => "the fastpath",
            Self::Fallback => "the fallback",
            Self::Plain => "pread",
        }
    }
}

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<u8> {
    let mut driver = moving::driver(&args.runtime, &[])?;
    let gate = driver.runtime().gate().clone();
    if gate.verdict == Some(Verdict::Blocked) && !args.fallback_only {
        let advisories = gate.advisories.join(", ");
        if !args.force {
            bail!(
                "the kernel is blocked (advisory {advisories}): its fastpath may corrupt memory; --force tries it all the same"
            );
        }
        driver = moving::driver(&args.runtime, &gate.advisories)?;
    }
    moving::warn_of_simulation(&driver)?;
    let config = driver.runtime().config();
    if config.forces_fallback() && !args.fallback_only {
        return Err(not_taken(Reason::Forced));
    }
    config.allow_fallback(true);
    let file = moving::unnamed(&args.directory)?;
    let ways: &[Way] =
        if args.fallback_only { &[Way::Fallback] } else { &[Way::Fastpath, Way::Fallback] };
    let seed = args.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_secs())
    });
    let mut memory = DeviceMemory::allocate(&driver, MEMORY)?;
    let mut verify = Verify {
        driver: &driver,
        registered: driver.register(file.try_clone()?)?,
        buffer: Buffer::new(&driver, &mut memory)?,
        file,
        model: vec![0; LENGTH],
        host: Vec::new(),
        only: args.fallback_only,
        compared: 0,
        written: 0,
    };
    let bar = moving::bar(
        (WRITES.len() * ways.len()) as u64,
        args.quiet,
        "{bar:30} {pos}/{len} {elapsed}",
    );
    for (number, write) in WRITES.into_iter().enumerate() {
        for (turn, &way) in ways.iter().enumerate() {
            let seed = seed.wrapping_add((number * 2 + turn) as u64);
            if let Some(mismatch) = verify.step(way, write, seed)? {
                bar.finish_and_clear();
                if !args.quiet {
                    output::data(&mismatch)?;
                }
                return Ok(1);
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if !args.quiet {
        let which = if args.fallback_only {
            "the fallback; the fastpath was left out, nothing is proven of it"
        } else {
            "fastpath and fallback"
        };
        let mebibytes = verify.compared >> 20;
        output::data(&format!(
            "equal: {} writes, {mebibytes} MiB compared, {which} (seed {seed})\n",
            verify.written
        ))?;
    }
    Ok(0)
}

/// That nothing was proven.
fn not_taken(reason: Reason) -> anyhow::Error {
    anyhow::anyhow!(
        "the fastpath was not taken, so nothing is proven: {} (--fallback-only checks the fallback alone)",
        reason.text()
    )
}

struct Verify<'a> {
    driver: &'a Driver,
    registered: hipfile::File,
    buffer: Buffer<'a>,
    file: File,
    /// What the file must hold.
    model: Vec<u8>,
    host: Vec<u8>,
    only: bool,
    compared: u64,
    written: usize,
}

impl Verify<'_> {
    /// One write, and its range read back every other way. Gives what differs.
    fn step(
        &mut self,
        way: Way,
        (offset, size, place): (usize, usize, usize),
        seed: u64,
    ) -> anyhow::Result<Option<String>> {
        let is_whole = [offset, size, place].iter().all(|value| value.is_multiple_of(BLOCK));
        if way == Way::Fastpath && !is_whole {
            return Ok(None);
        }
        let range = offset..offset + size;
        pattern(seed, offset, &mut self.model[range.clone()]);
        self.buffer.put(place, &self.model[range])?;
        self.let_go(way);
        let moved = self.registered.write_at(&self.buffer, place..place + size, offset as u64)?;
        self.after(way, "write", offset, size, moved)?;
        self.written += 1;
        // Whole blocks around what was written: what stands beside it must be as it was.
        let around = offset / BLOCK * BLOCK..(offset + size).next_multiple_of(BLOCK).min(LENGTH);
        let other = match way {
            Way::Fallback if !self.only => Way::Fastpath,
            _ => Way::Fallback,
        };
        let reads = [
            (other, around.start, around.len(), 0),
            (Way::Fallback, offset, size, place + 1),
            (Way::Plain, around.start, around.len(), 0),
        ];
        for (reader, offset, size, place) in reads {
            self.read(reader, offset, size, place)?;
            self.compared += size as u64;
            let expected = &self.model[offset..offset + size];
            if let Some(found) = difference(offset, expected, &self.host) {
                let how = format!("written by {}, read by {}", way.word(), reader.word());
                return Ok(Some(format!("MISMATCH at offset {found}; {how} (seed {seed})\n")));
            }
        }
        Ok(None)
    }

    /// Reads a range into `host`.
    fn read(&mut self, way: Way, offset: usize, size: usize, place: usize) -> anyhow::Result<()> {
        self.host.clear();
        self.host.resize(size, STALE);
        if way == Way::Plain {
            fdatasync(&self.file).context("fdatasync")?;
            fadvise(&self.file, 0, None, Advice::DontNeed).context("posix_fadvise")?;
            return self.file.read_exact_at(&mut self.host, offset as u64).context("pread");
        }
        self.buffer.put(place, &self.host)?;
        self.let_go(way);
        let moved =
            self.registered.read_at(&mut self.buffer, place..place + size, offset as u64)?;
        self.after(way, "read", offset, size, moved)?;
        self.buffer.get(place, &mut self.host)?;
        Ok(())
    }

    fn let_go(&self, way: Way) {
        self.driver.runtime().config().force_fallback(way != Way::Fastpath);
    }

    /// Whether a request did what it was to, the way it was to.
    fn after(
        &self,
        way: Way,
        what: &str,
        offset: usize,
        size: usize,
        moved: usize,
    ) -> anyhow::Result<()> {
        if way == Way::Fastpath
            && let Some(reason) = moving::reason(&self.registered, true)
        {
            return Err(not_taken(reason));
        }
        if moved != size {
            let way = way.word();
            bail!("{what} by {way} at offset {offset}: expected {size} bytes, {moved} were moved");
        }
        Ok(())
    }
}

/// Fills bytes of a file from `offset` on: every block begins with its own offset and the seed, and nothing in it repeats.
fn pattern(seed: u64, offset: usize, bytes: &mut [u8]) {
    let mut at = offset;
    let mut rest = bytes;
    while !rest.is_empty() {
        let word = at as u64 & !7;
        let value = match at % BLOCK / 8 {
            0 => word,
            1 => seed,
            _ => mix(seed ^ mix(word)),
        };
        let whole = value.to_le_bytes();
        let part = &whole[at % 8..];
        let length = part.len().min(rest.len());
        let (now, later) = rest.split_at_mut(length);
        now.copy_from_slice(&part[..length]);
        at += length;
        rest = later;
    }
}

/// The finaliser of `SplitMix64`. Source: <https://doi.org/10.1145/2714064.2660195>.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The first byte of a file that differs, in words. The blocks begin at whole blocks of the file, whose heads tell where foreign
/// bytes belong.
fn difference(offset: usize, expected: &[u8], found: &[u8]) -> Option<String> {
    let at = expected.iter().zip(found).position(|(expected, found)| expected != found)?;
    let mut text =
        format!("{}: expected {:#04x}, found {:#04x}", offset + at, expected[at], found[at]);
    let head = ((offset + at) / BLOCK * BLOCK).checked_sub(offset);
    let words = head.and_then(|head| found.get(head..head + 16)).map(<[u8]>::as_chunks::<8>);
    if let Some(([place, seed], _)) = words {
        let (place, seed) = (u64::from_le_bytes(*place), u64::from_le_bytes(*seed));
        let _ = write!(text, " in a block that says offset {place}, seed {seed}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_depends_on_offset_and_seed_only() {
        let mut whole = vec![0; 3 * BLOCK];
        pattern(7, BLOCK, &mut whole);
        assert_eq!(whole[..16], [4096_u64.to_le_bytes(), 7_u64.to_le_bytes()].concat());
        for (start, length) in [(0, 1), (1, 7), (4095, 2), (5, 8000), (8192, 4096)] {
            let mut part = vec![0; length];
            pattern(7, BLOCK + start, &mut part);
            assert!(part == whole[start..start + length], "{start} {length}");
        }
        let mut other = vec![0; 3 * BLOCK];
        pattern(8, BLOCK, &mut other);
        assert!(whole.iter().zip(&other).filter(|(one, other)| one == other).count() < BLOCK);
    }

    #[test]
    fn a_difference_says_where_foreign_bytes_belong() {
        let mut expected = vec![0; 2 * BLOCK];
        pattern(7, 0, &mut expected);
        assert_eq!(difference(0, &expected, &expected), None);
        let mut found = expected.clone();
        pattern(6, 3 * BLOCK, &mut found[BLOCK..]);
        let text = "4097: expected 0x10, found 0x30 in a block that says offset 12288, seed 6";
        assert_eq!(difference(0, &expected, &found).as_deref(), Some(text));
        let mut found = expected[100..200].to_vec();
        found[3] ^= 1;
        let text =
            format!("103: expected {:#04x}, found {:#04x}", expected[103], expected[103] ^ 1);
        assert_eq!(difference(100, &expected[100..200], &found), Some(text));
    }
}
