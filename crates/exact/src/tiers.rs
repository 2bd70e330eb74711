//! Metrics of swap with several tiers: the number of pages read back from a lower tier, and the share of them that are
//! inverted ([`Inversion`]). Computed from the state of every page, which the scenario records in timed trials too.

use pagetide_quantity::{Direction, Metric, MetricDef, Series, Unit};
use pagetide_record::Subject;
use pagetide_record::record::Results;
use pagetide_record::tier_pages::{Inversion, TierPages};

/// Definition of the metric `inversion`; [`Inversion`] has the formula.
const INVERSION: MetricDef = MetricDef::of(
    "inversion",
    Unit::Share,
    Direction::Lower,
    "of the pages read back from a lower tier of swap, the share that had been used more recently than the oldest quarter of the \
     pages kept in a higher tier",
);
/// Definition of the metric `lower-tier-back`.
const READ_BACK: MetricDef = MetricDef::of(
    "lower-tier-back",
    Unit::Pages,
    Direction::Neutral,
    "pages read back from a lower tier of swap between two records of every page",
);

/// Adds the metrics of tiers if swap has several tiers and the scenario recorded the tier of every page. `states`
/// returns the recorded series.
pub fn add(results: &mut Results, subject: &Subject, states: impl FnOnce() -> Vec<Series>) {
    if subject.swap.tiers().len() < 2 {
        return;
    }
    let moments: Vec<TierPages> = states().iter().filter_map(TierPages::read).collect();
    if moments.is_empty() {
        return;
    }
    let found = Inversion::of(&moments);
    let inversion = match found.share() {
        Some(share) => Metric::new(&INVERSION, share),
        None if moments.len() < 2 => Metric::absent(&INVERSION, "needs two snapshots or more"),
        None => Metric::absent(&INVERSION, "no page was read back from a lower tier"),
    };
    let read_back = Metric::new(&READ_BACK, found.read_back as f64);
    results.metrics.extend([inversion, read_back]);
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Value;
    use pagetide_record::tier_pages::COLUMN;

    use super::*;

    fn state(tiers: [i64; 3], uses: [i64; 3]) -> Series {
        Series::new("pages-1")
            .int(COLUMN, Unit::Count, tiers)
            .int("age", Unit::Count, [9, 5, 1])
            .int("uses", Unit::Count, uses)
    }

    fn metrics(swap: &str, states: Vec<Series>) -> Vec<Metric> {
        let mut results = Results::default();
        let subject = Subject {
            swap: swap.parse().unwrap(),
            ..Subject::default()
        };
        add(&mut results, &subject, || states);
        results.metrics
    }

    #[test]
    fn inversion_is_a_metric_of_swap_with_tiers_alone() {
        let states = || vec![state([1, 2, 0], [0, 1, 1]), state([1, 0, 2], [0, 2, 1])];
        let found = metrics("zram:8M@100,ssd@10", states());
        assert_eq!(found[0].value, Value::Number(1.0));
        assert_eq!(
            (found[0].name.as_str(), found[0].direction),
            ("inversion", Direction::Lower)
        );
        assert_eq!(found[1].value, Value::Number(1.0));
        assert!(metrics("zram", states()).is_empty());
        assert!(metrics("zswap+ssd", Vec::new()).is_empty());
        let why = |states| match &metrics("zswap+ssd", states)[0].value {
            Value::Absent(why) => why.clone(),
            other @ Value::Number(_) => panic!("{other:?}"),
        };
        assert!(why(vec![state([1, 2, 0], [0; 3])]).contains("two snapshots"));
        assert!(why(vec![state([1, 2, 0], [0; 3]); 2]).contains("no page was read back"));
    }
}
