//! Where an index says a file is.

use fastpath_artifact::http::{join, shown};

use super::IndexError;

/// A location as an index gives it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Location {
    /// `xml:base`: what `href` is relative to, if not the repository's base.
    pub(crate) base: Option<String>,
    /// `href`.
    pub(crate) href: String,
}

impl Location {
    /// The address meant, in the repository at `base`. It may leave the base by `../` (Leap 16 does), never the root, the host
    /// or the scheme: whoever writes an index does not decide which hosts are asked.
    ///
    /// `index` is where it stands, for messages.
    pub(crate) fn resolve(&self, base: &str, index: &str) -> Result<String, IndexError> {
        let refused = |location: &str, detail| IndexError::Location {
            url: shown(index),
            location: location.chars().take(200).collect(),
            detail,
        };
        let root = Root::of(base).ok_or_else(|| refused(base, "expected an absolute address"))?;
        let mut folder = folder(root.path);
        if let Some(own) = &self.base {
            let path = root.step(&folder, own).map_err(|detail| refused(own, detail))?;
            folder = if own.ends_with('/') { path } else { format!("{path}/") };
        }
        let path = root.step(&folder, &self.href).map_err(|detail| refused(&self.href, detail))?;
        if path.ends_with('/') {
            return Err(refused(&self.href, "expected a file"));
        }
        if root.origin.is_empty() {
            return Ok(path);
        }
        // What no address may hold, such as the caret of a version, is escaped there.
        Ok(join(base, &format!("{}{path}", root.origin)))
    }
}

/// The address of a file that `index` says is at `href`: see [`Location::resolve`].
pub(crate) fn resolve(base: &str, href: &str, index: &str) -> Result<String, IndexError> {
    Location { base: None, href: href.to_owned() }.resolve(base, index)
}

/// A repository's base with a `/` at its end, as locations are relative to it.
pub(crate) fn folder(path: &str) -> String {
    if path.ends_with('/') { path.to_owned() } else { format!("{path}/") }
}

/// An address, split where its path begins.
struct Root<'a> {
    /// Scheme and authority; empty for a plain path.
    origin: &'a str,
    path: &'a str,
}

impl<'a> Root<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let url = &url[..url.find(['?', '#']).unwrap_or(url.len())];
        let at = match url.find("://") {
            Some(at) => {
                let start = at + 3;
                start + url[start..].find('/').unwrap_or(url.len() - start)
            }
            None => 0,
        };
        let (origin, path) = url.split_at(at);
        // A plain path must be absolute; an address may end with its authority.
        if origin.is_empty() && !path.starts_with('/') {
            return None;
        }
        Some(Self { origin, path: if path.is_empty() { "/" } else { path } })
    }

    /// The path of `reference`, seen from `folder`.
    fn step(&self, folder: &str, reference: &str) -> Result<String, &'static str> {
        if reference.is_empty() {
            return Err("it is empty");
        }
        // A backslash is a slash to some servers, and a control character a line end to others.
        if reference.chars().any(|c| c.is_control() || matches!(c, '\\' | '?' | '#')) {
            return Err("it has characters that no file name here has");
        }
        let lower = reference.to_ascii_lowercase();
        if ["%2f", "%5c", "%00", "%0a", "%0d", "%2e"].iter().any(|code| lower.contains(code)) {
            return Err("it hides a separator or a dot by percent-encoding");
        }
        let path = if reference.contains("://") {
            let other = Root::of(reference).ok_or("expected an absolute address")?;
            if !other.origin.eq_ignore_ascii_case(self.origin) {
                return Err("it is on another host or of another scheme than the repository");
            }
            without_dots("/", other.path)?
        } else if reference.starts_with("//") {
            return Err("it is on another host than the repository");
        } else if has_scheme(reference) {
            return Err("it is of another scheme than the repository");
        } else if reference.starts_with('/') {
            without_dots("/", reference)?
        } else {
            without_dots(folder, reference)?
        };
        Ok(path)
    }
}

