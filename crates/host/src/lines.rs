//! Applying a line filter to a stream.

use memchr::memchr;

use crate::tree::LineFilter;

/// Of a longer line a filter sees only the start: no file read here has such lines.
const LONGEST_LINE: usize = 64 << 10;

/// More than a filter keeps of any real file, line ends not counted.
const MOST_KEPT: usize = 8 << 20;

/// Feeds chunks through a filter, holding back an unfinished line.
pub(crate) struct Filtered {
    filter: LineFilter,
    pending: Vec<u8>,
    out: Vec<u8>,
    kept: usize,
}

impl Filtered {
    pub(crate) fn new(filter: LineFilter) -> Self {
        Self { filter, pending: Vec::new(), out: Vec::new(), kept: 0 }
    }

    /// Whether the filter has kept more than it can of any real file.
    pub(crate) fn is_too_much(&self) -> bool {
        self.kept > MOST_KEPT
    }

    pub(crate) fn push(&mut self, mut chunk: &[u8]) {
        while let Some(end) = memchr(b'\n', chunk) {
            if self.pending.is_empty() {
                self.keep(&chunk[..end]);
            } else {
                self.hold(&chunk[..end]);
                let line = std::mem::take(&mut self.pending);
                self.keep(&line);
            }
            self.out.push(b'\n');
            chunk = &chunk[end + 1..];
        }
        self.hold(chunk);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        if !self.pending.is_empty() {
            let line = std::mem::take(&mut self.pending);
            self.keep(&line);
        }
        self.out
    }

    fn hold(&mut self, part: &[u8]) {
        let room = LONGEST_LINE - self.pending.len();
        self.pending.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn keep(&mut self, line: &[u8]) {
        let before = self.out.len();
        (self.filter)(&line[..line.len().min(LONGEST_LINE)], &mut self.out);
        self.kept += self.out.len() - before;
    }
}
