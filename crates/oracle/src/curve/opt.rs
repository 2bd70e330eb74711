//! The OPT curve: the faults of Belady's policy at every size.
//!
//! With memory of C pages a reference is a hit if the interval since its page's last use is among the most intervals
//! that C − 1 tokens can serve (see `policy/opt.rs`). Those of a smaller memory are among those of a larger one, so each
//! interval has a least size, its distance. Halving finds all of them together: which intervals does the middle size
//! serve? They need at most that much, and the others more. The two halves are solved apart: the lower without the
//! others; the upper with those served in their place, as a cover that lowers the tokens left at each point of time. Both
//! keep only the points where one of their own intervals begins or ends, so that all halves at one depth are as long as
//! the string, and memory is touched in order. Serving in order of ends by the token that became free last stays optimal
//! with tokens that vary over time, and serves the same intervals as the undivided string would.
//!
//! Compare Sugumar and Abraham, "Efficient simulation of caches under optimal replacement", SIGMETRICS 1993, and
//! Bilardi, Ekanadham, Pattnaik, "Efficient stack distance computation for a class of priority replacement policies",
//! Int. J. Parallel Programming 41, 2013, which repair one stack reference by reference.

mod leaf;

use super::Curve;
use crate::flat::{self, AHEAD};
use crate::number::{at, narrow};
use crate::tokens::Tokens as Set;

/// The exact curve.
pub fn opt(references: &[u32], pages: u32) -> Curve {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("lzcnt")
    {
        // SAFETY: the processor has these features.
        return unsafe { opt_fast(references, pages) };
    }
    opt_anywhere(references, pages)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn opt_fast(references: &[u32], pages: u32) -> Curve {
    opt_anywhere(references, pages)
}

#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn opt_anywhere(references: &[u32], pages: u32) -> Curve {
    let (whole, again) = events(references, pages);
    let mut distances = vec![0; at(pages).max(1)];
    distances[0] = again;
    let mut scratch = Scratch::default();
    let mut left = vec![Part::whole(whole, pages)];
    while let Some(part) = left.pop() {
        part.solve(&mut scratch, &mut distances, &mut left);
    }
    Curve::of_distances(references.len() as u64, distances)
}

/// Marks the beginning of an interval.
const BEGIN: u32 = u32::MAX;

/// Beginnings and ends of all intervals in order of time, and the number of those without a point of time inside.
///
/// An end holds the place of its beginning. At one point of time the end comes first: its token serves what begins then.
fn events(references: &[u32], pages: u32) -> (Vec<u32>, u64) {
    // Whether a page comes again, from behind; the time of its last use, from the front.
    let mut again = vec![false; references.len()];
    let mut known = vec![0_u32; at(pages)];
    let mut trivial = 0;
    for (time, &page) in references.iter().enumerate().rev() {
        let next = std::mem::replace(&mut known[at(page)], narrow(time) + 1);
        // The interval to a next reference that follows at once has no inside.
        again[time] = next > narrow(time) + 2;
        trivial += u64::from(next == narrow(time) + 2);
    }
    known.fill(BEGIN);
    let mut events = Vec::with_capacity(references.len() * 2);
    for (time, &page) in references.iter().enumerate() {
        let begun = std::mem::replace(&mut known[at(page)], BEGIN);
        if begun != BEGIN {
            events.push(begun);
        }
        // What was used just before begins now, after this end.
        if time > 0 && again[time - 1] {
            let earlier = references[time - 1];
            known[at(earlier)] = narrow(events.len());
            events.push(BEGIN);
        }
    }
    events.shrink_to_fit();
    (events, trivial)
}

/// Intervals whose distance is above `low` and at most `high`.
struct Part {
    low: u32,
    high: u32,
    events: Vec<u32>,
    /// Intervals with distances up to `low` that cover the time after each event: the most of them, there. Empty for none.
    cover: Vec<u32>,
    /// Most intervals at one time, those that cover it included, and fewest that cover one of the part's own.
    fullest: u32,
    emptiest: u32,
}

/// Memory that is used again.
#[derive(Default)]
struct Scratch {
    tokens: Tokens,
    served: Vec<bool>,
}

/// One half of a part while it is taken apart.
struct Half {
    events: Vec<u32>,
    cover: Vec<u32>,
    open: u32,
    fullest: u32,
    emptiest: u32,
    /// Cover since the newest event.
    most: u32,
}

impl Half {
    fn new(length: usize) -> Self {
        Self {
            events: Vec::with_capacity(length),
            cover: Vec::with_capacity(length),
            open: 0,
            fullest: 0,
            emptiest: u32::MAX,
            most: 0,
        }
    }

    /// Takes the half's next event: a beginning, or the end of the one at `begun`.
    #[inline]
    fn take(&mut self, begun: u32) {
        self.close();
        self.events.push(begun);
        if begun == BEGIN {
            self.open += 1;
        } else {
            self.open -= 1;
        }
        self.most = 0;
    }

