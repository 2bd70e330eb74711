//! Evidence for a mechanism: counters, settings and metrics that differ between the sides, with the values of both
//! sides.

use pagetide_probe::meaning::{Part, RowId};
use pagetide_quantity::Unit;
use serde::Serialize;

use super::account::{
    Amounts, CONTIGUITY, CounterGrowth, CpuHolder, PassAccount, SCANNED, SCANNED_DIRECT, STALLS,
    STOLEN, STOLEN_DIRECT, SideView,
};
use super::effects::KERNEL;
use super::mechanism::Mechanism;

/// A value that differs between the sides, as evidence for a mechanism.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Name of the value. For a counter or a setting, this is the kernel's name.
    pub name: String,
    /// Unit of the value.
    pub unit: Unit,
    /// Value on the baseline's side.
    pub before: Reading,
    /// Value on the other side.
    pub after: Reading,
    /// Kind of trial that the value comes from.
    pub source: Source,
}

/// A value of evidence: a number or a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reading {
    /// A number, in the unit of the evidence.
    Number(f64),
    /// Text, such as the value of a setting.
    Text(String),
}

/// Kind of trial from which a value of evidence was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The value is the mean over the timed trials of all seeds.
    Timed,
    /// The value is the mean over the observed passes.
    Observed,
    /// The value is part of the definition of the trials, such as a setting.
    Setting,
}

/// Two numbers count as different if they differ by more than this share.
const CHANGE_SHARE: f64 = 0.001;
/// Counters of moves between and within the LRU lists: activations, deactivations, and pages moved to the end of a list
/// to be reclaimed next.
pub const LIST_MOVES: [&str; 3] = ["pgactivate", "pgdeactivate", "pgrotated"];
/// Maximum number of kernel functions with sleeps that are listed.
const MAX_SITES: usize = 3;
/// Names of the settings that limit dirty memory, in pairs. Of each pair, the setting that is not zero applies.
const DIRTY: [&str; 4] = [
    "vm.dirty_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_background_bytes",
];

/// Collects evidence for one mechanism.
struct Collector<'a> {
    sides: [SideView<'a>; 2],
    /// Effect that needs evidence, in nanoseconds or in the unit of a metric. Only its sign counts: positive if the
    /// other side has more than the baseline, 0 if the sign is not known.
    effect: f64,
    /// Expected direction of a number compared with the effect: 1 for the same direction, -1 for the opposite, 0 for
    /// any.
    sense: f64,
    found: Vec<Evidence>,
}

