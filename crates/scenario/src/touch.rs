//! The timed touch loop: one clock read per access, a histogram and a log entry.
//!
//! The end of one access is the start of the next, so a trial of n accesses reads the clock n times plus once per
//! batch. Between two readings the loop does only the access and stores the reading. References are generated before a
//! batch, and histogram and log are updated after it, where the processor can overlap work that fenced clock reads
//! between accesses would serialise.

// A function call between two clock readings would be measured too.
#![allow(clippy::inline_always)]
// Pages have a larger alignment than any word.
#![allow(clippy::cast_ptr_alignment)]

use std::marker::PhantomData;

use pagetide_quantity::Histogram;
use pagetide_record::Warning;
use pagetide_record::wire::{Frame, Kind, Region};

use crate::clock::{Clock, MonotonicTicks, RawTsc, Ticks};
use crate::error::Stop;
use crate::fill::Filler;
use crate::harness::LockedBuffer;
use crate::mapping::Mapping;
use crate::number;
use crate::page::PAGE;

/// Number of low bits of a log entry that contain the latency in nanoseconds. The page number is above them.
pub const LATENCY_BITS: u32 = 36;
/// Maximum latency that a log entry can contain, about 69 seconds.
pub const MAX_LATENCY_NS: u64 = (1 << LATENCY_BITS) - 1;
/// Number of references generated at once.
pub(crate) const BATCH: usize = 1024;
/// Bit of a reference that is set if the reference writes.
pub(crate) const WRITE: u32 = 1 << 31;
/// Mask of the page number in a reference.
const PAGE_BITS: u32 = (1 << 28) - 1;

/// Amount of a page that a reference touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// One word of the page.
    Word,
    /// The whole page: a copy to or from a buffer.
    Page,
}

/// Offset of the touched word in its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// A cache line chosen by a hash of the page's number, so that the processor's cache sets are used evenly.
    Spread,
    /// The same offset in every page, a multiple of 8 below 4096.
    At(u32),
}

/// The pages of a workload, and what part of a page a reference touches.
#[derive(Clone, Copy, Debug)]
pub struct Touch<'m> {
    /// Address of the first byte of the workload.
    base: *mut u8,
    /// Number of pages in the workload.
    pages: u64,
    amount: Amount,
    /// Mask of the bits of the word's offset that vary with the page.
    spread: u32,
    /// Bits of the word's offset that are the same in every page.
    fixed: u32,
    /// Makes sure that the workload stays mapped as long as this value exists.
    mapping: PhantomData<&'m Mapping>,
}

impl<'m> Touch<'m> {
    /// Creates a `Touch` for a workload of `pages` pages that begins at `base`.
    ///
    /// # Safety
    /// The pages must be mapped readable and writable during `'m`, and no reference to their bytes may exist in that
    /// time.
    pub const unsafe fn new(base: *mut u8, pages: u64, amount: Amount, offset: Offset) -> Self {
        let (spread, fixed) = match offset {
            Offset::Spread => (0xfc0, 0),
            Offset::At(byte) => (0, byte & 0xff8),
        };
        Self {
            base,
            pages,
            amount,
            spread,
            fixed,
            mapping: PhantomData,
        }
    }

    /// Returns a `Touch` for all pages of `mapping`.
    pub(crate) const fn mapping(mapping: &'m Mapping, amount: Amount, offset: Offset) -> Self {
        // SAFETY: the mapping is borrowed for `'m`, so it is not unmapped, and a mapping hands out raw pointers to its
        // bytes, never references.
        unsafe { Self::new(mapping.start(), mapping.pages(), amount, offset) }
    }

    fn must_hold(&self, batch: &[u32]) {
        assert!(
            batch
                .iter()
                .all(|item| u64::from(item & PAGE_BITS) < self.pages),
            "a reference lies outside of the workload"
        );
    }

    /// Returns the address of the word that a reference to `page` touches.
    #[inline(always)]
    fn word(&self, page: u32) -> *mut u64 {
        // Fibonacci hashing: the upper bits of the product are spread evenly over neighbouring pages.
        let offset = (page.wrapping_mul(0x9e37_79b9) >> 20) & self.spread | self.fixed;
        // SAFETY: callers have checked that the page is below `pages` (`must_hold`), and the offset is below the page size,
        // so the word lies within the mapping.
        unsafe { self.page(page).add(offset as usize).cast() }
    }

    #[inline(always)]
    fn page(&self, page: u32) -> *mut u8 {
        // SAFETY: callers have checked that the page is below `pages` (`must_hold`), so it lies within the mapping.
        unsafe { self.base.add(page as usize * PAGE) }
    }
}

