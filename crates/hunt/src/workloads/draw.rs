//! Draws workloads at random.

use pagetide_quantity::{Bytes, Nanos};
use pagetide_reference::Rng;
use pagetide_workload::{
    Access, Advice, Amount, By, Count, Group, Kind, Limit, Machine, PageSize, Phase, Process,
    Segment, Size, Workload,
};

use crate::extent::{DEFAULT, Extent, MAX_GROUPS, MAX_PROCESSES, MAX_SEGMENTS};
use crate::space::choice;

/// Possible shares of accesses that write.
pub(super) const WRITES: [f64; 4] = [0.0, 1.0, 0.1, 0.5];
/// Possible numbers of accesses, in percent of the pages of the accessed part.
pub(super) const PASSES: [u32; 7] = [100, 25, 50, 200, 300, 400, 800];
/// Possible lengths of pauses. Every two seconds the kernel flushes the statistics of memory cgroups, which reclaim and
/// the detection of refaults use. So some failures show only after the longest of these pauses.
pub(super) const PAUSES: [Nanos; 5] = [
    Nanos::from_millis(10),
    Nanos::from_millis(1),
    Nanos::from_millis(50),
    Nanos::from_millis(200),
    Nanos::from_millis(2500),
];
/// Possible parts of segments: start and end, as fractions of the segment.
pub(super) const PARTS: [[f64; 2]; 5] = [
    [0.0, 0.5],
    [0.5, 1.0],
    [0.0, 0.25],
    [0.75, 1.0],
    [0.25, 0.75],
];
/// Names of processes, in order.
const PROCESSES: [&str; MAX_PROCESSES] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
];
/// Names of the segments of a process, in order.
const SEGMENTS: [&str; MAX_SEGMENTS] = ["s", "t", "u", "v", "w", "x", "y", "z"];
/// Names of memory cgroups, in order.
const GROUPS: [&str; MAX_GROUPS] = [
    "u", "v", "w", "x", "y", "z", "u2", "v2", "w2", "x2", "y2", "z2", "u3", "v3", "w3", "x3",
];

/// True with the probability of one in `of`.
pub(super) fn one_in(of: u64, rng: &mut Rng) -> bool {
    rng.below(of) == 0
}

/// Returns a number from 1 to `most`; small ones are more frequent.
pub(super) fn few(most: u64, rng: &mut Rng) -> u64 {
    let mut number = 1;
    while number < most && rng.below(2) == 0 {
        number += 1;
    }
    number
}

/// Returns one of the choices; the default value if there are none.
pub(super) fn pick<T: Clone + Default>(choices: &[T], rng: &mut Rng) -> T {
    choice(choices, rng).cloned().unwrap_or_default()
}

/// Returns the first name of `names` that is not taken; `z` if all are.
pub(super) fn free_name<'a>(
    mut is_taken: impl FnMut(&str) -> bool,
    names: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut names = names.into_iter();
    let found = names.find(|name| !is_taken(name));
    found.unwrap_or("z").to_owned()
}

/// Returns a name for a new process.
pub(super) fn process_name(workload: &Workload) -> String {
    free_name(|name| workload.process(name).is_some(), PROCESSES)
}

/// Returns a machine with drawn sizes, devices and settings.
pub(super) fn machine(extent: &Extent, rng: &mut Rng) -> Machine {
    let memory = pick(&extent.memory, rng);
    let mut machine = Machine {
        memory: Some(memory),
        swap: Some(pick(&extent.swap, rng)),
        swap_size: Some(Bytes(memory.bytes().0 * extent.swap_size)),
        files_on: Some(pick(&extent.files_on, rng)),
        fs: Some(pick(&extent.fs, rng)),
        ..Machine::default()
    };
    for (name, values) in &extent.settings {
        if one_in(2, rng) || !values.iter().any(|value| value == DEFAULT) {
            set(extent, &mut machine, name, rng);
        }
    }
    machine
}

/// Draws the value of a setting. If it is [`DEFAULT`], the setting is removed from the machine.
pub(super) fn set(extent: &Extent, machine: &mut Machine, name: &str, rng: &mut Rng) {
    let Some(values) = extent.settings.get(name) else {
        return;
    };
    let value = pick(values, rng);
    if value == DEFAULT {
        machine.settings.remove(name);
    } else {
        machine.settings.insert(name.to_owned(), value);
    }
}

