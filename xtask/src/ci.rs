//! `cargo xtask ci`: everything that must hold before a change is taken.
//!
//! Each step is a command a developer could type. All steps run, whatever fails; the end says what passed, failed and
//! was skipped. A tool that is not installed skips its step with that reason, and nothing is installed here.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::{generate, tsan};

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Skipped(why) => write!(f, "skipped, because {why}"),
        }
    }
}

/// One thing that must hold.
struct Step {
    name: &'static str,
    /// What it does, as a developer would do it by hand.
    what: &'static str,
    run: fn(&Path) -> anyhow::Result<Outcome>,
}

const STEPS: [Step; 13] = [
    Step {
        name: "format",
        what: "cargo fmt --all --check",
        run: |root| cargo(root, "fmt --all --check"),
    },
    Step {
        name: "lints",
        what: "cargo clippy --workspace --all-targets --all-features --locked -- -D warnings",
        run: |root| {
            cargo(root, "clippy --workspace --all-targets --all-features --locked -- -D warnings")
        },
    },
    Step { name: "tests", what: "every test of the workspace", run: tests },
    Step { name: "clients", what: "tests/clients/run, with small files", run: clients },
    Step { name: "threads", what: "cargo xtask tsan", run: tsan::run },
    Step {
        name: "small host",
        what: "fastpath-host without its features, as the runtime library uses it",
        run: |root| cargo(root, "check --package fastpath-host --no-default-features --locked"),
    },
    Step { name: "generated files", what: "cargo xtask generate --check", run: generated },
    Step {
        name: "dependencies",
        what: "cargo deny --locked check bans licenses sources",
        run: deny,
    },
    Step { name: "fuzz targets", what: "the fuzz targets compile", run: fuzz },
    Step { name: "bash completion", what: "bash -n", run: |root| completion(root, "bash", "-n") },
    Step { name: "zsh completion", what: "zsh -n", run: |root| completion(root, "zsh", "-n") },
    Step {
        name: "fish completion",
        what: "fish --no-execute",
        run: |root| completion(root, "fish", "--no-execute"),
    },
    Step { name: "man pages", what: "they render without a warning", run: man },
];

/// Runs every step; whether none failed.
pub(crate) fn run(root: &Path) -> bool {
    let begin = Instant::now();
    let mut results = Vec::new();
    for step in &STEPS {
        println!("==> {}: {}", step.name, step.what);
        let begin = Instant::now();
        let outcome =
            (step.run)(root).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let took = begin.elapsed();
        println!("<== {}: {outcome} ({})\n", step.name, seconds(took));
        results.push((step.name, outcome, took));
    }
    print!("{}", summary(&results, begin.elapsed()));
    !results.iter().any(|(_, outcome, _)| matches!(outcome, Outcome::Failed(_)))
}

/// Runs one step by itself; whether it did not fail.
pub(crate) fn thread_sanitizer(root: &Path) -> anyhow::Result<bool> {
    let outcome = tsan::run(root)?;
    println!("{outcome}");
    Ok(!matches!(outcome, Outcome::Failed(_)))
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn summary(results: &[(&str, Outcome, Duration)], total: Duration) -> String {
    let count = |wanted: fn(&Outcome) -> bool| {
        results.iter().filter(|(_, outcome, _)| wanted(outcome)).count()
    };
    let lines = results
        .iter()
        .map(|(name, outcome, took)| format!("{name:<16} {:>8}  {outcome}\n", seconds(*took)));
    format!(
        "{}ci: {} passed, {} failed, {} skipped, in {}\n",
        lines.collect::<String>(),
        count(|it| matches!(it, Outcome::Passed)),
        count(|it| matches!(it, Outcome::Failed(_))),
        count(|it| matches!(it, Outcome::Skipped(_))),
        seconds(total)
    )
}

/// Runs a command to its end, its output going where ours goes.
pub(crate) fn execute(command: &mut Command) -> anyhow::Result<Outcome> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().context(program)?;
    Ok(if status.success() { Outcome::Passed } else { Outcome::Failed(status.to_string()) })
}

/// The cargo that runs this program.
pub(crate) fn cargo_command(root: &Path, arguments: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(arguments.split(' '));
    command
}

fn cargo(root: &Path, arguments: &str) -> anyhow::Result<Outcome> {
    execute(&mut cargo_command(root, arguments))
}

