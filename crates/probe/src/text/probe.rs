//! All text sources together: before, as a series while the clock runs, and after.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Counters, Keyed, KeyedSource, Parse, Psi, Snapshot, TextFile, known};
use crate::ProbeError;
use pagetide_quantity::{Column, Nanos, Sampler, Series, Unit};

/// The vmstat counters kept as a series unless others are asked for.
const SERIES_KEYS: &[&str] = &[
    "nr_free_pages",
    "nr_inactive_anon",
    "nr_active_anon",
    "nr_inactive_file",
    "nr_active_file",
    "nr_dirty",
    "nr_writeback",
    "pgfault",
    "pgmajfault",
    "pswpin",
    "pswpout",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgscan_anon",
    "pgscan_file",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgsteal_anon",
    "pgsteal_file",
    "workingset_refault_anon",
    "workingset_refault_file",
    "allocstall_normal",
    "allocstall_movable",
    "compact_stall",
    "pgmigrate_success",
];

/// What is kept of `meminfo` over time.
const MEMINFO_KEYS: &[&str] = &[
    "MemFree",
    "MemAvailable",
    "Cached",
    "SwapCached",
    "SwapFree",
    "AnonPages",
    "Mapped",
    "Dirty",
    "Writeback",
    "Slab",
    "PageTables",
    "AnonHugePages",
];

/// What to observe.
#[derive(Debug, Clone)]
pub struct TextSettings {
    /// The trial's memory cgroup, if it has one.
    pub cgroup: Option<PathBuf>,
    /// zram devices, as `/sys/block/zram0`.
    pub zram: Vec<PathBuf>,
    /// vmstat counters to keep as a series; those this kernel lacks are left out.
    pub series: Vec<String>,
    /// The most samples to keep.
    pub capacity: usize,
}

impl Default for TextSettings {
    fn default() -> Self {
        Self {
            cgroup: None,
            zram: Vec::new(),
            series: SERIES_KEYS.iter().map(|&key| key.to_owned()).collect(),
            capacity: 512,
        }
    }
}

/// A source that cannot be observed here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsupported {
    /// Which.
    pub source: String,
    /// Why.
    pub why: String,
}

/// A device or pressure file by name, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named<T> {
    /// `memory`, `zram0/mm_stat`, ….
    pub name: String,
    /// The readings.
    pub readings: Snapshot<T>,
}

/// What the text sources said over a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TextRecord {
    /// Named counters: `vmstat`, `meminfo`, `memory.stat`, `memory.events`, `zram0/mm_stat`, `zswap`, ….
    pub counters: Vec<Named<Counters>>,
    /// Pressure: `memory`, `io`, `cpu`, and `cgroup` for the trial's own memory pressure.
    pub pressure: Vec<Named<Psi>>,
    /// Over time, by source: `vmstat`, `meminfo`, `zram` and `pressure` (time stalled so far). Not part of the text form:
    /// a record keeps series in sections of their own.
    #[serde(skip)]
    pub series: Vec<Series>,
    /// What could not be observed, and why.
    pub unsupported: Vec<Unsupported>,
}

impl TextRecord {
    /// The counters of one source.
    pub fn counters(&self, name: &str) -> Option<&Snapshot<Counters>> {
        self.counters
            .iter()
            .find(|named| named.name == name)
            .map(|named| &named.readings)
    }
}

/// One open source and its first reading.
#[derive(Debug)]
struct Watched<T> {
    name: String,
    file: TextFile<T>,
    before: T,
}

impl<T: Parse + Clone> Watched<T> {
    fn snapshot(&mut self) -> Result<Snapshot<T>, ProbeError> {
        let after = self.file.sample()?.clone();
        Ok(Snapshot {
            before: self.before.clone(),
            after,
        })
    }
}

/// Some columns of a keyed source over time.
#[derive(Debug)]
struct Sampled {
    columns: Vec<usize>,
    row: Vec<u64>,
    series: Sampler,
}

impl Sampled {
    /// Those of `keys` that the source has.
    fn new<'a>(
        source: KeyedSource,
        counters: &Counters,
        keys: impl IntoIterator<Item = &'a str>,
        capacity: usize,
    ) -> Self {
        let column = |key| Column {
            name: str::to_owned(key),
            unit: known(source, key).map_or(Unit::Count, |known| known.unit.into()),
        };
        let (heads, columns): (Vec<Column>, Vec<usize>) = keys
            .into_iter()
            .filter_map(|key| Some((column(key), counters.index(key)?)))
            .unzip();
        Self {
            row: vec![0; columns.len()],
            series: Sampler::new(heads, capacity),
            columns,
        }
    }

    fn push(&mut self, time: Nanos, counters: &Counters) {
        let values = counters.values();
        for (value, &column) in self.row.iter_mut().zip(&self.columns) {
            *value = values.get(column).copied().unwrap_or(0);
        }
        self.series.push(time, &self.row);
    }
}