/// Replaces the workload's machine by a drawn one, except for the settings that the workload has. Also sets the time
/// limit of the extent.
pub(super) fn on_machine(extent: &Extent, mut workload: Workload, rng: &mut Rng) -> Workload {
    let own = workload.machine.take().unwrap_or_default();
    let mut drawn = machine(extent, rng);
    drawn.settings.extend(own.settings);
    workload.machine = Some(drawn);
    workload.time_limit = extent.time_limit;
    workload
}

/// Draws a workload, which may be invalid.
pub(super) fn workload(extent: &Extent, rng: &mut Rng) -> Workload {
    let mut workload = Workload {
        time_limit: extent.time_limit,
        machine: Some(machine(extent, rng)),
        ..Workload::default()
    };
    if extent.groups > 0 && one_in(3, rng) {
        for _ in 0..few(extent.groups as u64, rng) {
            let group = group(extent, &workload, rng);
            workload.groups.push(group);
        }
    }
    for _ in 0..few(extent.processes as u64, rng) {
        let process = process(extent, &workload, rng);
        workload.processes.push(process);
    }
    workload
}

/// Returns a workload that is always valid: it fills half of memory.
pub(super) fn simple(extent: &Extent, rng: &mut Rng) -> Workload {
    let half = Size::percent(50);
    Workload {
        time_limit: extent.time_limit,
        machine: Some(machine(extent, rng)),
        processes: vec![Process {
            name: "a".to_owned(),
            count: 1,
            segments: vec![Segment::new("s", Kind::Anonymous, half)],
            phases: vec![fill("s")],
            ..Process::default()
        }],
        ..Workload::default()
    }
}

/// Returns a phase that fills a whole segment.
pub(super) fn fill(segment: &str) -> Phase {
    Phase::Fill {
        segment: segment.to_owned(),
        by: By::Mapping,
        part: None,
    }
}

/// Draws a memory cgroup with at least one limit or protection.
pub(super) fn group(extent: &Extent, workload: &Workload, rng: &mut Rng) -> Group {
    let is_taken = |name: &str| workload.groups.iter().any(|group| group.name == name);
    let mut group = Group {
        name: free_name(is_taken, GROUPS),
        each: one_in(6, rng),
        ..Group::default()
    };
    limit(extent, &mut group, rng);
    while one_in(2, rng) {
        limit(extent, &mut group, rng);
    }
    group
}

/// Draws one limit or protection of a memory cgroup.
pub(super) fn limit(extent: &Extent, group: &mut Group, rng: &mut Rng) {
    let share = pick(&extent.sizes, rng);
    let size = Limit::Size(share);
    match rng.below(6) {
        0 | 1 => group.max = size,
        2 => group.high = size,
        3 => group.low = Some(share),
        4 => group.min = Some(share),
        _ => group.swap_max = size,
    }
}

/// Draws a process, which in most cases fills its segments before other phases.
pub(super) fn process(extent: &Extent, workload: &Workload, rng: &mut Rng) -> Process {
    let mut process = Process {
        name: process_name(workload),
        count: 1,
        ..Process::default()
    };
    if one_in(3, rng) {
        process.count = u32::try_from(few(u64::from(extent.copies), rng)).unwrap_or(1);
    }
    if let Some(group) = choice(&workload.groups, rng).filter(|_| rng.below(3) > 0) {
        process.group = Some(group.name.clone());
    }
    if one_in(5, rng) {
        process.start = pick(&PAUSES, rng);
    }
    for _ in 0..few(extent.segments as u64, rng) {
        let segment = segment(extent, &process, rng);
        if extent.has("fill") && rng.below(4) > 0 {
            process.phases.push(fill(&segment.name));
        }
        process.segments.push(segment);
    }
    let most = extent.length.saturating_sub(process.phases.len()).max(1);
    for _ in 0..few(most as u64, rng) {
        let phase = phase(extent, workload, &process, 0, rng);
        process.phases.push(phase);
    }
    process
}

