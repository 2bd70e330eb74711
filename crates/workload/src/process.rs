//! Kinds of processes of a workload.

use pagetide_quantity::Nanos;
use serde::{Deserialize, Serialize};

use crate::form::time;
use crate::phase::Phase;
use crate::segment::Segment;

/// One or more processes with the same description: each maps its own segments and does the phases in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Process {
    /// Name of the processes, by which others can wait for their end.
    pub name: String,
    /// Number of processes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
    /// Name of the processes' group in the workload; `None` for no group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Time from the start of the workload to the start of the first of these processes.
    #[serde(default, skip_serializing_if = "no_time", with = "time")]
    pub start: Nanos,
    /// Time from the start of one process to the start of the next.
    #[serde(default, skip_serializing_if = "no_time", with = "time")]
    pub stagger: Nanos,
    /// Name of a mark by which these processes take turns: each process starts when the one before it has passed the
    /// mark. `None` if processes do not wait for each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Segments of memory that each process maps.
    #[serde(default, rename = "segment", skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
    /// Phases that each process does, in order.
    #[serde(default, rename = "phase", skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
}

impl Process {
    /// Returns the segment called `name`; `None` if the process has no such segment.
    pub fn segment(&self, name: &str) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.name == name)
    }

    /// Returns the names of the marks that the process itself passes, without those of its children, in order of
    /// appearance.
    pub fn marks(&self) -> Vec<&str> {
        fn add<'a>(phases: &'a [Phase], marks: &mut Vec<&'a str>) {
            for phase in phases {
                match phase {
                    Phase::Mark { name } if !marks.contains(&name.as_str()) => marks.push(name),
                    Phase::Repeat { phases, .. } => add(phases, marks),
                    _ => {}
                }
            }
        }
        let mut marks = Vec::new();
        add(&self.phases, &mut marks);
        marks
    }
}

fn one() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_one(value: &u32) -> bool {
    *value == 1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn no_time(time: &Nanos) -> bool {
    time.0 == 0
}
