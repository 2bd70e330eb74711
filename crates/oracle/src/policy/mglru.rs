//! Linux' multi-generational LRU (MGLRU).

use super::{About, Parameter, Policy, Setup};
use crate::flat;
use crate::number::{at, narrow, whole};
use crate::queue::{Position, Queue, push};

pub(super) static ABOUT: About = About {
    name: "mglru",
    summary: "Linux with MGLRU, for anonymous memory: generations, walks of page tables, tiers with their controller.",
    source: "Linux 6.12, mm/vmscan.c (should_run_aging, walk_mm, lru_gen_look_around, sort_folio, get_tier_idx) and mm/workingset.c (lru_gen_refault). One kind of memory, one page table entry a page; a walk sees every accessed bit; reclaim frees `batch` pages at a time.",
    parameters: &[
        Parameter {
            name: "batch",
            help: "pages freed at a time",
            default: 64.0,
            least: 1.0,
            most: 1_000_000.0,
        },
        Parameter {
            name: "around",
            help: "neighbours whose accessed bits are looked at with a page's own",
            default: 64.0,
            least: 1.0,
            most: 512.0,
        },
    ],
    make: |setup| Box::new(Mglru::new(setup)),
};

/// MIN_NR_GENS: smallest number of generations.
const MIN_GENERATIONS: u32 = 2;
/// MAX_NR_GENS: largest number of generations.
const MAX_GENERATIONS: u32 = 4;
/// MAX_NR_TIERS: number of tiers.
const TIERS: usize = 4;

/// Counts of one tier: those of the current generation, and moving averages over earlier generations (lru_gen_folio).
#[derive(Clone, Copy, Default)]
struct Tier {
    evicted: u32,
    refaulted: u32,
    protected: u32,
    average_evicted: u32,
    average_refaulted: u32,
}

struct Mglru {
    /// For each page in memory, its generation number modulo 4 plus 1, and its slot in this generation; 0 if it is not
    /// in memory.
    places: Vec<Position>,
    accessed: Vec<bool>,
    /// For each page, true if it refaulted soon after its eviction (PG_workingset and all use bits set).
    workingset: Vec<bool>,
    /// For each page, the number of the oldest generation at its eviction, shifted left by 3, plus twice the tier, plus
    /// 1; 0 if it was never evicted.
    shadow: Vec<u32>,
    generations: [Queue; MAX_GENERATIONS as usize],
    tiers: [Tier; TIERS],
    oldest: u32,
    youngest: u32,
    size: u32,
    batch: u32,
    around: u32,
    resident: u32,
}

impl Mglru {
    fn new(setup: Setup<'_>) -> Self {
        let capacity = setup.size.min(setup.pages);
        Self {
            places: flat::zeroed(at(setup.pages)),
            accessed: flat::zeroed(at(setup.pages)),
            workingset: flat::zeroed(at(setup.pages)),
            shadow: flat::zeroed(at(setup.pages)),
            generations: std::array::from_fn(|_| Queue::new(capacity)),
            tiers: [Tier::default(); TIERS],
            oldest: 0,
            // lru_gen_init_lruvec() starts with MIN_NR_GENS + 1 generations.
            youngest: MIN_GENERATIONS,
            size: setup.size,
            batch: whole(setup.value(0)).min(setup.size),
            around: whole(setup.value(1)),
            resident: 0,
        }
    }

    fn generation(&self, number: u32) -> &Queue {
        &self.generations[at(number % MAX_GENERATIONS)]
    }

    fn put(&mut self, page: u32, number: u32) {
        let index = number % MAX_GENERATIONS;
        push(
            &mut self.generations[at(index)],
            index + 1,
            page,
            &mut self.places,
        );
    }

    fn take(&mut self, page: u32) {
        let place = std::mem::take(&mut self.places[at(page)]);
        self.generations[at(place.list() - 1)].remove(place.slot());
    }

    /// Clears the accessed bit of a page in memory and moves the page to the youngest generation. Returns false,
    /// without a change, if the bit was not set or the page is not in memory.
    fn look(&mut self, page: u32) -> bool {
        let young = self.places[at(page)] != Position::default()
            && std::mem::take(&mut self.accessed[at(page)]);
        if young {
            self.take(page);
            self.put(page, self.youngest);
        }
        young
    }

    /// lru_gen_look_around(): also checks the accessed bits of the neighbours in the page table.
    fn look_around(&mut self, page: u32) {
        let first = page - page.min(self.around / 2);
        let last = (first + self.around).min(narrow(self.places.len()));
        for neighbour in first..last {
            self.look(neighbour);
        }
    }

    /// should_run_aging(): returns true if a new generation is needed.
    fn needs_aging(&self) -> bool {
        let generations = self.youngest - self.oldest + 1;
        if generations <= MIN_GENERATIONS {
            return true;
        }
        if generations > MIN_GENERATIONS + 1 {
            return false;
        }
        let young = self.generation(self.youngest).len();
        let old = self.generation(self.oldest).len();
        young * MIN_GENERATIONS > self.resident || old * (MIN_GENERATIONS + 2) < self.resident
    }

