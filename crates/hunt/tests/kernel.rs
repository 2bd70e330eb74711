//! A synthetic kernel: its counters for a workload follow from sizes, accesses and settings by simple rules.

use std::collections::BTreeMap;

use pagetide_campaign::RunError;
use pagetide_hunt::{Death, Evidence, Examiner, Goal, Outcome, Question};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::MemoryAtKill;
use pagetide_reference::Rng;
use pagetide_workload::{Advice, Kind, Phase, Process, Workload};

/// Memory of the machine, and how the workload uses it: in pages, accesses (`reads` to `loops`) or processes (`forks`,
/// `in_groups`, `protected`, `processes`).
#[derive(Debug, Default)]
struct Use {
    pages: f64,
    anon: f64,
    file: f64,
    locked: f64,
    reads: f64,
    writes: f64,
    random: f64,
    loops: f64,
    dirty: f64,
    forks: f64,
    freed: f64,
    cold: f64,
    paged_out: f64,
    huge: f64,
    in_groups: f64,
    protected: f64,
    processes: f64,
}

impl Use {
    fn of(workload: &Workload) -> Self {
        let machine = workload.machine.clone().unwrap();
        let memory = machine.memory.unwrap().bytes();
        let mut sum = Self {
            pages: memory.pages().0 as f64,
            ..Self::default()
        };
        for process in &workload.processes {
            let count = f64::from(process.count);
            sum.processes += count;
            for segment in &process.segments {
                let size = count * segment.size.pages(memory).0 as f64;
                match segment.kind {
                    Kind::File => sum.file += size,
                    _ => sum.anon += size,
                }
                if segment.locked {
                    sum.locked += size;
                }
                if segment.pages != pagetide_workload::PageSize::Small {
                    sum.huge += size;
                }
            }
            if let Some(name) = &process.group {
                sum.in_groups += count;
                let group = workload.groups.iter().find(|group| group.name == *name);
                if group.is_some_and(|group| group.low.or(group.min).is_some()) {
                    sum.protected += count;
                }
            }
            sum.phases(process, &process.phases, memory, count);
        }
        sum
    }

    fn phases(&mut self, process: &Process, phases: &[Phase], memory: Bytes, times: f64) {
        let pages = |name: &str| process.segment(name).map_or(0, |s| s.size.pages(memory).0);
        let kind = |name: &str| process.segment(name).map(|segment| segment.kind);
        for phase in phases {
            match phase {
                Phase::Fill { segment, .. } => {
                    self.writes += times * pages(segment) as f64;
                    if kind(segment) == Some(Kind::File) {
                        self.dirty += times * pages(segment) as f64;
                    }
                }
                Phase::Access(access) => {
                    let count = times * access.count.over(pages(&access.segment)) as f64;
                    self.reads += count * (1.0 - access.writes);
                    self.writes += count * access.writes;
                    match access.pattern.name() {
                        "linear" | "loop" => self.loops += count,
                        _ => self.random += count,
                    }
                }
                Phase::Copy { from, .. } => self.dirty += times * pages(from) as f64,
                Phase::Advise {
                    segment, advice, ..
                } => {
                    let size = times * pages(segment) as f64;
                    match advice {
                        Advice::Free | Advice::Dontneed => self.freed += size,
                        Advice::Cold => self.cold += size,
                        Advice::Pageout => self.paged_out += size,
                        _ => {}
                    }
                }
                Phase::Fork { count, phases } => {
                    self.forks += times * f64::from(*count);
                    self.phases(process, phases, memory, times * f64::from(*count));
                }
                Phase::Repeat {
                    times: more,
                    phases,
                } => self.phases(process, phases, memory, times * f64::from(*more)),
                _ => {}
            }
        }
    }
}

/// Faults of the synthetic kernel. Each shows only if several conditions hold at the same time.
pub const FAULTS: [&str; 7] = [
    "kills-on-two-lists",
    "pageout-again",
    "swappiness-ignored",
    "forks-stall",
    "free-is-swapped",
    "protection-lost",
    "loops-activate",
];

