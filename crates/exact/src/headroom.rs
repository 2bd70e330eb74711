//! Headroom: a trial's faults divided by the faults of an ideal policy with the same references and memory.

mod best;
mod room;
mod windows;

use best::WINDOWS;
use pagetide_oracle::{Choice, Job, ReferenceString, known, simulate};
use pagetide_quantity::{Direction, Metric, MetricDef, PAGE_SIZE, Series, Unit};
use pagetide_record::{Results, Subject};

/// Maximum number of references for which headroom is computed after a trial. `pagetide ideal` computes it for any
/// record.
const MAX_REFERENCES: u64 = 200_000_000;

const FAULTS: MetricDef = MetricDef::count(
    "faults",
    Direction::Neutral,
    "references that did not find their page: major and minor faults",
);
const HEADROOM: MetricDef = MetricDef::of(
    "headroom",
    Unit::Ratio,
    Direction::Lower,
    "references that did not find their page, for each of an ideal policy with the same references and memory",
);
const OPT: MetricDef = MetricDef::count(
    "opt-faults",
    Direction::Neutral,
    "faults of an ideal policy (Belady's OPT) with the same references and memory",
);
const LRU: MetricDef = MetricDef::count(
    "lru-faults",
    Direction::Neutral,
    "faults of LRU with the same references and memory",
);
const ROOM: MetricDef = MetricDef::of(
    "room",
    Unit::Pages,
    Direction::Neutral,
    "pages that memory could hold: free at the start, less watermarks and compressed swap at its peak",
);
const ROOM_OPT: MetricDef = MetricDef::count(
    "room-opt-faults",
    Direction::Neutral,
    "faults of an ideal policy that has only `room`: what is beyond them is the policy's, what lies below the memory's",
);
const MODEL: MetricDef = MetricDef::count(
    "model-faults",
    Direction::Neutral,
    "faults that a model of the kernel's own policy predicts with `room`",
);

/// Returns the number of faults of a trial's processes for the comparison with an ideal policy; `None` if they cannot
/// be compared.
///
/// A reference that did not find its page is a fault, major or minor. Readahead turns major faults into minor faults,
/// but the ideal policy has no readahead, and a kernel must not appear better than the optimum because of it. A fault
/// on a mapped file also maps the pages around it, so such faults cannot be compared with single pages. Trials with
/// mapped files get no headroom.
fn faults(results: &Results, subject: &Subject) -> Option<f64> {
    let count = |name: &str| {
        let metric = results.metrics.iter().find(|metric| metric.name == name)?;
        metric.value.number()
    };
    let mapping = subject.params.get("mapping").map(String::as_str);
    if mapping == Some("file") {
        return None;
    }
    Some(count("major-faults")? + count("minor-faults")?)
}

/// Adds metrics computed by the oracle, if the references of a trial are known and not more than [`MAX_REFERENCES`],
/// and its faults can be compared (see [`faults`]).
///
/// `log` reads the trial's log of accesses. Returns the series of faults along the reference string; `None` if it
/// cannot be computed.
pub fn add(
    results: &mut Results,
    subject: &Subject,
    log: impl FnOnce() -> Option<Vec<u8>>,
) -> Option<Series> {
    let faults = faults(results, subject)?;
    let string = known(
        &subject.scenario,
        subject.as_written,
        &subject.params,
        subject.seed,
    )
    .ok()?;
    if string.references() > MAX_REFERENCES {
        return None;
    }
    let (metrics, series) = metrics(&string, faults, results, subject, log)?;
    results.metrics.extend(metrics);
    series
}

fn metrics(
    string: &ReferenceString,
    faults: f64,
    results: &Results,
    subject: &Subject,
    log: impl FnOnce() -> Option<Vec<u8>>,
) -> Option<(Vec<Metric>, Option<Series>)> {
    let pages = u32::try_from(subject.room().0 / PAGE_SIZE).ok()?;
    let best = best::best(string, subject, pages).ok()?;
    let [opt, lru] = &*best;
    let headroom = pagetide_oracle::headroom(faults, opt.faults as f64);
    let headroom = if headroom.is_finite() {
        Metric::new(&HEADROOM, headroom)
    } else {
        Metric::absent(&HEADROOM, "an ideal policy has no fault at all")
    };
    let mut metrics = vec![
        Metric::new(&FAULTS, faults),
        headroom,
        Metric::new(&OPT, opt.faults as f64),
        Metric::new(&LRU, lru.faults as f64),
    ];
    let mut policies = vec![("opt", opt), ("lru", lru)];
    // A group may use memory up to its limit.
    let room = match subject.limit {
        Some(_) => Some(pages),
        None => room::room(results),
    };
    let outcomes = room
        .zip(model(results))
        .and_then(|(room, model)| {
            let job = |choice| Job { choice, size: room };
            let jobs = [Choice::opt(), Choice::parse(model).ok()?].map(job);
            simulate(string, &jobs, WINDOWS, 1).ok()
        })
        .unwrap_or_default();
    if let (Some(room), [opt, model]) = (room, outcomes.as_slice()) {
        metrics.push(Metric::new(&ROOM, f64::from(room)));
        metrics.push(Metric::new(&ROOM_OPT, opt.faults as f64));
        metrics.push(Metric::new(&MODEL, model.faults as f64));
        policies.extend([("room-opt", opt), ("model", model)]);
    }
    let series = windows::series(string, log().as_deref(), faults, &policies);
    Some((metrics, series))
}

