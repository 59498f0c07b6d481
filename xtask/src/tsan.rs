//! `cargo xtask tsan`: the C library's programs under `ThreadSanitizer`, which comes with the Rust toolchain.
//!
//! The library and the simulation are built with it, the C programs are too, and are linked with its runtime. The standard library
//! comes compiled without: `tests/tsan/std.c` stands in where that matters.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::ci::{Outcome, cargo_command, execute, installed};
use crate::dist::artifact;

const TARGET: &str = "x86_64-unknown-linux-gnu";

const STAND_IN: &str = "crates/hipfile-capi/tests/tsan/std.c";

/// Functions of the standard library that the stand-in names, and how their symbols begin to end.
const FUNCTIONS: [(&str, &str, &str); 6] = [
    ("MUTEX_LOCK", "5mutex5futex", "14lock_contended"),
    ("RWLOCK_READ", "6rwlock5futex", "14read_contended"),
    ("RWLOCK_WRITE", "6rwlock5futex", "15write_contended"),
    ("CONDVAR_WAIT", "7condvar5futex", "7Condvar4wait"),
    ("CONDVAR_WAIT_TIMEOUT", "7condvar5futex", "7Condvar12wait_timeout"),
    ("ONCE_CALL", "4once5futex", "4Once4call"),
];

/// Packages, and the C libraries that cargo makes of them.
const LIBRARIES: [(&str, &str, &str); 2] = [
    ("HIPFILE_TSAN_LIBRARY", "fastpath-hipfile-capi", "libhipfile_capi.so"),
    ("HIPFILE_TSAN_HIP", "fastpath-hip-sim", "libhip_sim.so"),
];

/// Builds and runs them, if everything that takes is here.
pub(crate) fn run(root: &Path) -> anyhow::Result<Outcome> {
    let skipped = |why: String| Ok(Outcome::Skipped(why));
    for tool in ["gcc", "nm"] {
        if !installed(tool) {
            return skipped(format!("{tool} is not installed"));
        }
    }
    let libraries = libraries_of_the_toolchain()?;
    let Some(runtime) = find(&libraries, "librustc-", "_rt.tsan.a")? else {
        return skipped(format!("{}: no ThreadSanitizer", libraries.display()));
    };
    let Some(standard) = find(&libraries, "libstd-", ".so")? else {
        return skipped(format!("{}: no dynamic standard library", libraries.display()));
    };
    let symbols = output(Command::new("nm").arg("--dynamic").arg(&standard))?;
    let mut functions = Vec::new();
    for (name, place, end) in FUNCTIONS {
        let Some(symbol) = symbol(&symbols, place, end) else {
            return skipped(format!("{}: no function ..{place}..{end}", standard.display()));
        };
        functions.push((name, symbol));
    }
    let folder = tempfile::tempdir()?;
    let object = folder.path().join("std.o");
    let mut compile = Command::new("gcc");
    compile.args(["-c", "-O1", "-fPIC", "-fexceptions", "-Wall", "-Wextra", "-Werror", "-o"]);
    compile.arg(&object).arg(root.join(STAND_IN));
    compile.args(functions.iter().map(|(name, symbol)| format!("-D{name}={symbol}")));
    output(&mut compile)?;

    let mut test = cargo_command(root, "test --workspace --all-features --locked --test c");
    for (variable, package, library) in LIBRARIES {
        let symbols = functions.iter().map(|(_, symbol)| *symbol);
        test.env(variable, build(root, package, library, &object, symbols)?);
    }
    test.args(["--", "--nocapture", "thread_sanitizer_finds_nothing"]);
    execute(test.env("HIPFILE_TSAN_RUNTIME", runtime))
}

fn libraries_of_the_toolchain() -> anyhow::Result<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed =
        output(Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]))?;
    Ok(PathBuf::from(printed.trim()))
}

/// The file of a folder whose name begins and ends so.
fn find(folder: &Path, begin: &str, end: &str) -> anyhow::Result<Option<PathBuf>> {
    // A toolchain without the target has no such folder.
    let Ok(entries) = folder.read_dir() else { return Ok(None) };
    for entry in entries {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(begin) && name.ends_with(end) {
            return Ok(Some(folder.join(name.as_ref())));
        }
    }
    Ok(None)
}

/// The one symbol that `nm` printed and that has `place` in it and ends so.
fn symbol<'a>(printed: &'a str, place: &str, end: &str) -> Option<&'a str> {
    let symbols = printed.lines().filter_map(|line| line.split_whitespace().last());
    let mut found = symbols.filter(|symbol| symbol.contains(place) && symbol.ends_with(end));
    found.next().filter(|_| found.next().is_none())
}

/// Builds a C library with `ThreadSanitizer` and the stand-in.
fn build<'a>(
    root: &Path,
    package: &str,
    library: &str,
    object: &Path,
    symbols: impl Iterator<Item = &'a str>,
) -> anyhow::Result<PathBuf> {
    let mut cargo = cargo_command(
        root,
        "rustc --locked --lib --crate-type cdylib --message-format json-render-diagnostics",
    );
    cargo.args(["--target", TARGET, "--package", package, "--"]);
    cargo.arg(format!("-Clink-arg={}", object.display()));
    for symbol in symbols.chain(["__tsan_atomic64_fetch_sub", "__cxa_atexit"]) {
        cargo.arg(format!("-Clink-arg=-Wl,--wrap={symbol}"));
    }
    // Of its own kind of build: cargo keeps it apart from others.
    let flags = ["-Zsanitizer=thread", "-Cunsafe-allow-abi-mismatch=sanitizer"];
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env("RUSTC_BOOTSTRAP", "1");
    let messages = output(&mut cargo)?;
    let path = artifact(messages.as_bytes(), library);
    path.map(PathBuf::from).with_context(|| format!("cargo named no {library}"))
}

/// What a command that must succeed prints.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let done = done.with_context(|| program.clone())?;
    if !done.status.success() {
        bail!("{program}: {}", done.status);
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_found_by_its_place_and_end_if_it_is_the_only_one() {
        let printed = "\
0009a720 T _RNvMNtNtNtNtCs_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended
0009ac10 T _RNvMNtNtNtNtCs_3std3sys4sync7condvar5futexNtB2_7Condvar12wait_timeout
0009ad70 T _RNvMNtNtNtNtCs_3std3sys4sync7condvar5futexNtB2_7Condvar4wait
         U free
";
        let found = symbol(printed, "7condvar5futex", "7Condvar4wait");
        assert_eq!(found, Some("_RNvMNtNtNtNtCs_3std3sys4sync7condvar5futexNtB2_7Condvar4wait"));
        assert_eq!(symbol(printed, "3sys", "wait_timeouts"), None);
        assert_eq!(symbol(printed, "3sys", ""), None, "there are several");
    }
}
