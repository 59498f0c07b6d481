//! Disks with some of their bytes changed, partition tables and qcow2: nothing panics, memory is bounded, volumes are told
//! apart, and a disk has the same bytes however it is read.
//!
//! The first byte chooses an image, the rest says what is changed (`fastpath_fuzz::image`); the checksums of a GPT are put
//! right again.

#![no_main]

use std::io::{Read, Seek, SeekFrom};
use std::sync::LazyLock;

use fastpath_artifact::disk::{open, volumes};
use fastpath_artifact::{Finder, ReadSeek};
use fastpath_fuzz::artifact::{LIMITS, within_memory};
use fastpath_fuzz::image::Base;
use libfuzzer_sys::fuzz_target;

static IMAGES: LazyLock<[Base; 5]> = LazyLock::new(|| {
    [
        Base::new(include_bytes!("../images/gpt.gz")),
        Base::new(include_bytes!("../images/mbr.gz")),
        Base::new(include_bytes!("../images/qcow2.gz")),
        Base::new(include_bytes!("../images/qcow2-zlib.gz")),
        Base::new(include_bytes!("../images/qcow2-zstd.gz")),
    ]
});

/// Tables, cached clusters, and a file system on top.
const MEMORY: usize = 64 << 20;

/// Some bytes at an offset; `None` if they cannot be read.
fn at(disk: &mut dyn ReadSeek, offset: u64, len: usize) -> Option<Vec<u8>> {
    disk.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    disk.take(len as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fuzz_target!(|input: &[u8]| {
    let [first, changes @ ..] = input else { return };
    let mut image = IMAGES[usize::from(*first) % 5].changed(changes);
    if *first % 5 == 0 {
        image.seal_gpt();
    }
    let mut other = image.clone();
    within_memory(MEMORY, || {
        let Ok(mut disk) = open(&mut image) else { return };
        let size = disk.seek(SeekFrom::End(0)).expect("a disk has a size");
        let from_start: Vec<_> = (0..48).map(|part| at(&mut *disk, part * 3000, 3000)).collect();
        for part in (0..48_u64).rev() {
            let now = at(&mut *disk, part * 3000, 3000);
            assert_eq!(Some(&now), from_start.get(part as usize), "at {}", part * 3000);
            let ends = size.saturating_sub(part * 3000).min(3000);
            assert!(now.is_none_or(|bytes| bytes.len() as u64 == ends));
        }
        let Ok(found) = volumes(&mut *disk) else { return };
        for (index, volume) in found.iter().enumerate() {
            let same = |other: &&fastpath_artifact::disk::Volume| other.name == volume.name;
            assert_eq!(found.iter().find(same), found.get(index), "two volumes of one name");
            let mut window = volume.open(&mut *disk);
            let length = window.seek(SeekFrom::End(0)).expect("a volume has a size");
            assert!(length <= volume.length);
            let _ =
                at(&mut window, length.saturating_sub(10), 100).map(|end| assert!(end.len() <= 10));
        }
    });
    let mut found = 0;
    let result = within_memory(MEMORY, || {
        Finder::new(LIMITS, false).find(&mut other, "disk", &mut |_| found += 1)
    });
    if let Ok(summary) = result {
        assert_eq!(summary.found, found);
    }
});
