//! The layers beside the kernel's, for people: one line each, then paths and volumes as tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fastpath_host::pci::Address;
use fastpath_verdict::{Check, Layer, Reason, Verdict};

use crate::style::{BOLD, DIM, clean, styled, table, verdict_cell, verdict_style};

/// As many volumes as people look through at once; the rest only if asked for.
const MANY: usize = 20;

/// Why the verdict is what it is, in one word.
pub(crate) fn reason(check: &Check<'_>) -> Reason {
    if let Some(process) = check.process.as_ref().filter(|one| one.verdict == check.verdict) {
        return process.reason;
    }
    let route = check.route.as_ref();
    match check.layer {
        Layer::Kernel => None,
        Layer::Runtime => check.runtime.as_ref().map(|runtime| runtime.reason),
        Layer::Driver | Layer::Path | Layer::Volume => route.map(|route| route.reason),
    }
    .unwrap_or(check.kernel.reason)
}

/// The sentence for a host on which the whole way is fine; `None` for any other.
pub(crate) fn route(check: &Check<'_>) -> Option<String> {
    let route = check.route.as_ref().filter(|_| check.verdict == Verdict::Supported)?;
    let (gpu, mount) = (route.gpu.as_ref()?, route.mount.as_ref()?);
    let drives: Vec<&str> = route.drives.iter().map(Address::as_str).collect();
    Some(format!(
        "GPU {gpu} and {}, on {}, are fit for the fastpath",
        clean(mount),
        drives.join(" ")
    ))
}

