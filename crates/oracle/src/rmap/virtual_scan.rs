//! The policy of Linux 2.4.19: swap_out() walks the address space. Pages are on an active and an inactive list.
//!
//! Source: Linux 2.4.19, mm/vmscan.c: try_to_swap_out(), swap_out_mm(), shrink_cache(), refill_inactive().

use std::collections::VecDeque;

use super::kernel::{Reclaim, State};
use crate::number::at;

pub(super) struct VirtualScan {
    /// Position of the walk over the address space (mm->swap_address).
    address: u32,
    /// For each page, PG_referenced.
    referenced: Vec<bool>,
    /// For each page, PG_active.
    active: Vec<bool>,
    /// Active pages in order. Entries of pages that are no longer active are skipped.
    active_list: VecDeque<u32>,
    active_count: u32,
    resident: u32,
    /// Pages that were read by readahead and not used since. They are evicted first.
    unasked: VecDeque<u32>,
}

impl VirtualScan {
    pub fn new(pages: u32) -> Self {
        Self {
            address: 0,
            referenced: vec![false; at(pages)],
            active: vec![false; at(pages)],
            active_list: VecDeque::new(),
            active_count: 0,
            resident: 0,
            unasked: VecDeque::new(),
        }
    }

    /// mark_page_accessed(): marks a page as referenced. The second call makes it active.
    fn mark(&mut self, page: u32) {
        if self.active[at(page)] {
            self.referenced[at(page)] = true;
        } else if std::mem::take(&mut self.referenced[at(page)]) {
            self.active[at(page)] = true;
            self.active_count += 1;
            self.active_list.push_back(page);
        } else {
            self.referenced[at(page)] = true;
        }
    }

    /// refill_inactive(): scans up to `count` active pages and deactivates those without PG_referenced. Returns the
    /// number of pages scanned.
    fn refill(&mut self, count: u64) -> u64 {
        let mut looked = 0;
        for _ in 0..count {
            let Some(page) = self.active_list.pop_front() else {
                break;
            };
            looked += 1;
            if !self.active[at(page)] {
                continue;
            }
            if std::mem::take(&mut self.referenced[at(page)]) {
                self.active_list.push_back(page);
            } else {
                self.active[at(page)] = false;
                self.active_count -= 1;
                self.referenced[at(page)] = true;
            }
        }
        looked
    }
}

impl Reclaim for VirtualScan {
    fn arrived(&mut self, page: u32, mapped: bool) {
        self.resident += 1;
        if !mapped {
            self.unasked.push_back(page);
        }
    }

    fn mapped_again(&mut self, page: u32) {
        self.mark(page);
    }

    fn scan(
        &mut self,
        batch: u32,
        accessed: &mut [bool],
        state: &[State],
        victims: &mut Vec<u32>,
    ) -> u64 {
        let batch = batch as usize;
        while victims.len() < batch
            && let Some(page) = self.unasked.pop_front()
        {
            if state[at(page)] == State::Cached && !victims.contains(&page) {
                victims.push(page);
            }
        }
        // shrink_caches(): ratio = nr_pages × nr_active / ((nr_inactive + 1) × 2)
        let inactive = u64::from(self.resident - self.active_count.min(self.resident));
        let ratio = batch as u64 * u64::from(self.active_count) / ((inactive + 1) * 2);
        let mut looked = self.refill(ratio);
        let pages = state.len() as u64;
        let mut walked = 0;
        while victims.len() < batch && walked < 2 * pages {
            let page = self.address;
            self.address = (self.address + 1) % crate::number::low32(pages);
            walked += 1;
            if state[at(page)] != State::Mapped {
                continue;
            }
            looked += 1;
            if std::mem::take(&mut accessed[at(page)]) {
                self.mark(page);
            } else if !self.active[at(page)] {
                self.referenced[at(page)] = false;
                victims.push(page);
            }
        }
        if victims.is_empty() {
            // All pages are active, so some are deactivated.
            looked += self.refill(u64::from(self.active_count));
        }
        self.resident -= crate::number::narrow(victims.len()).min(self.resident);
        looked
    }
}
