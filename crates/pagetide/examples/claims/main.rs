//! Tests whether verdicts and reasons can be trusted, with campaigns of known truth, run with the real program on a
//! real kernel.
//!
//! `harmless`: campaigns of two variants without any relevant difference, with different seeds each, over six cells.
//! All claims are false. `planted`: differences with a known direction, whose sign and first cause are checked. A name
//! selects those whose name contains it. `from SEED` starts the planted ones with this seed instead of 1.
//!
//! `cargo run --release -p pagetide --example claims -- [harmless N] [planted [NAME]] [from SEED]`. Without names, both
//! parts run; the default number of campaigns is 42. The program is the one built together with this example, or
//! `$PAGETIDE`. Records go to `$PAGETIDE_STORE`, otherwise to the folder `claims-store` beside the program; trials with
//! a record are not run again.

// An example may panic if it cannot continue.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod harmless;
mod planted;
mod tool;

use std::process::ExitCode;

/// Default number of campaigns with variants without effect.
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
