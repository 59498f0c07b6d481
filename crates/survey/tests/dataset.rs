//! The data set keeps its history, and differences tell what changed.

use std::collections::BTreeMap;
use std::fs;

use fastpath_survey::{Change, Dataset, Look, Record, SCHEMA, diff, flipped};

fn record(run: &str, target: &str, release: &str, value: &str) -> Record {
    Record {
        schema: SCHEMA.to_owned(),
        run: run.to_owned(),
        target: target.to_owned(),
        release: Some(release.to_owned()),
        value: Some(value.to_owned()),
        verdict: if value == "y" { "supported" } else { "unsupported" }.to_owned(),
        ..Record::default()
    }
}

#[test]
fn what_is_there_stays_byte_for_byte_when_records_are_added() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("deeper/survey.jsonl");
    assert_eq!(Dataset::load(&path).expect("an empty one"), Dataset::default());
    Dataset::append(&path, &[record("1", "a", "6.1.0", "not set")]).expect("written");
    let first = fs::read(&path).expect("the file");
    Dataset::append(&path, &[record("2", "a", "7.3.4", "y"), record("2", "b", "5.0.0", "y")])
        .expect("written");
    assert!(fs::read(&path).expect("the file").starts_with(&first));
    let dataset = Dataset::load(&path).expect("sound");
    assert_eq!(dataset.runs(), ["1", "2"]);
    assert_eq!(dataset.run("2").count(), 2);
    let newest: Vec<_> = dataset.newest("~").into_values().map(|one| one.release.clone()).collect();
    assert_eq!(newest, [Some("7.3.4".to_owned()), Some("5.0.0".to_owned())]);
}

#[test]
fn a_damaged_data_set_names_its_line_and_is_not_added_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("survey.jsonl");
    Dataset::append(&path, &[record("1", "a", "6.1.0", "y")]).expect("written");
    let mut text = fs::read_to_string(&path).expect("the file");
    text.push_str("{\"schema\": 7}\n");
    fs::write(&path, &text).expect("written");
    let error = Dataset::append(&path, &[record("2", "a", "6.1.0", "y")]).expect_err("damaged");
    assert!(error.to_string().contains("line 2: "), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), text);
    let left: Vec<_> = fs::read_dir(directory.path())
        .expect("the directory")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn two_writers_at_once_lose_no_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("survey.jsonl");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for turn in 0..10 {
                    let run = format!("{writer}-{turn}");
                    Dataset::append(path, &[record(&run, "a", "6.1.0", "y")]).expect("written");
                }
            });
        }
    });
    assert_eq!(Dataset::load(&path).expect("sound").runs().len(), 40);
}

#[test]
fn a_failed_record_does_not_hide_the_last_good_one() {
    let failed = Record { error: Some("cut".to_owned()), ..record("2", "a", "", "") };
    let dataset = Dataset { records: vec![record("1", "a", "6.1.0", "y"), failed] };
    assert_eq!(dataset.newest("~")["a"].run, "1");
}

#[test]
fn differences_name_what_changed() {
    let looks = |records: &[Record]| -> BTreeMap<String, Look> {
        records.iter().map(|one| (one.target.clone(), Look::from(one))).collect()
    };
    let marked = |ids: &[&str]| Record {
        advisories: ids.iter().map(|&id| id.to_owned()).collect(),
        ..record("1", "marked", "6.1.0", "y")
    };
    let before = looks(&[
        record("1", "same", "6.1.0", "y"),
        record("1", "newer", "6.1.0", "y"),
        record("1", "flips", "6.1.0", "not set"),
        record("1", "fails", "6.1.0", "y"),
        record("1", "goes", "6.1.0", "y"),
        marked(&["old"]),
    ]);
    let now = looks(&[
        record("2", "same", "6.1.0", "y"),
        record("2", "newer", "6.1.1", "y"),
        record("2", "flips", "7.3.4", "y"),
        Record { error: Some("404".to_owned()), ..record("2", "fails", "", "") },
        record("2", "comes", "6.1.0", "y"),
        marked(&["new"]),
    ]);
    let changes = diff(&before, &now);
    let kernel = |from: &str, to: &str| Change::NewKernel { from: from.into(), to: to.into() };
    assert_eq!(changes.get("same"), None);
    assert_eq!(changes["newer"], [kernel("6.1.0", "6.1.1")]);
    assert_eq!(
        changes["flips"],
        [kernel("6.1.0", "7.3.4"), Change::Flipped { from: false, to: true }]
    );
    assert_eq!(changes["fails"], [Change::Failed { error: "404".to_owned() }]);
    assert_eq!(changes["goes"], [Change::Removed]);
    assert_eq!(changes["comes"], [Change::Added]);
    assert_eq!(
        changes["marked"],
        [Change::AdvisoryNow { id: "new".into() }, Change::AdvisoryGone { id: "old".into() }]
    );
    assert!(flipped(&changes));
    assert!(!flipped(&diff(&before, &before)));
}

#[test]
fn what_is_no_regular_file_is_neither_read_nor_replaced() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    for path in [pipe.as_path(), directory.path(), std::path::Path::new("/dev/zero")] {
        for error in [
            Dataset::load(path).expect_err("no file"),
            Dataset::append(path, &[record("1", "a", "6.1.0", "y")]).expect_err("no file"),
        ] {
            let error = error.to_string();
            assert!(error.ends_with("expected a regular file for the data set"), "{error}");
        }
    }
    assert!(!fs::symlink_metadata(&pipe).expect("it is there").is_file());
}

#[test]
fn a_linked_data_set_stays_a_link_and_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    let (file, link) = (directory.path().join("real.jsonl"), directory.path().join("link"));
    fs::write(&file, "").expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
    std::os::unix::fs::symlink("real.jsonl", &link).expect("a link");
    Dataset::append(&link, &[record("1", "a", "6.1.0", "y")]).expect("written");
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    let found = fs::metadata(&file).expect("it is there");
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert!(found.len() > 0);
}

#[test]
fn a_run_of_a_clock_that_was_ahead_is_not_the_newest_for_good() {
    let records = vec![
        record("2026-11-30T10:00:00Z", "a", "6.1.0", "y"),
        record("2099-01-01T00:00:00Z", "a", "9.9.0", "y"),
    ];
    let dataset = Dataset { records };
    let until = "2026-12-02T00:00:00Z";
    assert_eq!(dataset.newest(until)["a"].release.as_deref(), Some("6.1.0"));
    assert_eq!(dataset.runs_after(until), ["2099-01-01T00:00:00Z"]);
}

#[test]
fn a_line_that_is_no_text_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("survey.jsonl");
    fs::write(&path, b"\n\n\xff\n").expect("written");
    let error = Dataset::load(&path).expect_err("no text").to_string();
    assert!(error.ends_with("line 3: expected UTF-8"), "{error}");
}
