//! The report of `fastpath check`, for people.

use std::fmt::Write as _;

use fastpath_host::{Evidence, State, Witness};
use fastpath_knowledge::Effect;
use fastpath_verdict::{Check, Finding, Hint, HintKernel, Layer, Status, Verdict, finding};

use crate::json::{self, CheckReport};
use crate::layers;
use crate::style::{
    BOLD, DIM, clean, status_style, styled, table, verdict_cell, verdict_style, wrap,
};

/// The report as JSON.
pub fn check_json(check: &Check<'_>) -> String {
    json::to_string(&CheckReport::from(check))
}

/// The report as text: the verdict in one line, then a block for each layer, findings, what to do, and the kernels
/// installed. `verbose` adds places that were looked at in vain, requirements that hold, and long texts' names.
pub fn check_text(check: &Check<'_>, verbose: bool, width: usize) -> String {
    let mut out = String::new();
    headline(&mut out, check, width);
    // With other layers beside it, the kernel's details matter if something is wrong with it.
    let only_kernel = check.layers == [Layer::Kernel];
    let kernel_matters = only_kernel || verbose || check.kernel.verdict != Verdict::Supported;
    let show_kernel = check.is_judged(Layer::Kernel) && kernel_matters;
    if !only_kernel {
        layers::summary(&mut out, check);
        layers::process(&mut out, check);
        layers::paths(&mut out, check, verbose);
        layers::volumes(&mut out, check, verbose);
    }
    if show_kernel {
        kernel_layer(&mut out, check, verbose);
    }
    findings(&mut out, check, verbose, width);
    what_to_do(&mut out, check, width);
    if show_kernel {
        installed(&mut out, check, verbose);
    }
    let reason = layers::reason(check).as_str();
    let _ = writeln!(
        out,
        "\n{}",
        styled(DIM, &format!("more: fastpath explain {reason}, or any name in parentheses"))
    );
    out
}

fn headline(out: &mut String, check: &Check<'_>, width: usize) {
    let main = main_finding(check);
    let verdict = styled(verdict_style(check.verdict), check.verdict.as_str());
    let summary = match layers::route(check) {
        Some(route) => route,
        None => main.map_or_else(String::new, |main| clean(&main.summary)),
    };
    let _ = writeln!(out, "{verdict}: {summary}");
    if let Some(main) = main.filter(|_| layers::route(check).is_none()) {
        out.push_str(&wrap(&main.explanation, 2, width));
    }
}

/// The finding that is the headline.
fn main_finding<'a>(check: &'a Check<'_>) -> Option<&'a Finding> {
    let wsl2 = |finding: &&Finding| finding.status == Status::Fail && finding.id == finding::WSL2;
    check.findings.iter().find(wsl2).or_else(|| check.main_finding())
}

fn kernel_layer(out: &mut String, check: &Check<'_>, verbose: bool) {
    let facts = check.facts;
    let verdict = styled(verdict_style(check.kernel.verdict), check.kernel.verdict.as_str());
    let _ =
        writeln!(out, "\n{}  {verdict} ({})", styled(BOLD, "kernel"), check.kernel.reason.as_str());
    let mut line = |label: &str, text: &str| {
        let _ = writeln!(out, "  {label:<11} {text}");
    };
    if let Some(release) = &facts.kernel.release {
        let running = facts.kernel.running.as_ref() == Some(release);
        line(
            "release",
            &format!("{release}{}", if running { ", running" } else { ", not running" }),
        );
    }
    if !facts.os.name.is_empty() {
        line("system", &clean(&facts.os.name));
    }
    if let Some(row) = check.tested {
        let has = check.kernel.value.map(|value| value == State::Y);
        let differs = has.is_some_and(|has| has != row.p2pdma);
        let answer = if row.p2pdma { "Yes" } else { "No" };
        let but = if differs { ", unlike what is read here" } else { "" };
        line("matrix", &format!("row {} has exactly this kernel: {answer}{but}", row.target));
    }
    let witnesses = &facts.kernel.witnesses;
    if let Some(deciding) = check.kernel.decides.map(|index| &witnesses[index]) {
        line("decided by", &place(&deciding.evidence()));
        if let Some(said) = said(deciding) {
            line("", &said);
        }
        for also in &deciding.also {
            line("", &styled(DIM, &format!("the same file as {}", clean(also))));
        }
    }
    for (index, witness) in witnesses.iter().enumerate() {
        if Some(index) == check.kernel.decides || witness.state == State::Missing {
            continue;
        }
        let label = if check.kernel.conflicts.contains(&index) {
            "conflict"
        } else if witness.state.is_value() {
            "also read"
        } else {
            "no use"
        };
        line(label, &place(&witness.evidence()));
        let mut text = said(witness).unwrap_or_default();
        if !witness.state.is_value() {
            let detail = witness.detail.as_ref().map(|detail| format!(", {}", clean(detail)));
            text = format!("{}{}", witness.state.as_str(), detail.unwrap_or_default());
        } else if text.is_empty() {
            witness.state.as_str().clone_into(&mut text);
        }
        line("", &text);
    }
    let missing: Vec<&Witness> =
        witnesses.iter().filter(|one| one.state == State::Missing).collect();
    if verbose || check.verdict == Verdict::Unknown {
        for (number, witness) in missing.iter().enumerate() {
            line(if number == 0 { "not there" } else { "" }, &styled(DIM, &clean(&witness.path)));
        }
    }
    if verbose || check.verdict == Verdict::Unknown {
        for (number, path) in facts.kernel.other_configs.iter().enumerate() {
            line(if number == 0 { "of others" } else { "" }, &styled(DIM, &clean(path)));
        }
    }
}

