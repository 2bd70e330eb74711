//! ARC: recency and frequency in a balance that adapts.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;
use crate::queue::{Place, Queue, pop, push};

pub(super) static ABOUT: About = About {
    name: "arc",
    summary: "Two LRU lists, of pages used once and more often, whose shares follow what would have been hits.",
    source: "Megiddo, Modha, \"ARC: a self-tuning, low overhead replacement cache\", FAST 2003, figure 4. The target is a real number, as in libCacheSim.",
    parameters: &[],
    make: |setup| Box::new(Arc::new(setup)),
};

const T1: u32 = 1;
const T2: u32 = 2;
const B1: u32 = 3;
const B2: u32 = 4;

struct Arc {
    places: Vec<Place>,
    t1: Queue,
    t2: Queue,
    b1: Queue,
    b2: Queue,
    size: u32,
    /// The paper's p: how large T1 should be.
    target: f64,
}

impl Arc {
    fn new(setup: Setup<'_>) -> Self {
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

    /// The paper's REPLACE.
    fn replace(&mut self, in_b2: bool) {
        let t1 = f64::from(self.t1.len());
        #[expect(clippy::float_cmp, reason = "the paper compares them as they are")]
        let from_t1 = self.t1.len() > 0 && (t1 > self.target || (in_b2 && t1 == self.target));
        if from_t1 || self.t2.len() == 0 {
            if let Some(page) = self.t1.pop() {
                push(&mut self.b1, B1, page, &mut self.places);
            }
        } else if let Some(page) = self.t2.pop() {
            push(&mut self.b2, B2, page, &mut self.places);
        }
    }

    /// Case IV: a page that no list knows.
    fn make_room(&mut self) {
        if self.t1.len() + self.t2.len() < self.size {
            return;
        }
        if self.t1.len() + self.b1.len() == self.size {
            if self.b1.len() > 0 {
                pop(&mut self.b1, &mut self.places);
                self.replace(false);
            } else {
                pop(&mut self.t1, &mut self.places);
            }
        } else {
            let all = u64::from(self.t1.len())
                + u64::from(self.t2.len())
                + u64::from(self.b1.len())
                + u64::from(self.b2.len());
            if all >= 2 * u64::from(self.size) {
                pop(&mut self.b2, &mut self.places);
            }
            self.replace(false);
        }
    }
}

impl Policy for Arc {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let place = self.places[at(page)];
        match place.list() {
            T1 => self.t1.remove(place.slot()),
            T2 => self.t2.remove(place.slot()),
            B1 => {
                let step = f64::from(self.b2.len()) / f64::from(self.b1.len());
                self.target = (self.target + step.max(1.0)).min(f64::from(self.size));
                self.b1.remove(place.slot());
                self.replace(false);
            }
            B2 => {
                let step = f64::from(self.b1.len()) / f64::from(self.b2.len());
                self.target = (self.target - step.max(1.0)).max(0.0);
                self.b2.remove(place.slot());
                self.replace(true);
            }
            _ => {
                self.make_room();
                push(&mut self.t1, T1, page, &mut self.places);
                return false;
            }
        }
        push(&mut self.t2, T2, page, &mut self.places);
        matches!(place.list(), T1 | T2)
    }

    #[inline]
    fn soon(&self, page: u32) {
        flat::soon(&self.places, page);
    }
}
