//! How far a trial was from the best possible: faults of an ideal policy with its references and its memory.

use pagetide_oracle::{Choice, Trace, ask, known};
use pagetide_quantity::{Direction, Metric, MetricDef, PAGE_SIZE, Unit};
use pagetide_record::{Results, Subject};

/// Longer strings are left to `pagetide ideal`, which can be asked for any record.
const MOST_REFERENCES: u64 = 200_000_000;

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
const MODEL: MetricDef = MetricDef::count(
    "model-faults",
    Direction::Neutral,
    "faults of the model of the kernel's own policy with the same references and memory",
);

/// Adds the oracle's metrics where the references of a trial are known and its faults were counted.
///
/// A reference that did not find its page is a fault, major or minor: read-ahead turns waits into minor faults, but an ideal
/// policy has no read-ahead, and a kernel must not seem better than the best possible for having it. One fault on a file maps
/// what lies around it as well, so that its faults cannot be set against single pages: mapped files get no headroom.
pub fn add(results: &mut Results, subject: &Subject) {
    let count = |name: &str| {
        let metric = results.metrics.iter().find(|metric| metric.name == name)?;
        metric.value.number()
    };
    let (Some(major), Some(minor)) = (count("major-faults"), count("minor-faults")) else {
        return;
    };
    if subject
        .params
        .get("mapping")
        .is_some_and(|kind| kind == "file")
    {
        return;
    }
    let faults = major + minor;
    let Ok(trace) = known(
        &subject.scenario,
        subject.as_written,
        &subject.params,
        subject.seed,
    ) else {
        return;
    };
    if trace.references() <= MOST_REFERENCES
        && let Some(metrics) = metrics(&trace, faults, results, subject)
    {
        results.metrics.extend(metrics);
    }
}

fn metrics(
    trace: &Trace,
    faults: f64,
    results: &Results,
    subject: &Subject,
) -> Option<Vec<Metric>> {
    let pages = u32::try_from(subject.memory.bytes().0 / PAGE_SIZE).ok()?;
    let model = model(results);
    let names: Vec<&str> = ["opt", "lru"].into_iter().chain(model).collect();
    let choices: Vec<Choice> = names
        .iter()
        .map(|name| Choice::parse(name))
        .collect::<Result<_, _>>()
        .ok()?;
    let answer = ask(trace, &choices, &[pages], 1, 1).ok()?;
    let found = |name: &str| {
        let line = answer.lines.iter().find(|line| line.policy == name);
        line.map(|line| line.faults as f64)
    };
    let opt = found("opt")?;
    let headroom = pagetide_oracle::headroom(faults, opt);
    let headroom = if headroom.is_finite() {
        Metric::new(&HEADROOM, headroom)
    } else {
        Metric::absent(&HEADROOM, "an ideal policy has no fault at all")
    };
    let mut metrics = vec![
        Metric::new(&FAULTS, faults),
        headroom,
        Metric::new(&OPT, opt),
        Metric::new(&LRU, found("lru")?),
    ];
    if let Some(faults) = model.and_then(found) {
        metrics.push(Metric::new(&MODEL, faults));
    }
    Some(metrics)
}

/// The model of the policy that the kernel says it has.
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
        add(&mut found, &subject("loop"));
        let value = |name: &str| {
            let metric = found.metrics.iter().find(|metric| metric.name == name);
            metric.and_then(|metric| metric.value.number()).unwrap()
        };
        // It starts somewhere in the loop, and finds its pages from there to the end as the filling left them; then none.
        let pattern: pagetide_reference::Pattern = "loop".parse().unwrap();
        let first = pattern.references(100, 1000, 1).unwrap().next().unwrap();
        assert!(first >= 20, "the last 80 pages are there after the filling");
        let expected = f64::from(1000 - (100 - first));
        assert!((value("lru-faults") - expected).abs() < f64::EPSILON);
        // A loop of 100 pages over 80: OPT keeps 79 from round to round.
        assert!(
            (195.0..=235.0).contains(&value("opt-faults")),
            "{}",
            value("opt-faults")
        );
        assert!((value("headroom") - 1000.0 / value("opt-faults")).abs() < 1e-9);
        assert!(value("model-faults") >= value("opt-faults"));
    }

    #[test]
    fn a_trial_whose_references_are_not_known_gets_no_headroom() {
        let mut found = results();
        let mut other = subject("swapbench");
        other.params.clear();
        add(&mut found, &other);
        assert_eq!(found.metrics.len(), 2);
    }

    #[test]
    fn a_mapped_file_gets_no_headroom_for_one_fault_maps_many_pages() {
        let mut found = results();
        let mut file = subject("loop");
        file.params.insert("mapping".to_owned(), "file".to_owned());
        add(&mut found, &file);
        assert_eq!(found.metrics.len(), 2);
    }

    #[test]
    fn data_that_fit_in_memory_have_a_headroom_that_is_absent_rather_than_infinite() {
        let mut found = results();
        let mut large = subject("loop");
        large.memory = MemorySpec::Free(Bytes(200 * 4096));
        add(&mut found, &large);
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
