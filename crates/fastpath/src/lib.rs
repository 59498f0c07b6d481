//! The program `fastpath`: argument parsing, wiring, exit codes.
//!
//! Data goes to stdout, everything else to stderr. Exit codes of judging commands: 0 supported, 1 unsupported or
//! blocked, 2 unknown or an error; of the others: 0 done, 2 error.
//!
//! It decides nothing: facts come from `host`, verdicts from `verdict`, text from `report`.

pub mod args;
mod commands;
mod ending;
mod error;
mod output;
mod root;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};

/// Names of AMD's tools, under which the program answers as they do.
const OTHER_NAMES: [&str; 3] = ["ais-check", "ais-stats", "aiscp"];

/// Those of them that know one code for all failures, usage included.
const FAIL_WITH_ONE: [&str; 2] = ["ais-stats", "aiscp"];

/// The arguments of a program that was started under the name of another tool, as those of the command that stands in for it.
fn by_name(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let name = arguments.first().and_then(|own| Path::new(own).file_name()?.to_str());
    if let Some(name) = name.filter(|name| OTHER_NAMES.contains(name)).map(OsString::from) {
        arguments.splice(0..1, ["fastpath".into(), name]);
    }
    arguments
}

/// Runs the program with `arguments`, the first being its own name, and gives its exit code.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments = by_name(arguments);
    let command = arguments.get(1).and_then(|command| command.to_str());
    let failure =
        if command.is_some_and(|command| FAIL_WITH_ONE.contains(&command)) { 1 } else { 2 };
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => {
            // `--help` and `--version` come as errors too, and go to stdout with code 0.
            let code = if error.exit_code() == 0 { 0 } else { failure };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let result = match &args.command {
        Command::Check(args) => commands::check::run(args),
        Command::Kernels(args) => commands::kernels::run(args),
        Command::Inspect(args) => commands::inspect::run(args),
        Command::Snapshot(args) => commands::snapshot::run(args),
        Command::Topology(args) => commands::topology::run(args),
        Command::Matrix(args) => commands::matrix::run(args),
        Command::Survey(args) => commands::survey::run(args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Cp(args) => commands::cp::run(args),
        Command::Aiscp(args) => commands::cp::run_aiscp(args),
        Command::Stats(args) => commands::stats::run(args),
        Command::AisStats(args) => commands::stats::run_ais_stats(args),
        Command::Verify(args) => commands::verify::run(args),
        Command::Completions(args) => commands::completions::run(args),
        Command::AisCheck(args) => commands::ais_check::run(args),
        Command::AskRuntime(args) => commands::ask_runtime::run(args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            error::print(&error);
            ExitCode::from(failure)
        }
    }
}
