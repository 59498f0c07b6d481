//! `fastpath survey`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, bail};
use fastpath_artifact::http::{Cache, Client, Fetch, Meter, Options, Proxies};
use fastpath_host::{DirTree, OsRelease};
use fastpath_kconfig::SYMBOLS;
use fastpath_knowledge::{Follow, Knowledge, Release, RepositoryFamily, Target, keys};
use fastpath_survey::apt::Apt;
use fastpath_survey::debian::{self, Follow as DebFollow, Pocket, Query, Repositories};
use fastpath_survey::trust::{Fingerprint, Keyring};
use fastpath_survey::{
    Change, Dataset, Kind, Look, PackageReading, Reader, Record, Resolved, SCHEMA, diff, flipped,
    pacman, rpm,
};
use indicatif::{MultiProgress, ProgressBar};

use crate::args::{Format, SurveyArgs};
use crate::{output, root};

/// How many targets are read at once. Nearly all of them wait, for the network or for another target that reads the same
/// index; fewer leave processors idle (`benches/survey.rs`). Decoding an index takes some 10 MB.
const JOBS: usize = 32;

pub(crate) fn run(args: &SurveyArgs) -> anyhow::Result<u8> {
    let knowledge = root::knowledge(&args.knowledge)?;
    let data = args.data.clone().or_else(Dataset::default_path);
    let data = data.context("no place for the data set: neither XDG_DATA_HOME nor HOME is set")?;
    if let Some(between) = &args.diff {
        return show_diff(&data, between, &knowledge, args.format);
    }
    let targets = select(args, &knowledge)?;
    if args.list {
        output::data(&fastpath_report::targets_text(&targets))?;
        return Ok(0);
    }
    // Better to know now than after all the reading.
    Dataset::check(&data)?;
    let survey = Survey::new(args, &knowledge)?;
    let records = survey.run(&targets);
    // Rows that cannot be kept are shown all the same.
    let kept = Dataset::append(&data, &records);
    show(&records, &knowledge, args)?;
    kept?;
    if let Some(path) = fastpath_survey::refresh_path().filter(|_| args.data.is_none()) {
        let found = fastpath_survey::refreshes(&Dataset::load(&data)?, &soon(), &knowledge);
        fastpath_survey::write_refreshes(&path, &found)?;
    }
    Ok(if records.iter().any(|record| record.error.is_some()) { 2 } else { 0 })
}

/// The targets that were asked for: by name, by flavour, or all.
fn select<'a>(args: &SurveyArgs, knowledge: &'a Knowledge) -> anyhow::Result<Vec<&'a Target>> {
    let fits = |target: &&Target| args.flavour.is_empty() || args.flavour.contains(&target.flavour);
    let mut targets = Vec::new();
    for name in &args.targets {
        let target = super::matrix::target(name, knowledge)?;
        if !targets.iter().any(|known: &&Target| known.id == target.id) {
            targets.push(target);
        }
    }
    if args.targets.is_empty() {
        targets.extend(knowledge.targets());
    }
    let flavours: BTreeSet<&str> =
        knowledge.targets().map(|target| target.flavour.as_str()).collect();
    let known = |flavour: &&String| flavours.contains(flavour.as_str());
    if let Some(unknown) = args.flavour.iter().find(|flavour| !known(flavour)) {
        let flavours: Vec<&str> = flavours.into_iter().collect();
        bail!("there is no flavour `{unknown}`; there are {}", flavours.join(", "));
    }
    targets.retain(fits);
    if targets.is_empty() {
        bail!("none of the targets named has the flavour `{}`", args.flavour.join(","));
    }
    Ok(targets)
}

/// What all targets of a run share.
struct Survey<'a> {
    args: &'a SurveyArgs,
    knowledge: &'a Knowledge,
    fetch: Arc<dyn Fetch>,
    cache: Cache,
    keyring: Keyring,
    mirrors: BTreeMap<String, Vec<String>>,
    apt: Apt,
    /// The machine's own system, and what its dnf is told.
    os: OsRelease,
    dnf: rpm::dnf::Configuration,
    now: jiff::Timestamp,
}

