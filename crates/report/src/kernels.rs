//! The report of `fastpath kernels`.

use std::fmt::Write as _;

use fastpath_verdict::Check;

use crate::json::{self, KernelReport, KernelsReport, NextBootReport};
use crate::style::{DIM, clean, styled, table, verdict_cell};

fn report(check: &Check<'_>) -> KernelsReport {
    let facts = &check.facts.kernel;
    let mut kernels: Vec<KernelReport> = check
        .installed
        .iter()
        .map(|one| KernelReport {
            release: one.kernel.release.to_string(),
            verdict: one.judgement.verdict.as_str().to_owned(),
            reason: one.judgement.reason.as_str().to_owned(),
            value: one.judgement.value.map(|value| value.as_str().to_owned()),
            source: one.source.as_ref().map(json::source),
            image: Some(one.kernel.image.clone()),
            running: one.running,
            next_boot: one.next_boot,
            advisories: one.advisories.iter().map(|advisory| advisory.id.clone()).collect(),
        })
        .collect();
    let listed = check.installed.iter().any(|one| one.running);
    if let Some(running) = facts.running.as_ref().filter(|_| !listed) {
        let deciding = check.kernel.decides.map(|index| facts.witnesses[index].evidence());
        kernels.insert(
            0,
            KernelReport {
                release: running.to_string(),
                verdict: check.kernel.verdict.as_str().to_owned(),
                reason: check.kernel.reason.as_str().to_owned(),
                value: check.kernel.value.map(|value| value.as_str().to_owned()),
                source: deciding.as_ref().map(json::source),
                image: None,
                running: true,
                next_boot: facts.next_boot.release.as_ref().map(|next| next == running),
                advisories: check.advisories.iter().map(|advisory| advisory.id.clone()).collect(),
            },
        );
    }
    KernelsReport {
        schema: "fastpath.kernels/1".to_owned(),
        running: facts.running.as_ref().map(ToString::to_string),
        next_boot: NextBootReport {
            release: facts.next_boot.release.as_ref().map(ToString::to_string),
            loader: facts.next_boot.loader.map(|loader| loader.as_str().to_owned()),
            why: facts.next_boot.why.clone(),
            evidence: facts.next_boot.evidence.as_ref().map(json::evidence),
        },
        unlisted: facts.unlisted.iter().map(|(path, _)| path.clone()).collect(),
        kernels,
    }
}

/// Every installed kernel as JSON.
pub fn kernels_json(check: &Check<'_>) -> String {
    json::to_string(&report(check))
}

/// Every installed kernel as a table.
pub fn kernels_text(check: &Check<'_>) -> String {
    let report = report(check);
    let unlisted = check
        .facts
        .kernel
        .unlisted
        .iter()
        .map(|(path, why)| format!("not listed: {}, {why}\n", clean(path)));
    let unlisted: String = unlisted.collect();
    if report.kernels.is_empty() {
        return format!("no kernel was found in this root\n{unlisted}");
    }
    let head = ["KERNEL", "VERDICT", "OPTION", "SOURCE", "NOTES"].map(str::to_owned).to_vec();
    let rows = report.kernels.iter().map(|kernel| {
        let mut notes = Vec::new();
        if kernel.running {
            notes.push("running".to_owned());
        }
        if kernel.next_boot == Some(true) {
            notes.push("boots next".to_owned());
        }
        if kernel.image.is_none() {
            notes.push("no image here".to_owned());
        }
        // An advisory is about using the fastpath, which a kernel without the option cannot.
        notes.extend(kernel.advisories.iter().filter(|_| kernel.verdict != "unsupported").cloned());
        let source = kernel.source.as_ref().map(|source| clean(&source.path));
        vec![
            kernel.release.clone(),
            kernel.verdict.clone(),
            kernel.value.clone().unwrap_or_else(|| kernel.reason.clone()),
            source.unwrap_or_else(|| "-".to_owned()),
            notes.join(", "),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let mut out = table(&rows, 0, |row, column, cell| match (row, column) {
        (0, _) => DIM,
        (_, 1) => verdict_cell(cell),
        _ => anstyle::Style::new(),
    });
    out.push_str(&unlisted);
    let next = &report.next_boot;
    let line = match &next.release {
        Some(release) => format!("boots next: {release} ({})", clean(&next.why)),
        None => format!("boots next: unknown, {}", clean(&next.why)),
    };
    let _ = writeln!(out, "{}", styled(DIM, &line));
    out
}
