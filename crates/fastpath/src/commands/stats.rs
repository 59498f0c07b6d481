//! `fastpath stats`, and AMD's `ais-stats`.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, bail};
use fastpath_report::{StatsGpu, StatsReason, StatsReport, StatsTotal, StatsWay, stats_json};
use hipfile::stats::{Side, Snapshot, Watch};
use rustix::process::{Pid, PidfdFlags, Signal, getpgrp, pidfd_open, pidfd_send_signal};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::args::{AisStatsArgs, Format, StatsArgs};
use crate::{ending, output};

/// How long a process that runs is asked for statistics that are to be shown now.
const PATIENCE: Duration = Duration::from_secs(1);

const UNUSED: &str = "the program did not use hipFile, or HIPFILE_STATS_LEVEL is 0";

pub(crate) fn run(args: &StatsArgs) -> anyhow::Result<u8> {
    let show = |snapshot: &Snapshot| {
        output::data(&match args.format {
            Format::Text => snapshot.report() + &snapshot.reasons_report(),
            Format::Json => stats_json(&report(snapshot)),
        })
    };
    if let Some(pid) = args.pid {
        show(&attach(pid, args.wait)?)?;
        return Ok(0);
    }
    let (snapshot, status) = start(&args.program)?;
    match snapshot {
        Some(snapshot) => show(&snapshot)?,
        None => output::note(&format!("note: no statistics: {UNUSED}")),
    }
    Ok(code(status))
}

/// A program's end as a shell has it.
fn code(status: ExitStatus) -> u8 {
    let signal = status.signal().map_or(2, |signal| 128 + signal);
    u8::try_from(status.code().unwrap_or(signal)).unwrap_or(2)
}

/// Under the name `ais-stats`: the words and exit codes of AMD's, but for a program that failed: that is passed on.
pub(crate) fn run_ais_stats(args: &AisStatsArgs) -> anyhow::Result<u8> {
    const USAGE: &str = "usage: ais-stats <program> [args...]\n       ais-stats -p <PID> [-i]";
    const HELP: &str = "\n\nShows the statistics of a program at its end, or with -i now.\n\nExamples:\n  ais-stats ./train\n  \
                        ais-stats -p 4711 -i\n";
    let words: Vec<&OsString> = args.words.iter().collect();
    let mut failed = 0;
    let snapshot = match words.as_slice() {
        [flag, pid, rest @ ..] if *flag == "-p" => {
            let number = pid.to_str().and_then(|pid| pid.parse().ok());
            let number = number.with_context(|| format!("{}: no process id", pid.display()))?;
            attach(number, rest.first().is_none_or(|word| *word != "-i"))?
        }
        [] => {
            USAGE.lines().for_each(output::note);
            return Ok(1);
        }
        [flag] if *flag == "-h" || *flag == "--help" => {
            output::data(&format!("{USAGE}{HELP}"))?;
            return Ok(0);
        }
        [flag] if *flag == "-p" => {
            USAGE.lines().for_each(output::note);
            return Ok(1);
        }
        _ => {
            let (found, status) = start(&args.words)?;
            failed = code(status);
            if let (None, 1..) = (&found, failed) {
                output::note(&format!("error: cannot connect: {UNUSED}"));
                return Ok(failed);
            }
            found.with_context(|| format!("cannot connect: {UNUSED}"))?
        }
    };
    output::data(&snapshot.report())?;
    Ok(failed)
}

/// Starts a program, waits for its end, and gives its statistics if it had any.
fn start(program: &[OsString]) -> anyhow::Result<(Option<Snapshot>, ExitStatus)> {
    let (name, arguments) = program.split_first().context("no program is given")?;
    let shown = || name.to_string_lossy().into_owned();
    // From before it starts, so that none is lost.
    let signals = Signals::new(ending::heeded(&PASSED_ON)).context("signal handlers")?;
    let mut child = Command::new(name).args(arguments).spawn().with_context(shown)?;
    let pid = i32::try_from(child.id()).context("the process id")?;
    pass_on(signals, pid)?;
    let watched = watch(pid);
    // It is waited for whatever became of its statistics.
    let status = loop {
        match child.wait() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => break result.with_context(shown)?,
        }
    };
    let snapshot = watched.with_context(shown)?.map(|watch| watch.snapshot()).transpose();
    Ok((snapshot.with_context(shown)?.flatten(), status))
}

