//! The long text for an id.

use std::fmt::Write as _;

use fastpath_knowledge::{Advisory, Explanation, Knowledge, Remedy};

use crate::style::{BOLD, DIM, styled, wrap};

/// Everything there is to say about an id: a finding, reason or state, an advisory, or a remedy. `None` if nothing has
/// that id.
pub fn explain(
    id: &str,
    knowledge: &Knowledge,
    explanations: &[Explanation],
    width: usize,
) -> Option<String> {
    let mut out = String::new();
    for explanation in explanations.iter().filter(|explanation| explanation.id == id) {
        let _ = writeln!(out, "{}: {}", styled(BOLD, &explanation.id), explanation.title);
        paragraphs(&mut out, &explanation.text, width);
    }
    for advisory in knowledge.advisories.iter().filter(|advisory| advisory.id == id) {
        explain_advisory(&mut out, advisory, width);
    }
    for remedy in knowledge.remedies.iter().filter(|remedy| remedy.id == id) {
        explain_remedy(&mut out, remedy, knowledge, width);
    }
    (!out.is_empty()).then_some(out)
}

fn paragraphs(out: &mut String, text: &str, width: usize) {
    for paragraph in text.split("\n\n") {
        out.push('\n');
        out.push_str(&wrap(paragraph, 2, width));
    }
}

fn explain_advisory(out: &mut String, advisory: &Advisory, width: usize) {
    let _ = writeln!(out, "{}: {}", styled(BOLD, &advisory.id), advisory.summary);
    paragraphs(out, &advisory.detail, width);
    out.push('\n');
    let effect = crate::json::effect(advisory.effect);
    let _ = writeln!(out, "  effect     {effect}");
    if !advisory.needs.is_empty() {
        let groups: Vec<_> =
            advisory.needs.iommu_group_type.iter().map(|kind| kind.as_str()).collect();
        let maps: Vec<_> = advisory.needs.map_type.iter().map(|kind| kind.as_str()).collect();
        let _ = writeln!(out, "  needs      IOMMU group type {}", groups.join(" or "));
        let _ = writeln!(out, "             map type {}", maps.join(" or "));
        let _ = writeln!(out, "             (a warning until both are proven for a path)");
    }
    let _ = writeln!(out, "  lifted by  {}", advisory.lifted_by);
    let _ = writeln!(out, "  source     {}", advisory.source.title);
    if let Some(url) = &advisory.source.url {
        let _ = writeln!(out, "             {url}");
    }
    let _ = writeln!(out, "  read       {}", advisory.date);
}

fn explain_remedy(out: &mut String, remedy: &Remedy, knowledge: &Knowledge, width: usize) {
    let _ = writeln!(out, "{}: {}", styled(BOLD, &remedy.id), remedy.summary);
    paragraphs(out, &remedy.text, width);
    let hint = fastpath_verdict::Hint {
        detail: None,
        ..fastpath_verdict::Hint::from_remedy(remedy, knowledge)
    };
    if !hint.commands.is_empty() || hint.kernel.is_some() {
        out.push('\n');
    }
    crate::text::hint_details(out, &hint, 2, width);
    if let Some(kernel) = &remedy.kernel {
        let line = format!("that it has the option: {}, {}", kernel.seen, kernel.date);
        let _ = writeln!(out, "    {}", styled(DIM, &line));
    }
}