/// The open sources.
#[derive(Debug)]
pub struct TextProbe {
    vmstat: TextFile<Keyed>,
    keyed: Vec<Watched<Keyed>>,
    pressure: Vec<Watched<Psi>>,
    vmstat_before: Counters,
    series: Sampled,
    /// By place in `keyed`; none for what changes too little to be worth it.
    keyed_series: Vec<(usize, Sampled)>,
    pressure_row: Vec<u64>,
    pressure_series: Sampler,
    unsupported: Vec<Unsupported>,
}

impl TextProbe {
    /// Opens everything that is there; what is not is listed in the record. Only vmstat must be.
    pub fn open(settings: &TextSettings) -> Result<Self, ProbeError> {
        let vmstat = KeyedSource::Vmstat.open(Path::new("/"))?;
        let counters = &vmstat.latest().counters;
        let series = Sampled::new(
            KeyedSource::Vmstat,
            counters,
            settings.series.iter().map(String::as_str),
            settings.capacity,
        );
        let mut probe = Self {
            keyed: Vec::new(),
            pressure: Vec::new(),
            vmstat_before: counters.clone(),
            series,
            keyed_series: Vec::new(),
            pressure_row: Vec::new(),
            pressure_series: Sampler::new(Vec::new(), 2),
            vmstat,
            unsupported: Vec::new(),
        };
        let root = Path::new("/");
        probe.add_keyed("meminfo", KeyedSource::Meminfo, root);
        if let Some(cgroup) = &settings.cgroup {
            probe.add_keyed("memory.stat", KeyedSource::MemoryStat, cgroup);
            probe.add_keyed("memory.events", KeyedSource::MemoryEvents, cgroup);
            probe.add_pressure("cgroup", &cgroup.join("memory.pressure"));
        }
        for zram in &settings.zram {
            let name = zram.file_name().unwrap_or_default().to_string_lossy();
            probe.add_keyed(&format!("{name}/mm_stat"), KeyedSource::ZramMmStat, zram);
            probe.add_keyed(&format!("{name}/io_stat"), KeyedSource::ZramIoStat, zram);
        }
        for name in ["memory", "io", "cpu"] {
            probe.add_pressure(name, &Path::new("/proc/pressure").join(name));
        }
        probe.prepare_series(settings.capacity);
        Ok(probe)
    }

    /// Makes room for what is sampled beside vmstat.
    fn prepare_series(&mut self, capacity: usize) {
        for (place, watched) in self.keyed.iter().enumerate() {
            let counters = &watched.file.latest().counters;
            let source = watched.file.latest().source;
            let sampled = match source {
                KeyedSource::Meminfo => {
                    Sampled::new(source, counters, MEMINFO_KEYS.iter().copied(), capacity)
                }
                KeyedSource::ZramMmStat => {
                    Sampled::new(source, counters, counters.keys(), capacity)
                }
                _ => continue,
            };
            self.keyed_series.push((place, sampled));
        }
        let columns: Vec<Column> = self
            .pressure
            .iter()
            .flat_map(|watched| {
                ["some", "full"].map(|kind| Column {
                    name: format!("{}-{kind}", watched.name),
                    unit: Unit::Nanos,
                })
            })
            .collect();
        self.pressure_row = vec![0; columns.len()];
        self.pressure_series = Sampler::new(columns, capacity);
    }

    fn lacks(&mut self, source: &str, why: &ProbeError) {
        self.unsupported.push(Unsupported {
            source: source.to_owned(),
            why: why.to_string(),
        });
    }

    fn add_keyed(&mut self, name: &str, source: KeyedSource, directory: &Path) {
        match source.open(directory) {
            Ok(file) => self.keyed.push(Watched {
                name: name.to_owned(),
                before: file.latest().clone(),
                file,
            }),
            Err(error) => self.lacks(name, &error),
        }
    }

    fn add_pressure(&mut self, name: &str, path: &Path) {
        match TextFile::open(path, Psi::default()) {
            Ok(file) => self.pressure.push(Watched {
                name: name.to_owned(),
                before: *file.latest(),
                file,
            }),
            Err(error) => self.lacks(&format!("pressure {name}"), &error),
        }
    }

