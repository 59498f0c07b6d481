//! What the commands that move bytes share: the driver, a file without a name, and why a request went its way.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::ops::Deref;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use fastpath_host::DirTree;
use hipfile::choose::Reason;
use hipfile::log::Level;
use hipfile::{Driver, Options, Runtime, config};
use indicatif::ProgressBar;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::args::RuntimeArgs;
use crate::{ending, output};

/// Said wherever numbers or bytes could be taken for a GPU's.
const SIMULATION: &str =
    "SIMULATION: the HIP runtime is a simulation; this says nothing about any GPU";

/// The driver of this process. `accept` are advisories whose risk the user takes.
pub(super) fn driver(args: &RuntimeArgs, accept: &[String]) -> anyhow::Result<Driver> {
    let accepted = (!accept.is_empty()).then(|| OsString::from(accept.join(",")));
    let mut options = Options::with_environment(|name| {
        let given = || std::env::var_os(name);
        if name == config::ACCEPT_ADVISORY { accepted.clone().or_else(given) } else { given() }
    });
    // What the library would say once of a file, these commands say themselves.
    if std::env::var_os(config::LOG).is_none() {
        options.config.log = Level::Off;
    }
    if let Some(root) = &args.root {
        options.tree = Box::new(DirTree::open(root)?);
    }
    Ok(Driver::on(Arc::new(Runtime::new(options)))?)
}

/// Says loudly if there is no GPU behind the driver.
pub(super) fn warn_of_simulation(driver: &Driver) -> anyhow::Result<bool> {
    let is_simulation = driver.is_simulation()?;
    if is_simulation {
        output::note(SIMULATION);
    }
    Ok(is_simulation)
}

/// A new file in `folder` without a name, and `false`; where the file system has no such files, under a name of its own that
/// [`ending`] removes, and `true`.
pub(super) fn temporary(folder: &Path) -> anyhow::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let unnamed = options.clone().custom_flags(OFlags::TMPFILE.bits().cast_signed()).open(folder);
    let without = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::INVAL];
    match unnamed {
        Ok(file) => return Ok((file, false)),
        Err(error)
            if without.iter().any(|errno| Some(errno.raw_os_error()) == error.raw_os_error()) => {}
        Err(error) => return Err(error).with_context(|| folder.display().to_string()),
    }
    options.create_new(true);
    Ok((ending::make(folder, |path| options.open(path))?, true))
}

/// A new file in `folder` that is gone when its last descriptor is, however the program ends.
pub(super) fn unnamed(folder: &Path) -> anyhow::Result<File> {
    let (file, is_named) = temporary(folder)?;
    if is_named {
        ending::remove().with_context(|| folder.display().to_string())?;
    }
    Ok(file)
}

/// The same file through another descriptor, with or without `O_DIRECT`.
pub(super) fn reopen(file: &File, direct: bool) -> anyhow::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let flags = if direct { OFlags::DIRECT.bits().cast_signed() } else { 0 };
    let mut options = OpenOptions::new();
    let what = if direct { "open with O_DIRECT" } else { "open" };
    options.read(true).write(true).custom_flags(flags).open(&path).context(what)
}

/// Why requests on a file did not take the fastpath, but for that they were told not to by `told`.
pub(super) fn reason(file: &hipfile::File, told: bool) -> Option<Reason> {
    let reasons = file.reasons();
    reasons.iter().map(|(reason, _)| *reason).find(|reason| !told || *reason != Reason::Forced)
}

/// A bar on a terminal, nothing elsewhere; cleared when it is dropped, or a signal ends the program.
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(length: u64, quiet: bool, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length), output::progress(quiet))
            .with_style(output::progress_style(template));
        ending::shows(&bar);
        Self(bar)
    }
}

impl Deref for Bar {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
