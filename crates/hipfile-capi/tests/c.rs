//! hipFile's contract, as C programs.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "they are tests")]

mod common;

use std::path::Path;

use common::{LANGUAGES, Program, assert_passes, compilers, direct_folder, fast_runner};

#[test]
fn layout() {
    for compiler in compilers() {
        for language in [["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++17"]] {
            let program = Program::build(compiler, "layout.c", &language);
            assert_passes(&format!("{compiler} {language:?}"), &mut program.command(&[]));
        }
    }
}

#[test]
fn registration() {
    for compiler in compilers() {
        for language in LANGUAGES {
            let program = Program::build(compiler, "registration.c", &language);
            let what = format!("{compiler} {language:?}");
            assert_passes(&what, program.command(&[]).arg(program.install.root()));
        }
    }
}

/// In every folder that stands for a kind of file system, both ways.
#[test]
fn transfers() {
    let program = Program::new("transfer.c");
    let on_disk = direct_folder();
    let folders = [on_disk.path(), Path::new("/dev/shm")];
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        let folder = tempfile::tempdir_in(folder).expect("a folder");
        let run = |runner: &[&str], way: &str, variables: &[(&str, &str)]| {
            let mut command = program.command(runner);
            command.arg(folder.path()).args([way, "small"]).envs(variables.iter().copied());
            assert_passes(&format!("{way}, {}", folder.path().display()), &mut command);
        };
        run(&[], "slow", &[("HIPFILE_FORCE_COMPAT_MODE", "true")]);
        run(&[], "slow", &[("HIPSIM_AIS", "absent")]);
        if let Some(runner) = fast_runner() {
            let any = ("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true");
            run(runner, "fast", &[any]);
            run(runner, "fast", &[any, ("HIPSIM_AIS", "old")]);
        }
    }
}

#[test]
fn batches() {
    let program = Program::new("batch.c");
    let folder = direct_folder();
    let run = |runner: &[&str]| {
        let mut command = program.command(runner);
        command.arg(folder.path()).env("HIPSIM_COPY_LATENCY_US", "1000");
        assert_passes("batch", &mut command);
    };
    run(&[]);
    if let Some(runner) = fast_runner() {
        run(runner);
    }
}

#[test]
fn streams() {
    let program = Program::new("stream.c");
    let folder = direct_folder();
    let run = |runner: &[&str], wait_value| {
        let mut command = program.command(runner);
        command.arg(folder.path());
        command.envs([("HIPSIM_DEVICES", "2"), ("HIPSIM_WAIT_VALUE", wait_value)]);
        assert_passes("stream", &mut command);
    };
    for wait_value in ["0", "1"] {
        run(&[], wait_value);
        if let Some(runner) = fast_runner() {
            run(runner, wait_value);
        }
    }
}

#[test]
fn parameters() {
    for (compiler, language) in compilers().into_iter().zip(LANGUAGES) {
        let program = Program::build(compiler, "parameters.c", &language);
        assert_passes("parameters", &mut program.command(&[]));
    }
}

#[test]
fn faults() {
    let Some(runner) = fast_runner() else { return };
    let program = Program::new("faults.c");
    let folder = direct_folder();
    let mut command = program.command(runner);
    command.arg(folder.path()).env("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true");
    assert_passes("faults", &mut command);
}

/// Compiled against the header, and not linked with the library.
#[test]
fn loaded_by_name() {
    let program = Program::new("load.c");
    let folder = direct_folder();
    assert_passes("load", program.command(&[]).arg(folder.path()));
}

#[test]
fn the_process_ends_or_forks_during_io() {
    let program = Program::new("ending.c");
    let folder = direct_folder();
    for way in ["exit", "return", "quick", "fork", "fork-exec"] {
        for round in 0..4 {
            let runner = if round % 2 == 0 { Some(&[][..]) } else { fast_runner() };
            let Some(runner) = runner else { continue };
            let mut command = program.command(runner);
            assert_passes(way, command.arg(folder.path()).arg(way));
        }
    }
}

