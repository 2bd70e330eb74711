//! Imports results of fio 3 from its JSON (`json` and `json+`).
//!
//! A file is one run of its jobs. Each job is a separate workload. Reads, writes and trims give metrics if there were
//! any requests of that kind. The options that define the load (`rw`, `bs`, `iodepth`, …) become parameters, so that
//! jobs with different loads are not compared.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_quantity::{Direction, Nanos, Unit};
use pagetide_record::Invalid;
use serde::Deserialize;

use super::ImportError;
use super::file::Text;
use super::run::{Known, Run, push};

/// Options of a job that define the load.
const OPTIONS: [&str; 11] = [
    "rw",
    "readwrite",
    "bs",
    "size",
    "iodepth",
    "ioengine",
    "numjobs",
    "runtime",
    "direct",
    "rwmixread",
    "fsync",
];
/// Latency percentiles that are read, with their short names.
const PERCENTILES: [(&str, &str); 3] = [
    ("50.000000", "p50"),
    ("99.000000", "p99"),
    ("99.900000", "p99.9"),
];

const IOPS: Known = Known::new("iops", "iops", Unit::PerSecond, 1.0, Direction::Higher).primary();
const BANDWIDTH: Known = Known::new(
    "bw_bytes",
    "bandwidth",
    Unit::BytesPerSecond,
    1.0,
    Direction::Higher,
);
const LATENCY: Known = Known::new("lat_ns", "latency", Unit::Nanos, 1.0, Direction::Lower);
const JOB: [Known; 4] = [
    Known::new(
        "usr_cpu",
        "user-share",
        Unit::Share,
        0.01,
        Direction::Neutral,
    ),
    Known::new(
        "sys_cpu",
        "system-share",
        Unit::Share,
        0.01,
        Direction::Neutral,
    ),
    Known::new(
        "ctx",
        "context-switches",
        Unit::Count,
        1.0,
        Direction::Lower,
    ),
    Known::new("majf", "major-faults", Unit::Count, 1.0, Direction::Lower),
];

/// Content of a file.
#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    timestamp_ms: u64,
    #[serde(default, rename = "global options")]
    options: BTreeMap<String, String>,
    jobs: Vec<Job>,
}

/// One job; with group reporting, a group of jobs.
#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i64,
    #[serde(default, rename = "job options")]
    options: BTreeMap<String, String>,
    read: Side,
    write: Side,
    trim: Option<Side>,
    #[serde(default, rename = "job_runtime")]
    runtime: u64,
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: f64,
    majf: f64,
}

/// Results of a job for one direction: reads, writes or trims.
#[derive(Deserialize)]
struct Side {
    bw_bytes: f64,
    iops: f64,
    total_ios: f64,
    lat_ns: Latency,
    clat_ns: Option<Latency>,
}

/// Summary of latencies in nanoseconds.
#[derive(Deserialize)]
struct Latency {
    mean: f64,
    max: f64,
    percentile: Option<BTreeMap<String, f64>>,
}

/// True if a text looks like a file of this format.
pub(super) fn is_in(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"fio version\"")
}

/// Reads the runs in a file.
pub(super) fn read(file: &Text<'_>, _is_alone: bool) -> Result<Vec<Run>, ImportError> {
    let output: Output = serde_json::from_str(&file.content).map_err(|why| file.bad(0, why))?;
    let mut seen = BTreeSet::new();
    let mut runs = Vec::new();
    for job in &output.jobs {
        if !seen.insert(&job.jobname) {
            return Err(file.bad(
                0,
                format_args!(
                    "the job `{}` is there twice: run it with --group_reporting",
                    job.jobname
                ),
            ));
        }
        push(file, &mut runs, run(file, &output, job)?)?;
    }
    if runs.is_empty() {
        return Err(file.bad(0, "it has no jobs"));
    }
    Ok(runs)
}

/// Makes a run from the results of one job.
fn run(file: &Text<'_>, output: &Output, job: &Job) -> Result<Run, ImportError> {
    let mut run = Run::of(format!("fio {}", job.jobname));
    for name in OPTIONS {
        if let Some(value) = job.options.get(name).or_else(|| output.options.get(name)) {
            run.params.insert(name.to_owned(), value.clone());
        }
    }
    // fio records the time at the end of the run.
    let started = output.timestamp_ms.saturating_sub(job.runtime);
    run.started = Nanos(started.saturating_mul(1_000_000));
    if job.error != 0 {
        run.invalid.push(Invalid::ProcessDied {
            process: job.jobname.clone(),
            how: format!("error {}", job.error),
        });
    }
    let sides = [
        ("read", Some(&job.read)),
        ("write", Some(&job.write)),
        ("trim", job.trim.as_ref()),
    ];
    for (name, side) in sides {
        let Some(side) = side.filter(|side| side.total_ios > 0.0) else {
            continue;
        };
        let mut add = |known: &Known, what: &str, number| {
            run.add_as(file, 0, known, &format!("{name}-{what}"), number)
        };
        add(&IOPS, "iops", side.iops)?;
        add(&BANDWIDTH, "bandwidth", side.bw_bytes)?;
        add(&LATENCY, "latency", side.lat_ns.mean)?;
        add(&LATENCY, "latency-max", side.lat_ns.max)?;
        let completion = side
            .clat_ns
            .as_ref()
            .and_then(|clat| clat.percentile.as_ref());
        let percentiles = completion.or(side.lat_ns.percentile.as_ref());
        for (key, short) in PERCENTILES {
            if let Some(number) = percentiles.and_then(|all| all.get(key)) {
                add(&LATENCY, &format!("latency-{short}"), *number)?;
            }
        }
    }
    for (known, number) in JOB
        .iter()
        .zip([job.usr_cpu, job.sys_cpu, job.ctx, job.majf])
    {
        run.add(file, 0, known, number)?;
    }
    Ok(run)
}
