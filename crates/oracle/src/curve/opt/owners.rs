//! For a group of memory sizes that is divided into parts: finds which part holds each time, and turns an exchange of
//! the group into the exchanges of its parts.

use crate::flat;
use crate::number::{at, narrow};
use crate::wide::Registers;

/// Entry of a time that belongs to no part.
const NOBODY: u8 = u8::MAX;
/// Maximum number of parts in a group.
pub(super) const PARTS: usize = NOBODY as usize;
/// Number of entries in a line: one cache line of the processor.
const LINE: usize = 64;
/// Number of levels needed for times below 2^32.
const LEVELS: usize = 6;

/// An exchange: a range of sizes gives up the time `taken` and gets the time `given` instead.
///
/// If `given` is later than `taken`, it is the current time, and the range serves an interval that no smaller size
/// could serve. Otherwise `given` is the time that smaller sizes gave up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    pub given: u32,
    pub taken: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line([u8; LINE]);

impl Line {
    const EMPTY: Self = Self([NOBODY; LINE]);

    /// Returns a bitmap with a bit for each entry, set if the entry is less than `most`. `most` must not be 0.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn below<R: Registers>(&self, most: u8, _: R) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if R::WIDE {
            use std::arch::x86_64::{
                __m256i, _mm256_cmpeq_epi8, _mm256_load_si256, _mm256_min_epu8,
                _mm256_movemask_epi8, _mm256_set1_epi8,
            };
            // SAFETY: the processor has AVX2, as the caller proved; a line has 64 bytes and begins at a multiple of
            // them.
            return unsafe {
                let most = _mm256_set1_epi8((most - 1).cast_signed());
                let place: *const __m256i = self.0.as_ptr().cast();
                let bits = |half: __m256i| {
                    let less = _mm256_cmpeq_epi8(_mm256_min_epu8(half, most), half);
                    u64::from(_mm256_movemask_epi8(less).cast_unsigned())
                };
                bits(_mm256_load_si256(place)) | bits(_mm256_load_si256(place.add(1))) << 32
            };
        }
        let bit = |bits, entry: &u8| bits << 1 | u64::from(*entry < most);
        self.0.iter().rev().fold(0, bit)
    }

    /// Returns the smallest entry of the line, ignoring the entry at index `place`.
    #[inline(always)]
    fn least_but(&self, place: usize) -> u8 {
        const OUT: [u8; 2 * LINE - 1] = {
            let mut out = [0; 2 * LINE - 1];
            out[LINE - 1] = NOBODY;
            out
        };
        let out = &OUT[LINE - 1 - place..][..LINE];
        let entries = self.0.iter().zip(out);
        entries.fold(NOBODY, |least, (entry, out)| least.min(entry | out))
    }
}

/// For each time, the part that holds it. Higher levels contain minima for searching: each entry is the smallest entry
/// of a line of the level below.
#[derive(Debug, Default)]
pub(super) struct Owners {
    levels: [Vec<Line>; LEVELS],
    /// Number of levels in use.
    used: usize,
    /// Times that move to a later part during the current exchange, each with the number of that part.
    passed: Vec<(u32, u8)>,
}

impl Owners {
    /// Allocates entries for `times` times. No part holds any of them yet.
    pub fn reset(&mut self, times: usize) {
        let mut lines = times.div_ceil(LINE).max(1);
        self.used = 0;
        for level in &mut self.levels {
            level.clear();
            level.resize(lines, Line::EMPTY);
            self.used += 1;
            if lines == 1 {
                break;
            }
            lines = lines.div_ceil(LINE);
        }
    }

    /// Sets the part that holds a time. Must be called before the first exchange.
    #[inline]
    pub fn put(&mut self, time: u32, part: u8) {
        self.levels[0][at(time) / LINE].0[at(time) % LINE] = part;
    }

    /// Computes the minima from the entries set by [`put`](Self::put).
    pub fn complete(&mut self) {
        for upper in 1..self.used {
            let (below, above) = self.levels.split_at_mut(upper);
            for (place, line) in below[upper - 1].iter().enumerate() {
                let least = line.0.iter().min().copied().unwrap_or(NOBODY);
                above[0][place / LINE].0[place % LINE] = least;
            }
        }
    }

    /// Prefetches the entry of this time into the processor's cache.
    #[inline]
    pub fn prefetch(&self, time: u32) {
        flat::prefetch(&self.levels[0], time / narrow(LINE));
    }

