//! Every installed kernel, judged.

use fastpath_host::{Evidence, Facts, Installed};
use fastpath_knowledge::{Advisory, Knowledge};

use super::{Judgement, judge};

/// An installed kernel, judged.
#[derive(Clone, Debug)]
pub struct InstalledVerdict<'a> {
    /// The facts.
    pub kernel: &'a Installed,
    /// The judgement.
    pub judgement: Judgement,
    /// Advisories that mark it.
    pub advisories: Vec<&'a Advisory>,
    /// Where its deciding witness says what it says.
    pub source: Option<Evidence>,
    /// Whether it runs.
    pub running: bool,
    /// Whether it boots next; `None` if that cannot be told.
    pub next_boot: Option<bool>,
}

/// Judges one; `asked` is the judgement of the kernel asked about.
pub(crate) fn judge_installed<'a>(
    one: &'a Installed,
    facts: &Facts,
    asked: &Judgement,
    knowledge: &'a Knowledge,
) -> InstalledVerdict<'a> {
    // The kernel asked about has more witnesses than its files.
    let is_asked = facts.kernel.release.as_ref() == Some(&one.release);
    let (judgement, witnesses) = if is_asked {
        (asked.clone(), &facts.kernel.witnesses)
    } else {
        (judge(Some(&one.release), &one.witnesses, false, knowledge), &one.witnesses)
    };
    InstalledVerdict {
        kernel: one,
        advisories: judgement
            .advisories
            .iter()
            .map(|&index| &knowledge.advisories[index])
            .collect(),
        source: judgement.decides.map(|index| witnesses[index].evidence()),
        judgement,
        running: facts.kernel.running.as_ref() == Some(&one.release),
        next_boot: facts.kernel.next_boot.release.as_ref().map(|next| *next == one.release),
    }
}
