//! The commands that move bytes, each as a whole program with the simulated HIP runtime where a loader finds the real one.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

#[path = "../browser/mod.rs"]
mod browser;
mod copies;
mod corruption;
mod ends;
mod measurements;
mod statistics;
mod terminal;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A program beside a simulated GPU, on a host whose kernel says nothing, so that the driver decides.
struct Host {
    sim: TempDir,
    root: TempDir,
    data: TempDir,
}

impl Host {
    fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a folder");
        let host = Self { sim: folder(), root: folder(), data: folder() };
        hip_sim::layout::lay_out(host.sim.path()).expect("a layout");
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    fn program(&self, program: &Path, command: &str) -> Command {
        let mut it = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name
                .to_str()
                .is_some_and(|name| name.starts_with("HIPFILE_") || name.starts_with("HIPSIM_"))
            {
                it.env_remove(name);
            }
        }
        it.env("LD_LIBRARY_PATH", self.sim.path())
            .env("HIPSIM_QUIET", "1")
            .env("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true")
            .env("NO_COLOR", "1");
        if !command.is_empty() {
            it.arg(command);
        }
        it
    }

    fn command(&self, command: &str) -> Command {
        let mut it = self.program(Path::new(env!("CARGO_BIN_EXE_fastpath")), command);
        it.arg("--root").arg(self.root.path());
        it
    }
}

fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code().expect("it ends by itself"), text(stdout), text(stderr))
}

/// Waits for what happens soon.
fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < Duration::from_mins(1), "{what} has not happened");
        std::thread::sleep(Duration::from_millis(2));
    }
}

const SIMULATION: &str =
    "SIMULATION: the HIP runtime is a simulation; this says nothing about any GPU\n";

#[test]
fn without_hip_the_tools_say_what_is_missing() {
    let host = Host::new();
    let mut command = host.command("bench");
    command.arg(host.data.path()).env_remove("LD_LIBRARY_PATH");
    let (code, out, error) = output(&mut command);
    assert_eq!((code, out.as_str()), (2, ""));
    let begin = "error: no HIP runtime: libamdhip64.so cannot be loaded: libamdhip64.so.7: cannot open shared object file";
    assert!(error.starts_with(begin), "{error}");
    assert!(error.ends_with(" (LD_LIBRARY_PATH or ROCM_PATH says where to look)\n"), "{error}");
    // One that is there and does not load tells more.
    let rocm = host.path("rocm");
    fs::create_dir_all(rocm.join("lib")).expect("a folder");
    fs::write(rocm.join("lib/libamdhip64.so"), "no library").expect("a file");
    let (_, _, error) = output(command.env("ROCM_PATH", &rocm));
    assert!(error.contains("/rocm/lib/libamdhip64.so: file too short"), "{error}");
}

/// Bytes that repeat nowhere near.
fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

/// The program under another tool's name.
fn link(host: &Host, name: &str) -> PathBuf {
    let link = host.sim.path().join(name);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fastpath"), &link).expect("a link");
    link
}

/// A program that does I/O for long enough to be looked at.
fn busy(host: &Host, before: &[&str]) -> Vec<String> {
    let source = host.path("source");
    fs::write(&source, bytes(96 << 20)).expect("a file");
    let mut words: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
    words.push(env!("CARGO_BIN_EXE_fastpath").to_owned());
    words.extend(["cp", "-q", "--root"].map(str::to_owned));
    for path in [host.root.path(), &source, &host.path("copy")] {
        words.push(path.to_str().expect("UTF-8").to_owned());
    }
    words
}
