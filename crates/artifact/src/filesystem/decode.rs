//! Decoders of single blocks: the whole input is at hand and the output has a known bound.
//!
//! Errors are texts without a place; the caller knows the place.

use std::io::Read;

/// Reads `decoder` to its end or to `limit` bytes, and fails beyond.
fn drain(decoder: impl Read, limit: usize) -> Result<Vec<u8>, String> {
    let mut data = Vec::with_capacity(limit.min(1 << 20));
    decoder.take(limit as u64 + 1).read_to_end(&mut data).map_err(|error| error.to_string())?;
    if data.len() > limit {
        return Err(format!("more than {limit} bytes come out"));
    }
    Ok(data)
}

/// Raw deflate; what follows the stream is ignored.
pub(crate) fn deflate(packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    drain(flate2::bufread::DeflateDecoder::new(packed), limit)
}

/// zlib.
pub(crate) fn zlib(packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    drain(flate2::bufread::ZlibDecoder::new(packed), limit)
}

/// The first zstd frame; what follows it is ignored.
pub(crate) fn zstd(packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    crate::decompress::zstd::first_frame(packed, limit)
}

/// xz, with any of its filters.
pub(crate) fn xz(packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    // A block's dictionary is no larger than the block; KiB.
    let memory = u32::try_from(limit >> 10).unwrap_or(u32::MAX).saturating_add(8 << 10);
    drain(lzma_rust2::XzReader::new_mem_limit(packed, false, memory), limit)
}

/// The old `.lzma` format.
pub(crate) fn lzma(packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let memory = u32::try_from(limit >> 10).unwrap_or(u32::MAX).saturating_add(8 << 10);
    let decoder = lzma_rust2::LzmaReader::new_mem_limit(packed, memory, None);
    drain(decoder.map_err(|error| error.to_string())?, limit)
}

/// A bare LZ4 block.
pub(crate) fn lz4(packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let mut data = vec![0; limit];
    let len = lz4_flex::block::decompress_into(packed, &mut data);
    data.truncate(len.map_err(|error| error.to_string())?);
    Ok(data)
}

/// A bare LZO1X stream, bounded by its end mark; what follows is ignored.
///
/// The format is described in the kernel's [lzo.txt](https://docs.kernel.org/staging/lzo.html): a byte says how many
/// literals follow or how far back and how long a match is; the two lowest bits of a match's second to last byte say how
/// many literals come right after it.
pub(crate) fn lzo(packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let mut input = Input { packed, at: 0 };
    let mut data = Vec::with_capacity(limit.min(1 << 20));
    // Literals right after the last match (0 to 3), or 4 for a longer run: it changes what a small byte means.
    let mut state;
    match input.peek()? {
        first @ 18.. => {
            input.at += 1;
            let count = usize::from(first) - 17;
            input.literals(&mut data, count, limit)?;
            state = count.min(4);
        }
        _ => state = 0,
    }
    loop {
        let byte = usize::from(input.byte()?);
        let (distance, length, next);
        match byte {
            0..=15 if state == 0 => {
                let count = 3 + input.length(byte, 15)?;
                input.literals(&mut data, count, limit)?;
                state = 4;
                continue;
            }
            0..=15 => {
                let high = usize::from(input.byte()?);
                next = byte & 3;
                (distance, length) = match state {
                    4 => ((high << 2) + (byte >> 2) + 2049, 3),
                    _ => ((high << 2) + (byte >> 2) + 1, 2),
                };
            }
            16..=31 => {
                length = 2 + input.length(byte & 7, 7)?;
                let word = input.word()?;
                let back = ((byte & 8) << 11) + (word >> 2);
                if back == 0 {
                    return Ok(data);
                }
                (distance, next) = (16384 + back, word & 3);
            }
            32..=63 => {
                length = 2 + input.length(byte & 31, 31)?;
                let word = input.word()?;
                (distance, next) = ((word >> 2) + 1, word & 3);
            }
            _ => {
                let high = usize::from(input.byte()?);
                length = if byte < 128 { 3 + (byte >> 5 & 1) } else { 5 + (byte >> 5 & 3) };
                (distance, next) = ((high << 3) + (byte >> 2 & 7) + 1, byte & 3);
            }
        }
        let Some(from) = data.len().checked_sub(distance) else {
            return Err(format!("a match {distance} bytes back, {} are there", data.len()));
        };
        if length > limit - data.len() {
            return Err(format!("more than {limit} bytes come out"));
        }
        for at in from..from + length {
            data.push(data[at]);
        }
        input.literals(&mut data, next, limit)?;
        state = next;
    }
}

/// The input of [`lzo`].
struct Input<'a> {
    packed: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn peek(&self) -> Result<u8, String> {
        self.packed.get(self.at).copied().ok_or_else(|| "the stream ends too early".to_owned())
    }

    fn byte(&mut self) -> Result<u8, String> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    fn word(&mut self) -> Result<usize, String> {
        Ok(usize::from(self.byte()?) | usize::from(self.byte()?) << 8)
    }

    /// A length; zero is continued: what fits into its bits, 255 for each zero byte, and the first other byte.
    fn length(&mut self, length: usize, most: usize) -> Result<usize, String> {
        if length != 0 {
            return Ok(length);
        }
        let mut length = most;
        loop {
            match self.byte()? {
                0 => length += 255,
                last => return Ok(length + usize::from(last)),
            }
        }
    }

    fn literals(&mut self, data: &mut Vec<u8>, count: usize, limit: usize) -> Result<(), String> {
        if count > limit - data.len() {
            return Err(format!("more than {limit} bytes come out"));
        }
        let literals = self.packed.get(self.at..self.at + count);
        data.extend_from_slice(literals.ok_or("the stream ends too early")?);
        self.at += count;
        Ok(())
    }
}

/// The data if it has this length.
pub(crate) fn exactly(data: Vec<u8>, length: usize) -> Result<Vec<u8>, String> {
    if data.len() == length {
        return Ok(data);
    }
    Err(format!("{} bytes come out, {length} are expected", data.len()))
}
