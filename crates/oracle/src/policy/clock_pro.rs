//! CLOCK-Pro: an approximation of LIRS with clock hands.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;

pub(super) static ABOUT: About = About {
    name: "clock-pro",
    summary: "One ring of hot, cold and remembered pages with three hands; the share of cold pages adapts.",
    source: "Jiang, Chen, Zhang, \"CLOCK-Pro: an effective improvement of the CLOCK replacement\", USENIX ATC 2005, in the common form with one test period a page: new pages enter at the hot hand, a remembered page that comes back is hot and raises the share of cold pages, one whose test ends lowers it.",
    parameters: &[],
    make: |setup| Box::new(ClockPro::new(setup)),
};

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Absent,
    Hot,
    Cold,
    /// The page is evicted, but its entry is still in the ring.
    Test,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    next: u32,
    previous: u32,
    kind: Kind,
    used: bool,
}

struct ClockPro {
    entries: Vec<Entry>,
    hand_hot: u32,
    hand_cold: u32,
    hand_test: u32,
    hot: u32,
    cold: u32,
    test: u32,
    size: u32,
    cold_target: u32,
}

impl ClockPro {
    fn new(setup: Setup<'_>) -> Self {
        Self {
            entries: flat::zeroed(at(setup.pages)),
            hand_hot: 0,
            hand_cold: 0,
            hand_test: 0,
            hot: 0,
            cold: 0,
            test: 0,
            size: setup.size,
            cold_target: setup.size,
        }
    }

    fn next(&self, page: u32) -> u32 {
        self.entries[at(page)].next
    }

    /// Inserts a page into the ring directly before the page at the hot hand.
    fn insert(&mut self, page: u32, kind: Kind) {
        let empty = self.hot + self.cold + self.test == 0;
        let entry = Entry {
            kind,
            used: false,
            next: page,
            previous: page,
        };
        self.entries[at(page)] = entry;
        if empty {
            (self.hand_hot, self.hand_cold, self.hand_test) = (page, page, page);
        } else {
            let after = self.hand_hot;
            let before = self.entries[at(after)].previous;
            self.entries[at(page)].next = after;
            self.entries[at(page)].previous = before;
            self.entries[at(before)].next = page;
            self.entries[at(after)].previous = page;
            if self.hand_cold == self.hand_hot {
                self.hand_cold = page;
            }
        }
        match kind {
            Kind::Hot => self.hot += 1,
            _ => self.cold += 1,
        }
    }

    /// Removes an evicted page from the ring. Hands that point to the page move back by one.
    fn forget(&mut self, page: u32) {
        let Entry { next, previous, .. } = self.entries[at(page)];
        for hand in [&mut self.hand_hot, &mut self.hand_cold, &mut self.hand_test] {
            if *hand == page {
                *hand = previous;
            }
        }
        self.entries[at(previous)].next = next;
        self.entries[at(next)].previous = previous;
        self.entries[at(page)] = Entry::default();
        self.test -= 1;
    }

    fn run_cold(&mut self) {
        let entry = &mut self.entries[at(self.hand_cold)];
        if entry.kind == Kind::Cold {
            if std::mem::take(&mut entry.used) {
                entry.kind = Kind::Hot;
                self.cold -= 1;
                self.hot += 1;
            } else {
                entry.kind = Kind::Test;
                self.cold -= 1;
                self.test += 1;
                while self.test > self.size {
                    self.run_test();
                }
            }
        }
        self.hand_cold = self.next(self.hand_cold);
        while self.hot > self.size - self.cold_target {
            self.run_hot();
        }
    }

    fn run_hot(&mut self) {
        if self.hand_hot == self.hand_test {
            self.run_test();
        }
        let entry = &mut self.entries[at(self.hand_hot)];
        if entry.kind == Kind::Hot {
            if std::mem::take(&mut entry.used) {
                // The hand continues around the ring.
            } else {
                entry.kind = Kind::Cold;
                self.hot -= 1;
                self.cold += 1;
            }
        }
        self.hand_hot = self.next(self.hand_hot);
    }

    fn run_test(&mut self) {
        let page = self.hand_test;
        if self.entries[at(page)].kind == Kind::Test {
            self.forget(page);
            if self.cold_target > 1 {
                self.cold_target -= 1;
            }
        }
        self.hand_test = self.next(self.hand_test);
    }

    fn evict_one(&mut self) {
        while self.hot + self.cold >= self.size {
            self.run_cold();
        }
    }
}

impl Policy for ClockPro {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let entry = &mut self.entries[at(page)];
        match entry.kind {
            Kind::Hot | Kind::Cold => {
                entry.used = true;
                true
            }
            Kind::Test => {
                self.cold_target = (self.cold_target + 1).min(self.size);
                self.forget(page);
                self.evict_one();
                self.insert(page, Kind::Hot);
                false
            }
            Kind::Absent => {
                self.evict_one();
                self.insert(page, Kind::Cold);
                false
            }
        }
    }

    fn held(&mut self, page: u32) -> bool {
        matches!(self.entries[at(page)].kind, Kind::Hot | Kind::Cold)
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.entries, page);
    }
}
