//! Computes the work of a trial from its sizes. The unit is the lap: one run of a small benchmark loop.
//!
//! The work is a sum of costs: for pages first touched, swapped out and swapped in, for references, and for seconds
//! that the guest waits. Costs were fitted to trials of all scenarios on an idle machine; the tests contain these
//! trials. The number of references that fault comes from simulating LRU on the trial's own references.

use pagetide_quantity::PAGE_SIZE;
use pagetide_record::{CpusSpec, Pass, Subject};
use pagetide_scenario::compressed_share;

use super::faults::faults;
use super::sizes::{CONTENT, FILL_LAPS, Faults, Moves, PRESSURE_LAPS, Sizes};

/// Laps (the unit of work) that every trial takes besides its scenario: starting the emulator, reaching the scenario,
/// reading the results.
const BASE_LAPS: f64 = 55.0;
/// Additional laps of an observed trial, mostly for reading and compressing the trace.
const OBSERVER_LAPS: f64 = 75.0;
/// Factor by which tracepoints slow down the scenario.
const TRACED_FACTOR: f64 = 1.13;
/// Factor by which counting instructions by function slows down the scenario.
const COUNTED_FACTOR: f64 = 1.5;
/// Cost of a second on the guest's clock with several CPUs, relative to the cost with one. Measured with 2 and with 4
/// CPUs that take turns of 5 us: 1.47 and 1.66 times as much.
const TURNS_FACTOR: f64 = 1.5;
/// Laps per second of guest time in which the guest waits, either for a disk or because the scenario pauses.
const WAITING_LAPS: f64 = 60.0;
/// Laps per second of guest time in which the guest allocates and compacts.
const BUSY_LAPS: f64 = 290.0;
/// Seconds of guest time that a job needs for each page in one round.
const ROUND_SECONDS: f64 = 5.5e-6;
/// Minimum fraction of guest time in which the guest is busy, also without jobs.
const MIN_BUSY: f64 = 0.2;
/// Laps per reference to a page in memory.
const HIT_LAPS: f64 = 0.00005;
/// Cost of moving zero-filled pages, relative to that of other pages.
const AS_ZEROS: f64 = 0.19;
/// Number of accesses that a paced process makes between two pauses.
const PACED_BURST: f64 = 32.0;
/// Laps per burst of a paced process, without faults.
const BURST_LAPS: f64 = 0.02;
/// Laps per burst of a paced process for the page faults that hungry processes cause.
const FAULTING_LAPS: f64 = 0.12;
/// Laps per page of the first start of a program, in the scenario launches.
const START_LAPS: f64 = 0.004;
/// Laps per page of a launch, in the scenario launches.
const LAUNCH_LAPS: f64 = 0.006;
/// Laps per operation of the scenario kv.
const OPERATION_LAPS: f64 = 0.0085;
/// Fraction of kv's references that miss, relative to the fraction if keys were chosen uniformly.
const KV_MISSES: f64 = 0.5;

/// Returns the work of a trial in laps; `None` for an unknown scenario and for a user's own program.
pub(super) fn laps(subject: &Subject) -> Option<f64> {
    let sizes = Sizes::of(subject);
    let work = match pagetide_scenario::find(&subject.scenario).ok()?.name {
        "contswap" => contswap(&sizes, subject.as_written),
        "swapbench" => swapbench(&sizes, subject.as_written),
        "usemem" => usemem(&sizes),
        "kv" => kv(&sizes),
        "neighbours" => neighbours(&sizes),
        "launches" => launches(&sizes),
        "proactive" => proactive(&sizes),
        "filecopy" => filecopy(&sizes, subject.as_written),
        "highalloc" => highalloc(&sizes),
        "fault" | "alloc" => sizes.number("passes") * 2.0,
        // The memory size of a user's program does not determine its work.
        "program" => return None,
        _ => pattern(&sizes, subject),
    };
    let work = work * of_cpus(subject.cpus, tasks(&sizes, &subject.scenario));
    Some(match subject.pass {
        Pass::Timed => BASE_LAPS + work,
        Pass::Profiled => BASE_LAPS + work * COUNTED_FACTOR,
        Pass::Observed => BASE_LAPS + OBSERVER_LAPS + work * TRACED_FACTOR,
    })
}

