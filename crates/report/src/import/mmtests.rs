//! Imports results of mmtests: a folder `RUN/iter-N/` for each run and iteration.
//!
//! The files `tests-timestamp`, `tests-sysstate` and `timestamp` (plain or `.gz`) are read, as `run-mmtests.sh` writes
//! them: `test begin :: NAME`, `time :: NAME U user S system E elapsed` in seconds, `test exit :: NAME CODE`, and
//! `/proc/vmstat` after `file start ::` and `file end ::`. One record is one test of one iteration: the scenario is the
//! test, the variant is the run, the seed is the iteration. The logs of individual benchmarks have no common format and
//! are not read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pagetide_compare::version::by_version;
use pagetide_quantity::{Direction, Metric, Nanos, Unit, Value};
use pagetide_record::file::MAX_VALUE;
use pagetide_record::{Counters, Invalid, Record, Variant, Warning};

use super::file::text;
use super::{Batch, ImportError, record};

/// Maximum number of counters of a test; the kernel has about two hundred.
const MAX_COUNTERS: usize = 4096;

/// Metrics from the growth of vmstat: name, counters that are summed, direction.
pub(super) const VMSTAT: [(&str, &[&str], Direction); 9] = [
    ("swap-ins", &["pswpin"], Direction::Lower),
    ("swap-outs", &["pswpout"], Direction::Lower),
    ("major-faults", &["pgmajfault"], Direction::Lower),
    (
        "direct-reclaims",
        &[
            "allocstall",
            "allocstall_dma",
            "allocstall_dma32",
            "allocstall_normal",
            "allocstall_movable",
        ],
        Direction::Lower,
    ),
    ("direct-scanned", &["pgscan_direct"], Direction::Lower),
    ("kswapd-scanned", &["pgscan_kswapd"], Direction::Lower),
    ("direct-reclaimed", &["pgsteal_direct"], Direction::Neutral),
    ("kswapd-reclaimed", &["pgsteal_kswapd"], Direction::Neutral),
    ("compaction-stalls", &["compact_stall"], Direction::Lower),
];

/// Data of one test of one iteration. `times` are user, system and elapsed time in seconds.
#[derive(Default)]
struct Test {
    started: Nanos,
    times: Option<[f64; 3]>,
    exit: Option<i64>,
    vmstat: BTreeMap<String, [Option<u64>; 2]>,
}

/// True if a folder contains runs of mmtests or their folder `work/log`, or is a run.
pub(super) fn is_in(folder: &Path) -> bool {
    folder.join("work/log").is_dir() || runs(folder).is_ok_and(|runs| !runs.is_empty())
}

/// Reads all runs below `folder`: mmtests' own folder, its `work/log`, or one run.
pub fn import(folder: &Path) -> Result<Batch, ImportError> {
    let mut records = Vec::new();
    for run in runs(folder)? {
        let name = run.file_name().map_or_else(
            || "run".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        for (iteration, path) in iterations(&run)? {
            for (test, found) in tests(&path)? {
                records.push(finish(&name, &test, iteration, found));
            }
        }
    }
    if records.is_empty() {
        return Err(ImportError::Nothing {
            path: folder.to_owned(),
            what: "results of mmtests",
            remedy: "give the folder work/log, which has a folder for each run with iter-0, iter-1, …",
        });
    }
    Ok(Batch {
        blocks: records
            .iter()
            .map(|record| record.subject.seed.to_string())
            .collect(),
        records,
        paired_by: Some("iteration".to_owned()),
        // If runs are from different sessions, iterations with the same number have nothing else in common.
        lasting: false,
        first: "the first by version, as no times are known",
        in_a_row: None,
    })
}

/// Returns the folders in a folder, sorted by name as versions: `6.9` before `6.12`.
fn folders(path: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let io = |source| ImportError::Io {
        path: path.to_owned(),
        source,
    };
    let mut all = Vec::new();
    for entry in fs::read_dir(path).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.is_dir() {
            all.push(path);
        }
    }
    // Names of runs are usually those of kernels, so they are sorted as versions.
    all.sort_by(|a, b| by_version(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(all)
}

/// Returns the folders of all runs in or below a folder.
fn runs(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    if !iterations(folder)?.is_empty() {
        return Ok(vec![folder.to_owned()]);
    }
    let log = folder.join("work/log");
    let base = if log.is_dir() { &log } else { folder };
    let mut all = Vec::new();
    for path in folders(base)? {
        if !iterations(&path)?.is_empty() {
            all.push(path);
        }
    }
    Ok(all)
}

/// Returns the iterations of a run, sorted by number.
fn iterations(run: &Path) -> Result<Vec<(u64, PathBuf)>, ImportError> {
    let mut all: Vec<(u64, PathBuf)> = folders(run)?
        .into_iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_prefix("iter-")?;
            Some((name.parse().ok()?, path))
        })
        .collect();
    all.sort();
    Ok(all)
}

