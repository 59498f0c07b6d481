//! The report of `fastpath inspect`: one answer for each configuration.

use std::fmt::Write as _;

use fastpath_host::{State, Witness};
use fastpath_knowledge::{Advisory, Release};
use fastpath_verdict::{Judgement, Verdict};

use crate::json::InspectReport;
use crate::style::{clean, styled, verdict_style};

/// A configuration that was inspected, and its judgement.
#[derive(Clone, Debug)]
pub struct Inspected<'a> {
    /// The input as it was named.
    pub input: &'a str,
    /// The file inside the input; `None` if the input is the configuration itself.
    pub member: Option<&'a str>,
    /// The release, if the name or the header tells.
    pub release: Option<&'a Release>,
    /// What the configuration says.
    pub witness: &'a Witness,
    /// The judgement.
    pub judgement: &'a Judgement,
    /// Advisories that mark it.
    pub advisories: Vec<&'a Advisory>,
    /// How many bytes were read.
    pub bytes_read: u64,
}

/// One line of JSON.
pub fn inspect_json(inspected: &Inspected<'_>) -> String {
    let witness = inspected.witness;
    let names = fastpath_kconfig::SYMBOLS.iter().skip(1).map(|symbol| symbol.name().to_owned());
    let value = |name: &String| {
        let found = witness.companions.iter().find(|(companion, _)| companion == name);
        found.map(|(_, value)| value.as_str().to_owned())
    };
    let report = InspectReport {
        schema: "fastpath.inspect/1".to_owned(),
        input: inspected.input.to_owned(),
        member: inspected.member.map(str::to_owned),
        release: inspected.release.map(ToString::to_string),
        header_version: witness.header_version.clone(),
        value: witness.state.as_str().to_owned(),
        line: witness.line,
        verdict: inspected.judgement.verdict.as_str().to_owned(),
        bytes_read: inspected.bytes_read,
        companions: names.map(|name| (name.clone(), value(&name))).collect(),
        detail: witness.detail.clone(),
        advisories: inspected.advisories.iter().map(|advisory| advisory.id.clone()).collect(),
    };
    let mut line = serde_json::to_string(&report).unwrap_or_default();
    line.push('\n');
    line
}

/// One line of JSON for an input that could not be read.
pub fn inspect_failed_json(input: &str, detail: &str) -> String {
    let names = fastpath_kconfig::SYMBOLS.iter().skip(1).map(|symbol| symbol.name().to_owned());
    let report = InspectReport {
        schema: "fastpath.inspect/1".to_owned(),
        input: input.to_owned(),
        member: None,
        release: None,
        header_version: None,
        value: "unreadable".to_owned(),
        line: None,
        verdict: "unknown".to_owned(),
        bytes_read: 0,
        companions: names.map(|name| (name, None)).collect(),
        detail: Some(detail.to_owned()),
        advisories: Vec::new(),
    };
    let mut line = serde_json::to_string(&report).unwrap_or_default();
    line.push('\n');
    line
}

/// A line or a few of text; `verbose` adds the companion options.
pub fn inspect_text(inspected: &Inspected<'_>, verbose: bool) -> String {
    let witness = inspected.witness;
    let verdict = inspected.judgement.verdict;
    let member = inspected.member.map(|member| format!("!{}", clean(member))).unwrap_or_default();
    let verdict_word = styled(verdict_style(verdict), verdict.as_str());
    let mut out = format!("{}{member}: {verdict_word}", clean(inspected.input));
    let said = match (&witness.text, witness.line) {
        (Some(text), Some(line)) => format!("line {line}: {}", clean(text)),
        _ if witness.state == State::Y => "CONFIG_PCI_P2PDMA=y".to_owned(),
        _ if witness.state.is_value() => match &inspected.judgement.absent_because {
            Some(because) => format!("CONFIG_PCI_P2PDMA is absent: {because}"),
            None => "CONFIG_PCI_P2PDMA is absent".to_owned(),
        },
        // What has nothing to say about the option need not be empty.
        _ if witness.state == State::Empty && witness.detail.is_some() => String::new(),
        _ => witness.state.as_str().to_owned(),
    };
    let detail = witness.detail.as_ref().map(|detail| clean(detail));
    let said: Vec<String> = [said].into_iter().chain(detail).filter(|it| !it.is_empty()).collect();
    let _ = writeln!(out, ": {}", said.join(", "));
    if let Some(release) = inspected.release {
        let _ = writeln!(out, "  kernel    {release}");
    } else if let Some(version) = &witness.header_version {
        let _ = writeln!(out, "  kernel    version {}, release not known", clean(version));
    }
    // An advisory is about using the fastpath, which a kernel without the option cannot.
    for advisory in inspected.advisories.iter().filter(|_| verdict != Verdict::Unsupported) {
        let effect = crate::json::effect(advisory.effect_on_release());
        let _ = writeln!(out, "  {effect:<9} {} ({})", advisory.summary, advisory.id);
    }
    if witness.lines > 1 {
        let _ = writeln!(
            out,
            "  note      {} lines set the option; the last one counts",
            witness.lines
        );
    }
    if verbose {
        for (name, value) in &witness.companions {
            let _ = writeln!(out, "  companion CONFIG_{name}: {value}");
        }
    }
    out
}
