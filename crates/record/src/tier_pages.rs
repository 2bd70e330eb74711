//! Tier of swap and age of every page, and *inversion*: how many pages were read back from a lower tier although older
//! pages were kept in a higher tier.
//!
//! A scenario that records the state of every page at several moments adds the column [`COLUMN`] to its series
//! `pages-MOMENT` if swap has several tiers ([`crate::SwapSpec::tiers`]).

use std::collections::BTreeMap;

use pagetide_quantity::{ColumnData, Series};

/// Name of the column with each page's tier: 0 for a page in memory, n for the n-th tier of swap from the highest on,
/// −1 for a page that is neither in memory nor in swap, or whose tier is unknown.
pub const COLUMN: &str = "tier";

/// State of every page at one moment, in page order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierPages {
    /// Tier of each page, as in [`COLUMN`].
    tiers: Vec<i64>,
    /// Age of each page: number of references to any page since the last reference to this page. A page that was never
    /// referenced was last used when it was filled. Pages are filled in ascending order before the first reference, so
    /// its age is the number of all references plus the number of pages from this page to the last one.
    ages: Vec<u64>,
    /// Number of references to each page so far.
    uses: Vec<u64>,
}

/// Number and ages of the pages of one tier at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierRow {
    /// Number of the tier, as in [`COLUMN`].
    pub tier: i64,
    /// Number of pages in the tier.
    pub pages: u64,
    /// Ages of the pages in the tier at the 10th, 50th and 90th percentile (nearest rank), in references.
    pub ages: [u64; 3],
}

/// Number of pages of each tier among the pages of similar age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgeBin {
    /// Maximum age in this bin, in references: a power of two minus one. The minimum age in the bin is half of it,
    /// rounded up.
    pub most: u64,
    /// Number of pages by tier, for each tier that has pages of this age.
    pub pages: BTreeMap<i64, u64>,
}

/// Number of pages that were read back from a lower tier of swap, and how many of them are inverted.
///
/// Between two consecutive moments, a page is *read back from a lower tier* if it was in the second or a lower tier of
/// swap at the first moment and was referenced before the second moment. Such a page p of tier t is *inverted* if at
/// least a quarter of the pages H are older than p. H are the pages that were in a higher tier at the first moment:
///
/// ```text
/// inverted(p)  ⇔  |{ h ∈ H : age(h) > age(p) }| ≥ max(1, |H| / 4),   H = { h : 1 ≤ tier(h) < t }
/// inversion    =  inverted pages / pages read back from a lower tier
/// ```
///
/// So an inverted page is younger than the oldest quarter of the pages that were kept in higher tiers. If the order is
/// perfect, inversion is 0; if tiers do not depend on ages, it is three quarters. Memory does not count as a tier. All
/// ages are the ages at the first moment. A page that was read back several times between two moments counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inversion {
    /// Number of pages read back from a lower tier.
    pub read_back: u64,
    /// Number of pages read back from a lower tier that are inverted.
    pub inverted: u64,
}

impl Inversion {
    /// Returns the share of inverted pages among those read back from a lower tier; `None` if no page was read back.
    pub fn share(self) -> Option<f64> {
        (self.read_back > 0).then(|| self.inverted as f64 / self.read_back as f64)
    }

    /// Computes the numbers for all pairs of consecutive moments together.
    pub fn of(moments: &[TierPages]) -> Self {
        let mut sum = Self::default();
        for pair in moments.windows(2) {
            let pair = Self::between(&pair[0], &pair[1]);
            sum.read_back += pair.read_back;
            sum.inverted += pair.inverted;
        }
        sum
    }

    fn between(before: &TierPages, after: &TierPages) -> Self {
        let mut found = Self::default();
        let lowest = before.tiers.iter().copied().max().unwrap_or(0);
        // Ages of the pages in all tiers above the current one, in ascending order.
        let mut higher: Vec<u64> = Vec::new();
        for tier in 1..=lowest {
            let read_back = before
                .of_tier(tier)
                .filter(|page| after.uses.get(*page) > before.uses.get(*page));
            for age in read_back
                .filter_map(|page| before.ages.get(page))
                .filter(|_| tier > 1)
            {
                let older = higher.len() - higher.partition_point(|of_higher| of_higher <= age);
                found.read_back += 1;
                found.inverted += u64::from(older >= higher.len().div_ceil(4).max(1));
            }
            higher.extend(
                before
                    .of_tier(tier)
                    .filter_map(|page| before.ages.get(page)),
            );
            higher.sort_unstable();
        }
        found
    }
}

