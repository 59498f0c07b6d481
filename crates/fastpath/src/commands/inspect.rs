//! `fastpath inspect`.

mod kept;
mod layout;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Seek as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use fastpath_artifact::http::{
    Client, Fetch, Meter, Options, RemoteFile, file_name, is_address, shown,
};
use fastpath_artifact::{Error, Evidence, Finder, Found, Limits, Summary};
use fastpath_host::{Kind, State, Witness, config_witness};
use fastpath_knowledge::{Advisory, Knowledge, Release};
use fastpath_report::Inspected;
use fastpath_verdict::Verdict;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use self::kept::Kept;
use crate::args::{Format, InspectArgs};
use crate::error::Hinted;
use crate::{error, output, root};

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<u8> {
    let knowledge = root::knowledge(&args.knowledge)?;
    let mut codes = Vec::new();
    for file in &args.files {
        match inspect(file, args, &knowledge) {
            Ok(verdicts) => codes.push(exit_code(&verdicts)),
            Err(error) => {
                error::print(&error);
                if args.format == Format::Json && !args.quiet {
                    let detail = error.root_cause().to_string();
                    let input = name_of(file);
                    output::data(&fastpath_report::inspect_failed_json(&input, &detail))?;
                }
                codes.push(2);
            }
        }
    }
    // One `no` among several inputs outweighs an input that could not be judged.
    Ok(if codes.contains(&1) { 1 } else { codes.into_iter().max().unwrap_or(0) })
}

/// The exit code of one input: with several kernels in it, one that could not be judged leaves the input undecided.
fn exit_code(verdicts: &[Verdict]) -> u8 {
    verdicts.iter().map(|verdict| verdict.exit_code()).max().unwrap_or(2)
}

/// Every kernel in one input, judged and printed.
fn inspect(file: &Path, args: &InspectArgs, knowledge: &Knowledge) -> anyhow::Result<Vec<Verdict>> {
    let input = name_of(file);
    let mut verdicts = Vec::new();
    let mut written = Ok(());
    let mut answer = |found: Found| {
        let (release, witness) = read(&input, &found);
        let verdict = judge(&input, &found, release.as_ref(), &witness, args, knowledge);
        match verdict {
            Ok(verdict) => verdicts.push(verdict),
            Err(error) => written = Err(error),
        }
    };
    let name = last_name(file);
    let result = find(file, &name, args.first, &mut answer);
    written?;
    let summary = match result {
        Ok(summary) => summary,
        // What is no container is a configuration that cannot be read: that has an answer of its own.
        Err(failed) if verdicts.is_empty() => match damaged(&failed, &input) {
            Some((witness, bytes_read)) => {
                let verdict =
                    judge_witness(&input, None, None, &witness, bytes_read, args, knowledge)?;
                return Ok(vec![verdict]);
            }
            None => return Err(of_input(&input, &name, &failed.error)),
        },
        Err(failed) => {
            // What was found before the damage stands; what comes after it is not known.
            error::print(&of_input(&input, &name, &failed.error));
            verdicts.push(Verdict::Unknown);
            return Ok(verdicts);
        }
    };
    for error in &summary.errors {
        output::note(&format!("warning: {}", error::line(&of_input(&input, &name, error))));
    }
    if summary.more_errors > 0 {
        output::note(&format!("warning: {input}: {} more errors", summary.more_errors));
    }
    if verdicts.is_empty() {
        let read = summary.bytes_read;
        let message = format!("{input}: no kernel was found in it, {read} bytes were read");
        if summary.depends.is_empty() {
            bail!(message);
        }
        let hint = format!("look into what it depends on: {}", summary.depends.join(", "));
        bail!(Hinted { message, hint });
    }
    Ok(verdicts)
}

/// An input that gave nothing more.
struct Failed {
    error: anyhow::Error,
    /// The input, if it may be a configuration that is damaged.
    bytes: Option<Vec<u8>>,
}

impl<E: Into<anyhow::Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self { error: error.into(), bytes: None }
    }
}

/// Looks for kernels in a file, a URL, standard input, or a folder in OCI layout. An input is opened once, since a pipe
/// gives what it has only once.
fn find(
    file: &Path,
    name: &str,
    first: bool,
    sink: &mut dyn FnMut(Found),
) -> Result<Summary, Failed> {
    let mut finder = Finder::new(Limits::default(), first);
    if file == Path::new("-") {
        return find_in_stream(finder, &mut io::stdin().lock(), name, sink);
    }
    if let Some(url) = file.to_str().filter(|text| is_address(text)) {
        return Ok(find_behind(url, finder, name, sink)?);
    }
    let kind = std::fs::metadata(file)?.file_type();
    if kind.is_dir() {
        return Ok(layout::find(file, finder, name, sink)?);
    }
    if kind.is_char_device() || kind.is_socket() {
        return Err(anyhow!("a character device or socket; expected a file").into());
    }
    let mut open = File::open(file)?;
    if kind.is_fifo() {
        return find_in_stream(finder, &mut open, name, sink);
    }
    finder.find(&mut open, name, sink).map_err(|error| {
        let bytes = open.rewind().ok().and_then(|()| kept::again(&mut open));
        Failed { error: error.into(), bytes }
    })
}

fn find_in_stream(
    mut finder: Finder,
    stream: &mut dyn Read,
    name: &str,
    sink: &mut dyn FnMut(Found),
) -> Result<Summary, Failed> {
    let mut kept = Kept::new(stream);
    let result = finder.find_in_stream(&mut kept, name, sink);
    result.map_err(|error| Failed { error: error.into(), bytes: kept.bytes() })
}

