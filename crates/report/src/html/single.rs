//! A record as a comparison with a single column, so that its page is made like all others.

use pagetide_compare::comparison::{Cell, Column, Comparison, InvalidTrial, Overall, Side};
use pagetide_compare::{Caution, MetricRow, TrialRef, Values};
use pagetide_quantity::Value;
use pagetide_record::{ArenaKind, Invalid, Record};

/// Creates a comparison with one column, one trial (valid or not) and no judgement.
pub fn single(record: &Record) -> Comparison {
    let subject = &record.subject;
    let mut side = Side::default();
    match record.why_invalid() {
        None => side.trials.push(TrialRef {
            record: record.id(),
            seed: subject.seed,
            unit: record.wall.unit,
            repetition: record.wall.repetition,
            digest: record.digest.clone(),
        }),
        Some(why) => side.invalid.push(InvalidTrial {
            record: record.id(),
            seed: subject.seed,
            why,
            died: record.results.invalid.iter().any(Invalid::is_death),
        }),
    }
    let metrics = record.results.metrics.iter().map(|metric| {
        let values = match &metric.value {
            Value::Number(number) => Values {
                values: vec![(0, *number)],
                absent: None,
            },
            Value::Absent(why) => Values {
                values: Vec::new(),
                absent: Some(why.clone()),
            },
        };
        MetricRow {
            name: metric.name.clone(),
            unit: metric.unit,
            direction: metric.direction,
            primary: metric.primary,
            values: vec![values],
            judgements: Vec::new(),
        }
    });
    let exact = subject.arena.kind == ArenaKind::Exact;
    Comparison {
        campaign: None,
        baseline: None,
        columns: vec![Column {
            name: subject.variant.name.clone(),
            variant: Some(subject.variant.clone()),
            valid: usize::from(record.is_valid()),
            invalid: usize::from(!record.is_valid()),
            pending: 0,
            paired: true,
            swap: String::new(),
        }],
        cells: vec![Cell {
            label: subject.cell_label(),
            subject: Some(subject.clone()),
            metrics: metrics.collect(),
            sides: vec![side],
        }],
        alpha: pagetide_compare::ALPHA,
        look: None,
        overall: Overall::Invalid,
        notes: Vec::new(),
        kinds: Vec::new(),
        explanations: Vec::new(),
        cautions: if exact {
            vec![Caution::VirtualTime]
        } else {
            Vec::new()
        },
    }
}
