//! p-values adjusted for judging multiple metrics with one error rate: Holm for primary metrics, Benjamini-Hochberg for
//! the other metrics.

/// Returns Holm's step-down adjusted p-values (Holm 1979), in the order of `p`. `rule(p, remaining)` returns the
/// p-value of one hypothesis among `remaining`; Holm's own rule is `p * remaining`.
///
/// Group-sequential plans pass another rule, because the critical bound is not proportional to the error rate (Maurer
/// and Bretz 2013).
pub(crate) fn step_down(p: &[f64], rule: impl Fn(f64, usize) -> f64) -> Vec<f64> {
    let order = ascending(p);
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (step, &index) in order.iter().enumerate() {
        largest = largest.max(rule(p[index], p.len() - step)).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// Returns Benjamini and Hochberg's step-up adjusted p-values (1995), in the order of `p`.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let count = p.len() as f64;
    let mut adjusted = vec![1.0; p.len()];
    let mut smallest: f64 = 1.0;
    for (step, &index) in order.iter().enumerate().rev() {
        smallest = smallest.min(p[index] * count / (step + 1) as f64);
        adjusted[index] = smallest;
    }
    adjusted
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12)
    }

    fn holm(p: &[f64]) -> Vec<f64> {
        step_down(p, |p, remaining| p * remaining as f64)
    }

    #[test]
    fn multiplying_gives_the_values_of_statsmodels_and_r() {
        let golden = [
            include_str!("../tests/golden/scipy.json"),
            include_str!("../tests/golden/r.json"),
        ];
        let mut compared = 0;
        for text in golden {
            let golden: serde_json::Value = serde_json::from_str(text).unwrap();
            for case in golden["adjustments"].as_array().unwrap() {
                let numbers = |name: &str| -> Vec<f64> {
                    serde_json::from_value(case[name].clone()).unwrap()
                };
                assert!(close(&holm(&numbers("p")), &numbers("holm")), "{case}");
                compared += 1;
            }
        }
        assert!(compared >= 7, "{compared}");
    }

    #[test]
    fn holm_multiplies_the_smallest_most_and_never_decreases() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        assert!(close(&adjusted, &[0.03, 0.06, 0.06, 0.02]), "{adjusted:?}");
    }

    #[test]
    fn benjamini_hochberg_follows_the_published_definition() {
        let adjusted = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]);
        assert!(close(&adjusted, &[0.02, 0.04, 0.04, 0.02]), "{adjusted:?}");
    }
}
