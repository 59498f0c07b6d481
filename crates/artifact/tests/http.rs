//! Fetching from a server that behaves and from one that does not.

#[path = "server/mod.rs"]
mod server;

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastpath_artifact::http::{
    Cache, Client, Fetch, FetchError, Meter, Options, Origin, Part, Proxies, Range, RemoteFile,
    Request, join,
};
use server::{Fault, Server};

fn options() -> Options {
    Options {
        connect_timeout: Duration::from_secs(2),
        read_timeout: Duration::from_secs(2),
        backoff: Duration::from_millis(1),
        longest_wait: Duration::from_secs(2),
        ..Options::default()
    }
}

fn client() -> Arc<Client> {
    Arc::new(Client::new(options()).unwrap())
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from((at * 7 + at / 251) % 256).unwrap()).collect()
}

/// A server with `file`, `length` bytes long.
fn serving(length: usize) -> (tempfile::TempDir, Vec<u8>, Server) {
    let folder = tempfile::tempdir().unwrap();
    let content = pattern(length);
    fs::write(folder.path().join("file"), &content).unwrap();
    let server = Server::start(folder.path());
    (folder, content, server)
}

fn whole(url: &str, limit: u64) -> Result<Vec<u8>, FetchError> {
    client().get(&Request::whole(url, &Meter::default()))?.bytes(limit)
}

fn message(error: &FetchError) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn a_whole_file_and_a_part() {
    let (folder, content, server) = serving(100_000);
    let file_url = format!("file://{}/file", folder.path().display());
    let path = folder.path().join("file").display().to_string();
    for url in [server.url("file"), file_url, path] {
        assert_eq!(whole(&url, 1 << 20).unwrap(), content);
        let meter = Meter::default();
        let range = Some(Range { start: 10, end: Some(20) });
        let request = Request { range, ..Request::whole(&url, &meter) };
        let response = client().get(&request).unwrap();
        assert_eq!((response.part, response.length), (Part::Range, Some(100_000)));
        assert_eq!(response.bytes(10).unwrap(), content[10..20]);
        assert_eq!(meter.total(), 10);
        let known = client().get(&Request::whole(&url, &meter)).unwrap().validators;
        let request = Request { unless: Some(&known), ..Request::whole(&url, &meter) };
        assert_eq!(client().get(&request).unwrap().part, Part::NotModified);
    }
}

#[test]
fn more_than_is_taken_is_refused_before_it_is_read() {
    let (_folder, _, server) = serving(5000);
    let error = whole(&server.url("file"), 4999).unwrap_err();
    assert!(message(&error).ends_with("expected at most 4999 bytes, found 5000"), "{error}");
    server.fault("file", Fault::NoLength);
    let error = whole(&server.url("file"), 4999).unwrap_err();
    assert!(message(&error).ends_with("expected at most 4999 bytes, found more"), "{error}");
}

