//! Finds the distances of all intervals of a bundle by halving its range of sizes recursively.
//!
//! The events of a bundle are ordered along the times that it ever holds. A bundle gets a time in one of three ways: as
//! the end of an interval that one of its sizes serves, from a smaller size, or by holding it at the start. It gives a
//! time up in one of three ways: as the beginning of an interval that it serves, to a larger size, or by holding it at
//! the end. A time that comes from a smaller size and goes to a larger one is one more token in between. The number of
//! such tokens is called the slack. Times held at the end count as beginnings of intervals that end after all others,
//! in order of time. Each of these intervals is served by the size that holds the time.
//!
//! So only the distances have to be found. First, the intervals that the middle size can serve are found. Their
//! distance is at most the middle size; the distance of all other intervals is larger. The two halves are then solved
//! separately. The lower half has only the served intervals. The upper half has the other intervals, and the slack that
//! the lower half leaves. Each half keeps only the points where one of its own intervals begins or ends, with the
//! smallest slack in between. Intervals are served in order of their ends, each by the token that became free last
//! before the interval began. If the slack falls, the latest tokens are given up. This stays optimal if the number of
//! tokens varies over time, and it serves the same intervals as solving all sizes together.
//!
//! An interval needs one token. So the slack matters only if it grows by at most one where an interval begins and falls
//! by at most one where an interval ends. More than that is cut off without changing the result. Then each event brings
//! one token or none, which is one bit. All bits can be set from the start, because an interval only asks for tokens
//! from before its beginning. At its end, an interval takes the latest token up to its beginning and is served by the
//! lower half. If there is none, it takes the latest token up to now and is left to the upper half.

use super::leaf::{self, Leaf};
use super::sizes::Sizes;
use crate::number::{at, low15, narrow};
use crate::tokens::Tokens;
use crate::wide::{Plain, Registers, Wide};

/// Code of an event for a time that a size holds at the start: this number plus the index of the size. A smaller code
/// is the end of an interval, and is the index of the event at which the interval begins.
pub(super) const FIRST: u32 = 1 << 30;
/// Code of an event for a time that a size holds at the end: this number plus the time. Events with smaller codes free
/// a token, those with this or a larger code need one.
pub(super) const LAST: u32 = 1 << 31;
/// Code of an event that begins an interval.
pub(super) const BEGIN: u32 = u32::MAX;
/// Number of events in a word of a bitmap.
const WORD: usize = 64;

/// An event of a bundle, decoded from its code.
enum Event {
    Begin,
    End(u32),
    First(u32),
    Last(u32),
}

impl Event {
    #[inline]
    fn of(code: u32) -> Self {
        match code {
            BEGIN => Self::Begin,
            LAST.. => Self::Last(code - LAST),
            FIRST.. => Self::First(code - FIRST),
            _ => Self::End(code),
        }
    }
}

/// A range `low..high` of the sizes of a bundle, and the events of these sizes in order of time.
pub(super) struct Part {
    low: u32,
    high: u32,
    events: Vec<u32>,
    /// Slack before the first event and after each event: the number of tokens that smaller sizes leave over, limited
    /// to the number that these events can use.
    ///
    /// An event that begins an interval needs at most one more token, and one that ends an interval frees at most one.
    /// So the slack grows by at most one at a beginning, falls by at most one at an end, and otherwise stays the same.
    slack: Vec<u32>,
    /// A bit for each event: set if it frees a token.
    frees: Vec<u64>,
    /// A bit for each event: set if a token becomes available with it, because the slack grows, or because the event
    /// frees a token and the slack does not fall. An interval that the lower half cannot serve gives up the latest of
    /// these tokens.
    gains: Vec<u64>,
    /// A bit for each event: set if the event is a time held at the end.
    lasts: Vec<u64>,
}

/// The lower or upper half of a part, while events are added to it.
pub(super) struct Half {
    events: Vec<u32>,
    slack: Vec<u32>,
    /// Number of events so far. The table has space for one more.
    pub length: usize,
    /// Smallest slack since the newest event, limited to the number of tokens that later events can use.
    least: u32,
}

impl Half {
    pub fn new(length: usize) -> Self {
        Self {
            events: vec![0; length + 1],
            slack: vec![0; length + 1],
            length: 0,
            least: 0,
        }
    }

    /// Appends an event if `really` is true. Otherwise writes it to the free entry after the last event, where the next
    /// event overwrites it. This avoids a branch.
    #[inline]
    pub fn take(&mut self, code: u32, really: bool) {
        self.events[self.length] = code;
        self.length += usize::from(really);
        self.least += u32::from(really && code >= LAST);
    }

