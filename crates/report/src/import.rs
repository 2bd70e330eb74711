//! What others measured, brought in as records, so that it is judged by the same rules.
//!
//! An imported record says where it came from (`arena.machine` is "imported from …"), so that it is never set against a
//! trial of our own by mistake. What the source does not tell is empty, never guessed.

pub mod csv;
pub mod mmtests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use pagetide_record::{
    ArenaKind, ArenaSpec, Maker, MemorySpec, Record, Subject, SwapSpec, Variant,
};
use pagetide_store::{CampaignNote, CellNote, Entry};

/// Why something cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file system refused.
    #[error("reading {path} was refused ({source}): check the path and its permissions")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// There is nothing of this kind.
    #[error("{path} holds no {what}: {remedy}")]
    Nothing {
        /// The file or folder.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// What to give instead.
        remedy: &'static str,
    },
    /// A file is larger than anything sensible.
    #[error("{path} is larger than {limit} bytes: it is no result of this kind")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// A column is missing.
    #[error(
        "{path} has no column `{column}`: the first line must name at least scenario, variant, metric and value"
    )]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// A cell cannot be read.
    #[error("{path} line {line}: `{text}` in column `{column}` is not {wanted}")]
    BadCell {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// What stands there, cut.
        text: String,
        /// What was wanted, with an example.
        wanted: &'static str,
    },
    /// The same metric of the same trial stands there twice.
    #[error(
        "{path} line {line}: metric {metric} of this scenario, variant and seed is there twice: give each run its own seed"
    )]
    Twice {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// The metric, cut.
        metric: String,
    },
    /// The file is no CSV.
    #[error(
        "{path} is not readable as CSV ({why}): separate by commas, quote by double quotes, write UTF-8"
    )]
    NoCsv {
        /// The file.
        path: PathBuf,
        /// The reader's reason.
        why: String,
    },
}

/// Makes a campaign of imported records, so that `compare` finds their variants by name; the first variant is the
/// baseline. The records are told which campaign they belong to and become sampling units of their own, numbered within
/// cell and variant. `generation` is one more than that of the last campaign of this name in the store, 1 for the first.
pub fn note(name: &str, generation: u32, records: &mut [Record]) -> CampaignNote {
    let mut note = CampaignNote {
        name: name.to_owned(),
        generation,
        fresh: true,
        started: records
            .iter()
            .map(|record| record.wall.started)
            .min()
            .unwrap_or_default(),
        arena: ArenaKind::Host,
        ..CampaignNote::default()
    };
    let id = note.id();
    let mut cells: Vec<String> = Vec::new();
    let mut units: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    for record in records {
        let subject = &record.subject;
        let name = &subject.variant.name;
        let variant = position(&mut note.variants, name);
        let cell = position(&mut cells, &subject.cell());
        if cell == note.cells.len() {
            note.cells.push(CellNote {
                label: subject.cell_label(),
                ..CellNote::default()
            });
        }
        let unit = units.entry((cell, variant)).or_default();
        note.entries.push(Entry {
            key: subject.key(),
            cell,
            variant,
            unit: *unit,
            repetition: 0,
        });
        record.wall.unit = *unit;
        record.wall.campaign.clone_from(&id);
        *unit = unit.saturating_add(1);
    }
    note
}

/// Place of a text in a list, to which it is added where it is new.
fn position(list: &mut Vec<String>, text: &str) -> usize {
    list.iter()
        .position(|known| known == text)
        .unwrap_or_else(|| {
            list.push(text.to_owned());
            list.len() - 1
        })
}

/// A record of an imported trial, without results yet.
fn record(source: &str, scenario: &str, mut variant: Variant, seed: u64) -> Record {
    // Names are not part of a trial's identity, and nothing else may tell two imported kernels apart.
    variant.kernel.digest = format!("imported as {}", variant.name);
    Record {
        subject: Subject {
            scenario: scenario.to_owned(),
            seed,
            variant,
            arena: ArenaSpec {
                kind: ArenaKind::Host,
                machine: format!("imported from {source}"),
                ..ArenaSpec::default()
            },
            // Nothing is known of either; zero and none say so.
            memory: MemorySpec::Total(pagetide_quantity::Bytes(0)),
            swap: SwapSpec::None,
            ..Subject::default()
        },
        maker: Maker {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: String::new(),
        },
        ..Record::default()
    }
}
