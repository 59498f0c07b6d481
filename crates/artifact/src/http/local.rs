//! Local files, behind the same trait as remote ones.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::error::FetchError;
use super::{Meter, Part, Request, Response, Validators};
use crate::regular;

pub(super) fn get(path: &Path, request: &Request<'_>) -> Result<Response, FetchError> {
    let failed = |source| FetchError::File { path: path.to_owned(), source };
    let (mut file, metadata) = regular::open(path).map_err(failed)?;
    let length = metadata.len();
    // As fine as the file system's clock, so that a file replaced within a second is noticed.
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let validators = Validators {
        etag: None,
        last_modified: modified
            .map(|time| format!("{}.{:09}", time.as_secs(), time.subsec_nanos())),
    };
    let answer = |part, body: Box<dyn Read + Send>| Response {
        part,
        url: request.url.to_owned(),
        length: Some(length),
        validators: validators.clone(),
        body,
    };
    if request.unless.is_some_and(|known| *known == validators) {
        return Ok(answer(Part::NotModified, Box::new(io::empty())));
    }
    let Some(range) = request.range else {
        let body = Metered { inner: file, meter: request.meter.clone() };
        return Ok(answer(Part::Whole, Box::new(body)));
    };
    if range.start >= length {
        let url = request.url.to_owned();
        return Err(FetchError::Behind { url, offset: range.start, length: Some(length) });
    }
    file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
    let end = range.end.unwrap_or(length).min(length);
    let part = file.take(end.saturating_sub(range.start));
    let body = Metered { inner: part, meter: request.meter.clone() };
    Ok(answer(Part::Range, Box::new(body)))
}

struct Metered<R> {
    inner: R,
    meter: Meter,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.meter.add(read);
        Ok(read)
    }
}
