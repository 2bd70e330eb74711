//! The distances of all intervals of a part that has few sizes left.
//!
//! The tokens that are free with memory of one more page are those with memory of one less, and one more. So the free
//! tokens of all sizes are one list: what the smallest has, and for each further size the time at which its one more
//! became free. An interval is served by the first size whose one lies not after its beginning. With the sizes behind it,
//! the latest token that is early enough is used up: each keeps the earlier of its own and the one carried on to it.
//!
//! This is the critical stack of Bilardi, Ekanadham, Pattnaik (2013), cut to the sizes of the part.

use super::{BEGIN, Part};
use crate::number::{at, narrow};

/// Sizes in a block, one of the processor's widest registers.
const BLOCK: usize = 8;
/// Blocks of the largest leaf.
const BLOCKS: usize = 4;
/// Most sizes of a leaf.
pub(super) const SIZES: u32 = narrow(BLOCK * BLOCKS);

/// When the token that each size has more than the one before it became free; times count from 1.
type Free = [[u32; BLOCK]];

impl Part {
    /// Counts each interval at its distance.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    pub(super) fn find_all(&self, distances: &mut [u64]) {
        let sizes = at(self.high - self.low);
        // Sizes that the part does not have stand behind the others with a time that is never taken for later.
        let mut all = [[0; BLOCK]; BLOCKS];
        all.as_flattened_mut()[..sizes].fill(1);
        let free = &mut all[..sizes.div_ceil(BLOCK)];
        let first = at(self.low);
        let mut cover = self.cover(0);
        // Tokens of the size below them all, which come and go with the cover: the last that came goes first.
        let mut below = vec![(1, self.low - 1 - cover)];
        for (event, &begun) in self.events.iter().enumerate() {
            let now = narrow(event) + 1;
            if begun != BEGIN {
                let size = use_up(free, begun + 1, now);
                distances[first + size] += 1;
            }
            let covered = self.cover(event);
            if covered < cover {
                below.push((now, cover - covered));
            } else {
                take(free, &mut below, covered - cover);
            }
            cover = covered;
        }
    }
}

/// Serves an interval from `begun` to `now` and returns the place of the first size that does.
#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn use_up(free: &mut Free, begun: u32, now: u32) -> usize {
    let mut carried = 0;
    let mut first = 0;
    for (number, block) in free.iter_mut().enumerate() {
        if !any(block, carried, begun) {
            continue;
        }
        let none_before = carried == 0;
        carried = carry(block, begun, carried);
        if none_before {
            // The first has nothing to keep; what it used is free again now.
            let place = (0..BLOCK).fold(BLOCK, |place, number| {
                place.min(if block[number] == 0 { number } else { BLOCK })
            });
            block[place] = now;
            first = number * BLOCK + place;
        }
    }
    first
}

/// Takes `count` tokens from every size, the latest first.
#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn take(free: &mut Free, below: &mut Vec<(u32, u32)>, mut count: u32) {
    while count > 0 {
        let Some((time, left)) = below.last_mut() else {
            return;
        };
        let later = free
            .iter()
            .fold(false, |later, block| later | any(block, *time, u32::MAX));
        let taken = if later {
            let mut carried = *time;
            for block in free.iter_mut() {
                if any(block, carried, u32::MAX) {
                    carried = carry(block, u32::MAX, carried);
                }
            }
            1
        } else {
            // No size has a later one: all lose this one, as many of it as there are.
            count.min(*left)
        };
        *left -= taken;
        count -= taken;
        if *left == 0 {
            below.pop();
        }
    }
}

/// Whether a time lies after `above` and not after `until`.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "all eight are compared at once, without a branch"
)]
#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn any(block: &[u32; BLOCK], above: u32, until: u32) -> bool {
    block
        .iter()
        .fold(false, |any, &time| any | ((time > above) & (time <= until)))
}

/// Hands a time on from size to size: each keeps the earlier one, if its own is not after `until`.
#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn carry(block: &mut [u32; BLOCK], until: u32, mut carried: u32) -> u32 {
    for time in block {
        let own = *time;
        let used = own <= until && own > carried;
        *time = if used { carried } else { own };
        carried = if used { own } else { carried };
    }
    carried
}