/// Returns all evidence for an effect of a mechanism, the most direct first. Numbers that did not change, or changed
/// against the direction expected for this effect (if one is expected), are left out, except the number and length of
/// sleeps.
pub fn evidence(
    mechanism: Mechanism,
    effect: f64,
    a: SideView<'_>,
    b: SideView<'_>,
) -> Vec<Evidence> {
    let mut all = Collector {
        sides: [a, b],
        effect,
        sense: 1.0,
        found: Vec::new(),
    };
    match mechanism {
        Mechanism::EvictionChoice => all.pages_back(),
        Mechanism::SharedMemory => all.memory(),
        Mechanism::ReadAhead | Mechanism::SwapLayout => {
            all.pages_a_wait();
            if mechanism == Mechanism::SwapLayout {
                all.inverse(|all| all.level(CONTIGUITY, "contiguity on the device", Unit::Share));
                all.level("mean-jump", "mean jump on the device", Unit::Pages);
            } else {
                all.settings(&["vm.page-cluster", "swap/vma_ra_enabled"]);
            }
            all.inverse(|all| {
                all.counters(Unit::Pages, &["swap_ra"]);
                all.counters(Unit::Pages, &["swap_ra_hit"]);
            });
            all.counters(Unit::Count, &["pgmajfault"]);
        }
        Mechanism::DeviceLatency | Mechanism::DeviceQueue => {
            all.request("time a read request", |observed| observed.read);
            all.request("time a write request", |observed| observed.write);
            all.settings(&["swap"]);
            all.wait("time a wait for a device");
        }
        Mechanism::SeenWaits | Mechanism::UnknownWaits => {
            let seen = mechanism == Mechanism::SeenWaits;
            all.blocked(Part::IoWait, "time blocked outside reclaim", seen);
        }
        Mechanism::SeenReclaimWaits | Mechanism::ReclaimWaits => {
            let seen = mechanism == Mechanism::SeenReclaimWaits;
            all.blocked(Part::ReclaimWait, "time blocked within reclaim", seen);
        }
        Mechanism::DirtyLimits => {
            all.time(Part::DirtyLimit, "time held by the dirty limits");
            all.sleeps(Part::DirtyLimit);
            all.counters(Unit::Pages, &["nr_dirtied"]);
            all.settings(&DIRTY);
        }
        Mechanism::WriteBack => {
            all.row(
                RowId::TimeThrottled,
                "time reclaim was throttled",
                Unit::Nanos,
            );
            all.time(Part::ReclaimWait, "time blocked within reclaim");
            all.request("time a write request", |observed| observed.write);
            all.counters(Unit::Pages, &["nr_throttled_written"]);
            all.counters(Unit::Pages, &["nr_vmscan_immediate_reclaim"]);
            all.counters(Unit::Pages, &["pswpout"]);
            all.settings(&["swap"]);
        }
        Mechanism::DirectReclaim => {
            all.time(Part::Reclaim, "direct reclaim on a CPU");
            all.counters(Unit::Count, &STALLS);
            all.counters(Unit::Pages, &STOLEN_DIRECT);
            all.counters(Unit::Pages, &STOLEN);
        }
        Mechanism::ScanEfficiency => {
            all.counted(
                "scanned for each page reclaimed directly",
                Unit::Ratio,
                |c| ratio(c.sum(&SCANNED_DIRECT), c.sum(&STOLEN_DIRECT)),
            );
            all.counters(Unit::Pages, &SCANNED);
            all.settings(&["lru_gen/enabled"]);
        }
        Mechanism::Compaction => all.compaction(),
        Mechanism::BackgroundReclaim => {
            all.queued(CpuHolder::Kswapd, "waiting for a CPU that kswapd had");
            all.queued(CpuHolder::Other, &all.others());
            all.row(RowId::TimeKswapdAwake, "time kswapd was awake", Unit::Nanos);
            all.counters(Unit::Pages, &["pgscan_kswapd"]);
            all.counters(Unit::Pages, &["pgsteal_kswapd"]);
        }
        Mechanism::Faults => {
            all.counters(Unit::Count, &["pgfault"]);
            all.counted_time(Part::Fault, "time a fault, outside reclaim", |c| {
                c.get("pgfault")
            });
        }
        Mechanism::Compute => {
            all.level("user", "user mode", Unit::Nanos);
            all.time(Part::Compute, "user mode in the observed pass");
        }
    }
    all.found
}

fn number(name: &str, unit: Unit, [before, after]: [f64; 2], source: Source) -> Evidence {
    Evidence {
        name: name.to_owned(),
        unit,
        before: Reading::Number(before),
        after: Reading::Number(after),
        source,
    }
}

/// Returns the sign of the change from the first to the second value; 0 if they differ by at most [`CHANGE_SHARE`].
fn way([before, after]: [f64; 2]) -> f64 {
    if (after - before).abs() > CHANGE_SHARE * before.abs().max(after.abs()) {
        (after - before).signum()
    } else {
        0.0
    }
}

/// Part divided by whole; `None` if the whole is zero.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

impl<'a> Collector<'a> {
    /// Adds the number of pages read back per wait, which is expected to fall if the time grows.
    fn pages_a_wait(&mut self) {
        self.inverse(|all| {
            all.counted("pages each wait brought", Unit::Ratio, |c| {
                ratio(c.back(), c.get("pgmajfault"))
            });
        });
    }

