//! Completion scripts, the same that `fastpath completions` prints.

use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::Shell;
use fastpath::args::Args;

use super::Files;

/// The shells and the names their scripts are installed under.
pub(super) const SCRIPTS: [(Shell, &str); 3] = [
    (Shell::Bash, "docs/completions/fastpath.bash"),
    (Shell::Zsh, "docs/completions/_fastpath"),
    (Shell::Fish, "docs/completions/fastpath.fish"),
];

pub(super) fn scripts() -> anyhow::Result<Files> {
    let script = |(shell, path): (Shell, &str)| {
        let mut bytes = Vec::new();
        clap_complete::generate(shell, &mut Args::command(), "fastpath", &mut bytes);
        Ok((PathBuf::from(path), String::from_utf8(bytes)?))
    };
    SCRIPTS.into_iter().map(script).collect()
}
