//! Tests that each goal's number follows from the record, and that the goal holds from its limit on.

use std::collections::BTreeMap;

use pagetide_hunt::{Evidence, Goal, opt};
use pagetide_quantity::{Bytes, Metric, MetricDef, Nanos};
use pagetide_record::{Counters, Invalid, MemoryAtKill, Record, SwapSpec};
use pagetide_workload::Workload;

const STALL: MetricDef = MetricDef::time("longest-stall", "longest");

fn record(counters: &[(&str, u64)], invalid: Vec<Invalid>) -> Record {
    let mut record = Record::default();
    record.subject.swap = SwapSpec::Ssd(Nanos::from_micros(80));
    let values = counters
        .iter()
        .map(|(name, rise)| ((*name).to_owned(), [5, 5 + rise]));
    let vmstat = Counters {
        values: values.collect(),
    };
    record.results.counters.insert("vmstat".to_owned(), vmstat);
    record.results.invalid = invalid;
    record.results.elapsed = Nanos::from_secs(1);
    record
}

fn outcome(goal: Goal, record: &Record) -> pagetide_hunt::Outcome {
    goal.measure(&[Evidence::of(record)], &[])
}

fn memory(anon: u64, free: u64) -> MemoryAtKill {
    MemoryAtKill {
        anon: Bytes::from_mib(anon),
        swap: Some([Bytes::from_mib(free), Bytes::from_mib(64)]),
        needed: Bytes::from_mib(2),
        ..MemoryAtKill::default()
    }
}

#[test]
fn a_kill_counts_by_what_could_have_been_reclaimed() {
    let gave_up = |memory| Invalid::GaveUp {
        process: "a".to_owned(),
        after: Nanos::from_millis(300),
        memory,
    };
    let spared = outcome(Goal::Killed, &record(&[], vec![gave_up(memory(12, 40))]));
    assert!(
        spared.holds && (spared.value - 6.0).abs() < 1e-9,
        "{spared:?}"
    );
    // Swap has no space for more than this.
    let less = outcome(Goal::Killed, &record(&[], vec![gave_up(memory(12, 4))]));
    assert!((less.value - 2.0).abs() < 1e-9 && less.score < spared.score);
    let lack = Invalid::OutOfMemory {
        process: "a".to_owned(),
        after: Nanos::from_millis(300),
    };
    let lack = outcome(Goal::Killed, &record(&[], vec![lack]));
    assert!(!lack.holds && lack.score < 1.0, "{lack:?}");
    // Heavy reclaim without a kill is nearer to the goal than a kill that left nothing to reclaim.
    let alive = outcome(Goal::Killed, &record(&[("pgscan_direct", 1 << 20)], vec![]));
    assert!(alive.score > lack.score, "{alive:?}");
    // A group with limited swap cannot swap out even if the device has space. Protected memory cannot be reclaimed
    // either.
    let limited = |group: &str| {
        let mut record = record(&[], vec![gave_up(memory(12, 40))]);
        let text = format!(
            "[[group]]\nname = \"g\"\n{group}\n[[process]]\nname = \"a\"\ngroup = \"g\"\n\
             segment = [{{ name = \"s\", size = \"40%\" }}]\nphase = [{{ do = \"fill\", segment = \"s\" }}]"
        );
        let params = [("workload".to_owned(), workload(&text).canonical())];
        record.subject.params = params.into();
        outcome(Goal::Killed, &record)
    };
    assert!(limited("max = \"90%\"").holds);
    assert!(!limited("swap-max = \"90%\"").holds);
    assert!(!limited("min = \"80%\"").holds, "of 64 MiB");
    // If there are several kills, one with memory to spare is enough.
    let both = vec![
        Invalid::OutOfMemory {
            process: "b".to_owned(),
            after: Nanos::from_millis(100),
        },
        gave_up(memory(12, 40)),
    ];
    assert!(outcome(Goal::Killed, &record(&[], both)).holds);
}

#[test]
fn a_trial_that_says_nothing_about_the_kernel_has_no_outcome() {
    let full = Invalid::Full {
        what: "the disk".to_owned(),
        size: Bytes::from_mib(1),
    };
    for goal in Goal::ALL {
        let outcome = outcome(goal, &record(&[], vec![full.clone()]));
        assert!(outcome.unusable.is_some() && !outcome.holds, "{goal}");
    }
    let none = outcome(Goal::Killed, &record(&[], vec![Invalid::NoReclaim]));
    assert_eq!(none.unusable, None, "a workload need not be under pressure");
}

#[test]
fn a_stall_is_vain_scanning_or_time_without_an_access() {
    let counts = [
        ("pgscan_anon", 4_000_000),
        ("pgsteal_anon", 100_000),
        ("nr_free_pages", 7),
        ("nr_written", 9),
    ];
    let vain = outcome(Goal::Stall, &record(&counts, vec![]));
    assert!(vain.holds && (vain.value - 40.0).abs() < 1e-9, "{vain:?}");
    let names = vain.behaviour.features.iter().map(|one| &*one.name);
    let own: Vec<&str> = names.filter(|name| name.starts_with("nr_")).collect();
    assert_eq!(own, ["nr_written"], "what is not a gauge");
    let few = [("pgscan_anon", 400), ("pgsteal_anon", 1)];
    assert!(
        !outcome(Goal::Stall, &record(&few, vec![])).holds,
        "too few pages"
    );
    let mut still = record(&[], vec![]);
    still.results.metrics.push(Metric::new(&STALL, 2.5e9));
    let still = outcome(Goal::Stall, &still);
    assert!(
        still.holds && (still.value - 40.0).abs() < 1e-9,
        "{still:?}"
    );
}

