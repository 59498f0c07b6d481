//! Container images in a folder.

use std::io;
use std::path::{Path, PathBuf};

use super::{Flow, Hint, Search};
use crate::fail::{Failure, Place, printable};
use crate::regular;

impl Search<'_> {
    /// Looks into each blob of a folder in OCI layout: the layers among them hold the files, manifests and configurations of
    /// images hold nothing. What is no regular file inside the folder is not opened.
    pub(super) fn layout(&mut self, place: &Place<'_>, folder: &Path) -> Result<Flow, Failure> {
        let failure = |error| place.failure(error);
        let folder = folder.canonicalize().map_err(failure)?;
        for blob in blobs(&folder).map_err(failure)? {
            let name = blob.strip_prefix(&folder).unwrap_or(&blob).to_string_lossy();
            let name = printable(&name);
            let inner = place.inside(&name);
            self.shared.member(&inner)?;
            match self.blob(&inner, &folder, &blob) {
                Ok(Flow::Stop) => return Ok(Flow::Stop),
                Ok(_) => {}
                Err(failure) => self.survive(failure, place.level)?,
            }
        }
        Ok(Flow::Next)
    }

    fn blob(&mut self, place: &Place<'_>, folder: &Path, blob: &Path) -> Result<Flow, Failure> {
        let failure = |error| place.failure(error);
        if !blob.canonicalize().map_err(failure)?.starts_with(folder) {
            return Err(place.unsupported("a blob outside of the folder", "refused"));
        }
        let (mut file, metadata) = regular::open(blob).map_err(failure)?;
        let hint = Hint { is_file: true, ..Hint::default() };
        self.file(place, &mut file, metadata.len(), &hint)
    }
}

/// The files below `blobs`, in order of name.
/// Source: <https://github.com/opencontainers/image-spec/blob/main/image-layout.md>.
fn blobs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut blobs = Vec::new();
    for algorithm in std::fs::read_dir(folder.join("blobs"))? {
        let algorithm = algorithm?.path();
        if !algorithm.is_dir() {
            continue;
        }
        for blob in std::fs::read_dir(algorithm)? {
            blobs.push(blob?.path());
        }
    }
    blobs.sort();
    Ok(blobs)
}
