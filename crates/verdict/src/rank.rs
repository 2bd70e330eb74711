//! Mid-ranks of values, doubled so that they are integers even for ties.

/// Ranks of values that may contain ties.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranks {
    /// Twice the mid-rank of each value, in input order; ranks start at 1.
    pub doubled: Vec<u32>,
    /// True if any two values are equal.
    pub ties: bool,
}

/// Ranks finite values in ascending order; equal values get the mean of their ranks.
pub(crate) fn rank(values: &[f64]) -> Ranks {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut doubled = vec![0; values.len()];
    let mut ties = false;
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        while end < order.len() && same(values[order[end]], values[order[start]]) {
            end += 1;
        }
        ties |= end - start > 1;
        // Ranks start + 1 to end share their mean, (start + 1 + end) / 2.
        let shared = u32::try_from(start + 1 + end).unwrap_or(u32::MAX);
        for &position in &order[start..end] {
            doubled[position] = shared;
        }
        start = end;
    }
    Ranks { doubled, ties }
}

/// Equality of finite values; 0 equals -0.
fn same(a: f64, b: f64) -> bool {
    a.partial_cmp(&b) == Some(std::cmp::Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tied_values_share_the_mean_of_their_ranks() {
        let ranks = rank(&[3.0, 1.0, 3.0, 2.0, 3.0]);
        assert_eq!(ranks.doubled, [8, 2, 8, 4, 8]);
        assert!(ranks.ties);
        assert!(!rank(&[2.0, 1.0]).ties);
    }
}
