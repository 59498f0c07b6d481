//! Every command line shown to a reader is one the program takes.

use clap::{CommandFactory as _, Parser as _};
use fastpath::args::Args;

/// The words of a shown command line, up to where the shell takes over.
fn words(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches("if ").trim_start_matches("sudo ");
    let end = line.find(['|', '#', '>', ';']).unwrap_or(line.len());
    line[..end].split_whitespace().collect()
}

fn assert_taken(line: &str) {
    let words = words(line);
    assert_eq!(words.first(), Some(&"fastpath"), "{line}");
    if let Err(error) = Args::try_parse_from(words) {
        panic!("{line}: {error}");
    }
}

#[test]
fn of_the_help() {
    let mut examples = 0;
    let program = Args::command();
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, lines) = text.split_once("Example").unwrap_or_default();
        assert!(lines.contains("fastpath "), "{} has no example", command.get_name());
        for line in lines.lines().skip(1).take_while(|line| !line.trim().is_empty()) {
            // Behind a pipe the program stands last.
            let line = line
                .rsplit_once("| fastpath")
                .map_or(line.to_owned(), |(_, it)| format!("fastpath{it}"));
            assert_taken(&line);
            examples += 1;
        }
    }
    assert!(examples > 10, "{examples}");
}

#[test]
fn of_the_readme() {
    let readme = include_str!("../../README.md");
    let lines = readme.lines().filter_map(|line| {
        let line = line.strip_prefix("    ").or(line.strip_prefix("$ "))?;
        line.trim_start_matches("if ").starts_with("fastpath ").then_some(line)
    });
    assert!(lines.clone().count() > 5);
    lines.for_each(assert_taken);
}
