//! LIRS: pages are ranked by the distance between their last two uses.
//!
//! The paper and libCacheSim differ if a page is used that is in the queue and no longer in the stack. The paper puts
//! this page on the stack and changes no page's kind. libCacheSim also moves the lowest LIR page of the stack to the
//! end of the queue, which evicts the oldest page of the queue. If this is the page in use, it then counts as in
//! memory, because it is in the stack, although it uses no memory. There is one LIR page too few until another page
//! becomes LIR, so the next new page becomes LIR at once. `demote=1` does the same as libCacheSim, and gives equal
//! hits.

use super::{About, Parameter, Policy, Setup};
use crate::flat;
use crate::number::{at, part};
use crate::queue::{Position, Queue, pop, push};

pub(super) static ABOUT: About = About {
    name: "lirs",
    summary: "Keeps pages whose last two uses were close together; a small queue serves the others.",
    source: "Jiang, Zhang, \"LIRS: an efficient low inter-reference recency set replacement policy\", SIGMETRICS 2002. The stack holds at most stack × memory pages; beyond, those evicted first are forgotten. A hit on a queued page that left the stack changes no page's kind, as in the paper; libCacheSim demotes the lowest page of the stack there, as does demote=1.",
    parameters: &[
        Parameter {
            name: "queue",
            help: "size of the queue, share of memory",
            default: 0.01,
            least: 0.0,
            most: 0.99,
        },
        Parameter {
            name: "stack",
            help: "most pages in the stack, multiple of memory",
            default: 2.0,
            least: 1.0,
            most: 100.0,
        },
        Parameter {
            name: "demote",
            help: "1 as in libCacheSim: a hit on a queued page that left the stack demotes another",
            default: 0.0,
            least: 0.0,
            most: 1.0,
        },
    ],
    make: |setup| Box::new(Lirs::new(setup)),
};

/// Kind of a page in the stack: in memory, used again after a short distance.
const LIR: u32 = 1;
/// Kind of a page in the stack: in memory, and in the queue from which pages are evicted.
const HIR: u32 = 2;
/// Kind of a page in the stack: not in memory, only remembered.
const GHOST: u32 = 3;
/// Number of the queue of HIR pages in memory.
const QUEUED: u32 = 1;
/// Number of the list of ghosts, whose oldest page is forgotten next.
const FORGOTTEN_NEXT: u32 = 2;

/// LIRS. LIR pages are in memory. HIR pages are in memory and in the queue. Ghosts are HIR pages that are not in
/// memory.
struct Lirs {
    /// For each page, its kind and its slot in the stack.
    stacked: Vec<Position>,
    /// For each page, its slot in the queue or in the list of ghosts.
    listed: Vec<Position>,
    stack: Queue,
    queue: Queue,
    ghosts: Queue,
    lir: u32,
    most_lir: u32,
    most_queued: u32,
    most_stacked: u32,
    demotes: bool,
}

impl Lirs {
    fn new(setup: Setup<'_>) -> Self {
        let size = setup.size;
        let queued = part(size, setup.value(0), 1, size);
        let stacked = part(size, setup.value(1), size, u32::MAX - 1);
        let capacity = setup.pages.min(stacked.saturating_add(1));
        Self {
            stacked: flat::zeroed(at(setup.pages)),
            listed: flat::zeroed(at(setup.pages)),
            stack: Queue::new(capacity),
            queue: Queue::new(queued.saturating_add(1).min(setup.pages)),
            ghosts: Queue::new(capacity),
            lir: 0,
            most_lir: size - queued,
            most_queued: queued,
            most_stacked: stacked,
            demotes: setup.value(2) >= 0.5,
        }
    }

    /// Moves a page to the top of the stack, with this kind.
    fn push_stack(&mut self, page: u32, kind: u32) {
        let place = self.stacked[at(page)];
        if place.list() != 0 {
            self.stack.remove(place.slot());
            self.stacked[at(page)] = Position::default();
        }
        let stacked = &mut self.stacked;
        let slot = self.stack.push(page, |page, slot| {
            stacked[at(page)] = Position::new(stacked[at(page)].list(), slot);
        });
        self.stacked[at(page)] = Position::new(kind, slot);
    }