    /// Records a slack (number of tokens left by smaller sizes) at a time after the newest event.
    #[inline]
    pub fn note(&mut self, slack: u32) {
        self.least = self.least.min(slack);
        self.slack[self.length] = self.least;
    }

    pub fn finish(mut self, low: u32, high: u32) -> Part {
        let words = self.length.div_ceil(WORD);
        let (mut frees, mut gains, mut lasts) = (vec![0; words], vec![0; words], vec![0; words]);
        self.events.truncate(self.length);
        let mut after = self.least;
        let slacks = self.slack[..self.length].chunks_mut(WORD);
        let words = self.events.chunks(WORD).zip(slacks).enumerate();
        for (word, (codes, slacks)) in words.rev() {
            let (mut free, mut gain, mut last) = (0, 0, 0);
            for (&code, slack) in codes.iter().zip(slacks).rev() {
                let is_free = u32::from(code < LAST);
                let before = (after + is_free).min(*slack);
                *slack = before;
                free = free << 1 | u64::from(is_free);
                gain = gain << 1 | u64::from(after + is_free - before);
                last = last << 1 | u64::from((LAST..BEGIN).contains(&code));
                after = before;
            }
            (frees[word], gains[word], lasts[word]) = (free, gain, last);
        }
        Part {
            low,
            high,
            events: self.events,
            slack: self.slack,
            frees,
            gains,
            lasts,
        }
    }
}

impl Part {
    /// Iterates over the events in order, as (index, (code, slack after the event)).
    fn happenings(&self) -> impl Iterator<Item = (usize, (u32, u32))> {
        let slack = self.slack[1..].iter().copied();
        self.events.iter().copied().zip(slack).enumerate()
    }

    /// Divides the events into the lower half, which gets the events marked in `served`, and the upper half, which gets
    /// the others.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn divide(mut self, served: &[bool], count: usize, middle: u32) -> (Self, Self) {
        let mut lower = Half::new(count);
        let mut upper = Half::new(self.events.len() - count);
        // Number of tokens that the lower half does not use.
        let mut idle = 0_u32;
        for (event, &slack) in self.slack[1..].iter().enumerate() {
            let (code, is_lower) = (self.events[event], served[event]);
            // If an event was already moved, this is its index in its half.
            self.events[event] = narrow(if is_lower { lower.length } else { upper.length });
            let is_end = code < FIRST;
            let begun = self.events[if is_end { at(code) } else { event }];
            let moved = if is_end { begun } else { code };
            lower.take(moved, is_lower);
            upper.take(moved, !is_lower);
            let change = if code < LAST { 1 } else { u32::MAX };
            idle = idle.wrapping_add(if is_lower { change } else { 0 });
            lower.note(slack);
            upper.note(slack.wrapping_add(idle));
        }
        (
            lower.finish(self.low, middle),
            upper.finish(middle, self.high),
        )
    }

    /// Processes a part with a single size. It serves all intervals of the part.
    fn find_one(&self, sizes: &mut Sizes<'_>) {
        let low = at(self.low);
        for &code in &self.events {
            match Event::of(code) {
                Event::End(_) => sizes.hits[low] += 1,
                Event::Last(time) => sizes.free[low] = time,
                Event::Begin | Event::First(_) => {}
            }
        }
    }

    /// Returns true if the sizes and events are few enough for a single leaf.
    fn is_leaf(&self) -> bool {
        at(self.high - self.low) <= leaf::SIZES && self.events.len() < leaf::NONE as usize - 1
    }

    /// Finds the size that serves each interval by searching all sizes in order.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn find_all<R: Registers>(&self, sizes: &mut Sizes<'_>, registers: R) {
        let low = at(self.low);
        let mut leaf = Leaf::EMPTY;
        // An upper bound of the latest time at which a token of the leaf became free.
        let mut newest = 0;
        // For each token of the slack, the time at which it came. The last one is given up first.
        let mut below = Vec::new();
        for (event, (code, slack)) in self.happenings() {
            let now = low15(event + 1);
            match Event::of(code) {
                Event::End(begun) => {
                    if let Some(size) = leaf.serve(low15(at(begun) + 1), now, registers) {
                        sizes.hits[low + size] += 1;
                        newest = now;
                    }
                }
                Event::First(size) => {
                    leaf.0[at(size) - low] = now;
                    newest = now;
                }
                Event::Begin | Event::Last(_) => {}
            }
            if at(slack) > below.len() {
                below.push(now);
            } else if at(slack) < below.len()
                && let Some(time) = below.pop()
            {
                // The latest token is given up. If it belongs to the leaf, the leaf gets the slack's token instead.
                let kept = time < newest && leaf.pass(time, leaf::NONE - 1, registers).is_some();
                newest = if kept { newest } else { newest.min(time) };
            }
        }
        for event in bits(&self.lasts).map(at) {
            if let Event::Last(time) = Event::of(self.events[event])
                && let Some(size) = leaf.serve(low15(event + 1), leaf::NONE, registers)
            {
                sizes.free[low + size] = time;
            }
        }
    }
}

