//! `fastpath ais-check`.

use std::path::Path;

use fastpath_host::{Asked, DirTree, Scope, gather_layers};
use fastpath_report::{AisCheck, AisSystem, AisVerdicts};
use fastpath_verdict::Layer;

use crate::args::{AisCheckArgs, KnowledgeArgs};
use crate::{output, root};

pub(crate) fn run(args: &AisCheckArgs) -> anyhow::Result<u8> {
    let knowledge = root::knowledge(&KnowledgeArgs { knowledge: Vec::new() })?;
    let tree = DirTree::open(Path::new("/"))?;
    let variables = super::check::environment(true);
    let facts = gather_layers(&tree, &Asked::Running, Scope::ALL, &variables);
    let layers = [Layer::Kernel, Layer::Driver, Layer::Runtime, Layer::Path, Layer::Volume];
    let check = fastpath_verdict::check(&facts, &knowledge, &layers);
    let verdicts = AisVerdicts {
        overall: (check.verdict, check.layer),
        kernel: (check.kernel.verdict, check.kernel.reason),
        driver: check.driver.as_ref(),
        runtime: check.runtime.as_ref(),
        volumes: check.volumes.as_ref(),
    };
    // No file is made to try: AMD's tool does, on every mount.
    let answer = AisCheck::new(system(), &facts, &verdicts, &knowledge, |_| None);
    if !args.quiet {
        output::data(&answer.text(args.verbose))?;
    }
    if let Some(warning) = answer.warning() {
        output::note(&warning);
    }
    if !args.quiet {
        for line in answer.differences(&facts, &verdicts) {
            output::note(&format!("note: {line}"));
        }
    }
    Ok(answer.exit_code(check.verdict))
}

/// This machine, as `uname` has it.
fn system() -> AisSystem {
    let uname = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    AisSystem {
        sysname: text(uname.sysname()),
        nodename: text(uname.nodename()),
        release: text(uname.release()),
        version: text(uname.version()),
        machine: text(uname.machine()),
    }
}
