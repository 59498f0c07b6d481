//! Runs the program on every recorded host under `tests/hosts` and compares with what is written there. The form of a
//! host is described in `tests/hosts/README.md`; `UPDATE_GOLDEN=1` rewrites the golden files.

#![allow(
    clippy::print_stdout,
    reason = "skipped hosts and differences are shown as they are found"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fastpath_knowledge::Knowledge;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde::Deserialize;
use serde_json::{Map, Value};
use tempfile::TempDir;

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hosts");
const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");

/// The user and group `nobody`, for whom permissions hold.
const NOBODY: u32 = 65534;

/// A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// What `expect.json` holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    exit: i32,
    kernel: Map<String, Value>,
    driver: Option<Value>,
    runtime: Option<Value>,
    paths: Option<Value>,
    volumes: Option<Value>,
    remedies: Option<Vec<String>>,
    #[serde(default)]
    absent_remedies: Vec<String>,
    #[serde(default)]
    hint_words: Vec<String>,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    setup: Vec<Setup>,
    #[serde(rename = "notes")]
    _notes: String,
}

/// A change to the copy of a tree: what a Git checkout cannot hold.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Setup {
    Fifo(String),
    Chardev { path: String, major: u32, minor: u32 },
    Sparse { path: String, size: u64 },
    Mode { path: String, mode: String },
}

/// Where a host's tree stands and as whom the program runs on it.
struct Place {
    /// The directory that holds `root`.
    directory: PathBuf,
    program: PathBuf,
    unprivileged: bool,
    /// Removed at the end, if the tree is a copy.
    copy: Option<TempDir>,
}

/// How one run ended.
#[derive(PartialEq, Eq)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Differences found on one host.
#[derive(Default)]
struct Differences(String);

impl Differences {
    fn compare(&mut self, what: &str, expected: &str, actual: &str) {
        if expected != actual {
            let rule = "-".repeat(72);
            let (expected, actual) = (expected.trim_end(), actual.trim_end());
            let _ = writeln!(
                self.0,
                "{what}\n{rule} expected\n{expected}\n{rule} actual\n{actual}\n{rule}"
            );
        }
    }

    fn require(&mut self, holds: bool, what: &str) {
        if !holds {
            let _ = writeln!(self.0, "{what}");
        }
    }
}

