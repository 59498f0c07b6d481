//! The dynamic loader's cache, `/etc/ld.so.cache`.
//!
//! The form since glibc 2.2, alone or behind the older one: a header of 48 bytes, entries of 24 bytes (flags, offsets of name and
//! path from the header's start, two more numbers), strings that end in NUL. Little-endian, as on every machine this is for.
//! Source: <https://sourceware.org/git/?p=glibc.git;a=blob;f=sysdeps/generic/dl-cache.h>.

use memchr::memchr;

use super::search::STEMS;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const HEADER: usize = 48;
const ENTRY: usize = 24;
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;

/// Flags of a library for x86-64 and this libc.
const X86_64: u32 = 0x0303;

/// No path is longer, its NUL counted.
const MAX_PATH: usize = 4096;

/// More entries of those that are looked for than any cache has. They may share one text, so that their number is no bound.
const MAX_FOUND: usize = 256;

/// What is wrong with a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Defect {
    /// It is something else.
    #[error("not the loader's cache")]
    Magic,
    /// It ends before its end.
    #[error("the loader's cache is cut or damaged")]
    Cut,
}

/// What stands for every path in a home directory: it names a person, and a snapshot keeps none.
pub(super) const HOME: &str = "/home/";

/// The entries for libraries that are looked for: name and path, in the cache's order, as the loader takes them.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<(String, String)>, Defect> {
    let data = new_form(bytes)?;
    let count = number(data, 20).ok_or(Defect::Cut)?;
    let entries = data.get(HEADER..).ok_or(Defect::Cut)?;
    let length = count.checked_mul(ENTRY).ok_or(Defect::Cut)?;
    let entries = entries.get(..length).ok_or(Defect::Cut)?;
    let mut found = Vec::new();
    for entry in entries.chunks_exact(ENTRY) {
        let name = string(data, number(entry, 4)).ok_or(Defect::Cut)?;
        if number(entry, 0) != Some(X86_64 as usize)
            || !STEMS.iter().any(|stem| name.starts_with(stem.as_bytes()))
        {
            continue;
        }
        let path = string(data, number(entry, 8)).ok_or(Defect::Cut)?;
        let (name, path) = (text(name)?, text(path)?);
        if found.len() == MAX_FOUND {
            return Err(Defect::Cut);
        }
        let at_home = path.starts_with(HOME) || path.starts_with("/root/");
        found.push((name, if at_home { HOME.to_owned() } else { path }));
    }
    Ok(found)
}

/// What a snapshot keeps: a cache with the entries that are looked at and no others, for the names of all libraries tell what
/// is installed. A damaged one becomes another with the same defect.
pub(super) fn extract(bytes: &[u8]) -> Vec<u8> {
    match entries(bytes) {
        Ok(entries) => write(&entries),
        Err(Defect::Magic) => Vec::new(),
        Err(Defect::Cut) => MAGIC.to_owned(),
    }
}

fn write(entries: &[(String, String)]) -> Vec<u8> {
    let mut out = MAGIC.to_owned();
    let mut strings = Vec::new();
    // Real caches are below four gigabytes, and so is every part of one.
    let word = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    out.extend(word(entries.len()));
    out.resize(HEADER, 0);
    let start = HEADER + entries.len() * ENTRY;
    for (name, path) in entries {
        out.extend(X86_64.to_le_bytes());
        for text in [name, path] {
            out.extend(word(start + strings.len()));
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
        }
        out.extend([0; 12]);
    }
    out.extend(strings);
    out
}

