//! Rules without a GPU or a file.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::thread::JoinHandleExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastpath_gpu::{HipError, MemoryKind, Transfer};
use rustix::io::Errno;

use crate::choose::{Candidate, Reason, Way};
use crate::config::Config;
use crate::error::{self, Error};
use crate::fastpath::{Outcome, judge};
use crate::filling::{Split, split};
use crate::log::{Level, Log};

fn config(pairs: &[(&str, &str)]) -> Config {
    Config::read(|name| {
        pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    })
}

#[test]
fn spec_10_05_every_usual_yes_and_no_is_understood_and_garbage_is_told_once() {
    for yes in ["true", "TRUE", "1", "on", "yes", " Yes "] {
        assert!(config(&[("HIPFILE_FORCE_COMPAT_MODE", yes)]).forces_fallback(), "{yes}");
    }
    for no in ["false", "0", "off", "no", "NO"] {
        assert!(!config(&[("HIPFILE_ALLOW_COMPAT_MODE", no)]).allows_fallback(), "{no}");
    }
    let odd = config(&[
        ("HIPFILE_ALLOW_COMPAT_MODE", "maybe"),
        ("HIPFILE_STATS_LEVEL", "-1"),
        ("HIPFILE_LOG", "loud"),
    ]);
    assert!(odd.allows_fallback());
    assert_eq!(odd.stats_level, 1);
    assert_eq!(odd.warnings.len(), 3);
    assert_eq!(
        odd.warnings[0],
        "HIPFILE_ALLOW_COMPAT_MODE: `maybe` is neither true nor false; it stays true"
    );
    let unset = config(&[("HIPFILE_ALLOW_COMPAT_MODE", "")]);
    assert!(unset.allows_fallback() && unset.warnings.is_empty());
    assert_eq!(config(&[("HIPFILE_STATS_LEVEL", "99999999999999999999999")]).stats_level, 3);
    let named = config(&[("HIPFILE_ACCEPT_ADVISORY", "a, b,,c")]);
    assert_eq!(named.accepted, ["a", "b", "c"]);
}

/// A client takes versions 0.2 to 0.4 only for its memory budget.
#[test]
fn the_reported_version_can_be_another() {
    assert_eq!(config(&[]).reported_version, [0, 5, 0]);
    assert_eq!(config(&[("HIPFILE_REPORT_VERSION", "0.4.0")]).reported_version, [0, 4, 0]);
    for wrong in ["0.4", "0.4.0.1", "0.4.x", "-1.0.0", "0.4.99999999999"] {
        let odd = config(&[("HIPFILE_REPORT_VERSION", wrong)]);
        assert_eq!(odd.reported_version, [0, 5, 0], "{wrong}");
        assert_eq!(
            odd.warnings,
            [format!("HIPFILE_REPORT_VERSION: `{wrong}` is no version like 0.4.0; it stays 0.5.0")]
        );
    }
}

#[test]
fn spec_10_02_each_cause_has_its_own_number() {
    let system = |errno| Error::System { call: "open", errno };
    assert_eq!(system(Errno::BADF).code(), 5022);
    assert_eq!(system(Errno::INVAL).code(), 5022);
    assert_eq!(system(Errno::ACCESS).code(), 5025);
    assert_eq!(system(Errno::PERM).code(), 5025);
    assert_eq!(system(Errno::MFILE).code(), 5031);
    assert_eq!(Error::AllRefused(Reason::FileSystem).code(), 5008);
    assert_eq!(Error::AllRefused(Reason::NoDirectIo).code(), 5020);
    assert_eq!(Error::NotOpen.code(), 5001);
    assert_eq!(system(Errno::NOSPC).result(), -1);
    assert_eq!(system(Errno::NOSPC).event(), -28);
}

#[test]
fn spec_10_01_a_hip_error_is_5011_with_the_hip_error_beside_it() {
    let error = Error::Hip { call: "hipMemcpy", error: HipError::INVALID_VALUE };
    assert_eq!(
        (error.result(), error.event(), error.hip(), error.errno()),
        (-5011, -5011, 1, None)
    );
}

#[test]
fn every_number_has_a_text() {
    for code in (5001..=5037).filter(|code| ![5021, 5032].contains(code)) {
        assert_ne!(error::text(code), error::text(-1), "{code}");
    }
    assert_eq!(error::text(5021), error::text(4711));
}

const GOOD: Candidate = Candidate {
    refused: None,
    offset_align: 512,
    memory_align: 4,
    learned: false,
    kind: MemoryKind::Device,
    address: 0x1000,
    size: 1024,
    file_offset: 512,
};

#[test]
fn each_rule_of_the_fastpath_refuses_with_its_reason() {
    let way = |candidate: Candidate| candidate.choose(true);
    assert_eq!(way(GOOD), Ok(Way::Fastpath));
    assert_eq!(way(Candidate { size: 1000, ..GOOD }), Ok(Way::Fallback(Reason::SizeAlignment)));
    assert_eq!(
        way(Candidate { file_offset: 100, ..GOOD }),
        Ok(Way::Fallback(Reason::OffsetAlignment))
    );
    assert_eq!(
        way(Candidate { address: 0x1002, ..GOOD }),
        Ok(Way::Fallback(Reason::AddressAlignment))
    );
    assert_eq!(
        way(Candidate { refused: Some(Reason::Advisory), ..GOOD }),
        Ok(Way::Fallback(Reason::Advisory))
    );
    let taught = Candidate { offset_align: 4096, learned: true, ..GOOD };
    assert_eq!(way(taught), Ok(Way::Fallback(Reason::PageAlignment)));
    assert_eq!(
        way(Candidate { kind: MemoryKind::Host, ..GOOD }),
        Ok(Way::Host(Reason::MemoryType))
    );
    assert_eq!(
        way(Candidate { kind: MemoryKind::Managed, ..GOOD }),
        Ok(Way::Host(Reason::MemoryType))
    );
    assert_eq!(
        Candidate { size: 1, ..GOOD }.choose(false),
        Err(Error::AllRefused(Reason::SizeAlignment))
    );
    assert_eq!(GOOD.choose(false), Ok(Way::Fastpath));
}

