//! The atlas: the faults of each variant on each workload, beside the fewest possible, as a table with bars.

use std::collections::BTreeMap;

use pagetide_quantity::command::in_backticks;
use pagetide_record::Pass;
use pagetide_store::{Filter, Store, StoreError};
use serde::Serialize;

use crate::draw::picture::bar;
use crate::draw::quantity::{count, grouped};
use crate::draw::{Align, Cell, Grid, Ink, TextStyle, clean};

/// Width of a bar in columns.
const BAR: usize = 24;

/// Faults of one variant on one workload, summed over trials.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WorkloadResult {
    /// Label of the cell: the workload with its parameters, memory and swap.
    pub workload: String,
    /// Name of the variant.
    pub variant: String,
    /// Kernel release of the variant's newest record.
    pub kernel: String,
    /// Number of trials.
    pub trials: u64,
    /// Faults of the trials, major and minor: references that did not find their page in memory.
    pub faults: f64,
    /// Faults of the optimal policy (OPT) with the same references.
    pub opt: f64,
    /// Faults of LRU with the same references.
    pub lru: f64,
    /// Faults of the model of the kernel's policy; 0 if there is no model.
    pub model: f64,
}

impl WorkloadResult {
    /// Creates a result without trials.
    pub fn new(workload: String, variant: String, kernel: String) -> Self {
        Self {
            workload,
            variant,
            kernel,
            ..Self::default()
        }
    }

    /// Adds the faults of one trial. `model` is `None` if there is no model of the kernel's policy.
    pub fn add(&mut self, faults: f64, opt: f64, lru: f64, model: Option<f64>) {
        self.trials += 1;
        self.faults += faults;
        self.opt += opt;
        self.lru += lru;
        self.model += model.unwrap_or(0.0);
    }

    /// Returns the faults of the trials divided by those of OPT; `None` if OPT has no faults.
    pub fn headroom(&self) -> Option<f64> {
        (self.opt > 0.0).then(|| self.faults / self.opt)
    }
}

/// Returns the results from all valid timed records with known references, summed by workload, memory and variant. If
/// `scenario` is given, only its records count.
pub fn places_of(store: &Store, scenario: Option<&str>) -> Result<Vec<WorkloadResult>, StoreError> {
    let filter = Filter {
        scenario: scenario.map(str::to_owned),
        ..Filter::default()
    };
    let mut map: BTreeMap<(String, u64, String), WorkloadResult> = BTreeMap::new();
    for row in store.select(&filter)? {
        let subject = row.subject();
        if !row.is_valid() || subject.pass != Pass::Timed {
            continue;
        }
        let metrics = store.metrics(&subject.scenario, &[row.row])?;
        let value = |name: &str| {
            let found = metrics.iter().find(|(_, metric)| metric.name == name);
            found.and_then(|(_, metric)| metric.value.number())
        };
        let (Some(faults), Some(opt), Some(lru)) =
            (value("faults"), value("opt-faults"), value("lru-faults"))
        else {
            continue;
        };
        let (workload, variant) = (subject.cell_label(), &subject.variant);
        let memory = subject.room().0;
        let place = map
            .entry((workload.clone(), memory, variant.name.clone()))
            .or_insert_with(|| {
                WorkloadResult::new(
                    workload,
                    variant.name.clone(),
                    variant.kernel.release.clone(),
                )
            });
        place.add(faults, opt, lru, value("model-faults"));
    }
    Ok(map.into_values().collect())
}

/// Returns the message for a list without results.
pub fn nothing() -> String {
    format!(
        "no record has known references and counted faults: {} makes some",
        in_backticks("run smooth-sin-random")
    )
}

/// Renders all results as means per trial. Each has a bar, relative to the largest number of faults on the workload.
/// The bar's first part is the faults of OPT, the second part is the additional faults.
pub fn draw(places: &[WorkloadResult], text_style: &TextStyle) -> String {
    if places.is_empty() {
        return format!("{}\n", nothing());
    }
    let mut grid = Grid::new(Align::names_and_numbers(5).chain([Align::Left]));
    let heads = [
        "",
        "trials",
        "faults",
        "OPT",
        "LRU",
        "headroom",
        "faults, of them unavoidable",
    ];
    grid.row(heads.map(|head| Cell::new(Ink::Strong, head)));
    let mut before = "";
    for place in places {
        if place.workload != before {
            before = &place.workload;
            grid.gap();
            let mut cells = vec![Cell::new(Ink::Strong, clean(before, 60, text_style.ascii))];
            cells.resize_with(heads.len(), Cell::empty);
            grid.row(cells);
        }
        let same = places
            .iter()
            .filter(|other| other.workload == place.workload);
        let most = same.map(|other| other.faults.max(other.lru) / other.trials as f64);
        let most = most.fold(1.0, f64::max);
        let trials = place.trials as f64;
        let length = |faults: f64| ((faults / trials / most) * BAR as f64).round();
        let unavoidable = bar(length(place.opt) / BAR as f64, BAR, text_style);
        let lost = (length(place.faults) - length(place.opt)).max(0.0) / BAR as f64;
        let lost = if text_style.ascii { "." } else { "░" }.repeat(steps(lost));
        let mean = |faults: f64| grouped(faults / trials, 0);
        grid.row([
            Cell::plain(format!("  {}", clean(&place.variant, 40, text_style.ascii))),
            Cell::plain(count(place.trials)),
            Cell::plain(mean(place.faults)),
            Cell::plain(mean(place.opt)),
            Cell::plain(mean(place.lru)),
            Cell::plain(
                place
                    .headroom()
                    .map_or_else(|| "–".to_owned(), |times| grouped(times, 2)),
            ),
            Cell::plain(unavoidable + &lost),
        ]);
    }
    grid.draw(text_style, 0)
}

/// Returns the length of a bar in columns for a share from 0 to 1.
fn steps(share: f64) -> usize {
    (0..BAR)
        .filter(|step| (*step as f64 + 0.5) / (BAR as f64) < share)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_twice_from_the_best_shows_as_much_lost_as_unavoidable() {
        let mut place = WorkloadResult::new("loop · 16M".into(), "mglru-on".into(), "6.12".into());
        place.add(2000.0, 1000.0, 2000.0, None);
        place.add(2200.0, 1100.0, 2200.0, None);
        assert_eq!(place.headroom(), Some(2.0));
        assert_eq!(WorkloadResult::default().headroom(), None);
        let text_style = TextStyle::of(|_| None, Some(100), true);
        let text = draw(&[place], &text_style);
        assert!(text.contains("2.00"), "{text}");
        assert!(text.contains("############............"), "{text}");
    }
}
