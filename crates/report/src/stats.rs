//! Statistics of a process as JSON; the library that counts them writes the text.

use schemars::JsonSchema;
use serde::Serialize;

/// `fastpath stats --format json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatsReport {
    /// `fastpath.stats/1`.
    pub schema: String,
    /// How much it counts.
    pub level: u64,
    /// Whether it counts no more than bytes, as AMD's first releases do: then there are totals of bytes and nothing else.
    pub bytes_only: bool,
    /// Files registered.
    pub files: u64,
    /// Buffers registered.
    pub buffers: u64,
    /// Requests that did not take the fastpath.
    pub refused: u64,
    /// Why they did not, each with how often; empty if the library does not say.
    pub reasons: Vec<StatsReason>,
    /// Fastpath reads and writes, fallback reads and writes, of all GPUs.
    pub totals: Vec<StatsTotal>,
    /// GPUs with I/O.
    pub gpus: Vec<StatsGpu>,
}

/// Why requests did not take the fastpath.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatsReason {
    /// A stable word.
    pub reason: String,
    /// A sentence.
    pub text: String,
    /// How often.
    pub count: u64,
}

/// Reads or writes of one way.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct StatsTotal {
    /// `fastpath` or `fallback`.
    pub way: String,
    /// `read` or `write`.
    pub direction: String,
    /// Bytes moved.
    pub bytes: u64,
    /// Requests that moved them.
    pub requests: u64,
    /// Microseconds these took together.
    pub micros: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that did not take the fastpath for their alignment.
    pub unaligned: u64,
}

/// One GPU.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatsGpu {
    /// HIP's number of it.
    pub index: usize,
    /// Fastpath reads and writes, fallback reads and writes.
    pub ways: Vec<StatsWay>,
}

/// Reads or writes of one way of one GPU, by size: below 4 KiB, then by powers of two, the last from 64 MiB on.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct StatsWay {
    /// `fastpath` or `fallback`.
    pub way: String,
    /// `read` or `write`.
    pub direction: String,
    /// Bytes moved.
    pub bytes: Vec<u64>,
    /// Requests that moved them.
    pub requests: Vec<u64>,
    /// Microseconds these took together.
    pub micros: Vec<u64>,
    /// Requests that failed.
    pub errors: Vec<u64>,
    /// Requests that did not take the fastpath for their alignment.
    pub unaligned: u64,
}

/// As JSON.
pub fn stats_json(report: &StatsReport) -> String {
    crate::json::to_string(report)
}
