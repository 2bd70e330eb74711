//! The space of workloads: each candidate is a workload in pagetide's language, with its machine and settings.

mod change;
mod draw;
mod parts;
mod pressure;
mod simpler;
mod traits;

use std::fmt::Write as _;

use pagetide_quantity::Bytes;
use pagetide_record::{MemorySpec, SwapSpec};
use pagetide_reference::Rng;
use pagetide_workload::{Group, Workload};

use self::parts::{kind_word, machine, memory, phase_words};
use crate::extent::{DEFAULT, Extent};
use crate::space::{Space, choice};

/// Maximum number of attempts to draw, change or cross workloads so that the result is valid. After them, drawing
/// returns the last valid workload or a simple one, changing a random one, and crossing a changed one.
const ATTEMPTS: usize = 50;
/// One in this number of random workloads may be unlikely to cause reclaim. The others are drawn again until they are
/// likely to.
const IDLE: u64 = 8;
/// The setting that switches MGLRU on or off. It is part of a candidate's region.
const LRU: &str = "lru_gen/enabled";

/// The space of all workloads within an extent.
#[derive(Clone, Debug)]
pub struct Workloads {
    extent: Extent,
}

impl Workloads {
    /// Creates the space of all workloads within `extent`.
    pub fn new(extent: Extent) -> Self {
        Self { extent }
    }

    /// True if the workload is valid, fits into its machine, and makes at most the extent's number of accesses.
    fn is_fine(&self, workload: &Workload) -> bool {
        let (memory, swap) = sizes(workload);
        let most = self.extent.accesses.saturating_mul(memory.pages().0);
        let needed = workload
            .validate()
            .and_then(|()| workload.needed(memory, swap));
        needed.is_ok_and(|needed| needed.accesses <= most)
            && workload.groups.iter().all(|group| acts(group, memory))
            && protected(&workload.groups, memory) <= memory
    }
}

/// False for a group with a limit above memory, or a limit or protection above its own `memory.max`. The scenario
/// refuses such a group.
fn acts(group: &Group, memory: Bytes) -> bool {
    let sizes = group.sizes();
    let max = sizes.iter().find(|(file, _)| *file == "max");
    let has_max = max.is_some();
    let max = max.map_or(memory, |(_, size)| size.of(memory));
    let bounded = sizes.iter().filter(|(file, _)| *file != "swap.max");
    max <= memory
        && bounded
            .filter(|(file, _)| has_max || *file == "high")
            .all(|(_, size)| size.of(memory) <= max)
}

/// Returns the sum of what the groups protect. The scenario refuses a sum of more than memory.
fn protected(groups: &[Group], memory: Bytes) -> Bytes {
    let of_each = groups.iter().map(|group| {
        let sizes = [group.low, group.min].into_iter().flatten();
        sizes.map(|size| size.of(memory).0).max().unwrap_or(0)
    });
    Bytes(of_each.sum())
}

/// Returns the memory and swap of the workload's machine in bytes.
fn sizes(workload: &Workload) -> (Bytes, Bytes) {
    let machine = workload.machine.as_ref();
    let swap = machine
        .and_then(|machine| machine.swap_size)
        .unwrap_or_default();
    let has_none = machine.is_some_and(|machine| machine.swap == Some(SwapSpec::None));
    let swap = if has_none { Bytes(0) } else { swap };
    (memory(workload), swap)
}

impl Space for Workloads {
    type Point = Workload;

    fn first(&self, rng: &mut Rng) -> Vec<Workload> {
        let start = self.extent.start.iter().cloned();
        start
            .map(|workload| draw::on_machine(&self.extent, workload, rng))
            .collect()
    }

