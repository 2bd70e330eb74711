//! Simplifications of a workload: each leaves out one thing, or replaces it by something simpler.

use pagetide_quantity::{Bytes, Nanos};
use pagetide_reference::Pattern;
use pagetide_workload::{
    Access, Amount, By, Count, Group, Kind, Limit, PageSize, Phase, Process, Segment, Size,
    Workload,
};

use super::parts::machine;
use crate::extent::{DEFAULT, Extent};

/// Returns all simplifications of a workload, the largest first. Some may be invalid.
pub(super) fn simpler(extent: &Extent, workload: &Workload) -> Vec<Workload> {
    let mut all = Vec::new();
    for index in 0..workload.processes.len() {
        let mut one = workload.clone();
        one.processes.remove(index);
        without_unused(&mut one);
        all.push(one);
    }
    for index in 0..workload.groups.len() {
        let mut one = workload.clone();
        let group = one.groups.remove(index);
        for process in &mut one.processes {
            process.group.take_if(|name| *name == group.name);
            process.phases = without_reclaim(&process.phases, &group.name);
        }
        all.push(one);
    }
    all.extend(each_process(workload, |process| {
        let all = phase_lists(&process.phases);
        let with = all.into_iter().map(|phases| {
            let mut one = process.clone();
            one.phases = phases;
            one.segments
                .retain(|segment| uses(&one.phases, &segment.name));
            one
        });
        with.collect()
    }));
    let settings = workload
        .machine
        .iter()
        .flat_map(|machine| machine.settings.keys());
    for name in settings {
        let mut one = workload.clone();
        let settings = &mut machine(&mut one).settings;
        let values = extent.settings.get(name);
        match values.and_then(|values| values.first()) {
            Some(first) if !values.is_some_and(|all| all.iter().any(|v| v == DEFAULT)) => {
                settings.insert(name.clone(), first.clone());
            }
            _ => {
                settings.remove(name);
            }
        }
        all.push(one);
    }
    all.extend(on_simpler_machines(extent, workload));
    all.extend(each_process(workload, plainer_process));
    all.extend(each_process(workload, |process| {
        replaced(&process.segments, plainer_segments)
            .into_iter()
            .map(|segments| Process {
                segments,
                ..process.clone()
            })
            .collect()
    }));
    for (index, group) in workload.groups.iter().enumerate() {
        for plainer in plainer_groups(group) {
            let mut one = workload.clone();
            one.groups[index] = plainer;
            all.push(one);
        }
    }
    all
}

/// Workloads in which one process is replaced by each of its simpler forms.
fn each_process(workload: &Workload, plainer: impl Fn(&Process) -> Vec<Process>) -> Vec<Workload> {
    let processes = replaced(&workload.processes, plainer);
    let with = processes.into_iter().map(|processes| Workload {
        processes,
        ..workload.clone()
    });
    with.collect()
}

/// Lists in which one item is replaced by each of its simpler forms.
fn replaced<T: Clone>(items: &[T], plainer: impl Fn(&T) -> Vec<T>) -> Vec<Vec<T>> {
    let mut all = Vec::new();
    for (index, item) in items.iter().enumerate() {
        for plain in plainer(item) {
            let mut list = items.to_vec();
            list[index] = plain;
            all.push(list);
        }
    }
    all
}

/// Returns the workload on machines with one simpler property each: less memory, or the first kind of swap, of device
/// for files, or of file system in the extent.
fn on_simpler_machines(extent: &Extent, workload: &Workload) -> Vec<Workload> {
    let own = workload.machine.clone().unwrap_or_default();
    let mut all = Vec::new();
    let mut with = |machine| {
        let machine = Some(machine);
        all.push(Workload {
            machine,
            ..workload.clone()
        });
    };
    let current = own.memory.unwrap_or_default().bytes();
    let mut smaller: Vec<_> = extent
        .memory
        .iter()
        .filter(|memory| memory.bytes() < current)
        .collect();
    smaller.sort_by_key(|memory| memory.bytes());
    for memory in smaller {
        let mut machine = own.clone();
        machine.memory = Some(*memory);
        machine.swap_size = Some(Bytes(memory.bytes().0 * extent.swap_size));
        with(machine);
    }
    let is_first = |found: bool| !found;
    if is_first(own.swap.as_ref() == extent.swap.first()) {
        let mut machine = own.clone();
        machine.swap = extent.swap.first().copied();
        with(machine);
    }
    if is_first(own.files_on.as_ref() == extent.files_on.first()) {
        let mut machine = own.clone();
        machine.files_on = extent.files_on.first().copied();
        with(machine);
    }
    if is_first(own.fs.as_ref() == extent.fs.first()) {
        let mut machine = own.clone();
        machine.fs = extent.fs.first().copied();
        with(machine);
    }
    all
}

