//! Results of the search for the smallest memory size that is enough: its answer, and the runs at each tested size.

use std::collections::BTreeMap;
use std::str::FromStr;

use pagetide_quantity::{Bytes, Direction, Metric, Series};
use pagetide_record::RecordReader;
use pagetide_store::{CampaignNote, Row, Store};
use pagetide_verdict::number;
use pagetide_verdict::squeeze::{Answer, Design, Outcome};
use serde::{Deserialize, Serialize};

use crate::error::CompareError;
use crate::pressure::PressureMeanings;
use crate::tried::{Pressed, RunMeans, TriedSize};

/// Text in the reason of an invalid trial whose program was ended at its time limit.
const AT_TIME_LIMIT: &str = "was ended at its time limit";
/// Text in the reason of an invalid trial whose program was killed at the limit of its memory cgroup.
const AT_LIMIT: &str = "at the limit of its memory group";
/// Text in the reason of an invalid trial in which the machine ran out of memory.
const OUT_OF_MEMORY: &str = "for lack of memory after";
/// Text in the reason of an invalid trial in which the kernel killed a process although memory could be reclaimed.
const TO_SPARE: &str = "with memory to spare";
/// Metric of the time during which at least one task waited for memory.
const SOME: &str = "psi-memory-some";
/// Metric of the time during which all non-idle tasks waited for memory.
const FULL: &str = "psi-memory-full";
/// Minimum number of memory samples of a run from which the peak is reported.
const MIN_SAMPLES: usize = 10;
/// A sample counts as near the peak if its memory in use is at least this share of that in the largest sample.
const NEARLY_MOST: f64 = 0.98;

/// A program is ended if it takes this many times as long as with the largest memory (`plenty`), because it is already
/// known to be too slow.
pub const CUT: f64 = 5.0;

/// The quantity that is searched: memory of the machine, or the limit of the program's memory cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// Memory of the machine that is available to the workload.
    Memory,
    /// Limit of the program's memory cgroup (`memory.max`).
    Limit,
}

impl FromStr for Knob {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "memory" => Ok(Self::Memory),
            "limit" => Ok(Self::Limit),
            _ => Err("give limit or memory"),
        }
    }
}

/// Result of a search, finished or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqueezeResult {
    /// Label of the cell with the largest memory (`plenty`).
    pub cell: String,
    /// The quantity that was searched.
    pub knob: Knob,
    /// Name of the metric that decides whether a size is enough.
    pub metric: String,
    /// Design of the search: sizes, allowed slowdown, seeds and runs.
    pub design: Design,
    /// The sizes found to be enough and too small.
    pub answer: Answer,
    /// Number of runs, including the observed one.
    pub runs: u32,
    /// The tested sizes, in ascending order.
    pub curve: Vec<TriedSize>,
    /// The size at which the curve bends most, in bytes; `None` if there is no clear bend.
    pub knee: Option<u64>,
    /// Slowdown as a function of memory pressure (PSI) on this kernel.
    pub pressure: PressureMeanings,
    /// What filled memory at the smallest size that is enough, from an observed run; `None` without such a run.
    pub resident: Option<Resident>,
    /// Warnings about the answer.
    pub cautions: Vec<String>,
    /// ID of the campaign with the records.
    pub campaign: String,
}

/// The runs at one size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs {
    /// Outcome of each run, by block number of its seed.
    pub outcomes: BTreeMap<u32, Outcome>,
    /// Reason why a run is invalid through a fault of the host machine; `None` if there was no such run.
    pub accident: Option<String>,
    /// Shares of the time during which at least one task and all non-idle tasks waited for memory, by block number of
    /// the seed.
    pub waited: BTreeMap<u32, [f64; 2]>,
    /// Means over the runs that finished.
    pub means: RunMeans,
}

