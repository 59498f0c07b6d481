//! The whole check of a host: every layer judged, and what a person should know.

use fastpath_host::Facts;
use fastpath_knowledge::{Advisory, Knowledge, Row};

use crate::kernel::{Case, InstalledVerdict, Judgement, judge, judge_installed};
use crate::words::{Finding, Layer, Verdict};

/// A host, judged.
#[derive(Clone, Debug)]
pub struct Check<'a> {
    /// The overall verdict: the worst of the judged layers.
    pub verdict: Verdict,
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
    /// Findings, the main one first.
    pub findings: Vec<Finding>,
}

/// Judges a host. `layers` restricts what is judged; empty means all there are.
pub fn check<'a>(facts: &'a Facts, knowledge: &'a Knowledge, layers: &[Layer]) -> Check<'a> {
    let kernel = &facts.kernel;
    let elsewhere = !kernel.other_configs.is_empty();
    let judgement = judge(kernel.release.as_ref(), &kernel.witnesses, elsewhere, knowledge);
    let installed: Vec<_> = kernel
        .installed
        .iter()
        .map(|one| judge_installed(one, facts, &judgement, knowledge))
        .collect();
    let no_driver = layers.is_empty() && facts.environment.wsl2;
    let case = Case { facts, knowledge, judgement: &judgement, installed: &installed, no_driver };
    let findings = case.findings();
    Check {
        verdict: overall(judgement.verdict, facts, layers),
        facts,
        advisories: judgement
            .advisories
            .iter()
            .map(|&index| &knowledge.advisories[index])
            .collect(),
        tested: kernel.release.as_ref().and_then(|release| knowledge.tested(release)),
        kernel: judgement,
        installed,
        findings,
    }
}

/// The worst of what is judged. Under WSL2 there is no GPU driver to be judged, whatever the kernel says.
fn overall(kernel: Verdict, facts: &Facts, layers: &[Layer]) -> Verdict {
    let no_driver = layers.is_empty() && facts.environment.wsl2;
    if no_driver && kernel != Verdict::Blocked { Verdict::Unsupported } else { kernel }
}
