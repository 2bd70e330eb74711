//! S3-FIFO: a small queue that filters, a main queue with second chances, and a ghost queue.
//!
//! Pages enter the ghost queue in the order in which they entered the small queue, except those that move on to the
//! main queue. So both queues share one numbering of arrivals: first the ghosts, then the pages of the small queue.
//! Going from the small queue to the ghosts moves nothing. A forgotten page needs no change, because it arrived before
//! the first ghost. A bit for each arrival is cleared when the page leaves for the main queue. Future arrivals count as
//! present, so an arrival changes no bit.

use super::{About, Parameter, Policy, Setup};
use crate::flat;
use crate::number::{at, low32, narrow, part, whole};

pub(super) static ABOUT: About = About {
    name: "s3-fifo",
    summary: "New pages pass a small queue; those used there go on to the main queue, the others are only remembered.",
    source: "Yang, Zhang, Qiu, Yue, Vigfusson, \"FIFO queues are all you need for cache eviction\", SOSP 2023. As in libCacheSim (2024): the ghost queue remembers ghost × memory pages, a page moves on after `move` uses, and starts in the main queue with no use counted. The small queue has at least one page here.",
    parameters: &[
        Parameter {
            name: "small",
            help: "size of the small queue, share of memory",
            default: 0.1,
            least: 0.0001,
            most: 0.99,
        },
        Parameter {
            name: "ghost",
            help: "pages remembered after eviction, share of memory",
            default: 0.9,
            least: 0.0,
            most: 10.0,
        },
        Parameter {
            name: "move",
            help: "uses in the small queue that move a page on",
            default: 2.0,
            least: 1.0,
            most: 3.0,
        },
    ],
    make: |setup| Box::new(S3Fifo::new(setup)),
};

const SMALL: u8 = 1 << 6;
const MAIN: u8 = 2 << 6;
const GHOST: u8 = 3 << 6;
const USES: u8 = 63;
/// Maximum number of uses that are counted for a page.
const MAX_USES: u8 = 3;
/// Number of arrival numbers for each page.
const SLOTS_PER_PAGE: u64 = 4;

struct S3Fifo {
    /// For each page, its queue in the upper two bits and its number of uses in the lower bits. A forgotten page is
    /// still marked as a ghost.
    state: Vec<u8>,
    /// For each page in the small queue or the ghost queue, the number of its last arrival.
    arrivals: Vec<u32>,
    /// One bit per arrival number, cleared when the page moves to the main queue.
    present: Vec<u64>,
    /// Arrival number of the first ghost.
    first_ghost: u32,
    /// Arrival number of the first page in the small queue.
    first_small: u32,
    /// Number of the next arrival.
    next: u32,
    ghosts: u32,
    most_ghosts: u32,
    small: Ring,
    main: Ring,
    size: u32,
    main_size: u32,
    move_at: u8,
}

