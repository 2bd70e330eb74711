//! Conditions that can spoil a trial on a machine that does other work at the same time. They are read before, during
//! and after the trial.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagetide_quantity::Bytes;
use pagetide_system::{Counters, Syntax, meminfo};

use crate::foreign::ForeignUse;
use crate::group::Group;
use crate::proactive;
use crate::swap_device::SwapDevice;

/// Maximum fraction of the machine's CPU time that other processes may use. Above it, the times of a trial are
/// doubtful.
pub const MAX_OTHER_CPU: f64 = 0.10;
/// Maximum fraction of CPU time that a hypervisor may take (steal). Above it, the times of a trial are doubtful.
pub const MAX_STEAL: f64 = 0.01;
/// Maximum fraction of a trial's time in which some runnable process of the trial's cgroup waits for a CPU. Applies
/// only if other processes use more than [`SOME_OTHER_CPU`], because the processes of a cgroup also wait for each
/// other.
pub const MAX_CPU_WAIT: f64 = 0.05;
/// Minimum fraction of the machine's CPU time that other processes must use before waits of the trial's cgroup are
/// attributed to them.
pub const SOME_OTHER_CPU: f64 = 0.02;
/// Maximum fraction of a trial's time in which processes outside of its cgroup wait for memory.
pub const MAX_OTHER_MEMORY_WAIT: f64 = 0.01;
/// Maximum number of pages (4 MiB) that other processes may swap in during a trial. The same maximum applies to the
/// pages that they swap out, and to those that the kernel reclaims for them.
pub const MAX_OTHER_PAGES: u64 = 1024;
/// A CPU counts as slowed down if its frequency is below this fraction of its maximum frequency.
pub const MIN_FREQUENCY: f64 = 0.9;
/// Fraction of all memory that must stay available to the machine.
pub const MIN_AVAILABLE: f64 = 0.10;

/// A reason why a trial's results may be wrong, or cannot be used at all.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Doubt {
    /// Another process had pages in the swap area of the trial.
    #[error(
        "other processes put at least {size} into the swap area of the trial: end them, limit their swap, or run it again{by}"
    )]
    ForeignSwap {
        /// Size of their pages.
        size: Bytes,
        /// End of the sentence that names proactive reclaim; empty if this machine has none.
        by: String,
    },
    /// The machine had little memory left.
    #[error(
        "only {available} of memory were available, of {total}: the machine itself was short of memory"
    )]
    LittleMemory {
        /// Minimum amount of memory that was available during the trial.
        available: Bytes,
        /// Memory of the machine.
        total: Bytes,
    },
    /// The trial's cgroup is gone, with its limits and counters.
    #[error("the memory group was removed by another program during the trial: run it again")]
    GroupGone,
    /// The kernel reclaimed or swapped pages for other processes.
    #[error(
        "the kernel {what} {pages} pages for other processes during the trial: run it on a quiet machine"
    )]
    OtherReclaim {
        /// What the kernel did, such as `swapped in`.
        what: &'static str,
        /// Number of pages.
        pages: u64,
    },
    /// Other processes used the CPUs.
    #[error("other processes used {0:.0} % of the processors: times are doubtful")]
    Busy(f64),
    /// The hypervisor gave CPU time to other guests.
    #[error("the hypervisor took {0:.1} % of the processors' time: times are doubtful")]
    Steal(f64),
    /// Processes of the trial's cgroup waited for a CPU.
    #[error(
        "processes of the trial waited {0:.0} % of its time for a processor: times are doubtful"
    )]
    CpuWait(f64),
    /// Other processes waited for memory.
    #[error(
        "other processes waited {0:.1} % of the trial's time for memory: run it on a quiet machine"
    )]
    OtherMemoryWait(f64),
    /// A CPU ran below its maximum frequency.
    #[error("processors ran at {0:.0} % of their highest frequency: times are doubtful")]
    Slow(f64),
    /// A CPU was slowed down because of heat.
    #[error("processors were slowed down {0} times because of heat: times are doubtful")]
    Throttled(u64),
}

impl Doubt {
    /// Returns true if the results must not be used and the trial must run again, false if the results are only
    /// doubtful.
    pub fn is_invalid(&self) -> bool {
        matches!(
            self,
            Self::ForeignSwap { .. } | Self::LittleMemory { .. } | Self::GroupGone
        )
    }

    /// Returns true if only times are affected, not counts.
    pub fn is_of_times(&self) -> bool {
        matches!(
            self,
            Self::Busy(_) | Self::Steal(_) | Self::CpuWait(_) | Self::Slow(_) | Self::Throttled(_)
        )
    }
}

