//! `fastpath kernels`.

use fastpath_host::{Asked, gather};

use crate::args::{Format, KernelsArgs};
use crate::{output, root};

pub(crate) fn run(args: &KernelsArgs) -> anyhow::Result<u8> {
    let knowledge = root::knowledge(&args.knowledge)?;
    let tree = root::open(&args.root)?;
    let facts = gather(tree.as_ref(), &Asked::Running);
    let check = fastpath_verdict::check(&facts, &knowledge);
    output::data(&match args.format {
        Format::Text => fastpath_report::kernels_text(&check),
        Format::Json => fastpath_report::kernels_json(&check),
    })?;
    Ok(0)
}
