//! The blocks of a zstd frame, RFC 8878, 3.1.1.2: literals, and the sequences that say where copies of earlier output go.

use std::io;

use super::super::invalid;
use super::entropy::{Bits, Fse, Huffman};

/// No block is larger, neither in the stream nor decompressed.
pub(super) const MAX_BLOCK: usize = 128 << 10;

/// The first value and the further bits of each code of a length of literals, after those that are the length itself.
const LITERAL_LENGTHS: [(u32, u8); 20] = [
    (16, 1),
    (18, 1),
    (20, 1),
    (22, 1),
    (24, 2),
    (28, 2),
    (32, 3),
    (40, 3),
    (48, 4),
    (64, 6),
    (128, 7),
    (256, 8),
    (512, 9),
    (1024, 10),
    (2048, 11),
    (4096, 12),
    (8192, 13),
    (16_384, 14),
    (32_768, 15),
    (65_536, 16),
];

/// As [`LITERAL_LENGTHS`], for matches; the codes before are the length less three.
const MATCH_LENGTHS: [(u32, u8); 21] = [
    (35, 1),
    (37, 1),
    (39, 1),
    (41, 1),
    (43, 2),
    (47, 2),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 5),
    (131, 7),
    (259, 8),
    (515, 9),
    (1027, 10),
    (2051, 11),
    (4099, 12),
    (8195, 13),
    (16_387, 14),
    (32_771, 15),
    (65_539, 16),
];

/// What a table is for: largest code, largest logarithm of its states, and the distribution when none is given.
struct Use {
    max_symbol: usize,
    max_log: u32,
    usual: (&'static [i16], u32),
}

const LITERALS: Use = Use {
    max_symbol: 35,
    max_log: 9,
    usual: (
        &[
            4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1,
            1, 1, 1, -1, -1, -1, -1,
        ],
        6,
    ),
};

const OFFSETS: Use = Use {
    max_symbol: 31,
    max_log: 8,
    usual: (
        &[
            1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1,
            -1,
        ],
        5,
    ),
};

const MATCHES: Use = Use {
    max_symbol: 52,
    max_log: 9,
    usual: (
        &[
            1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
        ],
        6,
    ),
};

/// Output that may be referred to: as much as the window says, in a ring that grows as output comes.
#[derive(Default)]
pub(super) struct History {
    ring: Vec<u8>,
    window: usize,
    /// The oldest byte, once the ring is full.
    oldest: usize,
}

impl History {
    pub(super) fn reset(&mut self, window: usize) {
        self.ring.clear();
        (self.window, self.oldest) = (window, 0);
    }

    /// How much memory it takes to add so many bytes.
    pub(super) fn memory_with(&self, more: usize) -> usize {
        let needed = (self.ring.len() + more).min(self.window);
        if needed <= self.ring.capacity() { self.ring.capacity() } else { self.grown(needed) }
    }

    /// Never more than the window; doubling would be.
    fn grown(&self, needed: usize) -> usize {
        needed.max(2 * self.ring.capacity()).min(self.window)
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.window)..];
        let (new, over) = bytes.split_at(bytes.len().min(self.window - self.ring.len()));
        let needed = self.ring.len() + new.len();
        if needed > self.ring.capacity() {
            self.ring.reserve_exact(self.grown(needed) - self.ring.len());
        }
        self.ring.extend_from_slice(new);
        let (to_end, from_start) = over.split_at(over.len().min(self.ring.len() - self.oldest));
        self.ring[self.oldest..][..to_end.len()].copy_from_slice(to_end);
        self.ring[..from_start.len()].copy_from_slice(from_start);
        self.oldest =
            if from_start.is_empty() { self.oldest + to_end.len() } else { from_start.len() };
        if self.oldest == self.ring.len() {
            self.oldest = 0;
        }
    }

    /// A stretch that begins `back` bytes before the end, at most `most` bytes of it.
    fn stretch(&self, back: usize, most: usize) -> Option<&[u8]> {
        let len = self.ring.len();
        let from = len.checked_sub(back)?;
        let at = if self.oldest == 0 { from } else { (self.oldest + from) % len };
        let end = (at + most.min(back)).min(len);
        Some(&self.ring[at..end])
    }
}

/// What a frame's blocks share.
pub(super) struct Blocks {
    pub(super) history: History,
    huffman: Huffman,
    tables: [Option<Fse>; 3],
    offsets: [usize; 3],
    literals: Vec<u8>,
    /// The block that was decompressed last.
    pub(super) output: Vec<u8>,
}