/// Returns the name of the oracle's model of the kernel's replacement policy; `None` if the policy is not known.
fn model(results: &Results) -> Option<&'static str> {
    let enabled = results.settings.get("lru_gen/enabled")?;
    let digits = enabled.trim().trim_start_matches("0x");
    let bits = u32::from_str_radix(digits, 16).ok()?;
    Some(if bits & 1 == 1 {
        "mglru"
    } else {
        "active-inactive"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_quantity::Bytes;
    use pagetide_record::MemorySpec;
    use std::collections::BTreeMap;

    fn subject(scenario: &str) -> Subject {
        let params = [
            ("pattern", "loop"),
            ("pages", "100"),
            ("refs", "1000"),
            ("mapping", "anon"),
            ("content", "0.35"),
        ];
        Subject {
            scenario: scenario.to_owned(),
            params: params
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            memory: MemorySpec::Free(Bytes(80 * 4096)),
            seed: 1,
            ..Subject::default()
        }
    }

    fn results() -> Results {
        let def = |name| MetricDef::count(name, Direction::Lower, "faults");
        Results {
            metrics: vec![
                Metric::new(&def("major-faults"), 600.0),
                Metric::new(&def("minor-faults"), 400.0),
            ],
            settings: BTreeMap::from([("lru_gen/enabled".to_owned(), "0x0007".to_owned())]),
            ..Results::default()
        }
    }

    #[test]
    fn a_loop_larger_than_memory_faults_always_under_lru_and_rarely_under_opt() {
        let mut found = results();
        let series = add(&mut found, &subject("loop"), || None).unwrap();
        let value = |name: &str| {
            let metric = found.metrics.iter().find(|metric| metric.name == name);
            metric.and_then(|metric| metric.value.number()).unwrap()
        };
        // The first round starts at a random position. Up to the loop's end, it finds pages that the filling left in
        // memory, and none after that.
        let pattern: pagetide_reference::Pattern = "loop".parse().unwrap();
        let first = pattern.references(100, 1000, 1).unwrap().next().unwrap();
        assert!(first >= 20, "the last 80 pages are there after the filling");
        let expected = f64::from(1000 - (100 - first));
        assert!((value("lru-faults") - expected).abs() < f64::EPSILON);
        // The loop has 100 pages, with memory for 80. OPT keeps 79 from round to round.
        assert!(
            (195.0..=235.0).contains(&value("opt-faults")),
            "{}",
            value("opt-faults")
        );
        assert!((value("headroom") - 1000.0 / value("opt-faults")).abs() < 1e-9);
        // The record does not state the free memory, so there is no model.
        assert!(
            !found
                .metrics
                .iter()
                .any(|metric| metric.name == "model-faults")
        );
        let sum = |name: &str| -> f64 {
            let column = series.column(name).unwrap();
            (0..column.len()).filter_map(|row| column.get(row)).sum()
        };
        assert_eq!(series.rows(), WINDOWS as usize);
        assert!((sum("lru") - expected).abs() < f64::EPSILON);
        assert!((sum("opt") - value("opt-faults")).abs() < f64::EPSILON);
    }

    #[test]
    fn a_record_that_says_what_was_free_gets_the_model_at_the_room_that_was_left() {
        let mut found = results();
        let zoneinfo =
            "Node 0, zone   DMA32\n   high   20\n   managed  200\n   protection: (0, 0)\n";
        found
            .facts
            .insert("free-at-start".to_owned(), (80 * 4096).to_string());
        found
            .texts
            .insert("zoneinfo-before".to_owned(), zoneinfo.to_owned());
        add(&mut found, &subject("loop"), || None);
        let value = |name: &str| {
            let metric = found.metrics.iter().find(|metric| metric.name == name);
            metric.and_then(|metric| metric.value.number()).unwrap()
        };
        assert!((value("room") - 60.0).abs() < f64::EPSILON);
        // OPT keeps 59 of 100 pages instead of 79.
        assert!((395.0..=430.0).contains(&value("room-opt-faults")));
        assert!(value("model-faults") >= value("room-opt-faults"));
    }

    #[test]
    fn a_trial_whose_references_are_not_known_gets_no_headroom() {
        let mut found = results();
        let mut other = subject("swapbench");
        other.params.clear();
        assert!(add(&mut found, &other, || None).is_none());
        assert_eq!(found.metrics.len(), 2);
    }

    #[test]
    fn a_mapped_file_gets_no_headroom_for_one_fault_maps_many_pages() {
        let mut found = results();
        let mut file = subject("loop");
        file.params.insert("mapping".to_owned(), "file".to_owned());
        assert!(add(&mut found, &file, || None).is_none());
        assert_eq!(found.metrics.len(), 2);
    }

    #[test]
    fn data_that_fit_in_memory_have_a_headroom_that_is_absent_rather_than_infinite() {
        let mut found = results();
        let mut large = subject("loop");
        large.memory = MemorySpec::Free(Bytes(200 * 4096));
        add(&mut found, &large, || None);
        let metric = |name: &str| {
            found
                .metrics
                .iter()
                .find(|metric| metric.name == name)
                .unwrap()
        };
        assert_eq!(metric("opt-faults").value.number(), Some(0.0));
        assert_eq!(metric("headroom").value.number(), None);
    }
}
