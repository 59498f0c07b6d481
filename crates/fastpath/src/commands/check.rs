//! `fastpath check`.

use std::ffi::OsStr;

use fastpath_host::{Asked, gather};
use fastpath_knowledge::Release;
use fastpath_verdict::{Check, Layer};

use crate::args::{CheckArgs, Format, LayerArg};
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
    let root = root::open(&args.root)?;
    let facts = gather(root.tree(), &asked);
    let layers: Vec<Layer> = args.layer.iter().map(|LayerArg::Kernel| Layer::Kernel).collect();
    let mut check = fastpath_verdict::check(&facts, &knowledge, &layers);
    aim(&mut check, args);
    if !args.quiet {
        if let Some(note) = root.note() {
            output::note(&note);
        }
        output::data(&match args.format {
            Format::Text => fastpath_report::check_text(&check, args.verbose, output::width()),
            Format::Json => fastpath_report::check_json(&check),
        })?;
    }
    Ok(check.verdict.exit_code())
}

/// Makes the advice to run the program again ask the question that was asked, of the host that was asked about: pasted
/// as it is, it would judge another kernel or the inspector's own host.
fn aim(check: &mut Check<'_>, args: &CheckArgs) {
    let hints = check.findings.iter_mut().filter_map(|finding| finding.hint.as_mut());
    for command in hints.flat_map(|hint| hint.commands.iter_mut()) {
        if !command.contains("fastpath check") || command.contains("--root") {
            continue;
        }
        let as_root = command.starts_with("sudo fastpath");
        if let Some(kernel) = args.kernel.as_ref().filter(|_| !command.contains("--kernel")) {
            command.push_str(" --kernel ");
            command.push_str(&quoted(OsStr::new(kernel)));
        }
        match (&args.root.root, &args.root.snapshot) {
            (Some(root), _) => {
                command.push_str(" --root ");
                command.push_str(&quoted(root.as_os_str()));
            }
            // What could not be read when the snapshot was taken cannot be read from it.
            (None, Some(_)) if as_root => "sudo fastpath snapshot --force".clone_into(command),
            (None, Some(snapshot)) => {
                command.push_str(" --snapshot ");
                command.push_str(&quoted(snapshot.as_os_str()));
            }
            (None, None) => {}
        }
    }
}

/// A word for a shell.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
