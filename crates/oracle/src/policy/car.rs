//! CAR: ARC with clocks for lists.

use super::four_lists::{B1, B2, FourLists, T1, T2};
use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;

pub(super) static ABOUT: About = About {
    name: "car",
    summary: "ARC whose two lists are clocks: a hit sets a bit and moves nothing.",
    source: "Bansal, Modha, \"CAR: clock with adaptive replacement\", FAST 2004, figure 2. The target is a real number.",
    parameters: &[],
    make: |setup| Box::new(Car::new(setup)),
};

struct Car {
    lists: FourLists,
    used: Vec<bool>,
}

impl Car {
    fn new(setup: Setup<'_>) -> Self {
        Self {
            lists: FourLists::new(setup),
            used: flat::zeroed(at(setup.pages)),
        }
    }

    /// The paper's replace().
    fn replace(&mut self) {
        let lists = &mut self.lists;
        loop {
            let from_t1 = f64::from(lists.t1.len()) >= lists.target.max(1.0);
            let taken = if from_t1 {
                lists.t1.pop()
            } else {
                lists.t2.pop()
            };
            let Some(page) = taken else { return };
            if std::mem::take(&mut self.used[at(page)]) {
                lists.put(T2, page);
            } else {
                lists.put(if from_t1 { B1 } else { B2 }, page);
                return;
            }
        }
    }
}

impl Policy for Car {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let list = self.lists.places[at(page)].list();
        if list == T1 || list == T2 {
            self.used[at(page)] = true;
            return true;
        }
        if self.lists.held() == self.lists.size {
            self.replace();
            let lists = &mut self.lists;
            if list == 0 {
                if lists.t1.len() + lists.b1.len() == lists.size {
                    lists.forget(B1);
                } else if lists.is_full() {
                    lists.forget(B2);
                }
            }
        }
        // Pages may have moved within their lists meanwhile.
        let place = self.lists.places[at(page)];
        let to = match list {
            B1 => {
                self.lists.learn(B1);
                self.lists.b1.remove(place.slot());
                T2
            }
            B2 => {
                self.lists.learn(B2);
                self.lists.b2.remove(place.slot());
                T2
            }
            _ => T1,
        };
        self.lists.put(to, page);
        false
    }

    #[inline]
    fn soon(&self, page: u32) {
        flat::soon(&self.lists.places, page);
    }
}