/// The part of a cache that is in the new form.
fn new_form(bytes: &[u8]) -> Result<&[u8], Defect> {
    if bytes.starts_with(MAGIC) {
        return Ok(bytes);
    }
    if !bytes.starts_with(OLD_MAGIC) {
        return Err(Defect::Magic);
    }
    let count = number(bytes, 12).ok_or(Defect::Cut)?;
    let end = count.checked_mul(OLD_ENTRY).and_then(|length| length.checked_add(OLD_HEADER));
    let data = end.and_then(|end| bytes.get(end.checked_next_multiple_of(8)?..));
    data.filter(|data| data.starts_with(MAGIC)).ok_or(Defect::Cut)
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

fn string(data: &[u8], at: Option<usize>) -> Option<&[u8]> {
    let rest = data.get(at?..)?;
    let end = memchr(0, &rest[..rest.len().min(MAX_PATH)])?;
    Some(&rest[..end])
}

/// A text as it is kept: what is no UTF-8 is replaced, which takes more bytes.
fn text(bytes: &[u8]) -> Result<String, Defect> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    if text.len() < MAX_PATH { Ok(text) } else { Err(Defect::Cut) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(name: &str, path: &str) -> (String, String) {
        (name.to_owned(), path.to_owned())
    }

    fn sample() -> Vec<(String, String)> {
        vec![
            entry("libhipfile.so.0", "/opt/rocm-7.2.0/lib/libhipfile.so.0"),
            entry("libamdhip64.so.7", "/opt/rocm-7.2.0/lib/libamdhip64.so.7"),
            entry("libamdhip64.so.6", "/opt/rocm-6.4.3/lib/libamdhip64.so.6"),
        ]
    }

    #[test]
    fn what_is_looked_for_is_found_and_nothing_else_is_kept() {
        let mut all = sample();
        all.insert(1, entry("libsecret.so.1", "/opt/acme/libsecret.so.1"));
        let bytes = write(&all);
        assert_eq!(entries(&bytes), Ok(sample()));
        let kept = extract(&bytes);
        assert_eq!(entries(&kept), Ok(sample()));
        assert!(!String::from_utf8_lossy(&kept).contains("acme"));
    }

    #[test]
    fn a_home_directory_names_nobody() {
        let name = "libamdhip64.so.7";
        let bytes = write(&[
            entry(name, "/home/alice/rocm/lib/libamdhip64.so.7"),
            entry(name, "/root/lib/x"),
        ]);
        let expected = vec![entry(name, HOME), entry(name, HOME)];
        assert_eq!(entries(&bytes), Ok(expected.clone()));
        assert_eq!(entries(&extract(&bytes)), Ok(expected));
    }

    #[test]
    fn a_path_that_is_no_utf_8_is_the_same_in_a_snapshot() {
        for (length, is_sound) in [(1300, true), (1400, false), (4000, false)] {
            let mut bytes = write(&[entry("libamdhip64.so.7", &"/".repeat(length))]);
            let start = bytes.len() - 1 - length;
            bytes[start + 1..start + length].fill(0xff);
            assert_eq!(entries(&bytes).is_ok(), is_sound, "{length}");
            assert_eq!(entries(&extract(&bytes)), entries(&bytes), "{length}");
        }
    }

    /// Some hundred thousand would fit into a file of the size that is read, with four kilobytes each.
    #[test]
    fn entries_that_share_one_path_are_bounded() {
        for (count, is_sound) in [(MAX_FOUND, true), (MAX_FOUND + 1, false)] {
            let mut bytes = write(&vec![entry("libamdhip64.so.7", "/x"); count]);
            for at in (HEADER..HEADER + count * ENTRY).step_by(ENTRY) {
                bytes.copy_within(HEADER..HEADER + ENTRY, at);
            }
            assert_eq!(entries(&bytes).is_ok(), is_sound, "{count}");
            assert_eq!(entries(&extract(&bytes)), entries(&bytes), "{count}");
        }
    }

    #[test]
    fn the_new_form_may_stand_behind_the_old_one() {
        let mut bytes = b"ld.so-1.7.0\0\x01\0\0\0".to_vec();
        bytes.extend([0; 12]);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(write(&sample()));
        assert_eq!(entries(&bytes), Ok(sample()));
        assert_eq!(entries(&bytes[..40]), Err(Defect::Cut));
    }

    #[test]
    fn libraries_for_other_machines_do_not_count() {
        let mut bytes = write(&sample());
        bytes[HEADER..HEADER + 4].copy_from_slice(&3_u32.to_le_bytes());
        assert_eq!(entries(&bytes), Ok(sample()[1..].to_vec()));
    }

    #[test]
    fn a_damaged_cache_says_so_and_stays_damaged_in_a_snapshot() {
        let whole = write(&sample());
        for length in 0..whole.len() {
            let cut = &whole[..length];
            let expected = if length < MAGIC.len() { Defect::Magic } else { Defect::Cut };
            assert_eq!(entries(cut), Err(expected), "{length}");
            assert_eq!(entries(&extract(cut)), Err(expected), "{length}");
        }
        let mut many = whole.clone();
        many[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(entries(&many), Err(Defect::Cut));
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer_that_a_snapshot_keeps(
            tail in prop::collection::vec(any::<u8>(), 0..400),
            magic in any::<bool>(),
        ) {
            let mut bytes = if magic { MAGIC.to_vec() } else { Vec::new() };
            bytes.extend(tail);
            prop_assert_eq!(entries(&extract(&bytes)), entries(&bytes));
        }
    }
}
