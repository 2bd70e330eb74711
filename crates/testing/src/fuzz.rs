//! Fuzzing with a fixed budget: passes randomly changed inputs of a small corpus to a reader. The random seed is fixed.
//!
//! A reader must not panic, hang or allocate memory without bound. An error must be one line. The budget per target is
//! a time (`PAGETIDE_FUZZ_SECONDS`, default half a second) and, by default, 500 inputs, so that all targets together take a few
//! seconds within `make check`. `make test-all` gives each target 2 s.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of inputs per target if `PAGETIDE_FUZZ_SECONDS` is not set.
const MAX_INPUTS: u64 = 500;
/// Lock held while a target runs. Only one runs at a time, because peak memory is measured for the whole process.
static ALONE: Mutex<()> = Mutex::new(());
/// Time limit of a reader for one input.
const LONGEST: Duration = Duration::from_secs(10);
/// Maximum amount by which the process's peak memory may grow, in KiB.
const MAX_MEMORY_KIB: u64 = 1 << 20;

/// Random number generator with a fixed seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a random number below `bound`; 0 if `bound` is 0.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }
}

/// Returns the peak resident memory of this process (`VmHWM`), in KiB; 0 if it cannot be read.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Numbers that parsers often handle wrongly.
const EXTREMES: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

/// Changes an input at one random position. Some changes use bytes of the input `other`.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(input.len());
    let length = 1 + random.below(64);
    let end = (at + length).min(input.len());
    match random.below(8) {
        0 | 1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => input.truncate(at),
        3 => drop(input.drain(at..end)),
        4 => {
            let again = input[at..end].to_vec();
            input.splice(at..at, again);
        }
        5 => {
            let from = random.below(other.len());
            let piece = &other[from..(from + length).min(other.len())];
            input.splice(at..end, piece.iter().copied());
        }
        6 => {
            let extreme = EXTREMES[random.below(EXTREMES.len())].to_le_bytes();
            let width = 1 << random.below(4);
            for (place, byte) in input.iter_mut().skip(at).zip(&extreme[..width]) {
                *place = *byte;
            }
        }
        _ => {
            let mut digits = String::new();
            let _ = write!(digits, "{}", EXTREMES[random.below(EXTREMES.len())]);
            input.splice(at..at, digits.into_bytes());
        }
    }
}

/// Passes changed inputs to a reader until the budget is used up. Returns the number of inputs tried, and the number of
/// those refused with an error.
///
/// # Panics
/// If the reader panics, exceeds the limits of time or memory, or returns an error that is not one line.
pub fn fuzz(
    target: &str,
    corpus: &[Vec<u8>],
    mut read: impl FnMut(&[u8]) -> Result<(), String>,
) -> (u64, u64) {
    let seconds = std::env::var("PAGETIDE_FUZZ_SECONDS").ok();
    // Without `PAGETIDE_FUZZ_SECONDS` the number of inputs is fixed, so that a run is the same on every machine that is
    // fast enough.
    let most = if seconds.is_some() {
        u64::MAX
    } else {
        MAX_INPUTS
    };
    let seconds = seconds.and_then(|text| text.parse().ok());
    let budget = seconds.map_or(Duration::from_millis(500), Duration::from_secs);
    let seed = target.bytes().fold(1_u64, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    });
    let mut random = Random(seed);
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (began, before) = (Instant::now(), peak());
    let (mut tried, mut refused) = (0, 0);
    while began.elapsed() < budget && tried < most {
        let mut input = corpus[random.below(corpus.len())].clone();
        let other = corpus[random.below(corpus.len())].clone();
        // The first four inputs are unchanged ones of the corpus.
        let changes = if tried < 4 { 0 } else { 1 + random.below(4) };
        for _ in 0..changes {
            change(&mut input, &other, &mut random);
        }
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| read(&input)));
        let took = start.elapsed();
        let shown = || -> String { input.escape_ascii().take(4000).map(char::from).collect() };
        let Ok(result) = result else {
            panic!(
                "{target}: input {tried} makes the reader panic: {}",
                shown()
            );
        };
        assert!(
            took < LONGEST,
            "{target}: input {tried} took {took:?}: {}",
            shown()
        );
        let grown = peak().saturating_sub(before);
        assert!(
            grown < MAX_MEMORY_KIB,
            "{target}: input {tried} took {grown} KiB: {}",
            shown()
        );
        if let Err(said) = result {
            refused += 1;
            assert!(
                said.len() > 3 && said.trim().lines().count() == 1,
                "{target}: input {tried} is refused with {said:?}: {}",
                shown()
            );
        }
        tried += 1;
    }
    println!("{target}: {tried} inputs, {refused} refused");
    (tried, refused)
}
