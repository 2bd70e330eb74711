//! Table of a record: the number of pages in each tier of swap, and how long ago these pages were last used.

use pagetide_record::tier_pages::{AgeBin, TierPages};
use pagetide_record::{FileError, RecordReader, SwapSpec};

use crate::draw::quantity::{count, grouped};

/// Headings of the columns of a [`TierTable`].
pub const HEADS: [&str; 6] = ["tier", "pages", "share", "10 % used within", "50 %", "90 %"];

/// Explanation of the columns in [`HEADS`], for the user.
pub const LEGEND: &str = "Last columns: the number of references within which 10, 50 and 90 % of the tier's pages were last used. Swap is in \
     order if each tier's pages were used longer ago than those of the tier above.";

/// Number and age of the pages in each tier at one moment of a trial, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierTable {
    /// Name of the series from which the table is computed, such as `pages-2`.
    pub moment: String,
    /// One row for each tier, with the columns of [`HEADS`]. Memory is the first row, then the tiers of swap follow
    /// from highest to lowest priority, then pages whose tier is not known.
    pub rows: Vec<[String; 6]>,
    /// Tier number of each row, as in the series: 0 for memory, −1 if not known.
    pub tiers: Vec<i64>,
    /// Number of pages of each tier by age.
    pub ages: Vec<AgeBin>,
}

/// Reads from a record the tier table of each moment at which tiers were sampled. Empty if swap has fewer than two
/// tiers.
pub fn tables(reader: &RecordReader) -> Result<Vec<TierTable>, FileError> {
    let swap = reader.record().subject.swap;
    let mut tables = Vec::new();
    if swap.tiers().len() < 2 {
        return Ok(tables);
    }
    let names = reader.series_names();
    for name in names.filter(|name| name.starts_with("pages-")) {
        if let Some(pages) = TierPages::read(&reader.series(name)?) {
            tables.push(table(name.to_owned(), &pages, swap));
        }
    }
    Ok(tables)
}

fn table(moment: String, pages: &TierPages, swap: SwapSpec) -> TierTable {
    let rows = pages.rows();
    let all: u64 = rows.iter().map(|row| row.pages).sum();
    let tiers = swap.tiers();
    let name = |tier: i64| match usize::try_from(tier) {
        Ok(0) => "memory".to_owned(),
        Ok(tier) => {
            let known = tiers.get(tier - 1);
            known.map_or_else(|| format!("tier {tier}"), |known| known.name.clone())
        }
        Err(_) => "not known".to_owned(),
    };
    let numbers = rows.iter().map(|row| row.tier).collect();
    let rows = rows.iter().map(|row| {
        let share = 100.0 * row.pages as f64 / all.max(1) as f64;
        let [young, middle, old] = row.ages.map(count);
        let share = format!("{} %", grouped(share, 1));
        [name(row.tier), count(row.pages), share, young, middle, old]
    });
    TierTable {
        moment,
        rows: rows.collect(),
        tiers: numbers,
        ages: pages.by_age(),
    }
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::{Series, Unit};

    use super::*;

    #[test]
    fn tiers_have_their_names_and_shares() {
        let series = Series::new("pages-2")
            .int("tier", Unit::Count, [0, 1, 2, 2, -1])
            .int("age", Unit::Count, [1, 2000, 30, 40, 9])
            .int("uses", Unit::Count, [1; 5]);
        let swap = "zram:8M@100,ssd@10".parse().unwrap();
        let table = table(
            "pages-2".to_owned(),
            &TierPages::read(&series).unwrap(),
            swap,
        );
        let row = |texts: [&str; 6]| texts.map(str::to_owned);
        assert_eq!(
            table.rows,
            [
                row(["memory", "1", "20.0 %", "1", "1", "1"]),
                row(["zram:8M@100", "1", "20.0 %", "2,000", "2,000", "2,000"]),
                row(["ssd:80us@10", "2", "40.0 %", "30", "30", "40"]),
                row(["not known", "1", "20.0 %", "9", "9", "9"]),
            ]
        );
    }
}