    /// Processes an exchange of the group, and calls `tell` with the resulting exchange of each part that changes, from
    /// the last part to the first.
    ///
    /// Each part in turn gives up its latest time at or before `taken`, if this time is later than the one given up by
    /// the parts before. Going backwards in time, these are the times whose part is smaller than the parts of all later
    /// times.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    pub fn exchange<R: Registers>(
        &mut self,
        exchange: Exchange,
        registers: R,
        mut tell: impl FnMut(u8, Exchange),
    ) {
        let Exchange { given, taken } = exchange;
        let first = if given < taken { given } else { 0 };
        let mut taken = taken;
        let mut part = self.part(taken);
        let mut next = NOBODY;
        while let Some(earlier) = self.before(taken, part, registers)
            && earlier >= first
        {
            let given = earlier;
            tell(part, Exchange { given, taken });
            self.passed.push((taken, next));
            next = part;
            part = self.part(earlier);
            taken = earlier;
        }
        tell(part, Exchange { given, taken });
        // A wide load of a line just after a write to one of its entries is slow, so all writes come at the end.
        self.raise(taken, next);
        while let Some((time, part)) = self.passed.pop() {
            self.raise(time, part);
        }
        self.lower(given, part);
    }

    #[inline]
    fn part(&self, time: u32) -> u8 {
        self.levels[0][at(time) / LINE].0[at(time) % LINE]
    }

    /// Returns the latest time before `time` that is held by a part with a number below `part`.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn before<R: Registers>(&self, time: u32, part: u8, registers: R) -> Option<u32> {
        if part == 0 {
            return None;
        }
        let mut place = at(time);
        for upper in 0..self.used {
            let earlier = (1 << (place % LINE)) - 1;
            let found = self.levels[upper][place / LINE].below(part, registers) & earlier;
            if found != 0 {
                place = place / LINE * LINE + at(found.ilog2());
                for level in self.levels[..upper].iter().rev() {
                    let found = level[place].below(part, registers);
                    place = place * LINE + at(found.ilog2());
                }
                return Some(narrow(place));
            }
            place /= LINE;
        }
        None
    }

    /// Records that `part` now holds `time`, which a later part or none held before.
    #[inline]
    fn lower(&mut self, time: u32, part: u8) {
        let mut place = at(time);
        for level in &mut self.levels[..self.used] {
            let entry = &mut level[place / LINE].0[place % LINE];
            if *entry <= part {
                return;
            }
            *entry = part;
            place /= LINE;
        }
    }

    /// Records that a later part, or none, now holds `time`.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn raise(&mut self, time: u32, part: u8) {
        let mut place = at(time);
        let mut new = part;
        for upper in 1..=self.used {
            let (below, above) = self.levels.split_at_mut(upper);
            let line = &mut below[upper - 1][place / LINE];
            let own = place % LINE;
            place /= LINE;
            let old = line.0[own];
            // If another entry of the line is as small, the minimum of the line stays the same.
            if upper == self.used || above[0][place / LINE].0[place % LINE] < old {
                line.0[own] = new;
                return;
            }
            let others = line.least_but(own);
            line.0[own] = new;
            new = new.min(others);
            if new == old {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wide::{Plain, Wide};

    /// Performs an exchange on plain lists of the times that each part holds. Returns the exchange of each part.
    fn slow(parts: &mut [Vec<u32>], exchange: Exchange) -> Vec<(usize, u32, u32)> {
        let Exchange { mut given, taken } = exchange;
        let mut told = Vec::new();
        for (number, part) in parts.iter_mut().enumerate() {
            let latest = part.iter().copied().filter(|time| *time <= taken).max();
            let Some(latest) = latest.filter(|latest| given > taken || *latest > given) else {
                continue;
            };
            part.retain(|time| *time != latest);
            part.push(given);
            told.push((number, given, latest));
            given = latest;
        }
        told.reverse();
        told
    }

    fn exchange(owners: &mut Owners, exchange: Exchange, wide: bool) -> Vec<(usize, u32, u32)> {
        let mut told = Vec::new();
        let tell = |part: u8, own: Exchange| told.push((usize::from(part), own.given, own.taken));
        match Wide::at_hand().filter(|_| wide) {
            Some(wide) => owners.exchange(exchange, wide, tell),
            None => owners.exchange(exchange, Plain, tell),
        }
        told
    }

    #[test]
    fn exchanges_of_parts_are_those_of_plain_lists() {
        let mut rng = pagetide_reference::Rng::new(21);
        for (count, times) in [(1, 30), (3, 200), (PARTS, 3000), (40, 20_000)] {
            let mut parts = vec![Vec::new(); count];
            let mut owners = Owners::default();
            owners.reset(at(times));
            let first = times / 3;
            for time in 0..first {
                let part = at(rng.below_u32(narrow(count)));
                parts[part].push(time);
                owners.put(time, u8::try_from(part).unwrap());
            }
            owners.complete();
            for now in first..times {
                let asked = rng.below_u32(now);
                let held = parts.iter().flatten().copied();
                let Some(taken) = held.filter(|time| *time <= asked).max() else {
                    continue;
                };
                // One time in four is held by no part.
                let other = rng.below_u32(taken + 1);
                let known = parts.iter().flatten().any(|time| *time == other);
                let given = if now % 4 == 0 && !known { other } else { now };
                let own = Exchange { given, taken };
                let found = exchange(&mut owners, own, now % 3 > 0);
                assert_eq!(found, slow(&mut parts, own), "{own:?}");
            }
        }
    }
}
