//! The whole check of a host: every layer judged, the best route, and what a person should know.

use std::borrow::Cow;

use fastpath_host::Facts;
use fastpath_host::pci::Address;
use fastpath_host::volume::Located;
use fastpath_knowledge::{Advisory, Knowledge, Row};

use crate::driver::{self, DriverVerdict};
use crate::kernel::{Case, InstalledVerdict, Judgement, judge, judge_installed};
use crate::path::{self, PathsVerdict};
use crate::process::ProcessVerdict;
use crate::route::{self, Route};
use crate::runtime::{self, RuntimeVerdict};
use crate::volume::{self, VolumesVerdict};
use crate::words::{Finding, Layer, Reason, Status, Verdict, finding};

/// A host, judged.
#[derive(Clone, Debug)]
pub struct Check<'a> {
    /// The overall verdict: the worst of the kernel, the runtime and the best route, as far as they are judged.
    pub verdict: Verdict,
    /// The first layer that is as bad as that; the first judged one if all is well.
    pub layer: Layer,
    /// The layers that were judged.
    pub layers: Vec<Layer>,
    /// The facts it was made from.
    pub facts: &'a Facts,
    /// The kernel asked about.
    pub kernel: Judgement,
    /// Advisories that mark it.
    pub advisories: Vec<&'a Advisory>,
    /// The row of the matrix that was made with exactly this kernel, if there is one.
    pub tested: Option<&'a Row>,
    /// Every installed kernel, newest first.
    pub installed: Vec<InstalledVerdict<'a>>,
    /// The driver layer, if it was judged.
    pub driver: Option<DriverVerdict>,
    /// The runtime layer, if it was judged.
    pub runtime: Option<RuntimeVerdict>,
    /// The path layer, if it was judged.
    pub paths: Option<PathsVerdict>,
    /// The volume layer, if it was judged.
    pub volumes: Option<VolumesVerdict>,
    /// The best route, if a layer of it was judged.
    pub route: Option<Route>,
    /// The process that was asked about.
    pub process: Option<ProcessVerdict>,
    /// Findings in the order of the layers.
    pub findings: Vec<Finding>,
}

impl Check<'_> {
    /// Adds what is said of one process: if its own settings are worse than the host, they decide.
    pub fn about_process(&mut self, process: ProcessVerdict) {
        if process.verdict.badness() > self.verdict.badness() {
            self.verdict = process.verdict;
            self.layer = Layer::Runtime;
        }
        let at = self.findings.iter().position(|finding| finding.layer > Layer::Runtime);
        let at = at.unwrap_or(self.findings.len());
        self.findings.splice(at..at, process.findings.iter().cloned());
        self.process = Some(process);
    }

    /// Whether a layer was judged.
    pub fn is_judged(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }

    /// The finding that says why the verdict is what it is: in the layer that decides, the first requirement that does not hold.
    pub fn main_finding(&self) -> Option<&Finding> {
        let of_layer = || self.findings.iter().filter(|finding| finding.layer == self.layer);
        let wanted = match self.verdict {
            Verdict::Supported => Status::Pass,
            Verdict::Unknown => Status::Unknown,
            Verdict::Unsupported => Status::Fail,
            Verdict::Blocked => Status::Block,
        };
        // A layer may be fine elsewhere, and wrong on the route that counts: then its finding only warns.
        let on_route = |finding: &&Finding| {
            let route = self.route.as_ref().filter(|route| route.layer == self.layer);
            route.is_some_and(|route| {
                let mut addresses = route.drives.iter().chain(&route.gpu);
                addresses.any(|address| finding.summary.contains(address.as_str()))
            })
        };
        let open = |finding: &&Finding| !matches!(finding.status, Status::Pass | Status::Info);
        of_layer()
            .find(|finding| finding.status == wanted)
            .or_else(|| of_layer().filter(open).find(on_route))
            .or_else(|| of_layer().find(open))
            .or_else(|| of_layer().next())
    }
}

/// What is asked about a host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'a> {
    /// The layers to judge, those that the facts hold.
    pub layers: &'a [Layer],
    /// One GPU instead of all.
    pub gpu: Option<&'a Address>,
    /// One file instead of all volumes.
    pub file: Option<&'a Located>,
}

/// Judges those layers of a host that its facts hold.
pub fn check<'a>(facts: &'a Facts, knowledge: &'a Knowledge, layers: &[Layer]) -> Check<'a> {
    check_for(facts, knowledge, &Question { layers, ..Question::default() })
}

