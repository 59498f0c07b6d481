//! Facts and knowledge to findings and verdicts.
//!
//! A verdict is a pure function: the same facts and the same knowledge give the same verdict, on any machine, at any
//! time. Nothing here reads a file, prints, or knows a distribution by name: what ages is in `knowledge`.
//!
//! It does not render: see `report`.

mod check;
pub mod driver;
mod hint;
mod kernel;
mod matrix;
pub mod path;
pub mod process;
mod route;
pub mod runtime;
pub mod setting;
pub mod volume;
mod words;

pub use check::{Check, Question, check, check_for};
pub use hint::{HINTS, Hint, HintAdvisory, HintKernel, hints};
pub use kernel::{InstalledVerdict, Judgement, judge, judge_release};
pub use matrix::{MatrixRow, Provenance, Reading, Surveyed, matrix};
pub use route::Route;
pub use words::{FINDINGS, Finding, Layer, REASONS, Reason, Status, Verdict, finding};
