//! What ARC and CAR share: pages used once and more often, in memory and remembered, and a target that moves between.

use super::Setup;
use crate::flat;
use crate::number::at;
use crate::queue::{Place, Queue, pop, push};

/// Pages in memory that were used once lately, and more often; pages that were evicted from these.
pub(super) const T1: u32 = 1;
pub(super) const T2: u32 = 2;
pub(super) const B1: u32 = 3;
pub(super) const B2: u32 = 4;

pub(super) struct FourLists {
    pub places: Vec<Place>,
    pub t1: Queue,
    pub t2: Queue,
    pub b1: Queue,
    pub b2: Queue,
    pub size: u32,
    /// The papers' p: how large T1 should be.
    pub target: f64,
}

impl FourLists {
    pub fn new(setup: Setup<'_>) -> Self {
        let room = setup.size.min(setup.pages);
        Self {
            places: flat::zeroed(at(setup.pages)),
            t1: Queue::new(room),
            t2: Queue::new(room),
            b1: Queue::new(room),
            b2: Queue::new(setup.pages.min(setup.size.saturating_mul(2))),
            size: setup.size,
            target: 0.0,
        }
    }

    /// A page was in a ghost list: what it came from should have been larger.
    pub fn learn(&mut self, ghost: u32) {
        let (b1, b2) = (f64::from(self.b1.len()), f64::from(self.b2.len()));
        self.target = if ghost == B1 {
            (self.target + (b2 / b1).max(1.0)).min(f64::from(self.size))
        } else {
            (self.target - (b1 / b2).max(1.0)).max(0.0)
        };
    }

    /// Appends a page to a list.
    #[inline]
    pub fn put(&mut self, list: u32, page: u32) {
        let queue = match list {
            T1 => &mut self.t1,
            T2 => &mut self.t2,
            B1 => &mut self.b1,
            _ => &mut self.b2,
        };
        push(queue, list, page, &mut self.places);
    }

    /// Forgets the oldest page of a list.
    pub fn forget(&mut self, list: u32) {
        let queue = match list {
            T1 => &mut self.t1,
            T2 => &mut self.t2,
            B1 => &mut self.b1,
            _ => &mut self.b2,
        };
        pop(queue, &mut self.places);
    }

    /// Pages in memory.
    pub fn held(&self) -> u32 {
        self.t1.len() + self.t2.len()
    }

    /// Whether all lists together hold twice what memory does.
    pub fn is_full(&self) -> bool {
        let all = u64::from(self.held()) + u64::from(self.b1.len()) + u64::from(self.b2.len());
        all >= 2 * u64::from(self.size)
    }
}
