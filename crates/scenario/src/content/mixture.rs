//! Mixtures of pages. A mixture consists of classes of pages that compress differently, each with its share.

use super::stream::Shape;

/// Maximum number of classes in a mixture.
pub(crate) const MAX_CLASSES: usize = 12;

/// Pages like those of a program's memory: a mixture of classes of pages that compress differently.
#[derive(Debug, PartialEq)]
pub(crate) struct Mixture {
    /// Name, as a value of the parameter `content`.
    pub name: &'static str,
    /// Compressed size of 1,000 pages of the real program's memory, in pages: with lz4, lzo-rle and zstd. Pages of
    /// zeros are included.
    pub compressed: [u16; 3],
    /// The classes of the mixture, at most [`MAX_CLASSES`].
    pub classes: &'static [Class],
}

/// A class of pages, and its share of a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// Number of pages of this class in a thousand.
    pub pages: u16,
    /// Statistics of the bytes of a page of this class.
    pub shape: Shape,
}

impl Class {
    /// Creates a class of pages that contain only zeros. `pages` is their number in a thousand.
    pub(crate) const fn zeros(pages: u16) -> Self {
        let shape = Shape::ZEROS;
        Self { pages, shape }
    }

    /// Creates a class of pages that do not compress. `pages` is their number in a thousand.
    pub(crate) const fn random(pages: u16) -> Self {
        let shape = Shape::RANDOM;
        Self { pages, shape }
    }
}
