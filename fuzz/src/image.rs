//! Images of disks and file systems, made by the ordinary tools, with stretches changed by the input.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::read::GzDecoder;

/// What is kept of an image: blocks of this size that are not zeros.
const BLOCK: u64 = 1024;

/// The blocks of an image. Kept as its length and, for each block that is not zeros, number and bytes; little-endian, in
/// gzip.
pub struct Base {
    len: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Base {
    /// An image as it is kept in `images`.
    pub fn new(packed: &[u8]) -> Self {
        let mut plain = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut plain).expect("an image of the tree");
        let (len, rest) = plain.split_first_chunk().expect("a length");
        let blocks = rest.chunks_exact(4 + 1024).map(|block| {
            let (number, bytes) = block.split_first_chunk().expect("a number");
            (u64::from(u32::from_le_bytes(*number)), bytes.to_vec())
        });
        Self { len: u64::from_le_bytes(*len), blocks: blocks.collect() }
    }

    /// The image with the changes that an input says: which block (16 bits, counted in those that are not zeros), where in
    /// it (16 bits), how many bytes (8 bits), the bytes.
    pub fn changed(&self, mut input: &[u8]) -> Image<'_> {
        let mut image = Image { base: self, changed: BTreeMap::new(), position: 0 };
        let numbers: Vec<u64> = self.blocks.keys().copied().collect();
        while let [block, high, low, first, count, rest @ ..] = input {
            let index = usize::from(u16::from_le_bytes([*block, *high])) % numbers.len();
            let at = usize::from(u16::from_le_bytes([*low, *first])) % 1024;
            let (bytes, after) = rest.split_at(usize::from(*count).min(rest.len()));
            for (offset, byte) in bytes.iter().enumerate() {
                image.set(numbers[index] * BLOCK + (at + offset) as u64, *byte);
            }
            input = after;
        }
        image
    }
}

/// A changed image.
#[derive(Clone)]
pub struct Image<'b> {
    base: &'b Base,
    changed: BTreeMap<u64, Vec<u8>>,
    position: u64,
}

impl Image<'_> {
    fn block(&self, number: u64) -> Option<&Vec<u8>> {
        self.changed.get(&number).or_else(|| self.base.blocks.get(&number))
    }

    fn set(&mut self, at: u64, byte: u8) {
        let (number, within) = (at / BLOCK, (at % BLOCK) as usize);
        let block = self.block(number).cloned().unwrap_or_else(|| vec![0; 1024]);
        self.changed.entry(number).or_insert(block)[within] = byte;
    }

    fn get(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut view = self.clone();
        view.position = at;
        view.read_exact(&mut bytes).expect("inside of the image");
        bytes
    }

    /// Puts the checksums of a partition table right again.
    pub fn seal_gpt(&mut self) {
        let crc = |bytes: &[u8]| {
            let mut crc = Crc::new();
            crc.update(bytes);
            crc.sum().to_le_bytes()
        };
        let mut header = self.get(512, 92);
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let entries = (word(80) as usize).saturating_mul(word(84) as usize).min(64 << 10);
        let entries = crc(&self.get(1024, entries));
        header[88..92].copy_from_slice(&entries);
        header[16..20].fill(0);
        let own = crc(&header);
        header[16..20].copy_from_slice(&own);
        for (at, byte) in (512..).zip(header) {
            self.set(at, byte);
        }
    }
}

impl Read for Image<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let within = (self.position % BLOCK) as usize;
        let left = self.base.len.saturating_sub(self.position).min(BLOCK - within as u64);
        let count = buf.len().min(left as usize);
        match self.block(self.position / BLOCK) {
            Some(block) => buf[..count].copy_from_slice(&block[within..within + count]),
            None => buf[..count].fill(0),
        }
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Image<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.base.len.checked_add_signed(by),
        };
        self.position = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
