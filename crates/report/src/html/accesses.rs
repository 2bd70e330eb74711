//! Packs the latencies of all accesses of a trial so that the HTML page can show each access and is still small enough
//! to be mailed.
//!
//! The overview holds, for each block of accesses, a log-linear histogram of their latencies with exact minimum and
//! maximum. The latencies of all accesses are in chunks that the HTML page unpacks when they are viewed. In a chunk,
//! each access takes one byte; values that are not among the most frequent ones follow in full. If the file would still
//! be too large, latencies keep only their leading bits, and the HTML page states this.

use std::collections::HashMap;
use std::io::{self, Read};

use super::blob::{Blobs, deflate, planes, varint, zigzag};
use super::data::AccessLog;
use super::states::{Faults, Sorter};

/// Number of accesses in a chunk.
pub(crate) const CHUNK: usize = 1 << 16;
/// Maximum number of blocks in an overview.
const BLOCKS: u64 = 2048;
/// Minimum number of accesses in a block, except in the last one.
const BLOCK: u64 = 256;
/// Number of low bits of a log entry that hold the latency of the access in nanoseconds; the bits above hold the number
/// of the page.
pub(crate) const TIME_BITS: u32 = 36;
/// Marks an access whose time is not among its chunk's frequent values.
const OTHER: u8 = 255;
/// Numbers of significant bits kept for a time, tried in this order; 0 keeps all bits.
const PRECISIONS: [u32; 5] = [0, 9, 7, 6, 5];
/// One of this many chunks is packed to estimate the total size.
const SAMPLE: u64 = 16;

/// Returns the bin of a time in the overview: the time itself below 8, then eight bins for each power of two, at most
/// 255.
pub(crate) fn bin(nanos: u64) -> u8 {
    if nanos < 8 {
        return nanos.to_le_bytes()[0];
    }
    let exponent = nanos.ilog2();
    let within = (nanos >> (exponent - 3)) & 7;
    u8::try_from(8 + u64::from(exponent - 3) * 8 + within).unwrap_or(u8::MAX)
}

/// Returns a time reduced to its `bits` leading bits: the middle of the range that these bits stand for. The time is
/// unchanged if it has no more bits, or if `bits` is 0.
pub(crate) fn rounded(nanos: u64, bits: u32) -> u64 {
    let length = 64 - nanos.leading_zeros();
    if bits == 0 || length <= bits {
        return nanos;
    }
    let cut = length - bits;
    ((nanos >> cut) << cut) + (1 << (cut - 1))
}

/// Limits for the data of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Maximum number of deflated bytes for each access.
    pub for_each: f64,
    /// Maximum number of accesses whose page number is kept.
    pub pages: u64,
}

/// Reads a log of `entries` accesses twice, chunk by chunk, and writes its blobs; `open` starts a new reading. If
/// `faults` is given and fits the log ([`Sorter::new`]), the result includes the thresholds for the state of an access.
pub(crate) fn pack(
    entries: u64,
    room: Room,
    faults: Option<Faults>,
    blobs: &mut Blobs<'_>,
    open: impl Fn() -> io::Result<Box<dyn Read>>,
) -> io::Result<AccessLog> {
    let block = entries.div_ceil(BLOCKS).max(BLOCK).next_power_of_two();
    let stride = entries.div_ceil(room.pages.max(1)).max(1);
    let mut look = Overview::new(block);
    let mut states = faults.and_then(|faults| Sorter::new(faults, entries));
    each_chunk(open()?, |chunk| {
        if let Some(states) = &mut states {
            states.add(chunk.iter().map(|entry| time(*entry)));
        }
        look.add(chunk)
    })?;
    if !look.n.is_multiple_of(block) {
        look.end_block();
    }
    let bits = look.choose(room.for_each);
    let mut trace = AccessLog {
        n: look.n,
        bits,
        min: look.min.min(look.max),
        max: look.max,
        range: look.range,
        block,
        overview: blobs.put(&look.finish())?,
        chunk: CHUNK as u64,
        stride,
        states: states.map(Sorter::states),
        ..AccessLog::default()
    };
    let mut pages: Vec<u64> = Vec::new();
    let mut at = 0_u64;
    let mut times = Vec::with_capacity(CHUNK);
    each_chunk(open()?, |chunk| {
        times.clear();
        times.extend(chunk.iter().map(|entry| rounded(time(*entry), bits)));
        trace.times.push(blobs.put(&coded(&times))?);
        for entry in chunk {
            if at.is_multiple_of(stride) {
                pages.push(entry >> TIME_BITS);
                if pages.len() == CHUNK {
                    trace.pages.push(blobs.put(&places(&pages))?);
                    pages.clear();
                }
            }
            at += 1;
        }
        Ok(())
    })?;
    if !pages.is_empty() {
        trace.pages.push(blobs.put(&places(&pages))?);
    }
    Ok(trace)
}

