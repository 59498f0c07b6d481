//! Which mirror a repository of the machine's own configuration is read from.
//!
//! A list of mirrors is text with an address on each line, or a metalink of `repomd.xml`
//! (<https://www.rfc-editor.org/rfc/rfc5854>, in its older form <http://www.metalinker.org/>). What it says about digests is not
//! used: trust comes from signatures, wherever the bytes come from.

use std::io::Read;

use fastpath_artifact::http::FetchError;
use quick_xml::events::Event;

use super::dnf::Repository;
use super::location::folder;
use super::packed::Access;
use super::repository::{MAX_REPOMD, REPOMD};
use super::xml::{Events, Text};

/// A list of mirrors has a few hundred lines.
const MAX_LIST: u64 = 1 << 20;
/// So many mirrors are tried.
const MOST: usize = 5;

/// The base whose index can be fetched: the first one of the repository's own, else of its list of mirrors.
///
/// # Errors
///
/// The [`FetchError`] of the first that was tried.
pub fn reachable(access: &Access<'_>, repository: &Repository) -> Result<String, FetchError> {
    let mut first = None;
    let mut attempt = |base: String| {
        let url = format!("{}{REPOMD}", folder(&base));
        match access.cache.get(access.fetch, &url, MAX_REPOMD, access.meter) {
            Ok(_) => Some(base),
            Err(error) => {
                first.get_or_insert(error);
                None
            }
        }
    };
    if let Some(base) = repository.bases.iter().cloned().find_map(&mut attempt) {
        return Ok(base);
    }
    let Some(url) = &repository.mirror_list else {
        return Err(first.unwrap_or_else(|| nothing(&repository.id)));
    };
    let list = access.bytes(url, MAX_LIST)?;
    let bases = mirrors(&list);
    let found = bases.into_iter().take(MOST).find_map(&mut attempt);
    found.ok_or_else(|| first.unwrap_or_else(|| nothing(url)))
}

fn nothing(what: &str) -> FetchError {
    FetchError::Address { url: what.to_owned(), detail: "no mirror is listed".to_owned() }
}

/// The bases a list names, in its order.
fn mirrors(list: &[u8]) -> Vec<String> {
    let usable = |base: &str| base.starts_with("http://") || base.starts_with("https://");
    if list.trim_ascii_start().starts_with(b"<") {
        let urls = metalink(list).into_iter();
        let bases = urls.filter_map(|url| url.strip_suffix(REPOMD).map(str::to_owned));
        return bases.filter(|base| usable(base)).collect();
    }
    let text = String::from_utf8_lossy(list);
    text.lines().map(str::trim).filter(|line| usable(line)).map(str::to_owned).collect()
}

/// The texts of a metalink's `url` elements, up to where it is damaged.
fn metalink(source: impl Read) -> Vec<String> {
    let mut events = Events::new(source);
    let mut urls = Vec::new();
    let mut text = Text::default();
    while let Ok(Some((_, event))) = events.next() {
        match &event {
            Event::Start(_) => drop(text.take()),
            Event::End(tag) if tag.local_name().as_ref() == "url" => urls.push(text.take()),
            event => {
                if text.add(event).is_err() {
                    break;
                }
            }
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_mirrors() {
        let text =
            b"# repo = x\nhttp://a.invalid/os/\n\nrsync://b.invalid/os/\n https://c.invalid/os\n";
        assert_eq!(mirrors(text), ["http://a.invalid/os/", "https://c.invalid/os"]);
        let metalink = br#"<?xml version="1.0"?><metalink><files><file name="repomd.xml"><size>9</size>
            <resources><url protocol="https" preference="100">https://a.invalid/os/repodata/repomd.xml</url>
            <url protocol="rsync">rsync://b.invalid/os/repodata/repomd.xml</url>
            <url>http://c.invalid/elsewhere.xml</url><url>http://d.invalid/repodata/repomd.xml</url>"#;
        assert_eq!(mirrors(metalink), ["https://a.invalid/os/", "http://d.invalid/"]);
        assert!(mirrors(b"<html>not found</html>").is_empty());
        assert!(mirrors(b"\xff\xfe").is_empty());
    }
}
