//! Parsing of the command line: help, and every command in the documents. Part of the unit tests of the binary
//! (`src/cli.rs`), because the definition is private.

#![allow(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use std::fs;
use std::path::Path;

use clap::error::ErrorKind;
use pagetide_testing::{documents, output};

use super::*;

#[test]
fn the_definition_contradicts_itself_nowhere() {
    definition().debug_assert();
    with_headings().debug_assert();
}

#[test]
fn every_command_stands_under_exactly_one_heading_of_help_in_this_order() {
    let grouped = GROUPS.iter().flat_map(|(_, names)| names.split(' '));
    let grouped: Vec<String> = grouped.map(str::to_owned).collect();
    let there = Cli::command();
    let there: Vec<&str> = there
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(clap::Command::get_name)
        .collect();
    assert_eq!(grouped, there);
    assert_eq!(GROUPS[0].1.split(' ').count(), 6);
    let help = with_headings().render_help().to_string();
    for (heading, names) in GROUPS {
        assert!(
            help.contains(&format!(
                "\n\n{heading}:\n  {}",
                names.split(' ').next().unwrap()
            )),
            "{help}"
        );
    }
    for part in [
        "\nUsage: pagetide ",
        "\nOptions:\n",
        "--store",
        "\nExit codes:\n",
    ] {
        assert_eq!(help.matches(part).count(), 1, "{part}: {help}");
    }
}

/// The examples in the help of a command and of its subcommands.
fn examples(command: &clap::Command) -> Vec<String> {
    let help = command.get_after_long_help().or(command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let lines = help.lines();
    let lines = lines.skip_while(|line| !line.starts_with("Example"));
    let own = lines.skip(1).take_while(|line| !line.is_empty());
    let own = own.map(str::trim);
    let below = command.get_subcommands().flat_map(examples);
    own.map(str::to_owned).chain(below).collect()
}

#[test]
fn every_command_in_help_and_documents_is_understood() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Each line is stored with its place and whether it is prose. Prose may name a command without its arguments.
    let help = examples(&Cli::command()).into_iter();
    let mut lines: Vec<(String, String, bool)> =
        help.map(|line| ("help".to_owned(), line, false)).collect();
    for document in documents::all(&repository).unwrap() {
        let text = fs::read_to_string(repository.join(&document)).unwrap();
        let sealed = output::blocks(&text).unwrap().into_iter();
        let sealed = sealed.flat_map(|block| {
            block
                .commands
                .into_iter()
                .map(move |line| (block.line, line))
        });
        let shown = documents::shell_lines(&text).into_iter().chain(sealed);
        let prose = documents::code_spans(&text)
            .into_iter()
            .map(|(nth, line)| (nth, line, true));
        for (nth, line, is_prose) in shown.map(|(nth, line)| (nth, line, false)).chain(prose) {
            lines.push((format!("{document}:{nth}"), line, is_prose));
        }
    }
    let mut seen = 0;
    for (place, line, is_prose) in lines {
        let words = documents::words(&line);
        // The program's name without arguments is not a command line.
        if words.len() < 2 || words[0] != "pagetide" {
            continue;
        }
        seen += 1;
        let Err(error) = Cli::command().try_get_matches_from(&words) else {
            continue;
        };
        let is_understood = match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => is_prose,
            _ => false,
        };
        assert!(is_understood, "{place}: {line}: {error}");
    }
    assert!(seen > 150, "only {seen}");
}
