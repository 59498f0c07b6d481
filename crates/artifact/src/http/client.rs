//! The client: one request at a time, redirects, retries.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use ureq::http::header::{self, HeaderMap, HeaderName};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::error::FetchError;
use super::pace::Paced;
use super::proxy::{Proxies, Route};
use super::{Fetch, Part, Range, Request, Response, Validators, address, body, local, retry};

/// Certificates that a distribution's own tools trust, by where they keep them.
const SYSTEM_CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// How the client behaves. Everything is bounded.
#[derive(Clone, Debug)]
pub struct Options {
    /// The longest time until a connection stands.
    pub connect_timeout: Duration,
    /// The longest time without a byte.
    pub read_timeout: Duration,
    /// How long a server is waited for before it has to have sent [`Options::least_bytes`], over and over.
    pub least_time: Duration,
    /// The least that has to come in [`Options::least_time`].
    pub least_bytes: u64,
    /// How often one request is tried, and how often content may be cut without progress.
    pub tries: u32,
    /// The wait before the second try; it doubles with each.
    pub backoff: Duration,
    /// The longest wait; a server that asks for more is given up.
    pub longest_wait: Duration,
    /// The most redirects of one request.
    pub redirects: u32,
    /// Proxies.
    pub proxies: Proxies,
    /// Certificates (PEM) to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Read local files only: every other address is [`FetchError::Offline`].
    pub offline: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            read_timeout: Duration::from_secs(30),
            least_time: Duration::from_mins(1),
            least_bytes: 4 << 10,
            tries: 4,
            backoff: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            redirects: 10,
            proxies: Proxies::default(),
            ca_file: None,
            offline: false,
        }
    }
}

/// Reads `http`, `https` and `file` addresses and plain paths. Cheap to clone; connections are shared.
#[derive(Clone, Debug)]
pub struct Client {
    web: Arc<Web>,
}

impl Client {
    /// A client.
    ///
    /// # Errors
    ///
    /// [`FetchError::Setting`] or [`FetchError::File`] if the certificate file cannot be used.
    pub fn new(options: Options) -> Result<Self, FetchError> {
        let roots = roots(&options)?;
        Ok(Self { web: Arc::new(Web { options, roots, agents: Mutex::default() }) })
    }
}

impl Fetch for Client {
    fn get(&self, request: &Request<'_>) -> Result<Response, FetchError> {
        match address::local(request.url) {
            Some(path) => local::get(&path, request),
            None => Web::get(&self.web, request),
        }
    }
}

fn roots(options: &Options) -> Result<RootCerts, FetchError> {
    let read = |path: &PathBuf| {
        let pem = std::fs::read(path)
            .map_err(|source| FetchError::File { path: path.clone(), source })?;
        let certificates = parse_pem(&pem).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        });
        Ok(certificates.collect::<Vec<Certificate<'static>>>())
    };
    if let Some(path) = &options.ca_file {
        let certificates = read(path)?;
        if certificates.is_empty() {
            return Err(FetchError::Setting {
                what: format!("certificate file {}", path.display()),
                detail: "expected PEM certificates, found none".to_owned(),
            });
        }
        return Ok(RootCerts::Specific(Arc::new(certificates)));
    }
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let mut files = named.into_iter().chain(SYSTEM_CERTIFICATES.map(PathBuf::from));
    let system = files.find_map(|path| read(&path).ok().filter(|found| !found.is_empty()));
    // A container without certificates still has those built in.
    Ok(system.map_or(RootCerts::WebPki, |found| RootCerts::Specific(Arc::new(found))))
}

/// Why one try failed.
pub(super) enum Failure {
    /// It may pass; wait this long if the server says so.
    Passing(FetchError, Option<Duration>),
    /// It will not pass.
    Lasting(FetchError),
}

/// One answer, headers taken apart.
pub(super) struct Answer {
    pub(super) part: Part,
    pub(super) url: String,
    /// The first byte of the content, and the one behind the last.
    pub(super) start: u64,
    pub(super) end: Option<u64>,
    pub(super) length: Option<u64>,
    pub(super) validators: Validators,
    pub(super) body: Box<dyn Read + Send>,
}

#[derive(Debug)]
pub(super) struct Web {
    pub(super) options: Options,
    roots: RootCerts,
    agents: Mutex<HashMap<Route, Agent>>,
}

