//! The effect of observing a trial on its counters.

use serde::{Deserialize, Serialize};

use pagetide_system::Delta;

/// Growth of one counter in the timed run and in the observed run of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Name of the counter.
    pub key: String,
    /// Growth of the counter in the timed run.
    pub timed: i64,
    /// Growth of the counter in the observed run.
    pub observed: i64,
    /// Observed change minus timed change, in percent of the timed change; `None` if the timed change is 0.
    pub percent: Option<f64>,
}

/// Returns the effect of observing: all counters whose growth differs between the timed and the observed run, largest
/// relative difference first (infinite if the timed growth is 0).
pub fn observer_effect(timed: &Delta, observed: &Delta) -> Vec<Effect> {
    let mut effects: Vec<_> = timed
        .iter()
        .filter_map(|(key, timed)| {
            let observed = observed.get(key)?;
            (observed != timed).then(|| Effect {
                key: key.to_owned(),
                timed,
                observed,
                percent: (timed != 0)
                    .then(|| 100.0 * (observed as f64 - timed as f64) / (timed as f64).abs()),
            })
        })
        .collect();
    let size = |effect: &Effect| effect.percent.map_or(f64::INFINITY, f64::abs);
    effects.sort_by(|one, other| size(other).total_cmp(&size(one)));
    effects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told_and_the_largest_share_first() {
        let timed: Delta = [("a", 100_i64), ("b", 100), ("c", 0), ("d", 5)]
            .into_iter()
            .collect();
        let observed: Delta = [("a", 101_i64), ("b", 90), ("c", 1), ("d", 5)]
            .into_iter()
            .collect();
        let effects = observer_effect(&timed, &observed);
        let keys: Vec<_> = effects.iter().map(|effect| effect.key.as_str()).collect();
        assert_eq!(keys, ["c", "b", "a"]);
        assert_eq!(effects[1].percent, Some(-10.0));
        assert_eq!(observer_effect(&timed, &timed), []);
    }
}
