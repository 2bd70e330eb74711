//! Counts stack distances within a sample, and within the sample without each of its groups, all in one pass.
//!
//! Without a group, a distance is smaller by the number of that group's pages used in between. So all groups share one
//! time axis, and each group has its own bit for each time. One query counts the last uses of every group, where ten
//! passes would need ten queries. When all times are used, those still needed are renumbered without gaps (see
//! `lru.rs`).

use crate::curve::ranks::Ranks;
use crate::number::{at, narrow};

/// Number of children of a node.
const FAN: usize = 32;
/// Size of the time axis: number of times for each page.
const SLOTS_PER_PAGE: usize = 4;
/// Number of times in a word.
const WORD: usize = 64;

/// One number for each group.
pub(super) type Each = [u32; GROUPS];

/// For each group and each child of the node, the number of the group's last uses in the node before the child.
/// Children later than the current time have no number yet.
#[derive(Clone)]
#[repr(align(64))]
struct Node([[u32; FAN]; GROUPS]);

/// Last uses of the pages of all groups on one time axis.
pub(super) struct Groups {
    /// For each page, the time of its last use plus 1; 0 if it was never used.
    times: Vec<u32>,
    /// The group number of each page.
    members: Vec<u8>,
    /// For each word of 64 times and each group: one bit per time, set if it is the last use of a page of the group.
    live: Vec<[u64; GROUPS]>,
    /// Levels of sums, lowest first. The children of the lowest nodes are words of times.
    levels: Vec<Vec<Node>>,
    /// Number of distinct pages of each group used so far.
    count: Each,
    /// Time of the next reference.
    end: usize,
}

impl Groups {
    /// Creates the table. `groups` contains the group number of each page, which must be below [`GROUPS`].
    pub fn new(groups: Vec<u8>) -> Self {
        let words = (groups.len() * SLOTS_PER_PAGE).div_ceil(WORD).max(2);
        let mut levels = Vec::new();
        let mut nodes = words;
        while nodes > 1 {
            nodes = nodes.div_ceil(FAN);
            levels.push(vec![Node([[0; FAN]; GROUPS]); nodes]);
        }
        Self {
            times: vec![0; groups.len()],
            members: groups,
            live: vec![[0; GROUPS]; words],
            levels,
            count: [0; GROUPS],
            end: 0,
        }
    }

    /// Calls `take` for each reference to a page that was used before. Its arguments are, for each group, the number of
    /// distinct pages used since, the page itself included, and the group number of the page.
    pub fn run(&mut self, references: &[u32], take: impl FnMut(Each, usize)) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("bmi2")
        {
            // SAFETY: the processor has these features.
            return unsafe { self.run_wide(references, take) };
        }
        self.run_plain(references, take);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt,bmi2")]
    fn run_wide(&mut self, references: &[u32], take: impl FnMut(Each, usize)) {
        self.run_plain(references, take);
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn run_plain(&mut self, references: &[u32], mut take: impl FnMut(Each, usize)) {
        for &page in references {
            if self.end == self.live.len() * WORD {
                self.compact();
            }
            if self.end.is_multiple_of(WORD) {
                self.enter(self.end / WORD);
            }
            let group = usize::from(self.members[at(page)]);
            let time = std::mem::replace(&mut self.times[at(page)], narrow(self.end + 1));
            if time > 0 {
                take(self.since(at(time - 1)), group);
                self.clear(at(time - 1), group);
            } else {
                self.count[group] += 1;
            }
            self.live[self.end / WORD][group] |= 1 << (self.end % WORD);
            self.end += 1;
        }
    }

    /// Returns for each group the number of last uses at or after `time`.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn since(&self, time: usize) -> Each {
        let mut since = self.count;
        let earlier = (1 << (time % WORD)) - 1;
        for (since, live) in since.iter_mut().zip(&self.live[time / WORD]) {
            *since -= (live & earlier).count_ones();
        }
        let mut child = time / WORD;
        for level in &self.levels {
            let Node(sums) = &level[child / FAN];
            for (since, sums) in since.iter_mut().zip(sums) {
                *since -= sums[child % FAN];
            }
            child /= FAN;
        }
        since
    }