#[test]
fn many_threads_and_files() {
    let program = Program::new("many.c");
    let folder = direct_folder();
    for runner in [Some(&[][..]), fast_runner()].into_iter().flatten() {
        let mut command = program.command(runner);
        command.arg(folder.path()).arg("1000").env("HIPFILE_LOG", "off");
        assert_passes("many", &mut command);
    }
}

/// What the kernel has taken stays, whenever the process is killed: each block is of one generation.
#[test]
fn a_killed_writer_leaves_whole_blocks() {
    let program = Program::new("crash.c");
    let folder = direct_folder();
    for runner in [Some(&[][..]), fast_runner()].into_iter().flatten() {
        for (way, direct) in [("sync", "buffered"), ("sync", "direct"), ("async", "buffered")] {
            let file = folder.path().join(format!("{way}-{direct}"));
            let mut newest = 0;
            for pause in [3, 17, 41, 60] {
                newest = newest.max(kill_and_check(&program, runner, &file, way, direct, pause));
            }
            assert!(newest > 1, "{way}, {direct}: nothing was written over");
        }
    }
}

fn kill_and_check(
    program: &Program,
    runner: &[&str],
    file: &Path,
    way: &str,
    direct: &str,
    pause: u64,
) -> u64 {
    use std::io::{BufRead as _, BufReader};
    let mut command = program.command(runner);
    command.arg(file).args([way, direct]).env("HIPFILE_LOG", "off");
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("readable");
    assert_eq!(line, "go\n", "{way}, {direct}");
    std::thread::sleep(std::time::Duration::from_millis(pause));
    child.kill().expect("it is a child");
    child.wait().expect("it is a child");
    let mut check = program.command(&[]);
    let output = common::run("check", check.arg(file).args(["check", "-"]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{way}, {direct}, killed after {pause} ms: {stderr}");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

/// The report has the lines and their order as `ais-stats` has them.
#[test]
fn statistics_of_another_process() {
    let program = Program::new("stats.c");
    let folder = direct_folder();
    let mut command = program.command(&[]);
    command.arg(folder.path()).env("HIPFILE_FORCE_COMPAT_MODE", "true");
    let output = common::run("stats", &mut command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = "AIS-STATS Version: 1\nHipFile Stats Level: 1\nFile Handle Registrations: 1\n\
                 Buffer Registrations: 1\nFastpath Rejections: 2\n\nTotal Fastpath Read Size (B): 0\n";
    assert!(text.starts_with(begin), "{text}");
    for line in [
        "Total Fallback Read Size (B): 1048576",
        "Total Fallback Write Size (B): 5000",
        "Total Fallback Write Errors: 0",
        "GPU 0:",
        "IO Size Histogram",
        "Fallback Read Unaligned Count: 0",
        "         2  HIPFILE_FORCE_COMPAT_MODE is set",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let column = |line: &str, index: usize| {
        line.split_whitespace().nth(index).map(str::to_owned).unwrap_or_default()
    };
    let row =
        |range: &str| text.lines().find(|line| line.starts_with(range)).expect("a row").to_owned();
    assert_eq!(column(&row("1024-2048 "), 3), "1048576");
    assert_eq!(column(&row("4-8 "), 4), "5000");
    assert_eq!(row("65536-... ").len(), 16 + 4 * 34);
}

/// A program that calls as fio's engine does.
#[test]
fn calls_as_fio_does() {
    let program = Program::new("fio.c");
    let folder = direct_folder();
    for runner in [Some(&[][..]), fast_runner()].into_iter().flatten() {
        for jobs in ["threads", "processes"] {
            let mut command = program.command(runner);
            command.arg(folder.path()).arg(jobs).env("HIPSIM_DEVICES", "2");
            assert_passes(jobs, &mut command);
        }
    }
}
