//! Passes orders from a parent process to single children. Each child has a line in shared memory: the parent writes an
//! order there, and the child reports that it is done.

// Pages have a larger alignment than any word.
#![allow(clippy::cast_ptr_alignment)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pagetide_quantity::{Nanos, Pages};

use crate::error::Stop;
use crate::mapping::Mapping;
use crate::page::PAGE;
use crate::workers::{wait, wake};

/// Interval at which a waiting parent checks whether children have died.
const WATCH: Nanos = Nanos::from_millis(200);
/// Number of values that a process reports for each order.
pub(crate) const VALUES: usize = 2;

/// Line of one process: numbers of orders given and done, the latest order, and the values reported for it.
#[repr(C)]
struct Line {
    given: AtomicU32,
    done: AtomicU32,
    order: AtomicU64,
    values: [AtomicU64; VALUES],
}

/// The lines of all processes.
pub(crate) struct Relay {
    memory: Mapping,
    lines: usize,
}

impl Relay {
    /// Creates this number of lines, in memory that is shared with processes that are forked later.
    pub(crate) fn new(lines: u32) -> Result<Self, Stop> {
        let lines = lines as usize;
        let pages = (lines * size_of::<Line>()).div_ceil(PAGE).max(1);
        let memory = Mapping::shared(Pages(pages as u64))?;
        // Locked if the process has the privilege: it is tiny, and a fault on it would be charged to a group.
        let _ = memory.lock();
        Ok(Self { memory, lines })
    }

    fn line(&self, number: u32) -> &Line {
        let number = number as usize;
        assert!(number < self.lines, "no line {number}");
        // SAFETY: the mapping is page aligned and holds all lines, and a line is all atomics, for which every bit
        // pattern is valid.
        unsafe { &*self.memory.start().cast::<Line>().add(number) }
    }

    /// In the parent: gives an order to process number `number` and waits until it is done. Returns the values that the
    /// process reported. `look` is called at intervals, and fails if the process died.
    pub(crate) fn order(
        &self,
        number: u32,
        order: u64,
        mut look: impl FnMut() -> Result<(), Stop>,
    ) -> Result<[u64; VALUES], Stop> {
        let line = self.line(number);
        line.order.store(order, Ordering::Release);
        let given = line.given.fetch_add(1, Ordering::AcqRel) + 1;
        wake(&line.given);
        loop {
            let done = line.done.load(Ordering::Acquire);
            if done == given {
                let values = |at: usize| line.values[at].load(Ordering::Acquire);
                return Ok(std::array::from_fn(values));
            }
            if !wait(&line.done, done, Some(WATCH)) {
                look()?;
            }
        }
    }

    /// In a process: waits for the next order and returns it. `seen` is the number of orders already done.
    pub(crate) fn next(&self, number: u32, seen: u32) -> u64 {
        let line = self.line(number);
        loop {
            let given = line.given.load(Ordering::Acquire);
            if given != seen {
                return line.order.load(Ordering::Acquire);
            }
            wait(&line.given, given, None);
        }
    }

    /// In a process: reports that the order is done, with values about it.
    pub(crate) fn report(&self, number: u32, values: [u64; VALUES]) {
        let line = self.line(number);
        for (slot, value) in line.values.iter().zip(values) {
            slot.store(value, Ordering::Release);
        }
        line.done.fetch_add(1, Ordering::AcqRel);
        wake(&line.done);
    }
}
