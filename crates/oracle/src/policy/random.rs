//! Random: evicts a page chosen at random.

use pagetide_reference::Rng;

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::{at, narrow};

pub(super) static ABOUT: About = About {
    name: "random",
    summary: "Evicts a page drawn at random; the seed is fixed.",
    source: "Belady, \"A study of replacement algorithms for a virtual-storage computer\", IBM Systems Journal 5(2), 1966",
    parameters: &[],
    make: |setup| Box::new(Random::new(setup)),
};

struct Random {
    present: Vec<bool>,
    frames: Vec<u32>,
    size: usize,
    rng: Rng,
}

impl Random {
    fn new(setup: Setup<'_>) -> Self {
        Self {
            present: flat::zeroed(at(setup.pages)),
            frames: Vec::with_capacity(at(setup.size.min(setup.pages))),
            size: at(setup.size),
            rng: Rng::stream(1, "random replacement"),
        }
    }
}

impl Policy for Random {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        if self.present[at(page)] {
            return true;
        }
        self.present[at(page)] = true;
        if self.frames.len() < self.size {
            self.frames.push(page);
            return false;
        }
        let frame = self.rng.below_u32(narrow(self.size));
        let victim = std::mem::replace(&mut self.frames[at(frame)], page);
        self.present[at(victim)] = false;
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
