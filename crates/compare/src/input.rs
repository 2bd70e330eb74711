//! Input of a comparison before anything is judged: the trials of each column, sorted into cells.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pagetide_record::{ArenaKind, Pass};
use pagetide_store::{CampaignNote, CellNote, Pairing, Row, Store, short};

use crate::comparison::Caution;
use crate::error::CompareError;
use crate::matching::{Cells, Matching};
use crate::notes::Intent;

/// A trial from the store's index, with its cell and sampling unit in the comparison.
#[derive(Clone, Debug)]
pub(crate) struct TrialRow {
    pub row: Row,
    pub cell: usize,
    pub unit: u32,
    pub repetition: u32,
}

/// Name and timed trials of one column, and the number of its planned trials of any pass without a record.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputColumn {
    pub name: String,
    pub trials: Vec<TrialRow>,
    pub pending: usize,
}

/// All input of a comparison: columns, cells, and what the user asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    pub campaign: Option<String>,
    /// Rule by which imported trials form pairs; `None` for other records.
    pub imported: Option<Pairing>,
    /// Why the first column is the baseline, if the import chose it; otherwise `None`.
    pub baseline: Option<String>,
    pub columns: Vec<InputColumn>,
    pub cells: Vec<CellNote>,
    /// Number of sampling units at each interim analysis of a sequential campaign; empty for a fixed number of trials.
    pub looks: Vec<u64>,
    /// Number of seeds (or sampling units) planned so far.
    pub planned: u64,
    pub cautions: Vec<Caution>,
    /// The intended difference between the columns.
    pub asked: Intent,
    /// Kinds of difference and names of settings that the user accepts.
    pub accepted: Vec<String>,
    /// True if the compared cells differ, which the user has allowed.
    pub anyway: bool,
}

/// Returns the rank of a record as a candidate for an entry of a campaign. Valid records come first, then records of
/// the entry's variant, then records of the campaign.
fn fitness(row: &Row, variant: &str, campaign: &str) -> (bool, bool, bool) {
    (
        row.is_valid(),
        row.variant.name == variant,
        *row.campaign == *campaign,
    )
}

/// Completes the label of each cell, which was made before its trials ran: names the swap that they had, and adds a
/// warning if they ran in real time without hardware virtualization.
fn marked(mut cells: Vec<CellNote>, columns: &[InputColumn]) -> Vec<CellNote> {
    for (at, cell) in cells.iter_mut().enumerate() {
        let trials = columns.iter().flat_map(|column| &column.trials);
        let own = trials.filter(|trial| trial.cell == at);
        if let Some(first) = own.clone().next() {
            cell.label = first.row.cell.subject.with_swap_label(&cell.label);
        }
        let mark = own.map(|trial| trial.row.cell.subject.arena.in_label());
        if let Some(mark) = mark.max() {
            cell.label.push_str(mark);
        }
    }
    cells
}

impl Input {
    /// Returns the trials of a campaign; no record is used for two entries. Records of other campaigns are used only in
    /// the exact arena, and not if `note.fresh` is set. `columns` lists the indices of the variants in the note, in the
    /// desired order; `None` selects all variants.
    pub fn of_campaign(
        store: &Store,
        note: &CampaignNote,
        columns: Option<&[usize]>,
    ) -> Result<Self, CompareError> {
        let mut keys: Vec<String> = note.entries.iter().map(|entry| entry.key.clone()).collect();
        keys.sort_unstable();
        keys.dedup();
        let id = note.id();
        let own = note.fresh || note.arena != ArenaKind::Exact;
        let mut cautions = Vec::new();
        let mut by_key: HashMap<String, Vec<Row>> = HashMap::new();
        for row in store.by_keys(&keys)? {
            if !own || *row.campaign == *id {
                by_key.entry(row.key.clone()).or_default().push(row);
            }
        }
        for key in &keys {
            if let Some(rows) = by_key.get(key) {
                cautions.extend(not_exact(rows));
            }
        }
        let mut all: Vec<InputColumn> = note
            .variants
            .iter()
            .map(|name| InputColumn {
                name: name.clone(),
                ..InputColumn::default()
            })
            .collect();
        for entry in &note.entries {
            let Some(column) = all.get_mut(entry.variant) else {
                continue;
            };
            let rows = by_key.get_mut(&entry.key);
            let best = rows.and_then(|rows| {
                // Rows are sorted newest first. `max_by_key` returns the last of equal rows, so the iteration is
                // reversed to get the newest.
                let best = (0..rows.len())
                    .rev()
                    .max_by_key(|&place| fitness(&rows[place], &column.name, &id))?;
                Some(rows.remove(best))
            });
            match best {
                // Observed and profiled trials are used only for explanations.
                Some(row) if row.cell.subject.pass != Pass::Timed => {}
                Some(row) => column.trials.push(TrialRow {
                    row,
                    cell: entry.cell,
                    unit: entry.unit,
                    repetition: entry.repetition,
                }),
                None => column.pending += 1,
            }
        }
        let baseline = note.imported.as_ref().filter(|_| columns.is_none());
        let baseline = baseline.map(|imported| imported.baseline.clone());
        let columns = match columns {
            None => all,
            Some(chosen) => chosen
                .iter()
                .filter_map(|&place| all.get(place).cloned())
                .collect(),
        };
        let planned = note
            .entries
            .iter()
            .map(|entry| u64::from(entry.unit) + 1)
            .max();
        Ok(Self {
            campaign: Some(id),
            imported: note.imported.clone(),
            baseline,
            cells: marked(note.cells.clone(), &columns),
            columns,
            looks: note.looks.clone(),
            planned: planned.unwrap_or(0),
            cautions,
            accepted: note.accept.clone(),
            ..Self::default()
        })
    }

