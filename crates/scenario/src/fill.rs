//! Generates the content of pages, cheaply: a page is a copy from a small locked pool that is made before the trial.
//!
//! A page of a given compressibility begins with one repeated word, which compresses to almost nothing, followed by
//! random bytes, which do not compress; the fraction of random bytes determines the compressed size. (In the opposite
//! order, fast compressors would skip too far: they take growing steps through incompressible data and would miss the
//! start of the repeated part.) Random bytes come from the pool at an offset that depends on the page. If the fraction
//! is not 0, no two pages are equal, and none is all zeros.
//!
//! A page of a [`Mixture`](crate::content::Mixture) belongs to one of the mixture's classes. The pool contains bytes of
//! each class's shape, and a page is a copy of a part of these bytes. The page's number determines the class and the
//! part. In any run of consecutive pages, the classes have nearly the same shares as in the whole mixture. Two pages
//! are equal only if both are all zeros.

// Pages have a larger alignment than any word.
#![allow(clippy::cast_ptr_alignment)]

use pagetide_reference::Rng;

use crate::content::{Class, Content, MAX_CLASSES, named, names};
use crate::error::{ScenarioError, Stop};
use crate::expr::Names;
use crate::form::Form;
use crate::harness::LockedBuffer;
use crate::number;
use crate::page::PAGE;

/// Number of random words in the pool: 32 KiB.
const POOL_WORDS: usize = 4096;
/// Number of words of the pool for each class of a mixture: 16 KiB.
const CLASS_WORDS: usize = 2048;
/// Number of words in a page.
const PAGE_WORDS: usize = PAGE / 8;
/// An odd number near 2^64 divided by the golden ratio. Its multiples modulo 2^64 are spread evenly over all 64-bit
/// numbers, and consecutive multiples are far apart.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Approximate compressed size of the repeated part, as a fraction of a page (lz4 and lzo-rle write one byte per 255).
const REPEATED_SHARE: f64 = 0.008;

/// Generates the content of pages.
pub(crate) struct Filler {
    pool: LockedBuffer<u64>,
    layout: Layout,
    salt: u64,
}

/// How pages are made from the pool.
enum Layout {
    /// A page consists of one repeated word, followed by this number of random words.
    Random(usize),
    /// A page belongs to one of the classes, and each class has its own part of the pool.
    Classes {
        /// Upper bound of each class in the cumulative shares of all pages, in units of 1 / 2^16. Unused elements are
        /// 2^16.
        bounds: [u64; MAX_CLASSES],
        /// True for classes whose pages are all zeros.
        is_zero: [bool; MAX_CLASSES],
        /// Offset, chosen by the seed, that is added to the position of a page before the position is compared with the
        /// bounds.
        from: u64,
    },
}