#[test]
fn what_passes_is_tried_again() {
    let (_folder, content, server) = serving(5000);
    for fault in [
        Fault::Status(500, "", 3),
        Fault::Status(503, "Retry-After: 0\r\n", 3),
        Fault::Status(429, "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 2),
        Fault::CutTimes(0, 3),
        Fault::CutTimes(100, 2),
    ] {
        server.heal();
        server.fault("file", fault.clone());
        assert_eq!(whole(&server.url("file"), 1 << 20).unwrap(), content, "{fault:?}");
    }
}

#[test]
fn what_lasts_is_not_tried_for_ever() {
    let (_folder, _, server) = serving(5000);
    let url = server.url("file");
    let cases = [
        (Fault::Status(500, "", 99), "found status 500 (tried 4 times)", 4),
        (Fault::Status(429, "", 99), "found status 429 (tried 4 times)", 4),
        (Fault::Status(403, "", 99), "found status 403", 1),
        (Fault::Status(404, "", 99), "found status 404", 1),
        (
            Fault::Status(429, "Retry-After: 3600\r\n", 99),
            "status 429: the server asks to wait 3600 s, more than the 2 s waited here",
            1,
        ),
        (Fault::Cut(0), "(tried 4 times)", 4),
        (
            Fault::LongerLength(1),
            "offset 5000: changed while it was read: length: expected 5001, found 5000",
            2,
        ),
    ];
    for (fault, expected, hits) in cases {
        server.heal();
        let before = server.hits("file");
        server.fault("file", fault.clone());
        let error = whole(&url, 1 << 20).unwrap_err();
        let text = message(&error);
        assert!(text.starts_with(&url) && text.contains(expected), "{fault:?}: {text}");
        assert_eq!(server.hits("file") - before, hits, "{fault:?}");
    }
    assert!(whole(&server.url("none"), 1).unwrap_err().is_missing());
}

#[test]
fn nobody_there_and_nobody_answering() {
    let (_folder, _, server) = serving(1);
    server.fault("file", Fault::Silent);
    let quick = Options { tries: 1, read_timeout: Duration::from_millis(200), ..options() };
    let client = Client::new(quick).unwrap();
    let started = Instant::now();
    let error = client.get(&Request::whole(&server.url("file"), &Meter::default())).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(3));
    assert!(message(&error).contains("timeout"), "{error}");
    let url = server.url("file");
    drop(server);
    let error = client.get(&Request::whole(&url, &Meter::default())).unwrap_err();
    assert!(message(&error).starts_with(&url), "{error}");
    for (url, expected) in [
        ("ftp://h/x", "ftp://h/x: expected http, https, file or a path, found `ftp`"),
        ("http://", "http://: it names no host"),
        ("https://:80/x", "https://:80/x: it names no host"),
    ] {
        let error = client.get(&Request::whole(url, &Meter::default())).unwrap_err();
        assert_eq!(message(&error), expected);
    }
}

#[test]
fn cut_content_goes_on_where_it_stopped() {
    let (_folder, content, server) = serving(300_000);
    // Every answer is cut, but each brings enough to be patient.
    server.fault("file", Fault::Cut(70_000));
    let meter = Meter::default();
    let url = server.url("file");
    let bytes = client().get(&Request::whole(&url, &meter)).unwrap().bytes(1 << 20).unwrap();
    assert_eq!(bytes, content);
    assert_eq!(meter.total(), 300_000);
    let seen = server.seen();
    assert_eq!(seen.len(), 5);
    assert_eq!(seen[1].headers["range"], "bytes=70000-299999");
    assert!(seen[1].headers["if-range"].starts_with('"'));

    // A server without ranges is read again from the start, and only so often.
    server.heal();
    server.fault("file", Fault::IgnoreRange);
    server.fault("file", Fault::CutTimes(70_000, 1));
    let meter = Meter::default();
    let bytes = client().get(&Request::whole(&url, &meter)).unwrap().bytes(1 << 20).unwrap();
    assert_eq!(bytes, content);
    assert_eq!(meter.total(), 370_000);
}

#[test]
fn a_file_that_changes_is_never_pasted_together() {
    let (folder, _, server) = serving(300_000);
    let url = server.url("file");
    server.fault("file", Fault::CutThenChange(1000));
    let error = whole(&url, 1 << 20).unwrap_err();
    assert!(message(&error).contains("offset 1000: changed while it was read: ETag"), "{error}");

    server.heal();
    server.fault("file", Fault::Changes);
    let mut file = RemoteFile::open(client(), &url).unwrap();
    let mut bytes = Vec::new();
    let error = file.read_to_end(&mut bytes).unwrap_err();
    let error = FetchError::inside(&error).unwrap();
    assert!(message(error).contains("offset 65536: changed while it was read: ETag"), "{error}");

    server.heal();
    server.fault("file", Fault::NoValidators);
    let mut file = RemoteFile::open(client(), &url).unwrap();
    fs::write(folder.path().join("file"), pattern(299_999)).unwrap();
    let error = file.read_to_end(&mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("length: expected 300000, found 299999"), "{error}");
}

