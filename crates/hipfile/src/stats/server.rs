//! Hands the statistics to programs of the same user that ask, as `ais-stats` does.
//!
//! A stream socket with an abstract name: `AISSTATS`, the process id as 8 hexadecimal digits, zeros to the full length. Whoever connects
//! gets a 32-bit 1 with the first piece of memory, then a 2 with the second, and end of file.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept_with, bind, listen, sendmsg, socket_with,
};

use super::REFRESH;
use crate::descriptor::{beyond_standard, peer};
use crate::sync::lock;
use crate::thread::{Thread, spawn};

/// Bytes of a socket's abstract name, which are all part of it.
const NAME: usize = 107;

const BACKLOG: i32 = 64;

/// Device and inode.
type Identity = (u64, u64);

fn identity(fd: &OwnedFd) -> Option<Identity> {
    rustix::fs::fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

#[derive(Debug)]
pub(crate) struct Server {
    running: Mutex<Option<Running>>,
}

/// The thread, and what ends it.
#[derive(Debug)]
struct Running {
    thread: Thread,
    end: Arc<OwnedFd>,
    /// What `end` is: a program that closed every descriptor may have a file of its own there.
    what: Option<Identity>,
}

/// The address for a process.
pub(crate) fn address(pid: i32) -> io::Result<SocketAddrUnix> {
    let mut name = format!("AISSTATS{pid:08x}").into_bytes();
    name.resize(NAME, 0);
    Ok(SocketAddrUnix::new_abstract_name(&name)?)
}

impl Server {
    /// `refresh` brings the first piece up to date.
    pub(crate) fn start(
        pieces: [OwnedFd; 2],
        refresh: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let socket = beyond_standard(socket)?;
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        bind(&socket, &address(pid)?)?;
        listen(&socket, BACKLOG)?;
        let end = Arc::new(beyond_standard(eventfd(0, EventfdFlags::CLOEXEC)?)?);
        let ended = Arc::clone(&end);
        let thread = spawn(c"hipfile stats", move || serve(&socket, &ended, &pieces, &refresh))?;
        let what = identity(&end);
        Ok(Self { running: Mutex::new(Some(Running { thread, end, what })) })
    }

    pub(crate) fn stop(&self) {
        let running = lock(&self.running).take();
        if let Some(Running { thread, end, what }) = running
            && identity(&end) == what
            && rustix::io::write(&end, &1_u64.to_ne_bytes()).is_ok()
        {
            thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(socket: &OwnedFd, end: &OwnedFd, pieces: &[OwnedFd; 2], refresh: &dyn Fn()) {
    // Whoever has the first piece may look at it any time; before, nobody wakes up for it.
    let mut pause = None;
    loop {
        let mut asked = [PollFd::new(socket, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
        match poll(&mut asked, pause.as_ref()) {
            Ok(0) => {
                refresh();
                continue;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let [_, ended] = &asked;
        if !ended.revents().is_empty() {
            refresh();
            return;
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let client = match accept_with(socket, flags) {
            Ok(client) => client,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => continue,
            // The program closed what is not its own, or uses its number for something else.
            Err(Errno::BADF | Errno::NOTSOCK | Errno::INVAL) => return,
            Err(_) => {
                // No descriptors, no memory, or it is forbidden. Whoever asks stays in the queue, so that waiting would be no wait.
                let pause = Timespec::try_from(REFRESH).ok();
                let _ = poll(&mut [PollFd::new(end, PollFlags::IN)], pause.as_ref());
                continue;
            }
        };
        if may_look(&client) {
            refresh();
            pause = Timespec::try_from(REFRESH).ok();
            for (number, piece) in (1_i32..).zip(pieces) {
                if send(&client, number, piece).is_err() {
                    break;
                }
            }
        }
    }
}

/// Whether the other side is this user, or root.
fn may_look(client: &OwnedFd) -> bool {
    let me = rustix::process::geteuid().as_raw();
    peer(client.as_fd()).is_ok_and(|peer| [me, 0].contains(&peer.uid))
}

fn send(client: &OwnedFd, number: i32, piece: &OwnedFd) -> rustix::io::Result<()> {
    let fds = [piece.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let bytes = number.to_ne_bytes();
    sendmsg(client, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).map(drop)
}
