//! FIFO: evicts the page that has been in memory longest.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;

pub(super) static ABOUT: About = About {
    name: "fifo",
    summary: "Evicts the page that came first, whatever its use since.",
    source: "Belady, \"A study of replacement algorithms for a virtual-storage computer\", IBM Systems Journal 5(2), 1966",
    parameters: &[],
    make: |setup| Box::new(Fifo::new(setup)),
};

struct Fifo {
    present: Vec<bool>,
    ring: Vec<u32>,
    hand: usize,
    size: usize,
}

impl Fifo {
    fn new(setup: Setup<'_>) -> Self {
        Self {
            present: flat::zeroed(at(setup.pages)),
            ring: Vec::with_capacity(at(setup.size.min(setup.pages))),
            hand: 0,
            size: at(setup.size),
        }
    }
}

impl Policy for Fifo {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        if self.present[at(page)] {
            return true;
        }
        self.present[at(page)] = true;
        if self.ring.len() < self.size {
            self.ring.push(page);
            return false;
        }
        let victim = std::mem::replace(&mut self.ring[self.hand], page);
        self.present[at(victim)] = false;
        self.hand += 1;
        if self.hand == self.size {
            self.hand = 0;
        }
        false
    }

    fn held(&mut self, page: u32) -> bool {
        self.present[at(page)]
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.present, page);
    }
}