    fn random(&self, rng: &mut Rng) -> Workload {
        if let Some(start) = choice(&self.extent.start, rng).filter(|_| rng.below(3) == 0) {
            return draw::on_machine(&self.extent, start.clone(), rng);
        }
        // Workloads without reclaim do not differ for the search.
        let may_fit = rng.below(IDLE) == 0;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let workload = draw::workload(&self.extent, rng);
            if !self.is_fine(&workload) {
                continue;
            }
            if may_fit || pressure::is_likely(&workload) {
                return workload;
            }
            last = Some(workload);
        }
        last.unwrap_or_else(|| draw::simple(&self.extent, rng))
    }

    fn mutated(&self, point: &Workload, rng: &mut Rng) -> Workload {
        for _ in 0..ATTEMPTS {
            let mut changed = point.clone();
            change::change(&self.extent, &mut changed, rng);
            if changed != *point && self.is_fine(&changed) {
                return changed;
            }
        }
        self.random(rng)
    }

    fn crossed(&self, a: &Workload, b: &Workload, rng: &mut Rng) -> Workload {
        for _ in 0..ATTEMPTS {
            let child = change::cross(&self.extent, a, b, rng);
            if self.is_fine(&child) {
                return child;
            }
        }
        self.mutated(a, rng)
    }

    fn simpler(&self, point: &Workload) -> Vec<Workload> {
        let mut all = Vec::new();
        for one in simpler::simpler(&self.extent, point) {
            if one != *point && !all.contains(&one) && self.is_fine(&one) {
                all.push(one);
            }
        }
        all
    }

    fn resized(&self, point: &Workload, percent: u64) -> Option<Workload> {
        let mut resized = point.clone();
        let own = machine(&mut resized);
        let size = |bytes: Bytes| Bytes(bytes.0 / 100 * percent / 4096 * 4096);
        own.memory = Some(match own.memory.unwrap_or_default() {
            MemorySpec::Free(bytes) => MemorySpec::Free(size(bytes)),
            MemorySpec::Total(bytes) => MemorySpec::Total(size(bytes)),
        });
        own.swap_size = own.swap_size.map(size);
        let (memory, swap) = sizes(&resized);
        let fits = resized.needed(memory, swap).is_ok();
        (fits && memory >= Bytes::from_mib(4)).then_some(resized)
    }

    fn region(&self, point: &Workload) -> String {
        let machine = point.machine.clone().unwrap_or_default();
        let mut region = format!(
            "{} · {}",
            machine.memory.unwrap_or_default(),
            machine.swap.unwrap_or_default()
        );
        if self
            .extent
            .settings
            .get(LRU)
            .is_some_and(|values| values.len() > 1)
        {
            let value = machine.settings.get(LRU).map_or(DEFAULT, String::as_str);
            let _ = write!(region, " · {LRU}={value}");
        }
        if self.extent.files_on.len() > 1 {
            let device = machine.files_on.unwrap_or_default();
            let _ = write!(region, " · files on {device}");
        }
        region
    }

    fn traits(&self, point: &Workload) -> Vec<String> {
        traits::traits(point)
    }

    fn label(&self, point: &Workload) -> String {
        label(point)
    }
}

/// Returns one line that describes a workload: its processes with segments, phases and the names of their memory
/// cgroups, and its machine.
pub fn label(workload: &Workload) -> String {
    let mut parts: Vec<String> = Vec::new();
    for process in &workload.processes {
        let count = match process.count {
            1 => String::new(),
            count => format!("{count} × "),
        };
        let segments: Vec<String> = process
            .segments
            .iter()
            .map(|segment| format!("{} {}", segment.size, kind_word(segment.kind)))
            .collect();
        let phases: Vec<String> = process.phases.iter().map(phase_words).collect();
        let group = process.group.as_ref();
        let group = group.map_or(String::new(), |group| format!(" in {group}"));
        parts.push(format!(
            "{count}({}: {}{group})",
            segments.join(" + "),
            phases.join(", ")
        ));
    }
    let machine = workload.machine.clone().unwrap_or_default();
    let mut all = format!(
        "{} · {} · {}",
        parts.join(" beside "),
        machine.memory.unwrap_or_default(),
        machine.swap.unwrap_or_default()
    );
    for (name, value) in &machine.settings {
        let _ = write!(all, " · {name}={value}");
    }
    all
}
