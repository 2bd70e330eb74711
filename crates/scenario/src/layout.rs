//! Measures how the pages of a mapping are placed on the swap device: in address order or scattered.

use std::collections::BTreeMap;

use pagetide_quantity::Histogram;

/// Swap area and offset of a page; `None` if the page is not in swap.
type SwapPosition = Option<(u64, u64)>;

/// Placement of a mapping's swapped pages, computed page by page in address order.
#[derive(Debug, Default)]
pub(crate) struct SwapLayout {
    /// Number of pages in swap.
    pub swapped: u64,
    /// Number of pairs of neighbouring pages in the mapping that are both in the same swap area.
    pub pairs: u64,
    /// Number of pairs whose pages are also neighbours on the device, in ascending order.
    pub contiguous: u64,
    /// Sum of the distances on the device between the pages of a pair, in pages.
    jumps: u64,
    before: SwapPosition,
    run: u64,
    /// Number of runs of each length.
    runs: BTreeMap<u64, u64>,
    /// True if any page has a non-zero offset. This shows that the kernel does not hide offsets.
    told: bool,
}

impl SwapLayout {
    /// Adds the next page of the mapping, in address order.
    pub(crate) fn add(&mut self, place: SwapPosition) {
        let mut goes_on = false;
        if let Some((area, offset)) = place {
            self.swapped += 1;
            self.told |= offset != 0;
            if let Some((area_before, offset_before)) = self.before
                && area == area_before
            {
                self.pairs += 1;
                self.jumps += offset.abs_diff(offset_before);
                goes_on = offset == offset_before + 1;
                self.contiguous += u64::from(goes_on);
            }
        }
        if goes_on {
            self.run += 1;
        } else {
            self.end_run();
            self.run = u64::from(place.is_some());
        }
        self.before = place;
    }

    /// Ends the last run. Must be called after the last page.
    pub(crate) fn finish(&mut self) {
        self.end_run();
        self.before = None;
    }

    fn end_run(&mut self) {
        if self.run > 0 {
            *self.runs.entry(self.run).or_default() += 1;
            self.run = 0;
        }
    }

    /// Returns true if the kernel shows the swap offsets of pages. It hides them from processes without CAP_SYS_ADMIN.
    pub(crate) const fn is_told(&self) -> bool {
        self.told
    }

    /// Returns the fraction of pairs whose pages are also neighbours on the device; NaN without pairs.
    pub(crate) fn contiguity(&self) -> f64 {
        self.contiguous as f64 / self.pairs as f64
    }

    /// Returns the mean distance in pages on the device between the pages of a pair; NaN without pairs.
    pub(crate) fn mean_jump(&self) -> f64 {
        self.jumps as f64 / self.pairs as f64
    }

    /// Returns the mean length, in pages, of runs contiguous in the mapping and on the device; NaN without runs.
    pub(crate) fn mean_run(&self) -> f64 {
        self.swapped as f64 / self.runs.values().sum::<u64>() as f64
    }

    /// Returns how often each length, in pages, occurs among runs contiguous in the mapping and on the device.
    pub(crate) fn runs(&self) -> Histogram {
        let mut dense = vec![0; Histogram::BUCKETS];
        for (length, count) in &self.runs {
            dense[Histogram::index(*length) as usize] += count;
        }
        let sum = self.runs.iter().map(|(length, count)| length * count).sum();
        let edge = |length: Option<&u64>| length.copied().unwrap_or(0);
        Histogram::from_dense(
            &dense,
            sum,
            edge(self.runs.keys().next()),
            edge(self.runs.keys().next_back()),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layout(places: &[SwapPosition]) -> SwapLayout {
        let mut layout = SwapLayout::default();
        for place in places {
            layout.add(*place);
        }
        layout.finish();
        layout
    }

    #[test]
    fn runs_pairs_and_jumps_are_counted_in_address_order() {
        let swapped = |offset| Some((0, offset));
        let layout = layout(&[
            swapped(10),
            swapped(11),
            swapped(12),
            None,
            swapped(13),
            swapped(40),
            swapped(39),
            Some((1, 40)),
        ]);
        assert_eq!(layout.swapped, 7);
        assert_eq!(layout.pairs, 4);
        assert_eq!(layout.contiguous, 2);
        assert!((layout.contiguity() - 0.5).abs() < 1e-12);
        assert!((layout.mean_jump() - f64::from(1 + 1 + 27 + 1) / 4.0).abs() < 1e-12);
        let runs = layout.runs();
        assert_eq!((runs.count, runs.sum, runs.min, runs.max), (5, 7, 1, 3));
    }

    #[test]
    fn a_mapping_without_swapped_pages_has_no_contiguity() {
        assert!(layout(&[None, None]).contiguity().is_nan());
    }

    proptest! {
        #[test]
        fn every_swapped_page_is_in_one_run(places in proptest::collection::vec(proptest::option::of((0_u64..2, 0_u64..20)), 0..200)) {
            let layout = layout(&places);
            let swapped = places.iter().flatten().count() as u64;
            prop_assert_eq!(layout.runs().sum, swapped);
            prop_assert_eq!(layout.swapped, swapped);
            prop_assert_eq!(layout.runs().count, swapped - layout.contiguous);
        }
    }
}
