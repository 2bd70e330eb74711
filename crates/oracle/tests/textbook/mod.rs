//! Policies as their papers tell them, on plain lists that are searched from end to end: slow, and easy to check.

mod mglru;

use std::collections::{BTreeMap, HashMap, VecDeque};

use pagetide_reference::Rng;

/// A policy that says of each reference whether it was a hit.
pub trait Textbook {
    /// Takes a reference.
    fn touch(&mut self, page: u32) -> bool;
}

/// Takes a page out of a list, if it is there.
fn take(list: &mut VecDeque<u32>, page: u32) -> bool {
    match list.iter().position(|&other| other == page) {
        Some(place) => {
            list.remove(place);
            true
        }
        None => false,
    }
}

/// The textbook form of a policy; `None` for one that has its own test.
pub fn of(name: &str, size: usize) -> Option<Box<dyn Textbook>> {
    Some(match name {
        "fifo" => Box::new(Fifo(size, VecDeque::new())),
        "lru" => Box::new(Lru(size, VecDeque::new())),
        "clock" => Box::new(Clock(size, VecDeque::new())),
        "sieve" => Box::new(Sieve(size, Vec::new(), None)),
        "s3-fifo" => Box::new(S3Fifo::new(size)),
        "2q" => Box::new(TwoQ::new(size)),
        "arc" => Box::new(Arc::new(size)),
        "car" => Box::new(Car::new(size)),
        "lirs" => Box::new(Lirs::new(size)),
        "clock-pro" => Box::new(ClockPro::new(size)),
        "w-tinylfu" => Box::new(WTinyLfu::new(size)),
        "random" => Box::new(Random(
            size,
            Vec::new(),
            Rng::stream(1, "random replacement"),
        )),
        "mglru" => Box::new(mglru::Mglru::new(size)),
        "active-inactive" => Box::new(TwoLists::new(size)),
        _ => return None,
    })
}

struct Fifo(usize, VecDeque<u32>);

impl Textbook for Fifo {
    fn touch(&mut self, page: u32) -> bool {
        if self.1.contains(&page) {
            return true;
        }
        if self.1.len() == self.0 {
            self.1.pop_front();
        }
        self.1.push_back(page);
        false
    }
}

/// Its frames, and the numbers that choose one.
struct Random(usize, Vec<u32>, Rng);

impl Textbook for Random {
    fn touch(&mut self, page: u32) -> bool {
        if self.1.contains(&page) {
            return true;
        }
        if self.1.len() < self.0 {
            self.1.push(page);
        } else {
            let frame = self.2.below_u32(self.0 as u32) as usize;
            self.1[frame] = page;
        }
        false
    }
}

struct Lru(usize, VecDeque<u32>);

impl Textbook for Lru {
    fn touch(&mut self, page: u32) -> bool {
        let hit = take(&mut self.1, page);
        if !hit && self.1.len() == self.0 {
            self.1.pop_front();
        }
        self.1.push_back(page);
        hit
    }
}

/// As FIFO with second chance, which is the same.
struct Clock(usize, VecDeque<(u32, bool)>);

impl Textbook for Clock {
    fn touch(&mut self, page: u32) -> bool {
        if let Some(entry) = self.1.iter_mut().find(|entry| entry.0 == page) {
            entry.1 = true;
            return true;
        }
        while self.1.len() == self.0 {
            let (old, used) = self.1.pop_front().unwrap();
            if used {
                self.1.push_back((old, false));
            }
        }
        self.1.push_back((page, false));
        false
    }
}

/// Entries from new to old, as the paper draws them; the hand is a page.
struct Sieve(usize, Vec<(u32, bool)>, Option<u32>);

impl Textbook for Sieve {
    fn touch(&mut self, page: u32) -> bool {
        let Self(size, list, hand) = self;
        if let Some(entry) = list.iter_mut().find(|entry| entry.0 == page) {
            entry.1 = true;
            return true;
        }
        if list.len() == *size {
            let mut place = match hand {
                Some(page) => list.iter().position(|entry| entry.0 == *page).unwrap(),
                None => list.len() - 1,
            };
            while list[place].1 {
                list[place].1 = false;
                place = if place == 0 {
                    list.len() - 1
                } else {
                    place - 1
                };
            }
            *hand = (place > 0).then(|| list[place - 1].0);
            list.remove(place);
        }
        list.insert(0, (page, false));
        false
    }
}

