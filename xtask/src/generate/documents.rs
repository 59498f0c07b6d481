//! Parts of hand-written Markdown that follow from the code.
//!
//! A part stands between `<!-- generated:NAME -->` and `<!-- /generated -->`, each on a line of its own. README.md and
//! the pages directly in `docs/` may have such parts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use fastpath_knowledge::Knowledge;

use super::{Files, list, reference};

const OPEN: &str = "<!-- generated:";
const CLOSE: &str = "<!-- /generated -->";

/// A host whose answer shows what the program is for: the running kernel will not do, an installed one will.
const TRANSCRIPT_HOST: &str = "tests/hosts/ubuntu-2204-ga-hwe-installed/root";

/// Every document with generated parts, these made anew.
pub(super) fn refreshed(root: &Path) -> anyhow::Result<Files> {
    let mut files = Files::new();
    for path in documents(root)? {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(root.join(&path)).with_context(|| name.clone())?;
        if text.contains(OPEN) {
            let text = refresh(&text, |part| content(root, part)).context(name)?;
            files.insert(path, text);
        }
    }
    Ok(files)
}

fn documents(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let pages = list(root, Path::new("docs"))?;
    let pages = pages.into_iter().filter(|path| path.extension().is_some_and(|it| it == "md"));
    Ok(std::iter::once(PathBuf::from("README.md")).chain(pages).collect())
}

/// What belongs into a part.
fn content(root: &Path, part: &str) -> anyhow::Result<String> {
    Ok(match part {
        "commands" => reference::commands_table(),
        "exit-codes" => reference::exit_codes_table(),
        "environment" => reference::environment_table(),
        "matrix" => fastpath_report::matrix_markdown(&fastpath_verdict::matrix(
            &Knowledge::embedded()?,
            &[],
        )),
        "transcript" => {
            transcript(root, &["check", "--layer", "kernel", "--root", TRANSCRIPT_HOST])?
        }
        _ => bail!(
            "there is no part `{part}`; there are commands, environment, exit-codes, matrix, transcript"
        ),
    })
}

/// Replaces what stands between the marks.
fn refresh(
    text: &str,
    mut content: impl FnMut(&str) -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    let mut out = String::new();
    // Where a part was opened that is not closed yet.
    let mut open: Option<(usize, &str)> = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(part) = line.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(" -->")) {
            ensure!(open.is_none(), "line {number}: a part inside a part");
            open = Some((number, part));
            let content = content(part).with_context(|| format!("line {number}"))?;
            let _ = write!(out, "{line}\n\n{}\n\n{CLOSE}\n", content.trim_end());
        } else if line == CLOSE {
            ensure!(open.take().is_some(), "line {number}: no part to close");
        } else if open.is_none() {
            out.push_str(line);
            out.push('\n');
        }
    }
    if let Some((number, part)) = open {
        bail!("line {number}: the part `{part}` is not closed by `{CLOSE}`");
    }
    Ok(out)
}

/// What the program prints for these arguments, as seen in a terminal at the top of the repository.
fn transcript(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    // Not by its path: a build may have put another file there while this one runs.
    let output = Command::new("/proc/self/exe")
        .arg("fastpath")
        .args(arguments)
        .current_dir(root)
        .env_clear()
        .output()?;
    let errors = String::from_utf8(output.stderr)?;
    ensure!(errors.is_empty(), "fastpath {}: {errors}", arguments.join(" "));
    let code = output.status.code().context("the program was killed")?;
    Ok(format!(
        "```console\n$ fastpath {}\n{}$ echo $?\n{code}\n```",
        arguments.join(" "),
        String::from_utf8(output.stdout)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(part: &str) -> anyhow::Result<String> {
        ensure!(part == "part", "unknown");
        Ok("new\n".to_owned())
    }

    #[test]
    fn a_part_is_replaced_and_the_rest_is_kept() {
        let text = "before\n<!-- generated:part -->\nold\n<!-- /generated -->\nafter\n";
        let expected = "before\n<!-- generated:part -->\n\nnew\n\n<!-- /generated -->\nafter\n";
        let once = refresh(text, fill).unwrap();
        assert_eq!(once, expected);
        assert_eq!(refresh(&once, fill).unwrap(), expected);
    }

    #[test]
    fn broken_marks_are_named_with_their_line() {
        for (text, message) in [
            ("a\n<!-- generated:part -->\n", "line 2: the part `part` is not closed"),
            ("<!-- /generated -->\n", "line 1: no part to close"),
            ("<!-- generated:part -->\n<!-- generated:part -->\n", "line 2: a part inside a part"),
            ("<!-- generated:other -->\n<!-- /generated -->\n", "line 1: unknown"),
        ] {
            let error = format!("{:#}", refresh(text, fill).unwrap_err());
            assert!(error.starts_with(message), "{error}");
        }
    }
}
