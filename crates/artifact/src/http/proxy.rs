//! Which proxy, if any, a request goes through.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, NextTimeout, RustlsConnector, TcpConnector, Transport,
};
use ureq::{Agent, Proxy};

use super::address;
use super::error::FetchError;

/// Proxies by scheme, as the usual environment variables give them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http`: `http_proxy`, `HTTP_PROXY`.
    pub http: Option<String>,
    /// For `https`: `https_proxy`, `HTTPS_PROXY`.
    pub https: Option<String>,
    /// For both, where there is no other: `all_proxy`, `ALL_PROXY`.
    pub all: Option<String>,
    /// Hosts that are asked directly: `no_proxy`, `NO_PROXY`. Names, which cover the names below them, with or without a dot
    /// in front; with a port, only that port; `*` for every host.
    pub no_proxy: Vec<String>,
}

impl Proxies {
    /// From variables; lower case goes first, as in curl. An empty value is none.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| {
            [name.to_owned(), name.to_ascii_uppercase()]
                .iter()
                .find_map(|name| variable(name))
                .filter(|value| !value.trim().is_empty())
        };
        let no_proxy = get("no_proxy").unwrap_or_default();
        let no_proxy = no_proxy.split([',', ' ']).map(str::trim).filter(|host| !host.is_empty());
        Self {
            http: get("http_proxy"),
            https: get("https_proxy"),
            all: get("all_proxy"),
            no_proxy: no_proxy.map(str::to_ascii_lowercase).collect(),
        }
    }

    /// From the process's environment.
    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The proxy for an address.
    pub(super) fn of(&self, url: &str) -> Option<&str> {
        let own = match address::scheme(url)?.as_str() {
            "http" => &self.http,
            "https" => &self.https,
            _ => return None,
        };
        let proxy = own.as_deref().or(self.all.as_deref())?;
        let (host, port) = address::host(url)?;
        let exempt = self.no_proxy.iter().any(|entry| covers(entry, &host, port));
        // `DIRECT` is apt's word for none.
        (!exempt && !proxy.eq_ignore_ascii_case("direct")).then_some(proxy)
    }
}

fn covers(entry: &str, host: &str, port: Option<u16>) -> bool {
    if entry == "*" {
        return true;
    }
    let entry = entry.trim_start_matches('*');
    let bare = entry.trim_start_matches('[');
    let (name, wanted) = match bare.rsplit_once(':') {
        // More than one colon without brackets is an IPv6 address.
        Some((name, digits)) if !name.contains(':') || name.ends_with(']') => {
            (name, digits.parse::<u16>().ok())
        }
        _ => (bare, None),
    };
    let name = name.trim_end_matches(']').trim_start_matches('.');
    if wanted.is_some() && wanted != port {
        return false;
    }
    host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
}

/// The way to a server. One agent, with its pool of connections, serves each.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Route {
    /// Straight there.
    Direct,
    /// Through a tunnel: `https`, and everything through SOCKS.
    Tunnel(String),
    /// Through a proxy that makes the request itself. For plain `http`: many proxies, squid as it comes and apt's caches
    /// among them, refuse tunnels to port 80, and ureq knows only tunnels.
    Forward(String),
}

// A proxy's address may hold a password.
impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("Direct"),
            Self::Tunnel(proxy) => write!(f, "Tunnel({})", address::shown(proxy)),
            Self::Forward(proxy) => write!(f, "Forward({})", address::shown(proxy)),
        }
    }
}

impl Route {
    pub(super) fn new(proxies: &Proxies, url: &str) -> Result<Self, FetchError> {
        let Some(proxy) = proxies.of(url) else { return Ok(Self::Direct) };
        let proxy =
            if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
        let route = match (address::scheme(url).as_deref(), address::scheme(&proxy).as_deref()) {
            (Some("http"), Some("http" | "https")) => Self::Forward(proxy),
            _ => Self::Tunnel(proxy),
        };
        route.proxy()?;
        Ok(route)
    }

    fn proxy(&self) -> Result<Option<Proxy>, FetchError> {
        let (Self::Tunnel(proxy) | Self::Forward(proxy)) = self else { return Ok(None) };
        Proxy::new(proxy).map(Some).map_err(|error| FetchError::Setting {
            what: format!("proxy {}", address::shown(proxy)),
            detail: error.to_string(),
        })
    }

    /// The proxy that ureq makes tunnels through.
    pub(super) fn tunnel(&self) -> Result<Option<Proxy>, FetchError> {
        if matches!(self, Self::Tunnel(_)) { self.proxy() } else { Ok(None) }
    }

    pub(super) fn agent(&self, config: Config) -> Agent {
        if !matches!(self, Self::Forward(_)) {
            return Agent::new_with_config(config);
        }
        let connector =
            ().chain(TcpConnector::default()).chain(RustlsConnector::default()).chain(Forwarding);
        Agent::with_parts(config, connector, DefaultResolver::default())
    }

    /// The address ureq is given: of the proxy, with the target's path, if the proxy makes the request.
    pub(super) fn request_url(&self, url: &str) -> String {
        let Self::Forward(proxy) = self else { return url.to_owned() };
        let authority = proxy.split('/').nth(2).unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let scheme = proxy.split(':').next().unwrap_or_default();
        format!("{scheme}://{host}{}", rest(url))
    }