/// Whether a command that asks a tool for its version succeeds, so that the tool is there and runs.
fn answers(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

pub(crate) fn installed(tool: &str) -> bool {
    answers(Command::new(tool).arg("--version"))
}

fn not_installed(tool: &str) -> Outcome {
    Outcome::Skipped(format!("{tool} is not installed"))
}

fn tests(root: &Path) -> anyhow::Result<Outcome> {
    const OPTIONS: &str = "--workspace --all-features --locked";
    if answers(&mut cargo_command(root, "nextest --version")) {
        cargo(root, &format!("nextest run --no-fail-fast {OPTIONS}"))
    } else {
        cargo(root, &format!("test --no-fail-fast {OPTIONS}"))
    }
}

/// Clients from a package index, if there is one.
fn clients(root: &Path) -> anyhow::Result<Outcome> {
    const NOT_THERE: i32 = 77;
    let venv = ["-c", "import sys, venv; sys.exit(sys.version_info < (3, 10))"];
    if !answers(Command::new("python3").args(venv)) {
        return Ok(Outcome::Skipped("there is no python3 from 3.10 on with venv".to_owned()));
    }
    let folder = tempfile::tempdir()?;
    let mut run = Command::new(root.join("tests/clients/run"));
    run.current_dir(root).arg(folder.path()).args(["48", "dev"]).stdin(Stdio::null());
    let status = run.status().context("tests/clients/run")?;
    Ok(match status.code() {
        Some(0) => Outcome::Passed,
        Some(NOT_THERE) => Outcome::Skipped("pip does not get the clients".to_owned()),
        _ => Outcome::Failed(status.to_string()),
    })
}

fn generated(root: &Path) -> anyhow::Result<Outcome> {
    Ok(if generate::run(root, true)? {
        Outcome::Passed
    } else {
        Outcome::Failed("generated files are out of date".to_owned())
    })
}

fn deny(root: &Path) -> anyhow::Result<Outcome> {
    if answers(&mut cargo_command(root, "deny --version")) {
        cargo(root, "deny --locked check bans licenses sources")
    } else {
        Ok(not_installed("cargo-deny"))
    }
}

/// The fuzz targets are a workspace of their own, and are built with unstable flags of the compiler. A check links
/// nothing, so the C++ of libFuzzer need not be compiled: naming a library makes its crate leave that out.
fn fuzz(root: &Path) -> anyhow::Result<Outcome> {
    const MANIFEST: &str = "fuzz/Cargo.toml";
    if !root.join(MANIFEST).exists() {
        return Ok(Outcome::Skipped(format!("there is no {MANIFEST}")));
    }
    let mut check = cargo_command(root, &format!("check --locked --manifest-path {MANIFEST}"));
    check.env("RUSTC_BOOTSTRAP", "1").env("CUSTOM_LIBFUZZER_PATH", root.join("fuzz/libfuzzer.a"));
    execute(&mut check)
}

/// Has a shell read its completion script without running it.
fn completion(root: &Path, shell: &str, option: &str) -> anyhow::Result<Outcome> {
    let script = generate::completion_script(shell).context("no script for this shell")?;
    if !installed(shell) {
        return Ok(not_installed(shell));
    }
    execute(Command::new(shell).current_dir(root).arg(option).arg(script))
}

/// Renders every man page; a warning is a failure.
fn man(root: &Path) -> anyhow::Result<Outcome> {
    let groff = installed("groff");
    if !groff && !installed("man") {
        return Ok(Outcome::Skipped("neither groff nor man is installed".to_owned()));
    }
    let mut warnings = String::new();
    for page in generate::man_pages(root)? {
        let mut command = if groff {
            let mut groff = Command::new("groff");
            groff.args(["-man", "-Tutf8", "-ww", "-z"]);
            groff
        } else {
            let mut man = Command::new("man");
            man.args(["--warnings", "-E", "UTF-8", "-l"]);
            man
        };
        let output = command.current_dir(root).arg(&page).env("MANWIDTH", "80").output()?;
        warnings.push_str(&String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            let _ = writeln!(warnings, "{}: {}", page.display(), output.status);
        }
    }
    eprint!("{warnings}");
    Ok(match warnings.lines().count() {
        0 => Outcome::Passed,
        lines => Outcome::Failed(format!("{lines} lines of warnings")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_gives_every_outcome_with_its_reason() {
        let results = [
            ("format", Outcome::Passed, Duration::from_millis(1240)),
            ("tests", Outcome::Failed("exit status: 101".to_owned()), Duration::from_secs(61)),
            ("zsh completion", not_installed("zsh"), Duration::ZERO),
        ];
        let expected = "\
format              1.2 s  passed
tests              61.0 s  failed: exit status: 101
zsh completion      0.0 s  skipped, because zsh is not installed
ci: 1 passed, 1 failed, 1 skipped, in 62.2 s
";
        assert_eq!(summary(&results, Duration::from_millis(62_240)), expected);
    }

    #[test]
    fn a_tool_that_is_not_there_is_not_installed() {
        assert!(!installed("fastpath-no-such-tool"));
    }
}
