//! What cells are called where they stand side by side: what they share is said once, what tells them apart is never cut.

use pagetide_compare::Comparison;

/// The parts of cells' labels, as they are joined.
const JOINT: &str = " · ";
/// Scenarios whose parameters are said beside a picture; those of more stand with their cells.
const FEW: usize = 3;

/// Names of the cells of a comparison.
pub(crate) struct Names {
    short: Vec<String>,
    /// What stands in no short name, in sentences; empty where nothing was left out.
    pub shared: String,
}

impl Names {
    pub(crate) fn of(comparison: &Comparison) -> Self {
        let labels: Vec<&str> = comparison
            .cells
            .iter()
            .map(|cell| cell.label.as_str())
            .collect();
        let [only] = labels[..] else {
            return Self::of_many(&labels);
        };
        Self {
            short: vec![String::new()],
            shared: format!("{only}. "),
        }
    }

    fn of_many(labels: &[&str]) -> Self {
        let split: Vec<Vec<&str>> = labels
            .iter()
            .map(|label| label.split(JOINT).collect())
            .collect();
        let common: Vec<&str> = split.first().map_or_else(Vec::new, |first| {
            let all = |part: &&str| split.iter().all(|other| other.contains(part));
            first.iter().copied().filter(all).collect()
        });
        // A scenario with its parameters: what all its cells have the same of is no part of their names.
        let mut told: Vec<(&str, Option<&str>)> = Vec::new();
        let firsts = split.iter().filter_map(|parts| parts.first());
        for (name, params) in firsts
            .filter(|part| !common.contains(part))
            .map(|part| scenario(part))
        {
            match told.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) if *all != Some(params) => *all = None,
                Some(_) => {}
                None => told.push((name, Some(params))),
            }
        }
        told.retain(|(_, params)| params.is_some_and(|params| !params.is_empty()));
        let short: Vec<String> = split
            .iter()
            .map(|parts| {
                let own = parts.iter().filter(|part| !common.contains(part));
                let own: Vec<&str> = own
                    .map(|part| match scenario(part) {
                        (name, params) if told.contains(&(name, Some(params))) => name,
                        _ => part,
                    })
                    .collect();
                own.join(JOINT)
            })
            .collect();
        let mut once = short.clone();
        once.sort_unstable();
        once.dedup();
        if once.len() < short.len() || short.iter().any(String::is_empty) {
            return Self {
                short: labels.iter().map(|label| (*label).to_owned()).collect(),
                shared: String::new(),
            };
        }
        let mut shared = String::new();
        if !common.is_empty() {
            put!(shared, "All cells: {}. ", common.join(JOINT));
        }
        if told.len() <= FEW {
            for (name, params) in &told {
                put!(shared, "{name}: {}. ", params.unwrap_or_default());
            }
        }
        Self { short, shared }
    }

    /// The name of a cell among the others; empty where it is the only one.
    pub(crate) fn cell(&self, place: usize) -> &str {
        self.short.get(place).map_or("", String::as_str)
    }

    /// What says which cell a metric is of, behind its name; empty where there is only one cell.
    pub(crate) fn behind(&self, place: usize) -> String {
        match self.cell(place) {
            "" => String::new(),
            name => format!(" of {name}"),
        }
    }
}

/// The scenario and its parameters in the first part of a label.
fn scenario(part: &str) -> (&str, &str) {
    part.split_once(' ').unwrap_or((part, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cells_share_is_said_once_and_what_tells_them_apart_stays_whole() {
        let names = Names::of_many(&[
            "smooth-sin-random pages=2 * memory · 32M · zram",
            "swapbench locked=0.25 * memory processes=6 · 32M · zram",
            "swapbench locked=0.25 * memory processes=6 · 32M · ssd:80us",
        ]);
        assert_eq!(
            names.short,
            [
                "smooth-sin-random · zram",
                "swapbench · zram",
                "swapbench · ssd:80us"
            ]
        );
        assert_eq!(
            names.shared,
            "All cells: 32M. smooth-sin-random: pages=2 * memory. swapbench: locked=0.25 * memory processes=6. "
        );
    }

    #[test]
    fn parameters_that_differ_stay_in_the_names() {
        let names = Names::of_many(&["loop pages=8M · 16M · zram", "loop pages=9M · 16M · zram"]);
        assert_eq!(names.short, ["loop pages=8M", "loop pages=9M"]);
        // What all cells share is not said twice.
        let names = Names::of_many(&["loop pages=8M · zram", "loop pages=8M · ssd:80us"]);
        assert_eq!(names.short, ["zram", "ssd:80us"]);
        assert_eq!(names.shared, "All cells: loop pages=8M. ");
        // Nothing is left of names that are wholly the same: then they stay whole.
        let names = Names::of_many(&["loop · 16M", "loop · 16M"]);
        assert_eq!(names.short, ["loop · 16M", "loop · 16M"]);
    }
}
