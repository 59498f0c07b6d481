//! Measurements of fastpath and fallback: a table, JSON, a plot.

use std::fmt::Write as _;

use anstyle::Style;
use schemars::JsonSchema;
use serde::Serialize;

use crate::style::{BOLD, clean, escape, styled, table, wrap};

/// `fastpath bench --format json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchReport {
    /// `fastpath.bench/1`.
    pub schema: String,
    /// Whether the HIP runtime was a simulation: then nothing here says anything about a GPU.
    pub simulation: bool,
    /// Where the file was.
    pub directory: String,
    /// Whether floor and fallback went through the page cache; else with `O_DIRECT`.
    pub page_cache: bool,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Why the fastpath was not measured; null if it was.
    pub no_fastpath: Option<String>,
    /// Each direction, number of threads and size.
    pub cells: Vec<BenchCell>,
}

/// One size of one direction with one number of threads.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchCell {
    /// `read` or `write`.
    pub direction: String,
    /// Bytes of a request.
    pub block: u64,
    /// Threads that shared the file.
    pub threads: u32,
    /// One system call and one copy through one reused pinned buffer.
    pub floor: Measured,
    /// Through the library's fallback.
    pub fallback: Measured,
    /// The median of the fallback's requests, each over the floor's beside it.
    pub fallback_to_floor: f64,
    /// Through the library's fastpath; null if it was not measured.
    pub fastpath: Option<Measured>,
    /// Nothing but the call to HIP; null if it was not measured.
    pub bare: Option<Measured>,
    /// Microseconds by which the fastpath's median is over the bare call's.
    pub fastpath_over_bare_us: Option<f64>,
}

/// What one way took.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Measured {
    /// Microseconds of a request, median.
    pub median_us: f64,
    /// Microseconds that 99 of 100 requests stay below.
    pub p99_us: f64,
    /// 2^30 bytes per second of all threads together, median of the rounds.
    pub gib_per_second: f64,
}

/// As JSON.
pub fn bench_json(report: &BenchReport) -> String {
    crate::json::to_string(report)
}

/// Cells of one direction and number of threads, in order.
fn groups(report: &BenchReport) -> Vec<&[BenchCell]> {
    report
        .cells
        .chunk_by(|one, other| one.direction == other.direction && one.threads == other.threads)
        .collect()
}

fn title(cells: &[BenchCell]) -> String {
    cells.first().map_or_else(String::new, |cell| {
        let plural = if cell.threads == 1 { "" } else { "s" };
        format!("{}, {} thread{plural}", cell.direction, cell.threads)
    })
}

fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    }
}

fn conditions(report: &BenchReport) -> String {
    let how = if report.page_cache { "in the page cache" } else { "with O_DIRECT" };
    format!("a file of {}, {how}", size(report.file_bytes))
}

/// Microseconds in a column: thousands need no fractions.
fn micros(value: f64) -> String {
    let digits = if value.abs() < 999.995 { 2 } else { 0 };
    format!("{value:9.digits$}")
}

const SIMULATION: &str = "SIMULATION: there is no GPU behind these numbers";

/// As tables for people.
pub fn bench_text(report: &BenchReport) -> String {
    let mut out = format!("{}: {}\n", clean(&report.directory), conditions(report));
    if report.simulation {
        let _ = writeln!(out, "{}", styled(BOLD, SIMULATION));
    }
    if let Some(why) = &report.no_fastpath {
        let _ = writeln!(out, "The fastpath is not taken here: {}", clean(why));
    }
    for cells in groups(report) {
        let _ = writeln!(out, "\n{}", styled(BOLD, &title(cells)));
        let right = |text: &str| format!("{text:>9}");
        let mut head: Vec<String> = vec![right("block")];
        head.extend(["floor us", "p99", "GiB/s"].map(right));
        head.extend(["fallback", "p99", "GiB/s", "to floor"].map(right));
        if report.no_fastpath.is_none() {
            head.extend(["fastpath", "p99", "GiB/s", "bare call", "over it"].map(right));
        }
        let mut rows = vec![head];
        for cell in cells {
            let way = |way: &Measured| {
                [micros(way.median_us), micros(way.p99_us), format!("{:9.2}", way.gib_per_second)]
            };
            let mut row = vec![right(&size(cell.block))];
            row.extend(way(&cell.floor));
            row.extend(way(&cell.fallback));
            row.push(format!("{:9.2}", cell.fallback_to_floor));
            if let (Some(fast), Some(bare)) = (&cell.fastpath, &cell.bare) {
                row.extend(way(fast));
                row.push(micros(bare.median_us));
                row.push(micros(cell.fastpath_over_bare_us.unwrap_or_default()));
            }
            rows.push(row);
        }
        out.push_str(&table(&rows, 0, |row, _, _| if row == 0 { BOLD } else { Style::new() }));
    }
    out.push_str("\nTimes are microseconds of a request: median, and what 99 of 100 stay below.\n");
    out
}

