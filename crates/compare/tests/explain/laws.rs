//! Tests of properties that every explanation must have.

use pagetide_compare::explain::{Account, Answer, CpuHolder, Explanation, MechanismShare};
use pagetide_probe::meaning::{Part, RowId};
use proptest::prelude::*;

use super::account::{COUNTERS, account, explain};

fn any_account() -> impl Strategy<Value = Account> {
    proptest::collection::vec(any_seed(), 1..4).prop_map(|seeds| {
        let mut seeds = seeds.into_iter();
        let mut account = seeds.next().unwrap();
        account.passes.extend(seeds.flat_map(|other| other.passes));
        account
    })
}

fn any_seed() -> impl Strategy<Value = Account> {
    let counts = proptest::array::uniform14(0.0..1e5_f64);
    let times = proptest::array::uniform10(0.0..1e9_f64);
    (counts, times, 0.0..1e5_f64, any::<[bool; 3]>()).prop_map(|(counts, times, sleeps, flags)| {
        let growth: Vec<(&str, f64)> = COUNTERS.into_iter().zip(counts).collect();
        let times: Vec<(Part, f64)> = Part::ALL.into_iter().zip(times).collect();
        let mut account = account(&growth, &times);
        let observed = &mut account.passes[0].observed;
        observed.waits.insert(Part::IoWait, sleeps);
        let queue = observed.time(Part::RunQueue);
        observed.queue.insert(CpuHolder::Kswapd, queue * 0.6);
        if flags[1] {
            observed.queue.insert(CpuHolder::Kcompactd, queue * 0.2);
        }
        // The sides have the same device with different queues, or different devices.
        observed.read = flags[0].then(|| 80e3 + observed.growth["pswpin"]);
        if flags[0] {
            observed.rows.insert(RowId::TimeKswapdAwake, 3e8);
        }
        let generations = if flags[2] { "0x0007" } else { "0x0000" };
        account
            .settings
            .insert("lru_gen/enabled".into(), generations.into());
        account
    })
}

proptest! {
    #[test]
    fn all_lines_add_up_to_the_difference_and_swapping_the_sides_flips_their_signs(
        a in any_account(),
        b in any_account(),
    ) {
        let found = explain(&a, &b);
        let all = found.findings.iter().map(|finding| finding.effect).sum::<f64>()
            + found.minor
            + found.unexplained;
        let scale = found.time[0].max(found.time[1]);
        prop_assert!((all - found.difference()).abs() <= 1e-6 * scale, "{all} {}", found.difference());
        prop_assert!(found.findings.iter().all(|finding| !finding.evidence.is_empty()));
        // Findings in the direction of the difference come first, then those against it; in each group the largest
        // comes first.
        let way = found.difference();
        let key = |one: &MechanismShare| (one.effect * way <= 0.0, -one.effect.abs());
        prop_assert!(found.findings.is_sorted_by(|x, y| key(x) <= key(y)));

        let back = explain(&b, &a);
        prop_assert_eq!(back.findings.len(), found.findings.len());
        for finding in &found.findings {
            let same = back.findings.iter().find(|other| other.mechanism == finding.mechanism);
            let other = same.map_or(f64::NAN, |other| other.effect);
            prop_assert!((finding.effect + other).abs() <= 1e-6 * scale, "{finding:?} {other}");
        }
    }

    #[test]
    fn a_side_does_not_differ_from_itself(a in any_account()) {
        let found = Explanation::of(&a, &a, &[]);
        prop_assert_eq!(found.answer, Answer::NotSure);
        prop_assert!(found.findings.is_empty());
    }
}
