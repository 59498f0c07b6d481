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
        let library = layout::built().expect("the library");
        Self::of(&library, &hip_sim::layout::built().expect("the simulation"))
    }

    fn of(library: &Path, hip: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        layout::install(folder.path(), library).expect("a layout");
        hip_sim::layout::lay_out_of(&folder.path().join("lib"), hip).expect("a layout");
        Self { folder }
    }

    /// Compiles or links a source or an object against the header and the libraries.
    fn compile(&self, compiler: &str, arguments: &[&str], source: &Path, more: &[&str]) -> PathBuf {
        let made = source.file_name().expect("a name");
        let made = self.root().join(made).with_extension(if more.contains(&"-c") {
            "o"
        } else {
            "program"
        });
        let output = Command::new(compiler)
            .args(["-Wall", "-Wextra", "-Werror", "-g", "-D__HIP_PLATFORM_AMD__", "-D_GNU_SOURCE"])
            .arg("-I")
            .arg(self.root().join("include"))
            .arg("-I")
            .arg(crate_path("../hip-sim/include"))
            .arg("-I")
            .arg(crate_path("../hip-sim/tests/c"))
            .args(arguments)
            .arg(source)
            .arg("-o")
            .arg(&made)
            .arg("-L")
            .arg(self.lib())
            .args(more)
            .output()
            .expect("the compiler starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler} {}: {stderr}", source.display());
        made
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
    /// How it was compiled.
    pub(crate) name: String,
}

/// A program that loads the library itself calls none of it by name.
const LINKING: [&str; 1] = ["-Wl,--as-needed"];
const HIPFILE: [&str; 2] = ["-lamdhip64", "-lhipfile"];
const SYSTEM: [&str; 2] = ["-lpthread", "-ldl"];

impl Program {
    /// With the usual compiler and language.
    pub(crate) fn new(source: &str) -> Self {
        Self::build(compilers().first().expect("one"), source, &LANGUAGES[0])
    }

    /// With each compiler that is here, as C and as C++.
    pub(crate) fn each(source: &str) -> impl Iterator<Item = Self> {
        compilers().into_iter().flat_map(move |compiler| {
            LANGUAGES.iter().map(move |language| Self::build(compiler, source, language))
        })
    }

    pub(crate) fn build(compiler: &str, source: &str, arguments: &[&str]) -> Self {
        Self::link(compiler, source, arguments, &HIPFILE)
    }

    pub(crate) fn link(
        compiler: &str,
        source: &str,
        arguments: &[&str],
        libraries: &[&str],
    ) -> Self {
        let install = Install::new();
        let more = [&LINKING, libraries, &SYSTEM].concat();
        let source = crate_path("tests/c").join(source);
        let binary = install.compile(compiler, arguments, &source, &more);
        Self { install, binary, name: format!("{compiler} {arguments:?}") }
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

/// The libraries that `cargo xtask tsan` has built with `ThreadSanitizer`, and its runtime.
pub(crate) struct ThreadSanitizer {
    library: PathBuf,
    hip: PathBuf,
    runtime: PathBuf,
}

impl ThreadSanitizer {
    /// `None`, and it is said why, for a test that runs without that task.
    pub(crate) fn built() -> Option<Self> {
        let path = |name| std::env::var_os(name).map(PathBuf::from);
        let library = path("HIPFILE_TSAN_LIBRARY");
        let Some(library) = library else {
            println!("skipped, because `cargo xtask tsan` runs it, with libraries of its own");
            return None;
        };
        let (hip, runtime) = (path("HIPFILE_TSAN_HIP")?, path("HIPFILE_TSAN_RUNTIME")?);
        Some(Self { library, hip, runtime })
    }

    /// A program with it. The runtime that comes with the compiler may be older than what Rust's compiler calls.
    pub(crate) fn build(&self, source: &str) -> Program {
        let install = Install::of(&self.library, &self.hip);
        let source = crate_path("tests/c").join(source);
        let object = install.compile("gcc", &["-std=gnu11", "-fsanitize=thread"], &source, &["-c"]);
        let runtime = self.runtime.display().to_string();
        let whole = ["-Wl,--whole-archive", &runtime, "-Wl,--no-whole-archive"];
        let more = [&whole[..], &["-Wl,--export-dynamic"], &LINKING, &HIPFILE, &SYSTEM, &["-lm"]];
        let binary = install.compile("gcc", &[], &object, &more.concat());
        Program { install, binary, name: "ThreadSanitizer".to_owned() }
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