impl<'a> Survey<'a> {
    fn new(args: &'a SurveyArgs, knowledge: &'a Knowledge) -> anyhow::Result<Self> {
        let apt = Apt::read(Path::new("/"))?;
        let root = DirTree::open(Path::new("/"))?;
        let dnf = rpm::dnf::read(&root, std::env::consts::ARCH);
        let proxies = dnf.proxies.clone().unwrap_or_else(Proxies::from_environment);
        let options = Options {
            proxies: apt.proxies(proxies),
            ca_file: args.ca_file.clone(),
            offline: args.offline,
            ..Options::default()
        };
        let variable = |name: &str| std::env::var_os(name).map(Into::into);
        let cache = match Cache::usual_folder(variable) {
            Some(folder) => match Cache::new(folder, args.offline) {
                Ok(cache) => cache,
                Err(error) => {
                    output::note(&format!("warning: {error}; nothing is kept for the next run"));
                    Cache::temporary(args.offline)?
                }
            },
            None => Cache::temporary(args.offline)?,
        };
        let mut keyring = Keyring::usual(Path::new("/"));
        apt.add_keys(&mut keyring);
        for path in &args.keyring {
            keyring.add(path)?;
        }
        let mut mirrors: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for mirror in &args.mirror {
            let (id, url) = mirror
                .split_once('=')
                .with_context(|| format!("`--mirror {mirror}`: expected ID=URL"))?;
            let target = super::matrix::target(id, knowledge)?;
            mirrors.entry(target.id.clone()).or_default().push(url.to_owned());
        }
        let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())?;
        let fetch: Arc<dyn Fetch> = Arc::new(Client::new(options)?);
        let os = OsRelease::read(&root);
        Ok(Self { args, knowledge, fetch, cache, keyring, mirrors, apt, os, dnf, now })
    }

    /// Reads every target, several at once; one that fails is a record with its error.
    fn run(&self, targets: &[&Target]) -> Vec<Record> {
        let bars = MultiProgress::with_draw_target(output::progress(self.args.quiet));
        let total = bars.add(ProgressBar::new(targets.len() as u64));
        total.set_style(output::progress_style("{pos} of {len} targets {bar:20} {elapsed}"));
        // Indexes of one suite serve every target that looks at it.
        let repositories = Repositories::new(
            self.fetch.as_ref(),
            &self.cache,
            &self.keyring,
            self.args.allow_stale,
            self.now.as_second(),
        );
        let queue = Mutex::new(targets.iter().enumerate());
        let done: Mutex<BTreeMap<usize, Vec<Record>>> = Mutex::new(BTreeMap::new());
        let work = || {
            // A panic in one target is a defect of the program; the others' rows are kept all the same.
            while let Some((index, target)) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                let bar = bars.add(ProgressBar::new_spinner());
                bar.set_style(output::progress_style("  {spinner} {prefix}: {msg}"));
                bar.set_prefix(target.name.clone());
                bar.enable_steady_tick(Duration::from_millis(120));
                let records = self.target(target, &repositories, &bar);
                bar.finish_and_clear();
                total.inc(1);
                if let Ok(mut done) = done.lock() {
                    done.insert(index, records);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..JOBS.min(targets.len()) {
                scope.spawn(work);
            }
        });
        total.finish_and_clear();
        done.into_inner().unwrap_or_default().into_values().flatten().collect()
    }

    fn target(
        &self,
        target: &Target,
        repositories: &Repositories<'_>,
        bar: &ProgressBar,
    ) -> Vec<Record> {
        let meter = Meter::default();
        let pins: Vec<Fingerprint> = keys()
            .iter()
            .chain(&self.knowledge.keys)
            .filter(|key| key.is_for(target))
            .filter_map(|key| key.fingerprint.parse().ok())
            .collect();
        let keys = rpm::Keys {
            keyring: &self.keyring,
            pins: &pins,
            now: self.now.as_second(),
            allow_stale: self.args.allow_stale,
        };
        bar.set_message("reading the index");
        let mut index_bytes = 0;
        let resolved = self.resolve(target, &keys, repositories, &meter, &mut index_bytes);
        let index_bytes = index_bytes + meter.total();
        let record = |record: Record| Record { index_bytes, ..record };
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(error) => return vec![record(self.failed(target, None, &error))],
        };
        let wanted = if self.args.all_kernels { resolved.len() } else { 1 };
        let whole = self.args.verify;
        let reader = Reader { fetch: &self.fetch, cache: &self.cache, keys, whole };
        let mut records = Vec::new();
        for one in resolved.into_iter().take(wanted) {
            bar.set_message(format!("reading {} {}", one.package, one.version));
            records.push(record(match reader.read(&one) {
                Ok(reading) => self.judged(target, &one, &reading),
                Err(error) => self.failed(target, Some(&one), &error.into()),
            }));
        }
        records
    }

    /// The packages that hold kernels of the target, the default kernel's first.
    fn resolve(
        &self,
        target: &Target,
        keys: &rpm::Keys<'_>,
        debs: &Repositories<'_>,
        meter: &Meter,
        index_bytes: &mut u64,
    ) -> anyhow::Result<Vec<Resolved>> {
        let source = &target.source;
        let access = rpm::Access { fetch: self.fetch.as_ref(), cache: &self.cache, meter };
        let own = self.own_repositories(target, &access)?;
        let named = self.mirrors.get(&target.id).or(own.as_ref());
        let repositories = named.unwrap_or(&source.repositories);
        if repositories.is_empty() && source.apt.is_none() {
            bail!(
                "{}",
                target.note.as_deref().unwrap_or("no repository is known; --mirror names one")
            );
        }
        let wanted = rpm::Wanted {
            repositories,
            package: &source.package,
            arch: &source.arch,
            signed: source.signed,
            keys: *keys,
        };
        let resolved: Vec<Resolved> = match source.family {
            RepositoryFamily::Rpm => {
                rpm::packages(&access, &wanted)?.into_iter().map(Resolved::from).collect()
            }
            RepositoryFamily::Pacman => {
                pacman::packages(&access, &wanted)?.into_iter().map(Resolved::from).collect()
            }
            RepositoryFamily::Deb => self.resolve_deb(target, keys, debs, index_bytes)?,
        };
        if resolved.is_empty() {
            bail!("no package `{}` for {} in the repository", source.package, source.arch);
        }
        Ok(resolved)
    }

    /// The repositories that hold the target's kernel in the machine's own dnf configuration, if the machine runs that system
    /// and has all of them.
    fn own_repositories(
        &self,
        target: &Target,
        access: &rpm::Access<'_>,
    ) -> anyhow::Result<Option<Vec<String>>> {
        let runs =
            target.os_id == self.os.id && target.series() == target.series_of(&self.os.version);
        let own = &self.dnf.repositories;
        let named = |id: &String| own.iter().find(|repository| repository.id == *id);
        let found: Option<Vec<_>> = target.source.dnf.iter().map(named).collect();
        match found {
            Some(found) if runs && !found.is_empty() && !self.mirrors.contains_key(&target.id) => {
                let bases = found.into_iter().map(|repository| rpm::reachable(access, repository));
                Ok(Some(bases.collect::<Result<_, _>>()?))
            }
            _ => Ok(None),
        }
    }

    fn resolve_deb(
        &self,
        target: &Target,
        keys: &rpm::Keys<'_>,
        repositories: &Repositories<'_>,
        index_bytes: &mut u64,
    ) -> anyhow::Result<Vec<Resolved>> {
        let source = &target.source;
        let query = Query {
            pockets: self.pockets(target),
            package: source.package.clone(),
            follow: match source.follow {
                Follow::DebSplit => DebFollow::Split,
                Follow::UbuntuModules => DebFollow::UbuntuModules,
                Follow::Proxmox => DebFollow::Proxmox,
                _ => DebFollow::ImageHeaders,
            },
            pins: keys.pins.to_vec(),
        };
        let default = debian::resolve(repositories, &query)?;
        *index_bytes += default.index_bytes;
        let release = default.release.clone();
        let mut resolved = vec![Resolved::from(default)];
        if self.args.all_kernels {
            // One whose package is missing is no kernel anyone could install.
            let others = debian::all_kernels(repositories, &query)?.into_iter().flatten();
            resolved.extend(others.filter(|one| one.release != release).map(Resolved::from));
        }
        Ok(resolved)
    }

    /// Where a target's suites are: what was said on the command line, else the machine's own mirrors if it runs that
    /// distribution, else the catalogue's.
    fn pockets(&self, target: &Target) -> Vec<Pocket> {
        let source = &target.source;
        let distribution = source.apt.as_deref().unwrap_or_default();
        let own = self.apt.pockets(distribution, &source.suites, &source.components, &source.arch);
        let named = self.mirrors.get(&target.id);
        let has_mirrors = own.iter().all(|pocket| !pocket.bases.is_empty());
        let is_own = source.apt.is_some() && (has_mirrors || source.repositories.is_empty());
        own.into_iter()
            .map(|pocket| match named {
                None if is_own => pocket,
                // What apt may overlook on this machine's own mirrors says nothing about others.
                other => Pocket {
                    bases: other.unwrap_or(&source.repositories).clone(),
                    check_valid_until: true,
                    ..pocket
                },
            })
            .collect()
    }

    /// A record with what is known before anything was read.
    fn record(&self, target: &Target, resolved: Option<&Resolved>) -> Record {
        Record {
            schema: SCHEMA.to_owned(),
            run: self.now.to_string(),
            target: target.name.clone(),
            id: target.id.clone(),
            distribution: target.distribution.clone(),
            distribution_version: target.version.clone(),
            flavour: target.flavour.clone(),
            package: resolved.map(|one| one.package.clone()),
            version: resolved.map(|one| one.version.clone()),
            repository: resolved.map(|one| one.repository.clone()),
            url: resolved.map(|one| one.url.clone()),
            hash: resolved.map(|one| one.hash.clone()),
            trust: resolved.map(|one| one.trust),
            method: "configuration read out of the distribution's own package".to_owned(),
            verdict: "unknown".to_owned(),
            time: now().to_string(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            note: target.note.clone(),
            ..Record::default()
        }
    }

    fn failed(
        &self,
        target: &Target,
        resolved: Option<&Resolved>,
        error: &anyhow::Error,
    ) -> Record {
        let error = format!("{}: {}", target.name, crate::error::line(error));
        Record { error: Some(error), ..self.record(target, resolved) }
    }

    fn judged(&self, target: &Target, resolved: &Resolved, reading: &PackageReading) -> Record {
        let found = &reading.found;
        let (known_release, witness) = super::inspect::read(&resolved.url, found);
        let header = witness.header_version.as_deref().and_then(Release::new);
        let release = known_release.or_else(|| match &resolved.kind {
            Kind::Rpm(package) => {
                let member = found.member.as_deref()?.rsplit('!').next()?;
                Release::new(package.release_of(member)?)
            }
            Kind::Deb(_) | Kind::Pacman(_) => None,
        });
        let known = release.as_ref().or(header.as_ref());
        let witnesses = std::slice::from_ref(&witness);
        let judgement = fastpath_verdict::judge(known, witnesses, false, self.knowledge);
        let advisories =
            judgement.advisories.iter().map(|&index| &self.knowledge.advisories[index]);
        let value = |name: &str| {
            let found = witness.companions.iter().find(|(companion, _)| companion == name);
            found.map(|(_, value)| value.as_str().to_owned())
        };
        let names = SYMBOLS.iter().skip(1).map(|symbol| symbol.name());
        Record {
            input: resolved.url.rsplit('/').next().map(str::to_owned),
            member: found.member.clone(),
            release: release.map(|release| release.to_string()),
            header_version: witness.header_version.clone(),
            value: witness.state.is_value().then(|| witness.state.as_str().to_owned()),
            line: witness.line,
            verdict: judgement.verdict.as_str().to_owned(),
            companions: names.map(|name| (name.to_owned(), value(name))).collect(),
            advisories: advisories.map(|advisory| advisory.id.clone()).collect(),
            trust: Some(reading.trust),
            bytes_read: reading.bytes_read,
            ..self.record(target, Some(resolved))
        }
    }
}

