//! S3-FIFO as its paper describes it, on plain lists.

use std::collections::VecDeque;

use super::{Textbook, take};

pub struct S3Fifo {
    size: usize,
    small_size: usize,
    ghost_size: usize,
    small: VecDeque<(u32, u32)>,
    main: VecDeque<(u32, u32)>,
    ghost: VecDeque<u32>,
}

impl S3Fifo {
    pub fn new(size: usize) -> Self {
        Self {
            size,
            small_size: (size / 10).max(1),
            ghost_size: (size as f64 * 0.9) as usize,
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghost: VecDeque::new(),
        }
    }

    fn evict(&mut self) {
        if self.main.len() > self.size - self.small_size || self.small.is_empty() {
            while let Some((page, uses)) = self.main.pop_front() {
                if uses == 0 {
                    return;
                }
                self.main.push_back((page, uses.min(3) - 1));
            }
            return;
        }
        while let Some((page, uses)) = self.small.pop_front() {
            if uses >= 2 {
                self.main.push_back((page, 0));
                continue;
            }
            self.ghost.push_back(page);
            if self.ghost.len() > self.ghost_size {
                self.ghost.pop_front();
            }
            return;
        }
    }
}

impl Textbook for S3Fifo {
    fn touch(&mut self, page: u32) -> bool {
        let mut all = self.small.iter_mut().chain(self.main.iter_mut());
        if let Some(entry) = all.find(|entry| entry.0 == page) {
            entry.1 += 1;
            return true;
        }
        let known = take(&mut self.ghost, page);
        while self.small.len() + self.main.len() == self.size {
            self.evict();
        }
        if known {
            self.main.push_back((page, 0));
        } else {
            self.small.push_back((page, 0));
        }
        false
    }
}
