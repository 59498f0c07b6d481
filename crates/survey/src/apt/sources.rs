//! `sources.list` in both its forms.

use std::path::{Path, PathBuf};

use super::{AptError, truth};
use crate::trust::Fingerprint;

/// One repository and suite of binary packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The base of the repository: a URL or a path.
    pub base: String,
    /// The suite.
    pub suite: String,
    /// Its components.
    pub components: Vec<String>,
    /// Architectures; empty for the machine's own.
    pub architectures: Vec<String>,
    /// Keys it is to be signed by; empty for all that apt trusts.
    pub signed_by: Vec<SignedBy>,
    /// Whether an index past its end is an error, where the source says so itself.
    pub check_valid_until: Option<bool>,
    /// The file it stands in.
    pub file: PathBuf,
    /// The line it starts at, 1-based.
    pub line: usize,
}

/// What a source names to be signed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedBy {
    /// A keyring file.
    File(PathBuf),
    /// A key.
    Key(Fingerprint),
    /// Keys that stand in the source itself, armored.
    Embedded(String),
}

/// The base in a form that is read here; `None` for others (`cdrom:`, `mirror:`, `tor+http:`).
fn base(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    match scheme {
        "http" | "https" if rest.starts_with("//") => Some(uri.to_owned()),
        // One slash is usual for local repositories.
        "file" | "copy" => Some(format!("file://{}", rest.strip_prefix("//").unwrap_or(rest))),
        _ => None,
    }
}

fn signed_by(text: &str) -> Vec<SignedBy> {
    if text.contains("-----BEGIN PGP PUBLIC KEY BLOCK-----") {
        // Lines of a field that are empty are written as a dot.
        let lines = text.lines().map(str::trim).map(|line| if line == "." { "" } else { line });
        return vec![SignedBy::Embedded(lines.collect::<Vec<_>>().join("\n"))];
    }
    let words = text.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty());
    words
        .filter_map(|word| {
            if word.starts_with('/') {
                return Some(SignedBy::File(word.into()));
            }
            // `!` forbids subkeys, which pins do not need to know.
            word.trim_end_matches('!').parse().ok().map(SignedBy::Key)
        })
        .collect()
}

/// The form with a line for each: `deb [arch=amd64] http://... bookworm main`.
pub(super) fn parse_list(
    path: &Path,
    text: &str,
    sources: &mut Vec<Source>,
) -> Result<(), AptError> {
    for (index, line) in text.lines().enumerate() {
        let wrong =
            |detail: String| Err(AptError::Line { path: path.to_owned(), line: index + 1, detail });
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((kind, rest)) = line.split_once(char::is_whitespace) else {
            if line.is_empty() {
                continue;
            }
            return wrong(format!("expected `deb ADDRESS SUITE COMPONENT`, found `{line}`"));
        };
        if kind != "deb" {
            if kind == "deb-src" {
                continue;
            }
            return wrong(format!("expected `deb` or `deb-src`, found `{kind}`"));
        }
        let mut rest = rest.trim_start();
        let mut options = "";
        if let Some(inside) = rest.strip_prefix('[') {
            let Some((found, behind)) = inside.split_once(']') else {
                return wrong("expected `]`, found the end of the line".to_owned());
            };
            (options, rest) = (found, behind);
        }
        let mut words = rest.split_ascii_whitespace();
        let (Some(uri), Some(suite)) = (words.next(), words.next()) else {
            return wrong("expected an address and a suite".to_owned());
        };
        let Some(base) = base(uri) else { continue };
        let mut source = Source {
            base,
            suite: suite.to_owned(),
            components: words.map(str::to_owned).collect(),
            architectures: Vec::new(),
            signed_by: Vec::new(),
            check_valid_until: None,
            file: path.to_owned(),
            line: index + 1,
        };
        for option in options.split_ascii_whitespace() {
            let Some((name, value)) = option.split_once('=') else { continue };
            match name.trim_end_matches(['+', '-']).to_ascii_lowercase().as_str() {
                "arch" => source.architectures = value.split(',').map(str::to_owned).collect(),
                "signed-by" => source.signed_by = signed_by(value),
                "check-valid-until" => source.check_valid_until = truth(value),
                _ => {}
            }
        }
        // A suite that ends with a slash is a folder without components, which has no kernels of a distribution.
        if !source.suite.ends_with('/') {
            sources.push(source);
        }
    }
    Ok(())
}

/// The form with a paragraph for each: `Types: deb`, `URIs: ...`.
pub(super) fn parse_deb822(
    path: &Path,
    text: &str,
    sources: &mut Vec<Source>,
) -> Result<(), AptError> {
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut start = 1;
    // An empty line at the end closes the last paragraph.
    for (index, line) in text.lines().chain([""]).enumerate() {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            paragraph(path, start, &fields, sources);
            fields.clear();
            continue;
        }
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push('\n');
                value.push_str(line.trim());
            }
            continue;
        }
        let Some((name, value)) = line.split_once(':') else {
            let detail = format!("expected `Field: value`, found `{line}`");
            return Err(AptError::Line { path: path.to_owned(), line: index + 1, detail });
        };
        if fields.is_empty() {
            start = index + 1;
        }
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(())
}

fn paragraph(path: &Path, line: usize, fields: &[(String, String)], sources: &mut Vec<Source>) {
    let field = |name: &str| {
        fields.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value.as_str())
    };
    let words = |name: &str| field(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let on = truth(field("enabled")).unwrap_or(true);
    if !on || !words("types").iter().any(|kind| kind == "deb") {
        return;
    }
    for uri in words("uris") {
        let Some(base) = base(&uri) else { continue };
        for suite in words("suites").into_iter().filter(|suite| !suite.ends_with('/')) {
            sources.push(Source {
                base: base.clone(),
                suite,
                components: words("components"),
                architectures: words("architectures"),
                signed_by: signed_by(field("signed-by")),
                check_valid_until: truth(field("check-valid-until")),
                file: path.to_owned(),
                line,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn never_panics(text: String) {
            let _ = parse_list(Path::new("f"), &text, &mut Vec::new());
            let _ = parse_deb822(Path::new("f"), &text, &mut Vec::new());
        }
    }
}
