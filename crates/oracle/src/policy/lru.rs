//! Least recently used.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;
use crate::queue::{Place, Queue, pop, push};

pub(super) static ABOUT: About = About {
    name: "lru",
    summary: "Evicts the page that was not used for longest.",
    source: "Mattson, Gecsei, Slutz, Traiger, \"Evaluation techniques for storage hierarchies\", IBM Systems Journal 9(2), 1970",
    parameters: &[],
    make: |setup| Box::new(Lru::new(setup)),
};

struct Lru {
    places: Vec<Place>,
    pages: Queue,
    size: u32,
}

impl Lru {
    fn new(setup: Setup<'_>) -> Self {
        Self {
            places: flat::zeroed(at(setup.pages)),
            pages: Queue::new(setup.size.min(setup.pages)),
            size: setup.size,
        }
    }
}

impl Policy for Lru {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let place = self.places[at(page)];
        let hit = place != Place::default();
        if hit {
            self.pages.remove(place.slot());
        } else if self.pages.len() == self.size {
            pop(&mut self.pages, &mut self.places);
        }
        push(&mut self.pages, 1, page, &mut self.places);
        hit
    }

    #[inline]
    fn soon(&self, page: u32) {
        flat::soon(&self.places, page);
    }
}
