//! CAR: ARC with clocks for lists.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;
use crate::queue::{Place, Queue, pop, push};

pub(super) static ABOUT: About = About {
    name: "car",
    summary: "ARC whose two lists are clocks: a hit sets a bit and moves nothing.",
    source: "Bansal, Modha, \"CAR: clock with adaptive replacement\", FAST 2004, figure 2. The target is a real number.",
    parameters: &[],
    make: |setup| Box::new(Car::new(setup)),
};

const T1: u32 = 1;
const T2: u32 = 2;
const B1: u32 = 3;
const B2: u32 = 4;

struct Car {
    places: Vec<Place>,
    used: Vec<bool>,
    t1: Queue,
    t2: Queue,
    b1: Queue,
    b2: Queue,
    size: u32,
    /// The paper's p: how large T1 should be.
    target: f64,
}

impl Car {
    fn new(setup: Setup<'_>) -> Self {
        let room = setup.size.min(setup.pages);
        Self {
            places: flat::zeroed(at(setup.pages)),
            used: flat::zeroed(at(setup.pages)),
            t1: Queue::new(room),
            t2: Queue::new(room),
            b1: Queue::new(room),
            b2: Queue::new(setup.pages.min(setup.size.saturating_mul(2))),
            size: setup.size,
            target: 0.0,
        }
    }

    /// The paper's replace().
    fn replace(&mut self) {
        loop {
            let from_t1 = f64::from(self.t1.len()) >= self.target.max(1.0);
            let taken = if from_t1 { self.t1.pop() } else { self.t2.pop() };
            let Some(page) = taken else { return };
            if std::mem::take(&mut self.used[at(page)]) {
                push(&mut self.t2, T2, page, &mut self.places);
            } else {
                if from_t1 {
                    push(&mut self.b1, B1, page, &mut self.places);
                } else {
                    push(&mut self.b2, B2, page, &mut self.places);
                }
                return;
            }
        }
    }
}

impl Policy for Car {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let place = self.places[at(page)];
        let list = place.list();
        if list == T1 || list == T2 {
            self.used[at(page)] = true;
            return true;
        }
        if self.t1.len() + self.t2.len() == self.size {
            self.replace();
            if list == 0 {
                if self.t1.len() + self.b1.len() == self.size {
                    pop(&mut self.b1, &mut self.places);
                } else if u64::from(self.t1.len())
                    + u64::from(self.t2.len())
                    + u64::from(self.b1.len())
                    + u64::from(self.b2.len())
                    == 2 * u64::from(self.size)
                {
                    pop(&mut self.b2, &mut self.places);
                }
            }
        }
        // Pages may have moved within their lists meanwhile.
        let place = self.places[at(page)];
        let (b1, b2) = (f64::from(self.b1.len()), f64::from(self.b2.len()));
        match list {
            B1 => {
                self.target = (self.target + (b2 / b1).max(1.0)).min(f64::from(self.size));
                self.b1.remove(place.slot());
                push(&mut self.t2, T2, page, &mut self.places);
            }
            B2 => {
                self.target = (self.target - (b1 / b2).max(1.0)).max(0.0);
                self.b2.remove(place.slot());
                push(&mut self.t2, T2, page, &mut self.places);
            }
            _ => push(&mut self.t1, T1, page, &mut self.places),
        }
        false
    }

    #[inline]
    fn soon(&self, page: u32) {
        flat::soon(&self.places, page);
    }
}
