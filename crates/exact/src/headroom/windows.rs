//! Computes how a trial's faults are distributed along its reference string.

use pagetide_oracle::{Outcome, ReferenceString};
use pagetide_quantity::{Series, Unit};
use pagetide_scenario::touch::MAX_LATENCY_NS;

/// Returns the faults per window of the reference string: those of the kernel according to its log of accesses, and
/// those of OPT, LRU and the model of the kernel's policy.
///
/// A log states how long each access took, not whether it faulted. A fault takes at least a thousand instructions, so
/// if n faults were counted, the n longest accesses are taken as the faults. A hit that the timer interrupts may be
/// mistaken for a short fault, about a hundred times per second.
pub(super) fn series(
    string: &ReferenceString,
    log: Option<&[u8]>,
    faults: f64,
    policies: &[(&str, &Outcome)],
) -> Option<Series> {
    let (_, first) = policies.first()?;
    let windows = first.windows.len();
    let counted = string.references() - u64::from(string.lead());
    let start = |window: usize| counted * window as u64 / windows as u64;
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let mut series = Series::new("headroom").int(
        "first-reference",
        Unit::Count,
        (0..windows).map(|window| whole(start(window))),
    );
    if let Some(kernel) = log.and_then(|log| slowest(log, counted, faults, windows)) {
        series = series.int("faults", Unit::Count, kernel.into_iter().map(whole));
    }
    for (name, outcome) in policies {
        let faults = outcome.windows.iter().copied().map(whole);
        series = series.int(name, Unit::Count, faults);
    }
    Some(series)
}

/// Returns, for each window, how many of the `faults` longest accesses lie in it; `None` if the log is incomplete.
fn slowest(log: &[u8], counted: u64, faults: f64, windows: usize) -> Option<Vec<u64>> {
    let (entries, rest) = log.as_chunks::<8>();
    if entries.len() as u64 != counted || !rest.is_empty() {
        return None;
    }
    let latency = |entry: &[u8; 8]| u64::from_le_bytes(*entry) & MAX_LATENCY_NS;
    let mut found = vec![0; windows];
    // Converts `faults`, a count of events, to an integer.
    let most = (0..entries.len())
        .take_while(|count| (*count as f64) < faults)
        .count();
    if most == 0 {
        return Some(found);
    }
    let mut sorted: Vec<u64> = entries.iter().map(latency).collect();
    let (_, least, _) = sorted.select_nth_unstable_by(most - 1, |a, b| b.cmp(a));
    let least = *least;
    let mut left = most;
    for (window, found) in found.iter_mut().enumerate() {
        let from = entries.len() * window / windows;
        let to = entries.len() * (window + 1) / windows;
        for entry in &entries[from..to] {
            if latency(entry) >= least && left > 0 {
                *found += 1;
                left -= 1;
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_accesses_are_the_faults_of_their_windows() {
        let log: Vec<u8> = [20, 9000, 21, 20, 20, 20, 700, 8000_u64]
            .iter()
            .flat_map(|nanos| (7 << pagetide_scenario::touch::LATENCY_BITS | nanos).to_le_bytes())
            .collect();
        assert_eq!(slowest(&log, 8, 3.0, 4), Some(vec![1, 0, 0, 2]));
        assert_eq!(slowest(&log, 8, 0.0, 2), Some(vec![0, 0]));
        // There is no series if the log has fewer accesses than were counted, or ends within an access.
        assert_eq!(slowest(&log, 9, 3.0, 4), None);
        assert_eq!(slowest(&log[..63], 8, 3.0, 4), None);
    }
}
