//! A package database: a tar of one `desc` file for each package.
//!
//! ```text
//! linux-6.17.9.arch1-1/desc:
//!   %FILENAME%
//!   linux-6.17.9.arch1-1-x86_64.pkg.tar.zst
//!
//!   %NAME%
//!   linux
//!   ...
//! ```
//!
//! Format: <https://gitlab.archlinux.org/pacman/pacman/-/blob/master/lib/libalpm/be_sync.c>, and what `repo-add` writes.

use std::collections::BTreeMap;
use std::io::Read;

/// One `desc`; with its signature in base64 and its list of dependencies it is some kilobytes long.
const MAX_DESC: u64 = 1 << 20;

/// More than any repository has.
const MAX_MEMBERS: u64 = 1_000_000;

/// tar fills up to a multiple of 10 KiB.
const MAX_PADDING: u64 = 1 << 20;

/// The database does not keep to the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damaged {
    pub(super) offset: u64,
    pub(super) detail: String,
}

/// The fields of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Desc {
    fields: BTreeMap<String, String>,
    /// Where it begins in the tar.
    pub(super) offset: u64,
}

impl Desc {
    /// The first line of a field.
    pub(super) fn get(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Keeps the first line of each field; the fields of interest have one. `None` if a field stands there twice.
    fn parse(text: &str, offset: u64) -> Option<Self> {
        let mut fields = BTreeMap::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let field = line.strip_prefix('%').and_then(|line| line.strip_suffix('%'));
            let Some(field) = field else { continue };
            let value = lines.next().unwrap_or_default().trim();
            if fields.insert(field.to_owned(), value.to_owned()).is_some() {
                return None;
            }
        }
        Some(Self { fields, offset })
    }
}

/// The packages called one of `names`, in the order of the database. Read to its end: a database that is cut is no database.
pub(super) fn read(source: impl Read, names: &[&str]) -> Result<Vec<Desc>, Damaged> {
    let mut archive = tar::Archive::new(source);
    let mut found = Vec::new();
    let mut offset = 0;
    let mut count = 0;
    let failed = |offset, error: std::io::Error| Damaged { offset, detail: error.to_string() };
    // Raw: long names and extended headers are not resolved, which would hold them in memory. No `desc` needs them.
    let entries = archive.entries().map_err(|error| failed(0, error))?.raw(true);
    for entry in entries {
        let mut entry = entry.map_err(|error| match count {
            0 => Damaged { offset, detail: format!("expected a tar archive, found none: {error}") },
            _ => failed(offset, error),
        })?;
        offset = entry.raw_header_position();
        count += 1;
        if count > MAX_MEMBERS {
            return Err(Damaged { offset, detail: format!("more than {MAX_MEMBERS} members") });
        }
        if !entry.header().entry_type().is_file() || !entry.path_bytes().ends_with(b"/desc") {
            continue;
        }
        let size = entry.size();
        if size > MAX_DESC {
            let detail = format!("a desc of {size} bytes, expected at most {MAX_DESC}");
            return Err(Damaged { offset, detail });
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| failed(offset, error))?;
        if (bytes.len() as u64) < size {
            return Err(Damaged { offset, detail: "it ends inside a desc".into() });
        }
        let text = String::from_utf8_lossy(&bytes);
        let desc = Desc::parse(&text, offset)
            .ok_or_else(|| Damaged { offset, detail: "a desc with a field twice".into() })?;
        match desc.get("NAME") {
            None => return Err(Damaged { offset, detail: "a desc without %NAME%".into() }),
            Some(name) if names.contains(&name) => found.push(desc),
            Some(_) => {}
        }
    }
    // Its end blocks are not the stream's end: only there is its checksum.
    let mut rest = archive.into_inner().take(MAX_PADDING + 1);
    let padding = std::io::copy(&mut rest, &mut std::io::sink());
    if padding.map_err(|error| failed(offset, error))? > MAX_PADDING {
        let detail = format!("more than {MAX_PADDING} bytes behind its last member");
        return Err(Damaged { offset, detail });
    }
    if count == 0 {
        return Err(Damaged { offset, detail: "it has no members".into() });
    }
    Ok(found)
}
