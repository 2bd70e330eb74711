//! Taking a bundle apart: the distances of all intervals by halving the sizes.
//!
//! What a bundle takes part in is laid out along the times that it ever holds. A time comes as the end of an interval that
//! one of its sizes serves, or from a smaller size, or was there at first. It goes as the beginning of an interval that
//! it serves, or to a larger size, or is there at last. What came from a smaller size and goes to a larger one is a token
//! more in between: the slack. Times that are there at last count as beginnings of intervals that end after all others,
//! in this order: each is served by the size that holds it.
//!
//! So all there is to find are distances. Which intervals does the middle size serve? They need at most that much, and the
//! others more. The halves are solved apart: the lower without the others, the upper with the slack that the lower leaves.
//! Both keep only the points where one of their own intervals begins or ends, with the least slack in between. Intervals
//! are served in order of their ends, each by the token that became free last before its beginning; where slack goes, the
//! latest tokens do. This stays optimal with tokens that vary over time, and serves the same intervals as all sizes
//! together would.
//!
//! An interval needs one token. So slack matters only as far as it grows by one where an interval begins and falls by one
//! where an interval ends: what exceeds that is cut, and changes nothing. Then each event brings a token or none, which is
//! a bit. All bits are there from the start, since an interval only asks for tokens from before its beginning. What ends
//! takes the latest one up to its beginning and is served by the lower half; where there is none, it takes the latest one
//! up to now, and is left to the upper half.

use super::group::Sizes;
use super::leaf::{self, Leaf};
use crate::number::{at, low15, narrow};
use crate::tokens::Tokens;
use crate::wide::{Plain, Registers, Wide};

/// Marks a time that is there at first; the lower bits say which size holds it. Numbers below it mark the end of an
/// interval and are the place of its beginning.
pub(super) const FIRST: u32 = 1 << 30;
/// Marks a time that is there at last, which the lower bits say. What is below it frees a token, the rest needs one.
pub(super) const LAST: u32 = 1 << 31;
/// Marks the beginning of an interval.
pub(super) const BEGIN: u32 = u32::MAX;
/// Events whose tokens are a word.
const WORD: usize = 64;

/// What happens at a point.
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

/// Sizes from `low` on and below `high`, with what happens to them.
pub(super) struct Part {
    low: u32,
    high: u32,
    events: Vec<u32>,
    /// Tokens that smaller sizes leave, as far as they can matter: before the first event, and after each.
    ///
    /// What begins needs at most one token more, and what ends leaves at most one. So this grows by at most one where a
    /// token is needed, falls by at most one where one becomes free, and does nothing else.
    slack: Vec<u32>,
    /// Events that free a token, a bit for each.
    frees: Vec<u64>,
    /// Events with which a token comes to be there: those that need one where the slack grows, and those that free one
    /// where it does not fall. What is not served gives that up, or what came last.
    gains: Vec<u64>,
    /// Times that are there at last.
    lasts: Vec<u64>,
}

/// One half of a part while it is taken apart.
pub(super) struct Half {
    events: Vec<u32>,
    slack: Vec<u32>,
    /// Events so far; there is room for one more behind them.
    pub length: usize,
    /// Slack after the newest event: the least so far, and no more than could be used.
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

    /// Takes an event, or leaves it to be overwritten by the next: a branch would take longer.
    #[inline]
    pub fn take(&mut self, code: u32, really: bool) {
        self.events[self.length] = code;
        self.length += usize::from(really);
        self.least += u32::from(really && code >= LAST);
    }

    /// Notes the slack at a time after the newest event.
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
    /// What happens, with the slack behind it.
    fn happenings(&self) -> impl Iterator<Item = (usize, (u32, u32))> {
        let slack = self.slack[1..].iter().copied();
        self.events.iter().copied().zip(slack).enumerate()
    }

    /// The events that were served, and those that were not.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn divide(mut self, served: &[bool], count: usize, middle: u32) -> (Self, Self) {
        let mut lower = Half::new(count);
        let mut upper = Half::new(self.events.len() - count);
        // Tokens of the lower half's own that nothing uses.
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

    /// There is one size, which serves them all.
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

    /// Whether its sizes and events fit in a leaf.
    fn is_leaf(&self) -> bool {
        at(self.high - self.low) <= leaf::SIZES && self.events.len() < leaf::NONE as usize - 1
    }

    /// Finds the size that serves each interval by asking all of them.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn find_all<R: Registers>(&self, sizes: &mut Sizes<'_>, registers: R) {
        let low = at(self.low);
        let mut leaf = Leaf::EMPTY;
        // No token of the leaf became free later.
        let mut newest = 0;
        // When the tokens of the slack came: the last goes first.
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
                // The latest goes. Where that is one of the leaf's, it has the slack's for it.
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

/// Takes parts apart; its tables are used for one after the other.
#[derive(Default)]
pub(super) struct Halving {
    tokens: Tokens,
    served: Vec<bool>,
    left: Vec<Part>,
}

impl Halving {
    /// Counts each interval at its distance, and finds the time that each size holds at last.
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

    /// Finds which events are of sizes below `middle`, and how many.
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
        // One more, to be written to where a branch would take longer.
        served.resize(events + 1, false);
        // Tokens still to come are later than what is asked for.
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

/// Takes the latest token up to `until`, or none where not `really`, and keeps which one is the earliest.
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

/// The places of bits.
#[inline]
fn bits(words: &[u64]) -> impl Iterator<Item = u32> {
    (0..).zip(words).flat_map(|(word, &bits)| {
        let left = |bits: &u64| Some(bits & (bits - 1)).filter(|left| *left != 0);
        let all = std::iter::successors(Some(bits).filter(|bits| *bits != 0), left);
        all.map(move |bits| word << 6 | bits.trailing_zeros())
    })
}
