//! A small HTTP server on the loopback interface that serves a folder and misbehaves on request.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What goes wrong with a path.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Ranges are ignored: status 200 and all of it.
    IgnoreRange,
    /// The content ends after so many bytes of each answer, the length says more.
    Cut(usize),
    /// The same, for the first so many answers only.
    CutTimes(usize, u32),
    /// No byte of the file from this offset on is ever sent.
    CutAt(usize),
    /// Cut after so many bytes of the first answer; from then on the file is another.
    CutThenChange(usize),
    /// This status, with extra header lines, for the first so many answers.
    Status(u16, &'static str, u32),
    /// A redirect to there.
    Redirect(String),
    /// The announced length is so much longer than the content.
    LongerLength(u64),
    /// Other bytes of the right length.
    Garbage,
    /// This content in place of the file's.
    Content(Vec<u8>),
    /// From the second answer on, the file has other bytes, tag and time.
    Changes,
    /// The range that is sent is not the one asked for.
    WrongRange,
    /// No `Content-Length`; the connection's end is the content's end.
    NoLength,
    /// Neither tag nor time.
    NoValidators,
    /// Nothing is answered.
    Silent,
    /// The content comes a byte at a time, with this wait before each.
    Drip(Duration),
    /// The answer's header never ends: a byte of it at a time, with this wait before each.
    DripHeader(Duration),
    /// Waits before each answer.
    Slow(Duration),
    /// A tag that is another at each answer, and weak.
    WeakTags,
}

/// One request as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Path and query; whole addresses where the server is used as a proxy.
    pub(crate) target: String,
    /// Header lines by lower-case name.
    pub(crate) headers: HashMap<String, String>,
    /// The status of the answer.
    pub(crate) status: u16,
}

#[derive(Default)]
struct State {
    faults: Mutex<HashMap<String, Vec<Fault>>>,
    counts: Mutex<HashMap<String, u32>>,
    seen: Mutex<Vec<Seen>>,
    stop: AtomicBool,
}

/// The server; it stops when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<State>,
}

