//! What ARC and CAR share: pages used once and more often, in memory and remembered, and a target that moves between.

use super::Setup;
use crate::lists::Lists;

/// Pages in memory that were used once lately, and more often; pages that were evicted from these.
pub(super) const T1: u32 = 1;
pub(super) const T2: u32 = 2;
pub(super) const B1: u32 = 3;
pub(super) const B2: u32 = 4;

pub(super) struct FourLists {
    pub lists: Lists<4>,
    pub size: u32,
    /// The papers' p: how large T1 should be.
    pub target: f64,
}

impl FourLists {
    pub fn new(setup: Setup<'_>) -> Self {
        // Together they hold one page more than twice memory for a moment.
        let most = setup.size.saturating_mul(2).saturating_add(1);
        Self {
            lists: Lists::new(setup.pages, most),
            size: setup.size,
            target: 0.0,
        }
    }

    /// Pages in a list.
    #[inline]
    pub fn len(&self, list: u32) -> u32 {
        self.lists.len(list)
    }

    /// A page was in a ghost list: what it came from should have been larger.
    pub fn learn(&mut self, ghost: u32) {
        let (b1, b2) = (f64::from(self.len(B1)), f64::from(self.len(B2)));
        self.target = if ghost == B1 {
            (self.target + (b2 / b1).max(1.0)).min(f64::from(self.size))
        } else {
            (self.target - (b1 / b2).max(1.0)).max(0.0)
        };
    }

    /// Pages in memory.
    pub fn held(&self) -> u32 {
        self.len(T1) + self.len(T2)
    }

    /// Whether all lists together hold twice what memory does.
    pub fn is_full(&self) -> bool {
        let all = u64::from(self.held()) + u64::from(self.len(B1)) + u64::from(self.len(B2));
        all >= 2 * u64::from(self.size)
    }
}