impl TierPages {
    /// Reads the state of every page from a series; `None` if the series has no tiers.
    pub fn read(series: &Series) -> Option<Self> {
        let numbers = |name: &str| match series.column(name) {
            Some(ColumnData::Int(numbers)) => Some(numbers),
            _ => None,
        };
        let amounts = |name: &str| -> Option<Vec<u64>> {
            let numbers = numbers(name)?.iter();
            Some(
                numbers
                    .map(|number| u64::try_from(*number).unwrap_or(0))
                    .collect(),
            )
        };
        let uses = amounts("uses")?;
        let mut ages = amounts("age")?;
        let filled = (1..=ages.len() as u64).rev();
        for ((age, uses), since) in ages.iter_mut().zip(&uses).zip(filled) {
            *age += if *uses == 0 { since } else { 0 };
        }
        Some(Self {
            tiers: numbers(COLUMN)?.clone(),
            ages,
            uses,
        })
    }

    /// Returns the indices of the pages in a tier, in ascending order.
    fn of_tier(&self, tier: i64) -> impl Iterator<Item = usize> {
        let pages = self.tiers.iter().enumerate();
        pages
            .filter(move |(_, of)| **of == tier)
            .map(|(page, _)| page)
    }

    /// Returns the number of pages of each tier by age, in ascending order of age, in bins as of [`AgeBin`]. The
    /// first and the last bin have pages; bins between them may be empty. Without pages there are no bins.
    pub fn by_age(&self) -> Vec<AgeBin> {
        let mut bins: Vec<AgeBin> = (0..=u64::BITS)
            .map(|bits| AgeBin {
                most: 1_u64.checked_shl(bits).unwrap_or(0).wrapping_sub(1),
                pages: BTreeMap::new(),
            })
            .collect();
        for (age, tier) in self.ages.iter().zip(&self.tiers) {
            let bits = u64::BITS - age.leading_zeros();
            *bins[bits as usize].pages.entry(*tier).or_default() += 1;
        }
        let has_pages = |bin: &AgeBin| !bin.pages.is_empty();
        bins.truncate(bins.iter().rposition(has_pages).map_or(0, |last| last + 1));
        bins.drain(..bins.iter().position(has_pages).unwrap_or(0));
        bins
    }

