//! Generates bytes that compress like those of real memory.
//!
//! All compressors of the kernel's swap replace repetitions by references to earlier bytes. Bytes that are not
//! repeated (literals) are stored as they are by lz4 and lzo-rle, and in fewer bits by zstd if some values are more
//! frequent. So the result depends on four quantities: how long runs of literals are, how long repetitions are, how
//! many of these are runs of zeros, and how many values literals have. A [`Shape`] states them, and bytes are
//! generated as an alternation of literals and repetitions. Words of a heap, such as pointers with equal upper bytes,
//! appear as short literals and short repetitions.

use pagetide_reference::Rng;

/// Shortest repetition: the shortest that any of the compressors can use.
const SHORTEST: u64 = 3;

/// Repetitions are of bytes at most two to this power before.
const FAR: u64 = 11;

/// Statistics of the bytes of one class of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Largest number of literals in a run; all numbers from 1 are equally frequent. 0 for bytes that are all zero.
    pub literals: u16,
    /// Number of different lengths of repetitions, from three bytes on, all equally frequent. 0 for no repetitions.
    pub copies: u16,
    /// Percentage of the repetitions that are runs of zeros.
    pub zeros: u8,
    /// Number of different values of literals, 1 to 255. The value 0 is not among them.
    pub symbols: u8,
}

impl Shape {
    /// Bytes that are all zero.
    pub(crate) const ZEROS: Self = Self::new(0, 0, 0, 1);
    /// Bytes that no compressor makes smaller.
    pub(crate) const RANDOM: Self = Self::new(1, 0, 0, 255);

    /// Creates a shape of its statistics, in the order of the fields.
    pub(crate) const fn new(literals: u16, copies: u16, zeros: u8, symbols: u8) -> Self {
        Self {
            literals,
            copies,
            zeros,
            symbols,
        }
    }

    /// True if all bytes are zero.
    pub(crate) fn is_zero(self) -> bool {
        self == Self::ZEROS
    }

    /// Fills `bytes` with bytes of this shape.
    pub(crate) fn fill(self, bytes: &mut [u8], rng: &mut Rng) {
        bytes.fill(0);
        if self.is_zero() {
            return;
        }
        let mut values: [u8; 255] = std::array::from_fn(|i| u8::try_from(i + 1).unwrap_or(1));
        rng.shuffle(&mut values);
        let mut at = 0;
        while at < bytes.len() {
            let run = 1 + rng.below(self.literals.into());
            for byte in bytes[at..].iter_mut().take(length(run)) {
                *byte = values[length(rng.below(self.symbols.into())).min(254)];
                at += 1;
            }
            if self.copies == 0 {
                continue;
            }
            let copy = length(SHORTEST + rng.below(self.copies.into())).min(bytes.len() - at);
            let is_zeros = rng.below(100) < self.zeros.into();
            // All magnitudes of the distance from 8 on are equally frequent.
            let far = 1 << (3 + rng.below(FAR - 2));
            let distance = length(1 + rng.below(far)).min(at);
            if is_zeros {
                at += copy;
                continue;
            }
            for _ in 0..copy {
                bytes[at] = bytes[at - distance];
                at += 1;
            }
        }
    }
}

/// Converts a small number to an index.
fn length(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