/// Where a panel's curves are, in pixels.
const PLOT: (f64, f64) = (480.0, 260.0);
/// Their left and upper end in the panel, and the panel's size with its labels.
const ORIGIN: (f64, f64) = (64.0, 28.0);
const PANEL: (f64, f64) = (584.0, 336.0);
/// A head's height without a reason against the fastpath, and that of each of its lines.
const HEAD: f64 = 146.0;
const LINE: f64 = 22.0;
/// What a label of the lower axis takes, also in the larger letters of a narrow window.
const LABEL: f64 = 66.0;
/// The width of a soft text's letter.
const LETTER: f64 = 6.7;
/// Characters of a directory's name, or of another line of the head, that fit.
const LONGEST_NAME: usize = 54;

/// As a plot that needs no other file: throughput over the size of a request, one panel for each direction and number of threads. It
/// follows the reader's light or dark preference, and the panels stand below each other where the window is narrow.
#[allow(clippy::cast_precision_loss, reason = "places in a picture")]
pub fn bench_svg(report: &BenchReport) -> String {
    let groups = groups(report);
    let width = PANEL.0 * groups.len().clamp(1, 2) as f64;
    let missing = report.no_fastpath.as_ref().map(|why| format!("no fastpath: {}", clean(why)));
    let missing = missing.map(|text| wrap(&text, 0, LONGEST_NAME)).unwrap_or_default();
    let head = HEAD + LINE * missing.lines().count() as f64;
    let height = head + groups.len().div_ceil(2).max(1) as f64 * PANEL.1;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"bench\" width=\"{width}\" height=\"{height}\" style=\"--panels:{}\" \
         role=\"img\" aria-label=\"Throughput of fastpath and fallback\">\n<style>{}</style>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n<g class=\"head\">\n\
         <text class=\"heading\" x=\"{}\" y=\"30\">Throughput in GiB/s</text>\n",
        groups.len().max(1),
        style(head),
        ORIGIN.0
    );
    let mut y = 30.0;
    let mut line = |class: &str, text: &str| {
        y += LINE;
        let _ = writeln!(
            out,
            "<text class=\"{class}\" x=\"{}\" y=\"{y}\">{}</text>",
            ORIGIN.0,
            escape(text)
        );
    };
    if report.simulation {
        line("loud", SIMULATION);
    }
    line("soft", &ending(&clean(&report.directory)));
    line("soft", &conditions(report));
    missing.lines().for_each(|text| line("soft", text));
    y += LINE;
    let is_shown = |way: &&&str| report.cells.iter().any(|cell| of(cell, way).is_some());
    let mut x = ORIGIN.0;
    for name in WAYS.iter().filter(is_shown) {
        let _ = writeln!(
            out,
            "<path class=\"line {name}\" d=\"M{x} {}h26\"/><text class=\"soft\" x=\"{}\" y=\"{y}\">{name}</text>",
            y - 4.0,
            x + 32.0
        );
        x += 48.0 + LETTER * name.len() as f64;
    }
    out.push_str("</g>\n");
    for (at, cells) in groups.iter().enumerate() {
        let _ = writeln!(
            out,
            "<g class=\"panel\" transform=\"translate({},{})\" style=\"--at:{at}\">",
            (at % 2) as f64 * PANEL.0,
            head + (at / 2) as f64 * PANEL.1
        );
        panel(&mut out, cells);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// The end of a name, which tells more than its begin.
fn ending(name: &str) -> String {
    match name.char_indices().rev().nth(LONGEST_NAME - 1) {
        Some((at, _)) if at > 0 => format!("\u{2026}{}", &name[at..]),
        _ => name.to_owned(),
    }
}

const WAYS: [&str; 4] = ["floor", "fallback", "fastpath", "bare"];

fn of<'a>(cell: &'a BenchCell, way: &str) -> Option<&'a Measured> {
    match way {
        "floor" => Some(&cell.floor),
        "fallback" => Some(&cell.fallback),
        "fastpath" => cell.fastpath.as_ref(),
        _ => cell.bare.as_ref(),
    }
}

