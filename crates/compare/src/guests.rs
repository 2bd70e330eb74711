//! Warnings about one comparison's records that come from several guest programs, or from several kernels under one
//! name. In the exact arena, a different guest program changes the course of a trial.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_store::{Row, Store, short};

use crate::comparison::Caution;
use crate::divergence::largest_change;
use crate::error::CompareError;
use crate::input::{Input, InputColumn};

/// Maximum number of trials that are compared between two guest programs.
const MAX_TRIALS: usize = 20;

/// Returns warnings about the guest programs and kernels that made the records.
pub(crate) fn cautions(store: &Store, input: &Input) -> Result<Vec<Caution>, CompareError> {
    let mut cautions = Vec::new();
    let rows = || input.columns.iter().flat_map(|column| &column.trials);
    let guests: BTreeSet<&str> = rows().map(|trial| &*trial.row.guest).collect();
    if guests.len() > 1 {
        cautions.push(other_guest(store, input, &guests)?);
    }
    for column in &input.columns {
        let kernels = tally(column, |row| &row.variant.kernel.digest);
        if kernels.len() > 1 {
            cautions.push(Caution::OtherKernel {
                column: column.name.clone(),
                kernels: counted(&kernels),
            });
        }
    }
    Ok(cautions)
}

/// Returns the number of trials of a column for each digest; `digest` returns the digest of one trial.
fn tally(column: &InputColumn, digest: impl Fn(&Row) -> &str) -> BTreeMap<&str, usize> {
    let mut all = BTreeMap::new();
    for trial in &column.trials {
        *all.entry(digest(&trial.row)).or_default() += 1;
    }
    all
}

/// Formats each digest with its number of trials: `a84f1943ebd8 (8 trials)`.
fn counted(all: &BTreeMap<&str, usize>) -> Vec<String> {
    let told = |(digest, trials): (&&str, &usize)| {
        let word = if *trials == 1 { "trial" } else { "trials" };
        format!("{} ({trials} {word})", named(digest))
    };
    all.iter().map(told).collect()
}

fn named(digest: &str) -> &str {
    match short(digest) {
        "" => "not recorded",
        known => known,
    }
}

fn other_guest(
    store: &Store,
    input: &Input,
    guests: &BTreeSet<&str>,
) -> Result<Caution, CompareError> {
    let sides = input
        .columns
        .iter()
        .map(|column| {
            let of_column = tally(column, |row| &row.guest);
            format!("{} by {}", column.name, counted(&of_column).join(" and "))
        })
        .collect();
    let valid: Vec<&Row> = input
        .columns
        .iter()
        .flat_map(|column| &column.trials)
        .map(|trial| &trial.row)
        .filter(|row| row.is_valid())
        .collect();
    let mut largest = None;
    let mut trials = 0;
    for row in valid {
        let Some(other) = by_another(store, row, guests)? else {
            continue;
        };
        trials += 1;
        let [a, b] = [row, &other].map(|row| store.load(&row.id));
        if let Some(change) = largest_change(&a?.into_record(), &b?.into_record()) {
            largest = match largest {
                Some(known) if !change.is_beyond(&known) => Some(known),
                _ => Some(change),
            };
        }
        if trials == MAX_TRIALS {
            break;
        }
    }
    Ok(Caution::OtherGuest {
        builds: guests.len(),
        sides,
        trials,
        moved: largest,
    })
}

/// Returns a valid record of the same trial as `row`, made by another of the guest programs `guests`; `None` if the
/// store has none.
fn by_another(
    store: &Store,
    row: &Row,
    guests: &BTreeSet<&str>,
) -> Result<Option<Row>, CompareError> {
    let keys: Vec<String> = guests
        .iter()
        .filter(|guest| **guest != &*row.guest)
        .map(|guest| {
            let mut subject = row.subject();
            (*guest).clone_into(&mut subject.arena.guest);
            subject.key()
        })
        .collect();
    Ok(store.by_keys(&keys)?.into_iter().find(Row::is_valid))
}