struct S3Fifo {
    size: usize,
    small_size: usize,
    ghost_size: usize,
    small: VecDeque<(u32, u32)>,
    main: VecDeque<(u32, u32)>,
    ghost: VecDeque<u32>,
}

impl S3Fifo {
    fn new(size: usize) -> Self {
        Self {
            size,
            small_size: (size / 10).max(1),
            ghost_size: (size as f64 * 0.9) as usize,
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghost: VecDeque::new(),
        }
    }

    fn evict(&mut self) {
        if self.main.len() > self.size - self.small_size || self.small.is_empty() {
            while let Some((page, uses)) = self.main.pop_front() {
                if uses == 0 {
                    return;
                }
                self.main.push_back((page, uses.min(3) - 1));
            }
            return;
        }
        while let Some((page, uses)) = self.small.pop_front() {
            if uses >= 2 {
                self.main.push_back((page, 0));
                continue;
            }
            self.ghost.push_back(page);
            if self.ghost.len() > self.ghost_size {
                self.ghost.pop_front();
            }
            return;
        }
    }
}

impl Textbook for S3Fifo {
    fn touch(&mut self, page: u32) -> bool {
        let mut all = self.small.iter_mut().chain(self.main.iter_mut());
        if let Some(entry) = all.find(|entry| entry.0 == page) {
            entry.1 += 1;
            return true;
        }
        let known = take(&mut self.ghost, page);
        while self.small.len() + self.main.len() == self.size {
            self.evict();
        }
        if known {
            self.main.push_back((page, 0));
        } else {
            self.small.push_back((page, 0));
        }
        false
    }
}

struct TwoQ {
    size: usize,
    new: VecDeque<u32>,
    out: VecDeque<u32>,
    main: VecDeque<u32>,
}

impl TwoQ {
    fn new(size: usize) -> Self {
        let (new, out, main) = Default::default();
        Self {
            size,
            new,
            out,
            main,
        }
    }

    fn reclaim(&mut self) {
        if self.new.len() + self.main.len() < self.size {
            return;
        }
        if self.new.len() > (self.size / 4).max(1) || self.main.is_empty() {
            self.out.push_back(self.new.pop_front().unwrap());
            if self.out.len() > (self.size / 2).max(1) {
                self.out.pop_front();
            }
        } else {
            self.main.pop_front();
        }
    }
}

impl Textbook for TwoQ {
    fn touch(&mut self, page: u32) -> bool {
        if take(&mut self.main, page) {
            self.main.push_back(page);
            return true;
        }
        if self.new.contains(&page) {
            return true;
        }
        let known = take(&mut self.out, page);
        self.reclaim();
        if known {
            self.main.push_back(page);
        } else {
            self.new.push_back(page);
        }
        false
    }
}

struct Arc {
    c: usize,
    p: f64,
    t1: VecDeque<u32>,
    t2: VecDeque<u32>,
    b1: VecDeque<u32>,
    b2: VecDeque<u32>,
}

impl Arc {
    fn new(c: usize) -> Self {
        let (t1, t2, b1, b2) = Default::default();
        let p = 0.0;
        Self {
            c,
            p,
            t1,
            t2,
            b1,
            b2,
        }
    }

    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && ((in_b2 && t1 == self.p) || t1 > self.p) || self.t2.is_empty() {
            self.b1.extend(self.t1.pop_front());
        } else {
            self.b2.extend(self.t2.pop_front());
        }
    }
}

impl Textbook for Arc {
    fn touch(&mut self, x: u32) -> bool {
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push_back(x);
            return true;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&x) {
            self.p = (self.p + f64::max(b2 / b1, 1.0)).min(self.c as f64);
            self.replace(false);
            take(&mut self.b1, x);
            self.t2.push_back(x);
        } else if self.b2.contains(&x) {
            self.p = (self.p - f64::max(b1 / b2, 1.0)).max(0.0);
            self.replace(true);
            take(&mut self.b2, x);
            self.t2.push_back(x);
        } else {
            let l1 = self.t1.len() + self.b1.len();
            let all = l1 + self.t2.len() + self.b2.len();
            if l1 == self.c {
                if self.t1.len() < self.c {
                    self.b1.pop_front();
                    self.replace(false);
                } else {
                    self.t1.pop_front();
                }
            } else if all >= self.c {
                if all == 2 * self.c {
                    self.b2.pop_front();
                }
                self.replace(false);
            }
            self.t1.push_back(x);
        }
        false
    }
}

