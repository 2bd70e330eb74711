//! Textbook version of W-TinyLFU on plain lists.

use std::collections::{BTreeMap, VecDeque};

use super::{Textbook, take};

pub struct WTinyLfu {
    size: usize,
    window_size: usize,
    window: VecDeque<u32>,
    probation: VecDeque<u32>,
    protected: VecDeque<u32>,
    uses: BTreeMap<u32, u32>,
    counted: usize,
}

impl WTinyLfu {
    pub fn new(size: usize) -> Self {
        let (window, probation, protected, uses) = Default::default();
        let window_size = (size / 100).max(1);
        let counted = 0;
        Self {
            size,
            window_size,
            window,
            probation,
            protected,
            uses,
            counted,
        }
    }

    fn count(&mut self, page: u32) {
        let uses = self.uses.entry(page).or_default();
        if *uses < 15 {
            *uses += 1;
            self.counted += 1;
        } else {
            return;
        }
        if self.counted == 10 * self.size {
            self.uses.values_mut().for_each(|uses| *uses /= 2);
            self.counted /= 2;
        }
    }
}

impl Textbook for WTinyLfu {
    fn touch(&mut self, page: u32) -> bool {
        self.count(page);
        let main_size = self.size - self.window_size;
        if take(&mut self.window, page) {
            self.window.push_back(page);
            return true;
        }
        if take(&mut self.protected, page) {
            self.protected.push_back(page);
            return true;
        }
        if take(&mut self.probation, page) {
            self.protected.push_back(page);
            if self.protected.len() > (main_size as f64 * 0.8) as usize {
                self.probation.extend(self.protected.pop_front());
            }
            return true;
        }
        self.window.push_back(page);
        if self.window.len() > self.window_size {
            let candidate = self.window.pop_front().unwrap();
            let victims = if self.probation.is_empty() {
                &mut self.protected
            } else {
                &mut self.probation
            };
            let victim = victims.front().copied();
            if self.probation.len() + self.protected.len() < main_size {
                self.probation.push_back(candidate);
            } else if let Some(victim) = victim
                && self.uses[&candidate] > self.uses[&victim]
            {
                take(&mut self.probation, victim);
                take(&mut self.protected, victim);
                self.probation.push_back(candidate);
            }
        }
        false
    }
}
