//! `fastpath kernels`.

use fastpath_host::{Asked, gather};
use fastpath_verdict::Layer;

use crate::args::{Format, KernelsArgs};
use crate::{output, root};

pub(crate) fn run(args: &KernelsArgs) -> anyhow::Result<u8> {
    let knowledge = root::knowledge(&args.knowledge)?;
    let root = root::open(&args.root)?;
    if let Some(note) = root.note() {
        output::note(&note);
    }
    let facts = gather(root.tree(), &Asked::Running);
    let check = fastpath_verdict::check(&facts, &knowledge, &[Layer::Kernel]);
    output::data(&match args.format {
        Format::Text => fastpath_report::kernels_text(&check),
        Format::Json => fastpath_report::kernels_json(&check),
    })?;
    Ok(0)
}
