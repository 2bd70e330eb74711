//! The pattern `smooth-sin-random`: a multiset in random order, without ever holding the string.

use super::Generate;
use crate::number::index;
use crate::rng::Rng;

/// Pages drawn without replacement from their remaining counts.
///
/// Shuffling the string itself would hold 4 bytes a reference, 8 MB for 2,000,000, inside the very guest whose memory is
/// being measured. Drawing each reference uniformly from those that remain gives the same distribution, every order of
/// the multiset equally likely, and needs the remaining counts only: 4 bytes a page, 200 KB for 50,000 pages. They are
/// kept as a Fenwick tree ("A new data structure for cumulative frequency tables", 1994), so that finding the page that
/// holds the r-th remaining reference and taking it away is one descent of log2(pages) steps.
#[derive(Debug, Clone)]
pub(crate) struct Urn {
    /// Node n (from 1) holds the remaining references of the n & −n pages that end with page n − 1.
    tree: Vec<u32>,
    /// Greatest power of two that is at most the number of pages.
    top: u32,
    remaining: u32,
    rng: Rng,
}

impl Urn {
    /// Fills the urn; `counts` must sum to at most [`MAX_REFS`](crate::MAX_REFS).
    pub(crate) fn new(counts: impl Iterator<Item = u32>, seed: u64) -> Self {
        let mut tree: Vec<u32> = std::iter::once(0).chain(counts).collect();
        let remaining = tree.iter().sum();
        for node in 1..tree.len() {
            let parent = node + (node & node.wrapping_neg());
            if parent < tree.len() {
                tree[parent] += tree[node];
            }
        }
        let top = (tree.len() - 1).checked_ilog2().map_or(0, |log| 1 << log);
        Self {
            tree,
            top,
            remaining,
            rng: Rng::stream(seed, "smooth-sin-random"),
        }
    }
}

impl Generate for Urn {
    #[inline]
    fn next_page(&mut self) -> u32 {
        let mut rank = self.rng.below_u32(self.remaining);
        self.remaining = self.remaining.saturating_sub(1);
        let mut page = 0;
        let mut step = self.top;
        while step > 0 {
            if let Some(node) = self.tree.get_mut(index(page + step)) {
                if *node <= rank {
                    rank -= *node;
                    page += step;
                } else {
                    // The page lies below this node, whose sum so loses one reference.
                    *node -= 1;
                }
            }
            step >>= 1;
        }
        // Nodes count from 1, so the last node passed over is the index of the page sought.
        page
    }
}
