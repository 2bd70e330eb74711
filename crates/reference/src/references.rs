//! The stream of page indices that a scenario touches.

use std::iter::FusedIterator;
use std::path::PathBuf;

use crate::file::{PackedFile, PackedReferences};
use crate::generate::Generator;
use crate::generate::cold_first::AfterCold;
use crate::generate::cycle::Cycle;
use crate::generate::hot_cold::HotSet;
use crate::generate::lognormal::Lognormal;
use crate::generate::random::Random;
use crate::generate::scan::Scan;
use crate::generate::smooth_sin::{Curve, SmoothSin};
use crate::generate::urn::Urn;
use crate::generate::zipf::ZipfPages;
use crate::generate::zipf05::Zipf05;
use crate::pattern::{Pattern, StringError};

/// A string of references: page indices in the order in which a scenario touches the pages. Available one by one or in
/// batches.
///
/// Computed on demand and never stored, so that a string of any length needs no guest memory. Single references and
/// batches can be mixed and give the same string. A caller that times each touch takes a batch before the timed part.
///
/// ```
/// use pagetide_reference::Pattern;
///
/// let mut references = Pattern::SmoothSinRandom { as_written: false }.references(50_000, 2_000_000, 1)?;
/// let mut batch = [0; 512];
/// while let filled @ 1.. = references.fill(&mut batch) {
///     assert!(batch[..filled].iter().all(|&page| page < 50_000));
/// }
/// # Ok::<(), pagetide_reference::StringError>(())
/// ```
#[derive(Debug, Clone)]
pub struct References<'a> {
    source: Source<'a>,
    left: u64,
}

#[derive(Debug, Clone)]
enum Source<'a> {
    Cycle(Cycle),
    Random(Random),
    SmoothSin(SmoothSin),
    Urn(Urn),
    Zipf05(Zipf05),
    Zipf(ZipfPages),
    Lognormal(Lognormal),
    HotCold(HotSet),
    ColdFirst(AfterCold),
    Scan(Scan),
    Packed(PackedReferences<'a>),
}

/// Expands to `$use` for the generator in `$source`, once per generator type, so that the compiler specialises loops
/// for each type.
macro_rules! with_generator {
    ($source:expr, $generator:ident => $use:expr) => {
        match $source {
            Source::Cycle($generator) => $use,
            Source::Random($generator) => $use,
            Source::SmoothSin($generator) => $use,
            Source::Urn($generator) => $use,
            Source::Zipf05($generator) => $use,
            Source::Zipf($generator) => $use,
            Source::Lognormal($generator) => $use,
            Source::HotCold($generator) => $use,
            Source::ColdFirst($generator) => $use,
            Source::Scan($generator) => $use,
            Source::Packed($generator) => $use,
        }
    };
}

impl References<'_> {
    /// Starts the string of a pattern that passed [`Pattern::check`]; `None` if the references are in a file.
    fn generate(pattern: &Pattern, pages: u32, refs: u64, seed: u64) -> Option<Self> {
        let mut left = refs;
        let source = match pattern {
            Pattern::Linear => Source::Cycle(Cycle::linear(pages)),
            Pattern::Random => Source::Random(Random::new(pages, seed)),
            Pattern::SmoothSin { as_written } => {
                let curve = Curve::new(pages, refs, *as_written);
                left = curve.total();
                Source::SmoothSin(SmoothSin::new(curve))
            }
            Pattern::SmoothSinRandom { as_written } => {
                let curve = Curve::new(pages, refs, *as_written);
                left = curve.total();
                Source::Urn(Urn::new(pages, |page| curve.count(page), seed))
            }
            Pattern::Zipf05 => Source::Zipf05(Zipf05::new(pages, seed)),
            Pattern::Zipf(zipf) => Source::Zipf(ZipfPages::new(zipf, pages, seed)),
            Pattern::Lognormal => Source::Lognormal(Lognormal::new(pages, seed)),
            Pattern::HotCold(hot_cold) => Source::HotCold(HotSet::new(hot_cold, pages, seed)),
            Pattern::ColdFirst(cold) => Source::ColdFirst(AfterCold::new(*cold, pages, seed)),
            Pattern::ScanWithHotCore(scan) => Source::Scan(Scan::new(scan, pages, seed)),
            Pattern::Loop => Source::Cycle(Cycle::looping(pages, seed)),
            Pattern::File(_) => return None,
        };
        Some(Self { source, left })
    }

    /// Returns the number of references not yet returned.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Writes the next references to the start of `batch` and returns their number. It is less than the length of
    /// `batch` only at the end of the string.
    pub fn fill(&mut self, batch: &mut [u32]) -> usize {
        let filled = usize::try_from(self.left).map_or(batch.len(), |left| left.min(batch.len()));
        let batch = &mut batch[..filled];
        self.left -= filled as u64;
        with_generator!(&mut self.source, generator => {
            for page in batch {
                *page = generator.next_page();
            }
        });
        filled
    }
}

impl Pattern {
    /// Generates the references over `pages` pages; the same arguments always give the same string.
    ///
    /// Random numbers come from [`Rng::stream`](crate::Rng::stream) with `seed` and a label specific to the pattern.
    pub fn references(
        &self,
        pages: u32,
        refs: u64,
        seed: u64,
    ) -> Result<References<'static>, StringError> {
        self.check(pages, refs)?;
        References::generate(self, pages, refs, seed).ok_or_else(|| StringError::InFile {
            path: self.path().map(PathBuf::from).unwrap_or_default(),
        })
    }

    /// Returns the number of references of each page, in page order.
    ///
    /// The sine patterns compute the counts from their formula and ignore the seed. For all other patterns, this
    /// function generates the string and counts its references.
    pub fn counts(&self, pages: u32, refs: u64, seed: u64) -> Result<Vec<u32>, StringError> {
        match self {
            Self::SmoothSin { as_written } | Self::SmoothSinRandom { as_written } => {
                self.check(pages, refs)?;
                let curve = Curve::new(pages, refs, *as_written);
                Ok((0..pages).map(|page| curve.count(page)).collect())
            }
            _ => Ok(tally(self.references(pages, refs, seed)?, pages)),
        }
    }
}

impl<'a> PackedFile<'a> {
    /// Returns an iterator over `refs` references: those of the file, repeated from the start if the file has fewer.
    pub fn references(&self, refs: u64) -> References<'a> {
        References {
            source: Source::Packed(PackedReferences::new(*self)),
            left: refs,
        }
    }
}

impl Iterator for References<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        Some(with_generator!(&mut self.source, generator => generator.next_page()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match usize::try_from(self.left) {
            Ok(left) => (left, Some(left)),
            Err(_) => (usize::MAX, None),
        }
    }
}

impl FusedIterator for References<'_> {}

/// Returns the number of references to each of `pages` pages, in page order. Ignores larger page indices.
pub fn tally(references: impl Iterator<Item = u32>, pages: u32) -> Vec<u32> {
    let mut counts = vec![0_u32; crate::number::index(pages)];
    for page in references {
        if let Some(count) = counts.get_mut(crate::number::index(page)) {
            *count = count.saturating_add(1);
        }
    }
    counts
}
