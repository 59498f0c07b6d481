//! What another program sees of the statistics. One test: the socket's name is the process's.
#![allow(unsafe_code, clippy::unwrap_used, clippy::indexing_slicing)]

use std::os::fd::{AsRawFd as _, OwnedFd};

use hipfile::choose::Reason;
use hipfile::stats::{REGION_BYTES, Watch};
use hipfile::{Options, Runtime};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix,
    SocketType, connect, recvmsg, socket,
};

fn connected() -> rustix::io::Result<OwnedFd> {
    let mut name = format!("AISSTATS{:08x}", std::process::id()).into_bytes();
    name.resize(107, 0);
    let client = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    connect(&client, &SocketAddrUnix::new_abstract_name(&name)?)?;
    Ok(client)
}

/// What a client of the socket gets: numbers with descriptors.
fn ask() -> Vec<(i32, OwnedFd)> {
    let client = connected().unwrap();
    let mut found = Vec::new();
    loop {
        let mut number = [0; 4];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(
            &client,
            &mut [std::io::IoSliceMut::new(&mut number)],
            &mut control,
            RecvFlags::empty(),
        );
        if got.unwrap().bytes == 0 {
            return found;
        }
        let fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        found.extend(fds.flatten().map(|fd| (i32::from_ne_bytes(number), fd)));
    }
}

/// Who asks waits in the queue while the process has no descriptor left for it.
fn nobody_spins_without_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let mut name = format!("AISSTATS{:08x}", std::process::id()).into_bytes();
    name.resize(107, 0);
    let client = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    let before = getrlimit(Resource::Nofile);
    let limit = Rlimit { current: Some(3), ..before };
    let begin = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    setrlimit(Resource::Nofile, limit).unwrap();
    connect(&client, &SocketAddrUnix::new_abstract_name(&name).unwrap()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(400));
    setrlimit(Resource::Nofile, before).unwrap();
    let end = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let nanos = (end.tv_sec - begin.tv_sec) * 1_000_000_000 + (end.tv_nsec - begin.tv_nsec);
    assert!(nanos < 100_000_000, "{nanos} ns of processor time in 400 ms of waiting");
}

/// A stopped process takes the question, and answers when it goes on, or never.
/// Called by the one test: descriptors are the process's.
fn a_process_that_does_not_answer_is_not_waited_for_longer_than_asked() {
    use std::os::unix::process::CommandExt as _;
    let mut command = std::process::Command::new("sleep");
    command.arg("60");
    let listens = || {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        let mut name = *b"AISSTATS00000000";
        for (place, byte) in name[8..].iter_mut().rev().enumerate() {
            *byte = b"0123456789abcdef"[(me.cast_unsigned() >> (4 * place)) as usize & 15];
        }
        let mut whole = [0; 107];
        whole[..16].copy_from_slice(&name);
        let silent = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        rustix::net::bind(&silent, &SocketAddrUnix::new_abstract_name(&whole)?)?;
        rustix::net::listen(&silent, 4)?;
        std::mem::forget(silent);
        Ok(())
    };
    // SAFETY: between fork and the program only system calls are made.
    unsafe { command.pre_exec(listens) };
    let mut child = command.spawn().unwrap();
    let mut watch = Watch::new(child.id().cast_signed()).unwrap();
    let begin = std::time::Instant::now();
    let error = watch.connect(Some(std::time::Duration::from_millis(300))).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(
        error.to_string(),
        format!("process {} does not answer: is it stopped?", child.id())
    );
    assert!(begin.elapsed().as_secs() < 20);
    child.kill().unwrap();
    // Its end is seen by whoever would wait for ever.
    assert!(watch.connect(None).is_err());
    child.wait().unwrap();
}

/// Any user may take the name before a program does. Called by the one test, as above.
fn what_another_process_says_of_a_program_is_not_believed() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let mut name = format!("AISSTATS{:08x}", child.id()).into_bytes();
    name.resize(107, 0);
    let held = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&held, &SocketAddrUnix::new_abstract_name(&name).unwrap()).unwrap();
    rustix::net::listen(&held, 4).unwrap();
    let error = Watch::new(child.id().cast_signed()).unwrap().connect(None).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    let (own, user) = (std::process::id(), rustix::process::getuid().as_raw());
    assert_eq!(
        error.to_string(),
        format!(
            "process {}: process {own} of user {user} answers in its place, which is not believed",
            child.id()
        )
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn another_program_sees_the_counters_and_cannot_change_them() {
    let runtime = Runtime::new(Options::with_environment(|_| None));
    assert!(connected().is_err(), "nothing was used yet");
    runtime.driver_open().unwrap();
    let found = ask();
    assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2]);
    let words = |fd: &OwnedFd| {
        let mut bytes = vec![0; 64 << 10];
        let length = rustix::io::pread(fd, &mut bytes, 0).unwrap();
        bytes[..length]
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
            .collect::<Vec<_>>()
    };
    let (first, second) = (words(&found[0].1), words(&found[1].1));
    assert_eq!(first.len() * 8, REGION_BYTES);
    assert_eq!(first[..2], [1, 1]);
    assert_eq!(second[..2], [2, Reason::ALL.len() as u64]);
    for (_, piece) in &found {
        assert!(rustix::io::pwrite(piece, &[1], 0).is_err());
        // Nor their length, by which readers know the layout.
        assert!(rustix::fs::ftruncate(piece, 1 << 30).is_err());
        assert!(rustix::fs::ftruncate(piece, 8).is_err());
    }
    let mut watch = Watch::new(std::process::id().cast_signed()).unwrap();
    assert_eq!(watch.snapshot().unwrap(), None);
    watch.connect(None).unwrap();
    assert_eq!(watch.snapshot().unwrap(), Some(runtime.statistics().unwrap()));
    // The layout of `ais-stats` follows within a moment, and at the end.
    runtime.handle_register(1, tempfile::tempfile().unwrap().as_raw_fd()).unwrap();
    assert_eq!(watch.snapshot().unwrap().unwrap().files, 1);
    let begin = std::time::Instant::now();
    while words(&found[0].1)[2] != 1 {
        assert!(begin.elapsed().as_secs() < 20);
        std::thread::yield_now();
    }
    runtime.handle_register(1, std::io::stdin().as_raw_fd()).unwrap();
    assert!(!watch.wait_for_end(Some(std::time::Duration::ZERO)).unwrap());
    a_process_that_does_not_answer_is_not_waited_for_longer_than_asked();
    what_another_process_says_of_a_program_is_not_believed();
    nobody_spins_without_descriptors();
    // Its thread ends with it.
    drop(runtime);
    assert!(connected().is_err());
    assert_eq!(words(&found[0].1)[2], 2);
}
