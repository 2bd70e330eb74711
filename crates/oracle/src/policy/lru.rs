//! LRU: evicts the page whose last use is the longest ago.
//!
//! Memory is a window over time: it contains the pages whose last use is in the window. Each time in the window has a
//! bit, set if it is still the last use of a page. Eviction moves the start of the window past the first such bit.
//! Nothing is unlinked or marked as absent: a reference updates the time of its page's last use and changes two bits.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::{at, low32, narrow};

pub(super) static ABOUT: About = About {
    name: "lru",
    summary: "Evicts the page that was not used for longest.",
    source: "Mattson, Gecsei, Slutz, Traiger, \"Evaluation techniques for storage hierarchies\", IBM Systems Journal 9(2), 1970",
    parameters: &[],
    make: |setup| Box::new(Lru::new(setup)),
};

/// Size of the time axis: number of times for each page of the string. Each time takes one bit.
const SLOTS_PER_PAGE: u64 = 8;

struct Lru {
    /// For each page, the time of its last use, from 1; 0 if it was never used.
    last: Vec<u32>,
    /// A bit for each time, set if it is a page's last use.
    live: Vec<u64>,
    /// First time in the window.
    start: u32,
    /// Time of the next reference.
    now: u32,
    /// Number of free pages of memory.
    free: u32,
}

impl Lru {
    fn new(setup: Setup<'_>) -> Self {
        let capacity = low32((u64::from(setup.pages) * SLOTS_PER_PAGE).clamp(256, 1 << 31));
        Self {
            last: flat::zeroed(at(setup.pages)),
            live: flat::zeroed(at(capacity / 64)),
            start: 1,
            now: 1,
            free: setup.size,
        }
    }
}

/// Returns the first time in the words after `word` that is a page's last use.
#[cold]
fn first_beyond(live: &[u64], word: usize) -> u32 {
    let mut word = word + 1;
    while live[word] == 0 {
        word += 1;
    }
    narrow(word * 64) + live[word].trailing_zeros()
}

/// Renumbers the last uses at or after `start` from 1 without gaps, so that later times are free again. Returns the
/// next free time.
#[cold]
fn compact(last: &mut [u32], live: &mut [u64], start: u32) -> u32 {
    let first = at(start >> 6);
    live[..first].fill(0);
    live[first] &= u64::MAX << (start & 63);
    let mut before = Vec::with_capacity(live.len());
    let mut sum = 1;
    for bits in &*live {
        before.push(sum);
        sum += bits.count_ones();
    }
    for last in last {
        let time = *last;
        *last = if time >= start {
            let earlier = live[at(time >> 6)] & ((1 << (time & 63)) - 1);
            before[at(time >> 6)] + earlier.count_ones()
        } else {
            0
        };
    }
    // Set the bits of the times from 1 to `sum` − 1.
    let words = at(sum >> 6);
    live[..words].fill(u64::MAX);
    live[words..].fill(0);
    live[words] = (1 << (sum & 63)) - 1;
    sum
}

impl Policy for Lru {
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn touch(&mut self, page: u32) -> bool {
        if at(self.now >> 6) == self.live.len() {
            self.now = compact(&mut self.last, &mut self.live, self.start);
            self.start = 1;
        }
        let now = self.now;
        let last = std::mem::replace(&mut self.last[at(page)], now);
        self.live[at(now >> 6)] |= 1 << (now & 63);
        self.now += 1;
        let hit = last >= self.start;
        // The bit of an evicted page is before the window, where bits are never read.
        self.live[at(last >> 6)] &= !(1 << (last & 63));
        if self.free > 0 {
            self.free -= u32::from(!hit);
            return hit;
        }
        // Hits are hard to predict, so the start of the window is moved without a branch.
        let word = self.start & !63;
        let bits = self.live[at(word >> 6)] & (u64::MAX << (self.start & 63));
        let next = if bits == 0 && !hit {
            first_beyond(&self.live, at(word >> 6))
        } else {
            word + bits.trailing_zeros()
        };
        self.start = if hit { self.start } else { next + 1 };
        hit
    }

    fn held(&mut self, page: u32) -> bool {
        self.last[at(page)] >= self.start
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.last, page);
    }

    #[inline]
    fn prefetch_next(&self, page: u32) {
        flat::prefetch(&self.live, self.last[at(page)] >> 6);
    }
}
