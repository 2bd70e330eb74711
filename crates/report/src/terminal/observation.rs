//! An observed trial: the reclaim statistics by row with cross-checks, latencies, time by part, block I/O, and the
//! effect of tracing itself.

use std::collections::BTreeMap;

use pagetide_compare::Observation;
use pagetide_probe::block::Direction;
use pagetide_probe::meaning::{
    CrossCheck, PairKind, Part, Parts, Reclaimer, Row, Section, TaskTime, Value, Waits,
};
use pagetide_quantity::Unit;
use pagetide_record::{ArenaKind, Subject};
use pagetide_store::short;

use crate::draw::clean::wrap;
use crate::draw::quantity::{self, count, signed};
use crate::draw::{Align, Cell, Grid, Ink, TextStyle, clean};

/// Sections of the table with their titles.
const SECTIONS: [(Section, &str); 4] = [
    (Section::Reclaim, "Reclaim"),
    (
        Section::Memcg,
        "Memory cgroups, and reclaim of all kinds together",
    ),
    (Section::Compaction, "Compaction and migration"),
    (
        Section::Memory,
        "Swap, faults and refaults, as vmstat counts them",
    ),
];
/// Maximum number of counters shown for the effect of tracing.
const MAX_EFFECTS: usize = 12;
/// Counters that changed by less than this percentage through tracing are not shown.
const EFFECT_PERCENT: f64 = 1.0;
/// Maximum number of places shown where processes slept, for each part of the time.
const MAX_SITES: usize = 5;
/// Maximum number of processes shown individually; if there are more, all but the main process are added up.
const MAX_TASKS: usize = 4;

/// Renders the whole observation of a trial as text.
pub fn observation(seen: &Observation, subject: &Subject, text_style: &TextStyle) -> String {
    let mut page = Page {
        text_style: *text_style,
        out: String::new(),
    };
    let heads = format!(
        "{}, variant {}, seed {}",
        subject.cell_label(),
        subject.variant.name,
        subject.seed
    );
    page.line(Ink::Strong, &heads);
    let lists = if seen.table.multi_generational {
        "the multi-generational LRU"
    } else {
        "active and inactive lists"
    };
    page.line(
        Ink::Faint,
        &format!("observed in record {}, with {lists}", short(&seen.record)),
    );
    let is_host = subject.arena.kind == ArenaKind::Host;
    if is_host {
        page.line(
            Ink::Faint,
            "only the workload's processes and its swap device were traced, so nothing is compared with the counters of the whole \
             machine, and reclaim by kswapd is left out",
        );
    }
    page.losses(seen);
    for (section, title) in SECTIONS {
        // These rows come from the machine's vmstat alone.
        if !(is_host && section == Section::Memory) {
            page.section(seen, section, title);
        }
    }
    page.pairs(seen);
    page.times(seen);
    page.blocks(seen);
    // Two trials on the running kernel differ by themselves.
    if !is_host {
        page.effect(seen);
    }
    page.out
}

struct Page {
    text_style: TextStyle,
    out: String,
}

impl Page {
    fn line(&mut self, ink: Ink, text: &str) {
        let text = clean(text, 400, self.text_style.ascii);
        for line in wrap(&text, self.text_style.width, self.text_style.ascii) {
            self.out.push_str(&self.text_style.ink(ink, &line));
            self.out.push('\n');
        }
    }

    fn title(&mut self, text: &str) {
        self.out.push('\n');
        self.line(Ink::Strong, text);
    }

    fn grid(&mut self, grid: &Grid) {
        self.out.push_str(&grid.draw(&self.text_style, 2));
    }

    fn losses(&mut self, seen: &Observation) {
        let losses = &seen.table.losses;
        if losses.any() || seen.table.undecoded > 0 {
            self.line(
                Ink::Broken,
                &format!(
                    "{} events were lost, {} gaps of unknown size, {} sub-buffers and {} events damaged: rows they touch have no value",
                    count(losses.events),
                    losses.gaps_unknown,
                    losses.damaged,
                    seen.table.undecoded
                ),
            );
        }
    }