/// The histogram and sum of a [`Recorder`] at some time.
pub(crate) struct Mark {
    dense: Vec<u64>,
    sum: u64,
}

/// Records latencies of accesses: in a histogram, and in a log as long as the log has space.
///
/// The log is in the output region, so it cannot outlive the mapping of the region.
pub struct Recorder<'m> {
    dense: LockedBuffer<u64>,
    scratch: LockedBuffer<u64>,
    /// Clock reading after each access of a batch, in ticks.
    ends: LockedBuffer<u64>,
    sum: u64,
    min: u64,
    max: u64,
    count: u64,
    log: Option<Frame<'m>>,
    kept: u64,
    /// Filler whose content each write stores again; `None` if writes store other data.
    restored: Option<&'m Filler>,
}

impl<'m> Recorder<'m> {
    /// Creates a recorder without a log. Fails if its buffers cannot be mapped.
    pub fn new() -> Result<Self, Box<dyn std::error::Error>> {
        Ok(Self::without_log()?)
    }

    pub(crate) fn without_log() -> Result<Self, Stop> {
        Ok(Self {
            dense: LockedBuffer::new(Histogram::BUCKETS)?,
            scratch: LockedBuffer::new(PAGE / 8)?,
            ends: LockedBuffer::new(BATCH)?,
            sum: 0,
            min: u64::MAX,
            max: 0,
            count: 0,
            log: None,
            kept: 0,
            restored: None,
        })
    }

    /// Adds a log of up to `accesses` accesses, stored in the region under this name. It is shorter if the region is
    /// small.
    pub fn log_to(&mut self, region: &Region<'m>, name: &str, accesses: u64) {
        // At most half of the free space, because other series need space too.
        let most = region.free() / 2 / 8 * 8;
        let wanted = number::index(accesses.saturating_mul(8)).min(most);
        self.log = region.frame(Kind::Blob, name, wanted).ok();
        self.kept = 0;
    }

    /// Sets the page content that a whole-page write copies, until a whole-page read replaces it.
    ///
    /// If the pages of `filler` compress differently, a write must not change how its page compresses. So it stores the
    /// word or the whole page that `filler` generates for this page.
    pub(crate) fn write_content(&mut self, filler: &'m Filler) {
        self.restored = Some(filler).filter(|filler| filler.is_mixture());
        // SAFETY: the buffer is a page long and not borrowed elsewhere.
        unsafe { filler.page(self.scratch.as_mut_ptr().cast(), u64::MAX / 2) };
    }

