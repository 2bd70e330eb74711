//! Warning about trials of the running kernel that may have been influenced by other processes of the machine.

use pagetide_record::{ArenaKind, Warning};
use pagetide_store::Store;

use crate::comparison::Caution;
use crate::error::CompareError;
use crate::input::Input;

/// Counts the doubtful trials among the valid trials of the arena host. `None` if there are none.
pub(crate) fn caution(store: &Store, input: &Input) -> Result<Option<Caution>, CompareError> {
    let rows = input.columns.iter().flat_map(|column| &column.trials);
    let of_host = rows
        .map(|trial| &trial.row)
        .filter(|row| row.cell.subject.arena.kind == ArenaKind::Host && row.is_valid());
    let (mut trials, mut doubtful, mut in_counts) = (0, 0, 0);
    let mut example = None;
    for row in of_host {
        trials += 1;
        // Only the record itself says what its warnings are.
        if row.warnings == 0 {
            continue;
        }
        let reader = store.load(&row.id)?;
        let doubts = reader.record().results.warnings.iter();
        let doubts = doubts.filter_map(|warning| match warning {
            Warning::Doubtful { why, of_times } => Some((why, *of_times)),
            _ => None,
        });
        let (mut any, mut counts) = (false, false);
        for (why, of_times) in doubts {
            any = true;
            counts |= !of_times;
            example.get_or_insert_with(|| why.clone());
        }
        doubtful += usize::from(any);
        in_counts += usize::from(counts);
    }
    Ok(example.map(|example| Caution::Doubtful {
        trials,
        doubtful,
        in_counts,
        example,
    }))
}
