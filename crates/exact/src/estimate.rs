//! How long a trial takes here: its work, reckoned from its own sizes, at the speed of this machine.
//!
//! The work is counted in pages that are touched, moved to swap or back, and referenced, and in seconds that the guest waits;
//! what each costs was fitted to trials of all scenarios on an idle machine, and is less than half off, in laps of a small piece of work that is like an emulator's ([`lap`]). A lap is timed on
//! this machine, as busy as it is. Records of the same scenario, where there are any, correct what is left of the error.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use pagetide_quantity::{Bytes, Nanos, PAGE_SIZE};
use pagetide_record::{MemorySpec, Pass, Subject, SwapSpec};

/// Wall-clock time of a trial with this subject.
pub fn of(subject: &Subject) -> Option<Nanos> {
    time_of(laps(subject)?)
}

/// Wall-clock time until a guest is booted and saved.
pub fn of_boot() -> Option<Nanos> {
    time_of(BOOT_LAPS)
}

/// Wall-clock time of so many laps on this machine.
fn time_of(laps: f64) -> Option<Nanos> {
    static LAP: OnceLock<f64> = OnceLock::new();
    let seconds = laps * *LAP.get_or_init(time_of_lap);
    Duration::try_from_secs_f64(seconds)
        .ok()
        .and_then(|time| u64::try_from(time.as_nanos()).ok())
        .map(Nanos)
}

/// Size of the table that a lap walks through: more than a core's own cache, as the translated code of a kernel is.
const TABLE_ENTRIES: usize = 1 << 18;
/// Steps of a lap.
const STEPS: u32 = 1_000_000;
/// How long laps are timed on each CPU: some slices of time, so that whatever else runs here has its turns. Every run begins with it.
const TIMED: Duration = Duration::from_millis(40);

/// Dependent loads and jumps that no predictor knows, which is what an emulator spends its time on.
fn lap(table: &[u32]) -> u32 {
    let mask = TABLE_ENTRIES - 1;
    let (mut at, mut sum) = (1_u32, 0_u32);
    for step in 0..STEPS {
        let next = table[at as usize & mask];
        sum = if next & 8 == 0 {
            sum.wrapping_add(next)
        } else {
            sum.rotate_left(5) ^ next
        };
        at = next.wrapping_add(sum >> 13).wrapping_add(step);
    }
    sum
}

/// Seconds of a lap on this machine, as busy as it is, with laps on every CPU: trials run side by side too.
fn time_of_lap() -> f64 {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let table = &table();
    let times: Vec<f64> = thread::scope(|scope| {
        let timed: Vec<_> = (0..cpus)
            .map(|_| scope.spawn(|| time_of_laps(table)))
            .collect();
        timed
            .into_iter()
            .filter_map(|timed| timed.join().ok())
            .collect()
    });
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

/// Seconds of a lap on one CPU.
fn time_of_laps(table: &[u32]) -> f64 {
    black_box(lap(table));
    let (began, mut laps) = (Instant::now(), 0_u32);
    while laps == 0 || began.elapsed() < TIMED {
        black_box(lap(black_box(table)));
        laps += 1;
    }
    began.elapsed().as_secs_f64() / f64::from(laps)
}

fn table() -> Vec<u32> {
    let mut state = 88_172_645_463_325_252_u64;
    (0..TABLE_ENTRIES)
        .map(|_| {
            // Xorshift (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32
        })
        .collect()
}

/// A boot: 1.3 to 2.4 billion instructions, most of them translated for the first time, and the saving of the guest.
const BOOT_LAPS: f64 = 700.0;
/// What a trial costs beside its scenario: the emulator's start, the way to the scenario, reading out.
const BASE_LAPS: f64 = 55.0;
/// The code of reclaim and swap, translated when it first runs.
const PRESSURE_LAPS: f64 = 60.0;
/// What an observed one costs beside that: mostly the trace, which is copied out and compressed.
const OBSERVER_LAPS: f64 = 75.0;
/// How much slower the scenario is with tracepoints.
const TRACED_FACTOR: f64 = 1.13;
/// A second of a guest that waits, for a disk or because the scenario says so.
const WAITING_LAPS: f64 = 60.0;
/// A second of a guest that allocates and compacts.
const BUSY_LAPS: f64 = 320.0;
/// First touch of a page.
const FILL_LAPS: f64 = 0.0010;
/// A page moved to compressed memory or back, and to the simulated disk or back.
const ZRAM_LAPS: f64 = 0.005;
const DISK_LAPS: f64 = 0.0063;
/// The same where a process of ours serves the disk: requests are as many, and each is passed on and copied twice.
const SERVED_LAPS: f64 = 0.02;
/// What of that a page costs that is read in order: those around it come with it.
const IN_ORDER_SHARE: f64 = 0.4;
/// A reference to a page in memory.
const HIT_LAPS: f64 = 0.00005;
/// Share of the memory that the workload itself finds for its pages; page tables and readers in flight take the rest.
const ROOM_SHARE: f64 = 0.98;
/// Memory that a kernel and what stands by take of a machine of a total size.
const FOOTPRINT_PAGES: f64 = 56.0 * 256.0;

/// A trial's sizes.
struct Sizes<'a> {
    params: &'a BTreeMap<String, String>,
    /// Pages of memory that the workload finds.
    memory: f64,
    /// Cost of moving a page to swap or back.
    moved: f64,
    /// Whether a disk with an arm is swapped to.
    on_disk: bool,
    /// Bytes a second of the disk that files lie on, where it has an arm.
    files_rate: Option<f64>,
}

