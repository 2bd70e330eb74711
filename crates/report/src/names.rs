//! Short names for cells in one table: common parts are stated once; parts that distinguish cells are never cut.

use pagetide_compare::Comparison;

/// Separator between the parts of a cell's label.
const JOINT: &str = " · ";
/// Maximum number of scenarios whose common parameters are stated next to a picture. With more scenarios, these
/// parameters are left out.
const FEW: usize = 3;

/// Names of the cells of a comparison.
pub(crate) struct Names {
    short: Vec<String>,
    /// Sentences that state the parts left out of the short names, except the parameters of more than [`FEW`]
    /// scenarios.
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
        // Scenarios with the parameters that are equal in all their cells; these are left out of the names.
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

    /// Returns the short name of the cell with index `place`; empty if the comparison has only one cell.
    pub(crate) fn cell(&self, place: usize) -> &str {
        self.short.get(place).map_or("", String::as_str)
    }

    /// Returns the suffix that names the cell after a metric's name, such as ` of swapbench · zram`; empty if the
    /// comparison has only one cell.
    pub(crate) fn behind(&self, place: usize) -> String {
        match self.cell(place) {
            "" => String::new(),
            name => format!(" of {name}"),
        }
    }
}

/// Splits the first part of a label into scenario and parameters.
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
        // Parts that all cells have in common are not repeated.
        let names = Names::of_many(&["loop pages=8M · zram", "loop pages=8M · ssd:80us"]);
        assert_eq!(names.short, ["zram", "ssd:80us"]);
        assert_eq!(names.shared, "All cells: loop pages=8M. ");
        // If names are completely equal, nothing would remain, so they are kept whole.
        let names = Names::of_many(&["loop · 16M", "loop · 16M"]);
        assert_eq!(names.short, ["loop · 16M", "loop · 16M"]);
    }
}
