//! Fetching over TLS, from `openssl` with a certificate made for the test.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fastpath_artifact::http::{Client, Fetch, FetchError, Meter, Options, Request};

fn openssl(folder: &Path, arguments: &str) -> bool {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
    output.is_ok_and(|output| output.status.success())
}

/// `openssl s_server`, which sends files as they are, headers included.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(folder: &Path) -> Option<Self> {
        fs::write(folder.join("san"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
            .ok()?;
        let made = [
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out csr.pem -subj /CN=leaf",
            "x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile san",
        ];
        if !made.iter().all(|arguments| openssl(folder, arguments)) {
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let child = Command::new("openssl")
            .args(["s_server", "-quiet", "-HTTP", "-accept", &port.to_string()])
            .args(["-cert", "cert.pem", "-key", "key.pem"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let server = Self { child, port };
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is not run says so")]
fn certificates_and_redirects() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(folder.path()) else {
        return eprintln!("skipped, because openssl is not installed or serves nothing");
    };
    let answer = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    answer("file", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    answer(
        "down",
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/x?secret\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    let get = |ca_file, path: &str| {
        let backoff = Duration::from_millis(1);
        let client = Client::new(Options { ca_file, backoff, ..Options::default() }).unwrap();
        let url = format!("https://127.0.0.1:{}/{path}", server.port);
        client.get(&Request::whole(&url, &Meter::default()))?.bytes(100)
    };
    let ca = Some(folder.path().join("ca.pem"));
    assert_eq!(get(ca.clone(), "file").unwrap(), b"hello");
    let error = get(ca, "down").unwrap_err();
    assert!(matches!(error, FetchError::Redirect { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.ends_with(
            "refused a redirect to http://127.0.0.1/x: it would leave the protected connection"
        ),
        "{text}"
    );
    // The system does not know this certificate; trying again would not help.
    let error = get(None, "file").unwrap_err();
    assert!(matches!(error, FetchError::Connection { tries: 1, .. }), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}