/// Draws a segment.
pub(super) fn segment(extent: &Extent, process: &Process, rng: &mut Rng) -> Segment {
    let name = free_name(|name| process.segment(name).is_some(), SEGMENTS);
    let kind = pick(&extent.kinds, rng);
    let mut segment = Segment::new(&name, kind, pick(&extent.sizes, rng));
    if one_in(2, rng) {
        segment.content = pick(&extent.contents, rng);
    }
    if kind == Kind::Anonymous && extent.huge_pages && one_in(5, rng) {
        segment.pages = PageSize::Huge;
    }
    if extent.locked && !kind.is_file() && one_in(12, rng) {
        segment.locked = true;
    }
    if kind.is_file() && one_in(3, rng) {
        segment.file = Some("f".to_owned());
    }
    if kind == Kind::File && one_in(3, rng) {
        segment.empty = true;
    }
    segment
}

/// Draws a phase of a process; `depth` is the number of phases around it.
pub(super) fn phase(
    extent: &Extent,
    workload: &Workload,
    process: &Process,
    depth: usize,
    rng: &mut Rng,
) -> Phase {
    let Some(segment) = choice(&process.segments, rng) else {
        return Phase::Pause {
            time: pick(&PAUSES, rng),
        };
    };
    let inner = |rng: &mut Rng| -> Vec<Phase> {
        (0..few(3, rng))
            .map(|_| phase(extent, workload, process, depth + 1, rng))
            .collect()
    };
    // Reclaim has to predict accesses, so at least half of all phases are accesses.
    let word = match choice(&extent.phases, rng) {
        Some(word) if !extent.has("access") || rng.below(2) == 0 => word.as_str(),
        _ => "access",
    };
    match word {
        "fill" => Phase::Fill {
            segment: segment.name.clone(),
            by: by(segment, rng),
            part: part(rng),
        },
        "copy" => match process.segments.iter().find(|to| to.kind.is_file()) {
            Some(to) if to.name != segment.name => Phase::Copy {
                from: segment.name.clone(),
                to: to.name.clone(),
            },
            _ => access(extent, segment, rng),
        },
        "sync" if segment.kind == Kind::File => Phase::Sync {
            segment: segment.name.clone(),
        },
        "advise" if !extent.advice.is_empty() => Phase::Advise {
            segment: segment.name.clone(),
            advice: choice(&extent.advice, rng).copied().unwrap_or(Advice::Cold),
            part: part(rng),
        },
        "fork" if depth < 2 => Phase::Fork {
            count: u32::try_from(few(4, rng)).unwrap_or(1),
            phases: inner(rng),
        },
        "repeat" if depth < 2 => Phase::Repeat {
            times: u32::try_from(1 + few(6, rng)).unwrap_or(2),
            phases: inner(rng),
        },
        "pause" => Phase::Pause {
            time: pick(&PAUSES, rng),
        },
        "reclaim" if !workload.groups.is_empty() => Phase::Reclaim {
            group: choice(&workload.groups, rng)
                .map(|group| group.name.clone())
                .unwrap_or_default(),
            amount: pick(&extent.sizes, rng),
        },
        _ => access(extent, segment, rng),
    }
}

/// Draws a phase of accesses.
pub(super) fn access(extent: &Extent, segment: &Segment, rng: &mut Rng) -> Phase {
    let mut access = Access::new(&segment.name);
    if let Some(pattern) = choice(&extent.patterns, rng) {
        access.pattern = pattern.clone();
    }
    access.writes = pick(&WRITES, rng);
    access.count = Count::Passes(pick(&PASSES, rng));
    if one_in(4, rng) {
        access.amount = Amount::Page;
    }
    access.by = by(segment, rng);
    if one_in(5, rng) {
        access.pause = Nanos::from_millis(1 + rng.below(3));
    }
    access.part = part(rng);
    Phase::Access(access)
}

fn by(segment: &Segment, rng: &mut Rng) -> By {
    if segment.kind.is_file() && one_in(2, rng) {
        By::Call
    } else {
        By::Mapping
    }
}

/// Draws a part of a segment; mostly `None`, which is the whole segment.
pub(super) fn part(rng: &mut Rng) -> Option<[f64; 2]> {
    one_in(5, rng).then(|| pick(&PARTS, rng))
}
