//! Attributes the difference between two products to their factors.
//!
//! A time is a count times a cost, and both may differ between two sides. The Shapley value (L. S. Shapley, "A value
//! for n-person games", 1953) divides the difference among the factors without preferring an order. The share of a
//! factor is the mean of its contribution over all orders in which the factors could change from one side to the other.
//! For two factors, this is the midpoint rule Δn·c̄ + n̄·Δc. The shares add up to the difference. If the sides are
//! swapped, the signs of all shares change.

/// Returns the contribution of each factor to the difference of two products, b minus a.
pub fn shapley<const N: usize>(a: [f64; N], b: [f64; N]) -> [f64; N] {
    let mut weights = [0.0; N];
    for (size, weight) in weights.iter_mut().enumerate() {
        // size! (N − 1 − size)! / N! is the share of orders in which exactly these other factors come first.
        let mut choices = N as f64;
        for k in 0..size {
            choices *= (N - 1 - k) as f64 / (k + 1) as f64;
        }
        *weight = 1.0 / choices;
    }
    let mut shares = [0.0; N];
    for (own, share) in shares.iter_mut().enumerate() {
        for changed in (0..1_usize << N).filter(|set| set >> own & 1 == 0) {
            let others = (0..N)
                .filter(|at| *at != own)
                .map(|at| if changed >> at & 1 == 1 { b[at] } else { a[at] })
                .product::<f64>();
            let size = changed.count_ones() as usize;
            *share += weights[size] * others * (b[own] - a[own]);
        }
    }
    shares
}

/// Returns the contribution of each link of a chain to the difference of a time. For `[pages, waits, time]`, the
/// factors are pages, waits per page, and time per wait. The second value is the rest of the difference, which the
/// chain cannot explain because there is time without a count.
pub fn chain<const N: usize>(a: [f64; N], b: [f64; N]) -> ([f64; N], f64) {
    let factors = |own: &[f64; N], other: &[f64; N]| {
        let mut factors = [0.0; N];
        for (at, factor) in factors.iter_mut().enumerate() {
            let ratio = |levels: &[f64; N]| match at.checked_sub(1) {
                None => Some(levels[at]),
                Some(before) => (levels[before] > 0.0).then(|| levels[at] / levels[before]),
            };
            // If an event never happened on a side, its cost there is unknown, and the cost on the other side is used.
            *factor = ratio(own).or_else(|| ratio(other)).unwrap_or(0.0);
        }
        factors
    };
    let (of_a, of_b) = (factors(&a, &b), factors(&b, &a));
    let shares = shapley(of_a, of_b);
    let whole = b[N - 1] - a[N - 1];
    (shares, whole - shares.iter().sum::<f64>())
}

/// Returns the contributions of two kinds of events to the difference of a time, assuming that each kind has the same
/// cost on both sides. `a` and `b` contain the counts of both kinds and the time. `None` if the costs cannot be
/// determined, or if a cost is negative.
pub fn kinds(a: [f64; 3], b: [f64; 3]) -> Option<[f64; 2]> {
    let [m_a, n_a, t_a] = a;
    let [m_b, n_b, t_b] = b;
    let determinant = m_a * n_b - m_b * n_a;
    // If the counts are nearly proportional, the costs of the two kinds cannot be separated.
    if determinant.abs() <= 0.01 * (m_a * n_b).abs().max((m_b * n_a).abs()) {
        return None;
    }
    let cost_m = (t_a * n_b - t_b * n_a) / determinant;
    let cost_n = (m_a * t_b - m_b * t_a) / determinant;
    (cost_m >= 0.0 && cost_n >= 0.0).then_some([cost_m * (m_b - m_a), cost_n * (n_b - n_a)])
}

/// Returns two contributions. If their signs are opposite, the one with the smaller absolute value is added to the
/// other and set to zero. If one change caused the other, only their sum has a meaning.
pub fn fold(one: f64, other: f64) -> (f64, f64) {
    if one * other >= 0.0 {
        (one, other)
    } else if one.abs() >= other.abs() {
        (one + other, 0.0)
    } else {
        (0.0, one + other)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    fn near(x: f64, y: f64, scale: f64) -> bool {
        (x - y).abs() <= 1e-9 * scale.max(1.0)
    }

    #[test]
    fn two_factors_are_shared_by_the_midpoint_rule() {
        let [count, cost] = shapley([10.0, 2.0], [30.0, 3.0]);
        assert!(near(count, 20.0 * 2.5, 90.0) && near(cost, 20.0, 90.0));
    }

    #[test]
    fn what_never_happened_on_a_side_costs_nothing_there() {
        let (shares, rest) = chain([0.0, 0.0, 0.0], [100.0, 50.0, 4000.0]);
        assert!(near(shares[0], 4000.0, 4000.0), "{shares:?}");
        assert!(near(shares[1], 0.0, 1.0) && near(shares[2], 0.0, 1.0) && near(rest, 0.0, 1.0));
        // If all counts are zero, they cannot explain the time.
        let (shares, rest) = chain([0.0, 7.0], [0.0, 9.0]);
        assert!(near(shares[0], 0.0, 1.0) && near(shares[1], 0.0, 1.0) && near(rest, 2.0, 1.0));
    }

    #[test]
    fn two_kinds_are_separated_if_their_proportions_differ() {
        // A minor fault costs 2, a major one 20.
        let [major, minor] = kinds([100.0, 1000.0, 4000.0], [300.0, 1100.0, 8200.0]).unwrap();
        assert!(near(major, 4000.0, 1.0) && near(minor, 200.0, 1.0));
        // The counts are the same on both sides, but the time differs.
        assert_eq!(
            kinds([100.0, 1000.0, 4000.0], [100.0, 1000.0, 8000.0]),
            None
        );
        // These values would fit only with a negative cost.
        assert_eq!(
            kinds([100.0, 1000.0, 4000.0], [104.0, 1000.0, 8000.0]),
            None
        );
    }

    proptest! {
        #[test]
        fn shares_add_up_and_swapping_flips_their_signs(
            a in proptest::array::uniform4(0.0..1e6_f64),
            b in proptest::array::uniform4(0.0..1e6_f64),
        ) {
            let (shares, rest) = chain(a, b);
            let scale = a[3].max(b[3]);
            prop_assert!(near(shares.iter().sum::<f64>() + rest, b[3] - a[3], scale));
            let (back, other) = chain(b, a);
            for (x, y) in shares.iter().zip(back) {
                prop_assert!((x + y).abs() <= 1e-6 * scale.max(1.0), "{x} {y}");
            }
            prop_assert!(near(rest, -other, 1e6 * scale));
            let (same, none) = chain(a, a);
            prop_assert!(same.iter().all(|share| *share == 0.0) && none.abs() <= 1e-6 * scale.max(1.0));
        }

        #[test]
        fn folding_keeps_the_sum(x in -1e6..1e6_f64, y in -1e6..1e6_f64) {
            let (one, other) = fold(x, y);
            prop_assert!(near(one + other, x + y, 1e6));
            prop_assert!(one * other >= 0.0);
            let (back, again) = fold(-x, -y);
            prop_assert!(near(back, -one, 1e6) && near(again, -other, 1e6));
        }
    }
}