impl<'a> Sizes<'a> {
    fn of(subject: &'a Subject) -> Self {
        let pages = |bytes: Bytes| bytes.0 as f64 / PAGE_SIZE as f64;
        Self {
            params: &subject.params,
            memory: match subject.memory {
                MemorySpec::Free(free) => pages(free),
                MemorySpec::Total(total) => (pages(total) - FOOTPRINT_PAGES).max(1.0),
            },
            moved: match subject.swap {
                SwapSpec::Ssd(_) => DISK_LAPS,
                SwapSpec::Disk(_) => SERVED_LAPS,
                // Most of what goes to zswap stays in it.
                SwapSpec::Zram(_) | SwapSpec::Zswap(_) | SwapSpec::None => ZRAM_LAPS,
            },
            on_disk: subject.swap.has_arm(),
            files_rate: subject.files_on.disk().map(|disk| disk.rate as f64),
        }
    }

    fn text(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(1.0)
    }

    /// A size in pages.
    fn pages(&self, name: &str) -> f64 {
        let bytes = self.text(name).parse::<Bytes>();
        bytes.map_or(0.0, |bytes| bytes.0 as f64 / PAGE_SIZE as f64)
    }

    fn seconds(&self, name: &str) -> f64 {
        self.text(name)
            .parse()
            .map_or(0.0, |time: Nanos| time.secs())
    }

    /// So many pages touched for the first time, in order, with this much room; what does not fit is moved out.
    fn filled(&self, pages: f64, room: f64) -> f64 {
        let pressure = if pages > room { PRESSURE_LAPS } else { 0.0 };
        pressure + pages * FILL_LAPS + (pages - room).max(0.0) * self.moved
    }
}

/// The work of a trial in laps; `None` for a scenario nobody knows.
fn laps(subject: &Subject) -> Option<f64> {
    let sizes = Sizes::of(subject);
    let work = match pagetide_scenario::find(&subject.scenario).ok()?.name {
        "contswap" => contswap(&sizes, subject.as_written),
        "swapbench" => swapbench(&sizes, subject.as_written),
        "usemem" => usemem(&sizes),
        "kv" => kv(&sizes),
        "filecopy" => filecopy(&sizes),
        "highalloc" => highalloc(&sizes),
        "fault" | "alloc" => sizes.number("passes") * 2.0,
        _ => pattern(&sizes),
    };
    Some(match subject.pass {
        Pass::Timed => BASE_LAPS + work,
        Pass::Observed => BASE_LAPS + OBSERVER_LAPS + work * TRACED_FACTOR,
    })
}

/// References over a region. How many of them find their page gone follows from how even the pattern is.
fn pattern(sizes: &Sizes<'_>) -> f64 {
    let (pages, refs) = (sizes.number("pages"), sizes.number("refs"));
    let absent = (1.0 - ROOM_SHARE * sizes.memory / pages).max(0.0);
    let name = sizes.text("pattern");
    let name = name.split(['(', ':']).next().unwrap_or(name);
    let missed = match name {
        // In order: the page that comes next is the one that went longest ago.
        "linear" | "loop" if absent > 0.0 => IN_ORDER_SHARE * refs,
        // In order too, but all references to a page follow each other.
        "smooth-sin" if absent > 0.0 => IN_ORDER_SHARE * refs.min(pages),
        "linear" | "loop" | "smooth-sin" => 0.0,
        "zipf" | "hot-cold" => refs * absent * 0.5,
        "scan-with-hot-core" => refs * absent * 0.75,
        _ => refs * absent,
    };
    sizes.filled(pages, sizes.memory) + refs * HIT_LAPS + 2.0 * missed * sizes.moved
}

/// Every reclaimer maps the region as well: each page is unmapped from all of them.
fn contswap(sizes: &Sizes<'_>, as_written: bool) -> f64 {
    let (pages, reclaimers) = (sizes.pages("mapping"), sizes.number("reclaimers"));
    if as_written {
        // Nothing but the page of zeros is mapped.
        return pages * 0.0004;
    }
    // Clusters of pages come back from a disk in an order that is nearly that of the mapping.
    let waits = sizes.seconds("hold") + if sizes.on_disk { 0.0015 * pages } else { 0.0 };
    PRESSURE_LAPS + pages * (0.0185 + 0.000424 * (reclaimers + 1.0)) + waits * WAITING_LAPS
}

