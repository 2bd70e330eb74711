//! A mixture of classes of pages.

use super::stream::Shape;

/// Largest number of classes of a mixture.
pub(crate) const MOST_CLASSES: usize = 12;

/// Pages like those of a program's memory: a mixture of classes that differ in how they compress.
#[derive(Debug, PartialEq)]
pub(crate) struct Mixture {
    /// Name, as a value of the parameter `content`.
    pub name: &'static str,
    /// Compressed size of 1,000 pages of the program's memory, in pages, by lz4, lzo-rle and zstd; pages of zeros
    /// included.
    pub compressed: [u16; 3],
    /// The classes, at most [`MOST_CLASSES`].
    pub classes: &'static [Class],
}

/// A class of pages, and its share of a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// Number of pages of this class in a thousand.
    pub pages: u16,
    /// Shape of the bytes of such a page.
    pub shape: Shape,
}

impl Class {
    /// Pages that are all zeros.
    pub(crate) const fn zeros(pages: u16) -> Self {
        let shape = Shape::ZEROS;
        Self { pages, shape }
    }

    /// Pages that do not compress.
    pub(crate) const fn random(pages: u16) -> Self {
        let shape = Shape::RANDOM;
        Self { pages, shape }
    }
}