impl Web {
    fn get(self: &Arc<Self>, request: &Request<'_>) -> Result<Response, FetchError> {
        let mut failed = 0;
        loop {
            match self.follow(request) {
                Ok(answer) => {
                    let body: Box<dyn Read + Send> = match answer.part {
                        Part::NotModified => Box::new(io::empty()),
                        _ => Box::new(body::Resuming::new(
                            Arc::clone(self),
                            answer.url.clone(),
                            answer.start..answer.end.unwrap_or(u64::MAX),
                            answer.end.is_some(),
                            answer.length,
                            answer.validators.clone(),
                            answer.body,
                            request.meter.clone(),
                        )),
                    };
                    return Ok(Response {
                        part: answer.part,
                        url: answer.url,
                        length: answer.length,
                        validators: answer.validators,
                        body,
                    });
                }
                Err(Failure::Lasting(error)) => return Err(error),
                Err(Failure::Passing(error, wait)) => {
                    failed += 1;
                    self.pause(failed, wait, error)?;
                }
            }
        }
    }

    /// Waits before the next try; gives up with `error` after the last.
    pub(super) fn pause(
        &self,
        failed: u32,
        wait: Option<Duration>,
        mut error: FetchError,
    ) -> Result<(), FetchError> {
        if let FetchError::Connection { tries, .. } | FetchError::Status { tries, .. } = &mut error
        {
            *tries = failed;
        }
        if failed >= self.options.tries {
            return Err(error);
        }
        let longest = self.options.longest_wait;
        if let (Some(wait), FetchError::Status { url, status, .. }) = (wait, &error)
            && wait > longest
        {
            return Err(FetchError::Busy {
                url: url.clone(),
                status: *status,
                seconds: wait.as_secs(),
                limit: longest.as_secs(),
            });
        }
        let backoff = retry::backoff(failed, self.options.backoff, longest);
        sleep(wait.unwrap_or(backoff));
        Ok(())
    }

