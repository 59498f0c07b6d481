//! `fastpath inspect`.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use fastpath_artifact::http::{Client, Fetch, Options, RemoteFile, shown};
use fastpath_artifact::{Evidence, Finder, Found, Limits, Summary};
use fastpath_host::{Kind, State, Witness, config_witness};
use fastpath_kconfig::gzip::{self, OUTPUT_LIMIT};
use fastpath_knowledge::{Advisory, Knowledge, Release};
use fastpath_report::Inspected;
use fastpath_verdict::Verdict;

use crate::args::{Format, InspectArgs};
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
    let result = find(file, args.first, &mut answer).with_context(|| input.clone());
    written?;
    let summary = match result {
        Ok(summary) => summary,
        // What is no container is a configuration that cannot be read: that has an answer of its own.
        Err(error) if verdicts.is_empty() => match damaged(file, &input) {
            Some(found) => {
                let (witness, bytes_read) = found;
                let verdict =
                    judge_witness(&input, None, None, &witness, bytes_read, args, knowledge)?;
                return Ok(vec![verdict]);
            }
            None => return Err(error),
        },
        Err(error) => {
            // What was found before the damage stands; what comes after it is not known.
            error::print(&error);
            verdicts.push(Verdict::Unknown);
            return Ok(verdicts);
        }
    };
    for error in &summary.errors {
        output::note(&format!("warning: {input}: {error}"));
    }
    if summary.more_errors > 0 {
        output::note(&format!("warning: {input}: {} more errors", summary.more_errors));
    }
    if verdicts.is_empty() {
        bail!("{input}: no kernel was found in it, {} bytes were read", summary.bytes_read);
    }
    Ok(verdicts)
}

/// Looks for kernels in a file, a URL, standard input, or a folder in OCI layout.
fn find(file: &Path, first: bool, sink: &mut dyn FnMut(Found)) -> anyhow::Result<Summary> {
    let mut finder = Finder::new(Limits::default(), first);
    if file == Path::new("-") {
        return Ok(finder.find_in_stream(&mut io::stdin().lock(), "-", sink)?);
    }
    if let Some(url) = file.to_str().filter(|text| is_url(text)) {
        let client: Arc<dyn Fetch> = Arc::new(Client::new(Options::default())?);
        let mut remote = RemoteFile::open(client, url)?;
        let name = url.rsplit('/').next().unwrap_or(url);
        // What was read ahead was transferred too.
        let meter = remote.meter().clone();
        let mut transferred = |found: Found| {
            sink(Found { bytes_read: meter.total().max(found.bytes_read), ..found });
        };
        return Ok(finder.find(&mut remote, name, &mut transferred)?);
    }
    let kind = std::fs::metadata(file)?.file_type();
    if kind.is_dir() {
        return find_in_layout(file, finder, sink);
    }
    if kind.is_char_device() || kind.is_socket() {
        bail!("a character device or socket; expected a file");
    }
    Ok(finder.find_in_file(file, sink)?)
}

/// An input's name for output: an address without credentials.
fn name_of(file: &Path) -> String {
    shown(&file.display().to_string())
}

fn is_url(text: &str) -> bool {
    ["http://", "https://", "file://"].iter().any(|scheme| text.starts_with(scheme))
}

/// An OCI image layout is a folder of blobs; the layers among them hold the files.
/// Source: <https://github.com/opencontainers/image-spec/blob/main/image-layout.md>.
fn find_in_layout(
    folder: &Path,
    mut finder: Finder,
    sink: &mut dyn FnMut(Found),
) -> anyhow::Result<Summary> {
    if !folder.join("oci-layout").is_file() {
        bail!("a directory; expected a file or a folder in OCI layout");
    }
    let mut blobs: Vec<PathBuf> = Vec::new();
    for algorithm in std::fs::read_dir(folder.join("blobs"))? {
        for blob in std::fs::read_dir(algorithm?.path())? {
            blobs.push(blob?.path());
        }
    }
    blobs.sort();
    let mut all = Summary::default();
    for blob in blobs {
        let name = blob.strip_prefix(folder).unwrap_or(&blob).display().to_string();
        let mut named = |mut found: Found| {
            let member = found.member.as_ref().map(|member| format!("!{member}"));
            found.member = Some(format!("{name}{}", member.unwrap_or_default()));
            sink(found);
        };
        // Manifests and configurations of images are blobs too: what holds nothing is passed over.
        if let Ok(summary) = finder.find_in_file(&blob, &mut named) {
            all.bytes_read += summary.bytes_read;
            all.members += summary.members;
            all.found += summary.found;
            all.errors.extend(summary.errors);
            all.more_errors += summary.more_errors;
        }
    }
    Ok(all)
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

/// Reads a small file that is no container as the configuration it should be, to tell what is wrong with it.
fn damaged(file: &Path, input: &str) -> Option<(Witness, u64)> {
    let limit = u64::try_from(OUTPUT_LIMIT).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    let head = &bytes[..bytes.len().min(512)];
    let is_text = std::str::from_utf8(head).is_ok_and(|head| !head.starts_with('\0'));
    if !(gzip::is_gzip(&bytes) || is_text) {
        return None;
    }
    let witness = config_witness(input, Kind::BootConfig, &bytes, None);
    let unsound = !matches!(witness.state, State::Y | State::NotSet | State::N | State::M);
    unsound.then(|| (witness, u64::try_from(bytes.len()).unwrap_or(u64::MAX)))
}