    /// Returns the current state, for [`Recorder::since`].
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            dense: self.dense.to_vec(),
            sum: self.sum,
        }
    }

    /// Returns the histogram of the accesses after `mark`. Its minimum and maximum are only as exact as its buckets.
    pub(crate) fn since(&self, mark: &Mark) -> Histogram {
        let dense: Vec<u64> = self
            .dense
            .iter()
            .zip(&mark.dense)
            .map(|(now, then)| now - then)
            .collect();
        let filled = || {
            (0_u32..)
                .zip(&dense)
                .filter(|(_, count)| **count > 0)
                .map(|(index, _)| index)
        };
        let low = filled()
            .next()
            .map_or(0, |index| Histogram::bounds(index).0);
        let high = filled()
            .last()
            .map_or(0, |index| Histogram::bounds(index).1);
        let (min, max) = (low.max(self.min), high.min(self.max));
        Histogram::from_dense(&dense, self.sum - mark.sum, min, max)
    }

    /// Returns the number of accesses so far.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of all latencies in nanoseconds.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the smallest and the largest latency in nanoseconds; zeros if there were no accesses.
    pub const fn range(&self) -> (u64, u64) {
        (if self.count == 0 { 0 } else { self.min }, self.max)
    }

    /// Returns the histogram of all latencies so far, in nanoseconds.
    pub fn histogram(&self) -> Histogram {
        let (min, max) = self.range();
        Histogram::from_dense(&self.dense, self.sum, min, max)
    }

    /// Returns quantile `q` of the latencies in nanoseconds (nearest rank). It is exact if the log contains every
    /// access; otherwise it is taken from the histogram.
    pub fn quantile(&mut self, q: f64) -> u64 {
        let kept = self.kept;
        if self.count == 0 || kept < self.count {
            return self.histogram().quantile(q);
        }
        let rank = number::floor((q.clamp(0.0, 1.0) * self.count as f64).ceil()).max(1);
        let mut seen = 0;
        for (index, count) in (0_u32..).zip(self.dense.iter()) {
            if seen + count >= rank {
                let (low, high) = Histogram::bounds(index);
                return self.nth_within(low, high, rank - seen);
            }
            seen += count;
        }
        self.max
    }

    /// Returns the `rank`-th smallest logged latency within `low..=high`. There must be at least `rank` of them.
    ///
    /// The range is repeatedly divided into as many parts as the scratch buffer has entries, so that the log need not
    /// be copied.
    fn nth_within(&mut self, mut low: u64, mut high: u64, mut rank: u64) -> u64 {
        let Some(log) = self.log.as_mut() else {
            return low;
        };
        let (log, _) = log.body()[..number::index(self.kept * 8)].as_chunks::<8>();
        while low < high {
            let parts = self.scratch.len() as u64;
            let width = (high - low) / parts + 1;
            self.scratch.fill(0);
            for entry in log {
                let latency = u64::from_le_bytes(*entry) & MAX_LATENCY_NS;
                if (low..=high).contains(&latency) {
                    self.scratch[number::index((latency - low) / width)] += 1;
                }
            }
            let mut part = 0;
            for (count, index) in self.scratch.iter().zip(0..) {
                part = index;
                if rank <= *count {
                    break;
                }
                rank -= count;
            }
            low += part * width;
            high = high.min(low + width - 1);
        }
        low
    }

    /// Finishes the log. Returns a warning if it does not contain every access.
    pub fn finish(&mut self) -> Option<Warning> {
        let log = self.log.take();
        let kept = std::mem::take(&mut self.kept);
        if let Some(log) = log {
            log.finish(number::index(kept * 8));
            return (kept < self.count).then_some(Warning::LogCut {
                kept,
                total: self.count,
            });
        }
        None
    }

    /// Performs and times the accesses of a batch one after the other. `batch` contains page numbers, with the highest
    /// bit set for a write. Panics if a page is outside of the workload.
    pub fn touch(&mut self, clock: Clock, touch: &Touch, batch: &[u32]) {
        touch.must_hold(batch);
        for batch in batch.chunks(BATCH) {
            match clock {
                Clock::RawTsc => self.touch_with(RawTsc, touch, batch),
                Clock::Monotonic => self.touch_with(MonotonicTicks, touch, batch),
            }
        }
    }

    fn touch_with<T: Ticks>(&mut self, clock: T, touch: &Touch, batch: &[u32]) {
        let buffer = self.scratch.as_mut_ptr().cast::<u8>();
        let start = match (touch.amount, self.restored) {
            (Amount::Word, None) => self.time::<T>(batch, |item| access_word(touch, item)),
            (Amount::Page, None) => self.time::<T>(batch, |item| copy_page(touch, item, buffer)),
            (amount, Some(filler)) => self.time::<T>(batch, |item| match amount {
                _ if item & WRITE != 0 => restore(touch, item & PAGE_BITS, filler),
                Amount::Word => access_word(touch, item),
                Amount::Page => copy_page(touch, item, buffer),
            }),
        };
        self.keep(clock, start, batch);
    }

    /// Runs the timed loop: stores the clock after each access, and returns the clock before the first access.
    #[inline(always)]
    fn time<T: Ticks>(&mut self, batch: &[u32], access: impl Fn(u32)) -> u64 {
        let start = T::ticks();
        for (&item, end) in batch.iter().zip(self.ends.iter_mut()) {
            access(item);
            *end = T::ticks();
        }
        start
    }

    /// Adds a timed batch to histogram, sums and log. `start` is the clock before the first access.
    fn keep<T: Ticks>(&mut self, clock: T, start: u64, batch: &[u32]) {
        let room = self.log_room(batch.len());
        let mut entries = match self.log.as_mut() {
            Some(log) => {
                let at = number::index(self.kept * 8);
                log.body()[at..at + room * 8]
                    .as_chunks_mut::<8>()
                    .0
                    .iter_mut()
            }
            None => [].iter_mut(),
        };
        let (mut sum, mut min, mut max) = (self.sum, self.min, self.max);
        let mut before = start;
        for (&item, &after) in batch.iter().zip(self.ends.iter()) {
            // The counters of two processors may differ slightly; negative times count as zero.
            let nanos = clock.nanos(after.saturating_sub(before));
            before = after;
            self.dense[Histogram::index(nanos) as usize] += 1;
            sum += nanos;
            min = min.min(nanos);
            max = max.max(nanos);
            if let Some(entry) = entries.next() {
                let value = u64::from(item & PAGE_BITS) << LATENCY_BITS | nanos.min(MAX_LATENCY_NS);
                *entry = value.to_le_bytes();
            }
        }
        (self.sum, self.min, self.max) = (sum, min, max);
        self.count += batch.len() as u64;
        self.kept += room as u64;
    }

    /// Returns how many of the next `entries` entries fit into the log.
    fn log_room(&mut self, entries: usize) -> usize {
        let kept = number::index(self.kept);
        self.log.as_ref().map_or(0, |log| {
            (log.capacity() / 8).saturating_sub(kept).min(entries)
        })
    }
}

