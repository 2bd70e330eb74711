//! Measures the web page with ten million accesses: two traces in two records of a comparison.
//!
//! `cargo run --release -p pagetide-report --example big_report [FILE [ACCESSES]]` prints time, peak memory and file
//! size.

use std::collections::BTreeMap;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use pagetide_compare::Comparison;
use pagetide_quantity::{Histogram, Metric, MetricDef, Nanos, Series, Unit};
use pagetide_record::{Record, RecordReader, RecordWriter};
use pagetide_reference::Rng;
use pagetide_report::About;
use pagetide_report::html::{Assets, Input, Sources, single, write};

const TIME: MetricDef = MetricDef::time("access-time", "sum of all accesses").primary();
const PAGES: u64 = 50_000;

/// A log of accesses with times like those on a real machine: most are hits with different times; `slow` per cent of
/// the accesses wait for a device.
struct Accesses {
    page: Rng,
    time: Rng,
    left: u64,
    slow: u64,
    entry: [u8; 8],
    at: usize,
}

impl Read for Accesses {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut n = 0;
        while n < buffer.len() {
            if self.at == 8 {
                if self.left == 0 {
                    break;
                }
                self.left -= 1;
                let draw = self.time.next_u64();
                let nanos = if draw % 100 < self.slow {
                    80_000
                        + (draw >> 8) % 4_000
                        + if draw.is_multiple_of(997) {
                            3_000_000
                        } else {
                            0
                        }
                } else {
                    40 + ((draw >> 8) & 15) + ((draw >> 16) & 15) + ((draw >> 24) & 31)
                };
                let page = self.page.below(PAGES);
                self.entry = (page << 36 | nanos).to_le_bytes();
                self.at = 0;
            }
            buffer[n] = self.entry[self.at];
            self.at += 1;
            n += 1;
        }
        Ok(n)
    }
}

fn record(dir: &Path, name: &str, accesses: u64, slow: u64) -> (PathBuf, Record) {
    let source = || Accesses {
        page: Rng::new(7),
        time: Rng::new(slow),
        left: accesses,
        slow,
        entry: [0; 8],
        at: 8,
    };
    let mut writer = RecordWriter::create(dir).expect("a record can be begun");
    writer
        .stream("blob", "access-log", accesses * 8, source())
        .expect("a log can be written");
    let pages = i64::try_from(PAGES).unwrap_or(0);
    let state = Series::new("pages-1")
        .int("page", Unit::Pages, 0..pages)
        .int(
            "present",
            Unit::Count,
            (0..pages).map(|p| i64::from((p * 7 + p / 300) % 5 < 3)),
        )
        .int("age", Unit::Count, (0..pages).map(|p| p * 7919 % 1_000_003))
        .int("uses", Unit::Count, (0..pages).map(|p| 40 + p * 13 % 60));
    writer.series(&state).expect("a series can be written");
    let mut dense = vec![0; Histogram::BUCKETS];
    let mut bytes = [0; 8];
    let (mut all, mut sum) = (source(), 0);
    while all.read_exact(&mut bytes).is_ok() {
        let nanos = u64::from_le_bytes(bytes) & ((1 << 36) - 1);
        dense[Histogram::index(nanos) as usize] += 1;
        sum += nanos;
    }
    let mut record = Record::default();
    record.subject.scenario = "random".to_owned();
    record.subject.variant.name = name.to_owned();
    record.subject.variant.kernel.release = "6.12.0".to_owned();
    record.results.metrics.push(Metric::new(&TIME, sum as f64));
    record.results.histograms.insert(
        "access".to_owned(),
        Histogram::from_dense(&dense, sum, 40, 3_084_000),
    );
    record.results.elapsed = Nanos(sum);
    let path = writer
        .finish(&mut record)
        .expect("a record can be finished");
    (path, record)
}

/// Returns the line `VmHWM` of `/proc/self/status`: the peak resident memory of this process in kB.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.unwrap_or("unknown").to_owned()
}

fn compared(a: &Record, b: &Record) -> Comparison {
    let (mut both, other) = (single(a), single(b));
    both.columns.extend(other.columns);
    for (cell, more) in both.cells.iter_mut().zip(other.cells) {
        cell.sides.extend(more.sides);
        for (row, more) in cell.metrics.iter_mut().zip(more.metrics) {
            row.values.extend(more.values);
            row.judgements.push(None);
        }
    }
    both
}

fn main() {
    let mut args = std::env::args().skip(1);
    let file = args
        .next()
        .unwrap_or_else(|| "/tmp/big-report.html".to_owned());
    let accesses: u64 = args
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(10_000_000);
    let dir = std::env::temp_dir().join(format!("big-report-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder can be made");
    let (path_a, a) = record(&dir, "base", accesses / 2, 5);
    let (path_b, b) = record(&dir, "patched", accesses / 2, 3);
    let paths: BTreeMap<String, PathBuf> = [(a.id(), path_a), (b.id(), path_b)].into();
    println!("before: {}", peak());
    let comparison = compared(&a, &b);
    let start = Instant::now();
    let open = |id: &str| {
        let path = paths.get(id).ok_or("there is no such record")?;
        RecordReader::open(path).map_err(|error| error.to_string())
    };
    let about = About {
        title: "Ten million accesses".to_owned(),
        command: "pagetide report base patched".to_owned(),
        ..About::default()
    };
    let input = Input {
        comparison: &comparison,
        about: &about,
        sources: &Sources::default(),
        open: &open,
        assets: Assets::Inside,
    };
    let out = std::fs::File::create(&file).expect("the report can be created");
    let mut out = BufWriter::new(out);
    let written = write(&input, &mut out).expect("the report can be written");
    out.flush().expect("the report can be written");
    println!(
        "{file}: {} accesses, {:.2} MiB in {:.2} s, {}",
        written.accesses,
        written.bytes as f64 / 1_048_576.0,
        start.elapsed().as_secs_f64(),
        peak()
    );
    let _ = std::fs::remove_dir_all(&dir);
}
