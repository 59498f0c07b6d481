//! What the benchmarks share: commands that take turns, files that are made once, a repository on the loopback interface.

#![allow(dead_code, reason = "each benchmark uses a part of it")]
#![allow(clippy::print_stdout, reason = "a benchmark reports to a terminal")]

pub(crate) mod kernel;
pub(crate) mod load;
pub(crate) mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The program that is measured.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");

/// GNU time, which tells a program's peak memory.
pub(crate) const TIME: &str = "/usr/bin/time";

/// A command that says nothing.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// How long one run takes, from starting the process until it is gone.
pub(crate) fn time(words: &[&str]) -> Result<Duration, String> {
    let start = Instant::now();
    let status = command(words).status().map_err(|error| format!("{}: {error}", words[0]))?;
    let elapsed = start.elapsed();
    // Every answer is fine, a crash is not.
    match status.code() {
        Some(0..=2) => Ok(elapsed),
        _ => Err(format!("{} ended with {status}", words.join(" "))),
    }
}

/// The value at `part` of the way through, in milliseconds.
fn at(sorted: &[Duration], part: usize, of: usize) -> f64 {
    sorted[(sorted.len() - 1) * part / of].as_secs_f64() * 1e3
}

/// Runs commands in turns, so that a busy machine slows all alike; prints and gives their medians in milliseconds.
pub(crate) fn turns<const N: usize>(
    commands: &[(&str, &[&str]); N],
    warm_up: usize,
    runs: usize,
) -> Result<[f64; N], String> {
    let mut times = [const { Vec::new() }; N];
    for run in 0..warm_up + runs {
        for ((_, words), times) in commands.iter().zip(&mut times) {
            let elapsed = time(words)?;
            if run >= warm_up {
                times.push(elapsed);
            }
        }
    }
    let mut medians = [0.0; N];
    for (((name, _), times), median) in commands.iter().zip(&mut times).zip(&mut medians) {
        times.sort_unstable();
        let (low, high) = (at(times, 1, 10), at(times, 9, 10));
        *median = at(times, 1, 2);
        println!("{name}: median {median:.2} ms of {runs} runs, 80 % in {low:.2} to {high:.2} ms");
    }
    Ok(medians)
}

pub(crate) fn word(is_within: bool) -> &'static str {
    if is_within { "within" } else { "NOT within" }
}

/// The first of the tools that is not installed.
pub(crate) fn missing<'a>(tools: &[&'a str]) -> Option<&'a str> {
    let found = |tool: &str| {
        let test = format!("command -v {tool}");
        command(&["sh", "-c", &test]).status().is_ok_and(|status| status.success())
    };
    tools.iter().copied().find(|tool| !found(tool))
}

/// Runs a script in a folder; gives what it prints.
pub(crate) fn sh(folder: &Path, script: &str) -> Result<String, String> {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(folder)
        .env("GNUPGHOME", folder.join("gnupg"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("bash: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{script}`: {}", stderr.trim().lines().last().unwrap_or("it failed")))
}

/// A folder below the build's own that outlasts a run: what is made or fetched is there the next time.
pub(crate) fn folder(name: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Makes `name` in a folder, unless it is there; `script` writes to `$new`.
pub(crate) fn make(folder: &Path, name: &str, script: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    if !path.exists() {
        // Half a file is never taken for a whole one.
        sh(folder, &format!("new='{name}.new'\nrm -rf \"$new\"\n{script}\nmv \"$new\" '{name}'"))?;
    }
    Ok(path)
}

/// The peak memory of one run in KiB.
pub(crate) fn peak(words: &[&str]) -> Option<u64> {
    let words = [&[TIME, "-f", "%M"], words].concat();
    let output = command(&words).stderr(Stdio::piped()).output().ok()?;
    String::from_utf8_lossy(&output.stderr).lines().last()?.trim().parse().ok()
}
