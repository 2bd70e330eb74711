//! Memory by kind over the time of an observed trial: of the machine, and of each memory group of the workload.
//!
//! The kinds are those of the kernel's counters that are sampled over time. They add up to the same sum at all times,
//! because what no counter tells is the kind *other*: it is 0 where the counters tell the most.

use std::io;

use pagetide_compare::Observation;
use pagetide_quantity::{ColumnData, Pages, Series, Unit};
use pagetide_record::file::FileError;
use pagetide_record::{ArenaKind, Invalid, Record, RecordReader};

use super::blob::Blobs;
use super::data::{MakeUp, Table};
use super::table::pack;
use crate::draw::clean;

/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 60;
/// Maximum number of memory groups whose memory is shown.
const MAX_GROUPS: usize = 16;
/// Maximum number of kills that are marked.
const MAX_KILLS: usize = 64;
/// Beginning of the name of a series with the memory of a group.
const GROUP: &str = "group-";
/// Phases at whose begin the clock of the series of groups starts. A trial has one of them.
const STARTS: [&str; 3] = ["run", "beside", "launch"];
/// Name of the kind for what no counter tells.
const OTHER: &str = "other";

/// Values of one kind in bytes, a value for each sample.
type Kind = (&'static str, Vec<i64>);

/// Memory by kind before it is encoded.
pub(crate) struct Kinds {
    /// Name of the group; empty for the machine.
    of: String,
    times: Vec<i64>,
    stacked: Vec<Kind>,
    lines: Vec<Kind>,
    kills: Vec<(u64, String)>,
}

/// Returns the memory by kind in an observed record: of the machine (not on the running kernel, where it is that of all
/// its programs), of the group around the workload, and of each group inside the workload. Series that the record does
/// not have, or that have fewer than two samples, are left out.
pub(crate) fn make_ups(reader: &RecordReader, seen: &Observation) -> Result<Vec<Kinds>, FileError> {
    let record = reader.record();
    let names: Vec<String> = reader.series_names().map(str::to_owned).collect();
    let read = |name: &str| -> Result<Option<Sampled>, FileError> {
        let known = names.iter().any(|other| other == name);
        let series = known.then(|| reader.series(name)).transpose()?;
        Ok(series.and_then(Sampled::of))
    };
    let mut all = Vec::new();
    if record.subject.arena.kind != ArenaKind::Host
        && let (Some(meminfo), Some(vmstat)) = (read("meminfo")?, read("vmstat")?)
    {
        let zram = names
            .iter()
            .filter(|name| name.split('-').next() == Some("zram"));
        let zram: Vec<Sampled> = zram
            .filter_map(|name| read(name).transpose())
            .collect::<Result<_, _>>()?;
        all.extend(machine(record, &meminfo, &vmstat, &zram));
    }
    if let Some(stat) = read("memory.stat")? {
        all.extend(around(&stat));
    }
    let shift = start(seen);
    for name in names
        .iter()
        .filter(|name| name.starts_with(GROUP))
        .take(MAX_GROUPS)
    {
        if let Some(group) = read(name)? {
            all.extend(inside(
                clean(&name[GROUP.len()..], NAME_CHARS, false),
                &group,
                shift,
            ));
        }
    }
    let kills = kills(record);
    for kinds in &mut all {
        kinds.kills.clone_from(&kills);
    }
    Ok(all)
}

/// Returns the time from the begin of the series of counters to that of the series of groups, in nanoseconds; 0 if
/// unknown.
fn start(seen: &Observation) -> i64 {
    let phases = &seen.phases;
    let begin = phases.iter().find(|phase| STARTS.contains(&&*phase.name));
    let since = begin.map_or(0, |phase| phase.begin.0.saturating_sub(seen.begin.0));
    i64::try_from(since).unwrap_or(0)
}

/// Returns the time and the process of each kill of the trial that the record tells.
fn kills(record: &Record) -> Vec<(u64, String)> {
    let kill = |why: &Invalid| match why {
        Invalid::OutOfMemory { process, after }
        | Invalid::OutOfLimit { process, after }
        | Invalid::GaveUp { process, after, .. } => {
            Some((after.0, clean(process, NAME_CHARS, false)))
        }
        _ => None,
    };
    let all = record.results.invalid.iter().filter_map(kill);
    all.take(MAX_KILLS).collect()
}

/// A series whose first column is the time, with at least two samples.
struct Sampled {
    times: Vec<i64>,
    series: Series,
}

impl Sampled {
    fn of(series: Series) -> Option<Self> {
        let times = match series.columns.first() {
            Some((head, ColumnData::Int(times))) if head.name == "time" && times.len() > 1 => {
                times.clone()
            }
            _ => return None,
        };
        Some(Self { times, series })
    }

    /// Returns a column in bytes; `None` if there is none of this name, or if it is no size. Negative values become 0.
    fn bytes(&self, name: &str) -> Option<Vec<i64>> {
        let (head, data) = self
            .series
            .columns
            .iter()
            .find(|(head, _)| head.name == name)?;
        let size = match head.unit {
            Unit::Bytes => 1,
            Unit::Pages => i64::try_from(Pages(1).bytes().0).ok()?,
            _ => return None,
        };
        let ColumnData::Int(values) = data else {
            return None;
        };
        let bytes = |value: &i64| value.max(&0).saturating_mul(size);
        Some(values.iter().map(bytes).collect())
    }
}

/// Returns the memory of the machine by kind; `None` if the series do not belong together or lack the kernel's lists.
fn machine(
    record: &Record,
    meminfo: &Sampled,
    vmstat: &Sampled,
    zram: &[Sampled],
) -> Option<Kinds> {
    if meminfo.times != vmstat.times {
        return None;
    }
    let mut stacked = vec![
        ("anonymous, active", vmstat.bytes("nr_active_anon")?),
        ("anonymous, inactive", vmstat.bytes("nr_inactive_anon")?),
        ("file, active", vmstat.bytes("nr_active_file")?),
        ("file, inactive", vmstat.bytes("nr_inactive_file")?),
    ];
    let same = zram.iter().filter(|zram| zram.times == meminfo.times);
    let stored = same.filter_map(|zram| zram.bytes("mem_used_total"));
    if let Some(stored) = stored.reduce(|a, b| combined(&a, &b, i64::saturating_add)) {
        stacked.push(("in zram", stored));
    }
    for (name, column) in [("slab", "Slab"), ("page tables", "PageTables")] {
        stacked.extend(meminfo.bytes(column).map(|values| (name, values)));
    }
    let free = meminfo.bytes("MemFree")?;
    let told = sums(stacked.iter().chain([&("free", free.clone())]));
    let most = told.iter().copied().max().unwrap_or(0);
    stacked.push((OTHER, told.iter().map(|sum| most - sum).collect()));
    stacked.push(("free", free));
    let mut lines = Vec::new();
    let counters = record.results.counters.get("meminfo");
    let total = counters.and_then(|counters| counters.values.get("SwapTotal"));
    if let (Some([total, _]), Some(free)) = (total, meminfo.bytes("SwapFree")) {
        let total = i64::try_from(*total).unwrap_or(i64::MAX);
        let used = |free: &i64| total.saturating_sub(*free).max(0);
        lines.push(("swap used", free.iter().map(used).collect()));
    }
    if let (Some(dirty), Some(written)) = (meminfo.bytes("Dirty"), meminfo.bytes("Writeback")) {
        let both = combined(&dirty, &written, i64::saturating_add);
        lines.push(("dirty or being written", both));
    }
    Some(Kinds::new(
        String::new(),
        meminfo.times.clone(),
        stacked,
        lines,
    ))
}

/// Returns the memory by kind of the group around the workload, from its `memory.stat`.
fn around(stat: &Sampled) -> Option<Kinds> {
    let stacked = vec![
        ("anonymous, active", stat.bytes("active_anon")?),
        ("anonymous, inactive", stat.bytes("inactive_anon")?),
        ("file, active", stat.bytes("active_file")?),
        ("file, inactive", stat.bytes("inactive_file")?),
    ];
    let name = "the workload".to_owned();
    Some(Kinds::new(name, stat.times.clone(), stacked, Vec::new()))
}

/// Returns the memory by kind of a group inside the workload, from its series, whose times are moved by `shift`.
fn inside(name: String, group: &Sampled, shift: i64) -> Option<Kinds> {
    let (anon, file) = (group.bytes("anon")?, group.bytes("file")?);
    let told = combined(&anon, &file, i64::saturating_add);
    let less = |all: i64, told: i64| all.saturating_sub(told).max(0);
    let other = combined(&group.bytes("memory")?, &told, less);
    let stacked = vec![("anonymous", anon), ("file", file), (OTHER, other)];
    let lines = group.bytes("swap").map(|swap| ("swap used", swap));
    let times = group.times.iter().map(|time| time.saturating_add(shift));
    let lines = lines.into_iter().collect();
    Some(Kinds::new(name, times.collect(), stacked, lines))
}

fn combined(a: &[i64], b: &[i64], with: fn(i64, i64) -> i64) -> Vec<i64> {
    a.iter().zip(b).map(|(a, b)| with(*a, *b)).collect()
}

/// Returns the sum of all kinds at each sample.
fn sums<'k>(kinds: impl Iterator<Item = &'k Kind>) -> Vec<i64> {
    let add = |sum: Vec<i64>, values: &Vec<i64>| combined(&sum, values, i64::saturating_add);
    let mut values = kinds.map(|(_, values)| values);
    let first = values.next().cloned().unwrap_or_default();
    values.fold(first, add)
}

