//! Successes among attempts. Where every trial is one attempt, proportions have their own interval and exact test; where
//! a trial makes many, its attempts are not independent of each other and the trial's share is the unit.

use super::{Evidence, Look, paired, unpaired};
use crate::error::{Result, Side, StatError};
use crate::interval::{Interval, Test};
use crate::judgement::{EffectKind, Methods};
use crate::proportion::{self, PairedOutcomes};
use crate::rank_sum;
use crate::sample::{Count, CountPair, MetricSample};

/// Points in the metric's unit: 100 to the whole for percent.
fn whole(unit: &str) -> f64 {
    if matches!(unit, "percent" | "points") {
        100.0
    } else {
        1.0
    }
}

fn shares(side: Side, counts: &[Count], unit: &str) -> Result<Vec<f64>> {
    if counts.is_empty() {
        return Err(StatError::Empty {
            what: format!("the counts of {side}"),
        });
    }
    for (index, &count) in counts.iter().enumerate() {
        proportion::check(side, index, count)?;
    }
    let whole = whole(unit);
    Ok(counts.iter().map(|count| whole * count.share()).collect())
}

fn single(counts: &[Count]) -> bool {
    counts.iter().all(|count| count.attempts == 1)
}

pub(super) fn weigh_paired(
    sample: &MetricSample,
    pairs: &[CountPair],
    look: Look,
) -> Result<Evidence> {
    let a: Vec<Count> = pairs.iter().map(|pair| pair.a).collect();
    let b: Vec<Count> = pairs.iter().map(|pair| pair.b).collect();
    let (shares_a, shares_b) = (
        shares(Side::A, &a, &sample.unit)?,
        shares(Side::B, &b, &sample.unit)?,
    );
    let flags: Vec<bool> = pairs.iter().map(|pair| pair.identical).collect();
    let mut evidence =
        paired::from_values(EffectKind::Difference, &shares_a, &shares_b, &flags, look)?;
    if !(single(&a) && single(&b)) {
        evidence.methods.estimator = "Hodges-Lehmann of paired differences of shares".into();
        return Ok(evidence);
    }
    let mut outcomes = PairedOutcomes::default();
    for pair in pairs {
        *match (pair.a.successes, pair.b.successes) {
            (1, 1) => &mut outcomes.both,
            (1, _) => &mut outcomes.only_a,
            (_, 1) => &mut outcomes.only_b,
            _ => &mut outcomes.neither,
        } += 1;
    }
    let interval = proportion::newcombe_paired(outcomes, look.level)?;
    replace(
        &mut evidence,
        sample,
        interval,
        proportion::mcnemar(outcomes),
    );
    evidence.methods = Methods {
        estimator: "difference of paired proportions".into(),
        interval: "Newcombe's method 10 for paired proportions".into(),
        test: "McNemar, exact".into(),
        adjustment: String::new(),
    };
    Ok(evidence)
}

pub(super) fn weigh_unpaired(
    sample: &MetricSample,
    a: &[Count],
    b: &[Count],
    look: Look,
) -> Result<Evidence> {
    let (shares_a, shares_b) = (
        shares(Side::A, a, &sample.unit)?,
        shares(Side::B, b, &sample.unit)?,
    );
    let test = rank_sum::test(&shares_a, &shares_b)?;
    let mut evidence =
        unpaired::from_working(EffectKind::Difference, &shares_a, &shares_b, test, look)?;
    if !(single(a) && single(b)) {
        evidence.methods.estimator = "Hodges-Lehmann shift of shares".into();
        return Ok(evidence);
    }
    let (all_a, all_b) = (total(a), total(b));
    let interval = proportion::newcombe(all_a, all_b, look.level)?;
    replace(
        &mut evidence,
        sample,
        interval,
        proportion::fisher(all_a, all_b)?,
    );
    evidence.methods = Methods {
        estimator: "difference of proportions".into(),
        interval: "Newcombe's method 10".into(),
        test: "Fisher, exact".into(),
        adjustment: String::new(),
    };
    Ok(evidence)
}

fn total(counts: &[Count]) -> Count {
    Count {
        successes: counts.iter().map(|count| count.successes).sum(),
        attempts: counts.iter().map(|count| count.attempts).sum(),
    }
}

/// Puts the figures made for proportions in the place of those made for measurements.
fn replace(evidence: &mut Evidence, sample: &MetricSample, interval: Interval, test: Test) {
    let whole = whole(&sample.unit);
    evidence.estimate = evidence.b.mean - evidence.a.mean;
    evidence.interval = Some(interval.map(|end| whole * end));
    evidence.test = test;
    evidence.p_sign_flip = None;
    // A single failure among many successes is not an outlier; it is what is being counted.
    evidence.outliers.clear();
}
