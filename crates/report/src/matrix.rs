//! Renderings of the support matrix.

use std::fmt::Write as _;

use fastpath_knowledge::Effect;
use fastpath_verdict::{MatrixRow, Verdict};

use crate::json::{self, MatrixReport, MatrixRowReport};
use crate::style::{
    BOLD, DIM, clean, status_style, styled, table, verdict_cell, verdict_style, wrap,
};
use crate::text::hint_details;

const fn yes_no(p2pdma: Option<bool>) -> &'static str {
    match p2pdma {
        Some(true) => "Yes",
        Some(false) => "No",
        None => "Unknown",
    }
}

/// Every row as a table for people.
pub fn matrix_text(rows: &[MatrixRow<'_>]) -> String {
    let head =
        ["TARGET", "OS", "KERNEL", "P2PDMA", "VERDICT", "ADVISORIES"].map(str::to_owned).to_vec();
    let cells = rows.iter().map(|row| {
        let advisories: Vec<_> =
            row.advisories.iter().map(|(advisory, _)| advisory.id.as_str()).collect();
        vec![
            row.target.clone(),
            row.os.clone(),
            row.kernel.to_string(),
            yes_no(row.p2pdma).to_owned(),
            row.verdict.as_str().to_owned(),
            advisories.join(", "),
        ]
    });
    let cells: Vec<Vec<String>> = std::iter::once(head).chain(cells).collect();
    let mut out = table(&cells, 0, |row, column, cell| match (row, column) {
        (0, _) => DIM,
        (_, 4) => verdict_cell(cell),
        _ => anstyle::Style::new(),
    });
    let mut sources: Vec<String> = rows
        .iter()
        .map(|row| format!("source: {}, read {}", row.provenance.origin, row.provenance.date))
        .collect();
    sources.dedup();
    sources.sort();
    sources.dedup();
    for line in sources {
        let _ = writeln!(out, "{}", styled(DIM, &line));
    }
    out
}

/// One row in full: what was read, the verdict, advisories, and what to do.
pub fn row_text(row: &MatrixRow<'_>) -> String {
    let verdict = styled(verdict_style(row.verdict), row.verdict.as_str());
    let what = match (row.verdict, row.p2pdma) {
        (Verdict::Blocked, _) => "has CONFIG_PCI_P2PDMA=y, and must not be used for the fastpath",
        (_, Some(true)) => "is built with CONFIG_PCI_P2PDMA=y",
        (_, Some(false)) => "is built without CONFIG_PCI_P2PDMA",
        (_, None) => "could not be read",
    };
    let mut out = format!("{verdict}: {} {what}\n\n", row.kernel);
    let mut line = |label: &str, text: &str| {
        let _ = writeln!(out, "  {label:<10} {text}");
    };
    line("target", &row.target);
    if let Some(id) = row.id.as_ref().filter(|id| **id != row.target) {
        line("catalogue", id);
    }
    line("inspected", &clean(&row.os));
    line("kernel", row.kernel.as_str());
    line("p2pdma", yes_no(row.p2pdma));
    let from = &row.provenance;
    line("source", &clean(&from.origin));
    line("", &clean(&from.url));
    line("read", &from.date);
    line("method", &clean(&from.method));
    if let Some(reading) = &from.reading {
        line("package", &clean(&reading.package));
        line("", &clean(&reading.url));
        if let Some(hash) = &reading.hash {
            line("hash", hash);
        }
        if let Some(member) = &reading.member {
            let place = reading.line.map(|line| format!(":{line}")).unwrap_or_default();
            line("file", &format!("{}{place}", clean(member)));
        }
        line("value", &reading.value);
        line("trust", &reading.trust);
        if let Some(note) = &reading.note {
            line("note", &clean(note));
        }
    }
    if let Some((kernel, p2pdma)) = &row.published {
        line("published", &format!("{kernel}: {}", yes_no(Some(*p2pdma))));
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
            out.push_str(&wrap(paragraph, 9));
        }
        let _ = writeln!(out, "         lifted by: {}", advisory.lifted_by);
    }
    if !row.hints.is_empty() {
        let _ = writeln!(out, "\n{}", styled(BOLD, "what to do"));
    }
    for (number, hint) in row.hints.iter().enumerate() {
        let _ = writeln!(out, "  {}. {}", number + 1, clean(&hint.text));
        hint_details(&mut out, hint, 5);
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
        out.push_str(&wrap(&note, 3));
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
    out
}

/// A sentence on the rows whose kernel has the option and is blocked all the same.
fn blocked_note(rows: &[MatrixRow<'_>]) -> Option<String> {
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
