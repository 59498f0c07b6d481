//! Running the ordinary tools, and the finder.

use std::io::{Cursor, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use fastpath_artifact::{Error, Evidence, Finder, Found, Limits, Summary};
use fastpath_kconfig::Text;

/// Whether a tool is installed; says so if a test is skipped for want of it.
pub(crate) fn have(tool: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| directory.join(tool).is_file())
    });
    if !found {
        eprintln!("skipped, because `{tool}` is not installed");
    }
    found
}

/// Runs a command that must succeed.
pub(crate) fn run(program: &str, args: &[&str], directory: &Path) {
    let output = Command::new(program).args(args).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {errors}");
}

/// What a command makes of its standard input.
pub(crate) fn filter(program: &str, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{program} {args:?}");
    output.stdout
}

/// What was found, and what the search said at its end.
pub(crate) fn find_with(
    limits: Limits,
    first: bool,
    name: &str,
    bytes: &[u8],
) -> (Vec<Found>, Result<Summary, Error>) {
    let mut found = Vec::new();
    let mut input = Cursor::new(bytes);
    let mut finder = Finder::new(limits, first);
    let result = finder.find(&mut input, name, &mut |kernel| found.push(kernel));
    (found, result)
}

pub(crate) fn find(name: &str, bytes: &[u8]) -> (Vec<Found>, Result<Summary, Error>) {
    find_with(Limits::default(), false, name, bytes)
}

/// What was found in an input that has no fault.
pub(crate) fn find_all(name: &str, bytes: &[u8]) -> Vec<Found> {
    let (found, result) = find(name, bytes);
    let summary = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(summary.errors.is_empty(), "{:?}", summary.errors);
    assert_eq!(summary.found, found.len() as u64);
    found
}

/// Member, release and value of the option of each kernel, one a line.
pub(crate) fn show(found: &[Found]) -> Vec<String> {
    let line = |found: &Found| {
        let member = found.member.as_deref().unwrap_or("-");
        let release = found.release.as_ref().map_or("-", |release| release.as_str());
        let evidence = match &found.evidence {
            Evidence::Config(text) => Text::new(text).value("PCI_P2PDMA").to_string(),
            Evidence::Symbols(Some(own)) => format!("symbols {own}"),
            Evidence::Symbols(None) => "symbols that tell nothing".to_owned(),
            Evidence::NoConfig { version } => {
                format!("no configuration, {}", version.as_deref().unwrap_or("no version"))
            }
        };
        format!("{member} {release} {evidence}")
    };
    found.iter().map(line).collect()
}

/// The text of the only configuration found.
pub(crate) fn only_config(found: &[Found]) -> &[u8] {
    match found {
        [Found { evidence: Evidence::Config(text), .. }] => text,
        other => panic!("{:?}", show(other)),
    }
}

/// As [`find`], and every error of parts as text.
pub(crate) fn errors(result: Result<Summary, Error>) -> Vec<String> {
    match result {
        Ok(summary) => summary.errors.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}
