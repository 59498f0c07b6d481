//! C programs against the header and the library, built and run as a user of hipFile would.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "they are tests")]

#[path = "../../layout.rs"]
pub(crate) mod layout;

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Compilers by the names they may have.
const COMPILERS: [&[&str]; 2] = [&["gcc"], &["clang", "clang-19", "clang-14"]];

/// C and C++ as the header must fit them.
pub(crate) const LANGUAGES: [[&str; 3]; 2] =
    [["-x", "c", "-std=gnu11"], ["-x", "c++", "-std=gnu++17"]];

/// Long enough for the slowest program under Valgrind on a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);

pub(crate) fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The compilers that are here, each said if it is not.
pub(crate) fn compilers() -> Vec<&'static str> {
    let mut found = Vec::new();
    for names in COMPILERS {
        match names.iter().find(|name| is_there(name)) {
            Some(name) => found.push(*name),
            None => println!("skipped {}, because it is not installed", names.concat()),
        }
    }
    assert!(!found.is_empty(), "no C compiler is installed");
    found
}

fn crate_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A folder with the library and the simulation as a loader wants them.
pub(crate) struct Install {
    folder: tempfile::TempDir,
}

impl Install {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let library = layout::built().expect("the library");
        layout::install(folder.path(), &library).expect("a layout");
        hip_sim::layout::lay_out(&folder.path().join("lib")).expect("a layout");
        Self { folder }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn lib(&self) -> PathBuf {
        self.folder.path().join("lib")
    }
}

/// A C program, compiled against the header and linked with the library.
pub(crate) struct Program {
    pub(crate) install: Install,
    binary: PathBuf,
}

impl Program {
    /// With the usual compiler and language.
    pub(crate) fn new(source: &str) -> Self {
        Self::build(compilers().first().expect("one"), source, &LANGUAGES[0])
    }

    pub(crate) fn build(compiler: &str, source: &str, arguments: &[&str]) -> Self {
        Self::link(compiler, source, arguments, &["-lamdhip64", "-lhipfile"])
    }

    pub(crate) fn link(
        compiler: &str,
        source: &str,
        arguments: &[&str],
        libraries: &[&str],
    ) -> Self {
        let install = Install::new();
        let binary = install.root().join("program");
        let output = Command::new(compiler)
            .args(["-Wall", "-Wextra", "-Werror", "-g", "-D__HIP_PLATFORM_AMD__", "-D_GNU_SOURCE"])
            .arg("-I")
            .arg(install.root().join("include"))
            .arg("-I")
            .arg(crate_path("../hip-sim/include"))
            .arg("-I")
            .arg(crate_path("../hip-sim/tests/c"))
            .args(arguments)
            .arg(crate_path("tests/c").join(source))
            .arg("-o")
            .arg(&binary)
            .arg("-L")
            .arg(install.lib())
            // A program that loads the library itself calls none of it by name.
            .arg("-Wl,--as-needed")
            .args(libraries)
            .args(["-lpthread", "-ldl"])
            .output()
            .expect("the compiler starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler} {source}: {stderr}");
        Self { install, binary }
    }

    /// Started by `runner`, if there is one.
    pub(crate) fn command(&self, runner: &[&str]) -> Command {
        let mut words = runner.iter().map(OsStr::new).chain([self.binary.as_os_str()]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).env("LD_LIBRARY_PATH", self.install.lib());
        command.envs([("HIPSIM_QUIET", "1"), ("HIPSIM_VRAM_MIB", "64")]);
        for name in ["HIPFILE_LOG", "HIPFILE_KNOWLEDGE", "HIPFILE_REPORT_VERSION"] {
            command.env_remove(name);
        }
        command
    }
}

/// Runs a program in a time that only a hang would take.
pub(crate) fn run(what: &str, command: &mut Command) -> Output {
    use std::io::Read as _;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let streams = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn std::io::Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn std::io::Read + Send>),
    ];
    let [stdout, stderr] = streams.map(|stream| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.expect("piped").read_to_end(&mut bytes).expect("readable");
            bytes
        })
    });
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            child.kill().expect("it is a child");
            panic!("{what}: still running after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Output { status, stdout: stdout.join().expect("read"), stderr: stderr.join().expect("read") }
}

/// Runs a program that must end well, and gives what it said on standard error.
pub(crate) fn assert_passes(what: &str, command: &mut Command) -> String {
    let output = run(what, command);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "{what}: {} {:?}: {stderr}",
        output.status,
        output.status.signal()
    );
    for line in stderr.lines().filter(|line| line.starts_with("skipped")) {
        println!("{what}: {line}");
    }
    stderr
}

/// Has a command run where the kernel's own configuration cannot be read, so that a kernel built without P2PDMA does not keep
/// the simulation from the fastpath. An option that nobody can see is the driver's to decide. With `RELEASE_FILE` the kernel has
/// that release as well.
const MASKED: &str = "set -e
mask() { if [ -e \"$1\" ]; then mount --bind \"$2\" \"$1\"; fi; }
empty=$(mktemp -d); touch \"$empty/file\"; mkdir \"$empty/folder\"
mask /proc/config.gz \"$empty/file\"
mask /proc/kallsyms \"$empty/file\"
mask /boot \"$empty/folder\"
mask /lib/modules \"$empty/folder\"
if [ -n \"$RELEASE_FILE\" ]; then mask /proc/sys/kernel/osrelease \"$RELEASE_FILE\"; fi
exec \"$@\"";

const ROOT_MASK: &[&str] = &["unshare", "--mount", "sh", "-c", MASKED, "sh"];
const USER_MASK: &[&str] = &["unshare", "--map-root-user", "--mount", "sh", "-c", MASKED, "sh"];

/// The runner that hides the kernel's configuration, needed or not; `None`, and it is said why, if that is not allowed here.
pub(crate) fn masking_runner() -> Option<&'static [&'static str]> {
    let found = [ROOT_MASK, USER_MASK].into_iter().find(|runner| {
        let mut words = runner.iter().chain([&"true"]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).output().is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        println!("skipped, because mounts cannot be made here");
    }
    found
}

/// What has to come before a command so that the fastpath can be taken here; `None`, and it is said why, if nothing helps.
pub(crate) fn fast_runner() -> Option<&'static [&'static str]> {
    static FOUND: OnceLock<Option<&'static [&'static str]>> = OnceLock::new();
    let found = *FOUND.get_or_init(|| {
        let probe = Program::new("probe.c");
        let folder = direct_folder();
        [&[], ROOT_MASK, USER_MASK].into_iter().find(|runner| {
            let mut command = probe.command(runner);
            command.arg(folder.path()).env("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true");
            command.output().is_ok_and(|output| output.status.success())
        })
    });
    if found.is_none() {
        println!(
            "skipped the fastpath, because this kernel is without P2PDMA and may not be hidden"
        );
    }
    found
}

/// A folder on a file system that takes `O_DIRECT`, as the build's own usually does.
pub(crate) fn direct_folder() -> tempfile::TempDir {
    let beside = std::env::current_exe().expect("a program");
    tempfile::tempdir_in(beside.parent().expect("a folder")).expect("a folder")
}
