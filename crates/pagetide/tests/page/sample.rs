//! Stores for browser tests: synthetic records with known values, and records with hostile names.

use std::f64::consts::PI;
use std::path::Path;

use pagetide_quantity::{Direction, Histogram, Metric, MetricDef, Nanos, Series, Unit};
use pagetide_record::{Invalid, Record};
use pagetide_reference::Rng;
use pagetide_store::{CampaignNote, CellNote, Entry, Filter, Store};

const ACCESS: MetricDef = MetricDef::time("access-time", "sum of all accesses").primary();
const FAULTS: MetricDef = MetricDef::count("major-faults", Direction::Lower, "faults").primary();
const SWAP_IN: MetricDef = MetricDef::time("swap-in", "reading the mapping back").primary();
const PRESENT: MetricDef = MetricDef::share("present", Direction::Neutral, "pages in memory");
const SUCCESS: MetricDef =
    MetricDef::share("success", Direction::Higher, "attempts that succeeded").primary();
const COPIES: [MetricDef; 3] = [
    MetricDef::time("time-fgets", "copy by fgets").primary(),
    MetricDef::time("time-mmap", "copy by mmap"),
    MetricDef::time("time-sendfile", "copy by sendfile"),
];
const PAGES: u64 = 4000;
const REFERENCES: u64 = 100_000;
const RELEASES: [&str; 2] = ["6.1.0", "6.12.0"];

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

