//! The one runtime of a process.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use super::fixture::Fixture;
use crate::{Options, raw};

/// Runs in a child that a fork of this process, threads and all, leaves; true if it said so in time.
fn in_child(what: impl Fn() -> bool) -> bool {
    // SAFETY: the child calls nothing that needs another thread, and leaves without clean-up.
    match unsafe { libc::fork() } {
        0 => {
            let code = i32::from(!what());
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            for _ in 0..1000 {
                // SAFETY: the child is ours.
                if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
                    return status == 0;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGKILL) };
            false
        }
    }
}

#[test]
fn a_child_forked_in_the_middle_of_everything_never_hangs() {
    let fixture = Fixture::new();
    let (_file, handle) = fixture.file("a", 0, &[1; 8192]);
    let buffer = fixture.buffer(8192);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (fixture, over) = (&fixture, &over);
            scope.spawn(move || {
                let name = format!("{thread}");
                while !over.load(Ordering::Relaxed) {
                    let (_file, other) = fixture.file(&name, 0, &[1; 100]);
                    fixture.read(handle, buffer, 8192, 0, 0).unwrap();
                    fixture.runtime.handle_deregister(other);
                }
            });
        }
        let children = (0..20).all(|_| {
            in_child(|| {
                let child = Fixture::new();
                let (_file, handle) = child.file("a", 0, &[1; 8192]);
                let buffer = child.buffer(8192);
                child.read(handle, buffer, 8192, 0, 0) == Ok(8192)
                    && child.read(handle, buffer, 100, 0, 0) == Ok(100)
            })
        });
        over.store(true, Ordering::Relaxed);
        assert!(children);
    });
}

#[test]
fn spec_6_05_a_child_starts_afresh_and_an_unloaded_library_too() {
    let parent = raw::runtime();
    assert!(std::ptr::eq(parent, raw::runtime()));
    parent.driver_open().unwrap();
    parent.driver_open().unwrap();
    let afresh = in_child(|| {
        let child = raw::runtime();
        child.use_count() == 0
            && child.driver_open().is_ok()
            && child.use_count() == 1
            && child.driver_close().is_ok()
    });
    assert!(afresh);
    assert_eq!(parent.use_count(), 2);
    assert!(!raw::install(Options::of_process()), "there is one already");
    raw::shutdown();
    assert!(raw::install(Options::with_environment(|_| Some("0".into()))));
    assert_eq!(raw::runtime().use_count(), 0);
    assert_eq!(raw::runtime().driver_open(), Ok(()));
    assert!(!raw::runtime().config().allows_fallback());
}
