//! Changes a workload in one respect, or crosses two workloads.

use pagetide_reference::Rng;
use pagetide_workload::{
    Access, Amount, By, Count, Kind, PageSize, Phase, Process, Segment, Size, Workload,
};

use super::draw::{self, PASSES, PAUSES, WRITES, few, one_in, pick};
use super::parts::{machine, memory};
use crate::extent::Extent;
use crate::space::choice;

/// Upper bound of a number of accesses that is doubled, in percent of the pages of the accessed part.
const MAX_PASSES: u32 = 3200;

/// Changes one part of the workload. The result may be invalid, or equal to the original.
pub(super) fn change(extent: &Extent, workload: &mut Workload, rng: &mut Rng) {
    match rng.below(20) {
        0 => new_machine(extent, workload, rng),
        1 | 2 => setting(extent, workload, rng),
        3 => processes(extent, workload, rng),
        4 => groups(extent, workload, rng),
        5 => sizes(extent, workload, rng),
        6 => {
            let is_more = rng.below(3) > 0;
            for process in &mut workload.processes {
                counts(&mut process.phases, is_more);
            }
        }
        _ => {
            let context = workload.clone();
            let index = rng.below(workload.processes.len() as u64);
            let index = usize::try_from(index).unwrap_or(0);
            if let Some(process) = workload.processes.get_mut(index) {
                of_process(extent, &context, process, rng);
            }
        }
    }
}

/// Draws new memory, swap and devices; settings are kept.
fn new_machine(extent: &Extent, workload: &mut Workload, rng: &mut Rng) {
    let settings = std::mem::take(&mut machine(workload).settings);
    let mut drawn = draw::machine(extent, rng);
    drawn.settings = settings;
    workload.machine = Some(drawn);
}

fn setting(extent: &Extent, workload: &mut Workload, rng: &mut Rng) {
    let names: Vec<&String> = extent.settings.keys().collect();
    if let Some(name) = choice(&names, rng) {
        draw::set(extent, machine(workload), name, rng);
    }
}

/// Replaces the size of each segment by the next larger or smaller one of the extent. The larger one is more frequent,
/// because most workloads that come near a failure need more memory.
fn sizes(extent: &Extent, workload: &mut Workload, rng: &mut Rng) {
    let memory = memory(workload);
    let is_larger = rng.below(3) > 0;
    let segments = workload
        .processes
        .iter_mut()
        .flat_map(|process| &mut process.segments);
    for segment in segments {
        let of = |size: Size| size.of(memory);
        let own = of(segment.size);
        let sizes = extent.sizes.iter().copied();
        let next = if is_larger {
            sizes
                .filter(|size| of(*size) > own)
                .min_by_key(|size| of(*size))
        } else {
            sizes
                .filter(|size| of(*size) < own)
                .max_by_key(|size| of(*size))
        };
        segment.size = next.unwrap_or(segment.size);
    }
}

/// Doubles the number of accesses of all phases, or halves it.
fn counts(phases: &mut [Phase], is_more: bool) {
    for phase in phases {
        match phase {
            Phase::Access(access) => {
                if let Count::Passes(passes) = &mut access.count {
                    *passes = if is_more {
                        passes.saturating_mul(2).min(MAX_PASSES)
                    } else {
                        (*passes / 2).max(1)
                    };
                }
            }
            Phase::Repeat { phases, .. } | Phase::Fork { phases, .. } => counts(phases, is_more),
            _ => {}
        }
    }
}

/// Adds, copies or removes a process.
fn processes(extent: &Extent, workload: &mut Workload, rng: &mut Rng) {
    let has_room = workload.processes.len() < extent.processes;
    match rng.below(3) {
        0 if has_room => {
            let process = draw::process(extent, workload, rng);
            workload.processes.push(process);
        }
        1 if has_room => {
            let copy = choice(&workload.processes, rng).cloned();
            if let Some(mut copy) = copy {
                copy.name = draw::process_name(workload);
                workload.processes.push(copy);
            }
        }
        _ if workload.processes.len() > 1 => {
            let index = rng.below(workload.processes.len() as u64);
            workload
                .processes
                .remove(usize::try_from(index).unwrap_or(0));
        }
        _ => {}
    }
}

