//! Runs the trials of a campaign that have no record, in this process or on a cluster.

use std::ops::Range;
use std::sync::Arc;

use super::error::RunError;
use super::pool;
use super::prepared::{Job, ready};
use super::state::{AT_ONCE, Run, next_of};
use crate::batch;
use crate::event::Event;
use crate::plan::PlannedTrial;
use crate::shard::Line;

/// Maximum number of trials in one job of a cluster, about. Jobs run one after another, but the tasks within a job do
/// not wait for each other.
const AT_ONCE_ELSEWHERE: usize = 65_536;

/// Runs the trials of some blocks that have no record. Returns false if stopped.
pub(crate) fn blocks(run: &mut Run<'_>, blocks: Range<u32>) -> Result<bool, RunError> {
    let (campaign, cells) = (run.campaign, Arc::clone(&run.cells));
    match run.options.shard {
        None => trials(run, || campaign.trials(&cells, blocks.clone())),
        Some(shard) => {
            let line = Line::new(campaign, &cells, shard);
            trials(run, || {
                let trials = campaign.trials(&cells, blocks.clone());
                trials.filter(|trial| line.has(trial))
            })
        }
    }
}

/// Runs those trials returned by `of` that have no record. `of` is called several times and must return the same trials
/// each time. Returns false if stopped.
pub(crate) fn trials<I: Iterator<Item = PlannedTrial>>(
    run: &mut Run<'_>,
    of: impl Fn() -> I,
) -> Result<bool, RunError> {
    if let Some(elsewhere) = run.options.elsewhere
        && !batch::settle(run, elsewhere)?
    {
        return Ok(false);
    }
    let found = run.look(of())?;
    run.store.note(&run.note)?;
    run.ledger.tally.total += found.len();
    run.ledger.tally.found += found.iter().filter(|found| **found).count();
    let todo = of().zip(found);
    let mut todo = todo
        .filter_map(|(trial, found)| (!found).then_some(trial))
        .peekable();
    let mut is_first = true;
    if todo.peek().is_some() && is_futile(run) {
        return Ok(false);
    }
    loop {
        let most = run.options.elsewhere.map_or(AT_ONCE, |_| AT_ONCE_ELSEWHERE);
        let next = next_of(&mut todo, most)
            .into_iter()
            .map(|planned| ready(run.arena, planned, &mut run.tried))
            .collect::<Result<Vec<_>, _>>()?;
        if !execute(run, &next, std::mem::take(&mut is_first))? {
            is_futile(run);
            return Ok(false);
        }
        if todo.peek().is_none() {
            return Ok(true);
        }
    }
}

/// True if the campaign ends now because it cannot give results; if so, reports that as an event.
fn is_futile(run: &Run<'_>) -> bool {
    let futile = run.ledger.futility.verdict();
    if let Some(futile) = &futile {
        run.watch.event(&Event::Futile(futile));
    }
    futile.is_some()
}

/// Runs prepared trials. If `is_news`, first reports how many trials will run. Returns false if stopped.
fn execute(run: &mut Run<'_>, todo: &[Job], is_news: bool) -> Result<bool, RunError> {
    match run.options.elsewhere {
        Some(elsewhere) if !todo.is_empty() => batch::execute(run, elsewhere, todo, is_news),
        _ => pool::execute(run, todo, is_news),
    }
}
