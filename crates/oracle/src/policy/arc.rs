//! ARC: recency and frequency, with a balance that adapts.
//!
//! Pages leave T1 for B1, and T2 for B2, in the order in which they arrived. So T1 and B1 together are one window over
//! time. Pages that arrived at or after a certain time are in memory (T1). Pages that arrived earlier, back to the
//! start of the window, are only remembered (B1). T2 and B2 are another such window. Evicting or forgetting a page
//! moves one of these times past the next page of its window. Nothing needs to be stored for the page itself. Both
//! windows share one time axis. Each window has a bit for each time, set if a page of the window still has this time.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::{at, low32, narrow};

pub(super) static ABOUT: About = About {
    name: "arc",
    summary: "Two LRU lists, of pages used once and more often, whose shares follow what would have been hits.",
    source: "Megiddo, Modha, \"ARC: a self-tuning, low overhead replacement cache\", FAST 2003, figure 4. The target is a real number, as in libCacheSim.",
    parameters: &[],
    make: |setup| Box::new(Arc::new(setup)),
};

/// Index of the window of pages that were used once recently: T1 and B1.
const ONCE: u32 = 0;
/// Index of the window of pages that were used more than once recently: T2 and B2.
const OFTEN: u32 = 1;

/// Size of the time axis: number of times for each page.
const SLOTS_PER_PAGE: u64 = 8;

struct Arc {
    /// For each page, twice the time of its last append (from 1) plus the index of its window; 0 if it was never used.
    last: Vec<u32>,
    /// For each word of 64 times and each window: one bit per time, set if a page of the window has this time.
    live: Vec<[u64; 2]>,
    /// For each window, the time from which on its pages are in memory.
    held: [u32; 2],
    /// For each window, the time from which on its pages are remembered or in memory.
    known: [u32; 2],
    /// For each window, the number of pages in memory (T1, T2).
    inside: [u32; 2],
    /// For each window, the number of pages that are only remembered (B1, B2).
    ghosts: [u32; 2],
    now: u32,
    size: u32,
    /// The paper's p: the target size of T1 in pages.
    target: f64,
}

impl Arc {
    fn new(setup: Setup<'_>) -> Self {
        // A time is stored in 31 bits.
        let capacity = low32((u64::from(setup.pages) * SLOTS_PER_PAGE).clamp(256, 1 << 31));
        Self {
            last: flat::zeroed(at(setup.pages)),
            live: flat::filled([0; 2], at(capacity / 64)),
            held: [1; 2],
            known: [1; 2],
            inside: [0; 2],
            ghosts: [0; 2],
            now: 1,
            size: setup.size,
            target: 0.0,
        }
    }

    #[inline]
    fn clear(&mut self, time: u32, window: u32) {
        self.live[at(time >> 6)][at(window)] &= !(1 << (time & 63));
    }

    #[inline]
    fn set(&mut self, window: u32) {
        self.live[at(self.now >> 6)][at(window)] |= 1 << (self.now & 63);
    }

    /// Finds the first page of a window at or after `time`, and returns the time after this page.
    #[inline]
    fn behind(&self, window: u32, time: u32) -> u32 {
        let mut word = at(time >> 6);
        let mut bits = self.live[word][at(window)] & (u64::MAX << (time & 63));
        while bits == 0 {
            word += 1;
            bits = self.live[word][at(window)];
        }
        narrow(word * 64) + bits.trailing_zeros() + 1
    }

    /// Evicts the oldest page of a window that is in memory. The page stays remembered.
    fn evict(&mut self, window: u32) {
        self.held[at(window)] = self.behind(window, self.held[at(window)]);
        self.inside[at(window)] -= 1;
        self.ghosts[at(window)] += 1;
    }

    /// Forgets the oldest remembered page of a window.
    fn forget(&mut self, window: u32) {
        self.known[at(window)] = self.behind(window, self.known[at(window)]);
        self.ghosts[at(window)] -= 1;
    }

    /// Adapts p after a hit in B1 or B2: the list in memory from which the page was evicted should have been larger.
    fn learn(&mut self, window: u32) {
        let [b1, b2] = self.ghosts.map(f64::from);
        self.target = if window == ONCE {
            (self.target + (b2 / b1).max(1.0)).min(f64::from(self.size))
        } else {
            (self.target - (b1 / b2).max(1.0)).max(0.0)
        };
    }