/// Returns the number of processes of a scenario that run at the same time.
fn tasks(sizes: &Sizes<'_>, scenario: &str) -> f64 {
    match scenario {
        "contswap" => sizes.number("reclaimers"),
        "swapbench" | "usemem" => sizes.number("processes"),
        "highalloc" => sizes.number("jobs"),
        "neighbours" => 1.0 + sizes.number("neighbours"),
        _ => 1.0,
    }
}

/// Returns the factor by which the work of `tasks` processes takes longer on these CPUs than on one. Besides the cost
/// of taking turns, emulated time also passes on CPUs that have nothing to do.
fn of_cpus(cpus: CpusSpec, tasks: f64) -> f64 {
    if !cpus.are_several() {
        return 1.0;
    }
    let count = f64::from(cpus.count);
    TURNS_FACTOR * count / tasks.clamp(1.0, count)
}

/// Laps of a scenario that makes references to a region.
fn pattern(sizes: &Sizes<'_>, subject: &Subject) -> f64 {
    let (pages, refs) = (sizes.number("pages"), sizes.number("refs"));
    let content = compressed_share(sizes.text("content")).unwrap_or(1.0);
    let room = sizes.room(pages, 0.0, content);
    let name = sizes.text("pattern");
    let name = name.split(['(', ':']).next().unwrap_or(name);
    let in_order = ["linear", "loop", "smooth-sin"].contains(&name);
    let faults = Faults {
        // If the references are not known, all pages are assumed to be equally likely.
        count: if pages > room {
            faults(subject, refs, room).unwrap_or(refs * (1.0 - room / pages))
        } else {
            0.0
        },
        in_order,
        is_writing: sizes.text("access") != "read",
    };
    sizes.filled(pages, room, faults) + refs * HIT_LAPS
}

/// Returns the laps of the scenario contswap. Every reclaimer maps the region too, so each page is unmapped from all of
/// them.
fn contswap(sizes: &Sizes<'_>, as_written: bool) -> f64 {
    let (pages, reclaimers) = (sizes.pages("mapping"), sizes.number("reclaimers"));
    if as_written {
        // In the original form, the scenario maps only the zero page.
        return pages * 0.0028;
    }
    // A disk's clusters of pages are read back nearly in the order of the mapping.
    let waits = sizes.seconds("hold") + if sizes.on_disk { 0.0015 * pages } else { 0.0 };
    PRESSURE_LAPS + pages * (0.0185 + 0.000424 * (reclaimers + 1.0)) + waits * WAITING_LAPS
}

fn swapbench(sizes: &Sizes<'_>, as_written: bool) -> f64 {
    let pages = sizes.number("processes") * sizes.pages("size");
    let passes = sizes.number("passes").max(1.0);
    let room = sizes.room(pages, sizes.pages("locked"), CONTENT);
    // Each page is written once and read in each pass. Pages of zeros are only marked as such and not moved.
    let moved = if as_written { AS_ZEROS } else { 1.0 };
    let faults = Faults {
        count: moved * passes * pages,
        in_order: true,
        is_writing: false,
    };
    sizes.filled(pages, room, faults) + passes * pages * FILL_LAPS
}

fn usemem(sizes: &Sizes<'_>) -> f64 {
    let pages = sizes.number("processes") * sizes.pages("size");
    let again = (sizes.number("passes") - 1.0).max(0.0) * pages;
    let faults = Faults {
        count: again,
        in_order: true,
        is_writing: true,
    };
    sizes.filled(pages, sizes.room(pages, 0.0, CONTENT), faults) + again * HIT_LAPS
}

