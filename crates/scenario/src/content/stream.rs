//! Generates bytes that compress like those of real memory.
//!
//! All compressors of the kernel's swap replace repetitions by references to earlier bytes. Bytes that are not repeated
//! (literals) are stored unchanged by lz4 and lzo-rle; zstd stores them in fewer bits if some values are more frequent.
//! So the compressed size depends on four quantities: the length of runs of literals, the length of repetitions, the
//! share of repetitions that are runs of zeros, and the number of different literals. A [`Shape`] contains these four
//! quantities. Bytes are generated as runs of literals that alternate with repetitions. Words of a heap, such as
//! pointers with equal upper bytes, appear as short literals and short repetitions.

use pagetide_reference::Rng;

/// Minimum length of a generated repetition in bytes, which is the minimum that any of the compressors can use.
const SHORTEST: u64 = 3;

/// Base-2 logarithm of the maximum distance in bytes between a repetition and the bytes that it repeats.
const FAR: u64 = 11;

/// Statistics of the bytes of one class of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Maximum length of a run of literals; all lengths from 1 to the maximum are equally frequent. 0 if all bytes are
    /// zero.
    pub literals: u16,
    /// Number of different lengths of repetitions. Lengths start at three bytes and are equally frequent. 0 for no
    /// repetitions.
    pub copies: u16,
    /// Percentage of the repetitions that are runs of zeros.
    pub zeros: u8,
    /// Number of different values of literals, 1 to 255. The value 0 is not among them.
    pub symbols: u8,
}

impl Shape {
    /// Shape of bytes that are all zero.
    pub(crate) const ZEROS: Self = Self::new(0, 0, 0, 1);
    /// Shape of bytes that no compressor makes smaller.
    pub(crate) const RANDOM: Self = Self::new(1, 0, 0, 255);

    /// Creates a shape from the values of its fields, in their order.
    pub(crate) const fn new(literals: u16, copies: u16, zeros: u8, symbols: u8) -> Self {
        Self {
            literals,
            copies,
            zeros,
            symbols,
        }
    }

    /// Returns true if all bytes of this shape are zero.
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
            // The upper limit of the distance is a power of two, from 8 on; all powers are equally frequent.
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

/// Converts a number to an index.
fn length(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
