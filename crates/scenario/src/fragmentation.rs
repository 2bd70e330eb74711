//! Fragmentation of free memory: two indices for each zone and order.
//!
//! Unusable free space index (Gorman and Whitcroft, "The what, the why and the where to of anti-fragmentation", OLS
//! 2006): the fraction of free memory in blocks too small for an order. Fragmentation index (as in `mm/vmstat.c`, but
//! larger by 1 / blocks): towards 0 if an allocation would fail for lack of memory, towards 1 if for fragmentation.

use pagetide_quantity::{Series, Unit};
use pagetide_system::free;

/// Number of free blocks by zone and by order, zones in the order of `/proc/buddyinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreeBlocks {
    zones: Vec<Vec<u64>>,
}

impl FreeBlocks {
    /// Reads the current numbers. They are empty if the kernel does not provide them.
    pub(crate) fn now() -> Self {
        Self {
            zones: free::blocks(),
        }
    }

    /// Returns both indices for every zone and order as a series, with −1 for an index that is not defined.
    pub(crate) fn series(&self, name: &str) -> Series {
        let rows: Vec<(usize, usize)> = self
            .zones
            .iter()
            .enumerate()
            .flat_map(|(zone, blocks)| (0..blocks.len()).map(move |order| (zone, order)))
            .collect();
        let whole = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let blocks = |&(zone, order): &(usize, usize)| {
            i64::try_from(self.zones[zone][order]).unwrap_or(i64::MAX)
        };
        Series::new(name)
            .int("zone", Unit::Count, rows.iter().map(|row| whole(row.0)))
            .int("order", Unit::Count, rows.iter().map(|row| whole(row.1)))
            .int("free-blocks", Unit::Count, rows.iter().map(blocks))
            .float(
                "unusable",
                Unit::Share,
                rows.iter()
                    .map(|row| unusable(&self.zones[row.0], row.1).unwrap_or(-1.0)),
            )
            .float(
                "fragmentation",
                Unit::Share,
                rows.iter()
                    .map(|row| fragmentation(&self.zones[row.0], row.1).unwrap_or(-1.0)),
            )
    }

    /// Returns the unusable free space index of all zones together; `None` if no memory is free.
    pub(crate) fn unusable(&self, order: usize) -> Option<f64> {
        let orders = self.zones.iter().map(Vec::len).max()?;
        let all: Vec<u64> = (0..orders)
            .map(|order| self.zones.iter().filter_map(|zone| zone.get(order)).sum())
            .collect();
        unusable(&all, order)
    }
}

fn free(blocks: &[u64]) -> u64 {
    (0_u32..)
        .zip(blocks)
        .map(|(order, count)| count << order)
        .sum()
}

/// Returns the unusable free space index: (free − free in blocks of at least this order) / free. `None` if no memory is
/// free.
fn unusable(blocks: &[u64], order: usize) -> Option<f64> {
    let all = free(blocks);
    let small = free(&blocks[..order.min(blocks.len())]);
    (all > 0).then(|| small as f64 / all as f64)
}

/// Returns the fragmentation index if an allocation would fail: 1 − (free / 2^order) / blocks. `None` if it would
/// succeed, or if no memory is free.
fn fragmentation(blocks: &[u64], order: usize) -> Option<f64> {
    let count: u64 = blocks.iter().sum();
    let suitable = blocks.iter().skip(order).any(|count| *count > 0);
    if count == 0 || suitable {
        return None;
    }
    let wanted = (free(blocks) as f64) / (1_u64 << order) as f64;
    Some(1.0 - wanted / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Node 0, zone      DMA      1      0      0
Node 0, zone    DMA32     10      4      1
";

    fn parsed() -> FreeBlocks {
        FreeBlocks {
            zones: free::parse_blocks(TEXT),
        }
    }

    #[test]
    fn blocks_are_read_per_zone_and_order() {
        let blocks = parsed();
        assert_eq!(blocks.series("now").rows(), 6);
    }

    #[test]
    fn unusable_space_is_what_lies_in_smaller_blocks() {
        // 10 + 8 + 4 pages are free, 18 of them in blocks below order 2.
        assert_eq!(unusable(&[10, 4, 1], 2), Some(18.0 / 22.0));
        assert_eq!(unusable(&[10, 4, 1], 0), Some(0.0));
        assert_eq!(unusable(&[0, 0], 1), None);
        let all = parsed().unusable(2).unwrap();
        assert!((all - 19.0 / 23.0).abs() < 1e-12);
    }

    #[test]
    fn fragmentation_is_defined_where_an_allocation_would_fail() {
        assert_eq!(fragmentation(&[10, 4, 1], 2), None);
        // 16 pages are free in 16 blocks: an allocation of 4 pages fails, although 16 pages are free.
        assert_eq!(fragmentation(&[16, 0, 0], 2), Some(1.0 - 4.0 / 16.0));
        assert_eq!(fragmentation(&[0, 0, 0], 2), None);
    }
}
