//! `fastpath matrix`.

use std::collections::BTreeSet;

use fastpath_knowledge::{Knowledge, Release, Target};
use fastpath_survey::{Dataset, Record};
use fastpath_verdict::{MatrixRow, Provenance, Reading, Surveyed, Verdict};

use crate::args::{MatrixArgs, MatrixFormat};
use crate::error::Hinted;
use crate::{output, root};

pub(crate) fn run(args: &MatrixArgs) -> anyhow::Result<u8> {
    let knowledge = root::knowledge(&args.knowledge)?;
    let mut surveyed = if args.published { Vec::new() } else { surveyed(args, &knowledge)? };
    if let Some(name) = &args.alternatives {
        surveyed.extend(remedies(target(name, &knowledge)?, &knowledge));
    }
    let mut rows = fastpath_verdict::matrix(&knowledge, &surveyed);
    let mut code = 0;
    if let Some(name) = &args.target {
        let target = target(name, &knowledge)?;
        rows.retain(|row| row.target == target.name);
        code = rows.last().ok_or_else(|| no_row(target))?.verdict.exit_code();
    }
    if let Some(name) = &args.alternatives {
        let target = target(name, &knowledge)?;
        rows.retain(|row| is_alternative(row, target, &knowledge));
        rows.sort_by_key(|row| row.provenance.reading.is_none());
        let mut seen = BTreeSet::new();
        rows.retain(|row| seen.insert(row.kernel.clone()));
        if rows.is_empty() {
            output::note(&no_alternative(target, &knowledge));
        }
    }
    if !args.quiet {
        output::data(&render(args, &rows))?;
    }
    Ok(code)
}

/// What the newest survey found, target by target.
fn surveyed(args: &MatrixArgs, knowledge: &Knowledge) -> anyhow::Result<Vec<Surveyed>> {
    let Some(path) = args.data.clone().or_else(Dataset::default_path) else {
        return Ok(Vec::new());
    };
    anyhow::ensure!(
        args.data.is_none() || path.exists(),
        "{}: there is no data set; `fastpath survey --data` writes one",
        path.display()
    );
    let dataset = Dataset::load(&path)?;
    let until = super::survey::soon();
    for run in dataset.runs_after(&until) {
        output::note(&format!("warning: the run {run} is dated in the future, and is not shown"));
    }
    Ok(dataset.newest(&until).into_values().filter_map(|record| row(record, knowledge)).collect())
}

/// A record as a row; `None` for one without a kernel.
pub(super) fn row(record: &Record, knowledge: &Knowledge) -> Option<Surveyed> {
    let kernel = Release::new(record.release.as_ref().or(record.header_version.as_ref())?)?;
    let target = knowledge.target(&record.target);
    let os = target
        .and_then(|target| target.stand_in.clone())
        .unwrap_or_else(|| format!("{} {}", record.distribution, record.distribution_version));
    let package = [record.package.as_deref(), record.version.as_deref()];
    let p2pdma = match record.value.as_deref() {
        Some("y") => Some(true),
        Some("m" | "n" | "not set" | "absent") => Some(false),
        _ => None,
    };
    Some(Surveyed {
        target: record.target.clone(),
        os,
        kernel,
        p2pdma,
        provenance: Provenance {
            origin: "survey".to_owned(),
            url: record.repository.clone().unwrap_or_default(),
            date: record.time.clone(),
            method: record.method.clone(),
            reading: Some(Reading {
                package: package.into_iter().flatten().collect::<Vec<_>>().join(" "),
                url: record.url.clone().unwrap_or_default(),
                hash: record.hash.clone(),
                member: record.member.clone(),
                line: record.line,
                value: record.value.clone().unwrap_or_else(|| "unknown".to_owned()),
                trust: record.trust.map_or("unknown", |trust| trust.as_str()).to_owned(),
                companions: record.companions.clone(),
                bytes_read: record.bytes_read,
                note: record.note.clone(),
            }),
        },
    })
}

/// The origin of a row that stands in the table of remedies.
const REMEDY: &str = "remedies";

/// The kernels that remedies lead to on the target's system.
fn remedies(target: &Target, knowledge: &Knowledge) -> Vec<Surveyed> {
    let for_target = knowledge.remedies.iter().filter(|remedy| {
        let when = &remedy.when;
        !remedy.withdrawn
            && when.os.contains(&target.os_id)
            && when.os_version.iter().any(|version| version.matches(&target.os_version))
    });
    let rows = for_target.filter_map(|remedy| {
        let kernel = remedy.kernel.as_ref()?;
        Some(Surveyed {
            target: remedy.id.clone(),
            os: format!("{} {}", target.distribution, target.version),
            kernel: kernel.release.clone(),
            p2pdma: Some(true),
            provenance: Provenance {
                origin: REMEDY.to_owned(),
                url: String::new(),
                date: kernel.date.clone(),
                method: format!("{}: {}", kernel.package, kernel.seen),
                reading: None,
            },
        })
    });
    rows.collect()
}

/// Whether a row is another kernel of the target's distribution, of the same version, that can be used.
fn is_alternative(row: &MatrixRow<'_>, target: &Target, knowledge: &Knowledge) -> bool {
    let Some(other) = knowledge.target(&row.target) else {
        return row.provenance.origin == REMEDY && row.verdict == Verdict::Supported;
    };
    other.is_same_system(target) && other.id != target.id && row.verdict == Verdict::Supported
}

fn render(args: &MatrixArgs, rows: &[MatrixRow<'_>]) -> String {
    match args.format {
        MatrixFormat::Text if args.target.is_some() => {
            let text = |row| fastpath_report::row_text(row, output::width());
            rows.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        MatrixFormat::Text => fastpath_report::matrix_text(rows),
        MatrixFormat::Rst => fastpath_report::matrix_rst(rows),
        MatrixFormat::Md => fastpath_report::matrix_markdown(rows),
        MatrixFormat::Csv => fastpath_report::matrix_csv(rows),
        MatrixFormat::Html => fastpath_report::matrix_html(rows),
        MatrixFormat::Json => fastpath_report::matrix_json(rows),
    }
}

/// The target with this name, or what it may have been meant to be.
pub(super) fn target<'a>(name: &str, knowledge: &'a Knowledge) -> Result<&'a Target, Hinted> {
    knowledge.target(name).ok_or_else(|| {
        let names: BTreeSet<&str> = knowledge
            .targets()
            .flat_map(|target| [target.name.as_str(), target.id.as_str()])
            .collect();
        let near = super::explain::nearest(name, names.into_iter());
        Hinted {
            message: format!("there is no target `{name}`"),
            hint: match near {
                near if near.is_empty() => "`fastpath survey --list` lists them".to_owned(),
                near => format!("nearest: {}; `fastpath survey --list` lists all", near.join(", ")),
            },
        }
    })
}

fn no_row(target: &Target) -> Hinted {
    Hinted {
        message: format!("nothing is published about `{}`, and no survey has read it", target.name),
        hint: format!("`fastpath survey {}` reads it", target.name),
    }
}

fn no_alternative(target: &Target, knowledge: &Knowledge) -> String {
    let others: Vec<&str> = knowledge
        .targets()
        .filter(|other| other.is_same_system(target) && other.id != target.id)
        .map(|other| other.name.as_str())
        .collect();
    format!(
        "no other kernel of {} {} is known to have the option; `fastpath survey {}` looks",
        target.distribution,
        target.version,
        others.join(" ")
    )
}