#[test]
fn redirects() {
    let (_folder, content, server) = serving(5000);
    server.fault("a", Fault::Redirect("/b".into()));
    server.fault("b", Fault::Redirect("file".into()));
    assert_eq!(whole(&server.url("a"), 1 << 20).unwrap(), content);
    server.fault("loop", Fault::Redirect("/loop".into()));
    let error = whole(&server.url("loop"), 1).unwrap_err();
    assert!(message(&error).ends_with("more than 10 redirects"), "{error}");
    assert_eq!(server.hits("loop"), 11);
    for to in ["file:///etc/hostname?secret", "ftp://h/x"] {
        server.fault("out", Fault::Redirect(to.into()));
        let error = whole(&server.url("out"), 1).unwrap_err();
        assert!(message(&error).contains("refused a redirect to "), "{error}");
        assert!(!message(&error).contains("secret"), "{error}");
        server.heal();
    }
}

#[test]
fn a_remote_file_is_read_in_growing_ranges() {
    let (_folder, content, server) = serving(3_000_000);
    let mut file = RemoteFile::open(client(), &server.url("file")).unwrap();
    assert_eq!((file.length(), file.has_ranges()), (Some(3_000_000), true));
    let mut start = [0; 1000];
    file.read_exact(&mut start).unwrap();
    assert_eq!((&start[..], file.transferred()), (&content[..1000], 65_536));
    file.rewind().unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    assert!(bytes == content);
    assert_eq!(file.transferred(), 3_000_000);
    let ranges: Vec<String> =
        server.seen().iter().map(|seen| seen.headers["range"].clone()).collect();
    assert_eq!(
        ranges[..5],
        [
            "bytes=0-65535",
            "bytes=65536-196607",
            "bytes=196608-458751",
            "bytes=458752-983039",
            "bytes=983040-2031615"
        ]
    );
    assert_eq!(ranges.len(), 6);
    // What is kept is not asked for again; another place starts small.
    file.seek(SeekFrom::End(-10)).unwrap();
    bytes.clear();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.as_slice(), server.seen().len()), (&content[2_999_990..], 6));
    let mut fresh = RemoteFile::open(client(), &server.url("file")).unwrap();
    fresh.seek(SeekFrom::Start(2_000_000)).unwrap();
    fresh.read_exact(&mut start).unwrap();
    assert_eq!((&start[..], fresh.transferred()), (&content[2_000_000..2_001_000], 131_072));
    assert_eq!(fresh.seek(SeekFrom::End(7)).unwrap(), 3_000_007);
    assert_eq!(fresh.read(&mut start).unwrap(), 0);
    assert!(fresh.seek(SeekFrom::Current(-4_000_000)).is_err());
}

#[test]
fn remote_files_of_odd_servers() {
    let (folder, content, server) = serving(3_000_000);
    let url = server.url("file");
    server.fault("file", Fault::IgnoreRange);
    let mut file = RemoteFile::open(client(), &url).unwrap();
    assert!(!file.has_ranges());
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    assert!(bytes == content);
    assert_eq!(server.hits("file"), 1);
    // The beginning is kept.
    file.seek(SeekFrom::Start(500_000)).unwrap();
    let mut part = [0; 1000];
    file.read_exact(&mut part).unwrap();
    assert_eq!(part, content[500_000..501_000]);

    let mut bounded = RemoteFile::open(client(), &url).unwrap();
    bounded.set_sequential_limit(1_000_000);
    let error = bounded.read_to_end(&mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("expected at most 1000000 bytes, found 3000000"), "{error}");

    fs::write(folder.path().join("big"), vec![7; 12 << 20]).unwrap();
    server.fault("big", Fault::IgnoreRange);
    let mut big = RemoteFile::open(client(), &server.url("big")).unwrap();
    big.seek(SeekFrom::Start(11 << 20)).unwrap();
    big.read_exact(&mut part).unwrap();
    big.seek(SeekFrom::Start(2 << 20)).unwrap();
    let error = big.read_exact(&mut part).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("offset 2097152: the server ignores ranges, and bytes before"), "{text}");

    server.heal();
    server.fault("file", Fault::WrongRange);
    let mut wrong = RemoteFile::open(client(), &url).unwrap();
    let error = wrong.read_to_end(&mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("found `bytes 65535-"), "{error}");

    // Servers behind one name may disagree about weak tags.
    server.heal();
    server.fault("file", Fault::WeakTags);
    let mut weak = RemoteFile::open(client(), &url).unwrap();
    bytes.clear();
    weak.read_to_end(&mut bytes).unwrap();
    assert!(bytes == content);

    fs::write(folder.path().join("empty"), "").unwrap();
    for url in [server.url("empty"), folder.path().join("empty").display().to_string()] {
        let mut empty = RemoteFile::open(client(), &url).unwrap();
        assert_eq!((empty.length(), empty.read(&mut part).unwrap()), (Some(0), 0));
    }
}

