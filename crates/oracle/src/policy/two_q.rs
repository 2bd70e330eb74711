//! 2Q: a page enters the LRU list only if it is used again after it left the queue of new pages.

use super::{About, Parameter, Policy, Setup};
use crate::lists::Lists;
use crate::number::part;
use crate::queue::Position;

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
    lists: Lists<3>,
    size: u32,
    new_size: u32,
    out_size: u32,
}

impl TwoQ {
    fn new(setup: Setup<'_>) -> Self {
        let out = part(setup.size, setup.value(1), 1, u32::MAX);
        Self {
            lists: Lists::new(setup.pages, setup.size.saturating_add(out).saturating_add(1)),
            size: setup.size,
            new_size: part(setup.size, setup.value(0), 1, setup.size),
            out_size: out,
        }
    }

    /// Evicts a page if memory is full.
    fn reclaim(&mut self) {
        let lists = &mut self.lists;
        if lists.len(IN) + lists.len(MAIN) < self.size {
            return;
        }
        if lists.len(IN) > self.new_size || lists.len(MAIN) == 0 {
            let Some(page) = lists.pop(IN) else { return };
            if lists.len(OUT) == self.out_size {
                lists.forget(OUT);
            }
            lists.append(OUT, page);
        } else {
            lists.forget(MAIN);
        }
    }

    /// Processes a reference to a page that is not in memory.
    fn miss(&mut self, page: u32, place: Position) {
        let known = place.list() == OUT;
        if known {
            self.lists.take(place);
        }
        self.reclaim();
        self.lists.append(if known { MAIN } else { IN }, page);
    }
}

impl Policy for TwoQ {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let place = self.lists.place(page);
        match place.list() {
            IN => true,
            MAIN => {
                self.lists.renew(MAIN, page, place);
                true
            }
            _ => {
                self.miss(page, place);
                false
            }
        }
    }

    fn held(&mut self, page: u32) -> bool {
        matches!(self.lists.place(page).list(), IN | MAIN)
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        self.lists.prefetch(page);
    }

    #[inline]
    fn prefetch_next(&self, page: u32) {
        self.lists.prefetch_next(page);
    }
}
