//! What the machine's own apt is told: where its repositories are, and how it reaches them.
//!
//! For the distribution the machine itself runs, its mirrors are the ones to ask: they are near, and may be the only ones
//! that can be reached. Formats: `sources.list(5)`, `apt.conf(5)`.
//!
//! It does not read `auth.conf`: what needs a password is not read.

mod conf;
mod sources;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fastpath_artifact::http::Proxies;

use crate::debian::Pocket;
use crate::trust::Keyring;
pub use conf::Setting;
pub use sources::{SignedBy, Source};

/// The largest file read.
const LARGEST: u64 = 4 << 20;

/// Why apt's configuration could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AptError {
    /// A file that is there and cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line that is not of the form.
    #[error("{}: line {line}: {detail}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
        /// Expected and found.
        detail: String,
    },
}

/// The configuration of apt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apt {
    /// Repositories of binary packages that are switched on, in apt's order; one for each address and suite.
    pub sources: Vec<Source>,
    /// Settings of `apt.conf`, in apt's order: the last of one name counts.
    pub settings: Vec<Setting>,
}

impl Apt {
    /// Reads `etc/apt` below `root`. A machine without apt has an empty one.
    ///
    /// # Errors
    ///
    /// An [`AptError`].
    pub fn read(root: &Path) -> Result<Self, AptError> {
        let folder = root.join("etc/apt");
        let mut apt = Self::default();
        let mut files = listed(&folder.join("apt.conf.d"), |name| {
            !name.contains('.') || has_ending(name, "conf")
        })?;
        files.push(folder.join("apt.conf"));
        for path in files {
            if let Some(text) = text(&path)? {
                conf::parse(&path, &text, &mut apt.settings)?;
            }
        }
        let mut files = vec![folder.join("sources.list")];
        files.extend(listed(&folder.join("sources.list.d"), |name| {
            has_ending(name, "list") || has_ending(name, "sources")
        })?);
        for path in files {
            let Some(text) = text(&path)? else { continue };
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if has_ending(name, "sources") {
                sources::parse_deb822(&path, &text, &mut apt.sources)?;
            } else {
                sources::parse_list(&path, &text, &mut apt.sources)?;
            }
        }
        Ok(apt)
    }

    /// A setting by its name, `Acquire::http::Proxy`; case does not matter.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let mut found = self.settings.iter().rev();
        found
            .find(|setting| setting.name.eq_ignore_ascii_case(name))
            .map(|setting| setting.value.as_str())
    }

    /// Whether an index past its end is an error, unless a source says otherwise.
    pub fn checks_valid_until(&self) -> bool {
        let value = self.setting("Acquire::Check-Valid-Until");
        value.and_then(truth).unwrap_or(true)
    }

    /// Adds the keys that sources name or hold. Which of them count is pinned elsewhere; one that cannot be read counts for
    /// nothing.
    pub fn add_keys(&self, keyring: &mut Keyring) {
        for source in &self.sources {
            for signed_by in &source.signed_by {
                match signed_by {
                    SignedBy::File(path) => drop(keyring.add(path)),
                    SignedBy::Embedded(text) => keyring.add_bytes(&source.file, text.as_bytes()),
                    SignedBy::Key(_) => {}
                }
            }
        }
    }

    /// The proxies apt uses, where it is told of any; else those of the environment.
    pub fn proxies(&self, environment: Proxies) -> Proxies {
        let own = |scheme: &str| {
            let value = self.setting(&format!("Acquire::{scheme}::Proxy"))?;
            (!value.is_empty()).then(|| value.to_owned())
        };
        // As for apt: what is said for http holds for https, if nothing else is said for that.
        let http = own("http");
        Proxies {
            https: own("https").or_else(|| http.clone()).or(environment.https),
            http: http.or(environment.http),
            ..environment
        }
    }

    /// Where to look for suites of a distribution, of which the machine may have other releases configured: a suite that is
    /// configured comes from there, another from where a suite of its kind does (security fixes and the rest have
    /// repositories of their own). A suite for which there is no mirror is left without bases.
    ///
    /// `distribution` is `debian` or `ubuntu`, the name under which mirrors keep it.
    pub fn pockets(
        &self,
        distribution: &str,
        suites: &[String],
        components: &[String],
        arch: &str,
    ) -> Vec<Pocket> {
        let pocket = |suite: &String| {
            let fitting = |exact: bool| {
                let sources = self.sources.iter().filter(move |source| {
                    let same = source.suite == *suite;
                    let kind = is_security(&source.suite) == is_security(suite);
                    components.iter().all(|component| source.components.contains(component))
                        && (source.architectures.is_empty()
                            || source.architectures.iter().any(|a| a == arch))
                        && if exact { same } else { kind }
                        && is_of(&source.base, distribution)
                });
                sources.collect::<Vec<&Source>>()
            };
            let mut sources = fitting(true);
            if sources.is_empty() {
                sources = fitting(false);
            }
            let check = sources.first().and_then(|source| source.check_valid_until);
            let mut bases: Vec<String> = Vec::new();
            for source in sources {
                if !bases.contains(&source.base) {
                    bases.push(source.base.clone());
                }
            }
            Pocket {
                bases,
                suite: suite.clone(),
                components: components.to_vec(),
                arch: arch.to_owned(),
                check_valid_until: check.unwrap_or_else(|| self.checks_valid_until()),
            }
        };
        suites.iter().map(pocket).collect()
    }
}

/// Whether a suite holds security fixes: `bookworm-security`, `buster/updates`.
fn is_security(suite: &str) -> bool {
    suite.ends_with("-security") || suite.ends_with("/updates")
}

/// Whether a repository is one of the distribution's own, by the last part of its path: mirrors keep the name (`debian`,
/// `debian-security`), and repositories of others, which use the same suites, have other ones.
fn is_of(base: &str, distribution: &str) -> bool {
    let last = base.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    last.strip_prefix(distribution).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == ending)
}

/// `yes` and `no` in all the ways apt takes them.
fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "with" | "on" | "enable" | "1" => Some(true),
        "no" | "false" | "without" | "off" | "disable" | "0" => Some(false),
        _ => None,
    }
}

/// Files of a folder that apt reads, by name.
fn listed(folder: &Path, fits: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, AptError> {
    let failed = |source| AptError::File { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if plain && !name.is_empty() && !name.starts_with('.') && fits(name) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The text of a file; `None` if there is none.
fn text(path: &Path) -> Result<Option<String>, AptError> {
    let failed = |source| AptError::File { path: path.to_owned(), source };
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > LARGEST => {
            Err(failed(io::Error::other(format!("expected at most {LARGEST} bytes"))))
        }
        Ok(_) => {
            let bytes = fs::read(path).map_err(failed)?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
