//! W-TinyLFU: a window, a segmented main part, and a vote by frequency at the door between them.

use super::{About, Parameter, Policy, Setup};
use crate::flat;
use crate::number::{at, part};
use crate::queue::{Place, Queue, pop, push};

pub(super) static ABOUT: About = About {
    name: "w-tinylfu",
    summary: "New pages pass an LRU window; at its end the more frequent of newcomer and victim stays.",
    source: "Einziger, Friedman, Manes, \"TinyLFU: a highly efficient cache admission policy\", ACM TOS 13(4), 2017. Frequencies are counted exactly, up to 15, not sketched; they are halved every 10 × memory increments.",
    parameters: &[
        Parameter {
            name: "window",
            help: "size of the window, share of memory",
            default: 0.01,
            least: 0.0,
            most: 1.0,
        },
        Parameter {
            name: "protected",
            help: "size of the protected segment, share of the main part",
            default: 0.8,
            least: 0.0,
            most: 1.0,
        },
    ],
    make: |setup| Box::new(WTinyLfu::new(setup)),
};

const WINDOW: u32 = 1;
const PROBATION: u32 = 2;
const PROTECTED: u32 = 3;
const MOST_USES: u8 = 15;

struct WTinyLfu {
    places: Vec<Place>,
    uses: Vec<u8>,
    window: Queue,
    probation: Queue,
    protected: Queue,
    window_size: u32,
    main_size: u32,
    protected_size: u32,
    counted: u64,
    period: u64,
}

impl WTinyLfu {
    fn new(setup: Setup<'_>) -> Self {
        let window = part(setup.size, setup.value(0), 1, setup.size);
        let main = setup.size - window;
        let room = setup.size.min(setup.pages);
        Self {
            places: flat::zeroed(at(setup.pages)),
            uses: flat::zeroed(at(setup.pages)),
            window: Queue::new(window.min(setup.pages)),
            probation: Queue::new(room),
            protected: Queue::new(room),
            window_size: window,
            main_size: main,
            protected_size: part(main, setup.value(1), 0, main),
            counted: 0,
            period: 10 * u64::from(setup.size),
        }
    }

    fn count(&mut self, page: u32) {
        let uses = &mut self.uses[at(page)];
        if *uses == MOST_USES {
            return;
        }
        *uses += 1;
        self.counted += 1;
        if self.counted == self.period {
            self.uses.iter_mut().for_each(|uses| *uses >>= 1);
            self.counted /= 2;
        }
    }

    /// Lets the window's oldest page into the main part, or not.
    fn leave_window(&mut self) {
        let Some(page) = pop(&mut self.window, &mut self.places) else {
            return;
        };
        if self.probation.len() + self.protected.len() < self.main_size {
            push(&mut self.probation, PROBATION, page, &mut self.places);
            return;
        }
        let from_probation = self.probation.len() > 0;
        let main = if from_probation {
            &mut self.probation
        } else {
            &mut self.protected
        };
        let Some(slot) = main.oldest() else { return };
        let victim = main.page(slot);
        if self.uses[at(page)] > self.uses[at(victim)] {
            pop(main, &mut self.places);
            push(&mut self.probation, PROBATION, page, &mut self.places);
        }
    }
}

impl Policy for WTinyLfu {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        self.count(page);
        let place = self.places[at(page)];
        match place.list() {
            WINDOW => {
                self.window.remove(place.slot());
                push(&mut self.window, WINDOW, page, &mut self.places);
                true
            }
            PROBATION => {
                self.probation.remove(place.slot());
                push(&mut self.protected, PROTECTED, page, &mut self.places);
                if self.protected.len() > self.protected_size
                    && let Some(oldest) = pop(&mut self.protected, &mut self.places)
                {
                    push(&mut self.probation, PROBATION, oldest, &mut self.places);
                }
                true
            }
            PROTECTED => {
                self.protected.remove(place.slot());
                push(&mut self.protected, PROTECTED, page, &mut self.places);
                true
            }
            _ => {
                push(&mut self.window, WINDOW, page, &mut self.places);
                if self.window.len() > self.window_size {
                    self.leave_window();
                }
                false
            }
        }
    }

    #[inline]
    fn soon(&self, page: u32) {
        flat::soon(&self.places, page);
        flat::soon(&self.uses, page);
    }
}
