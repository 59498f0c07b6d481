//! Which `libhipfile` is this project's: its file says so, since its functions are the same as those of AMD's.

/// The ELF note in this project's library: sizes of the name and of what follows it, the type, the name.
pub const MARK: [u8; 24] = *b"\x09\0\0\0\0\0\0\0\x01\0\0\0fastpath\0\0\0\0";

#[cfg(feature = "runtime")]
pub use reader::is_ours;

#[cfg(feature = "runtime")]
mod reader {
    use std::io;

    use object::LittleEndian;
    use object::elf::{FileHeader64, PT_NOTE};
    use object::read::elf::{FileHeader as _, ProgramHeader as _};
    use object::read::{ReadCache, ReadRef};

    use super::MARK;
    use crate::tree::{ReadSeek, Tree, Want};

    /// A library of either maker has less than 10 MB.
    const LIBRARY: Want =
        Want { limit: 256 << 20, lines: None, redact: None, extract: Some(extract) };

    /// Sizes of the header of a file and of that of a segment.
    const HEADER: usize = 64;
    const SEGMENT: usize = 56;

    /// More segments than any library has, and more notes in one of them.
    const MAX_SEGMENTS: usize = 64;
    const MAX_NOTES: usize = 64;

    /// Larger than any segment of notes: those of real libraries have less than a kilobyte. Segments may overlap, so that the
    /// file's size is no bound.
    const MAX_NOTE_BYTES: usize = 64 << 10;

    /// Whether the `libhipfile` at a path is this project's; `None` if it could not be read.
    pub fn is_ours(tree: &dyn Tree, path: &str) -> Option<bool> {
        let content = tree.read(path, &LIBRARY).ok()?;
        Some(is_marked(content.bytes.as_slice()).unwrap_or(false))
    }

    /// The smallest library with the mark, if it is there. Total: what is no library has none.
    fn extract(file: &mut dyn ReadSeek) -> io::Result<Vec<u8>> {
        // Not to take a file that cannot be read for one without a mark.
        let _ = file.read(&mut [0])?;
        let marked = is_marked(&ReadCache::new(file)).unwrap_or(false);
        let end = (HEADER + SEGMENT) as u64;
        Ok(if marked { write(&[(end, MARK.len() as u64)]) } else { Vec::new() })
    }

    /// A library with these segments of notes (where, how many bytes), and the mark behind their headers.
    fn write(segments: &[(u64, u64)]) -> Vec<u8> {
        let mut out = b"\x7fELF\x02\x01\x01".to_vec();
        out.resize(HEADER, 0);
        out[32..40].copy_from_slice(&(HEADER as u64).to_le_bytes());
        for (at, value) in [(54, SEGMENT), (56, segments.len())] {
            out[at..at + 2].copy_from_slice(&value.to_le_bytes()[..2]);
        }
        for (at, size) in segments {
            let header = [u64::from(PT_NOTE.0), *at, 0, 0, *size, *size, 4];
            out.extend(header.into_iter().flat_map(u64::to_le_bytes));
        }
        out.extend(MARK);
        out
    }

    fn is_marked<'d, R: ReadRef<'d>>(bytes: R) -> Option<bool> {
        let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        for segment in header.program_headers(endian, bytes).ok()?.iter().take(MAX_SEGMENTS) {
            if segment.p_filesz(endian) > MAX_NOTE_BYTES as u64 {
                continue;
            }
            let Ok(Some(mut notes)) = segment.notes(endian, bytes) else { continue };
            for _ in 0..MAX_NOTES {
                let Ok(Some(note)) = notes.next() else { break };
                let (name, kind) = (note.name(), note.n_type(endian));
                if name == &MARK[12..20] && kind.0 == 1 && note.desc().is_empty() {
                    return Some(true);
                }
            }
        }
        Some(false)
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::runtime::counted::Counted;

        #[test]
        fn a_note_among_others_is_the_mark() {
            let marked = |bytes: &[u8]| is_marked(bytes) == Some(true);
            assert!(marked(&write(&[(0, 0), (64 + 2 * 56, 24)])));
            assert!(!marked(&write(&[(0, 0), (64 + 2 * 56 + 1, 23)])));
            assert!(!marked(&write(&[])));
        }

        /// A tree may give what was taken out before, or the whole file.
        #[test]
        fn what_is_taken_out_of_a_library_is_one_with_the_mark() {
            let extract = |bytes: &[u8]| extract(&mut Counted::new(bytes)).unwrap();
            let once = extract(&write(&[(0, 0), (64 + 2 * 56, 24)]));
            assert_eq!(is_marked(once.as_slice()), Some(true));
            assert_eq!(extract(&once), once);
            assert!(extract(&write(&[])).is_empty());
        }

        #[test]
        fn notes_that_overlap_are_not_read_for_each_segment() {
            const LENGTH: usize = 1 << 20;
            for size in [LENGTH / 2, MAX_NOTE_BYTES] {
                let segments: Vec<(u64, u64)> = (0..5000).map(|at| (at, size as u64)).collect();
                let mut bytes = write(&segments);
                bytes.resize(LENGTH, 0);
                let mut file = Counted::new(&bytes);
                extract(&mut file).unwrap();
                let most = 64 * 5000 + MAX_SEGMENTS * MAX_NOTE_BYTES;
                assert!(file.given() <= most, "{} bytes", file.given());
            }
        }
    }
}