impl Blocks {
    pub(super) fn new() -> Self {
        Self {
            history: History::default(),
            huffman: Huffman::default(),
            tables: [const { None }; 3],
            offsets: [1, 4, 8],
            literals: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Begins a frame.
    pub(super) fn reset(&mut self, window: usize) {
        self.history.reset(window);
        self.huffman = Huffman::default();
        self.tables = [const { None }; 3];
        self.offsets = [1, 4, 8];
        self.output.clear();
    }

    /// Moves the block that was decompressed last into the history.
    pub(super) fn next(&mut self) {
        self.history.add(&self.output);
        self.output.clear();
    }

    /// Decompresses a block of literals and sequences.
    pub(super) fn compressed(&mut self, block: &[u8]) -> io::Result<()> {
        let len = self.read_literals(block)?;
        let block = &block[len..];
        let (count, len) = match *block {
            [count @ 0..128, ..] => (usize::from(count), 1),
            [high @ 128..=254, low, ..] => (usize::from(high - 128) << 8 | usize::from(low), 2),
            [255, low, high, ..] => (0x7f00 + (usize::from(high) << 8 | usize::from(low)), 3),
            _ => return Err(invalid("a block without its number of sequences")),
        };
        let mut rest = &block[len..];
        if count == 0 {
            if !rest.is_empty() {
                return Err(invalid(format!("{} bytes behind a block's literals", rest.len())));
            }
        } else {
            let Some((&modes, tables)) = rest.split_first() else {
                return Err(invalid("sequences without their tables"));
            };
            rest = tables;
            for (slot, of) in [LITERALS, OFFSETS, MATCHES].iter().enumerate() {
                rest = self.read_table(slot, of, modes >> (6 - 2 * slot) & 3, rest)?;
            }
            let used = self.sequences(count, rest)?;
            self.literals.drain(..used);
        }
        Self::room(&self.output, self.literals.len())?;
        self.output.extend_from_slice(&self.literals);
        Ok(())
    }

    fn room(output: &[u8], more: usize) -> io::Result<()> {
        if more > MAX_BLOCK - output.len() {
            return Err(invalid(format!("a block of more than {MAX_BLOCK} bytes")));
        }
        Ok(())
    }

    /// Reads the literals of a block; gives how many of its bytes they take.
    fn read_literals(&mut self, block: &[u8]) -> io::Result<usize> {
        let mut first = [0; 8];
        let len = block.len().min(5);
        first[..len].copy_from_slice(&block[..len]);
        let word = u64::from_le_bytes(first);
        let part = |from: u32, bits: u32| {
            usize::try_from(word >> from & ((1 << bits) - 1)).unwrap_or(usize::MAX)
        };
        let (kind, format) = (word & 3, word >> 2 & 3);
        let (header, count, packed) = match (kind, format) {
            (0 | 1, 0 | 2) => (1, part(3, 5), 0),
            (0 | 1, 1) => (2, part(4, 12), 0),
            (0 | 1, _) => (3, part(4, 20), 0),
            (_, 0 | 1) => (3, part(4, 10), part(14, 10)),
            (_, 2) => (4, part(4, 14), part(18, 14)),
            _ => (5, part(4, 18), part(22, 18)),
        };
        Self::room(&[], count)?;
        let packed = match kind {
            0 => count,
            1 => 1,
            _ => packed,
        };
        let Some(bytes) = block.get(header..header + packed) else {
            return Err(invalid(format!(
                "{packed} bytes of literals in a block of {}",
                block.len()
            )));
        };
        self.literals.clear();
        match kind {
            0 => self.literals.extend_from_slice(bytes),
            1 => self.literals.resize(count, bytes[0]),
            _ => self.read_packed(bytes, count, kind == 3, format > 0)?,
        }
        Ok(header + packed)
    }

    fn read_packed(
        &mut self,
        bytes: &[u8],
        count: usize,
        same: bool,
        four: bool,
    ) -> io::Result<()> {
        let mut bytes = bytes;
        if !same {
            let (huffman, len) = Huffman::read(bytes)?;
            (self.huffman, bytes) = (huffman, &bytes[len..]);
        } else if self.huffman.is_empty() {
            return Err(invalid("literals that use the table of no block before"));
        }
        if !four {
            return self.huffman.decode(bytes, count, &mut self.literals);
        }
        let Some((lengths, mut streams)) = bytes.split_first_chunk::<6>() else {
            return Err(invalid("four streams of literals without their lengths"));
        };
        let each = count.div_ceil(4);
        let mut left = count;
        for pair in lengths.chunks_exact(2) {
            let len = usize::from(pair[0]) | usize::from(pair[1]) << 8;
            let Some((stream, rest)) = streams.split_at_checked(len).filter(|_| each <= left)
            else {
                return Err(invalid("streams of literals that are longer than their block"));
            };
            self.huffman.decode(stream, each, &mut self.literals)?;
            (streams, left) = (rest, left - each);
        }
        self.huffman.decode(streams, left, &mut self.literals)
    }

    /// Reads one table of the sequences; gives what follows it.
    fn read_table<'b>(
        &mut self,
        slot: usize,
        of: &Use,
        mode: u8,
        bytes: &'b [u8],
    ) -> io::Result<&'b [u8]> {
        let (table, len) = match mode {
            0 => (Fse::new(of.usual.0, of.usual.1)?, 0),
            1 => match bytes.first() {
                Some(&symbol) if usize::from(symbol) <= of.max_symbol => (Fse::one(symbol), 1),
                _ => return Err(invalid("a table of sequences with a code that is none")),
            },
            2 => Fse::read(bytes, of.max_log, of.max_symbol)?,
            _ if self.tables[slot].is_none() => {
                return Err(invalid("sequences that use the table of no block before"));
            }
            _ => return Ok(bytes),
        };
        self.tables[slot] = Some(table);
        Ok(&bytes[len..])
    }

