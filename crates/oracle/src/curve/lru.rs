//! Computes the LRU curve, the number of faults at every size of memory, from stack distances.
//!
//! A reference is a hit if memory has at least as many pages as were used since the last use of its page, that page
//! included (Mattson et al. 1970). The last use of each page is a live bit on an axis of time. The distance is the
//! number of live bits from that bit on (Bennett and Kruskal, "LRU stack processing", IBM J. R&D 19(4), 1975). The gaps
//! on the axis are closed when the axis is full, so that about six times for each page are enough (Olken's bound
//! without a tree).
//!
//! Future times count as live from the start. They come after every last use and so do not change the number of live
//! bits before it. A use therefore only has to clear the bit of the page's previous use. One cache line holds the bits
//! of 384 times and, for each of its words, the number of live bits before the word. Above the lines, groups and nodes
//! hold for each child the number of live bits before it. So a query reads one number per level, and an update changes
//! one run of consecutive numbers per level.

use super::Curve;
use crate::flat::{self, AHEAD};
use crate::number::{at, narrow};

/// Number of words of live bits in a line.
const WORDS: usize = 6;
/// Number of times that are stored in a line, one bit each.
const LINE: u32 = 64 * narrow(WORDS);
/// Difference between the first times of two neighbouring lines: a power of two, so that a shift finds the line of a
/// time. The last times, from [`LINE`] on, are not used.
const LINE_SPAN: u32 = 512;
/// Number of lines in a group: few enough that the number of live bits in a group fits in 16 bits.
const GROUP: usize = 32;
/// Number of children of a node.
const FAN: usize = 32;
/// Number of neighbouring children of a node whose sums are updated in one step.
const PART: usize = 8;
/// Size of the time axis: number of times for each page.
const SLOTS_PER_PAGE: usize = 6;

/// Returns the exact LRU curve for memory of 1 to `pages` pages.
pub fn lru(references: &[u32], pages: u32) -> Curve {
    let mut stack = Stack::new(pages);
    stack.run(references);
    Curve::of_distances(references.len() as u64, stack.into_counts())
}

/// Live bits of consecutive times, in one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    /// A bit for each time; set if the time is a page's last use or in the future.
    live: [u64; WORDS],
    /// For each word, the number of live bits in the line before the word.
    sums: [u16; 8],
}

/// For each line of a group, the number of live bits in the group before the line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Group([u16; GROUP]);

/// For each child of a node, the number of live bits in the node before the child.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node([u32; FAN]);

/// One level of the tree above the groups. The children of its nodes are the groups or the nodes of the level below.
struct Level {
    nodes: Vec<Node>,
    /// For one node: the number of runs of [`PART`] children in which at least one child exists. The top level has a
    /// single node, which may have few children.
    parts: usize,
}

struct Stack {
    /// For each page, the time of its last use plus 1; 0 if it was never used.
    times: Vec<u32>,
    lines: Vec<Line>,
    groups: Vec<Group>,
    /// Levels of the tree above the groups, lowest first.
    levels: Vec<Level>,
    /// Time of the next reference.
    end: u32,
    /// Number of distinct pages used so far.
    count: u32,
    /// Number of references with stack distance 1, 2, …, modulo 2^16. The counters are small so that more of them fit
    /// in the caches.
    distances: Vec<u16>,
    /// Distances whose counter in `distances` overflowed, one entry per overflow.
    overflows: Vec<u32>,
}

impl Stack {
    fn new(pages: u32) -> Self {
        let lines = (at(pages) * SLOTS_PER_PAGE).div_ceil(at(LINE)).max(2);
        let groups = lines.div_ceil(GROUP);
        let mut levels = Vec::new();
        let mut nodes = groups;
        while nodes > 1 {
            let parts = nodes.min(FAN).div_ceil(PART);
            nodes = nodes.div_ceil(FAN);
            levels.push(Level {
                nodes: flat::filled(Node([0; FAN]), nodes),
                parts,
            });
        }
        let mut stack = Self {
            times: flat::zeroed(at(pages)),
            lines: flat::filled(
                Line {
                    live: [0; WORDS],
                    sums: [0; 8],
                },
                lines,
            ),
            groups: flat::filled(Group([0; GROUP]), groups),
            levels,
            end: 0,
            count: 0,
            distances: flat::zeroed(at(pages)),
            overflows: Vec::new(),
        };
        stack.fill();
        stack
    }

