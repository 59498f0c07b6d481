//! `fastpath ask-runtime`, and how `check` starts it: a library that crashes or hangs when it is loaded takes only this process with
//! it.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fastpath_gpu::{Gpu as _, Hip};
use fastpath_host::runtime::{Asked, RuntimeFacts, libraries_to_ask};

use crate::args::AskRuntimeArgs;
use crate::output;

/// Loading the runtime on a machine with many GPUs takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// More runtimes than a machine has that was set up on purpose.
const MOST: usize = 8;

/// Loads the library and prints what it offers, as JSON in the last line.
pub(crate) fn run(args: &AskRuntimeArgs) -> anyhow::Result<u8> {
    let hip = Hip::open(&args.library)?;
    let answer = Asked::Answer { version: hip.version(), direct_storage: hip.has_direct_storage() };
    output::data(&format!("\n{}\n", serde_json::to_string(&answer)?))?;
    Ok(0)
}

/// Asks each runtime that was found.
pub(super) fn ask(facts: &mut RuntimeFacts) {
    let files: Vec<String> = libraries_to_ask(facts).into_iter().map(str::to_owned).collect();
    for file in files.into_iter().take(MOST) {
        let asked = ask_one(&file);
        for library in facts.libraries.iter_mut().filter(|library| library.file == file) {
            library.asked = Some(asked.clone());
        }
    }
}

fn ask_one(file: &str) -> Asked {
    let failed = |why: String| Asked::Failed(format!("loaded and asked, {why}"));
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return failed(error.to_string()),
    };
    let child = Command::new(program)
        .args(["ask-runtime", file])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return failed(error.to_string()),
    };
    let end = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                // It is this process's own child, by its own handle.
                let _ = child.kill().and_then(|()| child.wait());
                return failed(format!("it did not answer in {} s", PATIENCE.as_secs()));
            }
            Err(error) => return failed(error.to_string()),
        }
    };
    let mut text = String::new();
    let read = child.stdout.take().map(|stdout| stdout.take(64 << 10).read_to_string(&mut text));
    let answer = text.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    match (answer, read) {
        (Some(answer), Some(Ok(_))) if status.success() => answer,
        _ => failed(format!("it gave no answer ({status})")),
    }
}