#[test]
fn where_a_redirect_led_is_asked_first_and_left_when_it_expires() {
    let (folder, content, server) = serving(200_000);
    server.fault("a", Fault::Redirect("/file?token".into()));
    // The server reads a query as part of a name; so give it one.
    fs::write(folder.path().join("file?token"), &content).unwrap();
    let mut file = RemoteFile::open(client(), &server.url("a")).unwrap();
    file.seek(SeekFrom::Start(100_000)).unwrap();
    let mut part = [0; 10];
    file.read_exact(&mut part).unwrap();
    assert_eq!(server.hits("a"), 1);
    server.fault("file?token", Fault::Status(403, "", 1));
    file.seek(SeekFrom::Start(190_000)).unwrap();
    file.read_exact(&mut part).unwrap();
    assert_eq!(part, content[190_000..190_010]);
    assert_eq!(server.hits("a"), 2);
}

#[test]
fn a_local_file_replaced_while_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, pattern(200_000)).unwrap();
    let mut file = RemoteFile::open(client(), path.to_str().unwrap()).unwrap();
    let time = std::time::SystemTime::now() + Duration::from_secs(5);
    fs::write(&path, vec![0; 200_000]).unwrap();
    fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
    let error = file.read_to_end(&mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("offset 65536: changed while it was read"), "{error}");
}

#[test]
fn proxies() {
    let (_folder, content, server) = serving(5000);
    let proxies = Proxies {
        http: Some(format!("http://user:pass@{}", server.authority())),
        no_proxy: vec!["direct.invalid".into()],
        ..Proxies::default()
    };
    let client = Client::new(Options { proxies, tries: 1, ..options() }).unwrap();
    let meter = Meter::default();
    for _ in 0..2 {
        let response = client.get(&Request::whole("http://repo.invalid:81/file", &meter)).unwrap();
        assert_eq!(response.bytes(1 << 20).unwrap(), content);
    }
    let seen = server.seen();
    assert_eq!(seen[0].target, "http://repo.invalid:81/file");
    assert_eq!(seen[0].headers["host"], "repo.invalid:81");
    assert_eq!(seen[0].headers["proxy-authorization"], "Basic dXNlcjpwYXNz");
    assert!(client.get(&Request::whole("http://x.direct.invalid/file", &meter)).is_err());
    assert_eq!(server.seen().len(), 2);
    let proxies = Proxies { all: Some("what://p".into()), ..Proxies::default() };
    let client = Client::new(Options { proxies, ..options() }).unwrap();
    let error = client.get(&Request::whole("http://h/", &meter)).unwrap_err();
    assert!(message(&error).starts_with("proxy what://p"), "{error}");
}

#[test]
fn a_certificate_file_without_certificates_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    fs::write(&path, "nothing").unwrap();
    let error = Client::new(Options { ca_file: Some(path.clone()), ..options() }).unwrap_err();
    assert!(message(&error).contains("expected PEM certificates, found none"), "{error}");
    fs::remove_file(&path).unwrap();
    assert!(Client::new(Options { ca_file: Some(path), ..options() }).is_err());
}

fn folder_size(folder: &std::path::Path) -> (usize, u64) {
    let sizes: Vec<u64> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .collect();
    (sizes.len(), sizes.iter().sum())
}