    /// Processes references with the widest SIMD registers that the processor has.
    fn run(&mut self, references: &[u32]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("bmi2")
        {
            if std::arch::is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has these features.
                return unsafe { self.run_widest(references) };
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has these features.
                return unsafe { self.run_wide(references) };
            }
        }
        self.take(references);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt,bmi2,avx512bw")]
    fn run_widest(&mut self, references: &[u32]) {
        self.take(references);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt,bmi2,avx2")]
    fn run_wide(&mut self, references: &[u32]) {
        self.take(references);
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn take(&mut self, references: &[u32]) {
        // Counts are scattered in memory. Each is prefetched first, and changed some references later.
        let mut found = [0; AHEAD];
        for (place, &page) in references.iter().enumerate() {
            if let Some(&next) = references.get(place + 2 * AHEAD) {
                flat::prefetch(&self.times, next);
                let time = self.times[at(references[place + AHEAD])];
                flat::prefetch(&self.lines, time / LINE_SPAN);
                flat::prefetch(&self.groups, time / LINE_SPAN / narrow(GROUP));
            }
            if at(self.end / LINE_SPAN) == self.lines.len() {
                self.compact();
            }
            let time = std::mem::replace(&mut self.times[at(page)], self.end + 1);
            self.end += 1;
            if self.end % LINE_SPAN == LINE {
                self.end += LINE_SPAN - LINE;
            }
            if time > 0 {
                let distance = self.count - self.clear(time - 1);
                flat::prefetch(&self.distances, distance - 1);
                let earlier = std::mem::replace(&mut found[place % AHEAD], distance);
                if earlier > 0 {
                    self.count_distance(earlier);
                }
            } else {
                self.count += 1;
            }
        }
        for distance in found.into_iter().filter(|distance| *distance > 0) {
            self.count_distance(distance);
        }
    }

    #[inline]
    fn count_distance(&mut self, distance: u32) {
        let count = &mut self.distances[at(distance) - 1];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.overflows.push(distance);
        }
    }

    /// Returns the number of references with stack distance 1, 2, ….
    fn into_counts(mut self) -> impl Iterator<Item = u64> {
        self.overflows.sort_unstable();
        let mut overflows = self.overflows.into_iter().peekable();
        (1..).zip(self.distances).map(move |(distance, count)| {
            let mut all = u64::from(count);
            while overflows.next_if_eq(&distance).is_some() {
                all += 1 << u16::BITS;
            }
            all
        })
    }

    /// Clears the live bit of `time` and returns the number of live bits before it.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn clear(&mut self, time: u32) -> u32 {
        let line = at(time / LINE_SPAN);
        let word = at(time % LINE_SPAN / 64);
        let bit = 1 << (time % 64);
        let Line { live, sums } = &mut self.lines[line];
        let mut before = (live[word] & (bit - 1)).count_ones() + u32::from(sums[word]);
        live[word] &= !bit;
        lessen16(sums, word);
        let Group(sums) = &mut self.groups[line / GROUP];
        before += u32::from(sums[line % GROUP]);
        lessen16(sums, line % GROUP);
        let mut child = line / GROUP;
        for Level { nodes, parts } in &mut self.levels {
            let Node(sums) = &mut nodes[child / FAN];
            let place = narrow(child % FAN);
            before += sums[at(place)];
            for (part, sums) in (0..).zip(sums.chunks_exact_mut(PART).take(*parts)) {
                for (other, sum) in (part * narrow(PART)..).zip(sums) {
                    *sum -= place.wrapping_sub(other) >> 31;
                }
            }
            child /= FAN;
        }
        before
    }

    /// Renumbers the last uses without gaps, starting at time 0, so that the rest of the time axis is free again.
    #[cold]
    fn compact(&mut self) {
        let mut sum = 0;
        let mut before = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            before.push(sum);
            sum += line.live.iter().map(|bits| bits.count_ones()).sum::<u32>();
        }
        debug_assert_eq!(sum, self.count);
        for time in self.times.iter_mut().filter(|time| **time > 0) {
            let old = *time - 1;
            let line = &self.lines[at(old / LINE_SPAN)];
            let word = at(old % LINE_SPAN / 64);
            let earlier = line.live[word] & ((1 << (old % 64)) - 1);
            let place =
                before[at(old / LINE_SPAN)] + u32::from(line.sums[word]) + earlier.count_ones();
            *time = place / LINE * LINE_SPAN + place % LINE + 1;
        }
        self.fill();
        self.end = sum / LINE * LINE_SPAN + sum % LINE;
    }

    /// Sets the live bits of all times, and all sums accordingly.
    fn fill(&mut self) {
        self.lines.fill(Line {
            live: [u64::MAX; WORDS],
            sums: std::array::from_fn(|word| 64 * low16(word)),
        });
        let below = at(LINE);
        self.groups
            .fill(Group(std::array::from_fn(|place| low16(place * below))));
        let mut below = below * GROUP;
        for Level { nodes, .. } in &mut self.levels {
            nodes.fill(Node(std::array::from_fn(|place| narrow(place * below))));
            below *= FAN;
        }
    }
}

/// Subtracts 1 from all sums after index `place`.
#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn lessen16<const N: usize>(sums: &mut [u16; N], place: usize) {
    let place = low16(place);
    for (other, sum) in (0..).zip(sums) {
        // The sign bit shows which index is larger. With a comparison the compiler would treat the first sum
        // separately.
        *sum -= place.wrapping_sub(other) >> 15;
    }
}

/// Converts a count of bits in a group, or an index in a group, to 16 bits.
#[inline]
fn low16(count: usize) -> u16 {
    debug_assert!(u16::try_from(count).is_ok());
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a group has fewer than 2^16 bits"
    )]
    {
        count as u16
    }
}