    /// Reads everything as the state before; call it just before the clock starts.
    pub fn before(&mut self) -> Result<(), ProbeError> {
        for watched in &mut self.keyed {
            watched.before = watched.file.sample()?.clone();
        }
        for watched in &mut self.pressure {
            watched.before = *watched.file.sample()?;
        }
        // Last, so that the reading itself does not count.
        self.vmstat_before = self.vmstat.sample()?.counters.clone();
        Ok(())
    }

    /// Adds a sample to every series. Allocates nothing.
    pub fn sample(&mut self, time: Nanos) -> Result<(), ProbeError> {
        self.series.push(time, &self.vmstat.sample()?.counters);
        for (place, sampled) in &mut self.keyed_series {
            if let Some(watched) = self.keyed.get_mut(*place) {
                sampled.push(time, &watched.file.sample()?.counters);
            }
        }
        for (row, watched) in self
            .pressure_row
            .chunks_exact_mut(2)
            .zip(&mut self.pressure)
        {
            let psi = watched.file.sample()?;
            for (value, line) in row.iter_mut().zip([psi.some, psi.full]) {
                *value = line.map_or(0, |line| line.total_us.saturating_mul(1000));
            }
        }
        self.pressure_series.push(time, &self.pressure_row);
        Ok(())
    }

    /// Reads everything as the state after, vmstat first, and gives the record.
    pub fn after(mut self) -> Result<TextRecord, ProbeError> {
        let after = self.vmstat.sample()?.counters.clone();
        let mut record = TextRecord::default();
        record.counters.push(Named {
            name: "vmstat".into(),
            readings: Snapshot {
                before: self.vmstat_before,
                after,
            },
        });
        record.series.push(self.series.series.into_series("vmstat"));
        for (place, sampled) in self.keyed_series {
            let name = match self.keyed.get(place).map(|watched| watched.name.as_str()) {
                Some("meminfo") => "meminfo",
                _ => "zram",
            };
            record.series.push(sampled.series.into_series(name));
        }
        if !self.pressure.is_empty() {
            let series = self.pressure_series.into_series("pressure");
            record.series.push(series);
        }
        for mut watched in self.keyed {
            let readings = watched.snapshot()?;
            record.counters.push(Named {
                name: watched.name,
                readings: Snapshot {
                    before: readings.before.counters,
                    after: readings.after.counters,
                },
            });
        }
        for mut watched in self.pressure {
            record.pressure.push(Named {
                readings: watched.snapshot()?,
                name: watched.name,
            });
        }
        record.unsupported = self.unsupported;
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_on_this_machine_is_observed_and_comes_back_from_its_record() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("mm_stat"), "1 2 3 4 5 6 7 8 9\n").unwrap();
        let mut probe = TextProbe::open(&TextSettings {
            zram: vec![directory.path().to_owned()],
            series: vec!["pgfault".into(), "no_such_counter".into()],
            capacity: 8,
            ..TextSettings::default()
        })
        .unwrap();
        probe.before().unwrap();
        for at in 0..20 {
            std::hint::black_box(vec![1_u8; 1 << 20]);
            probe.sample(Nanos(at)).unwrap();
        }
        let mut record = probe.after().unwrap();
        let delta = record.counters("vmstat").unwrap().delta();
        assert!(delta.growth("pgfault").unwrap() > 0);
        let series = |name: &str| record.series.iter().find(|series| series.name == name);
        let heads = |series: &Series| -> Vec<(String, Unit)> {
            let columns = series.columns.iter();
            columns
                .map(|(column, _)| (column.name.clone(), column.unit))
                .collect()
        };
        let vmstat = series("vmstat").unwrap();
        let time = ("time".to_owned(), Unit::Nanos);
        assert_eq!(heads(vmstat), [time, ("pgfault".into(), Unit::Count)]);
        assert!(vmstat.rows() >= 4);
        let meminfo = series("meminfo").unwrap();
        let free = ("MemFree".to_owned(), Unit::Bytes);
        assert!(heads(meminfo).contains(&free));
        let free = meminfo.column("MemFree").unwrap();
        assert!((0..meminfo.rows()).all(|row| free.get(row) > Some(0.0)));
        assert_eq!(heads(series("zram").unwrap())[1].1, Unit::Bytes);
        record.series.clear();
        // No io_stat was there: said, not invented.
        let said = |name: &str| {
            record
                .unsupported
                .iter()
                .any(|one| one.source.ends_with(name))
        };
        assert!(said("io_stat") && !said("mm_stat"));
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<TextRecord>(&text).unwrap(), record);
    }
}
