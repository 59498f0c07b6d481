//! Every word a report may use can be explained.

use std::collections::BTreeSet;

use fastpath_knowledge::explanations;
use fastpath_verdict::{FINDINGS, HINTS, REASONS};

#[test]
fn every_reason_finding_and_hint_has_one_explanation_and_no_other_exists() {
    let mut words: BTreeSet<&str> = FINDINGS.iter().copied().collect();
    words.extend(REASONS.iter().map(|reason| reason.as_str()));
    words.extend(HINTS);
    let explanations = explanations();
    let explained: BTreeSet<&str> = explanations.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(explained.len(), explanations.len(), "an id is explained twice");
    // Those of requests are the library's, which has its own test.
    let judged = explained.iter().copied().filter(|id| !id.starts_with("request-")).collect();
    assert_eq!(words, judged);
    for one in &explanations {
        assert!(!one.title.is_empty() && !one.title.ends_with('.'), "{}", one.id);
        assert!(one.text.trim_end().ends_with('.'), "{}", one.id);
    }
}
