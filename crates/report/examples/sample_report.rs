//! Makes the page that `web/test.sh` drives: synthetic records in a store, compared and written.
//!
//! `sample_report DIR` fills `DIR/store` and writes `DIR/report.html`, and `DIR/hostile.html` with names and logs that
//! try to be more than text.

use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use pagetide_compare::{Comparison, InvalidTrial, compare_two};
use pagetide_record::{
    Direction, Histogram, Invalid, Metric, MetricDef, Nanos, Record, Series, Store, Unit,
};
use pagetide_report::About;
use pagetide_report::html::{Assets, Input, Why, write};

const ACCESS: MetricDef = MetricDef::time("access-time", "sum of all accesses").primary();
const FAULTS: MetricDef = MetricDef::count("major-faults", Direction::Lower, "faults").primary();
const SWAP_IN: MetricDef = MetricDef::time("swap-in", "reading the mapping back").primary();
const PRESENT: MetricDef = MetricDef::share("present", Direction::Neutral, "pages in memory");
const PAGES: u64 = 4000;
const REFERENCES: u64 = 100_000;
const RELEASES: [&str; 2] = ["6.1.0", "6.12.0"];

/// Numbers that are the same everywhere (SplitMix64).
struct Mix(u64);

impl Mix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn begun(scenario: &str, side: usize, seed: u64) -> Record {
    let mut record = Record::default();
    let subject = &mut record.subject;
    subject.scenario = scenario.to_owned();
    subject.params.insert("pages".to_owned(), PAGES.to_string());
    subject.seed = seed;
    subject.variant.name = RELEASES[side].to_owned();
    subject.variant.kernel.release = RELEASES[side].to_owned();
    subject.variant.kernel.source = format!("debian:{}", RELEASES[side]);
    subject.arena.emulator = "QEMU 7.2.0".to_owned();
    record.maker.command = format!("pagetide run {scenario} --seed {seed}");
    record.results.kernel_log = "Linux version 6\nswap enabled\n".to_owned();
    let settings = &mut record.results.settings;
    settings.insert("vm.swappiness".to_owned(), "60".to_owned());
    record.wall.started = Nanos(1_790_000_000_000_000_000 + seed * 60_000_000_000);
    record
}

/// A smooth sine in random order over twice the memory there is.
fn pattern(store: &mut Store, dir: &Path, side: usize, seed: u64) {
    let mut order = Mix(seed);
    let mut times = Mix(seed * 2 + side as u64);
    let slow = if side == 0 { 0.14 } else { 0.10 };
    let mut writer = store.writer().expect("a record can be begun");
    let (mut log, mut dense) = (Vec::new(), vec![0_u64; Histogram::BUCKETS]);
    let (mut uses, mut last) = (vec![0_u64; 4000], vec![0_u64; 4000]);
    let (mut sum, mut min, mut max, mut faults) = (0, u64::MAX, 0, 0_u64);
    for reference in 0..REFERENCES {
        let page = loop {
            let page = order.next() % PAGES;
            let height = 0.5 + 0.5 * (3.0 * PI * page as f64 / PAGES as f64).sin();
            if order.share() < height {
                break page;
            }
        };
        let nanos = if times.share() < slow {
            faults += 1;
            81_000 + times.next() % 2_000 + if times.share() < 0.01 { 900_000 } else { 0 }
        } else {
            [9, 9, 9, 12, 14, 31][usize::try_from(times.next() % 6).unwrap_or(0)]
        };
        let at = usize::try_from(page).unwrap_or(0);
        uses[at] += 1;
        last[at] = reference + 1;
        log.extend_from_slice(&(page << 36 | nanos).to_le_bytes());
        dense[Histogram::index(nanos) as usize] += 1;
        (sum, min, max) = (sum + nanos, min.min(nanos), max.max(nanos));
    }
    writer
        .section("blob", "access-log", &log)
        .expect("a log can be written");
    if (side, seed) == (0, 1) {
        tell(dir, &log);
    }
    let ages: Vec<u64> = last.iter().map(|last| REFERENCES - last).collect();
    let present: Vec<i64> = ages
        .iter()
        .map(|age| i64::from(times.share() < 1.2 - *age as f64 / 300.0))
        .collect();
    let state = Series::new("pages-2")
        .int("page", Unit::Pages, (0..PAGES).map(int))
        .int("present", Unit::Count, present)
        .int("age", Unit::Count, ages.into_iter().map(int))
        .int("uses", Unit::Count, uses.into_iter().map(int));
    writer.series(&state).expect("a series can be written");
    let moments = || (0..200_u64).map(|step| int(step * 5_000_000));
    let free = (0..200_u64).map(|step| 20_000 - int(step * 90) + int(times.next() % 500));
    let over = Series::new("vmstat")
        .int("time", Unit::Nanos, moments())
        .int("nr-free-pages", Unit::Pages, free);
    writer.series(&over).expect("a series can be written");
    let mut record = begun("smooth-sin-random", side, seed);
    record.results.metrics = vec![
        Metric::new(&ACCESS, sum as f64),
        Metric::new(&FAULTS, faults as f64),
        Metric::new(&PRESENT, 0.5),
    ];
    let histogram = Histogram::from_dense(&dense, sum, min, max);
    record
        .results
        .histograms
        .insert("access".to_owned(), histogram);
    record.results.elapsed = Nanos(sum);
    store
        .add(writer, &mut record)
        .expect("a record can be added");
}

