//! Content that has to come at a least pace: a server that sends a byte now and then would never run into a timeout.

use std::io::{self, Read};
use std::time::{Duration, Instant};

pub(super) struct Paced<R> {
    inner: R,
    time: Duration,
    least: u64,
    /// Spent waiting, and received, in this stretch. What the reader does in between is not the server's fault.
    waited: Duration,
    received: u64,
}

impl<R> Paced<R> {
    /// At least `least` bytes in each stretch of `time` spent waiting.
    pub(super) const fn new(inner: R, time: Duration, least: u64) -> Self {
        Self { inner, time, least, waited: Duration::ZERO, received: 0 }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = Instant::now();
        let read = self.inner.read(buffer)?;
        self.waited += start.elapsed();
        self.received += read as u64;
        if self.waited >= self.time {
            if self.received < self.least && read > 0 {
                let (received, seconds) = (self.received, self.time.as_secs_f64());
                let least = self.least;
                let detail = format!("{received} bytes in {seconds} s, expected at least {least}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, detail));
            }
            (self.waited, self.received) = (Duration::ZERO, 0);
        }
        Ok(read)
    }
}
