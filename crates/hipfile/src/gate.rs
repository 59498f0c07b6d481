//! The kernel's verdict, before any byte takes the fastpath.

use std::path::{Path, PathBuf};

use fastpath_host::{Asked, Tree, gather};
use fastpath_knowledge::{Advisory, Effect, Knowledge, Release};
use fastpath_verdict::{Verdict, judge, judge_release};

use crate::choose::Reason;
use crate::config::{ACCEPT_ADVISORY, Config};
use crate::log::{Level, Log};

/// Where an administrator puts knowledge for every program.
const KNOWLEDGE_DIRECTORY: &str = "/etc/fastpath/knowledge.d";

/// More than any knowledge file.
const KNOWLEDGE_LIMIT: u64 = 4 << 20;

/// What the kernel layer says, evaluated once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The verdict; `None` if it could not be made.
    pub verdict: Option<Verdict>,
    /// Ids of the blocking advisories that mark the kernel, accepted or not.
    pub advisories: Vec<String>,
    /// Why the fastpath is off; `None` if the kernel allows it.
    pub closed: Option<Reason>,
}

impl Gate {
    /// Judges the kernel seen through `tree`. `uname` is what the kernel calls itself, which no mount can hide.
    pub(crate) fn evaluate(
        tree: &dyn Tree,
        uname: Option<&str>,
        knowledge_directory: Option<&Path>,
        config: &Config,
        log: &Log,
    ) -> Self {
        let directory = knowledge_directory.unwrap_or(Path::new(KNOWLEDGE_DIRECTORY));
        let (knowledge, whole) = match knowledge(directory, config, log) {
            Ok(found) => found,
            Err(error) => {
                log.say(Level::Warn, || format!("{error}; the fastpath is off"));
                return Self {
                    verdict: None,
                    advisories: Vec::new(),
                    closed: Some(Reason::Knowledge),
                };
            }
        };
        let is_known = |id: &&String| knowledge.advisories.iter().any(|known| known.id == **id);
        // One that nobody has is a slip of the pen, unless it is in a file that cannot be read.
        for id in config.accepted.iter().filter(|id| whole && !is_known(id)) {
            log.say(Level::Warn, || format!("{ACCEPT_ADVISORY}: there is no advisory `{id}`"));
        }
        let uname = uname.and_then(Release::new);
        let mut kernel = gather(tree, &Asked::Running).kernel;
        if kernel.release.is_none()
            && let Some(release) = &uname
        {
            kernel = gather(tree, &Asked::Release(release.clone())).kernel;
        }
        let elsewhere = !kernel.other_configs.is_empty();
        let judged = judge(kernel.release.as_ref(), &kernel.witnesses, elsewhere, &knowledge);
        // A tree may name another kernel than the one that runs: the worse of the two counts. A kernel that can not do it at all
        // stays that, whatever advisory is accepted.
        let mut verdict = judged.verdict;
        if verdict != Verdict::Unsupported
            && let Some(release) = &uname
            && judge_release(release, None, &knowledge) == Verdict::Blocked
        {
            verdict = Verdict::Blocked;
        }
        let releases = [kernel.release.as_ref(), uname.as_ref()];
        let advisories = blocking(&knowledge, &releases);
        let ids: Vec<String> = advisories.iter().map(|advisory| advisory.id.clone()).collect();
        let closed = match verdict {
            Verdict::Unsupported => {
                log.say(Level::Info, || {
                    format!(
                        "the fastpath is off: {} (fastpath explain {})",
                        Reason::Kernel.text(),
                        judged.reason.as_str()
                    )
                });
                Some(Reason::Kernel)
            }
            Verdict::Blocked => blocked(&advisories, config, log),
            Verdict::Supported | Verdict::Unknown => None,
        };
        let closed = closed.or_else(|| (!whole).then_some(Reason::Knowledge));
        Self { verdict: Some(verdict), advisories: ids, closed }
    }
}

/// The blocking advisories that mark any of the releases, each id once.
fn blocking<'a>(knowledge: &'a Knowledge, releases: &[Option<&Release>]) -> Vec<&'a Advisory> {
    let mut found: Vec<&Advisory> = Vec::new();
    for advisory in &knowledge.advisories {
        let marks = releases.iter().flatten().any(|release| advisory.matches(release));
        let is_new = !found.iter().any(|other| other.id == advisory.id);
        if marks && is_new && advisory.effect_on_release() == Effect::Block {
            found.push(advisory);
        }
    }
    found
}

fn blocked(advisories: &[&Advisory], config: &Config, log: &Log) -> Option<Reason> {
    let accepted = |advisory: &&&Advisory| config.accepted.contains(&advisory.id);
    let names = |list: &[&Advisory]| {
        list.iter().map(|advisory| advisory.id.as_str()).collect::<Vec<_>>().join(",")
    };
    let open: Vec<&Advisory> = advisories.iter().filter(|one| !accepted(one)).copied().collect();
    let all = names(advisories);
    let Some(first) = open.first() else {
        log.say(Level::Warn, || {
            format!("the fastpath is used against advisory {all}: data may be corrupted ({ACCEPT_ADVISORY})")
        });
        return None;
    };
    log.say(Level::Warn, || {
        format!(
            "the fastpath is off, advisory {}: {}; I/O takes the fallback ({ACCEPT_ADVISORY}={all} takes the risk)",
            names(&open),
            first.summary
        )
    });
    Some(Reason::Advisory)
}

/// Everything known, and whether every file that adds to it could be read: a file that cannot may hold an advisory.
fn knowledge(
    directory: &Path,
    config: &Config,
    log: &Log,
) -> Result<(Knowledge, bool), fastpath_knowledge::Error> {
    let mut knowledge = Knowledge::embedded()?;
    let (mut files, mut whole) = match list(directory) {
        Ok(files) => (files, true),
        Err(error) => {
            log.say(Level::Warn, || {
                format!("{}: {error}; the fastpath is off", directory.display())
            });
            (Vec::new(), false)
        }
    };
    files.extend(config.knowledge.clone());
    for file in files {
        let name = file.display().to_string();
        let read = read(&file).map_err(|error| format!("{name}: {error}"));
        let added =
            read.and_then(|text| knowledge.extend(&name, &text).map_err(|error| error.to_string()));
        if let Err(error) = added {
            log.say(Level::Warn, || format!("{error}; the fastpath is off"));
            whole = false;
        }
    }
    Ok((knowledge, whole))
}

fn list(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind, Read as _};
    use std::os::unix::fs::OpenOptionsExt as _;
    if !std::fs::metadata(file)?.is_file() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "not a regular file; expected knowledge in TOML",
        ));
    }
    let mut text = String::new();
    // The kernel calls files regular that have nothing to be read yet, as its log.
    let mut options = std::fs::OpenOptions::new();
    let opened = options.read(true).custom_flags(libc::O_NONBLOCK).open(file)?;
    opened.take(KNOWLEDGE_LIMIT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > KNOWLEDGE_LIMIT {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "larger than 4 MiB; expected knowledge in TOML",
        ));
    }
    Ok(text)
}
