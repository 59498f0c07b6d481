//! Colours, wrapping, and making foreign text harmless.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use fastpath_verdict::{Status, Verdict};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

const fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(colour))).bold()
}

pub(crate) const fn verdict_style(verdict: Verdict) -> Style {
    colour(match verdict {
        Verdict::Supported => AnsiColor::Green,
        Verdict::Unknown => AnsiColor::Yellow,
        Verdict::Unsupported | Verdict::Blocked => AnsiColor::Red,
    })
}

pub(crate) const fn status_style(status: Status) -> Style {
    match status {
        Status::Pass => colour(AnsiColor::Green),
        Status::Info => DIM,
        Status::Warn | Status::Unknown => colour(AnsiColor::Yellow),
        Status::Fail | Status::Block => colour(AnsiColor::Red),
    }
}

pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Makes text from a foreign file safe to print: control characters are shown, not sent. Long text is cut.
pub(crate) fn clean(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut out = String::with_capacity(text.len());
    for (count, c) in text.chars().enumerate() {
        if count == LONGEST {
            out.push_str("...");
            break;
        }
        if c.is_control() || is_invisible(c) {
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Makes text harmless in markup, and in a reader.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// Characters that reorder or hide what stands beside them.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Wraps prose to `width` characters, every line indented by `indent` blanks. Ends with a newline.
pub(crate) fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            let _ = write!(out, "{:indent$}{word}", "");
            column = indent + length;
        } else {
            let _ = write!(out, " {word}");
            column += 1 + length;
        }
    }
    out.push('\n');
    out
}

/// A left-aligned table without lines; cells are padded to the widest of their column. `paint` styles a cell.
pub(crate) fn table(
    rows: &[Vec<String>],
    indent: usize,
    paint: impl Fn(usize, usize, &str) -> Style,
) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        let last = row.iter().rposition(|cell| !cell.is_empty()).unwrap_or(0);
        let _ = write!(out, "{:indent$}", "");
        for (column, cell) in row.iter().enumerate().take(last + 1) {
            out.push_str(&styled(paint(number, column, cell), cell));
            if column < last {
                let gap = widths[column] - cell.chars().count() + 2;
                let _ = write!(out, "{:gap$}", "");
            }
        }
        out.push('\n');
    }
    out
}

/// The style of a cell that holds a verdict.
pub(crate) fn verdict_cell(cell: &str) -> Style {
    let verdicts = [Verdict::Supported, Verdict::Unknown, Verdict::Unsupported, Verdict::Blocked];
    verdicts
        .into_iter()
        .find(|verdict| verdict.as_str() == cell)
        .map_or_else(Style::new, verdict_style)
}
