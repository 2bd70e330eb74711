//! Renders an account: a table that splits the difference of two times by function. Its lines add up to the difference.

use pagetide_compare::profiled::{Proof, SeedAccount};
use pagetide_profile::{Account, FunctionChange, Line, LockChange, WAITS};
use pagetide_quantity::Unit;

use super::Statement;
use super::paragraph::lines;
use super::words::{arrow, both, signed};
use crate::draw::clean::clean;
use crate::draw::quantity::{Scale, number};
use crate::draw::{Align, Cell, Grid, Ink, TextStyle};

/// Maximum length of the names of a lock's function and of its holder, in terminal columns.
const LOCK_CHARS: usize = 60;
/// Maximum length of a side's name in the table's heading, in terminal columns.
const NAME_CHARS: usize = 16;

/// Formats times and counts on both sides. `what` is the word for what is counted.
fn times_and_counts(times: [u64; 2], counts: [u64; 2], what: &str, ascii: bool) -> String {
    let times = both(times.map(number), Unit::Nanos, ascii);
    if counts == [0; 2] {
        return times;
    }
    let counts = both(counts.map(number), Unit::Count, ascii);
    format!("{times}, {counts} {what}")
}

/// Formats the name of a function with its times and calls on both sides. `what` is the word for calls.
fn change(function: &FunctionChange, what: &str, text_style: &TextStyle) -> String {
    let ascii = text_style.ascii;
    let FunctionChange {
        name,
        instructions,
        calls,
    } = function;
    format!(
        "{} {}",
        clean(name, text_style.width, ascii),
        times_and_counts(*instructions, *calls, what, ascii)
    )
}

/// Returns a statement about the locks whose waits changed most, with a line for each lock; `None` if no waits for locks
/// changed.
pub(crate) fn locks(account: &Account, ascii: bool) -> Option<Statement> {
    let line = |lock: &LockChange| {
        let holder = match &lock.holder {
            Some(holder) => format!("held by {}", clean(holder, LOCK_CHARS, ascii)),
            None => "holder not known".to_owned(),
        };
        format!(
            "{}, {holder}: {}",
            clean(&lock.taker, LOCK_CHARS, ascii),
            times_and_counts(lock.time, lock.waits, "waits", ascii)
        )
    };
    (!account.locks.is_empty()).then(|| Statement {
        claim: "waits for locks, also those in which other tasks ran".to_owned(),
        evidence: account.locks.iter().map(line).collect(),
    })
}

/// Renders an account as a table: a line for each group of functions with its time on both sides. Below the table are
/// the functions that changed most in each group, and the locks whose waits changed most.
pub fn account(account: &Account, names: [&str; 2], text_style: &TextStyle) -> String {
    let ascii = text_style.ascii;
    let mut grid = Grid::new(Align::names_and_numbers(3));
    let head = |name: &str| Cell::new(Ink::Strong, clean(name, NAME_CHARS, ascii));
    grid.row([
        Cell::new(Ink::Faint, "exact time by function"),
        head(names[0]),
        head(names[1]),
        Cell::new(Ink::Faint, "difference"),
    ]);
    let row = |name: &str, time: [u64; 2], ink: Ink| {
        let scale = Scale::of_all(Unit::Nanos, time.map(number));
        let [a, b] = time.map(number);
        [
            Cell::new(ink, name),
            Cell::new(ink, scale.show(a, ascii)),
            Cell::new(ink, scale.show(b, ascii)),
            Cell::new(ink, signed(b - a, ascii)),
        ]
    };
    for Line { name, time, .. } in &account.lines {
        grid.row(row(name, *time, Ink::Plain));
    }
    grid.row(row("elapsed", account.elapsed, Ink::Strong));
    let mut out = grid.draw(text_style, 2);
    for line in &account.lines {
        if line.functions.is_empty() || line.change() == 0 {
            continue;
        }
        let functions: Vec<String> = line
            .functions
            .iter()
            .map(|function| {
                change(
                    function,
                    if line.name == WAITS { "waits" } else { "calls" },
                    text_style,
                )
            })
            .collect();
        let text = format!("{}: {}", line.name, functions.join("; "));
        lines(&mut out, &text, 2, Ink::Plain, text_style);
    }
    if let Some(Statement { claim, evidence }) = locks(account, ascii) {
        lines(&mut out, &format!("{claim}:"), 2, Ink::Plain, text_style);
        for line in evidence {
            lines(&mut out, &line, 5, Ink::Plain, text_style);
        }
    }
    out
}

/// Renders the account of one seed, with sentences on whether the account is exact. `is_sure` is true if a time surely
/// differs over all seeds.
pub(super) fn of_seed(
    found: &SeedAccount,
    names: [&str; 2],
    is_sure: bool,
    text_style: &TextStyle,
) -> String {
    let mut out = account(&found.account, names, text_style);
    let SeedAccount {
        seed, each, proofs, ..
    } = found;
    let rest = match found.account.rest() {
        0 => "these lines add up to the difference to the nanosecond".to_owned(),
        rest => format!("these lines leave {rest} ns of the difference out"),
    };
    let others = match each.len() {
        0 | 1 => String::new(),
        count => {
            let changes: Vec<String> = each
                .iter()
                .map(|(seed, change)| {
                    format!("seed {seed} {}", signed(*change as f64, text_style.ascii))
                })
                .collect();
            format!(" {count} seeds have profiles: {}.", changes.join(", "))
        }
    };
    let proof = if proofs.iter().all(Proof::holds) {
        "the results of both profiled passes equal those of the timed passes to the bit".to_owned()
    } else {
        let [a, b] = proofs.each_ref().map(Proof::sentence);
        format!("{}: {a}; {}: {b}", names[0], names[1])
    };
    let own = if is_sure || found.account.change() == 0 {
        ""
    } else {
        " Over all seeds no time surely differs, so this difference may be the seed's own."
    };
    let text = format!(
        "Seed {seed} ({} {} {}): {rest}; {proof}.{others}{own}",
        names[0],
        arrow(text_style.ascii),
        names[1]
    );
    lines(&mut out, &text, 2, Ink::Faint, text_style);
    out
}