const fn time(entry: u64) -> u64 {
    entry & ((1 << TIME_BITS) - 1)
}

/// Calls `work` for one chunk after the other.
fn each_chunk(
    mut source: Box<dyn Read>,
    mut work: impl FnMut(&[u64]) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = vec![0_u8; CHUNK * 8];
    let mut entries = Vec::with_capacity(CHUNK);
    loop {
        let mut filled = 0;
        while filled < bytes.len() {
            match source.read(&mut bytes[filled..])? {
                0 => break,
                n => filled += n,
            }
        }
        entries.clear();
        let (words, _) = bytes[..filled].as_chunks::<8>();
        entries.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        if entries.is_empty() {
            return Ok(());
        }
        work(&entries)?;
        if filled < bytes.len() {
            return Ok(());
        }
    }
}

/// What the first reading of a log yields: the overview, the ranges of times and pages, and packed sizes of a sample of
/// chunks.
struct Overview {
    block: u64,
    n: u64,
    min: u64,
    max: u64,
    range: u64,
    chunks: u64,
    sampled: u64,
    packed: [u64; PRECISIONS.len()],
    counts: [u32; 256],
    ends: (u64, u64),
    /// Number of bins in each block; 0 means 256.
    sizes: Vec<u8>,
    /// Indices of the bins that are not empty, of all blocks.
    bins: Vec<u8>,
    /// Minimum, maximum minus minimum, and bin counts of each block, as LEB128.
    numbers: Vec<u8>,
}

impl Overview {
    fn new(block: u64) -> Self {
        Self {
            block,
            n: 0,
            min: u64::MAX,
            max: 0,
            range: 0,
            chunks: 0,
            sampled: 0,
            packed: [0; PRECISIONS.len()],
            counts: [0; 256],
            ends: (u64::MAX, 0),
            sizes: Vec::new(),
            bins: Vec::new(),
            numbers: Vec::new(),
        }
    }

    fn add(&mut self, chunk: &[u64]) -> io::Result<()> {
        if self.chunks.is_multiple_of(SAMPLE) {
            self.sampled += chunk.len() as u64;
            for (packed, bits) in self.packed.iter_mut().zip(PRECISIONS) {
                let times: Vec<u64> = chunk.iter().map(|e| rounded(time(*e), bits)).collect();
                *packed += deflate(&coded(&times))?.len() as u64;
            }
        }
        self.chunks += 1;
        for entry in chunk {
            let nanos = time(*entry);
            self.range = self.range.max((entry >> TIME_BITS) + 1);
            self.counts[usize::from(bin(nanos))] += 1;
            self.ends = (self.ends.0.min(nanos), self.ends.1.max(nanos));
            self.n += 1;
            if self.n.is_multiple_of(self.block) {
                self.end_block();
            }
        }
        Ok(())
    }

    fn end_block(&mut self) {
        self.min = self.min.min(self.ends.0);
        self.max = self.max.max(self.ends.1);
        varint(&mut self.numbers, self.ends.0);
        varint(&mut self.numbers, self.ends.1 - self.ends.0);
        let mut size = 0_u8;
        for (bin, count) in (0_u8..=255).zip(&mut self.counts) {
            if *count > 0 {
                size = size.wrapping_add(1);
                self.bins.push(bin);
                varint(&mut self.numbers, u64::from(*count));
                *count = 0;
            }
        }
        self.sizes.push(size);
        self.ends = (u64::MAX, 0);
    }

    /// Encodes the overview: the number of blocks as LEB128, a byte with the number of bins for each block, the bin
    /// indices of all blocks, then for each block its minimum, maximum minus minimum, and counts as LEB128.
    fn finish(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.sizes.len() + self.bins.len() + self.numbers.len());
        varint(&mut out, self.sizes.len() as u64);
        out.extend_from_slice(&self.sizes);
        out.extend_from_slice(&self.bins);
        out.extend_from_slice(&self.numbers);
        out
    }

    /// Returns the highest of [`PRECISIONS`] with which an access of the sampled chunks takes at most `for_each` bytes
    /// on average; the lowest if there is none.
    fn choose(&self, for_each: f64) -> u32 {
        let sampled = self.sampled.max(1) as f64;
        self.packed
            .iter()
            .zip(PRECISIONS)
            .find(|(packed, _)| **packed as f64 / sampled <= for_each)
            .map_or(PRECISIONS[PRECISIONS.len() - 1], |(_, bits)| bits)
    }
}