/// `data:...`, `file:x`; a colon behind the first `/` is part of a name.
fn has_scheme(reference: &str) -> bool {
    reference.find(':').is_some_and(|at| {
        let scheme = &reference[..at];
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
            // An epoch in a file name: `kernel-core-1:6.12...`, with digits and dots before it.
            && !scheme.contains(|c: char| c.is_ascii_digit())
    })
}

fn without_dots(folder: &str, relative: &str) -> Result<String, &'static str> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().ok_or("it leads above the root of the host")?),
            part => parts.push(part),
        }
    }
    let end = if relative.ends_with(['/']) || relative.ends_with("..") { "/" } else { "" };
    Ok(format!("/{}{end}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(base: &str, own: Option<&str>, href: &str) -> Result<String, String> {
        Location { base: own.map(str::to_owned), href: href.to_owned() }
            .resolve(base, "http://h/repomd.xml")
            .map_err(|error| error.to_string())
    }

    #[test]
    fn followed() {
        for (base, own, href, expected) in [
            ("http://h/a/b/", None, "c.rpm", "http://h/a/b/c.rpm"),
            ("http://h/a/b", None, "p/c.rpm", "http://h/a/b/p/c.rpm"),
            ("http://h/repo/oss/x86_64", None, "../noarch/c.rpm", "http://h/repo/oss/noarch/c.rpm"),
            ("http://h", None, "c.rpm", "http://h/c.rpm"),
            ("http://h/a/", Some("http://h/b"), "c.rpm", "http://h/b/c.rpm"),
            ("http://h/a/", Some("http://H/b/"), "c.rpm", "http://h/b/c.rpm"),
            ("http://h/a/", Some("../b"), "./c.rpm", "http://h/b/c.rpm"),
            ("http://h/a/", None, "/b/c.rpm", "http://h/b/c.rpm"),
            ("http://u:p@h/a/", None, "c-1:2.rpm", "http://u:p@h/a/c-1:2.rpm"),
            ("file:///srv/a/", None, "../b/c.rpm", "file:///srv/b/c.rpm"),
            ("/srv/a", None, "c^1~2+3.rpm", "/srv/a/c^1~2+3.rpm"),
            ("http://h/a/", None, "c^1~2+3.rpm", "http://h/a/c%5E1~2+3.rpm"),
        ] {
            assert_eq!(resolve(base, own, href).as_deref(), Ok(expected), "{base} {own:?} {href}");
        }
    }

    #[test]
    fn refused() {
        for (base, own, href, why) in [
            ("http://h/a/", None, "../../c.rpm", "above the root"),
            ("http://h/a/", None, "x/../../../c.rpm", "above the root"),
            ("http://h/a/", None, "http://i/c.rpm", "another host"),
            ("http://h/a/", None, "https://h/c.rpm", "another host or of another scheme"),
            ("http://h/a/", None, "http://h:81/c.rpm", "another host"),
            ("http://h/a/", None, "http://h@i/c.rpm", "another host"),
            ("http://h/a/", None, "//i/c.rpm", "another host"),
            ("http://h/a/", None, "file:///etc/passwd", "another scheme"),
            ("http://h/a/", None, "file:/etc/passwd", "another scheme"),
            ("http://h/a/", Some("http://i/"), "c.rpm", "another host"),
            ("http://h/a/", Some("/../"), "c.rpm", "above the root"),
            ("http://h/a/", None, "..\\c.rpm", "characters"),
            ("http://h/a/", None, "c.rpm\r\nHost: i", "characters"),
            ("http://h/a/", None, "%2e%2e/%2E%2e/c.rpm", "percent"),
            ("http://h/a/", None, "b/", "expected a file"),
            ("http://h/a/", None, "", "empty"),
            ("a/b", None, "c", "absolute"),
        ] {
            let error = resolve(base, own, href).unwrap_err();
            assert!(error.contains(why), "{base} {own:?} {href}: {error}");
        }
    }
}
