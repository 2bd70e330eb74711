//! 2Q: a page must come back before it is kept.

use super::{About, Parameter, Policy, Setup};
use crate::flat;
use crate::number::{at, part};
use crate::queue::{Place, Queue, pop, push};

pub(super) static ABOUT: About = About {
    name: "2q",
    summary: "New pages wait in a queue; only those that come back after they left it enter the LRU list.",
    source: "Johnson, Shasha, \"2Q: a low overhead high performance buffer management replacement algorithm\", VLDB 1994 (full version)",
    parameters: &[
        Parameter {
            name: "in",
            help: "size of the queue of new pages, share of memory",
            default: 0.25,
            least: 0.0,
            most: 1.0,
        },
        Parameter {
            name: "out",
            help: "pages remembered after they left it, share of memory",
            default: 0.5,
            least: 0.0,
            most: 10.0,
        },
    ],
    make: |setup| Box::new(TwoQ::new(setup)),
};

const IN: u32 = 1;
const MAIN: u32 = 2;
const OUT: u32 = 3;

struct TwoQ {
    places: Vec<Place>,
    new: Queue,
    main: Queue,
    out: Queue,
    size: u32,
    new_size: u32,
    out_size: u32,
}

impl TwoQ {
    fn new(setup: Setup<'_>) -> Self {
        let room = setup.size.min(setup.pages);
        let out = part(setup.size, setup.value(1), 1, u32::MAX);
        Self {
            places: flat::zeroed(at(setup.pages)),
            new: Queue::new(room),
            main: Queue::new(room),
            out: Queue::new(out.min(setup.pages)),
            size: setup.size,
            new_size: part(setup.size, setup.value(0), 1, setup.size),
            out_size: out,
        }
    }

    /// Makes room for one page.
    fn reclaim(&mut self) {
        if self.new.len() + self.main.len() < self.size {
            return;
        }
        if self.new.len() > self.new_size || self.main.len() == 0 {
            let Some(page) = self.new.pop() else { return };
            if self.out.len() == self.out_size {
                pop(&mut self.out, &mut self.places);
            }
            push(&mut self.out, OUT, page, &mut self.places);
        } else {
            pop(&mut self.main, &mut self.places);
        }
    }
}

impl Policy for TwoQ {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let place = self.places[at(page)];
        match place.list() {
            IN => true,
            MAIN => {
                self.main.remove(place.slot());
                push(&mut self.main, MAIN, page, &mut self.places);
                true
            }
            OUT => {
                self.out.remove(place.slot());
                self.places[at(page)] = Place::default();
                self.reclaim();
                push(&mut self.main, MAIN, page, &mut self.places);
                false
            }
            _ => {
                self.reclaim();
                push(&mut self.new, IN, page, &mut self.places);
                false
            }
        }
    }

    #[inline]
    fn soon(&self, page: u32) {
        flat::soon(&self.places, page);
    }
}