    /// Adds evidence for compaction.
    fn compaction(&mut self) {
        self.counters(Unit::Count, &["compact_stall"]);
        self.counters(Unit::Count, &["compact_fail"]);
        self.counters(
            Unit::Pages,
            &["compact_migrate_scanned", "compact_daemon_migrate_scanned"],
        );
        self.counters(
            Unit::Pages,
            &["compact_free_scanned", "compact_daemon_free_scanned"],
        );
        self.counters(Unit::Pages, &["pgmigrate_success"]);
        // More huge pages may cost time or save time.
        self.sense = 0.0;
        self.counters(Unit::Count, &["thp_fault_alloc"]);
        self.sense = 1.0;
        self.queued(CpuHolder::Kcompactd, "waiting for a CPU that kcompactd had");
        self.inverse(|all| all.level("success", "attempts that got their block", Unit::Share));
        self.level("unusable-1", "free memory in blocks too small", Unit::Share);
        self.settings(&["vm.compaction_proactiveness"]);
    }

    /// Adds evidence for the number of pages that were needed again.
    fn pages_back(&mut self) {
        self.counters(Unit::Pages, &["workingset_refault_anon"]);
        self.counters(Unit::Pages, &["workingset_refault_file"]);
        self.list_moves();
        self.counters(Unit::Pages, &["pswpin"]);
        self.settings(&["lru_gen/enabled", "vm.swappiness"]);
        self.counted("pages back from devices", Unit::Pages, |c| Some(c.back()));
    }

    /// Adds counters of moves between the LRU lists if the kernels differ, because they show the effect of a patch. Any
    /// direction of change counts, because more moves may mean more or less time.
    fn list_moves(&mut self) {
        let [a, b] = self.sides.map(|side| side.account.settings.get(KERNEL));
        if a == b {
            return;
        }
        let sense = std::mem::replace(&mut self.sense, 0.0);
        for name in LIST_MOVES {
            self.counters(Unit::Pages, &[name]);
        }
        self.sense = sense;
    }

    /// Adds evidence for different amounts of free memory, and for the pages that were read back because of the
    /// difference.
    fn memory(&mut self) {
        self.inverse(|all| {
            all.level("free-at-start", "free memory at the start", Unit::Bytes);
        });
        self.level("harness", "memory of the harness", Unit::Bytes);
        self.pages_back();
        self.pages_a_wait();
        self.counters(Unit::Count, &["pgmajfault"]);
    }

    /// Calls `collect`, which adds numbers that are expected to fall if the time grows.
    fn inverse(&mut self, collect: impl FnOnce(&mut Self)) {
        self.sense = -self.sense;
        collect(self);
        self.sense = -self.sense;
    }

    fn push(&mut self, name: &str, unit: Unit, values: [f64; 2], source: Source) {
        let way = way(values);
        if way != 0.0 && way * self.sense * self.effect >= 0.0 {
            self.found.push(number(name, unit, values, source));
        }
    }