/// Lists of phases with one change each: a phase is removed, replaced by a simpler one, or, if it is a repetition or
/// fork, replaced by the phases in it.
fn phase_lists(phases: &[Phase]) -> Vec<Vec<Phase>> {
    let mut all = Vec::new();
    for index in 0..phases.len() {
        let mut list = phases.to_vec();
        list.remove(index);
        all.push(list);
    }
    for (index, phase) in phases.iter().enumerate() {
        if !phase.inner().is_empty() {
            let mut list = phases.to_vec();
            list.splice(index..=index, phase.inner().iter().cloned());
            all.push(list);
        }
    }
    all.extend(replaced(phases, plainer_phases));
    all
}

fn plainer_phases(phase: &Phase) -> Vec<Phase> {
    match phase {
        Phase::Access(access) => plainer_accesses(access)
            .into_iter()
            .map(Phase::Access)
            .collect(),
        Phase::Fill { segment, by, part } => {
            let whole = |part: &Option<[f64; 2]>| part.is_some();
            let mut all = Vec::new();
            if whole(part) || *by != By::Mapping {
                all.push(Phase::Fill {
                    segment: segment.clone(),
                    by: By::Mapping,
                    part: None,
                });
            }
            all
        }
        Phase::Advise {
            segment,
            advice,
            part: Some(_),
        } => vec![Phase::Advise {
            segment: segment.clone(),
            advice: *advice,
            part: None,
        }],
        Phase::Repeat { times, phases } => {
            let mut all: Vec<Phase> = phase_lists(phases)
                .into_iter()
                .filter(|phases| !phases.is_empty())
                .map(|phases| Phase::Repeat {
                    times: *times,
                    phases,
                })
                .collect();
            all.extend(fewer(*times).into_iter().map(|times| Phase::Repeat {
                times,
                phases: phases.clone(),
            }));
            all
        }
        Phase::Fork { count, phases } => {
            let mut all: Vec<Phase> = phase_lists(phases)
                .into_iter()
                .filter(|phases| !phases.is_empty())
                .map(|phases| Phase::Fork {
                    count: *count,
                    phases,
                })
                .collect();
            all.extend(fewer(*count).into_iter().map(|count| Phase::Fork {
                count,
                phases: phases.clone(),
            }));
            all
        }
        _ => Vec::new(),
    }
}

/// Returns variants of the accesses, each with one attribute replaced by a simpler value.
fn plainer_accesses(access: &Access) -> Vec<Access> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Access)| {
        let mut one = access.clone();
        change(&mut one);
        if one != *access {
            all.push(one);
        }
    };
    with(&|one| one.part = None);
    with(&|one| one.pause = Nanos(0));
    with(&|one| one.until = None);
    with(&|one| one.by = By::Mapping);
    with(&|one| one.amount = Amount::Word);
    if access.pattern != Pattern::Linear {
        with(&|one| one.pattern = Pattern::Linear);
        if access.pattern != Pattern::Random {
            with(&|one| one.pattern = Pattern::Random);
        }
    }
    if access.writes > 0.0 {
        with(&|one| one.writes = 0.0);
        if access.writes < 1.0 {
            with(&|one| one.writes = 1.0);
        }
    }
    if let Count::Passes(passes) = access.count
        && passes > 100
    {
        with(&|one| one.count = Count::ONE_PASS);
        with(&|one| one.count = Count::Passes((passes / 2).max(100)));
    }
    all
}

