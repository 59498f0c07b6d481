//! `cargo xtask generate`: files that follow from the code.
//!
//! A run gives the whole content of every such file, from the same definitions the program uses, with no date and nothing
//! of the machine in it. Directories listed in [`DIRECTORIES`] hold nothing else: what is no longer generated is removed.

mod completions;
mod documents;
mod man;
mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The command that brings every generated file up to date.
const COMMAND: &str = "cargo xtask generate";

/// Directories with nothing but generated files.
const DIRECTORIES: [&str; 3] = ["docs/man", "docs/completions", "docs/schema"];

/// Contents by path below the repository.
type Files = BTreeMap<PathBuf, String>;

/// How a file differs from what would be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stale {
    /// It is not there.
    Missing,
    /// Its content is another.
    Changed,
    /// It is there, and nothing generates it.
    Leftover,
}

impl Stale {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Changed => "out of date",
            Self::Leftover => "no longer generated",
        }
    }
}

/// Writes, or compares if `check`; whether everything is as it should be.
pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<bool> {
    let files = files(root)?;
    let stale = compare(root, &files)?;
    if check {
        for (path, stale) in &stale {
            println!("{}: {}; refresh it with `{COMMAND}`", path.display(), stale.as_str());
        }
        if stale.is_empty() {
            println!("{} generated files are up to date", files.len());
        }
        return Ok(stale.is_empty());
    }
    for (path, kind) in &stale {
        write(root, path, files.get(path))?;
        let done = if *kind == Stale::Leftover { "removed" } else { "wrote" };
        println!("{done} {}", path.display());
    }
    println!("{} generated files, {} changed", files.len(), stale.len());
    Ok(true)
}

/// The checked-in completion script of a shell, below the repository.
pub(crate) fn completion_script(shell: &str) -> Option<&'static str> {
    let mut scripts = completions::SCRIPTS.into_iter();
    scripts.find(|(it, _)| it.to_string() == shell).map(|(_, path)| path)
}

/// The checked-in man pages, below the repository.
pub(crate) fn man_pages(root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    list(root, Path::new("docs/man"))
}

/// Every generated file.
fn files(root: &Path) -> anyhow::Result<Files> {
    let mut files = Files::new();
    files.extend(man::pages()?);
    files.extend(completions::scripts()?);
    for (name, schema) in fastpath_report::json::schemas() {
        files.insert(Path::new("docs/schema").join(name), schema);
    }
    files.extend(documents::refreshed(root)?);
    Ok(files)
}

/// What differs on disk, in order of path.
fn compare(root: &Path, files: &Files) -> anyhow::Result<BTreeMap<PathBuf, Stale>> {
    let mut stale = BTreeMap::new();
    for (path, content) in files {
        match fs::read(root.join(path)) {
            Ok(found) if found == content.as_bytes() => {}
            Ok(_) => drop(stale.insert(path.clone(), Stale::Changed)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                stale.insert(path.clone(), Stale::Missing);
            }
            Err(error) => return Err(error).context(path.display().to_string()),
        }
    }
    for directory in DIRECTORIES.map(Path::new) {
        let there = list(root, directory)?;
        stale.extend(
            there
                .into_iter()
                .filter(|path| !files.contains_key(path))
                .map(|p| (p, Stale::Leftover)),
        );
    }
    Ok(stale)
}

/// Paths of everything in a directory, below the repository; nothing if there is no such directory.
fn list(root: &Path, directory: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let entries = match fs::read_dir(root.join(directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error).context(directory.display().to_string()),
    };
    let paths = entries.map(|entry| Ok(directory.join(entry?.file_name())));
    paths.collect::<io::Result<_>>().context(directory.display().to_string())
}

/// Writes a file, or removes it if it has no content.
fn write(root: &Path, path: &Path, content: Option<&String>) -> anyhow::Result<()> {
    let full = root.join(path);
    let result = match content {
        Some(content) => full
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&full, content)),
        None => fs::remove_file(&full),
    };
    result.with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_changed_and_leftover_files_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let man = Path::new("docs/man");
        let files: Files = ["same.1", "changed.1", "missing.1"]
            .map(|name| (man.join(name), name.to_owned()))
            .into_iter()
            .collect();
        write(root.path(), &man.join("same.1"), Some(&"same.1".to_owned())).unwrap();
        write(root.path(), &man.join("changed.1"), Some(&"old".to_owned())).unwrap();
        write(root.path(), &man.join("leftover.1"), Some(&"old".to_owned())).unwrap();

        let stale = compare(root.path(), &files).unwrap();

        let expected = BTreeMap::from([
            (man.join("changed.1"), Stale::Changed),
            (man.join("leftover.1"), Stale::Leftover),
            (man.join("missing.1"), Stale::Missing),
        ]);
        assert_eq!(stale, expected);

        for path in stale.keys() {
            write(root.path(), path, files.get(path)).unwrap();
        }
        assert_eq!(compare(root.path(), &files).unwrap(), BTreeMap::new());
    }
}
