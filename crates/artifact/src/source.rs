//! Streams that can be read forwards and left out, down from the input to the innermost member.

use std::cell::Cell;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

use crate::ReadSeek;
use crate::fail::{FATAL, Failure, Place};
use crate::limits::Limits;

/// How much of the input is read at once: a remote file is not read further ahead than this.
const BLOCK: usize = 64 << 10;

/// Decoders and buffers together may hold this much; the rest of 256 MiB is for everything else.
const MEMORY: u64 = 236 << 20;

/// What all layers of one search share: counters and bounds.
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    bytes_read: Cell<u64>,
    members: Cell<u64>,
    output: Cell<u64>,
    memory: Cell<u64>,
}

impl Shared {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            bytes_read: Cell::new(0),
            members: Cell::new(0),
            output: Cell::new(0),
            memory: Cell::new(0),
        }
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.get()
    }

    fn count(&self, bytes: usize) {
        self.bytes_read.set(self.bytes_read.get().saturating_add(len_u64(bytes)));
    }

    pub(crate) fn members(&self) -> u64 {
        self.members.get()
    }

    /// Counts one more member.
    pub(crate) fn member(&self, place: &Place<'_>) -> Result<(), Failure> {
        self.members.set(self.members.get() + 1);
        if self.members.get() > self.limits.members {
            return Err(place.exhausted("members", self.limits.members));
        }
        Ok(())
    }

    /// Counts decompressed bytes; gives the bound once they pass it.
    pub(crate) fn output(&self, bytes: usize) -> Result<(), u64> {
        let total = self.output.get().saturating_add(len_u64(bytes));
        self.output.set(total);
        if total > self.limits.output { Err(self.limits.output) } else { Ok(()) }
    }

    /// What is left of the memory.
    pub(crate) fn memory_left(&self) -> u64 {
        MEMORY.saturating_sub(self.memory.get())
    }
}

/// Memory in use by one part, given back when dropped.
pub(crate) struct Charge<'s> {
    shared: &'s Shared,
    amount: u64,
}

impl<'s> Charge<'s> {
    pub(crate) const fn new(shared: &'s Shared) -> Self {
        Self { shared, amount: 0 }
    }

    pub(crate) const fn shared(&self) -> &'s Shared {
        self.shared
    }

    /// Says how much is in use now; gives the bound when that is too much.
    pub(crate) fn set(&mut self, amount: u64) -> Result<(), u64> {
        let others = self.shared.memory.get().saturating_sub(self.amount);
        let total = others.saturating_add(amount);
        if total > MEMORY {
            return Err(MEMORY);
        }
        self.amount = amount;
        self.shared.memory.set(total);
        Ok(())
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.shared.memory.set(self.shared.memory.get().saturating_sub(self.amount));
    }
}

pub(crate) fn len_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// `value` as a length in memory, at most `max`.
pub(crate) fn len_usize(value: u64, max: usize) -> usize {
    usize::try_from(value).map_or(max, |value| value.min(max))
}

/// Reads over `left` bytes; gives how many of them were not there.
fn read_over(source: &mut (impl BufRead + ?Sized), mut left: u64) -> io::Result<u64> {
    while left > 0 {
        let available = source.fill_buf()?.len();
        if available == 0 {
            break;
        }
        let step = len_usize(left, available);
        source.consume(step);
        left -= len_u64(step);
    }
    Ok(left)
}

/// A stream that is read forwards.
pub(crate) trait Source: BufRead {
    /// Leaves out `count` bytes; gives how many there were, fewer only at the end.
    fn skip(&mut self, count: u64) -> io::Result<u64> {
        Ok(count - read_over(self, count)?)
    }
}

/// Reads until `buf` is full or the source ends.
pub(crate) fn read_full(source: &mut dyn Source, buf: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() {
        let count = source.read(&mut buf[filled..])?;
        if count == 0 {
            break;
        }
        filled += count;
    }
    Ok(filled)
}

