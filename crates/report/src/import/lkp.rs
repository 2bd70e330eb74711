//! Imports results of LKP from folders with `matrix.json` or `stats.json`.
//!
//! A commit has the folder `/result/TESTCASE/PARAMS/TBOX/ROOTFS/KCONFIG/COMPILER/COMMIT`. Its `matrix.json` contains
//! the values of each measure by run; `stats_source` lists the runs. If values are missing at the end of a list, they
//! are zero. A run has a folder below its commit. Its `stats.json` contains one number for each measure. A
//! `matrix.json` in the folder of a run is a series over time and is not read.
//!
//! The scenario is the test case with its parameters, and the variant is the commit. If the paths do not contain them,
//! the scenario is `lkp` and the variant is named after the argument. The measures of the test case, all measures with
//! a known direction, and some counters of `proc-vmstat` are read.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use pagetide_quantity::{Direction, Unit};
use pagetide_record::Invalid;
use serde::Deserialize;
use serde::de::{Error, MapAccess, Visitor};
use serde_json::Value as Json;

use super::file::{self, Text};
use super::mmtests::VMSTAT;
use super::run::{self, Known, Run};
use super::tool::Tool;
use super::{ImportError, MAX_FILES};

/// Maximum depth of folders: the levels of LKP's paths, and a few above them.
const DEEPEST: usize = 12;
/// Maximum size of a file's text in bytes. In memory, each number takes many times its length.
const MAX_TEXT: usize = 16 << 20;
/// Name of the measure that lists the runs of a matrix.
const SOURCE: &str = "stats_source";
/// Name of the measure that is above zero if a run did not complete.
const INCOMPLETE: &str = "last_state.is_incomplete_run";

/// Measures with a known direction, from LKP's lists of performance and latency measures: name, unit, factor to this
/// unit, and direction. A `*` in a name matches any text ([`fits`]).
const MEASURES: [(&str, Unit, f64, Direction); 57] = {
    use Direction::{Higher, Lower};
    use Unit::{BytesPerSecond, Count, Nanos, PerSecond, Ratio};
    [
        ("*.throughput", Ratio, 1.0, Higher),
        ("aim7.jobs-per-min", Ratio, 1.0, Higher),
        ("aim9.*.ops_per_sec", PerSecond, 1.0, Higher),
        ("apachebench.requests_per_second", PerSecond, 1.0, Higher),
        ("autonuma-benchmark.*.seconds", Nanos, 1e9, Lower),
        ("blogbench.*_score", Ratio, 1.0, Higher),
        ("coremark.iterations_per_sec", PerSecond, 1.0, Higher),
        (
            "dbench.throughput-MB/sec",
            BytesPerSecond,
            1_048_576.0,
            Higher,
        ),
        (
            "dbench.throughput_MB/s",
            BytesPerSecond,
            1_048_576.0,
            Higher,
        ),
        ("dbench.max_latency", Ratio, 1.0, Lower),
        ("ebizzy.throughput", Ratio, 1.0, Higher),
        ("exit-free.duration", Ratio, 1.0, Lower),
        ("filebench.sum_operations/s", PerSecond, 1.0, Higher),
        ("fio.*_bw_MBps", BytesPerSecond, 1_048_576.0, Higher),
        ("fio.*_iops", PerSecond, 1.0, Higher),
        ("fsmark.app_overhead", Ratio, 1.0, Lower),
        ("fsmark.files_per_sec", PerSecond, 1.0, Higher),
        ("fxmark.*.works/sec", PerSecond, 1.0, Higher),
        ("iperf.*.bps", Ratio, 1.0, Higher),
        ("kbuild.*_per_iteration", Ratio, 1.0, Lower),
        ("kernbench.elapsed_time", Nanos, 1e9, Lower),
        ("linkbench.requests/s", PerSecond, 1.0, Higher),
        ("lmbench3.*.MB/sec", BytesPerSecond, 1_000_000.0, Higher),
        ("lmbench3.*.latency.ns", Nanos, 1.0, Lower),
        ("lmbench3.*.latency.us", Nanos, 1e3, Lower),
        ("memtier.*_ops/s", PerSecond, 1.0, Higher),
        ("netperf.Throughput_Mbps", Ratio, 1.0, Higher),
        ("netperf.Throughput_tps", PerSecond, 1.0, Higher),
        ("oltp.*/s", PerSecond, 1.0, Higher),
        ("oltp.latency_*_ms", Nanos, 1e6, Lower),
        ("perf-bench-futex.ops/s", PerSecond, 1.0, Higher),
        ("perf-bench-sched-pipe.ops_per_sec", PerSecond, 1.0, Higher),
        ("pft.faults_per_sec_per_cpu", PerSecond, 1.0, Higher),
        ("pgbench.tps", PerSecond, 1.0, Higher),
        ("pgbench.latency_ms", Nanos, 1e6, Lower),
        ("pmbench.throughput.aps", PerSecond, 1.0, Higher),
        ("pmbench.latency.ns.average", Nanos, 1.0, Lower),
        ("reaim.jobs_per_min", Ratio, 1.0, Higher),
        ("redis.*_throughput_rps", PerSecond, 1.0, Higher),
        ("schbench.*_latency_*us", Nanos, 1e3, Lower),
        ("simoop.work_rate_avg_per_sec", PerSecond, 1.0, Higher),
        ("simoop.*_latency_usec.p95", Nanos, 1e3, Lower),
        ("simoop.*_latency_usec.p99", Nanos, 1e3, Lower),
        ("specjbb2015.critical-jOPS", Ratio, 1.0, Higher),
        ("specjbb2015.max-jOPS", Ratio, 1.0, Higher),
        ("stream.*_bandwidth_MBps", BytesPerSecond, 1e6, Higher),
        ("stress-ng.*_per_sec", PerSecond, 1.0, Higher),
        ("sysbench-*.throughput_events/s", PerSecond, 1.0, Higher),
        ("sysbench-*.throughput_ops/s", PerSecond, 1.0, Higher),
        ("sysbench-fileio.latency_*_ms", Nanos, 1e6, Lower),
        (
            "tbench.throughput_MB/s",
            BytesPerSecond,
            1_048_576.0,
            Higher,
        ),
        ("tbench.max_latency", Ratio, 1.0, Lower),
        ("unixbench.score", Ratio, 1.0, Higher),
        ("vm-scalability.median", Ratio, 1.0, Higher),
        ("will-it-scale.*_ops", Count, 1.0, Higher),
        ("will-it-scale.scalability", Ratio, 1.0, Higher),
        ("ycsb.*_throughput_ops/s", PerSecond, 1.0, Higher),
    ]
};

