//! Renders a profile as tables: time by group, by task, by wait and by function.

use std::collections::BTreeMap;

use pagetide_profile::{Group, NO_SYMBOL, Profile, USER, group_of};
use pagetide_quantity::Unit;

use crate::draw::clean::clean;
use crate::draw::quantity::{Scale, count, number, show};
use crate::draw::{Align, Cell, Grid, Ink, TextStyle};

/// Maximum length of a function's name, in terminal columns.
const NAME_CHARS: usize = 44;

/// Renders a table of names, each with its time and its share of `whole`. The order is that of `rows`.
fn table(head: &str, rows: &[(String, u64)], whole: u64, text_style: &TextStyle) -> String {
    let scale = Scale::of_all(Unit::Nanos, rows.iter().map(|(_, time)| number(*time)));
    let mut grid = Grid::new(Align::names_and_numbers(2));
    grid.row([
        Cell::new(Ink::Strong, head),
        Cell::new(Ink::Faint, "time"),
        Cell::new(Ink::Faint, "share"),
    ]);
    for (name, time) in rows {
        grid.row([
            Cell::plain(clean(name, NAME_CHARS, text_style.ascii)),
            Cell::plain(scale.show(number(*time), text_style.ascii)),
            Cell::plain(share(*time, whole)),
        ]);
    }
    grid.draw(text_style, 0)
}

/// Returns a sentence about code of programs that has no function names; `None` if all code has names, or if no program
/// ran.
fn nameless(profile: &Profile, text_style: &TextStyle) -> Option<String> {
    let programs = || profile.functions.iter().filter(|one| one.is_program);
    programs().next()?;
    let time = |sum: u64| show(Unit::Nanos, number(sum), text_style.ascii);
    let mut parts = Vec::new();
    for file in programs().filter(|one| one.name == NO_SYMBOL) {
        let name = clean(
            file.module.as_deref().unwrap_or_default(),
            NAME_CHARS,
            text_style.ascii,
        );
        parts.push(format!(
            "{} are code without symbols in {name}",
            time(file.instructions)
        ));
    }
    let rest = profile.functions.iter().find(|one| one.name == USER);
    if let Some(rest) = rest {
        parts.push(format!(
            "{} of user code are in no file of the program's root (made by a JIT compiler, the vDSO, or the guest's own program)",
            time(rest.instructions)
        ));
    }
    (!parts.is_empty()).then(|| format!("Without names: {}.", parts.join("; ")))
}

/// Renders a table of the waits by cause and waiting function, longest first.
fn waits(profile: &Profile, top: usize, text_style: &TextStyle) -> String {
    let rows = profile.waits_by_name();
    let scale = Scale::of_all(Unit::Nanos, rows.iter().map(|(_, time, _)| number(*time)));
    let mut grid = Grid::new(Align::names_and_numbers(4));
    grid.row([
        Cell::new(Ink::Strong, "wait"),
        Cell::new(Ink::Faint, "time"),
        Cell::new(Ink::Faint, "share"),
        Cell::new(Ink::Faint, "waits"),
        Cell::new(Ink::Faint, "each"),
    ]);
    for (name, time, count_of) in rows.iter().take(top) {
        let each = number(*time) / number((*count_of).max(1));
        grid.row([
            Cell::plain(clean(name, NAME_CHARS, text_style.ascii)),
            Cell::plain(scale.show(number(*time), text_style.ascii)),
            Cell::plain(share(*time, profile.elapsed)),
            Cell::plain(count(*count_of)),
            Cell::plain(show(Unit::Nanos, each, text_style.ascii)),
        ]);
    }
    grid.draw(text_style, 0)
}

/// Renders a table of the waits for locks by the function that wanted the lock and by its holder, longest first.
fn locks(profile: &Profile, top: usize, text_style: &TextStyle) -> String {
    let rows = profile.locks_by_holder();
    let scale = Scale::of_all(
        Unit::Nanos,
        rows.iter().map(|(.., [time, ..])| number(*time)),
    );
    let mut grid = Grid::new([
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
    ]);
    grid.row([
        Cell::new(Ink::Strong, "waits for the lock of"),
        Cell::new(Ink::Strong, "held by"),
        Cell::new(Ink::Faint, "which was in"),
        Cell::new(Ink::Faint, "time"),
        Cell::new(Ink::Faint, "of it idle"),
        Cell::new(Ink::Faint, "waits"),
    ]);
    for (taker, holder, [time, idle, waits]) in rows.iter().take(top) {
        let name = |name: &str| Cell::plain(clean(name, NAME_CHARS, text_style.ascii));
        let (by, was_in) = match holder {
            Some(holder) => (holder.name(), holder.was_in.clone()),
            None => ("holder not known".to_owned(), String::new()),
        };
        let show = |time: u64| Cell::plain(scale.show(number(time), text_style.ascii));
        grid.row([
            name(taker),
            name(&by),
            name(&was_in),
            show(*time),
            show(*idle),
            Cell::plain(count(*waits)),
        ]);
    }
    grid.draw(text_style, 0)
}