fn swapbench(sizes: &Sizes<'_>, as_written: bool) -> f64 {
    let pages = sizes.number("processes") * sizes.pages("size");
    let passes = sizes.number("passes").max(1.0);
    let room = (sizes.memory - sizes.pages("locked")).max(1.0);
    // Written once, read in each pass; zeros are remembered and not moved.
    let moved = if as_written { 0.19 } else { 1.0 } * 2.0 * passes * (pages - room).max(0.0);
    let pressure = if moved > 0.0 { PRESSURE_LAPS } else { 0.0 };
    pressure + pages * FILL_LAPS * (1.0 + passes) + moved * sizes.moved
}

fn usemem(sizes: &Sizes<'_>) -> f64 {
    let pages = sizes.number("processes") * sizes.pages("size");
    let again = (sizes.number("passes") - 1.0).max(0.0) * pages;
    let missed = if pages > sizes.memory { again } else { 0.0 };
    sizes.filled(pages, sizes.memory)
        + again * HIT_LAPS
        + 2.0 * IN_ORDER_SHARE * missed * sizes.moved
}

fn kv(sizes: &Sizes<'_>) -> f64 {
    let pages = sizes.pages("size");
    let absent = (1.0 - sizes.memory / pages).max(0.0);
    let operations = sizes.number("operations");
    // Also data that fit are reclaimed: a snapshot copies what is written meanwhile.
    let moved_out = (pages - sizes.memory).max(0.0) * sizes.moved;
    let served = operations * (0.0085 + absent * sizes.moved);
    PRESSURE_LAPS + pages * FILL_LAPS + moved_out + served
}

/// The file is made once and copied in each of the ways, the victim touched before and after.
fn filecopy(sizes: &Sizes<'_>) -> f64 {
    let ways = sizes
        .text("methods")
        .split(',')
        .map(|word| match word.trim() {
            "classic" | "modern" => 6.0,
            "all" => 12.0,
            _ => 1.0,
        })
        .sum::<f64>();
    let (pages, victim) = (sizes.pages("size"), sizes.pages("victim"));
    // Each way reads the file and writes it, both in pieces between which the arm moves.
    let waits = sizes.files_rate.map_or(0.0, |rate| {
        4.0 * ways * pages * PAGE_SIZE as f64 / rate.max(1.0)
    });
    PRESSURE_LAPS
        + pages * FILL_LAPS
        + ways * (40.0 + pages * 0.0056 + victim * 0.017)
        + waits * WAITING_LAPS
}