/// The measures in a file by name, each with one value, or with one value for each run.
struct Measures(Vec<(String, Vec<Json>)>);

impl<'de> Deserialize<'de> for Measures {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Measures;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of measures")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Measures, A::Error> {
                let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
                while let Some((name, value)) = map.next_entry::<String, Json>()? {
                    if !seen.insert(name.clone()) {
                        return Err(A::Error::custom(format!("`{name}` is there twice")));
                    }
                    let values = match value {
                        Json::Array(values) => values,
                        value => vec![value],
                    };
                    all.push((name, values));
                }
                Ok(Measures(all))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// True if a folder, or a folder below it, contains a file with the name of LKP's results. False if it cannot be
/// searched.
pub(super) fn is_in(folder: &Path) -> bool {
    let mut left = MAX_FILES;
    found(folder, 0, &mut left, &mut |_| {}).unwrap_or(0) > 0
}

/// Reads the results in a file, or in and below a folder.
pub(super) fn read(
    path: &Path,
    tool: &'static Tool,
) -> Result<Vec<(PathBuf, Vec<Run>)>, ImportError> {
    let mut files = Vec::new();
    if path.is_dir() {
        found(path, 0, &mut MAX_FILES.clone(), &mut |file| {
            files.push(file);
        })?;
    } else {
        files.push(path.to_owned());
    }
    let mut all = Vec::new();
    for path in files {
        let file = Text::read(&path, tool)?;
        let runs = runs(&file)?;
        if !runs.is_empty() {
            all.push((path, runs));
        }
    }
    if all.is_empty() {
        return Err(ImportError::Nothing {
            path: path.to_owned(),
            what: "results of LKP",
            remedy: "give the folders of commits, which hold matrix.json, or of runs, which hold stats.json",
        });
    }
    Ok(all)
}

/// Calls `tell` with each file of results in and below a folder; returns the number of files. `left` is the number of
/// folders that may still be searched. A folder that has a file of results is not searched further.
fn found(
    folder: &Path,
    depth: usize,
    left: &mut usize,
    tell: &mut dyn FnMut(PathBuf),
) -> Result<usize, ImportError> {
    let too_many = || ImportError::TooMany {
        path: folder.to_owned(),
        what: "folders",
        limit: MAX_FILES,
    };
    *left = left.checked_sub(1).ok_or_else(too_many)?;
    // A `matrix.json` next to a `stats.json` is the series of one run.
    for name in ["stats.json", "matrix.json", "matrix.json.gz"] {
        let file = folder.join(name);
        if file.is_file() {
            tell(file);
            return Ok(1);
        }
    }
    let mut count = 0;
    if depth < DEEPEST {
        for path in file::entries(folder)? {
            // Symbolic links in LKP's folders lead back to folders above.
            if path.is_dir() && !path.is_symlink() {
                count += found(&path, depth + 1, left, tell)?;
            }
        }
    }
    Ok(count)
}

/// Parts of the path of a run. From the end, a path contains: run, commit, compiler, configuration, root, machine,
/// parameters, test case.
struct RunPath {
    commit: String,
    test: String,
    params: [(&'static str, String); 2],
}

impl RunPath {
    /// Parses the path of a run's folder; `None` if it does not have the form of LKP's paths.
    fn of(path: &Path) -> Option<Self> {
        let mut parts = path
            .components()
            .rev()
            .map(|part| part.as_os_str().to_string_lossy().into_owned());
        let number = parts.next()?;
        let commit = parts.next()?;
        let is_commit = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
        number.parse::<u64>().ok().filter(|_| is_commit)?;
        // Compiler, configuration and root are skipped.
        let machine = parts.nth(3)?;
        let params = parts.next()?;
        let test = parts.next()?;
        Some(Self {
            commit,
            test,
            params: [("params", params), ("machine", machine)],
        })
    }
}

/// Reads the runs in a file; empty if the file is a series over time.
fn runs(file: &Text<'_>) -> Result<Vec<Run>, ImportError> {
    if file.content.len() > MAX_TEXT {
        return Err(ImportError::TooLarge {
            path: file.path.to_owned(),
            limit: MAX_TEXT as u64,
        });
    }
    let Measures(measures) = serde_json::from_str(&file.content).map_err(|why| file.bad(0, why))?;
    let is_single = file
        .path
        .file_name()
        .is_some_and(|name| name == "stats.json");
    let sources = measures
        .iter()
        .find(|(name, _)| name == SOURCE)
        .map(|(_, values)| values);
    let places: Vec<Option<RunPath>> = match sources {
        _ if is_single => {
            let whole = file
                .path
                .canonicalize()
                .unwrap_or_else(|_| file.path.to_owned());
            vec![whole.parent().and_then(RunPath::of)]
        }
        Some(sources) => {
            let path = |source: &Json| {
                source
                    .as_str()
                    .map(|text| Path::new(text).parent().and_then(RunPath::of))
            };
            sources
                .iter()
                .map(|source| {
                    path(source).ok_or_else(|| file.bad(0, "stats_source holds what is no path"))
                })
                .collect::<Result<_, _>>()?
        }
        // A file like this is a series over time.
        None => return Ok(Vec::new()),
    };
    let mut all = Vec::new();
    for place in &places {
        let mut run = Run::of("lkp");
        if let Some(place) = place {
            run.scenario.clone_from(&place.test);
            run.variant.clone_from(&place.commit);
            for (name, value) in &place.params {
                run.params.insert((*name).to_owned(), value.clone());
            }
        }
        run::push(file, &mut all, run)?;
    }
    for (name, values) in &measures {
        if values.len() > places.len() {
            return Err(file.bad(
                0,
                format_args!(
                    "`{name}` has {} values for {} runs",
                    values.len(),
                    places.len()
                ),
            ));
        }
        if name == INCOMPLETE {
            for (run, value) in all.iter_mut().zip(values) {
                if value.as_f64().is_some_and(|value| value > 0.0) {
                    run.invalid.push(Invalid::Scenario {
                        why: "LKP marks this run as incomplete".to_owned(),
                    });
                }
            }
            continue;
        }
        let zero = Json::from(0);
        for (place, run) in all.iter_mut().enumerate() {
            let Some(known) = known(name, &run.scenario) else {
                continue;
            };
            let value = values.get(place).unwrap_or(&zero);
            let number = value
                .as_f64()
                .ok_or_else(|| file.bad(0, format_args!("`{name}` is `{value}`, not a number")))?;
            run.add_as(file, 0, &known, name, number)?;
        }
    }
    if all
        .iter()
        .any(|run| run.metrics.is_empty() && run.invalid.is_empty())
    {
        return Err(file.bad(0, "it has a run without a measure that is known"));
    }
    Ok(all)
}

/// Returns the unit, factor and direction of a measure, and whether it is primary; `None` if the measure is not read.
fn known(name: &str, test: &str) -> Option<Known> {
    let of = |unit, factor, direction| Known::new("", "", unit, factor, direction);
    let of_test = name
        .strip_prefix(test)
        .is_some_and(|rest| rest.starts_with('.'));
    // Only measures of the test case itself are primary, not those of other programs that it runs.
    let measure = MEASURES.iter().find(|(pattern, ..)| fits(pattern, name));
    if let Some((_, unit, factor, direction)) = measure {
        let known = of(*unit, *factor, *direction);
        return Some(if of_test || test == "lkp" {
            known.primary()
        } else {
            known
        });
    }
    if let Some(counter) = name.strip_prefix("proc-vmstat.") {
        let fits = |of: &&(&str, &[&str], Direction)| of.1 == [counter];
        return VMSTAT
            .iter()
            .find(fits)
            .map(|(_, _, direction)| of(Unit::Count, 1.0, *direction));
    }
    of_test.then(|| of(Unit::Ratio, 1.0, Direction::Neutral))
}

/// True if a name matches a pattern. The pattern may contain up to two `*`. A single one matches any text that is not
/// empty, and each of two matches any text.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => {
            let rest = name.strip_prefix(begin);
            match end.split_once('*') {
                None => rest.is_some_and(|rest| rest.len() > end.len() && rest.ends_with(end)),
                Some((middle, end)) => rest
                    .and_then(|rest| rest.split_once(middle))
                    .is_some_and(|(_, rest)| rest.ends_with(end)),
            }
        }
    }
}