/// Judges what is asked about.
pub fn check_for<'a>(
    facts: &'a Facts,
    knowledge: &'a Knowledge,
    question: &Question<'_>,
) -> Check<'a> {
    let layers = question.layers;
    let kernel = &facts.kernel;
    let elsewhere = !kernel.other_configs.is_empty();
    let judgement = judge(kernel.release.as_ref(), &kernel.witnesses, elsewhere, knowledge);
    let installed: Vec<_> = kernel
        .installed
        .iter()
        .map(|one| judge_installed(one, facts, &judgement, knowledge))
        .collect();
    let is_asked = |layer| layers.contains(&layer);
    // The rules for volumes are those of the driver that is loaded, whether or not it is asked about.
    let pci = facts.pci.as_ref().map(|pci| match question.gpu {
        Some(gpu) => Cow::Owned(pci.with_only(gpu)),
        None => Cow::Borrowed(pci),
    });
    let driver = facts.driver.as_ref().zip(pci.as_deref());
    let driver = driver.map(|(facts, pci)| driver::judge(facts, pci, knowledge));
    let build = driver.as_ref().and_then(|driver| driver.build);
    let driver = driver.filter(|_| is_asked(Layer::Driver));
    let runtime = facts.runtime.as_ref().filter(|_| is_asked(Layer::Runtime));
    let runtime = runtime.map(|facts| runtime::judge(facts, knowledge));
    let paths = pci.as_deref().filter(|_| is_asked(Layer::Path));
    let paths = paths.map(|facts| path::judge(facts, kernel.release.as_ref(), knowledge));
    let volumes = facts.volume.as_ref().filter(|_| is_asked(Layer::Volume));
    let volumes = volumes.map(|facts| {
        let volumes = volume::judge(facts, build, knowledge);
        match question.file {
            Some(file) => volume::about_file(volumes, file, facts, build, knowledge),
            None => volumes,
        }
    });
    let route = route::best(driver.as_ref(), paths.as_ref(), volumes.as_ref());

    let of_route =
        |layer| route.as_ref().filter(|route| route.layer == layer).map(|route| route.verdict);
    let parts = [
        (Layer::Kernel, is_asked(Layer::Kernel).then_some(judgement.verdict)),
        (Layer::Driver, of_route(Layer::Driver)),
        (Layer::Runtime, runtime.as_ref().map(|runtime| runtime.verdict)),
        (Layer::Path, of_route(Layer::Path)),
        (Layer::Volume, of_route(Layer::Volume)),
    ];
    let parts = || parts.into_iter().filter_map(|(layer, verdict)| Some((layer, verdict?)));
    let verdict = parts().map(|(_, verdict)| verdict).max_by_key(|verdict| verdict.badness());
    let verdict = verdict.unwrap_or(Verdict::Unknown);
    let layer = parts().find(|(_, one)| *one == verdict).map_or(Layer::Kernel, |(layer, _)| layer);
    // Under WSL2 there is no driver to be judged, whatever could be read.
    let no_driver = facts.environment.wsl2 && driver.is_some();
    let (verdict, layer) = match verdict {
        Verdict::Supported | Verdict::Unknown if no_driver => (Verdict::Unsupported, Layer::Kernel),
        _ => (verdict, layer),
    };

    let case = Case {
        facts,
        knowledge,
        judgement: &judgement,
        installed: &installed,
        no_driver,
        alone: layers == [Layer::Kernel],
    };
    let mut findings = if is_asked(Layer::Kernel) { case.findings() } else { Vec::new() };
    findings.extend(driver.iter().flat_map(|driver| driver.findings.iter().cloned()));
    findings.extend(runtime.iter().flat_map(|runtime| runtime.findings.iter().cloned()));
    findings.extend(paths.iter().flat_map(|paths| paths.findings.iter().cloned()));
    findings.extend(volumes.iter().flat_map(|volumes| volumes.findings.iter().cloned()));
    // Said once is enough.
    let no_gpu = driver.as_ref().is_some_and(|driver| driver.reason == Reason::NoGpu);
    findings.retain(|finding| !(no_gpu && finding.id == finding::PATH_NO_GPU));
    let judged = [
        (Layer::Kernel, is_asked(Layer::Kernel)),
        (Layer::Driver, driver.is_some()),
        (Layer::Runtime, runtime.is_some()),
        (Layer::Path, paths.is_some()),
        (Layer::Volume, volumes.is_some()),
    ];
    Check {
        verdict,
        layer,
        layers: judged.into_iter().filter(|(_, is)| *is).map(|(layer, _)| layer).collect(),
        facts,
        advisories: judgement
            .advisories
            .iter()
            .map(|&index| &knowledge.advisories[index])
            .collect(),
        tested: kernel.release.as_ref().and_then(|release| knowledge.tested(release)),
        kernel: judgement,
        installed,
        driver,
        runtime,
        paths,
        volumes,
        route,
        process: None,
        findings,
    }
}
