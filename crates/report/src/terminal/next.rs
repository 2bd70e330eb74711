//! The text below the verdicts of a run: where its records are, and what to try next.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use pagetide_quantity::command::{command, in_backticks, shell};
use pagetide_record::ArenaKind;
use pagetide_store::{CampaignNote, Store};

/// Returns text that states where the records of a campaign are, and two suggested commands that fit the result.
/// `typed` is the command line that ran the campaign; `is_open` is true if more seeds might decide a metric.
pub fn next(store: &Store, note: &CampaignNote, is_open: bool, typed: &[OsString]) -> String {
    let id = note.id();
    let again = |options: &[&str]| shell(&with(typed, options));
    let shown = format!("the records, for {}", in_backticks("show RECORD"));
    let steps = match note.variants.as_slice() {
        [first, .., last] => {
            let [a, b] = [first, last].map(|variant| format!("{id}:{variant}"));
            let compare = ["compare", &a, &b, "--all", "--pictures"];
            let page = format!("{id}.html");
            [
                (
                    command(&compare),
                    "every metric, and the latencies as pictures",
                ),
                // A sequential campaign has already run the planned maximum of seeds.
                if is_open && note.looks.is_empty() {
                    (
                        again(&["--until-sure"]),
                        "more seeds, until each primary metric is decided",
                    )
                } else {
                    (
                        command(&["report", &id, "-o", &page]),
                        "the same as a page, with its figures",
                    )
                },
            ]
        }
        _ if note.arena == ArenaKind::Host => [
            (
                again(&["--set", "vm.swappiness=60", "--vs", "vm.swappiness=10"]),
                "the same with two values of swappiness",
            ),
            (
                command(&["list", "records", "--campaign", &id]),
                shown.as_str(),
            ),
        ],
        _ => [
            (
                again(&["--set", "lru_gen/enabled=0", "--vs", "lru_gen/enabled=7"]),
                "the same with MGLRU off against on",
            ),
            (
                command(&["list", "records", "--campaign", &id]),
                shown.as_str(),
            ),
        ],
    };
    let records = store.folder().join("records");
    let mut text = format!(
        "\nRecords: {} ({} trials, campaign {id})\nNext:\n",
        records.display(),
        note.entries.len()
    );
    for (command, why) in steps {
        let _ = writeln!(text, "  {command}\n      {why}");
    }
    text
}

/// Returns a command line with additional options. They are inserted before the command line of the user's program, if
/// there is one.
fn with<'a>(typed: &'a [OsString], options: &'a [&'a str]) -> Vec<&'a OsStr> {
    let mut all: Vec<&OsStr> = typed.iter().map(OsString::as_os_str).collect();
    let at = all.iter().position(|word| *word == "--");
    let at = at.unwrap_or(all.len());
    all.splice(at..at, options.iter().map(OsStr::new));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_before_the_words_of_a_program() {
        let typed = ["pagetide", "run", "--", "sort", "-n"].map(OsString::from);
        assert_eq!(
            shell(&with(&typed, &["--until-sure"])),
            "pagetide run --until-sure -- sort -n"
        );
        assert_eq!(
            shell(&with(&typed[..2], &["--seeds", "9"])),
            "pagetide run --seeds 9"
        );
    }
}