    fn section(&mut self, seen: &Observation, section: Section, title: &str) {
        let mut notes: Vec<String> = Vec::new();
        let mut grid = Grid::new(Align::names_and_numbers(2).chain([Align::Left]));
        grid.row(["", "traced", "vmstat", ""].map(|head| Cell::new(Ink::Faint, head)));
        let rows = seen.table.rows.iter();
        for row in rows.filter(|row| row.section == section) {
            let (vmstat, mark) = row
                .check
                .as_ref()
                .map_or((Cell::empty(), Cell::empty()), |check| self.check(check));
            let mut mark = mark;
            let why = reason(row);
            if let Some(why) = why {
                let place = notes
                    .iter()
                    .position(|note| *note == why)
                    .unwrap_or_else(|| {
                        notes.push(why);
                        notes.len() - 1
                    });
                mark = mark.and(Ink::Faint, format!(" [{}]", place + 1));
            }
            let name = clean(&row.name, 100, self.text_style.ascii);
            grid.row([Cell::plain(name), self.value(&row.value), vmstat, mark]);
        }
        self.title(title);
        self.grid(&grid);
        for (place, note) in notes.iter().enumerate() {
            self.line(Ink::Faint, &format!("  [{}] {note}", place + 1));
        }
    }

    fn value(&self, value: &Value) -> Cell {
        match value {
            Value::Count(number) => Cell::plain(count(*number)),
            Value::Time(time) => Cell::plain(self.time(time.0)),
            Value::Percent(percent) => Cell::plain(format!("{percent:.2} %")),
            Value::NotOnThisKernel(_) => Cell::new(Ink::Faint, "not on this kernel"),
            Value::NotObserved(_) => Cell::new(Ink::Faint, "not observed"),
            Value::Invalid(_) => Cell::new(Ink::Broken, "events lost"),
            Value::Undefined => Cell::new(Ink::Faint, "of nothing"),
        }
    }

    fn check(&self, check: &CrossCheck) -> (Cell, Cell) {
        let ink = if check.disagrees {
            Ink::Unsure
        } else {
            Ink::Faint
        };
        let difference = match check.difference {
            Some(percent) if check.disagrees => {
                format!("differs by {} %", signed(percent, 1, self.text_style.ascii))
            }
            None if check.disagrees => "vmstat counted none".to_owned(),
            _ => "agrees".to_owned(),
        };
        // The counter may have been compared with another number than the row's value. If the two disagree, this number
        // is shown.
        let of = format!("{difference} ({})", count(check.traced));
        let text = if check.disagrees { of } else { difference };
        (Cell::plain(count(check.counter)), Cell::new(ink, text))
    }

    fn time(&self, nanos: u64) -> String {
        quantity::show(Unit::Nanos, nanos as f64, self.text_style.ascii)
    }

    fn pairs(&mut self, seen: &Observation) {
        if seen.table.pairs.is_empty() {
            return;
        }
        let mut grid = Grid::new([Align::Left].into_iter().chain([Align::Right; 7]));
        let heads = [
            "", "times", "total", "mean", "p50", "p99", "most", "unpaired",
        ];
        grid.row(heads.map(|head| Cell::new(Ink::Faint, head)));
        for pair in &seen.table.pairs {
            let latency = &pair.latency;
            let mean = quantity::show(Unit::Nanos, latency.mean, self.text_style.ascii);
            let unpaired = pair.unmatched_begins + pair.unmatched_ends;
            grid.row(
                [
                    pair_name(pair.kind).to_owned(),
                    count(latency.count),
                    self.time(latency.total),
                    mean,
                    self.time(latency.p50),
                    self.time(latency.p99),
                    self.time(latency.max),
                    count(unpaired),
                ]
                .map(Cell::plain),
            );
        }
        self.title("How long each took");
        self.grid(&grid);
    }

    fn times(&mut self, seen: &Observation) {
        if seen.tasks.is_empty() {
            return;
        }
        let mut grid = Grid::new([Align::Left].into_iter().chain([Align::Right; 11]));
        let mut columns: Vec<(String, u64, Parts)> = Vec::new();
        let name = |task: &TaskTime| format!("process {}", task.pid);
        if seen.tasks.len() <= MAX_TASKS {
            columns.extend(
                seen.tasks
                    .iter()
                    .map(|task| (name(task), task.elapsed.0, task.parts)),
            );
        } else {
            let (main, others) = (&seen.tasks[0], &seen.tasks[1..]);
            columns.push((name(main), main.elapsed.0, main.parts));
            let sum = others
                .iter()
                .fold(Parts::default(), |sum, task| sum.plus(&task.parts));
            let elapsed = others.iter().map(|task| task.elapsed.0).sum();
            columns.push((others_together(others.len()), elapsed, sum));
        }
        let heads =
            std::iter::once(String::new()).chain(columns.iter().map(|(name, _, _)| name.clone()));
        grid.row(heads.map(|head| Cell::new(Ink::Faint, head)));
        for part in Part::ALL {
            if columns.iter().all(|(_, _, parts)| parts.get(part).0 == 0) {
                continue;
            }
            let cells = columns.iter().map(|(_, elapsed, parts)| {
                let time = parts.get(part).0;
                let share = 100.0 * time as f64 / (*elapsed).max(1) as f64;
                Cell::plain(self.time(time)).and(Ink::Faint, format!(" {share:5.1} %"))
            });
            grid.row(std::iter::once(Cell::plain(part_name(part))).chain(cells));
        }
        let cells = columns
            .iter()
            .map(|(_, elapsed, _)| Cell::plain(self.time(*elapsed)).and(Ink::Faint, "  100   %"));
        grid.row(std::iter::once(Cell::new(Ink::Strong, "elapsed")).chain(cells));
        self.title("Where the time of the workload's processes went");
        self.grid(&grid);
        self.waits(seen);
    }

