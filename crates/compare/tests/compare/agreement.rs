//! Tests whether arenas agree in the effects of one campaign.

use pagetide_compare::CompareError;
use pagetide_compare::agreement::{Agrees, Sign, agreement};
use pagetide_record::ArenaKind;

use super::bench::Bench;

/// Replaces the entries of the campaign by seven trials of each variant in each of three cells. In each cell, the
/// second variant takes about as many times as long as the first as `factors` states for this cell.
fn fill(bench: &mut Bench, factors: [f64; 3]) {
    bench.note.entries.clear();
    let kind = bench.note.arena;
    for (cell, factor) in factors.into_iter().enumerate() {
        for seed in 1..=7_u64 {
            let base = 1e6 * (1.0 + 0.01 * (seed * 7 % 5) as f64);
            let noise = 1.0 + 0.0005 * (seed * 3 % 7) as f64;
            for (variant, time) in [base, base * factor * noise].into_iter().enumerate() {
                let mut record = bench.trial(cell, variant, seed, time);
                record.subject.arena.kind = kind;
                record.subject.variant.kernel.release = format!("6.1{}", kind as u8);
                record.wall.unit = u32::try_from(seed).unwrap();
                bench.add(cell, variant, record);
            }
        }
    }
}

#[test]
fn arenas_agree_where_signs_are_the_same_and_what_differs_is_named_where_not() {
    let mut bench = Bench::new(3);
    fill(&mut bench, [1.3, 1.3, 1.0]);
    // A campaign that ran in one arena has nothing to agree with.
    let alone = agreement(&bench.store, &[], false).unwrap_err();
    assert!(matches!(alone, CompareError::OneArena { .. }), "{alone}");
    assert!(alone.to_string().contains("--on host"), "{alone}");
    bench.note.name = "test-host".to_owned();
    bench.note.arena = ArenaKind::Host;
    fill(&mut bench, [1.3, 0.8, 1.0]);
    for names in [
        vec![],
        vec!["test".to_owned()],
        vec!["test-host".to_owned(), "test".to_owned()],
    ] {
        let found = agreement(&bench.store, &names, false).unwrap();
        let arenas: Vec<ArenaKind> = found.arenas.iter().map(|side| side.arena).collect();
        assert_eq!(arenas, [ArenaKind::Exact, ArenaKind::Host], "{names:?}");
        assert_eq!(found.rows.len(), 3, "only the metric that decides");
        let signs: Vec<Agrees> = found.rows.iter().map(|row| row.sign).collect();
        assert_eq!(signs[..2], [Agrees::Yes, Agrees::No]);
        let effects = |row: usize| found.rows[row].effects.iter().flatten();
        let of_second: Vec<Sign> = effects(1).map(|effect| effect.sign).collect();
        assert_eq!(of_second, [Sign::More, Sign::Less]);
        assert!(effects(0).all(|effect| (effect.estimate - 1.3).abs() < 0.01));
        assert_eq!(found.rows[0].same_size, Some(true));
        assert!(found.rows[0].reasons.is_empty());
        let why = found.rows[1].reasons.join("; ");
        assert!(
            why.contains("--limit") && why.contains("kernels differ"),
            "{why}"
        );
    }
    let all = agreement(&bench.store, &[], true).unwrap();
    assert_eq!(all.rows.len(), 6, "metrics that decide nothing too");
}