#[test]
fn b_is_worse_if_it_takes_more_time_or_faults_and_the_other_way_round_is_the_opposite() {
    let with = |seconds: u64, faults: u64| {
        let mut record = record(&[("pgmajfault", faults)], vec![]);
        record.results.elapsed = Nanos::from_secs(seconds);
        vec![Evidence::of(&record)]
    };
    let (a, b) = (with(2, 1000), with(4, 1000));
    let worse = Goal::Regressed.measure(&b, &a);
    assert!(worse.holds && worse.value > 1.9, "{worse:?}");
    let better = Goal::Regressed.measure(&a, &b);
    assert!(better.opposite && !better.holds);
    let faults = Goal::Regressed.measure(&with(2, 4000), &a);
    assert!(
        faults.holds && faults.shown.starts_with("major faults"),
        "{faults:?}"
    );
    let same = Goal::Regressed.measure(&a, &a);
    assert!(
        !same.holds && !same.opposite && same.score < 0.01,
        "{same:?}"
    );
    // A small difference already guides the search.
    let little = Goal::Regressed.measure(&with(2, 1300), &a);
    assert!(!little.holds && little.score > same.score);
    // Where another process pauses, slow accesses hardly change the time.
    let accesses = |mean: f64, count: f64| {
        let mut all = with(2, 1000);
        let metrics = &mut all[0].metrics;
        metrics.insert("access-mean".to_owned(), mean);
        metrics.insert("accesses".to_owned(), count);
        all
    };
    let slow = Goal::Regressed.measure(&accesses(37e3, 10_000.0), &accesses(3e3, 10_000.0));
    assert!(
        slow.holds && slow.shown == "accesses 30 ms → 370 ms" && slow.value < 12.3,
        "{slow:?}"
    );
    let few = Goal::Regressed.measure(&accesses(37e3, 100.0), &accesses(3e3, 100.0));
    assert!(!few.holds && few.value > 1.0, "{few:?}");
    // If both variants show a behaviour, it is not a difference between them.
    let stall = [("pgscan_anon", 4_000_000), ("pgsteal_anon", 100_000)];
    let stall = vec![Evidence::of(&record(&stall, vec![]))];
    assert!(Goal::Stall.measure(&stall, &a).holds);
    assert!(!Goal::Stall.measure(&stall, &stall).holds);
    assert!(Goal::Stall.measure(&a, &stall).opposite);
}

fn workload(text: &str) -> Workload {
    Workload::from_toml(text).unwrap()
}

#[test]
fn opt_reads_back_what_does_not_fit_and_nothing_that_fits() {
    let text = |size: &str| {
        workload(&format!(
            "[[process]]\nname = \"a\"\nsegment = [{{ name = \"s\", size = \"{size}\" }}]\n\
             phase = [{{ do = \"fill\", segment = \"s\" }}, {{ do = \"access\", segment = \"s\" }}]"
        ))
    };
    let ssd: SwapSpec = "ssd".parse().unwrap();
    let of = |size, swap| opt::read_back(&text(size), Bytes::from_mib(4), swap, 1);
    assert_eq!(of("50%", ssd), Some(0));
    // 2048 pages are read in 1024 pages of memory: half of the second pass is still in memory.
    assert_eq!(of("200%", ssd), Some(1024));
    assert_eq!(of("200%", SwapSpec::Zram(None)), None, "zram takes memory");
    let mut two = text("50%");
    two.processes[0].count = 2;
    assert_eq!(opt::read_back(&two, Bytes::from_mib(4), ssd, 1), None);
}

#[test]
fn a_group_loses_what_it_reads_back_below_its_protection() {
    let text = |size: &str, more: &str| {
        workload(&format!(
            "[[group]]\nname = \"g\"\nlow = \"50%\"{more}\n[[process]]\nname = \"a\"\ngroup = \"g\"\n\
             segment = [{{ name = \"s\", size = \"{size}\" }}]\nphase = [{{ do = \"fill\", segment = \"s\" }}]"
        ))
    };
    let values = [
        ("workingset_refault_anon", [10, 522]),
        ("workingset_refault_file", [0, 0]),
    ];
    let stat = Counters {
        values: values.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    let counters: BTreeMap<String, Counters> = [("memory.stat-g".to_owned(), stat)].into();
    let of = |size, more| opt::lost_protection(&text(size, more), Bytes::from_mib(4), &counters);
    // Half of 1024 pages are protected, and 512 were read back.
    assert_eq!(of("40%", ""), Some(1.0));
    assert_eq!(of("50%", ""), None, "its use is not below its protection");
    assert_eq!(
        of("40%", "\nmax = \"30%\""),
        None,
        "its own limit takes its memory"
    );
}
