//! The program `fastpath`. Everything is in the library beside it, so that the man pages and completions can be made
//! from the same definition of the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    fastpath::run(std::env::args_os())
}