struct Car {
    c: usize,
    p: f64,
    t1: VecDeque<(u32, bool)>,
    t2: VecDeque<(u32, bool)>,
    b1: VecDeque<u32>,
    b2: VecDeque<u32>,
}

impl Car {
    fn new(c: usize) -> Self {
        let (t1, t2, b1, b2) = Default::default();
        let p = 0.0;
        Self {
            c,
            p,
            t1,
            t2,
            b1,
            b2,
        }
    }

    fn replace(&mut self) {
        loop {
            if self.t1.len() as f64 >= self.p.max(1.0) {
                match self.t1.pop_front().unwrap() {
                    (page, false) => return self.b1.push_back(page),
                    (page, true) => self.t2.push_back((page, false)),
                }
            } else {
                match self.t2.pop_front().unwrap() {
                    (page, false) => return self.b2.push_back(page),
                    (page, true) => self.t2.push_back((page, false)),
                }
            }
        }
    }
}

impl Textbook for Car {
    fn touch(&mut self, x: u32) -> bool {
        let mut all = self.t1.iter_mut().chain(self.t2.iter_mut());
        if let Some(entry) = all.find(|entry| entry.0 == x) {
            entry.1 = true;
            return true;
        }
        let known = self.b1.contains(&x) || self.b2.contains(&x);
        if self.t1.len() + self.t2.len() == self.c {
            self.replace();
            let l1 = self.t1.len() + self.b1.len();
            if !known && l1 == self.c {
                self.b1.pop_front();
            } else if !known && l1 + self.t2.len() + self.b2.len() == 2 * self.c {
                self.b2.pop_front();
            }
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if take(&mut self.b1, x) {
            self.p = (self.p + f64::max(1.0, b2 / b1)).min(self.c as f64);
            self.t2.push_back((x, false));
        } else if take(&mut self.b2, x) {
            self.p = (self.p - f64::max(1.0, b1 / b2)).max(0.0);
            self.t2.push_back((x, false));
        } else {
            self.t1.push_back((x, false));
        }
        false
    }
}

/// S from bottom to top; a page is LIR if it is in `lir`, resident HIR if it is in `q`.
struct Lirs {
    c: usize,
    lhirs: usize,
    s: VecDeque<u32>,
    q: VecDeque<u32>,
    lir: Vec<u32>,
    /// Non-resident pages in the order they were evicted.
    gone: VecDeque<u32>,
}

impl Lirs {
    fn new(c: usize) -> Self {
        let (s, q, lir, gone) = Default::default();
        let lhirs = (c / 100).max(1);
        Self {
            c,
            lhirs,
            s,
            q,
            lir,
            gone,
        }
    }

    fn prune(&mut self) {
        while let Some(bottom) = self.s.front().copied() {
            if self.lir.contains(&bottom) {
                return;
            }
            self.s.pop_front();
            take(&mut self.gone, bottom);
        }
    }

    fn promote(&mut self, x: u32) {
        take(&mut self.s, x);
        self.s.push_back(x);
        self.lir.push(x);
        if self.lir.len() > self.c - self.lhirs {
            let bottom = self.s.pop_front().unwrap();
            self.lir.retain(|&page| page != bottom);
            self.q.push_back(bottom);
            self.prune();
        }
    }
}

impl Textbook for Lirs {
    fn touch(&mut self, x: u32) -> bool {
        if self.lir.contains(&x) {
            take(&mut self.s, x);
            self.s.push_back(x);
            self.prune();
            return true;
        }
        if self.q.contains(&x) {
            take(&mut self.q, x);
            if self.s.contains(&x) {
                self.promote(x);
            } else {
                self.q.push_back(x);
                if self.c > self.lhirs {
                    self.s.push_back(x);
                }
            }
            return true;
        }
        if self.lir.len() < self.c - self.lhirs {
            self.s.push_back(x);
            self.lir.push(x);
            return false;
        }
        if self.q.len() == self.lhirs {
            let evicted = self.q.pop_front().unwrap();
            if self.s.contains(&evicted) {
                self.gone.push_back(evicted);
            }
        }
        if self.s.contains(&x) {
            take(&mut self.gone, x);
            self.promote(x);
        } else {
            self.q.push_back(x);
            if self.c > self.lhirs {
                self.s.push_back(x);
            }
        }
        while self.s.len() > 2 * self.c && !self.gone.is_empty() {
            let oldest = self.gone.pop_front().unwrap();
            take(&mut self.s, oldest);
        }
        false
    }
}

/// The ring as a list of pages; hands are places in it.
struct ClockPro {
    size: usize,
    cold_target: usize,
    ring: Vec<u32>,
    kind: HashMap<u32, (char, bool)>,
    hot: usize,
    cold: usize,
    test: usize,
}

impl ClockPro {
    fn new(size: usize) -> Self {
        Self {
            size,
            cold_target: size,
            ring: Vec::new(),
            kind: HashMap::new(),
            hot: 0,
            cold: 0,
            test: 0,
        }
    }

