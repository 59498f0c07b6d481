//! Snapshots: what is recorded gives the same facts elsewhere, tells nobody who, and can do no harm.
#![cfg(feature = "snapshot")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::path::Path;

use fastpath_host::snapshot::{Meta, Recorder, Replay, write};
use fastpath_host::{Asked, DirTree, Facts, gather};

fn meta() -> Meta {
    Meta::new("0.1.0", "2026-11-30T12:00:00Z")
}

/// Takes a snapshot of a directory; gives the facts of the directory and of the snapshot, and the snapshot.
fn round_trip(root: &Path) -> (Facts, Facts, Vec<u8>) {
    let tree = DirTree::open(root).unwrap();
    let recorder = Recorder::new(&tree);
    let live = gather(&recorder, &Asked::Running);
    let mut packed = Vec::new();
    write(&recorder, &meta(), &mut packed).unwrap();
    let replay = Replay::from_bytes(packed.clone()).unwrap();
    assert_eq!(replay.meta(), &meta());
    (live, gather(&replay, &Asked::Running), packed)
}

#[test]
fn sample_hosts_give_the_same_facts() {
    let Ok(hosts) = std::fs::read_dir("/work/shared/hosts") else {
        eprintln!("skipped, because there are no sample hosts on this machine");
        return;
    };
    for host in hosts {
        let root = host.unwrap().path().join("root");
        if root.is_dir() {
            let (live, replayed, _) = round_trip(&root);
            assert_eq!(live, replayed, "{}", root.display());
        }
    }
}
