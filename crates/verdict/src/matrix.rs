//! The support matrix, judged: one row for each target, from the newest survey or as published.

use std::collections::BTreeMap;

use fastpath_knowledge::{Advisory, Effect, Knowledge, Release};

use crate::hint::Hint;
use crate::kernel::judge_release;
use crate::words::Verdict;

/// A row of the matrix, judged.
#[derive(Clone, Debug)]
pub struct MatrixRow<'a> {
    /// The target, as published, else its catalogue id.
    pub target: String,
    /// The target's id in the catalogue.
    pub id: Option<String>,
    /// The operating system that was inspected.
    pub os: String,
    /// The kernel flavour.
    pub flavour: String,
    /// Its default kernel.
    pub kernel: Release,
    /// Whether that kernel has the option; `None` if that could not be read.
    pub p2pdma: Option<bool>,
    /// The kernel's verdict.
    pub verdict: Verdict,
    /// Advisories that mark the kernel, with what each does to it.
    pub advisories: Vec<(&'a Advisory, Effect)>,
    /// What a person on this row can do, best first; empty for a supported kernel.
    pub hints: Vec<Hint>,
    /// Where the row comes from.
    pub provenance: Provenance,
    /// What was published about the target, if the row is newer than that.
    pub published: Option<(String, bool)>,
}

/// Where a row comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Who said so: the publisher, or `survey`.
    pub origin: String,
    /// Where: a page, or the repository.
    pub url: String,
    /// When it was read, `YYYY-MM-DD` or RFC 3339.
    pub date: String,
    /// How the value was found.
    pub method: String,
    /// What the survey read; `None` for a published row.
    pub reading: Option<Reading>,
}

/// What the survey read for a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The package and its version.
    pub package: String,
    /// Address of the package.
    pub url: String,
    /// Its digest as the index gives it.
    pub hash: Option<String>,
    /// The file inside, and the option's line in it.
    pub member: Option<String>,
    /// 1-based line of the option.
    pub line: Option<u32>,
    /// The option's value in words.
    pub value: String,
    /// `verified`, `partial`, `stale` or `unsigned`.
    pub trust: String,
    /// Companion options by name.
    pub companions: BTreeMap<String, Option<String>>,
    /// How many bytes of the package were read.
    pub bytes_read: u64,
    /// A remark.
    pub note: Option<String>,
}

/// What the survey found for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    /// The target's published name or id.
    pub target: String,
    /// The operating system that was read.
    pub os: String,
    /// The kernel.
    pub kernel: Release,
    /// Whether it has the option; `None` if that could not be read.
    pub p2pdma: Option<bool>,
    /// Where that comes from.
    pub provenance: Provenance,
}

/// Judges every row: published targets in published order, each from the survey where there is something newer, then
/// the other surveyed targets by name.
pub fn matrix<'a>(knowledge: &'a Knowledge, surveyed: &[Surveyed]) -> Vec<MatrixRow<'a>> {
    let mut rows: Vec<MatrixRow<'a>> = Vec::new();
    for (table, row) in knowledge.rows() {
        let newer = surveyed.iter().find(|one| one.target == row.target);
        if rows.iter().any(|known| known.target == row.target) {
            continue;
        }
        let published = Surveyed {
            target: row.target.clone(),
            os: row.os.clone(),
            kernel: row.kernel.clone(),
            p2pdma: Some(row.p2pdma),
            provenance: Provenance {
                origin: table.origin.clone(),
                url: table.url.clone(),
                date: table.date.clone(),
                method: table.method.clone(),
                reading: None,
            },
        };
        let mut judged = judge_row(newer.unwrap_or(&published), knowledge);
        judged.published = newer.map(|_| (row.kernel.to_string(), row.p2pdma));
        rows.push(judged);
    }
    let known: Vec<String> = rows.iter().map(|row| row.target.clone()).collect();
    rows.extend(
        surveyed
            .iter()
            .filter(|one| !known.contains(&one.target))
            .map(|one| judge_row(one, knowledge)),
    );
    rows
}

fn judge_row<'a>(one: &Surveyed, knowledge: &'a Knowledge) -> MatrixRow<'a> {
    let verdict = judge_release(&one.kernel, one.p2pdma, knowledge);
    let target = knowledge.target(&one.target);
    let (os, version) =
        target.map_or(("", ""), |target| (target.os_id.as_str(), target.os_version.as_str()));
    let remedies = knowledge.remedies_for(&one.kernel, verdict.as_str(), os, version);
    let hints = remedies.map(|remedy| Hint::from_remedy(remedy, knowledge)).collect();
    let marks = knowledge.advisories.iter().filter(|advisory| advisory.matches(&one.kernel));
    MatrixRow {
        target: one.target.clone(),
        id: target.map(|target| target.id.clone()),
        os: one.os.clone(),
        flavour: target.map_or_else(|| "default".to_owned(), |target| target.flavour.clone()),
        kernel: one.kernel.clone(),
        p2pdma: one.p2pdma,
        verdict,
        advisories: marks.map(|advisory| (advisory, advisory.effect_on_release())).collect(),
        hints,
        provenance: one.provenance.clone(),
        published: None,
    }
}