    /// The paper's REPLACE: evicts the oldest page of T1 or T2, depending on p.
    fn replace(&mut self, in_b2: bool) {
        let t1 = f64::from(self.inside[0]);
        #[expect(clippy::float_cmp, reason = "the paper compares them as they are")]
        let from_t1 = t1 > 0.0 && (t1 > self.target || (in_b2 && t1 == self.target));
        if from_t1 || self.inside[1] == 0 {
            self.evict(ONCE);
        } else {
            self.evict(OFTEN);
        }
    }

    /// The paper's case IV: makes space for a page that is in no list.
    fn evict_or_forget(&mut self) {
        let ([t1, t2], [b1, b2]) = (self.inside, self.ghosts);
        if t1 + t2 < self.size {
            return;
        }
        if t1 + b1 < self.size {
            let all = u64::from(t1) + u64::from(t2) + u64::from(b1) + u64::from(b2);
            if all >= 2 * u64::from(self.size) && b2 > 0 {
                self.forget(OFTEN);
            }
        } else if b1 > 0 {
            self.forget(ONCE);
        } else {
            self.evict(ONCE);
            self.forget(ONCE);
            return;
        }
        self.replace(false);
    }

    /// Processes a reference to a page that is not in memory. `window` and `time` tell where and when it was last
    /// appended.
    #[inline(never)]
    fn miss(&mut self, page: u32, window: u32, time: u32) {
        if time >= self.known[at(window)] {
            self.learn(window);
            self.clear(time, window);
            self.ghosts[at(window)] -= 1;
            self.replace(window == OFTEN);
            self.set(OFTEN);
            self.inside[1] += 1;
        } else {
            self.evict_or_forget();
            self.last[at(page)] = self.now << 1 | ONCE;
            self.set(ONCE);
            self.inside[0] += 1;
        }
        self.now += 1;
    }

    /// Renumbers the times of the pages in the windows from 1 without gaps, so that later times are free again.
    #[cold]
    fn compact(&mut self) {
        for (window, &known) in self.known.iter().enumerate() {
            let first = at(known >> 6);
            let words = self.live.iter_mut().map(|both| &mut both[window]);
            for (place, bits) in words.enumerate().take(first + 1) {
                *bits &= if place < first {
                    0
                } else {
                    u64::MAX << (known & 63)
                };
            }
        }
        let mut before = Vec::with_capacity(self.live.len() + 1);
        let mut sum = 1;
        for [once, often] in &self.live {
            before.push(sum);
            sum += (once | often).count_ones();
        }
        before.push(sum);
        let live = &self.live;
        let renewed = |time: u32| {
            let [once, often] = live.get(at(time >> 6)).copied().unwrap_or_default();
            let earlier = (once | often) & ((1 << (time & 63)) - 1);
            before[at(time >> 6)] + earlier.count_ones()
        };
        for last in &mut self.last {
            let (window, time) = (*last & 1, *last >> 1);
            *last = if time >= self.known[at(window)] {
                renewed(time) << 1 | window
            } else {
                0
            };
        }
        self.held = self.held.map(renewed);
        self.known = self.known.map(renewed);
        self.now = sum;
        self.live.fill([0; 2]);
        for &last in self.last.iter().filter(|last| **last != 0) {
            let (window, time) = (last & 1, last >> 1);
            self.live[at(time >> 6)][at(window)] |= 1 << (time & 63);
        }
    }
}

impl Policy for Arc {
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn touch(&mut self, page: u32) -> bool {
        if at(self.now >> 6) == self.live.len() {
            self.compact();
        }
        let last = std::mem::replace(&mut self.last[at(page)], self.now << 1 | OFTEN);
        let (window, time) = (last & 1, last >> 1);
        if time < self.held[at(window)] {
            self.miss(page, window, time);
            return false;
        }
        self.clear(time, window);
        self.set(OFTEN);
        let moved = window ^ 1;
        self.inside[0] -= moved;
        self.inside[1] += moved;
        self.now += 1;
        true
    }

    fn held(&mut self, page: u32) -> bool {
        let last = self.last[at(page)];
        last >> 1 >= self.held[at(last & 1)]
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.last, page);
    }

    #[inline]
    fn prefetch_next(&self, page: u32) {
        flat::prefetch(&self.live, self.last[at(page)] >> 7);
    }
}
