//! The pattern `smooth-sin`: the number of references of each page, and the references in page order.

use super::Generator;
use crate::number::whole_u32;

/// The value of π that VM Regress used. It has two digits less than the precision of a double. For some pages, this
/// decides on which side of an integer the count falls, so the value is part of the pattern.
#[expect(
    clippy::approx_constant,
    reason = "the original's value is the pattern's definition"
)]
const PI: f64 = 3.14159265358979;

/// The counts of smooth-sin over a range, computed page by page and never stored.
///
/// With step = 1, 2, 4, …: s[i] = step + step·sin(3πi/range), until Σ⌊s[i]⌋ > refs/2; then 1 is added to s[0], s[1], …
/// in turn until the sum is refs. The sum can already be above refs when doubling ends (1000 pages and 77,000
/// references give 77,062). As written, it stays so. The exact form subtracts 1 from page 0, 1, … in turn and skips
/// pages without references, in analogy to the adding. Origin: VM Regress (2002).
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    pages: u32,
    step: f64,
    total: u64,
    change: Change,
}

/// Correction applied to all pages, so that the counts add up to the requested number of references.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Add `each` to every page, and 1 more to the pages below `below`.
    Add { each: u32, below: u32 },
    /// Subtract `each` from every page, and 1 more from the pages below `below`, but never below zero.
    Take { each: u32, below: u32 },
}

impl Curve {
    /// Computes step and correction of the curve. Range and references must have passed
    /// [`Pattern::check`](crate::Pattern::check).
    pub(crate) fn new(pages: u32, refs: u64, as_written: bool) -> Self {
        let mut curve = Self {
            pages,
            step: 1.0,
            total: 0,
            change: Change::Add { each: 0, below: 0 },
        };
        loop {
            curve.total = curve.sum();
            // In integers: count ≤ refs/2, where refs/2 may end in one half.
            if 2 * curve.total > refs {
                break;
            }
            curve.step *= 2.0;
        }
        if curve.total <= refs {
            let missing = refs - curve.total;
            let range = u64::from(pages);
            curve.change = Change::Add {
                each: narrow(missing / range),
                below: narrow(missing % range),
            };
            curve.total = refs;
        } else if !as_written {
            curve.change = curve.take(curve.total - refs);
            curve.total = refs;
        }
        curve
    }

    /// Returns the number of references in the whole string.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of references of `page`.
    pub(crate) fn count(&self, page: u32) -> u32 {
        let floor = self.floor(page);
        match self.change {
            Change::Add { each, below } => floor + each + u32::from(page < below),
            Change::Take { each, below } => floor.saturating_sub(each + u32::from(page < below)),
        }
    }

    /// Returns the integer part of the curve at `page`, ⌊s[page]⌋, before the correction.
    fn floor(&self, page: u32) -> u32 {
        let angle = 3.0 * PI * f64::from(page) / f64::from(self.pages);
        whole_u32(self.step + self.step * libm::sin(angle))
    }

    fn sum(&self) -> u64 {
        (0..self.pages)
            .map(|page| u64::from(self.floor(page)))
            .sum()
    }

    /// Computes the correction that subtracts `excess` references, one per page in turn.
    fn take(&self, mut excess: u64) -> Change {
        let mut each = 0;
        loop {
            let having = |page: &u32| self.floor(*page) > each;
            let round = (0..self.pages).filter(having).count() as u64;
            // A round without pages cannot occur before all references are gone, and refs is at least 1.
            if excess < round || round == 0 {
                // The page after the last one of an incomplete round.
                let below = match excess.checked_sub(1) {
                    Some(before) => (0..self.pages)
                        .filter(having)
                        .nth(usize::try_from(before).unwrap_or(usize::MAX))
                        .map_or(self.pages, |last| last + 1),
                    None => 0,
                };
                return Change::Take { each, below };
            }
            excess -= round;
            each += 1;
        }
    }
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Generator of `smooth-sin`: the references of a [`Curve`] in page order.
#[derive(Debug, Clone)]
pub(crate) struct SmoothSin {
    curve: Curve,
    page: u32,
    left: u32,
}

impl SmoothSin {
    pub(crate) fn new(curve: Curve) -> Self {
        let left = curve.count(0);
        Self {
            curve,
            page: 0,
            left,
        }
    }
}

impl Generator for SmoothSin {
    #[inline]
    fn next_page(&mut self) -> u32 {
        while self.left == 0 {
            // After the last reference the generator would start again, but the stream ends before that.
            self.page = (self.page + 1) % self.curve.pages;
            self.left = self.curve.count(self.page);
        }
        self.left -= 1;
        self.page
    }
}
