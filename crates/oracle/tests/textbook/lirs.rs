//! Textbook version of LIRS on plain lists.

use std::collections::VecDeque;

use super::{Textbook, take};

/// LIRS with the stack S from bottom to top. A page is LIR if it is in `lir`, and resident HIR if it is in `q`.
pub struct Lirs {
    c: usize,
    lhirs: usize,
    s: VecDeque<u32>,
    q: VecDeque<u32>,
    lir: Vec<u32>,
    /// Non-resident pages in the order in which they were evicted.
    gone: VecDeque<u32>,
    /// Number of hits on queued pages that had left the stack. libCacheSim handles these differently.
    pub queued_hits: u64,
}

impl Lirs {
    pub fn new(c: usize) -> Self {
        let (s, q, lir, gone) = Default::default();
        let lhirs = (c / 100).max(1);
        Self {
            c,
            lhirs,
            s,
            q,
            lir,
            gone,
            queued_hits: 0,
        }
    }

    fn prune(&mut self) {
        while let Some(bottom) = self.s.front().copied() {
            if self.lir.contains(&bottom) {
                return;
            }
            self.s.pop_front();
            take(&mut self.gone, bottom);
        }
    }

    fn limit(&mut self) {
        while self.s.len() > 2 * self.c && !self.gone.is_empty() {
            let oldest = self.gone.pop_front().unwrap();
            take(&mut self.s, oldest);
        }
    }

    fn promote(&mut self, x: u32) {
        take(&mut self.s, x);
        self.s.push_back(x);
        self.lir.push(x);
        if self.lir.len() > self.c - self.lhirs {
            let bottom = self.s.pop_front().unwrap();
            self.lir.retain(|&page| page != bottom);
            self.q.push_back(bottom);
            self.prune();
        }
    }
}

impl Textbook for Lirs {
    fn touch(&mut self, x: u32) -> bool {
        if self.lir.contains(&x) {
            take(&mut self.s, x);
            self.s.push_back(x);
            self.prune();
            return true;
        }
        if self.q.contains(&x) {
            take(&mut self.q, x);
            if self.s.contains(&x) {
                self.promote(x);
            } else {
                self.queued_hits += 1;
                self.q.push_back(x);
                if self.c > self.lhirs {
                    self.s.push_back(x);
                }
                self.limit();
            }
            return true;
        }
        if self.lir.len() < self.c - self.lhirs {
            self.s.push_back(x);
            self.lir.push(x);
            return false;
        }
        if self.q.len() == self.lhirs {
            let evicted = self.q.pop_front().unwrap();
            if self.s.contains(&evicted) {
                self.gone.push_back(evicted);
            }
        }
        if self.s.contains(&x) {
            take(&mut self.gone, x);
            self.promote(x);
        } else {
            self.q.push_back(x);
            if self.c > self.lhirs {
                self.s.push_back(x);
            }
        }
        self.limit();
        false
    }
}
