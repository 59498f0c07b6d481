//! The statistics of another program, also after its end.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, pread};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    connect, recvmsg, socket_with,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::server::address;
use super::{OLD_REGION_BYTES, REGION_BYTES, Snapshot};
use crate::descriptor::peer;

/// The longest pause before a program that has not used hipFile yet is asked again: one that ends soon after its first I/O must
/// not be missed.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// A program and, once it has used hipFile, its counters.
#[derive(Debug)]
pub struct Watch {
    pid: i32,
    process: OwnedFd,
    pieces: [Option<OwnedFd>; 2],
}

impl Watch {
    /// A process that runs.
    ///
    /// # Errors
    ///
    /// `ESRCH` if there is none.
    pub fn new(pid: i32) -> io::Result<Self> {
        let id = Pid::from_raw(pid).filter(|_| pid > 0).ok_or(Errno::SRCH)?;
        let process = pidfd_open(id, PidfdFlags::empty())?;
        Ok(Self { pid, process, pieces: [None, None] })
    }

    /// Waits until the program has opened the driver, at most so long, and gets its counters; they stay readable after its end.
    ///
    /// # Errors
    ///
    /// When it ends before (`NotFound`) or the time is over (`TimedOut`); when it belongs to somebody else, or has counters of
    /// another layout.
    pub fn connect(&mut self, most: Option<Duration>) -> io::Result<()> {
        let begin = Instant::now();
        let mut pause = Duration::ZERO;
        while !self.ask(most.map(|most| begin + most))? {
            if most.is_some_and(|most| begin.elapsed() >= most) {
                let text = format!("process {} has not used hipFile", self.pid);
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            if self.wait_for_end(Some(pause))? {
                let text = format!("process {} ended and had not used hipFile", self.pid);
                return Err(io::Error::new(io::ErrorKind::NotFound, text));
            }
            pause = (pause + Duration::from_millis(1)).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    /// Whether it has answered. A process that is stopped takes the question and does not.
    fn ask(&mut self, until: Option<Instant>) -> io::Result<bool> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match connect(&socket, &address(self.pid)?) {
            Ok(()) => {}
            Err(Errno::CONNREFUSED | Errno::INTR | Errno::AGAIN) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
        self.must_be_its_own(&socket)?;
        let mut pieces = [None, None];
        // It sends no more, and a stream without end is no answer.
        for _ in 0..pieces.len() {
            if !self.has_answer(&socket, until)? {
                break;
            }
            let Some((number, fd)) = receive(&socket)? else { break };
            let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            if let Some(place) = index.and_then(|index| pieces.get_mut(index)) {
                *place = fd;
            }
        }
        let Some(first) = &pieces[0] else {
            let text = format!("process {} does not show its statistics to this user", self.pid);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        };
        let found = rustix::fs::fstat(first)?.st_size;
        let is_known = |found| [REGION_BYTES, OLD_REGION_BYTES].contains(&found);
        if !usize::try_from(found).is_ok_and(is_known) {
            let text = format!(
                "process {}: its statistics are {found} bytes; expected {REGION_BYTES} or {OLD_REGION_BYTES}, those of AMD's versions",
                self.pid
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.pieces = pieces;
        Ok(true)
    }

    /// Refuses an address that somebody else holds: any user may take any name. Nor is it enough that its holder had this id once.
    fn must_be_its_own(&self, socket: &OwnedFd) -> io::Result<()> {
        let holder = peer(socket.as_fd())?;
        let me = rustix::process::geteuid().as_raw();
        let owner = std::fs::metadata(format!("/proc/{}", self.pid)).map(|about| about.uid());
        let may_answer = [me, 0].contains(&holder.uid) || owner.is_ok_and(|uid| uid == holder.uid);
        if holder.pid == self.pid && may_answer {
            return Ok(());
        }
        let text = format!(
            "process {}: process {} of user {} answers in its place, which is not believed",
            self.pid, holder.pid, holder.uid
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    /// Waits until something can be received; false if the process ends before.
    fn has_answer(&self, socket: &OwnedFd, until: Option<Instant>) -> io::Result<bool> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let mut asked =
                [PollFd::new(socket, PollFlags::IN), PollFd::new(&self.process, PollFlags::IN)];
            match poll(&mut asked, left.as_ref()) {
                Ok(0) => {
                    let text = format!("process {} does not answer: is it stopped?", self.pid);
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Ok(_) => return Ok(!asked[0].revents().is_empty()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits until the program has ended, at most so long; whether it has.
    pub fn wait_for_end(&self, most: Option<Duration>) -> io::Result<bool> {
        let time = most.and_then(|most| Timespec::try_from(most).ok());
        loop {
            let mut asked = [PollFd::new(&self.process, PollFlags::IN)];
            match poll(&mut asked, time.as_ref()) {
                Ok(count) => return Ok(count > 0),
                // It waits anew, which is long enough.
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// The counters now; `None` before [`Watch::connect`].
    pub fn snapshot(&self) -> io::Result<Option<Snapshot>> {
        let [Some(first), second] = &self.pieces else { return Ok(None) };
        let first = words(first)?;
        if first.len() * 8 == OLD_REGION_BYTES {
            return Ok(Some(Snapshot::parse_old(&first)));
        }
        // A program with AMD's library has no second piece. Of this library's it is the one that is never behind.
        let level = first.get(1).copied().unwrap_or_default();
        let sum = second.as_ref().and_then(|second| Snapshot::sum(level, second));
        Ok(Some(sum.unwrap_or_else(|| Snapshot::parse(&first, &[]))))
    }
}

fn receive(socket: &OwnedFd) -> io::Result<Option<(i32, Option<OwnedFd>)>> {
    let mut number = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let places = &mut [IoSliceMut::new(&mut number)];
        match recvmsg(socket, places, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => thread::yield_now(),
            Ok(got) => break got.bytes,
            // It has ended meanwhile.
            Err(Errno::CONNRESET) => break 0,
            Err(errno) => return Err(errno.into()),
        }
    };
    if got < number.len() {
        return Ok(None);
    }
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok(Some((i32::from_ne_bytes(number), fds.flatten().next())))
}

fn words(piece: &OwnedFd) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; REGION_BYTES];
    let length = pread(piece, &mut bytes, 0)?;
    let (whole, _) = bytes.get(..length).unwrap_or_default().as_chunks::<8>();
    Ok(whole.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}