/// What a sound witness says, as it stands there, or how an absence was seen.
fn said(witness: &Witness) -> Option<String> {
    let absent = || match (&witness.detail, witness.state) {
        (Some(detail), _) => Some(clean(detail)),
        (None, State::Absent) => {
            Some("no line for CONFIG_PCI_P2PDMA in a whole configuration".to_owned())
        }
        _ => None,
    };
    witness.text.as_deref().map(clean).or_else(absent)
}

/// A place in a file, `path:line`.
fn place(evidence: &Evidence) -> String {
    let path = clean(&evidence.path);
    evidence.line.map_or_else(|| path.clone(), |line| format!("{path}:{line}"))
}

/// Findings a person should look at, but for the one that is the headline already.
fn findings(out: &mut String, check: &Check<'_>, verbose: bool, width: usize) {
    let only_kernel = check.layers == [Layer::Kernel];
    let matters = |status| match status {
        Status::Pass => false,
        Status::Info => only_kernel,
        _ => true,
    };
    let main = main_finding(check).filter(|_| layers::route(check).is_none());
    let shown = |finding: &&Finding| {
        finding.id != finding::ALTERNATIVE
            && (verbose || matters(finding.status))
            && !main.is_some_and(|main| std::ptr::eq(main, *finding))
    };
    let shown: Vec<&Finding> = check.findings.iter().filter(shown).collect();
    if shown.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", styled(BOLD, "findings"));
    for finding in shown {
        let status = finding.status.as_str();
        let gap = 7 - status.len();
        let id = styled(DIM, &format!("({})", finding.id));
        let _ = writeln!(
            out,
            "  {}{:gap$}  {} {id}",
            styled(status_style(finding.status), status),
            "",
            clean(&finding.summary)
        );
        out.push_str(&wrap(&finding.explanation, 11, width));
        for evidence in
            finding.evidence.iter().filter(|_| finding.status != Status::Info || verbose)
        {
            let text = evidence.text.as_deref().map(|text| format!(": {}", clean(text)));
            let _ = writeln!(out, "           {}{}", place(evidence), text.unwrap_or_default());
        }
    }
}

fn what_to_do(out: &mut String, check: &Check<'_>, width: usize) {
    let mut seen: Vec<&str> = Vec::new();
    let mut hints: Vec<&Hint> = Vec::new();
    for hint in check.findings.iter().filter_map(|finding| finding.hint.as_ref()) {
        if !seen.contains(&hint.id.as_str()) {
            seen.push(&hint.id);
            hints.push(hint);
        }
    }
    if hints.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", styled(BOLD, "what to do"));
    for (number, hint) in hints.iter().enumerate() {
        let mark = if hints.len() == 1 { "  ".to_owned() } else { format!("  {}. ", number + 1) };
        let id = styled(DIM, &format!("({})", hint.id));
        let _ = writeln!(out, "{mark}{} {id}", clean(&hint.text));
        hint_details(out, hint, mark.len(), width);
    }
}

/// The commands of a hint, and what is known about the kernel it leads to.
pub(crate) fn hint_details(out: &mut String, hint: &Hint, indent: usize, width: usize) {
    if let Some(detail) = &hint.detail {
        out.push_str(&wrap(detail, indent, width));
    }
    for command in &hint.commands {
        let _ = writeln!(out, "{:indent$}  {}", "", styled(BOLD, &clean(command)));
    }
    let Some(kernel) = &hint.kernel else { return };
    let _ = writeln!(out, "{:indent$}about {}:", "", kernel.release);
    for line in about_kernel(kernel) {
        let mut text = wrap(&line, indent + 2, width);
        for (word, status) in [("blocked:", Status::Block), ("warning:", Status::Warn)] {
            if line.starts_with(word) {
                text = text.replacen(word, &styled(status_style(status), word), 1);
            }
        }
        out.push_str(&text);
    }
}

/// What is known about the kernel a hint leads to, line by line.
pub(crate) fn about_kernel(kernel: &HintKernel) -> Vec<String> {
    let mut lines = Vec::new();
    for advisory in &kernel.advisories {
        let effect = match advisory.effect {
            Effect::Block => "blocked",
            Effect::Warn => "warning",
        };
        lines.push(format!("{effect}: {} ({})", advisory.summary, advisory.id));
    }
    if kernel.advisories.is_empty() {
        lines.push("no advisory marks it".to_owned());
    }
    let driver = match &kernel.driver_source {
        Some(source) => format!("{}: {source}", kernel.driver.as_str()),
        None => kernel.driver.as_str().to_owned(),
    };
    lines.push(format!("AMD's driver (amdgpu-dkms) builds for it: {driver}"));
    lines
}

fn installed(out: &mut String, check: &Check<'_>, verbose: bool) {
    let facts = &check.facts.kernel;
    let others = check.installed.iter().any(|one| !one.running);
    if check.installed.is_empty() || !(others || verbose || facts.release.is_none()) {
        return;
    }
    let _ = writeln!(out, "\n{}", styled(BOLD, "kernels installed"));
    let rows: Vec<Vec<String>> = check
        .installed
        .iter()
        .map(|one| {
            let mut notes = Vec::new();
            if one.running {
                notes.push("running");
            }
            if one.next_boot == Some(true) {
                notes.push("boots next");
            }
            vec![
                one.kernel.release.to_string(),
                one.judgement.verdict.as_str().to_owned(),
                notes.join(", "),
            ]
        })
        .collect();
    out.push_str(&table(&rows, 2, |_, column, cell| {
        if column == 1 { verdict_cell(cell) } else { anstyle::Style::new() }
    }));
    if facts.next_boot.release.is_none() {
        let _ = writeln!(
            out,
            "  {}",
            styled(
                DIM,
                &format!("which one boots next is unknown: {}", clean(&facts.next_boot.why))
            )
        );
    }
}