/// Processes parts by halving. Its tables are reused for all parts.
#[derive(Default)]
pub(super) struct Halving {
    tokens: Tokens,
    served: Vec<bool>,
    left: Vec<Part>,
}

impl Halving {
    /// Counts each interval as a hit of the size that serves it, and finds the time that each size holds at the end.
    pub fn solve(&mut self, whole: Part, sizes: &mut Sizes<'_>) {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = Wide::at_hand() {
            // SAFETY: the processor has these features.
            return unsafe { self.solve_wide(whole, sizes, wide) };
        }
        self.solve_with(whole, sizes, Plain);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn solve_wide(&mut self, whole: Part, sizes: &mut Sizes<'_>, wide: Wide) {
        self.solve_with(whole, sizes, wide);
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn solve_with<R: Registers>(&mut self, whole: Part, sizes: &mut Sizes<'_>, registers: R) {
        self.left.push(whole);
        while let Some(part) = self.left.pop() {
            if part.is_leaf() {
                part.find_all(sizes, registers);
            } else if part.high - part.low == 1 {
                part.find_one(sizes);
            } else {
                let middle = u32::midpoint(part.low, part.high);
                let count = self.serve(&part, middle);
                let (lower, upper) = part.divide(&self.served, count, middle);
                self.left.push(upper);
                self.left.push(lower);
            }
        }
    }

    /// Marks in `served` which events belong to sizes below `middle`, and returns their number.
    #[expect(
        clippy::needless_bitwise_bool,
        reason = "a branch that goes either way takes longer than both ways"
    )]
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn serve(&mut self, part: &Part, middle: u32) -> usize {
        let Self { tokens, served, .. } = self;
        let events = part.events.len();
        let mut count = 0;
        served.clear();
        // There is one entry more than there are events, as a target for writes that avoid a branch.
        served.resize(events + 1, false);
        // All tokens are set from the start. Later ones are never found, because searches end at `until`.
        tokens.load(&part.gains);
        let mut earliest = tokens.first(0).unwrap_or(u32::MAX);
        for (word, &frees) in (0..).zip(&part.frees) {
            let mut left = frees;
            while left != 0 {
                let now = word << 6 | left.trailing_zeros();
                left &= left - 1;
                let code = part.events[at(now)];
                let is_served = (code < FIRST) & (code >= earliest);
                let is_first = code.wrapping_sub(FIRST) < middle;
                served[at(now)] = is_served | is_first;
                served[if is_served { at(code) } else { events }] = true;
                count += 2 * usize::from(is_served) + usize::from(is_first);
                let until = if is_served { code } else { now };
                take_latest(tokens, &mut earliest, until, !is_first);
            }
        }
        for event in bits(&part.lasts) {
            if event >= earliest {
                take_latest(tokens, &mut earliest, event, true);
                served[at(event)] = true;
                count += 1;
            }
        }
        count
    }
}

/// If `really` is true, removes the latest token at or before `until` from the set and updates `earliest`.
#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn take_latest(tokens: &mut Tokens, earliest: &mut u32, until: u32, really: bool) {
    let found = tokens.remove_latest(until, really);
    if really && found == *earliest {
        *earliest = tokens.first(found).unwrap_or(u32::MAX);
    }
}

/// Returns the indices of the bits that are set, in ascending order.
#[inline]
fn bits(words: &[u64]) -> impl Iterator<Item = u32> {
    (0..).zip(words).flat_map(|(word, &bits)| {
        let left = |bits: &u64| Some(bits & (bits - 1)).filter(|left| *left != 0);
        let all = std::iter::successors(Some(bits).filter(|bits| *bits != 0), left);
        all.map(move |bits| word << 6 | bits.trailing_zeros())
    })
}
