//! Estimates the LRU curve from a sample of the pages with SHARDS, for strings that do not fit in memory.
//!
//! A page is sampled if its hash is small. Distances within the sample are divided by the sampling rate (Waldspurger,
//! Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015, fixed rate, with the adjustment of
//! section 3.3: references missing from the sample count as hits at distance 1). The standard error is estimated from
//! ten subsamples, which are selected by other bits of the hash, with the jackknife: from the curves without each of
//! the subsamples.

mod groups;

use std::path::Path;

use super::{Point, shown_sizes};
use crate::error::{ReferenceError, ReferenceErrorKind};
use crate::flat;
use crate::ingest::{self, Dense, Format, RequiredContent};
use crate::number::{at, low32, narrow, whole};
use groups::{GROUPS, Groups};

/// Minimum number of sampled pages for which an error can be estimated from the subsamples.
const MIN_PAGES: u32 = 100;
/// Number of sampled pages that a message recommends if a sample was too small.
const GOOD_PAGES: f64 = 1000.0;
/// Number of ids hashed at a time.
const LANES: usize = 16;

/// An LRU curve estimated from a sample of the pages.
#[derive(Debug, Clone)]
pub struct SampledCurve {
    references: u64,
    rate: f64,
    /// Number of distinct pages in the sample.
    pages: u32,
    /// Stack distances within the whole sample, followed by those without each of the ten subsamples.
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    distances: Vec<u32>,
    references: u64,
    /// Fraction of all pages that are in this part.
    rate: f64,
}

impl SampledCurve {
    /// Returns the number of references in the string, sampled or not.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Returns the fraction of the pages that are sampled.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the number of references in the sample.
    pub fn sampled(&self) -> u64 {
        self.parts[0].references
    }

    /// Returns the number of distinct pages in the sample.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Returns true if the estimate is useless: the sample has too few pages, or the standard error at some size is as
    /// large as that of a guess. A guess is uniform between no faults and only faults.
    fn says_nothing(&self) -> bool {
        let error_of_a_guess = self.references as f64 / 12_f64.sqrt();
        let guesses = |size| self.faults(size).1 >= error_of_a_guess;
        // If all pages are sampled, nothing has to be estimated.
        self.rate < 1.0
            && (self.pages < MIN_PAGES || shown_sizes(self.enough()).into_iter().any(guesses))
    }

    /// Returns the estimated smallest size in pages beyond which more memory avoids no fault.
    pub fn enough(&self) -> u32 {
        let part = &self.parts[0];
        let last = part
            .distances
            .iter()
            .rposition(|hits| *hits > 0)
            .unwrap_or(0);
        whole((last + 1) as f64 / part.rate).max(1)
    }

    /// Returns the estimated faults of LRU at `sizes`, or at about 30 sizes if `sizes` is empty.
    pub fn points(&self, sizes: &[u32]) -> Vec<Point> {
        let shown = shown_sizes(self.enough());
        let sizes = if sizes.is_empty() { &shown } else { sizes };
        let point = |&pages: &u32| {
            let (lru, error) = self.faults(pages);
            Point {
                pages,
                lru,
                lru_error: Some(error),
                opt: None,
            }
        };
        sizes.iter().map(point).collect()
    }

    /// Returns the estimated number of faults with memory of `size` pages, and its standard error.
    pub fn faults(&self, size: u32) -> (f64, f64) {
        let estimate = self.parts[0].faults(size, self.references);
        let groups: Vec<f64> = self.parts[1..]
            .iter()
            .map(|part| part.faults(size, self.references))
            .collect();
        let count = groups.len() as f64;
        let mean = groups.iter().sum::<f64>() / count;
        let squares: f64 = groups.iter().map(|x| (x - mean).powi(2)).sum();
        (estimate, ((count - 1.0) / count * squares).sqrt())
    }
}

