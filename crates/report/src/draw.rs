//! Functions for rendering text: capabilities of the terminal, clean text, quantities, grids and small pictures.

pub mod clean;
pub mod grid;
pub mod picture;
pub mod quantity;
pub mod text_style;

pub use clean::{clean, clean_label, escaped, width};
pub use grid::{Align, Cell, Grid};
pub use quantity::{Scale, count, grouped};
pub use text_style::{Ink, TextStyle};
