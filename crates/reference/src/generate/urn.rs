//! The pattern `smooth-sin-random`: a multiset in random order, without storing the string.

use super::Generator;
use crate::number::index;
use crate::rng::Rng;

/// Draws pages without replacement, with probability proportional to their remaining counts.
///
/// Shuffling the string itself would need 4 bytes per reference, 8 MB for 2,000,000, inside the guest whose memory is
/// being measured. Drawing each reference uniformly from the remaining ones gives the same distribution, with every
/// order of the multiset equally likely, and needs only the remaining counts.
///
/// The remaining counts are stored as partial sums, as in a Fenwick tree ("A new data structure for cumulative
/// frequency tables", 1994). So finding the page of the r-th remaining reference and removing it is one descent of
/// log2(pages) steps. Unlike in Fenwick's numbering, the nodes are stored as in a heap. A step is then seven
/// instructions instead of fifteen, which matters in an emulator. The cost is 4 bytes per page, with the pages rounded
/// up to a power of two (256 KiB for 50,000 pages).
#[derive(Debug, Clone)]
pub(crate) struct Urn {
    /// Partial sums, by node. Node k holds the number of remaining references below its left child 2k. The right child
    /// is 2k + 1, the root is node 1, and nodes beyond the end are pages.
    left_sums: Vec<u32>,
    /// Number of the tree node that stands for page 0.
    first_leaf: u32,
    remaining: u32,
    rng: Rng,
}

/// Returns the number of nodes for `pages` pages, including the unused node 0.
fn nodes(pages: u32) -> u32 {
    pages.next_power_of_two()
}

/// Returns the heap memory of an urn for `pages` pages, in bytes.
pub(crate) fn held_bytes(pages: u32) -> u64 {
    4 * u64::from(nodes(pages))
}

impl Urn {
    /// Fills the urn with `count(page)` references of each page. The sum must be at most [`MAX_REFS`](crate::MAX_REFS).
    pub(crate) fn new(pages: u32, count: impl Fn(u32) -> u32, seed: u64) -> Self {
        let first_leaf = nodes(pages);
        let mut left_sums = vec![0; index(first_leaf)];
        let mut remaining = 0;
        for page in 0..pages {
            let count = count(page);
            remaining += count;
            let mut node = first_leaf + page;
            while node > 1 {
                let parent = node / 2;
                if node == 2 * parent {
                    left_sums[index(parent)] += count;
                }
                node = parent;
            }
        }
        Self {
            left_sums,
            first_leaf,
            remaining,
            rng: Rng::stream(seed, "smooth-sin-random"),
        }
    }
}

impl Generator for Urn {
    #[inline]
    fn next_page(&mut self) -> u32 {
        let mut rank = self.rng.below_u32(self.remaining);
        self.remaining = self.remaining.saturating_sub(1);
        let mut node = 1;
        while let Some(left) = self.left_sums.get_mut(index(node)) {
            node *= 2;
            if *left <= rank {
                rank -= *left;
                node += 1;
            } else {
                *left -= 1;
            }
        }
        node - self.first_leaf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_what_is_said() {
        for pages in [1, 2, 3, 1000, 1024, 1025] {
            let urn = Urn::new(pages, |_| 1, 1);
            assert_eq!(urn.left_sums.capacity() as u64 * 4, held_bytes(pages));
        }
    }
}
