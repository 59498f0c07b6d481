//! Man pages: one for the program, one for each command.
//!
//! `clap_mangen` renders what the definition of the command line holds. The sections a reader looks for besides, EXIT
//! STATUS, ENVIRONMENT, FILES, EXAMPLES and SEE ALSO, are added here.

use std::path::Path;

use anyhow::Context as _;
use clap::{ArgAction, Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use fastpath::args::Args;

use super::Files;
use super::reference::{self, Kind, Scope, VARIABLES};

pub(super) fn pages() -> anyhow::Result<Files> {
    let mut command = Args::command();
    command.build();
    let mut files = Files::new();
    for page in std::iter::once(&command).chain(command.get_subcommands()) {
        if !page.is_hide_set() {
            let name = display_name(page);
            let text = render(&command, page).with_context(|| name.clone())?;
            files.insert(Path::new("docs/man").join(format!("{name}.1")), text);
        }
    }
    Ok(files)
}

fn display_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// One page; `page` is `program` itself or one of its commands.
fn render(program: &Command, page: &Command) -> anyhow::Result<String> {
    let version = program.get_version().unwrap_or_default();
    let is_program = display_name(page) == display_name(program);
    let man = Man::new(page.clone().subcommand_help_heading("COMMANDS"));
    let mut bytes = Vec::new();
    let mut roff = Roff::new();
    // An empty date, which `Man::render_title` would leave out, so that the words behind it move to the wrong places.
    let (title, source) =
        (display_name(page).to_uppercase(), format!("{} {version}", program.get_name()));
    roff.control("TH", [title.as_str(), "1", "\"\"", &source, "User Commands"]);
    roff.to_writer(&mut bytes)?;
    man.render_name_section(&mut bytes)?;
    let mut roff = Roff::new();
    synopsis(&mut roff, page);
    roff.to_writer(&mut bytes)?;
    man.render_description_section(&mut bytes)?;
    let mut roff = Roff::new();
    let (remarks, examples) = after_help(page);
    if !is_program {
        for remark in remarks {
            let (prose, lines) = split_lines(&remark);
            roff.control("PP", []).text([roman(prose)]);
            self::lines(&mut roff, &lines);
        }
    }
    roff.to_writer(&mut bytes)?;
    man.render_options_section(&mut bytes)?;
    if is_program {
        man.render_subcommands_section(&mut bytes)?;
    }

    let mut roff = Roff::new();
    exit_status(&mut roff, program, page);
    environment(&mut roff, page, is_program);
    files(&mut roff, page, is_program);
    if is_program {
        see_also(&mut roff, program.get_subcommands().filter(|command| !command.is_hide_set()));
    } else {
        self::examples(&mut roff, &examples);
        see_also(&mut roff, std::iter::once(program));
    }
    roff.to_writer(&mut bytes)?;
    Ok(literals_bold(&one_preamble(&String::from_utf8(bytes)?)))
}

/// How the command is typed: every option with its value, as `clap_mangen` does not give it.
fn synopsis(roff: &mut Roff, page: &Command) {
    let mut line = vec![bold(page.get_bin_name().unwrap_or_else(|| page.get_name()))];
    let mut arguments: Vec<_> = page.get_arguments().filter(|it| !it.is_hide_set()).collect();
    arguments.sort_by_key(|argument| argument.is_positional());
    for argument in arguments {
        let values = argument.get_value_names().unwrap_or_default().join(" ").replace(' ', "> <");
        let repeats = matches!(argument.get_action(), ArgAction::Append);
        let required = argument.is_required_set();
        line.push(roman(if required { " " } else { " [" }));
        if argument.is_last_set() {
            line.push(bold("-- "));
        }
        if let Some(name) = argument.get_long() {
            line.push(bold(format!("--{name}")));
        }
        if argument.get_action().takes_values() {
            line.push(roman(if argument.is_positional() { "" } else { " " }));
            line.push(italic(format!("<{values}>")));
        }
        line.push(roman(if required { "" } else { "]" }));
        line.push(roman(if repeats { "..." } else { "" }));
    }
    if page.has_subcommands() {
        line.extend([roman(" "), italic("<COMMAND>")]);
    }
    roff.control("SH", ["SYNOPSIS"]).text(line);
}

/// Keeps only the first of the definitions that every rendered piece begins with.
fn one_preamble(text: &str) -> String {
    const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";
    format!("{PREAMBLE}{}", text.replace(PREAMBLE, ""))
}

/// The text below a command's options: paragraphs, and the lines of its examples.
fn after_help(command: &Command) -> (Vec<String>, Vec<String>) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut remarks = Vec::new();
    let mut examples = Vec::new();
    for paragraph in text.split("\n\n") {
        let mut lines = paragraph.lines();
        match lines.next() {
            Some("Example:" | "Examples:") => {
                examples.extend(lines.map(|line| line.trim_start().to_owned()));
            }
            Some(_) => remarks.push(paragraph.to_owned()),
            None => {}
        }
    }
    (remarks, examples)
}