    fn set_kind(&mut self, page: u32, kind: u32) {
        self.stacked[at(page)] = Position::new(kind, self.stacked[at(page)].slot());
    }

    /// Removes all pages below the lowest LIR page from the stack.
    fn prune(&mut self) {
        while let Some(slot) = self.stack.oldest() {
            let page = self.stack.page(slot);
            match self.stacked[at(page)].list() {
                LIR => return,
                GHOST => {
                    self.ghosts.remove(self.listed[at(page)].slot());
                    self.listed[at(page)] = Position::default();
                }
                _ => {}
            }
            pop(&mut self.stack, &mut self.stacked);
        }
    }

    /// Turns the lowest LIR page of the stack into a HIR page at the end of the queue.
    fn demote(&mut self) {
        if let Some(page) = pop(&mut self.stack, &mut self.stacked) {
            self.lir -= 1;
            if self.queue.len() == self.most_queued {
                self.evict();
            }
            push(&mut self.queue, QUEUED, page, &mut self.listed);
        }
        self.prune();
    }

    /// Evicts the oldest page of the queue.
    fn evict(&mut self) {
        if let Some(page) = pop(&mut self.queue, &mut self.listed)
            && self.stacked[at(page)].list() == HIR
        {
            self.set_kind(page, GHOST);
            push(&mut self.ghosts, FORGOTTEN_NEXT, page, &mut self.listed);
        }
    }

    fn promote(&mut self, page: u32) {
        self.push_stack(page, LIR);
        self.lir += 1;
        if self.lir > self.most_lir {
            self.demote();
        }
    }

    fn miss(&mut self, page: u32, known: bool) {
        if known {
            let place = std::mem::take(&mut self.listed[at(page)]);
            self.ghosts.remove(place.slot());
        }
        if self.lir < self.most_lir {
            self.push_stack(page, LIR);
            self.lir += 1;
            return;
        }
        if self.queue.len() == self.most_queued {
            self.evict();
        }
        if known {
            self.promote(page);
        } else {
            if self.most_lir > 0 {
                self.push_stack(page, HIR);
            }
            push(&mut self.queue, QUEUED, page, &mut self.listed);
        }
        self.limit_stack();
    }

    /// Processes a hit on a page that is in the queue and not in the stack.
    fn hit_queued(&mut self, page: u32) {
        self.queue.remove(self.listed[at(page)].slot());
        push(&mut self.queue, QUEUED, page, &mut self.listed);
        if self.demotes && self.lir == self.most_lir {
            self.demote();
        }
        if self.most_lir > 0 {
            self.push_stack(page, HIR);
        }
        self.limit_stack();
    }

    /// Forgets the oldest ghosts while the stack is too long.
    fn limit_stack(&mut self) {
        while self.stack.len() > self.most_stacked {
            let Some(oldest) = pop(&mut self.ghosts, &mut self.listed) else {
                return;
            };
            self.stack.remove(self.stacked[at(oldest)].slot());
            self.stacked[at(oldest)] = Position::default();
        }
    }
}

impl Policy for Lirs {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        match self.stacked[at(page)].list() {
            LIR => {
                self.push_stack(page, LIR);
                self.prune();
                true
            }
            HIR => {
                // With `demote`, a page can be HIR without being in the queue.
                let place = std::mem::take(&mut self.listed[at(page)]);
                if place.list() == QUEUED {
                    self.queue.remove(place.slot());
                }
                self.promote(page);
                true
            }
            GHOST => {
                self.miss(page, true);
                false
            }
            _ if self.listed[at(page)].list() == QUEUED => {
                self.hit_queued(page);
                true
            }
            _ => {
                self.miss(page, false);
                false
            }
        }
    }

    fn held(&mut self, page: u32) -> bool {
        matches!(self.stacked[at(page)].list(), LIR | HIR)
            || self.listed[at(page)].list() == QUEUED && self.stacked[at(page)].list() != GHOST
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.stacked, page);
        flat::prefetch(&self.listed, page);
    }
}
