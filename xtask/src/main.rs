//! Tasks of the repository, run as `cargo xtask TASK`.
//!
//! `generate` writes every file that follows from the code, or with `--check` compares them. `ci` runs everything that
//! must hold before a change is taken, with the commands a developer would type.
//!
//! It is no part of the product: nothing depends on it, and it installs nothing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task talks to whoever runs it")]

mod ci;
mod dist;
mod generate;
mod simulation;
mod tsan;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

/// Tasks of the repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write man pages, completions, JSON schemas and the tables of the documentation
    Generate {
        /// Write nothing; fail if a file is not what would be written
        #[arg(long)]
        check: bool,
    },
    /// Run every check of the repository and print a summary
    Ci,
    /// Build the C library and lay it out as it is installed: lib, include, what build tools look for
    Dist {
        /// The directory, as `/usr/local` would be
        directory: PathBuf,
        /// The profile that cargo builds it with
        #[arg(long, default_value = "release")]
        profile: String,
    },
    /// Build the simulated HIP runtime and lay it out as ROCm is, to try programs without a GPU
    Simulation {
        /// The directory, as `/opt/rocm` would be
        directory: PathBuf,
        /// The profile that cargo builds it with
        #[arg(long, default_value = "release")]
        profile: String,
    },
    /// Run the C library's programs under a detector of data races
    Tsan,
    /// Run the program itself, for transcripts
    #[command(hide = true)]
    Fastpath {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let result = match Args::parse().task {
        Task::Generate { check } => repository().and_then(|root| generate::run(root, check)),
        Task::Ci => repository().map(ci::run),
        Task::Dist { directory, profile } => {
            repository().and_then(|root| dist::run(root, &directory, &profile))
        }
        Task::Simulation { directory, profile } => {
            repository().and_then(|root| simulation::run(root, &directory, &profile))
        }
        Task::Tsan => repository().and_then(ci::thread_sanitizer),
        Task::Fastpath { arguments } => {
            let name = OsString::from("fastpath");
            return fastpath::run(std::iter::once(name).chain(arguments));
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The top of the repository this program was built from.
fn repository() -> anyhow::Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent directory")
}
