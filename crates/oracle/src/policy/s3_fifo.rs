//! S3-FIFO: a small queue that filters, a main queue with second chances, and a ghost queue.

use super::{About, Parameter, Policy, Setup};
use crate::flat;
use crate::number::{at, part, whole};
use crate::queue::Queue;

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
/// Uses beyond this make no difference.
const MOST_USES: u8 = 3;

struct S3Fifo {
    /// Queue in the upper two bits, uses in the others.
    state: Vec<u8>,
    small: Ring,
    main: Ring,
    ghost: Ghost,
    size: u32,
    main_size: u32,
    move_at: u8,
}

impl S3Fifo {
    fn new(setup: Setup<'_>) -> Self {
        let size = setup.size;
        let small = part(size, setup.value(0), 1, size);
        let room = size.min(setup.pages);
        Self {
            state: flat::zeroed(at(setup.pages)),
            small: Ring::new(room),
            main: Ring::new(room),
            ghost: Ghost::new(part(size, setup.value(1), 0, u32::MAX), setup.pages),
            size,
            main_size: size - small,
            move_at: u8::try_from(whole(setup.value(2))).unwrap_or(1),
        }
    }

    fn evict(&mut self) {
        if self.main.len > self.main_size || self.small.len == 0 {
            self.evict_main();
        } else {
            self.evict_small();
        }
    }

    fn evict_small(&mut self) {
        while self.small.len > 0 {
            let page = self.small.pop();
            let state = &mut self.state[at(page)];
            if *state & USES >= self.move_at {
                *state = MAIN;
                self.main.push(page);
            } else {
                *state = if self.ghost.size > 0 { GHOST } else { 0 };
                self.ghost.push(page, &mut self.state);
                return;
            }
        }
    }

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
}

impl Policy for S3Fifo {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let state = self.state[at(page)];
        if (SMALL..GHOST).contains(&state) {
            self.state[at(page)] = state + u8::from(state & USES < MOST_USES);
            return true;
        }
        let known = state == GHOST;
        if known {
            self.ghost.forget(page);
            self.state[at(page)] = 0;
        }
        while self.small.len + self.main.len >= self.size {
            self.evict();
        }
        if known {
            self.state[at(page)] = MAIN;
            self.main.push(page);
        } else {
            self.state[at(page)] = SMALL;
            self.small.push(page);
        }
        false
    }

    #[inline]
    fn soon(&self, page: u32) {
        flat::soon(&self.state, page);
    }
}

/// A first-in, first-out ring of known room.
struct Ring {
    pages: Vec<u32>,
    head: u32,
    len: u32,
}

impl Ring {
    fn new(room: u32) -> Self {
        Self {
            pages: flat::zeroed(at(room) + 1),
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

/// Pages that were evicted from the small queue, oldest first.
struct Ghost {
    pages: Queue,
    slots: Vec<u32>,
    size: u32,
}

impl Ghost {
    fn new(size: u32, pages: u32) -> Self {
        Self {
            pages: Queue::new(size.min(pages)),
            slots: if size > 0 {
                flat::zeroed(at(pages))
            } else {
                Vec::new()
            },
            size,
        }
    }

    fn push(&mut self, page: u32, state: &mut [u8]) {
        if self.size == 0 {
            return;
        }
        if self.pages.len() == self.size
            && let Some(oldest) = self.pages.pop()
        {
            state[at(oldest)] = 0;
        }
        let slots = &mut self.slots;
        let slot = self.pages.push(page, |page, slot| slots[at(page)] = slot);
        self.slots[at(page)] = slot;
    }

    fn forget(&mut self, page: u32) {
        self.pages.remove(self.slots[at(page)]);
    }
}