fn kv(sizes: &Sizes<'_>) -> f64 {
    let pages = sizes.pages("size");
    let operations = sizes.number("operations");
    let room = sizes.room(pages, 0.0, CONTENT);
    let faults = Faults {
        count: operations * (1.0 - room / pages) * KV_MISSES,
        in_order: false,
        is_writing: true,
    };
    // Data that fit in memory are reclaimed as well, because a snapshot copies pages that are written meanwhile.
    let pressure = if pages <= room { PRESSURE_LAPS } else { 0.0 };
    pressure + sizes.filled(pages, room, faults) + operations * OPERATION_LAPS
}

/// Laps of the scenario neighbours. The paced process takes the time of its pauses, in which the hungry processes
/// run.
fn neighbours(sizes: &Sizes<'_>) -> f64 {
    let bursts = 1.25 * sizes.number("accesses") / PACED_BURST;
    PRESSURE_LAPS
        + sizes.pages("sensitive") * FILL_LAPS
        + bursts * (BURST_LAPS + FAULTING_LAPS + sizes.seconds("pause") * BUSY_LAPS)
}

/// Laps of the scenario launches. Each launch reads and moves a part of the program's memory and file.
fn launches(sizes: &Sizes<'_>) -> f64 {
    let (programs, launches) = (sizes.number("programs"), sizes.number("launches"));
    let (anon, file) = (sizes.pages("anon"), sizes.pages("file"));
    let needed = anon * sizes.number("anon-share") + file * sizes.number("file-share");
    let fresh = sizes.pages("fresh");
    PRESSURE_LAPS
        + programs * (anon + 2.0 * file) * START_LAPS
        + launches * ((needed + fresh) * LAUNCH_LAPS + sizes.seconds("pause") * WAITING_LAPS)
}

/// Laps of the scenario proactive. Two paced processes run while requests are made.
fn proactive(sizes: &Sizes<'_>) -> f64 {
    let pages = sizes.pages("size") + sizes.pages("sensitive");
    let used = sizes.pages("size") * (1.0 - sizes.number("cold")) + sizes.pages("sensitive");
    let pause = sizes.seconds("pause").max(1e-4);
    let before = 2.0 * used / PACED_BURST * pause;
    let guest = before + sizes.number("requests") * sizes.seconds("interval");
    let moved = sizes.number("requests") * sizes.pages("request");
    PRESSURE_LAPS
        + pages * FILL_LAPS
        + moved * Moves::COMPRESSED.out
        + guest * (WAITING_LAPS + 2.0 * BURST_LAPS / pause)
}

/// Laps of the scenario filecopy. The file is made once and copied in each of the ways; the victim is touched before
/// and after.
fn filecopy(sizes: &Sizes<'_>, as_written: bool) -> f64 {
    // In the original form, the scenario does not read the copy back for verification.
    let moved = if as_written { 0.008 } else { 0.018 };
    let ways = sizes
        .text("methods")
        .split(',')
        .map(|word| match word.trim() {
            "classic" => 6.0,
            "modern" => 8.0,
            "all" => 14.0,
            _ => 1.0,
        })
        .sum::<f64>();
    let (pages, victim) = (sizes.pages("size"), sizes.pages("victim"));
    // Each way of copying reads and writes the file in chunks, and the disk seeks between reading and writing.
    let waits = sizes.files_rate.map_or(0.0, |rate| {
        2.5 * ways * pages * PAGE_SIZE as f64 / rate.max(1.0)
    });
    PRESSURE_LAPS
        + pages * FILL_LAPS
        + ways * (40.0 + pages * moved + victim * 0.017)
        + waits * WAITING_LAPS
}

