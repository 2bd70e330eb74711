//! The account: splits the difference between the times of two profiles into lines that add up to it, to the
//! nanosecond.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::group::{Group, NOT_GROUPED, group_of};
use crate::lock::{LockChange, lock_changes};
use crate::profile::Profile;

/// Name of the line for the time in which every task waits.
pub const WAITS: &str = "waits";
/// Name of the line for the groups that have no line of their own.
const OTHERS: &str = "other groups";
/// Maximum number of lines of an account.
const MAX_LINES: usize = 8;
/// Maximum number of functions that a line names.
const MAX_FUNCTIONS: usize = 3;
/// A function is named only if its change is at least this fraction of the largest change of a function in the line.
const MIN_SHARE: f64 = 0.02;

/// Counts of one function, or of one kind of waits, in two profiles A and B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionChange {
    /// Name of the function; for waits, the cause and the function that waited.
    pub name: String,
    /// Number of instructions in A and in B; for waits, time in nanoseconds. An instruction takes one nanosecond of
    /// exact time.
    pub instructions: [u64; 2],
    /// Number of calls in A and in B; for waits, number of waits.
    pub calls: [u64; 2],
}

/// A line of an account: a group of functions, or the waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Name of the group.
    pub name: String,
    /// Time in A and in B, in nanoseconds.
    pub time: [u64; 2],
    /// The functions that changed most, largest change first.
    pub functions: Vec<FunctionChange>,
}

impl Line {
    /// Change of the time from A to B, in nanoseconds.
    pub fn change(&self) -> i64 {
        difference(self.time)
    }
}

/// The difference between the elapsed times of two profiles, A and B, split into lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Elapsed time of A and of B, in nanoseconds.
    pub elapsed: [u64; 2],
    /// At most eight lines: groups and waits, largest change first, then what has no line of its own and what is not
    /// grouped. Their changes add up to the change of the elapsed time.
    pub lines: Vec<Line>,
    /// The locks whose waits changed most, largest change first. Other tasks may have run meanwhile, so these times are
    /// not a part of the elapsed time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockChange>,
}

impl Account {
    /// Change of the elapsed time from A to B, in nanoseconds.
    pub fn change(&self) -> i64 {
        difference(self.elapsed)
    }

    /// Part of the change that the lines do not explain, in nanoseconds. Zero for exact profiles.
    pub fn rest(&self) -> i64 {
        self.change() - self.lines.iter().map(Line::change).sum::<i64>()
    }
}

const fn difference([a, b]: [u64; 2]) -> i64 {
    b.wrapping_sub(a).cast_signed()
}

/// Returns the changes of the functions of two profiles, by group. Within a group they are in the order of name and
/// module.
fn functions(sides: [&Profile; 2]) -> BTreeMap<Group, Vec<FunctionChange>> {
    let mut all: BTreeMap<(&str, Option<&str>), (Group, FunctionChange)> = BTreeMap::new();
    for (side, profile) in sides.into_iter().enumerate() {
        for function in &profile.functions {
            let key = (function.name.as_str(), function.module.as_deref());
            let (_, change) = all.entry(key).or_insert_with(|| {
                let change = FunctionChange {
                    name: function.name.clone(),
                    instructions: [0; 2],
                    calls: [0; 2],
                };
                (group_of(function), change)
            });
            change.instructions[side] += function.instructions;
            change.calls[side] += function.calls;
        }
    }
    let mut groups: BTreeMap<Group, Vec<FunctionChange>> = BTreeMap::new();
    for (group, change) in all.into_values() {
        groups.entry(group).or_default().push(change);
    }
    groups
}

/// Changes of the waits of two profiles, by cause and waiting function.
fn waits(sides: [&Profile; 2]) -> Vec<FunctionChange> {
    let mut all: BTreeMap<String, FunctionChange> = BTreeMap::new();
    for (side, profile) in sides.into_iter().enumerate() {
        for (name, time, count) in profile.waits_by_name() {
            let change = all.entry(name.clone()).or_insert_with(|| FunctionChange {
                name,
                instructions: [0; 2],
                calls: [0; 2],
            });
            change.instructions[side] = time;
            change.calls[side] = count;
        }
    }
    all.into_values().collect()
}

