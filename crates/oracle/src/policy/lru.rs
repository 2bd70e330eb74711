//! Least recently used.
//!
//! Memory is a window over time: it holds the pages whose last use is not before its start. To evict is to move the
//! start on, past references whose pages were used again, until it has passed a last use. Nothing is unlinked and
//! nothing marked absent: a reference reads and writes one number, its page's last use.

use super::{About, Policy, Setup};
use crate::flat::{self, AHEAD};
use crate::number::{at, low32};

pub(super) static ABOUT: About = About {
    name: "lru",
    summary: "Evicts the page that was not used for longest.",
    source: "Mattson, Gecsei, Slutz, Traiger, \"Evaluation techniques for storage hierarchies\", IBM Systems Journal 9(2), 1970",
    parameters: &[],
    make: |setup| Box::new(Lru::new(setup)),
};

/// Entries of the window for each four pages: with the time of its last use a page takes 15 bytes.
const ROOM: u64 = 11;

struct Lru {
    /// Time of each page's last use, from 1.
    last: Vec<u32>,
    /// Pages by the time of their use, from `base` on.
    uses: Vec<u32>,
    base: u32,
    /// First time in the window, and the next time.
    start: u32,
    now: u32,
    count: u32,
    size: u32,
}

impl Lru {
    fn new(setup: Setup<'_>) -> Self {
        let room = low32((u64::from(setup.pages) * ROOM / 4).clamp(1024, 1 << 30));
        Self {
            last: flat::zeroed(at(setup.pages)),
            uses: flat::zeroed(at(room)),
            base: 1,
            start: 1,
            now: 1,
            count: 0,
            size: setup.size,
        }
    }

    /// Moves the start of the window behind the first last use in it.
    #[inline]
    fn evict(&mut self) {
        loop {
            let time = self.start;
            let place = at(time - self.base);
            // Entries behind the newest are pages of an earlier round, or 0: pages all the same.
            if let Some(&page) = self.uses.get(place + AHEAD) {
                flat::soon(&self.last, page);
            }
            self.start += 1;
            if self.last[at(self.uses[place])] == time {
                return;
            }
        }
    }

    /// Gives the uses that are some page's last new times without gaps, so that there is room behind them.
    #[cold]
    fn close_up(&mut self) {
        // Times begin anew before they run out.
        if self.now > u32::MAX - 2 * crate::number::narrow(self.uses.len()) {
            let from = at(self.start - self.base)..at(self.now - self.base);
            let mut kept = 0;
            for place in from {
                let page = self.uses[place];
                if at(self.last[at(page)] - self.base) == place {
                    self.uses[kept] = page;
                    kept += 1;
                }
            }
            self.last.fill(0);
            for place in 0..kept {
                self.last[at(self.uses[place])] = crate::number::narrow(place) + 1;
            }
            (self.base, self.start) = (1, 1);
            self.now = 1 + crate::number::narrow(kept);
            return;
        }
        let base = self.now;
        let mut next = base;
        for time in self.start..self.now {
            let page = self.uses[at(time - self.base)];
            if self.last[at(page)] == time {
                self.uses[at(next - base)] = page;
                self.last[at(page)] = next;
                next += 1;
            }
        }
        (self.base, self.start, self.now) = (base, base, next);
    }
}

impl Policy for Lru {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        if at(self.now - self.base) == self.uses.len() {
            self.close_up();
        }
        let last = std::mem::replace(&mut self.last[at(page)], self.now);
        self.uses[at(self.now - self.base)] = page;
        self.now += 1;
        let hit = last >= self.start;
        if !hit {
            if self.count == self.size {
                self.evict();
            } else {
                self.count += 1;
            }
        }
        hit
    }

    #[inline]
    fn soon(&self, page: u32) {
        flat::soon(&self.last, page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_begin_anew_before_they_run_out() {
        let make = || Lru {
            last: vec![0; 300],
            uses: vec![0; 1024],
            base: 1,
            start: 1,
            now: 1,
            count: 0,
            size: 100,
        };
        let (mut young, mut old) = (make(), make());
        let late = u32::MAX - 5000;
        (old.base, old.start, old.now) = (late, late, late);
        let mut rng = pagetide_reference::Rng::new(4);
        for _ in 0..20_000 {
            let page = rng.below_u32(300);
            assert_eq!(young.touch(page), old.touch(page));
        }
        assert!(old.now < late, "times never began anew");
    }
}