const fn answer(error: i32, status: i32, copied: u64, errno: i32) -> Transfer {
    Transfer { error, status, copied, errno }
}

#[test]
fn an_unknown_request_leaves_garbage_that_is_not_believed() {
    // The count is the buffer's handle, the status half of its offset: 4.1 of the specification.
    let outcome = judge(answer(999, 4096, 0x1234_0000_0007, 25), 4096);
    assert_eq!(
        outcome,
        Outcome::Refused { reason: Reason::NoDriver, errno: Errno::NOTTY, known: 0 }
    );
    let outcome = judge(answer(999, 0, 17, 25), 4096);
    assert_eq!(
        outcome,
        Outcome::Refused { reason: Reason::NoDriver, errno: Errno::NOTTY, known: 0 }
    );
}

#[test]
fn what_may_be_tried_again_is_told_from_what_may_not() {
    let errno_of = |status: i32, copied: u64| match judge(answer(999, status, copied, 0), 8192) {
        Outcome::Refused { errno, known, .. } => Some((errno, known)),
        _ => None,
    };
    for errno in [Errno::NODEV, Errno::REMOTEIO, Errno::INVAL, Errno::OPNOTSUPP, Errno::NOMEM] {
        assert_eq!(errno_of(-errno.raw_os_error(), 0), Some((errno, 0)), "{errno}");
        // Some runtimes forget the sign.
        assert_eq!(errno_of(errno.raw_os_error(), 0), Some((errno, 0)), "{errno}");
    }
    assert_eq!(errno_of(-19, 4096), Some((Errno::NODEV, 4096)));
    // A handle where the count should be.
    assert_eq!(errno_of(-22, 0x1_0000_0000), Some((Errno::INVAL, 0)));
    assert_eq!(errno_of(-12, 4096), None, "ENOMEM after progress");
    assert_eq!(errno_of(-5, 0), None, "EIO");
    let outcome = judge(answer(101, 0, 0, 0), 8192);
    let error = Error::Hip { call: "hipAmdFileRead/Write", error: HipError(101) };
    assert_eq!(outcome, Outcome::Failed { reason: Reason::Hip, error, known: 0 });
    assert_eq!(judge(answer(0, 0, 100, 0), 8192), Outcome::Moved(100));
}

#[test]
fn whole_blocks_are_cut_from_a_range() {
    assert_eq!(split(0, 8192, 4096), Split::Direct(8192));
    assert_eq!(split(100, 8192, 4096), Split::Buffered(3996));
    assert_eq!(split(4096, 4196, 4096), Split::Direct(4096));
    assert_eq!(split(8192, 100, 4096), Split::Buffered(100));
    // No whole block in it: one call.
    assert_eq!(split(100, 4096, 4096), Split::Buffered(4096));
    assert_eq!(split(1 << 60, 4096, 4096), Split::Direct(4096));
}

/// A thread of the program's own gets a signal whose handler does not have calls start again.
#[test]
#[allow(unsafe_code)]
fn a_signal_does_not_end_a_system_call() {
    static SIGNALS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn count(_: libc::c_int) {
        SIGNALS.fetch_add(1, Ordering::SeqCst);
    }
    // SAFETY: the handler only counts, and no other test uses the signal.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
    }
    let (from, mut to) = std::io::pipe().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let reader = std::thread::spawn(move || {
        let mut bytes = [0_u8; 8];
        let read = crate::descriptor::retry(|| {
            counted.fetch_add(1, Ordering::SeqCst);
            // SAFETY: eight bytes of this thread's.
            unsafe { libc::read(from.as_raw_fd(), bytes.as_mut_ptr().cast(), 8) }
        });
        (read, bytes)
    });
    let thread = reader.as_pthread_t();
    while calls.load(Ordering::SeqCst) < 3 {
        // SAFETY: the thread was not waited for.
        assert_eq!(unsafe { libc::pthread_kill(thread, libc::SIGUSR2) }, 0);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(SIGNALS.load(Ordering::SeqCst) >= 2);
    to.write_all(b"8 bytes!").unwrap();
    assert_eq!(reader.join().unwrap(), (Ok(8), *b"8 bytes!"));
}

#[test]
fn a_line_holds_nothing_that_a_terminal_obeys() {
    let said = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let sink = std::sync::Arc::clone(&said);
    let sink = Box::new(move |line: &str| sink.lock().unwrap().push_str(line));
    let log = Log::new(Level::Warn, Some(sink));
    log.say(Level::Warn, || "a\nb\u{1b}[31m\r\u{9b}".to_owned());
    assert_eq!(*said.lock().unwrap(), r"hipfile: warn: a b\u{1b}[31m\r\u{9b}");
}

#[test]
fn every_reason_has_one_explanation_and_no_other_exists() {
    let explanations = fastpath_knowledge::explanations();
    let explained = explanations.iter().map(|one| (one.id.as_str(), one.title.as_str()));
    let explained: Vec<_> = explained.filter(|(id, _)| id.starts_with("request-")).collect();
    let reasons = Reason::ALL.iter().map(|reason| (reason.id(), reason.text()));
    assert_eq!(explained, reasons.collect::<Vec<_>>());
}
