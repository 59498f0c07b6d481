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
use crate::{ending, output};

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
    ending::prepare("nothing is proven".to_owned())?;
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
    let bar = moving::Bar::new(
        (WRITES.len() * ways.len()) as u64,
        args.quiet,
        "{bar:30} {pos}/{len} {elapsed}",
    );
    for (number, write) in WRITES.into_iter().enumerate() {
        for (turn, &way) in ways.iter().enumerate() {
            let seed = seed.wrapping_add((number * 2 + turn) as u64);
            if let Some(mismatch) = verify.step(way, write, seed)? {
                drop(bar);
                if !args.quiet {
                    output::data(&mismatch)?;
                }
                return Ok(1);
            }
            bar.inc(1);
        }
    }
    drop(bar);
    if let Some(mismatch) = verify.all()? {
        if !args.quiet {
            output::data(&mismatch)?;
        }
        return Ok(1);
    }
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
    /// One write, and its range read back every other way. Gives what differs. The GPU's memory holds other bytes before each read.
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
        let length = self.file.metadata().context("the file")?.len();
        if length != LENGTH as u64 {
            let way = way.word();
            return Ok(Some(format!(
                "MISMATCH in the file's length: expected {LENGTH} bytes, found {length}; written by {way} (seed {seed})\n"
            )));
        }
        // Whole blocks, and one more on both sides: what stands beside it must be as it was.
        let around = (offset / BLOCK).saturating_sub(1) * BLOCK
            ..((offset + size).next_multiple_of(BLOCK) + BLOCK).min(LENGTH);
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
            let found = self.compare(reader, offset, size, place)?;
            if let Some(found) = found {
                let how = format!("written by {}, read by {}", way.word(), reader.word());
                return Ok(Some(format!("MISMATCH {found}; {how} (seed {seed})\n")));
            }
        }
        Ok(None)
    }

    /// The whole file in the end: a write may have landed anywhere.
    fn all(&mut self) -> anyhow::Result<Option<String>> {
        let found = self.compare(Way::Plain, 0, LENGTH, 0)?;
        Ok(found.map(|found| format!("MISMATCH {found}; read by pread after all writes\n")))
    }

    /// Reads a range, and says what is not as it must be.
    fn compare(
        &mut self,
        way: Way,
        offset: usize,
        size: usize,
        place: usize,
    ) -> anyhow::Result<Option<String>> {
        self.compared += size as u64;
        let expected = offset..offset + size;
        if way == Way::Plain {
            self.host.clear();
            self.host.resize(size, STALE);
            fdatasync(&self.file).context("fdatasync")?;
            fadvise(&self.file, 0, None, Advice::DontNeed).context("posix_fadvise")?;
            self.file.read_exact_at(&mut self.host, offset as u64).context("pread")?;
            return Ok(difference(offset, &self.model[expected], &self.host));
        }
        // The bytes beside the place are no business of a read.
        let guarded = place.saturating_sub(BLOCK)..place + size + BLOCK;
        self.host.clear();
        self.host.resize(guarded.len(), STALE);
        self.buffer.put(guarded.start, &self.host)?;
        self.let_go(way);
        let moved =
            self.registered.read_at(&mut self.buffer, place..place + size, offset as u64)?;
        self.after(way, "read", offset, size, moved)?;
        self.buffer.get(guarded.start, &mut self.host)?;
        let (before, rest) = self.host.split_at(place - guarded.start);
        let (found, behind) = rest.split_at(size);
        let touched = |bytes: &[u8]| bytes.iter().any(|byte| *byte != STALE);
        let beside = match (touched(before), touched(behind)) {
            (false, false) => return Ok(difference(offset, &self.model[expected], found)),
            (true, _) => "before",
            (false, true) => "behind",
        };
        Ok(Some(format!(
            "in the GPU's memory: a read of {size} bytes at offset {offset} changed what stands {beside} them"
        )))
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
            // The system says only of the next byte why there was no room for it.
            let next = (offset + moved) as u64;
            let refused = (what == "write").then(|| self.file.write_at(&[0], next).err()).flatten();
            let why = refused.map(|error| format!(": {error}")).unwrap_or_default();
            bail!(
                "{what} by {way} at offset {offset}: expected {size} bytes, {moved} were moved{why}"
            );
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
    if expected == found {
        return None;
    }
    let at = expected.iter().zip(found).position(|(expected, found)| expected != found)?;
    let mut text = format!(
        "at offset {}: expected {:#04x}, found {:#04x}",
        offset + at,
        expected[at],
        found[at]
    );
    let head = ((offset + at) / BLOCK * BLOCK).checked_sub(offset);
    let words = head.and_then(|head| found.get(head..head + 16)).map(<[u8]>::as_chunks::<8>);
    if let Some(([[STALE, ..], [STALE, ..]], _)) = words {
        text.push_str(" in a block that the read left as it was");
    } else if let Some(([place, seed], _)) = words {
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
        let text =
            "at offset 4097: expected 0x10, found 0x30 in a block that says offset 12288, seed 6";
        assert_eq!(difference(0, &expected, &found).as_deref(), Some(text));
        found[BLOCK..].fill(STALE);
        let text =
            "at offset 4096: expected 0x00, found 0xa5 in a block that the read left as it was";
        assert_eq!(difference(0, &expected, &found).as_deref(), Some(text));
        let mut found = expected[100..200].to_vec();
        found[3] ^= 1;
        let text = format!(
            "at offset 103: expected {:#04x}, found {:#04x}",
            expected[103],
            expected[103] ^ 1
        );
        assert_eq!(difference(100, &expected[100..200], &found), Some(text));
    }
}