    /// The headers that belong to the way.
    pub(super) fn headers(&self, url: &str) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if let Self::Forward(_) = self {
            let parsed = url.parse::<Uri>().ok();
            let authority = parsed.as_ref().and_then(Uri::authority);
            if let Some(authority) = authority {
                let authority = authority.as_str();
                let (user, host) = authority
                    .rsplit_once('@')
                    .map_or((None, authority), |(user, host)| (Some(user), host));
                headers.push(("host", host.to_owned()));
                let user = user.map(|user| format!("Basic {}", BASE64_STANDARD.encode(user)));
                headers.extend(user.map(|value| ("authorization", value)));
            }
            if let Ok(Some(proxy)) = self.proxy()
                && let Some(user) = proxy.username()
            {
                let pair = format!("{user}:{}", proxy.password().unwrap_or_default());
                let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
                headers.push(("proxy-authorization", value));
            }
        }
        headers
    }
}

/// Path and query of an address.
fn rest(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return "/" };
    let rest = rest.split('#').next().unwrap_or_default();
    rest.find('/').map_or("/", |slash| &rest[slash..])
}

/// Puts the whole address into the request line, as a proxy wants it (RFC 9112, 3.2.2).
#[derive(Debug)]
struct Forwarding;

impl<In: Transport> Connector<In> for Forwarding {
    type Out = Forwarded<In>;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        Ok(chained.map(|inner| Forwarded { inner, head: Vec::new() }))
    }
}

#[derive(Debug)]
struct Forwarded<T> {
    inner: T,
    /// The part of a request that is not complete. Requests have no content here.
    head: Vec<u8>,
}

impl<T: Transport> Transport for Forwarded<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.head.extend_from_slice(&self.inner.buffers().output()[..amount]);
        if !self.head.ends_with(b"\r\n\r\n") {
            return Ok(());
        }
        let request = absolute(&std::mem::take(&mut self.head));
        let mut rest = request.as_slice();
        while !rest.is_empty() {
            let output = self.inner.buffers().output();
            let size = rest.len().min(output.len());
            output[..size].copy_from_slice(&rest[..size]);
            self.inner.transmit_output(size, timeout)?;
            rest = &rest[size..];
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.inner.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

/// `GET /path` with `Host: name` made `GET http://name/path`.
fn absolute(head: &[u8]) -> Vec<u8> {
    let host = head.split(|&byte| byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(5)?;
        name.eq_ignore_ascii_case(b"host:").then(|| value.trim_ascii())
    });
    let Some((host, method)) = host.zip(head.iter().position(|&byte| byte == b' ')) else {
        return head.to_vec();
    };
    [&head[..=method], b"http://", host, &head[method + 1..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_has_its_own() {
        let variables =
            [("http_proxy", "http://a"), ("HTTP_PROXY", "http://b"), ("ALL_PROXY", "c")];
        let proxies = Proxies::from_variables(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        });
        assert_eq!(proxies.of("http://h/"), Some("http://a"));
        assert_eq!(proxies.of("https://h/"), Some("c"));
        assert_eq!(proxies.of("file:///h"), None);
    }

    #[test]
    fn requests_to_a_proxy_name_the_whole_address() {
        let head = b"GET /x HTTP/1.1\r\naccept: */*\r\nHost:  h:81\r\n\r\n";
        let expected = b"GET http://h:81/x HTTP/1.1\r\naccept: */*\r\nHost:  h:81\r\n\r\n";
        assert_eq!(absolute(head), expected);
        let proxies = Proxies { http: Some("u:p@proxy:3128".into()), ..Proxies::default() };
        let route = Route::new(&proxies, "http://h:81/x?y").unwrap();
        assert_eq!(route.request_url("http://h:81/x?y"), "http://proxy:3128/x?y");
        let headers = route.headers("http://h:81/x?y");
        assert_eq!(headers[0], ("host", "h:81".to_owned()));
        assert_eq!(headers[1], ("proxy-authorization", "Basic dTpw".to_owned()));
        assert_eq!(format!("{route:?}"), "Forward(http://proxy:3128)");
    }

    #[test]
    fn exempt_hosts() {
        let proxies = Proxies {
            all: Some("p".into()),
            no_proxy: ["a.test", ".b.test", "c.test:81", "*.d.test", "::1", "[::2]:80"]
                .map(String::from)
                .to_vec(),
            ..Proxies::default()
        };
        for (url, expected) in [
            ("http://a.test/", None),
            ("http://x.a.test/", None),
            ("http://xa.test/", Some("p")),
            ("http://b.test/", None),
            ("http://x.B.test/", None),
            ("http://c.test/", Some("p")),
            ("http://c.test:81/", None),
            ("http://x.d.test/", None),
            ("http://[::1]:5/", None),
            ("http://[::2]:80/", None),
            ("http://[::2]:81/", Some("p")),
        ] {
            assert_eq!(proxies.of(url), expected, "{url}");
        }
        let none = Proxies { no_proxy: vec!["*".into()], ..proxies };
        assert_eq!(none.of("http://z/"), None);
    }
}
