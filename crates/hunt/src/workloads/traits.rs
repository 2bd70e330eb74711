//! Traits of a workload: coarse properties. The search learns which combinations of traits come close to the goal.

use pagetide_workload::{Access, By, Kind, PageSize, Phase, Process, Segment, Workload};

use super::parts::{kind_word, phase_words};

/// Returns all traits of a workload, sorted and without repetition.
pub(super) fn traits(workload: &Workload) -> Vec<String> {
    let mut all = Vec::new();
    let machine = workload.machine.clone().unwrap_or_default();
    let memory = machine.memory.unwrap_or_default().bytes();
    all.push(format!("memory {memory}"));
    if let Some(swap) = machine.swap {
        all.push(format!("swap {swap}"));
    }
    if let Some(device) = machine.files_on {
        all.push(format!("files on {device}"));
    }
    if let Some(fs) = machine.fs {
        all.push(format!("fs {fs}"));
    }
    for (name, value) in &machine.settings {
        all.push(format!("{name}={value}"));
    }
    for group in &workload.groups {
        let files = group.sizes().into_iter();
        all.extend(files.map(|(file, _)| format!("group with {file}")));
        if group.each {
            all.push("group for each".to_owned());
        }
    }
    let processes: u32 = workload.processes.iter().map(|process| process.count).sum();
    all.push(format!("processes {}", processes.max(1).ilog2()));
    let mut sums = [0_u64; 4];
    for process in &workload.processes {
        for segment in &process.segments {
            let index = Kind::ALL.iter().position(|kind| *kind == segment.kind);
            let size = segment.size.of(memory).0 * u64::from(process.count);
            sums[index.unwrap_or(0)] += size;
            of_segment(segment, &mut all);
        }
        if process.group.is_some() {
            all.push("in a group".to_owned());
        }
        of_phases(process, &process.phases, &mut all);
    }
    for (kind, sum) in Kind::ALL.into_iter().zip(sums) {
        if sum > 0 {
            let quarters = (sum * 4 / memory.0.max(1)).min(12);
            all.push(format!("{} {quarters}/4", kind_word(kind)));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn of_segment(segment: &Segment, all: &mut Vec<String>) {
    if segment.pages != PageSize::Small {
        all.push("huge pages".to_owned());
    }
    if segment.locked {
        all.push("locked".to_owned());
    }
    if segment.file.is_some() {
        all.push("shared file".to_owned());
    }
    if segment.empty {
        all.push("empty file".to_owned());
    }
    let own = Segment::new(&segment.name, segment.kind, segment.size);
    if segment.content != own.content {
        all.push(format!("content {}", segment.content));
    }
}

fn of_phases(process: &Process, phases: &[Phase], all: &mut Vec<String>) {
    let kind = |name: &str| process.segment(name).map_or("", |s| kind_word(s.kind));
    for phase in phases {
        match phase {
            Phase::Access(access) => of_access(access, kind(&access.segment), all),
            Phase::Fill { segment, .. } => all.push(format!("fill {}", kind(segment))),
            Phase::Advise { segment, .. } => {
                all.push(format!("{} {}", phase_words(phase), kind(segment)));
            }
            other => {
                all.push(other.word().to_owned());
                of_phases(process, other.inner(), all);
            }
        }
    }
}

fn of_access(access: &Access, kind: &str, all: &mut Vec<String>) {
    all.push(format!("{} {kind}", access.pattern.name()));
    let writes = match access.writes {
        writes if writes <= 0.0 => "read",
        writes if writes >= 1.0 => "write",
        _ => "read and write",
    };
    all.push(format!("{writes} {kind}"));
    let passes = access.count.over(100).max(1).ilog2();
    all.push(format!("passes {passes}"));
    if access.by == By::Call {
        all.push(format!("by call {kind}"));
    }
    if access.pause.0 > 0 {
        all.push("pauses".to_owned());
    }
    if access.part.is_some() {
        all.push("part".to_owned());
    }
}
