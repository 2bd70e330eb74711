//! Linux' MGLRU on plain lists: generations by number, and the state of each page in a map.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::{Textbook, take};

#[derive(Clone, Copy, Default)]
struct Tier {
    evicted: u64,
    refaulted: u64,
    protected: u64,
    average_evicted: u64,
    average_refaulted: u64,
}

pub struct Mglru {
    size: usize,
    /// Pages of each generation, the oldest in front.
    generations: BTreeMap<u64, VecDeque<u32>>,
    /// Number of the generation of each page in memory.
    home: HashMap<u32, u64>,
    accessed: BTreeSet<u32>,
    /// Pages that refaulted soon after their eviction.
    workingset: BTreeSet<u32>,
    /// For each evicted page, the oldest generation and the page's tier at the eviction.
    shadows: HashMap<u32, (u64, usize)>,
    tiers: [Tier; 4],
    oldest: u64,
    youngest: u64,
}

impl Mglru {
    pub fn new(size: usize) -> Self {
        Self {
            size,
            generations: BTreeMap::new(),
            home: HashMap::new(),
            accessed: BTreeSet::new(),
            workingset: BTreeSet::new(),
            shadows: HashMap::new(),
            tiers: [Tier::default(); 4],
            oldest: 0,
            youngest: 2,
        }
    }

    fn resident(&self) -> usize {
        self.home.len()
    }

    fn len(&self, generation: u64) -> usize {
        self.generations.get(&generation).map_or(0, VecDeque::len)
    }

    fn put(&mut self, page: u32, generation: u64) {
        self.home.insert(page, generation);
        self.generations
            .entry(generation)
            .or_default()
            .push_back(page);
    }

    /// If a page was used, clears its accessed bit and moves the page to the youngest generation.
    fn look(&mut self, page: u32) {
        if !self.accessed.contains(&page) {
            return;
        }
        if let Some(generation) = self.home.get(&page) {
            take(self.generations.entry(*generation).or_default(), page);
            self.accessed.remove(&page);
            self.put(page, self.youngest);
        }
    }

    fn next_oldest(&mut self) {
        self.oldest += 1;
        for tier in &mut self.tiers {
            tier.average_refaulted = u64::midpoint(tier.average_refaulted, tier.refaulted);
            tier.average_evicted =
                u64::midpoint(tier.average_evicted, tier.evicted + tier.protected);
            (tier.evicted, tier.refaulted, tier.protected) = (0, 0, 0);
        }
    }

    fn age(&mut self) {
        for page in self.accessed.clone() {
            self.look(page);
        }
        if self.youngest - self.oldest == 3 {
            for page in self.generations.remove(&self.oldest).unwrap_or_default() {
                self.put(page, self.oldest + 1);
            }
            self.next_oldest();
        }
        self.youngest += 1;
    }

    fn needs_aging(&self) -> bool {
        let generations = self.youngest - self.oldest + 1;
        let resident = self.resident();
        generations <= 2
            || (generations == 3
                && (self.len(self.youngest) * 2 > resident || self.len(self.oldest) * 4 < resident))
    }

    /// Returns the highest tier that may be evicted. It and all tiers below it refault at most twice as often, per
    /// eviction, as the lowest tier.
    fn evictable_tier(&self) -> usize {
        let refaulted = |tier: &Tier| tier.average_refaulted + tier.refaulted;
        let total = |tier: &Tier| tier.average_evicted + tier.evicted + tier.protected;
        let base = &self.tiers[0];
        let worse = |tier: &&Tier| {
            refaulted(tier) >= 64
                && refaulted(tier) * total(base).max(64)
                    > (refaulted(base) + 64) * total(tier).max(1) * 2
        };
        let higher = &self.tiers[1..];
        higher.iter().position(|tier| worse(&tier)).unwrap_or(3)
    }

    fn reclaim(&mut self, pages: u32) {
        let batch = 64.min(self.size);
        let mut freed = 0;
        while freed < batch && self.resident() > 0 {
            while self.len(self.oldest) == 0 && self.youngest - self.oldest >= 2 {
                self.next_oldest();
            }
            if self.needs_aging() {
                self.age();
            }
            let evictable = self.evictable_tier();
            for _ in 0..batch {
                let oldest = self.generations.entry(self.oldest).or_default();
                let Some(page) = oldest.pop_front() else {
                    break;
                };
                // The page has no generation until it is put into one, so nothing examines it meanwhile.
                self.home.remove(&page);
                let tier = if self.workingset.contains(&page) {
                    3
                } else {
                    0
                };
                if tier == 3 || tier > evictable {
                    self.tiers[tier].protected += 1;
                    self.workingset.remove(&page);
                    self.put(page, self.oldest + 1);
                } else if self.accessed.remove(&page) {
                    self.put(page, self.youngest);
                    let first = page - page.min(32);
                    for neighbour in first..(first + 64).min(pages) {
                        self.look(neighbour);
                    }
                } else {
                    self.tiers[tier].evicted += 1;
                    self.shadows.insert(page, (self.oldest, tier));
                    freed += 1;
                    if freed == batch {
                        return;
                    }
                }
            }
        }
    }
}

impl Textbook for Mglru {
    fn touch(&mut self, page: u32) -> bool {
        if self.home.contains_key(&page) {
            self.accessed.insert(page);
            return true;
        }
        if self.resident() >= self.size {
            self.reclaim(u32::MAX);
        }
        let shadow = self.shadows.remove(&page);
        self.workingset.remove(&page);
        if let Some((_, tier)) = shadow.filter(|(generation, _)| *generation == self.oldest) {
            self.tiers[tier].refaulted += 1;
            self.workingset.insert(page);
        }
        self.accessed.insert(page);
        self.put(page, self.youngest);
        false
    }
}
