//! `fastpath completions`.

use clap::CommandFactory as _;

use crate::args::{Args, CompletionsArgs};
use crate::output;

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "fastpath", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
