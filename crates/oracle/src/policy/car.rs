//! CAR: a variant of ARC with clocks instead of LRU lists.

use super::{About, Policy, Setup};
use crate::flat;
use crate::lists::Lists;
use crate::number::at;

pub(super) static ABOUT: About = About {
    name: "car",
    summary: "ARC whose two lists are clocks: a hit sets a bit and moves nothing.",
    source: "Bansal, Modha, \"CAR: clock with adaptive replacement\", FAST 2004, figure 2. The target is a real number.",
    parameters: &[],
    make: |setup| Box::new(Car::new(setup)),
};

/// Number of the list of pages in memory that were used once recently.
const T1: u32 = 1;
/// Number of the list of pages in memory that were used more than once recently.
const T2: u32 = 2;
/// Number of the list of pages evicted from T1.
const B1: u32 = 3;
/// Number of the list of pages evicted from T2.
const B2: u32 = 4;

struct FourLists {
    lists: Lists<4>,
    size: u32,
    /// The paper's p: the target size of T1 in pages.
    target: f64,
}

impl FourLists {
    fn new(setup: Setup<'_>) -> Self {
        // All lists together briefly hold one page more than twice the size of memory.
        let most = setup.size.saturating_mul(2).saturating_add(1);
        Self {
            lists: Lists::new(setup.pages, most),
            size: setup.size,
            target: 0.0,
        }
    }

    /// Returns the number of pages in list number `list`.
    #[inline]
    fn len(&self, list: u32) -> u32 {
        self.lists.len(list)
    }

    /// Adapts p after a hit in B1 or B2: the list in memory from which the page was evicted should have been larger.
    fn learn(&mut self, ghost: u32) {
        let (b1, b2) = (f64::from(self.len(B1)), f64::from(self.len(B2)));
        self.target = if ghost == B1 {
            (self.target + (b2 / b1).max(1.0)).min(f64::from(self.size))
        } else {
            (self.target - (b1 / b2).max(1.0)).max(0.0)
        };
    }

    /// Returns the number of pages in memory.
    fn held(&self) -> u32 {
        self.len(T1) + self.len(T2)
    }

    /// Returns true if all lists together contain at least twice as many pages as fit in memory.
    fn is_full(&self) -> bool {
        let all = u64::from(self.held()) + u64::from(self.len(B1)) + u64::from(self.len(B2));
        all >= 2 * u64::from(self.size)
    }
}

struct Car {
    held: FourLists,
    used: Vec<bool>,
}

impl Car {
    fn new(setup: Setup<'_>) -> Self {
        Self {
            held: FourLists::new(setup),
            used: flat::zeroed(at(setup.pages)),
        }
    }

    /// The paper's replace(): evicts a page of T1 or T2, after giving used pages a second chance.
    fn replace(&mut self) {
        loop {
            let from_t1 = f64::from(self.held.len(T1)) >= self.held.target.max(1.0);
            let Some(page) = self.held.lists.pop(if from_t1 { T1 } else { T2 }) else {
                return;
            };
            let used = std::mem::take(&mut self.used[at(page)]);
            let to = match (used, from_t1) {
                (true, _) => T2,
                (false, true) => B1,
                (false, false) => B2,
            };
            self.held.lists.append(to, page);
            if !used {
                return;
            }
        }
    }

    /// Processes a reference to a page that is not in memory.
    fn miss(&mut self, page: u32, list: u32) {
        let held = &mut self.held;
        if held.held() == held.size {
            self.replace();
            let held = &mut self.held;
            if list == 0 {
                if held.len(T1) + held.len(B1) == held.size {
                    held.lists.forget(B1);
                } else if held.is_full() {
                    held.lists.forget(B2);
                }
            }
        }
        let held = &mut self.held;
        if list == 0 {
            held.lists.append(T1, page);
        } else {
            held.learn(list);
            // The slot of the page may have changed in the meantime.
            held.lists.renew(T2, page, held.lists.place(page));
        }
    }
}

impl Policy for Car {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let list = self.held.lists.place(page).list();
        let hit = matches!(list, T1 | T2);
        if hit {
            self.used[at(page)] = true;
        } else {
            self.miss(page, list);
        }
        hit
    }

    fn held(&mut self, page: u32) -> bool {
        matches!(self.held.lists.place(page).list(), T1 | T2)
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        self.held.lists.prefetch(page);
        flat::prefetch(&self.used, page);
    }
}
