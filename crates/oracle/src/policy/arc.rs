//! ARC: recency and frequency in a balance that adapts.

use super::four_lists::{B1, B2, FourLists, T1, T2};
use super::{About, Policy, Setup};

pub(super) static ABOUT: About = About {
    name: "arc",
    summary: "Two LRU lists, of pages used once and more often, whose shares follow what would have been hits.",
    source: "Megiddo, Modha, \"ARC: a self-tuning, low overhead replacement cache\", FAST 2003, figure 4. The target is a real number, as in libCacheSim.",
    parameters: &[],
    make: |setup| Box::new(Arc::new(setup)),
};

struct Arc(FourLists);

impl Arc {
    fn new(setup: Setup<'_>) -> Self {
        Self(FourLists::new(setup))
    }

    /// The paper's REPLACE.
    fn replace(&mut self, in_b2: bool) {
        let t1 = f64::from(self.0.len(T1));
        #[expect(clippy::float_cmp, reason = "the paper compares them as they are")]
        let from_t1 = t1 > 0.0 && (t1 > self.0.target || (in_b2 && t1 == self.0.target));
        let (from, to) = if from_t1 || self.0.len(T2) == 0 {
            (T1, B1)
        } else {
            (T2, B2)
        };
        if let Some(page) = self.0.lists.pop(from) {
            self.0.lists.append(to, page);
        }
    }

    /// Case IV: a page that no list knows.
    fn make_room(&mut self) {
        let held = &mut self.0;
        if held.held() < held.size {
            return;
        }
        if held.len(T1) + held.len(B1) < held.size {
            if held.is_full() {
                held.lists.forget(B2);
            }
        } else if held.len(B1) > 0 {
            held.lists.forget(B1);
        } else {
            held.lists.forget(T1);
            return;
        }
        self.replace(false);
    }

    /// A page that is not in memory.
    fn miss(&mut self, page: u32, list: u32) {
        match list {
            B1 | B2 => {
                self.0.learn(list);
                self.0.lists.take(self.0.lists.place(page));
                self.replace(list == B2);
                self.0.lists.append(T2, page);
            }
            _ => {
                self.make_room();
                self.0.lists.append(T1, page);
            }
        }
    }
}

impl Policy for Arc {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let place = self.0.lists.place(page);
        let hit = matches!(place.list(), T1 | T2);
        if hit {
            self.0.lists.renew(T2, page, place);
        } else {
            self.miss(page, place.list());
        }
        hit
    }

    #[inline]
    fn soon(&self, page: u32) {
        self.0.lists.soon(page);
    }

    #[inline]
    fn near(&self, page: u32) {
        self.0.lists.near(page);
    }
}