/// Returns smaller counts: one, half, and one less.
fn fewer(count: u32) -> Vec<u32> {
    let mut all = Vec::new();
    if count > 1 {
        all.push(1);
    }
    if count > 3 {
        all.push(count / 2);
    }
    if count > 2 {
        all.push(count - 1);
    }
    all
}

fn plainer_process(process: &Process) -> Vec<Process> {
    let mut all: Vec<Process> = fewer(process.count)
        .into_iter()
        .map(|count| Process {
            count,
            ..process.clone()
        })
        .collect();
    if process.group.is_some() {
        all.push(Process {
            group: None,
            ..process.clone()
        });
    }
    let zero = Nanos(0);
    if (process.start, process.stagger) != (zero, zero) {
        all.push(Process {
            start: zero,
            stagger: zero,
            ..process.clone()
        });
    }
    all
}

fn plainer_segments(segment: &Segment) -> Vec<Segment> {
    let plain = Segment::new(&segment.name, segment.kind, segment.size);
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Segment)| {
        let mut one = segment.clone();
        change(&mut one);
        if one != *segment {
            all.push(one);
        }
    };
    if segment.kind != Kind::Anonymous {
        with(&|one| {
            *one = Segment {
                content: one.content.clone(),
                ..Segment::new(&one.name, Kind::Anonymous, one.size)
            }
        });
    }
    with(&|one| one.locked = false);
    with(&|one| one.pages = PageSize::Small);
    with(&|one| one.file = None);
    with(&|one| one.empty = false);
    with(&|one| one.content.clone_from(&plain.content));
    if let Size::Share(share) = segment.size {
        // Half the size, then four fifths of it, in whole percent.
        for smaller in [share / 2, share / 5 * 4] {
            let whole = smaller / 100 * 100;
            if whole >= 100 && whole < share {
                with(&|one| one.size = Size::Share(whole));
            }
        }
    }
    all
}

fn plainer_groups(group: &Group) -> Vec<Group> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Group)| {
        let mut one = group.clone();
        change(&mut one);
        if one != *group {
            all.push(one);
        }
    };
    with(&|one| one.each = false);
    with(&|one| one.max = Limit::Max);
    with(&|one| one.high = Limit::Max);
    with(&|one| one.low = None);
    with(&|one| one.min = None);
    with(&|one| one.swap_max = Limit::Max);
    all
}

/// Removes memory cgroups that no process is in and no phase names.
fn without_unused(workload: &mut Workload) {
    let processes = workload.processes.clone();
    workload.groups.retain(|group| {
        let is_used = |process: &Process| {
            process.group.as_ref() == Some(&group.name) || reclaims(&process.phases, &group.name)
        };
        processes.iter().any(is_used)
    });
}

fn reclaims(phases: &[Phase], name: &str) -> bool {
    phases.iter().any(|phase| match phase {
        Phase::Reclaim { group, .. } => group == name,
        other => reclaims(other.inner(), name),
    })
}

fn without_reclaim(phases: &[Phase], name: &str) -> Vec<Phase> {
    let keeps = |phase: &&Phase| !matches!(phase, Phase::Reclaim { group, .. } if group == name);
    let kept = phases.iter().filter(keeps).cloned();
    let inner = kept.map(|phase| match phase {
        Phase::Repeat { times, phases } => Phase::Repeat {
            times,
            phases: without_reclaim(&phases, name),
        },
        Phase::Fork { count, phases } => Phase::Fork {
            count,
            phases: without_reclaim(&phases, name),
        },
        other => other,
    });
    inner.collect()
}

/// True if a phase names the segment.
fn uses(phases: &[Phase], name: &str) -> bool {
    phases.iter().any(|phase| match phase {
        Phase::Fill { segment, .. } | Phase::Sync { segment } | Phase::Advise { segment, .. } => {
            segment == name
        }
        Phase::Access(access) => access.segment == name,
        Phase::Copy { from, to } => from == name || to == name,
        other => uses(other.inner(), name),
    })
}