impl Kinds {
    /// Leaves out kinds that are never there.
    fn new(of: String, times: Vec<i64>, mut stacked: Vec<Kind>, mut lines: Vec<Kind>) -> Self {
        let is_there = |(_, values): &Kind| values.iter().any(|value| *value > 0);
        stacked.retain(is_there);
        lines.retain(is_there);
        Self {
            of,
            times,
            stacked,
            lines,
            kills: Vec::new(),
        }
    }

    /// Encodes the values as blobs. `column` is the index of the variant, `record` the ID of the record.
    pub(crate) fn pack(
        self,
        column: usize,
        record: &str,
        blobs: &mut Blobs<'_>,
    ) -> io::Result<MakeUp> {
        let name = match &*self.of {
            "" => "memory".to_owned(),
            group => format!("memory-{group}"),
        };
        let stacked = self.stacked.len();
        let series = Series::new(&name).int("time", Unit::Nanos, self.times);
        let kinds = self.stacked.into_iter().chain(self.lines);
        let series = kinds.fold(series, |series, (name, values)| {
            series.int(name, Unit::Bytes, values)
        });
        Ok(MakeUp {
            of: self.of,
            stacked,
            kills: self.kills,
            table: Table {
                column,
                record: record.to_owned(),
                ..pack(&series, blobs)?
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use pagetide_record::Counters;

    use super::*;

    const MIB: i64 = 1 << 20;

    fn sampled(name: &str, times: &[i64], columns: &[(&str, Unit, &[i64])]) -> Sampled {
        let series = Series::new(name).int("time", Unit::Nanos, times.iter().copied());
        let add = |series: Series, (name, unit, values): &(&str, Unit, &[i64])| {
            series.int(name, *unit, values.iter().copied())
        };
        Sampled::of(columns.iter().fold(series, add)).expect("two samples and a time")
    }

    fn lists(times: &[i64]) -> Sampled {
        let (no, some) = (&[0, 0, 0][..], &[256, 512, -1][..]);
        let names = ["nr_active_anon", "nr_inactive_anon", "nr_active_file"];
        let mut columns = names.map(|name| (name, Unit::Pages, no)).to_vec();
        columns.push(("nr_inactive_file", Unit::Pages, some));
        sampled("vmstat", times, &columns)
    }

    fn values<'k>(kinds: &'k [Kind], name: &str) -> Option<&'k [i64]> {
        let found = kinds.iter().find(|(own, _)| *own == name);
        found.map(|(_, values)| &**values)
    }

    #[test]
    fn kinds_add_up_to_the_same_at_all_times_and_what_is_never_there_is_left_out() {
        let times = [0, 50, 100];
        let meminfo = sampled(
            "meminfo",
            &times,
            &[
                ("MemFree", Unit::Bytes, &[4 * MIB, 2 * MIB, MIB]),
                ("SwapFree", Unit::Bytes, &[8 * MIB, 7 * MIB, 9 * MIB]),
                ("Dirty", Unit::Bytes, &[0, 0, 0]),
                ("Writeback", Unit::Bytes, &[0, 0, 0]),
            ],
        );
        let total = u64::try_from(8 * MIB).expect("it is positive");
        let mut record = Record::default();
        let counters = Counters {
            values: [("SwapTotal".to_owned(), [total; 2])].into(),
        };
        record
            .results
            .counters
            .insert("meminfo".to_owned(), counters);
        let zram = [
            sampled(
                "zram-zram0",
                &times,
                &[("mem_used_total", Unit::Bytes, &[0, MIB, MIB])],
            ),
            sampled(
                "zram-zram1",
                &times,
                &[("mem_used_total", Unit::Bytes, &[0, 0, MIB])],
            ),
            sampled(
                "zram-zram2",
                &[0, 1],
                &[("mem_used_total", Unit::Bytes, &[MIB, MIB])],
            ),
        ];
        let kinds = machine(&record, &meminfo, &lists(&times), &zram).expect("it is complete");
        let names: Vec<&str> = kinds.stacked.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["file, inactive", "in zram", OTHER, "free"]);
        assert_eq!(sums(kinds.stacked.iter()), [5 * MIB; 3]);
        assert_eq!(
            values(&kinds.stacked, "in zram"),
            Some(&[0, MIB, 2 * MIB][..])
        );
        assert_eq!(values(&kinds.stacked, OTHER), Some(&[0, 0, 2 * MIB][..]));
        assert_eq!(values(&kinds.lines, "swap used"), Some(&[0, MIB, 0][..]));
        assert_eq!(values(&kinds.lines, "dirty or being written"), None);
    }

    #[test]
    fn series_that_do_not_belong_together_or_are_no_sizes_give_nothing() {
        let record = Record::default();
        let free = |unit| sampled("meminfo", &[0, 50, 100], &[("MemFree", unit, &[1, 2, 3])]);
        let made = |meminfo: &Sampled, times: &[i64]| {
            machine(&record, meminfo, &lists(times), &[]).is_some()
        };
        assert!(made(&free(Unit::Bytes), &[0, 50, 100]));
        assert!(!made(&free(Unit::Bytes), &[0, 50, 101]), "other moments");
        assert!(!made(&free(Unit::Nanos), &[0, 50, 100]), "no size");
        let empty = sampled("meminfo", &[0, 50, 100], &[]);
        assert!(!made(&empty, &[0, 50, 100]), "no column");
        let short = Series::new("x").int("time", Unit::Nanos, [0]);
        assert!(Sampled::of(short).is_none(), "one sample");
        let other = Series::new("x").int("process", Unit::Count, [0, 1]);
        assert!(Sampled::of(other).is_none(), "not over time");
    }

    #[test]
    fn the_times_of_a_group_are_moved_and_its_kernel_memory_is_what_is_left() {
        let group = sampled(
            "group-a",
            &[i64::MAX, 7],
            &[
                ("memory", Unit::Bytes, &[10, 3]),
                ("anon", Unit::Bytes, &[6, i64::MAX]),
                ("file", Unit::Bytes, &[1, i64::MAX]),
            ],
        );
        let kinds = inside("a".to_owned(), &group, 90).expect("it is complete");
        assert_eq!(kinds.times, [i64::MAX, 97]);
        assert_eq!(values(&kinds.stacked, OTHER), Some(&[3, 0][..]));
        assert!(kinds.lines.is_empty());
    }
}