#[inline(always)]
fn access_word(touch: &Touch, item: u32) {
    let word = touch.word(item & PAGE_BITS);
    // SAFETY: the word lies within a page that stays mapped (`Touch::word`) and to which there are raw pointers only.
    unsafe {
        if item & WRITE == 0 {
            word.read_volatile();
        } else {
            // A page is never written with zeros: the reference has its highest bit set.
            word.write_volatile(u64::from(item));
        }
    }
}

#[inline(always)]
fn copy_page(touch: &Touch, item: u32, buffer: *mut u8) {
    let page = touch.page(item & PAGE_BITS);
    let (from, to) = if item & WRITE == 0 {
        (page, buffer)
    } else {
        (buffer, page)
    };
    // SAFETY: the page lies within the workload, which stays mapped (`Touch::page`); the buffer is the recorder's own page,
    // borrowed exclusively by `touch`, and outside of the workload, so the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from, to, PAGE) };
    // The copy must be complete before the clock is read.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    std::hint::black_box(to);
}

/// Writes to a page the content that `filler` generates for it: one word or the whole page, depending on `touch`.
#[inline(always)]
fn restore(touch: &Touch, page: u32, filler: &Filler) {
    match touch.amount {
        Amount::Word => {
            let word = touch.word(page);
            let content = filler.word(page.into(), word.addr() % PAGE / 8);
            // SAFETY: the word lies within a page that stays mapped (`Touch::word`) and to which there are raw pointers only.
            unsafe { word.write_volatile(content) };
        }
        // SAFETY: the page lies within the workload, which stays mapped (`Touch::page`) and to which there are raw pointers
        // only.
        Amount::Page => unsafe { filler.page(touch.page(page), page.into()) },
    }
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Pages;
    use pagetide_record::wire;
    use proptest::prelude::*;

    use super::*;
    use crate::content::Content;

    fn region(size: usize) -> (&'static Mapping, Region<'static>) {
        let memory = Box::leak(Box::new(
            Mapping::shared(Pages(size as u64 / 4096)).unwrap(),
        ));
        // SAFETY: the mapping is page aligned and never given back; no frame was handed out yet.
        let region = unsafe {
            let region = Region::new(memory.start(), memory.bytes());
            region.format();
            region
        };
        (memory, region)
    }

    fn log(memory: &Mapping) -> Vec<(u32, u64)> {
        // SAFETY: the frame is finished, no other code uses the region, and the slice ends with this call.
        let bytes = unsafe { std::slice::from_raw_parts(memory.start(), memory.bytes()) };
        let frame = wire::frames(bytes)
            .find(|frame| frame.name == "access-log")
            .unwrap();
        frame
            .bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|entry| {
                let entry = u64::from_le_bytes(*entry);
                (
                    number::narrow(entry >> LATENCY_BITS),
                    entry & MAX_LATENCY_NS,
                )
            })
            .collect()
    }

    #[test]
    fn every_access_is_counted_logged_and_in_the_histogram() {
        let workload = Mapping::anonymous(Pages(64)).unwrap();
        let (memory, region) = region(1 << 20);
        for amount in [Amount::Word, Amount::Page] {
            // SAFETY: the recorder of the previous round was dropped, and its frame with it.
            unsafe { region.format() };
            let touch = Touch::mapping(&workload, amount, Offset::Spread);
            let mut recorder = Recorder::without_log().unwrap();
            recorder.log_to(&region, "access-log", 640);
            let batch: Vec<u32> = (0..64).rev().map(|page| page | WRITE).collect();
            for _ in 0..10 {
                recorder.touch(Clock::Monotonic, &touch, &batch);
            }
            assert_eq!(recorder.finish(), None);
            let entries = log(memory);
            assert_eq!(entries.len(), 640);
            assert!(
                entries
                    .iter()
                    .zip((0..64).rev().cycle())
                    .all(|((page, _), wanted)| *page == wanted)
            );
            let histogram = recorder.histogram();
            assert_eq!(histogram.count, 640);
            assert_eq!(
                histogram.sum,
                entries.iter().map(|(_, nanos)| nanos).sum::<u64>()
            );
        }
    }

    #[test]
    fn a_log_that_does_not_fit_is_cut_and_says_so() {
        let workload = Mapping::anonymous(Pages(8)).unwrap();
        let (memory, region) = region(4 * 4096);
        let touch = Touch::mapping(&workload, Amount::Word, Offset::At(64));
        let mut recorder = Recorder::without_log().unwrap();
        recorder.log_to(&region, "access-log", 5000);
        recorder.touch(Clock::Monotonic, &touch, &[3; 1000]);
        recorder.touch(Clock::Monotonic, &touch, &[4; 1000]);
        let warning = recorder.finish().unwrap();
        let kept = log(memory).len() as u64;
        assert_eq!(warning, Warning::LogCut { kept, total: 2000 });
        assert_eq!(recorder.histogram().count, 2000);
    }

    #[test]
    fn written_pages_hold_the_reference_and_never_zero() {
        let workload = Mapping::anonymous(Pages(512)).unwrap();
        let touch = Touch::mapping(&workload, Amount::Word, Offset::Spread);
        let mut recorder = Recorder::without_log().unwrap();
        let batch: Vec<u32> = (0..512).map(|page| page | WRITE).collect();
        recorder.touch(Clock::Monotonic, &touch, &batch);
        let mut lines = [0; 64];
        for page in 0..512 {
            let word = touch.word(page);
            // SAFETY: the word lies within the mapping.
            assert_eq!(unsafe { word.read() }, u64::from(page | WRITE));
            lines[word.addr() % PAGE / 64] += 1;
        }
        assert!(
            lines.iter().all(|count| (4..=12).contains(count)),
            "cache lines are used evenly: {lines:?}"
        );
    }

    #[test]
    fn writes_to_pages_of_a_mixture_leave_them_as_they_were() {
        let filler = Filler::new(&Content::read("compiler").unwrap(), 3).unwrap();
        let workload = Mapping::anonymous(Pages(256)).unwrap();
        let batch: Vec<u32> = (0..256).map(|page| page | WRITE).collect();
        // SAFETY: the mapping has that many bytes, and nothing writes to them while the copy is made.
        let copy = || unsafe {
            std::slice::from_raw_parts(workload.start().cast_const(), workload.bytes()).to_vec()
        };
        let mut recorder = Recorder::without_log().unwrap();
        recorder.write_content(&filler);
        for (amount, offset) in [
            (Amount::Word, Offset::At(0)),
            (Amount::Word, Offset::Spread),
            (Amount::Page, Offset::At(0)),
        ] {
            workload.fill(&filler, 0, 256);
            let before = copy();
            let touch = Touch::mapping(&workload, amount, offset);
            recorder.touch(Clock::Monotonic, &touch, &batch);
            recorder.touch(Clock::Monotonic, &touch, &[7, 7 | WRITE, 9, 8 | WRITE]);
            assert!(copy() == before, "{amount:?} {offset:?}");
        }
        // Writes of whole pages give pages their content even if the pages were not filled before.
        let empty = Mapping::anonymous(Pages(256)).unwrap();
        let touch = Touch::mapping(&empty, Amount::Page, Offset::At(0));
        recorder.touch(Clock::Monotonic, &touch, &batch);
        // SAFETY: both mappings have that many bytes, and nothing writes to them.
        let same = unsafe {
            std::slice::from_raw_parts(empty.start().cast_const(), empty.bytes()) == copy()
        };
        assert!(same);
    }

    proptest! {
        #[test]
        fn quantiles_of_a_full_log_are_exact(latencies in proptest::collection::vec(0_u64..5_000_000, 1..300), q in 0.0_f64..1.0) {
            let (_memory, region) = region(1 << 16);
            let mut recorder = Recorder::without_log().unwrap();
            recorder.log_to(&region, "access-log", latencies.len() as u64);
            for (at, latency) in latencies.iter().enumerate() {
                let entry = recorder.log.as_mut().unwrap();
                entry.body()[at * 8..at * 8 + 8].copy_from_slice(&(7 << LATENCY_BITS | latency).to_le_bytes());
                recorder.dense[Histogram::index(*latency) as usize] += 1;
                recorder.count += 1;
                recorder.kept += 1;
                recorder.max = recorder.max.max(*latency);
            }
            let mut sorted = latencies;
            sorted.sort_unstable();
            let rank = (q * sorted.len() as f64).ceil().max(1.0);
            let expected = sorted[number::index(number::floor(rank)) - 1];
            prop_assert_eq!(recorder.quantile(q), expected);
        }
    }
}