/// Tomorrow at this time, as runs are named: what is named later was read by a clock that was ahead.
pub(super) fn soon() -> String {
    const DAY: i64 = 24 * 60 * 60;
    let soon = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() + DAY);
    soon.map_or_else(|_| "~".to_owned(), |soon| soon.to_string())
}

/// The time, without fractions of a second.
fn now() -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Shows the rows of a run: those that were read as a table, those that failed as errors.
fn show(records: &[Record], knowledge: &Knowledge, args: &SurveyArgs) -> anyhow::Result<()> {
    if args.quiet {
        return Ok(());
    }
    match args.format {
        Format::Json => {
            let mut lines = String::new();
            for record in records {
                lines.push_str(&serde_json::to_string(record)?);
                lines.push('\n');
            }
            output::data(&lines)?;
        }
        Format::Text => {
            let surveyed: Vec<_> =
                records.iter().filter_map(|record| super::matrix::row(record, knowledge)).collect();
            output::data(&fastpath_report::survey_text(&surveyed, knowledge))?;
        }
    }
    for error in records.iter().filter_map(|record| record.error.as_ref()) {
        output::note(&format!("error: {error}"));
    }
    let bytes: u64 = records.iter().map(|record| record.bytes_read).sum();
    let index_bytes: u64 = records.iter().map(|record| record.index_bytes).sum();
    output::note(&format!(
        "{bytes} bytes of packages and {index_bytes} bytes of indexes were read"
    ));
    Ok(())
}

