//! Addresses: just what is needed of URLs.

use std::path::{Path, PathBuf};

/// The scheme in lower case; `None` for a plain path.
pub(super) fn scheme(url: &str) -> Option<String> {
    let (scheme, _) = url.split_once("://")?;
    let sound = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    sound.then(|| scheme.to_ascii_lowercase())
}

/// Whether it is an address with a scheme, of whatever kind, and not a plain path.
pub fn is_address(text: &str) -> bool {
    scheme(text).is_some()
}

/// The name of the file behind an address: the last part of its path, escapes resolved.
pub fn file_name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = path.rsplit_once('/').map_or("", |(_, name)| name);
    decode(name).to_string_lossy().into_owned()
}

/// The local file an address names: a `file` URL or a plain path.
pub(super) fn local(url: &str) -> Option<PathBuf> {
    match scheme(url).as_deref() {
        None => Some(PathBuf::from(url)),
        Some("file") => {
            let rest = &url["file://".len()..];
            let path = rest.strip_prefix("localhost").filter(|path| path.starts_with('/'));
            Some(decode(path.unwrap_or(rest)))
        }
        Some(_) => None,
    }
}

fn decode(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = (byte == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let value = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(value) = value {
            out.push(value);
            at += 3;
        } else {
            out.push(byte);
            at += 1;
        }
    }
    std::ffi::OsString::from_vec(out).into()
}

/// The address for messages: without user name and password.
pub fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// Host name in lower case and port of an address with an authority.
pub(super) fn host(url: &str) -> Option<(String, Option<u16>)> {
    let (_, rest) = url.split_once("://")?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((name, rest)) => (name, rest.strip_prefix(':')),
        None => host.rsplit_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    Some((name.to_ascii_lowercase(), port.and_then(|port| port.parse().ok())))
}

/// The address that `reference` means beside `base`, as a link on a page does: an address of its own, a path from the
/// root, or one relative to `base`'s folder. `.` and `..` are resolved and never leave the root; characters that no URL may
/// have are escaped. A `base` that is a plain path gives a plain path.
///
/// Rules: RFC 3986, 5.2.
pub fn join(base: &str, reference: &str) -> String {
    if scheme(reference).is_some() {
        return escape(reference);
    }
    let Some(scheme) = scheme(base) else {
        if Path::new(reference).is_absolute() {
            return reference.to_owned();
        }
        let folder = base.rfind('/').map_or("", |slash| &base[..=slash]);
        return format!("{folder}{}", without_dots(reference));
    };
    let start = scheme.len() + 3;
    if let Some(network) = reference.strip_prefix("//") {
        return escape(&format!("{scheme}://{network}"));
    }
    let rest = &base[start..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let path = &rest[authority.len()..];
    let path = &path[..path.find(['?', '#']).unwrap_or(path.len())];
    let cut = reference.find(['?', '#']).unwrap_or(reference.len());
    let (reference, query) = reference.split_at(cut);
    let joined = if reference.is_empty() {
        path.to_owned()
    } else if reference.starts_with('/') {
        reference.to_owned()
    } else {
        format!("{}{reference}", path.rfind('/').map_or("/", |slash| &path[..=slash]))
    };
    let query = query.split('#').next().unwrap_or_default();
    escape(&format!("{scheme}://{authority}{}{query}", without_dots(&joined)))
}

/// Resolves `.` and `..`; those that would leave the start are dropped.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let absolute = path.starts_with('/');
    let mut folder = false;
    for part in path.split('/').skip(usize::from(absolute)) {
        folder = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    if folder {
        parts.push("");
    }
    format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
}

/// Percent-encodes what may not stand in a URL; `%` is left alone, for it may be an escape already.
fn escape(url: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(url.len());
    for byte in url.bytes() {
        match byte {
            b'!'..=b'~'
                if !matches!(
                    byte,
                    b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}'
                ) =>
            {
                out.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_like_links() {
        for (base, reference, expected) in [
            ("http://h/a/b", "c", "http://h/a/c"),
            ("http://h/a/b/", "../c", "http://h/a/c"),
            ("http://h/a/", "../../../c", "http://h/c"),
            ("http://h", "c", "http://h/c"),
            ("http://h/a?x", "/c?y#z", "http://h/c?y"),
            ("https://h/a", "//i/c", "https://i/c"),
            ("https://h/a", "http://i/c", "http://i/c"),
            ("http://h/a/", "b c^~+.rpm", "http://h/a/b%20c%5E~+.rpm"),
            ("/srv/repo/", "../x/./y", "/srv/repo/x/y"),
            ("file:///srv/repo/", "x", "file:///srv/repo/x"),
        ] {
            assert_eq!(join(base, reference), expected, "{base} {reference}");
        }
    }

    #[test]
    fn credentials_are_not_shown() {
        assert_eq!(shown("http://user:p@ss@h:80/a@b"), "http://h:80/a@b");
        assert_eq!(shown("/a@b"), "/a@b");
    }

    #[test]
    fn a_query_is_no_part_of_a_files_name() {
        for (url, expected) in [
            ("http://h/a/config-6.8.0-x?a=b/c", "config-6.8.0-x"),
            ("http://h/config-7.3.4%2Bdeb13#x", "config-7.3.4+deb13"),
            ("file:///a/b", "b"),
            ("http://h/", ""),
            ("http://h", ""),
        ] {
            assert_eq!(file_name(url), expected, "{url}");
        }
    }

    #[test]
    fn local_files() {
        assert_eq!(local("/a b"), Some("/a b".into()));
        assert_eq!(local("file:///a%20b"), Some("/a b".into()));
        assert_eq!(local("file://localhost/a%"), Some("/a%".into()));
        assert_eq!(local("http://h/a"), None);
    }

    #[test]
    fn hosts_and_ports() {
        assert_eq!(host("http://u@H:81/x"), Some(("h".into(), Some(81))));
        assert_eq!(host("https://[::1]:81"), Some(("::1".into(), Some(81))));
        assert_eq!(host("https://h?x"), Some(("h".into(), None)));
    }
}
