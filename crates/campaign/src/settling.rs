//! Runs all trials of one cell before those of the next ("settling"), so that the first results are reported while
//! other trials still run.
//!
//! First, all cells run their first blocks. Then the cell with the largest effect runs its trials with all remaining
//! seeds, then the cell with the second largest effect, and so on. The number of trials does not change. In an arena
//! without noise the results do not change either.

use pagetide_arena::Arena;
use pagetide_compare::{Comparison, compare_note};
use pagetide_store::{CampaignNote, Store};
use pagetide_verdict::Judgement;
use pagetide_verdict::judgement::EffectKind;

use crate::campaign::{Campaign, Until};
use crate::run::Job;

/// Number of blocks at the start in which all cells run in the planned order. Their results determine which cell is
/// settled first, and show whether the campaign can give results at all.
const FIRST_BLOCKS: u32 = 2;

/// Maximum number of cells of a campaign that are settled one after another. The records of all cells are compared
/// for each cell, and a message is shown for each.
const MAX_CELLS: usize = 64;

/// True if cells are settled, that is, if all trials of one cell run before those of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settling(bool);

impl Settling {
    /// Decides whether to settle cells one after another. This needs several cells, but at most [`MAX_CELLS`], and
    /// variants to compare. The number of trials must not depend on results, and the order of trials must have no
    /// effect.
    pub fn of(campaign: &Campaign, arena: &dyn Arena, cells: usize) -> Self {
        let is_fixed = !matches!(campaign.sampling.until, Until::Sure { .. });
        let is_few = (2..=MAX_CELLS).contains(&cells);
        Self(is_few && campaign.variants.len() > 1 && is_fixed && !arena.has_noise())
    }

    /// Moves the sampling units of the first blocks to the front. Returns all units, and how many of them belong to
    /// these blocks. If cells are not settled one after another, that is the number of all units.
    pub fn arranged(self, units: Vec<&[Job]>) -> (Vec<&[Job]>, usize) {
        if !self.0 {
            let count = units.len();
            return (units, count);
        }
        let is_first = |unit: &&[Job]| {
            unit.first()
                .is_none_or(|job| job.planned.block < FIRST_BLOCKS)
        };
        let (mut all, later): (Vec<_>, Vec<_>) = units.into_iter().partition(is_first);
        let count = all.len();
        all.extend(later);
        (all, count)
    }

    /// Returns the indices of the units from index `first` on, grouped by cell. The cell with the largest effect comes
    /// first.
    pub fn order(store: &Store, note: &CampaignNote, units: &[&[Job]], first: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (first..units.len()).collect();
        if order.is_empty() {
            return order;
        }
        // If the records cannot be compared now, the error is reported at the end.
        let comparison = compare_note(store, note).ok();
        let sizes: Vec<f64> = comparison.as_ref().map_or_else(Vec::new, sizes);
        let cell = |unit: &usize| units[*unit].first().map_or(0, |job| job.planned.cell);
        let size = |cell: usize| sizes.get(cell).copied().unwrap_or(0.0);
        order.sort_by(|a, b| {
            let (a, b) = (cell(a), cell(b));
            size(b).total_cmp(&size(a)).then(a.cmp(&b))
        });
        order
    }

    /// Returns a sentence on the primary metrics of a cell, for each variant. `None` if cells are not settled one after
    /// another, or if the records cannot be compared.
    pub fn verdicts(self, store: &Store, note: &CampaignNote, cell: usize) -> Option<String> {
        if !self.0 {
            return None;
        }
        let comparison = compare_note(store, note).ok()?;
        Some(sentence(&comparison, cell))
    }
}

/// Returns the largest effect on a primary metric in each cell, as the absolute logarithm of a ratio.
fn sizes(comparison: &Comparison) -> Vec<f64> {
    let of_cell = |cell: &pagetide_compare::Cell| {
        let primary = cell.metrics.iter().filter(|row| row.primary);
        let judged = primary.flat_map(|row| row.judgements.iter().flatten());
        let ratios = judged.filter_map(|judgement| judgement.effect);
        ratios
            .filter(|effect| effect.kind == EffectKind::Ratio)
            .map(|effect| effect.estimate.ln().abs())
            .filter(|size| size.is_finite())
            .fold(0.0, f64::max)
    };
    comparison.cells.iter().map(of_cell).collect()
}

fn sentence(comparison: &Comparison, cell: usize) -> String {
    let mut parts = Vec::new();
    for (column, name) in comparison.columns.iter().enumerate().skip(1) {
        let deaths = comparison.deaths(cell, column);
        if let Some(deaths) = deaths.filter(|deaths| deaths.verdict.is_difference()) {
            parts.push(format!("{} deaths {}", name.name, deaths.verdict));
        }
        let rows = comparison
            .cells
            .get(cell)
            .map_or(&[][..], |cell| &cell.metrics);
        for row in rows.iter().filter(|row| row.primary) {
            let judgement = row.judgements.get(column - 1).and_then(Option::as_ref);
            if let Some(judgement) = judgement.filter(|judgement| judgement.verdict.is_difference())
            {
                let change = change(judgement);
                parts.push(format!(
                    "{} {} {}{change}",
                    name.name, row.name, judgement.verdict
                ));
            }
        }
    }
    if parts.is_empty() {
        "no primary metric surely differs".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Returns the change in percent, in brackets. Empty if the effect is not a ratio.
fn change(judgement: &Judgement) -> String {
    let effect = judgement
        .effect
        .filter(|effect| effect.kind == EffectKind::Ratio);
    effect.map_or_else(String::new, |effect| {
        format!(" ({:+.1} %)", (effect.estimate - 1.0) * 100.0)
    })
}
