//! One module for each command: arguments in, exit code out.

pub(crate) mod ais_check;
pub(crate) mod ask_runtime;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod cp;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod kernels;
pub(crate) mod matrix;
mod moving;
mod probe;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod survey;
pub(crate) mod topology;
pub(crate) mod verify;
