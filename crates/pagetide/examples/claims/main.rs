//! Can verdicts and reasons be trusted? Campaigns of known truth, run with the real program on a real kernel.
//!
//! `harmless`: campaigns of two variants that differ in nothing that matters, each with seeds of its own, over six cells.
//! Whatever they claim is false. `planted`: differences of known sense, whose sign and first cause are checked;
//! with a name, those that have it in theirs; `from SEED` takes seeds from there on instead of from 1.
//!
//! `cargo run --release -p pagetide --example claims -- [harmless N] [planted [NAME]] [from SEED]`, with both parts where none is
//! named and 42 campaigns where no number is. The program is the one built beside this example, or `$PAGETIDE`. Records go to
//! `$PAGETIDE_STORE`, else to a folder in the target folder; what has a record is not run again.

// An example ends where it cannot go on.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod harmless;
mod planted;
mod tool;

use std::process::ExitCode;

/// Campaigns of harmless variants.
const CAMPAIGNS: u32 = 42;

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut first = "1".to_owned();
    if let Some(at) = words.iter().position(|word| word == "from") {
        first = words.drain(at..).nth(1).expect("`from` needs a seed");
    }
    let asked = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    let campaigns = words.iter().find_map(|word| word.parse().ok());
    let only = words.iter().position(|word| word == "planted");
    let only = only.and_then(|at| words.get(at + 1)).map(String::as_str);
    let tool = tool::Tool::find();
    let mut holds = true;
    if asked("harmless") {
        holds &= harmless::run(&tool, campaigns.unwrap_or(CAMPAIGNS));
    }
    if asked("planted") {
        holds &= planted::run(&tool, only, &first);
    }
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
