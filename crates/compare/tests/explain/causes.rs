//! Tests which mechanism is found as the cause, and with what certainty.

use pagetide_compare::explain::{Account, Answer, Basis, Explanation, Mechanism};
use pagetide_probe::meaning::Part;
use pagetide_quantity::Unit;

use super::account::{account, claim, explain, first, reading, time, told};

#[test]
fn shares_are_omitted_if_effects_oppose_each_other() {
    // Fewer pages are read back, but each read takes longer.
    let mut a = reading(8_000.0, 1.0, 100e3);
    let mut b = reading(2_000.0, 1.0, 150e3);
    a.settings.insert("swap".into(), "ssd:80us".into());
    b.settings.insert("swap".into(), "ssd:120us".into());
    let found = explain(&a, &b);
    assert_eq!(found.findings.len(), 2, "{found:#?}");
    assert!(found.findings[0].effect < found.difference());
    assert!(found.findings.iter().all(|finding| finding.share.is_none()));
    let found = explain(&a, &reading(2_000.0, 1.0, 100e3));
    assert!(
        found
            .findings
            .iter()
            .all(|f| f.share.is_some_and(|share| share <= 1.0)),
        "{found:#?}"
    );
}

#[test]
fn a_difference_of_a_few_ticks_is_not_attributed_to_computing() {
    let of = |user: f64| {
        account(
            &[("pgfault", 10_000.0)],
            &[(Part::Compute, user), (Part::Fault, 280e6)],
        )
    };
    let found = explain(&of(20e6), &of(0.0));
    assert!(
        found
            .findings
            .iter()
            .all(|finding| finding.mechanism != Mechanism::Compute),
        "{found:#?}"
    );
    let found = explain(&of(150e6), &of(10e6));
    assert_eq!(
        found.findings[0].mechanism,
        Mechanism::Compute,
        "{found:#?}"
    );
}

#[test]
fn less_free_memory_is_named_before_the_choice_of_victims() {
    let mut a = reading(2_000.0, 1.0, 100e3);
    let mut b = reading(8_000.0, 1.0, 100e3);
    a.levels.insert("free-at-start".into(), 24e6);
    b.levels.insert("free-at-start".into(), 19e6);
    assert_eq!(first(&a, &b).0, Mechanism::SharedMemory);
    b.levels.insert("free-at-start".into(), 24e6 + 4096.0);
    assert_eq!(first(&a, &b).0, Mechanism::EvictionChoice);
}

#[test]
fn moves_between_lru_lists_are_reported_only_for_different_kernels() {
    let of = |pages: f64, moves: f64, kernel: &str| {
        let mut side = reading(pages, 1.0, 100e3);
        for growth in [&mut side.growth, &mut side.passes[0].observed.growth] {
            growth.insert("pgactivate".into(), moves);
            growth.insert("pgdeactivate".into(), 20.0);
            growth.insert("pgrotated".into(), moves / 2.0);
        }
        side.settings.insert("kernel".into(), kernel.into());
        side
    };
    // Fewer activations with more refaults are evidence of the patch's effect; more activations would be too. Counters
    // that did not change are not evidence.
    let (base, patched) = (of(2_000.0, 900.0, "base"), of(8_000.0, 100.0, "patched"));
    let found = told(&explain(&base, &patched), Mechanism::EvictionChoice);
    let expected = [("pgactivate", [900.0, 100.0]), ("pgrotated", [450.0, 50.0])];
    assert_eq!(found[0].0, "workingset_refault_anon");
    assert_eq!(
        found[1..3],
        expected.map(|(name, both)| (name.into(), both))
    );
    let same = of(8_000.0, 100.0, "base");
    let found = told(&explain(&base, &same), Mechanism::EvictionChoice);
    assert!(
        found.iter().all(|(name, _)| name != "pgactivate"),
        "{found:?}"
    );
}

