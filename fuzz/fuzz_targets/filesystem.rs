//! File systems with some of their bytes changed: nothing panics, reading is bounded in memory, and a file has the same
//! bytes however it is read.
//!
//! The first byte chooses an image, the rest says what is changed (`fastpath_fuzz::image`). The images carry no checksums
//! where the format can do without.

#![no_main]

use std::io::Read;
use std::sync::LazyLock;

use fastpath_artifact::filesystem::{EntryKind, FileSystem, candidates, probe};
use fastpath_fuzz::artifact::within_memory;
use fastpath_fuzz::image::Base;
use libfuzzer_sys::fuzz_target;

static IMAGES: LazyLock<[Base; 7]> = LazyLock::new(|| {
    [
        Base::new(include_bytes!("../images/ext4.gz")),
        Base::new(include_bytes!("../images/xfs.gz")),
        Base::new(include_bytes!("../images/btrfs.gz")),
        Base::new(include_bytes!("../images/fat.gz")),
        Base::new(include_bytes!("../images/squashfs.gz")),
        Base::new(include_bytes!("../images/squashfs-zstd.gz")),
        Base::new(include_bytes!("../images/iso9660.gz")),
    ]
});

/// The most of one file that is read.
const MOST: usize = 256 << 10;

/// Beyond the files read here: caches, directories and decompressed blocks.
const MEMORY: usize = 64 << 20;

fn look(fs: &mut dyn FileSystem) {
    let roots = fs.roots().to_vec();
    assert!(!roots.is_empty() && roots.iter().all(|root| root.starts_with('/')));
    for directory in ["/", "/boot", "/lib/modules", "/boot/../lib/./modules/6.1.0-9-amd64"] {
        for entry in fs.read_dir(directory).unwrap_or_default() {
            assert!(
                !matches!(entry.name.as_str(), "" | "." | "..")
                    && !entry.name.contains(['/', '\0'])
            );
        }
    }
    let found = candidates(fs).files;
    for candidate in found.iter().take(20) {
        let path = &candidate.path;
        assert!(path.starts_with('/'));
        let Ok(stat) = fs.stat(path) else { continue };
        assert!(stat.kind != EntryKind::Link, "links are followed");
        let whole = fs.read(path, MOST);
        if let Ok(whole) = &whole {
            assert_eq!(whole.len() as u64, stat.size);
        }
        let Ok(mut file) = fs.open(path) else {
            assert!(whole.is_err(), "a file that can be read can be opened");
            continue;
        };
        let mut parts = Vec::new();
        let mut buf = [0; 777];
        let end = loop {
            match file.read(&mut buf) {
                Ok(0) => break Ok(()),
                Ok(count) => parts.extend_from_slice(&buf[..count]),
                Err(error) => break Err(error),
            }
            if parts.len() > MOST {
                break Ok(());
            }
        };
        drop(file);
        match whole {
            Ok(whole) => assert!(end.is_ok() && parts == whole, "{path} read in parts"),
            Err(error) if stat.size <= MOST as u64 => {
                assert!(end.is_err(), "{path} read whole: {error}");
            }
            Err(_) => {}
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [first, changes @ ..] = input else { return };
    let mut image = IMAGES[usize::from(*first) % 7].changed(changes);
    within_memory(MEMORY, || {
        if let Ok(Some(mut fs)) = probe(&mut image) {
            look(&mut *fs);
        }
    });
});