    fn count(&self, kind: char) -> usize {
        self.kind.values().filter(|entry| entry.0 == kind).count()
    }

    fn insert(&mut self, page: u32, kind: char) {
        self.kind.insert(page, (kind, false));
        if self.ring.is_empty() {
            self.ring.push(page);
            return;
        }
        let together = self.cold == self.hot;
        let place = self.hot;
        self.ring.insert(place, page);
        // Hands at or behind the new page's place keep the page they stood on.
        self.hot += 1;
        if self.test >= place {
            self.test += 1;
        }
        if together {
            self.cold = place;
        } else if self.cold >= place {
            self.cold += 1;
        }
    }

    fn forget(&mut self, page: u32) {
        self.kind.remove(&page);
        let place = self.ring.iter().position(|&other| other == page).unwrap();
        self.ring.remove(place);
        let len = self.ring.len();
        for hand in [&mut self.hot, &mut self.cold, &mut self.test] {
            if *hand == place {
                *hand = if place == 0 {
                    len.saturating_sub(1)
                } else {
                    place - 1
                };
            } else if *hand > place {
                *hand -= 1;
            }
        }
    }

    fn run_cold(&mut self) {
        let page = self.ring[self.cold];
        if self.kind[&page].0 == 'c' {
            if self.kind[&page].1 {
                self.kind.insert(page, ('h', false));
            } else {
                self.kind.insert(page, ('t', false));
                while self.count('t') > self.size {
                    self.run_test();
                }
            }
        }
        self.cold = (self.cold + 1) % self.ring.len();
        while self.count('h') > self.size - self.cold_target {
            self.run_hot();
        }
    }

    fn run_hot(&mut self) {
        if self.hot == self.test {
            self.run_test();
        }
        let page = self.ring[self.hot];
        match self.kind[&page] {
            ('h', true) => self.kind.insert(page, ('h', false)),
            ('h', false) => self.kind.insert(page, ('c', false)),
            _ => None,
        };
        self.hot = (self.hot + 1) % self.ring.len();
    }

    fn run_test(&mut self) {
        let page = self.ring[self.test];
        if self.kind[&page].0 == 't' {
            self.forget(page);
            self.cold_target = (self.cold_target - 1).max(1);
        }
        self.test = (self.test + 1) % self.ring.len();
    }
}

impl Textbook for ClockPro {
    fn touch(&mut self, page: u32) -> bool {
        let kind = match self.kind.get(&page).map(|entry| entry.0) {
            Some('h' | 'c') => {
                self.kind.get_mut(&page).unwrap().1 = true;
                return true;
            }
            Some(_) => {
                self.cold_target = (self.cold_target + 1).min(self.size);
                self.forget(page);
                'h'
            }
            None => 'c',
        };
        while self.count('h') + self.count('c') >= self.size {
            self.run_cold();
        }
        self.insert(page, kind);
        false
    }
}

struct WTinyLfu {
    size: usize,
    window_size: usize,
    window: VecDeque<u32>,
    probation: VecDeque<u32>,
    protected: VecDeque<u32>,
    uses: BTreeMap<u32, u32>,
    counted: usize,
}

impl WTinyLfu {
    fn new(size: usize) -> Self {
        let (window, probation, protected, uses) = Default::default();
        let window_size = (size / 100).max(1);
        let counted = 0;
        Self {
            size,
            window_size,
            window,
            probation,
            protected,
            uses,
            counted,
        }
    }

