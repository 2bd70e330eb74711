//! Access to one cell of a comparison for the papers' tables.

use pagetide_compare::{Cell, Comparison};

use super::extras::Extras;
use crate::about::{self, Centre};
use crate::draw::clean;

/// Maximum length of a title, in columns.
pub(super) const TITLE_CHARS: usize = 96;

/// One cell of a comparison, with the data for its table.
pub(crate) struct View<'a> {
    /// The whole comparison.
    pub comparison: &'a Comparison,
    /// The cell of the table.
    pub cell: &'a Cell,
    /// Index of the cell.
    pub place: usize,
    /// Additional data other than metrics.
    pub extras: &'a Extras,
}

impl View<'_> {
    /// Returns the label of the cell, cut to [`TITLE_CHARS`].
    pub fn label(&self) -> String {
        clean(&self.cell.label, TITLE_CHARS, true)
    }

    /// Returns the indices of the columns.
    pub fn columns(&self) -> std::ops::Range<usize> {
        0..self.comparison.columns.len()
    }

    /// Returns the names of the columns, each cut to [`HEAD_CHARS`].
    pub fn heads(&self) -> Vec<String> {
        self.comparison
            .columns
            .iter()
            .map(|column| clean(&column.name, HEAD_CHARS, true))
            .collect()
    }

    /// True if any column has values of a metric.
    pub fn has(&self, metric: &str) -> bool {
        self.columns()
            .any(|column| self.centre(metric, column).is_some())
    }

    /// Returns a summary of a metric's values in a column; `None` if the column has no values.
    pub fn centre(&self, metric: &str, column: usize) -> Option<Centre> {
        let row = self.cell.metrics.iter().find(|row| row.name == metric)?;
        row.values.get(column).and_then(about::centre)
    }

    /// Returns the mean of a metric in a column; `None` if the column has no values.
    pub fn mean(&self, metric: &str, column: usize) -> Option<f64> {
        self.centre(metric, column).map(|centre| centre.mean)
    }

    /// Returns the means of a metric by column, formatted by `show`. A column without values gets the reason in one
    /// word.
    pub fn shown(&self, metric: &str, show: impl Fn(f64) -> String) -> Vec<String> {
        self.columns()
            .map(|column| match self.mean(metric, column) {
                Some(mean) => show(mean),
                None => self.why(metric, column).to_owned(),
            })
            .collect()
    }

    /// Returns the number of valid trials of a column.
    pub fn trials(&self, column: usize) -> usize {
        self.cell
            .sides
            .get(column)
            .map_or(0, |side| side.trials.len())
    }

    /// Returns the reason in one word why a column has no value of a metric.
    pub fn why(&self, metric: &str, column: usize) -> &'static str {
        let side = self.cell.sides.get(column);
        if side.is_some_and(|side| side.trials.is_empty() && !side.invalid.is_empty()) {
            return "invalid";
        }
        let row = self.cell.metrics.iter().find(|row| row.name == metric);
        let told = row
            .and_then(|row| row.values.get(column))
            .and_then(|values| values.absent.as_deref());
        match told {
            Some(told) => word(told),
            None if side.is_none_or(|side| side.trials.is_empty()) => "unrun",
            None => "unmeasured",
        }
    }
}

/// Returns the word that stands for a scenario's reason why a metric has no value; `absent` for an unknown reason.
fn word(reason: &str) -> &'static str {
    const WORDS: [(&str, &str); 6] = [
        ("not on this kernel", "unsupported"),
        ("was swapped", "unswapped"),
        ("CAP_SYS_ADMIN", "hidden"),
        ("there was no", "none"),
        ("nothing is in zram", "unswapped"),
        ("not measured", "unmeasured"),
    ];
    let found = WORDS.iter().find(|(part, _)| reason.contains(part));
    found.map_or("absent", |(_, word)| word)
}

/// Maximum length of a column's name, in terminal columns.
pub(super) const HEAD_CHARS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_becomes_one_word() {
        assert_eq!(word("nothing of the mapping was swapped"), "unswapped");
        assert_eq!(word("not on this kernel"), "unsupported");
        assert_eq!(word("there was no failure"), "none");
        assert_eq!(word("something else"), "absent");
    }
}