/// Both axes are logarithmic; grid lines are powers of ten.
#[allow(clippy::cast_precision_loss, reason = "places in a picture")]
fn panel(out: &mut String, cells: &[BenchCell]) {
    let (left, top) = ORIGIN;
    let values = cells.iter().flat_map(|cell| WAYS.iter().filter_map(|way| of(cell, way)));
    let values = values.map(|way| way.gib_per_second.max(1e-3).log10());
    let (low, high) =
        values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
    let steps = cells.len().saturating_sub(1) as f64;
    let x = |at: usize| left + PLOT.0 * if steps > 0.0 { at as f64 / steps } else { 0.5 };
    let y = |gib: f64| top + PLOT.1 * (high - gib.max(1e-3).log10()) / (high - low);
    let _ = writeln!(
        out,
        "<text class=\"title\" x=\"{left}\" y=\"{:.0}\">{}</text>",
        top - 10.0,
        escape(&title(cells))
    );
    let mut power = low;
    while power <= high {
        let at = y(10_f64.powf(power));
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{left} {at:.1}h{}\"/><text class=\"soft\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            PLOT.0,
            left - 8.0,
            at + 4.0,
            10_f64.powf(power)
        );
        power += 1.0;
    }
    // Not more labels than have room.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
    let every = (LABEL * steps / PLOT.0).ceil().max(1.0) as usize;
    for (at, cell) in cells.iter().enumerate().step_by(every) {
        let _ = writeln!(
            out,
            "<text class=\"soft\" x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            x(at),
            top + PLOT.1 + 28.0,
            size(cell.block)
        );
    }
    for way in WAYS {
        let points: Vec<(f64, f64, &BenchCell, &Measured)> = cells
            .iter()
            .enumerate()
            .filter_map(|(at, cell)| {
                of(cell, way).map(|way| (x(at), y(way.gib_per_second), cell, way))
            })
            .collect();
        let path: Vec<String> = points.iter().map(|(x, y, ..)| format!("{x:.1} {y:.1}")).collect();
        if !path.is_empty() {
            let _ = writeln!(out, "<path class=\"line {way}\" d=\"M{}\"/>", path.join("L"));
        }
        for (x, y, cell, measured) in points {
            let _ = writeln!(
                out,
                "<circle class=\"dot {way}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{way}, {}: {:.2} GiB/s, {:.2} us</title></circle>",
                size(cell.block),
                measured.gib_per_second,
                measured.median_us
            );
        }
    }
}

fn style(head: f64) -> String {
    let places = [
        ("BELOW_TWO", 2.0 * PANEL.0 - 1.0),
        ("BELOW_ONE", PANEL.0 - 1.0),
        ("WIDTH", PANEL.0),
        ("HEIGHT", PANEL.1),
        ("HEAD", head),
    ];
    let put = |style: String, (name, pixels)| style.replace(name, &format!("{pixels}px"));
    places.into_iter().fold(STYLE.to_owned(), put)
}

/// Ways differ in their dashes too, not in colour alone.
const STYLE: &str = "
svg{--page:#ffffff;--ink:#1b1f24;--soft:#57606a;--grid:#d8dee4;--floor:#57606a;--fallback:#0969da;--fastpath:#1a7f37;--bare:#9a6700;\
--loud:#cf222e;color-scheme:light dark}
@media (prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e6edf3;--soft:#9da7b1;--grid:#262c36;--floor:#9da7b1;--fallback:#58a6ff;\
--fastpath:#3fb950;--bare:#d29922;--loud:#ff7b72}}
svg.bench{background:var(--page)}
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;font-size:12px;fill:var(--ink)}
.page{fill:var(--page)}
.heading{font-size:18px;font-weight:600}
.title{font-weight:600}
text.soft{fill:var(--soft);font-size:11px}
text.loud{fill:var(--loud);font-weight:600}
.grid{stroke:var(--grid);stroke-width:1}
.line{fill:none;stroke-width:2}
.line.floor{stroke:var(--floor);stroke-dasharray:6 4}
.line.fallback{stroke:var(--fallback)}
.line.fastpath{stroke:var(--fastpath)}
.line.bare{stroke:var(--bare);stroke-dasharray:2 4}
.dot.floor{fill:var(--floor)}.dot.fallback{fill:var(--fallback)}.dot.fastpath{fill:var(--fastpath)}.dot.bare{fill:var(--bare)}
@media (max-width:BELOW_TWO){svg.bench{--scale:1;width:calc(WIDTH*var(--scale));height:calc(HEAD + var(--panels)*HEIGHT*var(--scale))}
.panel{transform:translate(0,calc(HEAD + var(--at)*HEIGHT*var(--scale))) scale(var(--scale))}}
@media (max-width:BELOW_ONE){svg.bench{--scale:.68}.head{transform:translateX(-48px)}.panel text,.panel text.soft{font-size:16px}}
@media (max-width:396px){svg.bench{--scale:.6}}
";