    /// Carries out the sequences; gives how many literals they used.
    fn sequences(&mut self, count: usize, bytes: &[u8]) -> io::Result<usize> {
        let [Some(literals), Some(offsets), Some(matches)] = &self.tables else {
            return Err(invalid("sequences without their tables"));
        };
        let mut bits = Bits::new(bytes)?;
        let mut literal = literals.start(&mut bits);
        let mut offset = offsets.start(&mut bits);
        let mut match_ = matches.start(&mut bits);
        let mut used = 0;
        for left in (0..count).rev() {
            let code = u32::from(offsets.symbol(offset)).min(31);
            let value = (1_u64 << code) + u64::from(bits.take(code));
            let length = length(matches.symbol(match_), 32, 3, &MATCH_LENGTHS, &mut bits);
            let before = length_of_literals(literals.symbol(literal), &mut bits);
            if left > 0 {
                literal = literals.next(literal, &mut bits);
                match_ = matches.next(match_, &mut bits);
                offset = offsets.next(offset, &mut bits);
            }
            if bits.left() < 0 {
                return Err(invalid("sequences that end before their end"));
            }
            Self::room(&self.output, before + length)?;
            let Some(bytes) = self.literals.get(used..used + before) else {
                return Err(invalid("sequences of more literals than there are"));
            };
            self.output.extend_from_slice(bytes);
            used += before;
            let distance = distance(&mut self.offsets, value, before == 0);
            copy(&self.history, &mut self.output, distance, length)?;
        }
        if bits.left() != 0 {
            return Err(invalid(format!("{} bits behind the sequences", bits.left())));
        }
        Ok(used)
    }
}

fn length_of_literals(code: u8, bits: &mut Bits<'_>) -> usize {
    length(code, 16, 0, &LITERAL_LENGTHS, bits)
}

/// A length by its code: the code and `more` itself below `direct`, else from the table.
#[inline]
fn length(code: u8, direct: u8, more: usize, table: &[(u32, u8)], bits: &mut Bits<'_>) -> usize {
    if code < direct {
        return usize::from(code) + more;
    }
    // Codes are checked when a table is read.
    let (base, extra) = table.get(usize::from(code - direct)).copied().unwrap_or_default();
    (base + bits.take(u32::from(extra))) as usize
}

/// How far back a match is: one of the last three distances, or a new one. Zero if there can be no such match.
fn distance(last: &mut [usize; 3], value: u64, no_literals: bool) -> usize {
    let value = usize::try_from(value).unwrap_or(usize::MAX);
    if value > 3 {
        *last = [value - 3, last[0], last[1]];
        return last[0];
    }
    match value + usize::from(no_literals) {
        1 => {}
        2 => *last = [last[1], last[0], last[2]],
        3 => *last = [last[2], last[0], last[1]],
        _ => *last = [last[0].saturating_sub(1), last[0], last[1]],
    }
    last[0]
}

/// Appends `length` bytes from `distance` back.
fn copy(
    history: &History,
    output: &mut Vec<u8>,
    distance: usize,
    mut length: usize,
) -> io::Result<()> {
    if distance == 0 {
        return Err(invalid("a match no bytes back"));
    }
    while length > 0 && distance > output.len() {
        let back = distance - output.len();
        let Some(bytes) = history.stretch(back, length) else {
            let have = history.ring.len() + output.len();
            return Err(invalid(format!("a match {distance} bytes back, {have} are there")));
        };
        output.extend_from_slice(bytes);
        length -= bytes.len();
    }
    // What is appended can be copied at once: it repeats itself.
    let Some(from) = output.len().checked_sub(distance) else { return Ok(()) };
    while length > 0 {
        let step = length.min(output.len() - from);
        output.extend_from_within(from..from + step);
        length -= step;
    }
    Ok(())
}