    /// Returns one row for each tier that has pages: memory first, then the tiers of swap from the highest on, last the
    /// pages of unknown tier.
    pub fn rows(&self) -> Vec<TierRow> {
        let highest = self.tiers.iter().copied().max().unwrap_or(-1);
        (0..=highest)
            .chain([-1])
            .filter_map(|tier| {
                let pages = self.of_tier(tier).filter_map(|page| self.ages.get(page));
                let mut ages: Vec<u64> = pages.copied().collect();
                ages.sort_unstable();
                let rank = |percent: usize| {
                    let rank = (ages.len() * percent).div_ceil(100).max(1);
                    ages.get(rank - 1).copied()
                };
                Some(TierRow {
                    tier,
                    pages: ages.len() as u64,
                    ages: [rank(10)?, rank(50)?, rank(90)?],
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Unit;
    use proptest::prelude::*;

    use super::*;

    /// Creates the state of pages from tier, age and number of uses of each.
    fn pages(all: &[(i64, u64, u64)]) -> TierPages {
        TierPages {
            tiers: all.iter().map(|page| page.0).collect(),
            ages: all.iter().map(|page| page.1).collect(),
            uses: all.iter().map(|page| page.2).collect(),
        }
    }

    /// Returns the same pages after each page in `used` was used once more.
    fn after(before: &TierPages, used: &[usize]) -> TierPages {
        let mut after = before.clone();
        for page in used {
            after.uses[*page] += 1;
        }
        after
    }

    fn inversion(before: &[(i64, u64, u64)], used: &[usize]) -> (u64, u64) {
        let before = pages(before);
        let found = Inversion::of(&[before.clone(), after(&before, used)]);
        (found.inverted, found.read_back)
    }

    #[test]
    fn bins_of_ages_double_and_begin_where_there_are_pages() {
        let bins = pages(&[(0, 3, 1), (1, 2, 1), (2, 9, 1), (2, 15, 1), (-1, 16, 1)]).by_age();
        let bin = |most: u64, pages: &[(i64, u64)]| AgeBin {
            most,
            pages: pages.iter().copied().collect(),
        };
        assert_eq!(
            bins,
            [
                bin(3, &[(0, 1), (1, 1)]),
                bin(7, &[]),
                bin(15, &[(2, 2)]),
                bin(31, &[(-1, 1)])
            ]
        );
        assert_eq!(pages(&[]).by_age(), []);
        assert_eq!(
            pages(&[(0, u64::MAX, 1)]).by_age(),
            [bin(u64::MAX, &[(0, 1)])]
        );
    }

    #[test]
    fn a_page_read_back_is_inverted_if_a_quarter_of_the_higher_tiers_is_older() {
        // Four pages in the first tier, of which one is older than both pages of the second.
        let all = [
            (1, 90, 0),
            (1, 10, 3),
            (1, 11, 1),
            (1, 12, 1),
            (2, 50, 1),
            (2, 95, 0),
            (0, 99, 1),
        ];
        assert_eq!(inversion(&all, &[4]), (1, 1));
        assert_eq!(inversion(&all, &[5]), (0, 1), "it is the oldest of all");
        assert_eq!(inversion(&all, &[4, 5]), (1, 2));
        assert_eq!(
            inversion(&all, &[0, 1, 6]),
            (0, 0),
            "the highest tier and memory do not count"
        );
        // One in five is less than a quarter.
        let mut more = all.to_vec();
        more.push((1, 12, 1));
        assert_eq!(inversion(&more, &[4]), (0, 1));
        // An equal age is not older, and without pages in a higher tier nothing is inverted.
        assert_eq!(inversion(&[(1, 50, 0), (2, 50, 0)], &[1]), (0, 1));
        assert_eq!(inversion(&[(2, 5, 0), (0, 50, 0)], &[0]), (0, 1));
        // The third tier is compared with the first and the second.
        assert_eq!(
            inversion(&[(1, 1, 0), (2, 50, 0), (3, 40, 0)], &[2]),
            (1, 1)
        );
        assert_eq!(Inversion::of(&[]).share(), None);
        assert_eq!(
            Inversion {
                read_back: 4,
                inverted: 3
            }
            .share(),
            Some(0.75)
        );
    }

    proptest! {
        #[test]
        fn tiers_in_the_order_of_ages_are_never_inverted_and_the_reverse_always(
            ages in proptest::collection::vec(0_u64..1000, 3..60), cut in 1_usize..59,
        ) {
            let mut ages = ages;
            ages.sort_unstable();
            ages.dedup();
            let cut = cut.min(ages.len() - 1);
            prop_assume!(cut > 0);
            let tier = |young: i64, old: i64| -> Vec<(i64, u64, u64)> {
                ages.iter().enumerate().map(|(at, age)| (if at < cut { young } else { old }, *age, 1)).collect()
            };
            let used: Vec<usize> = (0..ages.len()).collect();
            let young = cut as u64;
            let old = ages.len() as u64 - young;
            prop_assert_eq!(inversion(&tier(1, 2), &used), (0, old));
            prop_assert_eq!(inversion(&tier(2, 1), &used), (young, young));
        }
    }

    #[test]
    fn a_series_is_read_and_summed_by_tier() {
        let series = Series::new("pages-1")
            .int("page", Unit::Pages, 0..6)
            .int(COLUMN, Unit::Count, [0, 2, 1, 2, -1, 2])
            .int("age", Unit::Count, [1, 30, 5, 10, 7, 20])
            .int("uses", Unit::Count, [1, 1, 1, 0, 0, 2]);
        let pages = TierPages::read(&series).unwrap();
        let row = |tier, pages, ages| TierRow { tier, pages, ages };
        assert_eq!(
            pages.rows(),
            [
                row(0, 1, [1; 3]),
                row(1, 1, [5; 3]),
                // Pages without a reference were used when they were filled.
                row(2, 3, [13, 20, 30]),
                row(-1, 1, [9; 3])
            ]
        );
        assert!(TierPages::read(&Series::new("x").int("age", Unit::Count, [1])).is_none());
    }
}
