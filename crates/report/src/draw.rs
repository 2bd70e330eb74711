//! Functions for rendering text: capabilities of the terminal, clean text, quantities, grids and small pictures.

pub mod clean;
pub mod grid;
pub mod look;
pub mod picture;
pub mod quantity;

pub use clean::{clean, clean_label, escaped, width};
pub use grid::{Align, Cell, Grid};
pub use look::{Ink, Look};
pub use quantity::{Scale, count, grouped};