    /// Renders number and duration of sleeps, which show whether there were a few long waits or many short ones.
    fn waits(&mut self, seen: &Observation) {
        for part in [Part::ReclaimWait, Part::CompactionWait, Part::IoWait] {
            let (mut waits, mut time) = (Waits::default(), 0);
            for task in &seen.tasks {
                let of_task = task.waits.get(&part).copied().unwrap_or_default();
                waits.count += of_task.count;
                waits.longest = waits.longest.max(of_task.longest);
                time += task.parts.get(part).0;
            }
            if waits.count > 0 {
                let text = format!(
                    "  {}: {} waits, {} a wait, the longest {}",
                    part_name(part),
                    count(waits.count),
                    self.time(time / waits.count),
                    self.time(waits.longest.0),
                );
                self.line(Ink::Faint, &text);
                self.sites(seen, part);
            }
        }
    }

    /// Renders the places where processes slept in one part of the time; the place with the longest total comes first.
    fn sites(&mut self, seen: &Observation, part: Part) {
        let mut by_site: BTreeMap<Option<String>, (u64, u64, u64)> = BTreeMap::new();
        let slept = seen.tasks.iter().flat_map(|task| &task.slept);
        for slept in slept.filter(|slept| slept.part == part) {
            let site = slept.site.as_ref().map(ToString::to_string);
            let (waits, time, longest) = by_site.entry(site).or_default();
            *waits += slept.count;
            *time += slept.time.0;
            *longest = slept.longest.0.max(*longest);
        }
        let mut sites: Vec<_> = by_site.into_iter().collect();
        sites.sort_by_key(|(_, (_, time, _))| std::cmp::Reverse(*time));
        let more = sites.len().saturating_sub(MAX_SITES);
        for (site, (waits, time, longest)) in sites.into_iter().take(MAX_SITES) {
            let place = match (site, &seen.no_stacks) {
                (Some(site), _) => format!("in {site}"),
                (None, Some(why)) => format!("cause not recorded, for {why}"),
                (None, None) => "cause not recorded".to_owned(),
            };
            let text = format!(
                "    {place}: {} waits, {} a wait, the longest {}",
                count(waits),
                self.time(time / waits.max(1)),
                self.time(longest),
            );
            self.line(Ink::Faint, &text);
        }
        if more > 0 {
            self.line(
                Ink::Faint,
                &format!("    and in {more} more places, see --json"),
            );
        }
    }

    fn blocks(&mut self, seen: &Observation) {
        if seen.blocks.devices.is_empty() {
            return;
        }
        let mut grid = Grid::new([Align::Left].into_iter().chain([Align::Right; 6]));
        let heads = [
            "device",
            "",
            "requests",
            "bytes",
            "mean size",
            "sequential",
            "p50",
        ];
        grid.row(heads.map(|head| Cell::new(Ink::Faint, head)));
        for device in &seen.blocks.devices {
            for (name, sums) in [
                ("reads", &device.sums.reads),
                ("writes", &device.sums.writes),
            ] {
                if sums.requests > 0 {
                    self.direction(&mut grid, &device.device.to_string(), name, sums);
                }
            }
        }
        self.title("Block I/O");
        self.grid(&grid);
        for device in &seen.blocks.devices {
            let cost = &device.modelled;
            let text = format!(
                "  {}: on a disk with seeks (2009) the same requests would have taken {}, {} of it in {} seeks",
                device.device,
                self.time(cost.total().0),
                self.time(cost.seek.0),
                count(cost.seeks)
            );
            self.line(Ink::Faint, &text);
        }
    }

