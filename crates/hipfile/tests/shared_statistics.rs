//! What another program sees of the statistics. One test: the socket's name is the process's.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

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
    assert!(rustix::io::pwrite(&found[0].1, &[1], 0).is_err());
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
    // Its thread ends with it.
    drop(runtime);
    assert!(connected().is_err());
    assert_eq!(words(&found[0].1)[2], 2);
}
