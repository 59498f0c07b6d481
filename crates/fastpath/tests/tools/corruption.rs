//! `verify`: what it finds, and when it proves nothing.

use std::fs;
use std::process::Command;

use super::{Host, SIMULATION, output};

pub(crate) fn verify(host: &Host) -> Command {
    let mut command = host.command("verify");
    command.args(["--seed", "7"]).arg(host.data.path());
    command
}

#[test]
fn verify_compares_both_ways_and_plain_reads() {
    let host = Host::new();
    let (code, out, error) = output(&mut verify(&host));
    assert_eq!((code, error.as_str()), (0, SIMULATION));
    assert_eq!(out, "equal: 25 writes, 304 MiB compared, fastpath and fallback (seed 7)\n");
    assert_eq!(fs::read_dir(host.data.path()).expect("a folder").count(), 0);
}

#[test]
fn verify_finds_a_byte_that_the_fastpath_writes_wrongly() {
    let host = Host::new();
    let (code, out, _) = output(verify(&host).env("HIPSIM_FAULT", "hipAmdFileWrite:2=flip:9"));
    let expected = "MISMATCH at offset 9: expected 0x00, found 0x01 in a block that says offset 0, seed 265; written by the fastpath, \
                    read by the fallback (seed 9)\n";
    assert_eq!((code, out.as_str()), (1, expected));
}

#[test]
fn verify_finds_a_byte_that_the_fastpath_reads_wrongly() {
    let host = Host::new();
    let (code, out, _) = output(verify(&host).env("HIPSIM_FAULT", "hipAmdFileRead:1=flip:4096"));
    let expected = "MISMATCH at offset 4096: expected 0x00, found 0x01 in a block that says offset 4097, seed 8; written by the fallback, \
                    read by the fastpath (seed 8)\n";
    assert_eq!((code, out.as_str()), (1, expected));
    let (code, out, _) =
        output(verify(&host).arg("-q").env("HIPSIM_FAULT", "hipAmdFileRead:1=flip:4096"));
    assert_eq!((code, out.as_str()), (1, ""));
}

/// Each fault at a request for the whole file, whose memory and file are new, and at a small one with other bytes before.
#[test]
fn verify_finds_bytes_that_are_swapped_stale_shifted_cut_off_zeroed_or_spilled() {
    let host = Host::new();
    let another = |byte, offset| {
        format!("expected 0x00, found {byte} in a block that says offset {offset}, seed 7")
    };
    let old = "expected 0x09, found 0x08 in a block that says offset 0, seed 8";
    let writes = [
        (1, "swap", format!("at offset 1: {}", another("0x10", 4096))),
        (1, "stale", "in the file's length: expected 25165824 bytes, found 0".to_owned()),
        (1, "shift", format!("at offset 1: {}", another("0x10", 4096))),
        (1, "tail", "in the file's length: expected 25165824 bytes, found 25161728".to_owned()),
        (
            1,
            "zero",
            "at offset 8: expected 0x07, found 0x00 in a block that says offset 0, seed 0"
                .to_owned(),
        ),
        (1, "spill", "in the file's length: expected 25165824 bytes, found 25169920".to_owned()),
        // A block at 0, over the fallback's with seed 8; half of it in the place of the other.
        (2, "swap", "at offset 0: expected 0x00, found ".to_owned()),
        (2, "stale", format!("at offset 8: {old}")),
        (2, "shift", "at offset 0: expected 0x00, found ".to_owned()),
        (2, "tail", format!("at offset 8: {old}")),
        (
            2,
            "zero",
            "at offset 8: expected 0x09, found 0x00 in a block that says offset 0, seed 0"
                .to_owned(),
        ),
        (
            2,
            "spill",
            "at offset 4097: expected 0x10, found 0x00 in a block that says offset 0, seed 9"
                .to_owned(),
        ),
    ];
    let another = "expected 0x00, found 0x10 in a block that says offset 4096, seed 8";
    let left = "expected 0x00, found 0xa5 in a block that the read left as it was";
    let spilled = |size| {
        format!(
            "in the GPU's memory: a read of {size} bytes at offset 0 changed what stands behind them"
        )
    };
    let reads = [
        (1, "swap", format!("at offset 1: {another}")),
        (1, "stale", format!("at offset 0: {left}")),
        (1, "shift", format!("at offset 1: {another}")),
        (1, "tail", format!("at offset 25161728: {left}")),
        (
            1,
            "zero",
            "at offset 8: expected 0x08, found 0x00 in a block that says offset 0, seed 0"
                .to_owned(),
        ),
        (1, "spill", spilled(25_165_824)),
        // The first two blocks, of which the fallback has written one.
        (2, "swap", format!("at offset 1: {another}")),
        (2, "stale", format!("at offset 0: {left}")),
        (2, "shift", format!("at offset 1: {another}")),
        (2, "tail", format!("at offset 4096: {left}")),
        (
            2,
            "zero",
            "at offset 8: expected 0x0a, found 0x00 in a block that says offset 0, seed 0"
                .to_owned(),
        ),
        (2, "spill", spilled(8192)),
    ];
    let ways = [
        ("hipAmdFileWrite", "written by the fastpath", writes),
        ("hipAmdFileRead", "read by the fastpath", reads),
    ];
    for (function, way, faults) in ways {
        for (call, kind, expected) in faults {
            let fault = format!("{function}:{call}=corrupt:{kind}");
            let (code, out, error) = output(verify(&host).env("HIPSIM_FAULT", &fault));
            assert_eq!((code, error.as_str()), (1, SIMULATION), "{fault}: {out}");
            let (what, how) = out.split_once("; ").expect("two parts");
            assert!(what.starts_with(&format!("MISMATCH {expected}")), "{fault}: {out}");
            assert!(how.contains(way), "{fault}: {out}");
        }
    }
}

