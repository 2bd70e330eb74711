//! Made-up accounts of two sides, and helpers to explain them.

use std::collections::BTreeMap;

use pagetide_compare::explain::{
    Account, Answer, Claim, Explanation, Mechanism, ObservedPass, PassAccount, Reading,
};
use pagetide_probe::meaning::Part;
use pagetide_quantity::Unit;
use pagetide_verdict::Verdict;
use pagetide_verdict::judgement::EffectKind;

pub const COUNTERS: [&str; 14] = [
    "pgfault",
    "pgmajfault",
    "pswpin",
    "pswpout",
    "pgpgin",
    "swap_ra",
    "swap_ra_hit",
    "workingset_refault_anon",
    "pgsteal_anon",
    "pgsteal_direct",
    "pgscan_direct",
    "pgsteal_kswapd",
    "allocstall_movable",
    "compact_stall",
];

/// Returns a side with this growth of counters and these times in nanoseconds.
pub fn account(growth: &[(&str, f64)], times: &[(Part, f64)]) -> Account {
    let growth: BTreeMap<String, f64> = growth
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect();
    let times: BTreeMap<Part, f64> = times.iter().copied().collect();
    Account {
        trials: 4,
        elapsed: times.values().sum(),
        growth: growth.clone(),
        passes: vec![ObservedPass {
            record: "0123456789abcdef".into(),
            seed: 1,
            observed: PassAccount {
                times,
                growth,
                ..PassAccount::default()
            },
        }],
        ..Account::default()
    }
}

/// Returns a side whose workload has 10,000 faults without I/O and reads back `pages` pages. Each wait reads `each`
/// pages and takes `wait` ns.
pub fn reading(pages: f64, each: f64, wait: f64) -> Account {
    let waits = pages / each;
    account(
        &[
            ("pgfault", 10_000.0 + pages),
            ("pgmajfault", waits),
            ("pswpin", pages),
            ("pgpgin", pages * 4.0),
            ("swap_ra", pages - waits),
            ("swap_ra_hit", pages - waits),
            ("workingset_refault_anon", pages),
            ("pgsteal_anon", 5_000.0 + pages),
            ("pgsteal_kswapd", 5_000.0 + pages),
        ],
        &[
            (Part::Compute, 50e6),
            (Part::Fault, 20e6 + pages * 2e3),
            (Part::IoWait, waits * wait),
            (Part::Sleep, 1e9),
        ],
    )
}

/// Returns a side whose workload copies 8,000 pages while another process reads `swapped` pages back from swap. Each
/// request takes `request` ns.
pub fn copying(swapped: f64, request: f64) -> Account {
    let mut side = account(
        &[
            ("pgfault", 9_000.0 + swapped),
            ("pgmajfault", swapped),
            ("pswpin", swapped),
            ("pgpgin", (8_000.0 + swapped) * 4.0),
            ("workingset_refault_anon", swapped),
        ],
        // Each request reads thirty pages of the file.
        &[
            (Part::Compute, 50e6),
            (Part::IoWait, (swapped + 8_000.0 / 30.0) * request),
        ],
    );
    side.passes[0].observed.read = Some(request);
    side
}

/// Returns the explained time of a side, in nanoseconds.
pub fn time(side: &Account) -> f64 {
    let times: Vec<f64> = side
        .passes
        .iter()
        .map(|pass| pass.observed.active())
        .collect();
    if times.is_empty() {
        side.elapsed
    } else {
        times.iter().sum::<f64>() / times.len() as f64
    }
}

/// Returns the explanation if the timed trials surely differ in the explained time. If only one seed was observed, its
/// pass is used for three seeds.
pub fn explain(a: &Account, b: &Account) -> Explanation {
    let [a, b] = [a, b].map(|side| {
        let mut side = side.clone();
        if let [pass] = side.passes.as_slice() {
            let pass = pass.clone();
            side.passes = (1..4)
                .map(|seed| ObservedPass {
                    seed,
                    ..pass.clone()
                })
                .collect();
        }
        side.singles = vec![side.clone(); 3];
        side
    });
    let means = [time(&a), time(&b)];
    let claim = claim("run", Unit::Nanos, means);
    Explanation::of(&a, &b, &[claim])
}

pub fn first(a: &Account, b: &Account) -> (Mechanism, f64) {
    let found = explain(a, b);
    assert_eq!(found.answer, Answer::Explained, "{found:#?}");
    (found.findings[0].mechanism, found.findings[0].effect)
}

/// Returns the evidence for a mechanism: the name and both values of each piece.
pub fn told(found: &Explanation, mechanism: Mechanism) -> Vec<(String, [f64; 2])> {
    let number = |reading: &Reading| match reading {
        Reading::Number(number) => *number,
        Reading::Text(_) => f64::NAN,
    };
    let mut of = found.findings.iter();
    of.find(|finding| finding.mechanism == mechanism)
        .unwrap_or_else(|| panic!("{mechanism} is not in {found:#?}"))
        .evidence
        .iter()
        .map(|piece| {
            // Means of three equal numbers may differ from them in the last digit.
            let numbers = [&piece.before, &piece.after].map(|reading| number(reading).round());
            (piece.name.clone(), numbers)
        })
        .collect()
}

/// Returns a claim for a primary metric with these means. The effect is a ratio, and lower values are better.
pub fn claim(metric: &str, unit: Unit, means: [f64; 2]) -> Claim {
    Claim {
        metric: metric.into(),
        unit,
        primary: true,
        verdict: if means[1] < means[0] {
            Verdict::Improved
        } else {
            Verdict::Regressed
        },
        means,
        medians: means,
        effect: means[1] / means[0],
        kind: EffectKind::Ratio,
    }
}

/// Returns a claim for a primary metric with these means and this verdict. The effect is the difference of the means.
pub fn claim_of_difference(metric: &str, unit: Unit, verdict: Verdict, means: [f64; 2]) -> Claim {
    Claim {
        verdict,
        effect: means[1] - means[0],
        kind: EffectKind::Difference,
        ..claim(metric, unit, means)
    }
}