impl Filler {
    /// Creates a filler for this content. For a mixture, `seed` changes the bytes but not the shares of the classes.
    pub(crate) fn new(content: &Content, seed: u64) -> Result<Self, Stop> {
        let classes = match content {
            Content::Share(share) => return Self::of_share(*share, seed),
            Content::Zeros(zeros) => &[Class::zeros(*zeros), Class::random(1000 - *zeros)][..],
            Content::Like(mixture) => mixture.classes,
        };
        let mut rng = Rng::stream(seed, "page classes");
        let mut pool = LockedBuffer::new(CLASS_WORDS * classes.len())?;
        let mut bounds = [1 << 16; MAX_CLASSES];
        let mut is_zero = [false; MAX_CLASSES];
        let mut below = 0;
        for (at, class) in classes.iter().enumerate().take(MAX_CLASSES) {
            below += u64::from(class.pages);
            bounds[at] = (below << 16) / 1000;
            is_zero[at] = class.shape.is_zero();
            let mut bytes = [0; CLASS_WORDS * 8];
            class.shape.fill(&mut bytes, &mut rng);
            let words = &mut pool[at * CLASS_WORDS..(at + 1) * CLASS_WORDS];
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        Ok(Self {
            pool,
            layout: Layout::Classes {
                bounds,
                is_zero,
                from: rng.next_u64(),
            },
            salt: rng.next_u64() | 1,
        })
    }

    /// Creates a filler whose pages compress to the fraction `content` of their size. If `content` is 0, pages are all
    /// zeros.
    fn of_share(content: f64, seed: u64) -> Result<Self, Stop> {
        let mut rng = Rng::stream(seed, "page content");
        let mut pool = LockedBuffer::new(POOL_WORDS)?;
        for word in pool.iter_mut() {
            *word = rng.next_u64();
        }
        Ok(Self {
            layout: Layout::Random(random_words(content)),
            pool,
            salt: if content > 0.0 { rng.next_u64() | 1 } else { 0 },
        })
    }

    /// Returns true if pages compress differently. A write must then store the same content again, so that the page
    /// compresses as before.
    pub(crate) fn is_mixture(&self) -> bool {
        matches!(self.layout, Layout::Classes { .. })
    }

    /// Fills the page at `at`, which is page number `page` of the workload.
    ///
    /// # Safety
    /// `at` must be the start of a page of writable memory to which no other reference exists.
    pub(crate) unsafe fn page(&self, at: *mut u8, page: u64) {
        let at = at.cast::<u64>();
        let word = self.stamp(page);
        let Layout::Random(random) = self.layout else {
            let (from, stamp) = self.of_class(page, word);
            let source = &self.pool[from..from + PAGE_WORDS];
            // SAFETY: the source is a page long and lies in the pool, so it does not overlap the page that the caller
            // lets us write.
            unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), at, PAGE_WORDS) };
            if let Some(stamp) = stamp {
                // SAFETY: this is the first word of the page, which the caller lets us write.
                unsafe { at.write_unaligned(stamp) };
            }
            return;
        };
        let from = number::index(word >> 40) % (POOL_WORDS - PAGE_WORDS);
        let repeated = PAGE_WORDS - random;
        for i in 0..repeated {
            // SAFETY: `i` is below the number of words in a page, all of which the caller lets us write.
            unsafe { at.add(i).write_unaligned(word) };
        }
        for (i, random) in (repeated..).zip(&self.pool[from..from + random]) {
            // Mixing in the page's word makes pages differ even if they use the same part of the pool.
            // SAFETY: `repeated` and the number of random words are together a page's words, all of which we may write.
            unsafe { at.add(i).write_unaligned(random ^ word) };
        }
    }

    /// Returns a word that depends on the page's number. The word is 0 only if the content is pages of zeros.
    fn stamp(&self, page: u64) -> u64 {
        // An odd multiplier permutes the numbers below 2^64. The lowest bit is set, so that no word is zero. So at most
        // two pages have the same word.
        page.wrapping_add(1)
            .wrapping_mul(GOLDEN)
            .wrapping_mul(self.salt)
            | (self.salt & 1)
    }

    /// For a page of a mixture, returns the index in the pool at which the content of the page begins, and a word that
    /// replaces the first word. The second is `None` if no word is replaced. `word` is the stamp of the page.
    fn of_class(&self, page: u64, word: u64) -> (usize, Option<u64>) {
        let Layout::Classes {
            bounds,
            is_zero,
            from,
        } = &self.layout
        else {
            return (0, None);
        };
        let place = page.wrapping_mul(GOLDEN).wrapping_add(*from) >> 48;
        let class = bounds.iter().take_while(|bound| place >= **bound).count();
        let first = class * CLASS_WORDS;
        if is_zero[class] {
            return (first, None);
        }
        let windows = (CLASS_WORDS - PAGE_WORDS) as u64;
        (first + number::index((word >> 40) % windows), Some(word))
    }

    /// Returns word number `index` of page number `page` of a mixture. For other contents the result has no meaning.
    /// Panics if a page does not have that many words.
    pub(crate) fn word(&self, page: u64, index: usize) -> u64 {
        let (from, stamp) = self.of_class(page, self.stamp(page));
        let words = &self.pool[from..from + PAGE_WORDS];
        match stamp {
            Some(stamp) if index == 0 => stamp,
            _ => words[index],
        }
    }

    /// Writes the content of page number `page` to `buffer`. Panics if the buffer is smaller than a page.
    pub(crate) fn write(&self, buffer: &mut [u8], page: u64) {
        assert!(buffer.len() >= PAGE, "a page needs {PAGE} bytes");
        // SAFETY: the buffer is at least a page long and borrowed exclusively.
        unsafe { self.page(buffer.as_mut_ptr(), page) };
    }
}

