//! Measures time and memory of comparisons in a store of 100,000 records.
//!
//! `cargo run --release -p pagetide-compare --example hundred_thousand`

use std::time::{Duration, Instant};

use pagetide_compare::history::{Order, history};
use pagetide_compare::{CompareError, compare_campaign};
use pagetide_quantity::{Direction, Metric, MetricDef, Nanos};
use pagetide_record::Record;
use pagetide_store::Store;
use pagetide_store::{CampaignNote, CellNote, Entry, Filter};
use pagetide_testing::bound::bound;

const RECORDS: u64 = 100_000;
/// Largest allowed time of one query, in milliseconds.
const LIMIT: f64 = 300.0;

/// Names of the 20 metrics in each record, as many as in a scenario with latencies and reclaim counters.
const METRICS: [&str; 20] = [
    "access-mean",
    "access-p50",
    "access-p90",
    "access-p99",
    "access-max",
    "elapsed",
    "majflt",
    "pswpin",
    "pswpout",
    "pgscan",
    "pgsteal",
    "refault-anon",
    "refault-file",
    "activate",
    "allocstall",
    "stall",
    "kswapd",
    "efficiency",
    "footprint",
    "free",
];

/// Returns record number `n`: one of 10 scenarios, 4 kernels, 2 settings and 1,250 seeds.
fn record(n: u64) -> Record {
    let mut record = Record::default();
    let subject = &mut record.subject;
    subject.scenario = format!("scenario-{}", n % 10);
    subject.params.insert("pages".into(), "32768".into());
    subject.seed = n / 80;
    subject.variant.name = format!("v{}", n / 10 % 8);
    subject.variant.kernel.release = format!("6.{}.0-cloud-amd64", n / 10 % 4);
    subject
        .variant
        .settings
        .insert("lru_gen/enabled".into(), (n / 40 % 2).to_string());
    subject.arena.cmdline = "quiet panic=-1 nokaslr norandmaps".into();
    record.digest = format!("{n:064x}");
    record.results.metrics = METRICS
        .iter()
        .map(|name| {
            let def = MetricDef::count(name, Direction::Lower, "");
            Metric::new(&def, (n % 97) as f64 + 1.5)
        })
        .collect();
    record.wall.started = Nanos(n * 1_000_000);
    record.wall.total = Nanos::from_secs(3);
    record.wall.campaign = format!("campaign-{}", n / 1000);
    record
}

/// Returns the note of campaign `number`, which has 1,000 records: 8 variants, 10 cells, 12 or 13 seeds.
fn note(number: u64) -> CampaignNote {
    let entry = |n: u64| {
        let place = |n: u64| usize::try_from(n).unwrap_or(0);
        Entry {
            key: record(n).subject.key(),
            cell: place(n % 10),
            variant: place(n / 10 % 8),
            unit: 0,
            repetition: 0,
        }
    };
    CampaignNote {
        name: format!("campaign-{number}"),
        generation: 1,
        variants: (0..8).map(|n| format!("v{n}")).collect(),
        cells: vec![CellNote::default(); 10],
        entries: (number * 1000..(number + 1) * 1000).map(entry).collect(),
        ..CampaignNote::default()
    }
}

/// Processor time of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Peak memory of this process in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib / 1024)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join("pagetide-hundred-thousand");
    if std::env::args().nth(1).as_deref() != Some("ask") {
        let _ = std::fs::remove_dir_all(&folder);
        let start = Instant::now();
        let mut store = Store::open(&folder)?;
        let mut records: Vec<Record> = (0..RECORDS).map(record).collect();
        store.add_all(&mut records)?;
        drop(records);
        store.note(&note(42))?;
        drop(store);
        println!("filled the store in {:.1} s", start.elapsed().as_secs_f64());
        // Measures in a separate process, so that memory and caches from filling the store have no effect.
        let status = std::process::Command::new(std::env::current_exe()?)
            .arg("ask")
            .status()?;
        std::fs::remove_dir_all(&folder)?;
        return if status.success() {
            Ok(())
        } else {
            Err("a question took too long".into())
        };
    }
    ask(&folder)
}

fn ask(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut is_kept = true;
    let start = Instant::now();
    let store = Store::open(folder)?;
    println!(
        "open                             {:7.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    let mut time = |what: &str, question: &dyn Fn() -> Result<usize, CompareError>| {
        let (start, cpu) = (Instant::now(), cpu_time());
        let rows = question()?;
        let (took, cpu) = (start.elapsed(), cpu_time().saturating_sub(cpu));
        // On a busy machine the processor time is close to the elapsed time on an idle machine.
        let figure = took.min(cpu).as_secs_f64() * 1e3;
        println!(
            "{what:32} {:7.1} ms ({:6.1} ms of processor time), {rows} rows, peak memory {} MiB",
            took.as_secs_f64() * 1e3,
            cpu.as_secs_f64() * 1e3,
            peak()
        );
        is_kept &= bound(&format!("store of 100,000: {what}"), figure, LIMIT, "ms");
        Ok::<(), CompareError>(())
    };
    let newest = Filter {
        limit: Some(50),
        ..Filter::default()
    };
    let campaign = Filter {
        campaign: Some("campaign-42".into()),
        ..Filter::default()
    };
    let scenario = Filter {
        scenario: Some("scenario-3".into()),
        valid: Some(true),
        ..Filter::default()
    };
    time("list the newest 50", &|| Ok(store.select(&newest)?.len()))?;
    time("list a campaign", &|| Ok(store.select(&campaign)?.len()))?;
    time("compare a campaign of 1,000", &|| {
        let comparison = compare_campaign(&store, Some("campaign-42"))?;
        Ok(comparison.columns.iter().map(|column| column.valid).sum())
    })?;
    time("history over 10,000", &|| {
        let found = history(&store, "access-p99", &scenario, Order::Kernels)?;
        Ok(found
            .cells
            .iter()
            .map(|cell| cell.values.len() + cell.left_out)
            .sum())
    })?;
    time("find by prefix", &|| {
        Ok(usize::from(store.find("7").is_err()))
    })?;
    time("list all", &|| Ok(store.select(&Filter::default())?.len()))?;
    time("history over all", &|| {
        let found = history(&store, "access-p99", &Filter::default(), Order::Dates)?;
        Ok(found
            .cells
            .iter()
            .map(|cell| cell.values.len() + cell.left_out)
            .sum())
    })?;
    if is_kept {
        Ok(())
    } else {
        Err("over 300 ms".into())
    }
}