/// Renders a table of the time that tasks of the workload spent in the run queue, by the task that ran.
fn queue(profile: &Profile, text_style: &TextStyle) -> String {
    let rows = &profile.queue;
    let scale = Scale::of_all(Unit::Nanos, rows.iter().map(|row| number(row.time)));
    let mut grid = Grid::new(Align::names_and_numbers(2));
    grid.row([
        Cell::new(Ink::Strong, "in the run queue behind"),
        Cell::new(Ink::Faint, "time"),
        Cell::new(Ink::Faint, "times"),
    ]);
    for row in rows {
        grid.row([
            Cell::plain(clean(&row.behind, NAME_CHARS, text_style.ascii)),
            Cell::plain(scale.show(number(row.time), text_style.ascii)),
            Cell::plain(count(row.count)),
        ]);
    }
    grid.draw(text_style, 0)
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * number(part) / number(whole.max(1)))
}

/// Returns the sums with their names, largest first. Sums that are zero are left out.
fn sorted(sums: impl IntoIterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut rows: Vec<(String, u64)> = sums.into_iter().filter(|(_, sum)| *sum > 0).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows
}

/// Renders the tables of a profile. `proof` is a sentence on whether the profile is exact. `top` is the maximum number
/// of functions, and of waits, to list.
pub fn profile(profile: &Profile, proof: &str, top: usize, text_style: &TextStyle) -> String {
    let whole = profile.elapsed;
    let mut out = String::new();
    put!(
        out,
        "{}: {} instructions, and {} ns of waiting in which no task ran\n{proof}\n\n",
        show(Unit::Nanos, number(whole), text_style.ascii),
        count(profile.instructions()),
        count(profile.idle)
    );
    let mut groups: BTreeMap<Group, u64> = BTreeMap::new();
    for function in &profile.functions {
        *groups.entry(group_of(function)).or_default() += function.instructions;
    }
    let groups = groups
        .into_iter()
        .map(|(Group(name), sum)| (name.to_owned(), sum));
    let groups = sorted(groups.chain([("waits".to_owned(), profile.idle)]));
    out.push_str(&table("group", &groups, whole, text_style));
    let tasks = profile.tasks.iter().cloned().zip(profile.of_tasks());
    put!(out, "\n");
    out.push_str(&table("task", &sorted(tasks), whole, text_style));
    put!(out, "\n");
    if !profile.waits.is_empty() {
        out.push_str(&waits(profile, top, text_style));
        put!(out, "\n");
    }
    if !profile.locks.is_empty() {
        out.push_str(&locks(profile, top, text_style));
        put!(out, "\n");
    }
    if !profile.queue.is_empty() {
        out.push_str(&queue(profile, text_style));
        put!(out, "\n");
    }
    if profile.is_without_list() {
        out.push_str(
            "This kernel has no list of its functions (CONFIG_KALLSYMS), or hides it (kernel.kptr_restrict=2), so its code \
             has no names, and tasks, call stacks and waits are not told apart.\n\n",
        );
    }
    if let Some(text) = nameless(profile, text_style) {
        put!(out, "{text}\n\n");
    }
    let listed = &profile.functions[..top.min(profile.functions.len())];
    let scale = Scale::of_all(
        Unit::Nanos,
        listed.iter().map(|one| number(one.instructions)),
    );
    let mut grid = Grid::new(Align::names_and_numbers(4));
    grid.row([
        Cell::new(Ink::Strong, "function"),
        Cell::new(Ink::Faint, "time"),
        Cell::new(Ink::Faint, "share"),
        Cell::new(Ink::Faint, "calls"),
        Cell::new(Ink::Faint, "each"),
    ]);
    for function in listed {
        let name = match &function.module {
            Some(module) => format!("{} [{module}]", function.name),
            None => function.name.clone(),
        };
        let each = match function.calls {
            0 => String::new(),
            calls => format!("{:.1}", number(function.instructions) / number(calls)),
        };
        grid.row([
            Cell::plain(clean(&name, NAME_CHARS, text_style.ascii)),
            Cell::plain(scale.show(number(function.instructions), text_style.ascii)),
            Cell::plain(share(function.instructions, whole)),
            Cell::plain(count(function.calls)),
            Cell::plain(each),
        ]);
    }
    out.push_str(&grid.draw(text_style, 0));
    out
}