impl S3Fifo {
    fn new(setup: Setup<'_>) -> Self {
        let size = setup.size;
        let small = part(size, setup.value(0), 1, size);
        let capacity = size.min(setup.pages);
        let arrivals = low32((u64::from(setup.pages) * SLOTS_PER_PAGE).clamp(256, 1 << 31));
        Self {
            state: flat::zeroed(at(setup.pages)),
            arrivals: flat::zeroed(at(setup.pages)),
            present: flat::filled(u64::MAX, at(arrivals / 64)),
            first_ghost: 0,
            first_small: 0,
            next: 0,
            ghosts: 0,
            most_ghosts: part(size, setup.value(1), 0, u32::MAX),
            small: Ring::new(capacity),
            main: Ring::new(capacity),
            size,
            main_size: size - small,
            move_at: u8::try_from(whole(setup.value(2))).unwrap_or(1),
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn evict(&mut self) {
        if self.main.len > self.main_size || self.small.len == 0 {
            self.evict_main();
        } else {
            self.evict_small();
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn evict_small(&mut self) {
        while self.small.len > 0 {
            let page = self.small.pop();
            let arrival = self.first_small;
            self.first_small += 1;
            let state = &mut self.state[at(page)];
            if *state & USES < self.move_at {
                *state = GHOST;
                self.ghosts += 1;
                if self.ghosts > self.most_ghosts {
                    self.forget_first();
                }
                return;
            }
            *state = MAIN;
            self.leave(arrival);
            self.main.push(page);
        }
    }

    /// Marks an arrival as moved to the main queue.
    #[inline]
    fn leave(&mut self, arrival: u32) {
        self.present[at(arrival >> 6)] &= !(1 << (arrival & 63));
    }

    /// Forgets the oldest ghost.
    #[inline]
    fn forget_first(&mut self) {
        let mut word = at(self.first_ghost >> 6);
        let mut bits = self.present[word] & (u64::MAX << (self.first_ghost & 63));
        while bits == 0 {
            word += 1;
            bits = self.present[word];
        }
        self.first_ghost = narrow(word * 64) + bits.trailing_zeros() + 1;
        self.ghosts -= 1;
    }

    #[inline(never)]
    fn evict_main(&mut self) {
        while self.main.len > 0 {
            let page = self.main.pop();
            let state = &mut self.state[at(page)];
            let uses = *state & USES;
            if uses == 0 {
                *state = 0;
                return;
            }
            *state = MAIN | (uses - 1);
            self.main.push(page);
        }
    }

    /// Renumbers the arrivals in use from 0 without gaps, so that later numbers are free again.
    #[cold]
    fn compact(&mut self) {
        let first = self.first_ghost;
        let word = at(first >> 6);
        self.present[..word].fill(0);
        if let Some(bits) = self.present.get_mut(word) {
            *bits &= u64::MAX << (first & 63);
        }
        let mut before = Vec::with_capacity(self.present.len());
        let mut sum = 0;
        for bits in &self.present {
            before.push(sum);
            sum += bits.count_ones();
        }
        for (state, arrival) in self.state.iter_mut().zip(&mut self.arrivals) {
            match *state & !USES {
                SMALL | GHOST if *arrival >= first => {
                    let earlier = self.present[at(*arrival >> 6)] & ((1 << (*arrival & 63)) - 1);
                    *arrival = before[at(*arrival >> 6)] + earlier.count_ones();
                }
                GHOST => *state = 0,
                _ => {}
            }
        }
        self.present.fill(u64::MAX);
        (self.first_ghost, self.first_small, self.next) = (0, self.ghosts, sum);
    }
}

impl Policy for S3Fifo {
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn touch(&mut self, page: u32) -> bool {
        let state = self.state[at(page)];
        if (SMALL..GHOST).contains(&state) {
            self.state[at(page)] = state + u8::from(state & USES < MAX_USES);
            return true;
        }
        let arrival = self.arrivals[at(page)];
        let known = state == GHOST && arrival >= self.first_ghost;
        if known {
            self.leave(arrival);
            self.ghosts -= 1;
        }
        // The page is in no queue while another page is evicted for it.
        self.state[at(page)] = 0;
        while self.small.len + self.main.len >= self.size {
            self.evict();
        }
        if known {
            self.state[at(page)] = MAIN;
            self.main.push(page);
            return false;
        }
        if at(self.next >> 6) == self.present.len() {
            self.compact();
        }
        self.state[at(page)] = SMALL;
        self.arrivals[at(page)] = self.next;
        self.next += 1;
        self.small.push(page);
        false
    }

    fn held(&mut self, page: u32) -> bool {
        (SMALL..GHOST).contains(&self.state[at(page)])
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.state, page);
        flat::prefetch(&self.arrivals, page);
    }
}

/// A FIFO queue of pages with a fixed capacity (ring buffer).
struct Ring {
    pages: Vec<u32>,
    head: u32,
    len: u32,
}

impl Ring {
    fn new(capacity: u32) -> Self {
        Self {
            pages: flat::zeroed(at(capacity) + 1),
            head: 0,
            len: 0,
        }
    }

    #[inline]
    fn push(&mut self, page: u32) {
        let mut slot = at(self.head) + at(self.len);
        if slot >= self.pages.len() {
            slot -= self.pages.len();
        }
        self.pages[slot] = page;
        self.len += 1;
    }

    #[inline]
    fn pop(&mut self) -> u32 {
        let page = self.pages[at(self.head)];
        self.head += 1;
        if at(self.head) == self.pages.len() {
            self.head = 0;
        }
        self.len -= 1;
        page
    }
}
