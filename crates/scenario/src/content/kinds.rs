//! All mixtures of pages. Their numbers were fitted to pages of real programs, see `docs/notes/contents.md`.

use super::mixture::{Class, Mixture};
use super::stream::Shape;

/// Creates a class. `pages` is the number of its pages in a thousand; the other arguments are the fields of its
/// [`Shape`].
const fn class(pages: u16, literals: u16, copies: u16, zeros: u8, symbols: u8) -> Class {
    let shape = Shape::new(literals, copies, zeros, symbols);
    Class { pages, shape }
}

/// All mixtures of pages, one for each kind of program or data.
pub(crate) static KINDS: [Mixture; 7] = [
    // Redis with sessions as JSON, hashes, sorted sets, lists and pages of HTML.
    Mixture {
        name: "redis",
        compressed: [395, 378, 253],
        classes: &[
            Class::zeros(13),
            class(123, 8, 400, 60, 160),
            class(124, 32, 100, 60, 4),
            class(123, 2, 26, 90, 255),
            class(124, 24, 45, 60, 8),
            class(123, 32, 45, 60, 8),
            class(124, 6, 20, 90, 48),
            class(123, 4, 16, 90, 160),
            class(123, 16, 20, 60, 48),
        ],
    },
    // Python 3 with syntax trees, dictionaries from JSON, objects, strings and matrices.
    Mixture {
        name: "python",
        compressed: [304, 272, 158],
        classes: &[
            Class::zeros(4),
            class(124, 8, 100, 90, 6),
            class(125, 3, 100, 0, 3),
            class(125, 3, 64, 0, 8),
            class(125, 3, 64, 0, 4),
            class(125, 2, 45, 0, 6),
            class(125, 1, 45, 0, 3),
            class(125, 24, 64, 0, 6),
            class(122, 64, 64, 30, 6),
        ],
    },
    // A Java 17 heap with records, maps, strings and arrays, and the virtual machine.
    Mixture {
        name: "java",
        compressed: [389, 373, 249],
        classes: &[
            Class::zeros(29),
            class(121, 24, 200, 0, 3),
            class(122, 64, 200, 0, 6),
            class(121, 100, 200, 0, 6),
            class(122, 3, 34, 0, 8),
            class(122, 64, 100, 90, 6),
            class(121, 8, 26, 90, 48),
            class(122, 6, 20, 90, 255),
            class(120, 24, 16, 90, 48),
        ],
    },
    // Node 20 with objects, maps, strings and buffers.
    Mixture {
        name: "node",
        compressed: [285, 265, 163],
        classes: &[
            Class::zeros(7),
            class(124, 16, 1000, 90, 8),
            class(124, 16, 200, 90, 6),
            class(124, 3, 64, 0, 4),
            class(125, 16, 64, 90, 8),
            class(124, 100, 200, 0, 4),
            class(124, 48, 100, 90, 6),
            class(124, 3, 26, 0, 6),
            class(124, 6, 20, 30, 24),
        ],
    },
    // GCC 12 while it optimises a large C file.
    Mixture {
        name: "compiler",
        compressed: [319, 294, 200],
        classes: &[
            Class::zeros(45),
            class(119, 100, 1000, 0, 4),
            class(120, 4, 64, 60, 24),
            class(119, 100, 200, 60, 4),
            class(120, 48, 100, 60, 4),
            class(119, 2, 26, 90, 255),
            class(120, 3, 26, 90, 255),
            class(119, 100, 100, 60, 6),
            class(119, 8, 20, 30, 48),
        ],
    },
    // Text: sources, manuals, licences, logs.
    Mixture {
        name: "text",
        compressed: [568, 559, 401],
        classes: &[
            class(125, 8, 64, 90, 255),
            class(125, 12, 34, 90, 160),
            class(125, 16, 26, 90, 48),
            class(125, 6, 12, 60, 48),
            class(125, 16, 20, 60, 48),
            class(125, 3, 9, 0, 48),
            class(125, 16, 12, 60, 48),
            class(125, 12, 12, 60, 48),
        ],
    },
    // Compressed files: packages, archives, pictures.
    Mixture {
        name: "compressed",
        compressed: [1000, 1000, 999],
        classes: &[class(1, 100, 200, 0, 255), Class::random(999)],
    },
];
