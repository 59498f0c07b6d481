//! What the data set says about the kernels that remedies lead to, as a knowledge file beside it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fastpath_knowledge::{Knowledge, Refresh, Release};

use crate::dataset::{Dataset, DatasetError, replace};
use crate::record::Trust;

/// The file in the data set's folder that refreshes the table of remedies.
pub fn refresh_path() -> Option<PathBuf> {
    Some(Dataset::default_path()?.with_file_name("remedies.toml"))
}

/// The newest records, not later than `until`, of targets that remedies name. What no signature vouches for says nothing to anyone else.
pub fn refreshes(dataset: &Dataset, until: &str, knowledge: &Knowledge) -> Vec<Refresh> {
    let named = |id: &String| {
        knowledge.remedies.iter().any(|remedy| {
            let leads_to = remedy.kernel.as_ref().and_then(|kernel| kernel.target.as_ref());
            leads_to == Some(id) || remedy.lacking.contains(id)
        })
    };
    let newest = dataset.newest(until).into_values().filter(|record| named(&record.id));
    let refreshes = newest.filter_map(|record| {
        let signed = record.trust.is_some_and(|trust| trust != Trust::Unsigned);
        let has_option = match record.value.as_deref() {
            Some("y") => true,
            Some("not set" | "n" | "m" | "absent") => false,
            _ => return None,
        };
        signed.then_some(())?;
        Some(Refresh {
            target: record.id.clone(),
            package: knowledge.target(&record.id)?.source.package.clone(),
            release: Release::new(record.release.as_ref()?)?,
            has_option,
            seen: format!(
                "the configuration of {} {}",
                record.package.as_ref()?,
                record.version.as_ref()?
            ),
            date: record.time.get(..10)?.to_owned(),
        })
    });
    refreshes.collect()
}

/// Writes the refreshes as a knowledge file, in the place of the one that is there.
///
/// # Errors
///
/// [`DatasetError::Io`]; the file is as it was then.
pub fn write_refreshes(path: &Path, refreshes: &[Refresh]) -> Result<(), DatasetError> {
    let mut text = String::from(
        "# Written by `fastpath survey`: what it read about kernels that remedies lead to. `fastpath check` reads it.\n",
    );
    for refresh in refreshes {
        text.push_str("\n[[refresh]]\n");
        let fields = [
            ("target", &refresh.target),
            ("package", &refresh.package),
            ("release", &refresh.release.to_string()),
            ("seen", &refresh.seen),
            ("date", &refresh.date),
        ];
        for (name, value) in fields {
            // Writing to a string cannot fail. What JSON escapes in a string, TOML reads alike.
            let value = value.replace('\u{7f}', "");
            let _ = writeln!(text, "{name} = {}", serde_json::Value::from(value));
        }
        let _ = writeln!(text, "has_option = {}", refresh.has_option);
    }
    replace(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    fn record(id: &str, time: &str, release: &str, value: &str, trust: Trust) -> Record {
        let some = |text: &str| Some(text.to_owned());
        Record {
            run: time.to_owned(),
            target: id.to_owned(),
            id: id.to_owned(),
            package: some("linux-\"image\""),
            version: some("1"),
            release: some(release),
            value: some(value),
            trust: Some(trust),
            time: time.to_owned(),
            ..Record::default()
        }
    }

    fn knowledge(records: Vec<Record>) -> Knowledge {
        let mut knowledge = Knowledge::embedded().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("remedies.toml");
        write_refreshes(&path, &refreshes(&Dataset { records }, "2028", &knowledge)).unwrap();
        knowledge.extend("remedies.toml", &std::fs::read_to_string(path).unwrap()).unwrap();
        knowledge
    }

    const OLD: &str = "6.12.96+deb13-amd64";

    fn first(knowledge: &Knowledge, release: &str, version: &str) -> Option<(String, String)> {
        let release = Release::new(release).unwrap();
        let mut remedies = knowledge.remedies_for(&release, "unsupported", "debian", version);
        let remedy = remedies.next()?;
        let kernel = remedy.kernel.as_ref()?;
        Some((remedy.id.clone(), kernel.release.to_string()))
    }

    #[test]
    fn a_survey_brings_a_remedy_up_to_date() {
        let record = record(
            "debian-13-backports",
            "2027-01-02T00:00:00Z",
            "7.4.1+deb13-amd64",
            "y",
            Trust::Partial,
        );
        let (id, release) = first(&knowledge(vec![record]), OLD, "13").unwrap();
        assert_eq!((id.as_str(), release.as_str()), ("debian-13-backports", "7.4.1+deb13-amd64"));
    }

    #[test]
    fn what_is_older_than_the_table_or_signed_by_nobody_changes_nothing() {
        let before = first(&knowledge(Vec::new()), OLD, "13");
        for (time, trust) in
            [("2026-01-02T00:00:00Z", Trust::Partial), ("2027-01-02T00:00:00Z", Trust::Unsigned)]
        {
            let record = record("debian-13-backports", time, "7.4.1+deb13-amd64", "y", trust);
            assert_eq!(first(&knowledge(vec![record]), OLD, "13"), before);
        }
    }

    #[test]
    fn a_kernel_that_lost_the_option_is_no_remedy() {
        let record = record(
            "debian-13-backports",
            "2027-01-02T00:00:00Z",
            "7.4.1+deb13-amd64",
            "not set",
            Trust::Partial,
        );
        assert_eq!(first(&knowledge(vec![record]), OLD, "13"), None);
    }

    #[test]
    fn a_kernel_marked_by_a_blocking_advisory_is_no_remedy() {
        let mut knowledge = knowledge(Vec::new());
        let blocked = "[[advisory]]\nid = 'x'\nsummary = 'x'\ndetail = 'x'\neffect = 'block'\nlifted_by = 'x'\n\
            date = '2027-01-01'\n[advisory.source]\ntitle = 'x'\n[[advisory.match]]\nversion = '>= 7.3, < 7.4'\n";
        assert!(first(&knowledge, OLD, "13").is_some());
        knowledge.extend("x", blocked).unwrap();
        assert_eq!(first(&knowledge, OLD, "13"), None);
    }

    #[test]
    fn a_kernel_found_where_there_was_none_becomes_a_remedy() {
        let asked = "6.1.0-57-amd64";
        assert_eq!(first(&knowledge(Vec::new()), asked, "12"), None);
        let record = record(
            "debian-12-backports",
            "2027-01-02T00:00:00Z",
            "6.18.1+deb12-amd64",
            "y",
            Trust::Stale,
        );
        let (id, release) = first(&knowledge(vec![record]), asked, "12").unwrap();
        assert_eq!(
            (id.as_str(), release.as_str()),
            ("surveyed-debian-12-backports", "6.18.1+deb12-amd64")
        );
    }
}