    fn direction(&self, grid: &mut Grid, device: &str, name: &str, sums: &Direction) {
        let bytes = |value: f64| quantity::show(Unit::Bytes, value, self.text_style.ascii);
        let sequential = sums.sequentiality().unwrap_or(0.0);
        grid.row(
            [
                device.to_owned(),
                name.to_owned(),
                count(sums.requests),
                bytes(sums.bytes.0 as f64),
                bytes(sums.mean_size().unwrap_or(0.0)),
                quantity::show(Unit::Share, sequential, self.text_style.ascii),
                self.time(sums.latency.quantile(0.5)),
            ]
            .map(Cell::plain),
        );
    }

    fn effect(&mut self, seen: &Observation) {
        let Some(timed) = seen.timed_elapsed else {
            return;
        };
        self.title("What observing changed (the same trial timed and observed)");
        let mut grid = Grid::new(Align::names_and_numbers(3));
        let heads = ["", "timed", "observed", "difference"];
        grid.row(heads.map(|head| Cell::new(Ink::Faint, head)));
        let percent = |percent: Option<f64>| {
            percent.map_or_else(String::new, |percent| {
                format!("{} %", signed(percent, 1, self.text_style.ascii))
            })
        };
        let (before, after) = (timed.0 as f64, seen.elapsed.0 as f64);
        let slower = (before > 0.0).then(|| 100.0 * (after / before - 1.0));
        grid.row(
            [
                "elapsed".to_owned(),
                self.time(timed.0),
                self.time(seen.elapsed.0),
                percent(slower),
            ]
            .map(Cell::plain),
        );
        let worth =
            |percent: Option<f64>| percent.is_none_or(|percent| percent.abs() >= EFFECT_PERCENT);
        let all = seen.effect.iter().filter(|effect| worth(effect.percent));
        let more = all.clone().count().saturating_sub(MAX_EFFECTS);
        for effect in all.take(MAX_EFFECTS) {
            let number = |value: i64| signed(value as f64, 0, self.text_style.ascii);
            grid.row(
                [
                    clean(&effect.key, 40, self.text_style.ascii),
                    number(effect.timed),
                    number(effect.observed),
                    percent(effect.percent),
                ]
                .map(Cell::plain),
            );
        }
        self.grid(&grid);
        if more > 0 {
            self.line(
                Ink::Faint,
                &format!("  and {more} more counters of vmstat by less, see --json"),
            );
        }
    }
}

/// Returns why a row has no value, else why trace and vmstat disagree, else the row's note, else that the reason for a
/// disagreement is not known; `None` if none of these applies.
fn reason(row: &Row) -> Option<String> {
    match &row.value {
        Value::NotOnThisKernel(why) | Value::NotObserved(why) | Value::Invalid(why) => {
            return Some(why.clone());
        }
        _ => {}
    }
    let checked = row.check.as_ref().and_then(|check| check.reason.clone());
    let unexplained = row
        .check
        .as_ref()
        .is_some_and(|check| check.disagrees && check.reason.is_none());
    checked
        .or_else(|| row.note.clone())
        .or_else(|| unexplained.then(|| "the reason is not known".to_owned()))
}

fn pair_name(kind: PairKind) -> &'static str {
    match kind {
        PairKind::Reclaim(Reclaimer::Direct) => "direct reclaim",
        PairKind::Reclaim(Reclaimer::Memcg) => "memory cgroup reclaim",
        PairKind::Reclaim(Reclaimer::Softlimit) => "soft-limit reclaim",
        PairKind::Reclaim(Reclaimer::Node) => "node reclaim",
        PairKind::Reclaim(Reclaimer::Kswapd) => "kswapd",
        PairKind::Reclaim(Reclaimer::Unknown) => "reclaim of unknown origin",
        PairKind::Compaction => "compaction of a zone",
    }
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::Compute => "computing (user mode)",
        Part::Fault => "faults and system calls",
        Part::Reclaim => "direct reclaim",
        Part::ReclaimWait => "blocked within reclaim",
        Part::Compaction => "compaction",
        Part::CompactionWait => "blocked within compaction",
        Part::IoWait => "blocked elsewhere (I/O, locks)",
        Part::DirtyLimit => "held by the dirty limits",
        Part::RunQueue => "waiting for the CPU",
        Part::Sleep => "asleep of its own will",
        Part::Unexplained => "unexplained",
    }
}

/// Returns the label for all processes except the main one.
pub(crate) fn others_together(number: usize) -> String {
    match number {
        1 => "one other".to_owned(),
        _ => format!("{number} others together"),
    }
}