    /// try_to_inc_max_seq(): checks the accessed bits of all pages, then opens a generation.
    fn age(&mut self) {
        for page in 0..narrow(self.accessed.len()) {
            if self.accessed[at(page)] {
                self.look(page);
            }
        }
        if self.youngest - self.oldest + 1 == MAX_GENERATIONS {
            self.fold_oldest();
        }
        self.youngest += 1;
    }

    /// inc_min_seq(): moves the pages left in the oldest generation to the end of the next generation.
    fn fold_oldest(&mut self) {
        while let Some(page) = self.generations[at(self.oldest % MAX_GENERATIONS)].pop() {
            self.put(page, self.oldest + 1);
        }
        self.next_oldest();
    }

    /// reset_ctrl_pos(): makes the next generation the oldest and updates the moving averages.
    fn next_oldest(&mut self) {
        self.oldest += 1;
        for tier in &mut self.tiers {
            tier.average_refaulted = u32::midpoint(tier.average_refaulted, tier.refaulted);
            tier.average_evicted = u32::midpoint(tier.average_evicted, tier.evicted + tier.protected);
            (tier.refaulted, tier.evicted, tier.protected) = (0, 0, 0);
        }
    }

    /// get_tier_idx(): returns the highest tier that may be evicted. It and all tiers below it have fewer than 64
    /// refaults, or refault at most twice as often, per eviction, as the lowest tier.
    fn evictable_tier(&self) -> usize {
        let position = |tier: usize, gain: u64| {
            let tier = &self.tiers[tier];
            (
                u64::from(tier.average_refaulted + tier.refaulted),
                u64::from(tier.average_evicted + tier.evicted + tier.protected),
                gain,
            )
        };
        let (base_refaulted, base_total, base_gain) = position(0, 1);
        let mut tier = 1;
        while tier < TIERS {
            let (refaulted, total, gain) = position(tier, 2);
            // positive_ctrl_err(), with MIN_LRU_BATCH of 64.
            let no_worse = refaulted < 64
                || refaulted * base_total.max(64) * base_gain
                    <= (base_refaulted + 64) * total.max(1) * gain;
            if !no_worse {
                break;
            }
            tier += 1;
        }
        tier - 1
    }

    /// Scans one page of the oldest generation. Returns true if it was evicted.
    fn scan_one(&mut self, evictable: usize) -> bool {
        let Some(page) = self.generations[at(self.oldest % MAX_GENERATIONS)].pop() else {
            return false;
        };
        self.places[at(page)] = Position::default();
        // All use bits and PG_workingset are the highest tier, which sort_folio() always protects once.
        let tier = if self.workingset[at(page)] {
            TIERS - 1
        } else {
            0
        };
        if tier > evictable || tier == TIERS - 1 {
            self.tiers[tier].protected += 1;
            self.workingset[at(page)] = false;
            self.put(page, self.oldest + 1);
            return false;
        }
        if std::mem::take(&mut self.accessed[at(page)]) {
            self.put(page, self.youngest);
            self.look_around(page);
            return false;
        }
        self.tiers[tier].evicted += 1;
        self.shadow[at(page)] = self.oldest << 3 | narrow(tier) << 1 | 1;
        self.resident -= 1;
        true
    }

    fn reclaim(&mut self) {
        let mut freed = 0;
        while freed < self.batch && self.resident > 0 {
            while self.generation(self.oldest).len() == 0 && self.youngest - self.oldest >= MIN_GENERATIONS {
                self.next_oldest();
            }
            if self.needs_aging() {
                self.age();
            }
            let evictable = self.evictable_tier();
            for _ in 0..self.batch {
                if self.generation(self.oldest).len() == 0 {
                    break;
                }
                freed += u32::from(self.scan_one(evictable));
                if freed == self.batch {
                    return;
                }
            }
        }
    }
}

impl Policy for Mglru {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        if self.places[at(page)] != Position::default() {
            self.accessed[at(page)] = true;
            return true;
        }
        if self.resident >= self.size {
            self.reclaim();
        }
        let shadow = std::mem::take(&mut self.shadow[at(page)]);
        let recent = shadow != 0 && shadow >> 3 == self.oldest & (u32::MAX >> 3);
        if recent {
            self.tiers[at(shadow >> 1 & 3)].refaulted += 1;
        }
        self.workingset[at(page)] = recent;
        self.accessed[at(page)] = true;
        self.resident += 1;
        // A faulted-in page is added to the youngest generation.
        self.put(page, self.youngest);
        false
    }

    fn held(&mut self, page: u32) -> bool {
        self.places[at(page)] != Position::default()
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.places, page);
        flat::prefetch(&self.accessed, page);
    }
}
