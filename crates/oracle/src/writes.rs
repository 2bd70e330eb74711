//! Write-backs: which references write, and how often a policy evicts a page that was written.
//!
//! A page is dirty from a write until it is evicted, and evicting a dirty page costs a write-back. A policy need not
//! report what it evicts. A page that faults again was evicted once since its last reference. After the last reference
//! of the string, the policy is asked which of the dirty pages are still in memory.

use std::io;
use std::str::FromStr;

use crate::error::WriteCostError;
use crate::number::at;
use crate::policy::{Choice, Simulator};
use crate::string::ReferenceString;

/// Cost of evicting a dirty page, in faults: a finite number from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteCost(f64);

impl WriteCost {
    /// Creates a cost. Fails if `faults` is negative, infinite or not a number.
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

    /// Returns the total cost of `faults` faults and `write_backs` write-backs, in faults.
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

/// Record of which references of a string write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writes {
    /// Number of references at the beginning that fill memory.
    fill: u64,
    /// True if the references that fill memory write.
    fill_is_dirty: bool,
    rest: Rest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rest {
    /// True if all of the other references write, false if none does.
    Alike(bool),
    /// A bit for each reference, set if it writes.
    Each(Vec<u64>),
}

impl Writes {
    /// Returns a value for strings in which all references write (`write` is true) or none does.
    pub fn alike(write: bool) -> Self {
        Self::after_fill(0, false, write)
    }

    /// Returns a value for strings whose first `fill` references write if `fill_writes`, and all others if `write`.
    pub fn after_fill(fill: u32, fill_writes: bool, write: bool) -> Self {
        Self {
            fill: u64::from(fill),
            fill_is_dirty: fill_writes,
            rest: Rest::Alike(write),
        }
    }

    /// Creates the value from one item for each reference, in order: true if the reference writes.
    pub fn each(writes: impl IntoIterator<Item = bool>) -> Self {
        let mut bits = Bits::default();
        writes.into_iter().for_each(|write| bits.push(write));
        bits.finish()
    }

    /// Returns true if reference number `time`, counted from 0, writes.
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

/// Collects bits: for each reference, true if it writes.
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

/// Counts the write-backs of a policy while it processes references.
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

    /// Records the next reference. `hit` is true if its page was in memory.
    #[inline]
    pub fn note(&mut self, page: u32, hit: bool) {
        let dirty = &mut self.dirty[at(page)];
        self.write_backs += u64::from(!hit && *dirty);
        *dirty = (hit && *dirty) || self.writes.is(self.time);
        self.time += 1;
    }

    /// Returns the number of dirty pages evicted. Must be called after the last reference.
    pub fn finish(self, policy: &mut dyn Simulator) -> u64 {
        let dirty = (0..).zip(&self.dirty).filter(|(_, dirty)| **dirty);
        let gone = dirty.filter(|(page, _)| !policy.held(*page)).count();
        self.write_backs + gone as u64
    }
}

/// Returns a lower bound of the write-backs of any policy with memory of `size` pages.
///
/// Between two writes to a page, the page stays in memory or there is a write-back. The same holds from its last write
/// to the end. At each write, memory can hold `size` − 1 pages in addition to the written page. So the largest number
/// of intervals in which pages stay is the number of hits of OPT on the writes alone, plus the pages that OPT can hold
/// at the end. Reads need memory as well, but are ignored. So this is a lower bound that is not always reached.
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