/// The process that was asked about: what it has loaded, what was set, its files.
pub(crate) fn process(out: &mut String, check: &Check<'_>) {
    let Some(process) = &check.process else { return };
    let facts = &process.facts;
    let name = facts.name.as_deref().map(clean).unwrap_or_default();
    let verdict = styled(verdict_style(process.verdict), process.verdict.as_str());
    let reason = process.reason.as_str();
    let _ = writeln!(
        out,
        "\n{}  {verdict} ({reason})",
        styled(BOLD, &format!("process {} {name}", facts.pid))
    );
    let none = || vec!["none loaded".to_owned()];
    let or_none = |list: &[String]| if list.is_empty() { none() } else { list.to_vec() };
    for (label, values) in [("hipFile", or_none(&facts.hipfile)), ("HIP", or_none(&facts.hip))] {
        for value in values {
            let _ = writeln!(out, "  {label:<11} {}", clean(&value));
        }
    }
    for (name, value) in &facts.variables {
        let _ = writeln!(out, "  {:<11} {}", "environment", clean(&format!("{name}={value}")));
    }
    if process.files.is_empty() {
        return;
    }
    let mut rows =
        vec![["FD", "FILE", "O_DIRECT", "VERDICT", "REASON"].map(str::to_owned).to_vec()];
    for (file, verdict) in &process.files {
        let direct = match file.direct {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        rows.push(vec![
            file.fd.to_string(),
            clean(&file.path),
            direct.to_owned(),
            verdict.verdict.as_str().to_owned(),
            verdict.reason.as_str().to_owned(),
        ]);
    }
    out.push_str(&table(&rows, 2, |row, column, cell| match (row, column) {
        (0, _) => DIM,
        (_, 3) => verdict_cell(cell),
        _ => anstyle::Style::new(),
    }));
}

/// One line for each judged layer; driver, path and volume say their best.
pub(crate) fn summary(out: &mut String, check: &Check<'_>) {
    let mut rows = Vec::new();
    let mut row = |layer: Layer, verdict: Verdict, reason: Reason| {
        rows.push(vec![
            layer.as_str().to_owned(),
            verdict.as_str().to_owned(),
            format!("({})", reason.as_str()),
        ]);
    };
    if check.is_judged(Layer::Kernel) {
        row(Layer::Kernel, check.kernel.verdict, check.kernel.reason);
    }
    if let Some(driver) = &check.driver {
        row(Layer::Driver, driver.verdict, driver.reason);
    }
    if let Some(runtime) = &check.runtime {
        row(Layer::Runtime, runtime.verdict, runtime.reason);
    }
    if let Some(paths) = &check.paths {
        row(Layer::Path, paths.verdict, paths.reason);
    }
    if let Some(volumes) = &check.volumes {
        row(Layer::Volume, volumes.verdict, volumes.reason);
    }
    // Each layer may be fine somewhere, and no route fine as a whole.
    let worst = rows.iter().filter_map(|row| row.get(1));
    let agrees = |verdict: Verdict| worst.clone().any(|cell| cell == verdict.as_str());
    if let Some(route) = check.route.as_ref().filter(|route| !agrees(route.verdict)) {
        let reason = format!("({})", route.reason.as_str());
        rows.push(vec!["route".to_owned(), route.verdict.as_str().to_owned(), reason]);
    }
    let _ = writeln!(out, "\n{}", styled(BOLD, "layers"));
    out.push_str(&table(&rows, 2, |_, column, cell| match column {
        1 => verdict_cell(cell),
        2 => DIM,
        _ => anstyle::Style::new(),
    }));
}

/// Every GPU with every drive; drives that are alike for a GPU share a line.
pub(crate) fn paths(out: &mut String, check: &Check<'_>, verbose: bool) {
    let Some(paths) = check.paths.as_ref().filter(|paths| !paths.paths.is_empty()) else { return };
    let of_driver = |gpu: &Address| {
        let driver = check.driver.as_ref()?;
        driver.gpus.iter().find(|one| one.gpu == *gpu).map(|one| one.verdict.as_str())
    };
    let mut rows = vec![
        ["GPU", "DRIVER", "DRIVE", "PATH", "REASON", "DISTANCE", "MAP"].map(str::to_owned).to_vec(),
    ];
    let mut groups: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for path in &paths.paths {
        let map = path.map_type.map_or("?", |kind| kind.as_str());
        let distance =
            path.distance.map_or_else(|| "?".to_owned(), |distance| distance.to_string());
        // Told apart where each is asked for, or where there are few.
        let own = (verbose || paths.paths.len() <= MANY).then_some(&path.nvme);
        let alike = (&path.gpu, path.verdict.badness(), path.reason.as_str(), distance, map, own);
        groups.entry(alike).or_default().push(path.nvme.as_str());
    }
    let words = |badness: u8| {
        let all = [Verdict::Supported, Verdict::Unknown, Verdict::Unsupported, Verdict::Blocked];
        all.into_iter().find(|one| one.badness() == badness).map_or("", Verdict::as_str)
    };
    for ((gpu, badness, reason, distance, map, _), drives) in groups {
        let drives = match drives.as_slice() {
            [one] => (*one).to_owned(),
            [first, .., last] => format!("{} drives, {first} to {last}", drives.len()),
            [] => String::new(),
        };
        rows.push(vec![
            gpu.to_string(),
            of_driver(gpu).unwrap_or("").to_owned(),
            drives,
            words(badness).to_owned(),
            reason.to_owned(),
            distance,
            map.to_owned(),
        ]);
    }
    let _ = writeln!(out, "\n{}", styled(BOLD, "GPUs and drives"));
    out.push_str(&table(&rows, 2, |row, column, cell| match (row, column) {
        (0, _) => DIM,
        (_, 1 | 3) => verdict_cell(cell),
        _ => anstyle::Style::new(),
    }));
}

/// Mounted file systems, those that will do first.
pub(crate) fn volumes(out: &mut String, check: &Check<'_>, verbose: bool) {
    let Some(volumes) = check.volumes.as_ref().filter(|all| !all.volumes.is_empty()) else {
        return;
    };
    let mut sorted: Vec<_> = volumes.volumes.iter().collect();
    sorted.sort_by_key(|volume| volume.verdict.badness());
    let shown = if verbose { sorted.len() } else { sorted.len().min(MANY) };
    let mut rows = vec![
        ["MOUNT", "TYPE", "DEVICE", "BACKING", "VERDICT", "REASON"].map(str::to_owned).to_vec(),
    ];
    for volume in &sorted[..shown] {
        let assumed = if volume.assumed { ", assumed" } else { "" };
        rows.push(vec![
            clean(&volume.mount),
            clean(&volume.fstype),
            volume.device.as_deref().map(clean).unwrap_or_default(),
            volume.backing.clone(),
            volume.verdict.as_str().to_owned(),
            format!("{}{assumed}", volume.reason.as_str()),
        ]);
    }
    let _ = writeln!(out, "\n{}", styled(BOLD, "volumes"));
    out.push_str(&table(&rows, 2, |row, column, cell| match (row, column) {
        (0, _) => DIM,
        (_, 4) => verdict_cell(cell),
        _ => anstyle::Style::new(),
    }));
    if shown < sorted.len() {
        let more = format!("and {} more; -v shows them all", sorted.len() - shown);
        let _ = writeln!(out, "  {}", styled(DIM, &more));
    }
}
