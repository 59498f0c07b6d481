//! `fastpath inspect`.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use fastpath_host::{Kind, config_witness};
use fastpath_kconfig::gzip::OUTPUT_LIMIT;
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
            Ok(verdict) => codes.push(verdict.exit_code()),
            Err(error) => {
                error::print(&error);
                if args.format == Format::Json && !args.quiet {
                    let detail = format!("{:#}", error.root_cause());
                    let input = file.display().to_string();
                    output::data(&fastpath_report::inspect_failed_json(&input, &detail))?;
                }
                codes.push(2);
            }
        }
    }
    // One `no` among several outweighs an input that could not be judged.
    Ok(if codes.contains(&1) { 1 } else { codes.into_iter().max().unwrap_or(0) })
}

fn inspect(file: &Path, args: &InspectArgs, knowledge: &Knowledge) -> anyhow::Result<Verdict> {
    let input = file.display().to_string();
    let bytes = read(file).with_context(|| input.clone())?;
    // The file itself is the question, so no header makes it another kernel's.
    let witness = config_witness(&input, Kind::BootConfig, &bytes, None);
    let header = witness.header_version.as_deref().and_then(Release::new);
    let named = release_in_name(file);
    let full_header = header.clone().filter(|version| version.as_str().contains('-'));
    let release = named.or(full_header);
    let witnesses = [witness];
    let known = release.as_ref().or(header.as_ref());
    let mut judgement = fastpath_verdict::judge(known, &witnesses, false, knowledge);
    let mut advisories: Vec<&Advisory> = Vec::new();
    for version in [release.as_ref(), header.as_ref()].into_iter().flatten() {
        let other = fastpath_verdict::judge(Some(version), &witnesses, false, knowledge);
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
        input: &input,
        release: release.as_ref(),
        witness: &witnesses[0],
        judgement: &judgement,
        advisories,
        bytes_read: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
    };
    if !args.quiet {
        output::data(&match args.format {
            Format::Text => fastpath_report::inspect_text(&inspected, args.verbose),
            Format::Json => fastpath_report::inspect_json(&inspected),
        })?;
    }
    Ok(judgement.verdict)
}

/// The release in names such as `config-6.8.0-138-generic.gz` or `kernel-config-x86_64-6.1.0-gentoo`.
fn release_in_name(file: &Path) -> Option<Release> {
    let name = file.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let release = match name.strip_prefix("kernel-config-") {
        Some(rest) => rest.split_once('-')?.1,
        None => name.strip_prefix("config-")?,
    };
    Release::new(release).filter(|release| release.major_minor().is_some())
}

/// Reads a file, or standard input for `-`, up to the limit. Devices are refused; a pipe is read like standard input.
fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let limit = u64::try_from(OUTPUT_LIMIT).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let take = |reader: &mut dyn Read, bytes: &mut Vec<u8>| -> io::Result<usize> {
        reader.take(limit + 1).read_to_end(bytes)
    };
    if file == Path::new("-") {
        take(&mut io::stdin().lock(), &mut bytes)?;
    } else {
        let kind = std::fs::metadata(file)?.file_type();
        if kind.is_dir() {
            bail!("a directory; expected a kernel configuration");
        }
        if kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
            bail!("a device or socket; expected a kernel configuration");
        }
        take(&mut File::open(file)?, &mut bytes)?;
    }
    if bytes.len() > OUTPUT_LIMIT {
        bail!("larger than {OUTPUT_LIMIT} bytes; expected a kernel configuration");
    }
    Ok(bytes)
}
