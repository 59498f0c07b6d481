//! Statistics of processes that run, have ended, are somebody else's, or never use hipFile; and what a program is told while it is
//! watched.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::ends::send;
use super::measurements::assert_fits;
use super::{Host, busy, link, output, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");

fn stats(host: &Host) -> Command {
    host.program(Path::new(PROGRAM), "stats")
}

/// A copy of 96 MiB that takes seconds, started by what is before it.
fn slow(host: &Host, before: &[&str]) -> Child {
    let words = busy(host, before);
    let mut command = host.program(Path::new(&words[0]), "");
    command.args(&words[1..]).env("HIPSIM_AIS_GBPS", "0.05");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn bytes_read(out: &str) -> u64 {
    let line = out.lines().find_map(|line| line.strip_prefix("Total Fastpath Read Size (B): "));
    line.and_then(|number| number.parse().ok()).expect("a number of bytes")
}

#[test]
fn stats_of_a_program_that_runs_are_shown_now_or_at_its_end() {
    let host = Host::new();
    let ais_stats = link(&host, "ais-stats");
    let mut child = slow(&host, &[]);
    let pid = child.id().to_string();
    let (code, out, error) = output(stats(&host).arg(&pid));
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(bytes_read(&out) < 96 << 20, "{out}");
    let (code, out, error) = output(host.program(&ais_stats, "").args(["-p", &pid, "-i"]));
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(bytes_read(&out) < 96 << 20, "{out}");
    assert!(child.try_wait().expect("it is ours").is_none(), "it was too fast");
    // These wait.
    let waiting = |mut command: Command| {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let mut ours = stats(&host);
    ours.args(["--wait", &pid]);
    let mut amds = host.program(&ais_stats, "");
    amds.args(["-p", &pid]);
    let waiters = [ours, amds].map(waiting);
    assert!(child.wait().expect("it ends").success());
    for waiter in waiters {
        let output = waiter.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
        assert_eq!(bytes_read(&String::from_utf8_lossy(&output.stdout)), 96 << 20);
    }
    // It has ended.
    let said = format!("error: process {pid}: No such process (os error 3)\n");
    assert_eq!(output(stats(&host).arg(&pid)), (2, String::new(), said.clone()));
    assert_eq!(output(host.program(&ais_stats, "").args(["-p", &pid])), (1, String::new(), said));
    let (code, _, error) = output(stats(&host).arg("0"));
    assert_eq!((code, error.as_str()), (2, "error: process 0: No such process (os error 3)\n"));
    let (code, _, error) = output(host.program(&ais_stats, "").args(["-p", "one"]));
    assert_eq!((code, error.as_str()), (1, "error: one: no process id\n"));
}

#[test]
fn a_program_that_ends_without_hipfile_has_no_statistics() {
    let host = Host::new();
    let mut child = Command::new("sleep").arg("1").spawn().expect("it starts");
    let pid = child.id().to_string();
    let (code, out, error) = output(stats(&host).args(["--wait", &pid]));
    child.wait().expect("it ends");
    let said = format!("error: process {pid} ended and had not used hipFile\n");
    assert_eq!((code, out.as_str(), error), (2, "", said));
}

#[test]
fn statistics_are_shown_to_the_same_user_and_to_root() {
    let host = Host::new();
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut child = slow(&host, &[]);
    let pid = child.id().to_string();
    let mut command = host.program(Path::new(nobody[0]), "");
    let (code, out, error) = output(command.args(&nobody[1..]).args([PROGRAM, "stats", &pid]));
    if error.starts_with("setpriv: ") {
        println!("skipped, because nobody else's rights can be had here: {error}");
    } else {
        let said = format!("error: process {pid} does not show its statistics to this user\n");
        assert_eq!((code, out.as_str(), error), (2, "", said));
    }
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
}

/// A worker that was forked before the first I/O counts its own, and is asked by its own number.
#[test]
fn a_forked_worker_has_statistics_of_its_own() {
    let host = Host::new();
    let place = host.path("pid");
    let script = "\"$@\" & echo $! > \"$0\"; wait";
    let mut child = slow(&host, &["sh", "-c", script, place.to_str().expect("UTF-8")]);
    wait_until("the worker has a number", || {
        fs::read_to_string(&place).is_ok_and(|text| text.ends_with('\n'))
    });
    let worker = fs::read_to_string(&place).expect("a number");
    let (code, out, error) = output(stats(&host).args(["--wait", worker.trim()]));
    assert_eq!((code, error.as_str(), bytes_read(&out)), (0, "", 96 << 20));
    child.wait().expect("it ends");
}

/// Reasons are words of our own, which AMD's tool does not say.
#[test]
fn ais_stats_says_nothing_that_amds_does_not() {
    let host = Host::new();
    let ais_stats = link(&host, "ais-stats");
    let forced = |mut command: Command| {
        output(command.args(busy(&host, &[])).env("HIPFILE_FORCE_COMPAT_MODE", "true"))
    };
    let mut ours = stats(&host);
    ours.arg("--");
    let (code, out, error) = forced(ours);
    assert_eq!((code, error.as_str()), (0, ""));
    let why = "\nNot direct, because\n        12  HIPFILE_FORCE_COMPAT_MODE is set (request-forced)\n\nmore: fastpath explain request-forced\n";
    assert!(out.ends_with(why), "{out}");
    let (code, out, error) = forced(host.program(&ais_stats, ""));
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(out.ends_with("\nFallback Write Unaligned Count: 0\n"), "{out}");
    assert!(out.contains("Fastpath Rejections: 12\n"), "{out}");
}

/// Spec: the exit status of the program was dropped.
#[test]
fn ais_stats_passes_a_failure_on() {
    let host = Host::new();
    let ais_stats = link(&host, "ais-stats");
    let said =
        "error: cannot connect: the program did not use hipFile, or HIPFILE_STATS_LEVEL is 0\n";
    let mut command = host.program(&ais_stats, "");
    assert_eq!(output(command.args(["sh", "-c", "exit 7"])), (7, String::new(), said.to_owned()));
    // A copy, and the shell's own failure with its statistics: exec keeps the process.
    let words = busy(&host, &[]);
    let mut command = host.program(&ais_stats, "");
    command.args(&words).env("HIPSIM_FAULT", "hipAmdFileWrite:2=errno:5");
    let (code, out, error) = output(&mut command);
    assert_eq!((code, bytes_read(&out)), (2, 32 << 20), "{error}");
}

/// The program ends as it would by itself, and its statistics are shown.
#[test]
fn signals_go_to_the_program_that_is_watched() {
    let host = Host::new();
    let script = "trap 'echo got USR1' USR1; trap 'echo got HUP; exit 3' HUP; echo ready; while :; do sleep 0.02; done";
    let start = |mut command: Command| {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    let mut command = stats(&host);
    command.args(["--", "sh", "-c", script]);
    let mut child = start(command);
    let mut said = String::new();
    let mut read = |child: &mut Child, until: &str| {
        use std::io::Read as _;
        let out = child.stdout.as_mut().expect("a pipe");
        let mut byte = [0];
        while !said.ends_with(until) && out.read(&mut byte).expect("it is read") == 1 {
            said.push(char::from(byte[0]));
        }
    };
    read(&mut child, "ready\n");
    send(&child, Signal::USR1);
    read(&mut child, "got USR1\n");
    send(&child, Signal::HUP);
    read(&mut child, "got HUP\n");
    assert_eq!(child.wait().expect("it ends").code(), Some(3));

    // Half a copy, by a signal to the one who watches.
    let mut command = stats(&host);
    command.arg("--").args(busy(&host, &[])).env("HIPSIM_AIS_GBPS", "0.05");
    let child = start(command);
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let mut worker = None;
    wait_until("the copy runs", || {
        let text = fs::read_to_string(&children).unwrap_or_default();
        worker =
            text.split_whitespace().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        let pid = worker.map_or_else(String::new, |pid| pid.as_raw_nonzero().to_string());
        let (code, out, _) = output(stats(&host).arg(pid));
        code == 0 && bytes_read(&out) > 0
    });
    send(&child, Signal::INT);
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), ended.status.signal()), (Some(130), None));
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(error.starts_with("error: ended by SIGINT: ") && error.lines().count() == 1, "{error}");
    let read = bytes_read(&String::from_utf8_lossy(&ended.stdout));
    assert!(read > 0 && read < 96 << 20, "{read}");
    assert!(
        worker.is_some_and(|worker| kill_process(worker, Signal::TERM).is_err()),
        "it still runs"
    );
}

#[test]
fn stats_shows_a_programs_io_and_why_it_was_not_direct() {
    let host = Host::new();
    let program = Path::new(env!("CARGO_BIN_EXE_fastpath"));
    let mut command = host.program(program, "stats");
    command
        .args(["--format", "json"])
        .args(busy(&host, &["--"]))
        .env("HIPFILE_FORCE_COMPAT_MODE", "true");
    let (code, out, error) = output(&mut command);
    assert_eq!((code, error.as_str()), (0, ""));
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_fits(&report, include_str!("../../../../docs/schema/stats.schema.json"));
    assert_eq!((&report["schema"], &report["level"]), (&"fastpath.stats/1".into(), &1.into()));
    assert_eq!(
        (&report["files"], &report["buffers"], &report["refused"]),
        (&2.into(), &1.into(), &12.into())
    );
    let reasons = serde_json::json!([{"reason": "forced", "text": "HIPFILE_FORCE_COMPAT_MODE is set", "count": 12}]);
    assert_eq!(report["reasons"], reasons);
    let total = |at: usize| {
        (report["totals"][at]["bytes"].as_u64(), report["totals"][at]["requests"].as_u64())
    };
    let all = (Some(96 << 20), Some(6));
    assert_eq!([0, 1, 2, 3].map(total), [(Some(0), Some(0)), (Some(0), Some(0)), all, all]);
    // Size 13: from 16 MiB on.
    assert_eq!(report["gpus"][0]["ways"][2]["requests"][13], 6);
}

#[test]
fn stats_passes_the_exit_status_on() {
    let host = Host::new();
    let program = Path::new(env!("CARGO_BIN_EXE_fastpath"));
    let stats =
        |script: &str| output(host.program(program, "stats").args(["--", "/bin/sh", "-c", script]));
    let note =
        "note: no statistics: the program did not use hipFile, or HIPFILE_STATS_LEVEL is 0\n";
    assert_eq!(stats("exit 7"), (7, String::new(), note.to_owned()));
    assert_eq!(stats("kill -9 $$").0, 128 + 9);
    let (code, _, error) = output(host.program(program, "stats").args(["--", "/nonexistent"]));
    assert_eq!(
        (code, error.as_str()),
        (2, "error: /nonexistent: No such file or directory (os error 2)\n")
    );
    let own = std::process::id().to_string();
    let (code, _, error) = output(host.program(program, "stats").arg(&own));
    let expected = format!(
        "error: process {own} shows no statistics: the program did not use hipFile, or HIPFILE_STATS_LEVEL is 0, or it is in another \
         network namespace\n"
    );
    assert_eq!((code, error), (2, expected));
}

#[test]
fn ais_stats_reports_as_amds_does_and_keeps_its_exit_codes() {
    let host = Host::new();
    let ais_stats = link(&host, "ais-stats");
    let (code, out, error) = output(host.program(&ais_stats, "").args(busy(&host, &[])));
    assert_eq!((code, error.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    let head = [
        "AIS-STATS Version: 1",
        "HipFile Stats Level: 1",
        "File Handle Registrations: 2",
        "Buffer Registrations: 1",
        "Fastpath Rejections: 0",
        "",
        "Total Fastpath Read Size (B): 100663296",
    ];
    assert_eq!(lines[..7], head);
    assert!(lines[7].starts_with("Average Fastpath Read Bandwidth (GiB/s): "), "{out}");
    assert!(lines[8].starts_with("Average Fastpath Read Latency (us): "), "{out}");
    assert_eq!(
        lines[9..12],
        ["Total Fastpath Read Errors: 0", "Total Fastpath Read Unaligned: 0", ""]
    );
    let idle = [
        "Total Fallback Write Size (B): 0",
        "Average Fallback Write Bandwidth (GiB/s): 0.000",
        "Average Fallback Write Latency (us): 0.0",
        "Total Fallback Write Errors: 0",
        "Total Fallback Write Unaligned: 0",
        "",
        "GPU 0:",
        "IO Size Histogram",
    ];
    assert_eq!(lines[24..32], idle);
    let columns = [
        "Fastpath Read Size (B)",
        "Fastpath Write Size (B)",
        "Fallback Read Size (B)",
        "Fallback Write Size (B)",
    ];
    let row = |first: &str, cells: [&str; 4]| {
        cells.iter().fold(format!("{first:<16}"), |line, cell| format!("{line}{cell:>34}"))
    };
    assert_eq!(lines[32], row("IO Size (KiB)", columns));
    assert_eq!(lines[33], row("0-4", ["0"; 4]));
    assert_eq!(lines[34], row("4-8", ["0"; 4]));
    assert_eq!(lines[46], row("16384-32768", ["100663296", "100663296", "0", "0"]));
    assert_eq!(lines[48], row("65536-...", ["0"; 4]));
    assert_eq!(lines[49], "Bandwidth Histogram");
    assert_eq!(lines[67], "Latency Histogram");
    assert_eq!(lines[85], "Errors Histogram");
    let end = [
        "Fastpath Read Unaligned Count: 0",
        "Fastpath Write Unaligned Count: 0",
        "Fallback Read Unaligned Count: 0",
        "Fallback Write Unaligned Count: 0",
    ];
    assert_eq!(lines[103..], end);

    let (code, out, error) = output(&mut host.program(&ais_stats, ""));
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.starts_with("usage: ais-stats <program> [args...]\n"), "{error}");
    assert_eq!(output(host.program(&ais_stats, "").arg("-p")).0, 1);
    let (code, out, error) = output(host.program(&ais_stats, "").arg("--help"));
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(
        out.starts_with("usage: ais-stats <program> [args...]\n") && out.contains("Examples:\n"),
        "{out}"
    );
    let (code, out, error) = output(host.program(&ais_stats, "").arg("/bin/true"));
    assert_eq!(
        (code, out.as_str(), error.as_str()),
        (
            1,
            "",
            "error: cannot connect: the program did not use hipFile, or HIPFILE_STATS_LEVEL is 0\n"
        )
    );
}

/// A process whose statistics have the layout of AMD's first releases, by their size.
#[test]
fn stats_of_amds_first_layout_are_told_by_their_size() {
    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
        SocketType, accept, bind, listen, sendmsg, socket,
    };
    use std::os::fd::AsFd as _;
    let host = Host::new();
    let pid = std::process::id();
    let mut name = format!("AISSTATS{pid:08x}").into_bytes();
    name.resize(107, 0);
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    bind(&listener, &SocketAddrUnix::new_abstract_name(&name).expect("a name"))
        .expect("it is free");
    listen(&listener, 4).expect("a server");
    let memory = fs::File::from(
        rustix::fs::memfd_create("AISSTATS", rustix::fs::MemfdFlags::CLOEXEC).expect("memory"),
    );
    memory.set_len(66 * 8).expect("a length");
    for (at, word) in [2_u64, 1, 10, 20, 30, 40].into_iter().enumerate() {
        memory.write_all_at(&word.to_ne_bytes(), at as u64 * 8).expect("a word");
    }
    let server = std::thread::spawn(move || {
        let client = accept(&listener).expect("a client");
        let fds = [memory.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        let number = 1_i32.to_ne_bytes();
        sendmsg(&client, &[std::io::IoSlice::new(&number)], &mut control, SendFlags::empty())
            .expect("it takes it");
    });
    let program = Path::new(env!("CARGO_BIN_EXE_fastpath"));
    let (code, out, error) = output(host.program(program, "stats").arg(pid.to_string()));
    server.join().expect("it was asked");
    let expected = "AIS-STATS Version: 1\nHipFile Stats Level: 2\nTotal fast path reads (B): 10\nTotal fast path writes (B): 20\n\
                    Total fallback path reads (B): 30\nTotal fallback path writes (B): 40\n";
    assert_eq!((code, out.as_str(), error.as_str()), (0, expected, ""));
}
