//! Computes how many of a workload's pages fit in a trial's memory.
//!
//! Not all memory that is free at the start can hold pages. Background reclaim frees memory up to the high watermarks,
//! and the kernel also keeps the reserves of lower zones (`lowmem_reserve`). Pages in compressed swap stay in memory,
//! at their compressed size. If data are twice as large as memory and compress to 35 %, swap takes more than half of
//! memory.

use pagetide_harness::peak::ZSWAP_PEAK;
use pagetide_quantity::PAGE_SIZE;
use pagetide_record::Results;

/// Returns the number of pages that were free at the start, less watermarks, lowmem reserves and the peak size of
/// compressed swap. `None` if the record lacks the free memory or the watermarks, or if nothing is left.
pub(super) fn room(results: &Results) -> Option<u32> {
    let free: u64 = results.facts.get("free-at-start")?.parse().ok()?;
    let kept = kept_free(results.texts.get("zoneinfo-before")?)?;
    let swap = results.zram_peak().unwrap_or(0) / PAGE_SIZE;
    let zswap = results.facts.get(ZSWAP_PEAK);
    let zswap = zswap.and_then(|bytes| bytes.parse::<u64>().ok());
    let held = swap + zswap.unwrap_or(0) / PAGE_SIZE;
    let room = (free / PAGE_SIZE).checked_sub(kept + held)?;
    u32::try_from(room).ok().filter(|room| *room > 0)
}

/// Returns the number of pages that the kernel keeps free, summed over all zones: the high watermark, and the reserve
/// that allocations for the highest zone may not use (`protection`). `None` if the text cannot be parsed.
fn kept_free(zoneinfo: &str) -> Option<u64> {
    let mut sum = None;
    for zone in zoneinfo.split("\nNode ").filter(|zone| !zone.is_empty()) {
        let value = |name: &str| -> Option<u64> {
            let lines = zone.lines().map(str::split_whitespace);
            lines
                .filter_map(|mut words| (words.next() == Some(name)).then(|| words.next()))
                .flatten()
                .find_map(|word| word.parse().ok())
        };
        if value("managed").unwrap_or(0) == 0 {
            continue;
        }
        let protection = zone
            .split_once("protection: (")
            .and_then(|(_, rest)| rest.split_once(')'))
            .and_then(|(list, _)| list.rsplit(',').next())
            .and_then(|pages| pages.trim().parse::<u64>().ok());
        *sum.get_or_insert(0) += value("high")? + protection.unwrap_or(0);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_record::Counters;
    use std::collections::BTreeMap;

    const ZONEINFO: &str = "\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 0
  pages free     3487
        boost    0
        min      17
        low      21
        high     25
        managed  3840
        protection: (0, 96, 96, 96, 96)
  pagesets
    cpu: 0
              count: 43
              high:  222
Node 0, zone    DMA32
  pages free     96
        min      110
        low      137
        high     164
        managed  24691
        protection: (0, 0, 0, 0, 0)
Node 0, zone   Normal
  pages free     0
        high     0
        managed  0
        protection: (0, 0, 0, 0, 0)
Node 0, zone  Movable
  pages free     0
        high     32
        managed  0
        protection: (0, 0, 0, 0, 0)
";

    #[test]
    fn watermarks_protection_and_compressed_swap_are_taken_off() {
        let mut results = Results {
            facts: BTreeMap::from([("free-at-start".to_owned(), "17018880".to_owned())]),
            texts: BTreeMap::from([("zoneinfo-before".to_owned(), ZONEINFO.to_owned())]),
            ..Results::default()
        };
        assert_eq!(room(&results), Some(4155 - 25 - 96 - 164));
        let zram = Counters {
            values: BTreeMap::from([("mem_used_max".to_owned(), [4096, 11_206_656])]),
        };
        results.counters.insert("zram".to_owned(), zram);
        assert_eq!(room(&results), Some(4155 - 285 - 2736));
        let zswap = (ZSWAP_PEAK.to_owned(), (100 * PAGE_SIZE).to_string());
        results.facts.extend([zswap]);
        assert_eq!(room(&results), Some(4155 - 285 - 2736 - 100));
    }

    #[test]
    fn a_record_that_does_not_say_what_was_free_has_no_room() {
        assert_eq!(room(&Results::default()), None);
        assert_eq!(kept_free(""), None);
        assert_eq!(kept_free("Node 0, zone  Movable\n  managed  0\n"), None);
    }
}
