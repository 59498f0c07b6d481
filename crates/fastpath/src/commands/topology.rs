//! `fastpath topology`.

use std::collections::BTreeMap;

use fastpath_host::{Asked, Scope, gather_layers};
use fastpath_verdict::Layer;

use crate::args::{TopologyArgs, TopologyFormat};
use crate::{output, root};

pub(crate) fn run(args: &TopologyArgs) -> anyhow::Result<u8> {
    let knowledge = root::knowledge(&args.knowledge)?;
    let root = root::open(&args.root)?;
    if let Some(note) = root.note() {
        output::note(&note);
    }
    let scope = Scope { path: true, ..Scope::default() };
    let facts = gather_layers(root.tree(), &Asked::Running, scope, &BTreeMap::new());
    let check = fastpath_verdict::check(&facts, &knowledge, &[Layer::Path]);
    let paths = check.paths.as_ref().map_or(&[][..], |paths| &paths.paths);
    let pci = facts.pci.as_ref().ok_or_else(|| anyhow::anyhow!("the PCI devices were not read"))?;
    output::data(&match args.format {
        TopologyFormat::Text => fastpath_report::topology_text(pci, paths, output::width()),
        TopologyFormat::Svg => fastpath_report::topology_svg(pci, paths),
    })?;
    Ok(0)
}