#[test]
fn verify_proves_nothing_where_the_fastpath_is_not_taken() {
    let host = Host::new();
    let not_taken = |why: &str| {
        format!(
            "error: the fastpath was not taken, so nothing is proven: {why} (--fallback-only checks the fallback alone)\n"
        )
    };
    let (code, out, error) = output(verify(&host).env("HIPSIM_AIS", "enotty"));
    let why = "the amdgpu driver does not know direct storage requests (ENOTTY)";
    assert_eq!((code, out.as_str(), error), (2, "", format!("{SIMULATION}{}", not_taken(why))));
    let (code, _, error) = output(verify(&host).env("HIPFILE_FORCE_COMPAT_MODE", "true"));
    assert_eq!(
        (code, error),
        (2, format!("{SIMULATION}{}", not_taken("HIPFILE_FORCE_COMPAT_MODE is set")))
    );
    let (code, out, _) = output(verify(&host).arg("--fallback-only").env("HIPSIM_AIS", "enotty"));
    let expected = "equal: 16 writes, 168 MiB compared, the fallback; the fastpath was left out, nothing is proven of it (seed 7)\n";
    assert_eq!((code, out.as_str()), (0, expected));
}

#[test]
fn verify_goes_past_an_advisory_only_if_it_is_told_to() {
    let host = Host::new();
    let release = "5.14.0-700.1.el9_8.x86_64";
    let put = |path: &str, text: &str| {
        let path = host.root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, text).expect("a file");
    };
    put("proc/sys/kernel/osrelease", &format!("{release}\n"));
    put(&format!("boot/config-{release}"), "CONFIG_PCI_P2PDMA=y\n");
    let (code, out, error) = output(&mut verify(&host));
    let expected = "error: the kernel is blocked (advisory el9_8-memory-corruption): its fastpath may corrupt memory; --force tries it \
                    all the same\n";
    assert_eq!((code, out.as_str(), error.as_str()), (2, "", expected));
    let (code, out, _) = output(verify(&host).arg("--force"));
    assert!(code == 0 && out.starts_with("equal: 25 writes"), "{out}");
}