#[test]
fn the_cache_asks_before_it_answers() {
    let (folder, content, server) = serving(5000);
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::new(place.path().join("a/b"), false).unwrap();
    let url = server.url("file");
    let client = client();
    let meter = Meter::default();
    let get = |cache: &Cache| cache.get(&*client, &url, 10_000, &meter);
    assert!(cache.kept(&url).is_none());
    for (origin, bytes) in [(Origin::Fetched, 5000), (Origin::Confirmed, 5000)] {
        let mut cached = get(&cache).unwrap();
        assert_eq!((cached.origin, cached.length, meter.total()), (origin, 5000, bytes));
        assert_eq!(cached.bytes().unwrap(), content);
        assert_eq!(cached.bytes().unwrap(), content);
    }
    assert_eq!(cache.kept(&url).unwrap().bytes().unwrap(), content);
    // Changed at the server: fetched anew, one entry.
    fs::write(folder.path().join("file"), b"other").unwrap();
    let mut cached = get(&cache).unwrap();
    assert_eq!((cached.origin, cached.bytes().unwrap()), (Origin::Fetched, b"other".to_vec()));
    assert_eq!(folder_size(&place.path().join("a/b")).0, 1);
    // A cut answer leaves what was there.
    server.fault("file", Fault::Cut(0));
    fs::write(folder.path().join("file"), b"third").unwrap();
    assert!(get(&cache).is_err());
    assert_eq!(cache.kept(&url).unwrap().bytes().unwrap(), b"other");
    assert_eq!(folder_size(&place.path().join("a/b")).0, 1);

    let offline = Cache::new(place.path().join("a/b"), true).unwrap();
    let hits = server.hits("file");
    assert_eq!(get(&offline).unwrap().bytes().unwrap(), b"other");
    let error = offline.get(&*client, &server.url("none"), 10, &meter).unwrap_err();
    assert!(message(&error).ends_with("not in the cache, and the network is not used"));
    assert_eq!(server.hits("file"), hits);

    // A damaged entry is as good as none.
    let entry = fs::read_dir(place.path().join("a/b")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&entry).unwrap();
    bytes.pop();
    fs::write(&entry, &bytes).unwrap();
    assert!(offline.kept(&url).is_none());
    fs::write(&entry, vec![b'a'; 1 << 20]).unwrap();
    assert!(offline.kept(&url).is_none());
}

#[test]
fn the_cache_is_bounded() {
    let (folder, _, server) = serving(5000);
    let place = tempfile::tempdir().unwrap();
    let mut cache = Cache::new(place.path().to_owned(), false).unwrap();
    cache.set_limit(30_000);
    let client = client();
    for name in 0..9 {
        fs::write(folder.path().join(name.to_string()), vec![0; 9000]).unwrap();
        let url = server.url(&name.to_string());
        let cached = cache.get(&*client, &url, 10_000, &Meter::default()).unwrap();
        assert_eq!(cached.length, 9000);
    }
    let (entries, size) = folder_size(place.path());
    assert_eq!(entries, 3);
    assert!(size <= 30_000);
    let error = cache.get(&*client, &server.url("8"), 100, &Meter::default()).unwrap_err();
    assert!(message(&error).ends_with("expected at most 100 bytes, found 9000"), "{error}");
}

#[test]
fn two_that_want_the_same_wait_for_each_other() {
    let (_folder, _, server) = serving(50_000);
    server.fault("file", Fault::Slow(Duration::from_millis(50)));
    let cache = Cache::temporary(false).unwrap();
    let (client, meter, url) = (client(), Meter::default(), server.url("file"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| cache.get(&*client, &url, 100_000, &meter).unwrap());
        }
    });
    assert_eq!(meter.total(), 50_000);
}

#[test]
fn where_the_cache_is() {
    let folder = |xdg: Option<&str>, home: Option<&str>| {
        Cache::usual_folder(|name| match name {
            "XDG_CACHE_HOME" => xdg.map(PathBuf::from),
            "HOME" => home.map(PathBuf::from),
            _ => None,
        })
    };
    assert_eq!(folder(Some("/c"), Some("/h")), Some("/c/fastpath".into()));
    assert_eq!(folder(Some("c"), Some("/h")), Some("/h/.cache/fastpath".into()));
    assert_eq!(folder(None, None), None);
}