/// Reads the rest of `source`, or its first `limit` bytes if it is longer.
pub(crate) fn read_up_to(source: &mut dyn Source, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(len_u64(limit)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How the input is reached.
pub(crate) enum Input<'a> {
    /// Forwards only.
    Stream(&'a mut dyn Read),
    /// A file; its length.
    File(&'a mut dyn ReadSeek, u64),
}

/// The input itself, or a file in a file system: read in blocks.
pub(crate) struct Base<'i, 'a> {
    input: Input<'i>,
    place: Place<'a>,
    shared: &'a Shared,
    /// The file system, if it is a file in one; the input below that counts.
    file_system: Option<&'static str>,
    buf: Box<[u8]>,
    start: usize,
    end: usize,
    /// Where the next block begins.
    offset: u64,
}

impl<'i, 'a> Base<'i, 'a> {
    pub(crate) fn new(input: Input<'i>, place: Place<'a>, shared: &'a Shared) -> Self {
        let buf = vec![0; BLOCK].into_boxed_slice();
        Self { input, place, shared, file_system: None, buf, start: 0, end: 0, offset: 0 }
    }

    /// A file in a file system of this kind.
    pub(crate) fn in_file_system(self, kind: &'static str) -> Self {
        Self { file_system: Some(kind), ..self }
    }

    fn io(&self, error: io::Error) -> io::Error {
        match self.file_system {
            Some(kind) => self.place.in_file_system(kind, error.into()).into(),
            None => fatal(&self.place, error),
        }
    }

    fn read_block(&mut self) -> io::Result<usize> {
        loop {
            let result = match &mut self.input {
                Input::Stream(input) => input.read(&mut self.buf),
                Input::File(input, _) => input.read(&mut self.buf),
            };
            match result {
                Ok(count) => {
                    let count = count.min(self.buf.len());
                    self.offset += len_u64(count);
                    if self.file_system.is_none() {
                        self.shared.count(count);
                    }
                    let limit = self.shared.limits.output;
                    if self.offset > limit && matches!(self.input, Input::Stream(_)) {
                        return Err(self.place.exhausted("bytes in a stream", limit).into());
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.io(error)),
            }
        }
    }
}

impl Read for Base<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buf)
    }
}

impl BufRead for Base<'_, '_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            (self.start, self.end) = (0, self.read_block()?);
        }
        Ok(&self.buf[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }
}

impl Source for Base<'_, '_> {
    fn skip(&mut self, count: u64) -> io::Result<u64> {
        let buffered = len_usize(count, self.end - self.start);
        self.consume(buffered);
        let mut left = count - len_u64(buffered);
        // A short way is read: a remote file would have to be asked anew.
        if left > 2 * len_u64(BLOCK)
            && let Input::File(input, length) = &mut self.input
        {
            let step = left.min(length.saturating_sub(self.offset));
            let to = self.offset + step;
            if let Err(error) = input.seek(SeekFrom::Start(to)) {
                return Err(self.io(error));
            }
            self.offset = to;
            left -= step;
        }
        Ok(count - read_over(self, left)?)
    }
}

/// An error of the input itself, which ends everything.
fn fatal(place: &Place<'_>, source: io::Error) -> io::Error {
    let error = crate::Error::of_input(place.full(), source);
    Failure { level: FATAL, error }.into()
}

/// The input itself, read anywhere, and counted.
pub(crate) struct Counted<'i, 'a> {
    input: &'i mut dyn ReadSeek,
    place: Place<'a>,
    shared: &'a Shared,
}

impl<'i, 'a> Counted<'i, 'a> {
    pub(crate) fn new(input: &'i mut dyn ReadSeek, place: Place<'a>, shared: &'a Shared) -> Self {
        Self { input, place, shared }
    }
}

impl Read for Counted<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = match self.input.read(buf) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            result => result.map_err(|error| fatal(&self.place, error))?,
        };
        self.shared.count(count);
        Ok(count)
    }
}

