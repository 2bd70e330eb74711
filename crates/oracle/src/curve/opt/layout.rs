//! Builds the list of the events of a bundle in order of time, the input of `halving.rs`. An event is a time that the
//! bundle gets or gives up.

use super::halving::{BEGIN, FIRST, Half, LAST, Part};
use super::owners::Exchange;
use crate::curve::ranks::Ranks;
use crate::number::{at, narrow};

/// How a bundle gets and gives up each time, as bitmaps over times.
#[derive(Default)]
pub(super) struct Layout {
    /// Times that come from smaller sizes.
    came: Vec<u64>,
    /// Times that go to larger sizes.
    went: Vec<u64>,
    /// Times held by a size at the start.
    held: Ranks,
    /// The size that holds each time of `held`, in ascending order of time.
    holders: Vec<u32>,
    /// Times at which an interval ends.
    ended: Vec<u64>,
    /// The time at which each interval of `ended` began, in order of the ends.
    begins: Vec<u32>,
    /// Times at which an interval begins.
    begun: Ranks,
    /// For each time of `begun`, in ascending order, the index of its event.
    places: Vec<u32>,
}

impl Layout {
    /// Returns the events of a bundle in order of time. `free` contains the time that each size holds at the start. All
    /// times must be below `end`.
    pub fn part(&mut self, free: &[u32], exchanges: &[Exchange], end: usize) -> Part {
        let words = end / 64 + 1;
        for bits in [&mut self.came, &mut self.went, &mut self.ended] {
            bits.clear();
            bits.resize(words, 0);
        }
        self.held.reset(end);
        self.begun.reset(end);
        for &time in free {
            self.held.insert(time);
        }
        self.held.count();
        self.holders.resize(free.len(), 0);
        for (size, &time) in (0..).zip(free) {
            self.holders[at(self.held.of(time))] = size;
        }
        self.begins.clear();
        for &Exchange { given, taken } in exchanges {
            if given < taken {
                set(&mut self.came, given);
                set(&mut self.went, taken);
            } else {
                set(&mut self.ended, given);
                self.begins.push(taken);
                self.begun.insert(taken);
            }
        }
        self.begun.count();
        self.sweep(2 * (free.len() + self.begins.len()))
            .finish(0, narrow(free.len()))
    }

    /// Creates the events in order of time from the bitmaps.
    fn sweep(&mut self, events: usize) -> Half {
        let mut part = Half::new(events);
        let mut holders = self.holders.iter();
        let mut begins = self.begins.iter();
        self.places.clear();
        let mut slack = 0_u32;
        for word in 0..self.came.len() {
            let (came, went) = (self.came[word], self.went[word]);
            let (held, begun) = (self.held.words()[word], self.begun.words()[word]);
            let comes = held | self.ended[word];
            // A time that never goes to a larger size is held to the end.
            let goes = begun | ((came | comes) & !went);
            let mut left = comes | goes | (came ^ went);
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                slack += u32::from(came & bit != 0);
                slack -= u32::from(went & bit != 0);
                if comes & bit != 0 {
                    let code = if held & bit != 0 {
                        FIRST + holders.next().copied().unwrap_or(0)
                    } else {
                        let began = begins.next().copied().unwrap_or(0);
                        self.places[at(self.begun.of(began))]
                    };
                    part.take(code, true);
                    part.note(slack);
                }
                if goes & bit != 0 {
                    let code = if begun & bit != 0 {
                        self.places.push(narrow(part.length));
                        BEGIN
                    } else {
                        LAST + narrow(word * 64) + bit.trailing_zeros()
                    };
                    part.take(code, true);
                }
                part.note(slack);
            }
        }
        part
    }
}

#[inline]
fn set(bits: &mut [u64], time: u32) {
    bits[at(time >> 6)] |= 1 << (time & 63);
}
