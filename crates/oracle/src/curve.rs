//! Computes the number of faults at every memory size in one pass over the string.

mod lru;
mod opt;
mod ranks;
mod shards;

pub use lru::lru;
pub use opt::opt;
pub use shards::{SampledCurve, shards, shards_of_file};

use serde::Serialize;

use crate::string::ReferenceString;

/// Faults of LRU and of OPT at one memory size.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// Size of memory in pages.
    pub pages: u32,
    /// Number of faults of LRU, exact or estimated.
    pub lru: f64,
    /// Standard error of LRU's faults; `None` if they are exact.
    pub lru_error: Option<f64>,
    /// Number of faults of OPT; `None` if not computed.
    pub opt: Option<u64>,
}

/// Returns the faults of LRU and OPT at every memory size if `all` is true, otherwise at about 30 sizes. `None` if the
/// references are in a temporary file.
pub fn points(string: &ReferenceString, all: bool) -> Option<Vec<Point>> {
    let references = string.in_memory()?;
    let lru = lru(references, string.pages()).without_lead(string.lead());
    let opt = opt(references, string.pages()).without_lead(string.lead());
    let most = lru.enough().max(opt.enough());
    let sizes = if all {
        (1..=most).collect()
    } else {
        shown_sizes(most)
    };
    let point = |pages| Point {
        pages,
        lru: lru.faults(pages) as f64,
        lru_error: None,
        opt: Some(opt.faults(pages)),
    };
    Some(sizes.into_iter().map(point).collect())
}

/// Number of faults for each memory size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// Number of counted references.
    references: u64,
    /// Faults with memory of 1, 2, … pages, up to the size from which only the first use of each page faults.
    faults: Vec<u64>,
}

impl Curve {
    /// Creates a curve. `distances` contains, for memory of 1, 2, … pages, the number of references that are hits with
    /// this size but not with a smaller one. All other references fault with any size.
    fn of_distances(references: u64, distances: impl IntoIterator<Item = u64>) -> Self {
        let mut faults = references;
        let mut all: Vec<u64> = distances
            .into_iter()
            .map(|hits| {
                faults -= hits;
                faults
            })
            .collect();
        while all.len() > 1 && all[all.len() - 1] == all[all.len() - 2] {
            all.pop();
        }
        if all.is_empty() {
            all.push(references);
        }
        Self {
            references,
            faults: all,
        }
    }

    /// Returns the number of faults with memory of `size` pages, which must be at least 1.
    pub fn faults(&self, size: u32) -> u64 {
        let place = (size.max(1) as usize - 1).min(self.faults.len() - 1);
        self.faults[place]
    }

    /// Returns the number of counted references.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Returns the curve without the first `lead` references. Each of them must be the first use of a page, so that it
    /// faults at any size.
    #[must_use]
    pub fn without_lead(mut self, lead: u32) -> Self {
        let lead = u64::from(lead);
        self.references -= lead;
        self.faults.iter_mut().for_each(|faults| *faults -= lead);
        self
    }

    /// Returns the smallest size in pages beyond which more memory avoids no fault.
    pub fn enough(&self) -> u32 {
        crate::number::narrow(self.faults.len())
    }
}

/// Returns about 30 sizes from 1 to `most` pages for displaying a curve, with a constant ratio between neighbours.
pub fn shown_sizes(most: u32) -> Vec<u32> {
    let ratio = f64::from(most).powf(1.0 / 30.0).max(1.05);
    let mut sizes = vec![1];
    let mut size = f64::from(most);
    while size >= 1.5 {
        sizes.push(crate::number::whole(size.round()));
        size /= ratio;
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
