//! C programs against the headers and the library, as clients of HIP are built: by every compiler that is here.

#![expect(clippy::print_stdout, reason = "what is skipped is said")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Compilers by the names they may have.
const COMPILERS: [&[&str]; 2] = [&["gcc"], &["clang", "clang-19", "clang-14"]];

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn crate_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The compilers that are here, each said if it is not.
fn compilers() -> Vec<&'static str> {
    let mut found = Vec::new();
    for names in COMPILERS {
        match names.iter().find(|name| is_there(name)) {
            Some(name) => found.push(*name),
            None => println!("skipped {}, because it is not installed", names[0]),
        }
    }
    assert!(!found.is_empty(), "no C compiler is installed");
    found
}

/// A C program, compiled and linked against the simulation.
struct Program {
    folder: tempfile::TempDir,
    binary: PathBuf,
}

impl Program {
    fn build(compiler: &str, source: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        hip_sim::layout::lay_out(folder.path()).expect("a layout");
        let binary = folder.path().join("program");
        let output = Command::new(compiler)
            .args([
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-g",
                "-D__HIP_PLATFORM_AMD__",
                "-I",
            ])
            .arg(crate_path("include"))
            .args(arguments)
            .arg(crate_path("tests/c").join(source))
            .arg("-o")
            .arg(&binary)
            .arg("-L")
            .arg(folder.path())
            .args(["-lamdhip64", "-lpthread"])
            .output()
            .expect("the compiler starts");
        assert!(
            output.status.success(),
            "{compiler} {source}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self { folder, binary }
    }

    fn command(&self, runner: &[&str]) -> Command {
        let mut words = runner.iter().map(OsStr::new).chain([self.binary.as_os_str()]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).env("LD_LIBRARY_PATH", self.folder.path()).env("HIPSIM_QUIET", "1");
        command
    }
}

fn assert_passes(what: &str, output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}: {stderr}", output.status);
}

#[test]
fn memory() {
    for compiler in compilers() {
        let program = Program::build(compiler, "memory.c", &["-std=gnu11"]);
        let mut command = program.command(&[]);
        command.envs([
            ("HIPSIM_DEVICES", "2"),
            ("HIPSIM_VRAM_MIB", "16"),
            ("HIPSIM_PCI", "0000:03:00.0,0000:03:00.1"),
        ]);
        assert_passes(compiler, &command.output().expect("it starts"));
    }
}

/// Temporary files may be on a file system without `O_DIRECT`.
fn takes_direct(folder: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = folder.join("probe");
    std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .is_ok()
}

#[test]
fn direct_storage() {
    for compiler in compilers() {
        let program = Program::build(compiler, "direct.c", &["-std=gnu11"]);
        let file = program.folder.path().join("file");
        for direct in ["0", "1"] {
            if direct == "1" && !takes_direct(program.folder.path()) {
                println!(
                    "skipped O_DIRECT, because the folder of temporary files does not take it"
                );
                continue;
            }
            let output = program.command(&[]).arg(&file).arg(direct).output().expect("it starts");
            assert_passes(&format!("{compiler}, O_DIRECT {direct}"), &output);
        }
    }
}