#[test]
fn every_recorded_host_gets_its_answer() {
    let remedies: BTreeSet<String> = Knowledge::embedded()
        .expect("the embedded data is well-formed")
        .remedies
        .into_iter()
        .map(|remedy| remedy.id)
        .collect();
    let mut names: Vec<String> = fs::read_dir(HOSTS)
        .expect("the recorded hosts are there")
        .map(|entry| entry.expect("the directory can be read"))
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    // Most of the time goes to starting programs, so several hosts are asked at once.
    let queue = Mutex::new(names.into_iter());
    let wrong = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(name) = queue.lock().expect("no host has panicked").next() else { return };
            match host(&Path::new(HOSTS).join(&name), &remedies) {
                Ok(Differences(found)) if found.is_empty() => {}
                Ok(Differences(found)) => {
                    println!("\n{name}: {found}");
                    wrong.lock().expect("no host has panicked").push(name);
                }
                Err(why) => println!("{name}: skipped, because {why}"),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().expect("no host has panicked");
    assert!(wrong.is_empty(), "{} hosts got another answer: {}", wrong.len(), wrong.join(", "));
}

/// Runs every command on one host. An error is a reason to skip it.
fn host(directory: &Path, remedies: &BTreeSet<String>) -> Result<Differences, String> {
    let text = fs::read_to_string(directory.join("expect.json")).expect("a host has expect.json");
    let expect: Expect = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{}/expect.json: {error}", directory.display()));
    let place = Place::prepare(directory, &expect.setup)?;
    let mut differences = Differences::default();

    let on_root = ["check", "--root", "root", "--layer", "kernel"];
    let text = place.run(&on_root)?;
    let json = place.run(&[&on_root[..], &["--format", "json"]].concat())?;
    let kernels = place.run(&["kernels", "--root", "root"])?;
    golden(&mut differences, &directory.join("check.txt"), &text.stdout);
    golden(&mut differences, &directory.join("check.json"), &json.stdout);
    golden(&mut differences, &directory.join("kernels.txt"), &kernels.stdout);
    for (what, run, code) in [
        ("check", &text, expect.exit),
        ("check --format json", &json, expect.exit),
        ("kernels", &kernels, 0),
    ] {
        differences.compare(&format!("{what}: exit code"), &Some(code).show(), &run.code.show());
        differences.compare(&format!("{what}: standard error"), &expect.stderr, &run.stderr);
        let plain = run.stdout.chars().all(|c| c == '\n' || !c.is_control());
        differences.require(plain, &format!("{what}: control characters in the output"));
    }
    match serde_json::from_str(&json.stdout) {
        Ok(answer) => judge(&mut differences, &expect, &answer, remedies),
        Err(error) => differences.require(false, &format!("no JSON: {error}")),
    }

    let verbose = place.run(&[&on_root[..], &["--verbose"]].concat())?;
    differences.compare("check -v: exit code", &text.code.show(), &verbose.code.show());
    let quiet = place.run(&[&on_root[..], &["--quiet"]].concat())?;
    differences.compare("check -q: exit code", &text.code.show(), &quiet.code.show());
    differences.compare("check -q: output", "", &quiet.stdout);

    snapshot(&mut differences, &place, &["--layer", "kernel"], &text, &json)?;
    let layers = [
        ("driver", &expect.driver),
        ("runtime", &expect.runtime),
        ("paths", &expect.paths),
        ("volumes", &expect.volumes),
    ];
    let layers = layers.into_iter().filter_map(|(name, expected)| Some((name, expected.as_ref()?)));
    let layers: Vec<(&str, &Value)> = layers.collect();
    if !layers.is_empty() {
        all_layers(&mut differences, &place, directory, &layers)?;
    }
    Ok(differences)
}

/// Every layer of a host that was recorded with more than its kernel.
fn all_layers(
    differences: &mut Differences,
    place: &Place,
    directory: &Path,
    expected: &[(&str, &Value)],
) -> Result<(), String> {
    let on_root = ["check", "--root", "root"];
    let text = place.run(&on_root)?;
    let json = place.run(&[&on_root[..], &["--format", "json"]].concat())?;
    golden(differences, &directory.join("layers.txt"), &text.stdout);
    golden(differences, &directory.join("layers.json"), &json.stdout);
    differences.compare("check of all layers: standard error", "", &text.stderr);
    let Ok(answer) = serde_json::from_str::<Value>(&json.stdout) else {
        differences.require(false, &format!("no JSON: {}", json.stdout));
        return Ok(());
    };
    for (layer, expected) in expected {
        let actual = narrowed(&answer[layer], expected);
        differences.compare(layer, &expected.to_string(), &actual.to_string());
    }
    let exit = match answer["verdict"].as_str() {
        Some("supported") => 0,
        Some("unsupported" | "blocked") => 1,
        _ => 2,
    };
    for run in [&text, &json] {
        differences.compare("exit code of all layers", &Some(exit).show(), &run.code.show());
    }
    snapshot(differences, place, &[], &text, &json)
}

/// Of an answer, what is expected: fields of records, and of lists as many records as are expected, in that order.
fn narrowed(actual: &Value, expected: &Value) -> Value {
    match expected {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), narrowed(&actual[name], value)))
            .collect::<Map<String, Value>>()
            .into(),
        Value::Array(items) => {
            let found = array(actual);
            let pairs = items
                .iter()
                .enumerate()
                .map(|(at, item)| narrowed(found.get(at).unwrap_or(&Value::Null), item));
            let more = found.iter().skip(items.len()).cloned();
            pairs.chain(more).collect()
        }
        _ => actual.clone(),
    }
}

