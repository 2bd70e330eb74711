//! How swapped pages lie on the device: what scattered swap-out costs is decided here, before the first read.

use serde::{Deserialize, Serialize};

use super::map::{PageEntry, SwapSlot};

/// Runs of a length class: `from` ≤ length < 2·`from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunClass {
    /// Shortest run of the class, in pages; a power of two.
    pub from: u64,
    /// Runs in it.
    pub runs: u64,
    /// Pages in those runs.
    pub pages: u64,
}

/// A virtual page and its place on the device, for drawing one against the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutPoint {
    /// Page index in the mapping.
    pub page: u64,
    /// Where it lies.
    pub slot: SwapSlot,
}

/// The layout of a mapping's swapped pages.
///
/// A *run* is a longest stretch of neighbouring virtual pages whose slots follow one another on the device in the same
/// order, so that ascending reads of memory are ascending reads of the device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapLayout {
    /// Pages looked at.
    pub pages: u64,
    /// Pages present.
    pub present: u64,
    /// Pages in swap.
    pub swapped: u64,
    /// Neighbouring pages both of which are in swap.
    pub pairs: u64,
    /// Of these, pairs that are neighbours on the device too.
    pub contiguous: u64,
    /// Pairs on the same area that are not neighbours.
    pub jumps: u64,
    /// Sum over these of the distance skipped, in pages, either direction.
    pub jump_pages: u64,
    /// Longest run in pages.
    pub longest_run: u64,
    /// Run lengths by powers of two, shortest class first.
    pub runs: Vec<RunClass>,
    #[serde(skip)]
    previous: Option<SwapSlot>,
    #[serde(skip)]
    run: u64,
}

impl SwapLayout {
    /// The layout of consecutive virtual pages.
    pub fn of(entries: &[PageEntry]) -> Self {
        let mut layout = Self::default();
        layout.extend(entries);
        layout.finish();
        layout
    }

    /// Adds the next pages, in ascending order of address; call [`Self::finish`] after the last.
    pub fn extend(&mut self, entries: &[PageEntry]) {
        for entry in entries {
            self.pages += 1;
            self.present += u64::from(entry.present());
            self.add(entry.swap_slot());
        }
    }

    fn add(&mut self, slot: Option<SwapSlot>) {
        let Some(slot) = slot else {
            self.end_run();
            self.previous = None;
            return;
        };
        self.swapped += 1;
        if let Some(previous) = self.previous {
            self.pairs += 1;
            let expected = previous.offset + 1;
            if slot.area == previous.area && slot.offset == expected {
                self.contiguous += 1;
            } else {
                if slot.area == previous.area {
                    self.jumps += 1;
                    self.jump_pages = self
                        .jump_pages
                        .saturating_add(slot.offset.abs_diff(expected));
                }
                self.end_run();
            }
        }
        self.run += 1;
        self.previous = Some(slot);
    }

    fn end_run(&mut self) {
        if self.run == 0 {
            return;
        }
        let class = usize::try_from(self.run.ilog2()).unwrap_or(0);
        while self.runs.len() <= class {
            let from = 1_u64 << self.runs.len();
            self.runs.push(RunClass {
                from,
                runs: 0,
                pages: 0,
            });
        }
        self.runs[class].runs += 1;
        self.runs[class].pages += self.run;
        self.longest_run = self.longest_run.max(self.run);
        self.run = 0;
    }

    /// Closes the last run.
    pub fn finish(&mut self) {
        self.end_run();
        self.previous = None;
    }

    /// Share of neighbouring virtual pages that are neighbours on the device, 0 to 1; `None` without any pair.
    pub fn contiguity(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.contiguous as f64 / self.pairs as f64)
    }

    /// Mean length of a run in pages; `None` where nothing is swapped.
    pub fn mean_run(&self) -> Option<f64> {
        let runs: u64 = self.runs.iter().map(|class| class.runs).sum();
        (runs > 0).then(|| self.swapped as f64 / runs as f64)
    }

    /// Mean distance of a jump in pages; `None` where there is none.
    pub fn mean_jump(&self) -> Option<f64> {
        (self.jumps > 0).then(|| self.jump_pages as f64 / self.jumps as f64)
    }

    /// At most `limit` points, evenly chosen, to draw virtual page against device offset.
    pub fn points(entries: &[PageEntry], limit: usize) -> Vec<LayoutPoint> {
        let step = entries.len().div_ceil(limit.max(1)).max(1);
        entries
            .iter()
            .enumerate()
            .step_by(step)
            .filter_map(|(at, entry)| {
                Some(LayoutPoint {
                    page: u64::try_from(at).ok()?,
                    slot: entry.swap_slot()?,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swapped(area: u64, offset: u64) -> PageEntry {
        PageEntry(1 << 62 | offset << 5 | area)
    }

    #[test]
    fn an_ascending_layout_is_one_run() {
        let entries: Vec<_> = (100..164).map(|offset| swapped(0, offset)).collect();
        let layout = SwapLayout::of(&entries);
        assert_eq!(layout.contiguity(), Some(1.0));
        assert_eq!((layout.longest_run, layout.mean_run()), (64, Some(64.0)));
        assert_eq!(layout.mean_jump(), None);
        assert_eq!(layout.runs[6].runs, 1);
    }

    #[test]
    fn a_descending_layout_is_all_jumps_of_two() {
        let entries: Vec<_> = (0..10).map(|at| swapped(0, 100 - at)).collect();
        let layout = SwapLayout::of(&entries);
        assert_eq!(layout.contiguity(), Some(0.0));
        assert_eq!(layout.mean_jump(), Some(2.0));
        assert_eq!(layout.mean_run(), Some(1.0));
    }

    #[test]
    fn present_pages_and_other_areas_break_runs_without_counting_as_jumps() {
        let entries = [
            swapped(0, 5),
            swapped(0, 6),
            PageEntry(1 << 63 | 9),
            swapped(0, 8),
            swapped(1, 9),
        ];
        let layout = SwapLayout::of(&entries);
        assert_eq!((layout.pages, layout.present, layout.swapped), (5, 1, 4));
        assert_eq!((layout.pairs, layout.contiguous, layout.jumps), (2, 1, 0));
        let runs: u64 = layout.runs.iter().map(|class| class.runs).sum();
        assert_eq!(runs, 3);
    }

    #[test]
    fn points_are_bounded_and_keep_their_page() {
        let entries: Vec<_> = (0..1000).map(|at| swapped(0, at * 2)).collect();
        let points = SwapLayout::points(&entries, 100);
        assert_eq!(points.len(), 100);
        assert!(
            points
                .iter()
                .all(|point| point.slot.offset == point.page * 2)
        );
    }
}