/// Laps of the scenario highalloc. Three passes allocate blocks at a given rate after the load has aged memory. The
/// cost depends on the guest's time and on the share of time for which the jobs are busy; they rest between two rounds.
fn highalloc(sizes: &Sizes<'_>) -> f64 {
    let asked = sizes.memory * sizes.number("share") / sizes.pages("rate").max(1.0);
    let guest = sizes.seconds("age") + sizes.seconds("rest") + 3.0 * asked;
    let jobs = sizes.number("jobs").max(1.0);
    let round = sizes.pages("load") / jobs * ROUND_SECONDS;
    let busy = jobs * round / (round + sizes.seconds("pause")).max(f64::MIN_POSITIVE);
    PRESSURE_LAPS + guest * BUSY_LAPS * busy.clamp(MIN_BUSY, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_quantity::Bytes;
    use pagetide_record::MemorySpec;
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
        let grown: [(&str, Given, Given); 11] = [
            (
                "neighbours",
                &[("accesses", "2000")],
                &[("accesses", "200000")],
            ),
            ("launches", &[("launches", "2")], &[("launches", "200")]),
            ("proactive", &[("requests", "1")], &[("requests", "100")]),
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
        assert_eq!(
            laps(&subject(
                "program",
                &[
                    ("command", "/usr/bin/sort a"),
                    ("root", "1be7cf38402209ac3f12b4e8fcb0e5cc")
                ],
                64
            )),
            None
        );
    }

    #[test]
    fn several_cpus_take_longer_and_idle_ones_most() {
        let with = |name: &str, cpus: u32| {
            let subject = Subject {
                cpus: CpusSpec::of(cpus),
                ..subject(name, &[], 64)
            };
            laps(&subject).unwrap() - BASE_LAPS
        };
        assert!(with("linear", 2) > 2.0 * with("linear", 1));
        assert!(with("usemem", 2) > with("usemem", 1));
        // One process keeps one of four CPUs busy, and many keep all.
        let ratio = |name| with(name, 4) / with(name, 2);
        assert!((ratio("linear") - 2.0).abs() < 1e-6);
        assert!((ratio("swapbench") - 1.0).abs() < 1e-6);
    }

    /// Seconds per lap on the idle machine on which the trials below ran.
    const LAP: f64 = 0.007_06;

    type Given = &'static [(&'static str, &'static str)];
    const SMALL: Given = &[("pages", "5632"), ("refs", "6000")];
    /// Measured trials: means of 24 trials each, with three kernels and two versions of the program. The last three ran
    /// while a build was running. Columns: scenario, parameters, MiB of memory, swap, seconds of the timed pass,
    /// seconds of the observed pass.
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

    /// A measured trial of a cell of a shipped campaign.
    #[derive(Clone, Copy)]
    struct Shipped {
        scenario: &'static str,
        as_written: bool,
        given: Given,
        memory: &'static str,
        swap: &'static str,
        /// Measured processor time of a trial, in laps.
        laps: f64,
    }

    const fn cell(
        scenario: &'static str,
        given: Given,
        memory: &'static str,
        swap: &'static str,
        laps: f64,
    ) -> Shipped {
        Shipped {
            scenario,
            as_written: false,
            given,
            memory,
            swap,
            laps,
        }
    }

    const fn written(shipped: Shipped) -> Shipped {
        Shipped {
            as_written: true,
            ..shipped
        }
    }

    const HALF_MORE: Given = &[("pages", "1.5 * memory"), ("refs", "32768")];
    const EIGHT: Given = &[
        ("locked", "0.1 * memory"),
        ("processes", "8"),
        ("size", "0.15 * memory"),
    ];
    const SIX: Given = &[
        ("locked", "0.25 * memory"),
        ("processes", "6"),
        ("size", "6M"),
    ];
    const THIRTY: Given = &[("locked", "110M"), ("processes", "30"), ("size", "10M")];
    const PAPERS_MAPPING: Given = &[("mapping", "1650/2048*memory"), ("reclaimers", "128")];
    const ONCE: Given = &[("pages", "memory"), ("refs", "1003520")];
    const TWICE: Given = &[("pages", "2 * memory"), ("refs", "1003520")];
    const CLASSIC: Given = &[("methods", "classic"), ("size", "2*memory")];

    /// Measured trials of shipped campaigns: one trial of each cell, on 23 November 2026, on two processors, one of
    /// which was busy. A lap took 7.5 to 8.6 ms of processor time.
    const SHIPPED: [Shipped; 28] = [
        cell("smooth-sin-random", HALF_MORE, "64M", "zram", 421.0),
        cell("smooth-sin-random", HALF_MORE, "64M", "ssd", 674.0),
        cell("smooth-sin-random", HALF_MORE, "total:256M", "zram", 882.0),
        cell("smooth-sin-random", HALF_MORE, "total:256M", "ssd", 510.0),
        cell("swapbench", EIGHT, "64M", "zram", 287.0),
        cell("swapbench", EIGHT, "64M", "ssd", 340.0),
        cell("swapbench", EIGHT, "total:256M", "zram", 1050.0),
        cell("swapbench", EIGHT, "total:256M", "ssd", 990.0),
        cell(
            "smooth-sin-random",
            &[("pages", "2 * memory"), ("refs", "1.5 * pages")],
            "32M",
            "zram",
            350.0,
        ),
        cell("swapbench", SIX, "32M", "zram", 210.0),
        cell("swapbench", SIX, "32M", "ssd", 202.0),
        cell("hot-cold", &[], "24M", "ssd", 493.0),
        cell(
            "filecopy",
            &[("methods", "rw-cp,mm-sync-cp")],
            "24M",
            "zram",
            672.0,
        ),
        cell("usemem", &[], "24M", "zram", 204.0),
        cell(
            "highalloc",
            &[("age", "1s"), ("rest", "500ms")],
            "24M",
            "zram",
            853.0,
        ),
        cell(
            "contswap",
            PAPERS_MAPPING,
            "128M",
            "disk:8ms,40MB/s",
            4870.0,
        ),
        written(cell(
            "contswap",
            PAPERS_MAPPING,
            "128M",
            "disk:8ms,40MB/s",
            140.0,
        )),
        cell("highalloc", &[], "total:192M", "zram", 8050.0),
        written(cell("highalloc", &[], "total:192M", "zram", 13_900.0)),
        cell("filecopy", CLASSIC, "total:128M", "zram", 9060.0),
        written(cell("filecopy", CLASSIC, "total:128M", "zram", 4220.0)),
        cell("smooth-sin", ONCE, "49M", "ssd", 282.0),
        cell("smooth-sin", TWICE, "49M", "ssd", 525.0),
        cell("smooth-sin-random", TWICE, "49M", "ssd", 13_050.0),
        written(cell("smooth-sin-random", ONCE, "49M", "ssd", 782.0)),
        written(cell("smooth-sin-random", TWICE, "49M", "ssd", 13_300.0)),
        cell("swapbench", THIRTY, "total:192M", "ssd", 1500.0),
        written(cell("swapbench", THIRTY, "total:192M", "ssd", 900.0)),
    ];

    #[test]
    fn cells_of_the_campaigns_shipped_are_reckoned_within_a_factor_of_one_and_a_half() {
        let mut wrong = Vec::new();
        for shipped in SHIPPED {
            let memory: MemorySpec = shipped.memory.parse().unwrap();
            let given = shipped
                .given
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let context = Context {
                memory: memory.bytes(),
                swap_size: Bytes(3 * memory.bytes().0),
                cpus: 1,
            };
            let Shipped {
                scenario,
                as_written,
                ..
            } = shipped;
            let params =
                pagetide_scenario::resolve(scenario, as_written, None, &given, &context).unwrap();
            let subject = Subject {
                scenario: scenario.to_owned(),
                as_written,
                params,
                memory,
                swap: shipped.swap.parse().unwrap(),
                seed: 1,
                ..Subject::default()
            };
            let reckoned = laps(&subject).unwrap();
            let ratio = shipped.laps / reckoned;
            let line = format!(
                "{scenario} {as_written} {} {}: {:.0} laps, reckoned {reckoned:.0} ({ratio:.2})",
                shipped.memory, shipped.swap, shipped.laps
            );
            println!("{line}");
            if !(1.0 / 1.5..=1.5).contains(&ratio) {
                wrong.push(line);
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
        // The measured time was 32 s.
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
}
