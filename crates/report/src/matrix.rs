//! Renderings of the support matrix.

use std::fmt::Write as _;

use fastpath_knowledge::{Effect, Knowledge, Target};
use fastpath_verdict::{MatrixRow, Provenance, Surveyed, Verdict, judge_release};

use crate::json::{self, MatrixReport, MatrixRowReport};
use crate::style::{
    BOLD, DIM, clean, status_style, styled, table, verdict_cell, verdict_style, wrap,
};
use crate::text::hint_details;

/// The width of prose in reStructuredText.
const RST_WIDTH: usize = 100;

pub(crate) const fn yes_no(p2pdma: Option<bool>) -> &'static str {
    match p2pdma {
        Some(true) => "Yes",
        Some(false) => "No",
        None => "Unknown",
    }
}

/// Every row as a table for people.
pub fn matrix_text(rows: &[MatrixRow<'_>]) -> String {
    // Beside published rows, those of a survey say how far they can be trusted.
    let surveyed = rows.iter().any(|row| row.provenance.reading.is_some());
    let mut head =
        ["TARGET", "OS", "KERNEL", "P2PDMA", "VERDICT", "ADVISORIES"].map(str::to_owned).to_vec();
    if surveyed {
        head.insert(5, "TRUST".to_owned());
    }
    let cells = rows.iter().map(|row| {
        let advisories: Vec<_> =
            row.advisories.iter().map(|(advisory, _)| advisory.id.as_str()).collect();
        let mut cells = vec![
            row.target.clone(),
            row.os.clone(),
            row.kernel.to_string(),
            yes_no(row.p2pdma).to_owned(),
            row.verdict.as_str().to_owned(),
            advisories.join(", "),
        ];
        if surveyed {
            let reading = row.provenance.reading.as_ref();
            cells.insert(5, reading.map_or("published", |reading| &reading.trust).to_owned());
        }
        cells
    });
    let cells: Vec<Vec<String>> = std::iter::once(head).chain(cells).collect();
    let mut out = table(&cells, 0, |row, column, cell| match (row, column) {
        (0, _) => DIM,
        (_, 4) => verdict_cell(cell),
        _ => anstyle::Style::new(),
    });
    for source in sources(rows) {
        let _ = writeln!(out, "{}", styled(DIM, &format!("source: {source}")));
    }
    out
}

/// The targets of the catalogue as a table: what `survey` and `matrix` take as names.
pub fn targets_text(targets: &[&Target]) -> String {
    let head = ["TARGET", "ID", "READ FROM", "FLAVOUR"].map(str::to_owned).to_vec();
    let cells = targets.iter().map(|target| {
        let system = format!("{} {}", target.distribution, target.version);
        vec![
            target.name.clone(),
            target.id.clone(),
            target.stand_in.clone().unwrap_or(system),
            target.flavour.clone(),
        ]
    });
    let cells: Vec<Vec<String>> = std::iter::once(head).chain(cells).collect();
    table(&cells, 0, |row, _, _| if row == 0 { DIM } else { anstyle::Style::new() })
}

/// The rows of one survey as a table, with how far each can be trusted.
pub fn survey_text(surveyed: &[Surveyed], knowledge: &Knowledge) -> String {
    let head = ["TARGET", "SYSTEM", "KERNEL", "P2PDMA", "VERDICT", "TRUST", "ADVISORIES"];
    let cells = surveyed.iter().map(|one| {
        let verdict = judge_release(&one.kernel, one.p2pdma, knowledge);
        let relevant = |_: &&fastpath_knowledge::Advisory| verdict != Verdict::Unsupported;
        let advisories =
            knowledge.advisories.iter().filter(|advisory| advisory.matches(&one.kernel));
        let ids: Vec<&str> =
            advisories.filter(relevant).map(|advisory| advisory.id.as_str()).collect();
        vec![
            one.target.clone(),
            clean(&one.os),
            one.kernel.to_string(),
            yes_no(one.p2pdma).to_owned(),
            verdict.as_str().to_owned(),
            one.provenance
                .reading
                .as_ref()
                .map(|reading| reading.trust.clone())
                .unwrap_or_default(),
            ids.join(", "),
        ]
    });
    let cells: Vec<Vec<String>> =
        std::iter::once(head.map(str::to_owned).to_vec()).chain(cells).collect();
    table(&cells, 0, |row, column, cell| match (row, column) {
        (0, _) => DIM,
        (_, 4) => verdict_cell(cell),
        _ => anstyle::Style::new(),
    })
}

/// Where the rows come from, each place once for each day: a survey's rows are read seconds apart.
pub(crate) fn sources(rows: &[MatrixRow<'_>]) -> Vec<String> {
    let from = |row: &MatrixRow<'_>| {
        let Provenance { origin, date, .. } = &row.provenance;
        let day = date.split_once('T').map_or(date.as_str(), |(day, _)| day);
        format!("{origin}, read {day}")
    };
    let mut sources: Vec<String> = rows.iter().map(from).collect();
    sources.sort();
    sources.dedup();
    sources
}

/// What the row says of its kernel.
pub(crate) const fn summary(row: &MatrixRow<'_>) -> &'static str {
    match (row.verdict, row.p2pdma) {
        (Verdict::Blocked, _) => "has CONFIG_PCI_P2PDMA=y, and must not be used for the fastpath",
        (_, Some(true)) => "is built with CONFIG_PCI_P2PDMA=y",
        (_, Some(false)) => "is built without CONFIG_PCI_P2PDMA",
        (_, None) => "could not be read",
    }
}

/// What is known of a row, name by name.
pub(crate) fn facts(row: &MatrixRow<'_>) -> Vec<(&'static str, String)> {
    let from = &row.provenance;
    let mut facts = vec![("target", row.target.clone())];
    if let Some(id) = row.id.as_ref().filter(|id| **id != row.target) {
        facts.push(("catalogue", id.clone()));
    }
    facts.push(("inspected", row.os.clone()));
    if row.flavour != "default" {
        facts.push(("flavour", row.flavour.clone()));
    }
    facts.extend([
        ("kernel", row.kernel.to_string()),
        ("p2pdma", yes_no(row.p2pdma).to_owned()),
        ("source", from.origin.clone()),
        ("address", from.url.clone()),
        ("read", from.date.clone()),
        ("method", from.method.clone()),
    ]);
    if let Some(reading) = &from.reading {
        facts.extend([("package", reading.package.clone()), ("", reading.url.clone())]);
        facts.extend(reading.hash.clone().map(|hash| ("hash", hash)));
        facts.extend(reading.member.as_ref().map(|member| {
            let line = reading.line.map(|line| format!(":{line}")).unwrap_or_default();
            ("file", format!("{member}{line}"))
        }));
        facts.extend([("value", reading.value.clone()), ("trust", reading.trust.clone())]);
        for (name, value) in &reading.companions {
            let value = value.as_deref().unwrap_or("not read");
            facts.push(("companion", format!("CONFIG_{name}: {value}")));
        }
        facts.push(("bytes read", reading.bytes_read.to_string()));
        facts.extend(reading.note.clone().map(|note| ("note", note)));
    }
    if let Some((kernel, p2pdma)) = &row.published {
        facts.push(("published", format!("{kernel}: {}", yes_no(Some(*p2pdma)))));
    }
    facts
}

/// One row in full: what was read, the verdict, advisories, and what to do.
pub fn row_text(row: &MatrixRow<'_>, width: usize) -> String {
    let verdict = styled(verdict_style(row.verdict), row.verdict.as_str());
    let mut out = format!("{verdict}: {} {}\n\n", row.kernel, summary(row));
    for (name, value) in facts(row) {
        let _ = writeln!(out, "  {name:<10} {}", clean(&value));
    }
    if !row.advisories.is_empty() {
        let _ = writeln!(out, "\n{}", styled(BOLD, "advisories"));
    }
    for (advisory, effect) in &row.advisories {
        let status = match effect {
            Effect::Block => fastpath_verdict::Status::Block,
            Effect::Warn => fastpath_verdict::Status::Warn,
        };
        let word = styled(status_style(status), status.as_str());
        let _ = writeln!(out, "  {word}  {} ({})", clean(&advisory.summary), advisory.id);
        for paragraph in advisory.detail.split("\n\n") {
            out.push_str(&wrap(paragraph, 9, width));
        }
        let _ = writeln!(out, "         lifted by: {}", advisory.lifted_by);
    }
    if !row.hints.is_empty() {
        let _ = writeln!(out, "\n{}", styled(BOLD, "what to do"));
    }
    for (number, hint) in row.hints.iter().enumerate() {
        let _ = writeln!(out, "  {}. {}", number + 1, clean(&hint.text));
        hint_details(&mut out, hint, 5, width);
    }
    out
}

/// The published page's table in reStructuredText, with a note on the rows that are blocked.
pub fn matrix_rst(rows: &[MatrixRow<'_>]) -> String {
    let mut out = String::from(
        ".. list-table::\n   :header-rows: 1\n   :widths: 18 30 36 16\n\n   * - TARGET\n     - OS\n     - KERNEL\n     - P2PDMA\n",
    );
    for row in rows {
        let _ = write!(
            out,
            "   * - {}\n     - {}\n     - ``{}``\n     - {}\n",
            row.target,
            row.os,
            row.kernel,
            yes_no(row.p2pdma)
        );
    }
    if let Some(note) = blocked_note(rows) {
        out.push_str("\n.. warning::\n\n");
        out.push_str(&wrap(&note, 3, RST_WIDTH));
    }
    for source in sources(rows) {
        let _ = write!(out, "\nSource: {source}.\n");
    }
    out
}

/// The table in Markdown, with the same note.
pub fn matrix_markdown(rows: &[MatrixRow<'_>]) -> String {
    let mut out = String::from(
        "| Target | OS | Kernel | P2PDMA | Verdict |\n| --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let _ = writeln!(
            out,
            "| {} | {} | `{}` | {} | {} |",
            row.target,
            row.os.replace('|', "\\|"),
            row.kernel,
            yes_no(row.p2pdma),
            row.verdict
        );
    }
    if let Some(note) = blocked_note(rows) {
        let _ = write!(out, "\n{note}\n");
    }
    for source in sources(rows) {
        let _ = write!(out, "\nSource: {source}.\n");
    }
    out
}

/// A sentence on the rows whose kernel has the option and is blocked all the same.
pub(crate) fn blocked_note(rows: &[MatrixRow<'_>]) -> Option<String> {
    let names: Vec<&str> = rows
        .iter()
        .filter(|row| row.verdict == Verdict::Blocked)
        .map(|row| row.target.as_str())
        .collect();
    let (last, others) = names.split_last()?;
    let (names, kernel, has, it) = if others.is_empty() {
        ((*last).to_owned(), "kernel", "has", "it")
    } else {
        (format!("{} and {last}", others.join(", ")), "kernels", "have", "them")
    };
    Some(format!(
        "The default {kernel} of {names} {has} the option, yet a fastpath transfer on {it} may corrupt memory without any \
         error. Treat {it} as a no: stay on the fallback, or boot another kernel."
    ))
}

/// The rows as comma-separated values, RFC 4180.
pub fn matrix_csv(rows: &[MatrixRow<'_>]) -> String {
    let mut out = String::from("target,os,kernel,p2pdma,verdict,advisories,origin,date\r\n");
    for row in rows {
        let advisories: Vec<_> =
            row.advisories.iter().map(|(advisory, _)| advisory.id.as_str()).collect();
        let fields = [
            row.target.as_str(),
            &row.os,
            row.kernel.as_str(),
            yes_no(row.p2pdma),
            row.verdict.as_str(),
            &advisories.join(" "),
            &row.provenance.origin,
            &row.provenance.date,
        ];
        let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        let _ = write!(out, "{}\r\n", fields.join(","));
    }
    out
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// The rows as JSON.
pub fn matrix_json(rows: &[MatrixRow<'_>]) -> String {
    let rows = rows.iter().map(MatrixRowReport::from).collect();
    json::to_string(&MatrixReport { schema: "fastpath.matrix/1".to_owned(), rows })
}
