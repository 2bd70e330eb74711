//! ARC: recency and frequency in a balance that adapts.

use super::four_lists::{B1, B2, FourLists, T1, T2};
use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;

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
        let lists = &mut self.0;
        let t1 = f64::from(lists.t1.len());
        #[expect(clippy::float_cmp, reason = "the paper compares them as they are")]
        let from_t1 = lists.t1.len() > 0 && (t1 > lists.target || (in_b2 && t1 == lists.target));
        if from_t1 || lists.t2.len() == 0 {
            if let Some(page) = lists.t1.pop() {
                lists.put(B1, page);
            }
        } else if let Some(page) = lists.t2.pop() {
            lists.put(B2, page);
        }
    }

    /// Case IV: a page that no list knows.
    fn make_room(&mut self) {
        let lists = &mut self.0;
        if lists.held() < lists.size {
            return;
        }
        if lists.t1.len() + lists.b1.len() < lists.size {
            if lists.is_full() {
                lists.forget(B2);
            }
        } else if lists.b1.len() > 0 {
            lists.forget(B1);
        } else {
            lists.forget(T1);
            return;
        }
        self.replace(false);
    }
}

impl Policy for Arc {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let place = self.0.places[at(page)];
        match place.list() {
            T1 => self.0.t1.remove(place.slot()),
            T2 => self.0.t2.remove(place.slot()),
            B1 => {
                self.0.learn(B1);
                self.0.b1.remove(place.slot());
                self.replace(false);
            }
            B2 => {
                self.0.learn(B2);
                self.0.b2.remove(place.slot());
                self.replace(true);
            }
            _ => {
                self.make_room();
                self.0.put(T1, page);
                return false;
            }
        }
        self.0.put(T2, page);
        matches!(place.list(), T1 | T2)
    }

    #[inline]
    fn soon(&self, page: u32) {
        flat::soon(&self.0.places, page);
    }
}
