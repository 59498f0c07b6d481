//! How fast a configuration is read, beside the fastest search there is for one name in it.
//!
//! The yardstick is `memchr::memmem` over the whole text for `CONFIG_PCI_P2PDMA`. What is asked of this crate:
//! `Text::find` within 2 times that, `Text::scan` (five symbols in one pass) within 4 times. Run with `cargo bench -p
//! fastpath-kconfig`; the figures of one run are in `docs/performance.md`. Ratios are measured apart from criterion's
//! figures, the searches taking turns, so that a busy machine slows all of them alike.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark reports to a terminal")]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use criterion::{Criterion, Throughput};
use fastpath_kconfig::{Symbol, Text, gzip};
use memchr::memmem;

/// Lines of the synthetic text. Real distribution kernels have 10,000 to 12,500 of them in 250 to 300 kB.
const LINES: usize = 11_000;

/// Where the real configurations are, if there are any.
const CONFIGS: &str = "FASTPATH_KERNEL_CONFIGS";

/// Parts of names in the proportions of real configurations: drivers, subsystems, capabilities, chips.
const WORDS: [&str; 48] = [
    "SND",
    "USB",
    "NET",
    "DRM",
    "VIDEO",
    "CRYPTO",
    "HAVE",
    "ARCH",
    "SENSORS",
    "GPIO",
    "REGULATOR",
    "MFD",
    "IIO",
    "BT",
    "SCSI",
    "SOC",
    "INTEL",
    "AMD",
    "NF",
    "TABLE",
    "MATCH",
    "TARGET",
    "SERIAL",
    "INPUT",
    "TOUCHSCREEN",
    "HID",
    "PCI",
    "PCIE",
    "HSA",
    "ZONE",
    "DEVICE",
    "MEMORY",
    "HOTPLUG",
    "DEBUG",
    "TRACE",
    "FS",
    "NLS",
    "CODEPAGE",
    "LEDS",
    "CLK",
    "CMA",
    "I2C",
    "SPI",
    "WLAN",
    "VENDOR",
    "ETHERNET",
    "DMA",
    "DMABUF",
];

/// A generator of numbers that gives the same text every time (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }
}

/// A text of the size and the mix of lines of a distribution's configuration, with the option in the middle and its
/// companions where they stand in a real one.
fn synthetic() -> Vec<u8> {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut text = "#\n# Automatically generated file; DO NOT EDIT.\n\
        # Linux/x86 6.19.0-300.fc44.x86_64 Kernel Configuration\n#\n"
        .to_owned();
    for line in 0..LINES {
        let fixed = match line {
            400 => "CONFIG_IKCONFIG=m",
            1_500 => "CONFIG_ZONE_DEVICE=y",
            5_500 => "CONFIG_PCI_P2PDMA=y",
            7_200 => "CONFIG_HSA_AMD_P2P=y",
            7_900 => "# CONFIG_DMABUF_MOVE_NOTIFY is not set",
            _ => "",
        };
        if !fixed.is_empty() {
            text.push_str(fixed);
            text.push('\n');
            continue;
        }
        let mut name = WORDS[numbers.below(WORDS.len())].to_owned();
        for _ in 0..=numbers.below(3) {
            name.push('_');
            name.push_str(WORDS[numbers.below(WORDS.len())]);
        }
        if numbers.below(4) == 0 {
            name.push_str(&numbers.below(9_000).to_string());
        }
        // Counted in Fedora's: 39 % `=m`, 25 % `=y`, 17 % not set, 13 % comments, 4 % blank, the rest values.
        let line = match numbers.below(100) {
            0..39 => format!("CONFIG_{name}=m\n"),
            39..64 => format!("CONFIG_{name}=y\n"),
            64..81 => format!("# CONFIG_{name} is not set\n"),
            81..87 => "#\n".to_owned(),
            87..94 => format!("# end of {}\n", name.to_ascii_lowercase().replace('_', " ")),
            94..98 => "\n".to_owned(),
            98 => format!("CONFIG_{name}={}\n", numbers.below(65_536)),
            _ => format!("CONFIG_{name}=\"{}\"\n", name.to_ascii_lowercase()),
        };
        text.push_str(&line);
    }
    text.into_bytes()
}

/// The configuration of Fedora among the real ones.
fn fedora() -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os(CONFIGS) else {
        eprintln!("fedora: skipped, because {CONFIGS} is not set");
        return None;
    };
    let entries = std::fs::read_dir(Path::new(&folder)).ok()?.flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let is_fedora = |path: &&std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("fedora-6"))
    };
    let Some(path) = paths.iter().find(is_fedora) else {
        eprintln!("fedora: skipped, because {CONFIGS} holds no configuration of Fedora");
        return None;
    };
    let packed = std::fs::read(path).ok()?;
    Some(gzip::inflate(&packed, gzip::OUTPUT_LIMIT).text)
}

fn measure(criterion: &mut Criterion, name: &str, bytes: &[u8]) {
    let text = Text::new(bytes);
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    let finder = memmem::Finder::new(b"CONFIG_PCI_P2PDMA");
    group.bench_function("memmem", |bencher| {
        bencher.iter(|| finder.find_iter(black_box(bytes)).count());
    });
    group.bench_function("find", |bencher| {
        bencher.iter(|| black_box(text).find(Symbol::PciP2pdma));
    });
    group.bench_function("find and line number", |bencher| {
        bencher.iter(|| {
            let setting = black_box(text).find(Symbol::PciP2pdma);
            text.line_number(setting.offset)
        });
    });
    group.bench_function("scan", |bencher| bencher.iter(|| black_box(text).scan()));
    group.bench_function("check and is_whole", |bencher| {
        bencher.iter(|| (black_box(text).check(), text.is_whole()));
    });
    group.finish();
}

/// Rounds in which the searches take turns, and calls of each in a round.
const ROUNDS: usize = 300;
const CALLS: u32 = 20;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints the ratio of each search to the yardstick, and what is asked of it.
fn ratios(name: &str, bytes: &[u8]) {
    let text = Text::new(bytes);
    let finder = memmem::Finder::new(b"CONFIG_PCI_P2PDMA");
    let measure = |call: &dyn Fn()| {
        let start = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        start.elapsed().as_secs_f64() / f64::from(CALLS)
    };
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        times[0].push(measure(&|| {
            black_box(finder.find_iter(black_box(bytes)).count());
        }));
        times[1].push(measure(&|| {
            black_box(black_box(text).find(Symbol::PciP2pdma));
        }));
        times[2].push(measure(&|| {
            black_box(black_box(text).scan());
        }));
    }
    let [memmem, find, scan] = times.map(median);
    println!("{name}: memmem {:.1} us", memmem * 1e6);
    for (what, time, limit) in [("find", find, 2.0), ("scan", scan, 4.0)] {
        let ratio = time / memmem;
        let word = if ratio <= limit { "within" } else { "NOT within" };
        println!("{name}: {what} {:.1} us, {ratio:.2} times memmem, {word} {limit}", time * 1e6);
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let synthetic = synthetic();
    let fedora = fedora();
    measure(&mut criterion, "synthetic", &synthetic);
    if let Some(bytes) = &fedora {
        measure(&mut criterion, "fedora", bytes);
    }
    criterion.final_summary();
    ratios("synthetic", &synthetic);
    if let Some(bytes) = &fedora {
        ratios("fedora", bytes);
    }
}
