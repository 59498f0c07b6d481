//! The support matrix, judged: one line for each published row.

use fastpath_knowledge::{Advisory, Effect, Knowledge, Published, Row, Target};

use crate::hint::Hint;
use crate::kernel::judge_release;
use crate::words::Verdict;

/// A row of the matrix, judged.
#[derive(Clone, Debug)]
pub struct MatrixRow<'a> {
    /// The row as published.
    pub row: &'a Row,
    /// The table it stands in.
    pub published: &'a Published,
    /// Its target, if the catalogue has it.
    pub target: Option<&'a Target>,
    /// The kernel's verdict.
    pub verdict: Verdict,
    /// Advisories that mark the kernel, with what each does to it.
    pub advisories: Vec<(&'a Advisory, Effect)>,
    /// What a person on this row can do, best first; empty for a supported kernel.
    pub hints: Vec<Hint>,
}

/// Judges every published row, in published order.
pub fn matrix(knowledge: &Knowledge) -> Vec<MatrixRow<'_>> {
    knowledge.rows().map(|(published, row)| judge_row(published, row, knowledge)).collect()
}

fn judge_row<'a>(
    published: &'a Published,
    row: &'a Row,
    knowledge: &'a Knowledge,
) -> MatrixRow<'a> {
    let verdict = judge_release(&row.kernel, row.p2pdma, knowledge);
    let target = knowledge.target(&row.target);
    let (os, version) =
        target.map_or(("", ""), |target| (target.os_id.as_str(), target.os_version.as_str()));
    let remedies = knowledge.remedies_for(&row.kernel, verdict.as_str(), os, version);
    MatrixRow {
        row,
        published,
        target,
        verdict,
        advisories: knowledge
            .advisories_for(&row.kernel)
            .map(|advisory| (advisory, advisory.effect_on_release()))
            .collect(),
        hints: remedies.map(|remedy| Hint::from_remedy(remedy, knowledge)).collect(),
    }
}
