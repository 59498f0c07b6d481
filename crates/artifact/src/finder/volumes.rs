//! Disks, the file systems on them, and the kernels in those.

use std::io::Cursor;

use super::{Flow, Hint, Search};
use crate::ReadSeek;
use crate::disk::source::Source;
use crate::disk::{self, qcow2};
use crate::fail::{Failure, Place};
use crate::filesystem::{self, Candidate, CandidateKind, FileSystem};
use crate::names::{self, Kind};
use crate::source::{Base, Input};

/// Whether these first bytes are those of a disk or a file system, as far as they tell.
pub(super) fn is_image(head: &[u8]) -> bool {
    let has_boot_sector = head.get(510..512) == Some(&[0x55, 0xaa]);
    has_boot_sector
        || qcow2::is_qcow2(head)
        || Source::new(&mut Cursor::new(head))
            .and_then(|mut head| filesystem::is_known(&mut head))
            .unwrap_or(false)
}

impl Search<'_> {
    /// Looks into a disk, its partitions or the file system that fills it; `None` if it is nothing of the kind.
    pub(super) fn disk(
        &mut self,
        place: &Place<'_>,
        input: &mut dyn ReadSeek,
    ) -> Result<Option<Flow>, Failure> {
        if place.level > self.shared.limits.depth {
            return Err(place.too_much("levels", u64::from(self.shared.limits.depth)));
        }
        let failure = |error| place.in_file_system("the disk", error);
        let mut disk = disk::open(input).map_err(failure)?;
        let volumes = disk::volumes(&mut *disk).map_err(failure)?;
        if volumes.is_empty() {
            return Ok(None);
        }
        for volume in &volumes {
            let mut window = volume.open(&mut *disk);
            if volume.name.is_empty() {
                return self.volume(&place.unpacked(), &mut window).map(Some);
            }
            match self.volume(&place.inside(&volume.name), &mut window) {
                Ok(Flow::Stop) => return Ok(Some(Flow::Stop)),
                Ok(_) => {}
                Err(failure) => self.survive(failure, place.level)?,
            }
        }
        Ok(Some(Flow::Next))
    }

    fn volume(&mut self, place: &Place<'_>, input: &mut dyn ReadSeek) -> Result<Flow, Failure> {
        let file_system = filesystem::probe(input);
        match file_system.map_err(|error| place.in_file_system("the file system", error))? {
            Some(mut file_system) => self.file_system(place, &mut *file_system),
            // Swap, a boot loader, nothing.
            None => Ok(Flow::Next),
        }
    }

    fn file_system(
        &mut self,
        place: &Place<'_>,
        file_system: &mut dyn FileSystem,
    ) -> Result<Flow, Failure> {
        let candidates = filesystem::candidates(file_system);
        for candidate in candidates.files {
            self.shared.member(place)?;
            let path = candidate.path.trim_start_matches('/').to_owned();
            match self.file_in(&place.inside(&path), file_system, candidate) {
                Ok(Flow::Stop) => return Ok(Flow::Stop),
                Ok(_) => {}
                Err(failure) => self.survive(failure, place.level)?,
            }
        }
        // What was left out may be the one kernel that differs.
        match candidates.cut {
            Some((what, limit)) => Err(place.exhausted(what, limit)),
            None => Ok(Flow::Next),
        }
    }

    fn file_in(
        &mut self,
        place: &Place<'_>,
        file_system: &mut dyn FileSystem,
        candidate: Candidate,
    ) -> Result<Flow, Failure> {
        let kind = match candidate.kind {
            CandidateKind::Config => Kind::Config,
            CandidateKind::Image => Kind::Image,
            CandidateKind::Symbols => Kind::Symbols,
            CandidateKind::Nested => Kind::Archive,
        };
        let found = names::Candidate { kind, release: candidate.release };
        if !self.is_wanted(&found) {
            return Ok(Flow::Next);
        }
        let name = file_system.name();
        let failure = |error| place.in_file_system(name, error);
        let length = file_system.stat(&candidate.path).map_err(failure)?.size;
        let mut file = file_system.open(&candidate.path).map_err(failure)?;
        if candidate.kind == CandidateKind::Nested {
            return Ok(self.disk(place, &mut *file)?.unwrap_or(Flow::Next));
        }
        let input = Input::File(&mut *file, length);
        let mut base = Base::new(input, *place, self.shared).in_file_system(name);
        let hint = Hint { kind: Some(kind), release: found.release, ..Hint::default() };
        self.visit(place, &mut base, &hint)
    }
}
