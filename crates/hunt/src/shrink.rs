//! Makes a candidate as simple as possible while its goal still holds, like a property test shrinks a failure.
//!
//! Simplifications are tried in the order of the space, the largest first. A simplification is accepted if the goal
//! still holds with most seeds, and on at least as many machines of neighbouring sizes as for the original candidate.
//! Shrinking ends when no simplification is accepted, or when the budget is used up.

use pagetide_campaign::RunError;

use crate::examine::{Meter, Question};
use crate::space::Space;

/// Seeds with which each simplification is tried. The goal must hold with the first, and with at least [`LEAST`] in all.
const SEEDS: [u64; 3] = [201, 202, 203];
/// Minimum number of [`SEEDS`] with which the goal must hold.
const LEAST: usize = 2;
/// Neighbouring sizes of the machine, in percent of its size.
pub const SIZES: [u64; 2] = [80, 120];
/// Fraction of the goal's limit at which the goal counts as holding on a neighbouring size. If the limit itself were
/// used, a case that is just above the limit could not be simplified.
const NEAR: f64 = 0.9;
/// Number of simplifications that are tried at the same time.
const BATCH: usize = 4;

/// Result of making a candidate simpler.
#[derive(Clone, Debug)]
pub struct Shrunk<P> {
    /// The candidates from the first to the simplest. The goal held for each of them.
    pub chain: Vec<P>,
    /// True if no further simplification is possible; false if the budget ended before.
    pub is_smallest: bool,
}

/// Makes `point` simpler, step by step. Candidates in `tried` are left out, and those that are tried are added to it.
/// `say` receives a description of each simpler case. Returns `None` if stopped.
pub fn shrink<S: Space>(
    space: &S,
    point: S::Point,
    meter: &mut Meter<'_, S::Point>,
    tried: &mut Vec<S::Point>,
    say: &mut dyn FnMut(&Meter<'_, S::Point>, &str),
) -> Result<Option<Shrunk<S::Point>>, RunError> {
    if meter.is_over() {
        let (chain, is_smallest) = (vec![point], false);
        return Ok(Some(Shrunk { chain, is_smallest }));
    }
    let Some(sizes) = sizes_that_hold(space, &point, meter)? else {
        return Ok(None);
    };
    let mut chain = vec![point.clone()];
    let mut current = point;
    'simpler: loop {
        let mut all = space.simpler(&current);
        all.retain(|one| !tried.contains(one));
        for batch in all.chunks(BATCH) {
            if meter.is_over() {
                let is_smallest = false;
                return Ok(Some(Shrunk { chain, is_smallest }));
            }
            let first: Vec<_> = batch.iter().map(|one| asked(one, SEEDS[0])).collect();
            let Some(outcomes) = meter.ask(&first)? else {
                return Ok(None);
            };
            tried.extend(batch.iter().cloned());
            let survivors = batch.iter().zip(outcomes).filter(|(_, one)| one.holds);
            for (one, _) in survivors {
                let more: Vec<_> = SEEDS[1..].iter().map(|seed| asked(one, *seed)).collect();
                let Some(more) = meter.ask(&more)? else {
                    return Ok(None);
                };
                if 1 + more.iter().filter(|one| one.holds).count() < LEAST {
                    continue;
                }
                let Some(of_one) = sizes_that_hold(space, one, meter)? else {
                    return Ok(None);
                };
                if of_one < sizes {
                    continue;
                }
                current = one.clone();
                chain.push(current.clone());
                say(meter, &space.label(&current));
                continue 'simpler;
            }
        }
        return Ok(Some(Shrunk {
            chain,
            is_smallest: true,
        }));
    }
}

/// Returns the number of neighbouring sizes on which the goal's number reaches [`NEAR`] of its limit with the first
/// seed; `None` if stopped.
fn sizes_that_hold<S: Space>(
    space: &S,
    point: &S::Point,
    meter: &mut Meter<'_, S::Point>,
) -> Result<Option<usize>, RunError> {
    let resized = SIZES.iter().filter_map(|size| space.resized(point, *size));
    let asked: Vec<_> = resized.map(|one| asked(&one, SEEDS[0])).collect();
    let outcomes = meter.ask(&asked)?;
    Ok(outcomes.map(|all| all.iter().filter(|one| one.reach >= NEAR).count()))
}

fn asked<P: Clone>(point: &P, seed: u64) -> Question<P> {
    Question {
        point: point.clone(),
        seed,
    }
}
