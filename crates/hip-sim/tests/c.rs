//! C programs against the headers and the library, as clients of HIP are built: by every compiler that is here.

#![expect(clippy::print_stdout, reason = "what is skipped is said")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

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

/// Whether the file system of a file takes `O_DIRECT`.
fn takes_direct(file: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::File::options().read(true).custom_flags(libc::O_DIRECT).open(file).is_ok()
}

#[test]
fn direct_storage() {
    for compiler in compilers() {
        let program = Program::build(compiler, "direct.c", &["-std=gnu11"]);
        // tmpfs takes O_DIRECT and any alignment, and does not say so: only the driver's own check refuses there.
        for folder in [program.folder.path(), Path::new("/dev/shm")] {
            if !folder.is_dir() {
                println!("skipped {}, because it is not there", folder.display());
                continue;
            }
            let file = tempfile::NamedTempFile::new_in(folder).expect("a file");
            for direct in ["0", "1"] {
                if direct == "1" && !takes_direct(file.path()) {
                    println!("skipped O_DIRECT, because {} does not take it", folder.display());
                    continue;
                }
                let mut command = program.command(&[]);
                let output = command.arg(file.path()).arg(direct).output().expect("it starts");
                assert_passes(
                    &format!("{compiler}, {}, O_DIRECT {direct}", folder.display()),
                    &output,
                );
            }
        }
    }
}

/// Runs a program in a time that only a hang would take.
fn run_soon(what: &str, command: &mut Command, within: Duration) -> Output {
    use std::io::Read as _;
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            break status;
        }
        if begin.elapsed() > within {
            child.kill().expect("it is a child");
            panic!("{what}: still running after {within:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut stderr = Vec::new();
    child.stderr.take().expect("piped").read_to_end(&mut stderr).expect("readable");
    Output { status, stdout: Vec::new(), stderr }
}

#[test]
fn streams() {
    for compiler in compilers() {
        let program = Program::build(compiler, "streams.c", &["-std=gnu11"]);
        let output = run_soon(compiler, &mut program.command(&[]), Duration::from_mins(1));
        assert_passes(compiler, &output);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let line =
            "hip-sim: a host function waits for the stream that runs it; a GPU would hang here\n";
        assert_eq!(stderr, line.repeat(3), "{compiler}");
    }
}

#[test]
fn the_process_ends_whatever_is_under_way() {
    let program = Program::build(compilers()[0], "exit.c", &["-std=gnu11", "-D_GNU_SOURCE"]);
    for way in ["wait-value", "host-function", "stuck", "queued", "fork-before", "fork-after"] {
        let mut command = program.command(&[]);
        let output = run_soon(way, command.arg(way), Duration::from_secs(30));
        assert_passes(way, &output);
    }
}

#[test]
fn copies_take_their_time_asleep() {
    let program = Program::build(compilers()[0], "pace.c", &["-std=gnu11", "-D_GNU_SOURCE"]);
    let mut command = program.command(&[]);
    command.envs([("HIPSIM_COPY_GBPS", "0.2"), ("HIPSIM_COPY_LATENCY_US", "2000")]);
    command.envs([("HIPSIM_AIS_GBPS", "0.5"), ("HIPSIM_AIS_LATENCY_US", "3000")]);
    command.arg(program.folder.path().join("file"));
    assert_passes("pace", &command.output().expect("it starts"));
}

#[test]
fn headers_in_c_and_cpp() {
    for compiler in compilers() {
        for arguments in [["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++17"]] {
            // Also C++ is compiled by the C compiler's driver: no C++ library is used.
            let program = Program::build(compiler, "header.c", &arguments);
            assert_passes(
                &format!("{compiler} {arguments:?}"),
                &program.command(&[]).output().expect("it starts"),
            );
        }
    }
}

#[test]
fn valgrind_finds_nothing() {
    if !is_there("valgrind") {
        println!("skipped, because valgrind is not installed");
        return;
    }
    let runner = [
        "valgrind",
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
    ];
    for (source, arguments) in [("streams.c", &[][..]), ("direct.c", &["0"][..])] {
        let program = Program::build(compilers()[0], source, &["-std=gnu11"]);
        let mut command = program.command(&runner);
        // Valgrind keeps a record of every page that is mapped.
        command.env("HIPSIM_VRAM_MIB", "16");
        if !arguments.is_empty() {
            command.arg(program.folder.path().join("file")).args(arguments);
        }
        let output = run_soon(source, &mut command, Duration::from_mins(5));
        assert_passes(source, &output);
    }
}

#[test]
fn it_says_what_it_is_and_what_it_cannot_understand() {
    let program = Program::build(compilers()[0], "hello.c", &["-std=gnu11"]);
    let run = |variables: &[(&str, &str)]| {
        let mut command = program.command(&[]);
        let output = command
            .env_remove("HIPSIM_QUIET")
            .envs(variables.iter().copied())
            .output()
            .expect("it starts");
        assert_passes("hello", &output);
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let sign = "hip-sim: this is a simulation of the HIP runtime, there is no GPU behind it \
                (HIPSIM_QUIET=1 leaves this line out)\n";
    assert_eq!(run(&[]), ("hipSuccess 1\n".to_owned(), sign.to_owned()));
    assert_eq!(run(&[("HIPSIM_QUIET", "1")]), ("hipSuccess 1\n".to_owned(), String::new()));
    assert_eq!(
        run(&[("HIPSIM_DEVICES", "0")]),
        ("hipErrorNoDevice 0\n".to_owned(), sign.to_owned())
    );
    let fault = [("HIPSIM_FAULT", "hipGetDeviceCount:1=error:999"), ("HIPSIM_QUIET", "1")];
    assert_eq!(run(&fault), ("hipErrorUnknown -1\n".to_owned(), String::new()));
    let wrong = [
        (("HIPSIM_TYPO", "1"), "HIPSIM_TYPO: there is no such variable"),
        (("HIPSIM_DEVICES", "two"), "HIPSIM_DEVICES: expected a number from 0 to 64, found `two`"),
        (("HIPSIM_FAULT", "hipMaloc=lost"), "HIPSIM_FAULT: there is no function `hipMaloc`"),
        (
            ("HIPSIM_P2PMEM", "/nowhere/allocate"),
            "device 0: /nowhere/allocate: No such file or directory (os error 2)",
        ),
    ];
    for (variable, line) in wrong {
        let (stdout, stderr) = run(&[variable, ("HIPSIM_QUIET", "1")]);
        let code = if variable.0 == "HIPSIM_P2PMEM" {
            "hipErrorOutOfMemory"
        } else {
            "hipErrorNotInitialized"
        };
        assert_eq!(stdout, format!("{code} -1\n"));
        assert_eq!(stderr, format!("hip-sim: {line}\n"));
    }
}

/// The kernel's file for PCI peer-to-peer memory gives new memory to each mapping; a plain file, the same: enough for one.
#[test]
fn device_memory_is_where_p2pmem_says() {
    let program = Program::build(compilers()[0], "p2pmem.c", &["-std=gnu11"]);
    let allocate = program.folder.path().join("allocate");
    std::fs::write(&allocate, [0; 8192]).expect("written");
    std::fs::write(program.folder.path().join("size"), "8192\n").expect("written");
    let output = program.command(&[]).env("HIPSIM_P2PMEM", &allocate).output().expect("it starts");
    assert_passes("p2pmem", &output);
    let found = std::fs::read(&allocate).expect("readable");
    assert_eq!(&found[..14], b"\0peer to peer\0");
}