/// Adds a record of a smooth sine in random order over twice the available memory.
fn pattern(store: &mut Store, dir: &Path, side: usize, seed: u64) {
    let mut order = Rng::new(seed);
    let mut times = Rng::new(seed * 2 + side as u64);
    let slow = if side == 0 { 0.14 } else { 0.10 };
    let mut writer = store.writer().expect("a record can be begun");
    let (mut log, mut dense) = (Vec::new(), vec![0_u64; Histogram::BUCKETS]);
    let (mut uses, mut last) = (vec![0_u64; 4000], vec![0_u64; 4000]);
    let (mut sum, mut min, mut max, mut faults) = (0, u64::MAX, 0, 0_u64);
    for reference in 0..REFERENCES {
        let page = loop {
            let page = order.below(PAGES);
            let height = 0.5 + 0.5 * (3.0 * PI * page as f64 / PAGES as f64).sin();
            if order.unit_f64() < height {
                break page;
            }
        };
        let nanos = if times.unit_f64() < slow {
            faults += 1;
            81_000 + times.below(2_000) + if times.unit_f64() < 0.01 { 900_000 } else { 0 }
        } else {
            [9, 9, 9, 12, 14, 31][usize::try_from(times.below(6)).unwrap_or(0)]
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
        .map(|age| i64::from(times.unit_f64() < 1.2 - *age as f64 / 300.0))
        .collect();
    let state = Series::new("pages-2")
        .int("page", Unit::Pages, (0..PAGES).map(int))
        .int("present", Unit::Count, present)
        .int("age", Unit::Count, ages.into_iter().map(int))
        .int("uses", Unit::Count, uses.into_iter().map(int));
    writer.series(&state).expect("a series can be written");
    let moments = || (0..200_u64).map(|step| int(step * 5_000_000));
    let free = (0..200_u64).map(|step| 20_000 - int(step * 90) + int(times.below(500)));
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

/// Writes the expected content of a download: the accesses of the first trace.
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
        "pages={}\ntimes={}\nfaults={}\nfirst={}\nlast={}\n",
        entries.iter().map(|entry| page(*entry)).sum::<u64>(),
        entries.iter().map(|entry| time(*entry)).sum::<u64>(),
        entries
            .iter()
            .filter(|entry| time(**entry) > 50_000)
            .count(),
        line(0),
        line(entries.len() - 1)
    );
    std::fs::write(dir.join("accesses.txt"), text).expect("the folder can be written");
}

fn contswap(store: &mut Store, side: usize, seed: u64) {
    let mut mix = Rng::new(seed);
    let mut writer = store.writer().expect("a record can be begun");
    let offset = |page: u64, mix: &mut Rng| match (side, page % 9) {
        (_, 0) => -1,
        (0, _) => int(mix.below(PAGES * 2)),
        _ => int((page / 256) * 300 % (PAGES * 2) + page % 256),
    };
    let offsets: Vec<i64> = (0..PAGES).map(|page| offset(page, &mut mix)).collect();
    let layout = Series::new("swap-offsets")
        .int("page", Unit::Pages, (0..PAGES).map(int))
        .int("offset", Unit::Pages, offsets);
    writer.series(&layout).expect("a series can be written");
    let mut record = begun("contswap", side, seed);
    let time = if side == 0 { 74.97e9 } else { 45.26e9 };
    record.results.metrics = vec![Metric::new(&SWAP_IN, time * (1.0 + 0.01 * mix.unit_f64()))];
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

/// Adds a record of two passes of allocation attempts, with increasingly fragmented free memory.
fn highalloc(store: &mut Store, side: usize, seed: u64) {
    let mut mix = Rng::new(seed * 3 + side as u64);
    let mut writer = store.writer().expect("a record can be begun");
    let attempts = 120_u64;
    let (mut rows, mut so_far) = (Vec::new(), Vec::new());
    for pass in 0..2 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for attempt in 1..=attempts {
            let latency = 20_000 + mix.below(9_000) + attempt * attempt * (2 - side as u64) * 9;
            let ended = attempt * 100 / attempts > 70 + 10 * side as u64;
            rows.push([pass, u64::from(!ended), latency]);
            (sum, squares) = (
                sum + latency as f64,
                squares + (latency as f64) * (latency as f64),
            );
            let mean = sum / attempt as f64;
            let variance = (squares / attempt as f64 - mean * mean).max(0.0);
            so_far.push([attempt as f64 / attempts as f64, mean, variance.sqrt()]);
        }
    }
    let series = Series::new("attempts")
        .int("pass", Unit::Count, rows.iter().map(|row| int(row[0])))
        .int("success", Unit::Count, rows.iter().map(|row| int(row[1])))
        .int("latency", Unit::Nanos, rows.iter().map(|row| int(row[2])))
        .float("asked", Unit::Share, so_far.iter().map(|row| row[0]))
        .float("mean-so-far", Unit::Nanos, so_far.iter().map(|row| row[1]))
        .float(
            "deviation-so-far",
            Unit::Nanos,
            so_far.iter().map(|row| row[2]),
        );
    writer.series(&series).expect("a series can be written");
    for (moment, share) in [
        ("before-rest", 0.02),
        ("before-load", 0.06),
        ("after", 0.09),
    ] {
        let blocks = Series::new(format!("fragmentation-{moment}"))
            .int("zone", Unit::Count, (0..22).map(|row| row / 11))
            .int("order", Unit::Count, (0..22).map(|row| row % 11))
            .int(
                "free-blocks",
                Unit::Count,
                (0..22).map(|row| 400 >> (row % 11)),
            )
            .float(
                "unusable",
                Unit::Share,
                (0..22).map(|row| (share * f64::from(row % 11)).min(1.0)),
            )
            .float("fragmentation", Unit::Share, (0..22).map(|_| -1.0));
        writer.series(&blocks).expect("a series can be written");
    }
    let mut record = begun("highalloc", side, seed);
    record.results.metrics = vec![Metric::new(&SUCCESS, 0.7 + 0.1 * side as f64)];
    store
        .add(writer, &mut record)
        .expect("a record can be added");
}

/// Adds a record of files copied in three ways next to a victim process.
fn filecopy(store: &mut Store, side: usize, seed: u64) {
    let mut mix = Rng::new(seed * 5 + side as u64);
    let mut writer = store.writer().expect("a record can be begun");
    let mut record = begun("filecopy", side, seed);
    let mut rows = Vec::new();
    for (method, metric) in (0_u64..).zip(&COPIES) {
        let time = (method + 2) * 700_000_000 + mix.below(90_000_000);
        record
            .results
            .metrics
            .push(Metric::new(metric, time as f64));
        let mean = 900 + method * 300 + mix.below(200);
        rows.push([method, time, 5000, mean, mean * 40]);
    }
    let column = |at: usize| rows.iter().map(move |row| int(row[at]));
    let copies = Series::new("copies")
        .int("method", Unit::Count, column(0))
        .int("time", Unit::Nanos, column(1))
        .int("victim-accesses", Unit::Count, column(2))
        .int("victim-mean", Unit::Nanos, column(3))
        .int("victim-p99", Unit::Nanos, column(4));
    writer.series(&copies).expect("a series can be written");
    store
        .add(writer, &mut record)
        .expect("a record can be added");
}

/// Adds a record of thirty processes that write and read.
fn swapbench(store: &mut Store, side: usize, seed: u64) {
    let mut mix = Rng::new(seed * 7 + side as u64);
    let mut writer = store.writer().expect("a record can be begun");
    let rows: Vec<[u64; 4]> = (0..120)
        .map(|row| {
            let is_read = row % 2;
            let time = 300_000_000 + mix.below(200_000_000) - is_read * 100_000_000;
            [row / 4, row / 2 % 2, is_read, time]
        })
        .collect();
    let column = |at: usize| rows.iter().map(move |row| int(row[at]));
    let processes = Series::new("processes")
        .int("process", Unit::Count, column(0))
        .int("pass", Unit::Count, column(1))
        .int("is-read", Unit::Count, column(2))
        .int("time", Unit::Nanos, column(3));
    writer.series(&processes).expect("a series can be written");
    let mut record = begun("swapbench", side, seed);
    record.results.metrics = vec![Metric::new(
        &SWAP_IN,
        rows.iter().map(|row| row[3]).sum::<u64>() as f64,
    )];
    store
        .add(writer, &mut record)
        .expect("a record can be added");
}

/// Number of kernels in a history.
const HISTORY: u64 = 14;
/// Number of the first kernel that is faster.
const FASTER: u64 = 8;

/// Fills a store with a metric over many kernels. The metric is 20 % lower from kernel [`FASTER`] on.
pub fn fill_history(dir: &Path) {
    let mut store = Store::open(&dir.join("store")).expect("a store can be opened");
    for minor in 1..=HISTORY {
        for seed in 1..=4 {
            let mut mix = Rng::new(minor * 100 + seed);
            let mut record = begun("linear", 0, seed);
            let kernel = &mut record.subject.variant.kernel;
            kernel.release = format!("6.{minor}.0");
            kernel.source = format!("debian:6.{minor}.0");
            record.subject.variant.name = "base".to_owned();
            let time = if minor < FASTER { 1.0e9 } else { 0.8e9 } * (1.0 + seed as f64 / 50.0);
            record.results.metrics =
                vec![Metric::new(&ACCESS, time * (1.0 + 0.002 * mix.unit_f64()))];
            let writer = store.writer().expect("a record can be begun");
            store
                .add(writer, &mut record)
                .expect("a record can be added");
        }
    }
}

/// Fills a store with a campaign that has trials of two scenarios.
pub fn fill_campaign(dir: &Path) {
    let store = Store::open(&dir.join("store")).expect("a store can be opened");
    let scenarios = ["smooth-sin-random", "contswap"];
    let mut note = CampaignNote {
        name: "kernels".to_owned(),
        generation: 1,
        started: Nanos(1_790_000_000_000_000_000),
        variants: RELEASES.map(str::to_owned).to_vec(),
        ..CampaignNote::default()
    };
    for (cell, scenario) in scenarios.into_iter().enumerate() {
        let filter = Filter {
            scenario: Some(scenario.to_owned()),
            ..Filter::default()
        };
        for row in store.select(&filter).expect("records can be listed") {
            note.cells.resize(cell + 1, CellNote::default());
            note.cells[cell].label = row.cell.subject.cell_label();
            note.entries.push(Entry {
                key: row.key.clone(),
                cell,
                variant: usize::from(row.variant.name == RELEASES[1]),
                unit: row.unit,
                repetition: 0,
            });
        }
    }
    store.note(&note).expect("a note can be kept");
}

/// Fills a store in `DIR/dead` in which all trials of the second kernel are invalid for the same reason.
pub fn fill_dead(dir: &Path) {
    let mut store = Store::open(&dir.join("dead")).expect("a store can be opened");
    for seed in 1..=4 {
        for side in 0..2 {
            let mut record = begun("linear", side, seed);
            record.results.metrics = vec![Metric::new(&ACCESS, 1e9 + seed as f64)];
            if side == 1 {
                let lost = Invalid::LostEvents { events: 12 };
                record.results.invalid.push(lost);
            }
            let writer = store.writer().expect("a record can be begun");
            store
                .add(writer, &mut record)
                .expect("a record can be added");
        }
    }
}

/// Fills a store of two kernels in `DIR/store`, and writes the expected download of the first trace to
/// `DIR/accesses.txt`.
pub fn fill(dir: &Path) {
    let mut store = Store::open(&dir.join("store")).expect("a store can be opened");
    for seed in 1..=6 {
        for side in 0..2 {
            pattern(&mut store, dir, side, seed);
            contswap(&mut store, side, seed);
            highalloc(&mut store, side, seed);
            filecopy(&mut store, side, seed);
            swapbench(&mut store, side, seed);
        }
    }
}

/// Hostile texts used as names.
pub const TRICKS: [&str; 2] = [
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>\u{1b}[2J\u{202e}",
];

/// Fills a store of two kernels in `DIR/hostile` with hostile names, labels and logs.
pub fn fill_hostile(dir: &Path) {
    let mut store = Store::open(&dir.join("hostile")).expect("a store can be opened");
    let huge = "<b>x</b>".repeat(131_072);
    for seed in 1..=3 {
        for (side, trick) in TRICKS.iter().enumerate() {
            let mut record = begun("</h3><svg onload=alert(1)>", side, seed);
            let subject = &mut record.subject;
            (*trick).clone_into(&mut subject.variant.name);
            subject.params.insert("<i>".to_owned(), huge.clone());
            subject
                .variant
                .settings
                .insert(TRICKS[0].to_owned(), huge.clone());
            record.results.kernel_log.clone_from(&huge);
            record.maker.command = format!("{}\u{0}\u{7}{huge}", TRICKS[1]);
            let settings = &mut record.results.settings;
            settings.insert(TRICKS[1].to_owned(), huge.clone());
            let mut metric = Metric::new(&ACCESS, 1e9 + (seed * 10 + side as u64) as f64);
            metric.name = format!("{}</td>\u{0}\u{7}", TRICKS[0]);
            record.results.metrics = vec![metric];
            if seed == 3 {
                record.results.invalid.push(Invalid::Panic {
                    reason: huge.clone(),
                });
            }
            let mut writer = store.writer().expect("a record can be begun");
            let series = Series::new(TRICKS[1]).int("time", Unit::Nanos, 0..50).int(
                TRICKS[0],
                Unit::Count,
                (0..50).map(|at| at * at),
            );
            writer.series(&series).expect("a series can be written");
            store
                .add(writer, &mut record)
                .expect("a record can be added");
        }
    }
}
