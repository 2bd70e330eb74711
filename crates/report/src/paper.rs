//! The tables of the five papers, each in its original layout, for the scenarios that come from them (`--as paper`).
//!
//! A *paper* is one of the historical systems whose workloads pagetide repeats.
//!
//! The tables show the same values as the originals, in the same order and units: means and deviations, whole percents,
//! seconds; no intervals and no verdicts. The published values are shown next to them, or a blank if none is available.
//! If a record has no value, the cell states the reason in one word, never zero.

pub mod contswap;
mod extras;
pub mod filecopy;
mod from_store;
pub mod graphs;
pub mod highalloc;
mod kind;
mod layout;
pub mod swapbench;
mod view;
pub mod vmregress;

use pagetide_compare::Comparison;

pub use extras::{CpuTime, Extras, ProcessTimes};
pub(crate) use from_store::of_store;
pub use from_store::{ExtrasError, cpu_time};
pub use kind::{NoPaper, Paper, check};
pub(crate) use layout::{PUBLISHED, clock, head, lay, row, seconds};
pub(crate) use view::View;

use crate::about;

/// Writes every cell in the layout of the paper that its scenario comes from; returns an error if a scenario comes from
/// none.
pub fn paper(comparison: &Comparison, extras: &Extras) -> Result<String, NoPaper> {
    let recorded = comparison
        .cells
        .iter()
        .filter_map(|cell| cell.subject.as_ref());
    check(recorded.map(|subject| &subject.scenario))?;
    let mut parts = Vec::new();
    let mut tests = vmregress::four_tests(comparison);
    for (place, cell) in comparison.cells.iter().enumerate() {
        let view = View {
            comparison,
            cell,
            place,
            extras,
        };
        let table = match Paper::of(&about::subject(cell).scenario) {
            Some(Paper::Contswap) => contswap::table(&view),
            Some(Paper::Swapbench) => swapbench::table(&view),
            Some(Paper::Filecopy) => filecopy::table(&view),
            Some(Paper::Highalloc) => highalloc::table(&view),
            Some(Paper::VmRegress) => {
                parts.extend(tests.take());
                vmregress::table(&view)
            }
            None => format!("{}: there is no record yet\n", view.label()),
        };
        parts.push(table);
    }
    parts.extend(extras.report.clone());
    Ok(parts.join("\n"))
}
