//! Textbook version of CLOCK-Pro on plain lists.

use std::collections::HashMap;

use super::Textbook;

/// CLOCK-Pro with the ring as a list of pages. Hands are indices in this list.
pub struct ClockPro {
    size: usize,
    cold_target: usize,
    ring: Vec<u32>,
    kind: HashMap<u32, (char, bool)>,
    hot: usize,
    cold: usize,
    test: usize,
}

impl ClockPro {
    pub fn new(size: usize) -> Self {
        Self {
            size,
            cold_target: size,
            ring: Vec::new(),
            kind: HashMap::new(),
            hot: 0,
            cold: 0,
            test: 0,
        }
    }

    fn count(&self, kind: char) -> usize {
        self.kind.values().filter(|entry| entry.0 == kind).count()
    }

    fn insert(&mut self, page: u32, kind: char) {
        self.kind.insert(page, (kind, false));
        if self.ring.is_empty() {
            self.ring.push(page);
            return;
        }
        let together = self.cold == self.hot;
        let place = self.hot;
        self.ring.insert(place, page);
        // Hands at or after the position of the new page stay on the same page.
        self.hot += 1;
        if self.test >= place {
            self.test += 1;
        }
        if together {
            self.cold = place;
        } else if self.cold >= place {
            self.cold += 1;
        }
    }

    fn forget(&mut self, page: u32) {
        self.kind.remove(&page);
        let place = self.ring.iter().position(|&other| other == page).unwrap();
        self.ring.remove(place);
        let len = self.ring.len();
        for hand in [&mut self.hot, &mut self.cold, &mut self.test] {
            if *hand == place {
                *hand = if place == 0 {
                    len.saturating_sub(1)
                } else {
                    place - 1
                };
            } else if *hand > place {
                *hand -= 1;
            }
        }
    }

    fn run_cold(&mut self) {
        let page = self.ring[self.cold];
        if self.kind[&page].0 == 'c' {
            if self.kind[&page].1 {
                self.kind.insert(page, ('h', false));
            } else {
                self.kind.insert(page, ('t', false));
                while self.count('t') > self.size {
                    self.run_test();
                }
            }
        }
        self.cold = (self.cold + 1) % self.ring.len();
        while self.count('h') > self.size - self.cold_target {
            self.run_hot();
        }
    }

    fn run_hot(&mut self) {
        if self.hot == self.test {
            self.run_test();
        }
        let page = self.ring[self.hot];
        match self.kind[&page] {
            ('h', true) => self.kind.insert(page, ('h', false)),
            ('h', false) => self.kind.insert(page, ('c', false)),
            _ => None,
        };
        self.hot = (self.hot + 1) % self.ring.len();
    }

    fn run_test(&mut self) {
        let page = self.ring[self.test];
        if self.kind[&page].0 == 't' {
            self.forget(page);
            self.cold_target = (self.cold_target - 1).max(1);
        }
        self.test = (self.test + 1) % self.ring.len();
    }
}

impl Textbook for ClockPro {
    fn touch(&mut self, page: u32) -> bool {
        let kind = match self.kind.get(&page).map(|entry| entry.0) {
            Some('h' | 'c') => {
                self.kind.get_mut(&page).unwrap().1 = true;
                return true;
            }
            Some(_) => {
                self.cold_target = (self.cold_target + 1).min(self.size);
                self.forget(page);
                'h'
            }
            None => 'c',
        };
        while self.count('h') + self.count('c') >= self.size {
            self.run_cold();
        }
        self.insert(page, kind);
        false
    }
}
