//! Textbook version of Linux' active and inactive lists, on plain lists.

use std::collections::{HashMap, VecDeque};

use super::Textbook;

/// Linux' active and inactive list. A page is (number, accessed, referenced).
pub struct TwoLists {
    size: usize,
    inactive: VecDeque<(u32, bool, bool)>,
    active: VecDeque<(u32, bool, bool)>,
    shadows: HashMap<u32, u64>,
    age: u64,
    activated: bool,
    owed: f64,
}

impl TwoLists {
    pub fn new(size: usize) -> Self {
        Self {
            size,
            inactive: VecDeque::new(),
            active: VecDeque::new(),
            shadows: HashMap::new(),
            age: 0,
            activated: false,
            owed: 0.0,
        }
    }

    fn deactivate(&mut self, count: usize) {
        for _ in 0..count {
            if let Some((page, _, referenced)) = self.active.pop_front() {
                self.inactive.push_back((page, false, referenced));
            }
        }
    }

    fn reclaim(&mut self) {
        let batch = 32.min(self.size);
        let mut freed = 0;
        while freed < batch && (!self.inactive.is_empty() || !self.active.is_empty()) {
            let low = self.inactive.len() < self.active.len();
            if low || self.activated {
                self.activated &= low;
                let inactive = self.inactive.len().max(1) as f64;
                self.owed += batch as f64 * self.active.len() as f64 / inactive;
                self.deactivate(self.owed as usize);
                self.owed = self.owed.fract();
            }
            if self.inactive.is_empty() {
                self.deactivate(batch);
            }
            for _ in 0..batch {
                let Some((page, accessed, referenced)) = self.inactive.pop_front() else {
                    break;
                };
                match (accessed, referenced) {
                    (true, true) => {
                        self.age += 1;
                        self.active.push_back((page, false, true));
                    }
                    (true, false) => self.inactive.push_back((page, false, true)),
                    (false, _) => {
                        self.shadows.insert(page, self.age);
                        self.age += 1;
                        freed += 1;
                        if freed == batch {
                            break;
                        }
                    }
                }
            }
            if self.inactive.len() < self.active.len() {
                self.deactivate(batch);
            }
        }
    }
}

impl Textbook for TwoLists {
    fn touch(&mut self, page: u32) -> bool {
        let mut all = self.inactive.iter_mut().chain(self.active.iter_mut());
        if let Some(entry) = all.find(|entry| entry.0 == page) {
            entry.1 = true;
            return true;
        }
        if self.inactive.len() + self.active.len() == self.size {
            self.reclaim();
        }
        let distance = self.shadows.remove(&page).map(|shadow| self.age - shadow);
        if distance.is_some_and(|distance| distance <= self.active.len() as u64) {
            self.age += 1;
            self.activated = true;
            self.active.push_back((page, true, false));
        } else {
            self.inactive.push_back((page, true, false));
        }
        false
    }
}
