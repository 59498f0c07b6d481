//! From arguments to an opened root and complete knowledge.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fastpath_host::snapshot::Replay;
use fastpath_host::{DirTree, Tree};
use fastpath_knowledge::Knowledge;

use crate::args::{KnowledgeArgs, RootArgs};

/// Where an administrator puts knowledge for every user.
const KNOWLEDGE_DIRECTORY: &str = "/etc/fastpath/knowledge.d";

/// Where a program's environment names one more knowledge file, for the runtime and the tools alike.
const KNOWLEDGE_VARIABLE: &str = "HIPFILE_KNOWLEDGE";

/// Opens the root that was asked for.
pub(crate) fn open(args: &RootArgs) -> anyhow::Result<Box<dyn Tree>> {
    if let Some(file) = &args.snapshot {
        let replay = Replay::open(file).with_context(|| file.display().to_string())?;
        return Ok(Box::new(replay));
    }
    let root = args.root.as_deref().unwrap_or(Path::new("/"));
    Ok(Box::new(DirTree::open(root)?))
}

/// The embedded knowledge and everything that adds to it.
pub(crate) fn knowledge(args: &KnowledgeArgs) -> anyhow::Result<Knowledge> {
    let mut knowledge = Knowledge::embedded()?;
    let variable = std::env::var_os(KNOWLEDGE_VARIABLE).filter(|value| !value.is_empty());
    let files = installed_knowledge()
        .into_iter()
        .chain(variable.map(PathBuf::from))
        .chain(args.knowledge.clone());
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&file).with_context(|| name.clone())?;
        knowledge.extend(&name, &text)?;
    }
    Ok(knowledge)
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
