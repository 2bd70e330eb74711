//! Free memory as the page allocator counts it, from `/proc/zoneinfo` and `/proc/buddyinfo`.

use std::fs;
use std::io;

use pagetide_quantity::Pages;

/// Path of the zone statistics.
pub const ZONEINFO: &str = "/proc/zoneinfo";

/// Free pages and watermarks, summed over all zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// Number of free pages, without the per-CPU lists; `None` if the file has no such line.
    pub free: Option<Pages>,
    /// Number of pages in the per-CPU lists. They are free, but `free` does not count them.
    pub in_lists: Pages,
    /// The min watermark: below it an allocation enters direct reclaim.
    pub min: Pages,
    /// The low watermark: below it kswapd is woken.
    pub low: Pages,
    /// The high watermark: above it kswapd sleeps.
    pub high: Pages,
    /// `lowmem_reserve`: number of pages that zones keep, above each watermark, from allocations for user memory.
    pub reserve: Pages,
}

impl Zones {
    /// Reads and parses the current `/proc/zoneinfo`.
    pub fn now() -> io::Result<Self> {
        Ok(Self::parse(&fs::read_to_string(ZONEINFO)?))
    }

    /// Returns the free pages, including the per-CPU lists; `None` if the file has no line for free pages.
    pub fn all_free(&self) -> Option<Pages> {
        Some(self.free?.saturating_add(self.in_lists))
    }

    /// Parses the text of `/proc/zoneinfo` and sums the numbers of all zones.
    pub fn parse(text: &str) -> Self {
        let mut zones = Self::default();
        for line in text.lines() {
            if let Some(list) = line.trim().strip_prefix("protection: (") {
                // One number for each zone type that an allocation may prefer. User memory may use the highest zone:
                // the last number.
                let last = list.trim_end_matches(')').rsplit(", ").next();
                let last = last.and_then(|pages| pages.parse().ok());
                zones.reserve.0 += last.unwrap_or(0);
                continue;
            }
            let mut words = line.split_ascii_whitespace();
            let (Some(name), Some(Ok(value)), None) = (
                words.next(),
                words.next().map(str::parse::<u64>),
                words.next(),
            ) else {
                continue;
            };
            match name {
                "min" => zones.min.0 += value,
                "low" => zones.low.0 += value,
                // The line of a per-CPU list is `high:`, with a colon.
                "high" => zones.high.0 += value,
                "count:" => zones.in_lists.0 += value,
                "nr_free_pages" => {
                    zones.free = Some(Pages(zones.free.unwrap_or_default().0 + value));
                }
                _ => {}
            }
        }
        zones
    }
}

/// A zone of memory and its sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// First line of the zone in `/proc/zoneinfo`, such as `Node 0, zone DMA32`, with single spaces.
    pub name: String,
    /// Number of the NUMA node that contains the zone.
    pub node: u64,
    /// Number of free pages, including pages on the per-CPU lists.
    pub free: Pages,
    /// Number of pages that the page allocator manages.
    pub managed: Pages,
    /// Number of pages from the first to the last address of the zone, including holes.
    pub spanned: Pages,
    /// Number of pages that physically exist in the zone, without holes.
    pub present: Pages,
}

/// Parses the text of `/proc/zoneinfo`: returns all zones that have memory, in the order of the file.
pub fn zones(text: &str) -> Vec<Zone> {
    let mut zones: Vec<Zone> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let ["Node", node, "zone", _] = words[..] {
            zones.push(Zone {
                name: words.join(" "),
                node: node.trim_end_matches(',').parse().unwrap_or(0),
                ..Zone::default()
            });
            continue;
        }
        let (Some(zone), [name, value]) = (zones.last_mut(), &words[..]) else {
            continue;
        };
        let Ok(value) = value.parse::<u64>() else {
            continue;
        };
        match *name {
            "nr_free_pages" | "count:" => zone.free.0 += value,
            "managed" => zone.managed.0 = value,
            "spanned" => zone.spanned.0 = value,
            "present" => zone.present.0 = value,
            _ => {}
        }
    }
    zones.retain(|zone| zone.managed.0 > 0);
    zones
}

/// Returns the number of free blocks by zone and order, in the order of `/proc/buddyinfo`; empty if it cannot be read.
pub fn blocks() -> Vec<Vec<u64>> {
    parse_blocks(&fs::read_to_string("/proc/buddyinfo").unwrap_or_default())
}

/// Parses the text of `/proc/buddyinfo`: the number of free blocks by zone and order.
pub fn parse_blocks(text: &str) -> Vec<Vec<u64>> {
    text.lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once("zone")?;
            // The first word is the zone's name.
            let blocks: Vec<u64> = rest
                .split_ascii_whitespace()
                .skip(1)
                .map_while(|word| word.parse().ok())
                .collect();
            (!blocks.is_empty()).then_some(blocks)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONES: &str = "\
Node 0, zone      DMA
  pages free     3840
        boost    0
        min      10
        low      12
        high     14
        spanned  4095
        protection: (0, 39, 39, 39)
      nr_free_pages 100
Node 0, zone    DMA32
  pages free     10000
        min      90
        low      112
        high     134
      nr_free_pages 1000
  pagesets
    cpu: 0
              count:    5
              high:     90
";

    #[test]
    fn watermarks_are_summed_over_zones_and_not_mixed_with_the_cpu_lists() {
        let zones = Zones::parse(ZONES);
        assert_eq!(
            [zones.min, zones.low, zones.high, zones.reserve].map(|pages| pages.0),
            [100, 124, 148, 39]
        );
    }

    #[test]
    fn per_cpu_lists_count_as_free() {
        let zones = Zones::parse(ZONES);
        assert_eq!(zones.in_lists, Pages(5));
        assert_eq!(zones.all_free(), Some(Pages(1105)));
        assert_eq!(Zones::parse("nothing").all_free(), None);
    }

    #[test]
    fn sizes_are_read_for_each_zone_that_has_memory() {
        let text = "\
Node 0, zone   Normal
  pages free     7
        spanned  20
        present  19
        managed  18
      nr_free_pages 7
  pagesets
    cpu: 0
              count:    2
Node 1, zone  Movable
  pages free     0
        managed  0
";
        let zone = Zone {
            name: "Node 0, zone Normal".to_owned(),
            node: 0,
            free: Pages(9),
            managed: Pages(18),
            spanned: Pages(20),
            present: Pages(19),
        };
        assert_eq!(zones(text), [zone]);
    }

    #[test]
    fn blocks_are_read_per_zone_and_order() {
        let text = "Node 0, zone      DMA      1      0      0\nNode 0, zone    DMA32     10      4      1\n";
        assert_eq!(parse_blocks(text), [vec![1, 0, 0], vec![10, 4, 1]]);
    }
}
