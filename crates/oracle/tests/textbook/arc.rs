//! Textbook versions of ARC and CAR on plain lists. Both use the same lists of evicted pages.

use std::collections::VecDeque;

use super::{Textbook, take};

pub struct Arc {
    c: usize,
    p: f64,
    t1: VecDeque<u32>,
    t2: VecDeque<u32>,
    b1: VecDeque<u32>,
    b2: VecDeque<u32>,
}

impl Arc {
    pub fn new(c: usize) -> Self {
        let (t1, t2, b1, b2) = Default::default();
        let p = 0.0;
        Self {
            c,
            p,
            t1,
            t2,
            b1,
            b2,
        }
    }

    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && ((in_b2 && t1 == self.p) || t1 > self.p) || self.t2.is_empty() {
            self.b1.extend(self.t1.pop_front());
        } else {
            self.b2.extend(self.t2.pop_front());
        }
    }
}

impl Textbook for Arc {
    fn touch(&mut self, x: u32) -> bool {
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push_back(x);
            return true;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&x) {
            self.p = (self.p + f64::max(b2 / b1, 1.0)).min(self.c as f64);
            self.replace(false);
            take(&mut self.b1, x);
            self.t2.push_back(x);
        } else if self.b2.contains(&x) {
            self.p = (self.p - f64::max(b1 / b2, 1.0)).max(0.0);
            self.replace(true);
            take(&mut self.b2, x);
            self.t2.push_back(x);
        } else {
            let l1 = self.t1.len() + self.b1.len();
            let all = l1 + self.t2.len() + self.b2.len();
            if l1 == self.c {
                if self.t1.len() < self.c {
                    self.b1.pop_front();
                    self.replace(false);
                } else {
                    self.t1.pop_front();
                }
            } else if all >= self.c {
                if all == 2 * self.c {
                    self.b2.pop_front();
                }
                self.replace(false);
            }
            self.t1.push_back(x);
        }
        false
    }
}

pub struct Car {
    c: usize,
    p: f64,
    t1: VecDeque<(u32, bool)>,
    t2: VecDeque<(u32, bool)>,
    b1: VecDeque<u32>,
    b2: VecDeque<u32>,
}

impl Car {
    pub fn new(c: usize) -> Self {
        let (t1, t2, b1, b2) = Default::default();
        let p = 0.0;
        Self {
            c,
            p,
            t1,
            t2,
            b1,
            b2,
        }
    }

    fn replace(&mut self) {
        loop {
            if self.t1.len() as f64 >= self.p.max(1.0) {
                match self.t1.pop_front().unwrap() {
                    (page, false) => return self.b1.push_back(page),
                    (page, true) => self.t2.push_back((page, false)),
                }
            } else {
                match self.t2.pop_front().unwrap() {
                    (page, false) => return self.b2.push_back(page),
                    (page, true) => self.t2.push_back((page, false)),
                }
            }
        }
    }
}

impl Textbook for Car {
    fn touch(&mut self, x: u32) -> bool {
        let mut all = self.t1.iter_mut().chain(self.t2.iter_mut());
        if let Some(entry) = all.find(|entry| entry.0 == x) {
            entry.1 = true;
            return true;
        }
        let known = self.b1.contains(&x) || self.b2.contains(&x);
        if self.t1.len() + self.t2.len() == self.c {
            self.replace();
            let l1 = self.t1.len() + self.b1.len();
            if !known && l1 == self.c {
                self.b1.pop_front();
            } else if !known && l1 + self.t2.len() + self.b2.len() == 2 * self.c {
                self.b2.pop_front();
            }
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if take(&mut self.b1, x) {
            self.p = (self.p + f64::max(1.0, b2 / b1)).min(self.c as f64);
            self.t2.push_back((x, false));
        } else if take(&mut self.b2, x) {
            self.p = (self.p - f64::max(1.0, b1 / b2)).max(0.0);
            self.t2.push_back((x, false));
        } else {
            self.t1.push_back((x, false));
        }
        false
    }
}
