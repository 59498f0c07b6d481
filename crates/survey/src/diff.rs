//! What changed between two looks at the same targets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::Record;

/// What one look says about a target: a record of a run, or a published row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The kernel's release, if it was found.
    pub release: Option<String>,
    /// Whether it has the option, if that was read.
    pub has_option: Option<bool>,
    /// Its verdict.
    pub verdict: String,
    /// Ids of advisories that mark it.
    pub advisories: Vec<String>,
    /// Why the look failed.
    pub error: Option<String>,
}

impl From<&Record> for Look {
    fn from(record: &Record) -> Self {
        Self {
            release: record.release.clone().or_else(|| record.header_version.clone()),
            has_option: record.value.as_deref().map(|value| value == "y"),
            verdict: record.verdict.clone(),
            advisories: record.advisories.clone(),
            error: record.error.clone(),
        }
    }
}

/// One thing that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// The target was not looked at before.
    Added,
    /// The target is not looked at any more.
    Removed,
    /// Another default kernel.
    NewKernel {
        /// Before.
        from: String,
        /// Now.
        to: String,
    },
    /// The option went from yes to no or back.
    Flipped {
        /// Whether the kernel had it.
        from: bool,
        /// Whether it has it.
        to: bool,
    },
    /// Another verdict although the option is the same.
    Verdict {
        /// Before.
        from: String,
        /// Now.
        to: String,
    },
    /// An advisory marks the kernel now.
    AdvisoryNow {
        /// Its id.
        id: String,
    },
    /// An advisory does not mark the kernel any more.
    AdvisoryGone {
        /// Its id.
        id: String,
    },
    /// The target could be read before and failed now.
    Failed {
        /// Why.
        error: String,
    },
}

/// What changed for each target, by name. Targets without a change are left out.
pub fn diff(
    before: &BTreeMap<String, Look>,
    now: &BTreeMap<String, Look>,
) -> BTreeMap<String, Vec<Change>> {
    let mut changes: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    for (target, old) in before {
        let found = now.get(target).map_or_else(|| vec![Change::Removed], |new| compare(old, new));
        if !found.is_empty() {
            changes.insert(target.clone(), found);
        }
    }
    for target in now.keys().filter(|target| !before.contains_key(*target)) {
        changes.insert(target.clone(), vec![Change::Added]);
    }
    changes
}

/// Whether a value flipped for any target.
pub fn flipped(changes: &BTreeMap<String, Vec<Change>>) -> bool {
    changes.values().flatten().any(|change| matches!(change, Change::Flipped { .. }))
}

fn compare(old: &Look, new: &Look) -> Vec<Change> {
    if let Some(error) = new.error.as_ref().filter(|_| old.error.is_none()) {
        return vec![Change::Failed { error: error.clone() }];
    }
    let mut changes = Vec::new();
    if let (Some(from), Some(to)) = (&old.release, &new.release)
        && from != to
    {
        changes.push(Change::NewKernel { from: from.clone(), to: to.clone() });
    }
    match (old.has_option, new.has_option) {
        (Some(from), Some(to)) if from != to => changes.push(Change::Flipped { from, to }),
        _ if old.verdict != new.verdict => {
            changes.push(Change::Verdict { from: old.verdict.clone(), to: new.verdict.clone() });
        }
        _ => {}
    }
    let missing = |id: &&String, list: &[String]| !list.contains(id);
    for id in new.advisories.iter().filter(|id| missing(id, &old.advisories)) {
        changes.push(Change::AdvisoryNow { id: id.clone() });
    }
    for id in old.advisories.iter().filter(|id| missing(id, &new.advisories)) {
        changes.push(Change::AdvisoryGone { id: id.clone() });
    }
    changes
}
