//! Everything `zstd` makes can be read: each strategy and size of window, with its checksum, which is compared.

use crate::make::{NO, Tar, YES, config, noise};
use crate::tools::{errors, filter, find, have, show};

/// Text, noise, runs and repeats from near and far, then a configuration.
fn content() -> Vec<u8> {
    let mut mixed = Vec::new();
    for round in 0..12_u8 {
        mixed.extend_from_slice(&config("6.1.0", NO));
        mixed.extend_from_slice(&noise(20_000 + 3333 * usize::from(round), u64::from(round)));
        mixed.extend_from_slice(&vec![round; 150_000]);
        let from = mixed.len() / 3;
        mixed.extend_from_within(from..from + 70_001);
        // Few literals of many, so that their codes are long.
        mixed.extend(noise(9000, 77).iter().map(|byte| byte.leading_zeros().to_le_bytes()[0]));
    }
    Tar::default().add("mixed", &mixed).add("boot/config-6.1.0", &config("6.1.0", YES)).end()
}

#[test]
fn every_strategy_and_window_is_read() {
    if !have("zstd") {
        return;
    }
    let content = content();
    let mut ways: Vec<Vec<String>> = Vec::new();
    for level in 1..=19 {
        ways.push(vec![format!("-{level}")]);
    }
    for options in ["--fast=7", "--ultra -22", "--long=27", "--rsyncable", "--no-compress-literals"]
    {
        ways.push(options.split(' ').map(str::to_owned).collect());
    }
    for strategy in 1..=9 {
        for window in [10, 12, 17, 20] {
            ways.push(vec![format!(
                "--zstd=strategy={strategy},wlog={window},hlog={window},clog={window}"
            )]);
        }
    }
    for way in &ways {
        let options: Vec<&str> = way.iter().map(String::as_str).chain(["-q", "-c"]).collect();
        let (found, result) = find("x", &filter("zstd", &options, &content));
        assert_eq!(errors(result), [""; 0], "{way:?}");
        assert_eq!(show(&found), ["boot/config-6.1.0 6.1.0 y"], "{way:?}");
    }
}

#[test]
fn frames_follow_each_other() {
    if !have("zstd") {
        return;
    }
    let content = content();
    let frames = content.chunks(99_991).flat_map(|part| filter("zstd", &["-q", "-c", "-5"], part));
    let skipped = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let bytes: Vec<u8> = frames.chain(skipped).collect();
    let (found, result) = find("x", &bytes);
    assert_eq!(errors(result), [""; 0]);
    assert_eq!(show(&found), ["boot/config-6.1.0 6.1.0 y"]);
}
