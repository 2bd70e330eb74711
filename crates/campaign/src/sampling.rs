//! Sequential sampling: runs blocks up to an interim analysis ("look"), judges the results, and continues only while a
//! primary metric is undecided.
//!
//! Interim analyses and their error rates are planned before any value is seen, so the total error rate holds in spite
//! of several analyses. All cells continue together until every primary metric is decided: a cell that stopped early
//! would need its own error rate.

use pagetide_compare::{ALPHA, compare_note};
use pagetide_verdict::sequential::{Design, Plan};

use crate::event::Event;
use crate::run::{Run, RunError, blocks};

/// Returns the planned interim analyses that remain for a campaign that already has `before` blocks: those at `before`
/// blocks or more, or else one at `before` blocks.
fn looks_left(looks: Vec<u32>, before: u32) -> Vec<u32> {
    let mut later: Vec<u32> = looks.into_iter().filter(|look| *look >= before).collect();
    if later.is_empty() {
        later.push(before);
    }
    later
}

/// Runs trials until every primary metric is decided, or up to `cap` blocks. `given` has the interim analyses that the
/// user planned; if empty, those of the campaign's previous note remain, or new ones are planned. Returns false if
/// stopped.
pub(crate) fn until_sure(run: &mut Run<'_>, cap: u32, given: &[u32]) -> Result<bool, RunError> {
    let mut done = 0;
    let narrow = |looks: &[u64]| -> Vec<u32> {
        looks
            .iter()
            .filter_map(|look| u32::try_from(*look).ok())
            .collect()
    };
    let looks = if !given.is_empty() {
        given.to_vec()
    } else if !run.note.looks.is_empty() {
        narrow(&run.note.looks)
    } else {
        // The number of primary metrics is known once every cell has run. The values of this first block are not used.
        if !blocks(run, 0..1)? {
            return Ok(false);
        }
        done = 1;
        let primaries = compare_note(run.store, &run.note)?.deciding().count();
        let plan = Plan::until_sure(ALPHA, u64::from(cap), primaries, Design::Paired)
            .map_err(pagetide_compare::CompareError::from)?;
        looks_left(narrow(plan.looks()), run.before)
    };
    run.note.looks = looks.iter().copied().map(u64::from).collect();
    for (number, look) in looks.iter().copied().enumerate() {
        if done < look && !blocks(run, done..look)? {
            return Ok(false);
        }
        done = done.max(look);
        run.store.note(&run.note)?;
        let comparison = compare_note(run.store, &run.note)?;
        // If there are no primary metrics to judge, more trials do not help.
        let primaries = comparison.deciding().count();
        let decided = primaries - comparison.open();
        let next = (decided < primaries)
            .then(|| looks.get(number + 1).copied())
            .flatten();
        run.watch.event(&Event::Looked {
            blocks: look,
            decided,
            primaries,
            next,
        });
        if next.is_none() {
            break;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_begin_where_a_campaign_stands_already() {
        let planned = || vec![7, 13, 22, 40];
        assert_eq!(looks_left(planned(), 0), planned());
        assert_eq!(looks_left(planned(), 7), planned());
        assert_eq!(looks_left(planned(), 12), [13, 22, 40]);
        assert_eq!(looks_left(planned(), 50), [50]);
    }
}