    /// Clears the bit of `time` in `group`: it is no longer the last use of a page.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn clear(&mut self, time: usize, group: usize) {
        self.live[time / WORD][group] &= !(1 << (time % WORD));
        let mut child = time / WORD;
        for level in &mut self.levels {
            let place = child % FAN;
            for (other, sum) in level[child / FAN].0[group].iter_mut().enumerate() {
                *sum = sum.wrapping_sub(u32::from(other > place));
            }
            child /= FAN;
        }
    }

    /// Computes the sums before a word of times. Must be called when time reaches this word.
    fn enter(&mut self, word: usize) {
        let mut before = self.count;
        for (number, level) in self.levels.iter_mut().enumerate().rev() {
            let span = FAN.pow(narrow(number));
            let child = word / span;
            let Node(sums) = &mut level[child / FAN];
            for (before, sums) in before.iter_mut().zip(sums) {
                let sum = &mut sums[child % FAN];
                if word.is_multiple_of(span) {
                    *sum = *before;
                }
                *before -= *sum;
            }
        }
    }

    /// Renumbers the last uses without gaps, starting at time 0, so that the rest of the time axis is free again.
    #[cold]
    fn compact(&mut self) {
        let mut ranks = Ranks::default();
        ranks.reset(self.end);
        for time in self.times.iter().filter(|time| **time > 0) {
            ranks.insert(*time - 1);
        }
        self.live.fill([0; GROUPS]);
        self.end = at(ranks.count());
        let pages = self.times.iter_mut().zip(&self.members);
        for (time, group) in pages.filter(|(time, _)| **time > 0) {
            *time = ranks.of(*time - 1) + 1;
            let place = at(*time) - 1;
            self.live[place / WORD][usize::from(*group)] |= 1 << (place % WORD);
        }
        let count = std::mem::take(&mut self.count);
        for word in 0..self.end.div_ceil(WORD) {
            self.enter(word);
            for (count, live) in self.count.iter_mut().zip(&self.live[word]) {
                *count += live.count_ones();
            }
        }
        debug_assert_eq!(self.count, count);
    }
}

/// Number of subsamples that are used to estimate the error.
pub(super) const GROUPS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_reference::Rng;

    #[test]
    fn pages_since_the_last_use_are_those_of_a_plain_list() {
        let mut rng = Rng::new(6);
        // The cases are one page, few pages, and more pages than two levels can hold.
        for (pages, length) in [(1, 2000), (7, 3000), (300, 6000), (20_000, 90_000)] {
            let groups: Vec<u8> = (0..pages)
                .map(|page: u32| u8::try_from(at(page * 7 % 31) % GROUPS).unwrap())
                .collect();
            let string: Vec<u32> = (0..length)
                .map(|time: u32| match time / 500 % 3 {
                    0 => time % pages,
                    1 => rng.below_u32(pages),
                    _ => rng.below_u32(1 + rng.clone().below_u32(pages)),
                })
                .collect();
            let mut found = Vec::new();
            let mut stack = Groups::new(groups.clone());
            // The string is passed in pieces, because `run` may be called more than once.
            for some in string.chunks(777) {
                stack.run(some, |each, group| found.push((each, group)));
            }
            let mut last = vec![0; at(pages)];
            let mut place = 0;
            for (time, &page) in (1..).zip(&string) {
                let since = std::mem::replace(&mut last[at(page)], time);
                if since == 0 {
                    continue;
                }
                // If there are many pages, only some references are checked.
                if time % 97 == 0 || pages < 1000 {
                    let mut each = [0; GROUPS];
                    for (&time, &group) in last.iter().zip(&groups) {
                        each[usize::from(group)] += u32::from(time >= since);
                    }
                    let group = usize::from(groups[at(page)]);
                    assert_eq!(found[place], (each, group), "{time} of {pages} pages");
                }
                place += 1;
            }
            assert_eq!(place, found.len());
        }
    }
}
