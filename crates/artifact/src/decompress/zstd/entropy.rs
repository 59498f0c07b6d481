//! The two entropy codes of zstd: FSE and Huffman, RFC 8878, 4.1 and 4.2.

use std::io;

use super::super::invalid;

/// A stream of bits that is read from its end; the last byte's highest bit that is set marks the end.
pub(super) struct Bits<'b> {
    bytes: &'b [u8],
    /// How many bits are left; below zero once more were read than there are.
    left: i64,
}

impl<'b> Bits<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> io::Result<Self> {
        let last = bytes.last().copied().unwrap_or(0);
        if last == 0 {
            return Err(invalid("a stream of bits without its end mark"));
        }
        let whole = i64::try_from(bytes.len()).unwrap_or(i64::MAX / 8 - 1) * 8;
        Ok(Self { bytes, left: whole - 1 - i64::from(last.leading_zeros()) })
    }

    /// The next bits, at most 32, without taking them; zeros where there are none.
    #[inline]
    fn peek(&self, count: u32) -> u32 {
        let from = self.left - i64::from(count);
        if from < 0 {
            let missing = from.unsigned_abs().min(63);
            return u32::try_from((self.load(0) << missing) & ((1 << count) - 1)).unwrap_or(0);
        }
        let at = usize::try_from(from >> 3).unwrap_or(usize::MAX);
        u32::try_from((self.load(at) >> (from & 7)) & ((1 << count) - 1)).unwrap_or(0)
    }

    #[inline]
    fn load(&self, at: usize) -> u64 {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if let Some(word) = rest.first_chunk() {
            return u64::from_le_bytes(*word);
        }
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(word)
    }

    #[inline]
    pub(super) fn take(&mut self, count: u32) -> u32 {
        let bits = self.peek(count);
        self.left -= i64::from(count);
        bits
    }

    /// How many bits are left; below zero if more were taken than there are.
    pub(super) const fn left(&self) -> i64 {
        self.left
    }
}

/// One state of an FSE table.
#[derive(Clone, Copy, Default)]
struct State {
    symbol: u8,
    bits: u8,
    base: u16,
}

/// An FSE decoding table.
#[derive(Clone, Default)]
pub(super) struct Fse {
    states: Vec<State>,
    log: u32,
}

impl Fse {
    /// A table of one symbol.
    pub(super) fn one(symbol: u8) -> Self {
        Self { states: vec![State { symbol, bits: 0, base: 0 }], log: 0 }
    }

    /// The table of a distribution; `-1` is "less than one".
    pub(super) fn new(distribution: &[i16], log: u32) -> io::Result<Self> {
        let broken = || invalid("a distribution that does not add up");
        let size = 1_usize << log;
        let mut states = vec![State::default(); size];
        let mut next = [0_u16; 256];
        let mut high = size;
        for (symbol, count) in (0..=u8::MAX).zip(distribution) {
            if *count == -1 {
                high = high.checked_sub(1).ok_or_else(broken)?;
                states[high].symbol = symbol;
            }
            next[usize::from(symbol)] = count.unsigned_abs();
        }
        let (step, mask) = ((size >> 1) + (size >> 3) + 3, size - 1);
        let mut at = 0;
        for (symbol, count) in (0..=u8::MAX).zip(distribution) {
            for _ in 0..(*count).max(0) {
                states[at].symbol = symbol;
                at = (at + step) & mask;
                while at >= high {
                    at = (at + step) & mask;
                }
            }
        }
        if at != 0 {
            return Err(broken());
        }
        for state in &mut states {
            let next = &mut next[usize::from(state.symbol)];
            let bits =
                log.checked_sub(next.checked_ilog2().ok_or_else(broken)?).ok_or_else(broken)?;
            state.bits = u8::try_from(bits).map_err(|_| broken())?;
            state.base =
                u16::try_from((usize::from(*next) << bits) - size).map_err(|_| broken())?;
            *next += 1;
        }
        Ok(Self { states, log })
    }

    /// The table at the start of `bytes`, and how many of them it takes.
    pub(super) fn read(bytes: &[u8], max_log: u32, max_symbol: usize) -> io::Result<(Self, usize)> {
        let mut at = 0_usize;
        let take = |count: u32, at: &mut usize| {
            let rest = bytes.get(*at / 8..).unwrap_or_default();
            let mut word = [0; 4];
            let len = rest.len().min(4);
            word[..len].copy_from_slice(&rest[..len]);
            let value = (u32::from_le_bytes(word) >> (*at % 8)) & ((1 << count) - 1);
            *at += count as usize;
            value
        };
        let log = 5 + take(4, &mut at);
        if log > max_log {
            return Err(invalid(format!("a table of 2^{log} states, more than 2^{max_log}")));
        }
        let mut distribution: Vec<i16> = Vec::with_capacity(max_symbol + 1);
        let mut left = 1_u32 << log;
        while left > 0 && distribution.len() <= max_symbol {
            // Values up to `left + 1` have to be told apart; the small ones take one bit less.
            let bits = (left + 1).ilog2() + 1;
            let low = (1 << (bits - 1)) - 1;
            let small = (1 << bits) - 1 - (left + 1);
            let mut value = take(bits, &mut at);
            if value & low < small {
                at -= 1;
                value &= low;
            } else if value > low {
                value -= small;
            }
            // 0 stands for "less than one", which takes one state.
            left = left
                .checked_sub(if value == 0 { 1 } else { value - 1 })
                .ok_or_else(|| invalid("a distribution that does not add up"))?;
            distribution.push(i16::try_from(value).unwrap_or(i16::MAX) - 1);
            if value == 1 {
                loop {
                    let zeros = take(2, &mut at);
                    distribution.extend(std::iter::repeat_n(0, zeros as usize));
                    if zeros < 3 || distribution.len() > max_symbol {
                        break;
                    }
                }
            }
        }
        let len = at.div_ceil(8);
        if left > 0 || distribution.len() > max_symbol + 1 || len > bytes.len() {
            return Err(invalid("a distribution that does not add up"));
        }
        Ok((Self::new(&distribution, log)?, len))
    }

