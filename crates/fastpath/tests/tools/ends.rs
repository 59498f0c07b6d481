//! Ends by a signal: nothing half written stays, and it is said.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::corruption::verify;
use super::{Host, SIMULATION, bytes, names, output, wait_until};

const ENDS: [(Signal, &str, i32); 3] =
    [(Signal::HUP, "SIGHUP", 1), (Signal::INT, "SIGINT", 2), (Signal::TERM, "SIGTERM", 15)];

fn start(command: &mut Command) -> Child {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

pub(crate) fn send(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("it runs");
}

/// Waits until the program has a file in the folder open that it makes there, with a name or without.
fn has_begun(child: &Child, folder: &Path, besides: &Path) {
    let open = format!("/proc/{}/fd", child.id());
    wait_until("a file is made", || {
        let links = fs::read_dir(&open).into_iter().flatten().flatten();
        let mut targets = links.filter_map(|link| fs::read_link(link.path()).ok());
        targets.any(|target| target.starts_with(folder) && target != besides)
    });
    // And a request is on its way.
    std::thread::sleep(Duration::from_millis(100));
}

/// The signal that ended it, and what it said.
fn end(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.signal(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_copy_that_a_signal_ends_leaves_what_was_there() {
    let host = Host::new();
    let (source, copy) = (host.path("source"), host.path("copy"));
    fs::write(&source, bytes(64 << 20)).expect("a file");
    for (signal, name, number) in ENDS {
        for existing in [true, false] {
            let _ = fs::remove_file(&copy);
            if existing {
                fs::write(&copy, b"old").expect("a file");
            }
            let mut command = host.command("cp");
            let child = start(command.arg(&source).arg(&copy).env("HIPSIM_AIS_GBPS", "0.02"));
            has_begun(&child, host.data.path(), &source);
            send(&child, signal);
            let outcome = if existing { "is as it was" } else { "was not made" };
            let said = format!("error: ended by {name}: {} {outcome}\n", copy.display());
            assert_eq!(end(child), (Some(number), String::new(), format!("{SIMULATION}{said}")));
            if existing {
                assert_eq!(fs::read(&copy).expect("the old one"), b"old");
                assert_eq!(names(host.data.path()), ["copy", "source"]);
            } else {
                assert_eq!(names(host.data.path()), ["source"]);
            }
        }
    }
    let child = start(
        host.command("cp")
            .args(["-q", "--in-place"])
            .arg(&source)
            .arg(&copy)
            .env("HIPSIM_AIS_GBPS", "0.02"),
    );
    has_begun(&child, host.data.path(), &source);
    send(&child, Signal::INT);
    let said = format!("error: ended by SIGINT: {} may be half a copy\n", copy.display());
    assert_eq!(end(child), (Some(2), String::new(), said));
}

/// Where the file system has no files without names, the temporary one has a name.
#[test]
fn a_copy_that_a_signal_ends_leaves_no_temporary_file_with_a_name() {
    let host = Host::new();
    let (source, copy, folder) = (host.path("source"), host.path("copy"), host.data.path());
    fs::write(&source, bytes(20 << 20)).expect("a file");
    let cp = |program: &str| {
        let mut command = host.program(Path::new("strace"), "-D");
        command.args(["-qq", "-o", "/dev/null", "-P"]).arg(folder);
        command.args(["-e", "trace=openat", "-e", "inject=openat:error=EOPNOTSUPP", program]);
        command.args(["cp", "-q", "--root"]).arg(host.root.path()).arg(&source).arg(&copy);
        command
    };
    if !cp("true").output().is_ok_and(|output| output.status.success()) {
        println!("skipped, because strace is not installed or may not trace");
        return;
    }
    let program = env!("CARGO_BIN_EXE_fastpath");
    let child = start(cp(program).env("HIPSIM_AIS_GBPS", "0.02"));
    has_begun(&child, folder, &source);
    let temporary = format!(".fastpath-{}-0", child.id());
    assert_eq!(names(folder), [&temporary, "source"]);
    send(&child, Signal::TERM);
    let said = format!("error: ended by SIGTERM: {} was not made\n", copy.display());
    assert_eq!(end(child), (Some(15), String::new(), said));
    assert_eq!(names(folder), ["source"]);

    assert_eq!(output(&mut cp(program)), (0, String::new(), String::new()));
    assert!(fs::read(&copy).expect("the copy") == bytes(20 << 20));
    assert_eq!(names(folder), ["copy", "source"]);
    let mut command = cp(program);
    let (code, ..) = output(command.env("HIPSIM_FAULT", "hipAmdFileWrite:1=errno:5"));
    assert_eq!((code, names(folder)), (2, vec!["copy".to_owned(), "source".to_owned()]));
}

#[test]
fn verify_and_bench_that_a_signal_ends_leave_nothing() {
    let host = Host::new();
    let bench = || {
        let mut bench = host.command("bench");
        bench.arg(host.data.path());
        bench
    };
    for (signal, name, number) in ENDS {
        for (mut command, outcome) in
            [(verify(&host), "nothing is proven"), (bench(), "nothing was measured to its end")]
        {
            let child = start(command.env("HIPSIM_AIS_GBPS", "0.02"));
            has_begun(&child, host.data.path(), Path::new(""));
            send(&child, signal);
            let said = format!("{SIMULATION}error: ended by {name}: {outcome}\n");
            assert_eq!(end(child), (Some(number), String::new(), said));
            assert_eq!(names(host.data.path()), [""; 0]);
        }
    }
}

/// A request that the GPU does not answer holds nothing up.
#[test]
fn a_signal_ends_a_copy_whose_request_hangs() {
    let host = Host::new();
    let (source, copy) = (host.path("source"), host.path("copy"));
    fs::write(&source, bytes(4096)).expect("a file");
    let mut command = host.command("cp");
    command.arg(&source).arg(&copy).env("HIPSIM_AIS_LATENCY_US", "60000000");
    let child = start(&mut command);
    has_begun(&child, host.data.path(), &source);
    let begin = Instant::now();
    send(&child, Signal::TERM);
    assert_eq!(end(child).0, Some(15));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!(names(host.data.path()), ["source"]);
}

/// As `nohup` and a shell's background jobs have it.
#[test]
fn a_signal_that_was_to_be_ignored_is_ignored() {
    let host = Host::new();
    let (source, copy) = (host.path("source"), host.path("copy"));
    fs::write(&source, bytes(20 << 20)).expect("a file");
    let mut command = host.program(Path::new("sh"), "-c");
    command.args(["trap '' INT HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_fastpath")]);
    command.args(["cp", "-q", "--root"]).arg(host.root.path()).arg(&source).arg(&copy);
    let child = start(command.env("HIPSIM_AIS_GBPS", "0.02"));
    has_begun(&child, host.data.path(), &source);
    send(&child, Signal::INT);
    send(&child, Signal::HUP);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    assert!(fs::read(&copy).expect("the copy") == bytes(20 << 20));
}