/// Returns the first `count` pages of a workload with this content. `content` is a value of the parameter `content` of
/// scenarios. Fails if no content has this name, or if the memory for the content cannot be mapped.
pub fn pages(
    content: &str,
    seed: u64,
    count: u64,
) -> Result<impl Iterator<Item = [u8; PAGE]>, Box<dyn std::error::Error>> {
    let text = named(content, &Names::new())?.unwrap_or_else(|| content.to_owned());
    let content = Content::read(&text).ok_or_else(|| format!("no content is named {text}"))?;
    let filler = Filler::new(&content, seed)?;
    Ok((0..count).map(move |page| {
        let mut bytes = [0; PAGE];
        filler.write(&mut bytes, page);
        bytes
    }))
}

/// Fails for a compressibility that cannot be generated.
pub(crate) fn check_content(
    name: &str,
    content: &Content,
    form: Form,
) -> Result<(), ScenarioError> {
    let Content::Share(content) = *content else {
        return Ok(());
    };
    let zeros = content == 0.0 && form == Form::AsWritten;
    // zram stores a page uncompressed if it compresses to more than about four fifths.
    if zeros || (0.05..=0.75).contains(&content) || content.to_bits() == 1.0_f64.to_bits() {
        return Ok(());
    }
    Err(ScenarioError::OutOfBounds {
        scenario: name.to_owned(),
        parameter: "content",
        value: content.to_string(),
        bounds: format!(
            "a number from 0.05 to 0.75, or 1 (pages of zeros never reach a device), or one of {}",
            names()
        ),
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
    use crate::content::KINDS;

    fn page(content: f64, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; PAGE];
        Filler::new(&Content::Share(content), 1)
            .unwrap()
            .write(&mut bytes, number);
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

    /// Returns the FNV-1a hash of all words of 50 pages of this content.
    fn digest(content: &str, seed: u64) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for page in pages(content, seed, 50).unwrap() {
            for word in page.as_chunks::<8>().0 {
                hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        hash
    }

    #[test]
    fn the_pages_of_each_content_never_change() {
        let golden: [(&str, u64); 10] = [
            ("redis", 0xdda5_122d_7e6a_1046),
            ("python", 0x9d28_e930_dd1f_11b5),
            ("java", 0xbf46_e335_d576_5581),
            ("node", 0xa710_db59_b967_cf4f),
            ("compiler", 0xe691_ee9a_f514_f336),
            ("text", 0x0a4f_f184_fa90_392c),
            ("compressed", 0x97ea_b49c_7b45_2268),
            ("zeros:30%", 0x1973_f78c_ba2b_a315),
            ("0.35", 0x54ca_660e_8bff_d591),
            ("1", 0xc50f_3d81_8008_5a87),
        ];
        let found: Vec<_> = golden
            .iter()
            .map(|(content, _)| (*content, digest(content, 1)))
            .collect();
        assert_eq!(found, golden);
        assert_ne!(digest("redis", 2), digest("redis", 1));
    }

    #[test]
    fn mixtures_compress_as_their_programs_do() {
        for kind in &KINDS {
            for seed in 1..4 {
                // zram stores a page uncompressed if its compressed size is larger than this (zs_huge_class_size).
                let stored = |page: [u8; PAGE]| match lz4_flex::block::compress(&page).len() {
                    _ if page == [0; PAGE] => 0,
                    size if size > 3264 => PAGE,
                    size => size,
                };
                let sum: usize = pages(kind.name, seed, 400).unwrap().map(stored).sum();
                let found = sum as f64 / (400 * PAGE) as f64;
                let wanted = f64::from(kind.compressed[0]) / 1000.0;
                assert!(
                    (found / wanted - 1.0).abs() < 0.1,
                    "{} {seed}: {found} of {wanted}",
                    kind.name
                );
            }
        }
    }

    #[test]
    fn a_share_of_zeros_is_exact_in_any_run_of_pages_and_the_others_differ() {
        let all: Vec<_> = pages("zeros:30%", 5, 3000).unwrap().collect();
        for run in all.chunks(100) {
            let zeros = run.iter().filter(|page| **page == [0; PAGE]).count();
            assert!((28..=32).contains(&zeros), "{zeros}");
        }
        for content in ["zeros:30%", "python"] {
            let mut seen = std::collections::BTreeSet::new();
            for page in pages(content, 5, 3000).unwrap() {
                assert!(page == [0; PAGE] || seen.insert(page), "{content}");
            }
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
    #[ignore = "test-all: it uses a zram device of this machine"]
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
                let filler = Filler::new(&Content::Share(content), 3).unwrap();
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
        let filler = Filler::new(&Content::Share(0.35), 9).unwrap();
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