    /// The time since the newest event is over.
    #[inline]
    fn close(&mut self) {
        if self.events.is_empty() {
            return;
        }
        self.cover.push(self.most);
        if self.open > 0 {
            self.fullest = self.fullest.max(self.most + self.open);
            self.emptiest = self.emptiest.min(self.most);
        }
    }

    fn finish(mut self, low: u32, high: u32) -> Part {
        self.close();
        Part {
            low,
            high,
            events: self.events,
            cover: self.cover,
            fullest: self.fullest,
            emptiest: self.emptiest,
        }
    }
}

impl Part {
    /// All intervals, which nothing covers yet.
    fn whole(events: Vec<u32>, pages: u32) -> Self {
        let (mut open, mut fullest) = (0, 0);
        for &begun in &events {
            if begun == BEGIN {
                open += 1;
            } else {
                open -= 1;
            }
            fullest = fullest.max(open);
        }
        Self {
            low: 1,
            high: pages,
            events,
            cover: Vec::new(),
            fullest,
            emptiest: 0,
        }
    }

    #[inline]
    fn cover(&self, event: usize) -> u32 {
        self.cover.get(event).copied().unwrap_or(0)
    }

    /// Narrows the sizes that come in question: all are served once memory holds what is open at the fullest point.
    fn narrow(&mut self) {
        self.high = self.high.min(self.fullest + 1);
        // The least covered interval needs a token above its cover.
        self.low = self
            .low
            .max(self.emptiest.saturating_add(1))
            .min(self.high - 1);
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn solve(mut self, scratch: &mut Scratch, distances: &mut [u64], left: &mut Vec<Self>) {
        let intervals = self.events.len() / 2;
        if intervals == 0 {
            return;
        }
        self.narrow();
        if self.high - self.low == 1 {
            distances[at(self.high) - 1] += intervals as u64;
            return;
        }
        if self.high - self.low <= leaf::SIZES {
            self.find_all(distances);
            return;
        }
        // Distances are spread over orders of magnitude first, evenly at last.
        let middle = if self.high / 4 > self.low {
            narrow(at(self.low).saturating_mul(at(self.high)).isqrt())
        } else {
            u32::midpoint(self.low, self.high)
        };
        let middle = middle.clamp(self.low + 1, self.high - 1);
        let served = scratch.serve(&self, middle) * 2;
        let (lower, upper) = self.divide(&scratch.served, served, middle);
        left.push(upper);
        left.push(lower);
    }

    /// Those that were served with memory of `middle` pages, and those that were not.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn divide(mut self, served: &[bool], count: usize, middle: u32) -> (Self, Self) {
        let mut lower = Half::new(count);
        let mut upper = Half::new(self.events.len() - count);
        let mut added = 0;
        for (event, &is_served) in served.iter().enumerate() {
            let begun = self.events[event];
            if let Some(&later) = self.events.get(event + AHEAD) {
                flat::soon(&self.events, later);
            }
            let half = if is_served {
                added = if begun == BEGIN { added + 1 } else { added - 1 };
                &mut lower
            } else {
                &mut upper
            };
            // A beginning that was passed holds its place in its half.
            if begun == BEGIN {
                self.events[event] = narrow(half.events.len());
                half.take(BEGIN);
            } else {
                half.take(self.events[at(begun)]);
            }
            let cover = self.cover(event);
            lower.most = lower.most.max(cover);
            upper.most = upper.most.max(cover + added);
        }
        (
            lower.finish(self.low, middle),
            upper.finish(middle, self.high),
        )
    }
}

impl Scratch {
    /// Finds which intervals memory of `size` pages serves, and how many.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn serve(&mut self, part: &Part, size: u32) -> usize {
        let Self { tokens, served } = self;
        let mut count = 0;
        served.clear();
        served.resize(part.events.len(), false);
        tokens.reset(part.events.len());
        for (event, &begun) in part.events.iter().enumerate() {
            if let Some(&later) = part.events.get(event + AHEAD) {
                flat::soon(served, later);
                flat::soon(&tokens.counts, later);
                tokens.set.soon(later);
            }
            if begun != BEGIN
                && let Some(free) = tokens.latest(begun)
            {
                tokens.take(free, 1);
                served[event] = true;
                served[at(begun)] = true;
                count += 1;
            }
            let capacity = size - 1 - part.cover(event);
            if capacity > tokens.total {
                tokens.add(narrow(event), capacity - tokens.total);
            }
            while tokens.total > capacity {
                let Some(latest) = tokens.latest(narrow(event)) else {
                    break;
                };
                let excess = tokens.total - capacity;
                tokens.take(latest, excess.min(tokens.counts[at(latest)]));
            }
        }
        count
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
    fn latest(&self, event: u32) -> Option<u32> {
        self.set.latest(event)
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
