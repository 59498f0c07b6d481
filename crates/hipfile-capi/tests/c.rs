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