/// Adds, changes or removes a memory cgroup, or puts a process into one or takes it out.
fn groups(extent: &Extent, workload: &mut Workload, rng: &mut Rng) {
    let count = workload.groups.len();
    let index = usize::try_from(rng.below(count as u64)).unwrap_or(0);
    match rng.below(4) {
        0 if count < extent.groups => {
            let group = draw::group(extent, workload, rng);
            if let Some(process) = workload.processes.first_mut() {
                process.group = Some(group.name.clone());
            }
            workload.groups.push(group);
        }
        1 if count > 0 => {
            let group = workload.groups.remove(index);
            for process in &mut workload.processes {
                process.group.take_if(|name| *name == group.name);
            }
        }
        2 if count > 0 => draw::limit(extent, &mut workload.groups[index], rng),
        _ if count > 0 => {
            let name = workload.groups[index].name.clone();
            let process = usize::try_from(rng.below(workload.processes.len() as u64)).unwrap_or(0);
            let group = &mut workload.processes[process].group;
            *group = if group.is_some() { None } else { Some(name) };
        }
        _ => {}
    }
}

fn of_process(extent: &Extent, workload: &Workload, process: &mut Process, rng: &mut Rng) {
    match rng.below(16) {
        0 => process.count = u32::try_from(few(u64::from(extent.copies), rng)).unwrap_or(1),
        1 => {
            process.start = if one_in(2, rng) {
                pagetide_quantity::Nanos(0)
            } else {
                pick(&PAUSES, rng)
            };
        }
        2 if process.segments.len() < extent.segments => {
            let segment = draw::segment(extent, process, rng);
            process.phases.push(draw::fill(&segment.name));
            process.segments.push(segment);
        }
        3..6 => {
            let index = usize::try_from(rng.below(process.segments.len() as u64)).unwrap_or(0);
            if let Some(segment) = process.segments.get_mut(index) {
                of_segment(extent, segment, rng);
            }
        }
        6 | 7 if length(&process.phases) < extent.length => {
            let phase = draw::phase(extent, workload, process, 0, rng);
            let at = rng.below(process.phases.len() as u64 + 1);
            process
                .phases
                .insert(usize::try_from(at).unwrap_or(0), phase);
        }
        8 if process.phases.len() > 1 => {
            let at = rng.below(process.phases.len() as u64);
            process.phases.remove(usize::try_from(at).unwrap_or(0));
        }
        9 if process.phases.len() > 1 => {
            let count = process.phases.len() as u64;
            let (a, b) = (rng.below(count), rng.below(count));
            let at = |index| usize::try_from(index).unwrap_or(0);
            process.phases.swap(at(a), at(b));
        }
        10 => {
            let at = usize::try_from(rng.below(process.phases.len() as u64)).unwrap_or(0);
            let phase = draw::phase(extent, workload, process, 0, rng);
            if let Some(old) = process.phases.get_mut(at) {
                *old = phase;
            }
        }
        11 if extent.has("repeat") => {
            let at = usize::try_from(rng.below(process.phases.len() as u64)).unwrap_or(0);
            if let Some(old) = process.phases.get_mut(at) {
                let times = u32::try_from(1 + few(6, rng)).unwrap_or(2);
                let phases = vec![old.clone()];
                *old = Phase::Repeat { times, phases };
            }
        }
        _ => {
            let segments = process.segments.clone();
            let at = usize::try_from(rng.below(process.phases.len() as u64)).unwrap_or(0);
            if let Some(phase) = process.phases.get_mut(at) {
                of_phase(extent, &segments, phase, rng);
            }
        }
    }
}

fn of_segment(extent: &Extent, segment: &mut Segment, rng: &mut Rng) {
    match rng.below(8) {
        0..4 => segment.size = pick(&extent.sizes, rng),
        4 => {
            segment.kind = pick(&extent.kinds, rng);
            if segment.kind != Kind::Anonymous {
                segment.pages = PageSize::Small;
            }
            if segment.kind.is_file() {
                segment.locked = false;
            } else {
                (segment.file, segment.empty) = (None, false);
            }
            segment.empty &= segment.kind == Kind::File;
        }
        5 => segment.content = pick(&extent.contents, rng),
        6 if segment.kind == Kind::Anonymous && extent.huge_pages => {
            segment.pages = match segment.pages {
                PageSize::Small => PageSize::Huge,
                _ => PageSize::Small,
            };
        }
        6 if segment.kind == Kind::File => segment.empty = !segment.empty,
        7 if !segment.kind.is_file() && extent.locked => segment.locked = !segment.locked,
        _ if segment.kind.is_file() => {
            segment.file = segment.file.is_none().then(|| "f".to_owned());
        }
        _ => {}
    }
}