impl Seek for Counted<'_, '_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.input.seek(to).map_err(|error| fatal(&self.place, error))
    }
}

/// `Read` by way of `BufRead`.
pub(crate) fn read_buffered(source: &mut dyn BufRead, buf: &mut [u8]) -> io::Result<usize> {
    let available = source.fill_buf()?;
    let count = available.len().min(buf.len());
    buf[..count].copy_from_slice(&available[..count]);
    source.consume(count);
    Ok(count)
}

/// A source whose first bytes have been looked at.
pub(crate) struct Peeked<'a> {
    head: Vec<u8>,
    start: usize,
    rest: &'a mut dyn Source,
}

impl<'a> Peeked<'a> {
    /// Looks at the first `count` bytes, fewer if there are not as many.
    pub(crate) fn new(source: &'a mut dyn Source, count: usize) -> io::Result<Self> {
        let mut head = vec![0; count];
        let filled = read_full(source, &mut head)?;
        head.truncate(filled);
        Ok(Self { head, start: 0, rest: source })
    }

    /// The bytes looked at.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }
}

impl Read for Peeked<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.start == self.head.len() { self.rest.read(buf) } else { read_buffered(self, buf) }
    }
}

impl BufRead for Peeked<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.head.len() {
            self.rest.fill_buf()
        } else {
            Ok(&self.head[self.start..])
        }
    }

    fn consume(&mut self, count: usize) {
        if self.start == self.head.len() {
            self.rest.consume(count);
        } else {
            self.start = (self.start + count).min(self.head.len());
        }
    }
}

impl Source for Peeked<'_> {
    fn skip(&mut self, count: u64) -> io::Result<u64> {
        let step = len_usize(count, self.head.len() - self.start);
        self.start += step;
        let left = count - len_u64(step);
        Ok(len_u64(step) + if left > 0 { self.rest.skip(left)? } else { 0 })
    }
}

/// One member of a container: a stretch of the container's source.
pub(crate) struct Member<'a> {
    source: &'a mut dyn Source,
    left: u64,
    /// Where the stretch stands in the container.
    offset: u64,
    container: Place<'a>,
    format: &'static str,
}

impl<'a> Member<'a> {
    pub(crate) const fn new(
        source: &'a mut dyn Source,
        length: u64,
        offset: u64,
        container: Place<'a>,
        format: &'static str,
    ) -> Self {
        Self { source, left: length, offset, container, format }
    }

    /// Goes to the end of the member.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.skip(self.left).map(|_| ())
    }

    fn cut(&self) -> io::Error {
        self.container.truncated(self.format, self.offset).into()
    }
}

impl Read for Member<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buf)
    }
}

impl BufRead for Member<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Ok(&[]);
        }
        // Asked twice, since the borrow of the first answer would reach over the error.
        if self.source.fill_buf()?.is_empty() {
            return Err(self.cut());
        }
        let available = self.source.fill_buf()?;
        Ok(&available[..len_usize(self.left, available.len())])
    }

    fn consume(&mut self, count: usize) {
        let count = len_usize(self.left, count);
        self.source.consume(count);
        self.left -= len_u64(count);
        self.offset += len_u64(count);
    }
}

impl Source for Member<'_> {
    fn skip(&mut self, count: u64) -> io::Result<u64> {
        let wanted = count.min(self.left);
        let skipped = self.source.skip(wanted)?;
        self.left -= skipped;
        self.offset += skipped;
        if skipped < wanted { Err(self.cut()) } else { Ok(skipped) }
    }
}

/// Bytes in memory.
impl Source for &[u8] {}

/// One source after another.
impl<A: Source, B: Source> Source for io::Chain<A, B> {}

impl<S: Source + ?Sized> Source for &mut S {
    fn skip(&mut self, count: u64) -> io::Result<u64> {
        (**self).skip(count)
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn skip(&mut self, count: u64) -> io::Result<u64> {
        (**self).skip(count)
    }
}