impl Runs {
    /// Compares each finished run with the run of the same seed in `plenty`, the runs at the largest memory.
    pub fn pressed(&self, plenty: &Self) -> Vec<Pressed> {
        let run = |(seed, [some, full]): (&u32, &[f64; 2])| match (
            self.outcomes.get(seed)?,
            plenty.outcomes.get(seed)?,
        ) {
            (Outcome::Cost(cost), Outcome::Cost(base)) => Some(Pressed {
                seed: *seed,
                slowdown: cost / base - 1.0,
                some: *some,
                full: *full,
            }),
            _ => None,
        };
        self.waited.iter().filter_map(run).collect()
    }

    /// Reads the timed runs of a cell of a campaign from the store.
    pub fn of(
        store: &Store,
        note: &CampaignNote,
        cell: usize,
        metric: &str,
    ) -> Result<Self, CompareError> {
        let mut runs = Self::default();
        let mut valid: Vec<(u32, Row)> = Vec::new();
        for entry in note.entries.iter().filter(|entry| entry.cell == cell) {
            let rows = store.by_keys(std::slice::from_ref(&entry.key))?;
            let sound = rows.iter().position(|row| !row.accident).unwrap_or(0);
            let Some(row) = rows.into_iter().nth(sound) else {
                continue;
            };
            match row.invalid.clone() {
                None => valid.push((entry.unit, row)),
                Some(why) if row.accident => runs.accident = Some(why.to_string()),
                Some(why) => {
                    let died = Outcome::Died(short(&why));
                    runs.outcomes.insert(entry.unit, died);
                }
            }
        }
        let Some((_, first)) = valid.first() else {
            return Ok(runs);
        };
        let scenario = first.cell.subject.scenario.clone();
        let places: Vec<i64> = valid.iter().map(|(_, row)| row.row).collect();
        let metrics = store.metrics(&scenario, &places)?;
        for (unit, row) in &valid {
            let outcome = cost(&metrics, row.row, metric);
            runs.outcomes.insert(*unit, outcome);
        }
        let of_run = |row: &Row, name: &str, share: bool| {
            let value = value(&metrics, row.row, name)?.value.number()?;
            let whole = if share { row.elapsed.0 as f64 } else { 1.0 };
            (whole > 0.0).then_some(value / whole)
        };
        let mean = |name: &str, share: bool| {
            let values = valid.iter().filter_map(|(_, row)| of_run(row, name, share));
            number::mean(&values.collect::<Vec<f64>>()).ok()
        };
        let waited = |(unit, row): &(u32, Row)| {
            let of = |name| of_run(row, name, true);
            Some((*unit, [of(SOME)?, of(FULL)?]))
        };
        runs.waited = valid.iter().filter_map(waited).collect();
        let elapsed: Vec<f64> = valid.iter().map(|(_, row)| row.elapsed.0 as f64).collect();
        runs.means = RunMeans {
            elapsed: number::mean(&elapsed).ok(),
            refaults: mean("refaults", false),
            swapped_out: mean("swapped-out", false),
            psi_some: mean(SOME, true),
            psi_full: mean(FULL, true),
            group_peak: mean("group-peak", false),
        };
        Ok(runs)
    }
}

pub(crate) fn value<'a>(metrics: &'a [(i64, Metric)], row: i64, name: &str) -> Option<&'a Metric> {
    let found = metrics.iter().find(|(of, m)| *of == row && m.name == name);
    found.map(|(_, metric)| metric)
}

/// Returns the value of a metric in a run as a cost: the reciprocal if higher is better. If there is no positive value,
/// returns that the run died.
pub(crate) fn cost(metrics: &[(i64, Metric)], row: i64, name: &str) -> Outcome {
    let Some(metric) = value(metrics, row, name) else {
        return Outcome::Died(format!("it has no metric {name}"));
    };
    match metric.value.number() {
        Some(number) if number > 0.0 && metric.direction == Direction::Higher => {
            Outcome::Cost(1.0 / number)
        }
        Some(number) if number > 0.0 => Outcome::Cost(number),
        Some(number) => Outcome::Died(format!(
            "its {name} is {number}, of which there is no share"
        )),
        None => Outcome::Died(format!("it gave no {name}")),
    }
}