/// Returns the tests of one iteration, from all files that mention them.
fn tests(iteration: &Path) -> Result<BTreeMap<String, Test>, ImportError> {
    let mut tests = BTreeMap::new();
    for name in ["tests-timestamp", "tests-sysstate", "timestamp"] {
        for end in ["", ".gz"] {
            let path = iteration.join(format!("{name}{end}"));
            if path.is_file() {
                read(&text(&path)?, &mut tests);
                break;
            }
        }
    }
    Ok(tests)
}

/// Reads the lines of one file. Unknown lines are skipped, because the files contain much other text.
fn read(text: &str, tests: &mut BTreeMap<String, Test>) {
    let mut current = String::new();
    // Index for vmstat values: 0 before the test, 1 after it; `None` outside of vmstat.
    let mut vmstat: Option<usize> = None;
    for line in text.lines() {
        if let Some((key, rest)) = line.split_once(" :: ") {
            vmstat = None;
            let words: Vec<&str> = rest.split_whitespace().collect();
            match (key, words.as_slice()) {
                ("test begin", [name, moment, ..]) => {
                    (*name).clone_into(&mut current);
                    let seconds: u64 = moment.parse().unwrap_or(0);
                    tests.entry(current.clone()).or_default().started =
                        Nanos(seconds.saturating_mul(1_000_000_000));
                }
                ("time", [name, user, "user", system, "system", elapsed, ..]) => {
                    let parse = |text: &str| {
                        let seconds = text.parse::<f64>().ok();
                        seconds.filter(|seconds| (seconds * 1e9).abs() <= MAX_VALUE)
                    };
                    if let (Some(user), Some(system), Some(elapsed)) =
                        (parse(user), parse(system), parse(elapsed))
                    {
                        tests.entry((*name).to_owned()).or_default().times =
                            Some([user, system, elapsed]);
                    }
                }
                ("test exit", [name, code, ..]) => {
                    tests.entry((*name).to_owned()).or_default().exit = code.parse().ok();
                }
                ("file start", ["/proc/vmstat", ..]) => vmstat = Some(0),
                ("file end", ["/proc/vmstat", ..]) => vmstat = Some(1),
                _ => {}
            }
        } else if let Some(side) = vmstat
            && let Some((name, value)) = line.trim().split_once(' ')
            && let Ok(value) = value.trim().parse::<u64>()
            && let Some(test) = tests.get_mut(&current)
            && (test.vmstat.len() < MAX_COUNTERS || test.vmstat.contains_key(name))
        {
            test.vmstat.entry(name.to_owned()).or_default()[side] = Some(value);
        }
    }
}

fn finish(run: &str, test: &str, iteration: u64, found: Test) -> Record {
    let variant = Variant {
        name: run.to_owned(),
        ..Variant::default()
    };
    let mut record = record("mmtests", test, variant, iteration);
    record.wall.started = found.started;
    "mmtests".clone_into(&mut record.wall.campaign);
    let results = &mut record.results;
    let mut add = |name: &str, unit, direction, primary, value| {
        results.metrics.push(Metric {
            name: name.to_owned(),
            unit,
            direction,
            primary,
            value,
        });
    };
    let time = |place: usize| {
        found.times.map_or_else(
            || Value::Absent("the run has no line `time ::` for this test".to_owned()),
            |times| Value::Number(times[place] * 1e9),
        )
    };
    add("elapsed", Unit::Nanos, Direction::Lower, true, time(2));
    add("user", Unit::Nanos, Direction::Lower, false, time(0));
    add("system", Unit::Nanos, Direction::Lower, false, time(1));
    if let Some(times) = found.times {
        record.wall.scenario = nanos(times[2]);
        record.wall.total = nanos(times[2]);
        results.elapsed = nanos(times[2]);
    }
    let values: BTreeMap<String, [u64; 2]> = found
        .vmstat
        .into_iter()
        .filter_map(|(name, [before, after])| Some((name, [before?, after?])))
        .collect();
    if !values.is_empty() {
        let counters = Counters { values };
        for (name, of, direction) in VMSTAT {
            if let Some(growth) = counters.sum(of) {
                let value = Value::Number(growth as f64);
                results.metrics.push(Metric {
                    name: name.to_owned(),
                    unit: Unit::Count,
                    direction,
                    primary: false,
                    value,
                });
            }
        }
        results.counters.insert("vmstat".to_owned(), counters);
    }
    if let Some(code) = found.exit.filter(|code| *code != 0) {
        results.invalid.push(Invalid::ProcessDied {
            process: test.to_owned(),
            how: format!("exit code {code}"),
        });
    }
    results.warnings.push(Warning::Note {
        text: "imported from mmtests: kernel, memory, swap and settings are not known".to_owned(),
    });
    record
}

/// Converts seconds to whole nanoseconds; negative values and values that are out of range become zero.
fn nanos(seconds: f64) -> Nanos {
    if seconds.is_finite() && seconds > 0.0 {
        Nanos(
            u64::try_from(
                std::time::Duration::try_from_secs_f64(seconds).map_or(0, |d| d.as_nanos()),
            )
            .unwrap_or(0),
        )
    } else {
        Nanos(0)
    }
}
