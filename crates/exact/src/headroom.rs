//! How far a trial was from the best possible: faults of an ideal policy with its references and its memory.

use pagetide_oracle::{Choice, Trace, ask, known};
use pagetide_quantity::{Direction, Metric, MetricDef, PAGE_SIZE, Unit};
use pagetide_record::{Results, Subject};

/// Longer strings are left to `pagetide ideal`, which can be asked for any record.
const MOST_REFERENCES: u64 = 200_000_000;

const HEADROOM: MetricDef = MetricDef::of(
    "headroom",
    Unit::Ratio,
    Direction::Lower,
    "major faults for each that an ideal policy has with the same references and memory",
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

/// Adds the oracle's metrics where the references of a trial are known and its major faults were counted.
pub fn add(results: &mut Results, subject: &Subject) {
    let faults = results
        .metrics
        .iter()
        .find(|metric| metric.name == "major-faults")
        .and_then(|metric| metric.value.number());
    let Some(faults) = faults else { return };
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
    let mut metrics = vec![
        Metric::new(&HEADROOM, pagetide_oracle::headroom(faults, opt)),
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
        let def = MetricDef::count("major-faults", Direction::Lower, "faults");
        Results {
            metrics: vec![Metric::new(&def, 1000.0)],
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
        assert!((value("lru-faults") - 1000.0).abs() < f64::EPSILON);
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
        assert_eq!(found.metrics.len(), 1);
    }
}