fn of_phase(extent: &Extent, segments: &[Segment], phase: &mut Phase, rng: &mut Rng) {
    match phase {
        Phase::Access(access) => of_access(extent, segments, access, rng),
        Phase::Fill { part, .. } => *part = draw::part(rng),
        Phase::Advise { advice, part, .. } => {
            if one_in(2, rng) {
                *part = draw::part(rng);
            } else if let Some(drawn) = choice(&extent.advice, rng) {
                *advice = *drawn;
            }
        }
        Phase::Repeat { times, phases } => {
            if one_in(3, rng) {
                *times = u32::try_from(1 + few(8, rng)).unwrap_or(2);
            } else {
                let at = usize::try_from(rng.below(phases.len() as u64)).unwrap_or(0);
                if let Some(inner) = phases.get_mut(at) {
                    of_phase(extent, segments, inner, rng);
                }
            }
        }
        Phase::Fork { count, phases } => {
            if one_in(3, rng) {
                *count = u32::try_from(few(8, rng)).unwrap_or(1);
            } else {
                let at = usize::try_from(rng.below(phases.len() as u64)).unwrap_or(0);
                if let Some(inner) = phases.get_mut(at) {
                    of_phase(extent, segments, inner, rng);
                }
            }
        }
        Phase::Pause { time } => *time = pick(&PAUSES, rng),
        Phase::Reclaim { amount, .. } => *amount = pick(&extent.sizes, rng),
        _ => {}
    }
}

fn of_access(extent: &Extent, segments: &[Segment], access: &mut Access, rng: &mut Rng) {
    match rng.below(9) {
        0 | 1 => {
            if let Some(pattern) = choice(&extent.patterns, rng) {
                access.pattern = pattern.clone();
            }
        }
        2 => access.writes = pick(&WRITES, rng),
        3 | 4 => access.count = Count::Passes(pick(&PASSES, rng)),
        5 => {
            access.amount = match access.amount {
                Amount::Word => Amount::Page,
                Amount::Page => Amount::Word,
            };
        }
        6 => access.part = draw::part(rng),
        7 => {
            access.pause = if access.pause.0 == 0 {
                pagetide_quantity::Nanos::from_millis(1 + rng.below(3))
            } else {
                pagetide_quantity::Nanos(0)
            };
        }
        _ => {
            if let Some(segment) = choice(segments, rng) {
                access.segment = segment.name.clone();
                if !segment.kind.is_file() {
                    access.by = By::Mapping;
                }
            }
        }
    }
}

/// Returns the number of phases at all depths.
fn length(phases: &[Phase]) -> usize {
    phases.iter().map(|phase| 1 + length(phase.inner())).sum()
}

/// Draws which of `a` and `b` comes first. Returns a workload with the first process of the first one and, each with
/// probability 1/2, the other processes of both, up to the extent's number. Its machine is that of the first, with some
/// settings of the second.
pub(super) fn cross(extent: &Extent, a: &Workload, b: &Workload, rng: &mut Rng) -> Workload {
    let (first, second) = if one_in(2, rng) { (a, b) } else { (b, a) };
    let mut child = Workload {
        time_limit: extent.time_limit,
        machine: first.machine.clone(),
        ..Workload::default()
    };
    let settings = second.machine.iter().flat_map(|machine| &machine.settings);
    for (name, value) in settings {
        if one_in(2, rng) {
            let settings = &mut machine(&mut child).settings;
            settings.insert(name.clone(), value.clone());
        }
    }
    for parent in [first, second] {
        for process in &parent.processes {
            let is_first = child.processes.is_empty();
            if child.processes.len() >= extent.processes || !(is_first || one_in(2, rng)) {
                continue;
            }
            let mut process = process.clone();
            process.name = draw::process_name(&child);
            if let Some(name) = &process.group {
                let group = parent.groups.iter().find(|group| group.name == *name);
                let has = child.groups.iter().any(|group| group.name == *name);
                match group {
                    Some(group) if !has => child.groups.push(group.clone()),
                    Some(_) => {}
                    None => process.group = None,
                }
            }
            child.processes.push(process);
        }
    }
    child
}
