//! xz with the filters the kernel uses (BCJ): <https://tukaani.org/xz/xz-file-format.txt>.

use std::io::{self, Read};

use lzma_rust2::XzReader;

use super::{Decode, Link, Tail};
use crate::source::len_u64;

pub(crate) const MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// The largest dictionary that is decoded; `xz -9` uses 64 MiB.
const MAX_DICTIONARY: u64 = 192 << 20;

/// Besides the dictionary.
const OVERHEAD: u64 = 256 << 10;

pub(crate) struct Xz<'a> {
    reader: XzReader<Link<'a>>,
    dictionary: u64,
    produced: u64,
}

impl<'a> Xz<'a> {
    pub(crate) fn new(mut link: Link<'a>, tail: Tail, memory: u64) -> Self {
        // The decoder keeps to itself what it uses, so the first block's word counts for all blocks: they hardly ever
        // differ, and a later block that wants more is an error.
        let first = std::io::BufRead::fill_buf(&mut link).map_or(None, first_dictionary);
        let dictionary = first.unwrap_or(MAX_DICTIONARY).clamp(8 << 20, MAX_DICTIONARY);
        let limit = (dictionary + OVERHEAD).min(memory);
        let limit = u32::try_from(limit >> 10).unwrap_or(u32::MAX - 1);
        let reader = XzReader::new_mem_limit(link, tail == Tail::Streams, limit);
        Self { reader, dictionary, produced: 0 }
    }
}

/// The dictionary size of the first block, if the bytes at hand reach so far.
fn first_dictionary(head: &[u8]) -> Option<u64> {
    let block = head.get(12..)?;
    let flags = *block.get(1)?;
    let mut at = 2;
    // Two optional sizes, seven bits a byte.
    for present in [0x40, 0x80] {
        if flags & present != 0 {
            while block.get(at)? & 0x80 != 0 {
                at += 1;
            }
            at += 1;
        }
    }
    for _ in 0..=flags & 3 {
        let (id, size) = (*block.get(at)?, usize::from(*block.get(at + 1)?));
        if id == 0x21 {
            let bits = u32::from(block.get(at + 2)? & 0x3f);
            return match bits {
                40.. => None,
                _ => Some((2 | u64::from(bits & 1)) << (bits / 2 + 11)),
            };
        }
        at += 2 + size;
    }
    None
}

impl<'a> Decode<'a> for Xz<'a> {
    fn decode(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(out)?;
        self.produced += len_u64(count);
        Ok(count)
    }

    fn link(&mut self) -> Option<&mut Link<'a>> {
        Some(self.reader.inner_mut())
    }

    fn memory(&self) -> u64 {
        // The dictionary grows with the output, by doubling.
        self.dictionary.min(2 * self.produced) + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::first_dictionary;

    #[test]
    fn the_dictionary_of_the_first_block_is_read() {
        let stream = [0xfd, b'7', b'z', b'X', b'Z', 0, 0, 1, 0, 0, 0, 0];
        let with = |block: &[u8]| first_dictionary(&[&stream[..], block].concat());
        assert_eq!(with(&[2, 0, 0x21, 1, 22]), Some(8 << 20));
        assert_eq!(with(&[2, 0, 0x21, 1, 28]), Some(64 << 20));
        // x86 BCJ before LZMA2, as the kernel has it, and both sizes given.
        assert_eq!(with(&[3, 1, 4, 0, 0x21, 1, 28]), Some(64 << 20));
        assert_eq!(with(&[3, 0xc0, 0x80, 1, 0x81, 1, 0x21, 1, 23]), Some(12 << 20));
        assert_eq!(with(&[3, 0]), None);
        assert_eq!(with(&[]), None);
    }
}
