//! The policy of rmap14a: every page has an age, and reverse mappings find its page table entries.
//!
//! Source: Rik van Riel's patch to 2.4.19, mm/vmscan.c: age_page_up(), age_page_down(), refill_inactive_zone(),
//! page_launder_zone().

use std::collections::VecDeque;

use super::kernel::{Reclaim, State};
use crate::number::at;

/// PAGE_AGE_START: age of a new page.
const START: u8 = 2;
/// PAGE_AGE_ADV: increase of the age of a page that was used.
const UP: u8 = 3;
/// PAGE_AGE_DECL: decrease of the age of a page that was not used.
const DOWN: u8 = 1;
/// PAGE_AGE_MAX: largest age.
const MAX_AGE: u8 = 64;

pub(super) struct Rmap {
    age: Vec<u8>,
    /// Active pages in the order in which they are scanned.
    active: VecDeque<u32>,
    /// Pages whose age reached 0, and pages that were read by readahead. A page that is used before its eviction
    /// becomes active.
    inactive: VecDeque<u32>,
    /// For each page, the number of its list: 0 none, 1 active, 2 inactive.
    list: Vec<u8>,
}

impl Rmap {
    pub fn new(pages: u32) -> Self {
        Self {
            age: vec![0; at(pages)],
            active: VecDeque::new(),
            inactive: VecDeque::new(),
            list: vec![0; at(pages)],
        }
    }

    fn activate(&mut self, page: u32, age: u8) {
        self.age[at(page)] = age;
        self.list[at(page)] = 1;
        self.active.push_back(page);
    }
}

impl Reclaim for Rmap {
    fn arrived(&mut self, page: u32, mapped: bool) {
        if mapped {
            self.activate(page, START);
        } else {
            self.list[at(page)] = 2;
            self.inactive.push_back(page);
        }
    }

    fn mapped_again(&mut self, page: u32) {
        if self.list[at(page)] == 2 {
            self.activate(page, START);
        }
    }

    fn scan(
        &mut self,
        batch: u32,
        accessed: &mut [bool],
        state: &[State],
        victims: &mut Vec<u32>,
    ) -> u64 {
        let batch = batch as usize;
        let mut looked = 0;
        while victims.len() < batch {
            // refill_inactive_zone(): the age of used pages increases, the age of other pages decreases.
            while self.inactive.len() < batch {
                let Some(page) = self.active.pop_front() else {
                    break;
                };
                if self.list[at(page)] != 1 || state[at(page)] == State::Swapped {
                    continue;
                }
                looked += 1;
                let age = &mut self.age[at(page)];
                if std::mem::take(&mut accessed[at(page)]) {
                    *age = (*age + UP).min(MAX_AGE);
                } else {
                    *age = age.saturating_sub(DOWN);
                }
                if *age == 0 {
                    self.list[at(page)] = 2;
                    self.inactive.push_back(page);
                } else {
                    self.active.push_back(page);
                }
            }
            // page_launder_zone()
            let Some(page) = self.inactive.pop_front() else {
                break;
            };
            if self.list[at(page)] != 2 {
                continue;
            }
            looked += 1;
            if std::mem::take(&mut accessed[at(page)]) {
                self.activate(page, START);
            } else {
                self.list[at(page)] = 0;
                victims.push(page);
            }
        }
        looked
    }
}
