//! `/proc/buddyinfo`: free blocks by zone and order, and how fragmented they are.

use serde::{Deserialize, Serialize};

use super::file::Parse;
use super::scan;
use super::zoneinfo::zone_header;
use pagetide_quantity::Pages;

/// The most orders any kernel prints (`MAX_PAGE_ORDER + 1` is 11 on x86-64, 14 on others).
pub const ORDERS: usize = 16;

/// Free blocks of one zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuddyZone {
    /// NUMA node.
    pub node: u32,
    /// `DMA`, `Normal`, ….
    pub name: String,
    /// Free blocks of order 0, 1, 2, …; as many as the kernel printed.
    pub blocks: Vec<u64>,
}

impl BuddyZone {
    /// All free pages.
    pub fn free(&self) -> Pages {
        self.free_in_blocks_of(0)
    }

    /// Free pages in blocks of at least this order.
    pub fn free_in_blocks_of(&self, order: usize) -> Pages {
        Pages(
            self.blocks
                .iter()
                .enumerate()
                .skip(order)
                .fold(0, |sum, (at, &blocks)| {
                    let size = u32::try_from(at).ok().and_then(|at| 1_u64.checked_shl(at));
                    sum.saturating_add(blocks.saturating_mul(size.unwrap_or(0)))
                }),
        )
    }

    /// Unusable free space index: the share of free memory that an allocation of this order cannot use, 0 to 1.
    ///
    /// (free − free in blocks ≥ order) / free, after Gorman and Healy, "Measuring the impact of the Linux memory manager"
    /// (2005) and mm/vmstat.c, `unusable_free_index`. Without free memory nothing is usable: 1.
    pub fn unusable(&self, order: usize) -> f64 {
        let free = self.free().0;
        if free == 0 {
            return 1.0;
        }
        (free - self.free_in_blocks_of(order).0) as f64 / free as f64
    }

    /// Fragmentation index: near 0 an allocation fails for lack of memory, near 1 for fragmentation; `None` where it
    /// would not fail.
    ///
    /// 1 − (1 + free/2^order) / blocks, as mm/vmstat.c, `__fragmentation_index`, computes it; the 1 stands for the
    /// request itself. Without free blocks the cause is lack of memory: 0.
    pub fn fragmentation(&self, order: usize) -> Option<f64> {
        if self.blocks.iter().skip(order).any(|&blocks| blocks > 0) {
            return None;
        }
        let blocks: u64 = self
            .blocks
            .iter()
            .fold(0_u64, |sum, &more| sum.saturating_add(more));
        if blocks == 0 {
            return Some(0.0);
        }
        let requested = f64::from(u32::try_from(order).unwrap_or(u32::MAX)).exp2();
        let index = 1.0 - (1.0 + self.free().0 as f64 / requested) / blocks as f64;
        Some(index.max(0.0))
    }
}

/// All zones' free blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buddyinfo {
    zones: Vec<BuddyZone>,
}

impl Buddyinfo {
    /// The zones in the kernel's order.
    pub fn zones(&self) -> &[BuddyZone] {
        &self.zones
    }

    /// One zone.
    pub fn zone(&self, node: u32, name: &str) -> Option<&BuddyZone> {
        self.zones
            .iter()
            .find(|zone| zone.node == node && zone.name == name)
    }

    /// All zones taken together, named `all`.
    pub fn total(&self) -> BuddyZone {
        let mut total = BuddyZone {
            node: 0,
            name: "all".into(),
            blocks: Vec::new(),
        };
        for zone in &self.zones {
            if total.blocks.len() < zone.blocks.len() {
                total.blocks.resize(zone.blocks.len(), 0);
            }
            for (sum, blocks) in total.blocks.iter_mut().zip(&zone.blocks) {
                *sum = sum.saturating_add(*blocks);
            }
        }
        total
    }
}

impl Parse for Buddyinfo {
    fn parse(&mut self, text: &[u8]) {
        let mut count = 0;
        for line in scan::lines(text) {
            let Some((node, name)) = zone_header(line) else {
                continue;
            };
            if self.zones.len() == count {
                self.zones.push(BuddyZone {
                    blocks: Vec::with_capacity(ORDERS),
                    ..BuddyZone::default()
                });
            }
            let zone = &mut self.zones[count];
            count += 1;
            zone.node = node;
            if zone.name.as_bytes() != name {
                zone.name = String::from_utf8_lossy(name).into_owned();
            }
            zone.blocks.clear();
            // `Node N, zone NAME` are four words.
            zone.blocks.extend(
                scan::words(line)
                    .skip(4)
                    .map_while(scan::number)
                    .take(ORDERS),
            );
        }
        self.zones.truncate(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(blocks: &[u64]) -> BuddyZone {
        BuddyZone {
            node: 0,
            name: "Normal".into(),
            blocks: blocks.to_vec(),
        }
    }

    #[test]
    fn free_pages_and_unusable_share_follow_the_definition() {
        let mut info = Buddyinfo::default();
        info.parse(
            b"Node 0, zone      DMA      0      1 \nNode 0, zone   Normal      4      2      1 \n",
        );
        let normal = info.zone(0, "Normal").unwrap();
        assert_eq!(normal.free(), Pages(12));
        assert_eq!(normal.free_in_blocks_of(1), Pages(8));
        assert!((normal.unusable(1) - 4.0 / 12.0).abs() < 1e-12);
        assert!((normal.unusable(2) - 8.0 / 12.0).abs() < 1e-12);
        assert_eq!(info.total().blocks, [4, 3, 1]);
    }

    #[test]
    fn fragmentation_is_asked_only_where_the_allocation_would_fail() {
        assert_eq!(zone(&[10, 0, 1]).fragmentation(2), None);
        // 1024 single pages, order 9: 1 − (1 + 2)/1024.
        let scattered = zone(&[1024, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!((scattered.fragmentation(9).unwrap() - (1.0 - 3.0 / 1024.0)).abs() < 1e-12);
        // One page left: lack of memory, not fragmentation.
        assert_eq!(zone(&[1, 0, 0]).fragmentation(2), Some(0.0));
        assert_eq!(zone(&[0, 0, 0]).fragmentation(2), Some(0.0));
    }

    #[test]
    fn an_empty_zone_has_nothing_usable() {
        assert!((zone(&[]).unusable(0) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn absurd_block_counts_do_not_overflow() {
        let mut info = Buddyinfo::default();
        info.parse(format!("Node 0, zone Normal {0} {0} {0}\n", u64::MAX).as_bytes());
        assert_eq!(info.zones()[0].free(), Pages(u64::MAX));
        assert!(info.zones()[0].fragmentation(9).is_some());
    }
}
