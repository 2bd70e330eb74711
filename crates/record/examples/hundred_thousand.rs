//! How long a store of 100,000 records takes to answer, and how much memory that takes.
//!
//! `cargo run --release -p pagetide-record --example hundred_thousand`

use std::time::{Duration, Instant};

use pagetide_record::store::Filter;
use pagetide_record::{Direction, Metric, MetricDef, Nanos, Record, Store, StoreError};

const RECORDS: u64 = 100_000;
const LIMIT: Duration = Duration::from_millis(300);

/// Twenty metrics, as many as a scenario with latencies and reclaim counters has.
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

/// One of 10 scenarios, 4 kernels, 2 settings and 1,250 seeds.
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

/// Most memory this process ever held, in MiB.
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
        Store::open(&folder)?.index_only((0..RECORDS).map(record))?;
        println!("filled the index in {:.1} s", start.elapsed().as_secs_f64());
        // Asked in a process of its own, so that memory and caches are those of a command.
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
    let mut slow = false;
    let start = Instant::now();
    let store = Store::open(folder)?;
    println!(
        "open                             {:7.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    let mut time = |what: &str, question: &dyn Fn() -> Result<usize, StoreError>| {
        let start = Instant::now();
        let rows = question()?;
        let took = start.elapsed();
        slow |= took > LIMIT;
        println!(
            "{what:32} {:7.1} ms, {rows} rows, peak memory {} MiB",
            took.as_secs_f64() * 1e3,
            peak()
        );
        Ok::<(), StoreError>(())
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
        let rows = store.select(&campaign)?;
        let keys: Vec<String> = rows.iter().map(|row| row.key.clone()).collect();
        let rows = store.by_keys(&keys)?;
        let mut values = 0;
        for scenario in 0..10 {
            let name = format!("scenario-{scenario}");
            let of: Vec<i64> = rows
                .iter()
                .filter(|row| row.cell.subject.scenario == name)
                .map(|row| row.row)
                .collect();
            values += store.metrics(&name, &of)?.len();
        }
        Ok(values)
    })?;
    time("history over 10,000", &|| {
        Ok(store.history("access-p99", &scenario)?.len())
    })?;
    time("find by prefix", &|| {
        Ok(usize::from(store.find("7").is_err()))
    })?;
    time("list all", &|| Ok(store.select(&Filter::default())?.len()))?;
    time("history over all", &|| {
        Ok(store.history("access-p99", &Filter::default())?.len())
    })?;
    if slow {
        Err("over 300 ms".into())
    } else {
        Ok(())
    }
}
