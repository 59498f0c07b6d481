//! `check --probe`: whether files can be opened for direct I/O, tried.

use std::path::Path;

use fastpath_host::volume::VolumeFacts;
use fastpath_verdict::Verdict;
use fastpath_verdict::volume::VolumesVerdict;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Tries on the mounts that may do; the others are left alone.
pub(super) fn probe(facts: &mut VolumeFacts, verdicts: &VolumesVerdict) {
    let may_do = |verdict| matches!(verdict, Verdict::Supported | Verdict::Unknown);
    for volume in verdicts.volumes.iter().filter(|volume| may_do(volume.verdict)) {
        if let Some(mount) = facts.mounts.get_mut(volume.index) {
            mount.direct_io = direct_io(Path::new(&mount.mount_point));
        }
    }
}

/// Whether a file in the folder can be opened for direct I/O; `None` if no file could be made there. The file has no name, so
/// that nothing stays behind whatever happens.
fn direct_io(folder: &Path) -> Option<bool> {
    let open = |more: OFlags| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | more;
        rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).map(drop)
    };
    match open(OFlags::DIRECT) {
        Ok(()) => Some(true),
        // Only if it is direct I/O that is refused, and not the file.
        Err(Errno::INVAL) if open(OFlags::empty()).is_ok() => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        // Whichever file system it is on: an answer, or none.
        let _ = direct_io(folder.path());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(direct_io(&folder.path().join("none")), None);
        assert_eq!(direct_io(Path::new("/proc")), None);
    }
}
