//! Computes from a record's workload how many pages the best possible replacement (OPT, Belady 1966) reads back, and
//! from its counters how many pages a protected memory cgroup read back.

use std::collections::BTreeMap;

use pagetide_oracle::{Choice, Job, ReferenceString, simulate};
use pagetide_quantity::{Bytes, Pages};
use pagetide_record::{Counters, SwapSpec};
use pagetide_reference::Rng;
use pagetide_workload::{Access, Advice, Kind, Phase, Process, Segment, Size, Workload};

/// Maximum number of references for which OPT is computed.
const MAX: usize = 1 << 22;
/// The memory use of a memory cgroup may be at most this percentage of its protection. The rest is for page tables and
/// other kernel memory that is charged to the cgroup.
const ROOM: u64 = 85;
/// The sum of all protections may be at most this percentage of memory.
const GRANTABLE: u64 = 80;

/// Returns the number of pages that OPT reads back: its faults, not counting the first reference to each page. `None`
/// unless the references and the memory available for them are known: one process without memory cgroup or locked
/// memory, whose phases only fill, access, repeat, pause and sync; swap on an SSD or disk, or no swap and only files;
/// and at most 2²² references.
pub fn read_back(workload: &Workload, memory: Bytes, swap: SwapSpec, seed: u64) -> Option<u64> {
    let [process] = workload.processes.as_slice() else {
        return None;
    };
    let is_alone = process.count == 1 && process.group.is_none();
    let kinds = process.segments.iter();
    let has_swap = matches!(swap, SwapSpec::Ssd(_) | SwapSpec::Disk(_));
    let is_plain = |segment: &Segment| {
        !segment.locked && (has_swap || (segment.kind == Kind::File && swap == SwapSpec::None))
    };
    if !is_alone || !kinds.clone().all(is_plain) {
        return None;
    }
    let mut offsets = BTreeMap::new();
    let mut pages = 0;
    for segment in kinds {
        let Pages(own) = segment.size.pages(memory);
        offsets.insert(segment.name.as_str(), (pages, own));
        pages += own;
    }
    let mut list = List {
        process,
        offsets,
        seed,
        accesses: 0,
        all: Vec::new(),
    };
    list.add(&process.phases)?;
    let pages = u32::try_from(pages).ok()?;
    let string = ReferenceString::of(list.all, pages);
    let Pages(size) = memory.pages();
    let job = Job {
        choice: Choice::parse("opt").ok()?,
        size: u32::try_from(size).ok()?,
    };
    let outcome = simulate(&string, &[job], 1, 1).ok()?.pop()?;
    Some(outcome.faults.saturating_sub(u64::from(string.distinct())))
}

/// The references of a process, in order.
struct List<'a> {
    process: &'a Process,
    /// First page and number of pages of each segment.
    offsets: BTreeMap<&'a str, (u64, u64)>,
    seed: u64,
    /// Number of access phases so far, which is part of the random seed of each such phase.
    accesses: u64,
    all: Vec<u32>,
}