/// Returns the evidence of a trial of a workload on the kernel with this fault, or without any.
pub fn run(workload: &Workload, seed: u64, fault: Option<&str>) -> Evidence {
    let text = workload.canonical();
    let mut rng = Rng::stream(seed, &text);
    let machine = workload.machine.clone().unwrap();
    let own = Use::of(workload);
    let setting = |name: &str| machine.settings.get(name).map(String::as_str);
    let two_lists = setting("lru_gen/enabled") == Some("0");
    let swappiness: f64 = setting("vm.swappiness").map_or(60.0, |v| v.parse().unwrap());
    let has_swap = machine.swap.unwrap().to_string() != "none";
    let free = (own.pages - own.locked).max(1.0);
    let over = ((own.anon + own.file - own.locked) / free - 0.9).max(0.0);
    let anon_share = own.anon / (own.anon + own.file).max(1.0);
    let lean = if has_swap {
        anon_share * (0.2 + swappiness / 100.0)
    } else {
        0.0
    };
    let lean = (lean / (lean + (1.0 - anon_share) + 0.01)).clamp(0.0, 1.0);
    let touched = own.reads + own.writes + own.random;
    let mut steal = over * touched * 0.5 + own.paged_out;
    let mut scan = steal * (1.2 + own.random / touched.max(1.0));
    let mut faults = steal * 0.6;
    let mut direct = scan * (own.processes / (4.0 + own.processes));
    let mut death = None;
    let part =
        |value: f64, from: f64, to: f64| ((value / free - from) / (to - from)).clamp(0.0, 1.0);
    let is = |holds: bool| f64::from(u8::from(holds));
    // Degree to which the conditions of each fault hold, from 0 to 1. A fault has a small effect before its conditions
    // hold fully.
    let met = match fault {
        Some("kills-on-two-lists") => {
            is(two_lists && has_swap && own.file == 0.0)
                * part(own.anon, 0.8, 1.2)
                * part(own.random, 0.5, 2.0)
        }
        Some("pageout-again") => part(own.paged_out, 0.0, 1.2) * part(own.file, 0.1, 0.6),
        Some("swappiness-ignored") => {
            is(swappiness <= 1.0 && has_swap)
                * part(own.file, 0.2, 1.0)
                * part(own.random, 1.0, 4.0)
        }
        Some("forks-stall") => {
            part(own.forks * free, 0.0, 8.0) * part(own.huge, 0.1, 0.5) * is(over > 0.0)
        }
        Some("free-is-swapped") => {
            is(two_lists) * part(own.freed, 0.1, 1.0) * part(own.loops, 0.5, 2.0)
        }
        Some("protection-lost") => {
            part(own.protected * free, 0.0, 3.0)
                * part(own.processes * free, 2.0, 6.0)
                * is(over > 0.2)
        }
        Some("loops-activate") => {
            is(two_lists) * part(own.loops, 1.0, 5.0) * part(own.dirty, 0.2, 0.8)
        }
        _ => 0.0,
    };
    match fault {
        Some("kills-on-two-lists") => {
            scan *= 1.0 + 8.0 * met;
            if met > 0.7 {
                death = Some(Death {
                    process: "a".to_owned(),
                    after: Nanos::from_millis(300),
                    memory: Some(MemoryAtKill {
                        anon: Bytes::from_mib(12),
                        swap: Some([Bytes::from_mib(24), Bytes::from_mib(32)]),
                        needed: Bytes::from_mib(1),
                        ..MemoryAtKill::default()
                    }),
                    spare: 12.0,
                });
            }
        }
        Some("loops-activate") => {
            steal *= 1.0 + 0.6 * met * met;
            faults *= 1.0 + met * met;
        }
        Some(_) => faults = (faults + 0.1 * free) * (1.0 + 1.2 * met * met),
        None => faults += 0.1 * free,
    }
    let mut noisy = |value: f64| {
        let value = value * (0.97 + 0.06 * rng.unit_f64());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let value = value as u64;
        value
    };
    direct = direct.min(scan);
    let counts = [
        ("pgscan_anon", scan * lean),
        ("pgscan_file", scan * (1.0 - lean)),
        ("pgsteal_anon", steal * lean),
        ("pgsteal_file", steal * (1.0 - lean)),
        ("pgscan_direct", direct),
        ("pgmajfault", faults),
        ("pswpin", faults * lean),
        ("pswpout", steal * lean),
        (
            "pglazyfreed",
            if own.freed > 0.0 {
                own.freed.min(steal)
            } else {
                0.0
            },
        ),
        ("pgdeactivate", own.cold),
        (
            "thp_swpout",
            if own.huge > 0.0 { steal * 0.01 } else { 0.0 },
        ),
        ("workingset_activate_file", own.loops * over),
        ("pgactivate", own.random),
        ("memcg_low", own.protected * over * 10.0),
        ("pgrotated", own.dirty * over),
        ("unevictable_pgs_scanned", own.locked * over),
    ];
    let counters: BTreeMap<String, u64> = counts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), noisy(value)))
        .filter(|(_, value)| *value > 0)
        .collect();
    let time = noisy(1e6 + touched * 200.0 + faults * 90_000.0 + scan * 300.0);
    Evidence {
        time: Nanos(time),
        memory: machine.memory.unwrap().bytes(),
        counters,
        death,
        ..Evidence::default()
    }
}

/// Examines workloads on the synthetic kernel, and can stop after some measurements.
pub struct Table {
    pub goal: Goal,
    pub fault: Option<&'static str>,
    /// True if the kernel with the fault is compared with the kernel without a fault.
    pub is_pair: bool,
    /// Number of measurements after which the examiner stops.
    pub stop_after: Option<usize>,
    /// Measurements in the order in which they were asked for: workload and seed.
    pub asked: Vec<(String, u64)>,
}

impl Table {
    pub fn new(goal: Goal, fault: Option<&'static str>, is_pair: bool) -> Self {
        Self {
            goal,
            fault,
            is_pair,
            stop_after: None,
            asked: Vec::new(),
        }
    }
}

impl Examiner<Workload> for Table {
    fn trials_each(&self) -> u64 {
        self.goal.seeds() * if self.is_pair { 2 } else { 1 }
    }

    fn examine(&mut self, asked: &[Question<Workload>]) -> Result<Option<Vec<Outcome>>, RunError> {
        let mut outcomes = Vec::new();
        for Question { point, seed } in asked {
            if self.stop_after.is_some_and(|most| self.asked.len() >= most) {
                return Ok(None);
            }
            self.asked.push((point.canonical(), *seed));
            let with = |fault| -> Vec<Evidence> {
                let seeds = (0..self.goal.seeds()).map(|more| seed + 1000 * more);
                seeds.map(|seed| run(point, seed, fault)).collect()
            };
            let other = if self.is_pair { with(None) } else { Vec::new() };
            outcomes.push(self.goal.measure(&with(self.fault), &other));
        }
        Ok(Some(outcomes))
    }
}
