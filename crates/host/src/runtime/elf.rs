//! What a shared library is, by its bytes.

use serde::{Deserialize, Serialize};

/// What stands in a file with the name of a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Image {
    /// A shared library for x86-64.
    Library {
        /// The name programs are linked to, `libamdhip64.so.7`.
        soname: Option<String>,
        /// Which functions of [`exports`](super::exports) it has for others, in that order.
        exports: Vec<String>,
    },
    /// A library that no x86-64 program gets: of 32 bits, or for another processor.
    OtherMachine,
    /// No ELF file at all.
    NotElf,
    /// An ELF file that ends before its end, contradicts itself, or has no table of dynamic symbols.
    Damaged,
    /// It could not be read: one clause.
    Unread(String),
}

impl Image {
    /// Whether it has a function for others; `None` if that could not be told.
    pub fn has(&self, name: &str) -> Option<bool> {
        match self {
            Self::Library { exports, .. } => Some(exports.iter().any(|it| it == name)),
            _ => None,
        }
    }
}

#[cfg(feature = "runtime")]
pub(super) use reader::{extract, image};

/// Without the feature `runtime` there is no reader of ELF files.
#[cfg(not(feature = "runtime"))]
pub(super) fn image(_: &[u8]) -> Image {
    Image::Unread("this program was built without the reader of libraries".to_owned())
}

#[cfg(not(feature = "runtime"))]
#[allow(clippy::unnecessary_wraps, reason = "as the reader that may fail")]
pub(super) fn extract(_: &mut dyn crate::tree::ReadSeek) -> std::io::Result<Vec<u8>> {
    Ok(Vec::new())
}

