//! Explanations of time spent waiting: for swap, for write-back, for compaction.

use pagetide_compare::explain::{Account, CpuHolder, Mechanism, Reading, SiteTime, Source};
use pagetide_probe::meaning::{Part, RowId};

use super::account::{account, copying, explain, first, reading, told};

#[test]
fn each_planted_cause_of_waiting_ranks_first_with_its_sign() {
    let base = reading(8_000.0, 1.0, 100e3);
    for (changed, expected) in [
        (reading(2_000.0, 1.0, 100e3), Mechanism::EvictionChoice),
        (reading(8_000.0, 8.0, 120e3), Mechanism::ReadAhead),
    ] {
        let (mechanism, effect) = first(&base, &changed);
        assert_eq!(mechanism, expected);
        assert!(effect < 0.0);
        let (mechanism, back) = first(&changed, &base);
        assert_eq!(mechanism, expected);
        assert!((effect + back).abs() < 1.0);
    }
    let mut slow = reading(8_000.0, 1.0, 2e6);
    slow.settings.insert("swap".into(), "ssd:2ms".into());
    let (mechanism, effect) = first(&base, &slow);
    assert_eq!(mechanism, Mechanism::DeviceLatency);
    assert!((effect - 8_000.0 * 1.9e6).abs() < 1e6, "{effect}");
}

#[test]
fn longer_waits_on_one_and_the_same_device_are_its_queue_or_not_explained() {
    let of = |swap: &str, wait: f64, request: Option<f64>| {
        let mut side = reading(8_000.0, 1.0, wait);
        side.settings.insert("swap".into(), swap.into());
        side.passes[0].observed.read = request;
        side
    };
    // If nothing was read from a device, or if requests took no longer, the cause of the waits is unknown.
    for (swap, request) in [("zram", None), ("ssd:80us", Some(80e3)), ("/dev/vdb", None)] {
        let (slow, quick) = (of(swap, 9e3, request), of(swap, 4e3, request));
        assert_eq!(first(&slow, &quick).0, Mechanism::UnknownWaits, "{swap}");
    }
    let (slow, quick) = (
        of("ssd:80us", 200e3, Some(190e3)),
        of("ssd:80us", 90e3, Some(82e3)),
    );
    assert_eq!(first(&slow, &quick).0, Mechanism::DeviceQueue);
    // A real device may have become slower.
    let (slow, quick) = (
        of("/dev/vdb", 200e3, Some(190e3)),
        of("/dev/vdb", 90e3, Some(82e3)),
    );
    assert_eq!(first(&slow, &quick).0, Mechanism::DeviceLatency);
    let (slow, quick) = (
        of("ssd:160us", 200e3, Some(190e3)),
        of("ssd:80us", 90e3, Some(82e3)),
    );
    assert_eq!(first(&slow, &quick).0, Mechanism::DeviceLatency);
}

#[test]
fn a_few_long_waits_among_thousands_of_swap_ins_are_reported_separately() {
    // On zram a swap-in does not sleep. Seven tasks sleep for another reason, longer on one side than on the other.
    let of = |pages: f64, slept: f64, longest: f64| {
        let mut side = reading(pages, 1.0, 0.0);
        let observed = &mut side.passes[0].observed;
        observed.times.insert(Part::IoWait, slept);
        observed.waits.insert(Part::IoWait, 7.0);
        observed.longest.insert(Part::IoWait, longest);
        side.settings.insert("swap".into(), "zram".into());
        side
    };
    let found = explain(&of(6_000.0, 14e6, 3e6), &of(6_776.0, 154e6, 40e6));
    let waits = told(&found, Mechanism::UnknownWaits);
    assert!((found.findings[0].effect - 140e6).abs() < 1.0, "{found:#?}");
    let expected = [
        ("time blocked outside reclaim", [14e6, 154e6]),
        ("waits", [7.0, 7.0]),
        ("time a wait", [2e6, 22e6]),
        ("the longest", [3e6, 40e6]),
    ];
    assert_eq!(waits, expected.map(|(name, both)| (name.to_owned(), both)));
    // If both sides have stacks for all of the sleep time, the stacks name the place.
    let with = |mut side: Account, sites: &[(&str, f64, f64)]| {
        let of = |(site, count, time): &(&str, f64, f64)| SiteTime {
            part: Part::IoWait,
            site: (*site).to_owned(),
            count: *count,
            time: *time,
        };
        side.passes[0].observed.sites = sites.iter().map(of).collect();
        side
    };
    let lock = "__mutex_lock in zcomp_stream_get (a mutex)";
    let quick = || of(6_000.0, 14e6, 3e6);
    let slow = || of(6_776.0, 154e6, 40e6);
    let a = with(quick(), &[(lock, 4.0, 10e6), ("other", 3.0, 4e6)]);
    let b = with(slow(), &[("other", 3.0, 3e6), (lock, 4.0, 151e6)]);
    let named = told(&explain(&a, &b), Mechanism::SeenWaits);
    assert_eq!(named[0], (format!("asleep in {lock}"), [10e6, 151e6]));
    assert_eq!(named[1], ("waits there".to_owned(), [4.0, 4.0]));
    assert_eq!(named[2], ("time a wait there".to_owned(), [2.5e6, 37.75e6]));
    assert!(
        named.iter().all(|(name, _)| !name.contains("other")),
        "{named:?}"
    );
    let partly = with(slow(), &[(lock, 1.0, 15e6)]);
    assert_eq!(first(&a, &partly).0, Mechanism::UnknownWaits);
    assert_eq!(first(&quick(), &b).0, Mechanism::UnknownWaits);
    // If each swap-in sleeps, more swap-ins are the cause.
    let sleeping = |pages: f64| {
        let mut side = reading(pages, 1.0, 100e3);
        side.passes[0].observed.waits.insert(Part::IoWait, pages);
        side
    };
    let found = explain(&sleeping(6_000.0), &sleeping(9_000.0));
    assert_eq!(found.findings[0].mechanism, Mechanism::EvictionChoice);
    // If only one side does not sleep, its device differs, and the exception for zram does not apply.
    let mut quick = of(6_000.0, 1e3, 1e3);
    quick.passes[0].observed.waits.insert(Part::IoWait, 1.0);
    let mut slow = sleeping(6_000.0);
    slow.settings.insert("swap".into(), "ssd:80us".into());
    assert_eq!(first(&quick, &slow).0, Mechanism::DeviceLatency);
}

