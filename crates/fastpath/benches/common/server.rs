//! A mirror on the loopback interface: ranges, lasting connections, and a delay before each answer.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// Serves a folder until the program ends.
pub(crate) struct Server {
    address: SocketAddr,
    counts: Arc<Counts>,
}

impl Server {
    /// Serves the files below `root`; each answer begins `latency` after its request.
    pub(crate) fn start(root: PathBuf, latency: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let server = Self { address: listener.local_addr()?, counts: Arc::default() };
        let counts = Arc::clone(&server.counts);
        thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                counts.connections.fetch_add(1, Ordering::Relaxed);
                let (root, counts) = (root.clone(), Arc::clone(&counts));
                // A client that goes away ends its connection, nothing else.
                thread::spawn(move || serve(&stream, &root, latency, &counts));
            }
        });
        Ok(server)
    }

    /// The address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Connections, requests and bytes of content since this was asked last.
    pub(crate) fn take_counts(&self) -> [u64; 3] {
        let Counts { connections, requests, bytes } = &*self.counts;
        [connections, requests, bytes].map(|count| count.swap(0, Ordering::Relaxed))
    }
}

/// The first byte and the one behind the last of a `Range` line.
fn range(line: &str) -> Option<(u64, Option<u64>)> {
    let (first, last) = line.trim().strip_prefix("bytes=")?.split_once('-')?;
    let end = if last.is_empty() { None } else { Some(last.parse::<u64>().ok()?.checked_add(1)?) };
    Some((first.parse().ok()?, end))
}

fn serve(stream: &TcpStream, root: &Path, latency: Duration, counts: &Counts) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut out = stream;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        let mut asked = None;
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("range")
            {
                asked = range(value);
            }
        }
        counts.requests.fetch_add(1, Ordering::Relaxed);
        thread::sleep(latency);
        let Ok(mut file) = File::open(root.join(&path)) else {
            write!(out, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        };
        let length = file.metadata()?.len();
        let (start, end) = asked.map_or((0, length), |(start, end)| {
            (start.min(length), end.map_or(length, |end| end.min(length)))
        });
        let size = end.saturating_sub(start);
        let tag =
            format!("Accept-Ranges: bytes\r\nETag: \"{length}\"\r\nContent-Length: {size}\r\n\r\n");
        let head = match asked {
            Some(_) => format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {start}-{}/{length}\r\n{tag}",
                end.saturating_sub(1)
            ),
            None => format!("HTTP/1.1 200 OK\r\n{tag}"),
        };
        out.write_all(head.as_bytes())?;
        file.seek(SeekFrom::Start(start))?;
        // Of a file to a socket this is the kernel's own copy, which takes next to no time from what is measured.
        counts.bytes.fetch_add(io::copy(&mut file.take(size), &mut out)?, Ordering::Relaxed);
    }
}
