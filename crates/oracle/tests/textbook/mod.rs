//! Policies as described in their papers, on plain lists that are searched from end to end: slow, and easy to check.

mod arc;
mod clock_pro;
pub mod lirs;
mod mglru;
mod s3_fifo;
mod two_lists;
mod two_q;
mod w_tinylfu;

use std::collections::VecDeque;

use pagetide_reference::Rng;

/// A policy that reports for each reference whether it was a hit.
pub trait Textbook {
    /// Processes a reference and returns true if it was a hit.
    fn touch(&mut self, page: u32) -> bool;
}

/// Removes a page from a list. Returns true if it was in the list.
fn take(list: &mut VecDeque<u32>, page: u32) -> bool {
    match list.iter().position(|&other| other == page) {
        Some(place) => {
            list.remove(place);
            true
        }
        None => false,
    }
}

/// Returns the textbook form of a policy; `None` if the policy has a separate test.
pub fn of(name: &str, size: usize) -> Option<Box<dyn Textbook>> {
    Some(match name {
        "fifo" => Box::new(Fifo(size, VecDeque::new())),
        "lru" => Box::new(Lru(size, VecDeque::new())),
        "clock" => Box::new(Clock(size, VecDeque::new())),
        "sieve" => Box::new(Sieve(size, Vec::new(), None)),
        "s3-fifo" => Box::new(s3_fifo::S3Fifo::new(size)),
        "2q" => Box::new(two_q::TwoQ::new(size)),
        "arc" => Box::new(arc::Arc::new(size)),
        "car" => Box::new(arc::Car::new(size)),
        "lirs" => Box::new(lirs::Lirs::new(size)),
        "clock-pro" => Box::new(clock_pro::ClockPro::new(size)),
        "w-tinylfu" => Box::new(w_tinylfu::WTinyLfu::new(size)),
        "random" => Box::new(Random(
            size,
            Vec::new(),
            Rng::stream(1, "random replacement"),
        )),
        "mglru" => Box::new(mglru::Mglru::new(size)),
        "active-inactive" => Box::new(two_lists::TwoLists::new(size)),
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

/// Random replacement: size of memory, the page in each frame, and the generator that chooses a frame.
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

/// The clock, as FIFO with second chance, which has the same hits. A page is (number, used).
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

/// SIEVE: size, (page, used) from new to old as in the paper, and the page at the hand.
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