#[cfg(feature = "runtime")]
mod reader {
    use object::LittleEndian;
    use object::elf::{
        DT_NULL, DT_SONAME, EM_X86_64, ET_DYN, EV_CURRENT, SHN_UNDEF, SHT_DYNAMIC, SHT_DYNSYM,
        SHT_STRTAB, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STV_DEFAULT, STV_PROTECTED,
    };
    use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _, Sym as _};
    use object::read::{ReadCache, ReadRef};

    use std::io;

    use super::Image;
    use crate::runtime::exports::ALL;
    use crate::tree::ReadSeek;

    const MAGIC: &[u8] = b"\x7fELF";

    /// `e_ident` with 64 bits, little-endian, and the current version.
    const IDENT: &[u8] = b"\x7fELF\x02\x01\x01";

    /// Where the file's type and machine end, which stand in one place for 32 and 64 bits.
    const MACHINE_END: usize = 20;

    /// The head of a library of 32 bits, which stands for every one of another machine.
    const OTHER: &[u8; MACHINE_END] = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x03\0";

    /// Longer than any soname.
    const MAX_SONAME: usize = 255;

    /// What a library is. Total: every defect is [`Image::Damaged`].
    pub(in crate::runtime) fn image<'d, R: ReadRef<'d>>(bytes: R) -> Image {
        if bytes.read_bytes_at(0, MAGIC.len() as u64) != Ok(MAGIC) {
            return Image::NotElf;
        }
        let Ok(head) = bytes.read_bytes_at(0, MACHINE_END as u64) else { return Image::Damaged };
        if !matches!(head[4], 1 | 2) || !matches!(head[5], 1 | 2) {
            return Image::Damaged;
        }
        if !head.starts_with(&IDENT[..6]) || head[18..] != EM_X86_64.0.to_le_bytes() {
            return Image::OtherMachine;
        }
        library(bytes).unwrap_or(Image::Damaged)
    }

    fn library<'d, R: ReadRef<'d>>(bytes: R) -> Option<Image> {
        let file = ElfFile64::<LittleEndian, R>::parse(bytes).ok()?;
        let endian = file.endian();
        if file.elf_header().e_type(endian) != ET_DYN {
            return None;
        }
        let symbols = file.elf_dynamic_symbol_table();
        // The first symbol of every table is empty.
        if symbols.len() < 2 {
            return None;
        }
        // Read once: names may overlap, and would be read for each symbol.
        let strings = file.elf_section_table().section(symbols.string_section()).ok()?;
        let strings = strings.data(endian, bytes).ok()?;
        let mut found = [false; ALL.len()];
        for symbol in symbols.iter() {
            let defined = symbol.st_shndx(endian) != SHN_UNDEF
                && matches!(symbol.st_bind(), STB_GLOBAL | STB_WEAK)
                && matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC)
                && matches!(symbol.st_visibility(), STV_DEFAULT | STV_PROTECTED);
            if defined {
                let name = strings.get(usize::try_from(symbol.st_name(endian)).ok()?..)?;
                for (found, wanted) in found.iter_mut().zip(ALL) {
                    let rest = name.strip_prefix(wanted.as_bytes());
                    *found |= rest.is_some_and(|rest| rest.starts_with(&[0]));
                }
            }
        }
        let dynamic = file.elf_dynamic_table().ok()?;
        let soname = dynamic.iter().find(|entry| entry.tag == DT_SONAME);
        let soname = match soname {
            Some(entry) => {
                // What is no UTF-8 is replaced, which takes more bytes.
                let name = String::from_utf8_lossy(dynamic.string(entry).ok()?).into_owned();
                Some(Some(name).filter(|name| name.len() <= MAX_SONAME)?)
            }
            None => None,
        };
        let exports = ALL.iter().zip(found).filter(|(_, found)| *found);
        let exports = exports.map(|(name, _)| (*name).to_owned()).collect();
        Some(Image::Library { soname, exports })
    }

    /// What is read of a library: the smallest one that is the same to [`image`]. A real runtime has 25 to 40 MB, of which its
    /// headers and tables of symbols are looked at.
    pub(in crate::runtime) fn extract(file: &mut dyn ReadSeek) -> io::Result<Vec<u8>> {
        // Not to take a file that cannot be read for one that is no library.
        let _ = file.read(&mut [0])?;
        Ok(match image(&ReadCache::new(file)) {
            Image::Library { soname, exports } => write(soname.as_deref(), &exports),
            Image::OtherMachine => OTHER.to_vec(),
            Image::NotElf | Image::Unread(_) => Vec::new(),
            Image::Damaged => MAGIC.to_owned(),
        })
    }

    /// A library with a name and functions, and nothing behind them.
    fn write(soname: Option<&str>, exports: &[String]) -> Vec<u8> {
        // Both the header of the file and that of a section.
        const HEADER: usize = 64;
        let mut strings = vec![0];
        let mut add = |text: &str| {
            let at = strings.len() as u64;
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
            at
        };
        // Two empty symbols, so that a library without functions has a table too.
        let mut symbols = vec![0; 48];
        for name in exports {
            symbols.extend_from_slice(&add(name).to_le_bytes()[..4]);
            symbols.extend([STB_GLOBAL.0 << 4 | STT_FUNC.0, STV_DEFAULT.0, 1, 0]);
            symbols.extend([0; 16]);
        }
        let mut dynamic = Vec::new();
        let soname = soname.map(|soname| (DT_SONAME.0 as u64, add(soname)));
        for (tag, value) in soname.into_iter().chain([(DT_NULL.0 as u64, 0)]) {
            dynamic.extend(tag.to_le_bytes());
            dynamic.extend(value.to_le_bytes());
        }
        let mut out = IDENT.to_vec();
        out.resize(16, 0);
        out.extend(ET_DYN.0.to_le_bytes());
        out.extend(EM_X86_64.0.to_le_bytes());
        out.extend(u32::from(EV_CURRENT.0).to_le_bytes());
        out.resize(HEADER, 0);
        let mut sections = vec![0; HEADER];
        // Type, contents, the section whose strings it uses, size of an entry.
        let parts = [
            (SHT_DYNSYM.0, symbols, 2, 24),
            (SHT_STRTAB.0, strings, 0, 0),
            (SHT_DYNAMIC.0, dynamic, 2, 16),
        ];
        for (kind, bytes, link, size) in parts {
            let offset = out.len().next_multiple_of(8);
            out.resize(offset, 0);
            sections.extend(0_u32.to_le_bytes());
            sections.extend(kind.to_le_bytes());
            sections.extend([0; 16]);
            sections.extend((offset as u64).to_le_bytes());
            sections.extend((bytes.len() as u64).to_le_bytes());
            sections.extend(u32::to_le_bytes(link));
            sections.extend(1_u32.to_le_bytes());
            sections.extend(8_u64.to_le_bytes());
            sections.extend(u64::to_le_bytes(size));
            out.extend(bytes);
        }
        let offset = out.len().next_multiple_of(8);
        out.resize(offset, 0);
        out.extend(sections);
        out[40..48].copy_from_slice(&(offset as u64).to_le_bytes());
        // Sizes and numbers of program headers and sections.
        for (at, value) in [(52, 64), (54, 56), (56, 0), (58, 64), (60, 4), (62, 2)] {
            out[at..at + 2].copy_from_slice(&u16::to_le_bytes(value));
        }
        out
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        use super::*;
        use crate::runtime::counted::Counted;
        use crate::runtime::exports::{AIS_READ, AIS_WRITE};

        fn extract(bytes: &[u8]) -> Vec<u8> {
            super::extract(&mut io::Cursor::new(bytes)).unwrap()
        }

        fn image(bytes: &[u8]) -> Image {
            super::image(bytes)
        }

        fn library(soname: Option<&str>, exports: &[&str]) -> (Image, Vec<u8>) {
            let exports: Vec<String> = exports.iter().map(|&name| name.to_owned()).collect();
            let bytes = write(soname, &exports);
            (Image::Library { soname: soname.map(str::to_owned), exports }, bytes)
        }

        #[test]
        fn what_is_written_is_read() {
            for (soname, exports) in [
                (Some("libamdhip64.so.7"), &[AIS_READ, AIS_WRITE][..]),
                (Some("libamdhip64.so.6"), &[]),
                (None, &[AIS_READ]),
            ] {
                let (expected, bytes) = library(soname, exports);
                assert_eq!(image(&bytes), expected);
                assert_eq!(extract(&bytes), bytes);
                assert!(bytes.len() < 1024);
            }
        }

        #[test]
        fn every_cut_is_seen() {
            let (_, bytes) = library(Some("libamdhip64.so.7"), &[AIS_READ, AIS_WRITE]);
            for length in 0..bytes.len() {
                let cut = &bytes[..length];
                let expected = if length < MAGIC.len() { Image::NotElf } else { Image::Damaged };
                assert_eq!(image(cut), expected, "{length}");
                assert_eq!(image(&extract(cut)), expected, "{length}");
            }
        }

        #[test]
        fn other_machines_are_told_apart() {
            let (_, bytes) = library(None, &[AIS_READ]);
            for (at, value) in [(4, 1), (5, 2), (18, 183)] {
                let mut other = bytes.clone();
                other[at] = value;
                assert_eq!(image(&other), Image::OtherMachine, "{at}");
                assert_eq!(image(&extract(&other)), Image::OtherMachine, "{at}");
            }
        }

        #[test]
        fn a_soname_that_is_no_utf_8_is_the_same_in_a_snapshot() {
            for (length, is_sound) in [(80, true), (90, false), (250, false)] {
                let (_, mut bytes) = library(Some(&"~".repeat(length)), &[AIS_READ]);
                bytes.iter_mut().filter(|byte| **byte == b'~').for_each(|byte| *byte = 0xff);
                assert_eq!(image(&bytes).has(AIS_READ), is_sound.then_some(true), "{length}");
                assert_eq!(image(&extract(&bytes)), image(&bytes), "{length}");
            }
        }

        #[test]
        fn names_that_overlap_are_not_read_for_each_symbol() {
            let long = "x".repeat(4000);
            let names = [&[long.as_str()][..], &["y"; 500]].concat();
            let (_, mut bytes) = library(None, &names);
            for index in 0..names.len() {
                let at = 64 + 48 + 24 * index;
                bytes[at..at + 4].copy_from_slice(&(1 + index).to_le_bytes()[..4]);
            }
            let mut file = Counted::new(&bytes);
            super::extract(&mut file).unwrap();
            assert!(file.given() < 2 * bytes.len(), "{} of {} bytes", file.given(), bytes.len());
        }

        proptest! {
            #[test]
            fn any_damage_gives_an_answer_that_a_snapshot_keeps(
                at in 0_usize..600,
                value in any::<u8>(),
            ) {
                let (_, mut bytes) = library(Some("libamdhip64.so.7"), &[AIS_READ, AIS_WRITE]);
                let length = bytes.len();
                bytes[at % length] = value;
                prop_assert_eq!(image(&extract(&bytes)), image(&bytes));
            }
        }
    }
}