/// A paragraph's prose in one line, and the indented lines to be typed below it.
fn split_lines(paragraph: &str) -> (String, Vec<String>) {
    let (typed, prose): (Vec<&str>, Vec<&str>) =
        paragraph.lines().partition(|line| line.starts_with("  "));
    (prose.join(" "), typed.into_iter().map(|line| line.trim_start().to_owned()).collect())
}

/// Lines as they are.
fn lines(roff: &mut Roff, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    roff.control("EX", []);
    for line in lines {
        roff.text([roman(line)]);
    }
    roff.control("EE", []);
}

fn exit_status(roff: &mut Roff, program: &Command, page: &Command) {
    roff.control("SH", ["EXIT STATUS"]);
    if let Some(kind) = Kind::of(page.get_name()) {
        let (codes, remark) = kind.exit_status();
        for (code, meaning) in codes {
            roff.control("TP", []).text([bold(*code)]).text([roman(*meaning)]);
        }
        if !remark.is_empty() {
            roff.control("PP", []).text([roman(remark)]);
        }
    } else {
        for remark in after_help(program).0 {
            roff.text([roman(remark.replace('\n', " "))]);
        }
    }
}

/// Whether a page is about a command that takes knowledge, or about the program as a whole.
fn knows(page: &Command, is_program: bool) -> bool {
    is_program || page.get_arguments().any(|argument| argument.get_id() == "knowledge")
}

fn environment(roff: &mut Roff, page: &Command, is_program: bool) {
    roff.control("SH", ["ENVIRONMENT"]);
    let knows = knows(page, is_program);
    let moves = is_program || ["bench", "cp", "verify"].contains(&page.get_name());
    let concerns = |scope| match scope {
        Scope::All => true,
        Scope::Knowledge => knows,
        Scope::Moves => moves,
        Scope::KnowledgeAndMoves => knows || moves,
    };
    for variable in VARIABLES.iter().filter(|it| concerns(it.scope)) {
        roff.control("TP", []).text([bold(variable.name)]).text([roman(variable.effect)]);
    }
}

fn files(roff: &mut Roff, page: &Command, is_program: bool) {
    let host = reference::host_files(page.get_name());
    let knowledge = knows(page, is_program).then_some(&reference::KNOWLEDGE_FILES);
    if host.is_empty() && knowledge.is_none() {
        return;
    }
    roff.control("SH", ["FILES"]);
    if !host.is_empty() {
        roff.text([
            roman("Below the root that is asked about. "),
            italic("R"),
            roman(" is the release of a kernel."),
        ]);
    }
    for (path, meaning) in host.iter().chain(knowledge) {
        roff.control("TP", []).text([italic(*path)]).text([roman(*meaning)]);
    }
}

fn examples(roff: &mut Roff, examples: &[String]) {
    if examples.is_empty() {
        return;
    }
    roff.control("SH", ["EXAMPLES"]);
    lines(roff, examples);
}

fn see_also<'a>(roff: &mut Roff, pages: impl Iterator<Item = &'a Command>) {
    roff.control("SH", ["SEE ALSO"]);
    let mut line = Vec::new();
    for page in pages {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.extend([bold(display_name(page)), roman("(1)")]);
    }
    roff.text(line);
}

/// Turns literals in backticks, which troff would print as quotation marks, into bold.
fn literals_bold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let paired = line.matches('`').count() % 2 == 0;
        for (index, piece) in line.split('`').enumerate() {
            if index > 0 {
                out.push_str(match (paired, index % 2) {
                    (false, _) => "\\(ga",
                    (true, 1) => "\\fB",
                    (true, _) => "\\fR",
                });
            }
            out.push_str(piece);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_become_bold() {
        assert_eq!(literals_bold("of `/`; `\\-` too\n"), "of \\fB/\\fR; \\fB\\-\\fR too\n");
        assert_eq!(literals_bold("a lone ` mark\n"), "a lone \\(ga mark\n");
    }

    #[test]
    fn what_is_typed_stands_in_lines_of_its_own() {
        let pages = pages().unwrap();
        let page = |name: &str| pages[&Path::new("docs/man").join(name)].as_str();
        let link = "\n.EX\nln \\-s $(command \\-v fastpath) /usr/local/bin/aiscp\n.EE\n";
        assert!(page("fastpath-cp.1").contains(link), "{}", page("fastpath-cp.1"));
        let usage = "[\\fI<PID>\\fR] [\\fB\\-\\- \\fR\\fI<PROGRAM>\\fR]...";
        assert!(page("fastpath-stats.1").contains(usage), "{}", page("fastpath-stats.1"));
        assert!(page("fastpath-verify.1").contains("HIPFILE_LOG"));
        assert!(!page("fastpath-check.1").contains("HIPFILE_LOG"));
    }

    #[test]
    fn every_page_has_the_sections_a_reader_looks_for() {
        for (path, text) in pages().unwrap() {
            for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"] {
                assert!(
                    text.contains(&format!("\n.SH {section}\n"))
                        || text.contains(&format!("\n.SH \"{section}\"\n")),
                    "{}: {section}",
                    path.display()
                );
            }
            assert!(text.contains(".SH \"EXIT STATUS\""), "{}", path.display());
        }
    }
}