impl Server {
    /// Serves the files below `root`.
    pub(crate) fn start(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback interface");
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stop.load(Ordering::SeqCst) {
                    break;
                }
                let (Ok(stream), root, state) = (stream, root.clone(), Arc::clone(&shared)) else {
                    continue;
                };
                thread::spawn(move || {
                    let _ = serve(&stream, &root, &state);
                });
            }
        });
        Self { address, state }
    }

    /// The address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }

    /// From now on, this goes wrong with the path.
    pub(crate) fn fault(&self, path: &str, fault: Fault) {
        let path = format!("/{path}");
        self.state.counts.lock().unwrap().remove(&path);
        self.state.faults.lock().unwrap().entry(path).or_default().push(fault);
    }

    /// Everything is well again.
    pub(crate) fn heal(&self) {
        self.state.faults.lock().unwrap().clear();
        self.state.counts.lock().unwrap().clear();
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// How many requests named the path.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.seen().iter().filter(|seen| seen.target.ends_with(&format!("/{path}"))).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: &TcpStream, root: &std::path::Path, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]).to_owned(),
        None => target.clone(),
    };
    let faults = state.faults.lock().unwrap().get(&path).cloned().unwrap_or_default();
    let count = {
        let mut counts = state.counts.lock().unwrap();
        let count = counts.entry(path.clone()).or_default();
        *count += 1;
        *count
    };
    let see = |status| {
        state.seen.lock().unwrap().push(Seen {
            target: target.clone(),
            headers: headers.clone(),
            status,
        });
    };
    let mut out = stream;
    let mut plain = |status: u16, extra: &str| {
        see(status);
        write!(out, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n{extra}\r\n")
    };
    let mut changed = false;
    for fault in &faults {
        match fault {
            Fault::Status(status, extra, times) if count <= *times => return plain(*status, extra),
            Fault::Redirect(to) => return plain(302, &format!("Location: {to}\r\n")),
            Fault::Changes | Fault::CutThenChange(_) if count > 1 => changed = true,
            Fault::Silent => {
                thread::sleep(Duration::from_secs(5));
                return Ok(());
            }
            Fault::Slow(wait) => thread::sleep(*wait),
            Fault::DripHeader(wait) => {
                write!(out, "HTTP/1.1 200 X\r\nX: ")?;
                for _ in 0..1000 {
                    out.write_all(b"x")?;
                    thread::sleep(*wait);
                }
                return Ok(());
            }
            _ => {}
        }
    }
    let has = |test: fn(&Fault) -> bool| faults.iter().any(test);
    let given = faults.iter().find_map(|fault| match fault {
        Fault::Content(content) => Some(content.clone()),
        _ => None,
    });
    let decoded = path.replace("%20", " ").replace("%5E", "^");
    let on_disk = || std::fs::read(root.join(decoded.trim_start_matches('/'))).ok();
    let Some(mut content) = given.or_else(on_disk) else {
        return plain(404, "");
    };
    if changed || has(|fault| matches!(fault, Fault::Garbage)) {
        for byte in &mut content {
            *byte = !*byte;
        }
    }
    let etag = match (changed, has(|fault| matches!(fault, Fault::WeakTags))) {
        (_, true) => format!("W/\"{count}\""),
        (true, _) => "\"two\"".to_owned(),
        (false, _) => format!(
            "\"{:x}\"",
            content.iter().fold(content.len(), |sum, &b| sum * 31 % 0xfff_ffff + b as usize)
        ),
    };
    let time =
        if changed { "Tue, 10 Nov 2026 00:00:00 GMT" } else { "Mon, 09 Nov 2026 00:00:00 GMT" };
    let validators = if has(|fault| matches!(fault, Fault::NoValidators)) {
        String::new()
    } else {
        format!("ETag: {etag}\r\nLast-Modified: {time}\r\n")
    };
    let known = headers.get("if-none-match").map(|tag| *tag == etag);
    let known = known.or_else(|| headers.get("if-modified-since").map(|since| since == time));
    if known == Some(true) && !validators.is_empty() {
        see(304);
        return write!(out, "HTTP/1.1 304 X\r\nConnection: close\r\n{validators}\r\n");
    }
    let same = headers.get("if-range").is_none_or(|tag| *tag == etag || tag == time);
    let range = headers
        .get("range")
        .filter(|_| same && !has(|fault| matches!(fault, Fault::IgnoreRange)))
        .and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let whole = content.len();
    let (status, first, extra, body) = if let Some((start, end)) = range {
        let mut start: usize = start.parse().unwrap();
        if start >= whole {
            return plain(416, &format!("Content-Range: bytes */{whole}\r\n"));
        }
        let end = end.parse::<usize>().map_or(whole, |end| end + 1).min(whole);
        if has(|fault| matches!(fault, Fault::WrongRange)) && start > 0 {
            start -= 1;
        }
        let last = end - 1;
        let extra = format!("Content-Range: bytes {start}-{last}/{whole}\r\n");
        (206, start, extra, &content[start..end])
    } else {
        (200, 0, String::new(), &content[..])
    };
    see(status);
    let mut length = body.len() as u64;
    let mut send = body.len();
    for fault in &faults {
        match fault {
            Fault::Cut(after) => send = send.min(*after),
            Fault::CutAt(offset) => send = send.min(offset.saturating_sub(first)),
            Fault::CutTimes(after, times) if count <= *times => send = send.min(*after),
            Fault::CutThenChange(after) if count == 1 => send = send.min(*after),
            Fault::LongerLength(more) => length += more,
            _ => {}
        }
    }
    let length = if has(|fault| matches!(fault, Fault::NoLength)) {
        String::new()
    } else {
        format!("Content-Length: {length}\r\n")
    };
    write!(
        out,
        "HTTP/1.1 {status} X\r\nConnection: close\r\nAccept-Ranges: bytes\r\n{length}{extra}{validators}\r\n"
    )?;
    for fault in &faults {
        if let Fault::Drip(wait) = fault {
            for byte in &body[..send] {
                thread::sleep(*wait);
                out.write_all(std::slice::from_ref(byte))?;
            }
            return Ok(());
        }
    }
    out.write_all(&body[..send])
}