/// The newest row of each target, whichever run it is of.
const NEWEST: &str = "newest";

/// What a diff compares: a run by its name, the newest row of each target, or the published rows.
fn look(
    dataset: &Dataset,
    name: &str,
    knowledge: &Knowledge,
) -> anyhow::Result<BTreeMap<String, Look>> {
    if name == "published" {
        let rows = fastpath_verdict::matrix(knowledge, &[]);
        let look = |row: fastpath_verdict::MatrixRow<'_>| {
            let advisories = row.advisories.iter().map(|(advisory, _)| advisory.id.clone());
            let look = Look {
                release: Some(row.kernel.to_string()),
                has_option: row.p2pdma,
                verdict: row.verdict.as_str().to_owned(),
                advisories: advisories.collect(),
                error: None,
            };
            (row.target, look)
        };
        return Ok(rows.into_iter().map(look).collect());
    }
    if name == NEWEST {
        let newest = dataset.newest(&soon()).into_values();
        return Ok(newest.map(|record| (record.target.clone(), Look::from(record))).collect());
    }
    let runs = dataset.runs();
    if !runs.contains(&name) {
        bail!("there is no run `{name}`; there are {}, `published` and `newest`", runs.join(", "));
    }
    // With `--all-kernels` a target has several records; the first is its default kernel's.
    let mut looks = BTreeMap::new();
    for record in dataset.run(name) {
        looks.entry(record.target.clone()).or_insert_with(|| Look::from(record));
    }
    Ok(looks)
}