/// What a program may be told by signals.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Gives a child the signals that this program gets, which itself ends after the child.
fn pass_on(mut signals: Signals, pid: i32) -> anyhow::Result<()> {
    let process = Pid::from_raw(pid).context("the process id")?;
    // Not by its number, which may be another's when it has ended.
    let process = pidfd_open(process, PidfdFlags::empty()).context("the process")?;
    let pass = move || {
        for number in signals.forever() {
            // What keys send comes to the child too.
            let is_key = [SIGINT, SIGQUIT].contains(&number) && is_in_foreground();
            if let Some(signal) = Signal::from_named_raw(number).filter(|_| !is_key) {
                let _ = pidfd_send_signal(&process, signal);
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(pass);
    thread.map(drop).context("the thread that passes signals on")
}

/// Whether the keys of the terminal signal this program's process group.
fn is_in_foreground() -> bool {
    File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(tty).is_ok_and(|group| group == getpgrp()))
}

/// Gets a program's counters; none if it ends without.
fn watch(pid: i32) -> std::io::Result<Option<Watch>> {
    let mut watch = Watch::new(pid)?;
    match watch.connect(None) {
        Ok(()) => Ok(Some(watch)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // Ended between the question and the answer.
        Err(_) if watch.wait_for_end(Some(Duration::ZERO))? => Ok(None),
        Err(error) => Err(error),
    }
}

/// The statistics of a process that runs: now, or at its end.
fn attach(pid: u32, until_end: bool) -> anyhow::Result<Snapshot> {
    let process = || format!("process {pid}");
    let number = i32::try_from(pid).context("a process id is below 2147483648")?;
    let mut watch = Watch::new(number).with_context(process)?;
    let patience = (!until_end).then_some(PATIENCE);
    match watch.connect(patience) {
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            bail!(
                "process {pid} shows no statistics: {UNUSED}, or it is in another network namespace"
            )
        }
        result => result?,
    }
    if until_end {
        watch.wait_for_end(None).with_context(process)?;
    }
    watch.snapshot().with_context(process)?.with_context(process)
}

const DIRECTIONS: [&str; 2] = ["read", "write"];

fn report(snapshot: &Snapshot) -> StatsReport {
    let ways = |fastpath: &[Side; 2], fallback: &[Side; 2]| {
        let of = |way, sides: &[Side; 2]| {
            let sides = sides.iter().zip(DIRECTIONS);
            sides.map(|(side, direction)| named(way, direction, side)).collect::<Vec<_>>()
        };
        [of("fastpath", fastpath), of("fallback", fallback)].concat()
    };
    let gpus: Vec<StatsGpu> = snapshot
        .gpus
        .iter()
        .map(|gpu| StatsGpu { index: gpu.index, ways: ways(&gpu.fastpath, &gpu.fallback) })
        .collect();
    let none = [Side::default(); 2];
    let mut totals: Vec<StatsTotal> = ways(&none, &none)
        .into_iter()
        .map(|way| StatsTotal { way: way.way, direction: way.direction, ..StatsTotal::default() })
        .collect();
    let sum = |table: &[u64]| table.iter().fold(0_u64, |sum, value| sum.wrapping_add(*value));
    for gpu in &gpus {
        for (total, way) in totals.iter_mut().zip(&gpu.ways) {
            total.bytes = total.bytes.wrapping_add(sum(&way.bytes));
            total.requests = total.requests.wrapping_add(sum(&way.requests));
            total.micros = total.micros.wrapping_add(sum(&way.micros));
            total.errors = total.errors.wrapping_add(sum(&way.errors));
            total.unaligned = total.unaligned.wrapping_add(way.unaligned);
        }
    }
    for (total, bytes) in totals.iter_mut().zip(snapshot.only_bytes.into_iter().flatten()) {
        total.bytes = bytes;
    }
    let reason = |(reason, count): &(hipfile::choose::Reason, u64)| StatsReason {
        reason: reason.word().to_owned(),
        text: reason.text().to_owned(),
        count: *count,
    };
    StatsReport {
        schema: "fastpath.stats/1".to_owned(),
        level: snapshot.level,
        bytes_only: snapshot.only_bytes.is_some(),
        files: snapshot.files,
        buffers: snapshot.buffers,
        refused: snapshot.refused,
        reasons: snapshot.reasons.iter().map(reason).collect(),
        totals,
        gpus,
    }
}

fn named(way: &str, direction: &str, side: &Side) -> StatsWay {
    StatsWay {
        way: way.to_owned(),
        direction: direction.to_owned(),
        bytes: side.bytes.to_vec(),
        requests: side.count.to_vec(),
        micros: side.micros.to_vec(),
        errors: side.errors.to_vec(),
        unaligned: side.unaligned,
    }
}
