//! `fastpath check`.

use std::path::Path;

use fastpath_host::{Asked, gather};
use fastpath_knowledge::Release;
use fastpath_verdict::Check;

use crate::args::{CheckArgs, Format};
use crate::error::Hinted;
use crate::{output, root};

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let asked = match &args.kernel {
        None => Asked::Running,
        Some(text) => Asked::Release(Release::new(text).ok_or_else(|| Hinted {
            message: format!("`{text}` is no kernel release"),
            hint: "give it as `uname -r` prints it, for example 6.8.0-138-generic".to_owned(),
        })?),
    };
    let knowledge = root::knowledge(&args.knowledge)?;
    let tree = root::open(&args.root)?;
    let facts = gather(tree.as_ref(), &asked);
    let mut check = fastpath_verdict::check(&facts, &knowledge);
    if let Some(root) = &args.root.root {
        aim(&mut check, root);
    }
    if !args.quiet {
        output::data(&match args.format {
            Format::Text => fastpath_report::check_text(&check, args.verbose),
            Format::Json => fastpath_report::check_json(&check),
        })?;
    }
    Ok(check.verdict.exit_code())
}

/// Makes the advice to run the program again speak of the root that was read: without it the inspector's own host would
/// be judged.
fn aim(check: &mut Check<'_>, root: &Path) {
    let hints = check.findings.iter_mut().filter_map(|finding| finding.hint.as_mut());
    for command in hints.flat_map(|hint| hint.commands.iter_mut()) {
        if command.contains("fastpath check") && !command.contains("--root") {
            command.push_str(" --root ");
            command.push_str(&quoted(&root.to_string_lossy()));
        }
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
