//! Renderings of verdicts and of the matrix: text, JSON, RST, Markdown, CSV, HTML.
//!
//! Every rendering is a projection: it takes a verdict and gives a string. Text carries ANSI styles; the program strips
//! them where no terminal reads. Bytes of foreign files are made harmless before they reach a terminal.
//!
//! It reads nothing, judges nothing and writes nowhere.

mod ais_check;
mod bench;
mod explain;
mod html;
mod inspect;
pub mod json;
mod kernels;
mod layers;
mod matrix;
mod stats;
mod style;
mod text;
mod topology;

pub use ais_check::{AisCheck, AisSystem, AisVerdicts, AisVolume};
pub use bench::{BenchCell, BenchReport, Measured, bench_json, bench_svg, bench_text};
pub use explain::explain;
pub use html::matrix_html;
pub use inspect::{Inspected, inspect_failed_json, inspect_json, inspect_text};
pub use kernels::{kernels_json, kernels_text};
pub use matrix::{
    matrix_csv, matrix_json, matrix_markdown, matrix_rst, matrix_text, row_text, survey_text,
    targets_text,
};
pub use stats::{StatsGpu, StatsReason, StatsReport, StatsTotal, StatsWay, stats_json};
pub use text::{check_json, check_text};
pub use topology::{topology_svg, topology_text};
