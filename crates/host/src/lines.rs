//! Applying a line filter to a stream.

use memchr::memchr;

use crate::tree::LineFilter;

/// Feeds chunks through a filter, holding back an unfinished line.
pub(crate) struct Filtered {
    filter: LineFilter,
    pending: Vec<u8>,
    out: Vec<u8>,
}

impl Filtered {
    pub(crate) fn new(filter: LineFilter) -> Self {
        Self { filter, pending: Vec::new(), out: Vec::new() }
    }

    pub(crate) fn push(&mut self, mut chunk: &[u8]) {
        while let Some(end) = memchr(b'\n', chunk) {
            if self.pending.is_empty() {
                (self.filter)(&chunk[..end], &mut self.out);
            } else {
                self.pending.extend_from_slice(&chunk[..end]);
                (self.filter)(&self.pending, &mut self.out);
                self.pending.clear();
            }
            self.out.push(b'\n');
            chunk = &chunk[end + 1..];
        }
        self.pending.extend_from_slice(chunk);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        if !self.pending.is_empty() {
            (self.filter)(&self.pending, &mut self.out);
        }
        self.out
    }
}