fn show_diff(
    data: &Path,
    between: &[String],
    knowledge: &Knowledge,
    format: Format,
) -> anyhow::Result<u8> {
    let dataset = Dataset::load(data)?;
    let runs = dataset.runs();
    let Some(newest) = runs.last().copied() else {
        bail!("{}: no survey has been run yet", data.display());
    };
    let (before, after) = match between {
        [] if runs.len() > 1 => (runs[runs.len() - 2], newest),
        [] => ("published", NEWEST),
        [one] => (one.as_str(), NEWEST),
        [one, other, ..] => (one.as_str(), other.as_str()),
    };
    let old = look(&dataset, before, knowledge)?;
    let new = look(&dataset, after, knowledge)?;
    let mut changes = diff(&old, &new);
    // A run need not look at every target: what was not asked for is no change.
    changes.retain(|_, changes| !changes.contains(&Change::Removed));
    if before == "published" {
        changes.retain(|_, changes| !changes.contains(&Change::Added));
    }
    match format {
        Format::Json => {
            let report = serde_json::json!({
                "schema": "fastpath.survey-diff/1", "from": before, "to": after,
                "flipped": flipped(&changes), "changes": changes,
            });
            output::data(&format!("{report:#}\n"))?;
        }
        Format::Text => output::data(&diff_text(before, after, &changes))?,
    }
    Ok(u8::from(flipped(&changes)))
}

fn diff_text(before: &str, after: &str, changes: &BTreeMap<String, Vec<Change>>) -> String {
    let mut out = format!("from {before} to {after}\n");
    if changes.is_empty() {
        out.push_str("no change\n");
    }
    let yes_no = |yes: bool| if yes { "Yes" } else { "No" };
    for (target, changes) in changes {
        for change in changes {
            let text = match change {
                Change::Added => "looked at for the first time".to_owned(),
                Change::Removed => "not looked at any more".to_owned(),
                Change::NewKernel { from, to } => format!("new kernel: {from} -> {to}"),
                Change::Flipped { from, to } => {
                    format!("P2PDMA flipped: {} -> {}", yes_no(*from), yes_no(*to))
                }
                Change::Verdict { from, to } => format!("verdict: {from} -> {to}"),
                Change::AdvisoryNow { id } => format!("advisory now matching: {id}"),
                Change::AdvisoryGone { id } => format!("advisory no longer matching: {id}"),
                Change::Failed { error } => format!("could not be read: {error}"),
            };
            let _ = writeln!(out, "{target}: {text}");
        }
    }
    out
}
