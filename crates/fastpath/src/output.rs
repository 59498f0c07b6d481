//! The two ways out: data to stdout, everything else to stderr.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context as _;
use indicatif::{ProgressDrawTarget, ProgressStyle};

/// Writes data to stdout, without styles where no terminal reads or `NO_COLOR` is set. A reader that has gone is no
/// error: it has seen what it wanted.
///
/// # Errors
///
/// Any other failure to write.
pub(crate) fn data(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("standard output"))
        }
        _ => Ok(()),
    }
}

/// The width to wrap prose to: the terminal's, at most 100 columns, and 100 where no terminal reads.
pub(crate) fn width() -> usize {
    const WIDEST: usize = 100;
    const NARROWEST: usize = 40;
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
    if columns == 0 { WIDEST } else { usize::from(columns).clamp(NARROWEST, WIDEST) }
}

/// Writes bytes to stdout as they are.
///
/// # Errors
///
/// Any failure to write: unlike a report, half an archive is worth nothing.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("standard output")
}

/// Characters that change the order in which others are shown.
const fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Where progress is drawn: on a terminal, unless nothing is to be said.
pub(crate) fn progress(quiet: bool) -> ProgressDrawTarget {
    if quiet || !io::stderr().is_terminal() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    }
}

/// The look of a progress bar; the usual one, should the template be wrong.
pub(crate) fn progress_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Writes a line to stderr.
pub(crate) fn note(line: &str) {
    let visible: String = line
        .chars()
        .flat_map(
            |c| if c.is_control() || is_bidi(c) { c.escape_default().collect() } else { vec![c] },
        )
        .collect();
    let _ = writeln!(anstream::stderr().lock(), "{visible}");
}