/// CPU time of the whole machine in clock ticks, from `/proc/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTime {
    busy: u64,
    steal: u64,
    all: u64,
}

impl CpuTime {
    fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the first line: user, nice, system, idle, iowait, irq, softirq, steal (kernel
    /// `Documentation/filesystems/proc.rst`, section 1.7).
    fn parse(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let words = line.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let all: u64 = ticks.iter().sum();
        let of = |at: usize| ticks.get(at).copied().unwrap_or(0);
        Self {
            busy: all - of(3) - of(4) - of(7),
            steal: of(7),
            all,
        }
    }
}

/// Readings of the whole machine and of a cgroup at one time.
#[derive(Clone, Debug, Default)]
struct Reading {
    cpu: CpuTime,
    vmstat: Counters,
    /// Counters of the cgroup, from `memory.stat`.
    group: Counters,
    /// CPU time of the cgroup in microseconds; `None` if the kernel does not report it.
    group_cpu: Option<u64>,
    /// Time in nanoseconds for which some task of the machine has waited for memory.
    memory_wait: u64,
    group_memory_wait: u64,
    group_cpu_wait: u64,
    throttled: u64,
}

fn counters(path: &Path, syntax: Syntax) -> Counters {
    let mut counters = Counters::new();
    counters.parse(&fs::read(path).unwrap_or_default(), syntax);
    counters
}

/// Returns the nanoseconds for which some task has waited, from a pressure file; 0 if there is no such file.
fn pressure(path: &Path) -> u64 {
    counters(path, Syntax::Pressure).get("some").unwrap_or(0)
}

/// Returns the number in a file of sysfs; `None` if it cannot be read.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the folders of the CPUs in sysfs.
fn cpus() -> Vec<PathBuf> {
    let folder = "/sys/devices/system/cpu";
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_cpu = |name: &str| {
        name.strip_prefix("cpu")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_cpu))
        .map(|entry| entry.path())
        .collect()
}

/// Returns the lowest ratio of current to maximum frequency among all CPUs; `None` if no CPU reports its frequencies.
fn frequency() -> Option<f64> {
    let share = |cpu: PathBuf| {
        let now = number(&cpu.join("cpufreq/scaling_cur_freq"))?;
        let most = number(&cpu.join("cpufreq/cpuinfo_max_freq"))?;
        Some(now as f64 / most.max(1) as f64)
    };
    cpus().into_iter().filter_map(share).reduce(f64::min)
}

/// Returns the number of times since boot that CPUs were slowed down because of heat, added over all CPUs; 0 if the
/// kernel does not report it.
fn throttled() -> u64 {
    let count = |cpu: PathBuf| number(&cpu.join("thermal_throttle/core_throttle_count"));
    cpus().into_iter().filter_map(count).sum()
}

impl Reading {
    fn of(group: &Group) -> Self {
        let twin = group.pressure();
        let of_twin = |file: &str| twin.map(|folder| folder.join(file));
        Self {
            cpu: CpuTime::read(),
            vmstat: counters(Path::new("/proc/vmstat"), Syntax::KeyValue),
            group: counters(&group.path().join("memory.stat"), Syntax::KeyValue),
            group_cpu: of_twin("cpu.stat")
                .and_then(|path| counters(&path, Syntax::KeyValue).get("usage_usec")),
            memory_wait: pressure(Path::new("/proc/pressure/memory")),
            group_memory_wait: of_twin("memory.pressure").map_or(0, |path| pressure(&path)),
            group_cpu_wait: of_twin("cpu.pressure").map_or(0, |path| pressure(&path)),
            throttled: throttled(),
        }
    }
}

/// Observes the conditions of one trial.
#[derive(Debug)]
pub struct Conditions {
    before: Reading,
    began: Instant,
    least_available: Bytes,
    total: Bytes,
    foreign: Bytes,
    lowest_frequency: Option<f64>,
    is_gone: bool,
}

impl Conditions {
    /// Interval between two calls of [`Conditions::sample`].
    pub const INTERVAL: Duration = Duration::from_millis(50);

    /// Returns facts about the machine at the start of a trial, each with its name, for the record.
    pub fn facts() -> Vec<(String, String)> {
        let read = |path: &str| {
            fs::read_to_string(path)
                .ok()
                .map(|text| text.trim().to_owned())
        };
        [
            ("load-before", "/proc/loadavg"),
            ("thp", "/sys/kernel/mm/transparent_hugepage/enabled"),
            ("ksm", "/sys/kernel/mm/ksm/run"),
            ("numa-nodes", "/sys/devices/system/node/online"),
            (
                "governor",
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            ),
            ("preemption", "/sys/kernel/debug/sched/preempt"),
        ]
        .into_iter()
        .filter_map(|(name, path)| Some((name.to_owned(), read(path)?)))
        .chain(proactive::find().map(|found| ("proactive-reclaim".to_owned(), found.what)))
        .collect()
    }

