//! Generates page content of a given compressibility, cheaply and never all zeros.
//!
//! A page begins with one repeated word, which compresses to almost nothing, followed by random bytes, which do not
//! compress; the fraction of random bytes determines the compressed size. (In the opposite order, fast compressors
//! would skip too far: they take growing steps through incompressible data and would miss the start of the repeated
//! part.) Random bytes come from a small locked pool at an offset that depends on the page. So generating a page is a
//! copy, and no two pages are equal.

// Pages have a larger alignment than any word.
#![allow(clippy::cast_ptr_alignment)]

use pagetide_reference::Rng;

use crate::error::{ScenarioError, Stop};
use crate::form::Form;
use crate::harness::LockedBuffer;
use crate::number;
use crate::page::PAGE;

/// Number of words in the pool: 32 KiB.
const POOL_WORDS: usize = 4096;
/// Number of words in a page.
const PAGE_WORDS: usize = PAGE / 8;

/// Approximate compressed size of the repeated part, as a fraction of a page (lz4 and lzo-rle write one byte per 255).
const REPEATED_SHARE: f64 = 0.008;

/// Generates the content of pages.
pub(crate) struct Filler {
    pool: LockedBuffer<u64>,
    random: usize,
    salt: u64,
}

impl Filler {
    /// Creates a filler whose pages compress to the fraction `content` of their size. If `content` is 0, pages are all
    /// zeros.
    pub(crate) fn new(content: f64, seed: u64) -> Result<Self, Stop> {
        let mut rng = Rng::stream(seed, "page content");
        let mut pool = LockedBuffer::new(POOL_WORDS)?;
        for word in pool.iter_mut() {
            *word = rng.next_u64();
        }
        Ok(Self {
            random: random_words(content),
            pool,
            salt: if content > 0.0 { rng.next_u64() | 1 } else { 0 },
        })
    }

    /// Fills the page at `at`, which is page number `page` of the workload.
    ///
    /// # Safety
    /// `at` must be the start of a page of writable memory to which no other reference exists.
    pub(crate) unsafe fn page(&self, at: *mut u8, page: u64) {
        let at = at.cast::<u64>();
        // An odd multiplier permutes the numbers below 2^64, so the words of different pages differ. The lowest bit is
        // set, so that no word is zero.
        let word = page
            .wrapping_add(1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_mul(self.salt)
            | (self.salt & 1);
        let from = number::index(word >> 40) % (POOL_WORDS - PAGE_WORDS);
        let repeated = PAGE_WORDS - self.random;
        for i in 0..repeated {
            // SAFETY: `i` is below the number of words in a page, all of which the caller lets us write.
            unsafe { at.add(i).write_unaligned(word) };
        }
        for (i, random) in (repeated..).zip(&self.pool[from..from + self.random]) {
            // Mixing in the page's word makes pages differ even if they use the same part of the pool.
            // SAFETY: `repeated` and `self.random` are together a page's words, all of which the caller lets us write.
            unsafe { at.add(i).write_unaligned(random ^ word) };
        }
    }

    /// Writes the content of page number `page` to `buffer`. Panics if the buffer is smaller than a page.
    pub(crate) fn write(&self, buffer: &mut [u8], page: u64) {
        assert!(buffer.len() >= PAGE, "a page needs {PAGE} bytes");
        // SAFETY: the buffer is at least a page long and borrowed exclusively.
        unsafe { self.page(buffer.as_mut_ptr(), page) };
    }
}

/// Fails for a compressibility that cannot be generated.
pub(crate) fn check_content(name: &str, content: f64, form: Form) -> Result<(), ScenarioError> {
    let zeros = content == 0.0 && form == Form::AsWritten;
    // zram stores a page uncompressed if it compresses to more than about four fifths.
    if zeros || (0.05..=0.75).contains(&content) || content.to_bits() == 1.0_f64.to_bits() {
        return Ok(());
    }
    Err(ScenarioError::OutOfBounds {
        scenario: name.to_owned(),
        parameter: "content",
        value: content.to_string(),
        bounds: "a number from 0.05 to 0.75, or 1 (pages of zeros never reach a device)".to_owned(),
    })
}

/// Returns the number of random words in a page that compresses to the fraction `content`.
fn random_words(content: f64) -> usize {
    let share = ((content - REPEATED_SHARE) / (1.0 - REPEATED_SHARE)).clamp(0.0, 1.0);
    number::index(number::floor(share * PAGE_WORDS as f64 + 0.5)).min(PAGE_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content: f64, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; PAGE];
        Filler::new(content, 1).unwrap().write(&mut bytes, number);
        bytes
    }