#[test]
fn scattered_swap_is_named_where_read_ahead_is_set_alike() {
    let mut a = reading(8_000.0, 8.0, 100e3);
    let mut b = reading(8_000.0, 2.0, 100e3);
    a.levels.insert("contiguity".into(), 0.95);
    b.levels.insert("contiguity".into(), 0.3);
    assert_eq!(first(&a, &b).0, Mechanism::SwapLayout);
    a.settings.insert("vm.page-cluster".into(), "3".into());
    b.settings.insert("vm.page-cluster".into(), "1".into());
    assert_eq!(first(&a, &b).0, Mechanism::ReadAhead);
}

#[test]
fn compressed_swap_without_waits_still_tells_refaults_by_the_faults_and_the_reclaim_they_cost() {
    let of = |pages: f64| {
        account(
            &[
                ("pgfault", 10_000.0 + pages),
                ("pgmajfault", pages),
                ("pswpin", pages),
                ("pgpgin", pages * 4.0),
                ("workingset_refault_anon", pages),
                ("pgsteal_anon", 5_000.0 + pages),
                ("pgsteal_direct", 5_000.0 + pages),
                ("pgscan_direct", 10_000.0 + 2.0 * pages),
                ("allocstall_movable", 100.0 + pages / 50.0),
            ],
            &[
                (Part::Compute, 50e6),
                (Part::Fault, 20e6 + pages * 20e3),
                (Part::Reclaim, (5_000.0 + pages) * 30e3),
            ],
        )
    };
    let found = explain(&of(2_000.0), &of(9_000.0));
    assert_eq!(found.findings[0].mechanism, Mechanism::EvictionChoice);
    assert!(found.findings[0].share.unwrap() > 0.95, "{found:#?}");
}

#[test]
fn without_observed_passes_only_waiting_is_attributed_and_the_rest_are_leads() {
    let bare = |account: Account, system: f64| {
        let mut account = account;
        account.passes.clear();
        account.levels.insert("user".into(), 50e6);
        account.levels.insert("system".into(), system);
        account.elapsed -= 20e6;
        account.elapsed += system;
        account
            .settings
            .insert("swap".into(), format!("ssd:{}us", system / 1e6));
        account
    };
    let a = bare(reading(8_000.0, 1.0, 100e3), 20e6);
    let mut b = bare(reading(8_000.0, 1.0, 300e3), 90e6);
    b.growth.insert("compact_stall".into(), 70.0);
    let mut a = a;
    a.growth.insert("compact_stall".into(), 10.0);
    let found = explain(&a, &b);
    assert_eq!(found.basis, Basis::Counters);
    assert_eq!(found.findings[0].mechanism, Mechanism::DeviceLatency);
    // Without a trace, kernel time cannot be attributed.
    assert!((found.unexplained - 70e6).abs() < 1e6, "{found:#?}");
    assert!(
        found
            .leads
            .iter()
            .any(|lead| lead.mechanism == Mechanism::Compaction)
    );
    assert!(
        found
            .findings
            .iter()
            .all(|finding| finding.mechanism != Mechanism::Compaction)
    );
}

#[test]
fn a_difference_that_no_counter_speaks_for_is_not_explained() {
    let a = reading(8_000.0, 1.0, 100e3);
    let mut b = a.clone();
    let times = &mut b.passes[0].observed.times;
    times.insert(Part::Unexplained, 500e6);
    let found = explain(&a, &b);
    assert_eq!(found.answer, Answer::NotFound);
    assert!(found.findings.is_empty());
    assert!((found.unexplained - 500e6).abs() < 1.0);
}

#[test]
fn lines_that_all_go_the_other_way_are_no_reason() {
    let a = reading(8_000.0, 1.0, 100e3);
    let mut b = reading(9_000.0, 1.0, 100e3);
    // The other side is faster for an unknown reason, although more pages are read back.
    let mut slower = a.clone();
    slower.passes[0]
        .observed
        .times
        .insert(Part::Unexplained, 900e6);
    b.passes[0].observed.times.insert(Part::Unexplained, 0.0);
    let found = explain(&slower, &b);
    assert_eq!(found.answer, Answer::NotFound, "{found:#?}");
    assert!(found.findings.is_empty());
    assert!((found.minor + found.unexplained - found.difference()).abs() < 1.0);
}