impl Part {
    fn faults(&self, size: u32, references: u64) -> f64 {
        let expected = references as f64 * self.rate;
        let within = at(whole(f64::from(size) * self.rate)).min(self.distances.len());
        let hits: u64 = self.distances[..within]
            .iter()
            .copied()
            .map(u64::from)
            .sum();
        let missing = expected - self.references as f64;
        let faults = self.references as f64 - hits as f64;
        // References missing from the sample count as hits, which lowers the fault rate. If the sample has too many
        // references, the rate is raised.
        let share = faults / (self.references as f64 + missing);
        (share * references as f64).clamp(0.0, references as f64)
    }
}

/// Returns a 64-bit hash of an ID (the finaliser of SplitMix64).
#[inline]
fn hash(id: u64) -> u64 {
    let mut z = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns a 32-bit hash of an ID, which decides whether the page is sampled. Uses only multiplications that exist in
/// SIMD registers. (C. Wellons, "Prospecting for hash functions", 2018: lowbias32, applied to both halves of the ID.)
#[inline]
fn draw(id: u64) -> u32 {
    let mut x = low32(id & u64::from(u32::MAX)) ^ low32(id >> 32).wrapping_mul(0x9e37_79b1);
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// Returns the largest value of [`draw`] for which a page is sampled.
fn threshold(rate: f64) -> u32 {
    whole(rate.clamp(0.0, 1.0) * f64::from(u32::MAX))
}

/// Estimates the LRU curve from a fraction `rate` of the pages, for references in memory.
pub fn shards(references: &[u32], rate: f64) -> SampledCurve {
    let mut sample = Sample::new(rate);
    let mut ids = Vec::new();
    for piece in references.chunks(1 << 14) {
        ids.clear();
        ids.extend(piece.iter().copied().map(u64::from));
        sample.take(&ids);
    }
    sample.finish()
}

/// Estimates the LRU curve from a fraction `rate` of the pages of a file. The file is read once, and only the sample is
/// kept in memory. Fails if the file cannot be read or the estimate is useless.
pub fn shards_of_file(
    path: &Path,
    format: Option<Format>,
    rate: f64,
) -> Result<SampledCurve, ReferenceError> {
    let mut sample = Sample::new(rate);
    let trouble = |reason| ReferenceError {
        path: path.to_owned(),
        reason,
    };
    ingest::each(path, format, RequiredContent::Pages, |ids, _| {
        sample.take(ids);
        Ok(())
    })
    .map_err(trouble)?;
    if sample.references == 0 {
        return Err(trouble(ReferenceErrorKind::Empty));
    }
    let curve = sample.finish();
    if curve.says_nothing() {
        let more = (GOOD_PAGES / f64::from(curve.pages.max(1))).max(3.0);
        let enough = (rate * more).min(1.0);
        return Err(trouble(ReferenceErrorKind::SmallSample {
            pages: curve.pages,
            rate,
            enough: format!("{enough:.1e}").parse().unwrap_or(1.0),
        }));
    }
    Ok(curve)
}

/// Collects the references to sampled pages.
struct Sample {
    /// Largest value of [`draw`] for which a page is sampled.
    most: u32,
    rate: f64,
    ids: Vec<u64>,
    references: u64,
}

impl Sample {
    fn new(rate: f64) -> Self {
        Self {
            most: threshold(rate),
            rate,
            ids: Vec::new(),
            references: 0,
        }
    }

    /// Adds the references to sampled pages among `ids`, with the widest SIMD registers that the processor has.
    fn take(&mut self, ids: &[u64]) {
        self.references += ids.len() as u64;
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512dq")
                && std::arch::is_x86_feature_detected!("avx512vl")
            {
                // SAFETY: the processor has these features.
                return unsafe { self.pick_widest(ids) };
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has this feature.
                return unsafe { self.pick_wide(ids) };
            }
        }
        self.pick(ids);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512dq,avx512vl")]
    fn pick_widest(&mut self, ids: &[u64]) {
        self.pick(ids);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn pick_wide(&mut self, ids: &[u64]) {
        self.pick(ids);
    }

    /// Keeps the IDs of sampled pages. Tests a vector of IDs at once, because most vectors contain none.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn pick(&mut self, ids: &[u64]) {
        let most = self.most;
        let (lanes, rest) = ids.as_chunks::<LANES>();
        for lane in lanes {
            let found = lane
                .iter()
                .fold(false, |found, id| found | (draw(*id) <= most));
            if found {
                self.keep(lane);
            }
        }
        self.keep(rest);
    }

    fn keep(&mut self, ids: &[u64]) {
        let most = self.most;
        let sampled = |id: &u64| draw(*id) <= most;
        self.ids.extend(ids.iter().copied().filter(sampled));
    }

    fn finish(self) -> SampledCurve {
        let mut dense = Dense::of_few();
        let mut numbers = Vec::with_capacity(self.ids.len());
        // A sample has fewer pages than a string may have.
        let _ = dense.number(&self.ids, &mut numbers);
        SampledCurve {
            references: self.references,
            rate: self.rate,
            pages: dense.pages(),
            parts: parts(
                &numbers,
                dense.ids().iter().map(|id| group(*id)).collect(),
                self.rate,
            ),
        }
    }
}

/// Returns the number of the subsample to which a page belongs, from 0.
fn group(id: u64) -> u8 {
    let group = low32(hash(id) & 0xffff) % narrow(GROUPS);
    group.to_le_bytes()[0]
}

/// Counts stack distances within the whole sample, and within the sample without each of the subsamples.
fn parts(numbers: &[u32], groups: Vec<u8>, rate: f64) -> Vec<Part> {
    let mut references = [0_u64; GROUPS];
    for page in numbers {
        references[usize::from(groups[at(*page)])] += 1;
    }
    let mut all = flat::zeroed(groups.len());
    let mut without: [Vec<u32>; GROUPS] = std::array::from_fn(|_| flat::zeroed(groups.len()));
    Groups::new(groups).run(numbers, |each, own| {
        let distance: u32 = each.iter().sum();
        all[at(distance) - 1] += 1;
        for (group, (since, distances)) in each.iter().zip(&mut without).enumerate() {
            // If this reference's own subsample is left out, the reference does not exist.
            let distance = distance - if group == own { 0 } else { *since };
            distances[at(distance) - 1] += u32::from(group != own);
        }
    });
    let share = (GROUPS as f64 - 1.0) / GROUPS as f64;
    let length = numbers.len() as u64;
    let all = Part {
        distances: all,
        references: length,
        rate,
    };
    let without = without.into_iter().zip(references);
    let left = without.map(|(distances, references)| Part {
        distances,
        references: length - references,
        rate: rate * share,
    });
    std::iter::once(all).chain(left).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_pattern_are_sampled_at_the_rate_and_spread_over_the_subsamples() {
        let patterns: [fn(u64) -> u64; 7] = [
            |number| number,
            |number| number << 12,
            |number| number << 32,
            |number| number << 44,
            |number| number.wrapping_mul(0x1_0000_0001),
            // These ids look like addresses in a program.
            |number| 0x7f00_0000_0000 + ((number & 1) << 40) + (number << 12),
            |number| number.wrapping_mul(number),
        ];
        for (pattern, id) in patterns.iter().enumerate() {
            for rate in [0.3, 0.01] {
                let ids: Vec<u64> = (0..200_000).map(id).collect();
                let mut sample = Sample::new(rate);
                sample.take(&ids);
                let expected = 200_000.0 * rate;
                // The tolerance is six standard deviations.
                let near = |count: usize, expected: f64| {
                    (count as f64 - expected).abs() < 6.0 * expected.sqrt()
                };
                let count = sample.ids.len();
                assert!(near(count, expected), "{pattern}: {count} at {rate}");
                for number in 0..GROUPS {
                    let members = sample
                        .ids
                        .iter()
                        .filter(|id| usize::from(group(**id)) == number);
                    let count = members.count();
                    assert!(
                        near(count, expected / 10.0),
                        "{pattern}: {count} in {number}"
                    );
                }
            }
        }
    }
}
