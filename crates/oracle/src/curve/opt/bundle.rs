//! Processes a bundle: as many memory sizes as fit in a core's private caches.
//!
//! Times are renumbered to fit in 15 bits. `Owners` finds the leaf (64 sizes) that holds a time, and exchanges pass
//! through one leaf after the other. If exchanges pass through many leaves, the bundle is processed by *halving*
//! instead, which is less work then: its range of sizes is divided in halves recursively (`halving.rs`).

use std::collections::BTreeMap;

use super::halving::Halving;
use super::layout::Layout;
use super::leaf::{self, Leaf};
use super::owners::{Exchange, Owners};
use super::sizes::Sizes;
use crate::curve::ranks::Ranks;
use crate::number::{at, low15};
use crate::wide::{Plain, Registers, Wide};

/// Maximum number of memory sizes in a bundle.
pub(super) const SIZES: usize = 1 << 13;
/// Maximum number of exchanges that pass through the leaves before times are renumbered. Each exchange may add a time,
/// and times are numbered from 1.
const EXCHANGES: usize = leaf::NONE as usize - 1 - SIZES;
/// Maximum number of exchanges that are processed by halving at a time.
const HALVED: usize = 1 << 18;
/// Number of further calls for which a bundle that was halved is halved immediately, without trying leaves first.
const APART: u8 = 15;

/// Limit on visited leaves, above which a bundle is processed by halving: `first` + `each` × hits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Number of leaves that may always be visited.
    pub first: usize,
    /// Number of additional leaves that may be visited for each hit.
    pub each: usize,
}

impl Patience {
    /// Default limit: for each hit, halving takes about as long as visiting 10 leaves.
    pub const USUAL: Self = Self {
        first: 1 << 12,
        each: 10,
    };
}

/// Processes exchanges of times among the sizes of bundles. Its tables are reused for all bundles.
pub(super) struct Bundle {
    patience: Patience,
    /// For a bundle, given by its first size: number of further calls for which it is halved without trying leaves
    /// first.
    apart: BTreeMap<usize, u8>,
    ranks: Ranks,
    owners: Owners,
    leaves: Vec<Leaf>,
    /// Original times, indexed by their new numbers.
    times: Vec<u32>,
    layout: Layout,
    halving: Halving,
}

impl Bundle {
    pub fn new(patience: Patience) -> Self {
        Self {
            patience,
            apart: BTreeMap::new(),
            ranks: Ranks::default(),
            owners: Owners::default(),
            leaves: Vec::new(),
            times: Vec::new(),
            layout: Layout::default(),
            halving: Halving::default(),
        }
    }

    /// Processes exchanges in order and updates `sizes`. All times must be below `end`.
    pub fn solve(&mut self, sizes: &mut Sizes<'_>, exchanges: &[Exchange], end: usize) {
        let rest = self.apart.get(&sizes.first).copied().unwrap_or(0);
        let mut left = exchanges;
        while rest == 0 && !left.is_empty() {
            let some = &left[..left.len().min(EXCHANGES)];
            let done = self.ask_leaves(sizes, some, end);
            left = &left[done..];
            if done < some.len() {
                break;
            }
        }
        if left.is_empty() {
            return;
        }
        // The behaviour of a string rarely changes from one piece to the next.
        let rest = rest.checked_sub(1).unwrap_or(APART);
        self.apart.insert(sizes.first, rest);
        for some in left.chunks(HALVED) {
            let whole = self.layout.part(sizes.free, some, end);
            self.halving.solve(whole, sizes);
        }
    }

    /// Renumbers the times that the sizes hold now or get by an exchange.
    fn number(&mut self, sizes: &Sizes<'_>, exchanges: &[Exchange], end: usize) {
        self.ranks.reset(end);
        for &time in sizes.free.iter() {
            self.ranks.insert(time);
        }
        for exchange in exchanges {
            self.ranks.insert(exchange.given);
        }
        self.ranks.count();
        self.times.clear();
        self.ranks.each(|time| self.times.push(time));
    }

    /// Processes exchanges until the limit of visited leaves is exceeded. Returns the number of exchanges processed.
    fn ask_leaves(&mut self, sizes: &mut Sizes<'_>, exchanges: &[Exchange], end: usize) -> usize {
        self.number(sizes, exchanges, end);
        let Self {
            ranks,
            owners,
            leaves,
            ..
        } = self;
        owners.reset(self.times.len() + 1);
        leaves.clear();
        for (number, free) in (0..).zip(sizes.free.chunks(leaf::SIZES)) {
            let mut leaf = Leaf::EMPTY;
            for (own, &time) in leaf.0.iter_mut().zip(free) {
                let rank = ranks.of(time) + 1;
                owners.put(rank, number);
                *own = low15(at(rank));
            }
            leaves.push(leaf);
        }
        owners.complete();
        let done = self.exchange(exchanges, sizes.hits);
        let parts = sizes.free.chunks_mut(leaf::SIZES).zip(&self.leaves);
        for (free, leaf) in parts {
            for (time, own) in free.iter_mut().zip(leaf.0) {
                *time = self.times[usize::from(own.cast_unsigned()) - 1];
            }
        }
        done
    }

    fn exchange(&mut self, exchanges: &[Exchange], hits: &mut [u32]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = Wide::at_hand() {
            // SAFETY: the processor has these features.
            return unsafe { self.exchange_wide(exchanges, hits, wide) };
        }
        self.exchange_with(exchanges, hits, Plain)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn exchange_wide(&mut self, exchanges: &[Exchange], hits: &mut [u32], wide: Wide) -> usize {
        self.exchange_with(exchanges, hits, wide)
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn exchange_with<R: Registers>(
        &mut self,
        exchanges: &[Exchange],
        hits: &mut [u32],
        registers: R,
    ) -> usize {
        let mut asked = 0;
        let mut allowed = self.patience.first;
        for (place, exchange) in exchanges.iter().enumerate() {
            if asked > allowed {
                return place;
            }
            let given = self.ranks.of(exchange.given) + 1;
            let taken = self.ranks.of(exchange.taken) + 1;
            let leaves = &mut self.leaves;
            let tell = |number: u8, own: Exchange| {
                asked += 1;
                let leaf = &mut leaves[usize::from(number)];
                let (given, taken) = (low15(at(own.given)), low15(at(own.taken)));
                if given < taken {
                    leaf.pass(given, taken, registers);
                } else if let Some(size) = leaf.serve(taken, given, registers) {
                    hits[usize::from(number) * leaf::SIZES + size] += 1;
                    allowed += self.patience.each;
                }
            };
            self.owners
                .exchange(Exchange { given, taken }, registers, tell);
        }
        exchanges.len()
    }
}