fn line(name: &str, mut functions: Vec<FunctionChange>) -> Line {
    let sum = |side: usize| {
        functions
            .iter()
            .map(|change| change.instructions[side])
            .sum()
    };
    let time = [sum(0), sum(1)];
    let size = |change: &FunctionChange| difference(change.instructions).unsigned_abs();
    functions.sort_by_key(|change| std::cmp::Reverse(size(change)));
    let largest = functions.first().map_or(0, size);
    functions
        .retain(|change| size(change) > 0 && size(change) as f64 >= MIN_SHARE * largest as f64);
    functions.truncate(MAX_FUNCTIONS);
    Line {
        name: name.to_owned(),
        time,
        functions,
    }
}

/// Splits the difference in time between two profiles into lines. All functions without a group share one line.
pub fn account(a: &Profile, b: &Profile) -> Account {
    let mut groups = functions([a, b]);
    let none = groups.remove(&Group(NOT_GROUPED)).unwrap_or_default();
    let mut all: Vec<(Line, Vec<FunctionChange>)> = groups
        .into_iter()
        .map(|(Group(name), functions)| (line(name, functions.clone()), functions))
        .collect();
    let by_size = |line: &Line| std::cmp::Reverse(line.change().unsigned_abs());
    all.sort_by_key(|(line, _)| by_size(line));
    // Three lines are reserved: for waits, for functions without a group, and for the remaining groups.
    let rest: Vec<FunctionChange> = all
        .split_off(all.len().min(MAX_LINES - 3))
        .into_iter()
        .flat_map(|(_, functions)| functions)
        .collect();
    let mut lines: Vec<Line> = all.into_iter().map(|(line, _)| line).collect();
    lines.push(Line {
        time: [a.idle, b.idle],
        ..line(WAITS, waits([a, b]))
    });
    lines.sort_by_key(by_size);
    if !rest.is_empty() {
        lines.push(line(OTHERS, rest));
    }
    lines.push(line(NOT_GROUPED, none));
    Account {
        elapsed: [a.elapsed, b.elapsed],
        lines,
        locks: lock_changes([a, b]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Function;

    fn profile(idle: u64, functions: &[(&str, u64, u64)]) -> Profile {
        let functions: Vec<Function> = functions
            .iter()
            .map(|(name, instructions, calls)| Function {
                name: (*name).to_owned(),
                module: None,
                is_program: false,
                instructions: *instructions,
                calls: *calls,
            })
            .collect();
        let sum: u64 = functions.iter().map(|function| function.instructions).sum();
        Profile {
            elapsed: idle + sum,
            idle,
            functions,
            ..Profile::new()
        }
    }

    #[test]
    fn lines_add_up_to_the_difference_and_name_what_changed_most() {
        let a = profile(
            1000,
            &[
                ("shrink_folio_list", 500, 10),
                ("weird", 3, 1),
                ("LZ4_compress_fast", 70, 2),
            ],
        );
        let b = profile(
            400,
            &[
                ("shrink_folio_list", 900, 18),
                ("odd", 5, 1),
                ("LZ4_compress_fast", 70, 2),
            ],
        );
        let account = account(&a, &b);
        assert_eq!((account.change(), account.rest()), (-198, 0));
        let names: Vec<&str> = account
            .lines
            .iter()
            .map(|line| line.name.as_str())
            .collect();
        assert_eq!(names[..2], [WAITS, "reclaim: scanning lists"]);
        assert_eq!(account.lines[1].functions[0].calls, [10, 18]);
        let none = account
            .lines
            .iter()
            .find(|line| line.name == NOT_GROUPED)
            .unwrap();
        assert_eq!(none.time, [3, 5]);
    }

    #[test]
    fn there_are_never_more_than_eight_lines() {
        let many = [
            ("shrink_folio_list", 1, 1),
            ("handle_mm_fault", 2, 1),
            ("rmap_walk", 3, 1),
            ("swap_writepage", 4, 1),
            ("LZ4_compress_fast", 5, 1),
            ("compact_zone", 6, 1),
            ("get_page_from_freelist", 7, 1),
            ("workingset_refault", 8, 1),
            ("mem_cgroup_charge", 9, 1),
            ("_raw_spin_lock", 10, 1),
            ("odd", 11, 1),
        ];
        let account = account(&profile(0, &[]), &profile(7, &many));
        assert_eq!((account.lines.len(), account.rest()), (MAX_LINES, 0));
        let last = account.lines[MAX_LINES - 2..]
            .iter()
            .map(|line| &*line.name);
        assert_eq!(last.collect::<Vec<_>>(), [OTHERS, NOT_GROUPED]);
    }
}