#[test]
fn addresses_with_odd_characters() {
    let (folder, content, server) = serving(500);
    fs::write(folder.path().join("a b^1~.rpm"), &content).unwrap();
    assert_eq!(whole(&join(&server.url("x"), "a b^1~.rpm"), 500).unwrap(), content);
}

#[test]
fn a_server_that_drips_is_given_up() {
    let (_folder, _, server) = serving(100_000);
    let least_time = Duration::from_millis(200);
    let impatient = Options { tries: 2, least_time, least_bytes: 1000, ..options() };
    let client = Client::new(impatient).unwrap();
    server.fault("file", Fault::Drip(Duration::from_millis(5)));
    let started = Instant::now();
    let response = client.get(&Request::whole(&server.url("file"), &Meter::default())).unwrap();
    let error = response.bytes(1 << 20).unwrap_err();
    assert!(message(&error).contains("bytes in 0.2 s, expected at least 1000"), "{error}");
    assert!(message(&error).ends_with("(tried 2 times)"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(3));
    server.heal();
    // One that is slow, and fast enough.
    server.fault("file", Fault::Slow(Duration::from_millis(300)));
    let response = client.get(&Request::whole(&server.url("file"), &Meter::default())).unwrap();
    assert_eq!(response.bytes(1 << 20).unwrap().len(), 100_000);
}

#[test]
fn a_header_that_drips_is_given_up() {
    let (_folder, _, server) = serving(1);
    let read_timeout = Duration::from_millis(300);
    let client = Client::new(Options { tries: 1, read_timeout, ..options() }).unwrap();
    server.fault("file", Fault::DripHeader(Duration::from_millis(20)));
    let started = Instant::now();
    let error = client.get(&Request::whole(&server.url("file"), &Meter::default())).unwrap_err();
    assert!(message(&error).contains("timeout"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[test]
fn https_to_a_server_that_speaks_http_is_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/file", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 100]);
        let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
        std::io::Write::write_all(&mut stream, answer).unwrap();
    });
    let client = Client::new(Options { tries: 1, ..options() }).unwrap();
    let error = client.get(&Request::whole(&url, &Meter::default())).unwrap_err();
    server.join().unwrap();
    let expected = format!("{url}: offset 0: the server does not speak TLS; http, perhaps");
    assert_eq!(message(&error), expected);
}

fn mkfifo(path: &std::path::Path) {
    let status = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_pipe_is_not_waited_for_where_a_file_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe);
    let expected = format!("{}: expected a regular file", pipe.display());
    let cache = Cache::temporary(false).unwrap();
    for url in [pipe.display().to_string(), format!("file://{}", pipe.display())] {
        assert_eq!(message(&whole(&url, 10).unwrap_err()), expected);
        let error = cache.get(&*client(), &url, 10, &Meter::default()).unwrap_err();
        assert_eq!(message(&error), expected);
    }
}

#[test]
fn a_cache_entry_that_is_no_file_is_as_good_as_none() {
    let (_folder, content, server) = serving(1000);
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::new(place.path().to_owned(), false).unwrap();
    let url = server.url("file");
    let get = || {
        let mut cached = cache.get(&*client(), &url, 10_000, &Meter::default()).unwrap();
        (cached.origin, cached.bytes().unwrap())
    };
    assert_eq!(get(), (Origin::Fetched, content.clone()));
    let entry = fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&entry).unwrap();
    mkfifo(&entry);
    // It is replaced.
    assert_eq!(get(), (Origin::Fetched, content.clone()));
    assert_eq!(get(), (Origin::Confirmed, content.clone()));
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    fs::write(entry.join("mine"), b"x").unwrap();
    // It is gone around, and nothing in it is touched.
    for _ in 0..2 {
        assert_eq!(get(), (Origin::Fetched, content.clone()));
    }
    assert!(cache.kept(&url).is_none());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    assert_eq!(fs::read(entry.join("mine")).unwrap(), b"x");
}