#[test]
fn an_effect_that_is_small_compared_with_the_claim_is_no_cause_of_it() {
    let passes = |costs: [f64; 3], pages: [f64; 3]| {
        let mut side = reading(2_000.0, 1.0, 100e3);
        side.settings.insert("swap".into(), "zram".into());
        let of_seed = |((seed, cost), pages): ((u64, f64), f64)| {
            let mut pass = reading(pages, 1.0, 100e3).passes.remove(0);
            pass.seed = seed;
            // The time is surely less for each seed, but only by a small part of the whole difference.
            pass.observed.times.insert(Part::DirtyLimit, cost);
            pass
        };
        side.passes = (1..).zip(costs).zip(pages).map(of_seed).collect();
        side
    };
    let a = passes([9e6, 8e6, 8.5e6], [8_000.0; 3]);
    let b = passes([5e6, 4.5e6, 5e6], [7_800.0, 8_100.0, 7_900.0]);
    // The whole difference of the observed passes, in nanoseconds.
    let whole = time(&b) - time(&a);
    let of_claims = |difference: f64| {
        let run = [time(&a), time(&a) + difference];
        let major = [8_000.0, 7_700.0];
        Explanation::of(
            &a,
            &b,
            &[
                claim("run", Unit::Nanos, run),
                claim("major-faults", Unit::Count, major),
            ],
        )
    };
    let found = of_claims(whole);
    assert_eq!(found.answer, Answer::Explained, "{found:#?}");
    assert_eq!(found.findings[0].mechanism, Mechanism::DirtyLimits);
    // The observed difference does not explain a metric that changed by ten times as much. The count that surely
    // changed is reported instead.
    let found = of_claims(10.0 * whole);
    assert_eq!(found.answer, Answer::NotFound, "{found:#?}");
    let of: Vec<_> = found.leads.iter().map(|lead| lead.of.as_deref()).collect();
    assert_eq!(of, [Some("major-faults")], "{found:#?}");
    assert_eq!(found.leads[0].mechanism, Mechanism::EvictionChoice);
}

#[test]
fn missing_blocks_are_attributed_to_compaction_and_not_to_cheaper_faults() {
    // 30 attempts to get a block: clearing a block takes 600 µs, and a failed attempt 10 µs. The rest of the trial has
    // the same number of faults on both sides.
    let of = |blocks: f64, each: f64| {
        let failures = 30.0 - blocks;
        let mut side = account(
            &[("pgfault", 20_000.0), ("thp_fault_alloc", blocks)],
            &[(Part::Fault, blocks * each + failures * 10e3)],
        );
        side.passes[0].observed.attempts = true;
        side
    };
    let (mechanism, effect) = first(&of(29.0, 600e3), &of(17.0, 580e3));
    assert_eq!(mechanism, Mechanism::Compaction);
    assert!((-7.5e6..-6.5e6).contains(&effect), "{effect}");
    // With the same number of blocks, each of them cheaper, the cause is the faults.
    let (mechanism, _) = first(&of(29.0, 600e3), &of(29.0, 300e3));
    assert_eq!(mechanism, Mechanism::Faults);
}

#[test]
fn effects_against_a_difference_rank_after_its_causes() {
    let mut a = reading(2_000.0, 1.0, 100e3);
    let mut b = reading(8_000.0, 1.0, 100e3);
    // The other side is slower because of refaults, although the savings elsewhere are larger than any single cost.
    let (gain, cost) = (900e6, 700e6);
    a.passes[0].observed.times.insert(Part::DirtyLimit, gain);
    b.passes[0].observed.times.insert(Part::DirtyLimit, 0.0);
    b.passes[0].observed.times.insert(Part::Unexplained, cost);
    let found = explain(&a, &b);
    assert!(found.difference() > 0.0, "{found:#?}");
    let named: Vec<_> = found.findings.iter().map(|one| one.mechanism).collect();
    assert_eq!(
        named,
        [Mechanism::EvictionChoice, Mechanism::DirtyLimits],
        "{found:#?}"
    );
    assert!(found.findings[0].effect.abs() < found.findings[1].effect.abs());
}