#[test]
fn waits_within_reclaim_are_write_back_only_as_far_as_the_kernel_throttled() {
    let of = |wait: f64, throttled: f64| {
        let mut side = account(
            &[
                ("pgfault", 10_000.0),
                ("pgsteal_anon", 8_000.0),
                ("pswpout", 8_000.0 + wait / 1e6),
            ],
            &[(Part::Compute, 50e6), (Part::ReclaimWait, wait)],
        );
        let waits = &mut side.passes[0].observed.waits;
        waits.insert(Part::ReclaimWait, 50.0);
        let rows = &mut side.passes[0].observed.rows;
        rows.insert(RowId::TimeThrottled, throttled);
        side
    };
    assert_eq!(
        first(&of(10e6, 0.0), &of(477e6, 0.0)).0,
        Mechanism::ReclaimWaits
    );
    let unknown = explain(&of(10e6, 0.0), &of(477e6, 0.0));
    let waits = told(&unknown, Mechanism::ReclaimWaits);
    assert!(waits.contains(&("waits".into(), [50.0; 2])), "{waits:?}");
    assert!(
        waits.contains(&("time a wait".into(), [200e3, 9.54e6])),
        "{waits:?}"
    );
    assert_eq!(
        first(&of(10e6, 5e6), &of(477e6, 460e6)).0,
        Mechanism::WriteBack
    );
    let half = explain(&of(10e6, 0.0), &of(410e6, 200e6));
    let effect = |mechanism| {
        let mut of = half
            .findings
            .iter()
            .filter(|finding| finding.mechanism == mechanism);
        of.next().unwrap().effect
    };
    assert!(
        (effect(Mechanism::WriteBack) - 200e6).abs() < 1e6,
        "{half:#?}"
    );
    assert!(
        (effect(Mechanism::ReclaimWaits) - 200e6).abs() < 1e6,
        "{half:#?}"
    );
}

#[test]
fn what_moved_against_an_effect_is_no_evidence_of_it() {
    // Fewer pages were read back, but more of them counted as refaults.
    let (a, mut b) = (reading(8_000.0, 1.0, 100e3), reading(6_000.0, 1.0, 100e3));
    b.passes[0]
        .observed
        .growth
        .insert("workingset_refault_anon".into(), 9_000.0);
    let found = explain(&a, &b);
    let refaults = &found.findings[0];
    assert_eq!(refaults.mechanism, Mechanism::EvictionChoice);
    assert!(refaults.effect < 0.0);
    let names: Vec<&str> = refaults
        .evidence
        .iter()
        .map(|piece| piece.name.as_str())
        .collect();
    assert!(
        names.contains(&"pswpin") && !names.contains(&"workingset_refault_anon"),
        "{names:?}"
    );
    for finding in &found.findings {
        for piece in &finding.evidence {
            assert_ne!(piece.source, Source::Timed, "{piece:?}");
        }
    }
    // The means over the timed trials of all seeds are separate. Here they changed in the opposite direction.
    let (mut a, mut b) = (reading(2_000.0, 1.0, 100e3), reading(8_000.0, 1.0, 100e3));
    std::mem::swap(&mut a.growth, &mut b.growth);
    let found = explain(&a, &b);
    let refaults = found.findings[0]
        .evidence
        .iter()
        .find(|e| e.name == "workingset_refault_anon");
    assert_eq!(
        (&refaults.unwrap().before, &refaults.unwrap().after),
        (&Reading::Number(2_000.0), &Reading::Number(8_000.0))
    );
}

#[test]
fn swap_in_during_file_reads_is_not_attributed_to_a_slower_device() {
    let (mechanism, effect) = first(&copying(0.0, 100e3), &copying(400.0, 105e3));
    assert_eq!(mechanism, Mechanism::EvictionChoice);
    assert!(effect > 40e6, "{effect}");
    // If the device takes longer for the same pages, the device is the cause.
    let (mechanism, effect) = first(&copying(400.0, 100e3), &copying(400.0, 300e3));
    assert_eq!(mechanism, Mechanism::DeviceLatency);
    assert!(effect > 100e6, "{effect}");
}

#[test]
fn waiting_for_kcompactd_counts_as_compaction() {
    let of = |time: f64, stalls: f64| {
        let mut side = account(
            &[("pgfault", 1_000.0), ("compact_stall", stalls)],
            &[(Part::Compute, 50e6), (Part::RunQueue, time)],
        );
        let queue = &mut side.passes[0].observed.queue;
        queue.insert(CpuHolder::Kcompactd, time);
        side
    };
    let (mechanism, effect) = first(&of(1e6, 3.0), &of(41e6, 9.0));
    assert_eq!(mechanism, Mechanism::Compaction);
    assert!((effect - 40e6).abs() < 2e6, "{effect}");
}