    /// Fails if less than [`MIN_AVAILABLE`] of the machine's memory would stay available once a trial uses `wanted`
    /// bytes: its memory limit, plus the size of its swap area if that is zram. Called before a trial.
    pub fn enough(wanted: Bytes) -> Result<(), Doubt> {
        let amount = |name| meminfo::amount(name).unwrap_or_default();
        let (available, total) = (amount("MemAvailable"), amount("MemTotal"));
        let rest = Bytes(available.0.saturating_sub(wanted.0));
        if (rest.0 as f64) < MIN_AVAILABLE * total.0 as f64 {
            return Err(Doubt::LittleMemory {
                available: rest,
                total,
            });
        }
        Ok(())
    }

    /// Reads the conditions before a trial in this cgroup.
    pub fn before(group: &Group) -> Self {
        let amount = |name| meminfo::amount(name).unwrap_or_default();
        Self {
            before: Reading::of(group),
            began: Instant::now(),
            least_available: amount("MemAvailable"),
            total: amount("MemTotal"),
            foreign: Bytes(0),
            lowest_frequency: frequency(),
            is_gone: false,
        }
    }

    /// Reads available memory, use of the swap area by other processes, and CPU frequency during a trial. Returns a
    /// reason for doubt if the trial should be ended now; else `None`.
    pub fn sample(&mut self, group: &Group, swap: Option<&SwapDevice>) -> Option<Doubt> {
        if group.usage().is_none() {
            self.is_gone = true;
            return Some(Doubt::GroupGone);
        }
        let available = meminfo::amount("MemAvailable").unwrap_or_default();
        self.least_available = self.least_available.min(available);
        if let Some(swap) = swap {
            let now: ForeignUse = swap.foreign_use(group);
            self.foreign = self.foreign.max(now.certain());
        }
        if let Some(now) = frequency() {
            self.lowest_frequency = Some(self.lowest_frequency.map_or(now, |low| low.min(now)));
        }
        self.short().or_else(|| self.shared())
    }

    fn short(&self) -> Option<Doubt> {
        let short = (self.least_available.0 as f64) < MIN_AVAILABLE * self.total.0 as f64;
        short.then_some(Doubt::LittleMemory {
            available: self.least_available,
            total: self.total,
        })
    }

    fn shared(&self) -> Option<Doubt> {
        (self.foreign.0 > 0).then(|| Doubt::ForeignSwap {
            size: self.foreign,
            by: proactive::find().map_or_else(String::new, |found| {
                format!(" ({} reclaims in advance here)", found.what)
            }),
        })
    }

    /// Reads the conditions after the trial, before its cgroup is removed. Returns all reasons for doubt.
    pub fn after(self, group: &Group) -> Vec<Doubt> {
        let after = Reading::of(group);
        let span = self.began.elapsed();
        let mut doubts = Vec::new();
        if self.is_gone || group.usage().is_none() {
            doubts.push(Doubt::GroupGone);
        }
        doubts.extend(self.short());
        doubts.extend(self.shared());
        if !doubts.contains(&Doubt::GroupGone) {
            doubts.extend(compared(&self.before, &after, span));
        }
        if let Some(share) = self.lowest_frequency.filter(|share| *share < MIN_FREQUENCY) {
            doubts.push(Doubt::Slow(share * 100.0));
        }
        doubts
    }
}

