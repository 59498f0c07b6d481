//! `fastpath explain`.

use std::fmt::Write as _;

use fastpath_knowledge::explanations;

use crate::args::ExplainArgs;
use crate::error::Hinted;
use crate::{output, root};

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<u8> {
    let knowledge = root::knowledge(&args.knowledge)?;
    let explanations = explanations();
    let advisories = knowledge.advisories.iter().map(|one| (one.id.as_str(), one.summary.as_str()));
    let remedies = knowledge.remedies.iter().map(|one| (one.id.as_str(), one.summary.as_str()));
    let ids: Vec<(&str, &str)> = explanations
        .iter()
        .map(|one| (one.id.as_str(), one.title.as_str()))
        .chain(advisories)
        .chain(remedies)
        .collect();
    let Some(id) = &args.id else {
        let width = ids.iter().map(|(id, _)| id.len()).max().unwrap_or(0);
        let mut list = String::new();
        for (id, title) in ids {
            let _ = writeln!(list, "{id:<width$}  {title}");
        }
        output::data(&list)?;
        return Ok(0);
    };
    let text = fastpath_report::explain(id, &knowledge, &explanations, output::width())
        .ok_or_else(|| Hinted {
            message: format!("nothing has the id `{id}`"),
            hint: match nearest(id, ids.iter().map(|(id, _)| *id)) {
                near if near.is_empty() => "`fastpath explain` lists all".to_owned(),
                near => format!("nearest: {}; `fastpath explain` lists all", near.join(", ")),
            },
        })?;
    output::data(&text)?;
    Ok(0)
}

/// The names most like `name`, at most three; none if nothing is like it.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut scored: Vec<(f64, &str)> =
        names.map(|other| (strsim::jaro_winkler(name, other), other)).collect();
    scored.retain(|(score, _)| *score > 0.75);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, other)| other).collect()
}
