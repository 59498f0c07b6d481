//! Which `libhipfile` is this project's: its file says so, since its functions are the same as those of AMD's.

/// The ELF note in this project's library: sizes of the name and of what follows it, the type, the name.
pub const MARK: [u8; 24] = *b"\x09\0\0\0\0\0\0\0\x01\0\0\0fastpath\0\0\0\0";

#[cfg(feature = "runtime")]
pub use reader::is_ours;

#[cfg(feature = "runtime")]
mod reader {
    use std::io;

    use object::LittleEndian;
    use object::elf::FileHeader64;
    use object::read::elf::{FileHeader as _, ProgramHeader as _};
    use object::read::{ReadCache, ReadRef};

    use super::MARK;
    use crate::tree::{ReadSeek, Tree, Want};

    /// A library of either maker has less than 10 MB.
    const LIBRARY: Want =
        Want { limit: 256 << 20, lines: None, redact: None, extract: Some(extract) };

    /// More notes than any library has.
    const MAX_NOTES: usize = 64;

    /// Whether the `libhipfile` at a path is this project's; `None` if it could not be read.
    pub fn is_ours(tree: &dyn Tree, path: &str) -> Option<bool> {
        tree.read(path, &LIBRARY).ok().map(|content| content.bytes == MARK)
    }

    /// The mark, if it is there. Total: what is no library has none.
    fn extract(file: &mut dyn ReadSeek) -> io::Result<Vec<u8>> {
        // Not to take a file that cannot be read for one without a mark.
        let _ = file.read(&mut [0])?;
        let marked = is_marked(&ReadCache::new(file)).unwrap_or(false);
        Ok(if marked { MARK.to_vec() } else { Vec::new() })
    }

    fn is_marked<'d, R: ReadRef<'d>>(bytes: R) -> Option<bool> {
        let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        for segment in header.program_headers(endian, bytes).ok()? {
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
}