/// Returns the reasons for doubt that follow from comparing two readings, the second of which was made `span` after the
/// first.
fn compared(before: &Reading, after: &Reading, span: Duration) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let change = |now: &Counters, then: &Counters, names: &[&str]| {
        let (now, then) = (now.sum(names).unwrap_or(0), then.sum(names).unwrap_or(0));
        now.saturating_sub(then)
    };
    // Counter names differ between versions 1 and 2 of cgroups. Cgroups of version 1 count major faults, but not
    // swapped pages, so swapping by other processes cannot be told from swapping by the group there.
    for (what, of_machine, of_group) in [
        ("swapped in", ["pswpin", ""], ["pswpin", "total_pswpin"]),
        ("swapped out", ["pswpout", ""], ["pswpout", "total_pswpout"]),
        (
            "reclaimed",
            ["pgsteal_kswapd", "pgsteal_direct"],
            ["pgsteal_kswapd", "pgsteal_direct"],
        ),
    ] {
        if what != "reclaimed" && after.group.sum(&of_group).is_none() {
            continue;
        }
        let all = change(&after.vmstat, &before.vmstat, &of_machine);
        let ours = change(&after.group, &before.group, &of_group);
        let pages = all.saturating_sub(ours);
        if pages > MAX_OTHER_PAGES {
            doubts.push(Doubt::OtherReclaim { what, pages });
        }
    }
    let all = after.cpu.all.saturating_sub(before.cpu.all).max(1) as f64;
    let seconds = span.as_secs_f64().max(1e-3);
    let mut others = f64::INFINITY;
    if let (Some(now), Some(then)) = (after.group_cpu, before.group_cpu) {
        // Both are shares of the time of all CPUs: the group's is measured in microseconds, the machine's in clock
        // ticks.
        let cpus = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
        let ours = now.saturating_sub(then) as f64 / 1e6 / seconds / cpus;
        let busy = after.cpu.busy.saturating_sub(before.cpu.busy) as f64 / all;
        others = busy - ours;
        if others > MAX_OTHER_CPU {
            doubts.push(Doubt::Busy(others * 100.0));
        }
    }
    let steal = after.cpu.steal.saturating_sub(before.cpu.steal) as f64 / all;
    if steal > MAX_STEAL {
        doubts.push(Doubt::Steal(steal * 100.0));
    }
    let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / 1e9 / seconds;
    let waited = share(after.group_cpu_wait, before.group_cpu_wait);
    if waited > MAX_CPU_WAIT && others > SOME_OTHER_CPU {
        doubts.push(Doubt::CpuWait(waited * 100.0));
    }
    let of_group = share(after.group_memory_wait, before.group_memory_wait);
    let waited = share(after.memory_wait, before.memory_wait) - of_group;
    if waited > MAX_OTHER_MEMORY_WAIT {
        doubts.push(Doubt::OtherMemoryWait(waited * 100.0));
    }
    let times = after.throttled.saturating_sub(before.throttled);
    if times > 0 {
        doubts.push(Doubt::Throttled(times));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(busy: u64, vmstat: &[(&str, u64)], group: &[(&str, u64)]) -> Reading {
        Reading {
            cpu: CpuTime {
                busy,
                steal: 0,
                all: 1000,
            },
            vmstat: vmstat.iter().copied().collect(),
            group: group.iter().copied().collect(),
            group_cpu: Some(0),
            ..Reading::default()
        }
    }

    #[test]
    fn processor_time_is_read_with_steal_apart() {
        let text = "cpu  10 1 5 100 20 1 2 3 0 0\ncpu0 1 1 1 1 1 1 1 1\n";
        let time = CpuTime::parse(text);
        assert_eq!((time.busy, time.steal, time.all), (19, 3, 142));
    }

    #[test]
    fn pages_of_the_group_are_no_reason_for_doubt_and_those_of_others_are() {
        let span = Duration::from_secs(1);
        let before = Reading {
            cpu: CpuTime::default(),
            ..reading(0, &[("pswpin", 0)], &[("pswpin", 0)])
        };
        let quiet = reading(0, &[("pswpin", 70_000)], &[("pswpin", 69_500)]);
        assert_eq!(compared(&before, &quiet, span), []);
        let loud = reading(0, &[("pswpin", 70_000)], &[("pswpin", 60_000)]);
        let doubts = compared(&before, &loud, span);
        assert_eq!(
            doubts,
            [Doubt::OtherReclaim {
                what: "swapped in",
                pages: 10_000
            }]
        );
        assert!(!doubts[0].is_invalid());
    }

    #[test]
    fn processes_of_a_group_that_wait_for_each_other_are_no_reason_for_doubt() {
        let span = Duration::from_secs(1);
        let before = Reading {
            cpu: CpuTime::default(),
            ..reading(0, &[], &[])
        };
        let waited = |busy| Reading {
            group_cpu_wait: 800_000_000,
            ..reading(busy, &[], &[])
        };
        assert_eq!(compared(&before, &waited(10), span), []);
        assert_eq!(compared(&before, &waited(50), span), [Doubt::CpuWait(80.0)]);
    }

    #[test]
    fn a_busy_machine_makes_times_doubtful_only() {
        let span = Duration::from_secs(1);
        let before = Reading {
            cpu: CpuTime::default(),
            ..reading(0, &[], &[])
        };
        let doubts = compared(&before, &reading(500, &[], &[]), span);
        assert_eq!(doubts, [Doubt::Busy(50.0)]);
        assert!(doubts[0].is_of_times() && !doubts[0].is_invalid());
    }
}
