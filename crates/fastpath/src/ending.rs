//! What must not stay behind when a signal ends the program: a temporary file's name, and a bar on the terminal.
//!
//! A thread waits for the signal, so that a request the GPU never answers does not hold up the end. The program then dies of the
//! signal itself: a shell says 128 and its number, and ends its loops.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use crate::output;

/// More leftovers of killed programs than a folder will have.
const MOST_NAMES: u32 = 100;

struct Left {
    temporary: Option<PathBuf>,
    bar: Option<ProgressBar>,
}

/// Whoever holds it is not interrupted.
static LEFT: Mutex<Left> = Mutex::new(Left { temporary: None, bar: None });

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal that ends the program leaves nothing behind, and says `outcome`.
///
/// # Errors
///
/// When no handler can be set.
pub(crate) fn prepare(outcome: String) -> anyhow::Result<()> {
    // Writing past the limit of a file's size is an error that is said, not an end.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).context("SIGXFSZ")?;
    let mut signals =
        Signals::new(heeded(&[SIGHUP, SIGINT, SIGTERM])).context("signal handlers")?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                end(signal, &outcome);
            }
        })
        .context("the thread that waits for signals")?;
    Ok(())
}

/// Those of the signals that whoever started the program has not told it to ignore, as `nohup` does.
pub(crate) fn heeded(signals: &[i32]) -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    signals.iter().copied().filter(|signal| mask >> (signal - 1) & 1 == 0).collect()
}

/// Puts things in order and dies of the signal. What is held meanwhile keeps anybody from making or naming a file.
fn end(signal: i32, outcome: &str) {
    let mut left = left();
    if let Some(temporary) = left.temporary.take() {
        let _ = fs::remove_file(temporary);
    }
    if let Some(bar) = left.bar.take() {
        bar.finish_and_clear();
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let name = signal_name(signal).unwrap_or("a signal");
    output::note(&format!("error: ended by {name}: {outcome}"));
    let _ = emulate_default_handler(signal);
}

/// The bar that is to be cleared.
pub(crate) fn shows(bar: &ProgressBar) {
    left().bar = Some(bar.clone());
}

/// Makes something under a name in `folder` that nobody has, which is removed in the end unless it gets another.
///
/// # Errors
///
/// When it cannot be made; the path is said.
pub(crate) fn make<T>(
    folder: &Path,
    mut put: impl FnMut(&Path) -> io::Result<T>,
) -> anyhow::Result<T> {
    let mut left = left();
    let mut number = 0;
    loop {
        let path = folder.join(format!(".fastpath-{}-{number}", std::process::id()));
        match put(&path) {
            Ok(made) => {
                left.temporary = Some(path);
                return Ok(made);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < MOST_NAMES => {
                number += 1;
            }
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
    }
}

/// Gives what [`make`] made its name.
///
/// # Errors
///
/// When it cannot have it; the path is said.
pub(crate) fn rename(name: &Path) -> anyhow::Result<()> {
    let mut left = left();
    let temporary = left.temporary.as_ref().context("nothing was made")?;
    fs::rename(temporary, name).with_context(|| name.display().to_string())?;
    left.temporary = None;
    Ok(())
}

/// Removes what [`make`] made, if it has not got its name.
pub(crate) fn remove() -> io::Result<()> {
    let temporary = left().temporary.take();
    temporary.map_or(Ok(()), fs::remove_file)
}