impl List<'_> {
    /// Appends the references of these phases. Returns `None` if they cannot be known.
    fn add(&mut self, phases: &[Phase]) -> Option<()> {
        for phase in phases {
            match phase {
                Phase::Fill { segment, part, .. } => {
                    let (first, pages) = *self.offsets.get(segment.as_str())?;
                    let [begin, end] = Segment::part_of(pages, *part);
                    let all = (first + begin)..(first + end);
                    self.all
                        .extend(all.filter_map(|page| u32::try_from(page).ok()));
                }
                Phase::Access(access) => self.access(access)?,
                Phase::Repeat { times, phases } => {
                    for _ in 0..*times {
                        self.add(phases)?;
                    }
                }
                Phase::Pause { .. } | Phase::Sync { .. } => {}
                _ => return None,
            }
            if self.all.len() > MAX {
                return None;
            }
        }
        Some(())
    }

    fn access(&mut self, access: &Access) -> Option<()> {
        let (first, pages) = *self.offsets.get(access.segment.as_str())?;
        let [begin, end] = Segment::part_of(pages, access.part);
        let range = u32::try_from(end - begin).ok()?;
        self.accesses += 1;
        // Drawn in the same way as the scenario does, for the first process of this name.
        let label = format!("workload {} 0 0", self.process.name);
        let mut rng = Rng::stream(self.seed.wrapping_add(self.accesses), &label);
        let count = access.count.over(range.into());
        let references = access.pattern.references(range, count, rng.next_u64());
        let mut references = references.ok()?;
        let from = self.all.len();
        let more = usize::try_from(references.left()).ok()?;
        self.all.resize(from + more, 0);
        references.fill(&mut self.all[from..]);
        let offset = u32::try_from(first + begin).ok()?;
        for page in &mut self.all[from..] {
            *page += offset;
        }
        Some(())
    }
}

/// Returns how many pages a protected memory cgroup read back, divided by the pages of its protection (the larger of
/// `memory.low` and `memory.min`). Considers only cgroups whose use can never exceed their protection. Returns the
/// largest value of all such cgroups, or `None` if there is none or if the protections together exceed [`GRANTABLE`].
pub fn lost_protection(
    workload: &Workload,
    memory: Bytes,
    counters: &BTreeMap<String, Counters>,
) -> Option<f64> {
    let protection = |low: Option<Size>, min: Option<Size>| {
        let each = [low, min].into_iter().flatten();
        each.map(|size| size.of(memory).0).max()
    };
    let all = workload.groups.iter();
    let granted: u64 = all.clone().filter_map(|g| protection(g.low, g.min)).sum();
    if granted > memory.0 / 100 * GRANTABLE {
        return None;
    }
    let of_group = |group: &pagetide_workload::Group| {
        let protected = protection(group.low, group.min)?;
        let own = || {
            let all = workload.processes.iter();
            all.filter(move |process| process.group.as_ref() == Some(&group.name))
        };
        let used: u64 = own()
            .flat_map(|process| {
                let count = u64::from(process.count);
                process
                    .segments
                    .iter()
                    .map(move |s| s.size.of(memory).0 * count)
            })
            .sum();
        let limits = [group.max, group.high, group.swap_max];
        let is_limited = limits.iter().any(|limit| !limit.is_max());
        let gives_up = own().any(|process| gives_up(&process.phases));
        let asked = workload
            .processes
            .iter()
            .any(|p| reclaims(&p.phases, &group.name));
        if group.each || is_limited || gives_up || asked || used > protected / 100 * ROOM {
            return None;
        }
        let stat = counters.get(&format!("memory.stat-{}", group.name))?;
        let names = ["workingset_refault_anon", "workingset_refault_file"];
        let back = stat.sum(&names)?;
        Some(back as f64 / (protected / 4096).max(1) as f64)
    };
    all.filter_map(of_group).reduce(f64::max)
}

/// True if phases can free memory other than by reclaim: by advice, or when a forked child or a copy to a file ends,
/// each of which has memory of its own.
fn gives_up(phases: &[Phase]) -> bool {
    phases.iter().any(|phase| match phase {
        Phase::Advise { advice, .. } => !matches!(
            advice,
            Advice::Willneed
                | Advice::PopulateRead
                | Advice::PopulateWrite
                | Advice::Sequential
                | Advice::Random
        ),
        Phase::Fork { .. } | Phase::Copy { .. } => true,
        other => gives_up(other.inner()),
    })
}

/// True if a phase asks the kernel to reclaim from the memory cgroup called `name`.
fn reclaims(phases: &[Phase], name: &str) -> bool {
    phases.iter().any(|phase| match phase {
        Phase::Reclaim { group, .. } => group == name,
        other => reclaims(other.inner(), name),
    })
}
