//! The support matrix as one self-contained page.

use askama::Template;
use fastpath_knowledge::Effect;
use fastpath_verdict::{MatrixRow, Verdict};

use crate::matrix::{blocked_note, facts, summary, yes_no};

#[derive(Template)]
#[template(path = "matrix.html")]
struct Page {
    note: Option<String>,
    rows: Vec<Row>,
    sources: Vec<String>,
    version: &'static str,
}

struct Row {
    anchor: String,
    target: String,
    os: String,
    kernel: String,
    p2pdma: &'static str,
    verdict: &'static str,
    summary: &'static str,
    facts: Vec<(&'static str, String)>,
    advisories: Vec<Advisory>,
    hints: Vec<Hint>,
}

struct Advisory {
    id: String,
    effect: &'static str,
    summary: String,
    paragraphs: Vec<String>,
    lifted_by: String,
    source: String,
    url: Option<String>,
    date: String,
}

struct Hint {
    text: String,
    detail: Option<String>,
    commands: String,
    about: Vec<String>,
}

/// The matrix as one HTML page: the table with filter and sort, and a section for each row with its evidence. It needs
/// no other file, and no script for reading.
pub fn matrix_html(rows: &[MatrixRow<'_>]) -> String {
    let page = Page {
        note: blocked_note(rows),
        rows: rows.iter().map(row).collect(),
        sources: crate::matrix::sources(rows),
        version: env!("CARGO_PKG_VERSION"),
    };
    // Rendering to a string fails only if a value's own formatting does.
    page.render().unwrap_or_default()
}

fn row(row: &MatrixRow<'_>) -> Row {
    // An advisory is about using the fastpath, which a kernel without the option cannot.
    let relevant = row.advisories.iter().filter(|_| row.verdict != Verdict::Unsupported);
    Row {
        anchor: anchor(&row.target),
        target: row.target.clone(),
        os: row.os.clone(),
        kernel: row.kernel.to_string(),
        p2pdma: yes_no(row.p2pdma),
        verdict: row.verdict.as_str(),
        summary: summary(row),
        facts: facts(row),
        advisories: relevant
            .map(|(advisory, effect)| Advisory {
                id: advisory.id.clone(),
                effect: match effect {
                    Effect::Block => "Blocked",
                    Effect::Warn => "Warning",
                },
                summary: advisory.summary.clone(),
                paragraphs: advisory.detail.split("\n\n").map(str::to_owned).collect(),
                lifted_by: advisory.lifted_by.clone(),
                source: advisory.source.title.clone(),
                // Only web addresses become links: the entry may come from a user's file.
                url: advisory
                    .source
                    .url
                    .clone()
                    .filter(|url| url.starts_with("https://") || url.starts_with("http://")),
                date: advisory.date.clone(),
            })
            .collect(),
        hints: row
            .hints
            .iter()
            .map(|hint| Hint {
                text: hint.text.clone(),
                detail: hint.detail.clone(),
                commands: hint.commands.join("\n"),
                about: hint.kernel.iter().flat_map(crate::text::about_kernel).collect(),
            })
            .collect(),
    }
}

/// A name for a link inside the page.
fn anchor(target: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '-' };
    format!("row-{}", target.chars().map(plain).collect::<String>())
}