    /// Returns the input for comparing two named sets of records in the cells that both have. Without a common cell,
    /// fails with the differences between the sides, unless `anyway` is true: then the most similar cells of each
    /// scenario are compared.
    pub fn of_rows(sides: [(String, Vec<Row>); 2], anyway: bool) -> Result<Self, CompareError> {
        let mut cautions = Vec::new();
        let [(name_a, a), (name_b, b)] = sides;
        for (name, rows) in [(&name_a, &a), (&name_b, &b)] {
            if rows.is_empty() {
                return Err(CompareError::NoRecords { what: name.clone() });
            }
        }
        let [a, b] = [a, b].map(|rows| by_cell(rows, &mut cautions));
        let matching = Matching::of(&a, &b);
        let differ = !matching.differences.is_empty();
        if differ && !anyway {
            return Err(CompareError::NotComparable {
                a: name_a,
                b: name_b,
                differences: matching.differences,
            });
        }
        if differ {
            cautions.push(Caution::NotComparable {
                a: name_a.clone(),
                b: name_b.clone(),
                differences: matching.differences,
            });
        }
        let pairs = matching.pairs;
        let (of_a, of_b): (BTreeSet<_>, BTreeSet<_>) = pairs.iter().copied().unzip();
        for (own, matched, column) in [(&a, of_a, &name_a), (&b, of_b, &name_b)] {
            for (hash, rows) in own {
                if !matched.contains(hash) {
                    cautions.push(Caution::OneSided {
                        column: column.clone(),
                        label: rows[0].cell.subject.cell_label(),
                    });
                }
            }
        }
        let column = |name: &str, cells: &Cells, hashes: Vec<&String>| InputColumn {
            name: name.to_owned(),
            trials: (0..)
                .zip(hashes)
                .flat_map(|(cell, hash)| {
                    cells[hash].iter().map(move |row| TrialRow {
                        row: row.clone(),
                        cell,
                        unit: row.unit,
                        repetition: row.repetition,
                    })
                })
                .collect(),
            pending: 0,
        };
        let columns = vec![
            column(&name_a, &a, pairs.iter().map(|(hash, _)| *hash).collect()),
            column(&name_b, &b, pairs.iter().map(|(_, hash)| *hash).collect()),
        ];
        let cells = pairs
            .iter()
            .map(|(hash, _)| CellNote {
                label: a[*hash][0].cell.subject.cell_label(),
                ..CellNote::default()
            })
            .collect();
        Ok(Self {
            columns,
            cells,
            cautions,
            anyway: differ,
            ..Self::default()
        })
    }
}

/// Groups rows by cell. In the exact arena only the newest valid record of each seed is kept, or the newest invalid one
/// if none is valid. In noisy arenas all records are kept.
fn by_cell(rows: Vec<Row>, cautions: &mut Vec<Caution>) -> Cells {
    let mut cells = Cells::new();
    for row in rows {
        cells.entry(row.cell.hash.clone()).or_default().push(row);
    }
    for rows in cells.values_mut() {
        if rows[0].cell.subject.arena.kind != ArenaKind::Exact {
            continue;
        }
        let mut seeds: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
        for row in rows.drain(..) {
            seeds.entry(row.seed).or_default().push(row);
        }
        for of_seed in seeds.values_mut() {
            of_seed.sort_by_key(|row| (!row.is_valid(), std::cmp::Reverse(row.started)));
            let newest = of_seed[0].key.clone();
            let same: Vec<Row> = of_seed
                .iter()
                .filter(|row| row.key == newest)
                .cloned()
                .collect();
            cautions.extend(not_exact(&same));
            of_seed.truncate(1);
        }
        rows.extend(seeds.into_values().flatten());
    }
    cells
}

/// Returns a warning if valid records of the same exact trial have different results; otherwise `None`.
fn not_exact(rows: &[Row]) -> Option<Caution> {
    let mut valid = rows
        .iter()
        .filter(|row| row.is_valid() && row.cell.subject.arena.kind == ArenaKind::Exact);
    let first = valid.next()?;
    let other = valid.find(|row| row.digest != first.digest)?;
    Some(Caution::NotExact {
        a: short(&first.id).to_owned(),
        b: short(&other.id).to_owned(),
    })
}