/// A host read from its snapshot gets the same answer as the host itself.
fn snapshot(
    differences: &mut Differences,
    place: &Place,
    layers: &[&str],
    text: &Run,
    json: &Run,
) -> Result<(), String> {
    if place.run(&["snapshot", "--help"])?.code != Some(0) {
        return Ok(());
    }
    let directory = TempDir::new().expect("a temporary directory");
    set_mode(directory.path(), 0o777);
    let file = directory.path().join("host.tar.zst");
    let file = file.to_str().expect("a temporary directory with a plain name");
    let made = place.run(&["snapshot", "--root", "root", "-o", file])?;
    differences.compare("snapshot: exit code", &Some(0).show(), &made.code.show());
    if made.code != Some(0) {
        differences.compare("snapshot: standard error", "", &made.stderr);
        return Ok(());
    }
    let on_snapshot = [&["check", "--snapshot", file][..], layers].concat();
    for (what, more, expected) in [
        ("check --snapshot", &[][..], text),
        ("check --snapshot --format json", &["--format", "json"][..], json),
    ] {
        let run = place.run(&[&on_snapshot[..], more].concat())?;
        differences.compare(&format!("{what}: exit code"), &expected.code.show(), &run.code.show());
        // Advice to run the program again names what was read, and what cannot be read must be recorded again.
        let expected_output = expected
            .stdout
            .replace("sudo fastpath check --root root", "sudo fastpath snapshot --force")
            .replace(" --root root", "");
        let output = run.stdout.replace(&format!(" --snapshot {file}"), "");
        differences.compare(&format!("{what}: output"), &expected_output, &output);
        differences.require(run.stderr.starts_with("note: snapshot taken "), &run.stderr);
    }
    Ok(())
}

/// Compares with a golden file, or writes it.
fn golden(differences: &mut Differences, file: &Path, actual: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(file, actual).expect("the golden file can be written");
        return;
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match fs::read_to_string(file) {
        Ok(expected) => differences.compare(&name, &expected, actual),
        Err(error) => differences.require(false, &format!("{name}: {error}")),
    }
}

/// Compares the answer with `expect.json`, and with what holds for every answer.
fn judge(
    differences: &mut Differences,
    expect: &Expect,
    answer: &Value,
    remedies: &BTreeSet<String>,
) {
    let kernel = &answer["kernel"];
    for (field, expected) in &expect.kernel {
        let actual = match field.as_str() {
            "source" => kernel["source"]["path"].clone(),
            "advisories" => array(&kernel["advisories"]).iter().map(|a| a["id"].clone()).collect(),
            "witnesses" => array(&kernel["witnesses"]).iter().map(|w| w["path"].clone()).collect(),
            "installed" => installed(&kernel["installed"], expected),
            _ => kernel[field].clone(),
        };
        differences.compare(&format!("kernel.{field}"), &expected.to_string(), &actual.to_string());
    }

    let hints: Vec<&Value> =
        array(&answer["findings"]).iter().map(|f| &f["hint"]).filter(|h| !h.is_null()).collect();
    let ids: Vec<&str> = hints.iter().filter_map(|hint| hint["id"].as_str()).collect();
    if let Some(expected) = &expect.remedies {
        let actual: Vec<&str> = ids.iter().copied().filter(|&id| remedies.contains(id)).collect();
        differences.compare("remedies", &expected.join(" "), &actual.join(" "));
    }
    for id in &expect.absent_remedies {
        assert!(remedies.contains(id), "there is no remedy {id}");
        differences.require(!ids.contains(&id.as_str()), &format!("the hint {id} is out of place"));
    }
    for word in &expect.hint_words {
        let said = hints.iter().any(|hint| {
            let commands = array(&hint["commands"]).iter();
            commands.chain([&hint["text"]]).filter_map(Value::as_str).any(|s| s.contains(word))
        });
        differences.require(said, &format!("no hint says `{word}`"));
    }

    differences.compare("schema", "\"fastpath.check/1\"", &answer["schema"].to_string());
    let verdict = &kernel["verdict"];
    differences.compare("verdict", &verdict.to_string(), &answer["verdict"].to_string());
    let exit = match verdict.as_str() {
        Some("supported") => 0,
        Some("unsupported" | "blocked") => 1,
        _ => 2,
    };
    differences.compare("exit code of the verdict", &exit.to_string(), &expect.exit.to_string());
    let deciding: Value = array(&kernel["witnesses"])
        .iter()
        .filter(|witness| witness["decides"] == true)
        .map(|witness| witness["path"].clone())
        .collect();
    let source = match &kernel["source"]["path"] {
        Value::Null => Value::Array(Vec::new()),
        path => Value::Array(vec![path.clone()]),
    };
    differences.compare("deciding witnesses", &source.to_string(), &deciding.to_string());
}