    fn count(&mut self, page: u32) {
        let uses = self.uses.entry(page).or_default();
        if *uses < 15 {
            *uses += 1;
            self.counted += 1;
        } else {
            return;
        }
        if self.counted == 10 * self.size {
            self.uses.values_mut().for_each(|uses| *uses /= 2);
            self.counted /= 2;
        }
    }
}

impl Textbook for WTinyLfu {
    fn touch(&mut self, page: u32) -> bool {
        self.count(page);
        let main_size = self.size - self.window_size;
        if take(&mut self.window, page) {
            self.window.push_back(page);
            return true;
        }
        if take(&mut self.protected, page) {
            self.protected.push_back(page);
            return true;
        }
        if take(&mut self.probation, page) {
            self.protected.push_back(page);
            if self.protected.len() > (main_size as f64 * 0.8) as usize {
                self.probation.extend(self.protected.pop_front());
            }
            return true;
        }
        self.window.push_back(page);
        if self.window.len() > self.window_size {
            let candidate = self.window.pop_front().unwrap();
            let victims = if self.probation.is_empty() {
                &mut self.protected
            } else {
                &mut self.probation
            };
            let victim = victims.front().copied();
            if self.probation.len() + self.protected.len() < main_size {
                self.probation.push_back(candidate);
            } else if let Some(victim) = victim
                && self.uses[&candidate] > self.uses[&victim]
            {
                take(&mut self.probation, victim);
                take(&mut self.protected, victim);
                self.probation.push_back(candidate);
            }
        }
        false
    }
}

/// Linux' two lists; a page is (number, accessed, referenced).
struct TwoLists {
    size: usize,
    inactive: VecDeque<(u32, bool, bool)>,
    active: VecDeque<(u32, bool, bool)>,
    shadows: HashMap<u32, u64>,
    age: u64,
    activated: bool,
    owed: f64,
}

impl TwoLists {
    fn new(size: usize) -> Self {
        Self {
            size,
            inactive: VecDeque::new(),
            active: VecDeque::new(),
            shadows: HashMap::new(),
            age: 0,
            activated: false,
            owed: 0.0,
        }
    }

    fn deactivate(&mut self, count: usize) {
        for _ in 0..count {
            if let Some((page, _, referenced)) = self.active.pop_front() {
                self.inactive.push_back((page, false, referenced));
            }
        }
    }

    fn reclaim(&mut self) {
        let batch = 32.min(self.size);
        let mut freed = 0;
        while freed < batch && (!self.inactive.is_empty() || !self.active.is_empty()) {
            let low = self.inactive.len() < self.active.len();
            if low || self.activated {
                self.activated &= low;
                let inactive = self.inactive.len().max(1) as f64;
                self.owed += batch as f64 * self.active.len() as f64 / inactive;
                self.deactivate(self.owed as usize);
                self.owed = self.owed.fract();
            }
            if self.inactive.is_empty() {
                self.deactivate(batch);
            }
            for _ in 0..batch {
                let Some((page, accessed, referenced)) = self.inactive.pop_front() else {
                    break;
                };
                match (accessed, referenced) {
                    (true, true) => {
                        self.age += 1;
                        self.active.push_back((page, false, true));
                    }
                    (true, false) => self.inactive.push_back((page, false, true)),
                    (false, _) => {
                        self.shadows.insert(page, self.age);
                        self.age += 1;
                        freed += 1;
                        if freed == batch {
                            break;
                        }
                    }
                }
            }
            if self.inactive.len() < self.active.len() {
                self.deactivate(batch);
            }
        }
    }
}

impl Textbook for TwoLists {
    fn touch(&mut self, page: u32) -> bool {
        let mut all = self.inactive.iter_mut().chain(self.active.iter_mut());
        if let Some(entry) = all.find(|entry| entry.0 == page) {
            entry.1 = true;
            return true;
        }
        if self.inactive.len() + self.active.len() == self.size {
            self.reclaim();
        }
        let distance = self.shadows.remove(&page).map(|shadow| self.age - shadow);
        if distance.is_some_and(|distance| distance <= self.active.len() as u64) {
            self.age += 1;
            self.activated = true;
            self.active.push_back((page, true, false));
        } else {
            self.inactive.push_back((page, true, false));
        }
        false
    }
}
