//! What both kernels have in common in the model: page frames, swap slots, faults and swap-in readahead.

use super::disk::Disk;
use super::parameters::Parameters;
use crate::number::at;

/// Slot number of a page that has no slot in swap.
const NO_SLOT: u32 = u32::MAX;

/// Whether a page is in memory, and whether it is mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The page was never touched, so it is neither in memory nor in swap.
    New,
    /// The page is in memory and mapped.
    Mapped,
    /// The page is in memory but not mapped, because it was read by readahead.
    Cached,
    /// The page is in swap and not in memory.
    Swapped,
}

/// How a kernel chooses the pages to evict.
pub(super) trait Reclaim {
    /// Called after a page came into memory. `mapped` is true if the page itself was referenced, false if it was read
    /// by readahead.
    fn arrived(&mut self, page: u32, mapped: bool);

    /// Called when an unmapped page in memory is referenced and therefore mapped.
    fn mapped_again(&mut self, page: u32);

    /// Chooses about `batch` pages to evict and appends them to `victims`. Returns how many pages were scanned.
    ///
    /// `accessed` has the accessed bit of every page. Scanning clears it.
    fn scan(
        &mut self,
        batch: u32,
        accessed: &mut [bool],
        state: &[State],
        victims: &mut Vec<u32>,
    ) -> u64;
}

pub(super) struct Memory {
    parameters: Parameters,
    disk: Disk,
    state: Vec<State>,
    accessed: Vec<bool>,
    /// For each page, its slot in swap. A page keeps its first slot, because references after its first touch only read
    /// it.
    slot: Vec<u32>,
    /// For each slot of swap, the page that it belongs to.
    slots: Vec<u32>,
    free: u32,
    victims: Vec<u32>,
    pub now: u64,
    pub faults: u64,
    pub written: u64,
    /// Number of pages scanned by reclaim so far.
    pub looked: u64,
}

impl Memory {
    pub fn new(parameters: Parameters, disk: Disk, pages: u32) -> Self {
        Self {
            free: parameters.frames,
            parameters,
            disk,
            state: vec![State::New; at(pages)],
            accessed: vec![false; at(pages)],
            slot: vec![NO_SLOT; at(pages)],
            slots: Vec::new(),
            victims: Vec::new(),
            now: 0,
            faults: 0,
            written: 0,
            looked: 0,
        }
    }

    /// Processes one reference to a page.
    pub fn touch(&mut self, page: u32, policy: &mut impl Reclaim) {
        self.now += self.parameters.touch;
        match self.state[at(page)] {
            State::Mapped => {}
            State::Cached => {
                self.now += self.parameters.fault;
                policy.mapped_again(page);
            }
            State::New => {
                self.now += self.parameters.fault;
                self.take_frame(policy);
                policy.arrived(page, true);
            }
            State::Swapped => {
                self.now += self.parameters.fault;
                self.faults += 1;
                self.read(page, policy);
            }
        }
        self.state[at(page)] = State::Mapped;
        self.accessed[at(page)] = true;
    }

    /// Reads a page from swap, together with the other pages in its aligned group of slots (readahead).
    fn read(&mut self, page: u32, policy: &mut impl Reclaim) {
        let first = self.slot[at(page)] / self.parameters.around * self.parameters.around;
        let last = (first + self.parameters.around).min(crate::number::narrow(self.slots.len()));
        self.take_frame(policy);
        self.now = self.disk.transfer(self.now, first, last - first);
        policy.arrived(page, true);
        self.state[at(page)] = State::Mapped;
        for slot in first..last {
            let other = self.slots[at(slot)];
            if self.state[at(other)] == State::Swapped {
                self.take_frame(policy);
                policy.arrived(other, false);
                self.state[at(other)] = State::Cached;
                self.accessed[at(other)] = false;
            }
        }
    }

    /// Allocates a page frame. If none is free, reclaims pages first.
    fn take_frame(&mut self, policy: &mut impl Reclaim) {
        while self.free == 0 {
            self.victims.clear();
            let looked = policy.scan(
                self.parameters.batch,
                &mut self.accessed,
                &self.state,
                &mut self.victims,
            );
            self.looked += looked;
            self.now += looked * self.parameters.scan;
            self.evict();
        }
        self.free -= 1;
    }

    /// Writes those victims to swap that have no copy there, in the order in which they were chosen. Then frees the
    /// frames of all victims.
    fn evict(&mut self) {
        let first = crate::number::narrow(self.slots.len());
        for place in 0..self.victims.len() {
            let page = self.victims[place];
            if self.slot[at(page)] == NO_SLOT {
                self.slot[at(page)] = crate::number::narrow(self.slots.len());
                self.slots.push(page);
                self.written += 1;
            }
            self.state[at(page)] = State::Swapped;
            self.accessed[at(page)] = false;
            self.free += 1;
        }
        let count = crate::number::narrow(self.slots.len()) - first;
        if count > 0 {
            // Frames can be reused only when their pages have been written to the disk.
            self.now = self.disk.transfer(self.now, first, count);
        }
    }

    /// Returns the fraction of the pages in memory that are used more often than the median page.
    pub fn often_used(&self, counts: &[u32]) -> f64 {
        let mut sorted = counts.to_vec();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        let in_memory = |page: &usize| matches!(self.state[*page], State::Mapped | State::Cached);
        let present: Vec<usize> = (0..self.state.len()).filter(in_memory).collect();
        let often = present
            .iter()
            .filter(|page| counts[**page] > median)
            .count();
        often as f64 / present.len().max(1) as f64
    }
}
