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

use super::group::Sizes;
use super::leaf::{self, Leaf};
use super::owners::Exchange;
use crate::flat::{self, AHEAD};
use crate::number::{at, low15, narrow};
use crate::tokens::Tokens as Set;
use crate::wide::{Plain, Registers, Wide};

/// Marks the beginning of an interval. Numbers below `LAST` mark an end and are the place of the beginning.
const BEGIN: u32 = u32::MAX;
/// Marks a time that is there at last, which the lower bits say.
const LAST: u32 = 1 << 31;
/// Marks a time that is there at first; the lower bits say which size holds it.
const FIRST: u32 = 3 << 30;
/// Marks a time that comes from a smaller size, or goes to a larger one.
const PASSING: u32 = BEGIN - 1;

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
            FIRST.. => Self::First(code - FIRST),
            LAST.. => Self::Last(code - LAST),
            _ => Self::End(code),
        }
    }
}

/// How each time comes and goes.
#[derive(Default)]
pub(super) struct Layout {
    comes: Vec<u32>,
    goes: Vec<u32>,
}

impl Layout {
    /// Makes room for times below `times`.
    pub fn reset(&mut self, times: usize) {
        self.comes.clear();
        self.comes.resize(times, PASSING);
        self.goes.clear();
        self.goes.resize(times, LAST);
    }

    /// A size holds a time at first.
    #[inline]
    pub fn hold(&mut self, time: u32, size: u32) {
        self.comes[at(time)] = FIRST + size;
    }

    /// An exchange that the sizes make together.
    #[inline]
    pub fn exchange(&mut self, Exchange { given, taken }: Exchange) {
        if given < taken {
            self.goes[at(taken)] = PASSING;
        } else {
            self.goes[at(taken)] = BEGIN;
            self.comes[at(given)] = taken;
        }
    }

    /// All that happens to `sizes` sizes.
    pub fn part(&mut self, sizes: u32) -> Part {
        let events = |codes: &[u32]| codes.iter().filter(|code| **code != PASSING).count();
        let mut part = Half::new(events(&self.comes) + events(&self.goes));
        let mut slack = 0_u32;
        for time in 0..self.comes.len() {
            let (comes, goes) = (self.comes[time], self.goes[time]);
            slack += u32::from(comes == PASSING);
            slack -= u32::from(goes == PASSING);
            if comes != PASSING {
                // An end knows the time of its beginning, which knows its place by now.
                let is_end = comes < LAST;
                let code = if is_end { self.goes[at(comes)] } else { comes };
                part.take(code, true);
                part.note(slack);
            }
            if goes != PASSING {
                let code = if goes == BEGIN {
                    BEGIN
                } else {
                    LAST + narrow(time)
                };
                self.goes[time] = narrow(part.length);
                part.take(code, true);
            }
            part.note(slack);
        }
        part.finish(0, sizes)
    }
}

/// Sizes from `low` on and below `high`, with what happens to them.
pub(super) struct Part {
    low: u32,
    high: u32,
    events: Vec<u32>,
    /// Tokens that smaller sizes leave between two events, the fewest of them: before the first, and after each.
    slack: Vec<u32>,
}

/// One half of a part while it is taken apart.
struct Half {
    events: Vec<u32>,
    slack: Vec<u32>,
    /// Events so far; there is room for one more behind them.
    length: usize,
}

impl Half {
    fn new(length: usize) -> Self {
        Self {
            events: vec![0; length + 1],
            slack: vec![u32::MAX; length + 1],
            length: 0,
        }
    }

    /// Takes an event, or leaves it to be overwritten by the next: a branch would take longer.
    #[inline]
    fn take(&mut self, code: u32, really: bool) {
        self.events[self.length] = code;
        self.length += usize::from(really);
    }

    /// Notes the slack at a time after the newest event.
    #[inline]
    fn note(&mut self, slack: u32) {
        let least = &mut self.slack[self.length];
        *least = slack.min(*least);
    }

    fn finish(mut self, low: u32, high: u32) -> Part {
        self.events.truncate(self.length);
        Part {
            low,
            high,
            events: self.events,
            slack: self.slack,
        }
    }
}

impl Part {
    /// The least slack between an event and the next.
    #[inline]
    fn slack(&self, event: usize) -> u32 {
        self.slack[event + 1]
    }

    /// The events that were served, and those that were not.
    fn divide(mut self, served: &[bool], count: usize, middle: u32) -> (Self, Self) {
        let mut lower = Half::new(count);
        let mut upper = Half::new(self.events.len() - count);
        // Tokens of the lower half's own that nothing uses.
        let mut idle = 0_u32;
        for (event, &is_lower) in served.iter().enumerate() {
            let code = self.events[event];
            if let Some(&later) = self.events.get(event + AHEAD) {
                flat::soon(&self.events, later);
            }
            // A passed event holds its place in its half.
            self.events[event] = narrow(if is_lower { lower.length } else { upper.length });
            let is_end = code < LAST;
            let begun = self.events[if is_end { at(code) } else { event }];
            let moved = if is_end { begun } else { code };
            lower.take(moved, is_lower);
            upper.take(moved, !is_lower);
            let frees = is_end || (FIRST..BEGIN).contains(&code);
            let change = if frees { 1 } else { u32::MAX };
            idle = idle.wrapping_add(if is_lower { change } else { 0 });
            let slack = self.slack(event);
            lower.note(slack);
            upper.note(slack.wrapping_add(idle));
        }
        (
            lower.finish(self.low, middle),
            upper.finish(middle, self.high),
        )
    }

