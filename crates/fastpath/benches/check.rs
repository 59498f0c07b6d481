//! What the whole program costs beside the command that the support page tells people to type.
//!
//! `fastpath check --layer kernel` and `zgrep CONFIG_PCI_P2PDMA /proc/config.gz` are run in turns, so that a busy machine
//! slows both alike; only their ratio is asked for: at most 1.5, with a peak memory below 10 MiB. Run with `cargo bench
//! -p fastpath --bench check`; the figures of one run are in `docs/performance.md`.

#![allow(clippy::print_stdout, reason = "a benchmark reports to a terminal")]

mod common;

use std::path::Path;

use common::{PROGRAM, TIME, command, peak, turns, word};

/// The running kernel's configuration; not every kernel has it.
const CONFIG: &str = "/proc/config.gz";

/// Runs of each program that are measured, after some that are not.
const RUNS: usize = 300;
const WARM_UP: usize = 10;

/// Runs in which the peak memory is looked at.
const MEMORY_RUNS: usize = 20;

/// What is asked for.
const MOST_TIMES: f64 = 1.5;
const MOST_KIB: u64 = 10 << 10;

fn durations(check: &[&str], zgrep: &[&str]) -> Result<(), String> {
    let [fastpath, zgrep] = turns(&[("fastpath", check), ("zgrep", zgrep)], WARM_UP, RUNS)?;
    let ratio = fastpath / zgrep;
    println!("time: {ratio:.2} times zgrep's, {} {MOST_TIMES}", word(ratio <= MOST_TIMES));
    Ok(())
}

fn memory(check: &[&str]) {
    if !Path::new(TIME).exists() {
        println!("peak memory: skipped, because {TIME} is not installed");
        return;
    }
    match (0..MEMORY_RUNS).map(|_| peak(check)).collect::<Option<Vec<u64>>>() {
        Some(peaks) => {
            let most = peaks.into_iter().max().unwrap_or_default();
            println!("peak memory: {most} KiB, {} {MOST_KIB} KiB", word(most < MOST_KIB));
        }
        None => println!("peak memory: skipped, because {TIME} does not tell it"),
    }
}

fn main() -> Result<(), String> {
    let check = [PROGRAM, "check", "--layer", "kernel"];
    let zgrep = ["zgrep", "CONFIG_PCI_P2PDMA", CONFIG];
    if !Path::new(CONFIG).exists() {
        println!("time: skipped, because this kernel has no {CONFIG}");
    } else if command(&["zgrep", "--version"]).status().is_err() {
        println!("time: skipped, because zgrep is not installed");
    } else {
        durations(&check, &zgrep)?;
    }
    memory(&check);
    Ok(())
}
