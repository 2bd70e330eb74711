//! Write-backs: which references write, and how often a policy evicts a page that was written.
//!
//! A page is dirty from a write until it leaves memory, and to evict a dirty page costs a write-back. A policy need not
//! say what it evicts: a page that faults again was evicted once since its last reference, and after the last reference
//! of all the policy is asked which of the dirty pages it still holds.

use std::io;
use std::str::FromStr;

use crate::error::WriteCostError;
use crate::number::at;
use crate::policy::{Choice, Simulator};
use crate::string::ReferenceString;

/// What evicting a dirty page costs, in faults: a finite number from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteCost(f64);

impl WriteCost {
    /// Fails if `faults` is negative, infinite or not a number.
    pub fn new(faults: f64) -> Result<Self, WriteCostError> {
        if faults.is_finite() && faults >= 0.0 {
            // Negative zero is shown as zero.
            Ok(Self(faults.abs()))
        } else {
            Err(WriteCostError {
                given: faults.to_string(),
            })
        }
    }

    /// Returns the cost of one write-back, in faults.
    pub fn faults(self) -> f64 {
        self.0
    }

    /// Returns the total cost of faults and write-backs, in faults.
    pub fn of(self, faults: u64, write_backs: u64) -> f64 {
        faults as f64 + self.0 * write_backs as f64
    }
}

impl FromStr for WriteCost {
    type Err = WriteCostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().parse().map_err(|_| WriteCostError {
            given: text.to_owned(),
        })?;
        Self::new(number)
    }
}

/// Which references of a string write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writes {
    /// Number of first references that fill memory.
    fill: u64,
    /// Whether these write.
    fill_is_dirty: bool,
    rest: Rest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rest {
    /// All of them, or none.
    Alike(bool),
    /// A bit for each.
    Each(Vec<u64>),
}

impl Writes {
    /// All references write, or none does.
    pub fn alike(write: bool) -> Self {
        Self::after_fill(0, false, write)
    }

    /// The first `fill` references write or not, and all others write or not.
    pub fn after_fill(fill: u32, fill_writes: bool, write: bool) -> Self {
        Self {
            fill: u64::from(fill),
            fill_is_dirty: fill_writes,
            rest: Rest::Alike(write),
        }
    }

    /// Creates from one value for each reference, in order.
    pub fn each(writes: impl IntoIterator<Item = bool>) -> Self {
        let mut bits = Bits::default();
        writes.into_iter().for_each(|write| bits.push(write));
        bits.finish()
    }

    /// Returns true if the reference with this number, counted from 0, writes.
    #[inline]
    pub fn is(&self, time: u64) -> bool {
        if time < self.fill {
            return self.fill_is_dirty;
        }
        match &self.rest {
            Rest::Alike(write) => *write,
            Rest::Each(bits) => {
                let word = usize::try_from(time >> 6).ok().and_then(|at| bits.get(at));
                word.is_some_and(|word| word >> (time & 63) & 1 == 1)
            }
        }
    }
}

/// Collects a bit for each reference.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: u64,
}

impl Bits {
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(bit) << (self.len & 63);
        }
        self.len += 1;
    }

    /// Returns the peak size in bytes while the table grows: the old table and a new one of twice its size.
    pub fn bytes(&self) -> u64 {
        self.words.capacity() as u64 * 8 * 3
    }

    pub fn finish(self) -> Writes {
        Writes {
            fill: 0,
            fill_is_dirty: false,
            rest: Rest::Each(self.words),
        }
    }
}

/// Counts write-backs while a policy processes references.
pub struct Ledger<'a> {
    writes: &'a Writes,
    time: u64,
    dirty: Vec<bool>,
    write_backs: u64,
}

impl<'a> Ledger<'a> {
    /// Creates a ledger with all pages clean, for page numbers below `pages`.
    pub fn new(writes: &'a Writes, pages: u32) -> Self {
        Self {
            writes,
            time: 0,
            dirty: vec![false; at(pages)],
            write_backs: 0,
        }
    }

    /// Records the next reference and whether its page was in memory.
    #[inline]
    pub fn note(&mut self, page: u32, hit: bool) {
        let dirty = &mut self.dirty[at(page)];
        self.write_backs += u64::from(!hit && *dirty);
        *dirty = (hit && *dirty) || self.writes.is(self.time);
        self.time += 1;
    }

    /// Returns the number of dirty pages evicted; call after the last reference.
    pub fn finish(self, policy: &mut dyn Simulator) -> u64 {
        let dirty = (0..).zip(&self.dirty).filter(|(_, dirty)| **dirty);
        let gone = dirty.filter(|(page, _)| !policy.held(*page)).count();
        self.write_backs + gone as u64
    }
}

/// Returns a lower bound of the write-backs of any policy with memory of `size` pages.
///
/// Between two writes to a page, the page stays in memory or there is a write-back; likewise from its last write to the
/// end. At each write, memory can hold `size` − 1 pages beside the one written. So the most intervals in which pages
/// stay are the hits of OPT on the writes alone, plus the pages it can hold at the end. Reads need memory as well,
/// which is ignored: hence a lower bound, which is not always reached.
pub(crate) fn fewest_write_backs(
    string: &ReferenceString,
    writes: &Writes,
    size: u32,
) -> io::Result<u64> {
    let all = Writes::alike(true);
    let mut policy = Choice::opt().start(string.pages(), size);
    let mut ledger = Ledger::new(&all, string.pages());
    let mut time = 0;
    let mut written = Vec::new();
    string.each(0, string.references(), |references| {
        written.clear();
        for &page in references {
            if writes.is(time) {
                written.push(page);
            }
            time += 1;
        }
        policy.feed_counting(&written, &mut ledger);
    })?;
    Ok(ledger.finish(&mut *policy))
}