    /// There is one size, which serves them all.
    fn find_one(&self, sizes: &mut Sizes<'_>, times: &[u32]) {
        let low = at(self.low);
        for &code in &self.events {
            match Event::of(code) {
                Event::End(_) => sizes.hits[low] += 1,
                Event::Last(time) => sizes.free[low] = times[at(time)],
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
    fn find_all<R: Registers>(&self, sizes: &mut Sizes<'_>, times: &[u32], registers: R) {
        let low = at(self.low);
        let mut leaf = Leaf::EMPTY;
        // No token of the leaf became free later.
        let mut newest = 0;
        // Tokens of the slack by the time since when they are there: the last that came goes first.
        let mut below = Vec::new();
        let mut slack = 0;
        for (event, &code) in self.events.iter().enumerate() {
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
            let left = self.slack(event);
            if left > slack {
                below.push((now, left - slack));
            }
            let mut gone = slack.saturating_sub(left);
            while gone > 0
                && let Some((time, count)) = below.last_mut()
            {
                // The latest goes. Where that is one of the leaf's, it has one of the slack's for it.
                let kept = *time < newest && leaf.pass(*time, leaf::NONE - 1, registers).is_some();
                let taken = if kept { 1 } else { gone.min(*count) };
                if !kept {
                    newest = newest.min(*time);
                }
                gone -= taken;
                *count -= taken;
                if *count == 0 {
                    below.pop();
                }
            }
            slack = left;
        }
        for (event, &code) in self.events.iter().enumerate() {
            if let Event::Last(time) = Event::of(code)
                && let Some(size) = leaf.serve(low15(event + 1), leaf::NONE, registers)
            {
                sizes.free[low + size] = times[at(time)];
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
    pub fn solve(&mut self, whole: Part, sizes: &mut Sizes<'_>, times: &[u32]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = Wide::at_hand() {
            // SAFETY: the processor has these features.
            return unsafe { self.solve_wide(whole, sizes, times, wide) };
        }
        self.solve_with(whole, sizes, times, Plain);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn solve_wide(&mut self, whole: Part, sizes: &mut Sizes<'_>, times: &[u32], wide: Wide) {
        self.solve_with(whole, sizes, times, wide);
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn solve_with<R: Registers>(
        &mut self,
        whole: Part,
        sizes: &mut Sizes<'_>,
        times: &[u32],
        registers: R,
    ) {
        self.left.push(whole);
        while let Some(part) = self.left.pop() {
            if part.is_leaf() {
                part.find_all(sizes, times, registers);
            } else if part.high - part.low == 1 {
                part.find_one(sizes, times);
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
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn serve(&mut self, part: &Part, middle: u32) -> usize {
        let Self { tokens, served, .. } = self;
        let (mut first, mut count) = (0, 0);
        served.clear();
        served.resize(part.events.len(), false);
        tokens.reset(part.events.len());
        for (event, &code) in part.events.iter().enumerate() {
            if code < LAST {
                if let Some(free) = tokens.set.latest(code) {
                    tokens.take(free, 1);
                    served[event] = true;
                    served[at(code)] = true;
                    count += 2;
                }
            } else {
                let is_lower = code.wrapping_sub(FIRST) < middle;
                served[event] = is_lower;
                first += u32::from(is_lower);
            }
            let capacity = part.slack(event) + first;
            if capacity > tokens.total {
                tokens.add(narrow(event), capacity - tokens.total);
            }
            while tokens.total > capacity {
                let Some(latest) = tokens.set.latest(narrow(event)) else {
                    break;
                };
                let excess = tokens.total - capacity;
                tokens.take(latest, excess.min(tokens.counts[at(latest)]));
            }
        }
        for (event, &code) in part.events.iter().enumerate() {
            if (LAST..FIRST).contains(&code)
                && let Some(free) = tokens.set.latest(narrow(event))
            {
                tokens.take(free, 1);
                served[event] = true;
                count += 1;
            }
        }
        count + at(first)
    }
}

/// Tokens by the event at which they became free.
#[derive(Default)]
struct Tokens {
    counts: Vec<u32>,
    set: Set,
    total: u32,
}

impl Tokens {
    fn reset(&mut self, events: usize) {
        self.counts.clear();
        self.counts.resize(events, 0);
        self.set.reset(events);
        self.total = 0;
    }

    #[inline]
    fn add(&mut self, event: u32, count: u32) {
        let here = &mut self.counts[at(event)];
        if *here == 0 {
            self.set.insert(event);
        }
        *here += count;
        self.total += count;
    }

    #[inline]
    fn take(&mut self, event: u32, count: u32) {
        let here = &mut self.counts[at(event)];
        *here -= count;
        self.total -= count;
        if *here == 0 {
            self.set.remove(event);
        }
    }
}