/// Three passes ask for blocks at a rate, after the load has aged memory; what counts is the time of the guest.
fn highalloc(sizes: &Sizes<'_>) -> f64 {
    let asked = sizes.memory * sizes.number("share") / sizes.pages("rate").max(1.0);
    let guest = sizes.seconds("age") + sizes.seconds("rest") + 3.0 * asked;
    PRESSURE_LAPS + guest * BUSY_LAPS
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_scenario::Context;

    fn subject(name: &str, given: &[(&str, &str)], memory: u64) -> Subject {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let context = Context {
            memory: Bytes::from_mib(memory),
            swap_size: Bytes::from_mib(memory * 3),
            cpus: 1,
        };
        let params = pagetide_scenario::resolve(name, false, None, &given, &context).unwrap();
        Subject {
            scenario: name.to_owned(),
            params,
            memory: MemorySpec::Free(context.memory),
            ..Subject::default()
        }
    }

    #[test]
    fn every_scenario_has_an_estimate_that_grows_with_its_sizes() {
        type Given = &'static [(&'static str, &'static str)];
        let grown: [(&str, Given, Given); 8] = [
            ("contswap", &[("mapping", "40M")], &[("mapping", "100M")]),
            ("random", &[("refs", "10000")], &[("refs", "1000000")]),
            ("linear", &[("pages", "64M")], &[("pages", "200M")]),
            ("swapbench", &[("size", "2M")], &[("size", "6M")]),
            ("usemem", &[("passes", "2")], &[("passes", "50")]),
            (
                "kv",
                &[("operations", "1000")],
                &[("operations", "1000000")],
            ),
            ("filecopy", &[("size", "8M")], &[("size", "100M")]),
            ("highalloc", &[("age", "1s")], &[("age", "100s")]),
        ];
        for (name, small, large) in grown {
            let [small, large] = [small, large].map(|given| {
                laps(&subject(name, given, 64)).unwrap_or_else(|| panic!("{name} has none"))
            });
            assert!(
                small >= BASE_LAPS && large > small * 1.5,
                "{name}: {small} and {large}"
            );
        }
        for definition in pagetide_scenario::list()
            .iter()
            .filter(|d| !["file", "program"].contains(&d.name))
        {
            assert!(laps(&subject(definition.name, &[], 64)).is_some());
        }
    }

    /// Seconds of a lap on the machine of the trials below, when it had nothing else to do.
    const LAP: f64 = 0.007_06;

    type Given = &'static [(&'static str, &'static str)];
    const SMALL: Given = &[("pages", "5632"), ("refs", "6000")];
    /// Means of 24 trials each, three kernels, of two versions of the program; the last three beside a build: scenario, parameters,
    /// MiB, swap, seconds of the timed and of the observed pass.
    const MEASURED: [(&str, Given, u64, &str, f64, f64); 14] = [
        ("alloc", &[("floor", "fast")], 16, "zram", 0.36, 0.64),
        (
            "contswap",
            &[("mapping", "14M"), ("reclaimers", "5"), ("hold", "100ms")],
            16,
            "zram",
            1.07,
            1.63,
        ),
        (
            "filecopy",
            &[
                ("methods", "rw-cp,mm-sync-cp"),
                ("size", "8M"),
                ("victim", "5M"),
            ],
            16,
            "zram",
            1.94,
            2.88,
        ),
        (
            "highalloc",
            &[
                ("age", "500ms"),
                ("rate", "64M"),
                ("rest", "100ms"),
                ("share", "0.5"),
            ],
            48,
            "zram",
            5.05,
            5.56,
        ),
        (
            "kv",
            &[("operations", "8000"), ("size", "14M")],
            16,
            "zram",
            1.57,
            1.91,
        ),
        ("linear", SMALL, 16, "zram", 1.16, 1.73),
        ("random", SMALL, 16, "zram", 1.16, 1.53),
        ("scan-with-hot-core", SMALL, 16, "zram", 0.90, 1.70),
        ("smooth-sin-random", SMALL, 16, "zram", 1.17, 1.57),
        (
            "swapbench",
            &[("locked", "4M"), ("processes", "6"), ("size", "3M")],
            16,
            "zram",
            1.20,
            1.74,
        ),
        (
            "usemem",
            &[("processes", "3"), ("size", "8M")],
            16,
            "zram",
            1.52,
            1.88,
        ),
        (
            "contswap",
            &[("mapping", "26212K"), ("reclaimers", "128"), ("hold", "5s")],
            32,
            "disk:8ms,40MB/s",
            13.09,
            13.73,
        ),
        (
            "contswap",
            &[("mapping", "52428K"), ("reclaimers", "128"), ("hold", "5s")],
            64,
            "disk:8ms,40MB/s",
            19.95,
            21.29,
        ),
        (
            "highalloc",
            &[
                ("age", "4s"),
                ("rate", "16M"),
                ("rest", "1s"),
                ("share", "0.95"),
            ],
            48,
            "disk:8ms,40MB/s",
            30.7,
            39.8,
        ),
    ];

    #[test]
    fn trials_that_were_measured_are_reckoned_within_a_factor_of_one_and_a_half() {
        let mut wrong = Vec::new();
        for (name, given, memory, swap, timed, observed) in MEASURED {
            for (pass, seconds) in [(Pass::Timed, timed), (Pass::Observed, observed)] {
                let subject = Subject {
                    swap: swap.parse().unwrap(),
                    pass,
                    ..subject(name, given, memory)
                };
                let reckoned = laps(&subject).unwrap() * LAP;
                let ratio = seconds / reckoned;
                if !(1.0 / 1.5..=1.5).contains(&ratio) {
                    wrong.push(format!(
                        "{name} {pass:?}: {seconds} s, reckoned {reckoned:.2}"
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn copies_on_a_slow_disk_wait_for_it() {
        let given = [
            ("methods", "classic"),
            ("size", "64M"),
            ("victim", "13104K"),
        ];
        let subject = Subject {
            files_on: "disk:8ms,20MB/s".parse().unwrap(),
            ..subject("filecopy", &given, 32)
        };
        // Measured: 32 s.
        let reckoned = laps(&subject).unwrap() * LAP;
        assert!((32.0 / 1.5..32.0 * 1.5).contains(&reckoned), "{reckoned}");
    }

    #[test]
    fn an_observed_pass_takes_longer_than_a_timed_one() {
        let timed = subject("random", &[], 64);
        let observed = Subject {
            pass: Pass::Observed,
            ..timed.clone()
        };
        assert!(laps(&observed) > laps(&timed));
    }

    #[test]
    fn a_lap_takes_a_plausible_time() {
        let lap = time_of_lap();
        assert!((1e-4..2.0).contains(&lap), "{lap}");
    }
}
