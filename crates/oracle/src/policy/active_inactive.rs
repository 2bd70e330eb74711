//! Linux' active and inactive lists, with second chances and refault distances.

use super::{About, Parameter, Policy, Setup};
use crate::flat;
use crate::number::{at, whole};
use crate::queue::{Position, Queue, push};

pub(super) static ABOUT: About = About {
    name: "active-inactive",
    summary: "Linux without MGLRU, for anonymous memory: two lists, accessed bits, refault distances.",
    source: "Linux 6.12, mm/vmscan.c (shrink_lruvec, shrink_active_list, folio_check_references, inactive_is_low) and mm/workingset.c (workingset_test_recent). One kind of memory, one page table entry a page; reclaim frees `batch` pages at a time.",
    parameters: &[Parameter {
        name: "batch",
        help: "pages freed at a time, SWAP_CLUSTER_MAX in Linux",
        default: 32.0,
        least: 1.0,
        most: 1_000_000.0,
    }],
    make: |setup| Box::new(TwoLists::new(setup)),
};

const INACTIVE: u32 = 1;
const ACTIVE: u32 = 2;

struct TwoLists {
    places: Vec<Position>,
    /// For each page, the accessed bit of its page table entry.
    accessed: Vec<bool>,
    /// For each page, PG_referenced.
    referenced: Vec<bool>,
    /// For each page, `age` just before its last eviction, plus 1; 0 if it was never evicted.
    shadow: Vec<u32>,
    inactive: Queue,
    active: Queue,
    /// `nonresident_age` of the lruvec: a counter of evictions and activations.
    age: u32,
    /// True if a refaulted page was activated since active pages were last scanned.
    activated: bool,
    /// Fraction of a page that is still to be deactivated, carried over from earlier scans.
    owed: f64,
    size: u32,
    batch: u32,
}

impl TwoLists {
    fn new(setup: Setup<'_>) -> Self {
        let capacity = setup.size.min(setup.pages);
        Self {
            places: flat::zeroed(at(setup.pages)),
            accessed: flat::zeroed(at(setup.pages)),
            referenced: flat::zeroed(at(setup.pages)),
            shadow: flat::zeroed(at(setup.pages)),
            inactive: Queue::new(capacity),
            active: Queue::new(capacity),
            age: 0,
            activated: false,
            owed: 0.0,
            size: setup.size,
            batch: whole(setup.value(0)).min(setup.size),
        }
    }

    /// inactive_is_low(): returns true if the inactive list is too short. The allowed ratio of active to inactive pages
    /// is 1 below 1 GiB, and √(10 × size in GiB) above.
    fn inactive_is_low(&self) -> bool {
        let gigabytes = (self.inactive.len() + self.active.len()) >> 18;
        let ratio = if gigabytes == 0 {
            1
        } else {
            (10 * gigabytes).isqrt()
        };
        u64::from(self.inactive.len()) * u64::from(ratio) < u64::from(self.active.len())
    }

    /// shrink_active_list(): deactivates the `count` oldest active pages and clears their accessed bits.
    fn deactivate(&mut self, count: u32) {
        for _ in 0..count {
            let Some(page) = self.active.pop() else {
                return;
            };
            self.accessed[at(page)] = false;
            push(&mut self.inactive, INACTIVE, page, &mut self.places);
        }
    }

    /// shrink_inactive_list() for one page. Returns true if the page was evicted.
    fn scan_one(&mut self) -> bool {
        let Some(page) = self.inactive.pop() else {
            return false;
        };
        let was = std::mem::take(&mut self.referenced[at(page)]);
        if std::mem::take(&mut self.accessed[at(page)]) {
            self.referenced[at(page)] = true;
            if was {
                self.age = self.age.wrapping_add(1);
                push(&mut self.active, ACTIVE, page, &mut self.places);
            } else {
                push(&mut self.inactive, INACTIVE, page, &mut self.places);
            }
            return false;
        }
        self.places[at(page)] = Position::default();
        // workingset_eviction(): the age before this eviction. It is stored plus 1, because 0 means never evicted.
        self.shadow[at(page)] = self.age.wrapping_add(1).max(1);
        self.age = self.age.wrapping_add(1);
        true
    }

    /// get_scan_count(): deactivates active pages in the same proportion as inactive pages are scanned.
    fn deactivate_in_proportion(&mut self) {
        let inactive = f64::from(self.inactive.len().max(1));
        self.owed += f64::from(self.batch) * f64::from(self.active.len()) / inactive;
        let whole = whole(self.owed);
        self.owed -= f64::from(whole);
        self.deactivate(whole);
    }

    /// shrink_lruvec(): evicts a batch of pages. Called when memory is full.
    fn reclaim(&mut self) {
        let mut freed = 0;
        while freed < self.batch && self.inactive.len() + self.active.len() > 0 {
            if self.inactive_is_low() || std::mem::take(&mut self.activated) {
                self.deactivate_in_proportion();
            }
            if self.inactive.len() == 0 {
                self.deactivate(self.batch);
            }
            for _ in 0..self.batch {
                freed += u32::from(self.scan_one());
                if freed == self.batch {
                    break;
                }
            }
            // The lists are rebalanced, even if no pages were freed.
            if self.inactive_is_low() {
                self.deactivate(self.batch);
            }
        }
    }
}

impl Policy for TwoLists {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        if self.places[at(page)] != Position::default() {
            self.accessed[at(page)] = true;
            return true;
        }
        if self.inactive.len() + self.active.len() >= self.size {
            self.reclaim();
        }
        self.accessed[at(page)] = true;
        self.referenced[at(page)] = false;
        let shadow = std::mem::take(&mut self.shadow[at(page)]);
        let recent = shadow != 0 && self.age.wrapping_sub(shadow - 1) <= self.active.len();
        if recent {
            self.age = self.age.wrapping_add(1);
            self.activated = true;
            push(&mut self.active, ACTIVE, page, &mut self.places);
        } else {
            push(&mut self.inactive, INACTIVE, page, &mut self.places);
        }
        false
    }

    fn held(&mut self, page: u32) -> bool {
        self.places[at(page)] != Position::default()
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.places, page);
        flat::prefetch(&self.accessed, page);
    }
}