/// What the download of the first trace must hold.
fn tell(dir: &Path, log: &[u8]) {
    let entries: Vec<u64> = log
        .as_chunks::<8>()
        .0
        .iter()
        .map(|entry| u64::from_le_bytes(*entry))
        .collect();
    let (page, time) = (
        |entry: u64| entry >> 36,
        |entry: u64| entry & ((1 << 36) - 1),
    );
    let line = |at: usize| format!("{at},{},{}", page(entries[at]), time(entries[at]));
    let text = format!(
        "pages={}\ntimes={}\nfirst={}\nlast={}\n",
        entries.iter().map(|entry| page(*entry)).sum::<u64>(),
        entries.iter().map(|entry| time(*entry)).sum::<u64>(),
        line(0),
        line(entries.len() - 1)
    );
    std::fs::write(dir.join("accesses.txt"), text).expect("the folder can be written");
}

fn contswap(store: &mut Store, side: usize, seed: u64) {
    let mut mix = Mix(seed);
    let mut writer = store.writer().expect("a record can be begun");
    let offset = |page: u64, mix: &mut Mix| match (side, page % 9) {
        (_, 0) => -1,
        (0, _) => int(mix.next() % (PAGES * 2)),
        _ => int((page / 256) * 300 % (PAGES * 2) + page % 256),
    };
    let offsets: Vec<i64> = (0..PAGES).map(|page| offset(page, &mut mix)).collect();
    let layout = Series::new("swap-offsets")
        .int("page", Unit::Pages, (0..PAGES).map(int))
        .int("offset", Unit::Pages, offsets);
    writer.series(&layout).expect("a series can be written");
    let mut record = begun("contswap", side, seed);
    let time = if side == 0 { 74.97e9 } else { 45.26e9 };
    record.results.metrics = vec![Metric::new(&SWAP_IN, time * (1.0 + 0.01 * mix.share()))];
    if seed == 6 {
        record
            .results
            .invalid
            .push(Invalid::LostEvents { events: 12 });
    }
    store
        .add(writer, &mut record)
        .expect("a record can be added");
}

/// Names that try everything.
fn made_hostile(comparison: &mut Comparison) {
    let tricks = [
        "<img src=x onerror=\"document.title='owned'\">",
        "</script><script>document.title='owned'</script>\u{1b}[2J\u{202e}",
    ];
    for (column, trick) in comparison.columns.iter_mut().zip(tricks) {
        trick.clone_into(&mut column.name);
    }
    let huge = "<b>x</b>".repeat(131_072);
    for cell in &mut comparison.cells {
        cell.label = format!("</h3><svg onload=alert(1)>{huge}");
        for side in &mut cell.sides {
            side.invalid.push(InvalidTrial {
                record: "<i>".to_owned(),
                seed: 1,
                why: huge.clone(),
            });
        }
        for row in &mut cell.metrics {
            row.name = format!("{}</td>\u{0}\u{7}", row.name);
        }
    }
}

fn page(store: &Store, comparison: &Comparison, title: &str, path: &Path) {
    let open = |id: &str| store.load(id).map_err(|error| error.to_string());
    let about = About {
        title: title.to_owned(),
        command: "pagetide compare 6.1.0 6.12.0".to_owned(),
        ..About::default()
    };
    let why = [Why {
        claim: "6.12.0 waits for the device less often".to_owned(),
        evidence: vec!["major-faults fell in every pair".to_owned()],
    }];
    let input = Input {
        comparison,
        about: &about,
        why: &why,
        reclaim: &BTreeMap::new(),
        observed: &BTreeMap::new(),
        open: &open,
        assets: Assets::Inside,
    };
    let mut out = BufWriter::new(File::create(path).expect("the page can be created"));
    let written = write(&input, &mut out).expect("the page can be written");
    out.flush().expect("the page can be written");
    println!(
        "{}: {} accesses, {} bytes, omitted: {:?}",
        path.display(),
        written.accesses,
        written.bytes,
        written.omitted
    );
}

fn main() {
    let dir = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "/tmp/pagetide-sample".to_owned());
    let dir = Path::new(&dir);
    let _ = std::fs::remove_dir_all(dir.join("store"));
    let mut store = Store::open(&dir.join("store")).expect("a store can be opened");
    for seed in 1..=6 {
        for side in 0..2 {
            pattern(&mut store, dir, side, seed);
            contswap(&mut store, side, seed);
        }
    }
    let mut comparison =
        compare_two(&store, "6.1.0", "6.12.0", false).expect("the records can be compared");
    page(
        &store,
        &comparison,
        "6.12.0 against 6.1.0",
        &dir.join("report.html"),
    );
    made_hostile(&mut comparison);
    page(
        &store,
        &comparison,
        "<script>document.title='owned'</script>",
        &dir.join("hostile.html"),
    );
}