/// Shortens the reason of a failed run to a few words that can follow "it". Advice is left out.
pub(crate) fn short(why: &str) -> String {
    for (part, words) in [
        (AT_LIMIT, "was killed at its limit"),
        (OUT_OF_MEMORY, "was killed for lack of memory"),
        (TO_SPARE, "was killed with memory to spare"),
    ] {
        if why.contains(part) {
            return words.to_owned();
        }
    }
    if let Some(why) = why.strip_prefix("the scenario stopped: ") {
        return format!("stopped ({why})");
    }
    let what = why.split_once(": ").map_or(why, |(what, _)| what);
    match what
        .strip_prefix("the program ")
        .or_else(|| what.strip_prefix("the scenario "))
    {
        Some(did) => did.to_owned(),
        None => format!("died: {what}"),
    }
}

impl TriedSize {
    /// True if a run at this size was ended because it took too long.
    pub fn was_cut(&self) -> bool {
        let died = self.point.died.as_deref();
        died.is_some_and(|why| why.contains(AT_TIME_LIMIT))
    }
}

/// What filled the machine's memory at its peak, by kind, minus what was there before the workload began. Processes
/// that watch the program are included, although they do not count towards the program's limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resident {
    /// Size of anonymous memory.
    pub anon: Bytes,
    /// Size of the page cache, including shared memory.
    pub file: Bytes,
    /// Size of the kernel's memory for the workload: slabs and page tables.
    pub kernel: Bytes,
    /// Size of other memory in use, such as the content of zram.
    pub rest: Bytes,
    /// Peak memory of the program's memory cgroup, including files; `None` if the program had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Bytes>,
}

impl Resident {
    /// Returns what filled memory in an observed record; `None` if the record has too few samples.
    pub fn of(reader: &RecordReader) -> Option<Self> {
        let mut resident = Self::at_peak(&reader.series("meminfo").ok()?)?;
        let mut metrics = reader.record().results.metrics.iter();
        let peak = metrics.find(|metric| metric.name == "group-peak");
        resident.group = peak.and_then(|peak| peak.value.number()).map(bytes);
        Some(resident)
    }

    /// Returns one of the samples near the peak: the one with the most memory that belongs to processes, files or the
    /// kernel.
    ///
    /// Under a limit, memory stays equally full for a long time. When the workload ends, its pages first leave their
    /// address spaces and are freed a moment later. A sample taken between these two moments shows the same memory in
    /// use, but the pages belong to no process.
    fn at_peak(series: &Series) -> Option<Self> {
        if series.rows() < MIN_SAMPLES {
            return None;
        }
        let used = |row| Some(-change(series, "MemFree", row)?);
        let most = (0..series.rows()).filter_map(used).max_by(f64::total_cmp)?;
        (0..series.rows())
            .filter(|row| used(*row).is_some_and(|used| used >= most * NEARLY_MOST))
            .filter_map(|row| Self::at(series, row))
            .max_by_key(|resident| resident.anon.0 + resident.file.0 + resident.kernel.0)
    }

    fn at(series: &Series, row: usize) -> Option<Self> {
        let used = -change(series, "MemFree", row)?;
        let of = |name| change(series, name, row).unwrap_or(0.0);
        let (anon, file) = (of("AnonPages"), of("Cached"));
        let kernel = of("Slab") + of("PageTables");
        Some(Self {
            anon: bytes(anon),
            file: bytes(file),
            kernel: bytes(kernel),
            rest: bytes(used - anon - file - kernel),
            group: None,
        })
    }
}

/// Returns the value of a column in a row minus its value in the first row; `None` if the column or the row does not
/// exist.
fn change(series: &Series, name: &str, row: usize) -> Option<f64> {
    let column = series.column(name)?;
    Some(column.get(row)? - column.get(0)?)
}

