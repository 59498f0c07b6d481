//! Content that goes on where it was cut.

use std::io::{self, Read};
use std::ops;
use std::sync::Arc;

use super::client::{Failure, Web};
use super::error::FetchError;
use super::{Meter, Part, Range, Request, Validators, address};

/// So much has to come before a cut connection is no longer held against the server.
const PROGRESS: u64 = 64 << 10;

pub(super) struct Resuming {
    web: Arc<Web>,
    url: String,
    /// The next byte, and the one behind the last (the largest number if that is not known).
    at: u64,
    end: u64,
    bounded: bool,
    length: Option<u64>,
    validators: Validators,
    body: Option<Box<dyn Read + Send>>,
    meter: Meter,
    failed: u32,
    since: u64,
}

impl Resuming {
    #[expect(clippy::too_many_arguments, reason = "one caller, which takes an answer apart")]
    pub(super) fn new(
        web: Arc<Web>,
        url: String,
        range: ops::Range<u64>,
        bounded: bool,
        length: Option<u64>,
        validators: Validators,
        body: Box<dyn Read + Send>,
        meter: Meter,
    ) -> Self {
        let (at, end) = (range.start, range.end);
        let body = Some(body);
        Self { web, url, at, end, bounded, length, validators, body, meter, failed: 0, since: 0 }
    }

    /// Reads once; `None` if the connection is cut.
    fn step(&mut self, buffer: &mut [u8]) -> Result<usize, FetchError> {
        let Some(body) = &mut self.body else { return Ok(0) };
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let detail = match body.read(&mut buffer[..left]) {
            Ok(0) if !self.bounded => return Ok(0),
            Ok(0) => format!("expected {} more bytes, found the end", self.end - self.at),
            Ok(read) => {
                self.meter.add(read);
                self.at += read as u64;
                self.since += read as u64;
                return Ok(read);
            }
            Err(error) if self.bounded => {
                format!("expected {} more bytes, found: {error}", self.end - self.at)
            }
            Err(error) => format!("expected more bytes, found: {error}"),
        };
        self.body = None;
        let url = address::shown(&self.url);
        Err(FetchError::Connection { url, offset: self.at, detail, tries: 1 })
    }

    /// Opens again at the place where it was cut.
    fn reopen(&mut self) -> Result<(), Failure> {
        let range = Range { start: self.at, end: self.bounded.then_some(self.end) };
        let request = Request {
            url: &self.url,
            range: Some(range),
            unless: None,
            same: Some(&self.validators),
            meter: &self.meter,
        };
        let changed = |what, expected: String, found: String| {
            let url = address::shown(&self.url);
            Failure::Lasting(FetchError::Changed { url, offset: self.at, what, expected, found })
        };
        let answer = match (self.web.follow(&request), self.length) {
            // It has grown shorter, or its length was a lie.
            (
                Err(Failure::Lasting(FetchError::Behind { length: Some(found), .. })),
                Some(expected),
            ) => {
                return Err(changed("length", expected.to_string(), found.to_string()));
            }
            (other, _) => other?,
        };
        if let Some((what, expected, found)) = self.validators.difference(&answer.validators) {
            return Err(changed(what, expected.to_owned(), found.to_owned()));
        }
        if let (Some(expected), Some(found)) = (self.length, answer.length)
            && expected != found
        {
            return Err(changed("length", expected.to_string(), found.to_string()));
        }
        let mut body = answer.body;
        if answer.part == Part::Whole {
            // It ignores ranges: what is there already is read again and thrown away.
            self.skip(&mut *body)?;
        }
        self.body = Some(body);
        Ok(())
    }

    fn skip(&self, body: &mut dyn Read) -> Result<(), Failure> {
        let mut buffer = [0; 16 << 10];
        let mut left = self.at;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let detail = match body.read(&mut buffer[..most]) {
                Ok(0) => "found the end".to_owned(),
                Ok(read) => {
                    self.meter.add(read);
                    left -= read as u64;
                    continue;
                }
                Err(error) => format!("found: {error}"),
            };
            let url = address::shown(&self.url);
            let offset = self.at - left;
            let detail = format!("expected {left} more bytes to skip, {detail}");
            let error = FetchError::Connection { url, offset, detail, tries: 1 };
            return Err(Failure::Passing(error, None));
        }
        Ok(())
    }
}

impl Read for Resuming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.at >= self.end {
            // Read to the end, so that the connection can be used again.
            if let Some(mut body) = self.body.take().filter(|_| self.at >= self.end) {
                let _ = body.read(&mut [0]);
            }
            return Ok(0);
        }
        let mut error = match self.step(buffer) {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        let mut wait = None;
        if self.since >= PROGRESS {
            self.failed = 0;
        }
        self.since = 0;
        loop {
            self.failed += 1;
            self.web.pause(self.failed, wait, error)?;
            match self.reopen() {
                Ok(()) => match self.step(buffer) {
                    Ok(read) => return Ok(read),
                    Err(again) => (error, wait) = (again, None),
                },
                Err(Failure::Lasting(error)) => return Err(error.into()),
                Err(Failure::Passing(again, again_wait)) => (error, wait) = (again, again_wait),
            }
        }
    }
}