    /// The first state.
    #[inline]
    pub(super) fn start(&self, bits: &mut Bits<'_>) -> usize {
        bits.take(self.log) as usize
    }

    #[inline]
    pub(super) fn symbol(&self, state: usize) -> u8 {
        self.states[state].symbol
    }

    /// The state after this one.
    #[inline]
    pub(super) fn next(&self, state: usize, bits: &mut Bits<'_>) -> usize {
        let state = self.states[state];
        usize::from(state.base) + bits.take(u32::from(state.bits)) as usize
    }
}

/// The longest code of a literal.
const MAX_BITS: u32 = 11;

/// A Huffman decoding table: symbol and length of the code for each value of the next bits.
#[derive(Clone, Default)]
pub(super) struct Huffman {
    codes: Vec<(u8, u8)>,
    bits: u32,
}

impl Huffman {
    pub(super) fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The table at the start of `bytes`, and how many of them it takes.
    pub(super) fn read(bytes: &[u8]) -> io::Result<(Self, usize)> {
        let short = || invalid("a table of literals that is cut");
        let (&first, rest) = bytes.split_first().ok_or_else(short)?;
        let (mut weights, len) = if first < 128 {
            let len = usize::from(first);
            (fse_weights(rest.get(..len).ok_or_else(short)?)?, len)
        } else {
            let count = usize::from(first - 127);
            let len = count.div_ceil(2);
            let packed = rest.get(..len).ok_or_else(short)?;
            let mut weights: Vec<u8> =
                packed.iter().flat_map(|&two| [two >> 4, two & 15]).collect();
            weights.truncate(count);
            (weights, len)
        };
        // The last weight is what is missing to a power of two.
        let broken = || invalid("weights of literals that do not add up");
        if weights.iter().any(|&weight| u32::from(weight) > MAX_BITS) {
            return Err(broken());
        }
        let sum: u32 = weights.iter().map(|&weight| (1 << weight) >> 1).sum();
        let bits = sum.checked_ilog2().ok_or_else(broken)? + 1;
        let missing = (1 << bits) - sum;
        if bits > MAX_BITS || !missing.is_power_of_two() || weights.len() > 255 {
            return Err(broken());
        }
        weights.push(u8::try_from(missing.ilog2() + 1).map_err(|_| broken())?);
        let mut codes = Vec::with_capacity(1 << bits);
        for weight in 1..=u8::try_from(bits).map_err(|_| broken())? {
            let length = u8::try_from(bits + 1).map_err(|_| broken())? - weight;
            for (symbol, _) in (0..=u8::MAX).zip(&weights).filter(|(_, of)| **of == weight) {
                codes.extend(std::iter::repeat_n((symbol, length), 1 << (weight - 1)));
            }
        }
        if codes.len() != 1 << bits {
            return Err(broken());
        }
        Ok((Self { codes, bits }, 1 + len))
    }

    /// Decodes one stream of `count` literals.
    pub(super) fn decode(&self, stream: &[u8], count: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let mut bits = Bits::new(stream)?;
        for _ in 0..count {
            let (symbol, length) = self.codes[bits.peek(self.bits) as usize];
            bits.left -= i64::from(length);
            out.push(symbol);
        }
        if bits.left != 0 {
            Err(invalid("literals that do not end with their stream"))
        } else {
            Ok(())
        }
    }
}

/// Weights of literals: two states take turns until the bits end.
fn fse_weights(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let (table, len) = Fse::read(bytes, 6, MAX_BITS as usize + 1)?;
    let mut bits = Bits::new(&bytes[len..])?;
    let (mut state, mut other) = (table.start(&mut bits), table.start(&mut bits));
    let mut weights = Vec::new();
    while weights.len() < 255 {
        weights.push(table.symbol(state));
        let next = table.next(state, &mut bits);
        if bits.left() < 0 {
            weights.push(table.symbol(other));
            return Ok(weights);
        }
        state = std::mem::replace(&mut other, next);
    }
    Err(invalid("more than 255 weights of literals"))
}