/// Of every installed kernel, the fields that are expected of the one at its place.
fn installed(actual: &Value, expected: &Value) -> Value {
    let all = Map::new();
    let fields = |at: usize| expected[at].as_object().unwrap_or(&all);
    let kernels = array(actual).iter().enumerate().map(|(at, kernel)| {
        let kept = fields(at).keys().map(|field| (field.clone(), kernel[field].clone()));
        Value::Object(kept.collect())
    });
    kernels.collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// An exit code in words.
trait Show {
    fn show(&self) -> String;
}

impl Show for Option<i32> {
    fn show(&self) -> String {
        self.map_or_else(|| "ended by a signal".to_owned(), |code| code.to_string())
    }
}

impl Place {
    /// Uses the tree where it is, or makes the changes to a copy.
    fn prepare(host: &Path, setup: &[Setup]) -> Result<Self, String> {
        if setup.is_empty() {
            let directory = host.to_owned();
            let program = PathBuf::from(PROGRAM);
            return Ok(Self { directory, program, unprivileged: false, copy: None });
        }
        let copy = TempDir::new().expect("a temporary directory");
        let directory = copy.path().to_owned();
        set_mode(&directory, 0o755);
        copy_tree(&host.join("root"), &directory.join("root"));
        let program = directory.join("fastpath");
        fs::copy(PROGRAM, &program).expect("the program can be copied");
        for change in setup {
            change.apply(&directory.join("root"))?;
        }
        let needs_permissions = setup.iter().any(|change| matches!(change, Setup::Mode { .. }));
        let is_root = fs::metadata(&directory).expect("the copy is there").uid() == 0;
        let unprivileged = needs_permissions && is_root;
        Ok(Self { directory, program, unprivileged, copy: Some(copy) })
    }

    /// Runs the program in the host's directory.
    fn run(&self, arguments: &[&str]) -> Result<Run, String> {
        let output = TempDir::new().expect("a temporary directory");
        let (stdout, stderr) = (output.path().join("stdout"), output.path().join("stderr"));
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.directory).stdin(std::process::Stdio::null());
        command.stdout(File::create(&stdout).expect("a file for the output"));
        command.stderr(File::create(&stderr).expect("a file for the output"));
        for variable in ["COLUMNS", "NO_COLOR", "CLICOLOR_FORCE", "HIPFILE_KNOWLEDGE"] {
            command.env_remove(variable);
        }
        if self.unprivileged {
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut child =
            command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
        let start = Instant::now();
        let code = loop {
            if let Some(status) = child.try_wait().expect("the program's state") {
                break status.code();
            }
            if start.elapsed() > PATIENCE {
                child.kill().expect("the program can be ended");
                break child.wait().expect("the program's state").code();
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let read = |file| String::from_utf8(fs::read(file).expect("output")).expect("UTF-8 output");
        Ok(Run { code, stdout: read(stdout), stderr: read(stderr) })
    }
}

impl Drop for Place {
    /// Makes a copy removable again.
    fn drop(&mut self) {
        if self.copy.is_some() {
            let _ = Command::new("chmod")
                .args(["-R", "u+rwX"])
                .arg(self.directory.join("root"))
                .status();
        }
    }
}

impl Setup {
    fn apply(&self, root: &Path) -> Result<(), String> {
        let node = |path: &str, kind: FileType, device: u64| {
            mknodat(CWD, root.join(path), kind, Mode::from_raw_mode(0o644), device)
                .map_err(|error| format!("{path} cannot be made: {error}"))
        };
        match self {
            Self::Fifo(path) => node(path, FileType::Fifo, 0)?,
            Self::Chardev { path, major, minor } => {
                node(path, FileType::CharacterDevice, makedev(*major, *minor))?;
            }
            Self::Sparse { path, size } => File::create(root.join(path))
                .and_then(|file| file.set_len(*size))
                .map_err(|error| format!("{path} cannot be made: {error}"))?,
            Self::Mode { path, mode } => {
                let mode = u32::from_str_radix(mode, 8).expect("an octal mode");
                set_mode(&root.join(path), mode);
            }
        }
        Ok(())
    }
}

/// Copies a tree, links as links, readable for everybody.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a directory in the copy");
    set_mode(to, 0o755);
    for entry in fs::read_dir(from).expect("a directory of the tree") {
        let entry = entry.expect("an entry of the tree");
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("the kind of an entry");
        if kind.is_symlink() {
            symlink(fs::read_link(&source).expect("a link"), target).expect("a link in the copy");
        } else if kind.is_dir() {
            copy_tree(&source, &target);
        } else {
            fs::copy(&source, &target).expect("a file in the copy");
            set_mode(&target, 0o644);
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions can be set");
}