    /// One try, redirects followed.
    pub(super) fn follow(&self, request: &Request<'_>) -> Result<Answer, Failure> {
        let mut url = request.url.to_owned();
        for _ in 0..=self.options.redirects {
            let response = self.once(&url, request)?;
            let status = response.status().as_u16();
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                return self.answer(url, status, response, request);
            }
            let Some(location) = text(response.headers(), &header::LOCATION) else {
                return Err(Failure::Lasting(status_error(&url, request, status)));
            };
            let next = address::join(&url, &location);
            let refused = |detail| {
                // What follows the path may be a secret the redirecting server made.
                let to = address::shown(next.split(['?', '#']).next().unwrap_or_default());
                Failure::Lasting(FetchError::Redirect { url: address::shown(&url), to, detail })
            };
            match (address::scheme(&url).as_deref(), address::scheme(&next).as_deref()) {
                (Some("https"), Some("http")) => {
                    return Err(refused("it would leave the protected connection"));
                }
                (_, Some("http" | "https")) => url = next,
                _ => return Err(refused("only http and https are followed")),
            }
        }
        Err(Failure::Lasting(FetchError::Redirects {
            url: address::shown(request.url),
            limit: self.options.redirects,
        }))
    }

    fn once(
        &self,
        url: &str,
        request: &Request<'_>,
    ) -> Result<ureq::http::Response<Body>, Failure> {
        if !matches!(address::scheme(url).as_deref(), Some("http" | "https")) {
            let found = address::scheme(url).unwrap_or_default();
            let detail = format!("expected http, https, file or a path, found `{found}`");
            let url = address::shown(url);
            return Err(Failure::Lasting(FetchError::Address { url, detail }));
        }
        if address::host(url).is_none_or(|(name, _)| name.is_empty()) {
            let (url, detail) = (address::shown(url), "it names no host".to_owned());
            return Err(Failure::Lasting(FetchError::Address { url, detail }));
        }
        if self.options.offline {
            let url = address::shown(url);
            return Err(Failure::Lasting(FetchError::Offline { url }));
        }
        let route = Route::new(&self.options.proxies, url).map_err(Failure::Lasting)?;
        let agent = self.agent(&route).map_err(Failure::Lasting)?;
        let mut builder = agent.get(route.request_url(url));
        for (name, value) in route.headers(url) {
            builder = builder.header(name, value);
        }
        // A server that compresses on the way would give ranges and lengths of something else.
        builder = builder.header(header::ACCEPT_ENCODING, "identity");
        if let Some(Range { start, end }) = request.range {
            let end = end.map_or_else(String::new, |end| end.saturating_sub(1).to_string());
            builder = builder.header(header::RANGE, format!("bytes={start}-{end}"));
            if let Some(validator) = request.same.and_then(Validators::strong) {
                builder = builder.header(header::IF_RANGE, validator);
            }
        }
        if let Some(known) = request.unless {
            if let Some(etag) = &known.etag {
                builder = builder.header(header::IF_NONE_MATCH, etag);
            }
            if let Some(time) = &known.last_modified {
                builder = builder.header(header::IF_MODIFIED_SINCE, time);
            }
        }
        builder.call().map_err(|error| {
            let passing = passes(&error);
            let error = FetchError::Connection {
                url: address::shown(url),
                offset: offset(request),
                detail: detail(&error),
                tries: 1,
            };
            if passing { Failure::Passing(error, None) } else { Failure::Lasting(error) }
        })
    }

    /// Takes an answer apart.
    fn answer(
        &self,
        url: String,
        status: u16,
        response: ureq::http::Response<Body>,
        request: &Request<'_>,
    ) -> Result<Answer, Failure> {
        let headers = response.headers();
        let validators = Validators {
            etag: text(headers, &header::ETAG),
            last_modified: text(headers, &header::LAST_MODIFIED),
        };
        let range = text(headers, &header::CONTENT_RANGE).unwrap_or_default();
        let announced = text(headers, &header::CONTENT_LENGTH).and_then(|text| text.parse().ok());
        let (part, start, end, length) = match status {
            200 => (Part::Whole, 0, announced, announced),
            206 => {
                let wrong = || {
                    Failure::Lasting(FetchError::Range {
                        url: address::shown(&url),
                        offset: offset(request),
                        found: range.clone(),
                    })
                };
                let (first, last, length) = content_range(&range).ok_or_else(wrong)?;
                let end = last.checked_add(1).ok_or_else(wrong)?;
                let asked = request.range.ok_or_else(wrong)?;
                if first != asked.start
                    || last < first
                    || asked.end.is_some_and(|most| end > most)
                    || length.is_some_and(|length| end > length)
                {
                    return Err(wrong());
                }
                (Part::Range, first, Some(end), length)
            }
            304 if request.unless.is_some() => (Part::NotModified, 0, None, None),
            416 => {
                let length = range.strip_prefix("bytes */").and_then(|text| text.parse().ok());
                let url = address::shown(&url);
                let offset = offset(request);
                return Err(Failure::Lasting(FetchError::Behind { url, offset, length }));
            }
            _ => {
                let error = status_error(&url, request, status);
                let wait = text(headers, &header::RETRY_AFTER);
                let wait = wait.as_deref().and_then(retry::retry_after);
                return Err(match status {
                    429 | 500..=599 => Failure::Passing(error, wait),
                    _ => Failure::Lasting(error),
                });
            }
        };
        let body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let body = Box::new(Paced::new(body, self.options.least_time, self.options.least_bytes));
        Ok(Answer { part, url, start, end, length, validators, body })
    }

    fn agent(&self, route: &Route) -> Result<Agent, FetchError> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = agents.get(route) {
            return Ok(agent.clone());
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed here, where the rules for them are.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(self.options.connect_timeout))
            .timeout_resolve(Some(self.options.connect_timeout))
            .timeout_recv_response(Some(self.options.read_timeout))
            .timeout_per_read(Some(self.options.read_timeout))
            .timeout_per_write(Some(self.options.read_timeout))
            .user_agent(concat!("fastpath/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(self.roots.clone()).build())
            .proxy(route.tunnel()?)
            .build();
        let agent = route.agent(config);
        agents.insert(route.clone(), agent.clone());
        Ok(agent)
    }
}

fn offset(request: &Request<'_>) -> u64 {
    request.range.map_or(0, |range| range.start)
}

fn status_error(url: &str, request: &Request<'_>, status: u16) -> FetchError {
    FetchError::Status { url: address::shown(url), offset: offset(request), status, tries: 1 }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(|text| text.trim().to_owned())
}

/// `bytes 0-99/1234`: first, last and the whole's length.
fn content_range(value: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, length) = value.strip_prefix("bytes ")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let length = if length == "*" { None } else { Some(length.parse().ok()?) };
    Some((first.parse().ok()?, last.parse().ok()?, length))
}

/// What went wrong, in words for whoever typed the address.
fn detail(error: &ureq::Error) -> String {
    let text = error.to_string();
    // What TLS calls an answer in plain text.
    if text.contains("InvalidContentType") {
        return "the server does not speak TLS; http, perhaps".to_owned();
    }
    text
}

/// Whether trying again may help.
fn passes(error: &ureq::Error) -> bool {
    use ureq::Error;
    match error {
        // A certificate that is not trusted comes wrapped in an I/O error of this kind.
        Error::Io(error) => error.kind() != io::ErrorKind::InvalidData,
        Error::Timeout(_)
        | Error::HostNotFound
        | Error::ConnectionFailed
        | Error::BodyStalled
        | Error::Protocol(_) => true,
        _ => false,
    }
}
