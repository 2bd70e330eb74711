//! Observes more seeds if the default number of observed seeds does not explain a difference.

use pagetide_compare::compare_note;
use pagetide_compare::explain::{Answer, Basis, explain};
use pagetide_record::Pass;

use crate::campaign::Observe;
use crate::event::Event;
use crate::run::{Run, RunError, trials as run_trials};

/// Maximum number of seeds to observe for an explanation.
pub const MAX_OBSERVED: u32 = 6;

/// Observes more seeds in the cells in which a time differs significantly, but the observed passes show no cause or the
/// opposite difference. Does nothing if the number of observed seeds is not the default. Returns false if the user
/// stops the run.
pub(crate) fn deepen(run: &mut Run<'_>) -> Result<bool, RunError> {
    let Observe::Seeds(observed) = run.campaign.observe else {
        return Ok(true);
    };
    // A campaign with sequential sampling may have ended before its cap.
    let entries = run.note.entries.iter();
    let blocks = entries.map(|entry| entry.unit + 1).max().unwrap_or(0);
    let most = MAX_OBSERVED.min(blocks);
    let compares = run.note.variants.len() > 1;
    if !compares || run.campaign.observe != Observe::FEW || observed >= most {
        return Ok(true);
    }
    let comparison = compare_note(run.store, &run.note)?;
    let open: Vec<(usize, usize)> = explain(run.store, &comparison)?
        .into_iter()
        .filter(|explained| {
            let explanation = &explained.explanation;
            matches!(explanation.answer, Answer::NotFound | Answer::Contrary)
                && matches!(explanation.basis, Basis::Traced { .. })
        })
        .map(|explained| (explained.cell, explained.column))
        .collect();
    if open.is_empty() {
        return Ok(true);
    }
    let mut trials = Vec::new();
    for block in observed..most {
        for cell in 0..run.cells.len() {
            let columns: Vec<usize> = open
                .iter()
                .filter(|(of, _)| *of == cell)
                .map(|(_, column)| *column)
                .collect();
            if columns.is_empty() {
                continue;
            }
            for variant in std::iter::once(0).chain(columns) {
                trials.push(run.campaign.planned(
                    &run.cells,
                    cell,
                    variant,
                    (block, 0),
                    Pass::Observed,
                ));
            }
        }
    }
    run.watch.event(&Event::Deepened {
        cells: open.len(),
        from: observed,
        to: most,
    });
    run_trials(run, || trials.iter().cloned())
}
