//! A store with made-up records.

use pagetide_compare::{Comparison, compare_campaign};
use pagetide_quantity::{Direction, Metric, MetricDef, Nanos};
use pagetide_record::Record;
use pagetide_store::{CampaignNote, CellNote, Entry, Store};
use pagetide_verdict::Verdict;

pub(crate) const TIME: MetricDef = MetricDef::time("run", "whole run").primary();
pub(crate) const SCANNED: MetricDef =
    MetricDef::count("scanned", Direction::Neutral, "pages scanned");

/// A store with a campaign of two variants, and helpers to fill it.
pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) note: CampaignNote,
    pub(crate) moment: u64,
}

impl Bench {
    /// Creates a campaign `test` with variants `off` and `on` and this number of cells.
    pub(crate) fn new(cells: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let note = CampaignNote {
            name: "test".into(),
            generation: 1,
            variants: vec!["off".into(), "on".into()],
            cells: (0..cells)
                .map(|n| CellNote {
                    label: format!("cell {n}"),
                    ..CellNote::default()
                })
                .collect(),
            ..CampaignNote::default()
        };
        Self {
            _dir: dir,
            store,
            note,
            moment: 0,
        }
    }

    /// Returns a record of a trial that takes `time` ns.
    pub(crate) fn trial(&self, cell: usize, variant: usize, seed: u64, time: f64) -> Record {
        let mut record = Record::default();
        let subject = &mut record.subject;
        subject.scenario = "linear".into();
        subject
            .params
            .insert("pages".into(), (100 * (cell + 1)).to_string());
        subject.seed = seed;
        subject
            .variant
            .name
            .clone_from(&self.note.variants[variant]);
        subject.variant.kernel.release = format!("6.{variant}");
        subject
            .variant
            .settings
            .insert("lru_gen/enabled".into(), variant.to_string());
        record.results.metrics = vec![
            Metric::new(&SCANNED, 1000.0 + seed as f64),
            Metric::new(&TIME, time),
        ];
        record
    }

    /// Adds a record to the store and to the campaign's note.
    pub(crate) fn add(&mut self, cell: usize, variant: usize, mut record: Record) -> Record {
        self.moment += 1;
        record.wall.started = Nanos(self.moment);
        record.wall.campaign = self.note.id();
        let unit = u32::try_from(record.subject.seed).unwrap() - 1;
        self.note.entries.push(Entry {
            key: record.subject.key(),
            cell,
            variant,
            unit: if record.wall.unit > 0 {
                record.wall.unit - 1
            } else {
                unit
            },
            repetition: record.wall.repetition,
        });
        let writer = self.store.writer().unwrap();
        self.store.add(writer, &mut record).unwrap();
        self.store.note(&self.note).unwrap();
        record
    }

    /// Fills a cell with `seeds` trials of each variant: `on` takes `factor` times as long as `off`, with a little
    /// noise.
    pub(crate) fn fill(&mut self, cell: usize, seeds: u64, factor: f64) {
        for seed in 1..=seeds {
            let base = 1e6 * (1.0 + 0.1 * (seed * 7 % 5) as f64);
            let noise = 1.0 + 0.001 * (seed * 3 % 7) as f64;
            self.add(cell, 0, self.trial(cell, 0, seed, base));
            self.add(cell, 1, self.trial(cell, 1, seed, base * factor * noise));
        }
    }

    pub(crate) fn compare(&self) -> Comparison {
        compare_campaign(&self.store, None).unwrap()
    }
}

/// Returns the verdict on a metric of a cell.
pub(crate) fn verdict(comparison: &Comparison, cell: usize, metric: &str) -> Verdict {
    let row = comparison.cells[cell]
        .metrics
        .iter()
        .find(|row| row.name == metric)
        .unwrap();
    row.judgements[0].as_ref().unwrap().verdict.clone()
}
