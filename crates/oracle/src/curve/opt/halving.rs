//! Finds the distances of all intervals of a bundle by halving its range of sizes recursively.
//!
//! The events of a bundle are ordered along the times that it ever holds. A bundle gets a time as the end of an
//! interval that one of its sizes serves, or from a smaller size, or holds it at the start. It gives a time up as the
//! beginning of an interval that it serves, or to a larger size, or holds it at the end. A time that comes from a
//! smaller size and goes to a larger one is one more token in between: the slack. Times held at the end count as
//! beginnings of intervals that end after all others, in this order: each is served by the size that holds it.
//!
//! So only distances have to be found. Which intervals does the middle size serve? They need at most that much, and the
//! others more. The halves are solved separately: the lower without those others, the upper with the slack that the
//! lower leaves. Both keep only the points where one of their own intervals begins or ends, with the least slack in
//! between. Intervals are served in order of their ends, each by the token that became free last before its beginning;
//! where slack goes, the latest tokens do. This stays optimal with tokens that vary over time, and serves the same
//! intervals as all sizes together would.
//!
//! An interval needs one token. So slack matters only as far as it grows by one where an interval begins and falls by
//! one where an interval ends: what exceeds that is cut, and changes nothing. Then each event brings a token or none,
//! which is a bit. All bits are there from the start, since an interval only asks for tokens from before its beginning.
//! What ends takes the latest one up to its beginning and is served by the lower half; where there is none, it takes
//! the latest one up to now, and is left to the upper half.

use super::group::Sizes;
use super::leaf::{self, Leaf};
use crate::number::{at, low15, narrow};
use crate::tokens::Tokens;
use crate::wide::{Plain, Registers, Wide};

/// Code of a time held at the start, plus the size that holds it. Codes below it are ends of intervals: the index of
/// the event at which the interval begins.
pub(super) const FIRST: u32 = 1 << 30;
/// Code of a time held at the end, plus that time. Events with codes below it free a token, the others need one.
pub(super) const LAST: u32 = 1 << 31;
/// Code of the beginning of an interval.
pub(super) const BEGIN: u32 = u32::MAX;
/// Events for each word of a bitmap.
const WORD: usize = 64;

/// A decoded event.
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

/// The sizes `low..high` with their events.
pub(super) struct Part {
    low: u32,
    high: u32,
    events: Vec<u32>,
    /// Tokens left by smaller sizes, as many as can be used: before the first event, and after each.
    ///
    /// An event that begins an interval needs at most one more token, one that ends an interval frees at most one. So
    /// the slack grows by at most one where a token is needed, falls by at most one where one is freed, and else stays.
    slack: Vec<u32>,
    /// A bit for each event: set if it frees a token.
    frees: Vec<u64>,
    /// A bit for each event: set if a token becomes available with it, because the slack grows or because the event
    /// frees a token and the slack does not fall. An event that is not served gives up the latest of these tokens.
    gains: Vec<u64>,
    /// A bit for each event: set if it is a time held at the end.
    lasts: Vec<u64>,
}

/// One half of a part, under construction.
pub(super) struct Half {
    events: Vec<u32>,
    slack: Vec<u32>,
    /// Events so far; the table has space for one more.
    pub length: usize,
    /// Smallest slack since the newest event, at most what can be used.
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

    /// Appends an event if `really`; otherwise the next event overwrites it. This avoids a branch.
    #[inline]
    pub fn take(&mut self, code: u32, really: bool) {
        self.events[self.length] = code;
        self.length += usize::from(really);
        self.least += u32::from(really && code >= LAST);
    }

    /// Records the slack at a time after the newest event.
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
    /// Returns the events in order, each with the slack after it.
    fn happenings(&self) -> impl Iterator<Item = (usize, (u32, u32))> {
        let slack = self.slack[1..].iter().copied();
        self.events.iter().copied().zip(slack).enumerate()
    }

    /// Splits the events into those that were served and those that were not.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn divide(mut self, served: &[bool], count: usize, middle: u32) -> (Self, Self) {
        let mut lower = Half::new(count);
        let mut upper = Half::new(self.events.len() - count);
        // Unused tokens of the lower half itself.
        let mut idle = 0_u32;
        for (event, &slack) in self.slack[1..].iter().enumerate() {
            let (code, is_lower) = (self.events[event], served[event]);
            // A passed event holds its place in its half.
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

    /// Solves a part of one size, which serves all its intervals.
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

    /// Returns true if the sizes and events fit in a leaf.
    fn is_leaf(&self) -> bool {
        at(self.high - self.low) <= leaf::SIZES && self.events.len() < leaf::NONE as usize - 1
    }

    /// Finds the size that serves each interval by searching all sizes.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn find_all<R: Registers>(&self, sizes: &mut Sizes<'_>, registers: R) {
        let low = at(self.low);
        let mut leaf = Leaf::EMPTY;
        // The latest time at which a token of the leaf became free, or later.
        let mut newest = 0;
        // When each token of the slack came; the last one is given up first.
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

/// Solver of parts; its tables are reused from part to part.
#[derive(Default)]
pub(super) struct Halving {
    tokens: Tokens,
    served: Vec<bool>,
    left: Vec<Part>,
}

impl Halving {
    /// Counts each interval at its distance, and finds the time that each size holds at the end.
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

    /// Finds which events belong to sizes below `middle`, and returns their number.
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
        // One entry more than events, as a target for writes that avoid a branch.
        served.resize(events + 1, false);
        // All tokens are set from the start: later ones are never found, since searches end at `until`.
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

/// Removes the latest token at or before `until` if `really`, and updates `earliest`.
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

/// Returns the indices of the bits that are set.
#[inline]
fn bits(words: &[u64]) -> impl Iterator<Item = u32> {
    (0..).zip(words).flat_map(|(word, &bits)| {
        let left = |bits: &u64| Some(bits & (bits - 1)).filter(|left| *left != 0);
        let all = std::iter::successors(Some(bits).filter(|bits| *bits != 0), left);
        all.map(move |bits| word << 6 | bits.trailing_zeros())
    })
}