    #[test]
    fn pages_compress_to_the_share_that_was_asked_for() {
        for content in [0.1, 0.25, 0.35, 0.5, 0.75, 1.0] {
            let mut sum = 0;
            for number in 0..64 {
                sum += lz4_flex::block::compress(&page(content, number)).len();
            }
            let found = sum as f64 / (64.0 * PAGE as f64);
            assert!((found / content - 1.0).abs() < 0.1, "{content}: {found}");
        }
    }

    /// An idle zram device with this compression algorithm, reset on drop.
    struct Zram(&'static str);

    impl Zram {
        fn new(algorithm: &str) -> Option<Self> {
            let zram = Self("/sys/block/zram0");
            let idle = zram
                .read("initstate")
                .is_some_and(|state| state.trim() == "0");
            if !idle {
                // Another program uses the device, so it must not be reset.
                std::mem::forget(zram);
                return None;
            }
            zram.write("comp_algorithm", algorithm)?;
            zram.write("disksize", "16M")?;
            Some(zram)
        }

        fn read(&self, file: &str) -> Option<String> {
            std::fs::read_to_string(format!("{}/{file}", self.0)).ok()
        }

        fn write(&self, file: &str, text: &str) -> Option<()> {
            std::fs::write(format!("{}/{file}", self.0), text).ok()
        }
    }

    impl Drop for Zram {
        fn drop(&mut self) {
            let _ = self.write("reset", "1");
        }
    }

    #[test]
    fn root_pages_compress_on_zram_to_the_share_that_was_asked_for() {
        use std::io::Write;
        let mut worst = 0.0_f64;
        for algorithm in ["lzo-rle", "lz4", "zstd"] {
            for content in [0.1, 0.35, 0.5, 0.75] {
                let Some(zram) = Zram::new(algorithm) else {
                    pagetide_testing::skip(
                        pagetide_testing::Need::Swap,
                        format!("no idle zram device with {algorithm}"),
                    );
                    continue;
                };
                let mut device = std::fs::File::options()
                    .write(true)
                    .open("/dev/zram0")
                    .unwrap();
                let filler = Filler::new(content, 3).unwrap();
                let mut bytes = [0; PAGE];
                for number in 0..2048 {
                    filler.write(&mut bytes, number);
                    device.write_all(&bytes).unwrap();
                }
                device.sync_all().unwrap();
                drop(device);
                let stat = zram.read("mm_stat").unwrap();
                let sizes: Vec<f64> = stat
                    .split_whitespace()
                    .map(|word| word.parse().unwrap())
                    .collect();
                let found = sizes[1] / sizes[0];
                println!("{algorithm}: {content} asked, {found:.4} stored");
                worst = worst.max((found / content - 1.0).abs());
            }
        }
        assert!(worst < 0.1, "{worst}");
    }

    #[test]
    fn no_two_pages_are_alike_and_none_has_a_word_of_zero() {
        let filler = Filler::new(0.35, 9).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let mut bytes = vec![0; PAGE];
        for number in 0..5000 {
            filler.write(&mut bytes, number);
            assert!(
                bytes.chunks_exact(8).all(|word| word != [0; 8]),
                "page {number}"
            );
            assert!(seen.insert(bytes.clone()), "page {number}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_pages_and_content_zero_gives_zeros() {
        assert_eq!(page(0.5, 3), page(0.5, 3));
        assert_eq!(page(0.0, 3), vec![0; PAGE]);
    }
}
