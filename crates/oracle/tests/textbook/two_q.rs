//! Textbook version of 2Q on plain lists.

use std::collections::VecDeque;

use super::{Textbook, take};

pub struct TwoQ {
    size: usize,
    new: VecDeque<u32>,
    out: VecDeque<u32>,
    main: VecDeque<u32>,
}

impl TwoQ {
    pub fn new(size: usize) -> Self {
        let (new, out, main) = Default::default();
        Self {
            size,
            new,
            out,
            main,
        }
    }

    fn reclaim(&mut self) {
        if self.new.len() + self.main.len() < self.size {
            return;
        }
        if self.new.len() > (self.size / 4).max(1) || self.main.is_empty() {
            self.out.push_back(self.new.pop_front().unwrap());
            if self.out.len() > (self.size / 2).max(1) {
                self.out.pop_front();
            }
        } else {
            self.main.pop_front();
        }
    }
}

impl Textbook for TwoQ {
    fn touch(&mut self, page: u32) -> bool {
        if take(&mut self.main, page) {
            self.main.push_back(page);
            return true;
        }
        if self.new.contains(&page) {
            return true;
        }
        let known = take(&mut self.out, page);
        self.reclaim();
        if known {
            self.main.push_back(page);
        } else {
            self.new.push_back(page);
        }
        false
    }
}
