//! Shows the account of a hunt as text: how long it ran, the findings, and what it tried.

use std::fmt::Write as _;

use pagetide_workload::Workload;

use crate::behaviour::MapCell;
use crate::goal::Goal;
use crate::hunt::{Account, MUST_HOLD, SEEDS};
use crate::workloads::label;

/// Returns the account as text. `wall` is the wall-clock time of the hunt.
pub fn text(goal: Goal, account: &Account<Workload>, wall: std::time::Duration) -> String {
    let mut out = String::new();
    let definition = goal.definition();
    let found = match account.found.len() {
        0 => "Nothing found".to_owned(),
        1 => "1 case found".to_owned(),
        many => format!("{many} cases found"),
    };
    let trials = account.trials;
    let minutes = wall.as_secs_f64() / 60.0;
    let _ = writeln!(
        out,
        "{found} for goal {goal} in {trials} trials of {} candidates, {minutes:.1} minutes.",
        account.candidates
    );
    let _ = writeln!(
        out,
        "{goal}: {}; at least {}.\n",
        definition.number, definition.limit
    );
    for (index, find) in account.found.iter().enumerate() {
        let share = find.seeds;
        let _ = writeln!(out, "{}. {}", index + 1, find.shown);
        let _ = writeln!(out, "   {}", label(&find.case));
        let mut general = format!("holds with {} of {} fresh seeds", share.holds, share.tried);
        for (size, share) in &find.sizes {
            let _ = write!(general, ", {} of {} at {size} %", share.holds, share.tried);
        }
        let _ = writeln!(out, "   {general}");
        let again = match find.again {
            0 => String::new(),
            count => format!(", met again {count} times"),
        };
        let smallest = if find.is_smallest {
            "nothing can be left out"
        } else {
            "may not be the smallest"
        };
        let _ = writeln!(
            out,
            "   met after {} trials{again}; made simpler {} times, {smallest}\n",
            find.after, find.steps
        );
    }
    if account.chance > 0 {
        let sizes = if goal.needs_two() {
            ", or at one size only"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "On {} more candidates the goal held with the first seed, but not with {MUST_HOLD} of {SEEDS} fresh seeds{sizes}.",
            account.chance
        );
    }
    if let Some(best) = account.best.as_ref().filter(|_| account.found.is_empty()) {
        let _ = writeln!(out, "Nearest: {}\n  {}", best.shown, label(&best.point));
    }
    let widest = account.regions.keys().map(|name| name.chars().count());
    let width = widest.max().unwrap_or(0).max("where it looked".len());
    let _ = writeln!(
        out,
        "{:width$}  candidates  unusable  kinds of behaviour  largest number",
        "where it looked"
    );
    for (region, looked) in &account.regions {
        let _ = writeln!(
            out,
            "{region:width$}  {:>10}  {:>8}  {:>12} of {}  {:>14.2}",
            looked.candidates,
            looked.unusable,
            looked.places,
            MapCell::COUNT,
            looked.best
        );
    }
    let _ = writeln!(
        out,
        "\nKinds of behaviour: share of anonymous pages among those reclaimed, by how often memory was reclaimed. {} different \
         features of the kernel's counters were seen.",
        account.features
    );
    if let Some((why, count)) = account.unusable.first() {
        let _ = writeln!(
            out,
            "Most frequent reason why candidates could not be measured ({count}): {why}"
        );
    }
    out
}