    /// Returns the growth of counters in the trials whose time is explained: in the observed passes if both sides have
    /// one, otherwise in the timed trials.
    fn growth(&self) -> ([&'a Amounts; 2], Source) {
        match self.sides.map(|side| side.observed) {
            [Some(a), Some(b)] => ([&a.growth, &b.growth], Source::Observed),
            _ => (self.sides.map(|side| &side.account.growth), Source::Timed),
        }
    }

    /// Adds a number that is computed from counters.
    fn counted(
        &mut self,
        name: &str,
        unit: Unit,
        value: impl Fn(CounterGrowth<'_>) -> Option<f64>,
    ) {
        let (growth, source) = self.growth();
        if let [Some(a), Some(b)] = growth.map(|growth| value(CounterGrowth(growth))) {
            self.push(name, unit, [a, b], source);
        }
    }

    /// Adds the sum of those counters that the kernels of both sides have.
    fn counters(&mut self, unit: Unit, names: &[&str]) {
        let (growth, _) = self.growth();
        let known: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| growth.iter().all(|growth| growth.contains_key(*name)))
            .collect();
        // The name of a sum lists its counters, without counters that stayed at zero.
        let shown: Vec<&str> = known
            .iter()
            .copied()
            .filter(|name| {
                growth
                    .iter()
                    .any(|growth| CounterGrowth(growth).get(name) > 0.0)
            })
            .collect();
        if !shown.is_empty() {
            self.counted(&shown.join(" + "), unit, |counted| {
                Some(counted.sum(&known))
            });
        }
    }

    /// Adds the mean of a metric: over the observed passes if both sides have it there, otherwise over the timed
    /// trials.
    fn level(&mut self, key: &str, name: &str, unit: Unit) {
        let observed = self
            .sides
            .map(|side| side.observed?.levels.get(key).copied());
        if let [Some(a), Some(b)] = observed {
            self.push(name, unit, [a, b], Source::Observed);
        } else if let [Some(a), Some(b)] =
            self.sides.map(|side| side.account.levels.get(key).copied())
        {
            self.push(name, unit, [a, b], Source::Timed);
        }
    }

    fn settings(&mut self, names: &[&str]) {
        for name in names {
            if let [Some(a), Some(b)] = self.sides.map(|side| side.account.settings.get(*name))
                && a != b
            {
                self.found.push(Evidence {
                    name: (*name).to_owned(),
                    unit: Unit::Count,
                    before: Reading::Text(a.clone()),
                    after: Reading::Text(b.clone()),
                    source: Source::Setting,
                });
            }
        }
    }

    /// Adds the time of a part in the observed passes.
    fn time(&mut self, part: Part, name: &str) {
        if let [Some(a), Some(b)] = self.sides.map(|side| Some(side.observed?.time(part))) {
            self.push(name, Unit::Nanos, [a, b], Source::Observed);
        }
    }

    /// Adds the number, mean time and longest time of a part's sleeps in the observed passes. All three are added even
    /// if one did not change, because nothing else is known about the sleeps. Adds nothing if there were no sleeps, or
    /// if no other evidence was found and the mean time did not change in the direction of the effect.
    fn sleeps(&mut self, part: Part) {
        let [Some(a), Some(b)] = self.sides.map(|side| side.observed) else {
            return;
        };
        let count = [a, b].map(|seen| seen.slept(part));
        let each = [a, b].map(|seen| ratio(seen.time(part), seen.slept(part)).unwrap_or(0.0));
        let none = |values: [f64; 2]| values.iter().all(|value| *value <= 0.0);
        if none(count) || (self.found.is_empty() && way(each) * self.effect <= 0.0) {
            return;
        }
        let longest = [a, b].map(|seen| seen.longest.get(&part).copied().unwrap_or(0.0));
        for (name, unit, values) in [
            ("waits", Unit::Count, count),
            ("time a wait", Unit::Nanos, each),
            ("the longest", Unit::Nanos, longest),
        ] {
            if !none(values) {
                self.found
                    .push(number(name, unit, values, Source::Observed));
            }
        }
    }

    /// Adds time and sleeps of a part. If `seen`, the kernel functions that slept are added first.
    fn blocked(&mut self, part: Part, name: &str, seen: bool) {
        if seen {
            self.sites(part);
        }
        self.time(part, name);
        self.sleeps(part);
    }

    /// Adds the kernel functions in which tasks slept in a part, from stacks: those whose time changed most in the
    /// direction of the effect. For the first function, also adds the number of sleeps and their mean time.
    fn sites(&mut self, part: Part) {
        let [Some(a), Some(b)] = self.sides.map(|side| side.observed) else {
            return;
        };
        let mut names: Vec<&str> = [a, b]
            .into_iter()
            .flat_map(|seen| &seen.sites)
            .filter(|site| site.part == part)
            .map(|site| site.site.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        let times = |name: &str| [a, b].map(|seen| seen.slept_in(part, name)[1]);
        let change = |name: &str| {
            let [before, after] = times(name);
            after - before
        };
        names.retain(|name| change(name) * self.effect > 0.0);
        names.sort_by(|x, y| change(y).abs().total_cmp(&change(x).abs()));
        for (place, name) in names.into_iter().take(MAX_SITES).enumerate() {
            self.push(
                &format!("asleep in {name}"),
                Unit::Nanos,
                times(name),
                Source::Observed,
            );
            if place == 0 {
                let sleeps = [a, b].map(|seen| seen.slept_in(part, name));
                let each = sleeps.map(|[count, time]| ratio(time, count).unwrap_or(0.0));
                for (name, unit, values) in [
                    ("waits there", Unit::Count, sleeps.map(|[count, _]| count)),
                    ("time a wait there", Unit::Nanos, each),
                ] {
                    self.found
                        .push(number(name, unit, values, Source::Observed));
                }
            }
        }
    }

    /// Adds the time waiting for a CPU on which tasks of the kind `ahead` ran, in the observed passes.
    fn queued(&mut self, ahead: CpuHolder, name: &str) {
        let values = self.sides.map(|side| {
            let queue = &side.observed?.queue;
            Some(queue.get(&ahead).copied().unwrap_or(0.0))
        });
        if let [Some(a), Some(b)] = values {
            self.push(name, Unit::Nanos, [a, b], Source::Observed);
        }
    }

    /// Returns text for tasks outside the workload that ran on a CPU, with the name of the task that ran longest.
    fn others(&self) -> String {
        let observed = self.sides.iter().filter_map(|side| side.observed);
        let longest = observed
            .flat_map(|observed| &observed.others)
            .filter(|(name, time)| !name.is_empty() && **time > 0.0)
            .max_by(|(_, x), (_, y)| x.total_cmp(y));
        let most = longest.map_or(String::new(), |(name, _)| format!(", {name} above all,"));
        format!("waiting for a CPU that other tasks{most} had")
    }

    /// Adds the mean time of a device request in the observed passes.
    fn request(&mut self, name: &str, time: impl Fn(&PassAccount) -> Option<f64>) {
        if let [Some(a), Some(b)] = self.sides.map(|side| time(side.observed?)) {
            self.push(name, Unit::Nanos, [a, b], Source::Observed);
        }
    }

    /// Adds the time of a part divided by a count from the counters.
    fn counted_time(&mut self, part: Part, name: &str, count: impl Fn(CounterGrowth<'_>) -> f64) {
        let values = self.sides.map(|side| {
            let observed = side.observed?;
            ratio(observed.time(part), count(CounterGrowth(&observed.growth)))
        });
        if let [Some(a), Some(b)] = values {
            self.push(name, Unit::Nanos, [a, b], Source::Observed);
        }
    }

    /// Adds the mean time per wait, if the number of waits is known.
    fn wait(&mut self, name: &str) {
        let observed = self
            .sides
            .map(|side| side.observed.map(|seen| &seen.growth));
        let growth = match observed {
            [Some(a), Some(b)] => [a, b],
            _ => self.sides.map(|side| &side.account.growth),
        };
        if growth
            .iter()
            .any(|growth| !CounterGrowth(growth).waits_known())
        {
            return;
        }
        let waits = |c: CounterGrowth<'_>| c.get("pgmajfault");
        if let [Some(a), Some(b)] = self.sides.map(|side| side.observed) {
            // Divides by the number of sleeps. This may differ from the number of faults, because a fault can wait for
            // a page that another task reads.
            let each = |seen: &PassAccount| {
                let faults = waits(CounterGrowth(&seen.growth));
                let slept = seen.waits.get(&Part::IoWait).copied();
                ratio(seen.time(Part::IoWait), slept.unwrap_or(faults))
            };
            if let [Some(a), Some(b)] = [a, b].map(each) {
                self.push(name, Unit::Nanos, [a, b], Source::Observed);
            }
            return;
        }
        let values = self.sides.map(|side| {
            let processor = side.levels.get("user")? + side.levels.get("system")?;
            ratio(
                (side.elapsed - processor).max(0.0),
                waits(CounterGrowth(&side.growth)),
            )
        });
        if let [Some(a), Some(b)] = values {
            self.push(
                "time off the CPU for each major fault",
                Unit::Nanos,
                [a, b],
                Source::Timed,
            );
        }
    }

    /// Adds a row of the reclaim table as evidence.
    fn row(&mut self, row: RowId, name: &str, unit: Unit) {
        let values = self
            .sides
            .map(|side| side.observed?.rows.get(&row).copied());
        if let [Some(a), Some(b)] = values {
            self.push(name, unit, [a, b], Source::Observed);
        }
    }
}
