//! What reading a kernel's configuration out of a package costs, beside the tools people type for it.
//!
//! A Debian image package of some 100 MB and an rpm of the size of `kernel-core`, each read from a file, in turns with the
//! package manager's own tools as one pipeline, and by URL from a server on the loopback interface, where the bytes
//! sent count. Run with `cargo bench -p fastpath --bench inspect`; the figures of one run are in `docs/performance.md`.

#![allow(clippy::print_stdout, reason = "a benchmark reports to a terminal")]

mod common;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::kernel::Kernel;
use common::server::Server;
use common::{PROGRAM, folder, sh, turns, word};
use serde_json::Value;

/// Runs of commands that stop early, and of those that unpack everything.
const RUNS: usize = 60;
const LONG_RUNS: usize = 5;

/// How packages are compressed: Fedora and Enterprise Linux 10, and 8 and 9.
const PAYLOADS: [&str; 2] = ["w19.zstdio", "w2.xzdio"];

/// What is asked for: not slower than the tools, and so many times faster than those that unpack 100 MB to the end.
const MOST_TIMES: f64 = 1.0;
const LEAST_TIMES: f64 = 100.0;
const MOST_BYTES: u64 = 1 << 20;

/// Both sides of a comparison are a line that a shell runs.
fn lines(ours: &str, theirs: &str) -> Result<[f64; 2], String> {
    let runs = if theirs.contains("--occurrence") { RUNS } else { LONG_RUNS };
    turns(&[("fastpath", &["sh", "-c", ours]), ("tools", &["sh", "-c", theirs])], 1, runs)
}

/// Both must find the option's line.
fn same_answer(ours: &str, theirs: &str) -> Result<(), String> {
    let theirs = sh(Path::new("."), theirs)?;
    let ours = sh(Path::new("."), &format!("{ours} || true"))?;
    match theirs.lines().next() {
        Some(line) if ours.contains(line) => Ok(()),
        _ => Err(format!("`{theirs}` is not in `{ours}`")),
    }
}

fn deb(kernel: &Kernel) -> Result<(), String> {
    let deb = kernel.deb.display();
    let ours = format!("{PROGRAM} inspect '{deb}'");
    let tar = |option: &str| {
        let config = format!("./boot/config-{}", kernel.release);
        format!("dpkg-deb --fsys-tarfile '{deb}' | tar -xO {option} {config} | grep P2PDMA")
    };
    same_answer(&ours, &tar(""))?;
    let [fastpath, tools] = lines(&ours, &tar("--occurrence=1"))?;
    let ratio = fastpath / tools;
    println!(
        "deb: {ratio:.2} times dpkg-deb | tar --occurrence=1, {} {MOST_TIMES}",
        word(ratio <= MOST_TIMES)
    );
    let [fastpath, tools] = lines(&ours, &tar(""))?;
    let times = tools / fastpath;
    println!(
        "deb: {times:.0} times faster than dpkg-deb | tar, {} {LEAST_TIMES}",
        word(times >= LEAST_TIMES)
    );
    Ok(())
}

fn rpm(kernel: &Kernel, package: &Path, payload: &str) -> Result<(), String> {
    let rpm = package.display();
    let ours = format!("{PROGRAM} inspect '{rpm}'");
    let config = format!("./lib/modules/{}/config", kernel.release);
    let theirs = format!("rpm2cpio '{rpm}' | cpio -i --quiet --to-stdout {config} | grep P2PDMA");
    same_answer(&ours, &theirs)?;
    let [fastpath, tools] = lines(&ours, &theirs)?;
    let ratio = fastpath / tools;
    println!(
        "rpm {payload}: {ratio:.3} times rpm2cpio | cpio, {} {MOST_TIMES}",
        word(ratio <= MOST_TIMES)
    );
    Ok(())
}

/// Reads a package by URL: what the server sent must be what the report says, and little.
fn by_url(server: &Server, package: &Path) -> Result<(), String> {
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    server.take_counts();
    let output = Command::new(PROGRAM)
        .args(["inspect", "--format", "json", &server.url(&name)])
        .output()
        .map_err(|error| format!("{PROGRAM}: {error}"))?;
    let [connections, requests, sent] = server.take_counts();
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let read = report["bytes_read"].as_u64().unwrap_or_default();
    println!(
        "{name} by URL: {sent} bytes sent, {read} in the report, {requests} requests, {connections} connections, \
         {} {MOST_BYTES} bytes",
        word(sent.max(read) <= MOST_BYTES)
    );
    Ok(())
}

fn main() -> Result<(), String> {
    let folder = folder("kernel")?;
    let kernel = match Kernel::fetch(&folder) {
        Ok(kernel) => kernel,
        Err(why) => {
            println!("inspect: skipped, because {why}");
            return Ok(());
        }
    };
    let mut packages = vec![kernel.deb.clone()];
    deb(&kernel)?;
    for payload in PAYLOADS {
        match kernel.rpm(&folder, payload) {
            Ok(package) => {
                rpm(&kernel, &package, payload)?;
                packages.push(package);
            }
            Err(why) => println!("rpm {payload}: skipped, because {why}"),
        }
    }
    let server = Server::start(folder, Duration::ZERO).map_err(|error| error.to_string())?;
    packages.iter().try_for_each(|package| by_url(&server, package))
}
