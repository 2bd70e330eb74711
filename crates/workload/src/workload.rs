//! The type of a whole workload.

use pagetide_quantity::Nanos;
use serde::{Deserialize, Serialize};

use crate::form::time;
use crate::group::Group;
use crate::machine::Machine;
use crate::process::Process;

/// A workload: processes in groups, on a machine.
///
/// ```toml
/// [[group]]
/// name = "apps"
/// max = "50%"
///
/// [[process]]
/// name = "reader"
/// count = 2
/// group = "apps"
/// segment = [{ name = "heap", size = "40%" }]
/// phase = [
///   { do = "fill", segment = "heap" },
///   { do = "access", segment = "heap", pattern = "zipf(0.9)", writes = 0.2, count = "4x" },
/// ]
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Workload {
    /// Time limit, in the guest's time. Processes that still run at this time are ended.
    #[serde(
        default = "time_limit",
        skip_serializing_if = "is_time_limit",
        with = "time"
    )]
    pub time_limit: Nanos,
    /// The machine that the workload asks for; `None` to leave the choice to the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The memory cgroups of the workload.
    #[serde(default, rename = "group", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// The kinds of processes of the workload.
    #[serde(default, rename = "process", skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Process>,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            time_limit: time_limit(),
            machine: None,
            groups: Vec::new(),
            processes: Vec::new(),
        }
    }
}

impl Workload {
    /// Returns the index of the process called `name`; `None` if there is none.
    pub fn process(&self, name: &str) -> Option<usize> {
        self.processes
            .iter()
            .position(|process| process.name == name)
    }

    /// Returns the names for which processes can wait: first all marks in order of appearance, then all processes.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for process in &self.processes {
            for mark in process.marks() {
                if !names.contains(&mark) {
                    names.push(mark);
                }
            }
        }
        names.extend(self.processes.iter().map(|process| process.name.as_str()));
        names
    }
}

fn time_limit() -> Nanos {
    Nanos::from_secs(60)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_time_limit(time: &Nanos) -> bool {
    *time == time_limit()
}