fn bytes(value: f64) -> Bytes {
    Bytes(pagetide_quantity::floor(value.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_quantity::Unit;
    use pagetide_record::Invalid;

    #[test]
    fn a_reason_is_printed_without_its_remedy() {
        let why = "the kernel killed sort after 2 s at the limit of its memory group, not of the machine: raise --limit";
        assert_eq!(short(why), "was killed at its limit");
        let invalid = Invalid::OutOfMemory {
            process: "sort".into(),
            after: pagetide_quantity::Nanos(1),
        };
        assert_eq!(short(&invalid.to_string()), "was killed for lack of memory");
        let invalid = Invalid::OutOfLimit {
            process: "sort".into(),
            after: pagetide_quantity::Nanos(1),
        };
        assert_eq!(short(&invalid.to_string()), "was killed at its limit");
        assert_eq!(
            short("the program was ended at its time limit of 5 s: give a smaller task"),
            "was ended at its time limit of 5 s"
        );
    }

    #[test]
    fn every_reason_goes_on_from_it() {
        let invalid = Invalid::Scenario {
            why: "member 3: cannot map 40 MiB of memory".into(),
        };
        assert_eq!(
            short(&invalid.to_string()),
            "stopped (member 3: cannot map 40 MiB of memory)"
        );
        let invalid = Invalid::Hang {
            span: pagetide_quantity::Nanos(5_000_000_000),
            clock: "virtual".into(),
        };
        assert!(short(&invalid.to_string()).starts_with("made no progress for 5"));
        let invalid = Invalid::Panic {
            reason: "Out of memory".into(),
        };
        assert_eq!(
            short(&invalid.to_string()),
            "died: the guest kernel panicked (Out of memory)"
        );
    }

    #[test]
    fn memory_of_an_exited_workload_is_not_reported_as_resident() {
        const MIB: i64 = 1 << 20;
        // Memory in use by processes and by files, in MiB, for each sample. The workload exits at the end.
        let mut samples = vec![(0, 0, 0), (10, 8, 1)];
        samples.extend([(18, 15, 2); 8]);
        samples.extend([(18, 17, 1), (18, 0, 1), (2, 0, 1)]);
        let column = |of: fn(&(i64, i64, i64)) -> i64| {
            let values: Vec<i64> = samples.iter().map(|sample| of(sample) * MIB).collect();
            values
        };
        let series = Series::new("meminfo")
            .int("MemFree", Unit::Bytes, column(|(used, ..)| 64 - used))
            .int("AnonPages", Unit::Bytes, column(|(_, anon, _)| 70 + anon))
            .int("Cached", Unit::Bytes, column(|(.., file)| *file));
        let found = Resident::at_peak(&series).unwrap();
        let mib = |count: u64| Bytes(count << 20);
        assert_eq!(
            found,
            Resident {
                anon: mib(17),
                file: mib(1),
                kernel: mib(0),
                rest: mib(0),
                group: None,
            }
        );
        assert_eq!(Resident::at_peak(&Series::new("meminfo")), None);
    }

    #[test]
    fn more_of_a_rate_costs_less_and_nothing_has_no_share() {
        let metric = |direction, value| {
            let metric = Metric {
                name: "x".into(),
                unit: Unit::Count,
                direction,
                primary: true,
                value: pagetide_quantity::Value::Number(value),
            };
            [(1, metric)]
        };
        let of = |direction, value| cost(&metric(direction, value), 1, "x");
        assert_eq!(of(Direction::Higher, 4.0), Outcome::Cost(0.25));
        assert_eq!(of(Direction::Lower, 4.0), Outcome::Cost(4.0));
        assert!(matches!(of(Direction::Lower, 0.0), Outcome::Died(_)));
        assert!(matches!(cost(&[], 1, "x"), Outcome::Died(_)));
    }
}
