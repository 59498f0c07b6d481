//! `fastpath check`.

use fastpath_host::{Asked, gather};
use fastpath_knowledge::Release;

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
    let check = fastpath_verdict::check(&facts, &knowledge);
    if !args.quiet {
        output::data(&match args.format {
            Format::Text => fastpath_report::check_text(&check, args.verbose),
            Format::Json => fastpath_report::check_json(&check),
        })?;
    }
    Ok(check.verdict.exit_code())
}
