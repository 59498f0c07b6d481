//! From arguments to an opened root and complete knowledge.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fastpath_host::snapshot::Replay;
use fastpath_host::{DirTree, Tree};
use fastpath_knowledge::Knowledge;

use crate::args::{KnowledgeArgs, RootArgs};
use crate::output;

/// Where an administrator puts knowledge for every user.
const KNOWLEDGE_DIRECTORY: &str = "/etc/fastpath/knowledge.d";

/// Where a program's environment names one more knowledge file, for the runtime and the tools alike.
const KNOWLEDGE_VARIABLE: &str = "HIPFILE_KNOWLEDGE";

/// More than any knowledge file.
const KNOWLEDGE_LIMIT: u64 = 4 << 20;

/// An opened root.
pub(crate) enum Root {
    Directory(DirTree),
    Snapshot(Replay),
}

impl Root {
    pub(crate) fn tree(&self) -> &dyn Tree {
        match self {
            Self::Directory(tree) => tree,
            Self::Snapshot(replay) => replay,
        }
    }

    /// What to know about a snapshot before reading on.
    pub(crate) fn note(&self) -> Option<String> {
        let Self::Snapshot(replay) = self else { return None };
        let meta = replay.meta();
        let user =
            if meta.euid == 0 { "as root".to_owned() } else { format!("as user {}", meta.euid) };
        Some(format!("note: snapshot taken {} {user} by fastpath {}", meta.time, meta.tool))
    }
}

/// Opens the root that was asked for.
pub(crate) fn open(args: &RootArgs) -> anyhow::Result<Root> {
    match &args.snapshot {
        Some(file) if file == Path::new("-") => {
            let replay = Replay::from_reader(std::io::stdin().lock());
            Ok(Root::Snapshot(replay.context("standard input")?))
        }
        Some(file) => {
            let replay = Replay::open(file).with_context(|| file.display().to_string())?;
            Ok(Root::Snapshot(replay))
        }
        None => {
            let root = args.root.as_deref().unwrap_or(Path::new("/"));
            Ok(Root::Directory(DirTree::open(root)?))
        }
    }
}

/// The embedded knowledge and everything that adds to it: the administrator's files, what a survey has read since, and the
/// files that were named.
pub(crate) fn knowledge(args: &KnowledgeArgs) -> anyhow::Result<Knowledge> {
    let mut knowledge = Knowledge::embedded()?;
    let variable = std::env::var_os(KNOWLEDGE_VARIABLE).filter(|value| !value.is_empty());
    if let Some(path) = fastpath_survey::refresh_path().filter(|path| path.is_file()) {
        let refreshed = read_knowledge(&path)
            .and_then(|text| Ok(knowledge.extend(&path.display().to_string(), &text)?));
        // It only brings advice up to date, and the next survey writes it anew.
        if let Err(error) = refreshed {
            let why = crate::error::line(&error);
            output::note(&format!(
                "warning: {why}; it is not used, and `fastpath survey` writes it anew"
            ));
        }
    }
    let files = installed_knowledge()
        .into_iter()
        .chain(variable.map(PathBuf::from))
        .chain(args.knowledge.clone());
    for file in files {
        let name = file.display().to_string();
        let text = read_knowledge(&file).with_context(|| name.clone())?;
        knowledge.extend(&name, &text)?;
    }
    Ok(knowledge)
}

fn read_knowledge(file: &Path) -> anyhow::Result<String> {
    let kind = std::fs::metadata(file)?.file_type();
    anyhow::ensure!(kind.is_file(), "not a regular file; expected a knowledge file in TOML");
    let mut text = String::new();
    std::fs::File::open(file)?.take(KNOWLEDGE_LIMIT + 1).read_to_string(&mut text)?;
    let small = u64::try_from(text.len()).is_ok_and(|len| len <= KNOWLEDGE_LIMIT);
    anyhow::ensure!(
        small,
        "larger than {KNOWLEDGE_LIMIT} bytes; expected a knowledge file in TOML"
    );
    Ok(text)
}

fn installed_knowledge() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(KNOWLEDGE_DIRECTORY).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}
