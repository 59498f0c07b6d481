//! What is drawn where a terminal reads, and nothing of it elsewhere.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::corruption::verify;
use super::ends::send;
use super::{Host, output, wait_until};

/// A terminal of 100 columns: what a program writes to the second can be read from the first.
fn terminal() -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = openpt(flags).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is open");
    let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).expect("a size");
    let name = ptsname(&master, Vec::new()).expect("a name").into_string().expect("UTF-8");
    let mut options = File::options();
    let slave = options.read(true).write(true).open(name).expect("its other side");
    (master.into(), slave.into())
}

/// Everything written to the terminal until nobody has it open.
fn read(mut master: File) -> String {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    // The end of a terminal is an error.
    while let Ok(length @ 1..) = master.read(&mut piece) {
        all.extend_from_slice(&piece[..length]);
    }
    String::from_utf8(all).expect("UTF-8")
}

/// Runs a program with stdout or stderr on a terminal, or both; gives what it shows.
fn shown(command: &mut Command, stdout: bool, stderr: bool) -> String {
    let (master, slave) = terminal();
    let side = |on: bool| {
        let slave = slave.try_clone().expect("a descriptor");
        if on { Stdio::from(slave) } else { Stdio::null() }
    };
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").stdin(Stdio::null());
    let mut child = command.stdout(side(stdout)).stderr(side(stderr)).spawn().expect("it starts");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    drop(slave);
    let all = read(master);
    child.wait().expect("it ends");
    all
}

/// What stays on the screen: lines from the last time each was cleared or returned to its begin.
fn left(all: &str) -> String {
    let lines = all.split('\n').map(|line| line.rsplit("\u{1b}[2K").next().unwrap_or(line));
    let lines: Vec<&str> = lines.map(|line| line.trim_matches('\r')).collect();
    lines.join("\n").replace("\u{1b}[1B", "").replace("\u{1b}[1A", "")
}

const SAID: &str = "SIMULATION: the HIP runtime is a simulation; this says nothing about any GPU\n";

fn slow(host: &Host) -> Command {
    let mut command = verify(host);
    command.env("HIPSIM_AIS_GBPS", "0.2");
    command
}

#[test]
fn a_bar_is_drawn_on_a_terminal_and_cleared_in_the_end() {
    let host = Host::new();
    let all = shown(&mut slow(&host), false, true);
    assert!(all.contains("/32 "), "{all:?}");
    assert_eq!(left(&all), SAID, "{all:?}");
    let mut command = slow(&host);
    let all = shown(command.env("HIPSIM_FAULT", "hipAmdFileWrite:4=errno:5"), false, true);
    assert!(all.contains("/32 "), "{all:?}");
    let error = "error: hipAmdFileRead/Write: Input/output error (os error 5)\n";
    assert_eq!(left(&all), format!("{SAID}{error}"), "{all:?}");
    let all = shown(slow(&host).arg("-q"), true, true);
    assert_eq!(all.replace('\r', ""), SAID);
}

#[test]
fn a_bar_is_cleared_when_a_signal_ends_the_program() {
    let host = Host::new();
    let (mut master, slave) = terminal();
    let mut command = slow(&host);
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").stdin(Stdio::null());
    let child = command.stdout(Stdio::null()).stderr(slave).spawn();
    let mut child = child.expect("it starts");
    command.stderr(Stdio::null());
    let mut all = String::new();
    let mut piece = [0; 4096];
    wait_until("a bar", || {
        let length = master.read(&mut piece).expect("it writes");
        all.push_str(&String::from_utf8_lossy(&piece[..length]));
        all.contains("/32 ")
    });
    std::thread::sleep(Duration::from_millis(50));
    send(&child, Signal::INT);
    all.push_str(&read(master));
    child.wait().expect("it ends");
    assert_eq!(left(&all), format!("{SAID}error: ended by SIGINT: nothing is proven\n"), "{all:?}");
}

#[test]
fn colours_are_for_terminals_and_not_for_those_who_want_none() {
    let host = Host::new();
    let bench = || {
        let mut command = host.command("bench");
        command.arg(host.data.path()).args(["--quick", "--threads", "1", "--block", "4K"]);
        command
    };
    let on_terminal = shown(&mut bench(), true, false);
    assert!(on_terminal.contains("\u{1b}[1mread, 1 thread"), "{on_terminal:?}");
    let mut command = host.program("env".as_ref(), "NO_COLOR=1");
    command.arg(env!("CARGO_BIN_EXE_fastpath")).args(["bench", "--root"]).arg(host.root.path());
    command.arg(host.data.path()).args(["--quick", "--threads", "1", "--block", "4K"]);
    let without = shown(&mut command, true, false);
    assert!(without.contains("read, 1 thread") && !without.contains('\u{1b}'), "{without:?}");
    let (code, out, error) = output(bench().env_remove("NO_COLOR"));
    assert_eq!(code, 0);
    assert!(!out.contains('\u{1b}') && error == SAID, "{out:?} {error:?}");
}
