//! Write-backs: which references write, and how often a policy evicts a page that was written.
//!
//! A page is dirty from a write until it is evicted, and evicting a dirty page costs a write-back. A policy need not
//! report what it evicts. A page that faults again was evicted once since its last reference. After the last reference
//! of the string, the policy is asked which of the dirty pages are still in memory.

use std::str::FromStr;

use crate::error::WriteCostError;

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

/// States which references of a string are writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writes {
    /// Number of references at the beginning that fill memory.
    fill: u64,
    /// True if the references that fill memory are writes.
    fill_is_dirty: bool,
    rest: Rest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rest {
    /// True if all references after the fill are writes, false if all are reads.
    Alike(bool),
    /// A bit for each reference, set if it writes.
    Each(Vec<u64>),
}

impl Writes {
    /// Returns a value for strings in which all references are writes (`write` is true) or all are reads.
    pub fn alike(write: bool) -> Self {
        Self::after_fill(0, false, write)
    }

    /// Returns a value for strings whose first `fill` references are writes if `fill_writes` is true, and all others if
    /// `write` is true.
    pub fn after_fill(fill: u32, fill_writes: bool, write: bool) -> Self {
        Self {
            fill: u64::from(fill),
            fill_is_dirty: fill_writes,
            rest: Rest::Alike(write),
        }
    }

    /// Creates the value from one item for each reference, in order: true if the reference is a write.
    pub fn each(writes: impl IntoIterator<Item = bool>) -> Self {
        let mut bits = Bits::default();
        writes.into_iter().for_each(|write| bits.push(write));
        bits.finish()
    }

    /// Returns true if reference number `time`, counted from 0, is a write.
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

/// Collects one bit for each reference: true if it is a write.
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

    /// Returns the number of bytes needed while the table grows: the old table, and a new one of twice its size.
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