/// Encodes the times of a chunk: the number of frequent values (those that occur at least twice, at most 255), the
/// frequent values in ascending order as differences (both LEB128), a byte for each access (its value's index, or 255
/// for a value that is not frequent), and all other values in five byte planes.
fn coded(times: &[u64]) -> Vec<u8> {
    let mut counts: HashMap<u64, u32> = HashMap::new();
    for nanos in times {
        *counts.entry(*nanos).or_default() += 1;
    }
    let mut frequent: Vec<(u32, u64)> = counts
        .iter()
        .filter(|(_, count)| **count > 1)
        .map(|(nanos, count)| (*count, *nanos))
        .collect();
    frequent.sort_unstable_by(|a, b| b.cmp(a));
    frequent.truncate(usize::from(OTHER));
    let mut values: Vec<u64> = frequent.into_iter().map(|(_, nanos)| nanos).collect();
    values.sort_unstable();
    let codes: HashMap<u64, u8> = values.iter().copied().zip(0_u8..).collect();
    let mut out = Vec::with_capacity(times.len() + 1024);
    varint(&mut out, values.len() as u64);
    let mut before = 0;
    for value in &values {
        varint(&mut out, value - before);
        before = *value;
    }
    let mut others = Vec::new();
    for nanos in times {
        let code = codes.get(nanos).copied().unwrap_or(OTHER);
        if code == OTHER {
            others.push(*nanos);
        }
        out.push(code);
    }
    planes(&mut out, &others, 5);
    out
}

/// Encodes page numbers as differences to the one before (zigzag), in four byte planes.
fn places(pages: &[u64]) -> Vec<u8> {
    let mut before = 0_i64;
    let values: Vec<u64> = pages
        .iter()
        .map(|page| {
            let page = i64::try_from(*page).unwrap_or(0);
            let step = page - before;
            before = page;
            zigzag(step)
        })
        .collect();
    let mut out = Vec::with_capacity(values.len() * 4);
    planes(&mut out, &values, 4);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_grow_with_time_and_are_an_eighth_of_a_doubling_wide() {
        let mut before = 0;
        for nanos in (0..100_000).chain((1..30).map(|power| 100_000 << power)) {
            assert!(bin(nanos) >= before, "{nanos}");
            before = bin(nanos);
        }
        assert_eq!(
            (bin(7), bin(8), bin(9), bin(15), bin(16)),
            (7, 8, 9, 15, 16)
        );
        assert_eq!(bin(1 << 35), u8::MAX);
    }

    #[test]
    fn rounding_stays_within_half_of_the_bits_that_are_left() {
        for bits in [5_u32, 6, 7, 9] {
            for nanos in (0..5_000).chain([80_123, 3_000_017, 1 << 35]) {
                let error = rounded(nanos, bits).abs_diff(nanos);
                assert!(
                    error << bits <= nanos,
                    "{nanos} with {bits} bits is off by {error}"
                );
            }
        }
        assert_eq!(rounded(80_123, 0), 80_123);
    }

    fn packed(entries: &[u64], for_each: f64, pages: u64) -> (AccessLog, Vec<u8>) {
        let bytes: Vec<u8> = entries
            .iter()
            .flat_map(|entry| entry.to_le_bytes())
            .collect();
        let mut out = Vec::new();
        let mut blobs = Blobs::new(&mut out);
        let room = Room { for_each, pages };
        let open = || -> io::Result<Box<dyn Read>> { Ok(Box::new(io::Cursor::new(bytes.clone()))) };
        let trace = pack(entries.len() as u64, room, None, &mut blobs, open).unwrap();
        (trace, out)
    }

    #[test]
    fn a_trace_keeps_exact_times_if_they_fit_and_states_when_they_do_not() {
        // Values from SplitMix64. Multiples of a constant would be too regular: they would fit any limit exactly.
        let noise = |at: u64| {
            let mut word = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        };
        let entries: Vec<u64> = (0..150_000_u64)
            .map(|at| (at % 5000) << TIME_BITS | (noise(at) >> 46))
            .collect();
        let (exact, file) = packed(&entries, 8.0, 1 << 20);
        assert_eq!(
            (exact.n, exact.bits, exact.stride, exact.range),
            (150_000, 0, 1, 5000)
        );
        assert_eq!((exact.times.len(), exact.pages.len()), (3, 3));
        let (coarse, smaller) = packed(&entries, 0.9, 1000);
        assert!(coarse.bits > 0 && smaller.len() < file.len() / 2);
        assert_eq!(coarse.stride, 150);
        assert_eq!((coarse.min, coarse.max), (exact.min, exact.max));
    }

    #[test]
    fn equal_references_are_written_once() {
        let entries: Vec<u64> = (0..1000_u64).map(|at| (at << TIME_BITS) + 12).collect();
        let mut out = Vec::new();
        let mut blobs = Blobs::new(&mut out);
        let bytes: Vec<u8> = entries
            .iter()
            .flat_map(|entry| entry.to_le_bytes())
            .collect();
        let room = Room {
            for_each: 8.0,
            pages: 1000,
        };
        let open = || -> io::Result<Box<dyn Read>> { Ok(Box::new(io::Cursor::new(bytes.clone()))) };
        let first = pack(1000, room, None, &mut blobs, open).unwrap();
        let second = pack(1000, room, None, &mut blobs, open).unwrap();
        assert_eq!(first.pages, second.pages);
        assert_eq!(first.times, second.times);
    }
}
