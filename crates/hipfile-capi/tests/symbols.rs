//! What the library offers to linkers and what it needs of them: exactly this.

#![allow(clippy::expect_used, reason = "they are tests")]

#[path = "../layout.rs"]
#[allow(dead_code, reason = "a part is used")]
mod layout;

use std::collections::BTreeSet;

use object::elf::{DT_NEEDED, DT_SONAME, FileHeader64};
use object::read::elf::{Dyn as _, ElfFile, FileHeader as _};
use object::{Endianness, Object as _, ObjectSymbol as _};

/// In the order of hipFile's own documentation; then what `ais-stats` uses, and HIP's function that a client expects here.
const EXPORTED: &str = "
    hipFileGetOpErrorString hipFileHandleRegister hipFileHandleDeregister hipFileBufRegister hipFileBufDeregister
    hipFileRead hipFileWrite hipFileDriverOpen hipFileDriverClose hipFileUseCount hipFileDriverGetProperties
    hipFileDriverSetPollMode hipFileDriverSetMaxDirectIOSize hipFileDriverSetMaxCacheSize
    hipFileDriverSetMaxPinnedMemSize hipFileBatchIOSetUp hipFileBatchIOSubmit hipFileBatchIOGetStatus
    hipFileBatchIOCancel hipFileBatchIODestroy hipFileReadAsync hipFileWriteAsync hipFileStreamRegister
    hipFileStreamDeregister hipFileGetVersion hipFileGetParameterSizeT hipFileGetParameterBool
    hipFileGetParameterString hipFileSetParameterSizeT hipFileSetParameterBool hipFileSetParameterString
    hipFileGetStatsL1 hipFileGetStatsL2 hipFileGetStatsL3
    hipFileStatsCreateContext hipFileStatsCloseContext hipFileStatsConnectToTargetProcess
    hipFileStatsPollTargetProcess hipFileStatsGenerateReport
    hipPeekAtLastError";

/// Of the C library and the compiler; of HIP nothing, so that the library loads without it.
const NEEDED: &str = "ld-linux-x86-64.so.2 libc.so.6 libgcc_s.so.1";

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn library() -> Vec<u8> {
    std::fs::read(layout::built().expect("the library")).expect("readable")
}

#[test]
fn exports_are_hipfiles_and_no_more() {
    let bytes = library();
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let symbols = file.dynamic_symbols().filter(object::ObjectSymbol::is_definition);
    let found: Vec<&str> = symbols.map(|symbol| symbol.name().expect("UTF-8")).collect();
    let set = found.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(words(EXPORTED), set);
    assert_eq!(found.len(), 34 + 5 + 1);
}

#[test]
fn the_name_and_what_is_needed() {
    let bytes = library();
    let file = ElfFile::<FileHeader64<Endianness>>::parse(&*bytes).expect("an ELF file");
    let endian = file.endian();
    let sections = file.elf_header().sections(endian, &*bytes).expect("sections");
    let (dynamic, strings) =
        sections.dynamic(endian, &*bytes).expect("readable").expect("a dynamic section");
    let strings = sections.strings(endian, &*bytes, strings).expect("strings");
    let entries = |tag: object::elf::DynamicTag| {
        let tagged = dynamic.iter().filter(move |entry| entry.d_tag(endian) == tag);
        tagged.map(|entry| entry.string(endian, strings).expect("a string"))
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    assert_eq!(entries(DT_SONAME).map(text).collect::<Vec<_>>(), [layout::SONAME]);
    let needed: BTreeSet<String> = entries(DT_NEEDED).map(text).collect();
    assert!(needed.is_subset(&words(NEEDED)), "{needed:?}");
}

#[test]
fn a_process_that_has_it_loaded_is_known_by_its_note() {
    let path = layout::built().expect("the library").canonicalize().expect("a path");
    let tree = fastpath_host::DirTree::open(std::path::Path::new("/")).expect("the root");
    let path = path.to_str().expect("UTF-8");
    assert_eq!(fastpath_host::runtime::is_ours(&tree, path), Some(true));
    let other = std::env::current_exe().expect("a path");
    assert_eq!(fastpath_host::runtime::is_ours(&tree, other.to_str().expect("UTF-8")), Some(false));
    assert_eq!(fastpath_host::runtime::is_ours(&tree, "/nothing/libhipfile.so.0"), None);
}

/// Code for a GPU would be in sections of its own, and would be registered with HIP when the library loads.
#[test]
fn spec_10_22_there_is_no_code_for_a_gpu() {
    use object::ObjectSection as _;
    let bytes = library();
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let sections: Vec<&str> = file.sections().filter_map(|section| section.name().ok()).collect();
    assert!(sections.contains(&".text"), "{sections:?}");
    let fat = |name: &&str| name.to_ascii_lowercase().contains("fatbin");
    assert_eq!(sections.iter().find(|name| fat(name)), None);
    let find = |word: &[u8]| bytes.windows(word.len()).any(|bytes| bytes == word);
    for word in ["__hipRegisterFatBinary", "hipLaunchKernel", "amdgcn-amd-amdhsa"] {
        assert!(!find(word.as_bytes()), "{word}");
    }
}
