//! Divides a range of memory sizes (a group) into parts, and turns an exchange of the group into exchanges of its
//! parts.

use super::bundle::{self, Bundle, Patience};
use super::owners::{self, Exchange, Owners};
use super::sizes::Sizes;
use crate::curve::ranks::Ranks;
use crate::flat::AHEAD;
use crate::number::at;
use crate::wide::{Plain, Registers, Wide};

/// Maximum number of exchanges that a part of a group processes at a time if it is divided further, unless it has more
/// sizes than this.
const EXCHANGES: usize = 1 << 20;

/// Processes exchanges of times among any number of sizes, by dividing them into parts recursively, down to bundles.
pub(super) struct Group {
    bundle: Bundle,
    /// Maximum number of memory sizes in a bundle.
    most: usize,
    /// Maximum number of parts in a group.
    parts: usize,
}

impl Group {
    pub fn new() -> Self {
        Self::of(bundle::SIZES, owners::PARTS, Patience::USUAL)
    }

    /// Creates a solver whose bundles have at most `most` sizes, and whose groups have at most `parts` parts.
    pub fn of(most: usize, parts: usize, patience: Patience) -> Self {
        Self {
            bundle: Bundle::new(patience),
            most,
            parts,
        }
    }

    /// Processes exchanges in order and updates `sizes`. All times must be below `end`.
    pub fn solve(&mut self, sizes: &mut Sizes<'_>, exchanges: &[Exchange], end: usize) {
        let count = sizes.free.len();
        if count <= self.most {
            self.bundle.solve(sizes, exchanges, end);
            return;
        }
        let mut width = self.most;
        while width * self.parts < count {
            width *= self.parts;
        }
        let lists = divide(sizes.free, width, exchanges, end);
        let hits = sizes.hits.chunks_mut(width);
        let parts = sizes.free.chunks_mut(width).zip(hits).zip(lists);
        for (number, ((free, hits), mut list)) in parts.enumerate() {
            let first = sizes.first + number * width;
            let mut part = Sizes { first, free, hits };
            if width == self.most {
                self.bundle.solve(&mut part, &list, end);
            } else {
                let length = EXCHANGES.max(part.free.len());
                for some in list.chunks_mut(length) {
                    self.solve_anew(&mut part, some, end);
                }
            }
        }
    }

    /// Renumbers the times without gaps, then does the same as [`solve`](Self::solve).
    fn solve_anew(&mut self, sizes: &mut Sizes<'_>, exchanges: &mut [Exchange], end: usize) {
        let mut ranks = Ranks::default();
        ranks.reset(end);
        for &time in sizes.free.iter() {
            ranks.insert(time);
        }
        for exchange in exchanges.iter() {
            ranks.insert(exchange.given);
        }
        let count = at(ranks.count());
        for time in sizes.free.iter_mut() {
            *time = ranks.of(*time);
        }
        for Exchange { given, taken } in exchanges.iter_mut() {
            (*given, *taken) = (ranks.of(*given), ranks.of(*taken));
        }
        self.solve(sizes, exchanges, count);
        let mut times = Vec::with_capacity(count);
        ranks.each(|time| times.push(time));
        for time in sizes.free.iter_mut() {
            *time = times[at(*time)];
        }
    }
}

/// Returns the exchanges of each part of a group. Each part has `width` sizes, the last one possibly fewer.
fn divide(free: &[u32], width: usize, exchanges: &[Exchange], end: usize) -> Vec<Vec<Exchange>> {
    let mut owners = Owners::default();
    owners.reset(end);
    for (part, free) in (0..).zip(free.chunks(width)) {
        for &time in free {
            owners.put(time, part);
        }
    }
    owners.complete();
    let mut lists = vec![Vec::new(); free.len().div_ceil(width)];
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = Wide::at_hand() {
        // SAFETY: the processor has these features.
        unsafe { list_wide(&mut owners, exchanges, &mut lists, wide) };
        return lists;
    }
    list(&mut owners, exchanges, &mut lists, Plain);
    lists
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn list_wide(owners: &mut Owners, exchanges: &[Exchange], lists: &mut [Vec<Exchange>], wide: Wide) {
    list(owners, exchanges, lists, wide);
}

#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn list<R: Registers>(
    owners: &mut Owners,
    exchanges: &[Exchange],
    lists: &mut [Vec<Exchange>],
    registers: R,
) {
    for (place, &exchange) in exchanges.iter().enumerate() {
        if let Some(later) = exchanges.get(place + AHEAD) {
            owners.prefetch(later.taken);
        }
        let tell = |part: u8, own| lists[usize::from(part)].push(own);
        owners.exchange(exchange, registers, tell);
    }
}
