//! Statistics as `ais-stats` prints them.
#![allow(clippy::cast_precision_loss, reason = "three digits are shown")]

use std::fmt::Write as _;

use super::{GpuStats, SIZES, Side, Snapshot};

/// The sides of a GPU in the order of the report, by the names they have there.
const SIDES: [&str; 4] = ["Fastpath Read", "Fastpath Write", "Fallback Read", "Fallback Write"];

const FIRST_COLUMN: usize = 16;
const COLUMN: usize = 34;

fn sides(gpu: &GpuStats) -> [&Side; 4] {
    let [fast_read, fast_write] = &gpu.fastpath;
    let [slow_read, slow_write] = &gpu.fallback;
    [fast_read, fast_write, slow_read, slow_write]
}

/// Sums of one kind of transfer.
#[derive(Clone, Copy, Default)]
struct Sums {
    bytes: u64,
    count: u64,
    micros: u64,
    errors: u64,
}

impl Sums {
    fn of(side: &Side) -> Self {
        let (bytes, count, time, errors) = side.totals();
        Self { bytes, count, micros: u64::try_from(time.as_micros()).unwrap_or(u64::MAX), errors }
    }

    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.wrapping_add(other.bytes),
            count: self.count.wrapping_add(other.count),
            micros: self.micros.wrapping_add(other.micros),
            errors: self.errors.wrapping_add(other.errors),
        }
    }

    fn bandwidth(self) -> f64 {
        const GIB: f64 = (1_u64 << 30) as f64;
        if self.micros == 0 { 0.0 } else { self.bytes as f64 / GIB / (self.micros as f64 / 1e6) }
    }

    fn latency(self) -> f64 {
        if self.count == 0 { 0.0 } else { self.micros as f64 / self.count as f64 }
    }
}

/// Transfers of the size with this index.
fn at(side: &Side, index: usize) -> Sums {
    let of = |table: &[u64; SIZES]| table.get(index).copied().unwrap_or_default();
    Sums {
        bytes: of(&side.bytes),
        count: of(&side.count),
        micros: of(&side.micros),
        errors: of(&side.errors),
    }
}

/// What sizes a row of a table has, in KiB.
fn range(size: usize) -> String {
    match size {
        0 => "0-4".to_owned(),
        size if size + 1 == SIZES => format!("{}-...", 2_u64 << size),
        size => format!("{}-{}", 2_u64 << size, 4_u64 << size),
    }
}

type Cell = fn(Sums) -> String;

const TABLES: [(&str, &str, Cell); 4] = [
    ("IO Size", "Size (B)", |sums| sums.bytes.to_string()),
    ("Bandwidth", "Bandwidth (GiB/s)", |sums| format!("{:.3}", sums.bandwidth())),
    ("Latency", "Latency (us)", |sums| format!("{:.1}", sums.latency())),
    ("Errors", "Error Count", |sums| sums.errors.to_string()),
];

impl Snapshot {
    /// The lines that AMD's `ais-stats` prints, and no others.
    pub fn report(&self) -> String {
        if let Some([fast_reads, fast_writes, slow_reads, slow_writes]) = self.only_bytes {
            return format!(
                "AIS-STATS Version: 1\nHipFile Stats Level: {}\nTotal fast path reads (B): {fast_reads}\n\
                 Total fast path writes (B): {fast_writes}\nTotal fallback path reads (B): {slow_reads}\n\
                 Total fallback path writes (B): {slow_writes}\n",
                self.level
            );
        }
        let mut text = format!(
            "AIS-STATS Version: 1\nHipFile Stats Level: {}\nFile Handle Registrations: {}\n\
             Buffer Registrations: {}\nFastpath Rejections: {}\n\n",
            self.level, self.files, self.buffers, self.refused
        );
        for (index, name) in SIDES.iter().enumerate() {
            let of_name = || self.gpus.iter().filter_map(|gpu| sides(gpu).get(index).copied());
            let sums = of_name().fold(Sums::default(), |sums, side| sums.and(Sums::of(side)));
            let unaligned = of_name().fold(0_u64, |sum, side| sum.wrapping_add(side.unaligned));
            let _ = write!(
                text,
                "Total {name} Size (B): {}\nAverage {name} Bandwidth (GiB/s): {:.3}\n\
                 Average {name} Latency (us): {:.1}\nTotal {name} Errors: {}\nTotal {name} Unaligned: {unaligned}\n\n",
                sums.bytes,
                sums.bandwidth(),
                sums.latency(),
                sums.errors
            );
        }
        for gpu in &self.gpus {
            let _ = writeln!(text, "GPU {}:", gpu.index);
            for table in TABLES {
                self::table(&mut text, gpu, table);
            }
            for (name, side) in SIDES.iter().zip(sides(gpu)) {
                let _ = writeln!(text, "{name} Unaligned Count: {}", side.unaligned);
            }
        }
        text
    }

    /// Why requests were not direct, which AMD's tool does not know: empty, or lines to follow the report.
    pub fn reasons_report(&self) -> String {
        let mut text = String::new();
        if !self.reasons.is_empty() {
            text.push_str("\nNot direct, because\n");
        }
        for (reason, count) in &self.reasons {
            let _ = writeln!(text, "{count:>10}  {} ({})", reason.text(), reason.id());
        }
        if let Some((first, _)) = self.reasons.first() {
            let others = if self.reasons.len() > 1 { ", or any name in parentheses" } else { "" };
            let _ = writeln!(text, "\nmore: fastpath explain {}{others}", first.id());
        }
        text
    }
}

fn table(text: &mut String, gpu: &GpuStats, (title, column, cell): (&str, &str, Cell)) {
    let _ = writeln!(text, "{title} Histogram");
    let _ = write!(text, "{:<FIRST_COLUMN$}", "IO Size (KiB)");
    for name in SIDES {
        let _ = write!(text, "{:>COLUMN$}", format!("{name} {column}"));
    }
    text.push('\n');
    for size in 0..SIZES {
        let _ = write!(text, "{:<FIRST_COLUMN$}", range(size));
        for side in sides(gpu) {
            let _ = write!(text, "{:>COLUMN$}", cell(at(side, size)));
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Snapshot, WORDS};

    /// The words are another process's.
    #[test]
    fn sums_beyond_64_bits_wrap() {
        let snapshot = Snapshot::parse(&vec![u64::MAX; WORDS], &[]);
        assert_eq!(snapshot.gpus.len(), 16);
        assert!(
            snapshot.report().contains("Total Fallback Write Unaligned: 18446744073709551600\n")
        );
    }
}