/// Looks for kernels behind an address. A terminal sees that something comes, or that nothing does.
fn find_behind(
    url: &str,
    mut finder: Finder,
    name: &str,
    sink: &mut dyn FnMut(Found),
) -> anyhow::Result<Summary> {
    let meter = Meter::default();
    let bar = spinner(url, meter.clone());
    let client: Arc<dyn Fetch> = Arc::new(Client::new(Options::default())?);
    let mut remote = RemoteFile::open_with(client, url, meter.clone())?;
    // What was read ahead was transferred too.
    let mut transferred = |found: Found| {
        let bytes_read = meter.total().max(found.bytes_read);
        bar.suspend(|| sink(Found { bytes_read, ..found }));
    };
    let result = finder.find(&mut remote, name, &mut transferred);
    bar.finish_and_clear();
    Ok(result?)
}

fn spinner(url: &str, meter: Meter) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if !io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        return bar;
    }
    let received = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        // Nothing can be done about a line that is not drawn.
        let _ = write!(out, "{} kB", meter.total() / 1000);
    };
    let style = ProgressStyle::with_template("{spinner} {prefix}: {received} {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    bar.set_style(style.with_key("received", received));
    bar.set_prefix(shown(url));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// An input's name for output: an address without credentials.
fn name_of(file: &Path) -> String {
    shown(&file.display().to_string())
}

/// The last part of an input's name, which may say which kernel it is.
fn last_name(file: &Path) -> String {
    match file.to_str().filter(|text| is_address(text)) {
        Some(url) => file_name(url),
        None => file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
    }
}

/// An error of an input, which may call itself by the last part of its name or by all of it.
fn of_input(input: &str, name: &str, error: &(impl std::fmt::Display + ?Sized)) -> anyhow::Error {
    let text = format!("{error:#}");
    let rest = [input, name].into_iter().filter(|name| !name.is_empty()).find_map(|name| {
        text.strip_prefix(name).filter(|rest| rest.starts_with(": ") || rest.starts_with('!'))
    });
    match rest.map(|rest| (rest, rest.strip_prefix(": "))) {
        Some((_, Some(detail))) => anyhow!(detail.to_owned()).context(input.to_owned()),
        Some((inside, None)) => anyhow!("{input}{inside}"),
        None => anyhow!(text).context(input.to_owned()),
    }
}

/// What evidence says, as a witness.
pub(super) fn read(input: &str, found: &Found) -> (Option<Release>, Witness) {
    let path = found.member.as_deref().unwrap_or(input);
    let mut witness = match &found.evidence {
        // The file itself is the question, so no header makes it another kernel's.
        Evidence::Config(text) => config_witness(path, Kind::BootConfig, text, None),
        Evidence::Symbols(has_option) => Witness::of_symbols(path, *has_option),
        Evidence::NoConfig { .. } => Witness::of_symbols(path, None),
    };
    if let Evidence::NoConfig { version } = &found.evidence {
        witness.header_version.clone_from(version);
        witness.detail = Some("a kernel image that does not carry its configuration".to_owned());
    }
    let header = witness.header_version.as_deref().and_then(Release::new);
    let whole_header = header.filter(|version| version.as_str().contains('-'));
    (found.release.clone().or(whole_header), witness)
}

fn judge(
    input: &str,
    found: &Found,
    release: Option<&Release>,
    witness: &Witness,
    args: &InspectArgs,
    knowledge: &Knowledge,
) -> anyhow::Result<Verdict> {
    let member = found.member.as_deref();
    judge_witness(input, member, release, witness, found.bytes_read, args, knowledge)
}

/// Judges one kernel and prints the answer. An advisory may be brought by the release and by the header's version.
fn judge_witness(
    input: &str,
    member: Option<&str>,
    release: Option<&Release>,
    witness: &Witness,
    bytes_read: u64,
    args: &InspectArgs,
    knowledge: &Knowledge,
) -> anyhow::Result<Verdict> {
    let header = witness.header_version.as_deref().and_then(Release::new);
    let witnesses = std::slice::from_ref(witness);
    let known = release.or(header.as_ref());
    let mut judgement = fastpath_verdict::judge(known, witnesses, false, knowledge);
    let mut advisories: Vec<&Advisory> = Vec::new();
    for version in [release, header.as_ref()].into_iter().flatten() {
        let other = fastpath_verdict::judge(Some(version), witnesses, false, knowledge);
        if other.verdict == Verdict::Blocked {
            judgement = other;
        }
        for advisory in knowledge.advisories.iter().filter(|advisory| advisory.matches(version)) {
            if !advisories.iter().any(|known| known.id == advisory.id) {
                advisories.push(advisory);
            }
        }
    }
    let inspected = Inspected {
        input,
        member,
        release,
        witness,
        judgement: &judgement,
        advisories,
        bytes_read,
    };
    if !args.quiet {
        output::data(&match args.format {
            Format::Text => fastpath_report::inspect_text(&inspected, args.verbose),
            Format::Json => fastpath_report::inspect_json(&inspected),
        })?;
    }
    Ok(judgement.verdict)
}

/// What may be a configuration, read as one, to tell what is wrong with it. A bound that was reached, or a format that is
/// known and not read, is told as it is.
fn damaged(failed: &Failed, input: &str) -> Option<(Witness, u64)> {
    let bytes = failed.bytes.as_deref()?;
    match failed.error.downcast_ref()? {
        error @ Error::Unsupported { .. } if error.is_unknown() => {}
        Error::Truncated { .. } | Error::Damaged { .. } => {}
        _ => return None,
    }
    let witness = config_witness(input, Kind::BootConfig, bytes, None);
    let unsound = !matches!(witness.state, State::Y | State::NotSet | State::N | State::M);
    unsound.then(|| (witness, u64::try_from(bytes.len()).unwrap_or(u64::MAX)))
}
