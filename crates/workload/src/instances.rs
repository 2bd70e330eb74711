//! Numbers of processes and memory cgroups that a workload creates.

use crate::phase::Phase;
use crate::workload::Workload;

/// Returns the number of processes in the workload, without forked ones.
pub fn instances(workload: &Workload) -> u64 {
    workload
        .processes
        .iter()
        .map(|process| u64::from(process.count))
        .sum()
}

/// Returns the number of processes that the workload starts, forked ones included.
pub fn started(workload: &Workload) -> u64 {
    let of = |process: &crate::Process| {
        u64::from(process.count).saturating_mul(forked(&process.phases).saturating_add(1))
    };
    workload
        .processes
        .iter()
        .map(of)
        .fold(0, u64::saturating_add)
}

/// Returns the number of processes that a process with these phases forks, at all depths.
fn forked(phases: &[Phase]) -> u64 {
    let of = |phase: &Phase| match phase {
        Phase::Fork { count, phases } => {
            u64::from(*count).saturating_mul(forked(phases).saturating_add(1))
        }
        Phase::Repeat { times, phases } => u64::from(*times).saturating_mul(forked(phases)),
        _ => 0,
    };
    phases.iter().map(of).fold(0, u64::saturating_add)
}

/// Returns the names of all cgroups of the workload, each with the index of its group in the workload. A group with
/// `each` has one cgroup for each of its processes, with the process's name and number.
pub fn group_names(workload: &Workload) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for (index, group) in workload.groups.iter().enumerate() {
        if !group.each {
            names.push((index, group.name.clone()));
            continue;
        }
        for process in &workload.processes {
            if process.group.as_deref() == Some(&group.name) {
                let each =
                    (0..process.count).map(|number| each_name(&group.name, &process.name, number));
                names.extend(each.map(|name| (index, name)));
            }
        }
    }
    names
}

/// Returns the name of the cgroup of process number `number` called `process`, in a group with `each`.
pub(crate) fn each_name(group: &str, process: &str, number: u32) -> String {
    format!("{group}-{process}-{number}")
}

impl Workload {
    /// Returns the name of the cgroup of process number `number` of the kind at `index`; `None` if the process is in no
    /// group.
    pub fn group_of(&self, index: usize, number: u32) -> Option<String> {
        let process = self.processes.get(index)?;
        let name = process.group.as_ref()?;
        let group = self.groups.iter().find(|group| group.name == *name)?;
        Some(if group.each {
            each_name(name, &process.name, number)
        } else {
            name.clone()
        })
    }
}
